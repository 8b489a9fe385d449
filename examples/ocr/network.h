/* A network that sees pictures of any size: a program of weir for each size that was asked for.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_NETWORK_H
#define OCR_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include <weir.h>

#include "model_file.h"

struct network;

/* A look at one picture: memory for it, and for what the network says. Any number of looks may be taken at once. */
struct look {
    float *picture; /* 3 planes of height x width: blue, green, red */
    float *answer;
    int32_t height, width;
    size_t rows, columns; /* of the answer, whose other dimensions are 1 */
    weir_program *program;
    weir_tensor *tensors[2];
    struct look *next; /* not in use, of the same size */
};

/* The network of that name, in the engine's memory. The model must live longer. Ends the program if there is none. */
struct network *network_open(const struct model *model, const char *name, weir_engine *engine);
void network_close(struct network *network);

const char *network_name(const struct network *network);

/* Compiles the program for a size, unless there is one. Not while others use the network. */
void network_prepare(struct network *network, int32_t height, int32_t width);

/* Memory for a look, at a size that is prepared, and the end of its use. A second look allocates nothing. */
struct look *network_take(struct network *network, int32_t height, int32_t width);
void network_give_back(struct network *network, struct look *look);

/* Has the function told how far a run of the network is, at most once in so many nanoseconds; NULL = no longer. Not
 * while others use the network. */
void network_follow(struct network *network, weir_progress_fn follow, uint64_t interval_ns);
const weir_run_options *network_options(const struct network *network);

/* Lets the network see the picture (network_run.c). */
void network_run(struct network *network, struct look *look);

#endif
