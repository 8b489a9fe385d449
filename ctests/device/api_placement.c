/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs whose inputs and outputs are in a device's memory, as somebody uses them who keeps data there: a state that
 * goes from run to run without the host, weights that are there already, runs in the order of a device's stream, two
 * devices that copy to one another, a loop that the device decides in.
 */

#include <weir/control.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"

enum { LEN = 64, STEPS = 20, MORE = 30 };

static weir_engine *make_emulated(uint32_t index) {
    const weir_emulation emulation = {.struct_size = sizeof emulation, .seed = 11 + index, .flags = WEIR_EMULATION_CHECK};
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, index, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static void check_races(weir_engine *engine) {
    weir_emulated_race race = {.struct_size = sizeof race};
    size_t count = 0;
    CHECK_OK(weir_emulated_get_races(engine, &race, 0, &count));
    if (count > 0 && weir_emulated_get_races(engine, &race, 1, &count) == WEIR_OK) printf("FAILED: %s\n", race.text);
    CHECK_EQ(count, 0);
}

/* The tensor's numbers by way of the host; all are the same. */
static float first_of(weir_stream *stream, weir_tensor *tensor, weir_engine *cpu) {
    weir_tensor *here = make_tensor(cpu, vector_desc(LEN));
    CHECK_OK(weir_enqueue_copy(stream, tensor, here));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    const float first = floats(here)[0];
    for (int i = 0; i < LEN; i++) CHECK(floats(here)[i] == first);
    weir_tensor_release(here);
    return first;
}

static weir_tensor *on_host(weir_engine *cpu, float value) {
    weir_tensor *tensor = make_tensor(cpu, vector_desc(LEN));
    for (int i = 0; i < LEN; i++) floats(tensor)[i] = value;
    return tensor;
}

/* next = state + x on `engine`; x comes from the host. */
static weir_program *make_step(weir_engine *cpu, weir_engine *engine) {
    weir_engine *engines[2] = {cpu, engine};
    weir_port_info port = {.struct_size = sizeof port};
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_graph *graph = make_graph("step");
    weir_kernel *add = NULL;
    weir_program *program = NULL;
    weir_value values[2], next;
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_graph_add_input(graph, "state", &desc, &values[0]));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &values[1]));
    CHECK_OK(weir_graph_add_kernel(graph, "add", add, values, 2, &next, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "next", next));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, engine));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, engine));
    CHECK_CODE(weir_graph_compile(graph, &cpu, 1, NULL, &program), WEIR_INVALID_ARGUMENT, "its engine emulated:");
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    CHECK_OK(weir_program_get_port(program, WEIR_PORT_INPUT, 0, &port));
    CHECK(port.engine == engine && strcmp(port.name, "state") == 0);
    CHECK_OK(weir_program_get_port(program, WEIR_PORT_INPUT, 1, &port));
    CHECK(port.engine == cpu);
    CHECK_OK(weir_program_get_port(program, WEIR_PORT_OUTPUT, 0, &port));
    CHECK(port.engine == engine);
    weir_kernel_release(add);
    weir_graph_destroy(graph);
    return program;
}

/* What so many runs allocate, on the stream and in this thread in turn, and a wait for them. */
static uint64_t allocations_of(weir_program *program, weir_stream *stream, int runs, weir_tensor **inputs, weir_tensor *output) {
    const uint64_t before = runtime_info().allocations;
    for (int i = 0; i < runs; i++) CHECK_OK(weir_program_run(program, NULL, inputs, 2, &output, 1, NULL));
    for (int i = 0; i < runs; i++) CHECK_OK(weir_program_run(program, stream, inputs, 2, &output, 1, NULL));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    return runtime_info().allocations - before;
}

/* A state that stays on the device: each run reads what the last one wrote, on one stream, and nobody waits in
 * between. */
