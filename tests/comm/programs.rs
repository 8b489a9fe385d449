//! Random programs of several ranks: drawn once for all, run on each rank in a thread of its own, on every kind of
//! pool, beside an interpreter that does all ranks' steps one after the other.

use super::*;
use kit::integers::Builder;
use kit::random::Random;
use kit::run::{all_pools, on, run, scalar};
use weir_core::comm::agree::agree;
use weir_core::graph::{CompileOptions, Graph, ValueId};

/// A step over the values of each rank; values are numbered in the order in which they come.
#[derive(Clone, Debug)]
enum Step {
    /// sum * factor + rank, on each rank.
    Own {
        of: Vec<usize>,
        factor: i32,
    },
    AllReduce {
        of: usize,
        by: Reduction,
    },
    Broadcast {
        of: usize,
        root: usize,
    },
    Reduce {
        of: usize,
        root: usize,
    },
    /// Each rank of `pairs` sends to the next one of the pair, all others keep their value.
    Message {
        of: usize,
        from: usize,
        to: usize,
        tag: i32,
    },
    Barrier,
    /// A predicate that is the same on all ranks (the sign of an all_reduce); the branches give one value each.
    Cond {
        of: usize,
        branches: [Vec<Step>; 2],
    },
    /// The body's last value becomes its value 0, so many times.
    Loop {
        of: usize,
        times: i32,
        body: Vec<Step>,
    },
}

fn draw(random: &mut Random, ranks: usize, mut values: usize, depth: usize) -> Vec<Step> {
    let count = 2 + random.below(if depth == 0 { 14 } else { 4 });
    let mut steps = Vec::new();
    for _ in 0..count {
        // Values that came last are wanted more often: longer chains.
        let of = if random.once_in(2) { values - 1 } else { random.below(values) };
        let by = random.of(&[Reduction::WEIR_COMM_SUM, Reduction::WEIR_COMM_MAX, Reduction::WEIR_COMM_MIN]);
        let step = match random.below(if depth < 2 { 12 } else { 10 }) {
            0..=2 => Step::Own { of: (0..=random.below(2)).map(|_| random.below(values)).collect(), factor: 3 },
            3 | 4 => Step::AllReduce { of, by },
            5 => Step::Broadcast { of, root: random.below(ranks) },
            6 => Step::Reduce { of, root: random.below(ranks) },
            7 | 8 if ranks > 1 => {
                let from = random.below(ranks);
                let to = (from + 1 + random.below(ranks - 1)) % ranks;
                Step::Message { of, from, to, tag: random.below(3) as i32 }
            }
            10 => {
                let branches = [0, 1].map(|_| draw(random, ranks, 1, depth + 1));
                Step::Cond { of, branches }
            }
            11 => {
                let times = random.below(4) as i32;
                Step::Loop { of, times, body: draw(random, ranks, 1, depth + 1) }
            }
            _ => Step::Barrier,
        };
        values += usize::from(!matches!(step, Step::Barrier));
        steps.push(step);
    }
    steps
}

fn reduced(by: Reduction, values: impl Iterator<Item = i32>) -> i32 {
    let of = |a: i32, b: i32| match by {
        Reduction::WEIR_COMM_MAX => a.max(b),
        Reduction::WEIR_COMM_MIN => a.min(b),
        _ => a.wrapping_add(b),
    };
    values.reduce(of).unwrap()
}

