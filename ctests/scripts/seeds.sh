#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   seeds.sh <first> <last> <program>
#
# The program passes with the pool of each seed in the place of the pools that it asks for (test_pools.h). The first seed
# that fails is named, and ends the test.

set -eu

seed=$1
last=$2
program=$3

while [ "$seed" -le "$last" ]; do
    WEIR_TEST_POOL=seeded:$seed "$program" || {
        status=$?
        echo "failed with WEIR_TEST_POOL=seeded:$seed WEIR_TEST_SCALE=${WEIR_TEST_SCALE:-}" >&2
        exit "$status"
    }
    seed=$((seed + 1))
done
