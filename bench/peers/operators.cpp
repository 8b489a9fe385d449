// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Small operators through a stream of weir's, on Eigen's threads, against oneDNN on OpenMP's.

#include <omp.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include "peers.hpp"

namespace bench {

namespace {

using dims = std::vector<std::int64_t>;

// One operator on both sides, over the same memory.
struct operation {
    std::string name;
    std::vector<dims> inputs;
    dims output;
    std::function<weir::kernel(const weir::engine &)> kernel;
    std::function<dnnl::primitive(const dnnl::engine &, const std::vector<dnnl::memory::desc> &)> primitive;
    std::vector<int> arguments; // of oneDNN: the inputs, then the output
};

dnnl::memory::desc desc_of(const dims &shape) {
    const auto tag = shape.size() == 2 ? dnnl::memory::format_tag::ab : dnnl::memory::format_tag::a;
    return {shape, dnnl::memory::data_type::f32, tag};
}

operation softmax(std::int64_t rows, std::int64_t columns) {
    return {"softmax " + std::to_string(rows) + " x " + std::to_string(columns), {{rows, columns}}, {rows, columns},
            [](const weir::engine &engine) { return weir::kernel::softmax(engine); },
            [](const dnnl::engine &engine, const std::vector<dnnl::memory::desc> &descs) {
                const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, descs[0], 1);
                return dnnl::softmax_forward({desc, engine});
            },
            {DNNL_ARG_SRC, DNNL_ARG_DST}};
}

operation add(std::int64_t rows, std::int64_t columns) {
    return {"add " + std::to_string(rows) + " x " + std::to_string(columns), {{rows, columns}, {rows, columns}},
            {rows, columns}, [](const weir::engine &engine) { return weir::kernel::add(engine); },
            [](const dnnl::engine &engine, const std::vector<dnnl::memory::desc> &descs) {
                const dnnl::binary::desc desc(dnnl::algorithm::binary_add, descs[0], descs[1], descs[2]);
                return dnnl::binary({desc, engine});
            },
            {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_DST}};
}

operation relu(std::int64_t rows, std::int64_t columns) {
    return {"relu " + std::to_string(rows) + " x " + std::to_string(columns), {{rows, columns}}, {rows, columns},
            [](const weir::engine &engine) { return weir::kernel::relu(engine); },
            [](const dnnl::engine &engine, const std::vector<dnnl::memory::desc> &descs) {
                const dnnl::eltwise_forward::desc desc(dnnl::prop_kind::forward_inference,
                                                       dnnl::algorithm::eltwise_relu, descs[0], 0.0f);
                return dnnl::eltwise_forward({desc, engine});
            },
            {DNNL_ARG_SRC, DNNL_ARG_DST}};
}

operation matmul(std::int64_t m, std::int64_t k, std::int64_t n) {
    return {"matmul " + std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n), {{m, k}, {k, n}},
            {m, n}, [](const weir::engine &engine) { return weir::kernel::matmul(engine); },
            [](const dnnl::engine &engine, const std::vector<dnnl::memory::desc> &descs) {
                return dnnl::matmul({dnnl::matmul::desc(descs[0], descs[1], descs[2]), engine});
            },
            {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};
}

std::vector<operation> operations(bool quick) {
    std::vector<operation> all;
    for (const std::int64_t columns : {128, 1000}) {
        for (const std::int64_t rows : {64, 256, 1024}) {
            if (!quick || rows == 256) all.push_back(softmax(rows, columns));
        }
    }
    for (const std::int64_t rows : {16, 256, 4096}) {
        if (quick && rows != 256) continue;
        all.push_back(add(rows, 256));
        all.push_back(relu(rows, 256));
    }
    for (const std::int64_t m : {16, 64, 128, 256}) {
        if (!quick || m == 128) all.push_back(matmul(m, m, m));
    }
    return all;
}

std::int64_t size_of(const dims &shape) {
    std::int64_t size = 1;
    for (const auto dim : shape) size *= dim;
    return size;
}

weir_tensor_desc weir_desc(const dims &shape) {
    return weir::desc(WEIR_F32, {shape[0], shape[1]});
}

// The operator on weir, enqueued on a synchronous stream.
struct on_weir {
    weir::engine engine;
    weir::stream stream;
    weir::kernel kernel;
    std::vector<weir::tensor> tensors;
    std::vector<weir_tensor *> handles;

