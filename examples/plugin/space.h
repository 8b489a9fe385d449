/* Who has which part of the device's memory.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REMOTE_SPACE_H
#define REMOTE_SPACE_H

#include <stdint.h>

enum { SPACE_ALIGNMENT = 64 };

struct stretch {
    struct stretch *next;
    uint64_t offset, bytes;
};

/* Blocks that are in use, by their offsets. */
struct space {
    struct stretch *first;
    uint64_t bytes;
};

/* The first gap that is large enough. 0, or -1 if there is none. */
int space_take(struct space *space, uint64_t bytes, uint64_t *out_offset);
void space_give(struct space *space, uint64_t offset);

#endif
