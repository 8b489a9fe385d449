//! Kernels that the device makes of regions: they do what their nodes do, each of which the checker is told of.

use crate::devices::Emulation;
use crate::kit::{BYTES, Device, LEN, code, download, launch, upload, view};
use std::sync::Arc;
use weir_core::base::{Code, Desc, Result, dtype};
use weir_core::device::{
    DeviceKernel, DeviceRegion, Launch, Operation, Recipe, RecordedStep, RecordedWork, Recording, RegionNode,
    RegionValue,
};

const RECIPE: Recipe<'static> =
    Recipe { name: "sum", operation: Operation::Host, num_inputs: 0, num_outputs: 0, host: None };

/// Nodes by what they read and compute. Value 0 comes in, value 1 is a constant, the last one goes out.
fn compile(
    d: &Device,
    kernel: &Arc<dyn DeviceKernel>,
    constant: usize,
    reads: &[&'static [usize]],
) -> Result<Arc<dyn DeviceKernel>> {
    let numbers: Vec<usize> = (0..reads.len() + 2).collect();
    let names: Vec<String> = numbers.iter().map(|number| format!("n{number}")).collect();
    let desc = Desc::new(dtype::S32, &[LEN as i64]);
    let value = |value: usize| RegionValue { desc, constant: (value == 1).then_some(constant) };
    let values: Vec<RegionValue> = numbers.iter().map(|&number| value(number)).collect();
    let node = |(at, inputs): (usize, &'static [usize])| RegionNode {
        name: &names[at],
        recipe: Recipe { ..RECIPE },
        kernel,
        inputs,
        outputs: &numbers[at + 2..at + 3],
        after: &[],
    };
    let nodes: Vec<RegionNode<'_>> = reads.iter().copied().enumerate().map(node).collect();
    let outputs = [numbers.len() - 1];
    let region = DeviceRegion { name: "region 'r'", nodes: &nodes, values: &values, inputs: &[0], outputs: &outputs };
    d.device.compile(&region)
}

const READS: [&[usize]; 3] = [&[0, 1], &[2, 0], &[2, 3]];

/// With a salt of 1 for each.
fn expected(x: i32, constant: i32) -> i32 {
    let first = x + constant + 1;
    let second = first + x + 1;
    first + second + 1
}

#[test]
fn a_region_is_one_launch_and_does_what_its_nodes_do() {
    for seed in 0..20 {
        let d = Device::seeded(seed);
        let (stream, sum) = (d.stream("s"), d.sum(1));
        let (x, y, constant) = (d.memory("x"), d.memory("y"), d.memory("constant"));
        upload(&*stream, constant, &[100; LEN]).unwrap();
        let region = compile(&d, &sum, constant, &READS).unwrap();
        drop(sum);
        let views = ([view(x)], [view(y)]);
        let call = Launch { name: "region 'r'", kernel: &region, inputs: &views.0, outputs: &views.1 };
        let steps = [RecordedStep { work: RecordedWork::Launch(call), after: &[] }];
        let executable = d.device.record(&Recording { name: "recording", steps: &steps }).unwrap();
        for round in 0..4 {
            upload(&*stream, x, &[round; LEN]).unwrap();
            match round % 2 {
                0 => launch(&*stream, "region 'r'", &region, &[x], &[y]).unwrap(),
                _ => stream.replay(&executable, "a recording").unwrap(),
            }
            let mut got = [0; LEN];
            download(&*stream, &mut got, y).unwrap();
            d.finish(&*stream).unwrap();
            assert_eq!(got, [expected(round, 100); LEN]);
        }
        let counts = d.device.counters();
        assert_eq!((counts.launches, counts.regions, d.ran.lock().len()), (4, 1, 12));
        assert_eq!(d.texts(), [""; 0]);
    }
}

#[test]
fn the_checker_sees_what_each_node_reads_and_writes() {
    let d = Device::checked();
    let (s, t, sum) = (d.stream("s"), d.stream("t"), d.sum(1));
    let (x, y, constant) = (d.memory("x"), d.memory("y"), d.memory("constant"));
    let region = compile(&d, &sum, constant, &READS).unwrap();
    // The constant is written on another stream, for which nothing waits.
    launch(&*t, "kernel 'make'", &sum, &[], &[constant]).unwrap();
    launch(&*s, "region 'r'", &region, &[x], &[y]).unwrap();
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
    let text = format!(
        "missing wait: node 'n0' in region 'r' (operation 2, stream 's') reads bytes 0 to {BYTES} of constant while \
         kernel 'make' (operation 1, stream 't') may still write them"
    );
    assert_eq!(d.texts(), [text]);
    // And so is memory that was given back.
    d.device.clear_races();
    d.device.deallocate(constant, BYTES);
    launch(&*s, "region 'r'", &region, &[x], &[y]).unwrap();
    d.finish(&*s).unwrap();
    assert!(d.texts()[0].contains("node 'n0' in region 'r'"), "{:?}", d.texts());
}

#[test]
fn two_launches_share_no_memory_that_nothing_orders() {
    let d = Device::checked();
    let (s, t, sum) = (d.stream("s"), d.stream("t"), d.sum(1));
    let memory = [d.memory("a"), d.memory("b"), d.memory("c"), d.memory("d"), d.memory("constant")];
    let region = compile(&d, &sum, memory[4], &READS).unwrap();
    for _ in 0..3 {
        launch(&*s, "region 'r'", &region, &[memory[0]], &[memory[1]]).unwrap();
        launch(&*t, "region 'r'", &region, &[memory[2]], &[memory[3]]).unwrap();
    }
    d.finish(&*s).unwrap();
    d.finish(&*t).unwrap();
    assert_eq!(d.texts(), [""; 0]);
}

#[test]
fn a_failure_names_the_region_and_the_node() {
    let d = Device::default();
    let (stream, fails) = (d.stream("s"), d.call(|| Err(weir_core::base::Error::new(Code::DataLoss, "no luck"))));
    let (x, y) = (d.memory("x"), d.memory("y"));
    let region = compile(&d, &fails, x, &READS).unwrap();
    launch(&*stream, "region 'r'", &region, &[x], &[y]).unwrap();
    let event = d.event();
    stream.record(&event).unwrap();
    while matches!(event.is_reached(), Ok(false)) {
        std::thread::yield_now();
    }
    let error = event.is_reached().unwrap_err();
    assert_eq!(error.code(), Code::DataLoss);
    assert!(error.message().ends_with("region 'r': node 'n0': no luck"), "{error}");
}

#[test]
fn regions_are_declined_or_fail_as_asked() {
    let with = |regions, fail_region| Device::new(Emulation { regions, fail_region, ..Emulation::default() });
    let d = with(Emulation::DECLINED_REGIONS, 0);
    let (x, sum) = (d.memory("x"), d.sum(1));
    let error = compile(&d, &sum, x, &READS).unwrap_err();
    assert_eq!((error.code(), d.device.counters().regions), (Code::Unimplemented, 0));
    assert_eq!(error.message(), "emulated:0: region 'r' is declined, as asked");
    let d = with(Emulation::ALL_REGIONS, 2);
    let (x, sum) = (d.memory("x"), d.sum(1));
    assert!(compile(&d, &sum, x, &READS).is_ok());
    assert_eq!(code(compile(&d, &sum, x, &READS)), Code::Internal);
    assert!(compile(&d, &sum, x, &READS).is_ok());
    assert_eq!(d.device.counters().regions, 2);
    // A constant that is not in its memory.
    assert_eq!(code(compile(&d, &sum, 4096, &READS)), Code::InvalidArgument);
}
