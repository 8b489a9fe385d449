//! For tests: calls of kernels on tensors in ordinary vectors, on all kinds of pools.

use super::{BuiltinOperation, Packed};
use crate::base::{Desc, Ref, Result, dtype};
use crate::kernel::{Kernel, KernelContext, NEVER, Outputs, PreparedForms, Scratch};
use crate::memory::{AlignedBuffer, View};
use crate::threadpool::{ThreadPool, ThreadPoolOptions};
use std::sync::Arc;

/// Guard words around each tensor's elements: never to be written, and visible in a result if they are read, as NaN.
const GUARD: u32 = 0x7fc0_dead;
const GUARDS: usize = 80;
/// Slots of every call.
const SLOTS: usize = 8;

/// A tensor of 4-byte elements.
#[derive(Clone, Debug)]
pub struct WordTensor {
    pub desc: Desc,
    words: Vec<u32>,
}

impl WordTensor {
    fn new(desc: Desc, words: impl Iterator<Item = u32>) -> WordTensor {
        let guards = || std::iter::repeat_n(GUARD, GUARDS);
        let words: Vec<u32> = guards().chain(words).chain(guards()).collect();
        assert_eq!(words.len(), desc.elements().unwrap() + 2 * GUARDS);
        WordTensor { desc, words }
    }

    pub fn f32(dims: &[i64], values: &[f32]) -> WordTensor {
        WordTensor::new(Desc::new(dtype::F32, dims), values.iter().map(|x| x.to_bits()))
    }

    pub fn s32(dims: &[i64], values: &[i32]) -> WordTensor {
        WordTensor::new(Desc::new(dtype::S32, dims), values.iter().map(|&x| x as u32))
    }

    /// Random values between -1 and 1, the same for the same seed.
    pub fn random(dims: &[i64], seed: u64) -> WordTensor {
        let desc = Desc::new(dtype::F32, dims);
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let words = (0..desc.elements().unwrap()).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0).to_bits()
        });
        WordTensor::new(desc, words)
    }

    fn empty(desc: Desc) -> WordTensor {
        let elements = desc.elements().unwrap();
        WordTensor::new(desc, std::iter::repeat_n(GUARD, elements))
    }

    pub fn bits(&self) -> &[u32] {
        &self.words[GUARDS..self.words.len() - GUARDS]
    }

    pub fn floats(&self) -> Vec<f32> {
        self.bits().iter().map(|&word| f32::from_bits(word)).collect()
    }

    pub fn integers(&self) -> Vec<i32> {
        self.bits().iter().map(|&word| word as i32).collect()
    }

    fn view(&mut self) -> View {
        let elements = &mut self.words[GUARDS..];
        // SAFETY: the words, which the callers keep as long as the view.
        unsafe { View::new(elements.as_mut_ptr().cast(), self.desc.bytes().unwrap(), self.desc) }
    }

    fn check_guards(&self) {
        let (front, back) = (&self.words[..GUARDS], &self.words[self.words.len() - GUARDS..]);
        assert!(front.iter().chain(back).all(|&word| word == GUARD), "{} was written outside", self.desc.text());
    }
}

/// Packed weights; a tensor's elements are 4 bytes, aligned.
pub fn packed(tensor: &WordTensor, transposed: bool) -> Arc<Packed> {
    let mut values = tensor.floats();
    // SAFETY: nothing else uses the values.
    unsafe {
        let view = View::new(values.as_mut_ptr().cast(), values.len() * 4, tensor.desc);
        Arc::new(Packed::new(view.as_bytes(), transposed).unwrap())
    }
}

/// A kernel with what it prepares of some inputs, which are constants.
pub fn prepared<K: BuiltinOperation>(kernel: &K, inputs: &[WordTensor], constants: &[usize]) -> Option<K> {
    let mut inputs = inputs.to_vec();
    let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc).collect();
    let views: Vec<_> = inputs.iter_mut().map(WordTensor::view).collect();
    let constants: Vec<_> = (0..views.len())
        // SAFETY: the tensors live as long as the views, and nobody writes them.
        .map(|i| constants.contains(&i).then(|| unsafe { views[i].as_bytes() }))
        .collect();
    kernel.prepared(&descs, &constants, &mut PreparedForms::default()).unwrap()
}

