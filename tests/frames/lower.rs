//! Structured programs as enters, merges, switches, next iterations and exits; and these as graphs.

use crate::kit::integers::Builder;
use crate::kit::random::Random;
use crate::program::{Block, Op, Statement, While};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use weir_core::base::{Error, Result};
use weir_core::graph::{NodeId, ValueId};

pub type Value = (usize, usize);

#[derive(Clone, Debug)]
pub enum Kind {
    Input,
    Constant(i32),
    Op(Op),
    Switch,
    Merge,
    Enter { frame: String, is_constant: bool, parallel_iterations: u32 },
    LoopMerge,
    LoopCond,
    NextIteration,
    Exit,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    pub inputs: Vec<Value>,
    pub after: Vec<usize>,
    /// Of a loop merge: its next iteration.
    pub back: Option<usize>,
}

/// What a converter reads from a file.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    pub nodes: Vec<Node>,
    pub outputs: Vec<Value>,
}

impl Flat {
    fn push(&mut self, kind: Kind, inputs: &[Value]) -> usize {
        self.nodes.push(Node { kind, inputs: inputs.to_vec(), after: Vec::new(), back: None });
        self.nodes.len() - 1
    }

    /// The graph. Calls of ops fail when there were as many as `calls` says.
    pub fn build(&self, is_pure: bool, calls: &Arc<AtomicI64>) -> Result<Builder> {
        let mut builder = Builder::new("flat");
        builder.how.is_pure = is_pure;
        builder.how.cost_ns = 1000;
        let mut nodes: Vec<NodeId> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let name = name(index, &node.kind);
            let inputs: Vec<ValueId> = node.inputs.iter().map(|&(node, output)| nodes[node].output(output)).collect();
            let graph = &mut builder.graph;
            let of_value = |value: ValueId| NodeId::from(u64::from(value) & !0xffff);
            nodes.push(match &node.kind {
                Kind::Input => of_value(graph.add_input(&name, crate::kit::run::scalar())?),
                Kind::Constant(value) => {
                    let tensor = crate::kit::run::tensor(&builder.engine, *value);
                    of_value(graph.add_constant(&name, tensor)?)
                }
                Kind::Op(op) => {
                    let (op, calls) = (*op, Arc::clone(calls));
                    of_value(builder.named(&name, &inputs, move |x| match calls.fetch_sub(1, Relaxed) > 0 {
                        true => Ok(op.compute(x)),
                        false => Err(Error::out_of_range("too many calls")),
                    }))
                }
                Kind::Switch => graph.add_switch(&name, inputs[0], inputs[1])?,
                Kind::Merge => graph.add_merge(&name, &inputs)?,
                Kind::Enter { frame, is_constant, parallel_iterations } => {
                    graph.add_enter(&name, inputs[0], frame, *is_constant, *parallel_iterations)?
                }
                Kind::LoopMerge => graph.add_loop_merge(&name, inputs[0])?,
                Kind::LoopCond => graph.add_loop_cond(&name, inputs[0])?,
                Kind::NextIteration => graph.add_next_iteration(&name, inputs[0])?,
                Kind::Exit => graph.add_exit(&name, inputs[0])?,
            });
        }
        for (index, node) in self.nodes.iter().enumerate() {
            for &before in &node.after {
                builder.graph.add_control_edge(nodes[before], nodes[index])?;
            }
            if let Some(next) = node.back {
                builder.graph.set_back_edge(nodes[index], nodes[next].output(0))?;
            }
        }
        for (i, &(node, output)) in self.outputs.iter().enumerate() {
            builder.graph.add_output(&format!("output {i}"), nodes[node].output(output))?;
        }
        Ok(builder)
    }
}

impl fmt::Display for Flat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.nodes.iter().enumerate() {
            let name = name(index, &node.kind);
            writeln!(f, "{name} {:?} after {:?} back {:?}", node.inputs, node.after, node.back)?;
        }
        writeln!(f, "outputs {:?}", self.outputs)
    }
}

pub fn name(index: usize, kind: &Kind) -> String {
    let word = match kind {
        Kind::Op(op) => format!("{op:?}"),
        Kind::Enter { frame, .. } => format!("enter {frame}"),
        Kind::Constant(_) => "constant".to_owned(),
        other => format!("{other:?}"),
    };
    format!("#{index}:{word}")
}

