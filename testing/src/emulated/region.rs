//! Regions: a launch of a region's kernel calls the functions of its nodes one after the other, as one operation.
//! Values between nodes lie in the launch's scratch memory, each at an offset of its own. The checker is told of the
//! nodes one by one.

use super::checker::Ranges;
use super::kernel::{EmulatedKernel, text};
use super::reserve::AddressReserve;
use super::settings::Emulation;
use crate::abi::{weir_device_region, weir_device_region_node};
use crate::base::{Code, Desc, Error, Result};
use crate::memory::View;
use smallvec::SmallVec;
use std::sync::Arc;

/// The device's side of a kernel.
pub(super) enum Form {
    Function(EmulatedKernel),
    Region(CompiledRegion),
}

/// A region as this device runs it.
pub(super) struct CompiledRegion {
    nodes: Vec<CompiledNode>,
    /// The scratch memory of a launch.
    scratch_bytes: usize,
}

struct CompiledNode {
    name: String,
    /// The node's and the region's name, for the checker.
    told: String,
    form: Arc<Form>,
    inputs: Vec<(ValueStorage, Desc)>,
    outputs: Vec<(ValueStorage, Desc)>,
}

/// The storage of a value.
#[derive(Clone, Copy)]
enum ValueStorage {
    /// Tensors of the launch.
    Input(usize),
    Output(usize),
    /// A permanent address in device memory.
    Constant(usize),
    /// An offset in the scratch memory.
    Scratch(usize),
}

/// The period of SOME: it leaves the last of these nodes alone. And how many go together.
const STRIDE: usize = 4;
const TOGETHER: usize = 8;

/// The alignment of values in scratch memory.
const ALIGNMENT: usize = super::space::ALIGNMENT;

impl Emulation {
    /// The group number of a region's node.
    pub(super) fn claim(&self, node: usize) -> u32 {
        match self.regions {
            Emulation::NO_REGIONS => 0,
            Emulation::SOME_REGIONS if node % STRIDE == STRIDE - 1 => 0,
            Emulation::SOME_REGIONS => 1 + u32::from(node >= TOGETHER),
            _ => 1,
        }
    }
}

/// # Safety
/// So many elements, which nobody writes.
unsafe fn slice<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: as demanded of the caller.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}

impl CompiledRegion {
    /// # Safety
    /// A region of weir's for this device, with what it points to.
    pub(super) unsafe fn new(
        reserve: &AddressReserve,
        settings: &Emulation,
        number: u64,
        region: &weir_device_region,
    ) -> Result<CompiledRegion> {
        // SAFETY: as demanded of the caller, here and below.
        let region_name = unsafe { text(region.name) };
        let refuse = |code, why: &str| Err(Error::new(code, format!("{region_name} {why}")));
        if settings.regions == Emulation::DECLINED_REGIONS {
            return refuse(Code::Unimplemented, "is declined, as asked");
        }
        if number == settings.fail_region {
            return refuse(Code::Internal, "could not be compiled, as asked");
        }
        // SAFETY: as above.
        let (nodes, values, inputs, outputs) = unsafe {
            (
                slice(region.nodes, region.num_nodes),
                slice(region.values, region.num_values),
                slice(region.inputs, region.num_inputs),
                slice(region.outputs, region.num_outputs),
            )
        };
        let mut slots = vec![None; values.len()];
        let mut scratch_bytes = 0usize;
        for (value, slot) in values.iter().zip(&mut slots) {
            let bytes = value.desc.check()?.bytes()?;
            *slot = Some(match value.constant {
                0 => {
                    let at = scratch_bytes;
                    let end = at.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
                    scratch_bytes =
                        end.ok_or_else(|| Error::out_of_range(format!("{region_name} has too many bytes")))?;
                    ValueStorage::Scratch(at)
                }
                address => {
                    let at = usize::try_from(address).unwrap_or(usize::MAX);
                    own(reserve, at, bytes)?;
                    ValueStorage::Constant(at)
                }
            });
        }
        // The launch's own tensors need no scratch memory.
        if inputs.iter().chain(outputs).any(|&value| value >= slots.len()) {
            return refuse(Code::InvalidArgument, "has inputs or outputs that are no values of it");
        }
        inputs.iter().enumerate().for_each(|(at, &value)| slots[value] = Some(ValueStorage::Input(at)));
        outputs.iter().enumerate().for_each(|(at, &value)| slots[value] = Some(ValueStorage::Output(at)));
        let find = |numbers: &[usize]| {
            let find = |&number: &usize| Some((*slots.get(number)?.as_ref()?, values[number].desc));
            let found: Option<Vec<_>> = numbers.iter().map(find).collect();
            found.ok_or_else(|| Error::invalid(format!("{region_name} has a node of values that it has not")))
        };
        let node = |node: &weir_device_region_node| -> Result<CompiledNode> {
            // SAFETY: as above; a kernel that `kernel_create` gave, which lives.
            let (name, inputs, outputs, form) = unsafe {
                (
                    text(node.name).into_owned(),
                    slice(node.inputs, node.num_inputs),
                    slice(node.outputs, node.num_outputs),
                    shared_form(node.kernel.cast_const().cast()),
                )
            };
            let told = format!("node '{name}' in {region_name}");
            Ok(CompiledNode { name, told, form, inputs: find(inputs)?, outputs: find(outputs)? })
        };
        Ok(CompiledRegion { nodes: nodes.iter().map(node).collect::<Result<_>>()?, scratch_bytes })
    }

