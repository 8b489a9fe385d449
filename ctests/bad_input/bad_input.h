/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Rows of the bad-input test. Every exported function has at least one, on a line of its own:
 *
 *   ROW(weir_function, (arguments), code, "part")   fails with this code and a text that begins with its name
 *   ROW(weir_function, (arguments), "text")         returns this text
 *   ROW(weir_function, (arguments))                 returns nothing, and does nothing
 *
 * After each row pointer outputs, passed as NEW(kind), must be NULL, and the other outputs, in `out`, unchanged.
 */

#ifndef WEIR_CTESTS_BAD_INPUT_H
#define WEIR_CTESTS_BAD_INPUT_H

#include <weir/comm.h>
#include <weir/memory.h>
#include <weir/task_group.h>
#include <weir/ops.h>
#include <weir/resource.h>

#include "make.h"

/* One good object of each kind. */
typedef struct objects {
    weir_threadpool *threadpool;
    weir_task_group *task_group;
    weir_domain *domain;
    weir_engine *engine;
    weir_engine_attr *engine_attr;
    weir_stream *stream;
    weir_stream_attr *stream_attr;
    weir_event *event;
    weir_tensor *tensor;
    weir_kernel *kernel;
    weir_packed_weights *packed_weights;
    weir_allocator *allocator;
    weir_buffer *buffer;
    weir_resource *resource;
    weir_graph *graph;
    weir_program *program;
    weir_run *run;
    weir_trace *trace;
    weir_comm *comm;
    weir_call *call;
    weir_stream *asynchronous; /* a second stream, for runs */
    const weir_engine_attr *lent_engine_attr;
    const weir_stream_attr *lent_stream_attr;
    const weir_tensor_view *views;
    void *data;
} objects;

/* Where calls that must fail would put what is no pointer. */
typedef struct plain_outputs {
    int32_t i32;
    weir_status status;
    uint32_t u32;
    uint64_t u64;
    int64_t i64;
    size_t size, size2;
    weir_tensor_desc desc, descs[2];
    weir_value value, values[2];
    weir_node node;
} plain_outputs;

extern objects good;
extern objects made;
extern plain_outputs out;
extern const void **made_here;

/* A good object as a pointer to anything: WRONG(tensor) where a stream is expected. */
#define WRONG(kind) ((void *)good.kind)

/* An output of pointer type, full of garbage before the call. */
#define NEW(kind) (made_here = (const void **)(void *)&made.kind, &made.kind)

/* Memory that is no weir object, and a pointer to the middle of it that is not aligned. */
extern uint64_t nothing[16];
#define NO_OBJECT ((void *)nothing)
#define UNALIGNED ((void *)((char *)nothing + 1))

#define ROW(...) ROW_PICK(__VA_ARGS__, ROW_STATUS, ROW_TEXT, ROW_VOID, 0)(__VA_ARGS__)
#define ROW_PICK(function, arguments, code, part, row, ...) row

#define ROW_STATUS(function, arguments, code, part)                                                                    \
    do {                                                                                                               \
        before_row();                                                                                                  \
        long long got = (long long)(function arguments);                                                               \
        after_row(__FILE__, __LINE__, #function, got, (code), (part));                                                 \
    } while (0)

#define ROW_TEXT(function, arguments, text)                                                                            \
    do {                                                                                                               \
        before_row();                                                                                                  \
        const char *got = function arguments;                                                                          \
        if (strcmp(got, (text)) != 0) check_failed(__FILE__, __LINE__, #function #arguments, got);                     \
        after_row(__FILE__, __LINE__, #function, WEIR_OK, WEIR_OK, NULL);                                              \
    } while (0)

#define ROW_VOID(function, arguments)                                                                                  \
    do {                                                                                                               \
        before_row();                                                                                                  \
        function arguments;                                                                                            \
        after_row(__FILE__, __LINE__, #function, WEIR_OK, WEIR_OK, NULL);                                              \
    } while (0)

void before_row(void);
void after_row(const char *file, int line, const char *function, long long got, long long code, const char *part);

enum { INVALID = WEIR_INVALID_ARGUMENT, RANGE = WEIR_OUT_OF_RANGE, PRECONDITION = WEIR_FAILED_PRECONDITION };

/* A name that is not UTF-8. */
#define BAD_UTF8 "ab\xff\xfe"

void bad_input_threadpool(void);
void bad_input_engine(void);
void bad_input_memory(void);
void bad_input_stream(void);
void bad_input_event(void);
void bad_input_tensor(void);
void bad_input_kernel(void);
void bad_input_kernel_context(void);
void bad_input_elements(void);
void bad_input_operators(void);
void bad_input_rows(void);
void bad_input_gemm(void);
void bad_input_products(void);
void bad_input_graph(void);
void bad_input_run(void);
void bad_input_trace(void);
void bad_input_comm(void);
void bad_input_program(void);
void bad_input_placement(void);
void bad_input_device(void);
void bad_input_cuda(void);
void bad_input_resource(void);

#endif /* WEIR_CTESTS_BAD_INPUT_H */
