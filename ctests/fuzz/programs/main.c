/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Random programs through the public interface, on random pools, from random places, against an interpreter.
 *
 *     fuzz_programs [--seed N] [--programs N | --minutes M] [--jobs N] [--findings N] [--without FEATURE,...] [--patience S]
 *     fuzz_programs --one N [--drop n3,a2,...] [--without ...] [--repeat N]      does one program again
 *     fuzz_programs --show N [--drop ...]                                        says what it is
 *     fuzz_programs --plant result|order|hang|leak ...                           with a mistake of its own, which must be found
 *
 * Programs have numbers, from the seed on. They are tried in processes of their own, each some dozens of them, so that
 * one that hangs or crashes is one finding. A finding is made smaller: what it does not need is left out as long as it
 * comes back.
 */

#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "world.h"
#include "weir/testing.h"

enum { MAX_JOBS = 8, CHUNK = 40, MAX_ARGUMENTS = 32 };

static struct {
    uint64_t seed, programs, one;
    double minutes, patience, shrink_s;
    int jobs, repeat, findings;
    bool replay, show;
    const char *without, *drop;
    uint64_t first, count; /* of a child */
    int fd;
} options = {.seed = 1, .programs = 2000, .patience = 20, .shrink_s = 90, .jobs = 2, .repeat = 1, .findings = 1, .fd = -1};

static const char *self;

/* ---- One process that tries programs ------------------------------------------------------------ */

static report *map_report(int fd) {
    void *at = mmap(NULL, sizeof(report), PROT_READ | PROT_WRITE, fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) abort();
    return at;
}

static bool parse_drops(drops *d) {
    memset(d, 0, sizeof *d);
    return (options.without == NULL || read_without(d, options.without)) && (options.drop == NULL || read_drops(d, options.drop));
}

static int try_range(uint64_t first, uint64_t count) {
    drops d;
    if (!parse_drops(&d)) return 2;
    told = map_report(options.fd);
    watch_start(options.patience);
    for (int r = 0; r < options.repeat; r++) {
        for (uint64_t i = 0; i < count; i++) {
            plan *p = plan_draw(first + i, &d);
            try_program(p);
            plan_free(p);
        }
    }
    return 0;
}

/* ---- Children ---------------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid; /* 0: none */
    int fd;
    report *told;
    uint64_t first, count;
} child;

static void start_child(child *c, uint64_t first, uint64_t count, const char *drop, int repeat, double patience, bool quiet) {
    char a[6][32];
    const char *arguments[MAX_ARGUMENTS];
    int n = 0;
    c->fd = memfd_create("report", 0);
    if (c->fd < 0 || ftruncate(c->fd, sizeof(report)) != 0) abort();
    c->told = map_report(c->fd);
    c->first = first, c->count = count;
    snprintf(a[0], sizeof a[0], "%d", c->fd);
    snprintf(a[1], sizeof a[1], "%llu", (unsigned long long)first);
    snprintf(a[2], sizeof a[2], "%llu", (unsigned long long)count);
    snprintf(a[3], sizeof a[3], "%d", repeat);
    snprintf(a[4], sizeof a[4], "%g", patience);
    const char *fixed[] = {self, "--report", a[0], "--first", a[1], "--count", a[2], "--repeat", a[3], "--patience", a[4]};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) arguments[n++] = fixed[i];
    if (options.without != NULL) arguments[n++] = "--without", arguments[n++] = options.without;
    if (planted != NULL) arguments[n++] = "--plant", arguments[n++] = planted;
    if (drop != NULL && *drop != 0) arguments[n++] = "--drop", arguments[n++] = drop;
    arguments[n] = NULL;
    fflush(NULL);
    c->pid = fork();
    if (c->pid < 0) abort();
    if (c->pid > 0) return;
    if (quiet) setenv("FUZZ_QUIET", "1", 1);
    if (quiet) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
    }
    execv("/proc/self/exe", (char *const *)arguments);
    _exit(127);
}

static void end_child(child *c) {
    munmap(c->told, sizeof(report));
    close(c->fd);
    c->pid = 0;
}

/* How a child failed; NULL if it did not. */
static const char *failure_of(const child *c, int status) {
    static char text[64];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return NULL;
    if (WIFSIGNALED(status)) snprintf(text, sizeof text, "signal %d", WTERMSIG(status));
    else if (c->told->kind[0] != 0) snprintf(text, sizeof text, "%s", c->told->kind);
    else snprintf(text, sizeof text, "exit %d", WEXITSTATUS(status)); /* a sanitizer's */
    return text;
}

/* ---- Shrinking --------------------------------------------------------------------------------- */

static bool same_kind(const char *a, const char *b) {
    bool stuck = (strcmp(a, "hang") == 0 || strcmp(a, "spin") == 0) && (strcmp(b, "hang") == 0 || strcmp(b, "spin") == 0);
    return stuck || strcmp(a, b) == 0;
}

static bool fails_with(uint64_t number, const char *drop, const char *kind, int repeat) {
    child c;
    int status = 0;
    start_child(&c, number, 1, drop, repeat, options.patience / 4 < 4 ? 4 : options.patience / 4, true);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {}
    const char *how = failure_of(&c, status);
    bool same = how != NULL && same_kind(how, kind);
    end_child(&c);
    return same;
}

