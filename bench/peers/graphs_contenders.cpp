// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Who takes part. The lists name what was found when this was compiled.

#include "graphs_weir.hpp"

namespace bench {

std::unique_ptr<runner> make_libomp_kahn(const job &job);

namespace {

void add_peers(std::vector<contender> &list) {
    list.push_back({"TBB tasks", role::peer, make_tbb_kahn});
    list.push_back({"TBB flow graph", role::peer, make_tbb_flow});
    list.push_back({"OpenMP (libgomp)", role::peer, make_openmp_kahn});
#ifdef WEIR_BENCH_OPENMP_MODULE_PATH
    list.push_back({"OpenMP (libomp)", role::peer, make_libomp_kahn});
#endif
    list.push_back({"Eigen", role::peer, make_eigen_kahn});
#ifdef WEIR_BENCH_WITH_TASKFLOW
    list.push_back({"Taskflow", role::peer, make_taskflow});
#endif
#ifdef WEIR_BENCH_WITH_ENKITS
    list.push_back({"enkiTS", role::peer, make_enkits});
#endif
#ifdef WEIR_BENCH_TENSORFLOW_PATH
    list.push_back({"TensorFlow (NoOps)", role::bodiless_peer, make_tensorflow});
#endif
}

} // namespace

std::vector<contender> contenders(int threads) {
    std::vector<contender> list;
    list.push_back({"serial loop", role::floor, make_serial_loop});
    list.push_back({"plain Kahn", role::floor, make_plain_kahn});
    list.push_back({"weir", role::weir, [](const job &job) { return make_weir(job, nullptr); }});
    if (threads > 1) {
        list.push_back({"machine", role::machine, make_two_loops});
        for (const auto &pool : graph_pools(threads)) {
            list.push_back({"weir on " + pool.name, role::weir,
                            [&pool](const job &job) { return make_weir(job, &pool.pool); }});
        }
    }
    add_peers(list);
    return list;
}

std::vector<std::string> missing_contenders() {
    std::vector<std::string> list;
#ifndef WEIR_BENCH_OPENMP_MODULE_PATH
    list.push_back("OpenMP (libomp): there was no clang with OpenMP");
#endif
#ifndef WEIR_BENCH_WITH_TASKFLOW
    list.push_back("Taskflow: not found; -DWEIR_TASKFLOW_DIR=<its sources>");
#endif
#ifndef WEIR_BENCH_WITH_ENKITS
    list.push_back("enkiTS: not found; -DWEIR_ENKITS_DIR=<its directory src>");
#endif
#ifndef WEIR_BENCH_TENSORFLOW_PATH
    list.push_back("TensorFlow: not found; -DWEIR_TENSORFLOW_DIR=<an unpacked wheel>");
#endif
    return list;
}

} // namespace bench
