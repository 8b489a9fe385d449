//! Variables on accelerators.
#![forbid(unsafe_code)]

use super::attr::KernelOptions;
use super::engine::Engine;
use super::kernel::{BoundKernel, KernelIdentity};
use super::tensor::Tensor;
use crate::base::{Error, Ref, Result};
use crate::device::{DeviceKernel, Operation, label};
use crate::kernel::builtin::Builtin;
use crate::ops::{Binary, Described, weir_binary_op_value};
use crate::resource::{Side, Variable};
use std::sync::Arc;

/// The device's kernel that adds to a variable. `None` on the CPU.
pub fn device_sum(engine: &Ref<Engine>) -> Result<Option<Arc<dyn DeviceKernel>>> {
    if engine.accelerator().is_none() {
        return Ok(None);
    }
    let (sum, described) = Described::new::<Binary>(&mut Binary::desc(weir_binary_op_value::WEIR_BINARY_ADD), None)?;
    let identity = KernelIdentity { is_bound: true, ..KernelIdentity::of(Operation::Builtin(&described)) };
    let kernel = Arc::new(Builtin::new(sum));
    let bound = BoundKernel::create_as(Ref::clone(engine), kernel, identity, &KernelOptions::default())?;
    Ok(bound.on_device().cloned())
}

/// The location of a tensor that a variable is copied from or to; refuses one that cannot be reached.
pub fn side_of(variable: &Variable, tensor: &Tensor, argument: &str) -> Result<Side> {
    let of = tensor.engine();
    match (of.accelerator(), variable.device()) {
        (None, _) => Ok(Side::Host),
        (Some(_), Some(device)) if Arc::ptr_eq(of.device(), device) => Ok(Side::Device),
        (Some(_), device) => {
            let here = device.map_or("cpu:0".to_owned(), |device| format!("cpu:0 or {}", label(&**device)));
            Err(Error::invalid(format!("{argument} is in the memory of engine {}, expected {here}", of.label())))
        }
    }
}
