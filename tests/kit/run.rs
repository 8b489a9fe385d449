//! Tensors, runs on each kind of pool, and what a program reports.

use super::pools;
use std::mem::ManuallyDrop;
use weir_core::base::{Desc, Ref, Result, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, Tensor};
use weir_core::graph::{Program, ReportFormat, RunOptions};
use weir_core::threadpool::ThreadPool;

pub fn scalar() -> Desc {
    Desc::new(dtype::S32, &[1])
}

pub fn cpu() -> Ref<Engine> {
    Engine::create(DeviceKind::CPU, 0, None).unwrap()
}

pub fn tensor(engine: &Ref<Engine>, value: i32) -> Ref<Tensor> {
    let tensor = Tensor::create(engine.clone(), scalar()).unwrap();
    set_integer(&tensor, value);
    tensor
}

/// Gives a tensor of one integer another one.
pub fn set_integer(tensor: &Tensor, value: i32) {
    // SAFETY: the host's memory, and no run that uses the tensor is under way.
    unsafe { tensor.view().as_bytes_mut().write_integer(value) }
}

/// The integer of a tensor of one.
pub fn integer(tensor: &Tensor) -> i32 {
    // SAFETY: the host's memory, and no run that writes the tensor is under way.
    unsafe { tensor.view().as_bytes().read_integer() }
}

/// What `Program::bind` is given of a tensor.
pub fn lend(tensor: &Ref<Tensor>) -> ManuallyDrop<Ref<Tensor>> {
    // SAFETY: a second owner that is never dropped; the first one outlives the call that it is lent to.
    ManuallyDrop::new(unsafe { std::ptr::read(tensor) })
}

/// Runs in this thread.
pub fn execute(
    program: &Ref<Program>,
    inputs: &[Ref<Tensor>],
    outputs: &[Ref<Tensor>],
    options: &RunOptions,
) -> Result<()> {
    let (get_in, get_out) = (|i: usize| Ok(lend(&inputs[i])), |i: usize| Ok(lend(&outputs[i])));
    Program::bind(program, (inputs.len(), &get_in), (outputs.len(), &get_out))?.run(None, Some(options))
}

/// Runs a program of integers: as many outputs as it has.
pub fn run(program: &Ref<Program>, inputs: &[i32], options: &RunOptions) -> Result<Vec<i32>> {
    let engine = cpu();
    let inputs: Vec<_> = inputs.iter().map(|&value| tensor(&engine, value)).collect();
    let outputs: Vec<_> = program.outputs().iter().map(|_| tensor(&engine, -99)).collect();
    execute(program, &inputs, &outputs, options)?;
    Ok(outputs.iter().map(|tensor| integer(tensor)).collect())
}

pub fn on(pool: Option<&Ref<ThreadPool>>) -> RunOptions {
    RunOptions { threadpool: pool.cloned(), ..RunOptions::default() }
}

/// How many `all_pools` are.
pub const POOLS: usize = 6;

/// No pool, one that runs at once, one in a drawn order, and the last ones as WEIR_TEST_POOL says.
pub fn all_pools() -> [Option<Ref<ThreadPool>>; POOLS] {
    let seeded = pools::seeded(5, 3);
    [None, Some(ThreadPool::inline()), Some(seeded), Some(pools::of(1)), Some(pools::of(2)), Some(pools::of(4))]
}

/// How often `check` runs a program.
pub const RUNS_OF_CHECK: u64 = 3 * POOLS as u64;

/// Runs on every kind of pool, a few times: all agree with `expected`.
pub fn check(program: &Ref<Program>, inputs: &[i32], expected: &[i32]) {
    for (i, pool) in all_pools().iter().enumerate() {
        for _ in 0..3 {
            assert_eq!(run(program, inputs, &on(pool.as_ref())).unwrap(), expected, "pool {i}, inputs {inputs:?}");
        }
    }
}

/// A whole number in the JSON of a program's report.
pub fn fact(program: &Program, key: &str) -> usize {
    let report = program.report(ReportFormat::Json);
    let at = report.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {report}")) + key.len() + 3;
    report[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}
