/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a pool costs that is made for one call of the host's, beside one that is kept: in one process, in turn, medians.
 * Built with any C compiler against any libweir (weir_threadpool_close is looked up, so that older ones can be
 * measured):
 *
 *     cc -O2 -Iinclude bench/call_pools.c -o call_pools -L<dir> -lweir -ldl -lpthread && LD_LIBRARY_PATH=<dir> ./call_pools
 *
 * Options: --count prints, for each row, allocations and system calls for each call instead of times.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"
#include "weir/ops.h"
#include "weir/inspect.h"

enum { THREADS = 1, QUEUE = 1024, SIDE = 128, ROUNDS = 201, MARK = SYS_getppid };

static void ok(weir_status status, const char *what) {
    if (status == WEIR_OK) return;
    fprintf(stderr, "%s: %s\n", what, weir_last_error_message());
    exit(1);
}
#define OK(call) ok((call), #call)

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* ---- The host's pool: a queue with a lock, and threads. The context is the call's. ------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        weir_task_fn fn;
        void *arg;
    } queue[QUEUE];
    unsigned head, tail;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *work(void *arg) {
    (void)arg;
    pthread_mutex_lock(&host.lock);
    for (;;) {
        while (host.head == host.tail) pthread_cond_wait(&host.changed, &host.lock);
        weir_task_fn fn = host.queue[host.head % QUEUE].fn;
        void *task = host.queue[host.head++ % QUEUE].arg;
        pthread_mutex_unlock(&host.lock);
        fn(task, 0);
        pthread_mutex_lock(&host.lock);
    }
    return NULL;
}

static int32_t num_threads(void *ctx) {
    (void)ctx;
    return THREADS;
}

static int32_t schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)ctx, (void)hint;
    pthread_mutex_lock(&host.lock);
    bool room = host.tail - host.head < QUEUE;
    if (room) {
        host.queue[host.tail % QUEUE].fn = fn;
        host.queue[host.tail++ % QUEUE].arg = arg;
        pthread_cond_signal(&host.changed);
    }
    pthread_mutex_unlock(&host.lock);
    return room ? 0 : 1;
}

static weir_status (*close_pool)(weir_threadpool *, uint64_t);

static weir_threadpool *make_pool(void *ctx) {
    const weir_threadpool_vtable vtable = {.struct_size = sizeof vtable, .num_threads = num_threads, .schedule = schedule};
    weir_threadpool *pool = NULL;
    OK(weir_threadpool_create(&vtable, ctx, &pool));
    return pool;
}

static void end_pool(weir_threadpool *pool) {
    if (close_pool != NULL) OK(close_pool(pool, WEIR_TIMEOUT_INFINITE));
    weir_threadpool_release(pool);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

static weir_threadpool *kept;
static weir_program *program;
static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];

static int32_t nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

static void make_and_end(void) {
    int context;
    end_pool(make_pool(&context));
}

static void run_kept(void) {
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = kept};
    OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
}

static void run_fresh(void) {
    int context;
    weir_threadpool *pool = make_pool(&context);
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
    end_pool(pool);
}

static void multiply(weir_threadpool *pool) {
    OK(weir_sgemm(0, 0, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE, pool));
}

static void gemm_kept(void) {
    multiply(kept);
}

static void gemm_fresh(void) {
    int context;
    weir_threadpool *pool = make_pool(&context);
    multiply(pool);
    end_pool(pool);
}

static void nobody(void) {}

static const struct {
    const char *name;
    void (*kept)(void), (*fresh)(void);
    int calls; /* in one sample */
} rows[] = {
    {"create, close, release", nobody, make_and_end, 100},
    {"run of one node", run_kept, run_fresh, 100},
    {"sgemm 128 x 128 x 128", gemm_kept, gemm_fresh, 4},
};
enum { ROWS = sizeof rows / sizeof *rows };

