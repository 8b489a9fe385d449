/* A function of the host's runs the networks: pictures and answers lie where the example has them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stdint.h>

#include "network.h"

typedef void (*ocr_runner)(const char *name, float *picture, int32_t height, int32_t width, float *answer,
                           uint64_t rows, uint64_t columns);

static ocr_runner runner;

void ocr_set_runner(ocr_runner function) {
    runner = function;
}

void network_run(struct network *network, struct look *look) {
    runner(network_name(network), look->picture, look->height, look->width, look->answer, look->rows, look->columns);
}
