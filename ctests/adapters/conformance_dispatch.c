/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A queue of libdispatch, or of the stand-in for it, for weir_conformance.
 */

#include "weir/adapters/dispatch.h"

int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx);

int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    *out_vtable = weir_dispatch_vtable(dispatch_get_global_queue(0, 0), 3, out_ctx);
    return *out_ctx == NULL;
}
