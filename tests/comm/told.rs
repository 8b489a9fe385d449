//! Runs that fail in a loop, inside of a node, or before they begin: the other ranks hear of it, with its text. And
//! runs that fail when all that they had to do for the others is done.

use super::ends::{all_reduce, chain, message};
use super::*;
use kit::integers::{Builder, How};
use kit::run::{cpu, integer, lend, on, run, tensor};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use weir_core::base::Error;
use weir_core::comm::agree::agree;
use weir_core::device::DeviceKind;
use weir_core::engine::{Stream, StreamAttr, Tensor};
use weir_core::graph::{Program, Run, RunOptions};
use weir_core::kernel::{Completion, KernelContext, Task};

const LIMIT: u64 = 30_000_000_000;

fn disk_is_full() -> Error {
    Error::new(Code::DataLoss, "a disk is full")
}

/// On each rank, whose communicator is made in its thread.
fn on_ranks<T: Send + 'static>(
    size: usize,
    offer: Offer,
    options: CommOptions,
    f: impl Fn(usize, &Ref<Communicator>) -> T + Send + Sync + 'static,
) -> Vec<T> {
    on_threads(LocalTransport::create(size), move |rank, inner| {
        f(rank, &Communicator::create(poor(inner, offer), options.clone()).unwrap())
    })
}

/// A sum in each of five iterations. In the third one a kernel fails, if `fails`, behind everything else.
fn five_sums(comm: &Ref<Communicator>, fails: bool, in_condition: bool) -> Ref<Program> {
    let broken = move |x: &[i32]| if fails && x[0] == 2 { Err(disk_is_full()) } else { Ok(x[1]) };
    let (mut condition, inputs) = Builder::of("condition", 2);
    let mut goes_on = condition.op(&inputs[..1], |x| i32::from(x[0] > 0));
    let (mut body, variables) = Builder::of("body", 2);
    let count = body.op(&variables[..1], |x| x[0] - 1);
    let sum = all_reduce(&mut body, comm, "inside", variables[1]);
    let mut value = body.op(&[sum], |x| x[0] % 1000);
    if in_condition {
        goes_on = condition.named("broken", &[inputs[0], goes_on], broken);
    } else {
        value = body.named("broken", &[count, value], broken);
    }
    let (condition, body) = (condition.giving(&[goes_on]), body.giving(&[count, value]));
    let (mut builder, values) = Builder::of("loops", 1);
    let node = builder.graph.add_while("loop", &condition, &body, &[values[0], values[0]], &[], 1).unwrap();
    builder.output(node.output(1));
    builder.compile()
}

#[test]
fn a_failure_in_a_loop_is_told() {
    for (deterministic, finish_independent) in [(false, false), (true, false), (false, true)] {
        for (in_condition, threads) in [(false, 0), (true, 0), (false, 2)] {
            let results = on_ranks(3, Offer::All, named("dp"), move |rank, comm| {
                let pool = (threads > 0).then(|| kit::pools::of(threads));
                let options = RunOptions { deterministic, finish_independent, ..on(pool.as_ref()) };
                let program = five_sums(comm, rank == 1, in_condition);
                (message(run(&program, &[5], &options)), comm.figures().is_dead)
            });
            for (rank, ((code, text), is_dead)) in results.into_iter().enumerate() {
                assert!(is_dead, "rank {rank} lives");
                assert!(text.contains("broken', iteration") && text.contains("a disk is full"), "{text}");
                assert_eq!(code, if rank == 1 { Code::DataLoss } else { Code::Aborted }, "{text}");
                assert!(rank == 1 || text.contains("rank 1 gave up"), "{text}");
            }
        }
    }
}

/// What fails behind all operations costs the other ranks nothing.
#[test]
fn a_run_that_has_done_its_part_ends_nothing() {
    for finish_independent in [false, true] {
        let results = on_ranks(2, Offer::All, named("dp"), move |rank, comm| {
            let (mut builder, values) = Builder::of("fails", 2);
            let sum = all_reduce(&mut builder, comm, "sum", values[0]);
            let last = builder.named("last", &[values[1], sum], |x| match x[0] {
                1 => Err(disk_is_full()),
                _ => Ok(x[1]),
            });
            builder.output(last);
            let program = builder.compile();
            let options = RunOptions { finish_independent, ..on(None) };
            let first = run(&program, &[1, i32::from(rank == 1)], &options).is_ok();
            (first, run(&program, &[2, 0], &options).unwrap(), comm.figures().is_dead)
        });
        assert_eq!(results, [(true, vec![4], false), (false, vec![4], false)]);
    }
}

