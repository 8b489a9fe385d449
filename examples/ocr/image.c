/* Files, and the formats PPM and PGM: "P6" or "P5", width, height and the greatest value as text, and bytes.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "image.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *image_allocate(struct image *image, uint32_t width, uint32_t height) {
    *image = (struct image){0};
    if (width < 1 || height < 1 || width > IMAGE_MAX_SIDE || height > IMAGE_MAX_SIDE) {
        return NULL;
    }
    image->width = (int32_t)width;
    image->height = (int32_t)height;
    image->pixels = malloc((size_t)width * height * 3);
    return image->pixels;
}

void image_free(struct image *image) {
    free(image->pixels);
    *image = (struct image){0};
}

/* The next number of a head, behind spaces and comments. */
static bool read_number(const uint8_t *bytes, size_t count, size_t *at, uint32_t *number) {
    while (*at < count && (strchr(" \t\r\n", bytes[*at]) != NULL || bytes[*at] == '#')) {
        if (bytes[*at] == '#') {
            while (*at < count && bytes[*at] != '\n') {
                ++*at;
            }
        } else {
            ++*at;
        }
    }
    const size_t begin = *at;
    *number = 0;
    while (*at < count && bytes[*at] >= '0' && bytes[*at] <= '9' && *number < 100000) {
        *number = *number * 10 + (uint32_t)(bytes[(*at)++] - '0');
    }
    return *at > begin;
}

const char *pnm_parse(struct image *image, const uint8_t *bytes, size_t count) {
    const size_t channels = bytes[1] == '6' ? 3 : 1;
    uint32_t width, height, greatest;
    size_t at = 2;
    if (!read_number(bytes, count, &at, &width) || !read_number(bytes, count, &at, &height) ||
        !read_number(bytes, count, &at, &greatest) || at >= count) {
        return "has no complete head";
    }
    at++;
    if (greatest != 255) {
        return "has not one byte for each colour";
    }
    if (image_allocate(image, width, height) == NULL) {
        return "is empty, or too large";
    }
    const size_t pixels = (size_t)width * height;
    if (count - at < pixels * channels) {
        image_free(image);
        return "is cut short";
    }
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *from = bytes + at + i * channels;
        for (size_t c = 0; c < 3; c++) {
            image->pixels[3 * i + c] = from[channels == 3 ? c : 0];
        }
    }
    return NULL;
}

const char *image_parse(struct image *image, const uint8_t *bytes, size_t count) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    *image = (struct image){0};
    if (count > 8 && memcmp(bytes, png, 8) == 0) {
        return png_parse(image, bytes, count);
    }
    if (count > 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6')) {
        return pnm_parse(image, bytes, count);
    }
    return "is neither PNG nor binary PPM or PGM";
}

/* A folder has a size too, of a kind that no file has. */
static const long MOST_BYTES = 1L << 30;

int image_load(struct image *image, const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    size_t count = 0;
    long size = -1;
    *image = (struct image){0};
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (size >= 0 && size <= MOST_BYTES && fseek(file, 0, SEEK_SET) == 0 &&
        (bytes = malloc((size_t)size + 1)) != NULL) {
        count = fread(bytes, 1, (size_t)size, file);
    }
    if (file != NULL) {
        fclose(file);
    }
    const bool good = bytes != NULL && count == (size_t)size;
    const char *wrong = good ? image_parse(image, bytes, count) : "cannot be read";
    free(bytes);
    if (wrong != NULL) {
        fprintf(stderr, "%s: %s\n", path, wrong);
    }
    return wrong != NULL;
}
