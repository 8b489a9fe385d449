//! Cond, case and while as kernels that run programs of their own: nested runs, on the pool of the outer one.

use super::super::leaves::{desc, read};
use super::super::spec::{Data, Graph, Kind, Node, Type};
use super::{Builder, Keep};
use crate::kit::run::lend;
use std::sync::Arc;
use weir_core::base::{Desc, Error, Ref, Result};
use weir_core::engine::{Engine, Tensor};
use weir_core::graph::{self, NodeId, Program, ValueId};
use weir_core::kernel::{Kernel, KernelContext, Outputs};

/// Runs one of its programs, or two by turns.
struct Nested {
    form: Form,
    programs: Vec<Ref<Program>>,
    engine: Ref<Engine>,
    inputs: Vec<Type>,
    outputs: Vec<Type>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Cond,
    Case,
    While,
}

impl Builder<'_> {
    pub fn add_nested(
        &self,
        graph: &mut graph::Graph,
        spec: &Graph,
        node: &Node,
        values: &[ValueId],
    ) -> Result<NodeId> {
        let form = match &node.kind {
            Kind::Cond { .. } => Form::Cond,
            Kind::Case { .. } => Form::Case,
            Kind::While { .. } => Form::While,
            _ => return Err(Error::internal(format!("{} can't be built of nested programs", node.name()))),
        };
        let mut programs = Vec::new();
        for (what, inner) in node.graphs() {
            let inner = self.graph(what, inner)?;
            programs.push(Program::compile(&inner, vec![Ref::clone(self.engine)], &self.options(false))?);
        }
        let kernel = Nested {
            form,
            programs,
            engine: Ref::clone(self.engine),
            inputs: node.inputs.iter().map(|&value| spec.type_of(value)).collect(),
            outputs: node.outputs.clone(),
        };
        let id = self.kernel(graph, &node.name(), Arc::new(kernel), values)?;
        if !node.outputs.is_empty() {
            let keep = graph.add_task(&format!("keep {}", node.name()), Arc::new(Keep), 0)?;
            graph.add_control_edge(id, keep)?;
        }
        Ok(id)
    }
}

impl Kernel for Nested {
    fn name(&self) -> &str {
        "nested"
    }
    fn num_inputs(&self) -> usize {
        self.inputs.len()
    }
    fn num_outputs(&self) -> usize {
        self.outputs.len()
    }
    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(self.outputs.iter().map(|&kind| desc(kind)).collect())
    }
    fn is_open(&self) -> bool {
        self.inputs.iter().chain(&self.outputs).any(|&kind| kind == Type::List)
    }
    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        let mut inputs = Vec::new();
        for (i, view) in context.inputs().iter().enumerate() {
            let tensor = Tensor::create(Ref::clone(&self.engine), *view.desc())?;
            // SAFETY: nobody else has it yet.
            unsafe { tensor.view().as_bytes_mut() }.copy_from(outputs.input(context, i));
            inputs.push(tensor);
        }
        let first = |tensors: &[Ref<Tensor>], kind: Type| Data::new(kind, &read(tensors[0].view(), kind));
        let results = match self.form {
            Form::Cond => {
                let predicate = first(&inputs, self.inputs[0]);
                self.run(context, &self.programs[usize::from(!predicate.is_true())], &inputs[1..])?
            }
            Form::Case => {
                let index = first(&inputs, self.inputs[0]).items[0];
                let last = self.programs.len() - 1;
                self.run(
                    context,
                    &self.programs[usize::try_from(index).map_or(last, |index| index.min(last))],
                    &inputs[1..],
                )?
            }
            Form::While => {
                let predicate = |more: &[Ref<Tensor>]| {
                    let kind = *Type::PREDICATES.iter().find(|&&kind| desc(kind) == *more[0].desc()).unwrap();
                    first(more, kind).is_true()
                };
                while predicate(&self.run(context, &self.programs[0], &inputs)?) {
                    let next = self.run(context, &self.programs[1], &inputs)?;
                    inputs.splice(..next.len(), next);
                }
                inputs
            }
        };
        for (o, (kind, result)) in self.outputs.iter().zip(&results).enumerate() {
            if *kind == Type::List {
                outputs.allocate(context, o, result.desc().shape())?;
            }
            // SAFETY: the runs that wrote it are over.
            outputs.get(o).copy_from(unsafe { result.view().as_bytes() });
        }
        Ok(())
    }
}

impl Nested {
    fn run(
        &self,
        context: &KernelContext<'_>,
        program: &Ref<Program>,
        inputs: &[Ref<Tensor>],
    ) -> Result<Vec<Ref<Tensor>>> {
        let make = |port: &graph::Port| match port.desc.is_concrete() {
            true => Tensor::create(Ref::clone(&self.engine), port.desc),
            false => Tensor::create_open(Ref::clone(&self.engine), port.desc),
        };
        let outputs = program.outputs().iter().map(make).collect::<Result<Vec<_>>>()?;
        let (input, output) = (|i: usize| Ok(lend(&inputs[i])), |i: usize| Ok(lend(&outputs[i])));
        Program::run_many_in(program, context, 1, &|_, run| {
            run(&Program::bind(program, (inputs.len(), &input), (outputs.len(), &output))?)
        })?;
        Ok(outputs)
    }
}