    /// The bytes that each node reads and writes, in a launch of weir's.
    fn each_use(
        &self,
        (inputs, outputs, scratch): (&[View], &[View], usize),
        mut f: impl FnMut(&str, &Ranges, &Ranges),
    ) {
        let ranges = |all: &[(ValueStorage, Desc)]| -> Ranges {
            let used = all.iter().filter_map(|(slot, desc)| {
                let (at, bytes) = (slot.address((inputs, outputs, scratch))?, desc.bytes().unwrap_or(0));
                (bytes > 0).then(|| at..at + bytes)
            });
            used.collect()
        };
        for node in &self.nodes {
            f(&node.told, &ranges(&node.inputs), &ranges(&node.outputs));
        }
    }

    /// # Safety
    /// The views' bytes are the host's and there during the call, and the scratch memory is this call's. Nobody writes
    /// the inputs, and nobody else has the outputs.
    unsafe fn call(&self, reserve: &AddressReserve, inputs: &[View], outputs: &[View], scratch: usize) -> Result<()> {
        let view = |&(slot, desc): &(ValueStorage, Desc)| -> Result<View> {
            let bytes = desc.bytes()?;
            let none = || Error::internal("a region was launched with fewer tensors than it has");
            let given = slot.address((inputs, outputs, scratch)).ok_or_else(none)?;
            let data = match slot {
                ValueStorage::Input(_) | ValueStorage::Output(_) => std::ptr::with_exposed_provenance_mut(given),
                ValueStorage::Constant(_) | ValueStorage::Scratch(_) if bytes == 0 => std::ptr::null_mut(),
                ValueStorage::Constant(_) | ValueStorage::Scratch(_) => own(reserve, given, bytes)?,
            };
            // SAFETY: as demanded of the caller, and so many bytes of the device's memory.
            Ok(unsafe { View::new(data, bytes, desc) })
        };
        for node in &self.nodes {
            let views = |all: &[(ValueStorage, Desc)]| all.iter().map(view).collect::<Result<SmallVec<[View; 8]>>>();
            let (inputs, outputs) = (views(&node.inputs)?, views(&node.outputs)?);
            let Form::Function(kernel) = &*node.form else {
                return Err(Error::internal("a node of a region is a region"));
            };
            // SAFETY: as demanded of the caller; each node reads what the nodes before it have left.
            unsafe { kernel.call(&inputs, &outputs) }
                .map_err(|error| error.within(format_args!("node '{}'", node.name)))?;
        }
        Ok(())
    }
}

impl ValueStorage {
    /// `None`: the launch has no such tensor.
    fn address(self, (inputs, outputs, scratch): (&[View], &[View], usize)) -> Option<usize> {
        match self {
            ValueStorage::Input(at) => inputs.get(at).map(|view| view.data().expose_provenance()),
            ValueStorage::Output(at) => outputs.get(at).map(|view| view.data().expose_provenance()),
            ValueStorage::Constant(at) => Some(at),
            ValueStorage::Scratch(at) => Some(scratch + at),
        }
    }
}

impl Form {
    pub(super) fn scratch_bytes(&self) -> usize {
        match self {
            Form::Function(_) => 0,
            Form::Region(compiled) => compiled.scratch_bytes,
        }
    }

    /// Reports the reads and writes of a region's nodes one by one. False for a plain kernel: it uses all tensors of
    /// the launch.
    pub(super) fn each_use(&self, launch: (&[View], &[View], usize), f: impl FnMut(&str, &Ranges, &Ranges)) -> bool {
        let Form::Region(compiled) = self else { return false };
        compiled.each_use(launch, f);
        true
    }

    /// # Safety
    /// The views' bytes are the host's and there during the call, and the scratch memory is this call's. Nobody writes
    /// the inputs, and nobody else has the outputs.
    pub(super) unsafe fn call(
        &self,
        reserve: &AddressReserve,
        inputs: &[View],
        outputs: &[View],
        scratch: usize,
    ) -> Result<()> {
        // SAFETY: as demanded of the caller.
        unsafe {
            match self {
                Form::Function(kernel) => kernel.call(inputs, outputs),
                Form::Region(compiled) => compiled.call(reserve, inputs, outputs, scratch),
            }
        }
    }
}

/// So many bytes of the device's.
fn own(reserve: &AddressReserve, address: usize, bytes: usize) -> Result<*mut u8> {
    let outside = || Error::invalid(format!("{bytes} bytes at {address:#x} are not in the device's memory"));
    reserve.translate(address, bytes).ok_or_else(outside)
}

/// # Safety
///
/// A kernel that `kernel_create` or `region_compile` gave, which lives.
pub(super) unsafe fn shared_form(kernel: *const Form) -> Arc<Form> {
    // SAFETY: as demanded of the caller.
    unsafe {
        Arc::increment_strong_count(kernel);
        Arc::from_raw(kernel)
    }
}
