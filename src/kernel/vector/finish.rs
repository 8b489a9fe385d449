//! Epilogue of a matrix product: biases, addition of another matrix, an activation. Micro-kernels apply it before they
//! store a tile, but for activations that take more than an instruction: those run right after the rows are written,
//! while they are in the L1 cache.
#![forbid(unsafe_code)]

use super::activation::{self, Activation};
use super::isa::Isa;
use super::site::Matrix;
use super::step::TileEpilogue;
use std::ptr::null;

/// activation(x + bias of the column + bias of the row + addend), added in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductEpilogue<'a> {
    /// One bias per column.
    pub columns: Option<&'a [f32]>,
    /// One bias per row.
    pub rows: Option<&'a [f32]>,
    /// A matrix of the result's size.
    pub addend: Option<Matrix<'a, f32>>,
    pub activation: Activation,
}

impl<'a> ProductEpilogue<'a> {
    pub fn is_nothing(&self) -> bool {
        self.columns.is_none() && self.rows.is_none() && self.addend.is_none() && self.activation == Activation::NONE
    }

    /// Whether its sizes match the result.
    pub fn fits(&self, m: usize, n: usize) -> bool {
        self.columns.is_none_or(|bias| bias.len() == n)
            && self.rows.is_none_or(|bias| bias.len() == m)
            && self.addend.is_none_or(|addend| addend.holds(m, n, false))
    }

    /// The epilogue of the transposed result, where that is a row: for a dense column, with the same order of
    /// additions.
    pub fn turned(&self) -> Option<ProductEpilogue<'a>> {
        let ProductEpilogue { columns, rows, addend, activation } = *self;
        let fits = (columns.is_none() || rows.is_none()) && addend.is_none_or(|addend| addend.stride() == 1);
        let addend = addend.filter(|_| fits).map(|addend| addend.as_row());
        fits.then_some(ProductEpilogue { columns: rows, rows: columns, addend, activation })
    }

    /// The part of it that a micro-kernel applies to a tile that begins at this row and column.
    pub fn of_tile(&self, row: usize, column: usize) -> TileEpilogue {
        let begin = |bias: Option<&[f32]>, first: usize| bias.map_or(null(), |bias| bias[first..].as_ptr());
        let addend = self.addend.map(|addend| (addend.row(row)[column..].as_ptr(), addend.stride()));
        let (addend, addend_stride) = addend.unwrap_or((null(), 0));
        let relu = self.activation == Activation::RELU;
        TileEpilogue { columns: begin(self.columns, column), rows: begin(self.rows, row), addend, addend_stride, relu }
    }

    /// Whether `of_tile` is not all of it, and `activate` is to follow.
    pub fn has_more(&self) -> bool {
        ![Activation::NONE, Activation::RELU].contains(&self.activation)
    }

    pub fn activate(&self, isa: Isa, part: &mut [f32]) {
        activation::apply(self.activation, isa, part);
    }

    /// Applies it to the elements of row `row` from column `first` on.
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
        self.activate(isa, part);
    }
}
