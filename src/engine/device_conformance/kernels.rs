//! Clauses about kernels: a device's kernels compute what the host's do.

use super::bench::{DeviceBench, Finding, Seen};
use super::field::Field;
use super::keep::told;
use crate::base::{Code, Desc, Error, Result as Outcome, dtype};
use crate::device::{DeviceKernel, HostFunction, Launch, Operation, Recipe, RecordedStep, RecordedWork, Recording};
use crate::engine::on_host::KernelOnHost;
use crate::kernel::Kernel;
use crate::kernel::builtin::Builtin;
use crate::memory::{AlignedBuffer, View};
use crate::ops::{
    Binary, Described, Eltwise, Matmul, Op, Operator, Softmax, weir_activation_value, weir_binary_op_value,
    weir_eltwise_op_value, weir_matmul_desc, weir_matmul_flags,
};
use std::sync::Arc;

pub(super) fn unknown(bench: &DeviceBench) -> Finding {
    let operation = "weir.no-such-kernel";
    let named = Operation::Named(operation, &[]);
    let recipe = Recipe { name: operation, operation: named, num_inputs: 1, num_outputs: 1, host: None };
    match bench.accelerator()?.kernel(&recipe) {
        Ok(_) => Err(format!("it makes a kernel '{operation}'")),
        Err(error) if error.code() == Code::Unimplemented => Ok(Seen::Kept("with UNIMPLEMENTED".to_owned())),
        Err(error) => Err(format!("with another code than UNIMPLEMENTED: {error}")),
    }
}

/// Adds a number to each byte; refuses to add 0.
struct Adds(u8);

impl HostFunction for Adds {
    unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Outcome<()> {
        if self.0 == 0 {
            return Err(Error::new(Code::DataLoss, "a function of the host's fails, as asked"));
        }
        // SAFETY: as demanded of the caller.
        let (from, mut to) = unsafe { (inputs[0].as_bytes(), outputs[0].as_bytes_mut()) };
        to.write_bytes().iter_mut().zip(from.read::<u8>()).for_each(|(to, from)| *to = from.wrapping_add(self.0));
        Ok(())
    }
}

pub(super) fn of_the_host(bench: &DeviceBench) -> Finding {
    let kernel = |number| {
        let host: Option<Arc<dyn HostFunction>> = Some(Arc::new(Adds(number)));
        let recipe = Recipe { name: "adds", operation: Operation::Host, num_inputs: 1, num_outputs: 1, host };
        bench.accelerator().map(|accelerator| accelerator.kernel(&recipe))
    };
    let adds = match kernel(3)? {
        Err(error) if error.code() == Code::Unimplemented => {
            return Ok(Seen::NotOffered("it calls no functions of the host's".to_owned()));
        }
        made => made.map_err(told)?,
    };
    let fails = kernel(0)?.map_err(told)?;
    let mut field = bench.field(1)?;
    field.keep_kernel(&adds);
    field.keep_kernel(&fails);
    let bytes = 1000;
    let places = [field.block(bytes)?, field.block(bytes)?];
    let desc = Desc::new(dtype::U8, &[bytes as i64]).check().map_err(told)?;
    // SAFETY: the device's memory, which is kept until the end.
    let views = places.map(|place| [unsafe { View::new(place as *mut u8, bytes, desc) }]);
    let call =
        |kernel, from: usize| Launch { name: "kernel 'adds'", kernel, inputs: &views[from], outputs: &views[1 - from] };
    for round in 0..bench.rounds().div_ceil(4) {
        field.fill(0, places[0], bytes, round as u8)?;
        for step in 0..4 {
            field.stream(0).launch(&call(&adds, step % 2)).map_err(told)?;
        }
        let landing = field.download(0, places[0], bytes)?;
        field.finish(0)?;
        field.expect(landing, &vec![(round as u8).wrapping_add(12); bytes], "four calls of a function in a row")?;
        field.stream(0).launch(&call(&fails, 0)).map_err(told)?;
        let event = field.mark(0)?;
        field.reach(&event)?;
        match event.is_reached() {
            Err(error) if error.code() != Code::DataLoss => {
                return Err(format!("a function failed with DATA_LOSS, the event with another code: {error}"));
            }
            Err(error) if !error.message().contains("as asked") => {
                return Err(format!("the text of a function's failure is lost: {error}"));
            }
            Err(_) => field.stream(0).clear_error(),
            Ok(_) => return Err("a function failed, and the event behind it does not say so".to_owned()),
        }
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("{} times, each with a failure", bench.rounds().div_ceil(4))))
}

