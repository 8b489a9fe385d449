//! Memory that products use besides their tensors.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::device::cuda::context::Handle;
use crate::device::cuda::memory::CudaMemory;
use crate::device::cuda::table::CUstream;
use std::sync::Arc;

/// Memory that one product at a time uses.
#[derive(Debug)]
pub(in crate::device::cuda) struct Workspace {
    memory: Arc<CudaMemory>,
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// It is freed in order behind this stream's work; without a stream, no issued work uses it then.
    stream: Option<Handle<CUstream>>,
}

impl Workspace {
    pub(in crate::device::cuda) fn new(
        memory: &Arc<CudaMemory>,
        bytes: usize,
        stream: Option<Handle<CUstream>>,
        what: &str,
    ) -> Result<Workspace> {
        let address = memory.allocate(bytes, what)?;
        Ok(Workspace { memory: Arc::clone(memory), address, bytes, stream })
    }

    /// No issued work uses it any more.
    pub(in crate::device::cuda) fn is_out_of_use(&mut self) {
        self.stream = None;
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.memory.deallocate_behind(self.address as u64, self.stream.map(|stream| stream.0));
    }
}
