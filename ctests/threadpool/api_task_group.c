/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Task groups on all kinds of pools: nested and deep, failed and cancelled, reused, inside of runs, released early,
 * with nobody who waits.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <weir/task_group.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static weir_threadpool *pool;

static weir_task_group *make_group(weir_threadpool *of) {
    weir_task_group *group = NULL;
    CHECK_OK(weir_task_group_create(of, &group));
    return group;
}

/* ---- fork and join ---- */

typedef struct call {
    int n;
    long result;
} call;

static int32_t fib_task(void *arg);

static long fib(int n) {
    if (n < 2) return n;
    call one = {n - 1, -1};
    weir_task_group *group = make_group(pool);
    CHECK_OK(weir_task_group_spawn(group, fib_task, &one, NULL));
    const long two = fib(n - 2);
    CHECK_OK(weir_task_group_synchronize(group));
    weir_task_group_release(group);
    CHECK(one.result >= 0);
    return one.result + two;
}

static int32_t fib_task(void *arg) {
    call *c = arg;
    c->result = fib(c->n);
    return WEIR_OK;
}

static void nested(void) {
    CHECK_EQ(fib(10), 55);
    CHECK_EQ(fib(scale(20)), scale(20) == 20 ? 6765 : fib(scale(20)));
}

/* Tasks that spawn into their own group, and nobody but the first one waits. */
typedef struct spread {
    weir_task_group *group;
    atomic_long *count;
    int depth;
} spread;

static int32_t spread_out(void *arg) {
    spread s = *(spread *)arg;
    atomic_fetch_add(s.count, 1);
    if (s.depth-- > 0) {
        for (int i = 0; i < 2; i++) CHECK_OK(weir_task_group_spawn_copy(s.group, spread_out, &s, sizeof s));
    }
    return WEIR_OK;
}

static void into_the_own_group(void) {
    weir_task_group *group = make_group(pool);
    for (int round = 0; round < 3; round++) { /* and again with the same group */
        atomic_long count = 0;
        spread s = {group, &count, 9};
        CHECK_OK(weir_task_group_spawn_copy(group, spread_out, &s, sizeof s));
        CHECK_OK(weir_task_group_synchronize(group));
        CHECK_EQ(count, 1023);
    }
    CHECK_OK(weir_task_group_synchronize(group)); /* nothing */
    weir_task_group_release(group);
}

/* Each task waits for one that waits for one ... */
static int32_t dive(void *arg) {
    const call *c = arg;
    call below = {c->n - 1, 0};
    if (c->n > 0) {
        weir_task_group *group = make_group(pool);
        CHECK_OK(weir_task_group_spawn(group, dive, &below, NULL));
        CHECK_OK(weir_task_group_synchronize(group));
        weir_task_group_release(group);
    }
    ((call *)arg)->result = below.result + 1;
    return WEIR_OK;
}

static void *dive_on_a_large_stack(void *arg) {
    CHECK_OK(dive(arg));
    return NULL;
}

