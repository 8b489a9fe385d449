/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs on a plug-in's device that has recordings, branches and loops, prepared launches, scratch memory, regions and a
 * query for idle streams: random graphs give what they give on the host, with all of that, with each left out, and while
 * functions fail.
 */

#include <stdbool.h>
#include <weir/control.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/device.h>

#include "make.h"
#include "test_device_board.h"

enum { LEN = 16, NAMES = 4 };

static const uint64_t basic = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK | WEIR_DEVICE_PINNED_MEMORY;
static const uint64_t extra = WEIR_DEVICE_IDLE_QUERY | WEIR_DEVICE_RECORDINGS | WEIR_DEVICE_CONTROL_FLOW |
                              WEIR_DEVICE_PREPARED_LAUNCHES | WEIR_DEVICE_SCRATCH;

/* An engine on the board whose work may use several streams. */
static weir_status engine_of(const board *b, weir_engine **out_engine) {
    weir_engine_attr *attr = NULL;
    CHECK_OK(weir_engine_attr_create(b->kind, &attr));
    CHECK_OK(weir_engine_attr_set_max_streams(attr, 0));
    weir_status status = weir_engine_create(b->kind, 0, attr, out_engine);
    weir_engine_attr_destroy(attr);
    return status;
}

static weir_engine *cpu_engine(void) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    return engine;
}

/* ---- Random graphs ---- */

typedef struct kernels {
    weir_kernel *add, *relu, *less, *reaches;
} kernels;

static weir_status make_kernels(weir_engine *engine, kernels *k) {
    const weir_binary_desc lt = {.struct_size = sizeof lt, .op = WEIR_BINARY_LT};
    const weir_binary_desc ge = {.struct_size = sizeof ge, .op = WEIR_BINARY_GE};
    weir_status status = weir_kernel_create_binary(engine, BINARY(ADD), NULL, &k->add);
    if (status == WEIR_OK) status = weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &k->relu);
    if (status == WEIR_OK) status = weir_kernel_create_binary(engine, &lt, NULL, &k->less);
    if (status == WEIR_OK) status = weir_kernel_create_binary(engine, &ge, NULL, &k->reaches);
    return status;
}

static void release_kernels(kernels *k) {
    weir_kernel_release(k->add);
    weir_kernel_release(k->relu);
    weir_kernel_release(k->less);
    weir_kernel_release(k->reaches);
}

typedef struct drawing {
    const kernels *k;
    uint64_t seed;
    int names;
} drawing;

static size_t draw(drawing *d, size_t below) {
    d->seed = d->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(d->seed >> 33) % below;
}

static const char *name_of(drawing *d, const char *what) {
    static char names[4][32];
    char *name = names[d->names % 4];
    snprintf(name, sizeof names[0], "%s %d", what, d->names++);
    return name;
}

/* The inputs of a graph inside: two vectors, a counter's beginning, a limit, a step, and an index. */
typedef struct ports {
    weir_value vectors[2], from, limit, step, index;
} ports;

static const char *const port_names[6] = {"v", "w", "from", "limit", "step", "index"};

static ports add_ports(weir_graph *graph) {
    const weir_tensor_desc all = vector_desc(LEN), one = vector_desc(1), choice = make_desc(WEIR_S32, 1, 1, 0, 0);
    ports p;
    weir_value values[6];
    for (int i = 0; i < 6; i++) CHECK_OK(weir_graph_add_input(graph, port_names[i], i < 2 ? &all : i < 5 ? &one : &choice, &values[i]));
    p.vectors[0] = values[0];
    p.vectors[1] = values[1];
    p.from = values[2];
    p.limit = values[3];
    p.step = values[4];
    p.index = values[5];
    return p;
}

static weir_value call(drawing *d, weir_graph *graph, const char *what, weir_kernel *kernel, weir_value a, const weir_value *b) {
    weir_value inputs[2] = {a, b == NULL ? a : *b}, output;
    CHECK_OK(weir_graph_add_kernel(graph, name_of(d, what), kernel, inputs, b == NULL ? 1 : 2, &output, 1, NULL));
    return output;
}

