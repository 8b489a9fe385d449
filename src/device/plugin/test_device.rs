//! A plug-in for tests: it uses host memory, works when work is issued, and reports an event reached after a few
//! queries. It counts live objects, and can be told to fail or to answer nonsense at the k-th call of a function.

use crate::abi::*;
use crate::sync::Mutex;
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

/// The fault injected at the k-th call from now.
#[derive(Clone, Copy, Debug)]
pub struct FaultPlan {
    pub function: &'static str,
    pub call: u64,
    pub status: i32,
}

#[derive(Debug, Default)]
pub struct TestState {
    pub capabilities: AtomicU64,
    /// How many queries of an event answer "not reached".
    pub patience: AtomicI64,
    /// Live devices, streams, events, kernels and blocks of memory; releases.
    pub alive: AtomicI64,
    pub released: AtomicI64,
    pub plan: Mutex<Option<FaultPlan>>,
    /// How often the planned fault has occurred.
    pub hits: AtomicI64,
    /// Callbacks that were requested.
    pub callbacks: Mutex<Vec<(usize, usize)>>,
    pub calls: Mutex<Vec<&'static str>>,
}

/// One of its devices.
struct FaultyDevice(&'static TestState);

/// An event.
struct TestEvent {
    left: AtomicI64,
}

impl TestState {
    pub fn new(capabilities: u64) -> &'static TestState {
        let state = TestState::default();
        state.capabilities.store(capabilities, SeqCst);
        Box::leak(Box::new(state))
    }

    /// The status for this call; 0 if the work is to be done.
    fn enter(&self, function: &'static str) -> i32 {
        self.calls.lock().push(function);
        let mut plan = self.plan.lock();
        match &mut *plan {
            Some(found) if found.function == function && found.call == 1 => {
                let status = found.status;
                *plan = None;
                self.hits.fetch_add(1, SeqCst);
                status
            }
            Some(found) if found.function == function => {
                found.call -= 1;
                0
            }
            _ => 0,
        }
    }

    pub fn ctx(&'static self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

fn state(ctx: *mut c_void) -> &'static TestState {
    // SAFETY: every context is a leaked State.
    unsafe { &*ctx.cast::<TestState>() }
}

fn of(device: *mut c_void) -> &'static TestState {
    // SAFETY: every device is a boxed Device.
    unsafe { (*device.cast::<FaultyDevice>()).0 }
}

/// Makes an object, unless this call is to fail.
fn make<T>(state: &TestState, function: &'static str, value: T, out: *mut *mut c_void) -> i32 {
    match state.enter(function) {
        0 => {
            state.alive.fetch_add(1, SeqCst);
            // SAFETY: weir's place for the answer.
            unsafe { out.write(Box::into_raw(Box::new(value)).cast()) };
            0
        }
        // OK, without an object.
        NOTHING => 0,
        status => status,
    }
}

/// In a plan: the answer is OK but makes no sense.
pub const NOTHING: i32 = -4711;

fn unmake<T>(state: &TestState, object: *mut c_void) {
    state.alive.fetch_sub(1, SeqCst);
    // SAFETY: made by `make`.
    drop(unsafe { Box::from_raw(object.cast::<T>()) });
}

const ALIGNMENT: usize = 64;

