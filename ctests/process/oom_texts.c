/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Texts and bytes of the host's for which there is no memory: no length of a name ends the process. A name is refused
 * where it is too long, a text of a failure is cut, and bytes that are to be kept are refused where they have no room.
 */

#include "interpose.h"

#include <weir/comm.h>
#include <weir/device.h>
#include <weir/domain.h>
#include <weir/ops.h>
#include <weir/resource.h>
#include <weir/trace.h>

#if INTERPOSED

enum { LONG = 1 << 20, MOST = 8191 };

static char text[LONG + 1];

/* A text of this many bytes. */
static const char *bytes(size_t count) {
    memset(text, 'n', count);
    text[count] = '\0';
    return text;
}

#define REFUSED(call, argument) \
    CHECK_CODE(call, WEIR_OUT_OF_RANGE, argument " has 1048576 bytes, expected at most 8191")

static int32_t no_task(void *arg) {
    (void)arg;
    return WEIR_OK;
}

static int32_t fail(void *user, weir_kernel_context *context) {
    (void)user;
    CHECK_OK(weir_kernel_context_fail(context, WEIR_DATA_LOSS, text));
    return WEIR_DATA_LOSS;
}

static void test_names(weir_engine *engine) {
    const weir_tensor_desc four = vector_desc(4);
    weir_kernel_options options = {.struct_size = sizeof options, .name = bytes(LONG)};
    weir_graph *graph = make_graph("graph");
    weir_engine_attr *attr = NULL;
    weir_stream_attr *stream_attr = NULL;
    weir_kernel *kernel = NULL;
    weir_graph *none = NULL;
    weir_resource *resource = NULL;
    weir_domain *domain = NULL;
    weir_engine_kind kind = 0;
    weir_value value = 0;
    weir_node node = 0;
    uint32_t name = 0;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &stream_attr));

    REFUSED(weir_graph_create(text, &none), "name");
    REFUSED(weir_graph_add_input(graph, text, &four, &value), "name");
    REFUSED(weir_graph_add_task(graph, text, no_task, NULL, NULL, 0, &node), "name");
    REFUSED(weir_kernel_create_eltwise(engine, ELTWISE(RELU), &options, &kernel), "options->name");
    REFUSED(weir_engine_attr_set_name(attr, text), "name");
    REFUSED(weir_stream_attr_set_name(stream_attr, text), "name");
    REFUSED(weir_engine_kind_from_name(text, &kind), "name");
    REFUSED(weir_domain_create(text, &domain), "name");
    REFUSED(weir_variable_create(engine, text, NULL, &four, 0, NULL, &resource), "container");
    REFUSED(weir_resource_lookup(engine, NULL, text, WEIR_RESOURCE_ANY, &resource), "name");
    REFUSED(weir_trace_intern(text, &name), "name");
    REFUSED(weir_device_load(text), "path");
    CHECK(none == NULL && kernel == NULL && resource == NULL && domain == NULL && value == 0 && node == 0 && name == 0);

    /* The longest ones, and failures with several of them. */
    (void)bytes(MOST);
    weir_program *program = NULL;
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), &options, &kernel));
    CHECK_OK(weir_graph_create(text, &none));
    CHECK_OK(weir_graph_add_input(none, text, &four, &value));
    CHECK_CODE(weir_graph_add_input(none, text, &four, &value), WEIR_ALREADY_EXISTS, "a node 'nnn");
    CHECK_CODE(weir_graph_add_kernel(none, text, kernel, NULL, 0, &value, 1, NULL), WEIR_INVALID_ARGUMENT, "nnn");
    CHECK_CODE(weir_device_load(text), WEIR_NOT_FOUND, "nnn");
    CHECK_CODE(weir_graph_compile(none, &engine, 0, NULL, &program), WEIR_INVALID_ARGUMENT, "num_engines");
    weir_graph_destroy(none);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_attr_destroy(attr);
    weir_stream_attr_destroy(stream_attr);
}

static void test_texts_of_failures(weir_engine *engine) {
    weir_kernel *kernel = NULL;
    weir_comm *comm = NULL;
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "fails", .compute = fail};
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    (void)bytes(LONG);
    CHECK_CODE(weir_enqueue(stream, kernel, NULL, 0, NULL, 0), WEIR_DATA_LOSS, "kernel 'fails': nnnn");
    CHECK(strlen(weir_last_error_message()) < 2 * MOST);
    weir_last_error_set(WEIR_DATA_LOSS, "function", text);
    CHECK_TEXT(weir_last_error_message(), "function: nnnn");
    CHECK_OK(weir_comm_create_local(1, NULL, &comm));
    CHECK_OK(weir_comm_abort(comm, text));
    weir_comm_release(comm);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
}

/* There is no room for a text that is kept; one that is only read needs none. */
static void test_bytes(weir_engine *engine) {
    weir_engine_attr *attr = NULL;
    weir_graph *graph = make_graph("values");
    static weir_value values[LONG / sizeof(weir_value)];
    weir_value value = 0;
    size_t known = 0, size = 1;
    const weir_tensor_desc four = vector_desc(4);
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    (void)bytes(LONG);
    CHECK_CODE(weir_engine_attr_set_device_settings(attr, text, LONG), WEIR_RESOURCE_EXHAUSTED, "1048576 bytes");
    CHECK_OK(weir_engine_attr_get_device_settings(attr, NULL, 0, &size));
    CHECK_EQ(size, 0);
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &kernel));
    CHECK_OK(weir_graph_add_input(graph, "x", &four, &value));
    CHECK_CODE(weir_graph_add_kernel(graph, "relu", kernel, values, sizeof values / sizeof *values, &value, 1, NULL),
               WEIR_INVALID_ARGUMENT, "relu");
    CHECK_OK(weir_graph_add_output(graph, "x", value));
    weir_program *program = compile(graph, engine);
    CHECK_CODE(weir_program_load_costs(program, text, &known), WEIR_INVALID_ARGUMENT, "no saved costs");
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_attr_destroy(attr);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    if (!interpose_start()) {
        puts("valgrind owns malloc here: nothing can be refused");
        return 0;
    }
    weir_engine *engine = make_engine(NULL);
    interpose_reset(0, 0);
    atomic_store(&refuse_above, (size_t)64 << 10);
    test_names(engine);
    test_texts_of_failures(engine);
    test_bytes(engine);
    atomic_store(&refuse_above, 0);
    CHECK(atomic_load(&refused_requests) > 0);
    weir_engine_release(engine);
    check_released(&before);
    return 0;
}

#else

int main(void) {
    puts("a sanitizer owns malloc here: nothing can be refused");
    return 0;
}

#endif
