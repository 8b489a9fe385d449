//! Each operation, type and reduction, on streams and in graphs, over transports that offer more and less.

use super::*;
use kit::random::Random;
use kit::run::{cpu, execute, on};
use weir_core::base::{Desc, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program};

const TYPES: [u32; 8] =
    [dtype::F32, dtype::F16, dtype::BF16, dtype::S8, dtype::U8, dtype::S32, dtype::S64, dtype::BOOL];

const REDUCTIONS: [Reduction; 4] =
    [Reduction::WEIR_COMM_SUM, Reduction::WEIR_COMM_PRODUCT, Reduction::WEIR_COMM_MIN, Reduction::WEIR_COMM_MAX];

/// A value that every type has, as a number from -1 to 1: sums and products of a few are exact.
fn element(of: u32, value: i64, bytes: &mut Vec<u8>) {
    match of {
        dtype::F32 => bytes.extend((value as f32).to_ne_bytes()),
        dtype::F16 => bytes.extend([0xbc00u16, 0, 0x3c00][(value + 1) as usize].to_ne_bytes()),
        dtype::BF16 => bytes.extend([0xbf80u16, 0, 0x3f80][(value + 1) as usize].to_ne_bytes()),
        dtype::S32 => bytes.extend((value as i32).to_ne_bytes()),
        dtype::S64 => bytes.extend(value.to_ne_bytes()),
        dtype::BOOL => bytes.push(u8::from(value != 0)),
        _ => bytes.push(value as i8 as u8),
    }
}

/// The whole number that an element is.
fn number(of: u32, bytes: &[u8]) -> i64 {
    let half = || u16::from_ne_bytes(bytes.try_into().unwrap());
    match of {
        dtype::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()) as i64,
        dtype::BF16 => f32::from_bits(u32::from(half()) << 16) as i64,
        dtype::F16 => {
            let (bits, sign) = (half() & 0x7fff, if half() & 0x8000 != 0 { -1 } else { 1 });
            let exponent = i32::from(bits >> 10);
            let mantissa = f64::from(bits & 0x3ff) / 1024.0 + 1.0;
            if bits == 0 { 0 } else { sign * (mantissa * f64::from(exponent - 15).exp2()) as i64 }
        }
        dtype::S32 => i64::from(i32::from_ne_bytes(bytes.try_into().unwrap())),
        dtype::S64 => i64::from_ne_bytes(bytes.try_into().unwrap()),
        dtype::S8 => i64::from(bytes[0] as i8),
        _ => i64::from(bytes[0]),
    }
}

fn numbers(of: u32, bytes: &[u8]) -> Vec<i64> {
    bytes.chunks(dtype::size(of).unwrap()).map(|element| number(of, element)).collect()
}

fn reduced(of: u32, by: Reduction, a: i64, b: i64) -> i64 {
    let wrap = |x: i64| match of {
        dtype::U8 => i64::from(x as u8),
        dtype::BOOL => i64::from(x != 0),
        _ => x,
    };
    wrap(match by {
        Reduction::WEIR_COMM_SUM => a + b,
        Reduction::WEIR_COMM_PRODUCT => a * b,
        Reduction::WEIR_COMM_MIN => a.min(b),
        Reduction::WEIR_COMM_MAX => a.max(b),
    })
}

/// The output of `rank`, as numbers; `inputs` are those of all ranks.
fn expected(settings: &CommSettings, of: u32, inputs: &[Vec<i64>], rank: usize) -> Vec<i64> {
    let size = inputs.len();
    let all = || {
        (0..inputs[0].len())
            .map(|i| {
                let column = inputs.iter().map(|input| input[i]);
                column.reduce(|a, b| reduced(of, settings.reduction.unwrap(), a, b)).unwrap()
            })
            .collect::<Vec<i64>>()
    };
    let part = inputs[0].len() / size;
    match settings.op {
        Op::WEIR_COMM_BROADCAST => inputs[settings.peer].clone(),
        Op::WEIR_COMM_REDUCE if rank != settings.peer => inputs[rank].clone(),
        Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_ALL_REDUCE => all(),
        Op::WEIR_COMM_ALL_GATHER => inputs.concat(),
        Op::WEIR_COMM_REDUCE_SCATTER => all()[rank * part..(rank + 1) * part].to_vec(),
        Op::WEIR_COMM_ALL_TO_ALL => {
            inputs.iter().flat_map(|input| input[rank * part..(rank + 1) * part].to_vec()).collect()
        }
        Op::WEIR_COMM_SEND | Op::WEIR_COMM_BARRIER => Vec::new(),
        Op::WEIR_COMM_RECV => inputs[settings.peer].clone(),
    }
}

