// SPDX-License-Identifier: MIT OR Apache-2.0
//
// No exception leaves a callback: wherever one is thrown, it arrives as a status, or as itself where its caller waits.

#include "weir.hpp"

#include <atomic>
#include <memory>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <weir/memory.h>

#include "expect.hpp"

namespace {

[[noreturn]] void throw_something(int kind) {
    switch (kind) {
    case 0:
        throw weir::error(WEIR_DATA_LOSS, "a weir::error of its own");
    case 1:
        throw std::bad_alloc();
    case 2:
        throw std::runtime_error("the disk is full");
    case 3:
        throw 42;
    default:
        throw weir::error(WEIR_OK, "an error that claims to be none");
    }
}

enum { KINDS = 5 };

const weir_status codes[KINDS] = {WEIR_DATA_LOSS, WEIR_RESOURCE_EXHAUSTED, WEIR_UNKNOWN, WEIR_UNKNOWN, WEIR_UNKNOWN};
const char *const texts[KINDS] = {"a weir::error of its own", "", "the disk is full", "no std::exception",
                                  "an error that claims to be none"};

void test_tasks(const weir::engine &engine) {
    for (int kind = 0; kind < KINDS; kind++) {
        const auto state = std::make_shared<int>(0);
        const weir::stream now(engine), later(engine, WEIR_STREAM_ASYNCHRONOUS);
        EXPECT_THROWS(now.enqueue([=] { throw_something(kind + *state); }), codes[kind], "weir_enqueue_task");
        later.enqueue([=] { throw_something(kind + *state); });
        EXPECT_THROWS(later.synchronize(), codes[kind], "stream");
        EXPECT_THROWS(engine.synchronize(), codes[kind], "stream");
        eventually([&] { return state.use_count() == 1; });
    }
}

// Memory resources that count what they have given, and throw when they are told to.
class source : public std::pmr::memory_resource {
public:
    std::atomic<bool> fails{false};
    std::atomic<std::size_t> bytes{0};

private:
    void *do_allocate(std::size_t n, std::size_t alignment) override {
        if (fails) throw_something(2);
        bytes += n;
        return std::pmr::new_delete_resource()->allocate(n, alignment);
    }
    void do_deallocate(void *data, std::size_t n, std::size_t alignment) override {
        bytes -= n;
        std::pmr::new_delete_resource()->deallocate(data, n, alignment);
        throw_something(2);
    }
    bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};

void test_allocators() {
    const auto memory = std::make_shared<source>();
    {
        weir::engine_attr attr;
        attr.set_allocator(weir::allocator::of(memory, 128)).set_memory_limit(1 << 20);
        EXPECT(attr.allocator() && attr.memory_limit() == 1 << 20 && attr.memory_mode() == WEIR_MEMORY_MODE_POOLED);
        const weir::engine engine(WEIR_ENGINE_CPU, 0, attr);
        const weir::tensor tensor(engine, weir::desc(WEIR_F32, {100}));
        EXPECT(engine.memory_info().in_use > 0 && memory->bytes == engine.memory_info().reserved);
        EXPECT(engine.dump_memory().find("tensor f32[100]") != std::string::npos);
        EXPECT_THROWS(weir::tensor(engine, weir::desc(WEIR_F32, {1 << 20})), WEIR_RESOURCE_EXHAUSTED, "limit 1 MiB");
        int given_back = 0;
        float numbers[4] = {1, 2, 3, 4};
        {
            const weir::buffer own(engine, 64), mine(engine, numbers, sizeof numbers, [&] { ++given_back; });
            EXPECT(own.bytes() == 64 && own.data() != nullptr && mine.data() == numbers && mine.engine() == engine);
            const weir::tensor tail(mine, weir::desc(WEIR_F32, {2}), 2 * sizeof(float));
            EXPECT(tail.data<float>()[1] == 4 && given_back == 0);
        }
        EXPECT(given_back == 1);
        engine.trim();
        engine.reset_memory_peak();
    }
    EXPECT(memory->bytes == 0 && memory.use_count() == 1);
    memory->fails = true;
    const weir::engine engine(WEIR_ENGINE_CPU, 0, weir::engine_attr().set_allocator(weir::allocator::of(memory)));
    EXPECT_THROWS(weir::tensor(engine, weir::desc(WEIR_F32, {100})), WEIR_RESOURCE_EXHAUSTED, "the host's allocator has no more memory");
}

void test_kernels(const weir::engine &engine) {
    for (int kind = 0; kind < KINDS; kind++) {
        auto desc = weir::sized<weir_host_kernel_desc>();
        desc.name = "thrower";
        const auto body = weir::kernel::host(engine, desc, [=](weir::kernel_context) { throw_something(kind); });
        const auto in_region = weir::kernel::host(engine, desc, [=](weir::kernel_context context) {
            context.parallel_for(10, [=](std::int64_t, std::int64_t, std::int32_t) { throw_something(kind); });
        });
        const weir::stream now(engine), later(engine, WEIR_STREAM_ASYNCHRONOUS);
        EXPECT_THROWS(now.enqueue(body, {}, {}), codes[kind], texts[kind]);
        EXPECT_THROWS(now.enqueue(in_region, {}, {}), codes[kind], texts[kind]);
        later.enqueue(body, {}, {});
        EXPECT_THROWS(later.synchronize(), codes[kind], texts[kind]); // the text survives the way through a queue
        EXPECT_THROWS(engine.synchronize(), codes[kind], texts[kind]);
    }
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.num_outputs = 1;
    desc.name = "inferrer";
    const auto refuses = weir::kernel::host(
        engine, desc, [](weir::kernel_context) {},
        [](const weir_tensor_desc *, std::size_t, weir_tensor_desc *, std::size_t) { throw_something(0); });
    EXPECT_THROWS(refuses.infer({}), WEIR_DATA_LOSS, "inferrer");
    const weir::stream now(engine);
    desc.num_outputs = 0;
    const auto asks = weir::kernel::host(engine, desc, [](weir::kernel_context context) {
        static_cast<void>(context.input(3)); // there is none: a weir::error, and not a wild pointer
    });
    EXPECT_THROWS(now.enqueue(asks, {}, {}), WEIR_OUT_OF_RANGE, "no argument 3");
    const auto not_text =
        weir::kernel::host(engine, desc, [](weir::kernel_context) { throw std::runtime_error("caf\xe9 closed"); });
    EXPECT_THROWS(now.enqueue(not_text, {}, {}), WEIR_UNKNOWN, "caf? closed"); // what() is not UTF-8
    const auto not_text_later = weir::kernel::host_async(
        engine, desc, [](weir::kernel_context, weir::completion) { throw std::runtime_error("caf\xe9 closed"); });
    EXPECT_THROWS(now.enqueue(not_text_later, {}, {}), WEIR_UNKNOWN, "caf? closed");
}

// The exception itself comes back to the thread that started the region; pieces that have not begun are skipped.
void test_regions(const weir::threadpool &pool) {
    auto hint = weir::sized<weir_parallel_hint>();
    hint.cost_ns = 100000;
    for (int round = 0; round < 20; round++) {
        std::atomic<int> begun{0};
        bool caught = false;
        try {
            weir::parallel_for(pool, 1000, [&](std::int64_t begin, std::int64_t, std::int32_t) {
                ++begun;
                throw std::out_of_range("piece " + std::to_string(begin));
            }, &hint);
        } catch (const std::out_of_range &e) {
            caught = std::string(e.what()).rfind("piece ", 0) == 0;
        }
        EXPECT(caught && begun >= 1 && begun <= (pool ? pool.num_threads() + 1 : 1));
        std::atomic<int> items{0};
        weir::parallel_for(pool, 100, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
            items += static_cast<int>(end - begin);
        });
        EXPECT(items == 100);
    }
}

