//! Operands for tests: random bits, with the values where rules change drawn often.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.bits() >> 11) % limit
    }

    /// An integer of `width` bits.
    pub fn integer(&mut self, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        let value = match self.below(6) {
            0 => self.below(5).wrapping_sub(2),
            1 => (1 << self.below(width.into())) - self.below(2),
            2 => (1 << (width - 1)) - self.below(3),
            3 => self.bits() >> self.below(64),
            _ => self.bits(),
        };
        value & mask
    }

    /// The bits of a float whose fraction and exponent have so many bits.
    pub fn float(&mut self, fraction: u32, exponent: u32) -> u64 {
        let most = (1 << exponent) - 1;
        let power = match self.below(8) {
            0 => 0,
            1 => [most, 1, most - 1][self.below(3) as usize],
            2..6 => most / 2 + self.below(8) - 4,
            _ => self.bits() & most,
        };
        let all = (1u64 << fraction) - 1;
        let rest = match self.below(6) {
            0 => 0,
            1 => [1, all, all - 1, 1 << (fraction - 1)][self.below(4) as usize],
            2 => self.bits() & all & (self.bits() << self.below(fraction.into())),
            _ => self.bits() & all,
        };
        (self.bits() & 1) << (fraction + exponent) | power << fraction | rest
    }

    pub fn single(&mut self) -> u64 {
        self.float(23, 8)
    }

    pub fn double(&mut self) -> u64 {
        self.float(52, 11)
    }
}