/// An operator, the host's kernel for it, and the shapes of its inputs.
pub(super) struct Case {
    pub(super) described: Described,
    pub(super) kernel: Arc<dyn Kernel>,
    inputs: Vec<Desc>,
}

/// An operator on inputs of f32 with these shapes.
pub(super) fn case<O: Operator + Into<Op>>(mut desc: O::Desc, inputs: &[&[i64]]) -> Result<Case, String>
where
    Builtin<O>: Kernel,
{
    let (operator, described) = Described::new::<O>(&mut desc, None).map_err(told)?;
    let inputs = inputs.iter().map(|shape| Desc::new(dtype::F32, shape).check().map_err(told));
    Ok(Case { described, kernel: Arc::new(Builtin::new(operator)), inputs: inputs.collect::<Result<_, _>>()? })
}

fn cases() -> Result<Vec<Case>, String> {
    let desc = Matmul::DEFAULT.ok_or("a product has a default")?;
    let flags = weir_matmul_flags::WEIR_MATMUL_BIAS as u64;
    let with_both = weir_matmul_desc { flags, activation: weir_activation_value::WEIR_ACTIVATION_RELU as u32, ..desc };
    Ok(vec![
        case::<Binary>(Binary::desc(weir_binary_op_value::WEIR_BINARY_ADD), &[&[17, 33], &[17, 33]])?,
        case::<Eltwise>(Eltwise::desc(weir_eltwise_op_value::WEIR_ELTWISE_RELU, 0.0, 0.0), &[&[1001]])?,
        case::<Matmul>(desc, &[&[9, 31], &[31, 13]])?,
        case::<Matmul>(with_both, &[&[9, 31], &[31, 13], &[13]])?,
        case::<Softmax>(Softmax::DEFAULT.ok_or("a softmax has a default")?, &[&[5, 37]])?,
    ])
}

/// How a kernel is called.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LaunchWay {
    Launched,
    Recorded,
    Prepared,
    /// In scratch memory with any contents.
    InScratch,
    /// With the output where the first input is.
    InPlace,
}

pub(super) fn known(bench: &DeviceBench) -> Finding {
    let names = each_known(bench, LaunchWay::Launched)?;
    match names.is_empty() {
        true => Ok(Seen::NotOffered("it has none of those that are tried".to_owned())),
        false => Ok(Seen::Kept(names.join(", "))),
    }
}

pub(super) fn in_place(bench: &DeviceBench) -> Finding {
    let names = each_known(bench, LaunchWay::InPlace)?;
    match names.is_empty() {
        true => Ok(Seen::NotOffered("none of those that are tried works in place".to_owned())),
        false => Ok(Seen::Kept(names.join(", "))),
    }
}

/// Checks the results of all kernels that the device has, and gives their names; leaves out those that it does not call
/// in this way.
pub(super) fn each_known(bench: &DeviceBench, way: LaunchWay) -> Result<Vec<&'static str>, String> {
    let mut names = Vec::new();
    for Case { described, kernel, inputs } in cases()? {
        let operation = described.op.operation();
        let host: Arc<dyn HostFunction> = Arc::new(KernelOnHost::new(Arc::clone(&kernel)));
        let recipe = Recipe {
            name: operation,
            operation: Operation::Builtin(&described),
            num_inputs: inputs.len(),
            num_outputs: 1,
            host: Some(Arc::clone(&host)),
        };
        // A kernel that ends leaves those that are like it as they are.
        let passing = bench.accelerator()?.kernel(&recipe);
        let made = bench.accelerator()?.kernel(&recipe);
        drop(passing);
        match made {
            Ok(on_device) if way == LaunchWay::InPlace && !(on_device.in_place() && kernel.in_place()) => {}
            Ok(on_device) => {
                let outputs = kernel.infer(&inputs).map_err(told)?;
                if compare(bench, (operation, way), &on_device, &*host, &inputs, &outputs[0])? {
                    names.push(operation);
                }
            }
            Err(error) if error.code() == Code::Unimplemented => {}
            Err(error) => return Err(told(error)),
        }
    }
    Ok(names)
}

