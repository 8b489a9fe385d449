/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The kernels of the test device: some of weir's own operations as plain loops over f32, and some that only this device
 * knows.
 */

#ifndef WEIR_CTESTS_TEST_DEVICE_KERNELS_H
#define WEIR_CTESTS_TEST_DEVICE_KERNELS_H

#include <stdbool.h>

#include "weir.h"
#include "weir/device.h"

typedef struct test_kernel test_kernel;

/* Attributes of "scale", which multiplies. */
typedef struct scale_attributes {
    float factor;
} scale_attributes;

/* Makes "eltwise" (the rectifier), "matmul" (with bias and rectifier), "binary" (sums, and comparisons of tensors of one shape), "scale", "weir.fail", which fails,
 * or a function of the host's, where recipes have them; UNIMPLEMENTED for
 * others, unless `anything` goes. */
int32_t test_kernel_create(const weir_device_recipe *recipe, bool anything, test_kernel **out_kernel);

/* Makes a kernel of a region that calls those of its nodes one after the other; UNIMPLEMENTED for one that is too large.
 * `space` is in the addresses that it is given, and not in pointers; `hasty` leaves out the last node. */
int32_t test_region_create(const weir_device_region *from, uint64_t space, bool hasty, test_kernel **out_kernel);

/* Bytes of scratch memory for a call with these inputs: as many as the first one has, so that it can be computed from
 * there. */
uint64_t test_kernel_scratch(const weir_tensor_view *inputs, size_t num_inputs);

/* Runs it; `wrong` subtracts instead of adding. A function of the host's says why it fails. */
int32_t test_kernel_run(const test_kernel *kernel, const weir_tensor_view *inputs, const weir_tensor_view *outputs, size_t num_inputs,
                        size_t num_outputs, bool wrong, char *why, size_t capacity);

void test_kernel_destroy(void *kernel);

#endif /* WEIR_CTESTS_TEST_DEVICE_KERNELS_H */
