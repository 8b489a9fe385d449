//! Regions: one closure over many items, on the threads of a pool and in the calling one.

use crate::callback::panic_text;
use crate::error::check;
use crate::{Error, ErrorKind, Result};
use std::any::Any;
use std::ffi::c_void;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use weir_core::abi::{weir_parallel_hint, weir_range_fn, weir_status, weir_status_value as Status};

struct Region<F> {
    body: F,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Lets `start` run the pieces of a region, with the function and its argument. A panic of the body goes on here.
pub(crate) fn run<F: Fn(Range<usize>, usize) + Sync>(
    n: usize,
    item_ns: f64,
    body: F,
    start: impl FnOnce(i64, *const weir_parallel_hint, weir_range_fn, *mut c_void) -> weir_status,
) -> Result<()> {
    let items = i64::try_from(n)
        .map_err(|_| Error::new(ErrorKind::OutOfRange, format!("a region of {n} items is too large")))?;
    let hint = weir_parallel_hint {
        struct_size: size_of::<weir_parallel_hint>(),
        cost_ns: item_ns,
        grain: 0,
        max_slots: 0,
        flags: 0,
        epilogue: None,
    };
    let region = Region { body, panic: Mutex::new(None) };
    let status = start(items, &raw const hint, Some(run_piece::<F>), (&raw const region).cast_mut().cast());
    if let Some(payload) = region.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
        resume_unwind(payload);
    }
    check(status)
}

/// As `run`, over chunks of a slice.
pub(crate) fn run_chunks<T: Send>(
    data: &mut [T],
    chunk_len: usize,
    body: impl Fn(usize, &mut [T]) + Sync,
    run: impl FnOnce(usize, &(dyn Fn(Range<usize>, usize) + Sync)) -> Result<()>,
) -> Result<()> {
    /// The address of a slice whose chunks several threads work on.
    struct Shared<T>(*mut T);
    // SAFETY: each chunk is given to one thread, and its elements are Send.
    unsafe impl<T: Send> Sync for Shared<T> {}
    impl<T> Shared<T> {
        fn at(&self, index: usize) -> *mut T {
            self.0.wrapping_add(index)
        }
    }

    if chunk_len == 0 {
        return Err(Error::new(ErrorKind::InvalidArgument, "the length of chunks is 0"));
    }
    let (len, shared) = (data.len(), Shared(data.as_mut_ptr()));
    run(len.div_ceil(chunk_len), &|chunks, _slot| {
        for chunk in chunks {
            let begin = chunk * chunk_len;
            // SAFETY: inside of `data`, which is borrowed until all pieces have returned; a chunk is in one piece.
            let part = unsafe { std::slice::from_raw_parts_mut(shared.at(begin), chunk_len.min(len - begin)) };
            body(chunk, part);
        }
    })
}

/// # Safety
/// `arg` is a `Region<F>` that is alive, and the piece lies in a range that came from a usize.
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
        Ok(()) => Status::WEIR_OK as i32,
        Err(payload) => {
            let mut first = region.panic.lock().unwrap_or_else(|e| e.into_inner());
            match *first {
                None => *first = Some(payload),
                Some(_) => drop(panic_text(payload)),
            }
            Status::WEIR_ABORTED as i32
        }
    }
}
