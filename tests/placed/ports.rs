//! Programs with inputs and outputs in the memory of two emulated devices, that copy straight to one another, under
//! their checker.

use crate::kit::emulated::{Emulated, Emulation};
use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::kit::run::{cpu, execute, fact, integer, lend, scalar, tensor};
use crate::{checked, extent, mix};
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use weir_core::base::{Code, Ref};
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, EngineAttr, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, NodeId, Program, ReportFormat, RunOptions, ValueId};

/// The emulated devices that tests of this process have now.
static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
static LEFT: Condvar = Condvar::new();

/// An engine on an emulated device that no other test has meanwhile.
pub struct Own {
    engine: ManuallyDrop<Ref<Engine>>,
    index: u32,
}

impl Deref for Own {
    type Target = Ref<Engine>;

    fn deref(&self) -> &Ref<Engine> {
        &self.engine
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: once, and nobody sees it any more.
        unsafe { ManuallyDrop::drop(&mut self.engine) };
        TAKEN.lock().unwrap().remove(&self.index);
        LEFT.notify_all();
    }
}

pub fn emulated(index: u32, emulation: Emulation, streams: u32) -> Own {
    crate::kit::emulated::register();
    let mut attr = EngineAttr::new(DeviceKind::EMULATED);
    attr.device_settings = Some(emulation.settings());
    attr.set_max_streams(streams).unwrap();
    emulated_as(index, &attr)
}

