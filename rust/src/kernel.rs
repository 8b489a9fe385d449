//! Kernels: functions over tensors, from closures and from weir's operators.

use crate::callback::{contained, drop_box, silenced};
use crate::element::elements;
use crate::error::{check, message, name, text_of};
use crate::handle::shared_handle;
use crate::ops::Operator;
use crate::{DType, Element, Engine, Error, ErrorKind, Result, TensorDesc, region};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_core::abi::{
    weir_host_kernel_desc, weir_kernel, weir_kernel_context, weir_kernel_flags as Flags, weir_kernel_info, weir_status,
    weir_tensor_desc, weir_tensor_view,
};
use weir_core::ffi;

shared_handle! {
    /// A function over tensors with a checked signature: a closure, or one of weir's [operators](crate::ops).
    ///
    /// ```
    /// use weir::{Engine, Kernel, Stream, Tensor, TensorDesc};
    ///
    /// let cpu = Engine::cpu()?;
    /// let four = TensorDesc::of::<f32>(&[4]);
    /// let twice = Kernel::from_fn(&cpu, "twice", &[four], &[four], |call| {
    ///     let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
    ///     y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
    ///     Ok(())
    /// })?;
    /// let x = Tensor::from_slice(&cpu, &[4], &[1.0_f32, 2.0, 3.0, 4.0])?;
    /// let mut y = Tensor::new(&cpu, four)?;
    /// Stream::new(&cpu)?.enqueue(&twice, &[&x], &mut [&mut y])?;
    /// assert_eq!(y.as_slice::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    Kernel(weir_kernel), ffi::weir_kernel_retain, ffi::weir_kernel_release
}

impl Kernel {
    /// A kernel of one of weir's operators. Operators with the same settings share what they have prepared.
    pub fn new<O: Operator>(engine: &Engine, operator: &O) -> Result<Kernel> {
        let mut raw = std::ptr::null_mut();
        operator.create(engine.raw(), &mut raw)?;
        // SAFETY: a new reference.
        unsafe { Kernel::from_raw(raw) }
    }

    /// A kernel from a closure, on a CPU engine. The tensors of a call match `inputs` and `outputs`; in `inputs`
    /// [`DType::Any`] and [`OPEN`](crate::OPEN) match anything. [`Kernel::builder`] has more settings.
    ///
    /// The closure runs on any thread, several calls at once, and must not block. A failure or a panic of it is that of
    /// the call. So what it captures is shared by threads:
    ///
    /// ```compile_fail,E0277
    /// # use weir::{Engine, Kernel};
    /// # fn main() -> weir::Result<()> {
    /// let count = std::rc::Rc::new(std::cell::Cell::new(0));
    /// Kernel::from_fn(&Engine::cpu()?, "count", &[], &[], move |_| Ok(count.set(1)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// And nothing of a call outlives it:
    ///
    /// ```compile_fail,E0521
    /// # use weir::{Engine, Kernel, TensorDesc};
    /// # fn main() -> weir::Result<()> {
    /// let kept = std::sync::Mutex::new(None);
    /// Kernel::from_fn(&Engine::cpu()?, "keep", &[TensorDesc::of::<f32>(&[1])], &[], move |call| {
    ///     *kept.lock().unwrap() = Some(call.input::<f32>(0)?);
    ///     Ok(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_fn<F>(
        engine: &Engine,
        name: &str,
        inputs: &[TensorDesc],
        outputs: &[TensorDesc],
        compute: F,
    ) -> Result<Kernel>
    where
        F: Fn(&Call) -> Result<()> + Send + Sync + 'static,
    {
        Kernel::builder(name).inputs(inputs).outputs(outputs).build(engine, compute)
    }

    /// Settings for a kernel from a closure.
    pub fn builder(name: &str) -> KernelBuilder {
        KernelBuilder {
            name: name.to_owned(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            infer: None,
            flags: 0,
            cost: Duration::ZERO,
        }
    }

    /// The name: the closure's, or the operator's.
    pub fn name(&self) -> Result<String> {
        Ok(text_of(&self.info()?.name))
    }

    /// The number of inputs.
    pub fn num_inputs(&self) -> Result<usize> {
        Ok(self.info()?.num_inputs)
    }

    /// The number of outputs.
    pub fn num_outputs(&self) -> Result<usize> {
        Ok(self.info()?.num_outputs)
    }

    /// The descriptions of the outputs for inputs of these descriptions.
    pub fn infer(&self, inputs: &[TensorDesc]) -> Result<Vec<TensorDesc>> {
        let inputs: Vec<_> = inputs.iter().map(|desc| desc.to_c()).collect();
        let mut outputs = vec![TensorDesc::new(DType::Any, &[]).to_c(); self.num_outputs()?];
        let (from, into) = (inputs.as_ptr(), outputs.as_mut_ptr());
        // SAFETY: a live handle, and arrays of these lengths.
        check(unsafe { ffi::weir_kernel_infer(self.raw(), from, inputs.len(), into, outputs.len()) })?;
        Ok(outputs.iter().map(TensorDesc::from_c).collect())
    }

    fn info(&self) -> Result<weir_kernel_info> {
        let size = size_of::<weir_kernel_info>();
        let mut info = weir_kernel_info { struct_size: size, num_inputs: 0, num_outputs: 0, name: [0; _] };
        // SAFETY: a live handle, and a struct of this size.
        check(unsafe { ffi::weir_kernel_get_info(self.raw(), &raw mut info) })?;
        Ok(info)
    }
}

