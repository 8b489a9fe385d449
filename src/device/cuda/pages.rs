//! Pinned memory that inboxes are cut from.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::device::Pinning;
use crate::sync::Mutex;

const PAGE_BYTES: usize = 4096;
const INBOX_BYTES: usize = 64;

/// The pages of a context.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pages: Mutex<Vec<usize>>,
    free: Mutex<Vec<usize>>,
}

impl Pages {
    /// Room for one inbox.
    pub(super) fn take(&self, host: &dyn Pinning) -> Result<usize> {
        if let Some(address) = self.free.lock().pop() {
            return Ok(address);
        }
        let page = host.allocate_host(PAGE_BYTES, "what kernels find")?;
        self.pages.lock().push(page);
        let mut free = self.free.lock();
        free.extend((INBOX_BYTES..PAGE_BYTES).step_by(INBOX_BYTES).map(|offset| page + offset));
        Ok(page)
    }

    /// It is no longer used.
    pub(super) fn put(&self, address: usize) {
        self.free.lock().push(address);
    }

    /// All of them, to be freed by the caller.
    pub(super) fn drain(&self) -> Vec<usize> {
        std::mem::take(&mut self.pages.lock())
    }
}
