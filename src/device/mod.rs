//! Devices: what an engine stands on. A device is made by a factory of its kind (`registry`); engines on one device
//! share it.
//!
//! The CPU is a device whose memory is the host's and whose work runs on the host's threads: streams on it are queues
//! of the library's own (room `stream`). Every other device is an [`Accelerator`]: it has memory that the host may be
//! unable to touch, streams that work on their own, events in them, copies, and kernels that it knows by what they
//! compute. The emulated device, plug-ins and CUDA all come through this one trait, and nothing to the right of this
//! room asks which of them it has.
//!
//! *What a stream of a device promises.* Calls on it return at once; what they ask for happens later, in order. A
//! failure comes late: the events recorded behind it, on this stream and on those that wait for it, carry the first
//! one, and what lies behind it is not done until `clear_error`. A device that is lost fails every call and every event
//! with DEVICE_LOST, so nobody waits for ever.
//!
//! *What is kept alive.* Memory, kernels and events that a stream was given stay until an event behind them was
//! reached: the caller's duty (`stream::line`), so a device keeps nothing.
//!
//! Addresses are numbers here: only the device may use them as pointers, and the host where the memory is its own.
mod comparison;
mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod emulated;
mod kind;
pub mod plugin;
mod presence;
mod recording;
mod region;
mod registry;
mod waiting;
mod watch;

pub use comparison::{Comparison, Relation};
pub use kind::DeviceKind;
pub use presence::Presence;
pub use recording::{Branch, Executable, Integer, Loop, Predicate, Recording, Step, Work};
pub use region::{Region, RegionNode, RegionValue};
pub use registry::{OWN_PRIORITY, count, devices, kinds, open, register, replace, unregister};
pub use waiting::Waiting;
pub use watch::Watch;

use crate::base::time::Deadline;
use crate::base::{Error, Result};
use crate::memory::View;
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

    /// What works on its own; None: the host's threads do the work, in the host's memory.
    fn accelerator(&self) -> Option<&(dyn Accelerator + 'static)> {
        None
    }

    /// What gives memory of the host's for engines on it; None: nothing of its own.
    fn host_memory(&self) -> Option<&dyn Pinning> {
        self.accelerator().and_then(Accelerator::pinning)
    }

    /// What it was made with, in a form that only the device knows, with what was left open as it was settled.
    fn settings(&self) -> Option<Arc<[u8]>> {
        None
    }

    /// Whether tensors' memory is to come from it one by one, unless an engine asks for another mode.
    fn wants_direct_memory(&self) -> bool {
        false
    }

    /// Whether an engine with these settings may share the device.
    fn fits(&self, _settings: &Settings) -> Result<()> {
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

/// What is done once an event was reached; on a thread that must not be held up.
pub struct Then(Told);

enum Told {
    Once(Box<dyn FnOnce() + Send>),
    Shared(Arc<dyn Reached>),
}

/// Who is told that an event was reached, and is there already: telling it needs no memory.
pub trait Reached: Send + Sync {
    fn reached(&self);
}

impl Then {
    pub fn once(then: impl FnOnce() + Send + 'static) -> Then {
        Then(Told::Once(Box::new(then)))
    }

    pub fn shared(then: Arc<dyn Reached>) -> Then {
        Then(Told::Shared(then))
    }

    /// The event was reached, or has failed.
    pub fn tell(self) {
        match self.0 {
            Told::Once(then) => then(),
            Told::Shared(then) => then.reached(),
        }
    }
}

impl Debug for Then {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Then")
    }
}

/// A device that works on its own, in memory of its own.
pub trait Accelerator: Send + Sync {
    /// Memory with any contents, aligned as the device says. `what` names it, in refusals and in what a checker
    /// reports.
    fn allocate(&self, bytes: usize, what: &str) -> Result<usize>;

    /// Gives it back. Nothing that was issued uses it any more.
    fn deallocate(&self, address: usize, bytes: usize);

    /// Keeps at most so many bytes of what it was given back.
    fn trim(&self, _keep: usize) {}

    /// Drops what streams had kept (`DeviceStream::keep`) and nobody needs any more. Not under a lock: it may be
    /// anything, and call the host.
    fn sweep(&self) {}

