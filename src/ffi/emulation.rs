//! Emulated devices: settings, counters, order and race reports.
//!
//! Chapter: Emulated devices.

use super::argument::out_value;
use super::guard::guard;
use super::{handle, versioned};
use crate::abi::*;
use crate::base::text::fixed;
use crate::base::{Error, Result, with_article};
use crate::device::DeviceKind;
use crate::device::emulated::{Emulated, Emulation, Race};
use crate::engine::{Engine, EngineAttr};

/// The device of an engine, if it is an emulated one.
fn emulated(engine: &Engine) -> Result<Emulated> {
    Emulated::of(engine.device())
        .ok_or_else(|| Error::precondition(format!("engine is {}, not an emulated one", engine.label())))
}

fn check_kind(attr: &EngineAttr) -> Result<()> {
    match attr.kind {
        DeviceKind::EMULATED => Ok(()),
        other => Err(Error::precondition(format!(
            "attr is for {} engine, only an emulated one has an emulation",
            with_article(other.name())
        ))),
    }
}

impl From<&Race> for weir_emulated_race {
    fn from(race: &Race) -> weir_emulated_race {
        weir_emulated_race {
            struct_size: 0,
            kind: race.kind.value(),
            reserved: 0,
            count: race.count,
            first_number: race.first.number,
            second_number: race.second.number,
            offset: race.offset as u64,
            bytes: race.bytes as u64,
            first_name: fixed(&race.first.name),
            first_stream: fixed(&race.first.queue),
            second_name: fixed(&race.second.name),
            second_stream: fixed(&race.second.queue),
            text: fixed(&race.text),
        }
    }
}

/// Emulation settings of an engine. The first engine on a device decides; another engine with different settings is
/// refused while the device is alive (after a second, in which its last use may end), and one without settings shares
/// the device.
///
/// Errors: INVALID_ARGUMENT (NULL, unknown flags, STRICT without CHECK); FAILED_PRECONDITION if the attribute's kind is
/// not EMULATED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_emulation(
    attr: *mut weir_engine_attr,
    emulation: *const weir_emulation,
) -> weir_status {
    guard("weir_engine_attr_set_emulation", || {
        // SAFETY: the caller's pointers, as documented.
        let (attr, given) = unsafe { (handle::borrow_mut(attr, "attr")?, versioned::read(emulation, "emulation")?) };
        check_kind(attr)?;
        let emulation = Emulation::from(given);
        emulation.check().map_err(|error| error.within("emulation"))?;
        attr.device_settings = Some(emulation.settings());
        Ok(())
    })
}

/// The emulation that was set, or all 0. In the attributes of an engine: its device's emulation.
///
/// Errors: FAILED_PRECONDITION if the attribute's kind is not EMULATED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_emulation(
    attr: *const weir_engine_attr,
    out_emulation: *mut weir_emulation,
) -> weir_status {
    guard("weir_engine_attr_get_emulation", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let attr = handle::borrow(attr, "attr")?;
            check_kind(attr)?;
            let set = attr.device_settings.as_deref().unwrap_or_default();
            let emulation = weir_emulation::from(Emulation::of_settings(set)?);
            versioned::write(out_emulation, &emulation, "out_emulation")
        }
    })
}

/// Counters of an emulated device since it was created, shared by all engines on it.
///
/// Errors: FAILED_PRECONDITION if the engine is not an emulated one.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_emulated_get_counters(
    engine: *const weir_engine,
    out_counters: *mut weir_emulated_counters,
) -> weir_status {
    guard("weir_emulated_get_counters", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let device = emulated(handle::borrow(engine, "engine")?)?;
            versioned::write(out_counters, &device.counters(), "out_counters")
        }
    })
}

/// The order in which the device executed its operations: their numbers (1 = the first that was submitted), the latest
/// ones, oldest first. `out_count` receives how many are kept, at most 16384; if capacity is less, the latest
/// `capacity` of them are stored. capacity 0 only asks for the number (numbers may then be NULL). Two runs with the
/// same seed and the same calls have the same order.
///
/// Errors: FAILED_PRECONDITION if the engine is not an emulated one.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_emulated_get_order(
    engine: *const weir_engine,
    numbers: *mut u64,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_emulated_get_order", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_value(out_count, "out_count")?, handle::borrow(engine, "engine")?) };
        let device = emulated(engine)?;
        if numbers.is_null() && capacity > 0 {
            return Err(Error::null("numbers"));
        }
        let (_, order) = device.order(usize::MAX);
        let latest = &order[order.len().saturating_sub(capacity)..];
        if capacity > 0 {
            // SAFETY: the caller's array has room for `capacity` numbers, and these are no more.
            unsafe { std::ptr::copy_nonoverlapping(latest.as_ptr(), numbers, latest.len()) };
        }
        out.set(order.len());
        Ok(())
    })
}

/// The checker's reports on an emulated device (WEIR_EMULATION_CHECK), in the order of their first finding: operations
/// that use the same bytes without being ordered. Findings that differ only in the operations' numbers are one report,
/// with a count; 256 different reports are kept. Set struct_size of the first entry, which is the distance between
/// entries. `out_count` receives the number of reports. capacity 0 only asks for the number (races may then be NULL).
///
/// Errors: FAILED_PRECONDITION if the engine is not an emulated one; OUT_OF_RANGE if capacity is too small (out_count
/// is set, the entries are left alone).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_emulated_get_races(
    engine: *const weir_engine,
    races: *mut weir_emulated_race,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_emulated_get_races", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_value(out_count, "out_count")?, handle::borrow(engine, "engine")?) };
        let device = emulated(engine)?;
        let found: Vec<_> = device.races().iter().map(weir_emulated_race::from).collect();
        if capacity == 0 {
            out.set(found.len());
            return Ok(());
        }
        // Before anything is written. SAFETY: the caller's array, as documented.
        unsafe { versioned::write_array(races, &[], "races") }?;
        out.set(found.len());
        if capacity < found.len() {
            return Err(Error::out_of_range(format!("capacity is {capacity}, there are {} reports", found.len())));
        }
        // SAFETY: the caller's array, as documented; it has room for all.
        unsafe { versioned::write_array(races, &found, "races") }
    })
}

/// Clears the reports and their count.
///
/// Errors: FAILED_PRECONDITION if the engine is not an emulated one.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_emulated_clear_races(engine: *mut weir_engine) -> weir_status {
    guard("weir_emulated_clear_races", || {
        // SAFETY: the caller's handle, as documented.
        emulated(unsafe { handle::borrow(engine, "engine") }?)?.clear_races();
        Ok(())
    })
}
