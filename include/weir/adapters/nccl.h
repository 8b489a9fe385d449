/* Ranks of NCCL as a weir communicator, whose operations run in the memory and on the streams of CUDA devices. C99 or
 * later, C++11 or later, with POSIX (-std=c99 needs -D_POSIX_C_SOURCE=200809L), and -ldl where libc has no dlopen.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     weir_nccl_options nccl = {0};
 *     weir_mpi_vtable_create(MPI_COMM_WORLD, &mpi, &nccl.host_ctx);
 *     nccl.host = &mpi;
 *     weir_status status = weir_nccl_comm_create(&nccl, NULL, &comm);
 *
 * An operation on the engine cuda:i of this communicator is one call of NCCL: no copy, no wait of the host's. What is
 * on an engine of the CPU, messages between the ranks about failures, weir_program_agree and weir_comm_recover go over
 * `host`, a transport among the same ranks (weir/adapters/mpi.h, or your own). Without it there are none of these: then
 * a rank hears of another one's end by its limit, or by what NCCL notices.
 *
 * NCCL 2.14 or later is opened at run time; there is no need for its header. Its communicator does not block
 * (config.blocking = 0), so that it can be given up: weir_comm_abort, a limit or a failure end with ncclCommAbort, and
 * the streams go on.
 *
 * Each rank is a CUDA device of its own. A rank creates its communicator while its device is current (cudaSetDevice, or
 * a context of the driver's), all ranks at about the same time.
 *
 * Limits, which are NCCL's:
 *  - All ranks submit the operations of all communicators of a device in one order. weir keeps to it in a graph;
 *    between streams, and between runs at once, it is yours.
 *  - Its sums have no fixed order, and the NaN of its minima and maxima are its own.
 *  - It reduces no booleans, and has no barrier and no tags.
 */

#ifndef WEIR_ADAPTERS_NCCL_H
#define WEIR_ADAPTERS_NCCL_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../comm.h"
#include "../device.h"

#ifdef __cplusplus
#if defined(__GNUC__)
/* This header is for C as well, so its casts are those of C. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
extern "C" {
#endif

/* NCCL's results, types and reductions, as nccl.h numbers them. */
enum {
    WEIR_NCCL_SUCCESS = 0,
    WEIR_NCCL_CUDA_ERROR = 1,
    WEIR_NCCL_SYSTEM_ERROR = 2,
    WEIR_NCCL_INTERNAL_ERROR = 3,
    WEIR_NCCL_INVALID_ARGUMENT = 4,
    WEIR_NCCL_INVALID_USAGE = 5,
    WEIR_NCCL_REMOTE_ERROR = 6,
    WEIR_NCCL_IN_PROGRESS = 7
};

/* How long a call waits for NCCL to connect the ranks, unless the options say more. */
#define WEIR_NCCL_LIMIT_NS UINT64_C(60000000000)
/* It asks so often. */
#define WEIR_NCCL_PAUSE_NS 20000

/* What names a communicator before it is there: ncclUniqueId. */
typedef struct weir_nccl_id {
    char internal[128];
} weir_nccl_id;

/* The beginning of ncclConfig_t, as of NCCL 2.14. Newer ones take it for what it is by size and version. */
typedef struct weir_nccl_config {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
} weir_nccl_config;

/* The functions of NCCL. */
typedef struct weir_nccl_functions {
    int (*get_version)(int *version);
    int (*get_unique_id)(weir_nccl_id *id);
    int (*init)(void **comm, int size, weir_nccl_id id, int rank, weir_nccl_config *config);
    int (*device)(const void *comm, int *device);
    int (*async_error)(void *comm, int *result);
    int (*abort)(void *comm);
    const char *(*last_error)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op, void *comm, void *stream);
    int (*reduce)(const void *send, void *recv, size_t count, int type, int op, int root, void *comm, void *stream);
    int (*broadcast)(const void *send, void *recv, size_t count, int type, int root, void *comm, void *stream);
    int (*all_gather)(const void *send, void *recv, size_t count, int type, void *comm, void *stream);
    int (*reduce_scatter)(const void *send, void *recv, size_t count, int type, int op, void *comm, void *stream);
    int (*send)(const void *send, size_t count, int type, int peer, void *comm, void *stream);
    int (*recv)(void *recv, size_t count, int type, int peer, void *comm, void *stream);
} weir_nccl_functions;

