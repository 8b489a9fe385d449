/* The one call that does the work. It stands alone so that a comparison can put another one in its place.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "network.h"
#include "weir_check.h"

void network_run(struct network *network, struct look *look) {
    CHECK(weir_program_run(look->program, NULL, &look->tensors[0], 1, &look->tensors[1], 1, network_options(network)));
}
