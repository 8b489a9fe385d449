// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The C++ header: handles and who owns what, errors with their text, streams, events, tensors, kernels from lambdas.

#include "weir.hpp"

#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#include <weir/testing.hpp>

#include "expect.hpp"

// Shared objects copy, settings and builders only move.
static_assert(std::is_copy_constructible_v<weir::engine> && std::is_nothrow_move_constructible_v<weir::engine>);
static_assert(std::is_copy_assignable_v<weir::stream> && std::is_nothrow_move_assignable_v<weir::stream>);
static_assert(!std::is_copy_constructible_v<weir::graph> && std::is_nothrow_move_constructible_v<weir::graph>);
static_assert(std::is_trivially_copyable_v<weir::run_options> && std::is_trivially_copyable_v<weir::compile_options>);
static_assert(std::is_base_of_v<std::runtime_error, weir::error>);

static void test_handles() {
    const auto before = weir::runtime_info();
    {
        weir::engine empty, engine = weir::engine::cpu();
        EXPECT(!empty && engine);
        EXPECT(weir::runtime_info().engines == before.engines + 1);
        weir::engine copy = engine, other = copy;
        EXPECT(copy.get() == engine.get() && other == engine);
        weir::engine moved = std::move(copy);
        EXPECT(!copy && moved.get() == engine.get()); // NOLINT: a moved-from handle is empty, by contract
        weir::engine &self = moved;
        moved = self;
        EXPECT(moved.get() == engine.get());
        moved = std::move(self);
        EXPECT(moved.get() == engine.get());
        other = weir::engine();
        engine = empty;
        EXPECT(!engine && weir::runtime_info().engines == before.engines + 1);
        weir_engine *raw = moved.detach(); // now it is ours
        EXPECT(!moved && raw != nullptr);
        weir::engine adopted(raw), kept = weir::keep<weir::engine>(raw);
        EXPECT(kept.kind() == WEIR_ENGINE_CPU && adopted.index() == 0);
    }
    EXPECT(weir::runtime_info().engines == before.engines);
    EXPECT(weir::runtime_info().attrs == before.attrs);
}

static void test_errors() {
    const weir::engine engine = weir::engine::cpu();
    EXPECT_THROWS(weir::engine(99), WEIR_INVALID_ARGUMENT, "weir_engine_create: kind is 99");
    EXPECT_THROWS(weir::engine(WEIR_ENGINE_CPU, 4711), WEIR_OUT_OF_RANGE, "index is 4711");
    EXPECT_THROWS(weir::stream(weir::engine()), WEIR_INVALID_ARGUMENT, "engine is NULL");
    EXPECT_THROWS(weir::stream_attr().set_priority(1000), WEIR_OUT_OF_RANGE, "priority is 1000");
    EXPECT_THROWS(weir::desc(WEIR_F32, {1, 1, 1, 1, 1, 1, 1, 1, 1}), WEIR_INVALID_ARGUMENT, "WEIR_MAX_RANK");
    EXPECT_THROWS(weir::tensor(engine, weir::desc(WEIR_F32, {-2})), WEIR_INVALID_ARGUMENT, "dims[0] is -2");
    const weir::error copy = weir::error(WEIR_DATA_LOSS, "text");
    EXPECT(copy.code() == WEIR_DATA_LOSS && std::strcmp(copy.what(), "text") == 0);
}

static void test_getters() {
    const auto pool = weir::threadpool::without_threads();
    const auto engine = weir::engine::cpu(pool);
    const weir::engine bare(WEIR_ENGINE_CPU);
    EXPECT(engine.threadpool().get() == pool.get() && !bare.threadpool());
    EXPECT(weir::engine::count(WEIR_ENGINE_CPU) >= 1 && engine.info().num_processors >= 1);
    const std::vector<weir::engine> all = weir::engine::all();
    EXPECT(!all.empty() && all[0].kind() == WEIR_ENGINE_CPU && all[0].name() == "cpu:0");
    auto attr = weir::stream_attr();
    attr.set_threadpool(pool).set_name("named").set_priority(5).set_spin_ns(0).set_asynchronous(true);
    const weir::stream stream(bare, WEIR_STREAM_DEFAULT, attr), plain(bare);
    EXPECT(stream.threadpool().get() == pool.get() && attr.threadpool().get() == pool.get() && !plain.threadpool());
    EXPECT(stream.engine().get() == bare.get());
    EXPECT(!stream.error() && stream.done());
    stream.enqueue([] { return WEIR_DATA_LOSS; });
    EXPECT_THROWS(stream.synchronize(), WEIR_DATA_LOSS, "named");
    const auto error = stream.error();
    EXPECT(error && error->code() == WEIR_DATA_LOSS && std::strstr(error->what(), "named"));
    EXPECT_THROWS(bare.synchronize(), WEIR_DATA_LOSS, "named");
    stream.clear_error();
    EXPECT(!stream.error());
}

