//! An index that is none of the table's: the stream's failure, or the run's, as on the processor, and nobody has waited
//! for it.

use crate::kit::{fake, is_fake, with_driver};
use crate::programs::{bound, cpu, floats, gpu, lend, words};
use std::mem::ManuallyDrop;
use weir_core::base::{Code, Desc, Ref, Result, dtype};
use weir_core::engine::{BoundKernel, Engine, Event, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program};
use weir_core::ops::{Binary, Gather, Operator, weir_binary_op_value, weir_gather_desc};

const ROWS: usize = 5;
const WIDTH: usize = 4;
const COUNT: usize = 3;

fn gather(engine: &Ref<Engine>) -> Ref<BoundKernel> {
    let desc = weir_gather_desc { axis: 0, ..Gather::DEFAULT.unwrap() };
    bound::<Gather>(engine, desc)
}

fn table() -> Vec<f32> {
    (0..ROWS * WIDTH).map(|i| i as f32 * 0.5).collect()
}

fn of_indices() -> Desc {
    Desc::new(dtype::S32, &[COUNT as i64])
}

fn of_rows() -> Desc {
    Desc::new(dtype::F32, &[COUNT as i64, WIDTH as i64])
}

fn indices(values: [i32; COUNT]) -> Ref<Tensor> {
    let tensor = Tensor::create(cpu(), of_indices()).unwrap();
    // SAFETY: an array of so many numbers on the host that nobody uses yet.
    unsafe { tensor.data().cast::<i32>().copy_from(values.as_ptr(), values.len()) };
    tensor
}

fn rows(values: [i32; COUNT]) -> Vec<u32> {
    let table = table();
    let row = |index: i32| table.iter().skip(index as usize * WIDTH).take(WIDTH).map(|x| x.to_bits());
    values.into_iter().flat_map(row).collect()
}

/// What the processor says.
fn refusal(values: [i32; COUNT]) -> String {
    let (host, out) = (cpu(), Tensor::create(cpu(), of_rows()).unwrap());
    let stream = Stream::create(host.clone(), StreamAttr::new(host.kind())).unwrap();
    let table = floats(&host, &[ROWS as i64, WIDTH as i64], &table());
    let error = stream.enqueue(gather(&host), vec![table, indices(values)], vec![out]).unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
    let text = error.message();
    text[text.find("input 1").unwrap()..].to_owned()
}

pub struct Lookup {
    pub engine: Ref<Engine>,
    kernel: Ref<BoundKernel>,
    table: Ref<Tensor>,
    out: Ref<Tensor>,
}

impl Lookup {
    pub fn new() -> (Lookup, Ref<Stream>) {
        let engine = gpu(1);
        let there = |desc| Tensor::create(engine.clone(), desc).unwrap();
        let dims = [ROWS as i64, WIDTH as i64];
        let (table_there, out) = (there(Desc::new(dtype::F32, &dims)), there(of_rows()));
        let lookup = Lookup { kernel: gather(&engine), table: table_there, out, engine };
        let stream = lookup.stream();
        stream.enqueue_copy(floats(&cpu(), &dims, &table()), lookup.table.clone()).unwrap();
        stream.synchronize(u64::MAX).unwrap();
        (lookup, stream)
    }

    fn stream(&self) -> Ref<Stream> {
        Stream::create(self.engine.clone(), StreamAttr::new(self.engine.kind())).unwrap()
    }

    fn enqueue(&self, stream: &Ref<Stream>, values: [i32; COUNT]) -> Result<()> {
        let there = self.indices(stream, values)?;
        self.enqueue_from(stream, &there)
    }

    /// Indices on the device.
    pub fn indices(&self, stream: &Ref<Stream>, values: [i32; COUNT]) -> Result<Ref<Tensor>> {
        let there = Tensor::create(self.engine.clone(), of_indices()).unwrap();
        stream.enqueue_copy(indices(values), there.clone()).map(|()| there)
    }

    pub fn enqueue_from(&self, stream: &Ref<Stream>, indices: &Ref<Tensor>) -> Result<()> {
        stream.enqueue(self.kernel.clone(), vec![self.table.clone(), indices.clone()], vec![self.out.clone()])
    }

    /// Other indices in their place.
    pub fn set(&self, stream: &Ref<Stream>, there: &Ref<Tensor>, values: [i32; COUNT]) {
        stream.enqueue_copy(indices(values), there.clone()).unwrap();
        stream.synchronize(u64::MAX).unwrap();
    }

