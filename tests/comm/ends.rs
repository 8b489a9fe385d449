//! Ranks that differ, fail, hang, cancel and come late: each rank's run ends, with a text that says why.

use super::*;
use kit::integers::{Builder, How};
use kit::run::{cpu, on, run, tensor};
use std::sync::Barrier;
use weir_core::base::Error;
use weir_core::comm::agree::agree;
use weir_core::device::DeviceKind;
use weir_core::engine::{Stream, StreamAttr};
use weir_core::graph::{CompileOptions, Program, RunOptions, ValueId};
use weir_core::kernel::{Completion, KernelContext};

const LIMIT: u64 = 30_000_000_000;

pub fn all_reduce(builder: &mut Builder, comm: &Ref<Communicator>, name: &str, of: ValueId) -> ValueId {
    builder.graph.add_kernel(name, kernel(comm, SUM), &[of], 1).unwrap().output(0)
}

/// `count` all_reduces, one behind the other, with a maximum in the place of `odd`.
pub fn chain(comm: &Ref<Communicator>, count: usize, odd: Option<usize>, without: Option<usize>) -> Ref<Program> {
    let (mut builder, values) = Builder::of("chain", 1);
    let mut value = values[0];
    for step in 0..count {
        let settings =
            if odd == Some(step) { CommSettings { reduction: Some(Reduction::WEIR_COMM_MAX), ..SUM } } else { SUM };
        if without != Some(step) {
            let name = format!("step {step}");
            value = builder.graph.add_kernel(&name, kernel(comm, settings), &[value], 1).unwrap().output(0);
        }
        value = builder.op(&[value], |x| x[0] % 1000);
    }
    builder.output(value);
    builder.compile()
}

pub fn message<T: std::fmt::Debug>(result: Result<T>) -> (Code, String) {
    let error = result.unwrap_err();
    (error.code(), error.message().to_owned())
}

#[test]
fn programs_that_differ_are_named() {
    for k in 0..20 {
        let comms = ranks(3, Offer::All, &named("dp"));
        let texts = on_each(&comms, move |rank, comm| {
            let odd = (rank == 1).then_some(k);
            message(agree(&chain(&comm, 20, odd, None), &comm, LIMIT))
        });
        for (code, text) in texts {
            assert_eq!(code, Code::FailedPrecondition);
            let at = format!("differ at collective {}: rank 0 has node 'step {k}' (all_reduce s32[1])", k + 1);
            assert!(text.contains(&at), "{text}");
            assert!(text.contains(&format!("rank 1 has node 'step {k}' (all_reduce of maxima s32[1])")), "{text}");
        }
    }
    let comms = ranks(2, Offer::All, &named("dp"));
    let texts =
        on_each(&comms, |rank, comm| message(agree(&chain(&comm, 5, None, (rank == 1).then_some(4)), &comm, LIMIT)).1);
    assert!(texts[0].contains("collective 5") && texts[0].contains("rank 1 has no operation"), "{texts:?}");
}

#[test]
fn messages_without_a_counterpart_and_circles_are_named() {
    let send = |peer, tag| CommSettings { op: Op::WEIR_COMM_SEND, peer, tag, ..PLAIN };
    let recv = |peer, tag| CommSettings { op: Op::WEIR_COMM_RECV, peer, tag, desc: Some(kit::run::scalar()), ..PLAIN };
    let comms = ranks(2, Offer::All, &named("pp"));
    let texts = on_each(&comms, move |rank, comm| {
        let (mut builder, values) = Builder::of("unpaired", 1);
        if rank == 0 {
            builder.graph.add_kernel("give", kernel(&comm, send(1, 3)), &values, 0).unwrap();
        }
        builder.output(values[0]);
        message(agree(&builder.compile(), &comm, LIMIT)).1
    });
    for text in &texts {
        let expected = "node 'give' (send s32[1] to rank 1) of rank 0, tag 3, is not received by rank 1";
        assert!(text.contains(expected), "{text}");
    }
    // Both ranks receive before they send what they have received.
    let comms = ranks(2, Offer::All, &named("pp"));
    let texts = on_each(&comms, move |rank, comm| {
        let mut builder = Builder::new("circle");
        let got = builder.graph.add_kernel("take", kernel(&comm, recv(1 - rank, 0)), &[], 1).unwrap().output(0);
        builder.graph.add_kernel("give", kernel(&comm, send(1 - rank, 0)), &[got], 0).unwrap();
        builder.output(got);
        message(agree(&builder.compile(), &comm, LIMIT)).1
    });
    for text in &texts {
        assert!(text.contains("wait for one another in a circle"), "{text}");
        assert!(text.contains("of rank 0") && text.contains("of rank 1"), "{text}");
    }
}

