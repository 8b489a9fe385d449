//! Reads the C structs that a stream or a recording is given.

use super::check;
use super::checker::Ranges;
use super::kernel::text;
use super::operation::HostAddress;
use super::operation::{Act, Address};
use super::region::shared_form;
use super::shared::{SharedDevice, range};
use crate::abi::weir_device_relation_value as R;
use crate::abi::weir_device_work_kind_value as K;
use crate::abi::{weir_device_loop, weir_device_step, weir_device_step_list, weir_device_work, weir_tensor_view};
use crate::base::{Error, Result};
use crate::memory::View;
use crate::predicate::{Comparison, Integer, Predicate, Relation};
use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::Arc;

/// Work, checked.
pub(super) struct Given<'a> {
    pub name: Cow<'a, str>,
    pub act: Act,
    pub inputs: &'a [View],
    pub outputs: &'a [View],
    pub inner: GivenLists<'a>,
}

/// The inner lists of a branch or loop.
#[derive(Clone, Copy)]
pub(super) enum GivenLists<'a> {
    None,
    /// One of these lists runs.
    Branch(&'a [weir_device_step_list]),
    /// The body, and the steps in it behind which the predicate may be read again.
    Loop(&'a [weir_device_step], Option<&'a [usize]>),
}

/// # Safety
/// So many elements, which nobody writes.
unsafe fn slice<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: as demanded of the caller.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}

/// # Safety
/// A list of weir's, whose steps live as long.
pub(super) unsafe fn steps<'a>(list: &weir_device_step_list) -> &'a [weir_device_step] {
    // SAFETY: as demanded of the caller.
    unsafe { slice(list.steps, list.num_steps) }
}

/// The earlier steps that are over when a step begins.
///
/// # Safety
/// A step of weir's, with what it points to.
pub(super) unsafe fn after<'a>(step: &weir_device_step) -> &'a [usize] {
    // SAFETY: as demanded of the caller.
    unsafe { slice(step.after, step.num_after) }
}

impl SharedDevice {
    /// # Safety
    /// Work of weir's for this device, with what it points to.
    pub(super) unsafe fn given<'a>(&self, work: *const weir_device_work) -> Result<Given<'a>> {
        // SAFETY: as demanded of the caller, here and below.
        let work: &'a weir_device_work = unsafe { &*work };
        // SAFETY: as above.
        let name = unsafe { text(work.name) };
        let (mut inputs, mut outputs): (&[View], &[View]) = (&[], &[]);
        let mut inner = GivenLists::None;
        let is = |kind: K| work.kind == kind as u32;
        let act = if is(K::WEIR_DEVICE_WORK_LAUNCH) {
            // SAFETY: as above; a View is a weir_tensor_view.
            let (call, views) =
                unsafe { (&*work.launch, |first: *const weir_tensor_view, count| slice(first.cast::<View>(), count)) };
            (inputs, outputs) = (views(call.inputs, call.num_inputs), views(call.outputs, call.num_outputs));
            self.check_tensors(inputs, outputs)?;
            // SAFETY: a kernel that `kernel_create` gave, which lives; this takes a reference of its own.
            let form = unsafe { shared_form(work.kernel.cast_const().cast()) };
            let scratch = size(call.scratch)?;
            self.own("the scratch memory", scratch, form.scratch_bytes())?;
            Act::Launch(form, scratch)
        } else if is(K::WEIR_DEVICE_WORK_COPY) {
            // SAFETY: as above.
            let copy = unsafe { &*work.copy };
            let bytes = size(copy.bytes)?;
            let to = self.address("the destination", copy.to_device, copy.to, bytes)?;
            let from = self.address("the source", copy.from_device, copy.from, bytes)?;
            Act::Copy { to, from, bytes }
        } else if is(K::WEIR_DEVICE_WORK_FILL) {
            // SAFETY: as above.
            let fill = unsafe { &*work.fill };
            let (to, bytes) = (size(fill.to)?, size(fill.bytes)?);
            self.own("the destination", to, bytes)?;
            if bytes > 0 { Act::Fill { to, bytes, value: fill.value } } else { Act::Nothing }
        } else if is(K::WEIR_DEVICE_WORK_BRANCH) {
            // SAFETY: as above.
            let branch = unsafe { &*work.branch };
            // SAFETY: as above.
            inner = GivenLists::Branch(unsafe { slice(branch.branches, branch.num_branches) });
            self.read("its choice", Integer { address: size(branch.choice)?, dtype: branch.dtype }.into())?
        } else if is(K::WEIR_DEVICE_WORK_LOOP) {
            // SAFETY: as above.
            let again = unsafe { &*work.again };
            // SAFETY: as above.
            inner = unsafe {
                let behind = (!again.behind.is_null()).then(|| slice(again.behind, again.num_behind));
                GivenLists::Loop(steps(&*again.body), behind)
            };
            self.read("its predicate", predicate(again)?)?
        } else {
            return Err(Error::invalid(format!("{name} is work of the kind {}, which there is not", work.kind)));
        };
        Ok(Given { name, act, inputs, outputs, inner })
    }

