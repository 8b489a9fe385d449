//! int8 convolution over flat planes: no patches, and sums in the order of the output.
//!
//! What lies under the windows of an item is copied into planes of *cells* of two numbers (`flat_tile`): an element of
//! two channels, or, if these are few, as they are depthwise, an element and the one under the next tap. Rows of a plane
//! follow one another without gaps. So the cell of a tap is at the same distance from a window's place for all windows,
//! and a register of neighbours runs across the ends of rows; the sums of places between two rows are dropped. A stride
//! of s divides a plane into s phases, in which neighbours are s elements apart, as far as taps need them.
//!
//! Padding is zero_x. A row whose padding behind is the padding before the next one shares it. Signed bytes are made
//! unsigned, 128 greater. Weights are less their zero point; the zero point of x costs a term for each filter.
//!
//! Exactness: 16 bits hold all factors, and sums of up to `MOST_TAPS` products fit in 32, so arithmetic modulo 2^32 is
//! correct, whatever the level and the division.

use super::flat_tile::{BEYOND, FlatOperands, FlatTile, FlatTiles, LONG, MOST_PAIR};
use super::scaled::{OutputAddress, Scaled, Store, row_with};
use crate::base::Result;
use crate::kernel::vector::caches::Caches;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::levels::{self, LevelLoop};
use crate::kernel::vector::site::Site;
use crate::memory::{ALIGNMENT, AlignedBuffer};
use crate::ops::axis::Axis;
use crate::threadpool::Span;

/// Most products of a window.
pub const MOST_TAPS: usize = 1 << 15;
/// Most windows of an item: with many filters, and with few, whose sums then stay in the first-level cache.
const WINDOWS: usize = 1024;
const WINDOWS_OF_FEW: usize = 2048;
/// Windows that are enough for a tile's operands to be worth their copies.
const ENOUGH_WINDOWS: usize = 64;
/// Groups along K whose weights stay in the first-level cache.
const GROUPS: usize = 512;
/// Items that are enough for any pool, and sets of filters that are worth copying an image's part once more.
const ENOUGH_ITEMS: usize = 16;
const ENOUGH_SETS: usize = 8;
/// Cells that are made at once.
const CHUNK: usize = 16;
/// Most filters of a tile.
const ROWS: usize = 6;
/// Channels of a quad.
const QUAD: usize = 4;

/// The windows of groups of channels.
#[derive(Clone, Copy, Debug)]
pub struct FlatWindows {
    pub images: usize,
    pub groups: usize,
    /// Of a group.
    pub channels: usize,
    pub filters: usize,
    pub rows: Axis,
    pub columns: Axis,
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
    /// What the sums of each filter begin with.
    terms: Vec<i32>,
    /// What quads leave of each filter's weights: cells, the numbers of their groups, and the ends of each filter's.
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

/// What cells are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlatCells {
    /// Neighbours in a row, for filters one by one.
    Few,
    Pairs,
    Quads,
}

/// How the windows are divided into items, and where the cells of an item are.
#[derive(Clone, Copy, Debug)]
struct FlatLayout {
    rows: Axis,
    columns: Axis,
    /// Channels of a cell; its numbers are neighbours in a row if it is one.
    deep: usize,
    planes: usize,
    /// Cells of a row of taps, and the distance from one to the next in elements.
    steps: usize,
    step: usize,
    lines: usize,
    across: usize,
    down: usize,
    wide: usize,
    /// Phases down and across, and rows of each.
    phases: [usize; 2],
    height: usize,
    /// Elements of a row that are under windows.
    needed: usize,
    /// Cells from one row to the next, and of a phase of a plane.
    pitch: usize,
    area: usize,
    /// Sets of filters of an item: a part of them if there are few items.
    split: usize,
}

/// The scratch memory of a slot, in bytes.
#[derive(Clone, Copy, Debug)]
struct FlatRoom {
    offsets: usize,
    /// For each channel of a cell.
    bytes: usize,
    cells: usize,
    sums: usize,
    elements: usize,
    weights: usize,
}

/// The numbers of sets of six and of four filters, which have room for all.
fn sets(filters: usize) -> (usize, usize) {
    let even = filters.max(3).next_multiple_of(2);
    match even % ROWS {
        0 => (even / ROWS, 0),
        4 => (even / ROWS, 1),
        _ => (even / ROWS - 1, 2),
    }
}

/// The first filter of a set, and its filters.
fn set(number: usize, sixes: usize) -> (usize, usize) {
    if number < sixes { (number * ROWS, ROWS) } else { (sixes * ROWS + (number - sixes) * 4, 4) }
}

