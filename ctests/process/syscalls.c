/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Replays make no system call and ask for no memory: a child process replays between two marks, and its parent counts
 * what the child's thread asks of the kernel. Runs that a pool shares may wake and wait, and do nothing else. A pool
 * that is made for one call asks for nothing either.
 */

#include "make.h"
#include "test_pools.h"

#if defined(__linux__) && !WITH_ASAN && !WITH_TSAN

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <stdbool.h>
#include <unistd.h>

enum { WIDE = 8, MARK = SYS_getppid };

/* From here on, or up to here, system calls are counted. */
static void mark(void) {
    (void)syscall(MARK);
}

static int32_t nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

static pthread_t caller;
static atomic_int elsewhere;

/* Some microseconds, so that the run is worth sharing by what it measures too. */
static int32_t something(void *arg) {
    for (volatile int i = 0; i < 5000; i++) (void)arg;
    if (!pthread_equal(pthread_self(), caller)) atomic_fetch_add(&elsewhere, 1);
    return WEIR_OK;
}

/* A source, WIDE tasks behind it, and a sink; each said to take so long. */
static weir_program *make_diamond(weir_engine *engine, bool shared) {
    int32_t (*task)(void *) = shared ? something : nothing;
    uint64_t cost_ns = shared ? 10000 : 10;
    weir_graph *graph = make_graph("diamond");
    weir_node source, sink, node;
    weir_program *program = NULL;
    char name[16];
    CHECK_OK(weir_graph_add_task(graph, "source", task, NULL, NULL, cost_ns, &source));
    CHECK_OK(weir_graph_add_task(graph, "sink", task, NULL, NULL, cost_ns, &sink));
    for (int i = 0; i < WIDE; i++) {
        snprintf(name, sizeof name, "task %d", i);
        CHECK_OK(weir_graph_add_task(graph, name, task, NULL, NULL, cost_ns, &node));
        CHECK_OK(weir_graph_add_control_edge(graph, source, node));
        CHECK_OK(weir_graph_add_control_edge(graph, node, sink));
    }
    weir_compile_options options = {.struct_size = sizeof options};
    if (shared) options.hop_ns = WEIR_HOP_NONE;
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_graph_destroy(graph);
    return program;
}

typedef enum what { ALONE, CHEAP_ON_A_POOL, SHARED, POOL_OF_A_CALL, WHATS } what;

static void replay(what how) {
    weir_threadpool *pool = NULL;
    if (how != ALONE) {
        const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = 2};
        CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
    }
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_diamond(engine, how == SHARED);
    int rounds = scale(how == SHARED ? 2000 : 1000000);
    caller = pthread_self();
    for (int i = 0; i < 600; i++) CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    uint64_t allocations = runtime_info().allocations;
    mark();
    for (int i = 0; i < rounds; i++) {
        if (weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL) != WEIR_OK) abort();
    }
    mark();
    CHECK_EQ(runtime_info().allocations, allocations);
    CHECK((atomic_load(&elsewhere) > 0) == (how == SHARED));
    weir_program_release(program);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
}

static int32_t two_threads(void *ctx) {
    (void)ctx;
    return 2;
}

static int32_t in_caller(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    (void)ctx;
    for (int32_t i = 0; i < n; i++) task(arg, i);
    return 0;
}

static int32_t of_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    *(volatile int64_t *)arg += end - begin;
    return WEIR_OK;
}

/* What an operator does to which its framework gives a pool with each call: a region, a run, and the end of the
 * pool. */
static void call_with_a_pool_of_its_own(weir_program *program) {
    const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable, .num_threads = two_threads, .parallel_for = in_caller};
    int context = 0;
    volatile int64_t items = 0;
    weir_threadpool *pool = NULL;
    if (weir_threadpool_create(&vtable, &context, NULL, &pool) != WEIR_OK) abort();
    if (weir_parallel_for(pool, 100, NULL, of_range, (void *)&items) != WEIR_OK || items != 100) abort();
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    if (weir_program_run(program, NULL, NULL, 0, NULL, 0, &options) != WEIR_OK) abort();
    if (weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE) != WEIR_OK) abort();
    weir_threadpool_release(pool);
}

static void pools_of_calls(void) {
    weir_engine *engine = make_engine(NULL);
    weir_program *program = make_diamond(engine, false);
    for (int i = 0; i < 600; i++) call_with_a_pool_of_its_own(program);
    uint64_t allocations = runtime_info().allocations;
    mark();
    for (int i = 0; i < scale(100000); i++) call_with_a_pool_of_its_own(program);
    mark();
    CHECK_EQ(runtime_info().allocations, allocations);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* How often the child calls the kernel between its marks: all calls, and those that wake or wait. False if that can't
 * be seen. */
static bool count(what how, long *calls, long *futexes) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
        raise(SIGSTOP);
        if (how == POOL_OF_A_CALL) {
            pools_of_calls();
        } else {
            replay(how);
        }
        _exit(0);
    }
    int status = 0, marks = 0;
    bool entering = true;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status)) return false;
    CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD) == 0);
    *calls = *futexes = 0;
    for (int pass = 0;;) {
        CHECK(ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)pass) == 0);
        CHECK(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status)) break;
        CHECK(WIFSTOPPED(status));
        pass = 0;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            pass = WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
            continue;
        }
        if (entering) {
            struct __ptrace_syscall_info info;
            if (ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info) <= 0) {
                kill(child, SIGKILL);
                CHECK(waitpid(child, &status, 0) == child);
                return false;
            }
            long number = (long)info.entry.nr;
            marks += number == MARK;
            *calls += marks == 1 && number != MARK;
            *futexes += marks == 1 && number == SYS_futex;
        }
        entering = !entering;
    }
    if (WEXITSTATUS(status) == 77) return false;
    CHECK_EQ(WEXITSTATUS(status), 0);
    CHECK_EQ(marks, 2);
    return true;
}

int main(void) {
    if (under_valgrind()) {
        puts("nothing can be counted here: valgrind");
        return 0;
    }
    for (int how = 0; how < WHATS; how++) {
        long calls = -1, futexes = -1;
        if (!count((what)how, &calls, &futexes)) {
            puts("nothing can be counted here: no ptrace");
            return 0;
        }
        printf("%d: %ld system calls, %ld of them futex\n", how, calls, futexes);
        if (how == SHARED) {
            /* The caller wakes helpers and waits for them: at most one of each for a helper and itself in a run. */
            CHECK_EQ(calls, futexes);
            CHECK(futexes <= (long)scale(2000) * 6);
        } else if (how == CHEAP_ON_A_POOL) {
            /* A thread that loses its processor twice in a row finds its runs dear, and one of them calls for help: on a
             * busy machine a count may be of that. */
            const long most = (long)scale(1000000) / 10000;
            for (int again = 0; again < 2 && calls > most; again++) CHECK(count((what)how, &calls, &futexes));
            CHECK_EQ(calls, futexes);
            CHECK(calls <= most);
        } else {
            CHECK_EQ(calls, 0);
        }
    }
    puts("ok");
    return 0;
}

#else

int main(void) {
    puts("nothing can be counted here");
    return 0;
}

#endif
