//! From a branch or a loop of the graph to lists of actions (`flow`).
//!
//! *Values.* What a kernel computes goes into a value of the list that it is in, or straight where it is wanted: into an output of the branch, or the
//! variable of a loop. What is passed on unchanged is copied there, or is there. Inputs and constants are read where they are.
//!
//! *Loops.* A variable has one place for all iterations: the loop's output. Its first value is copied there. The next one is computed
//! straight into it if all that read the old one can come first: edges are added for that, unless they would make a cycle. Else it is copied there at the end
//! of the body; where variables change places, one of them by way of a value between. The condition is computed before the loop, and at
//! the end of the body again, into the same place.
#![forbid(unsafe_code)]

use super::flow::{Action, List, Selector, What, Where};
use crate::base::{Desc, Error, Reach, Ref, Result};
use crate::engine::Tensor;
use crate::graph::builder::{Body, Contents, Node, Value};
use crate::graph::verify::{Verified, predecessors};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

/// A node's work.
pub struct Lowered {
    pub list: List,
    /// Where each value is in the piece's memory, and how much that is.
    pub offsets: Vec<usize>,
    pub bytes: usize,
    /// Constants on the engine, which stay.
    pub _constants: Vec<Ref<Tensor>>,
    pub kernels: u32,
    pub loops: u32,
    pub branches: u32,
}

/// The graph that a node is in.
pub struct Surroundings<'a> {
    pub contents: &'a Contents,
    pub verified: &'a Verified,
}

/// Lowers node `index`. `hoisted` has the inputs that constants of the host's have become, by the address of the tensor.
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

/// A copy to be made: to where, from where, what.
type Move = (Where, Where, Desc);

impl Lowering {
    fn value(&mut self, list: &mut List, desc: &Desc) -> Result<Where> {
        self.bytes.push(desc.bytes()?);
        list.values.push(self.bytes.len() - 1);
        Ok(Where::Inner(self.bytes.len() - 1))
    }

    fn copy(list: &mut List, name: String, (to, from, desc): Move) -> Result<()> {
        let bytes = desc.bytes()?;
        if bytes > 0 {
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
            Body::Kernel { kernel, inputs: values, .. } => {
                self.kernels += 1;
                let inputs = inputs.iter().copied().zip(values.iter().map(desc)).collect();
                let outputs = outputs.iter().copied().zip(verified.descs[index].iter().copied()).collect();
                let what = What::Launch { kernel: kernel.clone(), inputs, outputs };
                list.actions.push(Action { name, what, after: Vec::new() });
            }
            Body::Case { branches, inputs: values, is_cond } => {
                self.branches += 1;
                let mut lists = Vec::with_capacity(branches.len());
                for (branch, verified) in branches.iter().zip(&verified.inner[&index]) {
                    let mut inside = List::default();
                    let wanted: Vec<Option<Where>> = outputs.iter().copied().map(Some).collect();
                    self.graph(&mut inside, branch, verified, &inputs[1..], &wanted)?;
                    lists.push(inside);
                }
                let choice = Selector { at: inputs[0], desc: desc(&values[0]) };
                let what = What::Branch { choice, is_cond: *is_cond, branches: lists };
                list.actions.push(Action { name, what, after: Vec::new() });
            }
            Body::While { condition, body, num_variables, .. } => {
                self.loops += 1;
                let [of_condition, of_body] = &verified.inner[&index][..] else {
                    return Err(Error::internal("a loop without its graphs"));
                };
                for (variable, (&from, &to)) in inputs.iter().zip(outputs).enumerate() {
                    let what = format!("first value of variable {variable} of '{}'", node.name);
                    Lowering::copy(list, what, (to, from, verified.descs[index][variable]))?;
                }
                let inside: Vec<Where> = outputs.iter().chain(&inputs[*num_variables..]).copied().collect();
                let at = self.graph(list, condition, of_condition, &inside, &[None])?[0];
                let value = condition.outputs[0].1;
                let mut round = List::default();
                self.body(&mut round, &node.name, (body, of_body), &inside, *num_variables)?;
                if is_computed(condition, value) {
                    self.graph(&mut round, condition, of_condition, &inside, &[Some(at)])?;
                }
                let predicate = Selector { at, desc: *of_condition.desc(value) };
                let what = What::Loop { predicate, body: round };
                list.actions.push(Action { name, what, after: Vec::new() });
            }
            _ => return Err(Error::internal("a node that is no device's")),
        }
        Ok(())
    }

