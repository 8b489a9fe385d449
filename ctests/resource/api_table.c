/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Lookup tables: a vocabulary of words, and rows of floats by integer.
 */

#include <weir/resource.h>
#include <weir/inspect.h>

#include "make.h"

static weir_resource *make_table(weir_engine *engine, const char *name, weir_table_key key, weir_tensor_desc row) {
    weir_table_desc desc = {.struct_size = sizeof desc, .key = key, .row = row};
    weir_resource *table = NULL;
    CHECK_OK(weir_table_create(engine, NULL, name, &desc, &table));
    return table;
}

static uint64_t rows_in(const weir_resource *table) {
    weir_resource_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_resource_get_info(table, &info));
    return info.rows;
}

static void test_words(void) {
    weir_engine *engine = make_engine(NULL);
    weir_resource *table = make_table(engine, "words", WEIR_TABLE_KEY_BYTES, make_desc(WEIR_S32, 0, 0, 0, 0));
    const void *words[] = {"weir", "a", "stream", "", "a\0b"};
    size_t lengths[] = {4, 1, 6, 0, 3}, found = 0;
    int32_t ids[] = {7, 1, 30, 4, 5}, unknown = -1, got[6];
    weir_table_keys keys = {.struct_size = sizeof keys, .count = 5, .bytes = words, .lengths = lengths};
    CHECK_OK(weir_table_insert(table, &keys, ids, sizeof ids));
    CHECK_EQ(rows_in(table), 5);

    const void *asked[] = {"stream", "ab", "a\0b", "", "weir", "a"};
    size_t asked_lengths[] = {6, 2, 3, 0, 4, 1};
    uint8_t flags[6];
    weir_table_keys query = {.struct_size = sizeof query, .count = 6, .bytes = asked, .lengths = asked_lengths};
    CHECK_OK(weir_table_find(table, &query, &unknown, got, sizeof got, &found, flags));
    const int32_t expected[] = {30, -1, 5, 4, 7, 1};
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(got[i], expected[i]);
        CHECK_EQ(flags[i], i != 1);
    }
    CHECK_EQ(found, 5);
    CHECK_OK(weir_table_find(table, &query, NULL, got, sizeof got, NULL, NULL));
    CHECK_EQ(got[1], 0);

    /* Everything, in the order of the keys. First the sizes. */
    weir_table_contents contents = {.struct_size = sizeof contents};
    CHECK_OK(weir_table_export(table, &contents));
    CHECK_EQ(contents.count, 5);
    CHECK_EQ(contents.bytes_size, 14);
    CHECK_EQ(contents.rows_size, sizeof ids);
    char bytes[14];
    size_t sizes[5];
    int32_t rows[5];
    contents.capacity = 4;
    contents.lengths = sizes;
    contents.bytes = bytes;
    contents.bytes_capacity = sizeof bytes;
    contents.rows = rows;
    contents.rows_capacity = sizeof rows;
    CHECK_CODE(weir_table_export(table, &contents), WEIR_OUT_OF_RANGE, "contents->capacity is 4, the table needs 5");
    contents.capacity = 5;
    contents.bytes_capacity = 13;
    CHECK_CODE(weir_table_export(table, &contents), WEIR_OUT_OF_RANGE, "contents->bytes_capacity is 13");
    contents.bytes_capacity = sizeof bytes;
    CHECK_OK(weir_table_export(table, &contents));
    CHECK(memcmp(bytes, "aa\0bstreamweir", sizeof bytes) == 0);
    const size_t sorted_sizes[] = {0, 1, 3, 6, 4};
    const int32_t sorted_rows[] = {4, 1, 5, 30, 7};
    CHECK(memcmp(sizes, sorted_sizes, sizeof sizes) == 0 && memcmp(rows, sorted_rows, sizeof rows) == 0);

    int64_t number = 1;
    weir_table_keys wrong = {.struct_size = sizeof wrong, .count = 1, .integers = &number};
    CHECK_CODE(weir_table_insert(table, &wrong, ids, 4), WEIR_INVALID_ARGUMENT, "expected byte strings, got 64-bit integers");
    CHECK_CODE(weir_table_insert(table, &keys, ids, 16), WEIR_INVALID_ARGUMENT, "has 16 bytes, expected 5 rows of s32[]");
    CHECK_EQ(rows_in(table), 5);
    weir_resource_release(table);
    weir_engine_release(engine);
}

static void test_rows(void) {
    enum { KEYS = 3000, WIDTH = 3 };
    static int64_t numbers[KEYS];
    static float rows[KEYS][WIDTH], got[KEYS][WIDTH];
    weir_engine *engine = make_engine(NULL);
    weir_resource *table = make_table(engine, "rows", WEIR_TABLE_KEY_INT64, vector_desc(WIDTH)), *again = NULL;
    for (int i = 0; i < KEYS; i++) {
        numbers[i] = (i - 1500) * INT64_C(1000000007);
        for (int k = 0; k < WIDTH; k++) rows[i][k] = (float)(i * WIDTH + k);
    }
    weir_table_keys keys = {.struct_size = sizeof keys, .count = KEYS, .integers = numbers};
    CHECK_OK(weir_table_insert(table, &keys, rows, sizeof rows));
    /* Half of them again, with other rows. */
    for (int i = 0; i < KEYS / 2; i++) rows[i][0] = -1;
    keys.count = KEYS / 2;
    CHECK_OK(weir_table_insert(table, &keys, rows, sizeof rows / 2));
    keys.count = KEYS;
    CHECK_OK(weir_table_find(table, &keys, NULL, got, sizeof got, NULL, NULL));
    CHECK(memcmp(got, rows, sizeof rows) == 0);
    CHECK_OK(weir_resource_lookup(engine, NULL, "rows", WEIR_RESOURCE_TABLE, &again));
    weir_resource_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_resource_get_info(again, &info));
    CHECK_EQ(info.rows, KEYS);
    CHECK(info.bytes == KEYS * (sizeof rows[0] + sizeof numbers[0]) && info.desc.dims[0] == WIDTH);
    weir_resource_release(again);

    static int64_t out_keys[KEYS];
    weir_table_contents contents = {.struct_size = sizeof contents, .capacity = KEYS, .integers = out_keys};
    CHECK_OK(weir_table_export(table, &contents));
    CHECK(memcmp(out_keys, numbers, sizeof numbers) == 0); /* they were in order */
    keys.count = 0;
    CHECK_OK(weir_table_insert(table, &keys, NULL, 0));
    weir_resource_release(table);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_words();
    test_rows();
    check_released(&before);
    puts("tables find what was put into them");
    return 0;
}