// Members of a pool that throw: asking for tasks to be run is refused, questions get their safest answer.
struct throwing_pool {
    std::atomic<int> asked{0};
    int num_threads() { return ++asked % 2 ? throw std::runtime_error("how many?") : 3; }
    void parallel_for(int, weir::pool_task) { throw std::runtime_error("not now"); }
    void schedule(weir::pool_task) { throw 7; }
    bool in_parallel() { throw std::bad_alloc(); }
    int thread_index() { throw 1; }
    bool help() { throw 2; }
    int max_threads() { throw 3; }
};

void test_pools() {
    const auto host = std::make_shared<throwing_pool>();
    const auto pool = weir::threadpool::from(host);
    EXPECT(!pool.in_parallel() && pool.num_threads() >= 1);
    std::atomic<int> items{0};
    weir::parallel_for(pool, 1000, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
        items += static_cast<int>(end - begin);
    });
    EXPECT(items == 1000);
    const auto engine = weir::engine::cpu(pool);
    const weir::stream stream(engine, WEIR_STREAM_ASYNCHRONOUS);
    int runs = 0;
    for (int i = 0; i < 10; i++) stream.enqueue([&] { runs++; });
    stream.synchronize();
    EXPECT(runs == 10);
}

void test_graph_tasks(const weir::engine &engine) {
    for (int kind = 0; kind < KINDS; kind++) {
        weir::graph graph("exceptions");
        graph.add_task("thrower", [=] { throw_something(kind); });
        const auto program = graph.compile({engine});
        EXPECT_THROWS(program.run({}, {}), codes[kind], "'thrower'");
        const weir::stream stream(engine, WEIR_STREAM_ASYNCHRONOUS);
        const auto run = program.start(stream, {}, {});
        EXPECT_THROWS(run.synchronize(), codes[kind], "'thrower'");
        const auto error = run.error();
        EXPECT(error && error->code() == codes[kind] && std::strstr(error->what(), "'thrower'"));
    }
}

// The release of a tensor's memory has nobody to tell, and still nothing leaves it.
void test_tensor_release(const weir::engine &engine) {
    float memory[1] = {0};
    int called = 0;
    {
        const weir::tensor tensor(engine, weir::desc(WEIR_F32, {1}), memory, [&] {
            called++;
            throw std::runtime_error("too late");
        });
    }
    EXPECT(called == 1);
}

} // namespace

int main() {
    const auto before = weir::runtime_info();
    {
        const auto pool = weir::threadpool::builtin(2);
        for (const auto &engine : {weir::engine::cpu(), weir::engine::cpu(pool)}) {
            test_tasks(engine);
            test_kernels(engine);
            test_graph_tasks(engine);
            test_tensor_release(engine);
        }
        test_regions(weir::threadpool());
        test_regions(pool);
        test_pools();
        test_allocators();
    }
    expect_released(before);
    return 0;
}
