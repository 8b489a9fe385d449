// SPDX-License-Identifier: MIT OR Apache-2.0

#include "graphs_tables.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace bench {

namespace {

bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

std::vector<contender> chosen(const graph_options &options, int threads, double body_ns) {
    std::vector<contender> list;
    for (auto &contender : contenders(threads)) {
        const bool has_bodies = contender.plays != role::bodiless_peer;
        if (body_ns > 0 && (!has_bodies || contender.name == "plain Kahn" || contender.name == "weir")) continue;
        if (body_ns == 0 && contender.plays == role::machine) continue;
        if (contender.plays == role::floor || contender.plays == role::machine || contains(contender.name, options.side)) list.push_back(contender);
    }
    return list;
}

} // namespace

outcome::outcome(shape graph, std::vector<entry> entries, timings times)
    : graph_(std::move(graph)), times_(std::move(times)) {
    for (const auto &entry : entries) {
        names_.push_back(entry.name);
        roles_.push_back(entry.plays);
    }
}

std::vector<std::size_t> outcome::all(role plays) const {
    std::vector<std::size_t> sides;
    for (std::size_t i = 0; i < roles_.size(); i++) {
        const bool counts_as_peer = plays == role::peer && roles_[i] == role::bodiless_peer;
        if (roles_[i] == plays || counts_as_peer) sides.push_back(i);
    }
    return sides;
}

std::size_t outcome::find(const std::string &name) const {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

std::size_t outcome::best_peer() const {
    std::size_t best = size();
    for (const auto side : all(role::peer)) {
        if (best == size() || times_.ns(side) < times_.ns(best)) best = side;
    }
    return best;
}

double outcome::behind() const {
    const auto best = best_peer();
    double worst = 0;
    if (best == size()) return worst;
    for (const auto side : all(role::weir)) worst = std::max(worst, ratio(side, best));
    return worst;
}

void race_all(const graph_options &options, extent extent, int threads, double body_ns, const outcome_fn &each) {
    const auto sides = chosen(options, threads, body_ns);
    bool any = false;
    for (auto &graph : shapes(extent)) {
        if (!contains(graph.name, options.shape)) continue;
        any = true;
        bodies work(graph.nodes, body_ns);
        auto entries = line_up(sides, graph, work, threads);
        auto times = race(entries, work, options.rounds);
        each(outcome(std::move(graph), std::move(entries), std::move(times)));
    }
    if (!any) throw std::runtime_error("no shape is called *" + options.shape + "*");
}

std::vector<contender> side_by_side(const graph_options &options, int threads) {
    std::vector<contender> list;
    for (auto &contender : contenders(threads)) {
        const bool is_asked_for = contender.plays == role::peer || contender.name == "weir on built-in" ||
                                  contender.name == "weir on Eigen";
        const bool is_base = contender.name == "serial loop";
        if (is_base || (is_asked_for && contains(contender.name, options.side))) list.push_back(contender);
    }
    return list;
}

outcome race_one(const graph_options &options, shape graph, bodies &work, int threads) {
    auto entries = line_up(side_by_side(options, threads), graph, work, threads);
    auto times = race(entries, work, options.rounds);
    return outcome(std::move(graph), std::move(entries), std::move(times));
}

std::vector<std::string> side_names(const graph_options &options, int threads, double body_ns) {
    std::vector<std::string> names;
    for (const auto &contender : chosen(options, threads, body_ns)) names.push_back(contender.name);
    return names;
}

void over_shapes::add(double value, const std::string &shape) {
    values_.push_back(value);
    shapes_.push_back(shape);
}

int over_shapes::below(double limit) const {
    return static_cast<int>(std::count_if(values_.begin(), values_.end(), [limit](double v) { return v < limit; }));
}

std::string over_shapes::with(const char *word, bool largest) const {
    const auto extreme = largest ? std::max_element(values_.begin(), values_.end())
                                 : std::min_element(values_.begin(), values_.end());
    if (extreme == values_.end()) return "none";
    const auto &shape = shapes_[static_cast<std::size_t>(extreme - values_.begin())];
    return fixed(mean()) + " (" + word + " " + fixed(*extreme) + ", " + shape + ")";
}

} // namespace bench
