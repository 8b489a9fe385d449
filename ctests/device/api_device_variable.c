/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Variables in the memory of a device: the host, streams, programs and loops that use them, several at once, failures,
 * and what is under way when they end. The emulated device's checker looks on: an access that nothing orders is a
 * report.
 */

#include <pthread.h>
#include <weir/control.h>
#include <weir/ops.h>
#include <weir/resource.h>
#include <weir/inspect.h>
#include <weir/device.h>
#include <weir/testing.h>

#include "test_device.h"
#include "variables.h"

enum { N = 100 };

static weir_engine *make_emulated(weir_emulation emulation) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    emulation.struct_size = sizeof emulation;
    emulation.flags = WEIR_EMULATION_CHECK;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_attr_set_max_streams(attr, 0));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

/* The checker has found nothing. */
static void check_races(const weir_engine *device) {
    enum { MANY = 32 };
    weir_emulated_race races[MANY];
    size_t count = 0;
    for (int i = 0; i < MANY; i++) races[i].struct_size = sizeof races[i];
    CHECK_OK(weir_emulated_get_races(device, races, MANY, &count));
    for (size_t i = 0; i < count; i++) fprintf(stderr, "%s\n", races[i].text);
    CHECK_EQ(count, 0);
}

static weir_resource *make_variable(weir_engine *engine, const char *name, uint64_t flags, weir_tensor *initial) {
    const weir_tensor_desc desc = vector_desc(N);
    weir_resource *variable = NULL;
    CHECK_OK(weir_variable_create(engine, NULL, name, &desc, flags, initial, &variable));
    return variable;
}

static weir_tensor *of_value(weir_engine *cpu, float value) {
    weir_tensor *tensor = make_tensor(cpu, vector_desc(N));
    for (int i = 0; i < N; i++) floats(tensor)[i] = value;
    return tensor;
}

static weir_stream *stream_on(weir_engine *engine) {
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    return stream;
}

/* All elements of the variable, which are equal. */
static float value_of(weir_engine *cpu, weir_resource *variable) {
    weir_tensor *here = of_value(cpu, -1.0f);
    CHECK_OK(weir_variable_read(variable, here));
    for (int i = 1; i < N; i++) CHECK(floats(here)[i] == floats(here)[0]);
    float value = floats(here)[0];
    weir_tensor_release(here);
    return value;
}

/* The host and two streams. */
static void streams(weir_engine *device, uint64_t flags) {
    weir_engine *cpu = make_engine(NULL);
    weir_tensor *three = of_value(cpu, 3.0f), *there = make_tensor(device, vector_desc(N)), *back = of_value(cpu, 0.0f);
    weir_stream *s = stream_on(device), *t = stream_on(device);
    weir_resource *zero = make_variable(device, "zero", flags, NULL), *x = make_variable(device, "x", flags, three);
    kernels k = make_kernels(device, x);
    CHECK(value_of(cpu, zero) == 0.0f && value_of(cpu, x) == 3.0f);
    CHECK_OK(weir_enqueue(s, k.read, NULL, 0, &there, 1));
    CHECK_OK(weir_stream_synchronize(s, WEIR_TIMEOUT_INFINITE));
    /* Two streams that nothing orders but the variable. */
    for (int i = 0; i < 10; i++) CHECK_OK(weir_enqueue(i % 2 == 0 ? s : t, k.add, &there, 1, NULL, 0));
    CHECK(value_of(cpu, x) == 33.0f);
    CHECK_OK(weir_variable_assign(x, there));
    CHECK(value_of(cpu, x) == 3.0f);
    CHECK_OK(weir_enqueue(t, k.add, &there, 1, NULL, 0));
    CHECK_OK(weir_enqueue(s, k.read, NULL, 0, &there, 1));
    CHECK_OK(weir_enqueue_copy(s, there, back));
    CHECK_OK(weir_stream_synchronize(s, WEIR_TIMEOUT_INFINITE));
    CHECK(floats(back)[N - 1] == 6.0f);
    CHECK_OK(weir_stream_synchronize(t, WEIR_TIMEOUT_INFINITE));

    weir_tensor *small = make_tensor(cpu, vector_desc(7));
    weir_kernel *refused = NULL;
    CHECK_CODE(weir_variable_read(x, small), WEIR_INVALID_ARGUMENT, "tensor: expected f32[100], got f32[7]");
    CHECK_CODE(weir_kernel_create_variable(cpu, x, WEIR_VARIABLE_READ, NULL, &refused), WEIR_INVALID_ARGUMENT, "of another engine");
    weir_resource *of_host = make_variable(cpu, "x", flags, NULL);
    CHECK_CODE(weir_variable_read(of_host, there), WEIR_INVALID_ARGUMENT, "expected cpu:0");
    CHECK_CODE(weir_variable_assign(of_host, there), WEIR_INVALID_ARGUMENT, "expected cpu:0");
    weir_resource_release(of_host);

    size_t length = 0;
    static char text[20000];
    CHECK_OK(weir_engine_dump_memory(device, text, sizeof text, &length));
    CHECK_TEXT(text, "\"for\":\"variable f32[100]\",\"blocks\":2,");
    weir_resource_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_resource_get_info(x, &info));
    CHECK(info.bytes == 2 * N * sizeof(float) && info.optimistic == (flags == WEIR_VARIABLE_OPTIMISTIC));

    CHECK_OK(weir_resource_delete(device, NULL, "x"));
    CHECK_OK(weir_enqueue(s, k.add, &there, 1, NULL, 0));
    CHECK_CODE(weir_stream_synchronize(s, WEIR_TIMEOUT_INFINITE), WEIR_NOT_FOUND, "variable 'x' of container 'default' was destroyed");
    CHECK_OK(weir_stream_clear_error(s));
    CHECK_OK(weir_resource_delete(device, NULL, "zero"));
    release_kernels(&k);
    weir_resource_release(x);
    weir_resource_release(zero);
    weir_tensor_release(small);
    weir_tensor_release(three);
    weir_tensor_release(there);
    weir_tensor_release(back);
    weir_stream_release(s);
    weir_stream_release(t);
    weir_engine_release(cpu);
}

