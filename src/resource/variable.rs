//! A tensor that lives between runs.

use super::access::{HeldLock, VariableLock};
use super::next_serial;
use super::on_device::{DeviceVariable, Side};
use super::versions::Versions;
use crate::base::{Desc, Error, Ref, Result};
use crate::device::Device;
use crate::kernel::{KernelContext, NEVER, Scratch, builtin};
use crate::memory::{AlignedBuffer, Bytes, BytesMut, Pool, View};
use crate::ops::{Binary, Operator, signature, weir_binary_op_value};
use crate::threadpool::{Span, ThreadPool};
use std::sync::Arc;

/// Bytes of a piece of a copy, and the time to copy a byte, at 10 GB/s.
const PIECE: usize = 128 << 10;
const NS_PER_BYTE: f32 = 0.1;

pub struct Variable {
    serial: u64,
    desc: Desc,
    value: Value,
}

enum Value {
    Exclusive { access: VariableLock, view: View, _memory: AlignedBuffer },
    Optimistic(Versions),
    OnDevice { on: Box<DeviceVariable>, is_optimistic: bool },
}

impl Variable {
    /// A variable in host memory. `initial` has the shape of `desc`; without it the elements are 0.
    pub fn create(desc: Desc, is_optimistic: bool, initial: Option<Bytes<'_>>) -> Result<Variable> {
        let desc = checked(desc, initial.map(|initial| initial.view()))?;
        let what = format!("a variable of {}", desc.text());
        let value = if is_optimistic {
            Value::Optimistic(Versions::create(&desc, &what, initial)?)
        } else {
            let memory = AlignedBuffer::zeroed(desc.bytes()?, &what)?;
            // SAFETY: the buffer's memory, which the variable keeps, and which is aligned for every element.
            let view = unsafe { View::new(memory.data(), memory.bytes(), desc) };
            if let Some(initial) = initial {
                // SAFETY: nothing else has it yet.
                unsafe { view.as_bytes_mut() }.copy_from(initial);
            }
            Value::Exclusive { access: VariableLock::new(), view, _memory: memory }
        };
        Ok(Variable { serial: next_serial(), desc, value })
    }

    /// A variable in an accelerator's memory.
    ///
    /// # Safety
    /// The initial value is where its side says, and nothing writes it meanwhile.
    pub unsafe fn create_on(
        device: &Arc<dyn Device>,
        pool: &Arc<Pool>,
        desc: Desc,
        is_optimistic: bool,
        initial: Option<(&View, Side)>,
    ) -> Result<Variable> {
        let desc = checked(desc, initial.map(|(view, _)| view))?;
        let on = Box::new(DeviceVariable::create(device, pool, desc)?);
        if let Some((view, side)) = initial {
            // SAFETY: as demanded of the caller.
            unsafe { on.set(view, side) }?;
        }
        Ok(Variable { serial: next_serial(), desc, value: Value::OnDevice { on, is_optimistic } })
    }

    /// `Some` if it is in a device's memory.
    pub(super) fn on_device(&self) -> Option<&DeviceVariable> {
        match &self.value {
            Value::OnDevice { on, .. } => Some(on),
            _ => None,
        }
    }

    /// The device whose memory it is in; `None`: the host's.
    pub fn device(&self) -> Option<&Arc<dyn Device>> {
        self.on_device().map(DeviceVariable::device)
    }

    pub fn desc(&self) -> &Desc {
        &self.desc
    }