type Infer = Box<dyn Fn(&[TensorDesc]) -> Result<Vec<TensorDesc>> + Send + Sync>;

/// Settings for a kernel from a closure, from [`Kernel::builder`].
#[must_use = "a kernel is made by `build`"]
pub struct KernelBuilder {
    name: String,
    inputs: Vec<TensorDesc>,
    outputs: Vec<TensorDesc>,
    infer: Option<Infer>,
    flags: u64,
    cost: Duration,
}

impl std::fmt::Debug for KernelBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KernelBuilder({:?}, {:?} -> {:?})", self.name, self.inputs, self.outputs)
    }
}

impl KernelBuilder {
    /// The patterns that inputs match.
    pub fn inputs(mut self, inputs: &[TensorDesc]) -> Self {
        self.inputs = inputs.to_vec();
        self
    }

    /// The descriptions of the outputs. Their open dimensions are up to [`infer`](Self::infer).
    pub fn outputs(mut self, outputs: &[TensorDesc]) -> Self {
        self.outputs = outputs.to_vec();
        self
    }

    /// Computes the descriptions of all outputs from those of the inputs, always the same ones for the same inputs. A
    /// failure refuses the inputs.
    ///
    /// ```
    /// use weir::{Engine, Kernel, OPEN, TensorDesc};
    ///
    /// let cpu = Engine::cpu()?;
    /// let matrix = TensorDesc::of::<f32>(&[OPEN, OPEN]);
    /// let row_sums = Kernel::builder("row sums")
    ///     .inputs(&[matrix])
    ///     .outputs(&[TensorDesc::of::<f32>(&[OPEN])])
    ///     .infer(|inputs| Ok(vec![TensorDesc::of::<f32>(&inputs[0].dims()[..1])]))
    ///     .build(&cpu, |call| {
    ///         let (columns, x) = (call.input_desc(0)?.dims()[1], call.input::<f32>(0)?);
    ///         call.parallel_chunks(call.output::<f32>(0)?, 1, 0.0, |row, sum| {
    ///             sum[0] = x[row * columns..][..columns].iter().sum();
    ///         })
    ///     })?;
    /// assert_eq!(row_sums.infer(&[TensorDesc::of::<f32>(&[4, 1000])])?, [TensorDesc::of::<f32>(&[4])]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn infer(mut self, infer: impl Fn(&[TensorDesc]) -> Result<Vec<TensorDesc>> + Send + Sync + 'static) -> Self {
        self.infer = Some(Box::new(infer));
        self
    }

    /// The outputs depend on the inputs alone, and there are no side effects: compile may call it once, on constants.
    pub fn pure(mut self) -> Self {
        self.flags |= Flags::WEIR_KERNEL_PURE as u64;
        self
    }

    /// Inputs in a graph may have open dimensions, where [`inputs`](Self::inputs) has them: the closure sees the shapes
    /// of the run. It decides the shapes of outputs that are open ([`Call::allocate_output`]).
    ///
    /// ```
    /// use weir::{Engine, Graph, Kernel, OPEN, Tensor, TensorDesc};
    ///
    /// let cpu = Engine::cpu()?;
    /// let some = TensorDesc::of::<f32>(&[OPEN]);
    /// let filter = Kernel::builder("filter").inputs(&[some]).outputs(&[some]).dynamic().build(&cpu, |call| {
    ///     let kept: Vec<f32> = call.input::<f32>(0)?.iter().copied().filter(|&x| x > 0.0).collect();
    ///     call.allocate_output(0, &[kept.len()])?.copy_from_slice(&kept);
    ///     Ok(())
    /// })?;
    /// let mut graph = Graph::new("positive")?;
    /// let x = graph.input("x", some)?;
    /// let positive = graph.kernel("filter", &filter, &[x])?;
    /// graph.output("y", positive[0])?;
    /// let y = graph.compile(&[&cpu])?.run(&[&Tensor::from_slice(&cpu, &[3], &[1.0_f32, -2.0, 3.0])?])?;
    /// assert_eq!(y[0].as_slice::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn dynamic(mut self) -> Self {
        self.flags |= Flags::WEIR_KERNEL_DYNAMIC as u64;
        self
    }

    /// The closure may block. Graphs with such a kernel need
    /// [`CompileOptions::blocking_threadpool`](crate::CompileOptions::blocking_threadpool).
    pub fn may_block(mut self) -> Self {
        self.flags |= Flags::WEIR_KERNEL_MAY_BLOCK as u64;
        self
    }

    /// The estimated cost of a call, until it has been measured. It changes no result.
    pub fn cost(mut self, cost: Duration) -> Self {
        self.cost = cost;
        self
    }

    /// Makes the kernel, on a CPU engine. [`Kernel::from_fn`] says what the closure may do.
    pub fn build<F>(self, engine: &Engine, compute: F) -> Result<Kernel>
    where
        F: Fn(&Call) -> Result<()> + Send + Sync + 'static,
    {
        if !engine.is_host()? {
            let text = format!("kernel '{}': a closure cannot run on engine {}", self.name, engine.name()?);
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let text = name(&self.name)?;
        let to_c = |descs: &[TensorDesc]| descs.iter().map(|desc| desc.to_c()).collect::<Vec<_>>();
        let (inputs, outputs) = (to_c(&self.inputs), to_c(&self.outputs));
        let infer = self.infer.is_some().then_some(infer::<F> as unsafe extern "C" fn(_, _, _, _, _) -> _);
        let user = Box::into_raw(Box::new(HostKernel { compute, infer: self.infer }));
        let desc = weir_host_kernel_desc {
            struct_size: size_of::<weir_host_kernel_desc>(),
            name: text.as_ptr(),
            compute: Some(compute_with::<F>),
            user: user.cast(),
            destroy: Some(drop_box::<HostKernel<F>>),
            num_inputs: inputs.len(),
            inputs: inputs.as_ptr(),
            num_outputs: outputs.len(),
            outputs: outputs.as_ptr(),
            infer,
            cost_ns: u64::try_from(self.cost.as_nanos()).unwrap_or(u64::MAX),
            scratch_bytes: 0,
            flags: self.flags,
            compute_async: None,
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: a live handle, a struct that lives during the call, and functions for this `user`.
        check(unsafe { ffi::weir_kernel_create_host(engine.raw(), &raw const desc, &raw mut raw) }).inspect_err(
            |_| {
                // SAFETY: weir refused it, so nobody else has it.
                unsafe { drop_box::<HostKernel<F>>(user.cast()) }
            },
        )?;
        // SAFETY: a new reference.
        unsafe { Kernel::from_raw(raw) }
    }
}

struct HostKernel<F> {
    compute: F,
    infer: Option<Infer>,
}

/// # Safety
/// `user` is a `HostKernel<F>`, and `context` a call in progress.
unsafe extern "C" fn compute_with<F: Fn(&Call) -> Result<()>>(
    user: *mut c_void,
    context: *mut weir_kernel_context,
) -> weir_status {
    let result = contained(|| {
        // SAFETY: as demanded of the caller. The references end with this call.
        let (kernel, call) = unsafe { (&*user.cast_const().cast::<HostKernel<F>>(), Call::of(context)?) };
        (kernel.compute)(&call)
    });
    let Err(error) = result else { return 0 };
    let code = error.kind().code();
    // SAFETY: the call is still in progress, and the text lives as long as this one.
    let _ = unsafe { ffi::weir_kernel_context_fail(context, code, message(error.message()).as_ptr()) };
    silenced(|| drop(error));
    code
}

/// # Safety
/// `user` is a `HostKernel<F>`, and the arrays have these lengths.
unsafe extern "C" fn infer<F>(
    user: *mut c_void,
    inputs: *const weir_tensor_desc,
    num_inputs: usize,
    outputs: *mut weir_tensor_desc,
    num_outputs: usize,
) -> weir_status {
    let result = contained(|| {
        // SAFETY: as demanded of the caller.
        let (kernel, inputs, outputs) = unsafe {
            let kernel = &*user.cast_const().cast::<HostKernel<F>>();
            (kernel, slice(inputs, num_inputs), slice_mut(outputs, num_outputs))
        };
        let Some(infer) = &kernel.infer else { return Ok(()) };
        let inferred = infer(&inputs.iter().map(TensorDesc::from_c).collect::<Vec<_>>())?;
        if inferred.len() != num_outputs {
            let text = format!("infer gave {} descriptions of {num_outputs} outputs", inferred.len());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        for (output, desc) in outputs.iter_mut().zip(&inferred) {
            *output = desc.to_c();
        }
        Ok(())
    });
    crate::callback::status(result)
}

/// # Safety
/// `data` has `len` elements that nobody writes, or `len` is 0.
unsafe fn slice<'a, T>(data: *const T, len: usize) -> &'a [T] {
    // SAFETY: as demanded of the caller.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, len) } }
}

/// # Safety
/// `data` has `len` elements that nobody else uses, or `len` is 0.
unsafe fn slice_mut<'a, T>(data: *mut T, len: usize) -> &'a mut [T] {
    // SAFETY: as demanded of the caller.
    if len == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(data, len) } }
}