/* Helpers have stacks of eight megabytes. */
static void deep(void) {
    call c = {scale(WITH_ASAN || WITH_TSAN ? 1000 : 5000), 0};
    const int depth = c.n;
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    CHECK_EQ(pthread_attr_setstacksize(&attr, 64 << 20), 0);
    CHECK_EQ(pthread_create(&thread, &attr, dive_on_a_large_stack, &c), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    CHECK_EQ(c.result, depth + 1);
}

/* ---- errors and cancellation ---- */

typedef struct counted {
    weir_task_group *group;
    atomic_int ran, destroyed, begun, go_on;
    weir_status status;
} counted;

static int32_t count_task(void *arg) {
    counted *c = arg;
    atomic_fetch_add(&c->ran, 1);
    return c->status;
}

static void count_end(void *arg) {
    atomic_fetch_add(&((counted *)arg)->destroyed, 1);
}

static int32_t cancel_own(void *arg) {
    counted *c = arg;
    CHECK_OK(weir_task_group_cancel(c->group));
    int32_t stopped = 0;
    CHECK_OK(weir_task_group_is_stopped(c->group, &stopped));
    CHECK_EQ(stopped, 1);
    return WEIR_OK;
}

static void first_error(void) {
    weir_task_group *group = make_group(pool);
    counted failing = {.group = group, .status = WEIR_DATA_LOSS};
    counted good = {.group = group};
    CHECK_OK(weir_task_group_spawn(group, count_task, &failing, count_end));
    CHECK_CODE(weir_task_group_synchronize(group), WEIR_DATA_LOSS, "a task of the group");
    CHECK_EQ(failing.ran + failing.destroyed, 2);
    /* As new. */
    CHECK_OK(weir_task_group_spawn(group, count_task, &good, count_end));
    CHECK_OK(weir_task_group_synchronize(group));
    CHECK_EQ(good.ran + good.destroyed, 2);
    /* What comes behind a failure is skipped, and destroyed. */
    for (int i = 0; i < 100; i++) {
        CHECK_OK(weir_task_group_spawn(group, count_task, i == 50 ? &failing : &good, count_end));
    }
    CHECK_CODE(weir_task_group_synchronize(group), WEIR_DATA_LOSS, "a task of the group");
    CHECK_EQ(failing.destroyed + good.destroyed, 102);
    CHECK(failing.ran == 2 && good.ran <= 100);
    weir_task_group_release(group);
}

static void cancelled(void) {
    weir_task_group *group = make_group(pool);
    counted c = {.group = group};
    /* Before the first task. */
    CHECK_OK(weir_task_group_cancel(group));
    for (int i = 0; i < 10; i++) CHECK_OK(weir_task_group_spawn(group, count_task, &c, count_end));
    CHECK_CODE(weir_task_group_synchronize(group), WEIR_CANCELLED, "cancelled");
    CHECK(c.ran == 0 && c.destroyed == 10);
    CHECK_OK(weir_task_group_synchronize(group));
    /* While there are tasks. */
    for (int i = 0; i < 10; i++) CHECK_OK(weir_task_group_spawn(group, count_task, &c, count_end));
    CHECK_OK(weir_task_group_cancel(group));
    CHECK_CODE(weir_task_group_synchronize(group), WEIR_CANCELLED, "cancelled");
    CHECK_EQ(c.destroyed, 20);
    /* By a task. */
    CHECK_OK(weir_task_group_spawn(group, cancel_own, &c, NULL));
    CHECK_CODE(weir_task_group_synchronize(group), WEIR_CANCELLED, "cancelled");
    /* When it is over. */
    CHECK_OK(weir_task_group_spawn(group, count_task, &c, count_end));
    CHECK_OK(weir_task_group_synchronize(group));
    CHECK_OK(weir_task_group_cancel(group));
    CHECK_CODE(weir_task_group_synchronize(group), WEIR_CANCELLED, "cancelled");
    weir_task_group_release(group);
}

/* A group that was made in a task of a cancelled one. */
static int32_t inner_is_cancelled(void *arg) {
    counted *c = arg;
    weir_task_group *inner = make_group(pool);
    CHECK_OK(weir_task_group_cancel(c->group));
    int32_t stopped = 0;
    CHECK_OK(weir_task_group_is_stopped(inner, &stopped));
    CHECK_EQ(stopped, 1);
    CHECK_OK(weir_task_group_spawn(inner, count_task, c, count_end));
    CHECK_CODE(weir_task_group_synchronize(inner), WEIR_CANCELLED, "cancelled");
    weir_task_group_release(inner);
    return WEIR_OK;
}

static void cancelled_below(void) {
    weir_task_group *group = make_group(pool);
    counted c = {.group = group};
    CHECK_OK(weir_task_group_spawn(group, inner_is_cancelled, &c, NULL));
    CHECK_CODE(weir_task_group_synchronize(group), WEIR_CANCELLED, "cancelled");
    CHECK(c.ran == 0 && c.destroyed == 1);
    weir_task_group_release(group);
}

static int32_t wait_for_own(void *arg) {
    CHECK_CODE(weir_task_group_synchronize(((counted *)arg)->group), WEIR_FAILED_PRECONDITION, "waits for the group");
    weir_task_group *inner = make_group(pool);
    CHECK_OK(weir_task_group_synchronize(inner));
    weir_task_group_release(inner);
    return WEIR_OK;
}

static void a_task_cannot_wait_for_itself(void) {
    weir_task_group *group = make_group(pool);
    counted c = {.group = group};
    CHECK_OK(weir_task_group_spawn(group, wait_for_own, &c, NULL));
    CHECK_OK(weir_task_group_synchronize(group));
    weir_task_group_release(group);
}

/* A wait does its own tasks and no others, wherever they lie. */
static void strangers_are_left_alone(void) {
    weir_task_group *one = make_group(NULL), *two = make_group(NULL);
    counted a = {.group = one}, b = {.group = two};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(weir_task_group_spawn(one, count_task, &a, NULL));
        CHECK_OK(weir_task_group_spawn(two, count_task, &b, NULL));
        if (a.ran + b.ran > 0) break; /* run at once: nothing lies about */
    }
    const int before = b.ran;
    CHECK_OK(weir_task_group_synchronize(one));
    CHECK_EQ(b.ran, before);
    CHECK_OK(weir_task_group_synchronize(two));
    weir_task_group_release(one);
    weir_task_group_release(two);
}

