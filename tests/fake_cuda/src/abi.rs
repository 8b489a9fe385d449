//! The types of the driver's interface, as the entry points take them.
//!
//! A handle is a number, never the address of something: 40 bits above say what it names, those below which one,
//! counted from 1 in the order of their making. So a log of calls is the same in each run, whoever looks behind a
//! handle faults, and a handle that was given back is known as such for good.

use crate::status::{Code, Result};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt::{self, Debug, Formatter};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Kind {
    Context = 1,
    Stream,
    Event,
    Module,
    Function,
    Pool,
    Graph,
    Node,
    Exec,
    Object,
}

impl Kind {
    pub const ALL: [(Kind, &str); 10] = [
        (Kind::Context, "context"),
        (Kind::Stream, "stream"),
        (Kind::Event, "event"),
        (Kind::Module, "module"),
        (Kind::Function, "function"),
        (Kind::Pool, "pool"),
        (Kind::Graph, "graph"),
        (Kind::Node, "node"),
        (Kind::Exec, "exec"),
        (Kind::Object, "user object"),
    ];

    pub fn name(self) -> &'static str {
        Kind::ALL[self as usize - 1].1
    }
}

/// CUcontext, CUstream, CUevent and so on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Handle(pub usize);

impl Handle {
    pub const NULL: Handle = Handle(0);
    /// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD.
    pub const LEGACY: Handle = Handle(1);
    pub const PER_THREAD: Handle = Handle(2);

    pub fn new(kind: Kind, number: usize) -> Handle {
        Handle((kind as usize) << 40 | number << 4)
    }

    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    pub fn kind(self) -> Option<Kind> {
        Kind::ALL.iter().map(|(kind, _)| *kind).find(|kind| self.0 >> 40 == *kind as usize)
    }

    pub fn number(self) -> usize {
        (self.0 & ((1 << 40) - 1)) >> 4
    }
}

impl Debug for Handle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (*self, self.kind()) {
            (Handle::NULL, _) => f.write_str("null"),
            (Handle::LEGACY, _) => f.write_str("legacy"),
            (Handle::PER_THREAD, _) => f.write_str("per-thread"),
            (_, Some(kind)) => write!(f, "{}#{}", kind.name(), self.number()),
            (_, None) => write!(f, "{:#x}", self.0),
        }
    }
}

/// A place that the caller gives for an answer, or null.
#[repr(transparent)]
pub struct Out<T>(pub *mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Out<T> {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn check(self) -> Result {
        if self.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    pub fn set(self, value: T) -> Result {
        self.check()?;
        // SAFETY: an entry point's caller gives a place for a value of this type, or null.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Answers that may be left out.
    pub fn set_if_wanted(self, value: T) {
        let _ = self.set(value);
    }

    /// One of a row of places.
    pub fn at(self, index: usize) -> Out<T> {
        Out(self.0.wrapping_add(index))
    }
}

impl<T: Copy> Out<T> {
    pub fn get(self) -> Result<T> {
        self.check()?;
        // SAFETY: as for `set`; for places that the caller has written something to.
        Ok(unsafe { self.0.read() })
    }
}

/// Something that the caller lets be read, or null.
#[repr(transparent)]
pub struct In<T>(pub *const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> In<T> {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn get(self) -> Result<T> {
        if self.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: an entry point's caller gives the address of a value of this type, or null.
        Ok(unsafe { self.0.read() })
    }

    pub fn list(self, count: usize) -> Result<Vec<T>> {
        match count {
            0 => Ok(Vec::new()),
            _ if self.is_null() => Err(Code::INVALID_VALUE),
            // SAFETY: as above, for a row of so many.
            _ => Ok((0..count).map(|index| unsafe { self.0.add(index).read() }).collect()),
        }
    }
}

impl In<c_char> {
    pub fn text(self) -> Result<String> {
        if self.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: an entry point's caller gives a text that ends with zero, or null.
        Ok(unsafe { std::ffi::CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

/// What a call's argument reads in the log.
pub trait Show {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

macro_rules! show_debug {
    ($($type:ty)*) => {
        $(impl Show for $type {
            fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
                write!(f, "{self:?}")
            }
        })*
    };
}

show_debug!(Handle u8 u16 u32 i32 u64 i64 usize f32);

/// What a place for an answer holds when the call has succeeded.
macro_rules! show_out {
    ($($type:ty)*) => {
        $(impl Show for Out<$type> {
            fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
                match self.get() {
                    Ok(value) => write!(f, "-> {value:?}"),
                    Err(_) => f.write_str("null"),
                }
            }
        })*
    };
}

show_out!(Handle i32 u32 u64 usize f32);

macro_rules! show_plain {
    ($($type:ty)*) => {
        $(impl Show for $type {
            fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(if self.0.is_null() { "null" } else { "..." })
            }
        })*
    };
}

show_plain!(
    Out<c_char> Out<*mut c_void> Out<*const c_char> Out<[u8; 16]> Out<c_void> Out<ExecUpdateResult>
    Out<GraphNodeParams> Out<*const Handle> Out<*const EdgeData> Out<EdgeData>
    In<Handle> In<PoolProps> In<AccessDesc> In<Copy2D> In<Copy3D> In<LaunchConfig> In<KernelNodeParams>
    In<MemsetNodeParams> In<HostNodeParams> In<EdgeData>
);

impl Show for In<c_char> {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.text() {
            Ok(text) => write!(f, "{text:?}"),
            Err(_) => f.write_str("null"),
        }
    }
}

impl Show for *mut c_void {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_null() { "null" } else { "host" })
    }
}

impl Show for *const c_void {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.cast_mut().show(f)
    }
}

pub type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;

impl Show for HostFunction {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "function" } else { "null" })
    }
}

