/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels of lookup tables, on streams and in graphs; the order that a graph must give; and tensors of s64, which are
 * their keys.
 */

#include <weir/ops.h>
#include <weir/resource.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"
#include "weir/testing.h"

static int64_t *longs(const weir_tensor *tensor) {
    return (int64_t *)(void *)floats(tensor);
}

static const uint8_t *flags_of(const weir_tensor *tensor) {
    return (const uint8_t *)(void *)floats(tensor);
}

static weir_tensor *keys_of(weir_engine *engine, const int64_t *keys, int64_t count) {
    weir_tensor *tensor = make_tensor(engine, make_desc(WEIR_S64, 1, count, 0, 0));
    memcpy(longs(tensor), keys, (size_t)count * sizeof *keys);
    return tensor;
}

static weir_resource *make_table(weir_engine *engine, const char *name, weir_table_key key) {
    const weir_table_desc desc = {.struct_size = sizeof desc, .key = key, .row = vector_desc(2)};
    weir_resource *table = NULL;
    CHECK_OK(weir_table_create(engine, NULL, name, &desc, &table));
    return table;
}

typedef struct kernels {
    weir_kernel *find, *insert, *size;
} kernels;

static kernels make_kernels(weir_engine *engine, weir_resource *table) {
    kernels k;
    CHECK_OK(weir_kernel_create_table(engine, table, WEIR_TABLE_FIND, NULL, &k.find));
    CHECK_OK(weir_kernel_create_table(engine, table, WEIR_TABLE_INSERT, NULL, &k.insert));
    CHECK_OK(weir_kernel_create_table(engine, table, WEIR_TABLE_SIZE, NULL, &k.size));
    return k;
}

static void release_kernels(kernels *k) {
    weir_kernel_release(k->find);
    weir_kernel_release(k->insert);
    weir_kernel_release(k->size);
}

