//! Notices for the host: functions that are called, and eventfds that are raised, when something is over.

use super::task::Destroy;
use super::{handle, last_error, versioned};
use crate::abi::*;
use crate::base::{Error, Object, Result};
use crate::graph::Run;
use crate::stream::Listener;
use std::any::Any;
use std::ffi::CStr;
use std::sync::Arc;

/// The empty notice.
pub(super) const NONE: weir_notice =
    weir_notice { struct_size: 0, notify: None, ctx: std::ptr::null_mut(), release: None, event_fd: 0, reserved: 0 };

#[derive(Debug)]
struct HostNotice {
    notice: weir_notice,
    /// The call that requested the notice, for the text of a failure.
    asked_by: &'static str,
    /// Releases `ctx`.
    destroy: Destroy,
}

// SAFETY: the host promises that its functions may run on any thread.
unsafe impl Send for HostNotice {}
// SAFETY: as above; nothing here changes.
unsafe impl Sync for HostNotice {}

impl Listener for HostNotice {
    fn over(&self, error: Option<&Error>, what: Option<&dyn Any>) {
        if let Some(notify) = self.notice.notify {
            let run = what.and_then(|what| what.downcast_ref::<Object<Run>>());
            let run = run.map_or(std::ptr::null_mut(), handle::borrowed_c::<weir_run>);
            let status = error.map_or(0, |error| error.code().status());
            // SAFETY: the host's function with its own context; the run outlives the call.
            let call = || unsafe { notify(self.notice.ctx, status, run) };
            match error {
                None => call(),
                Some(error) => last_error::during(self.asked_by, error, call),
            }
        }
        if self.notice.event_fd > 0 {
            raise(self.notice.event_fd);
        }
    }

    fn calls_host(&self) -> bool {
        self.notice.notify.is_some() || self.notice.release.is_some()
    }

    fn adopt(&self) {
        self.destroy.adopt();
    }

    fn notice(&self) -> weir_notice {
        self.notice
    }
}

/// Reads and checks a notice of the host's.
///
/// # Safety
/// `notice` is NULL or points to `struct_size` readable bytes.
pub(super) unsafe fn read(asked_by: &'static str, notice: *const weir_notice) -> Result<Arc<dyn Listener>> {
    // SAFETY: as demanded of the caller.
    let notice = unsafe { versioned::read(notice, "notice") }?;
    if notice.reserved != 0 {
        return Err(Error::invalid(format!("notice->reserved is {}, expected 0", notice.reserved)));
    }
    if notice.notify.is_none() && notice.event_fd == 0 {
        return Err(Error::invalid("notice has neither a function nor an eventfd (event_fd 0 stands for none)"));
    }
    if notice.event_fd != 0 {
        check(notice.event_fd)?;
    }
    Ok(Arc::new(HostNotice { notice, asked_by, destroy: Destroy::new(notice.release, notice.ctx) }))
}

/// As `read`, with NULL for none.
///
/// # Safety
/// As `read`.
pub(super) unsafe fn read_opt(asked_by: &'static str, notice: *const weir_notice) -> Result<Option<Arc<dyn Listener>>> {
    if notice.is_null() {
        return Ok(None);
    }
    // SAFETY: as demanded of the caller.
    unsafe { read(asked_by, notice) }.map(Some)
}

/// Refuses descriptors that are no eventfd, or that could block a thread.
#[cfg(target_os = "linux")]
fn check(fd: i32) -> Result<()> {
    // SAFETY: asks for the flags of a number, which may be that of nothing.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(Error::invalid(format!("notice->event_fd is {fd}, which is no open file")));
    }
    let mut path = [0u8; 32];
    let end = {
        use std::io::Write;
        let mut rest = &mut path[..31];
        let _ = write!(rest, "/proc/self/fd/{fd}");
        31 - rest.len()
    };
    debug_assert!(end < 31);
    let mut target = [0u8; 64];
    // SAFETY: a path that ends with 0, and a buffer of this length.
    let length = unsafe { libc::readlink(path.as_ptr().cast(), target.as_mut_ptr().cast(), target.len() - 1) };
    let kind = CStr::from_bytes_until_nul(&target).map_or("", |name| name.to_str().unwrap_or(""));
    // Without /proc only its use shows what it is.
    if length > 0 && kind != "anon_inode:[eventfd]" {
        return Err(Error::invalid(format!("notice->event_fd is {fd}, which is no eventfd but {kind}")));
    }
    if flags & libc::O_NONBLOCK == 0 {
        return Err(Error::invalid(format!("notice->event_fd is {fd}, which blocks: make it with EFD_NONBLOCK")));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check(_fd: i32) -> Result<()> {
    Err(Error::new(crate::base::Code::Unimplemented, "notice->event_fd: this system has no eventfd"))
}

/// Adds 1. A full counter already says that something was over.
fn raise(fd: i32) {
    let one = 1u64;
    loop {
        // SAFETY: eight bytes of `one`. The host keeps the file open until the notice is over.
        let written = unsafe { libc::write(fd, std::ptr::from_ref(&one).cast(), size_of::<u64>()) };
        if written >= 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return;
        }
    }
}
