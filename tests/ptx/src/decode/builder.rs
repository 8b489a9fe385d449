//! Builds a function: names, slots and the operations so far.

use std::collections::HashMap;

use super::link::Linker;
use crate::number::soft::{F16, F64, Rounding, Value};
use crate::number::{F1, F2, F3, cut};
use crate::program::{Function, Op, Special, Symbol, function_address, unset};
use crate::syntax::{Instruction, Operand, Variable};
use crate::types::{Kind, Space, Type};

/// What a name of a function stands for.
#[derive(Clone, Debug)]
pub enum Name {
    Register(u32, Type),
    /// A group %r<n>; its registers get slots when they are first used.
    Group(u32, Type),
    /// In the call's part of local memory.
    Frame {
        offset: u32,
        size: u32,
    },
    /// The entry's parameter.
    Parameter {
        offset: u32,
    },
    Shared {
        offset: u32,
    },
}

/// Where an operand in memory is.
pub struct Address {
    pub base: u32,
    pub offset: i32,
    /// What the name in it says, if it is a name.
    pub known: Option<crate::program::Window>,
}

pub struct Builder<'a, 'm> {
    pub linker: &'a mut Linker<'m>,
    pub function: Function,
    pub is_entry: bool,
    pub line: u32,
    pub scopes: Vec<HashMap<String, Name>>,
    constants: HashMap<u64, u32>,
    symbols: HashMap<(Symbol, i64), u32>,
    specials: Vec<(u32, Special)>,
    /// The carry of add.cc and its like.
    pub carry: Option<u32>,
    discard: Option<u32>,
}

impl<'a, 'm> Builder<'a, 'm> {
    pub fn new(linker: &'a mut Linker<'m>, name: &str, is_entry: bool) -> Self {
        Self {
            linker,
            function: Function { name: name.to_string(), ..Function::default() },
            is_entry,
            line: 0,
            scopes: vec![HashMap::new()],
            constants: HashMap::new(),
            symbols: HashMap::new(),
            specials: Vec::new(),
            carry: None,
            discard: None,
        }
    }

    pub fn finish(mut self) -> Function {
        self.function.specials = self.specials;
        self.function
    }

    pub fn emit(&mut self, op: Op) {
        self.function.ops.push(op);
        self.function.lines.push(self.line);
    }

    pub fn f1(&mut self, f: F1, d: u32, a: u32) {
        self.emit(Op::F1 { f, d, a });
    }

    pub fn f2(&mut self, f: F2, d: u32, a: u32, b: u32) {
        self.emit(Op::F2 { f, d, a, b });
    }

    pub fn f3(&mut self, f: F3, d: u32, a: u32, b: u32, c: u32) {
        self.emit(Op::F3 { f, d, a, b, c });
    }

    pub fn slot(&mut self, value: u64) -> u32 {
        self.function.template.push(value);
        self.function.template.len() as u32 - 1
    }

    pub fn temporary(&mut self) -> u32 {
        self.slot(0)
    }

    pub fn constant(&mut self, value: u64) -> u32 {
        if let Some(slot) = self.constants.get(&value) {
            return *slot;
        }
        let slot = self.slot(value);
        self.constants.insert(value, slot);
        slot
    }

    pub fn symbol(&mut self, symbol: Symbol, offset: i64) -> u32 {
        if let Some(slot) = self.symbols.get(&(symbol.clone(), offset)) {
            return *slot;
        }
        let slot = self.slot(0);
        self.symbols.insert((symbol.clone(), offset), slot);
        self.function.symbols.push((slot, symbol, offset));
        slot
    }

    pub fn special(&mut self, special: Special) -> u32 {
        if let Some((slot, _)) = self.specials.iter().find(|(_, known)| *known == special) {
            return *slot;
        }
        let slot = self.slot(0);
        self.specials.push((slot, special));
        slot
    }

    /// Room in the call's part of local memory.
    pub fn frame(&mut self, size: u64, align: u64) -> Result<u32, String> {
        let offset = u64::from(self.function.frame_bytes).next_multiple_of(align);
        let end = offset.checked_add(size).filter(|end| *end < 1 << 24).ok_or("the variables are too large")?;
        self.function.frame_bytes = end as u32;
        Ok(offset as u32)
    }

