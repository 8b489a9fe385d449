//! Matrix products by a library, cuBLASLt: where it is found, what is asked of it, workspaces, recordings, and
//! failures. The library is `tests/fake_blas`.

mod numbers;
pub mod programs;
mod recorded;

use crate::bench::{Bench, values};
use crate::kit::{fake, is_fake, only_the_fakes, skip_without, with_driver};
use crate::loops::of;
use crate::random::Random;
use std::ffi::{CString, c_char};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use weir_core::base::time::Deadline;
use weir_core::base::{Code, Desc, Ref, Result, dtype};
use weir_core::device::cuda::CudaDevice;
use weir_core::device::{Accelerator, DeviceStream, DeviceStreamAttr, Launch, Operation};
use weir_core::engine::{BoundKernel, EngineAttr, KernelIdentity, KernelOptions, Stream, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program};
use weir_core::kernel::builtin::Builtin;
use weir_core::memory::View;
use weir_core::ops::weir_binary_op_value as Op;
use weir_core::ops::weir_matmul_flags::*;
use weir_core::ops::{
    Described, Matmul, weir_activation_value, weir_matmul_desc, weir_matmul_flags, weir_matmul_int8_desc,
};

pub const WITH: (&str, &str) = ("BLAS", "13");

/// The fake library, as the process has loaded it.
pub mod blas {
    use super::*;

    fn symbol(name: &std::ffi::CStr) -> *mut std::ffi::c_void {
        // SAFETY: libraries that are loaded already, or null.
        unsafe {
            let names = [c"libcublasLt.so.13", c"libcublasLt.so.12"];
            let open = |name: &std::ffi::CStr| libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            let Some(library) = names.into_iter().map(open).find(|library| !library.is_null()) else {
                only_the_fakes()
            };
            let found = libc::dlsym(library, name.as_ptr());
            if found.is_null() {
                only_the_fakes();
            }
            found
        }
    }

    /// 0 of a real library, of which nothing is to be asserted then.
    pub fn counted(name: &str) -> u64 {
        if is_fake() { count(name) } else { 0 }
    }

    pub fn count(name: &str) -> u64 {
        // SAFETY: the fake library's function of this type.
        let function: unsafe extern "C" fn(*const c_char) -> u64 =
            unsafe { std::mem::transmute(symbol(c"fakeBlasCount")) };
        let name = CString::new(name).unwrap();
        // SAFETY: a text that lives during the call.
        unsafe { function(name.as_ptr()) }
    }

    pub fn fail(name: &str, call: u64, status: i32) {
        // SAFETY: as above.
        let function: unsafe extern "C" fn(*const c_char, u64, i32) =
            unsafe { std::mem::transmute(symbol(c"fakeBlasFail")) };
        let name = CString::new(name).unwrap();
        // SAFETY: as above.
        unsafe { function(name.as_ptr(), call, status) }
    }

    pub fn live() -> u64 {
        // SAFETY: as above.
        let function: unsafe extern "C" fn() -> u64 = unsafe { std::mem::transmute(symbol(c"fakeBlasLive")) };
        // SAFETY: as above.
        unsafe { function() }
    }
}

pub fn matmul(bench: &Bench, flags: &[weir_matmul_flags]) -> Result<Ref<BoundKernel>> {
    matmul_with(bench, flags, weir_activation_value::WEIR_ACTIVATION_NONE)
}

pub fn matmul_with(
    bench: &Bench,
    flags: &[weir_matmul_flags],
    activation: weir_activation_value,
) -> Result<Ref<BoundKernel>> {
    let mut desc = weir_matmul_desc {
        struct_size: size_of::<weir_matmul_desc>(),
        flags: flags.iter().fold(0, |all, &flag| all | flag as u64),
        activation: activation as u32,
        reserved: 0,
        weights: std::ptr::null_mut(),
        alpha: 0.0,
        beta: 0.0,
    };
    let (operator, described) = Described::new::<Matmul>(&mut desc, None)?;
    let identity = KernelIdentity::of(Operation::Builtin(&described));
    let kernel = Arc::new(Builtin::new(operator));
    BoundKernel::create_as(bench.engine.clone(), kernel, identity, &KernelOptions::default())
}

/// With a real driver: the test ends where products are not the library's.
fn needs_the_library(bench: &Bench) {
    drop(matmul(bench, &[]).unwrap());
    if !products(bench).starts_with("cuBLASLt") {
        skip_without("cuBLASLt");
    }
}

