/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What weir owes a pool: one function for each clause W1 to W15 of docs/threadpool.md, through the public calls.
 */

#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "spy.h"
#include "test_pools.h"

enum { ITEMS = 600, WIDTH = 3, NODES = 12 };

/* ---- Work that asks for helpers */

typedef struct region {
    weir_threadpool *pool;
    int64_t items[ITEMS]; /* not atomic: each is written by one piece, and read when the region is over */
    atomic_llong inner;
    int nested;
    uint64_t ns; /* how long a piece takes */
} region;

static weir_parallel_hint costly(void) {
    return (weir_parallel_hint){.struct_size = sizeof(weir_parallel_hint), .cost_ns = 100000};
}

static int32_t count_items(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    atomic_fetch_add((atomic_llong *)arg, end - begin);
    return WEIR_OK;
}

static int32_t do_items(void *arg, int64_t begin, int64_t end, int32_t slot) {
    region *r = arg;
    weir_parallel_hint hint = costly();
    (void)slot;
    for (int64_t i = begin; i < end; i++) r->items[i] += i + 1;
    if (r->ns > 0) sleep_ns(r->ns);
    return r->nested ? weir_parallel_for(r->pool, 32, &hint, count_items, &r->inner) : WEIR_OK;
}

static region work;

/* A region whose caller reads what its pieces wrote. */
static void run_region(weir_threadpool *pool, int nested, uint64_t ns) {
    weir_parallel_hint hint = costly();
    memset(work.items, 0, sizeof work.items);
    work.pool = pool;
    work.nested = nested;
    work.ns = ns;
    atomic_store(&work.inner, 0);
    CHECK_OK(weir_parallel_for(pool, ITEMS, &hint, do_items, &work));
    for (int64_t i = 0; i < ITEMS; i++) CHECK_EQ(work.items[i], i + 1);
    CHECK_EQ(atomic_load(&work.inner) % 32, 0);
    if (nested) CHECK(atomic_load(&work.inner) > 0);
}

static int32_t short_task(void *arg) {
    sleep_ns(20000);
    return count_run(arg);
}

/* A program of independent nodes, each worth a helper. */
static weir_program *make_program(weir_engine *engine, atomic_int *runs) {
    weir_graph *graph = make_graph("contract");
    for (int i = 0; i < NODES; i++) {
        char name[16];
        weir_node node;
        snprintf(name, sizeof name, "node %d", i);
        CHECK_OK(weir_graph_add_task(graph, name, short_task, runs, NULL, 1000000, &node));
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

/* Regions, runs and streams of each kind on one pool. */
static void do_everything(weir_threadpool *pool, int with_streams) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, with_streams ? WEIR_STREAM_ASYNCHRONOUS : WEIR_STREAM_DEFAULT, NULL, NULL);
    atomic_int runs = 0;
    weir_program *program = make_program(engine, &runs);
    for (int round = 0; round < scale(20); round++) {
        atomic_store(&runs, 0);
        run_region(pool, 0, 0);
        run_region(pool, 1, 0);
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        CHECK_OK(weir_program_run(program, stream, NULL, 0, NULL, 0, NULL));
        CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(atomic_load(&runs), 2 * NODES + 1);
    }
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* ---- The clauses */

/* No thread is started, but for the lane of an asynchronous stream on a pool that takes no single tasks. */
static void w1_no_threads(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_ASYNCHRONOUS, POOL_FULL, POOL_INLINE, POOL_REFUSING};
    weir_threadpool *pool = NULL;
    weir_runtime_info before = runtime_info();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        test_pool *host = test_pool_create_exact(kinds[k], WIDTH, &pool);
        do_everything(pool, 1);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    do_everything(NULL, 0);
    CHECK_EQ(runtime_info().threads_started, before.threads_started);

    test_pool *host = test_pool_create_exact(POOL_PARALLEL_FOR, WIDTH, &pool);
    do_everything(pool, 0);
    CHECK_EQ(runtime_info().threads_started, before.threads_started);
    do_everything(pool, 1);
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 1);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

/* One thread, the newest first, inline, refusing: all is done. With tasks that never come, regions and runs are. */
static void w2_no_waiting_among_tasks(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact((pool_kind)kind, 1, &pool);
        weir_engine *engine = make_engine(pool);
        atomic_int runs = 0;
        weir_program *program = make_program(engine, &runs);
        for (int round = 0; round < scale(40); round++) {
            run_region(pool, round % 2, 0);
            CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        }
        CHECK_EQ(atomic_load(&runs), scale(40) * NODES);
        if (kind == POOL_LATE) CHECK_EQ(test_pool_counters(host).tasks, 0);
        test_pool_let_go(host);
        weir_program_release(program);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

static int32_t fail_region(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)begin, (void)end, (void)slot;
    atomic_fetch_add((atomic_int *)arg, 1);
    return WEIR_DATA_LOSS;
}

