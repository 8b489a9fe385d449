//! Executable graphs: a graph as it was when it was instantiated, and its launches.
//!
//! A launch waits for the stream's tail and for the launch before. Conditional nodes decide as they run: the task makes
//! those of the chosen body then, behind itself, and the task that all that follows waits for waits for them, too. A
//! loop's body ends in a task that decides again.

use crate::abi::{Handle, Kind};
use crate::api::object::Object;
use crate::graph::{Choice, Condition, Graph, Work};
use crate::operation::Operation;
use crate::schedule::{Origin, Point, Task};
use crate::status::{Code, Result};
use crate::world::{Record, World};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Each one behind those that it waits for.
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub node: Handle,
    pub act: Act,
    pub after: Vec<usize>,
    pub is_enabled: bool,
}

#[derive(Clone, Debug)]
pub enum Act {
    Operation(Operation),
    Child(Arc<Body>),
    Record(Handle),
    Wait(Handle),
    Conditional { handle: u64, kind: Choice, bodies: Vec<Arc<Body>> },
}

#[derive(Debug)]
pub struct Exec {
    pub body: Arc<Body>,
    /// Conditional handles with the value at each launch.
    pub handles: BTreeMap<u64, Option<u32>>,
    pub tail: Option<Point>,
    pub objects: Vec<Arc<Object>>,
}

impl Act {
    pub fn kind(&self) -> i32 {
        match self {
            Act::Operation(operation) => Work::Operation(operation.clone()).kind(),
            Act::Child(_) => 4,
            Act::Wait(_) => 6,
            Act::Record(_) => 7,
            Act::Conditional { .. } => 13,
        }
    }
}

impl Body {
    /// The step of a node, also in children and bodies of conditional nodes.
    pub fn find(&mut self, node: Handle) -> Option<&mut Step> {
        if let Some(index) = self.steps.iter().position(|step| step.node == node) {
            return Some(&mut self.steps[index]);
        }
        self.steps.iter_mut().find_map(|step| match &mut step.act {
            Act::Child(body) => Arc::make_mut(body).find(node),
            Act::Conditional { bodies, .. } => bodies.iter_mut().find_map(|body| Arc::make_mut(body).find(node)),
            _ => None,
        })
    }
}