    pub fn declare(&mut self, name: &str, what: Name) -> Result<(), String> {
        let scope = self.scopes.last_mut().expect("there is always the function's own scope");
        match scope.insert(name.to_string(), what) {
            None => Ok(()),
            Some(_) => Err(format!("'{name}' is declared twice")),
        }
    }

    pub fn declare_variable(&mut self, variable: &Variable) -> Result<(), String> {
        let what = match variable.space {
            Space::Local | Space::Param => {
                Name::Frame { offset: self.frame(variable.size, variable.align)?, size: variable.size as u32 }
            }
            Space::Shared => Name::Shared { offset: self.linker.shared(variable)? },
            _ => return Err(format!("'{}': a variable of this space cannot be in a function", variable.name)),
        };
        self.declare(&variable.name, what)
    }

    pub fn lookup(&mut self, name: &str) -> Option<Name> {
        for scope in (0..self.scopes.len()).rev() {
            if let Some(found) = self.scopes[scope].get(name) {
                return Some(found.clone());
            }
            let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let digits = &name[prefix.len()..];
            if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
                continue;
            }
            // The group's key has its sign <, which no name has.
            if let Some(Name::Group(count, kind)) = self.scopes[scope].get(&format!("{prefix}<")) {
                let (count, kind) = (*count, *kind);
                if digits.parse::<u32>().is_ok_and(|number| number < count) {
                    let register = Name::Register(self.slot(unset(kind)), kind);
                    self.scopes[scope].insert(name.to_string(), register.clone());
                    return Some(register);
                }
            }
        }
        None
    }

    /// The slot and type of a register.
    pub fn register(&mut self, name: &str) -> Result<(u32, Type), String> {
        match self.lookup(name) {
            Some(Name::Register(slot, kind)) => Ok((slot, kind)),
            Some(_) => Err(format!("'{name}' is no register")),
            None => Err(format!("'{name}' is not declared")),
        }
    }

    /// The slot of a predicate.
    pub fn predicate(&mut self, name: &str) -> Result<u32, String> {
        match self.register(name)? {
            (slot, Type::PREDICATE) => Ok(slot),
            (_, kind) => Err(format!("'{name}' is of type {kind}, not a predicate")),
        }
    }

    /// A slot that nobody reads.
    pub fn discarded(&mut self) -> u32 {
        match self.discard {
            Some(slot) => slot,
            None => {
                let slot = self.temporary();
                self.discard = Some(slot);
                slot
            }
        }
    }

    /// A destination register of exactly the width of `kind`.
    pub fn destination(&mut self, operand: &Operand, kind: Type) -> Result<u32, String> {
        match operand {
            Operand::Name(name) if name == "_" => Ok(self.discarded()),
            Operand::Name(name) => {
                let (slot, found) = self.register(name)?;
                if found.width() == kind.width() {
                    Ok(slot)
                } else {
                    Err(format!("'{name}' is of type {found}, which does not go with {kind}"))
                }
            }
            _ => Err("the destination is no register".to_string()),
        }
    }

    /// A destination as wide as `kind` or wider, and its width.
    pub fn wide_destination(&mut self, operand: &Operand, kind: Type) -> Result<(u32, u32), String> {
        match operand {
            Operand::Name(name) if name == "_" => Ok((self.discarded(), kind.width())),
            Operand::Name(name) => {
                let (slot, found) = self.register(name)?;
                if found.width() >= kind.width() {
                    Ok((slot, found.width()))
                } else {
                    Err(format!("'{name}' is of type {found}, too narrow for {kind}"))
                }
            }
            _ => Err("the destination is no register".to_string()),
        }
    }

    /// The slot of an operand that is read.
    pub fn source(&mut self, operand: &Operand, kind: Type) -> Result<u32, String> {
        self.read(operand, kind, false)
    }

    /// The same where the register may be wider than the type.
    pub fn wide_source(&mut self, operand: &Operand, kind: Type) -> Result<u32, String> {
        self.read(operand, kind, true)
    }

    fn read(&mut self, operand: &Operand, kind: Type, wider: bool) -> Result<u32, String> {
        let width = kind.width();
        match operand {
            Operand::Integer(value) if kind.kind == Kind::Predicate => Ok(self.constant(u64::from(*value != 0))),
            Operand::Integer(value) => Ok(self.constant(cut(*value, width))),
            Operand::Single(bits) if width == 32 => Ok(self.constant((*bits).into())),
            Operand::Single(bits) if width == 64 => Ok(self.constant(f64::from(f32::from_bits(*bits)).to_bits())),
            Operand::Double(bits) if width == 64 => Ok(self.constant(*bits)),
            Operand::Double(bits) if width == 32 => Ok(self.constant((f64::from_bits(*bits) as f32).to_bits().into())),
            Operand::Double(bits) if kind == Type::new(Kind::Float, 16) => {
                Ok(self.constant(Value::of(*bits, F64).round(F16, Rounding::Nearest)))
            }
            Operand::Not(name) if kind == Type::PREDICATE => {
                let slot = self.predicate(name)?;
                let negated = self.temporary();
                self.f1(|a| a ^ 1, negated, slot);
                Ok(negated)
            }
            Operand::Name(name) => self.read_name(name, 0, kind, wider),
            Operand::Offset(base, offset) => match &**base {
                Operand::Name(name) => self.read_name(name, *offset, kind, wider),
                _ => Err("an address of this form is not known".to_string()),
            },
            other => Err(format!("operand {other:?} does not go with {kind}")),
        }
    }

    fn read_name(&mut self, name: &str, offset: i64, kind: Type, wider: bool) -> Result<u32, String> {
        match self.lookup(name) {
            Some(Name::Register(slot, found)) => {
                let fits = found.width() == kind.width() || wider && found.width() > kind.width();
                if !fits {
                    Err(format!("'{name}' is of type {found}, which does not go with {kind}"))
                } else if offset != 0 {
                    Err(format!("a number cannot be added to the register '{name}' here"))
                } else {
                    Ok(slot)
                }
            }
            // Within its own window an address fits 32 bits too.
            Some(_) if ![32, 64].contains(&kind.width()) => {
                Err(format!("'{name}' is an address, which does not go with {kind}"))
            }
            Some(Name::Frame { offset: place, .. }) => {
                let slot = self.temporary();
                self.emit(Op::FrameAddress { d: slot, offset: (i64::from(place) + offset) as u32 });
                Ok(slot)
            }
            Some(Name::Parameter { offset: place } | Name::Shared { offset: place }) => {
                Ok(self.constant((i64::from(place) + offset) as u64))
            }
            Some(Name::Group(..)) => Err(format!("'{name}' is a group of registers")),
            None if name == "WARP_SZ" => Ok(self.constant(32)),
            None if name.starts_with('%') => self.special_register(name, kind),
            None if kind.width() == 64 || kind.width() == 32 && self.is_shared(name) => {
                self.module_symbol(name, offset)
            }
            None => Err(format!("'{name}' is not declared")),
        }
    }

    fn is_shared(&self, name: &str) -> bool {
        self.linker.variable(name).is_some_and(|variable| variable.space == Space::Shared)
    }

    fn module_symbol(&mut self, name: &str, offset: i64) -> Result<u32, String> {
        if let Some(number) = self.linker.function_number(name) {
            return Ok(self.constant(function_address(number).wrapping_add_signed(offset)));
        }
        let variable = self.linker.variable(name).ok_or_else(|| format!("'{name}' is not declared"))?;
        match variable.space {
            Space::Shared if variable.size == 0 => {
                self.linker.dynamic_shared(variable.align);
                Ok(self.symbol(Symbol::DynamicShared, offset))
            }
            Space::Shared => {
                let place = self.linker.shared(variable)?;
                Ok(self.constant((i64::from(place) + offset) as u64))
            }
            Space::Global | Space::Const => Ok(self.symbol(Symbol::Global(name.to_string()), offset)),
            _ => Err(format!("'{name}' is in a space that a module has no variables in")),
        }
    }

    /// The operand of an instruction that reads or writes memory.
    pub fn address(&mut self, operand: &Operand) -> Result<Address, String> {
        use crate::program::Window;
        let Operand::Address(inner) = operand else { return Err("an address in brackets is missing".to_string()) };
        let (base, offset) = match &**inner {
            Operand::Offset(base, offset) => (&**base, *offset),
            other => (other, 0),
        };
        let name = match base {
            Operand::Name(name) => name,
            Operand::Integer(value) => {
                return Ok(Address { base: self.constant(value.wrapping_add_signed(offset)), offset: 0, known: None });
            }
            _ => return Err("an address of this form is not known".to_string()),
        };
        let small = |offset: i64| i32::try_from(offset).map_err(|_| format!("the offset {offset} is too large"));
        match self.lookup(name) {
            Some(Name::Register(slot, kind)) => {
                if ![32, 64].contains(&kind.width()) {
                    return Err(format!("'{name}' is of type {kind}, which is no address"));
                }
                Ok(Address { base: slot, offset: small(offset)?, known: None })
            }
            Some(Name::Frame { offset: place, .. }) => {
                let base = self.constant(0);
                Ok(Address { base, offset: small(i64::from(place) + offset)?, known: Some(Window::Frame) })
            }
            Some(Name::Parameter { offset: place }) => {
                let base = self.constant(0);
                Ok(Address { base, offset: small(i64::from(place) + offset)?, known: Some(Window::Parameters) })
            }
            Some(Name::Shared { offset: place }) => {
                let base = self.constant(0);
                Ok(Address { base, offset: small(i64::from(place) + offset)?, known: Some(Window::Shared) })
            }
            Some(Name::Group(..)) => Err(format!("'{name}' is a group of registers")),
            None => Ok(Address { base: self.module_symbol(name, offset)?, offset: 0, known: None }),
        }
    }

    fn special_register(&mut self, name: &str, kind: Type) -> Result<u32, String> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let timer = match name {
            "%clock" | "%globaltimer_lo" => Some((false, 32)),
            "%clock_hi" | "%globaltimer_hi" => Some((true, 32)),
            "%clock64" | "%globaltimer" => Some((true, 64)),
            _ => None,
        };
        if let Some((wide, width)) = timer {
            let real = name.starts_with("%globaltimer");
            if kind.width() != width {
                return Err(format!("{name} has {width} bits, not those of {kind}"));
            }
            let d = self.temporary();
            self.emit(Op::Clock { d, wide, real });
            if wide && width == 32 {
                self.f1(|a| a >> 32, d, d);
            }
            return Ok(d);
        }
        let axis = |name: &str| match name {
            "x" => Some(0),
            "y" => Some(1),
            "z" => Some(2),
            _ => None,
        };
        let special = match name.split_once('.') {
            Some((base, component)) => {
                let axis = axis(component).ok_or_else(|| format!("unknown special register {name}"))?;
                match base {
                    "%tid" => Special::Thread(axis),
                    "%ntid" => Special::Threads(axis),
                    "%ctaid" => Special::Block(axis),
                    "%nctaid" => Special::Blocks(axis),
                    _ => return Err(format!("unknown special register {name}")),
                }
            }
            None => match name {
                "%laneid" => Special::Lane,
                "%warpid" => Special::Warp,
                "%nwarpid" => Special::Warps,
                "%smid" | "%gridid" => Special::Zero,
                "%lanemask_eq" => Special::Lanes(Equal, true),
                "%lanemask_lt" => Special::Lanes(Less, false),
                "%lanemask_le" => Special::Lanes(Less, true),
                "%lanemask_gt" => Special::Lanes(Greater, false),
                "%lanemask_ge" => Special::Lanes(Greater, true),
                "%dynamic_smem_size" => Special::DynamicShared,
                "%total_smem_size" => Special::TotalShared,
                _ => return Err(format!("'{name}' is neither declared nor a special register that is known")),
            },
        };
        if kind.width() != 32 && !(name == "%gridid" && kind.width() == 64) {
            return Err(format!("{name} has 32 bits, not those of {kind}"));
        }
        Ok(self.special(special))
    }

    /// Exactly so many operands.
    pub fn operands<const N: usize>(instruction: &Instruction) -> Result<&[Operand; N], String> {
        let found = &instruction.operands;
        <&[Operand; N]>::try_from(found.as_slice()).map_err(|_| format!("{} operands, not {N}", found.len()))
    }
}
