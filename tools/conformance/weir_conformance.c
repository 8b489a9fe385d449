/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Checks a thread pool against weir's contract (docs/threadpool.md), or a device (docs/devices.md), and prints a line
 * for each clause.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir.h>
#include <weir/conformance.h>
#include <weir/device.h>
#include <weir/testing.h>

enum { CONFORMS = 0, BREAKS = 1, TROUBLE = 2, UNSEEN = 3 };

static const char usage_text[] =
    "usage: weir_conformance [option]... --builtin [N] | --inline | --seeded SEED N | MODULE.so [SYMBOL]\n"
    "       weir_conformance [option]... --device KIND [INDEX] | --plugin LIBRARY.so KIND [INDEX]\n"
    "\n"
    "Checks a thread pool against the clauses of docs/threadpool.md: one of weir's own pools, with N threads, or the\n"
    "pool of a shared object, which exports\n"
    "\n"
    "    int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx);\n"
    "\n"
    "or SYMBOL, of the same type (weir/conformance.h). It returns 0, or anything else if there is no pool.\n"
    "\n"
    "With --device or --plugin it checks a device against the clauses of docs/devices.md: one of weir's own, or one that a\n"
    "plug-in library brings (weir_device_load).\n"
    "\n"
    "    --budget MS   how long a clause waits for tasks that do not come, in milliseconds; default 2000\n"
    "    --rounds N    how often each thing is tried; default 16\n"
    "    --draw SEED   for what is drawn: lengths of tasks and pauses; default 0\n"
    "\n"
    "Exit status: 0 = all clauses that the pool or device offers are kept, 1 = one is broken, 2 = the check could not be\n"
    "made, 3 = none is broken, and of one or more nothing could be seen (\"not checked\").\n";

static int usage(const char *wrong) {
    if (wrong != NULL) fprintf(stderr, "weir_conformance: %s\n\n", wrong);
    fputs(usage_text, wrong != NULL ? stderr : stdout);
    return wrong != NULL ? TROUBLE : CONFORMS;
}

static int trouble(const char *what, const char *why) {
    fprintf(stderr, "weir_conformance: %s: %s\n", what, why);
    return TROUBLE;
}

/* A whole number from 0 to `most`. */
static bool number(const char *text, unsigned long long most, unsigned long long *out) {
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= most;
}

/* The pool to be checked; release gives it up. */
typedef struct pool {
    weir_threadpool_vtable vtable;
    void *ctx;
} pool;

static int from_weir(weir_status made, weir_threadpool *handle, pool *out) {
    if (made == WEIR_OK) {
        out->vtable.struct_size = sizeof out->vtable;
        made = weir_threadpool_get_vtable(handle, &out->vtable, &out->ctx);
        weir_threadpool_release(handle);
    }
    return made == WEIR_OK ? CONFORMS : trouble("no pool", weir_last_error_message());
}

static int builtin_pool(int32_t num_threads, pool *out) {
    const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = num_threads};
    weir_threadpool *handle = NULL;
    const weir_status status = weir_threadpool_create_builtin(&options, &handle);
    return from_weir(status, handle, out);
}

