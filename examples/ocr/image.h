/* A picture in memory, from a PNG, PPM or PGM file.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_IMAGE_H
#define OCR_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct image {
    int32_t width, height;
    uint8_t *pixels; /* rows of red, green, blue */
};

enum { IMAGE_MAX_SIDE = 16384 };

/* Reads a file. Returns 0, or prints what is wrong with the file and returns 1. */
int image_load(struct image *image, const char *path);

/* The same, of a file that is in memory. Returns what is wrong, or NULL. */
const char *image_parse(struct image *image, const uint8_t *bytes, size_t count);

/* The parts of image_parse: for PPM and PGM, and for PNG. */
const char *pnm_parse(struct image *image, const uint8_t *bytes, size_t count);
const char *png_parse(struct image *image, const uint8_t *bytes, size_t count);

/* Memory for a picture of that size; NULL if there is none, or the size is not one of a picture. */
uint8_t *image_allocate(struct image *image, uint32_t width, uint32_t height);

void image_free(struct image *image);

#endif
