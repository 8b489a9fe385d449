/* For programs that end at the first failure: CHECK(weir_...(...)) prints where and why.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef DIGITS_WEIR_CHECK_H
#define DIGITS_WEIR_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <weir.h>

#define CHECK(call) check_status((call), #call, __FILE__, __LINE__)

static inline void check_status(weir_status status, const char *call, const char *file, int line) {
    if (status != WEIR_OK) {
        fprintf(stderr, "%s:%d: %s\n  %s: %s\n", file, line, call, weir_status_name(status), weir_last_error_message());
        exit(1);
    }
}

#endif
