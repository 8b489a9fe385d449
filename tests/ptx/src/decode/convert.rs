//! mov, cvt, cvta and isspacep.

use super::builder::Builder;
use super::modifiers::Modifiers;
use crate::number::convert::{Conversion, convert};
use crate::number::soft::Rounding;
use crate::number::{F1, F2, F3};
use crate::program::{LOCAL, Op, PARAMETERS, SHARED, SPAN};
use crate::syntax::{Instruction, Operand};
use crate::types::{Kind, Space, Type};

impl Builder<'_, '_> {
    /// False if the instruction is of another group.
    pub fn converting(&mut self, i: &Instruction) -> Result<bool, String> {
        let m = Modifiers::new(&i.modifiers);
        match i.name.as_str() {
            "mov" => self.moving(i, m)?,
            "cvt" => self.conversion(i, m)?,
            "cvta" => self.space_change(i, m)?,
            "isspacep" => self.in_space(i, m)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn moving(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let kind = m.kind()?;
        m.done()?;
        let [d, a] = Self::operands(i)?;
        match (d, a) {
            (Operand::Vector(parts), whole) => {
                let whole = self.source(whole, kind)?;
                let part = part(kind, parts.len())?;
                // The parts may be the register that is taken apart, so all are made before any is stored.
                let mut made = Vec::new();
                for at in 0..parts.len() as u32 {
                    let (slot, shift) = (self.temporary(), self.constant((at * part.bits).into()));
                    let mask = self.constant(u64::MAX >> (64 - part.bits));
                    self.f3(|a, shift, mask| a >> shift & mask, slot, whole, shift, mask);
                    made.push(slot);
                }
                for (operand, slot) in parts.iter().zip(made) {
                    let d = self.destination(operand, part)?;
                    self.emit(Op::Move { d, a: slot });
                }
            }
            (whole, Operand::Vector(parts)) => {
                let part = part(kind, parts.len())?;
                let mut joined = self.source(&parts[0], part)?;
                for (at, operand) in parts.iter().enumerate().skip(1) {
                    let (slot, shift) = (self.temporary(), self.constant(at as u64 * u64::from(part.bits)));
                    let next = self.source(operand, part)?;
                    self.f3(|a, b, shift| a | b << shift, slot, joined, next, shift);
                    joined = slot;
                }
                let d = self.destination(whole, kind)?;
                self.emit(Op::Move { d, a: joined });
            }
            (d, a) => {
                let a = self.source(a, kind)?;
                let d = self.destination(d, kind)?;
                self.emit(Op::Move { d, a });
            }
        }
        Ok(())
    }

    fn conversion(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let to_integer = m.rounding_to_integer();
        let rounding = m.rounding();
        let flush = m.take("ftz");
        let saturate = m.take("sat");
        let relu = m.take("relu");
        let (to, from) = (m.kind()?, m.kind()?);
        m.done()?;
        if to.kind == Kind::Predicate || from.kind == Kind::Predicate || from.lanes != 1 {
            return Err("there is no such conversion".to_string());
        }
        let narrows =
            to.is_float() && from.is_float() && (to.bits < from.bits || to.bits == 16 && to.kind != from.kind);
        match (from.is_float(), to.is_float()) {
            (true, false) if to_integer.is_none() => return Err("a rounding to integer is missing".to_string()),
            (false, true) if rounding.is_none() => return Err("a rounding is missing".to_string()),
            (true, true) if narrows && rounding.is_none() => return Err("a rounding is missing".to_string()),
            (false, false) if rounding.or(to_integer).is_some() => return Err("nothing is rounded here".to_string()),
            _ => {}
        }
        let lane = Type { lanes: 1, ..to };
        let conversion = Conversion {
            to: lane,
            from,
            rounding: to_integer.or(rounding).unwrap_or(Rounding::Nearest),
            integral: to_integer.is_some(),
            saturate,
            flush,
            relu,
        };
        if to.lanes == 2 {
            // The first operand becomes the upper half.
            let [d, high, low] = Self::operands(i)?;
            let (high, low) = (self.wide_source(high, from)?, self.wide_source(low, from)?);
            let (upper, lower) = (self.temporary(), self.temporary());
            let code = self.constant(conversion.encoded());
            self.f2(convert, upper, high, code);
            self.f2(convert, lower, low, code);
            let d = self.destination(d, to)?;
            self.f2(|upper, lower| upper << 16 | lower, d, upper, lower);
            return Ok(());
        }
        let [d, a] = Self::operands(i)?;
        let a = self.wide_source(a, from)?;
        let (d, width) = self.wide_destination(d, to)?;
        // A register wider than the type is filled by its sign.
        if width == to.width()
            && let Some(f) = conversion.fast()
        {
            self.f1(f, d, a);
            return Ok(());
        }
        let code = self.constant(conversion.encoded());
        self.f2(convert, d, a, code);
        if to.is_integer() {
            self.widen(d, to, width)?;
        }
        Ok(())
    }

    /// Extends what a slot has in the bits of a type to the width of its register.
    pub fn widen(&mut self, slot: u32, kind: Type, width: u32) -> Result<(), String> {
        let f: Option<F1> = match (kind.is_signed(), kind.bits, width) {
            (true, 8, 16) => Some(|a| a as i8 as u16 as u64),
            (true, 8, 32) => Some(|a| a as i8 as u32 as u64),
            (true, 8, 64) => Some(|a| a as i8 as u64),
            (true, 16, 32) => Some(|a| a as i16 as u32 as u64),
            (true, 16, 64) => Some(|a| a as i16 as u64),
            (true, 32, 64) => Some(|a| a as i32 as u64),
            (_, 8, _) => Some(|a| a as u8 as u64),
            (_, 16, _) => Some(|a| a as u16 as u64),
            (_, 32, _) => Some(|a| a as u32 as u64),
            (_, 64, 64) => None,
            _ => return Err(format!("a register of {width} bits does not go with {kind}")),
        };
        if let Some(f) = f {
            self.f1(f, slot, slot);
        }
        Ok(())
    }

    fn space_change(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let to = m.take("to");
        let space = m.take_first(|m| Space::parse(m).is_some()).and_then(Space::parse).ok_or("a space is missing")?;
        let kind = m.kind()?;
        m.done()?;
        if kind.width() != 64 {
            return Err("only 64-bit addresses are supported".to_string());
        }
        let [d, a] = Self::operands(i)?;
        // A variable of the module has its address in its own space, so it is read like any other operand.
        let a = self.source(a, kind)?;
        let d = self.destination(d, kind)?;
        let start = match space {
            Space::Shared => SHARED,
            Space::Local => LOCAL,
            Space::Param if self.is_entry => PARAMETERS,
            Space::Param => LOCAL,
            _ => {
                self.emit(Op::Move { d, a });
                return Ok(());
            }
        };
        let start = self.constant(if to { start.wrapping_neg() } else { start });
        self.emit(Op::AddLong { d, a, b: start });
        Ok(())
    }

    fn in_space(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let space = m.take_first(|m| Space::parse(m).is_some()).and_then(Space::parse).ok_or("a space is missing")?;
        m.done()?;
        let [p, a] = Self::operands(i)?;
        let a = self.source(a, Type::U64)?;
        let p = self.destination(p, Type::PREDICATE)?;
        let within: F2 = |a, start| (a.wrapping_sub(start) < SPAN) as u64;
        match space {
            Space::Shared | Space::Local | Space::Param => {
                let start = match space {
                    Space::Shared => SHARED,
                    Space::Local => LOCAL,
                    _ => PARAMETERS,
                };
                let start = self.constant(start);
                self.f2(within, p, a, start);
            }
            // What is in no window is global.
            Space::Global => {
                let (first, last) = (self.constant(SHARED), self.constant(PARAMETERS + SPAN));
                let outside: F3 = |a, first, last| (a < first || a >= last) as u64;
                self.f3(outside, p, a, first, last);
            }
            _ => return Err("constants are not told from other global memory".to_string()),
        }
        Ok(())
    }
}

/// The type of each of `count` parts of `kind`.
fn part(kind: Type, count: usize) -> Result<Type, String> {
    match (kind.kind, kind.bits, count) {
        (Kind::Bits, 32 | 64, 2) | (Kind::Bits, 64, 4) => Ok(Type::new(Kind::Bits, kind.bits / count as u32)),
        (Kind::Bits, 32, 4) => Ok(Type::new(Kind::Bits, 8)),
        (Kind::Bits, 16, 2) => Ok(Type::new(Kind::Bits, 8)),
        _ => Err(format!("{kind} has not {count} parts")),
    }
}
