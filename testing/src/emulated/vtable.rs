//! The device as a plug-in: its C functions.
//!
//! A device is the address of its `SharedDevice`, which it keeps until device_close. Streams, events and executables
//! are boxes; a kernel is an Arc that operations share. A failure's text is kept for the thread that was given the
//! failure.

use super::check;
use super::checker::CHECKER;
use super::core::EventCallback;
use super::event::EmulatedEvent;
use super::kernel::{EmulatedKernel, text};
use super::pins::Pins;
use super::recorded::Recorded;
use super::region::{CompiledRegion, Form};
use super::reserve::AddressReserve;
use super::settings::Emulation;
use super::shared::SharedDevice;
use super::space::{self, DeviceSpace};
use super::state::DeviceState;
use super::stream::EmulatedStream;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::*;
use crate::base::text::{fixed, head};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::sync::{EventCount, Mutex, OnceLock};
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

const DEVICES: u32 = if cfg!(unix) { 8 } else { 0 };

const CAPABILITIES: u64 = C::WEIR_DEVICE_OWN_MEMORY as u64
    | C::WEIR_DEVICE_CONCURRENT as u64
    | C::WEIR_DEVICE_TIMING as u64
    | C::WEIR_DEVICE_PEER_COPY as u64
    | C::WEIR_DEVICE_CALLBACK as u64
    | C::WEIR_DEVICE_PINNED_MEMORY as u64
    | C::WEIR_DEVICE_REGISTER_MEMORY as u64
    | C::WEIR_DEVICE_RECORDINGS as u64
    | C::WEIR_DEVICE_CONTROL_FLOW as u64
    | C::WEIR_DEVICE_SCRATCH as u64
    | C::WEIR_DEVICE_HOST_KERNELS as u64
    | C::WEIR_DEVICE_IN_PLACE as u64
    | C::WEIR_DEVICE_WHOLE_TEXTS as u64
    | C::WEIR_DEVICE_ENDS_IN_CALLBACKS as u64
    | C::WEIR_DEVICE_DIRECT_MEMORY as u64
    | C::WEIR_DEVICE_REGIONS as u64
    | C::WEIR_DEVICE_NATIVE_HANDLE as u64;

pub(super) const VTABLE: weir_device_vtable = weir_device_vtable {
    struct_size: size_of::<weir_device_vtable>(),
    flags: weir_device_vtable_flags::WEIR_DEVICE_UNLISTED as u64,
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
    event_synchronize: Some(event_synchronize),
    event_elapsed: Some(event_elapsed),
    event_callback: Some(event_callback),
    copy_to_device: None,
    copy_to_host: None,
    copy_on_device: None,
    copy_peer: None,
    fill: None,
    kernel_create: Some(kernel_create),
    kernel_destroy: Some(kernel_destroy),
    launch: None,
    native_handle: Some(native_handle),
    release: None,
    host_allocate: Some(host_allocate),
    host_deallocate: Some(host_deallocate),
    host_register: Some(host_register),
    host_unregister: Some(host_deallocate),
    stream_query: None,
    record: Some(record),
    executable_update: Some(executable_update),
    executable_destroy: Some(executable_destroy),
    replay: Some(replay),
    prepare: None,
    launch_prepared: None,
    prepared_destroy: None,
    kernel_scratch: Some(kernel_scratch),
    device_open_with: Some(device_open_with),
    device_settings: Some(device_settings),
    device_fits: Some(device_fits),
    work_submit: Some(work_submit),
    batch_begin: Some(batch_begin),
    batch_end: Some(batch_end),
    memory_trim: None,
    host_used: Some(host_used),
    error_origin: Some(error_origin),
    region_claim: Some(region_claim),
    region_compile: Some(region_compile),
};

thread_local! {
    static FAILURE: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Runs a function that may fail or panic, and gives its status; the failure is kept for `error_text`.
fn answer(f: impl FnOnce() -> Result<()>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let error = Error::from_panic(&*payload);
        // Dropping it might panic again.
        std::mem::forget(payload);
        Err(error)
    });
    let Err(error) = result else { return 0 };
    let status = error.code().status();
    let _ = FAILURE.try_with(|failure| failure.replace(Some(error)));
    status
}

/// Runs a function that cannot fail; a panic ends here.
fn quietly(f: impl FnOnce()) {
    answer(|| {
        f();
        Ok(())
    });
}

