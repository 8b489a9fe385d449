//! Operations use the values of a run where they are, and nothing of the host's; and what a transport that was given up
//! still writes meets no later run.

use super::*;
use kit::integers::Builder;
use kit::run::{on, run};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};
use weir_core::base::{Code, Desc};
use weir_core::engine::Tensor;
use weir_core::graph::ValueId;
use weir_core::kernel::{KernelContext, Outputs};

/// One rank that does as it is told: its sums are its inputs, and may never be over.
struct Alone {
    info: TransportInfo,
    is_stuck: AtomicBool,
    sent: AtomicPtr<u8>,
    received: AtomicPtr<u8>,
    /// What has begun, in order, where a start takes its time.
    order: Mutex<Vec<&'static str>>,
    start_ns: AtomicU64,
}

impl Alone {
    fn create() -> Arc<Alone> {
        let mut info = LocalTransport::create(1).remove(0).info().clone();
        info.flags &= !(weir_comm_flags::WEIR_COMM_ABORT_RELEASES as u64);
        info.has_control = false;
        Arc::new(Alone {
            info,
            is_stuck: AtomicBool::new(false),
            sent: AtomicPtr::default(),
            received: AtomicPtr::default(),
            order: Mutex::default(),
            start_ns: AtomicU64::new(0),
        })
    }

    /// As MPI does after an operation was given up.
    fn writes_late(&self) {
        // SAFETY: four bytes of an operation that was never over, which are the transport's for good.
        unsafe { self.received.load(SeqCst).cast::<i32>().write(0x6e6e_6e6e) };
    }
}

impl Transport for Alone {
    fn info(&self) -> &TransportInfo {
        &self.info
    }
    fn start(&self, operation: &CommOperation) -> Result<Token, TransportFailure> {
        let [from, to] = [&operation.send, &operation.recv]
            .map(|part| part.as_ref().map(|part| part.block.at(&part.bytes)).unwrap());
        // SAFETY: both parts are the operation's, and of one size.
        unsafe { to.copy_from(from, operation.recv.as_ref().unwrap().bytes.len()) };
        self.sent.store(from, SeqCst);
        self.received.store(to, SeqCst);
        self.order.lock().unwrap().push("sum");
        work(self.start_ns.load(SeqCst));
        Ok(Token(1))
    }
    fn test(&self, _: Token) -> Result<bool, TransportFailure> {
        Ok(!self.is_stuck.load(SeqCst))
    }
    fn control_send(&self, _: usize, _: &Message) -> Result<(), TransportFailure> {
        Ok(())
    }
    fn control_poll(&self) -> Result<Option<(usize, Message)>, TransportFailure> {
        Ok(None)
    }
    fn abort(&self) {}
    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        unreachable!()
    }
    fn split(&self, _: i32, _: i32) -> Result<Option<Arc<dyn Transport>>> {
        unreachable!()
    }
    fn recover(&self) -> Result<Arc<dyn Transport>> {
        unreachable!()
    }
}

fn work(ns: u64) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_nanos(ns) {}
}

/// Hands on its input, and tells where it found it and where it has put it.
struct Spy(Arc<Mutex<Vec<[usize; 2]>>>);

impl Kernel for Spy {
    fn name(&self) -> &str {
        "spy"
    }
    fn num_inputs(&self) -> usize {
        1
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(inputs.to_vec())
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let places = [context.inputs()[0].data().addr(), context.output_data(0).addr()];
        self.0.lock().unwrap().push(places);
        outputs.only().write_bytes().copy_from_slice(context.input(0).read_bytes());
        Ok(())
    }
}

fn spy(builder: &mut Builder, of: ValueId, seen: &Arc<Mutex<Vec<[usize; 2]>>>) -> ValueId {
    let kernel: Arc<dyn Kernel> = Arc::new(Spy(Arc::clone(seen)));
    let kernel = BoundKernel::create(builder.engine.clone(), kernel, &KernelOptions::default()).unwrap();
    let name = builder.name();
    builder.graph.add_kernel(&name, kernel, &[of], 1).unwrap().output(0)
}

fn sum(builder: &mut Builder, comm: &Ref<Communicator>, of: ValueId) -> ValueId {
    let name = builder.name();
    builder.graph.add_kernel(&name, kernel(comm, SUM), &[of], 1).unwrap().output(0)
}

