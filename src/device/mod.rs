//! Devices, on which engines are made. A factory of its kind makes a device (`registry`); engines on one device share
//! it.
//!
//! The CPU is a device whose memory is the host's and whose work runs on the host's threads: streams on it are queues
//! of the library's own (room `stream`). Every other device is an [`Accelerator`]: it has memory that the host may be
//! unable to touch, asynchronous streams, events in them, copies, and kernels that it identifies by their operation.
//! Plug-ins and CUDA implement this one trait, and the rooms to the right of this one do not
//! distinguish them.
//!
//! *Contract of device streams.* Calls return at once; their work happens later, in order. Failures are asynchronous:
//! the events recorded behind one, on this stream and on those that wait for it, carry the first failure, and later
//! work is skipped until `clear_error`. A lost device fails every call and every event with DEVICE_LOST, so nobody
//! waits for ever.
//!
//! *Lifetimes.* Memory, kernels and events that a stream was given must live until an event behind them was reached:
//! the caller's duty (`stream::device_queue`), so a device keeps nothing.
//!
//! Addresses are numbers here: only the device may use them as pointers, and the host for host memory.
mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod device_clock;
mod factory;
mod insist;
mod kind;
pub mod plugin;
mod predicate;
mod presence;
mod recording;
mod region;
mod registry;
mod scratch;
mod traced_stream;
mod waiting;
mod watch;

pub use factory::Factory;
pub use kind::DeviceKind;
pub use predicate::{Comparison, Integer, Predicate, Relation};
pub use presence::Presence;
pub use recording::{Executable, RecordedBranch, RecordedLoop, RecordedStep, RecordedWork, Recording};
pub use region::{DeviceRegion, RegionNode, RegionValue};
pub use registry::{OWN_PRIORITY, count, devices, kinds, open, register, replace, unregister};
pub use scratch::LaunchScratch;
pub use traced_stream::traced_stream;
pub use waiting::Waiting;
pub use watch::DeviceWatch;

use crate::base::time::Deadline;
use crate::base::{Error, Result};
use crate::memory::View;
use crate::ops::Described;
use crate::sync::progress;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// One device: facts.
pub trait Device: Any + Send + Sync + Debug {
    fn kind(&self) -> DeviceKind;

    fn index(&self) -> u32;

    /// A name for people.
    fn name(&self) -> &str;

    /// Alignment of its memory, in bytes.
    fn alignment(&self) -> usize;

    /// Its memory in bytes; 0 = not known.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// The accelerator; `None`: host threads execute the work, in host memory.
    fn accelerator(&self) -> Option<&(dyn Accelerator + 'static)> {
        None
    }

    /// The allocator of host memory for engines on it; `None`: the default.
    fn host_memory(&self) -> Option<&dyn Pinning> {
        self.accelerator().and_then(Accelerator::pinning)
    }

    /// Its settings, opaque to the library, with unset ones as resolved.
    fn settings(&self) -> Option<Arc<Vec<u8>>> {
        None
    }

    /// Whether each tensor's memory is allocated from it directly, unless an engine asks for another mode.
    fn wants_direct_memory(&self) -> bool {
        false
    }

    /// Whether an engine with these settings may share the device.
    fn fits(&self, _settings: &DeviceSettings) -> Result<()> {
        Ok(())
    }

    /// Whether it fails everything from now on; the next engine gets a new one.
    fn is_lost(&self) -> bool {
        false
    }
}

/// "emulated:0"
pub fn label(device: &dyn Device) -> String {
    format!("{}:{}", device.kind().name(), device.index())
}

/// A continuation for a reached event; runs on a thread that must not be blocked.
pub struct Then(Continuation);

enum Continuation {
    Once(Box<dyn FnOnce() + Send>),
    Shared(Arc<dyn Reached>),
}

/// A preallocated receiver of a reached event: notifying it needs no memory.
pub trait Reached: Send + Sync {
    fn reached(&self);
}

