//! Copies between devices of two kinds, which go through the host's memory: in the order of their streams, and without
//! races.

use crate::kit::emulated::Emulation;
use crate::kit::run::{cpu, tensor};
use crate::ports::{number, read, stream_of};
use crate::wrapped::{Mistake, engine};
use crate::{checked, reports};
use weir_core::base::{Code, Ref};
use weir_core::engine::{Stream, Tensor};

/// Copies there and back, on a stream of either side, between other work on it, and nobody waits in between.
#[test]
fn copies_through_the_host_are_in_the_order_of_their_stream() {
    for seed in 1..=20 {
        let (wrapped, there) = engine("placed-staged", checked(seed), Mistake::None, 1);
        let (second, here) = engine("placed-staged-here", checked(seed + 50), Mistake::None, 1);
        let lines = [stream_of(&here), stream_of(&there)];
        for by in 0..2 {
            // What the other side has is ready.
            let ready = |tensor: Ref<Tensor>| -> Ref<Tensor> {
                lines[1 - by].synchronize(u64::MAX).unwrap();
                tensor
            };
            let line: &Ref<Stream> = &lines[by];
            let sides = [&here, &there];
            let (own, other) = (sides[by], sides[1 - by]);
            let a = number(own, Some(line), 70 + seed as i32);
            let b = ready(number(other, Some(&lines[1 - by]), 0));
            let c = number(own, Some(line), 1);
            line.enqueue_copy(a.clone(), b.clone()).unwrap();
            line.enqueue_fill(a.clone(), 0).unwrap();
            line.enqueue_copy(b.clone(), c.clone()).unwrap();
            line.enqueue_fill(a.clone(), 1).unwrap();
            line.enqueue_copy(a, b.clone()).unwrap();
            assert_eq!(read(&c, Some(line)), 70 + seed as i32, "seed {seed}, by {by}");
            assert_eq!(read(&b, Some(&lines[1 - by])), 0x0101_0101, "seed {seed}, by {by}");
        }
        drop(lines);
        assert_eq!(reports(&second), Vec::<String>::new(), "seed {seed}");
        assert_eq!(reports(&wrapped), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn a_half_that_fails_is_the_failure_of_the_stream() {
    for failing in [0, 1] {
        let fails = Emulation { seed: 3, fail_copy: 2, ..Emulation::default() };
        let settings =
            |side: usize| if side == failing { fails } else { Emulation { seed: 4, ..Emulation::default() } };
        let (_wrapped, there) = engine("placed-half", settings(1), Mistake::None, 1);
        let (_second, here) = engine("placed-half-here", settings(0), Mistake::None, 1);
        let line = stream_of(&here);
        let other = stream_of(&there);
        let a = number(&here, Some(&line), 5);
        let b = number(&there, Some(&other), 6);
        other.synchronize(u64::MAX).unwrap();
        line.enqueue_copy(a, b.clone()).unwrap();
        let error = line.synchronize(u64::MAX).unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{error}");
        assert_eq!(line.enqueue_fill(b.clone(), 0).unwrap_err().code(), Code::FailedPrecondition);
        line.clear_error();
        let again = tensor(&cpu(), 8);
        line.enqueue_copy(again.clone(), number(&here, Some(&line), 2)).unwrap();
        line.synchronize(u64::MAX).unwrap();
    }
}

#[test]
fn a_stream_of_neither_side_is_refused() {
    let (_wrapped, there) = engine("placed-neither", Emulation::default(), Mistake::None, 1);
    let (_second, here) = engine("placed-neither-here", Emulation::default(), Mistake::None, 1);
    let host = stream_of(&cpu());
    let tensors = [&here, &there].map(|engine| number(engine, Some(&stream_of(engine)), 1));
    let [a, b] = tensors;
    let error = host.enqueue_copy(a, b).unwrap_err();
    assert!(error.message().contains("it takes a stream of one of the two, that of a device if one is"), "{error}");
}
