//! Reductions over any dimensions, and softmax.
#![forbid(unsafe_code)]

use super::attributes::DescriptorBytes;
use super::axis::{AxisView, place};
use crate::abi::weir_reduce_op_value::{WEIR_REDUCE_ARGMAX, WEIR_REDUCE_ARGMIN};
use crate::abi::{weir_argmax_desc, weir_reduce_desc, weir_softmax_desc};
use crate::base::Result;
use crate::base::desc::MAX_RANK;
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{Emit, Operator, Params, count, row_threads, small};
use crate::device::cuda::walk::StrideWalk;
use crate::memory::View;
use std::mem::offset_of;

/// Elements that are few enough for one thread, and rows that are enough for a thread each.
const FEW: usize = 32;
const MANY: usize = 1024;

/// Whether each row has a thread rather than a block: if neighbouring rows lie side by side, or are short.
fn by_columns(rows: usize, len: usize, side_by_side: bool) -> bool {
    len <= FEW || (side_by_side && rows >= MANY)
}

/// One of weir_reduce_op_value, over some axes; without any, over all.
#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    op: u32,
    axes: [i32; MAX_RANK],
    num_axes: usize,
    squares: bool,
    eps: f32,
}

impl Reduce {
    pub fn new(attributes: DescriptorBytes<'_>) -> Reduce {
        Reduce {
            op: attributes.u32(offset_of!(weir_reduce_desc, op)),
            axes: attributes.i32s(offset_of!(weir_reduce_desc, axes)),
            num_axes: attributes.u32(offset_of!(weir_reduce_desc, num_axes)) as usize,
            squares: attributes.f32(offset_of!(weir_reduce_desc, p)) == 2.0,
            eps: attributes.f32(offset_of!(weir_reduce_desc, eps)),
        }
    }

    pub fn argmax(attributes: DescriptorBytes<'_>) -> Reduce {
        let mut axes = [0; MAX_RANK];
        axes[0] = attributes.i32(offset_of!(weir_argmax_desc, axis));
        Reduce { op: WEIR_REDUCE_ARGMAX as u32, axes, num_axes: 1, squares: false, eps: 0.0 }
    }

    /// The greatest element of all but the first axes, or their average.
    pub fn of_planes(op: u32, rank: usize) -> Reduce {
        let axes = std::array::from_fn(|i| 2 + i as i32);
        Reduce { op, axes, num_axes: rank - 2, squares: false, eps: 0.0 }
    }

    fn gives_places(&self) -> bool {
        [WEIR_REDUCE_ARGMAX as u32, WEIR_REDUCE_ARGMIN as u32].contains(&self.op)
    }
}

impl Operator for Reduce {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        let outputs_count = count(y)?;
        count(x)?;
        let mut is_reduced = [self.num_axes == 0; MAX_RANK];
        for &axis in &self.axes[..self.num_axes] {
            is_reduced[place(axis, x)?] = true;
        }
        let (mut kept, mut runs): (StrideWalk<1>, StrideWalk<1>) = (StrideWalk::new(), StrideWalk::new());
        let (mut stride, mut reduced, mut side_by_side) = (1, 1, None);
        for (&size, is_reduced) in x.shape().iter().zip(is_reduced).rev() {
            if is_reduced {
                runs.push(size as usize, [stride]);
                reduced *= size as usize;
            } else {
                kept.push(size as usize, [stride]);
            }
            if size > 1 {
                side_by_side.get_or_insert(!is_reduced);
            }
            stride *= size;
        }
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(x.dtype).word(self.op).flag(self.squares);
        params.word(outputs_count).word(small(&[reduced])?).word(0).double(self.eps.into()).walk(&kept).walk(&runs);
        let [rows, columns] =
            if self.gives_places() { [&PLACE_ROWS, &PLACE_COLUMNS] } else { [&REDUCE_ROWS, &REDUCE_COLUMNS] };
        if by_columns(outputs_count as usize, reduced, side_by_side == Some(true)) {
            return params.launch_each(emit, columns, outputs_count);
        }
        params.launch(emit, rows, (outputs_count as usize, 1), row_threads(reduced))
    }
}

/// Softmax along an axis, or its logarithm.
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    axis: i32,
    log: bool,
}

impl Softmax {
    pub fn new(attributes: DescriptorBytes<'_>) -> Softmax {
        Softmax {
            axis: attributes.i32(offset_of!(weir_softmax_desc, axis)),
            log: attributes.u64(offset_of!(weir_softmax_desc, flags)) != 0,
        }
    }
}

impl Operator for Softmax {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let x = inputs[0].desc();
        if count(x)? == 0 {
            return Ok(());
        }
        let AxisView { outer, len, inner } = AxisView::new(self.axis, x)?;
        let rows = small(&[outer, inner])?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(x.dtype).flag(self.log);
        params.word(outer as u32).word(len as u32).word(inner as u32).word(0);
        if by_columns(rows as usize, len, inner > 1) {
            return params.launch_each(emit, &SOFTMAX_COLUMNS, rows);
        }
        params.launch(emit, &SOFTMAX_ROWS, (rows as usize, 1), row_threads(len))
    }
}
