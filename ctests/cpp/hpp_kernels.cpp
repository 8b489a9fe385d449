// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The built-in kernels of weir.hpp: each family once, by numbers that can be checked by eye; packed weights; the cache.

#include "expect.hpp"

#include <cmath>
#include <vector>
#include <weir/ops.h>
#include <weir/cuda.h>

namespace {

struct bench {
    weir::engine engine{WEIR_ENGINE_CPU, 0};
    weir::stream stream{engine};

    template <class T>
    weir::tensor tensor(weir_dtype dtype, std::initializer_list<std::int64_t> dims, const std::vector<T> &values) const {
        weir::tensor t(engine, weir::desc(dtype, dims));
        EXPECT(t.bytes() == values.size() * sizeof(T));
        std::memcpy(t.data(), values.data(), t.bytes());
        return t;
    }
    weir::tensor floats(std::initializer_list<std::int64_t> dims, const std::vector<float> &values) const {
        return tensor<float>(WEIR_F32, dims, values);
    }

    /// Output 0 of the kernel: its elements.
    template <class T = float>
    std::vector<T> run(const weir::kernel &kernel, const std::vector<weir::tensor> &inputs) const {
        std::vector<weir_tensor_desc> descs;
        std::vector<weir_tensor *> in, out;
        for (const auto &input : inputs) {
            descs.push_back(input.desc());
            in.push_back(input);
        }
        std::vector<weir::tensor> outputs;
        for (const auto &desc : kernel.infer(descs)) outputs.emplace_back(engine, desc);
        for (const auto &output : outputs) out.push_back(output);
        stream.enqueue(kernel, in, out);
        stream.synchronize();
        const T *data = outputs[0].template data<T>();
        return std::vector<T>(data, data + outputs[0].bytes() / sizeof(T));
    }
};

using floats = std::vector<float>;

void test_elements(const bench &b) {
    const auto x = b.floats({3}, {-2, 0, 3});
    EXPECT(b.run(weir::kernel::eltwise(b.engine, WEIR_ELTWISE_RELU, 0.5f), {x}) == floats({-1, 0, 3}));
    EXPECT(b.run(weir::kernel::eltwise(b.engine, WEIR_ELTWISE_CLIP, -1, 1), {x}) == floats({-1, 0, 1}));
    EXPECT(b.run(weir::kernel::binary(b.engine, WEIR_BINARY_SUB), {x, b.floats({1}, {1})}) == floats({-3, -1, 2}));
    const auto positive = b.tensor<std::uint8_t>(WEIR_BOOL, {3}, {0, 1, 1});
    EXPECT(b.run(weir::kernel::select(b.engine), {positive, x, b.floats({1}, {7})}) == floats({7, 0, 3}));
    EXPECT(b.run<std::int8_t>(weir::kernel::convert(b.engine, WEIR_S8, 50), {x}) == std::vector<std::int8_t>({-100, 0, 127}));
    EXPECT(b.run<std::int32_t>(weir::kernel::convert(b.engine, WEIR_S32), {x}) == std::vector<std::int32_t>({-2, 0, 3}));
    const auto scale = b.floats({1}, {0.5f});
    const auto zero = b.tensor<std::int32_t>(WEIR_S32, {1}, {10});
    const auto q = b.run<std::uint8_t>(weir::kernel::quantize(b.engine, WEIR_U8, WEIR_QUANTIZE_ZERO_POINT), {x, scale, zero});
    EXPECT(q == std::vector<std::uint8_t>({6, 10, 16}));
    const auto back = weir::kernel::dequantize(b.engine, WEIR_F32, WEIR_QUANTIZE_ZERO_POINT);
    EXPECT(b.run(back, {b.tensor(WEIR_U8, {3}, q), scale, zero}) == floats({-2, 0, 3}));
}

void test_moving(const bench &b) {
    const auto x = b.floats({2, 3}, {1, 2, 3, 4, 5, 6});
    const floats turned = {1, 4, 2, 5, 3, 6};
    EXPECT(b.run(weir::kernel::transpose(b.engine), {x}) == turned);
    EXPECT(b.run(weir::kernel::transpose(b.engine, {1, 0}), {x}) == turned);
    EXPECT(b.run(weir::kernel::concat(b.engine, 2), {x, x}) == floats({1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
    weir_slice_desc slice{};
    slice.rank = 2;
    slice.end[0] = 2;
    slice.end[1] = INT64_MAX;
    slice.step[1] = 2;
    EXPECT(b.run(weir::kernel::of(b.engine, slice), {x}) == floats({1, 3, 4, 6}));
    weir_pad_desc pad{};
    pad.rank = 2;
    pad.before[0] = 1;
    pad.value = 9;
    EXPECT(b.run(weir::kernel::of(b.engine, pad), {x}) == floats({9, 9, 9, 1, 2, 3, 4, 5, 6}));
    EXPECT(weir::kernel::reshape(b.engine, {3, -1}).infer({x.desc()})[0].dims[1] == 2);
    const auto rows = b.tensor<std::int32_t>(WEIR_S32, {2}, {1, 1});
    EXPECT(b.run(weir::kernel::gather(b.engine), {x, rows}) == floats({4, 5, 6, 4, 5, 6}));
    const std::vector<std::int32_t> nine(9);
    EXPECT_THROWS(weir::kernel::transpose(b.engine, nine), WEIR_INVALID_ARGUMENT, "9 numbers are more than 8");
}

void test_rows(const bench &b) {
    const auto x = b.floats({2, 2}, {1, 3, 5, 5});
    EXPECT(b.run(weir::kernel::reduce(b.engine, WEIR_REDUCE_SUM), {x}) == floats({14}));
    EXPECT(b.run(weir::kernel::reduce(b.engine, WEIR_REDUCE_MAX, {0}, WEIR_REDUCE_KEEP_DIMS), {x}) == floats({5, 5}));
    weir_reduce_desc two{};
    two.op = WEIR_REDUCE_NORM_SUM;
    two.num_axes = 1;
    two.axes[0] = 1;
    two.p = 1;
    EXPECT(b.run(weir::kernel::of(b.engine, two), {x}) == floats({4, 10}));
    weir_softmax_desc logarithm{};
    logarithm.axis = 1;
    logarithm.flags = WEIR_SOFTMAX_LOG;
    EXPECT(std::fabs(b.run(weir::kernel::of(b.engine, logarithm), {x})[2] + std::log(2.0f)) < 1e-6f);
    weir_norm_desc norm{};
    norm.op = WEIR_NORM_LAYER;
    norm.axis = -1;
    norm.epsilon = 1e-5f;
    const auto y = b.run(weir::kernel::of(b.engine, norm), {x});
    EXPECT(std::fabs(y[0] + 1) < 1e-4f && std::fabs(y[1] - 1) < 1e-4f && y[2] == 0);
}

void test_products(const bench &b) {
    const auto a = b.floats({1, 2}, {1, -2});
    const auto w = b.floats({2, 2}, {1, 2, 3, 4});
    const weir::packed_weights packed(b.engine, w, WEIR_PACKED_WEIGHTS_TRANSPOSED);
    const weir::packed_weights copy = packed;
    EXPECT(copy.bytes() >= w.bytes());
    weir_matmul_desc desc{};
    desc.weights = packed;
    desc.activation = WEIR_ACTIVATION_RELU;
    EXPECT(b.run(weir::kernel::of(b.engine, desc), {a}) == floats({0, 0}));
    desc.activation = WEIR_ACTIVATION_NONE;
    EXPECT(b.run(weir::kernel::of(b.engine, desc), {a}) == floats({-3, -5}));
    EXPECT(b.run(weir::kernel::matmul(b.engine), {a, w}) == floats({-5, -6}));
    const auto u = b.tensor<std::uint8_t>(WEIR_U8, {1, 2}, {255, 255});
    const auto s = b.tensor<std::int8_t>(WEIR_S8, {2, 1}, {127, 127});
    EXPECT(b.run<std::int32_t>(weir::kernel::of(b.engine, weir_matmul_int8_desc{}), {u, s}) == std::vector<std::int32_t>({64770}));
    EXPECT_THROWS(weir::packed_weights(b.engine, a, 4711), WEIR_INVALID_ARGUMENT, "weir_packed_weights_create");
}

void test_windows(const bench &b) {
    const auto x = b.floats({1, 1, 4}, {1, 2, 3, 4});
    EXPECT(b.run(weir::kernel::of(b.engine, weir_conv_desc{}), {x, b.floats({1, 1, 2}, {1, -1})}) == floats({-1, -1, -1}));
    weir_pooling_desc pooling{};
    pooling.op = WEIR_POOLING_MAX;
    pooling.kernel[0] = 2;
    pooling.strides[0] = 2;
    EXPECT(b.run(weir::kernel::of(b.engine, pooling), {x}) == floats({2, 4}));
    const auto one = b.floats({1, 1}, {1});
    const auto four = b.floats({4, 1}, {0, 0, 0, 0}), three = b.floats({3, 1}, {0, 0, 0});
    // All gates are halves.
    EXPECT(std::fabs(b.run(weir::kernel::lstm(b.engine), {one, one, one, four, four})[0] - 0.5f * std::tanh(0.5f)) < 1e-6f);
    EXPECT(b.run(weir::kernel::gru(b.engine, 0, WEIR_GATES_TORCH), {one, one, three, three}) == floats({0.5f}));
}

void test_cache(const bench &b) {
    weir::kernel_cache::set_capacity(10);
    EXPECT(weir::kernel_cache::info().capacity == 10);
    const auto first = weir::kernel::binary(b.engine, WEIR_BINARY_MUL);
    const auto before = weir::kernel_cache::info();
    const auto again = weir::kernel::binary(b.engine, WEIR_BINARY_MUL);
    EXPECT(weir::kernel_cache::info().hits == before.hits + 1 && first.get() != again.get());
    EXPECT_THROWS(weir::kernel_cache::set_capacity(SIZE_MAX), WEIR_OUT_OF_RANGE, "expected 0 to 1048576");
}


/// What a CPU engine has none of.
void test_native(const bench &b) {
    auto desc = weir::sized<weir_cuda_kernel_desc>();
    desc.entry = "scale";
    const weir::event event(b.engine);
    EXPECT_THROWS(b.engine.native_handle(), WEIR_UNIMPLEMENTED, "engine cpu:0 has no native handles");
    EXPECT_THROWS(b.stream.native_handle(), WEIR_UNIMPLEMENTED, "no native handles");
    EXPECT_THROWS(event.native_handle(), WEIR_UNIMPLEMENTED, "no native handles");
    EXPECT_THROWS(b.engine.cuda_device_info(), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
    EXPECT_THROWS(weir::stream::wrap_cuda(b.engine, nullptr), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
    EXPECT_THROWS((b.stream.wait_cuda_event(&desc), 0), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
    EXPECT_THROWS((b.stream.record_cuda_event(&desc), 0), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
    EXPECT_THROWS(weir::kernel::cuda(b.engine, desc), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
}

} // namespace

int main() {
    const auto before = weir::runtime_info();
    {
        const bench b;
        test_elements(b);
        test_moving(b);
        test_rows(b);
        test_products(b);
        test_windows(b);
        test_cache(b);
        test_native(b);
    }
    expect_released(before);
    return 0;
}
