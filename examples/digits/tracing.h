/* A trace of a part of a program, for --trace.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef DIGITS_TRACING_H
#define DIGITS_TRACING_H

#include <weir/trace.h>

/* Begins to record all that weir does in this process. */
weir_trace *tracing_start(void);

/* Ends it, and writes <name>.html, a page to look at, and <name>.perfetto, for ui.perfetto.dev. Says where they are.
 * Returns 0, or 1 if they could not be written, and says why. */
int tracing_save(weir_trace *trace, const char *name);

#endif