/// A collective that is another one on one rank, at each place: found when it is begun, and named on both ranks.
#[test]
fn checked_operations_that_differ_end_the_runs() {
    for k in 0..20 {
        let comms = ranks(2, Offer::Blind, &CommOptions { is_checked: true, ..named("dp") });
        let texts = on_each(&comms, move |rank, comm| {
            let program = chain(&comm, 20, (rank == 1).then_some(k), None);
            message(run(&program, &[1], &on(None))).1
        });
        let place = format!("operation {} is", k + 1);
        assert!(texts.iter().any(|text| text.contains(&place)), "{texts:#?}");
        for text in texts {
            assert!(text.contains("all_reduce s32[1]") && text.contains("all_reduce of maxima s32[1]"), "{text}");
        }
    }
}

/// A sum on each path: `loops` says whether the number decides how often, or in which branch. Then a sum behind it.
fn by_predicate(comm: &Ref<Communicator>, loops: bool) -> Ref<Program> {
    let (mut builder, values) = Builder::of("by predicate", 1);
    let sum = |name: &str| {
        let (mut branch, inputs) = Builder::of(name, 1);
        let value = all_reduce(&mut branch, comm, "inside", inputs[0]);
        branch.giving(&[value])
    };
    let value = if loops {
        let (mut condition, inputs) = Builder::of("condition", 2);
        let goes_on = condition.op(&inputs[..1], |x| i32::from(x[0] > 0));
        let (mut body, variables) = Builder::of("body", 2);
        let count = body.op(&variables[..1], |x| x[0] - 1);
        let value = all_reduce(&mut body, comm, "inside", variables[1]);
        let (condition, body) = (condition.giving(&[goes_on]), body.giving(&[count, value]));
        let node = builder.graph.add_while("loop", &condition, &body, &[values[0], values[0]], &[], 1);
        node.unwrap().output(1)
    } else {
        let (then, otherwise) = (sum("then"), sum("else"));
        builder.graph.add_cond("cond", values[0], &then, &otherwise, &values).unwrap().output(0)
    };
    let value = all_reduce(&mut builder, comm, "behind", value);
    builder.output(value);
    builder.compile()
}

/// Ranks that take different branches, or a loop a different number of times, are found though they do the same
/// operations; and those that agree are left alone.
#[test]
fn checked_predicates_that_differ_end_the_runs() {
    for loops in [false, true] {
        for numbers in [[1, 1], [1, 0]] {
            let comms = ranks(2, Offer::Blind, &CommOptions { is_checked: true, ..named("dp") });
            let results = on_each(&comms, move |rank, comm| {
                let program = by_predicate(&comm, loops);
                agree(&program, &comm, LIMIT).unwrap();
                run(&program, &[numbers[rank]], &on(None))
            });
            if numbers[0] == numbers[1] {
                assert!(results.iter().all(Result::is_ok), "{results:?}");
                continue;
            }
            let [inside, other] = if loops {
                ["(while/all_reduce s32[1])", "(all_reduce s32[1])"]
            } else {
                ["(cond 0/all_reduce s32[1])", "(cond 1/all_reduce s32[1])"]
            };
            for result in results {
                let (_, text) = message(result);
                assert!(text.contains(inside) && text.contains(other), "{text}");
            }
        }
    }
}

