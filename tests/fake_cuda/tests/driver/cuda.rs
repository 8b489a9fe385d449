//! The driver as a program has it: found by the loader, called through the addresses of its functions.

#![allow(non_snake_case)]

use fake_cuda::abi::{
    ConditionalNodeParams, Copy3D, EdgeData, GraphNodeParams, Handle, KernelNodeParams, MemsetNodeParams, NodeUnion,
};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::LazyLock;

pub type Status = i32;

/// Looks a function up and calls it: `call!(cuInit(0u32))`.
#[macro_export]
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        let function = $crate::cuda::symbol(stringify!($name)).expect(stringify!($name));
        $crate::cuda::Caller(function).call(($($argument,)*))
    }};
}

/// A call that must succeed.
#[macro_export]
macro_rules! ok {
    ($name:ident($($argument:expr),* $(,)?)) => {
        assert_eq!($crate::call!($name($($argument),*)), 0, stringify!($name))
    };
}

/// A function of a library's, of which the arguments say the type.
pub struct Caller(pub *mut c_void);

pub trait Call<A> {
    fn call(&self, arguments: A) -> Status;
}

macro_rules! callers {
    ($($($name:ident)*;)*) => {
        $(impl<$($name),*> Call<($($name,)*)> for Caller {
            fn call(&self, ($($name,)*): ($($name,)*)) -> Status {
                // SAFETY: the tests give arguments of the types that the function has.
                let function = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($name),*) -> Status>(self.0)
                };
                // SAFETY: as above.
                unsafe { function($($name),*) }
            }
        })*
    };
}

callers! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H I J K;
}

static LIBRARY: LazyLock<usize> = LazyLock::new(|| {
    // SAFETY: the driver, which does nothing as it is opened.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "libcuda.so.1 is not found");
    library as usize
});

