//! The calling thread's last error: its code and message, and the run that failed.

use crate::abi::weir_status;
use crate::base::Error;
use crate::memory::heap;
use crate::sync::Keepsake;
use std::cell::UnsafeCell;
use std::ffi::c_char;

/// Longest message kept, with its NUL. Longer ones are cut at a character boundary and end in "...".
const CAPACITY: usize = 1024;

/// Bytes of a name besides its text, at most.
const NAME_BYTES: usize = 64;

/// A plain array, so that the thread-local needs no destructor and no allocation: it works while memory is short and
/// while the thread is ending.
#[derive(Clone, Copy)]
struct Last {
    code: weir_status,
    len: usize,
    bytes: [u8; CAPACITY],
}

thread_local! {
    static LAST: UnsafeCell<Last> = const { UnsafeCell::new(Last { code: 0, len: 0, bytes: [0; CAPACITY] }) };
}

/// The thread's last error, if it was a run's.
static FAILURE: Keepsake<Error> = Keepsake::new();

/// Keeps code and "function: message" for this thread, and the failure of the run.
pub(super) fn set(function: &str, error: &Error) {
    update(|last| {
        (last.code, last.len) = (error.code().status(), 0);
        for part in [function, ": ", error.message()] {
            last.push(part);
        }
        last.bytes[last.len] = 0;
    });
    FAILURE.set(error.run().map(|_| error.clone()));
}

/// The allocator's reserve is short, and the failure that this thread keeps may be what is in it: moves it out, or
/// forgets its details if there is still no memory for them. False if there is none.
#[cold]
pub(super) fn moves_out() -> bool {
    let Some(failure) = FAILURE.get() else { return false };
    let names = failure.run().map_or(0, |run| run.left_out.iter().map(|name| name.len() + NAME_BYTES).sum());
    let copied = || heap::probe(names, "a failure").map(|()| failure.copied());
    FAILURE.set(heap::whole(copied).ok());
    true
}

pub(super) fn failure() -> Option<Error> {
    FAILURE.get()
}

/// Runs `f` with this as the thread's last error, and restores the previous one.
pub(super) fn during<T>(function: &str, error: &Error, f: impl FnOnce() -> T) -> T {
    let (failure, before) = (FAILURE.get(), update(|last| *last));
    set(function, error);
    let result = f();
    FAILURE.set(failure);
    if let Some(before) = before {
        update(|last| *last = before);
    }
    result
}

/// Clears code and message.
pub(super) fn clear() {
    update(|last| {
        (last.code, last.len) = (0, 0);
        last.bytes[0] = 0;
    });
}

/// The NUL-terminated message, "" when there is none. It stays valid until this thread's next failing weir call.
pub(super) fn pointer() -> *const c_char {
    update(|last| last.bytes.as_ptr().cast()).unwrap_or(c"".as_ptr())
}

/// Runs `f` with the code and the message.
pub(super) fn with<T>(f: impl FnOnce(weir_status, &str) -> T) -> T {
    let nothing = Last { code: 0, len: 0, bytes: [0; CAPACITY] };
    let last = update(|last| *last).unwrap_or(nothing);
    f(last.code, std::str::from_utf8(&last.bytes[..last.len]).unwrap_or(""))
}

fn update<T>(f: impl FnOnce(&mut Last) -> T) -> Option<T> {
    // SAFETY: the cell belongs to this thread, `f` calls nothing that comes back here, and no reference leaves it.
    LAST.try_with(|cell| f(unsafe { &mut *cell.get() })).ok()
}

impl Last {
    fn push(&mut self, part: &str) {
        const DOTS: &str = "...";
        let room = CAPACITY - 1 - self.len;
        if part.len() <= room {
            self.bytes[self.len..self.len + part.len()].copy_from_slice(part.as_bytes());
            self.len += part.len();
        } else if room > DOTS.len() {
            let mut cut = room - DOTS.len();
            while !part.is_char_boundary(cut) {
                cut -= 1;
            }
            self.bytes[self.len..self.len + cut].copy_from_slice(&part.as_bytes()[..cut]);
            self.len += cut;
            self.bytes[self.len..self.len + DOTS.len()].copy_from_slice(DOTS.as_bytes());
            self.len += DOTS.len();
        }
    }
}