/* ---- nobody waits ---- */

static void count_notice(void *ctx, weir_status status, weir_run *run) {
    counted *c = ctx;
    CHECK(run == NULL);
    c->status = status;
    atomic_fetch_add(&c->go_on, 1);
}

static void notified(test_pool *host) {
    weir_task_group *group = make_group(pool);
    counted c = {.group = group}, told = {.group = group};
    weir_notice notice = {.struct_size = sizeof notice, .notify = count_notice, .ctx = &told, .release = count_end};
    CHECK_OK(weir_task_group_notify(group, &notice)); /* nothing to do: at once */
    CHECK_EQ(told.go_on, 1);
    for (int i = 0; i < 100; i++) CHECK_OK(weir_task_group_spawn(group, count_task, &c, count_end));
    CHECK_OK(weir_task_group_notify(group, &notice));
    if (host != NULL) test_pool_let_go(host);
    EVENTUALLY(told.go_on == 2);
    CHECK(told.status == WEIR_OK && c.ran == 100 && c.destroyed == 100);
    counted failing = {.group = group, .status = WEIR_DATA_LOSS};
    CHECK_OK(weir_task_group_spawn(group, count_task, &failing, NULL));
    CHECK_OK(weir_task_group_notify(group, &notice));
    weir_task_group_release(group); /* the notice holds it */
    EVENTUALLY(told.go_on == 3);
    CHECK_EQ(told.status, WEIR_DATA_LOSS);
    EVENTUALLY(told.destroyed == 3);
}

static int32_t wait_to_go_on(void *arg) {
    counted *c = arg;
    atomic_store(&c->begun, 1);
    EVENTUALLY(atomic_load(&c->go_on));
    atomic_fetch_add(&c->ran, 1);
    return WEIR_OK;
}

static void released_early(void) {
    counted c = {0};
    weir_task_group *group = make_group(pool);
    for (int i = 0; i < 2; i++) CHECK_OK(weir_task_group_spawn(group, count_task, &c, count_end));
    weir_task_group_release(group);
    EVENTUALLY(c.destroyed == 2);
    CHECK(c.ran <= 2);
    weir_task_group_release(NULL);
}

static int32_t leave_a_group(void *arg) {
    counted *c = arg;
    c->group = make_group(pool);
    CHECK_OK(weir_task_group_retain(c->group));
    CHECK_OK(weir_task_group_spawn(c->group, count_task, c, count_end));
    weir_task_group_release(c->group);
    return WEIR_OK;
}

/* A group lives longer than the task that made it. */
static void handed_on(void) {
    weir_task_group *group = make_group(pool);
    counted c = {0};
    CHECK_OK(weir_task_group_spawn(group, leave_a_group, &c, NULL));
    CHECK_OK(weir_task_group_synchronize(group));
    weir_task_group_release(group);
    CHECK_OK(weir_task_group_synchronize(c.group));
    CHECK(c.ran == 1 && c.destroyed == 1);
    weir_task_group_release(c.group);
}

/* ---- many, and no memory ---- */

