//! Variables on accelerators.
#![forbid(unsafe_code)]

use super::attr::KernelOptions;
use super::engine::Engine;
use super::kernel::{BoundKernel, KernelIdentity};
use super::tensor::Tensor;
use crate::abi::{weir_add_desc, weir_binary_desc, weir_binary_op_value};
use crate::base::{Desc, Error, Ref, Result, dtype};
use crate::device::{DeviceKernel, label};
use crate::kernel::vector::binary::Op;
use crate::kernel::{Kernel, builtin};
use crate::resource::{Side, Variable};
use std::sync::Arc;

/// The device's kernel that adds to a variable like this: its "add", or its "binary" for element types that "add"
/// lacks. `None` on the CPU.
pub fn device_sum(engine: &Ref<Engine>, desc: &Desc) -> Result<Option<Arc<dyn DeviceKernel>>> {
    if engine.accelerator().is_none() {
        return Ok(None);
    }
    let (kernel, name, attributes): (Arc<dyn Kernel>, _, Vec<u8>) = match desc.dtype {
        dtype::F32 => (Arc::new(builtin::Add), "add", size_of::<weir_add_desc>().to_ne_bytes().to_vec()),
        _ => {
            let op = weir_binary_op_value::WEIR_BINARY_ADD as u32;
            let size = size_of::<weir_binary_desc>().to_ne_bytes();
            let attributes = size.into_iter().chain(op.to_ne_bytes()).chain(0u32.to_ne_bytes()).collect();
            (Arc::new(builtin::Binary { op: Op::Add }), "binary", attributes)
        }
    };
    let operation = KernelIdentity { name, attributes: &attributes, is_bound: true, stays: false };
    let bound = BoundKernel::create_as(Ref::clone(engine), kernel, operation, &KernelOptions::default())?;
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