impl Then {
    pub fn once(then: impl FnOnce() + Send + 'static) -> Then {
        Then(Continuation::Once(Box::new(then)))
    }

    pub fn shared(then: Arc<dyn Reached>) -> Then {
        Then(Continuation::Shared(then))
    }

    /// The event was reached, or has failed.
    pub fn tell(self) {
        match self.0 {
            Continuation::Once(then) => then(),
            Continuation::Shared(then) => then.reached(),
        }
    }
}

impl Debug for Then {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Then")
    }
}

/// A device that executes work asynchronously, in memory of its own.
pub trait Accelerator: Send + Sync {
    /// Uninitialised memory, aligned as the device says. `what` names it in errors and in a checker's reports.
    fn allocate(&self, bytes: usize, what: &str) -> Result<usize>;

    /// Frees it. No issued work uses it any more.
    fn deallocate(&self, address: usize, bytes: usize);

    /// Whether it keeps freed memory, which `trim` then gives back.
    fn can_trim(&self) -> bool {
        false
    }

    /// Keeps at most `keep` bytes of freed memory.
    fn trim(&self, _keep: usize) {}

    /// Drops objects that streams had kept (`DeviceStream::keep`) and that are no longer needed. Not under a lock:
    /// their destructors may call the host.
    fn sweep(&self) {}

