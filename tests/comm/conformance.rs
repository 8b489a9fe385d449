//! The conformance kit finds what is wrong with a transport: each defect is named by its clause, and transports without
//! a defect pass.

use super::*;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use weir_core::comm::conformance::examine;
use weir_core::comm::transport::Part;
use weir_core::threadpool::conformance::{ClauseVerdict, Options, ReportLine};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// A byte beside a message is written.
    Overruns,
    /// The last byte of large messages is not there.
    Shortens,
    /// What is sent is changed.
    ChangesInputs,
    /// Messages of nothing never arrive.
    LosesEmpty,
    /// All tags are one.
    MixesTags,
    /// Receives are over when they begin.
    IsEarly,
    /// A send waits, in `start`, until a while is over.
    Blocks,
    /// Sums of small integers are maxima.
    SumsWrongly,
    /// A second collective is refused while one is under way.
    OneAtATime,
    /// Barriers are over at once.
    NoBarrier,
    /// Some control messages are lost, or come twice.
    LosesControl,
    DoublesControl,
    /// A duplicate has the messages of the first one.
    SharesMessages,
    /// Keys of a split are ignored.
    IgnoresKeys,
    /// It writes to memory that abort has released.
    WritesLate,
}

struct Defective {
    inner: Arc<dyn Transport>,
    info: TransportInfo,
    defect: Defect,
    /// Tokens of what is over as it begins.
    over: Mutex<BTreeSet<usize>>,
    /// Collectives under way.
    open: Mutex<BTreeSet<usize>>,
    control: AtomicUsize,
    received: Mutex<Option<Part>>,
}

impl Defective {
    fn create(inner: Arc<dyn Transport>, defect: Defect) -> Arc<Defective> {
        let info = inner.info().clone();
        Arc::new(Defective {
            inner,
            info,
            defect,
            over: Mutex::default(),
            open: Mutex::default(),
            control: AtomicUsize::new(0),
            received: Mutex::default(),
        })
    }

    /// Adds one to the byte at this distance from a part's end.
    fn spoil(part: &Part, from_end: usize) {
        let at = part.block.at(&part.bytes).wrapping_add(part.bytes.len()).wrapping_sub(from_end);
        // SAFETY: parts of the kit have margins.
        unsafe { *at = (*at).wrapping_add(1) };
    }
}

impl Transport for Defective {
    fn info(&self) -> &TransportInfo {
        &self.info
    }
    fn start(&self, operation: &CommOperation) -> Result<Token, TransportFailure> {
        let mut operation = operation.clone();
        let is_message = matches!(operation.op, Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV);
        let over = || Ok(Token(usize::MAX));
        match self.defect {
            Defect::LosesEmpty if operation.op == Op::WEIR_COMM_SEND && operation.count == 0 => return over(),
            Defect::MixesTags if is_message => operation.tag = 0,
            Defect::Blocks if operation.op == Op::WEIR_COMM_SEND && operation.count > 100_000 => {
                std::thread::sleep(Duration::from_millis(350));
            }
            Defect::SumsWrongly if operation.dtype == weir_core::base::dtype::S8 => {
                operation.reduction = operation.reduction.map(|_| Reduction::WEIR_COMM_MAX);
            }
            Defect::NoBarrier if operation.op == Op::WEIR_COMM_BARRIER => return over(),
            Defect::OneAtATime if !is_message && !self.open.lock().unwrap().is_empty() => {
                return Err(TransportFailure::new(weir_core::base::Code::ResourceExhausted, "one at a time"));
            }
            _ => {}
        }
        if operation.op == Op::WEIR_COMM_RECV {
            *self.received.lock().unwrap() = operation.recv.clone();
        }
        let token = self.inner.start(&operation)?;
        if let (Defect::ChangesInputs, Some(part)) = (self.defect, &operation.send)
            && part.bytes.len() == 1000
        {
            Defective::spoil(part, 5);
        }
        if !is_message {
            self.open.lock().unwrap().insert(token.0);
        }
        if self.defect == Defect::IsEarly && operation.op == Op::WEIR_COMM_RECV {
            self.over.lock().unwrap().insert(token.0);
        }
        Ok(token)
    }
    fn test(&self, token: Token) -> Result<bool, TransportFailure> {
        if token.0 == usize::MAX || self.over.lock().unwrap().remove(&token.0) {
            return Ok(true);
        }
        let is_over = self.inner.test(token)?;
        if is_over {
            self.open.lock().unwrap().remove(&token.0);
            if let Some(part) = &*self.received.lock().unwrap() {
                match self.defect {
                    Defect::Overruns if part.bytes.len() == 64 => Defective::spoil(part, 0),
                    Defect::Shortens if part.bytes.len() > 10_000 => Defective::spoil(part, 1),
                    _ => {}
                }
            }
        }
        Ok(is_over)
    }
    fn control_send(&self, peer: usize, message: &Message) -> Result<(), TransportFailure> {
        let number = self.control.fetch_add(1, Relaxed);
        if self.defect != Defect::LosesControl || number % 7 != 3 {
            self.inner.control_send(peer, message)?;
        }
        if self.defect == Defect::DoublesControl && number == 39 {
            self.inner.control_send(peer, message)?;
        }
        Ok(())
    }
    fn control_poll(&self) -> Result<Option<(usize, Message)>, TransportFailure> {
        self.inner.control_poll()
    }
    fn abort(&self) {
        if self.defect != Defect::WritesLate {
            self.inner.abort();
        }
    }
    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        if self.defect == Defect::SharesMessages {
            return Ok(Arc::clone(&self.inner));
        }
        Ok(Defective::create(self.inner.duplicate()?, self.defect))
    }
    fn split(&self, color: i32, key: i32) -> Result<Option<Arc<dyn Transport>>> {
        let key = if self.defect == Defect::IgnoresKeys { self.info.rank as i32 } else { key };
        self.inner.split(color, key)
    }
    fn recover(&self) -> Result<Arc<dyn Transport>> {
        self.inner.recover()
    }
}

