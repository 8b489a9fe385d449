//! Each kind of fault, planted once, is reported with both operations; without it nothing is.

use crate::devices::{Emulation, RaceKind};
use crate::kit::{BYTES, Count, Device, LEN, code, download, fill, launch, upload};
use weir_core::base::Code;
use weir_core::base::time::Deadline;
use weir_core::device::{DeviceStream, HostAddress, Location, Pinning, Transfer};

/// The one report that there is.
fn only(d: &Device) -> (RaceKind, String) {
    let mut races = d.device.races();
    assert_eq!(races.len(), 1, "{:?}", d.texts());
    let race = races.remove(0);
    assert_eq!(race.count, 1);
    (race.kind, race.text)
}

/// Producer and consumer on two streams, with the wait or without it.
fn pair(d: &Device, with_wait: bool) {
    let (s, t) = (d.stream("s"), d.stream("t"));
    let (a, b, event) = (d.memory("tensor a"), d.memory("tensor b"), d.event());
    launch(&*s, "kernel 'make'", &d.sum(1), &[], &[a]).unwrap();
    s.record(&event).unwrap();
    if with_wait {
        t.wait(&event).unwrap();
    }
    launch(&*t, "kernel 'use'", &d.sum(2), &[a], &[b]).unwrap();
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
}

fn pinning(d: &Device) -> &dyn Pinning {
    d.device.pinning().unwrap()
}

#[test]
fn a_missing_wait() {
    let d = Device::checked();
    pair(&d, true);
    assert_eq!(d.texts(), [""; 0]);
    pair(&d, false);
    let text = "missing wait: kernel 'use' (operation 4, stream 't') reads bytes 0 to 256 of tensor a while kernel 'make' \
                (operation 3, stream 's') may still write them";
    assert_eq!(only(&d), (RaceKind::ReadAfterWrite, text.to_owned()));
    let race = &d.device.races()[0];
    assert_eq!((race.first.name.as_str(), race.first.queue.as_str(), race.first.number), ("kernel 'make'", "s", 3));
    assert_eq!((race.second.name.as_str(), race.second.queue.as_str(), race.second.number), ("kernel 'use'", "t", 4));
    assert_eq!((race.offset, race.bytes), (0, BYTES));
    // The same again is not another report.
    let d = Device::checked();
    (0..10).for_each(|_| pair(&d, false));
    assert_eq!(d.device.races().len(), 1);
    assert_eq!((d.device.races()[0].count, d.device.counters().races), (10, 10));
    d.device.clear_races();
    assert_eq!((d.device.races().len(), d.device.counters().races), (0, 0));
}

#[test]
fn a_write_before_the_last_reader_is_done_and_two_writes() {
    let d = Device::checked();
    let (s, t, u) = (d.stream("s"), d.stream("t"), d.stream("u"));
    let (a, b) = (d.memory("tensor a"), d.memory("tensor b"));
    let (made, read) = (d.event(), d.event());
    fill(&*s, a, 1).unwrap();
    s.record(&made).unwrap();
    t.wait(&made).unwrap();
    launch(&*t, "reader", &d.sum(0), &[a], &[b]).unwrap();
    t.record(&read).unwrap();
    u.wait(&made).unwrap();
    fill(&*u, a, 2).unwrap();
    let text = "missing wait: fill (operation 3, stream 'u') writes bytes 0 to 256 of tensor a while reader (operation 2, stream \
                't') may still read them";
    assert_eq!(only(&d), (RaceKind::WriteAfterRead, text.to_owned()));
    d.device.clear_races();
    // The stream has seen the reader's end, but not that of the other write.
    s.wait(&read).unwrap();
    fill(&*s, a, 3).unwrap();
    let text = "missing wait: fill (operation 4, stream 's') writes bytes 0 to 256 of tensor a while fill (operation 3, stream \
                'u') may still write them";
    assert_eq!(only(&d), (RaceKind::WriteAfterWrite, text.to_owned()));
    [&s, &t, &u].iter().for_each(|stream| d.finish(&***stream).unwrap());
    d.device.clear_races();
    launch(&*u, "late", &d.sum(0), &[a, b], &[]).unwrap();
    assert_eq!(d.texts(), [""; 0], "the host has waited for all");
    d.finish(&*u).unwrap();
}