/// A running call of a kernel, as its closure sees it.
#[derive(Debug)]
pub struct Call {
    context: *mut weir_kernel_context,
    /// The views of the inputs, and of the outputs. Those of open outputs change when they are allocated.
    views: Mutex<[(*const weir_tensor_view, usize); 2]>,
    /// A bit for each output that was given out.
    taken: AtomicU64,
}

// SAFETY: "any thread, during the call", and a reference to it does not outlive the call.
unsafe impl Sync for Call {}

/// Inputs or outputs of a call.
#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::Input => "input",
            Side::Output => "output",
        })
    }
}

/// The number of an output that its holder alone has taken.
struct Taken(usize);

impl Call {
    /// # Safety
    /// The value does not outlive the call that `context` is of.
    unsafe fn of(context: *mut weir_kernel_context) -> Result<Call> {
        let mut views = [(std::ptr::null(), 0); 2];
        let [inputs, outputs] = &mut views;
        // SAFETY: as demanded of the caller.
        unsafe {
            check(ffi::weir_kernel_context_get_inputs(context, &raw mut inputs.0, &raw mut inputs.1))?;
            check(ffi::weir_kernel_context_get_outputs(context, &raw mut outputs.0, &raw mut outputs.1))?;
        }
        Ok(Call { context, views: Mutex::new(views), taken: AtomicU64::new(0) })
    }

