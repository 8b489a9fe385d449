// SPDX-License-Identifier: MIT OR Apache-2.0
//
// OpenBLAS and BLIS. Both export the interface of C to BLAS under the same names, so each is opened by itself.

#include "kernels_products.hpp"

#include <dlfcn.h>

namespace bench {

namespace {

using cblas_sgemm_fn = void(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
constexpr int row_major = 101, plain = 111, transposed = 112;

struct library {
    void *handle;
    cblas_sgemm_fn *sgemm;

    // The shared library with one of these names, the first that has the function.
    explicit library(const std::vector<const char *> &names) : handle(nullptr), sgemm(nullptr) {
        for (const char *name : names) {
            handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (handle == nullptr) continue;
            sgemm = function<cblas_sgemm_fn>("cblas_sgemm");
            if (sgemm != nullptr) return;
        }
    }
    template <class F>
    F *function(const char *name) const {
        return handle == nullptr ? nullptr : reinterpret_cast<F *>(dlsym(handle, name));
    }
    bool run(const shape &s, const float *a, const float *b, float *c) const {
        if (sgemm == nullptr) return false;
        sgemm(row_major, plain, s.transpose_b ? transposed : plain, s.m, s.n, s.k, 1, a, s.k, b,
              s.transpose_b ? s.k : s.n, 0, c, s.n);
        return true;
    }
};

const library &openblas() {
    static const library one({"libopenblas.so.0", "libopenblas.so"});
    return one;
}

const library &blis() {
    static const library one({"libblis.so.4", "libblis.so"});
    return one;
}

} // namespace

bool openblas_sgemm(const shape &s, const float *a, const float *b, float *c) {
    return openblas().run(s, a, b, c);
}

bool blis_sgemm(const shape &s, const float *a, const float *b, float *c) {
    return blis().run(s, a, b, c);
}

std::string openblas_name() {
    if (openblas().sgemm == nullptr) return "no OpenBLAS";
    const auto config = openblas().function<char *()>("openblas_get_config");
    return config == nullptr ? "OpenBLAS" : config();
}

std::string blis_name() {
    if (blis().sgemm == nullptr) return "no BLIS";
    const auto version = blis().function<const char *()>("bli_info_get_version_str");
    return version == nullptr ? "BLIS" : std::string("BLIS ") + version();
}

void set_blas_threads(int threads) {
    if (const auto set = openblas().function<void(int)>("openblas_set_num_threads")) set(threads);
    if (const auto set = blis().function<void(std::int64_t)>("bli_thread_set_num_threads")) set(threads);
}

} // namespace bench
