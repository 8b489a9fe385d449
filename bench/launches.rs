//! What weir itself costs in front of the CUDA driver: the calling thread's time for a launch, beside a driver whose
//! functions return at once (`tests/idle_cuda`). It says nothing of a GPU, and needs none. `cargo bench --bench
//! launches`, with words as a filter of the rows. `cargo bench --bench launches -- repeat N ROW` does N bursts of one
//! row and measures nothing, for tools that count instructions: it is the difference between two N that counts.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, CString, c_void};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use weir_core::abi::{
    weir_cuda_argument, weir_cuda_argument_kind_value as A, weir_cuda_kernel_desc, weir_cuda_source_value as S,
};
use weir_core::base::{Desc, Kind, Object, Ref, Result, dtype};
use weir_core::device::{CUDA_KERNEL, DeviceKind, Operation};
use weir_core::engine::{BoundKernel, Engine, KernelIdentity, KernelOptions, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program};
use weir_core::kernel::{Kernel, KernelContext, Outputs};

/// Launches in a burst, and bursts.
const BURST: usize = 100;
const ROUNDS: usize = 41;
/// Is this process the one that finds the driver?
const INSIDE: &str = "IDLE_CUDA_INSIDE";

type Handle = *const c_void;

unsafe extern "C" {
    fn weir_enqueue(stream: Handle, kernel: Handle, from: *const Handle, n: usize, to: *const Handle, m: usize) -> i32;
    fn weir_program_run(
        program: Handle,
        stream: Handle,
        from: *const Handle,
        n: usize,
        to: *const Handle,
        m: usize,
        options: Handle,
    ) -> i32;
    fn weir_stream_synchronize(stream: Handle, timeout_ns: u64) -> i32;
}

fn handle<T: Kind>(object: &Ref<T>) -> Handle {
    Arc::as_ptr(object).cast::<Object<T>>().cast()
}

/// The driver, as cargo has built it beside this program.
fn driver() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().unwrap();
    let built = [folder.to_owned(), folder.join("deps")].map(|place| place.join("libidle_cuda.so"));
    built.into_iter().find(|path| path.is_file()).unwrap_or_else(|| panic!("no libidle_cuda.so near {}", own.display()))
}

/// Goes on in a process whose loader finds the driver: it looks where the environment said as the process began.
fn begin_anew() -> ! {
    let built = driver();
    let folder = built.parent().unwrap().join("idle-cuda");
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("libcuda.so.1");
    if !link.exists() {
        let _ = std::os::unix::fs::symlink(Path::new("..").join(built.file_name().unwrap()), &link);
    }
    let mut own = Command::new(std::env::current_exe().unwrap());
    own.args(std::env::args_os().skip(1)).env(INSIDE, "1").env("LD_LIBRARY_PATH", &folder).env("WEIR_CUDA_BLAS", "0");
    panic!("{}", own.exec());
}

/// A function of the driver.
fn function(name: &CStr) -> *mut c_void {
    // SAFETY: the library of this name does nothing when it is opened.
    let found = unsafe { libc::dlsym(libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW), name.as_ptr()) };
    assert!(!found.is_null(), "no {name:?}");
    found
}

fn desc() -> Desc {
    Desc::new(dtype::F32, &[1024])
}

/// Arrays in, an array out, and no body on the host.
struct Signature(usize);

impl Kernel for Signature {
    fn name(&self) -> &str {
        "arrays"
    }

    fn num_inputs(&self) -> usize {
        self.0
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![desc()])
    }

    fn is_on_host(&self) -> bool {
        false
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        unreachable!("a kernel without a body")
    }
}

