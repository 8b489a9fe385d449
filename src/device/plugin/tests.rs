//! A vtable behind the traits.

use super::Plugin;
use super::test_device::{FaultPlan, NOTHING, TestState, vtable};
use crate::abi::weir_device_capability_flags as C;
use crate::abi::{weir_device_vtable, weir_status_value};
use crate::base::time::Deadline;
use crate::base::{Code, Desc, Error, Result, dtype};
use crate::device::{
    self, Device, DeviceKind, DeviceRegion, DeviceSettings, DeviceStreamAttr, Fill, HostAddress, Launch, Location,
    Operation, Recipe, RecordedStep, RecordedWork, Recording, RegionNode, RegionValue, Then, Transfer,
};
use crate::memory::View;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const PEERS: u64 = C::WEIR_DEVICE_PEER_COPY as u64 | C::WEIR_DEVICE_NATIVE_HANDLE as u64;
const CALLS_BACK: u64 = C::WEIR_DEVICE_CALLBACK as u64 | C::WEIR_DEVICE_CONCURRENT as u64;

fn plugin(kind: DeviceKind, functions: weir_device_vtable, state: &'static TestState) -> Result<Plugin> {
    // SAFETY: the functions of the test device, with a state of its own.
    unsafe { Plugin::new(kind, functions, state.ctx()) }
}

/// Registers a test device under a name of its own.
fn registered(name: &str, state: &'static TestState) -> DeviceKind {
    let kind = DeviceKind::named(name).unwrap();
    let plugin = plugin(kind, vtable(), state).unwrap();
    device::register(kind, 0, Arc::new(plugin.clone())).unwrap();
    plugin.adopt();
    kind
}

fn open(kind: DeviceKind, index: u32) -> Result<Arc<dyn Device>> {
    device::open(kind, index, &DeviceSettings::default())
}

/// Eight bytes of device memory.
struct DeviceBytes(Arc<dyn Device>, usize);

impl DeviceBytes {
    fn on(device: &Arc<dyn Device>, what: &str) -> Result<DeviceBytes> {
        let address = device.accelerator().map_or(Ok(0), |accelerator| accelerator.allocate(8, what))?;
        Ok(DeviceBytes(Arc::clone(device), address))
    }
}

impl Drop for DeviceBytes {
    fn drop(&mut self) {
        if let Some(accelerator) = self.0.accelerator() {
            accelerator.deallocate(self.1, 8);
        }
    }
}

fn view(address: usize) -> View {
    // SAFETY: the device's memory; the host only hands the address on.
    unsafe { View::new(address as *mut u8, 8, Desc::new(dtype::F32, &[2])) }
}

const NEGATE: Recipe<'static> = Recipe {
    name: "negate",
    operation: Operation::Named("negate", &[1, 2, 3]),
    num_inputs: 1,
    num_outputs: 1,
    host: None,
};

/// Uses everything once: two numbers go to the device, are negated, copied there, and come back.
fn exercise(kind: DeviceKind) -> Result<[f32; 2]> {
    let device = open(kind, 0)?;
    let accelerator = device.accelerator().ok_or_else(|| Error::internal("no accelerator"))?;
    let memory = |what: &str| DeviceBytes::on(&device, what).map(|m| (m.1, m));
    let ((a, _a), (b, _b), (c, _c)) = (memory("a")?, memory("b")?, memory("c")?);
    let stream = accelerator.stream(&DeviceStreamAttr { name: "s", priority: 0 })?;
    let event = accelerator.event(false)?;
    let kernel = accelerator.kernel(&NEGATE)?;
    let (from, mut to) = ([1.0f32, -2.0], [0.0f32; 2]);
    // SAFETY: both arrays are there until the end.
    let host = |address| Location::Host(unsafe { HostAddress::new(address) });
    let copy = |to, from| stream.copy(&Transfer { name: "copy", to, from, bytes: 8 });
    copy(Location::Device(a), host(from.as_ptr().expose_provenance()))?;
    stream.fill(&Fill { name: "fill", address: b, bytes: 8, value: 0xff })?;
    stream.wait(&event)?;
    let launch = Launch { name: "negate", kernel: &kernel, inputs: &[view(a)], outputs: &[view(b)] };
    stream.launch(&launch)?;
    copy(Location::Device(c), Location::Device(b))?;
    copy(host(to.as_mut_ptr().expose_provenance()), Location::Device(c))?;
    stream.record(&event)?;
    if !event.synchronize(Deadline::NEVER)? {
        return Err(Error::internal("an end before the end"));
    }
    Ok(to)
}

