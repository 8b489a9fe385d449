/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Memory and threads run out at random while three threads make everything that starts threads, use it, and let go of
 * it: pools of the library's, engines with threads of their own, lanes, emulated devices. Each call succeeds with the
 * right result or is refused; nothing aborts, nothing is left behind, and all of it works afterwards.
 */

#include "interpose.h"

#include <pthread.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "weir/testing.h"

#if INTERPOSED

static atomic_long starts, refused_starts;

/* Threads that the library starts are refused as its requests for memory are. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
    static int (*next_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (next_create == NULL) *(void **)&next_create = dlsym(RTLD_NEXT, "pthread_create");
    uintptr_t caller = (uintptr_t)CALLER;
    if (caller >= library_begin && caller < library_end && is_drawn(-100 * (atomic_fetch_add(&starts, 1) + 1))) {
        atomic_fetch_add(&refused_starts, 1);
        return EAGAIN;
    }
    return next_create(thread, attr, run, arg);
}

enum { THREADS = 3, LEN = 64 };

/* What one thread has made. */
typedef struct rig {
    int number;
    weir_status status;
    const char *what;
    weir_threadpool *pool;
    weir_engine_attr *attr;
    weir_engine *engine, *own, *device;
    weir_stream *lane, *stream, *queue;
    weir_event *event;
    weir_kernel *add, *add_there;
    weir_tensor *x, *y, *z, *there, *sum, *back;
    weir_graph *graph;
    weir_program *placed;
    weir_run *run;
    atomic_int *runs; /* of tasks; whoever knows it may come late, so it is of the whole program */
} rig;

static atomic_int task_runs[THREADS];

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        r->status = (call);                                                                                            \
        if (r->status != WEIR_OK) {                                                                                    \
            r->what = #call;                                                                                           \
            return 0;                                                                                                  \
        }                                                                                                              \
    } while (0)

static int make_engines(rig *r) {
    const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = 2};
    TRY(weir_threadpool_create_builtin(&options, &r->pool));
    TRY(weir_engine_attr_create(WEIR_ENGINE_CPU, &r->attr));
    TRY(weir_engine_attr_set_threadpool(r->attr, r->pool));
    TRY(weir_engine_create(WEIR_ENGINE_CPU, 0, r->attr, &r->engine));
    TRY(weir_engine_attr_set_threadpool(r->attr, NULL));
    TRY(weir_engine_attr_set_thread_mode(r->attr, r->number == 0 ? WEIR_THREAD_MODE_KIND : WEIR_THREAD_MODE_PRIVATE));
    TRY(weir_engine_attr_set_thread_count(r->attr, 2));
    TRY(weir_engine_create(WEIR_ENGINE_CPU, 0, r->attr, &r->own));
    TRY(weir_engine_create(WEIR_ENGINE_EMULATED, (uint32_t)r->number, NULL, &r->device));
    return 1;
}

static int make_objects(rig *r) {
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_value x, y;
    TRY(weir_stream_create(r->own, WEIR_STREAM_ASYNCHRONOUS, NULL, &r->stream));
    TRY(weir_engine_attr_set_thread_mode(r->attr, WEIR_THREAD_MODE_CALLER));
    weir_engine_release(r->own);
    r->own = NULL;
    TRY(weir_engine_create(WEIR_ENGINE_CPU, 0, r->attr, &r->own));
    TRY(weir_stream_create(r->own, WEIR_STREAM_ASYNCHRONOUS, NULL, &r->lane));
    TRY(weir_stream_create(r->device, 0, NULL, &r->queue));
    TRY(weir_event_create(r->device, WEIR_EVENT_DEFAULT, &r->event));
    TRY(weir_kernel_create_binary(r->engine, BINARY(ADD), NULL, &r->add));
    TRY(weir_kernel_create_binary(r->device, BINARY(ADD), NULL, &r->add_there));
    TRY(weir_tensor_create(r->engine, &desc, NULL, &r->x));
    TRY(weir_tensor_create(r->engine, &desc, NULL, &r->y));
    TRY(weir_tensor_create(r->engine, &desc, NULL, &r->z));
    TRY(weir_tensor_create(r->engine, &desc, NULL, &r->back));
    TRY(weir_tensor_create(r->device, &desc, NULL, &r->there));
    TRY(weir_tensor_create(r->device, &desc, NULL, &r->sum));
    TRY(weir_graph_create("sums", &r->graph));
    TRY(weir_graph_add_input(r->graph, "x", &desc, &x));
    /* One thread's graph is so large that the lists of compile are, too. */
    for (int i = 0, n = r->number == 2 ? 1500 : 6; i < n; i++) {
        char name[16];
        weir_value pair[2] = {x, i % 2 == 0 ? x : y};
        snprintf(name, sizeof name, "add%d", i);
        TRY(weir_graph_add_kernel(r->graph, name, i % 3 == 2 && i < 6 ? r->add_there : r->add, pair, 2, &y, 1, NULL));
    }
    TRY(weir_graph_add_output(r->graph, "y", y));
    weir_engine *engines[2] = {r->engine, r->device};
    TRY(weir_graph_compile(r->graph, engines, 2, NULL, &r->placed));
    return 1;
}

/* Every second add begins anew with x + x, so y is x + (x + x). */
static void check_sums(const weir_tensor *x, const weir_tensor *y) {
    for (int i = 0; i < LEN; i++) CHECK(floats(y)[i] == 3 * floats(x)[i]);
}