    /// A number that is unique among variables of this process.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    pub fn is_optimistic(&self) -> bool {
        matches!(self.value, Value::Optimistic(_) | Value::OnDevice { is_optimistic: true, .. })
    }

    pub fn bytes(&self) -> usize {
        match &self.value {
            Value::Exclusive { view, .. } => view.bytes(),
            Value::Optimistic(versions) => versions.count() * self.desc.bytes().unwrap_or(0),
            Value::OnDevice { on, .. } => on.bytes(),
        }
    }

    /// The lock of an exclusive variable.
    pub(super) fn access(&self) -> Option<&VariableLock> {
        match &self.value {
            Value::Exclusive { access, .. } => Some(access),
            Value::Optimistic(_) | Value::OnDevice { .. } => None,
        }
    }

    /// Whether `assign_add` is defined, with the error text of the sum.
    pub fn check_add(&self) -> Result<()> {
        SUM.output(&[self.desc; 2]).map(drop)
    }

    /// Copies the value into `output`. For an exclusive variable only with its lock.
    pub(super) fn read(
        &self,
        lock: Option<&HeldLock<'_>>,
        context: &KernelContext<'_>,
        output: BytesMut<'_>,
    ) -> Result<()> {
        match &self.value {
            Value::Exclusive { access, view, .. } => {
                check_held(access, lock)?;
                // SAFETY: nobody writes it without the lock.
                copy(context, unsafe { view.as_bytes() }, output)
            }
            Value::Optimistic(versions) => copy(context, versions.current().value(), output),
            Value::OnDevice { .. } => Err(elsewhere()),
        }
    }

    pub(super) fn assign(
        &self,
        lock: Option<&HeldLock<'_>>,
        context: &KernelContext<'_>,
        input: Bytes<'_>,
    ) -> Result<()> {
        match &self.value {
            Value::Exclusive { access, view, .. } => {
                check_held(access, lock)?;
                // SAFETY: nobody else has it without the lock.
                whole(context, |context| copy(context, input, unsafe { view.as_bytes_mut() }))
            }
            Value::Optimistic(versions) => {
                let mut next = versions.blank()?;
                if let Err(error) = copy(context, input, next.value()) {
                    versions.give_back(next);
                    return Err(error);
                }
                // Replaces whichever version is current.
                let _ = versions.publish(next, None);
                Ok(())
            }
            Value::OnDevice { .. } => Err(elsewhere()),
        }
    }

    pub(super) fn assign_add(
        &self,
        lock: Option<&HeldLock<'_>>,
        context: &KernelContext<'_>,
        input: Bytes<'_>,
    ) -> Result<()> {
        match &self.value {
            Value::Exclusive { access, view, .. } => {
                check_held(access, lock)?;
                // SAFETY: nothing else has it without the lock; the sum is computed in place.
                whole(context, |context| unsafe { add(context, view, input.view(), view) })
            }
            Value::Optimistic(versions) => {
                let mut next = versions.blank()?;
                loop {
                    let old = versions.current();
                    // SAFETY: nothing writes the old version, and nothing else has the next one.
                    let sum = unsafe { add(context, old.value().view(), input.view(), next.value().view()) };
                    if let Err(error) = sum {
                        versions.give_back(next);
                        return Err(error);
                    }
                    // A different current version means that another writer has finished first.
                    match versions.publish(next, Some(&old)) {
                        Ok(()) => return Ok(()),
                        Err(again) => next = again,
                    }
                }
            }
            Value::OnDevice { .. } => Err(elsewhere()),
        }
    }

    fn check_like(&self, desc: &Desc) -> Result<()> {
        match *desc == self.desc {
            true => Ok(()),
            false => Err(Error::invalid(format!("tensor: expected {}, got {}", self.desc.text(), desc.text()))),
        }
    }

    fn lock(&self, what: &dyn Fn() -> String) -> Result<Option<HeldLock<'_>>> {
        self.access().map(|access| access.wait(what)).transpose()
    }

    /// For the host: copies the value into `output`, in this thread. `side`: the output's memory, the host's for a
    /// variable in host memory.
    ///
    /// # Safety
    /// The output is where `side` says, and nothing else uses it.
    pub unsafe fn get(&self, output: &View, side: Side, what: &dyn Fn() -> String) -> Result<()> {
        self.check_like(output.desc())?;
        if let Some(on) = self.on_device() {
            // SAFETY: as demanded of the caller.
            return unsafe { on.get(output, side) }.map_err(|error| error.within(what()));
        }
        let lock = self.lock(what)?;
        // SAFETY: the output is this call's, as demanded of the caller.
        let output = unsafe { output.as_bytes_mut() };
        self.read(lock.as_ref(), &alone(None), output)
    }

    /// For the host: assigns the value of `input`, in this thread.
    ///
    /// # Safety
    /// The input is where `side` says, and nothing writes it meanwhile.
    pub unsafe fn set(&self, input: &View, side: Side, what: &dyn Fn() -> String) -> Result<()> {
        self.check_like(input.desc())?;
        if let Some(on) = self.on_device() {
            // SAFETY: as demanded of the caller.
            return unsafe { on.set(input, side) }.map_err(|error| error.within(what()));
        }
        let lock = self.lock(what)?;
        // SAFETY: nothing writes the input, as demanded of the caller.
        let input = unsafe { input.as_bytes() };
        self.assign(lock.as_ref(), &alone(None), input)
    }
}

