//! Devices that a plug-in brings, as a vtable of C functions.
//!
//! Chapter: Device.
use super::kernel::weir_infer_fn;
use super::recipe::weir_device_recipe;
use super::recording::{weir_device_address, weir_device_launch, weir_device_recording, weir_device_work};
use super::region::weir_device_region;
use super::tensor::weir_tensor_desc;
use super::threadpool::weir_destroy_fn;
use std::ffi::{c_char, c_void};

/// Optional capabilities of a plug-in's device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_capability_flags {
    /// Its memory is a separate address space: the host cannot read or write it, whatever the address is.
    WEIR_DEVICE_OWN_MEMORY = 1,
    /// Its functions may be called from several threads at once. Otherwise weir serialises all calls for a device with
    /// a lock, and makes none that blocks: event_synchronize and event_callback are not used, and event_query is called
    /// instead.
    WEIR_DEVICE_CONCURRENT = 2,
    /// Events with WEIR_EVENT_TIMING record times. Requires event_elapsed.
    WEIR_DEVICE_TIMING = 4,
    /// It copies bytes to and from other devices of the same kind. Requires copy_peer.
    WEIR_DEVICE_PEER_COPY = 8,
    /// It calls back when an event is reached. Requires event_callback.
    WEIR_DEVICE_CALLBACK = 16,
    /// It gives out native handles. Requires native_handle.
    WEIR_DEVICE_NATIVE_HANDLE = 32,
    /// It allocates pinned host memory, from and to which it copies directly. Requires host_allocate and
    /// host_deallocate.
    WEIR_DEVICE_PINNED_MEMORY = 64,
    /// It pins host memory that others have allocated. Requires host_register and host_unregister.
    WEIR_DEVICE_REGISTER_MEMORY = 128,
    /// It tells at once whether all work of a stream is done. Requires stream_query.
    WEIR_DEVICE_IDLE_QUERY = 256,
    /// It records work once and replays it many times, each time as one submission. Requires record, executable_update,
    /// executable_destroy and replay.
    WEIR_DEVICE_RECORDINGS = 512,
    /// Recordings may have branches and loops, which it decides by numbers in its own memory. Only with
    /// WEIR_DEVICE_RECORDINGS.
    WEIR_DEVICE_CONTROL_FLOW = 1024,
    /// It prepares launches that are repeated, so that each costs less. Requires prepare, launch_prepared and
    /// prepared_destroy.
    WEIR_DEVICE_PREPARED_LAUNCHES = 2048,
    /// Its kernels need scratch memory. Requires kernel_scratch.
    WEIR_DEVICE_SCRATCH = 4096,
    /// It calls host functions, on a thread of its own, with tensors in memory that the host can touch then. Recipes
    /// have a host function (`host_call`), and kernels of weir_kernel_create_host are offered to it, too.
    WEIR_DEVICE_HOST_KERNELS = 8192,
    /// An output of a kernel may share the memory of an input that is like it, where the same kernel of a cpu engine
    /// allows that.
    WEIR_DEVICE_IN_PLACE = 16384,
    /// The texts of error_text name the engine and the failed operation: weir adds nothing in front.
    WEIR_DEVICE_WHOLE_TEXTS = 32768,
    /// Functions that destroy, deallocate or close may be called inside a callback of event_callback.
    WEIR_DEVICE_ENDS_IN_CALLBACKS = 65536,
    /// Each tensor's memory must come from allocate and go back to deallocate: the memory mode of its engines is
    /// WEIR_MEMORY_MODE_DIRECT unless they ask for another.
    WEIR_DEVICE_DIRECT_MEMORY = 131072,
    /// It compiles several nodes of a program to one kernel. Requires region_compile.
    WEIR_DEVICE_REGIONS = 262144,
}

/// Bits of weir_device_vtable.flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_vtable_flags {
    /// weir_engine_create_all leaves out its devices, since they are not devices of the machine.
    WEIR_DEVICE_UNLISTED = 1,
}