/// A value while the program is lowered.
#[derive(Clone, Copy)]
struct Val {
    at: Value,
    /// A constant, which is in all frames and on all sides.
    is_constant: bool,
    /// Behind the switch of the loop that is around.
    is_held: bool,
}

/// Where a block is.
struct Place {
    /// A value that is there when the block is computed, unless it is the whole program.
    anchor: Option<Val>,
    /// A predicate and a side, in a cond.
    side: Option<(Value, usize)>,
    /// How many frames there are in this one.
    frames: usize,
}

pub struct Lower<'a> {
    pub random: &'a mut Random,
    pub flat: Flat,
}

/// The program as a graph with so many inputs.
pub fn lower(block: &Block, inputs: usize, random: &mut Random) -> Flat {
    let mut lower = Lower { random, flat: Flat::default() };
    let given: Vec<Val> = (0..inputs).map(|_| lower.node(Kind::Input, &[], false)).collect();
    let mut place = Place { anchor: None, side: None, frames: 0 };
    let results = lower.block(block, &given, &mut place);
    lower.flat.outputs = block.results.iter().map(|&result| results[result].at).collect();
    lower.flat
}

impl Lower<'_> {
    fn node(&mut self, kind: Kind, inputs: &[Value], is_held: bool) -> Val {
        Val { at: (self.flat.push(kind, inputs), 0), is_constant: false, is_held }
    }

    /// Not a constant, and on the side where the block is.
    fn solid(&mut self, value: Val, place: &Place) -> Val {
        if !value.is_constant {
            return value;
        }
        match (place.side, place.anchor) {
            (Some((predicate, side)), Some(anchor)) => {
                let switch = self.flat.push(Kind::Switch, &[value.at, predicate]);
                Val { at: (switch, side), is_constant: false, is_held: anchor.is_held }
            }
            (None, Some(anchor)) => self.first(value, anchor),
            (_, None) => value,
        }
    }

    fn first(&mut self, value: Val, anchor: Val) -> Val {
        self.node(Kind::Op(Op::First), &[value.at, anchor.at], value.is_held || anchor.is_held)
    }

    /// All values that the block knows in the end.
    fn block(&mut self, block: &Block, inputs: &[Val], place: &mut Place) -> Vec<Val> {
        let mut values = inputs.to_vec();
        for statement in &block.statements {
            let of = |list: &[usize]| list.iter().map(|&i| values[i]).collect::<Vec<Val>>();
            let made = match statement {
                Statement::Op(op, args) => {
                    let mut args = of(args);
                    if args.iter().all(|arg| arg.is_constant) {
                        args[0] = self.solid(args[0], place);
                    }
                    let inputs: Vec<Value> = args.iter().map(|arg| arg.at).collect();
                    vec![self.node(Kind::Op(*op), &inputs, args.iter().any(|arg| arg.is_held))]
                }
                Statement::Constant(value) => {
                    let at = (self.flat.push(Kind::Constant(*value), &[]), 0);
                    vec![Val { at, is_constant: true, is_held: false }]
                }
                Statement::Cond { predicate, inputs, sides } => {
                    self.cond(values[*predicate], &of(inputs), sides, place)
                }
                Statement::While(looped) => self.looped(looped, &of(&looped.variables), &of(&looped.invariants), place),
            };
            values.extend(made);
        }
        values
    }

    fn cond(&mut self, predicate: Val, inputs: &[Val], sides: &[Block; 2], place: &mut Place) -> Vec<Val> {
        let predicate = self.solid(predicate, place);
        let pivot = self.flat.push(Kind::Switch, &[predicate.at, predicate.at]);
        let mut shared = Vec::new();
        for &input in inputs {
            let input = self.solid(input, place);
            let switch = self.flat.push(Kind::Switch, &[input.at, predicate.at]);
            shared.push((switch, input));
        }
        let mut results = Vec::new();
        for (side, block) in sides.iter().enumerate() {
            let given: Vec<Val> = shared
                .iter()
                .map(|&(switch, input)| {
                    let again = self.random.once_in(4);
                    let switch = if again { self.flat.push(Kind::Switch, &[input.at, predicate.at]) } else { switch };
                    let is_held = input.is_held || predicate.is_held;
                    Val { at: (switch, side), is_constant: false, is_held }
                })
                .collect();
            let anchor = Val { at: (pivot, side), is_constant: false, is_held: predicate.is_held };
            let mut inside = Place { anchor: Some(anchor), side: Some((predicate.at, side)), frames: place.frames };
            let values = self.block(block, &given, &mut inside);
            place.frames = inside.frames;
            results.push(block.results.iter().map(|&i| self.solid(values[i], &inside)).collect::<Vec<Val>>());
        }
        (0..results[0].len())
            .map(|i| {
                let mut both = [results[0][i], results[1][i]];
                if self.random.once_in(2) {
                    both.reverse();
                }
                let is_held = both.iter().any(|value| value.is_held);
                self.node(Kind::Merge, &both.map(|value| value.at), is_held)
            })
            .collect()
    }

    fn enter(&mut self, value: Val, frame: &str, is_constant: bool, parallel_iterations: u32) -> Val {
        let kind = Kind::Enter { frame: frame.to_owned(), is_constant, parallel_iterations };
        self.node(kind, &[value.at], false)
    }

    fn looped(&mut self, looped: &While, variables: &[Val], invariants: &[Val], place: &mut Place) -> Vec<Val> {
        // Frames in several frames may have one name; then constants need a hand to find theirs.
        let has_constant = variables.iter().chain(invariants).any(|value| value.is_constant);
        let is_alone = self.random.once_in(2) || has_constant && place.anchor.is_none();
        let frame = match is_alone {
            true => format!("loop {}", self.flat.nodes.len()),
            false => format!("while {}", place.frames),
        };
        place.frames += 1;
        let parallel = looped.parallel_iterations;
        // What lies in a frame, or on a side, has an enter that says so.
        let anchor = place.anchor.map(|anchor| (self.enter(anchor, &frame, true, parallel), anchor));
        let mut entered: Vec<Val> = variables.iter().chain(invariants).copied().collect();
        for (i, value) in entered.iter_mut().enumerate() {
            if !is_alone || self.random.once_in(2) {
                *value = self.solid(*value, place);
            }
            let is_held = value.is_held;
            *value = self.enter(*value, &frame, i >= variables.len(), parallel);
            value.is_held = is_held;
        }
        let is_held = entered.iter().chain(anchor.iter().map(|anchor| &anchor.1)).any(|value| value.is_held);
        for value in &mut entered {
            value.is_held = false;
        }
        let merges: Vec<Val> =
            (0..variables.len()).map(|i| self.node(Kind::LoopMerge, &[entered[i].at], false)).collect();
        let invariants = &entered[variables.len()..];

        let given: Vec<Val> = merges.iter().chain(invariants).copied().collect();
        let mut inside = Place { anchor: Some(merges[0]), side: None, frames: 0 };
        let tested = self.block(&looped.condition, &given, &mut inside);
        let predicate = tested[looped.condition.results[0]];
        let cond = self.flat.push(Kind::LoopCond, &[predicate.at]);
        let switches: Vec<usize> =
            merges.iter().map(|merge| self.flat.push(Kind::Switch, &[merge.at, (cond, 0)])).collect();
        let on = |switch: usize| Val { at: (switch, 1), is_constant: false, is_held: true };
        let mut given: Vec<Val> = switches.iter().map(|&switch| on(switch)).collect();
        for &invariant in invariants {
            let passed = self.random.once_in(4);
            given.push(if passed { on(self.flat.push(Kind::Switch, &[invariant.at, (cond, 0)])) } else { invariant });
        }
        for &value in &looped.shared {
            let value = tested[value];
            let passed = !value.is_constant && self.random.once_in(2);
            given.push(if passed { on(self.flat.push(Kind::Switch, &[value.at, (cond, 0)])) } else { value });
        }
        inside.anchor = Some(given[0]);
        let values = self.block(&looped.body, &given, &mut inside);
        for (i, &result) in looped.body.results.iter().enumerate() {
            let mut value = values[result];
            let is_given = value.is_constant || invariants.iter().any(|invariant| invariant.at == value.at);
            if !value.is_held && !is_given {
                value = self.first(value, given[0]);
            }
            let next = self.flat.push(Kind::NextIteration, &[value.at]);
            if self.random.once_in(8) && value.is_held && switches.iter().all(|&switch| value.at.0 != switch) {
                let is_op = matches!(self.flat.nodes[value.at.0].kind, Kind::Op(_));
                self.flat.nodes[next].after.extend(is_op.then_some(value.at.0));
            }
            self.flat.nodes[merges[i].at.0].back = Some(next);
        }
        looped.exits.iter().map(|&variable| self.node(Kind::Exit, &[(switches[variable], 0)], is_held)).collect()
    }
}
