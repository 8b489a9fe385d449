//! A rayon pool as a module for `weir_conformance`: `weir_conformance libconformance_rayon.so`.

#[path = "rayon.rs"]
#[expect(dead_code, reason = "the program's own main")]
mod program;

use program::Rayon;
use std::ffi::c_void;
use std::sync::Arc;
use weir::threadpool::{vtable, weir_threadpool_vtable};

/// Gives the vtable and the context of a pool of three threads; 0 if that worked.
///
/// # Safety
/// Both pointers are for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_conformance_pool(
    out_vtable: *mut weir_threadpool_vtable,
    out_ctx: *mut *mut c_void,
) -> i32 {
    let Ok(threads) = rayon::ThreadPoolBuilder::new().num_threads(3).build() else { return 1 };
    let (table, ctx) = vtable(Rayon(Arc::new(threads)));
    // SAFETY: as demanded of the caller.
    unsafe {
        out_vtable.write(table);
        out_ctx.write(ctx);
    }
    0
}
