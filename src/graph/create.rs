//! Compiles a graph to a program, and a part of its outputs to a program of their own (`partial`).
//!
//! A part keeps the nodes on which its outputs depend, by data and by control edges. All others are dropped, tasks and
//! kernels without outputs too. The graphs nested in a cond, a case or a loop that is kept stay unchanged: they are
//! part of that node. All inputs stay, so that they keep their numbers; those that are no longer needed are noted.
#![forbid(unsafe_code)]

use super::build::contents::{Contents, NodeBody};
use super::build::options::CompileOptions;
use super::build::shapes::Answers;
use super::build::verify::{self, Kinds, Verified};
use super::builder::Graph;
use super::carry::compiled::Compiled;
use super::carry::device::ProgramDevices;
use super::compile::communicate::communicate;
use super::compile::facts::CompileFacts;
use super::compile::layout::{BYTES_PER_NODE, compile, folded, fused};
use super::compile::place;
use super::compile::raise;
use super::observe::saved_costs;
use super::plan::effects;
use super::run::partial::PartialPrograms;
use super::run::program::Program;
use crate::base::{Error, Object, Ref, Result};
use crate::engine::Engine;
use crate::memory::heap;
use std::borrow::Cow;
use std::sync::Arc;

impl Program {
    pub fn compile(graph: &Graph, engines: Vec<Ref<Engine>>, options: &CompileOptions) -> Result<Ref<Program>> {
        heap::whole(|| Program::try_to_compile(graph, engines, options))
    }

    fn try_to_compile(graph: &Graph, engines: Vec<Ref<Engine>>, options: &CompileOptions) -> Result<Ref<Program>> {
        let contents = &graph.contents;
        heap::probe(contents.size().saturating_mul(BYTES_PER_NODE), "compiling the graph")?;
        let mut raised = raise::raise(contents)?;
        let mut answers = Answers::default();
        let mut verified =
            verify::verify(raised.as_ref().unwrap_or(contents), &engines, options.allow_absent, &mut answers)?;
        raised.iter_mut().for_each(|raised| raise::settle(raised, &verified));
        let contents = raised.as_ref().unwrap_or(contents);
        let divided = communicate(contents, &verified)?;
        if let Some((divided, _)) = &divided {
            verified = verify::verify(divided, &engines, options.allow_absent, &mut answers)?;
        }
        let contents = divided.as_ref().map_or(contents, |(divided, _)| divided);
        if options.blocking_pool.is_none() && verified.kinds.has(Kinds::BLOCKING) {
            verify::check_blocking(contents)?;
        }
        verify::check_homes(contents, &engines)?;
        effects::check(contents, &verified)?;
        let (chosen, choices) = match place::choose(contents, &verified, &engines, options.any_engine)? {
            None => (None, Vec::new()),
            Some((chosen, choices)) => (Some(chosen), choices),
        };
        let contents = chosen.as_ref().unwrap_or(contents);
        let (graph_nodes, asked) = (contents.num_nodes(), options.clone());
        let communications = divided.as_ref().map_or(Vec::new(), |(_, found)| found.clone());
        let mut facts = CompileFacts {
            graph_nodes,
            programs: graph.programs,
            has_side_effects: contents.nodes.iter().any(verify::has_effects),
            options: asked,
            communications,
            ..CompileFacts::default()
        };
        let Some(placed) = place::place(contents, &verified, &engines, options, &mut answers)? else {
            return Program::compile_for_host(contents, verified, engines, options, facts, &mut answers);
        };
        // A part of the program is placed separately.
        let parts = PartialPrograms::new(contents, &engines, options)?;
        facts.placement = placed.placement.clone();
        let verified = verify::verify(&placed.contents, &placed.engines, options.allow_absent, &mut answers)?;
        let folded = folded(&placed.contents, verified, &placed.engines, options, &mut facts, &mut answers)?;
        let (contents, verified) = fused(folded, &placed.engines, options, &mut facts, &mut answers)?;
        let (mut compiled, mut facts) = compile(&contents, &verified, placed.engines.clone(), options, facts)?;
        facts.choices = choices;
        compiled.frames = placed.frames();
        Ok(Object::shared(Program::new(compiled, placed.into_devices(), facts, parts)))
    }

    /// For a graph of which all kernels run on the host.
    fn compile_for_host(
        contents: &Contents,
        verified: Verified,
        engines: Vec<Ref<Engine>>,
        options: &CompileOptions,
        mut facts: CompileFacts,
        answers: &mut Answers,
    ) -> Result<Ref<Program>> {
        let folded = folded(contents, verified, &engines, options, &mut facts, answers)?;
        let (contents, verified) = fused(folded, &engines, options, &mut facts, answers)?;
        let parts = PartialPrograms::new(&contents, &engines, options)?;
        let (compiled, facts) = compile(&contents, &verified, engines, options, facts)?;
        Ok(Object::shared(Program::new(compiled, ProgramDevices::default(), facts, parts)))
    }
}

