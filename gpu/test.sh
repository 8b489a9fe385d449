#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     gpu/test.sh <program>
#
# Runs one of the kit's tests, with the data that it wants.

set -eu
case $(basename "$1") in
digits_cuda) exec "$1" data/digits ;;
voice_cuda) exec "$1" data/voice ;;
*) exec "$1" ;;
esac
