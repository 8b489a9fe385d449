//! What an operation does: addresses of the device are translated as it runs, so nothing else ever holds a pointer into
//! its memory.
#![forbid(unsafe_code)]

use super::queue::{Act, Address, Operation};
use super::work::Shared;
use crate::base::{Error, Result};
use crate::device::{Comparison, Predicate};
use crate::memory::{View, copy_bytes, fill_bytes};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a host function, which may panic.
pub(super) fn guarded(f: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let error = Error::from_panic(&*payload);
        // Dropping it might panic again.
        std::mem::forget(payload);
        Err(error)
    })
}

pub(super) fn run(shared: &Shared, operation: &mut Operation) -> Result<()> {
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
        Act::Launch(function) => {
            for view in operation.inputs.iter().chain(&operation.outputs).filter(|view| view.bytes() > 0) {
                view.set_data(own(shared, view.data() as usize, view.bytes())? as *mut u8);
            }
            guarded(|| function.call(&operation.inputs, &operation.outputs)).map_err(|error| error.within(name))
        }
        Act::Copy { to, from, bytes } => {
            let from = match &operation.staged {
                Some(staged) => staged.as_ptr().expose_provenance(),
                None => at(shared, from, *bytes)?,
            };
            copy_bytes(at(shared, to, *bytes)?, from, *bytes);
            Ok(())
        }
        Act::Fill { to, bytes, value } => {
            fill_bytes(own(shared, *to, *bytes)?, *value, *bytes);
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

/// So many bytes of the device's, and zeros.
fn word(shared: &Shared, address: usize, bytes: usize) -> Result<[u8; 4]> {
    let mut word = [0; 4];
    copy_bytes(word.as_mut_ptr().expose_provenance(), own(shared, address, bytes)?, bytes);
    Ok(word)
}

fn own(shared: &Shared, address: usize, bytes: usize) -> Result<usize> {
    let outside =
        || Error::internal(format!("{bytes} bytes at {address:#x} are not in the memory of {}", shared.label));
    shared.reserve.translate(address, bytes).ok_or_else(outside)
}

fn at(shared: &Shared, address: &Address, bytes: usize) -> Result<usize> {
    match address {
        Address::Host(address) => Ok(*address),
        Address::Own(address) => own(shared, *address, bytes),
        Address::Peer(peer, address) => own(peer, *address, bytes),
    }
}

/// Whether all bytes of a view are the device's.
pub(super) fn covers(shared: &Shared, view: &View) -> bool {
    view.bytes() == 0 || shared.reserve.translate(view.data() as usize, view.bytes()).is_some()
}