#[test]
fn a_rank_that_fails_ends_all_runs() {
    for offer in [Offer::All, Offer::Keeps, Offer::Messages(u64::MAX)] {
        for has_thread in [false, true] {
            let comms = ranks(3, offer, &CommOptions { has_thread, ..named("dp") });
            let results = on_each(&comms, |rank, comm| {
                let (mut builder, values) = Builder::of("fails", 1);
                let first = all_reduce(&mut builder, &comm, "first", values[0]);
                let broken = builder.named("broken", &[first], move |x| match rank {
                    1 => Err(Error::new(Code::DataLoss, "a disk is full")),
                    _ => Ok(x[0]),
                });
                let second = all_reduce(&mut builder, &comm, "second", broken);
                builder.output(second);
                let program = builder.compile();
                let first = message(run(&program, &[1], &on(None)));
                let again = message(run(&program, &[1], &on(None)));
                (first, again, comm.figures())
            });
            for (rank, (first, again, figures)) in results.iter().enumerate() {
                if rank == 1 {
                    assert_eq!(first.0, Code::DataLoss);
                } else {
                    assert_eq!(first.0, Code::Aborted, "{first:?}");
                    let expected = "rank 1 gave up: communicator 'dp' (rank 1 of 3): the run has failed: node 'broken'";
                    assert!(first.1.contains(expected), "{first:?}");
                    assert!(first.1.contains("a disk is full"), "{first:?}");
                }
                assert!(again.1.contains("is dead"), "{again:?}");
                assert!(figures.is_dead);
                assert!(offer == Offer::Keeps || figures.quarantined_bytes == 0, "{offer:?}, rank {rank}");
            }
        }
    }
}

/// A rank that never comes, and one that has come less far.
#[test]
fn a_limit_names_who_is_missing() {
    let comms = ranks(3, Offer::All, &CommOptions { limit_ns: 200_000_000, ..named("dp") });
    let barrier = Arc::new(Barrier::new(3));
    let results = on_each(&comms, move |rank, comm| {
        let result = if rank == 2 { Ok(Vec::new()) } else { run(&chain(&comm, 3, None, None), &[1], &on(None)) };
        barrier.wait();
        (result, comm)
    });
    // Whoever finds out first tells the other one.
    let texts: Vec<_> = results[..2].iter().map(|(result, _)| message(result.clone())).collect();
    assert!(texts.iter().any(|text| text.0 == Code::DeadlineExceeded), "{texts:#?}");
    for (_, text) in &texts {
        assert!(text.contains("not over within 200000000 ns: rank 2 did not answer"), "{text}");
    }
    // The late rank learns that its run is void before it has begun anything.
    let (late, comm) = (message(run(&chain(&results[2].1, 3, None, None), &[1], &on(None))), &results[2].1);
    assert_eq!(late.0, Code::Aborted, "{late:?}");
    assert!(late.1.contains("gave up") && late.1.contains("did not answer"), "{late:?}");
    assert!(comm.figures().is_dead);
}

#[test]
fn a_deadline_of_one_rank_ends_all_runs() {
    let comms = ranks(2, Offer::Keeps, &named("dp"));
    let figures = Arc::clone(&comms[0]);
    let barrier = Arc::new(Barrier::new(2));
    let results = on_each(&comms, move |rank, comm| {
        let options = RunOptions { deadline_ns: 100_000_000, ..on(None) };
        let result = if rank == 0 {
            message(run(&chain(&comm, 3, None, None), &[1], &options))
        } else {
            (Code::Unknown, String::new())
        };
        barrier.wait();
        if rank == 0 { result } else { message(run(&chain(&comm, 3, None, None), &[1], &on(None))) }
    });
    assert_eq!(results[0].0, Code::DeadlineExceeded, "{results:#?}");
    assert_eq!(results[1].0, Code::Aborted, "{results:#?}");
    assert!(results[1].1.contains("rank 0 gave up"), "{results:#?}");
    // What rank 0 had begun, the transport may still use.
    assert!(figures.figures().quarantined_bytes > 0);
}

