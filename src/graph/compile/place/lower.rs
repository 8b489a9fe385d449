//! From a branch or a loop of the graph to lists of actions (`flow`).
//!
//! *Values.* An output of a kernel goes into a value of the list that it is in, or straight where it is wanted: into an
//! output of the branch, or the variable of a loop. Values that are passed on unchanged are copied there, or are there.
//! Inputs and constants are read where they are.
//!
//! *Loops.* A variable has one place for all iterations: the loop's output. Its first value is copied there. The next
//! one is computed straight into it where that can be (`straight`), else it is copied there at the end of the body;
//! where variables change places, one of them by way of a value between. The condition is computed before the loop, and
//! at the end of the body again, into the same place.
#![forbid(unsafe_code)]

use super::straight::{Straight, order, straight};
use crate::base::{Desc, Error, Ref, Result};
use crate::device::{Comparison, Relation};
use crate::engine::Tensor;
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::graph::plan::actions::{Action, List, Lowered, Selector, Test, What, Where};
use std::collections::HashMap;
use std::ops::Range;

/// The graph that a node is in.
pub struct Surroundings<'a> {
    pub contents: &'a Contents,
    pub verified: &'a Verified,
}

/// Lowers node `index`. `hoisted` has the inputs that constants of the host's have become, by the address of the
/// tensor.
pub fn lower(
    within: &Surroundings<'_>,
    index: usize,
    hoisted: HashMap<usize, usize>,
    alignment: usize,
) -> Result<Lowered> {
    let Surroundings { contents, verified } = within;
    let node = &contents.nodes[index];
    let mut lowering =
        Lowering { bytes: Vec::new(), hoisted, constants: Vec::new(), kernels: 0, loops: 0, branches: 0 };
    let mut list = List::default();
    let inputs: Vec<Where> = (0..node.inputs().len()).map(Where::Input).collect();
    let outputs: Vec<Where> = (0..node.num_outputs()).map(Where::Output).collect();
    lowering.node(&mut list, node, (verified, index), &inputs, &outputs)?;
    let mut offsets = vec![0; lowering.bytes.len()];
    let bytes = list.settle(&lowering.bytes, &mut offsets, alignment);
    let Lowering { constants: _constants, kernels, loops, branches, .. } = lowering;
    Ok(Lowered { list, offsets, bytes, _constants, kernels, loops, branches })
}

struct Lowering {
    /// The size of each value.
    bytes: Vec<usize>,
    hoisted: HashMap<usize, usize>,
    constants: Vec<Ref<Tensor>>,
    kernels: u32,
    loops: u32,
    branches: u32,
}

/// A copy to be made: to where, from where, what, and what it is called.
type Move = (Where, Where, Desc, String);

/// The part that a graph has in the node that it is in.
#[derive(Clone, Copy, Default)]
struct ListPart<'a> {
    /// The body of this loop.
    again: Option<&'a str>,
    /// Without this node.
    skipped: Option<usize>,
}

/// A condition whose last node is a comparison of two numbers: the loop compares them itself.
struct Compared {
    /// The condition, with the numbers as outputs.
    numbers: Contents,
    node: usize,
    relation: Relation,
}

impl Compared {
    fn of(condition: &Contents, verified: &Verified) -> Option<Compared> {
        let (_, (node, _)) = *condition.outputs.first()?;
        let NodeBody::Kernel { kernel, inputs, .. } = &condition.nodes[node].body else { return None };
        let (relation, &[a, b]) = (kernel.kernel().comparison()?, inputs.as_slice()) else { return None };
        let is_number = |value: Value| {
            let desc = verified.desc(value);
            Comparison::takes(desc.dtype) && desc.bytes().is_ok_and(|bytes| bytes == Comparison::BYTES)
        };
        let is_awaited = condition.nodes.iter().any(|other| other.predecessors().any(|before| before == node));
        let is_alone = condition.nodes[node].after.is_empty() && !is_awaited;
        if !is_alone || !is_number(a) || !is_number(b) || verified.desc(a).dtype != verified.desc(b).dtype {
            return None;
        }
        let mut numbers = Contents::clone(condition);
        numbers.outputs = [a, b].map(|value| (String::new(), value)).into();
        Some(Compared { numbers, node, relation })
    }
}

