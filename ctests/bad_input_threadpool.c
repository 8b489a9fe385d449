/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for thread pools, regions and their settings.
 */

#include "bad_input.h"

static int32_t one_thread(void *ctx) {
    (void)ctx;
    return 1;
}

static int32_t run_here(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)ctx, (void)hint;
    fn(arg, 0);
    return 0;
}

static void never_released(void *ctx) {
    (void)ctx;
    CHECK(!"a pool that was never made is released");
}

static weir_threadpool_vtable good_vtable(void) {
    return (weir_threadpool_vtable){.struct_size = sizeof(weir_threadpool_vtable),
                                    .num_threads = one_thread,
                                    .schedule = run_here,
                                    .release = never_released};
}

static void rows_of_create(void) {
    struct {
        weir_threadpool_vtable known;
        uint64_t more;
    } newer = {.known = good_vtable(), .more = 1};
    weir_threadpool_vtable vtable = good_vtable();

    ROW(weir_threadpool_create, (NULL, NULL, NEW(threadpool)), INVALID, "vtable is NULL");
    ROW(weir_threadpool_create, (&vtable, NULL, NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create, (UNALIGNED, NULL, NEW(threadpool)), INVALID, "vtable is not aligned");
    vtable.struct_size = 0;
    ROW(weir_threadpool_create, (&vtable, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 0, expected");
    vtable.struct_size = offsetof(weir_threadpool_vtable, release);
    ROW(weir_threadpool_create, (&vtable, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 64, expected");
    vtable.struct_size = 5000;
    ROW(weir_threadpool_create, (&vtable, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 5000, expected");
    vtable.struct_size = SIZE_MAX;
    ROW(weir_threadpool_create, (&vtable, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 1844674407370");
    newer.known.struct_size = sizeof newer;
    ROW(weir_threadpool_create, (&newer.known, NULL, NEW(threadpool)), INVALID, "vtable sets members that");
    vtable = good_vtable();
    vtable.flags = UINT64_C(1) << 63;
    ROW(weir_threadpool_create, (&vtable, NULL, NEW(threadpool)),
        INVALID, "vtable->flags has unknown bits 0x8000000000000000");
    vtable = good_vtable();
    vtable.num_threads = NULL;
    ROW(weir_threadpool_create, (&vtable, NULL, NEW(threadpool)), INVALID, "num_threads");
    vtable = good_vtable();
    vtable.schedule = NULL;
    ROW(weir_threadpool_create, (&vtable, NULL, NEW(threadpool)), INVALID, "schedule");
}

static void rows_of_reference_pools(void) {
    ROW(weir_threadpool_create_builtin, (NULL, NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create_builtin, (WRONG(stream_attr), NEW(threadpool)),
        INVALID, "attr is not a threadpool_attr (it is a stream_attr)");
    ROW(weir_threadpool_create_inline, (NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create_seeded, (1, 2, NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create_seeded, (1, 0, NEW(threadpool)), INVALID, "num_threads is 0");
    ROW(weir_threadpool_create_seeded, (1, -1, NEW(threadpool)), INVALID, "num_threads is -1");
    ROW(weir_threadpool_create_seeded, (1, 257, NEW(threadpool)), INVALID, "num_threads is 257");

    ROW(weir_threadpool_attr_create, (NULL), INVALID, "out_attr is NULL");
    ROW(weir_threadpool_attr_set_num_threads, (NULL, 1), INVALID, "attr is NULL");
    ROW(weir_threadpool_attr_set_num_threads, (WRONG(threadpool), 1),
        INVALID, "attr is not a threadpool_attr (it is a threadpool)");
    ROW(weir_threadpool_attr_set_num_threads, (good.threadpool_attr, -1), INVALID, "num_threads is -1");
    ROW(weir_threadpool_attr_set_num_threads, (good.threadpool_attr, 257), INVALID, "num_threads is 257");
    ROW(weir_threadpool_attr_get_num_threads, (NULL, &out.i32), INVALID, "attr is NULL");
    ROW(weir_threadpool_attr_get_num_threads, (good.threadpool_attr, NULL), INVALID, "out_num_threads is NULL");
    ROW(weir_threadpool_attr_get_num_threads, (WRONG(event), &out.i32), INVALID, "(it is a event)");
    ROW(weir_threadpool_attr_set_spin_ns, (NULL, 1), INVALID, "attr is NULL");
    ROW(weir_threadpool_attr_set_spin_ns, (WRONG(stream_attr), 1), INVALID, "attr is not a threadpool_attr");
    ROW(weir_threadpool_attr_set_spin_ns, (good.threadpool_attr, 1000000001), INVALID, "spin_ns is 1000000001");
    ROW(weir_threadpool_attr_get_spin_ns, (NULL, &out.u64), INVALID, "attr is NULL");
    ROW(weir_threadpool_attr_get_spin_ns, (good.threadpool_attr, NULL), INVALID, "out_spin_ns is NULL");
    ROW(weir_threadpool_attr_get_spin_ns, (NO_OBJECT, &out.u64),
        INVALID, "attr is not a threadpool_attr (it is no weir object)");
}

static void rows_of_pools(void) {
    ROW(weir_threadpool_retain, (NULL), INVALID, "pool is NULL");
    ROW(weir_threadpool_retain, (WRONG(stream)), INVALID, "pool is not a threadpool (it is a stream)");
    ROW(weir_threadpool_retain, (UNALIGNED), INVALID, "pool is not a threadpool (it is no weir object)");
    ROW(weir_threadpool_get_num_threads, (NULL, &out.i32), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_num_threads, (good.threadpool, NULL), INVALID, "out_num_threads is NULL");
    ROW(weir_threadpool_get_num_threads, (WRONG(threadpool_attr), &out.i32), INVALID, "(it is a threadpool_attr)");
    ROW(weir_threadpool_get_flags, (NULL, &out.u64), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_flags, (good.threadpool, NULL), INVALID, "out_flags is NULL");
    ROW(weir_threadpool_get_flags, (WRONG(engine), &out.u64), INVALID, "pool is not a threadpool (it is a engine)");
    ROW(weir_threadpool_in_parallel, (NULL, &out.i32), INVALID, "pool is NULL");
    ROW(weir_threadpool_in_parallel, (good.threadpool, NULL), INVALID, "out_in_parallel is NULL");
    ROW(weir_threadpool_in_parallel, (WRONG(run), &out.i32), INVALID, "pool is not a threadpool (it is a run)");
}

static int32_t never_called(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    CHECK(!"a region that was refused is run");
    return WEIR_INTERNAL;
}

static void rows_of_regions(void) {
    weir_parallel_hint hint = {.struct_size = sizeof hint};
    weir_threadpool *pool = good.threadpool;

    ROW(weir_parallel_for, (WRONG(graph), 1, NULL, never_called, NULL),
        INVALID, "pool is not a threadpool (it is a graph)");
    ROW(weir_parallel_for, (pool, 1, NULL, NULL, NULL), INVALID, "fn is NULL");
    ROW(weir_parallel_for, (pool, 0, NULL, NULL, NULL), INVALID, "fn is NULL");
    ROW(weir_parallel_for, (pool, -1, NULL, never_called, NULL), RANGE, "n is -1");
    ROW(weir_parallel_for, (NULL, INT64_MIN, NULL, never_called, NULL), RANGE, "n is -9223372036854775808");
    ROW(weir_parallel_for, (pool, 0, NULL, never_called, NULL), WEIR_OK, NULL);
    hint.struct_size = 7;
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->struct_size is 7, expected 32");
    hint.struct_size = 1u << 20;
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->struct_size is 1048576, expected");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .grain = -1};
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->grain is -1");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .max_slots = -1};
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->max_slots is -1");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .flags = 1};
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->flags");
}

void bad_input_threadpool(void) {
    rows_of_create();
    rows_of_reference_pools();
    rows_of_pools();
    rows_of_regions();
}
