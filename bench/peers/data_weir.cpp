// SPDX-License-Identifier: MIT OR Apache-2.0

#include <malloc.h>
#include <time.h>

#include <stdexcept>
#include <string>
#include <weir/control.h>

#include "data.hpp"
#include "graphs.hpp"
#include "graphs_weir.hpp"

namespace bench {

namespace {

const weir_tensor_desc number = weir::desc(WEIR_S32, {1});

// What others do on this machine does not count.
double thread_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) * 1e9 + double(now.tv_nsec);
}

std::int64_t heap_bytes() {
    const auto info = mallinfo2();
    return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

struct arguments {
    const weir_tensor_view *in = nullptr, *out = nullptr;
    std::size_t inputs = 0, outputs = 0;
    weir_status status;
    explicit arguments(const weir_kernel_context *context) {
        status = weir_kernel_context_get_inputs(context, &in, &inputs);
        if (status == WEIR_OK) status = weir_kernel_context_get_outputs(context, &out, &outputs);
    }
    std::int32_t input(std::size_t i) const { return *static_cast<const std::int32_t *>(in[i].data); }
    std::int32_t &output() const { return *static_cast<std::int32_t *>(out[0].data); }
};

std::int32_t task(void *count) {
    ++*static_cast<std::int64_t *>(count);
    return WEIR_OK;
}

// One more than the first input, and as much more as the others differ from it.
std::int32_t step(void *, weir_kernel_context *context) {
    const arguments a(context);
    if (a.status != WEIR_OK) return a.status;
    std::int32_t value = a.inputs > 0 ? a.input(0) + 1 : 1;
    for (std::size_t i = 1; i < a.inputs; i++) value += a.input(i) - a.input(0);
    a.output() = value;
    return WEIR_OK;
}

std::int32_t is_below(void *bound, weir_kernel_context *context) {
    const arguments a(context);
    if (a.status == WEIR_OK) a.output() = a.input(0) < *static_cast<const std::int32_t *>(bound);
    return a.status;
}

weir::kernel kernel(weir_compute_fn compute, std::size_t inputs, void *user = nullptr) {
    const weir_tensor_desc ins[2] = {number, number};
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.name = "step";
    desc.compute = compute;
    desc.user = user;
    desc.num_inputs = inputs;
    desc.inputs = ins;
    desc.num_outputs = 1;
    desc.outputs = &number;
    weir_kernel *raw = nullptr;
    weir::check(weir_kernel_create_host(cpu(), &desc, &raw));
    return weir::kernel(raw);
}

// The inputs and outputs of a run.
struct bound {
    std::vector<weir::tensor> tensors;
    std::vector<weir_tensor *> raw;
    void add() {
        tensors.emplace_back(cpu(), number);
        *tensors.back().data<std::int32_t>() = 0;
        raw.push_back(tensors.back());
    }
    std::int32_t value(std::size_t i) { return *tensors[i].data<std::int32_t>(); }
};

double run_ns(const weir::program &program, bound &inputs, bound &outputs, int runs) {
    std::vector<double> times;
    for (int i = 0; i < runs; i++) {
        const auto begin = now_ns();
        weir::check(weir_program_run(program, nullptr, inputs.raw.data(), inputs.raw.size(), outputs.raw.data(),
                                     outputs.raw.size(), nullptr));
        times.push_back(double(now_ns() - begin));
    }
    return median(times);
}

void demand(bool holds, const char *what) {
    if (!holds) throw std::runtime_error(what);
}

} // namespace

std::vector<std::uint32_t> data_shape::before(std::uint32_t i) const {
    if (width == 1) return i == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{i - 1};
    if (i < width) return {};
    const std::uint32_t above = (i / width - 1) * width, place = i % width;
    return {above + place, above + (place * 7 + 1) % width};
}