impl Lowering {
    fn value(&mut self, list: &mut List, desc: &Desc) -> Result<Where> {
        self.bytes.push(desc.bytes()?);
        list.values.push(self.bytes.len() - 1);
        Ok(Where::Inner(self.bytes.len() - 1))
    }

    /// Nothing, if it is there already.
    fn copy(list: &mut List, (to, from, desc, name): Move) -> Result<()> {
        let bytes = desc.bytes()?;
        if bytes > 0 && to != from {
            list.actions.push(Action { name, what: What::Copy { from, to, bytes }, after: Vec::new() });
        }
        Ok(())
    }

    /// One node's work, from `inputs` to `outputs`.
    fn node(
        &mut self,
        list: &mut List,
        node: &Node,
        (verified, index): (&Verified, usize),
        inputs: &[Where],
        outputs: &[Where],
    ) -> Result<()> {
        let desc = |value: &Value| *verified.desc(*value);
        let name = format!("node '{}'", node.name);
        match &node.body {
            NodeBody::Kernel { kernel, inputs: values, .. } => {
                self.kernels += 1;
                let inputs = inputs.iter().copied().zip(values.iter().map(desc)).collect();
                let outputs = outputs.iter().copied().zip(verified.descs[index].iter().copied()).collect();
                let what = What::Launch { kernel: kernel.clone(), inputs, outputs };
                list.actions.push(Action { name, what, after: Vec::new() });
            }
            NodeBody::Case { branches, inputs: values, is_cond } => {
                self.branches += 1;
                let mut lists = Vec::with_capacity(branches.len());
                for (branch, verified) in branches.iter().zip(&verified.inner[&index]) {
                    let mut inside = List::default();
                    let wanted: Vec<Option<Where>> = outputs.iter().copied().map(Some).collect();
                    self.graph(&mut inside, (branch, verified), &inputs[1..], &wanted, ListPart::default())?;
                    lists.push(inside);
                }
                let choice = Selector { at: inputs[0], desc: desc(&values[0]) };
                let what = What::Branch { choice, is_cond: *is_cond, branches: lists };
                list.actions.push(Action { name, what, after: Vec::new() });
            }
            NodeBody::While { condition, body, num_variables, .. } => {
                self.loops += 1;
                let [of_condition, of_body] = &verified.inner[&index][..] else {
                    return Err(Error::internal("a loop without its graphs"));
                };
                for (variable, (&from, &to)) in inputs.iter().zip(outputs).enumerate() {
                    let what = format!("first value of variable {variable} of '{}'", node.name);
                    Lowering::copy(list, (to, from, verified.descs[index][variable], what))?;
                }
                let inside: Vec<Where> = outputs.iter().chain(&inputs[*num_variables..]).copied().collect();
                let compared = Compared::of(condition, of_condition);
                let condition = compared.as_ref().map_or(&**condition, |compared| &compared.numbers);
                let test = ListPart { skipped: compared.as_ref().map(|compared| compared.node), ..ListPart::default() };
                let wanted = vec![None; condition.outputs.len()];
                let at = self.graph(list, (condition, of_condition), &inside, &wanted, test)?;
                let mut round = List::default();
                let wanted: Vec<Option<Where>> = outputs.iter().copied().map(Some).collect();
                let part = ListPart { again: Some(&node.name), ..ListPart::default() };
                self.graph(&mut round, (body, of_body), &inside, &wanted, part)?;
                let wanted: Vec<Option<Where>> = at.iter().copied().map(Some).collect();
                self.graph(&mut round, (condition, of_condition), &inside, &wanted, test)?;
                let read = |number: usize| {
                    let desc = *of_condition.desc(condition.outputs[number].1);
                    Selector { at: at[number], desc }
                };
                let predicate = match compared {
                    Some(Compared { relation, .. }) => Test::Comparison(relation, [read(0), read(1)]),
                    None => Test::Integer(read(0)),
                };
                let what = What::Loop { predicate, body: round, behind: Vec::new() };
                list.actions.push(Action { name, what, after: Vec::new() });
            }
            _ => return Err(Error::internal("a node that is no device's")),
        }
        Ok(())
    }

