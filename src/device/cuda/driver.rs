//! The CUDA driver of this machine: searched once, on the first use of CUDA.
//!
//! *One library for every machine.* weir is not linked against CUDA. A machine without a driver, with the toolkit's
//! stub instead, with a driver that is too old, or without a device has no CUDA engines, and the error says which of
//! these it is.

use super::status;
use super::table::{CUdevice, DriverTable, Found, GetProcAddress, Status};
use crate::base::{Code, Error, Result};
use crate::sync::{OnceLock, fork};
use cudarc::driver::sys;
use std::ffi::{CString, c_char, c_int};

/// The oldest driver with all required functions: CUDA 12.0.
const OLDEST: c_int = 12_000;

/// The version of the table's types: CUDA 13.0.
const NEWEST: c_int = 13_000;

#[derive(Debug)]
pub struct Driver {
    table: DriverTable,
    /// 12040 = CUDA 12.4.
    version: c_int,
    count: u32,
    /// WEIR_CUDA_SYNC=1: wait behind each piece of work, so that a failure names its culprit.
    waits: bool,
}

/// The driver, or the reason why there is none.
static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();

impl Driver {
    /// UNAVAILABLE if there is none that can be used.
    pub fn get() -> Result<&'static Driver> {
        fork::check()?;
        // A child of a process that has used the driver cannot use it.
        fork::arm();
        let driver = DRIVER.get_or_init(Driver::load);
        driver.as_ref().map_err(|why| Error::new(Code::Unavailable, why.clone()))
    }

    fn load() -> Result<Driver, String> {
        // SAFETY: libraries of these names are the driver, or do nothing when they are opened.
        if !unsafe { sys::is_culib_present() } {
            return Err("no CUDA driver is installed: there is no library libcuda.so.1".to_owned());
        }
        let find = |name: &'static str| {
            // SAFETY: it was found just now, so this does not panic; the symbol of this name is a function.
            unsafe { sys::culib().get::<Found>(name.as_bytes()) }.ok().map(|symbol| *symbol)
        };
        let has = |name: &'static str| Driver::has(&find, name);
        let find_optional = |name: &'static str| find(name).filter(|_| has(name));
        // SAFETY: as the driver's headers say.
        let table = unsafe { DriverTable::resolve(&find, &find_optional) }
            .map_err(|missing| format!("libcuda is no driver of CUDA 12.0 or later: it has no {missing}"))?;
        let check = |function: &str, status| match status {
            status::SUCCESS => Ok(()),
            failure => Err(format!("{function}: {}", status::text(&table, failure))),
        };
        // SAFETY: the driver's function.
        let init = unsafe { (table.init)(0) };
        match init {
            status::NO_DEVICE => {}
            status::STUB_LIBRARY => {
                return Err(
                    "libcuda is the stub of the CUDA toolkit, which only programs are linked against: the folder \
                            of the driver's own library must come first where libraries are looked for"
                        .to_owned(),
                );
            }
            status => check("cuInit", status)?,
        }
        let (mut version, mut count) = (0, 0);
        // SAFETY: the driver's function, and a place for the answer.
        check("cuDriverGetVersion", unsafe { (table.driver_get_version)(&raw mut version) })?;
        if version < OLDEST {
            return Err(format!("the driver is for CUDA {}, weir needs 12.0 or later", version_text(version)));
        }
        // Without a device the driver is not initialised, and answers no more than this.
        if init == status::SUCCESS {
            // SAFETY: as above.
            check("cuDeviceGetCount", unsafe { (table.device_get_count)(&raw mut count) })?;
        }
        let count = u32::try_from(count).unwrap_or(0);
        let waits = match std::env::var("WEIR_CUDA_SYNC").as_deref() {
            Err(_) | Ok("" | "0") => false,
            Ok("1") => true,
            Ok(other) => return Err(format!("the environment variable WEIR_CUDA_SYNC is '{other}', expected 0 or 1")),
        };
        Ok(Driver { table, version, count, waits })
    }

    /// Whether the driver itself reports that it has a function.
    fn has(find: &dyn Fn(&'static str) -> Option<Found>, name: &str) -> bool {
        let (Some(ask), Some(version)) = (find("cuGetProcAddress_v2"), find("cuDriverGetVersion")) else { return true };
        // SAFETY: the driver's functions with these names have these types.
        let (ask, version) = unsafe {
            let version = std::mem::transmute::<Found, unsafe extern "C" fn(*mut c_int) -> Status>(version);
            (std::mem::transmute::<Found, GetProcAddress>(ask), version)
        };
        // "cuGraphAddNode_v2" is asked for as "cuGraphAddNode".
        let base =
            name.rsplit_once("_v").filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(name, |(base, _)| base);
        let Ok(base) = CString::new(base) else { return false };
        let (mut of, mut found, mut why) = (0, std::ptr::null_mut(), 0);
        // SAFETY: the driver's functions; the name lives during the call, and there are places for the answers.
        let asked = unsafe {
            version(&raw mut of);
            ask(base.as_ptr(), &raw mut found, of.min(NEWEST), 0, &raw mut why)
        };
        asked == status::SUCCESS && !found.is_null()
    }

    pub fn table(&self) -> &DriverTable {
        &self.table
    }

    /// How many devices there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// 12040 = CUDA 12.4.
    pub fn version(&self) -> i32 {
        self.version
    }

    pub fn version_text(&self) -> String {
        version_text(self.version)
    }

    pub fn waits(&self) -> bool {
        self.waits
    }

    /// The error for a function that has failed.
    pub fn error(&self, function: &str, status: Status) -> Error {
        Error::new(status::code(status), format!("{function}: {}", status::text(&self.table, status)))
    }

    pub fn check(&self, function: &str, status: Status) -> Result<()> {
        if status == status::SUCCESS { Ok(()) } else { Err(self.error(function, status)) }
    }

    pub fn device(&self, index: u32) -> Result<CUdevice> {
        let mut device = 0;
        // SAFETY: the driver's function, and a place for the answer.
        self.check("cuDeviceGet", unsafe { (self.table.device_get)(&raw mut device, index as c_int) })?;
        Ok(device)
    }

    pub fn attribute(&self, device: CUdevice, attribute: sys::CUdevice_attribute) -> Result<i32> {
        let mut value = 0;
        let asked =
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (self.table.device_get_attribute)(&raw mut value, attribute as c_int, device) };
        self.check("cuDeviceGetAttribute", asked)?;
        Ok(value)
    }

    /// A text from a driver function that fills a buffer.
    pub fn text(&self, function: &str, ask: impl FnOnce(*mut c_char, c_int) -> Status) -> Result<String> {
        const ROOM: usize = 256;
        let mut text = [0u8; ROOM];
        self.check(function, ask(text.as_mut_ptr().cast(), ROOM as c_int - 1))?;
        let bytes = text.split(|&byte| byte == 0).next().unwrap_or(&[]);
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(version_text(12_040), "12.4");
        assert_eq!(version_text(13_000), "13.0");
    }

    /// With a driver or without: an answer, the same one again, and no panic.
    #[test]
    fn a_machine_has_a_driver_or_a_reason() {
        let [first, second] = [(); 2].map(|()| Driver::get().map(|driver| driver.count()));
        match (first, second) {
            (Ok(first), Ok(second)) => assert_eq!(first, second),
            (Err(first), Err(second)) => {
                assert_eq!(first.code(), Code::Unavailable);
                assert_eq!(first.message(), second.message());
            }
            _ => panic!("two answers"),
        }
    }
}