    fn stream(&self, attr: &StreamAttr<'_>) -> Result<Box<dyn DeviceStream>>;

    /// Most streams that it is good for; 0 = it does not say.
    fn max_streams(&self) -> usize {
        0
    }

    /// A stream that the host has made with the interface below, by what that calls it. It stays the host's.
    fn wrap_stream(&self, _attr: &StreamAttr<'_>, _handle: u64) -> Result<Box<dyn DeviceStream>> {
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
    fn claim(&self, _region: &Region<'_>) -> Result<Vec<u32>> {
        Err(no_regions())
    }

    /// One kernel that does what the nodes of a region do. UNIMPLEMENTED if the device would rather have them one by
    /// one.
    fn compile(&self, _region: &Region<'_>) -> Result<Arc<dyn DeviceKernel>> {
        Err(no_regions())
    }

    /// Whether it makes executables of recordings.
    fn can_record(&self) -> bool {
        false
    }

    /// Whether recordings may have branches and loops; the refusal says why not.
    fn control_flow(&self) -> Result<()> {
        Err(no_control_flow())
    }

    /// Makes an executable of a recording. What it is made from may go; what its steps name may not.
    fn record(&self, _recording: &Recording<'_>) -> Result<Arc<dyn Executable>> {
        Err(no_recordings())
    }

    /// Has `then` called once the event was reached, as recorded last, or at once if it is; also when it failed. Each
    /// call is kept even if the device is lost or everybody else lets go of it.
    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then);

    /// Asks for several things in a row, and calls no function of the host's meanwhile: what all of them take is done
    /// once.
    fn within(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        work()
    }

    /// What gives memory of the host's that its copies go straight from and to. None: it knows no such memory.
    fn pinning(&self) -> Option<&dyn Pinning> {
        None
    }

    /// Whether it can copy between its memory and that of `peer`, another device of the same kind.
    fn is_peer(&self, _peer: &dyn Accelerator) -> bool {
        true
    }

    /// Who it is to those who brought it: their functions and the device, as numbers.
    fn plugin_identity(&self) -> Option<[usize; 2]> {
        None
    }

    /// What the interface below calls it.
    fn native_handle(&self) -> Result<u64> {
        Err(no_native_handle())
    }
}

fn no_recordings() -> Error {
    Error::new(crate::base::Code::Unimplemented, "the device has no recordings")
}

fn no_regions() -> Error {
    Error::new(crate::base::Code::Unimplemented, "the device compiles no regions")
}

fn no_control_flow() -> Error {
    Error::new(crate::base::Code::Unimplemented, "the device has no branches and loops of its own")
}

fn no_native_handle() -> Error {
    Error::new(crate::base::Code::Unimplemented, "the device has no native handles")
}

/// Pinned memory of the host's: the host reads and writes it like any other, and a copy from or to it goes on by itself
/// while the host does other things. A copy from or to other memory may be staged by whoever issues it, or hold its
/// thread up until it is done.
pub trait Pinning: Send + Sync {
    /// May block. Memory with any contents, aligned to `memory::ALIGNMENT` at least. `what` names it in texts.
    fn allocate_host(&self, bytes: usize, what: &str) -> Result<usize>;

    /// May block. Gives it back. No copy that was issued uses it any more.
    fn deallocate_host(&self, address: usize, bytes: usize);

    /// Whether memory that somebody else allocated can be pinned.
    fn can_register(&self) -> bool {
        false
    }

    /// May block. Pins memory that is there, until `unregister`; nothing of it is pinned yet.
    fn register(&self, _address: usize, _bytes: usize, what: &str) -> Result<()> {
        Err(Error::new(
            crate::base::Code::Unimplemented,
            format!("the device does not pin {what}, which is not its own"),
        ))
    }

    /// May block. No copy that was issued uses it any more.
    fn unregister(&self, _address: usize, _bytes: usize) {}

    /// The host is about to write, or to read, bytes of such memory: one that checks looks whether a copy under way may
    /// use them.
    fn host_uses(&self, _address: usize, _bytes: usize, _writes: bool, _what: &str) {}
}

/// What a stream of a device is made from.
#[derive(Debug)]
pub struct StreamAttr<'a> {
    pub name: &'a str,
    /// -100 to 100, more is sooner.
    pub priority: i32,
}

