/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Convolution, pooling, and steps of recurrent cells.
 */

#include <stdbool.h>
#include <weir/ops.h>

#include "fuzz.h"

/* An axis of windows; signals and images have first ones of one place. */
typedef struct line {
    int64_t size, taps, stride, dilation, begin, end, count;
    bool reflects;
} line;

static bool in_steps(const int64_t *pair) {
    return pair[0] >= 0 && pair[0] <= 1 << 30 && pair[1] >= 0 && pair[1] <= 1 << 30;
}

/* The members of a description, two numbers each, and those of depth: stride, dilation, and padding. */
typedef struct steps {
    const int64_t *strides, *dilations, *begin, *end;
    bool reflects;
    int64_t depth[4];
} steps;

/* Axis i of images and of the slices of volumes, or their depth, -1. */
static bool fill_line(line *l, int64_t size, int64_t taps, int i, const steps *all) {
    int64_t stride = i < 0 ? all->depth[0] : all->strides[i], dilation = i < 0 ? all->depth[1] : all->dilations[i];
    int64_t begin = i < 0 ? all->depth[2] : all->begin[i], end = i < 0 ? all->depth[3] : all->end[i];
    bool reflects = all->reflects;
    *l = (line){size, taps, stride > 0 ? stride : 1, dilation > 0 ? dilation : 1, begin, end, 0, reflects};
    int64_t span = (taps - 1) * l->dilation + 1, room = size + l->begin + l->end;
    if (taps < 1 || room < span) return false;
    if (reflects && (l->begin >= size || l->end >= size)) return false;
    l->count = (room - span) / l->stride + 1;
    return true;
}

/* Where tap `tap` of window `at` is, or -1. */
static int64_t place(const line *l, int64_t at, int64_t tap) {
    int64_t x = at * l->stride + tap * l->dilation - l->begin;
    if (l->reflects) x = x < 0 ? -x : x >= l->size ? 2 * (l->size - 1) - x : x;
    return x < 0 || x >= l->size ? -1 : x;
}

static void draw_steps(draws *d, int axes, int64_t *strides, int64_t *dilations, int64_t *begin, int64_t *end, int64_t most) {
    for (int i = 0; i < axes; i++) {
        strides[i] = draw_int(d, 0, 3);
        dilations[i] = draw_once_in(d, 2) ? draw_int(d, 0, 3) : 0;
        if (most > 0 && draw_once_in(d, 2)) begin[i] = draw_int(d, 0, most), end[i] = draw_int(d, 0, most);
    }
    if (draw_once_in(d, 60)) strides[1] = draw_int(d, -1, 2);
}

static const line ONE = {.size = 1, .taps = 1, .stride = 1, .dilation = 1, .count = 1};

/* Depth, rows and columns of a tensor of this rank. */
static bool fill_lines(line *lines, uint32_t rank, const int64_t *sizes, const int64_t *taps, const steps *all) {
    int axes = (int)rank - 2;
    for (int i = 0; i < 3; i++) lines[i] = ONE;
    for (int i = 0; i < axes; i++) {
        if (!fill_line(&lines[3 - axes + i], sizes[i], taps[i], axes == 3 ? i - 1 : i, all)) return false;
    }
    return true;
}

/* Whether members that count for tensors of a higher rank are set. */
static bool has_more_axes(uint32_t rank, const steps *all) {
    if (rank == 3 && (all->strides[1] || all->dilations[1] || all->begin[1] || all->end[1])) return true;
    return rank < 5 && (all->depth[0] || all->depth[1] || all->depth[2] || all->depth[3]);
}

static bool in_all_steps(const steps *all) {
    return in_steps(all->strides) && in_steps(all->dilations) && in_steps(all->depth);
}

static uint32_t draw_rank(draws *d) {
    return draw_once_in(d, 3) ? 5 : draw_once_in(d, 2) ? 4 : 3;
}

#define DEPTH_OF(desc) {(desc)->depth_stride, (desc)->depth_dilation, (desc)->depth_padding_begin, (desc)->depth_padding_end}
#define DRAW_DEPTH(d, desc, most) do { \
    int64_t stride[2] = {0}, dilation[2] = {0}, begin[2] = {0}, end[2] = {0}; \
    draw_steps(d, 1, stride, dilation, begin, end, most); \
    (desc)->depth_stride = stride[0], (desc)->depth_dilation = dilation[0]; \
    (desc)->depth_padding_begin = begin[0], (desc)->depth_padding_end = end[0]; \
} while (0)

/* ---- Convolution ------------------------------------------------------------------------------- */

static void draw_conv(problem *p) {
    weir_conv_desc *desc = &p->desc.conv;
    uint32_t rank = draw_rank(p->d);
    bool image = rank > 3;
    *desc = (weir_conv_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 1};
    if (draw_once_in(p->d, 3)) desc->flags |= WEIR_CONV_SUM;
    desc->padding = draw_once_in(p->d, 4) ? WEIR_PADDING_REFLECT : WEIR_PADDING_ZERO;
    draw_activation(p->d, &desc->activation, &desc->alpha, &desc->beta);
    draw_steps(p->d, image ? 2 : 1, desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, 3);
    if (rank == 5 || draw_once_in(p->d, 60)) DRAW_DEPTH(p->d, desc, 2);
    int64_t groups = draw_once_in(p->d, 2) ? 1 : draw_int(p->d, 1, draw_once_in(p->d, 5) ? 40 : 4);
    int64_t most = groups > 4 ? 3 : draw_once_in(p->d, 5) ? 40 : 5;
    int64_t inputs = draw_int(p->d, 1, most), outputs = draw_int(p->d, 1, most);
    /* Many channels, and windows of 3 x 3, which have a way of their own. */
    bool wide = image && draw_once_in(p->d, 25);
    if (wide) groups = 1, inputs = draw_int(p->d, 30, 50), outputs = draw_int(p->d, 30, 70);
    desc->groups = groups == 1 && draw_once_in(p->d, 2) ? 0 : groups;
    if (draw_once_in(p->d, 60)) desc->groups = draw_int(p->d, -1, 3);
    if (draw_once_in(p->d, 80)) desc->padding = 2;
    int64_t x[5] = {draw_int(p->d, 0, 3), inputs * groups}, w[5] = {outputs * groups, inputs};
    for (uint32_t i = 2; i < rank; i++) {
        uint32_t side = rank == 5 ? i - 3 : i - 2;
        bool depth = rank == 5 && i == 2;
        w[i] = wide && !depth ? 3 : draw_int(p->d, 1, depth ? 3 : groups > 1 && draw_once_in(p->d, 3) ? 9 : 5);
        x[i] = depth ? draw_int(p->d, 0, 4) + w[i] : draw_int(p->d, 0, image ? 12 : 60) + (draw_once_in(p->d, 4) ? 0 : 9);
        if (wide && !depth) desc->strides[side] = desc->dilations[side] = draw_once_in(p->d, 5) ? 2 : 0;
    }
    add_input(p, shaped(WEIR_F32, rank, x), NORMAL);
    add_input(p, shaped(WEIR_F32, rank, w), NORMAL);
    if (desc->flags & WEIR_CONV_BIAS) add_input(p, vector_desc(w[0]), NORMAL);
    if (!(desc->flags & WEIR_CONV_SUM)) return;
    int64_t dims[5] = {x[0], w[0]};
    line l = ONE;
    const steps all = {desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, desc->padding == WEIR_PADDING_REFLECT, DEPTH_OF(desc)};
    for (uint32_t i = 2; i < rank; i++) {
        dims[i] = fill_line(&l, x[i], w[i], (int)i - (rank == 5 ? 3 : 2), &all) ? l.count : 1;
    }
    if (draw_once_in(p->d, 60)) dims[2]++;
    add_input(p, shaped(draw_once_in(p->d, 60) ? WEIR_F16 : WEIR_F32, rank, dims), NORMAL);
}

