/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plug-in's device that makes one kernel of several nodes: of a small network as a whole, of a part of it, or of
 * nothing, with weights in the device's memory, a kernel that only the device knows, and what the program says of it.
 */

#include <weir/ops.h>
#include <weir/resource.h>
#include <weir/inspect.h>
#include <weir/device.h>

#include "make.h"
#include "test_device_board.h"

enum { IN = 12, OUT = 8 };

static const uint64_t capabilities = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_RECORDINGS |
                                     WEIR_DEVICE_SCRATCH | WEIR_DEVICE_HOST_KERNELS | WEIR_DEVICE_REGIONS;

/* Attributes of the test device's kernel "scale". */
typedef struct scale_attributes {
    float factor;
} scale_attributes;

typedef struct bed {
    board board;
    weir_engine *cpu, *engine;
    weir_stream *stream;
    weir_kernel *matmul, *scale, *add, *relu;
} bed;

static bed begin(const char *name) {
    bed b = {.board = plug_in(name, capabilities), .cpu = make_engine(NULL)};
    const weir_tensor_desc row = matrix_desc(1, OUT);
    const scale_attributes attributes = {2.5f};
    const weir_named_kernel_desc scale = {
        .struct_size = sizeof scale, .operation = "scale", .attributes = &attributes, .attributes_bytes = sizeof attributes,
        .num_inputs = 1, .num_outputs = 1, .outputs = &row};
    CHECK_OK(weir_engine_create(b.board.kind, 0, NULL, &b.engine));
    CHECK_OK(weir_stream_create(b.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &b.stream));
    CHECK_OK(weir_kernel_create_matmul(b.engine, NULL, NULL, &b.matmul));
    CHECK_OK(weir_kernel_create_named(b.engine, &scale, NULL, &b.scale));
    CHECK_OK(weir_kernel_create_binary(b.engine, BINARY(ADD), NULL, &b.add));
    CHECK_OK(weir_kernel_create_eltwise(b.engine, ELTWISE(RELU), NULL, &b.relu));
    return b;
}

static void end(bed *b) {
    weir_kernel *kernels[] = {b->matmul, b->scale, b->add, b->relu};
    for (int i = 0; i < 4; i++) weir_kernel_release(kernels[i]);
    weir_stream_release(b->stream);
    weir_engine_release(b->engine);
    weir_engine_release(b->cpu);
    pull_out(&b->board);
}

/* A tensor with drawn values in the device's memory. */
static weir_tensor *weights(const bed *b, weir_tensor_desc desc, int seed) {
    weir_tensor *here = make_tensor(b->cpu, desc), *there = make_tensor(b->engine, desc);
    fill(here, seed);
    CHECK_OK(weir_enqueue_copy(b->stream, here, there));
    CHECK_OK(weir_stream_synchronize(b->stream, WEIR_TIMEOUT_INFINITE));
    weir_tensor_release(here);
    return there;
}

static weir_value node(weir_graph *graph, const char *name, weir_kernel *kernel, weir_value a, const weir_value *b) {
    const weir_value in[2] = {a, b == NULL ? a : *b};
    weir_value out;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, in, b == NULL ? 1 : 2, &out, 1, NULL));
    return out;
}

/* y = relu(scale(x w + bias)) + bias, and relu(...) besides; w and bias are in the device's memory. */
static weir_status compile_net(const bed *b, int32_t regions, weir_program **out_program) {
    const weir_tensor_desc input = matrix_desc(1, IN);
    weir_engine *engines[2] = {b->cpu, b->engine};
    weir_tensor *w = weights(b, matrix_desc(IN, OUT), 3), *bias = weights(b, matrix_desc(1, OUT), 5);
    weir_graph *graph = make_graph("net");
    weir_value x, of_w, of_bias;
    CHECK_OK(weir_graph_add_input(graph, "x", &input, &x));
    CHECK_OK(weir_graph_add_constant(graph, "w", w, &of_w));
    CHECK_OK(weir_graph_add_constant(graph, "bias", bias, &of_bias));
    weir_value product = node(graph, "product", b->matmul, x, &of_w);
    weir_value sum = node(graph, "sum", b->add, product, &of_bias);
    weir_value scaled = node(graph, "scaled", b->scale, sum, NULL);
    weir_value rectified = node(graph, "rectified", b->relu, scaled, NULL);
    weir_value last = node(graph, "last", b->add, rectified, &of_bias);
    CHECK_OK(weir_graph_add_output(graph, "y", last));
    CHECK_OK(weir_graph_add_output(graph, "rectified", rectified));
    const weir_compile_options options = {
        .struct_size = sizeof options, .flags = regions ? 0 : WEIR_COMPILE_NO_REGIONS};
    weir_status status = weir_graph_compile(graph, engines, 2, &options, out_program);
    weir_graph_destroy(graph);
    /* The program keeps them. */
    weir_tensor_release(w);
    weir_tensor_release(bias);
    return status;
}

static void run(const bed *b, weir_program *program, int seed, float *values) {
    weir_tensor *x = make_tensor(b->cpu, matrix_desc(1, IN));
    weir_tensor *out[2] = {make_tensor(b->cpu, matrix_desc(1, OUT)), make_tensor(b->cpu, matrix_desc(1, OUT))};
    fill(x, seed);
    CHECK_OK(weir_program_run(program, NULL, &x, 1, out, 2, NULL));
    for (int i = 0; i < 2; i++) memcpy(values + i * OUT, floats(out[i]), OUT * sizeof *values);
    weir_tensor_release(x);
    for (int i = 0; i < 2; i++) weir_tensor_release(out[i]);
}

