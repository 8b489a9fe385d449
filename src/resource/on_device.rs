//! A variable in an accelerator's memory.
//!
//! Reads and writes are issued to any number of streams, by programs, other streams, and the host. All of them form a
//! *chain*: each access waits, on the device, for the one issued before it, on whichever stream that is. So accesses
//! are atomic, and execute one after the other in the order of issue, without a wait on the host. Exclusive and
//! optimistic variables behave alike. A graph orders its accesses to an exclusive one, and issues them in that order.
//!
//! An access whose stream fails is not executed, and the variable keeps its value: a sum is computed in other memory,
//! and then copied. An access that waits for a stream which then fails fails with it; accesses after the failure is
//! known do not wait for it, and continue.
//!
//! A device may refuse the event behind an access, which is asked for once more then. If it goes on refusing, nobody
//! knows when that access is over: the chain is *broken*, and later accesses fail. When such a variable ends, what the
//! access may use becomes a *remainder*: it stays as long as the device may be at it, and that is until the device is
//! lost. The next variable on any device that is made or ends gives back the remainders of devices that are.

use crate::base::time::Deadline;
use crate::base::{Code, Desc, Error, Result};
use crate::device::{
    Accelerator, Device, DeviceEvent, DeviceKernel, DeviceStream, DeviceStreamAttr, Fill, HostAddress, Launch,
    Location, Then, Transfer, traced_stream,
};
use crate::memory::{MemoryBlock, Pool, Tag, View};
use crate::sync::{Global, Mutex, ambient, fork};
use std::collections::VecDeque;
use std::sync::Arc;

/// The memory of a tensor that the host passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Host memory.
    Host,
    /// Memory of the variable's device.
    Device,
}

impl Side {
    /// # Safety
    /// The tensor is valid until the copy is done.
    unsafe fn place(self, view: &View) -> Location<'static> {
        let address = view.data().expose_provenance();
        match self {
            // SAFETY: as demanded of the caller.
            Side::Host => Location::Host(unsafe { HostAddress::new(address) }),
            Side::Device => Location::Device(address),
        }
    }
}

pub(super) struct DeviceVariable {
    device: Arc<dyn Device>,
    pool: Arc<Pool>,
    desc: Desc,
    bytes: usize,
    chain: Mutex<Chain>,
    /// Events of accesses that later ones have already waited for.
    spare: Mutex<VecDeque<Arc<dyn DeviceEvent>>>,
    /// A stream for calls of the host's, one at a time.
    line: Mutex<Option<Box<dyn DeviceStream>>>,
    /// For its end.
    remainder: Mutex<Option<Box<Remainder>>>,
}

struct Chain {
    memory: Option<MemoryBlock>,
    /// Memory for sums.
    sum: Option<MemoryBlock>,
    /// Number of issued accesses.
    number: u64,
    /// The event after the last of them.
    last: Option<Arc<dyn DeviceEvent>>,
    /// Why there is none behind the last access.
    broken: Option<Error>,
}

/// The memory and the stream of an access whose end nobody knows, in the order in which they are given back.
struct Remainder {
    line: Option<Box<dyn DeviceStream>>,
    memory: [Option<MemoryBlock>; 2],
    device: Arc<dyn Device>,
    next: Option<Box<Remainder>>,
}

/// The first of all.
static REMAINDERS: Global<Option<Box<Remainder>>> = Global::new(|| None);

impl Remainder {
    /// A variable's, made with it, so that its end needs no memory.
    fn new(device: &Arc<dyn Device>) -> Box<Remainder> {
        Box::new(Remainder { line: None, memory: [None, None], device: Arc::clone(device), next: None })
    }

    fn keep(mut self: Box<Self>) {
        let mut first = REMAINDERS.lock();
        self.next = first.take();
        *first = Some(self);
    }

    /// Gives back those of lost devices. Not under the lock: a device's functions are called.
    fn sweep() {
        let mut rest = {
            let mut first = REMAINDERS.lock();
            if first.is_none() {
                return;
            }
            first.take()
        };
        while let Some(mut remainder) = rest {
            rest = remainder.next.take();
            if !remainder.device.is_lost() {
                remainder.keep();
            }
        }
    }
}

