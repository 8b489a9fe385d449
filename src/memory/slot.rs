//! A slot for a value whose shape is known only when it is computed: a view, and a block of memory that grows when the
//! value does not fit, and never shrinks.
//!
//! One thread at a time holds a slot: first the thread that runs the node computing the value (`begin`, `allocate`),
//! then, after it along edges, the readers (`view`), and last the thread that moves the value on (`exchange`), after
//! all of these. The callers guarantee this order; the block needs no lock. Only `allocate` may be called freely by a
//! host's kernel, even from several threads at once; `state` admits one of them:
//!
//! | state | meaning                                             | next                               |
//! |-------|-----------------------------------------------------|------------------------------------|
//! | OPEN  | the node that computes the value runs, or no holder | BUSY by `allocate`                 |
//! | BUSY  | a thread looks for memory                           | MADE, or OPEN if there was none    |
//! | MADE  | the view is valid                                   | OPEN by `begin`, in the next turn  |

use super::{BytesMut, MemoryBlock, View};
use crate::base::{Desc, Error, Result};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering::*};

const OPEN: u32 = 0;
const BUSY: u32 = 1;
const MADE: u32 = 2;

#[derive(Debug)]
pub struct ValueSlot {
    view: View,
    block: UnsafeCell<Option<MemoryBlock>>,
    state: AtomicU32,
}

// SAFETY: the block is touched by the one thread that holds the slot, as the module says.
unsafe impl Sync for ValueSlot {}

impl ValueSlot {
    /// An empty slot; `desc` is what is known of the value.
    pub fn new(desc: Desc) -> ValueSlot {
        ValueSlot { view: View::empty(desc), block: UnsafeCell::new(None), state: AtomicU32::new(OPEN) }
    }

    /// The value, once it is computed.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The value is about to be recomputed. ORDERING: Relaxed here and in `is_made`; edges order the holders of the
    /// slot.
    ///
    /// # Safety
    /// The caller holds the slot, and nothing uses the old value any more.
    pub unsafe fn begin(&self) {
        self.state.store(OPEN, Relaxed);
    }

    pub fn is_made(&self) -> bool {
        self.state.load(Relaxed) == MADE
    }

    /// Memory for a value like `desc`, in the existing block or in a larger one from `more`. `None` if it was allocated
    /// before.
    ///
    /// # Safety
    /// The holder of the slot permits the call, and nothing reads the view meanwhile.
    pub unsafe fn allocate(&self, desc: Desc, more: &dyn Fn(usize) -> Result<MemoryBlock>) -> Result<Option<*mut u8>> {
        let bytes = desc.bytes()?;
        // ORDERING: Acquire pairs with the Release below: an earlier attempt that found no memory is over.
        if self.state.compare_exchange(OPEN, BUSY, Acquire, Relaxed).is_err() {
            return Ok(None);
        }
        match self.grow(bytes, more) {
            Ok(data) => {
                // SAFETY: the block's memory, which stays until the value is recomputed; this thread holds the slot
                // (BUSY).
                unsafe { self.view.reshape(data, bytes, desc) };
                self.state.store(MADE, Release);
                Ok(Some(data))
            }
            Err(error) => {
                self.state.store(OPEN, Release);
                Err(error)
            }
        }
    }

    fn grow(&self, bytes: usize, more: &dyn Fn(usize) -> Result<MemoryBlock>) -> Result<*mut u8> {
        // SAFETY: this thread holds the slot (BUSY).
        let block = unsafe { &mut *self.block.get() };
        if let Some(block) = block.as_ref().filter(|block| block.bytes() >= bytes) {
            return Ok(block.data());
        }
        // A value that grows a little each time must not move each time.
        let ample = block.as_ref().map_or(bytes, |old| bytes.max(old.bytes() + old.bytes() / 2));
        *block = None;
        // At least a byte, so that a value without elements has an address too.
        let new = more(ample.max(1)).or_else(|_| more(bytes.max(1)))?;
        let data = new.data();
        *block = Some(new);
        Ok(data)
    }

    /// The value is a tensor elsewhere.
    ///
    /// # Safety
    /// The caller holds the slot, and the tensor stays until the value is recomputed.
    pub unsafe fn point(&self, tensor: &View) {
        // SAFETY: as demanded of the caller.
        unsafe { self.view.reshape(tensor.data(), tensor.bytes(), *tensor.desc()) };
        self.state.store(MADE, Relaxed);
    }

