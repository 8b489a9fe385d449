/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Waits for everything while programs run on devices: runs that were started before are over with all that devices do
 * for them, copies too, and what comes later is not waited for. Also what a failed run has left behind, and what a run
 * in another thread has issued.
 */

#include <pthread.h>
#include <weir/domain.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

enum { WIDTH = 64, LENGTH = 6 };

static weir_engine *make_emulated(uint32_t index, uint64_t kernel_ns) {
    weir_emulation emulation = {.struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK, .kernel_ns = kernel_ns, .latency_ns = 1000};
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_attr_set_max_streams(attr, 2));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, index, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_stream *stream_on(weir_engine *engine) {
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    return stream;
}

static weir_emulated_counters counters_of(const weir_engine *engine) {
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    CHECK_OK(weir_emulated_get_counters(engine, &counters));
    return counters;
}

/* What another thread completes, with a failure. */
typedef struct pending {
    _Atomic(weir_completion *) done;
    weir_engine *engine; /* when it has been given so many operations */
    uint64_t operations;
} pending;

static int32_t begin(void *user, weir_kernel_context *context, weir_completion *done) {
    (void)context;
    atomic_store(&((pending *)user)->done, done);
    return WEIR_OK;
}

static void *complete(void *arg) {
    pending *p = arg;
    EVENTUALLY(atomic_load(&p->done) != NULL && counters_of(p->engine).operations >= p->operations);
    CHECK_OK(weir_completion_done(atomic_load(&p->done), WEIR_DATA_LOSS, "as planned"));
    return NULL;
}

/* x added to itself LENGTH times on the device; with `late` the last sum takes a value of the host's that completes
 * later. */
