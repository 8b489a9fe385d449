//! A CUDA driver that does nothing: a `libcuda.so.1` whose functions return at once. Work that it is given is over as
//! it is given, and never done.
//!
//! It is for measurements on machines without a GPU: what a thread spends beside it is what the caller of the driver
//! spends (`bench/launches.rs`). What is right and what is wrong is for `tests/fake_cuda` to say.
//!
//! One device, with a context; handles are numbers, memory is the host's own. It has what CUDA 12.3 has of what weir
//! takes, without the functions that weir can do without and that a launch does not come by: pools of memory, branches
//! in graphs, captures, parameters of functions.

#![cfg(target_os = "linux")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

type Pointer = *mut c_void;

const VERSION: c_int = 12_030;
const OUT_OF_MEMORY: c_int = 2;
/// The context of the one device.
const CONTEXT: usize = 1 << 12;

/// Functions that answer nothing. They have arguments, of which nobody in them takes notice: in C's way of calling they
/// are their caller's.
macro_rules! nothing {
    ($($name:ident)*) => {
        $(#[unsafe(no_mangle)] pub extern "C" fn $name() -> c_int { 0 })*
    };
}

nothing! {
    cuInit cuDevicePrimaryCtxRelease_v2 cuCtxEnablePeerAccess
    cuStreamDestroy_v2 cuStreamQuery cuStreamSynchronize cuStreamWaitEvent
    cuEventDestroy_v2 cuEventRecord cuEventQuery cuEventSynchronize
    cuMemHostRegister_v2 cuMemHostUnregister
    cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyPeerAsync cuMemsetD8Async
    cuModuleUnload cuFuncSetAttribute
    cuGraphDestroy cuGraphExecDestroy
    cuGraphExecKernelNodeSetParams_v2 cuGraphExecMemcpyNodeSetParams cuGraphExecMemsetNodeSetParams
}

/// How many launches there were, of kernels and of graphs: that none is left out. ORDERING: Relaxed; one thread
/// launches.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

fn count() -> c_int {
    // Not `fetch_add`: a launch is to cost nothing.
    LAUNCHES.store(LAUNCHES.load(Relaxed) + 1, Relaxed);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernel() -> c_int {
    count()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch() -> c_int {
    count()
}

/// Not of the driver: the launches so far.
#[unsafe(no_mangle)]
pub extern "C" fn idle_cuda_launches() -> u64 {
    LAUNCHES.load(Relaxed)
}

/// Functions that answer by one value.
macro_rules! answers {
    ($($name:ident ($place:ident: $type:ty $(, $argument:ty)*) = $value:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($place: *mut $type $(, _: $argument)*) -> c_int {
                // SAFETY: the caller has a place for the answer.
                unsafe { $place.write($value) };
                0
            }
        )*
    };
}

/// A name for something new.
fn new() -> Pointer {
    static NEXT: AtomicUsize = AtomicUsize::new(2 << 12);
    std::ptr::without_provenance_mut(NEXT.fetch_add(16, Relaxed))
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

answers! {
    cuDriverGetVersion(version: c_int) = VERSION;
    cuDeviceGetCount(count: c_int) = 1;
    cuDeviceGet(device: c_int, c_int) = 0;
    cuDeviceCanAccessPeer(can: c_int, c_int, c_int) = 0;
    cuDeviceTotalMem_v2(bytes: usize, c_int) = 8 << 30;
    cuDeviceGetUuid_v2(uuid: [u8; 16], c_int) = *b"idle-cuda-gpu-00";
    cuDevicePrimaryCtxRetain(context: usize, c_int) = CONTEXT;
    cuCtxGetCurrent(context: usize) = CURRENT.get();
    cuThreadExchangeStreamCaptureMode(mode: c_int) = 0;
    cuCtxGetDevice(device: c_int) = 0;
    cuStreamCreateWithPriority(stream: Pointer, c_uint, c_int) = new();
    cuEventCreate(event: Pointer, c_uint) = new();
    cuModuleLoadDataEx(module: Pointer, Pointer, c_uint, Pointer, Pointer) = new();
    cuModuleGetFunction(function: Pointer, Pointer, *const c_char) = new();
    cuGraphCreate(graph: Pointer, c_uint) = new();
    cuGraphAddKernelNode_v2(node: Pointer, Pointer, Pointer, usize, Pointer) = new();
    cuGraphAddMemcpyNode(node: Pointer, Pointer, Pointer, usize, Pointer, Pointer) = new();
    cuGraphAddMemsetNode(node: Pointer, Pointer, Pointer, usize, Pointer, Pointer) = new();
    cuGraphAddEmptyNode(node: Pointer, Pointer, Pointer, usize) = new();
    cuGraphInstantiateWithFlags(exec: Pointer, Pointer, u64) = new();
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    CURRENT.set(context);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCtx(_: Pointer, context: *mut usize) -> c_int {
    // SAFETY: the caller has a place for the answer, here and below.
    unsafe { context.write(CONTEXT) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(_: Pointer, capturing: *mut c_int) -> c_int {
    // SAFETY: as above.
    unsafe { capturing.write(0) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, most: *mut c_int) -> c_int {
    // SAFETY: as above.
    unsafe { (least.write(0), most.write(0)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: as above.
    unsafe { (free.write(8 << 30), total.write(8 << 30)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(time: *mut f32, _: Pointer, _: Pointer) -> c_int {
    // SAFETY: as above.
    unsafe { time.write(0.0) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, _: c_int, _: Pointer) -> c_int {
    // SAFETY: as above.
    unsafe { value.write(1024) };
    0
}

/// Compute capability 9.0; of all else as much as anybody asks for, and no pools of memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _: c_int) -> c_int {
    const MULTIPROCESSORS: c_int = 16;
    const MAJOR: c_int = 75;
    const MINOR: c_int = 76;
    const MAX_SHARED_BYTES: c_int = 97;
    const POOLS: c_int = 115;
    let answer = match attribute {
        MAJOR => 9,
        MINOR | POOLS => 0,
        MULTIPROCESSORS => 132,
        MAX_SHARED_BYTES => 64 << 10,
        _ => 1024,
    };
    // SAFETY: as above.
    unsafe { value.write(answer) };
    0
}

/// # Safety
/// There are so many bytes at `to`.
unsafe fn say(text: &std::ffi::CStr, to: *mut c_char, room: c_int) -> c_int {
    let bytes = text.to_bytes_with_nul();
    assert!(bytes.len() <= room as usize);
    // SAFETY: as demanded of the caller.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, room: c_int, _: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { say(c"a device that does nothing", name, room) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, room: c_int, _: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { say(c"0000:00:00.0", id, room) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(_: c_int, name: *mut *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe { name.write(c"CUDA_ERROR_UNKNOWN".as_ptr()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(_: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe { text.write(c"unknown error".as_ptr()) };
    0
}

/// In front of memory that was given out: how much it is.
const HEAD: usize = 256;

unsafe fn give(place: *mut Pointer, bytes: usize) -> c_int {
    let Ok(layout) = Layout::from_size_align(bytes + HEAD, HEAD) else { return OUT_OF_MEMORY };
    // SAFETY: a layout with bytes; room for its size in front; the caller has a place for the answer.
    unsafe {
        let memory = alloc(layout);
        if memory.is_null() {
            return OUT_OF_MEMORY;
        }
        memory.cast::<usize>().write(layout.size());
        place.write(memory.add(HEAD).cast());
    }
    0
}

unsafe fn take(memory: Pointer) -> c_int {
    // SAFETY: of `give`.
    unsafe {
        let memory = memory.cast::<u8>().sub(HEAD);
        dealloc(memory, Layout::from_size_align_unchecked(memory.cast::<usize>().read(), HEAD));
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut Pointer, bytes: usize) -> c_int {
    // SAFETY: as above.
    unsafe { give(address, bytes) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFree_v2(address: Pointer) -> c_int {
    // SAFETY: what `cuMemAlloc` gave.
    unsafe { take(address) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(memory: *mut Pointer, bytes: usize, _: c_uint) -> c_int {
    // SAFETY: as above.
    unsafe { give(memory, bytes) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeHost(memory: Pointer) -> c_int {
    // SAFETY: what `cuMemHostAlloc` gave.
    unsafe { take(memory) }
}
