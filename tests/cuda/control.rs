//! Branches and loops in recordings, as conditional nodes of the driver's: what they compute with each driver that has
//! them, the nodes that they take, edges that are left out, and calls of the driver that fail.

use crate::bench::{Bench as Engine, KERNELS, input, kernel_desc, number, output};
use crate::kit::{fake, only_with_the_fake, with_driver};
use crate::random::Random;
use crate::recordings::{
    BYTES, Does, Drawn, LEN, Node, SALTS, Site, cond, connect, draw, less, nested, node, of_integers, repeat, run, sum,
    switch, without_each_edge, word,
};
use std::sync::Arc;
use weir_core::abi::{weir_cuda_argument, weir_cuda_kernel_desc, weir_cuda_source_value};
use weir_core::base::time::Deadline;
use weir_core::base::{Code, Desc, Ref, Result, dtype};
use weir_core::device::{
    Accelerator, CUDA_KERNEL, DeviceKernel, DeviceStream, DeviceStreamAttr, Fill, HostAddress, Integer, Launch,
    Location, Operation, Recipe, RecordedLoop, RecordedStep, RecordedWork, Recording, Transfer,
};
use weir_core::engine;
use weir_core::memory::View;

const SUM: &str = "
.version 6.3
.target sm_75
.address_size 64
.visible .entry sum (.param .u64 out, .param .u64 a, .param .u64 b, .param .s32 salt)
{
    .reg .u64 %out, %a, %b, %at;
    .reg .s32 %x, %y, %salt;
    .reg .u32 %thread;
    ld.param.u64 %out, [out];
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.s32 %salt, [salt];
    mov.u32 %thread, %tid.x;
    mul.wide.u32 %at, %thread, 4;
    add.u64 %out, %out, %at;
    add.u64 %a, %a, %at;
    add.u64 %b, %b, %at;
    ld.global.s32 %x, [%a];
    ld.global.s32 %y, [%b];
    add.s32 %x, %x, %y;
    add.s32 %x, %x, %salt;
    st.global.s32 [%out], %x;
    ret;
}
";

const VERSIONS: [&str; 3] = ["12040", "12080", "13000"];

/// A device with cells that have values.
struct Bench {
    // The last to go.
    stream: Box<dyn DeviceStream>,
    kernels: Vec<(i32, Arc<dyn DeviceKernel>)>,
    addresses: Vec<usize>,
    cells: Vec<i32>,
    engine: Engine,
}

impl Bench {
    fn new(cells: usize) -> Bench {
        let engine = Engine::new();
        let device = engine.engine.accelerator().unwrap();
        let stream = device.stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap();
        let kernels = SALTS.iter().map(|&salt| (salt, sum_kernel(device, salt))).collect();
        let addresses = (0..cells).map(|i| device.allocate(BYTES, &format!("cell {i}")).unwrap()).collect();
        let mut bench = Bench { stream, kernels, addresses, cells: Vec::new(), engine };
        bench.set(&vec![0; cells]);
        bench
    }

    fn device(&self) -> &dyn Accelerator {
        self.engine.engine.accelerator().unwrap()
    }