    pub fn check(&self, stream: &Ref<Stream>, values: [i32; COUNT]) {
        let here = Tensor::create(cpu(), of_rows()).unwrap();
        stream.enqueue_copy(self.out.clone(), here.clone()).unwrap();
        stream.synchronize(u64::MAX).unwrap();
        assert_eq!(words(&here), rows(values));
    }
}

/// Each time is looked at by itself.
#[test]
fn an_index_outside_is_found_by_a_call_that_comes_again() {
    with_driver(&[("SEED", "2")], || {
        let (lookup, stream) = Lookup::new();
        let there = Tensor::create(lookup.engine.clone(), of_indices()).unwrap();
        let give = |values| {
            stream.enqueue_copy(indices(values), there.clone()).unwrap();
            let inputs = vec![lookup.table.clone(), there.clone()];
            stream.enqueue(lookup.kernel.clone(), inputs, vec![lookup.out.clone()]).unwrap();
        };
        give([4, 0, 2]);
        give([1, 3, 3]);
        lookup.check(&stream, [1, 3, 3]);
        give([4, 0, 2]);
        give([0, 0, 5]);
        give([1, 3, 3]);
        let error = stream.synchronize(u64::MAX).unwrap_err();
        assert!(error.message().contains(&refusal([0, 0, 5])), "{error}");
        stream.clear_error();
        give([2, 2, 2]);
        give([1, 0, 4]);
        lookup.check(&stream, [1, 0, 4]);
    });
}

#[test]
fn an_index_outside_is_the_failure_of_its_stream() {
    for version in ["12000", "13000"] {
        let ran = with_driver(&[("VERSION", version)], || {
            let (lookup, stream) = Lookup::new();
            lookup.enqueue(&stream, [4, 0, 2]).unwrap();
            lookup.check(&stream, [4, 0, 2]);
            for values in [[0, 5, 1], [-1, 7, 1], [1, 2, i32::MIN]] {
                let (before, behind) = (Event::create(lookup.engine.clone(), false), lookup.stream());
                before.record(&stream).unwrap();
                lookup.enqueue(&stream, values).unwrap();
                let after = Event::create(lookup.engine.clone(), false);
                after.record(&stream).unwrap();
                behind.wait_event(&after).unwrap();
                before.synchronize(u64::MAX).unwrap();
                let error = stream.synchronize(u64::MAX).unwrap_err();
                assert_eq!(error.code(), Code::OutOfRange, "{error}");
                let text = refusal(values);
                // Which of two is found first is the device's.
                if values[0] != -1 {
                    assert!(error.message().contains(&text), "{error}, the processor says {text}");
                }
                assert!(error.message().contains("kernel 'gather': input 1: element "), "{error}");
                assert_eq!(after.synchronize(u64::MAX).unwrap_err().code(), error.code());
                assert!(behind.synchronize(u64::MAX).is_err(), "who waited for it has failed, too");
                assert_eq!(lookup.enqueue(&stream, [0; COUNT]).unwrap_err().code(), Code::FailedPrecondition);
                stream.clear_error();
                lookup.enqueue(&stream, [3, 3, 1]).unwrap();
                lookup.check(&stream, [3, 3, 1]);
            }
        });
        if ran.is_none() {
            return;
        }
    }
}

#[test]
fn good_indices_are_told_by_nobody() {
    with_driver(&[], || {
        let (lookup, stream) = Lookup::new();
        lookup.enqueue(&stream, [1, 2, 3]).unwrap();
        lookup.check(&stream, [1, 2, 3]);
        let asked = ["cuMemHostAlloc", "cuStreamSynchronize", "cuCtxSynchronize"];
        let before = asked.map(fake::counted);
        for _ in 0..20 {
            lookup.enqueue(&stream, [4, 2, 3]).unwrap();
        }
        assert_eq!(asked.map(fake::counted), before);
        lookup.check(&stream, [4, 2, 3]);
    });
}

fn run(program: &Ref<Program>, values: [i32; COUNT]) -> Result<Vec<u32>> {
    let (x, y) = (indices(values), Tensor::create(cpu(), of_rows()).unwrap());
    // SAFETY: second owners that are never dropped; the first ones outlive the call.
    let lend = |tensor: &Ref<Tensor>| ManuallyDrop::new(unsafe { std::ptr::read(tensor) });
    let (get_in, get_out) = (|_: usize| Ok(lend(&x)), |_: usize| Ok(lend(&y)));
    Program::bind(program, (1, &get_in), (1, &get_out))?.run(None, None)?;
    Ok(words(&y))
}

