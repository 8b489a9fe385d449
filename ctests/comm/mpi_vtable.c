/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The transport of weir/adapters/mpi.h by itself, as weir calls it: operations, sizes, types, control messages,
 * duplicates, and what it refuses. An argument names the level of threads of MPI, or is "room" for thousands of
 * communicators one after another.
 */

#include "mpi_ranks.h"

typedef struct transport {
    weir_comm_vtable call;
    void *ctx;
    int rank, size;
} transport;

static transport make_transport(MPI_Comm mpi) {
    transport t;
    CHECK_EQ(weir_mpi_vtable_create(mpi, &t.call, &t.ctx), WEIR_OK);
    CHECK_EQ(t.call.struct_size, sizeof t.call);
    t.rank = rank;
    t.size = size;
    return t;
}

static void check_call(const transport *t, const char *what, weir_status status) {
    char text[256] = "";
    int32_t about = -2;
    if (status == WEIR_OK) return;
    t->call.last_error(t->ctx, &about, text, sizeof text);
    fprintf(stderr, "rank %d: %s returned %d about rank %d: %s\n", rank, what, (int)status, (int)about, text);
    fflush(NULL);
    _Exit(1);
}

static void *start(const transport *t, weir_comm_operation operation) {
    void *request = NULL;
    operation.struct_size = sizeof operation;
    check_call(t, "start", t->call.start(t->ctx, &operation, &request));
    CHECK(request != NULL);
    return request;
}

static void finish(const transport *t, void *request) {
    int32_t done = 0;
    /* Each test moves an operation by a step, of which large ones have thousands; a yield may take milliseconds. */
    for (int i = 0; !done; i++) {
        check_call(t, "test", t->call.test(t->ctx, request, &done));
        if (!done && i % 64 == 63) sched_yield();
    }
}

static void control_send(const transport *t, int32_t peer, const void *message) {
    check_call(t, "control_send", t->call.control_send(t->ctx, peer, message));
}

/* Small whole numbers, whose sums and products are exact in all types. No 0: products of floats would have its sign. */
static int value(int of, uint64_t i) {
    static const int values[] = {-2, -1, 1, 2, 1};
    return values[(i * 7u + (unsigned)of * 3u) % 5u];
}

static const size_t sizes[] = {[WEIR_F32] = 4, [WEIR_S32] = 4, [WEIR_U8] = 1, [WEIR_S8] = 1, [WEIR_S64] = 8};

static void put(void *data, weir_dtype dtype, uint64_t i, int64_t number) {
    switch (dtype) {
    case WEIR_F32: ((float *)data)[i] = (float)number; break;
    case WEIR_S32: ((int32_t *)data)[i] = (int32_t)number; break;
    case WEIR_U8: ((uint8_t *)data)[i] = (uint8_t)number; break;
    case WEIR_S8: ((int8_t *)data)[i] = (int8_t)number; break;
    default: ((int64_t *)data)[i] = number;
    }
}

static void *numbers(int of, weir_dtype dtype, uint64_t count) {
    void *data = malloc(count * sizes[dtype] + 1);
    CHECK(data != NULL);
    for (uint64_t i = 0; i < count; i++) put(data, dtype, i, value(of, i));
    return data;
}

/* Element i of all ranks' inputs, reduced. */
static int64_t reduced(weir_comm_reduction reduction, uint64_t i) {
    int64_t result = reduction == WEIR_COMM_SUM ? 0 : 1;
    for (int r = 0; r < size; r++) {
        if (reduction == WEIR_COMM_SUM) {
            result += value(r, i);
        } else {
            result *= value(r, i);
        }
    }
    return result;
}

