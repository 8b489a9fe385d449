/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for resources, variables and tables.
 */

#include <weir/resource.h>
#include <weir/dlpack.h>

#include "bad_input.h"

static void never_destroyed(void *object) {
    (void)object;
    CHECK(!"what was never taken is destroyed");
}

static weir_status never_built(void *arg, weir_resource **out_resource) {
    (void)arg;
    (void)out_resource;
    CHECK(!"something is built for a call that is refused");
    return WEIR_INTERNAL;
}

static void rows_of_names(weir_resource *variable) {
    weir_resource_info info = {.struct_size = sizeof info}, short_info = {.struct_size = 8};
    char buffer[8];
    char long_name[130], long_type[65];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[129] = 0;
    memset(long_type, 't', sizeof long_type - 1);
    long_type[64] = 0;

    ROW(weir_resource_lookup, (NULL, NULL, "x", 0, NEW(resource)), INVALID, "engine is NULL");
    ROW(weir_resource_lookup, (WRONG(stream), NULL, "x", 0, NEW(resource)), INVALID, "engine: expected an engine");
    ROW(weir_resource_lookup, (good.engine, NULL, NULL, 0, NEW(resource)), INVALID, "name is NULL");
    ROW(weir_resource_lookup, (good.engine, NULL, "x", 4, NEW(resource)), INVALID, "kind is 4");
    ROW(weir_resource_lookup, (good.engine, NULL, "x", 0, NULL), INVALID, "out_resource is NULL");
    ROW(weir_resource_lookup, (good.engine, NULL, "", 0, NEW(resource)), INVALID, "name is empty");
    ROW(weir_resource_lookup, (good.engine, NULL, "_x", 0, NEW(resource)), INVALID, "name '_x' begins with '_'");
    ROW(weir_resource_lookup, (good.engine, NULL, "/x", 0, NEW(resource)), INVALID, "name '/x' begins with neither");
    ROW(weir_resource_lookup, (good.engine, NULL, "a b", 0, NEW(resource)), INVALID, "name 'a b' has ' ' in it");
    ROW(weir_resource_lookup, (good.engine, NULL, BAD_UTF8, 0, NEW(resource)), INVALID, "name is not UTF-8");
    ROW(weir_resource_lookup, (good.engine, NULL, long_name, 0, NEW(resource)), INVALID, "name has 129 bytes");
    ROW(weir_resource_lookup, (good.engine, "", "x", 0, NEW(resource)), INVALID, "container is empty");
    ROW(weir_resource_lookup, (good.engine, long_type, "x", 0, NEW(resource)), INVALID, "container has 64 bytes");
    ROW(weir_resource_lookup, (good.engine, BAD_UTF8, "x", 0, NEW(resource)), INVALID, "container is not UTF-8");
    ROW(weir_resource_lookup, (good.engine, "none", "x", 0, NEW(resource)), WEIR_NOT_FOUND, "has no container 'none'");
    ROW(weir_resource_lookup_or_create, (NULL, NULL, "x", 0, never_built, NULL, NEW(resource)), INVALID, "engine is NULL");
    ROW(weir_resource_lookup_or_create, (good.engine, NULL, "x", 0, NULL, NULL, NEW(resource)), INVALID, "build is NULL");
    ROW(weir_resource_lookup_or_create, (good.engine, NULL, NULL, 0, never_built, NULL, NEW(resource)), INVALID, "name is NULL");
    ROW(weir_resource_lookup_or_create, (good.engine, NULL, "x", 0, never_built, NULL, NULL), INVALID, "out_resource is NULL");
    ROW(weir_resource_lookup_or_create, (good.engine, NULL, "x", 9, never_built, NULL, NEW(resource)), INVALID, "kind is 9");
    ROW(weir_resource_lookup_or_create, (good.engine, NULL, "bad", WEIR_RESOURCE_TABLE, never_built, NULL, NEW(resource)),
        INVALID, "variable 'bad' of container 'default' is no table");
    ROW(weir_resource_create_host, (NULL, NULL, "y", "t", buffer, never_destroyed, NEW(resource)), INVALID, "engine is NULL");
    ROW(weir_resource_create_host, (good.engine, NULL, "y", NULL, buffer, never_destroyed, NEW(resource)), INVALID, "type_name is NULL");
    ROW(weir_resource_create_host, (good.engine, NULL, "y", "", buffer, never_destroyed, NEW(resource)), INVALID, "type_name has 0 bytes");
    ROW(weir_resource_create_host, (good.engine, NULL, "y", long_type, buffer, never_destroyed, NEW(resource)), INVALID, "type_name has 64 bytes");
    ROW(weir_resource_create_host, (good.engine, NULL, "y z", "t", buffer, never_destroyed, NEW(resource)), INVALID, "name 'y z'");
    ROW(weir_resource_create_host, (good.engine, NULL, "bad", "t", buffer, never_destroyed, NEW(resource)), WEIR_ALREADY_EXISTS, "'bad' already");
    ROW(weir_resource_create_host, (good.engine, NULL, "y", "t", buffer, never_destroyed, NULL), INVALID, "out_resource is NULL");
    ROW(weir_resource_get_host, (NULL, "t", NEW(data)), INVALID, "resource is NULL");
    ROW(weir_resource_get_host, (variable, NULL, NEW(data)), INVALID, "type_name is NULL");
    ROW(weir_resource_get_host, (variable, "t", NEW(data)), INVALID, "variable 'bad' of container 'default' is no host object");
    ROW(weir_resource_get_host, (variable, "t", NULL), INVALID, "out_object is NULL");
    ROW(weir_resource_retain, (NULL), INVALID, "resource is NULL");
    ROW(weir_resource_retain, (WRONG(tensor)), INVALID, "resource: expected a resource, got a tensor");
    ROW(weir_resource_release, (NULL));
    ROW(weir_resource_release, (WRONG(tensor)));
    ROW(weir_resource_release, (NO_OBJECT));
    ROW(weir_resource_delete, (NULL, NULL, "x"), INVALID, "engine is NULL");
    ROW(weir_resource_delete, (good.engine, NULL, NULL), INVALID, "name is NULL");
    ROW(weir_resource_delete, (good.engine, NULL, "gone"), WEIR_NOT_FOUND, "has no resource 'gone'");
    ROW(weir_resource_clear, (NULL, NULL, &out.size), INVALID, "engine is NULL");
    ROW(weir_resource_clear, (good.engine, "-", &out.size), INVALID, "container '-'");
    ROW(weir_resource_list, (NULL, NULL, &info, 1, &out.size), INVALID, "engine is NULL");
    ROW(weir_resource_list, (good.engine, NULL, NULL, 1, &out.size), INVALID, "infos is NULL");
    ROW(weir_resource_list, (good.engine, NULL, &short_info, 1, &out.size), INVALID, "infos->struct_size is 8");
    ROW(weir_resource_list, (good.engine, "a b", &info, 1, &out.size), INVALID, "container 'a b'");
    ROW(weir_resource_list, (good.engine, NULL, &info, 1, NULL), INVALID, "out_count is NULL");
    ROW(weir_resource_get_info, (NULL, &info), INVALID, "resource is NULL");
    ROW(weir_resource_get_info, (variable, NULL), INVALID, "out_info is NULL");
    ROW(weir_resource_get_info, (variable, &short_info), INVALID, "out_info->struct_size is 8");
    ROW(weir_resource_from_id, (NULL, 1, NEW(resource)), INVALID, "engine is NULL");
    ROW(weir_resource_from_id, (good.engine, 1, NULL), INVALID, "out_resource is NULL");
    ROW(weir_resource_from_id, (good.engine, 0, NEW(resource)), WEIR_NOT_FOUND, "engine cpu:0 has never had a resource 0x0");
    ROW(weir_resource_from_id, (good.engine, UINT64_MAX, NEW(resource)), WEIR_NOT_FOUND, "has never had");
    ROW(weir_resource_get_leaks, (NULL, 4, &out.size), INVALID, "buffer is NULL");
    ROW(weir_resource_get_leaks, (NULL, 0, NULL), INVALID, "out_length is NULL");
}

