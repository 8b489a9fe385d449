//! Two domains on one device: each waits for its own streams, and is told of their failures alone. Other tests use
//! other engines meanwhile, which nobody here notices.

use super::*;
use weir_core::engine::{Domain, DomainId, Extent, sync_all, sync_each};

struct User {
    domain: Ref<Domain>,
    engine: Ref<Engine>,
    stream: Ref<Stream>,
    x: Ref<Tensor>,
}

impl User {
    fn new(name: &str, kind: DeviceKind) -> User {
        let domain = Domain::create(name).unwrap();
        let mut attr = EngineAttr::new(kind);
        attr.domain = Some(domain.clone());
        let engine = Engine::create(kind, 0, Some(&attr)).unwrap();
        let stream = Stream::create(engine.clone(), StreamAttr::new(kind)).unwrap();
        let x = Tensor::create(engine.clone(), desc()).unwrap();
        User { domain, engine, stream, x }
    }

    fn fill(&self) {
        self.stream.enqueue_fill(self.x.clone(), 1).unwrap();
    }

    fn extent(&self) -> Extent {
        Extent::Domain(DomainId::of(Some(&self.domain)))
    }

    fn wait(&self, timeout_ns: u64) -> Result<()> {
        sync_all(self.extent(), timeout_ns)
    }
}

fn code(result: Result<()>) -> Option<Code> {
    result.err().map(|error| error.code())
}

#[test]
fn a_domain_waits_for_its_own_streams_of_a_device() {
    let (kind, device) = device("two-users");
    let (left, right) = (User::new("left", kind), User::new("right", kind));
    left.fill();
    right.fill();
    assert_eq!(code(left.wait(0)), Some(Code::DeadlineExceeded));
    // Queue 1 is the right one's.
    let right_works = || while device.step(1) {};
    let (whole, each) = (right.extent(), right.extent());
    wait_while(right_works, move || sync_all(whole, FOREVER)).unwrap();
    let synced = wait_while(right_works, move || sync_each(each, FOREVER, 8)).unwrap().unwrap();
    assert!(synced.len() == 1 && synced[0].result.is_ok());
    assert_eq!(synced[0].engine, format!("engine {}/two-users:0", right.domain.name()));
    assert!(!left.stream.is_idle() && right.stream.is_idle());
    assert_eq!(code(left.wait(0)), Some(Code::DeadlineExceeded));
    let whole = left.extent();
    wait_while(|| device.run(), move || sync_all(whole, FOREVER)).unwrap();
}

#[test]
fn a_device_fails_for_the_domain_whose_work_it_was() {
    let (kind, device) = device("one-fails");
    let (left, right) = (User::new("fails", kind), User::new("goes-on", kind));
    let run = || device.run();
    device.fail_next(0, "a bit has tipped over");
    left.fill();
    right.fill();
    let (of_left, of_right) = (left.extent(), right.extent());
    assert_eq!(code(wait_while(run, move || sync_all(of_right, FOREVER))), None);
    let error = wait_while(run, move || sync_all(of_left, FOREVER)).unwrap_err();
    let place = format!("engine {}/one-fails:0: stream ", left.domain.name());
    assert!(error.message().starts_with(&place), "{error}");
    assert_eq!(code(left.wait(FOREVER)), None);
    assert_eq!(code(left.engine.synchronize(FOREVER)), Some(Code::DataLoss));
    assert_eq!(code(right.engine.synchronize(FOREVER)), None);
    assert_eq!(code(left.stream.synchronize(FOREVER)), Some(Code::DataLoss));
    assert_eq!(code(right.stream.synchronize(FOREVER)), None);
}

#[test]
fn a_device_that_is_lost_is_lost_for_both() {
    let (kind, device) = device("both-lose");
    let (left, right) = (User::new("one", kind), User::new("another", kind));
    left.fill();
    right.fill();
    device.lose();
    for user in [left, right] {
        assert_eq!(code(user.wait(FOREVER)), Some(Code::DeviceLost));
        assert_eq!(code(user.wait(FOREVER)), None);
    }
}
