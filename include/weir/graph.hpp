// Graphs, the programs they compile to, and runs.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_GRAPH_HPP
#define WEIR_GRAPH_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control.h"
#include "inspect.h"
#include "kernel.hpp"

namespace weir {

// ---- graphs, programs, runs ----

/// Options of graph::compile: the members of weir_compile_options, with setters that chain.
struct compile_options : weir_compile_options {
    compile_options() noexcept : weir_compile_options{} { struct_size = sizeof(weir_compile_options); }
    compile_options &set_flags(std::uint64_t of_compile) noexcept { return flags = of_compile, *this; }
    compile_options &set_hop_ns(std::uint64_t ns) noexcept { return hop_ns = ns, *this; }
    compile_options &set_placement(weir_placement of_nodes) noexcept { return placement = of_nodes, *this; }
    compile_options &set_segments(weir_segments how) noexcept { return segments = how, *this; }
    compile_options &set_max_concurrent_runs(std::uint32_t most) noexcept {
        return max_concurrent_runs = most, *this;
    }
    compile_options &set_partial_runs(std::size_t lists) noexcept { return partial_runs = lists, *this; }
    /// The pool lives until compile returns.
    compile_options &set_blocking_threadpool(const weir::threadpool &pool) noexcept {
        return blocking_threadpool = pool.get(), *this;
    }
};

/// Options of a run: the members of weir_run_options, with setters that chain. Their pointers must be valid until the
/// call that runs or starts returns.
struct run_options : weir_run_options {
    run_options() noexcept : weir_run_options{} { struct_size = sizeof(weir_run_options); }
    run_options &set_flags(std::uint64_t of_run) noexcept { return flags = of_run, *this; }
    run_options &set_deadline_ns(std::uint64_t ns) noexcept { return deadline_ns = ns, *this; }
    run_options &set_threadpool(const weir::threadpool &pool) noexcept { return threadpool = pool.get(), *this; }
    /// Computes these outputs only.
    run_options &set_outputs(const std::vector<std::size_t> &indices) noexcept {
        return outputs = indices.data(), num_outputs = indices.size(), *this;
    }
    /// Receives 1 for each output that was absent and 0 for the others, one byte an output, when the run has succeeded.
    run_options &set_absent(std::uint8_t *of_outputs, std::size_t count) noexcept {
        return absent = of_outputs, num_absent = count, *this;
    }
    /// Asks to be told of the end of an asynchronous run, once. program::run and run::notify take callables.
    run_options &set_notice(const weir_notice &of_run) noexcept { return notice = &of_run, *this; }
    /// Makes the run a part of this trace.
    run_options &set_trace(weir_trace *of_run) noexcept { return trace = of_run, *this; }
    /// Calls f(const weir_run_progress &) at most once in each interval (0: 100 ms). f lives until the run is over.
    template <class F>
    run_options &set_progress(F &f, std::uint64_t interval_ns = 0) noexcept {
        progress = detail::follower<F>::call;
        progress_ctx = const_cast<void *>(static_cast<const void *>(std::addressof(f)));
        return progress_interval_ns = interval_ns, *this;
    }
};

/// A run that was started with program::start. Letting go of it does not end it.
class run : public shared<weir_run> {
public:
    using shared::shared;
    run() noexcept = default;
    /// Throws the run's failure, if it has one, and DEADLINE_EXCEEDED if it goes on after timeout_ns. That is also the
    /// failure of a run that has passed its own deadline; done() tells the two apart.
    void synchronize(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) const {
        check(weir_run_synchronize(*this, timeout_ns));
    }
    bool done() const { return detail::value<std::int32_t>(weir_run_query, get()) != 0; }
    void cancel() const { check(weir_run_cancel(*this)); }
    /// Calls f(status), or f(status, weir_run *), once when the run is done; before the return if it is. weir_notice
    /// says on which thread.
    template <class F>
    void notify(F &&f) const {
        detail::notify(std::forward<F>(f), [this](const weir_notice *n) { return weir_run_notify(*this, n); });
    }
    /// Adds 1 to an eventfd of the caller's instead.
    void notify_fd(int event_fd) const {
        detail::notify_fd(event_fd, [this](const weir_notice *notice) { return weir_run_notify(*this, notice); });
    }
    /// How the run failed, if it has.
    std::optional<weir::error> error() const { return failure().as_error(); }
    /// The node that failed, and the nodes that were not begun; code is WEIR_OK if there is no failure.
    weir::failure failure() const { return detail::failure_of(weir_run_get_failure, get()); }
};

/// A compiled graph: immutable, any number of runs at once.
class program : public shared<weir_program> {
public:
    using shared::shared;
    program() noexcept = default;

