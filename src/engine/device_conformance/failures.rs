//! Clauses about failures and destruction.

use super::bench::{DeviceBench, Finding, Seen, of_work_under_way, under_way};
use super::keep::told;
use crate::base::{Code, Error, Result as Outcome};
use crate::device::{DeviceEvent, HostFunction, Launch, Operation, Recipe};
use crate::memory::View;
use std::sync::Arc;

/// A failing kernel, for devices that run host functions.
struct Fails;

impl HostFunction for Fails {
    unsafe fn call(&self, _inputs: &[View], _outputs: &[View]) -> Outcome<()> {
        Err(Error::new(Code::DataLoss, "as the conformance check has asked"))
    }
}

pub(super) fn late(bench: &DeviceBench) -> Finding {
    let recipe = Recipe {
        name: "weir.fail",
        operation: Operation::Named("weir.fail", &[]),
        num_inputs: 0,
        num_outputs: 0,
        host: Some(Arc::new(Fails)),
    };
    let kernel = match bench.accelerator()?.kernel(&recipe) {
        Ok(kernel) => kernel,
        Err(error) if error.code() == Code::Unimplemented => {
            return Ok(Seen::NotOffered("there is no kernel 'weir.fail'".to_owned()));
        }
        Err(error) => return Err(told(error)),
    };
    let mut field = bench.field(2)?;
    field.keep_kernel(&kernel);
    let block = field.block(64)?;
    for round in 0..bench.rounds().div_ceil(4) {
        field.fill(0, block, 64, 1)?;
        field.finish(0)?;
        if round % 2 == 0 {
            field.burden(0, 1)?;
        }
        let launch = Launch { name: "kernel 'weir.fail'", kernel: &kernel, inputs: &[], outputs: &[] };
        field
            .stream(0)
            .launch(&launch)
            .map_err(|error| format!("it failed before it was done: {}", error.message()))?;
        field.fill(0, block, 64, 2)?;
        let event = field.mark(0)?;
        field.stream(1).wait(&event).map_err(told)?;
        let other = field.mark(1)?;
        for (event, whose) in [(&event, "the stream itself"), (&other, "a stream that waits for it")] {
            field.reach(event)?;
            if event.is_reached().is_ok() {
                return Err(format!("an event of {whose} does not give the failure in front of it"));
            }
        }
        // A failure that follows from another may be ABORTED, and then names it.
        let code = |event: &Arc<dyn DeviceEvent>| event.is_reached().err().map(|error| error.as_origin().code());
        if let (Some(first), Some(second)) = (code(&event), code(&other))
            && first != second
        {
            let text = "and the event of a stream that waits for it gives";
            return Err(format!("an event gives the failure as {first:?}, {text} {second:?}"));
        }
        field.stream(0).clear_error();
        field.stream(1).clear_error();
        let landing = field.download(0, block, 64)?;
        let after = field.mark(0)?;
        field.reach(&after)?;
        if let Err(error) = after.is_reached() {
            return Err(format!("the failure stays after it was cleared: {}", error.message()));
        }
        field.expect(landing, &[1; 64], "work behind a failure was done")?;
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("{} times", bench.rounds().div_ceil(4))))
}

pub(super) fn destroy(bench: &DeviceBench) -> Finding {
    let mut round = 0;
    let met = under_way(bench.rounds().div_ceil(4), |weight| {
        round += 1;
        let mut field = bench.field(2)?;
        let (from, expected) = field.burden(0, weight)?;
        let landing = field.download_aside(0, from, expected.len())?;
        let event = field.mark(0)?;
        // Another stream with all its objects comes and goes meanwhile.
        let passing = field.block(1000 + round)?;
        field.fill(1, passing, 1000, 3)?;
        field.finish(1)?;
        field.end(1);
        drop(bench.accelerator()?.event(false).map_err(told)?);
        let is_valid = matches!(event.is_reached(), Ok(false));
        field.reach(&event)?;
        field.expect(landing, &expected, "work was lost while another stream was destroyed")?;
        field.take_down()?;
        Ok(is_valid)
    })?;
    of_work_under_way(met, format!("{met} times"))
}
