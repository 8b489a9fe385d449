/* The ocr example reads what is written on its page, with the same bits on every pool.
 *
 *     ocr_pages [file of networks]
 *
 * The networks are not part of the sources (./dev demo ocr makes them): without them this says that it was skipped.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "image.h"
#include "model_file.h"
#include "reader.h"
#include "test_pools.h"

#ifndef OCR_DATA_DIR
#define OCR_DATA_DIR "."
#endif
#ifndef OCR_NETWORKS
#define OCR_NETWORKS "ocr.weir"
#endif

enum { POOLS = 4 };

static const struct {
    pool_kind kind;
    int threads;
} pools[POOLS] = {{POOL_FIFO, 3}, {POOL_LIFO, 1}, {POOL_PARALLEL_FOR, 2}, {POOL_INLINE, 1}};

/* Every line, in order, and nothing else. */
static void compare_with_text(const struct page *page) {
    FILE *file = fopen(OCR_DATA_DIR "/page.txt", "r");
    char expected[LINE_BYTES];
    size_t count = 0;
    CHECK(file != NULL);
    for (; fgets(expected, sizeof expected, file) != NULL; count++) {
        expected[strcspn(expected, "\n")] = '\0';
        CHECK(count < page->num_lines);
        CHECK_TEXT(page->lines[count].text, expected);
        CHECK_EQ(strlen(page->lines[count].text), strlen(expected));
        CHECK_EQ(page->lines[count].turned, strstr(expected, "upside down") != NULL);
    }
    CHECK_EQ(page->num_lines, count);
    fclose(file);
}

static void compare(const struct page *page, const struct page *alone) {
    CHECK_EQ(page->num_lines, alone->num_lines);
    for (size_t i = 0; i < page->num_lines; i++) {
        CHECK_EQ(strcmp(page->lines[i].text, alone->lines[i].text), 0);
        CHECK_EQ(memcmp(&page->lines[i].confidence, &alone->lines[i].confidence, sizeof(float)), 0);
        CHECK_EQ(memcmp(&page->lines[i].box, &alone->lines[i].box, sizeof(struct box)), 0);
    }
}

static void read_on_pool(const struct model *model, const struct image *image, int p, const struct page *alone) {
    weir_threadpool *handle;
    test_pool *pool = test_pool_create(pools[p].kind, pools[p].threads, &handle);
    struct reader *reader = reader_open(model, handle);
    for (int turn = 0; turn < (p == 0 ? 2 : 1); turn++) {
        struct page page = reader_read(reader, image);
        compare(&page, alone);
        page_free(&page);
    }
    reader_close(reader);
    weir_threadpool_release(handle);
    printf("%-14s %6lld tasks, the same bits\n", pool_kind_name(pools[p].kind), (long long)test_pool_counters(pool).tasks);
    test_pool_destroy(pool);
}

/* Without a line, and smaller than the networks like. */
static void read_nothing(struct reader *reader) {
    struct image image;
    CHECK(image_allocate(&image, 3, 2) != NULL);
    memset(image.pixels, 255, 18);
    struct page page = reader_read(reader, &image);
    CHECK_EQ(page.num_lines, 0);
    page_free(&page);
    image_free(&image);
}

int main(int argc, char **argv) {
    const weir_runtime_info before = runtime_info();
    const char *networks = argc > 1 ? argv[1] : OCR_NETWORKS;
    struct image image;
    struct model model;
    const int few = is_slow();
    if (access(networks, R_OK) != 0) {
        printf("SKIPPED: the networks are not there: ./dev demo ocr makes %s\n", networks);
        return 0;
    }
    if (under_valgrind()) {
        printf("SKIPPED: a page takes minutes under valgrind\n");
        return 0;
    }
    CHECK_EQ(model_load(&model, networks), 0);
    CHECK_EQ(image_load(&image, OCR_DATA_DIR "/page.png"), 0);
    struct reader *reader = reader_open(&model, NULL);
    struct page alone = reader_read(reader, &image);
    compare_with_text(&alone);
    read_nothing(reader);
    reader_close(reader);
    for (int p = 0; p < (few ? 1 : POOLS); p++) {
        read_on_pool(&model, &image, p, &alone);
    }
    page_free(&alone);
    image_free(&image);
    model_free(&model);
    CHECK_EQ(runtime_info().threads_started, before.threads_started);
    check_released(&before);
    return 0;
}
