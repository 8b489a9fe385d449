//! int8 convolution: over flat planes (`flat`), depthwise on all levels, and with packed filters where a step
//! multiplies cells of two numbers; otherwise a product whose rows are gathered under windows.
//!
//! An item of the product is a block of windows of an image and a group, for some filters or all. The numbers under
//! them are copied into a *strip*, channels innermost, with zero_x as padding and signed bytes as unsigned ones. From
//! there a row of *patches* is a few copies for each window, (tap, channel); that of windows of one element is the
//! strip itself. The product with the packed filters gives sums [windows, filters], which are converted to elements and
//! transposed into the output. Filters that are not packed are read as they are, (channel, tap), and patches are
//! gathered in that order, element by element. The sums are exact either way, so bits do not differ.

use super::compute;
use super::finish::{Offset, Rule};
use super::flat::{FlatFilters, FlatWeights, FlatWindows, MOST_TAPS};
use super::flat_layout::FlatShape;
use super::flat_tile::FlatTiles;
use super::pack::pack;
use super::panels::BytePanels;
use super::product::Int8Product;
use super::scaled::{OutputAddress, Scaled, Store, line_with};
use crate::base::Result;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::movement::TileTranspose;
use crate::kernel::vector::site::{Alone, Matrix, MatrixMut, Site, check_scratch};
use crate::memory::{ALIGNMENT, BytesMut};
use crate::ops::axis::Axis;
use crate::threadpool::Span;
use std::ops::Range;

/// Most windows of an item, and bytes of their patches.
const MOST_WINDOWS: usize = 256;
const MOST_BYTES: usize = 256 << 10;
/// Filters of a product.
const FILTERS: usize = 128;
/// Items that are enough for any pool.
const ENOUGH_ITEMS: usize = 16;
/// Numbers along K of a cell.
const CELL: usize = 4;

/// The sizes.
#[derive(Clone, Copy, Debug)]
pub struct Int8Windows {
    pub images: usize,
    pub groups: usize,
    /// Of a group.
    pub channels: usize,
    /// Of a group.
    pub filters: usize,
    pub rows: Axis,
    pub columns: Axis,
    /// Whether x is signed.
    pub signed: bool,
    pub zero_x: i32,
    pub zero_w: i32,
    pub store: Store,
}

/// Filters that never change, packed.
#[derive(Debug)]
pub enum Int8Filters {
    Flat(FlatFilters),
    /// For each group, those of each product.
    Panels(Vec<BytePanels>),
}