/// All values of all ranks: values[i][rank].
fn interpret(steps: &[Step], values: &mut Vec<Vec<i32>>) {
    let ranks = values[0].len();
    for step in steps {
        let new = match step {
            Step::Own { of, factor } => (0..ranks)
                .map(|rank| {
                    let sum = of.iter().fold(0i32, |sum, &of| sum.wrapping_add(values[of][rank]));
                    sum.wrapping_mul(*factor).wrapping_add(rank as i32)
                })
                .collect(),
            Step::AllReduce { of, by } => vec![reduced(*by, values[*of].iter().copied()); ranks],
            Step::Broadcast { of, root } => vec![values[*of][*root]; ranks],
            Step::Reduce { of, root } => {
                let mut new = values[*of].clone();
                new[*root] = reduced(Reduction::WEIR_COMM_SUM, values[*of].iter().copied());
                new
            }
            Step::Message { of, from, to, .. } => {
                let mut new = values[*of].clone();
                new[*to] = values[*of][*from];
                new
            }
            Step::Barrier => continue,
            Step::Cond { of, branches } => {
                let sum = reduced(Reduction::WEIR_COMM_SUM, values[*of].iter().copied());
                let mut inner = vec![values[*of].clone()];
                interpret(&branches[usize::from(sum >= 0)], &mut inner);
                inner.pop().unwrap()
            }
            Step::Loop { of, times, body } => {
                let mut value = values[*of].clone();
                for _ in 0..*times {
                    let mut inner = vec![value];
                    interpret(body, &mut inner);
                    value = inner.pop().unwrap();
                }
                value
            }
        };
        values.push(new);
    }
}

/// The same on one rank, as a graph.
struct Maker {
    comm: Ref<Communicator>,
    rank: usize,
    parallel: u32,
}

impl Maker {
    fn add(
        &self,
        builder: &mut Builder,
        settings: CommSettings,
        inputs: &[ValueId],
        outputs: usize,
    ) -> Option<ValueId> {
        let name = builder.name();
        let node = builder.graph.add_kernel(&name, kernel(&self.comm, settings), inputs, outputs).unwrap();
        (outputs > 0).then(|| node.output(0))
    }

    fn all_reduce(&self, builder: &mut Builder, of: ValueId, by: Reduction) -> ValueId {
        self.add(builder, CommSettings { reduction: Some(by), ..SUM }, &[of], 1).unwrap()
    }

    fn graph(&self, steps: &[Step]) -> Graph {
        let (mut builder, mut values) = Builder::of("inner", 1);
        self.steps(&mut builder, steps, &mut values);
        let last = *values.last().unwrap();
        builder.giving(&[last])
    }

    fn steps(&self, builder: &mut Builder, steps: &[Step], values: &mut Vec<ValueId>) {
        let rank = self.rank as i32;
        for step in steps {
            let new = match step {
                Step::Own { of, factor } => {
                    let (inputs, factor) = (of.iter().map(|&of| values[of]).collect::<Vec<_>>(), *factor);
                    builder.op(&inputs, move |x| {
                        let sum = x.iter().fold(0i32, |sum, x| sum.wrapping_add(*x));
                        sum.wrapping_mul(factor).wrapping_add(rank)
                    })
                }
                Step::AllReduce { of, by } => self.all_reduce(builder, values[*of], *by),
                Step::Broadcast { of, root } => {
                    let settings = CommSettings { op: Op::WEIR_COMM_BROADCAST, peer: *root, ..PLAIN };
                    self.add(builder, settings, &[values[*of]], 1).unwrap()
                }
                Step::Reduce { of, root } => {
                    let settings = CommSettings { op: Op::WEIR_COMM_REDUCE, peer: *root, ..SUM };
                    self.add(builder, settings, &[values[*of]], 1).unwrap()
                }
                Step::Message { of, from, to, tag } if self.rank == *to => {
                    let settings =
                        CommSettings { op: Op::WEIR_COMM_RECV, peer: *from, tag: *tag, desc: Some(scalar()), ..PLAIN };
                    let _ = of;
                    self.add(builder, settings, &[], 1).unwrap()
                }
                Step::Message { of, from, to, tag } => {
                    if self.rank == *from {
                        let settings = CommSettings { op: Op::WEIR_COMM_SEND, peer: *to, tag: *tag, ..PLAIN };
                        self.add(builder, settings, &[values[*of]], 0);
                    }
                    values[*of]
                }
                Step::Barrier => {
                    self.add(builder, PLAIN, &[], 0);
                    continue;
                }
                Step::Cond { of, branches } => {
                    let sum = self.all_reduce(builder, values[*of], Reduction::WEIR_COMM_SUM);
                    let is_positive = builder.op(&[sum], |x| i32::from(x[0] >= 0));
                    let [otherwise, then] = [0, 1].map(|at| self.graph(&branches[at]));
                    let name = builder.name();
                    let inputs = [values[*of]];
                    let node = builder.graph.add_cond(&name, is_positive, &then, &otherwise, &inputs).unwrap();
                    node.output(0)
                }
                Step::Loop { of, times, body } => {
                    let times = *times;
                    let (mut condition, inputs) = Builder::of("condition", 2);
                    let goes_on = condition.op(&inputs[..1], move |x| i32::from(x[0] < times));
                    let condition = condition.giving(&[goes_on]);
                    let (mut inner, inputs) = Builder::of("body", 2);
                    let count = inner.op(&inputs[..1], |x| x[0] + 1);
                    let mut inner_values = vec![inputs[1]];
                    self.steps(&mut inner, body, &mut inner_values);
                    let last = *inner_values.last().unwrap();
                    let body = inner.giving(&[count, last]);
                    let zero = builder.constant(0);
                    let name = builder.name();
                    let variables = [zero, values[*of]];
                    let node = builder.graph.add_while(&name, &condition, &body, &variables, &[], self.parallel);
                    node.unwrap().output(1)
                }
            };
            values.push(new);
        }
    }
}

