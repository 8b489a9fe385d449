//! A weir pool as an owned value.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Mutex;
use weir_core::abi::{
    weir_parallel_hint, weir_range_fn, weir_status, weir_status_value as Code, weir_threadpool,
    weir_threadpool_options, weir_threadpool_vtable,
};

// The C interface of the weir that is linked in, as in include/weir.h.
#[expect(improper_ctypes, reason = "handles are opaque: only pointers to them cross")]
unsafe extern "C" {
    fn weir_threadpool_create(
        vtable: *const weir_threadpool_vtable,
        ctx: *mut c_void,
        options: *const weir_threadpool_options,
        out_pool: *mut *mut weir_threadpool,
    ) -> weir_status;
    fn weir_threadpool_retain(pool: *mut weir_threadpool) -> weir_status;
    fn weir_threadpool_release(pool: *mut weir_threadpool);
    fn weir_threadpool_get_num_threads(pool: *const weir_threadpool, out: *mut i32) -> weir_status;
    fn weir_threadpool_in_parallel(pool: *const weir_threadpool, out: *mut i32) -> weir_status;
    fn weir_parallel_for(
        pool: *mut weir_threadpool,
        n: i64,
        hint: *const weir_parallel_hint,
        range: weir_range_fn,
        arg: *mut c_void,
    ) -> weir_status;
    fn weir_last_error_message() -> *const c_char;
    fn weir_status_name(status: weir_status) -> *const c_char;
}

/// A weir call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// One of the codes of `weir_status_value`.
    pub code: i32,
    /// Which call, which argument or object, and why.
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: weir gives a text for every number, for ever.
        let name = unsafe { CStr::from_ptr(weir_status_name(self.code)) };
        write!(f, "{}: {}", name.to_string_lossy(), self.message)
    }
}

impl std::error::Error for Error {}

fn check(status: weir_status) -> Result<(), Error> {
    if status == Code::WEIR_OK as i32 {
        return Ok(());
    }
    // SAFETY: the text is this thread's until its next call that fails.
    let message = unsafe { CStr::from_ptr(weir_last_error_message()) };
    Err(Error { code: status, message: message.to_string_lossy().into_owned() })
}

/// One reference to a weir pool. [`ThreadPool::as_ptr`] is what the C interface takes, for engines and streams.
#[derive(Debug)]
pub struct ThreadPool(NonNull<weir_threadpool>);

// SAFETY: weir's pools may be used from any thread, several at a time.
unsafe impl Send for ThreadPool {}
// SAFETY: as above.
unsafe impl Sync for ThreadPool {}

impl ThreadPool {
    /// # Safety
    /// The functions keep the contract of `weir_threadpool_vtable` with this context.
    pub(crate) unsafe fn over(vtable: &weir_threadpool_vtable, ctx: *mut c_void) -> Result<ThreadPool, Error> {
        let mut pool = std::ptr::null_mut();
        // SAFETY: as demanded of the caller.
        check(unsafe { weir_threadpool_create(vtable, ctx, std::ptr::null(), &raw mut pool) })?;
        NonNull::new(pool).map(ThreadPool).ok_or_else(|| Error {
            code: Code::WEIR_INTERNAL as i32,
            message: "weir_threadpool_create gave no pool".to_owned(),
        })
    }

    /// The handle, borrowed.
    pub fn as_ptr(&self) -> *mut weir_threadpool {
        self.0.as_ptr()
    }

    /// The handle with its reference, for the caller to release.
    pub fn into_raw(self) -> *mut weir_threadpool {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
    }

    /// How many tasks can run at once, as the pool says now.
    pub fn num_threads(&self) -> Result<usize, Error> {
        let mut n = 0;
        // SAFETY: a live handle.
        check(unsafe { weir_threadpool_get_num_threads(self.as_ptr(), &raw mut n) })?;
        Ok(usize::try_from(n).unwrap_or(0))
    }

    /// Whether the calling thread works for the pool.
    pub fn in_parallel(&self) -> Result<bool, Error> {
        let mut inside = 0;
        // SAFETY: a live handle.
        check(unsafe { weir_threadpool_in_parallel(self.as_ptr(), &raw mut inside) })?;
        Ok(inside != 0)
    }

    /// Calls `body(range, slot)` for the pieces of `0..n`, on the pool and here, and returns when all have returned. No
    /// two pieces that run at once have the same slot. `item_ns`: what an item costs, 0 = unknown. A panic in `body`
    /// stops the pieces that have not begun, and goes on here.
    pub fn parallel_for(&self, n: usize, item_ns: f64, body: impl Fn(Range<usize>, usize) + Sync) -> Result<(), Error> {
        let items = i64::try_from(n).map_err(|_| Error {
            code: Code::WEIR_INVALID_ARGUMENT as i32,
            message: format!("parallel_for: n is {n}"),
        })?;
        let hint = weir_parallel_hint {
            struct_size: size_of::<weir_parallel_hint>(),
            cost_ns: item_ns,
            grain: 0,
            max_slots: 0,
            flags: 0,
            epilogue: None,
        };
        let region = Region { body, panic: Mutex::new(None) };
        let arg = (&raw const region).cast_mut().cast();
        // SAFETY: `run_piece` has the type of the region that it gets, and all pieces have returned when the call does.
        let status = unsafe { weir_parallel_for(self.as_ptr(), items, &raw const hint, Some(region.piece()), arg) };
        if let Some(payload) = region.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
            resume_unwind(payload);
        }
        check(status)
    }
}

impl Clone for ThreadPool {
    fn clone(&self) -> Self {
        // SAFETY: a live handle. Retaining one cannot fail.
        let _ = unsafe { weir_threadpool_retain(self.as_ptr()) };
        ThreadPool(self.0)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // SAFETY: this value's reference.
        unsafe { weir_threadpool_release(self.as_ptr()) }
    }
}

struct Region<F> {
    body: F,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<F: Fn(Range<usize>, usize) + Sync> Region<F> {
    /// The function for pieces of a region of this type.
    fn piece(&self) -> unsafe extern "C" fn(*mut c_void, i64, i64, i32) -> i32 {
        run_piece::<F>
    }
}

unsafe extern "C" fn run_piece<F: Fn(Range<usize>, usize) + Sync>(
    arg: *mut c_void,
    begin: i64,
    end: i64,
    slot: i32,
) -> i32 {
    // SAFETY: the region of the call in progress.
    let region = unsafe { &*arg.cast_const().cast::<Region<F>>() };
    // 0 <= begin < end <= n, which came from a usize; slots are small.
    match catch_unwind(AssertUnwindSafe(|| (region.body)(begin as usize..end as usize, slot as usize))) {
        Ok(()) => Code::WEIR_OK as i32,
        Err(payload) => {
            let mut first = region.panic.lock().unwrap_or_else(|e| e.into_inner());
            match *first {
                None => *first = Some(payload),
                Some(_) => std::mem::forget(payload), // its destructor could panic again
            }
            Code::WEIR_ABORTED as i32
        }
    }
}