unsafe extern "C" fn error_text(_ctx: *mut c_void, buffer: *mut c_char, capacity: usize) {
    let write = |failure: &Error| {
        let message = head(failure.message(), capacity - 1);
        // SAFETY: `capacity` writable bytes of weir's, of which there is at least one.
        unsafe {
            ptr::copy_nonoverlapping(message.as_ptr(), buffer.cast(), message.len());
            buffer.add(message.len()).write(0);
        }
    };
    let _ = FAILURE.try_with(|failure| failure.borrow().as_ref().filter(|_| capacity > 0).map(write));
}

unsafe extern "C" fn error_origin(_ctx: *mut c_void) -> i32 {
    let origin = |failure: &Error| failure.clone().as_origin().code().status();
    FAILURE.try_with(|failure| failure.borrow().as_ref().map_or(0, origin)).unwrap_or(0)
}

// Handles as references. SAFETY, of all of them: a create function gave the handle, and the object lives, as weir
// promises.

unsafe fn device<'a>(device: *mut c_void) -> &'a SharedDevice {
    // SAFETY: as said above.
    unsafe { &*device.cast::<SharedDevice>() }
}

unsafe fn device_arc(device: *mut c_void) -> Arc<SharedDevice> {
    let device = device.cast_const().cast::<SharedDevice>();
    // SAFETY: as said above; it came from an Arc.
    unsafe {
        Arc::increment_strong_count(device);
        Arc::from_raw(device)
    }
}

unsafe fn stream<'a>(stream: *mut c_void) -> &'a EmulatedStream {
    // SAFETY: as said above.
    unsafe { &*stream.cast::<EmulatedStream>() }
}

unsafe fn event<'a>(event: *mut c_void) -> &'a EmulatedEvent {
    // SAFETY: as said above.
    unsafe { &*event.cast::<EmulatedEvent>() }
}

/// Gives an object to weir.
unsafe fn give<T>(out: *mut *mut c_void, object: T) {
    // SAFETY: a place of weir's.
    unsafe { out.write(Box::into_raw(Box::new(object)).cast()) };
}

/// Takes an object back.
unsafe fn take<T>(object: *mut c_void) {
    // SAFETY: what `give` has given, once.
    quietly(|| drop(unsafe { Box::from_raw(object.cast::<T>()) }));
}

unsafe extern "C" fn device_count(_ctx: *mut c_void, out_count: *mut u32) -> i32 {
    // SAFETY: a place of weir's.
    unsafe { out_count.write(DEVICES) };
    0
}

unsafe extern "C" fn device_open(ctx: *mut c_void, index: u32, out_device: *mut *mut c_void) -> i32 {
    // SAFETY: as demanded of the caller.
    unsafe { device_open_with(ctx, index, ptr::null(), 0, out_device) }
}

unsafe extern "C" fn native_handle(device: *mut c_void, what: u32, _object: *mut c_void, out_handle: *mut u64) -> i32 {
    answer(|| {
        if what != weir_device_object_value::WEIR_DEVICE_OBJECT_DEVICE as u32 {
            return Err(Error::new(
                Code::Unimplemented,
                "streams and events of emulated devices have no native handles",
            ));
        }
        // SAFETY: a place of weir's.
        unsafe { out_handle.write(device.addr() as u64) };
        Ok(())
    })
}

unsafe fn settings_of<'a>(settings: *const c_void, bytes: usize) -> &'a [u8] {
    // SAFETY: so many bytes of weir's, which live during the call.
    if bytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(settings.cast(), bytes) } }
}

unsafe extern "C" fn device_open_with(
    _ctx: *mut c_void,
    index: u32,
    settings: *const c_void,
    bytes: usize,
    out_device: *mut *mut c_void,
) -> i32 {
    answer(|| {
        // SAFETY: as demanded of the caller.
        let shared = open(index, Emulation::of_settings(unsafe { settings_of(settings, bytes) })?)?;
        // SAFETY: a place of weir's.
        unsafe { out_device.write(Arc::into_raw(shared).cast_mut().cast()) };
        Ok(())
    })
}

