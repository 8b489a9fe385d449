//! The clause about scratch memory: a launch uses as much as it has asked for, whatever is in it.

use super::bench::{DeviceBench, Finding, Seen};
use super::field::{Field, Landing};
use super::keep::told;
use super::kernels::{self, LaunchWay};
use super::regions;
use crate::device::Launch;
use crate::memory::View;

/// Bytes behind what a launch asks for.
const SPARE: usize = 256;

pub(super) fn scratch(bench: &DeviceBench) -> Finding {
    let mut names = kernels::each_known(bench, LaunchWay::InScratch)?;
    if regions::in_scratch(bench)? {
        names.push("a region");
    }
    match names.is_empty() {
        true => Ok(Seen::NotOffered("none of the kernels that are tried asks for any".to_owned())),
        false => Ok(Seen::Kept(names.join(", "))),
    }
}

/// The bytes of scratch memory that a launch must leave as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct SparedScratch {
    address: usize,
    bytes: usize,
    value: u8,
    asked: usize,
}

impl Field<'_> {
    /// The inputs of a launch, elsewhere: with the same bytes, and not aligned to more than they need to be.
    pub(super) fn moved(&mut self, launch: &Launch<'_>) -> Result<Vec<View>, String> {
        let mut moved = Vec::new();
        for input in launch.inputs {
            let (bytes, shift) = (input.bytes(), self.alignment());
            let address = self.block(bytes + shift)? + shift;
            // SAFETY: the device's memory, which is kept until the end.
            moved.push(unsafe { View::new(address as *mut u8, bytes, *input.desc()) });
        }
        Ok(moved)
    }

    /// Fills the scratch memory of a stream's next launch with a value, and some bytes behind it.
    pub(super) fn soil(
        &mut self,
        stream: usize,
        launch: &Launch<'_>,
        value: u8,
    ) -> Result<Option<SparedScratch>, String> {
        let Some(scratch) = self.stream(stream).scratch(launch, SPARE).map_err(told)? else { return Ok(None) };
        self.fill(stream, scratch.address, scratch.bytes, value)?;
        let (address, bytes) = (scratch.address + scratch.asked, scratch.bytes - scratch.asked);
        Ok(Some(SparedScratch { address, bytes, value, asked: scratch.asked }))
    }

    /// Copies back what must be as it was.
    pub(super) fn download_spared(
        &mut self,
        stream: usize,
        spared: Option<SparedScratch>,
    ) -> Result<Option<(SparedScratch, Landing)>, String> {
        let Some(spared) = spared else { return Ok(None) };
        Ok(Some((spared, self.download(stream, spared.address, spared.bytes)?)))
    }

    pub(super) fn expect_spared(
        &mut self,
        spared: Option<(SparedScratch, Landing)>,
        operation: &str,
    ) -> Result<(), String> {
        let Some((SparedScratch { bytes, value, asked, .. }, landing)) = spared else { return Ok(()) };
        let what = format!("'{operation}' has written behind the {asked} bytes of scratch memory that it asked for");
        self.expect(landing, &vec![value; bytes], &what)
    }
}