/// Runs `body` as a call's computation; returns the outputs.
pub fn call(
    inputs: &[WordTensor],
    outputs: &[Desc],
    scratch_bytes: usize,
    pool: Option<&Ref<ThreadPool>>,
    body: impl FnOnce(&KernelContext<'_>, Outputs<'_>) -> Result<()>,
) -> Result<Vec<WordTensor>> {
    let mut inputs = inputs.to_vec();
    let mut outputs: Vec<_> = outputs.iter().map(|&desc| WordTensor::empty(desc)).collect();
    let (input_views, output_views): (Vec<_>, Vec<_>) =
        (inputs.iter_mut().map(WordTensor::view).collect(), outputs.iter_mut().map(WordTensor::view).collect());
    let memory = AlignedBuffer::zeroed(Scratch::stride(scratch_bytes) * SLOTS, "scratch")?;
    // SAFETY: nothing else uses the memory.
    unsafe {
        let scratch = Scratch::new(memory.data(), scratch_bytes, SLOTS);
        let context = KernelContext::new(&input_views, &output_views, pool, scratch, &NEVER);
        body(&context, context.outputs())?;
    }
    inputs.iter().chain(&outputs).for_each(WordTensor::check_guards);
    Ok(outputs)
}

/// Runs a kernel with one output.
pub fn run_on(kernel: &dyn Kernel, inputs: &[WordTensor], pool: Option<&Ref<ThreadPool>>) -> Result<WordTensor> {
    let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc).collect();
    assert_eq!(descs.len(), kernel.num_inputs());
    let outputs = kernel.infer(&descs)?;
    assert!(kernel.cost_ns(&descs, &outputs) >= 100);
    let scratch = kernel.scratch_bytes(&descs, &outputs);
    call(inputs, &outputs, scratch, pool, |context, outputs| kernel.compute(context, outputs))
        .map(|mut outputs| outputs.remove(0))
}

/// Runs a kernel in the calling thread, also in the memory of each input that the output fits.
pub fn run(kernel: &dyn Kernel, inputs: &[WordTensor]) -> WordTensor {
    let want = run_on(kernel, inputs, None).unwrap();
    check_in_place(kernel, inputs, None, &want);
    want
}

fn check_in_place(kernel: &dyn Kernel, inputs: &[WordTensor], pool: Option<&Ref<ThreadPool>>, want: &WordTensor) {
    let bytes = kernel.scratch_bytes(&inputs.iter().map(|tensor| tensor.desc).collect::<Vec<_>>(), &[want.desc]);
    for i in 0..inputs.len() {
        if !kernel.in_place() || !kernel.in_place_of(i) || inputs[i].desc != want.desc {
            continue;
        }
        let mut own = inputs.to_vec();
        let views: Vec<_> = own.iter_mut().map(WordTensor::view).collect();
        let output_views = [views[i].clone()];
        let memory = AlignedBuffer::zeroed(Scratch::stride(bytes) * SLOTS, "scratch").unwrap();
        // SAFETY: nothing else uses the tensors and the memory.
        unsafe {
            let scratch = Scratch::new(memory.data(), bytes, SLOTS);
            let context = KernelContext::new(&views, &output_views, pool, scratch, &NEVER);
            kernel.compute(&context, context.outputs()).unwrap();
        }
        own.iter().for_each(WordTensor::check_guards);
        assert!(own[i].bits() == want.bits(), "{} in the memory of input {i}: other bits", kernel.name());
    }
}

/// All kinds of pools, with names.
pub fn pools() -> Vec<(String, Ref<ThreadPool>)> {
    let builtin = [1, 2, 7].map(|threads| {
        let attr = ThreadPoolOptions { num_threads: Some(threads), ..ThreadPoolOptions::default() };
        (format!("{threads} threads"), ThreadPool::builtin(&attr).unwrap())
    });
    let all = [("inline".to_owned(), ThreadPool::inline())].into_iter().chain(builtin);
    #[cfg(not(loom))]
    let all = all.chain((1..=4).map(|seed| (format!("seed {seed}"), ThreadPool::seeded(seed, seed as usize).unwrap())));
    all.collect()
}

/// Checks that a kernel returns the same bits on all pools as without one.
pub fn check_pools(kernel: &dyn Kernel, inputs: &[WordTensor]) {
    let want = run(kernel, inputs);
    for (name, pool) in pools() {
        for _ in 0..2 {
            let got = run_on(kernel, inputs, Some(&pool)).unwrap();
            assert!(got.bits() == want.bits(), "{} on {name}: other bits than without a pool", kernel.name());
            check_in_place(kernel, inputs, Some(&pool), &want);
        }
    }
}

/// The error text for these inputs.
pub fn refusal(kernel: &dyn Kernel, inputs: &[Desc]) -> String {
    match kernel.infer(inputs) {
        Ok(outputs) => panic!("{} took {inputs:?} and gave {outputs:?}", kernel.name()),
        Err(error) => error.message().to_owned(),
    }
}
