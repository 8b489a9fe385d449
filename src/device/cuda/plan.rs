//! The launches of a built-in operation on a CUDA device: kernels of the library's own modules, grids and parameters.
//! Pure: nothing here calls the driver, so it is tested without one.
//!
//! Each kernel takes one struct by value (`gpu/kernels/*.cu`). `Params` lays it out as C does, in a buffer on the
//! stack, so a call allocates nothing.
#![forbid(unsafe_code)]

use super::walk::StrideWalk;
use crate::base::{Code, Desc, Error, Result};
use crate::memory::View;
use std::fmt::Debug;

pub use super::images::{
    CONTROL_MODULE, ENTRIES, FILL, IMAGES, Image, KernelEntry, SET_CASE, SET_IF, SET_SWITCH, WHILE_COMPARE, WHILE_STEP,
};
pub use super::product::{MatrixProduct, ProductShape};

/// One launch, of a kernel with one parameter, a struct: its bytes, aligned to 16.
#[derive(Clone, Copy, Debug)]
pub struct KernelLaunch<'a> {
    pub entry: &'static KernelEntry,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Shared memory besides what the kernel declares.
    pub shared_bytes: u32,
    pub params: &'a [u8],
    /// The kernel may find a failure: its parameters begin with an address, a 64-bit number and a 32-bit one, filled in
    /// by the launcher.
    pub check: Option<Check<'a>>,
}

/// A kernel's check: indices, input 1, along an axis of a table, input 0.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    pub axis: usize,
    /// The least index.
    pub least: i64,
    pub table: &'a Desc,
}

/// Takes launches, one after the other; each may read what the one before wrote.
pub type Emit<'a> = dyn FnMut(&KernelLaunch<'_>) -> Result<()> + 'a;

/// A built-in operation with its settings.
pub trait Operator: Send + Sync + Debug {
    /// The launches of a call with these views, which fit the operation, with addresses of the device's. Allocates only
    /// for errors: UNIMPLEMENTED if the kernels cannot do it.
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()>;

    /// Whether each element is read by the thread that writes it, and before it does: the output may share memory with
    /// an input that is like it.
    fn in_place(&self) -> bool {
        false
    }

    /// Whether calls may be products that a library can do.
    fn has_products(&self) -> bool {
        false
    }

    /// The product that a call amounts to, apart from the launches of `after_product`; `None` if it is not equivalent
    /// to one.
    fn product(&self, _inputs: &[View], _outputs: &[View]) -> Result<Option<MatrixProduct>> {
        Ok(None)
    }

    /// The launches that must follow a product.
    fn after_product(&self, _outputs: &[View], _emit: &mut Emit<'_>) -> Result<()> {
        Ok(())
    }
}

/// Elements that a tensor may have: kernels number them with 32 bits, and add a grid's threads to such a number.
const MOST_ELEMENTS: usize = i32::MAX as usize;
/// Default threads of a block, and most blocks of a grid-stride loop.
const THREADS: u32 = 256;
const MOST_BLOCKS: u32 = 1 << 22;
/// Largest grid in y.
const MOST_ROWS: usize = 65535;

/// Most bytes of the parameters of a launch.
const MOST_PARAMS: usize = 320;

/// The parameters of a launch, as C lays them out: one struct, aligned as one.
#[derive(Debug)]
#[repr(align(16))]
pub struct Params {
    bytes: [u8; MOST_PARAMS],
    len: usize,
}

impl Params {
    pub(in crate::device::cuda) fn new() -> Params {
        Params { bytes: [0; MOST_PARAMS], len: 0 }
    }

    fn put(&mut self, value: &[u8]) -> &mut Params {
        let at = self.len.next_multiple_of(value.len());
        self.bytes[at..at + value.len()].copy_from_slice(value);
        self.len = at + value.len();
        self
    }

    /// The address of a tensor's elements.
    pub fn view(&mut self, view: &View) -> &mut Params {
        self.address(view.data().addr())
    }

    /// The same for an optional tensor.
    pub fn optional(&mut self, view: Option<&View>) -> &mut Params {
        self.address(view.map_or(0, |view| view.data().addr()))
    }

    pub fn address(&mut self, address: usize) -> &mut Params {
        self.put(&(address as u64).to_le_bytes())
    }

    pub fn word(&mut self, value: u32) -> &mut Params {
        self.put(&value.to_le_bytes())
    }

