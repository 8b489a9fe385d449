//! What the nodes of TensorFlow's first control flow mean, value by value: an interpreter that knows nothing of loops
//! as weir has them. Values are asked for; each is known by its node and by the iterations that it is in.

use crate::lower::{Flat, Kind, Value};
use std::collections::HashMap;

/// The frame of each iteration around a value, and its number.
type Place = Vec<usize>;

pub struct RunLatch<'a> {
    flat: &'a Flat,
    inputs: &'a [i32],
    known: HashMap<(usize, Place), [Option<i32>; 2]>,
    /// Why the answer says nothing: two values at a merge, a frame entered in part, or too much to do.
    pub is_unclear: bool,
    left: usize,
    /// The frames that each node is in, by name; those of constants are not known.
    frames: Vec<Option<Vec<&'a str>>>,
}

fn frames(flat: &Flat) -> Vec<Option<Vec<&str>>> {
    let mut found: Vec<Option<Vec<&str>>> = Vec::new();
    for node in &flat.nodes {
        let mut of_inputs = node.inputs.iter().filter_map(|value| found[value.0].clone());
        let floats = matches!(node.kind, Kind::Constant(_) | Kind::Enter { .. } | Kind::LoopCond | Kind::NextIteration);
        let is_constant = |value: &Value| matches!(flat.nodes[value.0].kind, Kind::Constant(_));
        let is_source = node.inputs.iter().all(is_constant) && !floats;
        let around = if is_source { Some(Vec::new()) } else { of_inputs.next() };
        found.push(around.map(|mut frames| {
            match &node.kind {
                Kind::Enter { frame, .. } => frames.push(frame),
                Kind::Exit => drop(frames.pop()),
                _ => {}
            }
            frames
        }));
    }
    found
}

impl<'a> RunLatch<'a> {
    pub fn new(flat: &'a Flat, inputs: &'a [i32]) -> RunLatch<'a> {
        RunLatch { flat, inputs, known: HashMap::new(), is_unclear: false, left: 100_000, frames: frames(flat) }
    }

    /// None: absent.
    pub fn value(&mut self, (node, output): Value, place: &Place) -> Option<i32> {
        if let Some(known) = self.known.get(&(node, place.clone())) {
            return known[output];
        }
        self.left = self.left.saturating_sub(1);
        self.is_unclear |= self.left == 0;
        if self.is_unclear {
            return None;
        }
        let made = self.node(node, place);
        self.known.insert((node, place.clone()), made);
        made[output]
    }

    fn node(&mut self, index: usize, place: &Place) -> [Option<i32>; 2] {
        let node = &self.flat.nodes[index];
        let one = |value: Option<i32>| [value, None];
        let mut is_there = true;
        // An exit waits for what is there when its loop begins, if for anything.
        let waits: &[usize] = if matches!(node.kind, Kind::Exit) { &[] } else { &node.after };
        for &before in waits {
            // A switch is there when what it takes is.
            is_there &= match self.flat.nodes[before].kind {
                Kind::Switch => self.flat.nodes[before].inputs.iter().all(|&value| self.value(value, place).is_some()),
                _ => self.value((before, 0), place).is_some(),
            };
        }
        if !is_there && !matches!(node.kind, Kind::Merge | Kind::Enter { .. }) {
            return [None, None];
        }
        match &node.kind {
            Kind::Input => one(Some(self.inputs[index])),
            Kind::Constant(value) => one(Some(*value)),
            Kind::Op(op) => {
                let args: Vec<Option<i32>> = node.inputs.iter().map(|&value| self.value(value, place)).collect();
                let args: Option<Vec<i32>> = args.into_iter().collect();
                one(args.map(|args| op.compute(&args)))
            }
            Kind::Switch => {
                let (value, predicate) = (self.value(node.inputs[0], place), self.value(node.inputs[1], place));
                match (value, predicate) {
                    (Some(value), Some(0)) => [Some(value), None],
                    (Some(value), Some(_)) => [None, Some(value)],
                    _ => [None, None],
                }
            }
            Kind::Merge => {
                let found: Vec<i32> = node.inputs.iter().filter_map(|&value| self.value(value, place)).collect();
                self.is_unclear |= found.len() > 1;
                one(found.first().copied())
            }
            Kind::Enter { .. } => {
                let (_, around) = place.split_last().expect("an enter is in a frame");
                let around = around.to_vec();
                for &before in &node.after {
                    self.is_unclear |= self.value((before, 0), &around).is_none();
                }
                let value = self.value(node.inputs[0], &around);
                self.is_unclear |= value.is_none();
                one(value)
            }
            Kind::LoopMerge => match place.split_last().expect("a loop merge is in a frame") {
                (0, _) => one(self.value(node.inputs[0], place)),
                (iteration, around) => {
                    let before = [around, &[iteration - 1]].concat();
                    one(self.value((node.back.expect("it was compiled"), 0), &before))
                }
            },
            Kind::LoopCond | Kind::NextIteration => one(self.value(node.inputs[0], place)),
            Kind::Exit => {
                // A loop is skipped as a whole if any of its enters is.
                let first = [&place[..], &[0]].concat();
                for (enter, other) in self.flat.nodes.iter().enumerate() {
                    let is_enter = matches!(other.kind, Kind::Enter { .. });
                    if is_enter && self.frames[enter].is_some() && self.frames[enter] == self.frames[node.inputs[0].0] {
                        self.value((enter, 0), &first);
                    }
                }
                let switch = &self.flat.nodes[node.inputs[0].0];
                for iteration in 0..2_000 {
                    let inside = [&place[..], &[iteration]].concat();
                    let predicate = self.value(switch.inputs[1], &inside);
                    if self.is_unclear || predicate.is_none_or(|goes_on| goes_on == 0) {
                        return one(self.value(node.inputs[0], &inside));
                    }
                }
                self.is_unclear = true;
                [None, None]
            }
        }
    }
}
