//! int8 convolution over flat planes: no patches, and sums in the order of the output.
//!
//! The elements under the windows of an item are copied into planes of *cells* of two numbers (`flat_tile`): one
//! of two channels, or, if these are few, as they are depthwise, an element and the one under the next tap. Rows of a
//! plane follow one another without gaps. So the cell of a tap is at the same distance from a window's place for all
//! windows, and a register of neighbours runs across the ends of rows; the sums of places between two rows are
//! dropped. A stride of s divides a plane into s phases, in which neighbours are s elements apart, as far as taps
//! need them.
//!
//! Padding is zero_x. A row whose padding behind is the padding before the next one shares it. Signed bytes are made
//! unsigned, 128 greater. Weights are less their zero point; the zero point of x costs a term for each filter.
//!
//! Exactness: 16 bits hold all factors, and sums of up to `MOST_TAPS` products fit in 32, so arithmetic modulo 2^32 is
//! correct, whatever the level and the division.

use super::flat_cells::{FlatSource, copy, pair, parted, quad};
use super::flat_layout::{FlatBlock, FlatCells, FlatLayout, FlatRoom, FlatShape, QUAD, divided};
use super::flat_tile::{FlatOperands, FlatTile, FlatTiles, LONG, ROWS, rounded, set, sets};
use super::scaled::{OutputAddress, Scaled, Store, row_with};
use crate::base::Result;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::Site;
use crate::memory::AlignedBuffer;
use crate::threadpool::Span;

/// Most products of a window.
pub const MOST_TAPS: usize = 1 << 15;
/// Groups along K whose weights stay in the first-level cache.
const GROUPS: usize = 512;
/// The windows of groups of channels.
#[derive(Clone, Copy, Debug)]
pub struct FlatWindows {
    pub shape: FlatShape,
    /// XOR mask of each element, which makes it unsigned.
    pub flip: u8,
    pub zero_x: i32,
    pub zero_w: i32,
}

/// Filters, packed: sets of six and of four, each with a cell of each filter for each group along K.
#[derive(Debug)]
pub struct FlatFilters {
    kind: FlatCells,
    cells: AlignedBuffer,
    /// The first values of each filter's sums.
    terms: Vec<i32>,
    /// The rest that quads leave of each filter's weights: cells, the numbers of their groups, and where each filter's
    /// end.
    rest: Vec<u32>,
    numbers: Vec<u32>,
    ends: Vec<usize>,
}