static void draw_nodes(drawing *d, weir_graph *graph, const ports *p, int count, int depth, weir_value *outputs);

/* A graph with these ports and one vector as output. */
static weir_graph *inner_graph(drawing *d, int depth) {
    weir_graph *graph = make_graph("inside");
    weir_value outputs[2];
    ports p = add_ports(graph);
    draw_nodes(d, graph, &p, 2 + (int)draw(d, 3), depth, outputs);
    CHECK_OK(weir_graph_add_output(graph, "y", outputs[0]));
    return graph;
}

/* while (i < limit) { i = i + step; v = relu(v + w), or what is drawn; } */
static weir_value add_loop(drawing *d, weir_graph *graph, const ports *p, weir_value v, weir_value w, int depth) {
    weir_graph *condition = make_graph("condition"), *body = make_graph("body");
    const weir_tensor_desc all = vector_desc(LEN), one = vector_desc(1), choice = make_desc(WEIR_S32, 1, 1, 0, 0);
    const weir_tensor_desc *const descs[6] = {&one, &all, &one, &one, &all, &choice};
    static const char *const names[6] = {"i", "v", "limit", "step", "w", "index"};
    weir_value in[6], of[6], last[2], more, next[2];
    for (int i = 0; i < 6; i++) {
        CHECK_OK(weir_graph_add_input(condition, names[i], descs[i], &in[i]));
        CHECK_OK(weir_graph_add_input(body, names[i], descs[i], &of[i]));
    }
    /* Compared by the loop itself, or by a kernel whose result it goes by. */
    more = call(d, condition, "less", d->k->less, in[0], &in[2]);
    CHECK_OK(weir_graph_add_output(condition, "more", more));
    if (draw(d, 3) == 0) (void)call(d, condition, "besides", d->k->relu, in[1], NULL);
    ports inside = {{of[1], of[4]}, of[0], of[2], of[3], of[5]};
    next[0] = call(d, body, "count", d->k->add, of[0], &of[3]);
    if (depth > 0 && draw(d, 2) == 0) {
        weir_value drawn[2];
        draw_nodes(d, body, &inside, 2, depth - 1, drawn);
        next[1] = drawn[0];
    } else {
        next[1] = call(d, body, "sum", d->k->add, of[1], &of[4]);
    }
    CHECK_OK(weir_graph_add_output(body, "i", next[0]));
    CHECK_OK(weir_graph_add_output(body, "v", next[1]));
    weir_value variables[2] = {p->from, v}, invariants[4] = {p->limit, p->step, w, p->index};
    CHECK_OK(weir_graph_add_while(graph, name_of(d, "while"), &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = variables, .num_variables = 2,
        .invariants = invariants, .num_invariants = 4}, last, NULL));
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    return last[1];
}

static void draw_nodes(drawing *d, weir_graph *graph, const ports *p, int count, int depth, weir_value *outputs) {
    weir_value pool[32] = {p->vectors[0], p->vectors[1]};
    size_t size = 2;
    for (int i = 0; i < count; i++) {
        weir_value a = pool[draw(d, size)], b = pool[draw(d, size)], made;
        size_t what = draw(d, depth > 0 ? 6 : 3);
        if (what < 2) {
            made = call(d, graph, "add", d->k->add, a, &b);
        } else if (what == 2) {
            made = call(d, graph, "relu", d->k->relu, a, NULL);
        } else if (what == 5) {
            made = add_loop(d, graph, p, a, b, depth - 1);
        } else {
            weir_value given[6] = {a, b, p->from, p->limit, p->step, p->index};
            weir_graph *branches[3] = {inner_graph(d, depth - 1), inner_graph(d, depth - 1), inner_graph(d, depth - 1)};
            if (what == 3) {
                weir_value chosen = call(d, graph, "reaches", d->k->reaches, p->from, &p->limit);
                CHECK_OK(weir_graph_add_cond(graph, name_of(d, "cond"),
                    &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc), .predicate = chosen,
                    .then_graph = branches[0], .else_graph = branches[1], .inputs = given, .num_inputs = 6}, &made, 1,
                    NULL));
            } else {
                CHECK_OK(weir_graph_add_case(graph, name_of(d, "case"),
                    &(weir_case_desc){.struct_size = sizeof(weir_case_desc), .index = p->index,
                    .branches = (const weir_graph *const *)branches, .num_branches = 3, .inputs = given,
                    .num_inputs = 6}, &made, 1, NULL));
            }
            for (int j = 0; j < 3; j++) weir_graph_destroy(branches[j]);
        }
        pool[size++] = made;
    }
    outputs[0] = pool[size - 1];
    outputs[1] = pool[size > 3 ? size - 2 : size - 1];
}

