/* Ranks of MPI as a weir communicator. C99 or later, C++11 or later; compile with MPI's own compiler (mpicc), or with
 * its include path and library.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     weir_comm *comm;
 *     weir_status status = weir_mpi_comm_create(MPI_COMM_WORLD, NULL, &comm);
 *
 * Gives weir all operations, a control channel, and duplicates: Open MPI 4.1 and 5, MPICH 4 and 5, and what else has
 * MPI 3.0. libweir never calls MPI by itself: what is used of it is in this header, compiled by the host.
 *
 * Ownership: the host's communicator stays the host's and may be freed. weir has two duplicates of it, one for
 * operations and one for control messages. MPICH has room for about 2,000 communicators in a process. MPI begins before
 * (MPI_Init_thread) and ends after (MPI_Finalize) all weir communicators; one that is released later frees only memory.
 *
 * Threads, as the host has initialised MPI:
 *  - MPI_THREAD_MULTIPLE: none of weir's calls gets in the host's way.
 *  - MPI_THREAD_SERIALIZED: the host calls MPI only while weir does not: not while a thread waits in weir, and not at
 *    all with WEIR_COMM_OWN_THREAD. weir calls MPI in one thread at a time for each of its communicators, and for
 *    several at once: a process that has more than one of them in use needs MPI_THREAD_MULTIPLE.
 *  - MPI_THREAD_FUNNELED and SINGLE: create the communicator in the main thread. weir calls MPI in that thread alone
 *    (WEIR_COMM_ONE_THREAD).
 *
 * Limits, which are MPI's:
 *  - Operations move only inside of calls. While no thread of a rank is in weir or in MPI, others wait for it.
 *  - Messages have up to 1 GiB: weir divides larger ones. The implementations count in int, some of them also the bytes
 *    of all ranks together.
 *  - MPI reduces f32, s32 and s64, sums and products. weir reduces f16 and bf16, which MPI has not; bytes, whose sums
 *    saturate in Open MPI with AVX instead of wrapping; and minima and maxima, whose NaN and signed zeros each
 *    implementation treats in its own way.
 *  - MPI promises neither an order of sums nor the same bits in each run.
 *  - Nothing tells that a rank has died, unless MPI has ULFM and was started with it (Open MPI 5: mpirun --with-ft
 *    ulfm). Then failures name the rank, and weir_comm_recover works.
 *  - MPICH 4 asks the error handler of MPI_COMM_WORLD about failures of all operations. Unless the host sets
 *    MPI_ERRORS_RETURN there, it ends the process at a message that is longer than its receiver expects.
 *  - What was begun cannot be taken back. After a failure the duplicates stay, and so do the operations that were open,
 *    because to free them may hang. MPI_Finalize may hang then too: a host that cannot recover ends with MPI_Abort, and
 *    one that has recovered and gone on exits without MPI_Finalize (Open MPI 5 hung there once in some 26 runs).
 */

#ifndef WEIR_ADAPTERS_MPI_H
#define WEIR_ADAPTERS_MPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

/* ULFM that says whether it is on. MPICH declares the functions, but has no such flag. */
#if defined(MPIX_ERR_PROC_FAILED) && defined(MPIX_FT)
#define WEIR_MPI_ULFM 1
#endif

#include "../comm.h"

#ifdef __cplusplus
#if defined(__GNUC__)
/* This header is for C as well, so its casts are those of C. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
extern "C" {
#endif

/* The most bytes of an operation, all ranks' parts together. */
#define WEIR_MPI_MAX_BYTES (UINT64_C(1) << 30)

/* An operation that was started. */
typedef struct weir_mpi_request {
    MPI_Request mpi;
    struct weir_mpi_request *next; /* among the idle ones */
    weir_comm_op op;
    int peer;       /* of SEND and RECV, else -1 */
    int bytes;      /* that RECV waits for */
    double revoked; /* when it was found that others have given up the communicator, or 0 */
} weir_mpi_request;

