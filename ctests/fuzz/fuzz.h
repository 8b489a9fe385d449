/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A random call of a built-in kernel, and what must come of it.
 *
 * A family draws a description and inputs (`draw`), and says in the plainest way, in f64 and with indices, what the
 * outputs are, or that the call must be refused (`solve`). Between the two the frame may spoil something; so `solve`
 * checks everything that the header says of the family.
 */

#ifndef WEIR_CTESTS_FUZZ_H
#define WEIR_CTESTS_FUZZ_H

#include <math.h>
#include <stdbool.h>
#include <weir/ops.h>

#include "make.h"

/* ---- Random numbers ---------------------------------------------------------------------------- */

typedef struct draws {
    uint64_t state;
} draws;

uint64_t draw_bits(draws *d);
/* least to most, both included. */
int64_t draw_int(draws *d, int64_t least, int64_t most);
/* True once in `n`. */
bool draw_once_in(draws *d, int n);
/* 0 to 1. */
double draw_unit(draws *d);
/* A size: mostly small and often odd, now and then 0, 1 or up to `most`. */
int64_t draw_size(draws *d, int64_t most);
weir_dtype draw_of(draws *d, const weir_dtype *all, size_t count);
#define DRAW_OF(d, ...)                                                                                                \
    draw_of(d, (const weir_dtype[]){__VA_ARGS__}, sizeof((const weir_dtype[]){__VA_ARGS__}) / sizeof(weir_dtype))
#define ALL_DTYPES WEIR_F32, WEIR_S64, WEIR_S32, WEIR_U8, WEIR_S8, WEIR_F16, WEIR_BF16, WEIR_BOOL
#define INTEGERS WEIR_S64, WEIR_S32, WEIR_U8, WEIR_S8
#define FLOATS WEIR_F32, WEIR_F16, WEIR_BF16

/* ---- Arrays ------------------------------------------------------------------------------------ */

enum { MAX_IN = 8, MAX_OUT = 3, MAX_ELEMENTS = 40000 };

/* A tensor, and what it holds as f64. An output has bounds: after rounding to its type the element lies between
 * them. */
typedef struct array {
    weir_tensor_desc desc;
    size_t n;
    double *v;  /* inputs: the values; outputs: the lower bounds */
    double *hi; /* outputs: the upper bounds; below the lower one: anything is right */
} array;

/* What an input holds. */
typedef enum contents {
    SMALL,    /* whole numbers and halves, so that many sums are exact */
    NORMAL,   /* of size 1 */
    WIDE,     /* of any size that the type has */
    SPECIAL   /* WIDE, and zeros, infinities, NaNs, subnormal numbers and limits */
} contents;

size_t dtype_size(weir_dtype dtype);
bool is_float(weir_dtype dtype);
bool is_integer(weir_dtype dtype);
/* Machine epsilon; 0 of integers. */
double dtype_epsilon(weir_dtype dtype);
/* What a number is as this type: nearest, ties to even; integers saturate, and a NaN is 0. */
double rounded(weir_dtype dtype, double x);
/* What the lowest bits of an integer are as this type of integers. */
double wrapped(weir_dtype dtype, int64_t x);
/* A whole number of an array as an integer. */
int64_t whole(double x);
double load(weir_dtype dtype, const void *data, size_t i);
void store(weir_dtype dtype, void *data, size_t i, double x);

size_t elements(const weir_tensor_desc *desc);
weir_tensor_desc shaped(weir_dtype dtype, uint32_t rank, const int64_t *dims);
/* A random shape of this rank with at most `most` elements. */
weir_tensor_desc draw_shape(draws *d, weir_dtype dtype, uint32_t rank, int64_t most);
/* A shape that broadcasts with this one. */
weir_tensor_desc draw_broadcast(draws *d, const weir_tensor_desc *like, weir_dtype dtype);
/* The shape of all of these broadcast; false if they do not fit. */
bool broadcast(weir_tensor_desc *all, const weir_tensor_desc *other);
/* Where in `from`, broadcast to `to`, element i of `to` is. */
size_t broadcast_index(const weir_tensor_desc *from, const weir_tensor_desc *to, size_t i);
bool same_shape(const weir_tensor_desc *a, const weir_tensor_desc *b);
bool is_shape(const weir_tensor_desc *desc, weir_dtype dtype, uint32_t rank, ...); /* int64_t each */
/* The index of an axis that may count from the end, or -1. */
int axis_of(int32_t axis, const weir_tensor_desc *desc);
/* Products of the dimensions before, of and behind an axis. */
void split(const weir_tensor_desc *desc, int axis, size_t *outer, size_t *len, size_t *inner);

