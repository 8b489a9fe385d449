/* A server in one thread: libuv's event loop takes requests and gives answers, and never waits for a run.
 *
 *     uv_digits [folder with digits.bin and weights.bin]
 *
 * Eight clients ask for one digit after the other, each on a stream of its own. A run is started with a notice: when it
 * is over, weir calls `answer_ready` in the thread that has ended it, one of this program's pool. That hands the client
 * over and wakes the loop by uv_async_send, the one function of libuv's that any thread may call. The loop's thread
 * looks at the answer and starts the client's next run. Meanwhile a timer ticks, which it could not if the loop slept
 * in a wait. Ends with status 1 if fewer than 97.5 % are read right, a request is not answered, or weir has started a
 * thread.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include <weir.h>
#include <weir/inspect.h>

#include "dataset.h"
#include "network.h"
#include "pool.h"
#include "weir_check.h"

#ifndef DIGITS_DATA_DIR
#define DIGITS_DATA_DIR "."
#endif

enum { CLIENTS = 8, THREADS = 2 };

static const double GOAL = 97.5; /* per cent */

struct server;

/* Who asks for one scan at a time. */
struct client {
    struct server *server;
    weir_stream *stream;
    weir_tensor *input, *outputs[NETWORK_OUTPUTS];
    uint32_t scan;        /* that it has asked for */
    weir_status status;   /* of its run */
    struct client *next;  /* in the list of answers */
};

struct server {
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t timer;
    uint64_t ticks;
    uv_mutex_t mutex;
    struct client *answers; /* under the mutex; all else is the loop's */
    struct dataset data;
    weir_program *program;
    struct client clients[CLIENTS];
    uint32_t asked, answered, right, failed;
};

static float *data_of(weir_tensor *tensor) {
    void *data;
    CHECK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* On a thread of the pool's. The run is over; nothing here waits. */
static void answer_ready(void *ctx, weir_status status, weir_run *run) {
    struct client *client = ctx;
    struct server *server = client->server;
    (void)run; /* NULL: runs of weir_program_run have no handle */
    client->status = status;
    uv_mutex_lock(&server->mutex);
    client->next = server->answers;
    server->answers = client;
    uv_mutex_unlock(&server->mutex);
    uv_async_send(&server->wake);
}

/* Takes the next scan, if there is one left. The call returns at once. */
static void ask(struct client *client) {
    struct server *server = client->server;
    if (server->asked == server->data.count) return;
    client->scan = server->asked++;
    const float *pixels = server->data.pixels + (size_t)client->scan * DIGITS_PIXELS;
    float *input = data_of(client->input);
    for (int i = 0; i < DIGITS_PIXELS; i++) input[i] = pixels[i];
    const weir_notice notice = {.struct_size = sizeof notice, .notify = answer_ready, .ctx = client};
    const weir_run_options options = {.struct_size = sizeof options, .notice = &notice};
    CHECK(weir_program_run(server->program, client->stream, &client->input, 1, client->outputs, NETWORK_OUTPUTS,
                           &options));
}

/* On the loop's thread. Several wakes may come as one. */
static void take_answers(uv_async_t *wake) {
    struct server *server = wake->data;
    uv_mutex_lock(&server->mutex);
    struct client *client = server->answers;
    server->answers = NULL;
    uv_mutex_unlock(&server->mutex);
    while (client != NULL) {
        struct client *next = client->next;
        void *class;
        CHECK(weir_tensor_get_data(client->outputs[NETWORK_CLASSES], &class));
        server->answered++;
        server->failed += client->status != WEIR_OK;
        server->right += *(const int32_t *)class == server->data.labels[client->scan];
        ask(client);
        client = next;
    }
    if (server->answered == server->data.count) {
        uv_close((uv_handle_t *)&server->wake, NULL);
        uv_close((uv_handle_t *)&server->timer, NULL);
    }
}

static void tick(uv_timer_t *timer) {
    struct server *server = timer->data;
    server->ticks++;
}

static void open_client(struct client *client, struct server *server, weir_engine *engine) {
    const weir_tensor_desc scan = {WEIR_F32, 2, {1, DIGITS_PIXELS}};
    client->server = server;
    CHECK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &client->stream));
    CHECK(weir_tensor_create(engine, &scan, NULL, &client->input));
    for (int o = 0; o < NETWORK_OUTPUTS; o++) {
        const weir_tensor_desc desc = network_output_desc(o, 1);
        CHECK(weir_tensor_create(engine, &desc, NULL, &client->outputs[o]));
    }
}

static void close_client(struct client *client) {
    weir_tensor_release(client->input);
    for (int o = 0; o < NETWORK_OUTPUTS; o++) weir_tensor_release(client->outputs[o]);
    weir_stream_release(client->stream);
}

int main(int argc, char **argv) {
    static struct server server;
    weir_threadpool *handle;
    weir_engine_attr *attr;
    weir_engine *engine;
    weir_runtime_info info = {.struct_size = sizeof info};

    if (dataset_load(&server.data, argc > 1 ? argv[1] : DIGITS_DATA_DIR) != 0) return 1;
    struct pool *pool = pool_create(THREADS);
    if (pool == NULL) return 1;
    CHECK(pool_to_weir(pool, POOL_BOTH, &handle));
    CHECK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK(weir_engine_attr_set_threadpool(attr, handle));
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    server.program = network_compile(&server.data, engine, 1, NULL);

    if (uv_loop_init(&server.loop) != 0 || uv_mutex_init(&server.mutex) != 0 ||
        uv_async_init(&server.loop, &server.wake, take_answers) != 0 || uv_timer_init(&server.loop, &server.timer) != 0) {
        fprintf(stderr, "libuv does not start\n");
        return 1;
    }
    server.wake.data = server.timer.data = &server;
    uv_timer_start(&server.timer, tick, 1, 1);
    for (int i = 0; i < CLIENTS; i++) open_client(&server.clients[i], &server, engine);
    for (int i = 0; i < CLIENTS; i++) ask(&server.clients[i]);
    uv_run(&server.loop, UV_RUN_DEFAULT); /* until all is answered and the handles are closed */

    const double accuracy = 100.0 * server.right / server.data.count;
    CHECK(weir_runtime_get_info(&info));
    printf("%" PRIu32 " requests of %d clients answered by one thread and its event loop: %.1f %% read right, %" PRIu32
           " failed, %" PRIu64 " ticks meanwhile\n", server.answered, CLIENTS, accuracy, server.failed, server.ticks);
    for (int i = 0; i < CLIENTS; i++) close_client(&server.clients[i]);
    uv_loop_close(&server.loop);
    uv_mutex_destroy(&server.mutex);
    weir_program_release(server.program);
    weir_engine_release(engine);
    weir_threadpool_release(handle);
    pool_destroy(pool);
    const bool complete = server.answered == server.data.count && server.failed == 0;
    dataset_free(&server.data);
    if (accuracy < GOAL || !complete || info.threads_started != 0) {
        fprintf(stderr, "FAILED\n");
        return 1;
    }
    return 0;
}