/// A kernel of the host's with so many inputs, an output and a count.
fn kernel(engine: &Ref<Engine>, inputs: usize) -> Ref<BoundKernel> {
    let argument = |kind: A, index| weir_cuda_argument { kind: kind as u32, index, value: std::ptr::null(), bytes: 0 };
    let mut arguments: Vec<_> = (0..inputs).map(|index| argument(A::WEIR_CUDA_ARGUMENT_INPUT, index as u32)).collect();
    arguments.push(argument(A::WEIR_CUDA_ARGUMENT_OUTPUT, 0));
    arguments.push(argument(A::WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS, 0));
    let (source, entry) = ("// nobody reads this", CString::new("arrays").unwrap());
    let desc = weir_cuda_kernel_desc {
        struct_size: size_of::<weir_cuda_kernel_desc>(),
        source: source.as_ptr().cast(),
        source_bytes: source.len(),
        source_kind: S::WEIR_CUDA_SOURCE_PTX as u32,
        shared_bytes: 0,
        entry: entry.as_ptr(),
        options: std::ptr::null(),
        num_options: 0,
        grid: [4, 1, 1],
        block: [256, 1, 1],
        arguments: arguments.as_ptr(),
        num_arguments: arguments.len(),
        num_inputs: inputs,
        inputs: std::ptr::null(),
        num_outputs: 1,
        outputs: std::ptr::null(),
        infer: None,
        user: std::ptr::null_mut(),
        destroy: None,
        flags: 0,
    };
    // SAFETY: the bytes of a plain struct.
    let attributes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&desc).cast::<u8>(), size_of_val(&desc)) };
    let operation = KernelIdentity::of(Operation::Named(CUDA_KERNEL, attributes));
    BoundKernel::create_as(engine.clone(), Arc::new(Signature(inputs)), operation, &KernelOptions::default()).unwrap()
}

/// So many kernels one behind the other, with an input and an output on the engine. The first one alone reads the
/// input.
fn chain(engine: &Ref<Engine>, length: usize) -> Ref<Program> {
    let (cpu, add) = (Engine::create(DeviceKind::CPU, 0, None).unwrap(), kernel(engine, 2));
    let mut graph = Graph::new("chain");
    let x = graph.add_input("x", desc()).unwrap();
    let end = (0..length)
        .fold(x, |value, i| graph.add_kernel(&format!("{i}"), add.clone(), &[value, value], 1).unwrap().output(0));
    graph.add_output("y", end).unwrap();
    graph.set_input_engine(0, Some(engine.clone())).unwrap();
    graph.set_output_engine(0, Some(engine.clone())).unwrap();
    Program::compile(&graph, vec![cpu, engine.clone()], &CompileOptions::default()).unwrap()
}

/// What is launched, with a number that grows with each launch.
type Launch<'a> = Box<dyn Fn(usize) + 'a>;

/// A name, calls of the driver's that launch something for one of these, and what makes it.
type Row<'a> = (&'static str, u64, Box<dyn Fn() -> Launch<'a> + 'a>);

struct Bench {
    engine: Ref<Engine>,
    stream: Ref<Stream>,
    tensors: Vec<Ref<Tensor>>,
}

impl Bench {
    fn new() -> Bench {
        let engine = Engine::create(DeviceKind::CUDA, 0, None).unwrap();
        let stream = Stream::create(engine.clone(), StreamAttr::new(DeviceKind::CUDA)).unwrap();
        let tensors = (0..132).map(|_| Tensor::create(engine.clone(), desc()).unwrap()).collect();
        // A program that works with the driver has a context, and most have one that is the engine's.
        // SAFETY: the driver's function, with its context.
        unsafe {
            let set: extern "C" fn(usize) -> i32 = std::mem::transmute(function(c"cuCtxSetCurrent"));
            assert_eq!(set(engine.accelerator().unwrap().native_handle().unwrap() as usize), 0);
        }
        Bench { engine, stream, tensors }
    }