/* ---- Problems ---------------------------------------------------------------------------------- */

typedef enum verdict {
    RIGHT,   /* accepted, and the outputs lie within their bounds */
    REFUSED, /* by creation, compilation or enqueuing, with a text */
    FAILS,   /* accepted, and the call fails with OUT_OF_RANGE; outputs are as they were */
    EITHER   /* refused or right: the header leaves it open */
} verdict;

typedef struct problem {
    draws *d;
    array in[MAX_IN];
    size_t num_in;
    array out[MAX_OUT];
    size_t num_out;
    bool in_place; /* an output may be an input's memory, if that has its shape and type */
    /* How the kernel is made. */
    union {
        weir_eltwise_desc eltwise;
        weir_binary_desc binary;
        weir_convert_desc convert;
        weir_quantize_desc quantize;
        weir_transpose_desc transpose;
        weir_concat_desc concat;
        weir_slice_desc slice;
        weir_pad_desc pad;
        weir_reshape_desc reshape;
        weir_tile_desc tile;
        weir_gather_desc gather;
        weir_gather_elements_desc gather_elements;
        weir_gather_nd_desc gather_nd;
        weir_scatter_desc scatter;
        weir_one_hot_desc one_hot;
        weir_nonzero_desc nonzero;
        weir_shape_desc shape;
        weir_softmax_desc softmax;
        weir_reduce_desc reduce;
        weir_norm_desc norm;
        weir_lrn_desc lrn;
        weir_cumsum_desc cumsum;
        weir_topk_desc topk;
        weir_nms_desc nms;
        weir_matmul_desc matmul;
        weir_matmul_int8_desc int8;
        weir_conv_desc conv;
        weir_conv_int8_desc conv_int8;
        weir_conv_transpose_desc conv_transpose;
        weir_pooling_desc pooling;
        weir_resize_desc resize;
        weir_grid_sample_desc grid_sample;
        weir_lstm_desc lstm;
        weir_gru_desc gru;
        weir_lstm_sequence_desc lstm_sequence;
        weir_gru_sequence_desc gru_sequence;
    } desc;
    /* Weights that are packed before, and how; in the place of input 1, which is then not passed. */
    bool packs, packs_transposed;
} problem;

typedef struct family {
    const char *name;
    void (*draw)(problem *p);
    verdict (*solve)(problem *p);
    weir_status (*create)(weir_engine *engine, problem *p, weir_kernel **out);
} family;

extern const family elements_families[], moving_families[], rows_families[], products_families[], windows_families[];

/* Adds an input of this shape. */
array *add_input(problem *p, weir_tensor_desc desc, contents what);
/* Adds an output of this shape, with bounds of 0; NULL if it is too large for the fuzzer or no tensor can be so. */
array *add_output(problem *p, weir_tensor_desc desc);
/* Output element i: this number up to an error. */
void put(array *out, size_t i, double x, double error);
void put_anything(array *out, size_t i);

/* The members of a description that name an activation; whether they do; and the activation of x, and how much farther an
 * error of x goes in it. */
void draw_activation(draws *d, weir_activation *activation, float *alpha, float *beta);
bool is_activation(weir_activation activation, float alpha, float beta);
double activated(weir_activation activation, float alpha, float beta, double x, double *error);

void *fuzz_alloc(size_t bytes); /* until the end of the case */
/* Memory that ends where nobody may touch, until somebody asks for the same region. */
void *fuzz_region(int region, size_t bytes);

typedef struct tally {
    uint64_t right, refused, failed, open;
} tally;

/* Does a product of arrays; gives what is wrong with it. */
const char *fuzz_gemm(draws *d, weir_threadpool *pool, tally *t);

#endif /* WEIR_CTESTS_FUZZ_H */
