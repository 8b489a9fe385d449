//! Host memory that is pinned for an engine's device: tensors and buffers in it, and registered foreign memory.
#![forbid(unsafe_code)]

use super::buffer::Buffer;
use super::engine::Engine;
use super::registered::Registration;
use super::tensor::Tensor;
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::memory::Tag;
use std::sync::Arc;

fn check_host(engine: &Engine) -> Result<()> {
    match engine.accelerator() {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!(
            "engine is {}, expected a cpu engine, whose tensors are in the host's memory; `device` says for whose \
             copies it is pinned",
            engine.label()
        ))),
    }
}

impl Tensor {
    /// A zeroed tensor of a CPU engine in memory pinned for direct copies of `device`, if it supports that.
    pub fn create_pinned(engine: Ref<Engine>, desc: Desc, device: &Engine) -> Result<Ref<Tensor>> {
        check_host(&engine)?;
        let desc = desc.check().map_err(|error| error.within("desc"))?;
        let memory = device.host_memory().allocate_zeroed(desc.bytes()?, Tag::Tensor(desc))?;
        Ok(Tensor::within(engine, desc, memory))
    }
}

impl Buffer {
    /// The same without a shape, uninitialised.
    pub fn create_pinned(engine: Ref<Engine>, bytes: usize, device: &Engine) -> Result<Ref<Buffer>> {
        check_host(&engine)?;
        let memory = device.host_memory().allocate(bytes, Tag::Fixed("buffer"))?;
        Ok(Buffer::within(engine, bytes, memory))
    }

    /// Pins the buffer's memory for copies of `device`, until the buffer ends.
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
