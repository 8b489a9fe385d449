/* The parts of the ocr example that need no network: pictures from files, whole and broken; boxes, crops and the order
 * of reading; the text of an answer; and files of networks, whole and broken.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "check.h"
#include "crop.h"
#include "image.h"
#include "inflate.h"
#include "model_file.h"
#include "text.h"

#ifndef OCR_DATA_DIR
#define OCR_DATA_DIR "."
#endif

enum { SIDE = 96 };

static float map[SIDE * SIDE];

static void check_near(float actual, float expected, float reach) {
    if (!(fabsf(actual - expected) <= reach)) {
        printf("%g, expected %g within %g\n", (double)actual, (double)expected, (double)reach);
        CHECK(false);
    }
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* ---- Pictures ---- */

static void test_pnm(void) {
    static const uint8_t grey[] = "P5\n# a comment\n3 2 255\n\0\1\2\3\4\5", coloured[] = "P6 1 1 255 abc";
    struct image image;
    CHECK(image_parse(&image, grey, sizeof grey - 1) == NULL);
    CHECK(image.width == 3 && image.height == 2);
    for (int i = 0; i < 18; i++) {
        CHECK_EQ(image.pixels[i], i / 3);
    }
    image_free(&image);
    CHECK(image_parse(&image, coloured, sizeof coloured - 1) == NULL);
    CHECK_EQ(memcmp(image.pixels, "abc", 3), 0);
    image_free(&image);
    for (size_t count = 0; count < sizeof grey - 1; count++) {
        CHECK(image_parse(&image, grey, count) != NULL && image.pixels == NULL);
    }
    static const char *const wrong[] = {"P5 0 1 255 ", "P5 1 1 65535 ab", "P5 99999 99999 255 a", "P5 -1 1 255 a",
                                        "P5 4294967297 1 255 a", "P2 1 1 255 1", "GIF89a........"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(image_parse(&image, (const uint8_t *)wrong[i], strlen(wrong[i])) != NULL && image.pixels == NULL);
    }
}

/* As zlib writes them: stored, with the codes of the standard, and a distance that reaches before the beginning. */
static void test_inflate(void) {
    static const uint8_t stored[] = {0x78, 0x01, 0x01, 0x03, 0x00, 0xfc, 0xff, 'a', 'b', 'c'};
    static const uint8_t repeated[] = {0x78, 0x9c, 0x4b, 0x4c, 0xc4, 0x04, 0x00}; /* 20 times "a" */
    static const uint8_t too_far[] = {0x78, 0x9c, 0x03, 0x02, 0x00};
    uint8_t out[32];
    CHECK(inflate_zlib(stored, sizeof stored, out, 3) && memcmp(out, "abc", 3) == 0);
    CHECK(!inflate_zlib(stored, sizeof stored, out, 2) && !inflate_zlib(stored, sizeof stored, out, 4));
    CHECK(inflate_zlib(repeated, sizeof repeated, out, 20) && memcmp(out, "aaaaaaaaaaaaaaaaaaaa", 20) == 0);
    for (size_t count = 0; count < sizeof repeated - 1; count++) {
        CHECK(!inflate_zlib(repeated, count, out, 20));
    }
    CHECK(!inflate_zlib(too_far, sizeof too_far, out, 32));
}

static uint8_t *read_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 20);
    CHECK(file != NULL && bytes != NULL);
    *count = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void test_png(void) {
    struct image image;
    size_t count;
    uint8_t *bytes = read_file(OCR_DATA_DIR "/page.png", &count);
    CHECK(image_parse(&image, bytes, count) == NULL);
    CHECK(image.width == 800 && image.height == 1056);
    uint64_t dark = 0;
    for (size_t i = 0; i < 800 * 1056 * 3; i++) {
        dark += image.pixels[i] < 128;
    }
    CHECK(image.pixels[0] > 200 && dark > 30000 && dark < 300000);
    image_free(&image);
    for (size_t cut = 0; cut < count - 12; cut += 1 + count / (size_t)scale(200)) {
        CHECK(image_parse(&image, bytes, cut) != NULL && image.pixels == NULL);
    }
    uint32_t state = 1;
    for (int i = 0; i < scale(200); i++) { /* a picture or a reason, and nothing beyond the memory */
        const size_t at = 8 + next_random(&state) % (count - 8);
        const uint8_t before = bytes[at];
        bytes[at] = (uint8_t)next_random(&state);
        const char *wrong = image_parse(&image, bytes, count);
        CHECK((wrong == NULL) == (image.pixels != NULL));
        image_free(&image);
        bytes[at] = before;
    }
    free(bytes);
    CHECK(image_load(&image, OCR_DATA_DIR "/there is none") != 0);
    CHECK(image_load(&image, OCR_DATA_DIR) != 0); /* a folder */
}

