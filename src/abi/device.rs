//! Devices that a plug-in brings, as a vtable of C functions.
use super::kernel::weir_infer_fn;
use super::recipe::weir_device_recipe;
use super::recording::{weir_device_address, weir_device_launch, weir_device_recording, weir_device_work};
use super::region::weir_device_region;
use super::tensor::weir_tensor_desc;
use super::threadpool::weir_destroy_fn;
use std::ffi::{c_char, c_void};

/// What a device of a plug-in can do beyond what every device must.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_capability {
    /// Its memory is another space: the host cannot read or write there, whatever the number is.
    WEIR_DEVICE_OWN_MEMORY = 1,
    /// Its functions may be called from several threads at once. Without it weir calls one after the other, under a
    /// lock of its own for each device, and none that blocks: event_synchronize and event_callback are left alone, and
    /// event_query is called instead.
    WEIR_DEVICE_CONCURRENT = 2,
    /// Events with WEIR_EVENT_TIMING keep the time; event_elapsed is there.
    WEIR_DEVICE_TIMING = 4,
    /// Bytes can come from and go to another device of the same kind; copy_peer is there.
    WEIR_DEVICE_PEER_COPY = 8,
    /// event_callback is there.
    WEIR_DEVICE_CALLBACK = 16,
    /// native_handle is there.
    WEIR_DEVICE_NATIVE_HANDLE = 32,
    /// It gives memory of the host's that its copies go straight from and to: host_allocate and host_deallocate are
    /// there.
    WEIR_DEVICE_PINNED_MEMORY = 64,
    /// It can pin memory of the host's that others allocated: host_register and host_unregister are there.
    WEIR_DEVICE_REGISTER_MEMORY = 128,
    /// It tells at once whether all work of a stream is done; stream_query is there.
    WEIR_DEVICE_IDLE_QUERY = 256,
    /// It takes work that is put together once and submitted many times, each time as one: record, executable_update,
    /// executable_destroy and replay are there.
    WEIR_DEVICE_RECORDINGS = 512,
    /// Recordings may have branches and loops, which it decides by numbers in its own memory. Only with
    /// WEIR_DEVICE_RECORDINGS.
    WEIR_DEVICE_CONTROL_FLOW = 1024,
    /// It keeps calls of kernels in a form that it launches for less: prepare, launch_prepared and prepared_destroy are
    /// there.
    WEIR_DEVICE_PREPARED_LAUNCHES = 2048,
    /// Its kernels want memory besides their tensors; kernel_scratch is there.
    WEIR_DEVICE_SCRATCH = 4096,
    /// It calls functions of the host's, on a thread of its own, with tensors in memory that the host can touch then:
    /// recipes have a host form (`host_call`), and those of weir_kernel_create_host are offered to it, too.
    WEIR_DEVICE_HOST_KERNELS = 8192,
    /// An output of a kernel may have the memory of an input that is like it, where the same kernel of a cpu engine
    /// allows that.
    WEIR_DEVICE_IN_PLACE = 16384,
    /// What error_text gives names the engine and what has failed: weir puts nothing in front of it.
    WEIR_DEVICE_WHOLE_TEXTS = 32768,
    /// Functions that destroy, deallocate or close may be called inside a callback of event_callback.
    WEIR_DEVICE_ENDS_IN_CALLBACKS = 65536,
    /// Each tensor's memory is to come from allocate and to go back to deallocate: the memory mode of its engines is
    /// WEIR_MEMORY_MODE_DIRECT unless they ask for another.
    WEIR_DEVICE_DIRECT_MEMORY = 131072,
    /// It makes one kernel of several nodes of a program; region_compile is there.
    WEIR_DEVICE_REGIONS = 262144,
}

/// Bits of weir_device_vtable.flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_vtable_flags {
    /// weir_engine_create_all leaves its devices out: they are no devices of the machine.
    WEIR_DEVICE_UNLISTED = 1,
}

