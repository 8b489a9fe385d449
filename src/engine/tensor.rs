//! A tensor: a descriptor over memory of an engine's, or of the host's.

use super::engine::Engine;
use crate::base::object::tag;
use crate::base::{Desc, Error, Kind, Object, Ref, Result, dtype, live};
use crate::memory::{Buffer, View};
use std::any::Any;

#[derive(Debug)]
pub struct Tensor {
    view: View,
    engine: Ref<Engine>,
    /// The memory, if it is the engine's.
    _memory: Option<Buffer>,
    /// Whatever must be dropped when the host's memory is not used any more.
    _release: Option<Box<dyn Any + Send + Sync>>,
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
        let memory = engine.device().allocate(bytes, &format!("tensor {}", desc.text()))?;
        let view = View::new(memory.data(), bytes, desc);
        Ok(Object::shared(Tensor { view, engine, _memory: Some(memory), _release: None }))
    }

    /// Over memory of the host's, which the host keeps until `release` is dropped.
    pub fn create_from(
        engine: Ref<Engine>,
        desc: Desc,
        data: *mut u8,
        release: Box<dyn Any + Send + Sync>,
    ) -> Result<Ref<Tensor>> {
        let desc = desc.check().map_err(|error| error.within("desc"))?;
        let bytes = desc.bytes()?;
        if data.is_null() && bytes > 0 {
            return Err(Error::null("data"));
        }
        let element = dtype::size(desc.dtype)?;
        if !(data as usize).is_multiple_of(element) {
            return Err(Error::invalid(format!("data is not aligned to {element} bytes, as {} needs", desc.text())));
        }
        let view = View::new(data, bytes, desc);
        Ok(Object::shared(Tensor { view, engine, _memory: None, _release: Some(release) }))
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
