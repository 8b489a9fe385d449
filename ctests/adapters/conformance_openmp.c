/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * OpenMP's threads for weir_conformance.
 */

#include "weir/adapters/openmp.h"

int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx);

int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    *out_vtable = weir_openmp_vtable(4, out_ctx);
    return *out_ctx == NULL;
}
