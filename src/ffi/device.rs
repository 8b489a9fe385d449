//! Kinds of engines, and devices provided by the host or a plug-in library.
//!
//! Chapter: Device.

use super::argument::{array_mut, failure_text, out_value, string};
use super::guard::{guard, guard_value};
use super::{last_error, version, versioned};
use crate::abi::*;
use crate::base::{Code, Error, Result};
use crate::device::plugin::{Plugin, library};
use crate::device::{self, DeviceKind, Factory};
use crate::sync::fork;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

/// The kind with this name: "cpu", "cuda", "emulated", or a name registered by a plug-in. A name keeps its number for
/// the life of the process, even after its device provider is unregistered.
///
/// Errors: NOT_FOUND.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_kind_from_name(
    name: *const c_char,
    out_kind: *mut weir_engine_kind,
) -> weir_status {
    guard("weir_engine_kind_from_name", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, name) = unsafe { (out_value(out_kind, "out_kind")?, string(name, "name")?) };
        let none = || Error::new(Code::NotFound, format!("there is no kind of engines named '{name}'"));
        out.set(DeviceKind::from_name(name).ok_or_else(none)?.value());
        Ok(())
    })
}

/// The name of a kind, "cpu"; "?" for an unknown number.
#[unsafe(no_mangle)]
pub extern "C" fn weir_engine_kind_name(kind: weir_engine_kind) -> *const c_char {
    guard_value(c"?".as_ptr(), || DeviceKind::from_value(kind).map_or(c"?", DeviceKind::c_name).as_ptr())
}

/// The kinds that have a device provider, in ascending order; a machine may still have no device of a kind
/// (weir_engine_count). *out_count is the number of kinds; as many as fit are stored. A call with capacity 0 only asks
/// for the number.
///
/// Errors: OUT_OF_RANGE if capacity is not 0 and too small (*out_count is set).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_kind_list(
    out_kinds: *mut weir_engine_kind,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_engine_kind_list", || {
        // SAFETY: the caller's pointers, as documented.
        let (count, places) =
            unsafe { (out_value(out_count, "out_count")?, array_mut(out_kinds, capacity, "out_kinds")?) };
        let kinds = device::kinds();
        count.set(kinds.len());
        if capacity > 0 && capacity < kinds.len() {
            return Err(Error::out_of_range(format!("capacity is {capacity}, there are {} kinds", kinds.len())));
        }
        places.iter_mut().zip(&kinds).for_each(|(place, kind)| *place = kind.value());
        Ok(())
    })
}

/// An action to take back if the plug-in that performed it fails after all.
enum Undo {
    Register(DeviceKind, i32),
    Replace(DeviceKind, i32, Arc<dyn Factory>),
}

/// The plug-in that this thread is loading.
#[derive(Default)]
struct Loading {
    undo: Vec<Undo>,
    text: Option<String>,
}

thread_local! {
    static LOADING: RefCell<Option<Loading>> = const { RefCell::new(None) };
}

/// Records an action of the plug-in that is being loaded.
fn note(undo: impl FnOnce() -> Undo) {
    let _ = LOADING.try_with(|loading| {
        if let Some(loading) = &mut *loading.borrow_mut() {
            loading.undo.push(undo());
        }
    });
}

/// Reads a vtable.
///
/// # Safety
/// The caller's pointers are as the C documentation demands.
unsafe fn plugin(
    name: *const c_char,
    vtable: *const weir_device_vtable,
    ctx: *mut c_void,
) -> Result<(DeviceKind, Plugin)> {
    // SAFETY: as demanded of the caller.
    unsafe {
        let name = string(name, "name")?;
        let functions = versioned::read(vtable, "vtable")?;
        // A name is permanent, so it comes last.
        Plugin::check(name, &functions)?;
        let kind = DeviceKind::named(name)?;
        Ok((kind, Plugin::new(kind, functions, ctx)?))
    }
}

/// Registers the devices of a vtable as a kind of engines: a new kind, or one more provider of an existing kind. The
/// provider with the highest priority opens the devices; weir's own has priority 0. A provider of the kind "cpu"
/// replaces the host's own device: host threads still do the work of its engines, and their tensors have memory of its
/// host_allocate (WEIR_DEVICE_PINNED_MEMORY). From its vtable only device_count, device_open, device_close,
/// device_info, error_text and the functions for settings are used, and no others are required. `name` has 1 to 32 of
/// a-z, 0-9, '_' and '-', the first one a letter.
///
/// Blocking: never; no function of the vtable is called. Ownership: ctx passes to weir if this call succeeds:
/// vtable->release(ctx) is called when the provider is unregistered or replaced, and its last device closed. Errors:
/// INVALID_ARGUMENT (NULL, a required member that is NULL, which the text names, struct_size, name); ALREADY_EXISTS if
/// there is a provider with this priority (weir_device_replace replaces it).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_device_register(
    name: *const c_char,
    priority: i32,
    vtable: *const weir_device_vtable,
    ctx: *mut c_void,
) -> weir_status {
    guard("weir_device_register", || {
        fork::check()?;
        // SAFETY: the caller's pointers, as documented.
        let (kind, plugin) = unsafe { plugin(name, vtable, ctx) }?;
        fork::arm();
        device::register(kind, priority, Arc::new(plugin.clone()))?;
        plugin.adopt();
        note(|| Undo::Register(kind, priority));
        Ok(())
    })
}