/* How a communicator is made. All-zero members are the defaults. */
typedef struct weir_nccl_options {
    const char *library;          /* NULL = libnccl.so.2 */
    const weir_comm_vtable *host; /* among the same ranks; NULL = none. Copied */
    void *host_ctx;               /* passes to the communicator, on success alone */
    const weir_nccl_id *id;       /* from weir_nccl_id_create, the same on all ranks; not needed with `host` */
    int32_t rank;                 /* of this rank, and of how many; not needed with `host` */
    int32_t size;
    uint64_t limit_ns;            /* for connecting the ranks, also by their first operations; 0 = 60 s */
    char *text;                   /* gets the reason of a failure; may be NULL */
    size_t text_capacity;
} weir_nccl_options;

/* One communicator. Called in one thread at a time. */
typedef struct weir_nccl_comm {
    weir_nccl_functions nccl;
    char *library_name; /* NULL = the usual one */
    void *comm;         /* NULL once it is given up */
    int device;
    int rank;
    int size;
    uint64_t limit_ns;
    int has_host;
    weir_comm_vtable host;
    void *host_ctx;
    int is_hosts_failure; /* the last failure is that of `host` */
    char text[320];
} weir_nccl_comm;

static inline uint64_t weir_nccl_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline void weir_nccl_pause(void) {
    struct timespec pause;
    pause.tv_sec = 0;
    pause.tv_nsec = WEIR_NCCL_PAUSE_NS;
    nanosleep(&pause, NULL);
}

/* Finds a function; a function's address is no object's for C, so it is copied. */
static inline int weir_nccl_find(void *library, const char *name, void *to) {
    void *const found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

/* Opens NCCL, for good: threads of its own may be in it, also after the call that has started them. On failure `text`
 * says what is not there. */
static inline int weir_nccl_load(const char *name, weir_nccl_functions *out, char *text, size_t capacity) {
    const char *const path = name != NULL ? name : "libnccl.so.2";
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *const why = dlerror();
        snprintf(text, capacity, "NCCL cannot be opened as '%s': %s", path, why != NULL ? why : "no reason is known");
        return 0;
    }
#define WEIR_NCCL_FIND(member, function)                                                                               \
    do {                                                                                                               \
        if (!weir_nccl_find(library, function, &out->member)) {                                                        \
            snprintf(text, capacity, "NCCL, opened as '%s', has no %s", path, function);                               \
            return 0;                                                                                                  \
        }                                                                                                              \
    } while (0)
    WEIR_NCCL_FIND(get_version, "ncclGetVersion");
    WEIR_NCCL_FIND(get_unique_id, "ncclGetUniqueId");
    WEIR_NCCL_FIND(init, "ncclCommInitRankConfig");
    WEIR_NCCL_FIND(device, "ncclCommCuDevice");
    WEIR_NCCL_FIND(async_error, "ncclCommGetAsyncError");
    WEIR_NCCL_FIND(abort, "ncclCommAbort");
    WEIR_NCCL_FIND(last_error, "ncclGetLastError");
    WEIR_NCCL_FIND(group_start, "ncclGroupStart");
    WEIR_NCCL_FIND(group_end, "ncclGroupEnd");
    WEIR_NCCL_FIND(all_reduce, "ncclAllReduce");
    WEIR_NCCL_FIND(reduce, "ncclReduce");
    WEIR_NCCL_FIND(broadcast, "ncclBroadcast");
    WEIR_NCCL_FIND(all_gather, "ncclAllGather");
    WEIR_NCCL_FIND(reduce_scatter, "ncclReduceScatter");
    WEIR_NCCL_FIND(send, "ncclSend");
    WEIR_NCCL_FIND(recv, "ncclRecv");
#undef WEIR_NCCL_FIND
    return 1;
}

