// Tensors, and kernels over them.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_KERNEL_HPP
#define WEIR_KERNEL_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory.h"
#include "ops.h"
#include "cuda.h"
#include "engine.hpp"
#include "operators.h"

namespace weir {

// ---- tensors ----

/// Element type and shape: `weir::desc(WEIR_F32, {16, 64})`.
inline weir_tensor_desc desc(weir_dtype dtype, std::initializer_list<std::int64_t> dims) {
    weir_tensor_desc desc{};
    desc.dtype = dtype;
    if (dims.size() > WEIR_MAX_RANK) {
        detail::fail(WEIR_INVALID_ARGUMENT, "weir::desc: rank is more than WEIR_MAX_RANK");
        return desc;
    }
    for (const std::int64_t dim : dims) desc.dims[desc.rank++] = dim;
    return desc;
}

namespace detail {

// Memory of the caller's; `release`, if there is one, is called with `ctx` when nothing uses it any more.
inline weir_memory over(void *data, weir_destroy_fn release = nullptr, void *ctx = nullptr) {
    auto from = sized<weir_memory>();
    from.data = data;
    from.release = release;
    from.release_ctx = ctx;
    return from;
}

inline weir_memory pinned_for(weir_engine *device) {
    auto from = sized<weir_memory>();
    from.source = WEIR_MEMORY_PINNED;
    from.device = device;
    return from;
}

} // namespace detail

/// Memory without a shape, which tensors lie in.
class buffer : public shared<weir_buffer> {
public:
    using shared::shared;
    buffer() noexcept = default;
    buffer(const weir::engine &on, std::size_t bytes) { check(weir_buffer_create(on, bytes, nullptr, out())); }
    /// Memory of yours, which lives until the buffer, the tensors on it and all work on these are gone.
    buffer(const weir::engine &on, void *data, std::size_t bytes) {
        const auto from = detail::over(data);
        check(weir_buffer_create(on, bytes, &from, out()));
    }
    /// Memory that weir gives back by calling release(), once, on any thread.
    template <class F>
    buffer(const weir::engine &on, void *data, std::size_t bytes, F &&release) {
        using owner = detail::host_task<std::decay_t<F>>;
        auto held = std::unique_ptr<owner>(new owner{std::forward<F>(release)});
        const weir_destroy_fn call = [](void *self) noexcept {
            static_cast<void>(owner::call(self));
            owner::destroy(self);
        };
        const auto from = detail::over(data, call, held.get());
        if (check(weir_buffer_create(on, bytes, &from, out()))) static_cast<void>(held.release());
    }
    /// In memory of the host's that copies by `device` go straight from and to; `on` is a CPU engine.
    static buffer pinned(const weir::engine &on, std::size_t bytes, const weir::engine &device) {
        buffer made;
        const auto from = detail::pinned_for(device);
        check(weir_buffer_create(on, bytes, &from, made.out()));
        return made;
    }
    /// Has its memory, which may be yours, pinned for copies by `device` until it ends.
    void pin(const weir::engine &device) { check(weir_buffer_pin(*this, device)); }
    bool is_pinned(const weir::engine &device) const {
        std::int32_t pinned = 0;
        return check(weir_buffer_is_pinned(*this, device, &pinned)), pinned != 0;
    }
    void *data() const { return detail::value<void *>(weir_buffer_get_data, get()); }
    std::size_t bytes() const { return detail::value<std::size_t>(weir_buffer_get_size, get()); }
    weir::engine engine() const { return detail::lent<weir::engine>(weir_buffer_get_engine, get()); }
};

/// A dense array in an engine's memory, or over yours.
class tensor : public shared<weir_tensor> {
public:
    using shared::shared;
    tensor() noexcept = default;
    tensor(const weir::engine &on, const weir_tensor_desc &desc) {
        check(weir_tensor_create(on, &desc, nullptr, out()));
    }
    /// On the bytes of a buffer from `offset` on, as they are.
    tensor(const buffer &on, const weir_tensor_desc &desc, std::size_t offset = 0) {
        auto from = sized<weir_memory>();
        from.source = WEIR_MEMORY_BUFFER;
        from.buffer = on;
        from.offset = offset;
        check(weir_tensor_create(on.engine(), &desc, &from, out()));
    }
    /// Over memory that lives until the tensor and all work on it are gone.
    tensor(const weir::engine &on, const weir_tensor_desc &desc, void *data) {
        const auto from = detail::over(data);
        check(weir_tensor_create(on, &desc, &from, out()));
    }
    /// Over memory that weir gives back by calling release(), once, on any thread.
    template <class F>
    tensor(const weir::engine &on, const weir_tensor_desc &desc, void *data, F &&release) {
        using owner = detail::host_task<std::decay_t<F>>;
        auto held = std::unique_ptr<owner>(new owner{std::forward<F>(release)});
        const weir_destroy_fn call = [](void *self) noexcept {
            static_cast<void>(owner::call(self));
            owner::destroy(self);
        };
        const auto from = detail::over(data, call, held.get());
        if (check(weir_tensor_create(on, &desc, &from, out()))) static_cast<void>(held.release());
    }