/// An in-order queue of a device's. One thread at a time issues to it; others may record.
pub trait DeviceStream: Send + Sync + Debug {
    fn launch(&self, launch: &Launch<'_>) -> Result<()>;

    /// A call in a form that this stream launches for less, any number of times; None: it has none for this one. The
    /// kernel lives as long as that, and the memory as long as the device may be at a launch. `before`, of a call that
    /// is not launched any more, is used up: no memory is taken then, unless the new one needs more.
    fn prepare(
        &self,
        _launch: &Launch<'_>,
        _before: Option<Box<dyn PreparedLaunch>>,
    ) -> Option<Box<dyn PreparedLaunch>> {
        None
    }

    /// Launches what this stream has prepared. `name` is for texts, as in `Launch`.
    fn launch_prepared(&self, _prepared: &dyn PreparedLaunch, _name: &str) -> Result<()> {
        Err(Error::internal("a device was given a call that it has not prepared"))
    }

    /// Copies bytes from one place to another; at least one is in the device's memory.
    fn copy(&self, transfer: &Transfer<'_>) -> Result<()>;

    /// Sets bytes of the device's memory.
    fn fill(&self, fill: &Fill<'_>) -> Result<()>;

    /// Does all steps of an executable that the device made.
    fn replay(&self, _executable: &Arc<dyn Executable>) -> Result<()> {
        Err(no_recordings())
    }

    /// Puts the event behind all that was issued so far. The event is not under way: it was never recorded, or was
    /// reached.
    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()>;

    /// What is issued from now on waits for the event, which is of the same device, as recorded last.
    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()>;

    /// What is issued from now on waits for an event that the host has made with the interface below; or the stream
    /// records it.
    fn foreign_event(&self, _event: u64, _records: bool) -> Result<()> {
        Err(Error::new(crate::base::Code::Unimplemented, "the device takes no events of the host's"))
    }

    /// False: the host cannot be collecting what it is given (`is_capturing`).
    fn may_be_captured(&self) -> bool {
        false
    }

    /// Whether the host collects what it is given, to be done later and maybe often, instead of having it done.
    fn is_capturing(&self) -> Result<bool> {
        Ok(false)
    }

    /// Keeps something until what the host collects now can be done no more. It is dropped by a `sweep` after that.
    fn keep(&self, _what: Box<dyn Any + Send>) -> Result<()> {
        Err(Error::internal("a stream that nobody captures"))
    }

    /// The same; if it cannot be kept so long, a `sweep` before may drop it.
    fn put_aside(&self, _what: Box<dyn Any + Send>) {}

    /// Whether it can be asked `is_idle`.
    fn tells_idle(&self) -> bool {
        false
    }

    /// Whether all that was issued so far is done, told without an event. A failure is no answer: an event tells it.
    fn is_idle(&self) -> bool {
        false
    }

    /// Work is done again after a failure.
    fn clear_error(&self) {}

    /// What the interface below calls it.
    fn native_handle(&self) -> Result<u64> {
        Err(no_native_handle())
    }
}

/// A point in a stream of a device.
pub trait DeviceEvent: Any + Send + Sync + Debug {
    /// Whether it was reached. An error is the failure of the stream up to there: it counts as reached.
    fn is_reached(&self) -> Result<bool>;

    /// Waits until it is reached, as is best with this device; false if the deadline comes first.
    fn synchronize(&self, deadline: Deadline) -> Result<bool>;

    /// The same for who has looked for long enough.
    fn block(&self, deadline: Deadline) -> Result<bool> {
        self.synchronize(deadline)
    }

    /// Whether it was recorded last into what the host captures: it stands for a part of that, and is never reached.
    fn is_captured(&self) -> bool {
        false
    }

    /// Whether the host has its handle, and may have recorded it itself.
    fn is_exposed(&self) -> bool {
        false
    }

    /// Nanoseconds from an earlier one to this, both with timing and reached.
    fn elapsed_ns(&self, start: &dyn DeviceEvent) -> Result<i64>;

    /// What the interface below calls it.
    fn native_handle(&self) -> Result<u64> {
        Err(no_native_handle())
    }
}

/// Of an event that no wait can end for.
pub fn in_a_capture() -> Error {
    Error::precondition("the event was recorded into a capture, which does not reach it")
}

impl dyn DeviceEvent {
    /// Waits until it is reached, in this way if one was asked for; false if the deadline comes first.
    pub fn wait(&self, waiting: Option<Waiting>, deadline: Deadline) -> Result<bool> {
        let Some(waiting) = waiting else { return self.synchronize(deadline) };
        waiting.look(self, deadline)?.map_or_else(|| self.block(deadline), Ok)
    }
}

/// A kernel in the form that a device runs.
pub trait DeviceKernel: Any + Send + Sync + Debug {
    /// Whether an output may share memory with an input that is like it, if the same kernel on the host says so.
    fn in_place(&self) -> bool {
        false
    }
}

/// The operation of a kernel that the host gives the source of, for a CUDA device; its attributes are a
/// `weir_cuda_kernel_desc`.
pub const CUDA_KERNEL: &str = "cuda_kernel";

/// What a kernel computes, for a device that makes its own form of it.
pub struct Recipe<'a> {
    /// What it is called, for texts.
    pub name: &'a str,
    /// The operation, "matmul"; "" for a function of the host's.
    pub operation: &'a str,
    /// The operation's descriptor in C, complete and checked; what the host gave for one that only the device knows.
    pub attributes: &'a [u8],
    pub num_inputs: usize,
    pub num_outputs: usize,
    /// The same on the host, for devices that run host functions. None for one that only the device knows.
    pub host: Option<Arc<dyn HostFunction>>,
}

/// A kernel as a function in the host's memory.
pub trait HostFunction: Send + Sync {
    /// # Safety
    /// The views' bytes are the host's, are there during the call and have values. Nobody writes the inputs, and nobody
    /// else has the outputs.
    unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()>;
}

/// One call of a kernel. Views have addresses of the device's.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// For texts: "kernel 'relu'".
    pub name: &'a str,
    pub kernel: &'a Arc<dyn DeviceKernel>,
    pub inputs: &'a [View],
    pub outputs: &'a [View],
}

/// One call of a kernel, as a stream has prepared it (`DeviceStream::prepare`).
pub trait PreparedLaunch: Any + Send + Sync + Debug {}

/// An address of the host's that somebody has vouched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress(usize);

impl HostAddress {
    /// # Safety
    /// What is copied from there or to there is there until the copy is done, as often as it is made. Nobody writes
    /// meanwhile what is read, and nobody else uses what is written.
    pub const unsafe fn new(address: usize) -> HostAddress {
        HostAddress(address)
    }

