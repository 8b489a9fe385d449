/* Parts of a picture as networks want to see them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_CROP_H
#define OCR_CROP_H

#include <stdbool.h>
#include <stdint.h>

#include "boxes.h"
#include "image.h"

/* Where to: 3 planes, blue, green and red from -1 to 1, of rows of `stride` numbers. */
struct canvas {
    float *planes;
    int32_t width, height; /* that the part takes up */
    int32_t stride;        /* what is left of a row becomes 0 */
};

/* Draws the part of the picture in the box, without its slant; `turned`: upside down. Rows from begin to end only. */
void crop_rows(const struct image *image, const struct box *box, bool turned, const struct canvas *canvas,
               int32_t begin, int32_t end);
void crop(const struct image *image, const struct box *box, bool turned, const struct canvas *canvas);

#endif
