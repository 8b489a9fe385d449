/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The memory of a run's values in graphs that people run: a residual network, digits, voice. Values share places
 * wherever edges keep their users apart, so a run needs little more than what is alive at one time, not the sum of all
 * values. The bits are those of a run in the calling thread, whatever the pool.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <weir/inspect.h>

#include "dataset.h"
#include "make.h"
#include "model.h"
#include "network.h"
#include "test_pools.h"

/* A number of the JSON report. */
static long fact(const weir_program *program, const char *key) {
    static char report[8192];
    char quoted[64];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(report, quoted);
    CHECK(at != NULL);
    return strtol(at + strlen(quoted), NULL, 10);
}

/* What a run needs, against each value in a place of its own. */
static void compare(const char *name, const weir_program *program, double at_most) {
    const double shared = (double)fact(program, "arena_bytes"), alone = (double)fact(program, "arena_bytes_unshared");
    printf("%-24s %12.0f of %12.0f bytes, %.3f\n", name, shared, alone, shared / alone);
    CHECK(shared > 0 && shared <= at_most * alone);
}

/* ResNet-50 in its shapes: convolutions are sums over channels, so that their bits depend on all of what they read. */
typedef struct network {
    weir_engine *engine;
    weir_graph *graph;
    int side, nodes;   /* of the image; made so far */
    long alive_at_most; /* bytes of values that any node finds alive, itself included */
} network;

typedef struct value {
    weir_value id;
    int side, channels;
} value;

static long bytes_of(value v) {
    return (long)sizeof(float) * v.side * v.side * v.channels;
}

static int32_t mix(void *user, weir_kernel_context *context) {
    (void)user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_inputs = 0, num_outputs = 0;
    weir_status status = weir_kernel_context_get_inputs(context, &in, &num_inputs);
    if (status == WEIR_OK) status = weir_kernel_context_get_outputs(context, &out, &num_outputs);
    if (status != WEIR_OK) return status;
    const size_t n = out[0].bytes / sizeof(float);
    for (size_t i = 0; i < n; i++) {
        float sum = 0.25f;
        for (size_t k = 0; k < num_inputs; k++) {
            const float *from = in[k].data;
            const size_t m = in[k].bytes / sizeof(float), at = m == n ? i : i * 7 % m;
            sum += from[at] * (m == n ? 0.75f : 0.5f) - (m == n ? 0 : from[(at + m / 2) % m]);
        }
        ((float *)out[0].data)[i] = sum > 0 ? sum : 0.125f * sum;
    }
    return WEIR_OK;
}

static value layer(network *net, const char *what, value a, const value *b, int stride, int channels, uint64_t flags) {
    const value out = {0, a.side / stride, channels};
    const weir_value from[2] = {a.id, b != NULL ? b->id : 0};
    const weir_tensor_desc inputs[2] = {make_desc(WEIR_F32, 3, a.channels, a.side, a.side),
                                        make_desc(WEIR_F32, 3, a.channels, a.side, a.side)},
                           output = make_desc(WEIR_F32, 3, channels, out.side, out.side);
    weir_host_kernel_desc desc = make_kernel_desc(what, mix, NULL);
    weir_kernel *kernel = NULL;
    value made = out;
    char name[32];
    desc.num_inputs = b != NULL ? 2 : 1;
    desc.inputs = inputs;
    desc.num_outputs = 1;
    desc.outputs = &output;
    desc.flags = flags;
    CHECK_OK(weir_kernel_create_host(net->engine, &desc, &kernel));
    (void)snprintf(name, sizeof name, "%s%d", what, net->nodes++);
    CHECK_OK(weir_graph_add_kernel(net->graph, name, kernel, from, desc.num_inputs, &made.id, 1, NULL));
    weir_kernel_release(kernel);
    return made;
}

static void alive(network *net, long bytes) {
    if (bytes > net->alive_at_most) net->alive_at_most = bytes;
}

/* 1x1, 3x3, 1x1, and around them the input, or a convolution of it. */
static value bottleneck(network *net, value x, int stride, int channels, int is_first) {
    const value a = layer(net, "reduce", x, NULL, 1, channels, 0), b = layer(net, "conv", a, NULL, stride, channels, 0),
                c = layer(net, "expand", b, NULL, 1, 4 * channels, 0),
                around = is_first ? layer(net, "project", x, NULL, stride, 4 * channels, 0) : x;
    const long beside = is_first ? bytes_of(around) + bytes_of(x) : bytes_of(x);
    alive(net, beside + bytes_of(a) + bytes_of(b));
    alive(net, beside + bytes_of(b) + bytes_of(c));
    return layer(net, "add", c, &around, 1, 4 * channels, WEIR_KERNEL_IN_PLACE);
}

