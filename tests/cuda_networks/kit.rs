//! An engine, graphs of kernels on it, and their runs from and to memory of the host's, by the interface in C.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use weir_core::abi::*;
use weir_core::base::{Desc, dtype};

pub const CPU: u32 = 1;
pub const CUDA: u32 = 2;

macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )*};
}

opaque!(Engine, Stream, Tensor, Kernel, RawGraph, Program);

#[allow(improper_ctypes, reason = "handles are opaque here")]
unsafe extern "C" {
    fn weir_engine_create(kind: u32, index: u32, attr: *const c_void, out: *mut *mut Engine) -> weir_status;
    fn weir_engine_release(engine: *mut Engine);
    fn weir_tensor_create(
        engine: *mut Engine,
        desc: *const Desc,
        from: *const weir_memory,
        out: *mut *mut Tensor,
    ) -> weir_status;
    fn weir_tensor_release(tensor: *mut Tensor);
    fn weir_kernel_release(kernel: *mut Kernel);
    fn weir_graph_create(name: *const c_char, out: *mut *mut RawGraph) -> weir_status;
    fn weir_graph_destroy(graph: *mut RawGraph);
    fn weir_graph_add_input(graph: *mut RawGraph, name: *const c_char, desc: *const Desc, out: *mut u64)
    -> weir_status;
    fn weir_graph_add_constant(
        graph: *mut RawGraph,
        name: *const c_char,
        tensor: *mut Tensor,
        out: *mut u64,
    ) -> weir_status;
    fn weir_graph_add_kernel(
        graph: *mut RawGraph,
        name: *const c_char,
        kernel: *mut Kernel,
        inputs: *const u64,
        num_inputs: usize,
        outputs: *mut u64,
        num_outputs: usize,
        node: *mut u64,
    ) -> weir_status;
    fn weir_graph_add_cond(
        graph: *mut RawGraph,
        name: *const c_char,
        desc: *const c_void,
        outputs: *mut u64,
        num_outputs: usize,
        node: *mut u64,
    ) -> weir_status;
    fn weir_graph_add_output(graph: *mut RawGraph, name: *const c_char, value: u64) -> weir_status;
    fn weir_graph_compile(
        graph: *const RawGraph,
        engines: *const *mut Engine,
        num_engines: usize,
        options: *const c_void,
        out: *mut *mut Program,
    ) -> weir_status;
    fn weir_program_run(
        program: *mut Program,
        stream: *mut Stream,
        inputs: *const *mut Tensor,
        num_inputs: usize,
        outputs: *const *mut Tensor,
        num_outputs: usize,
        options: *const c_void,
    ) -> weir_status;
    fn weir_program_release(program: *mut Program);
    fn weir_last_error_message() -> *const c_char;
}

#[track_caller]
fn ok(status: weir_status) {
    // SAFETY: the text of this thread's last failure, until its next call.
    let text = || unsafe { CStr::from_ptr(weir_last_error_message()) }.to_string_lossy();
    assert!(status == 0, "{}", text());
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// What makes a kernel.
pub type Create<D> = unsafe extern "C" fn(*mut Engine, *const D, *const c_void, *mut *mut Kernel) -> weir_status;

/// An engine, and the processor's, from which and to which data go.
pub struct Device {
    engine: *mut Engine,
    processor: *mut Engine,
}

impl Device {
    pub fn new(kind: u32) -> Device {
        let create = |kind| {
            let mut engine = null_mut();
            // SAFETY: a place for the answer.
            ok(unsafe { weir_engine_create(kind, 0, null(), &raw mut engine) });
            engine
        };
        let processor = create(CPU);
        Device { engine: if kind == CPU { processor } else { create(kind) }, processor }
    }

    /// A tensor over memory of the host's, which outlives it.
    fn tensor(&self, desc: &Desc, words: &mut [u32]) -> *mut Tensor {
        let mut tensor = null_mut();
        let from = weir_memory {
            struct_size: size_of::<weir_memory>(),
            source: weir_memory_source_value::WEIR_MEMORY_FOREIGN as u32,
            reserved: 0,
            data: words.as_mut_ptr().cast(),
            bytes: 0,
            release: None,
            release_ctx: null_mut(),
            buffer: null_mut(),
            offset: 0,
            device: null_mut(),
        };
        // SAFETY: so many elements, and a place for the answer.
        ok(unsafe { weir_tensor_create(self.processor, desc, &raw const from, &raw mut tensor) });
        tensor
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the references from `new`.
        unsafe {
            if self.engine != self.processor {
                weir_engine_release(self.engine);
            }
            weir_engine_release(self.processor);
        }
    }
}

/// Elements of four bytes.
pub struct Words {
    pub desc: Desc,
    pub words: Vec<u32>,
}

pub fn f32(dims: &[i64], values: &[f32]) -> Words {
    Words { desc: Desc::new(dtype::F32, dims), words: values.iter().map(|x| x.to_bits()).collect() }
}

pub fn s32(dims: &[i64], values: &[i32]) -> Words {
    Words { desc: Desc::new(dtype::S32, dims), words: values.iter().map(|&x| x as u32).collect() }
}

pub fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|&word| f32::from_bits(word)).collect()
}

/// A graph in the making, with all of its kernels on one engine.
pub struct Graph<'a> {
    device: &'a Device,
    graph: *mut RawGraph,
    count: usize,
    constants: Vec<Vec<u32>>,
}

