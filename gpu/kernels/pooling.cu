// The greatest element, or the average, of each window of a channel.
#include "window.cuh"
#include "walk.cuh"

struct Pooling {
    const float *x;
    float *y;
    // Of weir_pooling_op_value.
    u32 count, op;
    Axis rows, columns;
};

// A NaN stays, and is taken over.
DEVICE float greater_or_nan(float most, float x) { return x > most || x != x ? x : most; }

extern "C" __global__ void __launch_bounds__(256) weir_pooling(const __grid_constant__ Pooling p) {
    FOR_EACH(i, p.count) {
        const u32 line = i / p.columns.output, across = i - line * p.columns.output;
        const u32 plane = line / p.rows.output, down = line - plane * p.rows.output;
        float result = p.op == 1 ? -POSITIVE_INFINITY : 0.0f;
        u32 inside = 0;
        for (u32 row_tap = 0; row_tap < p.rows.taps; row_tap++) {
            const i64 row = element_of(p.rows, down, row_tap);
            if (row < 0) continue;
            for (u32 tap = 0; tap < p.columns.taps; tap++) {
                const i64 column = element_of(p.columns, across, tap);
                if (column < 0) continue;
                const float x = p.x[((i64)plane * p.rows.input + row) * p.columns.input + column];
                result = p.op == 1 ? greater_or_nan(result, x) : result + x;
                inside++;
            }
        }
        if (p.op == 2) result /= (float)(p.rows.taps * p.columns.taps);
        if (p.op == 3) result /= (float)(inside == 0 ? 1 : inside);
        p.y[i] = result;
    }
}
