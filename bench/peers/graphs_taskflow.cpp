// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Taskflow: all threads are the executor's, and the caller sleeps.

#include <taskflow/taskflow.hpp>

#include <map>

#include "graphs.hpp"

namespace bench {

namespace {

tf::Executor &executor_of(int threads) {
    static std::map<int, std::unique_ptr<tf::Executor>> executors;
    auto &executor = executors[threads];
    if (!executor) executor = std::make_unique<tf::Executor>(static_cast<std::size_t>(threads));
    return *executor;
}

class on_taskflow : public runner {
public:
    explicit on_taskflow(const job &job) : executor_(executor_of(job.threads)) {
        std::vector<tf::Task> tasks;
        for (std::uint32_t i = 0; i < job.graph.nodes; i++) {
            const call work = job.calls[i];
            tasks.push_back(taskflow_.emplace([work] { work.fn(work.arg); }));
        }
        for (const auto &[from, to] : job.graph.edges) tasks[from].precede(tasks[to]);
    }
    void run() override { executor_.run(taskflow_).wait(); }

private:
    tf::Executor &executor_;
    tf::Taskflow taskflow_;
};

} // namespace

std::unique_ptr<runner> make_taskflow(const job &job) {
    return std::make_unique<on_taskflow>(job);
}

} // namespace bench