static verdict solve_conv(problem *p) {
    const weir_conv_desc *desc = &p->desc.conv;
    int64_t groups = desc->groups == 0 ? 1 : desc->groups;
    bool has_bias = desc->flags & WEIR_CONV_BIAS, has_sum = desc->flags & WEIR_CONV_SUM;
    const steps all = {desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, desc->padding == WEIR_PADDING_REFLECT, DEPTH_OF(desc)};
    if (p->num_in != 2u + has_bias + has_sum || groups < 1 || desc->padding > 1 || !in_all_steps(&all)) return REFUSED;
    if (!is_activation(desc->activation, desc->alpha, desc->beta)) return REFUSED;
    const weir_tensor_desc *x = &p->in[0].desc, *w = &p->in[1].desc;
    for (size_t i = 0; i < p->num_in; i++) if (p->in[i].desc.dtype != WEIR_F32) return REFUSED;
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || x->dims[1] % groups != 0 || w->dims[0] % groups != 0) return REFUSED;
    if (w->dims[1] != x->dims[1] / groups || (has_bias && !is_shape(&p->in[2].desc, WEIR_F32, 1, w->dims[0]))) return REFUSED;
    if (x->dims[1] == 0 || w->dims[0] == 0) return EITHER;
    line lines[3];
    if (has_more_axes(x->rank, &all) || !fill_lines(lines, x->rank, &x->dims[2], &w->dims[2], &all)) return REFUSED;
    const line slices = lines[0], rows = lines[1], columns = lines[2];
    int64_t dims[5] = {x->dims[0], w->dims[0]};
    for (uint32_t i = 2; i < x->rank; i++) dims[i] = lines[5 - x->rank + i - 2].count;
    const array *sum = has_sum ? &p->in[2 + has_bias] : NULL;
    for (uint32_t i = 0; sum && i < x->rank; i++) if (sum->desc.rank != x->rank || sum->desc.dims[i] != dims[i]) return REFUSED;
    array *out = add_output(p, shaped(WEIR_F32, x->rank, dims));
    if (out == NULL) return EITHER;
    int64_t channels = w->dims[1], filters = w->dims[0] / groups;
    const double *vx = p->in[0].v, *vw = p->in[1].v;
    for (size_t i = 0; i < out->n; i++) {
        int64_t column = (int64_t)i % columns.count, row = (int64_t)i / columns.count % rows.count;
        int64_t slice = (int64_t)i / columns.count / rows.count % slices.count;
        int64_t plane_no = (int64_t)i / columns.count / rows.count / slices.count, o = plane_no % w->dims[0], image_no = plane_no / w->dims[0];
        int64_t taps = slices.taps * rows.taps * columns.taps;
        double y = has_bias ? p->in[2].v[o] : 0, size = fabs(y);
        for (int64_t c = 0; c < channels; c++) {
            const double *volume = vx + (image_no * x->dims[1] + o / filters * channels + c) * slices.size * rows.size * columns.size;
            for (int64_t tap = 0; tap < taps; tap++) {
                int64_t at_slice = place(&slices, slice, tap / columns.taps / rows.taps);
                int64_t at_row = place(&rows, row, tap / columns.taps % rows.taps), at = place(&columns, column, tap % columns.taps);
                if (at_slice < 0 || at_row < 0 || at < 0) continue;
                double t = volume[(at_slice * rows.size + at_row) * columns.size + at] * vw[(o * channels + c) * taps + tap];
                y += t, size += fabs(t);
            }
        }
        if (sum) y += sum->v[i], size += fabs(sum->v[i]);
        double error = (double)(channels * taps + 5) * 0x1p-24 * size;
        y = activated(desc->activation, desc->alpha, desc->beta, y, &error);
        put(out, i, y, error);
    }
    return RIGHT;
}

static weir_status create_conv(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_conv(engine, &p->desc.conv, NULL, out);
}

/* ---- Pooling ----------------------------------------------------------------------------------- */

static void draw_pooling(problem *p) {
    weir_pooling_desc *desc = &p->desc.pooling;
    uint32_t rank = draw_rank(p->d);
    bool image = rank > 3, whole = draw_once_in(p->d, 6);
    *desc = (weir_pooling_desc){.struct_size = sizeof *desc, .flags = whole, .op = (weir_pooling_op)draw_int(p->d, 1, 3)};
    if (draw_once_in(p->d, 60)) desc->op = (weir_pooling_op)draw_int(p->d, 0, 4);
    if (!whole) {
        draw_steps(p->d, image ? 2 : 1, desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, 0);
        for (int i = 0; i < (image ? 2 : 1); i++) {
            desc->kernel[i] = draw_int(p->d, 1, draw_once_in(p->d, 3) ? 13 : 5);
            int64_t span = (desc->kernel[i] - 1) * (desc->dilations[i] > 0 ? desc->dilations[i] : 1) + 1;
            if (draw_once_in(p->d, 2)) continue;
            desc->padding_begin[i] = draw_int(p->d, 0, span - 1);
            desc->padding_end[i] = draw_int(p->d, 0, span - 1);
        }
        if (rank == 5 || draw_once_in(p->d, 60)) {
            DRAW_DEPTH(p->d, desc, 0);
            desc->depth_kernel = draw_int(p->d, draw_once_in(p->d, 60) ? 0 : 1, 4);
            int64_t span = (desc->depth_kernel - 1) * (desc->depth_dilation > 0 ? desc->depth_dilation : 1) + 1;
            if (span > 1 && draw_once_in(p->d, 2)) desc->depth_padding_begin = draw_int(p->d, 0, span - 1), desc->depth_padding_end = draw_int(p->d, 0, span - 1);
        }
    }
    if (draw_once_in(p->d, 50)) desc->kernel[draw_int(p->d, 0, 1)] = draw_int(p->d, -1, 3);
    if (draw_once_in(p->d, 50)) desc->padding_begin[draw_int(p->d, 0, 1)] = draw_int(p->d, 0, 9);
    int64_t x[5] = {draw_int(p->d, 0, 3), draw_int(p->d, 0, 5)};
    for (uint32_t i = 2; i < rank; i++) x[i] = draw_int(p->d, 0, rank == 5 && i == 2 ? 7 : image ? 12 : 60) + (draw_once_in(p->d, 4) ? 0 : rank == 5 ? 3 : 9);
    add_input(p, shaped(WEIR_F32, rank, x), desc->op == WEIR_POOLING_MAX ? SPECIAL : NORMAL);
}

