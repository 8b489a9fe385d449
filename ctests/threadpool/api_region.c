/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Regions: several dimensions, the epilogue, bodies of uneven cost, and what a pool's threads cost.
 */

#include <stdatomic.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { POINTS = 4096, SLOTS = 64 };

typedef struct field {
    int32_t rank;
    int64_t extents[WEIR_MAX_RANK];
    int64_t tile[WEIR_MAX_RANK];
    atomic_int points[POINTS];
    atomic_int boxes;
    atomic_int running;
    atomic_int held[SLOTS];
    atomic_int epilogues;
    weir_status fail_with;
} field;

static field f;

static void reset(int32_t rank, const int64_t *extents, const int64_t *tile) {
    f.rank = rank;
    f.fail_with = WEIR_OK;
    for (int32_t d = 0; d < rank; d++) {
        f.extents[d] = extents[d];
        f.tile[d] = tile != NULL ? tile[d] : 0;
    }
    for (int i = 0; i < POINTS; i++) atomic_store(&f.points[i], 0);
    atomic_store(&f.boxes, 0);
    atomic_store(&f.epilogues, 0);
}

static int32_t count_box(void *arg, const int64_t *begin, const int64_t *end, int32_t slot) {
    field *in = arg;
    CHECK(slot >= 0 && slot < SLOTS && atomic_exchange(&in->held[slot], 1) == 0);
    atomic_fetch_add(&in->running, 1);
    atomic_fetch_add(&in->boxes, 1);
    int64_t at[WEIR_MAX_RANK];
    int64_t volume = 1;
    for (int32_t d = 0; d < in->rank; d++) {
        CHECK(0 <= begin[d] && begin[d] < end[d] && end[d] <= in->extents[d]);
        if (in->tile[d] != 0) {
            CHECK(begin[d] % in->tile[d] == 0 && (end[d] % in->tile[d] == 0 || end[d] == in->extents[d]));
        }
        at[d] = begin[d];
        volume *= end[d] - begin[d];
    }
    for (int64_t i = 0; i < volume; i++) {
        int64_t index = 0;
        for (int32_t d = 0; d < in->rank; d++) index = index * in->extents[d] + at[d];
        atomic_fetch_add(&in->points[index], 1);
        for (int32_t d = in->rank - 1; d >= 0 && ++at[d] == end[d]; d--) at[d] = begin[d];
    }
    atomic_store(&in->held[slot], 0);
    atomic_fetch_sub(&in->running, 1);
    return in->fail_with;
}

/* Comes when all pieces have returned, and sees what they did. */
static int32_t count_epilogue(void *arg) {
    field *in = arg;
    CHECK_EQ(atomic_load(&in->running), 0);
    int64_t volume = 1;
    for (int32_t d = 0; d < in->rank; d++) volume *= in->extents[d];
    for (int64_t i = 0; i < volume; i++) CHECK_EQ(atomic_load(&in->points[i]), 1);
    atomic_fetch_add(&in->epilogues, 1);
    return WEIR_OK;
}

static const double COSTS[] = {0, 0.5, 100, 100000};

static void boxes_cover_each_point_once(weir_threadpool *pool) {
    static const int64_t extents[][4] = {{4096, 0, 0, 0}, {7, 9, 0, 0}, {1, 1, 1, 1}, {5, 6, 7, 8}, {64, 64, 0, 0}, {3, 0, 5, 0}};
    static const int32_t ranks[] = {1, 2, 4, 4, 2, 3};
    static const int64_t tiles[][4] = {{100, 0, 0, 0}, {2, 4, 0, 0}, {3, 3, 3, 3}, {1, 2, 0, 3}, {0, 0, 0, 0}, {1, 1, 1, 0}};
    for (size_t shape = 0; shape < sizeof ranks / sizeof *ranks; shape++) {
        for (size_t c = 0; c < sizeof COSTS / sizeof *COSTS; c++) {
            weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = COSTS[c], .epilogue = count_epilogue};
            reset(ranks[shape], extents[shape], tiles[shape]);
            CHECK_OK(weir_parallel_nd(pool, ranks[shape], extents[shape], tiles[shape], &hint, count_box, &f));
            CHECK_EQ(atomic_load(&f.epilogues), 1);
        }
    }
}

static int32_t fail_epilogue(void *arg) {
    atomic_fetch_add(&((field *)arg)->epilogues, 1);
    return WEIR_DATA_LOSS;
}

