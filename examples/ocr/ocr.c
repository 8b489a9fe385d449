/* Reads the text on a page with PP-OCR, three neural networks, on threads that belong to this program.
 *
 *     ocr [--svg FILE] [--threads N] [--networks FILE] [--progress] [page.png | page.ppm | page.pgm]
 *
 * The program prints what is written on the page, with how sure it is of each line, and measures: in this thread
 * alone, and on the pool of ../digits/pool.c, with N threads in all. With --progress it tells how far the network is
 * that finds the lines; in the second page it knows better how long that takes. Ends with status 1 if weir has started
 * a thread of its own, if a page after the first made weir allocate memory in this thread, or if the pool's results are
 * others. (On the pool weir allocates whenever more lines of one width are read at once than ever before.)
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir.h>
#include <weir/inspect.h>

#include "image.h"
#include "model_file.h"
#include "picture.h"
#include "pool.h"
#include "reader.h"
#include "weir_check.h"

#ifndef OCR_DATA_DIR
#define OCR_DATA_DIR "."
#endif
#ifndef OCR_NETWORKS
#define OCR_NETWORKS "ocr.weir"
#endif

enum { PAGES = 5, MAX_THREADS = 16 };

struct options {
    const char *picture, *networks, *svg;
    int32_t threads;
    weir_progress_fn follow;
};

/* What was measured while the page was read again and again. */
struct timing {
    double find_ms, read_ms, compile_ms;
    uint64_t allocations; /* by weir, in the pages that were timed */
    int32_t threads;      /* of the process */
};

static weir_runtime_info runtime_info(void) {
    weir_runtime_info info = {.struct_size = sizeof info};
    CHECK(weir_runtime_get_info(&info));
    return info;
}

static int32_t threads_of_process(void) {
    DIR *folder = opendir("/proc/self/task");
    int32_t count = 0;
    if (folder != NULL) {
        for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            count += entry->d_name[0] != '.';
        }
        closedir(folder);
    }
    return count;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_progress(void *ctx, const weir_run_progress *progress) {
    const double ms = 1e-6;
    (void)ctx;
    fprintf(stderr, "  finding lines: %" PRIu64 " of %" PRIu64 " nodes in %.0f ms", progress->nodes_done,
            progress->nodes_total, ms * (double)progress->elapsed_ns);
    if (progress->estimated_remaining_ns != UINT64_MAX) {
        fprintf(stderr, ", about %.0f ms to go", ms * (double)progress->estimated_remaining_ns);
    }
    fprintf(stderr, "\n");
}

/* Reads the page so often, and twice before: the first time compiles. */
static struct page measure(struct reader *reader, const struct image *image, weir_progress_fn follow,
                           struct timing *timing) {
    double find[PAGES], read[PAGES];
    reader_follow(reader, follow);
    struct page page = reader_read(reader, image), other = reader_read(reader, image);
    timing->compile_ms = page.compile_ms;
    page_free(&other);
    reader_follow(reader, NULL);
    const uint64_t before = runtime_info().allocations;
    for (int i = 0; i < PAGES; i++) {
        other = reader_read(reader, image);
        find[i] = other.find_ms;
        read[i] = other.read_ms;
        page_free(&other);
    }
    timing->allocations = runtime_info().allocations - before;
    timing->threads = threads_of_process();
    qsort(find, PAGES, sizeof *find, by_size);
    qsort(read, PAGES, sizeof *read, by_size);
    timing->find_ms = find[PAGES / 2];
    timing->read_ms = read[PAGES / 2];
    return page;
}

static struct page measure_alone(const struct model *model, const struct image *image, weir_progress_fn follow,
                                 struct timing *timing) {
    struct reader *reader = reader_open(model, NULL);
    const struct page page = measure(reader, image, follow, timing);
    reader_close(reader);
    return page;
}

static struct page measure_on_pool(const struct model *model, const struct image *image, weir_progress_fn follow,
                                   int32_t threads, struct timing *timing) {
    struct pool *pool = pool_create(threads - 1); /* and the thread that calls */
    weir_threadpool *weir_pool;
    if (pool == NULL) {
        fprintf(stderr, "cannot start %" PRId32 " threads\n", threads - 1);
        exit(1);
    }
    CHECK(pool_to_weir(pool, POOL_BOTH, &weir_pool));
    struct reader *reader = reader_open(model, weir_pool);
    const struct page page = measure(reader, image, follow, timing);
    reader_close(reader);
    weir_threadpool_release(weir_pool);
    pool_destroy(pool);
    return page;
}

static bool same(const struct page *a, const struct page *b) {
    bool equal = a->num_lines == b->num_lines;
    for (size_t i = 0; equal && i < a->num_lines; i++) {
        equal = strcmp(a->lines[i].text, b->lines[i].text) == 0 &&
                memcmp(&a->lines[i].confidence, &b->lines[i].confidence, sizeof(float)) == 0;
    }
    return equal;
}

