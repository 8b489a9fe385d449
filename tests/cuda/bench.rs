//! An engine on the first device, a stream, and arrays of 32-bit numbers.

use std::sync::{Arc, Mutex};
use weir_core::abi::WEIR_TIMEOUT_INFINITE;
use weir_core::abi::weir_cuda_argument_kind_value as A;
use weir_core::abi::{weir_cuda_argument, weir_cuda_kernel_desc, weir_cuda_source_value};
use weir_core::base::{Desc, Ref, Result, dtype};
use weir_core::device::{CUDA_KERNEL, DeviceKind, Operation};
use weir_core::engine::{
    BoundKernel, Engine, EngineAttr, Event, KernelIdentity, KernelOptions, Stream, StreamAttr, Tensor,
};
use weir_core::kernel::{Kernel, KernelContext, Outputs};

pub const LEN: usize = 1000;

/// What these tests launch, on the fake driver and on a real one.
pub const KERNELS: &str = concat!(include_str!("kernels.ptx"), "\0");

pub struct Bench {
    pub engine: Ref<Engine>,
    pub cpu: Ref<Engine>,
    pub stream: Ref<Stream>,
}

pub fn desc() -> Desc {
    Desc::new(dtype::S32, &[LEN as i64])
}

/// A kernel with one output on one thread. What it is made from must stay.
pub fn kernel_desc(
    source: &str,
    kind: weir_cuda_source_value,
    entry: &std::ffi::CStr,
    arguments: &[weir_cuda_argument],
    inputs: usize,
) -> weir_cuda_kernel_desc {
    weir_cuda_kernel_desc {
        struct_size: size_of::<weir_cuda_kernel_desc>(),
        source: source.as_ptr().cast(),
        source_bytes: source.len(),
        source_kind: kind as u32,
        shared_bytes: 0,
        entry: entry.as_ptr(),
        options: std::ptr::null(),
        num_options: 0,
        grid: [1; 3],
        block: [1; 3],
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
    }
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(None).unwrap()
    }

    pub fn with(attr: Option<&EngineAttr>) -> Result<Bench> {
        let engine = Engine::create(DeviceKind::CUDA, 0, attr)?;
        let stream = Stream::create(engine.clone(), StreamAttr::new(DeviceKind::CUDA))?;
        Ok(Bench { engine, cpu: Engine::create(DeviceKind::CPU, 0, None)?, stream })
    }

    pub fn stream(&self, name: &str) -> Ref<Stream> {
        let mut attr = StreamAttr::new(DeviceKind::CUDA);
        attr.name = name.to_owned();
        Stream::create(self.engine.clone(), attr).unwrap()
    }

    pub fn on_device(&self) -> Result<Ref<Tensor>> {
        Tensor::create(self.engine.clone(), desc())
    }

    pub fn on_host(&self, value: impl Fn(usize) -> i32) -> Ref<Tensor> {
        let tensor = Tensor::create(self.cpu.clone(), desc()).unwrap();
        for i in 0..LEN {
            // SAFETY: an array of so many numbers that nobody uses yet.
            unsafe { tensor.data().cast::<i32>().add(i).write(value(i)) };
        }
        tensor
    }

    pub fn event(&self) -> Ref<Event> {
        Event::create(self.engine.clone(), false)
    }

    /// A kernel of `KERNELS`.
    pub fn kernel(
        &self,
        function: &'static str,
        inputs: usize,
        arguments: &[weir_cuda_argument],
    ) -> Result<Ref<BoundKernel>> {
        self.kernel_of(KERNELS, function, inputs, arguments)
    }

    pub fn kernel_of(
        &self,
        ptx: &str,
        function: &'static str,
        inputs: usize,
        arguments: &[weir_cuda_argument],
    ) -> Result<Ref<BoundKernel>> {
        let entry = std::ffi::CString::new(function).unwrap();
        let desc = kernel_desc(ptx, weir_cuda_source_value::WEIR_CUDA_SOURCE_PTX, &entry, arguments, inputs);
        self.create(function, inputs, &desc)
    }

    pub fn create(&self, name: &'static str, inputs: usize, desc: &weir_cuda_kernel_desc) -> Result<Ref<BoundKernel>> {
        // SAFETY: the bytes of a plain struct.
        let attributes =
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(desc).cast::<u8>(), size_of_val(desc)) };
        let operation = KernelIdentity::of(Operation::Named(CUDA_KERNEL, attributes));
        self.create_with(Signature { name, inputs, last_words: Mutex::new(None) }, operation)
    }

    fn create_with(&self, signature: Signature, operation: KernelIdentity<'_>) -> Result<Ref<BoundKernel>> {
        let signature = Arc::new(signature);
        BoundKernel::create_as(self.engine.clone(), signature, operation, &KernelOptions::default())
    }

    /// out[i] = a[i] + b[i], of floats.
    pub fn add(&self) -> Result<Ref<BoundKernel>> {
        self.kernel("add", 2, &[output(0), input(0), input(1), output_elements(0)])
    }

    /// out[i] = value.
    pub fn fill(&self, value: u32) -> Ref<BoundKernel> {
        let value = [value];
        self.kernel("fill", 0, &[output(0), output_elements(0), number(&value)]).unwrap()
    }

    /// The same; the kernel does something as it ends.
    pub fn fill_with(&self, value: u32, last_words: LastWords) -> Ref<BoundKernel> {
        let value = [value];
        let arguments = [output(0), output_elements(0), number(&value)];
        let kind = weir_cuda_source_value::WEIR_CUDA_SOURCE_PTX;
        let desc = kernel_desc(KERNELS, kind, c"fill", &arguments, 0);
        // SAFETY: the bytes of a plain struct.
        let attributes =
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&desc).cast::<u8>(), size_of_val(&desc)) };
        let signature = Signature { name: "fill", inputs: 0, last_words: Mutex::new(Some(last_words)) };
        self.create_with(signature, KernelIdentity::of(Operation::Named(CUDA_KERNEL, attributes))).unwrap()
    }

    pub fn wait(&self) -> Result<()> {
        self.stream.synchronize(WEIR_TIMEOUT_INFINITE)
    }

    /// The numbers of a tensor on the device.
    pub fn read(&self, tensor: &Ref<Tensor>) -> Result<Vec<i32>> {
        let host = self.on_host(|_| -1);
        self.stream.enqueue_copy(tensor.clone(), host.clone())?;
        self.wait()?;
        Ok(values(&host))
    }
}

