/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Engines on a plug-in's device, as a program uses them: tensors, copies, kernels, streams, events, waits, and what
 * fails.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/device.h>

#include "make.h"
#include "test_device_board.h"
#include "test_device_kernels.h"
#include "weir/testing.h"

static const uint64_t everything = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_TIMING |
                                   WEIR_DEVICE_PEER_COPY | WEIR_DEVICE_CALLBACK | WEIR_DEVICE_NATIVE_HANDLE;


static weir_engine *engine_of(const board *b) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(b->kind, 0, NULL, &engine));
    return engine;
}

static weir_engine *cpu_engine(void) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    return engine;
}

static weir_stream *stream_on(weir_engine *engine) {
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    return stream;
}

/* ---- One program on the device: relu(a * b + bias) * 3, in one status ---- */

enum { ROWS = 3, INNER = 4, COLUMNS = 2 };

typedef struct objects {
    weir_engine *cpu, *engine;
    weir_stream *stream, *other;
    weir_event *event;
    weir_tensor *host[4], *there[5];
    weir_kernel *matmul, *scale;
} objects;

static float a[ROWS * INNER], b[INNER * COLUMNS], bias[COLUMNS], result[ROWS * COLUMNS];

static weir_status make_objects(const board *on, objects *o) {
    float *data[4] = {a, b, bias, result};
    weir_tensor_desc descs[4] = {{WEIR_F32, 2, {ROWS, INNER}}, {WEIR_F32, 2, {INNER, COLUMNS}}, {WEIR_F32, 1, {COLUMNS}}, {WEIR_F32, 2, {ROWS, COLUMNS}}};
    weir_matmul_desc matmul = {.struct_size = sizeof matmul, .flags = WEIR_MATMUL_BIAS, .activation = WEIR_ACTIVATION_RELU};
    scale_attributes three = {3};
    weir_named_kernel_desc scale = {.struct_size = sizeof scale, .operation = "scale", .attributes = &three,
                                    .attributes_bytes = sizeof three, .num_inputs = 1, .inputs = &descs[3],
                                    .num_outputs = 1, .outputs = &descs[3]};
    weir_status status = weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &o->cpu);
    if (status == WEIR_OK) status = weir_engine_create(on->kind, 0, NULL, &o->engine);
    if (status == WEIR_OK) status = weir_stream_create(o->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &o->stream);
    if (status == WEIR_OK) status = weir_stream_create(o->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &o->other);
    if (status == WEIR_OK) status = weir_event_create(o->engine, WEIR_EVENT_DEFAULT, &o->event);
    for (int i = 0; i < 4 && status == WEIR_OK; i++) status = weir_tensor_create(o->cpu, &descs[i], OVER(data[i]), &o->host[i]);
    for (int i = 0; i < 5 && status == WEIR_OK; i++) status = weir_tensor_create(o->engine, &descs[i < 4 ? i : 3], NULL, &o->there[i]);
    if (status == WEIR_OK) status = weir_kernel_create_matmul(o->engine, &matmul, NULL, &o->matmul);
    if (status == WEIR_OK) status = weir_kernel_create_named(o->engine, &scale, NULL, &o->scale);
    return status;
}

static weir_status run_objects(objects *o) {
    weir_status status = weir_enqueue_fill(o->stream, o->there[3], 255);
    for (int i = 0; i < 3 && status == WEIR_OK; i++) status = weir_enqueue_copy(o->stream, o->host[i], o->there[i]);
    if (status == WEIR_OK) status = weir_enqueue(o->stream, o->matmul, o->there, 3, &o->there[3], 1);
    if (status == WEIR_OK) status = weir_event_record(o->event, o->stream);
    /* The rest on another stream. */
    if (status == WEIR_OK) status = weir_stream_wait_event(o->other, o->event);
    if (status == WEIR_OK) status = weir_enqueue(o->other, o->scale, &o->there[3], 1, &o->there[4], 1);
    if (status == WEIR_OK) status = weir_enqueue_copy(o->other, o->there[4], o->there[3]);
    if (status == WEIR_OK) status = weir_enqueue_copy(o->other, o->there[3], o->host[3]);
    if (status == WEIR_OK) status = weir_stream_synchronize(o->other, WEIR_TIMEOUT_INFINITE);
    return status;
}