struct HostTask(Box<dyn Fn() -> Result<()> + Send + Sync>);

impl Task for HostTask {
    fn run(&self) -> Result<()> {
        (self.0)()
    }
}

/// What becomes of the work of a stream that the other rank waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Cancelled,
    /// The stream fails while the work waits in it, or before it comes.
    Fails,
    HasFailed,
}

#[test]
fn what_never_begins_on_a_stream_is_told() {
    for offer in [Offer::All, Offer::Keeps, Offer::OneThread] {
        for before in [Before::Cancelled, Before::Fails, Before::HasFailed] {
            for is_kernel in [false, true] {
                if !is_kernel || before != Before::Cancelled {
                    never_begun(offer, before, is_kernel);
                }
            }
        }
    }
}

fn never_begun(offer: Offer, before: Before, is_kernel: bool) {
    let results = on_ranks(2, offer, named("dp"), move |rank, comm| {
        let program = chain(comm, 2, None, None);
        if rank == 0 {
            let first = message(run(&program, &[1], &on(None)));
            return (first, message(run(&program, &[1], &on(None))).1, comm.figures().is_dead);
        }
        let mut attr = StreamAttr::new(DeviceKind::CPU);
        attr.asynchronous = true;
        let stream = Stream::create(cpu(), attr).unwrap();
        let (open, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let wait = move || {
            let _ = gate.lock().unwrap().recv();
            Ok(())
        };
        if before == Before::HasFailed {
            stream.enqueue_task(Arc::new(HostTask(Box::new(|| Err(disk_is_full()))))).unwrap();
            assert!(stream.synchronize(u64::MAX).is_err());
        } else {
            stream.enqueue_task(Arc::new(HostTask(Box::new(wait)))).unwrap();
        }
        if before == Before::Fails {
            stream.enqueue_task(Arc::new(HostTask(Box::new(|| Err(disk_is_full()))))).unwrap();
        }
        let [input, output] = [tensor(&cpu(), 1), tensor(&cpu(), -1)];
        let submitted = if is_kernel {
            stream.enqueue(kernel(comm, SUM), vec![input.clone()], vec![output.clone()]).map(|()| None)
        } else {
            let (get_in, get_out) = (|_| Ok(lend(&input)), |_| Ok(lend(&output)));
            Program::bind(&program, (1, &get_in), (1, &get_out)).unwrap().start(&stream, None).map(Some)
        };
        let result = match submitted {
            Ok(Some(handle)) => {
                if before == Before::Cancelled {
                    handle.cancel();
                }
                drop(open);
                Run::wait(&handle, u64::MAX)
            }
            Ok(None) => {
                drop(open);
                stream.synchronize(u64::MAX)
            }
            Err(error) => Err(error),
        };
        // The thread of the transport may be another one than that which has found it out.
        comm.progress(LIMIT);
        (message(result), message(run(&program, &[1], &on(None))).1, comm.figures().is_dead)
    });
    for (rank, ((code, text), again, is_dead)) in results.iter().enumerate() {
        let of = format!("{offer:?}, {before:?}, {is_kernel}, rank {rank}: {text}; {again}");
        let why = if before == Before::Cancelled { "the run was cancelled" } else { "a disk is full" };
        assert!(text.contains(why), "{of}");
        assert!(*is_dead && again.contains("is dead"), "{of}");
        if rank == 0 {
            assert_eq!(*code, Code::Aborted, "{of}");
            assert!(text.contains("rank 1 gave up"), "{of}");
        }
    }
}

/// Sums of a graph, of a program in it, and of one in a loop of it, whose values depend on their order.
fn with_programs(comm: &Ref<Communicator>, fails: bool) -> Ref<Program> {
    let inner = chain(comm, 2, None, None);
    let (mut condition, inputs) = Builder::of("condition", 2);
    let goes_on = condition.op(&inputs[..1], |x| i32::from(x[0] > 0));
    let (mut body, variables) = Builder::of("body", 2);
    let count = body.op(&variables[..1], |x| x[0] - 1);
    let value = body.graph.add_program("in a loop", &inner, &variables[1..], 1).unwrap().output(0);
    let (condition, body) = (condition.giving(&[goes_on]), body.giving(&[count, value]));
    let (mut middle, values) = Builder::of("middle", 1);
    let value = middle.graph.add_program("inside", &inner, &values, 1).unwrap().output(0);
    let value = middle.try_op(&[value], move |x| if fails { Err(disk_is_full()) } else { Ok(x[0]) });
    let beside = all_reduce(&mut middle, comm, "beside", values[0]);
    middle.output(value);
    middle.output(beside);
    let middle = middle.compile();
    let (mut builder, values) = Builder::of("outer", 1);
    let first = all_reduce(&mut builder, comm, "first", values[0]);
    let node = builder.graph.add_program("program", &middle, &values, 2).unwrap();
    let three = builder.constant(3);
    let looped = builder.graph.add_while("loop", &condition, &body, &[three, values[0]], &[], 1).unwrap();
    let last = all_reduce(&mut builder, comm, "last", values[0]);
    let all = [first, node.output(0), node.output(1), looped.output(1), last];
    all.into_iter().for_each(|value| builder.output(value));
    builder.compile()
}

#[test]
fn programs_inside_take_their_turn() {
    for offer in [Offer::All, Offer::Messages(u64::MAX), Offer::OneThread] {
        for (is_checked, threads) in [(true, 0), (false, 0), (false, 2)] {
            let options = CommOptions { is_checked, ..named("dp") };
            on_ranks(3, offer, options, move |_, comm| {
                let pool = (threads > 0).then(|| kit::pools::of(threads));
                let program = with_programs(comm, false);
                agree(&program, comm, LIMIT).unwrap();
                let begun = comm.figures().begun;
                for (deterministic, finish_independent) in [(false, false), (true, false), (false, true)] {
                    let options = RunOptions { deterministic, finish_independent, ..on(pool.as_ref()) };
                    assert_eq!(run(&program, &[1], &options).unwrap(), [3, 9, 3, 729, 3]);
                }
                assert_eq!(comm.figures().begun - begun, 3 * 11);
                assert!(!comm.figures().is_dead);
            });
        }
    }
    let texts = on_ranks(2, Offer::All, named("dp"), |rank, comm| {
        let inner = chain(comm, 3, (rank == 1).then_some(1), None);
        let (mut builder, values) = Builder::of("outer", 1);
        let first = all_reduce(&mut builder, comm, "first", values[0]);
        let node = builder.graph.add_program("program", &inner, &[first], 1).unwrap();
        builder.output(node.output(0));
        message(agree(&builder.compile(), comm, LIMIT)).1
    });
    for text in texts {
        assert!(text.contains("differ at collective 3: rank 0 has node 'program/step 1'"), "{text}");
    }
}

#[test]
fn a_failure_in_a_program_inside_is_told() {
    for threads in [0, 2] {
        let results = on_ranks(2, Offer::All, named("dp"), move |rank, comm| {
            let pool = (threads > 0).then(|| kit::pools::of(threads));
            let program = with_programs(comm, rank == 1);
            (message(run(&program, &[1], &on(pool.as_ref()))), comm.figures().is_dead)
        });
        let [((code, text), true), ((_, own), true)] = &results[..] else { panic!("{results:?}") };
        assert_eq!(*code, Code::Aborted, "{text}");
        assert!(text.contains("rank 1 gave up") && text.contains("a disk is full"), "{text}");
        assert!(own.contains("a disk is full"), "{own}");
    }
}

/// A kernel fails beside a program whose operation is under way: the text is that of the kernel.
#[test]
fn a_failure_beside_a_program_inside_is_told() {
    let barrier = Arc::new(Barrier::new(2));
    let results = on_ranks(2, Offer::All, named("dp"), move |rank, comm| {
        let inner = chain(comm, 2, None, None);
        let (mut builder, values) = Builder::of("outer", 1);
        let node = builder.graph.add_program("program", &inner, &values, 1).unwrap();
        let fails_later = move |_: &KernelContext<'_>, done: Completion, result: Result<()>| {
            std::thread::spawn(move || {
                // Until then the program's sum is waited for.
                std::thread::sleep(std::time::Duration::from_millis(50));
                let _ = done.done(result);
            });
        };
        builder.how = How { later: Some(Arc::new(fails_later)), ..How::default() };
        let layer = builder.named("layer 3", &values, move |x| if rank == 1 { Err(disk_is_full()) } else { Ok(x[0]) });
        builder.output(node.output(0));
        builder.output(layer);
        let program = builder.compile();
        if rank == 0 {
            barrier.wait();
            return message(run(&program, &[1], &on(None)));
        }
        let result = message(run(&program, &[1], &on(None)));
        barrier.wait();
        result
    });
    let (code, text) = &results[0];
    assert_eq!(*code, Code::Aborted, "{text}");
    assert!(text.contains("rank 1 gave up") && text.contains("node 'layer 3': a disk is full"), "{text}");
    assert_eq!(results[1].0, Code::DataLoss, "{}", results[1].1);
}

