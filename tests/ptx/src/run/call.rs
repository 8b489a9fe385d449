//! Functions that a module declares and does not define.

use super::fault::{FaultKind, Trouble};
use super::memory::{Access, load};
use super::thread::{Thread, World};
use crate::program::Window;

/// What a kernel calls outside of its module: cudaGraphSetConditional, vprintf, __assertfail and their like.
pub trait Calls {
    /// Does the call and fills `call.result`; an error stops the launch.
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), String>;
}

/// Refuses every call.
pub struct NoCalls;

impl Calls for NoCalls {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), String> {
        Err(format!("there is no function '{}'", call.function))
    }
}

/// Reads memory by generic addresses: also of the calling thread's local memory and its block's shared memory.
type Reader<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> Result<(), String>;

/// One call by one thread.
pub struct Call<'a> {
    pub function: &'a str,
    /// The bytes of each argument.
    pub arguments: Vec<Vec<u8>>,
    /// The bytes of the result, zeros at first; none if the function gives nothing.
    pub result: Vec<u8>,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    reader: Reader<'a>,
}

impl Call<'_> {
    /// An argument as an integer, extended by zeros.
    pub fn argument(&self, index: usize) -> Result<u64, String> {
        let bytes = self.arguments.get(index).ok_or_else(|| format!("argument {index} is missing"))?;
        let mut word = [0; 8];
        let size = bytes.len().min(8);
        word[..size].copy_from_slice(&bytes[..size]);
        Ok(u64::from_le_bytes(word))
    }

    /// Reads memory at a generic address, as the thread itself would.
    pub fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), String> {
        (self.reader)(address, bytes)
    }

    /// The text at a generic address, up to its zero.
    pub fn text(&mut self, address: u64) -> Result<String, String> {
        let mut text = Vec::new();
        loop {
            let mut byte = [0];
            self.read(address + text.len() as u64, &mut byte)?;
            if byte[0] == 0 || text.len() == 1 << 16 {
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
            text.push(byte[0]);
        }
    }
}

pub fn outside(
    name: &str,
    arguments: Vec<Vec<u8>>,
    result: usize,
    thread: &mut Thread,
    world: &mut World,
) -> Result<Vec<u8>, Trouble> {
    let (index, block) = (thread.index, world.block);
    let (mut reach, calls) = thread.reach(world);
    let mut reader = |address: u64, bytes: &mut [u8]| {
        for (at, byte) in bytes.iter_mut().enumerate() {
            let place = reach.place(Window::Generic, address + at as u64, 1, Access::Read);
            // SAFETY: `place` gave the byte for this read.
            *byte = unsafe { load(place.map_err(|trouble| trouble.text)?, 1) } as u8;
        }
        Ok(())
    };
    let mut call =
        Call { function: name, arguments, result: vec![0; result], block, thread: index, reader: &mut reader };
    match calls.call(&mut call) {
        Ok(()) => Ok(call.result),
        Err(why) => Err(Trouble::new(FaultKind::Call, format!("'{name}': {why}"))),
    }
}
