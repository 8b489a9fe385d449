/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Plain loops.
 */

#include "test_device_kernels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ops.h>
#include <weir/device.h>

typedef enum operation { ADD, RELU, MATMUL, COMPARE, SCALE, HOST, FAIL, REGION, NOTHING } operation;

/* A call in a region: its values by their numbers, inputs first. */
typedef struct call {
    const test_kernel *kernel;
    size_t num_inputs, num_outputs, values[8];
} call;

enum { MOST_CALLS = 64, MOST_VALUES = 128 };

/* A region: its values with the addresses of constants, which of them a launch is given, and its calls. */
typedef struct region {
    size_t num_values, num_calls, num_inputs, num_outputs;
    size_t given[8]; /* inputs first */
    weir_tensor_view values[MOST_VALUES];
    call calls[MOST_CALLS];
} region;

struct test_kernel {
    operation operation;
    weir_matmul_desc matmul;
    weir_binary_op relation;
    float factor;
    weir_device_host_call_fn host_call; /* of a function of the host's */
    void *host_user;
    weir_destroy_fn host_release;
    region *region;
};

/* As much of the attributes as both sides know. */
static void read_attributes(const weir_device_recipe *recipe, void *to, size_t bytes) {
    memset(to, 0, bytes);
    memcpy(to, recipe->attributes, recipe->attributes_bytes < bytes ? recipe->attributes_bytes : bytes);
}

static bool is(const weir_device_recipe *recipe, const char *operation, size_t inputs, size_t outputs) {
    return strcmp(recipe->operation, operation) == 0 && recipe->num_inputs == inputs && recipe->num_outputs == outputs;
}

int32_t test_kernel_create(const weir_device_recipe *recipe, bool anything, test_kernel **out_kernel) {
    test_kernel made = {.operation = NOTHING};
    if (is(recipe, "eltwise", 1, 1)) {
        weir_eltwise_desc eltwise;
        read_attributes(recipe, &eltwise, sizeof eltwise);
        if (eltwise.op == WEIR_ELTWISE_RELU && eltwise.alpha == 0) made.operation = RELU;
    }
    if (is(recipe, "weir.fail", 0, 0)) made.operation = FAIL;
    if (strcmp(recipe->operation, "matmul") == 0) {
        read_attributes(recipe, &made.matmul, sizeof made.matmul);
        bool known = (made.matmul.flags & ~(uint64_t)WEIR_MATMUL_BIAS) == 0 && made.matmul.activation <= WEIR_ACTIVATION_RELU;
        if (known && made.matmul.weights == NULL) made.operation = MATMUL;
    }
    if (is(recipe, "binary", 2, 1)) {
        weir_binary_desc binary;
        read_attributes(recipe, &binary, sizeof binary);
        made.relation = binary.op;
        if (binary.op == WEIR_BINARY_ADD) made.operation = ADD;
        if (binary.op >= WEIR_BINARY_EQ && binary.op <= WEIR_BINARY_GE) made.operation = COMPARE;
    }
    if (is(recipe, "scale", 1, 1)) {
        if (recipe->attributes_bytes != sizeof(scale_attributes)) return WEIR_INVALID_ARGUMENT;
        scale_attributes attributes;
        memcpy(&attributes, recipe->attributes, sizeof attributes);
        made.operation = SCALE;
        made.factor = attributes.factor;
    }
    bool has_host = recipe->struct_size >= sizeof *recipe && recipe->host_call != NULL;
    if (has_host && recipe->operation[0] == '\0') {
        made.operation = HOST;
        made.host_call = recipe->host_call;
        made.host_user = recipe->host_user;
        made.host_release = recipe->host_release;
    }
    if (made.operation == NOTHING && !anything) return WEIR_UNIMPLEMENTED;
    test_kernel *kernel = malloc(sizeof *kernel);
    if (kernel == NULL) return WEIR_RESOURCE_EXHAUSTED;
    *kernel = made;
    if (made.operation == HOST) recipe->host_retain(recipe->host_user);
    *out_kernel = kernel;
    return WEIR_OK;
}