static verdict solve_pooling(problem *p) {
    const weir_pooling_desc *desc = &p->desc.pooling;
    if (p->num_in != 1 || p->in[0].desc.dtype != WEIR_F32 || desc->op < 1 || desc->op > 3) return REFUSED;
    const steps all = {desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, false, DEPTH_OF(desc)};
    if (!in_all_steps(&all)) return REFUSED;
    const weir_tensor_desc *x = &p->in[0].desc;
    if (x->rank < 3 || x->rank > 5) return REFUSED;
    bool image = x->rank > 3, whole = desc->flags != 0;
    for (int i = 0; i < 2; i++) {
        bool set = desc->kernel[i] || desc->strides[i] || desc->dilations[i] || desc->padding_begin[i] || desc->padding_end[i];
        if (whole && set) return REFUSED;
        int64_t dilation = desc->dilations[i] > 0 ? desc->dilations[i] : 1, span = (desc->kernel[i] - 1) * dilation + 1;
        int64_t padding = desc->padding_begin[i] > desc->padding_end[i] ? desc->padding_begin[i] : desc->padding_end[i];
        if (!whole && (desc->kernel[i] < 1 - i || (padding > 0 && padding >= span))) return REFUSED;
        if (x->rank == 3 && i == 1 && set) return REFUSED;
    }
    int64_t depth_span = (desc->depth_kernel - 1) * (all.depth[1] > 0 ? all.depth[1] : 1) + 1;
    int64_t depth_padding = all.depth[2] > all.depth[3] ? all.depth[2] : all.depth[3];
    bool depth_set = desc->depth_kernel || all.depth[0] || all.depth[1] || depth_padding;
    if (depth_set && (whole || x->rank != 5 || desc->depth_kernel < 1 || depth_padding >= depth_span)) return REFUSED;
    if (!whole && ((x->rank == 5) != (desc->depth_kernel > 0) || image != (desc->kernel[1] > 0))) return REFUSED;
    const int64_t kernel[3] = {x->rank == 5 ? desc->depth_kernel : desc->kernel[0], x->rank == 5 ? desc->kernel[0] : desc->kernel[1], desc->kernel[1]};
    line lines[3];
    if (!fill_lines(lines, x->rank, &x->dims[2], whole ? &x->dims[2] : kernel, &all)) return whole ? EITHER : REFUSED;
    const line slices = lines[0], rows = lines[1], columns = lines[2];
    int64_t dims[5] = {x->dims[0], x->dims[1]};
    for (uint32_t i = 2; i < x->rank; i++) dims[i] = lines[5 - x->rank + i - 2].count;
    array *out = add_output(p, shaped(WEIR_F32, x->rank, dims));
    if (out == NULL) return EITHER;
    for (size_t i = 0; i < out->n; i++) {
        int64_t column = (int64_t)i % columns.count, row = (int64_t)i / columns.count % rows.count;
        int64_t slice = (int64_t)i / columns.count / rows.count % slices.count;
        int64_t taps = slices.taps * rows.taps * columns.taps, volume_no = (int64_t)i / columns.count / rows.count / slices.count;
        const double *volume = p->in[0].v + volume_no * slices.size * rows.size * columns.size;
        double most = -INFINITY, sum = 0, size = 0;
        int64_t inside = 0;
        bool nan = false;
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t at_slice = place(&slices, slice, tap / columns.taps / rows.taps);
            int64_t at_row = place(&rows, row, tap / columns.taps % rows.taps), at = place(&columns, column, tap % columns.taps);
            if (at_slice < 0 || at_row < 0 || at < 0) continue;
            double v = volume[(at_slice * rows.size + at_row) * columns.size + at];
            inside++, sum += v, size += fabs(v), most = fmax(most, v), nan |= isnan(v);
        }
        double count = (double)(desc->op == WEIR_POOLING_AVERAGE ? taps : inside);
        if (desc->op == WEIR_POOLING_MAX) put(out, i, nan ? NAN : most, 0);
        else put(out, i, count == 0 ? 0 : sum / count, count == 0 ? 0 : (double)(inside + 4) * 0x1p-24 * size / count);
    }
    return RIGHT;
}

static weir_status create_pooling(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_pooling(engine, &p->desc.pooling, NULL, out);
}

/* ---- Cells ------------------------------------------------------------------------------------- */

static void draw_cell(problem *p, int gates, int states, bool bias) {
    int64_t n = draw_size(p->d, 40), inputs = draw_size(p->d, 50), hidden = draw_size(p->d, 40);
    add_input(p, matrix_desc(n, inputs), NORMAL);
    for (int i = 0; i < states; i++) add_input(p, matrix_desc(n, hidden), NORMAL);
    add_input(p, matrix_desc(gates * hidden, inputs), NORMAL);
    add_input(p, matrix_desc(gates * hidden, hidden), NORMAL);
    for (int i = 0; bias && i < 2; i++) add_input(p, vector_desc(gates * hidden), NORMAL);
}

/* ---- Transposed convolution -------------------------------------------------------------------- */

static void draw_conv_transpose(problem *p) {
    weir_conv_transpose_desc *desc = &p->desc.conv_transpose;
    uint32_t rank = draw_rank(p->d);
    bool image = rank > 3;
    *desc = (weir_conv_transpose_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 1};
    draw_activation(p->d, &desc->activation, &desc->alpha, &desc->beta);
    draw_steps(p->d, image ? 2 : 1, desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, 2);
    int64_t groups = draw_once_in(p->d, 2) ? 1 : draw_int(p->d, 1, 4);
    int64_t most = draw_once_in(p->d, 5) ? 20 : 4;
    desc->groups = groups == 1 && draw_once_in(p->d, 2) ? 0 : groups;
    if (draw_once_in(p->d, 60)) desc->groups = draw_int(p->d, -1, 3);
    if (rank == 5 || draw_once_in(p->d, 60)) DRAW_DEPTH(p->d, desc, 1);
    int64_t x[5] = {draw_int(p->d, 0, 3), draw_int(p->d, 1, most) * groups}, w[5] = {x[1], draw_int(p->d, 1, most)};
    for (uint32_t i = 2; i < rank; i++) {
        bool depth = rank == 5 && i == 2;
        w[i] = draw_int(p->d, 1, rank == 5 ? 4 : 5);
        x[i] = draw_int(p->d, draw_once_in(p->d, 60) ? 0 : 1, depth ? 5 : image ? 9 : 60);
        if (draw_once_in(p->d, 3)) *(depth ? &desc->depth_more : &desc->more[i - (rank == 5 ? 3 : 2)]) = draw_int(p->d, 0, 2);
    }
    add_input(p, shaped(WEIR_F32, rank, x), NORMAL);
    add_input(p, shaped(WEIR_F32, rank, w), NORMAL);
    if (desc->flags) add_input(p, vector_desc(w[1] * groups), NORMAL);
}

static verdict solve_conv_transpose(problem *p) {
    const weir_conv_transpose_desc *desc = &p->desc.conv_transpose;
    int64_t groups = desc->groups == 0 ? 1 : desc->groups;
    const steps of = {desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, false, DEPTH_OF(desc)};
    if (p->num_in != 2 + desc->flags || groups < 1 || !in_all_steps(&of)) return REFUSED;
    if (!is_activation(desc->activation, desc->alpha, desc->beta)) return REFUSED;
    const weir_tensor_desc *x = &p->in[0].desc, *w = &p->in[1].desc;
    for (size_t i = 0; i < p->num_in; i++) if (p->in[i].desc.dtype != WEIR_F32) return REFUSED;
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || x->dims[1] % groups != 0 || w->dims[0] != x->dims[1]) return REFUSED;
    if (x->dims[1] == 0 || w->dims[1] == 0) return EITHER;
    int64_t all = w->dims[1] * groups, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, begin[3] = {0};
    int64_t from[3] = {1, 1, 1}, to[3] = {1, 1, 1}, taps[3] = {1, 1, 1};
    if (desc->flags && !is_shape(&p->in[2].desc, WEIR_F32, 1, all)) return REFUSED;
    if (has_more_axes(x->rank, &of) || (x->rank == 3 && desc->more[1]) || (x->rank < 5 && desc->depth_more)) return REFUSED;
    int64_t dims[5] = {x->dims[0], all};
    for (uint32_t i = 2; i < x->rank; i++) {
        uint32_t k = i + 3 - x->rank;
        int at = (int)i - (x->rank == 5 ? 3 : 2);
        line l;
        (void)fill_line(&l, x->dims[i], w->dims[i], at, &of);
        stride[k] = l.stride, dilation[k] = l.dilation, begin[k] = l.begin, from[k] = l.size, taps[k] = l.taps;
        int64_t more = at < 0 ? desc->depth_more : desc->more[at];
        to[k] = (from[k] - 1) * stride[k] + (taps[k] - 1) * dilation[k] + 1 + more - l.begin - l.end;
        if (from[k] < 1 || taps[k] < 1 || to[k] < 0) return REFUSED;
        dims[i] = to[k];
    }
    array *out = add_output(p, shaped(WEIR_F32, x->rank, dims));
    if (out == NULL) return EITHER;
    double *sums = fuzz_alloc(out->n * sizeof *sums), *sizes = fuzz_alloc(out->n * sizeof *sizes);
    for (size_t i = 0; i < out->n; i++) {
        sums[i] = desc->flags ? p->in[2].v[(int64_t)i / (to[0] * to[1] * to[2]) % all] : 0;
        sizes[i] = fabs(sums[i]);
    }
    for (size_t i = 0; i < p->in[0].n && out->n > 0; i++) {
        int64_t column = (int64_t)i % from[2], row = (int64_t)i / from[2] % from[1], slice = (int64_t)i / (from[1] * from[2]) % from[0];
        int64_t volume = (int64_t)i / (from[0] * from[1] * from[2]), channel = volume % x->dims[1], image_no = volume / x->dims[1];
        int64_t weights = w->dims[1] * taps[0] * taps[1] * taps[2];
        for (int64_t k = 0; k < weights; k++) {
            int64_t o = k / (taps[0] * taps[1] * taps[2]) + channel / (x->dims[1] / groups) * w->dims[1];
            int64_t d = slice * stride[0] + k / (taps[1] * taps[2]) % taps[0] * dilation[0] - begin[0];
            int64_t r = row * stride[1] + k / taps[2] % taps[1] * dilation[1] - begin[1];
            int64_t c = column * stride[2] + k % taps[2] * dilation[2] - begin[2];
            if (d < 0 || d >= to[0] || r < 0 || r >= to[1] || c < 0 || c >= to[2]) continue;
            size_t at = (size_t)((((image_no * all + o) * to[0] + d) * to[1] + r) * to[2] + c);
            double product = p->in[0].v[i] * p->in[1].v[channel * weights + k];
            sums[at] += product, sizes[at] += fabs(product);
        }
    }
    for (size_t i = 0; i < out->n; i++) {
        double error = 2e-6 * sizes[i] + 1e-9, y = activated(desc->activation, desc->alpha, desc->beta, sums[i], &error);
        put(out, i, y, error);
    }
    return RIGHT;
}