/// Filters with those that complete the last set.
fn rounded(filters: usize) -> usize {
    let (sixes, fours) = sets(filters);
    sixes * ROWS + fours * 4
}

/// Quotient and remainder. A division takes as long as some rows of a small image, and is seldom needed.
#[inline(always)]
fn divided(number: usize, by: usize) -> (usize, usize) {
    if number < by {
        (0, number)
    } else if by == 1 {
        (number, 0)
    } else {
        (number / by, number % by)
    }
}

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

impl FlatLayout {
    fn new(of: &FlatWindows, cells: FlatCells) -> FlatLayout {
        let few = cells == FlatCells::Few;
        let (mut rows, mut columns) = (of.rows, of.columns);
        if rows.is_plain() && columns.is_plain() {
            let all = rows.input * columns.input;
            (rows, columns) = (Axis::ONE, Axis { input: all, output: all, ..Axis::ONE });
        }
        for axis in [&mut rows, &mut columns].into_iter().filter(|axis| axis.output == 1) {
            axis.stride = 1;
        }
        let pairs = columns.taps.div_ceil(2);
        let along = of.channels * pairs < of.channels.div_ceil(2) * columns.taps;
        let deep = match cells {
            FlatCells::Few => 1,
            FlatCells::Pairs => {
                if along {
                    1
                } else {
                    2
                }
            }
            FlatCells::Quads => QUAD,
        };
        let planes = of.channels.div_ceil(deep);
        let (steps, step) = match deep {
            1 => (pairs, 2 * columns.dilation),
            _ => (columns.taps, columns.dilation),
        };
        let phases_of = |step: usize, steps: usize, stride: usize| match step.is_multiple_of(stride) {
            true => 1,
            false => stride.min((steps - 1) * step + 1),
        };
        let phases = [phases_of(rows.dilation, rows.taps, rows.stride), phases_of(step, steps, columns.stride)];
        // Rows and columns beyond those of the windows themselves.
        let (more_rows, more) = ((rows.taps - 1) * rows.dilation / rows.stride, (steps - 1) * step / columns.stride);
        let most = if few { WINDOWS_OF_FEW } else { WINDOWS };
        let cells = Caches::of_machine().l2 * 3 / 8 / size_of::<u32>() / (planes * phases[0] * phases[1]);
        let fit = (cells / (1 + more_rows)).saturating_sub(more).clamp(ENOUGH_WINDOWS, most);
        let across = if columns.output <= fit.next_multiple_of(CHUNK) {
            columns.output
        } else {
            columns.output.div_ceil(columns.output.div_ceil(fit)).next_multiple_of(CHUNK)
        };
        let wide = columns.output.div_ceil(across);
        let needed = (across - 1) * columns.stride + (columns.taps - 1) * columns.dilation + 1;
        let behind = needed.saturating_sub(columns.before + columns.input);
        let shared = if columns.stride == 1 && wide == 1 { columns.before.min(behind) } else { 0 };
        let pitch = (across + more).max(needed.div_ceil(columns.stride)) - shared;
        // Rows between taps that are far apart are copied too, and not for each row of windows anew.
        let lines = (cells / pitch).saturating_sub(more_rows).max(more_rows.div_ceil(2));
        let lines = lines.min(most / pitch).clamp(1, rows.output);
        let down = rows.output.div_ceil(lines);
        let lines = rows.output.div_ceil(down);
        let height = lines + more_rows;
        // Planes an odd number of cache lines apart do not compete for the same sets of a cache.
        let area = ((phases[0] * height * pitch + shared).div_ceil(CHUNK) | 1) * CHUNK;
        let (sixes, fours) = sets(of.filters);
        let blocks = (of.images * of.groups * down * wide).max(1);
        let split = ENOUGH_ITEMS.div_ceil(blocks).min((sixes + fours) / ENOUGH_SETS).max(1);
        let split = if few || blocks >= ENOUGH_ITEMS { 1 } else { split };
        FlatLayout {
            rows,
            columns,
            deep,
            planes,
            steps,
            step,
            lines,
            across,
            down,
            wide,
            phases,
            height,
            needed,
            pitch,
            area,
            split,
        }
    }

    /// Groups along K.
    fn groups(&self) -> usize {
        self.planes * self.rows.taps * self.steps
    }