static void on_streams(uint64_t stream_flags) {
    weir_engine *engine = make_engine(NULL);
    weir_resource *table = make_table(engine, "rows", WEIR_TABLE_KEY_INT64);
    kernels k = make_kernels(engine, table);
    weir_stream *stream = make_stream(engine, stream_flags, NULL, NULL);
    const int64_t put[] = {INT64_MAX, -1, 1, -1}, ask[] = {1, 2, INT64_MAX, -1, 0};
    weir_tensor *keys = keys_of(engine, put, 4), *asked = keys_of(engine, ask, 5);
    weir_tensor *rows = make_tensor(engine, matrix_desc(4, 2)), *missing = make_tensor(engine, vector_desc(2));
    weir_tensor *got = make_tensor(engine, matrix_desc(5, 2)), *found = make_tensor(engine, make_desc(WEIR_BOOL, 1, 5, 0, 0));
    weir_tensor *size = make_tensor(engine, make_desc(WEIR_S64, 0, 0, 0, 0));
    for (int i = 0; i < 8; i++) floats(rows)[i] = (float)i;
    floats(missing)[0] = -7.0f, floats(missing)[1] = -8.0f;
    weir_tensor *in[] = {keys, rows}, *ask_in[] = {asked, missing}, *out[] = {got, found};
    CHECK_OK(weir_enqueue(stream, k.insert, in, 2, NULL, 0));
    CHECK_OK(weir_enqueue(stream, k.find, ask_in, 2, out, 2));
    CHECK_OK(weir_enqueue(stream, k.size, NULL, 0, &size, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(longs(size)[0], 3);
    const float expected[] = {4, 5, -7, -8, 0, 1, 6, 7, -7, -8};
    CHECK(memcmp(floats(got), expected, sizeof expected) == 0);
    const uint8_t there[] = {1, 0, 1, 1, 0};
    CHECK(memcmp(flags_of(found), there, sizeof there) == 0);

    /* What does not fit. */
    weir_tensor *wrong_in[] = {rows, rows}, *few[] = {keys, got}, *no_default[] = {asked, asked};
    CHECK_CODE(weir_enqueue(stream, k.insert, wrong_in, 2, NULL, 0), WEIR_INVALID_ARGUMENT,
               "kernel 'table_insert': input 0: expected s64 elements, the table's keys, got f32[4,2]");
    CHECK_CODE(weir_enqueue(stream, k.insert, few, 2, NULL, 0), WEIR_INVALID_ARGUMENT, "input 1: expected f32[4,2], got f32[5,2]");
    CHECK_CODE(weir_enqueue(stream, k.find, no_default, 2, out, 2), WEIR_INVALID_ARGUMENT, "input 1: expected f32[2], got s64[5]");
    weir_kernel *none = NULL;
    weir_engine *other = make_engine(NULL), *device = NULL;
    weir_resource *words = make_table(engine, "words", WEIR_TABLE_KEY_BYTES);
    CHECK_CODE(weir_kernel_create_table(engine, words, WEIR_TABLE_FIND, NULL, &none), WEIR_INVALID_ARGUMENT,
               "table 'words' of container 'default' has byte strings as keys, which no tensor has");
    CHECK_CODE(weir_kernel_create_table(other, table, WEIR_TABLE_FIND, NULL, &none), WEIR_INVALID_ARGUMENT, "of another engine");
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &device));
    weir_resource *there_too = make_table(device, "rows", WEIR_TABLE_KEY_INT64);
    const char refused[] = "engine emulated:0 has no kernels of tables, which are in the host's memory";
    CHECK_CODE(weir_kernel_create_table(device, there_too, WEIR_TABLE_FIND, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK_CODE(weir_kernel_create_table(device, there_too, WEIR_TABLE_INSERT, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK_CODE(weir_kernel_create_table(device, there_too, WEIR_TABLE_SIZE, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK(none == NULL);
    weir_resource_release(there_too);
    weir_resource_release(words);
    weir_engine_release(device);
    weir_engine_release(other);
    CHECK_OK(weir_resource_delete(engine, NULL, "rows"));
    const weir_status late = weir_enqueue(stream, k.size, NULL, 0, &size, 1);
    CHECK_CODE(late == WEIR_OK ? weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE) : late, WEIR_NOT_FOUND,
               "table 'rows' of container 'default' was destroyed");
    weir_tensor *all[] = {keys, asked, rows, missing, got, found, size};
    for (int i = 0; i < 7; i++) weir_tensor_release(all[i]);
    weir_stream_release(stream);
    release_kernels(&k);
    weir_resource_release(table);
    weir_engine_release(engine);
}

/* A graph that inserts what it does not know, and then looks: the order must be said, and is kept. */
static void in_graphs(weir_threadpool *pool) {
    enum { N = 100 };
    weir_engine *engine = make_engine(pool);
    weir_resource *table = make_table(engine, "rows", WEIR_TABLE_KEY_INT64);
    kernels k = make_kernels(engine, table);
    weir_graph *graph = make_graph("growing");
    const weir_tensor_desc keys_desc = make_desc(WEIR_S64, 2, N / 2, 2, 0), rows_desc = make_desc(WEIR_F32, 3, N / 2, 2, 2);
    const weir_tensor_desc row = vector_desc(2);
    weir_value keys, rows, missing, found[2], count;
    weir_node insert, find, size;
    weir_program *program = NULL;
    CHECK_OK(weir_graph_add_input(graph, "keys", &keys_desc, &keys));
    CHECK_OK(weir_graph_add_input(graph, "rows", &rows_desc, &rows));
    CHECK_OK(weir_graph_add_input(graph, "missing", &row, &missing));
    const weir_value put[] = {keys, rows}, look[] = {keys, missing};
    CHECK_OK(weir_graph_add_kernel(graph, "insert", k.insert, put, 2, NULL, 0, &insert));
    CHECK_OK(weir_graph_add_kernel(graph, "find", k.find, look, 2, found, 2, &find));
    CHECK_OK(weir_graph_add_kernel(graph, "size", k.size, NULL, 0, &count, 1, &size));
    CHECK_OK(weir_graph_add_output(graph, "found", found[0]));
    CHECK_OK(weir_graph_add_output(graph, "flags", found[1]));
    CHECK_OK(weir_graph_add_output(graph, "count", count));
    CHECK_OK(weir_graph_add_control_edge(graph, insert, size));
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT,
               "writes table 'rows' of container 'default' and node 'find' reads it, in no order: add a control edge");
    CHECK(strstr(weir_last_error_message(), "OPTIMISTIC") == NULL);
    CHECK_OK(weir_graph_add_control_edge(graph, insert, find));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    CHECK_OK(weir_resource_delete(engine, NULL, "rows")); /* the program keeps it */
    weir_tensor *in[] = {make_tensor(engine, keys_desc), make_tensor(engine, rows_desc), make_tensor(engine, row)};
    weir_tensor *out[] = {make_tensor(engine, rows_desc), make_tensor(engine, make_desc(WEIR_BOOL, 2, N / 2, 2, 0)),
                          make_tensor(engine, make_desc(WEIR_S64, 0, 0, 0, 0))};
    for (int run = 0; run < scale(40); run++) {
        for (int i = 0; i < N; i++) longs(in[0])[i] = (int64_t)run * 1000000007 * (run % 2 == 0 ? 1 : -1) + i;
        for (int i = 0; i < 2 * N; i++) floats(in[1])[i] = (float)(run * 1000 + i);
        CHECK_OK(weir_program_run(program, NULL, in, 3, out, 3, NULL));
        CHECK(memcmp(floats(out[0]), floats(in[1]), 2 * N * sizeof(float)) == 0);
        for (int i = 0; i < N; i++) CHECK_EQ(flags_of(out[1])[i], 1);
        CHECK_EQ(longs(out[2])[0], (run + 1) * N);
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]), weir_tensor_release(out[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    release_kernels(&k);
    weir_resource_release(table);
    weir_engine_release(engine);
}

/* Elements of s64 are keys and indices, and are moved and computed with. */
static void kernels_of_s64(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    const weir_tensor_desc desc = make_desc(WEIR_S64, 2, 3, 4, 0), turned_desc = make_desc(WEIR_S64, 2, 4, 3, 0);
    weir_tensor *a = make_tensor(engine, desc), *b = make_tensor(engine, desc), *turned = make_tensor(engine, turned_desc);
    for (int i = 0; i < 12; i++) longs(a)[i] = (int64_t)i * 5000000000;
    CHECK_OK(weir_enqueue_copy(stream, a, b));
    CHECK(memcmp(longs(a), longs(b), 96) == 0);
    weir_kernel *transpose = NULL, *gather = NULL, *convert = NULL, *add = NULL, *concat = NULL;
    const weir_transpose_desc swap = {.struct_size = sizeof swap, .rank = 2, .permutation = {1, 0}};
    CHECK_OK(weir_kernel_create_transpose(engine, &swap, NULL, &transpose));
    CHECK_OK(weir_enqueue(stream, transpose, &a, 1, &turned, 1));
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++) CHECK_EQ(longs(turned)[3 * j + i], longs(a)[4 * i + j]);
    }
    const weir_concat_desc rows = {.struct_size = sizeof rows, .num_inputs = 2, .axis = 0};
    weir_tensor *six = make_tensor(engine, make_desc(WEIR_S64, 2, 6, 4, 0)), *pair[] = {a, b};
    CHECK_OK(weir_kernel_create_concat(engine, &rows, NULL, &concat));
    CHECK_OK(weir_enqueue(stream, concat, pair, 2, &six, 1));
    CHECK(memcmp(longs(six) + 12, longs(b), 96) == 0);

    /* Indices of 64 bits, and elements. */
    const int64_t which[] = {2, 0, 2, 1, 0}, beyond[] = {0, INT64_C(1) << 32};
    const weir_gather_desc first = {.struct_size = sizeof first, .axis = 0};
    weir_tensor *indices = keys_of(engine, which, 5), *bad = keys_of(engine, beyond, 2);
    weir_tensor *chosen = make_tensor(engine, make_desc(WEIR_S64, 2, 5, 4, 0)), *two = make_tensor(engine, make_desc(WEIR_S64, 2, 2, 4, 0));
    weir_tensor *of[] = {a, indices}, *of_bad[] = {a, bad};
    CHECK_OK(weir_kernel_create_gather(engine, &first, NULL, &gather));
    CHECK_OK(weir_enqueue(stream, gather, of, 2, &chosen, 1));
    for (int i = 0; i < 5; i++) CHECK(memcmp(longs(chosen) + 4 * i, longs(a) + 4 * which[i], 32) == 0);
    CHECK_CODE(weir_enqueue(stream, gather, of_bad, 2, &two, 1), WEIR_OUT_OF_RANGE, "input 1: element 1 is 4294967296, expected an index from 0 to 2");
    CHECK_OK(weir_stream_clear_error(stream));

    const weir_convert_desc to_floats = {.struct_size = sizeof to_floats, .dtype = WEIR_F32, .scale = 1.0f};
    CHECK_OK(weir_kernel_create_convert(engine, &to_floats, NULL, &convert));
    weir_tensor *f = make_tensor(engine, matrix_desc(3, 4));
    CHECK_OK(weir_enqueue(stream, convert, &a, 1, &f, 1));
    for (int i = 0; i < 12; i++) CHECK_EQ(floats(f)[i], (float)longs(a)[i]);
    weir_kernel_release(convert);
    const weir_convert_desc to_long = {.struct_size = sizeof to_long, .dtype = WEIR_S64};
    CHECK_OK(weir_kernel_create_convert(engine, &to_long, NULL, &convert));
    CHECK_OK(weir_enqueue(stream, convert, &f, 1, &b, 1));
    for (int i = 0; i < 12; i++) CHECK_EQ(longs(b)[i], (int64_t)floats(f)[i]);
    const weir_binary_desc plus = {.struct_size = sizeof plus, .op = WEIR_BINARY_ADD};
    CHECK_OK(weir_kernel_create_binary(engine, &plus, NULL, &add));
    CHECK_OK(weir_enqueue(stream, add, (weir_tensor *[]){a, a}, 2, &b, 1));
    for (int i = 0; i < 12; i++) CHECK_EQ(longs(b)[i], (int64_t)i * 10000000000);
    weir_tensor *all[] = {a, b, turned, six, indices, bad, chosen, two, f};
    for (int i = 0; i < 9; i++) weir_tensor_release(all[i]);
    weir_kernel *made[] = {transpose, gather, convert, add, concat};
    for (int i = 0; i < 5; i++) weir_kernel_release(made[i]);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    on_streams(WEIR_STREAM_DEFAULT);
    on_streams(WEIR_STREAM_ASYNCHRONOUS);
    in_graphs(NULL);
    weir_threadpool *pool = NULL;
    test_pool *threads = test_pool_create(POOL_FIFO, 2, &pool);
    in_graphs(pool);
    weir_threadpool_release(pool);
    test_pool_destroy(threads);
    kernels_of_s64();
    check_released(&before);
    printf("ok\n");
    return 0;
}