/* The graph of a seed, compiled for an engine; its inputs and outputs are there if `resident`. */
static weir_status compile_drawn(uint64_t seed, weir_engine *engine, weir_engine *cpu, weir_segments segments, uint64_t flags, bool resident,
                                 weir_program **out) {
    kernels k = {NULL, NULL, NULL, NULL};
    weir_status status = make_kernels(engine, &k);
    weir_graph *graph = NULL;
    weir_engine *engines[2] = {cpu, engine};
    if (status == WEIR_OK) {
        drawing d = {&k, seed, 0};
        weir_value outputs[2];
        graph = make_graph("drawn");
        ports p = add_ports(graph);
        draw_nodes(&d, graph, &p, 6, 2, outputs);
        CHECK_OK(weir_graph_add_output(graph, "y", outputs[0]));
        CHECK_OK(weir_graph_add_output(graph, "z", outputs[1]));
        for (size_t i = 0; resident && i < 6; i++) CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, i, engine));
        for (size_t i = 0; resident && i < 2; i++) CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, i, engine));
        const weir_compile_options options = {.struct_size = sizeof options, .segments = segments, .flags = flags};
        status = weir_graph_compile(graph, engines, engine == cpu ? 1 : 2, &options, out);
        weir_graph_destroy(graph);
    }
    release_kernels(&k);
    return status;
}

/* The values of one run: small whole numbers. */
static void set_inputs(weir_tensor *const *in, uint64_t run) {
    void *index = NULL;
    fill(in[0], (int)run);
    fill(in[1], (int)run + 5);
    floats(in[2])[0] = (float)(run % 3);
    floats(in[3])[0] = (float)((run * 5) % 7);
    floats(in[4])[0] = 1;
    CHECK_OK(weir_tensor_get_data(in[5], &index));
    *(int32_t *)index = (int32_t)(run % 5) - 1;
}

static void make_tensors(weir_engine *cpu, weir_tensor **in, weir_tensor **out) {
    for (int i = 0; i < 6; i++) in[i] = make_tensor(cpu, i < 2 ? vector_desc(LEN) : i < 5 ? vector_desc(1) : make_desc(WEIR_S32, 1, 1, 0, 0));
    for (int i = 0; i < 2; i++) out[i] = make_tensor(cpu, vector_desc(LEN));
}