    fn site(&self) -> Site<'_> {
        Site { device: self.device(), cells: self.addresses.clone(), kernels: self.kernels.clone() }
    }

    fn finish(&self) -> Result<()> {
        let event = self.device().event(false)?;
        self.stream.record(&event)?;
        assert!(event.synchronize(Deadline::after(30_000_000_000))?, "30 seconds were not enough");
        Ok(())
    }

    fn set(&mut self, cells: &[i32]) {
        let arrays: Vec<[i32; LEN]> = cells.iter().map(|&value| [value; LEN]).collect();
        for (array, &address) in arrays.iter().zip(&self.addresses) {
            // SAFETY: the array is there until the copy is done.
            let from = Location::Host(unsafe { HostAddress::new(array.as_ptr() as usize) });
            let to = Location::Device(address);
            self.stream.copy(&Transfer { name: "upload", to, from, bytes: BYTES }).unwrap();
        }
        self.finish().unwrap();
        self.cells = cells.to_vec();
    }

    fn read(&self) -> Vec<i32> {
        let mut found = vec![[0i32; LEN]; self.cells.len()];
        for (array, &address) in found.iter_mut().zip(&self.addresses) {
            // SAFETY: the array is there until the copy is done.
            let to = Location::Host(unsafe { HostAddress::new(array.as_mut_ptr() as usize) });
            let from = Location::Device(address);
            self.stream.copy(&Transfer { name: "download", to, from, bytes: BYTES }).unwrap();
        }
        self.finish().unwrap();
        let one = |found: &[i32; LEN]| {
            assert!(found.iter().all(|&value| value == found[0]), "{found:?}");
            found[0]
        };
        found.iter().map(one).collect()
    }

    /// The recording does what the model says, each of some times.
    fn check(&mut self, nodes: &[Node], times: usize) {
        let executable = self.site().record("r", nodes).unwrap();
        for time in 0..times {
            self.stream.replay(&executable, "a recording").unwrap();
            run(nodes, &mut self.cells);
            assert_eq!(self.read(), self.cells, "time {time}: {nodes:?}");
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.addresses.iter().for_each(|&address| self.device().deallocate(address, BYTES));
    }
}

/// out[i] = a[i] + b[i] + salt
fn sum_kernel(device: &dyn Accelerator, salt: i32) -> Arc<dyn DeviceKernel> {
    let salt = [salt];
    kernel(device, SUM, c"sum", &[output(0), input(0), input(1), number(&salt)], 2)
}

fn kernel(
    device: &dyn Accelerator,
    source: &str,
    entry: &std::ffi::CStr,
    arguments: &[weir_cuda_argument],
    inputs: usize,
) -> Arc<dyn DeviceKernel> {
    let desc = weir_cuda_kernel_desc {
        block: [LEN as u32, 1, 1],
        ..kernel_desc(source, weir_cuda_source_value::WEIR_CUDA_SOURCE_PTX, entry, arguments, inputs)
    };
    // SAFETY: the bytes of a plain struct.
    let attributes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&desc).cast::<u8>(), size_of_val(&desc)) };
    let name = entry.to_str().unwrap();
    let operation = Operation::Named(CUDA_KERNEL, attributes);
    let recipe = Recipe { name, operation, num_inputs: inputs, num_outputs: 1, host: None };
    device.kernel(&recipe).unwrap()
}

/// Runs `body` with each of these drivers.
fn with_each(versions: &[&str], more: &[(&str, &str)], body: impl Fn()) {
    for version in versions {
        if with_driver(&[&[("VERSION", *version)], more].concat(), &body).is_none() {
            return;
        }
    }
}

#[test]
fn recordings_compute_what_one_step_after_the_other_does() {
    with_each(&VERSIONS, &[("SEED", "1")], || {
        let mut bench = Bench::new(40);
        let zeros = |mut cells: Vec<i32>| {
            cells.resize(40, 0);
            cells
        };
        for (cells, nodes, expected) in of_integers().into_iter().chain([nested()]) {
            bench.set(&zeros(cells.clone()));
            bench.check(&nodes, 1);
            assert_eq!(bench.cells, zeros(expected), "{nodes:?}");
            bench.set(&zeros(cells));
            bench.check(&nodes, 2);
        }
        for seed in 0..24 {
            fake::reseed(1 + seed);
            let Drawn { nodes, cells } = draw(&mut Random::new(seed));
            assert!(cells <= 40, "{cells}");
            bench.set(&(0..40).map(|i| if i == 0 { 0 } else { i % 5 - 1 }).collect::<Vec<_>>());
            bench.check(&nodes, 2);
        }
    });
}