fn tensor(desc: Desc, bytes: &[u8]) -> Ref<Tensor> {
    let tensor = Tensor::create(cpu(), desc).unwrap();
    // SAFETY: a new tensor.
    unsafe { tensor.view().as_bytes_mut() }.write_bytes().copy_from_slice(bytes);
    tensor
}

fn contents(tensor: &Tensor) -> Vec<u8> {
    // SAFETY: no run uses it now.
    unsafe { tensor.view().as_bytes() }.read_bytes().to_vec()
}

/// Does one operation, as a node of a graph or on a stream.
fn do_it(comm: &Ref<Communicator>, settings: &CommSettings, input: Option<(Desc, &[u8])>, how: usize) -> Vec<u8> {
    let kernel = kernel(comm, settings.clone());
    let inputs: Vec<Ref<Tensor>> = input.iter().map(|(desc, bytes)| tensor(*desc, bytes)).collect();
    let descs: Vec<Desc> = inputs.iter().map(|input| *input.desc()).collect();
    let outputs: Vec<Ref<Tensor>> =
        kernel.infer(&descs).unwrap().iter().map(|desc| tensor(*desc, &vec![0xee; desc.bytes().unwrap()])).collect();
    if how == 0 {
        let mut attr = StreamAttr::new(DeviceKind::CPU);
        attr.asynchronous = true;
        let stream = Stream::create(cpu(), attr).unwrap();
        stream.enqueue(kernel, inputs, outputs.clone()).unwrap();
        stream.synchronize(u64::MAX).unwrap();
    } else {
        let mut graph = Graph::new("one");
        let values: Vec<_> =
            descs.iter().enumerate().map(|(i, desc)| graph.add_input(&format!("i{i}"), *desc).unwrap()).collect();
        let node = graph.add_kernel("it", kernel, &values, outputs.len()).unwrap();
        (0..outputs.len()).for_each(|i| graph.add_output(&format!("o{i}"), node.output(i)).unwrap());
        let program = Program::compile(&graph, vec![cpu()], &CompileOptions::default()).unwrap();
        let pools = kit::run::all_pools();
        for _ in 0..2 {
            execute(&program, &inputs, &outputs, &on(pools[how % pools.len()].as_ref())).unwrap();
        }
    }
    outputs.iter().flat_map(|output| contents(output)).collect()
}

fn check(size: usize, offer: Offer, settings: &CommSettings, of: u32, count: usize, seed: u64) {
    let comms = ranks(size, offer, &named("ops"));
    let settings = settings.clone();
    let mut random = Random::new(seed);
    let mut all = Vec::new();
    for _ in 0..size {
        let mut bytes = Vec::new();
        (0..count).for_each(|_| element(of, random.below(3) as i64 - 1, &mut bytes));
        all.push(bytes);
    }
    let values: Vec<Vec<i64>> = all.iter().map(|bytes| numbers(of, bytes)).collect();
    let (inputs, asked) = (all, settings.clone());
    let how = random.below(4);
    let outputs = on_each(&comms, move |rank, comm| {
        let desc = Desc::new(of, &[count as i64]);
        let is_sender = rank == (asked.peer + 1) % size;
        match asked.op {
            Op::WEIR_COMM_BARRIER => do_it(&comm, &asked, None, how),
            // Rank `peer` receives from the next one.
            Op::WEIR_COMM_RECV if is_sender => {
                let send = CommSettings { op: Op::WEIR_COMM_SEND, peer: asked.peer, ..asked.clone() };
                do_it(&comm, &send, Some((desc, &inputs[rank])), how)
            }
            Op::WEIR_COMM_RECV if rank == asked.peer => {
                let recv = CommSettings { peer: (asked.peer + 1) % size, desc: Some(desc), ..asked.clone() };
                do_it(&comm, &recv, None, how)
            }
            Op::WEIR_COMM_RECV => Vec::new(),
            _ => do_it(&comm, &asked, Some((desc, &inputs[rank])), how),
        }
    });
    for (rank, output) in outputs.iter().enumerate() {
        let settings = match settings.op {
            Op::WEIR_COMM_RECV if rank != settings.peer => PLAIN,
            Op::WEIR_COMM_RECV => CommSettings { peer: (settings.peer + 1) % size, ..settings.clone() },
            _ => settings.clone(),
        };
        let expected = expected(&settings, of, &values, rank);
        assert_eq!(numbers(of, output), expected, "{offer:?}, {settings:?}, rank {rank} of {size}, type {of}, {how}");
    }
    for comm in &comms {
        let figures = comm.figures();
        assert_eq!((figures.begun, figures.is_dead), (figures.ended, false));
    }
}

