//! Creates a non-maximum suppression of boxes, see weir_nms_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, reserved not 0, a threshold that is NaN); OUT_OF_RANGE (most_boxes below 0
//! or above 2147483647).
//!
//! Chapter: Reductions and normalisation.
#![forbid(unsafe_code)]

use super::check::{flags, not_nan, reserved};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature::{self, known};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result, dtype};
use std::mem::offset_of;

/// Flags of weir_nms_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_nms_flags {
    /// A box is its centre and its size, x, y, width, height, not two opposite corners, y, x, y, x.
    WEIR_NMS_CENTERS = 1,
    /// Only boxes whose score is above `least_score`.
    WEIR_NMS_SCORE_BOUND = 2,
    /// The boxes have as many rows as were chosen. Only the call knows how many: for nodes of graphs alone, and the
    /// output is open (WEIR_DIM_DYNAMIC) for whoever reads it.
    WEIR_NMS_EXACT = 4,
}

/// Non-maximum suppression: of each image and class the boxes with the best scores, without those that overlap a better
/// one.
///
/// Of two boxes of a class with the same score the one with the lower number is better. A box is left out if its
/// intersection with a better one that was chosen is more than `most_overlap` of their union; boxes without an area
/// overlap nothing. A score that is NaN is never chosen. All is computed in f32.
///
/// Inputs: boxes f32 [B, N, 4], scores f32 [B, C, N]. Outputs: the chosen boxes s64 [M, 3], image, class and number of
/// the box, and how many there are, s64 [1]. They are in the order of images, then classes, then scores, the best one
/// first. M is B * C times the smaller one of N and `most_boxes`; rows behind the last one are -1.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_nms_desc {
    /// sizeof(weir_nms_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_nms_flags.
    pub flags: u64,
    /// Most boxes of an image and class; 0 = as many as there are.
    pub most_boxes: i64,
    /// Intersection over union up to which boxes are distinct; 0 = any overlap is too much.
    pub most_overlap: f32,
    /// With WEIR_NMS_SCORE_BOUND, otherwise ignored.
    pub least_score: f32,
    /// Reserved, 0.
    pub reserved: u64,
}

/// Choice of boxes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nms {
    pub centers: bool,
    pub exact: bool,
    /// Of an image and class.
    pub most_boxes: usize,
    pub most_overlap: f32,
    pub least_score: Option<f32>,
}

impl Nms {
    /// Most boxes of an image and class, of so many.
    pub fn most_of(&self, boxes: usize) -> usize {
        if self.most_boxes == 0 { boxes } else { boxes.min(self.most_boxes) }
    }
}

impl Operator for Nms {
    type Desc = weir_nms_desc;
    const NAME: &'static str = "nms";
    const SETTINGS: &'static [Setting<weir_nms_desc>] = &[
        Setting::int64("most_boxes", offset_of!(weir_nms_desc, most_boxes)),
        Setting::float("most_overlap", offset_of!(weir_nms_desc, most_overlap)).of_values(),
        Setting::float("least_score", offset_of!(weir_nms_desc, least_score)).of_values(),
    ];

    fn new(desc: &mut weir_nms_desc, _: Option<PackedShape>) -> Result<Nms> {
        use weir_nms_flags::*;
        let all = WEIR_NMS_CENTERS as u64 | WEIR_NMS_SCORE_BOUND as u64 | WEIR_NMS_EXACT as u64;
        let bits = flags(desc.flags, all, "desc->flags")?;
        let has = |flag: weir_nms_flags| bits & flag as u64 != 0;
        if desc.reserved != 0 {
            reserved(1)?;
        }
        let most_boxes = i32::try_from(desc.most_boxes).ok().and_then(|most| usize::try_from(most).ok());
        let most_boxes = most_boxes.ok_or_else(|| {
            Error::out_of_range(format!("desc->most_boxes is {}, expected 0 to {}", desc.most_boxes, i32::MAX))
        })?;
        not_nan("most_overlap", desc.most_overlap)?;
        if has(WEIR_NMS_SCORE_BOUND) {
            not_nan("least_score", desc.least_score)?;
        } else {
            desc.least_score = 0.0;
        }
        Ok(Nms {
            centers: has(WEIR_NMS_CENTERS),
            exact: has(WEIR_NMS_EXACT),
            most_boxes,
            most_overlap: desc.most_overlap,
            least_score: has(WEIR_NMS_SCORE_BOUND).then_some(desc.least_score),
        })
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn num_outputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let boxes = Desc::new(dtype::F32, &[ANY_DIM, ANY_DIM, 4]);
        signature::check_fit("input", &[boxes], &inputs[..1])?;
        let [images, count, ..] = inputs[0].dims;
        signature::check_fit("input", &[boxes, Desc::new(dtype::F32, &[images, ANY_DIM, count])], inputs)?;
        let [of_scores, classes, of_boxes, ..] = inputs[1].dims;
        let (images, count) = (known(images, of_scores), known(count, of_boxes));
        if count > i32::MAX.into() {
            return Err(signature::mismatch("input", 0, "at most 2147483647 boxes", &inputs[0]));
        }
        let rows = match self.exact || [images, classes, count].contains(&ANY_DIM) {
            true => ANY_DIM,
            false => images.saturating_mul(classes).saturating_mul(self.most_of(count as usize) as i64),
        };
        Desc::new(dtype::S64, &[rows, 3]).check_open()
    }

    fn output_at(&self, inputs: &[Desc], index: usize) -> Result<Desc> {
        let boxes = self.output(inputs)?;
        Ok(if index == 0 { boxes } else { Desc::new(dtype::S64, &[1]) })
    }
}
