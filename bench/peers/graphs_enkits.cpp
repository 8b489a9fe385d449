// SPDX-License-Identifier: MIT OR Apache-2.0
//
// enkiTS: the caller works too. It can wait for one task, so a graph with several ends gets one more node behind them.

#include <TaskScheduler.h>

#include <deque>
#include <map>

#include "graphs.hpp"

namespace bench {

namespace {

enki::TaskScheduler &scheduler_of(int threads) {
    static std::map<int, std::unique_ptr<enki::TaskScheduler>> schedulers;
    auto &scheduler = schedulers[threads];
    if (!scheduler) {
        scheduler = std::make_unique<enki::TaskScheduler>();
        scheduler->Initialize(static_cast<std::uint32_t>(threads));
    }
    return *scheduler;
}

struct task : enki::ITaskSet {
    call work{nullptr, nullptr};
    void ExecuteRange(enki::TaskSetPartition, std::uint32_t) override {
        if (work.fn != nullptr) work.fn(work.arg);
    }
};

class on_enkits : public runner {
public:
    explicit on_enkits(const job &job)
        : scheduler_(scheduler_of(job.threads)), tasks_(job.graph.nodes + 1),
          edges_(job.graph.edges.size() + job.graph.sinks.size()), roots_(job.graph.roots) {
        for (std::uint32_t i = 0; i < job.graph.nodes; i++) tasks_[i].work = job.calls[i];
        std::size_t k = 0;
        for (const auto &[from, to] : job.graph.edges) tasks_[to].SetDependency(edges_[k++], &tasks_[from]);
        last_ = &tasks_[job.graph.sinks[0]];
        if (job.graph.sinks.size() == 1) return;
        last_ = &tasks_[job.graph.nodes];
        for (const auto sink : job.graph.sinks) last_->SetDependency(edges_[k++], &tasks_[sink]);
    }
    void run() override {
        for (const auto root : roots_) scheduler_.AddTaskSetToPipe(&tasks_[root]);
        scheduler_.WaitforTask(last_);
    }

private:
    enki::TaskScheduler &scheduler_;
    std::deque<task> tasks_;
    std::deque<enki::Dependency> edges_;
    std::vector<std::uint32_t> roots_;
    task *last_;
};

} // namespace

std::unique_ptr<runner> make_enkits(const job &job) {
    return std::make_unique<on_enkits>(job);
}

} // namespace bench
