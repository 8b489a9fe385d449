// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What nothing can be much below: the same function pointers in a loop that knows the order, and a loop that finds the
// order by counting, as an executor must, with plain counts and on one thread. And what the machine gives at best on two
// threads at the moment: on one that is busy with other things, no executor can reach more.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

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

// Half of the nodes on each of two threads, as if there were no edges. The other thread looks out for the next run for
// two milliseconds and then sleeps.
class two_loops : public runner {
public:
    explicit two_loops(const job &job)
        : calls_(job.calls, job.calls + job.graph.nodes), other_([this] { work(); }) {}
    ~two_loops() override {
        start(quit);
        other_.join();
    }
    void run() override {
        const std::uint64_t mine = asked_.load(std::memory_order_relaxed) + 1;
        start(mine);
        half(calls_.size() / 2, calls_.size());
        while (done_.load(std::memory_order_acquire) != mine) {}
    }

private:
    static constexpr std::uint64_t quit = ~std::uint64_t{0};

    void half(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; i++) calls_[i].fn(calls_[i].arg);
    }
    void start(std::uint64_t what) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            asked_.store(what, std::memory_order_release);
        }
        changed_.notify_one();
    }
    void work() {
        for (std::uint64_t last = 0;;) {
            const auto idle_since = now_ns();
            while (asked_.load(std::memory_order_acquire) == last && now_ns() - idle_since < 2000000) {}
            {
                std::unique_lock<std::mutex> lock(mutex_);
                changed_.wait(lock, [&] { return asked_.load(std::memory_order_acquire) != last; });
                last = asked_.load(std::memory_order_relaxed);
            }
            if (last == quit) return;
            half(0, calls_.size() / 2);
            done_.store(last, std::memory_order_release);
        }
    }

    std::vector<call> calls_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<std::uint64_t> asked_{0}, done_{0};
    std::thread other_;
};

} // namespace

std::unique_ptr<runner> make_two_loops(const job &job) {
    return std::make_unique<two_loops>(job);
}

std::unique_ptr<runner> make_serial_loop(const job &job) {
    return std::make_unique<serial_loop>(job);
}

std::unique_ptr<runner> make_plain_kahn(const job &job) {
    return std::make_unique<plain_kahn>(job);
}

} // namespace bench
