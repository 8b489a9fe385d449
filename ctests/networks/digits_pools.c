/* The same digits give the same bits on every pool: a graph of kernels must not know who runs it.
 *
 *     digits_pools [folder with digits.bin and weights.bin]
 *
 * The reference is a run in the calling thread without any pool. Every pool then runs the graph in seven ways: the pool
 * belongs to the engine, the stream or the run; the run is synchronous or goes through an asynchronous stream. Each way
 * uses three programs: batches of 50, the same with a hop cost of 0, so that work changes threads whenever it can, and
 * one batch of all, whose kernels are large enough to be split.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "check.h"
#include "dataset.h"
#include "network.h"
#include "pool.h"

#ifndef DIGITS_DATA_DIR
#define DIGITS_DATA_DIR "."
#endif

enum { SCANS = 500, MAX_BATCHES = 10, VARIANTS = 3, SEEDS = 100, HOST_THREADS = 3 };

static const uint64_t PATIENCE_NS = 60000000000; /* a hang becomes an error */

static struct variant {
    const char *name;
    int64_t batch;
    bool hop;
} variants[VARIANTS] = {
    {"batches of 50", 50, false},
    {"batches of 50, hop cost 0", 50, true},
    {"one batch of all, hop cost 0", SCANS, true},
};

/* All outputs of all scans. Compared as bytes; the arrays leave no padding between them. */
struct outputs {
    float logits[SCANS][DIGITS_CLASSES];
    float probabilities[SCANS][DIGITS_CLASSES];
    int32_t classes[SCANS];
};

/* Who owns the pool, and how the work is handed in. */
enum way {
    ENGINE_CALLER, /* the engine's pool, NULL stream */
    ENGINE_SYNCHRONOUS,
    ENGINE_ASYNCHRONOUS,
    STREAM_SYNCHRONOUS, /* the stream's pool, on an engine that has none */
    STREAM_ASYNCHRONOUS,
    RUN_CALLER, /* the run's pool, neither engine nor stream have one */
    RUN_ASYNCHRONOUS,
    WAYS,
};

static const char *const way_names[WAYS] = {
    "engine's pool, in the caller",         "engine's pool, synchronous stream", "engine's pool, asynchronous stream",
    "stream's pool, synchronous stream",    "stream's pool, asynchronous stream", "run's pool, in the caller",
    "run's pool, asynchronous stream",
};

static struct dataset data;
static struct outputs got;
static struct outputs reference[VARIANTS];
/* A slow machine reads a fifth of the scans, and leaves the first variant out. */
static int scans = SCANS, first_variant;

/* An engine with everything that runs on it. */
struct session {
    weir_engine *engine;
    weir_program *programs[VARIANTS];
    weir_tensor *inputs[VARIANTS][MAX_BATCHES];
    weir_tensor *outputs[VARIANTS][MAX_BATCHES][NETWORK_OUTPUTS];
};

static int num_batches(int v) {
    return (int)(scans / variants[v].batch);
}

static weir_program *compile(weir_engine *engine, int v) {
    const weir_compile_options options = {
        .struct_size = sizeof options, .hop_ns = variants[v].hop ? WEIR_HOP_NONE : 0};
    return network_compile(&data, engine, variants[v].batch, &options);
}

static weir_tensor *tensor_over(weir_engine *engine, weir_tensor_desc desc, void *memory) {
    weir_tensor *tensor;
    CHECK_OK(weir_tensor_create(engine, &desc, OVER(memory), &tensor));
    return tensor;
}

static void session_open(struct session *session, weir_threadpool *pool) {
    weir_engine_attr *attr;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &session->engine));
    weir_engine_attr_destroy(attr);
    for (int v = 0; v < VARIANTS; v++) {
        const int64_t batch = variants[v].batch;
        const weir_tensor_desc pixels = {WEIR_F32, 2, {batch, DIGITS_PIXELS}};
        session->programs[v] = compile(session->engine, v);
        for (int b = 0; b < num_batches(v); b++) {
            const int64_t row = b * batch;
            void *places[NETWORK_OUTPUTS] = {got.logits[row], got.probabilities[row], &got.classes[row]};
            session->inputs[v][b] = tensor_over(session->engine, pixels, data.pixels + row * DIGITS_PIXELS);
            for (int o = 0; o < NETWORK_OUTPUTS; o++) {
                weir_tensor_desc desc = network_output_desc((enum network_output)o, batch);
                session->outputs[v][b][o] = tensor_over(session->engine, desc, places[o]);
            }
        }
    }
}

static void session_close(struct session *session) {
    for (int v = 0; v < VARIANTS; v++) {
        for (int b = 0; b < num_batches(v); b++) {
            weir_tensor_release(session->inputs[v][b]);
            for (int o = 0; o < NETWORK_OUTPUTS; o++) {
                weir_tensor_release(session->outputs[v][b][o]);
            }
        }
        weir_program_release(session->programs[v]);
    }
    weir_engine_release(session->engine);
}