    fn stream(&self, attr: &DeviceStreamAttr<'_>) -> Result<Box<dyn DeviceStream>>;

    /// The largest useful number of streams; 0 = unknown.
    fn max_streams(&self) -> usize {
        0
    }

    /// Wraps a native stream of the host's. The host keeps ownership.
    fn wrap_stream(&self, _attr: &DeviceStreamAttr<'_>, _handle: u64) -> Result<Box<dyn DeviceStream>> {
        Err(Error::new(crate::base::Code::Unimplemented, "the device takes no streams of the host's"))
    }

    /// An event, not recorded.
    fn event(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>>;

    /// The device's form of a kernel. UNIMPLEMENTED if it has none.
    fn kernel(&self, recipe: &Recipe<'_>) -> Result<Arc<dyn DeviceKernel>>;

    /// Whether it makes kernels of regions.
    fn takes_regions(&self) -> bool {
        false
    }

    /// For each node of a region the number of those that the device would compile with it; 0: it leaves the node
    /// alone. UNIMPLEMENTED if it leaves all of them alone.
    fn claim(&self, _region: &DeviceRegion<'_>) -> Result<Vec<u32>> {
        Err(lacks("compiles no regions"))
    }

    /// One kernel that does what the nodes of a region do. UNIMPLEMENTED if the device would rather have them one by
    /// one.
    fn compile(&self, _region: &DeviceRegion<'_>) -> Result<Arc<dyn DeviceKernel>> {
        Err(lacks("compiles no regions"))
    }

    /// Whether it makes executables of recordings.
    fn can_record(&self) -> bool {
        false
    }

    /// Whether recordings may have branches and loops; the refusal says why not.
    fn control_flow(&self) -> Result<()> {
        Err(no_control_flow())
    }

    /// Makes an executable of a recording. The recording may be dropped, the objects that its steps name may not.
    fn record(&self, _recording: &Recording<'_>) -> Result<Arc<dyn Executable>> {
        Err(lacks("has no recordings"))
    }

    /// Calls `then` once the event, as last recorded, was reached or has failed; at once if it has. Each call is made
    /// even if the device is lost or all other references are dropped.
    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then);

    /// Runs several calls in a row without calling host functions: their common setup is done once.
    fn within(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        work()
    }

    /// The allocator of pinned host memory for direct copies. `None` if unsupported.
    fn pinning(&self) -> Option<&dyn Pinning> {
        None
    }

    /// Whether it can copy between its memory and that of `peer`, another device of the same kind.
    fn is_peer(&self, _peer: &dyn Accelerator) -> bool {
        true
    }

    /// Fails if the device is lost, as far as is known.
    fn intact(&self) -> Result<()> {
        Ok(())
    }

    /// Its identity for the plug-in: functions and device, as numbers.
    fn plugin_identity(&self) -> Option<[usize; 2]> {
        None
    }

    /// Its native handle.
    fn native_handle(&self) -> Result<u64> {
        Err(lacks("has no native handles"))
    }
}

fn lacks(what: &str) -> Error {
    Error::new(crate::base::Code::Unimplemented, format!("the device {what}"))
}

fn no_control_flow() -> Error {
    lacks("has no branches and loops of its own")
}

/// Pinned host memory: the host reads and writes it like any other, and copies from or to it are asynchronous. A copy
/// from or to other memory may be staged by the issuing thread, or block it until done.
pub trait Pinning: Send + Sync {
    /// May block. Uninitialised memory, aligned to `memory::ALIGNMENT` at least. `what` names it in messages.
    fn allocate_host(&self, bytes: usize, what: &str) -> Result<usize>;

    /// May block. Frees it. No issued copy uses it any more.
    fn deallocate_host(&self, address: usize, bytes: usize);

    /// Whether foreign memory can be pinned.
    fn can_register(&self) -> bool {
        false
    }

    /// May block. Pins existing memory, until `unregister`; no part of it is pinned yet.
    fn register(&self, _address: usize, _bytes: usize, what: &str) -> Result<()> {
        Err(Error::new(
            crate::base::Code::Unimplemented,
            format!("the device does not pin {what}, which is not its own"),
        ))
    }

    /// May block. No issued copy uses it any more.
    fn unregister(&self, _address: usize, _bytes: usize) {}

    /// The host is about to write, or to read, bytes of such memory: a checker looks for copies in flight that may use
    /// them.
    fn host_uses(&self, _address: usize, _bytes: usize, _writes: bool, _what: &str) {}
}

/// The attributes of a device stream.
#[derive(Debug)]
pub struct DeviceStreamAttr<'a> {
    pub name: &'a str,
    /// -100 to 100, more is sooner.
    pub priority: i32,
}

/// An in-order queue of a device. One thread at a time issues to it; others may record.
pub trait DeviceStream: Send + Sync + Debug {
    fn launch(&self, launch: &Launch<'_>) -> Result<()>;

    /// The scratch memory that this launch will be given here, with at least `spare` bytes behind what it asks for;
    /// `None` if it is given none.
    fn scratch(&self, _launch: &Launch<'_>, _spare: usize) -> Result<Option<LaunchScratch>> {
        Ok(None)
    }

    /// Prepares a launch that can be repeated cheaply on this stream; `None` if unsupported. The kernel outlives it,
    /// and the memory all launches in flight. Reuses the allocation of `before`, a prepared launch that is no longer
    /// needed.
    fn prepare(
        &self,
        _launch: &Launch<'_>,
        _before: Option<Box<dyn PreparedLaunch>>,
    ) -> Option<Box<dyn PreparedLaunch>> {
        None
    }

    /// Launches a call that this stream has prepared. `name` is for messages, as in `Launch`.
    fn launch_prepared(&self, _prepared: &dyn PreparedLaunch, _name: &str) -> Result<()> {
        Err(Error::internal("a device was given a call that it has not prepared"))
    }

    /// Copies bytes from one place to another; at least one is in the device's memory.
    fn copy(&self, transfer: &Transfer<'_>) -> Result<()>;

    /// Sets bytes of the device's memory.
    fn fill(&self, fill: &Fill<'_>) -> Result<()>;

    /// Executes all steps of an executable that the device made. `name` is that of the recording.
    fn replay(&self, _executable: &Arc<dyn Executable>, _name: &str) -> Result<()> {
        Err(lacks("has no recordings"))
    }

    /// Records the event behind all work issued so far. The event is not in flight: it was never recorded, or was
    /// reached.
    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()>;

    /// Later work waits for the event, of the same device, as last recorded.
    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()>;

    /// Later work waits for a native event of the host's; or the stream records it.
    fn foreign_event(&self, _event: u64, _records: bool) -> Result<()> {
        Err(Error::new(crate::base::Code::Unimplemented, "the device takes no events of the host's"))
    }

    /// Whether the host may capture this stream (`is_capturing`).
    fn may_be_captured(&self) -> bool {
        false
    }

    /// Whether the host captures it: submitted work is recorded for later launches instead of executed.
    fn is_capturing(&self) -> Result<bool> {
        Ok(false)
    }

    /// Keeps an object for as long as the current capture can be launched. A later `sweep` drops it.
    fn keep(&self, _what: Box<dyn Any + Send>) -> Result<()> {
        Err(Error::internal("a stream that nobody captures"))
    }

    /// The same; if it cannot be kept so long, an earlier `sweep` may drop it.
    fn put_aside(&self, _what: Box<dyn Any + Send>) {}

    /// Whether `is_idle` works.
    fn tells_idle(&self) -> bool {
        false
    }

    /// Whether all issued work is done, without an event. It does not report failures: events do.
    fn is_idle(&self) -> bool {
        false
    }

    /// Executes work again after a failure.
    fn clear_error(&self) {}

    /// For traces: the run of this frame ends with the work that was issued last.
    fn ends_run(&self, _frame: u32) {}

    /// Its native handle.
    fn native_handle(&self) -> Result<u64> {
        Err(lacks("has no native handles"))
    }
}

/// A point in a stream of a device.
pub trait DeviceEvent: Any + Send + Sync + Debug {
    /// Whether it was reached. An error is the failure of the stream up to there: it counts as reached.
    fn is_reached(&self) -> Result<bool>;

    /// Waits until it is reached, in the device's default way; false if the deadline comes first.
    fn synchronize(&self, deadline: Deadline) -> Result<bool>;

    /// The same for a caller that has spun already.
    fn block(&self, deadline: Deadline) -> Result<bool> {
        self.synchronize(deadline)
    }

    /// Whether it was last recorded into a capture of the host's: then it is a part of that, and is never reached.
    fn is_captured(&self) -> bool {
        false
    }

    /// Whether the host has its handle, and may have recorded it itself.
    fn is_exposed(&self) -> bool {
        false
    }

    /// Nanoseconds from an earlier one to this, both with timing and reached.
    fn elapsed_ns(&self, start: &dyn DeviceEvent) -> Result<i64>;

    /// Its native handle.
    fn native_handle(&self) -> Result<u64> {
        Err(lacks("has no native handles"))
    }
}

/// The error of waiting for an event that is never reached.
pub fn in_a_capture() -> Error {
    Error::precondition("the event was recorded into a capture, which does not reach it")
}

impl dyn DeviceEvent {
    /// Waits until it is reached, in this way if one was asked for; false if the deadline comes first.
    pub fn wait(&self, waiting: Option<Waiting>, deadline: Deadline) -> Result<bool> {
        if !progress::is_used() {
            return self.wait_idly(waiting, deadline);
        }
        let mut asker = progress::Asker::begin();
        loop {
            let until = Deadline::after(asker.ask());
            if self.wait_idly(waiting, deadline.earlier(until))? {
                return Ok(true);
            }
            if deadline.is_past() {
                return Ok(false);
            }
        }
    }

    fn wait_idly(&self, waiting: Option<Waiting>, deadline: Deadline) -> Result<bool> {
        let Some(waiting) = waiting else { return self.synchronize(deadline) };
        waiting.look(self, deadline)?.map_or_else(|| self.block(deadline), Ok)
    }
}

/// A kernel in the form that a device runs.
pub trait DeviceKernel: Any + Send + Sync + Debug {
    /// Whether an output may share memory with an input like it, if the host's kernel allows that, too.
    fn in_place(&self) -> bool {
        false
    }
}

/// The operation of a CUDA kernel from the host's source; its attributes are a `weir_cuda_kernel_desc`.
pub const CUDA_KERNEL: &str = "cuda_kernel";

/// The operation of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// A function of the host's, which the recipe has.
    Host,
    /// One of the library's operators.
    Builtin(&'a Described),
    /// One that only a device knows: its name, and the host's attributes.
    Named(&'a str, &'a [u8]),
}

impl<'a> Operation<'a> {
    /// The name by which a plug-in knows it; "" for a function of the host's.
    pub fn name(self) -> &'a str {
        match self {
            Operation::Host => "",
            Operation::Builtin(described) => described.op.operation(),
            Operation::Named(name, _) => name,
        }
    }

    /// The operator's descriptor, or the host's attributes.
    pub fn attributes(self) -> &'a [u8] {
        match self {
            Operation::Host => &[],
            Operation::Builtin(described) => &described.desc,
            Operation::Named(_, attributes) => attributes,
        }
    }
}

/// The description of a kernel from which a device makes its own form.
pub struct Recipe<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    pub operation: Operation<'a>,
    pub num_inputs: usize,
    pub num_outputs: usize,
    /// The same on the host, for devices that run host functions. `None` for a device's own operation.
    pub host: Option<Arc<dyn HostFunction>>,
}

/// A kernel as a function in the host's memory.
pub trait HostFunction: Send + Sync {
    /// # Safety
    /// The views are of host memory that is valid during the call and initialised. Nobody writes the inputs, and nobody
    /// else uses the outputs.
    unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()>;
}

/// One call of a kernel. Views have device addresses.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// For messages: "kernel 'relu'".
    pub name: &'a str,
    pub kernel: &'a Arc<dyn DeviceKernel>,
    pub inputs: &'a [View],
    pub outputs: &'a [View],
}

