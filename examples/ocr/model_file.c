/* Words are read as they are: the machines that weir runs on are little-endian.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "model_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* A folder has a size too, of a kind that no file has. */
static const long MOST_BYTES = 1L << 40;

/* Numbers are this small, so that no sum of theirs overflows. */
static const int64_t LARGEST = (int64_t)1 << 32;

struct cursor {
    const unsigned char *file;
    size_t bytes;
    const int64_t *next;
    size_t left;
    bool failed;
};

/* The next `count` words; zeros where there are not as many. */
static const int64_t *take(struct cursor *cursor, size_t count) {
    static const int64_t zeros[MODEL_MAX_SETTINGS * MODEL_CHANGE];
    if (count > cursor->left) {
        cursor->failed = true;
        return zeros;
    }
    const int64_t *words = cursor->next;
    cursor->next += count;
    cursor->left -= count;
    return words;
}

static int64_t take_below(struct cursor *cursor, int64_t limit) {
    const int64_t word = *take(cursor, 1);
    if (word < 0 || word >= limit) {
        cursor->failed = true;
        return 0;
    }
    return word;
}

static const int64_t *take_numbers(struct cursor *cursor, size_t count) {
    const int64_t *numbers = take(cursor, count * MODEL_NUMBER);
    for (size_t i = 0; i < count * MODEL_NUMBER; i++) {
        cursor->failed |= numbers[i] <= -LARGEST || numbers[i] >= LARGEST;
    }
    return numbers;
}

static void take_name(struct cursor *cursor, char *name, size_t words) {
    memcpy(name, take(cursor, words), words * 8);
    name[words * 8] = '\0';
}

static const int64_t *take_values(struct cursor *cursor, size_t count, size_t num_values) {
    const int64_t *values = take(cursor, count);
    for (size_t i = 0; i < count; i++) {
        cursor->failed |= values[i] < 0 || (size_t)values[i] >= num_values;
    }
    return values;
}

static void take_constant(struct cursor *cursor, struct model_item *item) {
    const int64_t *dims = take(cursor, item->desc.rank);
    const int64_t begin = *take(cursor, 1);
    size_t bytes = 0;
    if (weir_dtype_size(item->desc.dtype, &bytes) != WEIR_OK) {
        cursor->failed = true;
    }
    for (uint32_t d = 0; d < item->desc.rank && !cursor->failed; d++) {
        cursor->failed |= dims[d] < 0 || (dims[d] > 0 && bytes > cursor->bytes / (size_t)dims[d]);
        bytes *= (size_t)dims[d];
        item->desc.dims[d] = dims[d];
    }
    cursor->failed |= begin < 0 || begin % ALIGNMENT != 0 || (size_t)begin > cursor->bytes;
    if (!cursor->failed && bytes <= cursor->bytes - (size_t)begin) {
        item->elements = cursor->file + begin;
    } else {
        cursor->failed = true;
    }
}

static void take_kernel(struct cursor *cursor, struct model_item *item, size_t num_values) {
    take_name(cursor, item->operator_name, 2);
    item->num_settings = (size_t)take_below(cursor, MODEL_MAX_SETTINGS);
    item->num_inputs = (size_t)take_below(cursor, WEIR_MAX_ARGS + 1);
    item->num_outputs = (size_t)take_below(cursor, WEIR_MAX_ARGS + 1);
    item->num_changes = (size_t)take_below(cursor, MODEL_MAX_SETTINGS);
    item->settings = take(cursor, item->num_settings);
    item->inputs = take_values(cursor, item->num_inputs, num_values);
    item->changes = take(cursor, item->num_changes * MODEL_CHANGE);
    struct cursor changes = {.next = item->changes, .left = cursor->failed ? 0 : item->num_changes * MODEL_CHANGE};
    while (changes.left > 0) {
        take_below(&changes, (int64_t)item->num_settings);
        take_numbers(&changes, 1);
    }
    cursor->failed |= changes.failed;
}

