/* Three networks: one finds text on the whole page; then, line by line, one sees whether it is upside down, and one
 * reads it. Lines do not depend on each other: each is a task of a group, and the networks inside share the threads
 * with the tasks.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/task_group.h>

#include "crop.h"
#include "network.h"
#include "text.h"
#include "weir_check.h"

enum {
    FOLLOW_NS = 20000000,               /* between two calls of a function that is told how far it is */
    PAGE_STEP = 32,                     /* sides of what finds text are multiples of it */
    PAGE_LEAST = 736, PAGE_MOST = 2048, /* a page is made larger or smaller until its sides fit */
    LINE_HEIGHT = 48,
    LINE_STEP = 64, LINE_MOST = 48 * LINE_STEP, /* a program for each step of width */
    TURN_WIDTH = 192
};

/* Less is not believed. */
static const float TURN_LEAST = 0.9F, TEXT_LEAST = 0.5F;

struct reader {
    weir_threadpool *pool;
    weir_engine *engine;
    weir_task_group *group;
    struct network *find, *turn, *read;
    struct alphabet alphabet;
};

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct reader *reader_open(const struct model *model, weir_threadpool *pool) {
    struct reader *reader = calloc(1, sizeof *reader);
    weir_engine_attr *attr;
    if (reader == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    CHECK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    if (pool != NULL) {
        CHECK(weir_engine_attr_set_threadpool(attr, pool));
        CHECK(weir_threadpool_retain(pool));
    }
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &reader->engine));
    weir_engine_attr_destroy(attr);
    CHECK(weir_task_group_create(pool, &reader->group));
    reader->pool = pool;
    reader->find = network_open(model, "detect", reader->engine);
    reader->turn = network_open(model, "turn", reader->engine);
    reader->read = network_open(model, "read", reader->engine);
    reader->alphabet = alphabet_of(model->text, model->text_bytes);
    network_prepare(reader->turn, LINE_HEIGHT, TURN_WIDTH);
    return reader;
}

void reader_close(struct reader *reader) {
    network_close(reader->find);
    network_close(reader->turn);
    network_close(reader->read);
    alphabet_free(&reader->alphabet);
    weir_task_group_release(reader->group);
    weir_engine_release(reader->engine);
    weir_threadpool_release(reader->pool);
    free(reader);
}

void reader_follow(struct reader *reader, weir_progress_fn follow) {
    network_follow(reader->find, follow, follow == NULL ? 0 : FOLLOW_NS);
}

/* ---- Finding ---- */

struct shrinking {
    const struct image *image;
    struct box whole;
    struct canvas canvas;
};

static int32_t shrink_rows(void *arg, int64_t begin, int64_t end, int32_t slot) {
    const struct shrinking *shrinking = arg;
    (void)slot;
    crop_rows(shrinking->image, &shrinking->whole, false, &shrinking->canvas, (int32_t)begin, (int32_t)end);
    return WEIR_OK;
}

static int32_t rounded(float side) {
    const int32_t steps = (int32_t)lroundf(side / PAGE_STEP);
    return PAGE_STEP * (steps < 1 ? 1 : steps);
}

static size_t find_boxes(struct reader *reader, const struct image *image, struct page *page, struct box **boxes) {
    const float width = (float)image->width, height = (float)image->height;
    float scale = fmaxf(1, PAGE_LEAST / fminf(width, height));
    scale = fminf(scale, PAGE_MOST / fmaxf(width, height));
    const int32_t columns = rounded(width * scale), rows = rounded(height * scale);
    const double begin = now_ms();
    network_prepare(reader->find, rows, columns);
    page->compile_ms = now_ms() - begin;
    struct look *look = network_take(reader->find, rows, columns);
    struct shrinking shrinking = {
        .image = image,
        .whole = {{{0, 0}, {width, 0}, {width, height}, {0, height}}, 1},
        .canvas = {look->picture, columns, rows, columns},
    };
    CHECK(weir_parallel_for(reader->pool, rows, NULL, shrink_rows, &shrinking));
    network_run(reader->find, look);
    const size_t count = boxes_find(look->answer, columns, rows, boxes);
    network_give_back(reader->find, look);
    for (size_t i = 0; i < count; i++) {
        for (int c = 0; c < 4; c++) {
            struct point *corner = &(*boxes)[i].corners[c];
            corner->x = (corner->x + 0.5F) * width / (float)columns;
            corner->y = (corner->y + 0.5F) * height / (float)rows;
        }
    }
    boxes_sort(*boxes, count);
    return count;
}

