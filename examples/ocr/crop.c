/* Each number is the mean of a few places of the picture, so many that none in between is left out; a place is a mean
 * of the four pixels around it. Beyond the border the picture goes on as it ends.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "crop.h"

#include <math.h>

enum { MOST_SAMPLES = 8 };

static int32_t within(int32_t i, int32_t count) {
    return i < 0 ? 0 : i >= count ? count - 1 : i;
}

static void add_place(const struct image *image, float x, float y, float *colour) {
    x = fminf(fmaxf(x - 0.5F, 0), (float)(image->width - 1));
    y = fminf(fmaxf(y - 0.5F, 0), (float)(image->height - 1));
    const int32_t left = (int32_t)x, top = (int32_t)y;
    const float right_part = x - (float)left, bottom_part = y - (float)top;
    const size_t columns[2] = {(size_t)left, (size_t)within(left + 1, image->width)};
    const size_t rows[2] = {(size_t)top, (size_t)within(top + 1, image->height)};
    const uint8_t *pixels[4];
    for (size_t i = 0; i < 4; i++) {
        pixels[i] = image->pixels + 3 * (rows[i / 2] * (size_t)image->width + columns[i % 2]);
    }
    for (size_t c = 0; c < 3; c++) {
        const float above = (float)pixels[0][c] + right_part * (float)(pixels[1][c] - pixels[0][c]);
        const float below = (float)pixels[2][c] + right_part * (float)(pixels[3][c] - pixels[2][c]);
        colour[c] += above + bottom_part * (below - above);
    }
}

static int32_t samples_for(float step) {
    return within((int32_t)ceilf(step - 0.01F) - 1, MOST_SAMPLES) + 1;
}

void crop_rows(const struct image *image, const struct box *box, bool turned, const struct canvas *canvas,
               int32_t begin, int32_t end) {
    const struct point *corners = box->corners, origin = corners[turned ? 2 : 0];
    const struct point along = {(corners[turned ? 3 : 1].x - origin.x) / (float)canvas->width,
                                (corners[turned ? 3 : 1].y - origin.y) / (float)canvas->width};
    const struct point across = {(corners[turned ? 1 : 3].x - origin.x) / (float)canvas->height,
                                 (corners[turned ? 1 : 3].y - origin.y) / (float)canvas->height};
    const int32_t columns = samples_for(hypotf(along.x, along.y)), rows = samples_for(hypotf(across.x, across.y));
    const float scale = 2 / (255 * (float)(columns * rows));
    const size_t plane = (size_t)canvas->stride * (size_t)canvas->height;
    for (int32_t y = begin; y < end; y++) {
        float *row = canvas->planes + (size_t)y * (size_t)canvas->stride;
        for (int32_t x = 0; x < canvas->width; x++) {
            float colour[3] = {0};
            for (int32_t i = 0; i < columns * rows; i++) {
                const float a = (float)x + ((float)(i % columns) + 0.5F) / (float)columns;
                const float b = (float)y + ((float)(i / columns) + 0.5F) / (float)rows;
                add_place(image, origin.x + a * along.x + b * across.x, origin.y + a * along.y + b * across.y, colour);
            }
            for (size_t c = 0; c < 3; c++) {
                row[(2 - c) * plane + (size_t)x] = colour[c] * scale - 1;
            }
        }
        for (int32_t x = canvas->width; x < canvas->stride; x++) {
            row[x] = row[plane + (size_t)x] = row[2 * plane + (size_t)x] = 0;
        }
    }
}

void crop(const struct image *image, const struct box *box, bool turned, const struct canvas *canvas) {
    crop_rows(image, box, turned, canvas, 0, canvas->height);
}
