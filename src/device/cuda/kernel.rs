//! Kernels in the form that a CUDA device runs: a call's launches.

use super::blas::{Prepared, Products};
use super::builtin::{CudaBuiltin, Kernels};
use super::context::Context;
use super::custom::Custom;
use super::downcast::downcast;
use super::facts::CudaFacts;
use super::inbox::{FaultTicket, FaultTickets};
use super::piece::CallPart;
use super::plan::Check;
use super::ready::Ready;
use super::stream::CudaStream;
use crate::base::{Error, Result};
use crate::device::{CUDA_KERNEL, DeviceKernel, Launch, Operation, Recipe};
use std::sync::Arc;

#[derive(Debug)]
pub struct CudaKernel {
    context: Arc<Context>,
    form: KernelForm,
}

#[derive(Debug)]
enum KernelForm {
    /// The host's.
    Custom(Custom),
    Builtin(CudaBuiltin),
}

/// For calls that must not need any: each launch would need a ticket of its own.
struct NoTickets;

impl FaultTickets for NoTickets {
    fn ticket(&self, _name: &str, _check: &Check<'_>) -> Result<FaultTicket> {
        Err(Error::internal("a launch that may find a failure is not the same each time"))
    }
}

impl CudaKernel {
    /// The kernel of a call, which must be one of this context.
    pub(super) fn of<'a>(launch: &Launch<'a>, context: &Arc<Context>) -> Result<&'a CudaKernel> {
        let kernel = downcast::<CudaKernel>(&**launch.kernel);
        let kernel = kernel.filter(|kernel| Arc::ptr_eq(&kernel.context, context));
        kernel.ok_or_else(|| Error::internal("a device was given a kernel of another one's"))
    }

    pub(super) fn new(
        context: &Arc<Context>,
        facts: &CudaFacts,
        kernels: &Arc<Kernels>,
        products: &Products,
        recipe: &Recipe<'_>,
    ) -> Result<CudaKernel> {
        let form = match recipe.operation {
            // SAFETY: the attributes that `ffi` got for this operation, and has checked.
            Operation::Named(CUDA_KERNEL, desc) => KernelForm::Custom(unsafe { Custom::new(context, facts, desc) }?),
            _ => KernelForm::Builtin(CudaBuiltin::new(kernels, products, recipe)?),
        };
        Ok(CudaKernel { context: Arc::clone(context), form })
    }

    /// Passes a call's parts to `issue`, in order. `takes_products`: library products may be among them. Allocates
    /// nothing, except for a library's plans of new shapes.
    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        tickets: &dyn FaultTickets,
        takes_products: bool,
        issue: &mut dyn FnMut(CallPart<'_>) -> Result<()>,
    ) -> Result<()> {
        match &self.form {
            KernelForm::Custom(custom) => custom.launches(launch, issue),
            KernelForm::Builtin(builtin) => builtin.launches(launch, tickets, takes_products, issue),
        }
    }

    /// Passes the product that a call begins with to `issue`, if a library does it.
    pub(super) fn product(
        &self,
        launch: &Launch<'_>,
        issue: &mut dyn FnMut(&Prepared<'_>) -> Result<()>,
    ) -> Result<()> {
        match &self.form {
            KernelForm::Custom(_) => Ok(()),
            KernelForm::Builtin(builtin) => builtin.product(launch, issue).map(|_| ()),
        }
    }

    /// Puts a call's launches into `ready`, if they are weir's own and the same each time.
    pub(super) fn prepare(&self, launch: &Launch<'_>, ready: &mut Ready) -> Result<()> {
        self.launches(launch, &NoTickets, true, &mut |piece| match piece {
            CallPart::Grid(grid, arguments) => {
                ready.push(grid, &arguments);
                Ok(())
            }
            CallPart::Product(_) => Err(Error::internal("a library's product is not launched by weir")),
        })
    }

    pub(super) fn issue(&self, stream: &CudaStream, launch: &Launch<'_>) -> Result<()> {
        self.launches(launch, stream, stream.takes_products(), &mut |piece| match piece {
            CallPart::Grid(grid, arguments) => stream.launch_on(&launch.name, grid, arguments.places),
            CallPart::Product(prepared) => prepared.issue(stream, &launch.name),
        })
    }
}

impl DeviceKernel for CudaKernel {
    fn in_place(&self) -> bool {
        match &self.form {
            // The host's declaration holds for this form.
            KernelForm::Custom(_) => true,
            KernelForm::Builtin(builtin) => builtin.in_place(),
        }
    }
}