fn open(index: u32, settings: Emulation) -> Result<Arc<SharedDevice>> {
    static IDS: AtomicU64 = AtomicU64::new(1);
    settings.check().map_err(|error| error.within("emulation"))?;
    let settings = settings.settled();
    let label = format!("emulated:{index}");
    let what = format!("the memory of {label}");
    let limit = usize::try_from(settings.memory_bytes).map_err(|_| Error::exhausted(&what, usize::MAX))?;
    let reserve = AddressReserve::new(limit, &what)?;
    let shared = Arc::new(SharedDevice {
        index,
        settings,
        // ORDERING: Relaxed; the ids only have to be unique.
        id: IDS.fetch_add(1, Relaxed),
        space: Mutex::new(DeviceSpace::new(reserve.start(), reserve.size(), limit)),
        reserve: Arc::new(reserve),
        pins: Mutex::new(Pins::default()),
        state: Mutex::new(DeviceState::new(&label, settings.seed, settings.checks())?),
        label,
        called: EventCount::new(),
        holding: AtomicUsize::new(0),
        is_put_off: AtomicBool::new(false),
        met: EventCount::new(),
        lost: OnceLock::new(),
        regions_asked: AtomicU64::new(0),
        regions: AtomicU64::new(0),
    });
    check::enter(&shared);
    if settings.checks() {
        CHECKER.enter();
    }
    Ok(shared)
}

unsafe extern "C" fn device_close(_ctx: *mut c_void, device: *mut c_void) {
    // SAFETY: what device_open has given, once.
    let shared = unsafe { Arc::from_raw(device.cast_const().cast::<SharedDevice>()) };
    quietly(|| shared.close());
}

unsafe extern "C" fn device_settings(
    handle: *mut c_void,
    settings: *mut c_void,
    capacity: usize,
    out_bytes: *mut usize,
) -> i32 {
    // SAFETY: a handle, as said above, a place, and room for so many bytes.
    unsafe {
        let set = device(handle).settings.settings();
        out_bytes.write(set.len());
        if capacity >= set.len() {
            ptr::copy_nonoverlapping(set.as_ptr(), settings.cast(), set.len());
        }
    }
    0
}

unsafe extern "C" fn device_fits(handle: *mut c_void, settings: *const c_void, bytes: usize) -> i32 {
    answer(|| {
        // SAFETY: a handle, as said above, and so many bytes.
        let (shared, asked) = unsafe { (device(handle), Emulation::of_settings(settings_of(settings, bytes))?) };
        if asked.settled() == shared.settings {
            return Ok(());
        }
        Err(Error::precondition(format!("{} is in use and emulated in another way than attr asks for", shared.label)))
    })
}

unsafe extern "C" fn device_info(_ctx: *mut c_void, handle: *mut c_void, info: *mut weir_device_info) -> i32 {
    // SAFETY: a handle, as said above, and a struct of weir's.
    unsafe {
        (*info).capabilities = CAPABILITIES;
        (*info).memory_bytes = device(handle).settings.memory_bytes;
        (*info).alignment = space::ALIGNMENT as u64;
        (*info).name = fixed("emulated device");
    }
    0
}

unsafe extern "C" fn allocate(
    handle: *mut c_void,
    bytes: u64,
    name: *const c_char,
    out_address: *mut weir_device_address,
) -> i32 {
    answer(|| {
        // SAFETY: a handle, as said above, and a text.
        let (shared, what) = unsafe { (device(handle), text(name)) };
        shared.intact()?;
        let now = shared.state.lock().counts.operations;
        let failing = shared.settings.fail_allocation;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let address = shared.space.lock().allocate(bytes, &what, failing, now);
        let address = address.map_err(|error| error.within(&shared.label))?;
        // SAFETY: a place of weir's.
        unsafe { out_address.write(address as u64) };
        Ok(())
    })
}

unsafe extern "C" fn deallocate(handle: *mut c_void, address: weir_device_address, bytes: u64) {
    quietly(|| {
        // SAFETY: a handle, as said above.
        let shared = unsafe { device(handle) };
        let mut state = shared.state.lock();
        if shared.watches_host(&state) {
            check::free(shared, &mut state, address as usize, bytes as usize);
        }
        let now = state.counts.operations;
        shared.space.lock().deallocate(address as usize, now);
    });
}

unsafe extern "C" fn host_allocate(
    handle: *mut c_void,
    bytes: u64,
    name: *const c_char,
    out_data: *mut *mut c_void,
) -> i32 {
    answer(|| {
        // SAFETY: a handle, as said above, and a text.
        let (shared, what) = unsafe { (device(handle), text(name)) };
        let address = shared.allocate_host(usize::try_from(bytes).unwrap_or(usize::MAX), &what)?;
        // SAFETY: a place of weir's.
        unsafe { out_data.write(ptr::with_exposed_provenance_mut(address)) };
        Ok(())
    })
}

unsafe extern "C" fn host_deallocate(handle: *mut c_void, data: *mut c_void, bytes: u64) {
    // SAFETY: a handle, as said above.
    quietly(|| unsafe { device(handle) }.unpin(data.addr(), bytes as usize));
}

