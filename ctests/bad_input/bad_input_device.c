/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for kinds of engines and devices that the host brings.
 */

#include <weir/device.h>
#include <weir/testing.h>

#include "bad_input.h"
#include "test_device.h"
#include "weir/conformance.h"

static void rows_of_kinds(void) {
    weir_engine_kind kinds[1] = {7};
    ROW(weir_engine_kind_from_name, (NULL, &out.u32), INVALID, "name is NULL");
    ROW(weir_engine_kind_from_name, ("cpu", NULL), INVALID, "out_kind is NULL");
    ROW(weir_engine_kind_from_name, (BAD_UTF8, &out.u32), INVALID, "name is not UTF-8 (bad byte at offset 2)");
    ROW(weir_engine_kind_from_name, ("none", &out.u32), WEIR_NOT_FOUND, "no kind of engines named 'none'");
    ROW(weir_engine_kind_name, (WEIR_ENGINE_CPU), "cpu");
    ROW(weir_engine_kind_name, (WEIR_ENGINE_EMULATED), "emulated");
    ROW(weir_engine_kind_name, (0), "?");
    ROW(weir_engine_kind_name, (UINT32_MAX), "?");
    ROW(weir_engine_kind_list, (kinds, 1, NULL), INVALID, "out_count is NULL");
    ROW(weir_engine_kind_list, (NULL, 1, &out.size), INVALID, "out_kinds is NULL, but its length is 1");
    ROW(weir_engine_kind_list, (UNALIGNED, 1, &out.size), INVALID, "out_kinds is not aligned");
    CHECK_EQ(kinds[0], 7);
}