fn check_program(seed: u64, offer: Offer) {
    let mut random = Random::new(seed);
    let ranks_of = 1 + random.below(4);
    let steps = draw(&mut random, ranks_of, 2, 0);
    let inputs: Vec<Vec<i32>> =
        (0..2).map(|i| (0..ranks_of).map(|rank| (rank * 7 + i * 5) as i32 - 9).collect()).collect();
    let mut values = inputs.clone();
    interpret(&steps, &mut values);
    let is_checked = random.once_in(2);
    let comms = ranks(ranks_of, offer, &CommOptions { is_checked, has_thread: random.once_in(4), ..named("drawn") });
    let (pool, parallel) = (random.below(6), random.of(&[1, 4]));
    let drawn = steps.clone();
    let results = on_each(&comms, move |rank, comm| {
        let (mut builder, mut values) = Builder::of("drawn", 2);
        Maker { comm: comm.clone(), rank, parallel }.steps(&mut builder, &drawn, &mut values);
        for (i, &value) in values.iter().enumerate() {
            builder.graph.add_output(&format!("v{i}"), value).unwrap();
        }
        let program = builder.try_compile(&CompileOptions::default()).unwrap();
        agree(&program, &comm, 30_000_000_000).unwrap();
        // Ranks have pools of different kinds.
        let pools = all_pools();
        let pool = &pools[(pool + rank) % pools.len()];
        let inputs: Vec<i32> = inputs.iter().map(|input| input[rank]).collect();
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(run(&program, &inputs, &on(pool.as_ref())).unwrap());
        }
        all
    });
    for (rank, runs) in results.into_iter().enumerate() {
        let expected: Vec<i32> = values.iter().map(|value| value[rank]).collect();
        for result in runs {
            assert_eq!(result, expected, "seed {seed}, rank {rank} of {ranks_of}, {offer:?}: {steps:#?}");
        }
    }
}

#[test]
fn random_programs_of_several_ranks() {
    let count = if std::env::var_os("WEIR_TEST_SCALE").is_some_and(|scale| scale == "small") { 40 } else { 400 };
    for seed in 0..count {
        check_program(seed, [Offer::All, Offer::Messages(u64::MAX), Offer::NoReductions][seed as usize % 3]);
    }
}
