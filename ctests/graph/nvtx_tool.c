/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A tool for NVTX, as a library that NVTX_INJECTION64_PATH names. It keeps what it is told. The types are those that
 * NVTX 3 gives to tools.
 */

#include <stddef.h>
#include <stdint.h>

#include "marker_log.h"

MARKER_LOG;

typedef struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} attributes;

typedef void (*function)(void);

typedef struct callbacks {
    size_t struct_size;
    int (*get_module)(int module, function ***out_table, unsigned *out_size);
} callbacks;

typedef struct versions {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_version)(uint32_t version);
} versions;

static int domain;

static void *create_domain(const char *name) {
    expect_marker(&told_markers, strcmp(name, "weir") == 0, "the domain is not weir");
    return &domain;
}

static int push(void *of, const attributes *about) {
    expect_marker(&told_markers, of == &domain, "a range of another domain");
    expect_marker(&told_markers, about->version == 3 && about->size == sizeof *about && sizeof *about == 48, "size");
    expect_marker(&told_markers, about->message_type == 1 && about->payload_type == 1, "types");
    put_marker(&told_markers, about->message);
    return 0;
}

static int pop(void *of) {
    expect_marker(&told_markers, of == &domain, "an end of another domain");
    put_marker(&told_markers, "");
    return 0;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t number));

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t number)) {
    static int times;
    expect_marker(&told_markers, ++times == 1, "initialised twice");
    const callbacks *all = get_table(1);
    const versions *version = get_table(3);
    function **table = NULL;
    unsigned size = 0;
    if (all == NULL || all->struct_size != sizeof *all || get_table(2) != NULL) return 0;
    if (version == NULL || version->version != 3) return 0;
    version->set_version(3);
    expect_marker(&told_markers, all->get_module(99, &table, &size) == 0, "there is a module 99");
    expect_marker(&told_markers, all->get_module(1, &table, &size) == 1 && size == 16, "the first module");
    for (unsigned i = 1; i < size; i++) expect_marker(&told_markers, table[i] != NULL, "no place of the first module");
    if (all->get_module(5, &table, &size) != 1 || size < 16 || table[0] != NULL || table[size] != NULL) return 0;
    *table[4] = (function)push;
    *table[5] = (function)pop;
    *table[12] = (function)create_domain;
    return 1;
}
