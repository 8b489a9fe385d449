/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * weir on OpenMP's threads: with the team asked for, with fewer threads than that, inside of the host's own parallel
 * regions, and with nested regions on.
 */

#include "weir/adapters/openmp.h"

#include "exercise.h"
#include "make.h"

static weir_threadpool *create(int32_t num_threads) {
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_openmp_threadpool_create(num_threads, &pool));
    return pool;
}

static void test_widths(void) {
    static const int32_t teams[] = {1, 2, 5};
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        int32_t width = 0;
        weir_threadpool *pool = create(teams[i]);
        CHECK_OK(weir_threadpool_get_num_threads(pool, &width));
        CHECK_EQ(width, teams[i] > 1 ? teams[i] - 1 : 1);
        exercise_pool(pool, 1);
    }
    exercise_pool(create(0), 1);
}

static void check_vtable(int32_t num_threads, uint64_t flags) {
    void *ctx = NULL;
    const weir_threadpool_vtable vtable = weir_openmp_vtable(num_threads, &ctx);
    CHECK(ctx != NULL);
    CHECK_EQ(vtable.flags, flags);
    exercise_vtable(&vtable, ctx);
}

/* The runtime gives what it wants to give. */
static void test_fewer_threads(void) {
    omp_set_dynamic(1);
    check_vtable(9, 0);
    omp_set_dynamic(0);
}

static int32_t count_items(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    atomic_fetch_add((atomic_llong *)arg, end - begin);
    return WEIR_OK;
}

/* Each thread of the host's team calls weir: it works alone, and says where it is. */
static void test_inside_of_a_team(void) {
    weir_threadpool *pool = create(4);
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 100000};
    atomic_llong items;
    atomic_int inside;
    atomic_init(&items, 0);
    atomic_init(&inside, 0);
#pragma omp parallel num_threads(3)
    {
        int32_t here = 0;
        CHECK_OK(weir_threadpool_in_parallel(pool, &here));
        atomic_fetch_add(&inside, here == omp_in_parallel());
        CHECK_OK(weir_parallel_for(pool, 1000, &hint, count_items, &items));
#pragma omp barrier
#pragma omp single
        CHECK_EQ(atomic_load(&items), 1000 * omp_get_num_threads());
#pragma omp single
        CHECK_EQ(atomic_load(&inside), omp_get_num_threads());
    }
    weir_threadpool_release(pool);
}

static void test_nesting(void) {
    const int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(3);
    check_vtable(3, WEIR_THREADPOOL_NESTED);
    omp_set_max_active_levels(levels);
}

int main(void) {
    omp_set_max_active_levels(1);
    test_widths();
    check_vtable(3, 0);
    test_fewer_threads();
    test_inside_of_a_team();
    test_nesting();
    return 0;
}
