//! Tensors, a call on the processor, the same call on the interpreter, and how far the two may be apart.

use std::collections::HashMap;
use std::sync::OnceLock;
use weir_core::abi::{weir_kernel_options, weir_memory, weir_memory_source_value, weir_status, weir_tensor_desc};
use weir_core::base::{Code, Desc, dtype};
use weir_core::device::cuda::operator;
use weir_core::device::cuda::plan::{IMAGES, KernelLaunch, Operator, Params};
use weir_core::device::{Operation, Recipe};
use weir_core::kernel::vector::isa::{Isa, SimdLevel};
use weir_core::memory::View;
use weir_core::ops::{Described, Descriptor, Op};
use weir_ptx::{Module, NoCalls, Slice};

/// Handles, as the interface in C has them.
#[repr(C)]
pub struct Engine {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct Kernel {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct Stream {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct Held {
    _opaque: [u8; 0],
}

/// What makes a kernel.
pub type Create<D> =
    unsafe extern "C" fn(*mut Engine, *const D, *const weir_kernel_options, *mut *mut Kernel) -> weir_status;

#[allow(improper_ctypes, reason = "attributes are opaque here: NULL is all that is passed")]
unsafe extern "C" {
    pub fn weir_engine_create(kind: u32, index: u32, attr: *const u8, out: *mut *mut Engine) -> weir_status;
    pub fn weir_stream_create(engine: *mut Engine, flags: u64, attr: *const u8, out: *mut *mut Stream) -> weir_status;
    pub fn weir_stream_release(stream: *mut Stream);
    pub fn weir_tensor_create(
        engine: *mut Engine,
        desc: *const weir_tensor_desc,
        from: *const weir_memory,
        out: *mut *mut Held,
    ) -> weir_status;
    pub fn weir_tensor_release(tensor: *mut Held);
    fn weir_kernel_infer(
        kernel: *const Kernel,
        inputs: *const weir_tensor_desc,
        num_inputs: usize,
        outputs: *mut weir_tensor_desc,
        num_outputs: usize,
    ) -> weir_status;
    pub fn weir_kernel_release(kernel: *mut Kernel);
    pub fn weir_enqueue(
        stream: *mut Stream,
        kernel: *mut Kernel,
        inputs: *const *mut Held,
        num_inputs: usize,
        outputs: *const *mut Held,
        num_outputs: usize,
    ) -> weir_status;
    fn weir_last_error_message() -> *const std::ffi::c_char;
}

#[track_caller]
pub fn ok(status: weir_status) {
    if status != 0 {
        // SAFETY: the text of this thread's last failure, until its next call.
        let text = unsafe { std::ffi::CStr::from_ptr(weir_last_error_message()) };
        panic!("{}", text.to_string_lossy());
    }
}

/// The processor's engine. Its kernels are those of AVX2 where there is one, whose formulas the PTX has.
pub fn engine() -> *mut Engine {
    static ENGINE: OnceLock<usize> = OnceLock::new();
    *ENGINE.get_or_init(|| {
        if std::env::var_os("WEIR_MAX_ISA").is_none() && Isa::detected().level > SimdLevel::Avx2 {
            // SAFETY: tests come here before anything of theirs reads the environment.
            unsafe { std::env::set_var("WEIR_MAX_ISA", "avx2") };
        }
        let mut engine = std::ptr::null_mut();
        // SAFETY: a place for the answer.
        ok(unsafe { weir_engine_create(1, 0, std::ptr::null(), &raw mut engine) });
        engine as usize
    }) as *mut Engine
}

/// Whether what is computed by the same formulas has the same bits.
pub fn is_exact() -> bool {
    engine();
    Isa::best().level == SimdLevel::Avx2
}

#[derive(Clone, Debug)]
pub struct Tensor {
    pub desc: Desc,
    pub bytes: Vec<u8>,
}

impl Tensor {
    pub fn zeroed(desc: Desc) -> Tensor {
        Tensor { desc, bytes: vec![0; desc.bytes().unwrap()] }
    }

    pub fn f32(dims: &[i64], mut value: impl FnMut(usize) -> f32) -> Tensor {
        Tensor::stored(dtype::F32, dims, |i| value(i).to_le_bytes().to_vec())
    }

    pub fn s32(dims: &[i64], mut value: impl FnMut(usize) -> i32) -> Tensor {
        Tensor::stored(dtype::S32, dims, |i| value(i).to_le_bytes().to_vec())
    }

    pub fn s64(dims: &[i64], mut value: impl FnMut(usize) -> i64) -> Tensor {
        Tensor::stored(dtype::S64, dims, |i| value(i).to_le_bytes().to_vec())
    }