fn checked(desc: Desc, initial: Option<&View>) -> Result<Desc> {
    let desc = desc.check().map_err(|error| error.within("desc"))?;
    match initial.filter(|initial| *initial.desc() != desc) {
        Some(initial) => {
            let (want, have) = (desc.text(), initial.desc().text());
            Err(Error::invalid(format!("initial: expected {want}, got {have}")))
        }
        None => Ok(desc),
    }
}

fn elsewhere() -> Error {
    Error::internal("the host's function of a variable that is in a device's memory")
}

const SUM: Binary = Binary::of(weir_binary_op_value::WEIR_BINARY_ADD);

fn no_scratch() -> Scratch {
    Scratch::none(crate::threadpool::MAX_SLOTS)
}

/// A context without tensors.
fn alone(pool: Option<&Ref<ThreadPool>>) -> KernelContext<'_> {
    // SAFETY: there are none.
    unsafe { KernelContext::new(&[], &[], pool, no_scratch(), &NEVER) }
}

fn check_held(access: &VariableLock, lock: Option<&HeldLock<'_>>) -> Result<()> {
    match lock.is_some_and(|held| held.is_of(access)) {
        true => Ok(()),
        false => Err(Error::internal("a variable without its lock")),
    }
}

/// Completes a write that has begun: stopping a run never leaves a value half written.
fn whole(context: &KernelContext<'_>, write: impl FnOnce(&KernelContext<'_>) -> Result<()>) -> Result<()> {
    context.with_pool(|pool| write(&alone(pool)))
}

fn copy(context: &KernelContext<'_>, from: Bytes<'_>, mut to: BytesMut<'_>) -> Result<()> {
    let bytes = from.read_bytes();
    if bytes.len() <= PIECE {
        to.copy_from(from);
        return Ok(());
    }
    let span = Span { items: bytes.len(), cost_ns: NS_PER_BYTE, grain: PIECE, ..Span::default() };
    context.parallel_into(&span, to.byte_shards(1), |part, claim| {
        part.copy_from_slice(&bytes[claim.begin()..claim.end()]);
        Ok(())
    })
}

/// a + b, computed by the kernel of that name.
///
/// # Safety
/// As of `KernelContext::new`.
unsafe fn add(context: &KernelContext<'_>, a: &View, b: &View, to: &View) -> Result<()> {
    signature::check("input", &[*a.desc()], &[*b.desc()])?;
    let (inputs, outputs) = ([a.clone(), b.clone()], [to.clone()]);
    context.with_pool(|pool| {
        // SAFETY: as demanded of the caller.
        unsafe {
            let inner = KernelContext::new(&inputs, &outputs, pool, no_scratch(), context.stop());
            builtin::BuiltinOperation::compute(&builtin::Builtin::new(SUM), &inner, inner.outputs())
        }
    })
}