pub fn symbol(name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).unwrap();
    // SAFETY: a library that stays open.
    let found = unsafe { libc::dlsym(*LIBRARY as *mut c_void, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A place for an answer.
pub fn out<T>(value: &mut T) -> *mut T {
    value
}

/// The primary context of device 0, current in this thread.
pub fn start() -> Handle {
    ok!(cuInit(0u32));
    let mut context = Handle::NULL;
    ok!(cuDevicePrimaryCtxRetain(out(&mut context), 0i32));
    ok!(cuCtxSetCurrent(context));
    context
}

/// Gives the primary context back.
pub fn end() {
    ok!(cuDevicePrimaryCtxRelease_v2(0i32));
}

pub fn stream() -> Handle {
    let mut stream = Handle::NULL;
    ok!(cuStreamCreateWithPriority(out(&mut stream), 1u32, 0i32));
    stream
}

pub fn event() -> Handle {
    let mut event = Handle::NULL;
    ok!(cuEventCreate(out(&mut event), 2u32));
    event
}

pub fn memory(bytes: usize) -> u64 {
    let mut address = 0u64;
    ok!(cuMemAlloc_v2(out(&mut address), bytes));
    address
}

/// Memory of the host's that copies do not wait for.
pub fn pinned(words: usize) -> &'static mut [u32] {
    let mut address = std::ptr::null_mut::<u32>();
    ok!(cuMemHostAlloc(out(&mut address), words * 4, 0u32));
    // SAFETY: the driver has given so many, which stay until `cuMemFreeHost`.
    unsafe { std::slice::from_raw_parts_mut(address, words) }
}

/// Built-in functions of the driver's.
pub fn module(names: &[&str]) -> Handle {
    let image = CString::new(format!("WEIRFAKE1\n{}\n", names.join("\n"))).unwrap();
    let mut module = Handle::NULL;
    ok!(cuModuleLoadData(out(&mut module), image.as_ptr()));
    module
}

pub fn function(name: &str) -> Handle {
    named(module(&[name]), name)
}

pub fn named(module: Handle, name: &str) -> Handle {
    let name = CString::new(name).unwrap();
    let mut function = Handle::NULL;
    ok!(cuModuleGetFunction(out(&mut function), module, name.as_ptr()));
    function
}

/// Values of parameters, and their addresses.
pub struct Params {
    _values: Vec<u64>,
    addresses: Vec<*mut c_void>,
}

impl Params {
    pub fn new(values: &[u64]) -> Params {
        let mut values = values.to_vec();
        let addresses = values.iter_mut().map(|value| (&raw mut *value).cast()).collect();
        Params { _values: values, addresses }
    }

    pub fn pointer(&mut self) -> *mut *mut c_void {
        self.addresses.as_mut_ptr()
    }
}

/// One block of one thread.
pub fn launch(function: Handle, stream: Handle, values: &[u64]) -> Status {
    let mut params = Params::new(values);
    let none = std::ptr::null_mut::<*mut c_void>();
    call!(cuLaunchKernel(function, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, stream, params.pointer(), none))
}

/// What a device's memory holds, after all work.
pub fn read(address: u64, words: usize) -> Vec<u32> {
    let mut values = vec![0u32; words];
    ok!(cuMemcpyDtoH_v2(values.as_mut_ptr(), address, words * 4));
    values
}

pub fn kernel_node(function: Handle, params: &mut Params) -> KernelNodeParams {
    KernelNodeParams {
        function,
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
        params: params.pointer(),
        extra: std::ptr::null_mut(),
        kernel: Handle::NULL,
        context: Handle::NULL,
    }
}

pub fn add_kernel(graph: Handle, before: &[Handle], function: Handle, values: &[u64]) -> Handle {
    let mut params = Params::new(values);
    let node_params = kernel_node(function, &mut params);
    let mut node = Handle::NULL;
    ok!(cuGraphAddKernelNode_v2(out(&mut node), graph, before.as_ptr(), before.len(), &raw const node_params));
    node
}

/// What adding a kernel to a graph gives.
pub fn add_any_kernel(graph: Handle, function: Handle) -> Status {
    let mut params = Params::new(&[0; 4]);
    let (node_params, mut node) = (kernel_node(function, &mut params), Handle::NULL);
    call!(cuGraphAddKernelNode_v2(out(&mut node), graph, std::ptr::null::<Handle>(), 0usize, &raw const node_params))
}

pub fn memset(dst: u64, value: u32, count: usize) -> MemsetNodeParams {
    MemsetNodeParams { dst, pitch: 0, value, element_size: 4, width: count, height: 1 }
}

pub fn copy(to: u64, from: u64, bytes: usize) -> Copy3D {
    Copy3D {
        src_x: 0,
        src_y: 0,
        src_z: 0,
        src_lod: 0,
        src_type: 2,
        src_host: std::ptr::null(),
        src_device: from,
        src_array: 0,
        reserved0: std::ptr::null_mut(),
        src_pitch: 0,
        src_height: 0,
        dst_x: 0,
        dst_y: 0,
        dst_z: 0,
        dst_lod: 0,
        dst_type: 2,
        dst_host: std::ptr::null_mut(),
        dst_device: to,
        dst_array: 0,
        reserved1: std::ptr::null_mut(),
        dst_pitch: 0,
        dst_height: 0,
        width: bytes,
        height: 1,
        depth: 1,
    }
}

pub fn graph() -> Handle {
    let mut graph = Handle::NULL;
    ok!(cuGraphCreate(out(&mut graph), 0u32));
    graph
}

pub fn instantiate(graph: Handle) -> Handle {
    let mut exec = Handle::NULL;
    ok!(cuGraphInstantiateWithFlags(out(&mut exec), graph, 0u64));
    exec
}

/// The context that is current.
pub fn current() -> Handle {
    let mut current = Handle::NULL;
    ok!(cuCtxGetCurrent(out(&mut current)));
    current
}

/// A conditional node; gives its bodies.
pub fn conditional(graph: Handle, before: &[Handle], handle: u64, kind: u32, size: u32) -> Result<Vec<Handle>, i32> {
    let of = ConditionalNodeParams { handle, kind, size, bodies: std::ptr::null_mut(), context: current() };
    let mut params = GraphNodeParams { kind: 13, reserved0: [0; 3], of: NodeUnion { reserved: [0; 29] }, reserved2: 0 };
    params.of.conditional = of;
    let mut node = Handle::NULL;
    let edges = std::ptr::null::<EdgeData>();
    let status =
        call!(cuGraphAddNode_v2(out(&mut node), graph, before.as_ptr(), edges, before.len(), out(&mut params)));
    if status != 0 {
        return Err(status);
    }
    // SAFETY: the driver has filled in so many bodies.
    Ok(unsafe { std::slice::from_raw_parts(params.of.conditional.bodies, size as usize) }.to_vec())
}

/// A conditional handle, with a value at each launch if one is given.
pub fn handle(graph: Handle, value: Option<u32>) -> u64 {
    let mut handle = 0u64;
    let (value, flags) = value.map_or((0, 0), |value| (value, 1));
    ok!(cuGraphConditionalHandleCreate(out(&mut handle), graph, current(), value, flags));
    handle
}

/// Races that were found, with RACES=report.
pub fn races() -> Vec<String> {
    // SAFETY: the driver's own functions, with the types that they have.
    unsafe {
        let count: extern "C" fn() -> u64 = std::mem::transmute(symbol("fakeCudaRaceCount").unwrap());
        let race: unsafe extern "C" fn(u64, *mut c_char, usize) -> usize =
            std::mem::transmute(symbol("fakeCudaRace").unwrap());
        (0..count())
            .map(|index| {
                let mut text = vec![0 as c_char; 1000];
                race(index, text.as_mut_ptr(), text.len());
                CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
            })
            .collect()
    }
}
