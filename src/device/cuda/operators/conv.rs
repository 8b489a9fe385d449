//! Convolution and pooling.
#![forbid(unsafe_code)]

use super::attributes::DescriptorBytes;
use super::reduce::Reduce;
use crate::abi::weir_pooling_op_value::WEIR_POOLING_MAX;
use crate::abi::weir_reduce_op_value::{WEIR_REDUCE_MAX, WEIR_REDUCE_MEAN};
use crate::abi::{weir_conv_desc, weir_pooling_desc};
use crate::base::{Desc, Result};
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{Emit, Operator, Params, count, small};
use crate::memory::View;
use std::mem::offset_of;

/// Windows along both axes; of signals the first one counts.
#[derive(Clone, Copy, Debug)]
struct ConvWindows {
    strides: [i64; 2],
    dilations: [i64; 2],
    begin: [i64; 2],
    reflect: bool,
}

impl ConvWindows {
    /// One axis for the kernels: sizes in and out, and taps.
    fn axis(&self, params: &mut Params, i: usize, sizes: [i64; 3]) -> Result<()> {
        let [input, output, taps] = sizes;
        for value in [input, output, taps, self.strides[i].max(1), self.dilations[i].max(1), self.begin[i]] {
            params.word(small(&[value as usize])?);
        }
        params.flag(self.reflect).word(0);
        Ok(())
    }

    /// Rows and columns.
    fn axes(&self, params: &mut Params, x: &Desc, y: &Desc, taps: &[i64]) -> Result<()> {
        const ONE: ConvWindows = ConvWindows { strides: [1; 2], dilations: [1; 2], begin: [0; 2], reflect: false };
        if x.shape().len() == 3 {
            ONE.axis(params, 0, [1; 3])?;
            return self.axis(params, 0, [x.dims[2], y.dims[2], taps[0]]);
        }
        self.axis(params, 0, [x.dims[2], y.dims[2], taps[0]])?;
        self.axis(params, 1, [x.dims[3], y.dims[3], taps[1]])
    }
}

/// Filters over windows, then the bias and the activation.
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    windows: ConvWindows,
    groups: i64,
    activation: u32,
}

/// Filters of a group that are too few for tiles; windows of an image that are few enough for a warp each.
const FEW_FILTERS: usize = 8;
const FEW_WINDOWS: usize = 8;
/// Tiles that fill a device.
const ENOUGH: usize = 128;

impl Conv {
    pub fn new(attributes: DescriptorBytes<'_>) -> Conv {
        let windows = ConvWindows {
            strides: attributes.i64s(offset_of!(weir_conv_desc, strides)),
            dilations: attributes.i64s(offset_of!(weir_conv_desc, dilations)),
            begin: attributes.i64s(offset_of!(weir_conv_desc, padding_begin)),
            reflect: attributes.u32(offset_of!(weir_conv_desc, padding)) != 0,
        };
        let [groups] = attributes.i64s(offset_of!(weir_conv_desc, groups));
        Conv { windows, groups: groups.max(1), activation: attributes.u32(offset_of!(weir_conv_desc, activation)) }
    }
}

impl Operator for Conv {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, weights, y) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        if count(y)? == 0 {
            return Ok(());
        }
        let [images, groups] = [x.dims[0] as usize, self.groups as usize];
        let (channels, filters) = (x.dims[1] as usize / groups, weights.dims[0] as usize / groups);
        // How the windows of an image are made does not depend on how many images there are.
        let of_image = y.shape()[2..].iter().product::<i64>() as usize;
        let windows = images * of_image;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&inputs[1]).optional(inputs.get(2)).view(&outputs[0]);
        for size in [images, groups, channels, filters] {
            params.word(small(&[size])?);
        }
        params.word(self.activation).word(0);
        self.windows.axes(&mut params, x, y, &weights.shape()[2..])?;
        // The kernels' counts must fit.
        small(&[windows])?;
        small(&[weights.shape()[1..].iter().product::<i64>() as usize])?;
        let planes = small(&[groups, filters])? as usize;
        let tiles = |side: usize| filters.div_ceil(side) * windows.div_ceil(side);
        match () {
            () if of_image <= FEW_WINDOWS => params.launch(emit, &CONV_DOT, (planes.div_ceil(4), windows), 128),
            () if filters < FEW_FILTERS => params.launch(emit, &CONV_DIRECT, (windows.div_ceil(128), planes), 128),
            () if filters > 32 && tiles(64) * groups >= ENOUGH => {
                params.launch(emit, &CONV_64, (tiles(64), groups), 256)
            }
            () => params.launch(emit, &CONV_16, (tiles(16), groups), 256),
        }
    }
}

/// The function of each window of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Pooling {
    op: u32,
    windows: ConvWindows,
    kernel: [i64; 2],
    /// Windows as large as the input.
    whole: bool,
}

impl Pooling {
    pub fn new(attributes: DescriptorBytes<'_>) -> Pooling {
        Pooling {
            op: attributes.u32(offset_of!(weir_pooling_desc, op)),
            windows: ConvWindows {
                strides: attributes.i64s(offset_of!(weir_pooling_desc, strides)),
                dilations: attributes.i64s(offset_of!(weir_pooling_desc, dilations)),
                begin: attributes.i64s(offset_of!(weir_pooling_desc, padding_begin)),
                reflect: false,
            },
            kernel: attributes.i64s(offset_of!(weir_pooling_desc, kernel)),
            whole: attributes.u64(offset_of!(weir_pooling_desc, flags)) != 0,
        }
    }
}

impl Operator for Pooling {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        if self.whole {
            let op = if self.op == WEIR_POOLING_MAX as u32 { WEIR_REDUCE_MAX } else { WEIR_REDUCE_MEAN };
            return Reduce::of_planes(op as u32, x.shape().len()).launches(inputs, outputs, emit);
        }
        let count = count(y)?;
        small(&[self.kernel[0] as usize, self.kernel[1].max(1) as usize])?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(count).word(self.op);
        self.windows.axes(&mut params, x, y, &self.kernel)?;
        params.launch_each(emit, &POOLING, count)
    }
}
