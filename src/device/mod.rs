//! Devices: what an engine stands on. A device is made by a factory; factories are asked in a fixed order, one per
//! kind.
//!
//! The library has one factory so far, for the CPU. A kind without a factory is known by name and has no devices.
#![forbid(unsafe_code)]

mod cpu;

use crate::abi::{weir_engine_kind, weir_engine_kind_value as K};
use crate::base::{Code, Error, Result};
use crate::memory::Source;
use std::fmt::Debug;
use std::sync::Arc;

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    Cpu,
    Cuda,
}

impl DeviceKind {
    pub fn value(self) -> weir_engine_kind {
        match self {
            DeviceKind::Cpu => K::WEIR_ENGINE_CPU as weir_engine_kind,
            DeviceKind::Cuda => K::WEIR_ENGINE_CUDA as weir_engine_kind,
        }
    }

    pub fn from_value(value: weir_engine_kind) -> Result<DeviceKind> {
        [DeviceKind::Cpu, DeviceKind::Cuda]
            .into_iter()
            .find(|kind| kind.value() == value)
            .ok_or_else(|| Error::invalid(format!("kind is {value}, which is no engine kind")))
    }

    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
        }
    }
}

/// One device: memory, and facts.
pub trait Device: Send + Sync + Debug {
    fn kind(&self) -> DeviceKind;
    fn index(&self) -> u32;
    /// A name for people.
    fn name(&self) -> &str;
    /// Where an engine's memory comes from.
    fn memory(&self) -> Box<dyn Source>;
    /// Least alignment of what lies in it, in bytes.
    fn alignment(&self) -> usize;
}

/// Makes the devices of one kind.
trait Factory: Sync {
    fn kind(&self) -> DeviceKind;
    fn count(&self) -> u32;
    fn open(&self, index: u32) -> Result<Arc<dyn Device>>;
}

static FACTORIES: [&dyn Factory; 1] = [&cpu::Factory];

fn factory(kind: DeviceKind) -> Option<&'static dyn Factory> {
    FACTORIES.into_iter().find(|factory| factory.kind() == kind)
}

/// How many devices of a kind there are.
pub fn count(kind: DeviceKind) -> u32 {
    factory(kind).map_or(0, Factory::count)
}

/// Opens a device.
pub fn open(kind: DeviceKind, index: u32) -> Result<Arc<dyn Device>> {
    let factory = factory(kind)
        .ok_or_else(|| Error::new(Code::Unimplemented, format!("this build of weir has no {} engine", kind.name())))?;
    match factory.count() {
        count if index < count => factory.open(index),
        0 => Err(Error::new(Code::Unavailable, format!("this machine has no {} device", kind.name()))),
        count => Err(Error::out_of_range(format!("index is {index}, there are {count} {} devices", kind.name()))),
    }
}
