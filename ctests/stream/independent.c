/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     independent [rounds [first]]
 *
 * Random streams of the CPU, of the emulated device and of a plug-in's, on pools of several kinds, and events between
 * them. Some functions do not end, others wait for events that were recorded or for runs that were started before. What depends on no function that
 * does not end must come to its end while it is only looked at; and no wait would never end, since each is for what was
 * queued before it. A failure prints the number of its round.
 */

#include <pthread.h>
#include <weir/device.h>
#include <weir/testing.h>

#include "make.h"
#include "test_device.h"
#include "test_pools.h"

enum { MAX_STREAMS = 12, MAX_ITEMS = 400, POOLS = 4, LIMIT_S = 60 };

typedef enum item_kind { FUNCTION, GATE, RECORD, WAIT, FILL, WAITING, RUN, KINDS } item_kind;

static const char *const names[] = {"function", "function that does not end", "record",
                                    "wait",     "fill",                       "function that waits",
                                    "run"};

typedef struct item {
    item_kind kind;
    int stream, awaited; /* its stream; the record or the run that it waits for */
    int is_held;         /* it depends on a gate */
    atomic_int done;
    weir_event *event;
    weir_run *run;
    weir_tensor *result;
    gate *gate;
} item;

typedef struct line {
    weir_engine *engine;
    weir_stream *stream;
    weir_tensor *tensor; /* NULL: of the CPU */
    int pool;            /* -1: none */
    int is_held, has_gate;
    gate gate;
} line;

static uint64_t random_state, round_number;
static line lines[MAX_STREAMS];
static int num_lines, num_items;
static item items[MAX_ITEMS];
static weir_program *program;
static weir_tensor *input;

/* splitmix64 (Steele, Lea and Flood 2014). */
static int draw(int below) {
    uint64_t z = (random_state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (int)((z ^ (z >> 31)) % (uint64_t)below);
}

static int32_t be_done(void *arg) {
    atomic_store(&((item *)arg)->done, 1);
    return WEIR_OK;
}

/* A worker may be refused the wait while nobody does the work, but not because it would never end. */
static int32_t wait_for_another(void *arg) {
    const item *awaited = &items[((const item *)arg)->awaited];
    weir_status status = awaited->kind == RUN ? weir_run_synchronize(awaited->run, WEIR_TIMEOUT_INFINITE)
                                              : weir_event_synchronize(awaited->event, WEIR_TIMEOUT_INFINITE);
    if (status != WEIR_OK) {
        CHECK_EQ(status, WEIR_FAILED_PRECONDITION);
        CHECK_TEXT(weir_last_error_message(), "would block a worker");
    }
    return be_done(arg);
}

static void queue_item(item *i) {
    const line *l = &lines[i->stream];
    switch (i->kind) {
    case FUNCTION: CHECK_OK(weir_enqueue_task(l->stream, be_done, i, NULL)); break;
    case GATE: CHECK_OK(weir_enqueue_task(l->stream, pass_gate, i->gate, NULL)); break;
    case RECORD: CHECK_OK(weir_event_record(i->event, l->stream)); break;
    case WAIT: CHECK_OK(weir_stream_wait_event(l->stream, items[i->awaited].event)); break;
    case FILL: CHECK_OK(weir_enqueue_fill(l->stream, l->tensor, 3)); break;
    case WAITING: CHECK_OK(weir_enqueue_task(l->stream, wait_for_another, i, NULL)); break;
    case RUN: CHECK_OK(weir_program_start(program, l->stream, &input, 1, &i->result, 1, NULL, &i->run)); break;
    case KINDS: break;
    }
}

static int is_done(item *i) {
    int32_t done = 1;
    if (i->kind == FUNCTION || i->kind == WAITING) return atomic_load(&i->done);
    if (i->kind == RECORD) CHECK_OK(weir_event_query(i->event, &done));
    if (i->kind == RUN) CHECK_OK(weir_run_query(i->run, &done));
    return done;
}

/* Whether functions on the stream keep only threads that are there for them. */
static int may_be_kept(const line *l) {
    return l->pool <= 0;
}

/* The next item, if what was drawn makes sense. */
static void draw_item(void) {
    item *i = &items[num_items];
    line *l = &lines[draw(num_lines)];
    *i = (item){.kind = (item_kind)draw(KINDS), .stream = (int)(l - lines)};
    if (i->kind == FILL && l->tensor == NULL) return;
    if (i->kind == RUN && (l->tensor != NULL || draw(2))) return;
    if ((i->kind == GATE && (l->has_gate || draw(4) > 0)) || (i->kind == WAITING && draw(3) > 0)) return;
    if ((i->kind == GATE || i->kind == WAITING) && !may_be_kept(l)) return;
    if (i->kind == WAIT || i->kind == WAITING) {
        i->awaited = num_items > 0 ? draw(num_items) : 0;
        if (num_items == 0) return;
        const item_kind awaited = items[i->awaited].kind;
        if (awaited != RECORD && (awaited != RUN || i->kind == WAIT)) return;
        l->is_held |= items[i->awaited].is_held;
    }
    if (i->kind == GATE) {
        i->gate = &l->gate;
        l->is_held = l->has_gate = 1;
    }
    if (i->kind == RECORD) i->event = make_event(l->engine, WEIR_EVENT_DEFAULT);
    if (i->kind == RUN) i->result = make_tensor(l->engine, vector_desc(16));
    i->is_held = l->is_held;
    num_items++;
}

static void *queue_all(void *arg) {
    (void)arg;
    for (int i = 0; i < num_items; i++) queue_item(&items[i]);
    return NULL;
}

static void expect_the_end(item *i, uint64_t begun) {
    while (!is_done(i)) {
        sleep_ns(50000);
        if (now_ns() - begun < LIMIT_S * UINT64_C(1000000000)) continue;
        char text[160];
        snprintf(text, sizeof text, "round %llu: item %d, a %s of stream %d on pool %d,",
                 (unsigned long long)round_number, (int)(i - items), names[i->kind], i->stream, lines[i->stream].pool);
        check_failed(__FILE__, __LINE__, text, "does not come");
    }
}

static void make_line(line *l, weir_engine *engine, weir_engine_kind kind, int pool, weir_threadpool **pools) {
    weir_stream_attr *attr = NULL;
    *l = (line){.engine = engine, .pool = pool};
    CHECK_OK(weir_stream_attr_create(kind, &attr));
    if (pool >= 0) CHECK_OK(weir_stream_attr_set_threadpool(attr, pools[pool]));
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &l->stream));
    weir_stream_attr_destroy(attr);
    if (kind != WEIR_ENGINE_CPU) l->tensor = make_tensor(engine, vector_desc(16));
}

