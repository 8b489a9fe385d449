//! Constants in the memory of emulated devices: read where they are, and there as long as a device may read them.

use crate::kit::emulated::Emulated;
use crate::kit::integers::Builder;
use crate::kit::run::{cpu, execute, fact, tensor};
use crate::ports::{Own, emulated, number, races, read, stream_of};
use crate::{checked, mix};
use weir_core::base::{Code, Ref};
use weir_core::engine::{Engine, Tensor};
use weir_core::graph::{CompileOptions, Program, RunOptions};

/// A number in an engine's memory.
fn there(engine: &Ref<Engine>, value: i32) -> Ref<Tensor> {
    let stream = stream_of(engine);
    let tensor = number(engine, Some(&stream), value);
    stream.synchronize(u64::MAX).unwrap();
    tensor
}

/// By nodes of their engine, of the host's, and of a device that copies straight; and given out, on the host and where
/// they are.
#[test]
fn whoever_wants_a_constant_of_an_engines_has_it() {
    for seed in 1..=20 {
        let own: [Own; 2] = [emulated(0, checked(seed), 1 + seed as u32 % 3), emulated(1, checked(seed + 50), 2)];
        let [a, b]: [&Ref<Engine>; 2] = [&own[0], &own[1]];
        let (mut builder, x) = Builder::of("constants", 1);
        let constant = builder.graph.add_constant("constant", there(a, 7)).unwrap();
        builder.engine = a.clone();
        let near = builder.op(&[x[0], constant], mix);
        builder.engine = cpu();
        let here = builder.op(&[constant, x[0]], mix);
        builder.engine = b.clone();
        let far = builder.op(&[constant, near], mix);
        [near, here, far, constant, constant].into_iter().for_each(|value| builder.output(value));
        builder.graph.set_output_engine(4, Some(a.clone())).unwrap();
        let engines = vec![cpu(), a.clone(), b.clone()];
        let program = Program::compile(&builder.graph, engines, &CompileOptions::default()).unwrap();
        drop(builder);
        let line = stream_of(a);
        for x in 0..6 {
            let mut outputs: Vec<_> = (0..4).map(|_| tensor(&cpu(), -1)).collect();
            outputs.push(number(a, Some(&line), -1));
            line.synchronize(u64::MAX).unwrap();
            execute(&program, &[tensor(&cpu(), x)], &outputs, &RunOptions::default()).unwrap();
            let found: Vec<i32> = outputs[..4].iter().map(|output| read(output, None)).collect();
            assert_eq!(found, [mix(&[x, 7]), mix(&[7, x]), mix(&[7, mix(&[x, 7])]), 7], "seed {seed}");
            assert_eq!(read(&outputs[4], Some(&line)), 7);
        }
        assert_eq!(races(a), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn they_are_not_copied_and_the_program_keeps_them() {
    let engine = emulated(2, checked(3), 1);
    let device = Emulated::of(engine.device()).unwrap();
    let (mut builder, x) = Builder::of("constants", 1);
    let constants: Vec<_> =
        (0..4).map(|i| builder.graph.add_constant(&format!("constant {i}"), there(&engine, 10 + i)).unwrap()).collect();
    builder.engine = engine.clone();
    let end = constants.iter().fold(x[0], |value, &constant| builder.op(&[value, constant], mix));
    builder.output(end);
    builder.graph.set_input_engine(0, Some(engine.clone())).unwrap();
    builder.graph.set_output_engine(0, Some(engine.clone())).unwrap();
    let program = Program::compile(&builder.graph, vec![cpu(), engine.clone()], &CompileOptions::default()).unwrap();
    drop(builder);
    let line = stream_of(&engine);
    let (input, output) = (number(&engine, Some(&line), 5), [number(&engine, Some(&line), 0)]);
    line.synchronize(u64::MAX).unwrap();
    for _ in 0..3 {
        let before = device.counters().copies;
        execute(&program, std::slice::from_ref(&input), &output, &RunOptions::default()).unwrap();
        assert_eq!(device.counters().copies, before);
        assert_eq!(read(&output[0], Some(&line)), (10..14).fold(5, |value, constant| mix(&[value, constant])));
    }
    assert_eq!(fact(&program, "uploads"), 0);
    assert_eq!(races(&engine), Vec::<String>::new());
}

#[test]
fn one_of_an_engine_that_the_program_has_not_is_refused() {
    let [own, other] = [emulated(3, checked(1), 1), emulated(4, checked(1), 1)];
    let (mut builder, x) = Builder::of("constants", 1);
    let constant = builder.graph.add_constant("weights", there(&other, 7)).unwrap();
    builder.engine = own.clone();
    let end = builder.op(&[x[0], constant], mix);
    builder.output(end);
    let error = Program::compile(&builder.graph, vec![cpu(), own.clone()], &CompileOptions::default()).err().unwrap();
    assert_eq!(error.code(), Code::InvalidArgument);
    let text = "node 'weights': its engine emulated:4 is not among the engines of the program";
    assert_eq!(error.message(), text);
}

/// The device may still read the program's constants, and whatever comes into their memory.
#[test]
fn a_run_that_fails_leaves_the_programs_constants_to_the_device() {
    for seed in 1..=20 {
        let device = emulated(4, checked(seed), 2);
        let next = stream_of(&device);
        let constant = there(&device, 7);
        let (mut builder, x) = Builder::of("fails", 1);
        builder.how.cost_ns = 1;
        let bad = builder.try_op(&x, |_| Err(weir_core::base::Error::invalid("no")));
        builder.how.cost_ns = 100_000;
        builder.engine = device.clone();
        let mut value = builder.graph.add_constant("constant", constant).unwrap();
        let first = value;
        for _ in 0..10 {
            value = builder.op(&[value, first], |x| mix(&[x[0] ^ x[1]]));
        }
        value = builder.op(&[value, bad], mix);
        builder.output(value);
        let program = Program::compile(&builder.graph, vec![cpu(), device.clone()], &CompileOptions::default());
        drop(builder);
        let outputs = [tensor(&cpu(), 0)];
        let run = execute(&program.unwrap(), &[tensor(&cpu(), 1)], &outputs, &RunOptions::default());
        assert!(run.unwrap_err().message().contains("no"));
        // Memory of the same size.
        let others: Vec<_> = (0..4).map(|i| number(&device, Some(&next), i)).collect();
        next.synchronize(u64::MAX).unwrap();
        assert_eq!(races(&device), Vec::<String>::new(), "seed {seed}");
        assert_eq!(others.iter().map(|other| read(other, Some(&next))).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
