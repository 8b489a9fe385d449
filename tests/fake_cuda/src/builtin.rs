//! Functions of the driver's own, which an image of the sort `WEIRFAKE1` names.

use crate::access::Memory;
use crate::gemm;
use crate::modules::{Fault, Function};
use crate::schedule::Origin;
use crate::status::Code;
use crate::world::lock;
use std::ops::Range;
use std::time::{Duration, Instant};

pub struct Builtin {
    pub name: &'static str,
    /// Bytes of each parameter.
    pub params: &'static [usize],
    pub run: fn(&Params<'_>, &mut Memory, &Origin) -> Result<(), Fault>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

pub struct Params<'a> {
    pub bytes: &'a [u8],
    pub function: &'a Function,
}

impl Params<'_> {
    fn take<const N: usize>(&self, index: usize) -> [u8; N] {
        let (offset, _) = self.function.params[index];
        self.bytes[offset..offset + N].try_into().unwrap_or([0; N])
    }

    fn word(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.take(index))
    }

    pub fn long(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.take(index))
    }
}

pub static ALL: &[Builtin] = &[
    // spin(u64 microseconds)
    Builtin { name: "spin", params: &[8], run: spin },
    // fill(u64 address, u64 count, u32 value)
    Builtin { name: "fill", params: &[8, 8, 4], run: fill },
    // add(u64 sum, u64 a, u64 b, u64 count): floats
    Builtin { name: "add", params: &[8, 8, 8, 8], run: add },
    // increment(u64 address, u64 count, u32 by): integers
    Builtin { name: "increment", params: &[8, 8, 4], run: increment },
    // touch(u64 address, u64 bytes): reads
    Builtin { name: "touch", params: &[8, 8], run: touch },
    // fail(u32 code)
    Builtin { name: "fail", params: &[4], run: fail },
    // set_conditional(u64 handle, u32 value)
    Builtin { name: "set_conditional", params: &[8, 4], run: set_conditional },
    // count_down(u64 handle, u64 address): takes one off the integer there, and goes on while it is more than zero
    Builtin { name: "count_down", params: &[8, 8], run: count_down },
    // A matrix product, for the fake cuBLASLt.
    Builtin { name: "gemm", params: gemm::PARAMS, run: gemm::run },
];

fn illegal(why: String) -> Fault {
    (Code::ILLEGAL_ADDRESS, why)
}

fn spin(params: &Params<'_>, _: &mut Memory, _: &Origin) -> Result<(), Fault> {
    let time = Duration::from_micros(params.long(0));
    let end = Instant::now() + time;
    // The processor is others' meanwhile, as that of a machine with a GPU is.
    std::thread::sleep(time.saturating_sub(Duration::from_micros(100)));
    while Instant::now() < end {
        std::thread::yield_now();
    }
    Ok(())
}

fn fill(params: &Params<'_>, memory: &mut Memory, _: &Origin) -> Result<(), Fault> {
    let (start, count, value) = (params.long(0), params.long(1), params.word(2));
    (0..count).try_for_each(|i| memory.write(start + 4 * i, &value.to_le_bytes())).map_err(illegal)
}

fn add(params: &Params<'_>, memory: &mut Memory, _: &Origin) -> Result<(), Fault> {
    let [sum, a, b, count] = [0, 1, 2, 3].map(|index| params.long(index));
    let mut one = |i: u64| {
        let [a, b] = [a, b].map(|start| memory.read(start + 4 * i).map(f32::from_le_bytes));
        memory.write(sum + 4 * i, &(a? + b?).to_le_bytes())
    };
    (0..count).try_for_each(&mut one).map_err(illegal)
}

fn increment(params: &Params<'_>, memory: &mut Memory, _: &Origin) -> Result<(), Fault> {
    let (start, count, by) = (params.long(0), params.long(1), params.word(2));
    let mut one = |i: u64| {
        let value = u32::from_le_bytes(memory.read(start + 4 * i)?);
        memory.write(start + 4 * i, &value.wrapping_add(by).to_le_bytes())
    };
    (0..count).try_for_each(&mut one).map_err(illegal)
}

fn touch(params: &Params<'_>, memory: &mut Memory, _: &Origin) -> Result<(), Fault> {
    memory.at(params.long(0), params.long(1), false).map(|_| ()).map_err(illegal)
}

fn fail(params: &Params<'_>, _: &mut Memory, _: &Origin) -> Result<(), Fault> {
    Err((Code(params.word(0) as i32), "the kernel was to fail".to_owned()))
}

fn set_conditional(params: &Params<'_>, memory: &mut Memory, origin: &Origin) -> Result<(), Fault> {
    set_value(origin, params.long(0), params.word(1))?;
    memory.accesses.write(condition(origin, params.long(0)));
    Ok(())
}

fn count_down(params: &Params<'_>, memory: &mut Memory, origin: &Origin) -> Result<(), Fault> {
    let address = params.long(1);
    let value = u32::from_le_bytes(memory.read(address).map_err(illegal)?).wrapping_sub(1);
    memory.write(address, &value.to_le_bytes()).map_err(illegal)?;
    set_value(origin, params.long(0), u32::from(value as i32 > 0))?;
    memory.accesses.write(condition(origin, params.long(0)));
    Ok(())
}

/// Where the conditions of launches are for the checker: a kernel writes one, a node reads it.
const CONDITIONS: u64 = 1 << 62;

/// The condition of a handle in the executable graph that something is part of.
pub fn condition(origin: &Origin, handle: u64) -> Range<u64> {
    let exec = origin.exec.map_or(0, |exec| exec.number() as u64);
    let at = CONDITIONS | exec << 32 | handle & 0xffff_ffff;
    at..at + 1
}

/// Whether these bytes stand for one.
pub fn is_condition(bytes: &Range<u64>) -> bool {
    bytes.start >= CONDITIONS
}

/// cudaGraphSetConditional.
pub fn set_value(origin: &Origin, handle: u64, value: u32) -> Result<(), Fault> {
    let Some(exec) = origin.exec else {
        return Err(illegal("it sets a conditional handle, and is in no graph".to_owned()));
    };
    match lock().values.get_mut(&(exec, handle)) {
        Some(old) => {
            *old = Some(value);
            Ok(())
        }
        None => Err(illegal(format!("it sets the conditional handle {handle:#x}, which is none of its graph's"))),
    }
}
