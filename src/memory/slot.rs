//! A place for a value whose shape is known only when it is made: a view, and a block of memory that grows when the
//! value does not fit, and never shrinks.
//!
//! One thread at a time has a slot: first whoever runs the node that makes the value (`begin`, `allocate`), then,
//! behind it along edges, those who read it (`view`), and last whoever moves it on (`exchange`), behind all of these.
//! So the block needs no lock. Only `allocate` may be called by a host's kernel as it likes, also from several threads
//! at once; `state` lets one of them in:
//!
//! | state | meaning                                        | next                               |
//! |-------|------------------------------------------------|------------------------------------|
//! | OPEN  | the node that makes the value runs, or nobody  | BUSY by `allocate`                 |
//! | BUSY  | a thread looks for memory                      | MADE, or OPEN if there was none    |
//! | MADE  | the view is right                              | OPEN by `begin`, in the next turn  |

use super::{Block, View};
use crate::base::{Desc, Error, Result};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering::*};

const OPEN: u32 = 0;
const BUSY: u32 = 1;
const MADE: u32 = 2;

#[derive(Debug)]
pub struct Slot {
    view: View,
    block: UnsafeCell<Option<Block>>,
    state: AtomicU32,
}

// SAFETY: the block is touched by the one thread that has the slot, as the module says.
unsafe impl Sync for Slot {}

impl Slot {
    /// Empty; `desc` says what is known of the value.
    pub fn new(desc: Desc) -> Slot {
        let view = View::new(std::ptr::null_mut(), 0, desc);
        Slot { view, block: UnsafeCell::new(None), state: AtomicU32::new(OPEN) }
    }

    /// The value, once it is made.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The value is about to be made anew. ORDERING: Relaxed here and in `is_made`; edges order those who have the
    /// slot.
    pub fn begin(&self) {
        self.state.store(OPEN, Relaxed);
    }

    pub fn is_made(&self) -> bool {
        self.state.load(Relaxed) == MADE
    }

    /// Memory for a value like `desc`, in the block that is there or in a larger one from `more`. None if that was done
    /// before.
    pub fn allocate(&self, desc: Desc, more: &dyn Fn(usize) -> Result<Block>) -> Result<Option<*mut u8>> {
        let bytes = desc.bytes()?;
        // ORDERING: Acquire pairs with the Release below: an attempt before this one that found no memory is over.
        if self.state.compare_exchange(OPEN, BUSY, Acquire, Relaxed).is_err() {
            return Ok(None);
        }
        match self.grow(bytes, more) {
            Ok(data) => {
                self.view.reshape(data, bytes, desc);
                self.state.store(MADE, Release);
                Ok(Some(data))
            }
            Err(error) => {
                self.state.store(OPEN, Release);
                Err(error)
            }
        }
    }

    fn grow(&self, bytes: usize, more: &dyn Fn(usize) -> Result<Block>) -> Result<*mut u8> {
        // SAFETY: this thread has the slot (BUSY).
        let block = unsafe { &mut *self.block.get() };
        if let Some(block) = block.as_ref().filter(|block| block.bytes() >= bytes) {
            return Ok(block.data());
        }
        // A value that grows a little each time is not to be moved each time.
        let ample = block.as_ref().map_or(bytes, |old| bytes.max(old.bytes() + old.bytes() / 2));
        *block = None;
        // At least a byte, so that a value without elements has an address too.
        let new = more(ample.max(1)).or_else(|_| more(bytes.max(1)))?;
        let data = new.data();
        *block = Some(new);
        Ok(data)
    }

    /// The value is a tensor elsewhere.
    pub fn point(&self, tensor: &View) {
        self.view.reshape(tensor.data(), tensor.bytes(), *tensor.desc());
        self.state.store(MADE, Relaxed);
    }

    /// Two values change places. Only by a thread that has both slots.
    pub fn exchange(&self, other: &Slot) {
        let (view, state) = (self.view.clone(), self.state.load(Relaxed));
        self.view.reshape(other.view.data(), other.view.bytes(), *other.view.desc());
        other.view.reshape(view.data(), view.bytes(), *view.desc());
        self.state.store(other.state.load(Relaxed), Relaxed);
        other.state.store(state, Relaxed);
        // SAFETY: the caller has both slots; they are not the same one, whose views would overlap otherwise.
        unsafe { std::ptr::swap(self.block.get(), other.block.get()) }
    }

    /// Takes the value out, for the memory of an older one. Gives the address. Only by the thread that has the slot.
    pub fn give(&self, block: &mut Option<Block>) -> *mut u8 {
        // SAFETY: as said above.
        unsafe { std::ptr::swap(self.block.get(), block) }
        self.state.store(OPEN, Relaxed);
        self.view.data()
    }

    /// Copies the value to memory of at least `bytes()` bytes, which does not overlap.
    pub fn copy_to(&self, tensor: &View) -> Result<()> {
        if tensor.bytes() != self.view.bytes() {
            return Err(Error::internal("a value was copied to a tensor of another size"));
        }
        tensor.copy_from(&self.view);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype;
    use crate::memory::{HostMemory, Pool, PoolAttr, Tag};
    use std::sync::Arc;

    fn memory() -> Arc<Pool> {
        let attr = PoolAttr { name: "a test".to_owned(), alignment: 64, limit: usize::MAX, direct: false };
        Pool::new(attr, Box::new(HostMemory))
    }
    use std::cell::Cell;

    #[test]
    fn a_block_grows_ahead_and_is_kept() {
        let slot = Slot::new(Desc::new(dtype::U8, &[-1]));
        let (calls, memory) = (Cell::new(0), memory());
        let more = |bytes: usize| {
            calls.set(calls.get() + 1);
            memory.allocate(bytes, Tag::Nothing)
        };
        for rows in 0..1000 {
            slot.begin();
            assert!(slot.allocate(Desc::new(dtype::U8, &[rows]), &more).unwrap().is_some());
            assert!(slot.allocate(Desc::new(dtype::U8, &[rows]), &more).unwrap().is_none(), "twice");
            assert_eq!(slot.view().bytes(), rows as usize);
        }
        assert!(calls.get() < 40, "{} blocks", calls.get());
        let before = calls.get();
        slot.begin();
        slot.allocate(Desc::new(dtype::U8, &[7]), &more).unwrap();
        assert_eq!((calls.get(), slot.view().bytes()), (before, 7));
    }

    #[test]
    fn without_memory_a_slot_is_open_again() {
        let slot = Slot::new(Desc::new(dtype::U8, &[-1]));
        let none = |bytes: usize| Err(Error::exhausted("a test", bytes));
        let memory = memory();
        assert!(slot.allocate(Desc::new(dtype::U8, &[9]), &none).is_err());
        assert!(!slot.is_made());
        assert!(
            slot.allocate(Desc::new(dtype::U8, &[9]), &|bytes| memory.allocate(bytes, Tag::Nothing)).unwrap().is_some()
        );
    }

    #[test]
    fn values_change_places_with_their_memory() {
        let (a, b) = (Slot::new(Desc::new(dtype::U8, &[-1])), Slot::new(Desc::new(dtype::U8, &[-1])));
        let memory = memory();
        let more = |bytes: usize| memory.allocate(bytes, Tag::Nothing);
        let at = a.allocate(Desc::new(dtype::U8, &[3]), &more).unwrap().unwrap();
        a.exchange(&b);
        assert!(b.is_made() && !a.is_made());
        assert_eq!((b.view().data(), b.view().bytes()), (at, 3));
    }
}
