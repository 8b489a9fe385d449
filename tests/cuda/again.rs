//! Calls and runs that are given again while earlier times of them are under way: what they use is held once, and until
//! the last time is over.

use crate::bench::Bench;
use crate::direct::{LOOK, calls, chain, check, enter, floats, run};
use crate::kit::{is_fake, only_with_the_fake, with_driver};
use std::sync::Arc;
use std::thread;

const TIMES: usize = 150;

#[test]
fn what_is_given_again_is_held_once_until_all_is_over() {
    // It goes by what was asked of the driver, and by when that is done.
    if !only_with_the_fake() {
        return;
    }
    for seed in ["1", "2"] {
        with_driver(&[("SEED", seed)], || {
            let bench = Bench::new();
            let add = bench.add().unwrap();
            let stream = bench.stream("again");
            let (x, y) = (floats(&bench, 3.0), bench.on_device().unwrap());
            let holders = || [Arc::strong_count(&x), Arc::strong_count(&y), Arc::strong_count(&add)];
            let before = holders();
            enter(&bench.engine);
            let mut at = 0;
            for _ in 0..3 {
                calls(&mut at);
                for _ in 0..TIMES {
                    stream.enqueue(add.clone(), vec![x.clone(), x.clone()], vec![y.clone()]).unwrap();
                }
                // Nobody has looked yet, so one holds each: x twice, for two inputs.
                assert_eq!(holders(), [before[0] + 2, before[1] + 1, before[2] + 1]);
                let asked = calls(&mut at);
                let launches = |name: &str| asked.iter().filter(|call| *call == name).count();
                assert_eq!(launches("cuLaunchKernel"), TIMES, "{asked:?}");
                // One behind every 64 of the stream's.
                assert!((2..=3).contains(&launches("cuEventRecord")), "{asked:?}");
                assert!(asked[..4] == [LOOK, "cuLaunchKernel", LOOK, "cuLaunchKernel"], "{asked:?}");
                stream.synchronize(u64::MAX).unwrap();
                assert_eq!(holders(), before);
            }
            check(&bench, &y, |i| 2.0 * (i + 3.0));
        });
    }
}

/// A kernel's own numbers, and counts of elements, are those of its launch, however many others come between.
#[test]
fn values_are_those_of_their_call() {
    for seed in ["1", "2"] {
        with_driver(&[("SEED", seed)], || {
            let bench = Bench::new();
            let add = bench.add().unwrap();
            let fills = [7.0f32, 1.0].map(|value| bench.fill(value.to_bits()));
            let (stream, x) = (bench.stream("again"), bench.on_device().unwrap());
            let sums = [(); 2].map(|()| bench.on_device().unwrap());
            enter(&bench.engine);
            let mut at = 0;
            for _ in 0..3 {
                calls(&mut at);
                for _ in 0..10 {
                    for (fill, sum) in fills.iter().zip(&sums) {
                        stream.enqueue(fill.clone(), vec![], vec![x.clone()]).unwrap();
                        stream.enqueue(add.clone(), vec![x.clone(), x.clone()], vec![sum.clone()]).unwrap();
                    }
                }
                let asked = calls(&mut at);
                let launches = asked.iter().filter(|call| *call == "cuLaunchKernel").count();
                assert!(launches == 40 || !is_fake(), "{asked:?}");
                stream.synchronize(u64::MAX).unwrap();
                check(&bench, &sums[0], |_| 14.0);
                check(&bench, &sums[1], |_| 2.0);
                sums.iter().for_each(|sum| bench.stream.enqueue_fill(sum.clone(), 0xff).unwrap());
                bench.wait().unwrap();
            }
        });
    }
}