impl Program {
    /// The program that computes these of its outputs, in their order.
    pub fn part(&self, outputs: &[usize]) -> Result<Ref<Program>> {
        let Some(parts) = &self.parts else {
            return Err(Error::precondition(format!(
                "program '{}' was compiled without partial runs (weir_compile_options.partial_runs)",
                self.name()
            )));
        };
        if let Some(program) = parts.get(outputs) {
            return Ok(program);
        }
        check_outputs(outputs, self.outputs().len())?;
        let compile = || compile_part(&parts.graph, &parts.engines, outputs, &self.runs.compiled, &parts.options);
        let program = heap::whole(compile).map_err(|error| error.within(format_args!("outputs {outputs:?}")))?;
        Ok(parts.keep(outputs, Object::shared(program)))
    }
}

/// Compiles the part of `graph` that the outputs with these numbers need, in their order. `whole` is the program of all
/// outputs.
fn compile_part(
    graph: &Contents,
    engines: &[Ref<Engine>],
    outputs: &[usize],
    whole: &Compiled,
    options: &CompileOptions,
) -> Result<Program> {
    heap::probe(graph.size().saturating_mul(BYTES_PER_NODE), "compiling a part of the program")?;
    let (contents, not_needed) = prune(graph, outputs);
    let mut answers = Answers::default();
    let mut verified = verify::verify(&contents, engines, options.allow_absent, &mut answers)?;
    let mut facts = CompileFacts { graph_nodes: contents.num_nodes(), ..CompileFacts::default() };
    let (mut compiled, facts, devices) = match place::place(&contents, &verified, engines, options, &mut answers)? {
        None => {
            let (compiled, facts) = compile(&contents, &verified, whole.plan.engines.clone(), options, facts)?;
            (compiled, facts, ProgramDevices::default())
        }
        Some(placed) => {
            facts.placement = placed.placement.clone();
            verified = verify::verify(&placed.contents, &placed.engines, options.allow_absent, &mut answers)?;
            // As in the whole program, where a node of the host's is to be found by its name.
            let placed_part = (Cow::Borrowed(&placed.contents), verified);
            let (contents, verified) = fused(placed_part, &placed.engines, options, &mut facts, &mut answers)?;
            let (mut compiled, facts) = compile(&contents, &verified, placed.engines.clone(), options, facts)?;
            compiled.frames = placed.frames();
            (compiled, facts, placed.into_devices())
        }
    };
    let numbers = saved_costs::numbers(&compiled.plan, &whole.plan);
    saved_costs::learn(&compiled, whole, &numbers);
    compiled.figures = whole.figures.as_ref().map(|figures| figures.shared(&numbers));
    compiled.tallies = Arc::clone(&whole.tallies);
    compiled.admission = whole.admission.clone();
    compiled.plan.not_needed = not_needed;
    Ok(Program::new(compiled, devices, facts, None))
}

/// The part, and which inputs it does not need.
fn prune(graph: &Contents, outputs: &[usize]) -> (Contents, Vec<bool>) {
    let mut needed = vec![false; graph.nodes.len()];
    let mut to_do: Vec<usize> = outputs.iter().map(|&output| graph.outputs[output].1.0).collect();
    while let Some(node) = to_do.pop() {
        if !std::mem::replace(&mut needed[node], true) {
            to_do.extend(graph.nodes[node].predecessors().filter(|&before| !needed[before]));
        }
    }
    // The end of a communication follows its beginning.
    for (index, node) in graph.nodes.iter().enumerate() {
        if let NodeBody::Kernel { kernel, inputs, .. } = &node.body
            && kernel.kernel().is_relied_on()
            && inputs.iter().all(|&(producer, _)| needed[producer])
        {
            needed[index] = true;
        }
    }
    let not_needed = graph.inputs().map(|index| !needed[index]).collect();
    graph.inputs().for_each(|index| needed[index] = true);

    (graph.part(&needed, outputs).0, not_needed)
}

/// Refuses a list with outputs that the program does not have, or with one of them twice.
fn check_outputs(outputs: &[usize], all: usize) -> Result<()> {
    let mut is_asked = vec![false; all];
    for (i, &output) in outputs.iter().enumerate() {
        match is_asked.get_mut(output) {
            None => {
                return Err(Error::out_of_range(format!(
                    "options->outputs[{i}] is {output}, the program has {all} outputs"
                )));
            }
            Some(true) => return Err(Error::invalid(format!("options->outputs has {output} twice"))),
            Some(is_asked) => *is_asked = true,
        }
    }
    Ok(())
}
