//! Waits for everything, in a process of their own: late failures of other tests would be theirs too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::time::Duration;
use weir::{Domain, Engine, EngineKind, Error, ErrorKind, Stream, sync_devices};

#[test]
fn everything_is_waited_for_and_each_failure_told_once() {
    let domain = Domain::new("mine").unwrap();
    let (cpu, mine) =
        (Engine::cpu().unwrap(), Engine::builder(EngineKind::Cpu).domain(&domain).name("late").build().unwrap());
    let (first, second) = (Stream::asynchronous(&cpu).unwrap(), Stream::asynchronous(&mine).unwrap());
    let (count, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    for stream in [&first, &second] {
        let (count, go) = (Arc::clone(&count), Arc::clone(&go));
        let wait = move || {
            while !go.load(Acquire) {
                std::thread::yield_now();
            }
            count.fetch_add(1, SeqCst);
            Ok(())
        };
        stream.task(wait).unwrap();
    }
    // A wait with no time polls.
    assert_eq!(sync_devices(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(domain.synchronize(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::DeadlineExceeded);
    go.store(true, Release);
    sync_devices(None).unwrap();
    assert_eq!(count.load(SeqCst), 2);

    second.task(|| Err(Error::new(ErrorKind::DataLoss, "gone"))).unwrap();
    let told = sync_devices(None).unwrap_err();
    assert!(told.kind() == ErrorKind::DataLoss && told.message().contains("mine/late"), "{told}");
    sync_devices(None).unwrap();
    assert_eq!(domain.synchronize(None).unwrap_err().kind(), ErrorKind::DataLoss);
    domain.synchronize(None).unwrap();
    // The caller inside of a task is a part of everything.
    let inside = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&inside);
    let wait = move || {
        let refused = sync_devices(None).unwrap_err().kind();
        seen.store(usize::from(refused == ErrorKind::FailedPrecondition), SeqCst);
        Ok(())
    };
    first.task(wait).unwrap();
    first.synchronize().unwrap();
    assert_eq!(inside.load(SeqCst), 1);
}
