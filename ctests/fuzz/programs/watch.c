/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The watchdog: a program that takes too long, or in which processors work and nothing gets done, is a finding. It says
 * where all threads are, if there is a debugger.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../common/detached.h"
#include "world.h"

report *told;
double slowness = 1;
const char *planted;

bool is_planted(const char *what) {
    return planted != NULL && strcmp(planted, what) == 0;
}

static atomic_ullong progress;
static _Atomic(const char *) phase = "nothing";
static _Atomic uint64_t began;  /* 0: between two programs */
static _Atomic(const plan *) current;
static double patience = 20;
static pthread_mutex_t one_finding = PTHREAD_MUTEX_INITIALIZER;

uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void doze_us(int us) {
    struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&time, NULL);
}

void doze_longer(int *us) {
    doze_us(*us);
    if (*us < 2000) *us *= 2;
}

void watch_progress(void) {
    atomic_fetch_add(&progress, 1);
}

void watch_phase(const char *name) {
    atomic_store(&phase, name);
    watch_progress();
}

void watch_begin(const plan *p) {
    atomic_store(&current, p);
    atomic_store(&told->number, p->number);
    watch_phase("build");
    atomic_store(&began, clock_ns());
}

void watch_end(void) {
    atomic_store(&began, 0);
    atomic_store(&current, NULL);
}

static void show_stacks(void) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(2, 1);
        execlp("gdb", "gdb", "-q", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set print frame-arguments none", "-ex",
               "set filename-display basename", "-ex", "thread apply all -s bt 40", "-p", pid, (char *)NULL);
        fprintf(stderr, "(no gdb: no stacks)\n");
        _exit(127);
    }
    for (int i = 0; child > 0 && i < 600; i++) {
        if (waitpid(child, NULL, WNOHANG) != 0) return;
        doze_us(50000);
    }
}

static _Noreturn void stop(const char *kind, const char *text, bool stacks) {
    pthread_mutex_lock(&one_finding);
    snprintf(told->kind, sizeof told->kind, "%s", kind);
    snprintf(told->text, sizeof told->text, "%s", text);
    const plan *p = atomic_load(&current);
    fprintf(stderr, "\nFINDING %s, program %llu, phase '%s': %s\n", kind, (unsigned long long)atomic_load(&told->number),
            atomic_load(&phase), text);
    if (p != NULL && getenv("FUZZ_QUIET") == NULL) plan_print(stderr, p);
    if (stacks && getenv("FUZZ_QUIET") == NULL) show_stacks();
    fflush(NULL);
    _exit(1); /* other threads may be anywhere */
}

void finding(const char *kind, const char *format, ...) {
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stop(kind, text, false);
}

void must(weir_status status, const char *what) {
    if (status != WEIR_OK) finding("status", "%.200s says %s: %.600s", what, weir_status_name(status), weir_last_error_message());
}

/* Nothing gets done for a quarter of the patience: a spin if a processor is at work all that time, at the end a
 * hang. */
static void *watch(void *arg) {
    uint64_t seen = 0, since = clock_ns(), used = processor_ns(), of = 0;
    (void)arg;
    for (;;) {
        doze_us(100000);
        uint64_t start = atomic_load(&began), now = clock_ns(), at = atomic_load(&progress);
        if (start == 0 || at != seen || of != start) {
            seen = at, of = start, since = now, used = processor_ns();
            if (start == 0 || now - start < (uint64_t)(3 * patience * 1e9)) continue;
        }
        double still = (double)(now - since) / 1e9, worked = (double)(processor_ns() - used) / 1e9;
        char text[120];
        snprintf(text, sizeof text, "nothing was done for %.1f s, in which %.1f s of processor time were used", still, worked);
        if (still > patience / 4 && worked > 0.1 * still) stop("spin", text, true);
        if (still > patience / 2 || now - start > (uint64_t)(3 * patience * 1e9)) stop("hang", text, true);
    }
    return NULL;
}

uint64_t watch_limit_ns(void) {
    return (uint64_t)(0.4 * patience * 1e9);
}

void watch_start(double patience_s) {
    patience = patience_s * slowness;
    if (start_detached(watch, NULL) != 0) abort();
}
