// Integers and truth values as tensors hold them, computed with in 64 bits. Types are those of weir_dtype_value.
#pragma once
#include "storage.cuh"

#define LEAST_LONG ((i64)0x8000000000000000ll)
#define MOST_LONG 0x7fffffffffffffffll

DEVICE bool is_integer(u32 dtype) { return dtype == S64 || dtype == S32 || dtype == S8 || dtype == U8; }
DEVICE bool is_whole(u32 dtype) { return is_integer(dtype) || dtype == BOOL; }

DEVICE i64 load_whole(const void *from, u32 dtype, i64 at) {
    switch (dtype) {
    case S64: return ((const i64 *)from)[at];
    case S32: return ((const int *)from)[at];
    case U8: return ((const u8 *)from)[at];
    case S8: return ((const signed char *)from)[at];
    default: return ((const u8 *)from)[at] != 0;
    }
}

// The lowest bits; as a truth value whether it is not 0.
DEVICE void store_whole(void *to, u32 dtype, i64 at, i64 x) {
    switch (dtype) {
    case S64: ((i64 *)to)[at] = x; break;
    case S32: ((int *)to)[at] = (int)x; break;
    case U8: ((u8 *)to)[at] = (u8)x; break;
    case S8: ((signed char *)to)[at] = (signed char)x; break;
    default: ((u8 *)to)[at] = x != 0; break;
    }
}

// The limits of a type of integers; for truth values there are none.
DEVICE i64 least_of(u32 dtype) { return dtype == S32 ? -2147483648ll : dtype == S8 ? -128 : dtype == U8 ? 0 : LEAST_LONG; }
DEVICE i64 most_of(u32 dtype) { return dtype == S32 ? 2147483647ll : dtype == S8 ? 127 : dtype == U8 ? 255 : MOST_LONG; }
DEVICE i64 saturated(u32 dtype, i64 x) {
    i64 least = least_of(dtype), most = most_of(dtype);
    return x < least ? least : x > most ? most : x;
}