    /// Runs now, on `stream`, or in this thread if that is empty.
    void run(const stream &stream, list<weir_tensor *> inputs, list<weir_tensor *> outputs,
             const run_options &options = {}) const {
        check(weir_program_run(*this, stream, inputs.data(), inputs.size(), outputs.data(), outputs.size(), &options));
    }
    /// As run on an empty stream: in this thread, with the pool's help, and done at the return.
    void run(list<weir_tensor *> inputs, list<weir_tensor *> outputs,
             const run_options &options = {}) const {
        run(stream(), inputs, outputs, options);
    }
    /// The same where the options are written as {}, which could be a list as well.
    void run(list<weir_tensor *> inputs, list<weir_tensor *> outputs, std::nullptr_t) const { run(inputs, outputs); }
    /// Runs on an asynchronous stream, and calls f(status), or f(status, weir_run *), when the run is over.
    template <class F>
    void run(const stream &stream, list<weir_tensor *> inputs, list<weir_tensor *> outputs, run_options options,
             F &&f) const {
        detail::notify(std::forward<F>(f), [&](const weir_notice *notice) {
            options.notice = notice;
            return weir_program_run(*this, stream, inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                    &options);
        });
    }
    /// Starts a run on an asynchronous stream.
    weir::run start(const stream &stream, list<weir_tensor *> inputs, list<weir_tensor *> outputs,
                    const run_options &options = {}) const {
        weir_run *raw = nullptr;
        check(weir_program_start(*this, stream, inputs.data(), inputs.size(), outputs.data(), outputs.size(), &options,
                                 &raw));
        return weir::run(raw);
    }

    weir_program_info info() const {
        auto info = sized<weir_program_info>();
        check(weir_program_get_info(*this, &info));
        return info;
    }
    /// Name, type and shape of input `i`. Throws OUT_OF_RANGE.
    weir_port_info input(std::size_t i) const { return port(WEIR_PORT_INPUT, i); }
    /// Name, type and shape of output `i`. Throws OUT_OF_RANGE.
    weir_port_info output(std::size_t i) const { return port(WEIR_PORT_OUTPUT, i); }
    std::string dump(weir_dump_format format) const {
        return detail::text(weir_program_dump, get(), format);
    }
    /// The decisions of compile, with reasons.
    std::string report(weir_report_format format = WEIR_REPORT_TEXT) const {
        return detail::text(weir_program_report, get(), format);
    }
    /// The options that it was compiled with.
    weir_compile_options options() const {
        auto options = sized<weir_compile_options>();
        check(weir_program_get_options(*this, &options));
        return options;
    }
    /// The figures of node `i`, of a program with WEIR_COMPILE_STATISTICS.
    weir_node_stats node_stats(std::size_t i) const {
        auto stats = sized<weir_node_stats>();
        check(weir_program_get_node_stats(*this, i, &stats));
        return stats;
    }
    /// The nodes' costs as runs have measured them, as text for `load_costs` of a later process.
    std::string save_costs() const { return detail::text(weir_program_save_costs, get()); }
    /// How many of the program's nodes the text knows.
    std::size_t load_costs(const std::string &costs) const {
        return detail::value<std::size_t>(weir_program_load_costs, get(), costs.c_str());
    }
    /// Gives back the memory that runs have left for the next ones.
    void trim() const { check(weir_program_trim(*this)); }
    /// `count` runs at once, in this thread and on the pool; inputs and outputs are those of one run after another, as
    /// many for each.
    void run_many(std::size_t count, list<weir_tensor *> inputs, list<weir_tensor *> outputs,
                  const run_options &options = {}) const {
        const std::size_t each = count > 0 ? count : 1;
        if (!detail::are_of(count, inputs.size(), outputs.size(), "weir::program::run_many")) return;
        check(weir_program_run_many(*this, count, inputs.data(), inputs.size() / each, outputs.data(),
                                    outputs.size() / each, &options));
    }

private:
    weir_port_info port(weir_port_kind kind, std::size_t i) const {
        auto info = sized<weir_port_info>();
        check(weir_program_get_port(*this, kind, i, &info));
        return info;
    }
};

/// A dataflow graph under construction; compile it to run it.
class graph : public owned<weir_graph> {
public:
    using owned::owned;
    explicit graph(const std::string &name = "graph") { check(weir_graph_create(name.c_str(), out())); }

