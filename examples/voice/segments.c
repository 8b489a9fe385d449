/* The rule in words: speech begins with a frame that is probable enough. It goes on until a frame is improbable, and
 * stays less than probable for a while: then it has ended there. Short stretches are noise. Each of the others gets a
 * margin, and where two are near each other, the gap is shared.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "segments.h"

static size_t find_stretches(const float *probabilities, size_t frames, int32_t rate, int64_t count,
                             struct segment *found) {
    const int64_t frame = rate * 32 / 1000, silence = rate * SHORTEST_SILENCE_MS / 1000,
                  shortest = rate * SHORTEST_SPEECH_MS / 1000;
    const int64_t none = -1;
    int64_t begin = none, end = none; /* of the stretch that goes on; end is where it may turn out to have ended */
    size_t number = 0;
    for (size_t i = 0; i < frames; i++) {
        const int64_t now = (int64_t)i * frame;
        if (probabilities[i] >= SPEECH_BEGINS) {
            begin = begin == none ? now : begin;
            end = none;
        } else if (begin != none && probabilities[i] < SPEECH_LASTS) {
            end = end == none ? now : end;
            if (now - end >= silence) {
                if (end - begin > shortest) {
                    found[number++] = (struct segment){begin, end};
                }
                begin = end = none;
            }
        }
    }
    if (begin != none && count - begin > shortest) {
        found[number++] = (struct segment){begin, count};
    }
    return number;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Each gap is dealt with once: by a margin for both sides, or by half of it. */
static void add_margins(struct segment *segments, size_t number, int64_t margin, int64_t count) {
    if (number == 0) {
        return;
    }
    segments[0].begin -= least(margin, segments[0].begin);
    for (size_t i = 0; i + 1 < number; i++) {
        const int64_t gap = segments[i + 1].begin - segments[i].end, share = gap < 2 * margin ? gap / 2 : margin;
        segments[i].end += share;
        segments[i + 1].begin -= share;
    }
    segments[number - 1].end = least(segments[number - 1].end + margin, count);
}

size_t find_segments(const float *probabilities, size_t frames, int32_t rate, size_t count, struct segment *segments) {
    const size_t number = find_stretches(probabilities, frames, rate, (int64_t)count, segments);
    add_margins(segments, number, rate * MARGIN_MS / 1000, (int64_t)count);
    return number;
}
