/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Compiles weir.h alone, twice, under each C standard: it needs nothing before it, and its types and calls are usable.
 */

#include "weir.h"
#include "weir.h"

static int32_t double_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    float *numbers = (float *)arg;
    (void)slot;
    for (int64_t i = begin; i < end; i++) {
        numbers[i] *= 2.0f;
    }
    return WEIR_OK;
}

int main(void) {
    float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    weir_parallel_hint hint = {0};
    weir_threadpool *pool = NULL;
    weir_status status = weir_threadpool_create_inline(&pool);

    hint.struct_size = sizeof hint;
    if (status == WEIR_OK) {
        status = weir_parallel_for(pool, 4, &hint, double_range, numbers);
    }
    weir_threadpool_release(pool);
    return status == WEIR_OK ? 0 : 1;
}
