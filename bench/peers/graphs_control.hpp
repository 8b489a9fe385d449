// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Programs with control flow, described once and built by weir and by TensorFlow. All values are 32-bit scalars; a
// program gets x = 0 and returns one of them, which says which way it went.

#ifndef WEIR_BENCH_GRAPHS_CONTROL_HPP
#define WEIR_BENCH_GRAPHS_CONTROL_HPP

#include "graphs.hpp"

namespace bench {

enum class flow_kind {
    plain,        // x + 1
    untaken_cond, // a cond whose other side would add 1 `n` times; this side adds 1 once
    taken_cond,   // the same, going the other way
    cond_chain,   // `n` conds, one after the other, each of which adds 1, or would add 2
    case_of,      // one of `n` branches, the last one; each adds its number
    while_loop,   // i = 0; while (i <= n) i += 1, with `variables` - 1 more variables that go through relu
    nested_while, // `n` times: `inner` times: add 1
    among_plain,  // x + 1 among the nodes of `nodes`: after the middle one, before the last one
    cond_among,   // the same with a cond in the place of x + 1
};

struct flow_program {
    flow_kind kind;
    int n = 0;
    int variables = 1;
    int inner = 0;
    const shape *nodes = nullptr; // empty bodies
    const call *calls = nullptr;

    /// What the program returns.
    std::int32_t result() const {
        switch (kind) {
        case flow_kind::taken_cond:
        case flow_kind::cond_chain: return n;
        case flow_kind::case_of: return n - 1;
        case flow_kind::while_loop: return n + 1;
        case flow_kind::nested_while: return n * inner;
        default: return 1;
        }
    }
};

/// A program that has been built.
class flow_runner {
public:
    flow_runner() = default;
    flow_runner(const flow_runner &) = delete;
    flow_runner &operator=(const flow_runner &) = delete;
    virtual ~flow_runner() = default;
    virtual void run() = 0;
    /// What the last run returned.
    virtual std::int32_t result() const = 0;
};

std::unique_ptr<flow_runner> make_flow_weir(const flow_program &program, bool on_pool);
std::unique_ptr<flow_runner> make_flow_tensorflow(const flow_program &program, int threads);

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_CONTROL_HPP
