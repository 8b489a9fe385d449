//! A pool as text: why a request failed, and the contents of the memory.
#![forbid(unsafe_code)]

use super::heap;
use super::pool::{Pool, PoolState};
use super::space;
use super::stream_cache::SHARED;
use super::tag::Tag;
use crate::base::text::json_string;
use crate::base::{Code, Error, Result};
use std::fmt::Write as _;

/// Number of uses that an error names.
const NAMED: usize = 3;

/// Blocks with the same tag.
#[derive(Clone, Copy)]
struct BlockUse<'a> {
    tag: &'a Tag,
    blocks: usize,
    bytes: usize,
}

/// "1.5 MiB"
fn size(bytes: usize) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let at = ((usize::BITS - bytes.leading_zeros()).saturating_sub(1) / 10).min(4) as usize;
    let (whole, rest) = (bytes >> (10 * at), bytes & ((1 << (10 * at)) - 1));
    // Of so much nobody counts the tenths: no limit is 16777216 TiB.
    if whole >= 1024 {
        return format!("{} {}", whole + (rest >> (10 * at - 1)), UNITS[at]);
    }
    // Rounded down, so that a full pool is not reported as larger than it is.
    match (rest * 10).checked_shr(10 * at as u32).unwrap_or(0) {
        0 => format!("{whole} {}", UNITS[at]),
        tenth => format!("{whole}.{tenth} {}", UNITS[at]),
    }
}

impl PoolState {
    /// The purposes of the blocks in use, the largest share first; empty if there is no memory for the list.
    fn uses(&self) -> Vec<BlockUse<'_>> {
        let mut uses = Vec::new();
        if uses.try_reserve_exact(self.usage.blocks).is_err() {
            return Vec::new();
        }
        let is_used = |range: &&space::Range<super::stream_cache::Note>| {
            range.state == space::RangeState::Taken && range.note.lane().is_none()
        };
        uses.extend(self.space.all().filter(is_used).map(|range| BlockUse {
            tag: &range.note.tag,
            blocks: 1,
            bytes: range.bytes,
        }));
        uses.sort_unstable_by(|a, b| a.tag.order(b.tag));
        uses.dedup_by(|next, first| {
            let same = next.tag.order(first.tag).is_eq();
            if same {
                first.blocks += next.blocks;
                first.bytes += next.bytes;
            }
            same
        });
        uses.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        uses
    }
}

/// "1 MiB (1048576 bytes) for tensor f32[512,512]"
fn asked(bytes: usize, tag: &Tag) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes for {tag}"),
        _ => format!("{} ({bytes} bytes) for {tag}", size(bytes)),
    }
}

impl Pool {
    /// The limit leaves no room.
    #[cold]
    pub(super) fn no_room(&self, bytes: usize, tag: &Tag) -> Error {
        let mut text = String::new();
        self.figures(&mut text);
        Error::new(Code::ResourceExhausted, text).within(asked(bytes, tag)).at(&self.attr.name)
    }

    /// The source has refused the request.
    #[cold]
    pub(super) fn refused(&self, bytes: usize, tag: &Tag, error: Error) -> Error {
        let error = error.within(asked(bytes, tag)).at(&self.attr.name);
        if error.code() != Code::ResourceExhausted {
            return error;
        }
        let mut text = String::from("; ");
        self.figures(&mut text);
        error.followed_by(&text)
    }

    fn figures(&self, text: &mut String) {
        let state = self.state.lock();
        if self.attr.limit < usize::MAX {
            let _ = write!(text, "limit {}, ", size(self.attr.limit));
        }
        let _ = write!(text, "in use {}, largest free block {}", size(state.usage.in_use), size(state.space.largest()));
        for (i, one) in state.uses().iter().take(NAMED).enumerate() {
            text.push_str(if i == 0 { "; most is held by " } else { ", " });
            if one.blocks > 1 {
                let _ = write!(text, "{} x ", one.blocks);
            }
            let _ = write!(text, "{} ({})", one.tag, size(one.bytes));
        }
    }

    /// The figures, the purposes of the memory, and each region with its blocks, as JSON.
    pub fn dump(&self) -> Result<String> {
        let state = self.state.lock();
        heap::probe(state.space.all().count() * 160 + 1024, "the text of an engine's memory")?;
        let usage = super::Usage { largest_free: state.space.largest(), ..state.usage };
        let mut text = format!("{{\"name\":{}", json_string(&self.attr.name));
        if self.attr.limit < usize::MAX {
            let _ = write!(text, ",\"limit\":{}", self.attr.limit);
        }
        let _ = write!(
            text,
            ",\"in_use\":{},\"peak_in_use\":{},\"reserved\":{},\"peak_reserved\":{},\"largest_free\":{},\
             \"fragmentation\":{:.6},\"blocks\":{},\"allocations\":{},\"region_allocations\":{},\n\"uses\":[",
            usage.in_use,
            usage.peak_in_use,
            usage.reserved,
            usage.peak_reserved,
            usage.largest_free,
            usage.fragmentation(),
            usage.blocks,
            usage.allocations,
            usage.region_allocations,
        );
        for (i, one) in state.uses().iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let tag = json_string(&one.tag.to_string());
            let _ = write!(text, "{comma}\n{{\"for\":{tag},\"blocks\":{},\"bytes\":{}}}", one.blocks, one.bytes);
        }
        text.push_str("],\n\"regions\":[");
        for (i, first) in state.space.regions().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let bytes: usize = state.space.ranges(first).map(|range| range.bytes).sum();
            let address = state.space.get(first).address;
            let _ = write!(text, "{comma}\n{{\"address\":\"{address:#x}\",\"bytes\":{bytes},\"blocks\":[");
            for (i, range) in state.space.ranges(first).enumerate() {
                let comma = if i > 0 { "," } else { "" };
                let _ = write!(text, "{comma}\n{{\"offset\":{},\"bytes\":{}", range.address - address, range.bytes);
                let _ = match (range.state, range.note.lane()) {
                    (space::RangeState::Taken, None) => {
                        write!(text, ",\"state\":\"used\",\"for\":{}}}", json_string(&range.note.tag.to_string()))
                    }
                    (space::RangeState::Taken, Some(SHARED)) => write!(text, ",\"state\":\"kept\"}}"),
                    (space::RangeState::Taken, Some(lane)) => write!(text, ",\"state\":\"kept\",\"lane\":{lane}}}"),
                    _ => write!(text, ",\"state\":\"free\"}}"),
                };
            }
            text.push_str("]}");
        }
        text.push_str("]}\n");
        Ok(text)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_and_never_too_large() {
        let texts = [0, 1023, 1024, 1536, 2047, 1 << 20, (1 << 20) + (1 << 19), 3 << 30, usize::MAX].map(size);
        let expected =
            ["0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "1.9 KiB", "1 MiB", "1.5 MiB", "3 GiB", "16777216 TiB"];
        assert_eq!(texts, expected);
    }
}
