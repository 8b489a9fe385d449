/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The emulated device as a user's tests meet it: engine, streams, events, copies, kernels, the wait for everything,
 * faults, orders by a seed, what the checker finds, and kernels with many arguments.
 */

#include <time.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"

enum { LEN = 256, BYTES = LEN * sizeof(float) };

static weir_engine *make_emulated(uint32_t index, weir_emulation emulation) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    emulation.struct_size = sizeof emulation;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, index, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_stream *make_queue(weir_engine *engine, const char *name) {
    weir_stream_attr *attr = NULL;
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_stream_attr_set_name(attr, name));
    CHECK_OK(weir_stream_create(engine, 0, attr, &stream));
    weir_stream_attr_destroy(attr);
    return stream;
}

static weir_kernel *make_named(weir_engine *engine, const char *name) {
    weir_kernel *kernel = NULL;
    const weir_kernel_options options = {.struct_size = sizeof options, .name = name};
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), &options, &kernel));
    return kernel;
}

/* A device that is lost meanwhile fails its streams, which take no more then. */
static int may_be_lost;

static void check_taken(weir_status status) {
    CHECK(status == WEIR_OK || (may_be_lost && (status == WEIR_FAILED_PRECONDITION || status == WEIR_DEVICE_LOST)));
}

static void enqueue_add(weir_stream *stream, weir_kernel *add, weir_tensor *a, weir_tensor *b, weir_tensor *c) {
    weir_tensor *inputs[] = {a, b}, *outputs[] = {c};
    check_taken(weir_enqueue(stream, add, inputs, 2, outputs, 1));
}

/* What a test of a user's needs: two streams, host memory on either side, four tensors of the device's. */
typedef struct rig {
    weir_engine *cpu, *engine;
    weir_stream *s, *t;
    weir_event *event;
    weir_kernel *add;
    weir_tensor *a, *b, *c, *d, *from, *to;
    float source[LEN], target[LEN];
} rig;

static rig *make_rig(weir_emulation emulation) {
    rig *r = calloc(1, sizeof *r);
    const weir_tensor_desc desc = vector_desc(LEN);
    CHECK(r != NULL);
    r->cpu = make_engine(NULL);
    r->engine = make_emulated(1, emulation);
    r->s = make_queue(r->engine, "s");
    r->t = make_queue(r->engine, "t");
    r->event = make_event(r->engine, WEIR_EVENT_TIMING);
    r->add = make_named(r->engine, "twice");
    r->a = make_tensor(r->engine, desc);
    r->b = make_tensor(r->engine, desc);
    r->c = make_tensor(r->engine, desc);
    r->d = make_tensor(r->engine, desc);
    for (int i = 0; i < LEN; i++) r->source[i] = (float)i;
    CHECK_OK(weir_tensor_create(r->cpu, &desc, OVER(r->source), &r->from));
    CHECK_OK(weir_tensor_create(r->cpu, &desc, OVER(r->target), &r->to));
    return r;
}

static void free_rig(rig *r) {
    weir_tensor_release(r->to);
    weir_tensor_release(r->from);
    weir_tensor_release(r->d);
    weir_tensor_release(r->c);
    weir_tensor_release(r->b);
    weir_tensor_release(r->a);
    weir_kernel_release(r->add);
    weir_event_release(r->event);
    weir_stream_release(r->t);
    weir_stream_release(r->s);
    weir_engine_release(r->engine);
    weir_engine_release(r->cpu);
    free(r);
}

static weir_emulated_counters counters(const weir_engine *engine) {
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    CHECK_OK(weir_emulated_get_counters(engine, &counters));
    return counters;
}

/* Up on one stream, computed and down on the other. */
static void work(rig *r, int with_wait) {
    check_taken(weir_enqueue_copy(r->s, r->from, r->a));
    check_taken(weir_enqueue_fill(r->s, r->b, 0));
    check_taken(weir_event_record(r->event, r->s));
    if (with_wait) check_taken(weir_stream_wait_event(r->t, r->event));
    enqueue_add(r->t, r->add, r->a, r->a, r->c);
    enqueue_add(r->t, r->add, r->c, r->b, r->d);
    check_taken(weir_enqueue_copy(r->t, r->d, r->to));
}

