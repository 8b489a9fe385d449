//! weir on rayon's threads: the same pool does the program's own parallel work and weir's.
//!
//! The tests, and the module for `weir_conformance`, take `Rayon` from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir::threadpool::{Features, Pool, Task};

/// A rayon pool that the program shares with weir.
pub struct Rayon(pub Arc<rayon::ThreadPool>);

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build()?);
    let pool = weir::ThreadPool::new(Rayon(Arc::clone(&threads)))?;

    let sum = AtomicU64::new(0);
    pool.parallel_for(1000, 10_000.0, |items, _slot| {
        sum.fetch_add(items.map(|i| i as u64).sum::<u64>(), Relaxed);
    })?;
    println!("0 + 1 + ... + 999 = {} on {} threads of rayon", sum.load(Relaxed), pool.num_threads()?);

    // From inside of rayon's own work: weir sees that it is on a thread of the pool.
    let nested = AtomicU64::new(0);
    let inside = threads.install(|| {
        pool.parallel_for(1000, 10_000.0, |items, _slot| {
            nested.fetch_add(items.len() as u64, Relaxed);
        })?;
        pool.in_parallel()
    })?;
    println!("{} items from inside, in_parallel is {inside}", nested.load(Relaxed));
    if sum.load(Relaxed) != 499_500 || nested.load(Relaxed) != 1000 || !inside {
        return Err("these results are wrong".into());
    }
    Ok(())
}
