//! Kernels that hand values on between graphs (`keep`), and where these are.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Ref, Result, dtype};
use crate::device::{Location, Transfer};
use crate::engine::BoundKernel;
use crate::graph::build::contents::Value;
use crate::kernel::{IssuedCall, Issuer, Kernel, KernelContext, Outputs};
use std::sync::Arc;

/// Where a port's value is.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum NeighbourPort {
    /// At a place of its own, in the engine's part of each frame.
    Own(usize),
    /// Where a value of the graph around is.
    Outer(Value),
}

/// A kernel that was put beside a branch or a loop, or into it, and where its outputs are.
pub(in crate::graph) struct Neighbour {
    pub kernel: Ref<BoundKernel>,
    pub role: NeighbourRole,
    pub ports: Vec<NeighbourPort>,
    /// The loop's variables that it reads, or hands on to the next iteration.
    pub variables: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum NeighbourRole {
    Enter,
    Port,
    Mark,
    Next,
    Leave,
}

/// Copies its inputs to its outputs, as many as there are of both.
pub(in crate::graph) struct Handed {
    pub role: NeighbourRole,
    pub num_inputs: usize,
    pub outputs: Vec<Desc>,
}

impl Kernel for Handed {
    fn name(&self) -> &str {
        match self.role {
            NeighbourRole::Enter => "enter",
            NeighbourRole::Port => "port",
            NeighbourRole::Mark => "mark",
            NeighbourRole::Next => "next",
            NeighbourRole::Leave => "leave",
        }
    }

    fn num_inputs(&self) -> usize {
        self.num_inputs
    }

    fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(self.outputs.clone())
    }

    fn is_issued(&self) -> bool {
        true
    }

    fn issuer(&self) -> Result<Option<Arc<dyn Issuer>>> {
        Ok(Some(Arc::new(HandOver { is_copied: matches!(self.role, NeighbourRole::Enter | NeighbourRole::Next) })))
    }

    fn is_relied_on(&self) -> bool {
        true
    }

    fn is_on_host(&self) -> bool {
        false
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Err(Error::internal("what an engine hands on was called"))
    }
}

/// A reader on the host, which does nothing with what an engine has made: when it runs the value has come to the host.
#[derive(Debug)]
pub(in crate::graph) struct HostReader;

impl Kernel for HostReader {
    fn name(&self) -> &str {
        "read on the host"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        0
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        1
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Ok(())
    }
}

struct HandOver {
    is_copied: bool,
}

impl Issuer for HandOver {
    fn issue(&self, &IssuedCall { stream, name, inputs, outputs, .. }: &IssuedCall<'_>) -> Result<()> {
        for (from, to) in inputs.iter().zip(outputs).filter(|_| self.is_copied) {
            let (address, bytes) = (to.data() as usize, to.bytes());
            if bytes > 0 && from.data() != to.data() {
                let from = Location::Device(from.data() as usize);
                stream.copy(&Transfer { name, to: Location::Device(address), from, bytes })?;
            }
        }
        Ok(())
    }
}

/// The stand-in on the host for a value that is an engine's.
pub(in crate::graph) fn nobodys_desc() -> Desc {
    Desc::new(dtype::S32, &[1])
}
