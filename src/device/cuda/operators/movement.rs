//! Moving elements.
#![forbid(unsafe_code)]

use super::axis::place;
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result, dtype};
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{Emit, Operator, Params, count, small};
use crate::device::cuda::walk::StrideWalk;
use crate::memory::View;
use crate::ops::{Concat, Reshape, Slice, Transpose};

/// Least sizes of both dimensions that squares are worth it for.
const WORTH_SQUARES: usize = 8;

/// A copy of elements of so many bytes: x and y are addresses, the walk goes over both.
struct ElementCopy {
    x: usize,
    y: usize,
    bytes: usize,
    walk: StrideWalk<2>,
}

impl ElementCopy {
    /// Units as large as rows and addresses allow.
    fn units(&self) -> (StrideWalk<2>, usize) {
        let fits = |unit: usize| {
            let aligned = self.x.is_multiple_of(unit) && self.y.is_multiple_of(unit);
            (aligned && unit > self.bytes)
                .then(|| self.walk.in_units(unit / self.bytes))
                .flatten()
                .map(|walk| (walk, unit))
        };
        [16, 8, 4, 2].into_iter().find_map(fits).unwrap_or((self.walk, self.bytes))
    }

    fn launch(&self, emit: &mut Emit<'_>) -> Result<()> {
        if let Some(across) = self.turned() {
            return self.squares(across, emit);
        }
        let (walk, unit) = self.units();
        let entry = match unit {
            1 => &COPY_1,
            2 => &COPY_2,
            4 => &COPY_4,
            8 => &COPY_8,
            _ => &COPY_16,
        };
        let count = small(&[walk.places()])?;
        let mut params = Params::new();
        params.address(self.x).address(self.y).word(count).word(0).walk(&walk);
        params.launch_each(emit, entry, count)
    }

    /// The dimension whose neighbours are neighbours in x, where those of the last one are neighbours in y but not in
    /// x.
    fn turned(&self) -> Option<usize> {
        let [x, y] = self.walk.strides();
        let rank = self.walk.rank();
        let worth = |dim: usize| self.walk.sizes()[dim] >= WORTH_SQUARES;
        if rank < 2 || y[0] != 1 || x[0] == 1 || !worth(0) {
            return None;
        }
        (1..rank).find(|&dim| x[dim] == 1 && worth(dim))
    }

    fn squares(&self, across: usize, emit: &mut Emit<'_>) -> Result<()> {
        let entry = match self.bytes {
            1 => &TURN_1,
            2 => &TURN_2,
            4 => &TURN_4,
            _ => &TURN_8,
        };
        let (sizes, [x, y]) = (self.walk.sizes(), self.walk.strides());
        let batch = self.walk.without(across).without(0);
        let places = small(&[batch.places()])?;
        let mut params = Params::new();
        params.address(self.x).address(self.y).word(small(&[sizes[0]])?).word(small(&[sizes[across]])?);
        params.long(x[0]).long(y[across]).word(places).word(0).walk(&batch);
        params.launch(emit, entry, (sizes[0].div_ceil(32) * sizes[across].div_ceil(32), places as usize), 256)
    }
}

/// The same bytes elsewhere; nothing if source and target are equal.
pub fn copy_bytes(x: &View, y: &View, emit: &mut Emit<'_>) -> Result<()> {
    let (elements, bytes) = (count(y.desc())? as usize, dtype::size(y.desc().dtype)?);
    if elements == 0 || x.data() == y.data() {
        return Ok(());
    }
    let mut walk = StrideWalk::new();
    walk.push(elements, [1, 1]);
    ElementCopy { x: x.data().addr(), y: y.data().addr(), bytes, walk }.launch(emit)
}

/// Elements from one to the next along each dimension.
fn strides(desc: &Desc) -> [i64; MAX_RANK] {
    let mut strides = [1; MAX_RANK];
    for i in (1..desc.shape().len()).rev() {
        strides[i - 1] = strides[i] * desc.shape()[i];
    }
    strides
}

/// y, element by element, from x at `first` and then by steps along y's dimensions.
fn moved(x: &View, first: i64, steps: &[i64; MAX_RANK], y: &View, emit: &mut Emit<'_>) -> Result<()> {
    if count(y.desc())? == 0 {
        return Ok(());
    }
    let (bytes, of_y) = (dtype::size(y.desc().dtype)?, strides(y.desc()));
    let mut walk = StrideWalk::new();
    for (i, &size) in y.desc().shape().iter().enumerate().rev() {
        walk.push(size as usize, [steps[i], of_y[i]]);
    }
    let from = x.data().addr() + first as usize * bytes;
    ElementCopy { x: from, y: y.data().addr(), bytes, walk }.launch(emit)
}

impl Operator for Transpose {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let of_x = strides(inputs[0].desc());
        let rank = inputs[0].desc().shape().len();
        let mut steps = [0; MAX_RANK];
        for (step, axis) in steps[..rank].iter_mut().zip(self.order(rank)) {
            *step = of_x[axis];
        }
        moved(&inputs[0], 0, &steps, &outputs[0], emit)
    }
}

impl Operator for Concat {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let y = outputs[0].desc();
        let axis = place(self.axis, y)?;
        if count(y)? == 0 {
            return Ok(());
        }
        let bytes = dtype::size(y.dtype)?;
        let tail = |desc: &Desc| desc.shape()[axis..].iter().product::<i64>();
        let outer = y.shape()[..axis].iter().product::<i64>() as usize;
        let mut at = outputs[0].data().addr();
        for input in inputs {
            let len = tail(input.desc());
            if len > 0 {
                let mut walk = StrideWalk::new();
                walk.push(len as usize, [1, 1]);
                walk.push(outer, [len, tail(y)]);
                ElementCopy { x: input.data().addr(), y: at, bytes, walk }.launch(emit)?;
            }
            at += len as usize * bytes;
        }
        Ok(())
    }
}

impl Operator for Slice {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        if count(y)? == 0 {
            return Ok(());
        }
        let of_x = strides(x);
        let (mut first, mut steps) = (0, [0; MAX_RANK]);
        for (i, (&size, &kept)) in x.shape().iter().zip(y.shape()).enumerate() {
            // If elements are left, they begin at one that is inside.
            let (begin, step, _) = self.range(i, size);
            first += begin * of_x[i];
            // The step of a single element may be any number, however large.
            steps[i] = if kept > 1 { step * of_x[i] } else { 0 };
        }
        moved(&inputs[0], first, &steps, &outputs[0], emit)
    }
}

impl Operator for Reshape {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        copy_bytes(&inputs[0], &outputs[0], emit)
    }
}