    /// The work of a graph. Outputs go where they are wanted, if that is said; gives where they are.
    fn graph(
        &mut self,
        list: &mut List,
        contents: &Contents,
        verified: &Verified,
        inputs: &[Where],
        wanted: &[Option<Where>],
    ) -> Result<Vec<Where>> {
        let mut at = self.given(contents, inputs)?;
        let mut moves = Vec::new();
        for ((_, value), wanted) in contents.outputs.iter().zip(wanted) {
            let Some(wanted) = *wanted else { continue };
            match at.get(value) {
                None => drop(at.insert(*value, wanted)),
                Some(_) => moves.push((wanted, *value)),
            }
        }
        self.nodes(list, contents, verified, &mut at, &[])?;
        for (to, value) in moves {
            let name = format!("copy of '{}'", contents.nodes[value.0].name);
            Lowering::copy(list, name, (to, at[&value], *verified.desc(value)))?;
        }
        Ok(contents.outputs.iter().map(|(_, value)| at[value]).collect())
    }

    /// One iteration: the variables' next values go where `inputs`, the variables and the invariants, are.
    fn body(
        &mut self,
        list: &mut List,
        name: &str,
        (contents, verified): (&Contents, &Verified),
        inputs: &[Where],
        num_variables: usize,
    ) -> Result<()> {
        let mut at = self.given(contents, inputs)?;
        let input_nodes: Vec<usize> = contents.inputs().collect();
        let values: Vec<Value> = contents.outputs.iter().map(|(_, value)| *value).collect();
        let mut edges: Vec<(usize, usize)> = Vec::new();
        let mut behind = Behind::new(contents, verified, &edges)?;
        let mut moved = Vec::new();
        for variable in 0..num_variables {
            let (old, next) = ((input_nodes[variable], 0), values[variable]);
            if next == old {
                continue;
            }
            let readers: Vec<usize> =
                (0..contents.nodes.len()).filter(|&node| contents.nodes[node].inputs().contains(&old)).collect();
            let is_passed_on = values.contains(&old);
            let may_be_last = |&reader: &usize| reader != next.0 && !behind.is_before(next.0, reader);
            if at.contains_key(&next) || is_passed_on || !readers.iter().all(may_be_last) {
                moved.push(variable);
                continue;
            }
            at.insert(next, inputs[variable]);
            if !readers.is_empty() {
                edges.extend(readers.iter().map(|&reader| (reader, next.0)));
                behind = Behind::new(contents, verified, &edges)?;
            }
        }
        self.nodes(list, contents, verified, &mut at, &edges)?;
        let desc = |variable: usize| *verified.desc(values[variable]);
        let moves = moved.iter().map(|&variable| (inputs[variable], at[&values[variable]], desc(variable))).collect();
        self.moves(list, name, moves)
    }

    /// Copies as if all were made at once.
    fn moves(&mut self, list: &mut List, name: &str, mut moves: Vec<Move>) -> Result<()> {
        let text = format!("next value of a variable of '{name}'");
        while !moves.is_empty() {
            let is_free = |&at: &usize| {
                let mut others = moves.iter().enumerate().filter(|(other, _)| *other != at);
                others.all(|(_, (_, from, _))| *from != moves[at].0)
            };
            if let Some(free) = (0..moves.len()).find(is_free) {
                let free = moves.remove(free);
                Lowering::copy(list, text.clone(), free)?;
                continue;
            }
            // They go round: one is put aside.
            let (to, _, desc) = moves[0];
            let aside = self.value(list, &desc)?;
            Lowering::copy(list, text.clone(), (aside, to, desc))?;
            moves.iter_mut().filter(|(_, from, _)| *from == to).for_each(|(_, from, _)| *from = aside);
        }
        Ok(())
    }

