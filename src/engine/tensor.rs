//! A tensor: a descriptor over memory of an engine, or of the host.

use super::buffer::Buffer;
use super::engine::Engine;
use crate::base::object::tag;
use crate::base::{Desc, Error, Kind, Object, Ref, Result, dtype, live};
use crate::device;
use crate::memory::{MemoryBlock, Tag, ValueSlot, View};
use crate::sync::Mutex;
use std::any::Any;

#[derive(Debug)]
pub struct Tensor {
    view: View,
    engine: Ref<Engine>,
    /// The memory, if it is the engine's and the shape is fixed.
    _memory: Option<MemoryBlock>,
    open: Option<OpenShape>,
    /// Dropped when the host's memory is no longer used.
    _release: Option<Box<dyn Any + Send + Sync>>,
}

/// The state of a tensor whose shape is decided by the runs that write it.
#[derive(Debug)]
pub struct OpenShape {
    /// The known part of the shape.
    pattern: Desc,
    /// Capacity in host memory, in bytes. `None` for engine memory, which grows.
    capacity: Option<usize>,
    memory: Mutex<Option<MemoryBlock>>,
}

impl OpenShape {
    pub fn pattern(&self) -> &Desc {
        &self.pattern
    }
}

impl Kind for Tensor {
    const TAG: u32 = tag::TENSOR;
    const NAME: &'static str = "tensor";
    const COUNTER: live::Counter = live::Counter::Tensors;
}

impl Tensor {
    pub fn create(engine: Ref<Engine>, desc: Desc) -> Result<Ref<Tensor>> {
        let desc = desc.check().map_err(|error| error.within("desc"))?;
        let bytes = desc.bytes()?;
        let memory = match engine.accelerator() {
            None => engine.memory().allocate_zeroed(bytes, Tag::Tensor(desc))?,
            Some(_) => engine.memory().allocate(bytes, Tag::Tensor(desc))?,
        };
        Ok(Tensor::within(engine, desc, memory))
    }

    /// One s32, in the memory of an engine of the host's.
    pub fn of_number(host: Ref<Engine>, number: i32) -> Result<Ref<Tensor>> {
        let tensor = Tensor::create(host, Desc::new(dtype::S32, &[1]))?;
        // SAFETY: nobody else has it yet.
        unsafe { tensor.view().as_bytes_mut() }.write_bytes().copy_from_slice(&number.to_ne_bytes());
        Ok(tensor)
    }

    /// In memory that is large enough.
    pub(super) fn within(engine: Ref<Engine>, desc: Desc, memory: MemoryBlock) -> Ref<Tensor> {
        // SAFETY: memory of the block, which the tensor keeps, and which is aligned for every element.
        let view = unsafe { View::new(memory.data(), memory.bytes(), desc) };
        Object::shared(Tensor { view, engine, _memory: Some(memory), open: None, _release: None })
    }

    /// Over memory of the host's.
    ///
    /// # Safety
    /// The host keeps the memory, which has the size of `desc`, until `release` is dropped.
    pub unsafe fn create_from(
        engine: Ref<Engine>,
        desc: Desc,
        data: *mut u8,
        release: Box<dyn Any + Send + Sync>,
    ) -> Result<Ref<Tensor>> {
        let desc = desc.check().map_err(|error| error.within("desc"))?;
        let bytes = desc.bytes()?;
        check_memory(&desc, data, bytes)?;
        // SAFETY: as demanded of the caller, and aligned.
        let view = unsafe { View::new(data, bytes, desc) };
        Ok(Object::shared(Tensor { view, engine, _memory: None, open: None, _release: Some(release) }))
    }

    /// Over the bytes of a buffer from `offset` on, unchanged.
    pub fn create_on(buffer: Ref<Buffer>, desc: Desc, offset: usize) -> Result<Ref<Tensor>> {
        let desc = desc.check().map_err(|error| error.within("desc"))?;
        let bytes = desc.bytes()?;
        if offset > buffer.bytes() || bytes > buffer.bytes() - offset {
            return Err(Error::out_of_range(format!(
                "{} at offset {offset} needs {bytes} bytes, and the buffer has {}",
                desc.text(),
                buffer.bytes()
            )));
        }
        let data = buffer.data().wrapping_add(offset);
        check_memory(&desc, data, bytes)?;
        // SAFETY: within the buffer, which the tensor keeps, and aligned.
        let view = unsafe { View::new(data, bytes, desc) };
        let engine = Ref::clone(buffer.engine());
        Ok(Object::shared(Tensor { view, engine, _memory: None, open: None, _release: Some(Box::new(buffer)) }))
    }