/// Who does the products.
fn products(bench: &Bench) -> String {
    CudaDevice::of(bench.engine.device()).unwrap().products()
}

/// A matrix on the device, and its numbers.
pub struct Matrix {
    pub tensor: Ref<Tensor>,
    numbers: Vec<f32>,
    dims: [i64; 2],
    /// Elements in front of it.
    skipped: usize,
}

impl Matrix {
    /// Numbers that look random; `skipped` others are in front of them in memory.
    fn new(bench: &Bench, dims: [i64; 2], skipped: usize, seed: u64) -> Matrix {
        let count = (dims[0] * dims[1]) as usize + skipped;
        Matrix::in_memory(bench, dims, skipped, seed, Desc::new(dtype::F32, &[count as i64]))
    }

    /// The same as a tensor of its shape.
    pub fn on(bench: &Bench, dims: &[i64; 2], seed: u64) -> Matrix {
        Matrix::in_memory(bench, *dims, 0, seed, Desc::new(dtype::F32, dims))
    }

    fn in_memory(bench: &Bench, dims: [i64; 2], skipped: usize, seed: u64, desc: Desc) -> Matrix {
        let count = (dims[0] * dims[1]) as usize + skipped;
        let (host, tensor) =
            (Tensor::create(bench.cpu.clone(), desc).unwrap(), Tensor::create(bench.engine.clone(), desc).unwrap());
        let mut random = Random::new(seed);
        let numbers: Vec<f32> = (0..count).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
        // SAFETY: so many numbers on the host that nobody uses yet.
        unsafe { host.data().cast::<f32>().copy_from(numbers.as_ptr(), count) };
        bench.stream.enqueue_copy(host, tensor.clone()).unwrap();
        bench.wait().unwrap();
        Matrix { tensor, numbers: numbers[skipped..].to_vec(), dims, skipped }
    }

    fn view(&self) -> View {
        let desc = Desc::new(dtype::F32, &self.dims);
        // SAFETY: the tensor's memory on the device, which is kept; the host only hands the address on.
        unsafe { View::new(self.tensor.data().wrapping_add(4 * self.skipped), desc.bytes().unwrap(), desc) }
    }

    /// What is there now.
    pub fn read(&self, bench: &Bench) -> Vec<f32> {
        let host = Tensor::create(bench.cpu.clone(), self.tensor.desc().to_owned()).unwrap();
        bench.stream.enqueue_copy(self.tensor.clone(), host.clone()).unwrap();
        bench.wait().unwrap();
        let count = (self.dims[0] * self.dims[1]) as usize;
        // SAFETY: numbers on the host that no work uses any more.
        (0..count).map(|i| unsafe { host.data().cast::<f32>().add(self.skipped + i).read() }).collect()
    }

    /// A product is this, but for the rounding of sums in another order.
    #[track_caller]
    fn check(&self, bench: &Bench, a: &Matrix, b: &Matrix) {
        let ([m, k], n) = (a.dims.map(|size| size as usize), b.dims[1] as usize);
        for (i, found) in self.read(bench).into_iter().enumerate() {
            let (row, column) = (i / n, i % n);
            let sum: f32 = (0..k).map(|at| a.numbers[row * k + at] * b.numbers[at * n + column]).sum();
            assert!((found - sum).abs() < 1e-4, "{m}x{n}x{k}: {row}, {column} is {found}, expected {sum}");
        }
    }
}

fn device(bench: &Bench) -> &dyn Accelerator {
    bench.engine.accelerator().unwrap()
}

fn stream(bench: &Bench) -> Box<dyn DeviceStream> {
    device(bench).stream(&DeviceStreamAttr { name: "s", priority: 0 }).unwrap()
}

fn wait(bench: &Bench, stream: &dyn DeviceStream) -> Result<()> {
    let event = device(bench).event(false).unwrap();
    stream.record(&event)?;
    event.synchronize(Deadline::NEVER).map(|_| ())
}

fn launch<'a>(kernel: &'a Ref<BoundKernel>, inputs: &'a [View], outputs: &'a [View]) -> Launch<'a> {
    Launch { name: "product", kernel: kernel.on_device().unwrap(), inputs, outputs }
}

/// A product in a stream.
fn multiply(on: &dyn DeviceStream, kernel: &Ref<BoundKernel>, a: &Matrix, b: &Matrix, c: &Matrix) -> Result<()> {
    on.launch(&launch(kernel, &[a.view(), b.view()], &[c.view()]))
}

