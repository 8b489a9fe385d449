//! Kernels in the form that a CUDA device runs: what the driver is to launch for a call.

use super::builtin::{Builtin, Modules};
use super::context::Context;
use super::custom::Custom;
use super::facts::Facts;
use super::stream::{Arguments, CudaStream, Grid};
use crate::base::Result;
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

impl CudaKernel {
    pub(super) fn new(
        context: &Arc<Context>,
        facts: &Facts,
        modules: &Modules,
        recipe: &Recipe<'_>,
    ) -> Result<CudaKernel> {
        let form = match recipe.operation {
            // SAFETY: what `ffi` was given for this operation, and has checked to be as documented.
            CUDA_KERNEL => Form::Custom(unsafe { Custom::new(context, facts, recipe.attributes) }?),
            _ => Form::Builtin(Builtin::new(modules, recipe)?),
        };
        Ok(CudaKernel { context: Arc::clone(context), form })
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Has `issue` launch what a call takes, one after the other. Allocates nothing.
    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        issue: &mut dyn FnMut(&Grid, Arguments<'_>) -> Result<()>,
    ) -> Result<()> {
        match &self.form {
            Form::Custom(custom) => custom.launches(launch, issue),
            Form::Builtin(builtin) => builtin.launches(launch, issue),
        }
    }

    pub(super) fn issue(&self, stream: &CudaStream, launch: &Launch<'_>) -> Result<()> {
        self.launches(launch, &mut |grid, arguments| stream.launch_on(&launch.name, grid, arguments))
    }
}

impl DeviceKernel for CudaKernel {}
