/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The threads of the library as it lists them, and as the system does.
 */

#ifndef WEIR_CTESTS_THREADS_H
#define WEIR_CTESTS_THREADS_H

#include <dirent.h>
#include <sys/syscall.h>
#include <weir/inspect.h>

#include "make.h"

enum { MAX_LISTED = 128 };

typedef struct listing {
    weir_thread_info threads[MAX_LISTED];
    size_t count;
} listing;

static inline listing list_threads(void) {
    listing l;
    memset(&l, 0, sizeof l);
    l.threads[0].struct_size = sizeof *l.threads;
    CHECK_OK(weir_runtime_get_threads(l.threads, MAX_LISTED, &l.count));
    for (size_t i = 0; i < l.count; i++) {
        CHECK_EQ(l.threads[i].struct_size, sizeof *l.threads);
        CHECK(l.threads[i].origin >= WEIR_THREAD_ORIGIN_BUILTIN_POOL && l.threads[i].origin <= WEIR_THREAD_ORIGIN_KIND_POOL);
        CHECK(strncmp(l.threads[i].name, "weir-", 5) == 0);
    }
    return l;
}

/* The threads of a pool (0: lanes), in the order of their start. All of them have begun to run. */
static inline listing threads_of(uint64_t pool) {
    listing found;
    size_t begun = 0;
    do {
        listing all = list_threads();
        memset(&found, 0, sizeof found);
        begun = 0;
        for (size_t i = 0; i < all.count; i++) {
            if (all.threads[i].pool != pool) continue;
            found.threads[found.count++] = all.threads[i];
            begun += all.threads[i].os_id != 0;
        }
    } while (begun < found.count);
    return found;
}

static inline uint64_t pool_id(const weir_threadpool *pool) {
    uint64_t id = 0;
    CHECK_OK(weir_threadpool_get_id(pool, &id));
    return id;
}

static inline uint64_t this_thread(void) {
    return (uint64_t)syscall(SYS_gettid);
}

/* What the system calls a thread. */
static inline void check_system_name(const weir_thread_info *thread, const char *expected) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%llu/comm", (unsigned long long)thread->os_id);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    CHECK(fgets(name, sizeof name, file) != NULL);
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    if (strcmp(name, expected) != 0) check_failed(__FILE__, __LINE__, expected, name);
}

/* How many threads of this process the system lists under a name of the library's, without asking the library. */
static inline int system_threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue; /* no thread, or one that is gone */
        if (fgets(name, sizeof name, file) != NULL) count += strncmp(name, "weir-", 5) == 0;
        fclose(file);
    }
    closedir(tasks);
    return count;
}

/* An engine in a mode (0: none is set) with a number of threads (-1: none is set). */
static inline weir_status create_engine(weir_thread_mode mode, int count, weir_threadpool *pool, weir_engine **engine) {
    weir_engine_attr *attr = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    if (mode != 0) CHECK_OK(weir_engine_attr_set_thread_mode(attr, mode));
    if (count >= 0) CHECK_OK(weir_engine_attr_set_thread_count(attr, (uint32_t)count));
    CHECK_OK(weir_engine_attr_set_threadpool(attr, pool));
    weir_status status = weir_engine_create(WEIR_ENGINE_CPU, 0, attr, engine);
    weir_engine_attr_destroy(attr);
    return status;
}

static inline weir_threadpool *pool_of(const weir_engine *engine) {
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_engine_get_threadpool(engine, &pool));
    return pool;
}

/* What an engine says of its threads, everywhere where it says so. */
static inline void check_engine(const weir_engine *engine, weir_thread_mode mode, int count) {
    weir_engine_info info = {.struct_size = sizeof info};
    const weir_engine_attr *attr = NULL;
    weir_thread_mode set_mode = 0;
    uint32_t set_count = 0;
    CHECK_OK(weir_engine_get_info(engine, &info));
    CHECK_EQ(info.thread_mode, mode);
    CHECK_EQ(info.thread_count, count);
    CHECK_OK(weir_engine_get_attr(engine, &attr));
    CHECK_OK(weir_engine_attr_get_thread_mode(attr, &set_mode));
    CHECK_EQ(set_mode, mode);
    if (mode == WEIR_THREAD_MODE_PRIVATE || mode == WEIR_THREAD_MODE_KIND) {
        int32_t width = 0;
        CHECK_OK(weir_engine_attr_get_thread_count(attr, &set_count));
        CHECK_EQ(set_count, count);
        CHECK_OK(weir_threadpool_get_num_threads(pool_of(engine), &width));
        CHECK_EQ(width, count);
        CHECK_EQ(threads_of(pool_id(pool_of(engine))).count, count);
    } else {
        CHECK_EQ(count, 0);
    }
    if (mode == WEIR_THREAD_MODE_CALLER) CHECK(pool_of(engine) == NULL);
}

#endif /* WEIR_CTESTS_THREADS_H */
