//! A graph made of some of another one's nodes.

use crate::base::{Desc, Error, Name, Ref, Result, dtype};
use crate::engine::Tensor;
use crate::graph::build::contents::{After, Contents, Node, NodeBody, Value};
use std::collections::HashMap;

/// Where a value comes from, as the graph that is made sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueOrigin {
    /// Its input with this number.
    Port(usize),
    /// A constant, of which it has its own.
    Constant(usize),
    Node(Value),
}

/// The shape of an input that only `verify` finds out.
pub(super) fn unknown() -> Desc {
    Desc::new(dtype::ANY, &[])
}

/// The graph that is made. Its nodes are known by the numbers that they have elsewhere.
pub(super) struct Assembly<'a> {
    contents: Contents,
    places: HashMap<usize, usize>,
    node: &'a dyn Fn(usize) -> &'a Node,
    trace: &'a dyn Fn(Value) -> ValueOrigin,
}

impl<'a> Assembly<'a> {
    /// Of these nodes, behind inputs with these names.
    pub fn new(
        name: String,
        ports: &[Name],
        members: &[usize],
        node: &'a dyn Fn(usize) -> &'a Node,
        trace: &'a dyn Fn(Value) -> ValueOrigin,
    ) -> Assembly<'a> {
        let input = |name: &Name| Node { name: name.clone(), body: NodeBody::Input(unknown()), after: After::new() };
        let mut contents = Contents { name, nodes: ports.iter().map(input).collect(), ..Contents::default() };
        contents.nodes.reserve(members.len());
        let places = members.iter().enumerate().map(|(i, &member)| (member, ports.len() + i)).collect();
        contents.nodes.extend(members.iter().map(|&member| node(member).clone()));
        Assembly { contents, places, node, trace }
    }

    /// Ties the nodes together. `waits` says for which node one waits that waited for another without data.
    pub fn tie(
        &mut self,
        members: &[usize],
        forwarding: &Contents,
        waits: &dyn Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        for &member in members {
            let place = self.places[&member];
            let node = (self.node)(member);
            for (i, &value) in node.inputs().iter().enumerate() {
                let value = self.value(value)?;
                self.contents.nodes[place].inputs_mut()[i] = value;
            }
            let after = node.after.iter().filter_map(|&before| waits(before));
            let mut after: After = after.filter_map(|before| self.places.get(&before).copied()).collect();
            after.sort_unstable();
            after.dedup();
            self.contents.nodes[place].after = after;
            let inner = node.inner().map(|inner| inner.depth + 1).max().unwrap_or(0);
            self.contents.depth = self.contents.depth.max(inner);
            if !forwarding.forwarding.is_empty() {
                let said = |output| Some(((place, output), *forwarding.forwarding.get(&(member, output))?));
                self.contents.forwarding.extend((0..node.num_outputs()).filter_map(said));
            }
        }
        Ok(())
    }

    /// A value of elsewhere in this graph.
    fn value(&mut self, value: Value) -> Result<Value> {
        match (self.trace)(value) {
            ValueOrigin::Port(port) => Ok((port, 0)),
            ValueOrigin::Constant(constant) => {
                let place = *self.places.entry(constant).or_insert_with(|| {
                    self.contents.nodes.push((self.node)(constant).clone());
                    self.contents.nodes.len() - 1
                });
                Ok((place, 0))
            }
            ValueOrigin::Node((node, output)) => match self.places.get(&node) {
                Some(&place) => Ok((place, output)),
                None => {
                    let text = format!("node '{}' is not in graph '{}'", (self.node)(node).name, self.contents.name);
                    Err(Error::internal(text))
                }
            },
        }
    }

    pub fn output(&mut self, name: &str, value: Value) -> Result<()> {
        let value = self.value(value)?;
        self.contents.outputs.push((name.to_owned(), value));
        Ok(())
    }

    /// One more output, which is a constant.
    pub fn constant(&mut self, name: String, tensor: &Ref<Tensor>) {
        let place = self.contents.nodes.len();
        let body = NodeBody::Constant(tensor.clone());
        self.contents.nodes.push(Node { name: name.as_str().into(), body, after: After::new() });
        self.contents.outputs.push((name, (place, 0)));
    }

    pub fn finish(self) -> Contents {
        self.contents
    }
}