static weir_status create_conv_transpose(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_conv_transpose(engine, &p->desc.conv_transpose, NULL, out);
}

/* ---- int8 convolution -------------------------------------------------------------------------- */

static void draw_conv_int8(problem *p) {
    weir_conv_int8_desc *desc = &p->desc.conv_int8;
    bool image = draw_once_in(p->d, 2);
    weir_dtype type = DRAW_OF(p->d, WEIR_U8, WEIR_S8);
    *desc = (weir_conv_int8_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 3};
    desc->dtype = DRAW_OF(p->d, WEIR_DTYPE_ANY, WEIR_S32, WEIR_F32, WEIR_S8, WEIR_U8);
    if (draw_once_in(p->d, 2)) desc->scale = (float)(draw_unit(p->d) / 64);
    if (draw_once_in(p->d, 2)) desc->zero_x = (int32_t)draw_int(p->d, type == WEIR_U8 ? 0 : -128, type == WEIR_U8 ? 255 : 127);
    if (draw_once_in(p->d, 2)) desc->zero_w = (int32_t)draw_int(p->d, -128, 127);
    if (draw_once_in(p->d, 2)) desc->zero_y = (int32_t)draw_int(p->d, -200, 200);
    if (draw_once_in(p->d, 40)) desc->zero_x = (int32_t)draw_int(p->d, -130, 260);
    if (draw_once_in(p->d, 60)) desc->dtype = WEIR_F16;
    draw_steps(p->d, image ? 2 : 1, desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, 3);
    int64_t groups = draw_once_in(p->d, 2) ? 1 : draw_int(p->d, 1, draw_once_in(p->d, 5) ? 40 : 4);
    int64_t most = groups > 4 ? 3 : draw_once_in(p->d, 5) ? 40 : 5;
    int64_t inputs = groups > 1 && draw_once_in(p->d, 2) ? 1 : draw_int(p->d, 1, most), outputs = draw_int(p->d, 1, most);
    desc->groups = groups == 1 && draw_once_in(p->d, 2) ? 0 : groups;
    if (draw_once_in(p->d, 60)) desc->groups = draw_int(p->d, -1, 3);
    int64_t x[4] = {draw_int(p->d, 0, 3), inputs * groups}, w[4] = {outputs * groups, inputs};
    for (int i = 2; i < (image ? 4 : 3); i++) {
        w[i] = draw_int(p->d, 1, 5);
        x[i] = draw_int(p->d, 0, image ? 12 : 60) + (draw_once_in(p->d, 4) ? 0 : 9);
    }
    add_input(p, shaped(type, image ? 4 : 3, x), WIDE);
    add_input(p, shaped(WEIR_S8, image ? 4 : 3, w), draw_once_in(p->d, 3) ? SMALL : WIDE);
    if (desc->flags & WEIR_CONV_INT8_BIAS) add_input(p, shaped(WEIR_S32, 1, w), draw_once_in(p->d, 4) ? WIDE : SMALL);
    if (desc->flags & WEIR_CONV_INT8_SCALES) add_input(p, vector_desc(w[0]), NORMAL);
}

static verdict solve_conv_int8(problem *p) {
    const weir_conv_int8_desc *desc = &p->desc.conv_int8;
    bool has_bias = desc->flags & WEIR_CONV_INT8_BIAS, has_scales = desc->flags & WEIR_CONV_INT8_SCALES;
    int64_t groups = desc->groups == 0 ? 1 : desc->groups;
    weir_dtype dtype = desc->dtype == WEIR_DTYPE_ANY ? WEIR_S32 : desc->dtype;
    if (dtype != WEIR_S32 && dtype != WEIR_F32 && dtype != WEIR_S8 && dtype != WEIR_U8) return REFUSED;
    if (p->num_in != 2u + has_bias + has_scales || groups < 1) return REFUSED;
    if (!in_steps(desc->strides) || !in_steps(desc->dilations)) return REFUSED;
    const weir_tensor_desc *x = &p->in[0].desc, *w = &p->in[1].desc;
    const array *bias = has_bias ? &p->in[2] : NULL, *scales = has_scales ? &p->in[2 + has_bias] : NULL;
    bool image = x->rank == 4;
    if ((x->dtype != WEIR_U8 && x->dtype != WEIR_S8) || w->dtype != WEIR_S8) return REFUSED;
    if (rounded(x->dtype, desc->zero_x) != desc->zero_x) return REFUSED;
    if ((x->rank != 3 && !image) || w->rank != x->rank || x->dims[1] % groups != 0 || w->dims[0] % groups != 0) return REFUSED;
    if (w->dims[1] != x->dims[1] / groups) return REFUSED;
    if (bias && !is_shape(&bias->desc, WEIR_S32, 1, w->dims[0])) return REFUSED;
    if (scales && !is_shape(&scales->desc, WEIR_F32, 1, w->dims[0])) return REFUSED;
    if (x->dims[1] == 0 || w->dims[0] == 0) return EITHER;
    line rows = ONE, columns;
    const steps all = {desc->strides, desc->dilations, desc->padding_begin, desc->padding_end, false, {0}};
    if (!image && (all.strides[1] || all.dilations[1] || all.begin[1] || all.end[1])) return REFUSED;
    if (image && !fill_line(&rows, x->dims[2], w->dims[2], 0, &all)) return REFUSED;
    if (!fill_line(&columns, x->dims[x->rank - 1], w->dims[x->rank - 1], image ? 1 : 0, &all)) return REFUSED;
    int64_t dims[4] = {x->dims[0], w->dims[0], image ? rows.count : columns.count, columns.count};
    array *out = add_output(p, shaped(dtype, x->rank, dims));
    if (out == NULL) return EITHER;
    int64_t channels = w->dims[1], filters = w->dims[0] / groups;
    double scale = desc->scale == 0 ? 1 : (double)desc->scale;
    for (size_t i = 0; i < out->n; i++) {
        int64_t column = (int64_t)i % columns.count, row = (int64_t)i / columns.count % rows.count;
        int64_t plane_no = (int64_t)i / columns.count / rows.count, o = plane_no % w->dims[0], image_no = plane_no / w->dims[0];
        double y = bias ? bias->v[o] : 0;
        for (int64_t c = 0; c < channels; c++) {
            const double *plane = p->in[0].v + (image_no * x->dims[1] + o / filters * channels + c) * rows.size * columns.size;
            for (int64_t r = 0; r < rows.taps; r++) {
                for (int64_t s = 0; s < columns.taps; s++) {
                    int64_t at_row = place(&rows, row, r), at = place(&columns, column, s);
                    if (at_row < 0 || at < 0) continue;
                    double weight = p->in[1].v[((o * channels + c) * rows.taps + r) * columns.taps + s];
                    y += (plane[at_row * columns.size + at] - desc->zero_x) * (weight - desc->zero_w);
                }
            }
        }
        y *= scales ? scale * scales->v[o] : scale;
        double error = scale != 1 || scales ? 1e-12 * fabs(y) : 0, zero = desc->zero_y;
        if (dtype == WEIR_F32) {
            put(out, i, y + zero, error);
        } else {
            put(out, i, 0, 0);
            out->v[i] = nearbyint(y - error) + zero;
            out->hi[i] = nearbyint(y + error) + zero;
        }
    }
    return RIGHT;
}

