/* The ocr example with few functions, so that Python can load it: a page that is read again and again.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>

#include <weir.h>

#include "image.h"
#include "model_file.h"
#include "pool.h"
#include "reader.h"
#include "weir_check.h"

struct session {
    struct model model;
    struct image image;
    struct pool *pool;
    weir_threadpool *weir_pool;
    struct reader *reader;
    struct page page;
};

/* NULL if the networks or the picture cannot be read. So many threads work, the caller of ocr_read among them. */
struct session *ocr_open(const char *networks, const char *picture, int32_t threads) {
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL || model_load(&session->model, networks) != 0 || image_load(&session->image, picture) != 0) {
        return NULL;
    }
    if (threads > 1) {
        session->pool = pool_create(threads - 1);
        if (session->pool == NULL) {
            return NULL;
        }
        CHECK(pool_to_weir(session->pool, POOL_BOTH, &session->weir_pool));
    }
    session->reader = reader_open(&session->model, session->weir_pool);
    return session;
}

void ocr_read(struct session *session) {
    page_free(&session->page);
    session->page = reader_read(session->reader, &session->image);
}

/* Line `index` of the last page, NULL behind the last one, and how sure it is. */
const char *ocr_line(const struct session *session, uint64_t index, float *confidence) {
    if (index >= session->page.num_lines) {
        return NULL;
    }
    *confidence = session->page.lines[index].confidence;
    return session->page.lines[index].text;
}
