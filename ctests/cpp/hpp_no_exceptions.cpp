// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The C++ layer in a program without exceptions: a call that fails gives something empty, and its error is kept.

#include "weir.hpp"
#include "weir/adapters/std_thread.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#if defined(__cpp_exceptions)
#error "this test is compiled without exceptions"
#endif

#define EXPECT(...)                                                                                                    \
    do {                                                                                                               \
        if (!(__VA_ARGS__)) {                                                                                          \
            std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #__VA_ARGS__);                            \
            std::abort();                                                                                              \
        }                                                                                                              \
    } while (0)

static void expect_error(weir_status code, const char *part) {
    const auto error = weir::take_error();
    std::printf("%s\n", error ? error->what() : "no error"); std::fflush(stdout);
    EXPECT(error && error->code() == code && std::string(error->what()).find(part) != std::string::npos);
    EXPECT(!weir::take_error());
}

struct inline_pool {
    std::int32_t num_threads() const { return 1; }
    bool schedule(weir::pool_task task) { return task(), true; }
};

int main() {
    const auto pool = weir::threadpool::from(std::make_shared<inline_pool>());
    const auto engine = weir::engine::cpu(pool);
    EXPECT(engine.get() != nullptr && !weir::take_error());

    // Handles are empty, numbers 0, lists empty; the first failure is the one that is kept.
    const weir::engine none(WEIR_ENGINE_CPU, 99);
    EXPECT(none.get() == nullptr);
    EXPECT(none.name().empty() && none.index() == 0);
    expect_error(WEIR_OUT_OF_RANGE, "weir_engine_create");
    EXPECT(weir::desc(WEIR_F32, {1, 1, 1, 1, 1, 1, 1, 1, 1}).rank == 0);
    expect_error(WEIR_INVALID_ARGUMENT, "weir::desc");
    float x[] = {1, 2, 3, 4};
    weir::gemm(weir::matrix<float>(x, 2, 2), weir::matrix<const float>(x, 2, 2), weir::matrix<const float>(x, 1, 2));
    expect_error(WEIR_INVALID_ARGUMENT, "weir::gemm");

    // A refused callable is not leaked: it is destroyed here, and only here.
    const auto token = std::make_shared<int>(0);
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.num_inputs = 1000;
    EXPECT(weir::kernel::host(engine, desc, [token](weir::kernel_context) {}).get() == nullptr);
    expect_error(WEIR_OUT_OF_RANGE, "weir_kernel_create_host");
    EXPECT(token.use_count() == 1);

    std::atomic<std::int64_t> sum{0};
    weir::parallel_for(pool, 100, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
        for (std::int64_t i = begin; i < end; i++) sum += i;
    });
    EXPECT(sum == 4950 && !weir::take_error());

    weir::graph graph("tasks");
    int ran = 0;
    graph.add_task("fails", [&] {
        ran++;
        return static_cast<weir_status>(WEIR_DATA_LOSS);
    });
    graph.compile({engine}).run({}, {}, {}); // the last one could be a stream's outputs, and means options
    expect_error(WEIR_DATA_LOSS, "fails");
    EXPECT(ran == 1);
    EXPECT(graph.add_kernel("none", weir::kernel(), {}).output() == 0);
    EXPECT(weir::take_error());
    // What a failed call would have returned is not mistaken for an answer.
    EXPECT(!weir::resource::remove(engine, "_bad") && weir::take_error());
    EXPECT(weir::kernel::relu(engine).infer({}).empty() && weir::take_error());
    const weir::table<float> table(engine, "rows", WEIR_TABLE_KEY_INT64, weir::desc(WEIR_F32, {3}));
    EXPECT(!weir::take_error() && table.find(std::vector<std::int64_t>{1, 2}).size() == 6);
    EXPECT(table.find(std::vector<std::string>{"a", "b"}).empty() && weir::take_error());
    EXPECT(weir::time_ns(weir::stream(engine), [] { return weir_status{WEIR_DATA_LOSS}; }, 5).empty());
    EXPECT(weir::take_error());
    // A name that could not be made stands for no other one, and a span of it ends unmade.
    {
        const weir::trace_name whole("whole"), unmade(std::string(10000, 'n'));
        expect_error(WEIR_OUT_OF_RANGE, "weir_trace_intern");
        unmade.mark();
        expect_error(WEIR_INVALID_ARGUMENT, "weir_trace_mark");
        const weir::trace_span span(whole);
        { const weir::trace_span inner(unmade); }
        expect_error(WEIR_INVALID_ARGUMENT, "weir_trace_span_begin");
    }
    {
        const auto threads = weir::adapters::std_thread_threadpool(2);
        sum = 0;
        const auto add = [&](std::int64_t begin, std::int64_t end, std::int32_t) { sum += end - begin; };
        weir::parallel_for(threads, 100, add);
        EXPECT(sum == 100 && !weir::take_error());
    }
    std::puts("weir.hpp works without exceptions");
    return 0;
}
