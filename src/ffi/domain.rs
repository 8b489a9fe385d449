//! Domains: several users of the library in one process, and the names of their engines.
//!
//! Chapter: Domain.

use super::argument::{out_ptr, out_value, string};
use super::guard::{guard, guard_release};
use super::{handle, sync, text};
use crate::abi::*;
use crate::base::Result;
use crate::engine::{Domain, DomainId, Extent, Scope};
use std::ffi::c_char;

/// Creates a domain. `name` is for texts: 1 to 24 letters, digits, '.', '_' and '-'. Two users need not know of each
/// other: if another live domain has the name, this one's gets a number, as in "torch#2". weir_engine_attr_set_domain
/// puts engines into a domain.
///
/// Errors: INVALID_ARGUMENT (NULL, or a name that is not 1 to 24 of the allowed characters); RESOURCE_EXHAUSTED
/// (memory, or 16 million domains were made).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_domain_create(name: *const c_char, out_domain: *mut *mut weir_domain) -> weir_status {
    guard("weir_domain_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, name) = unsafe { (out_ptr(out_domain, "out_domain")?, string(name, "name")?) };
        handle::into_c(Domain::create(name)?, out)
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_domain_retain(domain: *mut weir_domain) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_domain_retain", || unsafe { handle::retain(domain, "domain") })
}

/// Gives up one reference. NULL does nothing. Settings and engines hold references of their own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_domain_release(domain: *mut weir_domain) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_domain_release", || unsafe { handle::release(domain) });
}

/// Copies the domain's name, which is unique among live domains.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_domain_get_name(
    domain: *const weir_domain,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_domain_get_name", || {
        // SAFETY: the caller's handle and buffer, as documented.
        unsafe { text::copy(handle::borrow(domain, "domain")?.name(), buffer, capacity, out_length) }
    })
}

/// The domain that the engine is created in. NULL: the default domain, shared by all that set none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_domain(
    attr: *mut weir_engine_attr,
    domain: *mut weir_domain,
) -> weir_status {
    guard("weir_engine_attr_set_domain", || {
        // SAFETY: the caller's handles, as documented.
        let (attr, domain) = unsafe { (handle::borrow_mut(attr, "attr")?, handle::share_opt(domain, "domain")?) };
        attr.domain = domain;
        Ok(())
    })
}

/// The domain that was set, or NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_domain(
    attr: *const weir_engine_attr,
    out_domain: *mut *mut weir_domain,
) -> weir_status {
    guard("weir_engine_attr_get_domain", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_ptr(out_domain, "out_domain")?, handle::borrow(attr, "attr")?) };
        *out = handle::borrowed_opt_c(attr.domain.as_ref());
        Ok(())
    })
}

/// The engine's name in texts, instead of its device's: as in weir_domain_create, or "" for none (the default). If
/// another engine of the domain has it, this one's gets a number, as in "encoder#2". Engines without a name of their
/// own share their device's name, "cpu:0".
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_name(attr: *mut weir_engine_attr, name: *const c_char) -> weir_status {
    guard("weir_engine_attr_set_name", || {
        // SAFETY: the caller's pointers, as documented.
        let (attr, name) = unsafe { (handle::borrow_mut(attr, "attr")?, string(name, "name")?) };
        attr.set_name(name)
    })
}

/// Copies the name that was set, "" if none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_name(
    attr: *const weir_engine_attr,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_engine_attr_get_name", || {
        // SAFETY: the caller's handle and buffer, as documented.
        unsafe { text::copy(handle::borrow(attr, "attr")?.name(), buffer, capacity, out_length) }
    })
}

/// Copies the engine's name as all texts print it: its own name, else its device's, after the domain's: "cpu:0",
/// "encoder", "torch/cpu:0", "torch/encoder#2". Engines of two domains never have the same name; in one domain engines
/// without a name of their own may.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_get_name(
    engine: *const weir_engine,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_engine_get_name", || {
        // SAFETY: the caller's handle and buffer, as documented.
        unsafe { text::copy(&handle::borrow(engine, "engine")?.label(), buffer, capacity, out_length) }
    })
}

/// As weir_sync_devices, for the streams of the domain's engines only. It does not wait for other domains' work. NULL:
/// the default domain. Returns the first late error of each of these engines that this call has not returned yet: the
/// code of the first, and the texts of all. Streams, engines and weir_sync_devices still report their errors, and their
/// reports take nothing away from this call.
///
/// Work that runs of programs have submitted to these engines so far is covered, no matter which user started them; the
/// rest of such a run is covered if it was started on a stream of the domain. Work that waits for another domain's (an
/// event, a run over engines of both) is waited for with that.
///
/// Blocking: as weir_sync_devices. Errors: those of weir_sync_devices.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sync_domain(
    domain: *const weir_domain,
    timeout_ns: u64,
    results: *mut weir_engine_sync,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_sync_domain", || {
        // SAFETY: the caller's handle and pointers, as documented.
        unsafe { sync::sync(extent(domain)?, timeout_ns, results, capacity, out_count) }
    })
}

/// Begins a scope, as weir_async_scope_begin, for late failures on streams of the domain's engines. NULL: the default
/// domain. weir_async_scope_end waits for these streams only, and failures that it returns are not returned again by
/// weir_sync_domain.
///
/// Chapter: Scopes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_async_scope_begin_in(domain: *const weir_domain, out_scope: *mut u64) -> weir_status {
    guard("weir_async_scope_begin_in", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, extent) = unsafe { (out_value(out_scope, "out_scope")?, extent(domain)?) };
        out.set(Scope::begin(extent).number());
        Ok(())
    })
}

/// The engines of a domain; NULL = the default domain.
///
/// # Safety
/// As `handle::borrow`.
unsafe fn extent(domain: *const weir_domain) -> Result<Extent> {
    // SAFETY: as demanded of the caller.
    let domain = unsafe { handle::borrow_opt(domain, "domain") }?;
    Ok(Extent::Domain(domain.map_or(DomainId::DEFAULT, |domain| domain.id())))
}
