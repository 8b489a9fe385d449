//! A rayon pool as a module for `weir_conformance`: `weir_conformance libconformance_rayon.so`.

use std::ffi::c_void;
use weir_threadpool::{Features, Pool, Task, vtable, weir_threadpool_vtable};

struct Rayon(rayon::ThreadPool);

impl Pool for Rayon {
    fn num_threads(&self) -> usize {
        self.0.current_num_threads()
    }

    fn schedule(&self, task: Task) -> Result<(), Task> {
        self.0.spawn(move || task.run());
        Ok(())
    }

    fn features(&self) -> Features {
        Features {
            auto_balancing: true,
            in_parallel: true,
            thread_index: true,
            help: true,
            max_threads: true,
            ..Features::default()
        }
    }

    fn thread_index(&self) -> Option<usize> {
        self.0.current_thread_index()
    }

    fn help(&self) -> bool {
        self.0.yield_now() == Some(rayon::Yield::Executed)
    }
}

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
    let (table, ctx) = vtable(Rayon(threads));
    // SAFETY: as demanded of the caller.
    unsafe {
        out_vtable.write(table);
        out_ctx.write(ctx);
    }
    0
}
