// SPDX-License-Identifier: MIT OR Apache-2.0

#define EIGEN_USE_THREADS

#include "graphs_weir.hpp"

#include "weir/adapters/eigen.hpp"
#include "weir/adapters/openmp.h"
#include "weir/adapters/tbb.hpp"

namespace bench {

namespace {

class on_weir : public runner {
public:
    on_weir(const job &job, const weir::threadpool *pool) {
        weir::graph graph(job.graph.name);
        std::vector<weir_node> nodes(job.graph.nodes);
        for (std::uint32_t i = 0; i < job.graph.nodes; i++) {
            const std::string name = "n" + std::to_string(i);
            weir::check(weir_graph_add_task(graph, name.c_str(), job.calls[i].fn, job.calls[i].arg, nullptr, 0,
                                            &nodes[i]));
        }
        for (const auto &[from, to] : job.graph.edges) {
            weir::check(weir_graph_add_control_edge(graph, nodes[from], nodes[to]));
        }
        program_ = graph.compile({cpu()});
        if (pool != nullptr) options_.set_threadpool(*pool);
    }
    void run() override {
        weir::check(weir_program_run(program_, nullptr, nullptr, 0, nullptr, 0, options_));
    }

private:
    weir::program program_;
    weir::run_options options_;
};

weir::threadpool on_tbb() {
    tbb::task_arena arena(2); // one of the two places is the caller's
    return weir::adapters::tbb_threadpool(arena, 1);
}

weir::threadpool on_eigen() {
    return weir::adapters::eigen_threadpool(std::make_shared<Eigen::ThreadPool>(1));
}

weir::threadpool on_openmp() {
    weir_threadpool *raw = nullptr;
    weir::check(weir_openmp_threadpool_create(2, &raw));
    return weir::threadpool(raw);
}

} // namespace

const std::vector<named_pool> &graph_pools() {
    static const std::vector<named_pool> pools = [] {
        std::vector<named_pool> list;
        list.push_back({"TBB", on_tbb()});
        list.push_back({"Eigen", on_eigen()});
        list.push_back({"OpenMP", on_openmp()});
        list.push_back({"built-in", weir::threadpool::builtin(1)});
        return list;
    }();
    return pools;
}

const weir::engine &cpu() {
    static const weir::engine engine(WEIR_ENGINE_CPU, 0);
    return engine;
}

std::unique_ptr<runner> make_weir(const job &job, const weir::threadpool *pool) {
    return std::make_unique<on_weir>(job, pool);
}

} // namespace bench
