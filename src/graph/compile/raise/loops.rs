//! A frame becomes a while.
//!
//! The loop's switches have its loop cond for a predicate. The nodes behind their true sides are the body; all else in
//! the frame is computed in each iteration, the last one too, and is the condition. A merge with its enter and its next
//! iteration is a variable, every other enter an invariant. Other values of the condition's that the body takes are
//! computed in the body again, or there alone if the loop cond does without.

use super::assemble::{Assembly, ValueOrigin};
use super::conds;
use super::frames::{LoopFrames, ROOT, is_constant, op};
use crate::base::sort::sort_by_key;
use crate::base::{Error, Name, Result, with_article};
use crate::graph::build::contents::{After, Contents, LoopOp, Node, NodeBody, Value};
use crate::graph::build::verify::has_effects;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A graph whose frames become nodes, the innermost first.
pub(super) struct Raiser<'a> {
    graph: &'a Contents,
    frames: LoopFrames,
    names: HashSet<&'a str>,
    /// The loops, numbered behind the graph's nodes.
    loops: Vec<Node>,
    /// The value of each exit: an output of a loop.
    exits: HashMap<usize, Value>,
    /// Readers of switches and parts of loops: the node and its input.
    takers: HashMap<Value, Vec<(usize, usize)>>,
    /// Whether conds are raised, too.
    has_conds: bool,
}

/// A frame, looked through.
struct RaisedLoop {
    frame: usize,
    loop_cond: usize,
    /// The merge and the next iteration of each variable.
    variables: Vec<(usize, usize)>,
    /// The enters of the loop's inputs: of the variables, then of the invariants.
    enters: Vec<usize>,
    /// The input that stands for a merge or a constant enter.
    ports: HashMap<usize, usize>,
    /// The switches that the loop cond decides, and what they pass on.
    switches: HashMap<usize, Value>,
    exits: Vec<usize>,
    /// The other nodes, in order.
    work: Vec<usize>,
    parallel_iterations: u32,
}

/// Which part of the loop nodes belong to, by their place in `RaisedLoop::work`.
struct Split {
    in_condition: Vec<bool>,
    in_body: Vec<bool>,
    /// Whether iterations must not overlap.
    is_serial: bool,
}

impl<'a> Raiser<'a> {
    pub fn new(graph: &'a Contents, frames: LoopFrames, has_conds: bool) -> Raiser<'a> {
        let mut takers: HashMap<Value, Vec<(usize, usize)>> = HashMap::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            for (i, &value) in node.inputs().iter().enumerate() {
                if matches!(graph.nodes[value.0].body, NodeBody::Cyclic { .. } | NodeBody::Switch { .. }) {
                    takers.entry(value).or_default().push((index, i));
                }
            }
        }
        let names = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        Raiser { graph, frames, names, loops: Vec::new(), exits: HashMap::new(), takers, has_conds }
    }

    /// The graph without frames.
    pub fn raise(mut self) -> Result<Contents> {
        let mut order: Vec<usize> = (1..self.frames.all.len()).collect();
        sort_by_key(&mut order, |&frame| std::cmp::Reverse(self.frames.all[frame].depth));
        for frame in order {
            self.raise_frame(frame)?;
        }
        let members = &self.frames.all[ROOT].members;
        let trace = |value: Value| ValueOrigin::Node(self.exits.get(&value.0).copied().unwrap_or(value));
        let node = |index: usize| self.node(index);
        let mut whole = Assembly::new(self.graph.name.clone(), &[], members, &node, &trace);
        whole.tie(members, self.graph, &|before| Some(self.exits.get(&before).map_or(before, |exit| exit.0)))?;
        for (name, value) in &self.graph.outputs {
            whole.output(name, *value)?;
        }
        self.with_conds(Contents { homes: self.graph.homes.clone(), ..whole.finish() })
    }