static void rows_of_register(void) {
    test_device *device = test_device_create(0);
    weir_device_vtable good_vtable = test_device_vtable(), v = good_vtable;
    ROW(weir_device_register, (NULL, 0, &v, device), INVALID, "name is NULL");
    ROW(weir_device_register, (BAD_UTF8, 0, &v, device), INVALID, "name is not UTF-8");
    ROW(weir_device_register, ("", 0, &v, device), INVALID, "name is ''");
    ROW(weir_device_register, ("Bad", 0, &v, device), INVALID, "name is 'Bad', expected 1 to 32 of a-z, 0-9, '_' and '-'");
    ROW(weir_device_register, ("cpu", 0, &v, device), WEIR_ALREADY_EXISTS, "there is a factory for cpu devices with priority 0");
    ROW(weir_device_replace, ("cpu", 0, &v, device), INVALID, "name is 'cpu' and priority 0");
    ROW(weir_device_register, ("bad", 0, NULL, device), INVALID, "vtable is NULL");
    ROW(weir_device_register, ("bad", 0, UNALIGNED, device), INVALID, "vtable is not aligned");
    v.struct_size = 64;
    ROW(weir_device_register, ("bad", 0, &v, device), INVALID, "vtable->struct_size is 64, expected 432 (at least 240)");
    v = good_vtable;
    v.flags = 2;
    ROW(weir_device_register, ("bad", 0, &v, device), INVALID, "vtable->flags has unknown bits 0x2");
#define WITHOUT(member)                                                                                                \
    v = good_vtable;                                                                                                   \
    v.member = NULL;                                                                                                   \
    ROW(weir_device_register, ("bad", 0, &v, device), INVALID, "vtable->" #member " is NULL");
    WITHOUT(device_count)
    WITHOUT(device_open)
    WITHOUT(device_close)
    WITHOUT(device_info)
    WITHOUT(allocate)
    WITHOUT(deallocate)
    WITHOUT(stream_create)
    WITHOUT(stream_destroy)
    WITHOUT(stream_clear_error)
    WITHOUT(event_create)
    WITHOUT(event_destroy)
    WITHOUT(event_record)
    WITHOUT(event_wait)
    WITHOUT(event_query)
    WITHOUT(copy_to_device)
    WITHOUT(copy_to_host)
    WITHOUT(copy_on_device)
    WITHOUT(fill)
    WITHOUT(kernel_create)
    WITHOUT(kernel_destroy)
    WITHOUT(launch)
    v = good_vtable;
    ROW(weir_device_replace, (NULL, 0, &v, device), INVALID, "name is NULL");
    ROW(weir_device_replace, ("bad", 0, NULL, device), INVALID, "vtable is NULL");
    ROW(weir_device_replace, ("bad", 0, &v, device), WEIR_NOT_FOUND, "no factory for bad devices with priority 0");
    ROW(weir_device_unregister, (NULL, 0), INVALID, "name is NULL");
    ROW(weir_device_unregister, ("none", 0), WEIR_NOT_FOUND, "no kind of engines named 'none'");
    ROW(weir_device_unregister, ("bad", 0), WEIR_NOT_FOUND, "no factory for bad devices with priority 0");
    ROW(weir_device_unregister, ("cpu", 0), INVALID, "name is 'cpu' and priority 0");
    ROW(weir_device_unregister, ("cpu", 1), WEIR_NOT_FOUND, "no factory for cpu devices with priority 1");
    CHECK_OK(weir_device_register("bad", 0, &v, device));
    ROW(weir_device_register, ("bad", 0, &v, device), WEIR_ALREADY_EXISTS, "a factory for bad devices with priority 0");
    CHECK_EQ(test_device_releases(device), 0); /* what was refused was not taken */
    CHECK_OK(weir_device_unregister("bad", 0));
    CHECK_EQ(test_device_releases(device), 1);
    test_device_destroy(device);
}

static void rows_of_load(void) {
    ROW(weir_device_load, (NULL), INVALID, "path is NULL");
    ROW(weir_device_load, (BAD_UTF8), INVALID, "path is not UTF-8");
    ROW(weir_device_load, ("/no/such/plugin.so"), WEIR_NOT_FOUND, "plug-in '/no/such/plugin.so': /no/such/plugin.so");
    ROW(weir_device_load, ("libm.so.6"), INVALID, "it is no plug-in");
}

static void rows_of_named_kernels(void) {
    weir_tensor_desc descs[1] = {vector_desc(2)}, open[1] = {{WEIR_F32, 1, {-1}}};
    weir_named_kernel_desc d = {.struct_size = sizeof d, .operation = "scale", .num_inputs = 1, .num_outputs = 1, .outputs = descs};
    ROW(weir_kernel_create_named, (NULL, &d, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_named, (WRONG(tensor), &d, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_named, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_named, (good.engine, UNALIGNED, NULL, NEW(kernel)), INVALID, "desc is not aligned");
    ROW(weir_kernel_create_named, (good.engine, &d, WRONG(engine), NEW(kernel)), INVALID, "options->struct_size is");
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), WEIR_UNIMPLEMENTED, "engine cpu:0 has no kernel 'scale' of its own");
    d.struct_size = 8;
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8");
    d.struct_size = sizeof d;
    d.operation = NULL;
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), INVALID, "desc->operation is NULL");
    d.operation = "";
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), INVALID, "desc->operation is \"\"");
    d.operation = BAD_UTF8;
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), INVALID, "desc->operation is not UTF-8");
    d.operation = "scale";
    d.attributes_bytes = 4;
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), INVALID, "desc->attributes is NULL, but its length is 4");
    d.attributes_bytes = 0;
    d.num_inputs = WEIR_MAX_ARGS + 1;
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), RANGE, "desc->num_inputs is 65");
    d.num_inputs = 1;
    d.outputs = open;
    ROW(weir_kernel_create_named, (good.engine, &d, NULL, NEW(kernel)), INVALID, "desc->infer is NULL");
}

static void report(void *arg, const weir_conformance_line *line) {
    (void)arg, (void)line;
    check_failed(__FILE__, __LINE__, "a check", "reported though it could not be made");
}

static void rows_of_conformance(void) {
    weir_conformance_options options = {.struct_size = sizeof options, .flags = 1};
    ROW(weir_device_conformance, (WEIR_ENGINE_CPU, 0, NULL, report, NULL, NULL), INVALID, "out_failed is NULL");
    ROW(weir_device_conformance, (WEIR_ENGINE_CPU, 0, NULL, NULL, NULL, &out.i32), INVALID, "report is NULL");
    ROW(weir_device_conformance, (WEIR_ENGINE_CPU, 0, &options, report, NULL, &out.i32), INVALID, "options->flags has unknown bits");
    ROW(weir_device_conformance, (99, 0, NULL, report, NULL, &out.i32), INVALID, "kind is 99");
    ROW(weir_device_conformance, (WEIR_ENGINE_CPU, 7, NULL, report, NULL, &out.i32), RANGE, "index is 7");
    ROW(weir_device_conformance, (WEIR_ENGINE_CPU, 0, NULL, report, NULL, &out.i32), WEIR_UNIMPLEMENTED, "engine cpu:0 has no");
}

void bad_input_device(void) {
    rows_of_named_kernels();
    rows_of_conformance();
    rows_of_kinds();
    rows_of_register();
    rows_of_load();
}
