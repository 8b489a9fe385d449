//! Pinned memory in flight, with FAKE_CUDA_PINNED=guard: what the host must not touch, it cannot.
//!
//! Pinned memory that the driver allocates is mapped twice: operations use one view, the host the other. From the call
//! that asks for a copy on, the host can neither read nor write pages that the copy writes, and cannot write pages that
//! it reads, until the host has waited for the copy. Only pages that lie in the copy whole are protected: the bytes
//! beside it may be in use for something else.

use crate::abi::Handle;
use crate::operation::{Copy, Side};
use crate::schedule::Point;
use crate::settings::SETTINGS;
use crate::space;
use crate::world::{World, try_lock};
use std::ops::Range;
use std::sync::{Arc, Once};

pub const PAGE: u64 = 4096;

#[derive(Debug)]
pub struct Guard {
    pages: Range<u64>,
    /// The operation writes them.
    is_written: bool,
    point: Point,
    name: String,
}

/// Memory of the host's with a second view.
#[derive(Debug)]
pub struct TwoViews {
    pub host: *mut u8,
    pub device: *mut u8,
    size: usize,
}

// SAFETY: the bytes belong to the block, and are used through raw addresses by operations that the tested program
// orders.
unsafe impl Send for TwoViews {}
// SAFETY: as above.
unsafe impl Sync for TwoViews {}

impl TwoViews {
    pub fn new(bytes: usize) -> Option<TwoViews> {
        let size = bytes.checked_next_multiple_of(PAGE as usize)?;
        // SAFETY: the C library's functions; the mappings are new, and hold the memory when the file is closed.
        unsafe {
            let file = libc::memfd_create(c"pinned".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return None;
            }
            let map = || {
                let rights = libc::PROT_READ | libc::PROT_WRITE;
                libc::mmap(std::ptr::null_mut(), size, rights, libc::MAP_SHARED, file, 0)
            };
            let is_sized = libc::ftruncate(file, size as libc::off_t) == 0;
            let (host, device) = if is_sized { (map(), map()) } else { (libc::MAP_FAILED, libc::MAP_FAILED) };
            libc::close(file);
            if host == libc::MAP_FAILED || device == libc::MAP_FAILED {
                return None;
            }
            Some(TwoViews { host: host.cast(), device: device.cast(), size })
        }
    }
}

impl Drop for TwoViews {
    fn drop(&mut self) {
        // SAFETY: mapped so; nobody has the block any more.
        unsafe {
            libc::munmap(self.host.cast(), self.size);
            libc::munmap(self.device.cast(), self.size);
        }
    }
}

impl World {
    /// A copy was asked for.
    pub fn guard(&mut self, name: &str, stream: Handle, copy: &Copy, point: &Point) {
        if !SETTINGS.guards {
            return;
        }
        static ONCE: Once = Once::new();
        ONCE.call_once(install);
        for (side, is_written) in [(&copy.to, true), (&copy.from, false)] {
            for pages in whole_pages(side, copy) {
                let name = format!("{name} (operation {}, {})", point.id, self.stream_name(stream));
                self.guards.push(Guard { pages: pages.clone(), is_written, point: Arc::clone(point), name });
                self.protect(&pages);
            }
        }
    }

    /// The host knows more.
    pub fn unguard(&mut self) {
        let host = std::mem::take(&mut self.host);
        let ended: Vec<Guard> = self.guards.extract_if(.., |guard| guard.point.is_known(&host)).collect();
        self.host = host;
        ended.iter().for_each(|guard| self.protect(&guard.pages));
    }

    /// The memory ends.
    pub fn drop_guards(&mut self, bytes: &Range<u64>) {
        self.guards.retain(|guard| guard.pages.end <= bytes.start || bytes.end <= guard.pages.start);
    }

    /// Gives each page the rights that its guards leave.
    fn protect(&self, pages: &Range<u64>) {
        for page in pages.clone().step_by(PAGE as usize) {
            let guards = self.guards.iter().filter(|guard| guard.pages.contains(&page));
            let rights = guards.fold(libc::PROT_READ | libc::PROT_WRITE, |rights, guard| {
                if guard.is_written { libc::PROT_NONE } else { rights & libc::PROT_READ }
            });
            // SAFETY: a page of a block that is alive: its guards end before it.
            unsafe { libc::mprotect(page as *mut libc::c_void, PAGE as usize, rights) };
        }
    }
}

/// The pages that lie in a copy's side whole, where it is in pinned memory with two views.
fn whole_pages(side: &Side, copy: &Copy) -> Vec<Range<u64>> {
    if side.staged.is_some() || !space::look(|space| space.pinned(side.address).is_some_and(space::Pinned::has_views)) {
        return Vec::new();
    }
    let rows = side.rows(copy.width, copy.height, copy.depth).into_iter();
    rows.map(|row| row.start.next_multiple_of(PAGE)..row.end / PAGE * PAGE).filter(|pages| !pages.is_empty()).collect()
}

static mut BEFORE: std::mem::MaybeUninit<libc::sigaction> = std::mem::MaybeUninit::uninit();

fn install() {
    // SAFETY: the C library's function with a handler of the right type; `BEFORE` is written once, before the handler
    // can run.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = faulted as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &raw const action, (&raw mut BEFORE).cast());
    }
}

/// The host has touched something: if it is guarded, that is told, and the process ends.
extern "C" fn faulted(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives the handler a fault's address.
    let address = unsafe { (*info).si_addr() } as u64;
    // The thread was in the program's code, so the lock is not its own.
    if let Some(world) = try_lock()
        && let Some(guard) = world.guards.iter().find(|guard| guard.pages.contains(&address))
    {
        let does = if guard.is_written { "writes" } else { "reads" };
        let bytes = address..address + 1;
        let place = space::look(|space| space.describe(&bytes));
        crate::call::stop(&format!(
            "race: the host touches {place}, which {} {does}; it has not waited for that",
            guard.name
        ));
    }
    // The fault comes again, for who was asked before.
    // SAFETY: as it was before.
    unsafe { libc::sigaction(signal, (&raw const BEFORE).cast(), std::ptr::null_mut()) };
}
