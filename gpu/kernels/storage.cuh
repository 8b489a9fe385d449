// Numbers as tensors hold them: read as floats, and written from floats, as kernel/vector/convert.rs says. Types are those of weir_dtype_value.
#pragma once
#include "number.cuh"

#define F32 1
#define S32 2
#define U8 3
#define S8 4
#define F16 5
#define BF16 6
#define BOOL 7
#define S64 8

DEVICE float widened_half(u16 half) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}

DEVICE u16 narrowed_half(float x) {
    u16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}

DEVICE float widened_bf16(u16 half) { return FLOAT((u32)half << 16); }

DEVICE u16 narrowed_bf16(float x) {
    u32 bits = BITS(x);
    u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (u16)((bits & ~SIGN) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

// To nearest, ties to even, and what is too large or small is the greatest or least number; a NaN is 0.
DEVICE int narrowed_int(float x) { return x != x ? 0 : __float2int_rn(x); }
DEVICE i64 narrowed_long(float x) { return x != x ? 0 : __float2ll_rn(x); }
DEVICE int narrowed_between(float x, float low, float high) {
    float number = x != x ? 0.0f : x;
    number = number > low ? number : low;
    return __float2int_rn(number < high ? number : high);
}

DEVICE float load(const void *from, u32 dtype, i64 at) {
    switch (dtype) {
    case F32: return ((const float *)from)[at];
    case S32: return (float)((const int *)from)[at];
    case U8: return (float)((const u8 *)from)[at];
    case S8: return (float)((const signed char *)from)[at];
    case F16: return widened_half(((const u16 *)from)[at]);
    case BF16: return widened_bf16(((const u16 *)from)[at]);
    case S64: return (float)((const i64 *)from)[at];
    default: return ((const u8 *)from)[at] ? 1.0f : 0.0f;
    }
}

DEVICE void store(void *to, u32 dtype, i64 at, float x) {
    switch (dtype) {
    case F32: ((float *)to)[at] = x; break;
    case S32: ((int *)to)[at] = narrowed_int(x); break;
    case U8: ((u8 *)to)[at] = (u8)narrowed_between(x, 0.0f, 255.0f); break;
    case S8: ((signed char *)to)[at] = (signed char)narrowed_between(x, -128.0f, 127.0f); break;
    case F16: ((u16 *)to)[at] = narrowed_half(x); break;
    case BF16: ((u16 *)to)[at] = narrowed_bf16(x); break;
    case S64: ((i64 *)to)[at] = narrowed_long(x); break;
    default: ((u8 *)to)[at] = x != 0.0f; break;
    }
}

// The same where a number is a float or a half.
DEVICE float load_float(const void *from, u32 dtype, i64 at) {
    if (dtype == F32) return ((const float *)from)[at];
    u16 half = ((const u16 *)from)[at];
    return dtype == F16 ? widened_half(half) : widened_bf16(half);
}

DEVICE void store_float(void *to, u32 dtype, i64 at, float x) {
    if (dtype == F32) {
        ((float *)to)[at] = x;
    } else {
        ((u16 *)to)[at] = dtype == F16 ? narrowed_half(x) : narrowed_bf16(x);
    }
}