/* Keeps the text of a failure. */
static inline weir_status weir_nccl_failed(weir_nccl_comm *comm, const char *call, int result) {
    const char *why = comm->nccl.last_error(NULL);
    comm->is_hosts_failure = 0;
    snprintf(comm->text, sizeof comm->text, "%s: NCCL's result %d (%.200s)", call, result, why != NULL ? why : "");
    switch (result) {
    case WEIR_NCCL_CUDA_ERROR: return WEIR_DEVICE_LOST;
    case WEIR_NCCL_INVALID_ARGUMENT:
    case WEIR_NCCL_INVALID_USAGE: return WEIR_INVALID_ARGUMENT;
    case WEIR_NCCL_SYSTEM_ERROR:
    case WEIR_NCCL_REMOTE_ERROR: return WEIR_UNAVAILABLE;
    case WEIR_NCCL_INTERNAL_ERROR: return WEIR_INTERNAL;
    default: return WEIR_UNKNOWN;
    }
}

static inline weir_status weir_nccl_unable(weir_nccl_comm *comm, weir_status status, const char *call,
                                           const char *why) {
    comm->is_hosts_failure = 0;
    snprintf(comm->text, sizeof comm->text, "%s: %.240s", call, why);
    return status;
}

/* A failure of `host`, whose text it keeps itself. */
static inline weir_status weir_nccl_host(weir_nccl_comm *comm, weir_status status) {
    if (status != WEIR_OK) comm->is_hosts_failure = 1;
    return status;
}

/* Waits until NCCL has done what it was told: nothing may follow in a stream before that. */
static inline weir_status weir_nccl_settle(weir_nccl_comm *comm, const char *call, int result) {
    const uint64_t begin = weir_nccl_now_ns();
    while (result == WEIR_NCCL_IN_PROGRESS) {
        int state = WEIR_NCCL_SUCCESS;
        const int asked = comm->nccl.async_error(comm->comm, &state);
        result = asked != WEIR_NCCL_SUCCESS ? asked : state;
        if (result != WEIR_NCCL_IN_PROGRESS) break;
        if (weir_nccl_now_ns() - begin >= comm->limit_ns) {
            return weir_nccl_unable(comm, WEIR_DEADLINE_EXCEEDED, call, "NCCL has not connected the ranks in time");
        }
        weir_nccl_pause();
    }
    return result == WEIR_NCCL_SUCCESS ? WEIR_OK : weir_nccl_failed(comm, call, result);
}

/* ---- What weir calls --------------------------------------------------------------------------------------------- */

static inline weir_status weir_nccl_get_info(void *ctx, weir_comm_transport_info *out_info) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    char host[sizeof out_info->name];
    int version = 0, op;
    host[0] = '\0';
    out_info->flags = WEIR_COMM_ABORT_RELEASES;
    if (comm->has_host) {
        const weir_status status = comm->host.get_info(comm->host_ctx, out_info);
        if (status != WEIR_OK) return weir_nccl_host(comm, status);
        memcpy(host, out_info->name, sizeof host);
        host[sizeof host - 1] = '\0';
    }
    out_info->rank = comm->rank;
    out_info->size = comm->size;
    out_info->flags |= WEIR_COMM_NEEDS_PROGRESS; /* asks NCCL for failures */
    out_info->engine_kind = WEIR_ENGINE_CUDA;
    out_info->engine_index = comm->device;
    for (op = WEIR_COMM_SEND; op <= WEIR_COMM_ALL_TO_ALL; op++) out_info->device_ops |= UINT64_C(1) << op;
    out_info->device_dtypes = UINT64_C(1) << WEIR_F32 | UINT64_C(1) << WEIR_F16 | UINT64_C(1) << WEIR_BF16 |
                              UINT64_C(1) << WEIR_S8 | UINT64_C(1) << WEIR_U8 | UINT64_C(1) << WEIR_S32 |
                              UINT64_C(1) << WEIR_S64;
    out_info->device_reductions = UINT64_C(1) << WEIR_COMM_SUM | UINT64_C(1) << WEIR_COMM_PRODUCT |
                                  UINT64_C(1) << WEIR_COMM_MIN | UINT64_C(1) << WEIR_COMM_MAX;
    comm->nccl.get_version(&version);
    snprintf(out_info->name, sizeof out_info->name, "NCCL %d.%d.%d%s%.40s", version / 10000,
             version % 10000 / 100, version % 100, host[0] != '\0' ? ", " : "", host);
    return WEIR_OK;
}

