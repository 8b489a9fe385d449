/* Reads weights.bin; convert.py describes its format.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "weights.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum { HEAD = 16, ENTRY = 16, ALIGNMENT = 64, COUNT = WEIGHTS_HALVES * WEIGHTS_TENSORS, MOST_BYTES = 64 << 20 };

static uint32_t u32(const unsigned char *b) {
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Memory for the weights, in large pages where the system gives them. A step reads 1.2 MB of weights, 300 ordinary
 * pages; after a pause nothing is left in the processor's caches of where these are, and to find them again takes as
 * long as to read them. */
static unsigned char *allocate(size_t bytes) {
    const size_t page = 2 << 20, whole = (bytes + page - 1) / page * page;
    unsigned char *memory = aligned_alloc(page, whole);
#ifdef MADV_HUGEPAGE
    if (memory != NULL) {
        madvise(memory, whole, MADV_HUGEPAGE); /* only a wish */
    }
#endif
    return memory;
}

/* The whole file, in memory that is aligned like the tensors in it; NULL if it cannot be read. */
static unsigned char *read_file(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    unsigned char *memory = NULL;
    long size = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (size > 0 && size <= MOST_BYTES && fseek(file, 0, SEEK_SET) == 0) {
        memory = allocate((size_t)size);
    }
    if (memory != NULL && fread(memory, 1, (size_t)size, file) != (size_t)size) {
        free(memory);
        memory = NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    *out_bytes = memory != NULL ? (size_t)size : 0;
    return memory;
}

/* Finds a tensor whose entry of the table is at `entry` and whose elements begin at *at, and moves *at behind them. */
static bool find_array(struct weights_array *array, const unsigned char *entry, unsigned char *memory, size_t bytes,
                       size_t *at) {
    size_t size = sizeof(float);
    array->desc = (weir_tensor_desc){.dtype = WEIR_F32, .rank = u32(entry)};
    if (array->desc.rank < 1 || array->desc.rank > 3) {
        return false;
    }
    for (uint32_t i = 0; i < array->desc.rank; i++) {
        const uint32_t dim = u32(entry + 4 + 4 * i);
        if (dim < 1 || dim > bytes / size) {
            return false;
        }
        array->desc.dims[i] = dim;
        size *= dim;
    }
    if (*at > bytes || size > bytes - *at) {
        return false;
    }
    array->data = (float *)(void *)(memory + *at);
    *at = aligned(*at + size);
    return true;
}

int weights_load(struct weights *weights, const char *path) {
    size_t bytes;
    unsigned char *memory = read_file(path, &bytes);
    const size_t table = HEAD + COUNT * ENTRY;
    size_t at = aligned(table);
    bool good = memory != NULL && bytes >= table && memcmp(memory, "WEIRVOIC", 8) == 0 && u32(memory + 8) == COUNT;
    for (int i = 0; good && i < COUNT; i++) {
        struct weights_array *array = &weights->arrays[i / WEIGHTS_TENSORS][i % WEIGHTS_TENSORS];
        good = find_array(array, memory + HEAD + i * ENTRY, memory, bytes, &at);
    }
    if (!good) {
        fprintf(stderr, "%s: %s\n", path, memory == NULL ? "cannot be read" : "is not a file of weights");
        free(memory);
        return 1;
    }
    weights->memory = memory;
    return 0;
}

void weights_free(struct weights *weights) {
    free(weights->memory);
}