static void release_objects(objects *o) {
    weir_kernel_release(o->scale);
    weir_kernel_release(o->matmul);
    for (int i = 0; i < 5; i++) weir_tensor_release(o->there[i]);
    for (int i = 0; i < 4; i++) weir_tensor_release(o->host[i]);
    weir_event_release(o->event);
    weir_stream_release(o->other);
    weir_stream_release(o->stream);
    weir_engine_release(o->engine);
    weir_engine_release(o->cpu);
}

/* Everything once. Returns the code of the first failure; `text` says how it was told. */
static weir_status run_once(const board *on, char *text, size_t capacity) {
    objects o;
    memset(&o, 0, sizeof o);
    memset(result, 0, sizeof result);
    weir_status status = make_objects(on, &o);
    if (status == WEIR_OK) status = run_objects(&o);
    snprintf(text, capacity, "%s", status == WEIR_OK ? "" : weir_last_error_message());
    /* A stream that has failed refuses what comes later, and one that waited for it was aborted: which of them was the
     * first? */
    if (status == WEIR_FAILED_PRECONDITION || status == WEIR_ABORTED) {
        weir_stream *const streams[2] = {o.stream, o.other};
        for (int i = 0; i < 2; i++) {
            weir_failure failure = {.struct_size = sizeof failure};
            if (streams[i] == NULL) continue;
            CHECK_OK(weir_stream_get_failure(streams[i], &failure));
            if (failure.code == WEIR_OK || failure.code == WEIR_ABORTED) continue;
            status = failure.code;
            break;
        }
    }
    /* What is under way reads and writes the arrays. */
    if (o.stream != NULL) (void)!weir_stream_synchronize(o.stream, WEIR_TIMEOUT_INFINITE);
    if (o.other != NULL) (void)!weir_stream_synchronize(o.other, WEIR_TIMEOUT_INFINITE);
    release_objects(&o);
    return status;
}

static void fill_inputs(void) {
    for (int i = 0; i < ROWS * INNER; i++) a[i] = (float)(i % 5) - 2;
    for (int i = 0; i < INNER * COLUMNS; i++) b[i] = (float)(i % 3) - 1;
    for (int i = 0; i < COLUMNS; i++) bias[i] = (float)i + 0.5f;
}

static void check_result(void) {
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            float sum = bias[j];
            for (int k = 0; k < INNER; k++) sum += a[i * INNER + k] * b[k * COLUMNS + j];
            CHECK(result[i * COLUMNS + j] == (sum < 0 ? 0 : sum) * 3);
        }
    }
}

static void test_use(uint64_t capabilities) {
    char text[1024];
    board on = plug_in("board", capabilities);
    for (int round = 0; round < scale(100); round++) {
        if (run_once(&on, text, sizeof text) != WEIR_OK) check_failed(__FILE__, __LINE__, "run_once", text);
        check_result();
    }
    pull_out(&on);
}

