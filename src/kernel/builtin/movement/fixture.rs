//! For tests: calls of kernels on tensors of any element type, on all kinds of pools.

use crate::base::{Desc, Ref, Result, dtype};
use crate::kernel::builtin::fixture::pools;
use crate::kernel::{Kernel, KernelContext, NEVER, Scratch};
use crate::memory::{AlignedBuffer, View};
use crate::threadpool::ThreadPool;

/// Guard bytes around each tensor, never to be written.
const GUARD: u8 = 0xA5;
const GUARDS: usize = 192;

/// A tensor with its bytes.
#[derive(Clone, Debug)]
pub struct Any {
    pub desc: Desc,
    /// Words, so that elements are aligned.
    words: Vec<u64>,
}

impl Any {
    pub fn new(desc: Desc, bytes: &[u8]) -> Any {
        assert_eq!(bytes.len(), desc.bytes().unwrap());
        let mut all = vec![GUARD; GUARDS];
        all.extend_from_slice(bytes);
        all.resize((GUARDS + bytes.len()).next_multiple_of(8) + GUARDS, GUARD);
        Any { desc, words: all.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect() }
    }

    /// Distinct bytes at neighbouring positions.
    pub fn filled(dtype: u32, dims: &[i64], seed: usize) -> Any {
        let desc = Desc::new(dtype, dims);
        let bytes: Vec<u8> =
            (0..desc.bytes().unwrap()).map(|i| ((i + seed) * 151 + (i + seed) / 251 * 7 + 3) as u8).collect();
        Any::new(desc, &bytes)
    }

    pub fn s32(dims: &[i64], values: &[i32]) -> Any {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Any::new(Desc::new(dtype::S32, dims), &bytes)
    }

    pub fn f32(dims: &[i64], values: &[f32]) -> Any {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Any::new(Desc::new(dtype::F32, dims), &bytes)
    }

    /// 16-bit elements.
    pub fn halves(dtype: u32, dims: &[i64], values: &[u16]) -> Any {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Any::new(Desc::new(dtype, dims), &bytes)
    }

    fn all(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.words.len() * 8);
        self.words.iter().for_each(|word| all.extend_from_slice(&word.to_ne_bytes()));
        all
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.all()[GUARDS..][..self.desc.bytes().unwrap()].to_vec()
    }

    pub fn floats(&self) -> Vec<f32> {
        assert_eq!(self.desc.dtype, dtype::F32);
        self.bytes().chunks(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
    }

    pub fn shorts(&self) -> Vec<u16> {
        assert_eq!(dtype::size(self.desc.dtype).unwrap(), 2);
        self.bytes().chunks(2).map(|b| u16::from_ne_bytes(b.try_into().unwrap())).collect()
    }

    pub fn integers(&self) -> Vec<i32> {
        assert_eq!(self.desc.dtype, dtype::S32);
        self.bytes().chunks(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect()
    }

    pub fn view(&mut self) -> View {
        let bytes = self.desc.bytes().unwrap();
        // SAFETY: the words, which the callers keep as long as the view.
        unsafe { View::new(self.words[GUARDS / 8..].as_mut_ptr().cast(), bytes, self.desc) }
    }

    fn check_guards(&self) {
        let (all, bytes) = (self.all(), self.desc.bytes().unwrap());
        let outside = all[..GUARDS].iter().chain(&all[GUARDS + bytes..]);
        assert!(outside.into_iter().all(|&byte| byte == GUARD), "{} was written outside", self.desc.text());
    }
}

/// Runs a kernel with one output on a pool, or in the calling thread.
pub fn run_on(kernel: &dyn Kernel, inputs: &[Any], pool: Option<&Ref<ThreadPool>>) -> Result<Any> {
    const SLOTS: usize = 8;
    let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc).collect();
    assert_eq!(descs.len(), kernel.num_inputs());
    let outputs = kernel.infer(&descs)?;
    assert!(kernel.cost_ns(&descs, &outputs) >= 100);
    let mut inputs = inputs.to_vec();
    let before: Vec<_> = inputs.iter().map(Any::bytes).collect();
    let mut output = Any::new(outputs[0], &vec![GUARD; outputs[0].bytes()?]);
    let input_views: Vec<_> = inputs.iter_mut().map(Any::view).collect();
    let output_views = [output.view()];
    let bytes = kernel.scratch_bytes(&descs, &outputs);
    let memory = AlignedBuffer::zeroed(Scratch::stride(bytes) * SLOTS, "scratch")?;
    // SAFETY: nothing else uses the memory.
    let result = unsafe {
        let scratch = Scratch::new(memory.data(), bytes, SLOTS);
        let context = KernelContext::new(&input_views, &output_views, pool, scratch, &NEVER);
        kernel.compute(&context, context.outputs())
    };
    inputs.iter().chain([&output]).for_each(Any::check_guards);
    assert!(inputs.iter().map(Any::bytes).eq(before), "{} wrote an input", kernel.name());
    if result.is_err() {
        assert!(output.bytes().iter().all(|&byte| byte == GUARD), "{} failed, but wrote", kernel.name());
    }
    result.map(|()| output)
}

/// Runs a kernel in the calling thread, also in the memory of an input that is like the output.
pub fn run(kernel: &dyn Kernel, inputs: &[Any]) -> Any {
    let want = run_on(kernel, inputs, None).unwrap();
    check_in_place(kernel, inputs, None, &want);
    want
}

fn check_in_place(kernel: &dyn Kernel, inputs: &[Any], pool: Option<&Ref<ThreadPool>>, want: &Any) {
    for i in 0..inputs.len() {
        if !kernel.in_place() || !kernel.in_place_of(i) || inputs[i].desc != want.desc {
            continue;
        }
        let mut own = inputs.to_vec();
        let views: Vec<_> = own.iter_mut().map(Any::view).collect();
        let output_views = [views[i].clone()];
        // SAFETY: nothing else uses the tensors.
        unsafe {
            let context = KernelContext::new(&views, &output_views, pool, Scratch::none(8), &NEVER);
            kernel.compute(&context, context.outputs()).unwrap();
        }
        own.iter().for_each(Any::check_guards);
        assert!(own[i].bytes() == want.bytes(), "{} in the memory of input {i}: other bytes", kernel.name());
    }
}

/// The same bytes on all pools as without one.
pub fn check_pools(kernel: &dyn Kernel, inputs: &[Any]) {
    let want = run(kernel, inputs);
    for (name, pool) in pools() {
        let got = run_on(kernel, inputs, Some(&pool)).unwrap();
        assert!(got.bytes() == want.bytes(), "{} on {name}: other bytes than without a pool", kernel.name());
        check_in_place(kernel, inputs, Some(&pool), &want);
    }
}