/* Whatever fails inside of a task, the task itself returns: as many end as have begun. */
static void w3_tasks_return(void) {
    spy s;
    test_pool *host = spy_create(&s, POOL_FIFO, WIDTH);
    weir_engine *engine = make_engine(s.handle);
    weir_parallel_hint hint = costly();
    atomic_int pieces = 0;
    for (int round = 0; round < scale(50); round++) {
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        CHECK_OK(weir_enqueue_task(stream, fail_with_data_loss, NULL, NULL));
        CHECK_CODE(weir_parallel_for(s.handle, 64, &hint, fail_region, &pieces), WEIR_DATA_LOSS, "range function");
        CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "stream");
        weir_stream_release(stream);
    }
    EVENTUALLY(atomic_load(&s.out) == 0);
    CHECK(atomic_load(&s.begun) > 0);
    CHECK_EQ(atomic_load(&s.begun), atomic_load(&s.ended));
    weir_engine_release(engine);
    weir_threadpool_release(s.handle);
    spy_destroy(&s, host);
}

/* A host may call weir from inside schedule: no lock is held. And handing over allocates nothing. */
static void w4_no_locks_and_no_allocations(void) {
    spy s;
    test_pool *host = spy_create(&s, POOL_FIFO, WIDTH);
    atomic_store(&s.calls_back, 1);
    do_everything(s.handle, 1);
    atomic_store(&s.calls_back, 0);
    for (int round = 0; round < 20; round++) run_region(s.handle, round % 2, 0);
    EVENTUALLY(atomic_load(&s.out) == 0);
    int offered = atomic_load(&s.offered);
    uint64_t before = runtime_info().allocations;
    for (int round = 0; round < scale(200); round++) run_region(s.handle, round % 2, 0);
    CHECK_EQ(runtime_info().allocations, before);
    CHECK(atomic_load(&s.offered) > offered);
    weir_threadpool_release(s.handle);
    spy_destroy(&s, host);
}

static int32_t release_pool(void *arg) {
    weir_threadpool_release(arg);
    return WEIR_OK;
}

/* Once, after the last task, not in a task of the pool; not at all if there is no pool. */
static void w5_release(void) {
    spy s;
    for (int kind = 0; kind < POOL_KINDS; kind++) { /* the last reference goes after work, and with tasks queued */
        test_pool *host = spy_create(&s, (pool_kind)kind, WIDTH);
        run_region(s.handle, 1, 0);
        weir_threadpool_release(s.handle);
        if (kind == POOL_LATE) CHECK_EQ(atomic_load(&s.releases), 0);
        test_pool_let_go(host);
        spy_destroy(&s, host);
    }

    /* The last reference goes in a task: the next call from elsewhere brings the release. */
    test_pool *host = spy_create(&s, POOL_FIFO, 1);
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, s.handle, NULL);
    gate held = {.result = WEIR_OK};
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    CHECK_OK(weir_enqueue_task(stream, release_pool, s.handle, NULL));
    weir_stream_release(stream);
    CHECK_EQ(atomic_load(&s.releases), 0);
    open_gate(&held);
    EVENTUALLY(atomic_load(&s.ended) > 0 && atomic_load(&s.out) == 0);
    EVENTUALLY(weir_threadpool_release(NULL), atomic_load(&s.releases) == 1);
    weir_engine_release(engine);
    spy_destroy(&s, host);

    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable, .release = s.host.release};
    weir_threadpool *none = NULL;
    CHECK_CODE(weir_threadpool_create(&vtable, NULL, &none), WEIR_INVALID_ARGUMENT, "num_threads"); /* NULL would crash */
}

/* What the caller wrote before is seen by the pieces, and what they wrote by the caller, without atomics of theirs. */
static int32_t add_from_before(void *arg, int64_t begin, int64_t end, int32_t slot) {
    int64_t(*cells)[2] = arg;
    (void)slot;
    for (int64_t i = begin; i < end; i++) cells[i][1] = 2 * cells[i][0];
    return WEIR_OK;
}

