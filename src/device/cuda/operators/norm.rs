//! Normalisations.
#![forbid(unsafe_code)]

use super::attributes::DescriptorBytes;
use super::axis::AxisView;
use crate::abi::weir_norm_desc;
use crate::abi::weir_norm_flags::{WEIR_NORM_SCALE, WEIR_NORM_SHIFT};
use crate::abi::weir_norm_op_value::{WEIR_NORM_BATCH, WEIR_NORM_GROUP, WEIR_NORM_RMS};
use crate::base::{Result, dtype};
use crate::device::cuda::images::{NORM_CHANNELS, NORM_ROWS};
use crate::device::cuda::plan::{Emit, Operator, Params, count, row_threads, small};
use crate::memory::View;
use std::mem::offset_of;

/// One of weir_norm_op_value.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    op: u32,
    axis: i32,
    groups: usize,
    epsilon: f32,
    scale: bool,
    shift: bool,
}

impl Norm {
    pub fn new(attributes: DescriptorBytes<'_>) -> Norm {
        let flags = attributes.u64(offset_of!(weir_norm_desc, flags));
        Norm {
            op: attributes.u32(offset_of!(weir_norm_desc, op)),
            axis: attributes.i32(offset_of!(weir_norm_desc, axis)),
            groups: attributes.u32(offset_of!(weir_norm_desc, groups)) as usize,
            epsilon: attributes.f32(offset_of!(weir_norm_desc, epsilon)),
            scale: flags & WEIR_NORM_SCALE as u64 != 0,
            shift: flags & WEIR_NORM_SHIFT as u64 != 0,
        }
    }

    fn is(&self, op: crate::abi::weir_norm_op_value) -> bool {
        self.op == op as u32
    }
}

impl Operator for Norm {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let x = inputs[0].desc();
        let elements = count(x)? as usize;
        if elements == 0 {
            return Ok(());
        }
        let columns = AxisView::new(self.axis, x)?;
        // Rows with one mean, elements with one scale, and rows until scales begin again.
        let (len, inner, cycle) = match () {
            () if self.is(WEIR_NORM_BATCH) => (columns.len * columns.inner, columns.inner, 1),
            () if self.is(WEIR_NORM_GROUP) => (columns.len / self.groups * columns.inner, columns.inner, self.groups),
            () => (columns.len * columns.inner, 1, 1),
        };
        let rows = elements / len;
        let statistics = self.is(WEIR_NORM_BATCH).then_some(2);
        let first = 1 + statistics.unwrap_or(0);
        let of_scale = inputs.get(first).map_or(dtype::F32, |affine| affine.desc().dtype);
        let mut params = Params::new();
        params.view(&inputs[0]).optional(self.scale.then(|| &inputs[first]));
        params.optional(self.shift.then(|| &inputs[first + usize::from(self.scale)]));
        params.optional(statistics.map(|_| &inputs[1])).optional(statistics.map(|_| &inputs[2])).view(&outputs[0]);
        params.word(x.dtype).word(of_scale).word(small(&[rows])?).word(small(&[len])?).word(inner as u32);
        params.word(small(&[cycle])?).flag(self.is(WEIR_NORM_RMS)).float(self.epsilon);
        if statistics.is_none() {
            return params.launch(emit, &NORM_ROWS, (rows, 1), row_threads(len));
        }
        // Rows that are long enough to fill a device are not shared, so that their channels are looked up once.
        let down = if len >= 1 << 16 { rows.min(4) } else { rows };
        params.launch(emit, &NORM_CHANNELS, (len.div_ceil(128), down), 128)
    }
}
