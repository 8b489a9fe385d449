//! The decoded form of an entry: compact operations over numbered slots.
//!
//! Each call of a function has a window of slots: constants, registers, temporaries and the special registers that the
//! function reads, all 64 bits wide, so that every operand is an index. A window begins as a copy of the function's
//! template.

use crate::number::{F1, F2, F3, F4};
use crate::run::warp::Exchange;
use crate::types::Type;

/// Where an address of an instruction lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    Generic,
    Global,
    Shared,
    Local,
    /// The entry's parameters.
    Parameters,
    /// Relative to what the current call has of local memory: its variables and parameters.
    Frame,
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    F1 {
        f: F1,
        d: u32,
        a: u32,
    },
    F2 {
        f: F2,
        d: u32,
        a: u32,
        b: u32,
    },
    F3 {
        f: F3,
        d: u32,
        a: u32,
        b: u32,
        c: u32,
    },
    F4 {
        f: F4,
        d: u32,
        a: u32,
        b: u32,
        c: u32,
        e: u32,
    },
    Move {
        d: u32,
        a: u32,
    },
    AddWord {
        d: u32,
        a: u32,
        b: u32,
    },
    AddLong {
        d: u32,
        a: u32,
        b: u32,
    },
    AddSingle {
        d: u32,
        a: u32,
        b: u32,
    },
    MultiplySingle {
        d: u32,
        a: u32,
        b: u32,
    },
    MultiplyAddWord {
        d: u32,
        a: u32,
        b: u32,
        c: u32,
    },
    /// Passes over `count` operations if the predicate is not as `when` says.
    Guard {
        p: u32,
        when: bool,
        count: u32,
    },
    Jump {
        to: u32,
    },
    JumpIf {
        p: u32,
        when: bool,
        to: u32,
    },
    JumpTable {
        a: u32,
        table: u32,
    },
    Load {
        window: Window,
        size: u8,
        d: u32,
        a: u32,
        offset: i32,
    },
    Store {
        window: Window,
        size: u8,
        s: u32,
        a: u32,
        offset: i32,
    },
    LoadVector {
        site: u32,
    },
    StoreVector {
        site: u32,
    },
    /// The address in local memory of something of this call.
    FrameAddress {
        d: u32,
        offset: u32,
    },
    Clock {
        d: u32,
        wide: bool,
        /// Nanoseconds, and not the thread's cycles.
        real: bool,
    },
    Atomic {
        site: u32,
    },
    Exchange {
        site: u32,
    },
    Barrier {
        site: u32,
    },
    Call {
        site: u32,
    },
    Return,
    Exit,
    Trap,
    Nothing,
}

/// A load or store of 2 or 4 elements.
#[derive(Clone, Debug)]
pub struct VectorSite {
    pub window: Window,
    /// Bytes of an element.
    pub size: u8,
    pub slots: Vec<u32>,
    pub a: u32,
    pub offset: i32,
}

#[derive(Clone, Debug)]
pub struct AtomicSite {
    pub window: Window,
    pub size: u8,
    /// New value from old, b, c.
    pub f: F3,
    pub d: u32,
    pub a: u32,
    pub offset: i32,
    pub b: u32,
    pub c: u32,
}

/// shfl, vote, match and their like: what threads of a warp do together.
#[derive(Clone, Debug)]
pub struct ExchangeSite {
    pub what: Exchange,
    pub d: u32,
    pub p: u32,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub mask: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    Count,
    And,
    Or,
}

#[derive(Clone, Debug)]
pub struct BarrierSite {
    pub number: u32,
    /// The slot with the number of threads, if it is given.
    pub count: Option<u32>,
    pub waits: bool,
    /// Whether all threads of a warp come by the same instruction.
    pub aligned: bool,
    /// Destination, predicate, and what is made of the predicates.
    pub reduction: Option<(u32, u32, Reduction)>,
}

/// What a call passes: a slot with so many bytes, or bytes of the frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Passed {
    Slot { slot: u32, size: u32 },
    Frame { offset: u32, size: u32 },
}

impl Passed {
    pub fn size(self) -> u32 {
        match self {
            Self::Slot { size, .. } | Self::Frame { size, .. } => size,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Callee {
    /// An index into the program's functions.
    Function(u32),
    /// A slot with a function's address.
    Address(u32),
    Extern(String),
}

#[derive(Clone, Debug)]
pub struct CallSite {
    pub callee: Callee,
    pub returns: Vec<Passed>,
    pub arguments: Vec<Passed>,
}

/// Special registers that keep their value while a thread runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    Lane,
    Warp,
    Warps,
    Zero,
    /// The warp's lanes that compare so with the own.
    Lanes(std::cmp::Ordering, bool),
    DynamicShared,
    TotalShared,
}

/// What a constant of a template stands for until the program is placed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    Global(String),
    DynamicShared,
}

#[derive(Clone, Debug, Default)]
pub struct Function {
    pub name: String,
    pub ops: Vec<Op>,
    /// The line of each operation.
    pub lines: Vec<u32>,
    pub template: Vec<u64>,
    pub specials: Vec<(u32, Special)>,
    /// Constants to be filled in: slot, symbol, number to add.
    pub symbols: Vec<(u32, Symbol, i64)>,
    pub frame_bytes: u32,
    pub parameters: Vec<Passed>,
    pub returns: Vec<Passed>,
    pub vectors: Vec<VectorSite>,
    pub atomics: Vec<AtomicSite>,
    pub exchanges: Vec<ExchangeSite>,
    pub barriers: Vec<BarrierSite>,
    pub calls: Vec<CallSite>,
    pub tables: Vec<Vec<u32>>,
}

/// A parameter of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryParameter {
    pub name: String,
    /// From the beginning of the parameters.
    pub offset: u32,
    pub size: u32,
    pub align: u32,
}

/// An entry with all functions that it can reach; the entry is the first.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub name: String,
    pub functions: Vec<Function>,
    /// Which function of the program each function of the module is.
    pub indices: Vec<Option<u32>>,
    pub parameters: Vec<EntryParameter>,
    pub parameter_bytes: u32,
    pub static_shared: u32,
    pub shared_align: u32,
    pub max_threads: Option<[u32; 3]>,
    pub exact_threads: bool,
    pub source: std::sync::Arc<[String]>,
}

/// The address of the module's function of this number.
pub const fn function_address(number: usize) -> u64 {
    FUNCTIONS + 16 * number as u64
}

/// Where functions, shared and local memory and parameters lie among the generic addresses.
pub const FUNCTIONS: u64 = 0xFFFF_0001_0000_0000;
pub const SHARED: u64 = 0xFFFF_0002_0000_0000;
pub const LOCAL: u64 = 0xFFFF_0003_0000_0000;
pub const PARAMETERS: u64 = 0xFFFF_0004_0000_0000;
/// The span of each.
pub const SPAN: u64 = 0x1_0000_0000;

/// What an uninitialised register of a type holds: bits that are no number.
pub fn unset(kind: Type) -> u64 {
    match kind.width() {
        1 => 0,
        width => u64::MAX >> (64 - width),
    }
}
