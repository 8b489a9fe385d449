//! Sizes of a convolution, its operands, and the choice of algorithm.
#![forbid(unsafe_code)]

use super::filters::PackedFilters;
use crate::kernel::vector::activation::Activation;
use crate::kernel::vector::finish::ProductEpilogue;
use crate::kernel::vector::site::Matrix;
use crate::kernel::vector::window::Axis;
use crate::kernel::vector::{dots, gemm};

/// With at most this many windows a row of each is less work than panels of them.
const FEW_WINDOWS: usize = 12;
/// Maximum scratch memory for patches in rows, in bytes.
const ROOM: usize = 256 << 10;
/// With fewer windows of one element, registers along them are not full.
const MANY_WINDOWS: usize = 128;
/// With fewer windows along an axis, channels, filters, or pairs of both, transformations cost more than they save.
const MANY_TILES: usize = 7;
const LEAST_CHANNELS: usize = 16;
const LEAST_FILTERS: usize = 24;
const MANY_PAIRS: usize = 1024;
/// With fewer filters in a group, registers lie along the windows, unless these are single elements of many channels.
const FEW_FILTERS: usize = 8;
const MANY_CHANNELS: usize = 8;
/// Shorter sums are worth a tile whose registers lie along the windows, as no sum is turned, if most of each register
/// of a row this long is used.
const SHORT_SUM: usize = 256;
const LONG_ROW: usize = 48;
/// Few windows of at least this length still become rows.
const LONG: usize = 64;

/// Sizes of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct ConvShape {
    pub images: usize,
    pub groups: usize,
    /// Input and output channels of a group.
    pub channels: usize,
    pub filters: usize,
    pub rows: Axis,
    pub columns: Axis,
    pub activation: Activation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvAlgorithm {
    Product,
    Rows,
    Few,
    Direct,
    Shifted,
    Winograd,
}

/// The operands, dense.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    pub x: &'a [f32],
    pub weights: &'a [f32],
    /// The same weights, packed for the direct algorithm.
    pub packed: Option<&'a PackedFilters>,
    /// One number per output channel.
    pub bias: Option<&'a [f32]>,
    /// One number per element of the output, added after the bias.
    pub addend: Option<&'a [f32]>,
}

impl ConvShape {
    pub fn way(&self) -> ConvAlgorithm {
        let few = self.windows() <= FEW_WINDOWS && self.windows() * self.line() * size_of::<f32>() <= ROOM;
        if few && (self.filters >= FEW_FILTERS || self.depth() >= LONG) {
            ConvAlgorithm::Rows
        } else if self.filters < FEW_FILTERS && !(self.is_plain() && self.channels >= MANY_CHANNELS) {
            ConvAlgorithm::Few
        } else if self.is_plain() && (self.windows() >= MANY_WINDOWS || self.filters < FEW_FILTERS) {
            ConvAlgorithm::Product
        } else if self.suits_winograd() {
            ConvAlgorithm::Winograd
        } else if self.depth() <= SHORT_SUM && self.columns.output >= LONG_ROW {
            ConvAlgorithm::Shifted
        } else {
            ConvAlgorithm::Direct
        }
    }

    fn suits_winograd(&self) -> bool {
        let suits = |axis: &Axis| (axis.taps, axis.stride, axis.dilation) == (3, 1, 1) && axis.output >= MANY_TILES;
        let many = self.channels >= LEAST_CHANNELS && self.filters >= LEAST_FILTERS;
        suits(&self.rows) && suits(&self.columns) && many && self.channels * self.filters >= MANY_PAIRS
    }

    /// Whether each window is one element.
    pub fn is_plain(&self) -> bool {
        self.rows.is_plain() && self.columns.is_plain()
    }

    /// Whether each window is one element, perhaps of every second row and column.
    pub fn is_of_points(&self) -> bool {
        let points =
            |axis: &Axis| axis.taps == 1 && axis.before == 0 && axis.output * axis.stride < axis.input + axis.stride;
        points(&self.rows) && points(&self.columns)
    }

    /// The axes of the windows; if each is one element the image is a single row.
    pub fn axes(&self) -> (Axis, Axis) {
        match self.is_plain() {
            true => (Axis::ONE, Axis { input: self.plane(), output: self.windows(), ..self.columns }),
            false => (self.rows, self.columns),
        }
    }

    /// Windows of an image.
    pub fn windows(&self) -> usize {
        self.rows.output * self.columns.output
    }

    /// K: taps of a window, of all channels of a group.
    pub fn depth(&self) -> usize {
        self.channels * self.rows.taps * self.columns.taps
    }

    /// Distance between patches that are rows: each begins at a register boundary.
    pub fn line(&self) -> usize {
        self.depth().next_multiple_of(16)
    }

    pub fn plane(&self) -> usize {
        self.rows.input * self.columns.input
    }

    /// Elements of the input, the weights and the output.
    pub fn sizes(&self) -> [usize; 3] {
        let products = self.images * self.groups;
        [
            products * self.channels * self.plane(),
            self.groups * self.filters * self.depth(),
            products * self.filters * self.windows(),
        ]
    }

    pub fn shape(&self) -> gemm::GemmShape {
        gemm::GemmShape { m: self.filters, n: self.windows(), k: self.depth(), transpose_a: false, transpose_b: false }
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self) -> u64 {
        let product = match self.way() {
            ConvAlgorithm::Rows => {
                let copied = (self.windows() * self.depth()) as f64;
                (dots::cost_ns(self.windows(), self.filters, self.depth()) + 0.5 * copied) as u64
            }
            ConvAlgorithm::Winograd => self.shape().cost_ns() * 5 / 8,
            _ => self.shape().cost_ns(),
        };
        (self.images * self.groups) as u64 * product
    }
}

/// The image of product `number`, its weights, its bias and its addend: of one image and one group.
pub fn operands<'a>(conv: &ConvShape, data: &Data<'a>, number: usize) -> Data<'a> {
    let image = conv.channels * conv.plane();
    let (group, filters, sums) = (number % conv.groups, conv.filters, conv.filters * conv.windows());
    Data {
        x: &data.x[number * image..][..image],
        weights: &data.weights[group * filters * conv.depth()..][..filters * conv.depth()],
        packed: data.packed,
        bias: data.bias.map(|bias| &bias[group * filters..][..filters]),
        addend: data.addend.map(|addend| &addend[number * sums..][..sums]),
    }
}

/// The end of a product whose rows are the filters, of one image and one group.
pub fn epilogue<'a>(conv: &ConvShape, of: &Data<'a>) -> ProductEpilogue<'a> {
    ProductEpilogue {
        columns: None,
        rows: of.bias,
        addend: of.addend.map(|addend| Matrix::dense(addend, conv.filters, conv.windows())),
        activation: conv.activation,
    }
}