    on_weir(const operation &op, const weir::threadpool &pool, const std::vector<float *> &inputs)
        : engine(weir::engine::cpu(pool)), stream(engine), kernel(op.kernel(engine)) {
        for (std::size_t i = 0; i < inputs.size(); i++) {
            tensors.emplace_back(engine, weir_desc(op.inputs[i]), inputs[i]);
        }
        tensors.emplace_back(engine, weir_desc(op.output));
        for (const auto &tensor : tensors) handles.push_back(tensor);
    }
    void run() const {
        const std::size_t n = handles.size() - 1;
        weir::check(weir_enqueue(stream, kernel, handles.data(), n, handles.data() + n, 1));
    }
    const float *result() const { return tensors.back().data<float>(); }
};

struct on_dnnl {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    dnnl::primitive primitive;
    std::vector<float> output;
    std::unordered_map<int, dnnl::memory> arguments;

    // The number of threads is part of a primitive, so it is set before.
    on_dnnl(const operation &op, int threads, const std::vector<float *> &inputs)
        : output(static_cast<std::size_t>(size_of(op.output))) {
        std::vector<dnnl::memory::desc> descs;
        for (const auto &shape : op.inputs) descs.push_back(desc_of(shape));
        descs.push_back(desc_of(op.output));
        omp_set_num_threads(threads);
        primitive = op.primitive(engine, descs);
        for (std::size_t i = 0; i < descs.size(); i++) {
            float *data = i < inputs.size() ? inputs[i] : output.data();
            arguments.emplace(op.arguments[i], dnnl::memory(descs[i], engine, data));
        }
    }
    void run(int threads) {
        omp_set_num_threads(threads);
        primitive.execute(stream, arguments);
        stream.wait();
    }
};

void compare(const operation &op, const options &options, const table &t, std::vector<std::vector<double>> &ratios) {
    std::vector<std::vector<float>> data;
    std::vector<float *> inputs;
    for (const auto &shape : op.inputs) {
        data.emplace_back(static_cast<std::size_t>(size_of(shape)));
        for (std::size_t i = 0; i < data.back().size(); i++) data.back()[i] = static_cast<float>(i * 7 % 23) / 8 - 1;
    }
    for (auto &values : data) inputs.push_back(values.data());

    on_weir serial(op, weir::threadpool(), inputs), shared(op, peer_named("Eigen").pool, inputs),
        builtin(op, peer_named("built-in").pool, inputs);
    on_dnnl one(op, 1, inputs), two(op, 2, inputs);
    const std::vector<side> sides = {[&] { serial.run(); }, [&] { shared.run(); }, [&] { builtin.run(); },
                                     [&] { one.run(1); }, [&] { two.run(2); }};
    for (const auto &side : sides) side();
    for (std::int64_t i = 0; i < size_of(op.output); i++) {
        const float a = serial.result()[i], b = two.output[static_cast<std::size_t>(i)];
        if (!(std::fabs(a - b) <= 1e-4f * (1 + std::fabs(b)))) {
            std::fprintf(stderr, "%s: weir has %g at %lld, oneDNN %g\n", op.name.c_str(), static_cast<double>(a),
                         static_cast<long long>(i), static_cast<double>(b));
            std::exit(1);
        }
    }
    const auto start = now_ns();
    one.run(1);
    const int calls = std::max(1, static_cast<int>(300000 / std::max<std::int64_t>(now_ns() - start, 1)));
    const auto time = take_turns(sides, options.rounds, calls);
    const double against_one = time.ratio(0, 3);
    const double against_two = time.ratio(1, 4);
    const double builtin_against_two = time.ratio(2, 4);
    ratios[0].push_back(against_one);
    ratios[1].push_back(against_two);
    ratios[2].push_back(builtin_against_two);
    t.row({op.name, duration(time.ns(0)), duration(time.ns(3)), fixed(against_one), duration(time.ns(1)),
           duration(time.ns(2)), duration(time.ns(4)), fixed(against_two), fixed(builtin_against_two)});
}

} // namespace

void bench_operators(const options &options) {
    std::printf("\n## Operators\n\n"
                "f32, through weir_enqueue on a synchronous stream, against oneDNN %d.%d.%d (OpenMP).\n"
                "%d rounds in turn, medians.\n",
                DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH, options.rounds);
    const table t({"operator", "weir, 1 thread", "oneDNN, 1 thread", "ratio", "weir on Eigen, 2", "weir built-in, 2",
                   "oneDNN, 2 threads", "ratio, Eigen", "ratio, built-in"});
    std::vector<std::vector<double>> ratios(3);
    for (const auto &op : operations(options.quick)) compare(op, options, t, ratios);
    t.row({"geometric mean", "", "", fixed(geometric_mean(ratios[0])), "", "", "", fixed(geometric_mean(ratios[1])),
           fixed(geometric_mean(ratios[2]))});
}

} // namespace bench
