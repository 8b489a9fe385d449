//! Non-maximum suppression: the best boxes of each image and class.
//!
//! A piece is an image and class. Its boxes with a score that counts are sorted, as one number each, the score's order
//! above and the box's number below, so the order is total. One after the other is compared with those that were
//! chosen, whose corners lie side by side in the slot's scratch memory. What was chosen, and how many, lies behind the
//! scratch memory of slot 0 that is its own, until all pieces are done: only then is it known where the boxes of a
//! class begin in the output.

use super::isa::Isa;
use super::levels::{self, LevelLoop};
use super::site::{Site, check_scratch};
use crate::base::Result;
use crate::memory::{ALIGNMENT, BytesMut};
use crate::threadpool::Span;

/// Chosen boxes that are compared at once.
const AT_ONCE: usize = 16;
/// Time to look at a score, to sort a box, for each time their number doubles, and to compare two boxes.
const LOOK_NS: f32 = 0.5;
const SORT_NS: f32 = 2.0;
const COMPARE_NS: f32 = 0.5;

/// Sizes and settings.
#[derive(Clone, Copy, Debug)]
pub struct NmsShape {
    pub images: usize,
    pub classes: usize,
    pub boxes: usize,
    /// Most boxes of an image and class.
    pub most: usize,
    pub centers: bool,
    pub most_overlap: f32,
    pub least_score: Option<f32>,
}

/// Chosen boxes of all images and classes: up to `most` numbers of each, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    boxes: *mut u32,
    counts: *mut u32,
    most: usize,
}

// SAFETY: a piece writes those of its own image and class.
unsafe impl Sync for Chosen {}

/// Least and greatest y and x, and the area.
#[derive(Clone, Copy, Default)]
struct Corners([f32; 5]);

impl Corners {
    fn new(of: &[f32], centers: bool) -> Corners {
        let [a, b, c, d] = [of[0], of[1], of[2], of[3]];
        let (low, high) = match centers {
            true => ([b - d / 2.0, a - c / 2.0], [b + d / 2.0, a + c / 2.0]),
            false => ([a.min(c), b.min(d)], [a.max(c), b.max(d)]),
        };
        Corners([low[0], low[1], high[0], high[1], (high[0] - low[0]) * (high[1] - low[1])])
    }
}

/// Whether a box overlaps one of some too much: rows of coordinates, `most` apart.
struct BoxOverlap<'a> {
    of: Corners,
    others: &'a [f32],
    pitch: usize,
    count: usize,
    most_overlap: f32,
}

impl LevelLoop for BoxOverlap<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Corners([top, left, bottom, right, area]) = self.of;
        let row = |index: usize, first: usize| &self.others[index * self.pitch + first..][..AT_ONCE];
        // Rows are whole groups; boxes behind the last one have no area.
        for first in (0..self.count).step_by(AT_ONCE) {
            let [tops, lefts, bottoms, rights, areas] = [0, 1, 2, 3, 4].map(|index| row(index, first));
            let mut found = false;
            for i in 0..AT_ONCE {
                let height = bottom.min(bottoms[i]) - top.max(tops[i]);
                let width = right.min(rights[i]) - left.max(lefts[i]);
                let inside = height.max(0.0) * width.max(0.0);
                let all = area + areas[i] - inside;
                let counts = (inside > 0.0) & (area > 0.0) & (areas[i] > 0.0) & (all > 0.0);
                found |= counts & (inside / all > self.most_overlap);
            }
            if found {
                return true;
            }
        }
        false
    }
}

impl NmsShape {
    fn pitch(&self) -> usize {
        self.most.next_multiple_of(AT_ONCE)
    }

    /// Bytes of a slot for the order of the boxes, and for the corners of the chosen ones.
    fn own_bytes(&self) -> (usize, usize) {
        let order = (self.boxes * size_of::<u64>()).next_multiple_of(ALIGNMENT);
        (order, (5 * self.pitch() * size_of::<f32>()).next_multiple_of(ALIGNMENT))
    }

