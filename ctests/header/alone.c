/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Compiles a header alone and twice. WEIR_HEADER is its name.
 */

#include WEIR_HEADER
#include WEIR_HEADER

int main(void) {
    return weir_abi_version() == WEIR_ABI_VERSION ? 0 : 1;
}
