//! The effect of an operation. The device's addresses are translated only as it runs, so nothing else ever holds a
//! pointer into device memory.

use super::operation::{Act, Address, DeviceOperation};
use super::shared::SharedDevice;
use crate::base::{Error, Result};
use crate::predicate::{Comparison, Predicate};

pub(super) fn run(shared: &SharedDevice, operation: &mut DeviceOperation) -> Result<()> {
    let settings = &shared.settings;
    let name = operation.name.as_str();
    if operation.number == settings.fail_operation || (operation.copy > 0 && operation.copy == settings.fail_copy) {
        return Err(Error::internal(format!("{name} failed, as asked")));
    }
    if let Some(refused) = operation.refused.take() {
        return Err(refused);
    }
    match &operation.act {
        Act::Nothing => Ok(()),
        Act::Launch(kernel, scratch) => {
            for view in operation.inputs.iter().chain(&operation.outputs).filter(|view| view.bytes() > 0) {
                let data = own(shared, view.data() as usize, view.bytes())?;
                // SAFETY: so many bytes of the device's memory, which stays as long as the device.
                unsafe { view.set_data(data) };
            }
            // SAFETY: the views are translated, and the order of the streams says which operations use them, and the
            // scratch memory, and when.
            unsafe { kernel.call(&shared.reserve, &operation.inputs, &operation.outputs, *scratch) }
                .map_err(|error| error.within(name))
        }
        Act::Copy { to, from, bytes } => {
            let from = match &operation.staged {
                Some(staged) => staged.as_ptr(),
                None => at(shared, from, *bytes)?.cast_const(),
            };
            let to = at(shared, to, *bytes)?;
            // SAFETY: so many bytes each: of a device's memory, of staged bytes, or of the host's, as the maker of the
            // address has promised. They may overlap.
            unsafe { std::ptr::copy(from, to, *bytes) };
            Ok(())
        }
        Act::Fill { to, bytes, value } => {
            // SAFETY: so many bytes of the device's memory, which the order of the streams gives to this operation.
            unsafe { own(shared, *to, *bytes)?.write_bytes(*value, *bytes) };
            Ok(())
        }
        Act::Read(Predicate::Integer(integer)) => {
            let form = integer.form().unwrap_or(0);
            let word = word(shared, integer.address, form.unsigned_abs() as usize)?;
            operation.found = match form {
                ..0 => i64::from(word[0].cast_signed()),
                _ => i64::from(i32::from_le_bytes(word)),
            };
            Ok(())
        }
        Act::Read(Predicate::Comparison(Comparison { relation, dtype, addresses: [a, b] })) => {
            let numbers = [word(shared, *a, Comparison::BYTES)?, word(shared, *b, Comparison::BYTES)?];
            operation.found = i64::from(Comparison::of(*relation, *dtype, numbers));
            Ok(())
        }
    }
}

/// So many bytes of the device's memory, filled up with zeros.
fn word(shared: &SharedDevice, address: usize, bytes: usize) -> Result<[u8; 4]> {
    let mut word = [0; 4];
    let from = own(shared, address, bytes)?;
    assert!(bytes <= word.len());
    // SAFETY: so many bytes of the device's memory, which the order of the streams lets this operation read.
    unsafe { from.copy_to_nonoverlapping(word.as_mut_ptr(), bytes) };
    Ok(word)
}

fn own(shared: &SharedDevice, address: usize, bytes: usize) -> Result<*mut u8> {
    let outside =
        || Error::internal(format!("{bytes} bytes at {address:#x} are not in the memory of {}", shared.label));
    shared.reserve.translate(address, bytes).ok_or_else(outside)
}

/// The host pointer to the bytes at an address.
fn at(shared: &SharedDevice, address: &Address, bytes: usize) -> Result<*mut u8> {
    match address {
        Address::Host(address) => Ok(std::ptr::with_exposed_provenance_mut(address.get())),
        Address::Own(address) => own(shared, *address, bytes),
        Address::Peer(peer, address) => {
            let outside = || Error::internal(format!("{bytes} bytes at {address:#x} are not in the memory of a peer"));
            peer.translate(*address, bytes).ok_or_else(outside)
        }
    }
}