void test_kernel_destroy(void *kernel) {
    const test_kernel *ended = kernel;
    if (ended->operation == HOST) ended->host_release(ended->host_user);
    free(ended->region);
    free(kernel);
}

static uint64_t bytes_of(const weir_tensor_desc *desc) {
    uint64_t bytes = desc->dtype == WEIR_F32 || desc->dtype == WEIR_S32 ? 4 : desc->dtype == WEIR_U8 || desc->dtype == WEIR_BOOL ? 1 : 0;
    for (uint32_t i = 0; i < desc->rank; i++) bytes *= (uint64_t)desc->dims[i];
    return bytes;
}

int32_t test_region_create(const weir_device_region *from, uint64_t space, bool hasty, test_kernel **out_kernel) {
    if (from->num_values > MOST_VALUES || from->num_nodes > MOST_CALLS || from->num_inputs + from->num_outputs > 8) return WEIR_UNIMPLEMENTED;
    region *to = calloc(1, sizeof *to);
    test_kernel *kernel = calloc(1, sizeof *kernel);
    int32_t status = to == NULL || kernel == NULL ? WEIR_RESOURCE_EXHAUSTED : WEIR_OK;
    if (status == WEIR_OK) {
        to->num_values = from->num_values, to->num_calls = from->num_nodes;
        to->num_inputs = from->num_inputs, to->num_outputs = from->num_outputs;
        for (size_t i = 0; i < from->num_inputs; i++) to->given[i] = from->inputs[i];
        for (size_t i = 0; i < from->num_outputs; i++) to->given[from->num_inputs + i] = from->outputs[i];
    }
    for (size_t i = 0; status == WEIR_OK && i < from->num_values; i++) {
        const weir_device_region_value *value = &from->values[i];
        to->values[i] = (weir_tensor_view){(void *)(uintptr_t)(value->constant & ~space), bytes_of(&value->desc), value->desc};
        if (to->values[i].bytes == 0) status = WEIR_UNIMPLEMENTED;
    }
    for (size_t i = 0; status == WEIR_OK && i < from->num_nodes; i++) {
        const weir_device_region_node *node = &from->nodes[i];
        if (node->num_inputs + node->num_outputs > 8) status = WEIR_UNIMPLEMENTED;
        if (status != WEIR_OK) break;
        to->calls[i].kernel = node->kernel;
        to->calls[i].num_inputs = node->num_inputs;
        to->calls[i].num_outputs = node->num_outputs;
        for (size_t j = 0; j < node->num_inputs; j++) to->calls[i].values[j] = node->inputs[j];
        for (size_t j = 0; j < node->num_outputs; j++) to->calls[i].values[node->num_inputs + j] = node->outputs[j];
    }
    if (status != WEIR_OK) {
        free(to);
        free(kernel);
        return status;
    }
    if (hasty) to->num_calls--;
    kernel->operation = REGION;
    kernel->region = to;
    *out_kernel = kernel;
    return WEIR_OK;
}

/* What goes from node to node lies in memory of this call's. */
static int32_t run_region(const region *region, const weir_tensor_view *in, const weir_tensor_view *out, char *why, size_t capacity) {
    weir_tensor_view values[MOST_VALUES];
    bool own[MOST_VALUES] = {false};
    int32_t status = WEIR_OK;
    memcpy(values, region->values, region->num_values * sizeof *values);
    for (size_t i = 0; i < region->num_inputs; i++) values[region->given[i]].data = in[i].data;
    for (size_t i = 0; i < region->num_outputs; i++) values[region->given[region->num_inputs + i]].data = out[i].data;
    for (size_t i = 0; i < region->num_values; i++) {
        if (values[i].data != NULL) continue;
        values[i].data = malloc(values[i].bytes);
        own[i] = true;
        if (values[i].data == NULL) status = WEIR_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; status == WEIR_OK && i < region->num_calls; i++) {
        const call *call = &region->calls[i];
        weir_tensor_view views[8];
        for (size_t j = 0; j < call->num_inputs + call->num_outputs; j++) views[j] = values[call->values[j]];
        status = test_kernel_run(call->kernel, views, views + call->num_inputs, call->num_inputs, call->num_outputs, false, why, capacity);
    }
    for (size_t i = 0; i < region->num_values; i++) {
        if (own[i]) free(values[i].data);
    }
    return status;
}

