/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs over engines of two domains: which domain's wait covers what of a run, who is told that it has failed, and
 * what the texts call the engines.
 */

#include <pthread.h>
#include <weir/domain.h>
#include <weir/ops.h>
#include <weir/resource.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"

enum { WIDTH = 32, LENGTH = 4 };

static weir_engine *make_engine_in(weir_domain *domain, const char *name, weir_engine_kind kind, uint64_t kernel_ns) {
    weir_emulation emulation = {.struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK, .kernel_ns = kernel_ns, .latency_ns = 1000};
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(kind, &attr));
    if (kind == WEIR_ENGINE_EMULATED) CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_attr_set_domain(attr, domain));
    CHECK_OK(weir_engine_attr_set_name(attr, name));
    CHECK_OK(weir_engine_create(kind, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_emulated_counters counters_of(const weir_engine *engine) {
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    CHECK_OK(weir_emulated_get_counters(engine, &counters));
    return counters;
}

/* A kernel of the host's that passes a gate, and then hands its input on or fails, as the gate says. */
static int32_t compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    memcpy(out[0].data, in[0].data, WIDTH * sizeof(float));
    return pass_gate(user);
}

/* x doubled LENGTH times on the device; with `first` the host passes a gate before that. */
static weir_program *make_program(weir_engine *cpu, weir_engine *device, gate *first) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_engine *engines[] = {cpu, device};
    weir_graph *graph = make_graph("across");
    weir_kernel *add = NULL;
    weir_program *program = NULL;
    weir_value value, pair[2];
    char name[16];
    CHECK_OK(weir_kernel_create_binary(device, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &value));
    if (first != NULL) {
        weir_host_kernel_desc kernel_desc = make_kernel_desc("gate", compute, first);
        weir_kernel *kernel = NULL;
        kernel_desc.num_inputs = kernel_desc.num_outputs = 1;
        kernel_desc.inputs = kernel_desc.outputs = &desc;
        CHECK_OK(weir_kernel_create_host(cpu, &kernel_desc, &kernel));
        CHECK_OK(weir_graph_add_kernel(graph, "gate", kernel, &value, 1, &value, 1, NULL));
        weir_kernel_release(kernel);
    }
    for (int i = 0; i < LENGTH; i++) {
        pair[0] = pair[1] = value;
        snprintf(name, sizeof name, "add %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, add, pair, 2, &value, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(add);
    return program;
}

/* A framework whose host engine and stream are its own, and a plug-in with the device. */
typedef struct place {
    uint64_t domains_before;
    weir_domain *framework, *plugin;
    weir_engine *cpu, *device;
    weir_stream *stream;
    weir_tensor *in, *out;
} place;

static place make_place(uint64_t kernel_ns) {
    place p = {.domains_before = runtime_info().domains};
    CHECK_OK(weir_domain_create("framework", &p.framework));
    CHECK_OK(weir_domain_create("plugin", &p.plugin));
    p.cpu = make_engine_in(p.framework, "host", WEIR_ENGINE_CPU, 0);
    p.device = make_engine_in(p.plugin, "", WEIR_ENGINE_EMULATED, kernel_ns);
    p.stream = make_stream(p.cpu, WEIR_STREAM_ASYNCHRONOUS, NULL, "runs");
    p.in = make_tensor(p.cpu, vector_desc(WIDTH));
    p.out = make_tensor(p.cpu, vector_desc(WIDTH));
    fill(p.in, 3);
    return p;
}

static void release_place(place *p) {
    CHECK_EQ(counters_of(p->device).races, 0);
    weir_tensor_release(p->in);
    weir_tensor_release(p->out);
    weir_stream_release(p->stream);
    weir_engine_release(p->cpu);
    weir_engine_release(p->device);
    weir_domain_release(p->framework);
    weir_domain_release(p->plugin);
    /* A thread that is about to let go of a run may keep them for a moment. Then their names are free again. */
    EVENTUALLY(runtime_info().domains <= p->domains_before);
}

/* A run on a stream belongs to the stream's domain, with all that it does elsewhere. */
static void test_run_on_a_stream(void) {
    place p = make_place(2000000);
    gate first = {0};
    weir_program *program = make_program(p.cpu, p.device, &first);
    for (int round = 0; round < 3; round++) {
        weir_run *run = NULL;
        int32_t done = 0;
        atomic_store(&first.begun, 0);
        atomic_store(&first.open, 0);
        CHECK_OK(weir_program_start(program, p.stream, &p.in, 1, &p.out, 1, NULL, &run));
        EVENTUALLY(atomic_load(&first.begun));
        /* The device has been given nothing yet that it could not do: its domain waits for no more than it has. */
        CHECK_OK(weir_sync_domain(p.plugin, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        CHECK_OK(weir_engine_synchronize(p.device, WEIR_TIMEOUT_INFINITE));
        CHECK_OK(weir_run_query(run, &done));
        CHECK_EQ(done, 0);
        CHECK_CODE(weir_sync_domain(p.framework, 1000000, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "weir_sync_domain: ");
        open_gate(&first);
        CHECK_OK(weir_sync_domain(p.framework, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        CHECK_OK(weir_run_query(run, &done));
        CHECK_EQ(done, 1);
        CHECK_OK(weir_run_synchronize(run, 0));
        weir_run_release(run);
        for (int i = 0; i < WIDTH; i++) CHECK(floats(p.out)[i] == floats(p.in)[i] * (1 << LENGTH));
    }
    weir_program_release(program);
    release_place(&p);
}

typedef struct runner {
    place *place;
    weir_program *program;
} runner;

static void *run_here(void *arg) {
    runner *r = arg;
    CHECK_OK(weir_program_run(r->program, NULL, &r->place->in, 1, &r->place->out, 1, NULL));
    return NULL;
}

/* A run that keeps a thread has no stream: each domain covers what it has given to its engines. */
static void test_run_in_a_thread(void) {
    place p = make_place(3000000);
    runner r = {&p, make_program(p.cpu, p.device, NULL)};
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        uint64_t wanted = counters_of(p.device).operations + 1 + LENGTH;
        CHECK(pthread_create(&thread, NULL, run_here, &r) == 0);
        EVENTUALLY(counters_of(p.device).operations >= wanted);
        CHECK_OK(weir_sync_domain(p.framework, 0, NULL, 0, NULL)); /* which has no part in it: nothing of it lies in its streams */
        CHECK_OK(weir_sync_domain(p.plugin, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        CHECK(counters_of(p.device).completed >= wanted);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    weir_program_release(r.program);
    release_place(&p);
}

/* A run's failure is told where it was started. */
static void test_failure(void) {
    place p = make_place(1000);
    gate first = {.open = 1, .result = WEIR_DATA_LOSS};
    weir_program *program = make_program(p.cpu, p.device, &first);
    weir_run *run = NULL;
    CHECK_CODE(weir_program_run(program, NULL, &p.in, 1, &p.out, 1, NULL), WEIR_DATA_LOSS, "gate");
    CHECK_OK(weir_sync_domain(p.framework, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_OK(weir_sync_domain(p.plugin, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_OK(weir_program_run(program, p.stream, &p.in, 1, &p.out, 1, NULL));
    CHECK_CODE(weir_sync_domain(p.framework, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "engine framework/host: stream 'runs': ");
    CHECK_OK(weir_sync_domain(p.framework, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_OK(weir_sync_domain(p.plugin, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_OK(weir_engine_synchronize(p.device, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_clear_error(p.stream));
    CHECK_OK(weir_program_start(program, p.stream, &p.in, 1, &p.out, 1, NULL, &run)); /* its failure is the handle's */
    CHECK_OK(weir_sync_domain(p.framework, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "gate");
    weir_failure failure = {.struct_size = sizeof failure};
    CHECK_OK(weir_run_get_failure(run, &failure));
    CHECK(strcmp(failure.engine, "framework/host") == 0);
    weir_run_release(run);
    weir_program_release(program);
    release_place(&p);
}

static int has(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

/* Reports, drawings and refusals call the engines by their names. */
static void test_texts(void) {
    static char text[1 << 16];
    place p = make_place(1000);
    weir_program *program = make_program(p.cpu, p.device, NULL);
    CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, text, sizeof text, NULL));
    CHECK_TEXT(text, "framework/host, plugin/emulated:0");
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, text, sizeof text, NULL));
    CHECK_TEXT(text, "\"names\":\"framework/host, plugin/emulated:0\"");
    CHECK_OK(weir_program_dump(program, WEIR_DUMP_DOT, text, sizeof text, NULL));
    CHECK(has(text, "on framework/host\"") && has(text, "on plugin/emulated:0\""));
    CHECK_OK(weir_program_dump(program, WEIR_DUMP_JSON, text, sizeof text, NULL));
    CHECK(has(text, "\"engine\":\"framework/host\"") && has(text, "\"engine\":\"plugin/emulated:0\""));
    CHECK_OK(weir_engine_dump_memory(p.cpu, text, sizeof text, NULL));
    CHECK_TEXT(text, "engine framework/host");
    weir_program_release(program);

    weir_tensor *there = make_tensor(p.device, vector_desc(WIDTH));
    weir_kernel *relu = NULL;
    CHECK_OK(weir_kernel_create_eltwise(p.cpu, ELTWISE(RELU), NULL, &relu));
    CHECK_CODE(weir_enqueue(p.stream, relu, &there, 1, &p.out, 1), WEIR_INVALID_ARGUMENT, "plugin/emulated:0");
    CHECK_TEXT(weir_last_error_message(), "framework/host");
    CHECK_CODE(weir_emulated_clear_races(p.cpu), WEIR_FAILED_PRECONDITION, "engine is framework/host, not an emulated one");
    weir_resource *resource = NULL;
    CHECK_CODE(weir_resource_lookup(p.cpu, NULL, "nothing", WEIR_RESOURCE_VARIABLE, &resource), WEIR_NOT_FOUND, "engine framework/host");
    weir_kernel_release(relu);
    weir_tensor_release(there);
    release_place(&p);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    test_run_on_a_stream();
    test_run_in_a_thread();
    test_failure();
    test_texts();
    check_released(&before);
    puts("runs over two domains are each domain's where they should be");
    return 0;
}
