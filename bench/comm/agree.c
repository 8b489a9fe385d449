/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What weir_program_agree sends, for 2 to 64 ranks that are threads: over a transport of mailboxes that has sends and
 * receives, of which weir builds its all_gather. The programs are 32 all_reduces: the same on all ranks, or one of them
 * has another size on the last rank, or all have a ring of sends and receives besides.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir.h>
#include <weir/comm.h>

enum { OPERATIONS = 32, MOST_RANKS = 64 };

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != WEIR_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, weir_last_error_message());                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct letter {
    struct letter *next;
    int from, tag;
    size_t bytes;
    char text[];
};

struct world {
    int ranks, differs, has_messages;
    pthread_mutex_t lock;
    struct letter *boxes[MOST_RANKS];
};

struct request {
    weir_comm_operation of;
};

struct rank {
    struct world *world;
    weir_engine *engine;
    int number;
    uint64_t sends, bytes, control;
    weir_status answer;
    double took_us;
};

static weir_status get_info(void *ctx, weir_comm_transport_info *info) {
    const struct rank *rank = ctx;
    info->rank = rank->number;
    info->size = rank->world->ranks;
    info->ops = 1 << WEIR_COMM_SEND | 1 << WEIR_COMM_RECV;
    info->max_tag = 32767;
    snprintf(info->name, sizeof info->name, "mailboxes");
    return WEIR_OK;
}

static weir_status put(struct world *world, int from, int to, int tag, const void *data, size_t bytes) {
    struct letter *letter = malloc(sizeof *letter + bytes), **end = &world->boxes[to];
    if (!letter) return WEIR_RESOURCE_EXHAUSTED;
    *letter = (struct letter){NULL, from, tag, bytes};
    if (bytes > 0) memcpy(letter->text, data, bytes);
    pthread_mutex_lock(&world->lock);
    while (*end) end = &(*end)->next;
    *end = letter;
    pthread_mutex_unlock(&world->lock);
    return WEIR_OK;
}

/* The first letter with this tag, from this rank, or from any (-1). */
static struct letter *take(struct world *world, int to, int from, int tag) {
    struct letter *found, **at = &world->boxes[to];
    pthread_mutex_lock(&world->lock);
    while (*at && ((*at)->tag != tag || (from >= 0 && (*at)->from != from))) at = &(*at)->next;
    found = *at;
    if (found) *at = found->next;
    pthread_mutex_unlock(&world->lock);
    return found;
}

static weir_status start(void *ctx, const weir_comm_operation *of, void **out_request) {
    struct rank *rank = ctx;
    struct request *request = malloc(sizeof *request);
    if (!request) return WEIR_RESOURCE_EXHAUSTED;
    request->of = *of;
    *out_request = request;
    if (of->op != WEIR_COMM_SEND) return WEIR_OK;
    rank->sends++;
    rank->bytes += of->count * of->element_bytes;
    return put(rank->world, rank->number, of->peer, of->tag, of->send, of->count * of->element_bytes);
}

static weir_status test(void *ctx, void *of, int32_t *out_done) {
    struct rank *rank = ctx;
    struct request *request = of;
    *out_done = request->of.op == WEIR_COMM_SEND;
    if (!*out_done) {
        struct letter *letter = take(rank->world, rank->number, request->of.peer, request->of.tag);
        if (!letter) return WEIR_OK;
        if (letter->bytes > 0) memcpy(request->of.recv, letter->text, letter->bytes);
        free(letter);
        *out_done = 1;
    }
    free(request);
    return WEIR_OK;
}

static weir_status control_send(void *ctx, int32_t peer, const void *message) {
    struct rank *rank = ctx;
    rank->control++;
    return put(rank->world, rank->number, peer, -1, message, WEIR_COMM_MESSAGE_BYTES);
}

static weir_status control_poll(void *ctx, int32_t *out_peer, void *out_message, int32_t *out_got) {
    struct rank *rank = ctx;
    struct letter *letter = take(rank->world, rank->number, -1, -1);
    *out_got = letter != NULL;
    if (!letter) return WEIR_OK;
    *out_peer = letter->from;
    memcpy(out_message, letter->text, WEIR_COMM_MESSAGE_BYTES);
    free(letter);
    return WEIR_OK;
}

