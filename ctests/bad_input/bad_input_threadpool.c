/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for thread pools, regions and their options.
 */

#include <math.h>
#include <weir/task_group.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "bad_input.h"
#include "weir/conformance.h"

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

    ROW(weir_threadpool_create, (NULL, NULL, NULL, NEW(threadpool)), INVALID, "vtable is NULL");
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create, (UNALIGNED, NULL, NULL, NEW(threadpool)), INVALID, "vtable is not aligned");
    vtable.struct_size = 0;
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 0, expected");
    vtable.struct_size = offsetof(weir_threadpool_vtable, release);
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 64, expected");
    /* In the middle of a pointer. */
    vtable.struct_size = sizeof vtable - 4;
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 76, expected");
    vtable.struct_size = 5000;
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 5000, expected");
    vtable.struct_size = SIZE_MAX;
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)), INVALID, "vtable->struct_size is 1844674407370");
    newer.known.struct_size = sizeof newer;
    ROW(weir_threadpool_create, (&newer.known, NULL, NULL, NEW(threadpool)), INVALID, "vtable sets members that");
    vtable = good_vtable();
    vtable.flags = UINT64_C(1) << 63;
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)),
        INVALID, "vtable->flags has unknown bits 0x8000000000000000");
    vtable = good_vtable();
    vtable.num_threads = NULL;
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)), INVALID, "num_threads");
    vtable = good_vtable();
    vtable.schedule = NULL;
    ROW(weir_threadpool_create, (&vtable, NULL, NULL, NEW(threadpool)), INVALID, "schedule");
}

static void take_no_line(void *arg, const weir_conformance_line *line) {
    (void)arg, (void)line;
    CHECK(!"a check that was refused reports");
}

#define OPTIONS(...) &(weir_threadpool_options){.struct_size = sizeof(weir_threadpool_options), __VA_ARGS__}