/// Others come between, also such that are too many to stand; each is held as long as it is needed.
#[test]
fn calls_that_differ_are_held_each_for_itself() {
    with_driver(&[("SEED", "3")], || {
        let bench = Bench::new();
        let add = bench.add().unwrap();
        let (stream, x) = (bench.stream("again"), floats(&bench, 1.0));
        let event = bench.event();
        let mut ends = Vec::new();
        for round in 0..300 {
            let y = if round % 3 == 0 || ends.is_empty() {
                bench.on_device().unwrap()
            } else {
                Arc::clone(&ends[round % ends.len()])
            };
            stream.enqueue(add.clone(), vec![x.clone(), x.clone()], vec![y.clone()]).unwrap();
            if round % 50 == 7 {
                event.record(&stream).unwrap();
                event.synchronize(u64::MAX).unwrap();
            }
            if !ends.iter().any(|end| Arc::ptr_eq(end, &y)) {
                ends.push(y);
            }
        }
        stream.synchronize(u64::MAX).unwrap();
        assert_eq!(Arc::strong_count(&x), 1);
        assert!(ends.iter().all(|end| Arc::strong_count(end) == 1));
        ends.iter().for_each(|end| check(&bench, end, |i| 2.0 * (i + 1.0)));
    });
}

#[test]
fn a_run_that_is_given_again_is_one_run_of_its_lane() {
    with_driver(&[("SEED", "4")], || {
        let bench = Bench::new();
        for length in [1, 10] {
            let (program, stream) = (chain(&bench, length, true), bench.stream("again"));
            let (x, other, y) = (floats(&bench, 0.0), floats(&bench, 5.0), bench.on_device().unwrap());
            let before = [Arc::strong_count(&x), Arc::strong_count(&y), Arc::strong_count(&program)];
            for _ in 0..TIMES {
                run(&program, &stream, &other, &y).unwrap();
                run(&program, &stream, &x, &y).unwrap();
            }
            assert_eq!([Arc::strong_count(&x), Arc::strong_count(&y)], [before[0] + 1, before[1] + 2]);
            // On another stream, and there again, behind it.
            let second = bench.stream("second");
            let z = bench.on_device().unwrap();
            for _ in 0..3 {
                run(&program, &second, &x, &z).unwrap();
                run(&program, &stream, &x, &y).unwrap();
            }
            stream.synchronize(u64::MAX).unwrap();
            second.synchronize(u64::MAX).unwrap();
            // Runs that are over are kept for later ones, with nothing of these.
            assert_eq!([Arc::strong_count(&x), Arc::strong_count(&y), Arc::strong_count(&program)], before);
            let sum = |x: f32| (1..length).fold(x + 100.0, |value, _| value + x);
            [&y, &z].into_iter().for_each(|end| check(&bench, end, sum));
        }
    });
}

/// Several threads give the same call to one stream, and others wait for it.
#[test]
fn threads_give_the_same_call_side_by_side() {
    with_driver(&[("SEED", "5")], || {
        let bench = Bench::new();
        let add = bench.add().unwrap();
        let (stream, x, y) = (bench.stream("again"), floats(&bench, 2.0), bench.on_device().unwrap());
        let before = [Arc::strong_count(&x), Arc::strong_count(&y)];
        let mut at = 0;
        calls(&mut at);
        thread::scope(|scope| {
            for number in 0..4 {
                let (stream, add, x, y) = (&stream, &add, &x, &y);
                scope.spawn(move || {
                    for i in 0..TIMES {
                        stream.enqueue(add.clone(), vec![x.clone(), x.clone()], vec![y.clone()]).unwrap();
                        if i % 20 == 5 * number {
                            stream.synchronize(u64::MAX).unwrap();
                        }
                    }
                });
            }
        });
        stream.synchronize(u64::MAX).unwrap();
        let launches = calls(&mut at).iter().filter(|call| *call == "cuLaunchKernel").count();
        assert!(launches == 4 * TIMES || !is_fake(), "{launches}");
        assert_eq!([Arc::strong_count(&x), Arc::strong_count(&y)], before);
        check(&bench, &y, |i| 2.0 * (i + 2.0));
    });
}