static inline weir_status weir_nccl_start(void *ctx, const weir_comm_operation *operation, void **out_request) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    return weir_nccl_host(comm, comm->host.start(comm->host_ctx, operation, out_request));
}

static inline weir_status weir_nccl_test(void *ctx, void *request, int32_t *out_done) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    return weir_nccl_host(comm, comm->host.test(comm->host_ctx, request, out_done));
}

static inline weir_status weir_nccl_progress(void *ctx) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    int state = WEIR_NCCL_SUCCESS, result;
    if (comm->has_host && comm->host.progress != NULL) {
        const weir_status status = comm->host.progress(comm->host_ctx);
        if (status != WEIR_OK) return weir_nccl_host(comm, status);
    }
    if (comm->comm == NULL) return WEIR_OK;
    result = comm->nccl.async_error(comm->comm, &state);
    if (result != WEIR_NCCL_SUCCESS) return weir_nccl_failed(comm, "ncclCommGetAsyncError", result);
    if (state == WEIR_NCCL_SUCCESS || state == WEIR_NCCL_IN_PROGRESS) return WEIR_OK;
    return weir_nccl_failed(comm, "ncclCommGetAsyncError", state);
}

static inline weir_status weir_nccl_control_send(void *ctx, int32_t peer, const void *message) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    return weir_nccl_host(comm, comm->host.control_send(comm->host_ctx, peer, message));
}

static inline weir_status weir_nccl_control_poll(void *ctx, int32_t *out_peer, void *out_message, int32_t *out_got) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    return weir_nccl_host(comm, comm->host.control_poll(comm->host_ctx, out_peer, out_message, out_got));
}

static inline void weir_nccl_abort(void *ctx) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    if (comm->comm != NULL) comm->nccl.abort(comm->comm);
    comm->comm = NULL;
    if (comm->has_host && comm->host.abort != NULL) comm->host.abort(comm->host_ctx);
}

static inline void weir_nccl_last_error(void *ctx, int32_t *out_rank, char *text, size_t capacity) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    if (comm->is_hosts_failure && comm->host.last_error != NULL) {
        comm->host.last_error(comm->host_ctx, out_rank, text, capacity);
        return;
    }
    *out_rank = -1;
    snprintf(text, capacity, "%s", comm->is_hosts_failure ? "the transport of the host's memory" : comm->text);
}

static inline void weir_nccl_free(weir_nccl_comm *comm) {
    free(comm->library_name);
    free(comm);
}

static inline void weir_nccl_release(void *ctx) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    if (comm->comm != NULL) {
        /* Without the other ranks, which may be gone. */
        comm->nccl.abort(comm->comm);
    }
    if (comm->has_host && comm->host.release != NULL) comm->host.release(comm->host_ctx);
    weir_nccl_free(comm);
}

static inline int weir_nccl_type(weir_dtype dtype) {
    switch (dtype) {
    case WEIR_U8: return 1;
    case WEIR_S32: return 2;
    case WEIR_S64: return 4;
    case WEIR_F16: return 6;
    case WEIR_F32: return 7;
    case WEIR_BF16: return 9;
    default: return 0; /* bytes */
    }
}

static inline int weir_nccl_op(weir_comm_reduction reduction) {
    switch (reduction) {
    case WEIR_COMM_PRODUCT: return 1;
    case WEIR_COMM_MAX: return 2;
    case WEIR_COMM_MIN: return 3;
    default: return 0;
    }
}