/* state += input, on the device; output: the state. */
static weir_program *counting(weir_engine *cpu, weir_engine *device, const kernels *k, int ordered, weir_status expected) {
    weir_engine *engines[] = {cpu, device};
    weir_graph *graph = make_graph("counting");
    const weir_tensor_desc desc = vector_desc(N);
    weir_value input = {0}, output = {0};
    weir_node add = {0}, read = {0};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_add_input(graph, "input", &desc, &input));
    CHECK_OK(weir_graph_add_kernel(graph, "add", k->add, &input, 1, NULL, 0, &add));
    CHECK_OK(weir_graph_add_kernel(graph, "read", k->read, NULL, 0, &output, 1, &read));
    CHECK_OK(weir_graph_add_output(graph, "state", output));
    if (ordered) CHECK_OK(weir_graph_add_control_edge(graph, add, read));
    CHECK_CODE(weir_graph_compile(graph, engines, 2, NULL, &program), expected, "");
    if (expected == WEIR_INVALID_ARGUMENT) CHECK_TEXT(weir_last_error_message(), "in no order: add a control edge");
    weir_graph_destroy(graph);
    return program;
}

typedef struct runner {
    weir_program *program;
    weir_engine *cpu, *device;
    weir_kernel *add;
    int rounds;
} runner;

/* Runs of a program, each of which adds 1 and sees a whole value that is no less than the last one. */
static void *run_often(void *arg) {
    runner *r = arg;
    weir_tensor *one = of_value(r->cpu, 1.0f), *state = of_value(r->cpu, 0.0f);
    float last = 0.0f;
    for (int round = 0; round < r->rounds; round++) {
        CHECK_OK(weir_program_run(r->program, NULL, &one, 1, &state, 1, NULL));
        for (int i = 0; i < N; i++) CHECK(floats(state)[i] == floats(state)[0]);
        CHECK(floats(state)[0] >= last + 1.0f);
        last = floats(state)[0];
    }
    weir_tensor_release(one);
    weir_tensor_release(state);
    return NULL;
}

/* Additions on a stream. */
static void *enqueue_often(void *arg) {
    runner *r = arg;
    weir_stream *stream = stream_on(r->device);
    weir_tensor *one = of_value(r->cpu, 1.0f), *there = make_tensor(r->device, vector_desc(N));
    CHECK_OK(weir_enqueue_copy(stream, one, there));
    for (int round = 0; round < r->rounds; round++) CHECK_OK(weir_enqueue(stream, r->add, &there, 1, NULL, 0));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_tensor_release(one);
    weir_tensor_release(there);
    weir_stream_release(stream);
    return NULL;
}