/// What native_handle of a weir_device_vtable is asked for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_object {
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
    /// OR of weir_device_capability.
    pub capabilities: u64,
    /// Its memory in bytes; 0 = not known.
    pub memory_bytes: u64,
    /// Every address that allocate gives is a multiple of it: a power of two, from 16 to 1048576.
    pub alignment: u64,
    /// A name for people, NUL-terminated UTF-8.
    pub name: [c_char; 64],
    /// Most streams that it is good for: a program's work is spread over no more, whatever its engine's attributes say.
    /// 0 = as weir finds best. Copies to and from the host may have streams besides.
    pub max_streams: u32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// What a stream of a device is made from, filled by weir.
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
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_named_kernel_desc {
    /// sizeof(weir_named_kernel_desc) of the caller's header.
    pub struct_size: usize,
    /// What the device calls it, UTF-8; copied. Not one of weir's own operations.
    pub operation: *const c_char,
    /// What the device is told besides, in a form of its own; NULL = nothing.
    pub attributes: *const c_void,
    /// Bytes of the attributes.
    pub attributes_bytes: usize,
    /// Number of inputs, at most WEIR_MAX_ARGS.
    pub num_inputs: usize,
    /// What each input must look like (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied.
    pub inputs: *const weir_tensor_desc,
    /// Number of outputs, at most WEIR_MAX_ARGS.
    pub num_outputs: usize,
    /// What the outputs look like; NULL if `infer` says so. Copied.
    pub outputs: *const weir_tensor_desc,
    /// Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1.
    pub infer: weir_infer_fn,
    /// First argument of `infer`.
    pub user: *mut c_void,
    /// Optional: releases `user` when the kernel dies. Not called if the creation fails.
    pub destroy: weir_destroy_fn,
}

/// What follows when an event was reached: weir's, for the plug-in to call once.
pub type weir_device_callback_fn = Option<unsafe extern "C" fn(arg: *mut c_void)>;

