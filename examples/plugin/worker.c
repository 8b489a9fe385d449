/* The device: a process of its own, which has the memory in front of it and computes with plain loops. It ends when its
 * connections do.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir.h>

#include "protocol.h"

static char *memory;

static void *data(const struct remote_tensor *tensor) {
    return memory + tensor->offset;
}

static int64_t elements(const struct remote_tensor *tensor) {
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) count *= tensor->dims[i];
    return count;
}

static int32_t add(const struct remote_tensor *t) {
    const float *a = data(&t[0]), *b = data(&t[1]);
    float *sum = data(&t[2]);
    int64_t count = elements(&t[2]);
    if (elements(&t[0]) != count || elements(&t[1]) != count) return WEIR_UNIMPLEMENTED; /* no broadcasting */
    for (int64_t i = 0; i < count; i++) sum[i] = a[i] + b[i];
    return WEIR_OK;
}

static int32_t relu(const struct remote_tensor *t) {
    const float *x = data(&t[0]);
    float *y = data(&t[1]);
    for (int64_t i = 0; i < elements(&t[1]); i++) y[i] = x[i] < 0 ? 0 : x[i];
    return WEIR_OK;
}

static int32_t matmul(const struct remote_request *request) {
    const struct remote_tensor *t = request->tensors, *out = &t[request->num_tensors - 1];
    if (t[0].rank != 2 || t[1].rank != 2) return WEIR_UNIMPLEMENTED;
    int64_t rows = t[0].dims[0], inner = t[0].dims[1], columns = t[1].dims[1];
    const float *a = data(&t[0]), *b = data(&t[1]), *bias = request->bias ? data(&t[2]) : NULL;
    float *c = data(out);
    for (int64_t i = 0; i < rows; i++, c += columns) {
        for (int64_t j = 0; j < columns; j++) c[j] = bias != NULL ? bias[j] : 0;
        for (int64_t k = 0; k < inner; k++) {
            for (int64_t j = 0; j < columns; j++) c[j] += a[i * inner + k] * b[k * columns + j];
        }
        for (int64_t j = 0; request->relu && j < columns; j++) c[j] = c[j] < 0 ? 0 : c[j];
    }
    return WEIR_OK;
}

static int32_t softmax(const struct remote_tensor *t) {
    int64_t columns = t[0].rank == 0 ? 1 : t[0].dims[t[0].rank - 1];
    int64_t rows = columns == 0 ? 0 : elements(&t[0]) / columns;
    const float *x = data(&t[0]);
    float *y = data(&t[1]);
    for (int64_t i = 0; i < rows; i++, x += columns, y += columns) {
        float greatest = x[0], sum = 0;
        for (int64_t j = 1; j < columns; j++) greatest = x[j] > greatest ? x[j] : greatest;
        for (int64_t j = 0; j < columns; j++) sum += y[j] = expf(x[j] - greatest);
        for (int64_t j = 0; j < columns; j++) y[j] /= sum;
    }
    return WEIR_OK;
}

static int32_t argmax(const struct remote_tensor *t) {
    int64_t columns = t[0].rank == 0 ? 1 : t[0].dims[t[0].rank - 1];
    const float *x = data(&t[0]);
    int32_t *greatest = data(&t[1]);
    for (int64_t i = 0; i < elements(&t[1]); i++, x += columns) {
        greatest[i] = 0;
        for (int64_t j = 1; j < columns; j++) greatest[i] = x[j] > x[greatest[i]] ? (int32_t)j : greatest[i];
    }
    return WEIR_OK;
}

static int32_t serve(const struct remote_request *request) {
    switch (request->operation) {
    case REMOTE_COPY: memmove(memory + request->to, memory + request->from, request->bytes); return WEIR_OK;
    case REMOTE_FILL: memset(memory + request->to, (int)request->value, request->bytes); return WEIR_OK;
    case REMOTE_ADD: return add(request->tensors);
    case REMOTE_RELU: return relu(request->tensors);
    case REMOTE_MATMUL: return matmul(request);
    case REMOTE_SOFTMAX: return softmax(request->tensors);
    case REMOTE_ARGMAX: return argmax(request->tensors);
    default: return WEIR_ABORTED;
    }
}

static void *serve_connection(void *arg) {
    int connection = *(int *)arg;
    struct remote_request request;
    while (recv(connection, &request, sizeof request, MSG_WAITALL) == (ssize_t)sizeof request) {
        struct remote_answer answer = {serve(&request)};
        if (send(connection, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer) break;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[REMOTE_CONNECTIONS];
    int connections[REMOTE_CONNECTIONS];
    memory = mmap(NULL, REMOTE_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, REMOTE_MEMORY_FD, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "remote_worker is started by the plug-in, which gives it its memory\n");
        return 1;
    }
    for (int i = 0; i < REMOTE_CONNECTIONS; i++) {
        connections[i] = REMOTE_FIRST_FD + i;
        if (pthread_create(&threads[i], NULL, serve_connection, &connections[i]) != 0) return 1;
    }
    for (int i = 0; i < REMOTE_CONNECTIONS; i++) pthread_join(threads[i], NULL);
    return 0;
}