static void check_result(const rig *r) {
    for (int i = 0; i < LEN; i++) CHECK(r->target[i] == 2 * (float)i);
}

static void test_work(uint64_t seed) {
    rig *r = make_rig((weir_emulation){.seed = seed, .flags = WEIR_EMULATION_CHECK});
    weir_emulation seen = {.struct_size = sizeof seen};
    const weir_engine_attr *attr = NULL;
    weir_engine_info info = {.struct_size = sizeof info};
    size_t count = 99;
    CHECK_OK(weir_engine_get_attr(r->engine, &attr));
    CHECK_OK(weir_engine_attr_get_emulation(attr, &seen));
    CHECK(seen.seed == seed && seen.flags == WEIR_EMULATION_CHECK && seen.memory_bytes == 1 << 30);
    CHECK_OK(weir_engine_get_info(r->engine, &info));
    CHECK_EQ(info.alignment, 256);
    for (int round = 0; round < 5; round++) {
        work(r, 1);
        if (round % 2 == 0) CHECK_OK(weir_stream_synchronize(r->t, WEIR_TIMEOUT_INFINITE));
        if (round % 2 == 1) CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        check_result(r);
        memset(r->target, 0, sizeof r->target);
    }
    weir_emulated_counters all = counters(r->engine);
    CHECK_EQ(all.operations, 25);
    CHECK_EQ(all.completed, 25);
    CHECK(all.launches == 10 && all.copies == 10 && all.fills == 5 && all.waits >= 5 && all.records >= 5);
    CHECK_EQ(all.allocations_in_use, 4);
    CHECK_EQ(all.races, 0);
    CHECK_OK(weir_emulated_get_races(r->engine, NULL, 0, &count));
    CHECK_EQ(count, 0);
    free_rig(r);
}

/* The same program has the same order for the same seed, and others for others. */
static void test_orders(void) {
    uint64_t first[64], second[64];
    size_t count = 0, others = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t *orders[] = {first, second};
        for (int i = 0; i < 2; i++) {
            rig *r = make_rig((weir_emulation){.seed = seed});
            for (int k = 0; k < 4; k++) {
                CHECK_OK(weir_enqueue_fill(r->s, r->a, k));
                CHECK_OK(weir_enqueue_fill(r->t, r->b, k));
            }
            CHECK_OK(weir_stream_synchronize(r->s, WEIR_TIMEOUT_INFINITE));
            CHECK_OK(weir_stream_synchronize(r->t, WEIR_TIMEOUT_INFINITE));
            CHECK_OK(weir_emulated_get_order(r->engine, orders[i], 64, &count));
            CHECK_EQ(count, 8);
            CHECK_OK(weir_emulated_get_order(r->engine, NULL, 0, &count));
            CHECK_EQ(count, 8);
            free_rig(r);
        }
        CHECK(memcmp(first, second, count * sizeof *first) == 0);
        others += first[0] != 1 || first[1] != 2;
    }
    CHECK(others > 5);
}

