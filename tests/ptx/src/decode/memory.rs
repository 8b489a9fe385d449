//! Loads, stores and atomic operations.

use super::builder::{Address, Builder};
use super::modifiers::Modifiers;
use crate::number::F3;
use crate::program::{AtomicSite, Op, VectorSite, Window};
use crate::run::atomic;
use crate::syntax::{Instruction, Operand};
use crate::types::{Kind, Space};

/// Orders, scopes and hints, none of which change what one thread after the other reads and writes.
const ORDERS: &[&str] = &[
    "weak",
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "acq_rel",
    "mmio",
    "cta",
    "cluster",
    "gpu",
    "sys",
    "nc",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::evict_normal",
    "L2::evict_first",
    "L2::evict_last",
    "L2::64B",
    "L2::128B",
    "L2::256B",
];

impl Builder<'_, '_> {
    /// False if the instruction is of another group.
    pub fn memory(&mut self, i: &Instruction) -> Result<bool, String> {
        let mut m = Modifiers::new(&i.modifiers);
        match i.name.as_str() {
            "ld" | "ldu" => self.load_or_store(i, m, true)?,
            "st" => self.load_or_store(i, m, false)?,
            "atom" | "red" => self.atomic(i, m)?,
            "prefetch" | "prefetchu" => {
                m.take_all(&["L1", "L2", "L2::evict_last", "L2::evict_normal"]);
                self.window(&mut m);
                m.done()?;
                let [address] = Self::operands(i)?;
                self.address(address)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn window(&self, m: &mut Modifiers) -> Window {
        match m.take_first(|m| Space::parse(m).is_some()).and_then(Space::parse) {
            None => Window::Generic,
            Some(Space::Global | Space::Const) => Window::Global,
            Some(Space::Shared) => Window::Shared,
            Some(Space::Local) => Window::Local,
            Some(Space::Param) if self.is_entry => Window::Parameters,
            Some(Space::Param) => Window::Local,
        }
    }

    /// The window of an access: that of the name in its address, if there is one, which must be in the asked space.
    fn window_of(asked: Window, address: &Address) -> Result<Window, String> {
        match (address.known, asked) {
            (None, _) => Ok(asked),
            (Some(Window::Frame), Window::Local | Window::Parameters) => Ok(Window::Frame),
            (Some(known), _) if known == asked => Ok(known),
            (Some(known), _) => Err(format!("the name in the address is in {known:?}, not {asked:?}")),
        }
    }

    fn load_or_store(&mut self, i: &Instruction, mut m: Modifiers, loads: bool) -> Result<(), String> {
        let asked = self.window(&mut m);
        m.take_all(ORDERS);
        let count = m.take_any(&[("v2", 2), ("v4", 4), ("v8", 8)]);
        let kind = m.kind()?;
        m.done()?;
        if kind.kind == Kind::Predicate || kind.lanes != 1 {
            return Err(format!("{kind} is not kept in memory"));
        }
        let [first, second] = Self::operands(i)?;
        let (value, address) = if loads { (first, second) } else { (second, first) };
        let address = self.address(address)?;
        let window = Self::window_of(asked, &address)?;
        let (a, offset, size) = (address.base, address.offset, kind.bytes() as u8);
        let Some(count) = count else {
            if loads {
                let (d, width) = self.wide_destination(value, kind)?;
                self.emit(Op::Load { window, size, d, a, offset });
                if kind.is_signed() && width > kind.width() {
                    self.widen(d, kind, width)?;
                }
            } else {
                let s = self.wide_source(value, kind)?;
                self.emit(Op::Store { window, size, s, a, offset });
            }
            return Ok(());
        };
        let Operand::Vector(elements) = value else { return Err("a vector is missing".to_string()) };
        if elements.len() != count {
            return Err(format!("{} elements, not {count}", elements.len()));
        }
        let mut slots = Vec::new();
        let mut widths = Vec::new();
        for element in elements {
            if loads {
                let (slot, width) = self.wide_destination(element, kind)?;
                slots.push(slot);
                widths.push(width);
            } else {
                slots.push(self.wide_source(element, kind)?);
            }
        }
        let site = self.function.vectors.len() as u32;
        self.function.vectors.push(VectorSite { window, size, slots: slots.clone(), a, offset });
        self.emit(if loads { Op::LoadVector { site } } else { Op::StoreVector { site } });
        if loads && kind.is_signed() {
            for (slot, width) in slots.into_iter().zip(widths) {
                if width > kind.width() {
                    self.widen(slot, kind, width)?;
                }
            }
        }
        Ok(())
    }

    fn atomic(&mut self, i: &Instruction, mut m: Modifiers) -> Result<(), String> {
        const NAMES: &[&str] = &["add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"];
        let asked = self.window(&mut m);
        m.take_all(&ORDERS[2..11]);
        m.take_all(&["noftz"]);
        let name = m.take_first(|m| NAMES.contains(&m)).ok_or("the operation is missing")?;
        let kind = m.kind()?;
        m.done()?;
        let returns = i.name == "atom";
        // Single floats are flushed in global memory, not in shared.
        let f: F3 = atomic::function(name, kind, asked != Window::Shared)
            .filter(|_| returns || !["exch", "cas"].contains(&name))
            .ok_or("there is no such operation on this type")?;
        let expected = 2 + usize::from(returns) + usize::from(name == "cas");
        if i.operands.len() != expected {
            return Err(format!("{} operands, not {expected}", i.operands.len()));
        }
        let rest = if returns { &i.operands[1..] } else { &i.operands[..] };
        let address = self.address(&rest[0])?;
        let window = Self::window_of(asked, &address)?;
        let b = self.source(&rest[1], kind)?;
        let c = match rest.get(2) {
            Some(operand) => self.source(operand, kind)?,
            None => b,
        };
        let d = if returns { self.destination(&i.operands[0], kind)? } else { self.discarded() };
        let site = self.function.atomics.len() as u32;
        let size = kind.bytes() as u8;
        self.function.atomics.push(AtomicSite { window, size, f, d, a: address.base, offset: address.offset, b, c });
        self.emit(Op::Atomic { site });
        Ok(())
    }
}
