//! The driver's functions, resolved once.
//!
//! Every status is a plain `i32`: the enum of the bindings has the values of one version of CUDA, and a newer driver
//! returns others. A function that a driver of version 12.0 may lack is an `Option`; its users check first.
//!
//! A library may have functions that its driver lacks (a newer library over an older kernel module, in containers), so
//! optional ones are looked up in the driver itself, with cuGetProcAddress.
//!
//! No function of the bindings is called: they panic where something is missing.

use cudarc::driver::sys;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Nodes of graphs, as they are given to the driver.
pub use sys::{
    CUDA_KERNEL_NODE_PARAMS_v2_st as KernelNode, CUDA_MEMCPY3D_st as CopyNode, CUDA_MEMSET_NODE_PARAMS_st as FillNode,
};
pub use sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUmemAccessDesc,
    CUmemPoolProps, CUmemoryPool, CUmodule, CUstream, CUuserObject,
};

/// The status of a driver function.
pub type Status = i32;

/// CUgraphNodeParams of a conditional node, with numbers instead of the bindings' enums: the driver writes into it.
#[repr(C)]
pub struct ConditionalNode {
    /// CUgraphNodeType
    pub kind: c_int,
    reserved: [c_int; 3],
    pub handle: u64,
    /// CUgraphConditionalNodeType
    pub choice: c_int,
    pub count: c_uint,
    /// The bodies, which the driver gives; its own array.
    pub bodies: *mut CUgraph,
    pub context: CUcontext,
    unused: [u64; 26],
}

impl ConditionalNode {
    pub fn new(handle: u64, choice: c_int, count: c_uint, context: CUcontext) -> ConditionalNode {
        let kind = sys::CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_CONDITIONAL as c_int;
        let bodies = std::ptr::null_mut();
        ConditionalNode { kind, reserved: [0; 3], handle, choice, count, bodies, context, unused: [0; 26] }
    }
}

/// cuGetProcAddress of CUDA 12: name, answer, version, flags, why not.
pub type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> Status;

/// A function of a library, as yet without a type.
pub type Found = unsafe extern "C" fn();

macro_rules! table {
    (
        required { $($name:ident = $symbol:literal ($($argument:ty),* $(,)?);)* }
        optional { $($optional_name:ident = $optional_symbol:literal ($($optional_argument:ty),* $(,)?);)* }
    ) => {
        /// The driver's functions by what they are called there, without "cu" and version.
        pub struct DriverTable {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> Status,)*
            $(pub $optional_name: Option<unsafe extern "C" fn($($optional_argument),*) -> Status>,)*
        }

        impl DriverTable {
            /// All functions, or the name of the first that is missing.
            ///
            /// # Safety
            /// Both return the CUDA driver's function of the name, if any; `find_optional` is for functions that may be
            /// missing.
            pub unsafe fn resolve(
                find: &dyn Fn(&'static str) -> Option<Found>,
                find_optional: &dyn Fn(&'static str) -> Option<Found>,
            ) -> Result<DriverTable, &'static str> {
                // SAFETY: the driver's function with this name has this type (CUDA 12.0 and later).
                unsafe {
                    Ok(DriverTable {
                        $($name: match find($symbol) {
                            Some(found) => std::mem::transmute::<
                                Found,
                                unsafe extern "C" fn($($argument),*) -> Status
                            >(found),
                            None => return Err($symbol),
                        },)*
                        $($optional_name: find_optional($optional_symbol).map(|found| std::mem::transmute::<
                            Found,
                            unsafe extern "C" fn($($optional_argument),*) -> Status
                        >(found)),)*
                    })
                }
            }
        }

        /// Names of what every driver must have.
        #[cfg(all(test, not(loom)))]
        const REQUIRED: &[&str] = &[$($symbol),*];
        #[cfg(all(test, not(loom)))]
        const OPTIONAL: &[&str] = &[$($optional_symbol),*];
    };
}