/* ---- Boxes ---- */

/* Draws a rectangle around a middle, `slant` from the horizontal. */
static void draw(float x, float y, float length, float thickness, double slant, float probability) {
    const float c = (float)cos(slant), s = (float)sin(slant);
    for (int32_t v = 0; v < SIDE; v++) {
        for (int32_t u = 0; u < SIDE; u++) {
            const float dx = (float)u - x, dy = (float)v - y;
            if (fabsf(dx * c + dy * s) <= length / 2 && fabsf(dy * c - dx * s) <= thickness / 2) {
                map[v * SIDE + u] = probability;
            }
        }
    }
}

static void test_one_box(double slant) {
    struct box *boxes;
    const float length = 40, thickness = 10;
    memset(map, 0, sizeof map);
    draw(48, 40, length, thickness, slant, 0.9F);
    CHECK_EQ(boxes_find(map, SIDE, SIDE, &boxes), 1);
    /* Larger by area x 1.6 / perimeter on each side; and the map was made one pixel wider. */
    const float growth = length * thickness * 1.6F / (2 * (length + thickness));
    check_near(box_length(&boxes[0]), length + 2 * growth, 3);
    check_near(box_thickness(&boxes[0]), thickness + 2 * growth, 3);
    const struct point *c = boxes[0].corners;
    check_near((c[0].x + c[2].x) / 2, 48.5F, 1);
    check_near((c[0].y + c[2].y) / 2, 40.5F, 1);
    check_near((float)atan2((double)(c[1].y - c[0].y), (double)(c[1].x - c[0].x)), (float)slant, 0.05F);
    CHECK(boxes[0].score > 0.7F && boxes[0].score <= 0.9F);
    free(boxes);
}

static void test_boxes(void) {
    struct box *boxes;
    test_one_box(0);
    test_one_box(0.3);
    test_one_box(-0.4);
    test_one_box(1.5707963); /* downwards */

    memset(map, 0, sizeof map);
    CHECK_EQ(boxes_find(map, SIDE, SIDE, &boxes), 0);
    free(boxes);
    draw(20, 20, 30, 8, 0, 0.4F);    /* hardly probable */
    draw(20, 70, 0.5F, 0.5F, 0, 1);  /* a speck */
    draw(95, 95, 40, 8, 0, 0.9F);    /* at the border */
    draw(70, 20, 30, 8, 0, 0.8F);
    CHECK_EQ(boxes_find(map, SIDE, SIDE, &boxes), 2);
    free(boxes);
    for (int i = 0; i < SIDE * SIDE; i++) {
        map[i] = 1;
    }
    CHECK_EQ(boxes_find(map, SIDE, SIDE, &boxes), 1);
    check_near(boxes[0].score, 1, 0);
    free(boxes);
    CHECK_EQ(boxes_find(map, 1, 1, &boxes), 0);
    free(boxes);
    uint32_t state = 2;
    for (int i = 0; i < SIDE * SIDE; i++) {
        map[i] = (float)(next_random(&state) % 100) / 100;
    }
    boxes_find(map, SIDE, SIDE, &boxes);
    free(boxes);
}

static void test_rectangle(void) {
    struct point points[12] = {{3, 4}, {3, 4}, {3, 4}, {3, 4}};
    struct box box = smallest_rectangle(points, 4);
    check_near(box_length(&box) + box_thickness(&box), 0, 0);
    for (int i = 0; i < 4; i++) { /* in one line */
        points[i] = (struct point){(float)i, 2 * (float)i};
    }
    box = smallest_rectangle(points, 4);
    check_near(box_length(&box) * box_thickness(&box), 0, 1e-3F);
    check_near(fmaxf(box_length(&box), box_thickness(&box)), 3 * sqrtf(5), 1e-3F);
    const struct point diamond[4] = {{1, 0}, {0, 1}, {1, 2}, {2, 1}};
    memcpy(points, diamond, sizeof diamond);
    box = smallest_rectangle(points, 4);
    check_near(box_length(&box), sqrtf(2), 1e-3F);
    check_near(box_thickness(&box), sqrtf(2), 1e-3F);
}

