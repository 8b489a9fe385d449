// Threads together and apart: calls, local arrays, votes, atomic operations, locks, and the module's variables.

__device__ int counter = 5;
__constant__ float table[4] = {1.f, 2.f, 3.f, 4.f};
__device__ double pair[2] = {1.5, -2.5};

typedef float (*Function)(float, float);
__device__ __noinline__ float add(float a, float b) { return a + b; }
__device__ __noinline__ float multiply(float a, float b) { return a * b; }
__device__ Function functions[2] = {add, multiply};

struct Mixed {
    float a;
    int b;
    double c;
    char d[5];
};

__device__ __noinline__ Mixed changed(Mixed m, int i) {
    m.b += i;
    m.c *= 2;
    m.d[i & 3] += 1;
    return m;
}

extern "C" __global__ void calls(const float* x, float* y, int* z, Mixed m, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    y[i] = functions[i & 1](x[i], table[i & 3]);
    Mixed q = changed(m, i);
    z[i] = q.b + (int)q.c + q.d[i & 3] + q.d[4];
    atomicAdd(&counter, 1);
    if (i == 0) pair[1] = pair[0] + q.a;
}

__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void recursion(unsigned* y) { y[threadIdx.x] = fibonacci(threadIdx.x); }

extern "C" __global__ void sort(const int* x, int* y, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int a[24];
    for (int i = 0; i < n; i++) a[i] = x[t * n + i];
    for (int i = 1; i < n; i++) {
        int v = a[i], j = i - 1;
        while (j >= 0 && a[j] > v) {
            a[j + 1] = a[j];
            j--;
        }
        a[j + 1] = v;
    }
    for (int i = 0; i < n; i++) y[t * n + i] = a[i];
}

extern "C" __global__ void votes(const int* x, unsigned* y) {
    int i = threadIdx.x, v = x[i], all;
    unsigned* o = y + i * 8;
    o[0] = __ballot_sync(~0u, v > 2);
    o[1] = __any_sync(~0u, v > 8);
    o[2] = __all_sync(~0u, v >= 0);
    o[3] = __match_any_sync(~0u, v);
    o[4] = __match_all_sync(~0u, v, &all);
    o[5] = all;
    if (v & 1) {
        unsigned active = __activemask();
        __syncwarp(active);
        o[6] = __shfl_sync(active, v, __ffs(active) - 1);
    } else {
        o[6] = 77;
    }
    o[7] = __syncthreads_count(v & 1) + 100 * !!__syncthreads_or(v == 3) + 1000 * !!__syncthreads_and(v >= 0);
}

extern "C" __global__ void scan(const int* x, int* y) {
    int v = x[threadIdx.x];
    unsigned lane = threadIdx.x & 31;
    for (int o = 1; o < 32; o <<= 1) {
        int u = __shfl_up_sync(~0u, v, o);
        if (lane >= o) v += u;
    }
    y[threadIdx.x] = v;
}

extern "C" __global__ void atomics(int* a, unsigned* b, float* c, double* d, unsigned long long* e, const int* x) {
    __shared__ int s;
    int i = threadIdx.x, v = x[i];
    if (!i) s = 0;
    __syncthreads();
    atomicAdd(&a[0], v);
    atomicMin(&a[1], v);
    atomicMax(&a[2], v);
    atomicAnd(&a[3], v);
    atomicOr(&a[4], v);
    atomicXor(&a[5], v);
    atomicSub(&a[6], v);
    atomicCAS(&a[7], 0, v);
    atomicInc(&b[0], 7);
    atomicDec(&b[1], 9);
    atomicAdd(c, 1.5f);
    atomicAdd(d, .25);
    atomicAdd(e, 1ull << 40);
    atomicCAS(e + 1, 0ull, 5ull);
    atomicAdd(&s, 1);
    __syncthreads();
    a[8 + i] = s;
}

// Threads of one warp that wait for each other: each goes on only because the others do.
extern "C" __global__ void lock(int* held, int* count) {
    for (;;) {
        if (atomicCAS(held, 0, 1) == 0) {
            *(volatile int*)count = *(volatile int*)count + 1;
            __threadfence();
            atomicExch(held, 0);
            break;
        }
    }
}

extern "C" __global__ void numbered(unsigned* o) {
    unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    o[b * blockDim.x * blockDim.y * blockDim.z + t] = b * 1000 + t;
}

extern "C" __global__ void choices(const int* x, int* y) {
    int i = threadIdx.x, r;
    switch (x[i]) {
        case 0: r = 7; break;
        case 1: r = i * 3; break;
        case 2: r = i * i; break;
        case 3: r = i - 9; break;
        case 4: r = __clz(i); break;
        case 5: r = __popc(i); break;
        case 6: r = i / 3; break;
        case 7: r = i % 7; break;
        default: r = -1;
    }
    y[i] = r;
}
