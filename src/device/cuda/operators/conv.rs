//! Convolution and pooling.
#![forbid(unsafe_code)]

use super::matmul::check_activation;
use super::reduce::of_planes;
use crate::base::{Desc, Result};
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{Emit, Operator, Params, count, small, unimplemented};
use crate::memory::View;
use crate::ops::axis::EdgeMode;
use crate::ops::weir_pooling_op_value::WEIR_POOLING_MAX;
use crate::ops::weir_reduce_op_value::{WEIR_REDUCE_MAX, WEIR_REDUCE_MEAN};
use crate::ops::{AxisSettings, Conv, Pooling, Windows};

/// One axis for the kernels: sizes in and out, and taps.
fn axis(params: &mut Params, windows: &Windows, i: usize, sizes: [i64; 3]) -> Result<()> {
    let [input, output, taps] = sizes;
    for value in [input, output, taps, windows.strides[i].max(1), windows.dilations[i].max(1), windows.begin[i]] {
        params.word(small(&[value as usize])?);
    }
    params.flag(windows.edge == EdgeMode::Reflect).word(0);
    Ok(())
}

/// Rows and columns; of signals the first axis of the windows counts.
fn axes(params: &mut Params, windows: &Windows, x: &Desc, y: &Desc, taps: &[i64]) -> Result<()> {
    if x.shape().len() == 3 {
        axis(params, &Windows::default(), 0, [1; 3])?;
        return axis(params, windows, 0, [x.dims[2], y.dims[2], taps[0]]);
    }
    axis(params, windows, 0, [x.dims[2], y.dims[2], taps[0]])?;
    axis(params, windows, 1, [x.dims[3], y.dims[3], taps[1]])
}

const NO_VOLUMES: &str = "CUDA devices have no convolution and no pooling of volumes, [N, C, D, H, W]";

/// Filters of a group that are too few for tiles; windows of an image that are few enough for a warp each.
const FEW_FILTERS: usize = 8;
const FEW_WINDOWS: usize = 8;
/// Tiles that fill a device.
const ENOUGH: usize = 128;

pub fn checked(op: Conv) -> Result<Box<dyn Operator>> {
    if op.sum {
        return Err(unimplemented("CUDA devices have no convolution with an addend (WEIR_CONV_SUM)"));
    }
    if op.windows.depth != AxisSettings::default() {
        return Err(unimplemented(NO_VOLUMES));
    }
    check_activation(op.activation)?;
    Ok(Box::new(op))
}

pub fn checked_pooling(op: Pooling) -> Result<Box<dyn Operator>> {
    match op.depth_kernel {
        0 => Ok(Box::new(op)),
        _ => Err(unimplemented(NO_VOLUMES)),
    }
}

impl Operator for Conv {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, weights, y) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        if x.shape().len() > 4 {
            return Err(unimplemented(NO_VOLUMES));
        }
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
        params.word(self.activation.function as u32).word(0);
        axes(&mut params, &self.windows, x, y, &weights.shape()[2..])?;
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

impl Operator for Pooling {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        let Some(kernel) = &self.kernel else {
            let op = if self.op == WEIR_POOLING_MAX { WEIR_REDUCE_MAX } else { WEIR_REDUCE_MEAN };
            return of_planes(op, x.shape().len()).launches(inputs, outputs, emit);
        };
        let count = count(y)?;
        small(&[kernel[0] as usize, kernel[1].max(1) as usize])?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(count).word(self.op as u32);
        axes(&mut params, &self.windows, x, y, kernel)?;
        params.launch_each(emit, &POOLING, count)
    }
}
