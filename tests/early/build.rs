//! Graphs with kernels that complete when a door is opened, and runs of them that must end in time.

use super::pools;
use std::mem::ManuallyDrop;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir::base::{Desc, Ref, Result, dtype};
use weir::device::DeviceKind;
use weir::engine::{BoundKernel, Engine, KernelAttr, Tensor};
use weir::graph::{CompileOptions, Graph, NodeId, Program, ReportFormat, RunOptions, ValueId};
use weir::kernel::{Completion, Kernel, KernelContext};
use weir::threadpool::ThreadPool;

pub fn scalar() -> Desc {
    Desc::new(dtype::S32, &[1])
}

pub fn cpu() -> Ref<Engine> {
    Engine::create(DeviceKind::Cpu, 0, None).unwrap()
}

/// Lets as many calls of late kernels complete as it was opened times.
#[derive(Default)]
pub struct Door(pub Mutex<(usize, Vec<Held>)>);

/// A call that waits at the door, and how it will end.
type Held = (Completion, Result<()>);

impl Door {
    pub fn open(&self) {
        let mut door = self.0.lock().unwrap();
        match door.1.pop() {
            Some((done, result)) => {
                drop(door);
                done.done(result).unwrap();
            }
            None => door.0 += 1,
        }
    }

    /// For all who come and have come.
    pub fn open_wide(&self) {
        let held = {
            let mut door = self.0.lock().unwrap();
            door.0 = usize::MAX / 2;
            std::mem::take(&mut door.1)
        };
        held.into_iter().for_each(|(done, result)| done.done(result).unwrap());
    }

    pub fn pass(&self, done: Completion, result: Result<()>) {
        let mut door = self.0.lock().unwrap();
        if door.0 == 0 {
            door.1.push((done, result));
        } else {
            door.0 -= 1;
            drop(door);
            done.done(result).unwrap();
        }
    }
}

pub type Function = dyn Fn(&[i32]) -> Result<i32> + Send + Sync;

/// One integer from several, now or when the door is open.
struct Op {
    inputs: usize,
    f: Box<Function>,
    door: Option<Arc<Door>>,
}

impl Kernel for Op {
    fn name(&self) -> &str {
        "op"
    }
    fn num_inputs(&self) -> usize {
        self.inputs
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![scalar()])
    }
    fn in_place(&self) -> bool {
        true
    }
    fn cost_ns(&self, _: &[Desc], _: &[Desc]) -> u64 {
        100_000
    }
    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let inputs: Vec<i32> = context.inputs().iter().map(|view| view.read_integer()).collect();
        context.outputs()[0].write_integer((self.f)(&inputs)?);
        Ok(())
    }
    fn is_async(&self) -> bool {
        self.door.is_some()
    }
    fn start(&self, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let result = self.compute(context);
        self.door.as_ref().unwrap().pass(done, result);
        Ok(())
    }
}

