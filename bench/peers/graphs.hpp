// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Graph executors side by side: what a graph is, what a node does, what a contender is. Nothing of weir's and of no
// peer's, so that a contender can be compiled by itself.

#ifndef WEIR_BENCH_GRAPHS_HPP
#define WEIR_BENCH_GRAPHS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace bench {

// ---- graphs ----

/// A graph. Nodes are numbered so that every edge goes up, and no edge is there twice.
struct shape {
    std::string name;
    std::uint32_t nodes = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges; // (from, to)
    std::vector<std::uint32_t> first;                           // successors of i: next[first[i]] to next[first[i + 1]]
    std::vector<std::uint32_t> next;
    std::vector<std::uint32_t> in_degree;
    std::vector<std::uint32_t> roots; // without predecessors
    std::vector<std::uint32_t> sinks; // without successors
};

/// Fills in what follows from the edges. Throws if one goes down.
shape make_shape(std::string name, std::uint32_t nodes, std::vector<std::pair<std::uint32_t, std::uint32_t>> edges);

/// How large the graphs are: all of them, those under 20,000 nodes, or those at an eighth of their size.
enum class extent { all, medium, small };
/// The graphs of all tables: the usual shapes, then real networks.
std::vector<shape> shapes(extent extent);
/// One node.
shape single();
/// Nodes without edges.
shape independent(std::uint32_t nodes);
/// One after the other: a fork into `width` nodes, and a join that is the next fork.
shape forks(std::uint32_t width, std::uint32_t stages);
/// Blocks as in networks for images: branches of 1, 3 and 7 nodes between a split and a join, which is the next split.
shape inference(std::uint32_t blocks);
/// 10,000 nodes: a source, many, a sink; a square grid.
std::vector<shape> ten_thousand();

// The networks, operator by operator (graphs_networks.cpp).
shape resnet50();
shape resnet50_training_step();
shape transformer(int layers, int heads);

/// How long the best schedule on two threads is if all nodes take one unit of time.
struct schedule {
    std::uint32_t bound;  // no schedule is shorter: half of the nodes, or the longest path
    std::uint32_t length; // of the schedule that takes the nodes with the longest way to the end first
};
schedule best_of_two(const shape &graph);

/// How long a schedule on so many machines takes that always starts the ready node with the longest way to the end, at
/// no cost. Node i takes cost[i].
double rank_schedule(const shape &graph, const std::vector<double> &cost, int machines);

// ---- what a node does ----

using body_fn = std::int32_t (*)(void *);

/// A body and its argument, as weir_graph_add_task takes them.
struct call {
    body_fn fn;
    void *arg;
};

/// Bodies of about `ns` each, 0 = nothing but the counter. Each counts in a place of its own.
class bodies {
public:
    bodies(std::uint32_t nodes, double ns);
    /// Node i takes about ns[i]. Nodes of `asleep_from` ns and more sleep, so that they need no processor.
    explicit bodies(const std::vector<double> &ns, double asleep_from = 1e18);
    /// From the next run on, all nodes compute for about `ns`. For bodies that were made with a cost for each.
    void set_all(double ns);
    const call *calls() const { return calls_.data(); }
    /// Throws unless each node has run exactly so often since the call before.
    void expect_runs(std::uint64_t runs, const std::string &who);

private:
    std::uint32_t nodes_;
    std::size_t stride_; // in counters
    std::vector<std::uint64_t> counters_;
    std::vector<call> calls_;
    std::uint64_t runs_ = 0;
};

// ---- contenders ----

/// What a contender builds from: it may keep references to the graph and the calls.
struct job {
    const shape &graph;
    const call *calls;
    int threads; // that work, the caller among them where it does
};

/// A graph that has been built and can be run again and again.
class runner {
public:
    runner() = default;
    runner(const runner &) = delete;
    runner &operator=(const runner &) = delete;
    virtual ~runner() = default;
    /// From call to return, all nodes have run.
    virtual void run() = 0;
};

enum class role {
    floor,         // a plain loop: what is compared with
    machine,       // plain loops on two threads, which heed no edge: what the processors give at best just now
    weir,          // what is compared
    peer,          // what it is compared with
    bodiless_peer, // a peer whose nodes are its own empty operations
};

struct contender {
    std::string name;
    role plays;
    std::function<std::unique_ptr<runner>(const job &)> make;
};

/// All that were compiled in, for this many threads; the serial loop first, then plain Kahn.
std::vector<contender> contenders(int threads);
/// Why the others are missing, one line each.
std::vector<std::string> missing_contenders();

std::unique_ptr<runner> make_serial_loop(const job &job);
std::unique_ptr<runner> make_plain_kahn(const job &job);
std::unique_ptr<runner> make_two_loops(const job &job);
/// `threads`, after TBB has been told to have as many, also where there are fewer processors.
int tbb_arena_size(int threads);
std::unique_ptr<runner> make_tbb_flow(const job &job);
std::unique_ptr<runner> make_tbb_kahn(const job &job);
std::unique_ptr<runner> make_openmp_kahn(const job &job); // libgomp
std::unique_ptr<runner> make_eigen_kahn(const job &job);
std::unique_ptr<runner> make_taskflow(const job &job);
std::unique_ptr<runner> make_enkits(const job &job);
std::unique_ptr<runner> make_tensorflow(const job &job);

// ---- races ----

struct graph_options : options {
    std::string shape; // only shapes with this in their names; empty = all
    std::string side;  // only contenders with this in their names, and the floors
};

/// A contender at the start: built, tried and warm.
struct entry {
    std::string name;
    role plays;
    std::unique_ptr<runner> built;
};

/// Builds the contenders. Each first runs a few times with bodies that prove the order of the nodes.
std::vector<entry> line_up(const std::vector<contender> &contenders, const shape &graph, bodies &bodies, int threads);

/// What is timed, and what is looked at after some runs to see that they were done: it throws if not.
struct lane {
    side run;
    std::function<void(std::uint64_t runs)> check;
};

/// Nanoseconds per run. In each round it is each lane's turn once: a pause in which the threads of the lane before go
/// to sleep, a millisecond of runs that do not count, then four milliseconds of runs, at least one, whose median is the
/// round's figure. Then all of them are checked, counted or not.
timings race(const std::vector<lane> &lanes, int rounds);
timings race(const std::vector<entry> &entries, bodies &bodies, int rounds);

/// What reading the clock takes. It is taken off from what race() times.
double clock_ns();

/// Waits until no other thread of this process works, without letting this processor fall asleep.
void settle();

/// How often the other threads of this process have gone to sleep so far.
std::int64_t sleeps_of_others();

// ---- sections ----

void bench_empty1(const graph_options &options);
void bench_empty2(const graph_options &options);
void bench_us1(const graph_options &options);
void bench_us20(const graph_options &options);
void bench_one(const graph_options &options);
void bench_control(const graph_options &options);
void bench_mixed(const graph_options &options);
void bench_uneven_nodes(const graph_options &options);
void bench_forks(const graph_options &options);
void bench_changing(const graph_options &options);
void bench_first(const graph_options &options);
void bench_paced(const graph_options &options);
void bench_networks(const graph_options &options);
void bench_data(const graph_options &options);

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_HPP
