/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * weir on a queue of libdispatch, or on the stand-in for it.
 */

#include <weir/inspect.h>

#include "weir/adapters/dispatch.h"

#include "exercise.h"
#include "make.h"

int main(void) {
    const weir_runtime_info before = runtime_info();
    dispatch_queue_t queue = dispatch_get_global_queue(0, 0);
    for (int32_t width = 0; width <= 5; width++) {
        int32_t found = 0;
        weir_threadpool *pool = NULL;
        CHECK_OK(weir_dispatch_threadpool_create(queue, width, &pool));
        CHECK_OK(weir_threadpool_get_num_threads(pool, &found));
        CHECK(width > 0 ? found == width : found >= 1);
        exercise_pool(pool, 0);
    }
    void *ctx = NULL;
    const weir_threadpool_vtable vtable = weir_dispatch_vtable(queue, 3, &ctx);
    exercise_vtable(&vtable, ctx);
    CHECK(weir_dispatch_threadpool_create(queue, 2, NULL) == WEIR_INVALID_ARGUMENT);
    check_released(&before);
#ifdef WEIR_DISPATCH_STAND_IN
    EVENTUALLY(stand_in_references(queue) == 1);
    printf("on the stand-in for libdispatch\n");
#else
    printf("on libdispatch\n");
#endif
    return 0;
}
