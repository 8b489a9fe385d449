/* Kernels by the names of their operators.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_OPERATORS_H
#define OCR_OPERATORS_H

#include <stddef.h>
#include <stdint.h>

#include <weir.h>

/* Creates a kernel of the operator; `settings` is the descriptor, in so many words. */
weir_status operator_create(weir_engine *engine, const char *name, const int64_t *settings, size_t num_settings,
                            weir_kernel **out_kernel);

#endif