/* Runs one operation of `count` elements and compares what it has written, and what lies behind that. */
static void check_operation(const transport *t, weir_comm_op op, weir_comm_reduction reduction, weir_dtype dtype,
                            uint64_t count, int peer) {
    const size_t element = sizes[dtype];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    const uint64_t all = count * (uint64_t)size, own = (uint64_t)rank * count;
    uint64_t in = count, out = count;
    if (op == WEIR_COMM_ALL_GATHER || op == WEIR_COMM_ALL_TO_ALL) out = all;
    if (op == WEIR_COMM_REDUCE_SCATTER || op == WEIR_COMM_ALL_TO_ALL) in = all;
    void *send = numbers(rank, dtype, in);
    unsigned char *recv = malloc(out * element + 1), *expected = malloc(out * element + 1);
    CHECK(recv != NULL && expected != NULL);
    memset(recv, 0xa5, out * element + 1);
    memset(expected, 0xa5, out * element + 1);
    weir_comm_operation operation = {.op = op, .dtype = dtype, .count = count, .element_bytes = element, .peer = peer};
    operation.send = send;
    operation.recv = recv;
    switch (op) {
    case WEIR_COMM_SEND:
        operation.peer = next;
        operation.tag = 32767;
        operation.recv = NULL;
        for (uint64_t i = 0; i < count; i++) put(expected, dtype, i, value(before, i));
        break;
    case WEIR_COMM_BROADCAST:
        if (rank == peer) operation.recv = NULL;
        if (rank != peer) operation.send = NULL;
        for (uint64_t i = 0; i < count && rank != peer; i++) put(expected, dtype, i, value(peer, i));
        break;
    case WEIR_COMM_REDUCE:
        if (rank != peer) operation.recv = NULL;
        operation.reduction = reduction;
        for (uint64_t i = 0; i < count && rank == peer; i++) put(expected, dtype, i, reduced(reduction, i));
        break;
    case WEIR_COMM_ALL_REDUCE:
        operation.reduction = reduction;
        for (uint64_t i = 0; i < count; i++) put(expected, dtype, i, reduced(reduction, i));
        break;
    case WEIR_COMM_ALL_GATHER:
        for (uint64_t i = 0; i < all; i++) put(expected, dtype, i, value((int)(i / count), i % count));
        break;
    case WEIR_COMM_REDUCE_SCATTER:
        operation.reduction = reduction;
        for (uint64_t i = 0; i < count; i++) put(expected, dtype, i, reduced(reduction, own + i));
        break;
    case WEIR_COMM_ALL_TO_ALL:
        for (uint64_t i = 0; i < all; i++) put(expected, dtype, i, value((int)(i / count), own + i % count));
        break;
    default: break;
    }
    void *request = start(t, operation);
    if (op == WEIR_COMM_SEND) {
        operation.op = WEIR_COMM_RECV;
        operation.peer = before;
        operation.send = NULL;
        operation.recv = recv;
        finish(t, start(t, operation));
    }
    finish(t, request);
    if (memcmp(recv, expected, out * element + 1) != 0) {
        fprintf(stderr, "rank %d of %d: operation %u, reduction %u, type %u, %llu elements, peer %d: wrong values\n",
                rank, size, op, reduction, dtype, (unsigned long long)count, peer);
        fflush(NULL);
        _Exit(1);
    }
    free(send);
    free(recv);
    free(expected);
}

static void test_info(const transport *t, int threads) {
    weir_comm_transport_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK_EQ(t->call.get_info(t->ctx, &info), WEIR_OK);
    CHECK_EQ(info.rank, rank);
    CHECK_EQ(info.size, size);
    CHECK_EQ(info.flags, threads == MPI_THREAD_FUNNELED ? WEIR_COMM_ONE_THREAD : 0);
    CHECK_EQ(info.ops, 0x3fe);
    CHECK(info.max_tag >= 32767 && info.max_bytes == UINT64_C(1) << 30);
    CHECK(strncmp(info.name, "Open MPI ", 9) == 0 || strncmp(info.name, "MPICH ", 6) == 0);
    CHECK(strchr(info.name, '\n') == NULL && strlen(info.name) < 24);
    if (rank == 0) printf("%s\n", info.name);
}

static void test_operations(const transport *t) {
    static const uint64_t counts[] = {0, 1, 3, 1001, 70001};
    static const weir_dtype dtypes[] = {WEIR_F32, WEIR_S32, WEIR_U8, WEIR_S8, WEIR_S64};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            for (weir_comm_op op = WEIR_COMM_SEND; op <= WEIR_COMM_ALL_TO_ALL; op++) {
                const int has_root = op == WEIR_COMM_BROADCAST || op == WEIR_COMM_REDUCE;
                const int reduces =
                    op == WEIR_COMM_REDUCE || op == WEIR_COMM_ALL_REDUCE || op == WEIR_COMM_REDUCE_SCATTER;
                if (op == WEIR_COMM_RECV || (reduces && sizes[dtypes[d]] == 1)) continue;
                for (int peer = 0; peer < (has_root ? size : 1); peer++) {
                    check_operation(t, op, WEIR_COMM_SUM, dtypes[d], counts[c], peer);
                    if (reduces) check_operation(t, op, WEIR_COMM_PRODUCT, dtypes[d], counts[c], peer);
                }
            }
        }
    }
    check_operation(t, WEIR_COMM_ALL_REDUCE, WEIR_COMM_SUM, WEIR_F32, 1 << 20, 0);
    finish(t, start(t, (weir_comm_operation){.op = WEIR_COMM_BARRIER}));
}

