//! The oracle: one thread, one node after the other, no cleverness. It knows nothing of the library.

use super::ops;
use super::spec::{Data, Graph, Kind, Node, Spec, Type, Value};

/// How often a node was live and, for a leaf, the sum of what it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub calls: u64,
    pub sight: u64,
}

/// A merge with more than one live input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub id: usize,
    pub merge: String,
    /// Of each live input; None if it is a constant or an input of the graph.
    pub producers: Vec<Option<String>>,
}

/// How a run must end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// None: absent.
    pub outputs: Vec<Option<Data>>,
    /// By node id.
    pub tallies: Vec<Tally>,
    /// By node id: how often its turn came, live or dead.
    pub turns: Vec<u64>,
    /// If there are any at merges that must run, the run fails, and what the rest says is meaningless.
    pub conflicts: Vec<Conflict>,
}

/// Why a spec is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Useless {
    /// More calls of leaves than a test should make.
    TooLong,
    /// A loop's condition or next variable is dead: undefined.
    DeadLoop,
}

/// Calls of leaves in one run.
const MOST_CALLS: u64 = 5_000;

/// Interprets the spec with input set `set`.
pub fn interpret(spec: &Spec, set: usize) -> Result<Outcome, Useless> {
    let mut interpreter = Interpreter {
        tallies: vec![Tally::default(); spec.num_ids],
        turns: vec![0; spec.num_ids],
        calls: 0,
        conflicts: Vec::new(),
    };
    let inputs: Vec<Option<Data>> = spec.inputs[set].iter().cloned().map(Some).collect();
    let outputs = interpreter.graph(&spec.graph, &inputs)?;
    let Interpreter { tallies, turns, conflicts, .. } = interpreter;
    Ok(Outcome { outputs, tallies, turns, conflicts })
}

struct Interpreter {
    tallies: Vec<Tally>,
    turns: Vec<u64>,
    calls: u64,
    conflicts: Vec<Conflict>,
}

/// What became of a node.
struct Done {
    live: bool,
    outputs: Vec<Option<Data>>,
}

impl Interpreter {
    fn graph(&mut self, graph: &Graph, inputs: &[Option<Data>]) -> Result<Vec<Option<Data>>, Useless> {
        let mut done: Vec<Done> = Vec::new();
        for node in &graph.nodes {
            let next = self.node(graph, node, inputs, &done)?;
            assert_eq!(next.outputs.len(), node.outputs.len(), "{}", node.name());
            for (output, kind) in next.outputs.iter().zip(&node.outputs) {
                assert!(output.as_ref().is_none_or(|data| data.kind == *kind), "{}", node.name());
            }
            done.push(next);
        }
        Ok(graph.outputs.iter().map(|&value| look_up(value, inputs, &done)).collect())
    }

    fn node(&mut self, graph: &Graph, node: &Node, inputs: &[Option<Data>], done: &[Done]) -> Result<Done, Useless> {
        self.turns[node.id] += 1;
        let dead = || Done { live: false, outputs: vec![None; node.outputs.len()] };
        let found: Vec<Option<Data>> = node.inputs.iter().map(|&value| look_up(value, inputs, done)).collect();
        if matches!(node.kind, Kind::Merge) {
            let outputs = self.merge(graph, node, &found);
            let live = outputs[0].is_some();
            self.tallies[node.id].calls += u64::from(live);
            return Ok(Done { live, outputs });
        }
        if node.after.iter().any(|&before| !done[before].live) {
            return Ok(dead());
        }
        let Some(found) = found.into_iter().collect::<Option<Vec<Data>>>() else { return Ok(dead()) };
        self.tallies[node.id].calls += 1;
        Ok(Done { live: true, outputs: self.live(node, found)? })
    }

    /// A node that is no merge and whose inputs are all there.
    fn live(&mut self, node: &Node, mut found: Vec<Data>) -> Result<Vec<Option<Data>>, Useless> {
        Ok(match &node.kind {
            Kind::Constant(data) => data.iter().cloned().map(Some).collect(),
            Kind::Leaf { .. } | Kind::Task => {
                self.calls += 1;
                if self.calls > MOST_CALLS {
                    return Err(Useless::TooLong);
                }
                self.leaf(node, found)
            }
            Kind::Cond { then, otherwise } => {
                let rest = found.split_off(1).into_iter().map(Some).collect::<Vec<_>>();
                self.graph(if found[0].is_true() { then } else { otherwise }, &rest)?
            }
            Kind::Case { branches } => {
                let rest = found.split_off(1).into_iter().map(Some).collect::<Vec<_>>();
                let index = usize::try_from(found[0].items[0]).unwrap_or(usize::MAX);
                self.graph(&branches[index.min(branches.len() - 1)], &rest)?
            }
            Kind::While { condition, body, .. } => {
                let mut state: Vec<Option<Data>> = found.into_iter().map(Some).collect();
                loop {
                    let more = self.graph(condition, &state)?;
                    if !more[0].as_ref().ok_or(Useless::DeadLoop)?.is_true() {
                        break;
                    }
                    // A loop may have nothing inside that counts as a call.
                    self.calls += 1;
                    if self.calls > MOST_CALLS {
                        return Err(Useless::TooLong);
                    }
                    let next = self.graph(body, &state)?;
                    if next.iter().any(Option::is_none) {
                        return Err(Useless::DeadLoop);
                    }
                    state.splice(..next.len(), next);
                }
                state.truncate(node.outputs.len());
                state
            }
            Kind::Switch => {
                let (value, predicate) = (&found[0], &found[1]);
                let taken = usize::from(predicate.is_true());
                (0..2).map(|side| (side == taken).then(|| value.clone())).collect()
            }
            Kind::Merge => unreachable!("merges may have dead inputs"),
        })
    }

    fn leaf(&mut self, node: &Node, found: Vec<Data>) -> Vec<Option<Data>> {
        let Kind::Leaf { op, .. } = node.kind else { return vec![] };
        let inputs: Vec<Vec<i32>> = found.into_iter().map(Data::seen).collect();
        let tally = &mut self.tallies[node.id];
        tally.sight = tally.sight.wrapping_add(ops::sight(&inputs));
        let output = |(o, &kind): (usize, &Type)| {
            let len = ops::len(op, o, kind, &inputs);
            let items: Vec<i32> = (0..len).map(|i| ops::item(op, o, kind, i, &inputs)).collect();
            Some(Data::new(kind, &items))
        };
        node.outputs.iter().enumerate().map(output).collect()
    }

    fn merge(&mut self, graph: &Graph, node: &Node, found: &[Option<Data>]) -> Vec<Option<Data>> {
        let live: Vec<usize> = (0..found.len()).filter(|&i| found[i].is_some()).collect();
        if live.len() > 1 {
            let producer = |&i: &usize| match node.inputs[i] {
                Value::Node(n, _) if !matches!(graph.nodes[n].kind, Kind::Constant(_)) => Some(graph.nodes[n].name()),
                Value::Node(..) | Value::Input(_) => None,
            };
            let producers = live.iter().map(producer).collect();
            self.conflicts.push(Conflict { id: node.id, merge: node.name(), producers });
        }
        match live.first() {
            Some(&winner) => vec![found[winner].clone(), Some(Data::new(Type::Int, &[winner as i32]))],
            None => vec![None, None],
        }
    }
}

fn look_up(value: Value, inputs: &[Option<Data>], done: &[Done]) -> Option<Data> {
    match value {
        Value::Input(i) => inputs[i].clone(),
        Value::Node(n, o) => done[n].outputs[o].clone(),
    }
}
