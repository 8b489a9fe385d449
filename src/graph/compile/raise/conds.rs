//! Switches and merges of one predicate become a cond, in a graph that had frames.
//!
//! Such a cond is all that lies behind the switches of one predicate, up to merges of its two sides. It is raised if
//! everything in it is on one side, leaves by these merges alone, and takes nothing that can be absent. And each merge
//! takes values that are there whenever their side is, in spite of switches inside: then its result is there when the
//! predicate is, as a cond's would be. Which of its inputs a merge has taken is a value too, if somebody asks for it: a
//! constant in each branch. The outermost ones go first, those inside of them are raised in their branches.
//! All other nodes stay as they are, and mean the same.

use super::assemble::{Assembly, ValueOrigin};
use super::frames::is_constant;
use crate::base::{Error, Ref, Result, Successors};
use crate::engine::Tensor;
use crate::graph::build::contents::{After, Contents, Node, NodeBody, Value};
use crate::graph::build::options::Forwarding;
use crate::graph::build::presence;
use crate::graph::plan::MAX_DEPTH;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Most conds one behind another that are looked for.
const MOST_ROUNDS: usize = 32;

/// A cond that was found.
struct RaisedCond {
    predicate: Value,
    /// The nodes of both sides.
    sides: [Vec<usize>; 2],
    switches: Vec<usize>,
    /// Each merge, and its inputs by side.
    merges: Vec<(usize, [Value; 2])>,
    /// Each merge whose index is asked for, and its index by side.
    indices: Vec<(usize, [usize; 2])>,
    /// Its inputs, constants left out.
    inputs: Vec<Value>,
    after: After,
}

/// The indices of merges, 0 and 1, as constants. None: merges whose index is asked for stay as they are.
pub(in crate::graph) type MergeIndices<'a> = Option<&'a [Ref<Tensor>; 2]>;

/// Raises the conds of a graph that lies in so many others.
pub(super) fn raise(graph: Contents, level: usize, constants: MergeIndices<'_>) -> Result<Contents> {
    let mut graph = graph;
    for _ in 0..MOST_ROUNDS {
        if level + 1 >= MAX_DEPTH / 2 {
            break;
        }
        let mut conds = Vec::new();
        for cond in CondSearch::new(&graph, constants.is_some()).conds() {
            let branches = [branch(&graph, &cond, 0, level, constants)?, branch(&graph, &cond, 1, level, constants)?];
            if !branches.iter().any(can_leave_outputs_absent) {
                conds.push((cond, branches));
            }
        }
        if conds.is_empty() {
            break;
        }
        graph = replace(&graph, conds)?;
    }
    Ok(graph)
}

struct CondSearch<'a> {
    graph: &'a Contents,
    successors: Vec<Vec<usize>>,
    /// Behind any switch.
    may_be_absent: Vec<bool>,
    outputs: HashSet<usize>,
    /// Merges whose index is asked for are raised, too.
    has_indices: bool,
}

impl<'a> CondSearch<'a> {
    fn new(graph: &'a Contents, has_indices: bool) -> CondSearch<'a> {
        let n = graph.nodes.len();
        let mut successors = vec![Vec::new(); n];
        for (index, node) in graph.nodes.iter().enumerate() {
            node.predecessors().for_each(|before| successors[before].push(index));
        }
        let is_switch = |&index: &usize| matches!(graph.nodes[index].body, NodeBody::Switch { .. });
        let mut to_do: Vec<usize> = (0..n).filter(is_switch).collect();
        let mut may_be_absent = vec![false; n];
        while let Some(index) = to_do.pop() {
            for &next in &successors[index] {
                if !std::mem::replace(&mut may_be_absent[next], true) {
                    to_do.push(next);
                }
            }
        }
        let outputs = graph.outputs.iter().map(|(_, value)| value.0).collect();
        CondSearch { graph, successors, may_be_absent, outputs, has_indices }
    }

    fn conds(&self) -> Vec<RaisedCond> {
        let mut groups: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if let NodeBody::Switch { inputs } = &node.body {
                groups.entry(inputs[1]).or_default().push(index);
            }
        }
        groups.into_iter().filter_map(|(predicate, switches)| self.cond(predicate, switches)).collect()
    }

