/* What the plug-in and its worker process say to one another: one request at a time on each connection, one answer to each.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REMOTE_PROTOCOL_H
#define REMOTE_PROTOCOL_H

#include <stdint.h>

enum {
    REMOTE_CONNECTIONS = 4,                   /* that the worker serves at once, each by a thread */
    REMOTE_MEMORY_FD = 3,                     /* the worker's file with the device's memory */
    REMOTE_FIRST_FD = 4,                      /* its connections */
    REMOTE_MAX_TENSORS = 4,
    REMOTE_MAX_RANK = 8,
};

#define REMOTE_MEMORY_BYTES (UINT64_C(256) << 20)

enum remote_operation { REMOTE_COPY, REMOTE_FILL, REMOTE_ADD, REMOTE_RELU, REMOTE_MATMUL, REMOTE_SOFTMAX, REMOTE_ARGMAX, REMOTE_FAIL };

/* A dense tensor of four-byte elements somewhere in the device's memory. */
struct remote_tensor {
    uint64_t offset;
    uint32_t dtype;
    uint32_t rank;
    int64_t dims[REMOTE_MAX_RANK];
};

struct remote_request {
    uint32_t operation;
    uint32_t num_tensors; /* inputs, and the output last */
    uint64_t to, from, bytes; /* of copies and fills */
    uint32_t value;
    uint32_t bias, relu; /* of matrix products */
    uint32_t reserved;
    struct remote_tensor tensors[REMOTE_MAX_TENSORS];
};

/* 0, or a weir_status. */
struct remote_answer {
    int32_t status;
};

#endif
