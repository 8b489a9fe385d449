/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for runs of programs and their settings.
 */

#include "bad_input.h"

static void rows_of_program_run(weir_tensor *result, weir_tensor *longer) {
    weir_program *program = good.program;
    weir_stream *stream = good.stream;
    weir_tensor *in = good.tensor, *missing = NULL, *odd = WRONG(engine);

    ROW(weir_program_run, (NULL, stream, &in, 1, &result, 1, NULL), INVALID, "program is NULL");
    ROW(weir_program_run, (WRONG(graph), stream, &in, 1, &result, 1, NULL),
        INVALID, "program: expected a program, got a graph");
    ROW(weir_program_run, (program, WRONG(engine), &in, 1, &result, 1, NULL),
        INVALID, "stream: expected a stream, got an engine");
    ROW(weir_program_run, (program, NULL, NULL, 1, &result, 1, NULL), INVALID, "inputs is NULL, but its length is 1");
    ROW(weir_program_run, (program, NULL, &in, 1, NULL, 1, NULL), INVALID, "outputs is NULL, but its length is 1");
    ROW(weir_program_run, (program, stream, &missing, 1, &result, 1, NULL), INVALID, "inputs[0] is NULL");
    ROW(weir_program_run, (program, stream, &in, 1, &missing, 1, NULL), INVALID, "outputs[0] is NULL");
    ROW(weir_program_run, (program, stream, &odd, 1, &result, 1, NULL),
        INVALID, "inputs[0]: expected a tensor, got an engine");
    ROW(weir_program_run, (program, stream, &in, 1, &odd, 1, NULL),
        INVALID, "outputs[0]: expected a tensor, got an engine");
    ROW(weir_program_run, (program, NULL, NULL, 0, &result, 1, NULL), INVALID, "input");
    ROW(weir_program_run, (program, NULL, &in, 1, NULL, 0, NULL), INVALID, "output");
    ROW(weir_program_run, (program, NULL, &in, SIZE_MAX, &result, 1, NULL), RANGE, "inputs");
    ROW(weir_program_run, (program, NULL, &longer, 1, &result, 1, NULL), INVALID, "'x'");
    ROW(weir_program_run, (program, NULL, &in, 1, &longer, 1, NULL), INVALID, "'y'");
    ROW(weir_program_run, (program, NULL, &in, 1, &in, 1, NULL), INVALID, "output 0");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, WRONG(compile_options)),
        INVALID, "options: expected run_options");
}

static void rows_of_program_start(weir_tensor *result, weir_tensor *longer) {
    weir_program *program = good.program;
    weir_stream *stream = good.asynchronous;
    weir_tensor *in = good.tensor, *missing = NULL;

    ROW(weir_program_start, (NULL, stream, &in, 1, &result, 1, NULL, NEW(run)), INVALID, "program is NULL");
    ROW(weir_program_start, (program, NULL, &in, 1, &result, 1, NULL, NEW(run)), INVALID, "stream is NULL");
    ROW(weir_program_start, (program, good.stream, &in, 1, &result, 1, NULL, NEW(run)), INVALID, "asynchronous");
    ROW(weir_program_start, (WRONG(run), stream, &in, 1, &result, 1, NULL, NEW(run)),
        INVALID, "program: expected a program");
    ROW(weir_program_start, (program, WRONG(run), &in, 1, &result, 1, NULL, NEW(run)),
        INVALID, "stream: expected a stream, got a run");
    ROW(weir_program_start, (program, stream, NULL, 1, &result, 1, NULL, NEW(run)), INVALID, "inputs is NULL");
    ROW(weir_program_start, (program, stream, &in, 1, NULL, 1, NULL, NEW(run)), INVALID, "outputs is NULL");
    ROW(weir_program_start, (program, stream, &missing, 1, &result, 1, NULL, NEW(run)), INVALID, "inputs[0] is NULL");
    ROW(weir_program_start, (program, stream, &in, 1, &longer, 1, NULL, NEW(run)), INVALID, "'y'");
    ROW(weir_program_start, (program, stream, &in, 1, &result, 1, WRONG(engine_attr), NEW(run)),
        INVALID, "options: expected run_options");
    ROW(weir_program_start, (program, stream, &in, 1, &result, 1, NULL, NULL), INVALID, "out_run is NULL");
}