static weir_program *resnet(weir_engine *engine, int side, long *out_alive) {
    static const int blocks[4] = {3, 4, 6, 3};
    network net = {engine, make_graph("residual"), side, 0, 0};
    const weir_tensor_desc image = make_desc(WEIR_F32, 3, 3, side, side);
    value x = {0, side, 3};
    CHECK_OK(weir_graph_add_input(net.graph, "image", &image, &x.id));
    x = layer(&net, "stem", x, NULL, 2, 64, 0);
    const value pooled = layer(&net, "pool", x, NULL, 2, 64, 0);
    alive(&net, bytes_of(x) + bytes_of(pooled));
    x = pooled;
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < blocks[stage]; i++) x = bottleneck(&net, x, stage > 0 && i == 0 ? 2 : 1, 64 << stage, i == 0);
    x = layer(&net, "mean", x, NULL, x.side, 2048, 0);
    x = layer(&net, "classes", x, NULL, 1, 1000, 0);
    CHECK_OK(weir_graph_add_output(net.graph, "classes", x.id));
    weir_program *program = compile(net.graph, engine);
    weir_graph_destroy(net.graph);
    *out_alive = net.alive_at_most;
    return program;
}

static void test_residual(void) {
    weir_engine *engine = make_engine(NULL);
    long most = 0;
    weir_program *full = resnet(engine, 224, &most);
    compare("residual, 224 x 224", full, 0.2);
    printf("%-24s %12ld bytes alive at most, %.3f of that\n", "", most, (double)fact(full, "arena_bytes") / (double)most);
    CHECK((double)fact(full, "arena_bytes") <= 1.4 * (double)most); /* which also holds for orders in which branches overlap */
    weir_program_release(full);

    /* Small, so that it can be run: alone, and on a pool in whatever order. */
    weir_threadpool *pool = NULL;
    weir_program *program = resnet(engine, 32, &most);
    weir_tensor *image = make_tensor(engine, make_desc(WEIR_F32, 3, 3, 32, 32)),
                *expected = make_tensor(engine, make_desc(WEIR_F32, 3, 1000, 1, 1)),
                *got = make_tensor(engine, make_desc(WEIR_F32, 3, 1000, 1, 1));
    fill(image, 3);
    CHECK_OK(weir_program_run(program, NULL, &image, 1, &expected, 1, NULL));
    CHECK_OK(weir_threadpool_create_builtin(NULL, &pool));
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, pool, NULL);
    for (int round = 0; round < 20; round++) {
        memset(floats(got), 0xff, 1000 * sizeof(float));
        CHECK_OK(weir_program_run(program, stream, &image, 1, &got, 1, NULL));
        CHECK(memcmp(floats(got), floats(expected), 1000 * sizeof(float)) == 0);
    }
    weir_stream_release(stream);
    weir_threadpool_release(pool);
    weir_tensor_release(image);
    weir_tensor_release(expected);
    weir_tensor_release(got);
    weir_program_release(program);
    weir_engine_release(engine);
}

static void test_digits(void) {
    struct dataset dataset;
    CHECK_EQ(dataset_load(&dataset, DIGITS_DATA_DIR), 0);
    weir_engine *engine = make_engine(NULL);
    weir_program *program = network_compile(&dataset, engine, 500, NULL);
    compare("digits, 500 at once", program, 1); /* two layers in a row: both are needed at once */
    weir_program_release(program);
    weir_engine_release(engine);
    dataset_free(&dataset);
}

static void test_voice(void) {
    struct weights weights;
    CHECK_EQ(weights_load(&weights, VOICE_DATA_DIR "/weights.bin"), 0);
    weir_engine *engine = make_engine(NULL);
    weir_program *program = model_compile(&weights, engine, NULL);
    compare("voice", program, 0.6);
    weir_program_release(program);
    weir_engine_release(engine);
    weights_free(&weights);
}

int main(void) {
    test_residual();
    test_digits();
    test_voice();
    return 0;
}