/* What a device lacks is said with its name. */
static void test_refusals(void) {
    board on = plug_in("plain-board", 0);
    weir_engine *engine = engine_of(&on), *cpu = cpu_engine();
    weir_kernel *kernel = NULL;
    weir_tensor *tensor = NULL, *far = NULL;
    weir_packed_weights *packed = NULL;
    weir_tensor_desc desc = vector_desc(4), matrix = {WEIR_F32, 2, {4, 4}}, huge = vector_desc(INT64_C(1) << 40);
    weir_eltwise_desc tanh = {.struct_size = sizeof tanh, .op = WEIR_ELTWISE_TANH};
    CHECK_CODE(weir_kernel_create_eltwise(engine, &tanh, NULL, &kernel), WEIR_UNIMPLEMENTED, "engine plain-board:0");
    CHECK_TEXT(weir_last_error_message(), "the test device has no such kernel");
    weir_host_kernel_desc host = {.struct_size = sizeof host, .name = "matmul", .compute = NULL};
    CHECK_CODE(weir_kernel_create_host(engine, &host, &kernel), WEIR_INVALID_ARGUMENT, "compute is NULL");
    weir_named_kernel_desc named = {.struct_size = sizeof named, .operation = "scale"};
    CHECK_CODE(weir_kernel_create_named(cpu, &named, NULL, &kernel), WEIR_UNIMPLEMENTED, "engine cpu:0 has no kernel 'scale'");
    CHECK_CODE(weir_kernel_create_named(engine, &named, NULL, &kernel), WEIR_UNIMPLEMENTED, "kernel 'scale'");
    CHECK_CODE(weir_tensor_create(engine, &huge, NULL, &tensor), WEIR_RESOURCE_EXHAUSTED, "the test device's memory is full");
    CHECK_TEXT(weir_last_error_message(), "tensor f32[1099511627776]");
    CHECK_OK(weir_tensor_create(engine, &matrix, NULL, &tensor));
    CHECK_CODE(weir_packed_weights_create(engine, tensor, 0, &packed), WEIR_UNIMPLEMENTED, "plain-board:0");
    weir_tensor_release(tensor);

    /* Devices of one kind that do not copy to one another: through the host. */
    weir_engine *peer = NULL;
    weir_stream *stream = stream_on(engine);
    CHECK_OK(weir_engine_create(on.kind, 1, NULL, &peer));
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    CHECK_OK(weir_tensor_create(peer, &desc, NULL, &far));
    weir_tensor *from = make_tensor(cpu, desc), *to = make_tensor(cpu, desc);
    weir_stream *there = stream_on(peer);
    fill(from, 3);
    CHECK_OK(weir_enqueue_copy(stream, from, tensor));
    CHECK_OK(weir_enqueue_copy(stream, tensor, far));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_enqueue_copy(there, far, to));
    CHECK_OK(weir_stream_synchronize(there, WEIR_TIMEOUT_INFINITE));
    CHECK(memcmp(floats(from), floats(to), 4 * sizeof(float)) == 0);
    weir_tensor_release(from);
    weir_tensor_release(to);
    weir_stream_release(there);
    weir_tensor_release(far);
    weir_tensor_release(tensor);
    weir_stream_release(stream);
    weir_engine_release(peer);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    pull_out(&on);
}

/* Time, waits with a limit, waits for everything. */
static void test_waits(void) {
    board on = plug_in("slow-board", everything);
    weir_engine *engine = engine_of(&on);
    weir_stream *stream = stream_on(engine);
    weir_event *start = make_event(engine, WEIR_EVENT_TIMING), *end = make_event(engine, WEIR_EVENT_TIMING);
    weir_tensor_desc desc = vector_desc(4);
    weir_tensor *tensor = NULL;
    int64_t elapsed = 0;
    int32_t reached = 7;
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    test_device_slow(on.device, 20000000);
    CHECK_OK(weir_event_record(start, stream));
    for (int i = 0; i < 3; i++) CHECK_OK(weir_enqueue_fill(stream, tensor, i));
    CHECK_OK(weir_event_record(end, stream));
    CHECK_OK(weir_event_query(end, &reached));
    CHECK_EQ(reached, 0);
    CHECK_CODE(weir_event_synchronize(end, 1000000), WEIR_DEADLINE_EXCEEDED, NULL);
    CHECK_CODE(weir_stream_synchronize(stream, 1000000), WEIR_DEADLINE_EXCEEDED, NULL);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_OK(weir_event_query(end, &reached));
    CHECK_EQ(reached, 1);
    CHECK_OK(weir_event_elapsed_ns(start, end, &elapsed));
    CHECK(elapsed >= 60000000);
    weir_tensor_release(tensor);
    weir_event_release(start);
    weir_event_release(end);
    weir_stream_release(stream);
    weir_engine_release(engine);
    pull_out(&on);
}