static struct box box_at(float x, float y, float width, float height) {
    return (struct box){{{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}, 1};
}

static void test_order(void) {
    struct box boxes[] = {box_at(50, 42, 30, 10), box_at(0, 80, 30, 10), box_at(90, 1, 30, 10),
                          box_at(0, 40, 30, 10),  box_at(0, 3, 30, 10),  box_at(90, 38, 30, 10)};
    static const float expected[][2] = {{0, 3}, {90, 1}, {0, 40}, {50, 42}, {90, 38}, {0, 80}};
    boxes_sort(boxes, 6);
    /* The second and third of a row may stand a little higher: what counts is where they lie beside each other. */
    for (int i = 0; i < 6; i++) {
        check_near(boxes[i].corners[0].x, expected[i][0], 0);
        check_near(boxes[i].corners[0].y, expected[i][1], 0);
    }
    boxes_sort(NULL, 0);
}

/* ---- Crops ---- */

static void test_crop(void) {
    enum { WIDTH = 8, HEIGHT = 6, STRIDE = 10 };
    struct image image;
    float planes[3 * STRIDE * HEIGHT], turned[3 * STRIDE * HEIGHT];
    const struct canvas canvas = {planes, WIDTH, HEIGHT, STRIDE}, other = {turned, WIDTH, HEIGHT, STRIDE};
    CHECK(image_allocate(&image, WIDTH, HEIGHT) != NULL);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        image.pixels[3 * i] = (uint8_t)i;
        image.pixels[3 * i + 1] = (uint8_t)(100 + i);
        image.pixels[3 * i + 2] = (uint8_t)(200 + i);
    }
    const struct box whole = box_at(0, 0, WIDTH, HEIGHT);
    crop(&image, &whole, false, &canvas);
    crop(&image, &whole, true, &other);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < STRIDE; x++) {
            for (int c = 0; c < 3; c++) { /* blue comes first */
                const float *row = planes + (c * HEIGHT + y) * STRIDE;
                const int pixel = image.pixels[3 * (y * WIDTH + (x < WIDTH ? x : 0)) + 2 - c];
                check_near(row[x], x < WIDTH ? (float)pixel / 127.5F - 1 : 0, 1e-5F);
                if (x < WIDTH) {
                    check_near(turned[(c * HEIGHT + HEIGHT - 1 - y) * STRIDE + WIDTH - 1 - x], row[x], 1e-5F);
                }
            }
        }
    }
    const struct canvas one = {planes, 1, 1, 1}; /* the mean */
    crop(&image, &whole, false, &one);
    check_near(planes[2], 23.5F / 127.5F - 1, 1e-5F);
    const struct box outside = box_at(-50, -50, 20, 20);
    crop(&image, &outside, false, &one);
    check_near(planes[2], -1, 1e-5F);
    image_free(&image);
}

/* ---- Text ---- */

static void test_text(void) {
    static const char lines[] = "a\n\xc3\xa9\n \n";
    /* Nothing, a, a, nothing, a, e with an accent, the same, a space, a class that has no character. */
    static const int classes[] = {0, 1, 1, 0, 1, 2, 2, 3, 4};
    enum { STEPS = 9, CLASSES = 5 };
    float probabilities[STEPS * CLASSES] = {0};
    char text[16];
    struct alphabet alphabet = alphabet_of(lines, sizeof lines - 1);
    CHECK_EQ(alphabet.count, 3);
    for (int i = 0; i < STEPS; i++) {
        probabilities[i * CLASSES + classes[i]] = i == 1 ? 0.5F : 1;
    }
    check_near(text_decode(&alphabet, probabilities, STEPS, CLASSES, text, sizeof text), 4.5F / 5, 1e-6F);
    CHECK_EQ(strcmp(text, "aa\xc3\xa9 "), 0);
    text_decode(&alphabet, probabilities, STEPS, CLASSES, text, 4); /* the accented one does not fit any more */
    CHECK_EQ(strcmp(text, "aa "), 0);
    text_decode(&alphabet, probabilities, STEPS, CLASSES, text, 1);
    CHECK_EQ(strcmp(text, ""), 0);
    check_near(text_decode(&alphabet, probabilities, 1, CLASSES, text, sizeof text), 0, 0);
    CHECK_EQ(strcmp(text, ""), 0);
    alphabet_free(&alphabet);
}

