//! Options of pools, and the checks of their numbers.
#![forbid(unsafe_code)]

use super::costs::Cost;
use crate::base::{Error, Result};
use crate::sync::OnceLock;

/// Most threads of a reference pool.
pub const MAX_THREADS: usize = 256;
const DEFAULT_SPIN_NS: u64 = 20_000;
const MAX_SPIN_NS: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub struct ThreadPoolOptions {
    /// None = `default_num_threads`.
    pub num_threads: Option<usize>,
    pub spin_ns: u64,
    /// Whether a host's pool is in checking mode.
    pub checking: bool,
    /// The cost of the pool's threads; `None` = measure it.
    pub costs: Option<Cost>,
}

impl Default for ThreadPoolOptions {
    fn default() -> Self {
        ThreadPoolOptions { num_threads: None, spin_ns: DEFAULT_SPIN_NS, checking: false, costs: None }
    }
}

/// 0 stands for the default, and is the caller's to tell apart.
pub fn checked_num_threads(what: &str, threads: i32) -> Result<usize> {
    usize::try_from(threads)
        .ok()
        .filter(|n| (1..=MAX_THREADS).contains(n))
        .ok_or_else(|| Error::invalid(format!("{what} is {threads}, expected 0 to {MAX_THREADS}")))
}

pub fn checked_spin_ns(what: &str, spin_ns: u64) -> Result<u64> {
    if spin_ns > MAX_SPIN_NS {
        return Err(Error::invalid(format!("{what} is {spin_ns}, expected at most {MAX_SPIN_NS} (one second)")));
    }
    Ok(spin_ns)
}

/// WEIR_NUM_THREADS, read once; else the number that affinity mask and cgroup limit allow (std reads both).
pub fn default_num_threads() -> Result<usize> {
    static VARIABLE: OnceLock<Option<String>> = OnceLock::new();
    if let Some(text) = VARIABLE.get_or_init(|| std::env::var("WEIR_NUM_THREADS").ok()) {
        return text.trim().parse().ok().and_then(|n| checked_num_threads("", n).ok()).ok_or_else(|| {
            Error::invalid(format!(
                "the environment variable WEIR_NUM_THREADS is '{text}', expected 1 to {MAX_THREADS}"
            ))
        });
    }
    Ok(num_processors().min(MAX_THREADS))
}

/// Processors that this process may use. Cached: asking takes some twenty system calls.
pub fn num_processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