table! {
    required {
        init = "cuInit" (c_uint);
        driver_get_version = "cuDriverGetVersion" (*mut c_int);
        get_error_name = "cuGetErrorName" (Status, *mut *const c_char);
        get_error_string = "cuGetErrorString" (Status, *mut *const c_char);

        device_get_count = "cuDeviceGetCount" (*mut c_int);
        device_get = "cuDeviceGet" (*mut CUdevice, c_int);
        device_get_name = "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
        device_get_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, CUdevice);
        device_total_mem = "cuDeviceTotalMem_v2" (*mut usize, CUdevice);
        device_get_uuid = "cuDeviceGetUuid_v2" (*mut [u8; 16], CUdevice);
        device_get_pci_bus_id = "cuDeviceGetPCIBusId" (*mut c_char, c_int, CUdevice);

        device_can_access_peer = "cuDeviceCanAccessPeer" (*mut c_int, CUdevice, CUdevice);

        primary_ctx_retain = "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
        primary_ctx_release = "cuDevicePrimaryCtxRelease_v2" (CUdevice);
        ctx_get_current = "cuCtxGetCurrent" (*mut CUcontext);
        ctx_set_current = "cuCtxSetCurrent" (CUcontext);
        ctx_get_device = "cuCtxGetDevice" (*mut CUdevice);
        ctx_enable_peer_access = "cuCtxEnablePeerAccess" (CUcontext, c_uint);
        ctx_get_stream_priority_range = "cuCtxGetStreamPriorityRange" (*mut c_int, *mut c_int);

        stream_create_with_priority = "cuStreamCreateWithPriority" (*mut CUstream, c_uint, c_int);
        stream_destroy = "cuStreamDestroy_v2" (CUstream);
        stream_query = "cuStreamQuery" (CUstream);
        stream_synchronize = "cuStreamSynchronize" (CUstream);
        stream_wait_event = "cuStreamWaitEvent" (CUstream, CUevent, c_uint);
        stream_get_ctx = "cuStreamGetCtx" (CUstream, *mut CUcontext);
        stream_is_capturing = "cuStreamIsCapturing" (CUstream, *mut c_int);
        thread_exchange_stream_capture_mode = "cuThreadExchangeStreamCaptureMode" (*mut c_int);

        event_create = "cuEventCreate" (*mut CUevent, c_uint);
        event_destroy = "cuEventDestroy_v2" (CUevent);
        event_record = "cuEventRecord" (CUevent, CUstream);
        event_query = "cuEventQuery" (CUevent);
        event_synchronize = "cuEventSynchronize" (CUevent);
        event_elapsed_time = "cuEventElapsedTime" (*mut f32, CUevent, CUevent);

        mem_alloc = "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
        mem_free = "cuMemFree_v2" (CUdeviceptr);
        mem_host_alloc = "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
        mem_free_host = "cuMemFreeHost" (*mut c_void);
        mem_host_register = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
        mem_host_unregister = "cuMemHostUnregister" (*mut c_void);
        mem_get_info = "cuMemGetInfo_v2" (*mut usize, *mut usize);

        memcpy_htod_async = "cuMemcpyHtoDAsync_v2" (CUdeviceptr, *const c_void, usize, CUstream);
        memcpy_dtoh_async = "cuMemcpyDtoHAsync_v2" (*mut c_void, CUdeviceptr, usize, CUstream);
        memcpy_dtod_async = "cuMemcpyDtoDAsync_v2" (CUdeviceptr, CUdeviceptr, usize, CUstream);
        memcpy_peer_async = "cuMemcpyPeerAsync" (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream);
        memset_d8_async = "cuMemsetD8Async" (CUdeviceptr, u8, usize, CUstream);

        module_load_data_ex = "cuModuleLoadDataEx"
            (*mut CUmodule, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        module_unload = "cuModuleUnload" (CUmodule);
        module_get_function = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
        func_get_attribute = "cuFuncGetAttribute" (*mut c_int, c_int, CUfunction);
        func_set_attribute = "cuFuncSetAttribute" (CUfunction, c_int, c_int);
        launch_kernel = "cuLaunchKernel" (
            CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void,
            *mut *mut c_void
        );
    }
    optional {
        mem_pool_create = "cuMemPoolCreate" (*mut CUmemoryPool, *const CUmemPoolProps);
        mem_pool_destroy = "cuMemPoolDestroy" (CUmemoryPool);
        mem_pool_set_attribute = "cuMemPoolSetAttribute" (CUmemoryPool, c_int, *mut c_void);
        mem_pool_trim_to = "cuMemPoolTrimTo" (CUmemoryPool, usize);
        mem_pool_set_access = "cuMemPoolSetAccess" (CUmemoryPool, *const CUmemAccessDesc, usize);
        mem_alloc_from_pool_async = "cuMemAllocFromPoolAsync" (*mut CUdeviceptr, usize, CUmemoryPool, CUstream);
        mem_free_async = "cuMemFreeAsync" (CUdeviceptr, CUstream);
        graph_create = "cuGraphCreate" (*mut CUgraph, c_uint);
        graph_destroy = "cuGraphDestroy" (CUgraph);
        graph_add_kernel_node = "cuGraphAddKernelNode_v2"
            (*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const KernelNode);
        graph_add_memcpy_node = "cuGraphAddMemcpyNode"
            (*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const CopyNode, CUcontext);
        graph_add_memset_node = "cuGraphAddMemsetNode"
            (*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const FillNode, CUcontext);
        graph_add_empty_node = "cuGraphAddEmptyNode" (*mut CUgraphNode, CUgraph, *const CUgraphNode, usize);
        graph_instantiate = "cuGraphInstantiateWithFlags" (*mut CUgraphExec, CUgraph, u64);
        graph_upload = "cuGraphUpload" (CUgraphExec, CUstream);
        graph_exec_destroy = "cuGraphExecDestroy" (CUgraphExec);
        graph_launch = "cuGraphLaunch" (CUgraphExec, CUstream);
        graph_exec_kernel_node_set_params = "cuGraphExecKernelNodeSetParams_v2"
            (CUgraphExec, CUgraphNode, *const KernelNode);
        graph_exec_memcpy_node_set_params = "cuGraphExecMemcpyNodeSetParams"
            (CUgraphExec, CUgraphNode, *const CopyNode, CUcontext);
        graph_exec_memset_node_set_params = "cuGraphExecMemsetNodeSetParams"
            (CUgraphExec, CUgraphNode, *const FillNode, CUcontext);
        graph_conditional_handle_create = "cuGraphConditionalHandleCreate"
            (*mut u64, CUgraph, CUcontext, c_uint, c_uint);
        graph_add_node = "cuGraphAddNode_v2"
            (*mut CUgraphNode, CUgraph, *const CUgraphNode, *const c_void, usize, *mut ConditionalNode);
        graph_add_child_graph_node = "cuGraphAddChildGraphNode"
            (*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, CUgraph);
        graph_exec_child_graph_node_set_params = "cuGraphExecChildGraphNodeSetParams"
            (CUgraphExec, CUgraphNode, CUgraph);
        stream_get_capture_info = "cuStreamGetCaptureInfo_v2"
            (CUstream, *mut c_int, *mut u64, *mut CUgraph, *mut *const CUgraphNode, *mut usize);
        user_object_create = "cuUserObjectCreate"
            (*mut CUuserObject, *mut c_void, unsafe extern "C" fn(*mut c_void), c_uint, c_uint);
        user_object_release = "cuUserObjectRelease" (CUuserObject, c_uint);
        graph_retain_user_object = "cuGraphRetainUserObject" (CUgraph, CUuserObject, c_uint, c_uint);
        stream_begin_capture = "cuStreamBeginCapture_v2" (CUstream, c_int);
        stream_end_capture = "cuStreamEndCapture" (CUstream, *mut CUgraph);
        func_get_param_info = "cuFuncGetParamInfo" (CUfunction, usize, *mut usize, *mut usize);
    }
}

