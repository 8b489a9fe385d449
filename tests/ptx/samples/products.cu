// Products: tiles in shared memory, bytes four at a time, and vectors of four floats.

#define T 16

extern "C" __global__ void matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m,
                                  int n, int k) {
    __shared__ float A[T][T], B[T][T + 1];
    int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
    float s = 0;
    for (int t = 0; t < k; t += T) {
        A[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.f;
        B[threadIdx.y][threadIdx.x] = column < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + column] : 0.f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < T; i++) s = fmaf(A[threadIdx.y][i], B[i][threadIdx.x], s);
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = s;
}

extern "C" __global__ void dot_bytes(const int* a, const int* b, int* c, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int s = 0;
    for (int j = 0; j < k; j++) s = __dp4a(a[i * k + j], b[j], s);
    c[i] = s;
}

extern "C" __global__ void vectors(const float4* a, float4* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = a[i];
    v.x *= 2;
    v.y += 1;
    v.z = -v.z;
    v.w = fabsf(v.w);
    b[i] = v;
}

extern "C" __global__ void collatz(const unsigned* x, unsigned* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = x[i];
    unsigned steps = 0;
    while (v > 1) {
        if (v & 1) v = 3 * v + 1;
        else v >>= 1;
        steps++;
    }
    y[i] = steps;
}
