//! Events.

use crate::abi::{Handle, Kind, Out};
use crate::graph::Work;
use crate::operation::Operation;
use crate::status::{Code, Result};
use crate::world::{Event, Guard, Record, World, lock};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

fn record(event: Handle, stream: Handle, flags: u32) -> Result {
    let mut world = lock();
    let stream = world.stream(stream)?;
    let of = world.event(event)?.context;
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    if world.streams[&stream].context != of {
        return Err(Code::INVALID_HANDLE);
    }
    if let Some(joined) = world.joined(stream).cloned() {
        if flags == 1 {
            return world.capture(stream, Work::Record(event)).map(|_| ());
        }
        if world.capture_status(stream).0 == 2 {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        world.event(event)?.captured = Some((joined.capture, joined.after));
        return Ok(());
    }
    world.check_legacy(stream)?;
    let time = Arc::new(OnceLock::new());
    let operation = Operation::Record(Arc::clone(&time));
    let point = world.enqueue(stream, format!("record of {event:?}"), operation, &[]);
    let event = world.event(event)?;
    event.record = Some(Record { point, time });
    event.captured = None;
    Ok(())
}

/// The last record; none if the event was never recorded, which counts as done.
fn last(world: &mut Guard, event: Handle) -> Result<Option<Record>> {
    let event = world.event(event)?;
    match &event.captured {
        Some((capture, _)) => {
            let capture = *capture;
            world.spoil(capture);
            Err(Code::CAPTURED_EVENT)
        }
        None => Ok(event.record.clone()),
    }
}

fn elapsed(milliseconds: Out<f32>, start: Handle, end: Handle) -> Result {
    milliseconds.check()?;
    let mut world = lock();
    let mut time = |event: Handle| -> Result<Instant> {
        if world.event(event)?.flags & DISABLE_TIMING != 0 {
            return Err(Code::INVALID_HANDLE);
        }
        let record = last(&mut world, event)?.ok_or(Code::INVALID_HANDLE)?;
        record.time.get().copied().ok_or(Code::NOT_READY)
    };
    let (start, end) = (time(start)?, time(end)?);
    let (later, sign) = if end >= start { (end - start, 1.0) } else { (start - end, -1.0) };
    milliseconds.set(sign * later.as_secs_f32() * 1e3)
}

crate::entries! {
    fn cuEventCreate(event: Out<Handle>, flags: u32) {
        event.check()?;
        let mut world = lock();
        let context = world.context()?;
        if flags > 7 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(Code::INVALID_VALUE);
        }
        let new = world.name(Kind::Event);
        world.events.insert(new, Event { context, flags, record: None, captured: None });
        event.set(new)
    }

    fn cuEventDestroy_v2(event: Handle) {
        let mut world = lock();
        world.context()?;
        world.events.remove(&event).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    fn cuEventRecord(event: Handle, stream: Handle) {
        record(event, stream, 0)
    }

    fn cuEventRecordWithFlags(event: Handle, stream: Handle, flags: u32) {
        record(event, stream, flags)
    }

    fn cuEventQuery(event: Handle) {
        let mut world = lock();
        world.context()?;
        let context = world.event(event)?.context;
        let Some(record) = last(&mut world, event)? else { return Ok(()) };
        let (world, is_done) = World::ask(world, &record.point);
        match world.lost(context) {
            Some(code) => Err(code),
            None if is_done => Ok(()),
            None => Err(Code::NOT_READY),
        }
    }

    fn cuEventSynchronize(event: Handle) {
        let mut world = lock();
        world.context()?;
        let context = world.event(event)?.context;
        let Some(record) = last(&mut world, event)? else { return Ok(()) };
        let world = World::wait(world, &[record.point]);
        world.lost(context).map_or(Ok(()), Err)
    }

    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }

    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }
}
