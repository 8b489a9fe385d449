//! What an operation does as it runs.

use crate::access::{Accesses, Memory};
use crate::builtin::condition;
use crate::call;
use crate::modules::Fault;
use crate::operation::{Copy, Fill, Library, Operation};
use crate::schedule::Task;
use crate::space;
use crate::status::Code;
use crate::waited;
use crate::world::lock;
use std::time::Instant;

#[derive(Debug, Default)]
pub struct Outcome {
    pub accesses: Accesses,
    pub fault: Option<Fault>,
}

pub fn run(task: &Task) -> Outcome {
    let mut memory = Memory::default();
    let result = match &task.operation {
        Operation::Nothing => Ok(()),
        Operation::Condition(of) => {
            memory.accesses.read(condition(&task.origin, of.handle));
            Ok(())
        }
        Operation::Launch(launch) => launch.function.run(launch, &mut memory, &task.origin),
        Operation::Copy(copy) => run_copy(copy, &mut memory).map_err(|why| (Code::ILLEGAL_ADDRESS, why)),
        Operation::Fill(fill) => run_fill(fill, &mut memory).map_err(|why| (Code::ILLEGAL_ADDRESS, why)),
        Operation::Host(_) if waited::is_leaving() => Ok(()),
        Operation::Host(host) => {
            call::host_function(|| {
                // SAFETY: the program's function with the program's data, called once as it was asked for.
                unsafe { (host.function)(host.data as *mut std::ffi::c_void) }
            });
            Ok(())
        }
        Operation::Library(_) if waited::is_leaving() => Ok(()),
        Operation::Library(library) => run_library(library, &mut memory).map_err(|why| (Code::ILLEGAL_ADDRESS, why)),
        Operation::Record(time) => {
            let _ = time.set(Instant::now());
            Ok(())
        }
        Operation::Begin(handles) => {
            if let Some(exec) = task.origin.exec {
                lock().values.extend(handles.iter().map(|(handle, value)| ((exec, *handle), *value)));
            }
            Ok(())
        }
        Operation::Allocate(bytes) => {
            memory.accesses.write(bytes.clone());
            Ok(())
        }
        Operation::Free(start) => match space::with(|space| space.free(*start)) {
            Some(block) => {
                memory.accesses.write(block.start..block.start + block.size);
                Ok(())
            }
            None => {
                let what = space::look(|space| space.describe(&(*start..*start + 1)));
                Err((Code::ILLEGAL_ADDRESS, format!("it frees {what}")))
            }
        },
    };
    memory.accesses.finish();
    Outcome { accesses: memory.accesses, fault: result.err() }
}

/// Bytes of the program's that were not made known to the driver are not looked at: it waits for copies to them.
fn is_pageable(address: u64) -> bool {
    space::look(|space| matches!(space.owner(address), Some(space::Owner::Pageable)))
}

fn run_library(library: &Library, memory: &mut Memory) -> Result<(), String> {
    let mut places = Vec::new();
    for (bytes, is_write) in &library.uses {
        let place = if bytes.is_empty() {
            Ok(std::ptr::null_mut())
        } else {
            memory.at(bytes.start, bytes.end - bytes.start, *is_write)
        };
        places.push(place?.cast::<std::ffi::c_void>());
    }
    call::host_function(|| {
        // SAFETY: the library's function with its data, and places for as many bytes as it has asked for.
        unsafe { (library.function)(library.data as *mut std::ffi::c_void, places.as_ptr()) }
    });
    Ok(())
}

fn run_copy(copy: &Copy, memory: &mut Memory) -> Result<(), String> {
    if copy.is_empty() {
        return Ok(());
    }
    let width = copy.width as usize;
    let (from_host, to_host) = (is_pageable(copy.from.address), is_pageable(copy.to.address));
    for layer in 0..copy.depth {
        for row in 0..copy.height {
            let offset = layer * copy.from.layer + row * copy.from.pitch;
            let from = match &copy.from.staged {
                Some(staged) => staged[offset as usize..offset as usize + width].as_ptr(),
                None if from_host => (copy.from.address + offset) as *const u8,
                None => memory.at(copy.from.address + offset, copy.width, false)?.cast_const(),
            };
            let to = copy.to.address + layer * copy.to.layer + row * copy.to.pitch;
            let to = if to_host { to as *mut u8 } else { memory.at(to, copy.width, true)? };
            // SAFETY: so many bytes are there on both sides; they may be the same ones.
            unsafe { std::ptr::copy(from, to, width) };
        }
    }
    Ok(())
}

fn run_fill(fill: &Fill, memory: &mut Memory) -> Result<(), String> {
    let value = fill.value.to_le_bytes();
    let element = fill.element as usize;
    for row in fill.rows() {
        let bytes = (row.end - row.start) as usize;
        let at = memory.at(row.start, bytes as u64, true)?;
        for i in (0..bytes).step_by(element) {
            // SAFETY: rows are whole elements, and so many bytes are there.
            unsafe { at.add(i).copy_from_nonoverlapping(value.as_ptr(), element) };
        }
    }
    Ok(())
}
