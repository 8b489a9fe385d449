/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What every function does with bad input: a status, a text that names the argument, no output, nothing leaked. The
 * rows of the nouns are in bad_input_*.c.
 */

#include <weir/domain.h>
#include <weir/task_group.h>
#include <weir/inspect.h>
#include <weir/trace.h>

#include "bad_input.h"

#include "weir/device.h"
#include "weir/testing.h"

objects good;
objects made;
plain_outputs out;
const void **made_here;
uint64_t nothing[16];

static const int garbage = 0x5a;

void before_row(void) {
    memset(&out, garbage, sizeof out);
    memset(&made, garbage, sizeof made);
    made_here = NULL;
}

void after_row(const char *file, int line, const char *function, long long got, long long code, const char *part) {
    char prefix[128];
    if (got != code) {
        fprintf(stderr, "last error: %s\n", weir_last_error_message());
        check_equal(file, line, function, got, code);
    }
    if (part != NULL) {
        const char *text = weir_last_error_message();
        snprintf(prefix, sizeof prefix, "%s: ", function);
        if (strncmp(text, prefix, strlen(prefix)) != 0) check_failed(file, line, text, "lacks the function's name");
        check_text(file, line, function, text, part);
    }
    for (size_t i = 0; i < sizeof out; i++) {
        if (((unsigned char *)&out)[i] != garbage) check_failed(file, line, function, "wrote an output");
    }
    if (made_here != NULL && *made_here != NULL) check_failed(file, line, function, "left its pointer output alone");
}

static void rows_of_the_library(void) {
    weir_runtime_info info = {.struct_size = sizeof info};

    ROW(weir_version, (), WEIR_VERSION_MAJOR << 16 | WEIR_VERSION_MINOR << 8 | WEIR_VERSION_PATCH, NULL);
    ROW(weir_version_string, (), "0.1.0");
    ROW(weir_abi_version, (), WEIR_ABI_VERSION, NULL);
    ROW(weir_check_version, (WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR), WEIR_OK, NULL);
    ROW(weir_check_version, (WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR + 1), PRECONDITION, "0.2");
    ROW(weir_check_version, (WEIR_VERSION_MAJOR + 1, 0), PRECONDITION, "1.0");
    ROW(weir_check_version, (UINT32_MAX, UINT32_MAX), PRECONDITION, "4294967295");
    ROW(weir_status_name, (0), "OK");
    ROW(weir_status_name, (WEIR_DATA_LOSS), "DATA_LOSS");
    ROW(weir_status_name, (4711), "UNKNOWN_CODE");
    ROW(weir_status_name, (INT32_MIN), "UNKNOWN_CODE");
    ROW(weir_dtype_name, (0), "any");
    ROW(weir_dtype_name, (UINT32_MAX), "?");
    ROW(weir_dtype_size, (WEIR_F32, NULL), INVALID, "out_bytes is NULL");
    ROW(weir_dtype_size, (WEIR_DTYPE_ANY, &out.size), INVALID, "dtype is 0");
    ROW(weir_dtype_size, (UINT32_MAX, &out.size), INVALID, "dtype is 4294967295");

    ROW(weir_runtime_get_info, (NULL), INVALID, "out_info is NULL");
    info.struct_size = 0;
    ROW(weir_runtime_get_info, (&info), INVALID, "out_info->struct_size is 0, expected 240 (at least 120)");
    info.struct_size = offsetof(weir_runtime_info, attrs);
    ROW(weir_runtime_get_info, (&info), INVALID, "out_info->struct_size is 112, expected 240");
    info.struct_size = SIZE_MAX;
    ROW(weir_runtime_get_info, (&info), INVALID, "out_info->struct_size is 18446744073709551615");
    CHECK(info.struct_size == SIZE_MAX && info.allocations == 0 && info.attrs == 0);
    ROW(weir_runtime_get_info, (UNALIGNED), INVALID, "out_info is not aligned");

    weir_thread_info threads[2] = {{.struct_size = 0}};
    ROW(weir_runtime_get_threads, (threads, 2, NULL), INVALID, "out_count is NULL");
    ROW(weir_runtime_get_threads, (NULL, 0, NULL), INVALID, "out_count is NULL");
    ROW(weir_runtime_get_threads, (NULL, 2, &out.size), INVALID, "infos is NULL");
    ROW(weir_runtime_get_threads, (threads, 2, &out.size), INVALID, "infos->struct_size is 0, expected 128");
    threads[0].struct_size = sizeof *threads + 4;
    ROW(weir_runtime_get_threads, (threads, 2, &out.size), INVALID, "infos->struct_size is 132");
    ROW(weir_runtime_get_threads, (UNALIGNED, 2, &out.size), INVALID, "infos is not aligned");
    CHECK(threads[0].origin == 0 && threads[1].struct_size == 0);

    ROW(weir_last_error_message, (), "weir_runtime_get_threads: infos is not aligned");
    ROW(weir_last_error_set, (77, NULL, NULL));
    CHECK(strcmp(weir_last_error_message(), ": ") == 0);
}

