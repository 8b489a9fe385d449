//! Begun communications of runs, until the node comes that waits for them.
#![forbid(unsafe_code)]

use super::request::Request;
use crate::sync::Mutex;
use std::sync::Arc;

#[derive(Default)]
struct TicketTable {
    requests: Vec<Option<Arc<Request>>>,
    free: Vec<usize>,
}

#[derive(Default)]
pub struct RequestTickets(Mutex<TicketTable>);

impl RequestTickets {
    /// A number by which another node finds the request.
    pub fn give(&self, request: Arc<Request>) -> usize {
        let TicketTable { requests, free } = &mut *self.0.lock();
        if let Some(ticket) = free.pop() {
            requests[ticket] = Some(request);
            return ticket;
        }
        requests.push(Some(request));
        requests.len() - 1
    }

    /// The request of a ticket, which is free then.
    pub fn take(&self, ticket: usize) -> Option<Arc<Request>> {
        let TicketTable { requests, free } = &mut *self.0.lock();
        let request = requests.get_mut(ticket)?.take()?;
        free.push(ticket);
        Some(request)
    }
}