/// Kinds of objects for native_handle of a weir_device_vtable.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_object_value {
    /// The device.
    WEIR_DEVICE_OBJECT_DEVICE = 1,
    /// A stream of it.
    WEIR_DEVICE_OBJECT_STREAM = 2,
    /// An event of it.
    WEIR_DEVICE_OBJECT_EVENT = 3,
}

/// Facts about a device, filled by the plug-in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_info {
    /// sizeof(weir_device_info), set by weir. A plug-in writes no member that lies beyond it.
    pub struct_size: usize,
    /// OR of weir_device_capability_flags.
    pub capabilities: u64,
    /// Its memory in bytes; 0 = not known.
    pub memory_bytes: u64,
    /// Every address that allocate gives is a multiple of it: a power of two, from 16 to 1048576.
    pub alignment: u64,
    /// A name for people, NUL-terminated UTF-8.
    pub name: [c_char; 64],
    /// The most streams that it can use well: a program's work is spread over no more, whatever its engine's attributes
    /// say. 0 = weir decides. Copies to and from the host may use additional streams.
    pub max_streams: u32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// Attributes of a device's stream, filled by weir.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_stream_attr {
    /// sizeof(weir_device_stream_attr), set by weir.
    pub struct_size: usize,
    /// A name for texts, NUL-terminated UTF-8; lives during the call.
    pub name: *const c_char,
    /// -100 to 100, more is sooner. A hint.
    pub priority: i32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// A kernel that only the device of an engine knows, by its name.
///
/// Chapter: Kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_named_kernel_desc {
    /// sizeof(weir_named_kernel_desc) of the caller's header.
    pub struct_size: usize,
    /// The device's name for the operation, UTF-8; copied. Not one of weir's own operations.
    pub operation: *const c_char,
    /// Attributes in the device's own format; NULL = none.
    pub attributes: *const c_void,
    /// Bytes of the attributes.
    pub attributes_bytes: usize,
    /// Number of inputs, at most WEIR_MAX_ARGS.
    pub num_inputs: usize,
    /// The descriptor that each input must match (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied.
    pub inputs: *const weir_tensor_desc,
    /// Number of outputs, at most WEIR_MAX_ARGS.
    pub num_outputs: usize,
    /// The outputs' descriptors; NULL if `infer` computes them. Copied.
    pub outputs: *const weir_tensor_desc,
    /// Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1.
    pub infer: weir_infer_fn,
    /// First argument of `infer`.
    pub user: *mut c_void,
    /// Optional: releases `user` when the kernel dies. Not called if the creation fails.
    pub destroy: weir_destroy_fn,
}

/// A callback of weir's for when an event is reached: the plug-in calls it once.
pub type weir_device_callback_fn = Option<unsafe extern "C" fn(arg: *mut c_void)>;