/// A control message fails as an operation begins: that one ends, too, with what is behind it.
#[test]
fn a_message_that_fails_ends_the_operation_that_begins() {
    for number in 1..=3 {
        let options = CommOptions { is_checked: true, ..named("dp") };
        let create = |(rank, inner)| {
            let offer = if rank == 0 { Offer::Fails(number) } else { Offer::All };
            Communicator::create(poor(inner, offer), options.clone()).unwrap()
        };
        let comms: Vec<_> = LocalTransport::create(2).into_iter().enumerate().map(create).collect();
        let results = on_each(&comms, |_, comm| {
            let result = message(run(&chain(&comm, 3, None, None), &[1], &on(None)));
            (result, comm.figures().begun, comm.figures().ended)
        });
        for ((_, text), begun, ended) in results {
            assert!(text.contains("no room for a message"), "{text}");
            assert_eq!(begun, ended);
        }
    }
}

/// A thread gives up that may not call the transport. The one that may waits for something else, with nothing open: it
/// tells the other rank.
#[test]
fn an_end_from_another_thread_is_told() {
    let mut transports = LocalTransport::create(2).into_iter();
    let (first, second) = (transports.next().unwrap(), transports.next().unwrap());
    let other = Communicator::create(poor(second, Offer::All), named("funneled")).unwrap();
    let (give, take) = std::sync::mpsc::channel();
    let owner = std::thread::spawn(move || {
        let comm = Communicator::create(poor(first, Offer::OneThread), named("funneled")).unwrap();
        let (mut builder, values) = Builder::of("waits", 1);
        let given = Arc::clone(&comm);
        let later = move |_: &KernelContext<'_>, done: Completion, _: Result<()>| {
            give.send((Arc::clone(&given), done)).unwrap();
        };
        builder.how = How { later: Some(Arc::new(later)), ..How::default() };
        let value = builder.named("gate", &values, |x| Ok(x[0]));
        builder.output(value);
        run(&builder.compile(), &[7], &on(None))
    });
    let (comm, done) = take.recv().unwrap();
    comm.give_up(Error::new(Code::Aborted, "from elsewhere"));
    let began = std::time::Instant::now();
    while !other.figures().is_dead {
        other.drive();
        assert!(began.elapsed().as_secs() < 60, "nobody has told");
        std::thread::yield_now();
    }
    assert!(other.failure().unwrap().message().contains("from elsewhere"));
    done.done(Ok(())).unwrap();
    assert_eq!(owner.join().unwrap().unwrap(), [7]);
}

#[test]
fn a_dead_communicator_and_a_foreign_thread_duplicate_nothing() {
    let comm = Communicator::create(poor(LocalTransport::create(1).remove(0), Offer::OneThread), named("one")).unwrap();
    let foreign = Arc::clone(&comm);
    let thread = std::thread::spawn(move || message(foreign.duplicate_transport().map(drop)));
    let (code, text) = thread.join().unwrap();
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains("for the thread that created it"), "{text}");
    assert!(comm.duplicate_transport().is_ok() && comm.split_transport(0, 0).is_ok());
    comm.give_up(Error::new(Code::Aborted, "enough"));
    assert!(message(comm.duplicate_transport().map(drop)).1.contains("is dead"));
    assert!(message(comm.split_transport(0, 0).map(drop)).1.contains("is dead"));
}

/// A late operation beside others that end all the time.
#[test]
fn a_limit_passes_beside_operations_that_end() {
    let comms = ranks(3, Offer::All, &CommOptions { limit_ns: 100_000_000, ..named("dp") });
    let barrier = Arc::new(Barrier::new(3));
    let results = on_each(&comms, move |rank, comm| {
        let mut result = Ok(());
        if rank < 2 {
            let stream = || {
                let mut attr = StreamAttr::new(DeviceKind::CPU);
                attr.asynchronous = true;
                Stream::create(cpu(), attr).unwrap()
            };
            let (late, busy) = (stream(), stream());
            let value = || vec![tensor(&cpu(), 1)];
            late.enqueue(kernel(&comm, SUM), value(), value()).unwrap();
            let (op, desc) =
                if rank == 0 { (Op::WEIR_COMM_SEND, None) } else { (Op::WEIR_COMM_RECV, Some(kit::run::scalar())) };
            let message = kernel(&comm, CommSettings { op, peer: 1 - rank, desc, ..PLAIN });
            while result.is_ok() {
                let [from, to] = if rank == 0 { [value(), Vec::new()] } else { [Vec::new(), value()] };
                result = busy.enqueue(message.clone(), from, to).and_then(|()| busy.synchronize(u64::MAX));
            }
        }
        barrier.wait();
        result
    });
    for result in &results[..2] {
        let (_, text) = message(result.clone());
        assert!(text.contains("not over within 100000000 ns: rank 2 did not answer"), "{text}");
    }
}

