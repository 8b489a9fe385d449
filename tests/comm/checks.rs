//! Differences that are found by comparing programs, and operations while they run.

use super::*;
use kit::integers::Builder;
use kit::run::{cpu, execute, on, run};
use weir_core::base::{Desc, Error, dtype};
use weir_core::comm::agree::agree;
use weir_core::engine::Tensor;
use weir_core::graph::{CompileOptions, Graph, Program, ValueId};

const LIMIT: u64 = 30_000_000_000;

fn text<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error: Error = result.unwrap_err();
    error.message().to_owned()
}

fn checked() -> CommOptions {
    CommOptions { is_checked: true, ..named("dp") }
}

/// A bucket of two tensors.
fn bucket(comm: &Ref<Communicator>, descs: [Desc; 2]) -> Ref<Program> {
    let mut graph = Graph::new("bucket");
    let values = [0, 1].map(|i| graph.add_input(&format!("i{i}"), descs[i]).unwrap());
    let settings = CommSettings { num_tensors: 2, ..SUM };
    let node = graph.add_kernel("bucket", kernel(comm, settings), &values, 2).unwrap();
    (0..2).for_each(|i| graph.add_output(&format!("o{i}"), node.output(i)).unwrap());
    Program::compile(&graph, vec![cpu()], &CompileOptions::default()).unwrap()
}

#[test]
fn members_of_a_bucket_that_are_swapped_are_found() {
    let [a, b] = [Desc::new(dtype::S32, &[1]), Desc::new(dtype::S32, &[2])];
    let comms = ranks(2, Offer::All, &checked());
    let texts = on_each(&comms, move |rank, comm| {
        let program = bucket(&comm, if rank == 0 { [a, b] } else { [b, a] });
        let before = text(agree(&program, &comm, LIMIT));
        let tensors = || -> Vec<Ref<Tensor>> {
            let descs = if rank == 0 { [a, b] } else { [b, a] };
            descs.into_iter().map(|desc| Tensor::create(cpu(), desc).unwrap()).collect()
        };
        [before, text(execute(&program, &tensors(), &tensors(), &on(None)))]
    });
    for text in texts.iter().flatten() {
        assert!(text.contains("(all_reduce s32[1] and 1 more)"), "{text}");
        assert!(text.contains("(all_reduce s32[2] and 1 more)"), "{text}");
    }
}

fn add(builder: &mut Builder, comm: &Ref<Communicator>, name: &str, settings: CommSettings, of: ValueId) -> ValueId {
    builder.graph.add_kernel(name, kernel(comm, settings), &[of], 1).unwrap().output(0)
}

/// Two operations with these names; their order is the names'.
fn two(comm: &Ref<Communicator>, names: [&str; 2]) -> Ref<Program> {
    let (mut builder, values) = Builder::of("two", 2);
    for (name, of) in names.into_iter().zip(&values) {
        let sum = add(&mut builder, comm, name, SUM, *of);
        builder.output(sum);
    }
    builder.compile()
}