/// Three matrices of a product, the last one with other numbers than it gets.
fn triple(bench: &Bench, [m, n, k]: [i64; 3], seed: u64) -> [Matrix; 3] {
    [
        Matrix::new(bench, [m, k], 0, seed),
        Matrix::new(bench, [k, n], 0, seed + 1),
        Matrix::new(bench, [m, n], 0, seed + 2),
    ]
}

fn nothing_is_left() {
    if is_fake() {
        crate::kit::eventually("something of the library's is not given back", || blas::live() == 0);
    }
}

/// Settings, the code of the refusal if there is to be one, and who does products then or what the refusal says.
type Case = (&'static [(&'static str, &'static str)], Option<Code>, &'static str);

/// With this in the environment a process knows which case it is for.
const CASE: &str = "FAKE_CASE";

fn in_each_case(cases: &[Case], body: impl Fn(Option<Code>, &str)) {
    for (number, (settings, ..)) in cases.iter().enumerate() {
        let number = number.to_string();
        let settings = [settings, &[(CASE, number.as_str())][..]].concat();
        let out = with_driver(&settings, || {
            let number: usize = std::env::var(CASE).unwrap().parse().unwrap();
            body(cases[number].1, cases[number].2);
        });
        if out.is_none() {
            return;
        }
    }
}

#[test]
fn the_library_is_looked_for_when_it_is_needed() {
    let cases: [Case; 2] = [
        (&[("BLAS", "12"), ("FAKE_BLAS_VERSION", "120304"), ("WEIR_CUDA_BLAS", "1")], None, "cuBLASLt 12.3"),
        (&[("BLAS", "13"), ("FAKE_BLAS_VERSION", "130002")], None, "cuBLASLt 13.0"),
    ];
    in_each_case(&cases, |_, text| {
        let bench = Bench::new();
        assert_eq!(products(&bench), "");
        let kernel = matmul(&bench, &[]).unwrap();
        assert_eq!(products(&bench), text);
        let ([a, b, c], on) = (triple(&bench, [7, 9, 40], 1), stream(&bench));
        multiply(&*on, &kernel, &a, &b, &c).unwrap();
        wait(&bench, &*on).unwrap();
        c.check(&bench, &a, &b);
        assert_eq!([blas::count("cublasLtCreate"), blas::count("cublasLtMatmul")], [1, 1]);
        drop((kernel, on, a, b, c, bench));
        nothing_is_left();
    });
}

#[test]
fn without_the_library_the_built_in_kernels_do_products() {
    let cases: [Case; 5] = [
        (&[("WEIR_CUDA_BLAS", "0")], None, "built-in: WEIR_CUDA_BLAS is 0"),
        (&[WITH, ("WEIR_CUDA_BLAS", "0")], None, "built-in: WEIR_CUDA_BLAS is 0"),
        (&[("BLAS_WITHOUT", "cublasLtMatmul")], None, "built-in: libcublasLt has no cublasLtMatmul"),
        (&[WITH, ("FAKE_BLAS_VERSION", "110804")], None, "built-in: cuBLASLt 11.8 is too old, 12.0 or later is used"),
        (
            &[WITH, ("FAKE_BLAS_FAIL", "cublasLtCreate:*:8")],
            None,
            "built-in: cuBLASLt 13.0: cublasLtCreate: CUBLAS_STATUS_ARCH_MISMATCH (8)",
        ),
    ];
    in_each_case(&cases, |_, why| {
        let bench = Bench::new();
        let kernel = matmul(&bench, &[]).unwrap();
        assert_eq!(products(&bench), why);
        let ([a, b, c], on) = (triple(&bench, [7, 9, 40], 1), stream(&bench));
        multiply(&*on, &kernel, &a, &b, &c).unwrap();
        wait(&bench, &*on).unwrap();
        c.check(&bench, &a, &b);
    });
}