unsafe extern "C" fn device_count(ctx: *mut c_void, out: *mut u32) -> i32 {
    let status = state(ctx).enter("device_count");
    // SAFETY: weir's place for the answer.
    unsafe { out.write(2) };
    status
}
unsafe extern "C" fn device_open(ctx: *mut c_void, _index: u32, out: *mut *mut c_void) -> i32 {
    make(state(ctx), "device_open", FaultyDevice(state(ctx)), out)
}
unsafe extern "C" fn device_close(ctx: *mut c_void, device: *mut c_void) {
    unmake::<FaultyDevice>(state(ctx), device);
}
unsafe extern "C" fn device_info(ctx: *mut c_void, _device: *mut c_void, info: *mut weir_device_info) -> i32 {
    let status = state(ctx).enter("device_info");
    // SAFETY: weir's struct.
    let info = unsafe { &mut *info };
    info.capabilities = state(ctx).capabilities.load(SeqCst);
    info.alignment = if status == NOTHING { 48 } else { ALIGNMENT as u64 };
    info.memory_bytes = 1 << 30;
    info.name = crate::base::text::fixed("test");
    if status == NOTHING { 0 } else { status }
}
unsafe extern "C" fn error_text(_ctx: *mut c_void, buffer: *mut c_char, capacity: usize) {
    let text = b"as planned\0";
    assert!(capacity >= text.len());
    // SAFETY: `capacity` bytes are writable.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, text.len()) };
}
fn layout(bytes: u64) -> Layout {
    Layout::from_size_align(bytes as usize + ALIGNMENT, ALIGNMENT).unwrap()
}
unsafe extern "C" fn allocate(device: *mut c_void, bytes: u64, name: *const c_char, out: *mut u64) -> i32 {
    // SAFETY: weir's text.
    assert!(!unsafe { CStr::from_ptr(name) }.is_empty());
    let status = of(device).enter("allocate");
    if status != 0 && status != NOTHING {
        return status;
    }
    of(device).alive.fetch_add(1, SeqCst);
    // SAFETY: not of size 0, and weir's place for the answer. A misaligned address is the same block.
    unsafe { out.write(alloc(layout(bytes)) as u64 + u64::from(status == NOTHING) * 8) };
    0
}
unsafe extern "C" fn deallocate(device: *mut c_void, address: u64, bytes: u64) {
    of(device).alive.fetch_sub(1, SeqCst);
    // SAFETY: allocated above.
    unsafe { dealloc((address & !(ALIGNMENT as u64 - 1)) as *mut u8, layout(bytes)) };
}
unsafe extern "C" fn stream_create(
    device: *mut c_void,
    _attr: *const weir_device_stream_attr,
    out: *mut *mut c_void,
) -> i32 {
    make(of(device), "stream_create", 0u8, out)
}
unsafe extern "C" fn stream_destroy(device: *mut c_void, stream: *mut c_void) {
    unmake::<u8>(of(device), stream);
}
unsafe extern "C" fn stream_clear_error(device: *mut c_void, _stream: *mut c_void) -> i32 {
    of(device).enter("stream_clear_error")
}
unsafe extern "C" fn event_create(device: *mut c_void, _flags: u64, out: *mut *mut c_void) -> i32 {
    make(of(device), "event_create", TestEvent { left: AtomicI64::new(0) }, out)
}
unsafe extern "C" fn event_destroy(device: *mut c_void, event: *mut c_void) {
    unmake::<TestEvent>(of(device), event);
}
fn event(event: *mut c_void) -> &'static TestEvent {
    // SAFETY: made by `make`, and alive during the call.
    unsafe { &*event.cast::<TestEvent>() }
}
unsafe extern "C" fn event_record(device: *mut c_void, recorded: *mut c_void, _stream: *mut c_void) -> i32 {
    event(recorded).left.store(of(device).patience.load(SeqCst), SeqCst);
    of(device).enter("event_record")
}
unsafe extern "C" fn event_wait(device: *mut c_void, _event: *mut c_void, _stream: *mut c_void) -> i32 {
    of(device).enter("event_wait")
}
unsafe extern "C" fn event_query(device: *mut c_void, asked: *mut c_void, out: *mut i32) -> i32 {
    let status = of(device).enter("event_query");
    let reached = event(asked).left.fetch_sub(1, SeqCst) <= 0;
    // SAFETY: weir's place for the answer.
    unsafe { out.write(if status == NOTHING { 7 } else { i32::from(reached) }) };
    if status == NOTHING { 0 } else { status }
}
unsafe extern "C" fn event_callback(
    device: *mut c_void,
    _event: *mut c_void,
    callback: weir_device_callback_fn,
    arg: *mut c_void,
) -> i32 {
    let status = of(device).enter("event_callback");
    if status == 0 {
        let callback = callback.map_or(0, |f| f as usize);
        of(device).callbacks.lock().push((callback, arg as usize));
    }
    status
}
unsafe extern "C" fn copy_to_device(
    device: *mut c_void,
    _stream: *mut c_void,
    to: u64,
    from: *const c_void,
    n: u64,
) -> i32 {
    // SAFETY: memory of this device's, and of the caller's.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, n as usize) };
    of(device).enter("copy_to_device")
}
unsafe extern "C" fn copy_to_host(
    device: *mut c_void,
    _stream: *mut c_void,
    to: *mut c_void,
    from: u64,
    n: u64,
) -> i32 {
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), n as usize) };
    of(device).enter("copy_to_host")
}
unsafe extern "C" fn copy_on_device(device: *mut c_void, _stream: *mut c_void, to: u64, from: u64, n: u64) -> i32 {
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, n as usize) };
    of(device).enter("copy_on_device")
}
unsafe extern "C" fn copy_peer(
    device: *mut c_void,
    _stream: *mut c_void,
    to_device: *mut c_void,
    to: u64,
    from_device: *mut c_void,
    from: u64,
    n: u64,
) -> i32 {
    assert!([to_device, from_device].contains(&device) && to_device != from_device);
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, n as usize) };
    of(device).enter("copy_peer")
}
unsafe extern "C" fn fill(device: *mut c_void, _stream: *mut c_void, to: u64, value: u8, n: u64) -> i32 {
    // SAFETY: as above.
    unsafe { std::ptr::write_bytes(to as *mut u8, value, n as usize) };
    of(device).enter("fill")
}
unsafe extern "C" fn kernel_create(
    device: *mut c_void,
    recipe: *const weir_device_recipe,
    out: *mut *mut c_void,
) -> i32 {
    // SAFETY: weir's struct.
    let recipe = unsafe { &*recipe };
    // SAFETY: weir's text.
    if unsafe { CStr::from_ptr(recipe.operation) } != c"negate" {
        return weir_status_value::WEIR_UNIMPLEMENTED as i32;
    }
    assert_eq!((recipe.attributes_bytes, recipe.num_inputs, recipe.num_outputs), (3, 1, 1));
    make(of(device), "kernel_create", 0u16, out)
}
unsafe extern "C" fn kernel_destroy(device: *mut c_void, kernel: *mut c_void) {
    unmake::<u16>(of(device), kernel);
}
unsafe extern "C" fn launch(
    device: *mut c_void,
    _stream: *mut c_void,
    _kernel: *mut c_void,
    launch: *const weir_device_launch,
) -> i32 {
    // SAFETY: weir's struct with its arrays; memory of this device's.
    unsafe {
        let launch = &*launch;
        let (input, output) = (&*launch.inputs, &*launch.outputs);
        assert_eq!((launch.num_inputs, launch.num_outputs, input.bytes), (1, 1, output.bytes));
        for i in 0..input.bytes / 4 {
            output.data.cast::<f32>().add(i).write(-input.data.cast::<f32>().add(i).read());
        }
    }
    of(device).enter("launch")
}
unsafe extern "C" fn native_handle(device: *mut c_void, what: u32, _object: *mut c_void, out: *mut u64) -> i32 {
    // SAFETY: weir's place for the answer.
    unsafe { out.write(u64::from(what) + 40) };
    of(device).enter("native_handle")
}
unsafe extern "C" fn release(ctx: *mut c_void) {
    state(ctx).released.fetch_add(1, SeqCst);
}

