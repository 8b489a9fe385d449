/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for communicators.
 */

#include <weir/comm.h>
#include <weir/conformance.h>

#include "bad_input.h"

static weir_comm_transport_info told;
static weir_status told_status;

static weir_status get_info(void *ctx, weir_comm_transport_info *info) {
    (void)ctx;
    const size_t size = info->struct_size;
    *info = told;
    info->struct_size = size;
    return told_status;
}

static weir_status start(void *ctx, const weir_comm_operation *operation, void **request) {
    (void)ctx, (void)operation, (void)request;
    return WEIR_UNAVAILABLE;
}

static weir_status test(void *ctx, void *request, int32_t *done) {
    (void)ctx, (void)request;
    *done = 1;
    return WEIR_OK;
}

static weir_status enqueue(void *ctx, const weir_comm_operation *operations, size_t num, uint64_t stream) {
    (void)ctx, (void)operations, (void)num, (void)stream;
    return WEIR_UNAVAILABLE;
}

static void report(void *arg, const weir_conformance_line *line) {
    (void)arg, (void)line;
    check_failed(__FILE__, __LINE__, "a check", "reported though it could not be made");
}

static void rows_of_creation(void) {
    const weir_comm_transport_info fine = {.size = 2, .rank = 1, .ops = 6, .max_tag = 32767};
    const weir_comm_vtable good_vtable = {
        .struct_size = sizeof good_vtable, .get_info = get_info, .start = start, .test = test};
    const weir_comm_options good_options = {.struct_size = sizeof good_options};
    weir_comm_vtable vtable = good_vtable;
    weir_comm_options options = good_options, small = {.struct_size = 8};
    weir_conformance_options checks = {.struct_size = sizeof checks};
    weir_comm *comms[2] = {NULL, NULL};
    told = fine;

    ROW(weir_comm_create, (NULL, NULL, NULL, NEW(comm)), INVALID, "vtable is NULL");
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NULL), INVALID, "out_comm is NULL");
    ROW(weir_comm_create, (&good_vtable, NULL, &small, NEW(comm)), INVALID, "options->struct_size is 8");
    options.flags = 8;
    ROW(weir_comm_create, (&good_vtable, NULL, &options, NEW(comm)), INVALID, "options->flags");
    options = good_options;
    options.name = BAD_UTF8;
    ROW(weir_comm_create, (&good_vtable, NULL, &options, NEW(comm)), INVALID, "options->name is not UTF-8");
    vtable.get_info = NULL;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "vtable->get_info is NULL");
    vtable = good_vtable;
    vtable.start = NULL;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "vtable->start is NULL");
    vtable = good_vtable;
    vtable.test = NULL;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "vtable->test is NULL");
    vtable.enqueue = enqueue;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "vtable->test is NULL");
    vtable.start = NULL;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "ops is 0x6, and vtable->start is NULL");
    told.ops = 0;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "engine_kind is 0, which is no kind of engines");
    told.engine_kind = WEIR_ENGINE_CPU;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "engine_kind is WEIR_ENGINE_CPU");
    told.engine_kind = WEIR_ENGINE_CUDA;
    told.engine_index = -1;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), RANGE, "engine_index is -1, expected 0 or more");
    told.engine_index = 0;
    told.flags = WEIR_COMM_ONE_THREAD;
    ROW(weir_comm_create, (&vtable, NULL, NULL, NEW(comm)), INVALID, "flags has WEIR_COMM_ONE_THREAD");
    told.flags = 0;
    ROW(weir_comm_conformance, (&vtable, NULL, NULL, report, NULL, &out.i32), INVALID, "vtable->start is NULL");
    told_status = WEIR_DATA_LOSS;
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NEW(comm)), WEIR_DATA_LOSS, "get_info");
    told_status = WEIR_OK;
    told = fine;
    told.size = 0;
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NEW(comm)), RANGE, "size is 0, expected 1 to 65536");
    told = fine;
    told.rank = 2;
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NEW(comm)), RANGE, "rank is 2, expected 0 to 1");
    told = fine;
    told.flags = 16;
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NEW(comm)), INVALID, "flags is 0x10, which has unknown bits");
    told = fine;
    told.ops = 2;
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NEW(comm)), INVALID, "ops is 0x2, without SEND and RECV");
    told = fine;
    told.max_tag = 100;
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NEW(comm)), RANGE, "max_tag is 100, expected 32767 or more");
    told = fine;
    told.max_bytes = 63;
    ROW(weir_comm_create, (&good_vtable, NULL, NULL, NEW(comm)), RANGE, "max_bytes is 63, expected 0, or 64 or more");
    told = fine;
    options = good_options;
    options.flags = WEIR_COMM_CHECKED;
    ROW(weir_comm_create, (&good_vtable, NULL, &options, NEW(comm)), WEIR_UNIMPLEMENTED, "no control messages");
    told.flags = WEIR_COMM_ONE_THREAD;
    options.flags = WEIR_COMM_OWN_THREAD;
    ROW(weir_comm_create, (&good_vtable, NULL, &options, NEW(comm)), INVALID, "WEIR_COMM_ONE_THREAD");
    told = fine;
    ROW(weir_comm_conformance, (&good_vtable, NULL, NULL, report, NULL, NULL), INVALID, "out_failed is NULL");
    ROW(weir_comm_conformance, (&good_vtable, NULL, NULL, NULL, NULL, &out.i32), INVALID, "report is NULL");
    ROW(weir_comm_conformance, (NULL, NULL, NULL, report, NULL, &out.i32), INVALID, "vtable is NULL");
    checks.flags = 1;
    ROW(weir_comm_conformance, (&good_vtable, NULL, &checks, report, NULL, &out.i32), INVALID,
        "options->flags has unknown bits");
    told.size = 0;
    ROW(weir_comm_conformance, (&good_vtable, NULL, NULL, report, NULL, &out.i32), RANGE, "size is 0");
    told = fine;
    ROW(weir_comm_create_local, (0, NULL, comms), RANGE, "size is 0, expected 1 to 4096");
    ROW(weir_comm_create_local, (4097, NULL, comms), RANGE, "size is 4097, expected 1 to 4096");
    ROW(weir_comm_create_local, (2, NULL, NULL), INVALID, "out_comms is NULL");
    ROW(weir_comm_create_local, (2, &small, comms), INVALID, "options->struct_size is 8");
}

