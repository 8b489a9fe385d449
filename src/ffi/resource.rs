//! Resources of any kind, by name and by number.
//!
//! Chapter: Resources.

use super::argument::{out_ptr, out_value, string};
use super::guard::{guard, guard_release};
use super::{handle, task, text, versioned};
use crate::abi::*;
use crate::base::{Desc, Error, Ref, Result, dtype, text as words};
use crate::engine::Engine;
use crate::resource::{self, DEFAULT_CONTAINER, HostObject, Listed, Resource, ResourceBody, ResourceKind};
use crate::sync::ambient;
use std::any::Any;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// The container of a call: NULL is the default container.
///
/// # Safety
/// As `string`.
pub(super) unsafe fn container<'a>(container: *const c_char) -> Result<&'a str> {
    // SAFETY: as demanded of the caller.
    if container.is_null() { Ok(DEFAULT_CONTAINER) } else { unsafe { string(container, "container") } }
}

/// The shared end of every creation: the resource, under its name if it has one.
///
/// # Safety
/// `place` and `name` are NULL or strings.
pub(super) unsafe fn create(
    engine: &Engine,
    place: *const c_char,
    name: *const c_char,
    make: impl FnOnce() -> Result<ResourceBody>,
) -> Result<Ref<Resource>> {
    // SAFETY: as demanded of the caller.
    let (place, name) = unsafe {
        let name = if name.is_null() { None } else { Some(string(name, "name")?) };
        (container(place)?, name)
    };
    // Before anything is allocated for it.
    resource::check_container(place)?;
    name.map_or(Ok(()), resource::check_name)?;
    let resource = Resource::create(engine.resources(), make()?)?;
    if let Some(name) = name {
        engine.resources().enter(place, name, &resource)?;
    }
    Ok(resource)
}

/// Finds a resource by its name. `container` NULL = "default"; `kind` WEIR_RESOURCE_ANY = any kind.
///
/// Errors: NOT_FOUND (no such container, or no such resource in it); INVALID_ARGUMENT (NULL, a bad name, another kind).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_lookup(
    engine: *mut weir_engine,
    container: *const c_char,
    name: *const c_char,
    kind: weir_resource_kind,
    out_resource: *mut *mut weir_resource,
) -> weir_status {
    guard("weir_resource_lookup", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, container, name) = unsafe {
            let out = out_ptr(out_resource, "out_resource")?;
            (out, handle::borrow(engine, "engine")?, self::container(container)?, string(name, "name")?)
        };
        handle::into_c(engine.resources().lookup(container, name, ResourceKind::from_value(kind)?)?, out)
    })
}

/// Finds a resource by its name, or creates it: then `build` is called with `arg`, in this thread and once, and the
/// resource that it creates with name NULL gets the name. Threads that look it up meanwhile wait for it; if `build`
/// fails, its code is this call's, and one of them tries in turn. A call in a worker of a pool, or inside of a build
/// function, does not wait but fails.
///
/// Blocking: while `build` runs here or in another thread. Errors: FAILED_PRECONDITION (another call is making it, and
/// waiting here may block a worker or never end); INVALID_ARGUMENT (NULL, a bad name, another kind, `build` gave no
/// resource, or one with a name or of another engine); the code that `build` returned.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_lookup_or_create(
    engine: *mut weir_engine,
    container: *const c_char,
    name: *const c_char,
    kind: weir_resource_kind,
    build: weir_resource_build_fn,
    arg: *mut c_void,
    out_resource: *mut *mut weir_resource,
) -> weir_status {
    guard("weir_resource_lookup_or_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, container, name) = unsafe {
            let out = out_ptr(out_resource, "out_resource")?;
            (out, handle::borrow(engine, "engine")?, self::container(container)?, string(name, "name")?)
        };
        let build = build.ok_or_else(|| Error::null("build"))?;
        let kind = ResourceKind::from_value(kind)?;
        let make = || {
            let mut made: *mut weir_resource = std::ptr::null_mut();
            // SAFETY: the host's function with its own argument.
            let status = ambient::call(|| unsafe { build(arg, &raw mut made) });
            // SAFETY: the host passed its reference to weir, or NULL.
            let resource = unsafe { handle::share_opt(made, "*out_resource of build") };
            // SAFETY: as above; `share_opt` took a reference of its own.
            unsafe { handle::release(made) };
            match (status, resource?) {
                (0, Some(resource)) => Ok(resource),
                (0, None) => Err(Error::invalid(format!("the build function of '{name}' gave no resource"))),
                (status, _) => Err(Error::from_status(status, format_args!("the build function of '{name}'"))),
            }
        };
        handle::into_c(engine.resources().lookup_or_make(container, name, kind, make)?, out)
    })
}

