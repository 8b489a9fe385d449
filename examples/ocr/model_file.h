/* The networks of a file, as onnx_recording.py writes them: rows of items. Everything points into the file's memory.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_MODEL_FILE_H
#define OCR_MODEL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <weir.h>

enum model_kind { MODEL_INPUT, MODEL_CONSTANT, MODEL_STEPS, MODEL_KERNEL, MODEL_OUTPUT };

enum { MODEL_NUMBER = 3, MODEL_CHANGE = 1 + MODEL_NUMBER, MODEL_MAX_NETWORKS = 8, MODEL_MAX_SETTINGS = 64 };

struct model_item {
    enum model_kind kind;
    weir_tensor_desc desc;     /* INPUT (without dimensions), CONSTANT */
    const void *elements;      /* CONSTANT */
    const int64_t *numbers;    /* INPUT: each dimension; STEPS: the length */
    int64_t divisor;           /* STEPS */
    char operator_name[17];    /* KERNEL, and what follows */
    const int64_t *settings;
    const int64_t *inputs;     /* values; OUTPUT: the one */
    const int64_t *changes;    /* of settings: which word, and the number that it becomes */
    size_t num_settings, num_inputs, num_outputs, num_changes;
};

struct model_network {
    char name[9];
    int64_t unit;
    struct model_item *items;
    size_t num_items, num_values;
};

struct model {
    unsigned char *file;
    const char *text;
    size_t text_bytes;
    struct model_network networks[MODEL_MAX_NETWORKS];
    size_t num_networks;
};

/* Reads a file. Returns 0, or prints what is wrong and returns 1. */
int model_load(struct model *model, const char *path);
void model_free(struct model *model);

/* The same from memory of malloc, which the model takes. Returns what is wrong, or NULL. */
const char *model_parse(struct model *model, unsigned char *file, size_t bytes);

/* NULL if there is none of that name. */
const struct model_network *model_find(const struct model *model, const char *name);

/* A number at a height and a width. */
int64_t model_number(const struct model_network *network, const int64_t *number, int32_t height, int32_t width);

#endif
