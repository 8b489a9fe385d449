/* malloc and its relatives, defined in the executable: the dynamic linker binds every shared library of the process to
 * these, weir included. They count and pass the call on to the C library.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif

#include "count_allocations.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

bool allocations_are_counted(void) {
    return false;
}

uint64_t allocations_so_far(void) {
    return 0;
}

#else

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_fast64_t count;

bool allocations_are_counted(void) {
    void *(*volatile allocate)(size_t) = malloc; /* volatile: a compiler may drop a malloc that is freed at once */
    uint64_t before = allocations_so_far();
    free(allocate(1));
    return allocations_so_far() != before;
}

uint64_t allocations_so_far(void) {
    return atomic_load_explicit(&count, memory_order_relaxed);
}

/* Counts one call, and finds the C library's function behind ours. The first call comes before main, from one thread;
 * a second thread would find the same address. */
static void *counted(_Atomic(void *) *next, const char *name) {
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    void *function = atomic_load_explicit(next, memory_order_relaxed);
    if (function == NULL) {
        function = dlsym(RTLD_NEXT, name);
        if (function == NULL) {
            abort(); /* no C library without malloc */
        }
        atomic_store_explicit(next, function, memory_order_relaxed);
    }
    return function;
}

/* Declares `next`, the C library's function. ISO C has no cast from an object pointer to a function pointer; POSIX
 * promises that the bytes are the same. */
#define NEXT(result, name, parameters)                      \
    static _Atomic(void *) address_of_##name;               \
    void *address = counted(&address_of_##name, #name);     \
    result(*next) parameters;                               \
    memcpy(&next, &address, sizeof next)

void *malloc(size_t size) {
    NEXT(void *, malloc, (size_t));
    return next(size);
}

void *calloc(size_t items, size_t size) {
    NEXT(void *, calloc, (size_t, size_t));
    return next(items, size);
}

void *realloc(void *memory, size_t size) {
    NEXT(void *, realloc, (void *, size_t));
    return next(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    NEXT(void *, aligned_alloc, (size_t, size_t));
    return next(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    NEXT(int, posix_memalign, (void **, size_t, size_t));
    return next(out, alignment, size);
}

#endif