/// The devices of one kind, brought by a plug-in. docs/devices.md is the full contract.
///
/// Copied by weir_device_register. `ctx` is the context registered with it; `device`, `stream`, `event` and `kernel`
/// come from the create functions, and are not NULL. Every function that can fail returns WEIR_OK or a code of
/// weir_status_value; if it fails, its outputs are unchanged. All return without waiting for the device, except those
/// that say "may block". All may be called from any thread, and at the same time for different devices. A device with
/// WEIR_DEVICE_CONCURRENT allows concurrent calls too, but only one thread at a time issues to a stream, and no object
/// is destroyed while it is in use. The functions must not throw, longjmp or unwind, and must not call weir, except for
/// the callback that they are given. Functions that destroy, deallocate, close or release are never called inside such
/// a callback, so they may join the thread that runs it. No function is called in a forked child.
///
/// A stream does its work in order. Work fails late: the events behind it, on this stream and on streams that wait for
/// such an event, give the failure when they are queried, and later work is not done until stream_clear_error.
/// WEIR_DEVICE_LOST from any function means that the device has failed for good: from then on weir only destroys,
/// deallocates and closes, even objects that queued work uses.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_vtable {
    /// sizeof(weir_device_vtable) of the plug-in's header. Members beyond it read as NULL.
    pub struct_size: usize,
    /// OR of weir_device_vtable_flags.
    pub flags: u64,
    /// Required. The current number of devices.
    pub device_count: Option<unsafe extern "C" fn(ctx: *mut c_void, out_count: *mut u32) -> i32>,
    /// Required, may block. Opens device `index`. weir opens each device once at a time.
    pub device_open: Option<unsafe extern "C" fn(ctx: *mut c_void, index: u32, out_device: *mut *mut c_void) -> i32>,
    /// Required, may block. Closes the device. All of its objects have been destroyed.
    pub device_close: Option<unsafe extern "C" fn(ctx: *mut c_void, device: *mut c_void)>,
    /// Required. Facts about the device, which stay the same until it is closed.
    pub device_info:
        Option<unsafe extern "C" fn(ctx: *mut c_void, device: *mut c_void, info: *mut weir_device_info) -> i32>,
    /// Optional. The reason for the last failure on this thread: writes at most `capacity` bytes of NUL-terminated
    /// UTF-8. Also of a late failure that an event has just given.
    pub error_text: Option<unsafe extern "C" fn(ctx: *mut c_void, buffer: *mut c_char, capacity: usize)>,
    /// Required, may block. Allocates `bytes` (1 or more) of memory with any contents, aligned as device_info says.
    /// `name` names the purpose, and lives during the call. WEIR_RESOURCE_EXHAUSTED if there is no room.
    pub allocate: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            bytes: u64,
            name: *const c_char,
            out_address: *mut weir_device_address,
        ) -> i32,
    >,
    /// Required, may block. Frees memory: an address and the bytes that it was allocated with. No issued work uses it.
    pub deallocate: Option<unsafe extern "C" fn(device: *mut c_void, address: weir_device_address, bytes: u64)>,
    /// Required. Creates a stream.
    pub stream_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            attr: *const weir_device_stream_attr,
            out_stream: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required, may block. Destroys a stream. All of its work is done, unless the device is lost.
    pub stream_destroy: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void)>,
    /// Required. Makes the stream work again after a failure.
    pub stream_clear_error: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void) -> i32>,
    /// Required. Creates an event; as long as it is not recorded it counts as reached. `flags`: WEIR_EVENT_TIMING if
    /// the device has WEIR_DEVICE_TIMING, or 0.
    pub event_create: Option<unsafe extern "C" fn(device: *mut c_void, flags: u64, out_event: *mut *mut c_void) -> i32>,
    /// Required. Destroys an event that is not in flight.
    pub event_destroy: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void)>,
    /// Required. Records the event behind all work issued to the stream so far. The event is not in flight.
    pub event_record: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void, stream: *mut c_void) -> i32>,
    /// Required. Makes later work of the stream wait, on the device, for the event as it was recorded last.
    pub event_wait: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void, stream: *mut c_void) -> i32>,
    /// Required. Stores 1 if the event was reached, else 0. A code that is not WEIR_OK is the failure of the work
    /// before the event, which counts as reached.
    pub event_query:
        Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void, out_reached: *mut i32) -> i32>,
    /// Optional, may block: like event_query, but waits until the event is reached, for `timeout_ns` at most. Several
    /// threads may wait for one event. Without it weir polls event_query.
    pub event_synchronize: Option<
        unsafe extern "C" fn(device: *mut c_void, event: *mut c_void, timeout_ns: u64, out_reached: *mut i32) -> i32,
    >,
    /// Required with WEIR_DEVICE_TIMING. Nanoseconds from `start` to `end`, both with timing, recorded and reached.
    pub event_elapsed: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            start: *mut c_void,
            end: *mut c_void,
            out_nanoseconds: *mut i64,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_CALLBACK. Calls `callback(arg)` once, when the event as it was recorded last is
    /// reached, and also if it fails or the device is lost; on any thread, and at once if the event is already reached.
    /// The callback may call functions of this vtable, so no lock that they need may be held. If this function fails,
    /// the callback is never called.
    pub event_callback: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            event: *mut c_void,
            callback: weir_device_callback_fn,
            arg: *mut c_void,
        ) -> i32,
    >,
    /// Required without work_submit. Copies bytes from host memory, which stays unchanged until the copy is done.
    pub copy_to_device: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: weir_device_address,
            from: *const c_void,
            bytes: u64,
        ) -> i32,
    >,
    /// Required without work_submit. Copies bytes to host memory. They are there when a later event of the stream is
    /// reached.
    pub copy_to_host: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: *mut c_void,
            from: weir_device_address,
            bytes: u64,
        ) -> i32,
    >,
    /// Required without work_submit. Copies bytes within the device's memory; the two ranges do not overlap.
    pub copy_on_device: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: weir_device_address,
            from: weir_device_address,
            bytes: u64,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_PEER_COPY, unless there is work_submit. Copies bytes between the memories of two
    /// devices of this vtable; `device` is one of them.
    pub copy_peer: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to_device: *mut c_void,
            to: weir_device_address,
            from_device: *mut c_void,
            from: weir_device_address,
            bytes: u64,
        ) -> i32,
    >,
    /// Required without work_submit. Sets bytes of the device's memory.
    pub fill: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: weir_device_address,
            value: u8,
            bytes: u64,
        ) -> i32,
    >,
    /// Required. Creates the device's kernel of an operation, for any shapes that the operation takes.
    /// WEIR_UNIMPLEMENTED if it has none.
    pub kernel_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            recipe: *const weir_device_recipe,
            out_kernel: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required. Destroys a kernel. No launch of it is in flight.
    pub kernel_destroy: Option<unsafe extern "C" fn(device: *mut c_void, kernel: *mut c_void)>,
    /// Required without work_submit. Launches a kernel.
    pub launch: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            kernel: *mut c_void,
            launch: *const weir_device_launch,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_NATIVE_HANDLE. The handle of an object in the plug-in's native interface: `what` is
    /// one of weir_device_object_value, `object` the object (the device itself for WEIR_DEVICE_OBJECT_DEVICE).
    pub native_handle:
        Option<unsafe extern "C" fn(device: *mut c_void, what: u32, object: *mut c_void, out_handle: *mut u64) -> i32>,
    /// Optional, may block. Called once, after the vtable was unregistered or replaced and its last device was closed.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
    /// Required with WEIR_DEVICE_PINNED_MEMORY, may block. Allocates `bytes` (1 or more) of host memory, aligned to 64
    /// bytes, with any contents. Copies from and to it are asynchronous: copy_to_device and copy_to_host return without
    /// waiting for them. `name` names the purpose, and lives during the call. WEIR_RESOURCE_EXHAUSTED if there is no
    /// room.
    pub host_allocate: Option<
        unsafe extern "C" fn(device: *mut c_void, bytes: u64, name: *const c_char, out_data: *mut *mut c_void) -> i32,
    >,
    /// Required with WEIR_DEVICE_PINNED_MEMORY, may block. Frees it, with the bytes that it was allocated with. No copy
    /// uses it.
    pub host_deallocate: Option<unsafe extern "C" fn(device: *mut c_void, data: *mut c_void, bytes: u64)>,
    /// Required with WEIR_DEVICE_REGISTER_MEMORY, may block. Pins host memory, at any address and of any size, so that
    /// it is like that of host_allocate; no byte of it is registered yet.
    pub host_register: Option<unsafe extern "C" fn(device: *mut c_void, data: *mut c_void, bytes: u64) -> i32>,
    /// Required with WEIR_DEVICE_REGISTER_MEMORY, may block. Unpins a whole registered range. No copy uses it.
    pub host_unregister: Option<unsafe extern "C" fn(device: *mut c_void, data: *mut c_void, bytes: u64)>,
    /// Required with WEIR_DEVICE_IDLE_QUERY. Stores 1 if all work issued to the stream is done and nothing of it has
    /// failed, else 0. A code that is not WEIR_OK counts as 0: an event reports the failure.
    pub stream_query: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, out_idle: *mut i32) -> i32>,
    /// Required with WEIR_DEVICE_RECORDINGS, may block. Makes an executable of a recording. WEIR_UNIMPLEMENTED, or any
    /// other code but WEIR_DEVICE_LOST, refuses this recording: weir then issues its steps one after the other, and the
    /// program's report gives the text.
    pub record: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            recording: *const weir_device_recording,
            out_executable: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_RECORDINGS. Changes the addresses of a step of the recording's own list, from the next
    /// replay on; replays in flight keep the old ones. The kernel, the shapes and the bytes stay the same, and the step
    /// is no branch and no loop. If this fails, weir makes the recording anew.
    pub executable_update: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            executable: *mut c_void,
            step: usize,
            work: *const weir_device_work,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_RECORDINGS, may block. Destroys an executable. No replay of it is in flight.
    pub executable_destroy: Option<unsafe extern "C" fn(device: *mut c_void, executable: *mut c_void)>,
    /// Required with WEIR_DEVICE_RECORDINGS. Runs all steps, behind earlier work of the stream and before later work.
    /// Replays of one executable come one after the other, on one stream at a time. A step that fails ends the replay,
    /// and the failure is reported late, as everywhere.
    pub replay: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, executable: *mut c_void) -> i32>,
    /// Required with WEIR_DEVICE_PREPARED_LAUNCHES. Prepares a launch for launch_prepared, which may repeat it any
    /// number of times, on one stream. `before` is NULL or a prepared launch that is no longer needed: success consumes
    /// it, and it may be reused as the result. WEIR_UNIMPLEMENTED if this launch cannot be prepared: weir then launches
    /// it each time.
    pub prepare: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            kernel: *mut c_void,
            launch: *const weir_device_launch,
            before: *mut c_void,
            out_prepared: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_PREPARED_LAUNCHES. Launches it. The device takes what it needs of it now: it may be
    /// destroyed or consumed while the launch is in flight.
    pub launch_prepared:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, prepared: *mut c_void) -> i32>,
    /// Required with WEIR_DEVICE_PREPARED_LAUNCHES, may block. Destroys a prepared launch, before its kernel is
    /// destroyed.
    pub prepared_destroy: Option<unsafe extern "C" fn(device: *mut c_void, prepared: *mut c_void)>,
    /// Required with WEIR_DEVICE_SCRATCH. The scratch memory that a launch needs, in bytes: it depends on types and
    /// shapes, not on addresses. weir provides it with the launch (`scratch` of weir_device_launch), so that launches
    /// allocate nothing.
    pub kernel_scratch: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            kernel: *mut c_void,
            launch: *const weir_device_launch,
            out_bytes: *mut u64,
        ) -> i32,
    >,
    /// Optional, may block. Like device_open, with the settings of weir_engine_attr_set_device_settings, in the
    /// plug-in's own format; `bytes` is 0 if none were set. Without it a device has no settings.
    pub device_open_with: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            index: u32,
            settings: *const c_void,
            bytes: usize,
            out_device: *mut *mut c_void,
        ) -> i32,
    >,
    /// Optional. The settings of a device, with defaults filled in: stores their size in bytes, and copies them if
    /// `capacity` is at least that.
    pub device_settings: Option<
        unsafe extern "C" fn(device: *mut c_void, settings: *mut c_void, capacity: usize, out_bytes: *mut usize) -> i32,
    >,
    /// Optional. Fails if another engine with these settings may not share the device. Without it the settings must
    /// have the same bytes.
    pub device_fits: Option<unsafe extern "C" fn(device: *mut c_void, settings: *const c_void, bytes: usize) -> i32>,
    /// Optional, replaces launch, copy_to_device, copy_to_host, copy_on_device, copy_peer and fill, which may then be
    /// NULL. Submits a launch, a copy or a fill, with its name.
    pub work_submit:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, work: *const weir_device_work) -> i32>,
    /// Optional. Later work issued to the device, on any stream, may be deferred until batch_end. Batches of several
    /// threads overlap. No thread waits for the device inside one.
    pub batch_begin: Option<unsafe extern "C" fn(device: *mut c_void)>,
    /// Required with batch_begin. Ends a batch.
    pub batch_end: Option<unsafe extern "C" fn(device: *mut c_void)>,
    /// Optional, may block. The plug-in keeps at most this many bytes of the memory that deallocate was given.
    pub memory_trim: Option<unsafe extern "C" fn(device: *mut c_void, keep_bytes: u64)>,
    /// Optional. weir is about to read (`writes` 0) or write (1) bytes of pinned memory: a device that checks looks
    /// whether a copy in flight may use them. `name` names the user, and lives during the call.
    pub host_used: Option<
        unsafe extern "C" fn(device: *mut c_void, data: *const c_void, bytes: u64, writes: i32, name: *const c_char),
    >,
    /// Optional. If this thread's latest failure was WEIR_ABORTED, because of a failure on another stream: the code of
    /// that failure.
    pub error_origin: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i32>,
    /// Optional, and called only with WEIR_DEVICE_REGIONS. Says which nodes of a region the device would compile:
    /// stores a number for each node, 0 to leave it alone. weir makes new regions from the nodes with one number each,
    /// and none from those with 0. Without this function all nodes go together. WEIR_UNIMPLEMENTED leaves all of them
    /// alone, as 0 for each does; any other code fails the program's compilation.
    pub region_claim: Option<
        unsafe extern "C" fn(device: *mut c_void, region: *const weir_device_region, out_groups: *mut u32) -> i32,
    >,
    /// Required with WEIR_DEVICE_REGIONS, may block. Compiles a region to one kernel. It is launched, prepared,
    /// recorded, queried for its scratch memory and destroyed like those of kernel_create, with the region's inputs and
    /// outputs. WEIR_UNIMPLEMENTED declines: the region's nodes are launched one by one, and the program's report gives
    /// the text. Any other code fails the program's compilation.
    pub region_compile: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            region: *const weir_device_region,
            out_kernel: *mut *mut c_void,
        ) -> i32,
    >,
}

