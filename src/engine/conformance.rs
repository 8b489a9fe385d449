//! The conformance kit with streams: all probes of `threadpool::conformance`, and of waits inside of tasks.
#![forbid(unsafe_code)]

use crate::abi::WEIR_TIMEOUT_INFINITE;
use crate::base::{Code, Result};
use crate::kernel::Task;
use crate::stream::{Account, Executor, Queue, QueueAttr, QueueItem};
use crate::threadpool::HostVtable;
use crate::threadpool::conformance::{self, Options, Outcome, PoolSubject, ProbeBench, ReportLine};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Examines a pool, releases it, and gives one line for each clause, and then the notes.
pub fn examine(vtable: HostVtable, options: Options) -> Vec<ReportLine> {
    let subject = conformance::begin(vtable, options);
    waits(&subject);
    conformance::finish(subject)
}

/// A stream's task.
struct ClosureTask(Box<dyn Fn() -> Result<()> + Send + Sync>);

impl Task for ClosureTask {
    fn run(&self) -> Result<()> {
        (self.0)()
    }

    fn adopt(&self) {}
}

fn work(run: impl Fn() -> Result<()> + Send + Sync + 'static) -> QueueItem {
    QueueItem::Task(Arc::new(ClosureTask(Box::new(run))))
}

/// How waits inside of tasks ended.
#[derive(Debug, Default)]
struct Ends {
    done: AtomicU64,
    refused: AtomicU64,
}

fn waits(subject: &PoolSubject) {
    subject.probe("W11", "a wait on a thread of the pool helps or refuses", |bench| {
        bench.step("a wait for a stream, inside the work of another one,");
        let ends = Arc::new(Ends::default());
        for _ in 0..bench.rounds() {
            if let Err(wrong) = wait_inside(bench, &ends) {
                return Outcome::Fail(wrong);
            }
        }
        let (done, refused) = (ends.done.load(Relaxed), ends.refused.load(Relaxed));
        if done + refused == 0 {
            return Outcome::NotMet("no wait was made".to_owned());
        }
        Outcome::Pass(format!("{done} waits ended, {refused} were refused"))
    });
}

/// One stream's work waits for another stream on the same pool.
fn wait_inside(bench: &ProbeBench, ends: &Arc<Ends>) -> Result<(), String> {
    let account = Account::open("conformance".to_owned());
    let stream = |name: &str| {
        let attr = QueueAttr {
            name: name.to_owned(),
            asynchronous: true,
            pool: bench.pool(), // Usually longer than the awaited work.
            spin_ns: 500_000,
            priority: 0,
        };
        Queue::create(attr, Executor::Host, Arc::clone(&account)).map_err(|error| error.message().to_owned())
    };
    let (outer, inner) = (stream("outer")?, stream("inner")?);
    let slow = || {
        std::thread::sleep(Duration::from_micros(50));
        Ok(())
    };
    let (awaited, ended) = (Arc::clone(&inner), Arc::clone(ends));
    let wait = move || match awaited.synchronize(WEIR_TIMEOUT_INFINITE) {
        Ok(()) => {
            ended.done.fetch_add(1, Relaxed);
            Ok(())
        }
        Err(error) if error.code() == Code::FailedPrecondition => {
            ended.refused.fetch_add(1, Relaxed);
            Ok(())
        }
        Err(error) => Err(error),
    };
    let submitted = inner.submit(work(slow)).and_then(|()| outer.submit(work(wait)));
    submitted.map_err(|error| error.message().to_owned())?;
    for queue in [outer, inner] {
        let waited = queue.wait(queue.submitted(), bench.deadline());
        waited.map_err(|_| format!("the work of a stream did not end in {}", bench.budget()))?;
        if let Some(error) = queue.error() {
            return Err(error.message().to_owned());
        }
    }
    Ok(())
}
