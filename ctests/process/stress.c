/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     stress [seconds]
 *
 * Two hundred threads of a host use five pools of changing kinds and twenty streams at once: regions and regions inside
 * them, runs that are waited for, timed out and cancelled, events across streams, waits in tasks, synchronisation of
 * everything; and meanwhile pools and streams are made and released under their feet. Every result is checked, and in
 * the end every count is back at zero. A watchdog ends the program, and says where each thread is, when nobody gets on
 * for twenty seconds.
 *
 * Without an argument: 5 seconds, 60 with WEIR_TEST_SCALE=full, 2 and fewer threads with WEIR_TEST_SCALE=small.
 */

#include <pthread.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

enum { MAX_THREADS = 200, PLACES = 5, STREAMS = 4, WIDTH = 96, STUCK_S = 20 };

/* ---- Who is where -------------------------------------------------------------------------------------------------*/

typedef struct member {
    pthread_t thread;
    uint64_t random;
    const char *_Atomic step;
    atomic_ullong steps; /* ended */
} member;

static member members[MAX_THREADS + 1]; /* the last one is main, which renews the places */
static int num_threads = MAX_THREADS;
static atomic_int stop, all_joined;

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t draw(member *m, uint64_t below) {
    uint64_t z = (m->random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (z ^ (z >> 31)) % below;
}

static void enter_step(member *m, const char *name) {
    atomic_store(&m->step, name);
}

static void leave_step(member *m) {
    atomic_store(&m->step, "between two steps");
    atomic_fetch_add(&m->steps, 1);
}

static uint64_t steps_of_all(void) {
    uint64_t sum = 0;
    for (int i = 0; i <= MAX_THREADS; i++) sum += atomic_load(&members[i].steps);
    return sum;
}

static void *watch(void *arg) {
    uint64_t seen = steps_of_all(), since = now_ns();
    (void)arg;
    while (!atomic_load(&all_joined)) {
        sleep_ms(100);
        uint64_t steps = steps_of_all();
        if (steps != seen) {
            seen = steps;
            since = now_ns();
        }
        if (now_ns() - since < STUCK_S * UINT64_C(1000000000)) continue;
        fprintf(stderr, "stress: nobody got on for %d seconds, after %llu steps\n", STUCK_S, (unsigned long long)seen);
        for (int i = 0; i <= MAX_THREADS; i++) {
            const char *step = atomic_load(&members[i].step);
            if (step != NULL) fprintf(stderr, "  thread %3d (%s): %s\n", i, i == MAX_THREADS ? "main" : "host", step);
        }
        fflush(NULL);
        abort();
    }
    return NULL;
}

/* ---- Places: a pool with an engine, a program and streams ---------------------------------------------------------*/

typedef struct place {
    pthread_mutex_t lock;
    test_pool *host; /* NULL: a pool of weir's own */
    weir_threadpool *pool;
    weir_engine *engine;
    weir_program *program;
    weir_stream *streams[STREAMS]; /* the first two are synchronous */
} place;

static place places[PLACES];

static int32_t add_inside(void *arg, int64_t begin, int64_t end, int32_t slot) {
    const weir_tensor_view **views = arg; /* the inputs, their end, the output */
    (void)slot;
    for (int64_t i = begin; i < end; i++) {
        float sum = 1;
        for (const weir_tensor_view *in = views[0]; in < views[1]; in++) sum += ((const float *)in->data)[i];
        ((float *)views[2]->data)[i] = sum;
    }
    return WEIR_OK;
}

/* 1 + the sum of the inputs, in a region of its own. */
static int32_t add_compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 10000};
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    const weir_tensor_view *views[] = {in, in + num_in, out};
    weir_status status = weir_kernel_context_parallel_for(context, WIDTH, &hint, add_inside, views);
    CHECK(status == WEIR_OK || status == WEIR_CANCELLED);
    return status;
}

