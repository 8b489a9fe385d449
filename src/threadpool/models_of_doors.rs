//! loom models of closing something that other threads are about to use, with broken twins that loom must find.

use super::door::Door;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;
use loom::cell::UnsafeCell;
use loom::thread;
// The panic of a failing model unwinds through these values, so they must not be loom's.
use std::sync::Arc;

/// A host object that is freed once its door is closed and empty.
struct House {
    door: Door,
    /// For the broken twin.
    inside: AtomicU64,
    closed: AtomicU64,
    hosts: UnsafeCell<u32>,
    released: AtomicU64,
}

fn house() -> Arc<House> {
    Arc::new(House {
        door: Door::new(),
        inside: AtomicU64::new(0),
        closed: AtomicU64::new(0),
        hosts: UnsafeCell::new(0),
        released: AtomicU64::new(0),
    })
}

/// Uses the host object.
fn call(house: &House) {
    // SAFETY: loom checks that nobody frees it meanwhile.
    house.hosts.with(|hosts| assert_eq!(unsafe { *hosts }, 0, "called after it was taken away"));
}

fn take_away(house: &House) {
    // SAFETY: loom checks that nobody uses it meanwhile.
    house.hosts.with_mut(|hosts| unsafe { *hosts = 1 });
}

fn until(is: impl Fn() -> bool) {
    while !is() {
        thread::yield_now();
    }
}

#[test]
fn models_door_keeps_out_who_comes_late() {
    loom::model(|| {
        let house = house();
        let users: Vec<_> = (0..2)
            .map(|_| {
                let house = Arc::clone(&house);
                thread::spawn(move || {
                    if let Some(_inside) = house.door.enter() {
                        call(&house);
                    }
                })
            })
            .collect();
        house.door.close();
        until(|| house.door.is_empty());
        take_away(&house);
        users.into_iter().for_each(|user| user.join().unwrap());
        assert!(house.door.is_empty());
    });
}

/// A thread that looks before it counts itself enters unseen by the closer.
#[test]
#[should_panic(expected = "taken away")]
fn models_broken_door_looks_before_it_counts() {
    let found = std::panic::catch_unwind(|| {
        loom::model(|| {
            let house = house();
            let user = {
                let house = Arc::clone(&house);
                thread::spawn(move || {
                    if house.closed.load(SeqCst) == 0 {
                        house.inside.fetch_add(1, SeqCst);
                        call(&house);
                        house.inside.fetch_sub(1, SeqCst);
                    }
                })
            };
            house.closed.store(1, SeqCst);
            until(|| house.inside.load(SeqCst) == 0);
            take_away(&house);
            user.join().unwrap();
        });
    });
    // loom sees the call and the free unordered, or the call finds nothing.
    assert!(found.is_ok(), "taken away while it was used");
}

/// Two close at once, while an errand is owed: it is done first, and the object is freed once. One of them looks only
/// once: loom does not terminate with two that poll.
#[test]
fn models_door_is_closed_by_several() {
    loom::model(|| {
        let house = house();
        assert!(house.door.owe());
        let release = |house: &House| {
            if house.released.fetch_add(1, AcqRel) == 0 {
                take_away(house);
            }
        };
        let errand = {
            let house = Arc::clone(&house);
            thread::spawn(move || {
                call(&house);
                house.door.settle();
            })
        };
        let other = {
            let house = Arc::clone(&house);
            thread::spawn(move || {
                house.door.close();
                if house.door.is_empty() {
                    release(&house);
                }
            })
        };
        house.door.close();
        until(|| house.door.is_empty());
        release(&house);
        errand.join().unwrap();
        other.join().unwrap();
        assert!((1..=2).contains(&house.released.load(Relaxed)));
    });
}