/// An engine on emulated device `index`, once no other test of this process has that. Who takes several takes them in
/// the order of their numbers.
pub fn emulated_as(index: u32, attr: &EngineAttr) -> Own {
    let taken = TAKEN.lock().unwrap();
    LEFT.wait_while(taken, |taken| taken.contains(&index)).unwrap().insert(index);
    let begun = Instant::now();
    loop {
        match Engine::create(DeviceKind::EMULATED, index, Some(attr)) {
            Ok(engine) => return Own { engine: ManuallyDrop::new(engine), index },
            // A thread may hold the last of what was there before for a moment.
            Err(error) if error.code() == Code::FailedPrecondition && begun.elapsed() < LONG => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn races(engine: &Ref<Engine>) -> Vec<String> {
    Emulated::of(engine.device()).unwrap().races().into_iter().map(|race| race.text).collect()
}

pub fn stream_of(engine: &Ref<Engine>) -> Ref<Stream> {
    Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap()
}

/// A tensor with this number, on an engine and a stream of it.
pub fn number(engine: &Ref<Engine>, stream: Option<&Ref<Stream>>, value: i32) -> Ref<Tensor> {
    let Some(stream) = stream else { return tensor(engine, value) };
    let there = Tensor::create(engine.clone(), scalar()).unwrap();
    stream.enqueue_copy(tensor(&cpu(), value), there.clone()).unwrap();
    there
}

pub fn read(tensor_: &Ref<Tensor>, stream: Option<&Ref<Stream>>) -> i32 {
    let Some(stream) = stream else { return integer(tensor_) };
    let here = tensor(&cpu(), -1);
    stream.enqueue_copy(tensor_.clone(), here.clone()).unwrap();
    stream.synchronize(u64::MAX).unwrap();
    integer(&here)
}

/// Longer than a device takes to end.
const LONG: Duration = Duration::from_secs(30);
const INPUTS: usize = 4;
const ENGINES: usize = 3;

struct Plan {
    inputs: Vec<usize>,
    nodes: Vec<(usize, Vec<usize>)>,
    /// What is read, and where it goes.
    outputs: Vec<(usize, usize)>,
    /// For each node whether compile may choose its engine, if that is said.
    open: Vec<Option<bool>>,
}

impl Plan {
    fn draw(random: &mut Random) -> Plan {
        let n = 1 + random.below(20);
        let inputs = (0..INPUTS).map(|_| random.below(ENGINES)).collect();
        let nodes = (0..n).map(|i| {
            let reads = (0..1 + random.below(3)).map(|_| random.below(INPUTS + i)).collect();
            (random.below(ENGINES), reads)
        });
        let nodes = nodes.collect();
        // Inputs too, and some twice.
        let outputs = (0..1 + random.below(6)).map(|_| (random.below(INPUTS + n), random.below(ENGINES))).collect();
        let open = (0..n).map(|_| [None, Some(true), Some(false)][random.below(3)]).collect();
        Plan { inputs, nodes, outputs, open }
    }

    fn expected(&self, inputs: &[i32]) -> Vec<i32> {
        let mut values = inputs.to_vec();
        for (_, reads) in &self.nodes {
            let next = mix(&reads.iter().map(|&read| values[read]).collect::<Vec<_>>());
            values.push(next);
        }
        self.outputs.iter().map(|&(read, _)| values[read]).collect()
    }

    fn compile(&self, engines: &[Ref<Engine>], options: &CompileOptions) -> Ref<Program> {
        let (mut builder, mut values) = Builder::of("ports", INPUTS);
        for ((engine, reads), open) in self.nodes.iter().zip(&self.open) {
            builder.engine = engines[*engine].clone();
            let reads: Vec<ValueId> = reads.iter().map(|&read| values[read]).collect();
            let value = builder.op(&reads, mix);
            builder.graph.set_open(node_of(value), *open).unwrap();
            values.push(value);
        }
        for (i, &home) in self.inputs.iter().enumerate() {
            builder.graph.set_input_engine(i, Some(engines[home].clone())).unwrap();
        }
        for (o, &(read, home)) in self.outputs.iter().enumerate() {
            builder.output(values[read]);
            builder.graph.set_output_engine(o, Some(engines[home].clone())).unwrap();
        }
        Program::compile(&builder.graph, engines.to_vec(), options).unwrap()
    }
}

/// The node that a value is of.
pub fn node_of(value: ValueId) -> NodeId {
    NodeId::from(u64::from(value) & !0xffff)
}

/// A run on a stream or in this thread; tensors are let go of as soon as the call is back.
pub fn run_on(
    program: &Ref<Program>,
    stream: Option<&Ref<Stream>>,
    inputs: Vec<Ref<Tensor>>,
    outputs: &[Ref<Tensor>],
    options: &RunOptions,
) -> weir_core::base::Result<()> {
    let (get_in, get_out) = (|i: usize| Ok(lend(&inputs[i])), |i: usize| Ok(lend(&outputs[i])));
    Program::bind(program, (inputs.len(), &get_in), (outputs.len(), &get_out))?
        .run(stream.map(|stream| &**stream), Some(options))
}

#[test]
fn random_graphs_with_tensors_on_devices_have_no_races_whatever_the_order() {
    let (graphs, seeds) = extent();
    let seeds = 1 + seeds / 3;
    for graph in 0..graphs {
        let plan = Plan::draw(&mut Random::new(900 + graph));
        for seed in 1..=seeds {
            let streams = 1 + (graph + seed) as u32 % 4;
            let own = [emulated(0, checked(seed), streams), emulated(1, checked(seed + 77), 5 - streams)];
            let engines = [cpu(), own[0].clone(), own[1].clone()];
            let lines = [None, Some(stream_of(&engines[1])), Some(stream_of(&engines[2]))];
            let options = CompileOptions { partial_runs: 2, any_engine: graph % 3 == 0, ..CompileOptions::default() };
            let program = plan.compile(&engines, &options);
            if seed == 1 {
                let (one, other) = (choices(&program), choices(&plan.compile(&engines, &options)));
                assert_eq!(one, other, "graph {graph}: another choice");
            }
            let what = format!("graph {graph}, seed {seed}, {streams} streams");
            for round in 0..4 {
                let values: Vec<i32> = (0..INPUTS as i32).map(|i| round * 10 + i + seed as i32).collect();
                let given = |homes: &[usize], values: &[i32]| -> Vec<Ref<Tensor>> {
                    homes
                        .iter()
                        .zip(values)
                        .map(|(&home, &value)| number(&engines[home], lines[home].as_ref(), value))
                        .collect()
                };
                let inputs = given(&plan.inputs, &values);
                let homes: Vec<usize> = plan.outputs.iter().map(|&(_, home)| home).collect();
                let outputs = given(&homes, &vec![-99; homes.len()]);
                let mut expected = plan.expected(&values);
                let options = RunOptions::default();
                // On a stream of the first device, what is on it there is ordered by that; all else must be ready.
                let line = lines[1].as_ref().filter(|_| round % 2 == 1);
                lines
                    .iter()
                    .flatten()
                    .skip(usize::from(line.is_some()))
                    .for_each(|line| line.synchronize(u64::MAX).unwrap());
                if round == 2 {
                    let part = program.part(&[outputs.len() - 1]).unwrap();
                    run_on(&part, None, inputs, &outputs[outputs.len() - 1..], &options).unwrap();
                    expected[..outputs.len() - 1].fill(-99);
                } else {
                    run_on(&program, line, inputs, &outputs, &options).unwrap();
                }
                if let Some(line) = line.filter(|_| homes.iter().any(|&home| home != 1)) {
                    line.synchronize(u64::MAX).unwrap();
                }
                let found: Vec<i32> =
                    outputs.iter().zip(&homes).map(|(tensor, &home)| read(tensor, lines[home].as_ref())).collect();
                assert_eq!(found, expected, "{what}, round {round}");
            }
            for engine in &engines[1..] {
                assert_eq!(races(engine), Vec::<String>::new(), "{what}");
            }
        }
    }
}

/// What the report says of nodes whose engine was open.
fn choices(program: &Program) -> Vec<String> {
    let report = program.report(ReportFormat::Text);
    let lines = report.lines().skip_while(|line| !line.starts_with("engines of nodes"));
    lines.skip(1).take_while(|line| line.starts_with("  '")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn open_nodes_go_where_the_fewest_bytes_cross() {
    let own = [emulated(5, checked(1), 1), emulated(6, checked(2), 1)];
    let [a, b]: [&Ref<Engine>; 2] = [&own[0], &own[1]];
    // Scalars of 4 bytes, x on the host, y on a and z on b.
    let (mut builder, x) = Builder::of("open", 3);
    let first = builder.named("first", &x[1..2], |x| Ok(mix(x)));
    let follows = builder.named("follows", &[first, x[0]], |x| Ok(mix(x)));
    let both = builder.named("both", &[x[2], first, follows], |x| Ok(mix(x)));
    let back = builder.named("back", &[x[2]], |x| Ok(mix(x)));
    let none = builder.constant(3);
    let tie = builder.named("tie", &[none], |x| Ok(mix(x)));
    builder.how.later = Some(std::sync::Arc::new(|_, done, result| drop(done.done(result))));
    let later = builder.named("later", &[x[1]], |x| Ok(mix(x)));
    builder.how.later = None;
    builder.engine = b.clone();
    let stays = builder.named("stays", &[x[1], tie], |x| Ok(mix(x)));
    builder.graph.set_open(node_of(stays), Some(false)).unwrap();
    for (i, engine) in [(1, a), (2, b)] {
        builder.graph.set_input_engine(i, Some(engine.clone())).unwrap();
    }
    for (o, (value, home)) in [(both, a), (back, b), (stays, b), (later, &cpu())].into_iter().enumerate() {
        builder.output(value);
        builder.graph.set_output_engine(o, Some(home.clone())).unwrap();
    }
    let options = CompileOptions { any_engine: true, ..CompileOptions::default() };
    let program = Program::compile(&builder.graph, vec![cpu(), a.clone(), b.clone()], &options).unwrap();
    let found = choices(&program);
    // What was copied for one node is there for the next: 'first' on the CPU for 'both'.
    let expected = [
        "'first' on emulated:5: 0 bytes cross, 4 on cpu:0, 4 on emulated:6",
        "'follows' on cpu:0: 4 bytes cross, 4 on emulated:5, 8 on emulated:6",
        "'both' on cpu:0: 8 bytes cross, 8 on emulated:5, 12 on emulated:6",
        "'back' on emulated:6: 0 bytes cross, 4 on cpu:0, 8 on emulated:5",
        "'tie' on emulated:6: 0 bytes cross, 4 on cpu:0, 4 on emulated:5",
        "'later' on cpu:0: 4 bytes cross, 4 on emulated:5, 8 on emulated:6",
    ];
    for line in expected {
        assert!(found.iter().any(|found| found == line), "{line}: {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    // In another order of engines it is the other one of two equals; and one that cannot go where the fewest bytes
    // cross says so.
    let program = Program::compile(&builder.graph, vec![b.clone(), a.clone(), cpu()], &options).unwrap();
    let found = choices(&program);
    let begins = |line: &str| found.iter().any(|found| found.starts_with(line));
    assert!(begins("'follows' on emulated:5: 4 bytes cross, 4 on cpu:0, 8 on emulated:6"), "{found:#?}");
    assert!(
        begins(
            "'later' on cpu:0: 4 bytes cross, 4 on emulated:5, 8 on emulated:6; not emulated:5: kernel 'op' completes later"
        ),
        "{found:#?}"
    );
    assert!(!program.report(ReportFormat::Json).contains("\"why\":\"\""));
}

#[test]
fn what_lies_where_it_is_used_is_not_copied() {
    let device = emulated(2, checked(3), 2);
    let line = stream_of(&device);
    let (mut builder, x) = Builder::of("there", 2);
    builder.engine = device.clone();
    let sum = builder.sum(&x);
    let end = builder.op(&[sum, x[0]], mix);
    builder.output(end);
    for i in 0..2 {
        builder.graph.set_input_engine(i, Some(device.clone())).unwrap();
    }
    builder.graph.set_output_engine(0, Some(device.clone())).unwrap();
    let program = Program::compile(&builder.graph, vec![cpu(), device.clone()], &CompileOptions::default()).unwrap();
    for (key, count) in
        [("uploads", 0), ("fetches", 0), ("deliveries", 0), ("outputs_in_place", 1), ("device_arena_bytes", 256)]
    {
        assert_eq!(fact(&program, key), count, "{key}");
    }
    let inputs = [3, 4].map(|value| number(&device, Some(&line), value));
    let output = number(&device, Some(&line), 0);
    line.synchronize(u64::MAX).unwrap();
    let before = Emulated::of(device.device()).unwrap().counters().copies;
    execute(&program, &inputs, std::slice::from_ref(&output), &RunOptions::default()).unwrap();
    assert_eq!(Emulated::of(device.device()).unwrap().counters().copies, before);
    assert_eq!(read(&output, Some(&line)), mix(&[7, 3]));
    assert_eq!(races(&device), Vec::<String>::new());
}

#[test]
fn tensors_elsewhere_are_refused_by_name() {
    let device = emulated(3, checked(1), 1);
    let (mut builder, x) = Builder::of("refused", 1);
    builder.engine = device.clone();
    let y = builder.op(&x, mix);
    builder.output(y);
    builder.graph.set_input_engine(0, Some(device.clone())).unwrap();
    assert_eq!(builder.graph.set_input_engine(1, None).unwrap_err().code(), Code::OutOfRange);
    assert_eq!(builder.graph.set_output_engine(1, None).unwrap_err().code(), Code::OutOfRange);
    let refused =
        |engines: Vec<Ref<Engine>>| match Program::compile(&builder.graph, engines, &CompileOptions::default()) {
            Err(error) => error.message().to_owned(),
            Ok(_) => panic!("compiled"),
        };
    assert!(refused(vec![cpu()]).contains("its engine emulated:3 is not among the engines of the program"));
    let program = Program::compile(&builder.graph, vec![cpu(), device.clone()], &CompileOptions::default()).unwrap();
    let here = tensor(&cpu(), 1);
    let error = execute(&program, std::slice::from_ref(&here), std::slice::from_ref(&here), &RunOptions::default());
    assert_eq!(error.unwrap_err().message(), "input 0 'n1': expected a tensor on emulated:3, got one on cpu:0");
    let there = Tensor::create(device.clone(), scalar()).unwrap();
    let error = execute(&program, std::slice::from_ref(&there), std::slice::from_ref(&there), &RunOptions::default());
    assert!(error.unwrap_err().message().contains("output 0 is in the memory of engine emulated:3"));
    // A node takes none.
    let (mut outer, x) = Builder::of("outer", 1);
    let error = outer.graph.add_program("inner", &program, &x, 1).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
    assert!(error.message().contains("'n1' on engine emulated:3"), "{error}");
}

#[test]
fn a_run_that_fails_leaves_its_tensors_to_the_device() {
    for seed in 1..=20 {
        let device = emulated(4, checked(seed), 2);
        let line = stream_of(&device);
        let (mut builder, x) = Builder::of("fails", 1);
        // Cheap, so that its turn comes when the device has been told of all of its work.
        builder.how.cost_ns = 1;
        let y = builder.input();
        let bad = builder.try_op(&[y], |_| Err(weir_core::base::Error::invalid("no")));
        builder.how.cost_ns = 100_000;
        builder.engine = device.clone();
        let mut value = x[0];
        for _ in 0..10 {
            value = builder.op(&[value], mix);
        }
        // The end of it, which would be waited for, is never begun.
        value = builder.op(&[value, bad], mix);
        builder.output(value);
        builder.graph.set_input_engine(0, Some(device.clone())).unwrap();
        builder.graph.set_output_engine(0, Some(device.clone())).unwrap();
        let program =
            Program::compile(&builder.graph, vec![cpu(), device.clone()], &CompileOptions::default()).unwrap();
        for _ in 0..5 {
            let input = number(&device, Some(&line), 5);
            let outputs = [number(&device, Some(&line), 5)];
            line.synchronize(u64::MAX).unwrap();
            let error =
                run_on(&program, None, vec![input, tensor(&cpu(), 1)], &outputs, &RunOptions::default()).unwrap_err();
            assert!(error.message().contains("no"), "{error}");
        }
        assert_eq!(races(&device), Vec::<String>::new(), "seed {seed}");
    }
}