    /// The place of each group's cell from that of a window, in bytes.
    fn offsets(&self, to: &mut [usize]) {
        let mut all = to.iter_mut();
        for (plane, tap) in (0..self.planes).flat_map(|plane| (0..self.rows.taps).map(move |tap| (plane, tap))) {
            let down = tap * self.rows.dilation;
            let row = down % self.rows.stride * self.height + down / self.rows.stride;
            for (step, to) in (0..self.steps).zip(&mut all) {
                let right = step * self.step;
                let plane = plane * self.phases[1] + right % self.columns.stride;
                let cell = plane * self.area + row * self.pitch + right / self.columns.stride;
                *to = cell * size_of::<u32>();
            }
        }
    }

    /// Sums of a row of a tile: those of a whole item, up to a whole tile.
    fn sums(&self) -> usize {
        (self.lines - 1) * self.pitch + self.across + BEYOND
    }

    /// The scratch memory of a slot, in bytes.
    fn room(&self, store: Store) -> FlatRoom {
        let bytes = (self.area + CHUNK) * self.columns.stride + self.needed + self.columns.dilation + 2 * CHUNK;
        FlatRoom {
            offsets: aligned(self.groups() * size_of::<usize>()),
            bytes: self.deep * aligned(bytes),
            cells: aligned((self.planes * self.phases[1] * self.area + CHUNK + BEYOND + self.pitch) * size_of::<u32>()),
            sums: aligned(ROWS * self.sums() * size_of::<i32>()),
            elements: aligned(self.sums() * store.bytes() + CHUNK),
            weights: aligned(self.groups() * size_of::<u32>()),
        }
    }

    /// The number of an item's image and group, and its windows.
    fn block(&self, item: usize) -> (usize, FlatBlock) {
        let (item, across) = divided(item, self.wide);
        let (number, down) = divided(item, self.down);
        let (row, column) = (down * self.lines, across * self.across);
        let (lines, across) = (self.lines.min(self.rows.output - row), self.across.min(self.columns.output - column));
        (number, FlatBlock { row, column, lines, across })
    }
}

/// The windows of an item.
#[derive(Clone, Copy, Debug)]
struct FlatBlock {
    row: usize,
    column: usize,
    lines: usize,
    across: usize,
}

/// A group's image, and where its cells are made.
struct FlatSource<'a> {
    isa: Isa,
    of: &'a FlatWindows,
    layout: &'a FlatLayout,
    x: &'a [u8],
}

impl FlatSource<'_> {
    /// The cells of all planes.
    fn cells(&self, block: &FlatBlock, bytes: &mut [u8], to: &mut [u32]) {
        let layout = self.layout;
        let Axis { stride, dilation, .. } = layout.columns;
        let image = layout.rows.input * layout.columns.input;
        let flip = u32::from(self.of.flip) * if layout.deep == QUAD { 0x0101_0101 } else { 0x1_0001 };
        let room = bytes.len() / layout.deep;
        for plane in 0..layout.planes {
            // Numbers beyond the last channel or tap may be any: their weights are 0.
            let mut channels = [&[][..]; QUAD];
            for ((number, of), to) in channels.iter_mut().enumerate().zip(bytes.chunks_exact_mut(room)) {
                let channel = (plane * layout.deep + number).min(self.of.channels - 1);
                *of = self.bytes(block, channel * image, to);
            }
            if layout.deep == 1 {
                channels[1] = &channels[0][dilation..];
            }
            for phase in 0..layout.phases[1] {
                let to = &mut to[(plane * layout.phases[1] + phase) * layout.area..][..layout.area];
                let rows = channels.map(|channel| channel.get(phase..).unwrap_or(&[]));
                levels::on(self.isa, Woven { rows, stride, flip, is_quad: layout.deep == QUAD, to });
            }
        }
    }

    /// The bytes under the windows of a channel that begins at `from`: in x, if they are there as they are, or copied.
    fn bytes<'b>(&'b self, block: &FlatBlock, from: usize, to: &'b mut [u8]) -> &'b [u8] {
        let (layout, x) = (self.layout, self.x);
        let Axis { stride, before, input, .. } = layout.columns;
        let first = block.column * stride;
        let left = before.saturating_sub(first).min(layout.needed);
        let count = (input + before).saturating_sub(first.max(before)).min(layout.needed - left);
        let is_line = layout.height * layout.phases[0] == 1 && layout.rows.input == 1 && layout.rows.before == 0;
        if is_line && stride == 1 && left == 0 {
            // What is behind the windows of the last block is any.
            let at = from + first - before;
            if count >= block.across + layout.needed - layout.across
                && let Some(there) = x.get(at..at + layout.area + layout.columns.dilation + CHUNK)
            {
                return there;
            }
        }
        to[..layout.phases[0] * layout.height * layout.pitch * stride + layout.needed]
            .fill(self.of.zero_x as u8 ^ self.of.flip);
        let mut begin = left;
        for phase in 0..layout.phases[0] {
            for row in 0..layout.height {
                let row = ((block.row + row) * layout.rows.stride + phase).wrapping_sub(layout.rows.before);
                if row < layout.rows.input {
                    let at = from + row * input + first.saturating_sub(before);
                    copy(&x[at..][..count], &mut to[begin..][..count]);
                }
                begin += layout.pitch * stride;
            }
        }
        to
    }
}