/// The event is recorded before the operation that it should stand for.
#[test]
fn an_event_recorded_too_soon() {
    let d = Device::checked();
    let (s, t) = (d.stream("s"), d.stream("t"));
    let (a, b, event) = (d.memory("tensor a"), d.memory("tensor b"), d.event());
    s.record(&event).unwrap();
    launch(&*s, "kernel 'make'", &d.sum(1), &[], &[a]).unwrap();
    t.wait(&event).unwrap();
    launch(&*t, "kernel 'use'", &d.sum(2), &[a], &[b]).unwrap();
    let text = "event recorded too soon: kernel 'use' (operation 2, stream 't') reads bytes 0 to 256 of tensor a while kernel \
                'make' (operation 1, stream 's') may still write them; stream 't' waited for an event of stream 's' that was \
                recorded before";
    assert_eq!(only(&d), (RaceKind::RecordedTooSoon, text.to_owned()));
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
}

#[test]
fn a_wait_before_the_record() {
    let d = Device::checked();
    let (s, t) = (d.stream("s"), d.stream("t"));
    let (a, event) = (d.memory("tensor a"), d.event());
    t.wait(&event).unwrap();
    let text =
        "wait before record: stream 't' waits, after operation 0 of the device, for event 1, which nobody has recorded";
    assert_eq!(only(&d), (RaceKind::WaitBeforeRecord, text.to_owned()));
    fill(&*s, a, 1).unwrap();
    s.record(&event).unwrap();
    launch(&*t, "use", &d.sum(2), &[a], &[]).unwrap();
    assert_eq!(d.device.races().last().unwrap().kind, RaceKind::ReadAfterWrite);
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
}

#[test]
fn memory_freed_and_reused_too_soon() {
    let d = Device::checked();
    let (s, t) = (d.stream("s"), d.stream("t"));
    let a = d.memory("tensor a");
    launch(&*s, "kernel 'reader'", &d.sum(1), &[a], &[]).unwrap();
    d.device.deallocate(a, BYTES);
    let text = "memory freed too soon: the free after operation 1 gives back bytes 0 to 256 of tensor a while kernel 'reader' \
                (operation 1, stream 's') may still read them";
    assert_eq!(only(&d), (RaceKind::FreedInUse, text.to_owned()));
    d.device.clear_races();
    let b = d.memory("tensor b");
    assert_eq!(a, b, "the address comes back at once");
    fill(&*t, b, 0).unwrap();
    let text = "memory reused too soon: fill (operation 2, stream 't') writes bytes 0 to 256 of tensor b while kernel 'reader' \
                (operation 1, stream 's') may still read them as part of an allocation that was freed";
    assert_eq!(only(&d), (RaceKind::ReusedInUse, text.to_owned()));
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
    d.device.clear_races();
    d.device.deallocate(b, BYTES);
    let c = d.memory("tensor c");
    fill(&*s, c, 0).unwrap();
    assert_eq!(d.texts(), [""; 0], "the host has waited");
    d.finish(&*s).unwrap();
}

