// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The C++ header of an installed weir is found, and what it says matches the library.

#include <weir.hpp>

#include <cstdio>

int main() {
    std::printf("weir %s from C++\n", weir_version_string());
    return weir_abi_version() == WEIR_ABI_VERSION ? 0 : 1;
}