/// Copies a run that is often short, and then faster so than by a call.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8]) {
    /// Both ends of a run of at least `N` and at most twice as many.
    #[inline(always)]
    fn ends<const N: usize>(from: &[u8], to: &mut [u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut()? = first;
        *to.last_chunk_mut()? = last;
        Some(())
    }
    let copied = match from.len() {
        4..=8 => ends::<4>(from, to),
        9..=16 => ends::<8>(from, to),
        17..=32 => ends::<16>(from, to),
        _ => None,
    };
    if copied.is_none() {
        to.copy_from_slice(from);
    }
}

/// Cells of the numbers of two or four rows, some elements apart.
struct Woven<'a> {
    rows: [&'a [u8]; QUAD],
    stride: usize,
    flip: u32,
    is_quad: bool,
    to: &'a mut [u32],
}

impl LevelLoop for Woven<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Woven { rows, stride, flip, is_quad, to } = self;
        // Two bytes are one number in memory, so that no vector is taken apart.
        let low = |x: [u8; 2]| u16::from_le_bytes(x) as u8;
        match (is_quad, stride) {
            (false, 1) => pairs(rows, flip, to, |[x]| x),
            (false, 2) => pairs(rows, flip, to, low),
            (true, 1) => quads(rows, flip, to, |[x]| x),
            (true, 2) => quads(rows, flip, to, low),
            _ => {
                for (i, to) in to.iter_mut().enumerate() {
                    let [a, b, c, d] = rows.map(|row| row.get(i * stride).map_or(0, |&x| u32::from(x)));
                    *to = flip ^ if is_quad { a | b << 8 | c << 16 | d << 24 } else { a | b << 16 };
                }
            }
        }
    }
}

#[inline(always)]
fn pairs<const N: usize>([a, b, ..]: [&[u8]; QUAD], flip: u32, to: &mut [u32], number: impl Fn([u8; N]) -> u8) {
    let bytes = a.as_chunks().0.iter().zip(b.as_chunks().0);
    for (to, (&a, &b)) in to.iter_mut().zip(bytes) {
        *to = (u32::from(number(a)) | u32::from(number(b)) << 16) ^ flip;
    }
}

#[inline(always)]
fn quads<const N: usize>([a, b, c, d]: [&[u8]; QUAD], flip: u32, to: &mut [u32], number: impl Fn([u8; N]) -> u8) {
    let low = a.as_chunks().0.iter().zip(b.as_chunks().0);
    let high = c.as_chunks().0.iter().zip(d.as_chunks().0);
    for (to, ((&a, &b), (&c, &d))) in to.iter_mut().zip(low.zip(high)) {
        let [a, b, c, d] = [a, b, c, d].map(|x| u32::from(number(x)));
        *to = (a | b << 8 | c << 16 | d << 24) ^ flip;
    }
}

/// What a pair of weights of a quad is multiplied by at first, and what is left of it (`MOST_PAIR`).
fn parted([a, b]: [i32; 2]) -> [[i32; 2]; 2] {
    let more = a + b - (a + b).clamp(-MOST_PAIR, MOST_PAIR);
    // Both weights have the sign of what is too much.
    let of_a = if more > 0 { more.min(a) } else { more.max(a) };
    let rest = if more == 0 { [0; 2] } else { [of_a, more - of_a] };
    [[a - rest[0], b - rest[1]], rest]
}

fn pair([a, b, ..]: [i32; QUAD]) -> u32 {
    (a & 0xffff) as u32 | (b as u32) << 16
}

fn quad(bytes: [i32; QUAD]) -> u32 {
    u32::from_le_bytes(bytes.map(|byte| byte as u8))
}

impl FlatWindows {
    fn depth(&self) -> usize {
        self.channels * self.rows.taps * self.columns.taps
    }