/* Each rank sends a part to each other one: NCCL has this as a group of messages. */
static inline int weir_nccl_all_to_all(const weir_nccl_comm *comm, const weir_comm_operation *operation, size_t bytes,
                                       void *stream) {
    const char *send = (const char *)operation->send;
    char *recv = (char *)operation->recv;
    int peer, result = WEIR_NCCL_SUCCESS;
    for (peer = 0; peer < comm->size; peer++) {
        const size_t at = (size_t)peer * bytes;
        result = comm->nccl.send(send + at, bytes, 0, peer, comm->comm, stream);
        if (result != WEIR_NCCL_SUCCESS && result != WEIR_NCCL_IN_PROGRESS) break;
        result = comm->nccl.recv(recv + at, bytes, 0, peer, comm->comm, stream);
        if (result != WEIR_NCCL_SUCCESS && result != WEIR_NCCL_IN_PROGRESS) break;
    }
    return result;
}

static inline int weir_nccl_submit(const weir_nccl_comm *comm, const weir_comm_operation *operation, void *stream,
                                   const char **out_call) {
    const weir_nccl_functions *nccl = &comm->nccl;
    const void *send = operation->send;
    void *recv = operation->recv;
    const size_t count = (size_t)operation->count, bytes = count * operation->element_bytes;
    const int type = weir_nccl_type(operation->dtype), op = weir_nccl_op(operation->reduction);
    switch (operation->op) {
    case WEIR_COMM_SEND:
        *out_call = "ncclSend";
        return nccl->send(send, bytes, 0, operation->peer, comm->comm, stream);
    case WEIR_COMM_RECV:
        *out_call = "ncclRecv";
        return nccl->recv(recv, bytes, 0, operation->peer, comm->comm, stream);
    case WEIR_COMM_BROADCAST: {
        void *const own = operation->peer == comm->rank ? (void *)(uintptr_t)send : recv;
        *out_call = "ncclBroadcast";
        return nccl->broadcast(own, own, bytes, 0, operation->peer, comm->comm, stream);
    }
    case WEIR_COMM_REDUCE:
        *out_call = "ncclReduce";
        return nccl->reduce(send, recv, count, type, op, operation->peer, comm->comm, stream);
    case WEIR_COMM_ALL_REDUCE:
        *out_call = "ncclAllReduce";
        return nccl->all_reduce(send, recv, count, type, op, comm->comm, stream);
    case WEIR_COMM_ALL_GATHER:
        *out_call = "ncclAllGather";
        return nccl->all_gather(send, recv, bytes, 0, comm->comm, stream);
    case WEIR_COMM_REDUCE_SCATTER:
        *out_call = "ncclReduceScatter";
        return nccl->reduce_scatter(send, recv, count, type, op, comm->comm, stream);
    case WEIR_COMM_ALL_TO_ALL:
        *out_call = "ncclSend and ncclRecv";
        return weir_nccl_all_to_all(comm, operation, bytes, stream);
    default: *out_call = "enqueue"; return WEIR_NCCL_INVALID_USAGE;
    }
}

static inline weir_status weir_nccl_enqueue(void *ctx, const weir_comm_operation *operations, size_t num_operations,
                                            uint64_t stream) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    const int is_group = num_operations > 1 || operations[0].op == WEIR_COMM_ALL_TO_ALL;
    void *const cuda_stream = (void *)(uintptr_t)stream;
    const char *call = "ncclGroupStart";
    int result = is_group ? comm->nccl.group_start() : WEIR_NCCL_SUCCESS;
    size_t i;
    if (result != WEIR_NCCL_SUCCESS) return weir_nccl_failed(comm, call, result);
    for (i = 0; i < num_operations; i++) {
        result = weir_nccl_submit(comm, &operations[i], cuda_stream, &call);
        if (result != WEIR_NCCL_SUCCESS && result != WEIR_NCCL_IN_PROGRESS) break;
    }
    if (is_group) {
        /* Also after a failure: the thread is in the group until then. */
        const int ended = comm->nccl.group_end();
        if (result == WEIR_NCCL_SUCCESS || result == WEIR_NCCL_IN_PROGRESS) result = ended;
    }
    return weir_nccl_settle(comm, call, result);
}

