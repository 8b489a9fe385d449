/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A test outside of weir's tree: it finds libweir_testing beside libweir, and an emulated device works.
 */

#include <weir.h>
#include <weir/testing.h>

int main(void) {
    weir_engine *engine = NULL;
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    if (weir_emulated_register() != WEIR_OK) return 1;
    if (weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &engine) != WEIR_OK) return 2;
    if (weir_emulated_get_counters(engine, &counters) != WEIR_OK || counters.operations != 0) return 3;
    weir_engine_release(engine);
    return 0;
}