/* Reads all scans into `got`; `stream` and `options` may be NULL. */
static void read_all(struct session *session, int v, weir_stream *stream, const weir_run_options *options) {
    memset(&got, 0xA5, sizeof got); /* what is not written must show */
    for (int b = 0; b < num_batches(v); b++) {
        CHECK_OK(weir_program_run(session->programs[v], stream, &session->inputs[v][b], 1, session->outputs[v][b],
                                  NETWORK_OUTPUTS, options));
    }
    if (stream != NULL) {
        CHECK_OK(weir_stream_synchronize(stream, PATIENCE_NS));
    }
}

static weir_stream *open_stream(weir_engine *engine, weir_threadpool *pool, bool asynchronous) {
    weir_stream_attr *attr;
    weir_stream *stream;
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_stream_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_stream_attr_set_asynchronous(attr, asynchronous));
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, attr, &stream));
    weir_stream_attr_destroy(attr);
    return stream;
}

/* `own` is on an engine with the pool, `plain` on one without. */
static void read_all_in_way(struct session *own, struct session *plain, int v, weir_threadpool *pool, enum way way) {
    const bool asynchronous = way == ENGINE_ASYNCHRONOUS || way == STREAM_ASYNCHRONOUS || way == RUN_ASYNCHRONOUS;
    const bool streams_pool = way == STREAM_SYNCHRONOUS || way == STREAM_ASYNCHRONOUS;
    struct session *session = way <= ENGINE_ASYNCHRONOUS ? own : plain;
    weir_stream *stream = NULL;
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    const bool is_runs = way == RUN_CALLER || way == RUN_ASYNCHRONOUS;
    if (way != ENGINE_CALLER && way != RUN_CALLER) {
        stream = open_stream(session->engine, streams_pool ? pool : NULL, asynchronous);
    }
    read_all(session, v, stream, is_runs ? &options : NULL);
    weir_stream_release(stream);
}

/* Compares `got` with the reference. The first difference is printed. */
static bool same_bits(const char *name, int v, enum way way) {
    if (memcmp(&got, &reference[v], sizeof got) == 0) {
        return true;
    }
    for (int i = 0; i < scans; i++) {
        for (int c = 0; c < DIGITS_CLASSES; c++) {
            if (memcmp(&got.logits[i][c], &reference[v].logits[i][c], sizeof(float)) != 0) {
                printf("FAILED %s, %s, %s: logit %d of scan %d is %.9g, expected %.9g\n", name, way_names[way],
                       variants[v].name, c, i, (double)got.logits[i][c], (double)reference[v].logits[i][c]);
                return false;
            }
        }
    }
    printf("FAILED %s, %s, %s: probabilities or classes differ\n", name, way_names[way], variants[v].name);
    return false;
}

/* Every way and variant on one pool. Returns how many differed. */
static int mismatches(const char *name, struct session *plain, weir_threadpool *pool) {
    static struct session own;
    int wrong = 0;
    session_open(&own, pool);
    for (int way = 0; way < WAYS; way++) {
        for (int v = first_variant; v < VARIANTS; v++) {
            read_all_in_way(&own, plain, v, pool, (enum way)way);
            wrong += !same_bits(name, v, (enum way)way);
        }
    }
    session_close(&own);
    return wrong;
}

static int report(const char *name, int wrong, int readings) {
    printf("%-52s %4d of %4d readings bit-identical\n", name, readings - wrong, readings);
    fflush(stdout);
    return wrong;
}

/* A pool that weir makes itself, or NULL. Takes over the reference. */
static int try_pool(const char *name, struct session *plain, weir_threadpool *pool) {
    int wrong = report(name, mismatches(name, plain, pool), WAYS * (VARIANTS - first_variant));
    weir_threadpool_release(pool);
    return wrong;
}

static weir_threadpool *builtin_pool(int32_t threads) {
    weir_threadpool *pool;
    const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = threads};
    CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
    return pool;
}

static struct pool *start_host_pool(void) {
    struct pool *host = pool_create(HOST_THREADS);
    CHECK(host != NULL);
    return host;
}

/* The right bits prove nothing about a pool that weir has never called. */
static int was_used(const char *name, struct pool *host) {
    if (pool_calls(host) > 0) {
        return 0;
    }
    printf("FAILED %s: no work reached the pool\n", name);
    return 1;
}

static int try_demo_pool(const char *name, struct session *plain, enum pool_offer offer) {
    struct pool *host = start_host_pool();
    weir_threadpool *pool;
    CHECK_OK(pool_to_weir(host, offer, &pool));
    int wrong = try_pool(name, plain, pool) + was_used(name, host);
    pool_destroy(host);
    return wrong;
}

/* The demo's pool again, behind a parallel_for that returns when the calls are queued. in_parallel is left out, so weir
 * has to know by itself where it is. */