/// Without a seed branches of a graph run at the same time.
#[test]
fn loops_side_by_side_run_at_any_time() {
    with_each(&["13000"], &[], || {
        let mut bench = Bench::new(9);
        let mut nodes: Vec<Node> = (0..4)
            .map(|i| {
                repeat(&format!("loop {i}"), word(1 + i), vec![less(1 + i, &[]), sum(5 + i, 1 + i, 5 + i, 1, &[])], &[])
            })
            .collect();
        connect(&mut nodes);
        bench.set(&[0, 3, 5, 0, 9, 0, 0, 0, 0]);
        bench.check(&nodes, 3);
    });
}

/// Nodes of each kind that a recording was made of.
fn nodes_of(bench: &Bench, nodes: &[Node]) -> [u64; 4] {
    const KINDS: [&str; 4] =
        ["cuGraphAddKernelNode_v2", "cuGraphAddNode_v2", "cuGraphAddEmptyNode", "cuGraphAddMemsetNode"];
    // What is found out once for the context is no part of it.
    bench.device().control_flow().unwrap();
    let before = KINDS.map(fake::count);
    drop(bench.site().record("r", nodes).unwrap());
    let mut counts = KINDS.map(fake::count);
    counts.iter_mut().zip(before).for_each(|(count, before)| *count -= before);
    counts
}

#[test]
fn a_branch_takes_the_nodes_that_the_driver_has() {
    with_each(&VERSIONS, &[], || {
        let bench = Bench::new(4);
        let has_choices = std::env::var("FAKE_CUDA_VERSION").is_ok_and(|version| version != "12040");
        let one = || vec![sum(2, 2, 3, 0, &[])];
        let branch = |lists| [switch("s", word(1), lists, &[])];
        let both = nodes_of(&bench, &[cond("c", word(1), [one(), one()], &[])]);
        assert_eq!(both, if has_choices { [3, 1, 0, 0] } else { [4, 2, 0, 0] });
        assert_eq!(nodes_of(&bench, &[cond("c", word(1), [vec![], one()], &[])]), [2, 1, 0, 0]);
        let three = nodes_of(&bench, &branch(vec![one(), one(), one()]));
        assert_eq!(three, if has_choices { [4, 1, 0, 0] } else { [6, 3, 0, 0] });
        let gap = nodes_of(&bench, &branch(vec![one(), vec![], one()]));
        assert_eq!(gap, if has_choices { [3, 1, 1, 0] } else { [4, 2, 0, 0] });
        assert_eq!(nodes_of(&bench, &branch(vec![vec![], vec![], vec![]])), [0, 0, 1, 0]);
        assert_eq!(nodes_of(&bench, &branch(vec![one()])), [1, 0, 1, 0], "one list is done in any case");
        assert_eq!(nodes_of(&bench, &[repeat("l", word(1), one(), &[])]), [3, 1, 0, 0]);
        // Inside, a kernel fills.
        let fill = || vec![node("f", Does::Fill { cell: 2, value: 1 }, &[])];
        assert_eq!(nodes_of(&bench, &fill()), [0, 0, 0, 1]);
        assert_eq!(nodes_of(&bench, &[repeat("l", word(1), fill(), &[])]), [3, 1, 0, 0]);
    });
}

/// There are no conditional nodes, and `check` has the text that says so; other recordings are made.
fn has_none(settings: &[(&str, &str)], check: impl FnOnce(&str)) -> Option<String> {
    if !only_with_the_fake() {
        return None;
    }
    with_driver(settings, || {
        let bench = Bench::new(2);
        let nodes = [repeat("l", word(1), vec![less(1, &[])], &[])];
        let errors = [bench.device().control_flow().unwrap_err(), bench.site().record("r", &nodes).unwrap_err()];
        assert_eq!(errors[0].message(), errors[1].message());
        assert!(errors.iter().all(|error| error.code() == Code::Unimplemented), "{errors:?}");
        check(errors[0].message());
        drop(bench.site().record("r", &[less(1, &[])]).unwrap());
    })
}