/// Issued, recorded, replayed; and again after each failure.
#[test]
fn an_index_outside_is_the_failure_of_a_run() {
    for version in ["12000", "12040", "13000"] {
        let ran = with_driver(&[("VERSION", version), ("SEED", "3")], || {
            let engine = gpu(2);
            let mut graph = Graph::new("embedding");
            let numbers = graph.add_input("numbers", of_indices()).unwrap();
            let table = floats(&cpu(), &[ROWS as i64, WIDTH as i64], &table());
            let table = graph.add_constant("table", table).unwrap();
            let found = graph.add_kernel("rows", gather(&engine), &[table, numbers], 1).unwrap().output(0);
            let most = bound::<Binary>(&engine, Binary::desc(weir_binary_op_value::WEIR_BINARY_MAX));
            let end = (0..4).fold(found, |value, i| {
                let node = graph.add_kernel(&format!("most {i}"), most.clone(), &[value, found], 1);
                node.unwrap().output(0)
            });
            graph.add_output("y", end).unwrap();
            let program = Program::compile(&graph, vec![cpu(), engine.clone()], &CompileOptions::default()).unwrap();
            let good = |replays: bool| {
                let before = fake::counted("cuGraphLaunch");
                assert_eq!(run(&program, [4, 0, 1]).unwrap(), rows([4, 0, 1]));
                assert!((fake::counted("cuGraphLaunch") > before) == replays || !is_fake());
            };
            let bad = |values: [i32; COUNT]| {
                let error = run(&program, values).unwrap_err();
                let text = format!("engine cuda:0: node 'rows': {}", refusal(values));
                assert!(error.code() == Code::OutOfRange && error.message().contains(&text), "{error}, not {text}");
            };
            [false, true, true].into_iter().for_each(good);
            bad([0, 1, 5]);
            [false, true].into_iter().for_each(good);
            bad([0, -1, 2]);
            // Issued, and not replayed.
            bad([9, 1, 2]);
            bad([0, 9, 2]);
            [false, true, true].into_iter().for_each(good);
        });
        if ran.is_none() {
            return;
        }
    }
}

/// In a run that is a stream's own: launched, recorded, and replayed.
#[test]
fn an_index_outside_is_the_failure_of_the_stream_that_a_run_is_on() {
    with_driver(&[("SEED", "2")], || {
        let (lookup, stream) = Lookup::new();
        let engine = &lookup.engine;
        let mut graph = Graph::new("rows");
        let numbers = graph.add_input("numbers", of_indices()).unwrap();
        let table = floats(&cpu(), &[ROWS as i64, WIDTH as i64], &table());
        let table = graph.add_constant("table", table).unwrap();
        let found = graph.add_kernel("rows", lookup.kernel.clone(), &[table, numbers], 1).unwrap().output(0);
        let most = bound::<Binary>(engine, Binary::desc(weir_binary_op_value::WEIR_BINARY_MAX));
        let end = graph.add_kernel("most", most, &[found, found], 1).unwrap().output(0);
        graph.add_output("y", end).unwrap();
        graph.set_input_engine(0, Some(engine.clone())).unwrap();
        graph.set_output_engine(0, Some(engine.clone())).unwrap();
        let program = Program::compile(&graph, vec![cpu(), engine.clone()], &CompileOptions::default()).unwrap();
        let there = Tensor::create(engine.clone(), of_indices()).unwrap();
        let go = |values: [i32; COUNT]| {
            stream.enqueue_copy(indices(values), there.clone())?;
            let (get_in, get_out) = (|_: usize| Ok(lend(&there)), |_: usize| Ok(lend(&lookup.out)));
            Program::bind(&program, (1, &get_in), (1, &get_out))?.run(Some(&stream), None)
        };
        for (bad, runs) in [([0, 5, 1], 1), ([1, -1, 0], 2), ([9, 1, 2], 4)] {
            for _ in 0..runs {
                go([4, 0, 1]).unwrap();
                lookup.check(&stream, [4, 0, 1]);
            }
            go(bad).unwrap();
            let error = stream.synchronize(u64::MAX).unwrap_err();
            let text = format!("node 'rows': {}", refusal(bad));
            assert!(error.code() == Code::OutOfRange && error.message().contains(&text), "{error}, not {text}");
            assert_eq!(go([0; COUNT]).unwrap_err().code(), Code::FailedPrecondition);
            stream.clear_error();
        }
        go([2, 2, 3]).unwrap();
        lookup.check(&stream, [2, 2, 3]);
        let report = program.report(weir_core::graph::ReportFormat::Json);
        assert!(report.contains("\"direct_runs\":11,"), "{report}");
    });
}
