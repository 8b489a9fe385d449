/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Memory of the host's that is pinned for the copies of a device: what it is good for, what is counted, limits, buffers
 * of the host's own that are pinned, devices that pin nothing, and programs, whose copies go through pinned memory.
 */

#include <weir/memory.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/device.h>
#include <weir/testing.h>

#include "make.h"
#include "test_device.h"

enum { LEN = 1024, BYTES = LEN * sizeof(float) };

/* An emulated engine that works only when somebody waits, with its checker. */
static weir_engine *make_emulated(uint64_t pinned_limit, weir_memory_mode mode) {
    const weir_emulation emulation = {.struct_size = sizeof emulation, .seed = 3, .flags = WEIR_EMULATION_CHECK};
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    uint64_t limit = 0;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_attr_set_memory_mode(attr, mode));
    CHECK_OK(weir_engine_attr_get_pinned_limit(attr, &limit));
    CHECK(limit == UINT64_MAX);
    CHECK_OK(weir_engine_attr_set_pinned_limit(attr, pinned_limit));
    CHECK_OK(weir_engine_attr_get_pinned_limit(attr, &limit));
    CHECK(limit == pinned_limit);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_emulated_counters counters(const weir_engine *engine) {
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    CHECK_OK(weir_emulated_get_counters(engine, &counters));
    return counters;
}

static weir_memory_info memory_info(const weir_engine *engine) {
    weir_memory_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_get_memory_info(engine, &info));
    return info;
}

static weir_tensor *pinned_tensor(weir_engine *cpu, int64_t len, weir_engine *device) {
    const weir_tensor_desc desc = vector_desc(len);
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(cpu, &desc, PINNED_FOR(device), &tensor));
    return tensor;
}

static int is_pinned(const weir_tensor *tensor, const weir_engine *device) {
    int32_t pinned = -1;
    CHECK_OK(weir_tensor_is_pinned(tensor, device, &pinned));
    return pinned;
}

static char *dump(const weir_engine *engine) {
    size_t length = 0;
    CHECK_OK(weir_engine_dump_memory(engine, NULL, 0, &length));
    char *text = malloc(length + 4096);
    CHECK(text != NULL);
    CHECK_OK(weir_engine_dump_memory(engine, text, length + 4096, &length));
    return text;
}

static weir_stream *stream_on(weir_engine *engine) {
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &stream));
    return stream;
}

/* The first float of a tensor on the device. */
static float first_of(weir_engine *cpu, weir_stream *stream, weir_tensor *there) {
    weir_tensor *here = make_tensor(cpu, vector_desc(LEN));
    CHECK_OK(weir_enqueue_copy(stream, there, here));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    float first = floats(here)[0];
    weir_tensor_release(here);
    return first;
}

/* A copy from pinned memory is made when the device gets there, one from other memory takes what it is given with. */
static void when_copies_are_made(void) {
    weir_engine *cpu = make_engine(NULL), *device = make_emulated(UINT64_MAX, WEIR_MEMORY_MODE_DIRECT);
    weir_stream *stream = stream_on(device);
    weir_tensor *there = make_tensor(device, vector_desc(LEN));
    weir_tensor *ordinary = make_tensor(cpu, vector_desc(LEN)), *pinned = pinned_tensor(cpu, LEN, device);
    CHECK(floats(pinned)[0] == 0.0f && floats(pinned)[LEN - 1] == 0.0f);
    CHECK(is_pinned(pinned, device) && !is_pinned(ordinary, device) && !is_pinned(pinned, cpu));

    const uint64_t before = counters(device).pageable_copies;
    floats(ordinary)[0] = 1.0f;
    CHECK_OK(weir_enqueue_copy(stream, ordinary, there));
    floats(ordinary)[0] = 2.0f;
    CHECK(first_of(cpu, stream, there) == 1.0f);
    CHECK_EQ(counters(device).pageable_copies - before, 2);

    floats(pinned)[0] = 3.0f;
    CHECK_OK(weir_enqueue_copy(stream, pinned, there));
    floats(pinned)[0] = 4.0f; /* too early: the copy is still to be made */
    CHECK(first_of(cpu, stream, there) == 4.0f);
    CHECK_EQ(counters(device).pageable_copies - before, 3);

    /* Down and up again through memory that is not pinned: the order of the stream holds all the same. */
    floats(pinned)[0] = 5.0f;
    CHECK_OK(weir_enqueue_copy(stream, pinned, there));
    CHECK_OK(weir_enqueue_copy(stream, there, ordinary));
    CHECK_OK(weir_enqueue_fill(stream, there, 0));
    CHECK_OK(weir_enqueue_copy(stream, ordinary, there));
    CHECK(first_of(cpu, stream, there) == 5.0f);

    /* To the host it is a tensor like any other, and it outlives who gave it. */
    weir_stream *host = stream_on(cpu);
    CHECK_OK(weir_enqueue_copy(host, ordinary, pinned));
    weir_stream_release(host);
    CHECK_EQ(counters(device).races, 0);
    CHECK(counters(device).pinned_bytes >= BYTES);
    weir_tensor_release(there);
    weir_tensor_release(ordinary);
    weir_stream_release(stream);
    weir_engine_release(device);
    weir_engine_release(cpu);
    CHECK(floats(pinned)[0] == 5.0f);
    weir_tensor_release(pinned);
}