    /// The cond of these switches, if they are of one.
    fn cond(&self, predicate: Value, switches: Vec<usize>) -> Option<RaisedCond> {
        let nodes = &self.graph.nodes;
        let is_plain = |&switch: &usize| {
            nodes[switch].after.is_empty() && !self.outputs.contains(&switch) && !self.may_be_absent[switch]
        };
        if !switches.iter().all(is_plain) || is_constant(&nodes[predicate.0]) {
            return None;
        }
        // Each node's side; a merge of both has none.
        let mut sides: BTreeMap<usize, usize> = BTreeMap::new();
        let mut merges: BTreeMap<usize, [Value; 2]> = BTreeMap::new();
        let is_ours: HashSet<usize> = switches.iter().copied().collect();
        let mut to_do: Vec<usize> =
            switches.iter().flat_map(|&switch| self.successors[switch].iter().copied()).collect();
        while let Some(index) = to_do.pop() {
            if sides.contains_key(&index) || merges.contains_key(&index) {
                continue;
            }
            let node = &nodes[index];
            let side_of = |value: &Value| match is_ours.contains(&value.0) {
                true => Some(value.1),
                false => sides.get(&value.0).copied(),
            };
            let of_inputs: Vec<Option<usize>> = node.inputs().iter().map(side_of).collect();
            if let (NodeBody::Merge { inputs }, [Some(a), Some(b)]) = (&node.body, &of_inputs[..])
                && a != b
            {
                merges.insert(index, if *a == 0 { [inputs[0], inputs[1]] } else { [inputs[1], inputs[0]] });
                continue;
            }
            if let NodeBody::Merge { .. } = &node.body {
                // Of one side, once all of its inputs are known; else looked at again when another one is.
                if of_inputs.iter().any(Option::is_none) {
                    continue;
                }
            }
            let of_waits = node.after.iter().filter_map(|before| sides.get(before).copied());
            let mut found = of_inputs.iter().flatten().copied().chain(of_waits);
            let side = found.next()?;
            if found.any(|other| other != side) || node.after.iter().any(|before| is_ours.contains(before)) {
                return None;
            }
            sides.insert(index, side);
            to_do.extend_from_slice(&self.successors[index]);
        }
        self.check(predicate, switches, &sides, merges)
    }

    fn check(
        &self,
        predicate: Value,
        switches: Vec<usize>,
        sides: &BTreeMap<usize, usize>,
        merges: BTreeMap<usize, [Value; 2]>,
    ) -> Option<RaisedCond> {
        let nodes = &self.graph.nodes;
        let is_inside = |index: usize| sides.contains_key(&index);
        let is_switch = |index: usize| switches.binary_search(&index).is_ok();
        let (mut inputs, mut after) = (Vec::new(), After::new());
        let mut known: HashSet<Value> = HashSet::new();
        let mut take = |value: Value| {
            if !is_inside(value.0) && !is_switch(value.0) && !is_constant(&nodes[value.0]) && known.insert(value) {
                inputs.push(value);
            }
        };
        switches.iter().for_each(|&switch| take(nodes[switch].inputs()[0]));
        for (&index, side) in sides {
            let node = &nodes[index];
            // Nodes that came to a side later may have made a merge of both sides of one that looked like a merge of
            // one.
            for &value in node.inputs() {
                let there = if is_switch(value.0) { Some(value.1) } else { sides.get(&value.0).copied() };
                if there.is_some_and(|there| there != *side) || merges.contains_key(&value.0) {
                    return None;
                }
                take(value);
            }
            for &before in &node.after {
                match sides.get(&before) {
                    Some(there) if there != side => return None,
                    Some(_) => {}
                    None if is_switch(before) || merges.contains_key(&before) => return None,
                    None => after.push(before),
                }
            }
            let reserved =
                |output| matches!(self.graph.forwarding.get(&(index, output)), Some(Forwarding::Reserved(_)));
            if self.outputs.contains(&index) || (0..node.num_outputs()).any(reserved) {
                return None;
            }
            let goes = |next: &usize| is_inside(*next) || merges.contains_key(next);
            if !self.successors[index].iter().all(goes) {
                return None;
            }
        }
        let goes =
            |switch: &usize| self.successors[*switch].iter().all(|next| is_inside(*next) || merges.contains_key(next));
        if merges.is_empty() || !switches.iter().all(goes) {
            return None;
        }
        let mut indices = Vec::new();
        for (&merge, values) in &merges {
            let takes_index = |next: &usize| nodes[*next].inputs().contains(&(merge, 1));
            let is_index = self.graph.outputs.iter().any(|(_, value)| *value == (merge, 1));
            let has_index = is_index || self.successors[merge].iter().any(takes_index);
            if !nodes[merge].after.is_empty() || has_index && !self.has_indices {
                return None;
            }
            if has_index {
                let first = usize::from(nodes[merge].inputs()[0] != values[0]);
                indices.push((merge, [first, 1 - first]));
            }
        }
        let given = inputs.iter().map(|value| value.0).chain(after.iter().copied()).chain([predicate.0]);
        let can_be_absent =
            |index: usize| self.may_be_absent[index] || matches!(nodes[index].body, NodeBody::Switch { .. });
        if given.into_iter().any(can_be_absent) {
            return None;
        }
        let of = |which: usize| sides.iter().filter(|(_, side)| **side == which).map(|(&index, _)| index).collect();
        let merges = merges.into_iter().collect();
        Some(RaisedCond { predicate, sides: [of(0), of(1)], switches, merges, indices, inputs, after })
    }
}