/* Programs and a stream at once: every sum counts. */
static void at_once(weir_engine *device, uint64_t flags) {
    enum { THREADS = 3 };
    weir_engine *cpu = make_engine(NULL);
    weir_resource *x = make_variable(device, "x", flags, NULL);
    kernels k = make_kernels(device, x);
    runner r = {.cpu = cpu, .device = device, .add = k.add, .rounds = scale(60)};
    pthread_t threads[THREADS];
    r.program = counting(cpu, device, &k, 1, WEIR_OK);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, i == 0 ? enqueue_often : run_often, &r) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(value_of(cpu, x) == (float)(THREADS * r.rounds));
    /* The program keeps it when the name is gone. */
    CHECK_OK(weir_resource_delete(device, NULL, "x"));
    weir_resource_release(x);
    run_often(&r);
    weir_program_release(r.program);
    weir_program *program = NULL;
    if (flags == WEIR_VARIABLE_EXCLUSIVE) {
        program = counting(cpu, device, &k, 0, WEIR_INVALID_ARGUMENT);
    } else {
        program = counting(cpu, device, &k, 0, WEIR_NOT_FOUND);
    }
    CHECK(program == NULL);
    release_kernels(&k);
    weir_engine_release(cpu);
}

/* An optimistic one in a graph that gives no order: the device's order is one or the other. */
static void without_order(weir_engine *device) {
    weir_engine *cpu = make_engine(NULL);
    weir_resource *x = make_variable(device, "x", WEIR_VARIABLE_OPTIMISTIC, NULL);
    kernels k = make_kernels(device, x);
    weir_program *program = counting(cpu, device, &k, 0, WEIR_OK);
    weir_tensor *one = of_value(cpu, 1.0f), *state = of_value(cpu, 0.0f);
    for (int round = 0; round < 5; round++) {
        CHECK_OK(weir_program_run(program, NULL, &one, 1, &state, 1, NULL));
        for (int i = 0; i < N; i++) CHECK(floats(state)[i] == floats(state)[0]);
        CHECK(floats(state)[0] == (float)round || floats(state)[0] == (float)round + 1.0f);
    }
    CHECK(value_of(cpu, x) == 5.0f);
    CHECK_OK(weir_resource_delete(device, NULL, "x"));
    weir_program_release(program);
    weir_tensor_release(one);
    weir_tensor_release(state);
    release_kernels(&k);
    weir_resource_release(x);
    weir_engine_release(cpu);
}

/* x = 2 x + step, `trips` times, in a loop whose iterations may overlap: each must read what the last one has
 * written. */
