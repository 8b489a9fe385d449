// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Compiles weir.hpp alone and twice. What it does is the matter of the hpp_* tests.

#include "weir.hpp"
#include "weir.hpp"
#include "weir/dlpack.hpp"
#include "weir/conformance.hpp"
#include "weir/testing.hpp"

int main() {
    return weir_abi_version() == WEIR_ABI_VERSION ? 0 : 1;
}