unsafe extern "C" fn host_register(handle: *mut c_void, data: *mut c_void, bytes: u64) -> i32 {
    // SAFETY: a handle, as said above.
    answer(|| unsafe { device(handle) }.register(data.expose_provenance(), bytes as usize))
}

unsafe extern "C" fn host_used(handle: *mut c_void, data: *const c_void, bytes: u64, writes: i32, name: *const c_char) {
    // SAFETY: a handle, as said above, and a text.
    quietly(|| unsafe { device(handle).host_used(data.addr(), bytes as usize, writes != 0, &text(name)) });
}

unsafe extern "C" fn stream_create(
    handle: *mut c_void,
    attr: *const weir_device_stream_attr,
    out_stream: *mut *mut c_void,
) -> i32 {
    // SAFETY: a handle, as said above, attributes of weir's, and a place.
    answer(|| unsafe {
        give(out_stream, EmulatedStream::open(&device_arc(handle), &text((*attr).name), (*attr).priority)?);
        Ok(())
    })
}

unsafe extern "C" fn stream_destroy(_device: *mut c_void, stream: *mut c_void) {
    // SAFETY: what stream_create has given.
    unsafe { take::<EmulatedStream>(stream) };
}

unsafe extern "C" fn stream_clear_error(_device: *mut c_void, handle: *mut c_void) -> i32 {
    // SAFETY: a handle, as said above.
    answer(|| unsafe { stream(handle) }.clear_error())
}

unsafe extern "C" fn event_create(handle: *mut c_void, flags: u64, out_event: *mut *mut c_void) -> i32 {
    let timing = flags & weir_event_flags::WEIR_EVENT_TIMING as u64 != 0;
    // SAFETY: a handle, as said above, and a place.
    answer(|| unsafe {
        give(out_event, EmulatedEvent::new(&device_arc(handle), timing)?);
        Ok(())
    })
}

unsafe extern "C" fn event_destroy(_device: *mut c_void, event: *mut c_void) {
    // SAFETY: what event_create has given.
    unsafe { take::<EmulatedEvent>(event) };
}

unsafe extern "C" fn event_record(_device: *mut c_void, marker: *mut c_void, handle: *mut c_void) -> i32 {
    // SAFETY: handles, as said above.
    answer(|| unsafe { stream(handle).record(event(marker)) })
}

unsafe extern "C" fn event_wait(_device: *mut c_void, marker: *mut c_void, handle: *mut c_void) -> i32 {
    // SAFETY: handles, as said above.
    answer(|| unsafe { stream(handle).wait(event(marker)) })
}

unsafe extern "C" fn event_query(_device: *mut c_void, marker: *mut c_void, out_reached: *mut i32) -> i32 {
    // SAFETY: a handle, as said above, and a place.
    answer(|| unsafe {
        out_reached.write(i32::from(event(marker).is_reached()?));
        Ok(())
    })
}

unsafe extern "C" fn event_synchronize(
    _device: *mut c_void,
    marker: *mut c_void,
    timeout_ns: u64,
    out_reached: *mut i32,
) -> i32 {
    let deadline = if timeout_ns == u64::MAX { Deadline::NEVER } else { Deadline::after(timeout_ns) };
    // SAFETY: a handle, as said above, and a place.
    answer(|| unsafe {
        out_reached.write(i32::from(event(marker).synchronize(deadline)?));
        Ok(())
    })
}

unsafe extern "C" fn event_elapsed(
    _device: *mut c_void,
    start: *mut c_void,
    end: *mut c_void,
    out_nanoseconds: *mut i64,
) -> i32 {
    // SAFETY: handles, as said above, and a place.
    answer(|| unsafe {
        out_nanoseconds.write(event(end).elapsed_ns(event(start))?);
        Ok(())
    })
}

unsafe extern "C" fn event_callback(
    _device: *mut c_void,
    marker: *mut c_void,
    callback: weir_device_callback_fn,
    arg: *mut c_void,
) -> i32 {
    answer(|| {
        let callback = callback.ok_or_else(|| Error::null("callback"))?;
        // SAFETY: a handle, as said above; weir wants one call, on any thread.
        unsafe { event(marker).call_back(EventCallback::new(callback, arg)) };
        Ok(())
    })
}