/// Keeps a host object: `object` is the host's, weir only hands it out. `type_name` (at most 63 bytes) states its type,
/// so that it is not taken for something else. `destroy` (may be NULL) is called with `object` exactly once, when
/// nothing refers to it any more, in any thread; not if this call fails.
///
/// Ownership: `object` passes to the resource if `destroy` is given. Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a
/// bad name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_create_host(
    engine: *mut weir_engine,
    container: *const c_char,
    name: *const c_char,
    type_name: *const c_char,
    object: *mut c_void,
    destroy: weir_destroy_fn,
    out_resource: *mut *mut weir_resource,
) -> weir_status {
    guard("weir_resource_create_host", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_resource, "out_resource")?;
            let (engine, type_name) = (handle::borrow(engine, "engine")?, string(type_name, "type_name")?);
            if type_name.is_empty() || type_name.len() > 63 {
                let bytes = type_name.len();
                return Err(Error::invalid(format!("type_name has {bytes} bytes, expected 1 to 63")));
            }
            let destroy = Arc::new(task::Destroy::new(destroy, object));
            let kept: Box<dyn Any + Send + Sync> = Box::new(Arc::clone(&destroy));
            let made =
                create(engine, container, name, || Ok(ResourceBody::Host(HostObject::new(type_name, object, kept))))?;
            handle::into_c(made, out)?;
            destroy.adopt();
            Ok(())
        }
    })
}

/// The object passed to weir_resource_create_host, if it is of this type.
///
/// Errors: INVALID_ARGUMENT (NULL, another kind, another type).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_get_host(
    resource: *const weir_resource,
    type_name: *const c_char,
    out_object: *mut *mut c_void,
) -> weir_status {
    guard("weir_resource_get_host", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, resource, type_name) = unsafe {
            let out = out_ptr(out_object, "out_object")?;
            (out, handle::borrow(resource, "resource")?, string(type_name, "type_name")?)
        };
        let host = resource.host()?;
        if host.type_name() != type_name {
            let (text, have) = (resource.text(), host.type_name());
            return Err(Error::invalid(format!("{text} is of type '{have}', expected '{type_name}'")));
        }
        *out = host.object();
        Ok(())
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_retain(resource: *mut weir_resource) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_resource_retain", || unsafe { handle::retain(resource, "resource") })
}

/// Gives up one reference. NULL does nothing. A resource with a name stays alive under it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_release(resource: *mut weir_resource) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_resource_release", || unsafe { handle::release(resource) });
}

/// Removes a name. The resource ends with its last reference: programs compiled with it continue. Its id is stale at
/// once, and kernels that name it are refused.
///
/// Blocking: never; a destroy function of the host may run in here. Errors: NOT_FOUND (no such container, or no such
/// resource in it).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_delete(
    engine: *mut weir_engine,
    container: *const c_char,
    name: *const c_char,
) -> weir_status {
    guard("weir_resource_delete", || {
        // SAFETY: the caller's pointers, as documented.
        let (engine, container, name) =
            unsafe { (handle::borrow(engine, "engine")?, self::container(container)?, string(name, "name")?) };
        engine.resources().delete(container, name)
    })
}

