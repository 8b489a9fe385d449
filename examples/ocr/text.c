/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct alphabet alphabet_of(const char *text, size_t bytes) {
    const char *end = text + bytes;
    struct alphabet alphabet = {malloc((bytes + 1) * sizeof(char *)), malloc((bytes + 1) * sizeof(size_t)), 0};
    if (alphabet.characters == NULL || alphabet.lengths == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (const char *line = text, *next; line < end && (next = memchr(line, '\n', (size_t)(end - line))) != NULL;
         line = next + 1) {
        alphabet.characters[alphabet.count] = line;
        alphabet.lengths[alphabet.count++] = (size_t)(next - line);
    }
    return alphabet;
}

void alphabet_free(struct alphabet *alphabet) {
    free(alphabet->characters);
    free(alphabet->lengths);
    *alphabet = (struct alphabet){0};
}

static size_t most_probable(const float *probabilities, size_t classes) {
    size_t best = 0;
    for (size_t i = 1; i < classes; i++) {
        best = probabilities[i] > probabilities[best] ? i : best;
    }
    return best;
}

float text_decode(const struct alphabet *alphabet, const float *probabilities, size_t steps, size_t classes, char *text,
                  size_t capacity) {
    size_t length = 0, count = 0, before = 0;
    float sum = 0;
    for (size_t step = 0; step < steps; step++, probabilities += classes) {
        const size_t class = most_probable(probabilities, classes);
        if (class != before && class != 0) {
            const size_t bytes = class <= alphabet->count ? alphabet->lengths[class - 1] : 0;
            if (length + bytes < capacity) {
                memcpy(text + length, bytes > 0 ? alphabet->characters[class - 1] : "", bytes);
                length += bytes;
            }
            sum += probabilities[class];
            count++;
        }
        before = class;
    }
    if (capacity > 0) {
        text[length] = '\0';
    }
    return count > 0 ? sum / (float)count : 0;
}
