// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Costs that change from run to run, and pools that do: how soon an executor that learns has learned again.

#define EIGEN_USE_THREADS

#include <algorithm>
#include <cstdio>

#include "graphs_random.hpp"
#include "graphs_tables.hpp"
#include "graphs_weir.hpp"

#include "weir/adapters/eigen.hpp"

namespace bench {

namespace {

constexpr double cheap_ns = 20, dear_ns = 5e4, regime_dear_ns = 2e4;
constexpr double shared_below = 0.7; // of the serial loop: then it was shared
// Twice the serial loop and half a microsecond: then it was not.
constexpr double cheap_below = 2, cheap_more_ns = 500;

double timed(runner &runner) {
    const auto start = now_ns();
    runner.run();
    return static_cast<double>(now_ns() - start);
}

// What the serial loop takes with the bodies as they are.
double serial_ns(const shape &graph, bodies &work) {
    const auto loop = make_serial_loop({graph, work.calls(), 1});
    std::vector<double> times;
    for (int i = 0; i < 7; i++) times.push_back(timed(*loop));
    work.expect_runs(7, "serial loop");
    return median(times);
}

// How many runs, and how long, until one takes less than `limit_ns`.
struct until {
    int runs = 0;
    double ns = 0, last_ns = 0;
    bool is_over = false; // else it was given up
    std::string text() const {
        if (!is_over) return "none of " + std::to_string(runs) + " in " + duration(ns) + " (" + duration(last_ns) + ")";
        return "run " + std::to_string(runs) + (runs == 1 ? "" : ", after " + duration(ns));
    }
};

until runs_until(runner &runner, bodies &work, double limit_ns, double patience_ns, const std::string &who) {
    until found;
    while (!found.is_over && found.ns < patience_ns) {
        found.last_ns = timed(runner);
        found.runs++;
        found.is_over = found.last_ns < limit_ns;
        if (!found.is_over) found.ns += found.last_ns;
    }
    work.expect_runs(static_cast<std::uint64_t>(found.runs), who);
    return found;
}

struct there_and_back {
    until there, back;
};

there_and_back change(const contender &side, std::uint32_t nodes, int cheap_runs, bool is_quick) {
    const shape graph = independent(nodes);
    bodies work(std::vector<double>(nodes, dear_ns));
    const double dear_serial = serial_ns(graph, work);
    work.set_all(cheap_ns);
    const double cheap_serial = serial_ns(graph, work);
    const auto built = side.make({graph, work.calls(), 2});
    settle();
    for (int i = 0; i < cheap_runs; i++) built->run();
    work.set_all(dear_ns);
    work.expect_runs(static_cast<std::uint64_t>(cheap_runs), side.name);
    there_and_back found;
    found.there = runs_until(*built, work, shared_below * dear_serial, is_quick ? 3e8 : 8e9, side.name);
    for (int i = 0; i < 20; i++) built->run();
    work.set_all(cheap_ns);
    work.expect_runs(20, side.name);
    found.back = runs_until(*built, work, cheap_below * cheap_serial + cheap_more_ns, is_quick ? 2e7 : 1e8, side.name);
    return found;
}

void bench_changes(const graph_options &options, const std::vector<contender> &sides) {
    std::printf("\nIndependent nodes of 20 ns for 5 or 1000 runs, then of 50 us: the first run that takes less than\n"
                "%s of the serial loop, and how long the runs before it took. The way back, after 20 more runs: the\n"
                "first run that takes less than %s times the serial loop and half a microsecond. In brackets: the\n"
                "last run where there was none.\n",
                fixed(shared_below, 1).c_str(), fixed(cheap_below, 0).c_str());
    const table t({"", "64, after 5", "64, after 1000", "8, after 5", "8, after 1000", "back, 64", "back, 8"});
    for (const auto &side : sides) {
        std::vector<std::string> cells = {side.name}, back;
        for (const std::uint32_t nodes : {64u, 8u}) {
            for (const int cheap_runs : {5, 1000}) {
                const auto found = change(side, nodes, cheap_runs, options.quick);
                cells.push_back(found.there.text());
                if (cheap_runs == 1000) back.push_back(found.back.text());
            }
        }
        cells.insert(cells.end(), back.begin(), back.end());
        t.row(cells);
    }
}

// Which runs are dear: every `period`th, or one in so many at random.
struct regime {
    const char *name;
    std::uint32_t period;
    bool is_random;
};
constexpr regime regimes[] = {
    {"every 2nd", 2, false}, {"every 3rd", 3, false}, {"every 10th", 10, false}, {"1 in 10", 10, true}};

void bench_regimes(const graph_options &options, const std::vector<contender> &sides) {
    const int dear_runs = options.quick ? 20 : 60;
    std::printf("\n64 independent nodes of 20 ns, in some runs of 20 us, %d of these in each program: medians of\n"
                "the dear runs' speed-up over the serial loop / of what a cheap run takes.\n",
                dear_runs);
    std::vector<std::string> cells = {""};
    for (const auto &regime : regimes) cells.push_back(regime.name);
    const table t(cells);
    const shape graph = independent(64);
    for (const auto &side : sides) {
        cells = {side.name};
        for (const auto &regime : regimes) {
            bodies work(std::vector<double>(graph.nodes, regime_dear_ns));
            const double dear_serial = serial_ns(graph, work);
            const auto built = side.make({graph, work.calls(), 2});
            random_numbers random(11);
            settle();
            std::vector<double> dear, cheap;
            for (std::uint32_t run = 0; dear.size() < static_cast<std::size_t>(dear_runs); run++) {
                const bool is_dear = regime.is_random ? random.up_to(regime.period) == 1
                                                      : run % regime.period == regime.period - 1;
                work.set_all(is_dear ? regime_dear_ns : cheap_ns);
                (is_dear ? dear : cheap).push_back(timed(*built));
            }
            work.expect_runs(dear.size() + cheap.size(), side.name);
            cells.push_back(fixed(dear_serial / median(dear)) + " / " + duration(median(cheap)));
        }
        t.row(cells);
    }
}

// A program whose runs are each given a pool.
class on_given_pools : public runner {
public:
    on_given_pools(const job &job, std::function<weir::threadpool()> pool_of_run, bool is_closed)
        : program_(compile_tasks(job)), pool_of_run_(std::move(pool_of_run)), is_closed_(is_closed) {}
    void run() override {
        const auto pool = pool_of_run_();
        options_.set_threadpool(pool);
        weir::check(weir_program_run(program_, nullptr, nullptr, 0, nullptr, 0, &options_));
        if (is_closed_) pool.close();
    }

private:
    weir::program program_;
    weir::run_options options_;
    std::function<weir::threadpool()> pool_of_run_;
    bool is_closed_;
};

void bench_pools(const graph_options &options) {
    std::printf("\nweir with other pools from run to run: 64 independent nodes, or 64 forks of 4, speed-up over the serial\n"
                "loop.\n");
    const auto eigen = std::make_shared<Eigen::ThreadPool>(1);
    const auto on_eigen = [eigen] { return weir::adapters::eigen_threadpool(eigen); };
    const weir::threadpool kept[] = {weir::threadpool::builtin(1), weir::threadpool::builtin(1)};
    const weir::threadpool kept_eigen = on_eigen();
    int turn = 0;
    const auto given = [](std::function<weir::threadpool()> pool, bool is_closed = false) {
        return [pool, is_closed](const job &job) { return std::make_unique<on_given_pools>(job, pool, is_closed); };
    };
    const std::vector<contender> sides = {
        {"serial loop", role::floor, make_serial_loop},
        {"one built-in pool", role::weir, given([&] { return kept[0]; })},
        {"two built-in pools by turns", role::weir, given([&] { return kept[turn++ % 2]; })},
        {"one pool on Eigen's threads", role::weir, given([&] { return kept_eigen; })},
        {"a pool object for each run", role::weir, given(on_eigen, true)},
    };
    struct task {
        std::string name;
        shape graph;
        double ns;
    };
    std::vector<task> tasks;
    for (const double ns : {20.0, 200.0, 1000.0, 20000.0}) tasks.push_back({duration(ns), independent(64), ns});
    tasks.push_back({"forks, 5 us", forks(4, 64), 5000});
    std::vector<std::vector<std::string>> rows;
    for (const auto &side : sides) rows.push_back({side.name});
    std::vector<std::string> head = {""};
    for (const auto &task : tasks) {
        head.push_back(task.name);
        bodies work(std::vector<double>(task.graph.nodes, task.ns));
        const auto entries = line_up(sides, task.graph, work, 2);
        const auto times = race(entries, work, options.rounds);
        for (std::size_t side = 0; side < sides.size(); side++) {
            rows[side].push_back(fixed(times.ratio(0, side)) + " (" + duration(times.ns(side)) + ")");
        }
    }
    const table t(head);
    for (const auto &row : rows) t.row(row);
}

} // namespace

void bench_changing(const graph_options &options) {
    std::printf("\n## Costs that change, two threads\n");
    auto sides = side_by_side(options, 2);
    sides.erase(sides.begin()); // the serial loop
    bench_changes(options, sides);
    bench_regimes(options, sides);
    bench_pools(options);
}

} // namespace bench