static void take_item(struct cursor *cursor, struct model_item *item, size_t num_values) {
    item->kind = (enum model_kind)take_below(cursor, MODEL_OUTPUT + 1);
    item->num_outputs = item->kind != MODEL_OUTPUT;
    switch (item->kind) {
    case MODEL_INPUT:
    case MODEL_CONSTANT:
        item->desc.dtype = (weir_dtype)take_below(cursor, UINT32_MAX);
        item->desc.rank = (uint32_t)take_below(cursor, WEIR_MAX_RANK + 1);
        if (item->kind == MODEL_INPUT) {
            item->numbers = take_numbers(cursor, item->desc.rank);
        } else {
            take_constant(cursor, item);
        }
        break;
    case MODEL_STEPS:
        item->numbers = take_numbers(cursor, 1);
        item->divisor = take_below(cursor, LARGEST);
        cursor->failed |= item->divisor == 0;
        break;
    case MODEL_KERNEL: take_kernel(cursor, item, num_values); break;
    case MODEL_OUTPUT: item->inputs = take_values(cursor, 1, num_values); break;
    }
}

static void take_network(struct cursor *cursor, struct model_network *network) {
    take_name(cursor, network->name, 1);
    network->unit = take_below(cursor, LARGEST);
    network->num_items = (size_t)take_below(cursor, (int64_t)cursor->left + 1);
    network->items = calloc(network->num_items + 1, sizeof *network->items);
    cursor->failed |= network->unit == 0 || network->items == NULL;
    for (size_t i = 0; i < network->num_items && !cursor->failed; i++) {
        take_item(cursor, &network->items[i], network->num_values);
        network->num_values += network->items[i].num_outputs;
    }
}

const char *model_parse(struct model *model, unsigned char *file, size_t bytes) {
    *model = (struct model){.file = file};
    struct cursor cursor = {file, bytes, (const int64_t *)(const void *)file, bytes / 8, false};
    if (memcmp(take(&cursor, 1), "WEIRNETS", 8) != 0) {
        model_free(model);
        return "is no file of networks";
    }
    model->num_networks = (size_t)take_below(&cursor, MODEL_MAX_NETWORKS + 1);
    model->text_bytes = (size_t)take_below(&cursor, (int64_t)bytes);
    model->text = (const char *)take(&cursor, (model->text_bytes + 7) / 8);
    for (size_t i = 0; i < model->num_networks && !cursor.failed; i++) {
        take_network(&cursor, &model->networks[i]);
    }
    if (cursor.failed) {
        model_free(model);
        return "is broken";
    }
    return NULL;
}

int model_load(struct model *model, const char *path) {
    FILE *file = fopen(path, "rb");
    unsigned char *memory = NULL;
    size_t bytes = 0;
    long size = -1;
    *model = (struct model){0};
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (size >= 0 && size <= MOST_BYTES && fseek(file, 0, SEEK_SET) == 0) {
        memory = aligned_alloc(ALIGNMENT, ((size_t)size / ALIGNMENT + 1) * ALIGNMENT);
        bytes = memory == NULL ? 0 : fread(memory, 1, (size_t)size, file);
    }
    if (file != NULL) {
        fclose(file);
    }
    const char *wrong = "cannot be read";
    if (memory != NULL && bytes == (size_t)size) {
        wrong = model_parse(model, memory, bytes);
    } else {
        free(memory);
    }
    if (wrong != NULL) {
        fprintf(stderr, "%s: %s\n", path, wrong);
    }
    return wrong != NULL;
}

void model_free(struct model *model) {
    for (size_t i = 0; i < MODEL_MAX_NETWORKS; i++) {
        free(model->networks[i].items);
    }
    free(model->file);
    *model = (struct model){0};
}

const struct model_network *model_find(const struct model *model, const char *name) {
    for (size_t i = 0; i < model->num_networks; i++) {
        if (strcmp(model->networks[i].name, name) == 0) {
            return &model->networks[i];
        }
    }
    return NULL;
}

int64_t model_number(const struct model_network *network, const int64_t *number, int32_t height, int32_t width) {
    return number[0] + number[1] * (height / network->unit) + number[2] * (width / network->unit);
}
