/* The smallest rectangle around points lies along a side of their convex hull.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <math.h>
#include <stdlib.h>

#include "boxes.h"

static int by_place(const void *a, const void *b) {
    const struct point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->y > q->y) - (p->y < q->y);
}

static float turn(struct point a, struct point b, struct point c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/* The hull takes the place of the points (Andrew's monotone chain); the result is how many it has. It needs the room
 * behind them. */
static size_t hull(struct point *points, size_t count) {
    struct point *chain = points + count;
    size_t length = 0;
    qsort(points, count, sizeof *points, by_place);
    for (int half = 0; half < 2; half++) {
        const size_t begin = length;
        for (size_t i = 0; i < count; i++) {
            const struct point next = points[half == 0 ? i : count - 1 - i];
            while (length >= begin + 2 && turn(chain[length - 2], chain[length - 1], next) <= 0) {
                length--;
            }
            chain[length++] = next;
        }
        length--; /* the last one begins the other half */
    }
    for (size_t i = 0; i < length; i++) {
        points[i] = chain[i];
    }
    return length == 0 ? 1 : length;
}

/* What the points take up along a direction of length 1, and across it. */
static struct box around(const struct point *points, size_t count, struct point along) {
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++) {
        const struct point p = points[i];
        const float at[2] = {p.x * along.x + p.y * along.y, p.y * along.x - p.x * along.y};
        for (int d = 0; d < 2; d++) {
            low[d] = fminf(low[d], at[d]);
            high[d] = fmaxf(high[d], at[d]);
        }
    }
    const float corners[4][2] = {{low[0], low[1]}, {high[0], low[1]}, {high[0], high[1]}, {low[0], high[1]}};
    struct box box = {.score = 0};
    for (int i = 0; i < 4; i++) {
        box.corners[i].x = corners[i][0] * along.x - corners[i][1] * along.y;
        box.corners[i].y = corners[i][0] * along.y + corners[i][1] * along.x;
    }
    return box;
}

/* The same direction or one at right angles to it: the one that goes most to the right. */
static struct point rightwards(struct point d) {
    if (fabsf(d.y) > fabsf(d.x)) {
        d = (struct point){d.y, -d.x};
    }
    return d.x < 0 ? (struct point){-d.x, -d.y} : d;
}

struct box smallest_rectangle(struct point *points, size_t count) {
    const size_t sides = hull(points, count);
    struct box best = around(points, sides, (struct point){1, 0});
    float least = box_length(&best) * box_thickness(&best);
    for (size_t i = 0; i < sides; i++) {
        const struct point a = points[i], b = points[(i + 1) % sides];
        const float length = hypotf(b.x - a.x, b.y - a.y);
        if (length > 0) {
            const struct point along = rightwards((struct point){(b.x - a.x) / length, (b.y - a.y) / length});
            const struct box box = around(points, sides, along);
            const float area = box_length(&box) * box_thickness(&box);
            if (area < least) {
                least = area;
                best = box;
            }
        }
    }
    return best;
}