#[test]
fn memory_used_after_it_was_freed() {
    let d = Device::checked();
    let (s, mut host) = (d.stream("s"), [0; LEN]);
    let a = d.memory("tensor a");
    fill(&*s, a, 3).unwrap();
    d.finish(&*s).unwrap();
    d.device.deallocate(a, BYTES);
    download(&*s, &mut host, a).unwrap();
    let text = "use after free: download (operation 2, stream 's') reads bytes 0 to 256 of tensor a, which was freed after \
                operation 1";
    assert_eq!(only(&d), (RaceKind::UseAfterFree, text.to_owned()));
    d.finish(&*s).unwrap();
    d.device.clear_races();
    d.device.deallocate(a, BYTES);
    let text = "use after free: the free after operation 2 gives back bytes 0 to 256 of tensor a, which was freed after operation \
                1";
    assert_eq!(only(&d), (RaceKind::UseAfterFree, text.to_owned()));
}

/// An arena's block is written for another value before the last reader of the old one is done: bytes, not tensors,
/// count.
#[test]
fn a_block_of_an_arena_reused_too_soon() {
    let d = Device::checked();
    let (s, t) = (d.stream("s"), d.stream("t"));
    let arena = d.device.allocate(4 * BYTES, "arena").unwrap();
    launch(&*s, "reader", &d.sum(1), &[arena + BYTES], &[arena]).unwrap();
    fill(&*t, arena + 2 * BYTES, 0).unwrap();
    assert_eq!(d.texts(), [""; 0], "other bytes");
    launch(&*t, "writer", &d.sum(1), &[], &[arena + BYTES + 64]).unwrap();
    let text = "missing wait: writer (operation 3, stream 't') writes bytes 320 to 512 of arena while reader (operation 1, stream \
                's') may still read them";
    assert_eq!(only(&d), (RaceKind::WriteAfterRead, text.to_owned()));
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
}

/// The host's memory is followed through copies.
#[test]
fn host_memory_under_two_copies() {
    let d = Device::checked();
    let (s, t) = (d.stream("s"), d.stream("t"));
    let (a, b, mut host) = (d.memory("tensor a"), d.memory("tensor b"), [0; LEN]);
    download(&*s, &mut host, a).unwrap();
    upload(&*t, b, &host).unwrap();
    let (kind, text) = only(&d);
    assert_eq!(kind, RaceKind::ReadAfterWrite);
    assert!(text.contains("reads 256 bytes of the host's memory at 0x"), "{text}");
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
}

/// Pinned memory is not to be given back, nor used by weir, while a copy of it may be under way.
#[test]
fn pinned_memory_in_flight() {
    let at = |d: &Device| pinning(d).allocate_host(BYTES, "what is copied").unwrap();
    let up = |stream: &dyn DeviceStream, to: usize, from: usize| {
        // SAFETY: the test keeps the memory until the end; whether others use it is what it is about.
        let (to, from) = (Location::Device(to), Location::Host(unsafe { HostAddress::new(from) }));
        stream.copy(&Transfer { name: "copy up", to, from, bytes: BYTES }).unwrap();
    };
    let down = |stream: &dyn DeviceStream, to: usize, from: usize| {
        // SAFETY: as above.
        let (to, from) = (Location::Host(unsafe { HostAddress::new(to) }), Location::Device(from));
        stream.copy(&Transfer { name: "copy down", to, from, bytes: BYTES }).unwrap();
    };
    // Freed.
    let d = Device::new(Emulation { seed: 7, flags: Emulation::CHECK, ..Emulation::default() });
    let (s, a, host) = (d.stream("s"), d.memory("tensor a"), at(&d));
    up(&*s, a, host);
    pinning(&d).deallocate_host(host, BYTES);
    let (kind, text) = only(&d);
    assert_eq!(kind, RaceKind::FreedInUse);
    assert_eq!(
        text,
        "memory freed too soon: the free after operation 1 gives back bytes 0 to 256 of pinned memory for what is copied \
         while copy up (operation 1, stream 's') may still read them"
    );
    // Used: read under a copy to it, written under one from it; reading is right then.
    for (copy_is_up, writes, is_wrong) in [(true, true, true), (true, false, false), (false, false, true)] {
        let d = Device::checked();
        let (s, a, host) = (d.stream("s"), d.memory("tensor a"), at(&d));
        fill(&*s, a, 1).unwrap();
        if copy_is_up {
            up(&*s, a, host)
        } else {
            down(&*s, host, a)
        }
        pinning(&d).host_uses(host + 8, 16, writes, "upload");
        if is_wrong {
            let (kind, text) = only(&d);
            assert_eq!(kind, RaceKind::HostAccess);
            let does = if writes { "writes" } else { "reads" };
            let start =
                format!("memory used by the host too soon: the upload after operation 2 {does} bytes 8 to 24 of");
            assert!(text.starts_with(&start), "{text}");
        }
        d.finish(&*s).unwrap();
        d.device.clear_races();
        pinning(&d).host_uses(host, BYTES, true, "upload");
        pinning(&d).deallocate_host(host, BYTES);
        assert_eq!(d.texts(), [""; 0], "all of it is over");
    }
}