/// Of equal operations only the names tell that two are swapped; and names that are each rank's own tell nothing.
#[test]
fn equal_operations_that_are_swapped_are_found_by_their_names() {
    let comms = ranks(2, Offer::All, &named("dp"));
    let results = on_each(&comms, |rank, comm| {
        let own = [format!("sum 1 of {rank}"), format!("sum 2 of {rank}")];
        agree(&two(&comm, [own[0].as_str(), own[1].as_str()]), &comm, LIMIT).unwrap();
        let names = if rank == 0 { ["sum x", "sum y"] } else { ["sum y", "sum x"] };
        text(agree(&two(&comm, names), &comm, LIMIT))
    });
    for text in results {
        let expected = "collective 1: rank 0 has node 'sum x' (all_reduce s32[1]), rank 1 has node 'sum y' (all_reduce";
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn messages_of_another_type_and_other_roots_are_named() {
    let comms = ranks(2, Offer::All, &named("pp"));
    let results = on_each(&comms, |rank, comm| {
        let (mut builder, values) = Builder::of("message", 1);
        if rank == 0 {
            let send = CommSettings { op: Op::WEIR_COMM_SEND, peer: 1, ..PLAIN };
            builder.graph.add_kernel("give", kernel(&comm, send), &values, 0).unwrap();
        } else {
            let desc = Some(Desc::new(dtype::F32, &[1]));
            let recv = CommSettings { op: Op::WEIR_COMM_RECV, peer: 0, desc, ..PLAIN };
            builder.graph.add_kernel("take", kernel(&comm, recv), &[], 1).unwrap();
        }
        builder.output(values[0]);
        let message = text(agree(&builder.compile(), &comm, LIMIT));
        let (mut builder, values) = Builder::of("roots", 1);
        let broadcast = CommSettings { op: Op::WEIR_COMM_BROADCAST, peer: rank, ..PLAIN };
        let value = add(&mut builder, &comm, "root's", broadcast, values[0]);
        builder.output(value);
        let roots = text(agree(&builder.compile(), &comm, LIMIT));
        let (mut builder, values) = Builder::of("ways", 1);
        let way = CommSettings { is_deterministic: rank == 1, ..SUM };
        let value = add(&mut builder, &comm, "sum", way, values[0]);
        builder.output(value);
        [message, roots, text(agree(&builder.compile(), &comm, LIMIT))]
    });
    for [message, roots, ways] in results {
        let expected =
            "(send s32[1] to rank 1) of rank 0 is received by node 'take' (recv f32[1] from rank 0) of rank 1";
        assert!(message.contains(expected), "{message}");
        assert!(roots.contains("(broadcast s32[1] from rank 0)"), "{roots}");
        assert!(roots.contains("(broadcast s32[1] from rank 1)"), "{roots}");
        assert!(ways.contains("(deterministic all_reduce s32[1])"), "{ways}");
    }
}

/// Two loops, each with its number of iterations.
fn loops(comm: &Ref<Communicator>) -> Ref<Program> {
    let (mut builder, values) = Builder::of("loops", 3);
    let mut value = values[2];
    for (at, &count) in values[..2].iter().enumerate() {
        let (mut condition, inputs) = Builder::of("condition", 2);
        let goes_on = condition.op(&inputs[..1], |x| i32::from(x[0] > 0));
        let (mut body, variables) = Builder::of("body", 2);
        let less = body.op(&variables[..1], |x| x[0] - 1);
        let sum = add(&mut body, comm, "sum of a name that is longer than a message", SUM, variables[1]);
        let (condition, body) = (condition.giving(&[goes_on]), body.giving(&[less, sum]));
        let name = format!("loop {at}");
        let node = builder.graph.add_while(&name, &condition, &body, &[count, value], &[], 1);
        value = node.unwrap().output(1);
    }
    builder.output(value);
    builder.compile()
}

/// Iterations that are as many in all, but not in each loop, or not in each run.
#[test]
fn loops_of_another_length_are_found() {
    for by_run in [false, true] {
        let comms = ranks(2, Offer::All, &checked());
        let results = on_each(&comms, move |rank, comm| {
            let program = loops(&comm);
            let [first, second] = if rank == 0 { [5, 3] } else { [4, 4] };
            if !by_run {
                return text(run(&program, &[first, second, 1], &on(None)));
            }
            let before = run(&program, &[first, 0, 1], &on(None));
            text(before.and_then(|_| run(&program, &[second, 0, 1], &on(None))))
        });
        for text in results {
            let at = |number: u32, run: u32| {
                let name = "sum of a name that is longer than a message";
                format!("node 'loop {number}/{name}' (while/all_reduce s32[1]) in run {run}")
            };
            let [a, b] = if by_run { [at(0, 1), at(0, 2)] } else { [at(0, 1), at(1, 1)] };
            assert!(text.contains(&a) && text.contains(&b), "{text}");
        }
    }
}
