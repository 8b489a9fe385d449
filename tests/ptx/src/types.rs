//! The types of operands.

/// What the bits of a value mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Predicate,
    Bits,
    Unsigned,
    Signed,
    Float,
    /// A float with the exponent of f32 and 7 bits of fraction.
    Brain,
}

/// A fundamental type: `lanes` is 2 for the packed pairs f16x2 and bf16x2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type {
    pub kind: Kind,
    /// Bits of one lane.
    pub bits: u32,
    pub lanes: u32,
}

impl Type {
    pub const PREDICATE: Self = Self::new(Kind::Predicate, 1);
    pub const B32: Self = Self::new(Kind::Bits, 32);
    pub const U32: Self = Self::new(Kind::Unsigned, 32);
    pub const U64: Self = Self::new(Kind::Unsigned, 64);

    pub const fn new(kind: Kind, bits: u32) -> Self {
        Self { kind, bits, lanes: 1 }
    }

    /// The type of a name such as "u32", without its dot.
    pub fn parse(name: &str) -> Option<Self> {
        let (kind, bits, lanes) = match name {
            "pred" => (Kind::Predicate, 1, 1),
            "f16x2" => (Kind::Float, 16, 2),
            "bf16x2" => (Kind::Brain, 16, 2),
            "bf16" => (Kind::Brain, 16, 1),
            "b8" => (Kind::Bits, 8, 1),
            "b16" => (Kind::Bits, 16, 1),
            "b32" => (Kind::Bits, 32, 1),
            "b64" => (Kind::Bits, 64, 1),
            "u8" => (Kind::Unsigned, 8, 1),
            "u16" => (Kind::Unsigned, 16, 1),
            "u32" => (Kind::Unsigned, 32, 1),
            "u64" => (Kind::Unsigned, 64, 1),
            "s8" => (Kind::Signed, 8, 1),
            "s16" => (Kind::Signed, 16, 1),
            "s32" => (Kind::Signed, 32, 1),
            "s64" => (Kind::Signed, 64, 1),
            "f16" => (Kind::Float, 16, 1),
            "f32" => (Kind::Float, 32, 1),
            "f64" => (Kind::Float, 64, 1),
            _ => return None,
        };
        Some(Self { kind, bits, lanes })
    }

    /// Bits of all lanes.
    pub fn width(self) -> u32 {
        self.bits * self.lanes
    }

    /// Bytes in memory; a predicate has none there.
    pub fn bytes(self) -> u32 {
        self.width() / 8
    }

    pub fn is_float(self) -> bool {
        matches!(self.kind, Kind::Float | Kind::Brain)
    }

    pub fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Bits | Kind::Unsigned | Kind::Signed)
    }

    pub fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = match self.kind {
            Kind::Predicate => return f.write_str("pred"),
            Kind::Bits => "b",
            Kind::Unsigned => "u",
            Kind::Signed => "s",
            Kind::Float => "f",
            Kind::Brain => "bf",
        };
        write!(f, "{letter}{}{}", self.bits, if self.lanes == 2 { "x2" } else { "" })
    }
}

/// The state spaces that an address can be in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    Global,
    Const,
    Shared,
    Local,
    Param,
}

impl Space {
    /// The space of a modifier such as "shared" or "shared::cta", without its dot.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "global" => Self::Global,
            "const" => Self::Const,
            "shared" | "shared::cta" => Self::Shared,
            "local" => Self::Local,
            "param" | "param::entry" | "param::func" => Self::Param,
            _ => return None,
        })
    }
}
