/* The numbers of the voice model, as convert.py writes them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef VOICE_WEIGHTS_H
#define VOICE_WEIGHTS_H

#include <weir.h>

/* The tensors of a half, in the order of the file. */
enum weights_tensor {
    WEIGHTS_SPECTRUM,
    WEIGHTS_CONV, /* four convolutions: weights, bias, weights, bias, ... */
    WEIGHTS_LSTM_X = WEIGHTS_CONV + 8,
    WEIGHTS_LSTM_H,
    WEIGHTS_LSTM_BIAS_X,
    WEIGHTS_LSTM_BIAS_H,
    WEIGHTS_OUT,
    WEIGHTS_OUT_BIAS,
    WEIGHTS_TENSORS, /* how many there are */
};

enum weights_half { WEIGHTS_16K, WEIGHTS_8K, WEIGHTS_HALVES };

struct weights_array {
    weir_tensor_desc desc;
    float *data; /* aligned to 64 bytes */
};

struct weights {
    struct weights_array arrays[WEIGHTS_HALVES][WEIGHTS_TENSORS];
    void *memory;
};

/* Reads a file. Prints what is wrong and returns nonzero if that fails; then there is nothing to free. */
int weights_load(struct weights *weights, const char *path);

void weights_free(struct weights *weights);

#endif
