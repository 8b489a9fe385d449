// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Control flow as TensorFlow's executor runs it: Switch and Merge for cond and case, and Enter, NextIteration and Exit for
// while, which its C interface puts around a condition and a body.

#include <stdexcept>

#include "graphs_control.hpp"
#include "graphs_tensorflow.hpp"

namespace bench {

namespace {

using tensorflow::constant;
using tensorflow::library;
using tensorflow::operation;
using tensorflow::scalar;

class on_tensorflow : public flow_runner {
public:
    on_tensorflow(const flow_program &program, int threads) : graph_(tensorflow::new_graph()) {
        x_ = give(scalar(std::int32_t{0}), TF_INT32);
        result_ = build(program);
        session_ = std::make_unique<tensorflow::session>(graph_.get(), threads);
    }
    void run() override { fetched_ = session_->run(fed_, values_, result_, targets_); }
    std::int32_t result() const override {
        return *static_cast<const std::int32_t *>(library().TF_TensorData(fetched_.get()));
    }

private:
    std::string name() { return "n" + std::to_string(names_++); }
    TF_Output give(tensorflow::tensor value, TF_DataType type) {
        values_.push_back(value.get());
        owned_.push_back(std::move(value));
        fed_.push_back(tensorflow::placeholder(graph_.get(), name(), type));
        return fed_.back();
    }
    TF_Output number(TF_Graph *into, std::int32_t value) { return constant(into, name(), TF_INT32, scalar(value)); }
    TF_Output add(TF_Graph *into, TF_Output x, std::int32_t addend, int times = 1) {
        for (int i = 0; i < times; i++) x = operation(into, "AddV2", name(), {x, number(into, addend)});
        return x;
    }
    // 1 is added so many times. The constant is outside of the branch, as a converter would leave it.
    TF_Output cond(TF_Output predicate, TF_Output x, int then, int otherwise) {
        const auto sides = tensorflow::switch_on(graph_.get(), name(), x, predicate);
        const auto branch = [this](TF_Output y, int times) {
            for (int i = 0; i < times; i++) y = operation(graph_.get(), "AddV2", name(), {y, one_});
            return y;
        };
        return tensorflow::merge(graph_.get(), name(), {branch(sides.first, otherwise), branch(sides.second, then)});
    }

    TF_Output build(const flow_program &program) {
        TF_Graph *graph = graph_.get();
        if (program.kind == flow_kind::while_loop) return build_loop(program);
        if (program.kind == flow_kind::nested_while) return build_nest(program);
        one_ = number(graph, 1);
        switch (program.kind) {
        case flow_kind::untaken_cond: return cond(give(scalar(false), TF_BOOL), x_, program.n, 1);
        case flow_kind::taken_cond: return cond(give(scalar(true), TF_BOOL), x_, program.n, 1);
        case flow_kind::cond_chain: {
            const TF_Output predicate = give(scalar(true), TF_BOOL);
            TF_Output y = x_;
            for (int i = 0; i < program.n; i++) y = cond(predicate, y, 1, 2);
            return y;
        }
        case flow_kind::case_of: {
            const TF_Output index = give(scalar(std::int32_t{program.n - 1}), TF_INT32);
            auto *to = tensorflow::switch_among(graph, name(), x_, index, program.n);
            std::vector<TF_Output> branches;
            for (int i = 0; i < program.n; i++) branches.push_back(add(graph, {to, i}, i));
            return tensorflow::merge(graph, name(), branches);
        }
        case flow_kind::among_plain:
        case flow_kind::cond_among: return build_among(program);
        default: return operation(graph, "AddV2", name(), {x_, one_});
        }
    }