static void test_wrapping(const transport *t) {
    const int32_t small = 1500000000;
    int32_t small_sum = 0;
    const int64_t large = INT64_MAX - rank;
    int64_t large_product = 0;
    uint64_t expected = 1;
    for (int r = 0; r < size; r++) expected *= (uint64_t)INT64_MAX - (uint64_t)r;
    weir_comm_operation operation = {.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_SUM, .dtype = WEIR_S32};
    operation.count = 1;
    operation.element_bytes = 4;
    operation.send = &small;
    operation.recv = &small_sum;
    finish(t, start(t, operation));
    CHECK_EQ(small_sum, (int32_t)(1500000000u * (unsigned)size));
    operation.reduction = WEIR_COMM_PRODUCT;
    operation.dtype = WEIR_S64;
    operation.element_bytes = 8;
    operation.send = &large;
    operation.recv = &large_product;
    finish(t, start(t, operation));
    CHECK_EQ(large_product, (int64_t)expected);
}

/* A start that waited for other ranks would never come back: they begin only after a message that is sent behind it. */
static void test_start_does_not_wait(const transport *t) {
    enum { COUNT = 1 << 18 };
    const weir_comm_op ops[] = {WEIR_COMM_ALL_REDUCE, WEIR_COMM_REDUCE, WEIR_COMM_BROADCAST, WEIR_COMM_SEND};
    int32_t *send = numbers(rank, WEIR_S32, COUNT), *recv = calloc(COUNT, sizeof *recv);
    char go = 0;
    CHECK(recv != NULL);
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        weir_comm_operation operation = {.op = ops[o], .dtype = WEIR_S32, .count = COUNT, .element_bytes = 4};
        weir_comm_operation signal = {.op = WEIR_COMM_SEND, .dtype = WEIR_U8, .count = 1, .element_bytes = 1, .tag = 1};
        if (ops[o] == WEIR_COMM_ALL_REDUCE || ops[o] == WEIR_COMM_REDUCE) operation.reduction = WEIR_COMM_SUM;
        operation.send = send;
        operation.recv = recv;
        if (rank == 0) {
            if (ops[o] == WEIR_COMM_SEND) operation.peer = 1;
            void *request = start(t, operation);
            for (int r = 1; r < size; r++) {
                signal.peer = r;
                signal.send = &go;
                finish(t, start(t, signal));
            }
            finish(t, request);
        } else {
            signal.op = WEIR_COMM_RECV;
            signal.recv = &go;
            finish(t, start(t, signal));
            if (ops[o] == WEIR_COMM_SEND && rank != 1) continue;
            if (ops[o] == WEIR_COMM_SEND) operation.op = WEIR_COMM_RECV;
            finish(t, start(t, operation));
        }
    }
    free(send);
    free(recv);
}