/* A failure on the device comes late, sticks to the stream, and can be cleared. */
static void test_late_failure(void) {
    board on = plug_in("failing-board", everything);
    weir_engine *engine = engine_of(&on);
    weir_stream *stream = stream_on(engine);
    weir_tensor_desc desc = vector_desc(4);
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    test_device_slow(on.device, 1000000);
    for (int round = 0; round < 3; round++) {
        test_device_plan(on.device, "work", 2, WEIR_DATA_LOSS);
        for (int i = 0; i < 4; i++) CHECK_OK(weir_enqueue_fill(stream, tensor, i));
        CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "engine failing-board:0");
        CHECK_TEXT(weir_last_error_message(), "the work before the event has failed");
        CHECK_CODE(weir_enqueue_fill(stream, tensor, 0), WEIR_FAILED_PRECONDITION, NULL);
        CHECK_OK(weir_stream_clear_error(stream));
        CHECK_OK(weir_enqueue_fill(stream, tensor, 9));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    }
    weir_tensor_release(tensor);
    weir_stream_release(stream);
    weir_engine_release(engine);
    pull_out(&on);
}

/* The k-th call of each function fails, until there are no more calls: the right status, a text that names the engine,
 * once, and the function, nothing left behind; and then everything works again. */
static void test_sweep(void) {
    static const char *const functions[] = {
        "device_open", "device_info", "allocate", "stream_create", "event_create", "event_record", "event_wait",
        "copy_to_device", "copy_to_host", "copy_on_device", "fill", "kernel_create", "launch", "work"};
    static const int32_t codes[] = {WEIR_RESOURCE_EXHAUSTED, WEIR_DATA_LOSS, WEIR_DEVICE_LOST};
    board on = plug_in("swept-board", WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_OWN_MEMORY);
    char text[1024], part[96];
    int failures = 0;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
            for (int k = 1;; k++) {
                weir_runtime_info before = runtime_info();
                test_device_plan(on.device, functions[f], k, codes[c]);
                weir_status status = run_once(&on, text, sizeof text);
                bool hit = test_device_hit(on.device);
                test_device_plan(on.device, "", 0, 0);
                check_released(&before);
                EVENTUALLY(alive(&on) == 0);
                if (!hit) {
                    CHECK_EQ(status, WEIR_OK);
                    check_result();
                    CHECK(k > 1);
                    break;
                }
                if (status == WEIR_OK) {
                    /* Memory in a smaller piece; or an event that is recorded after the last wait for the result, where
                     * nobody looks. */
                    CHECK(strcmp(functions[f], "allocate") == 0 || strncmp(functions[f], "event_", 6) == 0);
                    check_result();
                    continue;
                }
                failures++;
                if (status != codes[c]) check_failed(__FILE__, __LINE__, functions[f], text);
                /* Where it was, and why. What the device does late has failed at no call: there the engine must do. */
                int is_late = strcmp(functions[f], "work") == 0;
                if (!is_late) snprintf(part, sizeof part, "%s: as planned", functions[f]);
                check_text(__FILE__, __LINE__, functions[f], text, is_late ? "" : part);
                const char *engine = strstr(text, "engine swept-board:0");
                if (engine == NULL || strstr(engine + 1, "engine swept-board:0") != NULL)
                    check_failed(__FILE__, __LINE__, "the engine is named once", text);
            }
        }
    }
    CHECK(failures >= 75);
    CHECK_EQ(run_once(&on, text, sizeof text), WEIR_OK);
    check_result();
    pull_out(&on);
}

typedef struct user {
    const board *on;
    int rounds;
} user;

static void *use(void *arg) {
    const user *u = arg;
    weir_engine *engine = engine_of(u->on);
    weir_stream *stream = stream_on(engine);
    weir_tensor_desc desc = vector_desc(64);
    for (int i = 0; i < u->rounds; i++) {
        weir_tensor *tensor = NULL;
        CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
        CHECK_OK(weir_enqueue_fill(stream, tensor, i % 256));
        weir_tensor_release(tensor); /* the work holds it */
        if (i % 8 == 0) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    }
    weir_stream_release(stream); /* with work under way */
    weir_engine_release(engine);
    return NULL;
}