/* a = x + 1; b = a + 1; c = a + 1; y = b + c + 1. Nodes change threads whenever they can. */
static weir_program *make_program(weir_engine *engine) {
    weir_tensor_desc desc[2] = {vector_desc(WIDTH), vector_desc(WIDTH)};
    weir_host_kernel_desc sum_desc = make_kernel_desc("sum", add_compute, NULL);
    weir_kernel *plus = make_unary_kernel(engine, "plus", add_compute, NULL, desc), *sum = NULL;
    weir_graph *graph = make_graph("diamond");
    weir_program *program = NULL;
    weir_value x, a, b[2], y;
    sum_desc.num_inputs = 2;
    sum_desc.inputs = desc;
    sum_desc.num_outputs = 1;
    sum_desc.outputs = desc;
    CHECK_OK(weir_kernel_create_host(engine, &sum_desc, &sum));
    CHECK_OK(weir_graph_add_input(graph, "x", desc, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "a", plus, &x, 1, &a, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "b", plus, &a, 1, &b[0], 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "c", plus, &a, 1, &b[1], 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "y", sum, b, 2, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    const weir_compile_options options = {.struct_size = sizeof options, .hop_ns = WEIR_HOP_NONE};
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(plus);
    weir_kernel_release(sum);
    return program;
}

/* Number `n` of the pools: each kind of a host's that runs tasks by itself, and those of the library. */
static void place_fill(place *p, int n) {
    weir_threadpool_attr *attr = NULL;
    int kind = n % (POOL_LATE + 2);
    p->host = NULL;
    if (kind < POOL_LATE) {
        p->host = test_pool_create((pool_kind)kind, 2, &p->pool);
    } else if (kind == POOL_LATE) {
        CHECK_OK(weir_threadpool_create_seeded((uint64_t)n, 2, &p->pool));
    } else {
        CHECK_OK(weir_threadpool_attr_create(&attr));
        CHECK_OK(weir_threadpool_attr_set_num_threads(attr, 2));
        CHECK_OK(weir_threadpool_create_builtin(attr, &p->pool));
        weir_threadpool_attr_destroy(attr);
    }
    p->engine = make_engine(p->pool);
    p->program = make_program(p->engine);
    for (int i = 0; i < STREAMS; i++) {
        uint64_t flags = i < STREAMS / 2 ? WEIR_STREAM_DEFAULT : WEIR_STREAM_ASYNCHRONOUS;
        p->streams[i] = make_stream(p->engine, flags, i % 2 ? p->pool : NULL, NULL);
    }
}

static void place_release(place *p) {
    for (int i = 0; i < STREAMS; i++) weir_stream_release(p->streams[i]);
    weir_program_release(p->program);
    weir_engine_release(p->engine);
    weir_threadpool_release(p->pool);
}

/* What a thread works with for one step: references of its own, so the place may be renewed meanwhile. */
static place visit(member *m) {
    place *p = &places[draw(m, PLACES)], own;
    pthread_mutex_lock(&p->lock);
    own.pool = p->pool;
    own.engine = p->engine;
    own.program = p->program;
    memcpy(own.streams, p->streams, sizeof own.streams);
    CHECK_OK(weir_threadpool_retain(own.pool));
    CHECK_OK(weir_engine_retain(own.engine));
    CHECK_OK(weir_program_retain(own.program));
    for (int i = 0; i < STREAMS; i++) CHECK_OK(weir_stream_retain(own.streams[i]));
    pthread_mutex_unlock(&p->lock);
    return own;
}

/* ---- Steps --------------------------------------------------------------------------------------------------------*/

/* 0, some moment, or no limit. */
static uint64_t some_timeout(member *m) {
    static const uint64_t timeouts[] = {0, 20000, 1000000, WEIR_TIMEOUT_INFINITE};
    return timeouts[draw(m, 4)];
}

typedef struct loop {
    weir_threadpool *inner_pool; /* NULL: no region inside */
    int inner;
    weir_status fail_with;
    atomic_llong sum;
} loop;

static int32_t sum_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    loop *l = arg;
    long long sum = 0;
    (void)slot;
    for (int64_t i = begin; i < end; i++) sum += i;
    atomic_fetch_add(&l->sum, sum);
    if (l->inner) {
        loop inside = {.inner = 0};
        weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 10000};
        CHECK_OK(weir_parallel_for(l->inner_pool, 30, &hint, sum_range, &inside));
        CHECK_EQ(atomic_load(&inside.sum), 30 * 29 / 2);
    }
    return l->fail_with;
}