static void rows_of_options(void) {
    weir_threadpool_vtable vtable = good_vtable(), to_fill = {.struct_size = sizeof to_fill};
    weir_conformance_options options = {.struct_size = sizeof options};
    const struct {
        weir_threadpool_options known;
        uint64_t later;
    } newer = {.known = {.struct_size = sizeof newer}, .later = 1};
    void *ctx = NULL;

    ROW(weir_threadpool_create, (&vtable, NULL, WRONG(stream_attr), NEW(threadpool)),
        INVALID, "options->struct_size is");
    ROW(weir_threadpool_create, (&vtable, NULL, OPTIONS(.num_threads = 4), NEW(threadpool)),
        INVALID, "options->num_threads is 4, which only vtable->num_threads can say");
    ROW(weir_threadpool_create, (&vtable, NULL, OPTIONS(.spin_ns = 7), NEW(threadpool)),
        INVALID, "options->spin_ns is 7, which is for the threads of a built-in pool");
    ROW(weir_threadpool_create, (&vtable, NULL, OPTIONS(.checking = 2), NEW(threadpool)),
        INVALID, "options->checking is 2, expected 0 or 1");
    ROW(weir_threadpool_create, (&vtable, NULL, OPTIONS(.costs = UNALIGNED), NEW(threadpool)),
        INVALID, "options->costs is not aligned");
    weir_threadpool_costs costs = {.struct_size = sizeof costs, .arrive_ns = -2.0};
    ROW(weir_threadpool_create, (&vtable, NULL, OPTIONS(.costs = &costs), NEW(threadpool)),
        INVALID, "options->costs->arrive_ns is -2, expected a finite number of 0 or more");
    costs = (weir_threadpool_costs){.struct_size = sizeof costs, .join_ns = INFINITY};
    ROW(weir_threadpool_create, (&vtable, NULL, OPTIONS(.costs = &costs), NEW(threadpool)),
        INVALID, "options->costs->join_ns is inf");
    costs = (weir_threadpool_costs){.struct_size = sizeof costs, .submit_ns = NAN};
    ROW(weir_threadpool_create_builtin, (OPTIONS(.costs = &costs), NEW(threadpool)),
        INVALID, "options->costs->submit_ns is NaN");
    costs.struct_size = 8;
    ROW(weir_threadpool_create_builtin, (OPTIONS(.costs = &costs), NEW(threadpool)),
        INVALID, "options->costs->struct_size is 8");
    ROW(weir_threadpool_create_builtin, (OPTIONS(.checking = 1), NEW(threadpool)),
        INVALID, "options->checking is 1, which is for a host's pool");
    ROW(weir_threadpool_create_builtin, (OPTIONS(.num_threads = -1), NEW(threadpool)),
        INVALID, "options->num_threads is -1, expected 0 to 256");
    ROW(weir_threadpool_create_builtin, (OPTIONS(.num_threads = 257), NEW(threadpool)),
        INVALID, "options->num_threads is 257, expected 0 to 256");
    ROW(weir_threadpool_create_builtin, (OPTIONS(.spin_ns = 1000000001), NEW(threadpool)),
        INVALID, "options->spin_ns is 1000000001, expected at most 1000000000");
    ROW(weir_threadpool_create_builtin, (&newer.known, NEW(threadpool)),
        INVALID, "options sets members that this version of weir does not know");
    vtable.num_threads = NULL;

    ROW(weir_threadpool_get_broken_clause, (NULL, NULL, 0, &out.size), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_broken_clause, (WRONG(event), NULL, 0, &out.size), INVALID, "pool: expected a threadpool");
    ROW(weir_threadpool_get_broken_clause, (good.threadpool, NULL, 4, &out.size), INVALID, "buffer is NULL");
    ROW(weir_threadpool_get_broken_clause, (good.threadpool, NULL, 0, NULL), INVALID, "out_length is NULL");

    ROW(weir_threadpool_get_vtable, (NULL, &to_fill, &ctx), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_vtable, (WRONG(graph), &to_fill, &ctx), INVALID, "pool: expected a threadpool");
    ROW(weir_threadpool_get_vtable, (good.threadpool, NULL, &ctx), INVALID, "out_vtable is NULL");
    ROW(weir_threadpool_get_vtable, (good.threadpool, &to_fill, NULL), INVALID, "out_ctx is NULL");
    to_fill.struct_size = 3;
    ROW(weir_threadpool_get_vtable, (good.threadpool, &to_fill, &ctx), INVALID, "out_vtable->struct_size is 3");
    CHECK(ctx == NULL && to_fill.num_threads == NULL);

    ROW(weir_threadpool_conformance, (&vtable, NULL, NULL, take_no_line, NULL, &out.i32), INVALID, "num_threads");
    vtable = good_vtable();
    ROW(weir_threadpool_conformance, (NULL, NULL, NULL, take_no_line, NULL, &out.i32), INVALID, "vtable is NULL");
    ROW(weir_threadpool_conformance, (&vtable, NULL, NULL, NULL, NULL, &out.i32), INVALID, "report is NULL");
    ROW(weir_threadpool_conformance, (&vtable, NULL, NULL, take_no_line, NULL, NULL), INVALID, "out_failed is NULL");
    options.rounds = -1;
    ROW(weir_threadpool_conformance, (&vtable, NULL, &options, take_no_line, NULL, &out.i32),
        INVALID, "options->rounds is -1");
    options = (weir_conformance_options){.struct_size = sizeof options, .budget_ns = UINT64_MAX};
    ROW(weir_threadpool_conformance, (&vtable, NULL, &options, take_no_line, NULL, &out.i32),
        INVALID, "options->budget_ns is 18446744073709551615");
    options = (weir_conformance_options){.struct_size = sizeof options, .flags = 1};
    ROW(weir_threadpool_conformance, (&vtable, NULL, &options, take_no_line, NULL, &out.i32), INVALID, "options->flags");
    options = (weir_conformance_options){.struct_size = 1};
    ROW(weir_threadpool_conformance, (&vtable, NULL, &options, take_no_line, NULL, &out.i32),
        INVALID, "options->struct_size is 1");
}