#[test]
fn old_drivers_have_none_and_say_so() {
    for version in ["12000", "12020"] {
        let check = |text: &str| {
            let version = if std::env::var("FAKE_CUDA_VERSION").unwrap() == "12000" { "12.0" } else { "12.2" };
            assert_eq!(text, format!("the driver, of CUDA {version}, has no conditional nodes"));
        };
        if has_none(&[("VERSION", version)], check).is_none() {
            return;
        }
    }
}

#[test]
fn drivers_without_one_of_the_functions_have_none() {
    for function in ["cuGraphAddNode_v2", "cuGraphConditionalHandleCreate"] {
        let check = |text: &str| assert_eq!(text, "the driver, of CUDA 13.0, has no conditional nodes");
        if has_none(&[("WITHOUT", function)], check).is_none() {
            return;
        }
    }
}

#[test]
fn a_driver_that_does_not_load_the_kernels_has_none() {
    // The modules of the sums come before it.
    let fail = format!("cuModuleLoadDataEx:{}:222", SALTS.len() + 1);
    has_none(&[("FAIL", &fail)], |text| {
        let start = "the driver, of CUDA 13.0, does not load the kernels that set conditions: engine cuda:0: module \
                     'control': cuModuleLoadDataEx: ";
        assert!(text.starts_with(start), "{text}");
    });
}

#[test]
fn a_driver_that_refuses_the_trial_has_none_and_is_asked_once() {
    has_none(&[("FAIL", "cuGraphInstantiateWithFlags:1:801")], |text| {
        let start = "the driver, of CUDA 13.0, makes no conditional nodes: engine cuda:0: recording 'trial': its graph: \
                     cuGraphInstantiateWithFlags: ";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(fake::count("cuGraphInstantiateWithFlags"), 1);
    });
}

/// A recording in which all is done: the first time the cond's one list, then the other one.
fn all_done() -> Vec<Node> {
    let first = vec![sum(2, 3, 4, 1, &[]), sum(4, 4, 5, 1, &[]), node("copy", Does::Copy { to: 6, from: 5 }, &[])];
    let second = vec![
        sum(0, 0, 7, 2, &[]),
        node("fill", Does::Fill { cell: 6, value: 2 }, &[]),
        repeat("inner", word(7), vec![sum(6, 7, 8, 0, &[]), sum(8, 8, 3, 0, &[]), less(7, &[])], &[]),
        sum(8, 6, 2, 0, &[]),
    ];
    let lists = [second, first];
    let body = vec![
        sum(1, 0, 9, -1, &[]),
        cond("cond", word(9), lists, &[]),
        switch("switch", word(1), vec![vec![], vec![sum(6, 2, 5, 1, &[])], vec![sum(5, 6, 8, 2, &[])]], &[]),
        less(1, &[]),
    ];
    let mut nodes = vec![sum(0, 0, 1, 2, &[]), repeat("outer", word(1), body, &[]), sum(5, 8, 9, 0, &[])];
    connect(&mut nodes);
    nodes
}

#[test]
fn an_edge_that_is_left_out_is_a_race() {
    with_each(&VERSIONS, &[("SEED", "3"), ("RACES", "report")], || {
        let mut bench = Bench::new(10);
        let (nodes, cells) = (all_done(), [0, 0, 1, 1, 1, 1, 1, 0, 1, 0]);
        bench.set(&cells);
        bench.check(&nodes, 2);
        assert_eq!(fake::races(), 0);
        let mut tried = 0;
        without_each_edge(&nodes, &mut |changed, before, then| {
            // Two that touch are found in whichever order they come.
            let executable = bench.site().record("less", changed).unwrap();
            let known = fake::races();
            bench.stream.replay(&executable, "a recording").unwrap();
            bench.finish().unwrap();
            assert!(fake::races() > known, "{} before {}", before.name, then.name);
            bench.set(&cells);
            tried += 1;
        });
        assert!(tried >= 12, "{tried}");
    });
}