static void w6_memory_order(void) {
    static int64_t cells[ITEMS][2];
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact((pool_kind)kind, WIDTH, &pool);
        weir_parallel_hint hint = costly();
        for (int64_t round = 0; round < scale(200); round++) {
            for (int64_t i = 0; i < ITEMS; i++) cells[i][0] = round + i;
            CHECK_OK(weir_parallel_for(pool, ITEMS, &hint, add_from_before, cells));
            for (int64_t i = 0; i < ITEMS; i++) CHECK_EQ(cells[i][1], 2 * (round + i));
        }
        test_pool_let_go(host);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

/* Never more helpers out than threads, also with regions inside regions and late tasks; one look at the width each. */
static void w7_budget(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_ASYNCHRONOUS, POOL_LATE};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        spy s;
        test_pool *host = spy_create(&s, kinds[k], WIDTH);
        for (int round = 0; round < scale(100); round++) {
            /* Tasks that are held count exactly, so regions may lie inside of regions. Else one that is on its way out
             * is not weir's any more and still seen here, so each region finds none. */
            if (kinds[k] != POOL_LATE) EVENTUALLY(atomic_load(&s.out) == 0);
            run_region(s.handle, kinds[k] == POOL_LATE && round % 2 == 1, 20000);
        }
        CHECK(atomic_load(&s.most_out) >= 1 && atomic_load(&s.most_out) <= WIDTH);
        if (kinds[k] == POOL_LATE) CHECK_EQ(atomic_load(&s.offered), WIDTH); /* as many wait as it has threads */
        if (kinds[k] != POOL_LATE) EVENTUALLY(atomic_load(&s.out) == 0);
        int asked = atomic_load(&s.width_asked);
        run_region(s.handle, 0, 0);
        CHECK(atomic_load(&s.width_asked) <= asked + 1);
        test_pool_let_go(host);
        weir_threadpool_release(s.handle);
        spy_destroy(&s, host);
    }
}

/* 1 <= n <= num_threads + 1. */
static void w8_bulk(void) {
    static const pool_kind kinds[] = {POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int width = 1; width <= 5; width += 2) {
            spy s;
            test_pool *host = spy_create(&s, kinds[k], width);
            do_everything(s.handle, kinds[k] == POOL_ASYNCHRONOUS);
            weir_parallel_hint hint = costly();
            atomic_llong count = 0;
            for (int64_t n = 0; n < 12; n++) CHECK_OK(weir_parallel_for(s.handle, n, &hint, count_items, &count));
            CHECK(atomic_load(&s.offered) > 0);
            CHECK(atomic_load(&s.least_n) >= 1 && atomic_load(&s.most_n) <= width + 1);
            weir_threadpool_release(s.handle);
            spy_destroy(&s, host);
        }
    }
}

typedef struct slots {
    atomic_int held[WIDTH + 1];
    atomic_int most;
} slots;

static int32_t hold_slot(void *arg, int64_t begin, int64_t end, int32_t slot) {
    slots *s = arg;
    (void)begin, (void)end;
    CHECK(slot >= 0 && slot <= WIDTH);
    CHECK_EQ(atomic_exchange(&s->held[slot], 1), 0);
    sleep_ns(20000);
    atomic_store(&s->held[slot], 0);
    return WEIR_OK;
}

/* No two pieces that run at once have one slot, and slots are below the width and the caller. */
static void w9_slots(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact((pool_kind)kind, WIDTH, &pool);
        weir_parallel_hint hint = costly();
        slots s;
        memset(&s, 0, sizeof s);
        hint.grain = 1;
        for (int round = 0; round < scale(40); round++) CHECK_OK(weir_parallel_for(pool, 40, &hint, hold_slot, &s));
        test_pool_let_go(host);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

static int32_t region_inside(void *arg) {
    run_region(arg, 1, 0);
    return WEIR_OK;
}

/* Regions inside of regions and of tasks end on every pool; a parallel_for that waits is not called in a task unless
 * the pool is NESTED. */
static void w10_nesting(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        spy s;
        test_pool *host = spy_create(&s, (pool_kind)kind, WIDTH);
        weir_engine *engine = make_engine(s.handle);
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        for (int round = 0; round < scale(20); round++) run_region(s.handle, 1, 0);
        test_pool_let_go(host);
        for (int round = 0; round < scale(20); round++) {
            CHECK_OK(weir_enqueue_task(stream, region_inside, s.handle, NULL));
            CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        }
        if (kind == POOL_PARALLEL_FOR) CHECK_EQ(atomic_load(&s.bulk_inside), 0);
        weir_stream_release(stream);
        weir_engine_release(engine);
        weir_threadpool_release(s.handle);
        spy_destroy(&s, host);
    }
}

