// Reductions: by shuffles and shared memory, of rows, and by atomic operations.

#define INFINITY __int_as_float(0x7f800000)

extern "C" __global__ void reduce_sum(const float* x, float* out, unsigned n) {
    __shared__ float part[32];
    float s = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
        s = threadIdx.x < (blockDim.x + 31) / 32 ? part[threadIdx.x] : 0.f;
        for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
        if (!threadIdx.x) atomicAdd(out, s);
    }
}

extern "C" __global__ void softmax(const float* x, float* y, unsigned columns) {
    extern __shared__ float shared[];
    const float* row = x + (size_t)blockIdx.x * columns;
    float* out = y + (size_t)blockIdx.x * columns;
    float m = -INFINITY;
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) m = fmaxf(m, row[i]);
    shared[threadIdx.x] = m;
    __syncthreads();
    for (unsigned o = blockDim.x / 2; o; o >>= 1) {
        if (threadIdx.x < o) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + o]);
        __syncthreads();
    }
    m = shared[0];
    __syncthreads();
    float s = 0;
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) {
        float e = expf(row[i] - m);
        out[i] = e;
        s += e;
    }
    shared[threadIdx.x] = s;
    __syncthreads();
    for (unsigned o = blockDim.x / 2; o; o >>= 1) {
        if (threadIdx.x < o) shared[threadIdx.x] += shared[threadIdx.x + o];
        __syncthreads();
    }
    s = shared[0];
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) out[i] = out[i] / s;
}

extern "C" __global__ void argmax(const float* x, unsigned long long* best, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned u = __float_as_uint(x[i]);
    u = u & 0x80000000u ? ~u : u | 0x80000000u;
    atomicMax(best, (unsigned long long)u << 32 | (0xffffffffu - i));
    unsigned active = __activemask();
    unsigned positive = __ballot_sync(active, x[i] > 0);
    if ((threadIdx.x & 31) == __ffs(active) - 1) atomicAdd((unsigned*)best + 2, __popc(positive));
}