/* ---- Reading ---- */

/* What a line takes up when it is as high as the networks want it. */
static int32_t line_width(const struct line *line) {
    const float width = ceilf(LINE_HEIGHT * box_length(&line->box) / box_thickness(&line->box));
    return width < LINE_MOST ? (int32_t)width : LINE_MOST;
}

static int32_t look_width(const struct line *line) {
    return (line_width(line) + LINE_STEP - 1) / LINE_STEP * LINE_STEP;
}

static bool is_turned(struct reader *reader, const struct image *image, const struct line *line) {
    const int32_t width = line_width(line);
    struct look *look = network_take(reader->turn, LINE_HEIGHT, TURN_WIDTH);
    const struct canvas canvas = {look->picture, width < TURN_WIDTH ? width : TURN_WIDTH, LINE_HEIGHT, TURN_WIDTH};
    crop(image, &line->box, false, &canvas);
    network_run(reader->turn, look);
    const bool turned = look->answer[1] > TURN_LEAST;
    network_give_back(reader->turn, look);
    return turned;
}

struct line_task {
    struct reader *reader;
    const struct image *image;
    struct line *line;
};

static int32_t read_line(void *arg) {
    const struct line_task *task = arg;
    struct reader *reader = task->reader;
    struct line *line = task->line;
    line->turned = is_turned(reader, task->image, line);
    struct look *look = network_take(reader->read, LINE_HEIGHT, look_width(line));
    const struct canvas canvas = {look->picture, line_width(line), LINE_HEIGHT, look->width};
    crop(task->image, &line->box, line->turned, &canvas);
    network_run(reader->read, look);
    line->confidence = text_decode(&reader->alphabet, look->answer, look->rows, look->columns, line->text, LINE_BYTES);
    network_give_back(reader->read, look);
    return WEIR_OK;
}

static int by_width(const void *a, const void *b) {
    return line_width(*(struct line *const *)b) - line_width(*(struct line *const *)a);
}

/* The longest first, so that none is left for one thread at the end. */
static void read_lines(struct reader *reader, const struct image *image, struct page *page) {
    struct line **order = calloc(page->num_lines + 1, sizeof(struct line *));
    if (order == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < page->num_lines; i++) {
        order[i] = &page->lines[i];
    }
    qsort(order, page->num_lines, sizeof(struct line *), by_width);
    for (size_t i = 0; i < page->num_lines; i++) {
        const struct line_task task = {reader, image, order[i]};
        CHECK(weir_task_group_spawn_copy(reader->group, read_line, &task, sizeof task));
    }
    CHECK(weir_task_group_synchronize(reader->group));
    free(order);
}

static void leave_out_doubtful(struct page *page) {
    size_t kept = 0;
    for (size_t i = 0; i < page->num_lines; i++) {
        if (page->lines[i].confidence >= TEXT_LEAST) {
            page->lines[kept++] = page->lines[i];
        }
    }
    page->num_lines = kept;
}

struct page reader_read(struct reader *reader, const struct image *image) {
    struct page page = {0};
    struct box *boxes = NULL;
    const double begin = now_ms();
    page.num_lines = find_boxes(reader, image, &page, &boxes);
    page.lines = calloc(page.num_lines + 1, sizeof *page.lines);
    if (page.lines == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    page.find_ms = now_ms() - begin - page.compile_ms;
    const double found = now_ms();
    for (size_t i = 0; i < page.num_lines; i++) {
        page.lines[i].box = boxes[i];
        network_prepare(reader->read, LINE_HEIGHT, look_width(&page.lines[i]));
    }
    const double prepared = now_ms();
    page.compile_ms += prepared - found;
    read_lines(reader, image, &page);
    page.read_ms = now_ms() - prepared;
    leave_out_doubtful(&page);
    free(boxes);
    return page;
}

void page_free(struct page *page) {
    free(page->lines);
    *page = (struct page){0};
}
