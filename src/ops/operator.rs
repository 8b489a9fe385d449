//! The parts of a built-in operator's description.

use super::setting::Setting;
use crate::abi::weir_packed_weights;
use crate::base::{Desc, Result};
use std::fmt::Debug;

/// The settings of an operator as C gives them: a versioned struct.
///
/// # Safety
/// The type is repr(C) and begins with its `struct_size: usize`. It has integers, floats and raw pointers without gaps
/// between them, so that all its bytes are initialised and all-zero bytes are a value of it.
pub unsafe trait Descriptor: Copy + 'static {
    /// The typed form that it describes.
    type Operator: Operator<Desc = Self>;

    /// Its bytes, as this version of the library has it.
    fn bytes(&self) -> Vec<u8> {
        // SAFETY: no gaps, so each byte is initialised.
        let all = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<Self>()) };
        let mut bytes = all.to_vec();
        bytes[..size_of::<usize>()].copy_from_slice(&size_of::<Self>().to_ne_bytes());
        bytes
    }

    /// The descriptor of these bytes.
    fn of_bytes(bytes: &[u8]) -> Self {
        let mut desc = zeroed::<Self>();
        desc.set_bytes(0, bytes);
        desc
    }

    /// Sets some of its bytes.
    fn set_bytes(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset <= size_of::<Self>() && bytes.len() <= size_of::<Self>() - offset, "byte {offset}");
        // SAFETY: inside of the struct, of whose integers, floats and pointers any bytes are a value.
        unsafe { std::ptr::from_mut(self).cast::<u8>().add(offset).copy_from(bytes.as_ptr(), bytes.len()) }
    }
}

/// A descriptor with nothing set.
pub(super) const fn zeroed<D: Descriptor>() -> D {
    // SAFETY: all-zero bytes are a value of each descriptor.
    unsafe { std::mem::zeroed() }
}

/// B of a product, packed: its type before that, and its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackedShape {
    pub dtype: u32,
    pub k: usize,
    pub n: usize,
}

impl PackedShape {
    /// The matrix.
    pub(super) fn desc(&self) -> Desc {
        Desc::new(self.dtype, &[self.k as i64, self.n as i64])
    }
}

/// The member of a descriptor that may name packed weights, and the types that they may have been packed from.
pub struct Weights<'a> {
    pub handle: &'a mut *mut weir_packed_weights,
    pub dtypes: &'static [u32],
}

/// A built-in operator with its settings, which have been checked.
pub trait Operator: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// Its settings in C.
    type Desc: Descriptor;

    /// The suffix after weir_kernel_create_.
    const NAME: &'static str;

    /// The descriptor that NULL stands for; `None`: NULL is refused.
    const DEFAULT: Option<Self::Desc> = None;

    /// The size that the descriptor had in the first published header. Members behind it are 0 for older callers.
    const FIRST_SIZE: usize = size_of::<Self::Desc>();

    /// Checks a descriptor, and completes it: a member that stands for another value is set to that, and elements of
    /// arrays that do not count are set to 0. So the bytes of a descriptor identify the operator.
    fn new(desc: &mut Self::Desc, packed: Option<PackedShape>) -> Result<Self>;

    /// The members that inputs may hold in their place.
    const SETTINGS: &'static [Setting<Self::Desc>] = &[];

    /// Gives members that inputs hold, and are 0, values that the operator has, for which the rank of outputs can be
    /// told.
    fn stand_in(_desc: &mut Self::Desc) {}

    /// The packed weights that it takes in place of an input.
    fn weights(_desc: &mut Self::Desc) -> Option<Weights<'_>> {
        None
    }

    /// The input and its dimension whose size dimension `dim` of an output has in every call. Two of them: the output
    /// has it if both are the same. For outputs whose dimension is open; `None` says nothing.
    fn dim_from(&self, _inputs: &[Desc], _output: usize, _dim: usize) -> [Option<(usize, usize)>; 2] {
        [None; 2]
    }

    /// Its name in texts, reports and dumps.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    /// The descriptor of each output, or the reason for refusing the inputs, worded as in `signature`. Inputs may
    /// leave dimensions open (-1), and then the output may: as far as it is known, and without refusing shapes that may
    /// turn out to fit. Allocates nothing unless it refuses.
    fn output(&self, inputs: &[Desc]) -> Result<Desc>;

    /// The descriptor of one output, for an operator whose outputs differ.
    fn output_at(&self, inputs: &[Desc], _index: usize) -> Result<Desc> {
        self.output(inputs)
    }
}

/// `Operator::new`, compiled once for all who call it.
#[inline(never)]
pub fn create<O: Operator>(desc: &mut O::Desc, packed: Option<PackedShape>) -> Result<O> {
    O::new(desc, packed)
}
