// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What nothing can be much below: the same function pointers in a loop that knows the order, and a loop that finds the
// order by counting, as an executor must, with plain counts and on one thread.

#include "graphs.hpp"

namespace bench {

namespace {

class serial_loop : public runner {
public:
    explicit serial_loop(const job &job) : calls_(job.calls, job.calls + job.graph.nodes) {}
    void run() override {
        for (const auto &call : calls_) call.fn(call.arg);
    }

private:
    std::vector<call> calls_;
};

// The counts put themselves back, so a run begins with nothing but the roots.
class plain_kahn : public runner {
public:
    explicit plain_kahn(const job &job) : roots_(job.graph.roots), next_(job.graph.next), ready_(job.graph.nodes) {
        for (std::uint32_t i = 0; i < job.graph.nodes; i++) {
            nodes_.push_back({job.calls[i], job.graph.first[i], job.graph.first[i + 1]});
            counts_.push_back({job.graph.in_degree[i], job.graph.in_degree[i]});
        }
    }
    void run() override {
        std::uint32_t *top = ready_.data();
        for (const auto root : roots_) *top++ = root;
        while (top != ready_.data()) {
            const node &node = nodes_[*--top];
            node.call.fn(node.call.arg);
            for (std::uint32_t k = node.first; k < node.last; k++) {
                const std::uint32_t to = next_[k];
                if (--counts_[to].waits == 0) {
                    counts_[to].waits = counts_[to].in_degree;
                    *top++ = to;
                }
            }
        }
    }

private:
    struct node {
        struct call call;
        std::uint32_t first, last;
    };
    struct count {
        std::uint32_t waits, in_degree;
    };
    std::vector<std::uint32_t> roots_, next_, ready_;
    std::vector<node> nodes_;
    std::vector<count> counts_;
};

} // namespace

std::unique_ptr<runner> make_serial_loop(const job &job) {
    return std::make_unique<serial_loop>(job);
}

std::unique_ptr<runner> make_plain_kahn(const job &job) {
    return std::make_unique<plain_kahn>(job);
}

} // namespace bench
