/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The matrix of docs/waiting.md: every kind of wait, in every place that it may be called from. Each cell is executed,
 * several times: it works, or it is refused with the text that the table says, and always the same.
 *
 *     meetings docs/waiting.md    compares with the table there
 *     meetings                    prints the table
 */

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <weir/domain.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"
#include "weir/testing.h"

enum { ROUNDS = 3, WIDTH = 16, LATER_NS = 100000000, MANY = 1 << 24 };

/* What is waited for is queued in the very place, just before the wait: nobody has begun it. */
typedef struct meeting {
    weir_threadpool *pool;      /* of the work that is waited for */
    weir_engine *engine;        /* uses it */
    weir_stream *stream;        /* has the work */
    weir_stream *own;           /* whose work the place is, if it is a stream's */
    weir_event *event, *own_event;
    weir_program *plain, *late; /* three tasks; a kernel that completes later */
    weir_kernel *kernel;        /* that kernel */
    weir_stream *device;        /* an emulated one */
    weir_tensor *there;         /* in its memory */
    weir_threadpool *spare;     /* nobody uses it */
    weir_run *run;
    int wait;
    atomic_int ran;             /* tasks that were waited for */
    _Atomic(weir_completion *) completion;
    weir_status status;
    char text[512];
    atomic_int over;
} meeting;

static meeting here; /* the one in hand */

/* ---- The waits ---------------------------------------------------------------------------------- */

