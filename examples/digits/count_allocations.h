/* Counts every heap allocation of the process, whoever makes it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef DIGITS_COUNT_ALLOCATIONS_H
#define DIGITS_COUNT_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether counting works here, found out by a malloc. It does not in a build with a sanitizer or under valgrind: they
 * put their own malloc in front of this one. */
bool allocations_are_counted(void);

/* Calls of malloc, calloc, realloc, aligned_alloc and posix_memalign in this process so far. */
uint64_t allocations_so_far(void);

#endif
