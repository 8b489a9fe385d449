/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A transport whose ranks are threads of this process, as a vtable of C: sends and receives, control messages,
 * duplicates, and recovery among the ranks that a test says are left. All else weir builds of it.
 */
#ifndef WEIR_CTESTS_THREAD_TRANSPORT_H
#define WEIR_CTESTS_THREAD_TRANSPORT_H

#include <pthread.h>

#include <weir/comm.h>

#include "check.h"

enum { MOST_THREAD_RANKS = 8 };

typedef struct parcel {
    struct parcel *next;
    int from, to, tag;
    size_t bytes;
    unsigned char *data;
} parcel;

typedef struct fabric {
    int size, users;
    parcel *parcels, *control;
    struct fabric *children[4]; /* by what number of duplicate or recovery it is */
} fabric;

typedef struct thread_request {
    struct thread_request *next;
    int is_recv, from, tag;
    size_t bytes;
    void *to;
} thread_request;

typedef struct thread_rank {
    fabric *of;
    int rank, made;
    const int *left; /* of each rank, whether it is left after a failure */
    thread_request *open;
} thread_rank;

static pthread_mutex_t fabrics = PTHREAD_MUTEX_INITIALIZER;

static inline void thread_add(parcel **list, int from, int to, int tag, const void *data, size_t bytes) {
    parcel *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    p->from = from;
    p->to = to;
    p->tag = tag;
    p->bytes = bytes;
    p->data = malloc(bytes + 1);
    CHECK(p->data != NULL);
    memcpy(p->data, data, bytes);
    while (*list != NULL) list = &(*list)->next;
    *list = p;
}

/* The first that is for `to`, from `from` (-1: from anybody) with this tag. */
static inline parcel *thread_take(parcel **list, int from, int to, int tag) {
    for (; *list != NULL; list = &(*list)->next) {
        parcel *p = *list;
        if (p->to != to || (from >= 0 && p->from != from) || p->tag != tag) continue;
        *list = p->next;
        return p;
    }
    return NULL;
}

static inline void thread_free(parcel *p) {
    free(p->data);
    free(p);
}

static inline weir_status thread_get_info(void *ctx, weir_comm_transport_info *out_info) {
    const thread_rank *r = ctx;
    out_info->rank = r->rank;
    out_info->size = r->of->size;
    out_info->flags = WEIR_COMM_ABORT_RELEASES;
    out_info->ops = 1u << WEIR_COMM_SEND | 1u << WEIR_COMM_RECV;
    out_info->max_tag = 32767;
    snprintf(out_info->name, sizeof out_info->name, "threads");
    return WEIR_OK;
}

static inline weir_status thread_start(void *ctx, const weir_comm_operation *operation, void **out_request) {
    thread_rank *r = ctx;
    thread_request *request = calloc(1, sizeof *request);
    CHECK(request != NULL);
    request->is_recv = operation->op == WEIR_COMM_RECV;
    request->from = operation->peer;
    request->tag = operation->tag;
    request->bytes = (size_t)operation->count * operation->element_bytes;
    request->to = operation->recv;
    pthread_mutex_lock(&fabrics);
    if (!request->is_recv) {
        thread_add(&r->of->parcels, r->rank, operation->peer, operation->tag, operation->send, request->bytes);
    }
    pthread_mutex_unlock(&fabrics);
    request->next = r->open;
    r->open = request;
    *out_request = request;
    return WEIR_OK;
}

static inline weir_status thread_test(void *ctx, void *opaque, int32_t *out_done) {
    thread_rank *r = ctx;
    thread_request *request = opaque;
    *out_done = 1;
    if (request->is_recv) {
        /* Messages of one tag are for those that began first, which stand behind in the list. */
        for (const thread_request *other = request->next; other != NULL; other = other->next) {
            if (other->is_recv && other->from == request->from && other->tag == request->tag) {
                *out_done = 0;
                return WEIR_OK;
            }
        }
        pthread_mutex_lock(&fabrics);
        parcel *p = thread_take(&r->of->parcels, request->from, r->rank, request->tag);
        pthread_mutex_unlock(&fabrics);
        *out_done = p != NULL;
        if (p == NULL) return WEIR_OK;
        CHECK_EQ(p->bytes, request->bytes);
        memcpy(request->to, p->data, p->bytes);
        thread_free(p);
    }
    thread_request **at = &r->open;
    while (*at != request) at = &(*at)->next;
    *at = request->next;
    free(request);
    return WEIR_OK;
}

