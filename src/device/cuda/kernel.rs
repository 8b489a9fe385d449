//! Kernels in the form that a CUDA device runs: what the driver is to launch for a call.

use super::blas::{Prepared, Products};
use super::builtin::{Builtin, Kernels};
use super::context::Context;
use super::custom::Custom;
use super::downcast::downcast;
use super::facts::Facts;
use super::inbox::{Ticket, Tickets};
use super::piece::Piece;
use super::plan::Check;
use super::ready::Ready;
use super::stream::CudaStream;
use crate::base::{Error, Result};
use crate::device::{CUDA_KERNEL, DeviceKernel, Launch, Recipe};
use std::sync::Arc;

#[derive(Debug)]
pub struct CudaKernel {
    context: Arc<Context>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// Of the host's.
    Custom(Custom),
    Builtin(Builtin),
}

/// For calls that are to need none: each launch has a ticket of its own.
struct NoTickets;

impl Tickets for NoTickets {
    fn ticket(&self, _name: &str, _check: &Check<'_>) -> Result<Ticket> {
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
        facts: &Facts,
        kernels: &Arc<Kernels>,
        products: &Products,
        recipe: &Recipe<'_>,
    ) -> Result<CudaKernel> {
        let form = match recipe.operation {
            // SAFETY: what `ffi` was given for this operation, and has checked to be as documented.
            CUDA_KERNEL => Form::Custom(unsafe { Custom::new(context, facts, recipe.attributes) }?),
            _ => Form::Builtin(Builtin::new(kernels, products, recipe)?),
        };
        Ok(CudaKernel { context: Arc::clone(context), form })
    }

    /// Has `issue` take what a call is made of, one after the other. `takes_products`: a library's
    /// may be among it. Allocates nothing but what a library remembers of new shapes.
    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        tickets: &dyn Tickets,
        takes_products: bool,
        issue: &mut dyn FnMut(Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        match &self.form {
            Form::Custom(custom) => custom.launches(launch, issue),
            Form::Builtin(builtin) => builtin.launches(launch, tickets, takes_products, issue),
        }
    }

    /// Has `issue` take the product that a call begins with, if it is one of a library's.
    pub(super) fn product(
        &self,
        launch: &Launch<'_>,
        issue: &mut dyn FnMut(&Prepared<'_>) -> Result<()>,
    ) -> Result<()> {
        match &self.form {
            Form::Custom(_) => Ok(()),
            Form::Builtin(builtin) => builtin.product(launch, issue).map(|_| ()),
        }
    }

    /// Puts a call's launches into `ready`, if they are the same each time, and weir's own.
    pub(super) fn prepare(&self, launch: &Launch<'_>, ready: &mut Ready) -> Result<()> {
        self.launches(launch, &NoTickets, true, &mut |piece| match piece {
            Piece::Grid(grid, arguments) => {
                ready.push(grid, &arguments);
                Ok(())
            }
            Piece::Product(_) => Err(Error::internal("a library's product is not launched by weir")),
        })
    }

    pub(super) fn issue(&self, stream: &CudaStream, launch: &Launch<'_>) -> Result<()> {
        self.launches(launch, stream, stream.takes_products(), &mut |piece| match piece {
            Piece::Grid(grid, arguments) => stream.launch_on(&launch.name, grid, arguments.places),
            Piece::Product(prepared) => prepared.issue(stream, &launch.name),
        })
    }
}

impl DeviceKernel for CudaKernel {
    fn in_place(&self) -> bool {
        match &self.form {
            // What the host says of it is said of this form.
            Form::Custom(_) => true,
            Form::Builtin(builtin) => builtin.in_place(),
        }
    }
}
