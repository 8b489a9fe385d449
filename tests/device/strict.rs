//! The emulated device behind functions that look at what they are given, and that refuse records on request.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex};
use weir_core::abi::weir_device_vtable;
use weir_core::base::Ref;
use weir_core::device::plugin::Plugin;
use weir_core::device::{DeviceKind, OWN_PRIORITY};
use weir_core::engine::{Engine, EngineAttr, MemoryMode};
use weir_testing::Emulation;

/// What a device has seen, and what it is to do.
#[derive(Default)]
pub struct Strict {
    /// After so many records, so many are refused.
    skipped: AtomicI64,
    refusals: AtomicI64,
    /// Events that were destroyed in flight, and streams with their work in them.
    early_ends: AtomicI64,
    /// Streams that were destroyed just now.
    looks: AtomicI64,
    /// Calls that met another one on their stream, and how long each call takes.
    meetings: AtomicI64,
    delay_us: AtomicI64,
    inside: Mutex<HashMap<usize, usize>>,
}

/// One for each test, which has a kind of its own.
static ALL: LazyLock<[Strict; 16]> = LazyLock::new(Default::default);

static INNER: LazyLock<weir_device_vtable> = LazyLock::new(|| {
    // SAFETY: the two types are one source, compiled twice.
    unsafe { std::mem::transmute_copy(&weir_testing::VTABLE) }
});

/// A call that issues to a stream.
fn issuing<const N: usize>(stream: *mut c_void, call: impl FnOnce() -> i32) -> i32 {
    let all = &ALL[N];
    let enter = |by: isize| {
        let mut inside = all.inside.lock().unwrap();
        let count = inside.entry(stream.addr()).or_default();
        *count = count.wrapping_add_signed(by);
        *count
    };
    if enter(1) > 1 {
        all.meetings.fetch_add(1, SeqCst);
    }
    let delay = all.delay_us.load(SeqCst);
    if delay > 0 {
        std::thread::sleep(std::time::Duration::from_micros(delay as u64));
    }
    let status = call();
    enter(-1);
    status
}

unsafe extern "C" fn event_record<const N: usize>(device: *mut c_void, event: *mut c_void, stream: *mut c_void) -> i32 {
    let takes_one = |count: &AtomicI64| count.fetch_update(SeqCst, SeqCst, |left| (left > 0).then(|| left - 1)).is_ok();
    if !takes_one(&ALL[N].skipped) && takes_one(&ALL[N].refusals) {
        return weir_core::base::Code::Unavailable.status();
    }
    // SAFETY: weir's own arguments.
    issuing::<N>(stream, || unsafe { INNER.event_record.unwrap()(device, event, stream) })
}

unsafe extern "C" fn work_submit<const N: usize>(
    device: *mut c_void,
    stream: *mut c_void,
    work: *const weir_core::abi::weir_device_work,
) -> i32 {
    // SAFETY: weir's own arguments.
    issuing::<N>(stream, || unsafe { INNER.work_submit.unwrap()(device, stream, work) })
}

/// Whether the device is not there yet; a lost one is everywhere.
unsafe fn is_in_flight(device: *mut c_void, event: *mut c_void) -> bool {
    let mut reached = 1;
    // SAFETY: the emulated device's function and event.
    unsafe { INNER.event_query.unwrap()(device, event, &raw mut reached) == 0 && reached == 0 }
}

unsafe extern "C" fn event_destroy<const N: usize>(device: *mut c_void, event: *mut c_void) {
    // SAFETY: weir's own arguments.
    unsafe {
        ALL[N].early_ends.fetch_add(is_in_flight(device, event).into(), SeqCst);
        INNER.event_destroy.unwrap()(device, event);
    }
}

unsafe extern "C" fn stream_destroy<const N: usize>(device: *mut c_void, stream: *mut c_void) {
    let mut event = std::ptr::null_mut();
    // SAFETY: weir's own arguments, and an event of the emulated device, which keeps what it needs.
    unsafe {
        let is_made = INNER.event_create.unwrap()(device, 0, &raw mut event) == 0;
        let is_recorded = is_made && INNER.event_record.unwrap()(device, event, stream) == 0;
        INNER.stream_destroy.unwrap()(device, stream);
        if is_recorded {
            // This may be the device's own thread. An idle stream reaches the event soon.
            ALL[N].looks.fetch_add(1, SeqCst);
            let [device, event] = [device, event].map(|handle| handle.expose_provenance());
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(10));
                let [device, event] = [device, event].map(std::ptr::with_exposed_provenance_mut);
                ALL[N].early_ends.fetch_add(is_in_flight(device, event).into(), SeqCst);
                ALL[N].looks.fetch_sub(1, SeqCst);
            });
        }
    }
}

impl Strict {
    pub fn refuse_after(&self, skipped: i64, records: i64) {
        self.skipped.store(skipped, SeqCst);
        self.refusals.store(records, SeqCst);
    }

    pub fn refuse(&self, records: i64) {
        self.refusals.store(records, SeqCst);
    }

    pub fn refusals_left(&self) -> i64 {
        self.refusals.load(SeqCst)
    }

    pub fn early_ends(&self) -> i64 {
        while self.looks.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
        self.early_ends.load(SeqCst)
    }

    pub fn delay(&self, microseconds: i64) {
        self.delay_us.store(microseconds, SeqCst);
    }

    pub fn meetings(&self) -> i64 {
        self.meetings.load(SeqCst)
    }
}

/// An engine on such a device, of a kind of its own.
pub fn strict<const N: usize>(emulation: Emulation) -> (&'static Strict, Ref<Engine>) {
    let kind = DeviceKind::named(&format!("strict-{N}")).unwrap();
    let functions = weir_device_vtable {
        event_record: Some(event_record::<N>),
        event_destroy: Some(event_destroy::<N>),
        stream_destroy: Some(stream_destroy::<N>),
        work_submit: Some(work_submit::<N>),
        ..*INNER
    };
    // SAFETY: they keep the contract as the emulated device does, and need no context.
    let plugin = unsafe { Plugin::new(kind, functions, std::ptr::null_mut()) }.unwrap();
    let _ = weir_core::device::register(kind, OWN_PRIORITY, Arc::new(plugin));
    let mut attr = EngineAttr::new(kind);
    attr.device_settings = Some(emulation.settings());
    attr.memory_mode = Some(MemoryMode::Direct);
    (&ALL[N], Engine::create(kind, 0, Some(&attr)).unwrap())
}
