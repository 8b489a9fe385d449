// SPDX-License-Identifier: MIT OR Apache-2.0
//
// oneTBB: its flow graph, and counting on its task_group. The caller works in an arena of its own size.

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <deque>
#include <thread>

#include "graphs_kahn.hpp"

namespace bench {

// TBB has no more workers than processors, however large its arenas are, unless it is told so.
int tbb_arena_size(int threads) {
    const int processors = static_cast<int>(std::thread::hardware_concurrency());
    if (threads > processors) {
        static const tbb::global_control more(tbb::global_control::max_allowed_parallelism, 16);
    }
    return threads;
}

namespace {

class flow : public runner {
public:
    explicit flow(const job &job) : arena_(tbb_arena_size(job.threads)) {
        arena_.execute([&] { build(job); }); // a flow graph runs in the arena in which it was made
    }
    ~flow() override {
        arena_.execute([this] {
            nodes_.clear();
            graph_.reset();
        });
    }
    void run() override {
        arena_.execute([this] {
            for (auto *root : roots_) root->try_put(tbb::flow::continue_msg());
            graph_->wait_for_all();
        });
    }

private:
    using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

    void build(const job &job) {
        graph_ = std::make_unique<tbb::flow::graph>();
        for (std::uint32_t i = 0; i < job.graph.nodes; i++) {
            const call work = job.calls[i];
            nodes_.emplace_back(*graph_, [work](const tbb::flow::continue_msg &) { work.fn(work.arg); });
        }
        for (const auto &[from, to] : job.graph.edges) tbb::flow::make_edge(nodes_[from], nodes_[to]);
        for (const auto root : job.graph.roots) roots_.push_back(&nodes_[root]);
    }

    tbb::task_arena arena_;
    std::unique_ptr<tbb::flow::graph> graph_;
    std::deque<node> nodes_;
    std::vector<node *> roots_;
};

class on_task_group : public runner {
public:
    explicit on_task_group(const job &job) : arena_(tbb_arena_size(job.threads)), kahn_(job) {}
    ~on_task_group() noexcept override {} // task_group's may throw, if somebody has not waited
    void run() override {
        arena_.execute([this] {
            const auto &roots = kahn_.roots();
            for (std::size_t i = 1; i < roots.size(); i++) spawn(roots[i]);
            kahn_.follow(roots[0], [this](std::uint32_t next) { spawn(next); });
            group_.wait();
        });
    }

private:
    void spawn(std::uint32_t node) {
        group_.run([this, node] { kahn_.follow(node, [this](std::uint32_t next) { spawn(next); }); });
    }

    tbb::task_arena arena_;
    kahn kahn_;
    tbb::task_group group_;
};

} // namespace

std::unique_ptr<runner> make_tbb_flow(const job &job) {
    return std::make_unique<flow>(job);
}

std::unique_ptr<runner> make_tbb_kahn(const job &job) {
    return std::make_unique<on_task_group>(job);
}

} // namespace bench