static void counts_and_limits(void) {
    const uint64_t limit = 1 << 20;
    weir_engine *cpu = make_engine(NULL), *device = make_emulated(limit, WEIR_MEMORY_MODE_POOLED);
    weir_buffer *buffer = NULL, *more = NULL;
    int32_t pinned = 0;
    weir_memory_info info = memory_info(device);
    CHECK(info.host_limit == limit && info.host_in_use == 0 && info.host_reserved == 0 && info.registered == 0);
    CHECK_EQ(info.pinning, WEIR_PINNING_ALLOCATES | WEIR_PINNING_REGISTERS);
    CHECK_EQ(memory_info(cpu).pinning, 0);

    weir_tensor *first = pinned_tensor(cpu, 100000, device), *second = pinned_tensor(cpu, 100000, device);
    CHECK_OK(weir_buffer_create(cpu, 100, PINNED_FOR(device), &buffer));
    CHECK_OK(weir_buffer_is_pinned(buffer, device, &pinned));
    CHECK_EQ(pinned, 1);
    info = memory_info(device);
    CHECK(info.host_in_use >= 800100 && info.host_in_use <= limit && info.host_reserved == limit && info.in_use == 0);
    CHECK_CODE(weir_buffer_create(cpu, 400000, PINNED_FOR(device), &more), WEIR_RESOURCE_EXHAUSTED,
               "engine emulated:0, pinned memory: 390.6 KiB (400000 bytes) for buffer: limit 1 MiB, in use ");
    CHECK_TEXT(weir_last_error_message(), "most is held by 2 x tensor f32[100000] (");
    char *text = dump(device);
    CHECK_TEXT(text, "\"host_memory\":{\"name\":\"engine emulated:0, pinned memory\",\"limit\":1048576,");
    CHECK_TEXT(text, "{\"for\":\"tensor f32[100000]\",\"blocks\":2,");
    CHECK_TEXT(text, "\"registered\":[]}");
    free(text);

    weir_tensor_release(first);
    weir_tensor_release(second);
    weir_buffer_release(buffer);
    info = memory_info(device);
    CHECK(info.host_in_use == 0 && info.host_reserved == limit && info.host_peak_in_use >= 800100);
    CHECK_OK(weir_engine_trim(device, 0));
    CHECK_OK(weir_engine_reset_memory_peak(device));
    info = memory_info(device);
    CHECK(info.host_reserved == 0 && info.host_peak_in_use == 0);
    CHECK_EQ(counters(device).pinned_bytes, 0);
    weir_engine_release(device);
    weir_engine_release(cpu);
}

static void note_end(void *at) {
    *(uint64_t *)at = 1;
}