#[test]
fn every_operation_over_every_transport() {
    let mut seed = 0;
    for offer in [Offer::All, Offer::Messages(u64::MAX), Offer::Messages(24), Offer::NoReductions] {
        for size in [1, 2, 3, 5] {
            for op in [
                Op::WEIR_COMM_RECV,
                Op::WEIR_COMM_BROADCAST,
                Op::WEIR_COMM_REDUCE,
                Op::WEIR_COMM_ALL_REDUCE,
                Op::WEIR_COMM_ALL_GATHER,
                Op::WEIR_COMM_REDUCE_SCATTER,
                Op::WEIR_COMM_ALL_TO_ALL,
                Op::WEIR_COMM_BARRIER,
            ] {
                if op == Op::WEIR_COMM_RECV && size == 1 {
                    continue;
                }
                seed += 1;
                let mut random = Random::new(seed);
                let reduces =
                    matches!(op, Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_ALL_REDUCE | Op::WEIR_COMM_REDUCE_SCATTER);
                let settings = CommSettings {
                    op,
                    reduction: reduces.then(|| random.of(&REDUCTIONS)),
                    peer: if matches!(op, Op::WEIR_COMM_RECV | Op::WEIR_COMM_BROADCAST | Op::WEIR_COMM_REDUCE) {
                        random.below(size)
                    } else {
                        0
                    },
                    is_deterministic: reduces && random.once_in(2),
                    ..PLAIN
                };
                let count = random.of(&[0, 1, 7, 60]) * size;
                check(size, offer, &settings, random.of(&TYPES), count, seed);
            }
        }
    }
}

#[test]
fn every_type_and_reduction() {
    for (at, of) in TYPES.into_iter().enumerate() {
        for reduction in REDUCTIONS {
            for is_deterministic in [false, true] {
                let settings = CommSettings { reduction: Some(reduction), is_deterministic, ..SUM };
                check(3, Offer::All, &settings, of, 10, at as u64);
            }
        }
    }
}