/// Runs the program once for each input, in one call.
fn run_many(program: &Ref<Program>, inputs: &[i32], options: &RunOptions) -> (Result<()>, Vec<i32>) {
    let inputs: Vec<_> = inputs.iter().map(|&value| tensor(&cpu(), value)).collect();
    let outputs: Vec<Ref<Tensor>> = inputs.iter().map(|_| tensor(&cpu(), -1)).collect();
    let result = Program::run_many(program, Some(options), inputs.len(), &|i, then| {
        then(&Program::bind(program, (1, &|_| Ok(lend(&inputs[i]))), (1, &|_| Ok(lend(&outputs[i]))))?)
    });
    (result, outputs.iter().map(|output| integer(output)).collect())
}

#[test]
fn many_runs_come_one_after_the_other() {
    for threads in [0, 3] {
        on_ranks(2, Offer::All, CommOptions { is_checked: true, ..named("dp") }, move |rank, comm| {
            let pool = (threads > 0).then(|| kit::pools::of(threads));
            let inputs: Vec<i32> = (0..8).map(|i| 10 * i + rank as i32).collect();
            let (result, outputs) = run_many(&chain(comm, 3, None, None), &inputs, &on(pool.as_ref()));
            result.unwrap();
            let expected: Vec<i32> = (0..8).map(|i| (20 * i + 1) % 1000 * 4 % 1000).collect();
            assert_eq!(outputs, expected);
        });
    }
    // The last node of a run fails, so that it has done its part; but others are behind it.
    let results = on_ranks(2, Offer::All, named("dp"), |rank, comm| {
        let (mut builder, values) = Builder::of("fails", 1);
        let sum = all_reduce(&mut builder, comm, "sum", values[0]);
        let last = builder.try_op(&[sum], move |x| if rank == 1 && x[0] == 4 { Err(disk_is_full()) } else { Ok(x[0]) });
        builder.output(last);
        (message(run_many(&builder.compile(), &[1, 2, 3], &on(None)).0), comm.figures().is_dead)
    });
    let [((code, text), true), ((_, own), true)] = &results[..] else { panic!("{results:?}") };
    assert_eq!(*code, Code::Aborted, "{text}");
    assert!(text.contains("instance 2") && text.contains("rank 1 gave up"), "{text}");
    assert!(text.contains("a disk is full") && own.contains("instance 1"), "{text}; {own}");
}

