//! The clause about regions: one kernel does what its nodes would have done.

use super::bench::{DeviceBench, Finding, Seen};
use super::field::Field;
use super::keep::told;
use super::kernels::{Case, case};
use crate::base::{Code, Desc, Result as Outcome, dtype};
use crate::device::{
    DeviceKernel, DeviceRegion, HostFunction, Launch, Operation, Recipe, RecordedStep, RecordedWork, Recording,
    RegionNode, RegionValue,
};
use crate::engine::on_host::KernelOnHost;
use crate::memory::View;
use crate::ops::{Binary, Described, Eltwise, weir_binary_op_value, weir_eltwise_op_value};
use std::cell::Cell;
use std::sync::Arc;

/// One of weir's operators and its kernel on the host.
struct RegionOperation {
    described: Described,
    num_inputs: usize,
    host: Arc<dyn HostFunction>,
}

impl RegionOperation {
    fn new(case: Case) -> RegionOperation {
        let num_inputs = case.kernel.num_inputs();
        RegionOperation { described: case.described, num_inputs, host: Arc::new(KernelOnHost::new(case.kernel)) }
    }

    fn recipe(&self) -> Recipe<'_> {
        Recipe {
            name: self.described.op.operation(),
            operation: Operation::Builtin(&self.described),
            num_inputs: self.num_inputs,
            num_outputs: 1,
            host: Some(Arc::clone(&self.host)),
        }
    }
}

/// The numbers of the values: two inputs, a constant, and the outputs of four nodes.
const FIRST: usize = 0;
const SECOND: usize = 1;
const CONSTANT: usize = 2;
const VALUES: usize = 7;

/// The values that each node adds or rectifies. Their outputs are numbered from 3 on.
const READS: [&[usize]; 4] = [&[FIRST, CONSTANT], &[3], &[4, SECOND], &[4, 5]];

/// Not in the order of their numbers.
const INPUTS: [usize; 2] = [SECOND, FIRST];
const OUTPUTS: [usize; 2] = [6, 4];

fn expected(first: f32, second: f32, constant: f32) -> [f32; 2] {
    let rectified = (first + constant).max(0.0);
    [rectified + (rectified + second), rectified]
}

pub(super) fn regions(bench: &DeviceBench) -> Finding {
    examine(bench, &Cell::new(false))
}

/// Whether a region asks for scratch memory; then it was right with any contents of that.
pub(super) fn in_scratch(bench: &DeviceBench) -> Result<bool, String> {
    let is_in_scratch = Cell::new(false);
    examine(bench, &is_in_scratch)?;
    Ok(is_in_scratch.get())
}

fn examine(bench: &DeviceBench, is_in_scratch: &Cell<bool>) -> Finding {
    let accelerator = bench.accelerator()?;
    if !accelerator.takes_regions() {
        return Ok(Seen::NotOffered("it compiles no regions".to_owned()));
    }
    let operations = [
        RegionOperation::new(case::<Binary>(Binary::desc(weir_binary_op_value::WEIR_BINARY_ADD), &[])?),
        RegionOperation::new(case::<Eltwise>(Eltwise::desc(weir_eltwise_op_value::WEIR_ELTWISE_RELU, 0.0, 0.0), &[])?),
    ];
    let mut kernels = Vec::new();
    for operation in &operations {
        match accelerator.kernel(&operation.recipe()) {
            Ok(kernel) => kernels.push(kernel),
            Err(error) if error.code() == Code::Unimplemented => {
                let name = operation.recipe().name;
                return Ok(Seen::NotMet(format!("it has no kernel '{name}' to make a region of")));
            }
            Err(error) => return Err(told(error)),
        }
    }
    let mut seen = RegionLaunches::default();
    for round in 0..bench.rounds().div_ceil(4) {
        match one(bench, &operations, &kernels, round)? {
            Ok(launches) => seen = launches,
            Err(declined) => return Ok(Seen::NotMet(format!("it declines a region of four nodes: {declined}"))),
        }
    }
    is_in_scratch.set(seen.in_scratch);
    Ok(Seen::Kept(format!("four nodes, {}", seen.ways.join(", "))))
}

/// How a region was launched.
#[derive(Default)]
struct RegionLaunches {
    ways: Vec<&'static str>,
    /// It asked for scratch memory.
    in_scratch: bool,
}

