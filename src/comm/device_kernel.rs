//! Communications in the memory of a device.
//!
//! On streams of the device's engine and in graphs, one is a kernel that is issued: the transport submits it to the
//! stream, whose order it keeps. So no thread of the host's waits for it, and compile makes one node of it, whose
//! output is there for what comes behind it on the device. It is never part of a recording: that all ranks record an
//! operation, or none does, would have to be agreed.
#![forbid(unsafe_code)]

use super::algorithm::{self, Wanted};
use super::kernel::Communication;
use super::transport::CommOperation;
use crate::abi::{weir_comm_op_value as Op, weir_comm_operation};
use crate::base::{Code, Desc, Error, Ref, Result, dtype};
use crate::device::{Location, Transfer};
use crate::engine::Engine;
use crate::kernel::{Effect, IssuedCall, Issuer, Kernel, KernelContext, Outputs, ProgramPlace, RunListener};
use crate::memory::View;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// Numbers of devices, beside those of communicators.
const OF_DEVICE: u64 = 1 << 63;

pub struct DeviceCommunication {
    of: Arc<Communication>,
    engine: Ref<Engine>,
}

impl DeviceCommunication {
    /// UNIMPLEMENTED if the transport has no such operation there.
    pub fn create(of: Arc<Communication>, engine: Ref<Engine>) -> Result<DeviceCommunication> {
        let (info, label) = (of.comm().info(), engine.label());
        let is_same = |kind, index| engine.device().kind() == kind && engine.device().index() == index;
        let Some(on) = info.on_device.filter(|on| is_same(on.kind, on.index)) else {
            return Err(Error::invalid(match info.on_device {
                None => format!("engine is {label}, and {} takes only memory of the host", of.comm().label()),
                Some(on) => {
                    format!(
                        "engine is {label}, and {} takes memory of {}:{}",
                        of.comm().label(),
                        on.kind.name(),
                        on.index
                    )
                }
            }));
        };
        let refuse = |what: &str| {
            let text =
                format!("{} {what} in the memory of {label}: create it on an engine of the CPU", of.comm().label());
            Err(Error::new(Code::Unimplemented, text))
        };
        if of.settings().is_deterministic {
            return refuse("does no WEIR_COMMUNICATION_DETERMINISTIC");
        }
        if !on.capabilities.takes(of.settings().op) {
            return refuse(&format!("does no {}", of.name()));
        }
        Ok(DeviceCommunication { of, engine })
    }
}

impl Kernel for DeviceCommunication {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn num_inputs(&self) -> usize {
        self.of.num_inputs()
    }

    fn num_outputs(&self) -> usize {
        self.of.num_outputs()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        if let (Some(by), Some(first), Some(on)) =
            (self.of.settings().reduction, inputs.first(), self.of.comm().info().on_device)
            && !on.capabilities.reduces(first.dtype, by)
        {
            let text = format!("input 0: the transport reduces no {} on {}", dtype::name(first.dtype), on.kind.name());
            return Err(Error::new(Code::Unimplemented, text));
        }
        self.of.outputs(inputs)
    }

    fn in_place(&self) -> bool {
        matches!(self.of.settings().op, Op::WEIR_COMM_ALL_REDUCE | Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_BROADCAST)
    }

    fn effects(&self) -> &[Effect] {
        self.of.effects()
    }

    /// Also with those of other communicators on the device: of two that have ranks in common each may fill it, and
    /// then wait for the other one.
    fn orders(&self) -> [Option<u64>; 2] {
        let device = self.engine.device();
        let of_device = OF_DEVICE | u64::from(device.kind().value()) << 32 | u64::from(device.index());
        [Some(self.of.comm().number()), Some(of_device)]
    }

    fn is_collective(&self) -> bool {
        self.of.is_collective()
    }

    fn inside(&self, place: &ProgramPlace<'_>) -> Option<Arc<dyn Kernel>> {
        Some(Arc::new(DeviceCommunication { of: self.of.inside(place), engine: Ref::clone(&self.engine) }))
    }

    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        self.of.listeners()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(&*self.of)
    }

    fn is_on_host(&self) -> bool {
        false
    }

    fn is_issued(&self) -> bool {
        true
    }

    fn issuer(&self) -> Result<Option<Arc<dyn Issuer>>> {
        Ok(Some(Arc::new(CommunicationIssuer { of: Arc::clone(&self.of), engine: Ref::clone(&self.engine) })))
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Err(Error::internal("a communication on a device was called"))
    }
}

struct CommunicationIssuer {
    of: Arc<Communication>,
    engine: Ref<Engine>,
}

impl CommunicationIssuer {
    /// This rank's part with one tensor: an input, an output, or both.
    fn operation(&self, wanted: &Wanted, [input, output]: [Option<&View>; 2]) -> Result<weir_comm_operation> {
        let is_root = self.of.comm().info().rank == wanted.peer;
        let [sends, receives] = algorithm::sides(wanted.op, is_root);
        let element = dtype::size(wanted.dtype)?;
        let parts = if wanted.has_parts() { self.of.comm().info().size } else { 1 };
        let bytes = input.or(output).map_or(0, View::bytes);
        let Wanted { op, reduction, dtype, peer, .. } = *wanted;
        let count = (bytes / element / parts) as u64;
        let operation =
            CommOperation { op, reduction, dtype, element_bytes: element, peer, tag: 0, count, send: None, recv: None };
        Ok(operation.raw(
            input.filter(|_| sends).map_or(std::ptr::null(), |view| view.data().cast_const().cast()),
            output.filter(|_| receives).map_or(std::ptr::null_mut(), |view| view.data().cast()),
        ))
    }
}

impl Issuer for CommunicationIssuer {
    fn issue(&self, call: &IssuedCall<'_>) -> Result<()> {
        let Some(accelerator) = self.engine.accelerator() else {
            return Err(Error::internal("a communication on a device, on the host"));
        };
        let (inputs, outputs) = (call.inputs, call.outputs);
        let descs: SmallVec<[Desc; 4]> = inputs.iter().map(|view| *view.desc()).collect();
        let request = self.of.request(&descs)?;
        let wanted = &request.wanted;
        let mut operations: SmallVec<[weir_comm_operation; 8]> = SmallVec::new();
        for at in 0..inputs.len().max(outputs.len()).max(1) {
            operations.push(self.operation(wanted, [inputs.get(at), outputs.get(at)])?);
        }
        // A rank that has its result already keeps it.
        let is_root = self.of.comm().info().rank == wanted.peer;
        let has_result = match wanted.op {
            Op::WEIR_COMM_BROADCAST => is_root,
            Op::WEIR_COMM_REDUCE => !is_root,
            _ => false,
        };
        for (from, to) in inputs.iter().zip(outputs).filter(|(from, to)| has_result && from.data() != to.data()) {
            let (from, bytes) = (Location::Device(from.data().expose_provenance()), from.bytes());
            let to = Location::Device(to.data().expose_provenance());
            if bytes > 0 {
                call.stream.copy(&Transfer { name: call.name, to, from, bytes })?;
            }
        }
        self.of.comm().enqueue(&request, &operations, call, accelerator)
    }
}