#[test]
fn work_goes_through_the_vtable_and_comes_back() {
    let state = TestState::new(PEERS);
    let kind = registered("plugin-works", state);
    state.patience.store(5, SeqCst);
    assert_eq!(exercise(kind).unwrap(), [-1.0, 2.0]);
    assert_eq!(state.alive.load(SeqCst), 0, "all was given back");
    assert_eq!(device::count(kind), 2);
    {
        let (device, peer) = (open(kind, 0).unwrap(), open(kind, 1).unwrap());
        let again = open(kind, 0).unwrap();
        assert!(Arc::ptr_eq(&device, &again), "engines share a device");
        assert_eq!((device.name(), device.alignment(), device.memory_bytes()), ("test", 64, 1 << 30));
        let (here, there) = (device.accelerator().unwrap(), peer.accelerator().unwrap());
        assert!(here.is_peer(there));
        assert_eq!(here.native_handle().unwrap(), 41);
        let (from, to) = (DeviceBytes::on(&device, "x").unwrap(), DeviceBytes::on(&peer, "y").unwrap());
        let stream = here.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
        assert_eq!(stream.native_handle().unwrap(), 42);
        let (to, from) = (Location::Peer(there, to.1), Location::Device(from.1));
        stream.copy(&Transfer { name: "copy", to, from, bytes: 8 }).unwrap();
    }
    assert_eq!(open(kind, 2).unwrap_err().code(), Code::OutOfRange);
    assert_eq!(state.released.load(SeqCst), 0);
    drop(device::unregister(kind, 0).unwrap());
    assert_eq!((state.alive.load(SeqCst), state.released.load(SeqCst)), (0, 1));
    assert_eq!(open(kind, 0).unwrap_err().code(), Code::Unimplemented);
}

#[test]
fn what_is_missing_is_refused_by_its_name() {
    type Take = fn(&mut weir_device_vtable);
    let cases: [(&str, Take); 5] = [
        ("vtable->device_count is NULL", |v| v.device_count = None),
        ("vtable->allocate is NULL", |v| v.allocate = None),
        ("vtable->event_query is NULL", |v| v.event_query = None),
        ("vtable->launch is NULL", |v| v.launch = None),
        ("vtable->flags has unknown bits 0x2", |v| v.flags = 3),
    ];
    for (text, take) in cases {
        let mut functions = vtable();
        take(&mut functions);
        let error = plugin(DeviceKind::EMULATED, functions, TestState::new(0)).unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::InvalidArgument, text));
    }
    for (capability, function) in [
        (C::WEIR_DEVICE_TIMING as u64, "WEIR_DEVICE_TIMING, and vtable->event_elapsed is NULL"),
        (C::WEIR_DEVICE_REGIONS as u64, "WEIR_DEVICE_REGIONS, and vtable->region_compile is NULL"),
        (1 << 40, "unknown capabilities 0x10000000000"),
    ] {
        let state = TestState::new(capability);
        let name = format!("plugin-lacks-{}", capability.trailing_zeros());
        let error = open(registered(&name, state), 0).unwrap_err();
        assert!(error.message().contains(function), "{error}");
        assert_eq!(state.alive.load(SeqCst), 0, "it was closed again");
    }
}

