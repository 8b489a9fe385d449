//! PTX text as a tree: what is written, before it is known what it means.

mod body;
mod lexer;
mod parser;

pub use parser::parse;

use crate::types::{Space, Type};

/// A variable of a state space, or a parameter.
#[derive(Clone, Debug)]
pub struct Variable {
    pub space: Space,
    pub name: String,
    pub line: u32,
    /// Bytes; 0 for an array of unknown length.
    pub size: u64,
    pub align: u64,
    pub kind: Type,
    /// The values at the beginning, of `kind` each; fewer than there is room for leave the rest zero.
    pub initial: Vec<Initial>,
    pub is_extern: bool,
}

/// One value of an initializer.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial {
    Bits(u64),
    /// The address of a variable or function, plus a number; generic(x) is the same here.
    Address(String, i64),
}

/// A parameter of a function: in a register, or in memory of the space param.
#[derive(Clone, Debug)]
pub enum Parameter {
    Register(String, Type),
    Memory(Variable),
}

#[derive(Clone, Debug)]
pub enum Operand {
    /// A register, label, symbol or special register, which has its component with it: %tid.x.
    Name(String),
    /// A symbol or register and a number: what stands in brackets, and mov of an address.
    Offset(Box<Operand>, i64),
    Integer(u64),
    Single(u32),
    Double(u64),
    Address(Box<Operand>),
    Vector(Vec<Operand>),
    Not(String),
    /// Two destinations: p|q.
    Pair(String, String),
    /// In parentheses, for call.
    List(Vec<Operand>),
}

#[derive(Clone, Debug)]
pub struct Instruction {
    pub line: u32,
    /// The predicate and whether it is negated.
    pub guard: Option<(String, bool)>,
    pub name: String,
    pub modifiers: Vec<String>,
    pub operands: Vec<Operand>,
}

impl Instruction {
    /// The name with all its modifiers.
    pub fn full_name(&self) -> String {
        let mut name = self.name.clone();
        for modifier in &self.modifiers {
            name += ".";
            name += modifier;
        }
        name
    }
}

#[derive(Clone, Debug)]
pub enum Statement {
    Instruction(Instruction),
    Label(String, u32),
    Variable(Variable),
    /// Names with their number if written %r<n>.
    Registers(Type, Vec<(String, Option<u32>)>, u32),
    /// A list of labels that brx.idx jumps to.
    Targets(String, Vec<String>),
    /// What an indirect call passes: only the label matters, since the function called checks it.
    Prototype,
    Open,
    Close,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub line: u32,
    pub is_entry: bool,
    pub returns: Vec<Parameter>,
    pub parameters: Vec<Parameter>,
    /// None for a declaration.
    pub body: Option<Vec<Statement>>,
    /// The most threads of a block, of .maxntid or .reqntid.
    pub max_threads: Option<[u32; 3]>,
    /// Whether a block must have exactly `max_threads`.
    pub exact_threads: bool,
}

/// All that a text declares.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Major and minor.
    pub version: (u32, u32),
    pub target: String,
    pub variables: Vec<Variable>,
    pub functions: Vec<Function>,
}