    fn view(&self, side: Side, index: usize) -> Result<weir_tensor_view> {
        let views = self.views.lock().unwrap_or_else(|e| e.into_inner());
        let (views, count) = views[side as usize];
        // SAFETY: an array of so many views, which lasts as long as the call, and changes under the lock alone.
        let view = unsafe { slice(views, count) }.get(index).copied();
        view.ok_or_else(|| Error::new(ErrorKind::OutOfRange, format!("{side} {index} of a call that has {count}")))
    }

    /// The view, if its elements are of this type.
    fn view_of<T: Element>(&self, side: Side, index: usize) -> Result<weir_tensor_view> {
        let view = self.view(side, index)?;
        match TensorDesc::from_c(&view.desc).dtype() {
            has if has == T::DTYPE => Ok(view),
            has => Err(Error::new(ErrorKind::InvalidArgument, format!("{side} {index} is of {has}, not {}", T::DTYPE))),
        }
    }

    /// The elements of an input. Fails if they are of another type.
    pub fn input<T: Element>(&self, index: usize) -> Result<&[T]> {
        let view = self.view_of::<T>(Side::Input, index)?;
        // SAFETY: weir gives the call so many elements, which nobody writes until it is over: no output shares memory
        // with an input, since no kernel of this crate allows it. Memory of a CPU engine is never uninitialised.
        unsafe { elements(view.data.cast_const().cast(), view.bytes / size_of::<T>()) }
    }