/// A kernel fails while an operation of its rank is under way, which the run's end waits for.
#[test]
fn the_first_failure_is_told_beside_an_open_operation() {
    let comms = ranks(2, Offer::All, &named("dp"));
    let barrier = Arc::new(Barrier::new(2));
    let results = on_each(&comms, move |rank, comm| {
        let (mut builder, values) = Builder::of("fails", 1);
        let sum = all_reduce(&mut builder, &comm, "sum", values[0]);
        let fails_later = move |_: &KernelContext<'_>, done: Completion, result: Result<()>| {
            std::thread::spawn(move || {
                // Until then the sum is waited for.
                std::thread::sleep(std::time::Duration::from_millis(50));
                let _ = done.done(result);
            });
        };
        builder.how = How { later: Some(Arc::new(fails_later)), ..How::default() };
        let layer = builder.named("layer 3", &values, move |x| match rank {
            1 => Err(Error::new(Code::DataLoss, "a disk is full")),
            _ => Ok(x[0]),
        });
        let behind = all_reduce(&mut builder, &comm, "behind", layer);
        builder.output(sum);
        builder.output(behind);
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
}

/// Two runs at once need a communicator each.
#[test]
fn a_run_has_its_communicator() {
    let comms = ranks(1, Offer::All, &named("dp"));
    let (comm, inside) = (&comms[0], chain(&comms[0], 1, None, None));
    let (mut builder, values) = Builder::of("outer", 1);
    let first = all_reduce(&mut builder, comm, "first", values[0]);
    let nested = builder.try_op(&[first], move |x| {
        let (code, text) = message(run(&inside, x, &on(None)));
        assert_eq!(code, Code::FailedPrecondition, "{text}");
        assert!(text.contains("is in use by another run"), "{text}");
        Ok(5)
    });
    let last = all_reduce(&mut builder, comm, "last", nested);
    builder.output(last);
    let program = builder.try_compile(&CompileOptions::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(run(&program, &[1], &on(None)).unwrap(), [5]);
    }
}

#[test]
fn ranks_that_are_left_go_on() {
    let comms = ranks(4, Offer::All, &named("dp"));
    let results = on_each(&comms, |rank, comm| {
        let result = if rank == 2 {
            comm.give_up(Error::new(Code::Aborted, "I am done"));
            Err(Error::new(Code::Aborted, "I am done"))
        } else {
            run(&chain(&comm, 2, None, None), &[1], &on(None))
        };
        let text = message(result).1;
        let transport = Arc::clone(comm.transport());
        drop(comm);
        if rank == 2 {
            return (text, None);
        }
        (text, Some(transport))
    });
    drop(comms);
    let survivors: Vec<_> = results.into_iter().filter_map(|(text, transport)| Some((text, transport?))).collect();
    assert_eq!(survivors.len(), 3);
    let threads: Vec<_> = survivors
        .into_iter()
        .map(|(text, transport)| {
            assert!(text.contains("I am done"), "{text}");
            std::thread::spawn(move || {
                let comm = Communicator::create(transport.recover().unwrap(), named("rest")).unwrap();
                let (rank, size) = (comm.info().rank, comm.info().size);
                (rank, size, run(&chain(&comm, 1, None, None), &[10], &on(None)).unwrap())
            })
        })
        .collect();
    for (at, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap(), (at, 3, vec![30]));
    }
}