#[test]
fn the_highest_priority_makes_the_devices() {
    let kind = DeviceKind::named("plugin-priority").unwrap();
    let [low, high, new] = [TestState::new(0), TestState::new(0), TestState::new(0)];
    let add = |priority, state| {
        let plugin = plugin(kind, vtable(), state).unwrap();
        device::register(kind, priority, Arc::new(plugin.clone())).map(|()| plugin.adopt())
    };
    add(10, high).unwrap();
    add(-3, low).unwrap();
    let error = add(10, new).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert_eq!(new.released.load(SeqCst), 0, "what was refused stays the host's");
    drop(open(kind, 0).unwrap());
    assert!(low.calls.lock().is_empty() && !high.calls.lock().is_empty());
    let replacement = plugin(kind, vtable(), new).unwrap();
    drop(device::replace(kind, 10, Arc::new(replacement)).unwrap());
    assert_eq!(high.released.load(SeqCst), 1);
    let device = open(kind, 0).unwrap();
    drop(device::unregister(kind, 10).unwrap());
    assert_eq!(new.alive.load(SeqCst), 1, "a device in use stays");
    drop(device);
    assert_eq!(new.alive.load(SeqCst), 0);
    drop(open(kind, 0).unwrap());
    assert!(!low.calls.lock().is_empty());
    assert!(device::kinds().contains(&kind));
}

/// Fails the k-th call of each function in turn, until nothing is left to fail: the text names engine and function,
/// nothing leaks, and the device can be opened again.
#[test]
fn every_failure_is_a_status_that_names_its_place() {
    let functions = [
        "device_open",
        "device_info",
        "allocate",
        "stream_create",
        "event_create",
        "kernel_create",
        "copy_to_device",
        "fill",
        "event_wait",
        "launch",
        "copy_on_device",
        "copy_to_host",
        "event_record",
        "event_query",
    ];
    let state = TestState::new(0);
    let kind = registered("plugin-sweep", state);
    state.patience.store(3, SeqCst);
    let exhausted = weir_status_value::WEIR_RESOURCE_EXHAUSTED as i32;
    let mut failures = 0;
    for function in functions {
        for status in [exhausted, 4711, weir_status_value::WEIR_DEVICE_LOST as i32] {
            for call in 1.. {
                *state.plan.lock() = Some(FaultPlan { function, call, status });
                let hits = state.hits.load(SeqCst);
                let result = exercise(kind);
                *state.plan.lock() = None;
                assert_eq!(state.alive.load(SeqCst), 0, "{function} {call}: something stayed behind");
                if state.hits.load(SeqCst) == hits {
                    assert_eq!(result.unwrap(), [-1.0, 2.0], "{function} {call}");
                    assert!(call > 1, "{function} was never called");
                    break;
                }
                failures += 1;
                let error = result.unwrap_err();
                let expected = Code::from_status(status).unwrap_or(Code::Unknown);
                assert_eq!(error.code(), expected, "{error}");
                let place = format!("engine plugin-sweep:0: {function}");
                assert!(error.message().contains(&place), "{error}");
                let cause = if status == 4711 { "4711" } else { "as planned" };
                assert!(error.message().contains(cause), "{error}");
            }
        }
    }
    assert!(failures > 40, "{failures}");
}

#[test]
fn answers_that_make_no_sense_are_named() {
    let state = TestState::new(0);
    let kind = registered("plugin-nonsense", state);
    for (function, text) in [
        ("device_open", "returned OK and no device"),
        ("device_info", "says alignment 48, expected a power of two from 16 to 1048576"),
        ("allocate", "expected a multiple of 64"),
        ("stream_create", "returned OK and no object"),
        ("event_create", "returned OK and no object"),
        ("kernel_create", "returned OK and no object"),
        ("event_query", "stored 7, expected 0 or 1"),
    ] {
        *state.plan.lock() = Some(FaultPlan { function, call: 1, status: NOTHING });
        let error = exercise(kind).unwrap_err();
        assert_eq!(error.code(), Code::Unknown, "{error}");
        assert!(error.message().contains(&format!("engine plugin-nonsense:0: {function} ")), "{error}");
        assert!(error.message().contains(text), "{error}");
        assert_eq!(state.alive.load(SeqCst), 0, "{function}");
    }
    *state.plan.lock() = Some(FaultPlan { function: "device_count", call: 1, status: 14 });
    let error = open(kind, 0).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("kind 'plugin-nonsense': device_count: as planned"), "{error}");
}

