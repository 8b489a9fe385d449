//! The driver itself: initialization, version, errors, and where its functions are.

use crate::abi::{In, Out};
use crate::call;
use crate::settings::SETTINGS;
use crate::status::{self, Code};
use std::ffi::{c_char, c_void};

crate::entries! {
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if SETTINGS.devices == 0 {
            return Err(Code::NO_DEVICE);
        }
        call::initialized();
        Ok(())
    }

    fn cuDriverGetVersion(version: Out<i32>) {
        version.set(SETTINGS.version)
    }

    fn cuGetErrorName(error: i32, text: Out<*const c_char>) {
        let found = status::texts(error);
        text.set(found.map_or(std::ptr::null(), |(name, _)| name.as_ptr()))?;
        found.map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetErrorString(error: i32, text: Out<*const c_char>) {
        let found = status::texts(error);
        text.set(found.map_or(std::ptr::null(), |(_, text)| text.as_ptr()))?;
        found.map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetProcAddress_v2(
        symbol: In<c_char>, function: Out<*mut c_void>, version: i32, flags: u64, result: Out<i32>,
    ) {
        let name = symbol.text()?;
        // Functions for the per-thread default stream are others.
        if flags & 2 != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        match call::find(&name, version.min(SETTINGS.version)) {
            Ok(address) => {
                result.set_if_wanted(0);
                function.set(address.cast_mut())
            }
            Err(is_known) => {
                result.set_if_wanted(if is_known { 2 } else { 1 });
                function.set(std::ptr::null_mut())?;
                Err(Code::NOT_FOUND)
            }
        }
    }
}