#[test]
fn who_wants_the_library_is_told_why_there_is_none() {
    let (none, no_memory) = (Some(Code::Unavailable), Some(Code::ResourceExhausted));
    let cases: [Case; 3] = [
        (&[("BLAS_WITHOUT", "cublasLtCreate"), ("WEIR_CUDA_BLAS", "1")], none, "has no cublasLtCreate"),
        (&[("WEIR_CUDA_BLAS", "often")], none, "WEIR_CUDA_BLAS is 'often', expected 0 or 1"),
        (&[WITH, ("FAKE_BLAS_FAIL", "cublasLtCreate:1:3")], no_memory, "CUBLAS_STATUS_ALLOC_FAILED (3)"),
    ];
    in_each_case(&cases, |code, text| {
        let bench = Bench::new();
        let error = matmul(&bench, &[]).err().unwrap();
        assert!(Some(error.code()) == code && error.message().contains(text), "{error}");
        // What may be gone the next time is asked for again.
        assert_eq!(matmul(&bench, &[]).is_ok(), code == no_memory);
    });
}

#[test]
fn a_shape_is_prepared_once() {
    with_driver(&[WITH, ("SEED", "1")], || {
        let bench = Bench::new();
        let (kernel, on) = (matmul(&bench, &[]).unwrap(), stream(&bench));
        let shapes: Vec<_> = [[7, 9, 40], [8, 4, 8], [1, 30, 20]].map(|shape| triple(&bench, shape, 5)).into();
        let run = || {
            for [a, b, c] in &shapes {
                multiply(&*on, &kernel, a, b, c).unwrap();
            }
            wait(&bench, &*on).unwrap();
        };
        run();
        let of = |names: &[&str]| names.iter().map(|name| blas::count(name) + fake::count(name)).collect::<Vec<_>>();
        let once = [
            "cublasLtMatmulAlgoGetHeuristic",
            "cublasLtMatmulDescCreate",
            "cublasLtMatrixLayoutCreate",
            "cublasLtMatmulPreferenceCreate",
            "cuMemAllocFromPoolAsync",
            "cuStreamCreateWithPriority",
        ];
        let before = of(&once);
        assert_eq!(before[0], 3);
        let first: Vec<_> = shapes.iter().map(|[.., c]| c.read(&bench)).collect();
        run();
        assert_eq!(of(&once), before);
        assert_eq!(blas::count("cublasLtMatmul"), 6);
        for ([a, b, c], first) in shapes.iter().zip(&first) {
            c.check(&bench, a, b);
            assert!(c.read(&bench) == *first);
        }
        // More shapes than a kernel keeps.
        let long = Matrix::new(&bench, [100, 30], 0, 1);
        let [_, b, c] = triple(&bench, [100, 4, 30], 2);
        for rows in (1..=100).chain([1]) {
            let view = |of: &Matrix, columns| {
                let desc = Desc::new(dtype::F32, &[rows, columns]);
                // SAFETY: as in `view`; there are as many rows.
                unsafe { View::new(of.tensor.data(), desc.bytes().unwrap(), desc) }
            };
            on.launch(&launch(&kernel, &[view(&long, 30), b.view()], &[view(&c, 4)])).unwrap();
        }
        wait(&bench, &*on).unwrap();
        assert_eq!(blas::count("cublasLtMatmulAlgoGetHeuristic"), 3 + 101);
        assert!(blas::live() < 64 * 4 + 10, "{} objects", blas::live());
        drop((kernel, on, shapes, long, b, c, bench));
        nothing_is_left();
    });
}

/// The checker ends the process if two products use one workspace at a time.
#[test]
fn streams_side_by_side_have_workspaces_of_their_own() {
    for seed in ["1", "2", ""] {
        let out = with_driver(&[WITH, ("SEED", seed)], || {
            let bench = Bench::new();
            needs_the_library(&bench);
            let kernel = matmul(&bench, &[]).unwrap();
            let [a, b, c] = triple(&bench, [7, 9, 40], 1);
            let others: Vec<_> = (0..6).map(|i| Matrix::new(&bench, [7, 9], 0, i)).collect();
            let streams: Vec<_> = (0..3).map(|_| stream(&bench)).collect();
            multiply(&*streams[0], &kernel, &a, &b, &c).unwrap();
            for (i, other) in others.iter().enumerate() {
                multiply(&*streams[i % 3], &kernel, &a, &b, other).unwrap();
            }
            // Streams go with what lies in them.
            let events: Vec<_> = streams
                .into_iter()
                .map(|stream| {
                    let event = device(&bench).event(false).unwrap();
                    stream.record(&event).unwrap();
                    event
                })
                .collect();
            events.iter().for_each(|event| assert!(event.synchronize(Deadline::NEVER).unwrap()));
            let first = c.read(&bench);
            c.check(&bench, &a, &b);
            assert!(others.iter().all(|other| other.read(&bench) == first));
        });
        if out.is_none() {
            return;
        }
    }
}
