//! Work of a stream, or of a recording's step, as C structs.
#![forbid(unsafe_code)]

use super::opened::Opened;
use super::owned::{arguments, c_text, kernel_of};
use crate::abi::weir_device_work_kind_value as K;
use crate::abi::{weir_device_address, weir_device_copy, weir_device_fill, weir_device_work};
use crate::base::{Error, Result};
use crate::device::{Fill, Location, RecordedWork, Transfer};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

pub(super) fn kind(work: &RecordedWork<'_>) -> K {
    match work {
        RecordedWork::Launch(_) => K::WEIR_DEVICE_WORK_LAUNCH,
        RecordedWork::Copy(_) => K::WEIR_DEVICE_WORK_COPY,
        RecordedWork::Fill(_) => K::WEIR_DEVICE_WORK_FILL,
        RecordedWork::Branch(_) => K::WEIR_DEVICE_WORK_BRANCH,
        RecordedWork::Loop(_) => K::WEIR_DEVICE_WORK_LOOP,
    }
}

/// The struct with only its kind and its name set.
pub(super) fn blank(work: &RecordedWork<'_>, name: *const c_char) -> weir_device_work {
    weir_device_work {
        struct_size: size_of::<weir_device_work>(),
        kind: kind(work) as u32,
        reserved: 0,
        name,
        kernel: ptr::null_mut(),
        launch: ptr::null(),
        copy: ptr::null(),
        fill: ptr::null(),
        branch: ptr::null(),
        again: ptr::null(),
    }
}

pub(super) fn copy(device: &Arc<Opened>, transfer: &Transfer<'_>) -> Result<weir_device_copy> {
    let (to_device, to) = place(device, &transfer.to)?;
    let (from_device, from) = place(device, &transfer.from)?;
    let (struct_size, bytes) = (size_of::<weir_device_copy>(), transfer.bytes as u64);
    Ok(weir_device_copy { struct_size, bytes, to_device, to, from_device, from })
}

pub(super) fn fill(fill: &Fill<'_>) -> weir_device_fill {
    weir_device_fill {
        struct_size: size_of::<weir_device_fill>(),
        to: fill.address as u64,
        bytes: fill.bytes as u64,
        value: fill.value,
        reserved: [0; 7],
    }
}

/// The device whose memory a location is in (NULL: the host's), and its address.
fn place(device: &Arc<Opened>, place: &Location<'_>) -> Result<(*mut c_void, weir_device_address)> {
    Ok(match *place {
        Location::Host(address) => (ptr::null_mut(), address.get() as u64),
        Location::Device(address) => (device.handle(), address as u64),
        Location::Peer(peer, address) => (device.partner(peer)?, address as u64),
    })
}

/// Passes a launch, a copy or a fill to `f` as a C struct, which lives during the call. `scratch` is a launch's scratch
/// memory.
pub(super) fn with<R>(
    device: &Arc<Opened>,
    work: &RecordedWork<'_>,
    scratch: Option<(usize, usize)>,
    f: impl FnOnce(*const weir_device_work) -> R,
) -> Result<R> {
    let name = c_text(work.name());
    let mut written = blank(work, name.as_ptr());
    let (called, copied, filled);
    match work {
        RecordedWork::Launch(launch) => {
            written.kernel = kernel_of(launch, device)?;
            called = arguments(launch, scratch);
            written.launch = &raw const called;
        }
        RecordedWork::Copy(transfer) => {
            copied = copy(device, transfer)?;
            written.copy = &raw const copied;
        }
        RecordedWork::Fill(bytes) => {
            filled = fill(bytes);
            written.fill = &raw const filled;
        }
        RecordedWork::Branch(_) | RecordedWork::Loop(_) => return Err(Error::internal("a step with steps of its own")),
    }
    Ok(f(&raw const written))
}