/* A control message that was sent, and whose memory MPI may still read. */
typedef struct weir_mpi_message {
    MPI_Request mpi;
    struct weir_mpi_message *next;
    unsigned char bytes[WEIR_COMM_MESSAGE_BYTES];
} weir_mpi_message;

typedef struct weir_mpi_comm {
    MPI_Comm data;    /* for operations */
    MPI_Comm control; /* for control messages, which go on when `data` is revoked */
    int rank;
    int size;
    int max_tag;
    int control_tag;
    int recovers; /* whether ULFM is there and on */
    int aborted;
    uint64_t flags;
    uint64_t open;           /* operations that are not over; those of an aborted communicator never will be */
    weir_mpi_request *idle;  /* memory for operations to come */
    weir_mpi_message *spare; /* and for messages */
    weir_mpi_message *first; /* messages on their way, in order */
    weir_mpi_message *last;
    int failed_rank; /* of the last failure, or -1 */
    char text[320];
} weir_mpi_comm;

static inline const char *weir_mpi_call_of(weir_comm_op op) {
    switch (op) {
    case WEIR_COMM_SEND: return "MPI_Isend";
    case WEIR_COMM_RECV: return "MPI_Irecv";
    case WEIR_COMM_BROADCAST: return "MPI_Ibcast";
    case WEIR_COMM_REDUCE: return "MPI_Ireduce";
    case WEIR_COMM_ALL_REDUCE: return "MPI_Iallreduce";
    case WEIR_COMM_ALL_GATHER: return "MPI_Iallgather";
    case WEIR_COMM_REDUCE_SCATTER: return "MPI_Ireduce_scatter_block";
    case WEIR_COMM_ALL_TO_ALL: return "MPI_Ialltoall";
    default: return "MPI_Ibarrier";
    }
}

/* The first rank that is known to be dead, or -1. Later receives from any rank go on without the dead ones. */
static inline int weir_mpi_dead_rank(const weir_mpi_comm *comm) {
    int dead = -1;
#ifdef WEIR_MPI_ULFM
    int i;
    for (i = 0; i < 2 && dead < 0 && comm->recovers; i++) {
        const MPI_Comm mpi = i == 0 ? comm->control : comm->data;
        MPI_Group gone = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
        int count = 0, first = 0;
        MPIX_Comm_failure_ack(mpi);
        if (MPIX_Comm_failure_get_acked(mpi, &gone) != MPI_SUCCESS) continue;
        if (MPI_Comm_group(mpi, &all) == MPI_SUCCESS) {
            MPI_Group_size(gone, &count);
            if (count > 0) MPI_Group_translate_ranks(gone, 1, &first, all, &dead);
            if (dead == MPI_UNDEFINED) dead = -1;
            MPI_Group_free(&all);
        }
        if (gone != MPI_GROUP_EMPTY) MPI_Group_free(&gone);
    }
#else
    (void)comm;
#endif
    return dead;
}

