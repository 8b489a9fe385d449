// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Compiles weir.h alone, twice, under each C++ standard: functions have C linkage, and lambdas fit the callbacks.

#include "weir.h"
#include "weir.h"

int main() {
    float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    weir_parallel_hint hint = weir_parallel_hint();
    weir_threadpool *pool = nullptr;
    weir_status status = weir_threadpool_create_inline(&pool);

    hint.struct_size = sizeof hint;
    if (status == WEIR_OK) {
        status = weir_parallel_for(
            pool, 4, &hint,
            [](void *arg, int64_t begin, int64_t end, int32_t) -> int32_t {
                for (int64_t i = begin; i < end; i++) {
                    static_cast<float *>(arg)[i] *= 2.0f;
                }
                return WEIR_OK;
            },
            numbers);
    }
    weir_threadpool_release(pool);
    return status == WEIR_OK ? 0 : 1;
}