impl World {
    pub fn body(&self, graph: &Graph) -> Result<Body> {
        let mut index = BTreeMap::new();
        let mut steps: Vec<Step> = Vec::new();
        // Edges can have been added that go back in the order of making.
        while steps.len() < graph.nodes.len() {
            let before = steps.len();
            for node in &graph.nodes {
                if index.contains_key(&node.handle) || !node.after.iter().all(|after| index.contains_key(after)) {
                    continue;
                }
                let inner = |graph: &Handle| {
                    let graph = self.graphs.get(graph).ok_or(Code::INVALID_HANDLE)?;
                    self.body(graph).map(Arc::new)
                };
                let act = match &node.work {
                    Work::Operation(operation) => Act::Operation(operation.clone()),
                    Work::Child(child) => Act::Child(inner(child)?),
                    Work::Launched(body) => Act::Child(Arc::clone(body)),
                    Work::Record(event) => Act::Record(*event),
                    Work::Wait(event) => Act::Wait(*event),
                    Work::Conditional(conditional) => Act::Conditional {
                        handle: conditional.handle,
                        kind: conditional.kind,
                        bodies: conditional.bodies.iter().map(inner).collect::<Result<_>>()?,
                    },
                };
                let after = node.after.iter().map(|after| index[after]).collect();
                index.insert(node.handle, steps.len());
                steps.push(Step { node: node.handle, act, after, is_enabled: true });
            }
            if steps.len() == before {
                // A ring.
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(Body { steps })
    }

    /// What a graph and those inside of it keep.
    fn objects_of(&self, graph: Handle) -> Vec<Arc<Object>> {
        let inside = self.graphs.iter().filter(|(at, _)| self.is_inside(**at, graph));
        inside.flat_map(|(_, found)| found.objects.iter().cloned()).collect()
    }

    pub fn instantiate(&mut self, graph: Handle) -> Result<Handle> {
        let found = self.graphs.get(&graph).ok_or(Code::INVALID_HANDLE)?;
        if found.parent.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        let body = Arc::new(self.body(found)?);
        if !found.handles.keys().all(|handle| self.is_decided(graph, *handle)) {
            // A handle without a node.
            return Err(Code::INVALID_VALUE);
        }
        let handles = found.handles.iter().map(|(handle, setting)| (*handle, setting.value)).collect();
        let objects = self.objects_of(graph);
        let exec = self.name(Kind::Exec);
        self.execs.insert(exec, Exec { body, handles, tail: None, objects });
        Ok(exec)
    }

    /// Puts a launch into a stream that is no part of a capture.
    pub fn launch(&mut self, exec: Handle, stream: Handle) -> Result {
        let mut before = self.tails_before(stream);
        let found = self.execs.get(&exec).ok_or(Code::INVALID_HANDLE)?;
        before.extend(found.tail.iter().cloned());
        let (body, handles) = (Arc::clone(&found.body), found.handles.clone());
        let context = self.streams.get(&stream).map_or(Handle::NULL, |stream| stream.context);
        let origin = Origin { stream, context, exec: Some(exec) };
        let begin = Operation::Begin(Arc::new(handles));
        let begin = self.add_task(format!("begin of {exec:?}"), origin.clone(), begin, &before);
        let tails = self.expand(&body, &[begin], &origin);
        let end = self.add_task(format!("end of {exec:?}"), origin, Operation::Nothing, &tails);
        self.set_tail(stream, &end);
        if let Some(exec) = self.execs.get_mut(&exec) {
            exec.tail = Some(end);
        }
        Ok(())
    }

    /// Makes the tasks of a body; gives those that nothing in it waits for.
    fn expand(&mut self, body: &Body, after: &[Point], origin: &Origin) -> Vec<Point> {
        let mut ends: Vec<Vec<Point>> = Vec::with_capacity(body.steps.len());
        let mut is_last = vec![true; body.steps.len()];
        for step in &body.steps {
            let mut before: Vec<Point> = step.after.iter().flat_map(|index| ends[*index].iter().cloned()).collect();
            step.after.iter().for_each(|index| is_last[*index] = false);
            if step.after.is_empty() {
                before = after.to_vec();
            }
            let add = |world: &mut World, operation: Operation, before: &[Point]| {
                let name = format!("{} of {:?}", Work::Operation(operation.clone()).name(), step.node);
                world.add_task(name, origin.clone(), operation, before)
            };
            let end = match &step.act {
                _ if !step.is_enabled => before,
                Act::Operation(operation) => vec![add(self, operation.clone(), &before)],
                Act::Child(body) => self.expand(body, &before, origin),
                Act::Record(event) => {
                    let time = Arc::new(OnceLock::new());
                    let point = add(self, Operation::Record(Arc::clone(&time)), &before);
                    if let Some(event) = self.events.get_mut(event) {
                        event.record = Some(Record { point: Arc::clone(&point), time });
                        event.captured = None;
                    }
                    vec![point]
                }
                Act::Wait(event) => {
                    let record = self.events.get(event).and_then(|event| event.record.clone());
                    before.extend(record.map(|record| record.point));
                    vec![add(self, Operation::Nothing, &before)]
                }
                Act::Conditional { handle, kind, bodies } => {
                    let condition =
                        Condition { handle: *handle, kind: *kind, bodies: bodies.clone(), join: OnceLock::new() };
                    let condition = Arc::new(condition);
                    let head = add(self, Operation::Condition(Arc::clone(&condition)), &before);
                    let join = add(self, Operation::Nothing, &[head]);
                    let _ = condition.join.set(join.id);
                    vec![join]
                }
            };
            ends.push(end);
        }
        let last = ends.into_iter().zip(is_last).filter(|(_, is_last)| *is_last);
        let tails: Vec<Point> = last.flat_map(|(end, _)| end).collect();
        if tails.is_empty() { after.to_vec() } else { tails }
    }

    /// A conditional node runs.
    pub fn condition(&mut self, task: &Task, condition: &Arc<Condition>) {
        let Some(exec) = task.origin.exec else { return };
        let value = self.values.get(&(exec, condition.handle)).copied().flatten();
        let Some(value) = value else {
            self.fault(
                task,
                Code::LAUNCH_FAILED,
                &format!("nothing has set its handle {:#x} in this launch", condition.handle),
            );
            return;
        };
        let body = match condition.kind {
            Choice::If if value != 0 => condition.bodies.first(),
            Choice::If => condition.bodies.get(1),
            Choice::While => condition.bodies.first().filter(|_| value != 0),
            Choice::Switch => condition.bodies.get(value as usize),
        };
        let (Some(body), Some(join)) = (body, condition.join.get()) else { return };
        let here = [Arc::clone(&task.mark)];
        let mut tails = self.expand(body, &here, &task.origin);
        if condition.kind == Choice::While {
            let again = Operation::Condition(Arc::clone(condition));
            tails = vec![self.add_task("while, again".to_owned(), task.origin.clone(), again, &tails)];
        }
        self.wait_for(*join, &tails);
    }
}