pub fn vtable() -> weir_device_vtable {
    weir_device_vtable {
        struct_size: size_of::<weir_device_vtable>(),
        flags: 0,
        device_count: Some(device_count),
        device_open: Some(device_open),
        device_close: Some(device_close),
        device_info: Some(device_info),
        error_text: Some(error_text),
        allocate: Some(allocate),
        deallocate: Some(deallocate),
        stream_create: Some(stream_create),
        stream_destroy: Some(stream_destroy),
        stream_clear_error: Some(stream_clear_error),
        event_create: Some(event_create),
        event_destroy: Some(event_destroy),
        event_record: Some(event_record),
        event_wait: Some(event_wait),
        event_query: Some(event_query),
        event_synchronize: None,
        event_elapsed: None,
        event_callback: Some(event_callback),
        copy_to_device: Some(copy_to_device),
        copy_to_host: Some(copy_to_host),
        copy_on_device: Some(copy_on_device),
        copy_peer: Some(copy_peer),
        fill: Some(fill),
        kernel_create: Some(kernel_create),
        kernel_destroy: Some(kernel_destroy),
        launch: Some(launch),
        native_handle: Some(native_handle),
        release: Some(release),
        host_allocate: None,
        host_deallocate: None,
        host_register: None,
        host_unregister: None,
        stream_query: None,
        record: None,
        executable_update: None,
        executable_destroy: None,
        replay: None,
        prepare: None,
        launch_prepared: None,
        prepared_destroy: None,
        kernel_scratch: None,
        device_open_with: None,
        device_settings: None,
        device_fits: None,
        work_submit: None,
        batch_begin: None,
        batch_end: None,
        memory_trim: None,
        host_used: None,
        error_origin: None,
        region_claim: None,
        region_compile: None,
    }
}