    fn stored(of: u32, dims: &[i64], value: impl FnMut(usize) -> Vec<u8>) -> Tensor {
        let desc = Desc::new(of, dims);
        let bytes = (0..desc.elements().unwrap()).flat_map(value).collect::<Vec<_>>();
        assert_eq!(bytes.len(), desc.bytes().unwrap());
        Tensor { desc, bytes }
    }

    /// Numbers of some size, the same for the same seed.
    pub fn random(of: u32, dims: &[i64], seed: u64) -> Tensor {
        let mut random = Random::new(seed);
        Tensor::stored(of, dims, |_| match of {
            dtype::F32 => random.float().to_le_bytes().to_vec(),
            dtype::BF16 => ((random.float().to_bits() >> 16) as u16).to_le_bytes().to_vec(),
            // A sign, an exponent around that of 1, and any fraction.
            dtype::F16 => {
                let bits = random.next();
                ((bits & 0x83ff) as u16 | (12 + (bits >> 20 & 3) as u16) << 10).to_le_bytes().to_vec()
            }
            dtype::S32 => ((random.next() % 2001) as i32 - 1000).to_le_bytes().to_vec(),
            dtype::S64 => (i64::from(random.next()) - 1000).to_le_bytes().to_vec(),
            dtype::BOOL => vec![(random.next() & 1) as u8],
            _ => vec![random.next() as u8],
        })
    }

