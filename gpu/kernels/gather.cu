// Rows of a table by their numbers. A number that is none of the table's gives a row of zeros, and is told.
#include "number.cuh"

// What the host looks at once this is over (inbox.rs): the first who takes `state` from 0 says what it has found, and then makes it 2.
struct Fault {
    u32 state, site;
    // The host's count of launches, the place among the indices, and what is there.
    u64 launch, place;
    i64 index;
};

struct Gather {
    Fault *fault;
    u64 launch;
    u32 site, reserved;
    const void *table;
    const void *indices;
    void *y;
    // Units of the output, or 0 where it has none: then the indices are looked at all the same.
    u32 count;
    // Units of a row, indices, and rows of the table in each of its blocks.
    u32 inner, num_indices, size;
    // Whether the indices have 64 bits, and whether those below 0 count from the end.
    u32 wide, from_end;
};

#define FOR_EACH(i, count) \
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += gridDim.x * blockDim.x)

DEVICE i64 index_at(const Gather &p, u32 place) {
    return p.wide ? ((const i64 *)p.indices)[place] : (i64)((const int *)p.indices)[place];
}

// The row of an index.
DEVICE i64 row_of(const Gather &p, i64 index) { return p.from_end && index < 0 ? index + (i64)p.size : index; }
DEVICE bool is_inside(const Gather &p, i64 row) { return row >= 0 && row < (i64)p.size; }

DEVICE void tell(const Gather &p, u32 place, i64 index) {
    // The memory is the host's: the driver has only this device's atomic operations meet there, and the host looks when all is over.
    if (atomicCAS(&p.fault->state, 0u, 1u) != 0u) return;
    volatile Fault *fault = p.fault;
    fault->site = p.site;
    fault->launch = p.launch;
    fault->place = place;
    fault->index = index;
    __threadfence_system();
    fault->state = 2;
}

template <class T> DEVICE void clear(T &unit) { unit = 0; }
DEVICE void clear(uint4 &unit) { unit = make_uint4(0, 0, 0, 0); }

template <class T> DEVICE void gather(const Gather &p) {
    if (p.count == 0) {
        FOR_EACH(place, p.num_indices) {
            const i64 index = index_at(p, place);
            if (!is_inside(p, row_of(p, index))) tell(p, place, index);
        }
        return;
    }
    FOR_EACH(i, p.count) {
        const u32 row = i / p.inner, unit = i - row * p.inner;
        const u32 block = row / p.num_indices, place = row - block * p.num_indices;
        const i64 index = index_at(p, place), found = row_of(p, index);
        if (is_inside(p, found)) {
            const i64 from = ((i64)block * p.size + found) * p.inner + unit;
            ((T *)p.y)[i] = ((const T *)p.table)[from];
        } else {
            clear(((T *)p.y)[i]);
            if (block == 0 && unit == 0) tell(p, place, index);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_gather_1(const __grid_constant__ Gather p) { gather<u8>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_gather_2(const __grid_constant__ Gather p) { gather<u16>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_gather_4(const __grid_constant__ Gather p) { gather<u32>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_gather_8(const __grid_constant__ Gather p) { gather<u64>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_gather_16(const __grid_constant__ Gather p) { gather<uint4>(p); }
