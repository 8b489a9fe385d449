//! A kernel on an engine.
#![forbid(unsafe_code)]

use super::attr::KernelOptions;
use super::engine::Engine;
use super::on_host::KernelOnHost;
use super::tensor::Tensor;
use crate::base::object::tag;
use crate::base::{Code, Desc, Error, Kind, Object, Ref, Result, live};
use crate::device::{DeviceKernel, HostFunction, Operation, Recipe};
use crate::kernel::Kernel;
use crate::memory::Tag;
use crate::ops::Described;
use crate::ops::signature;
use crate::sync::OnceLock;
use crate::trace::{self, COMPILED};
use std::sync::Arc;

pub struct BoundKernel {
    kernel: Arc<dyn Kernel>,
    engine: Ref<Engine>,
    /// "" = the operation's.
    name: Box<str>,
    label: OnceLock<Box<str>>,
    cost_ns: u64,
    /// Engines make it from this; `None`: its ingredients are transient.
    operation: Option<OwnOperation>,
    /// It is for its engine alone.
    is_bound: bool,
    /// The device's form of it, on an accelerator.
    on_device: Option<Arc<dyn DeviceKernel>>,
    /// The first signatures that passed the checks.
    known: OnceLock<Box<Signature>>,
    scratch_tag: OnceLock<Tag>,
}

/// A kernel's identity for devices.
#[derive(Clone, Copy)]
pub struct KernelIdentity<'a> {
    pub operation: Operation<'a>,
    /// It is for its engine alone: its ingredients are transient, or belong to that engine.
    pub is_bound: bool,
    /// Its ingredients persist although it is for its engine alone, which may use them again.
    pub stays: bool,
}

impl<'a> KernelIdentity<'a> {
    /// One that any engine may have.
    pub fn of(operation: Operation<'a>) -> KernelIdentity<'a> {
        KernelIdentity { operation, is_bound: false, stays: false }
    }
}

/// An operation with the memory that it refers to.
enum OwnOperation {
    Host,
    Builtin(Described),
    Named(Box<str>, Vec<u8>),
}

impl OwnOperation {
    fn new(operation: Operation<'_>) -> Result<OwnOperation> {
        Ok(match operation {
            Operation::Host => OwnOperation::Host,
            Operation::Builtin(described) => OwnOperation::Builtin(described.clone()),
            Operation::Named(name, attributes) => {
                let mut copy = Vec::new();
                let exhausted = |_| Error::exhausted("a copy of the attributes", attributes.len());
                copy.try_reserve_exact(attributes.len()).map_err(exhausted)?;
                copy.extend_from_slice(attributes);
                OwnOperation::Named(name.into(), copy)
            }
        })
    }

    fn get(&self) -> Operation<'_> {
        match self {
            OwnOperation::Host => Operation::Host,
            OwnOperation::Builtin(described) => Operation::Builtin(described),
            OwnOperation::Named(name, attributes) => Operation::Named(name, attributes),
        }
    }
}

/// Tensors that fit a kernel.
struct Signature {
    inputs: Vec<Desc>,
    outputs: Vec<Desc>,
    scratch_bytes: usize,
    next: OnceLock<Box<Signature>>,
}

/// Signatures that a kernel remembers: to look through more takes as long as to check once more.
const MOST_SIGNATURES: usize = 16;

/// A kernel as a function of the host's, if it is one.
fn host_form(kernel: &Arc<dyn Kernel>) -> Option<Arc<dyn HostFunction>> {
    kernel.is_on_host().then(|| Arc::new(KernelOnHost::new(Arc::clone(kernel))) as Arc<dyn HostFunction>)
}

impl Kind for BoundKernel {
    const TAG: u32 = tag::KERNEL;
    const NAME: &'static str = "kernel";
    const COUNTER: live::Counter = live::Counter::Kernels;
}

impl BoundKernel {
    /// A kernel made by the host. UNIMPLEMENTED if the engine's device runs no host functions.
    pub fn create(engine: Ref<Engine>, kernel: Arc<dyn Kernel>, options: &KernelOptions) -> Result<Ref<BoundKernel>> {
        BoundKernel::create_as(engine, kernel, KernelIdentity::of(Operation::Host), options)
    }

    /// A kernel that a device may know by its name. UNIMPLEMENTED if the engine's device has none.
    pub fn create_as(
        engine: Ref<Engine>,
        kernel: Arc<dyn Kernel>,
        identity: KernelIdentity<'_>,
        options: &KernelOptions,
    ) -> Result<Ref<BoundKernel>> {
        let name = options.name.as_str().into();
        let on_device = engine.accelerator().filter(|_| !kernel.is_issued()).map(|accelerator| {
            let label = engine.label();
            if kernel.is_async() {
                let text = format!(
                    "kernel '{}' completes later by itself, which engine {label} has no use for",
                    kernel.name()
                );
                return Err(Error::new(Code::Unimplemented, text));
            }
            let recipe = Recipe {
                name: kernel.name(),
                operation: identity.operation,
                num_inputs: kernel.num_inputs(),
                num_outputs: kernel.num_outputs(),
                host: host_form(&kernel),
            };
            trace::made(COMPILED, || accelerator.kernel(&recipe), |_| kernel.name().to_owned())
                .map_err(|error| error.within(format_args!("kernel '{}'", kernel.name())).at_engine(&label))
        });
        let on_device = on_device.transpose()?;
        let is_bound = identity.is_bound;
        let operation = (!is_bound || identity.stays).then(|| OwnOperation::new(identity.operation)).transpose()?;
        let (cost_ns, known, scratch_tag) = (options.cost_ns, OnceLock::new(), OnceLock::new());
        let label = OnceLock::new();
        Ok(Object::shared(BoundKernel {
            kernel,
            engine,
            name,
            label,
            cost_ns,
            operation,
            is_bound,
            on_device,
            known,
            scratch_tag,
        }))
    }

