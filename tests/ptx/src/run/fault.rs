//! What stops a launch.

use std::fmt;

/// Which rule was broken, so that a driver can answer with its own code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The launch itself is wrong: its dimensions, parameters or shared memory.
    Launch,
    /// An access outside of what there is.
    IllegalAddress,
    MisalignedAddress,
    /// Threads wait for what can never come.
    Deadlock,
    /// More operations than the launch may take.
    Endless,
    /// The instruction trap, or an instruction used against its rules.
    Trap,
    /// A function from outside failed or is not there.
    Call,
    /// Calls nest too deep.
    Stack,
}

/// Why a launch stopped; its text names kernel, block, thread, line and instruction where there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}

/// A fault whose place is not known yet.
pub struct Trouble {
    pub kind: FaultKind,
    pub text: String,
}

impl Trouble {
    pub fn new(kind: FaultKind, text: String) -> Self {
        Self { kind, text }
    }
}