/// The graph with conds in the place of what they are made of.
fn replace(graph: &Contents, conds: Vec<(RaisedCond, [Contents; 2])>) -> Result<Contents> {
    let n = graph.nodes.len();
    let mut gone: HashSet<usize> = HashSet::new();
    let (mut given, mut made) = (HashMap::new(), Vec::with_capacity(conds.len()));
    for (cond, branches) in conds {
        let inputs = std::iter::once(cond.predicate).chain(cond.inputs.iter().copied()).collect();
        let body = NodeBody::Case { branches: branches.map(Arc::new).to_vec(), inputs, is_cond: true };
        for (output, (merge, _)) in cond.merges.iter().enumerate() {
            given.insert((*merge, 0), (n + made.len(), output));
        }
        for (output, (merge, _)) in cond.indices.iter().enumerate() {
            given.insert((*merge, 1), (n + made.len(), cond.merges.len() + output));
        }
        made.push(Node { name: graph.nodes[cond.merges[0].0].name.clone(), body, after: cond.after.clone() });
        gone.extend(cond.sides.iter().flatten().chain(&cond.switches).chain(cond.merges.iter().map(|merge| &merge.0)));
    }
    let members: Vec<usize> = (0..n + made.len()).filter(|index| !gone.contains(index)).collect();
    let node = |index: usize| if index < n { &graph.nodes[index] } else { &made[index - n] };
    let trace = |value: Value| ValueOrigin::Node(given.get(&value).copied().unwrap_or(value));
    let mut whole = Assembly::new(graph.name.clone(), &[], &members, &node, &trace);
    whole.tie(&members, graph, &|before| Some(given.get(&(before, 0)).map_or(before, |given| given.0)))?;
    for (name, value) in &graph.outputs {
        whole.output(name, *value)?;
    }
    Ok(Contents { homes: graph.homes.clone(), ..whole.finish() })
}

/// Whether switches that are no cond can leave an output of the branch absent.
fn can_leave_outputs_absent(branch: &Contents) -> bool {
    if !branch.nodes.iter().any(|node| matches!(node.body, NodeBody::Switch { .. })) {
        return false;
    }
    let edges = branch.nodes.iter().enumerate();
    let edges = edges.flat_map(|(index, node)| node.predecessors().map(move |before| (before, index)));
    let n = branch.nodes.len();
    let order = Successors::new(n, edges).first_come(0..n);
    presence::find(branch, &order).check_outputs(branch, "").is_err()
}

fn branch(
    graph: &Contents,
    cond: &RaisedCond,
    side: usize,
    level: usize,
    constants: MergeIndices<'_>,
) -> Result<Contents> {
    let name = |value: &Value| graph.nodes[value.0].name.clone();
    let ports: Vec<_> = cond.inputs.iter().map(name).collect();
    let numbers: HashMap<Value, usize> = cond.inputs.iter().enumerate().map(|(i, &value)| (value, i)).collect();
    let node = |index: usize| &graph.nodes[index];
    let trace = |value: Value| {
        let passed = match &graph.nodes[value.0].body {
            NodeBody::Switch { inputs } if cond.switches.binary_search(&value.0).is_ok() => inputs[0],
            _ => value,
        };
        match numbers.get(&passed) {
            Some(&port) => ValueOrigin::Port(port),
            None if is_constant(&graph.nodes[passed.0]) => ValueOrigin::Constant(passed.0),
            None => ValueOrigin::Node(passed),
        }
    };
    let members = &cond.sides[side];
    let what = if side == 0 { "else" } else { "then" };
    let name = format!("{}/{what}", graph.nodes[cond.merges[0].0].name.as_str());
    let mut part = Assembly::new(name, &ports, members, &node, &trace);
    part.tie(members, graph, &Some)?;
    for (merge, values) in &cond.merges {
        part.output(graph.nodes[*merge].name.as_str(), values[side])?;
    }
    for (merge, by_side) in &cond.indices {
        let Some(constants) = constants else { return Err(Error::internal("a merge's index without its constant")) };
        part.constant(format!("{}/index", graph.nodes[*merge].name.as_str()), &constants[by_side[side]]);
    }
    raise(part.finish(), level + 1, constants)
}