/// How often each function is called as something is done.
fn calls(f: impl FnOnce()) -> Vec<(String, u64)> {
    let before = fake::counts();
    f();
    let since = fake::counts().into_iter().map(|(name, count)| {
        let before = before.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        (name, count - before)
    });
    let is_left = |name: &str| ["Ctx", "GetError", "Exchange"].iter().any(|part| name.contains(part));
    // An upload that fails is left to the first launch.
    let is_left = |name: &str| is_left(name) || ["Destroy", "Unload", "Upload"].iter().any(|part| name.contains(part));
    since.filter(|(name, count)| *count > 0 && !is_left(name)).collect()
}

#[test]
fn a_call_that_fails_as_a_graph_is_made_leaves_nothing_behind() {
    with_each(&VERSIONS, &[], || {
        let mut bench = Bench::new(10);
        let nodes = all_done();
        bench.device().control_flow().unwrap();
        let live = fake::live(None);
        let calls = calls(|| drop(bench.site().record("r", &nodes).unwrap()));
        assert!(calls.iter().any(|(name, _)| name == "cuGraphConditionalHandleCreate"), "{calls:?}");
        let mut tried = 0;
        for (function, count) in &calls {
            for (call, code) in (1..=*count).flat_map(|call| [1, 2].map(|code| (call, code))) {
                fake::fail(function, call, code);
                let error = bench.site().record("r", &nodes).unwrap_err();
                let name = function.split("_v").next().unwrap();
                let said = error.message().contains(name.trim_end_matches("WithFlags"));
                assert!(said && error.message().starts_with("engine cuda:0: recording 'r': "), "{function}: {error}");
                fake::fail(function, 0, -1);
                assert_eq!(fake::live(None), live, "{function} {call}");
                tried += 1;
            }
        }
        assert!(tried > 60, "{tried}");
        bench.set(&[0, 0, 1, 1, 1, 1, 1, 0, 1, 0]);
        bench.check(&nodes, 1);
    });
}

#[test]
fn a_call_that_fails_as_it_is_found_out_leaves_nothing_behind() {
    with_driver(&[], || {
        let calls = calls(|| {
            let engine = Engine::new();
            engine.engine.accelerator().unwrap().control_flow().unwrap();
        });
        let of_it = ["cuModule", "cuGraph"];
        let mut tried = 0;
        for (function, count) in calls.iter().filter(|(name, _)| of_it.iter().any(|of| name.starts_with(of))) {
            for call in 1..=*count {
                let engine = Engine::new();
                let device = engine.engine.accelerator().unwrap();
                let live = fake::live(None);
                fake::fail(function, call, 2);
                // Out of memory is not for good.
                assert_eq!(device.control_flow().unwrap_err().code(), Code::ResourceExhausted, "{function} {call}");
                assert_eq!(fake::live(None), live, "{function} {call}");
                device.control_flow().unwrap();
                tried += 1;
            }
        }
        assert!(tried > 8, "{tried}: {calls:?}");
    });
}