    /// The work of a graph. Outputs go where they are wanted, if that is said, and may be wanted where inputs are;
    /// gives where they are.
    fn graph(
        &mut self,
        list: &mut List,
        (contents, verified): (&Contents, &Verified),
        inputs: &[Where],
        wanted: &[Option<Where>],
        part: ListPart<'_>,
    ) -> Result<Vec<Where>> {
        let mut at = self.given(contents, inputs)?;
        let Straight { values, edges, moved } = straight(contents, verified, &at, wanted)?;
        at.extend(values);
        self.nodes(list, (contents, verified), &mut at, &edges, part.skipped)?;
        let moves = moved.into_iter().map(|(to, value)| {
            let name = match part.again {
                Some(name) => format!("next value of a variable of '{name}'"),
                None => format!("copy of '{}'", contents.nodes[value.0].name),
            };
            (to, at[&value], *verified.desc(value), name)
        });
        self.moves(list, moves.collect())?;
        Ok(contents.outputs.iter().map(|(_, value)| at[value]).collect())
    }

    /// Copies as if all were made at once.
    fn moves(&mut self, list: &mut List, mut moves: Vec<Move>) -> Result<()> {
        while !moves.is_empty() {
            let is_free = |&at: &usize| {
                let mut others = moves.iter().enumerate().filter(|(other, _)| *other != at);
                others.all(|(_, (_, from, ..))| *from != moves[at].0)
            };
            if let Some(free) = (0..moves.len()).find(is_free) {
                let free = moves.remove(free);
                Lowering::copy(list, free)?;
                continue;
            }
            // They go round: one is put aside.
            let (to, _, desc, name) = moves[0].clone();
            let aside = self.value(list, &desc)?;
            Lowering::copy(list, (aside, to, desc, name))?;
            moves.iter_mut().filter(|(_, from, ..)| *from == to).for_each(|(_, from, ..)| *from = aside);
        }
        Ok(())
    }

    /// Where inputs and constants are.
    fn given(&mut self, contents: &Contents, inputs: &[Where]) -> Result<HashMap<Value, Where>> {
        let mut at: HashMap<Value, Where> =
            contents.inputs().zip(inputs).map(|(node, &input)| ((node, 0), input)).collect();
        for (index, node) in contents.nodes.iter().enumerate() {
            let NodeBody::Constant(tensor) = &node.body else { continue };
            let place = match self.hoisted.get(&key(tensor)) {
                Some(&input) => Where::Input(input),
                None => {
                    self.constants.push(tensor.clone());
                    Where::Fixed(tensor.data().addr())
                }
            };
            at.insert((index, 0), place);
        }
        Ok(at)
    }

    /// The nodes but for one, in an order that their edges and the given ones allow. Values that have no place yet are
    /// given one.
    fn nodes(
        &mut self,
        list: &mut List,
        (contents, verified): (&Contents, &Verified),
        at: &mut HashMap<Value, Where>,
        edges: &[(usize, usize)],
        skipped: Option<usize>,
    ) -> Result<()> {
        let mut ranges: Vec<Range<usize>> = vec![0..0; contents.nodes.len()];
        for index in order(contents, verified, edges)? {
            let index = index as usize;
            let node = &contents.nodes[index];
            if matches!(node.body, NodeBody::Input(_) | NodeBody::Constant(_)) || skipped == Some(index) {
                continue;
            }
            let inputs: Vec<Where> = node.inputs().iter().map(|value| at[value]).collect();
            let mut outputs = Vec::with_capacity(node.num_outputs());
            for output in 0..node.num_outputs() {
                let place = match at.get(&(index, output)) {
                    Some(&place) => place,
                    None => self.value(list, verified.desc((index, output)))?,
                };
                at.insert((index, output), place);
                outputs.push(place);
            }
            let first = list.actions.len();
            self.node(list, node, (verified, index), &inputs, &outputs)?;
            ranges[index] = first..list.actions.len();
            let before: Vec<usize> = node.after.iter().flat_map(|&before| ranges[before].clone()).collect();
            list.actions[first..].iter_mut().for_each(|action| action.after.extend(&before));
        }
        Ok(())
    }
}

/// The key of a constant.
pub fn key(tensor: &Ref<Tensor>) -> usize {
    std::ptr::from_ref::<Tensor>(tensor).addr()
}