    // The loop over `variables`; build(graph, inputs, outputs) writes a body, and the condition compares the first.
    template <class Body>
    std::vector<TF_Output> loop(TF_Graph *into, std::vector<TF_Output> variables, const char *compare, int limit,
                                const Body &body) {
        std::unique_ptr<TF_Status, decltype(library().TF_DeleteStatus)> status(library().TF_NewStatus(),
                                                                               library().TF_DeleteStatus);
        const auto check = [&status] {
            if (library().TF_GetCode(status.get()) != TF_OK) throw std::runtime_error(library().TF_Message(status.get()));
        };
        const int count = static_cast<int>(variables.size());
        TF_WhileParams parts = library().TF_NewWhile(into, variables.data(), count, status.get());
        check();
        const std::string name_of_loop = name();
        parts.name = name_of_loop.c_str();
        const TF_Output at = number(parts.cond_graph, limit);
        parts.cond_output = operation(parts.cond_graph, compare, name(), {parts.cond_inputs[0], at});
        body(parts.body_graph, parts.body_inputs, parts.body_outputs);
        std::vector<TF_Output> results(variables.size());
        library().TF_FinishWhile(&parts, status.get(), results.data());
        check();
        return results;
    }

    TF_Output build_loop(const flow_program &program) {
        std::vector<TF_Output> variables = {x_};
        for (int i = 1; i < program.variables; i++) variables.push_back(number(graph_.get(), i));
        const auto body = [&](TF_Graph *graph, const TF_Output *in, TF_Output *out) {
            out[0] = add(graph, in[0], 1);
            for (int i = 1; i < program.variables; i++) out[i] = operation(graph, "Relu", name(), {in[i]});
        };
        const auto results = loop(graph_.get(), variables, "LessEqual", program.n, body);
        std::vector<TF_Operation *> exits;
        for (const auto &result : results) exits.push_back(result.oper);
        if (exits.size() > 1) targets_ = {tensorflow::no_op(graph_.get(), name(), exits)}; // none is left out
        return results[0];
    }

    TF_Output build_nest(const flow_program &program) {
        const auto inner_body = [&](TF_Graph *graph, const TF_Output *in, TF_Output *out) {
            out[0] = add(graph, in[0], 1);
            out[1] = add(graph, in[1], 1);
        };
        const auto body = [&](TF_Graph *graph, const TF_Output *in, TF_Output *out) {
            out[0] = add(graph, in[0], 1);
            // j begins at 0 in each iteration: a value of the iteration, which a constant is not.
            const TF_Output zero = operation(graph, "Sub", name(), {in[0], in[0]});
            out[1] = loop(graph, {zero, in[1]}, "Less", program.inner, inner_body)[1];
        };
        return loop(graph_.get(), {number(graph_.get(), 0), x_}, "Less", program.n, body)[1];
    }

    TF_Output build_among(const flow_program &program) {
        const shape &shape = *program.nodes;
        std::vector<std::vector<TF_Operation *>> before(shape.nodes);
        TF_Output y{nullptr, 0};
        for (std::uint32_t i = 0; i < shape.nodes; i++) {
            if (i + 1 == shape.nodes) before[i].push_back(y.oper);
            auto *node = tensorflow::no_op(graph_.get(), name(), before[i]);
            for (std::uint32_t k = shape.first[i]; k < shape.first[i + 1]; k++) before[shape.next[k]].push_back(node);
            if (i == shape.nodes / 2) {
                const TF_Output x = tensorflow::identity(graph_.get(), name(), x_, {node});
                y = program.kind == flow_kind::cond_among ? cond(give(scalar(true), TF_BOOL), x, 1, 2)
                                                          : operation(graph_.get(), "AddV2", name(), {x, one_});
            }
            if (i + 1 == shape.nodes) targets_ = {node};
        }
        return y;
    }

    tensorflow::graph graph_;
    int names_ = 0;
    TF_Output x_{}, one_{}, result_{};
    std::vector<TF_Output> fed_;
    std::vector<TF_Tensor *> values_;
    std::vector<tensorflow::tensor> owned_;
    std::vector<TF_Operation *> targets_;
    std::unique_ptr<tensorflow::session> session_;
    tensorflow::tensor fetched_;
};

} // namespace

std::unique_ptr<flow_runner> make_flow_tensorflow(const flow_program &program, int threads) {
    return std::make_unique<on_tensorflow>(program, threads);
}

} // namespace bench
