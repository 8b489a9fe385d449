// SPDX-License-Identifier: MIT OR Apache-2.0

#include <weir/control.h>

#include "graphs_control.hpp"
#include "graphs_weir.hpp"

namespace bench {

namespace {

// ---- kernels over scalars, in C as a host would write them ----

struct arguments {
    const weir_tensor_view *in = nullptr, *out = nullptr;
    weir_status status;
    explicit arguments(const weir_kernel_context *context) {
        std::size_t count = 0;
        status = weir_kernel_context_get_inputs(context, &in, &count);
        if (status == WEIR_OK) status = weir_kernel_context_get_outputs(context, &out, &count);
    }
    std::int32_t input(std::size_t i) const { return *static_cast<const std::int32_t *>(in[i].data); }
    std::int32_t &output() const { return *static_cast<std::int32_t *>(out[0].data); }
};

std::int32_t add_constant(void *addend, weir_kernel_context *context) {
    const arguments a(context);
    if (a.status == WEIR_OK) a.output() = a.input(0) + static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(addend));
    return a.status;
}

std::int32_t relu(void *, weir_kernel_context *context) {
    const arguments a(context);
    if (a.status == WEIR_OK) a.output() = a.input(0) > 0 ? a.input(0) : 0;
    return a.status;
}

std::int32_t at_most(void *, weir_kernel_context *context) {
    const arguments a(context);
    if (a.status == WEIR_OK) *static_cast<std::uint8_t *>(a.out[0].data) = a.input(0) <= a.input(1);
    return a.status;
}

std::int32_t less(void *, weir_kernel_context *context) {
    const arguments a(context);
    if (a.status == WEIR_OK) *static_cast<std::uint8_t *>(a.out[0].data) = a.input(0) < a.input(1);
    return a.status;
}

const weir_tensor_desc number = weir::desc(WEIR_S32, {});
const weir_tensor_desc truth = weir::desc(WEIR_BOOL, {});

weir::kernel kernel(const char *name, weir_compute_fn compute, std::size_t inputs, const weir_tensor_desc &output,
                    std::int32_t user = 0) {
    const weir_tensor_desc ins[2] = {number, number};
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.name = name;
    desc.compute = compute;
    desc.user = reinterpret_cast<void *>(static_cast<std::intptr_t>(user));
    desc.num_inputs = inputs;
    desc.inputs = ins;
    desc.num_outputs = 1;
    desc.outputs = &output;
    weir_kernel *raw = nullptr;
    weir::check(weir_kernel_create_host(cpu(), &desc, &raw));
    return weir::kernel(raw);
}

weir::tensor scalar(std::int32_t value) {
    weir::tensor tensor(cpu(), number);
    *tensor.data<std::int32_t>() = value;
    return tensor;
}

// ---- graphs of them ----

using values = std::vector<weir_value>;

class builder {
public:
    explicit builder(const char *name = "flow") : graph_(name) {}
    weir::graph &graph() { return graph_; }
    std::string name() { return "n" + std::to_string(names_++); }

