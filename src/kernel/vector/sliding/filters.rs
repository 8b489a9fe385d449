//! The weights and the first values of planes of windows.
#![forbid(unsafe_code)]

/// The filters of planes of windows: plane after plane the next one, and behind the last the first one again.
#[derive(Clone, Copy, Debug)]
pub struct Filters<'a> {
    pub count: usize,
    /// For each channel and tap of each filter, if the combination wants weights.
    pub weights: &'a [f32],
    /// The first value of the sums of each filter; `otherwise` if there are none.
    pub first: &'a [f32],
    pub otherwise: f32,
}

impl<'a> Filters<'a> {
    /// The weights of a plane, and the first value of its sums.
    #[inline(always)]
    pub fn of(&self, plane: usize) -> (&'a [f32], f32) {
        // A division takes as long as a row of windows.
        let filter = if plane < self.count { plane } else { plane % self.count };
        let depth = self.weights.len() / self.count;
        (&self.weights[filter * depth..][..depth], self.first.get(filter).copied().unwrap_or(self.otherwise))
    }
}
