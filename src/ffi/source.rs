//! Sources of the memory of tensors and buffers.

use super::{handle, task, versioned};
use crate::abi::*;
use crate::base::{Error, Ref, Result};
use crate::engine::{Buffer, Engine};
use std::any::Any;
use std::sync::Arc;

pub(super) enum Source<'a> {
    /// New memory of the engine's.
    New,
    Foreign(Foreign),
    Buffer {
        buffer: Ref<Buffer>,
        offset: usize,
    },
    /// New host memory, pinned for this engine's copies.
    Pinned(&'a Engine),
}

pub(super) struct Foreign {
    pub data: *mut u8,
    /// Not told: as many as are needed.
    pub bytes: Option<usize>,
    release: Arc<task::Destroy>,
}

impl Source<'_> {
    /// # Safety
    /// `from` is NULL or points to a struct of the caller's that is as its documentation demands during `'a`.
    pub(super) unsafe fn read<'a>(from: *const weir_memory) -> Result<Source<'a>> {
        use weir_memory_source_value::*;
        // SAFETY: as demanded of the caller.
        let memory = unsafe { versioned::read_opt(from, "from") }?;
        let Some(memory) = memory else { return Ok(Source::New) };
        if memory.reserved != 0 {
            return Err(Error::invalid(format!("from->reserved is {}, expected 0", memory.reserved)));
        }
        let is_foreign = !memory.data.is_null() || memory.bytes > 0 || memory.release.is_some();
        let (is_on_buffer, is_pinned) = (!memory.buffer.is_null() || memory.offset > 0, !memory.device.is_null());
        let only = |name: &str, others: [bool; 2]| match others.contains(&true) {
            true => Err(Error::invalid(format!("from->source is {name}, and from sets members of another source"))),
            false => Ok(()),
        };
        // SAFETY: as demanded of the caller.
        unsafe {
            match memory.source {
                source if source == WEIR_MEMORY_FOREIGN as u32 => {
                    only("FOREIGN", [is_on_buffer, is_pinned])?;
                    let release = Arc::new(task::Destroy::new(memory.release, memory.release_ctx));
                    let bytes = Some(memory.bytes).filter(|&bytes| bytes > 0);
                    Ok(Source::Foreign(Foreign { data: memory.data.cast(), bytes, release }))
                }
                source if source == WEIR_MEMORY_BUFFER as u32 => {
                    only("BUFFER", [is_foreign, is_pinned])?;
                    Ok(Source::Buffer { buffer: handle::share(memory.buffer, "from->buffer")?, offset: memory.offset })
                }
                source if source == WEIR_MEMORY_PINNED as u32 => {
                    only("PINNED", [is_foreign, is_on_buffer])?;
                    Ok(Source::Pinned(handle::borrow(memory.device.cast_const(), "from->device")?))
                }
                source => Err(Error::invalid(format!(
                    "from->source is {source}, expected 0 (FOREIGN), 1 (BUFFER) or 2 (PINNED)"
                ))),
            }
        }
    }
}

impl Foreign {
    /// Makes an object over the memory, of which it needs `bytes`, and gives the function that releases it: the memory
    /// stays the caller's until that is adopted, which comes after everything that can fail.
    pub(super) fn make<T>(
        self,
        bytes: usize,
        make: impl FnOnce(*mut u8, Box<dyn Any + Send + Sync>) -> Result<T>,
    ) -> Result<(T, Option<Arc<task::Destroy>>)> {
        if let Some(given) = self.bytes.filter(|&given| given < bytes) {
            return Err(Error::out_of_range(format!("from->bytes is {given}, and {bytes} are needed")));
        }
        let made = make(self.data, Box::new(Arc::clone(&self.release)))?;
        Ok((made, Some(self.release)))
    }
}
