//! Contexts: the primary one of each device, others, and which is current in a thread.

use crate::abi::{Handle, Out};
use crate::settings::SETTINGS;
use crate::status::{Code, Result};
use crate::world::{World, current, lock, with_contexts};

/// Ends a context after all of its work.
fn end(context: Handle) {
    let mut world = lock();
    world.report_unwaited(Some(context), &format!("the end of {context:?}"));
    let tails = world.tails(context);
    World::wait(world, &tails).end_context(context);
}

fn known(context: Handle) -> Result {
    if lock().contexts.contains_key(&context) { Ok(()) } else { Err(Code::INVALID_CONTEXT) }
}

crate::entries! {
    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: i32) {
        context.check()?;
        let mut world = lock();
        let flags = world.device(device)?.flags;
        let primary = match world.device(device)?.primary {
            Some(primary) => primary,
            None => world.new_context(device, flags, true),
        };
        let found = world.device(device)?;
        found.primary = Some(primary);
        found.retained += 1;
        context.set(primary)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        let mut world = lock();
        let found = world.device(device)?;
        if found.retained == 0 {
            return Err(Code::INVALID_CONTEXT);
        }
        found.retained -= 1;
        if found.retained == 0 && let Some(context) = found.primary.take() {
            drop(world);
            end(context);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxReset_v2(device: i32) {
        let mut world = lock();
        let found = world.device(device)?;
        if let Some(context) = found.primary.take() {
            found.retained = 0;
            drop(world);
            end(context);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, is_active: Out<i32>) {
        let mut world = lock();
        let found = world.device(device)?;
        flags.set(found.flags)?;
        is_active.set(i32::from(found.primary.is_some()))
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) {
        // What schedules, and 0x10, which maps host memory: always on.
        if flags & !0x3f != 0 || !matches!(flags & 7, 0 | 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        lock().device(device)?.flags = flags;
        Ok(())
    }

    fn cuCtxCreate_v2(context: Out<Handle>, flags: u32, device: i32) {
        context.check()?;
        let mut world = lock();
        world.device(device)?;
        let new = world.new_context(device, flags, false);
        with_contexts(|contexts| contexts.push(new));
        context.set(new)
    }

    fn cuCtxDestroy_v2(context: Handle) {
        known(context)?;
        if lock().contexts[&context].is_primary {
            return Err(Code::INVALID_CONTEXT);
        }
        end(context);
        with_contexts(|contexts| {
            if contexts.last() == Some(&context) {
                contexts.pop();
            }
        });
        Ok(())
    }

    fn cuCtxGetCurrent(context: Out<Handle>) {
        context.set(current().unwrap_or(Handle::NULL))
    }

    fn cuCtxSetCurrent(context: Handle) {
        if !context.is_null() {
            known(context)?;
        }
        with_contexts(|contexts| {
            contexts.pop();
            if !context.is_null() {
                contexts.push(context);
            }
        });
        Ok(())
    }

    fn cuCtxPushCurrent_v2(context: Handle) {
        known(context)?;
        with_contexts(|contexts| contexts.push(context));
        Ok(())
    }

    fn cuCtxPopCurrent_v2(context: Out<Handle>) {
        let popped = with_contexts(Vec::pop).ok_or(Code::INVALID_CONTEXT)?;
        context.set_if_wanted(popped);
        Ok(())
    }

    fn cuCtxGetDevice(device: Out<i32>) {
        let current = lock().current_device()?;
        device.set(current)
    }

    fn cuCtxGetFlags(flags: Out<u32>) {
        let mut world = lock();
        let context = world.context()?;
        flags.set(world.contexts[&context].flags)
    }

    fn cuCtxGetApiVersion(context: Handle, version: Out<u32>) {
        known(context)?;
        version.set(3020)
    }

    fn cuCtxSynchronize() {
        let mut world = lock();
        let context = world.context()?;
        let tails = world.tails(context);
        let world = World::wait(world, &tails);
        world.lost(context).map_or(Ok(()), Err)
    }

    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        lock().context()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    }

    fn cuCtxEnablePeerAccess(peer: Handle, flags: u32) {
        let mut world = lock();
        let context = world.context()?;
        let theirs = world.contexts.get(&peer).ok_or(Code::INVALID_CONTEXT)?.device;
        let mine = world.contexts.get_mut(&context).ok_or(Code::INVALID_CONTEXT)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if mine.device == theirs || !SETTINGS.has_peers {
            return Err(Code::PEER_ACCESS_UNSUPPORTED);
        }
        if mine.peers.contains(&peer) {
            return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
        }
        mine.peers.push(peer);
        Ok(())
    }

    fn cuCtxDisablePeerAccess(peer: Handle) {
        let mut world = lock();
        let context = world.context()?;
        let mine = world.contexts.get_mut(&context).ok_or(Code::INVALID_CONTEXT)?;
        let index = mine.peers.iter().position(|other| *other == peer).ok_or(Code::PEER_ACCESS_NOT_ENABLED)?;
        mine.peers.remove(index);
        Ok(())
    }
}