/* Memory that was there is pinned, and is not any more when it goes back to its owner. */
static void memory_of_the_hosts_own(weir_engine *device, uint64_t (*pinned_now)(void *), void *arg) {
    static float memory[LEN];
    static uint64_t ended;
    weir_engine *cpu = make_engine(NULL);
    weir_buffer *buffer = NULL, *part = NULL;
    weir_tensor *tensor = NULL;
    const weir_tensor_desc desc = vector_desc(LEN / 2);
    const uint64_t before = pinned_now(arg);
    int32_t pinned = -1;
    ended = 0;
    CHECK_OK(weir_buffer_create(cpu, BYTES, OVER_UNTIL(memory, note_end, &ended), &buffer));
    CHECK_OK(weir_tensor_create(cpu, &desc, ON_BUFFER(buffer, 0), &tensor));
    CHECK_EQ(is_pinned(tensor, device), 0);
    CHECK_OK(weir_buffer_pin(buffer, device));
    CHECK_EQ(is_pinned(tensor, device), 1);
    CHECK_OK(weir_buffer_is_pinned(buffer, device, &pinned));
    CHECK_EQ(pinned, 1);
    CHECK_EQ(memory_info(device).registered, BYTES);
    CHECK_EQ(pinned_now(arg) - before, BYTES);
    char *text = dump(device);
    CHECK_TEXT(text, "\"registered\":[\n{\"address\":\"0x");
    free(text);
    CHECK_CODE(weir_buffer_pin(buffer, device), WEIR_ALREADY_EXISTS, "the buffer's 4096 bytes are pinned for engine ");
    CHECK_OK(weir_buffer_create(cpu, 40, OVER(memory + 10), &part));
    CHECK_CODE(weir_buffer_pin(part, device), WEIR_ALREADY_EXISTS, "40 bytes are pinned");
    weir_buffer_release(part);

    weir_stream *stream = stream_on(device);
    weir_tensor *there = make_tensor(device, desc), *back = make_tensor(cpu, desc);
    for (int i = 0; i < LEN; i++) memory[i] = (float)i;
    CHECK_OK(weir_enqueue_copy(stream, tensor, there));
    CHECK_OK(weir_enqueue_copy(stream, there, back));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK(memcmp(floats(back), memory, BYTES / 2) == 0);
    weir_buffer_release(buffer);
    CHECK(ended == 0 && memory_info(device).registered == BYTES);
    weir_tensor_release(tensor);
    EVENTUALLY(memory_info(device).registered == 0 && ended == 1); /* who saw the copy end may hold it for a moment longer */
    CHECK_EQ(pinned_now(arg), before);
    weir_tensor_release(there);
    weir_tensor_release(back);
    weir_stream_release(stream);
    weir_engine_release(cpu);
}

static uint64_t pinned_by_emulation(void *engine) {
    return counters(engine).pinned_bytes;
}

static uint64_t pinned_by_plug_in(void *device) {
    return test_device_pinned(device);
}

/* Plug-ins: one that pins both, one that only allocates, one that does nothing of this. */
static void plug_ins(void) {
    const uint64_t needed = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK;
    const uint64_t kinds[] = {WEIR_DEVICE_PINNED_MEMORY | WEIR_DEVICE_REGISTER_MEMORY, WEIR_DEVICE_PINNED_MEMORY, 0};
    const char *const names[] = {"pins", "allocates", "plain"};
    weir_engine *cpu = make_engine(NULL);
    for (int i = 0; i < 3; i++) {
        test_device *own = test_device_create(needed | kinds[i]);
        const weir_device_vtable vtable = test_device_vtable();
        weir_engine_kind kind = 0;
        weir_engine *device = NULL;
        weir_buffer *buffer = NULL;
        static float memory[16];
        CHECK(own != NULL);
        CHECK_OK(weir_device_register(names[i], 0, &vtable, own));
        CHECK_OK(weir_engine_kind_from_name(names[i], &kind));
        CHECK_OK(weir_engine_create(kind, 0, NULL, &device));
        CHECK_EQ(memory_info(device).pinning, i == 0 ? 3 : i == 1 ? 1 : 0);
        weir_tensor *tensor = pinned_tensor(cpu, 16, device);
        CHECK_EQ(is_pinned(tensor, device), i < 2);
        CHECK_EQ(test_device_pinned(own) > 0, i < 2);
        CHECK(memory_info(device).host_in_use >= 64);
        weir_tensor_release(tensor);
        CHECK_OK(weir_engine_trim(device, 0));
        CHECK_EQ(test_device_pinned(own), 0);
        CHECK_OK(weir_buffer_create(cpu, sizeof memory, OVER(memory), &buffer));
        if (i == 0) {
            memory_of_the_hosts_own(device, pinned_by_plug_in, own);
            test_device_plan(own, "host_register", 1, WEIR_RESOURCE_EXHAUSTED);
            CHECK_CODE(weir_buffer_pin(buffer, device), WEIR_RESOURCE_EXHAUSTED, "engine pins:0: host_register: as planned");
            CHECK_EQ(memory_info(device).registered, 0);
            test_device_limit(own, 32);
            const weir_tensor_desc desc = vector_desc(16);
            CHECK_CODE(weir_tensor_create(cpu, &desc, PINNED_FOR(device), &tensor), WEIR_RESOURCE_EXHAUSTED,
                       "engine pins:0, pinned memory: 64 bytes for tensor f32[16]: ");
            CHECK_TEXT(weir_last_error_message(), "host_allocate: no more memory can be pinned");
        } else {
            CHECK_CODE(weir_buffer_pin(buffer, device), WEIR_UNIMPLEMENTED, ":0 does not pin memory that is not its own");
        }
        weir_buffer_release(buffer);
        weir_engine_release(device);
        CHECK_OK(weir_device_unregister(names[i], 0));
        EVENTUALLY((void)runtime_info(), test_device_alive(own) == 0 && test_device_releases(own) == 1);
        test_device_destroy(own);
    }
    weir_engine_release(cpu);
}