    weir_value input(const weir_tensor_desc &desc = number) { return graph_.add_input(name(), desc); }
    weir_value constant(std::int32_t value) { return graph_.add_constant(name(), scalar(value)); }
    weir_value add(weir_value x, std::int32_t addend) {
        return call(kernel("add", add_constant, 1, number, addend), {x});
    }
    weir_value add_one(weir_value x) {
        static const weir::kernel one = kernel("add one", add_constant, 1, number, 1);
        return call(one, {x});
    }
    weir_value through_relu(weir_value x) {
        static const weir::kernel shared = kernel("relu", relu, 1, number);
        return call(shared, {x});
    }
    weir_value is_at_most(weir_value x, weir_value limit) {
        static const weir::kernel shared = kernel("at most", at_most, 2, truth);
        return call(shared, {x, limit});
    }
    weir_value is_less(weir_value x, weir_value limit) {
        static const weir::kernel shared = kernel("less", less, 2, truth);
        return call(shared, {x, limit});
    }
    weir_value cond(weir_value predicate, builder &then, builder &otherwise, weir_value x) {
        weir_value out = 0;
        auto desc = weir::sized<weir_cond_desc>();
        desc.predicate = predicate, desc.then_graph = then.graph_, desc.else_graph = otherwise.graph_;
        desc.inputs = &x, desc.num_inputs = 1;
        weir::check(weir_graph_add_cond(graph_, name().c_str(), &desc, &out, 1, &last_));
        return out;
    }
    weir_value choose(weir_value index, const std::vector<builder> &branches, weir_value x) {
        std::vector<const weir_graph *> raw;
        for (const auto &branch : branches) raw.push_back(branch.graph_.get());
        weir_value out = 0;
        auto desc = weir::sized<weir_case_desc>();
        desc.index = index, desc.branches = raw.data(), desc.num_branches = raw.size();
        desc.inputs = &x, desc.num_inputs = 1;
        weir::check(weir_graph_add_case(graph_, name().c_str(), &desc, &out, 1, &last_));
        return out;
    }
    values loop(builder &condition, builder &body, const values &variables, const values &invariants) {
        values out(variables.size());
        auto desc = weir::sized<weir_while_desc>();
        desc.cond_graph = condition.graph_, desc.body_graph = body.graph_;
        desc.variables = variables.data(), desc.num_variables = variables.size();
        desc.invariants = invariants.data(), desc.num_invariants = invariants.size();
        desc.parallel_iterations = 20;
        weir::check(weir_graph_add_while(graph_, name().c_str(), &desc, out.data(), &last_));
        return out;
    }
    void output(weir_value value) { graph_.add_output(name(), value); }
    /// The node that was added last.
    weir_node last() const { return last_; }

private:
    weir_value call(const weir::kernel &kernel, const values &inputs) {
        const auto call = graph_.add_kernel(name(), kernel, inputs);
        last_ = call.node;
        return call.output();
    }
    weir::graph graph_;
    int names_ = 0;
    weir_node last_ = 0;
};

// A branch of one input that adds 1 so many times.
builder adds(int times) {
    builder branch("branch");
    weir_value x = branch.input();
    for (int i = 0; i < times; i++) x = branch.add_one(x);
    branch.output(x);
    return branch;
}

class on_weir : public flow_runner {
public:
    on_weir(const flow_program &program, bool on_pool) {
        give(scalar(0), number); // x
        build(program);
        for (const auto &input : inputs_) ins_.push_back(input);
        for (const auto &output : outputs_) outs_.push_back(output);
        program_ = whole_.graph().compile({cpu()});
        if (on_pool) options_.set_threadpool(graph_pools().back().pool);
    }
    void run() override {
        weir::check(weir_program_run(program_, nullptr, ins_.data(), ins_.size(), outs_.data(), outs_.size(), &options_));
    }
    std::int32_t result() const override { return *outputs_[0].data<std::int32_t>(); }

private:
    weir_value give(weir::tensor tensor, const weir_tensor_desc &desc) {
        inputs_.push_back(std::move(tensor));
        given_.push_back(whole_.input(desc));
        return given_.back();
    }
    weir_value give(bool value) {
        weir::tensor tensor(cpu(), truth);
        *tensor.data<std::uint8_t>() = value;
        return give(std::move(tensor), truth);
    }
    weir_value give(std::int32_t value) { return give(scalar(value), number); }
    void take(weir_value value) {
        outputs_.push_back(scalar(-1));
        whole_.output(value);
    }

    void build(const flow_program &program) {
        const weir_value x = given_[0];
        switch (program.kind) {
        case flow_kind::plain: return take(whole_.add_one(x));
        case flow_kind::untaken_cond:
        case flow_kind::taken_cond: {
            builder then = adds(program.n), otherwise = adds(1);
            return take(whole_.cond(give(program.kind == flow_kind::taken_cond), then, otherwise, x));
        }
        case flow_kind::cond_chain: {
            builder then = adds(1), otherwise = adds(2);
            const weir_value predicate = give(true);
            weir_value y = x;
            for (int i = 0; i < program.n; i++) y = whole_.cond(predicate, then, otherwise, y);
            return take(y);
        }
        case flow_kind::case_of: {
            std::vector<builder> branches(static_cast<std::size_t>(program.n));
            for (int i = 0; i < program.n; i++) {
                auto &branch = branches[static_cast<std::size_t>(i)];
                branch.output(branch.add(branch.input(), i));
            }
            return take(whole_.choose(give(std::int32_t{program.n - 1}), branches, x));
        }
        case flow_kind::while_loop: return build_loop(program);
        case flow_kind::nested_while: return build_nest(program);
        case flow_kind::among_plain:
        case flow_kind::cond_among: return build_among(program);
        }
    }

