//! Which branches and loops an engine does as a whole: those with nothing inside but kernels that are plain launches on
//! one engine that works on its own, and branches and loops of the same kind. Such a node becomes one of a kernel of
//! that engine's, and from there on is placed like any other. Constants of the host's that are inside become inputs of
//! it, so that they are copied once.
#![forbid(unsafe_code)]

use super::lower::{self, Surroundings};
use super::placer::{Decided, Placer, TakenNode};
use super::units::MOST;
use crate::base::{Desc, Error, Ref, Result};
use crate::engine::{BoundKernel, KernelOptions, Tensor};
use crate::graph::build::contents::{After, Contents, Node, NodeBody};
use crate::graph::build::verify::Verified;
use crate::graph::carry::device::kernels::ISSUE_NS;
use crate::kernel::{Kernel, KernelContext, Outputs};
use std::collections::HashMap;
use std::sync::Arc;

/// Stands for it among the engine's kernels. It is never called: what it does is issued (`control`).
struct Whole {
    is_loop: bool,
    num_inputs: usize,
    outputs: Vec<Desc>,
    cost_ns: u64,
}

impl Kernel for Whole {
    fn name(&self) -> &str {
        if self.is_loop { "while" } else { "case" }
    }

    fn num_inputs(&self) -> usize {
        self.num_inputs
    }

    fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(self.outputs.clone())
    }

    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.cost_ns
    }

    fn is_issued(&self) -> bool {
        true
    }

    fn is_on_host(&self) -> bool {
        false
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Err(Error::internal("a device's branch or loop was called"))
    }
}

impl Placer {
    /// Has engines do branches and loops as a whole, where that can be. `prefix` names the graphs around this one.
    pub(in crate::graph) fn take(&mut self, contents: &mut Contents, verified: &Verified, prefix: &str) -> Result<()> {
        for index in 0..contents.nodes.len() {
            let node = &contents.nodes[index];
            if !node.inner().any(|inner| self.has_work(inner)) {
                continue;
            }
            let name = format!("{prefix}{}", node.name);
            let engine = match verified.presences.may_be_skipped(index) {
                true => Err("it may be skipped".to_owned()),
                false => self.qualify(contents, verified, index),
            };
            match engine {
                Ok(engine) => self.take_one(contents, verified, index, engine, name)?,
                Err(why) => {
                    let prefix = format!("{name}/");
                    self.placement.decided.push(Decided { node: name, engine: None, why: Some(why) });
                    let inner = &verified.inner[&index];
                    for (graph, verified) in contents.nodes[index].inner_mut().into_iter().zip(inner) {
                        let mut changed = Contents::clone(graph);
                        self.take(&mut changed, verified, &prefix)?;
                        *graph = Arc::new(changed);
                    }
                }
            }
        }
        Ok(())
    }

    /// The engine that does all of a node; else why there is none.
    fn qualify(&self, contents: &Contents, verified: &Verified, index: usize) -> std::result::Result<usize, String> {
        let node = &contents.nodes[index];
        let is_open = |desc: &Desc| !desc.is_concrete();
        let is_any_open = node.inputs().iter().any(|&value| is_open(verified.desc(value)))
            || verified.descs[index].iter().any(is_open);
        if is_any_open {
            return Err("it has values whose shape only a run knows".to_owned());
        }
        let mut engine = None;
        for (graph, verified) in node.inner().zip(&verified.inner[&index]) {
            self.look_inside(graph, verified, &mut engine)?;
        }
        engine.ok_or_else(|| "no node in it is an engine's".to_owned())
    }