static void loop(weir_engine *device, int32_t trips) {
    weir_engine *cpu = make_engine(NULL), *engines[] = {cpu, device};
    weir_tensor *first = of_value(cpu, 1.0f);
    weir_resource *x = make_variable(device, "x", WEIR_VARIABLE_EXCLUSIVE, first);
    kernels k = make_kernels(device, x);
    weir_kernel *sum = NULL, *less = NULL, *plus = NULL;
    const weir_binary_desc lt = {.struct_size = sizeof lt, .op = WEIR_BINARY_LT};
    const weir_binary_desc add = {.struct_size = sizeof add, .op = WEIR_BINARY_ADD};
    CHECK_OK(weir_kernel_create_binary(device, BINARY(ADD), NULL, &sum));
    CHECK_OK(weir_kernel_create_binary(cpu, &lt, NULL, &less));
    CHECK_OK(weir_kernel_create_binary(cpu, &add, NULL, &plus));
    weir_graph *graph = make_graph("loop"), *condition = make_graph("condition"), *body = make_graph("body");
    const weir_tensor_desc number = make_desc(WEIR_S32, 0, 0, 0, 0), vector = vector_desc(N);
    const weir_tensor_desc descs[] = {number, number, number, vector};
    const char *names[] = {"i", "limit", "one", "step"};
    weir_value c[4], b[4], in[4], out[1], goes_on, next, old, twice, more;
    weir_node read, put;
    for (int i = 0; i < 4; i++) {
        CHECK_OK(weir_graph_add_input(condition, names[i], &descs[i], &c[i]));
        CHECK_OK(weir_graph_add_input(body, names[i], &descs[i], &b[i]));
        CHECK_OK(weir_graph_add_input(graph, names[i], &descs[i], &in[i]));
    }
    const weir_value compared[] = {c[0], c[1]}, counted[] = {b[0], b[2]};
    CHECK_OK(weir_graph_add_kernel(condition, "less", less, compared, 2, &goes_on, 1, NULL));
    CHECK_OK(weir_graph_add_output(condition, "goes_on", goes_on));
    CHECK_OK(weir_graph_add_kernel(body, "count", plus, counted, 2, &next, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(body, "read", k.read, NULL, 0, &old, 1, &read));
    const weir_value both[] = {old, old};
    CHECK_OK(weir_graph_add_kernel(body, "twice", sum, both, 2, &twice, 1, NULL));
    const weir_value stepped[] = {twice, b[3]};
    CHECK_OK(weir_graph_add_kernel(body, "more", sum, stepped, 2, &more, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(body, "put", k.assign, &more, 1, NULL, 0, &put));
    CHECK_OK(weir_graph_add_output(body, "i", next));
    CHECK_OK(weir_graph_add_while(graph, "loop", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = in, .num_variables = 1, .invariants = in + 1,
        .num_invariants = 3, .parallel_iterations = 4}, out, NULL));
    CHECK_OK(weir_graph_add_output(graph, "i", out[0]));
    weir_program *program = NULL;
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));

    weir_tensor *from[] = {make_tensor(cpu, number), make_tensor(cpu, number), make_tensor(cpu, number), of_value(cpu, 1.0f)};
    weir_tensor *count = make_tensor(cpu, number);
    *(int32_t *)(void *)floats(from[1]) = trips;
    *(int32_t *)(void *)floats(from[2]) = 1;
    float expected = 1.0f;
    for (int round = 0; round < 3; round++) {
        CHECK_OK(weir_variable_assign(x, first));
        CHECK_OK(weir_program_run(program, NULL, from, 4, &count, 1, NULL));
        CHECK_EQ(*(int32_t *)(void *)floats(count), trips);
        expected = 1.0f;
        for (int i = 0; i < trips; i++) expected = 2.0f * expected + 1.0f;
        CHECK(value_of(cpu, x) == expected);
    }
    for (int i = 0; i < 4; i++) weir_tensor_release(from[i]);
    weir_tensor_release(count);
    weir_tensor_release(first);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_kernel_release(sum);
    weir_kernel_release(less);
    weir_kernel_release(plus);
    release_kernels(&k);
    CHECK_OK(weir_resource_delete(device, NULL, "x"));
    weir_resource_release(x);
    weir_engine_release(cpu);
}

/* Each operation of a run fails once: the variable has a value of before or after, whole, and the next run counts. */
static void failures(void) {
    int failed = 0;
    for (uint64_t k_th = 1;; k_th++) {
        weir_engine *device = make_emulated((weir_emulation){.seed = k_th, .fail_operation = k_th}), *cpu = make_engine(NULL);
        const weir_tensor_desc desc = vector_desc(N);
        weir_resource *x = NULL;
        CHECK_OK(weir_variable_create(device, NULL, "x", &desc, WEIR_VARIABLE_EXCLUSIVE, NULL, &x));
        kernels k = make_kernels(device, x);
        weir_program *program = counting(cpu, device, &k, 1, WEIR_OK);
        weir_tensor *one = of_value(cpu, 1.0f), *state = of_value(cpu, 0.0f);
        int ok = 0;
        for (int run = 0; run < 3; run++) {
            if (weir_program_run(program, NULL, &one, 1, &state, 1, NULL) == WEIR_OK) ok++;
            else failed++;
        }
        CHECK(ok >= 2);
        const int done = ok == 3;
        if (k_th > 1 && !done) { /* else the zeros are not there, or the failure is still to come */
            float value = value_of(cpu, x);
            CHECK(value == (float)ok || value == (float)ok + 1.0f);
            CHECK_OK(weir_program_run(program, NULL, &one, 1, &state, 1, NULL));
            CHECK(floats(state)[0] == value + 1.0f && value_of(cpu, x) == value + 1.0f);
        }
        check_races(device);
        weir_program_release(program);
        weir_tensor_release(one);
        weir_tensor_release(state);
        release_kernels(&k);
        weir_resource_release(x);
        weir_engine_release(device);
        weir_engine_release(cpu);
        if (done && k_th > 3) break;
    }
    CHECK(failed > 3);
}

