//! Streams.

use crate::abi::{Handle, HostFunction, Out};
use crate::graph::Work;
use crate::operation::{Fill, Host, Operation};
use crate::status::{Code, Result};
use crate::world::{World, lock};
use std::ffi::c_void;

/// Puts work into a stream, or into the graph that it captures into.
pub fn submit(world: &mut World, stream: Handle, name: String, operation: Operation) -> Result {
    if world.capture(stream, Work::Operation(operation.clone()))?.is_none() {
        world.enqueue(stream, name, operation, &[]);
    }
    Ok(())
}

crate::entries! {
    fn cuStreamCreate(stream: Out<Handle>, flags: u32) {
        stream.check()?;
        let mut world = lock();
        let context = world.context()?;
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let new = world.new_stream(context, flags, 0, None);
        stream.set(new)
    }

    fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: u32, priority: i32) {
        stream.check()?;
        let mut world = lock();
        let context = world.context()?;
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        // What is beyond the range is the range's end.
        let new = world.new_stream(context, flags, priority.clamp(-5, 0), None);
        stream.set(new)
    }

    fn cuStreamDestroy_v2(stream: Handle) {
        let mut world = lock();
        world.context()?;
        if !world.streams.contains_key(&stream) {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capture) = world.joined(stream).map(|joined| joined.capture) {
            world.spoil(capture);
        }
        world.destroy_stream(stream)
    }

    fn cuStreamSynchronize(stream: Handle) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        world.refuse_captured(stream)?;
        let context = world.streams[&stream].context;
        let tails = world.tails_before(stream);
        let world = World::wait(world, &tails);
        world.lost(context).map_or(Ok(()), Err)
    }

    fn cuStreamQuery(stream: Handle) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        world.refuse_captured(stream)?;
        let context = world.streams[&stream].context;
        for point in world.tails_before(stream) {
            let is_done;
            (world, is_done) = World::ask(world, &point);
            if !is_done {
                return Err(Code::NOT_READY);
            }
        }
        world.lost(context).map_or(Ok(()), Err)
    }

    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let (record, captured) = {
            let event = world.event(event)?;
            (event.record.clone(), event.captured.clone())
        };
        if let Some((capture, nodes)) = captured {
            world.check_legacy(stream)?;
            return world.wait_captured(stream, capture, &nodes);
        }
        if let Some(capture) = world.joined(stream).map(|joined| joined.capture) {
            if flags == 1 {
                return world.capture(stream, Work::Wait(event)).map(|_| ());
            }
            // An event that was never recorded is no dependency.
            return match record {
                None => Ok(()),
                Some(_) => {
                    world.spoil(capture);
                    Err(Code::STREAM_CAPTURE_ISOLATION)
                }
            };
        }
        world.check_legacy(stream)?;
        if let Some(record) = record {
            world.enqueue(stream, format!("wait for {event:?}"), Operation::Nothing, &[record.point]);
        }
        Ok(())
    }

    fn cuStreamGetCtx(stream: Handle, context: Out<Handle>) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        context.set(world.streams[&stream].context)
    }

    fn cuStreamGetFlags(stream: Handle, flags: Out<u32>) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        flags.set(world.streams[&stream].flags)
    }

    fn cuStreamGetPriority(stream: Handle, priority: Out<i32>) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        priority.set(world.streams[&stream].priority)
    }

    fn cuStreamGetId(stream: Handle, id: Out<u64>) {
        let mut world = lock();
        id.set(world.stream(stream)?.number() as u64)
    }

    fn cuLaunchHostFunc(stream: Handle, function: HostFunction, data: *mut c_void) {
        let host = Host::new(function, data)?;
        let mut world = lock();
        let stream = world.stream(stream)?;
        submit(&mut world, stream, "host function".to_owned(), Operation::Host(host))
    }

    fn cuStreamWriteValue32_v2(stream: Handle, address: u64, value: u32, flags: u32) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        if flags > 1 || !address.is_multiple_of(4) {
            return Err(Code::INVALID_VALUE);
        }
        let fill = Fill::row(address, value, 4, 1);
        fill.check()?;
        submit(&mut world, stream, "cuStreamWriteValue32".to_owned(), Operation::Fill(fill))
    }
}