    fn number(&self, i: usize) -> f64 {
        let size = dtype::size(self.desc.dtype).unwrap();
        let bytes = &self.bytes[i * size..][..size];
        let word = || bytes.try_into().map(u32::from_le_bytes).unwrap();
        let half = || bytes.try_into().map(u16::from_le_bytes).unwrap();
        match self.desc.dtype {
            dtype::F32 => f32::from_bits(word()).into(),
            dtype::S32 => (word() as i32).into(),
            dtype::BF16 => f32::from_bits(u32::from(half()) << 16).into(),
            dtype::F16 => {
                let (bits, sign) = (half(), if half() >> 15 == 1 { -1.0 } else { 1.0 });
                let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
                sign * match exponent {
                    0 => fraction * 2f64.powi(-24),
                    31 if fraction == 0.0 => f64::INFINITY,
                    31 => f64::NAN,
                    _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
                }
            }
            dtype::S64 => bytes.try_into().map(i64::from_le_bytes).unwrap() as f64,
            dtype::S8 => (bytes[0] as i8).into(),
            _ => bytes[0].into(),
        }
    }
}

/// Numbers that look random.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// From -2 to 2.
    pub fn float(&mut self) -> f32 {
        (self.next() >> 7) as f32 / (1 << 22) as f32 - 2.0
    }
}

/// A tensor's bytes in words, so that elements are aligned.
pub fn words(tensor: &Tensor) -> Vec<u64> {
    let mut words = vec![0; tensor.bytes.len() / 8 + 1];
    as_bytes(&mut words)[..tensor.bytes.len()].copy_from_slice(&tensor.bytes);
    words
}

/// Memory of the host's for a tensor.
pub fn over(words: &mut [u64]) -> weir_memory {
    weir_memory {
        struct_size: size_of::<weir_memory>(),
        source: weir_memory_source_value::WEIR_MEMORY_FOREIGN as u32,
        reserved: 0,
        data: words.as_mut_ptr().cast(),
        bytes: 0,
        release: None,
        release_ctx: std::ptr::null_mut(),
        buffer: std::ptr::null_mut(),
        offset: 0,
        device: std::ptr::null_mut(),
    }
}

pub fn as_bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: the same memory; all bits of both mean something.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// How far results may be apart. A NaN stands for any other, and a zero for the other one.
#[derive(Clone, Copy, Debug)]
pub enum Distance {
    /// Not at all.
    None,
    /// Not at all where the processor has the formulas of the PTX; elsewhere relative to the larger of 1 and the
    /// number.
    Formula(f64),
    /// Relative to the larger of 1 and the number.
    Near(f64),
}

/// A call on the processor.
pub fn on_processor<D>(create: Create<D>, desc: &D, inputs: &[Tensor], num_outputs: usize) -> Vec<Tensor> {
    let (engine, mut kernel, mut stream) = (engine(), std::ptr::null_mut(), std::ptr::null_mut());
    let descs: Vec<Desc> = inputs.iter().map(|input| input.desc).collect();
    let mut of_outputs = vec![Desc::new(dtype::F32, &[]); num_outputs];
    // SAFETY: places for the answers, and descriptors that live during the call.
    unsafe {
        ok(create(engine, desc, std::ptr::null(), &raw mut kernel));
        ok(weir_kernel_infer(kernel, descs.as_ptr(), descs.len(), of_outputs.as_mut_ptr(), num_outputs));
        ok(weir_stream_create(engine, 0, std::ptr::null(), &raw mut stream));
    }
    let mut outputs: Vec<_> = of_outputs.iter().map(|&desc| Tensor::zeroed(desc)).collect();
    let mut memory: Vec<Vec<u64>> = inputs.iter().chain(&outputs).map(words).collect();
    let handles: Vec<*mut Held> = inputs
        .iter()
        .chain(&outputs)
        .zip(&mut memory)
        .map(|(tensor, memory)| {
            let mut handle = std::ptr::null_mut();
            // SAFETY: memory of the tensor's size, which lives until it is released.
            ok(unsafe { weir_tensor_create(engine, &raw const tensor.desc, &over(memory), &raw mut handle) });
            handle
        })
        .collect();
    let (of_inputs, of_outputs) = handles.split_at(inputs.len());
    // SAFETY: handles from above; a synchronous stream is done when the call returns.
    unsafe {
        ok(weir_enqueue(stream, kernel, of_inputs.as_ptr(), of_inputs.len(), of_outputs.as_ptr(), of_outputs.len()));
        handles.iter().for_each(|&handle| weir_tensor_release(handle));
        weir_stream_release(stream);
        weir_kernel_release(kernel);
    }
    for (output, memory) in outputs.iter_mut().zip(&mut memory[inputs.len()..]) {
        output.bytes.copy_from_slice(&as_bytes(memory)[..output.desc.bytes().unwrap()]);
    }
    outputs
}

/// A descriptor as devices get it.
pub fn described<D: Descriptor<Operator: Into<Op>>>(desc: &D) -> Described {
    Described::new::<D::Operator>(&mut desc.clone(), None).unwrap().1
}

/// A module's text as the interpreter has it.
pub fn module(name: &str) -> &'static Module {
    static MODULES: OnceLock<HashMap<&'static str, OnceLock<Module>>> = OnceLock::new();
    let modules = MODULES.get_or_init(|| IMAGES.iter().map(|image| (image.name, OnceLock::new())).collect());
    modules[name].get_or_init(|| {
        let image = IMAGES.iter().find(|image| image.name == name).unwrap();
        Module::parse(&image.ptx().unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
    })
}

/// An operation, and a call's tensors, of which the outputs begin with other bytes than they get, with addresses on a
/// device.
fn prepared(
    operation: &str,
    described: &Described,
    inputs: &[Tensor],
    outputs: &[Desc],
) -> (Box<dyn Operator>, Vec<Tensor>, Vec<View>) {
    let recipe = Recipe {
        name: operation,
        operation: Operation::Builtin(described),
        num_inputs: inputs.len(),
        num_outputs: outputs.len(),
        host: None,
    };
    let operator = operator(&recipe).unwrap_or_else(|error| panic!("{operation}: {}", error.message()));
    let mut tensors: Vec<Tensor> = inputs.to_vec();
    tensors.extend(outputs.iter().map(|&desc| {
        let mut output = Tensor::zeroed(desc);
        output.bytes.fill(0xcd);
        output
    }));
    // Far apart, and as aligned as memory of a device's is.
    let mut next = 0x7_0000_0000usize;
    let views = tensors.iter().map(|tensor| {
        // SAFETY: addresses of a device's that is not there; nobody follows them.
        let view = unsafe { View::new(std::ptr::without_provenance_mut(next), tensor.bytes.len(), tensor.desc) };
        next += (tensor.bytes.len() + 4096).next_multiple_of(4096);
        view
    });
    let views = views.collect();
    (operator, tensors, views)
}

fn name(launch: &KernelLaunch<'_>) -> String {
    launch.entry.name.to_str().unwrap().to_owned()
}

/// The names of the kernels that a call launches, or why it is refused.
pub fn plan(
    operation: &str,
    described: &Described,
    inputs: &[Tensor],
    outputs: &[Desc],
) -> std::result::Result<Vec<String>, String> {
    let (operator, _, views) = prepared(operation, described, inputs, outputs);
    let mut names = Vec::new();
    let planned = operator.launches(&views[..inputs.len()], &views[inputs.len()..], &mut |launch| {
        names.push(name(launch));
        Ok(())
    });
    planned.map(|()| names).map_err(|error| format!("{operation}: {}", error.message()))
}

/// What the outputs of a call on the processor look like; None if the inputs are refused.
pub fn infer<D>(create: Create<D>, desc: &D, inputs: &[Desc], num_outputs: usize) -> Option<Vec<Desc>> {
    let (engine, mut kernel) = (engine(), std::ptr::null_mut());
    let mut outputs = vec![Desc::new(dtype::F32, &[]); num_outputs];
    // SAFETY: places for the answers, and descriptors that live during the call.
    unsafe {
        ok(create(engine, desc, std::ptr::null(), &raw mut kernel));
        let status = weir_kernel_infer(kernel, inputs.as_ptr(), inputs.len(), outputs.as_mut_ptr(), num_outputs);
        weir_kernel_release(kernel);
        (status == 0).then_some(outputs)
    }
}

/// A call on the interpreter: the outputs, and the names of the kernels.
fn on_device(
    operation: &str,
    described: &Described,
    inputs: &[Tensor],
    outputs: &[Desc],
) -> (Vec<Tensor>, Vec<String>) {
    let (operator, mut tensors, views) = prepared(operation, described, inputs, outputs);
    let (of_inputs, of_outputs) = views.split_at(inputs.len());
    let mut memories: Vec<_> = tensors.iter().map(words).collect();
    let mut names = Vec::new();
    let launched = operator.launches(of_inputs, of_outputs, &mut |launch| {
        let mut memory = Slice::new();
        for ((view, tensor), words) in views.iter().zip(&tensors).zip(&mut memories) {
            memory.add(view.data().addr() as u64, &mut as_bytes(words)[..tensor.bytes.len()]);
        }
        let entry = module(launch.entry.image.name).entry(&name(launch)).unwrap();
        let (grid, block, shared) = (launch.grid, launch.block, launch.shared_bytes);
        // Nothing is found: there is no memory where a failure would be told.
        let checked = launch.check.map(|_| Params::checked(launch, 0x1000, 1, 0));
        let params = checked.as_ref().map_or(launch.params, Params::bytes);
        let ran = entry.run(grid, block, shared, params, &mut memory, &mut NoCalls);
        ran.unwrap_or_else(|fault| panic!("{operation}: {fault}"));
        names.push(name(launch));
        Ok(())
    });
    launched.unwrap_or_else(|error| panic!("{operation}: {}", error.message()));
    for (tensor, words) in tensors.iter_mut().zip(&mut memories) {
        tensor.bytes.copy_from_slice(&as_bytes(words)[..tensor.desc.bytes().unwrap()]);
    }
    for (was, is) in inputs.iter().zip(&tensors) {
        assert!(was.bytes == is.bytes, "{operation}: an input was written");
    }
    (tensors.split_off(inputs.len()), names)
}

/// Compares the two; gives the names of the kernels.
#[track_caller]
pub fn check<D: Descriptor<Operator: Into<Op>>>(
    operation: &str,
    create: Create<D>,
    desc: &D,
    inputs: &[Tensor],
    distance: Distance,
) -> Vec<String> {
    check_outputs(operation, create, desc, inputs, 1, distance)
}

#[track_caller]
pub fn check_outputs<D: Descriptor<Operator: Into<Op>>>(
    operation: &str,
    create: Create<D>,
    desc: &D,
    inputs: &[Tensor],
    num_outputs: usize,
    distance: Distance,
) -> Vec<String> {
    let want = on_processor(create, desc, inputs, num_outputs);
    let of_outputs: Vec<Desc> = want.iter().map(|tensor| tensor.desc).collect();
    if crate::engine::is_wanted() {
        let got = crate::engine::call(create, desc, inputs, &of_outputs);
        compare(operation, inputs, &want, &got, distance, &["the engine".to_owned()]);
        // What is launched is what the interpreter runs; which kernels that are the planning alone says.
        return plan(operation, &described(desc), inputs, &of_outputs).unwrap();
    }
    let (got, names) = on_device(operation, &described(desc), inputs, &of_outputs);
    compare(operation, inputs, &want, &got, distance, &names);
    names
}

#[track_caller]
fn compare(operation: &str, inputs: &[Tensor], want: &[Tensor], got: &[Tensor], distance: Distance, names: &[String]) {
    let most = match distance {
        Distance::None => 0.0,
        Distance::Formula(_) if is_exact() => 0.0,
        Distance::Formula(most) | Distance::Near(most) => most,
    };
    let shapes: Vec<String> = inputs.iter().map(|input| input.desc.text()).collect();
    for (number, (want, got)) in want.iter().zip(got).enumerate() {
        for i in 0..want.desc.elements().unwrap() {
            let (a, b) = (want.number(i), got.number(i));
            // Numbers of 64 bits are more than f64 tells apart.
            let differs = want.desc.dtype == dtype::S64 && want.bytes[8 * i..][..8] != got.bytes[8 * i..][..8];
            let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= most * a.abs().max(1.0);
            assert!(
                same && !differs,
                "{operation} of {shapes:?} by {names:?}: output {number}, {}: element {i} is {b}, the processor has {a}; {distance:?}",
                want.desc.text()
            );
        }
    }
}

/// The text with which an operation is refused.
pub fn refusal(operation: Operation<'_>, num_inputs: usize) -> String {
    let recipe = Recipe { name: operation.name(), operation, num_inputs, num_outputs: 1, host: None };
    let error = operator(&recipe).expect_err("it was taken");
    assert_eq!(error.code(), Code::Unimplemented);
    error.message().to_owned()
}