static void rows_of_kernels(weir_comm *comm) {
    const weir_communication plain = {.struct_size = sizeof plain, .op = WEIR_COMM_ALL_REDUCE};
    weir_communication desc = plain;
    weir_engine *cpu = good.engine;

#define KERNEL(code, part) \
    ROW(weir_kernel_create_communication, (cpu, comm, &desc, NULL, NEW(kernel)), code, part)
    ROW(weir_kernel_create_communication, (NULL, comm, &plain, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_communication, (cpu, NULL, &plain, NULL, NEW(kernel)), INVALID, "comm is NULL");
    ROW(weir_kernel_create_communication, (cpu, comm, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_communication, (cpu, comm, &plain, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_communication, (cpu, WRONG(graph), &plain, NULL, NEW(kernel)), INVALID,
        "comm: expected a comm, got a graph");
    desc.op = 10;
    KERNEL(INVALID, "desc->op is 10, which is no operation");
    desc = plain;
    desc.reduction = 5;
    KERNEL(INVALID, "desc->reduction is 5, which is no reduction");
    desc.op = WEIR_COMM_BARRIER;
    KERNEL(INVALID, "desc->reduction is 5, and nothing is reduced");
    desc.reduction = 0;
    desc.flags = WEIR_COMMUNICATION_DETERMINISTIC;
    KERNEL(INVALID, "nothing is reduced");
    desc.flags = 2;
    KERNEL(INVALID, "desc->flags");
    desc = plain;
    desc.peer = 1;
    KERNEL(INVALID, "desc->peer is 1, and the operation has none");
    desc.op = WEIR_COMM_SEND;
    desc.peer = 2;
    KERNEL(RANGE, "desc->peer is 2, expected 0 to 1");
    desc.peer = -1;
    KERNEL(RANGE, "desc->peer is -1, expected 0 to 1");
    desc.peer = 0;
    KERNEL(INVALID, "desc->peer is 0, which is this rank");
    desc.peer = 1;
    desc.tag = 16384;
    KERNEL(RANGE, "desc->tag is 16384, expected 0 to 16383");
    desc = plain;
    desc.tag = 1;
    KERNEL(RANGE, "desc->tag is 1, expected 0 to 0");
    desc = plain;
    desc.op = WEIR_COMM_RECV;
    desc.peer = 1;
    desc.desc.dtype = 99;
    KERNEL(INVALID, "desc->desc");
    desc = plain;
    desc.num_tensors = (size_t)1 << 40;
    KERNEL(RANGE, "desc->num_tensors is 1099511627776");
    desc.op = WEIR_COMM_BROADCAST;
    desc.num_tensors = 2;
    KERNEL(INVALID, "buckets are for WEIR_COMM_ALL_REDUCE");
#undef KERNEL
}

void bad_input_comm(void) {
    weir_comm *comms[2];
    weir_comm_info info = {.struct_size = sizeof info}, small = {.struct_size = 8};
    CHECK_OK(weir_comm_create_local(2, NULL, comms));
    weir_comm *comm = comms[0];

    ROW(weir_comm_retain, (NULL), INVALID, "comm is NULL");
    ROW(weir_comm_retain, (NO_OBJECT), INVALID, "comm: expected a comm, got no weir object");
    ROW(weir_comm_release, (NULL));
    ROW(weir_comm_release, (WRONG(engine)));
    rows_of_creation();
    rows_of_kernels(comm);
    ROW(weir_comm_get_info, (NULL, &info), INVALID, "comm is NULL");
    ROW(weir_comm_get_info, (comm, NULL), INVALID, "out_info is NULL");
    ROW(weir_comm_get_info, (comm, &small), INVALID, "out_info->struct_size is 8");
    ROW(weir_comm_duplicate, (NULL, NULL, NEW(comm)), INVALID, "comm is NULL");
    ROW(weir_comm_duplicate, (comm, NULL, NULL), INVALID, "out_comm is NULL");
    ROW(weir_comm_split, (WRONG(stream), 0, 0, NULL, NEW(comm)), INVALID, "comm: expected a comm, got a stream");
    ROW(weir_comm_split, (comm, 0, 0, NULL, NULL), INVALID, "out_comm is NULL");
    ROW(weir_comm_recover, (NULL, NULL, NEW(comm)), INVALID, "comm is NULL");
    ROW(weir_comm_recover, (comm, NULL, NEW(comm)), PRECONDITION, "is not dead");
    ROW(weir_comm_progress, (NULL, 0, &out.i32), INVALID, "comm is NULL");
    ROW(weir_comm_progress, (comm, 0, NULL), INVALID, "out_pending is NULL");
    ROW(weir_comm_abort, (NULL, "so"), INVALID, "comm is NULL");
    ROW(weir_comm_abort, (comm, BAD_UTF8), INVALID, "text is not UTF-8");
    ROW(weir_program_agree, (NULL, comm, 0), INVALID, "program is NULL");
    ROW(weir_program_agree, (good.program, NULL, 0), INVALID, "comm is NULL");
    ROW(weir_program_agree, (WRONG(graph), comm, 0), INVALID, "program: expected a program, got a graph");
    for (int i = 0; i < 2; i++) weir_comm_release(comms[i]);
}