/* ---- How communicators are made ---------------------------------------------------------------------------------- */

/* One of its own over NCCL's id, with `host` as its other transport, which passes to it on success alone. */
static inline weir_status weir_nccl_make(const char *library, const weir_nccl_id *id, int rank, int size,
                                         uint64_t limit_ns, const weir_comm_vtable *host, void *host_ctx,
                                         weir_nccl_comm **out, char *text, size_t capacity) {
    weir_nccl_config config;
    weir_nccl_comm *comm = (weir_nccl_comm *)calloc(1, sizeof *comm);
    weir_status status;
    if (comm == NULL) return WEIR_RESOURCE_EXHAUSTED;
    if (library != NULL) {
        comm->library_name = (char *)malloc(strlen(library) + 1);
        if (comm->library_name == NULL) {
            free(comm);
            return WEIR_RESOURCE_EXHAUSTED;
        }
        strcpy(comm->library_name, library);
    }
    if (!weir_nccl_load(library, &comm->nccl, text, capacity)) {
        weir_nccl_free(comm);
        return WEIR_UNIMPLEMENTED;
    }
    comm->rank = rank;
    comm->size = size;
    comm->limit_ns = limit_ns != 0 ? limit_ns : WEIR_NCCL_LIMIT_NS;
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.magic = 0xcafebeefu;
    config.version = 21400;
    config.blocking = 0;
    {
        int result = comm->nccl.init(&comm->comm, size, *id, rank, &config);
        if (comm->comm == NULL && result == WEIR_NCCL_IN_PROGRESS) result = WEIR_NCCL_INTERNAL_ERROR;
        status = weir_nccl_settle(comm, "ncclCommInitRankConfig", result);
        if (status == WEIR_OK) {
            result = comm->nccl.device(comm->comm, &comm->device);
            if (result != WEIR_NCCL_SUCCESS) status = weir_nccl_failed(comm, "ncclCommCuDevice", result);
        }
    }
    if (status != WEIR_OK) {
        snprintf(text, capacity, "%s", comm->text);
        if (comm->comm != NULL) comm->nccl.abort(comm->comm);
        weir_nccl_free(comm);
        return status;
    }
    if (host != NULL) {
        comm->has_host = 1;
        comm->host = *host;
        comm->host_ctx = host_ctx;
    }
    *out = comm;
    return WEIR_OK;
}

/* Rank 0's id on all ranks of `host`, within the limit. May wait. */
static inline weir_status weir_nccl_share_id(const weir_comm_vtable *host, void *host_ctx, int rank, int size,
                                             uint64_t limit_ns, weir_nccl_id *id) {
    const uint64_t begin = weir_nccl_now_ns();
    weir_comm_operation operation;
    int peer;
    memset(&operation, 0, sizeof operation);
    operation.struct_size = sizeof operation;
    operation.op = rank == 0 ? WEIR_COMM_SEND : WEIR_COMM_RECV;
    operation.dtype = WEIR_U8;
    operation.count = sizeof *id;
    operation.element_bytes = 1;
    operation.tag = 32767;
    if (rank == 0) {
        operation.send = id;
    } else {
        operation.recv = id;
    }
    for (peer = 1; peer < size; peer++) {
        void *request = NULL;
        int32_t done = 0;
        weir_status status;
        if (rank != 0 && rank != peer) continue;
        operation.peer = rank == 0 ? peer : 0;
        status = host->start(host_ctx, &operation, &request);
        if (status != WEIR_OK) return status;
        for (;;) {
            status = host->test(host_ctx, request, &done);
            if (status != WEIR_OK) return status;
            if (done) break;
            if (weir_nccl_now_ns() - begin >= limit_ns) return WEIR_DEADLINE_EXCEEDED;
            weir_nccl_pause();
        }
    }
    return WEIR_OK;
}