    fn check_tensors(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        for (what, views) in [("input", inputs), ("output", outputs)] {
            if let Some((i, view)) = views.iter().enumerate().find(|(_, view)| !self.covers(view)) {
                return Err(Error::invalid(format!(
                    "{what} {i}: {} bytes at {:#x} are not in the memory of {}",
                    view.bytes(),
                    view.data() as usize,
                    self.label
                )));
            }
        }
        Ok(())
    }

    fn outside(what: &str, address: usize, bytes: usize, of: &str) -> Error {
        Error::invalid(format!("{what} is {bytes} bytes at {address:#x}, which are not {of}"))
    }

    /// Checks that the bytes are in this device's memory, and gives their address.
    fn own(&self, what: &str, address: usize, bytes: usize) -> Result<usize> {
        match self.reserve.translate(address, bytes) {
            Some(_) => Ok(address),
            None if bytes == 0 => Ok(self.reserve.start()),
            None => Err(Self::outside(what, address, bytes, &format!("in the memory of {}", self.label))),
        }
    }

    /// An address as the operation keeps it, checked. `device` is its owner; NULL = the host.
    fn address(&self, what: &str, device: *mut c_void, address: u64, bytes: usize) -> Result<Address> {
        let at = size(address)?;
        if device.is_null() {
            return match check::owner(at, bytes) {
                // SAFETY: the caller that gave the address keeps the memory until the copy is done.
                None => Ok(Address::Host(HostAddress::new(at))),
                Some(device) => Err(Self::outside(what, at, bytes, &format!("the host's but of {}", device.label))),
            };
        }
        if device.addr() == std::ptr::from_ref(self).addr() {
            return Ok(Address::Own(self.own(what, at, bytes)?));
        }
        match check::owner(at, bytes) {
            Some(peer) if peer.reserve.translate(at, bytes).is_some() => {
                Ok(Address::Peer(Arc::clone(&peer.reserve), at))
            }
            _ => Err(Self::outside(what, at, bytes, "in the memory of an emulated device")),
        }
    }

    fn read(&self, what: &str, predicate: Predicate) -> Result<Act> {
        for (address, bytes) in predicate.reads() {
            self.own(what, address, bytes)?;
        }
        Ok(Act::Read(predicate))
    }
}

fn size(number: u64) -> Result<usize> {
    usize::try_from(number).map_err(|_| Error::invalid(format!("{number} is more than an address can be")))
}

fn predicate(again: &weir_device_loop) -> Result<Predicate> {
    let addresses = [size(again.addresses[0])?, size(again.addresses[1])?];
    let relation = match again.relation {
        of if of == R::WEIR_DEVICE_NOT_ZERO as u32 => {
            return Ok(Integer { address: addresses[0], dtype: again.dtype }.into());
        }
        of if of == R::WEIR_DEVICE_EQ as u32 => Relation::Eq,
        of if of == R::WEIR_DEVICE_NE as u32 => Relation::Ne,
        of if of == R::WEIR_DEVICE_LT as u32 => Relation::Lt,
        of if of == R::WEIR_DEVICE_LE as u32 => Relation::Le,
        of if of == R::WEIR_DEVICE_GT as u32 => Relation::Gt,
        of if of == R::WEIR_DEVICE_GE as u32 => Relation::Ge,
        other => return Err(Error::invalid(format!("its relation is {other}, which there is not"))),
    };
    Ok(Predicate::Comparison(Comparison { relation, dtype: again.dtype, addresses }))
}

impl Given<'_> {
    /// The bytes that the operation reads and writes.
    pub(super) fn used(&self, reads: &mut Ranges, writes: &mut Ranges) {
        let tensors = |views: &[View], ranges: &mut Ranges| {
            let used = views.iter().filter(|view| view.bytes() > 0);
            ranges.extend(used.map(|view| range(view.data() as usize, view.bytes())));
        };
        match &self.act {
            Act::Launch(..) => {
                tensors(self.inputs, reads);
                tensors(self.outputs, writes);
            }
            Act::Copy { to, from, bytes } if *bytes > 0 => {
                reads.push(range(from.number(), *bytes));
                writes.push(range(to.number(), *bytes));
            }
            Act::Fill { to, bytes, .. } => writes.push(range(*to, *bytes)),
            Act::Read(what) => reads.extend(what.reads().map(|(from, bytes)| range(from, bytes))),
            Act::Copy { .. } | Act::Nothing => {}
        }
    }

    /// The number of bytes that it moves; `None` for a kernel.
    pub(super) fn bytes(&self) -> Option<usize> {
        match self.act {
            Act::Launch(..) => None,
            Act::Copy { bytes, .. } | Act::Fill { bytes, .. } => Some(bytes),
            Act::Nothing | Act::Read(_) => Some(0),
        }
    }
}
