// Windows that slide along an axis, as kernel/vector/window.rs has them.
#pragma once
#include "number.cuh"

struct Axis {
    u32 input, output, taps, stride, dilation, before, reflect, reserved;
};

// The element under a tap of a window; -1 if it is beyond the ends and there is nothing.
DEVICE i64 element_of(const Axis &axis, u32 window, u32 tap) {
    const i64 at = (i64)window * axis.stride + (i64)tap * axis.dilation - axis.before;
    if (at >= 0 && at < axis.input) return at;
    if (!axis.reflect) return -1;
    return at < 0 ? -at : 2 * ((i64)axis.input - 1) - at;
}