/// Whether an access is over, or has failed. Not called under a lock: a device may do work to answer.
fn is_over(event: &Arc<dyn DeviceEvent>) -> bool {
    !matches!(event.is_reached(), Ok(false))
}

impl DeviceVariable {
    /// A zeroed variable.
    pub fn create(device: &Arc<dyn Device>, pool: &Arc<Pool>, desc: Desc) -> Result<DeviceVariable> {
        Remainder::sweep();
        let bytes = desc.bytes()?;
        let memory = pool.allocate(bytes, tag(&desc))?;
        let chain = Mutex::new(Chain { memory: Some(memory), sum: None, number: 0, last: None, broken: None });
        let (device, pool) = (Arc::clone(device), Arc::clone(pool));
        let (spare, line, remainder) = (Mutex::default(), Mutex::default(), Mutex::new(Some(Remainder::new(&device))));
        let made = DeviceVariable { device, pool, desc, bytes, chain, spare, line, remainder };
        if bytes > 0 {
            let fill = |stream: &dyn DeviceStream, chain: &Chain| {
                stream.fill(&Fill { name: "a variable's zeros", address: chain.address()?, bytes, value: 0 })
            };
            made.by_host(|stream| made.issue(stream, fill))?;
        }
        Ok(made)
    }

    fn accelerator(&self) -> Result<&dyn Accelerator> {
        self.device.accelerator().ok_or_else(|| Error::internal("a variable on a device that is the host"))
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.chain.lock().sum.as_ref().map_or(0, MemoryBlock::bytes)
    }

    /// Prepares for additions.
    pub fn prepare_sum(&self) -> Result<()> {
        if self.chain.lock().sum.is_none() {
            let sum = self.pool.allocate(self.bytes, Tag::text(format!("sums of a variable {}", self.desc.text())))?;
            self.chain.lock().sum.get_or_insert(sum);
        }
        Ok(())
    }

    /// Issues an access, after the previous one.
    fn issue(
        &self,
        stream: &dyn DeviceStream,
        access: impl FnOnce(&dyn DeviceStream, &Chain) -> Result<()>,
    ) -> Result<()> {
        let event = self.event()?;
        let (number, last) = {
            let chain = self.chain.lock();
            (chain.number, chain.last.clone())
        };
        let is_known_over = last.as_ref().is_none_or(is_over);
        let mut chain = self.chain.lock();
        if let Some(refusal) = &chain.broken {
            let text = "the variable is lost: its device refused the event behind an access, which may be in flight";
            return Err(Error::precondition(format!("{text}: {refusal}")));
        }
        // The event alone proves nothing: other accesses may have come in between, and one of them may be reusing it.
        if let Some(last) = chain.last.as_ref().filter(|_| !is_known_over || chain.number != number) {
            stream.wait(last)?;
        }
        let result = access(stream, &chain);
        // Recorded even if only a part was issued.
        let recorded = stream.insist(&event).inspect_err(|refusal| {
            // A lost device is no longer at it.
            chain.broken = Some(refusal.clone()).filter(|refusal| refusal.code() != Code::DeviceLost);
        })?;
        chain.number += 1;
        let old = chain.last.replace(event);
        drop(chain);
        self.spare.lock().extend(old);
        result.and(recorded)
    }

    /// An event that is not in flight.
    fn event(&self) -> Result<Arc<dyn DeviceEvent>> {
        let oldest = self.spare.lock().pop_front();
        match oldest {
            Some(event) if is_over(&event) => Ok(event),
            oldest => {
                self.spare.lock().extend(oldest);
                self.accelerator()?.event(false)
            }
        }
    }

    fn copy(&self, stream: &dyn DeviceStream, name: &str, from: Location<'_>, to: Location<'_>) -> Result<()> {
        if self.bytes == 0 { Ok(()) } else { stream.copy(&Transfer { name, to, from, bytes: self.bytes }) }
    }

    pub fn read(&self, stream: &dyn DeviceStream, name: &str, to: Location<'_>) -> Result<()> {
        self.issue(stream, |stream, chain| self.copy(stream, name, Location::Device(chain.address()?), to))
    }

    pub fn assign(&self, stream: &dyn DeviceStream, name: &str, from: Location<'_>) -> Result<()> {
        self.issue(stream, |stream, chain| self.copy(stream, name, from, Location::Device(chain.address()?)))
    }

