// SPDX-License-Identifier: MIT OR Apache-2.0

#define EIGEN_USE_THREADS

#include "graphs_weir.hpp"

#include <map>

#include "weir/adapters/eigen.hpp"
#include "weir/adapters/openmp.h"
#include "weir/adapters/tbb.hpp"

namespace bench {

namespace {

class on_weir : public runner {
public:
    on_weir(weir::program program, const weir::threadpool *pool) : program_(std::move(program)) {
        if (pool != nullptr) options_.set_threadpool(*pool);
    }
    void run() override {
        weir::check(weir_program_run(program_, nullptr, nullptr, 0, nullptr, 0, &options_));
    }

private:
    weir::program program_;
    weir::run_options options_;
};

weir::threadpool on_tbb(int threads) {
    tbb::task_arena arena(tbb_arena_size(threads)); // one of its places is the caller's
    return weir::adapters::tbb_threadpool(arena, threads - 1);
}

weir::threadpool on_eigen(int threads) {
    return weir::adapters::eigen_threadpool(std::make_shared<Eigen::ThreadPool>(threads - 1));
}

weir::threadpool on_openmp(int threads) {
    weir_threadpool *raw = nullptr;
    weir::check(weir_openmp_threadpool_create(threads, &raw));
    return weir::threadpool(raw);
}

} // namespace

const std::vector<named_pool> &graph_pools(int threads) {
    static std::map<int, std::vector<named_pool>> pools;
    auto &list = pools[threads];
    if (list.empty()) {
        list.push_back({"TBB", on_tbb(threads)});
        list.push_back({"Eigen", on_eigen(threads)});
        list.push_back({"OpenMP", on_openmp(threads)});
        list.push_back({"built-in", weir::threadpool::builtin(threads - 1)});
    }
    return list;
}

const weir::engine &cpu() {
    static const weir::engine engine(WEIR_ENGINE_CPU, 0);
    return engine;
}

weir::program compile_tasks(const job &job, const std::vector<double> *cost_ns) {
    weir::graph graph(job.graph.name);
    std::vector<weir_node> nodes(job.graph.nodes);
    for (std::uint32_t i = 0; i < job.graph.nodes; i++) {
        const std::string name = "n" + std::to_string(i);
        const std::uint64_t cost = cost_ns == nullptr ? 0 : static_cast<std::uint64_t>((*cost_ns)[i]);
        weir::check(weir_graph_add_task(graph, name.c_str(), job.calls[i].fn, job.calls[i].arg, nullptr, cost,
                                        &nodes[i]));
    }
    for (const auto &[from, to] : job.graph.edges) {
        weir::check(weir_graph_add_control_edge(graph, nodes[from], nodes[to]));
    }
    return graph.compile({cpu()});
}

std::unique_ptr<runner> make_weir(const job &job, const weir::threadpool *pool, const std::vector<double> *cost_ns) {
    return std::make_unique<on_weir>(compile_tasks(job, cost_ns), pool);
}

} // namespace bench
