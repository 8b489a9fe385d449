/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for runs of programs and their options.
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
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, WRONG(engine)), INVALID, "options->struct_size is");
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
        INVALID, "options->struct_size is");
    ROW(weir_program_start, (program, stream, &in, 1, &result, 1, NULL, NULL), INVALID, "out_run is NULL");
}

static void rows_of_failures(void) {
    weir_failure failure = {.struct_size = sizeof failure}, small = {.struct_size = 8};
    weir_failure nowhere = {.struct_size = sizeof nowhere, .not_run_capacity = 8};

    ROW(weir_thread_get_failure, (NULL), INVALID, "failure is NULL");
    ROW(weir_thread_get_failure, (&small), INVALID, "failure->struct_size is 8");
    ROW(weir_thread_get_failure, (UNALIGNED), INVALID, "failure is not aligned");
    ROW(weir_thread_get_failure, (&nowhere), INVALID, "failure->not_run is NULL, but failure->not_run_capacity is 8");
    ROW(weir_stream_get_failure, (NULL, &failure), INVALID, "stream is NULL");
    ROW(weir_stream_get_failure, (WRONG(engine), &failure), INVALID, "stream: expected a stream, got an engine");
    ROW(weir_stream_get_failure, (good.stream, NULL), INVALID, "failure is NULL");
    ROW(weir_stream_get_failure, (good.stream, &nowhere), INVALID, "failure->not_run is NULL, but failure->not_run_capacity is 8");
    ROW(weir_run_get_failure, (NULL, &failure), INVALID, "run is NULL");
    ROW(weir_run_get_failure, (WRONG(program), &failure), INVALID, "run: expected a run, got a program");
    ROW(weir_run_get_failure, (good.run, NULL), INVALID, "failure is NULL");
    ROW(weir_run_get_failure, (good.run, &small), INVALID, "failure->struct_size is 8");
    ROW(weir_run_get_failure, (good.run, &nowhere), INVALID, "failure->not_run is NULL, but failure->not_run_capacity is 8");
}

static void hear(void *ctx, weir_status status, weir_run *run) {
    (void)ctx, (void)status, (void)run;
}

static void follow(void *ctx, const weir_run_progress *progress) {
    (void)ctx, (void)progress;
}

#define OPTIONS(...) &(weir_run_options){.struct_size = sizeof(weir_run_options), __VA_ARGS__}

static void rows_of_run_options(weir_tensor *result) {
    const weir_notice heard = {.struct_size = sizeof heard, .notify = hear}, nobody = {.struct_size = sizeof nobody};
    const weir_notice reserved = {.struct_size = sizeof reserved, .notify = hear, .reserved = 1};
    const struct {
        weir_run_options known;
        uint64_t later;
    } newer = {.known = {.struct_size = sizeof newer}, .later = 1};
    const size_t twice[] = {0, 0}, beyond[] = {7};
    weir_program *program = good.program;
    weir_stream *stream = good.asynchronous;
    weir_tensor *in = good.tensor;
    uint8_t flags[2] = {0};

    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, &(weir_run_options){.struct_size = 8}),
        INVALID, "options->struct_size is 8, expected");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, &newer.known),
        INVALID, "options sets members that this version of weir does not know");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, UNALIGNED), INVALID, "options is not aligned");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.flags = 8 | WEIR_RUN_NO_WAIT)),
        INVALID, "options->flags has unknown bits 0x8");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.threadpool = WRONG(stream))),
        INVALID, "options->threadpool: expected a threadpool, got a stream");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.num_absent = 1)),
        INVALID, "options->absent is NULL, but its length is 1");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.absent = flags, .num_absent = 2)),
        INVALID, "options->num_absent is 2, the run has 1 outputs");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.absent = flags)),
        INVALID, "options->num_absent is 0, the run has 1 outputs");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.num_outputs = 1)),
        INVALID, "options->outputs is NULL, but its length is 1");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.outputs = twice, .num_outputs = SIZE_MAX)),
        RANGE, "options->outputs");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.outputs = beyond, .num_outputs = 1)),
        PRECONDITION, "was compiled without partial runs");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.progress_interval_ns = 5)),
        INVALID, "options->progress_interval_ns is 5, but options->progress is NULL");
    ROW(weir_program_run, (program, NULL, &in, 1, &result, 1, OPTIONS(.notice = &heard)),
        INVALID, "options->notice is given, which is for runs on asynchronous streams");
    ROW(weir_program_start, (program, stream, &in, 1, &result, 1, OPTIONS(.flags = UINT64_MAX), NEW(run)),
        INVALID, "options->flags has unknown bits");
    ROW(weir_program_start, (program, stream, &in, 1, &result, 1, OPTIONS(.notice = &nobody), NEW(run)),
        INVALID, "options->notice has neither a function nor an eventfd");
    for (int i = 0; i < 3; i++) { /* the pool stays the caller's */
        ROW(weir_program_start, (program, stream, &in, 1, &result, 1,
            OPTIONS(.threadpool = good.threadpool, .notice = &nobody), NEW(run)),
            INVALID, "options->notice has neither a function nor an eventfd");
    }
    ROW(weir_program_start, (program, stream, &in, 1, &result, 1, OPTIONS(.notice = &reserved), NEW(run)),
        INVALID, "options->notice->reserved is 1, expected 0");
    ROW(weir_program_start, (program, stream, &in, 1, &result, 1, OPTIONS(.notice = UNALIGNED), NEW(run)),
        INVALID, "options->notice is not aligned");
    ROW(weir_program_run_many, (program, 1, &in, 1, &result, 1, OPTIONS(.flags = 8)), INVALID, "options->flags");
    ROW(weir_program_run_many, (program, 1, &in, 1, &result, 1, OPTIONS(.notice = &heard)),
        INVALID, "options->notice is given");
    ROW(weir_program_run_many, (program, 1, &in, 1, &result, 1, OPTIONS(.progress = follow)),
        INVALID, "options->progress is given, which is for one run");
    ROW(weir_program_run_many, (program, 1, &in, 1, &result, 1, OPTIONS(.absent = flags, .num_absent = 1)),
        INVALID, "options->absent is given, which is for one run");
    ROW(weir_run_notify, (NULL, &heard), INVALID, "run is NULL");
    ROW(weir_run_notify, (WRONG(event), &heard), INVALID, "run: expected a run, got an event");
    ROW(weir_run_notify, (good.run, NULL), INVALID, "notice is NULL");
    ROW(weir_run_notify, (good.run, &nobody), INVALID, "notice has neither a function nor an eventfd");
}

static void rows_of_runs(void) {
    ROW(weir_run_retain, (NULL), INVALID, "run is NULL");
    ROW(weir_run_retain, (WRONG(program)), INVALID, "run: expected a run, got a program");
    ROW(weir_run_synchronize, (NULL, 0), INVALID, "run is NULL");
    ROW(weir_run_synchronize, (WRONG(engine_attr), 0), INVALID, "run: expected a run, got an engine_attr");
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
    rows_of_run_options(result);
    weir_tensor_release(result);
    weir_tensor_release(longer);
}