    pub const fn get(self) -> usize {
        self.0
    }
}

/// Where bytes are.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    Host(HostAddress),
    /// In the memory of the stream's device.
    Device(usize),
    /// In the memory of another device of the same kind.
    Peer(&'a dyn Accelerator, usize),
}

impl Place<'_> {
    pub fn address(&self) -> usize {
        match *self {
            Place::Host(address) => address.get(),
            Place::Device(address) | Place::Peer(_, address) => address,
        }
    }
}

/// A copy.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    pub name: &'a str,
    pub to: Place<'a>,
    pub from: Place<'a>,
    pub bytes: usize,
}

/// Bytes that become equal.
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

/// What engines may ask of the device that they are made on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// In a form that only the device knows.
    pub attributes: Option<Arc<[u8]>>,
    /// A context of the host's to work in, by what the interface below calls it.
    pub context: Option<u64>,
}

/// Makes the devices of one kind.
pub trait Factory: Send + Sync {
    fn count(&self) -> u32;

    /// Why there are none, if there are none.
    fn why_none(&self) -> Option<String> {
        None
    }

    /// Whether its devices are some of this machine's.
    fn is_listed(&self) -> bool {
        true
    }

    fn open(&self, index: u32, settings: &Settings) -> Result<Arc<dyn Device>>;
}

/// The refusal of an engine or a device whose device lacks something.
pub fn unimplemented(label: &str, what: impl std::fmt::Display) -> Error {
    Error::new(crate::base::Code::Unimplemented, format!("engine {label} has no {what}"))
}
