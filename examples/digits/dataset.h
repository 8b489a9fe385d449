/* The scans and the network of the digits examples, as train.py writes them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef DIGITS_DATASET_H
#define DIGITS_DATASET_H

#include <stdint.h>

enum {
    DIGITS_SIDE = 8,                          /* pixels along each side of a scan */
    DIGITS_PIXELS = DIGITS_SIDE * DIGITS_SIDE,
    DIGITS_INK = 16,                          /* the darkest pixel; paper is 0 */
    DIGITS_CLASSES = 10,
    DIGITS_MAX_LAYERS = 8,
};

/* One dense layer: outputs = inputs * weights + bias. */
struct layer {
    uint32_t inputs;
    uint32_t outputs;
    float *weights; /* [inputs][outputs] */
    float *bias;    /* [outputs] */
};

struct dataset {
    uint32_t count;        /* the scans of one part: those held out of the training, or those for it */
    float *pixels;         /* [count][DIGITS_PIXELS], 0 to DIGITS_INK */
    unsigned char *labels; /* [count], 0 to 9 */
    uint32_t num_layers;
    struct layer layers[DIGITS_MAX_LAYERS];
};

/* Reads the scans that were held out from digits.bin in `folder`, and the network from weights.bin. 0, or -1 after
 * saying on stderr what is wrong; then nothing is held. */
int dataset_load(struct dataset *dataset, const char *folder);

/* The same with the scans for the training, and without a network: for who trains one. */
int dataset_load_training(struct dataset *dataset, const char *folder);

void dataset_free(struct dataset *dataset);

#endif
