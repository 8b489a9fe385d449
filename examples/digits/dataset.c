/* Reads the two files of the digits examples; train.py describes their format.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "dataset.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that is being read. The first failure is kept; after it every read does nothing. */
struct reader {
    FILE *file;
    const char *failure;
};

static void fail(struct reader *reader, const char *why) {
    if (reader->failure == NULL) {
        reader->failure = why;
    }
}

static void read_bytes(struct reader *reader, void *out, size_t bytes) {
    if (reader->failure == NULL && fread(out, 1, bytes, reader->file) != bytes) {
        fail(reader, "the file is too short");
    }
}

static uint32_t read_u32(struct reader *reader) {
    unsigned char b[4] = {0};
    read_bytes(reader, b, sizeof b);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void *allocate(struct reader *reader, size_t count, size_t size) {
    void *memory = reader->failure == NULL ? calloc(count, size) : NULL;
    if (memory == NULL) {
        fail(reader, "out of memory");
    }
    return memory;
}

static float *read_floats(struct reader *reader, size_t count) {
    float *out = allocate(reader, count, sizeof *out);
    for (size_t i = 0; i < count && reader->failure == NULL; i++) {
        uint32_t bits = read_u32(reader);
        memcpy(&out[i], &bits, sizeof bits);
    }
    return out;
}

static void read_magic(struct reader *reader, const char *magic) {
    char found[8] = {0};
    read_bytes(reader, found, sizeof found);
    if (memcmp(found, magic, sizeof found) != 0) {
        fail(reader, "this is another kind of file");
    }
}

static void read_scans(struct reader *reader, struct dataset *dataset, bool held_out) {
    read_magic(reader, "WEIRDIGS");
    uint32_t scans = read_u32(reader), training = read_u32(reader);
    uint32_t height = read_u32(reader), width = read_u32(reader);
    if (height != DIGITS_SIDE || width != DIGITS_SIDE || training >= scans || scans > 1000000) {
        fail(reader, "the header makes no sense");
    }
    if (reader->failure != NULL) {
        return;
    }
    unsigned char *all = allocate(reader, scans, DIGITS_PIXELS + 1); /* all pixels, then all labels */
    const size_t first = held_out ? training : 0;
    dataset->count = held_out ? scans - training : training;
    dataset->pixels = allocate(reader, (size_t)dataset->count * DIGITS_PIXELS, sizeof *dataset->pixels);
    dataset->labels = allocate(reader, dataset->count, 1);
    read_bytes(reader, all, (size_t)scans * (DIGITS_PIXELS + 1));
    for (size_t i = 0; i < (size_t)dataset->count * DIGITS_PIXELS && reader->failure == NULL; i++) {
        dataset->pixels[i] = all[first * DIGITS_PIXELS + i];
    }
    for (size_t i = 0; i < dataset->count && reader->failure == NULL; i++) {
        dataset->labels[i] = all[(size_t)scans * DIGITS_PIXELS + first + i];
        if (dataset->labels[i] >= DIGITS_CLASSES) {
            fail(reader, "a label is not a digit");
        }
    }
    free(all);
}

static void read_held_out(struct reader *reader, struct dataset *dataset) {
    read_scans(reader, dataset, true);
}

static void read_training(struct reader *reader, struct dataset *dataset) {
    read_scans(reader, dataset, false);
}

static void read_layers(struct reader *reader, struct dataset *dataset) {
    read_magic(reader, "WEIRMLPS");
    uint32_t num_layers = read_u32(reader);
    uint32_t sizes[DIGITS_MAX_LAYERS + 1] = {0};
    bool sensible = num_layers >= 1 && num_layers <= DIGITS_MAX_LAYERS;
    for (uint32_t i = 0; sensible && i <= num_layers; i++) {
        sizes[i] = read_u32(reader);
        sensible = sizes[i] >= 1 && sizes[i] <= 4096;
    }
    if (!sensible || sizes[0] != DIGITS_PIXELS || sizes[num_layers] != DIGITS_CLASSES) {
        fail(reader, "the header makes no sense");
    }
    for (uint32_t i = 0; i < num_layers && reader->failure == NULL; i++) {
        struct layer *layer = &dataset->layers[i];
        dataset->num_layers = i + 1;
        layer->inputs = sizes[i];
        layer->outputs = sizes[i + 1];
        layer->weights = read_floats(reader, (size_t)layer->inputs * layer->outputs);
        layer->bias = read_floats(reader, layer->outputs);
    }
}

static int read_file(struct dataset *dataset, const char *folder, const char *name,
                     void (*parse)(struct reader *, struct dataset *)) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    struct reader reader = {0};
    if (length < 0 || (size_t)length >= sizeof path) {
        fail(&reader, "the path is too long");
    } else if ((reader.file = fopen(path, "rb")) == NULL) {
        fail(&reader, "cannot open the file");
    } else {
        parse(&reader, dataset);
        fclose(reader.file);
    }
    if (reader.failure != NULL) {
        fprintf(stderr, "%s/%s: %s\n", folder, name, reader.failure);
        return -1;
    }
    return 0;
}

int dataset_load(struct dataset *dataset, const char *folder) {
    memset(dataset, 0, sizeof *dataset);
    if (read_file(dataset, folder, "digits.bin", read_held_out) != 0 ||
        read_file(dataset, folder, "weights.bin", read_layers) != 0) {
        dataset_free(dataset);
        return -1;
    }
    return 0;
}

int dataset_load_training(struct dataset *dataset, const char *folder) {
    memset(dataset, 0, sizeof *dataset);
    if (read_file(dataset, folder, "digits.bin", read_training) != 0) {
        dataset_free(dataset);
        return -1;
    }
    return 0;
}

void dataset_free(struct dataset *dataset) {
    for (uint32_t i = 0; i < dataset->num_layers; i++) {
        free(dataset->layers[i].weights);
        free(dataset->layers[i].bias);
    }
    free(dataset->labels);
    free(dataset->pixels);
    memset(dataset, 0, sizeof *dataset);
}
