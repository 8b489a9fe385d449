//! Offers regions to devices: nodes that a device may prefer to run as one. Each convex set of nodes of one engine
//! (`convex`) is offered to its device as a region. The device claims some of the nodes and compiles them to one
//! kernel, which replaces them in the graph: all later passes see a node with a launch, like any other. Nodes that the
//! device declines stay as they were.
//!
//! *Not part of a region* are nodes that may be skipped, that do more than compute their outputs, whose shapes only a
//! run knows, with an explicit forwarding setting, or whose kernel's recipe is gone. Nor is the comparison that a loop
//! ends with: the loop compares by itself.
//!
//! *Order.* A region begins when everything that its nodes wait for is there, and everything that waits for one of them
//! waits for all.
#![forbid(unsafe_code)]

use super::convex;
use super::placer::{Placer, Regions};
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::device::{self, DeviceKernel, RegionNode, RegionValue};
use crate::engine::{BoundKernel, Tensor};
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::kernel::{Kernel, KernelContext, Outputs};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Replaces a region's nodes. It is never called: the device's kernel is launched.
struct RegionKernel {
    num_inputs: usize,
    outputs: Vec<Desc>,
    cost_ns: u64,
    /// Keeps the kernels and constants that the device's kernel refers to.
    _kernels: Vec<Ref<BoundKernel>>,
    _constants: Vec<Ref<Tensor>>,
}

impl Kernel for RegionKernel {
    fn name(&self) -> &str {
        "region"
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

    fn is_on_host(&self) -> bool {
        false
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Err(Error::internal("a device's region was called"))
    }
}

/// A graph while its regions are offered.
struct Offering<'a> {
    contents: &'a Contents,
    verified: &'a Verified,
    /// The predecessors of each node.
    before: Vec<Vec<usize>>,
    /// Each node's position in a topological order.
    at: Vec<usize>,
    /// Values that are outputs of the graph.
    wanted: HashSet<Value>,
    /// The nodes that read each value.
    readers: HashMap<Value, Vec<usize>>,
    /// The regions that were taken, and for each node the first one of its region.
    taken: Vec<TakenRegion>,
    unit: Vec<usize>,
}

struct TakenRegion {
    nodes: Vec<usize>,
    kernel: Ref<BoundKernel>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

/// A set of nodes as a device is shown it.
#[derive(Default)]
struct Shown {
    name: String,
    /// In a topological order.
    nodes: Vec<usize>,
    values: Vec<RegionValue>,
    /// For each node: the numbers of the values that it reads and computes, and its other predecessors.
    reads: Vec<Vec<usize>>,
    computes: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    inputs: Vec<(Value, usize)>,
    outputs: Vec<(Value, usize)>,
    constants: Vec<Ref<Tensor>>,
    cost_ns: u64,
}

impl Placer {
    /// Whether any device takes regions.
    pub(super) fn offers(&self) -> bool {
        self.wants_regions
            && self.devices.iter().any(|engine| engine.accelerator().is_some_and(|device| device.takes_regions()))
    }

    /// Offers regions of a graph, and of its inner graphs, to the engines' devices. `program` is for texts. `apart` is
    /// a node that stays by itself.
    pub(super) fn offer(
        &mut self,
        contents: &mut Contents,
        verified: &Verified,
        program: &str,
        apart: Option<usize>,
    ) -> Result<()> {
        for index in 0..contents.nodes.len() {
            let Some(inner) = verified.inner.get(&index) else { continue };
            let is_loop = matches!(contents.nodes[index].body, NodeBody::While { .. });
            for (number, (graph, verified)) in contents.nodes[index].inner_mut().into_iter().zip(inner).enumerate() {
                if self.has_work(graph) {
                    let comparison = if is_loop && number == 0 { comparison_of(graph) } else { None };
                    let mut changed = Contents::clone(graph);
                    self.offer(&mut changed, verified, program, comparison)?;
                    *graph = Arc::new(changed);
                }
            }
        }
        let mut offering = Offering::of(contents, verified);
        for engine in 0..self.devices.len() {
            if self.devices[engine].accelerator().is_some_and(|device| device.takes_regions()) {
                self.offer_to(&mut offering, engine, program, apart)?;
            }
        }
        if let Some(changed) = offering.changed() {
            *contents = changed;
        }
        Ok(())
    }

