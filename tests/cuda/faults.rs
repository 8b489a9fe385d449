//! Every call that the driver gets for a program with nodes on a CUDA engine fails once, each function at each of its
//! calls: as the program is compiled, and in the three runs that issue, record and replay.

use crate::bench::{Bench, LEN, desc, values};
use crate::kit::{eventually, fake, with_driver};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use weir_core::base::{Code, Desc, Error, Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::{BoundKernel, EngineAttr, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program};
use weir_core::kernel::{Kernel, KernelContext, Outputs};

/// out[i] = in[i] + 1, of the host.
struct Next;

impl Kernel for Next {
    fn name(&self) -> &str {
        "next"
    }
    fn num_inputs(&self) -> usize {
        1
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![desc()])
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let mut output = outputs.only();
        let to = output.write_bytes().as_chunks_mut::<4>().0;
        for (to, &x) in to.iter_mut().zip(context.input(0).read::<i32>()) {
            *to = (f32::from_bits(x as u32) + 1.0).to_le_bytes();
        }
        Ok(())
    }
}

/// Two chains side by side on the device, the host's node, and two chains more: two segments, each on two streams.
struct Subject {
    bench: Bench,
    graph: Graph,
}

/// What is being failed.
#[derive(Clone, Copy)]
struct Fault<'a> {
    function: &'a str,
    call: u64,
    code: i32,
}

impl std::fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} call {} with {}", self.function, self.call, self.code)
    }
}

const RUNS: usize = 3;
const LOST: i32 = 700;

fn bench() -> Result<Bench> {
    let mut attr = EngineAttr::new(DeviceKind::CUDA);
    attr.set_max_streams(2)?;
    Bench::with(Some(&attr))
}

impl Subject {
    fn new() -> Result<Subject> {
        let bench = bench()?;
        let add = bench.add()?;
        let mut graph = Graph::new("subject");
        let x = graph.add_input("x", desc())?;
        let mut value = x;
        for part in ["front", "back"] {
            let mut of = |name: &str, inputs: &[_]| {
                graph.add_kernel(&format!("{part} {name}"), add.clone(), inputs, 1).map(|node| node.output(0))
            };
            let left = of("left", &[value, x])?;
            let left = of("left again", &[left, x])?;
            let right = of("right", &[value, value])?;
            value = of("sum", &[left, right])?;
            if part == "front" {
                let kernel = BoundKernel::create(bench.cpu.clone(), Arc::new(Next), &KernelOptions::default())?;
                value = graph.add_kernel("next", kernel, &[value], 1)?.output(0);
            }
        }
        graph.add_output("y", value)?;
        Ok(Subject { bench, graph })
    }

    fn compile(&self) -> Result<Ref<Program>> {
        let engines = vec![self.bench.cpu.clone(), self.bench.engine.clone()];
        Program::compile(&self.graph, engines, &CompileOptions::default())
    }
}

fn expected(x: f32) -> f32 {
    let part = |value: f32| ((value + x) + x) + (value + value);
    part(part(x) + 1.0)
}

/// One run; what it gives is right.
fn run(subject: &Subject, program: &Ref<Program>, from: f32) -> Result<()> {
    let x = subject.bench.on_host(|i| (from + i as f32).to_bits() as i32);
    let y = subject.bench.on_host(|_| -1);
    // SAFETY: second owners that are never dropped; the first ones outlive the call.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let (get_in, get_out) = (|_: usize| Ok(lend(&x)), |_: usize| Ok(lend(&y)));
    Program::bind(program, (1, &get_in), (1, &get_out))?.run(None, None)?;
    for (i, bits) in values(&y).into_iter().enumerate() {
        assert_eq!(f32::from_bits(bits as u32), expected(from + i as f32), "{i} of {LEN}");
    }
    Ok(())
}

/// A failure says where it was, and what the driver said to what.
fn check(error: &Error, fault: Fault<'_>) {
    let text = error.message();
    // The functions' names without their versions. A thread's own context is put back without a look at the answer: the
    // next call tells. A thread that takes something back may be told first that the device is lost.
    let name = fault.function.split("_v").next().unwrap_or_default();
    let is_other = fault.code == LOST && (name == "cuCtxSetCurrent" || text.contains("taking back"));
    let is_named = text.contains(name) || is_other;
    assert!(is_named && text.contains(&format!(" ({}, ", fault.code)), "{fault}: {text}");
    assert!(text.contains("engine cuda:0"), "{fault}: {text}");
    assert!(text.contains("node '") || text.contains("program '"), "{fault}: {text}");
    if fault.code == LOST {
        assert_eq!(error.code(), Code::DeviceLost, "{fault}: {text}");
    }
}

