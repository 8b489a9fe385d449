//! Operators some of whose settings are tensors: their last inputs hold members of the descriptor. Each call reads
//! these before it looks at shapes.
//!
//! Compile makes the plain operator of one whose settings are constants, or were computed from some.
#![forbid(unsafe_code)]

use super::operation::{Builtin, BuiltinOperation};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result};
use crate::kernel::{Kernel, KernelContext, Outputs};
use crate::memory::Bytes;
use crate::ops::operator::create;
use crate::ops::setting::Setting;
use crate::ops::{Descriptor, Operator};
use std::sync::Arc;

/// An operator and the members of its descriptor that calls bring.
#[derive(Debug)]
pub struct Late<O: Operator> {
    desc: Box<[u8]>,
    /// With numbers that stand in for what calls bring.
    stand_in: Builtin<O>,
    settings: Box<[Setting<O::Desc>]>,
}

impl<O: Operator> Late<O> {
    /// `names` are members of the descriptor, in the order of the inputs, with blanks between them.
    pub fn new(desc: &O::Desc, names: &str) -> Result<Late<O>> {
        let mut settings: Vec<Setting<O::Desc>> = Vec::new();
        for name in names.split_ascii_whitespace() {
            let Some(setting) = O::SETTINGS.iter().find(|setting| setting.name == name) else {
                return Err(unknown::<O>(name));
            };
            if settings.iter().any(|other| other.name == name) {
                return Err(Error::invalid(format!("options->settings names '{name}' twice")));
            }
            settings.push(*setting);
        }
        let mut known = *desc;
        O::stand_in(&mut known);
        let stand_in = Builtin::new(create(&mut known, None)?);
        Ok(Late { desc: desc.bytes().into(), stand_in, settings: settings.into() })
    }

    fn own_inputs(&self) -> usize {
        Operator::num_inputs(&*self.stand_in)
    }

    fn decides_shapes(&self) -> bool {
        self.settings.iter().any(|setting| setting.decides_shapes)
    }

    /// The operator with the numbers that these inputs hold.
    #[inline(never)]
    fn with<'a>(&self, from: &dyn Fn(usize) -> Bytes<'a>) -> Result<Builtin<O>> {
        let mut desc = O::Desc::of_bytes(&self.desc);
        for (i, setting) in self.settings.iter().enumerate() {
            let held = from(i);
            // Its size may have been open until now.
            setting.check(&desc, self.own_inputs() + i, held.desc())?;
            let count = setting.count(&desc);
            setting.put(held.desc(), held.read_bytes(), count, &mut |offset, bytes| desc.set_bytes(offset, bytes));
        }
        Ok(Builtin::new(create(&mut desc, None)?))
    }
}

fn unknown<O: Operator>(name: &str) -> Error {
    let known: Vec<&str> = O::SETTINGS.iter().map(|setting| setting.name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Error::invalid(format!("options->settings names '{name}'; tensors can hold these members of {}: {known}", O::NAME))
}

impl<O: Operator> Kernel for Late<O>
where
    Builtin<O>: BuiltinOperation,
{
    fn name(&self) -> &str {
        self.stand_in.name()
    }

    fn num_inputs(&self) -> usize {
        self.own_inputs() + self.settings.len()
    }

    fn num_outputs(&self) -> usize {
        Operator::num_outputs(&*self.stand_in)
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let (own, held) = inputs.split_at(self.own_inputs());
        let desc = O::Desc::of_bytes(&self.desc);
        for (i, (setting, input)) in self.settings.iter().zip(held).enumerate() {
            setting.check(&desc, own.len() + i, input)?;
        }
        if !self.decides_shapes() {
            return self.stand_in.infer(own);
        }
        // Types and ranks, which settings do not decide about.
        let open = |desc: &Desc| {
            let mut open = *desc;
            open.dims[..desc.shape().len()].fill(ANY_DIM);
            open
        };
        let inputs: Vec<Desc> = own.iter().map(open).collect();
        Ok(self.stand_in.infer(&inputs)?.iter().map(open).collect())
    }

    fn scratch_bytes(&self, inputs: &[Desc], outputs: &[Desc]) -> usize {
        // Where settings decide about shapes each call says it.
        let own = &inputs[..self.own_inputs()];
        let is_known = !self.decides_shapes() && outputs.iter().all(Desc::is_concrete);
        if is_known { Kernel::scratch_bytes(&self.stand_in, own, outputs) } else { 0 }
    }

    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        let own = &inputs[..self.own_inputs()];
        if outputs.iter().all(Desc::is_concrete) { Kernel::cost_ns(&self.stand_in, own, outputs) } else { 0 }
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }

    fn num_settings(&self) -> usize {
        self.settings.len()
    }

    fn settled(&self, settings: &[Bytes<'_>]) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(self.with(&|i| settings[i])?))
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let own = self.own_inputs();
        let kernel = self.with(&|i| context.input(own + i))?;
        // Shapes that all are known may still not fit what the settings turned out to be.
        match context.is_open() || self.decides_shapes() {
            true => kernel.compute_open(context, outputs, own),
            false => BuiltinOperation::compute(&kernel, context, outputs),
        }
    }
}
