/* Draws what was read where it was read.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_PICTURE_H
#define OCR_PICTURE_H

#include "reader.h"

/* Writes an SVG file: boxes, and in each its text. Returns 0, or prints what is wrong and returns 1. */
int picture_write_svg(const struct page *page, const struct image *image, const char *path);

#endif
