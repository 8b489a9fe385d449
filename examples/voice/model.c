/* Builds the graph. Each half goes from samples to a probability like this, at 16 kHz:
 *
 *     576 samples, mirrored at the end
 *     spectrum         a convolution: 4 windows of 256 samples, with 129 cosines and 129 sines
 *     magnitude        129 frequencies, 4 windows
 *     4 convolutions   over time, with relu: 128 channels x 4, 64 x 2, 64 x 1, 128 x 1
 *     an LSTM cell     128 units, whose state comes from the frame before
 *     relu, weighted sum, sigmoid, mean over time
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "model.h"

#include <stdbool.h>
#include <stdio.h>
#include <weir/control.h>
#include <weir/ops.h>

#include "weir_check.h"

enum { CONVOLUTIONS = 4 };

/* A graph in the making. */
struct builder {
    weir_graph *graph;
    weir_engine *engine;
    const struct weights_array *weights;
};

static weir_value add_tensor(struct builder *b, const char *name, const weir_tensor_desc *desc, const void *data) {
    weir_tensor *tensor;
    weir_value value;
    /* A constant is only read. */
    CHECK(weir_tensor_create(b->engine, desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = (void *)(uintptr_t)data}, &tensor));
    CHECK(weir_graph_add_constant(b->graph, name, tensor, &value));
    weir_tensor_release(tensor); /* the graph holds it now */
    return value;
}

static weir_value add_weights(struct builder *b, int index) {
    const struct weights_array *array = &b->weights[index];
    char name[32];
    snprintf(name, sizeof name, "weights %d", index);
    return add_tensor(b, name, &array->desc, array->data);
}

/* Adds a call of the kernel, and gives the kernel to the graph. */
static void add_kernel(struct builder *b, const char *name, weir_kernel *kernel, const weir_value *inputs,
                       size_t num_inputs, weir_value *outputs, size_t num_outputs) {
    CHECK(weir_graph_add_kernel(b->graph, name, kernel, inputs, num_inputs, outputs, num_outputs, NULL));
    weir_kernel_release(kernel);
}

static weir_value add_reshape(struct builder *b, const char *name, weir_value x, weir_reshape_desc desc) {
    weir_kernel *kernel;
    weir_value y;
    desc.struct_size = sizeof desc;
    CHECK(weir_kernel_create_reshape(b->engine, &desc, NULL, &kernel));
    add_kernel(b, name, kernel, &x, 1, &y, 1);
    return y;
}

static weir_value add_reduce(struct builder *b, const char *name, weir_value x, weir_reduce_desc desc) {
    weir_kernel *kernel;
    weir_value y;
    desc.struct_size = sizeof desc;
    CHECK(weir_kernel_create_reduce(b->engine, &desc, NULL, &kernel));
    add_kernel(b, name, kernel, &x, 1, &y, 1);
    return y;
}

/* A convolution with the weights number `index`, and, if desc says so, the bias behind them. */
static weir_value add_conv(struct builder *b, const char *name, weir_value x, int index, weir_conv_desc desc) {
    const bool bias = desc.flags & WEIR_CONV_BIAS;
    weir_kernel *kernel;
    weir_value inputs[3] = {x, add_weights(b, index)}, y;
    if (bias) {
        inputs[2] = add_weights(b, index + 1);
    }
    desc.struct_size = sizeof desc;
    CHECK(weir_kernel_create_conv(b->engine, &desc, NULL, &kernel));
    add_kernel(b, name, kernel, inputs, bias ? 3 : 2, &y, 1);
    return y;
}

/* The first 288 samples. */
static weir_value add_8k_samples(struct builder *b, weir_value samples) {
    const weir_slice_desc desc = {
        .struct_size = sizeof desc, .rank = 2, .end = {1, MODEL_CONTEXT_8K + MODEL_FRAME_8K}};
    weir_kernel *kernel;
    weir_value y;
    CHECK(weir_kernel_create_slice(b->engine, &desc, NULL, &kernel));
    add_kernel(b, "8 kHz", kernel, &samples, 1, &y, 1);
    return y;
}

/* Loudness by frequency and window: [1, frequencies, windows]. */
static weir_value add_spectrum(struct builder *b, weir_value samples) {
    const weir_tensor_desc *waves = &b->weights[WEIGHTS_SPECTRUM].desc;
    const int64_t length = waves->dims[2], frequencies = waves->dims[0] / 2;
    const weir_value signal =
        add_reshape(b, "signal", samples, (weir_reshape_desc){.rank = 3, .dims = {1, 1, -1}});
    const weir_value spectrum = add_conv(b, "spectrum", signal, WEIGHTS_SPECTRUM,
                                         (weir_conv_desc){.padding = WEIR_PADDING_REFLECT,
                                                          .padding_end = {length / 4},
                                                          .strides = {length / 2}});
    const weir_value parts =
        add_reshape(b, "cosines and sines", spectrum, (weir_reshape_desc){.rank = 4, .dims = {1, 2, frequencies, -1}});
    return add_reduce(b, "magnitude", parts,
                      (weir_reduce_desc){.op = WEIR_REDUCE_NORM_SUM, .p = 2, .num_axes = 1, .axes = {1}});
}

