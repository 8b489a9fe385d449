/* Sound from files.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef VOICE_AUDIO_H
#define VOICE_AUDIO_H

#include <stddef.h>
#include <stdint.h>

struct audio {
    int32_t rate;   /* samples a second, 16000 or 8000 */
    size_t count;   /* samples */
    float *samples; /* from -1 to 1; zeros follow up to the end of the last frame of 32 ms */
};

/* Reads a WAV file (16 kHz or 8 kHz, 16 bit, mono or stereo, of which it takes the mean), or, if it is none, a raw file of
 * 16-bit little-endian samples at 16 kHz. Prints what is wrong and returns nonzero if that fails; then there is nothing
 * to free. */
int audio_load(struct audio *audio, const char *path);

void audio_free(struct audio *audio);

#endif
