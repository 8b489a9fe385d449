/* What only a GPU can answer, asked of the raw driver: which targets it still takes, and what some calls cost. Each
 * answer is a line of Markdown. What one can lose the device by has sections of its own: conditions, latency.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"

static void targets(void) {
    void *module = NULL;
    int code = 0;
    const char *taken = raw_kernel(PTX_OLD, "empty", &module, &code) != NULL ? "taken" : raw_error(code);
    printf("- PTX for sm_52: %s.\n", taken);
    answer(2, "%s", taken);
    if (code == 0) RAW(cuModuleUnload(module));
}

static void costs(const raw_device *device) {
    enum { ROUNDS = 9, CALLS = 1000 };
    const int allocations = quick ? 1 : 100, rounds = quick ? 3 : ROUNDS;
    void *stream = raw_stream(), *context = NULL;
    raw_pointer pointer = 0;
    double current[ROUNDS], allocate[2][2][ROUNDS];
    const size_t sizes[] = {64 << 10, 64 << 20};
    /* First as the pool is, which gives back what nobody uses when somebody waits; then as one that keeps it. */
    for (int keeps = 0; keeps < 2; keeps++) {
        if (keeps && !raw_keep_pool(device)) printf("- The default pool cannot be told to keep its memory.\n");
        for (int round = 0; round < rounds; round++) {
            double start = now_ns();
            for (int i = 0; i < CALLS; i++) RAW(cuCtxGetCurrent(&context));
            current[round] = (now_ns() - start) / CALLS;
            for (int size = 0; size < 2; size++) {
                start = now_ns();
                for (int i = 0; i < allocations; i++) {
                    RAW(cuMemAllocAsync(&pointer, sizes[size], stream));
                    RAW(cuMemFreeAsync(pointer, stream));
                }
                allocate[keeps][size][round] = (now_ns() - start) / allocations;
                RAW(cuStreamSynchronize(stream));
            }
        }
        printf("- cuMemAllocAsync and cuMemFreeAsync, %d in a row, from the default pool%s: %.0f ns for 64 KiB, %.0f ns for 64 MiB.\n",
               allocations, keeps ? " that keeps its memory" : "", median(allocate[keeps][0], rounds), median(allocate[keeps][1], rounds));
    }
    printf("- cuCtxGetCurrent: %.1f ns.\n", median(current, rounds));
    answer(4, "the driver's pool: %.0f ns for 64 KiB, %.0f ns for 64 MiB", median(allocate[1][0], rounds), median(allocate[1][1], rounds));
    answer(7, "%.1f ns", median(current, rounds));
    RAW(cuStreamDestroy_v2(stream));
}

void bench_questions(raw_device *device) {
    printf("\n## Questions to the driver\n\n");
    targets();
    costs(device);
}