/// One call of a kernel, prepared by a stream (`DeviceStream::prepare`).
pub trait PreparedLaunch: Any + Send + Sync + Debug {}

/// A host address whose validity the caller has vouched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress(usize);

impl HostAddress {
    /// # Safety
    /// The memory is valid until the copy is done, for each time that it is made. Meanwhile nobody writes a source, and
    /// nobody else uses a target.
    pub const unsafe fn new(address: usize) -> HostAddress {
        HostAddress(address)
    }

    pub const fn get(self) -> usize {
        self.0
    }
}

/// The location of bytes.
#[derive(Clone, Copy, Debug)]
pub enum Location<'a> {
    Host(HostAddress),
    /// In the memory of the stream's device.
    Device(usize),
    /// In the memory of another device of the same kind.
    Peer(&'a dyn Accelerator, usize),
}

impl Location<'_> {
    pub fn address(&self) -> usize {
        match *self {
            Location::Host(address) => address.get(),
            Location::Device(address) | Location::Peer(_, address) => address,
        }
    }
}

/// A copy.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    pub name: &'a str,
    pub to: Location<'a>,
    pub from: Location<'a>,
    pub bytes: usize,
}

/// A fill: all bytes get one value.
#[derive(Clone, Copy, Debug)]
pub struct Fill<'a> {
    pub name: &'a str,
    pub address: usize,
    pub bytes: usize,
    pub value: u8,
}

impl Debug for dyn Accelerator + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Accelerator")
    }
}

/// Settings that engines may request of their device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSettings {
    /// The device's own, opaque to the library.
    pub attributes: Option<Arc<Vec<u8>>>,
    /// The native handle of a context of the host's to use.
    pub context: Option<u64>,
}

/// The error for a feature that a device lacks.
pub fn unimplemented(label: &str, what: impl std::fmt::Display) -> Error {
    Error::new(crate::base::Code::Unimplemented, format!("engine {label} has no {what}"))
}