/// Replaces the provider that has this priority. Devices that are open stay with the old provider; the new one opens
/// the next.
///
/// Blocking: as vtable->release of the old provider. Ownership: as weir_device_register. Errors: those of
/// weir_device_register; NOT_FOUND if there is no provider with this priority.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_device_replace(
    name: *const c_char,
    priority: i32,
    vtable: *const weir_device_vtable,
    ctx: *mut c_void,
) -> weir_status {
    guard("weir_device_replace", || {
        fork::check()?;
        // SAFETY: the caller's pointers, as documented.
        let (kind, plugin) = unsafe { plugin(name, vtable, ctx) }?;
        fork::arm();
        let old = device::replace(kind, priority, Arc::new(plugin.clone()))?;
        plugin.adopt();
        note(|| Undo::Replace(kind, priority, old));
        Ok(())
    })
}

/// Unregisters the provider of this kind and priority. Devices that are open stay until their engines are gone.
///
/// Blocking: as vtable->release. Ownership: weir gives up the vtable's ctx, see weir_device_register. Errors:
/// NOT_FOUND.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_device_unregister(name: *const c_char, priority: i32) -> weir_status {
    guard("weir_device_unregister", || {
        // SAFETY: the caller's pointer, as documented.
        let name = unsafe { string(name, "name") }?;
        let none = || Error::new(Code::NotFound, format!("there is no kind of engines named '{name}'"));
        let kind = DeviceKind::from_name(name).ok_or_else(none)?;
        device::unregister(kind, priority).map(drop)
    })
}

/// Error text for weir_device_load, from a plug-in that is about to fail.
unsafe extern "C" fn fail(text: *const c_char) {
    guard_value((), || {
        // SAFETY: the plug-in's text, as documented.
        let text = unsafe { failure_text(text, "text") }.unwrap_or("its text is NULL or not UTF-8").to_owned();
        let _ = LOADING.try_with(|loading| {
            if let Some(loading) = &mut *loading.borrow_mut() {
                loading.text = Some(text);
            }
        });
    });
}

static API: weir_device_plugin_api = weir_device_plugin_api {
    struct_size: size_of::<weir_device_plugin_api>(),
    version: version::PACKED,
    abi_version: version::WEIR_ABI_VERSION,
    device_register: Some(weir_device_register),
    device_replace: Some(weir_device_replace),
    device_unregister: Some(weir_device_unregister),
    last_error_message: Some(version::weir_last_error_message),
    fail: Some(fail),
};

const INIT: &CStr = c"weir_device_plugin_init";

/// Opens a plug-in library and lets it register its devices: its function weir_device_plugin_init
/// (weir_device_plugin_init_fn) is called in this thread. A loaded library stays loaded for the life of the process:
/// loading it once more does nothing. If it fails, its registrations are undone, and a later call tries again.
///
/// Thread safety: any thread, but not from inside weir_device_plugin_init of the same library. Blocking: while the
/// library is opened and initialised, here or in another thread. Errors: INVALID_ARGUMENT (NULL, or a library without
/// that function); NOT_FOUND if it cannot be opened (the text is the loader's); UNIMPLEMENTED where libraries cannot be
/// opened; else the status that weir_device_plugin_init returned.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_device_load(path: *const c_char) -> weir_status {
    guard("weir_device_load", || {
        // SAFETY: the caller's text, as documented; a string that was checked ends with a NUL.
        let (text, path) = unsafe { (string(path, "path")?, CStr::from_ptr(path)) };
        let loaded = library::load(path, INIT, |init| {
            // SAFETY: the function of this name has this type, as documented.
            ask(unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const weir_device_plugin_api) -> i32>(init)
            })
        });
        loaded.map(drop).map_err(|error| error.within(format_args!("plug-in '{text}'")))
    })
}

/// Calls a library's init function: all of its registrations stay, or none.
fn ask(init: unsafe extern "C" fn(*const weir_device_plugin_api) -> i32) -> Result<()> {
    fork::check()?;
    fork::arm();
    let outer = LOADING.with(|loading| loading.replace(Some(Loading::default())));
    last_error::clear();
    // SAFETY: the library's function; the struct lives as long as the process.
    let status = unsafe { init(&raw const API) };
    let done = LOADING.with(|loading| loading.replace(outer)).unwrap_or_default();
    if status == 0 {
        return Ok(());
    }
    for undo in done.undo.into_iter().rev() {
        // Another thread may have unregistered it meanwhile.
        let _ = match undo {
            Undo::Register(kind, priority) => device::unregister(kind, priority),
            Undo::Replace(kind, priority, old) => device::replace(kind, priority, old),
        };
    }
    // The plug-in's own text, else that of the call that failed in it.
    let text = done.text.or_else(|| last_error::with(|_, text| (!text.is_empty()).then(|| text.to_owned())));
    let name = INIT.to_string_lossy();
    Err(match (Code::from_status(status), text) {
        (Some(code), Some(text)) => Error::new(code, format!("{name}: {text}")),
        _ => Error::from_status(status, name),
    })
}