#[test]
fn values_of_a_run_are_used_where_they_are() {
    let transport = Alone::create();
    let comm = Communicator::create(transport.clone(), named("dp")).unwrap();
    let (mut builder, values) = Builder::of("inside", 1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let made = spy(&mut builder, values[0], &seen);
    let summed = sum(&mut builder, &comm, made);
    let used = spy(&mut builder, summed, &seen);
    builder.output(used);
    let program = builder.compile();
    for round in 0..3 {
        assert_eq!(run(&program, &[round], &on(None)).unwrap(), [round]);
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen[0][1], transport.sent.load(SeqCst).addr(), "the input is where its maker has put it");
        assert_eq!(seen[1][0], transport.received.load(SeqCst).addr(), "the output is where its reader finds it");
    }
}

/// Where an operation was that took the run's own input and output: whether they are the host's tensors.
fn uses_hosts(transport: &Alone, tensors: [&Ref<Tensor>; 2]) -> [bool; 2] {
    let at = |place: &AtomicPtr<u8>, tensor: &Tensor| place.load(SeqCst) == tensor.view().data();
    [at(&transport.sent, tensors[0]), at(&transport.received, tensors[1])]
}

/// They may end with the run, so they are copied, unless the host has promised that they stay.
#[test]
fn tensors_of_the_host_are_lent_as_promised() {
    for do_tensors_stay in [false, true] {
        let transport = Alone::create();
        let comm = Communicator::create(transport.clone(), CommOptions { do_tensors_stay, ..named("dp") }).unwrap();
        let (mut builder, values) = Builder::of("direct", 1);
        let summed = sum(&mut builder, &comm, values[0]);
        builder.output(summed);
        let program = builder.compile();
        let [input, output] = [7, 0].map(|value| kit::run::tensor(&builder.engine, value));
        let (inputs, outputs) = (std::slice::from_ref(&input), std::slice::from_ref(&output));
        for _ in 0..2 {
            kit::run::set_integer(&output, 0);
            kit::run::execute(&program, inputs, outputs, &on(None)).unwrap();
            assert_eq!(kit::run::integer(&output), 7);
            assert_eq!(uses_hosts(&transport, [&input, &output]), [do_tensors_stay; 2]);
        }
        // As a node of another program: its input is that program's value.
        let (mut builder, values) = Builder::of("around", 1);
        let made = builder.op(&[values[0]], |x| x[0] + 1);
        let used = builder.graph.add_program("inner", &program, &[made], 1).unwrap().output(0);
        let last = builder.op(&[used], |x| x[0] + 1);
        builder.output(last);
        let around = builder.compile();
        let seen = transport.sent.load(SeqCst);
        kit::run::execute(&around, inputs, outputs, &on(None)).unwrap();
        assert_eq!(kit::run::integer(&output), 9);
        assert_eq!(uses_hosts(&transport, [&input, &output]), [false; 2]);
        assert!(do_tensors_stay || transport.sent.load(SeqCst) == seen, "the operation's own memory");
    }
}

/// A run that fails leaves its values to the transport. What follows has memory of its own, whatever is written late.
#[test]
fn a_late_write_meets_no_later_run() {
    for _ in 0..20 {
        let transport = Alone::create();
        let options = CommOptions { limit_ns: 2_000_000, ..named("dp") };
        let comm = Communicator::create(transport.clone(), options).unwrap();
        let (mut builder, values) = Builder::of("either", 2);
        let with = {
            let (mut inner, values) = Builder::of("with", 1);
            let made = inner.op(&[values[0]], |x| x[0] + 1);
            let summed = sum(&mut inner, &comm, made);
            let used = inner.op(&[summed], |x| x[0] + 1);
            inner.output(used);
            inner.graph
        };
        let without = {
            let (mut inner, values) = Builder::of("without", 1);
            // Many values, all of which are there while the transport writes.
            let many: Vec<ValueId> = (0..8).map(|i| inner.op(&[values[0]], move |x| x[0] + i)).collect();
            let late = transport.clone();
            let written = inner.op(&many, move |x| {
                if !late.received.load(SeqCst).is_null() {
                    late.writes_late();
                }
                x.iter().sum()
            });
            let all: Vec<ValueId> = many.into_iter().chain([written]).collect();
            let total = inner.op(&all, |x| x.iter().sum());
            inner.output(total);
            inner.graph
        };
        let cond = builder.graph.add_cond("cond", values[0], &with, &without, &[values[1]]).unwrap();
        builder.output(cond.output(0));
        let program = builder.compile();
        let expected = 2 * (0..8).map(|i| 5 + i).sum::<i32>();
        assert_eq!(run(&program, &[0, 5], &on(None)).unwrap(), [expected]);
        assert_eq!(run(&program, &[1, 5], &on(None)).unwrap(), [7]);
        transport.is_stuck.store(true, SeqCst);
        let error = run(&program, &[1, 5], &on(None)).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error:?}");
        assert!(comm.figures().quarantined_bytes > 0);
        for _ in 0..3 {
            assert_eq!(run(&program, &[0, 5], &on(None)).unwrap(), [expected]);
        }
    }
}

