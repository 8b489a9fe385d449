// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the processor can do at most on one thread: multiplications and additions in registers, and copies.

#include "kernels.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace bench {

namespace {

// Best of some runs: nothing makes a processor faster than it is.
double best_rate(double operations, const side &run) {
    double ns = 1e18;
    for (int i = 0; i < 30; i++) {
        const auto start = now_ns();
        run();
        ns = std::min(ns, static_cast<double>(now_ns() - start));
    }
    return operations / ns;
}

#if defined(__x86_64__)

constexpr int steps = 100000;

// Twelve sums in registers hide the latency of an instruction that two units begin in every cycle.
#define TWELVE(name, r)                                                                                                 \
    name " %%" r "12,%%" r "13,%%" r "0\n" name " %%" r "12,%%" r "13,%%" r "1\n" name " %%" r "12,%%" r "13,%%" r "2\n" \
    name " %%" r "12,%%" r "13,%%" r "3\n" name " %%" r "12,%%" r "13,%%" r "4\n" name " %%" r "12,%%" r "13,%%" r "5\n" \
    name " %%" r "12,%%" r "13,%%" r "6\n" name " %%" r "12,%%" r "13,%%" r "7\n" name " %%" r "12,%%" r "13,%%" r "8\n" \
    name " %%" r "12,%%" r "13,%%" r "9\n" name " %%" r "12,%%" r "13,%%" r "10\n" name " %%" r "12,%%" r "13,%%" r "11\n"
#define LOOP(name, instruction, r)                                                                                      \
    void name() {                                                                                                       \
        int left = steps;                                                                                               \
        asm volatile("vzeroall\n1:\n" TWELVE(instruction, r) "dec %0\njnz 1b\nvzeroupper\n"                                      \
                     : "+r"(left)                                                                                       \
                     :                                                                                                  \
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",   \
                       "xmm11", "xmm12", "xmm13");                                                                      \
    }

LOOP(fma_avx2, "vfmadd231ps", "ymm")
LOOP(fma_avx512, "vfmadd231ps", "zmm")
LOOP(dot_avx512, "vpdpbusd", "zmm")

peaks measure() {
    peaks peaks;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        peaks.fma_avx2 = best_rate(2.0 * 8 * 12 * steps, fma_avx2);
        peaks.fma = peaks.fma_avx2;
    }
    if (capped()) return peaks;
    if (__builtin_cpu_supports("avx512f")) peaks.fma = std::max(peaks.fma, best_rate(2.0 * 16 * 12 * steps, fma_avx512));
    if (__builtin_cpu_supports("avx512vnni")) peaks.bytes = best_rate(2.0 * 64 * 12 * steps, dot_avx512);
    return peaks;
}

#else

peaks measure() {
    return {};
}

#endif

} // namespace

const peaks &measured_peaks() {
    static const peaks all = measure();
    return all;
}

void bench_peaks(const options &) {
    const auto &peaks = measured_peaks();
    std::printf("\n### Peaks of one thread in this run\n");
    const table t({"", ""});
    t.row({"multiply and add, f32, AVX2", fixed(peaks.fma_avx2, 0) + " GFLOP/s"});
    if (!capped()) {
        t.row({"multiply and add, f32, best", fixed(peaks.fma, 0) + " GFLOP/s"});
        t.row({"vpdpbusd", peaks.bytes > 0 ? fixed(peaks.bytes, 0) + " GOP/s" : "not there"});
    }
    for (const std::size_t kib : {16, 256, 8192, 262144}) {
        const std::size_t size = kib << 10;
        const array<char> from(size, 0, 100, 1), to(size);
        const auto copy = [&] {
            std::memcpy(to.data(), from.data(), size);
            asm volatile("" : : "r"(to.data()) : "memory");
        };
        const std::string name = kib < 1024 ? std::to_string(kib) + " KiB" : std::to_string(kib >> 10) + " MiB";
        t.row({"memcpy of " + name + ", read and written", fixed(best_rate(2.0 * static_cast<double>(size), copy), 0) + " GB/s"});
    }
}

} // namespace bench
