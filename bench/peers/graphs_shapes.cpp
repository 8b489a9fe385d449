// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The usual shapes of graph benchmarks. Random ones have fixed seeds, so that every run has the same graphs; chain,
// wide, fanout, fanin and BM_executor are those of bench/shapes.rs.

#include <algorithm>
#include <stdexcept>

#include "graphs.hpp"
#include "graphs_random.hpp"

namespace bench {

namespace {

using edge_list = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

shape chain(std::uint32_t nodes) {
    edge_list edges;
    for (std::uint32_t i = 1; i < nodes; i++) edges.emplace_back(i - 1, i);
    return make_shape("chain " + std::to_string(nodes), nodes, std::move(edges));
}

// A source, many nodes, a sink.
shape wide(std::uint32_t middle) {
    edge_list edges;
    for (std::uint32_t i = 1; i <= middle; i++) {
        edges.emplace_back(0, i);
        edges.emplace_back(i, middle + 1);
    }
    return make_shape("wide " + std::to_string(middle), middle + 2, std::move(edges));
}

// A binary tree from the root down.
shape fanout(std::uint32_t nodes) {
    edge_list edges;
    for (std::uint32_t i = 1; i < nodes; i++) edges.emplace_back((i - 1) / 2, i);
    return make_shape("fanout " + std::to_string(nodes), nodes, std::move(edges));
}

// The same tree from the leaves up.
shape fanin(std::uint32_t nodes) {
    edge_list edges;
    for (std::uint32_t i = nodes - 1; i > 0; i--) edges.emplace_back(nodes - 1 - i, nodes - 1 - (i - 1) / 2);
    return make_shape("fanin " + std::to_string(nodes), nodes, std::move(edges));
}

// The distribution of TensorFlow's BM_executor(width, depth), executor_test.cc: at each level a random number of the
// ready nodes, in random order, is joined into one, which fans out to a random number of new ones.
shape bm_executor(std::uint32_t width, std::uint32_t depth) {
    random_numbers random(1729);
    std::uint32_t nodes = random.up_to(width);
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < nodes; i++) ready.push_back(i);
    edge_list edges;
    for (std::uint32_t level = 0; level < depth; level++) {
        for (std::size_t i = ready.size(); i-- > 1;) std::swap(ready[i], ready[random.up_to(i + 1) - 1]);
        const std::uint32_t joined = random.up_to(ready.size());
        const std::uint32_t join = nodes++;
        for (std::uint32_t i = 0; i < joined; i++) edges.emplace_back(ready[i], join);
        ready.erase(ready.begin(), ready.begin() + joined);
        for (std::uint32_t i = random.up_to(width); i > 0; i--) {
            edges.emplace_back(join, nodes);
            ready.push_back(nodes++);
        }
    }
    return make_shape("bm " + std::to_string(width) + "x" + std::to_string(depth), nodes, std::move(edges));
}

// A square grid: each node waits for the one above and the one to the left.
shape wavefront(std::uint32_t side) {
    edge_list edges;
    for (std::uint32_t y = 0; y < side; y++) {
        for (std::uint32_t x = 0; x < side; x++) {
            if (x > 0) edges.emplace_back(y * side + x - 1, y * side + x);
            if (y > 0) edges.emplace_back((y - 1) * side + x, y * side + x);
        }
    }
    return make_shape("wavefront " + std::to_string(side) + "x" + std::to_string(side), side * side, std::move(edges));
}

// Layers: each node waits for one to four random ones of the layer before, and one in four for a node of any layer
// before.
shape layers(std::uint32_t width, std::uint32_t depth) {
    random_numbers random(31);
    edge_list edges;
    for (std::uint32_t layer = 1; layer < depth; layer++) {
        for (std::uint32_t i = 0; i < width; i++) {
            const std::uint32_t node = layer * width + i;
            for (std::uint32_t k = random.up_to(4); k > 0; k--) {
                edges.emplace_back(layer * width - random.up_to(width), node);
            }
            if (random.up_to(4) == 1) edges.emplace_back(random.up_to(layer * width) - 1, node);
        }
    }
    return make_shape("layers " + std::to_string(width) + "x" + std::to_string(depth), width * depth,
                      std::move(edges));
}

// One after the other: a split, 30 nodes, a join.
shape split_joins(std::uint32_t stages) {
    constexpr std::uint32_t width = 30;
    edge_list edges;
    for (std::uint32_t stage = 0; stage < stages; stage++) {
        const std::uint32_t split = stage * (width + 2);
        for (std::uint32_t i = 1; i <= width; i++) {
            edges.emplace_back(split, split + i);
            edges.emplace_back(split + i, split + width + 1);
        }
        if (stage > 0) edges.emplace_back(split - 1, split);
    }
    return make_shape("split-joins " + std::to_string(stages), stages * (width + 2), std::move(edges));
}

// Splits and joins in one another, uneven: a part of n nodes is one node, a row of two parts, or a split, two to five
// parts, and a join.
class nested {
public:
    explicit nested(std::uint32_t budget) {
        part(budget);
        graph_ = make_shape("nested splits " + std::to_string(budget), nodes_, std::move(edges_));
    }
    shape take() { return std::move(graph_); }

private:
    // First and last node of what was added.
    std::pair<std::uint32_t, std::uint32_t> part(std::uint32_t budget) {
        if (budget < 4) {
            const std::uint32_t node = nodes_++;
            return {node, node};
        }
        if (random_.up_to(2) == 1) {
            const std::uint32_t cut = random_.up_to(budget - 1);
            const auto head = part(cut);
            const auto tail = part(budget - cut);
            edges_.emplace_back(head.second, tail.first);
            return {head.first, tail.second};
        }
        const std::uint32_t split = nodes_++;
        std::vector<std::uint32_t> ends;
        const std::uint32_t branches = random_.up_to(4) + 1;
        for (std::uint32_t i = 0; i < branches; i++) {
            const auto branch = part(std::max(1u, (budget - 2) / branches));
            edges_.emplace_back(split, branch.first);
            ends.push_back(branch.second);
        }
        const std::uint32_t join = nodes_++;
        for (const auto end : ends) edges_.emplace_back(end, join);
        return {split, join};
    }