static weir_status create_conv_int8(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_conv_int8(engine, &p->desc.conv_int8, NULL, out);
}

/* ---- Sampling at places ------------------------------------------------------------------------ */

static void draw_grid_sample(problem *p) {
    weir_grid_sample_desc *desc = &p->desc.grid_sample;
    *desc = (weir_grid_sample_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 1};
    desc->mode = (weir_resize_mode)draw_int(p->d, 0, draw_once_in(p->d, 40) ? 3 : 2);
    desc->edge = (weir_grid_sample_edge)draw_int(p->d, 0, draw_once_in(p->d, 40) ? 3 : 2);
    int64_t n = draw_int(p->d, 0, 3), x[4] = {n, draw_int(p->d, 0, 4), draw_int(p->d, draw_once_in(p->d, 40) ? 0 : 1, 12), draw_int(p->d, 1, 12)};
    add_input(p, shaped(WEIR_F32, 4, x), NORMAL);
    add_input(p, shaped(WEIR_F32, 4, (int64_t[]){n, draw_int(p->d, 0, 14), draw_int(p->d, 0, 14), 2}), draw_once_in(p->d, 3) ? SMALL : NORMAL);
}

static double moved_place(const weir_grid_sample_desc *desc, double at, int64_t len) {
    bool corners = desc->flags & WEIR_GRID_SAMPLE_ALIGN_CORNERS;
    double low = corners ? 0 : -0.5, high = corners ? (double)len - 1 : (double)len - 0.5;
    if (desc->edge == WEIR_GRID_SAMPLE_BORDER) return fmin(fmax(at, 0), (double)len - 1);
    if (desc->edge == WEIR_GRID_SAMPLE_ZEROS) return at;
    if (high <= low) return low;
    while (at < low || at > high) at = at < low ? 2 * low - at : 2 * high - at;
    return at;
}

/* The place among elements, and whether rounding may decide about elements: near an edge, or half way between two. */
static double sampled_place(const weir_grid_sample_desc *desc, double at, int64_t len, bool *near) {
    double place = desc->flags ? (at + 1) / 2 * (double)(len - 1) : ((at + 1) * (double)len - 1) / 2;
    double half = 2 * place - nearbyint(2 * place);
    *near = desc->mode == WEIR_RESIZE_NEAREST && fabs(half) < 1e-4;
    if (desc->mode == WEIR_RESIZE_CUBIC && desc->edge == WEIR_GRID_SAMPLE_BORDER) return place;
    return moved_place(desc, desc->mode == WEIR_RESIZE_NEAREST ? nearbyint(place) : place, len);
}

static double tap_weight(weir_resize_mode mode, double x) {
    x = fabs(x);
    if (mode == WEIR_RESIZE_LINEAR) return fmax(1 - x, 0);
    if (mode == WEIR_RESIZE_NEAREST) return x < 0.25;
    return x <= 1 ? 1.25 * x * x * x - 2.25 * x * x + 1 : x < 2 ? -0.75 * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

static verdict solve_grid_sample(problem *p) {
    const weir_grid_sample_desc *desc = &p->desc.grid_sample;
    if (desc->mode > 2 || desc->edge > 2 || p->num_in != 2) return REFUSED;
    const weir_tensor_desc *x = &p->in[0].desc, *grid = &p->in[1].desc;
    if (x->rank != 4 || x->dtype != WEIR_F32 || x->dims[2] == 0 || x->dims[3] == 0) return REFUSED;
    if (grid->rank != 4 || !is_shape(grid, WEIR_F32, 4, x->dims[0], grid->dims[1], grid->dims[2], (int64_t)2)) return REFUSED;
    array *out = add_output(p, shaped(WEIR_F32, 4, (int64_t[]){x->dims[0], x->dims[1], grid->dims[1], grid->dims[2]}));
    if (out == NULL) return EITHER;
    int64_t points = grid->dims[1] * grid->dims[2], height = x->dims[2], width = x->dims[3];
    for (size_t i = 0; i < out->n; i++) {
        int64_t plane = (int64_t)i / points, at = (plane / x->dims[1] * points + (int64_t)i % points) * 2;
        bool near_x, near_y;
        double across = sampled_place(desc, p->in[1].v[at], width, &near_x), down = sampled_place(desc, p->in[1].v[at + 1], height, &near_y);
        double y = 0, size = 0;
        for (int64_t r = -1; r < 3; r++) {
            for (int64_t c = -1; c < 3; c++) {
                double row = floor(down) + (double)r, column = floor(across) + (double)c;
                double weight = tap_weight(desc->mode, down - row) * tap_weight(desc->mode, across - column);
                bool inside = row >= 0 && row < (double)height && column >= 0 && column < (double)width;
                if (!inside && desc->edge == WEIR_GRID_SAMPLE_ZEROS) continue;
                row = row >= 0 && row < (double)height ? row : fmin(fmax(trunc(moved_place(desc, row, height)), 0), (double)height - 1);
                column = column >= 0 && column < (double)width ? column : fmin(fmax(trunc(moved_place(desc, column, width)), 0), (double)width - 1);
                double v = p->in[0].v[(plane * height + (int64_t)row) * width + (int64_t)column];
                y += weight * v, size += fabs(v);
            }
        }
        if (near_x || near_y) put_anything(out, i);
        else put(out, i, y, 6e-5 * size + 1e-6);
    }
    return RIGHT;
}

static weir_status create_grid_sample(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_grid_sample(engine, &p->desc.grid_sample, NULL, out);
}

/* ---- Resizing ---------------------------------------------------------------------------------- */

static void draw_resize(problem *p) {
    weir_resize_desc *desc = &p->desc.resize;
    static const double scales[] = {0.5, 2, 3, 1.5, 0.3, 0.77, 1, 4};
    *desc = (weir_resize_desc){.struct_size = sizeof *desc, .flags = draw_once_in(p->d, 4)};
    desc->mode = (weir_resize_mode)draw_int(p->d, 0, draw_once_in(p->d, 60) ? 3 : 2);
    desc->coordinates = (weir_resize_coordinates)draw_int(p->d, 0, draw_once_in(p->d, 60) ? 5 : 4);
    desc->rounding = (weir_resize_rounding)draw_int(p->d, 0, draw_once_in(p->d, 60) ? 4 : 3);
    if (draw_once_in(p->d, 2)) desc->cubic = -0.5f;
    bool nearest = desc->mode == WEIR_RESIZE_NEAREST;
    weir_dtype dtype = nearest || draw_once_in(p->d, 40) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, FLOATS, WEIR_U8, WEIR_S8);
    uint32_t rank = (uint32_t)(draw_once_in(p->d, 10) ? draw_int(p->d, 0, 8) : draw_int(p->d, 1, 4));
    weir_tensor_desc x = draw_shape(p->d, dtype, rank, 2000);
    add_input(p, x, nearest ? SPECIAL : draw_once_in(p->d, 2) ? SMALL : NORMAL);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t n = rank + i < 2 ? 0 : x.dims[rank - 2 + i];
        if (rank + i < 2 && !draw_once_in(p->d, 40)) continue;
        if (!draw_once_in(p->d, 3)) desc->sizes[i] = draw_once_in(p->d, 3) ? draw_int(p->d, 1, 3) * n : draw_int(p->d, 0, 2 * n + 1);
        if (draw_once_in(p->d, 2)) desc->scales[i] = scales[draw_int(p->d, 0, 7)];
    }
    if (draw_once_in(p->d, 60)) desc->scales[draw_int(p->d, 0, 1)] = draw_once_in(p->d, 2) ? NAN : -1;
    if (draw_once_in(p->d, 60)) desc->sizes[draw_int(p->d, 0, 1)] = -1;
}