/// A listener of an event queries it again: a different answer then must not hide the first.
#[test]
fn an_answer_that_makes_no_sense_holds_until_the_event_is_recorded_again() {
    let state = TestState::new(0);
    let kind = registered("plugin-holds", state);
    let device = open(kind, 0).unwrap();
    let accelerator = device.accelerator().unwrap();
    let stream = accelerator.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
    let event = accelerator.event(false).unwrap();
    for (status, text) in [(NOTHING, "stored 7, expected 0 or 1"), (4711, "4711"), (-3, "-3")] {
        stream.record(&event).unwrap();
        assert!(event.is_reached().is_ok());
        *state.plan.lock() = Some(FaultPlan { function: "event_query", call: 1, status });
        for look in 0..3 {
            let error = event.is_reached().unwrap_err();
            assert_eq!(error.code(), Code::Unknown, "look {look}: {error}");
            assert!(error.message().contains("engine plugin-holds:0: event_query"), "look {look}: {error}");
            assert!(error.message().contains(text), "look {look}: {error}");
        }
        *state.plan.lock() = None;
        let told = Arc::new(AtomicBool::new(false));
        let (asked, itself) = (Arc::clone(&told), Arc::clone(&event));
        accelerator.when_reached(&event, Then::once(move || asked.store(itself.is_reached().is_err(), SeqCst)));
        eventually(|| told.load(SeqCst));
    }
    stream.record(&event).unwrap();
    assert!(event.synchronize(Deadline::NEVER).unwrap());
}

/// So must a failure: the device's thread is told of it, and asks.
#[test]
fn a_failure_holds_until_the_event_is_recorded_again() {
    let state = TestState::new(0);
    let kind = registered("plugin-fails-once", state);
    let device = open(kind, 0).unwrap();
    let accelerator = device.accelerator().unwrap();
    let stream = accelerator.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
    let event = accelerator.event(false).unwrap();
    let status = weir_status_value::WEIR_DATA_LOSS as i32;
    for function in ["event_query", "event_record"] {
        stream.record(&event).unwrap();
        assert!(event.synchronize(Deadline::NEVER).unwrap());
        state.patience.store(3, SeqCst);
        stream.record(&event).unwrap();
        assert!(!event.is_reached().unwrap());
        *state.plan.lock() = Some(FaultPlan { function, call: 1, status });
        if function == "event_record" {
            assert!(event.synchronize(Deadline::NEVER).unwrap());
            assert_eq!(stream.record(&event).unwrap_err().code(), Code::DataLoss);
        }
        let told = Arc::new(AtomicBool::new(false));
        let (asked, itself) = (Arc::clone(&told), Arc::clone(&event));
        accelerator.when_reached(&event, Then::once(move || asked.store(itself.is_reached().is_err(), SeqCst)));
        eventually(|| told.load(SeqCst));
        assert_eq!(event.is_reached().unwrap_err().code(), Code::DataLoss, "{function}");
    }
    stream.record(&event).unwrap();
    assert!(event.synchronize(Deadline::NEVER).unwrap());
}

