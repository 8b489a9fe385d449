//! Scatter: a copy of a tensor, and updates of some of its elements.
//!
//! A claim has a piece of the output. It copies that, and goes through all updates that may belong to it, in their
//! order: so the order is the same however the output is divided.
#![forbid(unsafe_code)]

use super::gather_nd::copy;
use super::places::{INDEX_NS, Indices, Walk, strides};
use super::{GRAIN, NS_PER_BYTE, element, traffic_ns};
use crate::base::{Desc, Result, dtype};
use crate::kernel::builtin::{Builtin, BuiltinOperation, elements};
use crate::kernel::vector::convert::Stored;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, Element, F16, Shards};
use crate::ops::gather_nd::place_depth;
use crate::ops::{Scatter, signature};
use crate::ops::{weir_scatter_mode_value as Mode, weir_scatter_reduction_value as Reduction};
use crate::threadpool::Span;

/// Most pieces of an output: each goes through all updates of its blocks.
const PIECES: usize = 16;

/// An element type that has reductions.
trait ReducedElement: Element {
    fn reduced(self, by: Reduction, with: Self) -> Self;
}

/// The lesser one, or the greater one; a NaN if one is NaN.
fn chosen<T: PartialOrd>(by: Reduction, a: T, b: T) -> T {
    #[expect(clippy::eq_op, reason = "only a NaN differs from itself")]
    let stays = a != a || if by == Reduction::WEIR_SCATTER_MIN { a < b } else { a > b };
    if stays { a } else { b }
}

impl ReducedElement for f32 {
    #[inline(always)]
    fn reduced(self, by: Reduction, with: f32) -> f32 {
        match by {
            Reduction::WEIR_SCATTER_NONE => with,
            Reduction::WEIR_SCATTER_ADD => self + with,
            Reduction::WEIR_SCATTER_MUL => self * with,
            _ => chosen(by, self, with),
        }
    }
}

macro_rules! reduced {
    ($($half:ident)*; $($whole:ident)*) => {
        $(impl ReducedElement for $half {
            #[inline(always)]
            fn reduced(self, by: Reduction, with: $half) -> $half {
                $half::narrowed(self.widened().reduced(by, with.widened()))
            }
        })*
        $(impl ReducedElement for $whole {
            #[inline(always)]
            fn reduced(self, by: Reduction, with: $whole) -> $whole {
                match by {
                    Reduction::WEIR_SCATTER_NONE => with,
                    Reduction::WEIR_SCATTER_ADD => self.wrapping_add(with),
                    Reduction::WEIR_SCATTER_MUL => self.wrapping_mul(with),
                    _ => chosen(by, self, with),
                }
            }
        })*
    };
}

reduced! { F16 Bf16; i64 i32 i8 u8 }

/// The targets of updates, in units of the output: an element, or a block.
struct Targets<'a> {
    x: &'a Desc,
    shape: &'a Desc,
    indices: Indices<'a>,
    /// Elements of a unit.
    unit: usize,
    /// Units of the blocks that updates never leave.
    block: usize,
    kind: ScatterKind,
}

enum ScatterKind {
    /// Along an axis.
    Elements(usize),
    /// By so many indices.
    Places(usize),
}