static weir_program *make_program(weir_engine *cpu, weir_engine *device, weir_compile_options *options, pending *late) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_engine *engines[] = {cpu, device};
    weir_graph *graph = make_graph("chain");
    weir_kernel *add = NULL;
    weir_program *program = NULL;
    weir_value x, value, pair[2];
    char name[16];
    CHECK_OK(weir_kernel_create_binary(device, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    value = x;
    for (int i = 0; i < LENGTH; i++) {
        pair[0] = pair[1] = value;
        snprintf(name, sizeof name, "add %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, add, pair, 2, &value, 1, NULL));
    }
    if (late != NULL) {
        weir_host_kernel_desc kernel_desc = make_kernel_desc("late", NULL, late);
        weir_kernel *kernel = NULL;
        kernel_desc.compute_async = begin;
        kernel_desc.num_inputs = kernel_desc.num_outputs = 1;
        kernel_desc.inputs = kernel_desc.outputs = &desc;
        CHECK_OK(weir_kernel_create_host(cpu, &kernel_desc, &kernel));
        CHECK_OK(weir_graph_add_kernel(graph, "late", kernel, &x, 1, &pair[1], 1, NULL));
        pair[0] = value;
        CHECK_OK(weir_graph_add_kernel(graph, "last", add, pair, 2, &value, 1, NULL));
        weir_kernel_release(kernel);
    }
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    CHECK_OK(weir_graph_compile(graph, engines, 2, options, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(add);
    return program;
}

/* ---- Runs under way, and others that go on starting some ---- */

typedef struct place {
    weir_stream *runs, *copies;
    weir_program *program;
    weir_tensor *in, *out, *there;
    atomic_llong queued, ran, copied;
    atomic_int stop;
} place;

static int32_t count_long(void *arg) {
    atomic_fetch_add((atomic_llong *)arg, 1);
    return WEIR_OK;
}

static void make_place(place *p, weir_engine *cpu, weir_engine *device, weir_threadpool *pool) {
    memset(p, 0, sizeof *p);
    p->runs = make_stream(cpu, WEIR_STREAM_ASYNCHRONOUS, pool, NULL);
    p->copies = stream_on(device);
    p->program = make_program(cpu, device, NULL, NULL);
    p->in = make_tensor(cpu, vector_desc(WIDTH));
    p->out = make_tensor(cpu, vector_desc(WIDTH));
    p->there = make_tensor(device, vector_desc(WIDTH));
    fill(p->in, 1);
}

static void release_place(place *p) {
    weir_tensor_release(p->in);
    weir_tensor_release(p->out);
    weir_tensor_release(p->there);
    weir_program_release(p->program);
    weir_stream_release(p->copies);
    weir_stream_release(p->runs);
}

/* A run on one stream, and a copy on another; a function behind each counts it. */
static void start(place *p, weir_run **out_run) {
    weir_run *run = NULL;
    CHECK_OK(weir_program_start(p->program, p->runs, &p->in, 1, &p->out, 1, NULL, &run));
    CHECK_OK(weir_enqueue_task(p->runs, count_long, &p->ran, NULL));
    CHECK_OK(weir_enqueue_copy(p->copies, p->in, p->there));
    CHECK_OK(weir_enqueue_task(p->copies, count_long, &p->copied, NULL));
    atomic_fetch_add(&p->queued, 1);
    if (out_run != NULL) *out_run = run;
    else weir_run_release(run);
}

static void *start_on_and_on(void *arg) {
    place *p = arg;
    while (!atomic_load(&p->stop)) {
        long long queued = atomic_load(&p->queued);
        if (queued - atomic_load(&p->ran) > 20 || queued - atomic_load(&p->copied) > 20) sleep_ns(100000);
        else start(p, NULL);
    }
    return NULL;
}

static void test_runs_under_way(weir_engine *cpu, weir_threadpool *pool) {
    weir_engine *devices[2] = {make_emulated(0, 50000), make_emulated(1, 20000)};
    place own, other;
    pthread_t thread;
    make_place(&own, cpu, devices[0], pool);
    make_place(&other, cpu, devices[1], pool);
    CHECK(pthread_create(&thread, NULL, start_on_and_on, &other) == 0);
    EVENTUALLY(atomic_load(&other.queued) > 2);
    for (int round = 1; round <= scale(60); round++) {
        weir_run *runs[3];
        weir_engine_sync results[8] = {{.struct_size = sizeof results[0]}};
        size_t count = 0;
        uint64_t scope = 0;
        int32_t done = 0;
        for (int i = 0; i < 3; i++) start(&own, &runs[i]);
        long long before = atomic_load(&other.queued);
        switch (round % 3) {
        case 0: CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL)); break;
        case 1: CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, results, 8, &count)); break;
        default:
            CHECK_OK(weir_async_scope_begin(&scope));
            CHECK_OK(weir_async_scope_end(scope, WEIR_TIMEOUT_INFINITE));
        }
        for (int i = 0; i < 3; i++) {
            CHECK_OK(weir_run_query(runs[i], &done));
            CHECK_EQ(done, 1);
            weir_run_release(runs[i]);
        }
        CHECK_EQ(atomic_load(&own.ran), 3 * round);
        CHECK_EQ(atomic_load(&own.copied), 3 * round);
        CHECK(atomic_load(&other.ran) >= before && atomic_load(&other.copied) >= before);
        CHECK_EQ(counters_of(devices[0]).completed, counters_of(devices[0]).operations);
    }
    for (int i = 0; i < WIDTH; i++) CHECK(floats(own.out)[i] == floats(own.in)[i] * (1 << LENGTH));
    atomic_store(&other.stop, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    for (int i = 0; i < 2; i++) CHECK_EQ(counters_of(devices[i]).races, 0);
    release_place(&own);
    release_place(&other);
    weir_engine_release(devices[0]);
    weir_engine_release(devices[1]);
}

/* ---- What comes later ---- */

typedef struct syncer {
    atomic_int begun, ended;
} syncer;

static void *synchronize(void *arg) {
    syncer *s = arg;
    atomic_store(&s->begun, 1);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    atomic_store(&s->ended, 1);
    return NULL;
}

/* A run that is started while another thread waits is held up for as long as the test likes: that thread's wait ends
 * all the same. How far it was when the run was started cannot be seen from here, so it is given time, and more of it
 * if that was too little. */
static void test_later_runs(weir_engine *cpu) {
    weir_engine *device = make_emulated(2, 1000);
    int was_right = 0;
    for (uint64_t wait_ms = 10; !was_right && wait_ms < 5000; wait_ms *= 2) {
        place p;
        syncer s = {0};
        gate first = {0}, later = {0};
        pthread_t thread;
        weir_stream *held = make_stream(cpu, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        make_place(&p, cpu, device, NULL);
        CHECK_OK(weir_enqueue_task(held, pass_gate, &first, NULL));
        EVENTUALLY(atomic_load(&first.begun));
        CHECK(pthread_create(&thread, NULL, synchronize, &s) == 0);
        EVENTUALLY(atomic_load(&s.begun));
        sleep_ms(wait_ms);
        CHECK_OK(weir_enqueue_task(p.runs, pass_gate, &later, NULL));
        start(&p, NULL);
        open_gate(&first);
        for (uint64_t waited = 0; waited < wait_ms && !atomic_load(&s.ended); waited++) sleep_ms(1);
        was_right = atomic_load(&s.ended);
        CHECK_EQ(atomic_load(&p.ran), 0);
        open_gate(&later);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        CHECK_EQ(atomic_load(&p.ran), 1);
        weir_stream_release(held);
        release_place(&p);
    }
    CHECK(was_right);
    weir_engine_release(device);
}

/* ---- Past all queues ---- */

/* A run fails while its device is at work, which nobody waits for any more: but for who waits for everything. */
static void test_left_behind(weir_engine *cpu) {
    weir_engine *device = make_emulated(3, 10000000);
    weir_tensor *in = make_tensor(cpu, vector_desc(WIDTH)), *out = make_tensor(cpu, vector_desc(WIDTH));
    int was_left = 0;
    fill(in, 1);
    for (int round = 0; round < 4 || (was_left == 0 && round < 100); round++) {
        pending late = {.done = NULL, .engine = device, .operations = counters_of(device).operations + 1 + LENGTH};
        weir_program *program = make_program(cpu, device, NULL, &late);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, complete, &late) == 0);
        CHECK_CODE(weir_program_run(program, NULL, &in, 1, &out, 1, NULL), WEIR_DATA_LOSS, "as planned");
        CHECK(pthread_join(thread, NULL) == 0);
        weir_emulated_counters counters = counters_of(device);
        was_left += counters.completed < counters.operations;
        if (round % 2 == 1) weir_program_release(program); /* the device keeps what it is at */
        if (round < 2) {
            if (counters.completed < counters.operations && round == 0) {
                /* No time for all of it. */
                weir_status status = weir_engine_synchronize(device, 0);
                if (status != WEIR_OK) CHECK_TEXT(weir_last_error_message(), "program 'chain'");
                CHECK(status == WEIR_DEADLINE_EXCEEDED || counters_of(device).completed == counters.operations);
            }
            CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
            if (round == 0) CHECK_EQ(counters_of(device).completed, counters.operations);
        }
        if (round % 2 == 0) weir_program_release(program);
    }
    EVENTUALLY(counters_of(device).completed == counters_of(device).operations);
    EVENTUALLY(counters_of(device).allocations_in_use == 0);
    CHECK(was_left > 0);
    CHECK_EQ(counters_of(device).races, 0);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_engine_release(device);
}

