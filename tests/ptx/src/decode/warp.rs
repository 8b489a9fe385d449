//! What threads do together: barriers, fences, and exchanges in a warp.

use super::builder::Builder;
use super::modifiers::Modifiers;
use crate::program::{BarrierSite, ExchangeSite, Op, Reduction};
use crate::run::warp::{Exchange, Fold, Shuffle};
use crate::syntax::{Instruction, Operand};
use crate::types::{Kind, Type};

impl Builder<'_, '_> {
    /// False if the instruction is of another group.
    pub fn together(&mut self, i: &Instruction) -> Result<bool, String> {
        let mut m = Modifiers::new(&i.modifiers);
        match i.name.as_str() {
            "membar" | "fence" => {
                m.take_all(&["sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "gl", "sys"]);
                m.done()?;
                self.emit(Op::Nothing);
            }
            "bar" | "barrier" => self.barrier(i, m)?,
            "shfl" => self.shuffle(i, m)?,
            "vote" => self.vote(i, m)?,
            "match" => self.matching(i, m)?,
            "redux" => self.fold(i, m)?,
            "activemask" => {
                let kind = m.kind()?;
                m.done()?;
                let [d] = Self::operands(i)?;
                let d = self.destination(d, kind)?;
                let mask = self.constant(u32::MAX.into());
                self.exchange(Exchange::Active, [d, d], [mask; 3], mask);
            }
            "elect" => {
                if !m.take("sync") {
                    return Err(".sync is missing".to_string());
                }
                m.done()?;
                let [to, mask] = Self::operands(i)?;
                let (d, p) = self.with_predicate(to, Type::B32)?;
                let mask = self.source(mask, Type::B32)?;
                self.exchange(Exchange::Elect, [d, p], [mask; 3], mask);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn exchange(&mut self, what: Exchange, [d, p]: [u32; 2], [a, b, c]: [u32; 3], mask: u32) {
        let site = self.function.exchanges.len() as u32;
        self.function.exchanges.push(ExchangeSite { what, d, p, a, b, c, mask });
        self.emit(Op::Exchange { site });
    }

    /// A destination d or d|p; without p its predicate is discarded.
    fn with_predicate(&mut self, operand: &Operand, kind: Type) -> Result<(u32, u32), String> {
        match operand {
            Operand::Pair(d, p) => Ok((
                self.destination(&Operand::Name(d.clone()), kind)?,
                self.destination(&Operand::Name(p.clone()), Type::PREDICATE)?,
            )),
            other => Ok((self.destination(other, kind)?, self.discarded())),
        }
    }

    fn shuffle(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        if !m.take("sync") {
            return Err("only shfl.sync is known: without .sync it is gone from compute capability 7.0 on".to_string());
        }
        let modes =
            [("up", Shuffle::Up), ("down", Shuffle::Down), ("bfly", Shuffle::Butterfly), ("idx", Shuffle::Index)];
        let mode = m.take_any(&modes).ok_or("the mode is missing")?;
        let kind = m.kind()?;
        m.done()?;
        if kind.width() != 32 {
            return Err("only 32 bits are exchanged".to_string());
        }
        let [to, a, b, c, mask] = Self::operands(i)?;
        let (d, p) = self.with_predicate(to, kind)?;
        let sources = [self.source(a, kind)?, self.source(b, Type::B32)?, self.source(c, Type::B32)?];
        let mask = self.source(mask, Type::B32)?;
        self.exchange(Exchange::Shuffle(mode), [d, p], sources, mask);
        Ok(())
    }

    fn vote(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        if !m.take("sync") {
            return Err("only vote.sync is known: without .sync it is gone from compute capability 7.0 on".to_string());
        }
        let modes =
            [("all", Exchange::All), ("any", Exchange::Any), ("uni", Exchange::Uniform), ("ballot", Exchange::Ballot)];
        let what = m.take_any(&modes).ok_or("the mode is missing")?;
        let kind = m.kind()?;
        m.done()?;
        let [to, a, mask] = Self::operands(i)?;
        if (kind == Type::PREDICATE) == (what == Exchange::Ballot) {
            return Err(format!("{kind} does not go with this vote"));
        }
        let a = self.source(a, Type::PREDICATE)?;
        let d = self.destination(to, kind)?;
        let mask = self.source(mask, Type::B32)?;
        self.exchange(what, [d, d], [a; 3], mask);
        Ok(())
    }

    fn matching(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let what =
            m.take_any(&[("any", Exchange::MatchAny), ("all", Exchange::MatchAll)]).ok_or("the mode is missing")?;
        let synchronized = m.take("sync");
        let kind = m.kind()?;
        m.done()?;
        if !synchronized || ![32, 64].contains(&kind.width()) {
            return Err("match.sync has operands of 32 or 64 bits".to_string());
        }
        let [to, a, mask] = Self::operands(i)?;
        let a = self.source(a, kind)?;
        let (d, p) = self.with_predicate(to, Type::B32)?;
        let mask = self.source(mask, Type::B32)?;
        self.exchange(what, [d, p], [a; 3], mask);
        Ok(())
    }

    fn fold(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        let synchronized = m.take("sync");
        let folds = [
            ("add", Fold::Add),
            ("min", Fold::Min),
            ("max", Fold::Max),
            ("and", Fold::And),
            ("or", Fold::Or),
            ("xor", Fold::Xor),
        ];
        let fold = m.take_any(&folds).ok_or("the operation is missing")?;
        let kind = m.kind()?;
        m.done()?;
        let logic = matches!(fold, Fold::And | Fold::Or | Fold::Xor);
        if !synchronized || kind.width() != 32 || logic != (kind.kind == Kind::Bits) {
            return Err("there is no such operation on this type".to_string());
        }
        let [to, a, mask] = Self::operands(i)?;
        let a = self.source(a, kind)?;
        let d = self.destination(to, kind)?;
        let mask = self.source(mask, Type::B32)?;
        self.exchange(Exchange::Fold(fold, kind.is_signed()), [d, d], [a; 3], mask);
        Ok(())
    }

    fn barrier(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        m.take("cta");
        if m.take("warp") {
            let synchronized = m.take("sync");
            m.done()?;
            let [mask] = Self::operands(i)?;
            if !synchronized {
                return Err(".sync is missing".to_string());
            }
            let mask = self.source(mask, Type::B32)?;
            let nothing = self.discarded();
            self.exchange(Exchange::Nothing, [nothing; 2], [mask; 3], mask);
            return Ok(());
        }
        let aligned = m.take("aligned") || i.name == "bar";
        let waits =
            m.take_any(&[("sync", 0), ("arrive", 1), ("red", 2)]).ok_or("what is done at the barrier is missing")?;
        let reductions = [("popc", Reduction::Count), ("and", Reduction::And), ("or", Reduction::Or)];
        let reduction =
            if waits == 2 { Some(m.take_any(&reductions).ok_or("the reduction is missing")?) } else { None };
        let kind = if waits == 2 { m.kind()? } else { Type::PREDICATE };
        m.done()?;
        let (d, number, count, p) = match (i.operands.as_slice(), reduction) {
            ([number], None) => (None, number, None, None),
            ([number, count], None) => (None, number, Some(count), None),
            ([d, number, p], Some(_)) => (Some(d), number, None, Some(p)),
            ([d, number, count, p], Some(_)) => (Some(d), number, Some(count), Some(p)),
            (all, _) => return Err(format!("{} operands", all.len())),
        };
        if waits == 1 && count.is_none() {
            return Err("who does not wait has to say how many threads are awaited".to_string());
        }
        let count = match count {
            Some(count) => Some(self.source(count, Type::U32)?),
            None => None,
        };
        let reduction = match (d, p, reduction) {
            (Some(d), Some(p), Some(reduction)) => {
                let expected = if reduction == Reduction::Count { Type::U32 } else { Type::PREDICATE };
                if kind != expected {
                    return Err(format!("{kind} does not go with this reduction"));
                }
                Some((self.destination(d, kind)?, self.source(p, Type::PREDICATE)?, reduction))
            }
            _ => None,
        };
        let number = self.source(number, Type::U32)?;
        let site = self.function.barriers.len() as u32;
        self.function.barriers.push(BarrierSite { number, count, waits: waits != 1, aligned, reduction });
        self.emit(Op::Barrier { site });
        Ok(())
    }
}