#[test]
fn a_failure_inside_is_the_streams() {
    with_driver(&[("LEAKS", "off")], || {
        {
            let bench = Bench::new(2);
            let device = bench.device();
            let fails = kernel(device, KERNELS, c"fail", &[], 0);
            let desc = Desc::new(dtype::S32, &[LEN as i64]);
            // SAFETY: the device's memory, which the bench keeps; the host only hands the address on.
            let out = [unsafe { View::new(bench.addresses[1] as *mut u8, BYTES, desc) }];
            let launch = Launch { name: "kernel 'fails'", kernel: &fails, inputs: &[], outputs: &out };
            let one = RecordedWork::Fill(Fill { name: "one", address: bench.addresses[1], bytes: BYTES, value: 1 });
            let body = [RecordedStep { work: RecordedWork::Launch(launch), after: &[] }];
            let predicate = Integer { address: bench.addresses[1], dtype: dtype::S32 }.into();
            let again = RecordedWork::Loop(RecordedLoop { name: "loop 'w'", predicate, body: &body, behind: None });
            let steps = [RecordedStep { work: one, after: &[] }, RecordedStep { work: again, after: &[0] }];
            let executable = device.record(&Recording { name: "r", steps: &steps }).unwrap();
            bench.stream.replay(&executable, "a recording").unwrap();
            assert_eq!(bench.finish().unwrap_err().code(), Code::DeviceLost);
            assert_eq!(device.control_flow().map_err(|error| error.code()), Ok(()), "it was found out before");
            assert_eq!(device.record(&Recording { name: "r", steps: &steps }).unwrap_err().code(), Code::DeviceLost);
        }
        let mut bench = Bench::new(2);
        bench.set(&[0, 3]);
        bench.check(&[repeat("l", word(1), vec![less(1, &[])], &[])], 1);
    });
}

#[test]
fn an_update_is_for_steps_outside() {
    with_driver(&[("SEED", "4")], || {
        let mut bench = Bench::new(4);
        bench.set(&[0, 2, 0, 40]);
        let body = vec![less(1, &[]), sum(2, 2, 2, 1, &[])];
        let nodes = [sum(3, 3, 2, 1, &[]), repeat("loop", word(1), body, &[0]), sum(2, 2, 3, 0, &[1])];
        let executable = bench.site().record("r", &nodes).unwrap();
        let other = [sum(3, 0, 2, 1, &[]), repeat("loop", word(2), vec![], &[0]), sum(2, 0, 3, 0, &[1])];
        bench.site().with(&other, Vec::new(), &mut |steps| {
            (0..3).for_each(|at| executable.update(at, &steps[at].work).unwrap());
        });
        bench.stream.replay(&executable, "a recording").unwrap();
        run(&[other[0].clone(), nodes[1].clone(), other[2].clone()], &mut bench.cells);
        assert_eq!(bench.read(), bench.cells);
    });
}

/// Copies inside may be from and to pinned memory, and no other of the host's.
#[test]
fn copies_inside_are_of_pinned_memory() {
    with_driver(&[], || {
        let mut bench = Bench::new(2);
        bench.set(&[0, 1]);
        let device = bench.device();
        let pinning = device.pinning().unwrap();
        let pinned = pinning.allocate_host(BYTES, "pinned").unwrap();
        let pageable: Ref<engine::Tensor> = bench.engine.on_host(|_| 0);
        let record = |to: usize| {
            // SAFETY: memory that is there until the end.
            let to = Location::Host(unsafe { HostAddress::new(to) });
            let from = Location::Device(bench.addresses[1]);
            let copy = RecordedWork::Copy(Transfer { name: "copy", to, from, bytes: BYTES });
            let zero = RecordedWork::Fill(Fill { name: "zero", address: bench.addresses[1], bytes: BYTES, value: 0 });
            let body = [RecordedStep { work: copy, after: &[] }, RecordedStep { work: zero, after: &[0] }];
            let predicate = Integer { address: bench.addresses[1], dtype: dtype::S32 }.into();
            let again = RecordedWork::Loop(RecordedLoop { name: "loop", predicate, body: &body, behind: None });
            let steps = [RecordedStep { work: again, after: &[] }];
            device.record(&Recording { name: "r", steps: &steps })
        };
        assert_eq!(record(pageable.data() as usize).unwrap_err().code(), Code::InvalidArgument);
        bench.stream.replay(&record(pinned).unwrap(), "a recording").unwrap();
        bench.finish().unwrap();
        // SAFETY: so many bytes that were allocated above, and what writes them is done.
        let found = unsafe { std::ptr::with_exposed_provenance::<[i32; LEN]>(pinned).read() };
        assert_eq!(found, [1; LEN]);
        pinning.deallocate_host(pinned, BYTES);
    });
}