/* A name without a slash would be looked for in the system's directories. NULL if there is no memory. */
static char *path_here(const char *path) {
    char *here = malloc(strlen(path) + 3);
    if (here != NULL) sprintf(here, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    return here;
}

static int module_pool(const char *path, const char *symbol, pool *out) {
    weir_conformance_pool_fn make = NULL;
    void *module = NULL, *found = NULL;
    char *here = path_here(path);
    if (here == NULL) return trouble(path, "out of memory");
    module = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    free(here);
    if (module == NULL) return trouble("cannot load the module", dlerror());
    found = dlsym(module, symbol);
    if (found == NULL) return trouble("cannot find the pool", dlerror());
    memcpy(&make, &found, sizeof make); /* ISO C has no cast from void * to a function */
    if (make(&out->vtable, &out->ctx) != 0) return trouble(symbol, "returned nonzero, so there is no pool");
    return CONFORMS;
}

typedef struct printer {
    bool colours;
    int passed, failed, not_offered, notes, not_checked;
} printer;

static void print_line(void *arg, const weir_conformance_line *line) {
    static const char *const names[] = {"pass", "FAIL", "not offered", "note", "not checked"};
    static const char *const colours[] = {"\033[32m", "\033[1;31m", "\033[2m", "\033[36m", "\033[33m"};
    printer *p = arg;
    int *const counts[] = {&p->passed, &p->failed, &p->not_offered, &p->notes, &p->not_checked};
    size_t verdict = (size_t)line->verdict;
    if (verdict >= sizeof names / sizeof *names) return;
    ++*counts[verdict];
    printf("%-4s %-58s %s%-11s%s %s\n", line->clause, line->title, p->colours ? colours[verdict] : "", names[verdict],
           p->colours ? "\033[0m" : "", line->text);
    fflush(stdout);
}

static printer new_printer(void) {
    return (printer){.colours = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL};
}

static int sum_up(const printer *p, int32_t failed) {
    printf("%d passed, %d failed, %d not offered, %d not checked\n", p->passed, p->failed, p->not_offered, p->not_checked);
    /* What could not be checked was not found to be right. */
    if (failed > 0) return BREAKS;
    return p->not_checked == 0 ? CONFORMS : UNSEEN;
}

static int check(pool *checked, const weir_conformance_options *options) {
    printer p = new_printer();
    int32_t failed = 0;
    weir_status status =
        weir_threadpool_conformance(&checked->vtable, checked->ctx, options, print_line, &p, &failed);
    if (status != WEIR_OK) return trouble("the pool cannot be checked", weir_last_error_message());
    return sum_up(&p, failed);
}

/* Arguments: KIND [INDEX]. */
static int check_device(int argc, char **argv, const weir_conformance_options *options) {
    printer p = new_printer();
    unsigned long long index = 0;
    int32_t failed = 0;
    weir_engine_kind kind = 0;
    if (argc < 1 || argc > 2 || (argc == 2 && !number(argv[1], UINT32_MAX, &index))) return usage("a device is KIND [INDEX]");
    weir_status status = weir_emulated_register();
    if (status == WEIR_OK) status = weir_engine_kind_from_name(argv[0], &kind);
    if (status == WEIR_OK) status = weir_device_conformance(kind, (uint32_t)index, options, print_line, &p, &failed);
    if (status != WEIR_OK) return trouble("the device cannot be checked", weir_last_error_message());
    return sum_up(&p, failed);
}

/* Arguments: LIBRARY.so KIND [INDEX]. */
static int check_plugin(int argc, char **argv, const weir_conformance_options *options) {
    if (argc < 2) return usage("a plug-in is LIBRARY.so KIND [INDEX]");
    char *here = path_here(argv[0]);
    if (here == NULL) return trouble(argv[0], "out of memory");
    weir_status status = weir_device_load(here);
    free(here);
    if (status != WEIR_OK) return trouble("the plug-in cannot be loaded", weir_last_error_message());
    return check_device(argc - 1, argv + 1, options);
}

/* Takes the options off the front of the arguments. NULL, or what is wrong. */
static const char *take_options(int *argc, char ***argv, weir_conformance_options *options) {
    unsigned long long value = 0;
    while (*argc >= 2) {
        const char *name = (*argv)[0], *text = (*argv)[1];
        if (strcmp(name, "--budget") == 0) {
            if (!number(text, 100000, &value) || value == 0) return "--budget takes 1 to 100000 milliseconds";
            options->budget_ns = value * 1000000u;
        } else if (strcmp(name, "--rounds") == 0) {
            if (!number(text, 100000, &value) || value == 0) return "--rounds takes a number from 1 to 100000";
            options->rounds = (int32_t)value;
        } else if (strcmp(name, "--draw") == 0) {
            if (!number(text, UINT64_MAX, &value)) return "--draw takes a number";
            options->seed = value;
        } else {
            break;
        }
        *argc -= 2;
        *argv += 2;
    }
    return NULL;
}

/* Makes the pool that the arguments name. */
static int make_pool(int argc, char **argv, pool *out) {
    weir_threadpool *handle = NULL;
    unsigned long long threads = 0, seed = 0;
    if (strcmp(argv[0], "--builtin") == 0) {
        if (argc > 2 || (argc == 2 && (!number(argv[1], INT32_MAX, &threads) || threads == 0)))
            return usage("--builtin takes a number of threads, or nothing");
        return builtin_pool((int32_t)threads, out);
    }
    if (strcmp(argv[0], "--inline") == 0) {
        if (argc > 1) return usage("--inline takes nothing");
        weir_status created = weir_threadpool_create_inline(&handle);
        return from_weir(created, handle, out);
    }
    if (strcmp(argv[0], "--seeded") == 0) {
        if (argc != 3 || !number(argv[1], UINT64_MAX, &seed) || !number(argv[2], INT32_MAX, &threads))
            return usage("--seeded takes a seed and a number of threads");
        weir_status created = weir_threadpool_create_seeded(seed, (int32_t)threads, &handle);
        return from_weir(created, handle, out);
    }
    if (argv[0][0] == '-') return usage("unknown option, or an option without its value");
    if (argc > 2) return usage("too many arguments");
    return module_pool(argv[0], argc == 2 ? argv[1] : "weir_conformance_pool", out);
}

int main(int argc, char **argv) {
    weir_conformance_options options;
    pool made;
    memset(&options, 0, sizeof options);
    memset(&made, 0, sizeof made);
    options.struct_size = sizeof options;
    if (weir_check_version(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR) != WEIR_OK)
        return trouble("libweir", weir_last_error_message());
    argc--, argv++;
    if (argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) return usage(NULL);
    const char *wrong = take_options(&argc, &argv, &options);
    if (wrong != NULL) return usage(wrong);
    if (argc == 0) return usage("no pool is named");
    if (strcmp(argv[0], "--device") == 0) return check_device(argc - 1, argv + 1, &options);
    if (strcmp(argv[0], "--plugin") == 0) return check_plugin(argc - 1, argv + 1, &options);
    int status = make_pool(argc, argv, &made);
    return status == CONFORMS ? check(&made, &options) : status;
}