/// weir's functions for a plug-in library, which therefore need not be linked against weir. Lives as long as the
/// process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_plugin_api {
    /// sizeof(weir_device_plugin_api), set by weir.
    pub struct_size: usize,
    /// weir_version().
    pub version: u32,
    /// weir_abi_version().
    pub abi_version: u32,
    /// weir_device_register.
    pub device_register: Option<
        unsafe extern "C" fn(
            name: *const c_char,
            priority: i32,
            vtable: *const weir_device_vtable,
            ctx: *mut c_void,
        ) -> i32,
    >,
    /// weir_device_replace.
    pub device_replace: Option<
        unsafe extern "C" fn(
            name: *const c_char,
            priority: i32,
            vtable: *const weir_device_vtable,
            ctx: *mut c_void,
        ) -> i32,
    >,
    /// weir_device_unregister.
    pub device_unregister: Option<unsafe extern "C" fn(name: *const c_char, priority: i32) -> i32>,
    /// weir_last_error_message: the reason for a failure of one of the above.
    pub last_error_message: Option<unsafe extern "C" fn() -> *const c_char>,
    /// Sets the text for a failure of weir_device_plugin_init, and may be called only there; the text is copied.
    pub fail: Option<unsafe extern "C" fn(text: *const c_char)>,
}

/// The symbol "weir_device_plugin_init" of a library for weir_device_load. Registers the library's devices. Returns
/// WEIR_OK, or a code: then all of its registrations are undone.
pub type weir_device_plugin_init_fn = Option<unsafe extern "C" fn(api: *const weir_device_plugin_api) -> i32>;