    /// Passes on each group's number and its weights of a filter, and returns what its sums begin with.
    fn filter(&self, layout: &FlatLayout, weights: &[u8], mut put: impl FnMut(usize, [i32; QUAD])) -> i32 {
        let (taps, below) = (self.columns.taps, self.rows.taps * self.columns.taps);
        let mut sum = 0i32;
        let mut pass = |group: usize, weights: [Option<&u8>; QUAD]| {
            let weights = weights.map(|weight| weight.map_or(0, |&weight| i32::from(weight as i8) - self.zero_w));
            sum += weights.iter().sum::<i32>();
            put(group, weights);
        };
        if layout.deep == 1 {
            let mut begin = 0;
            for row in 0..layout.planes * self.rows.taps {
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
        assert_eq!(weights.len(), self.groups * self.filters * self.depth());
        if weights.iter().all(|&weight| i8::try_from(i32::from(weight as i8) - self.zero_w).is_ok()) {
            let quads = self.packed_as(FlatCells::Quads, weights)?;
            // Measured on Zen 3: a group of quads takes 8 / 5 of the time of one of pairs, and one of what is left, whose
            // lists are short, twice that.
            let [pairs, whole] = [FlatCells::Pairs, FlatCells::Quads].map(|kind| FlatLayout::new(self, kind).groups());
            let filters = self.groups * self.filters;
            if 8 * (whole * filters + 2 * quads.rest.len()) <= 5 * pairs * filters {
                return Ok(quads);
            }
        }
        self.packed_as(FlatCells::Pairs, weights)
    }

    fn packed_as(&self, kind: FlatCells, weights: &[u8]) -> Result<FlatFilters> {
        let layout = FlatLayout::new(self, kind);
        let (depth, along, all) = (self.depth(), layout.groups(), rounded(self.filters));
        let cells = AlignedBuffer::zeroed(self.groups * all * along * size_of::<u32>(), "packed weights")?;
        let (mut rest, mut numbers, mut ends) = (vec![], vec![], vec![0]);
        let mut terms = vec![0; self.groups * all];
        let (sixes, fours) = sets(self.filters);
        for (group, number) in (0..self.groups).flat_map(|group| (0..sixes + fours).map(move |set| (group, set))) {
            let (first, rows) = set(number, sixes);
            let at = group * all + first;
            for row in 0..rows.min(self.filters - first.min(self.filters)) {
                let weights = &weights[(group * self.filters + first + row) * depth..][..depth];
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
        FlatLayout::new(self, packed.map_or(FlatCells::Few, |packed| packed.kind))
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
        let items = self.images * self.groups * layout.down * layout.wide * layout.split;
        let image = self.channels * self.rows.input * self.columns.input;
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
                    let source = FlatSource { isa, of: self, layout: &layout, x: &x[number * image..][..image] };
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
                    group: divided(number, self.groups).1,
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
        let (lanes, windows, filters) = (self.tiles.lanes, self.windows(), self.of.filters);
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
        for filter in 0..self.of.filters {
            let weights = &weights[(self.group * self.of.filters + filter) * depth..][..depth];
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
        let channel = self.group * self.of.filters + filter;
        let factor = f64::from(scaled.scale) * scaled.scales.map_or(1.0, |scales| f64::from(scales[channel]));
        let same = (factor, scaled.bias.map_or(0, |bias| bias[channel]));
        let plane = self.number * self.of.filters + filter;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::axis::EdgeMode;

    #[test]
    fn parts_of_pairs_are_small_and_add_up() {
        for (a, b) in (-128..=127).flat_map(|a| (-128..=127).map(move |b| (a, b))) {
            let [first, rest] = parted([a, b]);
            assert_eq!([first[0] + rest[0], first[1] + rest[1]], [a, b]);
            for part in [first, rest] {
                assert!(part.iter().all(|&weight| i8::try_from(weight).is_ok()), "{a}, {b}: {part:?}");
                for ends in [part.map(|weight| 255 * weight.max(0)), part.map(|weight| 255 * weight.min(0))] {
                    assert!(i16::try_from(ends[0] + ends[1]).is_ok(), "{a}, {b}: {part:?}");
                }
            }
        }
    }

    #[test]
    fn filters_are_quads_unless_too_much_of_them_is_left() {
        let axis = Axis { input: 9, output: 7, taps: 3, stride: 1, dilation: 1, before: 0, edge: EdgeMode::Zero };
        let of = FlatWindows {
            images: 1,
            groups: 1,
            channels: 8,
            filters: 5,
            rows: axis,
            columns: axis,
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

    #[test]
    fn sets_have_room_for_all_filters() {
        for filters in 1..200 {
            let (sixes, fours) = sets(filters);
            let all = (0..sixes + fours).map(|number| set(number, sixes));
            let end = all.fold(0, |end, (first, rows)| {
                assert_eq!(first, end);
                end + rows
            });
            assert_eq!(end, rounded(filters));
            assert!((filters..filters + 4).contains(&end), "{filters} filters in {end}");
        }
    }
}
