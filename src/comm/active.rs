//! An operation under way.
#![forbid(unsafe_code)]

use super::lanes::TracedOperation;
use super::request::Request;
use super::transport::{Token, Transport, TransportFailure};
use crate::base::Result;
use smallvec::SmallVec;
use std::sync::Arc;

pub struct Active {
    pub request: Arc<Request>,
    pub phase: usize,
    /// Of the phase, what is not over.
    pub tokens: SmallVec<[Token; 4]>,
    pub since_ns: u64,
    /// Its number among the collectives; 0 for a message.
    pub sequence: u64,
    pub traced: Option<TracedOperation>,
}

impl Active {
    pub fn start_phase(&mut self, transport: &dyn Transport) -> Result<(), (String, TransportFailure)> {
        let Some(phase) = self.request.phases().get(self.phase) else { return Ok(()) };
        for operation in &phase.operations {
            let started = transport.start(operation);
            self.tokens.push(started.map_err(|failure| (self.request.label.clone(), failure))?);
        }
        Ok(())
    }
}