/// The weights of a call.
#[derive(Clone, Copy, Debug)]
pub enum Int8Weights<'a> {
    Packed(&'a Int8Filters),
    /// [groups * filters, channels * taps]
    Plain(&'a [u8]),
}

/// The windows of an item of a product, and the part of the padded image under them.
#[derive(Clone, Copy, Debug)]
struct Int8Division {
    lines: usize,
    across: usize,
    /// Rows and columns under a whole item.
    height: usize,
    width: usize,
    down: usize,
    wide: usize,
    /// Whether each product of filters is an item of its own.
    splits: bool,
}

impl Int8Windows {
    fn taps(&self) -> usize {
        self.rows.taps * self.columns.taps
    }

    fn depth(&self) -> usize {
        self.channels * self.taps()
    }

    /// Bytes of a row of patches: whole cells.
    fn pitch(&self) -> usize {
        self.depth().next_multiple_of(CELL)
    }

    fn windows(&self) -> usize {
        self.rows.output * self.columns.output
    }

    fn is_depthwise(&self) -> bool {
        self.channels == 1 && self.taps() <= MOST_TAPS
    }

    fn flat(&self) -> FlatWindows {
        let &Int8Windows { images, groups, channels, filters, rows, columns, zero_w, .. } = self;
        let (flip, zero_x) = (self.flip(), self.zero_x + i32::from(self.flip()));
        let shape = FlatShape { images, groups, channels, filters, rows, columns };
        FlatWindows { shape, flip, zero_x, zero_w }
    }

    /// Whether patches are the strip as it is.
    fn is_strip(&self, division: &Int8Division) -> bool {
        let plain = self.rows.is_plain() && self.columns.is_plain() && self.channels.is_multiple_of(CELL);
        plain && self.columns.output.is_multiple_of(division.across)
    }

    fn division(&self) -> Int8Division {
        let most = (MOST_BYTES / self.pitch().max(1)).clamp(16, MOST_WINDOWS);
        let across = self.columns.output.min(most).max(1);
        let lines = (most / across).clamp(1, self.rows.output.max(1));
        let span = |axis: &Axis, windows: usize| (windows - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
        let (down, wide) = (self.rows.output.div_ceil(lines), self.columns.output.div_ceil(across));
        Int8Division {
            lines,
            across,
            height: span(&self.rows, lines),
            width: span(&self.columns, across),
            down,
            wide,
            splits: self.images * self.groups * down * wide < ENOUGH_ITEMS,
        }
    }

    /// Products of a group.
    fn parts(&self) -> usize {
        self.filters.div_ceil(FILTERS)
    }

    fn part(&self, number: usize) -> Range<usize> {
        number * FILTERS..((number + 1) * FILTERS).min(self.filters)
    }

    /// A product of so many windows and filters, of data with these sizes or none.
    fn product<'a>(
        &self,
        (m, n): (usize, usize),
        a: Matrix<'a, u8>,
        b: Matrix<'a, u8>,
        packed_b: Option<&'a BytePanels>,
    ) -> Int8Product<'a> {
        Int8Product {
            m,
            n,
            k: self.pitch(),
            a,
            transpose_a: false,
            signed_a: false,
            b,
            transpose_b: true,
            packed_b,
            zero_a: self.zero_x + i32::from(self.flip()),
            zero_b: self.zero_w,
            rule: Rule { alpha: 1.0, beta: 0.0, offset: Offset::Fixed(0) },
        }
    }

    /// Bytes of the strip, the patches, the sums, the elements, the filters of a product that are not packed, and the
    /// product's own scratch memory.
    fn room(&self, isa: Isa, packed: Option<&[BytePanels]>) -> [usize; 6] {
        let division = self.division();
        let (most, filters) = (division.lines * division.across, FILTERS.min(self.filters));
        let none = Matrix::dense(&[], 0, 0);
        let last = |all: usize, size: usize| all - (all.div_ceil(size) - 1) * size;
        let lines = [division.lines, last(self.rows.output, division.lines)];
        let across = [division.across, last(self.columns.output, division.across)];
        let mut own = 0;
        for m in lines.into_iter().flat_map(|lines| across.map(|across| lines * across)) {
            for part in [0, self.parts() - 1] {
                let panels = packed.map(|packed| &packed[part]);
                own = own.max(self.product((m, self.part(part).len()), none, none, panels).scratch_bytes(isa));
            }
        }
        let patches = if self.is_strip(&division) && packed.is_some() { 0 } else { most * self.pitch() };
        let strip = if packed.is_some() { division.height * division.width * self.channels } else { 0 };
        let weights = if packed.is_some() { 0 } else { filters * self.pitch() };
        // Patches are read in whole registers.
        [strip + ALIGNMENT, patches + ALIGNMENT, most * filters * 4, most * filters * self.store.bytes(), weights, own]
            .map(|bytes| bytes.next_multiple_of(ALIGNMENT))
    }

    /// Scratch memory per slot, in bytes.
    pub fn scratch_bytes(&self, isa: Isa, packed: Option<&Int8Filters>) -> usize {
        if self.windows() * self.filters == 0 {
            return 0;
        }
        match packed {
            Some(Int8Filters::Flat(filters)) => self.flat().scratch_bytes(Some(filters), self.store),
            Some(Int8Filters::Panels(panels)) => self.room(isa, Some(panels)).iter().sum(),
            None if self.is_depthwise() => self.flat().scratch_bytes(None, self.store),
            None => self.room(isa, None).iter().sum(),
        }
    }

    /// Estimated time on one thread.
    pub fn cost_ns(&self, isa: Isa) -> u64 {
        let none = Matrix::dense(&[], 0, 0);
        let count = (self.images * self.groups) as u64;
        if self.is_depthwise() {
            return count * (self.filters * self.windows() * (self.taps() + 8)) as u64 / 32;
        }
        let product = self.product((self.windows(), self.filters), none, none, None).cost_ns(isa);
        count * (product + (self.windows() * (self.depth() / 8 + self.filters)) as u64)
    }

    /// Packs filters, [groups * filters, channels * taps]; `None` if they are read as they are.
    pub fn packed(&self, isa: Isa, weights: &[u8]) -> Result<Option<Int8Filters>> {
        let (depth, pitch, taps) = (self.depth(), self.pitch(), self.taps());
        if self.is_depthwise() || weights.is_empty() {
            return Ok(None);
        }
        if depth <= MOST_TAPS && FlatTiles::of(isa).many.is_some() {
            return Ok(Some(Int8Filters::Flat(self.flat().packed(weights)?)));
        }
        assert_eq!(weights.len(), self.groups * self.filters * depth);
        let mut all = Vec::with_capacity(self.groups * self.parts());
        for (group, part) in (0..self.groups).flat_map(|group| (0..self.parts()).map(move |part| (group, part))) {
            let filters = self.part(part);
            // A weight of 0 fills the last cell.
            let mut rows = vec![self.zero_w as u8; filters.len() * pitch];
            for (filter, row) in filters.zip(rows.chunks_exact_mut(pitch)) {
                let from = &weights[(group * self.filters + filter) * depth..][..depth];
                for (channel, taps_of) in from.chunks_exact(taps).enumerate() {
                    taps_of.iter().enumerate().for_each(|(tap, &weight)| row[tap * self.channels + channel] = weight);
                }
            }
            let count = rows.len() / pitch;
            all.push(pack(isa, Matrix::dense(&rows, count, pitch), pitch, count, true)?);
        }
        Ok(Some(Int8Filters::Panels(all)))
    }

    fn flip(&self) -> u8 {
        if self.signed { 128 } else { 0 }
    }

    /// Copies what lies under some windows into a strip, [rows, columns, channels].
    fn strip(&self, isa: Isa, x: &[u8], windows: &WindowBlock, division: &Int8Division, to: &mut [u8]) {
        let (height, width) = (self.rows.input, self.columns.input);
        let (channels, pitch) = (self.channels, division.width * self.channels);
        let turn = TileTranspose::of(isa, 1).expect("bytes are turned on every level");
        let first = (windows.columns.start * self.columns.stride) as isize - self.columns.before as isize;
        let under =
            (windows.columns.len() - 1) * self.columns.stride + (self.columns.taps - 1) * self.columns.dilation + 1;
        let inside =
            first.max(0).min(width as isize) as usize..(first + under as isize).clamp(0, width as isize) as usize;
        let begin = (inside.start as isize - first) as usize;
        let lines = (windows.rows.len() - 1) * self.rows.stride + (self.rows.taps - 1) * self.rows.dilation + 1;
        for (line, to) in to.chunks_exact_mut(pitch).take(lines).enumerate() {
            let row = (windows.rows.start * self.rows.stride + line).wrapping_sub(self.rows.before);
            if row >= height || inside.is_empty() {
                to.fill(self.zero_x as u8);
            } else {
                to[..begin * channels].fill(self.zero_x as u8);
                let end = (begin + inside.len()) * channels;
                to[end..under * channels].fill(self.zero_x as u8);
                let from = x[row * width + inside.start..].as_ptr();
                assert!((channels - 1) * height * width + row * width + inside.end <= x.len());
                let (from, to) =
                    ((from, (height * width) as isize), (to[begin * channels..].as_mut_ptr(), channels as isize));
                // SAFETY: the level is supported; a stretch of a row of each channel, which is inside of x, and as many
                // places of the strip, each with all channels.
                unsafe { turn.run(from, to, channels, inside.len()) };
            }
            if self.signed {
                to[..under * channels].iter_mut().for_each(|byte| *byte ^= 128);
            }
        }
    }

    /// Copies the patches of a block from its strip, (tap, channel).
    fn patches(&self, windows: &WindowBlock, division: &Int8Division, strip: &[u8], to: &mut [u8]) {
        let (channels, pitch) = (self.channels, self.pitch());
        let run = if self.columns.dilation == 1 { self.columns.taps } else { 1 };
        let mut rows = to.chunks_exact_mut(pitch);
        for (line, column) in windows.places() {
            let Some(row) = rows.next() else { return };
            let mut parts = row.chunks_exact_mut(run * channels);
            for down in 0..self.rows.taps {
                let at = (line * self.rows.stride + down * self.rows.dilation) * division.width
                    + column * self.columns.stride;
                for across in (0..self.columns.taps).step_by(run) {
                    let from = (at + across * self.columns.dilation) * channels;
                    if let Some(part) = parts.next() {
                        part.copy_from_slice(&strip[from..from + run * channels]);
                    }
                }
            }
        }
    }

    /// Gathers the patches of a block from x, (channel, tap).
    fn gathered(&self, x: &[u8], windows: &WindowBlock, to: &mut [u8]) {
        let (height, width) = (self.rows.input, self.columns.input);
        let padding = self.zero_x as u8 ^ self.flip();
        let mut rows = to.chunks_exact_mut(self.pitch());
        for (line, column) in windows.places() {
            let Some(row) = rows.next() else { return };
            for (at, byte) in row[..self.depth()].iter_mut().enumerate() {
                let (channel, tap) = (at / self.taps(), at % self.taps());
                let down = self.rows.element(windows.rows.start + line, tap / self.columns.taps);
                let across = self.columns.element(windows.columns.start + column, tap % self.columns.taps);
                *byte = match (down, across) {
                    (Some(down), Some(across)) => x[(channel * height + down) * width + across] ^ self.flip(),
                    _ => padding,
                };
            }
        }
    }

    /// Computes all images of `x` into the output, [images * groups * filters, windows], in regions of `site`, which
    /// has `scratch_bytes` per slot.
    pub fn compute(
        &self,
        isa: Isa,
        x: &[u8],
        weights: Int8Weights<'_>,
        scaled: &Scaled<'_>,
        out: BytesMut<'_>,
        site: &dyn Site,
    ) -> Result<()> {
        let (windows, all) = (self.windows(), self.groups * self.filters);
        let plane = self.rows.input * self.columns.input;
        assert_eq!(x.len(), self.images * self.groups * self.channels * plane, "{self:?}");
        assert!(out.len() >= self.images * all * windows * self.store.bytes(), "{self:?}");
        assert!(scaled.scales.is_none_or(|scales| scales.len() == all), "{self:?}");
        assert!(scaled.bias.is_none_or(|bias| bias.len() == all), "{self:?}");
        let packed = match weights {
            Int8Weights::Packed(packed) => Some(packed),
            Int8Weights::Plain(plain) => {
                assert_eq!(plain.len(), all * self.depth());
                None
            }
        };
        check_scratch(site, self.scratch_bytes(isa, packed));
        let out = OutputAddress(out.data());
        let flat = match weights {
            Int8Weights::Packed(Int8Filters::Flat(filters)) => Some(FlatWeights::Packed(filters)),
            Int8Weights::Plain(plain) if self.is_depthwise() => Some(FlatWeights::Plain(plain)),
            _ => None,
        };
        if let Some(weights) = flat {
            // SAFETY: the output is large enough, as compared above, and exclusive during the call.
            return unsafe { self.flat().compute((isa, self.cost_ns(isa)), x, weights, scaled, &out, site) };
        }
        let packed = match packed {
            Some(Int8Filters::Panels(panels)) => {
                assert_eq!(panels.len(), self.groups * self.parts());
                Some(&panels[..])
            }
            _ => None,
        };
        let (division, room) = (self.division(), self.room(isa, packed));
        let parts = self.parts();
        let split = if division.splits { parts } else { 1 };
        let items = self.images * self.groups * division.down * division.wide * split;
        let cost_ns = self.cost_ns(isa) as f32 / items as f32;
        site.parallel_for(&Span { items, cost_ns, coarse: true, ..Span::default() }, &|claim| {
            let mut address = site.scratch(claim.slot());
            let [strip, patches, sums, elements, rows, own] = room.map(|bytes| {
                let at = address;
                address = address.wrapping_add(bytes);
                // SAFETY: a part of the slot's scratch memory, which is initialised.
                unsafe { std::slice::from_raw_parts_mut(at, bytes) }
            });
            let (alone, out) = (Alone::new(own), &out);
            for item in claim.begin()..claim.end() {
                let (part, block) = (item % split, item / split);
                let (across, down) = (block % division.wide, block / division.wide % division.down);
                let number = block / division.wide / division.down;
                let group = number % self.groups;
                let x = &x[number * self.channels * plane..][..self.channels * plane];
                let block = WindowBlock {
                    rows: down * division.lines..((down + 1) * division.lines).min(self.rows.output),
                    columns: across * division.across..((across + 1) * division.across).min(self.columns.output),
                };
                let m = block.rows.len() * block.columns.len();
                let is_strip = packed.is_some() && self.is_strip(&division);
                match packed {
                    Some(_) => self.strip(isa, x, &block, &division, strip),
                    None => self.gathered(x, &block, patches),
                }
                if packed.is_some() && !is_strip {
                    self.patches(&block, &division, strip, patches);
                }
                let a = Matrix::dense(if is_strip { &*strip } else { &*patches }, m, self.pitch());
                for part in if division.splits { part..part + 1 } else { 0..parts } {
                    let filters = self.part(part);
                    let (n, first) = (filters.len(), group * self.filters + filters.start);
                    let (none, pitch) = (Matrix::dense(&[], 0, 0), self.pitch());
                    let (b, panels) = match (packed, weights) {
                        (Some(panels), _) => (none, Some(&panels[group * parts + part])),
                        (None, Int8Weights::Packed(_)) => unreachable!("flat filters"),
                        (None, Int8Weights::Plain(weights)) => {
                            for (filter, row) in rows.chunks_exact_mut(pitch).take(n).enumerate() {
                                let from = &weights[(first + filter) * self.depth()..][..self.depth()];
                                row[..from.len()].copy_from_slice(from);
                                row[from.len()..].fill(self.zero_w as u8);
                            }
                            (Matrix::dense(rows, n, pitch), None)
                        }
                    };
                    // SAFETY: a part of the slot's scratch memory, aligned as that is, and large enough.
                    let c = unsafe { MatrixMut::new(sums.as_mut_ptr().cast::<i32>(), m, n, n) };
                    compute(isa, &self.product((m, n), a, b, panels), c, &alone)?;
                    let scaled = Scaled {
                        scales: scaled.scales.map(|scales| &scales[first..][..n]),
                        bias: scaled.bias.map(|bias| &bias[first..][..n]),
                        ..*scaled
                    };
                    let size = self.store.bytes();
                    let turn = TileTranspose::of(isa, size).expect("elements are turned on every level");
                    // SAFETY: the sums of each window become as many elements; each line of windows of each filter is
                    // inside of the output, and no other item has it. The level is supported.
                    unsafe {
                        for row in 0..m {
                            let sums = sums.as_ptr().cast::<i32>().add(row * n);
                            line_with(isa, &scaled, sums, n, elements.as_mut_ptr().add(row * n * size));
                        }
                        let to = (number / self.groups * self.groups * self.filters + first) * windows;
                        for (i, line) in block.rows.clone().enumerate() {
                            let from = elements.as_ptr().add(i * block.columns.len() * n * size);
                            let at = to + line * self.columns.output + block.columns.start;
                            let to = out.0.add(at * size);
                            let (from_stride, to_stride) = ((n * size) as isize, (windows * size) as isize);
                            turn.run((from, from_stride), (to, to_stride), block.columns.len(), n);
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

/// Windows of an item.
#[derive(Clone, Debug)]
struct WindowBlock {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl WindowBlock {
    /// Line and column of each window, from the first one of the block.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    }
}
