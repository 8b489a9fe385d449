// SPDX-License-Identifier: MIT OR Apache-2.0
//
//     kernels [--rounds=N] [--quick] [--avx2] [peaks] [sgemm] [packed] [batches] [int8] [halves] [vector] [rows] [threads]
//
// weir's kernels, through the C interface, beside OpenBLAS, BLIS, Eigen and oneDNN in one process. In a round each side
// runs in turn, so that a change of the clock meets all of them; the figures are medians over the rounds, the ratios
// those within the rounds. Results are compared before anything is timed. One thread, pinned, but for `threads`. --avx2
// caps weir and oneDNN to AVX2 and leaves the others out. Prints Markdown.

#include "kernels.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <thread>

#include "kernels_products.hpp"

namespace bench {

namespace {

bool is_capped = false;

} // namespace

bool capped() {
    return is_capped;
}

void fail(const std::string &what) {
    std::fprintf(stderr, "kernels: %s (%s)\n", what.c_str(), weir_last_error_message());
    std::exit(1);
}

void same(const std::string &what, const float *ours, const float *theirs, std::size_t size, double tolerance) {
    for (std::size_t i = 0; i < size; i++) {
        const double error = std::fabs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i]));
        if (!(error <= tolerance * std::max(1.0, std::fabs(static_cast<double>(ours[i]))))) {
            fail(what + ": weir has " + std::to_string(ours[i]) + " at " + std::to_string(i) + ", another one " +
                 std::to_string(theirs[i]));
        }
    }
}

void same(const std::string &what, const std::int32_t *ours, const std::int32_t *theirs, std::size_t size) {
    if (std::memcmp(ours, theirs, size * sizeof *ours) != 0) fail(what + ": the sums differ");
}

timings race(const std::vector<side> &sides, const options &options, bool apart) {
    // As many calls to a timing as take the slowest side a millisecond; if that is a single one, fewer rounds. Sides with
    // threads: as many as take the first one two, since the slowest may have lost its processor.
    double ns = 1, first = 1;
    for (const auto &side : sides) {
        side();
        const auto start = now_ns();
        side();
        ns = std::max(ns, static_cast<double>(now_ns() - start));
        if (&side == &sides.front()) first = ns;
    }
    const int calls = static_cast<int>(std::clamp(apart ? 2e6 / first : 1e6 / ns, 1.0, 2000.0));
    const double round = (apart ? 2 * first : ns) * (calls + 1) * static_cast<double>(sides.size());
    const int rounds = static_cast<int>(std::clamp(1.5e9 / round, 5.0, static_cast<double>(options.rounds)));
    return take_turns(sides, rounds, calls, apart);
}

rates::rates(std::string title, std::string unit, std::vector<std::string> peers, double peak, const options &options)
    : peers_(std::move(peers)), peak_(peak), options_(&options) {
    std::printf("\n### %s, %s\n", title.c_str(), unit.c_str());
    std::vector<std::string> head = {"", "weir"};
    if (peak_ > 0) head.push_back("of the peak");
    head.insert(head.end(), peers_.begin(), peers_.end());
    head.push_back("ratio");
    table_ = std::make_unique<table>(head);
}

void rates::row(const std::string &name, double amount, const std::vector<side> &sides) {
    std::vector<side> present;
    for (const auto &side : sides) {
        if (side) present.push_back(side);
    }
    const auto times = race(present, *options_);
    const auto cell = [](double rate) { return fixed(rate, rate < 10 ? 2 : rate < 100 ? 1 : 0); };
    std::vector<std::string> cells = {name, cell(amount / times.ns(0))};
    if (peak_ > 0) cells.push_back(fixed(100 * amount / times.ns(0) / peak_, 0) + " %");
    std::size_t best = 0;
    for (std::size_t i = 1, at = 1; i < sides.size(); i++) {
        cells.push_back(sides[i] ? cell(amount / times.ns(at)) : "");
        if (!sides[i]) continue;
        if (best == 0 || times.ns(at) < times.ns(best)) best = at;
        at++;
    }
    if (best != 0) {
        const double ratio = times.ratio(best, 0);
        ratios_.push_back(ratio);
        cells.push_back(fixed(ratio));
        if (ratio < worst_) worst_ = ratio, worst_name_ = name;
    } else {
        cells.push_back("");
    }
    table_->row(cells);
}

void rates::end() const {
    if (ratios_.empty()) return;
    std::printf("\nGeometric mean %s, worst %s (%s), %zu rows.\n", fixed(geometric_mean(ratios_), 3).c_str(),
                fixed(worst_).c_str(), worst_name_.c_str(), ratios_.size());
    std::fflush(stdout);
}

side weir_call::run() const {
    // Shared by the copies of the side.
    auto self = std::make_shared<weir_call>(*this);
    std::vector<weir_tensor *> handles;
    for (const auto &tensor : self->tensors) handles.push_back(tensor);
    return [self, handles] {
        const std::size_t n = handles.size() - 1;
        weir::check(weir_enqueue(self->stream, self->kernel, handles.data(), n, handles.data() + n, 1));
    };
}

namespace {

struct section {
    const char *name;
    void (*run)(const options &);
};

constexpr section sections[] = {
    {"peaks", bench_peaks},   {"sgemm", bench_sgemm}, {"packed", bench_packed}, {"batches", bench_batches},
    {"int8", bench_int8},     {"halves", bench_halves}, {"vector", bench_vector}, {"rows", bench_rows},
    {"threads", bench_threads},
};

[[noreturn]] void usage() {
    std::fprintf(stderr, "usage: kernels [--rounds=N] [--quick] [--avx2]");
    for (const auto &section : sections) std::fprintf(stderr, " [%s]", section.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
}

options parse(int argc, char **argv) {
    options options;
    options.rounds = 21;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool known = true;
        if (std::strncmp(arg, "--rounds=", 9) == 0) {
            options.rounds = std::atoi(arg + 9);
        } else if (std::strcmp(arg, "--quick") == 0) {
            options.quick = true;
        } else if (std::strcmp(arg, "--avx2") == 0) {
            is_capped = true;
        } else {
            known = false;
            for (const auto &section : sections) known = known || std::strcmp(arg, section.name) == 0;
            options.sections.push_back(arg);
        }
        if (!known || options.rounds < 5) usage();
    }
    return options;
}

std::string processor() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "unknown processor";
}

// Only the calling thread: the libraries' threads, which run for `threads` only, are there already or come later.
void pin(bool one) {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int i = one ? count - 1 : 0; i < count; i++) CPU_SET(static_cast<std::size_t>(i), &set);
    sched_setaffinity(0, sizeof set, &set);
}

void run(const options &options) {
    std::printf("# weir %s, kernels beside others\n\n%s, %u processors%s. %s.\n", weir_version_string(),
                processor().c_str(), std::thread::hardware_concurrency(), capped() ? ", AVX2 only" : "",
                capped() ? dnnl_name().c_str()
                         : (openblas_name() + ", " + blis_name() + ", " + eigen_name() + ", " + dnnl_name()).c_str());
    for (const auto &section : sections) {
        if (!options.wants(section.name)) continue;
        const bool alone = section.run != bench_threads;
        pin(alone);
        set_threads(alone ? 1 : 2);
        section.run(options);
    }
}

} // namespace

} // namespace bench

int main(int argc, char **argv) {
    try {
        const auto options = bench::parse(argc, argv);
        if (bench::capped()) {
            // Both libraries look at these when they are first used.
            setenv("WEIR_MAX_ISA", "avx2", 1);
            setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
        }
        bench::run(options);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "kernels: %s\n", e.what());
        return 1;
    }
    return 0;
}