#[test]
fn a_lost_device_fails_everything_and_a_new_one_works() {
    let state = TestState::new(0);
    let kind = registered("plugin-lost", state);
    let device = open(kind, 0).unwrap();
    let accelerator = device.accelerator().unwrap();
    let stream = accelerator.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
    let event = accelerator.event(false).unwrap();
    let status = weir_status_value::WEIR_DEVICE_LOST as i32;
    *state.plan.lock() = Some(FaultPlan { function: "event_record", call: 1, status });
    assert_eq!(stream.record(&event).unwrap_err().code(), Code::DeviceLost);
    let before = state.calls.lock().len();
    assert_eq!(event.is_reached().unwrap_err().code(), Code::DeviceLost);
    assert_eq!(accelerator.allocate(8, "x").unwrap_err().code(), Code::DeviceLost);
    assert_eq!(state.calls.lock().len(), before, "nothing is asked of a lost device");
    assert!(device.is_lost());
    assert_eq!(exercise(kind).unwrap(), [-1.0, 2.0], "another one was opened");
    drop((event, stream, device));
    assert_eq!(state.alive.load(SeqCst), 0);
}

/// Issues work and asks for a continuation; the flag says when that has run.
fn follow(kind: DeviceKind) -> (Arc<AtomicBool>, Arc<dyn Device>, Arc<dyn device::DeviceEvent>) {
    let device = open(kind, 0).unwrap();
    let (event, done) = {
        let accelerator = device.accelerator().unwrap();
        let stream = accelerator.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
        let event = accelerator.event(false).unwrap();
        stream.record(&event).unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&done);
        accelerator.when_reached(&event, Then::once(move || told.store(true, SeqCst)));
        (event, done)
    };
    (done, device, event)
}