/// To begin an operation takes its time, too; but it comes before what this thread computes next, whatever was learned.
#[test]
fn operations_begin_as_soon_as_they_can() {
    const LAYERS: usize = 6;
    let transport = Alone::create();
    transport.start_ns.store(60_000, SeqCst);
    let comm = Communicator::create(transport.clone(), named("dp")).unwrap();
    let (mut builder, values) = Builder::of("step", 1);
    let mut value = values[0];
    for _ in 0..LAYERS {
        let noted = transport.clone();
        value = builder.op(&[value], move |x| {
            noted.order.lock().unwrap().push("layer");
            work(200_000);
            x[0] + 1
        });
        let summed = sum(&mut builder, &comm, value);
        let updated = builder.op(&[summed], |x| x[0]);
        builder.output(updated);
    }
    let program = builder.compile();
    for round in 0..8 {
        run(&program, &[round], &on(None)).unwrap();
        let order = std::mem::take(&mut *transport.order.lock().unwrap());
        // Nothing is known before the first run.
        assert!(round == 0 || order == ["layer", "sum"].repeat(LAYERS), "run {round}: {order:?}");
    }
}

fn set_all(tensor: &Tensor, value: i32) {
    // SAFETY: no run uses it now.
    unsafe { tensor.view().as_bytes_mut() }.write::<i32>().fill(value);
}

/// Tensors of a bucket are made behind one another, and their sums are read there, if they are whole lines of memory;
/// in a branch, in a loop, and where nodes beside them use other memory.
#[test]
fn a_bucket_is_filled_and_emptied_in_place() {
    for count in [16, 64, 13] {
        let transport = Alone::create();
        let comm = Communicator::create(transport.clone(), named("dp")).unwrap();
        let desc = Desc::new(weir_core::base::dtype::S32, &[count]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let bucket = |builder: &mut Builder, from: ValueId| {
            let parts: Vec<ValueId> = (0..3).map(|_| spy(builder, from, &seen)).collect();
            let name = builder.name();
            let kernel = kernel(&comm, CommSettings { num_tensors: 3, ..SUM });
            let summed = builder.graph.add_kernel(&name, kernel, &parts, 3).unwrap();
            let used: Vec<ValueId> = (0..3).map(|at| spy(builder, summed.output(at), &seen)).collect();
            used[2]
        };
        let mut builder = Builder::new("bucket");
        let predicate = builder.input();
        let x = builder.graph.add_input("x", desc).unwrap();
        let branch = |has_bucket: bool| {
            let mut inner = Builder::new("branch");
            let x = inner.graph.add_input("x", desc).unwrap();
            let y = if has_bucket { bucket(&mut inner, x) } else { spy(&mut inner, x, &seen) };
            inner.output(y);
            inner.graph
        };
        let outside = bucket(&mut builder, x);
        let (then, otherwise) = (branch(true), branch(false));
        let cond = builder.graph.add_cond("cond", predicate, &then, &otherwise, &[outside]).unwrap();
        builder.output(cond.output(0));
        let program = builder.compile();
        let tensor = || Tensor::create(builder.engine.clone(), desc).unwrap();
        let (input, output, one) = (tensor(), tensor(), kit::run::tensor(&builder.engine, 1));
        for round in 0..4 {
            set_all(&input, 40 + round);
            set_all(&output, 0);
            seen.lock().unwrap().clear();
            let inputs = [one.clone(), input.clone()];
            kit::run::execute(&program, &inputs, std::slice::from_ref(&output), &on(None)).unwrap();
            // SAFETY: no run uses it now.
            assert!(unsafe { output.view().as_bytes() }.read::<i32>().iter().all(|&value| value == 40 + round));
            let seen = seen.lock().unwrap();
            // Nobody wants the first two sums. Of the bucket in the branch, which was sent last:
            assert_eq!(seen.len(), 8);
            let (mut made, used): (Vec<usize>, usize) = ((4..7).map(|at| seen[at][1]).collect(), seen[7][0]);
            made.sort_unstable();
            let bytes = 4 * count as usize;
            let [sent, received] = [&transport.sent, &transport.received].map(|place| place.load(SeqCst).addr());
            let (expected, third) = ([sent, sent + bytes, sent + 2 * bytes], received + 2 * bytes);
            // Whole lines of memory can lie behind one another.
            let is_whole = count % 16 == 0;
            assert_eq!((made == expected, used == third), (is_whole, is_whole), "{count}: {made:?} {expected:?}");
        }
    }
}