/// Compares a call on the device with one on the host; false if the device does not call it in this way.
fn compare(
    bench: &DeviceBench,
    (operation, way): (&str, LaunchWay),
    kernel: &Arc<dyn DeviceKernel>,
    host: &dyn HostFunction,
    inputs: &[Desc],
    output: &Desc,
) -> Result<bool, String> {
    let mut field = bench.field(1)?;
    field.keep_kernel(kernel);
    let (mut here, mut there, mut kept) = (Vec::new(), Vec::<View>::new(), Vec::new());
    for (at, desc) in inputs.iter().chain([output]).enumerate() {
        let bytes = desc.bytes().map_err(told)?;
        let buffer = AlignedBuffer::zeroed(bytes, "conformance").map_err(told)?;
        let address = match way == LaunchWay::InPlace && at == inputs.len() {
            true => there[0].data().addr(),
            false => field.block(bytes)?,
        };
        // SAFETY: the buffer's, and the device's, which are kept until the end.
        unsafe {
            here.push(View::new(buffer.data(), bytes, *desc));
            there.push(View::new(address as *mut u8, bytes, *desc));
        }
        kept.push(buffer);
    }
    let (given, wanted) = here.split_at(inputs.len());
    for (view, place) in given.iter().zip(&there) {
        let values: Vec<u8> =
            (0..view.bytes() / 4).flat_map(|_| (bench.draw(2001) as f32 / 500.0 - 2.0).to_ne_bytes()).collect();
        // SAFETY: nobody else has the buffer.
        unsafe { view.as_bytes_mut() }.write_bytes().copy_from_slice(&values);
        field.upload(0, place.data().addr(), &values)?;
    }
    let (on_device, result) = there.split_at(inputs.len());
    let launch = Launch { name: "conformance", kernel, inputs: on_device, outputs: result };
    let mut spared = None;
    match way {
        LaunchWay::Launched | LaunchWay::InPlace => field.stream(0).launch(&launch).map_err(told)?,
        LaunchWay::InScratch => {
            let moved = field.moved(&launch)?;
            let asked = |field: &mut Field<'_>, launch: &Launch<'_>| {
                let scratch = field.stream(0).scratch(launch, 0).map_err(told)?;
                Ok::<_, String>(scratch.map_or(0, |scratch| scratch.asked))
            };
            let needs = [asked(&mut field, &launch)?, asked(&mut field, &Launch { inputs: &moved, ..launch })?];
            if needs[0] != needs[1] {
                let [one, other] = needs;
                return Err(format!("'{operation}' asks for {one} bytes, and with other addresses for {other}"));
            }
            if needs[0] == 0 {
                return field.take_down().map(|()| false);
            }
            for value in [0, 0xFF, 0xA5] {
                spared = field.soil(0, &launch, value)?;
                field.stream(0).launch(&launch).map_err(told)?;
            }
        }
        LaunchWay::Recorded => {
            let steps = [RecordedStep { work: RecordedWork::Launch(launch), after: &[] }];
            let recording = Recording { name: "conformance", steps: &steps };
            // One that ends leaves another one of the same recording as it is.
            let passing = bench.accelerator()?.record(&recording);
            let executable = match bench.accelerator()?.record(&recording) {
                Err(error) if error.code() == Code::Unimplemented => return field.take_down().map(|()| false),
                recorded => recorded.map_err(told)?,
            };
            drop(passing);
            field.keep_executable(&executable);
            field.stream(0).replay(&executable, "a recording").map_err(told)?;
        }
        LaunchWay::Prepared => {
            // First prepare a call that is never launched: its output is written elsewhere.
            let aside = field.block(result[0].bytes())?;
            // SAFETY: the device's memory, which is kept until the end.
            let elsewhere = [unsafe { View::new(aside as *mut u8, result[0].bytes(), *output) }];
            let before = field.stream(0).prepare(&Launch { outputs: &elsewhere, ..launch }, None);
            if before.is_none() {
                return field.take_down().map(|()| false);
            }
            let prepared = field.stream(0).prepare(&launch, before);
            // It may refuse any call, which is then launched in full.
            let Some(call) = prepared else { return field.take_down().map(|()| false) };
            // It ends while its launches are in flight.
            field.burden(0, 1)?;
            for _ in 0..3 {
                field.stream(0).launch_prepared(&*call, "conformance").map_err(told)?;
            }
            drop(call);
        }
    }
    let spared = field.download_spared(0, spared)?;
    let landing = field.download(0, result[0].data().addr(), result[0].bytes())?;
    let event = field.mark(0)?;
    field.reach(&event)?;
    event.is_reached().map_err(told)?;
    field.expect_spared(spared, operation)?;
    // SAFETY: nobody else has the buffers.
    unsafe { host.call(given, wanted) }.map_err(told)?;
    let got = field.landed(landing);
    // SAFETY: the call is over.
    let wanted = unsafe { wanted[0].as_bytes() };
    for (i, (bytes, expected)) in got.chunks_exact(4).zip(wanted.read::<f32>()).enumerate() {
        let got = f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if (got - expected).abs() > 1e-4 * expected.abs().max(1.0) || got.is_nan() != expected.is_nan() {
            return Err(format!("'{operation}': element {i} is {got}, expected {expected}"));
        }
    }
    field.take_down().map(|()| true)
}