/* Where result i of n lies among m elements. */
static double place_of(const weir_resize_desc *desc, double scale, int64_t i, int64_t n, int64_t m) {
    double at = (double)i, half = scale > 0 ? (at + 0.5) / scale - 0.5 : (at + 0.5) * (double)m / (double)n - 0.5;
    switch (desc->coordinates) {
    case WEIR_RESIZE_ALIGN_CORNERS: return n == 1 ? 0 : at * (double)(m - 1) / (double)(n - 1);
    case WEIR_RESIZE_ASYMMETRIC: return scale > 0 ? at / scale : at * (double)m / (double)n;
    case WEIR_RESIZE_PYTORCH_HALF_PIXEL: return n == 1 ? 0 : half;
    case WEIR_RESIZE_HALF_PIXEL_SYMMETRIC: return scale > 0 ? (at + 0.5 - (double)n / 2) / scale - (0.5 - (double)m / 2) : half;
    default: return half;
    }
}

static double keys(double d, double a) {
    d = fabs(d);
    return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1 : d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* The weights of all m elements in result i of an axis; false if their sum is nearly 0. */
static bool axis_weights(const weir_resize_desc *desc, double scale, int64_t i, int64_t n, int64_t m, double *w) {
    double place = place_of(desc, scale, i, n, m), low = floor(place);
    bool outside = desc->flags != 0, cubic = desc->mode == WEIR_RESIZE_CUBIC;
    for (int64_t k = 0; k < m; k++) w[k] = 0;
    if (desc->mode == WEIR_RESIZE_NEAREST) {
        static const double shifts[] = {-0.5, 0.5, 0, 0};
        bool up = desc->rounding == WEIR_RESIZE_PREFER_FLOOR || desc->rounding == WEIR_RESIZE_CEIL;
        double shifted = place + shifts[desc->rounding], at = up ? ceil(shifted) : floor(shifted);
        w[(int64_t)fmax(0, fmin(at, (double)(m - 1)))] = 1;
        return true;
    }
    double sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int tap = cubic ? -1 : 0; tap <= (cubic ? 2 : 1); tap++) {
            double at = low + tap, weight = cubic ? keys(place - at, (double)desc->cubic == 0 ? -0.75 : (double)desc->cubic) : 1 - fabs(place - at);
            if (outside && (at < 0 || at >= (double)m)) continue;
            w[(int64_t)fmax(0, fmin(at, (double)(m - 1)))] += weight;
            sum += weight;
        }
        if (!outside) return true;
        if (sum != 0) break;
        outside = false; /* none lies inside: as if that had not been asked for */
    }
    if (outside) for (int64_t k = 0; k < m; k++) w[k] /= sum;
    return !outside || fabs(sum) > 1e-3;
}

static verdict solve_resize(problem *p) {
    const weir_resize_desc *desc = &p->desc.resize;
    if (p->num_in != 1 || desc->mode > WEIR_RESIZE_CUBIC || desc->rounding > WEIR_RESIZE_CEIL) return REFUSED;
    if (desc->coordinates > WEIR_RESIZE_HALF_PIXEL_SYMMETRIC) return REFUSED;
    const array *x = &p->in[0];
    weir_dtype dtype = x->desc.dtype;
    if (desc->mode != WEIR_RESIZE_NEAREST && !is_float(dtype) && dtype != WEIR_U8 && dtype != WEIR_S8) return REFUSED;
    weir_tensor_desc like = x->desc;
    int64_t from[2] = {1, 1}, to[2] = {1, 1};
    for (uint32_t i = 0; i < 2; i++) {
        double scale = desc->scales[i];
        if (isnan(scale) || scale < 0 || desc->sizes[i] < 0) return REFUSED;
        if (like.rank + i < 2) {
            if (scale != 0 || desc->sizes[i] != 0) return REFUSED;
            continue;
        }
        uint32_t axis = like.rank - 2 + i;
        from[i] = like.dims[axis];
        to[i] = desc->sizes[i] > 0 ? desc->sizes[i] : scale > 0 ? (int64_t)floor((double)from[i] * scale) : from[i];
        if (from[i] == 0 && to[i] > 0) return REFUSED;
        like.dims[axis] = to[i];
    }
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    double *rows = fuzz_alloc((size_t)(from[0] + 1) * sizeof *rows), *columns = fuzz_alloc((size_t)(from[1] + 1) * sizeof *columns);
    for (size_t i = 0; i < out->n; i++) {
        size_t plane = i / (size_t)(to[0] * to[1]) * (size_t)(from[0] * from[1]);
        bool sure = axis_weights(desc, desc->scales[0], (int64_t)(i / (size_t)to[1]) % to[0], to[0], from[0], rows);
        sure &= axis_weights(desc, desc->scales[1], (int64_t)(i % (size_t)to[1]), to[1], from[1], columns);
        double y = 0, size = 0;
        for (int64_t r = 0; r < from[0]; r++) {
            for (int64_t c = 0; c < from[1]; c++) {
                double v = x->v[plane + (size_t)(r * from[1] + c)], weight = rows[r] * columns[c];
                if (weight == 0) continue;
                y += weight * v, size += fabs(weight * v);
            }
        }
        put(out, i, y, desc->mode == WEIR_RESIZE_NEAREST ? 0 : 4e-6 * size + 1e-9);
        if (!sure) put_anything(out, i);
    }
    return RIGHT;
}

static weir_status create_resize(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_resize(engine, &p->desc.resize, NULL, out);
}

static bool cell_fits(const problem *p, int gates, size_t states, bool bias) {
    if (p->num_in != 3 + states + (bias ? 2 : 0) || p->in[0].desc.rank != 2 || p->in[1].desc.rank != 2) return false;
    int64_t n = p->in[0].desc.dims[0], inputs = p->in[0].desc.dims[1], hidden = p->in[1].desc.dims[1];
    bool fits = p->in[0].desc.dtype == WEIR_F32 && is_shape(&p->in[1 + states].desc, WEIR_F32, 2, gates * hidden, inputs) &&
                is_shape(&p->in[2 + states].desc, WEIR_F32, 2, gates * hidden, hidden);
    for (size_t i = 0; i < states; i++) fits = fits && is_shape(&p->in[1 + i].desc, WEIR_F32, 2, n, hidden);
    for (size_t i = 3 + states; i < p->num_in; i++) fits = fits && is_shape(&p->in[i].desc, WEIR_F32, 1, gates * hidden);
    return fits;
}

/* A row of x or h times a row of W or R. */
static double dot(const array *rows, size_t row, const array *weights, size_t line_no) {
    size_t n = (size_t)rows->desc.dims[1];
    double y = 0;
    for (size_t i = 0; i < n; i++) y += rows->v[row * n + i] * weights->v[line_no * n + i];
    return y;
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void draw_lstm(problem *p) {
    weir_lstm_desc *desc = &p->desc.lstm;
    *desc = (weir_lstm_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 1};
    desc->gate_order = (weir_gate_order)draw_int(p->d, 0, draw_once_in(p->d, 40) ? 2 : 1);
    draw_cell(p, 4, 2, desc->flags != 0);
}

static verdict solve_lstm(problem *p) {
    const weir_lstm_desc *desc = &p->desc.lstm;
    bool bias = desc->flags != 0;
    if (desc->gate_order > 1 || p->num_in < 5 || !cell_fits(p, 4, 2, bias)) return REFUSED;
    static const int orders[2][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}}; /* i o f g */
    const int *order = orders[desc->gate_order];
    size_t hidden = (size_t)p->in[1].desc.dims[1];
    add_output(p, p->in[1].desc);
    add_output(p, p->in[1].desc);
    for (size_t i = 0; i < p->out[0].n; i++) {
        double gate[4];
        for (int g = 0; g < 4; g++) {
            size_t row = (size_t)order[g] * hidden + i % hidden;
            gate[g] = dot(&p->in[0], i / hidden, &p->in[3], row) + dot(&p->in[1], i / hidden, &p->in[4], row);
            if (bias) gate[g] += p->in[5].v[row] + p->in[6].v[row];
        }
        double c = sigmoid(gate[2]) * p->in[2].v[i] + sigmoid(gate[0]) * tanh(gate[3]);
        put(&p->out[0], i, sigmoid(gate[1]) * tanh(c), 4e-5);
        put(&p->out[1], i, c, 4e-5 * fmax(1, fabs(c)));
    }
    return RIGHT;
}

