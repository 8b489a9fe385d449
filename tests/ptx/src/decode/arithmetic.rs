//! Integers, logic, shifts, comparisons and choices.

use super::builder::Builder;
use super::modifiers::Modifiers;
use crate::number::{F1, F2, F3, bits, compare, half, integer};
use crate::program::Op;
use crate::syntax::{Instruction, Operand};
use crate::types::{Kind, Type};

const NOT_THIS_TYPE: &str = "there is no such operation on this type";

impl Builder<'_, '_> {
    /// False if the instruction is of another group.
    pub fn arithmetic(&mut self, i: &Instruction) -> Result<bool, String> {
        let mut m = Modifiers::new(&i.modifiers);
        // These names are those of float operations too.
        let shared = ["add", "sub", "mul", "mad", "neg", "abs", "min", "max", "div"].contains(&i.name.as_str());
        let is_float = i.modifiers.iter().any(|m| Type::parse(m).is_some_and(Type::is_float));
        if shared && is_float {
            return Ok(false);
        }
        match i.name.as_str() {
            "add" | "sub" | "addc" | "subc" => self.sum(i, m)?,
            "mul" | "mad" | "madc" | "mul24" | "mad24" => self.product(i, m)?,
            "sad" => {
                let kind = m.kind()?;
                m.done()?;
                self.ternary(i, integer::sum_of_differences(kind), [kind; 4])?;
            }
            "div" | "rem" | "min" | "max" => {
                let kind = m.kind()?;
                m.done()?;
                let f = match (kind.kind, i.name.as_str()) {
                    (Kind::Bits | Kind::Predicate, _) => None,
                    (_, "div") => integer::divide(kind),
                    (_, "rem") => integer::remainder(kind),
                    (_, "min") => integer::minimum(kind),
                    _ => integer::maximum(kind),
                };
                self.binary(i, f, [kind; 3])?;
            }
            "neg" | "abs" => {
                let kind = m.kind()?;
                m.done()?;
                let f = if i.name == "abs" { integer::absolute(kind) } else { integer::negate(kind) };
                self.unary(i, f.filter(|_| kind.is_signed()), [kind; 2])?;
            }
            "and" | "or" | "xor" => {
                let kind = m.kind()?;
                m.done()?;
                let f: F2 = match i.name.as_str() {
                    "and" => bits::and,
                    "or" => bits::or,
                    _ => bits::xor,
                };
                let known = matches!(kind.kind, Kind::Predicate | Kind::Bits) && kind.lanes == 1;
                self.binary(i, known.then_some(f), [kind; 3])?;
            }
            "not" | "cnot" => {
                let kind = m.kind()?;
                m.done()?;
                let known = matches!(kind.kind, Kind::Predicate | Kind::Bits);
                let f = if i.name == "not" { bits::not(kind.width()) } else { Some(bits::logical_not as F1) };
                self.unary(i, f.filter(|_| known), [kind; 2])?;
            }
            "shl" | "shr" => {
                let kind = m.kind()?;
                m.done()?;
                let f = match (i.name.as_str(), kind.kind) {
                    ("shl", Kind::Bits) => bits::shift_left(kind.bits),
                    ("shr", _) => bits::shift_right(kind),
                    _ => None,
                };
                self.binary(i, f, [kind, kind, Type::U32])?;
            }
            "shf" => {
                let left = m.take("l");
                let right = m.take("r");
                let wrap = m.take("wrap");
                let clamp = m.take("clamp");
                let kind = m.kind()?;
                m.done()?;
                let known = left != right && wrap != clamp && kind == Type::B32;
                self.ternary(i, known.then(|| bits::funnel(left, wrap)), [kind; 4])?;
            }
            "popc" | "clz" | "brev" => {
                let kind = m.kind()?;
                m.done()?;
                let f = match (i.name.as_str(), kind.kind) {
                    ("popc", Kind::Bits) => Some(bits::population as F1),
                    ("clz", Kind::Bits) => bits::leading_zeros(kind.bits),
                    ("brev", Kind::Bits) => bits::reverse(kind.bits),
                    _ => None,
                };
                let to = if i.name == "brev" { kind } else { Type::U32 };
                self.unary(i, f, [to, kind])?;
            }
            "bfind" => {
                let shift = m.take("shiftamt");
                let kind = m.kind()?;
                m.done()?;
                self.unary(i, bits::find(kind, shift), [Type::U32, kind])?;
            }
            "fns" => {
                let kind = m.kind()?;
                m.done()?;
                self.ternary(i, Some(bits::find_nth), [kind; 4])?;
            }
            "bfe" => {
                let kind = m.kind()?;
                m.done()?;
                self.ternary(i, bits::extract(kind), [kind, kind, Type::U32, Type::U32])?;
            }
            "bfi" => {
                let kind = m.kind()?;
                m.done()?;
                let f = bits::insert(kind.bits).ok_or(NOT_THIS_TYPE)?;
                let [d, a, b, c, e] = Self::operands(i)?;
                let (a, b) = (self.source(a, kind)?, self.source(b, kind)?);
                let (c, e) = (self.source(c, Type::U32)?, self.source(e, Type::U32)?);
                let d = self.destination(d, kind)?;
                self.emit(Op::F4 { f, d, a, b, c, e });
            }
            "szext" | "bmsk" => {
                let wrap = m.take("wrap");
                let clamp = m.take("clamp");
                let kind = m.kind()?;
                m.done()?;
                let mask: F2 = if wrap { |a, b| bits::mask(a, b, true) } else { |a, b| bits::mask(a, b, false) };
                let f = if i.name == "bmsk" { Some(mask) } else { bits::extend_from(kind, wrap) };
                self.binary(i, f.filter(|_| wrap != clamp && kind.bits == 32), [kind; 3])?;
            }
            "lop3" => {
                let kind = m.kind()?;
                m.done()?;
                let [d, a, b, c, table] = Self::operands(i)?;
                let (a, b, c) = (self.source(a, kind)?, self.source(b, kind)?, self.source(c, kind)?);
                let e = self.source(table, Type::U32)?;
                let d = self.destination(d, Type::B32)?;
                self.emit(Op::F4 { f: bits::table, d, a, b, c, e });
            }
            "prmt" => {
                let kind = m.kind()?;
                let mode = m.take_first(|mode| bits::permute_mode(mode).is_some());
                m.done()?;
                let f = mode.map_or(Some(bits::permute as F3), bits::permute_mode);
                self.ternary(i, f.filter(|_| kind == Type::B32), [kind; 4])?;
            }
            "dp4a" | "dp2a" => {
                let high = m.take("hi");
                let low = m.take("lo");
                let (a, b) = (m.kind()?, m.kind()?);
                m.done()?;
                let f = if i.name == "dp4a" {
                    integer::dot_bytes(a.is_signed(), b.is_signed())
                } else {
                    integer::dot_halves(a.is_signed(), b.is_signed(), high)
                };
                let known = (i.name == "dp2a") == (high != low) && a.bits == 32 && b.bits == 32;
                self.ternary(i, known.then_some(f), [Type::B32, a, b, Type::B32])?;
            }
            "setp" | "set" => self.comparison(i, m)?,
            "selp" => {
                let kind = m.kind()?;
                m.done()?;
                self.ternary(i, Some(compare::select), [kind, kind, kind, Type::PREDICATE])?;
            }
            "slct" => {
                let flush = m.take("ftz");
                let (kind, by) = (m.kind()?, m.kind()?);
                m.done()?;
                // A subnormal number and the zero that it is flushed to choose alike but for -0, which is not negative.
                let f: Option<F3> = match (by.kind, by.bits, flush) {
                    (Kind::Signed, 32, false) => Some(compare::select_by_integer),
                    (Kind::Float, 32, false) => Some(compare::select_by_float),
                    (Kind::Float, 32, true) => {
                        Some(|a, b, c| compare::select_by_float(a, b, crate::number::float::flush(c)))
                    }
                    _ => None,
                };
                self.ternary(i, f, [kind, kind, kind, by])?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub fn unary(&mut self, i: &Instruction, f: Option<F1>, kinds: [Type; 2]) -> Result<(), String> {
        let f = f.ok_or(NOT_THIS_TYPE)?;
        let [d, a] = Self::operands(i)?;
        let a = self.source(a, kinds[1])?;
        let d = self.destination(d, kinds[0])?;
        self.f1(f, d, a);
        Ok(())
    }

    pub fn binary(&mut self, i: &Instruction, f: Option<F2>, kinds: [Type; 3]) -> Result<(), String> {
        let f = f.ok_or(NOT_THIS_TYPE)?;
        let [d, a, b] = Self::operands(i)?;
        let (a, b) = (self.source(a, kinds[1])?, self.source(b, kinds[2])?);
        let d = self.destination(d, kinds[0])?;
        self.f2(f, d, a, b);
        Ok(())
    }

    pub fn ternary(&mut self, i: &Instruction, f: Option<F3>, kinds: [Type; 4]) -> Result<(), String> {
        let f = f.ok_or(NOT_THIS_TYPE)?;
        let [d, a, b, c] = Self::operands(i)?;
        let (a, b, c) = (self.source(a, kinds[1])?, self.source(b, kinds[2])?, self.source(c, kinds[3])?);
        let d = self.destination(d, kinds[0])?;
        self.f3(f, d, a, b, c);
        Ok(())
    }

    /// The slot of the carry.
    fn carry(&mut self) -> u32 {
        match self.carry {
            Some(slot) => slot,
            None => {
                let slot = self.temporary();
                self.carry = Some(slot);
                slot
            }
        }
    }

    fn sum(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let adds = i.name.starts_with("add");
        let carry_in = i.name.ends_with('c');
        let carry_out = m.take("cc");
        let saturate = m.take("sat");
        let kind = m.kind()?;
        m.done()?;
        if !carry_in && !carry_out {
            if saturate {
                let f: F2 = if adds { integer::add_saturating } else { integer::subtract_saturating };
                return self.binary(i, (kind == Type::new(Kind::Signed, 32)).then_some(f), [kind; 3]);
            }
            let packed = half::binary(&i.name, kind);
            let f = if adds { integer::add(kind) } else { integer::subtract(kind) };
            if adds && packed.is_none() && kind.bits >= 32 && f.is_some() {
                let [d, a, b] = Self::operands(i)?;
                let (a, b) = (self.source(a, kind)?, self.source(b, kind)?);
                let d = self.destination(d, kind)?;
                self.emit(if kind.bits == 32 { Op::AddWord { d, a, b } } else { Op::AddLong { d, a, b } });
                return Ok(());
            }
            return self.binary(i, f, [kind; 3]);
        }
        if saturate || !kind.is_integer() {
            return Err(NOT_THIS_TYPE.to_string());
        }
        let [d, a, b] = Self::operands(i)?;
        let (a, b) = (self.source(a, kind)?, self.source(b, kind)?);
        let d = self.destination(d, kind)?;
        self.extended(adds, carry_in, carry_out, kind.bits, [d, a, b])
    }

    /// Addition or subtraction with carries in and out.
    fn extended(
        &mut self,
        adds: bool,
        takes: bool,
        gives: bool,
        width: u32,
        [d, a, b]: [u32; 3],
    ) -> Result<(), String> {
        let carry = self.carry();
        let c = if takes { carry } else { self.constant(0) };
        let (sum, over) = if adds {
            (integer::add_with_carry(width), integer::carry(width))
        } else {
            (integer::subtract_with_borrow(width), integer::borrow(width))
        };
        let (sum, over) = (sum.ok_or(NOT_THIS_TYPE)?, over.ok_or(NOT_THIS_TYPE)?);
        // The destination may be an operand, so it comes last.
        let result = self.temporary();
        self.f3(sum, result, a, b, c);
        if gives {
            self.f3(over, carry, a, b, c);
        }
        self.emit(Op::Move { d, a: result });
        Ok(())
    }

    fn product(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let adds = i.name.starts_with("mad");
        let narrow = i.name.ends_with("24");
        let carry_in = i.name == "madc";
        let carry_out = m.take("cc");
        let (wide, high, low) = (m.take("wide"), m.take("hi"), m.take("lo"));
        let saturate = m.take("sat");
        let kind = m.kind()?;
        m.done()?;
        let f = match (narrow, wide, high, low) {
            (true, false, _, _) if high != low => integer::multiply_24(kind, high),
            (false, true, false, false) => integer::multiply_wide(kind),
            (false, false, true, false) => integer::multiply_high(kind),
            (false, false, false, true) => integer::multiply_low(kind),
            _ => return Err("one of .lo, .hi and .wide is needed".to_string()),
        };
        let f = f.filter(|_| kind.kind != Kind::Bits).ok_or(NOT_THIS_TYPE)?;
        let result = if wide { Type::new(kind.kind, kind.bits * 2) } else { kind };
        if !adds {
            return self.binary(i, (!saturate && !carry_out).then_some(f), [result, kind, kind]);
        }
        let [d, a, b, c] = Self::operands(i)?;
        let (a, b, c) = (self.source(a, kind)?, self.source(b, kind)?, self.source(c, result)?);
        let d = self.destination(d, result)?;
        if low && kind.bits == 32 && !narrow && !carry_in && !carry_out && !saturate {
            self.emit(Op::MultiplyAddWord { d, a, b, c });
            return Ok(());
        }
        let product = self.temporary();
        self.f2(f, product, a, b);
        if carry_in || carry_out {
            if wide || narrow || saturate {
                return Err("there is no carry here".to_string());
            }
            return self.extended(true, carry_in, carry_out, kind.bits, [d, product, c]);
        }
        let sum = match saturate {
            false => integer::add(result),
            true if high && kind == Type::new(Kind::Signed, 32) => Some(integer::add_saturating as F2),
            true => None,
        };
        self.f2(sum.ok_or(NOT_THIS_TYPE)?, d, product, c);
        Ok(())
    }

    /// setp and set, with a second predicate, and with a third operand joined in.
    fn comparison(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let name = m.take_first(compare::is_comparison).ok_or("the comparison is missing")?;
        let join = m.take_first(|m| compare::joined(m).is_some()).and_then(compare::joined);
        let flush = m.take("ftz");
        let to = if i.name == "set" { m.kind()? } else { Type::PREDICATE };
        let kind = m.kind()?;
        m.done()?;
        let f = compare::comparison(name, kind).ok_or(NOT_THIS_TYPE)?;
        let (d, a, b, c) = match (i.operands.as_slice(), join) {
            ([d, a, b], None) => (d, a, b, None),
            ([d, a, b, c], Some(_)) => (d, a, b, Some(c)),
            (all, _) => return Err(format!("{} operands", all.len())),
        };
        let (mut a, mut b) = (self.source(a, kind)?, self.source(b, kind)?);
        if flush {
            (a, b) = (self.flushed(a, kind)?, self.flushed(b, kind)?);
        }
        let c = match c {
            Some(c) => Some(self.source(c, Type::PREDICATE)?),
            None => None,
        };
        if i.name == "set" {
            let holds = self.temporary();
            self.f2(f, holds, a, b);
            if let (Some(c), Some(join)) = (c, join) {
                self.f2(join, holds, holds, c);
            }
            let d = self.destination(d, to)?;
            self.f1(compare::truth(to).ok_or(NOT_THIS_TYPE)?, d, holds);
            return Ok(());
        }
        let (p, q) = match d {
            Operand::Pair(p, q) => (p, Some(q)),
            Operand::Name(p) => (p, None),
            _ => return Err("the destination is no predicate".to_string()),
        };
        let p = self.destination(&Operand::Name(p.clone()), Type::PREDICATE)?;
        let q = match q {
            Some(q) => Some(self.destination(&Operand::Name(q.clone()), Type::PREDICATE)?),
            None => None,
        };
        if c.is_none() && q.is_none() {
            self.f2(f, p, a, b);
            return Ok(());
        }
        let (holds, fails) = (self.temporary(), self.temporary());
        self.f2(f, holds, a, b);
        self.f1(|a| a ^ 1, fails, holds);
        if let (Some(c), Some(join)) = (c, join) {
            self.f2(join, holds, holds, c);
            self.f2(join, fails, fails, c);
        }
        self.emit(Op::Move { d: p, a: holds });
        if let Some(q) = q {
            self.emit(Op::Move { d: q, a: fails });
        }
        Ok(())
    }
}