static inline weir_status thread_control_send(void *ctx, int32_t peer, const void *message) {
    const thread_rank *r = ctx;
    pthread_mutex_lock(&fabrics);
    thread_add(&r->of->control, r->rank, peer, 0, message, WEIR_COMM_MESSAGE_BYTES);
    pthread_mutex_unlock(&fabrics);
    return WEIR_OK;
}

static inline weir_status thread_control_poll(void *ctx, int32_t *out_peer, void *out_message, int32_t *out_got) {
    const thread_rank *r = ctx;
    pthread_mutex_lock(&fabrics);
    parcel *p = thread_take(&r->of->control, -1, r->rank, 0);
    pthread_mutex_unlock(&fabrics);
    *out_got = p != NULL;
    if (p == NULL) return WEIR_OK;
    *out_peer = p->from;
    memcpy(out_message, p->data, WEIR_COMM_MESSAGE_BYTES);
    thread_free(p);
    return WEIR_OK;
}

/* The child that all ranks make with their nth call; for those that are left. */
static inline weir_status thread_child(thread_rank *r, const int *left, void **out_ctx) {
    thread_rank *made = calloc(1, sizeof *made);
    const int number = r->made++;
    CHECK(made != NULL && number < 4);
    pthread_mutex_lock(&fabrics);
    fabric **child = &r->of->children[number];
    if (*child == NULL) {
        *child = calloc(1, sizeof **child);
        CHECK(*child != NULL);
        for (int i = 0; i < r->of->size; i++) (*child)->size += left == NULL || left[i];
    }
    for (int i = 0; i < r->rank; i++) made->rank += left == NULL || left[i];
    made->of = *child;
    made->left = r->left;
    (*child)->users++;
    pthread_mutex_unlock(&fabrics);
    *out_ctx = made;
    return WEIR_OK;
}

static inline weir_status thread_duplicate(void *ctx, void **out_ctx) {
    return thread_child(ctx, NULL, out_ctx);
}

static inline weir_status thread_recover(void *ctx, void **out_ctx) {
    thread_rank *r = ctx;
    return thread_child(r, r->left, out_ctx);
}

/* Fabrics stay until the test ends: ranks may look at theirs when others have left. */
static inline void thread_release(void *ctx) {
    thread_rank *r = ctx;
    while (r->open != NULL) {
        thread_request *next = r->open->next;
        free(r->open);
        r->open = next;
    }
    free(r);
}

static inline void fabric_free(fabric *f) {
    if (f == NULL) return;
    for (int i = 0; i < 4; i++) fabric_free(f->children[i]);
    for (int list = 0; list < 2; list++) {
        parcel *p = list == 0 ? f->parcels : f->control;
        while (p != NULL) {
            parcel *next = p->next;
            thread_free(p);
            p = next;
        }
    }
    free(f);
}

static inline fabric *fabric_make(int size) {
    fabric *f = calloc(1, sizeof *f);
    CHECK(f != NULL);
    f->size = size;
    return f;
}

static const weir_comm_vtable thread_vtable = {
    .struct_size = sizeof thread_vtable,
    .get_info = thread_get_info,
    .start = thread_start,
    .test = thread_test,
    .control_send = thread_control_send,
    .control_poll = thread_control_poll,
    .duplicate = thread_duplicate,
    .recover = thread_recover,
    .release = thread_release,
};

static inline thread_rank *thread_rank_make(fabric *f, int rank, const int *left) {
    thread_rank *r = calloc(1, sizeof *r);
    CHECK(r != NULL);
    r->of = f;
    r->rank = rank;
    r->left = left;
    return r;
}

#endif /* WEIR_CTESTS_THREAD_TRANSPORT_H */