static weir_value add_convolutions(struct builder *b, weir_value x) {
    static const int64_t strides[CONVOLUTIONS] = {1, 2, 2, 1};
    for (int i = 0; i < CONVOLUTIONS; i++) {
        char name[32];
        snprintf(name, sizeof name, "convolution %d", i + 1);
        x = add_conv(b, name, x, WEIGHTS_CONV + 2 * i,
                     (weir_conv_desc){.flags = WEIR_CONV_BIAS,
                                      .activation = WEIR_ACTIVATION_RELU,
                                      .padding_begin = {1},
                                      .padding_end = {1},
                                      .strides = {strides[i]}});
    }
    return x;
}

/* Features, hidden, cell -> probability, next hidden, next cell, in the order of enum model_output. */
static void add_memory(struct builder *b, weir_value features, const weir_value state[2],
                       weir_value outputs[MODEL_OUTPUTS]) {
    const weir_lstm_desc lstm = {
        .struct_size = sizeof lstm, .flags = WEIR_LSTM_BIAS, .gate_order = WEIR_GATES_TORCH};
    const weir_eltwise_desc relu = {.struct_size = sizeof relu, .op = WEIR_ELTWISE_RELU};
    weir_value cell[7] = {add_reshape(b, "features", features, (weir_reshape_desc){.rank = 2, .dims = {1, -1}}),
                          state[0], state[1]};
    weir_kernel *kernel;
    weir_value x;
    for (int i = 0; i < 4; i++) {
        cell[3 + i] = add_weights(b, WEIGHTS_LSTM_X + i);
    }
    CHECK(weir_kernel_create_lstm(b->engine, &lstm, NULL, &kernel));
    add_kernel(b, "lstm", kernel, cell, 7, &outputs[MODEL_NEXT_HIDDEN], 2);

    CHECK(weir_kernel_create_eltwise(b->engine, &relu, NULL, &kernel));
    add_kernel(b, "relu", kernel, &outputs[MODEL_NEXT_HIDDEN], 1, &x, 1);
    x = add_reshape(b, "units", x, (weir_reshape_desc){.rank = 3, .dims = {1, MODEL_STATE, 1}});
    x = add_conv(b, "weighted sum", x, WEIGHTS_OUT,
                 (weir_conv_desc){.flags = WEIR_CONV_BIAS, .activation = WEIR_ACTIVATION_SIGMOID});
    outputs[MODEL_PROBABILITY] =
        add_reduce(b, "mean", x, (weir_reduce_desc){.op = WEIR_REDUCE_MEAN, .num_axes = 1, .axes = {2}});
}

static void add_inputs(struct builder *b, int first, int end, weir_value *values) {
    static const char *const names[MODEL_INPUTS] = {"samples", "hidden", "cell", "rate"};
    for (int i = first; i < end; i++) {
        const weir_tensor_desc desc = model_input_desc((enum model_input)i);
        CHECK(weir_graph_add_input(b->graph, names[i], &desc, &values[i]));
    }
}

static void add_outputs(struct builder *b, const weir_value *values) {
    static const char *const names[MODEL_OUTPUTS] = {"probability", "next hidden", "next cell"};
    for (int i = 0; i < MODEL_OUTPUTS; i++) {
        CHECK(weir_graph_add_output(b->graph, names[i], values[i]));
    }
}

/* The graph of a half: samples, hidden, cell -> probability, hidden, cell. The caller destroys it. */
static weir_graph *build_half(const struct weights *weights, enum weights_half half, weir_engine *engine) {
    struct builder b = {.engine = engine, .weights = weights->arrays[half]};
    weir_value inputs[MODEL_INPUTS], outputs[MODEL_OUTPUTS], x;

    CHECK(weir_graph_create(half == WEIGHTS_16K ? "16 kHz" : "8 kHz", &b.graph));
    add_inputs(&b, MODEL_SAMPLES, MODEL_RATE, inputs);
    x = half == WEIGHTS_16K ? inputs[MODEL_SAMPLES] : add_8k_samples(&b, inputs[MODEL_SAMPLES]);
    x = add_convolutions(&b, add_spectrum(&b, x));
    add_memory(&b, x, &inputs[MODEL_HIDDEN], outputs);
    add_outputs(&b, outputs);
    return b.graph;
}