    /// Scratch memory per slot, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        if self.most == 0 {
            return 0;
        }
        let (order, corners) = self.own_bytes();
        order + corners + self.images * self.classes * (self.most + 1) * size_of::<u32>()
    }

    fn item_ns(&self) -> f32 {
        let (boxes, most) = (self.boxes as f32, self.most as f32);
        // A quarter of the boxes are assumed to count, and each to be compared with half of the chosen ones.
        let counted = boxes / 4.0;
        LOOK_NS * boxes + counted * (SORT_NS * (counted + 1.0).log2() + COMPARE_NS * most / 2.0)
    }

    /// Estimated time on one thread.
    pub fn cost_ns(&self) -> u64 {
        (self.item_ns() * self.images as f32 * self.classes as f32) as u64
    }

    fn chosen(&self, site: &dyn Site) -> Chosen {
        let (order, corners) = self.own_bytes();
        let boxes = site.scratch(0).wrapping_add(order + corners).cast::<u32>();
        Chosen { boxes, counts: boxes.wrapping_add(self.images * self.classes * self.most), most: self.most }
    }

    /// Chooses, in a region of `site`, which has `scratch_bytes` per slot; gives the number of all chosen boxes. Then
    /// `store` may follow.
    pub fn choose(&self, isa: Isa, boxes: &[f32], scores: &[f32], site: &dyn Site) -> Result<usize> {
        // Images and classes of no boxes may be more than there are numbers.
        if self.most == 0 {
            return Ok(0);
        }
        let (items, count) = (self.images * self.classes, self.boxes);
        assert!(boxes.len() == self.images * count * 4 && scores.len() == items * count, "{self:?}");
        check_scratch(site, self.scratch_bytes());
        let (chosen, room) = (self.chosen(site), self.own_bytes().0);
        site.parallel_for(&Span { items, cost_ns: self.item_ns(), ..Span::default() }, &|claim| {
            let memory = site.scratch(claim.slot());
            let chosen = &chosen;
            // SAFETY: the slot's scratch memory, which is initialised, divided as `own_bytes` says.
            let (order, corners) = unsafe {
                (
                    std::slice::from_raw_parts_mut(memory.cast::<u64>(), count),
                    std::slice::from_raw_parts_mut(memory.add(room).cast::<f32>(), 5 * self.pitch()),
                )
            };
            for item in claim.begin()..claim.end() {
                let boxes = &boxes[item / self.classes * count * 4..][..count * 4];
                // SAFETY: the item's own places, of which there are as many as `scratch_bytes` asked for.
                unsafe {
                    let to = chosen.boxes.add(item * chosen.most);
                    let to = std::slice::from_raw_parts_mut(to, chosen.most);
                    let found = self.of_class(isa, boxes, &scores[item * count..][..count], order, corners, to);
                    chosen.counts.add(item).write(found as u32);
                }
            }
            Ok(())
        })?;
        // SAFETY: written by the region, which is over.
        Ok((0..items).map(|item| unsafe { *chosen.counts.add(item) } as usize).sum())
    }

    /// The chosen boxes of an image and class; gives their number.
    fn of_class(
        &self,
        isa: Isa,
        boxes: &[f32],
        scores: &[f32],
        order: &mut [u64],
        corners: &mut [f32],
        to: &mut [u32],
    ) -> usize {
        let mut count = 0;
        for (number, &score) in scores.iter().enumerate() {
            // A NaN is above nothing.
            if self.least_score.map_or(!score.is_nan(), |least| score > least) {
                // Better scores are lesser numbers; the zeros are equal.
                let bits = (score + 0.0).to_bits() as i32;
                let up = bits ^ (bits >> 31 & i32::MAX);
                order[count] = u64::from(!(up as u32 ^ 1 << 31)) << 32 | number as u64;
                count += 1;
            }
        }
        let order = &mut order[..count];
        order.sort_unstable();
        corners.fill(0.0);
        let (mut found, pitch) = (0, self.pitch());
        for &mut entry in order {
            if found == to.len() {
                break;
            }
            let number = entry as u32;
            let of = Corners::new(&boxes[number as usize * 4..][..4], self.centers);
            let overlap = BoxOverlap { of, others: corners, pitch, count: found, most_overlap: self.most_overlap };
            if levels::on(isa, overlap) {
                continue;
            }
            for (index, corner) in of.0.into_iter().enumerate() {
                corners[index * pitch + found] = corner;
            }
            to[found] = number;
            found += 1;
        }
        found
    }

    /// Writes image, class and number of the boxes that `choose` has chosen, and -1 to what is left of the rows.
    pub fn store(&self, mut rows: BytesMut<'_>, site: &dyn Site) {
        if self.most == 0 {
            return;
        }
        let (chosen, rows) = (self.chosen(site), rows.write::<i64>());
        let mut rows = rows.chunks_exact_mut(3);
        for item in 0..self.images * self.classes {
            // SAFETY: written by `choose`, whose region is over.
            let found = unsafe {
                let count = *chosen.counts.add(item) as usize;
                std::slice::from_raw_parts(chosen.boxes.add(item * chosen.most), count)
            };
            for (&number, row) in found.iter().zip(&mut rows) {
                row.copy_from_slice(&[(item / self.classes) as i64, (item % self.classes) as i64, number.into()]);
            }
        }
        rows.for_each(|row| row.fill(-1));
    }
}
