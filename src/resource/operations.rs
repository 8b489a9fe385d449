//! The kernels of variables: read, assign, add.
#![forbid(unsafe_code)]

use super::access::HeldLock;
use super::{Registry, Resource};
use crate::base::{Code, Desc, Error, Ref, Result};
use crate::device::{DeviceKernel, Location};
use crate::kernel::{Completion, Effect, IssuedCall, Issuer, Kernel, KernelContext, Outputs, Rest};
use crate::memory::View;
use crate::ops::signature;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableOperation {
    /// No input; the output is the value.
    Read,
    /// The value is the input from now on.
    Assign,
    /// The input is added to the value.
    AssignAdd,
}

impl VariableOperation {
    fn name(self) -> &'static str {
        match self {
            VariableOperation::Read => "variable_read",
            VariableOperation::Assign => "variable_assign",
            VariableOperation::AssignAdd => "variable_assign_add",
        }
    }
}

/// A kernel of one operation on one variable, which it refers to by number, or, as part of a program, by a pointer.
struct VariableKernel {
    operation: VariableOperation,
    desc: Desc,
    is_optimistic: bool,
    effects: [Effect; 1],
    registry: Arc<Registry>,
    number: u64,
    /// Set in programs. Boxed already, for a call that must wait for the lock.
    resolved: Option<Arc<VariableCall>>,
    /// The variable is in a device's memory.
    is_on_device: bool,
    /// The device's sum, for an addition there.
    sum: Option<Arc<dyn DeviceKernel>>,
}

/// One operation on a resolved variable.
struct VariableCall {
    operation: VariableOperation,
    resource: Ref<Resource>,
}

/// The kernel of an operation on a variable. `sum` is the device's addition kernel, for an addition to a variable in a
/// device's memory.
pub fn kernel(
    operation: VariableOperation,
    registry: &Arc<Registry>,
    resource: &Resource,
    sum: Option<Arc<dyn DeviceKernel>>,
) -> Result<Arc<dyn Kernel>> {
    let variable = resource.variable()?;
    if operation == VariableOperation::AssignAdd {
        variable.check_add().map_err(|error| error.within(resource.text()))?;
        variable.on_device().map_or(Ok(()), |on| on.prepare_sum())?;
    }
    let effect = Effect {
        thing: variable.serial(),
        name: resource.text().into(),
        writes: operation != VariableOperation::Read,
        is_ordered: !variable.is_optimistic(),
        remedy: "add a control edge, or create it with WEIR_VARIABLE_OPTIMISTIC",
    };
    Ok(Arc::new(VariableKernel {
        operation,
        desc: *variable.desc(),
        is_optimistic: variable.is_optimistic(),
        effects: [effect],
        registry: Arc::clone(registry),
        number: resource.number(),
        resolved: None,
        is_on_device: variable.on_device().is_some(),
        sum,
    }))
}

impl VariableKernel {
    fn call(&self) -> Result<Arc<VariableCall>> {
        match &self.resolved {
            Some(call) => Ok(Arc::clone(call)),
            None => Ok(Arc::new(VariableCall { operation: self.operation, resource: self.find()? })),
        }
    }

    fn find(&self) -> Result<Ref<Resource>> {
        self.registry.by_number(self.number).map_err(|error| match error.code() {
            Code::NotFound => Error::new(Code::NotFound, format!("{} was destroyed", self.effects[0].name)),
            _ => error,
        })
    }
}

impl Kernel for VariableKernel {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn num_inputs(&self) -> usize {
        usize::from(self.operation != VariableOperation::Read)
    }

    fn num_outputs(&self) -> usize {
        usize::from(self.operation == VariableOperation::Read)
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        if self.operation == VariableOperation::Read {
            return Ok(vec![self.desc]);
        }
        signature::check("input", &[self.desc], inputs)?;
        Ok(Vec::new())
    }

    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        const LEAST_NS: u64 = 100;
        (self.desc.bytes().unwrap_or(0) as u64 / 10).max(LEAST_NS)
    }

    fn effects(&self) -> &[Effect] {
        &self.effects
    }

    fn resolve(&self) -> Result<Option<Arc<dyn Kernel>>> {
        let resolved = VariableKernel {
            effects: self.effects.clone(),
            registry: Arc::clone(&self.registry),
            resolved: Some(self.call()?),
            sum: self.sum.clone(),
            ..*self
        };
        Ok(Some(Arc::new(resolved)))
    }

    /// Operations on an exclusive variable may have to wait for its lock.
    fn is_async(&self) -> bool {
        !self.is_optimistic && !self.is_on_device
    }

    fn is_on_host(&self) -> bool {
        !self.is_on_device
    }

    fn is_issued(&self) -> bool {
        self.is_on_device
    }

    fn issuer(&self) -> Result<Option<Arc<dyn Issuer>>> {
        if !self.is_on_device {
            return Ok(None);
        }
        Ok(Some(Arc::new(DeviceVariableCall { call: self.call()?, sum: self.sum.clone() })))
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match &self.resolved {
            Some(call) => call.perform(None, context, outputs),
            None => VariableCall { operation: self.operation, resource: self.find()? }.perform(None, context, outputs),
        }
    }

    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        self.call()?.go_on(context, outputs, done)
    }
}

/// One operation on a variable in a device's memory.
struct DeviceVariableCall {
    call: Arc<VariableCall>,
    sum: Option<Arc<dyn DeviceKernel>>,
}

impl Issuer for DeviceVariableCall {
    fn issue(&self, &IssuedCall { stream, name, inputs, outputs, .. }: &IssuedCall<'_>) -> Result<()> {
        let Some(on) = self.call.resource.variable()?.on_device() else {
            return Err(Error::internal("a device's call of a variable in the host's memory"));
        };
        let place = |view: &View| Location::Device(view.data().expose_provenance());
        match (self.call.operation, &self.sum) {
            (VariableOperation::Read, _) => on.read(stream, name, place(&outputs[0])),
            (VariableOperation::Assign, _) => on.assign(stream, name, place(&inputs[0])),
            (VariableOperation::AssignAdd, Some(sum)) => on.assign_add(stream, name, sum, &inputs[0]),
            (VariableOperation::AssignAdd, None) => Err(Error::internal("an addition without the device's sum")),
        }
    }
}

impl VariableCall {
    fn perform(&self, lock: Option<&HeldLock<'_>>, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let variable = self.resource.variable()?;
        match self.operation {
            VariableOperation::Read => variable.read(lock, context, outputs.only()),
            VariableOperation::Assign => variable.assign(lock, context, context.input(0)),
            VariableOperation::AssignAdd => variable.assign_add(lock, context, context.input(0)),
        }
    }
}

impl Rest for VariableCall {
    /// Executes the operation with the lock, or in another round.
    fn go_on(self: Arc<Self>, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let Some(access) = self.resource.variable()?.access() else {
            return done.done(self.perform(None, context, outputs));
        };
        if context.is_cancelled() {
            return Err(Error::new(Code::Cancelled, "cancelled"));
        }
        let again = || {
            done.leave(Some(Arc::clone(&self) as Arc<dyn Rest>));
            done
        };
        let Some(lock) = access.take_or_leave_word(again) else { return Ok(()) };
        let result = self.perform(Some(&lock), context, outputs);
        drop(lock);
        done.done(result)
    }
}
