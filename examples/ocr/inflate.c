/* Three kinds of blocks: copied, with the codes of the standard, and with codes of their own. A code is a Huffman code,
 * given by the lengths of its words; words of one length count upwards, those of longer ones go on from there.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "inflate.h"

#include <string.h>

enum { MAX_LENGTH = 15, LITERALS = 288, DISTANCES = 32, END = 256 };

struct stream {
    const uint8_t *in;
    size_t in_count, in_at;
    uint8_t *out;
    size_t out_count, out_at;
    uint32_t bits; /* read ahead, the next one lowest */
    int num_bits;
    bool failed;
};

struct code {
    uint16_t count[MAX_LENGTH + 1]; /* words of each length */
    uint16_t symbols[LITERALS];     /* in the order of their words */
};

static uint32_t take(struct stream *s, int count) {
    while (s->num_bits < count) {
        if (s->in_at == s->in_count) {
            s->failed = true;
            return 0;
        }
        s->bits |= (uint32_t)s->in[s->in_at++] << s->num_bits;
        s->num_bits += 8;
    }
    const uint32_t value = s->bits & ((1U << count) - 1);
    s->bits >>= count;
    s->num_bits -= count;
    return value;
}

static bool make_code(struct code *code, const uint8_t *lengths, int n) {
    uint16_t place[MAX_LENGTH + 1] = {0};
    int left = 1; /* words of the current length that are free */
    memset(code->count, 0, sizeof code->count);
    for (int i = 0; i < n; i++) {
        code->count[lengths[i]]++;
    }
    code->count[0] = 0;
    for (int length = 1; length <= MAX_LENGTH; length++) {
        left = 2 * left - code->count[length];
        if (left < 0) {
            return false;
        }
    }
    for (int length = 1; length < MAX_LENGTH; length++) {
        place[length + 1] = (uint16_t)(place[length] + code->count[length]);
    }
    for (int i = 0; i < n; i++) {
        if (lengths[i] != 0) {
            code->symbols[place[lengths[i]]++] = (uint16_t)i;
        }
    }
    return true;
}

static int symbol(struct stream *s, const struct code *code) {
    int word = 0, first = 0, index = 0;
    for (int length = 1; length <= MAX_LENGTH && !s->failed; length++) {
        word |= (int)take(s, 1);
        const int count = code->count[length];
        if (word - first < count) {
            return code->symbols[index + word - first];
        }
        index += count;
        first = (first + count) * 2;
        word *= 2;
    }
    s->failed = true;
    return END;
}

static void copy_back(struct stream *s, size_t length, size_t distance) {
    if (distance > s->out_at || length > s->out_count - s->out_at) {
        s->failed = true;
        return;
    }
    for (size_t i = 0; i < length; i++, s->out_at++) {
        s->out[s->out_at] = s->out[s->out_at - distance];
    }
}

static void coded_block(struct stream *s, const struct code *literals, const struct code *distances) {
    static const uint16_t length_base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                           31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    while (!s->failed) {
        const int next = symbol(s, literals);
        if (s->failed || next == END) {
            return;
        }
        if (next < END) {
            if (s->out_at == s->out_count) {
                s->failed = true;
                return;
            }
            s->out[s->out_at++] = (uint8_t)next;
            continue;
        }
        const int step_of_length = next - END - 1;
        if (step_of_length >= 29) {
            s->failed = true;
            return;
        }
        const size_t length = length_base[step_of_length] + take(s, length_bits[step_of_length]);
        const int step = symbol(s, distances);
        if (s->failed || step >= 30) {
            s->failed = true;
            return;
        }
        /* 1, 2, 3, 4, 5, 7, 9, 13, ...: two of each number of further bits. */
        const int more = step < 4 ? 0 : step / 2 - 1;
        const size_t base = step < 4 ? (size_t)step + 1 : ((size_t)(2 + step % 2) << more) + 1;
        copy_back(s, length, base + take(s, more));
    }
}

static void stored_block(struct stream *s) {
    s->bits = 0;
    s->num_bits = 0;
    if (s->in_count - s->in_at < 4) {
        s->failed = true;
        return;
    }
    const uint8_t *head = s->in + s->in_at;
    const size_t length = head[0] | (size_t)head[1] << 8, complement = head[2] | (size_t)head[3] << 8;
    s->in_at += 4;
    if (length != (complement ^ 0xffff) || length > s->in_count - s->in_at || length > s->out_count - s->out_at) {
        s->failed = true;
        return;
    }
    memcpy(s->out + s->out_at, s->in + s->in_at, length);
    s->in_at += length;
    s->out_at += length;
}

static void fixed_block(struct stream *s) {
    uint8_t lengths[LITERALS + DISTANCES];
    struct code literals, distances;
    for (int i = 0; i < LITERALS; i++) {
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    }
    make_code(&literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    make_code(&distances, lengths, DISTANCES);
    coded_block(s, &literals, &distances);
}

/* The lengths of the words of both codes are themselves coded: lengths, and repetitions of them. */
static void own_block(struct stream *s) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + DISTANCES] = {0};
    struct code literals, distances;
    const int num_literals = (int)take(s, 5) + 257, num_distances = (int)take(s, 5) + 1;
    const int num_first = (int)take(s, 4) + 4;
    if (num_literals > LITERALS) {
        s->failed = true;
        return;
    }
    for (int i = 0; i < num_first; i++) {
        lengths[order[i]] = (uint8_t)take(s, 3);
    }
    s->failed |= !make_code(&literals, lengths, 19);
    memset(lengths, 0, 19);
    for (int i = 0; i < num_literals + num_distances && !s->failed;) {
        const int next = symbol(s, &literals);
        int repeat = 1;
        uint8_t value = (uint8_t)next;
        if (next >= 16) {
            value = next == 16 && i > 0 ? lengths[i - 1] : 0;
            repeat = next == 16 ? 3 + (int)take(s, 2) : next == 17 ? 3 + (int)take(s, 3) : 11 + (int)take(s, 7);
        }
        if (repeat > num_literals + num_distances - i || (next == 16 && i == 0)) {
            s->failed = true;
            return;
        }
        memset(lengths + i, value, (size_t)repeat);
        i += repeat;
    }
    if (s->failed || !make_code(&distances, lengths + num_literals, num_distances) ||
        !make_code(&literals, lengths, num_literals)) {
        s->failed = true;
        return;
    }
    coded_block(s, &literals, &distances);
}

bool inflate_zlib(const uint8_t *in, size_t in_count, uint8_t *out, size_t out_count) {
    struct stream s = {.in = in, .in_count = in_count, .in_at = 2, .out = out, .out_count = out_count};
    if (in_count < 2 || (in[0] & 15) != 8 || (in[0] * 256 + in[1]) % 31 != 0 || (in[1] & 32) != 0) {
        return false;
    }
    bool last = false;
    while (!last && !s.failed) {
        last = take(&s, 1) != 0;
        switch (take(&s, 2)) {
        case 0: stored_block(&s); break;
        case 1: fixed_block(&s); break;
        case 2: own_block(&s); break;
        default: s.failed = true;
        }
    }
    return !s.failed && s.out_at == s.out_count;
}
