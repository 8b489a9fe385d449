//! Rows of a table by their numbers.
#![forbid(unsafe_code)]

use super::axis::place;
use crate::base::{Result, dtype};
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{Check, Emit, Operator, Params, count, small};
use crate::memory::View;
use crate::ops::Gather;

/// As on the CPU, except that an index out of range gives a row of zeros; the failure is reported later.
impl Operator for Gather {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let ([table, indices], y) = ([&inputs[0], &inputs[1]], &outputs[0]);
        let axis = place(self.axis, table.desc())?;
        let (elements, num_indices) = (count(y.desc())? as usize, count(indices.desc())?);
        count(table.desc())?;
        if num_indices == 0 {
            return Ok(());
        }
        let shape = table.desc().shape();
        let bytes = dtype::size(table.desc().dtype)?;
        let row = shape[axis + 1..].iter().product::<i64>() as usize * bytes;
        let fits = |unit: &usize| [row, table.data().addr(), y.data().addr()].iter().all(|at| at.is_multiple_of(*unit));
        let unit = [16, 8, 4, 2].into_iter().filter(|&unit| unit > bytes).find(fits).unwrap_or(bytes);
        let entry = match unit {
            1 => &GATHER_1,
            2 => &GATHER_2,
            4 => &GATHER_4,
            8 => &GATHER_8,
            _ => &GATHER_16,
        };
        let units = small(&[elements * bytes / unit])?;
        let mut params = Params::new();
        // The launcher fills in the first three.
        params.address(0).long(0).word(0).word(0);
        params.view(table).view(indices).view(y);
        params.word(units).word(small(&[row / unit])?).word(num_indices).word(small(&[shape[axis] as usize])?);
        params.flag(indices.desc().dtype == dtype::S64).flag(self.from_end);
        let each = if units == 0 { num_indices } else { units };
        params.launch_checked(emit, entry, each, Check { axis, least: self.least(shape[axis]), table: table.desc() })
    }
}