static int32_t next_to_nothing(void *arg) {
    atomic_fetch_add_explicit(*(atomic_long **)arg, 1, memory_order_relaxed);
    return WEIR_OK;
}

static void many(void) {
    weir_task_group *group = make_group(pool);
    atomic_long count = 0, *at = &count;
    const int n = scale(1000000);
    const uint64_t before = runtime_info().allocations;
    for (int i = 0; i < n; i++) CHECK_OK(weir_task_group_spawn_copy(group, next_to_nothing, &at, sizeof at));
    CHECK_OK(weir_task_group_synchronize(group));
    CHECK_EQ(count, n);
    /* Some for each thread that comes for the first time, and for its pool's queue. */
    CHECK(runtime_info().allocations - before < 100);
    weir_task_group_release(group);
}

static void without_memory(void) {
    weir_task_group *group = make_group(NULL);
    counted c = {0};
    CHECK_OK(weir_task_group_spawn(group, count_task, &c, NULL));
    CHECK_OK(weir_task_group_synchronize(group));
    const uint64_t before = runtime_info().allocations;
    for (int round = 0; round < scale(100); round++) {
        weir_task_group *inner = make_group(NULL);
        for (int i = 0; i < 300; i++) CHECK_OK(weir_task_group_spawn(inner, count_task, &c, NULL));
        CHECK_OK(weir_task_group_synchronize(inner));
        weir_task_group_release(inner);
    }
    CHECK_EQ(runtime_info().allocations, before);
    CHECK_EQ(c.ran, 300 * scale(100) + 1);
    weir_task_group_release(group);
}

/* ---- several threads ---- */

typedef struct shared_group {
    weir_task_group *group;
    atomic_long count;
} shared_group;

static void *spawn_and_wait(void *arg) {
    shared_group *s = arg;
    spread root = {s->group, &s->count, 7};
    for (int i = 0; i < scale(40); i++) {
        CHECK_OK(weir_task_group_spawn_copy(s->group, spread_out, &root, sizeof root));
        if (i % 4 == 0) CHECK_OK(weir_task_group_synchronize(s->group));
    }
    CHECK_OK(weir_task_group_synchronize(s->group));
    return NULL;
}

static void from_many_threads(void) {
    shared_group s = {.group = make_group(pool)};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], NULL, spawn_and_wait, &s), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(s.count, 3L * scale(40) * 255);
    weir_task_group_release(s.group);
}

/* Holds several groups at once, so that all threads need new ones at the same time. */
static void *make_many(void *arg) {
    weir_task_group *groups[40];
    (void)arg;
    for (int round = 0; round < scale(20); round++) {
        for (int i = 0; i < 40; i++) groups[i] = make_group(pool);
        for (int i = 0; i < 40; i++) weir_task_group_release(groups[i]);
    }
    return NULL;
}

static void there_are_enough(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_create(&threads[i], NULL, make_many, NULL), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

/* ---- kernels inside of a run ---- */

static int32_t spawn_in_kernel(void *user, weir_kernel_context *context) {
    weir_task_group *group = NULL;
    CHECK_OK(weir_kernel_context_create_task_group(context, &group));
    spread s = {group, user, 6};
    CHECK_OK(weir_task_group_spawn_copy(group, spread_out, &s, sizeof s));
    CHECK_OK(weir_task_group_synchronize(group));
    weir_task_group_release(group);
    return WEIR_OK;
}

static int32_t fib_in_node(void *arg) {
    atomic_fetch_add((atomic_long *)arg, fib(9) - 34 + 1);
    return WEIR_OK;
}

static void inside_of_a_run(void) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    atomic_long count = 0, nodes = 0;
    weir_host_kernel_desc desc = make_kernel_desc("spawn", spawn_in_kernel, &count);
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_enqueue(stream, kernel, NULL, 0, NULL, 0));
    CHECK_EQ(count, 127);
    weir_graph *graph = make_graph("tasks");
    for (char name[] = "fib 0"; name[4] < '8'; name[4]++) {
        CHECK_OK(weir_graph_add_task(graph, name, fib_in_node, &nodes, NULL, 50000, NULL));
    }
    weir_program *program = compile(graph, engine);
    for (int i = 0; i < 20; i++) CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(nodes, 160);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

