// Normalisations: rows by their own statistics, whose sums are in f64, and channels by given ones.
#include "block.cuh"
#include "storage.cuh"
#include "walk.cuh"

struct Norm {
    const void *x, *scale, *shift;
    const float *mean, *variance;
    void *y;
    // The types of x and y, and of scale and shift.
    u32 dtype, of_scale;
    // Rows of `len` elements; `inner` consecutive ones have one scale, and scales begin again after `cycle` rows. Of channels: so many, `inner`
    // elements of each, and all that `rows` times.
    u32 rows, len, inner, cycle, squares;
    float epsilon;
};

// A block for each row.
extern "C" __global__ void __launch_bounds__(1024) weir_norm_rows(const __grid_constant__ Norm p) {
    const u32 channels = p.len / p.inner;
    const double inverse = 1.0 / (double)p.len;
    for (u32 row = blockIdx.x; row < p.rows; row += gridDim.x) {
        const i64 first = (i64)row * p.len;
        float mean = 0.0f;
        double power = 0.0;
        if (p.squares) {
            for (u32 i = threadIdx.x; i < p.len; i += blockDim.x) {
                const double x = (double)load_float(p.x, p.dtype, first + i);
                power += x * x;
            }
        } else {
            double sum = 0.0;
            for (u32 i = threadIdx.x; i < p.len; i += blockDim.x) sum += (double)load_float(p.x, p.dtype, first + i);
            mean = (float)(folded(sum, Add()) * inverse);
            for (u32 i = threadIdx.x; i < p.len; i += blockDim.x) {
                const float x = load_float(p.x, p.dtype, first + i) - mean;
                power += (double)(x * x);
            }
        }
        const float factor = (float)(1.0 / sqrt(folded(power, Add()) * inverse + (double)p.epsilon));
        const u32 at = row % p.cycle * channels;
        for (u32 i = threadIdx.x; i < p.len; i += blockDim.x) {
            float y = load_float(p.x, p.dtype, first + i) - mean;
            if (p.inner == 1) {
                y *= factor;
                if (p.scale) y *= load_float(p.scale, p.of_scale, at + i);
            } else {
                y *= factor * (p.scale ? load_float(p.scale, p.of_scale, at + i / p.inner) : 1.0f);
            }
            if (p.shift) y += load_float(p.shift, p.of_scale, at + i / p.inner);
            store_float(p.y, p.dtype, first + i, y);
        }
    }
}

// A thread for each place in a row of channels and their elements, which goes through rows.
extern "C" __global__ void __launch_bounds__(256) weir_norm_channels(const __grid_constant__ Norm p) {
    FOR_EACH(place, p.len) {
        const u32 channel = place / p.inner;
        const double scale = p.scale ? (double)load_float(p.scale, p.of_scale, channel) : 1.0;
        const float factor = (float)(scale / sqrt((double)p.variance[channel] + (double)p.epsilon));
        const float mean = p.mean[channel];
        for (u32 row = blockIdx.y; row < p.rows; row += gridDim.y) {
            const i64 at = (i64)row * p.len + place;
            float y = (load_float(p.x, p.dtype, at) - mean) * factor;
            if (p.shift) y += load_float(p.shift, p.of_scale, channel);
            store_float(p.y, p.dtype, at, y);
        }
    }
}