static int32_t pass_on(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    return WEIR_OK;
}

/* One node from the graph's one input to its one output. */
static void make_program(void) {
    weir_tensor_desc desc = vector_desc(4);
    weir_value x, y;
    good.kernel = make_unary_kernel(good.engine, "pass on", pass_on, NULL, &desc);
    good.graph = make_graph("good");
    CHECK_OK(weir_graph_add_input(good.graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(good.graph, "node", good.kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(good.graph, "y", y));
    good.program = compile(good.graph, good.engine);
}

static void make_objects(void) {
    weir_tensor *result = NULL;
    CHECK_OK(weir_threadpool_create_inline(&good.threadpool));
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &good.engine_attr));
    CHECK_OK(weir_task_group_create(good.threadpool, &good.task_group));
    CHECK_OK(weir_domain_create("good", &good.domain));
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &good.stream_attr));
    good.engine = make_engine(good.threadpool);
    good.stream = make_stream(good.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    good.asynchronous = make_stream(good.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    good.event = make_event(good.engine, WEIR_EVENT_TIMING);
    good.tensor = make_tensor(good.engine, vector_desc(4));
    result = make_tensor(good.engine, vector_desc(4));
    make_program();
    CHECK_OK(weir_program_start(good.program, good.asynchronous, &good.tensor, 1, &result, 1, NULL, &good.run));
    CHECK_OK(weir_run_synchronize(good.run, WEIR_TIMEOUT_INFINITE));
    const weir_trace_options few = {.struct_size = sizeof few, .flags = WEIR_TRACE_ONLY_ASKED, .threads = 1};
    CHECK_OK(weir_trace_start(&few, &good.trace));
    weir_tensor_release(result);
}

/* NULL is nothing to release, and an object of another kind is left alone: it is released as what it is later. */
static void rows_of_release(void) {
    ROW(weir_threadpool_release, (NULL));
    ROW(weir_threadpool_release, (WRONG(engine)));
    ROW(weir_task_group_release, (NULL));
    ROW(weir_task_group_release, (WRONG(threadpool)));
    ROW(weir_engine_release, (NULL));
    ROW(weir_engine_release, (WRONG(threadpool)));
    ROW(weir_engine_attr_destroy, (NULL));
    ROW(weir_engine_attr_destroy, (WRONG(engine)));
    ROW(weir_stream_release, (NULL));
    ROW(weir_stream_release, (WRONG(stream_attr)));
    ROW(weir_stream_attr_destroy, (NULL));
    ROW(weir_stream_attr_destroy, (WRONG(stream)));
    ROW(weir_event_release, (NULL));
    ROW(weir_event_release, (NO_OBJECT));
    ROW(weir_tensor_release, (NULL));
    ROW(weir_tensor_release, (UNALIGNED));
    ROW(weir_kernel_release, (NULL));
    ROW(weir_kernel_release, (WRONG(tensor)));
    ROW(weir_call_release, (NULL));
    ROW(weir_call_release, (WRONG(tensor)));
    ROW(weir_graph_destroy, (NULL));
    ROW(weir_graph_destroy, (WRONG(program)));
    ROW(weir_program_release, (NULL));
    ROW(weir_program_release, (WRONG(graph)));
    ROW(weir_run_release, (NULL));
    ROW(weir_run_release, (WRONG(event)));
}

static void release_objects(void) {
    weir_trace_release(good.trace);
    weir_run_release(good.run);
    weir_program_release(good.program);
    weir_graph_destroy(good.graph);
    weir_kernel_release(good.kernel);
    weir_tensor_release(good.tensor);
    weir_event_release(good.event);
    weir_stream_attr_destroy(good.stream_attr);
    weir_stream_release(good.asynchronous);
    weir_stream_release(good.stream);
    weir_engine_attr_destroy(good.engine_attr);
    weir_domain_release(good.domain);
    weir_task_group_release(good.task_group);
    weir_engine_release(good.engine);
    weir_threadpool_release(good.threadpool);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    make_objects();
    weir_runtime_info with_objects = runtime_info();
    rows_of_the_library();
    bad_input_threadpool();
    bad_input_engine();
    bad_input_memory();
    bad_input_stream();
    bad_input_event();
    bad_input_tensor();
    bad_input_kernel();
    bad_input_kernel_context();
    bad_input_elements();
    bad_input_operators();
    bad_input_rows();
    bad_input_gemm();
    bad_input_products();
    bad_input_graph();
    bad_input_run();
    bad_input_trace();
    bad_input_comm();
    bad_input_program();
    bad_input_placement();
    bad_input_device();
    bad_input_cuda();
    bad_input_resource();
    rows_of_release();
    check_released(&with_objects);
    release_objects();
    check_released(&before);
    return 0;
}
