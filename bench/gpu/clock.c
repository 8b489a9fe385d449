/* What a kernel that works for so many cycles takes by itself.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"

/* Cycles and ns of one spin. */
static void spin_once(void *function, void *stream, uint64_t cycles, unsigned blocks, uint64_t took[2]) {
    raw_pointer at = raw_memory(2 * sizeof(uint64_t));
    void *arguments[] = {&cycles, &at};
    RAW(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
    RAW(cuMemcpyDtoHAsync_v2(took, at, 2 * sizeof(uint64_t), stream));
    RAW(cuStreamSynchronize(stream));
    RAW(cuMemFree_v2(at));
}

spin_clock measure_clock(const raw_device *device) {
    void *module = NULL, *function = raw_kernel(PTX_PLAIN, "spin_measured", &module, NULL), *stream = raw_stream();
    uint64_t took[2] = {0, 0};
    spin_clock clock = {1e6 / device->clock_khz};
    /* The second finds the clock where work has brought it. */
    for (int i = 0; i < 2; i++) {
        spin_once(function, stream, quick ? 1000 : (uint64_t)device->clock_khz * 20, 1, took);
        if (took[0] > 0 && took[1] > 0) clock.ns_per_cycle = (double)took[1] / (double)took[0];
    }
    RAW(cuStreamDestroy_v2(stream));
    RAW(cuModuleUnload(module));
    return clock;
}

uint64_t spin_cycles(spin_clock clock, double us) {
    return quick ? 100 : (uint64_t)(us * 1e3 / clock.ns_per_cycle);
}

double spin_ns(spin_clock clock, uint64_t cycles, unsigned blocks, int count) {
    enum { MOST = 101 };
    void *module = NULL, *function = raw_kernel(PTX_PLAIN, "spin_measured", &module, NULL), *stream = raw_stream();
    double took[MOST];
    if (count > MOST) count = MOST;
    for (int i = 0; i < count; i++) {
        uint64_t each[2];
        spin_once(function, stream, cycles, blocks, each);
        took[i] = (double)each[0] * clock.ns_per_cycle;
    }
    RAW(cuStreamDestroy_v2(stream));
    RAW(cuModuleUnload(module));
    return median(took, count);
}