static weir_status create_lstm(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_lstm(engine, &p->desc.lstm, NULL, out);
}

static void draw_gru(problem *p) {
    weir_gru_desc *desc = &p->desc.gru;
    *desc = (weir_gru_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 3};
    desc->gate_order = (weir_gate_order)draw_int(p->d, 0, draw_once_in(p->d, 40) ? 2 : 1);
    draw_cell(p, 3, 1, (desc->flags & WEIR_GRU_BIAS) != 0);
}

static verdict solve_gru(problem *p) {
    const weir_gru_desc *desc = &p->desc.gru;
    bool bias = desc->flags & WEIR_GRU_BIAS, linear = desc->flags & WEIR_GRU_LINEAR_BEFORE_RESET;
    if (desc->gate_order > 1 || p->num_in < 4 || !cell_fits(p, 3, 1, bias)) return REFUSED;
    static const size_t orders[2][3] = {{0, 1, 2}, {1, 0, 2}}; /* z r n */
    const size_t *order = orders[desc->gate_order];
    size_t hidden = (size_t)p->in[1].desc.dims[1];
    const array *x = &p->in[0], *h = &p->in[1], *w = &p->in[2], *r = &p->in[3];
    array *out = add_output(p, h->desc), reset = *h;
    reset.v = fuzz_alloc(h->n * sizeof *reset.v);
#define GATE(g, i) (order[g] * hidden + (i) % hidden)
#define BIAS(input, g, i) (bias ? p->in[input].v[GATE(g, i)] : 0)
    for (size_t i = 0; i < out->n; i++) {
        double from_h = dot(h, i / hidden, r, GATE(1, i)) + BIAS(5, 1, i);
        reset.v[i] = sigmoid(dot(x, i / hidden, w, GATE(1, i)) + BIAS(4, 1, i) + from_h);
        if (!linear) reset.v[i] *= h->v[i];
    }
    for (size_t i = 0; i < out->n; i++) {
        double from_x = dot(x, i / hidden, w, GATE(0, i)) + BIAS(4, 0, i);
        double z = sigmoid(from_x + dot(h, i / hidden, r, GATE(0, i)) + BIAS(5, 0, i));
        double from_h = dot(linear ? h : &reset, i / hidden, r, GATE(2, i)) + BIAS(5, 2, i);
        double n = tanh(dot(x, i / hidden, w, GATE(2, i)) + BIAS(4, 2, i) + (linear ? reset.v[i] * from_h : from_h));
        put(out, i, (1 - z) * n + z * h->v[i], 6e-5);
    }
    return RIGHT;
}

static weir_status create_gru(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_gru(engine, &p->desc.gru, NULL, out);
}

/* ---- Sequences --------------------------------------------------------------------------------- */

/* What LSTM and GRU have in common; their flags have the same bits, but for the one of each. */
typedef struct sequence {
    uint64_t flags;
    uint32_t order, direction;
    float clip;
    bool small; /* weights */
} sequence;

enum { SEQUENCE_BIAS = 1, SEQUENCE_LENGTHS = 2, SEQUENCE_STATES = 4, SEQUENCE_OWN = 8, SEQUENCE_BATCH_FIRST = 16 };

static void draw_sequence(problem *p, sequence of, int64_t gates) {
    int64_t steps = draw_int(p->d, 0, draw_once_in(p->d, 20) ? 120 : 6), n = draw_int(p->d, 0, draw_once_in(p->d, 8) ? 40 : 7);
    int64_t inputs = draw_int(p->d, draw_once_in(p->d, 20) ? 0 : 1, 20), hidden = draw_int(p->d, draw_once_in(p->d, 30) ? 0 : 1, draw_once_in(p->d, 4) ? 70 : 20);
    int64_t d = of.direction == WEIR_SEQUENCE_BIDIRECTIONAL ? 2 : 1;
    bool first = of.flags & SEQUENCE_BATCH_FIRST;
    int64_t x[] = {first ? n : steps, first ? steps : n, inputs}, state[] = {first ? n : d, first ? d : n, hidden};
    add_input(p, shaped(WEIR_F32, 3, x), NORMAL);
    add_input(p, shaped(WEIR_F32, 3, (int64_t[]){d, gates * hidden, inputs}), NORMAL);
    add_input(p, shaped(WEIR_F32, 3, (int64_t[]){d, gates * hidden, hidden}), NORMAL);
    if (of.flags & SEQUENCE_BIAS) add_input(p, matrix_desc(d, 2 * gates * hidden), NORMAL);
    if (of.flags & SEQUENCE_LENGTHS) {
        array *lengths = add_input(p, shaped(WEIR_S32, 1, &n), NORMAL);
        for (size_t i = 0; i < lengths->n; i++) lengths->v[i] = (double)draw_int(p->d, -1, steps + 1);
    }
    for (int64_t i = 2; (of.flags & SEQUENCE_STATES) && i < gates; i++) add_input(p, shaped(WEIR_F32, 3, state), NORMAL);
    if (gates == 4 && (of.flags & SEQUENCE_OWN)) add_input(p, matrix_desc(d, 3 * hidden), NORMAL);
    array *const weights[] = {&p->in[1], &p->in[2], gates == 4 && (of.flags & SEQUENCE_OWN) ? &p->in[p->num_in - 1] : NULL};
    for (size_t i = 0; of.small && i < 3 && weights[i] != NULL; i++) {
        for (size_t k = 0; k < weights[i]->n; k++) weights[i]->v[k] = (double)(float)(weights[i]->v[k] / sqrt((double)(inputs + hidden)));
    }
}

static bool lies_within(const array *a, double most) {
    for (size_t i = 0; i < a->n; i++) if (!(fabs(a->v[i]) <= most)) return false;
    return true;
}

/* One row of W or R times numbers. */
static double line_product(const double *weights, const double *x, int64_t n) {
    double y = 0;
    for (int64_t i = 0; i < n; i++) y += weights[i] * x[i];
    return y;
}

/* Weights of size 1 make chaos of rounding in the end: then only the bits of other pools are compared. */
static void put_near(array *out, size_t i, double x, double error) {
    if (error < 0.1) put(out, i, x, error);
    else put_anything(out, i);
}

