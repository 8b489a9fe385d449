/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   endings <way>
 *
 * Records a span "before", and ends in the way that it is told: for scripts/trace_command.py, which runs it with a
 * trace that the environment asks for.
 */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>
#include <weir/inspect.h>
#include <weir/trace.h>

#include "check.h"

static void record(const char *name) {
    uint32_t number;
    CHECK_OK(weir_trace_intern(name, &number));
    CHECK_OK(weir_trace_span_begin(number));
    weir_trace_span_end();
}

static void record_at_exit(void) {
    record("at exit");
}

static void *exit_with_seven(void *arg) {
    (void)arg;
    exit(7);
}

static int status_of(pid_t child) {
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* A child that comes to its end as every process does: exit, with destructors and all. */
static void in_child(void) {
    record("in the child");
    exit(0);
}

/* A child that the C library has not seen coming does nothing but end. */
static int unseen_child(void) {
    fflush(NULL);
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) exit(0);
    return status_of(child);
}

/* A process of its own, with the same environment. */
static int run_once_more(char *self, char *way) {
    const pid_t child = fork();
    if (child == 0) {
        execl(self, self, way, (char *)NULL);
        _exit(127);
    }
    return status_of(child);
}

/* Ends with the number of the signal that it got, with a trace in which that is seen. */
static int wait_for_a_signal(void) {
    static const int awaited[] = {SIGTERM, SIGINT, SIGUSR1};
    sigset_t signals;
    int received;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof awaited / sizeof awaited[0]; i++) sigaddset(&signals, awaited[i]);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    puts("ready");
    fflush(stdout);
    CHECK(sigwait(&signals, &received) == 0);
    record("after the signal");
    return received;
}

static uint64_t traces(void) {
    weir_runtime_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_runtime_get_info(&info));
    return info.traces;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    pthread_t thread;
    if (strcmp(way, "without") == 0) return 4;
    atexit(record_at_exit);
    const pid_t early = strcmp(way, "fork_before") == 0 ? fork() : 1;
    if (early == 0) in_child();
    record("before");
    CHECK(traces() == 0); /* it is none of the program's objects */
    if (strcmp(way, "return") == 0) return 5;
    if (strcmp(way, "thread") == 0) {
        CHECK(pthread_create(&thread, NULL, exit_with_seven, NULL) == 0);
        for (;;) pause();
    }
    if (strcmp(way, "_exit") == 0) _exit(6);
    if (strcmp(way, "quick") == 0) quick_exit(6);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "signal") == 0) return wait_for_a_signal();
    if (strcmp(way, "directory") == 0) return chdir("/");
    if (strcmp(way, "unseen") == 0) return unseen_child();
    if (strcmp(way, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) in_child();
        return status_of(child);
    }
    if (strcmp(way, "fork_before") == 0) return status_of(early);
    if (strcmp(way, "exec") == 0) return run_once_more(argv[0], "return") == 5 << 8 ? 0 : 1;
    fprintf(stderr, "usage: endings <way>\n");
    return 2;
}