impl std::fmt::Debug for DriverTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Table")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    unsafe extern "C" fn anything() {}

    #[test]
    fn a_conditional_node_is_laid_out_as_the_bindings_have_it() {
        use std::mem::{offset_of, size_of};
        use sys::{CUDA_CONDITIONAL_NODE_PARAMS as Inner, CUgraphNodeParams_st as Outer};
        assert_eq!(size_of::<ConditionalNode>(), size_of::<Outer>());
        let at = offset_of!(Outer, __bindgen_anon_1);
        let offsets = [
            (offset_of!(ConditionalNode, kind), offset_of!(Outer, type_)),
            (offset_of!(ConditionalNode, handle), at + offset_of!(Inner, handle)),
            (offset_of!(ConditionalNode, choice), at + offset_of!(Inner, type_)),
            (offset_of!(ConditionalNode, count), at + offset_of!(Inner, size)),
            (offset_of!(ConditionalNode, bodies), at + offset_of!(Inner, phGraph_out)),
            (offset_of!(ConditionalNode, context), at + offset_of!(Inner, ctx)),
        ];
        offsets.iter().for_each(|(own, theirs)| assert_eq!(own, theirs));
    }

    #[test]
    fn the_driver_of_the_benchmarks_has_what_must_be_there() {
        let idle = include_str!("../../../tests/idle_cuda/src/lib.rs");
        REQUIRED.iter().for_each(|name| assert!(idle.contains(name), "{name}"));
    }

    #[test]
    fn what_must_be_there_is_named_if_it_is_not() {
        for missing in REQUIRED {
            let find = |name: &'static str| (name != *missing).then_some(anything as Found);
            // SAFETY: nothing of the table is called.
            assert_eq!(unsafe { DriverTable::resolve(&find, &|_| None) }.unwrap_err(), *missing);
        }
    }

    #[test]
    fn what_need_not_be_there_may_be_missing() {
        let find = |name: &'static str| (!OPTIONAL.contains(&name)).then_some(anything as Found);
        // SAFETY: as above.
        let table = unsafe { DriverTable::resolve(&find, &find) }.unwrap();
        assert!(table.mem_pool_create.is_none() && table.func_get_param_info.is_none());
        // SAFETY: as above.
        let table =
            unsafe { DriverTable::resolve(&|_| Some(anything as Found), &|_| Some(anything as Found)) }.unwrap();
        assert!(table.mem_pool_create.is_some() && table.func_get_param_info.is_some());
    }
}