static void run_loop(member *m, weir_threadpool *pool, int inner, weir_threadpool *inner_pool) {
    int64_t n = 1 + (int64_t)draw(m, 400);
    loop l = {.inner = inner, .inner_pool = inner_pool};
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = draw(m, 2) ? 0 : 20000};
    CHECK_OK(weir_parallel_for(pool, n, &hint, sum_range, &l));
    CHECK_EQ(atomic_load(&l.sum), n * (n - 1) / 2);
}

static void step_region(member *m, place *p) {
    run_loop(m, p->pool, 0, NULL);
}

static void step_nested_region(member *m, place *p) {
    place other = visit(m);
    run_loop(m, p->pool, 1, draw(m, 2) ? p->pool : other.pool);
    place_release(&other);
}

static void step_failing_region(member *m, place *p) {
    loop l = {.fail_with = WEIR_DATA_LOSS};
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 20000};
    (void)m;
    CHECK_CODE(weir_parallel_for(p->pool, 100, &hint, sum_range, &l), WEIR_DATA_LOSS, NULL);
}

static void check_output(weir_tensor *in, weir_tensor *out) {
    for (int i = 0; i < WIDTH; i++) CHECK(floats(out)[i] == 2 * floats(in)[i] + 5);
}

static void step_run(member *m, place *p) {
    weir_tensor *in = make_tensor(p->engine, vector_desc(WIDTH)), *out = make_tensor(p->engine, vector_desc(WIDTH));
    uint64_t where = draw(m, STREAMS + 1);
    weir_stream *stream = where == STREAMS ? NULL : p->streams[where];
    fill(in, (int)draw(m, 1000));
    CHECK_OK(weir_program_run(p->program, stream, &in, 1, &out, 1, NULL));
    if (stream != NULL) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    check_output(in, out);
    weir_tensor_release(in);
    weir_tensor_release(out);
}

/* Started, waited for with limits, perhaps cancelled; the tensors may be let go while it runs. */
static void step_start(member *m, place *p) {
    weir_tensor *in = make_tensor(p->engine, vector_desc(WIDTH)), *out = make_tensor(p->engine, vector_desc(WIDTH));
    weir_stream *stream = p->streams[STREAMS / 2 + draw(m, STREAMS / 2)];
    weir_run *run = NULL;
    fill(in, (int)draw(m, 1000));
    CHECK_OK(weir_program_start(p->program, stream, &in, 1, &out, 1, NULL, &run));
    uint64_t end = draw(m, 4);
    if (end == 0) CHECK_OK(weir_run_cancel(run));
    weir_status status = weir_run_synchronize(run, some_timeout(m));
    if (status == WEIR_DEADLINE_EXCEEDED && end == 1) CHECK_OK(weir_run_cancel(run));
    if (status == WEIR_DEADLINE_EXCEEDED && end != 2) status = weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE);
    if (status == WEIR_OK) check_output(in, out);
    else CHECK(status == (end == 2 ? WEIR_DEADLINE_EXCEEDED : WEIR_CANCELLED));
    weir_run_release(run);
    weir_tensor_release(in);
    weir_tensor_release(out);
}