/// The devices of one kind, as a plug-in brings them. docs/devices.md is the contract in full.
///
/// Copied by weir_device_register. `ctx` is what was registered with it; `device`, `stream`, `event` and `kernel` are
/// what the create functions gave, not NULL. Every function that can fail returns WEIR_OK or a code of
/// weir_status_code, and then has left its outputs alone. All return without waiting for the device, but those that say
/// "may block". All may be called from any thread, several at a time for several devices; for one device likewise if it
/// says WEIR_DEVICE_CONCURRENT, except that one thread at a time issues to one stream, and that nothing is in use when
/// it is destroyed. They must not throw, longjmp or unwind, and may not call weir, but for the callback that they are
/// given. Functions that destroy, deallocate, close or release are never called inside such a callback, so they may
/// join the thread that runs it. No function is called in a forked child.
///
/// A stream does what it was given in order. What fails there fails late: the events behind it, on this stream and on
/// those that wait for such an event, give the failure when they are asked, and what lies behind is not done until
/// stream_clear_error. WEIR_DEVICE_LOST from any function says that the device has failed for good: from then on weir
/// only destroys, deallocates and closes, also what queued work names.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_vtable {
    /// sizeof(weir_device_vtable) of the plug-in's header. Members beyond it read as NULL.
    pub struct_size: usize,
    /// OR of weir_device_vtable_flags.
    pub flags: u64,
    /// Required. How many devices there are now.
    pub device_count: Option<unsafe extern "C" fn(ctx: *mut c_void, out_count: *mut u32) -> i32>,
    /// Required, may block. Makes device `index` ready for use. weir opens each device once at a time.
    pub device_open: Option<unsafe extern "C" fn(ctx: *mut c_void, index: u32, out_device: *mut *mut c_void) -> i32>,
    /// Required, may block. Ends it. All that was made of it has been destroyed.
    pub device_close: Option<unsafe extern "C" fn(ctx: *mut c_void, device: *mut c_void)>,
    /// Required. Facts about it, which stay the same until it is closed.
    pub device_info:
        Option<unsafe extern "C" fn(ctx: *mut c_void, device: *mut c_void, info: *mut weir_device_info) -> i32>,
    /// Optional. Says why the last function that failed on this thread did: writes at most `capacity` bytes of
    /// NUL-terminated UTF-8. Also of a late failure that an event has just given.
    pub error_text: Option<unsafe extern "C" fn(ctx: *mut c_void, buffer: *mut c_char, capacity: usize)>,
    /// Required, may block. `bytes` (1 or more) of memory with any contents, aligned as device_info says. `name` says
    /// what for, and lives during the call. WEIR_RESOURCE_EXHAUSTED if there is no room.
    pub allocate: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            bytes: u64,
            name: *const c_char,
            out_address: *mut weir_device_address,
        ) -> i32,
    >,
    /// Required, may block. Takes memory back: an address and the bytes that it was allocated with. Nothing that was
    /// issued uses it.
    pub deallocate: Option<unsafe extern "C" fn(device: *mut c_void, address: weir_device_address, bytes: u64)>,
    /// Required. A stream.
    pub stream_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            attr: *const weir_device_stream_attr,
            out_stream: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required, may block. Ends a stream. What was issued to it is done, unless the device is lost.
    pub stream_destroy: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void)>,
    /// Required. Work is done again after a failure.
    pub stream_clear_error: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void) -> i32>,
    /// Required. An event, not recorded: that counts as reached. `flags`: WEIR_EVENT_TIMING if the device has said
    /// WEIR_DEVICE_TIMING, or 0.
    pub event_create: Option<unsafe extern "C" fn(device: *mut c_void, flags: u64, out_event: *mut *mut c_void) -> i32>,
    /// Required. Ends an event that is not under way.
    pub event_destroy: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void)>,
    /// Required. Puts the event behind all that was issued to the stream so far. The event is not under way.
    pub event_record: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void, stream: *mut c_void) -> i32>,
    /// Required. What is issued to the stream from now on waits, on the device, for the event as it was recorded last.
    pub event_wait: Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void, stream: *mut c_void) -> i32>,
    /// Required. Stores 1 if the event was reached, else 0. A code that is not WEIR_OK is the failure of the work
    /// before it, and counts as reached.
    pub event_query:
        Option<unsafe extern "C" fn(device: *mut c_void, event: *mut c_void, out_reached: *mut i32) -> i32>,
    /// Optional, may block: as event_query, but waits until the event is reached, for `timeout_ns` at most. Several
    /// threads may wait for one event. Without it weir asks event_query again and again.
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
    /// Required with WEIR_DEVICE_CALLBACK. Has `callback(arg)` called once, when the event was reached as it was
    /// recorded last, and also if it fails or the device is lost; on any thread, and at once if it is reached. The
    /// callback may call functions of this vtable: no lock that they need may be held. If this fails, it is never
    /// called.
    pub event_callback: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            event: *mut c_void,
            callback: weir_device_callback_fn,
            arg: *mut c_void,
        ) -> i32,
    >,
    /// Required without work_submit, as the other copies, fill and launch. Copies bytes from the host's memory, which
    /// stays as it is until the stream has done this; so below.
    pub copy_to_device: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: weir_device_address,
            from: *const c_void,
            bytes: u64,
        ) -> i32,
    >,
    /// Required, as said. Copies bytes to the host's memory. They are there when an event behind this was reached.
    pub copy_to_host: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: *mut c_void,
            from: weir_device_address,
            bytes: u64,
        ) -> i32,
    >,
    /// Required, as said. Copies bytes within the device's memory, where the two do not overlap.
    pub copy_on_device: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: weir_device_address,
            from: weir_device_address,
            bytes: u64,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_PEER_COPY, as said. Copies bytes between the memories of two devices of this vtable, one of
    /// which is `device`.
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
    /// Required, as said. Sets bytes of the device's memory.
    pub fill: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            to: weir_device_address,
            value: u8,
            bytes: u64,
        ) -> i32,
    >,
    /// Required. The device's form of an operation, for any shapes that the operation takes. WEIR_UNIMPLEMENTED if it
    /// has none.
    pub kernel_create: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            recipe: *const weir_device_recipe,
            out_kernel: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required. Ends a kernel. No call of it is under way.
    pub kernel_destroy: Option<unsafe extern "C" fn(device: *mut c_void, kernel: *mut c_void)>,
    /// Required, as said. Calls a kernel.
    pub launch: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            kernel: *mut c_void,
            launch: *const weir_device_launch,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_NATIVE_HANDLE. What the plug-in's own interface calls an object: `what` is one of
    /// weir_device_object, `object` what it names (the device itself for WEIR_DEVICE_OBJECT_DEVICE).
    pub native_handle:
        Option<unsafe extern "C" fn(device: *mut c_void, what: u32, object: *mut c_void, out_handle: *mut u64) -> i32>,
    /// Optional, may block. Called once, when the vtable was unregistered or replaced and its last device is closed.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
    /// Required with WEIR_DEVICE_PINNED_MEMORY, may block. `bytes` (1 or more) of memory that the host can read and
    /// write, aligned to 64 bytes, with any contents. Copies from and to it go on by themselves, and copy_to_device and
    /// copy_to_host return without waiting for them. `name` says what for, and lives during the call.
    /// WEIR_RESOURCE_EXHAUSTED if there is no room.
    pub host_allocate: Option<
        unsafe extern "C" fn(device: *mut c_void, bytes: u64, name: *const c_char, out_data: *mut *mut c_void) -> i32,
    >,
    /// Required with WEIR_DEVICE_PINNED_MEMORY, may block. Takes it back, with the bytes that it was allocated with. No
    /// copy uses it.
    pub host_deallocate: Option<unsafe extern "C" fn(device: *mut c_void, data: *mut c_void, bytes: u64)>,
    /// Required with WEIR_DEVICE_REGISTER_MEMORY, may block. Makes memory of the host's like that of host_allocate, at
    /// any address and of any size; no byte of it is registered.
    pub host_register: Option<unsafe extern "C" fn(device: *mut c_void, data: *mut c_void, bytes: u64) -> i32>,
    /// Required with WEIR_DEVICE_REGISTER_MEMORY, may block. Ends that, for what was registered as a whole. No copy
    /// uses it.
    pub host_unregister: Option<unsafe extern "C" fn(device: *mut c_void, data: *mut c_void, bytes: u64)>,
    /// Required with WEIR_DEVICE_IDLE_QUERY. Stores 1 if all that was issued to the stream is done and nothing of it
    /// has failed, else 0. A code that is not WEIR_OK counts as 0: what has failed an event tells.
    pub stream_query: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, out_idle: *mut i32) -> i32>,
    /// Required with WEIR_DEVICE_RECORDINGS, may block. Makes an executable of a recording. WEIR_UNIMPLEMENTED, or any
    /// other code but WEIR_DEVICE_LOST, refuses this recording: weir then issues its steps one after the other, and
    /// the program's report gives the text.
    pub record: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            recording: *const weir_device_recording,
            out_executable: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_RECORDINGS. Has a step of the recording's own list use other addresses from the next
    /// replay on, and leaves replays under way as they are. The kernel, the shapes and the bytes are those of before,
    /// and the step is no branch and no loop. If this fails, weir has the recording made anew.
    pub executable_update: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            executable: *mut c_void,
            step: usize,
            work: *const weir_device_work,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_RECORDINGS, may block. Ends an executable. No replay of it is under way.
    pub executable_destroy: Option<unsafe extern "C" fn(device: *mut c_void, executable: *mut c_void)>,
    /// Required with WEIR_DEVICE_RECORDINGS. Does all steps, behind what was issued to the stream before and before
    /// what follows. Replays of one executable come one after the other, on one stream at a time. A step that fails
    /// ends the replay: what fails there fails late, as everywhere.
    pub replay: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, executable: *mut c_void) -> i32>,
    /// Required with WEIR_DEVICE_PREPARED_LAUNCHES. Makes of a call what launch_prepared takes any number of times, on
    /// one stream. `before` is NULL or what was prepared for another call, which is launched no more: if this succeeds,
    /// it is used up, and may be what comes out. WEIR_UNIMPLEMENTED if there is no such form for this call: weir
    /// launches it each time.
    pub prepare: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            kernel: *mut c_void,
            launch: *const weir_device_launch,
            before: *mut c_void,
            out_prepared: *mut *mut c_void,
        ) -> i32,
    >,
    /// Required with WEIR_DEVICE_PREPARED_LAUNCHES. Launches it. The device takes what it needs of it now: it may
    /// be destroyed or used up while the device is at it.
    pub launch_prepared:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, prepared: *mut c_void) -> i32>,
    /// Required with WEIR_DEVICE_PREPARED_LAUNCHES, may block. Ends it, before its kernel ends.
    pub prepared_destroy: Option<unsafe extern "C" fn(device: *mut c_void, prepared: *mut c_void)>,
    /// Required with WEIR_DEVICE_SCRATCH. How many bytes besides its tensors a kernel wants for a call with these: the
    /// types and shapes count, not the addresses. weir hands them over with the call (`scratch` of weir_device_launch),
    /// so that launches allocate nothing.
    pub kernel_scratch: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            kernel: *mut c_void,
            launch: *const weir_device_launch,
            out_bytes: *mut u64,
        ) -> i32,
    >,
    /// Optional, may block. As device_open, with what weir_engine_attr_set_device_settings was given, in a form of the
    /// plug-in's own; `bytes` is 0 where nothing was set. Without it there is nothing to set.
    pub device_open_with: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            index: u32,
            settings: *const c_void,
            bytes: usize,
            out_device: *mut *mut c_void,
        ) -> i32,
    >,
    /// Optional. The settings of a device, with what was left open as it was settled: stores how many bytes they have,
    /// and copies them if `capacity` is as much.
    pub device_settings: Option<
        unsafe extern "C" fn(device: *mut c_void, settings: *mut c_void, capacity: usize, out_bytes: *mut usize) -> i32,
    >,
    /// Optional. Fails if another engine with these settings may not share the device. Without it settings must have
    /// the same bytes.
    pub device_fits: Option<unsafe extern "C" fn(device: *mut c_void, settings: *const c_void, bytes: usize) -> i32>,
    /// Optional, in the place of launch, copy_to_device, copy_to_host, copy_on_device, copy_peer and fill, which need
    /// not be there then. Does a launch, a copy or a fill, and has its name.
    pub work_submit:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, work: *const weir_device_work) -> i32>,
    /// Optional. What is issued to the device from now on, on any stream, may be put off until batch_end. Batches of
    /// several threads overlap. Nobody waits for the device inside of one.
    pub batch_begin: Option<unsafe extern "C" fn(device: *mut c_void)>,
    /// Required with batch_begin. Ends one.
    pub batch_end: Option<unsafe extern "C" fn(device: *mut c_void)>,
    /// Optional, may block. Of the memory that deallocate has been given at most so many bytes stay with the plug-in.
    pub memory_trim: Option<unsafe extern "C" fn(device: *mut c_void, keep_bytes: u64)>,
    /// Optional. weir is about to read (`writes` 0) or to write (1) bytes of memory of host_allocate or host_register:
    /// one that checks looks whether a copy under way may use them. `name` says who, and lives during the call.
    pub host_used: Option<
        unsafe extern "C" fn(device: *mut c_void, data: *const c_void, bytes: u64, writes: i32, name: *const c_char),
    >,
    /// Optional. Of a failure that this thread has just been given with WEIR_ABORTED: the code of the one that it
    /// follows from, where that was on another stream.
    pub error_origin: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i32>,
    /// Optional, and called only with WEIR_DEVICE_REGIONS. Which nodes of a region the device would compile: stores a
    /// number for each node, 0 if it would leave it alone. Nodes with one number would go together: weir makes regions
    /// of their own of them, and of the others none. Without it all nodes go together. WEIR_UNIMPLEMENTED leaves all of
    /// them alone, as 0 for each does; any other code is a failure of the compilation.
    pub region_claim: Option<
        unsafe extern "C" fn(device: *mut c_void, region: *const weir_device_region, out_groups: *mut u32) -> i32,
    >,
    /// Required with WEIR_DEVICE_REGIONS, may block. Makes one kernel of a region. It is launched, prepared, recorded,
    /// asked for its scratch memory and destroyed as those of kernel_create, with the region's inputs and outputs.
    /// WEIR_UNIMPLEMENTED declines: the region's nodes are launched one by one, and the program's report gives the
    /// text. Any other code is a failure of the compilation.
    pub region_compile: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            region: *const weir_device_region,
            out_kernel: *mut *mut c_void,
        ) -> i32,
    >,
}

/// What weir_device_load hands to the plug-in, so that it need not be linked against weir. Lives as long as the
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
    /// weir_last_error_message: why one of the above has failed.
    pub last_error_message: Option<unsafe extern "C" fn() -> *const c_char>,
    /// Says in words why weir_device_plugin_init is about to fail; the text is copied. Only there.
    pub fail: Option<unsafe extern "C" fn(text: *const c_char)>,
}

/// The symbol "weir_device_plugin_init" of a library for weir_device_load. Registers what the library brings. WEIR_OK,
/// or a code: then what it has registered is unregistered again.
pub type weir_device_plugin_init_fn = Option<unsafe extern "C" fn(api: *const weir_device_plugin_api) -> i32>;