/* Keeps the text of a failure, and the rank if MPI says which one it is. `peer` is the call's other rank, or -1. */
static inline weir_status weir_mpi_failed(weir_mpi_comm *comm, const char *call, int peer, int error) {
    char why[MPI_MAX_ERROR_STRING + 1];
    weir_status status = WEIR_UNKNOWN;
    int kind = MPI_ERR_OTHER, length = 0, i;
    if (MPI_Error_class(error, &kind) != MPI_SUCCESS) kind = MPI_ERR_OTHER;
    if (MPI_Error_string(error, why, &length) != MPI_SUCCESS || length < 0) length = 0;
    why[length] = '\0';
    for (i = 0; i < length; i++) {
        if (why[i] == '\n') why[i] = ' '; /* MPICH writes paragraphs */
    }
    comm->failed_rank = -1;
    if (kind == MPI_ERR_TRUNCATE) {
        status = WEIR_DATA_LOSS;
        comm->failed_rank = peer;
    } else if (kind == MPI_ERR_NO_MEM) {
        status = WEIR_RESOURCE_EXHAUSTED;
    }
#ifdef WEIR_MPI_ULFM
    if (kind == MPIX_ERR_PROC_FAILED || kind == MPIX_ERR_PROC_FAILED_PENDING || kind == MPIX_ERR_REVOKED) {
        comm->failed_rank = weir_mpi_dead_rank(comm);
        if (comm->failed_rank < 0 && kind == MPIX_ERR_PROC_FAILED) comm->failed_rank = peer;
        status = kind == MPIX_ERR_REVOKED && comm->failed_rank < 0 ? WEIR_ABORTED : WEIR_UNAVAILABLE;
    }
#endif
    if (status == WEIR_UNAVAILABLE && comm->failed_rank >= 0) {
        snprintf(comm->text, sizeof comm->text, "%s: rank %d has died (%.200s)", call, comm->failed_rank, why);
    } else if (peer >= 0) {
        snprintf(comm->text, sizeof comm->text, "%s with rank %d: %.240s", call, peer, why);
    } else {
        snprintf(comm->text, sizeof comm->text, "%s: %.240s", call, why);
    }
    return status;
}

/* Whether others have given up the communicator. */
static inline int weir_mpi_is_revoked(int error) {
#ifdef WEIR_MPI_ULFM
    int kind = MPI_SUCCESS;
    return MPI_Error_class(error, &kind) == MPI_SUCCESS && kind == MPIX_ERR_REVOKED;
#else
    (void)error;
    return 0;
#endif
}

static inline weir_status weir_mpi_no_memory(weir_mpi_comm *comm) {
    comm->failed_rank = -1;
    snprintf(comm->text, sizeof comm->text, "no memory for another request");
    return WEIR_RESOURCE_EXHAUSTED;
}

static inline weir_status weir_mpi_unable(weir_mpi_comm *comm, weir_status status, const char *call, const char *why) {
    comm->failed_rank = -1;
    snprintf(comm->text, sizeof comm->text, "%s: %s", call, why);
    return status;
}

/* "Open MPI 4.1.4", "MPICH 5.0.2": the beginning of what the library says about itself. */
static inline void weir_mpi_name(char *name, size_t capacity) {
    static const char open_mpi[] = "Open MPI v", mpich[] = "MPICH Version:";
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    const char *version = text;
    const char *product = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS || length < 0) length = 0;
    text[length] = '\0';
    if (strncmp(text, open_mpi, sizeof open_mpi - 1) == 0) {
        product = "Open MPI ";
        version += sizeof open_mpi - 1;
    } else if (strncmp(text, mpich, sizeof mpich - 1) == 0) {
        product = "MPICH ";
        version += sizeof mpich - 1;
    }
    version += strspn(version, " \t");
    snprintf(name, capacity, "%s%.*s", product, (int)strcspn(version, ",\n"), version);
}

static inline weir_status weir_mpi_get_info(void *ctx, weir_comm_transport_info *out_info) {
    const weir_mpi_comm *comm = (const weir_mpi_comm *)ctx;
    int op;
    out_info->ops = 0;
    out_info->rank = comm->rank;
    out_info->size = comm->size;
    out_info->flags = comm->flags;
    for (op = WEIR_COMM_SEND; op <= WEIR_COMM_BARRIER; op++) out_info->ops |= UINT64_C(1) << op;
    out_info->dtypes = UINT64_C(1) << WEIR_F32 | UINT64_C(1) << WEIR_S32 | UINT64_C(1) << WEIR_S64;
    out_info->reductions = UINT64_C(1) << WEIR_COMM_SUM | UINT64_C(1) << WEIR_COMM_PRODUCT;
    out_info->max_tag = comm->max_tag;
    out_info->max_bytes = WEIR_MPI_MAX_BYTES;
    weir_mpi_name(out_info->name, sizeof out_info->name);
    return WEIR_OK;
}