    /// Where inputs and constants are.
    fn given(&mut self, contents: &Contents, inputs: &[Where]) -> Result<HashMap<Value, Where>> {
        let mut at: HashMap<Value, Where> =
            contents.inputs().zip(inputs).map(|(node, &input)| ((node, 0), input)).collect();
        for (index, node) in contents.nodes.iter().enumerate() {
            let Body::Constant(tensor) = &node.body else { continue };
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

    /// The nodes, in an order that their edges and the given ones allow. Values that have no place yet are given one.
    fn nodes(
        &mut self,
        list: &mut List,
        contents: &Contents,
        verified: &Verified,
        at: &mut HashMap<Value, Where>,
        edges: &[(usize, usize)],
    ) -> Result<()> {
        let mut ranges: Vec<Range<usize>> = vec![0..0; contents.nodes.len()];
        for index in order(contents, verified, edges)? {
            let node = &contents.nodes[index];
            if matches!(node.body, Body::Input(_) | Body::Constant(_)) {
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

/// What a constant is known by.
pub fn key(tensor: &Ref<Tensor>) -> usize {
    std::ptr::from_ref::<Tensor>(tensor).addr()
}

fn is_computed(contents: &Contents, value: Value) -> bool {
    !matches!(contents.nodes[value.0].body, Body::Input(_) | Body::Constant(_))
}

/// An order that the graph's edges and the given ones, from and to, allow; close to the graph's own.
fn order(contents: &Contents, verified: &Verified, edges: &[(usize, usize)]) -> Result<Vec<usize>> {
    let n = contents.nodes.len();
    let mut place = vec![0; n];
    verified.order.iter().enumerate().for_each(|(at, &node)| place[node as usize] = at);
    let (mut waiting, mut next) = (vec![0; n], vec![Vec::new(); n]);
    let own = contents.nodes.iter().enumerate();
    let own = own.flat_map(|(node, of)| predecessors(of).map(move |before| (before, node)));
    for (before, node) in own.chain(edges.iter().copied()) {
        waiting[node] += 1;
        next[before].push(node);
    }
    let free = (0..n).filter(|&node| waiting[node] == 0);
    let mut ready: BinaryHeap<Reverse<(usize, usize)>> = free.map(|node| Reverse((place[node], node))).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse((_, node))) = ready.pop() {
        order.push(node);
        for &next in &next[node] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(Reverse((place[next], next)));
            }
        }
    }
    if order.len() < n { Err(Error::internal("a loop's body with a cycle")) } else { Ok(order) }
}

/// Which nodes come before which.
struct Behind {
    place: Vec<usize>,
    reach: Reach,
}

impl Behind {
    fn new(contents: &Contents, verified: &Verified, edges: &[(usize, usize)]) -> Result<Behind> {
        let n = contents.nodes.len();
        let mut before: Vec<Vec<usize>> = contents.nodes.iter().map(|node| predecessors(node).collect()).collect();
        edges.iter().for_each(|&(from, to)| before[to].push(from));
        let (mut place, mut reach) = (vec![0; n], Reach::new(n));
        for (at, node) in order(contents, verified, edges)?.into_iter().enumerate() {
            place[node] = at;
            let mut after: Vec<usize> = before[node].iter().map(|&before| place[before]).collect();
            reach.add(at, &mut after);
        }
        Ok(Behind { place, reach })
    }

    fn is_before(&self, before: usize, then: usize) -> bool {
        self.place[before] < self.place[then] && self.reach.is_before(self.place[before], self.place[then])
    }
}
