//! Notices for the host: functions that are called, and eventfds that are raised, when something is over.

#[cfg(feature = "graph")]
use super::handle;
use super::{last_error, versioned};
use crate::abi::*;
#[cfg(feature = "graph")]
use crate::base::Object;
use crate::base::{Error, Result};
#[cfg(feature = "graph")]
use crate::graph::Run;
use crate::stream::Listener;
use crate::sync::ambient;
use std::any::Any;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The handle of the run that is over, if it was one.
#[cfg(feature = "graph")]
fn run(what: &dyn Any) -> *mut weir_run {
    let run = what.downcast_ref::<Object<Run>>();
    run.map_or(std::ptr::null_mut(), handle::borrowed_c::<weir_run>)
}

#[cfg(not(feature = "graph"))]
fn run(_: &dyn Any) -> *mut weir_run {
    std::ptr::null_mut()
}

/// Calls the host's function, and raises its eventfd.
fn tell(listener: &Listener, error: Option<&Error>, what: Option<&dyn Any>) {
    let notice = &listener.notice;
    if let Some(notify) = notice.notify {
        let run = what.map_or(std::ptr::null_mut(), run);
        let status = error.map_or(0, |error| error.code().status());
        // SAFETY: the host's function with its own context; the run outlives the call.
        let call = || unsafe { notify(notice.ctx, status, run) };
        match error {
            None => call(),
            Some(error) => last_error::during(listener.asked_by, error, call),
        }
    }
    if notice.event_fd > 0 {
        raise(notice.event_fd);
    }
}

fn release(listener: &Listener) {
    if let Some(release) = listener.notice.release {
        // SAFETY: the host's function with its own context, once: `KeptListener` calls this when it is dropped.
        ambient::call(|| unsafe { release(listener.notice.ctx) });
    }
}

/// Reads and checks a notice of the host's.
///
/// # Safety
/// `notice` is NULL or points to `struct_size` readable bytes.
pub(super) unsafe fn read(asked_by: &'static str, notice: *const weir_notice, argument: &str) -> Result<Listener> {
    // SAFETY: as demanded of the caller.
    let notice = unsafe { versioned::read(notice, argument) }?;
    if notice.reserved != 0 {
        return Err(Error::invalid(format!("{argument}->reserved is {}, expected 0", notice.reserved)));
    }
    if notice.notify.is_none() && notice.event_fd == 0 {
        let text = format!("{argument} has neither a function nor an eventfd (event_fd 0 stands for none)");
        return Err(Error::invalid(text));
    }
    if notice.event_fd != 0 {
        check(notice.event_fd, argument)?;
    }
    Ok(Listener { notice, asked_by, tell, release })
}

/// Refuses descriptors that are no eventfd, or that could block a thread.
#[cfg(target_os = "linux")]
fn check(fd: i32, argument: &str) -> Result<()> {
    // SAFETY: asks for the flags of a number, which may be that of nothing.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(Error::invalid(format!("{argument}->event_fd is {fd}, which is no open file")));
    }
    // A run that is repeated looks only once at what its file is.
    static SEEN: AtomicI32 = AtomicI32::new(0);
    let may_block = flags & libc::O_NONBLOCK == 0;
    if !may_block && SEEN.load(Relaxed) == fd {
        return Ok(());
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
        return Err(Error::invalid(format!("{argument}->event_fd is {fd}, which is no eventfd but {kind}")));
    }
    if may_block {
        return Err(Error::invalid(format!("{argument}->event_fd is {fd}, which blocks: make it with EFD_NONBLOCK")));
    }
    SEEN.store(fd, Relaxed);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check(_fd: i32, argument: &str) -> Result<()> {
    let text = format!("{argument}->event_fd: this system has no eventfd");
    Err(Error::new(crate::base::Code::Unimplemented, text))
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