static int32_t copy_all(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    memcpy(out->data, in->data, 16 * sizeof(float));
    return WEIR_OK;
}

/* Of one node. */
static weir_program *make_program(weir_engine *engine) {
    const weir_tensor_desc desc = vector_desc(16);
    weir_kernel *kernel = make_unary_kernel(engine, "copy", copy_all, NULL, &desc);
    weir_graph *graph = make_graph("run");
    weir_value x, y;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "copy", kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program *made = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    return made;
}

static void one_round(void) {
    weir_threadpool *pools[POOLS];
    test_pool *made[POOLS];
    weir_engine *engines[3];
    weir_engine_kind kinds[3] = {WEIR_ENGINE_CPU, WEIR_ENGINE_EMULATED};
    random_state = round_number;
    num_lines = 3 + draw(MAX_STREAMS - 2);
    /* The first one has a thread for each function that does not end or that waits. */
    made[0] = test_pool_create_exact(draw(2) ? POOL_FIFO : POOL_LIFO, MAX_STREAMS + 2, &pools[0]);
    made[1] = test_pool_create_exact(POOL_INLINE, 1, &pools[1]);
    made[2] = test_pool_create_exact(POOL_REFUSING, 1, &pools[2]);
    made[3] = test_pool_create_exact(POOL_HALF, 2, &pools[3]);
    const uint64_t capabilities = WEIR_DEVICE_OWN_MEMORY | (draw(2) ? WEIR_DEVICE_CALLBACK : 0) |
                                  (draw(2) ? WEIR_DEVICE_CONCURRENT : 0) | (draw(2) ? WEIR_DEVICE_IDLE_QUERY : 0);
    const weir_device_vtable vtable = test_device_vtable();
    test_device *device = test_device_create(capabilities);
    CHECK_OK(weir_device_register("board", 0, &vtable, device));
    CHECK_OK(weir_engine_kind_from_name("board", &kinds[2]));
    for (int i = 0; i < 3; i++) CHECK_OK(weir_engine_create(kinds[i], 0, NULL, &engines[i]));
    for (int i = 0; i < num_lines; i++) {
        int engine = draw(4) % 3;
        make_line(&lines[i], engines[engine], kinds[engine], draw(POOLS + 1) - 1, pools);
    }
    program = make_program(engines[0]);
    input = make_tensor(engines[0], vector_desc(16));
    fill(input, 1);
    int length = 20 + draw(MAX_ITEMS - 30);
    for (num_items = 0; num_items < length;) draw_item();

    pthread_t submitter;
    uint64_t begun = now_ns();
    CHECK_EQ(pthread_create(&submitter, NULL, queue_all, NULL), 0);
    CHECK_EQ(pthread_join(submitter, NULL), 0);
    for (int i = 0; i < num_items; i++) {
        if (!items[i].is_held) expect_the_end(&items[i], begun);
    }
    for (int i = 0; i < num_lines; i++) open_gate(&lines[i].gate);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    for (int i = 0; i < num_items; i++) {
        CHECK(is_done(&items[i]));
        if (items[i].kind == RUN) CHECK(memcmp(floats(items[i].result), floats(input), 16 * sizeof(float)) == 0);
        weir_event_release(items[i].event);
        weir_run_release(items[i].run);
        weir_tensor_release(items[i].result);
    }
    weir_program_release(program);
    weir_tensor_release(input);
    for (int i = 0; i < num_lines; i++) {
        weir_tensor_release(lines[i].tensor);
        weir_stream_release(lines[i].stream);
    }
    for (int i = 0; i < 3; i++) weir_engine_release(engines[i]);
    for (int i = 0; i < POOLS; i++) {
        weir_threadpool_release(pools[i]);
        test_pool_destroy(made[i]);
    }
    CHECK_OK(weir_device_unregister("board", 0));
    EVENTUALLY(test_device_alive(device) == 0 && test_device_releases(device) == 1);
    test_device_destroy(device);
}

int main(int argc, char **argv) {
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)scale(300);
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    for (round_number = first; round_number < first + rounds; round_number++) one_round();
    check_released(&before);
    return 0;
}