    /// Of zeros, in memory of the host's that copies by `device` go straight from and to; `on` is a CPU engine.
    static tensor pinned(const weir::engine &on, const weir_tensor_desc &desc, const weir::engine &device) {
        tensor made;
        const auto from = detail::pinned_for(device);
        check(weir_tensor_create(on, &desc, &from, made.out()));
        return made;
    }
    bool is_pinned(const weir::engine &device) const {
        std::int32_t pinned = 0;
        return check(weir_tensor_is_pinned(*this, device, &pinned)), pinned != 0;
    }

    weir_tensor_desc desc() const { return detail::value<weir_tensor_desc>(weir_tensor_get_desc, get()); }
    /// The first element. Reading or writing it while queued work uses it is a race.
    template <class T = void>
    T *data() const {
        return static_cast<T *>(detail::value<void *>(weir_tensor_get_data, get()));
    }
    std::size_t bytes() const { return detail::value<std::size_t>(weir_tensor_get_size, get()); }
    weir::engine engine() const { return detail::lent<weir::engine>(weir_tensor_get_engine, get()); }
};

/// B of matrix products, packed once from a tensor [K, N], or, with WEIR_PACKED_WEIGHTS_TRANSPOSED, [N, K]. Kernels
/// take it in their descriptions and keep it.
class packed_weights : public shared<weir_packed_weights> {
public:
    using shared::shared;
    packed_weights() noexcept = default;
    packed_weights(const weir::engine &on, const tensor &from, std::uint64_t flags = 0) {
        auto desc = sized<weir_packed_weights_desc>();
        desc.flags = flags;
        check(weir_packed_weights_create(on, from, &desc, out()));
    }
    std::size_t bytes() const { return detail::value<std::size_t>(weir_packed_weights_get_size, get()); }
};

// ---- kernels ----

namespace detail {

// Whether so many inputs and outputs are those of `count` runs, as many for each.
inline bool are_of(std::size_t count, std::size_t inputs, std::size_t outputs, const char *who) {
    const bool fits = count > 0 ? inputs % count == 0 && outputs % count == 0 : inputs + outputs == 0;
    if (!fits) {
        fail(WEIR_INVALID_ARGUMENT, who + (": " + std::to_string(inputs)) + " inputs and " + std::to_string(outputs) +
                                        " outputs are not those of " + std::to_string(count) + " runs");
    }
    return fits;
}

} // namespace detail

/// What the body of a host kernel sees of the call it serves. Valid until the body returns.
class kernel_context {
public:
    /// Of the call that C hands to a kernel's function.
    explicit kernel_context(weir_kernel_context *raw) noexcept : raw_(raw) {}
    /// The call as C sees it.
    weir_kernel_context *get() const noexcept { return raw_; }