/// Removes all names of a container, as weir_resource_delete does. A container that does not exist counts as cleared.
/// `out_count` (may be NULL) receives the number of removed names.
///
/// Blocking: never; destroy functions of the host may run in here.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_clear(
    engine: *mut weir_engine,
    container: *const c_char,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_resource_clear", || {
        // SAFETY: the caller's pointers, as documented.
        let (engine, container) = unsafe { (handle::borrow(engine, "engine")?, self::container(container)?) };
        let count = engine.resources().clear(container)?;
        if !out_count.is_null() {
            // SAFETY: not NULL, so writable as documented.
            unsafe { out_value(out_count, "out_count") }?.set(count);
        }
        Ok(())
    })
}

/// Lists the resources of a container, or of all (`container` NULL), in the order of containers and names. Set
/// struct_size of the first entry: it is the distance between entries, and weir stores it in every entry that it fills.
/// `out_count` receives the number of resources. capacity 0 only asks for the number (infos may then be NULL).
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, a bad name); OUT_OF_RANGE if capacity is too small (out_count is set,
/// the entries are left alone).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_list(
    engine: *mut weir_engine,
    container: *const c_char,
    infos: *mut weir_resource_info,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_resource_list", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, container) = unsafe {
            let container = if container.is_null() { None } else { Some(string(container, "container")?) };
            (out_value(out_count, "out_count")?, handle::borrow(engine, "engine")?, container)
        };
        if capacity > 0 {
            // Before anything is written. SAFETY: the caller's array, as documented.
            unsafe { versioned::write_array(infos, &[], "infos") }?;
        }
        let all = engine.resources().list(container)?;
        out.set(all.len());
        if capacity == 0 {
            return Ok(());
        }
        if capacity < all.len() {
            return Err(Error::out_of_range(format!("capacity is {capacity}, there are {} resources", all.len())));
        }
        let values: Vec<_> = all.iter().map(info).collect();
        // SAFETY: the caller's array, as documented; it has room for all.
        unsafe { versioned::write_array(infos, &values, "infos") }
    })
}

fn info(Listed { resource, references, has_name }: &Listed) -> weir_resource_info {
    let (variable, table) = (resource.variable().ok(), resource.table().ok());
    let place = resource.place().filter(|_| *has_name);
    let (container, name) = place.map_or(("", ""), |place| (&place.container, &place.name));
    let desc = variable.map(|variable| *variable.desc()).or(table.map(|table| *table.row()));
    weir_resource_info {
        struct_size: 0,
        id: resource.number(),
        kind: resource.kind().value(),
        optimistic: u32::from(variable.is_some_and(|variable| variable.is_optimistic())),
        references: *references as u64,
        bytes: resource.bytes() as u64,
        rows: table.map_or(0, |table| table.len() as u64),
        container: words::fixed(container),
        name: words::fixed(name),
        type_name: words::fixed(resource.host().map_or("", |host| host.type_name())),
        desc: desc.unwrap_or(Desc::new(dtype::ANY, &[])),
    }
}

/// Fills *out_info with a description of a resource.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_get_info(
    resource: *const weir_resource,
    out_info: *mut weir_resource_info,
) -> weir_status {
    guard("weir_resource_get_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let resource = handle::share(resource, "resource")?;
            versioned::write(out_info, &info(&Listed::of(resource)), "out_info")
        }
    })
}

/// The resource with this id.
///
/// Errors: NOT_FOUND (it was destroyed, or never was).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_from_id(
    engine: *mut weir_engine,
    id: u64,
    out_resource: *mut *mut weir_resource,
) -> weir_status {
    guard("weir_resource_from_id", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_ptr(out_resource, "out_resource")?, handle::borrow(engine, "engine")?) };
        handle::into_c(engine.resources().by_number(id)?, out)
    })
}

/// Copies a list of the resources that were still referenced when their engine ended, and are still now: a line for
/// each, "engine cpu:0: variable 'x' of container 'default' (1 references)". "" if there are none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_resource_get_leaks(
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_resource_get_leaks", || unsafe { text::copy(&resource::leak_report(), buffer, capacity, out_length) })
}