/* Hundreds of operations at once, tested in another order than they began in. */
static void test_many(const transport *t) {
    enum { MANY = 300, COUNT = 37 };
    static int32_t send[MANY][COUNT], sums[MANY][COUNT], got[MANY][COUNT];
    static void *requests[3 * MANY];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int round = 0; round < 2; round++) {
        int left = 3 * MANY, at = 0;
        for (int m = 0; m < MANY; m++) {
            for (int i = 0; i < COUNT; i++) send[m][i] = value(rank, (uint64_t)(m * COUNT + i + round));
            weir_comm_operation operation = {.dtype = WEIR_S32, .count = COUNT, .element_bytes = 4, .send = send[m]};
            operation.op = WEIR_COMM_ALL_REDUCE;
            operation.reduction = WEIR_COMM_SUM;
            operation.recv = sums[m];
            requests[3 * m] = start(t, operation);
            operation.op = WEIR_COMM_SEND;
            operation.reduction = 0;
            operation.peer = next;
            operation.tag = 1 + m % 2;
            requests[3 * m + 1] = start(t, operation);
            operation.op = WEIR_COMM_RECV;
            operation.peer = before;
            operation.recv = got[m];
            requests[3 * m + 2] = start(t, operation);
        }
        for (; left > 0; at = (at + 101) % (3 * MANY)) { /* 101 and 900 have no common divisor: all are met */
            int32_t done = 0;
            if (requests[at] == NULL) continue;
            check_call(t, "test", t->call.test(t->ctx, requests[at], &done));
            if (!done) continue;
            requests[at] = NULL;
            left--;
        }
        for (int m = 0; m < MANY; m++) {
            for (int i = 0; i < COUNT; i++) {
                CHECK_EQ(sums[m][i], reduced(WEIR_COMM_SUM, (uint64_t)(m * COUNT + i + round)));
                CHECK_EQ(got[m][i], value(before, (uint64_t)(m * COUNT + i + round)));
            }
        }
    }
}

typedef struct note {
    int32_t from, number;
    char text[56];
} note;

/* All ranks write to all, themselves too, before any of them reads. Nothing may wait. */
static void test_control(const transport *t) {
    enum { NOTES = 400 };
    static int32_t next[64];
    CHECK_EQ(sizeof(note), WEIR_COMM_MESSAGE_BYTES);
    memset(next, 0, sizeof next);
    for (int n = 0; n < NOTES; n++) {
        for (int to = 0; to < size; to++) {
            note message = {.from = t->rank, .number = n};
            snprintf(message.text, sizeof message.text, "from %d to %d", t->rank, to);
            control_send(t, to, &message);
            memset(&message, 0xff, sizeof message); /* the transport has copied it */
        }
    }
    meet();
    for (int left = NOTES * size; left > 0;) {
        note message;
        char expected[56];
        int32_t from = -1, got = -1;
        check_call(t, "control_poll", t->call.control_poll(t->ctx, &from, &message, &got));
        if (!got) {
            sched_yield();
            continue;
        }
        CHECK(from >= 0 && from < size);
        CHECK_EQ(message.from, from);
        CHECK_EQ(message.number, next[from]++);
        snprintf(expected, sizeof expected, "from %d to %d", from, t->rank);
        CHECK(strcmp(message.text, expected) == 0);
        left--;
    }
    meet();
    int32_t from, got = -1;
    note message;
    check_call(t, "control_poll", t->call.control_poll(t->ctx, &from, &message, &got));
    CHECK_EQ(got, 0);
}

/* Two communicators over the same ranks do not hear each other. */
static void test_duplicate(const transport *t) {
    transport twin = *t;
    int32_t one = 1, two = 2, first = 0, second = 0;
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    check_call(t, "duplicate", t->call.duplicate(t->ctx, &twin.ctx));
    CHECK(twin.ctx != NULL && twin.ctx != t->ctx);
    weir_comm_operation send = {.op = WEIR_COMM_SEND, .dtype = WEIR_S32, .count = 1, .element_bytes = 4, .peer = next};
    weir_comm_operation recv = send;
    recv.op = WEIR_COMM_RECV;
    recv.peer = before;
    send.send = &one;
    void *sent = start(t, send);
    send.send = &two;
    void *sent_too = start(&twin, send);
    recv.recv = &second;
    finish(&twin, start(&twin, recv));
    recv.recv = &first;
    finish(t, start(t, recv));
    finish(t, sent);
    finish(&twin, sent_too);
    CHECK_EQ(first, 1);
    CHECK_EQ(second, 2);
    test_control(&twin);
    test_many(&twin);
    twin.call.release(twin.ctx);
}

/* A message that nobody takes goes with its communicator. */
static void test_unread(const transport *t) {
    for (int i = 0; i < 3; i++) {
        transport twin = *t;
        note message = {.from = rank, .number = i};
        int32_t from = -1, got = -1;
        check_call(t, "duplicate", t->call.duplicate(t->ctx, &twin.ctx));
        check_call(&twin, "control_poll", twin.call.control_poll(twin.ctx, &from, &message, &got));
        CHECK_EQ(got, 0);
        meet();
        control_send(&twin, (rank + 1) % size, &message);
        meet();
        twin.call.release(twin.ctx);
    }
}

