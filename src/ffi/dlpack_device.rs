//! The DLPack device of an engine's memory.
#![forbid(unsafe_code)]

use crate::abi::DLDevice;
use crate::base::{Code, Error, Result};
use crate::device::DeviceKind;
use crate::engine::Engine;

const CPU: i32 = 1;
const CUDA: i32 = 2;
/// Host memory that a GPU can reach too.
const CUDA_HOST: i32 = 3;
/// For devices that the specification does not know.
const EXTENSION: i32 = 12;
const CUDA_MANAGED: i32 = 13;

pub(super) const NO_DEVICE: DLDevice = DLDevice { device_type: CPU, device_id: 0 };

/// The DLPack device of the engine's memory; fails if DLPack has no name for it.
pub(super) fn device(engine: &Engine) -> Result<DLDevice> {
    let device_type = match engine.kind() {
        _ if engine.accelerator().is_none() => return Ok(NO_DEVICE),
        DeviceKind::CUDA => CUDA,
        DeviceKind::EMULATED => EXTENSION,
        _ => {
            let text = format!("DLPack has no type for the memory of engine {}", engine.label());
            return Err(Error::new(Code::Unimplemented, text));
        }
    };
    Ok(DLDevice { device_type, device_id: engine.index() as i32 })
}

/// Refuses memory that is not the engine's.
pub(super) fn check(engine: &Engine, got: DLDevice) -> Result<()> {
    let expected = device(engine)?;
    let is_host = expected.device_type == CPU && matches!(got.device_type, CPU | CUDA_HOST);
    if is_host || got == expected {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "managed is in the memory of {}, expected {} for engine {}",
        text(got),
        text(expected),
        engine.label()
    )))
}

/// "kDLCUDA:0"
fn text(device: DLDevice) -> String {
    let id = device.device_id;
    match device.device_type {
        CPU => "kDLCPU".to_owned(),
        CUDA => format!("kDLCUDA:{id}"),
        CUDA_HOST => format!("kDLCUDAHost:{id}"),
        EXTENSION => format!("kDLExtDev:{id}"),
        CUDA_MANAGED => format!("kDLCUDAManaged:{id}"),
        other => format!("device type {other}:{id}"),
    }
}
