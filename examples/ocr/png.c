/* A PNG file is a row of chunks: a size, a name of four letters, so many bytes, and a checksum, which is not looked at.
 * Pictures of 8 bits a channel, grey, coloured or with a palette, without interlacing. Transparent ones lie on white.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "inflate.h"

enum colour { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6 };

struct png {
    uint32_t width, height;
    enum colour colour;
    uint8_t palette[256][3];
    uint8_t *data; /* of all IDAT chunks: compressed */
    size_t data_bytes;
};

static uint32_t u32(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static size_t channels_of(enum colour colour) {
    return colour == RGB ? 3 : colour == RGBA ? 4 : colour == GREY_ALPHA ? 2 : 1;
}

static const char *read_head(struct png *png, const uint8_t *b, size_t size) {
    if (size != 13) {
        return "has no complete head";
    }
    png->width = u32(b);
    png->height = u32(b + 4);
    png->colour = (enum colour)b[9];
    const int known = b[9] == GREY || b[9] == RGB || b[9] == PALETTE || b[9] == GREY_ALPHA || b[9] == RGBA;
    const int simple = b[8] == 8 && known && b[10] == 0 && b[11] == 0 && b[12] == 0;
    return simple ? NULL : "is a PNG of more or less than 8 bits, or interlaced";
}

static const char *read_chunks(struct png *png, const uint8_t *bytes, size_t count) {
    size_t at = 8;
    while (count - at >= 12) {
        const size_t size = u32(bytes + at);
        const uint8_t *name = bytes + at + 4, *content = bytes + at + 8;
        const char *wrong = NULL;
        if (size > count - at - 12) {
            return "is cut short";
        }
        if (memcmp(name, "IHDR", 4) == 0) {
            wrong = read_head(png, content, size);
        } else if (memcmp(name, "PLTE", 4) == 0 && size <= sizeof png->palette) {
            memcpy(png->palette, content, size);
        } else if (memcmp(name, "IDAT", 4) == 0) {
            memcpy(png->data + png->data_bytes, content, size);
            png->data_bytes += size;
        } else if (memcmp(name, "IEND", 4) == 0) {
            return png->width == 0 ? "has no complete head" : NULL;
        }
        if (wrong != NULL) {
            return wrong;
        }
        at += 12 + size;
    }
    return "is cut short";
}

/* Paeth's choice: what is nearest to left + up - corner. */
static int nearest(int left, int up, int corner) {
    const int by_left = abs(up - corner), by_up = abs(left - corner), by_corner = abs(left + up - 2 * corner);
    return by_left <= by_up && by_left <= by_corner ? left : by_up <= by_corner ? up : corner;
}

/* What a row was made smaller by: the difference to its neighbours. Before the first row and column there are zeros. */
static int restore(uint8_t filter, uint8_t *row, const uint8_t *above, size_t bytes, size_t step) {
    for (size_t i = 0; i < bytes && filter != 0; i++) {
        const int left = i < step ? 0 : row[i - step], up = above[i], corner = i < step ? 0 : above[i - step];
        const int guesses[] = {0, left, up, (left + up) / 2, nearest(left, up, corner)};
        if (filter >= sizeof guesses / sizeof guesses[0]) {
            return 1;
        }
        row[i] = (uint8_t)(row[i] + guesses[filter]);
    }
    return 0;
}

static void write_pixel(const struct png *png, const uint8_t *from, uint8_t *to) {
    const size_t channels = channels_of(png->colour);
    const int alpha = png->colour == RGBA ? from[3] : png->colour == GREY_ALPHA ? from[1] : 255;
    for (size_t c = 0; c < 3; c++) {
        const int value = png->colour == PALETTE ? png->palette[from[0]][c] : from[channels >= 3 ? c : 0];
        to[c] = (uint8_t)((value * alpha + 255 * (255 - alpha) + 127) / 255);
    }
}

static const char *decode(const struct png *png, struct image *image) {
    const size_t channels = channels_of(png->colour);
    if (image_allocate(image, png->width, png->height) == NULL) {
        return "is empty, or too large";
    }
    const size_t row_bytes = png->width * channels;
    uint8_t *rows = malloc((row_bytes + 1) * png->height), *zeros = calloc(row_bytes, 1);
    const char *wrong = NULL;
    if (rows == NULL || zeros == NULL) {
        wrong = "does not fit into memory";
    } else if (!inflate_zlib(png->data, png->data_bytes, rows, (row_bytes + 1) * png->height)) {
        wrong = "is broken";
    }
    for (uint32_t y = 0; wrong == NULL && y < png->height; y++) {
        uint8_t *row = rows + y * (row_bytes + 1) + 1;
        if (restore(row[-1], row, y == 0 ? zeros : row - row_bytes - 1, row_bytes, channels) != 0) {
            wrong = "is broken";
            break;
        }
        for (uint32_t x = 0; x < png->width; x++) {
            write_pixel(png, row + x * channels, image->pixels + 3 * ((size_t)y * png->width + x));
        }
    }
    free(zeros);
    free(rows);
    if (wrong != NULL) {
        image_free(image);
    }
    return wrong;
}

const char *png_parse(struct image *image, const uint8_t *bytes, size_t count) {
    struct png png = {.data = malloc(count)};
    const char *wrong = png.data == NULL ? "does not fit into memory" : read_chunks(&png, bytes, count);
    if (wrong == NULL) {
        wrong = decode(&png, image);
    }
    free(png.data);
    return wrong;
}