static void rows_of_reference_pools(void) {
    ROW(weir_threadpool_create_builtin, (NULL, NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create_builtin, (WRONG(stream_attr), NEW(threadpool)),
        INVALID, "options->struct_size is");
    ROW(weir_threadpool_create_inline, (NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create_seeded, (1, 2, NULL), INVALID, "out_pool is NULL");
    ROW(weir_threadpool_create_seeded, (1, 0, NEW(threadpool)), INVALID, "num_threads is 0");
    ROW(weir_threadpool_create_seeded, (1, -1, NEW(threadpool)), INVALID, "num_threads is -1");
    ROW(weir_threadpool_create_seeded, (1, 257, NEW(threadpool)), INVALID, "num_threads is 257");

}

static void rows_of_pools(void) {
    ROW(weir_threadpool_retain, (NULL), INVALID, "pool is NULL");
    ROW(weir_threadpool_retain, (WRONG(stream)), INVALID, "pool: expected a threadpool, got a stream");
    ROW(weir_threadpool_retain, (UNALIGNED), INVALID, "pool: expected a threadpool, got no weir object");
    ROW(weir_threadpool_get_num_threads, (NULL, &out.i32), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_num_threads, (good.threadpool, NULL), INVALID, "out_num_threads is NULL");
    ROW(weir_threadpool_get_num_threads, (WRONG(stream_attr), &out.i32), INVALID, "expected a threadpool, got a stream_attr");
    ROW(weir_threadpool_get_id, (NULL, &out.u64), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_id, (good.threadpool, NULL), INVALID, "out_id is NULL");
    ROW(weir_threadpool_get_id, (WRONG(stream), &out.u64), INVALID, "pool: expected a threadpool, got a stream");
    ROW(weir_threadpool_get_flags, (NULL, &out.u64), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_flags, (good.threadpool, NULL), INVALID, "out_flags is NULL");
    ROW(weir_threadpool_get_flags, (WRONG(engine), &out.u64), INVALID, "pool: expected a threadpool, got an engine");
    ROW(weir_threadpool_in_parallel, (NULL, &out.i32), INVALID, "pool is NULL");
    ROW(weir_threadpool_in_parallel, (good.threadpool, NULL), INVALID, "out_in_parallel is NULL");
    ROW(weir_threadpool_in_parallel, (WRONG(run), &out.i32), INVALID, "pool: expected a threadpool, got a run");
}

static int32_t never_called(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    CHECK(!"a region that was refused is run");
    return WEIR_INTERNAL;
}

static int32_t never_boxed(void *arg, const int64_t *begin, const int64_t *end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    CHECK(!"a region that was refused is run");
    return WEIR_INTERNAL;
}

static void rows_of_regions(void) {
    weir_parallel_hint hint = {.struct_size = sizeof hint};
    weir_threadpool *pool = good.threadpool;

    ROW(weir_parallel_for, (WRONG(graph), 1, NULL, never_called, NULL),
        INVALID, "pool: expected a threadpool, got a graph");
    ROW(weir_parallel_for, (pool, 1, NULL, NULL, NULL), INVALID, "fn is NULL");
    ROW(weir_parallel_for, (pool, 0, NULL, NULL, NULL), INVALID, "fn is NULL");
    ROW(weir_parallel_for, (pool, -1, NULL, never_called, NULL), RANGE, "n is -1");
    ROW(weir_parallel_for, (NULL, INT64_MIN, NULL, never_called, NULL), RANGE, "n is -9223372036854775808");
    ROW(weir_parallel_for, (pool, 0, NULL, never_called, NULL), WEIR_OK, NULL);
    hint.struct_size = 7;
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->struct_size is 7, expected 40");
    hint.struct_size = 1u << 20;
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->struct_size is 1048576, expected");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .grain = -1};
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->grain is -1");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .max_slots = -1};
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->max_slots is -1");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .flags = 1};
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->flags");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .cost_ns = -1.0};
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->cost_ns is -1");
    hint.cost_ns = NAN;
    ROW(weir_parallel_for, (pool, 1, &hint, never_called, NULL), INVALID, "hint->cost_ns is NaN");

    const int64_t extents[WEIR_MAX_RANK] = {2, 2};
    const int64_t negative[2] = {1, -3}, huge[2] = {INT64_MAX, 2};
    ROW(weir_parallel_nd, (WRONG(graph), 1, extents, NULL, NULL, never_boxed, NULL), INVALID, "pool: expected a threadpool");
    ROW(weir_parallel_nd, (pool, 0, extents, NULL, NULL, never_boxed, NULL), INVALID, "rank is 0, expected 1 to 8");
    ROW(weir_parallel_nd, (pool, 9, extents, NULL, NULL, never_boxed, NULL), INVALID, "rank is 9");
    ROW(weir_parallel_nd, (pool, 2, NULL, NULL, NULL, never_boxed, NULL), INVALID, "extents is NULL");
    ROW(weir_parallel_nd, (pool, 2, extents, NULL, NULL, NULL, NULL), INVALID, "fn is NULL");
    ROW(weir_parallel_nd, (pool, 2, negative, NULL, NULL, never_boxed, NULL), RANGE, "extents[1] is -3");
    ROW(weir_parallel_nd, (pool, 2, extents, negative, NULL, never_boxed, NULL), INVALID, "tile[1] is -3");
    ROW(weir_parallel_nd, (NULL, 2, huge, NULL, NULL, never_boxed, NULL), RANGE, "points");
    hint = (weir_parallel_hint){.struct_size = sizeof hint, .grain = 2};
    ROW(weir_parallel_nd, (pool, 2, extents, NULL, &hint, never_boxed, NULL), INVALID, "hint->grain is 2");
    hint.struct_size = 7;
    ROW(weir_parallel_nd, (pool, 2, extents, NULL, &hint, never_boxed, NULL), INVALID, "hint->struct_size is 7");

    weir_threadpool_costs costs = {.struct_size = sizeof costs};
    ROW(weir_threadpool_close, (NULL, 0), INVALID, "pool is NULL");
    ROW(weir_threadpool_close, (WRONG(graph), 0), INVALID, "pool: expected a threadpool, got a graph");
    ROW(weir_threadpool_measure, (NULL), INVALID, "pool is NULL");
    ROW(weir_threadpool_measure, (WRONG(graph)), INVALID, "pool: expected a threadpool");
    ROW(weir_threadpool_get_costs, (NULL, &costs), INVALID, "pool is NULL");
    ROW(weir_threadpool_get_costs, (pool, NULL), INVALID, "out_costs is NULL");
    costs.struct_size = 3;
    ROW(weir_threadpool_get_costs, (pool, &costs), INVALID, "out_costs->struct_size is 3");
}

static int32_t never_run(void *arg) {
    (void)arg;
    CHECK(!"a task that was refused is run");
    return WEIR_OK;
}

static void never_told(void *ctx, weir_status status, weir_run *run) {
    (void)ctx, (void)status, (void)run;
    CHECK(!"a notice that was refused is told");
}

static void rows_of_task_groups(void) {
    const char bytes[41] = {0};
    weir_notice nobody = {.struct_size = sizeof nobody};
    weir_notice notice = {.struct_size = sizeof notice, .notify = never_told, .release = never_released};

    ROW(weir_task_group_create, (WRONG(engine), NEW(task_group)), INVALID, "pool: expected a threadpool, got an engine");
    ROW(weir_task_group_create, (good.threadpool, NULL), INVALID, "out_group is NULL");
    ROW(weir_task_group_retain, (NULL), INVALID, "group is NULL");
    ROW(weir_task_group_retain, (WRONG(stream)), INVALID, "group: expected a task_group, got a stream");
    ROW(weir_task_group_spawn, (NULL, never_run, NULL, never_released), INVALID, "group is NULL");
    ROW(weir_task_group_spawn, (UNALIGNED, never_run, NULL, never_released), INVALID, "group: expected a task_group");
    ROW(weir_task_group_spawn, (good.task_group, NULL, NULL, never_released), INVALID, "fn is NULL");
    ROW(weir_task_group_spawn_copy, (NULL, never_run, bytes, 8), INVALID, "group is NULL");
    ROW(weir_task_group_spawn_copy, (good.task_group, NULL, bytes, 8), INVALID, "fn is NULL");
    ROW(weir_task_group_spawn_copy, (good.task_group, never_run, NULL, 8), INVALID, "data is NULL");
    ROW(weir_task_group_spawn_copy, (good.task_group, never_run, bytes, 41), RANGE, "size is 41, expected 40 or less");
    ROW(weir_task_group_synchronize, (NULL), INVALID, "group is NULL");
    ROW(weir_task_group_synchronize, (NO_OBJECT), INVALID, "group: expected a task_group");
    ROW(weir_task_group_cancel, (NULL), INVALID, "group is NULL");
    ROW(weir_task_group_cancel, (WRONG(run)), INVALID, "group: expected a task_group, got a run");
    ROW(weir_task_group_is_stopped, (NULL, &out.i32), INVALID, "group is NULL");
    ROW(weir_task_group_is_stopped, (good.task_group, NULL), INVALID, "out_stopped is NULL");
    ROW(weir_task_group_notify, (NULL, &notice), INVALID, "group is NULL");
    ROW(weir_task_group_notify, (good.task_group, NULL), INVALID, "notice is NULL");
    ROW(weir_task_group_notify, (good.task_group, &nobody), INVALID, "notice has neither a function nor an eventfd");
}

void bad_input_threadpool(void) {
    rows_of_create();
    rows_of_options();
    rows_of_reference_pools();
    rows_of_pools();
    rows_of_regions();
    rows_of_task_groups();
}