data_costs measure_data(const data_shape &shape, kernels kernels, int runs) {
    const auto n = shape.nodes;
    std::int64_t count = 0;
    std::vector<std::vector<std::uint32_t>> before;
    std::vector<bool> is_used(n);
    for (std::uint32_t i = 0; i < n; i++) {
        before.push_back(shape.before(i));
        for (const auto from : before.back()) is_used[from] = true;
    }
    const weir::kernel shared[] = {kernel(step, 0), kernel(step, 1), kernel(step, 2)};
    std::vector<weir_node> nodes(n);
    std::vector<weir_value> values(n);
    bound inputs, outputs;
    for (std::uint32_t i = 0; i < n; i++) {
        if (kernels != kernels::none && !is_used[i]) outputs.add();
    }
    data_costs costs;
    const auto empty = heap_bytes();
    double begin = thread_ns();
    weir::graph graph("data");
    for (std::uint32_t i = 0; i < n; i++) {
        char name[16];
        std::snprintf(name, sizeof name, "n%u", i);
        if (kernels == kernels::none) {
            weir::check(weir_graph_add_task(graph, name, task, &count, nullptr, 0, &nodes[i]));
            for (const auto from : before[i]) weir::check(weir_graph_add_control_edge(graph, nodes[from], nodes[i]));
            continue;
        }
        weir_value ins[2] = {};
        for (std::size_t k = 0; k < before[i].size(); k++) ins[k] = values[before[i][k]];
        const auto add = [&](weir_kernel *kernel) {
            weir::check(
                weir_graph_add_kernel(graph, name, kernel, ins, before[i].size(), &values[i], 1, nullptr));
        };
        if (kernels == kernels::own) {
            add(kernel(step, before[i].size()));
        } else {
            add(shared[before[i].size()]);
        }
        if (!is_used[i]) weir::check(weir_graph_add_output(graph, name, values[i]));
    }
    costs.add_ns = thread_ns() - begin;
    costs.graph_bytes = heap_bytes() - empty;
    begin = thread_ns();
    weir::program program = graph.compile({cpu()});
    costs.compile_ns = thread_ns() - begin;
    graph = weir::graph("none");
    costs.program_bytes = heap_bytes() - empty;
    begin = thread_ns();
    run_ns(program, inputs, outputs, 1);
    costs.first_ns = thread_ns() - begin;
    costs.run_bytes = heap_bytes() - empty - costs.program_bytes;
    costs.run_ns = run_ns(program, inputs, outputs, runs);
    if (kernels == kernels::none) {
        demand(count == std::int64_t{n} * (runs + 1), "data: tasks were left out");
    } else {
        for (std::size_t i = 0; i < outputs.tensors.size(); i++) {
            demand(outputs.value(i) == std::int32_t((n - 1) / shape.width + 1), "data: a wrong value");
        }
    }
    return costs;
}

double measure_loop(std::size_t variables, int runs) {
    std::int32_t iterations = 1000;
    const auto goes_on = kernel(is_below, 1, &iterations), adds = kernel(step, 1);
    weir::graph graph("loop"), condition("condition"), body("body");
    std::vector<weir_value> first(variables), last(variables);
    bound inputs, outputs;
    weir_value tested{};
    for (std::size_t i = 0; i < variables; i++) {
        const auto name = "v" + std::to_string(i), next = "next" + std::to_string(i);
        weir_value in_condition{}, in_body{}, made{};
        weir::check(weir_graph_add_input(graph, name.c_str(), &number, &first[i]));
        weir::check(weir_graph_add_input(condition, name.c_str(), &number, &in_condition));
        weir::check(weir_graph_add_input(body, name.c_str(), &number, &in_body));
        if (i == 0) {
            weir::check(weir_graph_add_kernel(condition, "below", goes_on, &in_condition, 1, &tested, 1, nullptr));
        }
        weir::check(weir_graph_add_kernel(body, next.c_str(), adds, &in_body, 1, &made, 1, nullptr));
        weir::check(weir_graph_add_output(body, next.c_str(), made));
        inputs.add();
        outputs.add();
    }
    weir::check(weir_graph_add_output(condition, "goes on", tested));
    auto loop = weir::sized<weir_while_desc>();
    loop.cond_graph = condition, loop.body_graph = body, loop.variables = first.data(), loop.num_variables = variables;
    weir::check(weir_graph_add_while(graph, "loop", &loop, last.data(), nullptr));
    for (std::size_t i = 0; i < variables; i++) {
        weir::check(weir_graph_add_output(graph, ("last" + std::to_string(i)).c_str(), last[i]));
    }
    const auto program = graph.compile({cpu()});
    const double whole = run_ns(program, inputs, outputs, runs);
    for (std::size_t i = 0; i < variables; i++) demand(outputs.value(i) == iterations, "data: a loop ended early");
    return whole / iterations;
}

} // namespace bench
