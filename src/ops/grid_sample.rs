//! Creates a sampling of images at places of a grid, see weir_grid_sample_desc. NULL desc = nearest elements, zeros
//! beyond the edges.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, mode or edges).
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

use super::check::{flags, value_of};
use super::operator::{Operator, PackedShape, zeroed};
use super::resize::{weir_resize_mode, weir_resize_mode_value};
use super::signature::{self, known};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Result, dtype};

/// Flags of weir_grid_sample_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_grid_sample_flags {
    /// -1 and 1 are the middle of the first and of the last element, not the edges of the image.
    WEIR_GRID_SAMPLE_ALIGN_CORNERS = 1,
}

/// The values beyond the edges of an image that is sampled: one of enum weir_grid_sample_edge_value.
pub type weir_grid_sample_edge = u32;

/// Edges.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_grid_sample_edge_value {
    /// Zeros.
    WEIR_GRID_SAMPLE_ZEROS = 0,
    /// A place is moved to the nearest one inside; for WEIR_RESIZE_CUBIC only those of the elements around it are.
    WEIR_GRID_SAMPLE_BORDER = 1,
    /// A place is mirrored at the edges until it is inside: at the edges of the image, or with
    /// WEIR_GRID_SAMPLE_ALIGN_CORNERS at the middle of its first and last elements.
    WEIR_GRID_SAMPLE_REFLECTION = 2,
}

/// Images [N, C, H, W] sampled at the places of a grid, in f32.
///
/// A place is two numbers, of W and of H, from -1 to 1 within the image. It is moved inside as `edge` says, and then
/// the elements around it are weighted: the nearest one (ties to even), 2 x 2 or 4 x 4 of them, with a coefficient of
/// -0.75 for WEIR_RESIZE_CUBIC. Elements beyond the edges count likewise: 0, or those where `edge` moves them to. A NaN
/// is taken for -1.
///
/// Inputs: x [N, C, H, W], where H and W are at least 1; grid [N, OH, OW, 2]. Output: [N, C, OH, OW].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_grid_sample_desc {
    /// sizeof(weir_grid_sample_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_grid_sample_flags.
    pub flags: u64,
    /// How an element is made of those around its place.
    pub mode: weir_resize_mode,
    /// The values beyond the edges.
    pub edge: weir_grid_sample_edge,
}

/// Images sampled at places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridSample {
    pub mode: weir_resize_mode_value,
    pub edge: weir_grid_sample_edge_value,
    pub align_corners: bool,
}

impl Operator for GridSample {
    type Desc = weir_grid_sample_desc;
    const NAME: &'static str = "grid_sample";
    const DEFAULT: Option<weir_grid_sample_desc> = Some(zeroed());

    fn new(desc: &mut weir_grid_sample_desc, _: Option<PackedShape>) -> Result<GridSample> {
        let known = weir_grid_sample_flags::WEIR_GRID_SAMPLE_ALIGN_CORNERS as u64;
        let align_corners = flags(desc.flags, known, "desc->flags")? != 0;
        let mode = value_of!(
            "mode",
            desc.mode,
            weir_resize_mode_value { WEIR_RESIZE_NEAREST, WEIR_RESIZE_LINEAR, WEIR_RESIZE_CUBIC }
        )?;
        let edge = value_of!(
            "edge",
            desc.edge,
            weir_grid_sample_edge_value {
                WEIR_GRID_SAMPLE_ZEROS,
                WEIR_GRID_SAMPLE_BORDER,
                WEIR_GRID_SAMPLE_REFLECTION,
            }
        )?;
        Ok(GridSample { mode, edge, align_corners })
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let x = Desc::new(dtype::F32, &[ANY_DIM; 4]);
        signature::check_fit("input", &[x], &inputs[..1])?;
        let [images, channels, height, width, ..] = inputs[0].dims;
        if height == 0 || width == 0 {
            return Err(signature::mismatch("input", 0, "images with elements", &inputs[0]));
        }
        signature::check_fit("input", &[x, Desc::new(dtype::F32, &[images, ANY_DIM, ANY_DIM, 2])], inputs)?;
        let [of_grid, rows, columns, ..] = inputs[1].dims;
        Desc::new(dtype::F32, &[known(images, of_grid), channels, rows, columns]).check_open()
    }
}