    /// A kernel with four tensors: always the same ones, or `others` in turn.
    fn enqueue(&self, others: usize) -> Launch<'_> {
        let (kernel, tensors) = (kernel(&self.engine, 3), self.handles());
        Box::new(move |number| {
            let at = if others > 1 { number % others } else { 0 };
            let (from, to) = tensors[at..].split_at(3);
            // SAFETY: handles that live.
            let done = unsafe { weir_enqueue(handle(&self.stream), handle(&kernel), from.as_ptr(), 3, to.as_ptr(), 1) };
            assert_eq!(done, 0);
        })
    }

    fn direct(&self, length: usize, others: usize) -> Launch<'_> {
        let (program, tensors) = (chain(&self.engine, length), self.handles());
        Box::new(move |number| {
            let at = if others > 1 { number % others } else { 0 };
            let (from, to) = ([tensors[1 + at]], [tensors[0]]);
            let (program, stream, none) = (handle(&program), handle(&self.stream), std::ptr::null());
            // SAFETY: handles that live.
            let done = unsafe { weir_program_run(program, stream, from.as_ptr(), 1, to.as_ptr(), 1, none) };
            assert_eq!(done, 0);
        })
    }

    /// The driver alone.
    fn raw(&self) -> Launch<'_> {
        let launch: extern "C" fn(*const c_void) -> i32 =
            // SAFETY: the driver's function, of whose arguments it takes no notice.
            unsafe { std::mem::transmute(function(c"cuLaunchKernel")) };
        let current: extern "C" fn(*mut usize) -> i32 =
            // SAFETY: the driver's function.
            unsafe { std::mem::transmute(function(c"cuCtxGetCurrent")) };
        Box::new(move |_| {
            let mut context = 0;
            assert_eq!(current(&raw mut context) + launch(std::ptr::null()), 0);
        })
    }

    fn handles(&self) -> Vec<Handle> {
        self.tensors.iter().map(handle).collect()
    }

    fn synchronize(&self) -> i32 {
        // SAFETY: a handle that lives.
        unsafe { weir_stream_synchronize(handle(&self.stream), u64::MAX) }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        vec![
            ("raw: a look at the context, and a launch", 1, Box::new(|| self.raw())),
            ("enqueue a kernel with 4 tensors", 1, Box::new(|| self.enqueue(1))),
            ("enqueue it with others each time, of 10", 1, Box::new(|| self.enqueue(10))),
            ("enqueue it with others each time, of 128", 1, Box::new(|| self.enqueue(128))),
            ("direct run of 1 kernel", 1, Box::new(|| self.direct(1, 1))),
            ("direct run of 10 kernels", 1, Box::new(|| self.direct(10, 1))),
            ("direct run of 100 kernels", 1, Box::new(|| self.direct(100, 1))),
            ("direct run of 1000 kernels", 1, Box::new(|| self.direct(1000, 1))),
            ("direct run of 10 kernels, another input each time", 1, Box::new(|| self.direct(10, 2))),
            ("synchronize, nothing left", 0, Box::new(|| Box::new(|_| assert_eq!(self.synchronize(), 0)))),
        ]
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds for each of `count` calls.
fn time(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut call);
    start.elapsed().as_secs_f64() * 1e9 / count as f64
}

fn main() {
    if std::env::var_os(INSIDE).is_none() {
        begin_anew();
    }
    // cargo passes --bench.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let bench = Bench::new();
    if let [repeat, count, row @ ..] = &words[..]
        && repeat == "repeat"
    {
        let (count, row): (usize, _) = (count.parse().unwrap(), row.join(" "));
        let rows = bench.rows();
        let (.., make) = rows.iter().find(|(known, ..)| *known == row).unwrap_or_else(|| panic!("no row '{row}'"));
        let launch = make();
        for _ in 0..count {
            (0..BURST).for_each(&launch);
            assert_eq!(bench.synchronize(), 0);
        }
        return;
    }
    let launches: extern "C" fn() -> u64 =
        // SAFETY: a function of this driver's.
        unsafe { std::mem::transmute(function(c"idle_cuda_launches")) };
    println!("ns of the calling thread for one, medians of {ROUNDS} bursts of {BURST}");
    println!("{:52}{:>10}{:>16}", "", "in bursts", "each waited for");
    for (name, calls, make) in bench.rows() {
        if !words.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let (launch, mut bursts, mut waited) = (make(), Vec::new(), Vec::new());
        for round in 0..ROUNDS + 2 {
            let before = launches();
            let burst = time(BURST, &launch);
            assert_eq!(bench.synchronize(), 0);
            let alone = time(BURST, |number| {
                launch(number);
                assert_eq!(bench.synchronize(), 0);
            });
            // The first ones make what later ones use.
            if round >= 2 {
                assert_eq!(launches() - before, 2 * BURST as u64 * calls, "{name}: launches");
                bursts.push(burst);
                waited.push(alone);
            }
        }
        println!("{name:52}{:>10.1}{:>16.1}", median(bursts), median(waited));
    }
}