/// With another rank that is silent, the ranks are asked for a tenth of a second, however long the limit was.
#[test]
fn a_limit_is_overrun_by_little() {
    let barrier = Arc::new(Barrier::new(2));
    let results = on_ranks(2, Offer::All, CommOptions { limit_ns: 2_000_000_000, ..named("dp") }, move |rank, comm| {
        let began = std::time::Instant::now();
        let result = if rank == 0 { run(&chain(comm, 1, None, None), &[1], &on(None)) } else { Ok(Vec::new()) };
        let took = began.elapsed();
        barrier.wait();
        (result, took)
    });
    let (result, took) = &results[0];
    assert!(message(result.clone()).1.contains("rank 1 did not answer"), "{result:?}");
    assert!((2_000..2_400).contains(&took.as_millis()), "{took:?}");
}

/// Two ranks that do not the same: both operations are told, and no rank is named twice for one thing.
#[test]
fn a_difference_is_told_once() {
    let results = on_ranks(2, Offer::All, named("dp"), |rank, comm| {
        let program = chain(comm, 1, (rank == 1).then_some(0), None);
        let first = message(run(&program, &[1], &on(None))).1;
        (first, message(run(&program, &[1], &on(None))).1, comm.label())
    });
    for (first, later, label) in results {
        let both = "rank 1: it does all_reduce of maxima, 1 x s32, and rank 0 does all_reduce, 1 x s32";
        for text in [&first, &later] {
            assert!(text.matches(both).count() == 1 && text.matches(&label).count() == 1, "{text}");
        }
        assert!(later.contains(&format!("{label} is dead: ")), "{later}");
    }
}
