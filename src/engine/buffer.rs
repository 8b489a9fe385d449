//! Memory without a shape, to create tensors on.

use super::engine::Engine;
use super::registered::Registration;
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result, live};
use crate::memory::{MemoryBlock, Tag};
use crate::sync::Mutex;
use std::any::Any;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Memory of an engine, or of the host.
#[derive(Debug)]
pub struct Buffer {
    engine: Ref<Engine>,
    /// Never written again.
    data: AtomicPtr<u8>,
    bytes: usize,
    /// Its registrations with devices; dropped before the memory.
    registrations: Mutex<Vec<Registration>>,
    _memory: Option<MemoryBlock>,
    /// Dropped when the host's memory is no longer used.
    _release: Option<Box<dyn Any + Send + Sync>>,
}

impl Kind for Buffer {
    const TAG: u32 = tag::BUFFER;
    const NAME: &'static str = "buffer";
    const COUNTER: live::Counter = live::Counter::Buffers;
}

impl Buffer {
    /// Uninitialised memory.
    pub fn create(engine: Ref<Engine>, bytes: usize) -> Result<Ref<Buffer>> {
        let memory = engine.memory().allocate(bytes, Tag::Fixed("buffer"))?;
        Ok(Buffer::within(engine, bytes, memory))
    }

    pub(super) fn within(engine: Ref<Engine>, bytes: usize, memory: MemoryBlock) -> Ref<Buffer> {
        let (data, registrations) = (AtomicPtr::new(memory.data()), Mutex::default());
        Object::shared(Buffer { engine, data, bytes, registrations, _memory: Some(memory), _release: None })
    }

    pub(super) fn keep(&self, registration: Registration) {
        self.registrations.lock().push(registration);
    }

    /// The host's memory.
    ///
    /// # Safety
    /// The host keeps it until `release` is dropped.
    pub unsafe fn import(
        engine: Ref<Engine>,
        data: *mut u8,
        bytes: usize,
        release: Box<dyn Any + Send + Sync>,
    ) -> Result<Ref<Buffer>> {
        if data.is_null() && bytes > 0 {
            return Err(Error::null("data"));
        }
        if data.addr().checked_add(bytes).is_none() {
            return Err(Error::out_of_range(format!("bytes is {bytes}, no memory at {data:p} is that large")));
        }
        let (data, registrations) = (AtomicPtr::new(data), Mutex::default());
        Ok(Object::shared(Buffer { engine, data, bytes, registrations, _memory: None, _release: Some(release) }))
    }

    pub fn engine(&self) -> &Ref<Engine> {
        &self.engine
    }

    pub fn data(&self) -> *mut u8 {
        self.data.load(Relaxed)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
