//! Memory of the host's that is pinned for an engine's device: tensors and buffers in it, and memory of somebody else's
//! that was registered.
#![forbid(unsafe_code)]

use super::buffer::Buffer;
use super::engine::Engine;
use super::tensor::Tensor;
use crate::abi::weir_pinning as P;
use crate::base::text::json_string;
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::device::{Accelerator, Device, Pinning};
use crate::memory::{Pool, Tag};
use crate::sync::{Mutex, fork};
use std::fmt::Write as _;
use std::sync::Arc;

/// What is registered with a device through one engine: address and bytes of each.
#[derive(Debug, Default)]
pub struct Registrations(Mutex<Vec<(usize, usize)>>);

impl Registrations {
    fn bytes(&self) -> usize {
        self.0.lock().iter().map(|range| range.1).sum()
    }

    fn cover(&self, address: usize, bytes: usize) -> bool {
        self.0.lock().iter().any(|&(start, size)| start <= address && address + bytes <= start + size)
    }
}

/// Memory is registered until this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    device: Arc<dyn Device>,
    all: Arc<Registrations>,
    range: (usize, usize),
}

impl Drop for Registration {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        let (address, bytes) = self.range;
        if let Some(pinning) = self.device.accelerator().and_then(Accelerator::pinning) {
            pinning.unregister(address, bytes);
        }
        let mut all = self.all.0.lock();
        if let Some(at) = all.iter().position(|range| *range == self.range) {
            all.swap_remove(at);
        }
    }
}

impl Engine {
    fn pinning(&self) -> Option<&dyn Pinning> {
        self.accelerator()?.pinning()
    }

    /// Bits of weir_pinning.
    pub fn pinning_flags(&self) -> u32 {
        match self.pinning() {
            None => 0,
            Some(pinning) if pinning.can_register() => {
                P::WEIR_PINNING_ALLOCATES as u32 | P::WEIR_PINNING_REGISTERS as u32
            }
            Some(_) => P::WEIR_PINNING_ALLOCATES as u32,
        }
    }

    /// Bytes of others that are registered.
    pub fn registered_bytes(&self) -> usize {
        self.registrations().bytes()
    }

    /// Whether copies of this engine's device go straight from and to these bytes.
    pub fn has_pinned(&self, address: usize, bytes: usize) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let is_own = |pool: &Arc<Pool>| pool.owns(address..end);
        self.pinning().is_some() && (is_own(self.host_memory()) || self.registrations().cover(address, bytes))
    }

    /// weir is about to write, or to read, memory that may be pinned, and a device that checks looks at that.
    pub fn host_uses(&self, address: usize, bytes: usize, writes: bool, what: &str) {
        if let Some(pinning) = self.pinning() {
            pinning.host_uses(address, bytes, writes, what);
        }
    }

    /// The engine's memory, and that of the host's that it has for copies, as JSON.
    pub fn dump_memory(&self) -> Result<String> {
        let mut text = self.memory().dump()?;
        if self.accelerator().is_none() {
            return Ok(text);
        }
        text.truncate(text.trim_end().len() - 1);
        let _ = write!(text, ",\n\"host_memory\":{}", self.host_memory().dump()?.trim_end());
        text.push_str(",\n\"registered\":[");
        for (i, (address, bytes)) in self.registrations().0.lock().iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ =
                write!(text, "{comma}\n{{\"address\":{},\"bytes\":{bytes}}}", json_string(&format!("{address:#x}")));
        }
        text.push_str("]}\n");
        Ok(text)
    }

    /// Gives regions back that are free, of the engine's memory and of the host's for copies, until at most so much of
    /// each is left.
    pub fn trim(&self, keep: usize) {
        self.memory().trim(keep);
        self.host_memory().trim(keep);
    }

    pub fn reset_memory_peaks(&self) {
        self.memory().reset_peaks();
        self.host_memory().reset_peaks();
    }
}

fn check_host(engine: &Engine) -> Result<()> {
    match engine.accelerator() {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!(
            "engine is {}, expected a cpu engine, whose tensors are in the host's memory; `device` says for whose copies it is pinned",
            engine.label()
        ))),
    }
}

impl Tensor {
    /// Of the host's engine, with zeros, in memory that copies of `device` go straight from and to, if it knows such
    /// memory.
    pub fn create_pinned(engine: Ref<Engine>, desc: Desc, device: &Engine) -> Result<Ref<Tensor>> {
        check_host(&engine)?;
        let desc = desc.check().map_err(|error| error.within("desc"))?;
        let memory = device.host_memory().allocate_zeroed(desc.bytes()?, Tag::Tensor(desc))?;
        Ok(Tensor::within(engine, desc, memory))
    }
}

impl Buffer {
    /// The same without a shape; it holds anything.
    pub fn create_pinned(engine: Ref<Engine>, bytes: usize, device: &Engine) -> Result<Ref<Buffer>> {
        check_host(&engine)?;
        let memory = device.host_memory().allocate(bytes, Tag::Fixed("buffer"))?;
        Ok(Buffer::within(engine, bytes, memory))
    }

    /// Has the buffer's memory pinned for copies of `device`, until the buffer ends.
    pub fn pin(&self, device: &Engine) -> Result<()> {
        check_host(self.engine())?;
        let (address, bytes) = (self.data().expose_provenance(), self.bytes());
        let label = device.label();
        let Some(pinning) = device.pinning().filter(|pinning| pinning.can_register()) else {
            let text = format!("engine {label} does not pin memory that is not its own");
            return Err(Error::new(Code::Unimplemented, text));
        };
        if bytes == 0 {
            return Ok(());
        }
        if device.has_pinned(address, bytes) {
            let text = format!("the buffer's {bytes} bytes are pinned for engine {label} already");
            return Err(Error::new(Code::AlreadyExists, text));
        }
        pinning.register(address, bytes, "buffer")?;
        let all = Arc::clone(device.registrations());
        all.0.lock().push((address, bytes));
        self.keep(Registration { device: Arc::clone(device.device()), all, range: (address, bytes) });
        Ok(())
    }
}
