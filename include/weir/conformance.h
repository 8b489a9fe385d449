/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a shared object exports so that the program weir_conformance can check its thread pool:
 *
 *     weir_conformance module.so            calls weir_conformance_pool
 *     weir_conformance module.so symbol     calls another function of the same type
 *
 * The function fills *out_vtable and *out_ctx and returns 0; any other value means that there is no pool. The vtable's
 * release gets *out_ctx back when the check is over.
 */

#ifndef WEIR_CONFORMANCE_H
#define WEIR_CONFORMANCE_H

#include "../weir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*weir_conformance_pool_fn)(weir_threadpool_vtable *out_vtable, void **out_ctx);

int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_CONFORMANCE_H */