    fn with_conds(&self, graph: Contents) -> Result<Contents> {
        if self.has_conds { conds::raise(graph, 0, None) } else { Ok(graph) }
    }

    fn node(&self, index: usize) -> &Node {
        let behind = index.checked_sub(self.graph.nodes.len());
        behind.map_or_else(|| &self.graph.nodes[index], |number| &self.loops[number])
    }

    fn name(&self, index: usize) -> &str {
        self.node(index).name.as_str()
    }

    fn takers(&self, value: Value) -> &[(usize, usize)] {
        self.takers.get(&value).map_or(&[], Vec::as_slice)
    }

    fn raise_frame(&mut self, frame: usize) -> Result<()> {
        let looped = self.look_through(frame)?;
        self.check_takers(&looped)?;
        let split = self.split(&looped)?;
        let (condition, body) = (self.condition(&looped, &split)?, self.body(&looped, &split)?);

        let name = self.name_of(frame);
        let mut after = After::new();
        self.frames.all[frame].enters.iter().for_each(|&enter| after.extend_from_slice(&self.node(enter).after));
        let inputs = looped.enters.iter().map(|&enter| self.node(enter).inputs()[0]).collect();
        let body = NodeBody::While {
            condition: Arc::new(condition),
            body: Arc::new(body),
            inputs,
            num_variables: looped.variables.len(),
            parallel_iterations: if split.is_serial { 1 } else { looped.parallel_iterations },
            copies: Vec::new(),
        };
        let index = self.graph.nodes.len() + self.loops.len();
        self.loops.push(Node { name, body, after });
        let parent = self.frames.all[frame].parent;
        self.frames.all[parent].members.push(index);
        for &exit in &looped.exits {
            let (switch, _) = self.node(exit).inputs()[0];
            if let ValueOrigin::Port(variable) = self.trace(&looped, looped.switches[&switch]) {
                self.exits.insert(exit, (index, variable));
            }
        }
        Ok(())
    }

    /// The frame's, unless a node of the user's has it.
    fn name_of(&self, frame: usize) -> Name {
        let mut name = self.frames.all[frame].name.clone();
        while self.names.contains(name.as_str()) {
            name.push_str(" loop");
        }
        name.into()
    }

    fn refusal(&self, frame: usize, text: String) -> Error {
        Error::invalid(format!("frame '{}': {text}", self.frames.all[frame].name))
    }

    /// Finds the parts of the loop.
    fn look_through(&self, frame: usize) -> Result<RaisedLoop> {
        let LoopFrames { all, .. } = &self.frames;
        let (members, enters) = (&all[frame].members, &all[frame].enters);
        let mut looped = RaisedLoop {
            frame,
            loop_cond: self.loop_cond(frame)?,
            variables: Vec::new(),
            enters: Vec::new(),
            ports: HashMap::new(),
            switches: HashMap::new(),
            exits: Vec::new(),
            work: Vec::new(),
            parallel_iterations: self.parallel_iterations(frame)?,
        };
        for &member in members {
            let node = self.node(member);
            match (op(node), &node.body) {
                (Some(LoopOp::Merge), _) => self.add_variable(&mut looped, member)?,
                (Some(LoopOp::Exit), _) => looped.exits.push(member),
                (None, NodeBody::Switch { inputs: [value, (predicate, _)] }) if *predicate == looped.loop_cond => {
                    looped.switches.insert(member, *value);
                }
                (None, _) => looped.work.push(member),
                _ => {}
            }
        }
        if looped.variables.is_empty() {
            return Err(self.refusal(frame, "it has no loop merge, so nothing in it goes round".to_owned()));
        }
        for &enter in enters {
            if matches!(op(self.node(enter)), Some(LoopOp::Enter { is_constant: false, .. }))
                && !self.takers((enter, 0)).is_empty()
            {
                continue;
            }
            looped.ports.insert(enter, looped.enters.len());
            looped.enters.push(enter);
        }
        Ok(looped)
    }

