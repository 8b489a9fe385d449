/* A WAV file is a row of chunks: a name of four letters, a size, and so many bytes, padded to an even number.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "audio.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file in memory, and the part of it that holds samples. */
struct source {
    unsigned char *memory;
    size_t bytes;
    const unsigned char *data;
    size_t data_bytes;
    uint32_t rate, channels;
};

static uint32_t u16(const unsigned char *b) {
    return b[0] | (uint32_t)b[1] << 8;
}

static uint32_t u32(const unsigned char *b) {
    return u16(b) | u16(b + 2) << 16;
}

static bool read_file(struct source *source, const char *path) {
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0) {
        source->bytes = (size_t)size;
        source->memory = malloc(source->bytes + 1);
    }
    const bool good =
        source->memory != NULL && fread(source->memory, 1, source->bytes, file) == source->bytes;
    if (file != NULL) {
        fclose(file);
    }
    return good;
}

/* Finds the samples of a WAV file. Returns what is wrong, or NULL. */
static const char *parse_wav(struct source *source) {
    const unsigned char *format = NULL;
    size_t at = 12;
    while (source->data == NULL && at + 8 <= source->bytes) {
        const unsigned char *chunk = source->memory + at;
        const size_t left = source->bytes - at - 8;
        size_t size = u32(chunk + 4);
        if (memcmp(chunk, "fmt ", 4) == 0 && size >= 16 && size <= left) {
            format = chunk + 8;
        } else if (memcmp(chunk, "data", 4) == 0) {
            size = size < left ? size : left; /* of a file that was cut, what there is */
            source->data = chunk + 8;
            source->data_bytes = size;
        }
        at += 8 + (size < left ? size + size % 2 : left);
    }
    if (format == NULL || source->data == NULL) {
        return "is no WAV file that has a format and samples";
    }
    const uint32_t encoding = u16(format), bits = u16(format + 14);
    source->channels = u16(format + 2);
    source->rate = u32(format + 4);
    if (encoding != 1 || bits != 16 || source->channels < 1 || source->channels > 2) {
        return "is not 16-bit PCM, mono or stereo";
    }
    if (source->rate != 16000 && source->rate != 8000) {
        return "has neither 16000 nor 8000 samples a second";
    }
    return NULL;
}

static const char *parse(struct source *source) {
    if (source->bytes >= 12 && memcmp(source->memory, "RIFF", 4) == 0 && memcmp(source->memory + 8, "WAVE", 4) == 0) {
        return parse_wav(source);
    }
    source->data = source->memory;
    source->data_bytes = source->bytes;
    source->rate = 16000;
    source->channels = 1;
    return NULL;
}

static float sample(const unsigned char *b) {
    const uint32_t bits = u16(b);
    return (float)((int32_t)bits - (bits >= 0x8000 ? 0x10000 : 0)) / 32768;
}

static const char *convert(const struct source *source, struct audio *audio) {
    const size_t step = 2 * source->channels, frame = source->rate * 32 / 1000;
    audio->rate = (int32_t)source->rate;
    audio->count = source->data_bytes / step;
    audio->samples = calloc(audio->count / frame + 1, frame * sizeof *audio->samples);
    if (audio->count == 0 || audio->samples == NULL) {
        free(audio->samples);
        return audio->count == 0 ? "holds no sound" : "does not fit into memory";
    }
    for (size_t i = 0; i < audio->count; i++) {
        const unsigned char *b = source->data + i * step;
        audio->samples[i] = source->channels == 1 ? sample(b) : (sample(b) + sample(b + 2)) / 2;
    }
    return NULL;
}

int audio_load(struct audio *audio, const char *path) {
    struct source source = {0};
    const char *wrong = read_file(&source, path) ? parse(&source) : "cannot be read";
    if (wrong == NULL) {
        wrong = convert(&source, audio);
    }
    free(source.memory);
    if (wrong != NULL) {
        fprintf(stderr, "%s: %s\n", path, wrong);
    }
    return wrong != NULL;
}

void audio_free(struct audio *audio) {
    free(audio->samples);
}
