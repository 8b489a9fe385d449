//! Packed weights on an engine.

use super::engine::Engine;
use super::tensor::Tensor;
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result, live};
use crate::device;
use crate::kernel::builtin::Packed;
use std::sync::Arc;

/// Weights that were packed once. Kernels share `packed`, and keep it alive.
#[derive(Debug)]
pub struct PackedWeights {
    engine: Ref<Engine>,
    packed: Arc<Packed>,
}

impl Kind for PackedWeights {
    const TAG: u32 = tag::PACKED_WEIGHTS;
    const NAME: &'static str = "packed_weights";
    const COUNTER: live::Counter = live::Counter::PackedWeights;
}

impl PackedWeights {
    /// Packs a tensor of the engine's memory, in the calling thread.
    pub fn create(engine: Ref<Engine>, tensor: &Tensor, transposed: bool) -> Result<Ref<PackedWeights>> {
        if !tensor.engine().is_same_device(&engine) {
            let (has, expected) = (tensor.engine().label(), engine.label());
            return Err(Error::invalid(format!("tensor is in the memory of engine {has}, expected {expected}")));
        }
        if engine.accelerator().is_some() {
            let what = "packed weights, which are a form of the host's; its kernels take plain ones";
            return Err(device::unimplemented(&engine.label(), what));
        }
        // SAFETY: host memory, which the tensor keeps; the host writes no tensor that is in use.
        let packed = Arc::new(Packed::new(unsafe { tensor.view().as_bytes() }, transposed)?);
        Ok(Object::shared(PackedWeights { engine, packed }))
    }

    pub fn engine(&self) -> &Ref<Engine> {
        &self.engine
    }

    pub fn packed(&self) -> &Arc<Packed> {
        &self.packed
    }
}
