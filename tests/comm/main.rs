//! Communicators over ranks in this process: each operation, random programs of several ranks beside an interpreter of
//! all, and what becomes of runs when ranks differ, fail, hang or cancel.

#[path = "../kit/mod.rs"]
mod kit;

mod checks;
mod conformance;
mod ends;
mod lent;
mod operations;
mod programs;
mod told;
mod traced;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_core::abi::{weir_comm_flags, weir_comm_op_value as Op, weir_comm_reduction_value as Reduction};
use weir_core::base::{Code, Ref, Result};
use weir_core::comm::local::LocalTransport;
use weir_core::comm::transport::{CommOperation, Message, Token, Transport, TransportFailure, TransportInfo};
use weir_core::comm::{CommOptions, CommSettings, Communication, Communicator, StreamCommunication};
use weir_core::engine::{BoundKernel, KernelOptions};
use weir_core::kernel::Kernel;

/// A transport that shows less of itself than it has.
struct Poor {
    inner: LocalTransport,
    info: TransportInfo,
    is_blind: bool,
    /// Control messages up to the one that fails.
    sends_left: AtomicU64,
}

impl Transport for Poor {
    fn info(&self) -> &TransportInfo {
        &self.info
    }
    fn start(&self, operation: &CommOperation) -> Result<Token, TransportFailure> {
        assert!(self.info.takes(operation.op), "{:?} was not offered", operation.op);
        let bytes = [&operation.send, &operation.recv].map(|part| part.as_ref().map_or(0, |part| part.bytes.len()));
        assert!(bytes.into_iter().all(|bytes| bytes as u64 <= self.info.max_bytes), "{bytes:?} bytes at once");
        if self.is_blind {
            let reduction = operation.reduction.map(|_| Reduction::WEIR_COMM_SUM);
            return self.inner.start(&CommOperation { reduction, ..operation.clone() });
        }
        self.inner.start(operation)
    }
    fn test(&self, token: Token) -> Result<bool, TransportFailure> {
        self.inner.test(token)
    }
    fn control_send(&self, peer: usize, message: &Message) -> Result<(), TransportFailure> {
        if self.sends_left.fetch_sub(1, Relaxed) == 1 {
            return Err(TransportFailure::new(Code::Unavailable, "no room for a message"));
        }
        self.inner.control_send(peer, message)
    }
    fn control_poll(&self) -> Result<Option<(usize, Message)>, TransportFailure> {
        self.inner.control_poll()
    }
    fn abort(&self) {
        self.inner.abort();
    }
    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        self.inner.duplicate()
    }
    fn split(&self, color: i32, key: i32) -> Result<Option<Arc<dyn Transport>>> {
        self.inner.split(color, key)
    }
    fn recover(&self) -> Result<Arc<dyn Transport>> {
        self.inner.recover()
    }
}

/// What a transport offers, of what a local one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    All,
    /// Sends and receives, of at most so many bytes.
    Messages(u64),
    /// No reductions.
    NoReductions,
    /// Memory of what was given up stays in use.
    Keeps,
    /// It does not see that ranks reduce in different ways, as most do not.
    Blind,
    /// The control message with this number, from 1 on, fails.
    Fails(u64),
    /// It is for the thread that creates the communicator.
    OneThread,
}

fn poor(inner: LocalTransport, offer: Offer) -> Arc<Poor> {
    let mut info = inner.info().clone();
    match offer {
        Offer::All | Offer::Blind | Offer::Fails(_) => {}
        Offer::OneThread => info.flags |= weir_comm_flags::WEIR_COMM_ONE_THREAD as u64,
        Offer::Messages(most) => {
            info.on_host.ops = 1 << Op::WEIR_COMM_SEND as u32 | 1 << Op::WEIR_COMM_RECV as u32;
            info.max_bytes = most;
        }
        Offer::NoReductions => info.on_host.reductions = 0,
        Offer::Keeps => info.flags &= !(weir_comm_flags::WEIR_COMM_ABORT_RELEASES as u64),
    }
    let sends_left = AtomicU64::new(if let Offer::Fails(number) = offer { number } else { 0 });
    Arc::new(Poor { inner, info, is_blind: offer == Offer::Blind, sends_left })
}

fn ranks(size: usize, offer: Offer, options: &CommOptions) -> Vec<Ref<Communicator>> {
    let create = |inner: LocalTransport| Communicator::create(poor(inner, offer), options.clone()).unwrap();
    LocalTransport::create(size).into_iter().map(create).collect()
}

fn named(name: &str) -> CommOptions {
    CommOptions { name: name.to_owned(), ..CommOptions::default() }
}

const PLAIN: CommSettings = CommSettings {
    op: Op::WEIR_COMM_BARRIER,
    reduction: None,
    peer: 0,
    tag: 0,
    desc: None,
    is_deterministic: false,
    num_tensors: 1,
};

const SUM: CommSettings =
    CommSettings { op: Op::WEIR_COMM_ALL_REDUCE, reduction: Some(Reduction::WEIR_COMM_SUM), ..PLAIN };

fn kernel(comm: &Ref<Communicator>, settings: CommSettings) -> Ref<BoundKernel> {
    let kernel: Arc<dyn Kernel> = Arc::new(StreamCommunication(Communication::new(comm.clone(), settings, None)));
    BoundKernel::create(kit::run::cpu(), kernel, &KernelOptions::default()).unwrap()
}

/// Calls `f` on each rank in a thread of its own; the results in rank order. A rank that does not end within a minute
/// ends the test.
fn on_each<T: Send + 'static>(
    comms: &[Ref<Communicator>],
    f: impl Fn(usize, Ref<Communicator>) -> T + Send + Sync + 'static,
) -> Vec<T> {
    on_threads(comms.to_vec(), f)
}

/// The same, with what each rank is given.
fn on_threads<I: Send + 'static, T: Send + 'static>(
    given: Vec<I>,
    f: impl Fn(usize, I) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let f = Arc::new(f);
    let threads: Vec<_> = given
        .into_iter()
        .enumerate()
        .map(|(rank, given)| {
            let f = f.clone();
            let (send, receive) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                let result = f(rank, given);
                let _ = send.send(result);
            });
            (thread, receive)
        })
        .collect();
    threads
        .into_iter()
        .enumerate()
        .map(|(rank, (thread, receive))| match receive.recv_timeout(Duration::from_secs(60)) {
            Ok(result) => {
                thread.join().unwrap();
                result
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("rank {rank} hangs"),
            Err(_) => std::panic::resume_unwind(thread.join().unwrap_err()),
        })
        .collect()
}
