//! Vector clocks. Operations lie on chains, each of which is ordered in itself; a clock says for each chain up to which
//! of its operations everything happens before what the clock belongs to.

/// Positions by chain; they begin at 1, and what is missing is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(Vec<u64>);

impl Clock {
    pub fn at(&self, chain: usize) -> u64 {
        self.0.get(chain).copied().unwrap_or(0)
    }

    /// What either knows.
    pub fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, other)| *mine = (*mine).max(*other));
    }

    fn set(&mut self, chain: usize, position: u64) {
        if self.0.len() <= chain {
            self.0.resize(chain + 1, 0);
        }
        self.0[chain] = position;
    }
}

/// An operation's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    pub chain: usize,
    pub position: u64,
}

impl Epoch {
    pub fn is_before(self, clock: &Clock) -> bool {
        self.position <= clock.at(self.chain)
    }
}

/// The last position of each chain.
#[derive(Debug, Default)]
pub struct Chains(Vec<u64>);

impl Chains {
    /// Puts an operation that happens after all in `clock` behind the end of a chain that it has seen, so the chain
    /// stays ordered: `wanted` if that is one, else the first, else a new one.
    pub fn place(&mut self, clock: &mut Clock, wanted: usize) -> Epoch {
        let has_seen = |chain: &usize| self.0.get(*chain).is_some_and(|last| *last <= clock.at(*chain));
        let chain = Some(wanted).filter(has_seen).or_else(|| (0..self.0.len()).find(has_seen)).unwrap_or(self.0.len());
        if chain == self.0.len() {
            self.0.push(0);
        }
        self.0[chain] += 1;
        clock.set(chain, self.0[chain]);
        Epoch { chain, position: self.0[chain] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_seen_a_chains_end_goes_on_with_it() {
        let mut chains = Chains::default();
        let mut first = Clock::default();
        let a = chains.place(&mut first, 0);
        // Knows nothing of the first one.
        let mut second = Clock::default();
        let b = chains.place(&mut second, 0);
        assert_ne!(a.chain, b.chain);
        assert!(!a.is_before(&second) && !b.is_before(&first));
        // Knows both, and wants to be behind the second.
        let mut third = first.clone();
        third.join(&second);
        let c = chains.place(&mut third, b.chain);
        assert_eq!(c, Epoch { chain: b.chain, position: 2 });
        assert!(a.is_before(&third) && b.is_before(&third));
        // The end of the second chain is another now.
        let d = chains.place(&mut second, b.chain);
        assert!(d.chain != a.chain && d.chain != b.chain);
    }
}
