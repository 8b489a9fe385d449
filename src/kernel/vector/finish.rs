//! What follows a product: biases, a sum with another matrix, an activation. It is done where the product's rows were
//! just written, while they are in the first-level cache.
#![forbid(unsafe_code)]

use super::activation::Activation;
use super::isa::Isa;
use super::site::Matrix;

/// activation(x + bias of the column + bias of the row + addend), added in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finish<'a> {
    /// One number per column.
    pub columns: Option<&'a [f32]>,
    /// One number per row.
    pub rows: Option<&'a [f32]>,
    /// As large as the result.
    pub addend: Option<Matrix<'a, f32>>,
    pub activation: Activation,
}

impl<'a> Finish<'a> {
    pub fn is_nothing(&self) -> bool {
        self.columns.is_none() && self.rows.is_none() && self.addend.is_none() && self.activation == Activation::None
    }

    /// Whether it is for a result of this size.
    pub fn fits(&self, m: usize, n: usize) -> bool {
        self.columns.is_none_or(|bias| bias.len() == n)
            && self.rows.is_none_or(|bias| bias.len() == m)
            && self.addend.is_none_or(|addend| addend.holds(m, n, false))
    }

    /// The same for the transposed result, where that is a row: of a column without gaps, and with the same order of
    /// additions.
    pub fn turned(&self) -> Option<Finish<'a>> {
        let Finish { columns, rows, addend, activation } = *self;
        let fits = (columns.is_none() || rows.is_none()) && addend.is_none_or(|addend| addend.stride() == 1);
        let addend = addend.filter(|_| fits).map(|addend| addend.as_row());
        fits.then_some(Finish { columns: rows, rows: columns, addend, activation })
    }

    /// On the elements of row `row` from column `first` on.
    pub fn part_of_row(&self, isa: Isa, row: usize, first: usize, part: &mut [f32]) {
        let add = |part: &mut [f32], more: &[f32]| part.iter_mut().zip(more).for_each(|(x, more)| *x += more);
        if let Some(bias) = self.columns {
            add(part, &bias[first..first + part.len()]);
        }
        if let Some(bias) = self.rows {
            let bias = bias[row];
            part.iter_mut().for_each(|x| *x += bias);
        }
        if let Some(addend) = self.addend {
            add(part, &addend.row(row)[first..first + part.len()]);
        }
        self.activation.apply(isa, part);
    }
}
