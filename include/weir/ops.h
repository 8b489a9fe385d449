/* weir/ops.h: the built-in kernels, and products without an engine
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_OPS_H
#define WEIR_OPS_H

#include "../weir.h"

/** @file weir/ops.h
 * the built-in kernels, and products without an engine. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Matrix products ----------------------------------------------------------------------------------------------
 * Matrix products in f32, f16, bf16 and int8, with weights packed once.
 */

/** Flags of weir_packed_weights_desc. */
typedef enum weir_packed_weights_flags {
  /** The tensor is [N, K]. */
  WEIR_PACKED_WEIGHTS_TRANSPOSED = 1
} weir_packed_weights_flags;

/**
 * A function applied to each element of a result before it is stored, with the parameters alpha (a) and beta (b) of
 * the operator's descriptor where the formula names them. The result has the bits that weir_kernel_create_eltwise
 * makes of the stored sum, if that is f32. On CUDA engines those with parameters are UNIMPLEMENTED.
 */
typedef enum weir_activation_value {
  /** Nothing. */
  WEIR_ACTIVATION_NONE = 0,
  /** max(x, 0). A NaN stays a NaN. */
  WEIR_ACTIVATION_RELU = 1,
  /** x / 2 * (1 + erf(x / sqrt 2)). */
  WEIR_ACTIVATION_GELU_ERF = 2,
  /** x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))). */
  WEIR_ACTIVATION_GELU_TANH = 3,
  /** 1 / (1 + e^-x). */
  WEIR_ACTIVATION_SIGMOID = 4,
  /** Hyperbolic tangent. */
  WEIR_ACTIVATION_TANH = 5,
  /** x where x >= 0, else a x: the leaky rectifier. */
  WEIR_ACTIVATION_LEAKY_RELU = 6,
  /** min(max(x, a), b): b for all x if a > b. Either may be an infinity. */
  WEIR_ACTIVATION_CLIP = 7,
  /** x / (1 + e^(-a x)); SiLU with a = 1. */
  WEIR_ACTIVATION_SWISH = 8,
  /** min(max(a x + b, 0), 1). */
  WEIR_ACTIVATION_HARDSIGMOID = 9,
  /** x min(max(a x + b, 0), 1). */
  WEIR_ACTIVATION_HARDSWISH = 10
} weir_activation_value;

/** Flags of weir_matmul_desc. */
typedef enum weir_matmul_flags {
  /** A is given as [..., K, M]. */
  WEIR_MATMUL_TRANSPOSE_A = 1,
  /** B is given as [..., N, K]. */
  WEIR_MATMUL_TRANSPOSE_B = 2,
  /** A third input, bias[N], is added to each row. */
  WEIR_MATMUL_BIAS = 4,
  /** The last input, of the shape of C, is added. */
  WEIR_MATMUL_SUM = 8,
  /** C, bias and addend are f32 even if A and B are f16 or bf16. */
  WEIR_MATMUL_F32_RESULT = 16,
  /**
   * f32 factors may be rounded to TF32 (10 bits of fraction) before they are multiplied, where the device has units
   * for it and is faster with them: on CUDA engines with cuBLASLt. No effect elsewhere. Without this flag f32
   * products use all bits.
   */
  WEIR_MATMUL_ALLOW_TF32 = 32
} weir_matmul_flags;

/** Flags of weir_matmul_int8_desc. */
typedef enum weir_matmul_int8_flags {
  /** A is given as [K, M]. */
  WEIR_MATMUL_INT8_TRANSPOSE_A = 1,
  /** B is given as [N, K]. */
  WEIR_MATMUL_INT8_TRANSPOSE_B = 2,
  /** One more input, bias[N] of s32, is added to the sums. */
  WEIR_MATMUL_INT8_BIAS = 4,
  /** The last input, scales[N] of f32, has a scale for each column, besides `scale`. */
  WEIR_MATMUL_INT8_SCALES = 8
} weir_matmul_int8_flags;

/** Weights of matrix products, packed once for all kernels and threads that use them. Shared: create, retain, release. */
typedef struct weir_packed_weights weir_packed_weights;

/** An activation: one of enum weir_activation_value. */
typedef uint32_t weir_activation;

/**
 * Matrix product: C[..., M, N] = activation(A[..., M, K] * B[..., K, N] + bias[N] + addend[..., M, N]). A and B are
 * both of f32, f16 or bf16; C, bias and addend are of the same type, or of f32 with WEIR_MATMUL_F32_RESULT.
 * Accumulators are f32, rounded once at the end. Leading dimensions are aligned at the last one and broadcast: a
 * dimension of 1 is broadcast. In a graph, dimensions of the inputs of this and of weir's other kernels may be open
 * (WEIR_DIM_DYNAMIC): then the run checks whether they fit. Only the last dimension of the indices of
 * weir_gather_nd_desc and of WEIR_SCATTER_ND, which decides about ranks, is fixed.
 *
 * Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_BIAS bias; with WEIR_MATMUL_SUM addend. Output: C.
 * A B that is a constant of a graph is packed by compile, once for all kernels of a program with that constant.
 */
typedef struct weir_matmul_desc {
  /** sizeof(weir_matmul_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_matmul_flags. */
  uint64_t flags;
  /** The function applied to each element of C at the end. */
  weir_activation activation;
  /** Reserved, 0. */
  uint32_t reserved;
  /**
   * B, packed from the type of A, in place of the input; NULL = B is an input. Excludes WEIR_MATMUL_TRANSPOSE_B: the
   * orientation was fixed when the weights were packed.
   */
  weir_packed_weights *weights;
  /** A parameter of the activation; 0 if it has none. */
  float alpha;
  /** A second one; 0 if it has none. */
  float beta;
} weir_matmul_desc;

/**
 * int8 matrix product: C[..., M, N] = saturate(round(scale * scales[N] * ((A[..., M, K] - zero_a) * (B[K, N] -
 * zero_b) + bias[N])) + zero_c), with A of u8 or s8 and B of s8.
 *
 * The sums of products are exact for every K on every processor, and then saturate at 32 bits. Without scales, and
 * with a scale of 1, the rest is exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties
 * to even. A C of f32 is not rounded to an integer.
 *
 * Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_INT8_BIAS bias; with WEIR_MATMUL_INT8_SCALES
 * scales. Output: C.
 */
typedef struct weir_matmul_int8_desc {
  /** sizeof(weir_matmul_int8_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_matmul_int8_flags. */
  uint64_t flags;
  /** The type of C: WEIR_S32 (also if it is 0), WEIR_F32, WEIR_S8 or WEIR_U8. */
  weir_dtype dtype;
  /** Finite; 0 = 1. */
  float scale;
  /** Zero point of A, subtracted from each element; a value of its type. */
  int32_t zero_a;
  /** Zero point of B, subtracted from each element: -128 to 127. */
  int32_t zero_b;
  /** Zero point of C, added to each element at the end. */
  int32_t zero_c;
  /** Reserved, 0. */
  uint32_t reserved;
  /** B, packed from s8, in place of the input; NULL = B is an input. Excludes WEIR_MATMUL_INT8_TRANSPOSE_B. */
  weir_packed_weights *weights;
} weir_matmul_int8_desc;

/** Descriptor of packed weights: B of a matrix product, packed from a tensor [K, N] of f32, f16, bf16 or s8. */
typedef struct weir_packed_weights_desc {
  /** sizeof(weir_packed_weights_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_packed_weights_flags. */
  uint64_t flags;
} weir_packed_weights_desc;

/**
 * Creates a matrix product, see weir_matmul_desc. Shapes are checked when it is enqueued or compiled. NULL desc =
 * no flags. The kernel keeps desc->weights alive.
 *
 * Errors: INVALID_ARGUMENT (unknown flags or activation, reserved not 0, weights that are of s8, are to be
 * transposed or are of another engine's device).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_matmul(weir_engine *engine,
                                      const weir_matmul_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/**
 * Creates an int8 matrix product, see weir_matmul_int8_desc. Shapes are checked when it is enqueued or compiled.
 * NULL desc = 32-bit sums, no zero points. The kernel keeps desc->weights alive.
 *
 * Errors: INVALID_ARGUMENT (unknown flags or type, reserved not 0, a scale that is not finite, weights that are
 * not s8, are to be transposed or are of another engine's device); OUT_OF_RANGE (zero points).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_matmul_int8(weir_engine *engine,
                                           const weir_matmul_int8_desc *desc,
                                           const weir_kernel_options *options,
                                           weir_kernel **out_kernel);

/**
 * Packs the weights of matrix products: a tensor [K, N] of f32, f16, bf16 or s8, as desc says; NULL desc = not
 * transposed. Any number of kernels, on any pools and threads, take the result in place of the input B. The packed
 * layout depends only on the size, the type and the instruction set. The tensor is read before this returns, and not
 * needed any more.
 *
 * Thread safety: any thread, while nothing writes the tensor. Blocking: never, but it takes the time to copy the
 * tensor. Ownership: kernels hold references of their own. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags,
 * another type or rank, a tensor of another engine's device, WEIR_MAX_ISA); FAILED_PRECONDITION (a dynamic tensor);
 * OUT_OF_RANGE; RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_packed_weights_create(weir_engine *engine,
                                       const weir_tensor *tensor,
                                       const weir_packed_weights_desc *desc,
                                       weir_packed_weights **out_weights);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_packed_weights_retain(weir_packed_weights *weights);

/** Gives up one reference. NULL does nothing. Kernels made with the weights keep them. */
WEIR_API void weir_packed_weights_release(weir_packed_weights *weights);

/** Size of the packed weights in bytes. */
WEIR_API
WEIR_NODISCARD
weir_status weir_packed_weights_get_size(const weir_packed_weights *weights,
                                         size_t *out_bytes);

/* ---- Elementwise --------------------------------------------------------------------------------------------------
 * Unary and binary functions, selection, conversion and quantization.
 */

/** Binary elementwise functions. */
typedef enum weir_binary_op_value {
  /** a + b. */
  WEIR_BINARY_ADD = 1,
  /** a - b. */
  WEIR_BINARY_SUB = 2,
  /** a b. */
  WEIR_BINARY_MUL = 3,
  /** a / b; of integers rounded as weir_binary_desc says. */
  WEIR_BINARY_DIV = 4,
  /** The lesser one; a NaN if one is NaN. */
  WEIR_BINARY_MIN = 5,
  /** The greater one; a NaN if one is NaN. */
  WEIR_BINARY_MAX = 6,
  /** a^b, as the pow of C. */
  WEIR_BINARY_POW = 7,
  /** a == b. */
  WEIR_BINARY_EQ = 8,
  /** a != b: also if one is NaN, where all other comparisons are false. */
  WEIR_BINARY_NE = 9,
  /** a < b. */
  WEIR_BINARY_LT = 10,
  /** a <= b. */
  WEIR_BINARY_LE = 11,
  /** a > b. */
  WEIR_BINARY_GT = 12,
  /** a >= b. */
  WEIR_BINARY_GE = 13,
  /**
   * The remainder a - b q, where q is a / b rounded as weir_binary_desc says: with WEIR_ROUNDING_ZERO that of C
   * (fmod and %), with the sign of a; with WEIR_ROUNDING_FLOOR that of Python and NumPy, with the sign of b; with
   * WEIR_ROUNDING_NEAREST that of IEEE 754. Of floats a NaN if b is 0 or a is infinite.
   */
  WEIR_BINARY_REM = 14
} weir_binary_op_value;

