/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * malloc and its relatives, replaced in this program: what the library asks for is told apart by the address it is
 * asked from, counted, and refused on request. Include it in one file of a program, first of all. The sanitizers bring
 * a malloc of their own; with them INTERPOSED is 0 and nothing is replaced.
 */

#ifndef WEIR_CTESTS_INTERPOSE_H
#define WEIR_CTESTS_INTERPOSE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#include "make.h"

#define INTERPOSED (!WITH_ASAN && !WITH_TSAN)

#if INTERPOSED

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
} next;

static uintptr_t library_begin, library_end;
static atomic_long library_requests; /* requests of the library since interpose_reset */
static atomic_long refuse_first, refuse_last;
static atomic_long refuse_per_million; /* besides, drawn by the request's number */
static atomic_ulong refuse_seed;
static atomic_ulong refuse_above; /* besides, all that are larger; 0 = none */
static atomic_long refused_requests;

/* dlsym may ask for memory before the real functions are known. */
static _Alignas(16) char nursery[8192];
static size_t nursery_used;
static int resolving;

static void resolve(void) {
    if (next.aligned_alloc != NULL || resolving) return;
    resolving = 1;
    *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next.free = dlsym(RTLD_NEXT, "free");
    *(void **)&next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    resolving = 0;
}

static void *from_nursery(size_t size) {
    size_t begin = nursery_used;
    nursery_used += (size + 15) & ~(size_t)15;
    return nursery_used <= sizeof nursery ? nursery + begin : NULL;
}

static int in_nursery(const void *data) {
    return (const char *)data >= nursery && (const char *)data < nursery + sizeof nursery;
}

/* The finalizer of splitmix64 (Steele, Lea and Flood 2014). */
static int is_drawn(long number) {
    long per_million = atomic_load(&refuse_per_million);
    if (per_million == 0) return 0;
    uint64_t z = ((uint64_t)number + atomic_load(&refuse_seed) * 1000003u) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (long)((z ^ (z >> 31)) % 1000000u) < per_million;
}

/* Counts a request from `caller` if that is in the library, and says whether to refuse it. */
static int refused(const void *caller, size_t size) {
    if ((uintptr_t)caller < library_begin || (uintptr_t)caller >= library_end) return 0;
    long number = atomic_fetch_add(&library_requests, 1) + 1;
    size_t above = atomic_load(&refuse_above);
    int is_refused = (number >= atomic_load(&refuse_first) && number <= atomic_load(&refuse_last)) || is_drawn(number) ||
                     (above > 0 && size > above);
    if (is_refused) atomic_fetch_add(&refused_requests, 1);
    return is_refused;
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

void *malloc(size_t size) {
    resolve();
    if (next.malloc == NULL) return from_nursery(size);
    return refused(CALLER, size) ? (errno = ENOMEM, NULL) : next.malloc(size);
}

void *calloc(size_t count, size_t size) {
    resolve();
    if (next.calloc == NULL) return from_nursery(count * size); /* the nursery is all zeros */
    return refused(CALLER, count * size) ? (errno = ENOMEM, NULL) : next.calloc(count, size);
}

void *realloc(void *data, size_t size) {
    resolve();
    return refused(CALLER, size) ? (errno = ENOMEM, NULL) : next.realloc(data, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    resolve();
    return refused(CALLER, size) ? ENOMEM : next.posix_memalign(out, alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    resolve();
    return refused(CALLER, size) ? (errno = ENOMEM, NULL) : next.aligned_alloc(alignment, size);
}

void free(void *data) {
    resolve();
    if (!in_nursery(data)) next.free(data);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *address) {
    uintptr_t begin = UINTPTR_MAX, end = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (at < begin) begin = at;
        if (at + info->dlpi_phdr[i].p_memsz > end) end = at + info->dlpi_phdr[i].p_memsz;
    }
    if ((uintptr_t)address < begin || (uintptr_t)address >= end) return 0;
    library_begin = begin;
    library_end = end;
    return 1;
}

/* Finds the library, and says whether its requests are seen: not under valgrind, which replaces the replacements. */
static int interpose_start(void) {
    weir_threadpool_attr *attr = NULL;
    CHECK(dl_iterate_phdr(find_library, dlsym(RTLD_DEFAULT, "weir_version")) == 1);
    CHECK((uintptr_t)&next < library_begin || (uintptr_t)&next >= library_end);
    CHECK_OK(weir_threadpool_attr_create(&attr));
    weir_threadpool_attr_destroy(attr);
    CHECK(atomic_load(&library_requests) > 0 || under_valgrind());
    return atomic_load(&library_requests) > 0;
}

/* The library's requests number `first` to `last` from now on are refused; 0 and 0 for none. */
static void interpose_reset(long first, long last) {
    atomic_store(&refuse_first, 0);
    atomic_store(&refuse_last, 0);
    atomic_store(&library_requests, 0);
    atomic_store(&refuse_first, first > 0 ? first : 1);
    atomic_store(&refuse_last, last);
}

#endif /* INTERPOSED */

#endif /* WEIR_CTESTS_INTERPOSE_H */
