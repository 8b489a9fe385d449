// Functions of libdevice, one kernel each.

#define ONE(name)                                                                     \
    extern "C" __global__ void name##_(const float* x, float* y, unsigned n) {        \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                           \
        if (i < n) y[i] = name##f(x[i]);                                              \
    }
#define TWO(name)                                                                     \
    extern "C" __global__ void name##_(const float* x, const float* z, float* y, unsigned n) { \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                           \
        if (i < n) y[i] = name##f(x[i], z[i]);                                        \
    }
#define DOUBLE(name)                                                                  \
    extern "C" __global__ void name##_double(const double* x, double* y, unsigned n) { \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                           \
        if (i < n) y[i] = name(x[i]);                                                 \
    }

ONE(exp)
ONE(exp2)
ONE(expm1)
ONE(log)
ONE(log2)
ONE(log1p)
ONE(sin)
ONE(tanh)
ONE(sinh)
ONE(atan)
ONE(erf)
ONE(cbrt)
TWO(pow)
TWO(atan2)
TWO(fmod)
DOUBLE(exp)
DOUBLE(log)
DOUBLE(tanh)
