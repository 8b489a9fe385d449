//! Floating point.

use super::builder::Builder;
use super::modifiers::Modifiers;
use crate::number::soft::Rounding;
use crate::number::{F1, F2, F3, float, half};
use crate::program::Op;
use crate::syntax::Instruction;
use crate::types::{Kind, Type};

const NOT_THIS_TYPE: &str = "there is no such operation on this type";

/// A function of one to three operands.
enum Function {
    One(F1),
    Two(F2),
    Three(F3),
}

impl Builder<'_, '_> {
    /// False if the instruction is of another group.
    pub fn floating(&mut self, i: &Instruction) -> Result<bool, String> {
        const NAMES: &[&str] = &[
            "add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh",
            "neg", "abs", "min", "max", "copysign", "testp",
        ];
        if !NAMES.contains(&i.name.as_str()) {
            return Ok(false);
        }
        let mut m = Modifiers::new(&i.modifiers);
        if i.name == "testp" {
            let class = m.take_first(|m| m != "f32" && m != "f64").ok_or("the class is missing")?;
            let kind = m.kind()?;
            m.done()?;
            self.unary(i, float::test(class, kind.width()), [Type::PREDICATE, kind])?;
            return Ok(true);
        }
        let rounding = m.rounding();
        let approximate = m.take("approx");
        let full = m.take("full");
        let flush = m.take("ftz");
        let saturate = m.take("sat");
        let relu = m.take("relu");
        let nan = m.take("NaN");
        let kind = m.kind()?;
        m.done()?;
        if !kind.is_float() {
            return Err(NOT_THIS_TYPE.to_string());
        }
        let function = if kind.bits == 16 {
            if rounding.is_some_and(|r| r != Rounding::Nearest) {
                return Err("16 bits are rounded to nearest alone".to_string());
            }
            self.of_half(&i.name, kind, nan)
        } else {
            of_single_or_double(&i.name, kind.width(), rounding, approximate, full, flush, nan)
        };
        let function = function.ok_or(NOT_THIS_TYPE)?;
        // The coarse functions of f64 flush by themselves.
        let flush = flush && !(kind.width() == 64 && approximate);
        self.apply(i, function, kind, flush, saturate, relu)?;
        Ok(true)
    }

    fn of_half(&self, name: &str, kind: Type, nan: bool) -> Option<Function> {
        Some(match name {
            "fma" => Function::Three(half::fused(kind)?),
            "min" if nan => Function::Two(half::binary("min.NaN", kind)?),
            "max" if nan => Function::Two(half::binary("max.NaN", kind)?),
            "add" | "sub" | "mul" | "min" | "max" => Function::Two(half::binary(name, kind)?),
            _ => Function::One(half::unary(name, kind)?),
        })
    }

    /// The slot of an operand with subnormal numbers flushed to zero.
    pub fn flushed(&mut self, slot: u32, kind: Type) -> Result<u32, String> {
        let flushed = self.temporary();
        self.f1(flush_of(kind)?, flushed, slot);
        Ok(flushed)
    }

    fn apply(
        &mut self,
        i: &Instruction,
        function: Function,
        kind: Type,
        flush: bool,
        saturate: bool,
        relu: bool,
    ) -> Result<(), String> {
        let count = match function {
            Function::One(_) => 1,
            Function::Two(_) => 2,
            Function::Three(_) => 3,
        };
        if i.operands.len() != count + 1 {
            return Err(format!("{} operands, not {}", i.operands.len(), count + 1));
        }
        let mut sources = [0; 3];
        for (at, operand) in i.operands[1..].iter().enumerate() {
            sources[at] = self.source(operand, kind)?;
            if flush {
                sources[at] = self.flushed(sources[at], kind)?;
            }
        }
        let [a, b, c] = sources;
        let d = self.destination(&i.operands[0], kind)?;
        let nearest = !i.modifiers.iter().any(|m| ["rz", "rm", "rp"].contains(&m.as_str()));
        match function {
            Function::One(f) => self.f1(f, d, a),
            Function::Two(_) if i.name == "add" && kind.width() == 32 && kind.lanes == 1 && nearest => {
                self.emit(Op::AddSingle { d, a, b });
            }
            Function::Two(_) if i.name == "mul" && kind.width() == 32 && kind.lanes == 1 && nearest => {
                self.emit(Op::MultiplySingle { d, a, b });
            }
            Function::Two(f) => self.f2(f, d, a, b),
            Function::Three(f) => self.f3(f, d, a, b, c),
        }
        if flush {
            self.f1(flush_of(kind)?, d, d);
        }
        if saturate {
            let f = if kind.bits == 16 { half::unary("sat", kind) } else { float::saturate(kind.width()) };
            self.f1(f.ok_or(NOT_THIS_TYPE)?, d, d);
        }
        if relu {
            let f = if kind.bits == 16 { half::unary("relu", kind) } else { None };
            self.f1(f.ok_or(NOT_THIS_TYPE)?, d, d);
        }
        Ok(())
    }
}

fn flush_of(kind: Type) -> Result<F1, String> {
    let f = match (kind.kind, kind.bits) {
        (Kind::Float, 32) => Some(float::flush as F1),
        (_, 16) => half::unary("flush", kind),
        _ => None,
    };
    f.ok_or_else(|| format!("there is no .ftz for {kind}"))
}

fn of_single_or_double(
    name: &str,
    width: u32,
    rounding: Option<Rounding>,
    approximate: bool,
    full: bool,
    flush: bool,
    nan: bool,
) -> Option<Function> {
    let exact = !approximate && !full;
    let nearest = rounding.unwrap_or(Rounding::Nearest);
    Some(match name {
        "add" if exact => Function::Two(float::add(width, nearest)?),
        "sub" if exact => Function::Two(float::subtract(width, nearest)?),
        "mul" if exact => Function::Two(float::multiply(width, nearest)?),
        // From compute capability 2.0 on, mad of floats is fma and needs its rounding.
        "fma" | "mad" if exact => Function::Three(float::multiply_add(width, rounding?)?),
        "div" if exact => Function::Two(float::divide(width, rounding?)?),
        "div" if width == 32 && rounding.is_none() => Function::Two(float::divide_approximate),
        "rcp" if exact => Function::One(float::reciprocal(width, rounding?)?),
        "sqrt" if exact => Function::One(float::square_root(width, rounding?)?),
        "rcp" | "rsqrt" if width == 64 && approximate && flush => Function::One(float::approximate_double(name)?),
        "rsqrt" if width == 64 && approximate => Function::One(float::rsqrt_double),
        "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" if width == 32 && approximate => {
            Function::One(float::approximate(name)?)
        }
        "neg" if exact => Function::One(float::negate(width)?),
        "abs" if exact => Function::One(float::absolute(width)?),
        "min" if exact => Function::Two(float::minimum(width, nan)?),
        "max" if exact => Function::Two(float::maximum(width, nan)?),
        "copysign" if exact => Function::Two(float::copy_sign(width)?),
        _ => return None,
    })
}