static void try_drop(char *list, size_t capacity, const char *more, uint64_t number, const char *kind, int repeat, uint64_t until) {
    char longer[6000];
    if (clock_ns() > until || *more == 0) return;
    snprintf(longer, sizeof longer, "%s%s%s", list, *list != 0 ? "," : "", more);
    if (strlen(longer) >= capacity || !fails_with(number, longer, kind, repeat)) return;
    memcpy(list, longer, strlen(longer) + 1);
}

/* Names with `letter` and the numbers that are not dropped yet, in pieces that get smaller. */
static void drop_pieces(char *list, size_t capacity, char letter, const int *ids, int n, uint64_t number, const char *kind, int repeat,
                        uint64_t until) {
    for (int piece = n; piece >= 1; piece /= 2) {
        for (int at = 0; at < n; at += piece) {
            char more[3000] = "";
            for (int i = at; i < at + piece && i < n; i++) {
                char name[16], within[20];
                snprintf(name, sizeof name, "%c%d", letter, ids[i]);
                snprintf(within, sizeof within, ",%s,", name);
                char padded[6100];
                snprintf(padded, sizeof padded, ",%s,", list);
                if (strstr(padded, within) != NULL) continue;
                snprintf(more + strlen(more), sizeof more - strlen(more), "%s%s", *more != 0 ? "," : "", name);
            }
            try_drop(list, capacity, more, number, kind, repeat, until);
        }
    }
}

static void shrink(uint64_t number, const char *kind) {
    char list[5800] = "";
    int ids[MAX_IDS], n = 0, repeat = 1;
    uint64_t until = clock_ns() + (uint64_t)(options.shrink_s * slowness * 1e9);
    drops none;
    if (options.shrink_s <= 0) return;
    while (repeat <= 256 && !fails_with(number, list, kind, repeat)) repeat *= 4;
    if (repeat > 256) {
        printf("  it did not come back in 256 times\n");
        printf("  replay: %s --one %llu --repeat 1000%s%s\n", self, (unsigned long long)number, options.without ? " --without " : "",
               options.without ? options.without : "");
        return;
    }
    if (repeat > 1) repeat *= 2;
    (void)parse_drops(&none);
    plan *p = plan_draw(number, &none);
    for (int i = 0; i < p->num_callers; i++) ids[n++] = i;
    drop_pieces(list, sizeof list, 'c', ids, n, number, kind, repeat, until);
    for (int f = 0; f < FEATURES; f++) {
        if (p->uses[f]) try_drop(list, sizeof list, feature_names[f], number, kind, repeat, until);
    }
    n = 0;
    for (int i = 0; i < p->num_callers; i++) {
        for (int k = 0; k < p->callers[i].num_acts; k++) ids[n++] = p->callers[i].acts[k].id;
    }
    drop_pieces(list, sizeof list, 'a', ids, n, number, kind, repeat, until);
    n = 0;
    for (const node *node = p->all; node != NULL; node = node->all_next) {
        if (!node->dropped) ids[n++] = node->id;
    }
    drop_pieces(list, sizeof list, 'n', ids, n, number, kind, repeat, until);
    for (n = 0; n < ROLES; n++) ids[n] = n;
    drop_pieces(list, sizeof list, 'p', ids, n, number, kind, repeat, until);
    for (n = 0; n < p->num_devices; n++) ids[n] = n;
    drop_pieces(list, sizeof list, 'd', ids, n, number, kind, repeat, until);
    for (n = 0; n < p->graph->num_outputs; n++) ids[n] = n;
    drop_pieces(list, sizeof list, 'o', ids, n, number, kind, repeat, until);
    plan_free(p);
    printf("  replay: %s --one %llu --repeat %d", self, (unsigned long long)number, repeat);
    if (options.without != NULL) printf(" --without %s", options.without);
    if (*list != 0) printf(" --drop %s", list);
    printf("\n");
    drops d;
    memset(&d, 0, sizeof d);
    if (options.without != NULL) (void)read_without(&d, options.without);
    (void)read_drops(&d, list);
    p = plan_draw(number, &d);
    fflush(stdout);
    plan_print(stdout, p);
    plan_free(p);
}

/* ---- Many programs ----------------------------------------------------------------------------- */

static void add_counts(report *all, const report *some) {
    all->programs += some->programs;
    all->acts += some->acts;
    all->runs += some->runs;
    all->bodies += some->bodies;
    all->refusals += some->refusals;
    all->failures += some->failures;
    all->skipped += some->skipped;
    for (int i = 0; i < FEATURES; i++) all->features[i] += some->features[i];
    for (int i = 0; i < 32; i++) all->pools[i] += some->pools[i];
    for (int i = 0; i < 3; i++) all->callers[i] += some->callers[i];
}