/**
 * Unary functions of x, with the parameters alpha (a) and beta (b) of weir_eltwise_desc where the formula names them.
 * Infinities give the limits of the function, and a NaN stays a NaN. 1 / x is WEIR_ELTWISE_POW with a = 1 and b = -1,
 * 1 / sqrt x with b = -0.5.
 */
typedef enum weir_eltwise_op_value {
  /** x where x >= 0, else a x: the rectifier, and with a > 0 the leaky one. */
  WEIR_ELTWISE_RELU = 1,
  /** x where x >= 0, else a (e^x - 1). */
  WEIR_ELTWISE_ELU = 2,
  /** x (1 + erf(x / sqrt 2)) / 2. */
  WEIR_ELTWISE_GELU_ERF = 3,
  /** x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. */
  WEIR_ELTWISE_GELU_TANH = 4,
  /** tanh x. */
  WEIR_ELTWISE_TANH = 5,
  /** 1 / (1 + e^-x). */
  WEIR_ELTWISE_SIGMOID = 6,
  /** x / (1 + e^(-a x)); SiLU with a = 1. */
  WEIR_ELTWISE_SWISH = 7,
  /** e^x. */
  WEIR_ELTWISE_EXP = 8,
  /** The natural logarithm. */
  WEIR_ELTWISE_LOG = 9,
  /** The square root. */
  WEIR_ELTWISE_SQRT = 10,
  /** x x. */
  WEIR_ELTWISE_SQUARE = 11,
  /** |x|. */
  WEIR_ELTWISE_ABS = 12,
  /** -x. */
  WEIR_ELTWISE_NEG = 13,
  /** min(max(x, a), b): b for all x if a > b. Either may be an infinity. */
  WEIR_ELTWISE_CLIP = 14,
  /** a x + b, as IEEE has it: a NaN of an infinity if a is 0. */
  WEIR_ELTWISE_LINEAR = 15,
  /** a x^b, as the pow of C. */
  WEIR_ELTWISE_POW = 16,
  /** min(max(a x + b, 0), 1). */
  WEIR_ELTWISE_HARDSIGMOID = 17,
  /** x min(max(a x + b, 0), 1). */
  WEIR_ELTWISE_HARDSWISH = 18,
  /** The nearest integer, the even one of two. */
  WEIR_ELTWISE_ROUND = 19,
  /** x tanh(ln(1 + e^x)). */
  WEIR_ELTWISE_MISH = 20,
  /** ln(1 + e^(a x)) / a; a is not 0. */
  WEIR_ELTWISE_SOFTPLUS = 21,
  /** The error function. */
  WEIR_ELTWISE_ERF = 22,
  /** The greatest integer that is not above x. */
  WEIR_ELTWISE_FLOOR = 23,
  /** The least integer that is not below x. */
  WEIR_ELTWISE_CEIL = 24,
  /** x without what is behind the point. */
  WEIR_ELTWISE_TRUNC = 25,
  /** 1 above 0, -1 below 0, and 0 for 0. */
  WEIR_ELTWISE_SIGN = 26,
  /** sin x; a NaN for an infinity. */
  WEIR_ELTWISE_SIN = 27,
  /** cos x; a NaN for an infinity. */
  WEIR_ELTWISE_COS = 28,
  /** tan x; a NaN for an infinity. */
  WEIR_ELTWISE_TAN = 29,
  /** The angle from -pi / 2 to pi / 2 whose sine x is; a NaN outside of -1 to 1. */
  WEIR_ELTWISE_ASIN = 30,
  /** The angle from 0 to pi whose cosine x is; a NaN outside of -1 to 1. */
  WEIR_ELTWISE_ACOS = 31,
  /** The angle from -pi / 2 to pi / 2 whose tangent x is. */
  WEIR_ELTWISE_ATAN = 32,
  /** (e^x - e^-x) / 2. */
  WEIR_ELTWISE_SINH = 33,
  /** (e^x + e^-x) / 2. */
  WEIR_ELTWISE_COSH = 34
} weir_eltwise_op_value;

/** How a number becomes an integer. */
typedef enum weir_rounding_value {
  /** The digits behind the point are left out, as in C: 2.7 is 2, and -2.7 is -2. */
  WEIR_ROUNDING_ZERO = 0,
  /** The nearest one, the even one of two: 2.5 is 2, and 3.5 is 4. */
  WEIR_ROUNDING_NEAREST = 1,
  /** The greatest one that is not above it: 2.7 is 2, and -2.7 is -3. */
  WEIR_ROUNDING_FLOOR = 2
} weir_rounding_value;

/** How an integer is stored that is too large or too small for its type. */
typedef enum weir_overflow_value {
  /** Its lowest bits, in two's complement: 200 + 100 is 44 as u8. */
  WEIR_OVERFLOW_WRAP = 0,
  /** The greatest or the least one of the type: 200 + 100 is 255 as u8. */
  WEIR_OVERFLOW_SATURATE = 1
} weir_overflow_value;

/** Flags of weir_quantize_desc. */
typedef enum weir_quantize_flags {
  /** A third input, zero_point. Without it zero points are 0. */
  WEIR_QUANTIZE_ZERO_POINT = 1,
  /** From integers to floats. */
  WEIR_QUANTIZE_DEQUANTIZE = 2
} weir_quantize_flags;

/** A unary elementwise function: one of enum weir_eltwise_op_value. */
typedef uint32_t weir_eltwise_op;

/**
 * Unary elementwise kernel for f32, bf16 or f16, computed in f32. Input: x. Output: as x, in the same memory or in
 * other memory.
 */
