/* The network of the digits examples as a weir program.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef DIGITS_NETWORK_H
#define DIGITS_NETWORK_H

#include <weir.h>

#include "dataset.h"

/* The outputs of the program, in order. */
enum network_output {
    NETWORK_LOGITS,        /* f32 [batch, DIGITS_CLASSES] */
    NETWORK_PROBABILITIES, /* f32 [batch, DIGITS_CLASSES] */
    NETWORK_CLASSES,       /* s32 [batch] */
    NETWORK_OUTPUTS,       /* how many there are */
};

/* Builds and compiles the graph for batches of `batch` scans: a matmul with bias and relu for each layer (the last
 * without relu), softmax, argmax. Its only input is f32 [batch, DIGITS_PIXELS]. `options` may be NULL. The program
 * reads the weights where they lie, so the dataset must outlive it. Ends the process if something fails. */
weir_program *network_compile(const struct dataset *dataset, weir_engine *engine, int64_t batch,
                              const weir_compile_options *options);

/* What output `output` looks like. */
weir_tensor_desc network_output_desc(enum network_output output, int64_t batch);

#endif