    /// A kernel that the engine's device has made of others. `kernel` says what it takes and gives.
    pub fn of_region(
        engine: Ref<Engine>,
        kernel: Arc<dyn Kernel>,
        on_device: Arc<dyn DeviceKernel>,
        name: &str,
    ) -> Ref<BoundKernel> {
        Object::shared(BoundKernel {
            kernel,
            engine,
            name: name.into(),
            label: OnceLock::new(),
            cost_ns: 0,
            operation: None,
            is_bound: true,
            on_device: Some(on_device),
            known: OnceLock::new(),
            scratch_tag: OnceLock::new(),
        })
    }

    /// The recipe from which its engine's device made it; `None` if that was transient.
    pub fn recipe(&self) -> Option<Recipe<'_>> {
        Some(Recipe {
            name: self.kernel.name(),
            operation: self.operation.as_ref()?.get(),
            num_inputs: self.num_inputs(),
            num_outputs: self.num_outputs(),
            host: host_form(&self.kernel),
        })
    }

    /// The same on another engine. UNIMPLEMENTED if that has none, or if this one is bound to its engine.
    pub fn on(&self, engine: &Ref<Engine>) -> Result<Ref<BoundKernel>> {
        let refuse = |why: &str| {
            let label = self.engine.label();
            Err(Error::new(Code::Unimplemented, format!("kernel '{}' of engine {label} {why}", self.name())))
        };
        let Some(operation) = self.operation.as_ref().filter(|_| !self.is_bound) else {
            return refuse("is for that engine alone");
        };
        if !self.kernel.effects().is_empty() || self.kernel.may_block() {
            return refuse("touches what is the host's");
        }
        if engine.accelerator().is_none() && !self.kernel.is_on_host() {
            return refuse("has no function of the host's");
        }
        let identity = KernelIdentity::of(operation.get());
        let options = KernelOptions { name: self.name.to_string(), cost_ns: self.cost_ns };
        BoundKernel::create_as(Ref::clone(engine), Arc::clone(&self.kernel), identity, &options)
    }

    /// The same with another function on the processor, for a program: name and cost stay.
    pub fn with_kernel(&self, kernel: Arc<dyn Kernel>) -> Result<Ref<BoundKernel>> {
        let options = KernelOptions { name: self.name.to_string(), cost_ns: self.cost_ns };
        BoundKernel::create(Ref::clone(&self.engine), kernel, &options)
    }

    /// The device's form; `None` where the host executes it.
    pub fn on_device(&self) -> Option<&Arc<dyn DeviceKernel>> {
        self.on_device.as_ref()
    }

    /// Whether it is an operator of weir's.
    pub fn is_builtin(&self) -> bool {
        matches!(self.operation, Some(OwnOperation::Builtin(_)))
    }

    /// For messages: "kernel 'relu'".
    #[inline]
    pub fn label(&self) -> &str {
        self.label.get_or_init(|| format!("kernel '{}'", self.name()).into())
    }

    pub fn name(&self) -> &str {
        if self.name.is_empty() { self.kernel.name() } else { &self.name }
    }

    /// The purpose of its scratch memory, for statistics.
    pub fn scratch_tag(&self) -> Tag {
        self.scratch_tag.get_or_init(|| Tag::text(format!("scratch of kernel '{}'", self.name()))).clone()
    }

    pub fn engine(&self) -> &Ref<Engine> {
        &self.engine
    }

    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.kernel
    }

    /// A stream's call of it will not begin.
    pub fn not_begun(&self, why: &Error) {
        self.kernel.listeners().iter().for_each(|listener| listener.run_ended(0, Some(why)));
    }

    pub fn num_inputs(&self) -> usize {
        self.kernel.num_inputs()
    }

    pub fn num_outputs(&self) -> usize {
        self.kernel.num_outputs()
    }

    /// The outputs' descriptors; every error names the kernel.
    pub fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        self.infer_unnamed(inputs).map_err(|error| error.within(format_args!("kernel '{}'", self.name())))
    }

    /// As `infer`, for callers that prefix a name of their own.
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

    /// Scratch bytes per slot, if these tensors are known to fit.
    pub fn known_scratch_bytes(&self, inputs: &[&Tensor], outputs: &[&Tensor]) -> Option<usize> {
        let like = |tensors: &[&Tensor], descs: &[Desc]| {
            tensors.len() == descs.len() && tensors.iter().zip(descs).all(|(tensor, desc)| tensor.desc() == desc)
        };
        let mut at = &self.known;
        loop {
            let known = at.get()?;
            if like(inputs, &known.inputs) && like(outputs, &known.outputs) {
                return Some(known.scratch_bytes);
            }
            at = &known.next;
        }
    }

    /// Remembers that tensors like these fit.
    pub fn know(&self, inputs: Vec<Desc>, outputs: Vec<Desc>, scratch_bytes: usize) {
        let mut signature = Box::new(Signature { inputs, outputs, scratch_bytes, next: OnceLock::new() });
        let mut at = &self.known;
        for _ in 0..MOST_SIGNATURES {
            match at.set(signature) {
                Ok(()) => return,
                Err(back) => signature = back,
            }
            let Some(known) = at.get() else { return };
            at = &known.next;
        }
    }

    /// Estimated run time on one thread, in nanoseconds; 0 = unknown.
    pub fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        match self.cost_ns {
            0 => self.kernel.cost_ns(inputs, outputs),
            set => set,
        }
    }
}