fn one(
    bench: &DeviceBench,
    operations: &[RegionOperation],
    kernels: &[Arc<dyn DeviceKernel>],
    round: usize,
) -> Result<Result<RegionLaunches, String>, String> {
    let accelerator = bench.accelerator()?;
    let mut field = bench.field(1)?;
    kernels.iter().for_each(|kernel| field.keep_kernel(kernel));
    let count = 1 + bench.draw(3000);
    let bytes = 4 * count;
    let desc = Desc::new(dtype::F32, &[count as i64]).check().map_err(told)?;
    let place = |field: &mut Field<'_>| -> Result<(usize, View), String> {
        let address = field.block(bytes)?;
        // SAFETY: the device's memory, which is kept until the end.
        Ok((address, unsafe { View::new(address as *mut u8, bytes, desc) }))
    };
    let (constant, _) = place(&mut field)?;
    let [first, second, far, near] = [place(&mut field)?, place(&mut field)?, place(&mut field)?, place(&mut field)?];
    let draw = || -> Vec<f32> { (0..count).map(|_| bench.draw(2001) as f32 / 500.0 - 2.0).collect() };
    let to_bytes = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_ne_bytes()).collect() };
    let kept = draw();
    field.upload(0, constant, &to_bytes(&kept))?;
    field.finish(0)?;
    let values: Vec<RegionValue> =
        (0..VALUES).map(|value| RegionValue { desc, constant: (value == CONSTANT).then_some(constant) }).collect();
    let numbers: Vec<usize> = (0..VALUES).collect();
    let nodes: Vec<RegionNode<'_>> = READS
        .iter()
        .enumerate()
        .map(|(at, reads)| {
            let operation = usize::from(reads.len() == 1);
            RegionNode {
                name: ["sum", "rectified", "more", "all"][at],
                recipe: operations[operation].recipe(),
                kernel: &kernels[operation],
                inputs: reads,
                outputs: &numbers[3 + at..4 + at],
                after: if at == 3 { &[0] } else { &[] },
            }
        })
        .collect();
    let region =
        DeviceRegion { name: "conformance", nodes: &nodes, values: &values, inputs: &INPUTS, outputs: &OUTPUTS };
    match accelerator.claim(&region) {
        Err(error) if error.code() != Code::Unimplemented => return Err(told(error)),
        _ => {}
    }
    // The region is compiled twice: destroying one kernel must leave the other intact.
    let compiled = accelerator.compile(&region).and_then(|first| {
        let second = accelerator.compile(&region)?;
        drop(first);
        Ok(second)
    });
    let compiled = match compiled {
        Err(error) if error.code() == Code::Unimplemented => {
            return field.take_down().map(|()| Err(error.message().to_owned()));
        }
        compiled => compiled.map_err(told)?,
    };
    drop((nodes, values));
    field.keep_kernel(&compiled);
    let (inputs, outputs) = ([second.1, first.1], [far.1, near.1]);
    let launch = Launch { name: "conformance", kernel: &compiled, inputs: &inputs, outputs: &outputs };
    let steps = [RecordedStep { work: RecordedWork::Launch(launch), after: &[] }];
    let executable = match accelerator.can_record() {
        true => or_refused(accelerator.record(&Recording { name: "conformance", steps: &steps }))?,
        false => None,
    };
    executable.iter().for_each(|executable| field.keep_executable(executable));
    let prepared = field.stream(0).prepare(&launch, None);
    let mut ways = vec!["launched"];
    ways.extend(executable.as_ref().map(|_| "recorded"));
    ways.extend(prepared.as_ref().map(|_| "prepared"));
    let mut in_scratch = false;
    for way in &ways {
        for value in [0xFF, 0xA5] {
            let [one, other] = [draw(), draw()];
            field.upload(0, first.0, &to_bytes(&one))?;
            field.upload(0, second.0, &to_bytes(&other))?;
            [far.0, near.0].into_iter().try_for_each(|place| field.fill(0, place, bytes, 9))?;
            let spared = if *way == "launched" { field.soil(0, &launch, value)? } else { None };
            in_scratch |= spared.is_some();
            let stream = field.stream(0);
            let issued = match (*way, &executable, &prepared) {
                ("recorded", Some(executable), _) => stream.replay(executable, "a recording"),
                ("prepared", _, Some(prepared)) => stream.launch_prepared(&**prepared, "conformance"),
                _ => stream.launch(&launch),
            };
            issued.map_err(told)?;
            let landings = [field.download(0, far.0, bytes)?, field.download(0, near.0, bytes)?];
            let spared = field.download_spared(0, spared)?;
            let event = field.mark(0)?;
            field.reach(&event)?;
            event.is_reached().map_err(told)?;
            field.expect_spared(spared, "region")?;
            for (output, landing) in landings.into_iter().enumerate() {
                let got = field.landed(landing);
                for (i, bytes) in got.chunks_exact(4).enumerate() {
                    let got = f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    let wanted = expected(one[i], other[i], kept[i])[output];
                    if (got - wanted).abs() > 1e-4 || got.is_nan() {
                        let text = format!("a region, {way}: output {output}, element {i} is {got}, expected {wanted}");
                        return Err(format!("round {round}: {text}"));
                    }
                }
            }
        }
    }
    drop(prepared);
    field.take_down().map(|()| Ok(RegionLaunches { ways, in_scratch }))
}

/// `None`: the device refuses it.
fn or_refused<T>(made: Outcome<T>) -> Result<Option<T>, String> {
    match made {
        Err(error) if error.code() == Code::Unimplemented => Ok(None),
        made => made.map(Some).map_err(told),
    }
}
