// SPDX-License-Identifier: MIT OR Apache-2.0
//
// From races to tables: one race per shape, and what is read off over all shapes.

#ifndef WEIR_BENCH_GRAPHS_TABLES_HPP
#define WEIR_BENCH_GRAPHS_TABLES_HPP

#include "graphs.hpp"

namespace bench {

/// The race of one shape.
class outcome {
public:
    outcome(shape graph, std::vector<entry> entries, timings times);
    const shape &graph() const { return graph_; }
    std::size_t size() const { return names_.size(); }
    const std::string &name(std::size_t side) const { return names_[side]; }
    /// Sides of this kind; role::peer stands for both kinds of peers.
    std::vector<std::size_t> all(role plays) const;
    std::size_t find(const std::string &name) const;
    double ns_per_node(std::size_t side) const { return times_.ns(side) / graph_.nodes; }
    /// How many times longer `side` takes than `other`.
    double ratio(std::size_t side, std::size_t other) const { return times_.ratio(side, other); }
    /// The fastest peer; size() if there is none.
    std::size_t best_peer() const;
    /// How many times longer the slowest of weir's sides takes than the fastest peer; 0 if either is missing.
    double behind() const;

private:
    shape graph_;
    std::vector<std::string> names_;
    std::vector<role> roles_;
    timings times_;
};

/// Races on all shapes that are asked for, one after the other; `each` sees each outcome at once. Throws if the options
/// leave no shape.
using outcome_fn = std::function<void(const outcome &)>;
void race_all(const graph_options &options, extent extent, int threads, double body_ns, const outcome_fn &each);

/// Who takes part where nodes have costs of their own: the serial loop, weir on its built-in pool and on Eigen's, and
/// the peers whose nodes have bodies.
std::vector<contender> side_by_side(const graph_options &options, int threads);

/// The race of one graph between them.
outcome race_one(const graph_options &options, shape graph, bodies &work, int threads);

/// The names of the sides, as race_all will run them.
std::vector<std::string> side_names(const graph_options &options, int threads, double body_ns);

/// One figure for each shape: its geometric mean and its extremes.
class over_shapes {
public:
    void add(double value, const std::string &shape);
    double mean() const { return geometric_mean(values_); }
    bool empty() const { return values_.empty(); }
    /// "1.23 (largest 1.50, chain 8192)"
    std::string with_largest() const { return with("largest", true); }
    std::string with_smallest() const { return with("smallest", false); }
    /// On how many shapes the figure is below `limit`.
    int below(double limit) const;
    int count() const { return static_cast<int>(values_.size()); }

private:
    std::string with(const char *word, bool largest) const;
    std::vector<double> values_;
    std::vector<std::string> shapes_;
};

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_TABLES_HPP
