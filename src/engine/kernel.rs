//! A kernel on an engine.

use super::attr::KernelAttr;
use super::engine::Engine;
use crate::base::object::tag;
use crate::base::{Desc, Kind, Object, Ref, Result, live};
use crate::kernel::{Kernel, signature};
use std::sync::Arc;

pub struct BoundKernel {
    kernel: Arc<dyn Kernel>,
    engine: Ref<Engine>,
    /// "" = the operation's.
    name: Box<str>,
    cost_ns: u64,
}

impl Kind for BoundKernel {
    const TAG: u32 = tag::KERNEL;
    const NAME: &'static str = "kernel";
    const COUNTER: live::Counter = live::Counter::Kernels;
}

impl BoundKernel {
    pub fn create(engine: Ref<Engine>, kernel: Arc<dyn Kernel>, attr: &KernelAttr) -> Ref<BoundKernel> {
        Object::shared(BoundKernel { kernel, engine, name: attr.name.as_str().into(), cost_ns: attr.cost_ns })
    }

    pub fn name(&self) -> &str {
        if self.name.is_empty() { self.kernel.name() } else { &self.name }
    }

    pub fn engine(&self) -> &Ref<Engine> {
        &self.engine
    }

    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.kernel
    }

    pub fn num_inputs(&self) -> usize {
        self.kernel.num_inputs()
    }

    pub fn num_outputs(&self) -> usize {
        self.kernel.num_outputs()
    }

    /// What the outputs look like; every refusal names the kernel.
    pub fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        self.infer_unnamed(inputs).map_err(|error| error.within(format_args!("kernel '{}'", self.name())))
    }

    /// As `infer`, for callers that put a name of their own in front.
    pub fn infer_unnamed(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        signature::check_count("input", self.num_inputs(), inputs.len())?;
        let mut checked = Vec::with_capacity(inputs.len());
        let is_open = self.kernel.is_open();
        let check = |desc: &Desc| if is_open { desc.check_open() } else { desc.check() };
        for (i, desc) in inputs.iter().enumerate() {
            checked.push(desc.check_open().map_err(|error| error.within(format_args!("input {i}")))?);
        }
        if let (false, Some(i)) = (is_open, checked.iter().position(|desc| !desc.is_concrete())) {
            let why = format!(
                "a shape without open dimensions, as kernel '{}' does not say WEIR_KERNEL_DYNAMIC",
                self.name()
            );
            return Err(signature::mismatch("input", i, &why, &checked[i]));
        }
        let outputs = self.kernel.infer(&checked)?;
        outputs
            .into_iter()
            .enumerate()
            .map(|(i, desc)| check(&desc).map_err(|error| error.within(format_args!("output {i}"))))
            .collect()
    }

    /// Estimated run time on one thread, in nanoseconds; 0 = unknown.
    pub fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        match self.cost_ns {
            0 => self.kernel.cost_ns(inputs, outputs),
            set => set,
        }
    }
}