static void step_tasks(member *m, place *p) {
    weir_stream *stream = p->streams[draw(m, STREAMS)];
    weir_event *event = make_event(p->engine, WEIR_EVENT_DEFAULT);
    atomic_int ran = 0;
    int n = 1 + (int)draw(m, 20);
    for (int i = 0; i < n; i++) CHECK_OK(weir_enqueue_task(stream, count_run, &ran, NULL));
    CHECK_OK(weir_event_record(event, stream));
    weir_status status = weir_event_synchronize(event, some_timeout(m));
    CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED);
    if (status != WEIR_OK) CHECK_OK(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&ran), n);
    weir_event_release(event);
}

static int32_t check_was_counted(void *arg) {
    CHECK(atomic_load((atomic_int *)arg) == 1);
    return WEIR_OK;
}

/* What is behind the wait for an event of another stream, of this place or of another one, sees what was before it. A
 * synchronous stream may refuse to wait: a task of the other stream may be waiting for this one (step_wait_in_task). */
static void step_event(member *m, place *p) {
    place other = visit(m);
    uint64_t to = draw(m, STREAMS);
    weir_stream *first = p->streams[draw(m, STREAMS)], *second = other.streams[to];
    weir_event *event = make_event(p->engine, WEIR_EVENT_DEFAULT);
    atomic_int ran = 0;
    CHECK_OK(weir_enqueue_task(first, count_run, &ran, NULL));
    CHECK_OK(weir_event_record(event, first));
    weir_status status = weir_stream_wait_event(second, event);
    if (status == WEIR_OK) {
        CHECK_OK(weir_enqueue_task(second, check_was_counted, &ran, NULL));
        CHECK_OK(weir_stream_synchronize(second, WEIR_TIMEOUT_INFINITE));
    } else {
        CHECK(status == WEIR_FAILED_PRECONDITION && to < STREAMS / 2);
        CHECK_OK(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE));
    }
    weir_event_release(event);
    place_release(&other);
}

/* Tasks of streams that die before them; their sum is looked at when all is over. */
static atomic_int own_enqueued, own_ran, own_destroyed;

static int32_t count_own(void *arg) {
    (void)arg;
    return count_run(&own_ran);
}

static void step_own_stream(member *m, place *p) {
    weir_stream *stream = make_stream(p->engine, WEIR_STREAM_ASYNCHRONOUS, p->pool, NULL);
    int n = (int)draw(m, 8);
    for (int i = 0; i < n; i++) CHECK_OK(weir_enqueue_task(stream, count_own, &own_destroyed, count_destroy));
    atomic_fetch_add(&own_enqueued, n);
    if (draw(m, 2)) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(stream);
}

typedef struct inner_wait {
    weir_stream *stream; /* NULL: everything */
    uint64_t timeout_ns;
} inner_wait;

/* Help, or an answer; but no worker that hangs. */
static int32_t wait_in_task(void *arg) {
    inner_wait *w = arg;
    weir_status status = w->stream == NULL ? weir_sync_devices(w->timeout_ns, NULL, 0, NULL)
                                           : weir_stream_synchronize(w->stream, w->timeout_ns);
    CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED || status == WEIR_FAILED_PRECONDITION);
    return WEIR_OK;
}

static void step_wait_in_task(member *m, place *p) {
    place other = visit(m);
    weir_stream *stream = p->streams[draw(m, STREAMS)];
    inner_wait w = {draw(m, 4) ? other.streams[draw(m, STREAMS)] : NULL, some_timeout(m)};
    CHECK_OK(weir_enqueue_task(stream, wait_in_task, &w, NULL));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    place_release(&other);
}

static void step_sync(member *m, place *p) {
    weir_status status = draw(m, 3) ? weir_sync_devices(some_timeout(m), NULL, 0, NULL)
                                    : weir_engine_synchronize(p->engine, some_timeout(m));
    CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED);
}

typedef struct step {
    const char *name;
    void (*run)(member *m, place *p);
} step;

static const step steps[] = {
    {"region", step_region},
    {"nested region", step_nested_region},
    {"failing region", step_failing_region},
    {"run", step_run},
    {"started run", step_start},
    {"tasks", step_tasks},
    {"event across streams", step_event},
    {"stream of its own", step_own_stream},
    {"wait in a task", step_wait_in_task},
    {"synchronisation", step_sync},
};

