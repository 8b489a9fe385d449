/* Builds a graph from the items of a file, and keeps what was built. Constants are made once, and all programs share
 * them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "network.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "operators.h"
#include "weir_check.h"

/* A program, and the looks that are not in use. */
struct size {
    int32_t height, width;
    weir_program *program;
    struct look *looks;
    struct size *next;
};

struct network {
    const struct model_network *source;
    weir_engine *engine;
    weir_tensor **constants; /* of each item that is one */
    struct size *sizes;
    pthread_mutex_t mutex; /* of the lists of looks */
    weir_run_options options;
};

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static weir_tensor *tensor_over(weir_engine *engine, const weir_tensor_desc *desc, const void *elements) {
    /* A constant is only read. */
    const weir_memory memory = {.struct_size = sizeof memory, .data = (void *)(uintptr_t)elements};
    weir_tensor *tensor;
    CHECK(weir_tensor_create(engine, desc, &memory, &tensor));
    return tensor;
}

struct network *network_open(const struct model *model, const char *name, weir_engine *engine) {
    const struct model_network *source = model_find(model, name);
    if (source == NULL) {
        fprintf(stderr, "the file has no network '%s'\n", name);
        exit(1);
    }
    struct network *network = allocate(1, sizeof *network);
    network->source = source;
    network->engine = engine;
    network_follow(network, NULL, 0);
    network->constants = allocate(source->num_items, sizeof *network->constants);
    for (size_t i = 0; i < source->num_items; i++) {
        if (source->items[i].kind == MODEL_CONSTANT) {
            network->constants[i] = tensor_over(engine, &source->items[i].desc, source->items[i].elements);
        }
    }
    pthread_mutex_init(&network->mutex, NULL);
    return network;
}

const char *network_name(const struct network *network) {
    return network->source->name;
}

void network_follow(struct network *network, weir_progress_fn follow, uint64_t interval_ns) {
    network->options = (weir_run_options){
        .struct_size = sizeof network->options, .progress = follow, .progress_interval_ns = interval_ns};
}

const weir_run_options *network_options(const struct network *network) {
    return &network->options;
}

/* ---- Building ---- */

/* A graph in the making, for one size. */
struct builder {
    const struct network *network;
    weir_graph *graph;
    int32_t height, width;
    weir_value *values;
    size_t num_values;
    char name[48]; /* of the next node */
};

static int64_t number(const struct builder *b, const int64_t *words) {
    return model_number(b->network->source, words, b->height, b->width);
}

static weir_value add_input(struct builder *b, const struct model_item *item) {
    weir_tensor_desc desc = item->desc;
    weir_value value;
    for (uint32_t d = 0; d < desc.rank; d++) {
        desc.dims[d] = number(b, item->numbers + MODEL_NUMBER * d);
    }
    CHECK(weir_graph_add_input(b->graph, b->name, &desc, &value));
    return value;
}

static weir_value add_steps(struct builder *b, const struct model_item *item) {
    const weir_tensor_desc desc = {.dtype = WEIR_S32, .rank = 1, .dims = {number(b, item->numbers)}};
    weir_tensor *tensor;
    weir_value value;
    void *data;
    CHECK(weir_tensor_create(b->network->engine, &desc, NULL, &tensor));
    CHECK(weir_tensor_get_data(tensor, &data));
    for (int64_t i = 0; i < desc.dims[0]; i++) {
        ((int32_t *)data)[i] = (int32_t)(i / item->divisor);
    }
    CHECK(weir_graph_add_constant(b->graph, b->name, tensor, &value));
    weir_tensor_release(tensor);
    return value;
}

static void add_kernel(struct builder *b, const struct model_item *item) {
    int64_t settings[MODEL_MAX_SETTINGS] = {0};
    weir_value inputs[WEIR_MAX_ARGS];
    weir_kernel *kernel;
    for (size_t i = 0; i < item->num_settings; i++) {
        settings[i] = item->settings[i];
    }
    for (size_t i = 0; i < item->num_changes; i++) {
        const int64_t *change = item->changes + MODEL_CHANGE * i;
        settings[change[0]] = number(b, change + 1);
    }
    for (size_t i = 0; i < item->num_inputs; i++) {
        inputs[i] = b->values[item->inputs[i]];
    }
    CHECK(operator_create(b->network->engine, item->operator_name, settings, item->num_settings, &kernel));
    CHECK(weir_graph_add_kernel(b->graph, b->name, kernel, inputs, item->num_inputs, b->values + b->num_values,
                                item->num_outputs, NULL));
    weir_kernel_release(kernel);
}

