/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a trace is saved to, as a text.
 */

#ifndef WEIR_CTESTS_SAVED_TEXT_H
#define WEIR_CTESTS_SAVED_TEXT_H

#include "check.h"

typedef struct text {
    char *data;
    size_t size;
} text;

static int32_t collect(void *ctx, const void *data, size_t size) {
    text *t = ctx;
    t->data = realloc(t->data, t->size + size + 1);
    CHECK(t->data != NULL);
    memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = 0;
    return WEIR_OK;
}

static long occurrences(const char *in, const char *what) {
    long count = 0;
    for (const char *at = strstr(in, what); at != NULL; at = strstr(at + 1, what)) count++;
    return count;
}

#endif