static inline weir_status weir_nccl_over(const char *library, const weir_comm_vtable *host, void *host_ctx,
                                         uint64_t limit_ns, weir_nccl_comm **out, char *text, size_t capacity) {
    weir_comm_transport_info info;
    weir_nccl_functions nccl;
    weir_nccl_id id;
    weir_status status;
    int result = WEIR_NCCL_SUCCESS;
    const uint64_t limit = limit_ns != 0 ? limit_ns : WEIR_NCCL_LIMIT_NS;
    memset(&info, 0, sizeof info);
    memset(&id, 0, sizeof id);
    info.struct_size = sizeof info;
    status = host->get_info(host_ctx, &info);
    if (status != WEIR_OK) {
        snprintf(text, capacity, "get_info of the transport of the host's memory");
        return status;
    }
    if (info.rank == 0) {
        /* The others find the same. */
        if (!weir_nccl_load(library, &nccl, text, capacity)) return WEIR_UNIMPLEMENTED;
        result = nccl.get_unique_id(&id);
        if (result != WEIR_NCCL_SUCCESS) {
            snprintf(text, capacity, "ncclGetUniqueId: NCCL's result %d", result);
            return WEIR_UNAVAILABLE;
        }
    }
    status = weir_nccl_share_id(host, host_ctx, info.rank, info.size, limit, &id);
    if (status != WEIR_OK) {
        snprintf(text, capacity, "the id of NCCL did not come over the transport of the host's memory");
        return status;
    }
    return weir_nccl_make(library, &id, info.rank, info.size, limit_ns, host, host_ctx, out, text, capacity);
}

/* A transport over another one of `host`, which it releases if it fails. */
static inline weir_status weir_nccl_again(weir_nccl_comm *comm, weir_status made, void *host_ctx, void **out_ctx) {
    weir_nccl_comm *again = NULL;
    weir_status status = made;
    if (made != WEIR_OK) return weir_nccl_host(comm, made);
    if (host_ctx == NULL) return WEIR_OK;
    comm->is_hosts_failure = 0;
    status = weir_nccl_over(comm->library_name, &comm->host, host_ctx, comm->limit_ns, &again, comm->text,
                            sizeof comm->text);
    if (status == WEIR_OK) {
        *out_ctx = again;
    } else if (comm->host.release != NULL) {
        comm->host.release(host_ctx);
    }
    return status;
}

static inline weir_status weir_nccl_duplicate(void *ctx, void **out_ctx) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    void *host_ctx = NULL;
    const weir_status made = comm->host.duplicate(comm->host_ctx, &host_ctx);
    return weir_nccl_again(comm, made, host_ctx, out_ctx);
}

static inline weir_status weir_nccl_split(void *ctx, int32_t color, int32_t key, void **out_ctx) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    void *host_ctx = NULL;
    const weir_status made = comm->host.split(comm->host_ctx, color, key, &host_ctx);
    return weir_nccl_again(comm, made, host_ctx, out_ctx);
}

static inline weir_status weir_nccl_recover(void *ctx, void **out_ctx) {
    weir_nccl_comm *comm = (weir_nccl_comm *)ctx;
    void *host_ctx = NULL;
    const weir_status made = comm->host.recover(comm->host_ctx, &host_ctx);
    return weir_nccl_again(comm, made, host_ctx, out_ctx);
}

/* An id for a communicator, on one rank; the host passes it to the others. The library stays open until the process
 * ends. Errors: UNIMPLEMENTED (there is no NCCL, or an older one); UNAVAILABLE (NCCL has no id). Why, says
 * weir_last_error_message. */
static inline weir_status weir_nccl_id_create(const char *library, weir_nccl_id *out_id) {
    weir_nccl_functions nccl;
    char text[320];
    weir_status status = WEIR_UNIMPLEMENTED;
    if (weir_nccl_load(library, &nccl, text, sizeof text)) {
        const int result = nccl.get_unique_id(out_id);
        if (result == WEIR_NCCL_SUCCESS) return WEIR_OK;
        snprintf(text, sizeof text, "ncclGetUniqueId: NCCL's result %d", result);
        status = WEIR_UNAVAILABLE;
    }
    weir_last_error_set(status, "weir_nccl_id_create", text);
    return status;
}