/* A wait is left out: both operations are named, whether or not it showed. */
static void test_missing_wait(void) {
    rig *r = make_rig((weir_emulation){.seed = 3, .flags = WEIR_EMULATION_CHECK});
    weir_emulated_race races[8] = {{.struct_size = sizeof *races}};
    size_t count = 0;
    work(r, 0);
    CHECK_OK(weir_stream_synchronize(r->s, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(r->t, WEIR_TIMEOUT_INFINITE));
    CHECK_CODE(weir_emulated_get_races(r->engine, races, 1, &count), WEIR_OUT_OF_RANGE, "capacity is 1, there are 2 reports");
    CHECK_EQ(count, 2);
    CHECK_OK(weir_emulated_get_races(r->engine, races, 8, &count));
    CHECK_EQ(count, 2);
    CHECK_EQ(races[0].kind, WEIR_RACE_READ_AFTER_WRITE);
    CHECK_EQ(races[0].count, 1);
    CHECK(races[0].first_number == 1 && races[0].second_number == 3 && races[0].offset == 0 && races[0].bytes == BYTES);
    CHECK(strcmp(races[0].first_stream, "s") == 0 && strcmp(races[0].second_stream, "t") == 0);
    CHECK(strcmp(races[0].second_name, "kernel 'twice'") == 0);
    CHECK_TEXT(races[0].text, "missing wait: kernel 'twice' (operation 3, stream 't') reads bytes 0 to 1024 of tensor f32[256] while ");
    CHECK_TEXT(races[0].text, "(operation 1, stream 's') may still write them");
    CHECK_EQ(races[1].first_number, 2);
    CHECK(strcmp(races[1].first_name, "fill") == 0);
    CHECK_OK(weir_emulated_clear_races(r->engine));
    work(r, 1);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_OK(weir_emulated_get_races(r->engine, NULL, 0, &count));
    CHECK_EQ(count, 0);
    check_result(r);
    free_rig(r);

    r = make_rig((weir_emulation){.flags = WEIR_EMULATION_CHECK | WEIR_EMULATION_STRICT});
    work(r, 0);
    CHECK_CODE(weir_stream_synchronize(r->t, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION, "missing wait: kernel 'twice' (operation 3");
    CHECK_OK(weir_stream_synchronize(r->s, WEIR_TIMEOUT_INFINITE));
    free_rig(r);
}

/* Each operation fails once: the status names it, nothing is left, and after the error is cleared the same works. */
static void test_fault_sweep(uint64_t seed, const weir_runtime_info *before) {
    for (uint64_t k = 1; k <= 5; k++) {
        char part[64];
        rig *r = make_rig((weir_emulation){.seed = seed, .fail_operation = k});
        work(r, 1);
        snprintf(part, sizeof part, "operation %d: ", (int)k);
        if (k <= 2) CHECK_CODE(weir_stream_synchronize(r->s, WEIR_TIMEOUT_INFINITE), WEIR_INTERNAL, part);
        CHECK_CODE(weir_stream_synchronize(r->t, WEIR_TIMEOUT_INFINITE), k <= 2 ? WEIR_ABORTED : WEIR_INTERNAL, part);
        CHECK_TEXT(weir_last_error_message(), "failed, as asked");
        CHECK_OK(weir_stream_clear_error(r->s));
        CHECK_OK(weir_stream_clear_error(r->t));
        work(r, 1);
        CHECK_OK(weir_stream_synchronize(r->t, WEIR_TIMEOUT_INFINITE));
        check_result(r);
        free_rig(r);
        check_released(before);
    }
    for (uint64_t k = 1; k <= 3; k++) {
        weir_engine *engine = make_emulated(2, (weir_emulation){.seed = seed, .fail_allocation = k});
        const weir_tensor_desc desc = vector_desc(LEN);
        weir_tensor *tensors[3] = {NULL};
        for (uint64_t i = 0; i < 3; i++) {
            if (i + 1 == k) {
                CHECK_CODE(weir_tensor_create(engine, &desc, NULL, &tensors[i]), WEIR_RESOURCE_EXHAUSTED, "tensor f32[256] needs 1024");
            } else {
                CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensors[i]));
            }
        }
        for (int i = 0; i < 3; i++) weir_tensor_release(tensors[i]);
        CHECK_EQ(counters(engine).allocations_in_use, 0);
        weir_engine_release(engine);
        check_released(before);
    }
}

/* All that was under way and all that comes is told so; then there is a new device. */
static void test_lost(uint64_t seed) {
    rig *r = make_rig((weir_emulation){.seed = seed, .lose_operation = 3}), *other;
    may_be_lost = 1;
    work(r, 1);
    may_be_lost = 0;
    CHECK_CODE(weir_stream_synchronize(r->t, WEIR_TIMEOUT_INFINITE), WEIR_DEVICE_LOST, "emulated:1 was lost, as asked, at operation 3");
    CHECK_CODE(weir_stream_synchronize(r->s, WEIR_TIMEOUT_INFINITE), WEIR_DEVICE_LOST, "emulated:1 was lost");
    other = make_rig((weir_emulation){.seed = seed});
    work(other, 1);
    CHECK_OK(weir_stream_synchronize(other->t, WEIR_TIMEOUT_INFINITE));
    check_result(other);
    free_rig(other);
    free_rig(r);
}