/* What MPI reduces a type as. Integers are unsigned, whose sums and products C lets wrap: the bits are the same. */
static inline MPI_Datatype weir_mpi_type(weir_dtype dtype) {
    switch (dtype) {
    case WEIR_F32: return MPI_FLOAT;
    case WEIR_S32: return MPI_UINT32_T;
    case WEIR_S64: return MPI_UINT64_T;
    default: return MPI_DATATYPE_NULL;
    }
}

static inline weir_status weir_mpi_start(void *ctx, const weir_comm_operation *operation, void **out_request) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx;
    weir_mpi_request *request = comm->idle;
    const char *call = weir_mpi_call_of(operation->op);
    const void *send = operation->send;
    void *recv = operation->recv;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_SUM;
    int reduces = 0, parts = 1, elements, bytes, error;
    switch (operation->op) {
    case WEIR_COMM_REDUCE:
    case WEIR_COMM_ALL_REDUCE: reduces = 1; break;
    case WEIR_COMM_REDUCE_SCATTER: reduces = 1; parts = comm->size; break;
    case WEIR_COMM_ALL_GATHER:
    case WEIR_COMM_ALL_TO_ALL: parts = comm->size; break;
    default: break;
    }
    if (operation->count > WEIR_MPI_MAX_BYTES || operation->element_bytes > WEIR_MPI_MAX_BYTES ||
        (operation->element_bytes != 0 &&
         operation->count > WEIR_MPI_MAX_BYTES / operation->element_bytes / (uint64_t)parts)) {
        return weir_mpi_unable(comm, WEIR_OUT_OF_RANGE, call, "more than 1 GiB");
    }
    elements = (int)operation->count;
    bytes = (int)(operation->count * operation->element_bytes);
    if (reduces) {
        type = weir_mpi_type(operation->dtype);
        if (type == MPI_DATATYPE_NULL) return weir_mpi_unable(comm, WEIR_UNIMPLEMENTED, call, "no such type");
        if (operation->reduction == WEIR_COMM_PRODUCT) {
            op = MPI_PROD;
        } else if (operation->reduction != WEIR_COMM_SUM) {
            return weir_mpi_unable(comm, WEIR_UNIMPLEMENTED, call, "neither a sum nor a product");
        }
    }
    if (request == NULL) {
        request = (weir_mpi_request *)calloc(1, sizeof *request);
        if (request == NULL) return weir_mpi_no_memory(comm);
        request->next = NULL;
        comm->idle = request;
    }
    request->op = operation->op;
    request->peer = -1;
    request->bytes = bytes;
    request->revoked = 0;
    switch (operation->op) {
    case WEIR_COMM_SEND:
        request->peer = operation->peer;
        error = MPI_Isend(send, bytes, MPI_BYTE, operation->peer, operation->tag, comm->data, &request->mpi);
        break;
    case WEIR_COMM_RECV:
        request->peer = operation->peer;
        error = MPI_Irecv(recv, bytes, MPI_BYTE, operation->peer, operation->tag, comm->data, &request->mpi);
        break;
    case WEIR_COMM_BROADCAST:
        /* The root's buffer is only read. */
        error = MPI_Ibcast(operation->peer == comm->rank ? (void *)(uintptr_t)send : recv, bytes, MPI_BYTE,
                           operation->peer, comm->data, &request->mpi);
        break;
    case WEIR_COMM_REDUCE:
        error = MPI_Ireduce(send, recv, elements, type, op, operation->peer, comm->data, &request->mpi);
        break;
    case WEIR_COMM_ALL_REDUCE:
        error = MPI_Iallreduce(send, recv, elements, type, op, comm->data, &request->mpi);
        break;
    case WEIR_COMM_ALL_GATHER:
        error = MPI_Iallgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm->data, &request->mpi);
        break;
    case WEIR_COMM_REDUCE_SCATTER:
        error = MPI_Ireduce_scatter_block(send, recv, elements, type, op, comm->data, &request->mpi);
        break;
    case WEIR_COMM_ALL_TO_ALL:
        error = MPI_Ialltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm->data, &request->mpi);
        break;
    case WEIR_COMM_BARRIER: error = MPI_Ibarrier(comm->data, &request->mpi); break;
    default: return weir_mpi_unable(comm, WEIR_UNIMPLEMENTED, "start", "no such operation");
    }
    if (weir_mpi_is_revoked(error)) {
        request->mpi = MPI_REQUEST_NULL;
        request->revoked = MPI_Wtime();
    } else if (error != MPI_SUCCESS) {
        return weir_mpi_failed(comm, call, request->peer, error);
    }
    comm->idle = request->next;
    comm->open++;
    *out_request = request;
    return WEIR_OK;
}

