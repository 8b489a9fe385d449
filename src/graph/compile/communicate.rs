//! Communications become two nodes each: one that begins the operation, in its turn, and one that ends it. One in the
//! memory of a device stays one node, which is issued in its turn.
//!
//! The first nodes of one communicator follow one another along control edges, in the order in which they were added.
//! A cond, a loop or a program with communications inside of it takes its turn as a whole: it begins behind the one
//! before it, and the next one begins when it is over. So every rank begins its operations in the same order, whatever
//! its timing, as long as the ranks' graphs were built in the same order.
#![forbid(unsafe_code)]

use crate::base::{Desc, Name, Result};
use crate::graph::build::contents::{After, Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::kernel::{Kernel, ProgramPlace};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A communication of a program, for a comparison with those of other ranks.
#[derive(Clone)]
pub struct Communicated {
    /// "loop/step"
    pub path: String,
    /// The kinds of the nodes around it: "while/", "cond 1/".
    pub nest: String,
    pub kernel: Arc<dyn Kernel>,
    pub inputs: Vec<Desc>,
    /// The communications, by index, that are over before it begins.
    pub after: Vec<u32>,
}

/// The communications that were found so far.
struct Pass {
    found: Vec<Communicated>,
    /// How many of them are collectives, by order.
    collectives: BTreeMap<u64, u64>,
}

/// Communications by index, sorted.
type Set = BTreeSet<u32>;

/// Those of a kernel that is a program; none for any other kernel.
fn of_program(kernel: &dyn Kernel) -> &[Communicated] {
    kernel.as_any().and_then(|any| any.downcast_ref::<Vec<Communicated>>()).map_or(&[], Vec::as_slice)
}

/// The communicators of a node, also of what is inside of it.
fn orders_of(node: &Node, orders: &mut BTreeSet<u64>) {
    if let NodeBody::Kernel { kernel, .. } = &node.body {
        orders.extend(kernel.kernel().orders().into_iter().flatten());
        let inner = of_program(&**kernel.kernel()).iter();
        orders.extend(inner.flat_map(|found| found.kernel.orders().into_iter().flatten()));
    }
    for inner in node.inner() {
        inner.nodes.iter().for_each(|node| orders_of(node, orders));
    }
}

/// Whether there is any communication.
fn has_any(graph: &Contents) -> bool {
    graph.nodes.iter().any(|node| match &node.body {
        NodeBody::Kernel { kernel, .. } => {
            kernel.kernel().orders()[0].is_some() || !of_program(&**kernel.kernel()).is_empty()
        }
        _ => node.inner().any(|inner| has_any(inner)),
    })
}

/// The graph with two nodes for each communication, and the communications in their order; `None` if there is none.
pub(in crate::graph) fn communicate(
    graph: &Contents,
    verified: &Verified,
) -> Result<Option<(Contents, Vec<Communicated>)>> {
    if !has_any(graph) {
        return Ok(None);
    }
    let mut pass = Pass { found: Vec::new(), collectives: BTreeMap::new() };
    let divided = pass.divide(graph, verified, ["", ""], &Set::new())?;
    Ok(Some((divided, pass.found)))
}

impl Pass {
    /// `place` is path and nest; `outer` is over before anything in here begins.
    fn divide(&mut self, graph: &Contents, verified: &Verified, place: [&str; 2], outer: &Set) -> Result<Contents> {
        let mut new = graph.clone();
        // The node behind which the next one of an order begins.
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        // The communications of each node, and those that are over before it begins.
        let mut own: BTreeMap<usize, Set> = BTreeMap::new();
        let first = self.found.len();
        for index in 0..graph.nodes.len() {
            let node = &graph.nodes[index];
            let mut orders = BTreeSet::new();
            orders_of(node, &mut orders);
            if orders.is_empty() {
                continue;
            }
            let before: Vec<usize> = orders.iter().filter_map(|order| last.get(order).copied()).collect();
            let start = self.found.len() as u32;
            let behind = match &node.body {
                NodeBody::Kernel { kernel, .. } if !of_program(&**kernel.kernel()).is_empty() => {
                    self.found.extend(of_program(&**kernel.kernel()).iter().map(|found| Communicated {
                        path: format!("{}{}/{}", place[0], node.name, found.path),
                        nest: format!("{}{}", place[1], found.nest),
                        after: found.after.iter().map(|before| start + before).collect(),
                        ..found.clone()
                    }));
                    index
                }
                NodeBody::Kernel { kernel, inputs, num_outputs } => {
                    let path = format!("{}{}", place[0], node.name);
                    let order = kernel.kernel().orders()[0].unwrap_or(0);
                    let number = self.collectives.entry(order).or_default();
                    *number += u64::from(kernel.kernel().is_collective());
                    let at = ProgramPlace { nest: place[1], path: &path, number: *number };
                    let placed = kernel.kernel().inside(&at);
                    self.found.push(Communicated {
                        path,
                        nest: place[1].to_owned(),
                        kernel: Arc::clone(kernel.kernel()),
                        inputs: inputs.iter().map(|&value| *verified.desc(value)).collect(),
                        after: Vec::new(),
                    });
                    match placed.as_ref().unwrap_or(kernel.kernel()).halves() {
                        // One that a device does is one node.
                        None => {
                            if let Some(placed) = placed {
                                let (kernel, inputs) = (kernel.with_kernel(placed)?, inputs.clone());
                                let body = NodeBody::Kernel { kernel, inputs, num_outputs: *num_outputs };
                                new.nodes[index].body = body;
                            }
                            index
                        }
                        Some(halves) => {
                            let (begin, begun) = (new.nodes.len(), halves.begin.num_outputs());
                            new.nodes.push(Node {
                                name: Name::from(format!("{} (begin)", node.name).as_str()),
                                body: NodeBody::Kernel {
                                    kernel: kernel.with_kernel(halves.begin)?,
                                    inputs: inputs.clone(),
                                    num_outputs: begun,
                                },
                                after: node.after.clone(),
                            });
                            let begun = (1..begun).chain([0]).map(|output| -> Value { (begin, output) });
                            let inputs = begun.chain(inputs.iter().copied()).collect();
                            let num_outputs = halves.end.num_outputs();
                            let end = kernel.with_kernel(halves.end)?;
                            new.nodes[index].body = NodeBody::Kernel { kernel: end, inputs, num_outputs };
                            new.nodes[index].after = After::new();
                            begin
                        }
                    }
                }
                _ => {
                    let inner = verified.inner.get(&index).map_or(&[][..], Vec::as_slice);
                    let graphs: Vec<Arc<Contents>> = node.inner().cloned().collect();
                    for (at, (graph, verified)) in graphs.iter().zip(inner).enumerate() {
                        let (kind, path) = (node.kind(), format!("{}{}/", place[0], node.name));
                        let nest = match &node.body {
                            NodeBody::While { .. } => format!("{}{kind}{}/", place[1], ["'s condition", ""][at.min(1)]),
                            _ => format!("{}{kind} {at}/", place[1]),
                        };
                        if has_any(graph) {
                            let divided = Arc::new(self.divide(graph, verified, [&path, &nest], &Set::new())?);
                            if let Some(to) = new.nodes[index].inner_mut().into_iter().nth(at) {
                                *to = divided;
                            }
                        }
                    }
                    index
                }
            };
            own.insert(index, (start..self.found.len() as u32).collect());
            new.nodes[behind].after.extend(before);
            last.extend(orders.into_iter().map(|order| (order, behind)));
        }
        self.depend(graph, verified, &own, outer, first);
        Ok(new)
    }

    /// Notes for each communication in here which others are over before it begins.
    fn depend(&mut self, graph: &Contents, verified: &Verified, own: &BTreeMap<usize, Set>, outer: &Set, first: usize) {
        if self.found.len() == first {
            return;
        }
        // The communications that are over when a node is: only the nearest ones, since those know the others.
        let mut over: Vec<Set> = vec![Set::new(); graph.nodes.len()];
        for &index in &verified.order {
            let index = index as usize;
            let mut before = outer.clone();
            for predecessor in graph.nodes[index].predecessors() {
                before.extend(&over[predecessor]);
            }
            over[index] = match own.get(&index) {
                None => before,
                Some(own) => {
                    own.iter().for_each(|&at| self.found[at as usize].after.extend(&before));
                    own.clone()
                }
            };
        }
    }
}