/* Several threads; a device that does not say WEIR_DEVICE_CONCURRENT is called by one at a time. */
static void test_threads(uint64_t capabilities) {
    enum { THREADS = 4 };
    board on = plug_in("shared-board", capabilities);
    pthread_t threads[THREADS];
    user u = {&on, scale(400)};
    weir_engine *engine = engine_of(&on); /* so that nobody opens it meanwhile */
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, use, &u) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    weir_engine_release(engine);
    if ((capabilities & WEIR_DEVICE_CONCURRENT) == 0) CHECK_EQ(test_device_most_callers(on.device), 1);
    pull_out(&on);
}

/* A device that fails for good, with work and waits under way; the next engine has a new one. */
static void test_lost(void) {
    char text[1024];
    board on = plug_in("lost-board", everything);
    weir_engine *engine = engine_of(&on);
    weir_stream *stream = stream_on(engine);
    weir_tensor_desc desc = vector_desc(4);
    weir_tensor *tensor = NULL;
    weir_stream *other = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    test_device_slow(on.device, 1000000);
    test_device_plan(on.device, "work", 3, WEIR_DEVICE_LOST);
    for (int i = 0; i < 8; i++) {
        weir_status status = weir_enqueue_fill(stream, tensor, i);
        CHECK(status == WEIR_OK || status == WEIR_DEVICE_LOST || status == WEIR_FAILED_PRECONDITION);
    }
    CHECK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE) != WEIR_OK);
    CHECK_CODE(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &other), WEIR_DEVICE_LOST, "lost-board:0");
    test_device_slow(on.device, 0);
    CHECK_EQ(run_once(&on, text, sizeof text), WEIR_OK);
    check_result();
    weir_tensor_release(tensor);
    weir_stream_release(stream);
    weir_engine_release(engine);
    pull_out(&on);
}

/* All devices in one call: those of the plug-in too, the CPU's first; all or none. */
static void test_all(void) {
    enum { MOST = 64 };
    weir_engine *engines[MOST] = {NULL};
    board on = plug_in("listed-board", everything);
    uint32_t devices = 0;
    size_t count = 0, made = 0, found = 0;
    CHECK_OK(weir_engine_count(on.kind, &devices));
    CHECK_OK(weir_engine_create_all(NULL, 0, &count));
    CHECK(devices > 1 && count > devices && count <= MOST);
    CHECK_CODE(weir_engine_create_all(engines, count - 1, &made), WEIR_OUT_OF_RANGE, "capacity is");
    CHECK(made == count && engines[0] == NULL);
    weir_runtime_info before = runtime_info();
    test_device_plan(on.device, "device_open", 2, WEIR_UNAVAILABLE);
    CHECK_CODE(weir_engine_create_all(engines, MOST, &made), WEIR_UNAVAILABLE, "listed-board");
    test_device_plan(on.device, "", 0, 0);
    CHECK(engines[0] == NULL);
    check_released(&before);
    EVENTUALLY(alive(&on) == 0);
    CHECK_OK(weir_engine_create_all(engines, MOST, &made));
    CHECK_EQ(made, count);
    weir_engine_kind last = 0;
    for (size_t i = 0; i < made; i++) {
        weir_engine_info info = {.struct_size = sizeof info};
        CHECK_OK(weir_engine_get_info(engines[i], &info));
        CHECK(info.kind >= last && info.kind != WEIR_ENGINE_EMULATED);
        CHECK(i > 0 || info.kind == WEIR_ENGINE_CPU);
        if (info.kind == on.kind) CHECK_EQ(info.index, found++);
        last = info.kind;
    }
    CHECK_EQ(found, devices);
    CHECK(engines[made] == NULL);
    for (size_t i = 0; i < made; i++) weir_engine_release(engines[i]);
    pull_out(&on);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    fill_inputs();
    test_use(everything);
    test_use(WEIR_DEVICE_CONCURRENT);
    test_use(0);
    test_refusals();
    test_waits();
    test_late_failure();
    test_threads(everything);
    test_threads(WEIR_DEVICE_CALLBACK);
    test_lost();
    test_all();
    test_sweep();
    check_released(&before);
    return 0;
}