static inline weir_status weir_mpi_test(void *ctx, void *opaque, int32_t *out_done) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx;
    weir_mpi_request *request = (weir_mpi_request *)opaque;
    weir_status result = WEIR_OK;
    MPI_Status status;
    int done = 0, got = 0, error = MPI_SUCCESS;
    if (request->revoked == 0) error = MPI_Test(&request->mpi, &done, &status);
#ifdef WEIR_MPI_ULFM
    /* The message that says why is on its way too, and may come later than this. */
    if (weir_mpi_is_revoked(error) && request->revoked == 0) {
        if (request->mpi != MPI_REQUEST_NULL) return weir_mpi_failed(comm, weir_mpi_call_of(request->op), -1, error);
        request->revoked = MPI_Wtime();
    }
    if (request->revoked != 0) {
        error = MPIX_ERR_REVOKED;
        if (weir_mpi_dead_rank(comm) < 0 && MPI_Wtime() - request->revoked < 0.1) {
            *out_done = 0;
            return WEIR_OK;
        }
        request->mpi = MPI_REQUEST_NULL;
    }
#endif
    if (error != MPI_SUCCESS) {
        result = weir_mpi_failed(comm, weir_mpi_call_of(request->op), request->peer, error);
        if (request->mpi != MPI_REQUEST_NULL) return result; /* MPI has it still */
    } else if (!done) {
        *out_done = 0;
        return WEIR_OK;
    } else if (request->op == WEIR_COMM_RECV) {
        MPI_Get_count(&status, MPI_BYTE, &got);
        if (got != request->bytes) {
            result = WEIR_DATA_LOSS;
            comm->failed_rank = request->peer;
            snprintf(comm->text, sizeof comm->text, "rank %d has sent %d bytes, expected %d", request->peer, got,
                     request->bytes);
        }
    }
    request->next = comm->idle;
    comm->idle = request;
    comm->open--;
    *out_done = result == WEIR_OK;
    return result;
}

/* Takes back the memory of messages that are on their way no more. */
static inline void weir_mpi_collect(weir_mpi_comm *comm) {
    while (comm->first != NULL) {
        weir_mpi_message *message = comm->first;
        MPI_Status status;
        int done = 0;
        /* One that fails is over too: its receiver is gone. */
        if (MPI_Test(&message->mpi, &done, &status) == MPI_SUCCESS && !done) return;
        comm->first = message->next;
        message->next = comm->spare;
        comm->spare = message;
    }
}

static inline weir_status weir_mpi_control_send(void *ctx, int32_t peer, const void *bytes) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx;
    weir_mpi_message *message;
    int error;
    weir_mpi_collect(comm);
    message = comm->spare;
    if (message == NULL) {
        message = (weir_mpi_message *)calloc(1, sizeof *message);
        if (message == NULL) return weir_mpi_no_memory(comm);
        comm->spare = message;
    }
    memcpy(message->bytes, bytes, sizeof message->bytes);
    error = MPI_Isend(message->bytes, (int)sizeof message->bytes, MPI_BYTE, peer, comm->control_tag, comm->control,
                      &message->mpi);
    if (error != MPI_SUCCESS) return weir_mpi_failed(comm, "MPI_Isend of a control message", peer, error);
    comm->spare = message->next;
    message->next = NULL;
    if (comm->first == NULL) {
        comm->first = message;
    } else {
        comm->last->next = message;
    }
    comm->last = message;
    return WEIR_OK;
}