impl Targets<'_> {
    /// Calls `body` with the number of each update of a block of the output, and the unit that it goes to, in order.
    #[inline(always)]
    fn each(&self, block: usize, mut body: impl FnMut(usize, usize)) {
        let (mut steps, sizes) = (strides(self.x), self.x.shape());
        match self.kind {
            ScatterKind::Elements(axis) => {
                let (outer, shape) = (&self.shape.shape()[..axis], &self.shape.shape()[axis..]);
                let count = shape.iter().product::<i64>() as usize;
                // The block's number among those of the updates.
                let (blocks, mut first) = (Walk::new(&sizes[..axis], &steps, block), 0);
                for (i, &size) in outer.iter().enumerate() {
                    if blocks.at(i) >= size as usize {
                        return;
                    }
                    first = first * size as usize + blocks.at(i);
                }
                if count == 0 {
                    return;
                }
                let along = std::mem::take(&mut steps[axis]);
                let mut walk = Walk::new(shape, &steps[axis..], 0);
                for number in first * count..(first + 1) * count {
                    let place = self.indices.place(number, sizes[axis] as usize);
                    body(number, block * self.block + walk.offset + place * along);
                    walk.step();
                }
            }
            ScatterKind::Places(depth) => {
                let count = self.shape.shape().iter().rev().skip(1).product::<i64>() as usize;
                for number in 0..count {
                    let place = (0..depth).fold(0, |place, i| {
                        place * sizes[i] as usize + self.indices.place(number * depth + i, sizes[i] as usize)
                    });
                    body(number, place);
                }
            }
        }
    }

    /// `per` are elements of T in a unit.
    fn apply<T: Copy + Send + Sync>(
        &self,
        per: usize,
        (x, updates, output): (&[T], &[T], Shards<'_, T>),
        context: &KernelContext<'_>,
        update: impl Fn(&[T], &mut [T]) + Sync,
    ) -> Result<()> {
        let items = output.len() / per;
        let bytes = per * size_of::<T>();
        let number = elements(self.shape) as f32 * (INDEX_NS + bytes as f32 * NS_PER_BYTE);
        let cost_ns = bytes as f32 * NS_PER_BYTE + number / items as f32;
        let grain = items.div_ceil(PIECES).max(GRAIN / bytes);
        let span = Span { items, cost_ns, grain, coarse: true, ..Span::default() };
        context.parallel_into(&span, output, |out, claim| {
            let (begin, end) = (claim.begin(), claim.end());
            if begin == end {
                return Ok(());
            }
            out.copy_from_slice(&x[begin * per..end * per]);
            for block in begin / self.block..=(end - 1) / self.block {
                self.each(block, |number, to| {
                    if (begin..end).contains(&to) {
                        update(&updates[number * per..][..per], &mut out[(to - begin) * per..][..per]);
                    }
                });
            }
            Ok(())
        })
    }
}

impl Builtin<Scatter> {
    fn reduce<T: ReducedElement>(
        &self,
        to: &Targets<'_>,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let (x, updates) = (context.input(0).read::<T>(), context.input(2).read::<T>());
        let output = outputs.only().shards::<T>(to.unit);
        to.apply(to.unit, (x, updates, output), context, |from, y| {
            y.iter_mut().zip(from).for_each(|(y, &x)| *y = y.reduced(self.reduction, x));
        })
    }
}

impl BuiltinOperation for Builtin<Scatter> {
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(output) + traffic_ns(&inputs[2]) + (elements(&inputs[1]) as f32 * INDEX_NS) as u64
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, shape) = (context.inputs()[0].desc(), context.inputs()[1].desc());
        let indices = Indices::of(context.input(1))?;
        let all = elements(x);
        let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        let (kind, unit) = match self.mode {
            Mode::WEIR_SCATTER_ELEMENTS => {
                let axis = signature::axis(self.axis, x)?;
                indices.check(x, axis, 1, self.from_end)?;
                (ScatterKind::Elements(axis), 1)
            }
            Mode::WEIR_SCATTER_ND => {
                let depth = place_depth(x, 0, 1, shape)?;
                indices.check(x, 0, depth, self.from_end)?;
                (ScatterKind::Places(depth), product(&x.shape()[depth..]))
            }
        };
        if all == 0 {
            return Ok(());
        }
        let block = match kind {
            ScatterKind::Elements(axis) => product(&x.shape()[axis..]),
            ScatterKind::Places(_) => all / unit,
        };
        let to = Targets { x, shape, indices, unit, block, kind };
        if self.reduction == Reduction::WEIR_SCATTER_NONE {
            let (unit, updates) = (unit * element(x), context.input(2).read_bytes());
            let tensors = (context.input(0).read_bytes(), updates, outputs.only().byte_shards(unit));
            return to.apply(unit, tensors, context, copy);
        }
        match x.dtype {
            dtype::F32 => self.reduce::<f32>(&to, context, outputs),
            dtype::F16 => self.reduce::<F16>(&to, context, outputs),
            dtype::BF16 => self.reduce::<Bf16>(&to, context, outputs),
            dtype::S64 => self.reduce::<i64>(&to, context, outputs),
            dtype::S32 => self.reduce::<i32>(&to, context, outputs),
            dtype::S8 => self.reduce::<i8>(&to, context, outputs),
            _ => self.reduce::<u8>(&to, context, outputs),
        }
    }
}
