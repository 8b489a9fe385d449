/* A descriptor begins with its size, and consists of numbers: so its bytes can come from a file, and an older or newer
 * library understands them. Only products have a member that is an address, which no file can know.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "operators.h"

#include <string.h>
#include <weir/ops.h>

#define OPERATORS(X)                                                                                              \
    X(matmul) X(matmul_int8) X(eltwise) X(binary) X(select) X(convert) X(quantize) X(transpose) X(concat) X(slice) \
    X(pad) X(reshape) X(gather) X(softmax) X(reduce) X(norm) X(cumsum) X(conv) X(pooling) X(lstm) X(gru)           \
    X(resize) X(topk) X(gather_elements) X(gather_nd) X(scatter) X(one_hot) X(lrn) X(conv_transpose)

#define CREATE(name)                                                                             \
    static weir_status create_##name(weir_engine *engine, const void *desc, weir_kernel **out) { \
        return weir_kernel_create_##name(engine, desc, NULL, out);                               \
    }
OPERATORS(CREATE)

#define ROW(name) {#name, create_##name},
static const struct {
    const char *name;
    weir_status (*create)(weir_engine *engine, const void *desc, weir_kernel **out);
} operators[] = {OPERATORS(ROW)};

static int has_address(const char *name, const int64_t *settings, size_t num_settings) {
    const size_t at = strcmp(name, "matmul") == 0        ? offsetof(weir_matmul_desc, weights) / 8
                      : strcmp(name, "matmul_int8") == 0 ? offsetof(weir_matmul_int8_desc, weights) / 8
                                                         : num_settings;
    return at < num_settings && settings[at] != 0;
}

weir_status operator_create(weir_engine *engine, const char *name, const int64_t *settings, size_t num_settings,
                            weir_kernel **out_kernel) {
    *out_kernel = NULL;
    if (num_settings == 0 || settings[0] < 0 || (uint64_t)settings[0] > 8 * num_settings ||
        has_address(name, settings, num_settings)) {
        return WEIR_DATA_LOSS;
    }
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (strcmp(operators[i].name, name) == 0) {
            return operators[i].create(engine, settings, out_kernel);
        }
    }
    return WEIR_NOT_FOUND;
}
