/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Pools that do with tasks what they should, and say what is not so.
 */

#include "pools.h"

static int32_t two(void *ctx) {
    (void)ctx;
    return 2;
}

int wide(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.num_threads = two;
    vtable.max_threads = NULL;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t more_and_more(void *ctx) {
    return base_num_threads(ctx) + (base_turn(ctx, 5) ? 1 : 0);
}

int growing(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.num_threads = more_and_more;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t far_index(void *ctx) {
    int32_t index = base_thread_index(ctx);
    return index < 0 ? index : index + 100;
}

int index_beyond(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.thread_index = far_index;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t no(void *ctx) {
    (void)ctx;
    return 0;
}

int outside(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.in_parallel = no;
    vtable.thread_index = NULL;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t yes(void *ctx) {
    (void)ctx;
    return 1;
}

int inside_everywhere(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.in_parallel = yes;
    vtable.thread_index = NULL;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t one_for_all(void *ctx) {
    return base_thread_index(ctx) < 0 ? -1 : 0;
}

int shared_index(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.thread_index = one_for_all;
    return base_offer(vtable, out_vtable, out_ctx);
}

int help_lies(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.help = yes;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t help_and_deny(void *ctx) {
    base_help(ctx);
    return 0;
}

int help_denies(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.help = help_and_deny;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t with_the_caller(void *ctx) {
    return base_num_threads(ctx) + 1;
}

int caller_counted(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .num_threads = with_the_caller,
                                     .parallel_for = base_team_parallel_for,
                                     .in_parallel = base_in_parallel,
                                     .release = base_release};
    return base_offer(vtable, out_vtable, out_ctx);
}