unsafe extern "C" fn kernel_create(
    handle: *mut c_void,
    recipe: *const weir_device_recipe,
    out_kernel: *mut *mut c_void,
) -> i32 {
    // SAFETY: a handle, as said above, a recipe of weir's and a place.
    answer(|| unsafe {
        device(handle).intact()?;
        give_form(out_kernel, Form::Function(EmulatedKernel::new(&*recipe)?));
        Ok(())
    })
}

/// Gives a kernel to weir; operations share it.
unsafe fn give_form(out_kernel: *mut *mut c_void, form: Form) {
    // SAFETY: a place of weir's.
    unsafe { out_kernel.write(Arc::into_raw(Arc::new(form)).cast_mut().cast()) };
}

unsafe extern "C" fn kernel_scratch(
    _device: *mut c_void,
    kernel: *mut c_void,
    _launch: *const weir_device_launch,
    out_bytes: *mut u64,
) -> i32 {
    // SAFETY: a kernel that was given to weir, and a place.
    unsafe { out_bytes.write((*kernel.cast::<Form>()).scratch_bytes() as u64) };
    0
}

unsafe extern "C" fn region_claim(handle: *mut c_void, region: *const weir_device_region, out_groups: *mut u32) -> i32 {
    // SAFETY: a handle, as said above, a region of weir's, and a place for each of its nodes.
    answer(|| unsafe {
        let shared = device(handle);
        shared.intact()?;
        (0..(*region).num_nodes).for_each(|node| out_groups.add(node).write(shared.settings.claim(node)));
        Ok(())
    })
}

unsafe extern "C" fn region_compile(
    handle: *mut c_void,
    region: *const weir_device_region,
    out_kernel: *mut *mut c_void,
) -> i32 {
    // SAFETY: a handle, as said above, a region of weir's and a place.
    answer(|| unsafe {
        let shared = device(handle);
        shared.intact()?;
        // ORDERING: Relaxed, here and below; counts.
        let number = shared.regions_asked.fetch_add(1, Relaxed) + 1;
        let compiled = CompiledRegion::new(&shared.reserve, &shared.settings, number, &*region);
        let compiled = compiled.map_err(|error| error.within(&shared.label))?;
        shared.regions.fetch_add(1, Relaxed);
        give_form(out_kernel, Form::Region(compiled));
        Ok(())
    })
}

unsafe extern "C" fn kernel_destroy(_device: *mut c_void, kernel: *mut c_void) {
    // SAFETY: what `give_form` has given, once.
    quietly(|| drop(unsafe { Arc::from_raw(kernel.cast_const().cast::<Form>()) }));
}

unsafe extern "C" fn work_submit(handle: *mut c_void, queue: *mut c_void, work: *const weir_device_work) -> i32 {
    // SAFETY: handles, as said above, and work of weir's.
    answer(|| unsafe { stream(queue).submit(device(handle).given(work)?) })
}

unsafe extern "C" fn batch_begin(handle: *mut c_void) {
    // SAFETY: a handle, as said above.
    unsafe { device(handle) }.hold();
}

unsafe extern "C" fn batch_end(handle: *mut c_void) {
    // SAFETY: a handle, as said above.
    unsafe { device(handle) }.let_go();
}

unsafe extern "C" fn record(
    handle: *mut c_void,
    recording: *const weir_device_recording,
    out_executable: *mut *mut c_void,
) -> i32 {
    // SAFETY: a handle, as said above, a recording of weir's and a place.
    answer(|| unsafe {
        let shared = device_arc(handle);
        shared.intact()?;
        let name = text((*recording).name);
        let recorded = Recorded::new(&shared, &(*recording).list);
        let recorded = recorded.map_err(|error| error.within(format_args!("{}: {name}", shared.label)))?;
        give(out_executable, recorded);
        Ok(())
    })
}

unsafe extern "C" fn executable_update(
    handle: *mut c_void,
    executable: *mut c_void,
    step: usize,
    work: *const weir_device_work,
) -> i32 {
    // SAFETY: handles, as said above, and work of weir's.
    answer(|| unsafe { (*executable.cast::<Recorded>()).update(step, &device(handle).given(work)?) })
}

unsafe extern "C" fn executable_destroy(_device: *mut c_void, executable: *mut c_void) {
    // SAFETY: what record has given.
    unsafe { take::<Recorded>(executable) };
}

unsafe extern "C" fn replay(_device: *mut c_void, queue: *mut c_void, executable: *mut c_void) -> i32 {
    // SAFETY: handles, as said above.
    answer(|| unsafe { stream(queue).replay(&*executable.cast::<Recorded>()) })
}