static void release_tensors(weir_tensor **in, weir_tensor **out) {
    for (int i = 0; i < 6; i++) weir_tensor_release(in[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(out[i]);
}

/* Runs with tensors that are on the device, other ones every second time. */
static weir_status run_resident(weir_program *program, weir_engine *engine, weir_stream *stream, weir_tensor *const *in, weir_tensor *const *out) {
    weir_tensor *there[8] = {NULL};
    weir_status status = WEIR_OK;
    weir_tensor_desc desc;
    for (int i = 0; i < 8 && status == WEIR_OK; i++) {
        CHECK_OK(weir_tensor_get_desc(i < 6 ? in[i] : out[i - 6], &desc));
        status = weir_tensor_create(engine, &desc, NULL, &there[i]);
        if (status == WEIR_OK && i < 6) status = weir_enqueue_copy(stream, in[i], there[i]);
    }
    if (status == WEIR_OK) status = weir_program_run(program, stream, there, 6, there + 6, 2, NULL);
    for (int i = 0; i < 2 && status == WEIR_OK; i++) status = weir_enqueue_copy(stream, there[6 + i], out[i]);
    weir_status ended = weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE);
    for (int i = 0; i < 8; i++) weir_tensor_release(there[i]);
    return status == WEIR_OK || status == WEIR_FAILED_PRECONDITION ? ended : status; /* what it failed of */
}

/* Later runs of the same values allocate nothing. A device's thread may hold a run's memory when the next one begins,
 * which then takes more: so one of some runs has to. */
static weir_status check_allocations(weir_program *program, weir_tensor *const *in, weir_tensor *const *out) {
    uint64_t allocations = 1;
    for (int run = 0; run < 10 && allocations > 0; run++) {
        const uint64_t before = runtime_info().allocations;
        const weir_status status = weir_program_run(program, NULL, in, 6, out, 2, NULL);
        if (status != WEIR_OK) return status;
        allocations = runtime_info().allocations - before;
    }
    CHECK_EQ(allocations, 0);
    return WEIR_OK;
}

/* One program, some runs; each gives what the host gives. */
static weir_status run_program(const board *on, uint64_t seed, weir_segments segments, uint64_t flags, bool resident, int runs,
                               char *report, size_t capacity) {
    weir_engine *cpu = cpu_engine(), *engine = NULL;
    weir_program *program = NULL, *model = NULL;
    weir_stream *stream = NULL;
    weir_tensor *in[6], *out[2], *expected[2];
    make_tensors(cpu, in, out);
    for (int i = 0; i < 2; i++) expected[i] = make_tensor(cpu, vector_desc(LEN));
    CHECK_OK(compile_drawn(seed, cpu, cpu, WEIR_SEGMENTS_NEVER, 0, false, &model));
    weir_status status = engine_of(on, &engine);
    if (status == WEIR_OK) status = compile_drawn(seed, engine, cpu, segments, flags, resident, &program);
    if (status == WEIR_OK && resident) status = weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream);
    for (int run = 0; run < runs && status == WEIR_OK; run++) {
        set_inputs(in, seed + (uint64_t)run);
        CHECK_OK(weir_program_run(model, NULL, in, 6, expected, 2, NULL));
        for (int i = 0; i < 2; i++) memset(floats(out[i]), 255, LEN * sizeof(float));
        status = resident ? run_resident(program, engine, stream, in, out) : weir_program_run(program, NULL, in, 6, out, 2, NULL);
        for (int i = 0; i < 2 && status == WEIR_OK; i++) {
            if (memcmp(floats(out[i]), floats(expected[i]), LEN * sizeof(float)) == 0) continue;
            fprintf(stderr, "seed %llu, segments %u, resident %d, run %d, output %d\n", (unsigned long long)seed, segments, resident, run, i);
            check_failed(__FILE__, __LINE__, "the same values as on the host", on->name);
        }
    }
    if (status == WEIR_OK && !resident && runs > 1) status = check_allocations(program, in, out);
    snprintf(report, capacity, "%s", status == WEIR_OK ? "" : weir_last_error_message());
    size_t length = 0;
    if (status == WEIR_OK) CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, capacity, &length));
    weir_stream_release(stream);
    weir_program_release(program);
    weir_program_release(model);
    release_tensors(in, out);
    for (int i = 0; i < 2; i++) weir_tensor_release(expected[i]);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    return status;
}

static char report[65536];