static int work(rig *r) {
    fill(r->x, r->number);
    TRY(weir_enqueue_task(r->stream, count_run, r->runs, NULL));
    TRY(weir_enqueue_task(r->lane, count_run, r->runs, NULL));
    TRY(weir_enqueue_copy(r->queue, r->x, r->there));
    TRY(weir_enqueue(r->queue, r->add_there, (weir_tensor *[]){r->there, r->there}, 2, &r->sum, 1));
    TRY(weir_enqueue_copy(r->queue, r->sum, r->back));
    TRY(weir_event_record(r->event, r->queue));
    TRY(weir_stream_wait_event(r->lane, r->event));
    TRY(weir_event_synchronize(r->event, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < LEN; i++) CHECK(floats(r->back)[i] == 2 * floats(r->x)[i]);
    TRY(weir_program_run(r->placed, NULL, &r->x, 1, &r->y, 1, NULL));
    check_sums(r->x, r->y);
    TRY(weir_program_start(r->placed, r->stream, &r->x, 1, &r->z, 1, NULL, &r->run));
    TRY(weir_run_synchronize(r->run, WEIR_TIMEOUT_INFINITE));
    check_sums(r->x, r->z);
    weir_run_release(r->run);
    r->run = NULL;
    TRY(weir_stream_synchronize(r->lane, WEIR_TIMEOUT_INFINITE));
    TRY(weir_stream_synchronize(r->stream, WEIR_TIMEOUT_INFINITE));
    return 1;
}

static void release(rig *r) {
    weir_run_release(r->run);
    weir_program_release(r->placed);
    weir_graph_destroy(r->graph);
    weir_tensor_release(r->x);
    weir_tensor_release(r->y);
    weir_tensor_release(r->z);
    weir_tensor_release(r->there);
    weir_tensor_release(r->sum);
    weir_tensor_release(r->back);
    weir_kernel_release(r->add);
    weir_kernel_release(r->add_there);
    weir_event_release(r->event);
    weir_stream_release(r->queue);
    weir_stream_release(r->lane);
    weir_stream_release(r->stream);
    weir_engine_release(r->device);
    weir_engine_release(r->own);
    weir_engine_release(r->engine);
    weir_engine_attr_destroy(r->attr);
    weir_threadpool_release(r->pool);
}

static atomic_long rounds, refused_rounds;
static uint64_t until_ns;

/* A call is refused for want of memory, or because of what was refused before it on its stream. */
static void check_refusal(const rig *r) {
    if (r->status == WEIR_RESOURCE_EXHAUSTED && atomic_load(&refuse_per_million) > 0) return;
    fprintf(stderr, "%s\n", weir_last_error_message());
    check_failed(__FILE__, __LINE__, r->what, weir_status_name(r->status));
}

static void *play(void *arg) {
    int number = *(int *)arg;
    do {
        rig r;
        memset(&r, 0, sizeof r);
        r.number = number;
        r.runs = &task_runs[number];
        int is_done = make_engines(&r) && make_objects(&r) && work(&r) && work(&r);
        atomic_fetch_add(&rounds, 1);
        if (!is_done) {
            atomic_fetch_add(&refused_rounds, 1);
            check_refusal(&r);
        }
        release(&r);
    } while (now_ns() < until_ns);
    return NULL;
}

/* All threads, for so long; with 0 once. */
static void all_play(long per_million, unsigned long seed, uint64_t ns) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    weir_runtime_info before = runtime_info();
    atomic_store(&refused_requests, 0);
    atomic_store(&refused_starts, 0);
    atomic_store(&rounds, 0);
    atomic_store(&refused_rounds, 0);
    atomic_store(&refuse_seed, seed);
    atomic_store(&refuse_per_million, per_million);
    until_ns = now_ns() + ns;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, play, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    atomic_store(&refuse_per_million, 0);
    check_released(&before);
    printf("%ld per million: %ld rounds, %ld of them refused; %ld requests and %ld threads refused\n", per_million,
           atomic_load(&rounds), atomic_load(&refused_rounds), atomic_load(&refused_requests), atomic_load(&refused_starts));
}

int main(int argc, char **argv) {
    CHECK_OK(weir_emulated_register());
    static const long rates[] = {30, 300, 3000};
    uint64_t ns = argc > 1 ? (uint64_t)atof(argv[1]) * 1000000000u : 2000000000u;
    unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    if (!interpose_start()) {
        puts("valgrind owns malloc here: nothing can be refused");
        return 0;
    }
    weir_runtime_info before = runtime_info();
    all_play(0, 0, 0);
    interpose_reset(0, 0);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        all_play(rates[i], seed, ns);
        CHECK(i == 0 || (atomic_load(&refused_requests) > 0 && atomic_load(&refused_rounds) > 0));
        all_play(0, 0, 0);
    }
    check_released(&before);
    weir_runtime_info after = runtime_info();
    CHECK(after.threadpools == 0 && after.engines == 0 && after.streams == 0 && after.tensors == 0 && after.runs == 0);
    CHECK(after.threads_alive == 0);
    return 0;
}

#else

int main(void) {
    CHECK_OK(weir_emulated_register());
    puts("a sanitizer owns malloc here: nothing can be refused");
    return 0;
}

#endif
