/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The kernels that use a variable.
 */

#ifndef WEIR_CTESTS_VARIABLES_H
#define WEIR_CTESTS_VARIABLES_H

#include <weir/resource.h>

#include "make.h"

typedef struct kernels {
    weir_kernel *read, *assign, *add;
} kernels;

static inline kernels make_kernels(weir_engine *engine, weir_resource *variable) {
    kernels k;
    CHECK_OK(weir_kernel_create_variable(engine, variable, WEIR_VARIABLE_READ, NULL, &k.read));
    CHECK_OK(weir_kernel_create_variable(engine, variable, WEIR_VARIABLE_ASSIGN, NULL, &k.assign));
    CHECK_OK(weir_kernel_create_variable(engine, variable, WEIR_VARIABLE_ASSIGN_ADD, NULL, &k.add));
    return k;
}

static inline void release_kernels(kernels *k) {
    weir_kernel_release(k->read);
    weir_kernel_release(k->assign);
    weir_kernel_release(k->add);
}

#endif /* WEIR_CTESTS_VARIABLES_H */
