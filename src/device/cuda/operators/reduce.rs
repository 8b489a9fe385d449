//! Reductions over any dimensions, and softmax.
#![forbid(unsafe_code)]

use super::axis::AxisView;
use crate::base::{Result, dtype};
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{Emit, Operator, Params, count, row_threads, small};
use crate::device::cuda::walk::StrideWalk;
use crate::memory::View;
use crate::ops::{Reduce, Softmax, weir_reduce_op_value};

/// Elements that are few enough for one thread, and rows that are enough for a thread each.
const FEW: usize = 32;
const MANY: usize = 1024;

/// Whether each row has a thread rather than a block: if neighbouring rows lie side by side, or are short.
fn by_columns(rows: usize, len: usize, side_by_side: bool) -> bool {
    len <= FEW || (side_by_side && rows >= MANY)
}

/// The greatest element of all but the first axes, or their average.
pub fn of_planes(op: weir_reduce_op_value, rank: usize) -> Reduce {
    let axes = std::array::from_fn(|i| 2 + i as i32);
    Reduce { op, axes, num_axes: rank - 2, keep_dims: false, long_indices: false, squares: false, eps: 0.0 }
}

impl Operator for Reduce {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        let outputs_count = count(y)?;
        count(x)?;
        let is_reduced = self.reduced(x)?;
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
        params.view(&inputs[0]).view(&outputs[0]).word(x.dtype).word(self.op as u32).flag(self.squares);
        params
            .word(outputs_count)
            .word(small(&[reduced])?)
            .flag(self.long_indices)
            .double(self.eps.into())
            .walk(&kept)
            .walk(&runs);
        let is_float = [dtype::F32, dtype::F16, dtype::BF16].contains(&x.dtype);
        let [rows, columns] = match (self.gives_places(), is_float) {
            (true, true) => [&PLACE_ROWS, &PLACE_COLUMNS],
            (true, false) => [&PLACE_WHOLE_ROWS, &PLACE_WHOLE_COLUMNS],
            (false, true) => [&REDUCE_ROWS, &REDUCE_COLUMNS],
            (false, false) => [&REDUCE_WHOLE_ROWS, &REDUCE_WHOLE_COLUMNS],
        };
        if by_columns(outputs_count as usize, reduced, side_by_side == Some(true)) {
            return params.launch_each(emit, columns, outputs_count);
        }
        params.launch(emit, rows, (outputs_count as usize, 1), row_threads(reduced))
    }
}

impl Operator for Softmax {
    fn in_place(&self) -> bool {
        true
    }

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
