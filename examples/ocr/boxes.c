/* What belongs together: pixels above a threshold that touch. Around each such island lies the smallest rectangle,
 * which grows by as much as the network was taught to shrink it. (Holes in islands, for which OpenCV's contours would
 * give boxes too, are none here.)
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "boxes.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const float THRESHOLD = 0.3F, LEAST_SCORE = 0.5F, GROWTH = 1.6F, LEAST_SIDE = 3;
/* A box that is so much higher than wide holds a line that goes downwards. */
static const float UPRIGHT = 1.5F;

struct search {
    const float *map;
    int32_t width, height;
    uint8_t *marks;       /* 1: writing that no island has yet */
    int32_t *stack;       /* pixels whose neighbours are to be looked at */
    struct point *points; /* the ends of the island's rows, and room for its hull */
    int32_t *row_ends;    /* of the island: first and last pixel of each row */
    struct box *boxes;
    size_t num_boxes, capacity;
};

static float distance(struct point a, struct point b) {
    return hypotf(b.x - a.x, b.y - a.y);
}

float box_length(const struct box *box) {
    return distance(box->corners[0], box->corners[1]);
}

float box_thickness(const struct box *box) {
    return distance(box->corners[0], box->corners[3]);
}

/* Writing, and what lies one to the right of it or below. */
static void mark(struct search *s) {
    for (int32_t y = 0; y < s->height; y++) {
        for (int32_t x = 0; x < s->width; x++) {
            bool writing = false;
            for (int32_t v = y > 0 ? y - 1 : y; v <= y; v++) {
                for (int32_t u = x > 0 ? x - 1 : x; u <= x; u++) {
                    writing |= s->map[(size_t)v * (size_t)s->width + (size_t)u] > THRESHOLD;
                }
            }
            s->marks[(size_t)y * (size_t)s->width + (size_t)x] = writing;
        }
    }
}

/* Takes the island that a pixel is part of off the map; the result is the number of its points. */
static size_t take_island(struct search *s, int32_t start) {
    int32_t depth = 0, top = start / s->width, bottom = top;
    s->stack[depth++] = start;
    s->marks[start] = 0;
    s->row_ends[2 * top] = s->row_ends[2 * top + 1] = start % s->width;
    while (depth > 0) {
        const int32_t pixel = s->stack[--depth], x = pixel % s->width, y = pixel / s->width;
        int32_t *ends = s->row_ends + 2 * y;
        for (; bottom < y; bottom++) {
            s->row_ends[2 * bottom + 2] = INT32_MAX;
            s->row_ends[2 * bottom + 3] = -1;
        }
        ends[0] = x < ends[0] ? x : ends[0];
        ends[1] = x > ends[1] ? x : ends[1];
        for (int32_t v = y > 0 ? y - 1 : y; v <= y + 1 && v < s->height; v++) {
            for (int32_t u = x > 0 ? x - 1 : x; u <= x + 1 && u < s->width; u++) {
                const int32_t next = v * s->width + u;
                if (s->marks[next]) {
                    s->marks[next] = 0;
                    s->stack[depth++] = next;
                }
            }
        }
    }
    size_t count = 0;
    for (int32_t y = top; y <= bottom; y++) {
        for (int end = 0; end < 2; end++) {
            s->points[count++] = (struct point){(float)s->row_ends[2 * y + end], (float)y};
        }
    }
    return count;
}

/* The mean of the map at the pixels inside. */
static float score_of(const struct search *s, const struct box *box) {
    const struct point *c = box->corners;
    const float length = box_length(box), thickness = box_thickness(box);
    float left = c[0].x, right = c[0].x, top = c[0].y, bottom = c[0].y, sum = 0, count = 0;
    for (int i = 1; i < 4; i++) {
        left = fminf(left, c[i].x), right = fmaxf(right, c[i].x);
        top = fminf(top, c[i].y), bottom = fmaxf(bottom, c[i].y);
    }
    for (int32_t y = (int32_t)ceilf(top); (float)y <= bottom && y < s->height; y++) {
        for (int32_t x = (int32_t)ceilf(left); (float)x <= right && x < s->width; x++) {
            if (x < 0 || y < 0) {
                continue;
            }
            const float dx = (float)x - c[0].x, dy = (float)y - c[0].y;
            const float along = (dx * (c[1].x - c[0].x) + dy * (c[1].y - c[0].y)) / length;
            const float across = (dx * (c[3].x - c[0].x) + dy * (c[3].y - c[0].y)) / thickness;
            if (along > -0.5F && along < length + 0.5F && across > -0.5F && across < thickness + 0.5F) {
                sum += s->map[(size_t)y * (size_t)s->width + (size_t)x];
                count++;
            }
        }
    }
    return count > 0 ? sum / count : 0;
}

