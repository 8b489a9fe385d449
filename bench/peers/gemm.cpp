// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weir_sgemm and weir_gemm_u8s8s32 beside oneDNN's functions of the same kind, on one thread, in one process.
//
//     OMP_NUM_THREADS=1 taskset -c 1 ./bench_gemm [rounds]
//
// Prints Markdown. Each number is the median of `rounds` rounds (default 31); in a round both libraries do the same
// product, one after the other, so that a change of the clock meets both. The ratio is the median of the rounds'
// ratios. Results are compared before anything is timed.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include <oneapi/dnnl/dnnl.h>

#include "weir.h"

namespace {

struct shape {
    int m, n, k;
};

const shape shapes[] = {
    {64, 64, 64},     {128, 128, 128},  {256, 256, 256},  {512, 512, 512},  {1024, 1024, 1024}, {1, 1024, 1024},
    {8, 1024, 1024},  {32, 1024, 1024}, {32, 4096, 4096}, {128, 768, 768},  {128, 3072, 768},   {128, 768, 3072},
    {3136, 64, 576},  {196, 256, 2304}, {784, 512, 128},
};

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "gemm: %s (%s)\n", what, weir_last_error_message());
    std::exit(1);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double seconds(const std::function<void()> &run, int repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeat; i++) run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One line of the table: operations per nanosecond of both, and the ratio.
void compare(const shape &s, const char *variant, int rounds, const std::function<void()> &ours,
             const std::function<void()> &theirs) {
    const double operations = 2.0 * s.m * s.n * s.k;
    const int repeat = static_cast<int>(std::clamp(4e8 / operations, 1.0, 2000.0));
    std::vector<double> weir, peer, ratio;
    for (int round = 0; round < rounds; round++) {
        // Whoever comes second finds the operands in the cache: they take turns.
        const double first = seconds(round % 2 ? theirs : ours, repeat);
        const double second = seconds(round % 2 ? ours : theirs, repeat);
        weir.push_back(round % 2 ? second : first);
        peer.push_back(round % 2 ? first : second);
        ratio.push_back(peer.back() / weir.back());
    }
    const auto rate = [&](const std::vector<double> &times) { return operations * repeat / median(times) / 1e9; };
    std::printf("| %d x %d x %d%s | %.1f | %.1f | %.2f |\n", s.m, s.n, s.k, variant, rate(weir), rate(peer),
                median(ratio));
    std::fflush(stdout);
}

void header(const char *title, const char *unit) {
    std::printf("\n%s, %s, one thread\n\n| M x N x K | weir | oneDNN | ratio |\n|---|---|---|---|\n", title, unit);
}

void floats(const shape &s, bool transpose_b, int rounds) {
    const auto m = static_cast<std::size_t>(s.m), n = static_cast<std::size_t>(s.n), k = static_cast<std::size_t>(s.k);
    std::vector<float> a(m * k), b(k * n), ours(m * n), theirs(m * n);
    for (std::size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(i * 7 % 13) - 6;
    for (std::size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(i * 5 % 11) - 5;
    const int ldb = transpose_b ? s.k : s.n;
    const auto weir = [&] {
        if (weir_sgemm(0, transpose_b, s.m, s.n, s.k, 1, a.data(), s.k, b.data(), ldb, 0, ours.data(), s.n, nullptr)) {
            fail("weir_sgemm");
        }
    };
    const auto peer = [&] {
        if (dnnl_sgemm('N', transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1, a.data(), s.k, b.data(), ldb, 0, theirs.data(),
                       s.n)) {
            fail("dnnl_sgemm");
        }
    };
    weir();
    peer();
    if (ours != theirs) fail("the products of small integers differ");
    compare(s, transpose_b ? ", B transposed" : "", rounds, weir, peer);
}

void bytes(const shape &s, bool transpose_b, std::uint8_t ao, std::int8_t bo, int rounds) {
    const auto m = static_cast<std::size_t>(s.m), n = static_cast<std::size_t>(s.n), k = static_cast<std::size_t>(s.k);
    std::vector<std::uint8_t> a(m * k);
    std::vector<std::int8_t> b(k * n);
    std::vector<std::int32_t> ours(m * n), theirs(m * n);
    // Small enough for a library that adds up pairs in 16 bits.
    for (std::size_t i = 0; i < a.size(); i++) a[i] = static_cast<std::uint8_t>(i * 7 % 101);
    for (std::size_t i = 0; i < b.size(); i++) b[i] = static_cast<std::int8_t>(static_cast<int>(i * 5 % 103) - 51);
    const int ldb = transpose_b ? s.k : s.n;
    const std::int32_t zero = 0;
    const auto weir = [&] {
        if (weir_gemm_u8s8s32(0, transpose_b, WEIR_GEMM_OFFSET_FIXED, s.m, s.n, s.k, 1, a.data(), s.k, ao, b.data(), ldb,
                              bo, 0, ours.data(), s.n, &zero, nullptr)) {
            fail("weir_gemm_u8s8s32");
        }
    };
    const auto peer = [&] {
        if (dnnl_gemm_u8s8s32('N', transpose_b ? 'T' : 'N', 'F', s.m, s.n, s.k, 1, a.data(), s.k, ao, b.data(), ldb, bo, 0,
                              theirs.data(), s.n, &zero)) {
            fail("dnnl_gemm_u8s8s32");
        }
    };
    weir();
    peer();
    if (ours != theirs) fail("the products of bytes differ");
    const char *variant = ao || bo ? ", zero points" : transpose_b ? ", B transposed" : "";
    compare(s, variant, rounds, weir, peer);
}

} // namespace

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 31;
    const dnnl_version_t *version = dnnl_version();
    std::printf("weir %s beside oneDNN %d.%d.%d\n", weir_version_string(), version->major, version->minor, version->patch);
    header("u8 x s8 -> s32", "GOP/s");
    for (const shape &s : shapes) bytes(s, false, 0, 0, rounds);
    for (const shape &s : {shapes[2], shapes[4], shapes[7]}) bytes(s, true, 0, 0, rounds);
    for (const shape &s : {shapes[2], shapes[4], shapes[7]}) bytes(s, false, 128, -5, rounds);
    header("f32", "GFLOP/s");
    for (const shape &s : shapes) floats(s, false, rounds);
    for (const shape &s : {shapes[2], shapes[4], shapes[7]}) floats(s, true, rounds);
    return 0;
}