enum { STEPS = sizeof steps / sizeof *steps };

static atomic_ullong done_of[STEPS];

static void *live(void *arg) {
    member *m = arg;
    while (!atomic_load(&stop)) {
        uint64_t which = draw(m, STEPS);
        enter_step(m, steps[which].name);
        place p = visit(m);
        steps[which].run(m, &p);
        place_release(&p);
        atomic_fetch_add(&done_of[which], 1);
        leave_step(m);
    }
    atomic_store(&m->step, NULL);
    return NULL;
}

/* ---- Main ---------------------------------------------------------------------------------------------------------*/

/* Puts a new pool, engine, program and streams in the place of the old ones, and sees the old pool to its end. */
static void renew(member *m, int n) {
    place *p = &places[n % PLACES], fresh, old;
    enter_step(m, "making a place");
    place_fill(&fresh, n);
    pthread_mutex_lock(&p->lock);
    old = *p;
    p->host = fresh.host;
    p->pool = fresh.pool;
    p->engine = fresh.engine;
    p->program = fresh.program;
    memcpy(p->streams, fresh.streams, sizeof fresh.streams);
    pthread_mutex_unlock(&p->lock);
    enter_step(m, "releasing a place");
    place_release(&old);
    enter_step(m, "waiting for the release of a pool");
    if (old.host != NULL) test_pool_destroy(old.host);
    leave_step(m);
}

static int seconds_to_run(int argc, char **argv) {
    const char *size = getenv("WEIR_TEST_SCALE");
    if (argc > 1) return atoi(argv[1]);
    if (size != NULL && strcmp(size, "full") == 0) return 60;
    if (size == NULL || strcmp(size, "small") != 0) return 5;
    num_threads = 30;
    return 2;
}

int main(int argc, char **argv) {
    weir_runtime_info before = runtime_info();
    member *self = &members[MAX_THREADS];
    pthread_t watchdog;
    uint64_t seconds = (uint64_t)seconds_to_run(argc, argv), end = now_ns() + seconds * UINT64_C(1000000000);
    int renewed = 0;
    self->random = 4711;
    enter_step(self, "starting");
    for (; renewed < PLACES; renewed++) {
        CHECK(pthread_mutex_init(&places[renewed].lock, NULL) == 0);
        place_fill(&places[renewed], renewed);
    }
    CHECK(pthread_create(&watchdog, NULL, watch, NULL) == 0);
    for (int i = 0; i < num_threads; i++) {
        members[i].random = (uint64_t)i;
        CHECK(pthread_create(&members[i].thread, NULL, live, &members[i]) == 0);
    }
    while (now_ns() < end) {
        renew(self, renewed++);
        sleep_ms(20);
    }
    atomic_store(&stop, 1);
    enter_step(self, "joining");
    for (int i = 0; i < num_threads; i++) CHECK(pthread_join(members[i].thread, NULL) == 0);
    enter_step(self, "releasing everything");
    for (int i = 0; i < PLACES; i++) {
        place_release(&places[i]);
        if (places[i].host != NULL) test_pool_destroy(places[i].host);
        pthread_mutex_destroy(&places[i].lock);
    }
    EVENTUALLY(atomic_load(&own_destroyed) == atomic_load(&own_enqueued));
    CHECK_EQ(atomic_load(&own_ran), atomic_load(&own_enqueued));
    check_released(&before);
    atomic_store(&all_joined, 1);
    CHECK(pthread_join(watchdog, NULL) == 0);
    printf("%llu seconds, %d threads, %d pools:\n", (unsigned long long)seconds, num_threads, renewed);
    for (int i = 0; i < STEPS; i++) {
        printf("%9llu  %s\n", (unsigned long long)atomic_load(&done_of[i]), steps[i].name);
        CHECK(atomic_load(&done_of[i]) > 0);
    }
    return 0;
}