/* Moves the sides of a rectangle outwards. */
static void grow(struct box *box) {
    struct point *c = box->corners;
    const float length = box_length(box), thickness = box_thickness(box);
    const float by = length * thickness * GROWTH / (2 * (length + thickness));
    const struct point along = {(c[1].x - c[0].x) / length * by, (c[1].y - c[0].y) / length * by};
    const struct point across = {(c[3].x - c[0].x) / thickness * by, (c[3].y - c[0].y) / thickness * by};
    for (int i = 0; i < 4; i++) {
        const float a = i == 1 || i == 2 ? 1 : -1, b = i >= 2 ? 1 : -1;
        c[i].x += a * along.x + b * across.x;
        c[i].y += a * along.y + b * across.y;
    }
}

/* A line that goes downwards begins at the right. */
static void turn_upright(struct box *box) {
    if (box_thickness(box) >= UPRIGHT * box_length(box)) {
        const struct point first = box->corners[0];
        for (int i = 0; i < 3; i++) {
            box->corners[i] = box->corners[i + 1];
        }
        box->corners[3] = first;
    }
}

static void *allocate(void *old, size_t bytes) {
    void *memory = realloc(old, bytes);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static void add_island(struct search *s, size_t num_points) {
    struct box box = smallest_rectangle(s->points, num_points);
    if (fminf(box_length(&box), box_thickness(&box)) < LEAST_SIDE) {
        return;
    }
    box.score = score_of(s, &box);
    if (box.score < LEAST_SCORE) {
        return;
    }
    grow(&box);
    turn_upright(&box);
    if (s->num_boxes == s->capacity) {
        s->capacity = 2 * s->capacity + 16;
        s->boxes = allocate(s->boxes, s->capacity * sizeof *s->boxes);
    }
    s->boxes[s->num_boxes++] = box;
}

size_t boxes_find(const float *map, int32_t width, int32_t height, struct box **out_boxes) {
    const size_t pixels = (size_t)width * (size_t)height, rows = (size_t)height;
    struct search s = {.map = map, .width = width, .height = height};
    s.marks = allocate(NULL, pixels);
    s.stack = allocate(NULL, pixels * sizeof *s.stack);
    s.row_ends = allocate(NULL, 2 * rows * sizeof *s.row_ends);
    s.points = allocate(NULL, 6 * rows * sizeof *s.points);
    mark(&s);
    for (size_t i = 0; i < pixels; i++) {
        if (s.marks[i]) {
            add_island(&s, take_island(&s, (int32_t)i));
        }
    }
    free(s.points);
    free(s.row_ends);
    free(s.stack);
    free(s.marks);
    *out_boxes = s.boxes;
    return s.num_boxes;
}

static struct point middle(const struct box *box) {
    const struct point *c = box->corners;
    return (struct point){(c[0].x + c[2].x) / 2, (c[0].y + c[2].y) / 2};
}

static int from_above(const void *a, const void *b) {
    const float p = middle(a).y, q = middle(b).y;
    return (p > q) - (p < q);
}

static int from_left(const void *a, const void *b) {
    const float p = middle(a).x, q = middle(b).x;
    return (p > q) - (p < q);
}

void boxes_sort(struct box *boxes, size_t count) {
    if (count > 0) {
        qsort(boxes, count, sizeof *boxes, from_above);
    }
    for (size_t begin = 0, end; begin < count; begin = end) {
        const float reach = middle(&boxes[begin]).y + box_thickness(&boxes[begin]) / 2;
        for (end = begin + 1; end < count && middle(&boxes[end]).y < reach; end++) {
        }
        qsort(boxes + begin, end - begin, sizeof *boxes, from_left);
    }
}