pub type OccupancyFunction = Option<unsafe extern "C" fn(c_int) -> usize>;

impl Show for OccupancyFunction {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "function" } else { "null" })
    }
}

/// CUdeviceptr.
pub type DevicePointer = u64;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct PoolProps {
    pub alloc_type: c_int,
    pub handle_types: c_int,
    pub location_type: c_int,
    pub location_id: c_int,
    pub security_attributes: *mut c_void,
    pub max_size: usize,
    pub reserved: [u8; 56],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct AccessDesc {
    pub location_type: c_int,
    pub location_id: c_int,
    pub flags: c_int,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Copy2D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_type: c_uint,
    pub src_host: *const c_void,
    pub src_device: DevicePointer,
    pub src_array: usize,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_type: c_uint,
    pub dst_host: *mut c_void,
    pub dst_device: DevicePointer,
    pub dst_array: usize,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Copy3D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    pub src_type: c_uint,
    pub src_host: *const c_void,
    pub src_device: DevicePointer,
    pub src_array: usize,
    pub reserved0: *mut c_void,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_type: c_uint,
    pub dst_host: *mut c_void,
    pub dst_device: DevicePointer,
    pub dst_array: usize,
    pub reserved1: *mut c_void,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct LaunchAttribute {
    pub id: c_int,
    pub pad: [u8; 4],
    pub value: [u64; 8],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub stream: Handle,
    pub attributes: *mut LaunchAttribute,
    pub num_attributes: c_uint,
}

/// CUDA_KERNEL_NODE_PARAMS_v2, which v3 is the same as.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KernelNodeParams {
    pub function: Handle,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub params: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kernel: Handle,
    pub context: Handle,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct MemsetNodeParams {
    pub dst: DevicePointer,
    pub pitch: usize,
    pub value: c_uint,
    pub element_size: c_uint,
    pub width: usize,
    pub height: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct HostNodeParams {
    pub function: HostFunction,
    pub data: *mut c_void,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct MemcpyNodeParams {
    pub flags: c_int,
    pub reserved: c_int,
    pub context: Handle,
    pub copy: Copy3D,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ConditionalNodeParams {
    pub handle: u64,
    pub kind: c_uint,
    pub size: c_uint,
    pub bodies: *mut Handle,
    pub context: Handle,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub union NodeUnion {
    pub reserved: [i64; 29],
    pub kernel: KernelNodeParams,
    pub memcpy: MemcpyNodeParams,
    pub memset: MemsetNodeParams,
    pub host: HostNodeParams,
    /// Of a child graph and of events: a handle comes first.
    pub handle: Handle,
    pub conditional: ConditionalNodeParams,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct GraphNodeParams {
    pub kind: c_int,
    pub reserved0: [c_int; 3],
    pub of: NodeUnion,
    pub reserved2: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct EdgeData {
    pub from_port: u8,
    pub to_port: u8,
    pub kind: u8,
    pub reserved: [u8; 5],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ExecUpdateResult {
    pub result: c_int,
    pub error_node: Handle,
    pub error_from_node: Handle,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that CUDA 12.0 to 13.0 agree on.
    #[test]
    fn structs_have_the_drivers_sizes() {
        assert_eq!(size_of::<GraphNodeParams>(), 256);
        assert_eq!(size_of::<KernelNodeParams>(), 72);
        assert_eq!(size_of::<ConditionalNodeParams>(), 32);
        assert_eq!(size_of::<PoolProps>(), 88);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(size_of::<Copy2D>(), 128);
        assert_eq!(size_of::<Copy3D>(), 200);
        assert_eq!(size_of::<MemsetNodeParams>(), 40);
        assert_eq!(size_of::<MemcpyNodeParams>(), 216);
        assert_eq!(size_of::<ExecUpdateResult>(), 24);
        assert_eq!(size_of::<EdgeData>(), 8);
        assert_eq!(size_of::<AccessDesc>(), 12);
    }

    #[test]
    fn a_handle_says_what_it_names() {
        let handle = Handle::new(Kind::Stream, 3);
        assert_eq!((handle.kind(), handle.number()), (Some(Kind::Stream), 3));
        assert_eq!(format!("{handle:?} {:?} {:?}", Handle::NULL, Handle::PER_THREAD), "stream#3 null per-thread");
    }
}
