//! The cells of int8 convolution over flat planes (`flat`): two numbers of 16 bits, or a quad of bytes.
#![forbid(unsafe_code)]

use super::flat_layout::{CHUNK, FlatBlock, FlatLayout, QUAD};
use super::flat_tile::MOST_PAIR;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::levels::{self, LevelLoop};
use crate::ops::axis::Axis;

/// A group's image, and where its cells are made.
pub struct FlatSource<'a> {
    pub isa: Isa,
    pub layout: &'a FlatLayout,
    pub x: &'a [u8],
    pub channels: usize,
    /// XOR mask of each element, and the padding.
    pub flip: u8,
    pub zero_x: i32,
}

impl FlatSource<'_> {
    /// The cells of all planes.
    pub fn cells(&self, block: &FlatBlock, bytes: &mut [u8], to: &mut [u32]) {
        let layout = self.layout;
        let Axis { stride, dilation, .. } = layout.columns;
        let image = layout.rows.input * layout.columns.input;
        let flip = u32::from(self.flip) * if layout.deep == QUAD { 0x0101_0101 } else { 0x1_0001 };
        let room = bytes.len() / layout.deep;
        for plane in 0..layout.planes {
            // Numbers beyond the last channel or tap may be any: their weights are 0.
            let mut channels = [&[][..]; QUAD];
            for ((number, of), to) in channels.iter_mut().enumerate().zip(bytes.chunks_exact_mut(room)) {
                let channel = (plane * layout.deep + number).min(self.channels - 1);
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
            // Bytes behind the windows of the last block may be any.
            let at = from + first - before;
            if count >= block.across + layout.needed - layout.across
                && let Some(there) = x.get(at..at + layout.area + layout.columns.dilation + CHUNK)
            {
                return there;
            }
        }
        to[..layout.phases[0] * layout.height * layout.pitch * stride + layout.needed]
            .fill(self.zero_x as u8 ^ self.flip);
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
pub fn copy(from: &[u8], to: &mut [u8]) {
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
    pub rows: [&'a [u8]; QUAD],
    pub stride: usize,
    pub flip: u32,
    pub is_quad: bool,
    pub to: &'a mut [u32],
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

/// The part of a quad's pair of weights whose products fit in 16 bits (`MOST_PAIR`), and the rest.
pub fn parted([a, b]: [i32; 2]) -> [[i32; 2]; 2] {
    let more = a + b - (a + b).clamp(-MOST_PAIR, MOST_PAIR);
    // Both weights have the sign of what is too much.
    let of_a = if more > 0 { more.min(a) } else { more.max(a) };
    let rest = if more == 0 { [0; 2] } else { [of_a, more - of_a] };
    [[a - rest[0], b - rest[1]], rest]
}

pub fn pair([a, b, ..]: [i32; QUAD]) -> u32 {
    (a & 0xffff) as u32 | (b as u32) << 16
}

pub fn quad(bytes: [i32; QUAD]) -> u32 {
    u32::from_le_bytes(bytes.map(|byte| byte as u8))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
}
