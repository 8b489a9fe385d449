//! Regions as a plug-in is given them.

use super::opened::Opened;
use super::owned::{PluginKernel, c_text, handle_of};
use super::recipe::Written;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::{weir_device_region, weir_device_region_node, weir_device_region_value};
use crate::base::{Code, Error, Result};
use crate::device::{DeviceRegion, RegionValue};
use std::ptr;
use std::sync::Arc;

/// Passes a region to `f` as a C struct, which lives during the call.
fn with<R>(
    device: &Arc<Opened>,
    region: &DeviceRegion<'_>,
    f: impl FnOnce(*const weir_device_region) -> R,
) -> Result<R> {
    if !device.can(C::WEIR_DEVICE_REGIONS) {
        return Err(Error::new(Code::Unimplemented, "the plug-in's device compiles no regions"));
    }
    region.check().map_err(|error| error.at_engine(device.label()))?;
    let written: Vec<_> =
        region.nodes.iter().map(|node| (c_text(node.name), Written::new(device, &node.recipe))).collect();
    let recipes: Vec<_> = written.iter().map(|(_, recipe)| recipe.recipe()).collect();
    let mut nodes = Vec::with_capacity(region.nodes.len());
    for ((node, (name, _)), recipe) in region.nodes.iter().zip(&written).zip(&recipes) {
        nodes.push(weir_device_region_node {
            name: name.as_ptr(),
            recipe: ptr::from_ref(recipe),
            kernel: handle_of(node.kernel, device)?,
            inputs: node.inputs.as_ptr(),
            num_inputs: node.inputs.len(),
            outputs: node.outputs.as_ptr(),
            num_outputs: node.outputs.len(),
            after: node.after.as_ptr(),
            num_after: node.after.len(),
        });
    }
    let value = |value: &RegionValue| weir_device_region_value {
        desc: value.desc,
        constant: value.constant.unwrap_or(0) as u64,
    };
    let values: Vec<_> = region.values.iter().map(value).collect();
    let name = c_text(region.name);
    let given = weir_device_region {
        struct_size: size_of::<weir_device_region>(),
        name: name.as_ptr(),
        nodes: nodes.as_ptr(),
        num_nodes: nodes.len(),
        values: values.as_ptr(),
        num_values: values.len(),
        inputs: region.inputs.as_ptr(),
        num_inputs: region.inputs.len(),
        outputs: region.outputs.as_ptr(),
        num_outputs: region.outputs.len(),
    };
    Ok(f(&raw const given))
}

/// Asks the plug-in which nodes it would compile, and which of them together.
pub(super) fn claim(device: &Arc<Opened>, region: &DeviceRegion<'_>) -> Result<Vec<u32>> {
    let mut groups = vec![0; region.nodes.len()];
    let Some(claim) = device.functions().region_claim else {
        groups.fill(1);
        return Ok(groups);
    };
    with(device, region, |given| {
        device.call("region_claim", || {
            // SAFETY: the plug-in's function and device; the region lives during the call, and there is a number for
            // each of its nodes.
            Some(unsafe { claim(device.handle(), given, groups.as_mut_ptr()) })
        })
    })??;
    Ok(groups)
}

/// The plug-in's kernel of a region.
pub(super) fn compile(device: &Arc<Opened>, region: &DeviceRegion<'_>) -> Result<PluginKernel> {
    let mut handle = ptr::null_mut();
    with(device, region, |given| {
        device.call("region_compile", || {
            // SAFETY: the plug-in's function and device; the region lives during the call, and there is a place for the
            // answer.
            device.functions().region_compile.map(|f| unsafe { f(device.handle(), given, &raw mut handle) })
        })
    })??;
    let handle = device.made("region_compile", handle)?;
    // SAFETY: just made.
    Ok(unsafe { PluginKernel::new(Arc::clone(device), handle) })
}
