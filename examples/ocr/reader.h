/* Reads a page: finds lines of text, sets each upright, and reads it, on a pool of the caller's.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_READER_H
#define OCR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir.h>

#include "boxes.h"
#include "image.h"
#include "model_file.h"

struct reader;

enum { LINE_BYTES = 1024 };

struct line {
    struct box box; /* in the picture's pixels */
    bool turned;    /* upside down */
    float confidence;
    char text[LINE_BYTES];
};

struct page {
    struct line *lines; /* in the order of reading */
    size_t num_lines;
    double find_ms, read_ms; /* what it took to find the lines, and to read them */
    double compile_ms;       /* besides, for sizes that were new */
};

/* The pool does all work, with the thread that calls; NULL: that thread alone. The model must live longer. */
struct reader *reader_open(const struct model *model, weir_threadpool *pool);
void reader_close(struct reader *reader);

/* Has the function told how far it is with finding lines, every 20 ms; NULL = no longer. Not while it reads. */
void reader_follow(struct reader *reader, weir_progress_fn follow);

/* One page at a time. The page is to be freed. */
struct page reader_read(struct reader *reader, const struct image *image);
void page_free(struct page *page);

#endif