static weir_program *make_program(struct rank *rank, weir_comm *comm) {
    const struct world *world = rank->world;
    const weir_tensor_desc desc = {.dtype = WEIR_F32, .rank = 1, .dims = {64}};
    weir_communication what = {.struct_size = sizeof what, .op = WEIR_COMM_ALL_REDUCE};
    weir_kernel *sum = NULL, *kernel = NULL;
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_value value;
    char name[32];
    MUST(weir_kernel_create_communication(rank->engine, comm, &what, NULL, &sum));
    MUST(weir_graph_create("agree", &graph));
    for (int i = 0; i < OPERATIONS; i++) {
        const int differs = world->differs && i == OPERATIONS * 2 / 3 && rank->number == world->ranks - 1;
        const weir_tensor_desc other = {.dtype = WEIR_F32, .rank = 1, .dims = {65}};
        snprintf(name, sizeof name, "x %d", i);
        MUST(weir_graph_add_input(graph, name, differs ? &other : &desc, &value));
        snprintf(name, sizeof name, "sum %d", i);
        MUST(weir_graph_add_kernel(graph, name, sum, &value, 1, &value, 1, NULL));
        MUST(weir_graph_add_output(graph, name, value));
    }
    for (int i = 0; i < 2 * world->has_messages; i++) {
        const int step = i == 0 ? 1 : world->ranks - 1;
        what = (weir_communication){.struct_size = sizeof what,
                                    .op = i == 0 ? WEIR_COMM_SEND : WEIR_COMM_RECV,
                                    .peer = (rank->number + step) % world->ranks,
                                    .desc = i == 0 ? (weir_tensor_desc){0} : desc};
        MUST(weir_kernel_create_communication(rank->engine, comm, &what, NULL, &kernel));
        if (i == 0) MUST(weir_graph_add_input(graph, "message", &desc, &value));
        MUST(weir_graph_add_kernel(graph, i == 0 ? "to the next" : "from the one before", kernel, &value, i == 0,
                                   &value, i != 0, NULL));
        if (i != 0) MUST(weir_graph_add_output(graph, "message", value));
        weir_kernel_release(kernel);
    }
    MUST(weir_graph_compile(graph, &rank->engine, 1, NULL, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(sum);
    return program;
}

static void *of_rank(void *argument) {
    static const weir_comm_vtable vtable = {.struct_size = sizeof vtable,
                                            .get_info = get_info,
                                            .start = start,
                                            .test = test,
                                            .control_send = control_send,
                                            .control_poll = control_poll};
    struct rank *rank = argument;
    weir_comm *comm = NULL;
    struct timespec began, ended;
    MUST(weir_comm_create(&vtable, rank, NULL, &comm));
    weir_program *program = make_program(rank, comm);
    clock_gettime(CLOCK_MONOTONIC, &began);
    rank->answer = weir_program_agree(program, comm, UINT64_C(60000000000));
    clock_gettime(CLOCK_MONOTONIC, &ended);
    rank->took_us = (double)(ended.tv_sec - began.tv_sec) * 1e6 + (double)(ended.tv_nsec - began.tv_nsec) * 1e-3;
    weir_program_release(program);
    weir_comm_release(comm);
    return NULL;
}

int main(void) {
    static struct rank ranks[MOST_RANKS];
    weir_engine *engine = NULL;
    MUST(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    printf("weir_program_agree, %d all_reduces: messages and bytes that a rank sends, control messages, and the time\n"
           "until the last rank is done, all ranks being threads of this machine\n\n%5s %9s %9s %9s %9s %9s %12s\n",
           OPERATIONS, "ranks", "programs", "messages", "bytes", "most", "control", "time, us");
    for (int what = 0; what < 3; what++) {
        for (int number = 2; number <= MOST_RANKS; number *= 2) {
            struct world world = {.ranks = number, .differs = what == 1, .has_messages = what == 2};
            pthread_t threads[MOST_RANKS];
            uint64_t most = 0, control = 0;
            double time = 0;
            pthread_mutex_init(&world.lock, NULL);
            for (int r = 0; r < number; r++) {
                ranks[r] = (struct rank){.world = &world, .engine = engine, .number = r};
                if (pthread_create(&threads[r], NULL, of_rank, &ranks[r])) return 1;
            }
            for (int r = 0; r < number; r++) {
                pthread_join(threads[r], NULL);
                if (ranks[r].sends > most) most = ranks[r].sends;
                if (ranks[r].took_us > time) time = ranks[r].took_us;
                control += ranks[r].control;
                if (ranks[r].answer != (what == 1 ? WEIR_FAILED_PRECONDITION : WEIR_OK)) {
                    fprintf(stderr, "rank %d of %d: %d\n", r, number, (int)ranks[r].answer);
                    return 1;
                }
            }
            printf("%5d %9s %9llu %9llu %9llu %9llu %12.0f\n", number,
                   what == 0   ? "the same"
                   : what == 1 ? "differ"
                               : "with ring",
                   (unsigned long long)ranks[0].sends, (unsigned long long)ranks[0].bytes, (unsigned long long)most,
                   (unsigned long long)control, time);
            fflush(stdout);
            for (int r = 0; r < number; r++) {
                while (world.boxes[r]) {
                    struct letter *letter = world.boxes[r];
                    world.boxes[r] = letter->next;
                    free(letter);
                }
            }
        }
    }
    weir_engine_release(engine);
    return 0;
}
