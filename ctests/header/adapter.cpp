// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Compiles a header of weir/adapters alone and twice. WEIR_ADAPTER is its name.

#include WEIR_ADAPTER
#include WEIR_ADAPTER

int main() {
    return weir_abi_version() == WEIR_ABI_VERSION ? 0 : 1;
}
