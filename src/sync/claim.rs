//! Proof that a stretch of a region belongs to the holder alone.

/// The items `begin..end` of a region, given to exactly one running piece, together with the slot that the piece holds.
///
/// Not Copy and not Clone: `memory::Parts` turns it into what may be written, and there must be one holder per item.
#[derive(Debug)]
pub struct Claim {
    begin: usize,
    end: usize,
    slot: usize,
}

impl Claim {
    /// # Safety
    /// Among all claims of one region no item appears twice, and no two claims that exist at once have the same slot.
    pub unsafe fn new(begin: usize, end: usize, slot: usize) -> Claim {
        debug_assert!(begin <= end);
        Claim { begin, end, slot }
    }

    pub fn begin(&self) -> usize {
        self.begin
    }

    pub fn end(&self) -> usize {
        self.end
    }

    pub fn slot(&self) -> usize {
        self.slot
    }
}
