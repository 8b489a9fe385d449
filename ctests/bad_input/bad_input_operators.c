/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input that all built-in operators refuse alike; what one alone refuses is in the other files.
 */

#include <weir/operators.h>
#include <weir/ops.h>

#include "bad_input.h"

#define REFUSED(name, arguments, part) ROW(weir_kernel_create_##name, arguments, INVALID, part)

#define OPERATOR(name, takes_null)                                                                                     \
    do {                                                                                                               \
        weir_##name##_desc desc;                                                                                       \
        memset(&desc, 0, sizeof desc);                                                                                 \
        desc.struct_size = sizeof desc;                                                                                \
        REFUSED(name, (NULL, &desc, NULL, NEW(kernel)), "engine is NULL");                                             \
        REFUSED(name, (WRONG(event), &desc, NULL, NEW(kernel)), "engine: expected an engine, got an event");           \
        REFUSED(name, (NO_OBJECT, &desc, NULL, NEW(kernel)), "engine: expected an engine, got no weir object");        \
        REFUSED(name, (good.engine, &desc, WRONG(graph), NEW(kernel)), "options->struct_size is");                     \
        REFUSED(name, (good.engine, &desc, UNALIGNED, NEW(kernel)), "options is not aligned");                         \
        REFUSED(name, (good.engine, &desc, NULL, NULL), "out_kernel is NULL");                                         \
        REFUSED(name, (good.engine, UNALIGNED, NULL, NEW(kernel)), "desc is not aligned");                             \
        if (!(takes_null)) REFUSED(name, (good.engine, NULL, NULL, NEW(kernel)), "desc is NULL");                      \
        desc.struct_size = sizeof(size_t) - 1;                                                                         \
        REFUSED(name, (good.engine, &desc, NULL, NEW(kernel)), "desc->struct_size is");                                \
        desc.struct_size = 5000;                                                                                       \
        REFUSED(name, (good.engine, &desc, NULL, NEW(kernel)), "desc->struct_size is 5000");                           \
        if (takes_null) {                                                                                              \
            weir_kernel *kernel = NULL;                                                                                \
            CHECK_OK(weir_kernel_create_##name(good.engine, NULL, NULL, &kernel));                                     \
            weir_kernel_release(kernel);                                                                               \
        }                                                                                                              \
    } while (0);

void bad_input_operators(void) {
    WEIR_OPERATORS(OPERATOR)
}
