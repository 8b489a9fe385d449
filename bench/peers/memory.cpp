// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counts what the whole process asks the heap for. A file of its own, because a program that times pools which allocate
// should not pay for the counting.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "measure.hpp"

// malloc and its relatives, counted. glibc's own are underneath; free needs no count.
namespace {
std::atomic<std::int64_t> requests{0};
}

std::int64_t bench::memory_requests() {
    return requests.load();
}

extern "C" {
void *__libc_malloc(std::size_t size);
void *__libc_calloc(std::size_t count, std::size_t size);
void *__libc_realloc(void *data, std::size_t size);
void *__libc_memalign(std::size_t alignment, std::size_t size);

void *malloc(std::size_t size) {
    requests.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(size);
}
void *calloc(std::size_t count, std::size_t size) {
    requests.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, size);
}
void *realloc(void *data, std::size_t size) {
    requests.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(data, size);
}
void *memalign(std::size_t alignment, std::size_t size) {
    requests.fetch_add(1, std::memory_order_relaxed);
    return __libc_memalign(alignment, size);
}
void *aligned_alloc(std::size_t alignment, std::size_t size) {
    return memalign(alignment, size);
}
int posix_memalign(void **out, std::size_t alignment, std::size_t size) {
    void *data = memalign(alignment, size);
    if (data == nullptr) return ENOMEM;
    *out = data;
    return 0;
}
}