/* Whether a program gives what it gives without regions, in each of its first runs. */
static void compare(const bed *b, weir_program *program) {
    weir_program *plain = NULL;
    CHECK_OK(compile_net(b, 0, &plain));
    for (int seed = 0; seed < 5; seed++) {
        float expected[2 * OUT], got[2 * OUT];
        run(b, plain, seed, expected);
        run(b, program, seed, got);
        CHECK(memcmp(expected, got, sizeof got) == 0);
    }
    weir_program_release(plain);
}

static void check_report(weir_program *program, const char *part) {
    char report[16384];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    CHECK_TEXT(report, part);
}

static void test_whole_and_part(void) {
    bed b = begin("board-compiling");
    weir_program *program = NULL;
    CHECK_OK(compile_net(&b, 1, &program));
    test_device_counts counts = test_device_count(b.board.device);
    CHECK_EQ(counts.regions, 1);
    CHECK_EQ(counts.region_nodes, 5);
    check_report(program, "\"regions_offered\":1,\"regions\":1,\"region_nodes\":5,\"regions_why\":\"yes, where a device takes them\",\"declined\":null");
    compare(&b, program);
    weir_program_release(program);

    /* It leaves one kind of nodes alone: what is before and behind is a region each. */
    test_device_leave_alone(b.board.device, "scale");
    CHECK_OK(compile_net(&b, 1, &program));
    counts = test_device_count(b.board.device);
    CHECK_EQ(counts.regions, 3);
    CHECK_EQ(counts.region_nodes, 9);
    check_report(program, "\"regions_offered\":1,\"regions\":2,\"region_nodes\":4,");
    compare(&b, program);
    weir_program_release(program);
    end(&b);
}

static void test_declined(void) {
    bed b = begin("board-declining");
    weir_program *program = NULL;
    static const char *const functions[] = {"region_claim", "region_compile"};
    for (int i = 0; i < 2; i++) {
        test_device_plan(b.board.device, functions[i], 1, WEIR_UNIMPLEMENTED);
        CHECK_OK(compile_net(&b, 1, &program));
        CHECK_EQ(test_device_count(b.board.device).regions, 0);
        char declined[128];
        snprintf(declined, sizeof declined, "\"declined\":\"engine board-declining:0: %s: as planned\"", functions[i]);
        check_report(program, declined);
        check_report(program, "\"regions_why\":\"no, the devices decline them\"");
        compare(&b, program);
        weir_program_release(program);

        /* Any other failure is compile's. */
        program = NULL;
        test_device_plan(b.board.device, functions[i], 1, WEIR_DATA_LOSS);
        const char *said = "program 'net': engine board-declining:0: region of 5 nodes from 'product' to 'last': ";
        CHECK_CODE(compile_net(&b, 1, &program), WEIR_DATA_LOSS, said);
        CHECK_TEXT(weir_last_error_message(), functions[i]);
        CHECK(program == NULL);
    }
    end(&b);
}

/* A launch that fails names the region, and the next run is right. */
static void test_failure(void) {
    bed b = begin("board-failing");
    weir_program *program = NULL;
    float values[2 * OUT];
    CHECK_OK(compile_net(&b, 1, &program));
    for (int round = 0; round < 3; round++) {
        weir_tensor *x = make_tensor(b.cpu, matrix_desc(1, IN));
        weir_tensor *out[2] = {make_tensor(b.cpu, matrix_desc(1, OUT)), make_tensor(b.cpu, matrix_desc(1, OUT))};
        fill(x, round);
        test_device_plan(b.board.device, "kernel_scratch", 1, WEIR_OUT_OF_RANGE);
        CHECK_CODE(weir_program_run(program, NULL, &x, 1, out, 2, NULL), WEIR_OUT_OF_RANGE, "region of 5 nodes from 'product' to 'last'");
        run(&b, program, round, values);
        weir_tensor_release(x);
        for (int i = 0; i < 2; i++) weir_tensor_release(out[i]);
    }
    compare(&b, program);
    weir_program_release(program);
    end(&b);
}

/* Kernels of tables are the host's, and refused for any device as they are made. */
static void test_tables(void) {
    bed b = begin("board-without-tables");
    const weir_table_desc desc = {.struct_size = sizeof desc, .key = WEIR_TABLE_KEY_INT64, .row = vector_desc(2)};
    weir_resource *table = NULL;
    weir_kernel *none = NULL;
    CHECK_OK(weir_table_create(b.engine, NULL, "rows", &desc, &table));
    const char refused[] = "engine board-without-tables:0 has no kernels of tables, which are in the host's memory";
    CHECK_CODE(weir_kernel_create_table(b.engine, table, WEIR_TABLE_FIND, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK_CODE(weir_kernel_create_table(b.engine, table, WEIR_TABLE_INSERT, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK_CODE(weir_kernel_create_table(b.engine, table, WEIR_TABLE_SIZE, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK(none == NULL);
    weir_resource_release(table);
    end(&b);
}

int main(void) {
    const weir_runtime_info before = runtime_info();
    test_whole_and_part();
    test_declined();
    test_failure();
    test_tables();
    check_released(&before);
    return 0;
}