/* Modelled time passes, on streams side by side. */
static void test_time(void) {
    rig *r = make_rig((weir_emulation){.latency_ns = 5000000});
    weir_event *end = make_event(r->engine, WEIR_EVENT_TIMING);
    int64_t elapsed = 0;
    CHECK_OK(weir_event_record(r->event, r->s));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(weir_enqueue_fill(r->s, r->a, i));
        CHECK_OK(weir_enqueue_fill(r->t, r->b, i));
    }
    CHECK_OK(weir_event_record(end, r->s));
    CHECK_OK(weir_event_synchronize(end, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_event_elapsed_ns(r->event, end, &elapsed));
    CHECK(elapsed >= 20000000);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    weir_event_release(end);
    free_rig(r);
}

/* Kernels with many arguments, whose later runs allocate nothing: one of some does, as the device's thread may still
 * hold what a run needs when the next one begins. */
static void test_many_arguments(void) {
    enum { PARTS = 20 };
    weir_engine *cpu = make_engine(NULL), *engine = make_emulated(1, (weir_emulation){0});
    weir_kernel *relu = NULL, *concat = NULL;
    const weir_tensor_desc one = vector_desc(LEN), all = vector_desc(PARTS * LEN);
    const weir_concat_desc joined = {.struct_size = sizeof joined, .num_inputs = PARTS, .axis = 0};
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_kernel_create_concat(engine, &joined, NULL, &concat));
    weir_graph *graph = make_graph("many");
    weir_value parts[PARTS], end;
    for (int i = 0; i < PARTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "part %d", i);
        CHECK_OK(weir_graph_add_input(graph, name, &one, &parts[i]));
        snprintf(name, sizeof name, "relu %d", i);
        if (i % 2 == 0) CHECK_OK(weir_graph_add_kernel(graph, name, relu, &parts[i], 1, &parts[i], 1, NULL));
    }
    CHECK_OK(weir_graph_add_kernel(graph, "joined", concat, parts, PARTS, &end, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "end", end));
    weir_engine *engines[] = {cpu, engine};
    weir_tensor *in[PARTS], *out = make_tensor(cpu, all);
    for (int i = 0; i < PARTS; i++) fill(in[i] = make_tensor(cpu, one), i);
    for (int way = 0; way < 2; way++) {
        const weir_compile_options options = {.struct_size = sizeof options,
                                              .segments = way == 0 ? WEIR_SEGMENTS_NEVER : WEIR_SEGMENTS_ALWAYS};
        weir_program *program = NULL;
        CHECK_OK(weir_graph_compile(graph, engines, 2, &options, &program));
        uint64_t allocations = 1;
        for (int run = 0; run < 20 && allocations > 0; run++) {
            const uint64_t before = runtime_info().allocations;
            CHECK_OK(weir_program_run(program, NULL, in, PARTS, &out, 1, NULL));
            allocations = runtime_info().allocations - before;
            for (int i = 0; i < PARTS * LEN; i++) {
                const float x = floats(in[i / LEN])[i % LEN];
                CHECK_EQ(floats(out)[i], i / LEN % 2 == 0 && x < 0 ? 0 : x);
            }
        }
        CHECK_EQ(allocations, 0);
        weir_program_release(program);
    }
    for (int i = 0; i < PARTS; i++) weir_tensor_release(in[i]);
    weir_tensor_release(out);
    weir_graph_destroy(graph);
    weir_kernel_release(relu);
    weir_kernel_release(concat);
    weir_engine_release(engine);
    weir_engine_release(cpu);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    uint32_t count = 0;
    CHECK_OK(weir_engine_count(WEIR_ENGINE_EMULATED, &count));
    CHECK_EQ(count, 8);
    for (uint64_t seed = 0; seed < 4; seed++) {
        test_work(seed);
        test_fault_sweep(seed, &before);
        test_lost(seed);
    }
    test_orders();
    test_missing_wait();
    test_time();
    test_many_arguments();
    check_released(&before);
    return 0;
}