static inline weir_status weir_mpi_control_poll(void *ctx, int32_t *out_peer, void *out_message, int32_t *out_got) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx;
    MPI_Status status;
    int got = 0, error;
    *out_got = 0;
    weir_mpi_collect(comm);
    error = MPI_Iprobe(MPI_ANY_SOURCE, comm->control_tag, comm->control, &got, &status);
    if (error != MPI_SUCCESS) return weir_mpi_failed(comm, "MPI_Iprobe", -1, error);
    if (!got) return WEIR_OK;
    *out_peer = status.MPI_SOURCE;
    error = MPI_Recv(out_message, WEIR_COMM_MESSAGE_BYTES, MPI_BYTE, status.MPI_SOURCE, comm->control_tag,
                     comm->control, &status);
    if (error != MPI_SUCCESS) return weir_mpi_failed(comm, "MPI_Recv of a control message", *out_peer, error);
    *out_got = 1;
    return WEIR_OK;
}

/* Takes `data` and makes the rest that a communicator has; collective. `report` gets the text of a failure, or is NULL.
 * Memory is asked for last: a rank that gets none keeps no other one waiting. */
static inline weir_status weir_mpi_make(MPI_Comm data, weir_mpi_comm *report, weir_mpi_comm **out_comm) {
    weir_mpi_comm made;
    weir_status status = WEIR_UNKNOWN;
    void *value = NULL;
    int found = 0, threads = MPI_THREAD_SINGLE, error;
    const char *call = "MPI_Comm_dup";
    *out_comm = NULL;
    memset(&made, 0, sizeof made);
    made.data = data;
    made.control = MPI_COMM_NULL;
    made.failed_rank = -1;
    MPI_Comm_set_errhandler(data, MPI_ERRORS_RETURN);
    MPI_Comm_rank(data, &made.rank);
    MPI_Comm_size(data, &made.size);
    MPI_Query_thread(&threads);
    if (threads != MPI_THREAD_MULTIPLE && threads != MPI_THREAD_SERIALIZED) made.flags = WEIR_COMM_ONE_THREAD;
    made.max_tag = 32767;
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found) == MPI_SUCCESS && found) {
        made.max_tag = *(const int *)value;
    }
#ifdef WEIR_MPI_ULFM
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &value, &found) == MPI_SUCCESS && found) {
        made.recovers = *(const int *)value != 0;
    }
#endif
    error = MPI_Comm_dup(data, &made.control);
    if (error == MPI_SUCCESS) {
        MPI_Comm_set_errhandler(made.control, MPI_ERRORS_RETURN);
        /* MPI gives the number of a communicator that is gone to a new one. A control message that nobody has taken
         * must not appear there: hence a tag that the old one hardly had. */
        made.control_tag = (int)((uint64_t)(MPI_Wtime() * 1e9) % (uint64_t)made.max_tag);
        call = "MPI_Bcast";
        error = MPI_Bcast(&made.control_tag, 1, MPI_INT, 0, made.control);
    }
    if (error == MPI_SUCCESS) {
        *out_comm = (weir_mpi_comm *)malloc(sizeof made);
        if (*out_comm != NULL) {
            **out_comm = made;
            return WEIR_OK;
        }
        status = report != NULL ? weir_mpi_no_memory(report) : WEIR_RESOURCE_EXHAUSTED;
    } else if (report != NULL) {
        status = weir_mpi_failed(report, call, -1, error);
    }
    if (made.control != MPI_COMM_NULL) MPI_Comm_free(&made.control);
    MPI_Comm_free(&made.data);
    return status;
}