#[test]
fn a_nan_stays_and_zeros_have_signs() {
    let comms = ranks(3, Offer::All, &named("nan"));
    let columns = [[f32::NAN, 0.0, -0.0], [1.0, -0.0, 0.0], [2.0, 0.0, 0.0]];
    let of = |reduction| {
        let results = on_each(&comms, move |rank, comm| {
            let bytes: Vec<u8> = columns[rank].iter().flat_map(|x| x.to_ne_bytes()).collect();
            let settings = CommSettings { reduction: Some(reduction), is_deterministic: true, ..SUM };
            do_it(&comm, &settings, Some((Desc::new(dtype::F32, &[3]), &bytes)), 0)
        });
        let words = |bytes: &Vec<u8>| -> Vec<f32> {
            bytes.chunks(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect()
        };
        results.iter().map(words).collect::<Vec<_>>()
    };
    for result in of(Reduction::WEIR_COMM_MIN) {
        assert!(result[0].is_nan() && result[1].is_sign_negative() && result[2].is_sign_negative(), "{result:?}");
    }
    for result in of(Reduction::WEIR_COMM_MAX) {
        assert!(result[0].is_nan() && result[1].is_sign_positive() && result[2].is_sign_positive(), "{result:?}");
    }
}

/// Sums that depend on the order have the same bits over every transport.
#[test]
fn deterministic_sums_are_the_same_everywhere() {
    let mut random = Random::new(9);
    let inputs: Vec<Vec<u8>> = (0..4)
        .map(|_| (0..101).flat_map(|_| (random.below(1 << 24) as f32 * 1e-3 - 7000.0).to_ne_bytes()).collect())
        .collect();
    let mut first: Option<Vec<u8>> = None;
    for offer in [Offer::All, Offer::Messages(u64::MAX), Offer::Messages(40), Offer::NoReductions] {
        let (comms, inputs) = (ranks(4, offer, &named("bits")), inputs.clone());
        let outputs = on_each(&comms, move |rank, comm| {
            let settings = CommSettings { is_deterministic: true, ..SUM };
            do_it(&comm, &settings, Some((Desc::new(dtype::F32, &[101]), &inputs[rank])), 1)
        });
        for output in outputs {
            assert_eq!(first.get_or_insert_with(|| output.clone()), &output, "{offer:?}");
        }
    }
}

/// A bucket: several tensors in one message.
#[test]
fn tensors_share_a_bucket() {
    let comms = ranks(2, Offer::All, &named("bucket"));
    let sums = on_each(&comms, |rank, comm| {
        let kernel = kernel(&comm, CommSettings { num_tensors: 3, ..SUM });
        let mut graph = Graph::new("bucket");
        let descs = [1, 5, 2].map(|n| Desc::new(dtype::S32, &[n]));
        let values = descs.map(|desc| graph.add_input(&format!("i{}", desc.shape()[0]), desc).unwrap());
        let node = graph.add_kernel("all", kernel, &values, 3).unwrap();
        (0..3).for_each(|i| graph.add_output(&format!("o{i}"), node.output(i)).unwrap());
        let program = Program::compile(&graph, vec![cpu()], &CompileOptions::default()).unwrap();
        let make = |desc: &Desc, value: i32| {
            let n = desc.elements().unwrap() as i32;
            tensor(*desc, &(0..n).flat_map(|i| (value * (i + 1)).to_ne_bytes()).collect::<Vec<u8>>())
        };
        let inputs: Vec<_> = descs.iter().map(|desc| make(desc, rank as i32 + 1)).collect();
        let outputs: Vec<_> = descs.iter().map(|desc| make(desc, 0)).collect();
        execute(&program, &inputs, &outputs, &on(None)).unwrap();
        outputs.iter().map(|output| numbers(dtype::S32, &contents(output))).collect::<Vec<_>>()
    });
    for sum in sums {
        assert_eq!(sum, [vec![3], vec![3, 6, 9, 12, 15], vec![3, 6]]);
    }
}

/// A communicator of its own, beside the first; and one of some ranks.
#[test]
fn communicators_are_divided() {
    let comms = ranks(5, Offer::All, &named("world"));
    let sums = on_each(&comms, |rank, comm| {
        let one = |comm: &Ref<Communicator>| {
            let bytes = (1i32 << rank).to_ne_bytes();
            numbers(dtype::S32, &do_it(comm, &SUM, Some((Desc::new(dtype::S32, &[1]), &bytes)), 1))[0]
        };
        let twin = Communicator::create(comm.transport().duplicate().unwrap(), named("twin")).unwrap();
        let color = [0, 1, 0, -1, 1][rank];
        let part = comm.transport().split(color, -(rank as i32)).unwrap();
        let part = part.map(|transport| Communicator::create(transport, named("part")).unwrap());
        let place = part.as_ref().map(|part| (part.info().rank, part.info().size));
        (one(&comm), one(&twin), part.as_ref().map(one), place)
    });
    let parts = [Some(0b101), Some(0b10010), Some(0b101), None, Some(0b10010)];
    let places = [Some((1, 2)), Some((1, 2)), Some((0, 2)), None, Some((0, 2))];
    for (rank, sum) in sums.into_iter().enumerate() {
        assert_eq!(sum, (31, 31, parts[rank], places[rank]), "rank {rank}");
    }
}