static void print_page(const struct page *page) {
    for (size_t i = 0; i < page->num_lines; i++) {
        const struct line *line = &page->lines[i];
        printf("  %.3f  %s%s\n", (double)line->confidence, line->text, line->turned ? "  (upside down)" : "");
    }
    printf("\n");
}

static void row(const char *label, const char *format, double alone, double pooled) {
    char columns[2][24];
    snprintf(columns[0], sizeof columns[0], format, alone);
    snprintf(columns[1], sizeof columns[1], format, pooled);
    printf("  %-44s%16s%16s\n", label, columns[0], columns[1]);
}

static void print_timing(const struct timing *alone, const struct timing *pooled, int32_t threads) {
    char label[32];
    snprintf(label, sizeof label, "%" PRId32 " threads", threads);
    printf("  %-44s%16s%16s\n", "a page, median", "this thread", label);
    row("finding lines, ms", "%.1f", alone->find_ms, pooled->find_ms);
    row("reading them, ms", "%.1f", alone->read_ms, pooled->read_ms);
    row("compiling, before the first page, ms", "%.1f", alone->compile_ms, pooled->compile_ms);
    row("allocations per page, weir", "%g", (double)alone->allocations / PAGES, (double)pooled->allocations / PAGES);
    row("threads of this program", "%g", alone->threads, pooled->threads);
    printf("  %-44s%16" PRIu64 "\n\n", "threads started by weir", runtime_info().threads_started);
}

/* The promises of the head of this file, as an exit status. */
static int verdict(const struct timing *alone, const struct timing *pooled, int32_t threads, bool equal) {
    int status = 0;
    fflush(stdout);
    if (runtime_info().threads_started != 0 || alone->threads > 1 || pooled->threads > threads) {
        fprintf(stderr, "FAILED: there are threads that this program has not started\n");
        status = 1;
    }
    if (alone->allocations != 0) {
        fprintf(stderr, "FAILED: weir allocated memory in later pages\n");
        status = 1;
    }
    if (!equal) {
        fprintf(stderr, "FAILED: the pool's results are others\n");
        status = 1;
    }
    return status;
}

static int read_page(const struct options *options, const struct model *model, const struct image *image) {
    const char *slash = strrchr(options->picture, '/');
    struct timing alone, pooled;
    printf("\n  weir %s: what is written in %s, %" PRId32 " x %" PRId32 "?\n\n", weir_version_string(),
           slash == NULL ? options->picture : slash + 1, image->width, image->height);
    struct page page = measure_alone(model, image, options->follow, &alone);
    print_page(&page);
    int status = options->svg != NULL ? picture_write_svg(&page, image, options->svg) : 0;
    struct page other = measure_on_pool(model, image, options->follow, options->threads, &pooled);
    print_timing(&alone, &pooled, options->threads);
    status |= verdict(&alone, &pooled, options->threads, same(&page, &other));
    page_free(&other);
    page_free(&page);
    return status;
}

static int parse_options(struct options *options, int argc, char **argv) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *options = (struct options){.picture = OCR_DATA_DIR "/page.png", .networks = OCR_NETWORKS,
        .threads = processors < 2 ? 2 : (int32_t)processors};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--svg") == 0 && i + 1 < argc) {
            options->svg = argv[++i];
        } else if (strcmp(argv[i], "--networks") == 0 && i + 1 < argc) {
            options->networks = argv[++i];
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            options->threads = (int32_t)strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--progress") == 0) {
            options->follow = print_progress;
        } else if (argv[i][0] != '-') {
            options->picture = argv[i];
        } else {
            fprintf(stderr,
                    "usage: %s [--svg FILE] [--threads N] [--networks FILE] [--progress] [page.png | page.ppm | "
                    "page.pgm]\n",
                    argv[0]);
            return 2;
        }
    }
    options->threads = options->threads < 2 ? 2 : options->threads > MAX_THREADS ? MAX_THREADS : options->threads;
    return 0;
}

int main(int argc, char **argv) {
    struct options options;
    struct image image;
    struct model model;
    if (parse_options(&options, argc, argv) != 0) {
        return 2;
    }
    if (access(options.networks, R_OK) != 0) {
        fprintf(stderr, "SKIPPED: the networks are not there: ./dev demo ocr makes %s\n", options.networks);
        return 1;
    }
    if (image_load(&image, options.picture) != 0) {
        return 1;
    }
    if (model_load(&model, options.networks) != 0) {
        image_free(&image);
        return 1;
    }
    const int status = read_page(&options, &model, &image);
    model_free(&model);
    image_free(&image);
    return status;
}