static void a_state_stays_on_its_device(weir_engine *cpu, weir_engine *device) {
    weir_program *program = make_step(cpu, device);
    weir_stream *stream = NULL;
    weir_tensor *states[2] = {make_tensor(device, vector_desc(LEN)), make_tensor(device, vector_desc(LEN))};
    weir_tensor *x = on_host(cpu, 1);
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    CHECK_OK(weir_enqueue_fill(stream, states[0], 0));
    for (int i = 0; i < STEPS; i++) {
        weir_tensor *inputs[] = {states[i % 2], x};
        CHECK_OK(weir_program_run(program, stream, inputs, 2, &states[1 - i % 2], 1, NULL));
    }
    CHECK(first_of(stream, states[STEPS % 2], cpu) == STEPS);

    /* A handle, and tensors that nobody else holds any more. */
    weir_tensor *state = make_tensor(device, vector_desc(LEN)), *inputs[] = {state, on_host(cpu, 7)};
    weir_run *run = NULL;
    CHECK_OK(weir_enqueue_fill(stream, state, 0));
    CHECK_OK(weir_program_start(program, stream, inputs, 2, &states[0], 1, NULL, &run));
    weir_tensor_release(inputs[0]);
    weir_tensor_release(inputs[1]);
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    weir_run_release(run);
    CHECK(first_of(stream, states[0], cpu) == 7);

    /* In this thread, with tensors that are ready. */
    weir_tensor *ready[] = {states[0], x};
    CHECK_OK(weir_program_run(program, NULL, ready, 2, &states[1], 1, NULL));
    CHECK(first_of(stream, states[1], cpu) == 8);

    /* From the second run on there is no allocation: many runs and a wait take what one run and a wait do. The device's
     * own lists may still grow while its thread comes late. */
    uint64_t allocations = 1;
    for (int round = 0; allocations > 0 && round < MORE; round++) {
        const uint64_t one = allocations_of(program, stream, 1, ready, states[1]);
        const uint64_t many = allocations_of(program, stream, STEPS, ready, states[1]);
        allocations = many > one ? many - one : 0;
    }
    CHECK_EQ(allocations, 0);

    weir_tensor *wrong[] = {x, x};
    CHECK_CODE(weir_program_run(program, NULL, wrong, 2, &states[1], 1, NULL), WEIR_INVALID_ARGUMENT,
               "input 0 'state': expected a tensor on emulated:5, got one on cpu:0");
    CHECK_CODE(weir_program_run(program, NULL, ready, 2, &x, 1, NULL), WEIR_INVALID_ARGUMENT,
               "output 0 'next': expected a tensor on emulated:5, got one on cpu:0");
    weir_tensor_release(x);
    weir_tensor_release(states[0]);
    weir_tensor_release(states[1]);
    weir_stream_release(stream);
    weir_program_release(program);
    check_races(device);
}

/* What a stream is told to do before a run happens before it, and a stream that has failed begins none. */
static void a_stream_that_has_failed_begins_no_run(weir_engine *cpu) {
    const weir_emulation emulation = {.struct_size = sizeof emulation, .seed = 3, .fail_operation = 1};
    weir_engine_attr *attr = NULL;
    weir_engine *device = NULL;
    weir_stream *stream = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 7, attr, &device));
    weir_engine_attr_destroy(attr);
    weir_program *program = make_step(cpu, device);
    weir_tensor *state = make_tensor(device, vector_desc(LEN)), *next = make_tensor(device, vector_desc(LEN));
    weir_tensor *inputs[] = {state, on_host(cpu, 1)};
    weir_run *run = NULL;
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    CHECK_OK(weir_enqueue_fill(stream, state, 0));
    CHECK_OK(weir_program_start(program, stream, inputs, 2, &next, 1, NULL, &run));
    CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_ABORTED, "its stream had failed");
    CHECK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE) != WEIR_OK);
    weir_run_release(run);
    weir_tensor_release(inputs[1]);
    weir_tensor_release(next);
    weir_tensor_release(state);
    weir_stream_release(stream);
    weir_program_release(program);
    weir_engine_release(device);
}

/* Weights that were loaded to the device before there was a graph: nodes there read them, the host has a copy, and the
 * program keeps them. */
