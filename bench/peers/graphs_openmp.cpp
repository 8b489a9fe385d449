// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counting on OpenMP tasks. This file is compiled twice: with the program, on gcc's runtime, and by clang as a module on
// LLVM's, which the program loads (graphs_libomp.cpp).

#include "graphs_kahn.hpp"

namespace bench {

namespace {

class on_openmp : public runner {
public:
    explicit on_openmp(const job &job) : kahn_(job), threads_(job.threads) {}
    void run() override {
#pragma omp parallel num_threads(threads_)
#pragma omp single
        {
            const auto &roots = kahn_.roots();
            for (std::size_t i = 1; i < roots.size(); i++) spawn(roots[i]);
            kahn_.follow(roots[0], [this](std::uint32_t next) { spawn(next); });
        } // no thread leaves the region before all tasks are done
    }

private:
    void spawn(std::uint32_t node) {
#pragma omp task firstprivate(node)
        kahn_.follow(node, [this](std::uint32_t next) { spawn(next); });
    }

    kahn kahn_;
    int threads_;
};

} // namespace

#ifdef WEIR_BENCH_OPENMP_MODULE
extern "C" __attribute__((visibility("default"))) runner *bench_make_openmp(const job *job) {
    return new on_openmp(*job);
}
#else
std::unique_ptr<runner> make_openmp_kahn(const job &job) {
    return std::make_unique<on_openmp>(job);
}
#endif

} // namespace bench