/// The weights of a call.
#[derive(Clone, Copy, Debug)]
pub enum FlatWeights<'a> {
    Packed(&'a FlatFilters),
    /// [groups * filters, taps], of single channels.
    Plain(&'a [u8]),
}

impl FlatWindows {
    fn depth(&self) -> usize {
        self.shape.channels * self.shape.rows.taps * self.shape.columns.taps
    }

    /// Passes on each group's number and its weights of a filter, and returns what its sums begin with.
    fn filter(&self, layout: &FlatLayout, weights: &[u8], mut put: impl FnMut(usize, [i32; QUAD])) -> i32 {
        let (taps, below) = (self.shape.columns.taps, self.shape.rows.taps * self.shape.columns.taps);
        let mut sum = 0i32;
        let mut pass = |group: usize, weights: [Option<&u8>; QUAD]| {
            let weights = weights.map(|weight| weight.map_or(0, |&weight| i32::from(weight as i8) - self.zero_w));
            sum += weights.iter().sum::<i32>();
            put(group, weights);
        };
        if layout.deep == 1 {
            let mut begin = 0;
            for row in 0..layout.planes * self.shape.rows.taps {
                let weights = &weights[begin..begin + taps];
                for step in 0..layout.steps {
                    let pair = [weights.get(2 * step), weights.get(2 * step + 1)];
                    pass(row * layout.steps + step, [pair[0], pair[1], None, None]);
                }
                begin += taps;
            }
        } else {
            for group in 0..layout.groups() {
                let at = group / below * layout.deep * below + group % below;
                let of = |number: usize| weights.get(at + number * below).filter(|_| number < layout.deep);
                pass(group, [of(0), of(1), of(2), of(3)]);
            }
        }
        sum.wrapping_mul(self.zero_x).wrapping_neg()
    }

    /// Packs filters, [groups * filters, channels * taps].
    pub fn packed(&self, weights: &[u8]) -> Result<FlatFilters> {
        assert_eq!(weights.len(), self.shape.groups * self.shape.filters * self.depth());
        if weights.iter().all(|&weight| i8::try_from(i32::from(weight as i8) - self.zero_w).is_ok()) {
            let quads = self.packed_as(FlatCells::Quads, weights)?;
            // Measured on Zen 3: a group of quads takes 8 / 5 of the time of one of pairs, and one of what is left,
            // whose lists are short, twice that.
            let [pairs, whole] =
                [FlatCells::Pairs, FlatCells::Quads].map(|kind| FlatLayout::new(&self.shape, kind).groups());
            let filters = self.shape.groups * self.shape.filters;
            if 8 * (whole * filters + 2 * quads.rest.len()) <= 5 * pairs * filters {
                return Ok(quads);
            }
        }
        self.packed_as(FlatCells::Pairs, weights)
    }

    fn packed_as(&self, kind: FlatCells, weights: &[u8]) -> Result<FlatFilters> {
        let layout = FlatLayout::new(&self.shape, kind);
        let (depth, along, all) = (self.depth(), layout.groups(), rounded(self.shape.filters));
        let cells = AlignedBuffer::zeroed(self.shape.groups * all * along * size_of::<u32>(), "packed weights")?;
        let (mut rest, mut numbers, mut ends) = (vec![], vec![], vec![0]);
        let mut terms = vec![0; self.shape.groups * all];
        let (sixes, fours) = sets(self.shape.filters);
        for (group, number) in (0..self.shape.groups).flat_map(|group| (0..sixes + fours).map(move |set| (group, set)))
        {
            let (first, rows) = set(number, sixes);
            let at = group * all + first;
            for row in 0..rows.min(self.shape.filters - first.min(self.shape.filters)) {
                let weights = &weights[(group * self.shape.filters + first + row) * depth..][..depth];
                terms[at + row] = self.filter(&layout, weights, |group, weights| {
                    let cell = if kind == FlatCells::Quads {
                        let [a, b, c, d] = weights;
                        let ([[a, b], [e, f]], [[c, d], [g, h]]) = (parted([a, b]), parted([c, d]));
                        if [e, f, g, h] != [0; QUAD] {
                            rest.push(quad([e, f, g, h]));
                            numbers.push(group as u32);
                        }
                        quad([a, b, c, d])
                    } else {
                        pair(weights)
                    };
                    // SAFETY: the sets before it have as many cells as filters and groups along K.
                    unsafe { cells.data().cast::<u32>().add(at * along + group * rows + row).write(cell) };
                });
                ends.push(rest.len());
            }
        }
        Ok(FlatFilters { kind, cells, terms, rest, numbers, ends })
    }

    /// Scratch memory per slot, in bytes.
    pub fn scratch_bytes(&self, packed: Option<&FlatFilters>, store: Store) -> usize {
        let FlatRoom { offsets, bytes, cells, sums, elements, weights } = self.layout(packed).room(store);
        offsets + bytes + cells + sums + elements + weights
    }

    fn layout(&self, packed: Option<&FlatFilters>) -> FlatLayout {
        FlatLayout::new(&self.shape, packed.map_or(FlatCells::Few, |packed| packed.kind))
    }

    /// Computes all images of `x`, in a region of `site`, which has `scratch_bytes` per slot.
    ///
    /// # Safety
    /// The output has room for all elements and is exclusive.
    pub unsafe fn compute(
        &self,
        (isa, cost_ns): (Isa, u64),
        x: &[u8],
        weights: FlatWeights<'_>,
        scaled: &Scaled<'_>,
        out: &OutputAddress,
        site: &dyn Site,
    ) -> Result<()> {
        let (tiles, coarse) = (FlatTiles::of(isa), matches!(weights, FlatWeights::Packed(_)));
        let layout = self.layout(match weights {
            FlatWeights::Packed(packed) => Some(packed),
            FlatWeights::Plain(_) => None,
        });
        let room = layout.room(scaled.store);
        let items = self.shape.images * self.shape.groups * layout.down * layout.wide * layout.split;
        let image = self.shape.channels * self.shape.rows.input * self.shape.columns.input;
        let span = Span { items, cost_ns: cost_ns as f32 / items as f32, coarse, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            // SAFETY: the parts of the slot's scratch memory, which is aligned, initialised and as large as
            // `scratch_bytes` asked for.
            let memory = unsafe { FlatMemory::new(site.scratch(claim.slot()), &room) };
            let FlatMemory { offsets, bytes, cells, sums, elements, weights: own } = memory;
            layout.offsets(offsets);
            let within = |at: &usize| at / size_of::<u32>() + layout.sums() <= cells.len();
            debug_assert!(offsets[..layout.groups()].iter().all(within), "{layout:?}");
            let mut held = usize::MAX;
            for item in claim.begin()..claim.end() {
                let (windows, part) = divided(item, layout.split);
                let (number, block) = layout.block(windows);
                // Neighbouring items often have the same cells.
                if held != windows {
                    let x = &x[number * image..][..image];
                    let (channels, flip, zero_x) = (self.shape.channels, self.flip, self.zero_x);
                    let source = FlatSource { isa, layout: &layout, x, channels, flip, zero_x };
                    source.cells(&block, bytes, cells);
                    held = windows;
                }
                let mut item = FlatItem {
                    isa,
                    of: self,
                    layout: &layout,
                    tiles: &tiles,
                    block,
                    number,
                    group: divided(number, self.shape.groups).1,
                    operands: FlatOperands {
                        groups: layout.groups(),
                        weights: own.as_ptr(),
                        cells: cells.as_ptr().cast(),
                        offsets: offsets.as_ptr(),
                        numbers: std::ptr::null(),
                        begin: std::ptr::null(),
                    },
                    sums,
                    elements,
                    out,
                };
                // SAFETY: the rows of claimed items, of the filters of the group.
                unsafe {
                    match weights {
                        FlatWeights::Packed(packed) => item.sets(packed, part, scaled),
                        FlatWeights::Plain(weights) => item.each(weights, own, scaled),
                    }
                }
            }
            Ok(())
        })
    }
}