static void test_graphs(const char *name, uint64_t capabilities, uint32_t max_streams, bool refuses, int rounds) {
    board on = plug_in(name, capabilities);
    bool has_control = false, is_told = false;
    test_device_max_streams(on.device, max_streams);
    test_device_refuse_control(on.device, refuses);
    for (int seed = 1; seed <= rounds; seed++) {
        for (int way = 0; way < 4; way++) {
            /* In some the host decides. */
            const uint64_t flags = seed % 3 == 0 ? WEIR_COMPILE_NO_DEVICE_CONTROL : 0;
            weir_status status = run_program(&on, (uint64_t)seed, way % 2 == 0 ? WEIR_SEGMENTS_ALWAYS : WEIR_SEGMENTS_TIMED,
                                             flags, way >= 2, 4, report, sizeof report);
            if (status != WEIR_OK) {
                fprintf(stderr, "%s: seed %d, way %d\n", name, seed, way);
                check_failed(__FILE__, __LINE__, "run_program", report);
            }
            has_control = has_control || strstr(report, "by the device") != NULL;
            is_told = is_told || strstr(report, "too hard to decide") != NULL;
        }
    }
    test_device_counts counts = test_device_count(on.device);
    CHECK_EQ(counts.regions > 0, (capabilities & WEIR_DEVICE_REGIONS) != 0);
    bool records = (capabilities & WEIR_DEVICE_RECORDINGS) != 0;
    /* Where branches and loops are refused there may be nothing left to record. */
    CHECK(refuses || (records == (counts.recordings > 0) && records == (counts.replays > 0)));
    CHECK(((capabilities & WEIR_DEVICE_IDLE_QUERY) != 0) || counts.queries == 0);
    CHECK_EQ(is_told, refuses && (capabilities & WEIR_DEVICE_CONTROL_FLOW) != 0);
    (void)has_control;
    pull_out(&on);
}

/* A device refuses to record a loop in a branch that the first runs have not taken: the host decides the loop then. */
static void test_late_refusal(void) {
    enum { FIRST = 3, TURNS = 4, EACH = 2 };
    board on = plug_in("board-refusing-late", basic | extra);
    test_device_refuse_control(on.device, true);
    weir_engine *cpu = cpu_engine(), *engine = NULL;
    kernels there = {NULL, NULL, NULL, NULL}, here = {NULL, NULL, NULL, NULL};
    CHECK_OK(engine_of(&on, &engine));
    CHECK_OK(make_kernels(engine, &there));
    CHECK_OK(make_kernels(cpu, &here));
    drawing d = {&there, 1, 0};
    const weir_tensor_desc choice = make_desc(WEIR_S32, 1, 1, 0, 0);
    weir_graph *graph = make_graph("late"), *branches[2] = {make_graph("loop"), make_graph("none")};
    weir_value sum;
    for (int i = 0; i < 2; i++) {
        ports inside = add_ports(branches[i]);
        /* The host has a part in it, so the branch is its own. */
        sum = call(&d, branches[i], "here", here.relu, inside.vectors[0], NULL);
        for (int j = 0; j < EACH; j++) sum = call(&d, branches[i], "there", there.add, sum, &inside.vectors[1]);
        if (i == 0) sum = add_loop(&d, branches[i], &inside, sum, inside.vectors[1], 0);
        for (int j = 0; j < EACH; j++) sum = call(&d, branches[i], "there", there.add, sum, &inside.vectors[1]);
        CHECK_OK(weir_graph_add_output(branches[i], "y", sum));
    }
    ports p = add_ports(graph);
    weir_value given[6] = {p.vectors[0], p.vectors[1], p.from, p.limit, p.step, p.index}, chosen;
    CHECK_OK(weir_graph_add_input(graph, "chosen", &choice, &chosen));
    CHECK_OK(weir_graph_add_cond(graph, "cond", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = chosen, .then_graph = branches[0], .else_graph = branches[1], .inputs = given, .num_inputs = 6},
        &sum, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", sum));
    weir_engine *engines[2] = {cpu, engine};
    const weir_compile_options options = {.struct_size = sizeof options, .segments = WEIR_SEGMENTS_ALWAYS};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_compile(graph, engines, 2, &options, &program));
    weir_tensor *in[7], *out[2];
    make_tensors(cpu, in, out);
    in[6] = make_tensor(cpu, choice);
    fill(in[0], 1);
    fill(in[1], 1);
    floats(in[2])[0] = 0;
    floats(in[3])[0] = TURNS;
    floats(in[4])[0] = 1;
    for (int run = 0; run < 2 * FIRST; run++) {
        bool is_loop = run >= FIRST;
        void *data = NULL;
        CHECK_OK(weir_tensor_get_data(in[6], &data));
        *(int32_t *)data = is_loop;
        CHECK_OK(weir_program_run(program, NULL, in, 7, out, 1, NULL));
        for (int i = 0; i < LEN; i++) {
            /* Whole numbers, so the order of the sums does not matter. */
            float from = floats(in[0])[i] > 0 ? floats(in[0])[i] : 0;
            CHECK_EQ(floats(out[0])[i], from + (float)(2 * EACH + (is_loop ? TURNS : 0)) * floats(in[1])[i]);
        }
    }
    CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, sizeof report, NULL));
    CHECK_TEXT(report, "too hard to decide");
    weir_program_release(program);
    release_tensors(in, out);
    weir_tensor_release(in[6]);
    weir_graph_destroy(graph);
    for (int i = 0; i < 2; i++) weir_graph_destroy(branches[i]);
    release_kernels(&there);
    release_kernels(&here);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    pull_out(&on);
}