static void weights_stay_on_their_device(weir_engine *cpu, weir_engine *device) {
    weir_engine *engines[2] = {cpu, device};
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_tensor *weights = make_tensor(device, desc), *loaded = on_host(cpu, 30), *x = on_host(cpu, 1), *y = make_tensor(cpu, desc);
    weir_graph *graph = make_graph("weights");
    weir_kernel *there = NULL, *here = NULL;
    weir_program *program = NULL;
    weir_stream *stream = NULL;
    weir_value in[2], sum, end;
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    CHECK_OK(weir_enqueue_copy(stream, loaded, weights));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_kernel_create_binary(device, BINARY(ADD), NULL, &there));
    CHECK_OK(weir_kernel_create_binary(cpu, BINARY(ADD), NULL, &here));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &in[0]));
    CHECK_OK(weir_graph_add_constant(graph, "weights", weights, &in[1]));
    CHECK_OK(weir_graph_add_kernel(graph, "sum", there, in, 2, &sum, 1, NULL));
    /* The host reads them, too. */
    in[0] = sum;
    CHECK_OK(weir_graph_add_kernel(graph, "end", here, in, 2, &end, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", end));
    CHECK_CODE(weir_graph_compile(graph, &cpu, 1, NULL, &program), WEIR_INVALID_ARGUMENT,
               "node 'weights': its engine emulated:5 is not among the engines of the program");
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    weir_tensor_release(weights);
    for (int run = 0; run < 4; run++) {
        floats(y)[0] = 0;
        CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
        CHECK(floats(y)[0] == 61 && floats(y)[LEN - 1] == 61);
    }
    weir_program_release(program);
    weir_kernel_release(there);
    weir_kernel_release(here);
    weir_tensor_release(loaded);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_stream_release(stream);
    check_races(device);
}

/* One device's output is the other one's input, inside of a program and between two. */
static void two_devices_copy_to_one_another(weir_engine *cpu, weir_engine *a, weir_engine *b) {
    weir_engine *engines[] = {cpu, a, b};
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_graph *graph = make_graph("pair");
    weir_kernel *on_a = NULL, *on_b = NULL;
    weir_program *program = NULL;
    weir_stream *stream = NULL, *there = NULL;
    weir_value x, twice, both[2], sum;
    char report[4096];
    size_t length = 0;
    CHECK_OK(weir_kernel_create_binary(a, BINARY(ADD), NULL, &on_a));
    CHECK_OK(weir_kernel_create_binary(b, BINARY(ADD), NULL, &on_b));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    both[0] = both[1] = x;
    CHECK_OK(weir_graph_add_kernel(graph, "twice", on_a, both, 2, &twice, 1, NULL));
    both[0] = both[1] = twice;
    CHECK_OK(weir_graph_add_kernel(graph, "four times", on_b, both, 2, &sum, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "sum", sum));
    CHECK_OK(weir_graph_add_output(graph, "sum here", sum));
    CHECK_OK(weir_graph_add_output(graph, "sum there", sum));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, a));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, a));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 2, b));
    CHECK_OK(weir_graph_compile(graph, engines, 3, NULL, &program));
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, &length));
    CHECK(strstr(report, "\"uploads\":0,\"fetches\":1,\"peer_copies\":1,\"deliveries\":1,\"outputs_in_place\":1") != NULL);
    weir_tensor *input = make_tensor(a, desc);
    weir_tensor *outputs[] = {make_tensor(a, desc), make_tensor(cpu, desc), make_tensor(b, desc)};
    weir_tensor *three = on_host(cpu, 3);
    CHECK_OK(weir_stream_create(a, 0, NULL, &stream));
    CHECK_OK(weir_stream_create(b, 0, NULL, &there));
    CHECK_OK(weir_enqueue_copy(stream, three, input));
    CHECK_OK(weir_program_run(program, stream, &input, 1, outputs, 3, NULL));
    CHECK(first_of(stream, outputs[0], cpu) == 12);
    CHECK(floats(outputs[1])[LEN - 1] == 12);
    CHECK(first_of(there, outputs[2], cpu) == 12);
    weir_tensor_release(three);
    weir_tensor_release(input);
    for (int i = 0; i < 3; i++) weir_tensor_release(outputs[i]);
    weir_stream_release(there);
    weir_stream_release(stream);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(on_a);
    weir_kernel_release(on_b);
    check_races(a);
    check_races(b);
}

