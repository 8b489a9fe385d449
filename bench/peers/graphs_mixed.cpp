// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Random graphs in which cheap and dear nodes are mixed, against a schedule that knows all costs and pays for nothing.
// Where the dear nodes sleep, processors do not matter and there may be more threads than those.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "graphs_random.hpp"
#include "graphs_tables.hpp"
#include "graphs_weir.hpp"

namespace bench {

namespace {

using edge_list = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// Layers of 6 to 12, each node after one to three of the layer before.
edge_list layered(std::uint32_t nodes, random_numbers &random) {
    edge_list edges;
    std::uint32_t before = 0, first = 0, width = 5 + random.up_to(7);
    for (std::uint32_t i = width; i < nodes; i++) {
        if (i == first + width) before = first, first = i, width = 5 + random.up_to(7);
        for (std::uint32_t k = random.up_to(3); k > 0; k--) {
            edges.emplace_back(before + random.up_to(first - before) - 1, i);
        }
    }
    return edges;
}

// Each node after up to three of the 24 before it.
edge_list random_dag(std::uint32_t nodes, random_numbers &random) {
    edge_list edges;
    for (std::uint32_t i = 1; i < nodes; i++) {
        const std::uint32_t near = std::min(i, 24u);
        for (std::uint32_t k = random.up_to(4) - 1; k > 0; k--) edges.emplace_back(i - random.up_to(near), i);
    }
    return edges;
}

// Forks of 2 to 8, whose joins are the next forks.
edge_list fork_join(std::uint32_t nodes, random_numbers &random) {
    edge_list edges;
    for (std::uint32_t fork = 0; fork + 1 < nodes;) {
        const std::uint32_t join = std::min(fork + 2 + random.up_to(7), nodes - 1);
        if (join == fork + 1) edges.emplace_back(fork, join);
        for (std::uint32_t i = fork + 1; i < join; i++) edges.emplace_back(fork, i), edges.emplace_back(i, join);
        fork = join;
    }
    return edges;
}

// Six chains; one node in sixteen waits for another chain, too.
edge_list chains(std::uint32_t nodes, random_numbers &random) {
    constexpr std::uint32_t beside = 6;
    edge_list edges;
    for (std::uint32_t i = beside; i < nodes; i++) {
        edges.emplace_back(i - beside, i);
        if (random.up_to(16) == 1) edges.emplace_back(i - random.up_to(beside - 1), i);
    }
    return edges;
}

// Blocks of two to four branches of different lengths, with a way around in every second one; each node reads a weight
// of its own.
edge_list network_like(std::uint32_t nodes, random_numbers &random) {
    edge_list edges;
    std::uint32_t next = 1, split = 0;
    while (next + 2 < nodes) {
        std::vector<std::uint32_t> ends;
        for (std::uint32_t branch = random.up_to(3) + 1; branch > 0; branch--) {
            std::uint32_t last = split;
            for (std::uint32_t length = random.up_to(4); length > 0 && next + 2 < nodes; length--) {
                const std::uint32_t weight = next++;
                edges.emplace_back(last, next);
                edges.emplace_back(weight, next);
                last = next++;
            }
            if (last != split) ends.push_back(last);
        }
        if (next >= nodes) break;
        for (const auto end : ends) edges.emplace_back(end, next);
        if (ends.empty() || random.up_to(2) == 1) edges.emplace_back(split, next);
        split = next++;
    }
    return edges;
}

struct family {
    const char *name;
    edge_list (*edges)(std::uint32_t nodes, random_numbers &);
};
constexpr family families[] = {{"layers", layered},
                               {"random", random_dag},
                               {"fork-join", fork_join},
                               {"chains", chains},
                               {"network", network_like}};

struct mix {
    const char *name;
    double dear_ns;
    std::uint32_t nodes, dear_in; // one node in so many is dear
};
constexpr mix mixes[] = {{"50 us", 5e4, 600, 10}, {"500 us", 5e5, 160, 10}, {"5 ms", 5e6, 80, 10}};

constexpr double dear_from = 1e4; // ns; cheap nodes take less

struct weighted {
    shape graph;
    std::vector<double> cost;
};

weighted make_weighted(const family &family, const mix &mix, std::uint64_t seed) {
    random_numbers random(seed);
    weighted made;
    auto edges = family.edges(mix.nodes, random);
    made.graph = make_shape(std::string(family.name) + ", " + mix.name, mix.nodes, std::move(edges));
    // Exactly so many, that a graph is no longer than planned: where they are is drawn.
    std::vector<std::uint32_t> places(mix.nodes);
    std::iota(places.begin(), places.end(), 0u);
    for (std::size_t i = places.size(); i-- > 1;) std::swap(places[i], places[random.up_to(i + 1) - 1]);
    made.cost.resize(mix.nodes);
    for (std::uint32_t i = 0; i < mix.nodes; i++) {
        const bool is_dear = i < mix.nodes / mix.dear_in;
        const double draw = random.up_to(1000) / 1000.0;
        // Cheap ones are 0.1 to 2 us, dear ones within a quarter around what the mix says.
        made.cost[places[i]] = is_dear ? mix.dear_ns * (0.75 + 0.5 * draw) : 100 * std::pow(20, draw);
    }
    return made;
}

struct kind {
    int threads;
    bool sleeps;
};

constexpr char with_hints[] = "weir, hints", without_hints[] = "weir, no hints", first_run[] = "weir, first run";

/// What the nodes take on this machine at the moment, from what all of them take one after the other.
std::vector<double> true_costs(const weighted &graph, double serial_ns, bool sleeps) {
    const double planned = std::accumulate(graph.cost.begin(), graph.cost.end(), 0.0);
    auto cost = graph.cost;
    const auto is_dear = [](double ns) { return ns >= dear_from; };
    const auto dear = static_cast<double>(std::count_if(cost.begin(), cost.end(), is_dear));
    for (auto &ns : cost) {
        if (!sleeps) {
            ns *= serial_ns / planned;
        } else if (is_dear(ns)) {
            ns += (serial_ns - planned) / dear; // sleeps end late
        }
    }
    return cost;
}

std::vector<contender> sides(const graph_options &options, const kind &kind, const std::vector<double> &cost) {
    std::vector<contender> list;
    for (auto &contender : side_by_side(options, kind.threads)) {
        if (contender.plays != role::weir) {
            list.push_back(std::move(contender));
        } else if (contender.name == "weir on built-in") {
            const auto *pool = &graph_pools(kind.threads).back().pool;
            list.push_back({with_hints, role::weir,
                            [pool, &cost](const job &job) { return make_weir(job, pool, &cost); }});
            list.push_back({without_hints, role::weir, [pool](const job &job) { return make_weir(job, pool); }});
        }
    }
    return list;
}

// Programs that have never run.
double first_runs(const weighted &graph, const kind &kind, bodies &work, int rounds) {
    std::vector<double> times;
    for (int i = 0; i < rounds; i++) {
        const auto built = make_weir({graph.graph, work.calls(), kind.threads}, &graph_pools(kind.threads).back().pool);
        settle();
        const auto start = now_ns();
        built->run();
        times.push_back(static_cast<double>(now_ns() - start));
        work.expect_runs(1, first_run);
    }
    return median(times);
}

void bench_kind(const graph_options &options, const kind &kind) {
    std::printf("\n%d threads, dear nodes %s:\n", kind.threads, kind.sleeps ? "sleep" : "compute");
    const std::vector<double> none;
    std::vector<std::string> names, cells = {"graph", "nodes", "work / best", "best, us"};
    for (const auto &side : sides(options, kind, none)) {
        if (side.plays != role::floor) names.push_back(side.name);
    }
    names.push_back(first_run);
    cells.insert(cells.end(), names.begin(), names.end());
    cells.insert(cells.end(), {"hints / best peer", "no hints / best peer", "hints / no hints"});
    const table t(cells);
    std::vector<over_shapes> over_best(names.size());
    over_shapes hints_behind, behind, hints_hurt;
    std::uint64_t seed = 1;
    for (const auto &mix : mixes) {
        // A short run leaves out the graphs that take longest, and those whose sleeps are as long as waking up.
        if (options.quick && (mix.dear_ns > 1e6 || (kind.sleeps && mix.dear_ns < 1e5))) continue;
        for (const auto &family : families) {
            const weighted graph = make_weighted(family, mix, seed++);
            if (graph.graph.name.find(options.shape) == std::string::npos) continue;
            bodies work(graph.cost, kind.sleeps ? dear_from : 1e18);
            auto entries = line_up(sides(options, kind, graph.cost), graph.graph, work, kind.threads);
            for (const auto &entry : entries) {
                if (entry.name != without_hints) continue;
                for (int i = 0; i < 5; i++) entry.built->run();
                work.expect_runs(5, entry.name);
            }
            const double first_ns = first_runs(graph, kind, work, options.rounds);
            auto times = race(entries, work, options.rounds);
            const outcome race(graph.graph, std::move(entries), std::move(times));
            const double serial_ns = race.ns_per_node(0) * graph.graph.nodes;
            const auto cost = true_costs(graph, serial_ns, kind.sleeps);
            const double best_ns = rank_schedule(graph.graph, cost, kind.threads);
            cells = {graph.graph.name, std::to_string(graph.graph.nodes), fixed(serial_ns / best_ns),
                     fixed(best_ns / 1e3, 0)};
            for (std::size_t n = 0; n < names.size(); n++) {
                const double ns = names[n] == first_run ? first_ns : race.ratio(race.find(names[n]), 0) * serial_ns;
                over_best[n].add(ns / best_ns, graph.graph.name);
                cells.push_back(fixed(ns / best_ns, 3));
            }
            const auto hints = race.find(with_hints), plain = race.find(without_hints), peer = race.best_peer();
            const bool has_weir = hints != race.size(), has_both = has_weir && peer != race.size();
            const auto compare = [&](bool possible, std::size_t side, std::size_t other, over_shapes &all) {
                if (possible) all.add(race.ratio(side, other), graph.graph.name);
                cells.push_back(possible ? fixed(race.ratio(side, other), 3) : "");
            };
            compare(has_both, hints, peer, hints_behind);
            compare(has_both, plain, peer, behind);
            compare(has_weir, hints, plain, hints_hurt);
            t.row(cells);
        }
    }
    std::printf("\nGeometric means over the graphs of the time / the best schedule's:\n\n");
    for (std::size_t n = 0; n < names.size(); n++) {
        std::printf("- %s: %s.\n", names[n].c_str(), over_best[n].with_largest().c_str());
    }
    std::printf("- weir / best peer: with hints %s, without %s.\n- with hints / without: %s.\n",
                hints_behind.with_largest().c_str(), behind.with_largest().c_str(), hints_hurt.with_largest().c_str());
}

} // namespace

void bench_mixed(const graph_options &options) {
    graph_options mine = options;
    mine.rounds = std::max(options.rounds / 7, 3); // the dear graphs take long
    std::printf("\n## Mixed costs: the time taken / the time of a schedule by rank with free hops\n\n"
                "One node in ten is dear (50 us, 500 us or 5 ms, a quarter more or less), the others take 0.1 to 2\n"
                "us. The schedule always starts the ready node with the longest way to the end; it is simulated\n"
                "with what the nodes take in the serial loop of the same rounds. %d rounds in turn, medians. weir\n"
                "runs on its built-in pool: with true hints, without any after at least 5 runs, and a program's\n"
                "first run. Goals: 1.04 with hints, 1.07 without on average, none over 1.12; 1.03 of the best peer;\n"
                "hints never hurt.\n",
                mine.rounds);
    for (const auto &kind : {kind{2, true}, kind{4, true}, kind{2, false}}) bench_kind(mine, kind);
}

} // namespace bench
