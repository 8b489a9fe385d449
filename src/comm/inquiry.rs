//! A limit has passed: the other ranks are asked how far they have come.
#![forbid(unsafe_code)]

use super::request::Request;
use super::transport::TransportInfo;
use std::sync::Arc;

pub struct Inquiry {
    /// The late operation, and its number among the collectives; 0 for a message.
    late: Arc<Request>,
    sequence: u64,
    until_ns: u64,
    rank: usize,
    can_ask: bool,
    answers: Vec<Option<u64>>,
}

impl Inquiry {
    pub fn new(info: &TransportInfo, late: &Arc<Request>, sequence: u64, until_ns: u64) -> Inquiry {
        let (late, answers) = (Arc::clone(late), vec![None; info.size]);
        Inquiry { late, sequence, until_ns, rank: info.rank, can_ask: info.has_control, answers }
    }

    /// Whether this is the late operation.
    pub fn is_about(&self, request: &Arc<Request>) -> bool {
        Arc::ptr_eq(&self.late, request)
    }

    /// A rank has begun so many collectives.
    pub fn answer(&mut self, peer: usize, sequence: u64) {
        self.answers[peer] = Some(sequence);
    }

    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    fn others(&self) -> impl Iterator<Item = (usize, Option<u64>)> {
        self.answers.iter().copied().enumerate().filter(|(peer, _)| *peer != self.rank)
    }

    /// Whether all have answered, or have had the time to.
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns || self.answers.len() > 1 && self.others().all(|(_, answer)| answer.is_some())
    }

    /// The ranks that it waits for, as far as that is known.
    pub fn verdict(&self, limit_ns: u64) -> String {
        let silent: Vec<String> =
            self.others().filter(|(_, answer)| answer.is_none()).map(|(peer, _)| peer.to_string()).collect();
        let why = match self.others().filter_map(|(peer, answer)| Some((answer?, peer))).min() {
            _ if !self.can_ask => "the transport cannot ask the other ranks".to_owned(),
            _ if silent.len() == 1 => format!("rank {} did not answer", silent[0]),
            _ if !silent.is_empty() => format!("ranks {} did not answer", silent.join(", ")),
            Some((sequence, peer)) if self.sequence > sequence => {
                format!("rank {peer} has come to collective {sequence}, and this is collective {}", self.sequence)
            }
            _ => "all ranks have come as far".to_owned(),
        };
        format!("{}: not over within {limit_ns} ns: {why}", self.late.label)
    }
}
