//! What the real driver does not have: questions that tests ask of the fake one. They are no part of the log, and can
//! be called in any state but from a host function.

use crate::abi::{Handle, In, Kind};
use crate::call;
use crate::operation::{Library, Operation};
use crate::status::Result;
use crate::world::lock;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// How often a function of the driver was called, by its exact name; 0 if there is none.
///
/// # Safety
/// `name` is a text that ends with zero.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn fakeCudaCount(name: In<c_char>) -> u64 {
    name.text().map_or(0, |name| call::count(&name))
}

/// Counts begin again.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn fakeCudaResetCounts() {
    call::reset_counts();
}

/// The n-th call of a function from now on fails with this code; 0 = each one. With a code below 0 none of its calls
/// fails any more. An edge that a node of a graph is added with counts as a call of "edge": with code 0 it is left out.
///
/// # Safety
/// `name` is a text that ends with zero.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn fakeCudaFail(name: In<c_char>, call: u64, code: i32) {
    if let Ok(name) = name.text() {
        call::fail(&name, call, code);
    }
}

/// Launches, copies and fills that the host does not know to be over: it has not waited for them, nor for anything
/// behind them.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn fakeCudaUnwaited() -> u64 {
    lock().unwaited(None).len() as u64
}

/// Races that were found, with FAKE_CUDA_RACES=report.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn fakeCudaRaceCount() -> u64 {
    lock().races.len() as u64
}

/// The text of a race, cut to the room there is; gives the text's bytes, 0 if there is no such race.
///
/// # Safety
/// `text` is a place for `room` bytes.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn fakeCudaRace(index: u64, text: *mut c_char, room: usize) -> usize {
    let world = lock();
    let Some(race) = world.races.get(index as usize) else { return 0 };
    // SAFETY: the caller's promise.
    unsafe { give(race, text, room) }
}

/// SAFETY: `to` is a place for `room` bytes.
unsafe fn give(text: &str, to: *mut c_char, room: usize) -> usize {
    if room > 0 {
        for (at, byte) in text.bytes().take(room - 1).chain([0]).enumerate() {
            // SAFETY: the caller has given so much room.
            unsafe { to.add(at).write(byte as c_char) };
        }
    }
    text.len()
}

/// The name of a function that the driver has, cut to the room there is; gives its bytes, 0 if there are no more.
///
/// # Safety
/// `text` is a place for `room` bytes.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn fakeCudaFunction(index: u64, text: *mut c_char, room: usize) -> usize {
    let Some(entry) = call::entries().nth(index as usize) else { return 0 };
    // SAFETY: the caller's promise.
    unsafe { give(entry.name, text, room) }
}

/// Memory of the device that another library uses: its address, its bytes, and whether they are written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Use {
    address: u64,
    bytes: u64,
    is_write: u64,
}

/// For libraries on top of the driver, like the fake NCCL: a launch that calls a function, on a thread of the device's,
/// with places for the memory that it names, which the checker knows of. The function may wait, for other streams too,
/// and calls nothing of the driver. It is no part of a capture. Gives a code of the driver's.
///
/// # Safety
/// `name` is a text that ends with zero, `uses` has `count` elements, and the function is one for this data.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn fakeCudaLaunch(
    stream: Handle,
    name: In<c_char>,
    function: unsafe extern "C" fn(*mut c_void, *const *mut c_void),
    data: *mut c_void,
    uses: *const Use,
    count: usize,
) -> i32 {
    let launch = || -> Result {
        let name = name.text()?;
        // SAFETY: the caller's promise.
        let uses = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(uses, count) } };
        let uses = uses.iter().map(|one| (one.address..one.address + one.bytes, one.is_write != 0)).collect();
        let mut world = lock();
        let stream = world.stream(stream)?;
        world.refuse_captured(stream)?;
        let library = Library { function, data: data as usize, uses };
        world.enqueue(stream, name, Operation::Library(Arc::new(library)), &[]);
        Ok(())
    };
    launch().map_or_else(|code| code.0, |()| 0)
}

/// With FAKE_CUDA_SEED: the order from now on is that of another seed.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn fakeCudaSeed(seed: u64) {
    lock().schedule.reseed(seed);
}

/// Things of this kind that the program has and has not given back ("stream", "event", "graph", ...); all for null.
///
/// # Safety
/// `kind` is a text that ends with zero, or null.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn fakeCudaLive(kind: In<c_char>) -> u64 {
    let world = lock();
    match kind.text() {
        Err(_) => world.count_live(None) as u64,
        Ok(name) => {
            let kind = Kind::ALL.iter().find(|(_, other)| *other == name);
            kind.map_or(0, |(kind, _)| world.count_live(Some(*kind)) as u64)
        }
    }
}
