// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Graphs in C++: build, compile, run on a pool of the program's own, start, cancel, dump.

#include "weir.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "expect.hpp"

namespace {

// x[2,3] * w[3,4] + b[4], then softmax; w is one where the row is the column.
struct network {
    weir::engine engine;
    weir::tensor weights, bias;
    weir::program program;
    std::shared_ptr<std::atomic<int>> notified = std::make_shared<std::atomic<int>>(0);

    explicit network(const weir::threadpool &pool)
        : engine(weir::engine::cpu(pool)), weights(engine, weir::desc(WEIR_F32, {3, 4})),
          bias(engine, weir::desc(WEIR_F32, {4})) {
        for (int i = 0; i < 3; i++) weights.data<float>()[i * 4 + i] = 1;
        bias.data<float>()[3] = 100; // column 3 always wins
        weir::graph graph("network");
        const auto x = graph.add_input("x", weir::desc(WEIR_F32, {2, 3}));
        const auto w = graph.add_constant("weights", weights), b = graph.add_constant("bias", bias);
        const auto dense = graph.add_kernel("dense", weir::kernel::matmul(engine, WEIR_MATMUL_BIAS), {x, w, b});
        const auto soft = graph.add_kernel("soft", weir::kernel::softmax(engine), {dense.output()});
        const std::vector<weir_value> scores{soft.output()};
        const auto best = graph.add_kernel("best", weir::kernel::argmax(engine), scores);
        const auto notify = graph.add_task("notify", [n = notified] { ++*n; }, 1000);
        graph.add_control_edge(soft.node, notify);
        graph.add_output("scores", soft.output());
        graph.add_output("classes", best.output());
        EXPECT(graph.dump(WEIR_DUMP_DOT).find("dense") != std::string::npos);
        program = graph.compile({engine}, weir::compile_options().set_hop_ns(WEIR_HOP_NONE));
    }
};

struct feed {
    weir::tensor x, scores, classes;
    explicit feed(const network &net)
        : x(net.engine, net.program.input(0).desc), scores(net.engine, net.program.output(0).desc),
          classes(net.engine, net.program.output(1).desc) {
        for (int i = 0; i < 6; i++) x.data<float>()[i] = static_cast<float>(i);
    }
    void check() const {
        for (int row = 0; row < 2; row++) {
            EXPECT(classes.data<std::int32_t>()[row] == 3);
            EXPECT(scores.data<float>()[row * 4 + 3] > 0.99f);
            classes.data<std::int32_t>()[row] = -1;
        }
    }
};

void test_runs(const weir::threadpool &pool) {
    const network net(pool);
    const feed f(net);
    EXPECT(net.program.output(1).desc.dtype == WEIR_S32 && net.program.output(1).desc.dims[0] == 2);
    EXPECT(net.program.dump(WEIR_DUMP_JSON).find("\"soft\"") != std::string::npos);

    net.program.run({f.x}, {f.scores, f.classes});
    f.check();
    std::uint8_t absent[2] = {7, 7};
    net.program.run({f.x}, {f.scores, f.classes}, weir::run_options().set_absent(absent, 2));
    EXPECT(absent[0] == 0 && absent[1] == 0);
    const weir::stream now(net.engine), later(net.engine, WEIR_STREAM_ASYNCHRONOUS);
    net.program.run(now, {f.x}, {f.scores, f.classes}, weir::run_options().set_threadpool(pool));
    f.check();
    net.program.run(later, {f.x}, {f.scores, f.classes});
    later.synchronize();
    f.check();
    auto run = net.program.start(later, {f.x}, {f.scores, f.classes});
    run.synchronize();
    EXPECT(run.done() && !run.error());
    run.cancel();
    run.synchronize();
    f.check();
    EXPECT(*net.notified == 5);

    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
        threads.emplace_back([&net] {
            const feed own(net);
            for (int round = 0; round < 50; round++) {
                net.program.run({own.x}, {own.scores, own.classes});
                own.check();
            }
        });
    }
    for (auto &thread : threads) thread.join();
    EXPECT(*net.notified == 155);
}

// Notices: called once, with the outcome; what they hold is let go.
void test_notices(const weir::threadpool &pool) {
    const network net(pool);
    const feed f(net);
    const weir::stream stream(net.engine, WEIR_STREAM_ASYNCHRONOUS);
    const weir::event event(net.engine);
    auto calls = std::make_shared<std::atomic<int>>(0);
    const int fd = eventfd(0, EFD_NONBLOCK);
    {
        weir::run_options options;
        const auto hear = [calls](weir_status status) {
            EXPECT(status == WEIR_OK);
            ++*calls;
            throw std::runtime_error("lost");
        };
        net.program.run(stream, {f.x}, {f.scores, f.classes}, options, hear);
        net.program.run(stream, {f.x}, {f.scores, f.classes}, options.set_deadline_ns(10000000000), hear);
        auto run = net.program.start(stream, {f.x}, {f.scores, f.classes}, options);
        run.notify([calls, raw = run.get()](weir_status status, weir_run *told) {
            EXPECT(status == WEIR_OK && told == raw);
            ++*calls;
        });
        run.notify_fd(fd);
        stream.record(event);
        event.notify([calls](weir_status status) { *calls += status == WEIR_OK; });
        event.notify_fd(fd);
        auto raise = weir::sized<weir_notice>();
        raise.event_fd = fd;
        net.program.run(stream, {f.x}, {f.scores, f.classes}, options.set_notice(raise));
        stream.synchronize();
        bool refused = false;
        try {
            event.notify_fd(-1);
        } catch (const weir::error &e) {
            refused = e.code() == WEIR_INVALID_ARGUMENT;
        }
        EXPECT(refused);
        // On a synchronous stream there is none, and what it holds is let go all the same.
        refused = false;
        try {
            net.program.run(weir::stream(net.engine), {f.x}, {f.scores, f.classes}, {}, hear);
        } catch (const weir::error &e) {
            refused = e.code() == WEIR_INVALID_ARGUMENT;
        }
        EXPECT(refused);
    }
    std::uint64_t raised = 0, sum = 0;
    while (calls.use_count() > 1 || sum < 3) {
        if (read(fd, &raised, sizeof raised) == sizeof raised) sum += raised;
        std::this_thread::yield();
    }
    EXPECT(*calls == 4 && sum == 3);
    close(fd);
    f.check();
}