static inline weir_status weir_mpi_duplicate(void *ctx, void **out_ctx) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx, *made = NULL;
    MPI_Comm data = MPI_COMM_NULL;
    weir_status status;
    const int error = MPI_Comm_dup(comm->data, &data);
    *out_ctx = NULL;
    if (error != MPI_SUCCESS) return weir_mpi_failed(comm, "MPI_Comm_dup", -1, error);
    status = weir_mpi_make(data, comm, &made);
    *out_ctx = made;
    return status;
}

static inline weir_status weir_mpi_split(void *ctx, int32_t color, int32_t key, void **out_ctx) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx, *made = NULL;
    MPI_Comm data = MPI_COMM_NULL;
    weir_status status;
    const int error = MPI_Comm_split(comm->data, color < 0 ? MPI_UNDEFINED : color, key, &data);
    *out_ctx = NULL;
    if (error != MPI_SUCCESS) return weir_mpi_failed(comm, "MPI_Comm_split", -1, error);
    if (data == MPI_COMM_NULL) return WEIR_OK;
    status = weir_mpi_make(data, comm, &made);
    *out_ctx = made;
    return status;
}

/* Nothing may be called: MPI forbids to cancel collectives, and to free their requests. Nor is `data` revoked yet, or
 * other ranks would hear that before they hear why. */
static inline void weir_mpi_abort(void *ctx) {
    ((weir_mpi_comm *)ctx)->aborted = 1;
}

#ifdef WEIR_MPI_ULFM
static inline weir_status weir_mpi_recover(void *ctx, void **out_ctx) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx, *made = NULL;
    MPI_Comm from = comm->data;
    int attempts;
    *out_ctx = NULL;
    MPIX_Comm_revoke(from); /* ranks that wait in it still come here then */
    for (attempts = 0; attempts <= comm->size; attempts++) {
        MPI_Comm left = MPI_COMM_NULL, data = MPI_COMM_NULL;
        weir_status status = WEIR_UNAVAILABLE;
        int everybody = 0;
        int error = MPIX_Comm_shrink(from, &left);
        if (error != MPI_SUCCESS) return weir_mpi_failed(comm, "MPIX_Comm_shrink", -1, error);
        MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN);
        error = MPI_Comm_dup(left, &data);
        if (error == MPI_SUCCESS) {
            status = weir_mpi_make(data, comm, &made);
        } else {
            status = weir_mpi_failed(comm, "MPI_Comm_dup", -1, error);
        }
        /* Another rank may have died meanwhile, and only some have noticed. */
        everybody = status == WEIR_OK;
        error = MPIX_Comm_agree(left, &everybody);
        if (error == MPI_SUCCESS && everybody) {
            MPI_Comm_free(&left);
            *out_ctx = made;
            return WEIR_OK;
        }
        if (made != NULL) {
            MPIX_Comm_revoke(made->data);
            MPIX_Comm_revoke(made->control);
            free(made);
            made = NULL;
        }
        if (status == WEIR_RESOURCE_EXHAUSTED) return status;
        MPIX_Comm_revoke(left);
        from = left;
    }
    return weir_mpi_unable(comm, WEIR_UNAVAILABLE, "MPIX_Comm_shrink", "ranks go on dying");
}
#endif

static inline void weir_mpi_last_error(void *ctx, int32_t *out_rank, char *text, size_t capacity) {
    const weir_mpi_comm *comm = (const weir_mpi_comm *)ctx;
    size_t length = strlen(comm->text);
    *out_rank = comm->failed_rank;
    if (capacity == 0) return;
    if (length >= capacity) length = capacity - 1;
    memcpy(text, comm->text, length);
    text[length] = '\0';
}

static inline void weir_mpi_release(void *ctx) {
    weir_mpi_comm *comm = (weir_mpi_comm *)ctx;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) {
        weir_mpi_collect(comm);
        /* The number of a communicator that others still send to must not be given to a new one. */
        if (comm->aborted || comm->open != 0 || comm->first != NULL) return;
        MPI_Comm_free(&comm->control);
        MPI_Comm_free(&comm->data);
    }
    while (comm->idle != NULL) {
        weir_mpi_request *request = comm->idle;
        comm->idle = request->next;
        free(request);
    }
    while (comm->spare != NULL) {
        weir_mpi_message *message = comm->spare;
        comm->spare = message->next;
        free(message);
    }
    free(comm);
}

