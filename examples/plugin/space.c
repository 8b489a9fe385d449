/* First fit.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "space.h"

#include <stdlib.h>

int space_take(struct space *space, uint64_t bytes, uint64_t *out_offset) {
    uint64_t at = 0;
    struct stretch **place = &space->first, *taken;
    if (bytes > space->bytes) return -1;
    bytes = (bytes + SPACE_ALIGNMENT - 1) / SPACE_ALIGNMENT * SPACE_ALIGNMENT;
    while (*place != NULL && (*place)->offset - at < bytes) {
        at = (*place)->offset + (*place)->bytes;
        place = &(*place)->next;
    }
    if (space->bytes - at < bytes || (taken = malloc(sizeof *taken)) == NULL) return -1;
    *taken = (struct stretch){*place, at, bytes};
    *place = taken;
    *out_offset = at;
    return 0;
}

void space_give(struct space *space, uint64_t offset) {
    struct stretch **place = &space->first;
    while (*place != NULL && (*place)->offset != offset) place = &(*place)->next;
    if (*place != NULL) {
        struct stretch *given = *place;
        *place = given->next;
        free(given);
    }
}
