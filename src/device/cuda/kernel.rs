//! Kernels in the form that a CUDA device runs: what the driver is to launch for a call.

use super::context::Context;
use super::custom::Custom;
use super::facts::Facts;
use super::stream::{Arguments, CudaStream, Grid};
use crate::base::{Code, Error, Result};
use crate::device::{CUDA_KERNEL, DeviceKernel, Launch, Recipe};
use std::sync::Arc;

#[derive(Debug)]
pub struct CudaKernel {
    context: Arc<Context>,
    custom: Custom,
}

impl CudaKernel {
    pub(super) fn new(context: &Arc<Context>, facts: &Facts, recipe: &Recipe<'_>) -> Result<CudaKernel> {
        let text = match recipe.operation {
            CUDA_KERNEL => {
                // SAFETY: what `ffi` was given for this operation, and has checked to be as documented.
                let custom = unsafe { Custom::new(context, facts, recipe.attributes) }?;
                return Ok(CudaKernel { context: Arc::clone(context), custom });
            }
            "" => "a CUDA device runs no functions of the host's".to_owned(),
            operation => format!("a CUDA device has no kernel '{operation}'"),
        };
        Err(Error::new(Code::Unimplemented, text))
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
        self.custom.launches(launch, issue)
    }

    pub(super) fn issue(&self, stream: &CudaStream, launch: &Launch<'_>) -> Result<()> {
        self.launches(launch, &mut |grid, arguments| stream.launch_on(&launch.name, grid, arguments))
    }
}

impl DeviceKernel for CudaKernel {}
