//! A seed decides the order, and decides it again.

use crate::kit::{Count, Device, launch};
use std::collections::HashSet;
use std::sync::Arc;
use weir_core::base::time::Deadline;
use weir_core::device::{DeviceEvent, Then};

/// Fork and join over four streams, several times, with questions and a callback in between; gives the order and the
/// answers.
fn program(seed: u64) -> (Vec<u64>, Vec<bool>) {
    let d = Device::seeded(seed);
    let streams: Vec<_> = (0..4).map(|i| d.stream(&format!("s{i}"))).collect();
    let kernel = d.sum(0);
    let mut answers = Vec::new();
    let called = Count::default();
    for round in 0..5 {
        let fork = d.event();
        launch(&*streams[0], "head", &kernel, &[], &[]).unwrap();
        streams[0].record(&fork).unwrap();
        let joins: Vec<Arc<dyn DeviceEvent>> = streams[1..]
            .iter()
            .map(|stream| {
                stream.wait(&fork).unwrap();
                (0..4).for_each(|_| launch(&**stream, "arm", &kernel, &[], &[]).unwrap());
                let join = d.event();
                stream.record(&join).unwrap();
                join
            })
            .collect();
        (0..4).for_each(|_| launch(&*streams[0], "own", &kernel, &[], &[]).unwrap());
        answers.extend(joins.iter().map(|join| join.is_reached().unwrap()));
        joins.iter().for_each(|join| streams[0].wait(join).unwrap());
        let end = d.event();
        streams[0].record(&end).unwrap();
        if round % 2 == 0 {
            let called = called.clone();
            d.device.when_reached(&end, called.adder());
            // Submitted while the device may be at work.
            launch(&*streams[3], "more", &kernel, &[], &[]).unwrap();
            answers.push(joins[2].is_reached().unwrap());
        }
        assert!(end.synchronize(Deadline::NEVER).unwrap());
        answers.extend(joins.iter().map(|join| join.is_reached().unwrap()));
        assert!(answers.ends_with(&[true; 3]), "the stream waited for them");
    }
    streams.iter().for_each(|stream| d.finish(&**stream).unwrap());
    called.wait(3);
    assert_eq!(d.texts(), [""; 0]);
    let (total, order) = d.device.order(usize::MAX);
    assert_eq!(total, order.len() as u64);
    let mut all = order.clone();
    all.sort_unstable();
    assert_eq!(all, (1..=total).collect::<Vec<_>>(), "each once");
    (order, answers)
}

#[test]
fn a_seed_gives_the_same_order_again() {
    for seed in 1..100 {
        assert_eq!(program(seed), program(seed), "seed {seed}");
    }
}

#[test]
fn seeds_give_many_orders() {
    let orders: HashSet<_> = (1..200).map(|seed| program(seed).0).collect();
    assert!(orders.len() > 180, "{} orders of 199 seeds", orders.len());
}

/// A wait that is missing shows in what is computed, not only in the report, for some seeds; with it for none.
#[test]
fn a_missing_wait_shows() {
    let wrong = |seed: u64, with_wait: bool| {
        let d = Device::seeded(seed);
        let (s, t) = (d.stream("s"), d.stream("t"));
        let (a, b) = (d.memory("a"), d.memory("b"));
        let event = d.event();
        launch(&*s, "five", &d.sum(5), &[], &[a]).unwrap();
        (0..6).for_each(|_| launch(&*s, "same", &d.sum(0), &[a], &[a]).unwrap());
        launch(&*s, "one more", &d.sum(1), &[a], &[a]).unwrap();
        s.record(&event).unwrap();
        if with_wait {
            t.wait(&event).unwrap();
        }
        launch(&*t, "use", &d.sum(0), &[a], &[b]).unwrap();
        let mut back = [0; crate::kit::LEN];
        crate::kit::download(&*t, &mut back, b).unwrap();
        d.finish(&*s).unwrap();
        d.finish(&*t).unwrap();
        assert_eq!(d.texts().is_empty(), with_wait, "{:?}", d.texts());
        back[0] != 6
    };
    assert_eq!((1..100).filter(|&seed| wrong(seed, true)).count(), 0);
    let shown = (1..100).filter(|&seed| wrong(seed, false)).count();
    assert!(shown > 50, "{shown} of 99");
}

/// Nothing happens between two submissions, however long that takes; and not more than was asked for.
#[test]
fn it_works_on_demand() {
    let d = Device::seeded(5);
    let (s, t) = (d.stream("s"), d.stream("t"));
    for _ in 0..50 {
        launch(&*s, "s", &d.sum(1), &[], &[]).unwrap();
        launch(&*t, "t", &d.sum(2), &[], &[]).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(d.ran.lock().len(), 0);
    let event = d.event();
    s.record(&event).unwrap();
    let mut asked = 0;
    while !event.is_reached().unwrap() {
        asked += 1;
        assert!(asked <= 100, "each question brings it on");
    }
    assert!(asked > 10, "a question brings a few operations, not {} at once", d.ran.lock().len());
    let ran = d.ran.lock().len();
    assert_eq!(d.ran.lock().iter().filter(|&&salt| salt == 1).count(), 50);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(d.ran.lock().len(), ran);
    d.finish(&*t).unwrap();
    assert_eq!(d.ran.lock().len(), 100);
}

/// A thread that holds something the callback needs may ask about an event meanwhile.
#[test]
fn a_question_does_not_wait_for_ever_for_a_callback() {
    let d = Device::seeded(9);
    let s = d.stream("s");
    let (first, second) = (d.event(), d.event());
    launch(&*s, "a", &d.sum(1), &[], &[]).unwrap();
    s.record(&first).unwrap();
    launch(&*s, "b", &d.sum(2), &[], &[]).unwrap();
    s.record(&second).unwrap();
    let (begun, go, over) = (Count::default(), Count::default(), Count::default());
    let inner = (begun.clone(), go.clone(), over.clone());
    d.device.when_reached(
        &first,
        Then::once(move || {
            inner.0.add();
            inner.1.wait(1);
            inner.2.add();
        }),
    );
    begun.wait(1);
    let _ = second.is_reached().unwrap();
    go.add();
    over.wait(1);
    d.finish(&*s).unwrap();
    assert!(second.is_reached().unwrap());
}
