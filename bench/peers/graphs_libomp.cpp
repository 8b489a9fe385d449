// SPDX-License-Identifier: MIT OR Apache-2.0
//
// LLVM's OpenMP runtime beside gcc's: both have the same names, so LLVM's is loaded with the module that uses it, and
// looks up names there first.

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include "graphs.hpp"

namespace bench {

std::unique_ptr<runner> make_libomp_kahn(const job &job) {
    using maker = runner *(*)(const struct job *);
    static const maker make = [] {
        setenv("KMP_BLOCKTIME", "1", 0); // idle threads spin for 1 ms, not for 200 into the time of the others
        void *module = dlopen(WEIR_BENCH_OPENMP_MODULE_PATH, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        if (module == nullptr) throw std::runtime_error(dlerror());
        void *symbol = dlsym(module, "bench_make_openmp");
        if (symbol == nullptr) throw std::runtime_error(dlerror());
        return reinterpret_cast<maker>(symbol);
    }();
    return std::unique_ptr<runner>(make(&job));
}

} // namespace bench