static void print_counts(const report *r, int found) {
    printf("features met, in programs:");
    for (int i = 0; i < FEATURES; i++) printf("%s %s %llu", i > 0 ? "," : "", feature_names[i], (unsigned long long)r->features[i]);
    printf("\npools:");
    for (int i = 0, n = 0; i < 32; i++) {
        if (r->pools[i] > 0) printf("%s %s %llu", n++ > 0 ? ";" : "", pool_class_names[i], (unsigned long long)r->pools[i]);
    }
    printf("\ncallers: %llu outside, %llu jobs of pools, %llu tasks of streams\n", (unsigned long long)r->callers[0],
           (unsigned long long)r->callers[1], (unsigned long long)r->callers[2]);
    printf("%llu programs (%llu more not implemented), %llu calls, %llu runs that succeeded, %llu that failed as they had to, %llu bodies, "
           "%llu refusals, %d findings\n", (unsigned long long)r->programs, (unsigned long long)r->skipped, (unsigned long long)r->acts,
           (unsigned long long)r->runs, (unsigned long long)r->failures, (unsigned long long)r->bodies, (unsigned long long)r->refusals, found);
}

static int try_many(void) {
    child children[MAX_JOBS];
    static report all;
    uint64_t next = options.seed, last = options.minutes > 0 ? UINT64_MAX : options.seed + options.programs;
    uint64_t until = options.minutes > 0 ? clock_ns() + (uint64_t)(options.minutes * 60e9) : UINT64_MAX;
    int found = 0, running = 0;
    memset(children, 0, sizeof children);
    for (;;) {
        for (int i = 0; i < options.jobs; i++) {
            bool more = next < last && clock_ns() < until && found < options.findings;
            if (children[i].pid != 0 || !more) continue;
            uint64_t count = last - next < CHUNK ? last - next : CHUNK;
            start_child(&children[i], next, count, options.drop, 1, options.patience, false);
            next += count;
            running++;
        }
        if (running == 0) break;
        int status = 0, at = 0;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0) continue;
        while (at < options.jobs && children[at].pid != pid) at++;
        if (at == options.jobs) continue;
        child *c = &children[at];
        running--;
        add_counts(&all, c->told);
        const char *how = failure_of(c, status);
        uint64_t number = c->told->number, rest = c->first + c->count;
        if (how == NULL) {
            end_child(c);
            continue;
        }
        char kind[64];
        snprintf(kind, sizeof kind, "%s", how);
        printf("FINDING %d: %s, program %llu: %s\n", ++found, kind, (unsigned long long)number, c->told->text);
        fflush(stdout);
        end_child(c);
        shrink(number, kind);
        if (number + 1 < rest && found < options.findings && clock_ns() < until) {
            start_child(c, number + 1, rest - number - 1, options.drop, 1, options.patience, false);
            running++;
        }
    }
    print_counts(&all, found);
    return found > 0;
}

int main(int argc, char **argv) {
    CHECK_OK(weir_emulated_register());
    self = argv[0];
    options.programs = (uint64_t)scale((int)options.programs / (WITH_ASAN ? 4 : under_valgrind() ? 5 : 1));
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *text = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(name, "--seed") == 0) options.seed = strtoull(text, NULL, 0);
        else if (strcmp(name, "--programs") == 0) options.programs = strtoull(text, NULL, 0);
        else if (strcmp(name, "--minutes") == 0) options.minutes = atof(text);
        else if (strcmp(name, "--jobs") == 0) options.jobs = atoi(text);
        else if (strcmp(name, "--findings") == 0) options.findings = atoi(text);
        else if (strcmp(name, "--shrink") == 0) options.shrink_s = atof(text);
        else if (strcmp(name, "--patience") == 0) options.patience = atof(text);
        else if (strcmp(name, "--without") == 0) options.without = *text != 0 ? text : NULL;
        else if (strcmp(name, "--drop") == 0) options.drop = text;
        else if (strcmp(name, "--repeat") == 0) options.repeat = atoi(text);
        else if (strcmp(name, "--one") == 0) options.one = strtoull(text, NULL, 0), options.replay = true;
        else if (strcmp(name, "--show") == 0) options.one = strtoull(text, NULL, 0), options.show = true;
        else if (strcmp(name, "--plant") == 0) planted = text;
        else if (strcmp(name, "--report") == 0) options.fd = atoi(text);
        else if (strcmp(name, "--first") == 0) options.first = strtoull(text, NULL, 0);
        else if (strcmp(name, "--count") == 0) options.count = strtoull(text, NULL, 0);
        else return fprintf(stderr, "unknown argument: %s\n", name), 2;
    }
    if (options.jobs < 1 || options.jobs > MAX_JOBS) return fprintf(stderr, "--jobs: 1 to %d\n", MAX_JOBS), 2;
    slowness = under_valgrind() ? 30 : WITH_TSAN ? 6 : WITH_ASAN ? 3 : 1;
    drops d;
    if (!parse_drops(&d)) return 2;
    if (options.show) {
        plan *p = plan_draw(options.one, &d);
        plan_print(stdout, p);
        plan_free(p);
        return 0;
    }
    if (options.fd >= 0) return try_range(options.first, options.count);
    if (options.replay) return try_range(options.one, 1);
    /* It looks at this process only. */
    if (under_valgrind()) return try_range(options.seed, options.programs);
    return try_many();
}
