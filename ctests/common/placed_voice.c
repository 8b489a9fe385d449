/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "alternate.h"
#include "model.c"
