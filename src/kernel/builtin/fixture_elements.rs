//! For tests: tensors of any type in ordinary memory, and kernels with one output, on pools and in place.

use super::fixture::pools;
use super::*;
use crate::base::{Ref, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::kernel::{Kernel, NEVER, PreparedForms, Scratch};
use crate::memory::{AlignedBuffer, Bf16, Bool, Bytes, Element, F16, View};
use crate::threadpool::ThreadPool;

pub const FLOATS: [u32; 3] = [dtype::F32, dtype::BF16, dtype::F16];
pub const ALL: [u32; 8] =
    [dtype::F32, dtype::BF16, dtype::F16, dtype::S64, dtype::S32, dtype::S8, dtype::U8, dtype::BOOL];

/// Guard words around each tensor, never to be written.
pub const GUARDS: usize = 8;
pub const GUARD: u64 = 0x7fc0_dead_7fc0_dead;

/// A tensor of any type.
#[derive(Clone, Debug)]
pub struct TypedTensor {
    pub desc: Desc,
    pub words: Vec<u64>,
}

impl TypedTensor {
    pub fn empty(desc: Desc) -> TypedTensor {
        let words = desc.bytes().unwrap().div_ceil(8);
        TypedTensor { desc, words: vec![GUARD; words + 2 * GUARDS] }
    }

    pub fn new(dtype: u32, dims: &[i64], values: &[f64]) -> TypedTensor {
        let tensor = TypedTensor::empty(Desc::new(dtype, dims));
        assert_eq!(values.len(), elements(&tensor.desc));
        let view = tensor.view();
        fn fill<T: Element>(view: &View, values: &[f64], of: impl Fn(f64) -> T) {
            // SAFETY: nothing else uses the words.
            let mut elements = unsafe { view.as_bytes_mut() };
            elements.write().iter_mut().zip(values).for_each(|(y, &x)| *y = of(x));
        }
        match dtype {
            dtype::F32 => fill(&view, values, |x| x as f32),
            dtype::BF16 => fill(&view, values, |x| Bf16::narrowed(x as f32)),
            dtype::F16 => fill(&view, values, |x| F16::narrowed(x as f32)),
            dtype::S64 => fill(&view, values, |x| x as i64),
            dtype::S32 => fill(&view, values, |x| x as i32),
            dtype::S8 => fill(&view, values, |x| x as i8),
            dtype::U8 => fill(&view, values, |x| x as u8),
            _ => fill(&view, values, |x| Bool(u8::from(x != 0.0))),
        }
        tensor
    }

    pub fn view(&self) -> View {
        // SAFETY: the words, which the callers keep as long as the view.
        unsafe { View::new(self.words[GUARDS..].as_ptr().cast_mut().cast(), self.desc.bytes().unwrap(), self.desc) }
    }

    pub fn values(&self) -> Vec<f64> {
        fn of<T: Stored>(view: &Bytes<'_>) -> Vec<f64> {
            view.read::<T>().iter().map(|x| f64::from(x.widened())).collect()
        }
        let view = self.view();
        // SAFETY: nothing writes the words now.
        let view = unsafe { view.as_bytes() };
        match self.desc.dtype {
            dtype::F32 => of::<f32>(&view),
            dtype::BF16 => of::<Bf16>(&view),
            dtype::F16 => of::<F16>(&view),
            dtype::S64 => view.read::<i64>().iter().map(|&x| x as f64).collect(),
            dtype::S32 => view.read::<i32>().iter().map(|&x| f64::from(x)).collect(),
            dtype::S8 => of::<i8>(&view),
            dtype::U8 => of::<u8>(&view),
            _ => of::<Bool>(&view),
        }
    }

    /// A number rounded to the element type.
    pub fn rounded(dtype: u32, x: f64) -> f64 {
        TypedTensor::new(dtype, &[1], &[x]).values()[0]
    }

    pub fn check_guards(&self) {
        let whole = self.desc.bytes().unwrap() / 8;
        let (front, back) = (&self.words[..GUARDS], &self.words[self.words.len() - GUARDS..]);
        assert!(front.iter().chain(back).all(|&word| word == GUARD), "{} was written outside", self.desc.text());
        let rest = self.desc.bytes().unwrap() % 8;
        if rest > 0 {
            let mask = u64::MAX << (8 * rest);
            assert_eq!(self.words[GUARDS + whole] & mask, GUARD & mask, "{} was written outside", self.desc.text());
        }
    }
}

pub fn call(kernel: &dyn Kernel, inputs: &[View], output: View, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
    let outputs = [output];
    // SAFETY: tensors that the callers own.
    unsafe {
        let context = KernelContext::new(inputs, &outputs, pool, Scratch::none(8), &NEVER);
        kernel.compute(&context, context.outputs())
    }
}

pub fn run_on(kernel: &dyn Kernel, inputs: &[&TypedTensor], pool: Option<&Ref<ThreadPool>>) -> TypedTensor {
    let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc).collect();
    let outputs = kernel.infer(&descs).unwrap();
    assert!(kernel.cost_ns(&descs, &outputs) >= LEAST_NS && kernel.is_pure());
    let output = TypedTensor::empty(outputs[0]);
    let views: Vec<_> = inputs.iter().map(|tensor| tensor.view()).collect();
    call(kernel, &views, output.view(), pool).unwrap();
    output.check_guards();
    output
}

