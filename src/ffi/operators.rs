//! The functions that create the kernels of built-in operators. `build.rs` writes them, one for each description in
//! `ops`: all of them come here.

use super::argument::out_ptr;
use super::guard::guard;
use super::kernel_options::with_settings;
use super::{handle, versioned};
use crate::abi::*;
use crate::base::{Code, Error, Ref, Result, dtype};
use crate::device::Operation;
use crate::engine::{BoundKernel, Engine, KernelIdentity, KernelOptions};
use crate::kernel::builtin::{Builtin, BuiltinOperation, Late, Packed};
use crate::kernel::cache::{self, KernelKey};
use crate::kernel::vector::isa::Isa;
use crate::ops::*;
use std::sync::Arc;

include!(concat!(env!("OUT_DIR"), "/operators.rs"));

/// Creates a kernel: `O` reads and checks the descriptor, and the cache returns the arithmetic.
///
/// # Safety
/// The caller's pointers are as the C documentation demands.
unsafe fn create<O: Operator + Into<Op>>(
    function: &'static str,
    engine: *mut weir_engine,
    desc: *const O::Desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status
where
    Builtin<O>: BuiltinOperation,
{
    // SAFETY: as demanded of the caller.
    guard(function, || unsafe {
        let out = out_ptr(out_kernel, "out_kernel")?;
        let engine = handle::share(engine, "engine")?;
        let (options, settings) = with_settings(options)?;
        let mut desc = match O::DEFAULT {
            Some(default) if desc.is_null() => default,
            _ => versioned::read(desc, "desc")?,
        };
        Isa::checked()?;
        if !settings.is_empty() {
            return handle::into_c(late::<O>(engine, &desc, settings, &options)?, out);
        }
        let weights = O::weights(&mut desc).map(|weights| packed(weights, &engine)).transpose()?.flatten();
        let shape = weights.as_ref().map(|packed| packed.shape());
        let (operator, described) = Described::new::<O>(&mut desc, shape)?;
        let key = KernelKey::new::<O, _>(engine.place(), &described.desc, weights.as_deref());
        let is_bound = weights.is_some();
        let kernel = cache::shared(&key, Builtin::with_weights(operator, weights))?;
        let identity = KernelIdentity { is_bound, ..KernelIdentity::of(Operation::Builtin(&described)) };
        handle::into_c(BoundKernel::create_as(engine, kernel, identity, &options)?, out)
    })
}

/// A kernel of which tensors hold these settings.
fn late<O: Operator>(
    engine: Ref<Engine>,
    desc: &O::Desc,
    settings: &str,
    options: &KernelOptions,
) -> Result<Ref<BoundKernel>>
where
    Builtin<O>: BuiltinOperation,
{
    let kernel = Late::<O>::new(desc, settings)?;
    if engine.accelerator().is_some() {
        let text = format!("engine {} takes no settings from tensors", engine.label());
        return Err(Error::new(Code::Unimplemented, text));
    }
    let identity = KernelIdentity { is_bound: true, ..KernelIdentity::of(Operation::Host) };
    BoundKernel::create_as(engine, Arc::new(kernel), identity, options)
}

/// The packed weights of a descriptor, of one of these types and of the engine's device. The descriptor loses its
/// pointer: the kernel keeps the weights.
///
/// # Safety
/// The handle is as the C documentation demands.
unsafe fn packed(weights: Weights<'_>, engine: &Engine) -> Result<Option<Arc<Packed>>> {
    let given = std::mem::replace(weights.handle, std::ptr::null_mut());
    // SAFETY: as demanded of the caller.
    let Some(given) = (unsafe { handle::borrow_opt(given.cast_const(), "desc->weights") })? else { return Ok(None) };
    if !given.engine().is_same_device(engine) {
        let (has, expected) = (given.engine().label(), engine.label());
        return Err(Error::invalid(format!("desc->weights is of engine {has}, expected {expected}")));
    }
    let packed = given.packed();
    let of = packed.shape().dtype;
    if !weights.dtypes.contains(&of) {
        let names: Vec<_> = weights.dtypes.iter().map(|&wanted| dtype::name(wanted)).collect();
        let (has, expected) = (dtype::name(of), names.join(" or "));
        return Err(Error::invalid(format!("desc->weights was packed from {has}, expected {expected}")));
    }
    Ok(Some(Arc::clone(packed)))
}