pub struct Builder {
    pub engine: Ref<Engine>,
    pub graph: Graph,
    nodes: usize,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        Builder { engine: cpu(), graph: Graph::new(name), nodes: 0 }
    }

    /// With so many inputs.
    pub fn of(name: &str, inputs: usize) -> (Builder, Vec<ValueId>) {
        let mut builder = Builder::new(name);
        let inputs = (0..inputs).map(|_| builder.input()).collect();
        (builder, inputs)
    }

    pub fn name(&mut self) -> String {
        self.nodes += 1;
        format!("n{}", self.nodes)
    }

    pub fn input(&mut self) -> ValueId {
        let name = self.name();
        self.graph.add_input(&name, scalar()).unwrap()
    }

    pub fn add(
        &mut self,
        inputs: &[ValueId],
        door: Option<&Arc<Door>>,
        f: impl Fn(&[i32]) -> Result<i32> + Send + Sync + 'static,
    ) -> ValueId {
        let kernel = Op { inputs: inputs.len(), f: Box::new(f), door: door.cloned() };
        let kernel = BoundKernel::create(self.engine.clone(), Arc::new(kernel), &KernelAttr::default());
        let name = self.name();
        self.graph.add_kernel(&name, kernel, inputs, 1).unwrap().output(0)
    }

    pub fn op(&mut self, inputs: &[ValueId], f: impl Fn(&[i32]) -> i32 + Send + Sync + 'static) -> ValueId {
        self.add(inputs, None, move |x| Ok(f(x)))
    }

    pub fn sum(&mut self, inputs: &[ValueId]) -> ValueId {
        self.op(inputs, |x| x.iter().sum())
    }

    /// Gives the sum of its inputs when the door is open.
    pub fn late(&mut self, inputs: &[ValueId], door: &Arc<Door>) -> ValueId {
        self.add(inputs, Some(door), |x| Ok(x.iter().sum()))
    }

    /// Gives the sum of its inputs, and opens the door.
    pub fn opening(&mut self, inputs: &[ValueId], door: &Arc<Door>) -> ValueId {
        let door = Arc::clone(door);
        self.op(inputs, move |x| {
            door.open();
            x.iter().sum()
        })
    }

    pub fn output(&mut self, value: ValueId) {
        let name = self.name();
        self.graph.add_output(&name, value).unwrap();
    }

    pub fn giving(mut self, outputs: &[ValueId]) -> Graph {
        outputs.iter().for_each(|&value| self.output(value));
        self.graph
    }

    pub fn compile(&self) -> Ref<Program> {
        let options = CompileOptions { hop_ns: Some(0), ..CompileOptions::default() };
        Program::compile(&self.graph, vec![self.engine.clone()], &options).unwrap()
    }
}

pub fn node_of(value: ValueId) -> NodeId {
    NodeId::from(u64::from(value) & !0xffff)
}

pub fn fact(program: &Program, key: &str) -> usize {
    let report = program.report(ReportFormat::Json);
    let at = report.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {report}")) + key.len() + 3;
    report[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

pub fn tensor(engine: &Ref<Engine>, value: i32) -> Ref<Tensor> {
    let tensor = Tensor::create(engine.clone(), scalar()).unwrap();
    tensor.view().write_integer(value);
    tensor
}

pub fn run_with(program: &Ref<Program>, inputs: &[i32], outputs: usize, options: &RunOptions) -> Result<Vec<i32>> {
    let engine = cpu();
    let inputs: Vec<_> = inputs.iter().map(|&value| tensor(&engine, value)).collect();
    let outputs: Vec<_> = (0..outputs).map(|_| tensor(&engine, -99)).collect();
    // SAFETY: the copies are never dropped, and do not outlive the vectors.
    let borrow = |tensor: &Ref<Tensor>| Ok(ManuallyDrop::new(unsafe { std::ptr::read(tensor) }));
    let (get_in, get_out) = (|i: usize| borrow(&inputs[i]), |i: usize| borrow(&outputs[i]));
    Program::bind(program, (inputs.len(), &get_in), (outputs.len(), &get_out))?.run(None, Some(options))?;
    Ok(outputs.iter().map(|tensor| tensor.view().read_integer()).collect())
}

pub fn pools() -> Vec<Option<Ref<ThreadPool>>> {
    vec![
        None,
        Some(ThreadPool::inline()),
        Some(ThreadPool::seeded(7, 2).unwrap()),
        Some(pools::of(2)),
        Some(pools::of(1)),
    ]
}

/// What does not end in time has waited for what it did not need.
pub fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(Duration::from_secs(20)).expect("ends")
}

/// Each of these cases several times on each pool.
pub fn check(program: &Ref<Program>, cases: &[(&[i32], &[i32])]) {
    let cases: Vec<(Vec<i32>, Vec<i32>)> = cases.iter().map(|(x, y)| (x.to_vec(), y.to_vec())).collect();
    for (i, pool) in pools().into_iter().enumerate() {
        let (program, cases) = (Ref::clone(program), cases.clone());
        in_time(move || {
            let options = RunOptions { threadpool: pool, ..RunOptions::default() };
            for round in 0..20 {
                let (inputs, expected) = &cases[round % cases.len()];
                let outputs = run_with(&program, inputs, expected.len(), &options).unwrap();
                assert_eq!(outputs, *expected, "pool {i}, round {round}, inputs {inputs:?}");
            }
        });
    }
}
