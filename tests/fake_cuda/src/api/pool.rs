//! Memory pools, and memory that is allocated and freed in a stream's order.

use crate::abi::{AccessDesc, Handle, In, Kind, Out, PoolProps};
use crate::operation::Operation;
use crate::settings::SETTINGS;
use crate::space::{self, Block};
use crate::status::{Code, Result};
use crate::world::{Pool, World, lock};
use std::ffi::c_void;

const RESERVED_CURRENT: i32 = 5;
const RESERVED_HIGH: i32 = 6;
const USED_CURRENT: i32 = 7;
const USED_HIGH: i32 = 8;

impl World {
    /// A pool's block ends.
    pub fn uncharge(&mut self, block: &Block) {
        if let Some(pool) = block.pool.and_then(|pool| self.pools.get_mut(&pool)) {
            pool.used = pool.used.saturating_sub(block.size);
        }
    }
}

fn allocate(name: &str, address: Out<u64>, bytes: usize, pool: Option<Handle>, stream: Handle) -> Result {
    address.check()?;
    let mut world = lock();
    let stream = world.stream(stream)?;
    let device = world.current_device()?;
    // In a capture it would be a node that makes the graph one of a kind: nothing that is tested here wants that.
    world.refuse_captured(stream)?;
    let pool = match pool {
        Some(pool) => pool,
        None => world.device(device)?.pool,
    };
    let context = world.context()?;
    let of = world.pools.get_mut(&pool).ok_or(Code::INVALID_VALUE)?;
    let start = space::with(|space| space.allocate(name, bytes as u64, of.device, context, Some(pool)))?;
    of.used += bytes as u64;
    of.most_used = of.most_used.max(of.used);
    let bytes = start..start + bytes as u64;
    world.checker.forget(&bytes);
    world.enqueue(stream, name.to_owned(), Operation::Allocate(bytes), &[]);
    address.set(start)
}

fn attribute(pool: Handle, attribute: i32, value: Out<c_void>, is_set: bool) -> Result {
    value.check()?;
    let mut world = lock();
    let pool = world.pools.get_mut(&pool).ok_or(Code::INVALID_VALUE)?;
    match attribute {
        // Whether memory is reused so or so: the value is an int.
        1..=3 => {
            let value = Out(value.0.cast::<i32>());
            if is_set {
                pool.attributes.insert(attribute, u64::from(value.get()? != 0));
                return Ok(());
            }
            value.set(pool.attributes.get(&attribute).copied().unwrap_or(0) as i32)
        }
        4..=8 => {
            let value = Out(value.0.cast::<u64>());
            match (attribute, is_set) {
                (4, true) => {
                    pool.attributes.insert(4, value.get()?);
                    Ok(())
                }
                (RESERVED_HIGH | USED_HIGH, true) if value.get()? == 0 => {
                    pool.most_used = pool.used;
                    Ok(())
                }
                (_, true) => Err(Code::INVALID_VALUE),
                (RESERVED_CURRENT | USED_CURRENT, false) => value.set(pool.used),
                (RESERVED_HIGH | USED_HIGH, false) => value.set(pool.most_used),
                _ => value.set(pool.attributes.get(&attribute).copied().unwrap_or(0)),
            }
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

crate::entries! {
    fn cuMemPoolCreate(pool: Out<Handle>, props: In<PoolProps>) {
        pool.check()?;
        let props = props.get()?;
        let mut world = lock();
        // Pinned memory of a device.
        if props.alloc_type != 1 || props.location_type != 1 {
            return Err(Code::INVALID_VALUE);
        }
        world.device(props.location_id).map_err(|_| Code::INVALID_VALUE)?;
        let new = world.name(Kind::Pool);
        world.pools.insert(new, Pool::new(props.location_id, false));
        pool.set(new)
    }

    fn cuMemPoolDestroy(pool: Handle) {
        let mut world = lock();
        match world.pools.get(&pool) {
            Some(found) if !found.is_default => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        world.pools.remove(&pool);
        Ok(())
    }

    fn cuMemPoolSetAttribute(pool: Handle, which: i32, value: Out<c_void>) {
        attribute(pool, which, value, true)
    }

    fn cuMemPoolGetAttribute(pool: Handle, which: i32, value: Out<c_void>) {
        attribute(pool, which, value, false)
    }

    fn cuMemPoolTrimTo(pool: Handle, keep: usize) {
        let _ = keep;
        let world = lock();
        world.pools.get(&pool).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuMemPoolSetAccess(pool: Handle, rights: In<AccessDesc>, count: usize) {
        let rights = rights.list(count)?;
        let mut world = lock();
        let of = world.pools.get(&pool).ok_or(Code::INVALID_VALUE)?.device;
        for right in rights {
            world.device(right.location_id).map_err(|_| Code::INVALID_DEVICE)?;
            // Nobody takes a device's right to its own memory.
            if right.location_type != 1 || (right.location_id == of && right.flags != 3) {
                return Err(Code::INVALID_VALUE);
            }
            if right.location_id != of && !SETTINGS.has_peers {
                return Err(Code::INVALID_DEVICE);
            }
            let pool = world.pools.get_mut(&pool).ok_or(Code::INVALID_VALUE)?;
            match right.flags {
                3 => pool.open_to.insert(right.location_id),
                _ => pool.open_to.remove(&right.location_id),
            };
        }
        Ok(())
    }

    fn cuMemAllocFromPoolAsync(address: Out<u64>, bytes: usize, pool: Handle, stream: Handle) {
        allocate("cuMemAllocFromPoolAsync", address, bytes, Some(pool), stream)
    }

    fn cuMemAllocAsync(address: Out<u64>, bytes: usize, stream: Handle) {
        allocate("cuMemAllocAsync", address, bytes, None, stream)
    }

    fn cuMemFreeAsync(address: u64, stream: Handle) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        world.refuse_captured(stream)?;
        let block = space::look(|space| space.block(address).filter(|block| block.start == address).cloned());
        let block = block.ok_or(Code::INVALID_VALUE)?;
        world.uncharge(&block);
        world.enqueue(stream, format!("cuMemFreeAsync of {}", block.name), Operation::Free(address), &[]);
        Ok(())
    }
}