fn eventually(condition: impl Fn() -> bool) {
    let deadline = Deadline::after(10_000_000_000);
    while !condition() {
        assert!(!deadline.is_past());
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
}

#[test]
fn a_callback_is_taken_once() {
    let state = TestState::new(CALLS_BACK);
    let kind = registered("plugin-callback", state);
    let (done, device, event) = follow(kind);
    drop((device, event));
    assert!(state.alive.load(SeqCst) > 0, "what is to follow keeps the event");
    let asked = state.callbacks.lock().clone();
    let [(callback, arg)] = asked[..] else { panic!("{asked:?}") };
    assert!(!done.load(SeqCst));
    for _ in 0..2 {
        // SAFETY: weir's own argument, as the plug-in would pass it; the second call is one too many.
        unsafe {
            let callback = std::mem::transmute::<usize, unsafe extern "C" fn(*mut std::ffi::c_void)>(callback);
            callback(std::ptr::without_provenance_mut(arg));
        }
        assert!(done.load(SeqCst));
        // Nothing was destroyed inside the callback: the next call from outside does that.
        super::release_buried();
        assert_eq!(state.alive.load(SeqCst), 0);
    }
}

#[test]
fn a_plug_in_without_callbacks_is_watched() {
    // Without CONCURRENT, callbacks are not used, as they might come in the middle of a call.
    for capabilities in [0, C::WEIR_DEVICE_CALLBACK as u64, C::WEIR_DEVICE_CONCURRENT as u64] {
        let state = TestState::new(capabilities);
        state.patience.store(300, SeqCst);
        let kind = registered(&format!("plugin-watched-{capabilities}"), state);
        let (done, device, event) = follow(kind);
        drop((device, event));
        eventually(|| done.load(SeqCst));
        eventually(|| state.alive.load(SeqCst) == 0);
        assert!(state.callbacks.lock().is_empty());
    }
    // If it refuses a callback, the event is watched, too.
    let state = TestState::new(CALLS_BACK);
    state.patience.store(300, SeqCst);
    let kind = registered("plugin-watched-refused", state);
    *state.plan.lock() = Some(FaultPlan { function: "event_callback", call: 1, status: 8 });
    let (done, ..) = follow(kind);
    eventually(|| done.load(SeqCst));
}

const EXTRA: u64 = C::WEIR_DEVICE_IDLE_QUERY as u64
    | C::WEIR_DEVICE_RECORDINGS as u64
    | C::WEIR_DEVICE_PREPARED_LAUNCHES as u64
    | C::WEIR_DEVICE_SCRATCH as u64;

/// Functions that answer OK, but with values that make no sense.
mod senseless {
    use crate::abi::*;
    use std::ffi::c_void;

    pub unsafe extern "C" fn record(_: *mut c_void, _: *const weir_device_recording, _: *mut *mut c_void) -> i32 {
        0
    }
    pub unsafe extern "C" fn update(_: *mut c_void, _: *mut c_void, _: usize, _: *const weir_device_work) -> i32 {
        0
    }
    pub unsafe extern "C" fn destroy(_: *mut c_void, _: *mut c_void) {
        unreachable!("nothing was made");
    }
    pub unsafe extern "C" fn two(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> i32 {
        0
    }
    pub unsafe extern "C" fn prepare(
        _: *mut c_void,
        _: *mut c_void,
        _: *const weir_device_launch,
        _: *mut c_void,
        _: *mut *mut c_void,
    ) -> i32 {
        0
    }
    pub unsafe extern "C" fn scratch(
        _: *mut c_void,
        _: *mut c_void,
        _: *const weir_device_launch,
        out: *mut u64,
    ) -> i32 {
        // SAFETY: weir's place for the answer.
        unsafe { out.write(u64::MAX) };
        0
    }
    pub unsafe extern "C" fn compile(_: *mut c_void, region: *const weir_device_region, _: *mut *mut c_void) -> i32 {
        // SAFETY: weir's struct with its arrays.
        unsafe {
            let region = &*region;
            assert_eq!((region.num_nodes, region.num_values, region.num_inputs, region.num_outputs), (2, 3, 1, 1));
            let last = &*region.nodes.add(1);
            assert_eq!(((*last.recipe).attributes_bytes, *last.inputs, *last.outputs, *last.after), (3, 1, 2, 0));
        }
        0
    }
    pub unsafe extern "C" fn claim(_: *mut c_void, _: *const weir_device_region, groups: *mut u32) -> i32 {
        // SAFETY: weir's place for the answers.
        unsafe { groups.write(7) };
        -12345
    }
    pub unsafe extern "C" fn idle(_: *mut c_void, _: *mut c_void, out: *mut i32) -> i32 {
        // SAFETY: weir's place for the answer.
        unsafe { out.write(7) };
        0
    }
}

#[test]
fn answers_about_recordings_and_scratch_are_looked_at() {
    let (state, mut functions) = (TestState::new(EXTRA), vtable());
    functions.stream_query = Some(senseless::idle);
    functions.record = Some(senseless::record);
    functions.executable_update = Some(senseless::update);
    functions.executable_destroy = Some(senseless::destroy);
    functions.replay = Some(senseless::two);
    functions.prepare = Some(senseless::prepare);
    functions.launch_prepared = Some(senseless::two);
    functions.prepared_destroy = Some(senseless::destroy);
    functions.kernel_scratch = Some(senseless::scratch);
    let kind = DeviceKind::named("plugin-senseless").unwrap();
    let brought = plugin(kind, functions, state).unwrap();
    device::register(kind, 0, Arc::new(brought)).unwrap();
    {
        let device = open(kind, 0).unwrap();
        let accelerator = device.accelerator().unwrap();
        let memory = DeviceBytes::on(&device, "a").unwrap();
        let stream = accelerator.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
        let kernel = accelerator.kernel(&NEGATE).unwrap();
        let (inputs, outputs) = ([view(memory.1)], [view(memory.1)]);
        let launch = Launch { name: "negate", kernel: &kernel, inputs: &inputs, outputs: &outputs };
        assert!(stream.tells_idle() && !stream.is_idle(), "7 is no answer");
        let told = |error: Error, part: &str| {
            assert_eq!(error.code(), Code::Unknown);
            assert!(error.message().contains(part), "{error}");
        };
        told(stream.launch(&launch).unwrap_err(), "plugin-senseless:0: kernel_scratch wants 18446744073709551615");
        assert!(stream.prepare(&launch, None).is_none());
        let fill = RecordedWork::Fill(Fill { name: "fill", address: memory.1, bytes: 8, value: 1 });
        let steps = [RecordedStep { work: fill, after: &[] }];
        let recording = Recording { name: "r", steps: &steps };
        told(accelerator.record(&recording).unwrap_err(), "record returned OK and no object");
        assert_eq!(accelerator.control_flow().unwrap_err().code(), Code::Unimplemented);
        let early = [RecordedStep { work: fill, after: &[0] }];
        let error = accelerator.record(&Recording { name: "r", steps: &early }).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "a step after itself");
    }
    drop(device::unregister(kind, 0).unwrap());
    assert_eq!(state.alive.load(SeqCst), 0);
}

#[test]
fn answers_about_regions_are_looked_at() {
    let (state, mut functions) = (TestState::new(C::WEIR_DEVICE_REGIONS as u64), vtable());
    functions.region_compile = Some(senseless::compile);
    let claims = weir_device_vtable { region_claim: Some(senseless::claim), ..functions };
    let kinds = [("plugin-regions", functions), ("plugin-claims", claims)].map(|(name, functions)| {
        let kind = DeviceKind::named(name).unwrap();
        device::register(kind, 0, Arc::new(plugin(kind, functions, state).unwrap())).unwrap();
        kind
    });
    for kind in kinds {
        let device = open(kind, 0).unwrap();
        let accelerator = device.accelerator().unwrap();
        let kernel = accelerator.kernel(&NEGATE).unwrap();
        let desc = Desc::new(dtype::F32, &[2]);
        let values = [RegionValue { desc, constant: None }; 3];
        let node = |inputs, outputs, after| RegionNode {
            name: "n",
            recipe: Recipe { host: None, ..NEGATE },
            kernel: &kernel,
            inputs,
            outputs,
            after,
        };
        let nodes = [node(&[0], &[1], &[]), node(&[1], &[2], &[0])];
        let region = DeviceRegion { name: "r", nodes: &nodes, values: &values, inputs: &[0], outputs: &[2] };
        assert!(accelerator.takes_regions());
        match accelerator.claim(&region) {
            Ok(groups) => assert_eq!((kind, groups), (kinds[0], vec![1, 1]), "who does not say takes all"),
            Err(error) => {
                assert_eq!((kind, error.code()), (kinds[1], Code::Unknown));
                assert!(error.message().contains("region_claim"), "{error}");
            }
        }
        let error = accelerator.compile(&region).unwrap_err();
        assert_eq!(error.code(), Code::Unknown);
        assert!(error.message().contains("region_compile returned OK and no object"), "{error}");
        let refuse = |region: &DeviceRegion<'_>, part: &str| {
            let error = accelerator.compile(region).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains(part), "{error}");
        };
        refuse(&DeviceRegion { inputs: &[0, 3], ..region }, "value 3 cannot be an input");
        refuse(&DeviceRegion { inputs: &[], ..region }, "node 0, n, reads value 0, which is not there yet");
        refuse(&DeviceRegion { outputs: &[0], ..region }, "no node computes its output, value 0");
        let late = [node(&[0], &[1], &[]), node(&[1], &[2], &[1])];
        refuse(&DeviceRegion { nodes: &late, ..region }, "node 1, n, comes after node 1");
        let twice = [node(&[0], &[1], &[]), node(&[1], &[1], &[])];
        refuse(&DeviceRegion { nodes: &twice, ..region }, "node 1, n, cannot compute value 1");
    }
    kinds.into_iter().for_each(|kind| drop(device::unregister(kind, 0).unwrap()));
    assert_eq!(state.alive.load(SeqCst), 0);
}