static void rows_of_failures(void) {
    weir_failure failure = {.struct_size = sizeof failure}, small = {.struct_size = 8};
    weir_failure nowhere = {.struct_size = sizeof nowhere, .not_run_capacity = 8};

    ROW(weir_thread_get_failure, (NULL), INVALID, "failure is NULL");
    ROW(weir_thread_get_failure, (&small), INVALID, "failure->struct_size is 8");
    ROW(weir_thread_get_failure, (UNALIGNED), INVALID, "failure is not aligned");
    ROW(weir_thread_get_failure, (&nowhere), INVALID, "failure->not_run is NULL");
    ROW(weir_stream_get_failure, (NULL, &failure), INVALID, "stream is NULL");
    ROW(weir_stream_get_failure, (WRONG(engine), &failure), INVALID, "stream: expected a stream, got an engine");
    ROW(weir_stream_get_failure, (good.stream, NULL), INVALID, "failure is NULL");
    ROW(weir_stream_get_failure, (good.stream, &nowhere), INVALID, "failure->not_run is NULL");
    ROW(weir_run_get_failure, (NULL, &failure), INVALID, "run is NULL");
    ROW(weir_run_get_failure, (WRONG(program), &failure), INVALID, "run: expected a run, got a program");
    ROW(weir_run_get_failure, (good.run, NULL), INVALID, "failure is NULL");
    ROW(weir_run_get_failure, (good.run, &small), INVALID, "failure->struct_size is 8");
    ROW(weir_run_get_failure, (good.run, &nowhere), INVALID, "failure->not_run is NULL");
}

static void hear(void *ctx, weir_status status, weir_run *run) {
    (void)ctx, (void)status, (void)run;
}

static void rows_of_run_options(void) {
    const weir_notice heard = {.struct_size = sizeof heard, .notify = hear}, nobody = {.struct_size = sizeof nobody};
    const weir_notice reserved = {.struct_size = sizeof reserved, .notify = hear, .reserved = 1};
    weir_notice kept = {.struct_size = sizeof kept};
    weir_run_options *options = good.run_options;
    uint8_t flag = 0, *flags = NULL;

    ROW(weir_run_options_set_deadline_ns, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_run_options_set_deadline_ns, (WRONG(run), 1), INVALID, "options: expected run_options, got a run");
    ROW(weir_run_options_get_deadline_ns, (NULL, &out.u64), INVALID, "options is NULL");
    ROW(weir_run_options_get_deadline_ns, (options, NULL), INVALID, "out_deadline_ns is NULL");
    ROW(weir_run_options_get_deadline_ns, (WRONG(program), &out.u64), INVALID, "options: expected run_options");
    ROW(weir_run_options_set_absent, (NULL, &flag, 1), INVALID, "options is NULL");
    ROW(weir_run_options_set_absent, (WRONG(run), &flag, 1), INVALID, "options: expected run_options, got a run");
    ROW(weir_run_options_set_absent, (options, NULL, 1), INVALID, "flags is NULL, but its length is 1");
    ROW(weir_run_options_get_absent, (NULL, &flags, &out.size), INVALID, "options is NULL");
    ROW(weir_run_options_get_absent, (options, NULL, &out.size), INVALID, "out_flags is NULL");
    ROW(weir_run_options_get_absent, (options, &flags, NULL), INVALID, "out_count is NULL");
    ROW(weir_run_options_set_deterministic, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_run_options_set_deterministic, (WRONG(compile_options), 1), INVALID, "options: expected run_options");
    ROW(weir_run_options_set_deterministic, (options, 2), INVALID, "deterministic is 2");
    ROW(weir_run_options_get_deterministic, (NULL, &out.i32), INVALID, "options is NULL");
    ROW(weir_run_options_get_deterministic, (WRONG(compile_options), &out.i32), INVALID, "options: expected run_options");
    ROW(weir_run_options_get_deterministic, (options, NULL), INVALID, "out_deterministic is NULL");
    ROW(weir_run_options_set_finish_independent, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_run_options_set_finish_independent, (WRONG(compile_options), 1), INVALID, "options: expected run_options");
    ROW(weir_run_options_set_finish_independent, (options, 2), INVALID, "finish is 2");
    ROW(weir_run_options_get_finish_independent, (NULL, &out.i32), INVALID, "options is NULL");
    ROW(weir_run_options_get_finish_independent, (WRONG(compile_options), &out.i32), INVALID, "options: expected run_options");
    ROW(weir_run_options_get_finish_independent, (options, NULL), INVALID, "out_finish is NULL");
    ROW(weir_run_options_set_notice, (NULL, &heard), INVALID, "options is NULL");
    ROW(weir_run_options_set_notice, (WRONG(run), &heard), INVALID, "options: expected run_options, got a run");
    ROW(weir_run_options_set_notice, (options, &nobody), INVALID, "notice has neither a function nor an eventfd");
    ROW(weir_run_options_set_notice, (options, &reserved), INVALID, "notice->reserved is 1, expected 0");
    ROW(weir_run_options_set_notice, (options, UNALIGNED), INVALID, "notice is not aligned");
    ROW(weir_run_options_get_notice, (NULL, &kept), INVALID, "options is NULL");
    ROW(weir_run_options_get_notice, (options, NULL), INVALID, "out_notice is NULL");
    ROW(weir_run_options_get_notice, (options, UNALIGNED), INVALID, "out_notice is not aligned");
    ROW(weir_run_options_get_notice, (WRONG(run), &kept), INVALID, "options: expected run_options, got a run");
    ROW(weir_run_notify, (NULL, &heard), INVALID, "run is NULL");
    ROW(weir_run_notify, (WRONG(event), &heard), INVALID, "run: expected a run, got an event");
    ROW(weir_run_notify, (good.run, NULL), INVALID, "notice is NULL");
    ROW(weir_run_notify, (good.run, &nobody), INVALID, "notice has neither a function nor an eventfd");
}

