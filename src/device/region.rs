//! Regions: parts of a program that a device may make one kernel of.
//!
//! A region is a list of calls of one device's kernels, in topological order, and of the values between them. The
//! device chooses the calls that it would take (`Accelerator::claim`), and makes one kernel of a region
//! (`Accelerator::compile`): that is launched with the region's inputs and outputs, and has the effect of the calls in
//! order.
//!
//! *Contract.* The kernels of the calls, and the memory of constants, live as long as the kernel of the region. Shapes
//! are as in the region. `DeviceRegion::check` refuses invalid regions.
#![forbid(unsafe_code)]

use super::{DeviceKernel, Recipe};
use crate::base::{Desc, Error, Result};
use std::sync::Arc;

/// A value of a region.
#[derive(Clone, Copy, Debug)]
pub struct RegionValue {
    pub desc: Desc,
    /// Its address in the device's memory, if it is a constant there.
    pub constant: Option<usize>,
}

/// A call. Values and nodes are referred to by index.
pub struct RegionNode<'a> {
    /// For messages.
    pub name: &'a str,
    pub recipe: Recipe<'a>,
    /// The device's form of the recipe.
    pub kernel: &'a Arc<dyn DeviceKernel>,
    pub inputs: &'a [usize],
    pub outputs: &'a [usize],
    /// Earlier nodes that are over when it begins, besides those that compute its inputs.
    pub after: &'a [usize],
}

pub struct DeviceRegion<'a> {
    /// For messages.
    pub name: &'a str,
    pub nodes: &'a [RegionNode<'a>],
    pub values: &'a [RegionValue],
    /// The inputs and outputs of each launch.
    pub inputs: &'a [usize],
    pub outputs: &'a [usize],
}

impl DeviceRegion<'_> {
    /// Refuses values that are read before they are computed, or computed twice, and edges from later nodes.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::invalid(format!("{}: {what}", self.name)));
        let mut is_there: Vec<bool> = self.values.iter().map(|value| value.constant.is_some()).collect();
        let mut make = |value: usize| is_there.get_mut(value).is_some_and(|there| !std::mem::replace(there, true));
        if let Some(value) = self.inputs.iter().find(|&&value| !make(value)) {
            return refuse(format!("value {value} cannot be an input"));
        }
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(before) = node.after.iter().find(|&&before| before >= at) {
                return refuse(format!("node {at}, {}, comes after node {before}", node.name));
            }
            if let Some(value) = node.inputs.iter().find(|&&value| is_there.get(value) != Some(&true)) {
                return refuse(format!("node {at}, {}, reads value {value}, which is not there yet", node.name));
            }
            let mut make = |value: usize| is_there.get_mut(value).is_some_and(|there| !std::mem::replace(there, true));
            if let Some(value) = node.outputs.iter().find(|&&value| !make(value)) {
                return refuse(format!("node {at}, {}, cannot compute value {value}", node.name));
            }
        }
        let is_computed = |value: &usize| self.nodes.iter().any(|node| node.outputs.contains(value));
        match self.outputs.iter().find(|value| !is_computed(value)) {
            Some(value) => refuse(format!("no node computes its output, value {value}")),
            None => Ok(()),
        }
    }
}