    // As TensorFlow's benchmark: the limit is a constant, and all variables are fetched.
    void build_loop(const flow_program &program) {
        builder condition("condition"), body("body");
        values variables;
        for (int i = 0; i < program.variables; i++) {
            const weir_value before = condition.input();
            if (i == 0) condition.output(condition.is_at_most(before, condition.constant(program.n)));
            const weir_value variable = body.input();
            body.output(i == 0 ? body.add_one(variable) : body.through_relu(variable));
            variables.push_back(i == 0 ? given_[0] : give(std::int32_t{i}));
        }
        for (const weir_value out : whole_.loop(condition, body, variables, {})) take(out);
    }

    // The inner loop is a node of the outer one's body. Both limits, and where j begins, come from outside.
    void build_nest(const flow_program &program) {
        builder inner_condition("inner condition"), inner_body("inner body");
        {
            const weir_value j = inner_condition.input();
            inner_condition.input(); // the sum
            inner_condition.output(inner_condition.is_less(j, inner_condition.input()));
            const weir_value j_before = inner_body.input(), sum_before = inner_body.input();
            inner_body.input(); // the limit
            inner_body.output(inner_body.add_one(j_before));
            inner_body.output(inner_body.add_one(sum_before));
        }
        builder condition("condition"), body("body");
        {
            const weir_value i = condition.input();
            condition.input(); // the sum
            condition.output(condition.is_less(i, condition.input()));
            condition.input(); // the inner limit
            condition.input(); // where j begins
            const weir_value i_before = body.input(), sum_before = body.input();
            body.input(); // the limit
            const weir_value inner_limit = body.input(), zero = body.input();
            body.output(body.add_one(i_before));
            body.output(body.loop(inner_condition, inner_body, {zero, sum_before}, {inner_limit})[1]);
        }
        const weir_value zero = give(std::int32_t{0});
        const weir_value limit = give(std::int32_t{program.n}), inner_limit = give(std::int32_t{program.inner});
        take(whole_.loop(condition, body, {zero, given_[0]}, {limit, inner_limit, zero})[1]);
    }

    void build_among(const flow_program &program) {
        const shape &shape = *program.nodes;
        std::vector<weir_node> nodes(shape.nodes);
        for (std::uint32_t i = 0; i < shape.nodes; i++) {
            weir::check(weir_graph_add_task(whole_.graph(), ("task " + std::to_string(i)).c_str(), program.calls[i].fn,
                                            program.calls[i].arg, nullptr, 0, &nodes[i]));
        }
        for (const auto &[from, to] : shape.edges) whole_.graph().add_control_edge(nodes[from], nodes[to]);
        if (program.kind == flow_kind::cond_among) {
            builder then = adds(1), otherwise = adds(2);
            take(whole_.cond(give(true), then, otherwise, given_[0]));
        } else {
            take(whole_.add_one(given_[0]));
        }
        whole_.graph().add_control_edge(nodes[shape.nodes / 2], whole_.last());
        whole_.graph().add_control_edge(whole_.last(), nodes.back());
    }

    builder whole_;
    values given_;
    std::vector<weir::tensor> inputs_, outputs_;
    std::vector<weir_tensor *> ins_, outs_;
    weir::program program_;
    weir::run_options options_;
};

} // namespace

std::unique_ptr<flow_runner> make_flow_weir(const flow_program &program, bool on_pool) {
    return std::make_unique<on_weir>(program, on_pool);
}

} // namespace bench