static void rows_of_runs(void) {
    weir_run_options *options = good.run_options;

    ROW(weir_run_options_create, (NULL), INVALID, "out_options is NULL");
    ROW(weir_run_options_set_threadpool, (NULL, good.threadpool), INVALID, "options is NULL");
    ROW(weir_run_options_set_threadpool, (WRONG(compile_options), good.threadpool),
        INVALID, "options: expected run_options");
    ROW(weir_run_options_set_threadpool, (options, WRONG(stream)),
        INVALID, "pool: expected a threadpool, got a stream");
    ROW(weir_run_options_get_threadpool, (NULL, NEW(threadpool)), INVALID, "options is NULL");
    ROW(weir_run_options_get_threadpool, (options, NULL), INVALID, "out_pool is NULL");
    ROW(weir_run_options_get_threadpool, (WRONG(run), NEW(threadpool)),
        INVALID, "options: expected run_options, got a run");
    ROW(weir_run_retain, (NULL), INVALID, "run is NULL");
    ROW(weir_run_retain, (WRONG(program)), INVALID, "run: expected a run, got a program");
    ROW(weir_run_synchronize, (NULL, 0), INVALID, "run is NULL");
    ROW(weir_run_synchronize, (WRONG(run_options), 0), INVALID, "run: expected a run, got run_options");
    ROW(weir_run_query, (NULL, &out.i32), INVALID, "run is NULL");
    ROW(weir_run_query, (good.run, NULL), INVALID, "out_done is NULL");
    ROW(weir_run_query, (WRONG(event), &out.i32), INVALID, "run: expected a run, got an event");
    ROW(weir_run_cancel, (NULL), INVALID, "run is NULL");
    ROW(weir_run_cancel, (NO_OBJECT), INVALID, "run: expected a run, got no weir object");
}

void bad_input_run(void) {
    weir_tensor *result = make_tensor(good.engine, vector_desc(4)), *longer = make_tensor(good.engine, vector_desc(5));
    rows_of_program_run(result, longer);
    rows_of_program_start(result, longer);
    rows_of_runs();
    rows_of_failures();
    rows_of_run_options();
    weir_tensor_release(result);
    weir_tensor_release(longer);
}