static void rows_of_variables(weir_resource *variable, weir_resource *table) {
    weir_tensor_desc four = vector_desc(4), negative = vector_desc(-1), strange = make_desc(99, 1, 4, 0, 0);

    ROW(weir_variable_create, (NULL, NULL, "v", &four, 0, NULL, NEW(resource)), INVALID, "engine is NULL");
    ROW(weir_variable_create, (good.engine, NULL, "v", NULL, 0, NULL, NEW(resource)), INVALID, "desc is NULL");
    ROW(weir_variable_create, (good.engine, NULL, "v", &four, 2, NULL, NEW(resource)), INVALID, "flags has unknown bits 0x2");
    ROW(weir_variable_create, (good.engine, NULL, "v", &negative, 0, NULL, NEW(resource)), INVALID, "desc: dims[0] is -1");
    ROW(weir_variable_create, (good.engine, NULL, "v", &strange, 1, NULL, NEW(resource)), INVALID, "desc: dtype is 99");
    ROW(weir_variable_create, (good.engine, NULL, "v", &four, 0, WRONG(stream), NEW(resource)), INVALID, "initial: expected a tensor");
    ROW(weir_variable_create, (good.engine, NULL, "bad", &four, 0, NULL, NEW(resource)), WEIR_ALREADY_EXISTS, "'bad' already");
    ROW(weir_variable_create, (good.engine, "c d", "v", &four, 0, NULL, NEW(resource)), INVALID, "container 'c d'");
    ROW(weir_variable_create, (good.engine, NULL, "v", &four, 0, NULL, NULL), INVALID, "out_variable is NULL");
    ROW(weir_variable_read, (NULL, good.tensor), INVALID, "variable is NULL");
    ROW(weir_variable_read, (variable, NULL), INVALID, "tensor is NULL");
    ROW(weir_variable_read, (table, good.tensor), INVALID, "without a name is no variable");
    ROW(weir_variable_assign, (NULL, good.tensor), INVALID, "variable is NULL");
    ROW(weir_variable_assign, (variable, WRONG(kernel)), INVALID, "tensor: expected a tensor");
    ROW(weir_variable_assign, (table, good.tensor), INVALID, "without a name is no variable");
    ROW(weir_kernel_create_variable, (NULL, variable, WEIR_VARIABLE_READ, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_variable, (good.engine, NULL, WEIR_VARIABLE_READ, NULL, NEW(kernel)), INVALID, "variable is NULL");
    ROW(weir_kernel_create_variable, (good.engine, table, WEIR_VARIABLE_READ, NULL, NEW(kernel)), INVALID, "is no variable");
    ROW(weir_kernel_create_variable, (good.engine, variable, WEIR_VARIABLE_READ, WRONG(stream), NEW(kernel)), INVALID, "options->struct_size is");
    ROW(weir_kernel_create_variable, (good.engine, variable, WEIR_VARIABLE_READ, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_variable, (good.engine, variable, 0, NULL, NEW(kernel)),
        INVALID, "op is 0, expected 1 (READ), 2 (ASSIGN) or 3 (ASSIGN_ADD)");
    ROW(weir_kernel_create_variable, (NULL, variable, WEIR_VARIABLE_ASSIGN, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_variable, (good.engine, WRONG(tensor), WEIR_VARIABLE_ASSIGN, NULL, NEW(kernel)), INVALID, "variable: expected a resource");
    ROW(weir_kernel_create_variable, (good.engine, variable, WEIR_VARIABLE_ASSIGN, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_variable, (NULL, variable, WEIR_VARIABLE_ASSIGN_ADD, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_variable, (good.engine, table, WEIR_VARIABLE_ASSIGN_ADD, NULL, NEW(kernel)), INVALID, "is no variable");
    ROW(weir_kernel_create_variable, (good.engine, variable, WEIR_VARIABLE_ASSIGN_ADD, NULL, NULL), INVALID, "out_kernel is NULL");
}

static void rows_of_table_kernels(const weir_resource *table, const weir_resource *variable) {
    ROW(weir_kernel_create_table, (NULL, table, WEIR_TABLE_FIND, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_table, (good.engine, NULL, WEIR_TABLE_FIND, NULL, NEW(kernel)), INVALID, "table is NULL");
    ROW(weir_kernel_create_table, (good.engine, variable, WEIR_TABLE_FIND, NULL, NEW(kernel)), INVALID, "is no table");
    ROW(weir_kernel_create_table, (good.engine, table, WEIR_TABLE_FIND, WRONG(stream), NEW(kernel)), INVALID, "options->struct_size is");
    ROW(weir_kernel_create_table, (good.engine, table, WEIR_TABLE_FIND, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_table, (good.engine, table, 4, NULL, NEW(kernel)),
        INVALID, "op is 4, expected 1 (FIND), 2 (INSERT) or 3 (SIZE)");
    ROW(weir_kernel_create_table, (NULL, table, WEIR_TABLE_INSERT, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_table, (good.engine, variable, WEIR_TABLE_INSERT, NULL, NEW(kernel)), INVALID, "is no table");
    ROW(weir_kernel_create_table, (good.engine, variable, WEIR_TABLE_SIZE, NULL, NEW(kernel)), INVALID, "is no table");
    ROW(weir_kernel_create_table, (good.engine, table, WEIR_TABLE_SIZE, NULL, NULL), INVALID, "out_kernel is NULL");
}

static void rows_of_dlpack(void) {
    void *foreign[16] = {0};
    ROW(weir_tensor_to_dlpack, (NULL, NULL, NULL, 0, (void *)NEW(data)), INVALID, "tensor is NULL");
    ROW(weir_tensor_to_dlpack, (good.tensor, WRONG(kernel), NULL, 0, (void *)NEW(data)), INVALID, "producer: expected a stream");
    ROW(weir_tensor_to_dlpack, (good.tensor, NULL, WRONG(kernel), 0, (void *)NEW(data)), INVALID, "consumer: expected a stream");
    ROW(weir_tensor_to_dlpack, (good.tensor, NULL, NULL, 4, (void *)NEW(data)), INVALID, "flags has unknown bits 0x4");
    ROW(weir_tensor_to_dlpack, (good.tensor, NULL, NULL, 0, NULL), INVALID, "out_managed is NULL");
    ROW(weir_tensor_to_dlpack_legacy, (WRONG(stream), NULL, NULL, 0, (void *)NEW(data)), INVALID, "tensor: expected a tensor");
    ROW(weir_tensor_to_dlpack_legacy, (good.tensor, NULL, NULL, 0, NULL), INVALID, "out_managed is NULL");
    ROW(weir_tensor_from_dlpack, (NULL, (void *)foreign, 0, NEW(tensor)), INVALID, "engine is NULL");
    ROW(weir_tensor_from_dlpack, (good.engine, NULL, 0, NEW(tensor)), INVALID, "managed is NULL");
    ROW(weir_tensor_from_dlpack, (good.engine, (void *)foreign, 8, NEW(tensor)), INVALID, "flags has unknown bits 0x8");
    ROW(weir_tensor_from_dlpack, (good.engine, (void *)foreign, 0, NULL), INVALID, "out_tensor is NULL");
    ROW(weir_tensor_from_dlpack, (good.engine, (void *)foreign, 0, NEW(tensor)), WEIR_UNIMPLEMENTED, "DLPack 0.0");
    ROW(weir_tensor_from_dlpack_legacy, (NULL, (void *)foreign, 0, NEW(tensor)), INVALID, "engine is NULL");
    ROW(weir_tensor_from_dlpack_legacy, (good.engine, NULL, 0, NEW(tensor)), INVALID, "managed is NULL");
    ROW(weir_tensor_from_dlpack_legacy, (good.engine, (void *)foreign, 0, NEW(tensor)), INVALID, "device type 0:0");
    ROW(weir_tensor_from_dlpack_legacy, (good.engine, (void *)foreign, 0, NULL), INVALID, "out_tensor is NULL");
}

static void rows_of_tables(weir_resource *variable, weir_resource *table) {
    weir_table_desc desc = {.struct_size = sizeof desc, .key = WEIR_TABLE_KEY_INT64, .row = vector_desc(2)}, bad = desc;
    int64_t numbers[2] = {1, 2};
    const void *texts[2] = {"a", NULL};
    size_t lengths[2] = {1, 1};
    float rows[4] = {0};
    weir_table_keys keys = {.struct_size = sizeof keys, .count = 2, .integers = numbers}, both = keys, none = keys, text = keys;
    weir_table_keys short_keys = {.struct_size = 8};
    weir_table_contents contents = {.struct_size = sizeof contents}, short_contents = {.struct_size = 16};
    both.bytes = texts;
    none.integers = NULL;
    text.integers = NULL;
    text.bytes = texts;
    text.lengths = lengths;

    ROW(weir_table_create, (NULL, NULL, "t", &desc, NEW(resource)), INVALID, "engine is NULL");
    ROW(weir_table_create, (good.engine, NULL, "t", NULL, NEW(resource)), INVALID, "desc is NULL");
    ROW(weir_table_create, (good.engine, NULL, "t", &desc, NULL), INVALID, "out_table is NULL");
    bad.key = 3;
    ROW(weir_table_create, (good.engine, NULL, "t", &bad, NEW(resource)), INVALID, "desc->key is 3");
    bad.key = 1;
    bad.reserved = 1;
    ROW(weir_table_create, (good.engine, NULL, "t", &bad, NEW(resource)), INVALID, "desc->reserved is 1");
    bad.reserved = 0;
    bad.row.dims[0] = -2;
    ROW(weir_table_create, (good.engine, NULL, "t", &bad, NEW(resource)), INVALID, "desc->row: dims[0] is -2");
    bad.struct_size = 8;
    ROW(weir_table_create, (good.engine, NULL, "t", &bad, NEW(resource)), INVALID, "desc->struct_size is 8");
    ROW(weir_table_insert, (NULL, &keys, rows, sizeof rows), INVALID, "table is NULL");
    ROW(weir_table_insert, (variable, &keys, rows, sizeof rows), INVALID, "is no table");
    ROW(weir_table_insert, (table, NULL, rows, sizeof rows), INVALID, "keys is NULL");
    ROW(weir_table_insert, (table, &short_keys, rows, sizeof rows), INVALID, "keys->struct_size is 8");
    ROW(weir_table_insert, (table, &both, rows, sizeof rows), INVALID, "are both given");
    ROW(weir_table_insert, (table, &none, rows, sizeof rows), INVALID, "are NULL, but keys->count is 2");
    ROW(weir_table_insert, (table, &text, rows, sizeof rows), INVALID, "keys->bytes[1] is NULL");
    ROW(weir_table_insert, (table, &keys, NULL, sizeof rows), INVALID, "rows is NULL");
    ROW(weir_table_insert, (table, &keys, rows, 8), INVALID, "rows has 8 bytes, expected 2 rows of f32[2]");
    ROW(weir_table_find, (NULL, &keys, NULL, rows, sizeof rows, &out.size, NULL), INVALID, "table is NULL");
    ROW(weir_table_find, (variable, &keys, NULL, rows, sizeof rows, &out.size, NULL), INVALID, "is no table");
    ROW(weir_table_find, (table, NULL, NULL, rows, sizeof rows, &out.size, NULL), INVALID, "keys is NULL");
    ROW(weir_table_find, (table, &keys, NULL, NULL, sizeof rows, &out.size, NULL), INVALID, "out_rows is NULL");
    ROW(weir_table_find, (table, &keys, NULL, rows, 12, &out.size, NULL), INVALID, "rows has 12 bytes");
    ROW(weir_table_export, (NULL, &contents), INVALID, "table is NULL");
    ROW(weir_table_export, (variable, &contents), INVALID, "is no table");
    ROW(weir_table_export, (table, NULL), INVALID, "contents is NULL");
    ROW(weir_table_export, (table, &short_contents), INVALID, "contents->struct_size is 16");
}

void bad_input_resource(void) {
    weir_tensor_desc four = vector_desc(4);
    weir_table_desc desc = {.struct_size = sizeof desc, .key = WEIR_TABLE_KEY_INT64, .row = vector_desc(2)};
    weir_resource *variable = NULL, *table = NULL;
    CHECK_OK(weir_variable_create(good.engine, NULL, "bad", &four, 0, NULL, &variable));
    CHECK_OK(weir_table_create(good.engine, NULL, NULL, &desc, &table));
    rows_of_names(variable);
    rows_of_variables(variable, table);
    rows_of_dlpack();
    rows_of_tables(variable, table);
    rows_of_table_kernels(table, variable);
    CHECK_OK(weir_resource_clear(good.engine, NULL, NULL));
    weir_resource_release(variable);
    weir_resource_release(table);
}