/* ---- Calls one by one ---- */

/* Calls that come again, of tensors that grow, on two streams at once: each has its own scratch memory. */
static void test_calls(const char *name, uint64_t capabilities) {
    enum { SIZES = 6, TIMES = 8 };
    board on = plug_in(name, capabilities);
    weir_engine *cpu = cpu_engine(), *engine = NULL;
    weir_stream *streams[2] = {NULL, NULL};
    weir_kernel *add = NULL;
    int64_t length = 8;
    CHECK_OK(engine_of(&on, &engine));
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), NULL, &add));
    for (int i = 0; i < 2; i++) CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &streams[i]));
    test_device_slow(on.device, 100000);
    for (int size = 0; size < SIZES; size++, length *= 3) {
        weir_tensor *host[2][3], *there[2][3];
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 3; j++) {
                host[i][j] = make_tensor(cpu, vector_desc(length));
                there[i][j] = make_tensor(engine, vector_desc(length));
                fill(host[i][j], size + 3 * i + j);
                CHECK_OK(weir_enqueue_copy(streams[i], host[i][j], there[i][j]));
            }
        }
        for (int time = 0; time < TIMES; time++) {
            for (int i = 0; i < 2; i++) CHECK_OK(weir_enqueue(streams[i], add, there[i], 2, &there[i][2], 1));
        }
        for (int i = 0; i < 2; i++) CHECK_OK(weir_enqueue_copy(streams[i], there[i][2], host[i][2]));
        for (int i = 0; i < 2; i++) {
            CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
            for (int64_t j = 0; j < length; j++) CHECK(floats(host[i][2])[j] == floats(host[i][0])[j] + floats(host[i][1])[j]);
            for (int j = 0; j < 3; j++) {
                weir_tensor_release(host[i][j]);
                weir_tensor_release(there[i][j]);
            }
        }
    }
    CHECK_EQ(test_device_count(on.device).prepared > 0, (capabilities & WEIR_DEVICE_PREPARED_LAUNCHES) != 0);
    CHECK_EQ(test_device_count(on.device).queries > 0, (capabilities & WEIR_DEVICE_IDLE_QUERY) != 0);
    weir_kernel_release(add);
    for (int i = 0; i < 2; i++) weir_stream_release(streams[i]);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    pull_out(&on);
}

/* A program of eight chains side by side has as many streams as the device is good for, and as the engine wants. */
static void test_streams(uint32_t limit, uint32_t wanted, const char *expected) {
    board on = plug_in("wide-board", basic | extra);
    weir_engine *cpu = cpu_engine(), *engine = NULL, *engines[2];
    weir_engine_attr *attr = NULL;
    weir_kernel *relu = NULL;
    weir_graph *graph = make_graph("wide");
    weir_program *program = NULL;
    weir_value input;
    const weir_tensor_desc all = vector_desc(LEN);
    size_t length = 0;
    test_device_max_streams(on.device, limit);
    CHECK_OK(weir_engine_attr_create(on.kind, &attr));
    CHECK_OK(weir_engine_attr_set_max_streams(attr, wanted));
    CHECK_OK(weir_engine_create(on.kind, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "x", &all, &input));
    for (int i = 0; i < 8; i++) {
        char name[16];
        weir_value value = input;
        for (int j = 0; j < 6; j++) {
            snprintf(name, sizeof name, "relu %d.%d", i, j);
            CHECK_OK(weir_graph_add_kernel(graph, name, relu, &value, 1, &value, 1, NULL));
        }
        snprintf(name, sizeof name, "y%d", i);
        CHECK_OK(weir_graph_add_output(graph, name, value));
    }
    engines[0] = cpu;
    engines[1] = engine;
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, &length));
    CHECK_TEXT(report, expected);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(relu);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    pull_out(&on);
}

