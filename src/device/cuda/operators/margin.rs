//! A tensor with a margin.
#![forbid(unsafe_code)]

use crate::base::desc::MAX_RANK;
use crate::base::{Result, dtype};
use crate::device::cuda::images::{PAD_1, PAD_2, PAD_4, PAD_8};
use crate::device::cuda::plan::{Emit, Operator, Params, count, small};
use crate::memory::View;
use crate::ops::pad::{self, Pad};
use crate::ops::weir_pad_mode_value::WEIR_PAD_CONSTANT;

impl Operator for Pad {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        let count = count(y)?;
        let rank = x.shape().len();
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(count).word(self.mode as u32).word(rank as u32);
        let value = if self.mode == WEIR_PAD_CONSTANT { pad::element(self.value, y)? } else { 0 };
        params.word(0).long(value as i64);
        for of in [&x.dims, &y.dims, &self.before] {
            for from_last in 0..MAX_RANK {
                let size = if from_last < rank { of[rank - 1 - from_last] } else { 0 };
                params.word(small(&[size as usize])?);
            }
        }
        let entry = match dtype::size(y.dtype)? {
            1 => &PAD_1,
            2 => &PAD_2,
            4 => &PAD_4,
            _ => &PAD_8,
        };
        params.launch_each(emit, entry, count)
    }
}