    /// Exchanges two values.
    ///
    /// # Safety
    /// The caller holds both slots.
    pub unsafe fn exchange(&self, other: &ValueSlot) {
        let (view, state) = (self.view.clone(), self.state.load(Relaxed));
        // SAFETY: the caller holds both slots, and the blocks are exchanged with the views.
        unsafe {
            self.view.reshape(other.view.data(), other.view.bytes(), *other.view.desc());
            other.view.reshape(view.data(), view.bytes(), *view.desc());
        }
        self.state.store(other.state.load(Relaxed), Relaxed);
        other.state.store(state, Relaxed);
        // SAFETY: the caller holds both slots; they are not the same one, whose views would overlap otherwise.
        unsafe { std::ptr::swap(self.block.get(), other.block.get()) }
    }

    /// Takes the value out, in exchange for the memory of an older one. Returns the address.
    ///
    /// # Safety
    /// The caller holds the slot, and nothing uses the older value any more.
    pub unsafe fn give(&self, block: &mut Option<MemoryBlock>) -> *mut u8 {
        // SAFETY: the caller holds the slot.
        unsafe { std::ptr::swap(self.block.get(), block) }
        self.state.store(OPEN, Relaxed);
        self.view.data()
    }

    /// Copies the value to a tensor of its size.
    ///
    /// # Safety
    /// The value is computed, and nothing writes it meanwhile.
    pub unsafe fn copy_to(&self, mut tensor: BytesMut<'_>) -> Result<()> {
        if tensor.len() != self.view.bytes() {
            return Err(Error::internal("a value was copied to a tensor of another size"));
        }
        // SAFETY: as demanded of the caller.
        tensor.copy_from(unsafe { self.view.as_bytes() });
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::dtype;
    use crate::memory::{Pool, PoolAttr, ProcessMemory, Tag};
    use std::sync::Arc;

    fn memory() -> Arc<Pool> {
        let attr = PoolAttr { name: "a test".to_owned(), alignment: 64, limit: usize::MAX, direct: false };
        Pool::new(attr, Box::new(ProcessMemory))
    }
    use std::cell::Cell;

    fn make(slot: &ValueSlot, bytes: i64, more: &dyn Fn(usize) -> Result<MemoryBlock>) -> Result<Option<*mut u8>> {
        // SAFETY: no other thread holds the slot, nor an old value.
        unsafe {
            slot.begin();
            slot.allocate(Desc::new(dtype::U8, &[bytes]), more)
        }
    }

    #[test]
    fn a_block_grows_ahead_and_is_kept() {
        let slot = ValueSlot::new(Desc::new(dtype::U8, &[-1]));
        let (calls, memory) = (Cell::new(0), memory());
        let more = |bytes: usize| {
            calls.set(calls.get() + 1);
            memory.allocate(bytes, Tag::Nothing)
        };
        for rows in 0..1000 {
            assert!(make(&slot, rows, &more).unwrap().is_some());
            // SAFETY: as of `make`.
            let again = unsafe { slot.allocate(Desc::new(dtype::U8, &[rows]), &more) };
            assert!(again.unwrap().is_none(), "twice");
            assert_eq!(slot.view().bytes(), rows as usize);
        }
        assert!(calls.get() < 40, "{} blocks", calls.get());
        let before = calls.get();
        make(&slot, 7, &more).unwrap();
        assert_eq!((calls.get(), slot.view().bytes()), (before, 7));
    }

    #[test]
    fn without_memory_a_slot_is_open_again() {
        let slot = ValueSlot::new(Desc::new(dtype::U8, &[-1]));
        let none = |bytes: usize| Err(Error::exhausted("a test", bytes));
        let memory = memory();
        assert!(make(&slot, 9, &none).is_err());
        assert!(!slot.is_made());
        assert!(make(&slot, 9, &|bytes| memory.allocate(bytes, Tag::Nothing)).unwrap().is_some());
    }

    #[test]
    fn values_change_places_with_their_memory() {
        let (a, b) = (ValueSlot::new(Desc::new(dtype::U8, &[-1])), ValueSlot::new(Desc::new(dtype::U8, &[-1])));
        let memory = memory();
        let more = |bytes: usize| memory.allocate(bytes, Tag::Nothing);
        let at = make(&a, 3, &more).unwrap().unwrap();
        // SAFETY: no other thread holds the slots.
        unsafe { a.exchange(&b) };
        assert!(b.is_made() && !a.is_made());
        assert_eq!((b.view().data(), b.view().bytes()), (at, 3));
    }
}