/* ---- Files of networks ---- */

/* A network that sees pictures of 3 planes, adds a constant and leaves out what is below 0. */
static size_t write_networks(int64_t *words) {
    static const float one[16] = {1};
    const int64_t binary[] = {sizeof(weir_binary_desc), WEIR_BINARY_ADD, 0};
    const int64_t eltwise[] = {sizeof(weir_eltwise_desc), WEIR_ELTWISE_RELU, 0};
    size_t n = 0, constant;
    memcpy(&words[n++], "WEIRNETS", 8);
    words[n++] = 1;
    words[n++] = 8;
    memcpy(&words[n++], "a\nb\nc\n\0\0", 8);
    memcpy(&words[n++], "plus\0\0\0\0", 8);
    words[n++] = 4; /* the unit */
    words[n++] = 5;
    const int64_t input[] = {MODEL_INPUT, WEIR_F32, 4, 1, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 4};
    memcpy(words + n, input, sizeof input);
    n += sizeof input / 8;
    const int64_t number[] = {MODEL_CONSTANT, WEIR_F32, 1, 1};
    memcpy(words + n, number, sizeof number);
    n += sizeof number / 8;
    constant = n++;
    for (int i = 0; i < 2; i++) {
        words[n++] = MODEL_KERNEL;
        memcpy(&words[n++], i == 0 ? "binary\0\0" : "eltwise\0", 8);
        words[n++] = 0;
        words[n++] = 3;         /* words of settings */
        words[n++] = i == 0 ? 2 : 1; /* inputs */
        words[n++] = 1;
        words[n++] = 0;
        memcpy(words + n, i == 0 ? binary : eltwise, sizeof binary);
        n += 3;
        words[n++] = i == 0 ? 0 : 2;
        if (i == 0) {
            words[n++] = 1;
        }
    }
    words[n++] = MODEL_OUTPUT;
    words[n++] = 3;
    n = (n + 7) / 8 * 8;
    words[constant] = (int64_t)(8 * n);
    memcpy(words + n, one, sizeof one);
    return n + sizeof one / 8;
}

/* A copy that a model can take. */
static unsigned char *copy_of(const int64_t *words, size_t count) {
    unsigned char *copy = aligned_alloc(64, (8 * count + 64) / 64 * 64);
    CHECK(copy != NULL);
    memcpy(copy, words, 8 * count);
    return copy;
}

static void test_networks(void) {
    static const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 32, 1 << 20, 63, 7};
    int64_t words[256] = {0};
    struct model model;
    const size_t count = write_networks(words);
    CHECK(count < 256 && model_parse(&model, copy_of(words, count), 8 * count) == NULL);
    const struct model_network *network = model_find(&model, "plus");
    CHECK(network != NULL && model_find(&model, "minus") == NULL);
    CHECK(network->num_items == 5 && network->num_values == 4 && network->items[1].desc.dims[0] == 1);
    CHECK_EQ(model_number(network, network->items[0].numbers + 6, 40, 80), 40);
    CHECK_EQ(model_number(network, network->items[0].numbers + 9, 40, 80), 80);
    model_free(&model);
    for (size_t cut = 0; cut < count; cut++) { /* the constant's element is in the first word behind the others */
        const char *wrong = model_parse(&model, copy_of(words, count), 8 * cut);
        CHECK((wrong != NULL) == (cut < count - 7));
        model_free(&model);
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t before = words[i];
        for (size_t e = 0; e < sizeof extremes / sizeof extremes[0]; e++) {
            words[i] = extremes[e];
            (void)model_parse(&model, copy_of(words, count), 8 * count);
            model_free(&model);
        }
        words[i] = before;
    }
    CHECK(model_load(&model, OCR_DATA_DIR "/there is none") != 0);
    CHECK(model_load(&model, OCR_DATA_DIR "/page.png") != 0);
    CHECK(model_load(&model, OCR_DATA_DIR) != 0);
}

int main(void) {
    test_pnm();
    test_inflate();
    test_png();
    test_boxes();
    test_rectangle();
    test_order();
    test_crop();
    test_text();
    test_networks();
    return 0;
}