impl<'a> Graph<'a> {
    pub fn new(device: &'a Device, name: &str) -> Graph<'a> {
        let mut graph = null_mut();
        // SAFETY: a place for the answer.
        ok(unsafe { weir_graph_create(text(name).as_ptr(), &raw mut graph) });
        Graph { device, graph, count: 0, constants: Vec::new() }
    }

    pub fn input(&mut self, name: &str, desc: Desc) -> u64 {
        let mut value = 0;
        // SAFETY: the graph is this one's, and so are the names.
        ok(unsafe { weir_graph_add_input(self.graph, text(name).as_ptr(), &raw const desc, &raw mut value) });
        value
    }

    pub fn constant(&mut self, words: &Words) -> u64 {
        self.constants.push(words.words.clone());
        let words_of = self.constants.last_mut().unwrap();
        let tensor = self.device.tensor(&words.desc, words_of);
        let (mut value, name) = (0, self.name("constant"));
        // SAFETY: as above; the graph takes a reference of its own.
        unsafe {
            ok(weir_graph_add_constant(self.graph, name.as_ptr(), tensor, &raw mut value));
            weir_tensor_release(tensor);
        }
        value
    }

    fn name(&mut self, what: &str) -> CString {
        self.count += 1;
        text(&format!("{what} {}", self.count))
    }

    pub fn kernels<D, const N: usize>(&mut self, create: Create<D>, desc: &D, inputs: &[u64]) -> [u64; N] {
        let (mut kernel, mut outputs, name) = (null_mut(), [0; N], self.name("node"));
        // SAFETY: as above; so does it of the kernel.
        unsafe {
            ok(create(self.device.engine, desc, null(), &raw mut kernel));
            let (from, to) = (inputs.as_ptr(), outputs.as_mut_ptr());
            ok(weir_graph_add_kernel(self.graph, name.as_ptr(), kernel, from, inputs.len(), to, N, null_mut()));
            weir_kernel_release(kernel);
        }
        outputs
    }

    pub fn kernel<D>(&mut self, create: Create<D>, desc: &D, inputs: &[u64]) -> u64 {
        let [output] = self.kernels(create, desc, inputs);
        output
    }

    pub fn cond<const N: usize>(
        &mut self,
        predicate: u64,
        yes: &Graph<'_>,
        no: &Graph<'_>,
        inputs: &[u64],
    ) -> [u64; N] {
        let mut outputs = [0; N];
        let name = text("cond");
        let desc = weir_cond_desc {
            struct_size: size_of::<weir_cond_desc>(),
            predicate,
            then_graph: yes.graph.cast(),
            else_graph: no.graph.cast(),
            inputs: inputs.as_ptr(),
            num_inputs: inputs.len(),
        };
        let desc = (&raw const desc).cast();
        // SAFETY: as above.
        ok(unsafe { weir_graph_add_cond(self.graph, name.as_ptr(), desc, outputs.as_mut_ptr(), N, null_mut()) });
        outputs
    }

    pub fn output(&mut self, value: u64) {
        let name = self.name("output");
        // SAFETY: as above.
        ok(unsafe { weir_graph_add_output(self.graph, name.as_ptr(), value) });
    }

    /// The program reads constants where they lie: the graph outlives it.
    pub fn compile(&self) -> Compiled<'_> {
        let engines = [self.device.processor, self.device.engine];
        let count = if self.device.processor == self.device.engine { 1 } else { 2 };
        let mut program = null_mut();
        // SAFETY: as above.
        ok(unsafe { weir_graph_compile(self.graph, engines.as_ptr(), count, null(), &raw mut program) });
        Compiled { device: self.device, program }
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: this one's.
        unsafe { weir_graph_destroy(self.graph) };
    }
}

pub struct Compiled<'a> {
    device: &'a Device,
    program: *mut Program,
}

impl Compiled<'_> {
    pub fn run(&self, inputs: &mut [Words], outputs: &[Desc]) -> Vec<Vec<u32>> {
        let from: Vec<_> = inputs.iter_mut().map(|input| self.device.tensor(&input.desc, &mut input.words)).collect();
        let mut results: Vec<Vec<u32>> = outputs.iter().map(|desc| vec![0; desc.elements().unwrap()]).collect();
        let to: Vec<_> =
            outputs.iter().zip(&mut results).map(|(desc, words)| self.device.tensor(desc, words)).collect();
        // SAFETY: without a stream the run is over when the call returns; then the references from above end.
        unsafe {
            let (inputs, outputs) = (from.as_ptr(), to.as_ptr());
            ok(weir_program_run(self.program, null_mut(), inputs, from.len(), outputs, to.len(), null()));
            from.iter().chain(&to).for_each(|&tensor| weir_tensor_release(tensor));
        }
        results
    }
}

impl Drop for Compiled<'_> {
    fn drop(&mut self) {
        // SAFETY: this one's.
        unsafe { weir_program_release(self.program) };
    }
}

/// A file of an example; where those are WEIR_TEST_EXAMPLES may say.
pub fn example(path: &str) -> Vec<u8> {
    let folder = std::env::var("WEIR_TEST_EXAMPLES");
    let path = format!("{}/{path}", folder.unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/examples").to_owned()));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Little-endian words of a file, one after the other.
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn word(&mut self) -> u32 {
        let (word, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        u32::from_le_bytes(*word)
    }

    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| f32::from_bits(self.word())).collect()
    }
}