/* One graph made for the CPU, whose nodes go where the data is. */
static void open_nodes_follow_the_data(weir_engine *cpu, weir_engine *device) {
    weir_engine *engines[] = {cpu, device};
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_graph *graph = make_graph("open");
    weir_kernel *add = NULL, *relu = NULL;
    const weir_compile_options options = {.struct_size = sizeof options, .placement = WEIR_PLACEMENT_ANY};
    weir_value x, y, values[2], sum, end;
    weir_node first, last;
    CHECK_OK(weir_kernel_create_binary(cpu, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_kernel_create_eltwise(cpu, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_input(graph, "y", &desc, &y));
    values[0] = x;
    values[1] = y;
    CHECK_OK(weir_graph_add_kernel(graph, "sum", add, values, 2, &sum, 1, &first));
    CHECK_OK(weir_graph_add_kernel(graph, "end", relu, &sum, 1, &end, 1, &last));
    CHECK_OK(weir_graph_add_output(graph, "end", end));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, device));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, device));
    CHECK_CODE(weir_graph_set_placement(graph, x, WEIR_PLACEMENT_ANY), WEIR_INVALID_ARGUMENT, "is no node of this graph");

    /* All where their kernels are; all open; one open; all open but one. */
    const struct {
        const weir_compile_options *options;
        weir_placement first, last;
        int on_device;
        const char *report;
    } cases[] = {
        {NULL, WEIR_PLACEMENT_DEFAULT, WEIR_PLACEMENT_DEFAULT, 0, NULL},
        {&options, WEIR_PLACEMENT_DEFAULT, WEIR_PLACEMENT_DEFAULT, 2, "'sum' on emulated:5: 256 bytes cross, 256 on cpu:0"},
        {NULL, WEIR_PLACEMENT_DEFAULT, WEIR_PLACEMENT_ANY, 0, "'end' on cpu:0: 256 bytes cross, 256 on emulated:5"},
        {&options, WEIR_PLACEMENT_KERNEL, WEIR_PLACEMENT_DEFAULT, 0, "'end' on cpu:0"},
    };
    weir_tensor *inputs[] = {make_tensor(device, desc), on_host(cpu, 2)}, *output = make_tensor(device, desc);
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_engine *order[] = {engines[i == 1], engines[i != 1]};
        weir_emulated_counters before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
        weir_program *program = NULL;
        char report[8192];
        size_t length = 0;
        CHECK_OK(weir_graph_set_placement(graph, first, cases[i].first));
        CHECK_OK(weir_graph_set_placement(graph, last, cases[i].last));
        CHECK_OK(weir_graph_compile(graph, order, 2, cases[i].options, &program));
        weir_compile_options kept = {.struct_size = sizeof kept};
        CHECK_OK(weir_program_get_options(program, &kept));
        CHECK_EQ(kept.placement, cases[i].options == NULL ? WEIR_PLACEMENT_KERNEL : WEIR_PLACEMENT_ANY);
        CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, sizeof report, &length));
        if (cases[i].report != NULL && strstr(report, cases[i].report) == NULL) printf("FAILED: case %d: %s\n", (int)i, report);
        CHECK(cases[i].report == NULL ? strstr(report, "were open") == NULL : strstr(report, cases[i].report) != NULL);
        CHECK_OK(weir_enqueue_fill(stream, inputs[0], 0));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_OK(weir_emulated_get_counters(device, &before));
        CHECK_OK(weir_program_run(program, NULL, inputs, 2, &output, 1, NULL));
        CHECK_OK(weir_emulated_get_counters(device, &after));
        CHECK_EQ(after.launches - before.launches, (uint64_t)cases[i].on_device);
        CHECK(first_of(stream, output, cpu) == 2);
        weir_program_release(program);
    }
    weir_stream_release(stream);
    weir_tensor_release(output);
    weir_tensor_release(inputs[0]);
    weir_tensor_release(inputs[1]);
    weir_kernel_release(relu);
    weir_kernel_release(add);
    weir_graph_destroy(graph);
    check_races(device);
}