static int32_t run_matmul(const test_kernel *kernel, const weir_tensor_view *in, const weir_tensor_view *out) {
    if (in[0].desc.rank != 2 || in[1].desc.rank != 2 || in[0].desc.dtype != WEIR_F32) return WEIR_UNIMPLEMENTED;
    int64_t m = in[0].desc.dims[0], k = in[0].desc.dims[1], n = in[1].desc.dims[1];
    const float *a = in[0].data, *b = in[1].data;
    const float *bias = kernel->matmul.flags & WEIR_MATMUL_BIAS ? in[2].data : NULL;
    float *c = out[0].data;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float sum = bias == NULL ? 0.0f : bias[j];
            for (int64_t l = 0; l < k; l++) sum += a[i * k + l] * b[l * n + j];
            c[i * n + j] = kernel->matmul.activation == WEIR_ACTIVATION_RELU && sum < 0 ? 0 : sum;
        }
    }
    return WEIR_OK;
}

static bool compare(weir_binary_op op, float a, float b) {
    switch (op) {
    case WEIR_BINARY_EQ: return a == b;
    case WEIR_BINARY_NE: return a != b;
    case WEIR_BINARY_LT: return a < b;
    case WEIR_BINARY_LE: return a <= b;
    case WEIR_BINARY_GT: return a > b;
    default: return a >= b;
    }
}

uint64_t test_kernel_scratch(const weir_tensor_view *inputs, size_t num_inputs) {
    return num_inputs == 0 ? 0 : inputs[0].bytes;
}

int32_t test_kernel_run(const test_kernel *kernel, const weir_tensor_view *in, const weir_tensor_view *out, size_t num_inputs,
                        size_t num_outputs, bool wrong, char *why, size_t capacity) {
    if (kernel->operation == HOST) return kernel->host_call(kernel->host_user, in, num_inputs, out, num_outputs, why, capacity);
    if (kernel->operation == REGION) return run_region(kernel->region, in, out, why, capacity);
    if (kernel->operation == FAIL) return WEIR_ABORTED;
    if (kernel->operation == MATMUL) return run_matmul(kernel, in, out);
    if (kernel->operation == NOTHING) return WEIR_OK;
    if (in[0].desc.dtype != WEIR_F32) return WEIR_UNIMPLEMENTED;
    if (kernel->operation == COMPARE) {
        if (in[0].bytes != in[1].bytes || in[0].bytes != out[0].bytes * sizeof(float)) return WEIR_UNIMPLEMENTED;
        const float *a = in[0].data, *b = in[1].data;
        for (size_t i = 0; i < out[0].bytes; i++) ((uint8_t *)out[0].data)[i] = compare(kernel->relation, a[i], b[i]);
        return WEIR_OK;
    }
    if (kernel->operation == ADD && in[0].bytes != in[1].bytes) return WEIR_UNIMPLEMENTED;
    const float *a = in[0].data, *b = kernel->operation == ADD ? in[1].data : NULL;
    float *c = out[0].data;
    for (size_t i = 0; i < out[0].bytes / sizeof *c; i++) {
        if (kernel->operation == ADD) c[i] = wrong ? a[i] - b[i] : a[i] + b[i];
        if (kernel->operation == RELU) c[i] = a[i] < 0 ? 0 : a[i];
        if (kernel->operation == SCALE) c[i] = a[i] * kernel->factor;
    }
    return WEIR_OK;
}