/// All outputs of a kernel that has several, or scratch memory.
pub fn run_all_on(kernel: &dyn Kernel, inputs: &[&TypedTensor], pool: Option<&Ref<ThreadPool>>) -> Vec<TypedTensor> {
    const SLOTS: usize = 8;
    let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc).collect();
    let outputs = kernel.infer(&descs).unwrap();
    assert!(kernel.cost_ns(&descs, &outputs) >= LEAST_NS && kernel.is_pure());
    let bytes = kernel.scratch_bytes(&descs, &outputs);
    let memory = AlignedBuffer::zeroed(Scratch::stride(bytes) * SLOTS, "scratch").unwrap();
    let results: Vec<_> = outputs.into_iter().map(TypedTensor::empty).collect();
    let (inputs, outputs): (Vec<_>, Vec<_>) =
        (inputs.iter().map(|tensor| tensor.view()).collect(), results.iter().map(TypedTensor::view).collect());
    // SAFETY: tensors that the callers own, and memory that nothing else uses.
    unsafe {
        let context = KernelContext::new(&inputs, &outputs, pool, Scratch::new(memory.data(), bytes, SLOTS), &NEVER);
        kernel.compute(&context, context.outputs()).unwrap();
    }
    results.iter().for_each(TypedTensor::check_guards);
    results
}

/// A kernel with what it prepares of some inputs, which are constants.
pub fn prepared<K: BuiltinOperation>(kernel: &K, inputs: &[&TypedTensor], constants: &[usize]) -> Option<K> {
    let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc).collect();
    let views: Vec<_> = inputs.iter().map(|tensor| tensor.view()).collect();
    // SAFETY: the tensors live as long as the views, and nobody writes them.
    let constant = |i: usize| constants.contains(&i).then(|| unsafe { views[i].as_bytes() });
    let constants: Vec<_> = (0..views.len()).map(constant).collect();
    kernel.prepared(&descs, &constants, &mut PreparedForms::default()).unwrap()
}

/// The result, which is the same on all pools, and in the memory of each input that it fits.
pub fn run(kernel: &dyn Kernel, inputs: &[&TypedTensor]) -> TypedTensor {
    let want = run_on(kernel, inputs, None);
    check_in_place(kernel, inputs, None, &want);
    want
}

/// The result in the memory of each input that it fits.
fn check_in_place(kernel: &dyn Kernel, inputs: &[&TypedTensor], pool: Option<&Ref<ThreadPool>>, want: &TypedTensor) {
    for i in 0..inputs.len() {
        if kernel.in_place() && kernel.in_place_of(i) && inputs[i].desc == want.desc {
            let own: Vec<TypedTensor> = inputs.iter().map(|&tensor| tensor.clone()).collect();
            let views: Vec<_> = own.iter().map(TypedTensor::view).collect();
            call(kernel, &views, own[i].view(), pool).unwrap();
            assert_eq!(own[i].words, want.words, "{} in the memory of input {i}", kernel.name());
        }
    }
}

pub fn check_pools(kernel: &dyn Kernel, inputs: &[&TypedTensor]) {
    let want = run_on(kernel, inputs, None);
    for (name, pool) in pools() {
        let got = run_on(kernel, inputs, Some(&pool));
        assert!(got.words == want.words, "{} on {name}: other bits than without a pool", kernel.name());
        check_in_place(kernel, inputs, Some(&pool), &want);
    }
}

/// At most `percent` of the elements are zeros: a comparison would otherwise prove nothing.
pub fn check_trust(values: &[f64], percent: usize) {
    let zeros = values.iter().filter(|&&x| x == 0.0).count();
    assert!(zeros * 100 <= values.len() * percent, "{zeros} zeros in {}", values.len());
}

pub fn noise(count: usize, seed: u64, limit: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    (0..count).map(|_| next() * limit).collect()
}

pub fn random(dtype: u32, dims: &[i64], seed: u64, limit: f64) -> TypedTensor {
    TypedTensor::new(dtype, dims, &noise(dims.iter().product::<i64>() as usize, seed, limit))
}

/// Nonzero whole numbers.
pub fn whole(dtype: u32, dims: &[i64], seed: u64, limit: f64) -> TypedTensor {
    let values = noise(dims.iter().product::<i64>() as usize, seed, limit);
    let signed = |x: f64| if dtype == dtype::U8 { x.abs() } else { x };
    let values: Vec<f64> = values.into_iter().map(|x| if x.round() == 0.0 { 1.0 } else { signed(x.round()) }).collect();
    TypedTensor::new(dtype, dims, &values)
}
