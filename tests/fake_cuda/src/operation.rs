//! What streams and graphs do: the operations, without their order.

use crate::abi::{Copy2D, Copy3D, HostFunction};
use crate::graph::Condition;
use crate::modules::Function;
use crate::space::{self, Owner};
use crate::status::{Code, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

#[derive(Clone, Debug)]
pub enum Operation {
    /// Only order: waits, joins, empty nodes.
    Nothing,
    Launch(Launch),
    Copy(Copy),
    Fill(Fill),
    Host(Host),
    Library(Arc<Library>),
    /// An event is reached.
    Record(Arc<OnceLock<Instant>>),
    /// A block can be used from here on, up to `Free`.
    Allocate(Range<u64>),
    Free(u64),
    /// A graph's launch begins: its conditional handles have these values.
    Begin(Arc<BTreeMap<u64, Option<u32>>>),
    /// Decides which bodies come next.
    Condition(Arc<Condition>),
}

#[derive(Clone, Debug)]
pub struct Launch {
    pub function: Arc<Function>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub params: Arc<[u8]>,
}

/// What another library does on the device (`fakeCudaLaunch`): called with its data, and with places for the memory that
/// it has named.
#[derive(Clone, Debug)]
pub struct Library {
    pub function: unsafe extern "C" fn(*mut std::ffi::c_void, *const *mut std::ffi::c_void),
    pub data: usize,
    /// Addresses of the device, and whether they are written.
    pub uses: Vec<(Range<u64>, bool)>,
}

/// Called with its data on a thread of the driver's.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub function: unsafe extern "C" fn(*mut std::ffi::c_void),
    pub data: usize,
}

impl Host {
    pub fn new(function: HostFunction, data: *mut std::ffi::c_void) -> Result<Host> {
        Ok(Host { function: function.ok_or(Code::INVALID_VALUE)?, data: data as usize })
    }
}

/// One side of a copy: rows of bytes, in layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub address: u64,
    /// Bytes from row to row, and from layer to layer.
    pub pitch: u64,
    pub layer: u64,
    /// Bytes that were read as the copy was asked for; the address is not read again.
    pub staged: Option<Arc<[u8]>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    pub to: Side,
    pub from: Side,
    /// Bytes, rows and layers.
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    pub to: Side,
    pub value: u32,
    pub element: u32,
    /// Elements and rows.
    pub width: u64,
    pub height: u64,
}

impl Side {
    fn row(address: u64) -> Side {
        Side { address, pitch: 0, layer: 0, staged: None }
    }

    /// The rows that are used, each as a range; rows that touch are one.
    pub fn rows(&self, width: u64, height: u64, depth: u64) -> Vec<Range<u64>> {
        let mut rows: Vec<Range<u64>> = Vec::new();
        for layer in 0..depth {
            for row in 0..height {
                let start = self.address + layer * self.layer + row * self.pitch;
                match rows.last_mut().filter(|last| last.end == start) {
                    Some(last) => last.end = start + width,
                    None if width > 0 => rows.push(start..start + width),
                    None => {}
                }
            }
        }
        rows
    }
}

impl Copy {
    pub fn row(to: u64, from: u64, bytes: u64) -> Copy {
        Copy { to: Side::row(to), from: Side::row(from), width: bytes, height: 1, depth: 1 }
    }

    pub fn of_2d(copy: &Copy2D) -> Result<Copy> {
        let side = |kind, host: u64, device, pitch: usize, x: usize, y: usize| {
            let start = address(kind, host, device)?;
            // Without a pitch the rows are one behind the other.
            let pitch = if pitch == 0 { copy.width } else { pitch };
            if pitch < copy.width + x && copy.height > 1 {
                return Err(Code::INVALID_VALUE);
            }
            let start = start + (y * pitch + x) as u64;
            Ok(Side { address: start, pitch: pitch as u64, layer: 0, staged: None })
        };
        Ok(Copy {
            to: side(copy.dst_type, copy.dst_host as u64, copy.dst_device, copy.dst_pitch, copy.dst_x, copy.dst_y)?,
            from: side(copy.src_type, copy.src_host as u64, copy.src_device, copy.src_pitch, copy.src_x, copy.src_y)?,
            width: copy.width as u64,
            height: copy.height as u64,
            depth: 1,
        })
    }