/// The parts of a slot's scratch memory.
struct FlatMemory<'a> {
    offsets: &'a mut [usize],
    bytes: &'a mut [u8],
    cells: &'a mut [u32],
    sums: &'a mut [i32],
    elements: &'a mut [u8],
    weights: &'a mut [u32],
}

impl FlatMemory<'_> {
    /// # Safety
    /// The memory is as large as the room, aligned, initialised and exclusive.
    unsafe fn new(mut data: *mut u8, room: &FlatRoom) -> Self {
        /// # Safety
        /// As above, for this many bytes.
        unsafe fn part<'a, T>(data: &mut *mut u8, bytes: usize) -> &'a mut [T] {
            let begin = *data;
            *data = begin.wrapping_add(bytes);
            // SAFETY: as demanded of the caller; any bytes are numbers.
            unsafe { std::slice::from_raw_parts_mut(begin.cast(), bytes / size_of::<T>()) }
        }
        // SAFETY: as demanded of the caller.
        unsafe {
            FlatMemory {
                offsets: part(&mut data, room.offsets),
                bytes: part(&mut data, room.bytes),
                cells: part(&mut data, room.cells),
                sums: part(&mut data, room.sums),
                elements: part(&mut data, room.elements),
                weights: part(&mut data, room.weights),
            }
        }
    }
}

/// An item whose cells are there.
struct FlatItem<'a> {
    isa: Isa,
    of: &'a FlatWindows,
    layout: &'a FlatLayout,
    tiles: &'a FlatTiles,
    block: FlatBlock,
    /// Of the image and group, and of the group.
    number: usize,
    group: usize,
    operands: FlatOperands,
    sums: &'a mut [i32],
    elements: &'a mut [u8],
    out: &'a OutputAddress,
}

