/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Leaving: dlclose while the library's threads work, and exit while work is queued, also with a trace. The program does
 * not link to weir; it opens the library that it is told (argv[1]).
 */

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"

enum { TASKS = 50 };

static atomic_int done;

static void fail(const char *what) {
    fprintf(stderr, "leave: %s\n", what);
    _exit(1);
}

static void sleep_ms(long ms) {
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static int32_t take_a_while(void *arg) {
    (void)arg;
    sleep_ms(2);
    atomic_fetch_add(&done, 1);
    return WEIR_OK;
}

/* ISO C has no cast from an object pointer to a function pointer; POSIX demands that this copy works. */
static void look_up(void *library, const char *name, void *function, size_t size) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL) fail(name);
    memcpy(function, &symbol, size);
}

#define LOOK_UP(library, name) look_up(library, #name, &name##_, sizeof name##_)

/* Queues work on a pool of the library's own threads, and forgets the handles. */
static void *begin_work(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    weir_status (*weir_check_version_)(uint32_t, uint32_t);
    weir_status (*weir_threadpool_create_builtin_)(const weir_threadpool_options *, weir_threadpool **);
    weir_status (*weir_stream_attr_create_)(weir_engine_kind, weir_stream_attr **);
    weir_status (*weir_stream_attr_set_threadpool_)(weir_stream_attr *, weir_threadpool *);
    weir_status (*weir_engine_create_)(weir_engine_kind, uint32_t, const weir_engine_attr *, weir_engine **);
    weir_status (*weir_stream_create_)(weir_engine *, uint64_t, const weir_stream_attr *, weir_stream **);
    weir_status (*weir_enqueue_task_)(weir_stream *, weir_host_fn, void *, weir_destroy_fn);
    weir_threadpool *pool;
    weir_engine *engine;
    weir_stream_attr *attr;
    weir_stream *stream;
    if (library == NULL) fail(dlerror());
    LOOK_UP(library, weir_check_version);
    LOOK_UP(library, weir_threadpool_create_builtin);
    LOOK_UP(library, weir_stream_attr_create);
    LOOK_UP(library, weir_stream_attr_set_threadpool);
    LOOK_UP(library, weir_engine_create);
    LOOK_UP(library, weir_stream_create);
    LOOK_UP(library, weir_enqueue_task);
    if (weir_check_version_(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR) != WEIR_OK ||
        weir_threadpool_create_builtin_(NULL, &pool) != WEIR_OK ||
        weir_stream_attr_create_(WEIR_ENGINE_CPU, &attr) != WEIR_OK ||
        weir_stream_attr_set_threadpool_(attr, pool) != WEIR_OK ||
        weir_engine_create_(WEIR_ENGINE_CPU, 0, NULL, &engine) != WEIR_OK ||
        weir_stream_create_(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &stream) != WEIR_OK) {
        fail("the library cannot be used");
    }
    for (int i = 0; i < TASKS; i++) {
        if (weir_enqueue_task_(stream, take_a_while, NULL, NULL) != WEIR_OK) fail("work cannot be queued");
    }
    return library;
}

/* The threads go on after dlclose, because the library stays loaded. */
static void test_dlclose(const char *path) {
    if (dlclose(begin_work(path)) != 0) fail(dlerror());
    for (int ms = 0; atomic_load(&done) < TASKS; ms++) {
        if (ms > 60000) fail("work did not go on after dlclose");
        sleep_ms(1);
    }
    if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL) fail("the library was unloaded");
}

/* In a process of its own. */
static void run(char *self, char *path, const char *way) {
    int status = 0;
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        execl(self, self, path, way, (char *)NULL);
        _exit(127);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail("exit with queued work did not end well");
    }
}

/* A process that returns from main with work queued ends at once, and well. */
static void test_exit(char *self, char *path) {
    run(self, path, "exit");
}

/* A trace that the environment asks for is written at the end, behind dlclose and while threads work. */
static void test_traced_exit(char *self, char *path) {
    char name[] = "/tmp/leave.XXXXXX", request[64], begin[8] = "";
    const int file = mkstemp(name);
    if (file < 0) fail("mkstemp");
    snprintf(request, sizeof request, "json:%s", name);
    if (setenv("WEIR_TRACE", request, 1) != 0) fail("setenv");
    run(self, path, "dlclose");
    unsetenv("WEIR_TRACE");
    FILE *written = fopen(name, "r");
    if (written == NULL || fgets(begin, sizeof begin, written) == NULL || begin[0] != '{') fail("no trace was written");
    fclose(written);
    close(file);
    unlink(name);
}

int main(int argc, char **argv) {
    if (argc < 2) fail("usage: leave <libweir.so>");
    if (argc > 2) {
        void *library = begin_work(argv[1]);
        return strcmp(argv[2], "dlclose") == 0 ? dlclose(library) : 0;
    }
    /* First: the library is not in this process yet, so fork is of no concern to it. */
    test_exit(argv[0], argv[1]);
    test_traced_exit(argv[0], argv[1]);
    test_dlclose(argv[1]);
    return 0;
}
