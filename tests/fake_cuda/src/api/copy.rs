//! Copies and sets.
//!
//! *What is asynchronous.* A copy from pageable memory has read it when the call returns, and a copy to pageable memory
//! has written it: the call waits. Copies between devices and pinned memory are done in the stream's order, whenever
//! that comes.

use super::stream::submit;
use crate::abi::{Copy2D, Copy3D, Handle, In};
use crate::operation::{Copy, Fill, Operation};
use crate::status::{Code, Result};
use crate::world::{World, lock};
use std::ffi::c_void;

/// The name under which copies between devices are counted that go through the host's memory.
const STAGED: &str = "staged copy";

/// Whether the device that copies cannot reach both sides.
fn goes_through_host(to: u64, from: u64, stream: Handle) -> Result<bool> {
    let mut world = lock();
    let stream = world.stream(stream)?;
    let context = world.streams[&stream].context;
    let own = &world.contexts[&context];
    let reaches = |address| {
        let Some(block) = crate::space::look(|space| space.block(address).cloned()) else { return true };
        match block.pool.and_then(|pool| world.pools.get(&pool)) {
            _ if block.device == own.device => true,
            Some(pool) => pool.open_to.contains(&own.device),
            None => own.peers.contains(&block.context),
        }
    };
    Ok(!(reaches(to) && reaches(from)))
}

/// In a stream, or at once behind the legacy stream's work.
fn copy(name: &str, mut copy: Copy, stream: Option<Handle>) -> Result {
    let mut world = lock();
    let is_sync = stream.is_none();
    let stream = world.stream(stream.unwrap_or(Handle::LEGACY))?;
    if copy.is_empty() {
        return Ok(());
    }
    copy.check()?;
    if world.joined(stream).is_some() {
        // A node copies from where it is told to each time.
        return submit(&mut world, stream, name.to_owned(), Operation::Copy(copy));
    }
    world.check_legacy(stream)?;
    copy.stage();
    let waits = is_sync || copy.is_to_pageable();
    let context = world.streams[&stream].context;
    let point = world.enqueue(stream, name.to_owned(), Operation::Copy(copy.clone()), &[]);
    world.guard(name, stream, &copy, &point);
    if waits {
        let world = World::wait(world, &[point]);
        return world.lost(context).map_or(Ok(()), Err);
    }
    Ok(())
}

fn fill(name: &str, fill: Fill, stream: Option<Handle>) -> Result {
    let mut world = lock();
    let is_sync = stream.is_none();
    let stream = world.stream(stream.unwrap_or(Handle::LEGACY))?;
    if !fill.to.address.is_multiple_of(u64::from(fill.element)) {
        return Err(Code::INVALID_VALUE);
    }
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    fill.check()?;
    submit(&mut world, stream, name.to_owned(), Operation::Fill(fill))?;
    if is_sync {
        let context = world.streams[&stream].context;
        let tails = world.tails_before(stream);
        let world = World::wait(world, &tails);
        return world.lost(context).map_or(Ok(()), Err);
    }
    Ok(())
}

/// Rows of elements.
fn fill_rows(to: u64, pitch: usize, value: u32, element: u32, width: usize, height: usize, stream: Handle) -> Result {
    let rows = Fill::of_node(to, pitch as u64, value, element, width as u64, height as u64)?;
    fill("cuMemsetD2D", rows, Some(stream))
}

/// Bytes of a device, which are known to be there.
fn device_address(address: u64) -> Result<u64> {
    let is_device = crate::space::look(|space| space.is_device(address) || space.pinned(address).is_some());
    if is_device { Ok(address) } else { Err(Code::INVALID_VALUE) }
}

fn host_address(address: u64) -> Result<u64> {
    let is_device = crate::space::look(|space| space.is_device(address));
    if address == 0 || is_device { Err(Code::INVALID_VALUE) } else { Ok(address) }
}

fn to_device(to: u64, from: *const c_void, bytes: usize) -> Result<Copy> {
    Ok(Copy::row(device_address(to)?, host_address(from as u64)?, bytes as u64))
}

fn to_host(to: *mut c_void, from: u64, bytes: usize) -> Result<Copy> {
    Ok(Copy::row(host_address(to as u64)?, device_address(from)?, bytes as u64))
}

fn between(to: u64, from: u64, bytes: usize) -> Result<Copy> {
    Ok(Copy::row(device_address(to)?, device_address(from)?, bytes as u64))
}

crate::entries! {
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle) {
        copy("cuMemcpyAsync", Copy::row(to, from, bytes as u64), Some(stream))
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle) {
        copy("cuMemcpyHtoDAsync", to_device(to, from, bytes)?, Some(stream))
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle) {
        copy("cuMemcpyDtoHAsync", to_host(to, from, bytes)?, Some(stream))
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) {
        copy("cuMemcpyDtoDAsync", between(to, from, bytes)?, Some(stream))
    }

    fn cuMemcpyPeerAsync(
        to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, stream: Handle,
    ) {
        for context in [to_context, from_context] {
            if !lock().contexts.contains_key(&context) {
                return Err(Code::INVALID_CONTEXT);
            }
        }
        if goes_through_host(to, from, stream)? {
            crate::call::injected(STAGED);
        }
        copy("cuMemcpyPeerAsync", between(to, from, bytes)?, Some(stream))
    }

    fn cuMemcpy2DAsync_v2(params: In<Copy2D>, stream: Handle) {
        copy("cuMemcpy2DAsync", Copy::of_2d(&params.get()?)?, Some(stream))
    }

    fn cuMemcpy3DAsync_v2(params: In<Copy3D>, stream: Handle) {
        copy("cuMemcpy3DAsync", Copy::of_3d(&params.get()?)?, Some(stream))
    }

    fn cuMemcpy(to: u64, from: u64, bytes: usize) {
        copy("cuMemcpy", Copy::row(to, from, bytes as u64), None)
    }

    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) {
        copy("cuMemcpyHtoD", to_device(to, from, bytes)?, None)
    }

    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) {
        copy("cuMemcpyDtoH", to_host(to, from, bytes)?, None)
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) {
        copy("cuMemcpyDtoD", between(to, from, bytes)?, None)
    }

    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) {
        fill("cuMemsetD8", Fill::row(device_address(to)?, u32::from(value), 1, count as u64), None)
    }

    fn cuMemsetD32_v2(to: u64, value: u32, count: usize) {
        fill("cuMemsetD32", Fill::row(device_address(to)?, value, 4, count as u64), None)
    }

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle) {
        fill("cuMemsetD8Async", Fill::row(device_address(to)?, u32::from(value), 1, count as u64), Some(stream))
    }

    fn cuMemsetD16Async(to: u64, value: u16, count: usize, stream: Handle) {
        fill("cuMemsetD16Async", Fill::row(device_address(to)?, u32::from(value), 2, count as u64), Some(stream))
    }

    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: Handle) {
        fill("cuMemsetD32Async", Fill::row(device_address(to)?, value, 4, count as u64), Some(stream))
    }

    fn cuMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) {
        fill_rows(device_address(to)?, pitch, u32::from(value), 1, width, height, stream)
    }

    fn cuMemsetD2D32Async(to: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) {
        fill_rows(device_address(to)?, pitch, value, 4, width, height, stream)
    }
}