/* ---- What a plug-in says and does not have, and what fails ---- */

static void refuse(const char *name, uint64_t capabilities, const weir_device_vtable *vtable, const char *text) {
    board b = {.name = name, .device = test_device_create(capabilities)};
    weir_engine *engine = NULL;
    CHECK(b.device != NULL);
    CHECK_OK(weir_device_register(name, 0, vtable, b.device));
    CHECK_OK(weir_engine_kind_from_name(name, &b.kind));
    CHECK_CODE(weir_engine_create(b.kind, 0, NULL, &engine), WEIR_UNKNOWN, text);
    CHECK_TEXT(weir_last_error_message(), "device_info");
    pull_out(&b);
}

static void test_refusals(void) {
    const weir_device_vtable good = test_device_vtable();
    weir_device_vtable v;
#define WITHOUT(capability, member)                                                                                    \
    v = good;                                                                                                          \
    v.member = NULL;                                                                                                   \
    refuse("board-lacking", basic | extra | WEIR_DEVICE_REGIONS, &v, "says " #capability ", and vtable->" #member " is NULL");
    WITHOUT(WEIR_DEVICE_IDLE_QUERY, stream_query)
    WITHOUT(WEIR_DEVICE_RECORDINGS, record)
    WITHOUT(WEIR_DEVICE_RECORDINGS, executable_update)
    WITHOUT(WEIR_DEVICE_RECORDINGS, executable_destroy)
    WITHOUT(WEIR_DEVICE_RECORDINGS, replay)
    WITHOUT(WEIR_DEVICE_PREPARED_LAUNCHES, prepare)
    WITHOUT(WEIR_DEVICE_PREPARED_LAUNCHES, launch_prepared)
    WITHOUT(WEIR_DEVICE_PREPARED_LAUNCHES, prepared_destroy)
    WITHOUT(WEIR_DEVICE_SCRATCH, kernel_scratch)
    WITHOUT(WEIR_DEVICE_REGIONS, region_compile)
#undef WITHOUT
    /* A vtable of before any of that was there. */
    v = good;
    v.struct_size = offsetof(weir_device_vtable, stream_query);
    refuse("board-lacking", basic | extra, &v, "says WEIR_DEVICE_IDLE_QUERY, and vtable->stream_query is NULL");
    refuse("board-lacking", basic | WEIR_DEVICE_CONTROL_FLOW, &good, "says WEIR_DEVICE_CONTROL_FLOW, and not WEIR_DEVICE_RECORDINGS");
    refuse("board-lacking", UINT64_C(1) << 40, &good, "unknown capabilities 0x10000000000");
}

/* The k-th call of each function fails, until there are no more calls: the run fails with its status, or goes on another
 * way; nothing is left behind, and a new device works. */
typedef struct swept {
    const char *function;
    bool goes_on;
} swept;

static void test_sweep(const char *name, uint64_t capabilities, const swept *functions, size_t num_functions, int least) {
    static const int32_t codes[] = {WEIR_UNIMPLEMENTED, WEIR_RESOURCE_EXHAUSTED, WEIR_DEVICE_LOST};
    board on = plug_in(name, capabilities);
    int failures = 0, others = 0;
    for (size_t f = 0; f < num_functions; f++) {
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
            int step = 1;
            for (int k = 1;; k += step) {
                if (k > (is_slow() ? 8 : 20)) step = is_slow() ? 40 : 7;
                weir_runtime_info before = runtime_info();
                uint64_t seed = 3 + (uint64_t)k % 5;
                test_device_plan(on.device, functions[f].function, k, codes[c]);
                weir_status status = run_program(&on, seed, WEIR_SEGMENTS_ALWAYS, 0, k % 2 == 0, 3, report, sizeof report);
                bool hit = test_device_hit(on.device);
                test_device_plan(on.device, "", 0, 0);
                check_released(&before);
                EVENTUALLY(alive(&on) == 0);
                if (!hit) {
                    if (status != WEIR_OK) check_failed(__FILE__, __LINE__, functions[f].function, report);
                    break;
                }
                if (status == WEIR_OK) {
                    others++;
                    continue;
                }
                failures++;
                bool may = !functions[f].goes_on || codes[c] == WEIR_DEVICE_LOST;
                if (!may || (status != codes[c] && status != WEIR_ABORTED)) {
                    fprintf(stderr, "%s, call %d, code %d, status %d\n", functions[f].function, k, codes[c], status);
                    check_failed(__FILE__, __LINE__, functions[f].function, report);
                }
            }
        }
    }
    CHECK(failures >= least && others >= 2 * least / 5);
    pull_out(&on);
}