/* while (i < n) { i = i + 1; state = state + x; } on `engine`, where the state is; the rest comes from the host. */
static weir_program *make_loop(weir_engine *cpu, weir_engine *engine, const weir_compile_options *options) {
    weir_engine *engines[2] = {cpu, engine};
    const weir_tensor_desc one = vector_desc(1), all = vector_desc(LEN);
    const weir_binary_desc lt = {.struct_size = sizeof lt, .op = WEIR_BINARY_LT};
    weir_graph *condition = make_graph("more"), *body = make_graph("body"), *graph = make_graph("loop");
    weir_kernel *less = NULL, *add = NULL;
    weir_tensor *step = make_tensor(cpu, one);
    weir_program *program = NULL;
    weir_value inner[4], values[4], more, by, next[2], both[2], last[2];
    floats(step)[0] = 1;
    CHECK_OK(weir_kernel_create_binary(engine, &lt, NULL, &less));
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), NULL, &add));
    static const char *const names[] = {"i", "state", "n", "x"};
    for (int i = 0; i < 4; i++) CHECK_OK(weir_graph_add_input(condition, names[i], i % 2 == 0 ? &one : &all, &inner[i]));
    both[0] = inner[0];
    both[1] = inner[2];
    CHECK_OK(weir_graph_add_kernel(condition, "less", less, both, 2, &more, 1, NULL));
    CHECK_OK(weir_graph_add_output(condition, "more", more));
    for (int i = 0; i < 4; i++) CHECK_OK(weir_graph_add_input(body, names[i], i % 2 == 0 ? &one : &all, &inner[i]));
    CHECK_OK(weir_graph_add_constant(body, "one", step, &by));
    both[0] = inner[0];
    both[1] = by;
    CHECK_OK(weir_graph_add_kernel(body, "count", add, both, 2, &next[0], 1, NULL));
    both[0] = inner[1];
    both[1] = inner[3];
    CHECK_OK(weir_graph_add_kernel(body, "step", add, both, 2, &next[1], 1, NULL));
    CHECK_OK(weir_graph_add_output(body, "i", next[0]));
    CHECK_OK(weir_graph_add_output(body, "state", next[1]));
    for (int i = 0; i < 4; i++) CHECK_OK(weir_graph_add_input(graph, names[i], i % 2 == 0 ? &one : &all, &values[i]));
    CHECK_OK(weir_graph_add_while(graph, "while", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = values, .num_variables = 2, .invariants = values + 2,
        .num_invariants = 2}, last, NULL));
    CHECK_OK(weir_graph_add_output(graph, "state", last[1]));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 1, engine));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, engine));
    CHECK_OK(weir_graph_compile(graph, engines, 2, options, &program));
    weir_tensor_release(step);
    weir_kernel_release(less);
    weir_kernel_release(add);
    weir_graph_destroy(graph);
    weir_graph_destroy(body);
    weir_graph_destroy(condition);
    return program;
}

/* A loop whose state and predicate stay on the device: it decides itself, or the host has the predicate brought
 * back. */
static void a_loop_stays_on_its_device(weir_engine *cpu, weir_engine *device) {
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    weir_tensor *first = make_tensor(cpu, vector_desc(1)), *most = make_tensor(cpu, vector_desc(1)), *x = on_host(cpu, 3);
    weir_tensor *inputs[] = {first, make_tensor(device, vector_desc(LEN)), most, x}, *output = make_tensor(device, vector_desc(LEN));
    floats(first)[0] = 0;
    for (int32_t by_device = 1; by_device >= 0; by_device--) {
        const weir_compile_options options = {
            .struct_size = sizeof options, .flags = by_device ? 0 : WEIR_COMPILE_NO_DEVICE_CONTROL};
        char report[8192];
        size_t length = 0;
        weir_program *program = make_loop(cpu, device, &options);
        CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, sizeof report, &length));
        const char *who = by_device ? "'while' on emulated:5: by the device\n" : "'while' on emulated:5: by the host: the compile options say so\n";
        if (strstr(report, who) == NULL) printf("FAILED: %s\n", report);
        CHECK(strstr(report, who) != NULL);
        for (int n = 0; n < 5; n++) {
            weir_emulated_counters before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
            floats(most)[0] = (float)n;
            CHECK_OK(weir_enqueue_fill(stream, inputs[1], 0));
            CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
            CHECK_OK(weir_emulated_get_counters(device, &before));
            CHECK_OK(weir_program_run(program, NULL, inputs, 4, &output, 1, NULL));
            CHECK_OK(weir_emulated_get_counters(device, &after));
            /* The count and the step; the loop compares by itself. */
            CHECK_EQ(after.launches - before.launches, (uint64_t)(2 * n));
            if (by_device) CHECK_EQ(after.replays - before.replays, 1);
            CHECK(first_of(stream, output, cpu) == (float)(3 * n));
        }
        weir_program_release(program);
    }
    for (int i = 0; i < 4; i++) weir_tensor_release(inputs[i]);
    weir_tensor_release(output);
    weir_stream_release(stream);
    check_races(device);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    weir_engine *cpu = make_engine(NULL), *a = make_emulated(5), *b = make_emulated(6);
    a_state_stays_on_its_device(cpu, a);
    weights_stay_on_their_device(cpu, a);
    two_devices_copy_to_one_another(cpu, a, b);
    open_nodes_follow_the_data(cpu, a);
    a_loop_stays_on_its_device(cpu, a);
    a_stream_that_has_failed_begins_no_run(cpu);
    weir_engine_release(b);
    weir_engine_release(a);
    weir_engine_release(cpu);
    check_released(&before);
    return 0;
}