static void test_threads() {
    const auto before = weir::runtime_threads().size();
    weir::engine_attr attr;
    attr.set_thread_mode(WEIR_THREAD_MODE_PRIVATE).set_thread_count(2);
    EXPECT(attr.thread_mode() == WEIR_THREAD_MODE_PRIVATE && attr.thread_count() == 2);
    {
        const weir::engine engine(WEIR_ENGINE_CPU, 0, attr);
        const auto threads = weir::runtime_threads();
        EXPECT(engine.info().thread_mode == WEIR_THREAD_MODE_PRIVATE && engine.info().thread_count == 2);
        EXPECT(threads.size() == before + 2 && threads.back().pool == engine.threadpool().id());
        EXPECT(std::strcmp(threads.back().name, "weir-cpu0-1") == 0);
    }
    eventually([&] { return weir::runtime_threads().size() == before; });
    EXPECT_THROWS(attr.set_thread_mode(0), WEIR_INVALID_ARGUMENT, "mode is 0");
    attr.set_threadpool(weir::threadpool::without_threads());
    EXPECT_THROWS(weir::engine(WEIR_ENGINE_CPU, 0, attr), WEIR_INVALID_ARGUMENT, "thread mode private");
}

// A lambda's state lives as long as its task and no longer.
static void test_tasks() {
    const weir::engine engine = weir::engine::cpu();
    const weir::stream now(engine), later(engine, WEIR_STREAM_ASYNCHRONOUS);
    const auto state = std::make_shared<int>(0);
    for (const weir::stream &stream : {now, later}) {
        stream.enqueue([state] { ++*state; });
        auto only_moves = std::make_unique<int>(1);
        stream.enqueue([state, step = std::move(only_moves)] { *state += *step; });
        stream.synchronize();
    }
    EXPECT(*state == 4);
    eventually([&] { return state.use_count() == 1; });
    EXPECT_THROWS(now.enqueue([state] { return WEIR_NOT_FOUND; }), WEIR_NOT_FOUND, "");
    EXPECT(state.use_count() == 1); // it has run
    EXPECT_THROWS(weir::stream().enqueue([state] {}), WEIR_INVALID_ARGUMENT, "stream is NULL");
    EXPECT(state.use_count() == 1); // it was refused
}

static void test_events() {
    const weir::engine engine = weir::engine::cpu();
    const weir::stream first(engine, WEIR_STREAM_ASYNCHRONOUS), second(engine, WEIR_STREAM_ASYNCHRONOUS);
    const weir::event start(engine, WEIR_EVENT_TIMING), end(engine, WEIR_EVENT_TIMING);
    int value = 0;
    first.record(start);
    first.enqueue([&] { value = 1; });
    first.record(end);
    second.wait(end);
    second.enqueue([&] { value *= 10; });
    second.synchronize();
    EXPECT(value == 10 && start.done() && end.done());
    end.synchronize();
    EXPECT(weir::event::elapsed_ns(start, end) >= 0 && weir::event::elapsed_ns(end, start) <= 0);
    weir::sync_devices();
    engine.synchronize();
}

static void test_domains() {
    const weir::domain domain("library");
    const weir::engine other = weir::engine::cpu();
    const weir::engine own(WEIR_ENGINE_CPU, 0, weir::engine_attr().set_domain(domain).set_name("own"));
    weir::engine_attr attr;
    attr.set_domain(domain).set_name("x");
    EXPECT(attr.domain().get() == domain.get() && attr.name() == "x");
    EXPECT(domain.name() == "library" && weir::domain("library").name() == "library#2");
    EXPECT(own.name() == "library/own" && other.name() == "cpu:0");
    EXPECT_THROWS(weir::domain("a/b"), WEIR_INVALID_ARGUMENT, "name 'a/b' has '/' in it");
    const weir::stream ours(own, WEIR_STREAM_ASYNCHRONOUS), theirs(other, WEIR_STREAM_ASYNCHRONOUS);
    const weir::async_scope scope(domain);
    theirs.enqueue([] { return WEIR_DATA_LOSS; });
    EXPECT_THROWS(theirs.synchronize(), WEIR_DATA_LOSS, "");
    domain.synchronize();
    ours.enqueue([] { return WEIR_NOT_FOUND; });
    EXPECT_THROWS(scope.end(), WEIR_NOT_FOUND, "engine library/own");
    domain.synchronize(); // told by its scope
    EXPECT_THROWS(weir::domain().synchronize(), WEIR_DATA_LOSS, "engine cpu:0");
    EXPECT_THROWS(weir::sync_devices(), WEIR_DATA_LOSS, "engine library/own");
}