    fn look_inside(
        &self,
        contents: &Contents,
        verified: &Verified,
        engine: &mut Option<usize>,
    ) -> std::result::Result<(), String> {
        for (index, node) in contents.nodes.iter().enumerate() {
            let name = &node.name;
            if verified.descs[index].iter().any(|desc| !desc.is_concrete()) {
                return Err(format!("node '{name}' has values whose shape only a run knows"));
            }
            let here = match &node.body {
                NodeBody::Input(_) => continue,
                NodeBody::Constant(tensor) if tensor.engine().accelerator().is_none() => continue,
                NodeBody::Constant(tensor) => self.number_of(tensor.engine()),
                NodeBody::Kernel { kernel, .. } => {
                    let own = kernel.kernel();
                    let here = self.number_of(kernel.engine());
                    if here.is_some() && (own.is_issued() || !own.effects().is_empty() || kernel.on_device().is_none())
                    {
                        return Err(format!("node '{name}' is more than a launch on its engine"));
                    }
                    here
                }
                NodeBody::Case { .. } | NodeBody::While { .. } => {
                    for (graph, verified) in node.inner().zip(&verified.inner[&index]) {
                        self.look_inside(graph, verified, engine)?;
                    }
                    continue;
                }
                NodeBody::Switch { .. } | NodeBody::Merge { .. } => return Err("it has switches inside".to_owned()),
                NodeBody::Task { .. } | NodeBody::Cyclic { .. } => None,
            };
            let Some(here) = here else { return Err(format!("node '{name}' is the host's")) };
            if *engine.get_or_insert(here) != here {
                return Err(format!("node '{name}' is on {}, and others are not", self.devices[here].label()));
            }
        }
        Ok(())
    }

    /// Why a device of an engine's does not decide itself; None if it does.
    fn why_not_device(&self, engine: usize) -> Option<String> {
        let Some(accelerator) = self.devices[engine].accelerator() else { return Some(String::new()) };
        match accelerator.control_flow() {
            _ if !self.wants_device_control => Some("the compile options say so".to_owned()),
            _ if !self.wants_segments => Some("the compile options want nothing recorded".to_owned()),
            _ if !accelerator.can_record() => Some("the device records nothing".to_owned()),
            Err(error) => Some(error.message().to_owned()),
            Ok(()) => None,
        }
    }

    fn take_one(
        &mut self,
        contents: &mut Contents,
        verified: &Verified,
        index: usize,
        engine: usize,
        name: String,
    ) -> Result<()> {
        let node = &contents.nodes[index];
        let mut constants = Vec::new();
        node.inner().for_each(|inner| host_constants(inner, &mut constants));
        let first = node.inputs().len();
        let hoisted: HashMap<usize, usize> =
            constants.iter().enumerate().map(|(at, (_, tensor))| (lower::key(tensor), first + at)).collect();
        let alignment = self.devices[engine].device().alignment().max(64);
        let within = Surroundings { contents, verified };
        let lowered = lower::lower(&within, index, hoisted, alignment)?;
        let size = lowered.list.len();
        let mut why = self.why_not_device(engine);
        if why.is_none() && size > MOST {
            why = Some(format!("it has {size} steps, more than the {MOST} that are recorded as one"));
        }
        let by_device = why.is_none();
        let facts = &mut self.placement;
        facts.inner_nodes += lowered.kernels;
        if by_device {
            facts.device_loops += lowered.loops;
            facts.device_branches += lowered.branches;
        }
        let label = self.devices[engine].label();
        facts.decided.push(Decided { node: name, engine: Some(label), why });
        let is_loop = matches!(node.body, NodeBody::While { .. });
        let (num_inputs, outputs) = (first + constants.len(), verified.descs[index].to_vec());
        let num_outputs = outputs.len();
        let cost_ns = ISSUE_NS.saturating_mul(size as u64);
        let whole = Whole { is_loop, num_inputs, outputs, cost_ns };
        let mut inputs = node.inputs().to_vec();
        let attr = KernelOptions { name: node.name.to_string(), ..KernelOptions::default() };
        let kernel = BoundKernel::create(self.devices[engine].clone(), Arc::new(whole), &attr)?;
        for (name, tensor) in constants {
            inputs.push((contents.nodes.len(), 0));
            contents.nodes.push(Node { name: name.into(), body: NodeBody::Constant(tensor), after: After::new() });
        }
        contents.nodes[index].body = NodeBody::Kernel { kernel: kernel.clone(), inputs, num_outputs };
        self.taken.push(TakenNode { kernel, lowered: Arc::new(lowered), by_device });
        Ok(())
    }
}

/// The constants of the host's in a graph and those inside of it, each once.
fn host_constants(contents: &Contents, all: &mut Vec<(String, Ref<Tensor>)>) {
    for node in &contents.nodes {
        if let NodeBody::Constant(tensor) = &node.body
            && tensor.engine().accelerator().is_none()
            && !all.iter().any(|(_, known)| lower::key(known) == lower::key(tensor))
        {
            all.push((node.name.to_string(), tensor.clone()));
        }
        node.inner().for_each(|inner| host_constants(inner, all));
    }
}