    /// A kernel call in the graph: the node, for control edges, and its outputs, for the inputs of others.
    struct call {
        weir_node node;                  ///< For control edges.
        std::vector<weir_value> outputs; ///< For the inputs of other nodes.
        /// One of the outputs. Throws std::out_of_range, or gives 0 where there are no exceptions.
        weir_value output(std::size_t i = 0) const {
#if defined(__cpp_exceptions)
            return outputs.at(i);
#else
            if (i < outputs.size()) return outputs[i];
            detail::fail(WEIR_OUT_OF_RANGE, "weir::graph::call: no output " + std::to_string(i));
            return 0;
#endif
        }
    };

    weir_value add_input(const std::string &name, const weir_tensor_desc &desc) {
        return detail::value<weir_value>(weir_graph_add_input, get(), name.c_str(), &desc);
    }
    weir_value add_constant(const std::string &name, const tensor &tensor) {
        return detail::value<weir_value>(weir_graph_add_constant, get(), name.c_str(), tensor.get());
    }
    call add_kernel(const std::string &name, const kernel &kernel, list<weir_value> inputs) {
        call added{0, std::vector<weir_value>(kernel.num_outputs())};
        check(weir_graph_add_kernel(*this, name.c_str(), kernel, inputs.data(), inputs.size(), added.outputs.data(),
                                    added.outputs.size(), &added.node));
        return added;
    }
    /// A program as one node.
    call add_program(const std::string &name, const program &program, list<weir_value> inputs) {
        call added{0, std::vector<weir_value>(program.info().num_outputs)};
        check(weir_graph_add_program(*this, name.c_str(), program, inputs.data(), inputs.size(), added.outputs.data(),
                                     added.outputs.size(), &added.node));
        return added;
    }
    /// Whether an output of a kernel takes over the memory of an input; see weir_graph_set_forwarding.
    void set_forwarding(weir_node node, std::int32_t output, std::int32_t input) {
        check(weir_graph_set_forwarding(*this, node, output, input));
    }
    /// Adds f() as a node without data; it returns nothing or a weir_status. Calls of several runs may overlap.
    template <class F>
    weir_node add_task(const std::string &name, F &&f, std::uint64_t cost_ns = 0) {
        using task = detail::host_task<std::decay_t<F>>;
        auto arg = std::unique_ptr<task>(new task{std::forward<F>(f)});
        weir_node node = 0;
        if (check(weir_graph_add_task(*this, name.c_str(), task::call, arg.get(), task::destroy, cost_ns, &node))) {
            static_cast<void>(arg.release());
        }
        return node;
    }
    void add_control_edge(weir_node from, weir_node to) {
        check(weir_graph_add_control_edge(*this, from, to));
    }
    /// A choice of two graphs by a predicate; both get `inputs`.
    call add_cond(const std::string &name, weir_value predicate, const graph &then_graph, const graph &else_graph,
                  list<weir_value> inputs, std::size_t num_outputs) {
        call added{0, std::vector<weir_value>(num_outputs)};
        auto desc = sized<weir_cond_desc>();
        desc.predicate = predicate, desc.then_graph = then_graph, desc.else_graph = else_graph;
        desc.inputs = inputs.data(), desc.num_inputs = inputs.size();
        check(weir_graph_add_cond(*this, name.c_str(), &desc, added.outputs.data(), num_outputs, &added.node));
        return added;
    }
    /// A choice of one of several graphs by its index; the last one for an index that is none.
    call add_case(const std::string &name, weir_value index, list<const weir_graph *> branches,
                  list<weir_value> inputs, std::size_t num_outputs) {
        call added{0, std::vector<weir_value>(num_outputs)};
        auto desc = sized<weir_case_desc>();
        desc.index = index, desc.branches = branches.data(), desc.num_branches = branches.size();
        desc.inputs = inputs.data(), desc.num_inputs = inputs.size();
        check(weir_graph_add_case(*this, name.c_str(), &desc, added.outputs.data(), num_outputs, &added.node));
        return added;
    }
    /// A loop: while cond_graph of the variables is true, body_graph gives their next values.
    call add_while(const std::string &name, const graph &cond_graph, const graph &body_graph,
                   list<weir_value> variables, list<weir_value> invariants = {}, std::int32_t parallel_iterations = 1) {
        call added{0, std::vector<weir_value>(variables.size())};
        auto desc = sized<weir_while_desc>();
        desc.cond_graph = cond_graph, desc.body_graph = body_graph;
        desc.variables = variables.data(), desc.num_variables = variables.size();
        desc.invariants = invariants.data(), desc.num_invariants = invariants.size();
        desc.parallel_iterations = parallel_iterations;
        check(weir_graph_add_while(*this, name.c_str(), &desc, added.outputs.data(), &added.node));
        return added;
    }
    /// Outputs: the value if predicate is 0, the value if it is not; the other one is absent.
    call add_switch(const std::string &name, weir_value value, weir_value predicate) {
        call added{0, std::vector<weir_value>(2)};
        check(weir_graph_add_switch(*this, name.c_str(), value, predicate, &added.outputs[0], &added.outputs[1],
                                    &added.node));
        return added;
    }
    /// Outputs: the one of `inputs` that is there, and its index.
    call add_merge(const std::string &name, list<weir_value> inputs) {
        call added{0, std::vector<weir_value>(2)};
        check(weir_graph_add_merge(*this, name.c_str(), inputs.data(), inputs.size(), &added.outputs[0],
                                   &added.outputs[1], &added.node));
        return added;
    }
    /// Brings a value into a frame, in which a loop is said by its edges, as TensorFlow's first control flow does.
    call add_enter(const std::string &name, weir_value value, const std::string &frame_name, bool is_constant = false,
                   std::int32_t parallel_iterations = 1) {
        call added{0, std::vector<weir_value>(1)};
        check(weir_graph_add_enter(*this, name.c_str(), value, frame_name.c_str(), is_constant ? 1 : 0,
                                   parallel_iterations, &added.outputs[0], &added.node));
        return added;
    }
    /// The merge of a loop's variable: the value of an enter, later that of `set_back_edge`.
    call add_loop_merge(const std::string &name, weir_value value) {
        call added{0, std::vector<weir_value>(1)};
        check(weir_graph_add_loop_merge(*this, name.c_str(), value, &added.outputs[0], &added.node));
        return added;
    }
    void set_back_edge(weir_node loop_merge, weir_value next_iteration) {
        check(weir_graph_set_back_edge(*this, loop_merge, next_iteration));
    }
    /// Its loop goes on while predicate is not 0.
    call add_loop_cond(const std::string &name, weir_value predicate) {
        call added{0, std::vector<weir_value>(1)};
        check(weir_graph_add_loop_cond(*this, name.c_str(), predicate, &added.outputs[0], &added.node));
        return added;
    }
    call add_next_iteration(const std::string &name, weir_value value) {
        call added{0, std::vector<weir_value>(1)};
        check(weir_graph_add_next_iteration(*this, name.c_str(), value, &added.outputs[0], &added.node));
        return added;
    }
    /// The last value of a loop's variable, outside of its frame.
    call add_exit(const std::string &name, weir_value value) {
        call added{0, std::vector<weir_value>(1)};
        check(weir_graph_add_exit(*this, name.c_str(), value, &added.outputs[0], &added.node));
        return added;
    }
    void add_output(const std::string &name, weir_value value) {
        check(weir_graph_add_output(*this, name.c_str(), value));
    }
    /// Which engine does the node of a kernel.
    void set_placement(weir_node node, weir_placement placement) {
        check(weir_graph_set_placement(*this, node, placement));
    }
    /// Runs are given input `input` in memory of `engine`.
    void set_input_engine(std::size_t input, const engine &engine) {
        check(weir_graph_set_port_engine(*this, WEIR_PORT_INPUT, input, engine));
    }
    void set_output_engine(std::size_t output, const engine &engine) {
        check(weir_graph_set_port_engine(*this, WEIR_PORT_OUTPUT, output, engine));
    }

    program compile(list<weir_engine *> engines, const compile_options &options = {}) const {
        weir_program *raw = nullptr;
        check(weir_graph_compile(*this, engines.data(), engines.size(), &options, &raw));
        return program(raw);
    }
    std::string dump(weir_dump_format format) const {
        return detail::text(weir_graph_dump, get(), format);
    }
};

} // namespace weir

#endif // WEIR_GRAPH_HPP
