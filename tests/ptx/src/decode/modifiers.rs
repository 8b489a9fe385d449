//! The modifiers of an instruction, taken one by one, so that one that nobody took is found.

use crate::number::soft::Rounding;
use crate::types::Type;

pub struct Modifiers<'a> {
    left: Vec<&'a str>,
}

impl<'a> Modifiers<'a> {
    pub fn new(all: &'a [String]) -> Self {
        Self { left: all.iter().map(String::as_str).collect() }
    }

    pub fn take(&mut self, name: &str) -> bool {
        self.take_first(|modifier| modifier == name).is_some()
    }

    /// The first modifier that holds.
    pub fn take_first(&mut self, holds: impl Fn(&str) -> bool) -> Option<&'a str> {
        let at = self.left.iter().position(|modifier| holds(modifier))?;
        Some(self.left.remove(at))
    }

    /// The value beside the name that is there.
    pub fn take_any<T: Copy>(&mut self, names: &[(&str, T)]) -> Option<T> {
        let found = self.take_first(|modifier| names.iter().any(|(name, _)| *name == modifier))?;
        names.iter().find(|(name, _)| *name == found).map(|(_, value)| *value)
    }

    pub fn take_all(&mut self, names: &[&str]) {
        self.left.retain(|modifier| !names.contains(modifier));
    }

    /// The next type.
    pub fn kind(&mut self) -> Result<Type, String> {
        let name = self.take_first(|modifier| Type::parse(modifier).is_some()).ok_or("a type is missing")?;
        Type::parse(name).ok_or_else(|| format!("unknown type .{name}"))
    }

    pub fn rounding(&mut self) -> Option<Rounding> {
        use Rounding::{Down, Nearest, Up, Zero};
        self.take_any(&[("rn", Nearest), ("rz", Zero), ("rm", Down), ("rp", Up)])
    }

    pub fn rounding_to_integer(&mut self) -> Option<Rounding> {
        use Rounding::{Down, Nearest, Up, Zero};
        self.take_any(&[("rni", Nearest), ("rzi", Zero), ("rmi", Down), ("rpi", Up)])
    }

    pub fn done(self) -> Result<(), String> {
        match self.left.first() {
            None => Ok(()),
            Some(modifier) => Err(format!("modifier .{modifier} is not known here")),
        }
    }
}
