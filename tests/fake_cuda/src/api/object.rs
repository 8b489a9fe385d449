//! Objects of the user's that graphs keep. The last one to let go has the destructor called, on a thread of the
//! driver's, where it must not call the driver.

use crate::abi::{Handle, HostFunction, Kind, Out};
use crate::call::host_function;
use crate::graph::InUse;
use crate::status::{Code, Result};
use crate::world::lock;
use std::ffi::c_void;
use std::sync::Arc;

#[derive(Debug)]
pub struct Object {
    data: usize,
    destructor: unsafe extern "C" fn(*mut c_void),
}

impl Drop for Object {
    fn drop(&mut self) {
        let (data, destructor) = (self.data, self.destructor);
        // SAFETY: the program's function with what it gave for it, once.
        let call = move || unsafe { destructor(std::ptr::with_exposed_provenance_mut(data)) };
        std::thread::spawn(move || host_function(call));
    }
}

/// The program gives back so many of its references.
fn release(object: Handle, count: u32) -> Result<Arc<Object>> {
    let mut world = lock();
    let (found, left) = world.objects.get_mut(&object).ok_or(Code::INVALID_VALUE)?;
    if count == 0 || count > *left {
        return Err(Code::INVALID_VALUE);
    }
    *left -= count;
    let (found, is_over) = (Arc::clone(found), *left == 0);
    if is_over {
        world.objects.remove(&object);
    }
    Ok(found)
}

crate::entries! {
    fn cuUserObjectCreate(object: Out<Handle>, data: *mut c_void, destructor: HostFunction, count: u32, flags: u32) {
        object.check()?;
        let destructor = destructor.ok_or(Code::INVALID_VALUE)?;
        // CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
        if count == 0 || flags != 1 {
            return Err(Code::INVALID_VALUE);
        }
        let mut world = lock();
        let new = world.name(Kind::Object);
        world.objects.insert(new, (Arc::new(Object { data: data.expose_provenance(), destructor }), count));
        object.set(new)
    }

    fn cuUserObjectRelease(object: Handle, count: u32) {
        release(object, count).map(drop)
    }

    fn cuGraphRetainUserObject(graph: Handle, object: Handle, count: u32, flags: u32) {
        let _use = InUse::new(graph);
        // CU_GRAPH_USER_OBJECT_MOVE
        if flags > 1 || count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let found = match flags {
            1 => release(object, count)?,
            _ => lock().objects.get(&object).map(|(found, _)| Arc::clone(found)).ok_or(Code::INVALID_VALUE)?,
        };
        lock().graph(graph)?.objects.push(found);
        Ok(())
    }
}