static weir_status by_stream(meeting *m) {
    CHECK_OK(weir_enqueue_task(m->stream, count_run, &m->ran, NULL));
    return weir_stream_synchronize(m->stream, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_own_stream(meeting *m) {
    CHECK_OK(weir_enqueue_task(m->own, count_run, &m->ran, NULL));
    return weir_stream_synchronize(m->own, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_late_stream(meeting *m) {
    CHECK_OK(weir_enqueue(m->stream, m->kernel, NULL, 0, NULL, 0));
    CHECK_OK(weir_enqueue_task(m->stream, count_run, &m->ran, NULL));
    return weir_stream_synchronize(m->stream, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_circle(meeting *m) {
    CHECK_OK(weir_event_record(m->own_event, m->own));
    CHECK_OK(weir_stream_wait_event(m->stream, m->own_event));
    return weir_stream_synchronize(m->stream, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_device_stream(meeting *m) {
    CHECK_OK(weir_enqueue_fill(m->device, m->there, 1));
    return weir_stream_synchronize(m->device, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_event(meeting *m) {
    CHECK_OK(weir_enqueue_task(m->stream, count_run, &m->ran, NULL));
    CHECK_OK(weir_event_record(m->event, m->stream));
    return weir_event_synchronize(m->event, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_run_wait(meeting *m) {
    CHECK_OK(weir_program_start(m->plain, m->stream, NULL, 0, NULL, 0, NULL, &m->run));
    return weir_run_synchronize(m->run, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_late_run_wait(meeting *m) {
    CHECK_OK(weir_program_start(m->late, m->stream, NULL, 0, NULL, 0, NULL, &m->run));
    return weir_run_synchronize(m->run, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_run(meeting *m) {
    return weir_program_run(m->plain, NULL, NULL, 0, NULL, 0, NULL);
}

static weir_status by_late_run(meeting *m) {
    return weir_program_run(m->late, NULL, NULL, 0, NULL, 0, NULL);
}

static weir_status by_engine(meeting *m) {
    CHECK_OK(weir_enqueue_task(m->stream, count_run, &m->ran, NULL));
    return weir_engine_synchronize(m->engine, WEIR_TIMEOUT_INFINITE);
}

static weir_status by_domain(meeting *m) {
    CHECK_OK(weir_enqueue_task(m->stream, count_run, &m->ran, NULL));
    return weir_sync_domain(NULL, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL);
}

static weir_status by_devices(meeting *m) {
    CHECK_OK(weir_enqueue_task(m->stream, count_run, &m->ran, NULL));
    return weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL);
}

static weir_status by_scope(meeting *m) {
    uint64_t scope = 0;
    CHECK_OK(weir_async_scope_begin(&scope));
    CHECK_OK(weir_enqueue_task(m->stream, count_run, &m->ran, NULL));
    return weir_async_scope_end(scope, WEIR_TIMEOUT_INFINITE);
}

static int32_t queue_one(void *arg) {
    meeting *m = arg;
    return (int32_t)weir_enqueue_task(m->stream, count_run, &m->ran, NULL);
}

static weir_status by_time(meeting *m) {
    uint64_t time = 0;
    return weir_time_ns(m->stream, queue_one, m, 1, &time);
}

static int32_t add_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    atomic_fetch_add((atomic_int *)arg, (int)(end - begin));
    return WEIR_OK;
}

static weir_status by_region(meeting *m) {
    const weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    return weir_parallel_for(m->pool, 8, &hint, add_range, &m->ran);
}

static weir_status by_close(meeting *m) {
    return weir_threadpool_close(m->spare, WEIR_TIMEOUT_INFINITE);
}

static const struct wait {
    const char *name;
    weir_status (*call)(meeting *m);
    int tasks; /* what has run when it works */
} waits[] = {
    {"weir_stream_synchronize", by_stream, 1},
    {"the same, the stream of a device", by_device_stream, 0},
    {"the same, behind a kernel that completes later", by_late_stream, 1},
    {"the same, the stream whose work calls", by_own_stream, 1},
    {"the same, a stream that waits for that one", by_circle, 0},
    {"weir_event_synchronize", by_event, 1},
    {"weir_run_synchronize", by_run_wait, 3},
    {"the same, a kernel that completes later", by_late_run_wait, 0},
    {"weir_program_run", by_run, 3},
    {"the same, a kernel that completes later", by_late_run, 0},
    {"weir_parallel_for", by_region, 8},
    {"weir_engine_synchronize", by_engine, 1},
    {"weir_sync_domain", by_domain, 1},
    {"weir_sync_devices", by_devices, 1},
    {"weir_async_scope_end", by_scope, 1},
    {"weir_time_ns", by_time, 1},
    {"weir_threadpool_close", by_close, 0},
};

enum { WAITS = sizeof waits / sizeof *waits };

/* The wait of this meeting, once. */
static void meet(void) {
    meeting *m = &here;
    m->status = waits[m->wait].call(m);
    snprintf(m->text, sizeof m->text, "%s", m->status == WEIR_OK ? "" : weir_last_error_message());
    atomic_store(&m->over, 1);
}

/* ---- The places --------------------------------------------------------------------------------- */

static void *meet_in_thread(void *arg) {
    meet();
    return arg;
}

static int32_t meet_in_task(void *arg) {
    (void)arg;
    meet();
    return WEIR_OK;
}

static void meet_in_destroy(void *arg) {
    (void)arg;
    meet();
}

static int32_t do_nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

static int32_t take_long(void *arg) {
    (void)arg;
    sleep_ns(LATER_NS);
    return WEIR_OK;
}

static int32_t meet_in_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    meet();
    return WEIR_OK;
}

static int32_t meet_in_kernel(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    meet();
    return WEIR_OK;
}

static void meet_in_job(void *arg, int32_t index) {
    (void)arg, (void)index;
    meet();
}

static void meet_in_notice(void *ctx, weir_status status, weir_run *run) {
    (void)ctx, (void)run;
    CHECK_EQ(status, WEIR_OK);
    meet();
}

typedef enum place {
    HOST, SAME_KNOWN, SAME, OTHER_KNOWN, OTHER, POOL_TASK, LANE_TASK, NODE, HELPER, REGION, DEVICE_THREAD, NOTICE, RELEASE, PLACES
} place;

static const char *const places[PLACES] = {
    "a thread of the host's",
    "a worker of the pool that has the work; the pool knows its threads (`in_parallel`)",
    "the same, of a pool that does not",
    "a worker of another pool that knows its threads",
    "the same, of a pool that does not",
    "a task of a stream on a pool",
    "a task of a stream with a lane",
    "a node of a run, in the thread that runs it",
    "a node of a run, in a helper",
    "a piece of a region",
    "a kernel on a thread of a device's",
    "the function of a notice",
    "a release function",
};

static void *run_program(void *program) {
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    return NULL;
}

static void *run_region(void *pool) {
    CHECK_OK(weir_parallel_for(pool, 1, NULL, meet_in_range, NULL));
    return NULL;
}

/* Two nodes that need each other: the one that is not with the owner of the run meets. */
typedef struct pair {
    pthread_t owner;
    atomic_int begun;
} pair;

static int32_t one_of_two(void *arg) {
    pair *two = arg;
    atomic_fetch_add(&two->begun, 1);
    EVENTUALLY(atomic_load(&two->begun) == 2);
    if (pthread_equal(pthread_self(), two->owner)) {
        EVENTUALLY(atomic_load(&here.over));
    } else {
        meet();
    }
    return WEIR_OK;
}

typedef struct owned {
    pair two;
    weir_program *program;
} owned;

static void *run_owned(void *arg) {
    owned *it = arg;
    it->two.owner = pthread_self();
    return run_program(it->program);
}

static weir_program *tasks_program(weir_engine *engine, weir_host_fn fn, void *arg, int count) {
    weir_graph *graph = make_graph("tasks");
    weir_program *program = NULL;
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "t%d", i);
        CHECK_OK(weir_graph_add_task(graph, name, fn, arg, NULL, 50000000, NULL));
    }
    const weir_compile_options options = {.struct_size = sizeof options, .hop_ns = WEIR_HOP_NONE};
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_graph_destroy(graph);
    return program;
}

static int32_t start_later(void *user, weir_kernel_context *context, weir_completion *done) {
    meeting *m = user;
    (void)context;
    atomic_store(&m->completion, done);
    return WEIR_OK;
}

/* Kernels that complete later: when the wait was refused, or has had the time to be. */
static void *complete(void *arg) {
    (void)arg;
    for (uint64_t begun = now_ns();; sleep_ns(200000)) {
        meeting *m = &here;
        weir_completion *done = atomic_load(&m->completion);
        if (done == NULL) {
            begun = now_ns();
        } else if (atomic_load(&m->over) || now_ns() - begun > LATER_NS) {
            atomic_store(&m->completion, NULL);
            CHECK_OK(weir_completion_done(done, WEIR_OK, NULL));
        }
    }
    return NULL;
}

/* A thread of the host's begins it, so that this one can say which cell hangs. */
static pthread_t thread;
static bool has_thread;

static void in_thread(void *(*begin)(void *), void *arg) {
    CHECK_EQ(pthread_create(&thread, NULL, begin, arg), 0);
    has_thread = true;
}

/* A pool whose threads the host has jobs for. */
typedef struct host_pool {
    test_pool *pool;
    weir_threadpool_vtable vtable;
    weir_threadpool *handle;
} host_pool;

static host_pool make_pool(bool knows) {
    host_pool it = {.pool = test_pool_create_bare(knows ? POOL_FULL : POOL_FIFO, 2)};
    it.vtable = test_pool_vtable(it.pool);
    CHECK_EQ(it.vtable.in_parallel != NULL, knows);
    CHECK_OK(weir_threadpool_create(&it.vtable, it.pool, NULL, &it.handle));
    return it;
}

static void release_pool(host_pool it) {
    weir_threadpool_release(it.handle);
    test_pool_destroy(it.pool);
}

static void give_job(const host_pool *to) {
    const weir_task_hint hint = {.struct_size = sizeof hint};
    CHECK_EQ(to->vtable.schedule(to->pool, meet_in_job, NULL, &hint), 0);
}

static void begin(place place, meeting *m, const host_pool *same, const host_pool *other, weir_stream *own, owned *program,
                  weir_stream *device, weir_kernel *on_device, weir_tensor **memory) {
    const weir_notice notice = {.struct_size = sizeof notice, .notify = meet_in_notice};
    switch (place) {
    case HOST: in_thread(meet_in_thread, NULL); break;
    case SAME_KNOWN:
    case SAME: give_job(same); break;
    case OTHER_KNOWN:
    case OTHER: give_job(other); break;
    case POOL_TASK:
    case LANE_TASK: CHECK_OK(weir_enqueue_task(own, meet_in_task, NULL, NULL)); break;
    case NODE: in_thread(run_program, program->program); break;
    case HELPER: in_thread(run_owned, program); break;
    case REGION: in_thread(run_region, m->pool); break;
    case DEVICE_THREAD: CHECK_OK(weir_enqueue(device, on_device, &memory[0], 1, &memory[1], 1)); break;
    case NOTICE: {
        gate held = {0};
        CHECK_OK(weir_enqueue_task(own, pass_gate, &held, NULL));
        CHECK_OK(weir_event_record(m->event, own));
        CHECK_OK(weir_event_notify(m->event, &notice));
        open_gate(&held);
        EVENTUALLY(atomic_load(&held.begun));
        EVENTUALLY(atomic_load(&m->over));
        break;
    }
    default: CHECK_OK(weir_enqueue_task(own, do_nothing, NULL, meet_in_destroy));
    }
}

/* One cell, in a world of its own. */
static void run_cell(int wait, place place) {
    meeting *m = &here;
    bool same_knows = place != SAME && place != OTHER_KNOWN && place != OTHER, other_knows = place != OTHER;
    host_pool same = make_pool(same_knows), other = make_pool(other_knows);
    memset(m, 0, sizeof *m);
    m->wait = wait;
    m->pool = same.handle;
    m->engine = make_engine(m->pool);
    m->stream = make_stream(m->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waited for");
    m->event = make_event(m->engine, WEIR_EVENT_DEFAULT);
    m->plain = tasks_program(m->engine, count_run, &m->ran, 3);
    host_pool spare = make_pool(true);
    m->spare = spare.handle;
    weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "later", .compute_async = start_later, .user = m};
    CHECK_OK(weir_kernel_create_host(m->engine, &desc, &m->kernel));
    weir_graph *graph = make_graph("late");
    CHECK_OK(weir_graph_add_kernel(graph, "later", m->kernel, NULL, 0, NULL, 0, NULL));
    m->late = compile(graph, m->engine);
    weir_graph_destroy(graph);
    weir_engine *emulated = NULL;
    weir_tensor_desc like = vector_desc(WIDTH);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &emulated));
    CHECK_OK(weir_stream_create(emulated, WEIR_STREAM_ASYNCHRONOUS, NULL, &m->device));
    m->there = make_tensor(emulated, waits[wait].call == by_device_stream ? vector_desc(MANY) : like);

    weir_engine *lanes = make_engine(NULL);
    weir_stream *own = make_stream(place == LANE_TASK ? lanes : m->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "own");
    weir_stream *device = NULL;
    CHECK_OK(weir_stream_create(emulated, WEIR_STREAM_ASYNCHRONOUS, NULL, &device));
    m->own = place == DEVICE_THREAD ? device : own;
    m->own_event = make_event(place == DEVICE_THREAD ? emulated : place == LANE_TASK ? lanes : m->engine, WEIR_EVENT_DEFAULT);
    weir_kernel *on_device = make_unary_kernel(emulated, "meets", meet_in_kernel, NULL, &like);
    weir_tensor *memory[2] = {make_tensor(emulated, like), make_tensor(emulated, like)};
    CHECK_OK(weir_enqueue_fill(device, memory[0], 0));
    CHECK_OK(weir_stream_synchronize(device, WEIR_TIMEOUT_INFINITE));
    owned program = {.two = {0}};
    program.program = place == HELPER ? tasks_program(m->engine, one_of_two, &program.two, 2)
                                      : tasks_program(m->engine, meet_in_task, NULL, 1);

    /* There a wait looks for as long as it may spin, and what is done by then is done. */
    if (place == DEVICE_THREAD) CHECK_OK(weir_enqueue_task(m->stream, take_long, NULL, NULL));
    begin(place, m, &same, &other, own, &program, device, on_device, memory);
    uint64_t begun = now_ns();
    while (!atomic_load(&m->over)) {
        if (now_ns() - begun > UINT64_C(30000000000)) {
            fprintf(stderr, "%s, called from %s, does not end\n", waits[wait].name, places[place]);
            abort();
        }
        sleep_ns(20000);
    }
    if (has_thread) CHECK_EQ(pthread_join(thread, NULL), 0);
    has_thread = false;
    /* What was refused is done all the same. */
    if (m->run != NULL) CHECK_OK(weir_run_synchronize(m->run, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    if (m->status == WEIR_OK) CHECK_EQ(atomic_load(&m->ran), waits[wait].tasks);
    weir_run_release(m->run);
    weir_program_release(program.program);
    weir_tensor_release(memory[0]);
    weir_tensor_release(memory[1]);
    weir_kernel_release(on_device);
    weir_stream_release(device);
    weir_stream_release(own);
    weir_engine_release(lanes);
    weir_tensor_release(m->there);
    weir_stream_release(m->device);
    weir_engine_release(emulated);
    weir_program_release(m->late);
    weir_kernel_release(m->kernel);
    weir_program_release(m->plain);
    weir_event_release(m->event);
    weir_event_release(m->own_event);
    weir_stream_release(m->stream);
    weir_engine_release(m->engine);
    release_pool(spare);
    release_pool(same);
    release_pool(other);
}

/* ---- The table ---------------------------------------------------------------------------------- */

/* The texts of refusals; the letter stands for them in the table. */
static const char *const refusals[] = {
    "it was called from inside of a kernel, a task or a callback",
    "would block a worker of a thread pool",
    "from inside that stream's own work would never end",
    "that stream waits for the work that calls",
    "would hold up a thread that a device needs",
    "waiting for them on a device's own thread would hold the device up",
    "cannot be closed inside of a task of its own, or on a thread that a device needs",
};

enum { REFUSALS = sizeof refusals / sizeof *refusals };

static bool is_on_a_stream(place place) {
    return place == POOL_TASK || place == LANE_TASK || place == DEVICE_THREAD || place == NOTICE || place == RELEASE;
}

/* '+' = works, 'a' = refused with the first text, '-' = cannot be. */
static char cell(int wait, place place) {
    if ((waits[wait].call == by_own_stream || waits[wait].call == by_circle) && !is_on_a_stream(place)) return '-';
    char all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        run_cell(wait, place);
        char now = '+';
        if (here.status != WEIR_OK) {
            int which = 0;
            while (which < REFUSALS && strstr(here.text, refusals[which]) == NULL) which++;
            if (here.status != WEIR_FAILED_PRECONDITION || which == REFUSALS) {
                fprintf(stderr, "%s, called from %s: %d, %s\n", waits[wait].name, places[place], (int)here.status, here.text);
            }
            now = which < REFUSALS ? (char)('a' + which) : '?';
        }
        if (all != 0 && all != now) {
            fprintf(stderr, "%s, called from %s: %c, and then %c\n", waits[wait].name, places[place], all, now);
            return '?';
        }
        all = now;
    }
    return all;
}

static void add(char **at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    *at += vsprintf(*at, format, args);
    va_end(args);
}

int main(int argc, char **argv) {
    CHECK_OK(weir_emulated_register());
    static char table[1 << 14], docs[1 << 17];
    char *at = table;
    bool used[REFUSALS] = {false}, is_broken = false;
    weir_runtime_info before = runtime_info();
    pthread_t completer;
    CHECK_EQ(pthread_create(&completer, NULL, complete, NULL), 0);
    add(&at, "| call |");
    for (int place = 0; place < PLACES; place++) add(&at, " %d |", place + 1);
    add(&at, "\n|---|");
    for (int place = 0; place < PLACES; place++) add(&at, "---|");
    add(&at, "\n");
    for (int wait = 0; wait < WAITS; wait++) {
        add(&at, waits[wait].name[0] == 't' ? "| %s |" : "| `%s` |", waits[wait].name);
        for (int place = 0; place < PLACES; place++) {
            char c = cell(wait, (enum place)place);
            is_broken |= c == '?';
            if (c >= 'a' && c < 'a' + REFUSALS) used[c - 'a'] = true;
            add(&at, " %c |", c);
        }
        add(&at, "\n");
    }
    add(&at, "\n");
    for (int place = 0; place < PLACES; place++) add(&at, "%d. %s\n", place + 1, places[place]);
    add(&at, "\n| | |\n|---|---|\n| + | works |\n| - | cannot be |\n");
    for (int i = 0; i < REFUSALS; i++) {
        if (used[i]) add(&at, "| %c | FAILED_PRECONDITION: \"... %s ...\" |\n", 'a' + i, refusals[i]);
    }
    check_released(&before);
    if (argc < 2) {
        fputs(table, stdout);
        return is_broken;
    }
    FILE *file = fopen(argv[1], "r");
    CHECK(file != NULL);
    CHECK(fread(docs, 1, sizeof docs - 1, file) > 0);
    fclose(file);
    if (strstr(docs, table) == NULL || is_broken) {
        fprintf(stderr, "%s does not have this table:\n\n%s", argv[1], table);
        return 1;
    }
    return 0;
}