static void test_tensors() {
    const weir::engine engine = weir::engine::cpu();
    weir::tensor zeros(engine, weir::desc(WEIR_F32, {2, 3}));
    EXPECT(zeros.bytes() == 24 && zeros.data<float>()[5] == 0 && zeros.desc().dims[1] == 3);
    EXPECT(zeros.engine().get() == engine.get());
    std::vector<float> memory(6, 1.0f);
    int released = 0;
    {
        const weir::tensor over(engine, zeros.desc(), memory.data());
        const weir::tensor owner(engine, zeros.desc(), memory.data(), [&] { ++released; });
        EXPECT(owner.data() == memory.data() && over.data() == memory.data() && released == 0);
    }
    EXPECT(released == 1);
    EXPECT_THROWS(weir::tensor(engine, zeros.desc(), nullptr, [&] { ++released; }), WEIR_INVALID_ARGUMENT, "data");
    EXPECT(released == 1); // what was never taken is not given back
}

static void test_kernels() {
    const weir::engine engine = weir::engine::cpu();
    const weir::stream stream(engine);
    const weir::tensor x(engine, weir::desc(WEIR_F32, {100})), y(engine, weir::desc(WEIR_F32, {100}));
    for (int i = 0; i < 100; i++) x.data<float>()[i] = static_cast<float>(i);

    const auto like = x.desc();
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.name = "scale";
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &like;
    desc.scratch_bytes = sizeof(float);
    const auto state = std::make_shared<float>(3.0f);
    {
        const auto kernel = weir::kernel::host(engine, desc, [state](weir::kernel_context context) {
            const auto *in = static_cast<const float *>(context.input(0).data);
            auto *out = static_cast<float *>(context.output(0).data);
            EXPECT(!context.is_cancelled() && context.num_slots() >= 1);
            context.parallel_for(100, [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
                auto *factor = static_cast<float *>(context.scratch(slot));
                *factor = *state;
                for (std::int64_t i = begin; i < end; i++) out[i] = in[i] * *factor;
            });
        });
        EXPECT(kernel.name() == "scale" && kernel.num_inputs() == 1 && kernel.num_outputs() == 1);
        EXPECT(state.use_count() == 2);
        stream.enqueue(kernel, {x}, {y});
        EXPECT_THROWS(stream.enqueue(kernel, {x}, {x}), WEIR_INVALID_ARGUMENT, "output 0");
        const weir::call call(stream, kernel, {x}, {y});
        y.data<float>()[99] = 0;
        call.enqueue();
        EXPECT_THROWS(weir::call(stream, kernel, {x}, {x}), WEIR_INVALID_ARGUMENT, "output 0");
        EXPECT_THROWS(weir::call().enqueue(), WEIR_INVALID_ARGUMENT, "call is NULL");
    }
    EXPECT(state.use_count() == 1 && y.data<float>()[99] == 297.0f);

    desc.outputs = nullptr;
    const auto wider = weir::kernel::host(
        engine, desc, [](weir::kernel_context) {},
        [](const weir_tensor_desc *in, std::size_t, weir_tensor_desc *out, std::size_t) {
            out[0] = in[0];
            out[0].dims[0] *= 2;
        });
    EXPECT(wider.infer({like})[0].dims[0] == 200);

    const auto relu = weir::kernel::relu(engine, weir::kernel_options().set_name("clip").set_cost_ns(1000));
    EXPECT(relu.name() == "clip");
    const weir_slice_desc slice{};
    EXPECT(weir::kernel::of(engine, slice, weir::kernel_options().set_settings("begin end")).num_inputs() == 3);
    x.data<float>()[1] = -1;
    stream.enqueue(relu, std::vector<weir_tensor *>{x}, std::vector<weir_tensor *>{y});
    EXPECT(y.data<float>()[1] == 0 && y.data<float>()[2] == 2);
    EXPECT_THROWS(weir::kernel::softmax(engine, 9), WEIR_OUT_OF_RANGE, "axis is 9");
    EXPECT_THROWS(weir::kernel::matmul(engine, 128), WEIR_INVALID_ARGUMENT, "unknown bits 0x80");
}

static void test_emulated() {
    weir_emulation emulation{};
    emulation.seed = 2;
    emulation.flags = WEIR_EMULATION_CHECK;
    weir::engine_attr attr(WEIR_ENGINE_EMULATED);
    weir::testing::set_emulation(attr, emulation);
    EXPECT(weir::testing::emulation(attr).seed == 2);
    const weir::engine engine(WEIR_ENGINE_EMULATED, 3, attr);
    const weir::stream first(engine), second(engine);
    const weir::tensor x(engine, weir::desc(WEIR_F32, {100}));
    first.fill(x, 1);
    second.fill(x, 2);
    engine.synchronize();
    EXPECT(weir::testing::counters(engine).fills == 2 && weir::testing::order(engine).size() == 2);
    const auto races = weir::testing::races(engine);
    EXPECT(races.size() == 1 && races[0].kind == WEIR_RACE_WRITE_AFTER_WRITE && races[0].bytes == 400);
    weir::testing::clear_races(engine);
    EXPECT(weir::testing::races(engine).empty());
}

int main() {
    weir::testing::register_emulated();
    const auto before = weir::runtime_info();
    test_handles();
    test_errors();
    test_getters();
    test_threads();
    test_tasks();
    test_events();
    test_domains();
    test_tensors();
    test_kernels();
    test_emulated();
    expect_released(before);
    return 0;
}