    pub fn flag(&mut self, value: bool) -> &mut Params {
        self.word(value.into())
    }

    pub fn integer(&mut self, value: i32) -> &mut Params {
        self.put(&value.to_le_bytes())
    }

    pub fn float(&mut self, value: f32) -> &mut Params {
        self.put(&value.to_le_bytes())
    }

    pub fn double(&mut self, value: f64) -> &mut Params {
        self.put(&value.to_le_bytes())
    }

    pub fn long(&mut self, value: i64) -> &mut Params {
        self.put(&value.to_le_bytes())
    }

    pub fn walk<const N: usize>(&mut self, walk: &StrideWalk<N>) -> &mut Params {
        // A struct is aligned as its largest member.
        self.len = self.len.next_multiple_of(8);
        self.word(walk.rank().max(1) as u32);
        walk.sizes().iter().for_each(|&size| _ = self.word(size as u32));
        walk.strides().iter().flatten().for_each(|&stride| _ = self.long(stride));
        self
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len.next_multiple_of(8)]
    }

    /// Emits a launch on blocks of so many threads.
    pub fn launch(
        &self,
        emit: &mut Emit<'_>,
        entry: &'static KernelEntry,
        grid: (usize, usize),
        threads: u32,
    ) -> Result<()> {
        self.launch_with(emit, entry, grid, threads, 0)
    }

    /// The same with shared memory, in bytes.
    pub fn launch_with(
        &self,
        emit: &mut Emit<'_>,
        entry: &'static KernelEntry,
        grid: (usize, usize),
        threads: u32,
        shared_bytes: u32,
    ) -> Result<()> {
        let across = u32::try_from(grid.0).ok().filter(|&blocks| blocks <= i32::MAX as u32).ok_or_else(too_large)?;
        let rows = grid.1.min(MOST_ROWS) as u32;
        if across == 0 || rows == 0 {
            return Ok(());
        }
        let (grid, block) = ([across, rows, 1], [threads, 1, 1]);
        emit(&KernelLaunch { entry, grid, block, shared_bytes, params: self.bytes(), check: None })
    }

    /// As `launch_each`, for a kernel that may find a failure.
    pub fn launch_checked(
        &self,
        emit: &mut Emit<'_>,
        entry: &'static KernelEntry,
        count: u32,
        check: Check<'_>,
    ) -> Result<()> {
        self.launch_each(&mut |launch| emit(&KernelLaunch { check: Some(check), ..*launch }), entry, count)
    }

    /// A launch's parameters once more, with these at their beginning.
    pub fn checked(launch: &KernelLaunch<'_>, address: u64, number: u64, site: u32) -> Params {
        let mut params = Params::new();
        params.put(&address.to_le_bytes()).put(&number.to_le_bytes()).word(site);
        params.bytes[params.len..launch.params.len()].copy_from_slice(&launch.params[params.len..]);
        params.len = launch.params.len();
        params
    }

    /// Emits a launch whose threads share `count` items.
    pub fn launch_each(&self, emit: &mut Emit<'_>, entry: &'static KernelEntry, count: u32) -> Result<()> {
        self.launch(emit, entry, (count.div_ceil(THREADS).min(MOST_BLOCKS) as usize, 1), THREADS)
    }
}

/// Number of elements of a tensor as kernels count them.
pub fn count(desc: &Desc) -> Result<u32> {
    match desc.elements()? {
        count if count <= MOST_ELEMENTS => Ok(count as u32),
        _ => Err(unimplemented(format!(
            "the kernels of CUDA devices take tensors of at most {MOST_ELEMENTS} elements, got {}",
            desc.text()
        ))),
    }
}

/// A product of sizes as kernels count.
pub fn small(sizes: &[usize]) -> Result<u32> {
    let product = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    product.filter(|&product| product <= MOST_ELEMENTS).map(|product| product as u32).ok_or_else(too_large)
}

fn too_large() -> Error {
    unimplemented(format!("the kernels of CUDA devices count to {MOST_ELEMENTS}, and these tensors are larger"))
}

pub fn unimplemented(text: impl Into<String>) -> Error {
    Error::new(Code::Unimplemented, text.into())
}

/// Threads of a block that goes through a row of so many elements.
pub fn row_threads(len: usize) -> u32 {
    match len {
        0..=256 => 32,
        257..=2048 => 128,
        2049..=16384 => 256,
        _ => 1024,
    }
}