    random_numbers random_{77};
    std::uint32_t nodes_ = 0;
    edge_list edges_;
    shape graph_;
};

} // namespace

shape make_shape(std::string name, std::uint32_t nodes, edge_list edges) {
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    shape graph;
    graph.name = std::move(name);
    graph.nodes = nodes;
    graph.first.assign(nodes + 1, 0);
    graph.in_degree.assign(nodes, 0);
    for (const auto &[from, to] : edges) {
        if (from >= to || to >= nodes) throw std::logic_error(graph.name + ": an edge that does not go up");
        graph.first[from + 1]++;
        graph.in_degree[to]++;
        graph.next.push_back(to); // the edges are sorted
    }
    for (std::uint32_t i = 0; i < nodes; i++) {
        graph.first[i + 1] += graph.first[i];
        if (graph.in_degree[i] == 0) graph.roots.push_back(i);
        if (graph.first[i] == graph.first[i + 1]) graph.sinks.push_back(i);
    }
    graph.edges = std::move(edges);
    return graph;
}

std::vector<shape> shapes(extent extent) {
    const std::uint32_t cut = extent == extent::small ? 8 : 1;
    std::vector<shape> all;
    all.push_back(chain(8192 / cut));
    all.push_back(wide(8192 / cut));
    all.push_back(fanout(8192 / cut - 1));
    all.push_back(fanin(8192 / cut - 1));
    all.push_back(bm_executor(16, 1024 / cut));
    all.push_back(bm_executor(1024 / cut, 16));
    if (extent == extent::all) {
        all.push_back(bm_executor(32, 8192));
        all.push_back(bm_executor(8192, 32));
    }
    all.push_back(wavefront(cut == 1 ? 90 : 32));
    all.push_back(layers(128, 64 / cut));
    all.push_back(split_joins(256 / cut));
    all.push_back(nested(12288 / cut).take());
    all.push_back(resnet50());
    if (cut == 1) {
        all.push_back(resnet50_training_step());
        all.push_back(transformer(12, 12));
    } else {
        all.push_back(transformer(2, 12));
    }
    return all;
}

shape independent(std::uint32_t nodes) {
    return make_shape(std::to_string(nodes) + " nodes", nodes, {});
}

shape forks(std::uint32_t width, std::uint32_t stages) {
    edge_list edges;
    for (std::uint32_t stage = 0; stage < stages; stage++) {
        const std::uint32_t fork = stage * (width + 1);
        for (std::uint32_t i = 1; i <= width; i++) {
            edges.emplace_back(fork, fork + i);
            edges.emplace_back(fork + i, fork + width + 1);
        }
    }
    return make_shape("forks " + std::to_string(width) + "x" + std::to_string(stages), stages * (width + 1) + 1,
                      std::move(edges));
}

shape inference(std::uint32_t blocks) {
    edge_list edges;
    std::uint32_t nodes = 1;
    for (std::uint32_t block = 0; block < blocks; block++) {
        const std::uint32_t split = nodes - 1;
        std::vector<std::uint32_t> ends;
        for (const std::uint32_t length : {1, 3, 7}) {
            std::uint32_t last = split;
            for (std::uint32_t i = 0; i < length; i++) {
                edges.emplace_back(last, nodes);
                last = nodes++;
            }
            ends.push_back(last);
        }
        for (const auto end : ends) edges.emplace_back(end, nodes);
        nodes++;
    }
    return make_shape("inference " + std::to_string(blocks), nodes, std::move(edges));
}

shape single() {
    return make_shape("one node", 1, {});
}

std::vector<shape> ten_thousand() {
    std::vector<shape> both;
    both.push_back(wide(9998));
    both.push_back(wavefront(100));
    return both;
}

} // namespace bench