pub fn values(tensor: &Tensor) -> Vec<i32> {
    // SAFETY: numbers on the host that no work uses any more.
    (0..LEN).map(|i| unsafe { tensor.data().cast::<i32>().add(i).read() }).collect()
}

fn argument(kind: A, index: u32) -> weir_cuda_argument {
    weir_cuda_argument { kind: kind as u32, index, value: std::ptr::null(), bytes: 0 }
}

pub fn output(index: u32) -> weir_cuda_argument {
    argument(A::WEIR_CUDA_ARGUMENT_OUTPUT, index)
}

pub fn input(index: u32) -> weir_cuda_argument {
    argument(A::WEIR_CUDA_ARGUMENT_INPUT, index)
}

pub fn output_elements(index: u32) -> weir_cuda_argument {
    argument(A::WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS, index)
}

pub fn number<T>(value: &[T; 1]) -> weir_cuda_argument {
    let (value, bytes) = (value.as_ptr().cast(), size_of_val(value));
    weir_cuda_argument { value, bytes, ..argument(A::WEIR_CUDA_ARGUMENT_VALUE, 0) }
}

/// Arrays in, an array out, and no body on the host.
struct Signature {
    name: &'static str,
    inputs: usize,
    last_words: Mutex<Option<LastWords>>,
}

type LastWords = Box<dyn FnOnce() + Send>;

impl Drop for Signature {
    fn drop(&mut self) {
        let last_words = self.last_words.lock().unwrap().take();
        if let Some(last_words) = last_words {
            last_words();
        }
    }
}

impl Kernel for Signature {
    fn name(&self) -> &str {
        self.name
    }

    fn num_inputs(&self) -> usize {
        self.inputs
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
