/* From probabilities to stretches of speech.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef VOICE_SEGMENTS_H
#define VOICE_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

/* From sample `begin` up to sample `end`. */
struct segment {
    int64_t begin, end;
};

/* What the rule goes by; the values are those of Silero VAD. */
#define SPEECH_BEGINS 0.50 /* speech begins at a frame as probable as this */
#define SPEECH_LASTS 0.35  /* and may end at one that is less probable than this */
enum {
    SHORTEST_SILENCE_MS = 100, /* it ends if it does not come back for as long as this */
    SHORTEST_SPEECH_MS = 250,  /* what is not longer than this is left out */
    MARGIN_MS = 30,            /* added at both ends, or half of the gap to the next segment */
};

/* Finds the segments of a sound of `count` samples with `frames` probabilities, and returns how many there are.
 * `segments` has room for frames / 2 + 1 of them. */
size_t find_segments(const float *probabilities, size_t frames, int32_t rate, size_t count, struct segment *segments);

#endif
