//! Emulated devices: settings, counters, order and race reports.
//!
//! Chapter: Emulated devices.

use crate::abi::*;
use crate::argument::out_value;
use crate::base::text::fixed;
use crate::base::{Code, Error, with_article};
use crate::emulated::{Emulated, Emulation, Race, VTABLE};
use crate::library::{self, Result, guard, told};
use crate::sync::Mutex;
use crate::versioned::{self, Versioned};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

macro_rules! versioned {
    ($($name:ident : $last:ident : $last_type:ty),* $(,)?) => {
        // SAFETY: plain repr(C) structs of integers.
        $(unsafe impl Versioned for $name {
            const FIRST_SIZE: usize = std::mem::offset_of!($name, $last) + size_of::<$last_type>();
        })*
    };
}

// The last member of each struct in the first published header; later members are optional.
versioned! {
    weir_emulation: lose_operation: u64,
    weir_emulated_race: text: [c_char; 512],
    weir_emulated_counters: races: u64,
}

const NAME: &CStr = c"emulated";

static TABLE: weir_device_vtable = VTABLE;

/// The device of an engine, if it is an emulated one.
///
/// # Safety
/// NULL or an engine of the caller's.
unsafe fn emulated(engine: *const weir_engine) -> Result<Emulated> {
    if engine.is_null() {
        return Err(Error::null("engine").into());
    }
    // SAFETY: integers and characters, for which 0 is a value.
    let mut info = weir_engine_info { struct_size: size_of::<weir_engine_info>(), ..unsafe { std::mem::zeroed() } };
    // SAFETY: the caller's engine, and a struct with its size.
    told(unsafe { library::weir_engine_get_info(engine, &raw mut info) })?;
    let mut handle = 0;
    if info.kind == weir_engine_kind_value::WEIR_ENGINE_EMULATED as weir_engine_kind {
        // SAFETY: the caller's engine, and a place for the answer.
        told(unsafe { library::weir_engine_get_native_handle(engine, &raw mut handle) })?;
    }
    if let Some(found) = Emulated::with_handle(handle) {
        return Ok(found);
    }
    let mut name = [0; 256];
    // SAFETY: the caller's engine, and as many bytes; the last one stays 0, whatever the name's length.
    told(unsafe { library::weir_engine_get_name(engine, name.as_mut_ptr(), name.len() - 1, ptr::null_mut()) })?;
    // SAFETY: it ends with NUL.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
    Err(Error::precondition(format!("engine is {name}, not an emulated one")).into())
}

/// # Safety
/// NULL or an attribute object of the caller's.
unsafe fn check_kind(attr: *const weir_engine_attr) -> Result<()> {
    if attr.is_null() {
        return Err(Error::null("attr").into());
    }
    let mut kind = 0;
    // SAFETY: the caller's object, and a place for the answer.
    told(unsafe { library::weir_engine_attr_get_kind(attr, &raw mut kind) })?;
    if kind == weir_engine_kind_value::WEIR_ENGINE_EMULATED as weir_engine_kind {
        return Ok(());
    }
    // SAFETY: a name that is never freed.
    let name = unsafe { CStr::from_ptr(library::weir_engine_kind_name(kind)) }.to_string_lossy();
    let text = format!("attr is for {} engine, only an emulated one has an emulation", with_article(&name));
    Err(Error::precondition(text).into())
}

/// Whether this library has registered its devices.
static IS_REGISTERED: Mutex<bool> = Mutex::new(false);

/// Registers the devices by this function of libweir. A provider that is there already is no failure if it is this
/// library's.
///
/// # Safety
/// It is weir_device_register.
unsafe fn register(
    function: unsafe extern "C" fn(*const c_char, i32, *const weir_device_vtable, *mut c_void) -> weir_status,
) -> weir_status {
    // Held over the call: another thread's registration is this library's only once it is noted.
    let mut is_registered = IS_REGISTERED.lock();
    // SAFETY: the vtable's functions keep the contract, and need no context.
    let status = unsafe { function(NAME.as_ptr(), 0, &raw const TABLE, ptr::null_mut()) };
    if *is_registered && status == Code::AlreadyExists.status() {
        return 0;
    }
    *is_registered |= status == 0;
    status
}

/// Registers emulated devices with libweir, as the kind WEIR_ENGINE_EMULATED ("emulated"). Every program that uses them
/// calls this first; calling it again does nothing. weir_device_load with the path of libweir_testing does the same.
///
/// Errors: ALREADY_EXISTS if another plug-in has that name.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn weir_emulated_register() -> weir_status {
    guard("weir_emulated_register", || {
        // SAFETY: that function.
        told(unsafe { register(library::weir_device_register) })
    })
}

/// As weir_device_load calls it.
///
/// # Safety
/// libweir's functions for plug-ins.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_device_plugin_init(api: *const weir_device_plugin_api) -> weir_status {
    // SAFETY: as demanded of the caller.
    let given = unsafe { api.as_ref() }.and_then(|api| api.device_register);
    // SAFETY: libweir's function.
    given.map_or(Code::Unimplemented.status(), |function| unsafe { register(function) })
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
        let given = unsafe {
            check_kind(attr)?;
            versioned::read(emulation, "emulation")?
        };
        let emulation = Emulation::from(given);
        emulation.check().map_err(|error| error.within("emulation"))?;
        let settings = emulation.settings();
        // SAFETY: the caller's object, and so many bytes.
        told(unsafe { library::weir_engine_attr_set_device_settings(attr, settings.as_ptr().cast(), settings.len()) })
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
            check_kind(attr)?;
            let (mut set, mut bytes) = ([0u8; size_of::<weir_emulation>()], 0);
            let status =
                library::weir_engine_attr_get_device_settings(attr, set.as_mut_ptr().cast(), set.len(), &raw mut bytes);
            told(status)?;
            let emulation = weir_emulation::from(Emulation::of_settings(&set[..bytes.min(set.len())])?);
            Ok(versioned::write(out_emulation, &emulation, "out_emulation")?)
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
            let device = emulated(engine)?;
            Ok(versioned::write(out_counters, &device.counters(), "out_counters")?)
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
        let (out, device) = unsafe { (out_value(out_count, "out_count")?, emulated(engine)?) };
        if numbers.is_null() && capacity > 0 {
            return Err(Error::null("numbers").into());
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
        let (out, device) = unsafe { (out_value(out_count, "out_count")?, emulated(engine)?) };
        let found: Vec<_> = device.races().iter().map(weir_emulated_race::from).collect();
        if capacity == 0 {
            out.set(found.len());
            return Ok(());
        }
        // Before anything is written. SAFETY: the caller's array, as documented.
        unsafe { versioned::write_array(races, &[], "races") }?;
        out.set(found.len());
        if capacity < found.len() {
            return Err(
                Error::out_of_range(format!("capacity is {capacity}, there are {} reports", found.len())).into()
            );
        }
        // SAFETY: the caller's array, as documented; it has room for all.
        Ok(unsafe { versioned::write_array(races, &found, "races") }?)
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
        unsafe { emulated(engine) }?.clear_races();
        Ok(())
    })
}