    const weir_tensor_view &input(std::size_t i) const { return view(weir_kernel_context_get_inputs, i); }
    const weir_tensor_view &output(std::size_t i) const { return view(weir_kernel_context_get_outputs, i); }
    std::int32_t num_slots() const {
        return detail::value<std::int32_t>(weir_kernel_context_get_num_slots, raw_);
    }
    void *scratch(std::int32_t slot) const {
        return detail::value<void *>(weir_kernel_context_get_scratch, raw_, slot);
    }
    bool is_cancelled() const {
        return detail::value<std::int32_t>(weir_kernel_context_is_cancelled, raw_) != 0;
    }
    /// The memory of an output whose shape the kernel decides (WEIR_KERNEL_DYNAMIC).
    void *allocate_output(std::size_t i, list<std::int64_t> dims) const {
        return detail::value<void *>(weir_kernel_context_allocate_output, raw_, i, dims.data(), dims.size());
    }
    /// Runs a program `count` times on the threads of this call; inputs and outputs are those of one run after another.
    void run_program(weir_program *program, std::size_t count, list<weir_tensor *> inputs,
                     list<weir_tensor *> outputs) const {
        const std::size_t each = count > 0 ? count : 1;
        if (!detail::are_of(count, inputs.size(), outputs.size(), "weir::kernel_context::run_program")) return;
        check(weir_kernel_context_run_program(raw_, program, count, inputs.data(), inputs.size() / each, outputs.data(),
                                              outputs.size() / each));
    }
    /// As weir::parallel_for, on the pool and with the slots of this call.
    template <class F>
    void parallel_for(std::int64_t n, F &&range, const weir_parallel_hint *hint = nullptr) const {
        detail::region<std::remove_reference_t<F>> region{range};
        region.finish(weir_kernel_context_parallel_for(raw_, n, hint, region.call, &region));
    }
    /// As weir::parallel_nd, on the pool and with the slots of this call.
    template <class F>
    void parallel_nd(std::int32_t rank, const std::int64_t *extents, const std::int64_t *tile, F &&box,
                     const weir_parallel_hint *hint = nullptr) const {
        detail::region<std::remove_reference_t<F>> region{box};
        region.finish(weir_kernel_context_parallel_nd(raw_, rank, extents, tile, hint, region.call_box, &region));
    }

private:
    template <class Getter>
    const weir_tensor_view &view(Getter getter, std::size_t i) const {
        const weir_tensor_view *views = nullptr;
        std::size_t count = 0;
        check(getter(raw_, &views, &count));
        if (i < count) return views[i];
        static const weir_tensor_view none{};
        detail::fail(WEIR_OUT_OF_RANGE, "weir::kernel_context: no argument " + std::to_string(i));
        return none;
    }
    weir_kernel_context *raw_;
};

namespace detail {

template <class Begin>
struct async_kernel;

// The call of an asynchronous kernel's `begin` that a thread is in.
struct begun_call {
    weir_completion *raw;
    int exceptions;
    bool is_left;
};

} // namespace detail

/// A call of a kernel that completes later: moved to where its work ends, and told there, from any thread. One that is
/// let go of untold has failed.
class completion {
public:
    /// Of the completion that C hands to an asynchronous kernel.
    explicit completion(weir_completion *raw) noexcept : raw_(raw) {}
    /// Takes it over.
    completion(completion &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    /// Exchanges the two.
    completion &operator=(completion &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~completion() {
        // In a `begin` that throws: its caller tells of the exception.
        const bool is_left = raw_ && begun_ && begun_->raw == raw_ && std::uncaught_exceptions() > begun_->exceptions;
        if (is_left) begun_->is_left = true;
        else done(WEIR_CANCELLED, "the kernel let go of its completion");
    }
    /// Once: the call has succeeded, or failed with this status and text, in which '?' stands for what is not UTF-8. What
    /// is no status is WEIR_UNKNOWN.
    void done(weir_status status = WEIR_OK, const char *text = nullptr) noexcept {
        weir_completion *raw = std::exchange(raw_, nullptr);
        // A call that is refused leaves the completion.
        for (const weir_status code : {status, static_cast<weir_status>(WEIR_UNKNOWN)}) {
            const auto ask = [&](const char *told) { return weir_completion_done(raw, code, told); };
            if (!raw || detail::tell(text, ask)) return;
        }
    }

private:
    template <class Begin>
    friend struct detail::async_kernel;

    static inline thread_local detail::begun_call *begun_ = nullptr;

    weir_completion *raw_;
};

/// Options of a new kernel: the members of weir_kernel_options, with setters that chain.
struct kernel_options : weir_kernel_options {
    kernel_options() noexcept : weir_kernel_options{} { struct_size = sizeof(weir_kernel_options); }
    /// The text lives until the kernel is made.
    kernel_options &set_name(const char *text) noexcept { return name = text, *this; }
    kernel_options &set_cost_ns(std::uint64_t ns) noexcept { return cost_ns = ns, *this; }
    /// Members of the descriptor that come as inputs, "begin end". The text lives until the kernel is made.
    kernel_options &set_settings(const char *members) noexcept { return settings = members, *this; }
};

namespace detail {

struct no_infer {
    void operator()(const weir_tensor_desc *, std::size_t, weir_tensor_desc *, std::size_t) const noexcept {}
};

template <class Compute, class Infer>
struct host_kernel {
    Compute compute;
    Infer infer;
    static weir_status call(void *self, weir_kernel_context *raw) noexcept {
        const auto fail = [raw](weir_status code, const char *what) {
            static_cast<void>(tell(what, [&](const char *text) { return weir_kernel_context_fail(raw, code, text); }));
        };
        return guarded(fail, static_cast<host_kernel *>(self)->compute, kernel_context(raw));
    }
    static weir_status call_infer(void *self, const weir_tensor_desc *in, std::size_t num_in, weir_tensor_desc *out,
                                  std::size_t num_out) noexcept {
        return guarded(silent, static_cast<host_kernel *>(self)->infer, in, num_in, out, num_out);
    }
    static void destroy(void *self) noexcept { delete static_cast<host_kernel *>(self); }
};

template <class Begin>
struct async_kernel {
    Begin begin;
    static weir_status call(void *self, weir_kernel_context *raw, weir_completion *raw_completion) noexcept {
        completion told(raw_completion);
        begun_call call{raw_completion, std::uncaught_exceptions(), false};
        begun_call *const outer = std::exchange(completion::begun_, &call);
        const auto fail = [&](weir_status code, const char *what) {
            if (std::exchange(call.is_left, false)) told = completion(raw_completion);
            told.done(code, what);
        };
        auto run = [&] { static_cast<async_kernel *>(self)->begin(kernel_context(raw), std::move(told)); };
        static_cast<void>(guarded(fail, run));
        completion::begun_ = outer;
        if (call.is_left) told = completion(raw_completion); // let go of behind an exception that `begin` caught
        return WEIR_OK;
    }
    static void destroy(void *self) noexcept { delete static_cast<async_kernel *>(self); }
};

} // namespace detail

/// A function over tensors: one of the built-in ones, or a callable of yours.
class kernel : public shared<weir_kernel> {
public:
    using shared::shared;
    kernel() noexcept = default;

    /// A kernel from compute(kernel_context), which returns nothing or a weir_status and may run on several threads at
    /// once. `desc` says the rest: name, inputs, outputs, scratch_bytes and so on; struct_size is set here.
    template <class Compute>
    static kernel host(const engine &on, weir_host_kernel_desc desc, Compute &&compute) {
        desc.infer = nullptr;
        return make(on, desc, std::forward<Compute>(compute), detail::no_infer());
    }
    /// As above, with infer(inputs, num_inputs, outputs, num_outputs) to compute the outputs' descriptors.
    template <class Compute, class Infer>
    static kernel host(const engine &on, weir_host_kernel_desc desc, Compute &&compute, Infer &&infer) {
        desc.infer = detail::host_kernel<std::decay_t<Compute>, std::decay_t<Infer>>::call_infer;
        return make(on, desc, std::forward<Compute>(compute), std::forward<Infer>(infer));
    }
    /// A kernel from begin(kernel_context, completion), which starts the work and returns. The completion is told when
    /// it is done. An exception is the call's failure.
    template <class Begin>
    static kernel host_async(const engine &on, weir_host_kernel_desc desc, Begin &&begin) {
        using body = detail::async_kernel<std::decay_t<Begin>>;
        auto user = std::unique_ptr<body>(new body{std::forward<Begin>(begin)});
        desc.struct_size = sizeof desc;
        desc.compute_async = body::call;
        desc.user = user.get();
        desc.destroy = body::destroy;
        kernel kernel;
        if (check(weir_kernel_create_host(on, &desc, kernel.out()))) static_cast<void>(user.release());
        return kernel;
    }
    static kernel matmul(const engine &on, std::uint64_t flags = 0, const kernel_options &options = {}) {
        auto desc = sized<weir_matmul_desc>();
        desc.flags = flags;
        return builtin(weir_kernel_create_matmul, on, &desc, options);
    }

    /// A built-in operator by its description, such as a weir_softmax_desc, zeroed but for what is set; struct_size is
    /// filled in here.
#define WEIR_OPERATOR(name, takes_null)                                                               \
    static kernel of(const engine &on, weir_##name##_desc desc, const kernel_options &options = {}) { \
        return described(weir_kernel_create_##name, on, desc, options);                               \
    }
    WEIR_OPERATORS(WEIR_OPERATOR)
#undef WEIR_OPERATOR

    // Some by what is most often said of them.

    static kernel eltwise(const engine &on, weir_eltwise_op op, float alpha = 0, float beta = 0,
                          const kernel_options &options = {}) {
        weir_eltwise_desc desc{};
        desc.op = op;
        desc.alpha = alpha;
        desc.beta = beta;
        return described(weir_kernel_create_eltwise, on, desc, options);
    }
    static kernel binary(const engine &on, weir_binary_op op, const kernel_options &options = {}) {
        weir_binary_desc desc{};
        desc.op = op;
        return described(weir_kernel_create_binary, on, desc, options);
    }
    static kernel select(const engine &on, const kernel_options &options = {}) {
        return builtin(weir_kernel_create_select, on, nullptr, options);
    }
    /// x scale + shift, as another type.
    static kernel convert(const engine &on, weir_dtype to, float scale = 1, float shift = 0,
                          const kernel_options &options = {}) {
        weir_convert_desc desc{};
        desc.dtype = to;
        desc.scale = scale;
        desc.shift = shift;
        return described(weir_kernel_create_convert, on, desc, options);
    }
    static kernel quantize(const engine &on, weir_dtype to, std::uint64_t flags = 0, std::int32_t axis = -1,
                           const kernel_options &options = {}) {
        weir_quantize_desc desc{};
        desc.dtype = to;
        desc.flags = flags;
        desc.axis = axis;
        return described(weir_kernel_create_quantize, on, desc, options);
    }
    /// As quantize, with WEIR_QUANTIZE_DEQUANTIZE.
    static kernel dequantize(const engine &on, weir_dtype to = WEIR_F32, std::uint64_t flags = 0,
                             std::int32_t axis = -1, const kernel_options &options = {}) {
        return quantize(on, to, flags | WEIR_QUANTIZE_DEQUANTIZE, axis, options);
    }
    /// Dimension i of the output is dimension permutation[i] of the input; an empty list turns the order round.
    static kernel transpose(const engine &on, list<std::int32_t> permutation = {},
                            const kernel_options &options = {}) {
        weir_transpose_desc desc{};
        desc.rank = fill(desc.permutation, permutation, "weir::kernel::transpose");
        return described(weir_kernel_create_transpose, on, desc, options);
    }
    static kernel concat(const engine &on, std::uint32_t num_inputs, std::int32_t axis = -1,
                         const kernel_options &options = {}) {
        weir_concat_desc desc{};
        desc.num_inputs = num_inputs;
        desc.axis = axis;
        return described(weir_kernel_create_concat, on, desc, options);
    }
    static kernel reshape(const engine &on, list<std::int64_t> dims, const kernel_options &options = {}) {
        weir_reshape_desc desc{};
        desc.rank = fill(desc.dims, dims, "weir::kernel::reshape");
        return described(weir_kernel_create_reshape, on, desc, options);
    }
    static kernel gather(const engine &on, std::int32_t axis = 0, const kernel_options &options = {}) {
        weir_gather_desc desc{};
        desc.axis = axis;
        return described(weir_kernel_create_gather, on, desc, options);
    }
    /// Over these axes, all if there is none.
    static kernel reduce(const engine &on, weir_reduce_op op, list<std::int32_t> axes = {}, std::uint64_t flags = 0,
                         const kernel_options &options = {}) {
        weir_reduce_desc desc{};
        desc.op = op;
        desc.flags = flags;
        desc.num_axes = fill(desc.axes, axes, "weir::kernel::reduce");
        return described(weir_kernel_create_reduce, on, desc, options);
    }
    static kernel lstm(const engine &on, std::uint64_t flags = 0, weir_gate_order order = WEIR_GATES_ONNX,
                       const kernel_options &options = {}) {
        weir_lstm_desc desc{};
        desc.flags = flags;
        desc.gate_order = order;
        return described(weir_kernel_create_lstm, on, desc, options);
    }
    static kernel gru(const engine &on, std::uint64_t flags = 0, weir_gate_order order = WEIR_GATES_ONNX,
                      const kernel_options &options = {}) {
        weir_gru_desc desc{};
        desc.flags = flags;
        desc.gate_order = order;
        return described(weir_kernel_create_gru, on, desc, options);
    }
    /// As binary, with WEIR_BINARY_ADD.
    static kernel add(const engine &on, const kernel_options &options = {}) {
        return binary(on, WEIR_BINARY_ADD, options);
    }
    /// As eltwise, with WEIR_ELTWISE_RELU.
    static kernel relu(const engine &on, const kernel_options &options = {}) {
        return eltwise(on, WEIR_ELTWISE_RELU, 0, 0, options);
    }
    static kernel softmax(const engine &on, std::int32_t axis = -1, const kernel_options &options = {}) {
        auto desc = sized<weir_softmax_desc>();
        desc.axis = axis;
        return builtin(weir_kernel_create_softmax, on, &desc, options);
    }
    /// As reduce, with WEIR_REDUCE_ARGMAX and one axis.
    static kernel argmax(const engine &on, std::int32_t axis = -1, const kernel_options &options = {}) {
        return reduce(on, WEIR_REDUCE_ARGMAX, {axis}, 0, options);
    }

    weir_kernel_info info() const {
        auto info = sized<weir_kernel_info>();
        check(weir_kernel_get_info(*this, &info));
        return info;
    }
    /// The kernel's name, as texts say it.
    std::string name() const { return info().name; }
    /// How many tensors it reads.
    std::size_t num_inputs() const { return info().num_inputs; }
    /// How many tensors it writes.
    std::size_t num_outputs() const { return info().num_outputs; }
    /// What the outputs look like for inputs of these types and shapes.
    std::vector<weir_tensor_desc> infer(list<weir_tensor_desc> inputs) const {
        std::vector<weir_tensor_desc> outputs(num_outputs());
        if (!check(weir_kernel_infer(*this, inputs.data(), inputs.size(), outputs.data(), outputs.size()))) {
            outputs.clear();
        }
        return outputs;
    }

    /// A kernel that only the engine's device knows, with outputs that are always the same.
    static kernel named(const engine &on, const std::string &operation, std::size_t num_inputs,
                        list<weir_tensor_desc> outputs, const void *attributes = nullptr,
                        std::size_t attributes_bytes = 0, const kernel_options &options = {}) {
        auto desc = sized<weir_named_kernel_desc>();
        desc.operation = operation.c_str();
        desc.attributes = attributes;
        desc.attributes_bytes = attributes_bytes;
        desc.num_inputs = num_inputs;
        desc.outputs = outputs.data();
        desc.num_outputs = outputs.size();
        return builtin(weir_kernel_create_named, on, &desc, options);
    }

    /// A kernel from source of the caller's, on a CUDA engine; struct_size is set here.
    static kernel cuda(const engine &on, weir_cuda_kernel_desc desc, const kernel_options &options = {}) {
        return described(weir_kernel_create_cuda, on, desc, options);
    }

private:
    template <class Compute, class Infer>
    static kernel make(const engine &on, weir_host_kernel_desc &desc, Compute &&compute, Infer &&infer) {
        using body = detail::host_kernel<std::decay_t<Compute>, std::decay_t<Infer>>;
        auto user = std::unique_ptr<body>(new body{std::forward<Compute>(compute), std::forward<Infer>(infer)});
        desc.struct_size = sizeof desc;
        desc.compute = body::call;
        desc.user = user.get();
        desc.destroy = body::destroy;
        kernel kernel;
        if (check(weir_kernel_create_host(on, &desc, kernel.out()))) static_cast<void>(user.release());
        return kernel;
    }
    template <class Create, class Desc>
    static kernel described(Create create, const engine &on, Desc &desc, const kernel_options &options) {
        desc.struct_size = sizeof desc;
        return builtin(create, on, &desc, options);
    }
    template <class T, std::size_t N>
    static std::uint32_t fill(T (&members)[N], const list<T> &items, const char *who) {
        if (items.size() > N) {
            detail::fail(WEIR_INVALID_ARGUMENT, std::string(who) + ": " + std::to_string(items.size()) +
                                                    " numbers are more than " + std::to_string(N));
            return 0;
        }
        for (std::size_t i = 0; i < items.size(); i++) members[i] = items.data()[i];
        return static_cast<std::uint32_t>(items.size());
    }
    template <class Create, class Desc>
    static kernel builtin(Create create, const engine &on, Desc desc, const kernel_options &options) {
        kernel kernel;
        check(create(on, desc, &options, kernel.out()));
        return kernel;
    }
};

/// The cache of built-in kernels.
namespace kernel_cache {

inline void set_capacity(std::size_t capacity) { check(weir_kernel_cache_set_capacity(capacity)); }
inline weir_kernel_cache_info info() {
    auto info = sized<weir_kernel_cache_info>();
    check(weir_kernel_cache_get_info(&info));
    return info;
}

} // namespace kernel_cache

inline void stream::enqueue(const kernel &kernel, list<weir_tensor *> inputs, list<weir_tensor *> outputs) const {
    check(weir_enqueue(*this, kernel, inputs.data(), inputs.size(), outputs.data(), outputs.size()));
}

/// A kernel with its tensors on a stream, checked once and enqueued as often as needed.
class call : public shared<weir_call> {
public:
    using shared::shared;
    call() noexcept = default;
    call(const stream &on, const kernel &kernel, list<weir_tensor *> inputs, list<weir_tensor *> outputs) {
        check(weir_call_create(on, kernel, inputs.data(), inputs.size(), outputs.data(), outputs.size(), out()));
    }
    /// As stream::enqueue with the same arguments.
    void enqueue() const { check(weir_call_enqueue(*this)); }
};

} // namespace weir

#endif // WEIR_KERNEL_HPP
