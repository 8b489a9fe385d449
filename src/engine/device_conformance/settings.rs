//! Clauses about settings and native handles.
#![forbid(unsafe_code)]

use super::bench::{DeviceBench, Finding, Seen};
use super::keep::told;
use super::memory;
use crate::base::{Code, Result as Outcome};
use crate::device::DeviceSettings;
use std::sync::Arc;

/// The device was opened with the settings that it had given before.
pub(super) fn kept(bench: &DeviceBench, given: Option<Arc<Vec<u8>>>) -> Finding {
    let Some(given) = given else {
        return Ok(Seen::NotOffered("it gives no settings".to_owned()));
    };
    for _ in 0..2 {
        match bench.device.settings() {
            None => return Err("it was opened with settings, and gives none".to_owned()),
            Some(now) if now != given => {
                return Err(format!("it was opened with {given:?}, which it has given, and now gives {now:?}"));
            }
            Some(_) => {}
        }
    }
    let again = DeviceSettings { attributes: Some(Arc::clone(&given)), ..DeviceSettings::default() };
    let fits = bench.device.fits(&again);
    fits.map_err(|error| format!("another engine with its own settings may not share it: {}", error.message()))?;
    memory::round_trip(bench, 4097)?;
    Ok(Seen::Kept(format!("{} bytes", given.len())))
}

/// `None`: there is no such handle.
fn or_none(handle: Outcome<u64>) -> Result<Option<u64>, String> {
    match handle {
        Err(error) if error.code() == Code::Unimplemented => Ok(None),
        handle => handle.map(Some).map_err(told),
    }
}

pub(super) fn handles(bench: &DeviceBench) -> Finding {
    let mut field = bench.field(2)?;
    let block = field.block(64)?;
    let event = field.mark(0)?;
    let all = |field: &mut super::field::Field<'_>| -> Result<[Option<u64>; 4], String> {
        Ok([
            or_none(bench.accelerator()?.native_handle())?,
            or_none(field.stream(0).native_handle())?,
            or_none(field.stream(1).native_handle())?,
            or_none(event.native_handle())?,
        ])
    };
    let first = all(&mut field)?;
    for round in 0..bench.rounds() {
        // Work comes and goes, and so do other objects.
        field.fill(round % 2, block, 64, round as u8)?;
        drop(bench.accelerator()?.event(false).map_err(told)?);
        field.finish(round % 2)?;
        let now = all(&mut field)?;
        if now != first {
            return Err(format!("device, two streams and an event had the handles {first:?}, and now have {now:?}"));
        }
    }
    field.take_down()?;
    let what = ["device", "streams", "streams", "events"];
    let mut has: Vec<&str> = what.into_iter().zip(first).filter_map(|(what, handle)| handle.map(|_| what)).collect();
    has.dedup();
    match has.is_empty() {
        true => Ok(Seen::NotOffered("it gives none".to_owned())),
        false => Ok(Seen::Kept(has.join(", "))),
    }
}