    /// A tensor that gets its shape from the run that wrote it last; empty until then.
    pub fn create_open(engine: Ref<Engine>, pattern: Desc) -> Result<Ref<Tensor>> {
        // SAFETY: no memory.
        unsafe { Self::opened(engine, pattern, std::ptr::null_mut(), None, None) }
    }

    /// The same over `capacity` bytes of the host's.
    ///
    /// # Safety
    /// The host keeps the memory until `release` is dropped.
    pub unsafe fn create_open_from(
        engine: Ref<Engine>,
        pattern: Desc,
        data: *mut u8,
        capacity: usize,
        release: Box<dyn Any + Send + Sync>,
    ) -> Result<Ref<Tensor>> {
        // SAFETY: as demanded of the caller.
        unsafe { Self::opened(engine, pattern, data, Some(capacity), Some(release)) }
    }

    /// # Safety
    /// The memory is there until `release` is dropped.
    unsafe fn opened(
        engine: Ref<Engine>,
        pattern: Desc,
        data: *mut u8,
        capacity: Option<usize>,
        release: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<Ref<Tensor>> {
        if engine.accelerator().is_some() {
            return Err(device::unimplemented(&engine.label(), "dynamic tensors"));
        }
        let named = |error: Error| error.within("desc");
        let pattern = pattern.check_open().map_err(named)?;
        if pattern.is_concrete() {
            return Err(Error::invalid(format!(
                "desc: {} leaves no dimension open (WEIR_DIM_DYNAMIC)",
                pattern.text()
            )));
        }
        check_memory(&pattern, data, capacity.unwrap_or(0))?;
        let mut empty = pattern;
        empty.dims.iter_mut().for_each(|dim| *dim = (*dim).max(0));
        let empty = empty.check().map_err(named)?;
        // SAFETY: as demanded of the caller, and aligned.
        let view = unsafe { View::new(data, 0, empty) };
        let open = OpenShape { pattern, capacity, memory: Mutex::default() };
        Ok(Object::shared(Tensor { view, engine, _memory: None, open: Some(open), _release: release }))
    }

    /// Some if the shape can change.
    pub fn open(&self) -> Option<&OpenShape> {
        self.open.as_ref()
    }

    /// Whether a value of this shape fits here; the error text follows the output's name.
    pub fn check_room(&self, desc: &Desc) -> Result<()> {
        let Some(open) = &self.open else {
            return match self.desc() == desc {
                true => Ok(()),
                false => Err(refusal(self.desc(), desc)),
            };
        };
        if !open.pattern.matches(desc) {
            return Err(refusal(&open.pattern, desc));
        }
        let bytes = desc.bytes()?;
        match open.capacity {
            Some(capacity) if capacity < bytes => Err(Error::out_of_range(format!(
                "{} needs {bytes} bytes, and the tensor's memory has {capacity}",
                desc.text()
            ))),
            _ => Ok(()),
        }
    }

    /// Takes the value out of a slot, by exchanging memory with it if that is the engine's. The value was checked to
    /// fit.
    ///
    /// # Safety
    /// The caller owns the slot, whose value is computed, and nobody else uses the tensor.
    pub unsafe fn receive(&self, slot: &ValueSlot) -> Result<()> {
        let desc = *slot.view().desc();
        let bytes = desc.bytes()?;
        match &self.open {
            Some(OpenShape { capacity: None, memory, .. }) => {
                // SAFETY: as demanded of the caller; the value's memory is the tensor's from here on.
                unsafe {
                    let data = slot.give(&mut memory.lock());
                    self.view.reshape(data, bytes, desc);
                }
                Ok(())
            }
            Some(_) => {
                // SAFETY: as demanded of the caller; the value was checked to fit.
                unsafe {
                    self.view.reshape(self.view.data(), bytes, desc);
                    slot.copy_to(self.view.as_bytes_mut())
                }
            }
            // SAFETY: as demanded of the caller.
            None => unsafe { slot.copy_to(self.view.as_bytes_mut()) },
        }
    }

    pub fn desc(&self) -> &Desc {
        self.view.desc()
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    pub fn data(&self) -> *mut u8 {
        self.view.data()
    }

    pub fn bytes(&self) -> usize {
        self.view.bytes()
    }

    pub fn engine(&self) -> &Ref<Engine> {
        &self.engine
    }
}

fn refusal(expected: &Desc, got: &Desc) -> Error {
    Error::precondition(format!("the tensor is {}, and the run made {}", expected.text(), got.text()))
}

fn check_memory(desc: &Desc, data: *mut u8, bytes: usize) -> Result<()> {
    if data.is_null() && bytes > 0 {
        return Err(Error::null("data"));
    }
    let element = dtype::size(desc.dtype)?;
    if !(data as usize).is_multiple_of(element) {
        return Err(Error::invalid(format!("data is not aligned to {element} bytes, as {} needs", desc.text())));
    }
    Ok(())
}