/// The lines of all ranks.
fn report(transports: Vec<Arc<dyn Transport>>) -> Vec<ReportLine> {
    let options = Options::default();
    let ranks: Vec<_> =
        transports.into_iter().map(|transport| std::thread::spawn(move || examine(&*transport, options))).collect();
    ranks.into_iter().flat_map(|rank| rank.join().unwrap()).collect()
}

fn failures(lines: &[ReportLine]) -> Vec<(&'static str, String)> {
    let failed = lines.iter().filter(|line| line.verdict == ClauseVerdict::Fail);
    failed.map(|line| (line.clause, line.text.clone())).collect()
}

#[test]
fn each_defect_is_named() {
    let defects = [
        (Defect::None, None),
        (Defect::Overruns, Some(("T1", "bytes beside the 64 of it were written"))),
        (Defect::Shortens, Some(("T1", "byte 65535 of 65536 is"))),
        (Defect::ChangesInputs, Some(("T1", "a message of 1000 bytes to rank"))),
        (Defect::LosesEmpty, Some(("T1", "a message of 0 bytes from rank"))),
        (Defect::MixesTags, Some(("T2", "expected"))),
        (Defect::IsEarly, Some(("T1", "expected"))),
        (Defect::Blocks, Some(("T4", "while the other rank slept"))),
        (Defect::SumsWrongly, Some(("T5", "s8"))),
        (Defect::OneAtATime, Some(("T6", "one at a time"))),
        (Defect::NoBarrier, Some(("T7", "a barrier is over before it can be"))),
        (Defect::LosesControl, Some(("T8", "rank"))),
        (Defect::DoublesControl, Some(("T8", "one more has come"))),
        (Defect::SharesMessages, Some(("T9", "expected"))),
        (Defect::IgnoresKeys, Some(("T10", "is rank"))),
        (Defect::WritesLate, Some(("T11", "given up"))),
    ];
    // They mostly wait: some at once.
    for some in defects.chunks(4) {
        let start = |&(defect, expected)| std::thread::spawn(move || look_for(defect, expected));
        let threads: Vec<_> = some.iter().map(start).collect();
        let results: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
        results.into_iter().for_each(|result| result.unwrap());
    }
}

fn look_for(defect: Defect, expected: Option<(&str, &str)>) {
    let ranks = LocalTransport::create(3).into_iter();
    let lines = report(ranks.map(|rank| Defective::create(Arc::new(rank), defect) as _).collect());
    let failed = failures(&lines);
    let Some((clause, text)) = expected else { return assert!(failed.is_empty(), "{failed:#?}") };
    assert!(failed.iter().any(|(of, said)| *of == clause && said.contains(text)), "{defect:?}: {failed:#?}");
    // Unless it hangs, it is the only one that is told.
    if !lines.iter().any(|line| line.verdict == ClauseVerdict::NotChecked) {
        assert!(failed.iter().all(|(of, _)| *of == clause), "{defect:?}: {failed:#?}");
    }
}

/// Transports with and without each of the functions that they may leave out.
#[test]
fn transports_without_a_defect_pass() {
    let offers = [Offer::All, Offer::Messages(u64::MAX), Offer::Messages(64), Offer::NoReductions, Offer::Keeps];
    for size in [1, 2, 3] {
        for some in offers.chunks(3) {
            let start = |&offer| std::thread::spawn(move || passes(size, offer));
            let threads: Vec<_> = some.iter().map(start).collect();
            let results: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
            results.into_iter().for_each(|result| result.unwrap());
        }
    }
}

fn passes(size: usize, offer: Offer) {
    let lines = report(LocalTransport::create(size).into_iter().map(|inner| poor(inner, offer) as _).collect());
    assert!(failures(&lines).is_empty(), "{size} ranks, {offer:?}: {:#?}", failures(&lines));
    let passed = lines.iter().filter(|line| line.verdict == ClauseVerdict::Pass).count();
    assert!(size == 1 || passed >= 6 * size, "{size} ranks, {offer:?}: {passed} have passed");
}