    pub fn of_3d(copy: &Copy3D) -> Result<Copy> {
        let side = |kind, host: u64, device, pitch: usize, rows: usize, [x, y, z]: [usize; 3]| {
            let start = address(kind, host, device)?;
            let pitch = if pitch == 0 { copy.width } else { pitch };
            let rows = if rows == 0 { copy.height } else { rows };
            if (copy.height > 1 && pitch < copy.width + x) || (copy.depth > 1 && rows < copy.height + y) {
                return Err(Code::INVALID_VALUE);
            }
            let layer = pitch * rows;
            let start = start + (z * layer + y * pitch + x) as u64;
            Ok(Side { address: start, pitch: pitch as u64, layer: layer as u64, staged: None })
        };
        let (to, from) = ([copy.dst_x, copy.dst_y, copy.dst_z], [copy.src_x, copy.src_y, copy.src_z]);
        Ok(Copy {
            to: side(copy.dst_type, copy.dst_host as u64, copy.dst_device, copy.dst_pitch, copy.dst_height, to)?,
            from: side(copy.src_type, copy.src_host as u64, copy.src_device, copy.src_pitch, copy.src_height, from)?,
            width: copy.width as u64,
            height: copy.height as u64,
            depth: copy.depth as u64,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Each byte must be somewhere as the copy is asked for.
    pub fn check(&self) -> Result {
        for side in [&self.to, &self.from] {
            check_rows(&side.rows(self.width, self.height, self.depth))?;
        }
        Ok(())
    }

    fn is_pageable(&self, side: &Side) -> bool {
        side.staged.is_none() && space::look(|space| matches!(space.owner(side.address), Some(Owner::Pageable)))
    }

    /// One row, so that it can become another one in an executable graph.
    pub fn is_row(&self) -> bool {
        self.height == 1 && self.depth == 1
    }

    pub fn is_to_pageable(&self) -> bool {
        self.is_pageable(&self.to)
    }

    /// Reads what may change behind the driver's back as soon as the call returns.
    pub fn stage(&mut self) {
        if self.is_empty() || !self.is_pageable(&self.from) {
            return;
        }
        let mut bytes = Vec::with_capacity((self.width * self.height * self.depth) as usize);
        for layer in 0..self.depth {
            for row in 0..self.height {
                let at = self.from.address + layer * self.from.layer + row * self.from.pitch;
                // SAFETY: memory of the program's, which it gives to be read.
                bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(at as *const u8, self.width as usize) });
            }
        }
        self.from.pitch = self.width;
        self.from.layer = self.width * self.height;
        self.from.staged = Some(bytes.into());
    }
}

impl Fill {
    pub fn row(to: u64, value: u32, element: u32, count: u64) -> Fill {
        Fill { to: Side::row(to), value, element, width: count, height: 1 }
    }

    pub fn of_node(dst: u64, pitch: u64, value: u32, element: u32, width: u64, height: u64) -> Result<Fill> {
        if !matches!(element, 1 | 2 | 4) || !dst.is_multiple_of(u64::from(element)) {
            return Err(Code::INVALID_VALUE);
        }
        if height > 1 && (pitch < width * u64::from(element) || !pitch.is_multiple_of(u64::from(element))) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Fill { to: Side { address: dst, pitch, layer: 0, staged: None }, value, element, width, height })
    }

    pub fn rows(&self) -> Vec<Range<u64>> {
        self.to.rows(self.width * u64::from(self.element), self.height, 1)
    }

    pub fn check(&self) -> Result {
        check_rows(&self.rows())
    }
}

impl Operation {
    /// Whether an executable graph's node that does this can be made to do that: rows of bytes in memory of the same
    /// sort, a kernel of the same context.
    pub fn can_become(&self, new: &Operation) -> bool {
        match (self, new) {
            (Operation::Copy(old), Operation::Copy(new)) => {
                let is_same = |old: &Side, new: &Side| sort(old.address) == sort(new.address);
                old.is_row() && new.is_row() && is_same(&old.to, &new.to) && is_same(&old.from, &new.from)
            }
            (Operation::Fill(old), Operation::Fill(new)) => {
                old.height == 1 && new.height == 1 && sort(old.to.address) == sort(new.to.address)
            }
            (Operation::Launch(old), Operation::Launch(new)) => old.function.context == new.function.context,
            _ => true,
        }
    }
}

/// Of a device, pinned or neither.
fn sort(address: u64) -> u32 {
    space::look(|space| match space.owner(address) {
        Some(Owner::Pinned(_)) => 1,
        Some(Owner::Pageable) => 0,
        // Also of memory that has ended.
        Some(Owner::Device(_)) | None => 2,
    })
}

/// Addresses of devices must be in one of their blocks, or have been.
fn check_rows(rows: &[Range<u64>]) -> Result {
    space::look(|space| {
        for row in rows {
            let is_past = |block: &Arc<space::Block>| row.end > block.start + block.size;
            if row.start == 0 || (space.is_device(row.start) && space.block(row.start).is_some_and(is_past)) {
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(())
    })
}

fn address(kind: u32, host: u64, device: u64) -> Result<u64> {
    match kind {
        1 => Ok(host),
        2 | 4 => Ok(device),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_touch_are_one() {
        let side = Side { address: 100, pitch: 10, layer: 40, staged: None };
        assert_eq!(side.rows(10, 3, 1), [100..130]);
        assert_eq!(side.rows(4, 2, 2), [100..104, 110..114, 140..144, 150..154]);
        assert!(side.rows(0, 2, 2).is_empty());
    }

    #[test]
    fn what_is_pageable_is_read_at_once() {
        let mut bytes = [1u8, 2, 3, 4, 5, 6];
        let mut copy = Copy::row(0, bytes.as_ptr() as u64, 2);
        (copy.height, copy.from.pitch) = (2, 3);
        copy.stage();
        bytes.fill(0);
        assert_eq!(copy.from.staged.as_deref(), Some(&[1u8, 2, 4, 5][..]));
        assert_eq!(copy.from.pitch, 2);
    }
}
