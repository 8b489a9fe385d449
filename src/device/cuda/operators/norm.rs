//! Normalisations.
#![forbid(unsafe_code)]

use super::axis::AxisView;
use crate::base::{Result, dtype};
use crate::device::cuda::images::{NORM_CHANNELS, NORM_ROWS};
use crate::device::cuda::plan::{Emit, Operator, Params, count, row_threads, small};
use crate::memory::View;
use crate::ops::Norm;
use crate::ops::weir_norm_op_value::{WEIR_NORM_BATCH, WEIR_NORM_GROUP, WEIR_NORM_LAYER, WEIR_NORM_RMS};

impl Operator for Norm {
    fn in_place(&self) -> bool {
        true
    }

    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let x = inputs[0].desc();
        let elements = count(x)? as usize;
        if elements == 0 {
            return Ok(());
        }
        let columns = AxisView::new(self.axis, x)?;
        // Rows with one mean, elements with one scale, and rows until scales begin again.
        let (len, inner, cycle) = match self.op {
            WEIR_NORM_BATCH => (columns.len * columns.inner, columns.inner, 1),
            WEIR_NORM_GROUP => (columns.len / self.groups * columns.inner, columns.inner, self.groups),
            WEIR_NORM_LAYER | WEIR_NORM_RMS => (columns.len * columns.inner, 1, 1),
        };
        let rows = elements / len;
        let first = self.first_affine();
        let of_scale = inputs.get(first).map_or(dtype::F32, |affine| affine.desc().dtype);
        let mut params = Params::new();
        params.view(&inputs[0]).optional(self.scale.then(|| &inputs[first]));
        params.optional(self.shift.then(|| &inputs[first + usize::from(self.scale)]));
        let statistic = |index: usize| self.is_batch().then(|| &inputs[index]);
        params.optional(statistic(1)).optional(statistic(2)).view(&outputs[0]);
        params.word(x.dtype).word(of_scale).word(small(&[rows])?).word(small(&[len])?).word(inner as u32);
        params.word(small(&[cycle])?).flag(self.op == WEIR_NORM_RMS).float(self.epsilon);
        if !self.is_batch() {
            return params.launch(emit, &NORM_ROWS, (rows, 1), row_threads(len));
        }
        // Rows that are long enough to fill a device are not shared, so that their channels are looked up once.
        let down = if len >= 1 << 16 { rows.min(4) } else { rows };
        params.launch(emit, &NORM_CHANNELS, (len.div_ceil(128), down), 128)
    }
}
