/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A thread that naps, since it has waited for long for another rank, is at hand for an operation that begins beside
 * that, on the same communicator or on another one.
 */

#include <pthread.h>
#include <weir/comm.h>

#include "make.h"

enum { LATE_TAG = 0, SOON_TAG = 1, QUESTIONS = 64, ROUNDS = 200 };

/* ---- A transport whose messages come when it has been asked for them so often, or when they are let go ---- */

typedef struct counting {
    int left; /* questions until it is there */
    int is_late;
} counting;

typedef struct counting_rank {
    atomic_int let_go; /* late messages are there */
    atomic_int begun;
} counting_rank;

static weir_status get_info(void *ctx, weir_comm_transport_info *out_info) {
    (void)ctx;
    out_info->size = 2;
    out_info->rank = 0;
    out_info->flags = WEIR_COMM_ABORT_RELEASES;
    out_info->ops = 1u << WEIR_COMM_SEND | 1u << WEIR_COMM_RECV;
    out_info->max_tag = 32767;
    return WEIR_OK;
}

static weir_status start(void *ctx, const weir_comm_operation *operation, void **out_request) {
    counting_rank *rank = ctx;
    counting *request = calloc(1, sizeof *request);
    CHECK(request != NULL);
    memset(operation->recv, 0, (size_t)operation->count * operation->element_bytes);
    request->is_late = operation->tag == LATE_TAG;
    request->left = QUESTIONS;
    atomic_fetch_add(&rank->begun, 1);
    *out_request = request;
    return WEIR_OK;
}

static weir_status test(void *ctx, void *opaque, int32_t *out_done) {
    counting_rank *rank = ctx;
    counting *request = opaque;
    *out_done = request->is_late ? atomic_load(&rank->let_go) : --request->left == 0;
    if (*out_done) free(request);
    return WEIR_OK;
}

static const weir_comm_vtable counting_vtable = {
    .struct_size = sizeof counting_vtable, .get_info = get_info, .start = start, .test = test};

typedef struct receiver {
    weir_comm *comm;
    int tag;
} receiver;

static void *receive(void *arg) {
    const receiver *self = arg;
    const weir_communication desc = {
        .struct_size = sizeof desc, .op = WEIR_COMM_RECV, .peer = 1, .tag = self->tag, .desc = vector_desc(1)};
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *x = make_tensor(engine, vector_desc(1));
    weir_kernel *recv = NULL;
    CHECK_OK(weir_kernel_create_communication(engine, self->comm, &desc, NULL, &recv));
    CHECK_OK(weir_enqueue(stream, recv, NULL, 0, &x, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_tensor_release(x);
    weir_kernel_release(recv);
    weir_stream_release(stream);
    weir_engine_release(engine);
    return NULL;
}

/* A thread that waits for a late rank is left to itself, so that it naps, each time for an eighth of what it has waited
 * for, and asks a few times then. Another operation begins, which takes QUESTIONS: with such naps it would take about
 * as long again, in each round. Other programs on the machine may take as much, but not for ever. */
static void no_nap_for_what_begins(counting_rank *late, counting_rank *soon) {
    weir_comm *late_comm = NULL, *soon_comm = NULL;
    CHECK_OK(weir_comm_create(&counting_vtable, late, NULL, &late_comm));
    if (soon == late) {
        CHECK_OK(weir_comm_retain(late_comm));
        soon_comm = late_comm;
    } else {
        CHECK_OK(weir_comm_create(&counting_vtable, soon, NULL, &soon_comm));
    }
    receiver waits = {late_comm, LATE_TAG}, comes = {soon_comm, SOON_TAG};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, receive, &waits), 0);
    EVENTUALLY(atomic_load(&late->begun) == 1);
    int quick = 0;
    for (int i = 0; i < ROUNDS && !quick; i++) {
        const uint64_t alone = now_ns();
        sleep_ms(100);
        const uint64_t comes_in = now_ns();
        receive(&comes);
        quick = now_ns() - comes_in < (comes_in - alone) / 2;
    }
    CHECK(quick);
    atomic_store(&late->let_go, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weir_comm_release(soon_comm);
    weir_comm_release(late_comm);
}

int main(void) {
    counting_rank one = {.begun = 0}, late = {.begun = 0}, soon = {.begun = 0};
    no_nap_for_what_begins(&one, &one);
    no_nap_for_what_begins(&late, &soon);
    return 0;
}