/* Released ones make room: MPICH has no more than 2,048, and each of these is two. */
static void test_room(const transport *t) {
    for (int i = 0; i < 1100; i++) {
        transport twin = *t;
        check_call(t, "duplicate", t->call.duplicate(t->ctx, &twin.ctx));
        twin.call.release(twin.ctx);
    }
}

static void test_split(const transport *t) {
    transport part = *t;
    weir_comm_transport_info info;
    int32_t sum = 0;
    /* Even and odd ranks, backwards. */
    check_call(t, "split", t->call.split(t->ctx, rank % 2, size - rank, &part.ctx));
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK_EQ(part.call.get_info(part.ctx, &info), WEIR_OK);
    const int expected_size = (size + 1 - rank % 2) / 2;
    CHECK_EQ(info.size, expected_size);
    CHECK_EQ(info.rank, expected_size - 1 - rank / 2);
    int32_t mine = rank, expected = 0;
    for (int r = rank % 2; r < size; r += 2) expected += r;
    weir_comm_operation operation = {.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_SUM, .dtype = WEIR_S32};
    operation.count = 1;
    operation.element_bytes = 4;
    operation.send = &mine;
    operation.recv = &sum;
    finish(&part, start(&part, operation));
    CHECK_EQ(sum, expected);
    part.call.release(part.ctx);
    /* Only rank 0 has a part in this one. */
    part.ctx = (void *)&part;
    check_call(t, "split", t->call.split(t->ctx, rank == 0 ? 5 : -1, 0, &part.ctx));
    CHECK_EQ(part.ctx != NULL, rank == 0);
    if (part.ctx != NULL) part.call.release(part.ctx);
}

static void refused(const transport *t, weir_comm_operation operation, weir_status expected, const char *part) {
    char text[256] = "";
    int32_t about = -2;
    void *request = NULL;
    operation.struct_size = sizeof operation;
    CHECK_EQ(t->call.start(t->ctx, &operation, &request), expected);
    t->call.last_error(t->ctx, &about, text, sizeof text);
    CHECK_EQ(about, -1);
    CHECK_TEXT(text, part);
}

static void test_refusals(const transport *t) {
    uint16_t halves[2] = {0, 0};
    weir_comm_operation operation = {.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_SUM, .dtype = WEIR_F16};
    operation.count = 1;
    operation.element_bytes = 2;
    operation.send = &halves[0];
    operation.recv = &halves[1];
    refused(t, operation, WEIR_UNIMPLEMENTED, "MPI_Iallreduce: no such type");
    operation.dtype = WEIR_U8; /* Open MPI's sums of these saturate */
    refused(t, operation, WEIR_UNIMPLEMENTED, "MPI_Iallreduce: no such type");
    operation.dtype = WEIR_F32;
    operation.element_bytes = 4;
    operation.reduction = WEIR_COMM_MAX;
    refused(t, operation, WEIR_UNIMPLEMENTED, "neither a sum nor a product");
    operation.reduction = WEIR_COMM_SUM;
    operation.count = (UINT64_C(1) << 28) + 1;
    refused(t, operation, WEIR_OUT_OF_RANGE, "more than 1 GiB");
    operation.count = UINT64_MAX / 2;
    refused(t, operation, WEIR_OUT_OF_RANGE, "more than 1 GiB");
    operation.op = WEIR_COMM_ALL_GATHER;
    operation.count = (UINT64_C(1) << 28) / (uint64_t)size + 1;
    refused(t, operation, WEIR_OUT_OF_RANGE, "more than 1 GiB");
}

