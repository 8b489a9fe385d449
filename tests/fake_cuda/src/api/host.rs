//! Memory of the host's that the device reaches, and what an address belongs to.

use crate::abi::{Handle, Out};
use crate::space::{self, Owner};
use crate::status::{Code, Result};
use crate::world::{World, lock};
use std::ffi::c_void;

const CONTEXT: i32 = 1;
const MEMORY_TYPE: i32 = 2;
const DEVICE_POINTER: i32 = 3;
const HOST_POINTER: i32 = 4;
const BUFFER_ID: i32 = 7;
const IS_MANAGED: i32 = 8;
const DEVICE_ORDINAL: i32 = 9;
const RANGE_START: i32 = 11;
const RANGE_SIZE: i32 = 12;
const MAPPED: i32 = 13;
const MEMPOOL: i32 = 17;

/// An attribute's value, with its bytes.
enum Value {
    Word(u32),
    Long(u64),
}

/// Of memory that the driver does not know: none of its own.
fn attribute(world: &World, which: i32, address: u64) -> Result<Value> {
    space::look(|space| {
        let (kind, context, start, size, pool) = match space.owner(address) {
            Some(Owner::Device(block)) => (2, block.context, block.start, block.size, block.pool),
            Some(Owner::Pinned(pinned)) => (1, pinned.context, pinned.start, pinned.size, None),
            Some(Owner::Pageable) | None => return Err(Code::INVALID_VALUE),
        };
        let device = world.contexts.get(&context).map_or(0, |context| context.device);
        Ok(match which {
            CONTEXT => Value::Long(context.0 as u64),
            MEMORY_TYPE => Value::Word(kind),
            DEVICE_POINTER => Value::Long(address),
            HOST_POINTER if kind == 1 => Value::Long(address),
            HOST_POINTER => return Err(Code::INVALID_VALUE),
            BUFFER_ID => Value::Long(start),
            IS_MANAGED => Value::Word(0),
            DEVICE_ORDINAL => Value::Word(device as u32),
            RANGE_START => Value::Long(start),
            RANGE_SIZE => Value::Long(size),
            MAPPED => Value::Word(1),
            MEMPOOL => Value::Long(pool.unwrap_or(Handle::NULL).0 as u64),
            _ => return Err(Code::INVALID_VALUE),
        })
    })
}

fn put(value: &Value, to: Out<c_void>) -> Result {
    match *value {
        Value::Word(value) => Out(to.0.cast::<u32>()).set(value),
        Value::Long(value) => Out(to.0.cast::<u64>()).set(value),
    }
}

/// What the host ends must not be in use by operations that it has not waited for.
fn end(what: &str, address: *mut c_void, is_ours: bool) -> Result {
    let mut world = lock();
    let context = world.context()?;
    let start = address as u64;
    let size = space::look(|space| space.pinned(start).map(|pinned| pinned.size)).unwrap_or(0);
    // What is submitted and has not run yet uses it, too: it is looked at when all has run, with what the host knows
    // now.
    let known = world.host.clone();
    let tails = world.tails(context);
    let mut world = World::wait(world, &tails);
    let known = std::mem::replace(&mut world.host, known);
    world.check_end(what, &(start..start + size));
    world.host = known;
    world.forget_pinned(&(start..start + size));
    world.drop_guards(&(start..start + size));
    space::with(|space| space.host_free(start, is_ours)).map(drop)
}

crate::entries! {
    fn cuMemHostAlloc(address: Out<*mut c_void>, bytes: usize, flags: u32) {
        address.check()?;
        let context = lock().context()?;
        if flags > 7 {
            return Err(Code::INVALID_VALUE);
        }
        let start = space::with(|space| space.host_allocate(bytes, context, flags))?;
        address.set(start as *mut c_void)
    }

    fn cuMemAllocHost_v2(address: Out<*mut c_void>, bytes: usize) {
        address.check()?;
        let context = lock().context()?;
        let start = space::with(|space| space.host_allocate(bytes, context, 0))?;
        address.set(start as *mut c_void)
    }

    fn cuMemFreeHost(address: *mut c_void) {
        end("cuMemFreeHost", address, true)
    }

    fn cuMemHostRegister_v2(address: *mut c_void, bytes: usize, flags: u32) {
        let context = lock().context()?;
        if address.is_null() || bytes == 0 || flags > 15 {
            return Err(Code::INVALID_VALUE);
        }
        space::with(|space| space.host_register(address as u64, bytes, context, flags))
    }

    fn cuMemHostUnregister(address: *mut c_void) {
        end("cuMemHostUnregister", address, false)
    }

    // Addresses are unified: the device has the host's.
    fn cuMemHostGetDevicePointer_v2(device: Out<u64>, address: *mut c_void, flags: u32) {
        device.check()?;
        lock().context()?;
        let is_pinned = space::look(|space| space.pinned(address as u64).is_some());
        if flags != 0 || !is_pinned {
            return Err(Code::INVALID_VALUE);
        }
        device.set(address as u64)
    }

    fn cuMemHostGetFlags(flags: Out<u32>, address: *mut c_void) {
        let found = space::look(|space| space.pinned(address as u64).map(|pinned| pinned.flags));
        flags.set(found.ok_or(Code::INVALID_VALUE)?)
    }

    fn cuPointerGetAttribute(data: Out<c_void>, which: i32, address: u64) {
        data.check()?;
        let world = lock();
        put(&attribute(&world, which, address)?, data)
    }

    // Of memory that the driver does not know, all attributes are zero, and that is no failure.
    fn cuPointerGetAttributes(count: u32, which: Out<i32>, data: Out<*mut c_void>, address: u64) {
        let world = lock();
        for index in 0..count as usize {
            let (which, data) = (which.at(index).get()?, Out(data.at(index).get()?));
            match attribute(&world, which, address) {
                Ok(value) => put(&value, data)?,
                Err(_) if matches!(which, DEVICE_ORDINAL) => put(&Value::Word(-2i32 as u32), data)?,
                Err(_) if matches!(which, MEMORY_TYPE | IS_MANAGED | MAPPED) => put(&Value::Word(0), data)?,
                Err(_) if (1..=20).contains(&which) => put(&Value::Long(0), data)?,
                Err(code) => return Err(code),
            }
        }
        Ok(())
    }
}