/// # Safety
/// For all functions: the operands are those of the layout; the output has room for all elements, and no one else uses
/// those of the item.
impl FlatItem<'_> {
    /// Windows from the first to the last one, with the places between rows.
    fn windows(&self) -> usize {
        (self.block.lines - 1) * self.layout.pitch + self.block.across
    }

    /// Filters in packed sets: a part of all.
    unsafe fn sets(&mut self, packed: &FlatFilters, part: usize, scaled: &Scaled<'_>) {
        let (FlatOperands { groups, .. }, stride) = (self.operands, self.layout.sums());
        let (lanes, windows, filters) = (self.tiles.lanes, self.windows(), self.of.shape.filters);
        let Some(many) = self.tiles.many else { return };
        let tiles = if packed.kind == FlatCells::Quads { many.quads } else { many.pairs };
        let (sixes, fours) = sets(filters);
        let bound = |part: usize| (sixes + fours) * part / self.layout.split;
        for number in bound(part)..bound(part + 1) {
            let (first, rows) = set(number, sixes);
            let at = self.group * rounded(filters) + first;
            let tiles = tiles[usize::from(rows != ROWS)];
            let weights = packed.cells.data().cast::<u32>().wrapping_add(at * groups).cast_const();
            for begin in (0..groups).step_by(GROUPS) {
                let from = FlatOperands {
                    groups: GROUPS.min(groups - begin),
                    weights: weights.wrapping_add(begin * rows),
                    offsets: self.operands.offsets.wrapping_add(begin),
                    begin: if begin == 0 { packed.terms[at..].as_ptr() } else { std::ptr::null() },
                    ..self.operands
                };
                let mut window = 0;
                while window < windows {
                    let registers = if windows - window > lanes { 2 } else { 1 };
                    let cells = from.cells.wrapping_add(window * size_of::<u32>());
                    // SAFETY: as demanded of the caller; the room has cells and sums beyond the last window.
                    unsafe {
                        let sums = self.sums.as_mut_ptr().add(window);
                        tiles[2 - registers](&FlatOperands { cells, ..from }, sums, stride);
                    }
                    window += registers * lanes;
                }
            }
            for row in 0..rows.min(filters - first.min(filters)) {
                let filter = self.group * filters + first + row;
                let rest = packed.ends[filter]..packed.ends[filter + 1];
                let from = FlatOperands {
                    groups: rest.len(),
                    weights: packed.rest[rest.start..].as_ptr(),
                    numbers: packed.numbers[rest.start..].as_ptr(),
                    ..self.operands
                };
                // SAFETY: passed on; the groups are those of the layout.
                unsafe {
                    if !rest.is_empty() {
                        self.row(many.rest, &from, row * stride);
                    }
                    self.finish(first + row, row * stride, scaled);
                }
            }
        }
    }

    /// Filters one by one.
    unsafe fn each(&mut self, weights: &[u8], own: &mut [u32], scaled: &Scaled<'_>) {
        let depth = self.of.depth();
        for filter in 0..self.of.shape.filters {
            let weights = &weights[(self.group * self.of.shape.filters + filter) * depth..][..depth];
            let begin = self.of.filter(self.layout, weights, |group, weights| own[group] = pair(weights));
            let from = FlatOperands { weights: own.as_ptr(), begin: &begin, ..self.operands };
            // SAFETY: passed on.
            unsafe {
                self.row(self.tiles.one, &from, 0);
                self.finish(filter, 0, scaled);
            }
        }
    }

    /// All windows with long tiles of one filter.
    unsafe fn row(&mut self, tile: FlatTile, from: &FlatOperands, at: usize) {
        for window in (0..self.windows()).step_by(LONG * self.tiles.lanes) {
            let cells = from.cells.wrapping_add(window * size_of::<u32>());
            // SAFETY: as demanded of the caller; the room has cells and sums beyond the last window.
            unsafe { tile(&FlatOperands { cells, ..*from }, self.sums.as_mut_ptr().add(at + window), 0) };
        }
    }

    /// Converts the sums of a filter of the group and puts the elements into their rows.
    unsafe fn finish(&mut self, filter: usize, at: usize, scaled: &Scaled<'_>) {
        let FlatBlock { row, column, lines, across } = self.block;
        let (size, width) = (scaled.store.bytes(), self.layout.columns.output);
        let channel = self.group * self.of.shape.filters + filter;
        let factor = f64::from(scaled.scale) * scaled.scales.map_or(1.0, |scales| f64::from(scales[channel]));
        let same = (factor, scaled.bias.map_or(0, |bias| bias[channel]));
        let plane = self.number * self.of.shape.filters + filter;
        let out = ((plane * self.layout.rows.output + row) * width + column) * size;
        let out = self.out.0.wrapping_add(out);
        let sums = &self.sums[at..][..self.windows()];
        // SAFETY: as demanded of the caller.
        unsafe {
            if lines == 1 || (self.layout.pitch == width && across == width) {
                return row_with(self.isa, scaled, same, sums, out);
            }
            row_with(self.isa, scaled, same, sums, self.elements.as_mut_ptr());
            let row = across * size;
            for line in 0..lines {
                let from = &self.elements[line * self.layout.pitch * size..][..row];
                // SAFETY: a row of the item.
                copy(from, std::slice::from_raw_parts_mut(out.wrapping_add(line * width * size), row));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ops::axis::{Axis, EdgeMode};

    #[test]
    fn filters_are_quads_unless_too_much_of_them_is_left() {
        let axis = Axis { input: 9, output: 7, taps: 3, stride: 1, dilation: 1, before: 0, edge: EdgeMode::Zero };
        let of = FlatWindows {
            shape: FlatShape { images: 1, groups: 1, channels: 8, filters: 5, rows: axis, columns: axis },
            flip: 0,
            zero_x: 3,
            zero_w: 0,
        };
        let kind = |zero_w: i32, weight: &dyn Fn(usize) -> i8| {
            let weights: Vec<u8> = (0..5 * 8 * 9).map(|i| weight(i) as u8).collect();
            FlatWindows { zero_w, ..of }.packed(&weights).unwrap().kind
        };
        assert_eq!(kind(0, &|_| 64), FlatCells::Quads);
        // Two channels of a pair, at one tap and at three.
        let at = |taps: usize| move |i: usize| if i % 72 < 18 && i % 9 < taps { 127 } else { 5 };
        assert_eq!(kind(0, &at(1)), FlatCells::Quads);
        assert_eq!(kind(0, &at(3)), FlatCells::Pairs);
        assert_eq!(kind(0, &|_| 127), FlatCells::Pairs);
        assert_eq!(kind(2, &|_| -128), FlatCells::Pairs);
    }
}