    fn offer_to(
        &mut self,
        offering: &mut Offering<'_>,
        engine: usize,
        program: &str,
        apart: Option<usize>,
    ) -> Result<()> {
        let of = |node: usize| Some(node) != apart && self.is_offered(offering, engine, node);
        let candidates: Vec<bool> = (0..offering.unit.len()).map(of).collect();
        let label = self.devices[engine].label();
        for set in offering.sets(&candidates) {
            let shown = offering.show(&set)?;
            if shown.outputs.is_empty() {
                continue;
            }
            self.placement.regions_offered += 1;
            let refuse =
                |error: Error| error.within(&shown.name).at_engine(&label).within(format_args!("program '{program}'"));
            let groups = match shown.with(offering, |device, region| device.claim(region), &self.devices[engine]) {
                Ok(groups) => groups,
                Err(error) if error.code() == Code::Unimplemented => {
                    self.placement.declined(&error);
                    continue;
                }
                Err(error) => return Err(refuse(error)),
            };
            let mut numbers: Vec<u32> = groups.iter().copied().filter(|&group| group != 0).collect();
            numbers.sort_unstable();
            numbers.dedup();
            if numbers.is_empty() {
                let none = format!("{label} takes none of the nodes of {}", shown.name);
                self.placement.declined(&Error::new(Code::Unimplemented, none));
            }
            for number in numbers {
                if groups.iter().all(|&group| group == number) {
                    self.compile(offering, &shown, engine, program)?;
                    continue;
                }
                let mut is_claimed = vec![false; offering.unit.len()];
                let claimed = shown.nodes.iter().zip(&groups).filter(|(_, group)| **group == number);
                claimed.for_each(|(&node, _)| is_claimed[node] = true);
                for set in offering.sets(&is_claimed) {
                    let part = offering.show(&set)?;
                    if !part.outputs.is_empty() {
                        self.compile(offering, &part, engine, program)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a node may be part of an engine's region.
    fn is_offered(&self, offering: &Offering<'_>, engine: usize, node: usize) -> bool {
        let Offering { contents, verified, .. } = offering;
        let NodeBody::Kernel { kernel, inputs, num_outputs } = &contents.nodes[node].body else { return false };
        let own = kernel.kernel();
        let mut descs = inputs.iter().map(|&value| verified.desc(value)).chain(&verified.descs[node]);
        self.number_of(kernel.engine()) == Some(engine)
            && kernel.on_device().is_some()
            && kernel.recipe().is_some()
            && !own.is_issued()
            && !own.may_block()
            && own.effects().is_empty()
            && *num_outputs > 0
            && !verified.presences.may_be_skipped(node)
            && (0..*num_outputs).all(|output| !contents.forwarding.contains_key(&(node, output)))
            && descs.all(Desc::is_concrete)
    }

    /// Makes the device compile the nodes that it was shown.
    fn compile(&mut self, offering: &mut Offering<'_>, shown: &Shown, engine: usize, program: &str) -> Result<()> {
        let on = &self.devices[engine];
        let compiled = match shown.with(offering, |device, region| device.compile(region), on) {
            Ok(compiled) => compiled,
            Err(error) if error.code() == Code::Unimplemented => {
                self.placement.declined(&error);
                return Ok(());
            }
            Err(error) => {
                let error = error.within(&shown.name).at_engine(&on.label());
                return Err(error.within(format_args!("program '{program}'")));
            }
        };
        self.placement.regions += 1;
        self.placement.region_nodes += shown.nodes.len() as u32;
        self.placement.regions_why = self.placement.regions_why.max(Regions::Compiled);
        let kernel = offering.whole(shown, compiled, on);
        offering.take(shown, kernel);
        Ok(())
    }
}

/// The comparison that a loop's condition ends with, if the loop compares by itself.
fn comparison_of(condition: &Contents) -> Option<usize> {
    let &(_, (node, _)) = condition.outputs.first()?;
    match &condition.nodes[node].body {
        NodeBody::Kernel { kernel, .. } => kernel.kernel().comparison().map(|_| node),
        _ => None,
    }
}

impl<'a> Offering<'a> {
    fn of(contents: &'a Contents, verified: &'a Verified) -> Offering<'a> {
        let count = contents.nodes.len();
        let mut at = vec![0; count];
        verified.order.iter().enumerate().for_each(|(place, &node)| at[node as usize] = place);
        let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
        for (node, of) in contents.nodes.iter().enumerate() {
            of.inputs().iter().for_each(|&value| readers.entry(value).or_default().push(node));
        }
        Offering {
            contents,
            verified,
            before: contents.nodes.iter().map(|node| node.predecessors().collect()).collect(),
            at,
            wanted: contents.outputs.iter().map(|(_, value)| *value).collect(),
            readers,
            taken: Vec::new(),
            unit: (0..count).collect(),
        }
    }

    /// The predecessors of each node, where a region that was taken is one node, its first.
    fn before(&self) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.unit.len()];
        for (node, all) in self.before.iter().enumerate() {
            let unit = self.unit[node];
            let all = all.iter().map(|&before| self.unit[before]).filter(|&before| before != unit);
            before[unit].extend(all);
        }
        before.iter_mut().for_each(|before| {
            before.sort_unstable();
            before.dedup();
        });
        before
    }

    /// The convex sets of candidates, beside the regions that were taken.
    fn sets(&self, candidates: &[bool]) -> Vec<Vec<usize>> {
        let mut sets = convex::convex(&self.before(), candidates);
        sets.iter_mut().for_each(|set| set.sort_unstable_by_key(|&node| self.at[node]));
        sets
    }

    /// A set of nodes, in a topological order, as a device is shown it.
    fn show(&self, set: &[usize]) -> Result<Shown> {
        let nodes = &self.contents.nodes;
        let (first, last) = (&nodes[set[0]].name, &nodes[set[set.len() - 1]].name);
        let mut shown = Shown {
            name: format!("region of {} nodes from '{first}' to '{last}'", set.len()),
            nodes: set.to_vec(),
            ..Shown::default()
        };
        let place: HashMap<usize, usize> = set.iter().enumerate().map(|(at, &node)| (node, at)).collect();
        let mut number: HashMap<Value, usize> = HashMap::new();
        for (at, &node) in set.iter().enumerate() {
            let NodeBody::Kernel { kernel, inputs, num_outputs } = &nodes[node].body else { continue };
            let descs = |values: &[Value]| values.iter().map(|&value| *self.verified.desc(value)).collect::<Vec<_>>();
            shown.cost_ns = shown.cost_ns.saturating_add(kernel.cost_ns(&descs(inputs), &self.verified.descs[node]));
            let mut reads = Vec::with_capacity(inputs.len());
            for &value in inputs {
                let new = number.len();
                let number = *number.entry(value).or_insert(new);
                reads.push(number);
                if number < new {
                    continue;
                }
                let constant = match &nodes[value.0].body {
                    NodeBody::Constant(tensor) if tensor.engine().is_same_device(kernel.engine()) => {
                        shown.constants.push(tensor.clone());
                        Some(tensor.data() as usize)
                    }
                    _ => None,
                };
                shown.values.push(RegionValue { desc: *self.verified.desc(value), constant });
                if constant.is_none() {
                    shown.inputs.push((value, number));
                }
            }
            shown.reads.push(reads);
            let mut computes = Vec::with_capacity(*num_outputs);
            for output in 0..*num_outputs {
                let value = (node, output);
                let new = number.len();
                number.insert(value, new);
                computes.push(new);
                shown.values.push(RegionValue { desc: *self.verified.desc(value), constant: None });
                let readers = self.readers.get(&value).map_or(&[][..], |readers| readers);
                if self.wanted.contains(&value) || readers.iter().any(|reader| !place.contains_key(reader)) {
                    shown.outputs.push((value, new));
                }
            }
            shown.computes.push(computes);
            let mut after: Vec<usize> =
                nodes[node].after.iter().filter_map(|before| place.get(before)).copied().collect();
            after.retain(|&before| before < at);
            shown.after.push(after);
        }
        Ok(shown)
    }

    /// The kernel that replaces a region.
    fn whole(
        &self,
        shown: &Shown,
        compiled: Arc<dyn DeviceKernel>,
        engine: &Ref<crate::engine::Engine>,
    ) -> Ref<BoundKernel> {
        let kernels = shown.nodes.iter().filter_map(|&node| match &self.contents.nodes[node].body {
            NodeBody::Kernel { kernel, .. } => Some(kernel.clone()),
            _ => None,
        });
        let whole = RegionKernel {
            num_inputs: shown.inputs.len(),
            outputs: shown.outputs.iter().map(|(value, _)| *self.verified.desc(*value)).collect(),
            cost_ns: shown.cost_ns,
            _kernels: kernels.collect(),
            _constants: shown.constants.clone(),
        };
        BoundKernel::of_region(engine.clone(), Arc::new(whole), compiled, &shown.name)
    }

    fn take(&mut self, shown: &Shown, kernel: Ref<BoundKernel>) {
        shown.nodes.iter().for_each(|&node| self.unit[node] = shown.nodes[0]);
        self.taken.push(TakenRegion {
            nodes: shown.nodes.clone(),
            kernel,
            inputs: shown.inputs.iter().map(|(value, _)| *value).collect(),
            outputs: shown.outputs.iter().map(|(value, _)| *value).collect(),
        });
    }

    /// The graph with the regions that were taken; `None` if there are none.
    fn changed(&self) -> Option<Contents> {
        if self.taken.is_empty() {
            return None;
        }
        let old = self.contents;
        let region: HashMap<usize, &TakenRegion> = self.taken.iter().map(|taken| (taken.nodes[0], taken)).collect();
        // The lowest number first: inputs keep their order.
        let kept = |&node: &usize| self.unit[node] == node;
        let order: Vec<usize> = convex::order(&self.before()).into_iter().filter(kept).collect();
        let mut number = vec![0; old.nodes.len()];
        order.iter().enumerate().for_each(|(new, &unit)| number[unit] = new);
        (0..number.len()).for_each(|node| number[node] = number[self.unit[node]]);
        let mut output: HashMap<Value, usize> = HashMap::new();
        for taken in &self.taken {
            output.extend(taken.outputs.iter().enumerate().map(|(at, &value)| (value, at)));
        }
        let value = |value: Value| (number[value.0], output.get(&value).copied().unwrap_or(value.1));
        let nodes = order.iter().map(|&unit| {
            let Some(taken) = region.get(&unit) else {
                let mut node = old.nodes[unit].clone();
                node.inputs_mut().iter_mut().for_each(|input| *input = value(*input));
                node.after.iter_mut().for_each(|before| *before = number[*before]);
                return node;
            };
            let after = taken.nodes.iter().flat_map(|&node| old.nodes[node].after.iter().copied());
            let mut after: Vec<usize> =
                after.filter(|&before| self.unit[before] != unit).map(|before| number[before]).collect();
            after.sort_unstable();
            after.dedup();
            let body = NodeBody::Kernel {
                kernel: taken.kernel.clone(),
                inputs: taken.inputs.iter().map(|&input| value(input)).collect(),
                num_outputs: taken.outputs.len(),
            };
            Node { name: taken.kernel.name().into(), body, after: after.into() }
        });
        Some(Contents {
            name: old.name.clone(),
            nodes: nodes.collect(),
            outputs: old.outputs.iter().map(|(name, output)| (name.clone(), value(*output))).collect(),
            forwarding: old.forwarding.iter().map(|(&of, &forwarding)| (value(of), forwarding)).collect(),
            homes: old.homes.clone(),
            depth: old.depth,
        })
    }
}

impl Shown {
    /// Passes it to a function as a device's region.
    fn with<R>(
        &self,
        offering: &Offering<'_>,
        f: impl FnOnce(&dyn device::Accelerator, &device::DeviceRegion<'_>) -> Result<R>,
        engine: &crate::engine::Engine,
    ) -> Result<R> {
        let gone = || Error::internal("a region of kernels that no device has made");
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (at, &node) in self.nodes.iter().enumerate() {
            let node = &offering.contents.nodes[node];
            let NodeBody::Kernel { kernel, .. } = &node.body else { return Err(gone()) };
            nodes.push(RegionNode {
                name: &node.name,
                recipe: kernel.recipe().ok_or_else(gone)?,
                kernel: kernel.on_device().ok_or_else(gone)?,
                inputs: &self.reads[at],
                outputs: &self.computes[at],
                after: &self.after[at],
            });
        }
        let numbers = |values: &[(Value, usize)]| values.iter().map(|(_, number)| *number).collect::<Vec<_>>();
        let (inputs, outputs) = (numbers(&self.inputs), numbers(&self.outputs));
        let (name, values) = (&self.name, &self.values);
        let region = device::DeviceRegion { name, nodes: &nodes, values, inputs: &inputs, outputs: &outputs };
        f(engine.accelerator().ok_or_else(gone)?, &region)
    }
}
