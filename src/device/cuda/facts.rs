//! The properties of a device.

use super::driver::Driver;
use super::table::CUdevice;
use crate::base::Result;
use cudarc::driver::sys::CUdevice_attribute_enum as A;

#[derive(Clone, Debug)]
pub struct CudaFacts {
    pub name: String,
    pub memory_bytes: u64,
    /// The same for the device in every process and every order of devices.
    pub uuid: [u8; 16],
    /// "0000:3b:00.0"
    pub pci_bus_id: String,
    /// Compute capability: 9.0 = [9, 0].
    pub capability: [u32; 2],
    pub multiprocessors: u32,
    pub max_threads_per_block: u32,
    /// Most shared memory of a block with opt-in.
    pub max_shared_bytes: u32,
    /// 12040 = CUDA 12.4.
    pub driver_version: i32,
}

impl CudaFacts {
    pub(super) fn of(driver: &Driver, device: CUdevice) -> Result<CudaFacts> {
        let table = driver.table();
        let attribute = |attribute| driver.attribute(device, attribute).map(|value| u32::try_from(value).unwrap_or(0));
        let (mut bytes, mut uuid) = (0, [0; 16]);
        // SAFETY: the driver's function, and a place for the answer.
        driver.check("cuDeviceTotalMem", unsafe { (table.device_total_mem)(&raw mut bytes, device) })?;
        // SAFETY: as above.
        driver.check("cuDeviceGetUuid", unsafe { (table.device_get_uuid)(&raw mut uuid, device) })?;
        let name = driver.text("cuDeviceGetName", |text, room| {
            // SAFETY: the driver's function, and a place for the answer of the length that it is told.
            unsafe { (table.device_get_name)(text, room, device) }
        })?;
        let pci_bus_id = driver.text("cuDeviceGetPCIBusId", |text, room| {
            // SAFETY: as above.
            unsafe { (table.device_get_pci_bus_id)(text, room, device) }
        })?;
        Ok(CudaFacts {
            name,
            memory_bytes: bytes as u64,
            uuid,
            pci_bus_id,
            capability: [
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ],
            multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            max_threads_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_shared_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            driver_version: driver.version(),
        })
    }
}
