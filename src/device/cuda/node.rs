//! Nodes of driver graphs: the functions that make and change them, and their parameters.

use super::grid::LaunchGrid;
use super::table::{
    CUcontext, CUgraph, CUgraphExec, CUgraphNode, CUstream, CopyNode, DriverTable, FillNode, KernelNode, Status,
};
use crate::base::{Code, Error, Result};
use crate::device::{Fill, Location, Transfer};
use cudarc::driver::sys::CUmemorytype_enum as M;
use std::ffi::c_void;
use std::fmt::{self, Display};

/// Most bytes of a row of a copy.
const MOST_BYTES: usize = i32::MAX as usize;

type Instantiate = unsafe extern "C" fn(*mut CUgraphExec, CUgraph, u64) -> Status;
type Add<P> = unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const P) -> Status;
type AddIn<P, C> = unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const P, C) -> Status;
type AddEmpty = unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> Status;
type Set<P> = unsafe extern "C" fn(CUgraphExec, CUgraphNode, *const P) -> Status;
type SetIn<P, C> = unsafe extern "C" fn(CUgraphExec, CUgraphNode, *const P, C) -> Status;

/// The driver's functions for graphs, if it has all of them.
#[derive(Clone, Copy)]
pub(super) struct GraphFunctions {
    pub(super) create: unsafe extern "C" fn(*mut CUgraph, u32) -> Status,
    pub(super) destroy: unsafe extern "C" fn(CUgraph) -> Status,
    pub(super) add_kernel: Add<KernelNode>,
    pub(super) add_copy: AddIn<CopyNode, CUcontext>,
    pub(super) add_fill: AddIn<FillNode, CUcontext>,
    pub(super) add_empty: AddEmpty,
    pub(super) instantiate: Instantiate,
    pub(super) destroy_exec: unsafe extern "C" fn(CUgraphExec) -> Status,
    pub(super) launch: unsafe extern "C" fn(CUgraphExec, CUstream) -> Status,
    pub(super) set_kernel: Set<KernelNode>,
    pub(super) set_copy: SetIn<CopyNode, CUcontext>,
    pub(super) set_fill: SetIn<FillNode, CUcontext>,
}

impl GraphFunctions {
    pub(super) fn of(table: &DriverTable) -> Option<GraphFunctions> {
        Some(GraphFunctions {
            create: table.graph_create?,
            destroy: table.graph_destroy?,
            add_kernel: table.graph_add_kernel_node?,
            add_copy: table.graph_add_memcpy_node?,
            add_fill: table.graph_add_memset_node?,
            add_empty: table.graph_add_empty_node?,
            instantiate: table.graph_instantiate?,
            destroy_exec: table.graph_exec_destroy?,
            launch: table.graph_launch?,
            set_kernel: table.graph_exec_kernel_node_set_params?,
            set_copy: table.graph_exec_memcpy_node_set_params?,
            set_fill: table.graph_exec_memset_node_set_params?,
        })
    }
}

/// An action in a recording, for messages.
pub(super) struct In<'a>(pub &'a str, pub &'a str);

impl Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recording '{}': {}", self.0, self.1)
    }
}

pub(super) fn kernel_node(grid: &LaunchGrid, arguments: &[*mut c_void]) -> KernelNode {
    let ([x, y, z], [bx, by, bz]) = (grid.grid, grid.block);
    KernelNode {
        func: grid.function,
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: bx,
        blockDimY: by,
        blockDimZ: bz,
        sharedMemBytes: grid.shared_bytes,
        kernelParams: arguments.as_ptr().cast_mut(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// One row of bytes.
pub(super) fn copy_node(transfer: &Transfer<'_>) -> Result<CopyNode> {
    let bytes = transfer.bytes;
    if bytes == 0 || bytes > MOST_BYTES {
        return Err(Error::new(Code::Unimplemented, format!("{}: a recorded copy of {bytes} bytes", transfer.name)));
    }
    // Memory type, host's address, device's address.
    let of = |place: &Location<'_>| match *place {
        Location::Host(address) => Ok((M::CU_MEMORYTYPE_HOST, address.get(), 0)),
        Location::Device(address) => Ok((M::CU_MEMORYTYPE_DEVICE, 0, address as u64)),
        Location::Peer(..) => Err(Error::new(Code::Unimplemented, "a recorded copy between devices")),
    };
    let (to, from) = (of(&transfer.to)?, of(&transfer.from)?);
    Ok(CopyNode {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.0,
        srcHost: std::ptr::with_exposed_provenance(from.1),
        srcDevice: from.2,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: bytes,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.0,
        dstHost: std::ptr::with_exposed_provenance_mut(to.1),
        dstDevice: to.2,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: bytes,
        dstHeight: 1,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    })
}

pub(super) fn fill_node(fill: &Fill<'_>) -> FillNode {
    let (width, value) = (fill.bytes, u32::from(fill.value));
    FillNode { dst: fill.address as u64, pitch: fill.bytes, value, elementSize: 1, width, height: 1 }
}
