/* From a map of probabilities, how likely each pixel belongs to writing, to boxes around lines of text.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_BOXES_H
#define OCR_BOXES_H

#include <stddef.h>
#include <stdint.h>

struct point {
    float x, y;
};

/* A parallelogram; its first side goes along the line of text. */
struct box {
    struct point corners[4]; /* of the text: where it begins above, ends above, ends below, begins below */
    float score;             /* mean probability inside */
};

/* Finds the boxes in a map of width x height, in its pixels. *out_boxes is to be freed; the result is their number. */
size_t boxes_find(const float *map, int32_t width, int32_t height, struct box **out_boxes);

/* Sorts them into the order of reading: rows from above, and each from the left. */
void boxes_sort(struct box *boxes, size_t count);

/* The lengths of the first two sides, along and across the line. */
float box_length(const struct box *box);
float box_thickness(const struct box *box);

/* The smallest rectangle around at least one point. Behind the points is room for twice as many; all are changed. */
struct box smallest_rectangle(struct point *points, size_t count);

#endif