static void all_of_it(test_pool *host) {
    nested();
    into_the_own_group();
    first_error();
    cancelled();
    cancelled_below();
    a_task_cannot_wait_for_itself();
    strangers_are_left_alone();
    released_early();
    handed_on();
    from_many_threads();
    there_are_enough();
    inside_of_a_run();
    many();
    notified(host);
}

/* A pool with threads helps: two tasks that meet. They are long, so that they are worth it. */
static int32_t meet(void *arg) {
    atomic_int *here = arg;
    atomic_fetch_add(here, 1);
    EVENTUALLY(atomic_load(here) == 2);
    sleep_ms(1);
    return WEIR_OK;
}

static void helpers_come(void) {
    weir_task_group *group = make_group(pool);
    for (int i = 0; i < 20; i++) {
        atomic_int here = 0;
        CHECK_OK(weir_task_group_spawn(group, meet, &here, NULL));
        CHECK_OK(meet(&here));
        CHECK_OK(weir_task_group_synchronize(group));
    }
    weir_task_group_release(group);
}

/* What a released group's running task leaves. */
static void released_while_it_runs(void) {
    weir_task_group *group = make_group(pool);
    counted c = {.group = group};
    CHECK_OK(weir_task_group_spawn(group, wait_to_go_on, &c, count_end));
    EVENTUALLY(atomic_load(&c.begun));
    weir_task_group_release(group);
    atomic_store(&c.go_on, 1);
    EVENTUALLY(atomic_load(&c.destroyed) == 1);
    CHECK_EQ(c.ran, 1);
}

/* On a pool that keeps its work to itself another thread sleeps. */
static pthread_t waiter;

static int32_t not_on_the_waiter(void *arg) {
    CHECK(!pthread_equal(pthread_self(), waiter));
    return count_task(arg);
}

static void only_own_threads(void) {
    weir_threadpool *unused = NULL;
    test_pool *host = test_pool_create_exact(POOL_FULL, 2, &unused);
    weir_threadpool_vtable vtable = test_pool_vtable(host);
    vtable.release = NULL;
    vtable.flags |= WEIR_THREADPOOL_OWN_THREADS_ONLY;
    CHECK_OK(weir_threadpool_create(&vtable, host, NULL, &pool));
    waiter = pthread_self();
    weir_task_group *group = make_group(pool);
    counted c = {.group = group};
    for (int i = 0; i < 600; i++) CHECK_OK(weir_task_group_spawn(group, not_on_the_waiter, &c, count_end));
    CHECK_OK(weir_task_group_synchronize(group));
    CHECK(c.ran == 600 && c.destroyed == 600);
    weir_task_group_release(group);
    weir_threadpool_release(pool);
    weir_threadpool_release(unused);
    test_pool_destroy(host);
}

/* A closed pool's groups are done by who waits. */
static void on_a_closed_pool(void) {
    test_pool *host = test_pool_create_exact(POOL_FIFO, 2, &pool);
    weir_task_group *group = make_group(pool), *refused = NULL;
    counted c = {.group = group};
    CHECK_OK(weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE));
    CHECK_CODE(weir_task_group_create(pool, &refused), WEIR_FAILED_PRECONDITION, "closed");
    for (int i = 0; i < 10; i++) CHECK_OK(weir_task_group_spawn(group, count_task, &c, NULL));
    CHECK_OK(weir_task_group_synchronize(group));
    CHECK_EQ(c.ran, 10);
    weir_threadpool_release(pool);
    weir_task_group_release(group); /* which holds the pool */
    test_pool_destroy(host);
}

int main(void) {
    const weir_runtime_info before = runtime_info();
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            test_pool *host = test_pool_create_exact((pool_kind)kind, threads, &pool);
            all_of_it(host);
            if (threads == 3) deep();
            if (kind == POOL_FIFO || kind == POOL_FULL) helpers_come(), released_while_it_runs();
            if (kind == POOL_LATE) test_pool_let_go(host);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
    pool = NULL;
    all_of_it(NULL);
    without_memory();
    only_own_threads();
    on_a_closed_pool();
    check_released(&before);
    return 0;
}