typedef struct waiter {
    weir_stream *other;
    atomic_int *ran;
    atomic_int status;
} waiter;

static int32_t wait_inside(void *arg) {
    waiter *w = arg;
    weir_status status = weir_stream_synchronize(w->other, WEIR_TIMEOUT_INFINITE);
    if (status == WEIR_OK) CHECK(atomic_load(w->ran) > 0);
    atomic_store(&w->status, status);
    return WEIR_OK;
}

/* A wait in a task does the work or is refused; on a pool of one thread too. */
static void w11_waits(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact((pool_kind)kind, 1, &pool);
        weir_engine *engine = make_engine(pool);
        test_pool_let_go(host);
        for (int round = 0; round < scale(40); round++) {
            weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waiting");
            weir_stream *other = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waited for");
            atomic_int ran = 0;
            waiter w = {.other = other, .ran = &ran, .status = -1};
            CHECK_OK(weir_enqueue_task(other, count_run, &ran, NULL));
            CHECK_OK(weir_enqueue_task(stream, wait_inside, &w, NULL));
            CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
            CHECK_OK(weir_stream_synchronize(other, WEIR_TIMEOUT_INFINITE));
            CHECK(atomic_load(&w.status) == WEIR_OK || atomic_load(&w.status) == WEIR_FAILED_PRECONDITION);
            CHECK_EQ(atomic_load(&ran), 1);
            weir_stream_release(other);
            weir_stream_release(stream);
        }
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

typedef struct failure {
    atomic_int begun, running;
} failure;

static int32_t fail_first(void *arg, int64_t begin, int64_t end, int32_t slot) {
    failure *f = arg;
    (void)begin, (void)end, (void)slot;
    int first = atomic_fetch_add(&f->begun, 1) == 0;
    atomic_fetch_add(&f->running, 1);
    sleep_ns(first ? 0 : 200000); /* the first one to fail is the first one to begin */
    atomic_fetch_sub(&f->running, 1);
    return first ? WEIR_DATA_LOSS : WEIR_OK;
}

/* The first failure is returned; pieces that have not begun are skipped, and none runs when the call returns. */
static void w12_errors(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact((pool_kind)kind, WIDTH, &pool);
        weir_parallel_hint hint = costly();
        hint.grain = 1;
        for (int round = 0; round < scale(40); round++) {
            failure f = {0, 0};
            CHECK_CODE(weir_parallel_for(pool, ITEMS, &hint, fail_first, &f), WEIR_DATA_LOSS, "range function");
            CHECK_EQ(atomic_load(&f.running), 0);
            /* When every piece fails, each thread begins one at most. */
            atomic_int begun = 0;
            CHECK_CODE(weir_parallel_for(pool, ITEMS, &hint, fail_region, &begun), WEIR_DATA_LOSS, "range function");
            CHECK(atomic_load(&begun) >= 1 && atomic_load(&begun) <= WIDTH + 1);
            run_region(pool, 0, 0);
        }
        test_pool_let_go(host);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

static uint64_t cpu_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A wait sleeps, and so does a library without work: both cost a small part of the time at most. */
static void w13_idle(void) {
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_threadpool_create_builtin(NULL, &pool));
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    run_region(pool, 1, 0);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    sleep_ms(50);
    uint64_t before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    sleep_ms(400);
    CHECK(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before < 100000000);

    gate held = {.result = WEIR_OK};
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    CHECK_CODE(weir_stream_synchronize(stream, 400000000), WEIR_DEADLINE_EXCEEDED, "");
    CHECK(cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before < 100000000);
    open_gate(&held);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
}

/* The same product, bit for bit, at every width and on every pool. */
static void multiply(weir_threadpool *pool, float *result, size_t count) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor_desc a_desc = matrix_desc(64, 96), b_desc = matrix_desc(96, 80), c_desc = matrix_desc(64, 80);
    weir_tensor *a = make_tensor(engine, a_desc), *b = make_tensor(engine, b_desc), *c = make_tensor(engine, c_desc);
    weir_tensor *inputs[] = {a, b};
    weir_kernel *kernel = NULL;
    for (size_t i = 0; i < num_floats(a); i++) floats(a)[i] = 1.0f / (float)(i + 3);
    for (size_t i = 0; i < num_floats(b); i++) floats(b)[i] = 1.0f / (float)(2 * i + 1);
    CHECK_OK(weir_kernel_create_matmul(engine, NULL, NULL, &kernel));
    CHECK_OK(weir_enqueue(stream, kernel, inputs, 2, &c, 1));
    CHECK_EQ(num_floats(c), count);
    memcpy(result, floats(c), count * sizeof *result);
    weir_kernel_release(kernel);
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_tensor_release(c);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

static void w14_hints_change_no_result(void) {
    enum { COUNT = 64 * 80 };
    static float alone[COUNT], shared[COUNT];
    multiply(NULL, alone, COUNT);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int width = 1; width <= 7; width += 3) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create_exact((pool_kind)kind, width, &pool);
            multiply(pool, shared, COUNT);
            CHECK_EQ(memcmp(alone, shared, sizeof alone), 0);
            for (uint64_t cost = 1; cost <= 1000000; cost *= 1000) {
                for (int64_t grain = 1; grain <= ITEMS; grain *= 25) {
                    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = cost, .grain = grain};
                    memset(&work, 0, sizeof work);
                    CHECK_OK(weir_parallel_for(pool, ITEMS, &hint, do_items, &work));
                    for (int64_t i = 0; i < ITEMS; i++) CHECK_EQ(work.items[i], i + 1);
                }
            }
            test_pool_let_go(host);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
}