/// A copy from memory that is not pinned takes its bytes at once, unless a copy to it is under way.
#[test]
fn what_is_staged() {
    let d = Device::new(Emulation { seed: 9, ..Emulation::default() });
    let (s, a, b) = (d.stream("s"), d.memory("a"), d.memory("b"));
    let (mut host, mut back) = ([1; LEN], [0; LEN]);
    upload(&*s, a, &host).unwrap();
    host.fill(2);
    download(&*s, &mut back, a).unwrap();
    upload(&*s, b, &back).unwrap();
    fill(&*s, a, 0).unwrap();
    download(&*s, &mut host, b).unwrap();
    d.finish(&*s).unwrap();
    assert_eq!((host, back), ([1; LEN], [1; LEN]));
    assert_eq!(d.device.counters().pageable_copies, 4);
}

/// Each way in which the host comes to know of an end orders what it submits after.
#[test]
fn what_the_host_has_seen_is_an_order() {
    for way in 0..3 {
        for seed in [0, 7] {
            let d = Device::new(Emulation { seed, flags: Emulation::CHECK, ..Emulation::default() });
            let (s, t) = (d.stream("s"), d.stream("t"));
            let (a, event) = (d.memory("tensor a"), d.event());
            fill(&*s, a, 1).unwrap();
            s.record(&event).unwrap();
            match way {
                0 => assert!(event.synchronize(Deadline::NEVER).unwrap()),
                1 => while !event.is_reached().unwrap() {},
                _ => {
                    let called = Count::default();
                    let told = called.clone();
                    d.device.when_reached(&event, told.adder());
                    called.wait(1);
                }
            }
            fill(&*t, a, 2).unwrap();
            assert_eq!(d.texts(), [""; 0], "way {way}, seed {seed}");
            d.finish(&*t).unwrap();
        }
    }
}

/// With STRICT the later operation fails, and is not done.
#[test]
fn strict_fails_the_operation() {
    let flags = Emulation::CHECK | Emulation::STRICT;
    let d = Device::new(Emulation { flags, ..Emulation::default() });
    let (s, t) = (d.stream("s"), d.stream("t"));
    let a = d.memory("tensor a");
    launch(&*s, "kernel 'make'", &d.sum(1), &[], &[a]).unwrap();
    launch(&*t, "kernel 'use'", &d.sum(2), &[a], &[]).unwrap();
    d.finish(&*s).unwrap();
    let error = d.finish(&*t).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert_eq!(
        error.message(),
        "emulated:0, stream 't', operation 2: missing wait: kernel 'use' (operation 2, stream 't') reads bytes 0 to 256 of \
         tensor a while kernel 'make' (operation 1, stream 's') may still write them"
    );
    assert_eq!(*d.ran.lock(), [1]);
    t.clear_error();
    launch(&*t, "kernel 'use'", &d.sum(3), &[a], &[]).unwrap();
    d.finish(&*t).unwrap();
    assert_eq!(code(d.device.allocate(usize::MAX, "all")), Code::ResourceExhausted);
}