    pub fn assign_add(
        &self,
        stream: &dyn DeviceStream,
        name: &str,
        kernel: &Arc<dyn DeviceKernel>,
        input: &View,
    ) -> Result<()> {
        self.issue(stream, |stream, chain| {
            let Some(sum) = chain.sum.as_ref().map(MemoryBlock::data) else {
                return Err(Error::internal("a sum without memory"));
            };
            // SAFETY: the device's blocks, which the chain keeps; the host only passes the addresses on.
            let view = |data| unsafe { View::new(data, self.bytes, self.desc) };
            let value = std::ptr::with_exposed_provenance_mut(chain.address()?);
            let (inputs, outputs) = ([view(value), input.clone()], [view(sum)]);
            if self.bytes > 0 {
                stream.launch(&Launch { name, kernel, inputs: &inputs, outputs: &outputs })?;
            }
            self.copy(stream, name, Location::Device(sum.expose_provenance()), Location::Device(chain.address()?))
        })
    }

    /// For the host: copies its value to a tensor, and returns when that is done.
    ///
    /// # Safety
    /// The output is where `side` says, and nothing else uses it.
    pub unsafe fn get(&self, output: &View, side: Side) -> Result<()> {
        // SAFETY: as demanded of the caller, who waits.
        let to = unsafe { side.place(output) };
        self.wait_for(|stream| self.read(stream, "a variable's value for the host", to))
    }

    /// For the host: copies its value from a tensor.
    ///
    /// # Safety
    /// The input is where `side` says, and nothing writes it meanwhile.
    pub unsafe fn set(&self, input: &View, side: Side) -> Result<()> {
        // SAFETY: as demanded of the caller, who waits.
        let from = unsafe { side.place(input) };
        self.wait_for(|stream| self.assign(stream, "a variable's value from the host", from))
    }

    fn by_host<R>(&self, f: impl FnOnce(&dyn DeviceStream) -> Result<R>) -> Result<R> {
        let mut line = self.line.lock();
        let stream = match line.take() {
            Some(stream) => stream,
            None => traced_stream(&self.device, &DeviceStreamAttr { name: "variable", priority: 0 }, None)?,
        };
        f(&**line.insert(stream))
    }

    fn wait_for(&self, work: impl FnOnce(&dyn DeviceStream) -> Result<()>) -> Result<()> {
        if ambient::depth() > 0 {
            return Err(Error::precondition(format!(
                "the variable is on {}, and waiting for it here could block a worker of a thread pool",
                self.pool.name()
            )));
        }
        self.by_host(|stream| {
            let done = self.accelerator()?.event(false)?;
            let worked = work(stream);
            // Even if that failed: a part may have been issued, and uses the caller's memory.
            let recorded = stream.insist(&done)?;
            let result = done.synchronize(Deadline::NEVER).map(drop).map_err(Error::as_origin);
            let result = worked.and(result).and(recorded);
            if result.is_err() {
                stream.clear_error();
            }
            result
        })
    }
}

/// The purpose of the memory.
fn tag(desc: &Desc) -> Tag {
    Tag::text(format!("variable {}", desc.text()))
}

impl Chain {
    fn address(&self) -> Result<usize> {
        let memory = self.memory.as_ref().ok_or_else(|| Error::internal("a variable without memory"))?;
        Ok(memory.data().expose_provenance())
    }
}

impl Drop for DeviceVariable {
    /// The device may still use it: everything is freed when that is over.
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        let (memory, sum, last, broken) = {
            let mut chain = self.chain.lock();
            (chain.memory.take(), chain.sum.take(), chain.last.take(), chain.broken.take())
        };
        let (spare, line) = (std::mem::take(&mut *self.spare.lock()), self.line.lock().take());
        if broken.is_some() && !self.device.is_lost() {
            let Some(mut remainder) = self.remainder.lock().take() else { return };
            (remainder.line, remainder.memory) = (line, [memory, sum]);
            return remainder.keep();
        }
        Remainder::sweep();
        let Some((last, accelerator)) = last.zip(self.device.accelerator()) else { return };
        if !is_over(&last) {
            let held = (memory, sum, spare, line, Arc::clone(&last));
            accelerator.when_reached(&last, Then::once(move || drop(held)));
        }
    }
}