    fn loop_cond(&self, frame: usize) -> Result<usize> {
        let members = self.frames.all[frame].members.iter().copied();
        let mut found = members.filter(|&member| matches!(op(self.node(member)), Some(LoopOp::LoopCond)));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (Some(one), Some(two)) => Err(self.refusal(
                frame,
                format!(
                    "nodes '{}' and '{}' are both its loop cond: two loops beside one another need frames of \
                     different names",
                    self.name(one),
                    self.name(two)
                ),
            )),
            _ => {
                let enter = self.name(self.frames.all[frame].enters[0]);
                let text = format!(
                    "it has no loop cond, and node '{enter}' leads into it: all enters of a loop have one frame_name, \
                     and take their values in one frame"
                );
                Err(self.refusal(frame, text))
            }
        }
    }

    fn parallel_iterations(&self, frame: usize) -> Result<u32> {
        let mut first: Option<(usize, u32)> = None;
        for &enter in &self.frames.all[frame].enters {
            let Some(LoopOp::Enter { parallel_iterations: asked, .. }) = op(self.node(enter)) else { continue };
            match first {
                Some((other, before)) if before != *asked => {
                    return Err(self.refusal(
                        frame,
                        format!(
                            "node '{}' asks for parallel_iterations {before}, node '{}' for {asked}",
                            self.name(other),
                            self.name(enter)
                        ),
                    ));
                }
                Some(_) => {}
                None => first = Some((enter, *asked)),
            }
        }
        Ok(first.map_or(1, |first| first.1))
    }

    fn add_variable(&self, looped: &mut RaisedLoop, merge: usize) -> Result<()> {
        let (node, name) = (self.node(merge), self.name(merge));
        let (first, _) = node.inputs()[0];
        match op(self.node(first)) {
            Some(LoopOp::Enter { is_constant: false, .. }) => {}
            Some(LoopOp::Enter { .. }) => {
                let text = format!(
                    "node '{name}' takes its first value from node '{}', which is a constant enter",
                    self.name(first)
                );
                return Err(self.refusal(looped.frame, text));
            }
            _ => {
                let (first, kind) = (self.name(first), with_article(self.node(first).kind()));
                let text =
                    format!("node '{name}' takes its first value from node '{first}', {kind}, expected an enter");
                return Err(self.refusal(looped.frame, text));
            }
        }
        let Some(&(next, _)) = node.inputs().get(1) else {
            let text = format!("node '{name}' has no back edge (weir_graph_set_back_edge)");
            return Err(self.refusal(looped.frame, text));
        };
        looped.ports.insert(merge, looped.variables.len());
        looped.variables.push((merge, next));
        looped.enters.push(first);
        Ok(())
    }

    /// Refuses what takes a value of the loop that is not for it.
    fn check_takers(&self, looped: &RaisedLoop) -> Result<()> {
        let frame = looped.frame;
        let refused = |taker: usize, what: &str, of: usize, expected: &str| {
            let text = format!("node '{}' takes {what} '{}': only {expected}", self.name(taker), self.name(of));
            Err(self.refusal(frame, text))
        };
        for &(taker, input) in self.takers((looped.loop_cond, 0)) {
            if input != 1 || !looped.switches.contains_key(&taker) {
                return refused(taker, "the value of loop cond", looped.loop_cond, "a switch does, as its predicate");
            }
        }
        for &enter in &self.frames.all[frame].enters {
            let is_variable = matches!(op(self.node(enter)), Some(LoopOp::Enter { is_constant: false, .. }));
            for &(taker, _) in self.takers((enter, 0)).iter().filter(|_| is_variable) {
                if !matches!(op(self.node(taker)), Some(LoopOp::Merge)) {
                    let expected = "a loop merge does, or it must be a constant enter";
                    return refused(taker, "the value of enter", enter, expected);
                }
            }
        }
        for &switch in looped.switches.keys() {
            for &(taker, _) in self.takers((switch, 0)) {
                if !matches!(op(self.node(taker)), Some(LoopOp::Exit)) {
                    return refused(taker, "the false side of the loop's switch", switch, "an exit does");
                }
            }
        }
        for &member in &self.frames.all[frame].members {
            if !matches!(op(self.node(member)), Some(LoopOp::NextIteration)) {
                continue;
            }
            let takers = self.takers((member, 0));
            if takers.is_empty() {
                let text = format!("node '{}' is a next iteration that no loop merge takes", self.name(member));
                return Err(self.refusal(frame, text));
            }
            if let Some(&(taker, _)) = takers.iter().find(|&&(taker, i)| i != 1 || !looped.ports.contains_key(&taker)) {
                return refused(taker, "next iteration", member, "a loop merge does, as its back edge");
            }
        }
        looped.exits.iter().try_for_each(|&exit| self.check_exit(looped, exit))
    }

    fn check_exit(&self, looped: &RaisedLoop, exit: usize) -> Result<()> {
        let (from, output) = self.node(exit).inputs()[0];
        let what = match looped.switches.get(&from) {
            Some(_) if output == 1 => "the true side of switch",
            Some(value) if looped.ports.get(&value.0).is_some_and(|&port| port < looped.variables.len()) => {
                return Ok(());
            }
            Some(_) => "the false side of a switch that passes on no variable,",
            None => "node",
        };
        let text = format!(
            "node '{}' takes {what} '{}', expected the false side of a switch of a loop merge by loop cond '{}'",
            self.name(exit),
            self.name(from),
            self.name(looped.loop_cond)
        );
        Err(self.refusal(looped.frame, text))
    }

    /// Where a value in the frame comes from: switches of the loop pass it on.
    fn trace(&self, looped: &RaisedLoop, mut value: Value) -> ValueOrigin {
        while let Some(&passed) = looped.switches.get(&value.0) {
            value = passed;
        }
        match looped.ports.get(&value.0) {
            Some(&port) => ValueOrigin::Port(port),
            None if is_constant(self.node(value.0)) => ValueOrigin::Constant(value.0),
            None => ValueOrigin::Node(self.exits.get(&value.0).copied().unwrap_or(value)),
        }
    }

    /// The predecessor without data of a node in the frame. None: it is there when an iteration begins.
    fn waits(&self, looped: &RaisedLoop, waiting: usize, before: usize) -> Result<Option<usize>> {
        if let Some(&(index, _)) = self.exits.get(&before) {
            return Ok(Some(index));
        }
        let node = self.node(before);
        match op(node) {
            Some(LoopOp::Merge | LoopOp::Enter { .. }) => Ok(None),
            None if is_constant(node) => Ok(None),
            None if !looped.switches.contains_key(&before) => Ok(Some(before)),
            _ => Err(self.refusal(
                looped.frame,
                format!(
                    "node '{}' waits for node '{}', {}, without data, which does not say in which iterations: let it \
                         wait for a node that takes its value",
                    self.name(waiting),
                    node.name,
                    with_article(node.kind())
                ),
            )),
        }
    }

    fn all_waits(&self, looped: &RaisedLoop, waiting: usize) -> Result<Vec<usize>> {
        let after = self.node(waiting).after.iter();
        let found = after.map(|&before| self.waits(looped, waiting, before));
        Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Finds out what belongs to the condition, and what to the body.
    fn split(&self, looped: &RaisedLoop) -> Result<Split> {
        let n = looped.work.len();
        let places: HashMap<usize, usize> = looped.work.iter().enumerate().map(|(i, &node)| (node, i)).collect();
        let data = |value: Value| match self.trace(looped, value) {
            ValueOrigin::Node((node, _)) => places.get(&node).copied(),
            _ => None,
        };
        let is_behind = |value: &Value| looped.switches.contains_key(&value.0);
        let mut edges = Vec::with_capacity(n);
        let (mut is_body, mut to_do) = (vec![false; n], Vec::new());
        for (i, &index) in looped.work.iter().enumerate() {
            let node = self.node(index);
            let with: Vec<usize> = node.inputs().iter().filter_map(|&value| data(value)).collect();
            let without: Vec<usize> =
                self.all_waits(looped, index)?.iter().filter_map(|before| places.get(before).copied()).collect();
            if node.inputs().iter().any(is_behind) {
                is_body[i] = true;
                to_do.push(i);
            }
            edges.push((with, without));
        }
        self.check_waits(looped)?;
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (i, (with, without)) in edges.iter().enumerate() {
            with.iter().chain(without).for_each(|&before| behind[before].push(i));
        }
        while let Some(i) = to_do.pop() {
            for &next in &behind[i] {
                if !std::mem::replace(&mut is_body[next], true) {
                    to_do.push(next);
                }
            }
        }

        // Values of the condition's that the body takes; and what the body waits for without data.
        let (mut again, mut waited, mut is_serial) = (vec![false; n], Vec::new(), false);
        let mut firm = self.of_condition(looped, &places, &is_body)?;
        for &(_, next) in &looped.variables {
            let value = self.node(next).inputs()[0];
            let waits = self.all_waits(looped, next)?;
            is_serial |= !waits.is_empty();
            let held = is_behind(&value) || waits.iter().any(|before| places.get(before).is_some_and(|&i| is_body[i]));
            let place = data(value);
            let is_given = match self.trace(looped, value) {
                ValueOrigin::Port(port) => port >= looped.variables.len(),
                ValueOrigin::Constant(_) => true,
                ValueOrigin::Node(_) => place.is_some_and(|i| is_body[i]),
            };
            if !held && !is_given {
                return Err(self.refusal(
                    looped.frame,
                    format!(
                        "node '{}' takes node '{}', which no switch of loop cond '{}' holds back, so that the loop \
                         would never end",
                        self.name(next),
                        self.name(value.0),
                        self.name(looped.loop_cond)
                    ),
                ));
            }
            to_do.extend(place.filter(|&i| !is_body[i]));
            waited.extend(waits.iter().filter_map(|before| places.get(before).copied()).filter(|&i| !is_body[i]));
        }
        for i in (0..n).filter(|&i| is_body[i]) {
            to_do.extend(edges[i].0.iter().copied().filter(|&before| !is_body[before]));
            waited.extend(edges[i].1.iter().copied().filter(|&before| !is_body[before]));
        }
        while let Some(i) = to_do.pop() {
            if !std::mem::replace(&mut again[i], true) {
                to_do.extend_from_slice(&edges[i].0);
                waited.extend_from_slice(&edges[i].1);
            }
        }
        // The body waits for its own copy if it has one.
        firm.extend(waited.into_iter().filter(|&i| !again[i]));
        // The condition keeps the nodes that decide, those that are waited for without data, and those with effects.
        let mut in_condition = vec![false; n];
        firm.extend((0..n).filter(|&i| !is_body[i] && has_effects(self.node(looped.work[i]))));
        while let Some(i) = firm.pop() {
            if !std::mem::replace(&mut in_condition[i], true) {
                firm.extend_from_slice(&edges[i].0);
                firm.extend_from_slice(&edges[i].1);
            }
        }
        for i in (0..n).filter(|&i| in_condition[i] && again[i]) {
            if !is_pure(self.node(looped.work[i])) {
                return Err(self.refusal(
                    looped.frame,
                    format!(
                        "node '{}' is needed both before and behind loop cond '{}' and would be computed twice, \
                         for which it must be pure",
                        self.name(looped.work[i]),
                        self.name(looped.loop_cond)
                    ),
                ));
            }
        }
        let in_body = (0..n).map(|i| is_body[i] || again[i]).collect();
        Ok(Split { in_condition, in_body, is_serial })
    }

    /// Parts of the loop that become no nodes and can wait for nothing.
    fn check_waits(&self, looped: &RaisedLoop) -> Result<()> {
        let merges = looped.variables.iter().map(|variable| variable.0);
        for part in merges.chain(looped.switches.keys().copied()).chain(looped.exits.iter().copied()) {
            if let Some(&before) = self.all_waits(looped, part)?.first() {
                let kind = with_article(self.node(part).kind());
                let text = format!(
                    "node '{}', {kind}, waits for node '{}' without data: let the nodes that take its value do so",
                    self.name(part),
                    self.name(before)
                );
                return Err(self.refusal(looped.frame, text));
            }
        }
        Ok(())
    }

    /// The predecessors of the loop cond.
    fn of_condition(
        &self,
        looped: &RaisedLoop,
        places: &HashMap<usize, usize>,
        is_body: &[bool],
    ) -> Result<Vec<usize>> {
        let value = self.node(looped.loop_cond).inputs()[0];
        let mut before = self.all_waits(looped, looped.loop_cond)?;
        if let ValueOrigin::Node((node, _)) = self.trace(looped, value) {
            before.push(node);
        }
        let found: Vec<usize> = before.iter().filter_map(|node| places.get(node).copied()).collect();
        let decided = found.iter().find(|&&i| is_body[i]).map(|&i| looped.work[i]);
        let decided = decided.or_else(|| looped.switches.contains_key(&value.0).then_some(value.0));
        match decided {
            None => Ok(found),
            Some(node) => {
                let (cond, node) = (self.name(looped.loop_cond), self.name(node));
                let text =
                    format!("loop cond '{cond}' depends on node '{node}', which is behind a switch that it decides");
                Err(self.refusal(looped.frame, text))
            }
        }
    }

    fn part(&self, looped: &RaisedLoop, what: &str, is_in: &[bool], outputs: &[(&str, Value)]) -> Result<Contents> {
        let chosen = looped.work.iter().zip(is_in).filter(|(_, is_in)| **is_in);
        let members: Vec<usize> = chosen.map(|(&node, _)| node).collect();
        let merges = looped.variables.iter().map(|variable| self.node(variable.0).name.clone());
        let invariants = looped.enters[looped.variables.len()..].iter().map(|&enter| self.node(enter).name.clone());
        let ports: Vec<Name> = merges.chain(invariants).collect();
        let (node, trace) = (|index: usize| self.node(index), |value: Value| self.trace(looped, value));
        let name = format!("{}/{what}", self.frames.all[looped.frame].name);
        let mut part = Assembly::new(name, &ports, &members, &node, &trace);
        part.tie(&members, self.graph, &|before| self.waits(looped, before, before).ok().flatten())?;
        for (name, value) in outputs {
            part.output(name, *value)?;
        }
        self.with_conds(part.finish())
    }

    fn condition(&self, looped: &RaisedLoop, split: &Split) -> Result<Contents> {
        let value = self.node(looped.loop_cond).inputs()[0];
        self.part(looped, "condition", &split.in_condition, &[(self.name(looped.loop_cond), value)])
    }

    fn body(&self, looped: &RaisedLoop, split: &Split) -> Result<Contents> {
        let outputs: Vec<(&str, Value)> =
            looped.variables.iter().map(|&(merge, next)| (self.name(merge), self.node(next).inputs()[0])).collect();
        self.part(looped, "body", &split.in_body, &outputs)
    }
}

/// Whether it may be computed twice.
fn is_pure(node: &Node) -> bool {
    match &node.body {
        NodeBody::Kernel { kernel, .. } => {
            let kernel = kernel.kernel();
            kernel.is_pure() && kernel.effects().is_empty() && !kernel.is_relied_on()
        }
        NodeBody::Task { .. } => false,
        _ => node.inner().all(|inner| inner.nodes.iter().all(is_pure)),
    }
}