/* The vtable and its context, for those who call weir_comm_create themselves: release frees the context. Collective,
 * and it blocks. *out_ctx is NULL on failure. Errors as below. */
static inline weir_status weir_mpi_vtable_create(MPI_Comm mpi, weir_comm_vtable *out_vtable, void **out_ctx) {
    weir_mpi_comm *made = NULL;
    weir_status status;
    MPI_Comm data = MPI_COMM_NULL;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    int flag = 0, threads = MPI_THREAD_SINGLE, error;
    *out_ctx = NULL;
    memset(out_vtable, 0, sizeof *out_vtable);
    MPI_Initialized(&flag);
    if (!flag) return WEIR_FAILED_PRECONDITION;
    MPI_Finalized(&flag);
    if (flag) return WEIR_FAILED_PRECONDITION;
    if (mpi == MPI_COMM_NULL) return WEIR_INVALID_ARGUMENT;
    MPI_Comm_test_inter(mpi, &flag);
    if (flag) return WEIR_INVALID_ARGUMENT;
    MPI_Query_thread(&threads);
    MPI_Is_thread_main(&flag);
    if (!flag && threads != MPI_THREAD_MULTIPLE && threads != MPI_THREAD_SERIALIZED) return WEIR_FAILED_PRECONDITION;
    /* A failure must be returned here too, and the host's own handler be as it was. */
    MPI_Comm_get_errhandler(mpi, &handler);
    MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    error = MPI_Comm_dup(mpi, &data);
    MPI_Comm_set_errhandler(mpi, handler);
    MPI_Errhandler_free(&handler);
    if (error != MPI_SUCCESS) return WEIR_RESOURCE_EXHAUSTED;
    status = weir_mpi_make(data, NULL, &made);
    if (status != WEIR_OK) return status;
    out_vtable->struct_size = sizeof *out_vtable;
    out_vtable->get_info = weir_mpi_get_info;
    out_vtable->start = weir_mpi_start;
    out_vtable->test = weir_mpi_test;
    out_vtable->control_send = weir_mpi_control_send;
    out_vtable->control_poll = weir_mpi_control_poll;
    out_vtable->duplicate = weir_mpi_duplicate;
    out_vtable->split = weir_mpi_split;
    out_vtable->abort = weir_mpi_abort;
#ifdef WEIR_MPI_ULFM
    if (made->recovers) out_vtable->recover = weir_mpi_recover;
#endif
    out_vtable->last_error = weir_mpi_last_error;
    out_vtable->release = weir_mpi_release;
    *out_ctx = made;
    return WEIR_OK;
}

/* Makes a communicator of all ranks of `mpi`. Collective over them, and it blocks. The caller owns one reference to
 * *out_comm. Errors: FAILED_PRECONDITION if MPI is not initialised or already finalised, or in a thread that may not
 * call it; INVALID_ARGUMENT if `mpi` is MPI_COMM_NULL or an intercommunicator; RESOURCE_EXHAUSTED; and as
 * weir_comm_create. */
static inline weir_status weir_mpi_comm_create(MPI_Comm mpi, const weir_comm_options *options, weir_comm **out_comm) {
    weir_comm_vtable vtable;
    void *ctx;
    weir_status status = weir_mpi_vtable_create(mpi, &vtable, &ctx);
    if (status != WEIR_OK) {
        if (out_comm != NULL) *out_comm = NULL;
        return status;
    }
    status = weir_comm_create(&vtable, ctx, options, out_comm);
    if (status != WEIR_OK) weir_mpi_release(ctx);
    return status;
}

#ifdef __cplusplus
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#endif

#endif /* WEIR_ADAPTERS_MPI_H */
