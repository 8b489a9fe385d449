//! Thread modes: where an engine's pool comes from.
//!
//! Threads are started only on request: by a setting of the engine, or, where that leaves it open, by the environment.
//! A pool that the host gave is never replaced.
//!
//! Accelerators' engines start no pool; in mode private or kind they have a thread, or as many as the environment says,
//! which launch their part of programs (`launcher`).
//!
//! The pools that engines of a kind share are held here by weak references: such a pool ends with the last engine
//! (stream, run) that uses it, and the next engine that asks starts another.
#![forbid(unsafe_code)]

use super::attr::{EngineAttr, ThreadMode};
use crate::base::{Error, Object, Ref, Result};
use crate::device::DeviceKind;
use crate::sync::thread::ThreadOrigin;
use crate::sync::{Global, OnceLock};
use crate::threadpool::{MAX_THREADS, ThreadPool, ThreadPoolOptions};
use std::ffi::OsString;
use std::sync::Weak;

pub fn checked_thread_count(count: u32) -> Result<usize> {
    usize::try_from(count)
        .ok()
        .filter(|&n| n <= MAX_THREADS)
        .ok_or_else(|| Error::invalid(format!("count is {count}, expected 0 to {MAX_THREADS}")))
}

/// A variable of the environment, read once per process.
pub(super) struct EnvVariable {
    name: &'static str,
    text: OnceLock<Option<OsString>>,
}

static MODE: EnvVariable = EnvVariable::new("WEIR_THREAD_MODE");
static COUNT: EnvVariable = EnvVariable::new("WEIR_THREAD_COUNT");

/// The same for accelerators: the launching threads' mode and number.
static DEVICE_MODE: EnvVariable = EnvVariable::new("WEIR_DEVICE_THREAD_MODE");
static DEVICE_COUNT: EnvVariable = EnvVariable::new("WEIR_DEVICE_THREAD_COUNT");

const MODES: &str = "global, private, kind or caller";

impl EnvVariable {
    pub const fn new(name: &'static str) -> EnvVariable {
        EnvVariable { name, text: OnceLock::new() }
    }

    /// Its parsed value, if it is set.
    pub fn get<T>(&self, parse: impl FnOnce(&str) -> Option<T>, expected: &str) -> Result<Option<T>> {
        let Some(text) = self.text.get_or_init(|| std::env::var_os(self.name)) else { return Ok(None) };
        let text = text.to_string_lossy();
        parse(text.trim()).map(Some).ok_or_else(|| {
            Error::invalid(format!("the environment variable {} is '{text}', expected {expected}", self.name))
        })
    }
}

/// Resolves where the engine's pool comes from, and starts it if need be; sets the resolved mode in `attr`.
pub(super) fn settle(attr: &mut EngineAttr, index: u32) -> Result<Option<Ref<ThreadPool>>> {
    let given = attr.threadpool().cloned();
    given.as_ref().map_or(Ok(()), |pool| pool.usable())?;
    // For accelerators the mode chooses the launching thread.
    if attr.kind != DeviceKind::CPU {
        if attr.thread_mode().is_none()
            && let Some(mode) = DEVICE_MODE.get(ThreadMode::from_name, MODES)?
        {
            attr.set_thread_mode(mode)?;
        }
        return Ok(given);
    }
    let mode = match (attr.thread_mode(), &given) {
        (Some(mode), Some(_)) if mode != ThreadMode::Global => {
            return Err(Error::invalid(format!(
                "attr has a thread pool and thread mode {}, a pool goes with mode global only",
                mode.name()
            )));
        }
        (Some(mode), _) => mode,
        (None, Some(_)) => ThreadMode::Global,
        (None, None) => MODE.get(ThreadMode::from_name, MODES)?.unwrap_or(ThreadMode::Global),
    };
    attr.set_thread_mode(mode)?;
    let pool = match mode {
        ThreadMode::Global => return Ok(given),
        ThreadMode::Caller => return Ok(None),
        ThreadMode::Private => private_pool(attr.kind, index, attr.thread_count()?)?,
        ThreadMode::Kind => kind_pool(attr.kind, attr.thread_count()?)?,
    };
    attr.set_thread_count(pool.num_threads())?;
    Ok(Some(pool))
}

/// Settings of a pool as wide as asked for; 0 = the width that built-in pools have by default.
fn pool_attr(asked: Option<usize>) -> Result<ThreadPoolOptions> {
    let count = match asked {
        Some(count) => count,
        None => {
            let parse = |text: &str| text.parse().ok().and_then(|count| checked_thread_count(count).ok());
            COUNT.get(parse, &format!("0 to {MAX_THREADS}"))?.unwrap_or(0)
        }
    };
    Ok(ThreadPoolOptions { num_threads: (count > 0).then_some(count), ..ThreadPoolOptions::default() })
}

/// The number of launching threads for an engine, or for all of its kind.
fn launchers() -> Result<Option<usize>> {
    let parse = |text: &str| text.parse().ok().filter(|count| (1..=MAX_THREADS).contains(count));
    Ok(Some(DEVICE_COUNT.get(parse, &format!("1 to {MAX_THREADS}"))?.unwrap_or(1)))
}

/// The threads that launch an accelerator's part of programs, if its mode asks for them.
pub(super) fn launcher(attr: &EngineAttr, index: u32) -> Result<Option<Ref<ThreadPool>>> {
    match attr.thread_mode() {
        Some(ThreadMode::Private) => private_pool(attr.kind, index, launchers()?).map(Some),
        Some(ThreadMode::Kind) => kind_pool(attr.kind, launchers()?).map(Some),
        _ => Ok(None),
    }
}

fn private_pool(kind: DeviceKind, index: u32, asked: Option<usize>) -> Result<Ref<ThreadPool>> {
    let kind = kind.name();
    let pool_attr = pool_attr(asked)?;
    let owner = format!("{kind}:{index}");
    ThreadPool::builtin_for(&pool_attr, ThreadOrigin::EnginePool, format!("weir-{kind}{index}"), owner)
        .map_err(|error| error.within(format_args!("the private pool of engine {kind}:{index}")))
}

fn kind_pool(of: DeviceKind, asked: Option<usize>) -> Result<Ref<ThreadPool>> {
    static POOLS: Global<Vec<(DeviceKind, Weak<Object<ThreadPool>>)>> = Global::new(Vec::new);
    let kind = of.name();
    // Held while the threads are started, so that two first engines share one pool. The pool is the library's own, so
    // no host code runs in here.
    let mut pools = POOLS.lock();
    let shared = pools.iter().find(|(known, _)| *known == of).and_then(|(_, pool)| pool.upgrade());
    if let Some(pool) = shared {
        return match (asked, pool.num_threads()) {
            (Some(count), threads) if count > 0 && count != threads => Err(Error::precondition(format!(
                "attr asks for {count} threads, the pool that {kind} engines share has {threads} already"
            ))),
            _ => Ok(pool),
        };
    }
    let pool_attr = pool_attr(asked)?;
    let pool =
        ThreadPool::builtin_for(&pool_attr, ThreadOrigin::KindPool, format!("weir-kind-{kind}"), kind.to_owned())
            .map_err(|error| error.within(format_args!("the pool that {kind} engines share")))?;
    pools.retain(|(known, _)| *known != of);
    pools.push((of, Ref::downgrade(&pool)));
    Ok(pool)
}