typedef struct weir_eltwise_desc {
  /** sizeof(weir_eltwise_desc) of the caller's header. */
  size_t struct_size;
  /** The function. */
  weir_eltwise_op op;
  /** A parameter of the function; 0 if it has none. */
  float alpha;
  /** A second one; 0 if it has none. */
  float beta;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_eltwise_desc;

/** A binary elementwise function: one of enum weir_binary_op_value. */
typedef uint32_t weir_binary_op;

/** A rounding: one of enum weir_rounding_value. */
typedef uint32_t weir_rounding;

/** An overflow: one of enum weir_overflow_value. */
typedef uint32_t weir_overflow;

/**
 * Binary elementwise kernel with broadcasting: shapes are aligned at the last dimension, and a
 * dimension of 1 is broadcast. Inputs: a and b, both f32, bf16, f16, s64, s32, s8 or u8; for WEIR_BINARY_EQ and the
 * other comparisons, WEIR_BINARY_MIN (and) and WEIR_BINARY_MAX (or) also bool. Output: of the same type, in memory of
 * its own or in that of an operand that has its shape; or, if the function compares, bool in memory of its own.
 *
 * Floats are computed in f32. Integers are computed exactly: quotients are rounded toward zero, as in C, and what the
 * type cannot hold wraps around, as in NumPy, unless `rounding` and `overflow` say otherwise. An integer divided by 0
 * is 0, or, with WEIR_OVERFLOW_SATURATE, the greatest or the least integer for a above or below 0; its remainder is 0.
 * Integers have no WEIR_BINARY_POW.
 */
typedef struct weir_binary_desc {
  /** sizeof(weir_binary_desc) of the caller's header. */
  size_t struct_size;
  /** The function. */
  weir_binary_op op;
  /** Reserved, 0. */
  uint32_t reserved;
  /**
   * How quotients are rounded, those of integers and of WEIR_BINARY_REM: one of weir_rounding_value. Other functions
   * do not look at it.
   */
  weir_rounding rounding;
  /** How integers that the type cannot hold are stored: one of weir_overflow_value. Floats do not look at it. */
  weir_overflow overflow;
} weir_binary_desc;

/**
 * Elementwise choice: a where the condition holds, else b, with broadcasting of all three as in weir_binary_desc.
 * Inputs: condition, bool; a and b of one type, which may be any. Output: of that type.
 */
typedef struct weir_select_desc {
  /** sizeof(weir_select_desc) of the caller's header. */
  size_t struct_size;
} weir_select_desc;

/**
 * Conversion to another storage type: x scale + shift, between all types. Input: x. Output: the same shape.
 *
 * With scale 1 and shift 0 the value itself is converted: values that both types can hold are exact, in s32 and s64
 * too, and an integer that the new type cannot hold wraps around, as in C and NumPy, unless `overflow` says otherwise.
 * All else is computed in f32. A float becomes an integer by leaving out what is behind the point, as in C, unless
 * `rounding` says otherwise; beyond the type it becomes the greatest or the least integer, and a NaN becomes 0. As a
 * bool everything but 0 becomes 1. What a float type cannot hold is rounded to nearest, ties to even.
 */
typedef struct weir_convert_desc {
  /** sizeof(weir_convert_desc) of the caller's header. */
  size_t struct_size;
  /** The type of the output. */
  weir_dtype dtype;
  /** The factor; 0 stands for 1. */
  float scale;
  /** Added after that. */
  float shift;
  /** Reserved, 0. */
  uint32_t reserved;
  /** How a float becomes an integer: one of weir_rounding_value. Other conversions do not look at it. */
  weir_rounding rounding;
  /**
   * How an integer that the new type, of integers too, cannot hold is stored: one of weir_overflow_value. Other
   * conversions do not look at it.
   */
  weir_overflow overflow;
} weir_convert_desc;

/**
 * Quantization: round(x / scale) + zero_point, saturated. Inputs: x, f32, bf16 or f16; scale, f32; with
 * WEIR_QUANTIZE_ZERO_POINT zero_point, s32. Output: the shape of x, s8, u8 or s32. With WEIR_QUANTIZE_DEQUANTIZE the
 * way back: (x - zero_point) scale, computed in f32, from s8, u8 or s32 to f32, bf16 or f16.
 *
 * scale and zero_point have one element (of rank 0 or 1), for the whole tensor, or as many as x has along the axis.
 * Rounding is to nearest, ties to even; a NaN becomes 0. An s32 is computed in f32: zero points and sums beyond
 * 2^24 are rounded to it.
 */
typedef struct weir_quantize_desc {
  /** sizeof(weir_quantize_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_quantize_flags. */
  uint64_t flags;
  /** The type of the output; for a dequantization 0 stands for WEIR_F32. */
  weir_dtype dtype;
  /** The axis of scale and zero_point, unless they have one element; negative counts from the end, -1 = last. */
  int32_t axis;
} weir_quantize_desc;

/**
 * Creates a unary elementwise function, see weir_eltwise_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown op, a parameter that is NaN or that the function does not have, alpha 0 for
 * WEIR_ELTWISE_SOFTPLUS, reserved not 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_eltwise(weir_engine *engine,
                                       const weir_eltwise_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/**
 * Creates a binary elementwise function, see weir_binary_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown op, rounding or overflow, reserved not 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_binary(weir_engine *engine,
                                      const weir_binary_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/** Creates an elementwise choice between two tensors, see weir_select_desc. desc may be NULL. */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_select(weir_engine *engine,
                                      const weir_select_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/**
 * Creates a conversion to another storage type, see weir_convert_desc.
 *
 * Errors: INVALID_ARGUMENT (dtype, scale or shift that is NaN, unknown rounding or overflow, reserved not 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_convert(weir_engine *engine,
                                       const weir_convert_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/**
 * Creates a quantization or dequantization, see weir_quantize_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, dtype); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_quantize(weir_engine *engine,
                                        const weir_quantize_desc *desc,
                                        const weir_kernel_options *options,
                                        weir_kernel **out_kernel);

/* ---- Data movement ------------------------------------------------------------------------------------------------
 * Kernels that move elements and compute nothing.
 */

/** Flags of weir_gather_desc. */
typedef enum weir_gather_flags {
  /** Indices below 0 count from the end of the axis: -1 is the last row. */
  WEIR_GATHER_FROM_END = 1
} weir_gather_flags;

/** Flags of weir_gather_elements_desc. */
typedef enum weir_gather_elements_flags {
  /** Indices below 0 count from the end of the axis: -1 is the last element. */
  WEIR_GATHER_ELEMENTS_FROM_END = 1
} weir_gather_elements_flags;

/** Flags of weir_gather_nd_desc. */
typedef enum weir_gather_nd_flags {
  /** Indices below 0 count from the end of their dimension. */
  WEIR_GATHER_ND_FROM_END = 1
} weir_gather_nd_flags;

/** Flags of weir_nonzero_desc. */
typedef enum weir_nonzero_flags {
  /**
   * The places have as many columns as there are elements that are not 0. Only the call knows how many: for nodes of
   * graphs alone, and the output is open (WEIR_DIM_DYNAMIC) for whoever reads it.
   */
  WEIR_NONZERO_EXACT = 1
} weir_nonzero_flags;

/** Flags of weir_one_hot_desc. */
typedef enum weir_one_hot_flags {
  /** Indices below 0 count from the end: -1 is the last element of a row. */
  WEIR_ONE_HOT_FROM_END = 1
} weir_one_hot_flags;

/** Contents of a margin. */
typedef enum weir_pad_mode_value {
  /** One value. */
  WEIR_PAD_CONSTANT = 0,
  /** The tensor, mirrored at its first and its last element, which are not repeated: c b | a b c | b a. */
  WEIR_PAD_REFLECT = 1,
  /** The nearest element of the tensor: a a | a b c | c c. */
  WEIR_PAD_EDGE = 2
} weir_pad_mode_value;

/** Dimensions of a weir_reshape_desc that depend on x. */
typedef enum weir_reshape_dim {
  /** It follows from the number of elements; for one dimension at most. */
  WEIR_RESHAPE_INFER = -1,
  /** It is the dimension of x at the same place. */
  WEIR_RESHAPE_KEEP = -2
} weir_reshape_dim;

/** The meaning of an index of a scatter. */
typedef enum weir_scatter_mode_value {
  /** The place of one element along an axis: the reverse of weir_gather_elements_desc. */
  WEIR_SCATTER_ELEMENTS = 0,
  /** Q indices are the place of a block: the reverse of weir_gather_nd_desc. */
  WEIR_SCATTER_ND = 1
} weir_scatter_mode_value;

/** Reductions of a scatter, as weir_binary_op_value has them. */
typedef enum weir_scatter_reduction_value {
  /** The update. */
  WEIR_SCATTER_NONE = 0,
  /** Their sum. */
  WEIR_SCATTER_ADD = 1,
  /** Their product. */
  WEIR_SCATTER_MUL = 2,
  /** The lesser one; a NaN if one is NaN. */
  WEIR_SCATTER_MIN = 3,
  /** The greater one; a NaN if one is NaN. */
  WEIR_SCATTER_MAX = 4
} weir_scatter_reduction_value;

/** Flags of weir_scatter_desc. */
typedef enum weir_scatter_flags {
  /** Indices below 0 count from the end of their dimension. */
  WEIR_SCATTER_FROM_END = 1
} weir_scatter_flags;

/** Meanings of counts. */
typedef enum weir_tile_mode_value {
  /** How many copies of x lie one after the other along the dimension; 0 leaves nothing. */
  WEIR_TILE_REPEAT = 0,
  /** The size of the dimension: that of x, or any if x has 1 there. 1 and WEIR_DIM_DYNAMIC: as in x. */
  WEIR_TILE_EXPAND = 1
} weir_tile_mode_value;

/**
 * Transposition: dimension i of the output is dimension permutation[i] of the input.
 *
 * Input: x. Output: x with its dimensions in that order.
 */
typedef struct weir_transpose_desc {
  /** sizeof(weir_transpose_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x; 0 = any number, in reverse order. */
  uint32_t rank;
  /** Reserved, 0. */
  uint32_t reserved;
  /** A permutation of 0 to rank - 1. */
  int32_t permutation[8];
} weir_transpose_desc;

/**
 * Concatenation of tensors along an axis. They have one type, and the same size in all other dimensions.
 *
 * Inputs: num_inputs tensors. Output: as the inputs; its size along the axis is the sum of theirs.
 */
typedef struct weir_concat_desc {
  /** sizeof(weir_concat_desc) of the caller's header. */
  size_t struct_size;
  /** 1 to WEIR_MAX_ARGS. */
  uint32_t num_inputs;
  /** The axis; negative counts from the end, -1 = last. */
  int32_t axis;
} weir_concat_desc;

/**
 * Slice of a tensor: in each dimension the elements from begin on, at a distance of step, up to end, which is
 * excluded.
 *
 * Positions are those of Python and NumPy. Negative ones count from the end; those that are outside of the tensor even
 * so are clamped to the place next to its first or its last element: INT64_MAX as end means "to the last", and with a
 * negative step INT64_MIN means "to the first". A slice that begins there and goes away from the tensor has no
 * elements: with a negative step it begins below the first one, with a positive step behind the last one. (ONNX begins
 * at the first one in the former case.) Input: x. Output: the slice.
 */
typedef struct weir_slice_desc {
  /** sizeof(weir_slice_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x. */
  uint32_t rank;
  /** Reserved, 0. */
  uint32_t reserved;
  /** The first element in each dimension. */
  int64_t begin[8];
  /** The end in each dimension. */
  int64_t end[8];
  /** The distance; 0 = 1. A negative step goes backwards, from begin down to end. */
  int64_t step[8];
} weir_slice_desc;

/** The contents of the margin of a weir_pad_desc: one of enum weir_pad_mode_value. */
typedef uint32_t weir_pad_mode;

/**
 * Padding: a margin of `before` elements in front and `after` behind in each dimension.
 *
 * A reflecting margin is smaller than the dimension. Input: x. Output: x with the margin.
 */
typedef struct weir_pad_desc {
  /** sizeof(weir_pad_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of x. */
  uint32_t rank;
  /** One of weir_pad_mode_value. */
  weir_pad_mode mode;
  /** Elements added in front in each dimension, 0 or more. */
  int64_t before[8];
  /** Elements added behind in each dimension, 0 or more. */
  int64_t after[8];
  /**
   * The element of a WEIR_PAD_CONSTANT margin. Floats are rounded to the nearest; an integer type must be able to
   * hold it.
   */
  double value;
} weir_pad_desc;

/** The meaning of the counts of a weir_tile_desc: one of enum weir_tile_mode_value. */
typedef uint32_t weir_tile_mode;

/**
 * Repetition: copies of x along each dimension, or x broadcast to a shape.
 *
 * Shapes are aligned at the last dimension, as weir_binary_desc aligns them. x has a size of 1 in dimensions that only
 * the counts have, and dimensions that only x has stay as they are. Input: x of any type. Output: of the greater rank
 * of both.
 */
typedef struct weir_tile_desc {
  /** sizeof(weir_tile_desc) of the caller's header. */
  size_t struct_size;
  /** Number of counts. */
  uint32_t rank;
  /** One of weir_tile_mode_value. */
  weir_tile_mode mode;
  /** A count for each dimension. */
  int64_t counts[8];
} weir_tile_desc;

/**
 * The same elements, in their order, in another shape. In a graph the output takes over the memory of the input where
 * possible, and nothing is copied; on a stream x may be its own output.
 *
 * Dimensions of WEIR_RESHAPE_KEEP are those of x, whatever their size; the other dimensions of x and of the output
 * hold equally many elements. Input: x. Output: x in the shape.
 */
typedef struct weir_reshape_desc {
  /** sizeof(weir_reshape_desc) of the caller's header. */
  size_t struct_size;
  /** Number of dimensions of the output. */
  uint32_t rank;
  /** Reserved, 0. */
  uint32_t reserved;
  /** The output's shape: sizes, WEIR_RESHAPE_INFER or WEIR_RESHAPE_KEEP. */
  int64_t dims[8];
} weir_reshape_desc;

/**
 * Gather: rows of a table by their indices, as for an embedding.
 *
 * Inputs: table; indices, s32 or s64, of any shape. Output: the table with the indices' shape in place of the axis. A
 * call with an index below 0 or beyond the axis fails with OUT_OF_RANGE, which names it, and writes nothing. With
 * WEIR_GATHER_FROM_END an index below 0 counts from the end of the axis, as in NumPy. On a CUDA engine that is a late
 * failure of the stream or run, and the rows of such indices are zeros.
 */
typedef struct weir_gather_desc {
  /** sizeof(weir_gather_desc) of the caller's header. */
  size_t struct_size;
  /** The axis of the table that the indices select from; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
  /** OR of weir_gather_flags. */
  uint64_t flags;
} weir_gather_desc;

/**
 * Gather of elements: each one by an index of its own, from where it is itself, but for one axis.
 *
 * Inputs: x; indices, s32 or s64, of x's rank, and along the other axes of at most its sizes. Output: the indices'
 * shape of elements of x. Of matrices and axis 0: y[i, j] = x[indices[i, j], j]. A call with an index below 0 or beyond
 * the axis fails with OUT_OF_RANGE, which names it, and writes nothing. With WEIR_GATHER_ELEMENTS_FROM_END an index
 * below 0 counts from the end of the axis.
 */
typedef struct weir_gather_elements_desc {
  /** sizeof(weir_gather_elements_desc) of the caller's header. */
  size_t struct_size;
  /** The axis of x that the indices select from; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
  /** OR of weir_gather_elements_flags. */
  uint64_t flags;
} weir_gather_elements_desc;

/**
 * Gather by places: blocks of a table, each by the indices of its first dimensions.
 *
 * Inputs: table; indices[..., Q], s32 or s64. The first `batch_dims` dimensions of both are the same; each Q indices
 * select from the next Q dimensions of the table, and what is behind those is a block. Output: the indices' shape
 * without Q, and a block's. A call with an index below 0 or beyond its dimension fails with OUT_OF_RANGE, which names
 * it, and writes nothing. With WEIR_GATHER_ND_FROM_END an index below 0 counts from the end of its dimension. Q
 * decides the rank of the output, so in a graph it is not open.
 */
typedef struct weir_gather_nd_desc {
  /** sizeof(weir_gather_nd_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_gather_nd_flags. */
  uint64_t flags;
  /** Number of the first dimensions that belong to table and indices alike. */
  uint64_t batch_dims;
} weir_gather_nd_desc;

/** The targets of the updates of a scatter: one of enum weir_scatter_mode_value. */
typedef uint32_t weir_scatter_mode;

/** The result of an element and its update: one of enum weir_scatter_reduction_value. */
typedef uint32_t weir_scatter_reduction;

/**
 * Scatter: a tensor in which some elements are replaced, or reduced with others.
 *
 * Inputs: x; indices, s32 or s64; updates, of x's type. With WEIR_SCATTER_ELEMENTS indices and updates have one shape,
 * of x's rank, and along the other axes of at most its sizes: for matrices and axis 0 updates[i, j] goes to
 * x[indices[i, j], j]. With WEIR_SCATTER_ND each Q of indices[..., Q] are the place of a block in the first Q
 * dimensions of x, and updates have the indices' shape without Q, and a block's; in a graph Q is not open. Output: as
 * x.
 *
 * Updates of one element are applied in their order in the tensor, on every pool; without a reduction the last one
 * remains. Types are any, with a reduction all but bool; f16 and bf16 are computed in f32 and rounded after each
 * update, integers wrap around. A call with an index below 0 or beyond its dimension fails with OUT_OF_RANGE, which
 * names it, and writes nothing.
 */
typedef struct weir_scatter_desc {
  /** sizeof(weir_scatter_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_scatter_flags. */
  uint64_t flags;
  /** One of weir_scatter_mode_value. */
  weir_scatter_mode mode;
  /** One of weir_scatter_reduction_value. */
  weir_scatter_reduction reduction;
  /** The axis of WEIR_SCATTER_ELEMENTS; negative counts from the end, -1 = last. For WEIR_SCATTER_ND 0. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
} weir_scatter_desc;

/**
 * One-hot encoding: for each index a row of one value, but for the element with that number.
 *
 * Inputs: indices, s32 or s64; values[2], of any type: that of all elements, and that of the one. Output: the indices'
 * shape with `depth` elements along a new axis, of the values' type. An index below 0 or beyond the depth has a row
 * without the one; with WEIR_ONE_HOT_FROM_END an index below 0 counts from the end.
 */
typedef struct weir_one_hot_desc {
  /** sizeof(weir_one_hot_desc) of the caller's header. */
  size_t struct_size;
  /** The axis of the output that is new; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
  /** Number of elements of a row, 0 or more. */
  int64_t depth;
  /** OR of weir_one_hot_flags. */
  uint64_t flags;
} weir_one_hot_desc;

/**
 * The places of the elements that are not 0, or not false; a NaN is not 0, and the two zeros are.
 *
 * Input: x of any type. Outputs: places s64 [rank of x, E], where E is the number of elements of x, and their number
 * s64 [1]. Column i is the place of the i-th of these elements, in the order of memory; columns behind the last one
 * are -1.
 */
typedef struct weir_nonzero_desc {
  /** sizeof(weir_nonzero_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_nonzero_flags. */
  uint64_t flags;
} weir_nonzero_desc;

/**
 * The shape of a tensor as a tensor, from which shapes of others are computed. Compile knows it where it knows the
 * shape of x, and then what is computed of it.
 *
 * Input: x of any type, whose elements are not read. Output: its sizes, s64 [rank of x].
 */
typedef struct weir_shape_desc {
  /** sizeof(weir_shape_desc) of the caller's header. */
  size_t struct_size;
} weir_shape_desc;

/**
 * Numbers from a start to a limit, which is not among them, in steps.
 *
 * Inputs: start, limit and step, one element each, all f32, s32 or s64. Output: [n] of that type, where n is the
 * difference of limit and start, divided by the step and rounded up, and 0 if that is negative. Element i is the start
 * and i steps. Integers are exact. Of f32 the difference is f32 and its quotient f64; an element is rounded after the
 * product and after the sum. Only the call knows n: for nodes of graphs alone, and the output is open
 * (WEIR_DIM_DYNAMIC) for whoever reads it. A step of 0, and an n that cannot be counted, fail with OUT_OF_RANGE.
 */
typedef struct weir_range_desc {
  /** sizeof(weir_range_desc) of the caller's header. */
  size_t struct_size;
} weir_range_desc;

/**
 * Creates a transposition, see weir_transpose_desc. NULL desc = the dimensions in reverse order.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, a dimension named twice); OUT_OF_RANGE (rank above WEIR_MAX_RANK, a
 * dimension that does not exist).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_transpose(weir_engine *engine,
                                         const weir_transpose_desc *desc,
                                         const weir_kernel_options *options,
                                         weir_kernel **out_kernel);

/**
 * Creates a concatenation, see weir_concat_desc.
 *
 * Errors: OUT_OF_RANGE (num_inputs, axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_concat(weir_engine *engine,
                                      const weir_concat_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/**
 * Creates a slice, see weir_slice_desc.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0); OUT_OF_RANGE (rank above WEIR_MAX_RANK).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_slice(weir_engine *engine,
                                     const weir_slice_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);

/**
 * Creates a padding, see weir_pad_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown mode, a margin below 0); OUT_OF_RANGE (rank above WEIR_MAX_RANK).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_pad(weir_engine *engine,
                                   const weir_pad_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);

/**
 * Creates a repetition of a tensor, see weir_tile_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown mode, a count below 0, but for -1 with WEIR_TILE_EXPAND); OUT_OF_RANGE (rank
 * above WEIR_MAX_RANK).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_tile(weir_engine *engine,
                                    const weir_tile_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);

/**
 * Creates a reshape, see weir_reshape_desc.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, a dimension below -2, two that are -1); OUT_OF_RANGE (rank above
 * WEIR_MAX_RANK).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_reshape(weir_engine *engine,
                                       const weir_reshape_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/**
 * Creates a gather, see weir_gather_desc. NULL desc = axis -1.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_gather(weir_engine *engine,
                                      const weir_gather_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/**
 * Creates a gather of elements, see weir_gather_elements_desc. NULL desc = axis -1.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_gather_elements(weir_engine *engine,
                                               const weir_gather_elements_desc *desc,
                                               const weir_kernel_options *options,
                                               weir_kernel **out_kernel);

/**
 * Creates a gather by places, see weir_gather_nd_desc. NULL desc = no batch.
 *
 * Errors: INVALID_ARGUMENT (unknown flags); OUT_OF_RANGE (more than 8 dimensions of a batch).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_gather_nd(weir_engine *engine,
                                         const weir_gather_nd_desc *desc,
                                         const weir_kernel_options *options,
                                         weir_kernel **out_kernel);

/**
 * Creates a scatter, see weir_scatter_desc. NULL desc = elements along the last axis, without a reduction.
 *
 * Errors: INVALID_ARGUMENT (unknown mode, reduction or flags, an axis of WEIR_SCATTER_ND, reserved not 0);
 * OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_scatter(weir_engine *engine,
                                       const weir_scatter_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/**
 * Creates a one-hot encoding, see weir_one_hot_desc.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7, depth below 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_one_hot(weir_engine *engine,
                                       const weir_one_hot_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/**
 * Creates a search for the elements that are not 0, see weir_nonzero_desc. NULL desc = room for all of them.
 *
 * Errors: INVALID_ARGUMENT (unknown flags).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_nonzero(weir_engine *engine,
                                       const weir_nonzero_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/** Creates a kernel that gives the shape of its input, see weir_shape_desc. desc may be NULL. */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_shape(weir_engine *engine,
                                     const weir_shape_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);

/** Creates an arithmetic sequence, see weir_range_desc. desc may be NULL. */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_range(weir_engine *engine,
                                     const weir_range_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);

/* ---- Reductions and normalisation ---------------------------------------------------------------------------------
 * Softmax, reductions and normalisation along axes.
 */

/** Flags of weir_cumsum_desc. */
typedef enum weir_cumsum_flags {
  /** A sum leaves out the element at its place: the first one is 0. */
  WEIR_CUMSUM_EXCLUSIVE = 1,
  /** Sums begin at the end of the axis. */
  WEIR_CUMSUM_REVERSE = 2
} weir_cumsum_flags;

/** Flags of weir_nms_desc. */
typedef enum weir_nms_flags {
  /** A box is its centre and its size, x, y, width, height, not two opposite corners, y, x, y, x. */
  WEIR_NMS_CENTERS = 1,
  /** Only boxes whose score is above `least_score`. */
  WEIR_NMS_SCORE_BOUND = 2,
  /**
   * The boxes have as many rows as were chosen. Only the call knows how many: for nodes of graphs alone, and the
   * output is open (WEIR_DIM_DYNAMIC) for whoever reads it.
   */
  WEIR_NMS_EXACT = 4
} weir_nms_flags;

/** Normalisations. */
typedef enum weir_norm_op_value {
  /**
   * Layer: (x - mean) / sqrt(variance + epsilon), with mean and variance of the elements along `axis` and all axes
   * behind it. Scale and shift have the shape of these axes.
   */
  WEIR_NORM_LAYER = 1,
  /** Root mean square: x / sqrt(mean of x * x + epsilon), of the same elements, with the same scale and shift. */
  WEIR_NORM_RMS = 2,
  /**
   * Batch, with given statistics: (x - mean) / sqrt(variance + epsilon), where mean and variance are further inputs,
   * with one element for each element along `axis`, the channels. So have scale and shift.
   */
  WEIR_NORM_BATCH = 3,
  /**
   * Group: as layer, with mean and variance over all elements of a group of channels and of the axes behind them,
   * for each position in front of the channels. Scale and shift have one element for each channel.
   */
  WEIR_NORM_GROUP = 4
} weir_norm_op_value;

/** Flags of weir_norm_desc. */
typedef enum weir_norm_flags {
  /** The result is multiplied with an input. */
  WEIR_NORM_SCALE = 1,
  /** An input is added to the result, after the multiplication. */
  WEIR_NORM_SHIFT = 2
} weir_norm_flags;

/** Reductions. A NaN among the elements gives a NaN. */
typedef enum weir_reduce_op_value {
  /** The sum; 0 for no elements. Of integers it wraps around. */
  WEIR_REDUCE_SUM = 1,
  /**
   * The sum divided by the number of elements; a NaN for no elements. Of integers the sum is one of 64 bits, and the
   * quotient is rounded toward zero; 0 for no elements.
   */
  WEIR_REDUCE_MEAN = 2,
  /** The least element; infinity for no elements, or the greatest number of the type. Of bools whether all hold. */
  WEIR_REDUCE_MIN = 3,
  /**
   * The greatest element; minus infinity for no elements, or the least number of the type. Of bools whether any
   * holds.
   */
  WEIR_REDUCE_MAX = 4,
  /** The product; 1 for no elements. Of integers it wraps around. */
  WEIR_REDUCE_MUL = 5,
  /** With s the sum of |x| to the power of p: the root of max(s, eps). */
  WEIR_REDUCE_NORM_MAX = 6,
  /** The root of s + eps. */
  WEIR_REDUCE_NORM_SUM = 7,
  /** max(s, eps). */
  WEIR_REDUCE_NORM_POWER_MAX = 8,
  /** s + eps. */
  WEIR_REDUCE_NORM_POWER_SUM = 9,
  /**
   * Index of the greatest element, as s32 or s64, among those that are reduced to one, in their order in memory. The
   * first of equals, and the first NaN if there is one. Refused for no elements, and for more than 2147483647, also
   * with WEIR_REDUCE_S64_INDICES.
   */
  WEIR_REDUCE_ARGMAX = 10,
  /** Index of the least element, likewise. */
  WEIR_REDUCE_ARGMIN = 11
} weir_reduce_op_value;

/** Flags of weir_reduce_desc. */
typedef enum weir_reduce_flags {
  /** The reduced axes stay, with one element each. */
  WEIR_REDUCE_KEEP_DIMS = 1,
  /** WEIR_REDUCE_ARGMAX and WEIR_REDUCE_ARGMIN give s64, as other frameworks do. */
  WEIR_REDUCE_S64_INDICES = 2
} weir_reduce_flags;

/** Flags of weir_softmax_desc. */
typedef enum weir_softmax_flags {
  /** The logarithm of the softmax: x - max - ln(sum). */
  WEIR_SOFTMAX_LOG = 1
} weir_softmax_flags;

/** Flags of weir_topk_desc. */
typedef enum weir_topk_flags {
  /** The least elements, the least one first. */
  WEIR_TOPK_LEAST = 1,
  /** Places are s64, as other frameworks have them. */
  WEIR_TOPK_S64_INDICES = 2
} weir_topk_flags;

/**
 * Softmax along one axis: exp(x - max) / sum; or its logarithm. f32, f16 and bf16, computed in f32. Input: x. Output:
 * as x, in the same memory or in other memory. A row whose greatest element is an infinity or that holds a NaN becomes
 * NaN.
 */
typedef struct weir_softmax_desc {
  /** sizeof(weir_softmax_desc) of the caller's header. */
  size_t struct_size;
  /** The axis; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
  /** OR of weir_softmax_flags. */
  uint64_t flags;
} weir_softmax_desc;

/** A reduction: one of enum weir_reduce_op_value. */
typedef uint32_t weir_reduce_op;

/**
 * Reduces some dimensions, each to one element. Floats are computed in f32 or wider, in an order that depends only on
 * the shape; integers are computed exactly.
 *
 * Input: x, f32, f16 or bf16; without the norms also s64, s32, s8 or u8; for WEIR_REDUCE_MIN, WEIR_REDUCE_MAX and
 * indices also bool. Output: the shape of x without the axes, or with 1 in their place; of the type of x; indices are
 * s32, or s64 with WEIR_REDUCE_S64_INDICES.
 */
typedef struct weir_reduce_desc {
  /** sizeof(weir_reduce_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_reduce_flags. */
  uint64_t flags;
  /** One of weir_reduce_op_value. */
  weir_reduce_op op;
  /** Number of axes; 0 = all. */
  uint32_t num_axes;
  /** The axes that are reduced, in any order; negative ones count from the end. */
  int32_t axes[8];
  /** The power of a norm: 1 or 2. For other operations 0. */
  float p;
  /** The eps of a norm, 0 or more. For other operations 0. */
  float eps;
} weir_reduce_desc;

/** A normalisation: one of enum weir_norm_op_value. */
typedef uint32_t weir_norm_op;

/**
 * Normalisation, then times scale and plus shift on request. The variance is that of the elements themselves: divided
 * by their number.
 *
 * Inputs: x, f32, f16 or bf16; for WEIR_NORM_BATCH mean and variance, f32; with WEIR_NORM_SCALE scale; with
 * WEIR_NORM_SHIFT shift: f32, or both of the type of x. Output: as x, in the same memory or in other
 * memory; no other input may share it. All types are computed in f32 or wider, and rounded once.
 */
typedef struct weir_norm_desc {
  /** sizeof(weir_norm_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_norm_flags. */
  uint64_t flags;
  /** One of weir_norm_op_value. */
  weir_norm_op op;
  /** The first axis that is normalised, or the axis of the channels; negative counts from the end, -1 = last. */
  int32_t axis;
  /**
   * Number of groups of WEIR_NORM_GROUP, a divisor of the number of channels; equal to it for an instance
   * normalisation. 0 for other operations.
   */
  uint32_t groups;
  /** Added to the variance, 0 or more. */
  float epsilon;
} weir_norm_desc;

/**
 * Local response normalisation: x / (bias + alpha / size * s)^beta, where s is the sum of the squares of the `size`
 * elements in the channels around it; beyond the first and the last channel there are none.
 *
 * The channels are axis 1, and of `size` channels (size - 1) / 2, rounded down, lie in front. Input: x[N, C, ...],
 * f32, f16 or bf16. Output: as x; computed in f32, and rounded once.
 */
typedef struct weir_lrn_desc {
  /** sizeof(weir_lrn_desc) of the caller's header. */
  size_t struct_size;
  /** Number of channels whose squares are added, 1 or more. */
  int64_t size;
  /** The factor of the mean of the squares. */
  float alpha;
  /** The exponent. */
  float beta;
  /** The number that is added to the squares. */
  float bias;
  /** Reserved, 0. */
  int32_t reserved;
} weir_lrn_desc;

/**
 * Cumulative sum: each element is the sum of those of x up to its place along one axis. Input: x, f32, f16, bf16,
 * s32 or s64. Output: as x, in the same memory or in other memory. Floats are added in f64, in the order of the axis, and each sum is rounded to f32, and
 * from there to f16 or bf16; s32 and s64 wrap around.
 */
typedef struct weir_cumsum_desc {
  /** sizeof(weir_cumsum_desc) of the caller's header. */
  size_t struct_size;
  /** The axis; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
  /** OR of weir_cumsum_flags. */
  uint64_t flags;
} weir_cumsum_desc;

/**
 * The k greatest or least elements along an axis, with their places, the best ones first.
 *
 * Input: x, f32, f16, bf16, s64, s32, s8 or u8. Outputs: the elements, and their places along the axis, s32 or, with
 * WEIR_TOPK_S64_INDICES, s64; both as x with k elements along the axis. Among equals the one with the lower place
 * comes first; the two zeros are equal. A NaN is better than any number, of the greatest and of the least alike, as in
 * WEIR_REDUCE_ARGMAX and WEIR_REDUCE_ARGMIN.
 */
typedef struct weir_topk_desc {
  /** sizeof(weir_topk_desc) of the caller's header. */
  size_t struct_size;
  /** The axis; negative counts from the end, -1 = last. */
  int32_t axis;
  /** Reserved, 0. */
  int32_t reserved;
  /** Number of elements that are chosen; at most as many as there are along the axis, which are at most 2147483647. */
  int64_t k;
  /** OR of weir_topk_flags. */
  uint64_t flags;
} weir_topk_desc;

/**
 * Non-maximum suppression: of each image and class the boxes with the best scores, without those that overlap a better
 * one.
 *
 * Of two boxes of a class with the same score the one with the lower number is better. A box is left out if its
 * intersection with a better one that was chosen is more than `most_overlap` of their union; boxes without an area
 * overlap nothing. A score that is NaN is never chosen. All is computed in f32.
 *
 * Inputs: boxes f32 [B, N, 4], scores f32 [B, C, N]. Outputs: the chosen boxes s64 [M, 3], image, class and number of
 * the box, and how many there are, s64 [1]. They are in the order of images, then classes, then scores, the best one
 * first. M is B * C times the smaller one of N and `most_boxes`; rows behind the last one are -1.
 */
typedef struct weir_nms_desc {
  /** sizeof(weir_nms_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_nms_flags. */
  uint64_t flags;
  /** Most boxes of an image and class; 0 = as many as there are. */
  int64_t most_boxes;
  /** Intersection over union up to which boxes are distinct; 0 = any overlap is too much. */
  float most_overlap;
  /** With WEIR_NMS_SCORE_BOUND, otherwise ignored. */
  float least_score;
  /** Reserved, 0. */
  uint64_t reserved;
} weir_nms_desc;

/**
 * Creates a softmax, see weir_softmax_desc. NULL desc = the last axis.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_softmax(weir_engine *engine,
                                       const weir_softmax_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/**
 * Creates a reduction, see weir_reduce_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, unknown op, p of a norm other than 1 and 2, eps below 0 or a NaN, p or
 * eps of a reduction other than a norm, WEIR_REDUCE_S64_INDICES where the results are no indices); OUT_OF_RANGE
 * (num_axes above WEIR_MAX_RANK, an axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_reduce(weir_engine *engine,
                                      const weir_reduce_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/**
 * Creates a normalisation, see weir_norm_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, unknown op, groups 0 of a group normalisation or not 0 of another one,
 * epsilon below 0 or a NaN); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_norm(weir_engine *engine,
                                    const weir_norm_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);

/**
 * Creates a normalisation by neighbouring channels, see weir_lrn_desc.
 *
 * Errors: INVALID_ARGUMENT (alpha, beta or bias that is no finite number); OUT_OF_RANGE (size below 1).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_lrn(weir_engine *engine,
                                   const weir_lrn_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);

/**
 * Creates a cumulative sum, see weir_cumsum_desc. NULL desc = along the last axis.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_cumsum(weir_engine *engine,
                                      const weir_cumsum_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/**
 * Creates a choice of the greatest or least elements, see weir_topk_desc.
 *
 * Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7, k outside
 * 0..2147483647).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_topk(weir_engine *engine,
                                    const weir_topk_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);

/**
 * Creates a non-maximum suppression of boxes, see weir_nms_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, reserved not 0, a threshold that is NaN); OUT_OF_RANGE (most_boxes
 * below 0 or above 2147483647).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_nms(weir_engine *engine,
                                   const weir_nms_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);

/* ---- Convolution --------------------------------------------------------------------------------------------------
 * Convolution and pooling over windows, and images of another size.
 */

/** How the dimensions of the weights of a convolution are ordered. */
typedef enum weir_weights_layout_value {
  /** [O, I / groups, KW], [O, I / groups, KH, KW], or [O, I / groups, KD, KH, KW]. */
  WEIR_LAYOUT_OIHW = 0
} weir_weights_layout_value;

/** The values assumed beyond the ends of an axis. */
typedef enum weir_padding_value {
  /** Zeros. */
  WEIR_PADDING_ZERO = 0,
  /** The elements mirrored at the first and the last one, which are not repeated. Shorter than the axis. */
  WEIR_PADDING_REFLECT = 1
} weir_padding_value;

/** Flags of weir_conv_desc. */
typedef enum weir_conv_flags {
  /** A third input, bias[O], is added to each channel. */
  WEIR_CONV_BIAS = 1,
  /** The last input, of the shape of the output, is added. UNIMPLEMENTED on CUDA engines. */
  WEIR_CONV_SUM = 2
} weir_conv_flags;

/** Flags of weir_conv_int8_desc. */
typedef enum weir_conv_int8_flags {
  /** One more input, bias[O] of s32, is added to the sums. */
  WEIR_CONV_INT8_BIAS = 1,
  /** The last input, scales[O] of f32, has a scale for each channel of the output, besides `scale`. */
  WEIR_CONV_INT8_SCALES = 2
} weir_conv_int8_flags;

/** Flags of weir_conv_transpose_desc. */
typedef enum weir_conv_transpose_flags {
  /** A third input, bias[O], is added to each channel. */
  WEIR_CONV_TRANSPOSE_BIAS = 1
} weir_conv_transpose_flags;

/** Flags of weir_grid_sample_desc. */
typedef enum weir_grid_sample_flags {
  /** -1 and 1 are the middle of the first and of the last element, not the edges of the image. */
  WEIR_GRID_SAMPLE_ALIGN_CORNERS = 1
} weir_grid_sample_flags;

/** Edges. */
typedef enum weir_grid_sample_edge_value {
  /** Zeros. */
  WEIR_GRID_SAMPLE_ZEROS = 0,
  /** A place is moved to the nearest one inside; for WEIR_RESIZE_CUBIC only those of the elements around it are. */
  WEIR_GRID_SAMPLE_BORDER = 1,
  /**
   * A place is mirrored at the edges until it is inside: at the edges of the image, or with
   * WEIR_GRID_SAMPLE_ALIGN_CORNERS at the middle of its first and last elements.
   */
  WEIR_GRID_SAMPLE_REFLECTION = 2
} weir_grid_sample_edge_value;

/** The value that pooling computes from a window. */
typedef enum weir_pooling_op_value {
  /** The greatest element; NaN if there is one; -infinity for a window without elements. */
  WEIR_POOLING_MAX = 1,
  /** The average over all taps; padding counts as zeros. */
  WEIR_POOLING_AVERAGE = 2,
  /** The average over the elements, without padding; 0 for a window without elements. */
  WEIR_POOLING_AVERAGE_INSIDE = 3
} weir_pooling_op_value;

/** Flags of weir_pooling_desc. */
typedef enum weir_pooling_flags {
  /**
   * The window is the whole signal, image or volume, which has at least one element; the output has one element per
   * channel. The other members are 0.
   */
  WEIR_POOLING_GLOBAL = 1
} weir_pooling_flags;

/** Interpolations. */
typedef enum weir_resize_mode_value {
  /** The nearest element. */
  WEIR_RESIZE_NEAREST = 0,
  /** Of two elements along each axis. */
  WEIR_RESIZE_LINEAR = 1,
  /** Of four elements along each axis, by the cubic convolution of Keys. */
  WEIR_RESIZE_CUBIC = 2
} weir_resize_mode_value;

/** The place of element i of an axis, where s is the scale; the output has n elements, and x has m. */
typedef enum weir_resize_coordinates_value {
  /** (i + 0.5) / s - 0.5. */
  WEIR_RESIZE_HALF_PIXEL = 0,
  /** i (m - 1) / (n - 1), and 0 if n is 1: the first and the last elements lie on one another. */
  WEIR_RESIZE_ALIGN_CORNERS = 1,
  /** i / s. */
  WEIR_RESIZE_ASYMMETRIC = 2,
  /** As WEIR_RESIZE_HALF_PIXEL, and 0 if n is 1. */
  WEIR_RESIZE_PYTORCH_HALF_PIXEL = 3,
  /** As WEIR_RESIZE_HALF_PIXEL, moved so that the middle of the output lies on that of x if n is not s m. */
  WEIR_RESIZE_HALF_PIXEL_SYMMETRIC = 4
} weir_resize_coordinates_value;

/** Roundings of a place. */
typedef enum weir_resize_rounding_value {
  /** The nearest one, the lower of two. */
  WEIR_RESIZE_PREFER_FLOOR = 0,
  /** The nearest one, the upper of two. */
  WEIR_RESIZE_PREFER_CEIL = 1,
  /** The one below. */
  WEIR_RESIZE_FLOOR = 2,
  /** The one above. */
  WEIR_RESIZE_CEIL = 3
} weir_resize_rounding_value;

/** Flags of weir_resize_desc. */
typedef enum weir_resize_flags {
  /** Elements beyond the edges have no weight, and the others as much more; otherwise those at the edge are repeated. */
  WEIR_RESIZE_EXCLUDE_OUTSIDE = 1
} weir_resize_flags;

/** How the dimensions of signals, images and volumes are ordered. */
typedef enum weir_data_layout_value {
  /** [N, C, W], [N, C, H, W], or [N, C, D, H, W]. */
  WEIR_LAYOUT_NCHW = 0
} weir_data_layout_value;

/** A layout of data: one of enum weir_data_layout_value. */
typedef uint32_t weir_data_layout;

/** A layout of weights: one of enum weir_weights_layout_value. */
typedef uint32_t weir_weights_layout;

/** A kind of padding: one of enum weir_padding_value. */
typedef uint32_t weir_padding;

/**
 * Convolution of signals [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W] in f32: each element of output
 * channel o is the sum, over the input channels of its group and the taps of the window, of weights times elements (a
 * cross-correlation: nothing is mirrored), plus the bias, plus the addend, then the activation. The sum of products and
 * bias has the bits that a convolution without addend and activation stores.
 *
 * Padding of zeros is multiplied like other elements. From 16 channels and 24 filters of a group, 1024 pairs of them,
 * and 7 x 7 windows on, windows of 3 x 3 without a stride are computed by Winograd's F(2 x 2, 3 x 3): an infinity or a
 * NaN then may make NaN of elements of the output up to one away from those whose windows have it. Of volumes these are
 * the rows and columns of windows of any depth, and a channel counts once for each tap in depth.
 *
 * Inputs: x; weights [O, C / groups, KW], [O, C / groups, KH, KW] or [O, C / groups, KD, KH, KW]; with WEIR_CONV_BIAS
 * bias[O]; with WEIR_CONV_SUM addend. Output: [N, O, OW], [N, O, OH, OW] or [N, O, OD, OH, OW], where
 * OW = (W + begin + end - ((KW - 1) * dilation + 1)) / stride + 1, rounded down. Volumes are UNIMPLEMENTED on CUDA
 * engines.
 *
 * Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
 * be 0. Members of depth are for D of volumes, and otherwise 0.
 */
typedef struct weir_conv_desc {
  /** sizeof(weir_conv_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_conv_flags. */
  uint64_t flags;
  /** How x and the output are ordered. */
  weir_data_layout data_layout;
  /** How the weights are ordered. */
  weir_weights_layout weights_layout;
  /** The values assumed beyond the ends. */
  weir_padding padding;
  /** The function applied to each element of the output. */
  weir_activation activation;
  /** Number of groups that the channels are divided into; 0 = 1. Both C and O are multiples of it. */
  int64_t groups;
  /** Distance from one window to the next, in elements; 0 = 1. */
  int64_t strides[2];
  /** Distance from one tap to the next, in elements; 0 = 1. */
  int64_t dilations[2];
  /** Elements of padding before the first one. */
  int64_t padding_begin[2];
  /** Elements of padding behind the last one. */
  int64_t padding_end[2];
  /** A parameter of the activation; 0 if it has none. */
  float alpha;
  /** A second one; 0 if it has none. */
  float beta;
  /** As strides, of the depth of volumes; 0 = 1. */
  int64_t depth_stride;
  /** As dilations, of the depth of volumes; 0 = 1. */
  int64_t depth_dilation;
  /** As padding_begin, of the depth of volumes. */
  int64_t depth_padding_begin;
  /** As padding_end, of the depth of volumes. */
  int64_t depth_padding_end;
} weir_conv_desc;

/**
 * int8 convolution of signals [N, C, W] or images [N, C, H, W]: each element of output channel o is
 * saturate(round(scale * scales[o] * (sum + bias[o])) + zero_y), where the sum is that of (x - zero_x) * (w - zero_w)
 * over the input channels of its group and the taps of the window. Padding is zero_x, and adds nothing.
 *
 * Sums are exact on every processor, and then saturate at 32 bits. Without scales, and with a scale of 1, the rest is
 * exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties to even. An output of f32 is not
 * rounded to an integer.
 *
 * Inputs: x of u8 or s8; weights of s8, [O, C / groups, KW] or [O, C / groups, KH, KW]; with WEIR_CONV_INT8_BIAS bias;
 * with WEIR_CONV_INT8_SCALES scales. Output: [N, O, OW] or [N, O, OH, OW], as large as that of weir_conv_desc. Weights
 * that are constants of a graph are packed by compile.
 *
 * Members of two numbers are for H and W of images; of signals the first one counts, and the second must be 0.
 */
typedef struct weir_conv_int8_desc {
  /** sizeof(weir_conv_int8_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_conv_int8_flags. */
  uint64_t flags;
  /** The type of the output: WEIR_S32 (also if it is 0), WEIR_F32, WEIR_S8 or WEIR_U8. */
  weir_dtype dtype;
  /** Finite; 0 = 1. */
  float scale;
  /** Zero point of x, subtracted from each element; a value of its type. */
  int32_t zero_x;
  /** Zero point of the weights, subtracted from each one: -128 to 127. */
  int32_t zero_w;
  /** Zero point of the output, added to each element at the end. */
  int32_t zero_y;
  /** Reserved, 0. */
  uint32_t reserved;
  /** Number of groups that the channels are divided into; 0 = 1. Both C and O are multiples of it. */
  int64_t groups;
  /** Distance from one window to the next, in elements; 0 = 1. */
  int64_t strides[2];
  /** Distance from one tap to the next, in elements; 0 = 1. */
  int64_t dilations[2];
  /** Elements of padding before the first one. */
  int64_t padding_begin[2];
  /** Elements of padding behind the last one. */
  int64_t padding_end[2];
} weir_conv_int8_desc;

/**
 * Transposed convolution of signals [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W] in f32: each element,
 * times the weights of its channel, is added to the window of the output that a convolution with these settings would
 * have made it of; then the bias, then the activation.
 *
 * Inputs: x; weights [C, O / groups, KW], [C, O / groups, KH, KW] or [C, O / groups, KD, KH, KW]; with
 * WEIR_CONV_TRANSPOSE_BIAS bias[O]. Output: [N, O, OW], [N, O, OH, OW] or [N, O, OD, OH, OW], where
 * OW = (W - 1) * stride + (KW - 1) * dilation + 1 + more - begin - end.
 *
 * Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
 * be 0. Members of depth are for D of volumes, and otherwise 0.
 */
typedef struct weir_conv_transpose_desc {
  /** sizeof(weir_conv_transpose_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_conv_transpose_flags. */
  uint64_t flags;
  /** How x and the output are ordered. */
  weir_data_layout data_layout;
  /** The function applied to each element of the output. */
  weir_activation activation;
  /** Number of groups that the channels are divided into; 0 = 1. Both C and O are multiples of it. */
  int64_t groups;
  /** Distance from one window to the next, in elements; 0 = 1. */
  int64_t strides[2];
  /** Distance from one tap to the next, in elements; 0 = 1. */
  int64_t dilations[2];
  /** Elements that are left out of the output in front. */
  int64_t padding_begin[2];
  /** Elements that are left out of the output behind. */
  int64_t padding_end[2];
  /** Elements that the output has more behind: what a stride of the convolution left over. */
  int64_t more[2];
  /** A parameter of the activation; 0 if it has none. */
  float alpha;
  /** A second one; 0 if it has none. */
  float beta;
  /** As strides, of the depth of volumes; 0 = 1. */
  int64_t depth_stride;
  /** As dilations, of the depth of volumes; 0 = 1. */
  int64_t depth_dilation;
  /** As padding_begin, of the depth of volumes. */
  int64_t depth_padding_begin;
  /** As padding_end, of the depth of volumes. */
  int64_t depth_padding_end;
  /** As more, of the depth of volumes. */
  int64_t depth_more;
} weir_conv_transpose_desc;

/** A kind of pooling: one of enum weir_pooling_op_value. */
typedef uint32_t weir_pooling_op;

/**
 * Pooling of signals [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W] in f32, channel by channel. Input: x.
 * Output: [N, C, OW], [N, C, OH, OW] or [N, C, OD, OH, OW], as large as that of a convolution with such windows.
 * Windows with a depth are UNIMPLEMENTED on CUDA engines.
 *
 * Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
 * be 0. Members of depth are for D of volumes, and otherwise 0.
 */
typedef struct weir_pooling_desc {
  /** sizeof(weir_pooling_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_pooling_flags. */
  uint64_t flags;
  /** The value computed from a window. */
  weir_pooling_op op;
  /** How x and the output are ordered. */
  weir_data_layout data_layout;
  /** Taps of a window. */
  int64_t kernel[2];
  /** Distance from one window to the next, in elements; 0 = 1. */
  int64_t strides[2];
  /** Distance from one tap to the next, in elements; 0 = 1. */
  int64_t dilations[2];
  /** Elements of padding before the first one; fewer than the window spans. */
  int64_t padding_begin[2];
  /** Elements of padding behind the last one; fewer than the window spans. */
  int64_t padding_end[2];
  /** As kernel, of the depth of volumes. */
  int64_t depth_kernel;
  /** As strides, of the depth of volumes; 0 = 1. */
  int64_t depth_stride;
  /** As dilations, of the depth of volumes; 0 = 1. */
  int64_t depth_dilation;
  /** As padding_begin, of the depth of volumes. */
  int64_t depth_padding_begin;
  /** As padding_end, of the depth of volumes. */
  int64_t depth_padding_end;
} weir_pooling_desc;

/** How an element is made of those around its place: one of enum weir_resize_mode_value. */
typedef uint32_t weir_resize_mode;

/** The places of elements of the output among those of x: one of enum weir_resize_coordinates_value. */
typedef uint32_t weir_resize_coordinates;

/** Which element is the nearest to a place: one of enum weir_resize_rounding_value. */
typedef uint32_t weir_resize_rounding;

/**
 * Resizing of images, or of signals: the last two dimensions of x, H and W, of any rank; the second one alone if the
 * first has neither size nor scale.
 *
 * Input: x, of any type for WEIR_RESIZE_NEAREST, else f32, f16, bf16, u8 or s8. Output: of the same type. Places and
 * weights are computed in f64, elements in f32, first along W and then along H, and rounded once. All elements that
 * have a weight are multiplied, also by 0: an infinity makes NaN of some elements beside it.
 */
typedef struct weir_resize_desc {
  /** sizeof(weir_resize_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_resize_flags. */
  uint64_t flags;
  /** One of weir_resize_mode_value. */
  weir_resize_mode mode;
  /** One of weir_resize_coordinates_value. */
  weir_resize_coordinates coordinates;
  /** One of weir_resize_rounding_value, for WEIR_RESIZE_NEAREST. */
  weir_resize_rounding rounding;
  /** The coefficient a of WEIR_RESIZE_CUBIC; 0 = -0.75. */
  float cubic;
  /** Elements of H and W in the output; 0 = as many as the scale says, rounded down. */
  int64_t sizes[2];
  /** Scales of H and W; 0 = that of the sizes, and 1 if there is no size either. */
  double scales[2];
} weir_resize_desc;

/** The values beyond the edges of an image that is sampled: one of enum weir_grid_sample_edge_value. */
typedef uint32_t weir_grid_sample_edge;

/**
 * Images [N, C, H, W] sampled at the places of a grid, in f32.
 *
 * A place is two numbers, of W and of H, from -1 to 1 within the image. It is moved inside as `edge` says, and then
 * the elements around it are weighted: the nearest one (ties to even), 2 x 2 or 4 x 4 of them, with a coefficient of
 * -0.75 for WEIR_RESIZE_CUBIC. Elements beyond the edges count likewise: 0, or those where `edge` moves them to. A NaN
 * is taken for -1.
 *
 * Inputs: x [N, C, H, W], where H and W are at least 1; grid [N, OH, OW, 2]. Output: [N, C, OH, OW].
 */
typedef struct weir_grid_sample_desc {
  /** sizeof(weir_grid_sample_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_grid_sample_flags. */
  uint64_t flags;
  /** How an element is made of those around its place. */
  weir_resize_mode mode;
  /** The values beyond the edges. */
  weir_grid_sample_edge edge;
} weir_grid_sample_desc;

/**
 * Creates a convolution, see weir_conv_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
 * bias, no padding, strides of 1.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, layouts, padding or activation); OUT_OF_RANGE (negative or enormous
 * numbers).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_conv(weir_engine *engine,
                                    const weir_conv_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);

/**
 * Creates an int8 convolution, see weir_conv_int8_desc. NULL desc = 32-bit sums, no bias, no zero points, no
 * padding, strides of 1.
 *
 * Errors: INVALID_ARGUMENT (unknown flags or type, reserved not 0, a scale that is not finite); OUT_OF_RANGE (zero
 * points, negative or enormous numbers).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_conv_int8(weir_engine *engine,
                                         const weir_conv_int8_desc *desc,
                                         const weir_kernel_options *options,
                                         weir_kernel **out_kernel);

/**
 * Creates a transposed convolution, see weir_conv_transpose_desc. Shapes are checked when it is enqueued or
 * compiled. NULL desc = no bias, no padding, strides of 1.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, layout or activation); OUT_OF_RANGE (negative or enormous numbers).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_conv_transpose(weir_engine *engine,
                                              const weir_conv_transpose_desc *desc,
                                              const weir_kernel_options *options,
                                              weir_kernel **out_kernel);

/**
 * Creates a pooling, see weir_pooling_desc. Shapes are checked when it is enqueued or compiled.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, op or layout, windows beside WEIR_POOLING_GLOBAL); OUT_OF_RANGE
 * (negative or enormous numbers, a window without taps, padding as long as the window).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_pooling(weir_engine *engine,
                                       const weir_pooling_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);

/**
 * Creates a resizing of images, see weir_resize_desc.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, mode, coordinates or rounding; a scale that is no number from 1e-6 to
 * 1e6, a cubic coefficient that is no finite number); OUT_OF_RANGE (a size below 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_resize(weir_engine *engine,
                                      const weir_resize_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);

/**
 * Creates a sampling of images at places of a grid, see weir_grid_sample_desc. NULL desc = nearest elements, zeros
 * beyond the edges.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, mode or edges).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_grid_sample(weir_engine *engine,
                                           const weir_grid_sample_desc *desc,
                                           const weir_kernel_options *options,
                                           weir_kernel **out_kernel);

/* ---- Recurrent cells ----------------------------------------------------------------------------------------------
 * One step of an LSTM or a GRU, or all steps of sequences.
 */

/** How the blocks of the weights and biases of a cell are ordered. */
typedef enum weir_gate_order_value {
  /** As in ONNX. LSTM: input, output, forget, cell. GRU: update, reset, new. */
  WEIR_GATES_ONNX = 0,
  /** As in PyTorch. LSTM: input, forget, cell, output. GRU: reset, update, new. */
  WEIR_GATES_TORCH = 1
} weir_gate_order_value;

/** Flags of weir_gru_desc. */
typedef enum weir_gru_flags {
  /** Two more inputs, the biases of W and of R, [3 H] each, are added to the gates. */
  WEIR_GRU_BIAS = 1,
  /**
   * The reset gate is applied to h * R^T and its bias, not to h: what ONNX calls linear_before_reset, and the only
   * way of PyTorch.
   */
  WEIR_GRU_LINEAR_BEFORE_RESET = 2
} weir_gru_flags;

/** Flags of weir_gru_sequence_desc. */
typedef enum weir_gru_sequence_flags {
  /** An input more, [D, 6 H]: the biases of W, then those of R. */
  WEIR_GRU_SEQUENCE_BIAS = 1,
  /**
   * An input more, s32[N]: the number of steps of each sequence. Behind its end a sequence keeps its state, and the
   * output of these steps is 0. A number below 0 counts as 0, one above T as T.
   */
  WEIR_GRU_SEQUENCE_LENGTHS = 2,
  /** An input more, the state before the first step. Without it the state is 0. */
  WEIR_GRU_SEQUENCE_STATES = 4,
  /** As WEIR_GRU_LINEAR_BEFORE_RESET. */
  WEIR_GRU_SEQUENCE_LINEAR_BEFORE_RESET = 8,
  /** The batch is the first dimension of x, the output and the state. */
  WEIR_GRU_SEQUENCE_BATCH_FIRST = 16
} weir_gru_sequence_flags;

/** Flags of weir_lstm_desc. */
typedef enum weir_lstm_flags {
  /** Two more inputs, the biases of W and of R, [4 H] each, are added to the gates. */
  WEIR_LSTM_BIAS = 1
} weir_lstm_flags;

/** Flags of weir_lstm_sequence_desc. */
typedef enum weir_lstm_sequence_flags {
  /** An input more, [D, 8 H]: the biases of W, then those of R. */
  WEIR_LSTM_SEQUENCE_BIAS = 1,
  /**
   * An input more, s32[N]: the number of steps of each sequence. Behind its end a sequence keeps its states, and the
   * output of these steps is 0. A number below 0 counts as 0, one above T as T.
   */
  WEIR_LSTM_SEQUENCE_LENGTHS = 2,
  /** Two inputs more, the states before the first step, h and c. Without them they are 0. */
  WEIR_LSTM_SEQUENCE_STATES = 4,
  /**
   * An input more, [D, 3 H], in the order input, output, forget: these times c, the old one for the gates of input
   * and forget and the new one for that of the output, are added to the gates.
   */
  WEIR_LSTM_SEQUENCE_PEEPHOLES = 8,
  /** The batch is the first dimension of x, the output and the states. */
  WEIR_LSTM_SEQUENCE_BATCH_FIRST = 16
} weir_lstm_sequence_flags;

/** The order in which the steps of a sequence are taken. */
typedef enum weir_sequence_direction_value {
  /** From the first step to the last one. */
  WEIR_SEQUENCE_FORWARD = 0,
  /** From the last step of each sequence to the first one. */
  WEIR_SEQUENCE_REVERSE = 1,
  /** Both, each with weights of its own: forward is number 0 and reverse number 1 of the dimension D. */
  WEIR_SEQUENCE_BIDIRECTIONAL = 2
} weir_sequence_direction_value;

/** An order of gates: one of enum weir_gate_order_value. */
typedef uint32_t weir_gate_order;

/**
 * One step of an LSTM in f32. With the gates i, o, f (sigmoid) and g (tanh), each of x * W^T + h * R^T of its block:
 * c' = f * c + i * g, h' = o * tanh(c').
 *
 * Inputs: x[N, I], h[N, H], c[N, H], W[4 H, I], R[4 H, H] and, with WEIR_LSTM_BIAS, the biases. Outputs: h'[N, H],
 * c'[N, H].
 */
typedef struct weir_lstm_desc {
  /** sizeof(weir_lstm_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_lstm_flags. */
  uint64_t flags;
  /** How the blocks of W, R and the biases are ordered. */
  weir_gate_order gate_order;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_lstm_desc;

/**
 * One step of a GRU in f32. With the gates z (update) and r (reset), sigmoids of x * W^T + h * R^T of their blocks,
 * and n = tanh(x * W^T + (r * h) * R^T) of its block, or tanh(x * W^T + r * (h * R^T)) as flags say: h' = (1 - z) * n
 * + z * h.
 *
 * Inputs: x[N, I], h[N, H], W[3 H, I], R[3 H, H] and, with WEIR_GRU_BIAS, the biases. Output: h'[N, H].
 */
typedef struct weir_gru_desc {
  /** sizeof(weir_gru_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_gru_flags. */
  uint64_t flags;
  /** How the blocks of W, R and the biases are ordered. */
  weir_gate_order gate_order;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_gru_desc;

/** A direction: one of enum weir_sequence_direction_value. */
typedef uint32_t weir_sequence_direction;

/**
 * An LSTM over whole sequences in f32: all steps of weir_lstm_desc, one after the other, in one or both directions.
 *
 * Inputs, in this order: x[T, N, I], W[D, 4 H, I], R[D, 4 H, H], and as flags say biases, lengths, h[D, N, H] and
 * c[D, N, H], peepholes. Outputs: h after each step [T, D, N, H], the last h [D, N, H] and the last c [D, N, H]. D is
 * 2 for WEIR_SEQUENCE_BIDIRECTIONAL, else 1. With WEIR_LSTM_SEQUENCE_BATCH_FIRST x is [N, T, I], states are [N, D, H],
 * and the output is [N, T, D, H].
 *
 * W and R that are constants of a graph are packed by compile. Others are read and packed in each run: R takes scratch
 * memory of its size for each thread then.
 */
typedef struct weir_lstm_sequence_desc {
  /** sizeof(weir_lstm_sequence_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_lstm_sequence_flags. */
  uint64_t flags;
  /** How the blocks of W, R and the biases are ordered. */
  weir_gate_order gate_order;
  /** The order of the steps. */
  weir_sequence_direction direction;
  /** Arguments of the gates' functions are bounded to -clip and clip; 0 = not at all. */
  float clip;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_lstm_sequence_desc;

/**
 * A GRU over whole sequences in f32: all steps of weir_gru_desc, one after the other, in one or both directions.
 *
 * Inputs, in this order: x[T, N, I], W[D, 3 H, I], R[D, 3 H, H], and as flags say biases, lengths, h[D, N, H].
 * Outputs: h after each step [T, D, N, H], and the last h [D, N, H]. D is 2 for WEIR_SEQUENCE_BIDIRECTIONAL, else 1.
 * With WEIR_GRU_SEQUENCE_BATCH_FIRST x is [N, T, I], the state is [N, D, H], and the output is [N, T, D, H].
 *
 * W and R that are constants of a graph are packed by compile. Others are read and packed in each run: R takes scratch
 * memory of its size for each thread then.
 */
typedef struct weir_gru_sequence_desc {
  /** sizeof(weir_gru_sequence_desc) of the caller's header. */
  size_t struct_size;
  /** OR of weir_gru_sequence_flags. */
  uint64_t flags;
  /** How the blocks of W, R and the biases are ordered. */
  weir_gate_order gate_order;
  /** The order of the steps. */
  weir_sequence_direction direction;
  /** Arguments of the gates' functions are bounded to -clip and clip; 0 = not at all. */
  float clip;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_gru_sequence_desc;

/**
 * Creates a step of an LSTM, see weir_lstm_desc. Shapes are checked when it is enqueued or compiled. NULL desc =
 * no biases, gates in the order of ONNX.
 *
 * Errors: INVALID_ARGUMENT (unknown flags or gate order, reserved not 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_lstm(weir_engine *engine,
                                    const weir_lstm_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);

/**
 * Creates a step of a GRU, see weir_gru_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
 * biases, gates in the order of ONNX, reset before the product.
 *
 * Errors: INVALID_ARGUMENT (unknown flags or gate order, reserved not 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_gru(weir_engine *engine,
                                   const weir_gru_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);

/**
 * Creates an LSTM over whole sequences, see weir_lstm_sequence_desc. NULL desc = forward, neither biases nor
 * initial states, gates in the order of ONNX.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, gate order or direction, a clip that is negative or NaN, reserved not
 * 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_lstm_sequence(weir_engine *engine,
                                             const weir_lstm_sequence_desc *desc,
                                             const weir_kernel_options *options,
                                             weir_kernel **out_kernel);

/**
 * Creates a GRU over whole sequences, see weir_gru_sequence_desc. NULL desc = forward, neither biases nor an
 * initial state, gates in the order of ONNX, reset before the product.
 *
 * Errors: INVALID_ARGUMENT (unknown flags, gate order or direction, a clip that is negative or NaN, reserved not
 * 0).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_create_gru_sequence(weir_engine *engine,
                                            const weir_gru_sequence_desc *desc,
                                            const weir_kernel_options *options,
                                            weir_kernel **out_kernel);

/* ---- Kernel cache -------------------------------------------------------------------------------------------------
 * A built-in kernel that was created before, for the same device and with the same settings, is not made again: the
 * caller gets the same kernel in a handle of its own. Name, cost and engine are the handle's. The cache keeps no
 * engine, pool or packed weights alive, and is empty when the last engine is released. Kernels of the host are not in
 * it. The environment variable WEIR_KERNEL_CACHE_CAPACITY, 0 to 1048576, says how many kernels are kept if
 * weir_kernel_cache_set_capacity does not; it is read once per process, and any other value is INVALID_ARGUMENT where
 * a built-in kernel is created.
 */

/** Counters of this process's kernel cache. */
typedef struct weir_kernel_cache_info {
  /** sizeof(weir_kernel_cache_info), set by the caller before the call. */
  size_t struct_size;
  /** Maximum number of kernels kept; 0 = no cache. */
  uint64_t capacity;
  /** Kernels in the cache now. */
  uint64_t entries;
  /** Creations that found their kernel in the cache, since the library was loaded. */
  uint64_t hits;
  /** Creations that had to build the kernel. */
  uint64_t misses;
  /** Creations that found another thread building the kernel, and waited for it. */
  uint64_t shared_builds;
  /** Kernels evicted to make room, or because the capacity was lowered. */
  uint64_t evictions;
} weir_kernel_cache_info;

/**
 * Sets the maximum number of kernels kept, 0 to 1048576; 0 = no cache. It comes before WEIR_KERNEL_CACHE_CAPACITY from
 * the environment; without either it is 1024. Excess kernels are released, least recently used first.
 *
 * Errors: OUT_OF_RANGE.
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_cache_set_capacity(size_t capacity);

/**
 * Fills *out_info with the cache's capacity, size and counters.
 *
 * Errors: INVALID_ARGUMENT (NULL, struct_size, a meaningless value of WEIR_KERNEL_CACHE_CAPACITY).
 */
WEIR_API WEIR_NODISCARD weir_status weir_kernel_cache_get_info(weir_kernel_cache_info *out_info);

/* ---- Matrix products without an engine ----------------------------------------------------------------------------
 * Functions in the style of BLAS, for code that has arrays and a pool and wants nothing else. Each call says which
 * pool shares its work; NULL is the calling thread alone. The results do not depend on it. They use the best
 * instruction set of the processor up to the one that the environment variable WEIR_MAX_ISA names when the first
 * product is made: portable, neon, avx2, avx_vnni, avx512, avx512_vnni or amx. The registers of AMX are given by the
 * system to a whole process, which costs it larger signal frames: weir asks for them only if the variable says amx,
 * and uses them too if the process has asked before (docs/kernels.md).
 */

/** Shape of the offset in `co`. */
typedef enum weir_gemm_offset_value {
  /** One number, for all elements. */
  WEIR_GEMM_OFFSET_FIXED = 1,
  /** A row of n numbers, added to each row of C. */
  WEIR_GEMM_OFFSET_ROW = 2,
  /** A column of m numbers, added to each column of C. */
  WEIR_GEMM_OFFSET_COLUMN = 3
} weir_gemm_offset_value;

/** The offset that weir_gemm_u8s8s32 and weir_gemm_s8s8s32 add to C: one of enum weir_gemm_offset_value. */
typedef uint32_t weir_gemm_offset;

/**
 * C = alpha * op(A) * op(B) + beta * C in f32, where op(A) is m x k and op(B) is k x n. With transpose_a = 1 A is
 * stored as k x m, with transpose_b = 1 B as n x k; otherwise they are 0. All matrices are row-major, with row strides
 * lda, ldb and ldc in elements. Any size may be 0, and a matrix without elements may be NULL. With beta = 0 C is not
 * read, with alpha = 0 or k = 0 A and B are not; NaN and infinity, in alpha and beta too, follow IEEE 754. C must not
 * overlap A or B.
 *
 * The work runs on `pool`, or in the calling thread if pool is NULL. The bits of C depend on the arguments and the
 * instruction set, never on the pool. The second and later calls of a size allocate nothing: the library keeps scratch
 * memory for them, at most about a megabyte for each thread that was in such a call at once.
 *
 * Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Errors: INVALID_ARGUMENT
 * (WEIR_MAX_ISA too); OUT_OF_RANGE (a matrix larger than memory); RESOURCE_EXHAUSTED. On all of them C is untouched.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sgemm(int32_t transpose_a,
                       int32_t transpose_b,
                       int64_t m,
                       int64_t n,
                       int64_t k,
                       float alpha,
                       const float *a,
                       int64_t lda,
                       const float *b,
                       int64_t ldb,
                       float beta,
                       float *c,
                       int64_t ldc,
                       weir_threadpool *pool);

/**
 * Integer GEMM: C = saturate(round(alpha * (op(A) - ao) * (op(B) - bo) + beta * C + offset)) with unsigned A, signed B
 * and 32-bit C. The zero points ao and bo are subtracted from every element of A and B. Sizes, transposes and strides
 * are those of weir_sgemm. `co` holds the offset, 1, n or m numbers according to `offsetc` (weir_gemm_offset_value). A
 * NULL co is an offset of 0.
 *
 * The sum of products is exact for every k on every processor: nothing saturates or wraps on the way. With alpha and
 * beta 0 or 1 the rest is exact too. Otherwise it is computed in f64 as (alpha * sum + beta * C) + offset, each step
 * rounded to nearest even, and then rounded to the nearest integer, ties to even. Results beyond 32 bits become
 * INT32_MAX or INT32_MIN. With beta = 0 C is not read, with alpha = 0 or k = 0 A and B are not.
 *
 * Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Errors: as weir_sgemm, and
 * INVALID_ARGUMENT for an alpha or beta that is not finite. On all of them C is untouched.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_gemm_u8s8s32(int32_t transpose_a,
                              int32_t transpose_b,
                              weir_gemm_offset offsetc,
                              int64_t m,
                              int64_t n,
                              int64_t k,
                              float alpha,
                              const uint8_t *a,
                              int64_t lda,
                              uint8_t ao,
                              const int8_t *b,
                              int64_t ldb,
                              int8_t bo,
                              float beta,
                              int32_t *c,
                              int64_t ldc,
                              const int32_t *co,
                              weir_threadpool *pool);

/**
 * As weir_gemm_u8s8s32, with signed A.
 *
 * Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Errors: as
 * weir_gemm_u8s8s32.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_gemm_s8s8s32(int32_t transpose_a,
                              int32_t transpose_b,
                              weir_gemm_offset offsetc,
                              int64_t m,
                              int64_t n,
                              int64_t k,
                              float alpha,
                              const int8_t *a,
                              int64_t lda,
                              int8_t ao,
                              const int8_t *b,
                              int64_t ldb,
                              int8_t bo,
                              float beta,
                              int32_t *c,
                              int64_t ldc,
                              const int32_t *co,
                              weir_threadpool *pool);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_OPS_H */
