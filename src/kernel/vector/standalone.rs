//! Products without an engine: on a pool given by the call, or in the calling thread.

use super::isa::Isa;
use super::micro::MicroKernels;
use super::site::{MatrixMut, Site};
use super::{gemm, int8};
use crate::base::{Ref, Result};
use crate::memory::{Lease, ScratchStock};
use crate::sync::Claim;
use crate::threadpool::{self, Span, ThreadPool};

/// The pool of a call.
pub type Pool<'a> = Option<&'a Ref<ThreadPool>>;

/// The f32 product. Fails before anything is written, or not at all.
pub fn f32(pool: Pool<'_>, product: &gemm::GemmProduct<'_>, c: MatrixMut<'_, f32>) -> Result<()> {
    f32_with(Isa::checked()?, pool, product, c)
}

/// The f32 product on a supported level.
pub fn f32_with(isa: Isa, pool: Pool<'_>, product: &gemm::GemmProduct<'_>, c: MatrixMut<'_, f32>) -> Result<()> {
    let micro = MicroKernels::of(isa);
    let call = StandaloneCall::new(pool, product.shape.cost_ns(), product.shape.scratch_bytes_with(&micro))?;
    gemm::compute_with(micro, product, c, &call)
}

/// The int8 product. Fails before anything is written, or not at all.
pub fn bytes(pool: Pool<'_>, product: &int8::Int8Product<'_>, c: MatrixMut<'_, i32>) -> Result<()> {
    bytes_with(Isa::checked()?, pool, product, c)
}

/// The int8 product on a supported level.
pub fn bytes_with(isa: Isa, pool: Pool<'_>, product: &int8::Int8Product<'_>, c: MatrixMut<'_, i32>) -> Result<()> {
    let call = StandaloneCall::new(pool, product.cost_ns(isa), product.scratch_bytes(isa))?;
    int8::compute(isa, product, c, &call)
}

/// Scratch memory of calls without an engine.
static STOCK: ScratchStock = ScratchStock::new();

/// A standalone call: its pool, and leased scratch memory.
pub(super) struct StandaloneCall<'a> {
    pool: Pool<'a>,
    scratch: Lease<'static>,
    /// Scratch bytes of a slot.
    bytes: usize,
}

impl<'a> StandaloneCall<'a> {
    /// Allocates the call's memory before it has written anything. `cost_ns` is its total cost, `bytes` the scratch
    /// memory of a slot. If memory is short the call has fewer slots.
    pub(super) fn new(pool: Pool<'a>, cost_ns: u64, bytes: usize) -> Result<StandaloneCall<'a>> {
        // A thread for less than half of the smallest shared loop is not requested.
        let slots = pool.map_or(1, |pool| {
            let worth = (2.0 * cost_ns as f32 / pool.worth_ns()) as usize;
            worth.clamp(1, threadpool::MAX_SLOTS).min(pool.max_threads() + 1)
        });
        Ok(StandaloneCall { pool, scratch: STOCK.lease(slots, bytes, "the product's scratch memory")?, bytes })
    }
}

// SAFETY: the buffers of a lease are its own.
unsafe impl Site for StandaloneCall<'_> {
    fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()> {
        threadpool::parallel_for(self.pool, &Span { max_slots: self.scratch.buffers(), ..*span }, body)
    }

    fn scratch_bytes(&self) -> usize {
        self.bytes
    }

    fn scratch(&self, slot: usize) -> *mut u8 {
        self.scratch.data(slot)
    }
}
