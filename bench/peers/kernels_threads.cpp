// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Products on two threads: weir on the pools of others against itself on one thread, and against libraries with threads
// of their own.

#include <chrono>
#include <cstdio>
#include <thread>

#include "kernels_products.hpp"
#include "peers.hpp"

namespace bench {

namespace {

const shape some[] = {{16, 16, 16},      {32, 32, 32},      {64, 64, 64},    {128, 128, 128},   {256, 256, 256},
                      {512, 512, 512},   {1024, 1024, 1024}, {2048, 2048, 2048}, {1, 1024, 1024},  {8, 1024, 1024},
                      {32, 4096, 4096},  {128, 768, 768},   {128, 3072, 768}, {3136, 64, 576},   {196, 256, 2304}};

// Times of one thread, of each pool, of each library; what the pools gain, and the best pool against the best library.
void compare(const char *title, const std::vector<std::string> &libraries, const options &options,
             const std::function<std::vector<side>(const shape &)> &make) {
    std::printf("\n### %s on two threads, M x N x K: weir's time on one thread, and how many times faster it is on each pool\n",
                title);
    std::vector<std::string> head = {"", "1 thread"};
    for (const auto &peer : peers()) head.push_back(peer.name);
    for (const auto &library : libraries) head.push_back(library);
    head.push_back("ratio, TBB");
    const table t(head);
    std::vector<double> gains, ratios;
    double least = 1e9;
    for (const auto &s : some) {
        const auto sides = make(s);
        for (const auto &side : sides) side();
        for (std::size_t i = 1; i <= peers().size(); i++) {
            // The pool is measured by its first loops, when the threads of the one before are asleep.
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            for (int repeat = 0; repeat < 50; repeat++) sides[i]();
        }
        const auto times = race(sides, options, true);
        std::vector<std::string> cells = {s.name(), duration(times.ns(0))};
        for (std::size_t i = 1; i <= peers().size(); i++) {
            const double gain = times.ratio(0, i);
            cells.push_back(fixed(gain));
            least = std::min(least, gain);
            if (s.operations() >= 2.0 * 256 * 256 * 256) gains.push_back(gain);
        }
        std::size_t best = 0;
        for (std::size_t i = peers().size() + 1; i < sides.size(); i++) {
            cells.push_back(duration(times.ns(i)));
            if (best == 0 || times.ns(i) < times.ns(best)) best = i;
        }
        ratios.push_back(times.ratio(best, 2));
        cells.push_back(fixed(ratios.back()));
        t.row(cells);
    }
    std::printf("\nFrom 256 cubed on %s times faster in the geometric mean of all pools; the least gain of all is %s. Against the best "
                "library %s.\n",
                fixed(geometric_mean(gains)).c_str(), fixed(least).c_str(), fixed(geometric_mean(ratios)).c_str());
}

} // namespace

void bench_threads(const options &options) {
    compare("sgemm", {"OpenBLAS", "BLIS", "oneDNN"}, options, [](const shape &s) {
        const array<float> a(s.size_a(), -4, 4, 1), b(s.size_b(), -4, 4, 2), c(s.size_c());
        // A side keeps the matrices.
        const auto keep = [a, b, c](const side &run) -> side { return [a, b, c, run] { run(); }; };
        std::vector<side> sides = {keep(weir_sgemm_of(s, a.data(), b.data(), c.data()))};
        for (const auto &peer : peers()) sides.push_back(keep(weir_sgemm_of(s, a.data(), b.data(), c.data(), peer.pool)));
        sides.push_back([=] { openblas_sgemm(s, a.data(), b.data(), c.data()); });
        sides.push_back([=] { blis_sgemm(s, a.data(), b.data(), c.data()); });
        sides.push_back([=] { dnnl_sgemm_of(s, a.data(), b.data(), c.data()); });
        return sides;
    });
    compare("u8s8s32", {"oneDNN"}, options, [](const shape &s) {
        const array<std::uint8_t> a(s.size_a(), 0, 255, 1);
        const array<std::int8_t> b(s.size_b(), -128, 127, 2);
        const array<std::int32_t> c(s.size_c());
        const auto keep = [a, b, c](const side &run) -> side { return [a, b, c, run] { run(); }; };
        std::vector<side> sides = {keep(weir_bytes_of(s, a.data(), 0, b.data(), 0, c.data()))};
        for (const auto &peer : peers()) {
            sides.push_back(keep(weir_bytes_of(s, a.data(), 0, b.data(), 0, c.data(), peer.pool)));
        }
        sides.push_back([=] { dnnl_bytes_of(s, a.data(), 0, b.data(), 0, c.data()); });
        return sides;
    });
}

} // namespace bench