static void no_epilogue_after_a_failure(weir_threadpool *pool) {
    const int64_t extents[2] = {16, 16};
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 10000, .epilogue = count_epilogue};
    reset(2, extents, NULL);
    f.fail_with = WEIR_ABORTED;
    CHECK_CODE(weir_parallel_nd(pool, 2, extents, NULL, &hint, count_box, &f), WEIR_ABORTED, "box function");
    CHECK_EQ(atomic_load(&f.epilogues), 0);
    CHECK(atomic_load(&f.boxes) >= 1);

    reset(2, extents, NULL);
    hint.epilogue = fail_epilogue;
    CHECK_CODE(weir_parallel_nd(pool, 2, extents, NULL, &hint, count_box, &f), WEIR_DATA_LOSS, "epilogue");
    CHECK_EQ(atomic_load(&f.epilogues), 1);
}

/* A kernel's own region in two dimensions, in a graph of one node. */
static int32_t fill_boxes(void *user, weir_kernel_context *context) {
    (void)user;
    const int64_t extents[2] = {32, 32};
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000, .epilogue = count_epilogue};
    return weir_kernel_context_parallel_nd(context, 2, extents, NULL, &hint, count_box, &f);
}

static void a_kernel_has_them_too(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "fill", .compute = fill_boxes};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    const int64_t extents[2] = {32, 32};
    reset(2, extents, NULL);
    CHECK_OK(weir_enqueue(stream, kernel, NULL, 0, NULL, 0));
    CHECK_EQ(atomic_load(&f.epilogues), 1);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

static weir_threadpool_costs costs_of(const weir_threadpool *pool) {
    weir_threadpool_costs costs = {.struct_size = sizeof costs};
    CHECK_OK(weir_threadpool_get_costs(pool, &costs));
    CHECK(costs.submit_ns >= 0 && costs.arrive_ns >= 0 && costs.join_ns >= 0);
    return costs;
}

static void costs_are_measured(weir_threadpool *pool, int changes) {
    const weir_threadpool_costs assumed = costs_of(pool);
    CHECK_OK(weir_threadpool_measure(pool));
    /* On a busy machine the threads may not come in time, and the figures stay. */
    if (changes == 1) EVENTUALLY(CHECK_OK(weir_threadpool_measure(pool)), costs_of(pool).arrive_ns != assumed.arrive_ns);
    if (changes == 0) CHECK(costs_of(pool).arrive_ns == assumed.arrive_ns);
}

/* What the host says is taken for a fact, and nothing is measured. */
static void costs_may_be_given(void) {
    weir_threadpool *unused = NULL;
    test_pool *host = test_pool_create_exact(POOL_FIFO, 2, &unused);
    weir_threadpool_vtable vtable = test_pool_vtable(host);
    vtable.release = NULL;
    weir_threadpool_costs costs = {.struct_size = sizeof costs, .submit_ns = 1, .arrive_ns = 1e9, .join_ns = 3};
    weir_threadpool_attr *attr = NULL;
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK_OK(weir_threadpool_attr_set_costs(attr, &costs));
    CHECK_OK(weir_threadpool_create_with_attr(&vtable, host, attr, &pool));
    weir_threadpool_attr_destroy(attr);
    CHECK(costs_of(pool).submit_ns == 1 && costs_of(pool).arrive_ns == 1e9 && costs_of(pool).join_ns == 3);
    const int64_t extents[2] = {64, 64};
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000};
    for (int i = 0; i < 10; i++) {
        reset(2, extents, NULL);
        CHECK_OK(weir_parallel_nd(pool, 2, extents, NULL, &hint, count_box, &f));
        CHECK_EQ(atomic_load(&f.boxes), 1); /* four milliseconds, and a helper would come after a second */
    }
    CHECK_EQ(test_pool_counters(host).tasks, 0);
    weir_threadpool_release(pool);
    weir_threadpool_release(unused);
    test_pool_destroy(host);
}

int main(void) {
    costs_may_be_given();
    for (int kind = 0; kind < POOL_LATE; kind++) {
        for (int threads = 1; threads <= 3; threads++) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create_exact((pool_kind)kind, threads, &pool);
            /* Whoever refuses everything is not measured, and whoever refuses some may not be. */
            costs_are_measured(pool, kind == POOL_HALF || kind == POOL_SEEDED ? -1 : kind != POOL_REFUSING);
            boxes_cover_each_point_once(pool);
            no_epilogue_after_a_failure(pool);
            a_kernel_has_them_too(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
    boxes_cover_each_point_once(NULL);
    no_epilogue_after_a_failure(NULL);
    weir_threadpool *builtin = NULL;
    CHECK_OK(weir_threadpool_create_builtin(NULL, &builtin));
    costs_are_measured(builtin, -1);
    boxes_cover_each_point_once(builtin);
    weir_threadpool_release(builtin);
    return 0;
}