/* What is under way when the variable ends keeps its memory. */
static void under_way(void) {
    weir_engine *device = make_emulated((weir_emulation){.latency_ns = 2000000}), *cpu = make_engine(NULL);
    weir_stream *stream = stream_on(device);
    weir_tensor *there = make_tensor(device, vector_desc(N));
    CHECK_OK(weir_enqueue_fill(stream, there, 0));
    for (int round = 0; round < 3; round++) {
        weir_resource *x = make_variable(device, "x", WEIR_VARIABLE_EXCLUSIVE, NULL);
        kernels k = make_kernels(device, x);
        CHECK_OK(weir_enqueue(stream, k.add, &there, 1, NULL, 0));
        CHECK_OK(weir_enqueue(stream, k.add, &there, 1, NULL, 0));
        CHECK_OK(weir_resource_delete(device, NULL, "x"));
        weir_resource_release(x);
        release_kernels(&k);
    }
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(stream);
    weir_tensor_release(there);
    weir_memory_info info = {.struct_size = sizeof info};
    EVENTUALLY(weir_engine_get_memory_info(device, &info) == WEIR_OK && info.in_use == 0);
    check_races(device);
    weir_engine_release(device);
    weir_engine_release(cpu);
}

/* Later runs allocate nothing. */
static void steady(void) {
    weir_engine *device = make_emulated((weir_emulation){0}), *cpu = make_engine(NULL);
    weir_resource *x = make_variable(device, "x", WEIR_VARIABLE_EXCLUSIVE, NULL);
    kernels k = make_kernels(device, x);
    weir_program *program = counting(cpu, device, &k, 1, WEIR_OK);
    weir_tensor *one = of_value(cpu, 1.0f), *state = of_value(cpu, 0.0f);
    uint64_t allocations = 1;
    /* The device's own lists may still grow when its thread comes late: then another round has none. */
    for (int round = 0; allocations > 0 && round < 20; round++) {
        const uint64_t before = runtime_info().allocations;
        for (int i = 0; i < 20; i++) CHECK_OK(weir_program_run(program, NULL, &one, 1, &state, 1, NULL));
        allocations = runtime_info().allocations - before;
    }
    CHECK_EQ(allocations, 0);
    weir_program_release(program);
    weir_tensor_release(one);
    weir_tensor_release(state);
    release_kernels(&k);
    weir_resource_release(x);
    weir_engine_release(device);
    weir_engine_release(cpu);
}

/* A plug-in's device has them, too. */
static void plug_in(void) {
    test_device *own = test_device_create(WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK);
    const weir_device_vtable vtable = test_device_vtable();
    weir_engine_kind kind = 0;
    weir_engine *device = NULL;
    CHECK(own != NULL);
    CHECK_OK(weir_device_register("board", 0, &vtable, own));
    CHECK_OK(weir_engine_kind_from_name("board", &kind));
    CHECK_OK(weir_engine_create(kind, 0, NULL, &device));
    at_once(device, WEIR_VARIABLE_EXCLUSIVE);
    at_once(device, WEIR_VARIABLE_OPTIMISTIC);
    weir_engine_release(device);
    CHECK_OK(weir_device_unregister("board", 0));
    EVENTUALLY((void)runtime_info(), test_device_alive(own) == 0 && test_device_releases(own) == 1);
    test_device_destroy(own);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    const uint64_t both[] = {WEIR_VARIABLE_EXCLUSIVE, WEIR_VARIABLE_OPTIMISTIC};
    for (uint64_t seed = 0; seed < 4; seed++) {
        weir_engine *device = make_emulated((weir_emulation){.seed = seed});
        for (int i = 0; i < 2; i++) {
            streams(device, both[i]);
            at_once(device, both[i]);
        }
        without_order(device);
        for (int32_t trips = 0; trips < 9; trips += 4) loop(device, trips);
        check_races(device);
        weir_engine_release(device);
    }
    failures();
    under_way();
    steady();
    plug_in();
    check_released(&before);
    printf("ok\n");
    return 0;
}
