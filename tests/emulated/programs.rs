//! Random programs that are ordered as they should be: the same result for every seed and on any number of streams, and
//! no report. The same with one wait left out: a report, unless another way orders the two.

use crate::devices::Emulation;
use crate::kit::{Device, LEN, download, launch};
use std::sync::Arc;
use weir_core::base::time::Deadline;
use weir_core::device::{DeviceEvent, DeviceStream};

struct Random(u64);

impl Random {
    fn draw(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// Stream, arrays read, array written.
type Step = (usize, [usize; 2], usize);

/// Operations over few arrays: each reads two and writes one.
struct Program {
    steps: Vec<Step>,
    /// For each, the earlier steps on other streams that it must wait for.
    waits: Vec<Vec<usize>>,
}

const ARRAYS: usize = 6;

impl Program {
    fn draw(seed: u64, streams: usize) -> Program {
        let mut random = Random(seed);
        let (mut steps, mut waits): (Vec<Step>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        for at in 0..30 {
            let step = (random.draw(streams), [random.draw(ARRAYS), random.draw(ARRAYS)], random.draw(ARRAYS));
            let needs = |&earlier: &usize| {
                let (stream, reads, write) = steps[earlier];
                stream != step.0 && (step.1.contains(&write) || reads.contains(&step.2) || write == step.2)
            };
            waits.push((0..at).filter(needs).collect());
            steps.push(step);
        }
        Program { steps, waits }
    }

    /// The arrays after it, by a loop.
    fn expected(&self) -> Vec<i32> {
        let mut arrays = [0i32; ARRAYS];
        for (at, (_, reads, write)) in self.steps.iter().enumerate() {
            arrays[*write] = (at as i32).wrapping_add(arrays[reads[0]]).wrapping_add(arrays[reads[1]]);
        }
        arrays.to_vec()
    }

    /// On a device; `left_out`: a step and a wait of it. Gives the arrays and the number of finds.
    fn run(&self, d: &Device, left_out: Option<(usize, usize)>) -> (Vec<i32>, u64) {
        let streams: Vec<Box<dyn DeviceStream>> = (0..4).map(|i| d.stream(&format!("s{i}"))).collect();
        let arrays: Vec<usize> = (0..ARRAYS).map(|i| d.memory(&format!("array {i}"))).collect();
        arrays.iter().for_each(|&array| crate::kit::fill(&*streams[0], array, 0).unwrap());
        d.finish(&*streams[0]).unwrap();
        let mut events: Vec<Arc<dyn DeviceEvent>> = Vec::new();
        for (at, (stream, reads, write)) in self.steps.iter().enumerate() {
            let stream = &streams[*stream];
            for (i, &before) in self.waits[at].iter().enumerate() {
                if left_out != Some((at, i)) {
                    stream.wait(&events[before]).unwrap();
                }
            }
            let inputs = [arrays[reads[0]], arrays[reads[1]]];
            // In place is no overlap that counts: the sums read each number before they write it.
            launch(&**stream, &format!("step {at}"), &d.sum(at as i32), &inputs, &[arrays[*write]]).unwrap();
            let event = d.event();
            stream.record(&event).unwrap();
            events.push(event);
        }
        for event in &events {
            assert!(event.synchronize(Deadline::after(20_000_000_000)).unwrap());
        }
        let mut result = Vec::new();
        for &array in &arrays {
            let mut back = [0; LEN];
            download(&*streams[0], &mut back, array).unwrap();
            d.finish(&*streams[0]).unwrap();
            assert_eq!(back, [back[0]; LEN]);
            result.push(back[0]);
        }
        arrays.iter().for_each(|&array| d.device.deallocate(array, crate::kit::BYTES));
        (result, d.device.counters().races)
    }
}

#[test]
fn ordered_programs_give_one_result_and_no_report() {
    for number in 0..60 {
        let program = Program::draw(number, 1 + number as usize % 4);
        for seed in 0..10 {
            let d = Device::seeded(seed);
            assert_eq!(
                program.run(&d, None),
                (program.expected(), 0),
                "program {number}, seed {seed}: {:?}",
                d.texts()
            );
        }
    }
}

/// Whether the step comes after the other one without that wait.
fn is_ordered(program: &Program, step: usize, left_out: usize) -> bool {
    let target = program.waits[step][left_out];
    let mut seen = vec![false; program.steps.len()];
    let mut open: Vec<usize> = vec![step];
    while let Some(at) = open.pop() {
        let before = (0..at).rev().find(|&other| program.steps[other].0 == program.steps[at].0);
        let waits = program.waits[at].iter().enumerate().filter(|(i, _)| at != step || *i != left_out).map(|(_, w)| *w);
        for other in waits.chain(before) {
            if !std::mem::replace(&mut seen[other], true) {
                open.push(other);
            }
        }
    }
    seen[target]
}

#[test]
fn each_wait_that_matters_is_missed() {
    let (mut missed, mut covered, mut wrong) = (0, 0, 0);
    for number in 0..12 {
        let program = Program::draw(100 + number, 4);
        for step in 0..program.steps.len() {
            for wait in 0..program.waits[step].len() {
                let d = Device::seeded(1 + number);
                let (result, races) = program.run(&d, Some((step, wait)));
                if is_ordered(&program, step, wait) {
                    covered += 1;
                    assert_eq!((result, races), (program.expected(), 0), "program {number}: {:?}", d.texts());
                } else {
                    missed += 1;
                    wrong += usize::from(result != program.expected());
                    assert!(races > 0, "program {number}, step {step} without wait {wait}");
                }
            }
        }
    }
    println!("{missed} waits matter, {wrong} showed in the result, {covered} were covered by others");
    assert!(missed > 50 && covered > 50 && wrong > 5, "{missed} {covered} {wrong}");
}

/// In modelled time, from several threads at once.
#[test]
fn threads_submit_at_once() {
    let d = Device::new(Emulation { flags: Emulation::CHECK, kernel_ns: 2_000, ..Emulation::default() });
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let d = &d;
            scope.spawn(move || {
                let stream = d.stream(&format!("of thread {thread}"));
                for round in 0..30 {
                    let array = d.memory(&format!("array {thread}"));
                    crate::kit::fill(&*stream, array, 0).unwrap();
                    (0..10).for_each(|i| launch(&*stream, "sum", &d.sum(i), &[array], &[array]).unwrap());
                    let mut back = [0; LEN];
                    download(&*stream, &mut back, array).unwrap();
                    d.finish(&*stream).unwrap();
                    assert_eq!(back, [45; LEN], "thread {thread}, round {round}");
                    d.device.deallocate(array, crate::kit::BYTES);
                }
            });
        }
    });
    assert_eq!(d.texts(), [""; 0]);
}
