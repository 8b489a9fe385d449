/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the tests check with: a failed check prints where and what, and ends the program with status 1.
 */

#ifndef WEIR_CTESTS_CHECK_H
#define WEIR_CTESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"
#include "weir/inspect.h"
#include "weir/ops.h"

/* Descriptors of kernels that many tests need. */
#define BINARY(name) (&(weir_binary_desc){.struct_size = sizeof(weir_binary_desc), .op = WEIR_BINARY_##name})
#define ELTWISE(name) (&(weir_eltwise_desc){.struct_size = sizeof(weir_eltwise_desc), .op = WEIR_ELTWISE_##name})
#define ARGMAX(axis)                                                                                                   \
    (&(weir_reduce_desc){.struct_size = sizeof(weir_reduce_desc), .op = WEIR_REDUCE_ARGMAX, .num_axes = 1, .axes = {axis}})

/* True or the end. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition, "is false");                                    \
    } while (0)

/* Two integers that must be equal; both are shown if they are not. */
#define CHECK_EQ(actual, expected)                                                                                     \
    check_equal(__FILE__, __LINE__, #actual " == " #expected, (long long)(actual), (long long)(expected))

/* A weir call that must succeed. */
#define CHECK_OK(call) check_status(__FILE__, __LINE__, #call, (call), WEIR_OK, NULL)

/* A weir call that must fail with `code` and a text that contains `part`. */
#define CHECK_CODE(call, code, part) check_status(__FILE__, __LINE__, #call, (call), (code), (part))

/* A text that must contain another. */
#define CHECK_TEXT(text, part) check_text(__FILE__, __LINE__, #text, (text), (part))

/* A condition that other threads are about to make true. A minute is for machines that run under valgrind. */
#define EVENTUALLY(...)                                                                                                \
    do {                                                                                                               \
        uint64_t give_up = now_ns() + UINT64_C(60000000000);                                                           \
        while (!(__VA_ARGS__)) {                                                                                       \
            if (now_ns() > give_up) check_failed(__FILE__, __LINE__, #__VA_ARGS__, "did not come true in a minute");   \
            sleep_ns(50000);                                                                                           \
        }                                                                                                              \
    } while (0)

static inline void check_failed(const char *file, int line, const char *what, const char *how) {
    fprintf(stderr, "%s:%d: %s %s\n", file, line, what, how);
    fflush(NULL);
    _Exit(1); /* other threads may be anywhere: no destructors, no atexit */
}

static inline void check_equal(const char *file, int line, const char *what, long long actual, long long expected) {
    char how[96];
    if (actual == expected) return;
    snprintf(how, sizeof how, "fails: %lld, expected %lld", actual, expected);
    check_failed(file, line, what, how);
}

static inline void check_text(const char *file, int line, const char *what, const char *text, const char *part) {
    char how[1400];
    if (text == NULL) text = "";
    if (strstr(text, part) != NULL) return;
    snprintf(how, sizeof how, "is '%.1000s', which lacks '%.200s'", text, part);
    check_failed(file, line, what, how);
}

static inline void check_status(const char *file, int line, const char *what, weir_status actual, int expected,
                                const char *part) {
    char how[1400];
    if (actual != expected) {
        snprintf(how, sizeof how, "returned %s, expected %s (last error: %.1000s)", weir_status_name(actual),
                 weir_status_name(expected), weir_last_error_message());
        check_failed(file, line, what, how);
    }
    if (part != NULL) check_text(file, line, what, weir_last_error_message(), part);
}

/* Whether WEIR_TEST_SCALE=small says that the machine is slow (valgrind). */
static inline int is_slow(void) {
    const char *size = getenv("WEIR_TEST_SCALE");
    return size != NULL && strcmp(size, "small") == 0;
}

/* `n` rounds, or a fiftieth of them on a slow machine, and at least two of 40 or more. */
static inline int scale(int n) {
    return !is_slow() ? n : n < 40 ? 1 : n < 100 ? 2 : n / 50;
}

/* Whether this program was built with AddressSanitizer or ThreadSanitizer. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif
#ifndef WITH_TSAN
#define WITH_TSAN 0
#endif

/* Whether it runs under valgrind. */
static inline int under_valgrind(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void sleep_ns(uint64_t ns) {
    struct timespec time;
    time.tv_sec = (time_t)(ns / 1000000000u);
    time.tv_nsec = (long)(ns % 1000000000u);
    nanosleep(&time, NULL);
}

static inline void sleep_ms(uint64_t ms) {
    sleep_ns(ms * 1000000u);
}

static inline weir_runtime_info runtime_info(void) {
    weir_runtime_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK_OK(weir_runtime_get_info(&info));
    return info;
}

/* No kind of object has more than it had in `before`. Workers drop what they worked on a moment after the work is seen
 * to be done, so this waits; and `before` may have what was about to go then, so there may be fewer. */
static inline void check_released(const weir_runtime_info *before) {
    EVENTUALLY(runtime_info().runs <= before->runs);
    EVENTUALLY(runtime_info().packed_weights <= before->packed_weights);
    EVENTUALLY(runtime_info().programs <= before->programs);
    EVENTUALLY(runtime_info().graphs <= before->graphs);
    EVENTUALLY(runtime_info().kernels <= before->kernels);
    EVENTUALLY(runtime_info().tensors <= before->tensors);
    EVENTUALLY(runtime_info().resources <= before->resources);
    EVENTUALLY(runtime_info().events <= before->events);
    EVENTUALLY(runtime_info().streams <= before->streams);
    EVENTUALLY(runtime_info().engines <= before->engines);
    EVENTUALLY(runtime_info().domains <= before->domains);
    EVENTUALLY(runtime_info().task_groups <= before->task_groups);
    EVENTUALLY(runtime_info().traces <= before->traces);
    EVENTUALLY(runtime_info().threadpools <= before->threadpools);
    EVENTUALLY(runtime_info().attrs <= before->attrs);
    EVENTUALLY(runtime_info().threads_alive <= before->threads_alive);
}

/* Where the memory of a tensor or a buffer comes from. */
#define MEMORY(...) (&(weir_memory){.struct_size = sizeof(weir_memory), __VA_ARGS__})
#define OVER(at) MEMORY(.data = (at))
#define OVER_BYTES(at, size) MEMORY(.data = (at), .bytes = (size))
#define OVER_UNTIL(at, end, arg) MEMORY(.data = (at), .release = (end), .release_ctx = (arg))
#define ON_BUFFER(of, at) MEMORY(.source = WEIR_MEMORY_BUFFER, .buffer = (of), .offset = (at))
#define PINNED_FOR(engine) MEMORY(.source = WEIR_MEMORY_PINNED, .device = (engine))

#endif /* WEIR_CTESTS_CHECK_H */