struct asynchronous_pool {
    struct pool *host;
    sem_t released;
};

static int32_t asynchronous_num_threads(void *ctx) {
    (void)ctx;
    return HOST_THREADS;
}

static int32_t asynchronous_parallel_for(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    return pool_submit(((struct asynchronous_pool *)ctx)->host, n, task, arg);
}

static int32_t asynchronous_schedule(void *ctx, weir_task_fn task, void *arg, const weir_task_hint *hint) {
    (void)hint;
    return pool_submit(((struct asynchronous_pool *)ctx)->host, 1, task, arg);
}

static void asynchronous_release(void *ctx) {
    sem_post(&((struct asynchronous_pool *)ctx)->released);
}

static int try_asynchronous_pool(const char *name, struct session *plain, bool with_schedule) {
    struct asynchronous_pool ctx = {.host = start_host_pool()};
    const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable,
        .flags = WEIR_THREADPOOL_ASYNCHRONOUS | WEIR_THREADPOOL_NESTED,
        .num_threads = asynchronous_num_threads,
        .parallel_for = asynchronous_parallel_for,
        .schedule = with_schedule ? asynchronous_schedule : NULL,
        .release = asynchronous_release,
    };
    weir_threadpool *pool;
    CHECK(sem_init(&ctx.released, 0, 0) == 0);
    CHECK_OK(weir_threadpool_create(&vtable, &ctx, NULL, &pool));
    int wrong = try_pool(name, plain, pool) + was_used(name, ctx.host);
    pool_destroy(ctx.host); /* its threads are out of weir now, and it has called weir once more */
    while (sem_wait(&ctx.released) != 0) {
        /* interrupted by a signal */
    }
    sem_destroy(&ctx.released);
    return wrong;
}

static int try_seeds(struct session *plain) {
    const int seeds = scale(SEEDS);
    int wrong = 0;
    char name[64];
    for (int seed = 1; seed <= seeds; seed++) {
        weir_threadpool *pool;
        snprintf(name, sizeof name, "seeded pool, seed %d", seed);
        CHECK_OK(weir_threadpool_create_seeded((uint64_t)seed, HOST_THREADS, &pool));
        wrong += mismatches(name, plain, pool);
        weir_threadpool_release(pool);
    }
    snprintf(name, sizeof name, "seeded pool, %d seeds", seeds);
    return report(name, wrong, seeds * WAYS * (VARIANTS - first_variant));
}

/* Without a pool, in this thread. Returns how many variants misread too much: equal bits of nonsense prove nothing. */
static int make_reference(struct session *plain) {
    int wrong = 0;
    for (int v = 0; v < VARIANTS; v++) {
        int right = 0;
        read_all(plain, v, NULL, NULL);
        memcpy(&reference[v], &got, sizeof got);
        for (int i = 0; i < scans; i++) {
            right += got.classes[i] == data.labels[i];
        }
        const double accuracy = 100.0 * right / scans;
        printf("%-52s %5.1f %% read right\n", variants[v].name, accuracy);
        wrong += accuracy < 97.5;
    }
    return wrong;
}

int main(int argc, char **argv) {
    static struct session plain;
    weir_threadpool *inline_pool;
    const weir_runtime_info before = runtime_info();
    if (dataset_load(&data, argc > 1 ? argv[1] : DIGITS_DATA_DIR) != 0) {
        return 1;
    }
    CHECK_EQ(data.count, SCANS);
    if (is_slow()) {
        first_variant = 1;
        scans = SCANS / 5;
        variants[VARIANTS - 1].batch = scans;
    }
    session_open(&plain, NULL);
    int wrong = make_reference(&plain);
    CHECK_OK(weir_threadpool_create_inline(&inline_pool));
    wrong += try_pool("no pool", &plain, NULL);
    wrong += try_pool("inline pool", &plain, inline_pool);
    wrong += try_pool("built-in pool, 1 thread", &plain, builtin_pool(1));
    wrong += try_pool("built-in pool, 2 threads", &plain, builtin_pool(2));
    wrong += try_pool("built-in pool, 7 threads", &plain, builtin_pool(7));
    wrong += try_demo_pool("host pool, parallel_for only", &plain, POOL_PARALLEL_FOR);
    wrong += try_demo_pool("host pool, schedule only", &plain, POOL_SCHEDULE);
    wrong += try_demo_pool("host pool, parallel_for and schedule", &plain, POOL_BOTH);
    wrong += try_asynchronous_pool("asynchronous host pool, parallel_for only", &plain, false);
    wrong += try_asynchronous_pool("asynchronous host pool, parallel_for and schedule", &plain, true);
    wrong += try_seeds(&plain);
    session_close(&plain);
    check_released(&before);
    dataset_free(&data);
    if (wrong > 0) {
        printf("%d FAILED\n", wrong);
        return 1;
    }
    printf("all bit-identical\n");
    return 0;
}