static int by_size(const void *x, const void *y) {
    double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

static double sample(void (*call)(void), int calls) {
    double begin = now_us();
    for (int i = 0; i < calls; i++) call();
    return (now_us() - begin) / calls;
}

static void time_rows(void) {
    printf("%-24s %10s %10s %12s   us, medians of %d\n", "", "kept", "fresh", "difference", ROUNDS);
    for (int row = 0; row < ROWS; row++) {
        static double with[ROUNDS], without[ROUNDS], more[ROUNDS];
        for (int i = -20; i < ROUNDS; i++) {
            double k = sample(rows[row].kept, rows[row].calls), f = sample(rows[row].fresh, rows[row].calls);
            if (i >= 0) without[i] = k, with[i] = f, more[i] = f - k;
        }
        qsort(with, ROUNDS, sizeof *with, by_size);
        qsort(without, ROUNDS, sizeof *without, by_size);
        qsort(more, ROUNDS, sizeof *more, by_size);
        printf("%-24s %10.3f %10.3f %12.3f\n", rows[row].name, without[ROUNDS / 2], with[ROUNDS / 2], more[ROUNDS / 2]);
        fflush(stdout);
    }
}

/* ---- Counts: a child calls between two marks, and its parent counts what its thread asks of the kernel. ---------- */

enum { COUNTED = 1000 };

static uint64_t allocations(void) {
    weir_runtime_info info = {.struct_size = sizeof info};
    OK(weir_runtime_get_info(&info));
    return info.allocations;
}

static void prepare(void);

static void count_row(int row, int out) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
    raise(SIGSTOP);
    prepare();
    for (int i = 0; i < COUNTED; i++) rows[row].fresh();
    uint64_t before = allocations();
    (void)syscall(MARK);
    for (int i = 0; i < COUNTED; i++) rows[row].fresh();
    (void)syscall(MARK);
    before = allocations() - before;
    if (write(out, &before, sizeof before) != sizeof before) _exit(1);
    _exit(0);
}

static void count_rows(void) {
    printf("%-24s %12s %14s   for each call with a fresh pool; waking a thread is one\n", "", "allocations", "system calls");
    for (int row = 0; row < ROWS; row++) {
        int ends[2], status = 0, marks = 0;
        long calls = 0;
        bool entering = true;
        uint64_t made = 0;
        if (pipe(ends) != 0) exit(1);
        pid_t child = fork();
        if (child == 0) count_row(row, ends[1]);
        waitpid(child, &status, 0);
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD);
        for (;;) {
            ptrace(PTRACE_SYSCALL, child, NULL, NULL);
            waitpid(child, &status, 0);
            if (!WIFSTOPPED(status)) break;
            if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
            if (entering) {
                struct __ptrace_syscall_info info;
                ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info);
                marks += info.entry.nr == MARK;
                calls += marks == 1 && info.entry.nr != MARK;
            }
            entering = !entering;
        }
        if (read(ends[0], &made, sizeof made) != sizeof made) exit(1);
        printf("%-24s %12.2f %14.2f\n", rows[row].name, (double)made / COUNTED, (double)calls / COUNTED);
        fflush(stdout);
    }
}

static void prepare(void) {
    weir_engine *engine = NULL;
    weir_graph *graph = NULL;
    weir_node node;
    pthread_t thread;
    static int context;
    *(void **)&close_pool = dlsym(RTLD_DEFAULT, "weir_threadpool_close");
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread, NULL, work, NULL) != 0) exit(1);
    }
    for (int i = 0; i < SIDE * SIDE; i++) a[i] = (float)(i % 7), b[i] = (float)(i % 5);
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    OK(weir_graph_create("one", &graph));
    OK(weir_graph_add_task(graph, "node", nothing, NULL, NULL, 0, &node));
    OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    kept = make_pool(&context);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--count") == 0) {
        count_rows();
        return 0;
    }
    prepare();
    time_rows();
    return 0;
}