static verdict solve_sequence(problem *p, sequence of, int64_t gates) {
    if (of.order > 1 || of.direction > 2 || of.clip < 0 || p->num_in < 3) return REFUSED;
    bool first = of.flags & SEQUENCE_BATCH_FIRST, own = of.flags & SEQUENCE_OWN;
    int64_t d = of.direction == WEIR_SEQUENCE_BIDIRECTIONAL ? 2 : 1;
    for (int i = 0; i < 3; i++) if (p->in[i].desc.rank != 3 || p->in[i].desc.dtype != WEIR_F32) return REFUSED;
    const int64_t *xd = p->in[0].desc.dims;
    int64_t steps = xd[first ? 1 : 0], n = xd[first ? 0 : 1], inputs = xd[2], hidden = p->in[2].desc.dims[2], all = gates * hidden;
    if (!is_shape(&p->in[1].desc, WEIR_F32, 3, d, all, inputs) || !is_shape(&p->in[2].desc, WEIR_F32, 3, d, all, hidden)) return REFUSED;
    size_t at = 3;
    const array *bias = NULL, *lengths = NULL, *initial[2] = {NULL, NULL}, *peepholes = NULL;
#define NEXT(there, ...) ((there) ? (at < p->num_in && is_shape(&p->in[at].desc, __VA_ARGS__) ? &p->in[at] : NULL) : NULL)
    if (of.flags & SEQUENCE_BIAS) {
        if (!(bias = NEXT(true, WEIR_F32, 2, d, 2 * all))) return REFUSED;
        at++;
    }
    if (of.flags & SEQUENCE_LENGTHS) {
        if (!(lengths = NEXT(true, WEIR_S32, 1, n))) return REFUSED;
        at++;
    }
    for (int64_t i = 0; (of.flags & SEQUENCE_STATES) && i < gates - 2; i++) {
        if (!(initial[i] = NEXT(true, WEIR_F32, 3, first ? n : d, first ? d : n, hidden))) return REFUSED;
        at++;
    }
    if (gates == 4 && own) {
        if (!(peepholes = NEXT(true, WEIR_F32, 2, d, 3 * hidden))) return REFUSED;
        at++;
    }
    if (at != p->num_in) return REFUSED;
    int64_t y_dims[4] = {first ? n : steps, first ? steps : d, first ? d : n, hidden}, state_dims[3] = {first ? n : d, first ? d : n, hidden};
    for (int64_t i = 0; i < gates - 1; i++) {
        if (add_output(p, i == 0 ? shaped(WEIR_F32, 4, y_dims) : shaped(WEIR_F32, 3, state_dims)) == NULL) return EITHER;
    }
    for (size_t i = 0; i < p->out[0].n; i++) put(&p->out[0], i, 0, 0);
    static const int64_t lstm_orders[2][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}}, gru_orders[2][3] = {{0, 1, 2}, {1, 0, 2}};
    const int64_t *order = gates == 4 ? lstm_orders[of.order] : gru_orders[of.order];
    double clip = of.clip > 0 ? (double)of.clip : INFINITY;
    /* A step's error goes into the next ones. Simulations in f32 beside those in f64 stay below both bounds: with weights
     * of size 1 errors double, and with small ones, as networks have them, they hardly grow. */
    double most = 2.001 / sqrt((double)(inputs + hidden));
    bool small = lies_within(&p->in[1], most) && lies_within(&p->in[2], most) && (!peepholes || lies_within(peepholes, most));
    double growth = small ? 1.05 : 2.5;
    size_t size = (size_t)(hidden > 0 ? hidden : 1);
    double *h = fuzz_alloc(size * sizeof *h), *c = fuzz_alloc(size * sizeof *c), *old = fuzz_alloc(size * sizeof *old);
    double *gate = fuzz_alloc(4 * size * sizeof *gate), *scaled = fuzz_alloc(size * sizeof *scaled);
    for (int64_t row = 0; row < n * d; row++) {
        int64_t k = row / n, i = row % n, place = first ? i * d + k : row;
        int64_t length = lengths ? (int64_t)fmin(fmax(lengths->v[i], 0), (double)steps) : steps;
        for (int64_t j = 0; j < hidden; j++) {
            h[j] = initial[0] ? initial[0]->v[place * hidden + j] : 0;
            c[j] = initial[1] ? initial[1]->v[place * hidden + j] : 0;
        }
        double error = 4e-5;
        for (int64_t step = 0; step < length; step++) {
            int64_t t = of.direction == WEIR_SEQUENCE_REVERSE || k == 1 ? length - 1 - step : step;
            const double *x = p->in[0].v + (first ? i * steps + t : t * n + i) * inputs;
#define OF_X(g, j) (line_product(p->in[1].v + (k * all + order[g] * hidden + (j)) * inputs, x, inputs) + (bias ? bias->v[2 * k * all + order[g] * hidden + (j)] : 0))
#define OF_H(g, j, h) (line_product(p->in[2].v + (k * all + order[g] * hidden + (j)) * hidden, h, hidden) + (bias ? bias->v[(2 * k + 1) * all + order[g] * hidden + (j)] : 0))
#define CLIPPED(x) fmin(fmax(x, -clip), clip)
            for (int64_t j = 0; j < hidden; j++) old[j] = h[j];
            for (int64_t g = 0; g < (gates == 4 ? 4 : 2); g++) {
                for (int64_t j = 0; j < hidden; j++) gate[g * hidden + j] = OF_X(g, j) + OF_H(g, j, old);
            }
            if (gates == 4) {
                for (int64_t j = 0; j < hidden; j++) {
                    const double *peep = peepholes ? peepholes->v + 3 * k * hidden + j : NULL;
                    double in = sigmoid(CLIPPED(gate[j] + (peep ? peep[0] * c[j] : 0)));
                    double forget = sigmoid(CLIPPED(gate[2 * hidden + j] + (peep ? peep[2 * hidden] * c[j] : 0)));
                    c[j] = forget * c[j] + in * tanh(CLIPPED(gate[3 * hidden + j]));
                    h[j] = sigmoid(CLIPPED(gate[hidden + j] + (peep ? peep[hidden] * c[j] : 0))) * tanh(c[j]);
                }
            } else {
                for (int64_t j = 0; j < hidden; j++) scaled[j] = sigmoid(CLIPPED(gate[hidden + j])) * (own ? 1 : old[j]);
                for (int64_t j = 0; j < hidden; j++) {
                    double z = sigmoid(CLIPPED(gate[j])), of_h = own ? scaled[j] * OF_H(2, j, old) : OF_H(2, j, scaled);
                    h[j] = (1 - z) * tanh(CLIPPED(OF_X(2, j) + of_h)) + z * old[j];
                }
            }
            int64_t out = (first ? (i * steps + t) * d + k : (t * d + k) * n + i) * hidden;
            error *= growth;
            for (int64_t j = 0; j < hidden; j++) put_near(&p->out[0], (size_t)(out + j), h[j], error);
        }
        for (int64_t j = 0; j < hidden; j++) {
            put_near(&p->out[1], (size_t)(place * hidden + j), h[j], length == 0 ? 0 : error);
            if (gates == 4) put_near(&p->out[2], (size_t)(place * hidden + j), c[j], length == 0 ? 0 : error * fmax(1, fabs(c[j])));
        }
    }
    return RIGHT;
}

static sequence drawn_sequence(problem *p) {
    uint64_t bits = draw_bits(p->d);
    sequence of = {.flags = bits & 31, .order = (uint32_t)draw_int(p->d, 0, draw_once_in(p->d, 40) ? 2 : 1), .small = bits >> 5 & 1};
    of.direction = (uint32_t)draw_int(p->d, 0, draw_once_in(p->d, 40) ? 3 : 2);
    if (draw_once_in(p->d, 4)) of.clip = draw_once_in(p->d, 10) ? -1.0f : (float)draw_int(p->d, 1, 8) / 2;
    return of;
}

static void draw_lstm_sequence(problem *p) {
    sequence of = drawn_sequence(p);
    p->desc.lstm_sequence = (weir_lstm_sequence_desc){sizeof(weir_lstm_sequence_desc), of.flags, of.order, of.direction, of.clip, 0};
    draw_sequence(p, of, 4);
}

static verdict solve_lstm_sequence(problem *p) {
    const weir_lstm_sequence_desc *desc = &p->desc.lstm_sequence;
    return solve_sequence(p, (sequence){desc->flags, desc->gate_order, desc->direction, desc->clip, false}, 4);
}

static weir_status create_lstm_sequence(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_lstm_sequence(engine, &p->desc.lstm_sequence, NULL, out);
}

static void draw_gru_sequence(problem *p) {
    sequence of = drawn_sequence(p);
    p->desc.gru_sequence = (weir_gru_sequence_desc){sizeof(weir_gru_sequence_desc), of.flags, of.order, of.direction, of.clip, 0};
    draw_sequence(p, of, 3);
}

static verdict solve_gru_sequence(problem *p) {
    const weir_gru_sequence_desc *desc = &p->desc.gru_sequence;
    return solve_sequence(p, (sequence){desc->flags, desc->gate_order, desc->direction, desc->clip, false}, 3);
}

static weir_status create_gru_sequence(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_gru_sequence(engine, &p->desc.gru_sequence, NULL, out);
}

#define FAMILY(name) {#name, draw_##name, solve_##name, create_##name}
const family windows_families[] = {FAMILY(conv), FAMILY(conv_int8), FAMILY(conv_transpose), FAMILY(pooling), FAMILY(resize), FAMILY(grid_sample), FAMILY(lstm), FAMILY(gru),
                                   FAMILY(lstm_sequence), FAMILY(gru_sequence),
                                   {NULL, NULL, NULL, NULL}};
