// SPDX-License-Identifier: MIT OR Apache-2.0
//
// cond, case and while, beside TensorFlow where it is there. What a run costs besides is measured with a program of one
// addition. A session of TensorFlow's takes 5 us or 30 with it, as its threads are awake or asleep.

#include "graphs_control.hpp"

#include <cstdio>
#include <stdexcept>

namespace bench {

namespace {

#ifdef WEIR_BENCH_TENSORFLOW_PATH
constexpr bool has_tensorflow = true;
#else
constexpr bool has_tensorflow = false;
#endif

struct flow_lane {
    std::string name;
    std::unique_ptr<flow_runner> built;
};

// The program on the caller alone, on weir's built-in pool, and by TensorFlow.
std::vector<flow_lane> build_all(const flow_program &program) {
    std::vector<flow_lane> all;
    all.push_back({"weir", make_flow_weir(program, false)});
    all.push_back({"weir on built-in", make_flow_weir(program, true)});
#ifdef WEIR_BENCH_TENSORFLOW_PATH
    all.push_back({"TensorFlow", make_flow_tensorflow(program, 2)});
#endif
    return all;
}

// Several programs in one race: times of lane l of program p are at p * lanes + l.
struct flow_race {
    std::size_t lanes;
    timings times;
    double ns(std::size_t program, std::size_t lane) const { return times.ns(program * lanes + lane); }
    double ratio(std::size_t program, std::size_t lane, std::size_t other_program, std::size_t other_lane) const {
        return times.ratio(program * lanes + lane, other_program * lanes + other_lane);
    }
};

flow_race race_programs(const std::vector<flow_program> &programs, const graph_options &options,
                        bodies *work = nullptr) {
    std::vector<flow_lane> built;
    std::vector<lane> lanes;
    std::size_t count = 0;
    for (const auto &program : programs) {
        auto all = build_all(program);
        count = all.size();
        for (auto &one : all) {
            flow_runner *runner = one.built.get();
            const bool has_bodies = work != nullptr && one.name != "TensorFlow";
            const auto check = [runner, name = one.name, expected = program.result(), has_bodies, work](std::uint64_t runs) {
                if (runner->result() != expected) {
                    throw std::runtime_error(name + " returned " + std::to_string(runner->result()) + ", not " +
                                             std::to_string(expected));
                }
                if (has_bodies) work->expect_runs(runs, name);
            };
            for (int i = 0; i < 20; i++) {
                runner->run();
                check(1);
            }
            lanes.push_back({[runner] { runner->run(); }, check});
            built.push_back(std::move(one));
        }
    }
    return {count, race(lanes, options.rounds)};
}

std::vector<std::string> with_tensorflow(std::vector<std::string> cells, std::vector<std::string> more) {
    if (has_tensorflow) cells.insert(cells.end(), more.begin(), more.end());
    return cells;
}

// One row per program, after the first, which is what a run costs without control flow.
void conds(const graph_options &options) {
    const std::vector<std::pair<std::string, flow_program>> rows = {
        {"no control flow", {flow_kind::plain}},
        {"cond, 1 node not taken", {flow_kind::untaken_cond, 1}},
        {"cond, 10 nodes not taken", {flow_kind::untaken_cond, 10}},
        {"cond, 1000 nodes not taken", {flow_kind::untaken_cond, 1000}},
        {"cond, 1000 nodes taken", {flow_kind::taken_cond, 1000}},
        {"case of 2", {flow_kind::case_of, 2}},
        {"case of 16", {flow_kind::case_of, 16}},
        {"case of 256", {flow_kind::case_of, 256}},
        {"chain of 10 conds", {flow_kind::cond_chain, 10}},
        {"chain of 100 conds", {flow_kind::cond_chain, 100}},
        {"chain of 1000 conds", {flow_kind::cond_chain, 1000}},
    };
    std::vector<flow_program> programs;
    for (const auto &row : rows) programs.push_back(row.second);
    const auto race = race_programs(programs, options);
    std::printf("\n### cond and case\n\nA run, and what it takes more than without control flow. The kernels add 1.\n");
    const table t(with_tensorflow({"", "weir", "more", "weir on built-in"}, {"TensorFlow", "TensorFlow / weir"}));
    for (std::size_t i = 0; i < rows.size(); i++) {
        const double more = race.ns(i, 0) - race.ns(0, 0);
        std::vector<std::string> theirs;
        if (has_tensorflow) theirs = {duration(race.ns(i, 2)), fixed(race.ratio(i, 2, i, 0), 1)};
        t.row(with_tensorflow({rows[i].first, fixed(race.ns(i, 0), 1) + " ns", fixed(more, 1) + " ns",
                               fixed(race.ns(i, 1), 1) + " ns"},
                              theirs));
    }
    const double per_cond = (race.ns(10, 0) - race.ns(9, 0)) / 900;
    const double per_node = (race.ns(4, 0) - race.ns(1, 0)) / 999;
    std::printf("\n1000 nodes not taken against 1: %s ns more. One more cond in a chain: %s ns with the node in it, which by\n"
                "itself takes %s ns.\n",
                fixed(race.ns(3, 0) - race.ns(1, 0), 1).c_str(), fixed(per_cond, 1).c_str(),
                fixed(per_node, 1).c_str());
}

void loops(const graph_options &options) {
    std::printf("\n### BM_LoweredWhileLoop(iterations, variables)\n\n"
                "The body runs once more than `iterations` says. All variables are fetched.\n");
    const table t(with_tensorflow({"", "weir", "per iteration", "per variable and iteration", "weir on built-in"},
                                  {"TensorFlow", "TensorFlow / weir"}));
    for (const int variables : {1, 100}) {
        for (const int iterations : {0, 1, 10, 100, 1000}) {
            const flow_program program{flow_kind::while_loop, iterations, variables};
            const auto race = race_programs({program}, options);
            const double each = race.ns(0, 0) / (iterations + 1);
            std::vector<std::string> theirs;
            if (has_tensorflow) theirs = {duration(race.ns(0, 2)), fixed(race.ratio(0, 2, 0, 0), 1)};
            t.row(with_tensorflow({"(" + std::to_string(iterations) + ", " + std::to_string(variables) + ")",
                                   duration(race.ns(0, 0)), fixed(each, 1) + " ns", fixed(each / variables, 1) + " ns",
                                   duration(race.ns(0, 1))},
                                  theirs));
        }
    }
}

void nests(const graph_options &options) {
    std::printf("\n### while in while\n\nThe inner body adds 1 to a sum and to its own count.\n");
    const table t(with_tensorflow({"", "weir", "per inner iteration", "weir on built-in"},
                                  {"TensorFlow", "TensorFlow / weir"}));
    const std::pair<int, int> sizes[] = {{10, 10}, {100, 10}, {10, 100}, {100, 100}};
    for (const auto &[outer, inner] : sizes) {
        const flow_program program{flow_kind::nested_while, outer, 1, inner};
        const auto race = race_programs({program}, options);
        std::vector<std::string> theirs;
        if (has_tensorflow) theirs = {duration(race.ns(0, 2)), fixed(race.ratio(0, 2, 0, 0), 1)};
        t.row(with_tensorflow({std::to_string(outer) + " x " + std::to_string(inner), duration(race.ns(0, 0)),
                               fixed(race.ns(0, 0) / (outer * inner), 1) + " ns", duration(race.ns(0, 1))},
                              theirs));
    }
}

void among(const graph_options &options) {
    std::printf("\n### One cond among 10,000 plain nodes\n\n"
                "Both programs have one addition more, after the middle node and before the last; in the second one it is in\n"
                "a cond. Empty bodies; TensorFlow's nodes are NoOps.\n");
    const table t(with_tensorflow({"", "weir without", "with", "ratio", "on built-in: ratio"},
                                  {"TensorFlow without", "with", "ratio"}));
    for (const auto &graph : ten_thousand()) {
        bodies work(graph.nodes, 0);
        flow_program without{flow_kind::among_plain}, with{flow_kind::cond_among};
        without.nodes = with.nodes = &graph;
        without.calls = with.calls = work.calls();
        const auto race = race_programs({without, with}, options, &work);
        std::vector<std::string> theirs;
        if (has_tensorflow) theirs = {duration(race.ns(0, 2)), duration(race.ns(1, 2)), fixed(race.ratio(1, 2, 0, 2), 3)};
        t.row(with_tensorflow({graph.name, duration(race.ns(0, 0)), duration(race.ns(1, 0)),
                               fixed(race.ratio(1, 0, 0, 0), 3), fixed(race.ratio(1, 1, 0, 1), 3)},
                              theirs));
    }
}

} // namespace

void bench_control(const graph_options &options) {
    std::printf("\n## Control flow\n\nFrom call to return, %d rounds in turn, medians; \"weir\" is the caller alone.%s\n",
                options.rounds, has_tensorflow ? " TensorFlow has two threads." : "");
    conds(options);
    loops(options);
    nests(options);
    among(options);
}

} // namespace bench