static int32_t note_place(void *arg) {
    test_pool *const *hosts = ((void **)arg)[0];
    atomic_int *where = ((void **)arg)[1];
    int place = 3; /* the calling thread */
    for (int i = 0; i < 3; i++) {
        if (test_pool_is_here(hosts[i])) place = i;
    }
    atomic_store(where, place);
    return WEIR_OK;
}

/* Call before stream before engine; NULL is the calling thread; no pool is kept from one call to the next. */
static void w15_choice(void) {
    enum { ENGINE, STREAM, CALL };
    weir_threadpool *pools[3];
    test_pool *hosts[3];
    for (int i = 0; i < 3; i++) hosts[i] = test_pool_create_exact(POOL_FIFO, WIDTH, &pools[i]);
    weir_engine *engine = make_engine(pools[ENGINE]), *bare = make_engine(NULL);
    weir_stream *of_engine = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_stream *of_stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, pools[STREAM], NULL);
    weir_stream *of_nobody = make_stream(bare, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_stream *const streams[] = {of_engine, of_stream, of_nobody};
    static const int places[] = {ENGINE, STREAM, 3};
    for (int i = 0; i < 3; i++) {
        atomic_int where = -1;
        void *arg[] = {hosts, &where};
        CHECK_OK(weir_enqueue_task(streams[i], note_place, arg, NULL));
        EVENTUALLY(atomic_load(&where) != -1); /* not by waiting: that could run it here */
        CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(atomic_load(&where), places[i]);
    }

    atomic_int runs = 0;
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pools[CALL]};
    weir_program *program = make_program(engine, &runs);
    int64_t at_engine = test_pool_counters(hosts[ENGINE]).tasks;
    for (int round = 0; round < 20; round++) CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
    CHECK(test_pool_counters(hosts[CALL]).scheduled > 0);
    CHECK_EQ(test_pool_counters(hosts[ENGINE]).tasks, at_engine);
    int64_t of_call = test_pool_counters(hosts[CALL]).scheduled;
    for (int round = 0; round < 20; round++) CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(test_pool_counters(hosts[CALL]).scheduled, of_call);
    CHECK(test_pool_counters(hosts[ENGINE]).scheduled > 0);
    weir_program_release(program);
    weir_stream_release(of_engine);
    weir_stream_release(of_stream);
    weir_stream_release(of_nobody);
    weir_engine_release(engine);
    weir_engine_release(bare);
    for (int i = 0; i < 3; i++) {
        weir_threadpool_release(pools[i]);
        test_pool_destroy(hosts[i]);
    }
}

int main(void) {
    weir_runtime_info before = runtime_info();
    setenv("WEIR_NUM_THREADS", "3", 1);
    w1_no_threads();
    w2_no_waiting_among_tasks();
    w3_tasks_return();
    w4_no_locks_and_no_allocations();
    w5_release();
    w6_memory_order();
    w7_budget();
    w8_bulk();
    w9_slots();
    w10_nesting();
    w11_waits();
    w12_errors();
    w13_idle();
    w14_hints_change_no_result();
    w15_choice();
    check_released(&before);
    return 0;
}
