// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What C++ programs can ask of what they have made, and the rest of what C can: costs, figures, many runs at once,
// programs in programs, kernels that complete later, tables, exchange.

#include "weir.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <weir/dlpack.hpp>
#include <weir/conformance.hpp>
#include <weir/testing.hpp>

#include "expect.hpp"

namespace {

const weir_tensor_desc FOUR = weir::desc(WEIR_F32, {4});

weir::kernel doubling(const weir::engine &engine) {
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.name = "double";
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &FOUR;
    return weir::kernel::host(engine, desc, [](weir::kernel_context call) {
        const auto *x = static_cast<const float *>(call.input(0).data);
        auto *y = static_cast<float *>(call.output(0).data);
        for (int i = 0; i < 4; i++) y[i] = 2 * x[i];
    });
}

weir::program chain(const weir::engine &engine, int length, const weir::compile_options &options = {}) {
    weir::graph graph("chain");
    weir_value value = graph.add_input("x", FOUR);
    for (int i = 0; i < length; i++) {
        value = graph.add_kernel("double " + std::to_string(i), doubling(engine), {value}).output();
    }
    graph.add_output("y", value);
    return graph.compile({engine}, options);
}

struct pair {
    weir::tensor x, y;
    explicit pair(const weir::engine &engine) : x(engine, FOUR), y(engine, FOUR) {
        for (int i = 0; i < 4; i++) x.data<float>()[i] = static_cast<float>(i);
    }
    void expect(float factor) const {
        for (int i = 0; i < 4; i++) EXPECT(y.data<float>()[i] == factor * static_cast<float>(i));
    }
};

void programs_tell_of_themselves(const weir::engine &engine) {
    const auto program = chain(engine, 3, weir::compile_options().set_flags(WEIR_COMPILE_STATISTICS));
    const pair p(engine);
    program.run({p.x}, {p.y});
    p.expect(8);
    EXPECT(program.report().find("nodes") != std::string::npos);
    EXPECT(program.report(WEIR_REPORT_JSON).front() == '{');
    EXPECT(program.options().flags == WEIR_COMPILE_STATISTICS);
    EXPECT(program.node_stats(0).count == 1);
    EXPECT_THROWS(program.node_stats(99), WEIR_OUT_OF_RANGE, "99");
    const std::string costs = program.save_costs();
    EXPECT(chain(engine, 3).load_costs(costs) == 3);
    EXPECT_THROWS(program.load_costs("nonsense"), WEIR_INVALID_ARGUMENT, "first line");
    program.trim();
    program.run({p.x}, {p.y});
    p.expect(8);
}

void many_runs_and_programs_in_programs(const weir::engine &engine) {
    const auto inner = chain(engine, 2);
    const pair a(engine), b(engine);
    inner.run_many(2, {a.x, b.x}, {a.y, b.y});
    a.expect(4), b.expect(4);
    EXPECT_THROWS(inner.run_many(2, {a.x, b.x, a.x}, {a.y, b.y, a.y}), WEIR_INVALID_ARGUMENT, "3 inputs");
    EXPECT_THROWS(inner.run_many(0, {a.x}, {}), WEIR_INVALID_ARGUMENT, "0 runs");

    weir::graph graph("outer");
    const auto x = graph.add_input("x", FOUR);
    const auto call = graph.add_program("inner", inner, {x});
    const auto last = graph.add_kernel("last", doubling(engine), {call.output()});
    graph.set_forwarding(last.node, 0, WEIR_FORWARD_NEVER);
    graph.add_output("y", last.output());
    graph.compile({engine}).run({a.x}, {a.y});
    a.expect(8);
}

void settings_are_told(const weir::engine &engine) {
    EXPECT(engine.attr().kind() == WEIR_ENGINE_CPU && engine.attr().threadpool().get() == engine.threadpool().get());
    weir::engine_attr attr;
    attr.set_max_streams(2).set_name("mine").set_memory_limit(1 << 20);
    EXPECT(attr.max_streams() == 2 && attr.kind() == WEIR_ENGINE_CPU && attr.device_settings().empty());
    weir::engine_attr of_device(WEIR_ENGINE_EMULATED);
    of_device.set_wait_policy(WEIR_WAIT_YIELD, 5);
    EXPECT(of_device.wait_policy() == WEIR_WAIT_YIELD && of_device.wait_spin_ns() == 5);
    const weir::engine named(WEIR_ENGINE_CPU, 0, attr);
    EXPECT(named.attr().name() == "mine" && named.attr().memory_limit() == 1 << 20);
    const weir::stream stream(engine, WEIR_STREAM_ASYNCHRONOUS,
                              weir::stream_attr().set_name("s").set_priority(1).set_spin_ns(5));
    EXPECT(stream.attr().name() == "s" && stream.attr().priority() == 1 && stream.attr().spin_ns() == 5);
    EXPECT(stream.attr().kind() == WEIR_ENGINE_CPU && stream.attr().asynchronous());

    EXPECT(weir::version() >> 8 == (WEIR_VERSION_MAJOR << 8 | WEIR_VERSION_MINOR) && std::string(weir::version_string()).find("0.1") == 0);
    EXPECT(std::string(weir::status_name(WEIR_DATA_LOSS)) == "DATA_LOSS");
    EXPECT(std::string(weir::dtype_name(WEIR_F32)) == "f32" && weir::dtype_size(WEIR_BF16) == 2);
    EXPECT_THROWS(weir::dtype_size(99), WEIR_INVALID_ARGUMENT, "99");
    int calls = 0;
    EXPECT(weir::time_ns(weir::stream(engine), [&] { calls++; }, 5).size() == 5 && calls >= 5);
}

// A kernel that hands its work to a thread of its own, one that lets go of it, and one that throws.
void kernels_that_complete_later(const weir::engine &engine) {
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.name = "later";
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &FOUR;
    const auto run = [&](const weir::kernel &kernel, const pair &p) {
        weir::graph graph("later");
        graph.add_output("y", graph.add_kernel("later", kernel, {graph.add_input("x", FOUR)}).output());
        graph.compile({engine}).run({p.x}, {p.y});
    };
    const pair p(engine);
    std::thread thread;
    run(weir::kernel::host_async(engine, desc,
                                 [&](weir::kernel_context call, weir::completion done) {
                                     thread = std::thread([call, done = std::move(done)]() mutable {
                                         std::memcpy(call.output(0).data, call.input(0).data, 16);
                                         done.done();
                                     });
                                 }),
        p);
    thread.join();
    p.expect(1);
    EXPECT_THROWS(run(weir::kernel::host_async(engine, desc, [](weir::kernel_context, weir::completion) {}), p),
                  WEIR_CANCELLED, "let go");
    EXPECT_THROWS(run(weir::kernel::host_async(engine, desc,
                                               [](weir::kernel_context, weir::completion &&) {
                                                   throw weir::error(WEIR_DATA_LOSS, "no disk");
                                               }),
                      p),
                  WEIR_DATA_LOSS, "no disk");
    EXPECT_THROWS(run(weir::kernel::host_async(engine, desc,
                                               [](weir::kernel_context, weir::completion) {
                                                   throw weir::error(WEIR_DATA_LOSS, "no disk");
                                               }),
                      p),
                  WEIR_DATA_LOSS, "no disk");
    // It is let go of behind an exception that goes no further.
    EXPECT_THROWS(run(weir::kernel::host_async(engine, desc,
                                               [](weir::kernel_context, weir::completion done) {
                                                   try {
                                                       const weir::completion gone = std::move(done);
                                                       throw 1;
                                                   } catch (int) {
                                                   }
                                               }),
                      p),
                  WEIR_CANCELLED, "let go");
    // A text or a status that C refuses is left out.
    const auto told = [&](weir_status status, const char *text) {
        return weir::kernel::host_async(engine, desc, [status, text](weir::kernel_context, weir::completion done) {
            done.done(status, text);
        });
    };
    EXPECT_THROWS(run(told(WEIR_DATA_LOSS, "caf\xe9"), p), WEIR_DATA_LOSS, "later");
    EXPECT_THROWS(run(told(4711, "no disk"), p), WEIR_UNKNOWN, "no disk");
    EXPECT_THROWS(run(told(4711, "caf\xe9"), p), WEIR_UNKNOWN, "later");
}

void kernels_decide_shapes_and_run_programs(const weir::engine &engine) {
    const auto open = weir::desc(WEIR_F32, {WEIR_DIM_DYNAMIC});
    const auto inner = chain(engine, 1);
    const pair p(engine);
    auto desc = weir::sized<weir_host_kernel_desc>();
    desc.name = "first half";
    desc.flags = WEIR_KERNEL_DYNAMIC;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = &FOUR;
    desc.outputs = &open;
    const auto half = weir::kernel::host(engine, desc, [&](weir::kernel_context call) {
        call.run_program(inner, 1, {p.x}, {p.y});
        std::memcpy(call.allocate_output(0, {2}), p.y.data(), 8);
    });
    weir::graph graph("dynamic");
    graph.add_output("y", graph.add_kernel("half", half, {graph.add_input("x", FOUR)}).output());
    float found[4] = {9, 9, 9, 9};
    auto from = weir::sized<weir_memory>();
    from.data = found;
    from.bytes = sizeof found;
    weir_tensor *raw = nullptr;
    weir::check(weir_tensor_create(engine, &open, &from, &raw));
    const weir::tensor y(raw);
    graph.compile({engine}).run({p.x}, {y});
    EXPECT(found[0] == 0 && found[1] == 2 && found[2] == 9);

    // Those of two runs cannot be three. The struct's size need not be said.
    weir_host_kernel_desc bare{};
    bare.name = "uneven";
    const weir::stream stream(engine);
    const auto runs = [&](std::size_t count) {
        return weir::kernel::host(engine, bare, [&, count](weir::kernel_context call) {
            call.run_program(inner, count, {p.x, p.x, p.x}, {p.y, p.y});
        });
    };
    EXPECT_THROWS(stream.enqueue(runs(2), {}, {}), WEIR_INVALID_ARGUMENT, "3 inputs and 2 outputs are not");
    EXPECT_THROWS(stream.enqueue(runs(0), {}, {}), WEIR_INVALID_ARGUMENT, "not those of 0 runs");
}

void tables_tell_all(const weir::engine &engine) {
    const weir::table<float> numbers(engine, {"numbers"}, WEIR_TABLE_KEY_INT64, weir::desc(WEIR_F32, {2}));
    EXPECT(numbers.contents_now().rows.empty());
    numbers.insert(std::vector<std::int64_t>{7, 3}, {1, 2, 3, 4});
    const auto all = numbers.contents_now();
    EXPECT((all.integers == std::vector<std::int64_t>{3, 7}) && (all.rows == std::vector<float>{3, 4, 1, 2}));
    const weir::table<float> words(engine, {"words"}, WEIR_TABLE_KEY_BYTES, weir::desc(WEIR_F32, {1}));
    words.insert(std::vector<std::string>{"pear", "fig"}, {1, 2});
    EXPECT((words.contents_now().strings == std::vector<std::string>{"fig", "pear"}));
    // A key without bytes is one, and no keys are of both kinds.
    const weir::table<float> blank(engine, {"blank"}, WEIR_TABLE_KEY_BYTES, weir::desc(WEIR_F32, {1}));
    EXPECT(blank.contents_now().strings.empty() && blank.find(std::vector<std::string>()).empty());
    blank.insert(std::vector<std::string>{""}, {5});
    EXPECT(blank.contents_now().strings == std::vector<std::string>{""} && blank.contents_now().integers.empty());
    numbers.insert(std::vector<std::int64_t>(), {});
    EXPECT(numbers.find(std::vector<std::int64_t>()).empty() && numbers.size() == 2);
    EXPECT(numbers.finder(engine).num_outputs() == 2 && numbers.inserter(engine).num_outputs() == 0);
    EXPECT(numbers.sizer(engine).num_outputs() == 1);

    int made = 0;
    const auto make = [&] {
        made++;
        return weir::table<float>(engine, weir::place(), WEIR_TABLE_KEY_INT64, weir::desc(WEIR_F32, {1}));
    };
    const auto first = weir::resource::find_or_make(engine, {"lazy"}, WEIR_RESOURCE_TABLE, make);
    const auto again = weir::resource::find_or_make(engine, {"lazy"}, WEIR_RESOURCE_TABLE, make);
    EXPECT(made == 1 && first.id() == again.id());
    const auto fail = []() -> weir::resource { throw weir::error(WEIR_DATA_LOSS, "no"); };
    EXPECT_THROWS(weir::resource::find_or_make(engine, {"never"}, WEIR_RESOURCE_TABLE, fail), WEIR_DATA_LOSS, "");
    weir::resource::clear(engine);
}

void tensors_come_and_go(const weir::engine &engine) {
    pair p(engine);
    auto exported = weir::to_dlpack(p.x);
    EXPECT(exported->dl_tensor.ndim == 1 && exported->dl_tensor.data == p.x.data());
    const auto back = weir::from_dlpack(engine, std::move(exported));
    EXPECT(back.data() == p.x.data() && exported == nullptr);
    const auto copy = weir::from_dlpack(engine, weir::to_dlpack_legacy(p.x), WEIR_DLPACK_COPY);
    EXPECT(copy.data() != p.x.data() && copy.data<float>()[3] == 3);
}

void pools_are_examined() {
    const auto pool = weir::threadpool::builtin(2);
    void *ctx = nullptr;
    const auto functions = pool.vtable(&ctx);
    EXPECT(functions.num_threads(ctx) == pool.num_threads());
    functions.release(ctx);
    struct inline_pool {
        std::int32_t num_threads() const { return 1; }
        void schedule(weir::pool_task task) { task(); }
    };
    void *mine = nullptr;
    const auto vtable = weir::threadpool::vtable_of(std::make_shared<inline_pool>(), &mine);
    int lines = 0;
    auto options = weir::sized<weir_conformance_options>();
    options.rounds = 1;
    EXPECT(weir::conformance::examine_pool(vtable, mine, [&](const weir_conformance_line &) { lines++; }, &options) == 0);
    EXPECT(lines > 10);
    EXPECT_THROWS(weir::conformance::examine_device(WEIR_ENGINE_CPU, 0, [](const weir_conformance_line &) {}),
                  WEIR_UNIMPLEMENTED, "");
}

struct tracer {
    std::atomic<int> begun{0}, ended{0}, runs{0};
    std::atomic<weir_status> last{-1};
    void node_begin(const weir_trace_run &run, const weir_trace_node &node) {
        begun += run.number > 0 && node.name != nullptr;
    }
    void node_end(const weir_trace_run &, const weir_trace_node &) { ended++; }
    void run_end(const weir_trace_run &, weir_status status) { runs++, last = status; }
};

void hooks_are_told_what_runs(const weir::engine &engine) {
    const auto program = chain(engine, 3);
    const pair p(engine);
    const auto mine = std::make_shared<tracer>();
    weir::set_trace_hooks(mine);
    program.run({p.x}, {p.y});
    EXPECT(mine->begun == 3 && mine->ended == 3 && mine->runs == 1 && mine->last == WEIR_OK);
    EXPECT(mine.use_count() == 2);
    weir::clear_trace_hooks();
    EXPECT(mine.use_count() == 1);
    program.run({p.x}, {p.y});
    EXPECT(mine->begun == 3);
    weir::use_trace_markers(0);
    EXPECT_THROWS(weir::use_trace_markers(8), WEIR_INVALID_ARGUMENT, "kinds");
}

void traces_tell_what_ran(const weir::engine &engine) {
    const auto program = chain(engine, 3);
    const pair p(engine);
    const weir::trace_name name("a span of C++");
    const weir::trace trace{weir::trace_options().set_threads(4).set_records_per_thread(1000)};
    const weir::trace asked{weir::trace_options().set_flags(WEIR_TRACE_ONLY_ASKED)};
    {
        const weir::trace_span span(name);
        program.run({p.x}, {p.y});
        name.mark(7);
        program.run({p.x}, {p.y}, weir::run_options().set_trace(asked.get()));
    }
    trace.stop();
    program.run({p.x}, {p.y});
    const auto told = [](const weir::trace &of, const std::string &what) {
        const std::string json = of.bytes(WEIR_TRACE_CHROME);
        int count = 0;
        for (auto at = json.find(what); at != std::string::npos; at = json.find(what, at + 1)) count++;
        return count;
    };
    EXPECT(told(trace, "\"double 2\"") == 2 && told(asked, "\"double 2\"") == 1);
    EXPECT(told(trace, "\"a span of C++\"") == 2 && told(asked, "\"a span of C++\"") == 0);
    const auto info = trace.info();
    EXPECT(info.recording == 0 && info.threads >= 1 && info.records > 8 && info.lost == 0);
    EXPECT(trace.thread(0).records > 0);
    EXPECT_THROWS(trace.thread(100), WEIR_OUT_OF_RANGE, "index is 100");
    EXPECT_THROWS(trace.save("/no/such/place", WEIR_TRACE_FOLDED), WEIR_NOT_FOUND, "/no/such/place");
    EXPECT_THROWS(trace.save_to(WEIR_TRACE_PPROF, [](const void *, std::size_t) { return WEIR_ABORTED; }), WEIR_ABORTED, "");
    const weir::trace all({});
    EXPECT(all.get() != nullptr && all.info().recording == 1);
    all.stop();
    const weir::trace of_domain{weir::trace_options().of_program(program.get())};
    EXPECT_THROWS(weir::trace(weir::trace_options().of_engine(engine.get()).of_program(program.get())),
                  WEIR_INVALID_ARGUMENT, "one of domain");
    EXPECT_THROWS(weir::trace(weir::trace_options().of_domain(reinterpret_cast<weir_domain *>(engine.get()))),
                  WEIR_INVALID_ARGUMENT, "expected a domain");
}

} // namespace

int main() {
    weir::testing::register_emulated();
    const auto before = weir::runtime_info();
    {
        const auto engine = weir::engine::cpu(weir::threadpool::builtin(2));
        programs_tell_of_themselves(engine);
        many_runs_and_programs_in_programs(engine);
        settings_are_told(engine);
        kernels_that_complete_later(engine);
        kernels_decide_shapes_and_run_programs(engine);
        tables_tell_all(engine);
        tensors_come_and_go(engine);
        traces_tell_what_ran(engine);
        hooks_are_told_what_runs(engine);
        pools_are_examined();
    }
    expect_released(before);
    std::puts("C++ asks for what C tells");
    return 0;
}