/* Messages of another size than the receiver waits for are no surprise in its memory. */
static void test_wrong_sizes(const transport *t) {
    uint8_t sent[64] = {0}, got[65];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH 4 asks there */
    for (int length = 24; length <= 56; length += 32) { /* shorter, then longer than 40 */
        weir_comm_operation operation = {.op = WEIR_COMM_SEND, .dtype = WEIR_U8, .element_bytes = 1, .tag = 7};
        if (rank == 0) {
            operation.count = (uint64_t)length;
            operation.peer = 1;
            operation.send = sent;
            finish(t, start(t, operation));
        } else if (rank == 1) {
            char text[256] = "", small[8] = "";
            int32_t done = 0, about = -2;
            weir_status status = WEIR_OK;
            memset(got, 0xa5, sizeof got);
            operation.op = WEIR_COMM_RECV;
            operation.count = 40;
            operation.recv = got;
            void *request = start(t, operation);
            while (!done && status == WEIR_OK) status = t->call.test(t->ctx, request, &done);
            CHECK_EQ(status, WEIR_DATA_LOSS);
            CHECK_EQ(got[40], 0xa5);
            t->call.last_error(t->ctx, &about, text, sizeof text);
            CHECK_EQ(about, 0);
            CHECK_TEXT(text, length == 24 ? "rank 0 has sent 24 bytes, expected 40" : "MPI_Irecv with rank 0: ");
            t->call.last_error(t->ctx, &about, small, sizeof small);
            CHECK_EQ(strlen(small), 7);
        }
        meet();
    }
}

/* One rank gives up an operation. Its communicator stays, because the others may still come to it. */
static void test_abort(const transport *t) {
    transport twin = *t;
    int32_t sum = 0, expected = 0;
    for (int r = 0; r < size; r++) expected += r;
    check_call(t, "duplicate", t->call.duplicate(t->ctx, &twin.ctx));
    weir_comm_operation operation = {.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_SUM, .dtype = WEIR_S32};
    operation.count = 1;
    operation.element_bytes = 4;
    operation.send = &rank;
    operation.recv = &sum;
    if (rank == 0) {
        start(&twin, operation);
        CHECK_EQ(((weir_mpi_comm *)twin.ctx)->open, 1);
        twin.call.abort(twin.ctx);
        twin.call.release(twin.ctx);
        meet();
    } else {
        meet();
        finish(&twin, start(&twin, operation));
        CHECK_EQ(sum, expected);
        twin.call.abort(twin.ctx);
        twin.call.release(twin.ctx);
    }
    meet();
    /* The others go on. */
    check_operation(t, WEIR_COMM_ALL_REDUCE, WEIR_COMM_SUM, WEIR_S32, 99, 0);
}

/* Communicators that cannot be. */
static void test_arguments(void) {
    weir_comm_vtable vtable;
    void *ctx = &vtable;
    MPI_Comm half = MPI_COMM_NULL, across = MPI_COMM_NULL;
    CHECK_EQ(weir_mpi_vtable_create(MPI_COMM_NULL, &vtable, &ctx), WEIR_INVALID_ARGUMENT);
    CHECK(ctx == NULL);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &across);
    CHECK_EQ(weir_mpi_vtable_create(across, &vtable, &ctx), WEIR_INVALID_ARGUMENT);
    MPI_Comm_free(&across);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    weir_comm_vtable vtable;
    MPI_Errhandler handler;
    void *ctx = &vtable;
    int threads = MPI_THREAD_MULTIPLE;
    if (argc > 1 && strcmp(argv[1], "serialized") == 0) threads = MPI_THREAD_SERIALIZED;
    if (argc > 1 && strcmp(argv[1], "funneled") == 0) threads = MPI_THREAD_FUNNELED;
    CHECK_EQ(weir_mpi_vtable_create(MPI_COMM_WORLD, &vtable, &ctx), WEIR_FAILED_PRECONDITION);
    begin_ranks(&argc, &argv, threads);
    test_arguments();
    transport t = make_transport(MPI_COMM_WORLD);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL); /* as it was */
    test_info(&t, threads);
    test_operations(&t);
    test_wrapping(&t);
    test_start_does_not_wait(&t);
    test_many(&t);
    test_control(&t);
    test_duplicate(&t);
    test_split(&t);
    test_refusals(&t);
    test_wrong_sizes(&t);
    test_unread(&t);
    if (argc > 1 && strcmp(argv[1], "room") == 0) test_room(&t);
    test_abort(&t);
    meet();
    transport late = t;
    check_call(&t, "duplicate", t.call.duplicate(t.ctx, &late.ctx));
    t.call.release(t.ctx);
    end_ranks("the transport moves what it is given");
    late.call.release(late.ctx); /* frees memory, and calls nothing */
    CHECK_EQ(weir_mpi_vtable_create(MPI_COMM_WORLD, &vtable, &ctx), WEIR_FAILED_PRECONDITION);
    return 0;
}