/* A program's copies to and from the device go through pinned memory, which says whose it is. */
static void programs(void) {
    weir_engine *cpu = make_engine(NULL), *device = make_emulated(UINT64_MAX, WEIR_MEMORY_MODE_DIRECT);
    weir_engine *engines[] = {cpu, device};
    weir_graph *graph = make_graph("doubling");
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_kernel *add = NULL;
    weir_value in = {0}, twice = {0};
    weir_program *program = NULL;
    CHECK_OK(weir_kernel_create_binary(device, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_graph_add_input(graph, "in", &desc, &in));
    const weir_value both[] = {in, in};
    CHECK_OK(weir_graph_add_kernel(graph, "twice", add, both, 2, &twice, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "out", twice));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_tensor *from = make_tensor(cpu, desc), *to = make_tensor(cpu, desc);
    const uint64_t before = counters(device).pageable_copies;
    for (int run = 0; run < 4; run++) {
        for (int i = 0; i < LEN; i++) floats(from)[i] = (float)(i + run);
        CHECK_OK(weir_program_run(program, NULL, &from, 1, &to, 1, NULL));
        for (int i = 0; i < LEN; i++) CHECK(floats(to)[i] == 2.0f * (float)(i + run));
    }
    CHECK_EQ(counters(device).pageable_copies, before);
    CHECK_EQ(counters(device).races, 0);
    char *text = dump(device);
    CHECK_TEXT(text, "\"for\":\"arena of program 'doubling'\"");
    CHECK_TEXT(text, "\"for\":\"copies of program 'doubling' to the engine\"");
    CHECK_TEXT(text, "\"for\":\"copies of program 'doubling' from the engine\"");
    free(text);
    const weir_tensor_desc huge = vector_desc(300000000);
    weir_tensor *none = NULL;
    CHECK_CODE(weir_tensor_create(device, &huge, NULL, &none), WEIR_RESOURCE_EXHAUSTED, "engine emulated:0: 1.1 GiB (1200000000 bytes) for tensor ");
    CHECK_TEXT(weir_last_error_message(), "most is held by arena of program 'doubling' (");
    weir_tensor_release(from);
    weir_tensor_release(to);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(add);
    EVENTUALLY(memory_info(device).host_in_use == 0 && counters(device).pinned_bytes == 0);
    weir_engine_release(device);
    weir_engine_release(cpu);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    when_copies_are_made();
    counts_and_limits();
    weir_engine *emulated = make_emulated(UINT64_MAX, WEIR_MEMORY_MODE_DIRECT);
    memory_of_the_hosts_own(emulated, pinned_by_emulation, emulated);
    weir_engine_release(emulated);
    plug_ins();
    programs();
    check_released(&before);
    printf("ok\n");
    return 0;
}