/// Whether anybody was told of the failure.
fn with_fault(subject: &Subject, fault: Fault<'_>) -> bool {
    // Shown if the test fails.
    println!("{fault}");
    fake::fail(fault.function, fault.call, fault.code);
    let mut told = false;
    let mut tell = |error: &Error| {
        check(error, fault);
        told = true;
    };
    let mut program = subject.compile().inspect_err(&mut tell).ok();
    if let Some(program) = &program {
        for i in 0..RUNS {
            let _ = run(subject, program, i as f32).inspect_err(&mut tell);
        }
    }
    // Those that are counted by time may not have come so far.
    fake::fail(fault.function, 0, -1);
    if subject.bench.engine.device().is_lost() {
        if let Some(program) = &program {
            assert_eq!(run(subject, program, 0.5).unwrap_err().code(), Code::DeviceLost, "{fault}");
        }
        return told;
    }
    if program.is_none() {
        program = Some(subject.compile().unwrap_or_else(|error| panic!("{fault}, once more: {error}")));
    }
    for i in 0..RUNS {
        let again = program.as_ref().map(|program| run(subject, program, i as f32 - 7.5));
        again.unwrap().unwrap_or_else(|error| panic!("{fault}, run {i} behind it: {error}"));
    }
    told
}

/// What a program asks the driver for, and how often.
fn calls(subject: &Subject) -> Vec<(String, u64)> {
    let live = || ["stream", "graph", "exec"].map(|kind| fake::live(Some(kind)));
    let (before, kept) = (fake::counts(), live());
    let program = subject.compile().unwrap();
    (0..RUNS).for_each(|i| run(subject, &program, i as f32).unwrap());
    drop(program);
    // The thread that ended the last run may hold what it had for a moment longer.
    eventually("the program is not given back", || live() == kept);
    let before = |name: &str| before.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
    let since = fake::counts().into_iter().map(|(name, count)| {
        let since = count - before(&name);
        (name, since)
    });
    // It fails only when the driver has ended.
    since.filter(|(name, count)| *count > 0 && name != "cuThreadExchangeStreamCaptureMode").collect()
}

/// Polls come as time passes, and a thread's context is looked at around every other call: some of those are enough.
fn is_frequent(name: &str) -> bool {
    matches!(name, "cuCtxGetCurrent" | "cuCtxSetCurrent" | "cuEventQuery" | "cuGetErrorName" | "cuGetErrorString")
}

fn faults<'a>(calls: &'a [(String, u64)], codes: &'static [i32]) -> impl Iterator<Item = Fault<'a>> {
    let each = calls.iter().flat_map(|(function, count)| {
        let step = if is_frequent(function) { (count / 12).max(1) } else { 1 };
        (1..=*count).step_by(step as usize).map(move |call| (&**function, call))
    });
    each.flat_map(|(function, call)| codes.iter().map(move |&code| Fault { function, call, code }))
}

/// What cannot be given back is left, and so is what a context cannot be entered for.
fn leaves_something(name: &str) -> bool {
    ["Ctx", "Destroy", "Free", "Unload", "Release", "Unregister"].iter().any(|part| name.contains(part))
}

/// Everything that was made is given back, too: the driver lists what is not.
#[test]
fn a_call_that_fails_is_the_failure_of_a_run_and_the_next_one_is_right() {
    for version in ["12000", "12040", "13000"] {
        let out = with_driver(&[("VERSION", version)], || {
            let subject = Subject::new().unwrap();
            let calls = calls(&subject);
            let faults = faults(&calls, &[2, 1]).filter(|fault| !leaves_something(fault.function));
            let told = faults.filter(|&fault| with_fault(&subject, fault)).count();
            assert!(told > 100, "{told} failures");
        });
        if out.is_none() {
            return;
        }
    }
}

#[test]
fn what_cannot_be_given_back_is_nobody_elses_failure() {
    with_driver(&[("LEAKS", "off")], || {
        let subject = Subject::new().unwrap();
        let calls = calls(&subject);
        let (mut tried, mut told) = (0, 0);
        for fault in faults(&calls, &[1]).filter(|fault| leaves_something(fault.function)) {
            tried += 1;
            told += usize::from(with_fault(&subject, fault));
        }
        assert!(tried > 20 && told < tried, "{told} of {tried}");
    });
}

#[test]
fn a_call_that_loses_the_device_ends_all_and_a_new_engine_works() {
    for version in ["12000", "13000"] {
        // What a lost device has is not taken back.
        let out = with_driver(&[("VERSION", version), ("LEAKS", "off"), ("RACES", "off")], || {
            let calls = calls(&Subject::new().unwrap());
            let mut told = 0;
            for fault in faults(&calls, &[LOST]) {
                // A thread that has told somebody may hold the last of a lost context for a moment longer.
                let subject = std::cell::OnceCell::new();
                eventually("a new engine works", || Subject::new().is_ok_and(|new| subject.set(new).is_ok()));
                told += usize::from(with_fault(subject.get().unwrap(), fault));
            }
            assert!(told > 60, "{told} failures");
        });
        if out.is_none() {
            return;
        }
    }
}
