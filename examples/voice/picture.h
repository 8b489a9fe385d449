/* The probability of speech over time, drawn. Nothing of weir is used here.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef VOICE_PICTURE_H
#define VOICE_PICTURE_H

#include <stddef.h>

#include "audio.h"
#include "segments.h"

/* What was heard. */
struct hearing {
    const char *name; /* of the sound */
    const struct audio *audio;
    const float *probabilities; /* one per frame of 32 ms */
    size_t frames;
    const struct segment *segments;
    size_t num_segments;
};

/* Draws a line for terminals of 80 columns, and the segments below it. */
void picture_print(const struct hearing *hearing);

/* Writes a drawing with the sound behind the line. Prints what is wrong and returns nonzero if that fails. */
int picture_write_svg(const struct hearing *hearing, const char *path);

#endif
