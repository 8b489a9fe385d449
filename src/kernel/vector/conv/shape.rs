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
    /// Planes under a window, and output channels of a group. A channel of the input is one plane, or of a volume one
    /// for each tap in depth.
    pub channels: usize,
    pub filters: usize,
    /// The depth of volumes; `Axis::ONE` if windows of one element reach over rows and columns (`axis::folded`).
    pub slices: Axis,
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

    /// Windows of an image, or of a slice of a volume.
    pub fn windows(&self) -> usize {
        // Open sizes are stood for by enormous ones.
        self.rows.output.saturating_mul(self.columns.output)
    }

    /// Slices of the output of all images and groups: each is computed by itself, as an image is.
    pub fn regions(&self) -> usize {
        self.images * self.groups * self.slices.output
    }

    /// Elements from one output channel to the next.
    pub fn channel_step(&self) -> usize {
        self.slices.output * self.windows()
    }

    /// Elements of the input of an image and a group.
    fn volume(&self) -> usize {
        self.channels / self.slices.taps * self.slices.input * self.plane()
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
        self.rows.input.saturating_mul(self.columns.input)
    }

    /// Elements of the input, the weights and the output.
    pub fn sizes(&self) -> [usize; 3] {
        let products = self.images * self.groups;
        [
            products * self.volume(),
            self.groups * self.filters * self.depth(),
            products * self.filters * self.channel_step(),
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
        self.regions() as u64 * product
    }
}

/// The operands of one slice of the output, of one image and one group.
#[derive(Clone, Copy, Debug)]
pub struct ConvRegion<'a> {
    /// The image or volume, all channels of the group.
    pub x: &'a [f32],
    pub slice: usize,
    pub weights: &'a [f32],
    /// The number of the group.
    pub group: usize,
    pub bias: Option<&'a [f32]>,
    /// The addend from the slice in the first channel on.
    pub addend: Option<&'a [f32]>,
    /// The first element of the output.
    pub out: usize,
}

impl<'a> ConvRegion<'a> {
    pub fn new(conv: &ConvShape, data: &Data<'a>, number: usize) -> ConvRegion<'a> {
        // A division takes as long as a small plane.
        let (volume, slice) = match conv.slices.output {
            1 => (number, 0),
            slices => (number / slices, number % slices),
        };
        let (group, filters, size) = (volume % conv.groups, conv.filters, conv.volume());
        let out = volume * filters * conv.channel_step() + slice * conv.windows();
        let len = filters.saturating_sub(1) * conv.channel_step() + conv.windows();
        ConvRegion {
            x: &data.x[volume * size..][..size],
            slice,
            weights: &data.weights[group * filters * conv.depth()..][..filters * conv.depth()],
            group,
            bias: data.bias.map(|bias| &bias[group * filters..][..filters]),
            addend: data.addend.map(|addend| &addend[out..][..len]),
            out,
        }
    }

    /// Plane `number` under a window; `None` if there are only zeros.
    pub fn plane(&self, conv: &ConvShape, number: usize) -> Option<&'a [f32]> {
        let plane = conv.plane();
        Some(&self.x[conv.slices.plane(self.slice, number)? * plane..][..plane])
    }

    /// The end of a product whose rows are the filters.
    pub fn epilogue(&self, conv: &ConvShape) -> ProductEpilogue<'a> {
        let matrix = |addend| Matrix::apart(addend, conv.filters, conv.windows(), conv.channel_step());
        ProductEpilogue { columns: None, rows: self.bias, addend: self.addend.map(matrix), activation: conv.activation }
    }
}