static void add_item(struct builder *b, size_t index) {
    const struct model_item *item = &b->network->source->items[index];
    weir_value *value = b->values + b->num_values;
    snprintf(b->name, sizeof b->name, "%zu %s", index, item->operator_name);
    switch (item->kind) {
    case MODEL_INPUT: *value = add_input(b, item); break;
    case MODEL_CONSTANT: CHECK(weir_graph_add_constant(b->graph, b->name, b->network->constants[index], value)); break;
    case MODEL_STEPS: *value = add_steps(b, item); break;
    case MODEL_KERNEL: add_kernel(b, item); break;
    case MODEL_OUTPUT: CHECK(weir_graph_add_output(b->graph, b->name, b->values[item->inputs[0]])); break;
    }
    b->num_values += item->num_outputs;
}

static weir_program *compile(const struct network *network, int32_t height, int32_t width) {
    struct builder b = {.network = network, .height = height, .width = width};
    weir_program *program;
    b.values = allocate(network->source->num_values + 1, sizeof *b.values);
    CHECK(weir_graph_create(network->source->name, &b.graph));
    for (size_t i = 0; i < network->source->num_items; i++) {
        add_item(&b, i);
    }
    CHECK(weir_graph_compile(b.graph, &network->engine, 1, NULL, &program));
    weir_graph_destroy(b.graph);
    free(b.values);
    return program;
}

/* ---- Looks ---- */

static struct size *find_size(struct network *network, int32_t height, int32_t width) {
    struct size *size = network->sizes;
    while (size != NULL && (size->height != height || size->width != width)) {
        size = size->next;
    }
    return size;
}

void network_prepare(struct network *network, int32_t height, int32_t width) {
    if (find_size(network, height, width) == NULL) {
        struct size *size = allocate(1, sizeof *size);
        *size = (struct size){height, width, compile(network, height, width), NULL, network->sizes};
        network->sizes = size;
    }
}

static weir_tensor *make_tensor(const struct network *network, weir_program *program, weir_port_kind kind,
                                weir_tensor_desc *desc, void **data) {
    weir_port_info port = {.struct_size = sizeof port};
    weir_tensor *tensor;
    CHECK(weir_program_get_port(program, kind, 0, &port));
    if (port.desc.dtype != WEIR_F32 || port.desc.rank < 2) {
        fprintf(stderr, "the network '%s' is none that looks at pictures\n", network->source->name);
        exit(1);
    }
    CHECK(weir_tensor_create(network->engine, &port.desc, NULL, &tensor));
    CHECK(weir_tensor_get_data(tensor, data));
    *desc = port.desc;
    return tensor;
}

static struct look *make_look(const struct network *network, const struct size *size) {
    struct look *look = allocate(1, sizeof *look);
    weir_tensor_desc picture, answer;
    void *data;
    look->height = size->height;
    look->width = size->width;
    look->program = size->program;
    look->tensors[0] = make_tensor(network, size->program, WEIR_PORT_INPUT, &picture, &data);
    look->picture = data;
    look->tensors[1] = make_tensor(network, size->program, WEIR_PORT_OUTPUT, &answer, &data);
    look->answer = data;
    look->columns = (size_t)answer.dims[answer.rank - 1];
    look->rows = (size_t)answer.dims[answer.rank - 2];
    if (picture.rank != 4 || picture.dims[0] * picture.dims[1] != 3 || picture.dims[2] != look->height ||
        picture.dims[3] != look->width) {
        fprintf(stderr, "the network '%s' looks at no picture of that size\n", network->source->name);
        exit(1);
    }
    return look;
}

struct look *network_take(struct network *network, int32_t height, int32_t width) {
    struct size *size = find_size(network, height, width);
    pthread_mutex_lock(&network->mutex);
    struct look *look = size->looks;
    if (look != NULL) {
        size->looks = look->next;
    }
    pthread_mutex_unlock(&network->mutex);
    return look != NULL ? look : make_look(network, size);
}

void network_give_back(struct network *network, struct look *look) {
    struct size *size = find_size(network, look->height, look->width);
    pthread_mutex_lock(&network->mutex);
    look->next = size->looks;
    size->looks = look;
    pthread_mutex_unlock(&network->mutex);
}

void network_close(struct network *network) {
    for (struct size *size = network->sizes, *next_size; size != NULL; size = next_size) {
        for (struct look *look = size->looks, *next_look; look != NULL; look = next_look) {
            next_look = look->next;
            weir_tensor_release(look->tensors[0]);
            weir_tensor_release(look->tensors[1]);
            free(look);
        }
        next_size = size->next;
        weir_program_release(size->program);
        free(size);
    }
    for (size_t i = 0; i < network->source->num_items; i++) {
        weir_tensor_release(network->constants[i]);
    }
    pthread_mutex_destroy(&network->mutex);
    free(network->constants);
    free(network);
}
