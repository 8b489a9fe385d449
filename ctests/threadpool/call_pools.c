/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Pools that belong to a call: what one of them shows is known of the next, they take no memory after the first, and
 * each has a context, a number and an end of its own.
 */

#include "interpose.h"

#include <stdbool.h>
#include <weir/inspect.h>

enum { WIDTH = 3, POOLS = 100, CROWD = 40 };

typedef struct context {
    atomic_int asked, released;
} context;

static int32_t num_threads(void *ctx) {
    atomic_fetch_add(&((context *)ctx)->asked, 1);
    return WIDTH;
}

static int32_t one_more_thread(void *ctx) {
    (void)ctx;
    return WIDTH + 1;
}

static int32_t parallel_for(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    atomic_fetch_add(&((context *)ctx)->asked, 1);
    for (int32_t i = 0; i < n; i++) task(arg, i);
    return 0;
}

static int32_t refuse(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    (void)ctx, (void)n, (void)task, (void)arg;
    return 1;
}

static void release(void *ctx) {
    CHECK_EQ(atomic_fetch_add(&((context *)ctx)->released, 1), 0);
}

static weir_threadpool_vtable make_vtable(void) {
    return (weir_threadpool_vtable){
        .struct_size = sizeof(weir_threadpool_vtable),
        .num_threads = num_threads,
        .parallel_for = parallel_for,
        .release = release,
    };
}

static weir_threadpool *make_pool(const weir_threadpool_vtable *vtable, void *ctx) {
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_threadpool_create(vtable, ctx, &pool));
    return pool;
}

static weir_threadpool_costs costs_of(weir_threadpool *pool) {
    weir_threadpool_costs costs = {.struct_size = sizeof costs};
    CHECK_OK(weir_threadpool_get_costs(pool, &costs));
    return costs;
}

static bool same(weir_threadpool_costs a, weir_threadpool_costs b) {
    return a.submit_ns == b.submit_ns && a.arrive_ns == b.arrive_ns && a.join_ns == b.join_ns;
}

/* What is measured on one pool holds for those with the same functions, flags and width, and for no others. */
static void test_what_is_learned_stays(void) {
    context first = {0}, second = {0};
    weir_threadpool_vtable vtable = make_vtable();
    weir_threadpool *pool = make_pool(&vtable, &first);
    weir_threadpool_costs assumed = costs_of(pool);
    CHECK_OK(weir_threadpool_measure(pool));
    weir_threadpool_costs measured = costs_of(pool);
    CHECK(!same(assumed, measured));
    weir_threadpool_release(pool);
    CHECK_EQ(atomic_load(&first.released), 1);

    pool = make_pool(&vtable, &second);
    CHECK(same(costs_of(pool), measured));
    weir_threadpool *other[3];
    weir_threadpool_vtable others[3] = {vtable, vtable, vtable};
    others[0].num_threads = one_more_thread;
    others[1].parallel_for = refuse;
    others[2].flags = WEIR_THREADPOOL_NESTED;
    for (int i = 0; i < 3; i++) {
        context own = {0};
        other[i] = make_pool(&others[i], &own);
        CHECK(same(costs_of(other[i]), assumed));
        weir_threadpool_release(other[i]);
    }

    /* Given costs are those of the pools that they are given for. */
    context third = {0};
    weir_threadpool_attr *attr = NULL;
    weir_threadpool *given = NULL;
    const weir_threadpool_costs costs = {.struct_size = sizeof costs, .submit_ns = 10, .arrive_ns = 20, .join_ns = 30};
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK_OK(weir_threadpool_attr_set_costs(attr, &costs));
    CHECK_OK(weir_threadpool_create_with_attr(&vtable, &third, attr, &given));
    CHECK(same(costs_of(given), costs) && same(costs_of(pool), measured));
    weir_threadpool_release(given);
    weir_threadpool_attr_destroy(attr);
    weir_threadpool_release(pool);
}

/* Each pool is its own for all that: context, number, release; many live at once. */
static void test_each_is_its_own(void) {
    weir_threadpool_vtable vtable = make_vtable();
    static context contexts[CROWD];
    weir_threadpool *pools[CROWD];
    uint64_t last = 0, id = 0;
    for (int i = 0; i < CROWD; i++) {
        pools[i] = make_pool(&vtable, &contexts[i]);
        CHECK_OK(weir_threadpool_get_id(pools[i], &id));
        CHECK(id > last);
        last = id;
    }
    CHECK_EQ(runtime_info().threadpools, CROWD);
    for (int i = 0; i < CROWD; i++) {
        int before = atomic_load(&contexts[i].asked);
        int32_t width = 0;
        CHECK_OK(weir_threadpool_get_num_threads(pools[i], &width));
        CHECK_EQ(atomic_load(&contexts[i].asked), before + 1);
        CHECK_EQ(atomic_load(&contexts[i].released), 0);
        weir_threadpool_release(pools[i]);
        CHECK_EQ(atomic_load(&contexts[i].released), 1);
    }
    CHECK_EQ(runtime_info().threadpools, 0);
}

/* Without memory for the next one after the first, whether it is closed or let go of. */
static void test_no_memory(void) {
    weir_threadpool_vtable vtable = make_vtable();
#if INTERPOSED
    bool seen = interpose_start();
    if (seen) interpose_reset(0, 0);
#endif
    uint64_t allocations = 0;
    for (int i = 0; i < POOLS; i++) {
        context c = {0};
        weir_threadpool *pool = make_pool(&vtable, &c);
        if (i % 2 == 0) CHECK_OK(weir_threadpool_close(pool, 0));
        weir_threadpool_release(pool);
        CHECK_EQ(atomic_load(&c.released), 1);
        if (i == 0) allocations = runtime_info().allocations;
#if INTERPOSED
        if (i == 0 && seen) interpose_reset(0, 0);
#endif
    }
    CHECK_EQ(runtime_info().allocations, allocations);
#if INTERPOSED
    if (seen) CHECK_EQ(atomic_load(&library_requests), 0);
#endif
}

int main(void) {
    test_what_is_learned_stays();
    test_each_is_its_own();
    test_no_memory();
    puts("ok");
    return 0;
}