int main(void) {
    static const struct { const char *name; uint64_t without; } boards[] = {
        {"board-all", 0},
        {"board-without-idle", WEIR_DEVICE_IDLE_QUERY},
        {"board-without-control", WEIR_DEVICE_CONTROL_FLOW},
        {"board-without-recordings", WEIR_DEVICE_RECORDINGS | WEIR_DEVICE_CONTROL_FLOW},
        {"board-without-prepared", WEIR_DEVICE_PREPARED_LAUNCHES},
        {"board-without-scratch", WEIR_DEVICE_SCRATCH},
        {"board-without-callbacks", WEIR_DEVICE_CALLBACK},
        {"board-one-call-at-a-time", WEIR_DEVICE_CONCURRENT},
        {"board-without-pinned", WEIR_DEVICE_PINNED_MEMORY},
        {"board-without-anything", extra | WEIR_DEVICE_CALLBACK | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_PINNED_MEMORY},
    };
    weir_runtime_info before = runtime_info();
    const size_t step = is_slow() ? 3 : 1; /* the first, the last, and some between */
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i += step) {
        test_graphs(boards[i].name, (basic | extra) & ~boards[i].without, 0, false, scale(30));
    }
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i += step) test_calls(boards[i].name, (basic | extra) & ~boards[i].without);
    test_streams(0, 0, "\"streams\":4");
    test_streams(3, 0, "\"streams\":3");
    test_streams(16, 0, "\"streams\":4");
    test_streams(3, 8, "\"streams\":3");
    test_streams(3, 2, "\"streams\":2");
    test_refusals();
    static const swept functions[] = {
        {"stream_query", true}, {"record", true}, {"executable_update", true}, {"replay", false}, {"prepare", true},
        {"launch_prepared", false}, {"kernel_scratch", false}, {"allocate", false}, {"work", false}};
    test_sweep("board-swept", basic | extra, functions, sizeof functions / sizeof *functions, 50);
    /* What refuses a region with UNIMPLEMENTED has its nodes done one by one. */
    static const swept of_regions[] = {{"region_claim", false}, {"region_compile", false}, {"work", false}};
    test_sweep("board-swept-regions", basic | extra | WEIR_DEVICE_REGIONS, of_regions, 3, 10);
    test_graphs("board-regions", basic | extra | WEIR_DEVICE_REGIONS, 0, false, scale(30));
    test_graphs("board-regions-alone", basic | WEIR_DEVICE_REGIONS, 2, false, scale(30));
    test_graphs("board-regions-in-turn", (basic | extra | WEIR_DEVICE_REGIONS) & ~(uint64_t)WEIR_DEVICE_CONCURRENT, 1, false, scale(30));
    test_graphs("board-narrow", basic | extra, 1, false, scale(30));
    test_graphs("board-refusing", basic | extra, 2, true, scale(30));
    test_late_refusal();
    check_released(&before);
    return 0;
}