// Progress: of a run here and of one that is started, which cancels itself; what is thrown is lost.
void test_progress(const weir::threadpool &pool) {
    const network net(pool);
    const feed f(net);
    const weir::stream stream(net.engine, WEIR_STREAM_ASYNCHRONOUS);
    std::uint64_t done = 0, total = 0;
    auto follow = [&](const weir_run_progress &progress) {
        EXPECT(progress.run == nullptr && progress.nodes_done > done && progress.nodes_total >= total);
        done = progress.nodes_done;
        total = progress.nodes_total;
        throw std::runtime_error("lost");
    };
    net.program.run({f.x}, {f.scores, f.classes}, weir::run_options().set_progress(follow, 1));
    EXPECT(done > 0 && done <= total);
    f.check();
    const auto cancel = [](const weir_run_progress &progress) { weir::check(weir_run_cancel(progress.run)); };
    auto run = net.program.start(stream, {f.x}, {f.scores, f.classes}, weir::run_options().set_progress(cancel, 1));
    bool was_cancelled = false;
    try {
        run.synchronize();
    } catch (const weir::error &e) {
        was_cancelled = e.code() == WEIR_CANCELLED;
    }
    EXPECT(was_cancelled);
}

void test_failures() {
    const auto engine = weir::engine::cpu();
    weir::graph graph("failures");
    std::atomic<bool> hold{true};
    std::atomic<int> begun{0};
    const auto slow = graph.add_task("slow", [&] {
        ++begun;
        while (hold) std::this_thread::yield();
    });
    graph.add_control_edge(slow, graph.add_task("after", [] {}));
    EXPECT_THROWS(graph.add_task("slow", [] {}), WEIR_ALREADY_EXISTS, "'slow'");
    EXPECT_THROWS(graph.add_control_edge(slow, slow), WEIR_INVALID_ARGUMENT, "'slow'");
    const auto program = graph.compile({engine});
    const weir::stream stream(engine, WEIR_STREAM_ASYNCHRONOUS);
    const auto run = program.start(stream, {}, {});
    EXPECT_THROWS(run.synchronize(0), WEIR_DEADLINE_EXCEEDED, "weir_run_synchronize");
    eventually([&] { return begun == 1; });
    run.cancel();
    hold = false;
    EXPECT_THROWS(run.synchronize(), WEIR_CANCELLED, "");
    EXPECT(run.error() && run.error()->code() == WEIR_CANCELLED);
    program.start(stream, {}, {}).synchronize();

    weir::graph moved = std::move(graph);
    const auto program_of_moved = moved.compile({engine});
    EXPECT_THROWS(graph.compile({engine}), WEIR_INVALID_ARGUMENT, "graph is NULL"); // NOLINT: empty, by contract
    EXPECT_THROWS(moved.compile({}), WEIR_INVALID_ARGUMENT, "engine");
    EXPECT_THROWS(program.run({weir::tensor(engine, weir::desc(WEIR_F32, {}))}, {}), WEIR_INVALID_ARGUMENT, "input");
}

// A loop that is said by its edges and whose predicate is false from the beginning.
void test_frames() {
    const auto engine = weir::engine::cpu();
    const auto number = weir::desc(WEIR_S32, {1});
    weir::graph graph("frames");
    const auto predicate = graph.add_enter("predicate", graph.add_input("p", number), "loop", true);
    const auto first = graph.add_enter("first", graph.add_input("x", number), "loop");
    const auto merge = graph.add_loop_merge("merge", first.outputs[0]);
    const auto goes_on = graph.add_loop_cond("goes on", predicate.outputs[0]);
    const auto sides = graph.add_switch("switch", merge.outputs[0], goes_on.outputs[0]);
    const auto next = graph.add_next_iteration("next", sides.outputs[1]);
    EXPECT_THROWS(graph.compile({engine}), WEIR_INVALID_ARGUMENT, "'merge' has no back edge");
    graph.set_back_edge(merge.node, next.outputs[0]);
    graph.add_output("y", graph.add_exit("exit", sides.outputs[0]).outputs[0]);
    const weir::tensor p(engine, number), x(engine, number), y(engine, number);
    p.data<std::int32_t>()[0] = 0;
    x.data<std::int32_t>()[0] = 42;
    graph.compile({engine}).run({p, x}, {y});
    EXPECT(y.data<std::int32_t>()[0] == 42);
}

} // namespace

int main() {
    const auto before = weir::runtime_info();
    test_runs(weir::threadpool());
    test_runs(weir::threadpool::builtin(2));
    test_runs(weir::threadpool::from_schedule(2, [](weir::pool_task task) { task(); }));
    test_notices(weir::threadpool());
    test_notices(weir::threadpool::builtin(2));
    test_progress(weir::threadpool());
    test_progress(weir::threadpool::builtin(2));
    test_failures();
    test_frames();
    expect_released(before);
    return 0;
}