static void *run(void *arg) {
    place *p = arg;
    CHECK_OK(weir_program_run(p->program, NULL, &p->in, 1, &p->out, 1, NULL));
    return NULL;
}

/* A run that keeps another thread has given its device something: that is covered. */
static void test_run_in_another_thread(weir_engine *cpu) {
    weir_engine *device = make_emulated(4, 5000000);
    place p;
    pthread_t thread;
    make_place(&p, cpu, device, NULL);
    for (int round = 0; round < 3; round++) {
        uint64_t wanted = counters_of(device).operations + 1 + LENGTH;
        CHECK(pthread_create(&thread, NULL, run, &p) == 0);
        EVENTUALLY(counters_of(device).operations >= wanted);
        CHECK_OK(weir_engine_synchronize(device, WEIR_TIMEOUT_INFINITE));
        CHECK(counters_of(device).completed >= wanted);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK_EQ(counters_of(device).races, 0);
    release_place(&p);
    weir_engine_release(device);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    weir_engine *cpu = make_engine(NULL);
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FIFO, 2, &pool);
    test_runs_under_way(cpu, NULL); /* on lanes */
    test_runs_under_way(cpu, pool);
    test_later_runs(cpu);
    test_left_behind(cpu);
    test_run_in_another_thread(cpu);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    weir_engine_release(cpu);
    check_released(&before);
    puts("what was queued is over, on all devices");
    return 0;
}
