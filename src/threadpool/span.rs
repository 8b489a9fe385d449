//! The items of a region.
#![forbid(unsafe_code)]

use crate::sync::Slots;

/// Most slots of a region: the caller and 63 helpers.
pub const MAX_SLOTS: usize = Slots::MAX;

/// The items of a region, and their known costs. Zero means "unknown", or "you choose".
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub items: usize,
    /// Nanoseconds per item.
    pub cost_ns: f32,
    pub grain: usize,
    pub max_slots: usize,
    /// The address of the function, so that its cost can be learned if it is unknown; 0 = do not.
    pub site: usize,
    /// Small pieces are dear: each has a fixed cost, or reads memory in short runs.
    pub coarse: bool,
}

/// A loop in units: pieces are drawn in whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopUnits {
    pub count: u32,
    /// Items in each, but for the last.
    pub items: usize,
}

impl Span {
    /// Limit of threads, set by the region's caller.
    pub fn slots(&self) -> usize {
        if self.max_slots == 0 { MAX_SLOTS } else { self.max_slots.min(MAX_SLOTS) }
    }

    /// One unit is a grain, or several if there were too many to count in 31 bits.
    pub fn units(&self) -> LoopUnits {
        let grain = self.grain.max(1);
        let grains = self.items.div_ceil(grain);
        let items = grain.saturating_mul(grains.div_ceil(i32::MAX as usize).max(1));
        LoopUnits { count: self.items.div_ceil(items) as u32, items }
    }

    /// Estimated time of the whole loop in one thread.
    pub fn total_ns(&self) -> f32 {
        self.items as f32 * self.cost_ns
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn units_are_whole_grains_and_can_be_counted() {
        let units = |items, grain| Span { items, grain, ..Span::default() }.units();
        assert_eq!(units(10, 0), LoopUnits { count: 10, items: 1 });
        assert_eq!(units(10, 4), LoopUnits { count: 3, items: 4 });
        assert_eq!(units(1, 100), LoopUnits { count: 1, items: 100 });
        let huge = units(usize::MAX >> 1, 3);
        assert!(huge.items % 3 == 0 && huge.count > 1 << 30);
    }
}