    /// The elements of an output, to be written: those of `bool` are false, others have any value. An output is given
    /// out once in a call. Fails the second time, and if the elements are of another type.
    pub fn output<T: Element>(&self, index: usize) -> Result<&mut [T]> {
        self.view_of::<T>(Side::Output, index)?;
        let taken = self.take(index)?;
        self.taken_output(taken)
    }

    /// Sets the shape of an open output, and gives its elements as [`output`](Self::output) does. For kernels that are
    /// [dynamic](KernelBuilder::dynamic): once for each open output.
    #[expect(clippy::mut_from_ref, reason = "each output is given out once")]
    pub fn allocate_output<T: Element>(&self, index: usize, dims: &[usize]) -> Result<&mut [T]> {
        self.view_of::<T>(Side::Output, index)?;
        let taken = self.take(index)?;
        let shape: Vec<i64> = dims.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect();
        let mut data = std::ptr::null_mut();
        let views = self.views.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: the call is in progress, and `shape` has as many numbers as it says.
        check(unsafe {
            let (dims, rank) = (shape.as_ptr(), shape.len());
            ffi::weir_kernel_context_allocate_output(self.context, index, dims, rank, &raw mut data)
        })?;
        drop(views);
        self.taken_output(taken)
    }

    /// The elements of an output. The memory is that of earlier values, and not every byte is a `bool`.
    #[expect(clippy::mut_from_ref, reason = "each output is given out once")]
    fn taken_output<T: Element>(&self, Taken(index): Taken) -> Result<&mut [T]> {
        let view = self.view_of::<T>(Side::Output, index)?;
        // SAFETY: weir gives the call so many bytes, which nobody else uses until it is over, and nobody else has taken
        // the output. Memory of a CPU engine is never uninitialised.
        unsafe {
            if T::DTYPE == DType::Bool {
                slice_mut(view.data.cast::<u8>(), view.bytes).fill(0);
            }
            Ok(slice_mut(view.data.cast(), view.bytes / size_of::<T>()))
        }
    }

    /// Takes an output, which can be done once.
    fn take(&self, index: usize) -> Result<Taken> {
        // At most 64 outputs. ORDERING: whoever sees the bit unset is the only one, and learns nothing else from it.
        if self.taken.fetch_or(1 << index, Relaxed) & (1 << index) != 0 {
            return Err(Error::new(ErrorKind::FailedPrecondition, format!("output {index} was given out before")));
        }
        Ok(Taken(index))
    }

    /// Type and shape of an input.
    pub fn input_desc(&self, index: usize) -> Result<TensorDesc> {
        Ok(TensorDesc::from_c(&self.view(Side::Input, index)?.desc))
    }

    /// Type and shape of an output.
    pub fn output_desc(&self, index: usize) -> Result<TensorDesc> {
        Ok(TensorDesc::from_c(&self.view(Side::Output, index)?.desc))
    }

    /// As [`ThreadPool::parallel_for`](crate::ThreadPool::parallel_for), on the threads of the call. Fails with
    /// `Cancelled` if the run was cancelled.
    pub fn parallel_for(&self, n: usize, item_ns: f64, body: impl Fn(Range<usize>, usize) + Sync) -> Result<()> {
        region::run(n, item_ns, body, |n, hint, piece, arg| {
            // SAFETY: `piece` has the type of the region behind `arg`, which outlives the call.
            unsafe { ffi::weir_kernel_context_parallel_for(self.context, n, hint, piece, arg) }
        })
    }

    /// As [`ThreadPool::parallel_chunks`](crate::ThreadPool::parallel_chunks), on the threads of the call.
    pub fn parallel_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk_len: usize,
        chunk_ns: f64,
        body: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<()> {
        region::run_chunks(data, chunk_len, body, |n, chunks| self.parallel_for(n, chunk_ns, chunks))
    }

    /// Whether the result is not needed any more: the run was cancelled, is late, or has failed elsewhere.
    pub fn is_cancelled(&self) -> bool {
        let mut cancelled = 0;
        // SAFETY: the call is in progress.
        let status = unsafe { ffi::weir_kernel_context_is_cancelled(self.context, &raw mut cancelled) };
        status == 0 && cancelled != 0
    }
}
