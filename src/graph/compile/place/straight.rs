//! Which of a graph's outputs are computed straight to where they are wanted, and which have to be copied there behind
//! all else.
//!
//! *In place.* An output may be wanted where an input is: a loop's next value of a variable, where the one before is,
//! or the same inside of a branch or a loop of the body. Then all readers of the input come first: edges say so. The
//! node that computes the output may read the input itself, if it is
//!
//! - a kernel that says that its output may share memory with an input, in the form that the device has too, and both
//!   are alike;
//! - a branch: each of its lists settles that for itself;
//! - a loop, if the input is the first value of that very variable and nothing else to it.
//!
//! It is copied if an edge would make a cycle, if the input is wanted somewhere else besides, and if the order made a
//! longer chain of nodes than the copy does.
#![forbid(unsafe_code)]

use crate::base::{Error, Reach, Result, Successors};
use crate::graph::build::contents::{Contents, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::graph::plan::actions::Where;
use std::collections::HashMap;

#[derive(Default)]
pub(in crate::graph) struct Straight {
    /// Where values are computed.
    pub values: Vec<(Value, Where)>,
    /// Nodes that come one after the other for that.
    pub edges: Vec<(usize, usize)>,
    /// Copies to be made: to where, and the value.
    pub moved: Vec<(Where, Value)>,
}

/// `given`: where inputs and constants are.
pub(in crate::graph) fn straight(
    contents: &Contents,
    verified: &Verified,
    given: &HashMap<Value, Where>,
    wanted: &[Option<Where>],
) -> Result<Straight> {
    let mut made = Straight::default();
    let mut behind = NodeReach::new(contents, verified, &made.edges)?;
    let values: Vec<Value> = contents.outputs.iter().map(|(_, value)| *value).collect();
    for (&value, wanted) in values.iter().zip(wanted) {
        let Some(wanted) = *wanted else { continue };
        if given.get(&value) == Some(&wanted) {
            continue;
        }
        let is_placed = given.contains_key(&value) || made.values.iter().any(|(placed, _)| *placed == value);
        let is_old = |value: &Value| given.get(value) == Some(&wanted);
        if is_placed || values.iter().any(is_old) {
            made.moved.push((wanted, value));
            continue;
        }
        let maker = value.0;
        let (mut others, mut is_read) = (Vec::new(), false);
        for (node, _) in contents.nodes.iter().enumerate().filter(|(_, of)| of.inputs().iter().any(is_old)) {
            match node == maker {
                true => is_read = !may_share(contents, verified, value, is_old),
                false => others.push(node),
            }
        }
        if is_read || others.iter().any(|&reader| behind.is_before(maker, reader)) {
            made.moved.push((wanted, value));
            continue;
        }
        let known = made.edges.len();
        made.edges
            .extend(others.iter().filter(|&&reader| !behind.is_before(reader, maker)).map(|&reader| (reader, maker)));
        if made.edges.len() > known {
            let then = NodeReach::new(contents, verified, &made.edges)?;
            let copied =
                others.iter().map(|&reader| behind.depth[reader]).max().unwrap_or(0).max(behind.depth[maker]) + 1;
            if then.longest() > behind.longest().max(copied) {
                made.edges.truncate(known);
                made.moved.push((wanted, value));
                continue;
            }
            behind = then;
        }
        made.values.push((value, wanted));
    }
    Ok(made)
}

/// Whether the node that computes a value may write it where inputs of its own are: those that `is_old` says.
fn may_share(contents: &Contents, verified: &Verified, (node, output): Value, is_old: impl Fn(&Value) -> bool) -> bool {
    let inputs = contents.nodes[node].inputs();
    let old: Vec<usize> = (0..inputs.len()).filter(|&input| is_old(&inputs[input])).collect();
    match &contents.nodes[node].body {
        NodeBody::Kernel { kernel, inputs, num_outputs } => {
            let is_alike = |&input: &usize| verified.desc(inputs[input]) == verified.desc((node, output));
            let is_fit = kernel.on_device().is_some_and(|device| device.in_place());
            let may = is_fit && contents.may_write_over((node, output), is_old);
            may && *num_outputs == 1 && old.iter().all(is_alike)
        }
        NodeBody::Case { .. } => true,
        NodeBody::While { .. } => old == [output],
        _ => false,
    }
}

/// An order that the graph's edges and the given ones, from and to, allow; close to the graph's own.
pub(in crate::graph) fn order(contents: &Contents, verified: &Verified, edges: &[(usize, usize)]) -> Result<Vec<u32>> {
    let n = contents.nodes.len();
    let mut place = vec![0; n];
    verified.order.iter().enumerate().for_each(|(at, &node)| place[node as usize] = at);
    let own = contents.nodes.iter().enumerate();
    let own = own.flat_map(|(node, of)| of.predecessors().map(move |before| (before, node)));
    let order = Successors::new(n, own.chain(edges.iter().copied())).order(0..n, |node| place[node]);
    if order.len() < n { Err(Error::internal("a loop's body with a cycle")) } else { Ok(order) }
}

/// Which nodes come before which.
struct NodeReach {
    place: Vec<usize>,
    reach: Reach,
    /// How many nodes there are in the longest chain that ends with each.
    depth: Vec<usize>,
}

impl NodeReach {
    fn new(contents: &Contents, verified: &Verified, edges: &[(usize, usize)]) -> Result<NodeReach> {
        let n = contents.nodes.len();
        let mut before: Vec<Vec<usize>> = contents.nodes.iter().map(|node| node.predecessors().collect()).collect();
        edges.iter().for_each(|&(from, to)| before[to].push(from));
        let (mut place, mut reach, mut depth) = (vec![0; n], Reach::new(n), vec![0; n]);
        for (at, node) in order(contents, verified, edges)?.into_iter().enumerate() {
            let node = node as usize;
            place[node] = at;
            let mut after: Vec<usize> = before[node].iter().map(|&before| place[before]).collect();
            reach.add(at, &mut after);
            let is_work = !matches!(contents.nodes[node].body, NodeBody::Input(_) | NodeBody::Constant(_));
            depth[node] = before[node].iter().map(|&before| depth[before]).max().unwrap_or(0) + usize::from(is_work);
        }
        Ok(NodeReach { place, reach, depth })
    }

    fn is_before(&self, before: usize, then: usize) -> bool {
        self.place[before] < self.place[then] && self.reach.is_before(self.place[before], self.place[then])
    }

    fn longest(&self) -> usize {
        self.depth.iter().copied().max().unwrap_or(0)
    }
}