/* The functions of a transport over NCCL and their context, for weir_comm_create and weir_comm_conformance. Collective,
 * and it may wait for the other ranks, up to the limit. Errors: INVALID_ARGUMENT; UNIMPLEMENTED (there is no NCCL, or an
 * older one); DEADLINE_EXCEEDED (not all ranks came); NCCL's. */
static inline weir_status weir_nccl_vtable_create(const weir_nccl_options *options, weir_comm_vtable *out_vtable,
                                                  void **out_ctx) {
    weir_nccl_comm *comm = NULL;
    weir_status status;
    char *text;
    size_t capacity;
    if (options == NULL || out_vtable == NULL || out_ctx == NULL) return WEIR_INVALID_ARGUMENT;
    text = options->text;
    capacity = text != NULL ? options->text_capacity : 0;
    if (capacity > 0) text[0] = '\0';
    *out_ctx = NULL;
    if (options->host == NULL && (options->id == NULL || options->size < 1 || options->rank < 0 ||
                                  options->rank >= options->size)) {
        snprintf(text, capacity, "neither `host`, nor `id` with `rank` and `size`");
        return WEIR_INVALID_ARGUMENT;
    }
    if (options->host != NULL) {
        status = weir_nccl_over(options->library, options->host, options->host_ctx, options->limit_ns, &comm, text,
                                capacity);
    } else {
        status = weir_nccl_make(options->library, options->id, options->rank, options->size, options->limit_ns, NULL,
                                NULL, &comm, text, capacity);
    }
    if (status != WEIR_OK) return status;
    memset(out_vtable, 0, sizeof *out_vtable);
    out_vtable->struct_size = sizeof *out_vtable;
    out_vtable->get_info = weir_nccl_get_info;
    out_vtable->progress = weir_nccl_progress;
    out_vtable->abort = weir_nccl_abort;
    out_vtable->last_error = weir_nccl_last_error;
    out_vtable->release = weir_nccl_release;
    out_vtable->enqueue = weir_nccl_enqueue;
    if (comm->has_host) {
        out_vtable->start = weir_nccl_start;
        out_vtable->test = weir_nccl_test;
        if (comm->host.control_send != NULL && comm->host.control_poll != NULL) {
            out_vtable->control_send = weir_nccl_control_send;
            out_vtable->control_poll = weir_nccl_control_poll;
        }
        if (comm->host.duplicate != NULL) out_vtable->duplicate = weir_nccl_duplicate;
        if (comm->host.split != NULL) out_vtable->split = weir_nccl_split;
        if (comm->host.recover != NULL) out_vtable->recover = weir_nccl_recover;
    }
    *out_ctx = comm;
    return WEIR_OK;
}

/* A communicator over NCCL. As weir_nccl_vtable_create and weir_comm_create. */
static inline weir_status weir_nccl_comm_create(const weir_nccl_options *options,
                                                const weir_comm_options *comm_options, weir_comm **out_comm) {
    weir_comm_vtable vtable;
    void *ctx = NULL;
    weir_status status;
    if (out_comm == NULL) return WEIR_INVALID_ARGUMENT;
    *out_comm = NULL;
    status = weir_nccl_vtable_create(options, &vtable, &ctx);
    if (status != WEIR_OK) return status;
    status = weir_comm_create(&vtable, ctx, comm_options, out_comm);
    if (status != WEIR_OK) {
        if (options->text != NULL) snprintf(options->text, options->text_capacity, "%s", weir_last_error_message());
        ((weir_nccl_comm *)ctx)->has_host = 0; /* the host's still */
        weir_nccl_release(ctx);
    }
    return status;
}

#ifdef __cplusplus
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#endif

#endif /* WEIR_ADAPTERS_NCCL_H */