weir_program *model_compile(const struct weights *weights, weir_engine *engine, const weir_compile_options *options) {
    static const int32_t high[1] = {16000};
    const weir_binary_desc equal = {.struct_size = sizeof equal, .op = WEIR_BINARY_EQ};
    const weir_tensor_desc one = model_input_desc(MODEL_RATE);
    struct builder b = {.engine = engine};
    weir_value inputs[MODEL_INPUTS], rates[2], is_high, outputs[MODEL_OUTPUTS];
    weir_graph *halves[WEIGHTS_HALVES];
    weir_kernel *kernel;
    weir_program *program;

    CHECK(weir_graph_create("voice", &b.graph));
    add_inputs(&b, MODEL_SAMPLES, MODEL_INPUTS, inputs);
    rates[0] = inputs[MODEL_RATE];
    rates[1] = add_tensor(&b, "16000", &one, high);
    CHECK(weir_kernel_create_binary(engine, &equal, NULL, &kernel));
    add_kernel(&b, "is it 16 kHz", kernel, rates, 2, &is_high, 1);
    for (int i = 0; i < WEIGHTS_HALVES; i++) {
        halves[i] = build_half(weights, (enum weights_half)i, engine);
    }
    CHECK(weir_graph_add_cond(b.graph, "choose the half", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = is_high, .then_graph = halves[WEIGHTS_16K], .else_graph = halves[WEIGHTS_8K], .inputs = inputs,
        .num_inputs = MODEL_RATE}, outputs, MODEL_OUTPUTS, NULL));
    add_outputs(&b, outputs);
    CHECK(weir_graph_compile(b.graph, &engine, 1, options, &program));
    for (int i = 0; i < WEIGHTS_HALVES; i++) {
        weir_graph_destroy(halves[i]);
    }
    weir_graph_destroy(b.graph);
    return program;
}

weir_program *model_compile_part(const struct weights *weights, weir_engine *engine, enum model_part part) {
    static const char *const names[MODEL_PARTS] = {"spectrum", "convolutions", "memory"};
    struct builder b = {.engine = engine, .weights = weights->arrays[WEIGHTS_16K]};
    weir_value inputs[MODEL_INPUTS], outputs[MODEL_OUTPUTS], x;
    weir_program *program;

    CHECK(weir_graph_create(names[part], &b.graph));
    if (part == MODEL_SPECTRUM) {
        add_inputs(&b, MODEL_SAMPLES, MODEL_HIDDEN, inputs);
        x = add_spectrum(&b, inputs[MODEL_SAMPLES]);
    } else {
        const weir_tensor_desc desc = model_part_desc((enum model_part)(part - 1));
        CHECK(weir_graph_add_input(b.graph, names[part - 1], &desc, &x));
    }
    if (part == MODEL_CONVOLUTIONS) {
        x = add_convolutions(&b, x);
    }
    if (part == MODEL_MEMORY) {
        add_inputs(&b, MODEL_HIDDEN, MODEL_RATE, inputs);
        add_memory(&b, x, &inputs[MODEL_HIDDEN], outputs);
        add_outputs(&b, outputs);
    } else {
        CHECK(weir_graph_add_output(b.graph, names[part], x));
    }
    CHECK(weir_graph_compile(b.graph, &engine, 1, NULL, &program));
    weir_graph_destroy(b.graph);
    return program;
}

weir_tensor_desc model_part_desc(enum model_part part) {
    const weir_tensor_desc spectrum = {WEIR_F32, 3, {1, 129, 4}};
    const weir_tensor_desc features = {WEIR_F32, 3, {1, MODEL_STATE, 1}};
    return part == MODEL_SPECTRUM ? spectrum : features;
}

weir_tensor_desc model_input_desc(enum model_input input) {
    const weir_tensor_desc samples = {WEIR_F32, 2, {1, MODEL_CONTEXT_16K + MODEL_FRAME_16K}};
    const weir_tensor_desc state = {WEIR_F32, 2, {1, MODEL_STATE}};
    const weir_tensor_desc rate = {WEIR_S32, 1, {1}};
    return input == MODEL_SAMPLES ? samples : input == MODEL_RATE ? rate : state;
}

weir_tensor_desc model_output_desc(enum model_output output) {
    const weir_tensor_desc probability = {WEIR_F32, 2, {1, 1}};
    const weir_tensor_desc state = {WEIR_F32, 2, {1, MODEL_STATE}};
    return output == MODEL_PROBABILITY ? probability : state;
}
