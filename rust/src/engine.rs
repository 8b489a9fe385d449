//! Engines: devices, and the means to compute on them. Domains: whose engines they are.

use crate::error::{check, name, text_of};
use crate::handle::{handle, shared_handle};
use crate::{ErrorKind, Result, ThreadPool};
use std::ffi::c_char;
use std::time::Duration;
use weir_core::abi::{
    WEIR_TIMEOUT_INFINITE, weir_domain, weir_engine, weir_engine_attr, weir_engine_info, weir_engine_kind_value as K,
    weir_thread_mode_value as M,
};
use weir_core::ffi;

/// The kind of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineKind {
    /// The host's processors.
    Cpu,
    /// NVIDIA GPUs, through the CUDA driver.
    Cuda,
    /// A kind that a plug-in has registered, by its number.
    Plugin(u32),
}

impl EngineKind {
    pub(crate) fn code(self) -> u32 {
        match self {
            EngineKind::Cpu => K::WEIR_ENGINE_CPU as u32,
            EngineKind::Cuda => K::WEIR_ENGINE_CUDA as u32,
            EngineKind::Plugin(kind) => kind,
        }
    }

    fn of(code: u32) -> EngineKind {
        let known = [EngineKind::Cpu, EngineKind::Cuda];
        known.into_iter().find(|kind| kind.code() == code).unwrap_or(EngineKind::Plugin(code))
    }

    /// The kind of this name: `cpu`, `cuda`, or one that a plug-in has registered.
    pub fn from_name(name: &str) -> Result<EngineKind> {
        let (text, mut kind) = (crate::error::name(name)?, 0);
        // SAFETY: a text that lives during the call.
        check(unsafe { ffi::weir_engine_kind_from_name(text.as_ptr(), &raw mut kind) })?;
        Ok(EngineKind::of(kind))
    }

    /// How many devices of this kind the machine offers; 0 of a kind that it or this build lacks.
    pub fn count(self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the argument is a place for the number.
        check(unsafe { ffi::weir_engine_count(self.code(), &raw mut count) })?;
        Ok(count as usize)
    }
}

/// The source of an engine's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// The pool that the engine was given, else the calling thread.
    Lent,
    /// A built-in pool for this engine alone, of so many threads; 0 = one for each processor.
    Private(u32),
    /// A built-in pool that all engines of the kind share, of so many threads.
    Kind(u32),
    /// The calling thread, whatever the environment says.
    Caller,
}

shared_handle! {
    /// A device that runs kernels and owns memory. All that is on it keeps it alive.
    ///
    /// ```
    /// use weir::{Engine, EngineKind, ThreadPool, Threads};
    ///
    /// let plain = Engine::cpu()?; // works in the calling thread
    /// let shared = Engine::builder(EngineKind::Cpu).threadpool(&ThreadPool::builtin(2)?).name("mixer").build()?;
    /// let own = Engine::builder(EngineKind::Cpu).threads(Threads::Private(2)).build()?;
    /// assert_eq!(shared.name()?, "mixer");
    /// assert_eq!(own.threadpool()?.unwrap().num_threads()?, 2);
    /// # Ok::<(), weir::Error>(())
    /// ```
    Engine(weir_engine), ffi::weir_engine_retain, ffi::weir_engine_release
}

impl Engine {
    /// An engine of the host's processors. Without settings it works in the calling thread, unless `WEIR_THREAD_MODE`
    /// in the environment says otherwise.
    pub fn cpu() -> Result<Engine> {
        Engine::builder(EngineKind::Cpu).build()
    }

    /// An engine on CUDA device `index`. Blocks as long as the driver takes to open it.
    pub fn cuda(index: u32) -> Result<Engine> {
        Engine::builder(EngineKind::Cuda).index(index).build()
    }

    /// Settings for an engine of a kind.
    pub fn builder(kind: EngineKind) -> EngineBuilder {
        EngineBuilder {
            kind,
            index: 0,
            name: String::new(),
            threadpool: None,
            threads: None,
            domain: None,
            max_streams: None,
        }
    }

    /// The name that texts have for the engine: `cpu:0`, `mixer`, `torch/mixer`.
    pub fn name(&self) -> Result<String> {
        text(|buffer, capacity, length| {
            // SAFETY: a live handle, and a buffer of that capacity.
            unsafe { ffi::weir_engine_get_name(self.raw(), buffer, capacity, length) }
        })
    }

    /// Facts about the engine's device.
    pub fn info(&self) -> Result<EngineInfo> {
        let mut info = weir_engine_info {
            struct_size: size_of::<weir_engine_info>(),
            kind: 0,
            index: 0,
            num_processors: 0,
            reserved: 0,
            alignment: 0,
            name: [0; _],
            thread_mode: 0,
            thread_count: 0,
            memory_bytes: 0,
        };
        // SAFETY: a live handle, and a struct of this size.
        check(unsafe { ffi::weir_engine_get_info(self.raw(), &raw mut info) })?;
        Ok(EngineInfo {
            kind: EngineKind::of(info.kind),
            index: info.index,
            device: text_of(&info.name),
            num_processors: info.num_processors as usize,
            alignment: usize::try_from(info.alignment).unwrap_or(usize::MAX),
            memory_bytes: Some(info.memory_bytes).filter(|&bytes| bytes > 0),
        })
    }

    /// The pool that the engine's work runs on; `None` is the calling thread.
    pub fn threadpool(&self) -> Result<Option<ThreadPool>> {
        let mut pool = std::ptr::null_mut();
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_engine_get_threadpool(self.raw(), &raw mut pool) })?;
        if pool.is_null() {
            return Ok(None);
        }
        // SAFETY: the engine lends its pool, which gets one more reference for this value.
        let retained = unsafe { check(ffi::weir_threadpool_retain(pool)).and_then(|()| ThreadPool::from_raw(pool)) };
        retained.map(Some)
    }

    /// Waits until all work is done that was queued on the engine's streams before this call, and gives the engine's
    /// first late failure that this call has not given yet.
    ///
    /// Blocks, and does queued work meanwhile. Refused with `FailedPrecondition` inside of what weir has called.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_engine_synchronize(self.raw(), WEIR_TIMEOUT_INFINITE) })
    }

    /// Whether the host can access the engine's memory.
    pub(crate) fn is_host(&self) -> Result<bool> {
        Ok(self.info()?.kind == EngineKind::Cpu)
    }

    /// One more reference to an engine that weir lends.
    ///
    /// # Safety
    /// `raw` is alive.
    pub(crate) unsafe fn borrowed(raw: *mut weir_engine) -> Result<Engine> {
        // SAFETY: as demanded of the caller.
        unsafe { check(ffi::weir_engine_retain(raw)).and_then(|()| Engine::from_raw(raw)) }
    }
}

/// Facts about an engine's device, from [`Engine::info`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineInfo {
    /// The kind of engine.
    pub kind: EngineKind,
    /// The number among the devices of that kind.
    pub index: u32,
    /// The device's name.
    pub device: String,
    /// Processors that this process may use.
    pub num_processors: usize,
    /// Alignment of the memory that the engine allocates, in bytes.
    pub alignment: usize,
    /// The device's memory, if it is known.
    pub memory_bytes: Option<u64>,
}

handle!(Attr(weir_engine_attr), ffi::weir_engine_attr_destroy);

/// Settings for an engine, from [`Engine::builder`]. All have a default.
#[derive(Clone, Debug)]
#[must_use = "an engine is made by `build`"]
pub struct EngineBuilder {
    kind: EngineKind,
    index: u32,
    name: String,
    threadpool: Option<ThreadPool>,
    threads: Option<Threads>,
    domain: Option<Domain>,
    max_streams: Option<u32>,
}

impl EngineBuilder {
    /// The device's number among those of its kind; 0 is the default.
    pub fn index(mut self, index: u32) -> Self {
        self.index = index;
        self
    }

    /// A name for texts: 1 to 24 letters, digits, `.`, `_` and `-`.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The pool that the engine's work runs on.
    pub fn threadpool(mut self, pool: &ThreadPool) -> Self {
        self.threadpool = Some(pool.clone());
        self
    }

    /// The source of the engine's threads. A pool goes with [`Threads::Lent`] alone.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The domain that the engine is in.
    pub fn domain(mut self, domain: &Domain) -> Self {
        self.domain = Some(domain.clone());
        self
    }

    /// The most streams of a device over which one run of a program spreads its work; 0 = weir chooses. 1 is the
    /// default.
    pub fn max_streams(mut self, count: u32) -> Self {
        self.max_streams = Some(count);
        self
    }

    /// Makes the engine. Blocks only to start threads, or to open a device.
    pub fn build(self) -> Result<Engine> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the argument is a place for the handle.
        check(unsafe { ffi::weir_engine_attr_create(self.kind.code(), &raw mut raw) })?;
        // SAFETY: a new object of this function's.
        let attr = unsafe { Attr::from_raw(raw) }?;
        let text = name(&self.name)?;
        let (mode, count) = match self.threads {
            None => (None, 0),
            Some(Threads::Lent) => (Some(M::WEIR_THREAD_MODE_GLOBAL), 0),
            Some(Threads::Private(count)) => (Some(M::WEIR_THREAD_MODE_PRIVATE), count),
            Some(Threads::Kind(count)) => (Some(M::WEIR_THREAD_MODE_KIND), count),
            Some(Threads::Caller) => (Some(M::WEIR_THREAD_MODE_CALLER), 0),
        };
        // SAFETY: live handles, and a text that lives during the call.
        unsafe {
            check(ffi::weir_engine_attr_set_name(attr.raw(), text.as_ptr()))?;
            if let Some(pool) = &self.threadpool {
                check(ffi::weir_engine_attr_set_threadpool(attr.raw(), pool.raw()))?;
            }
            if let Some(mode) = mode {
                check(ffi::weir_engine_attr_set_thread_mode(attr.raw(), mode as u32))?;
            }
            if count > 0 {
                check(ffi::weir_engine_attr_set_thread_count(attr.raw(), count))?;
            }
            if let Some(domain) = &self.domain {
                check(ffi::weir_engine_attr_set_domain(attr.raw(), domain.raw()))?;
            }
            if let Some(count) = self.max_streams {
                check(ffi::weir_engine_attr_set_max_streams(attr.raw(), count))?;
            }
            let mut engine = std::ptr::null_mut();
            check(ffi::weir_engine_create(self.kind.code(), self.index, attr.raw(), &raw mut engine))?;
            Engine::from_raw(engine)
        }
    }
}

shared_handle! {
    /// One user of weir among others in the process: engines with waits and late failures of their own. Engines that
    /// are in none share the default one.
    Domain(weir_domain), ffi::weir_domain_retain, ffi::weir_domain_release
}

impl Domain {
    /// A domain. `name` is for texts: 1 to 24 letters, digits, `.`, `_` and `-`.
    pub fn new(name: &str) -> Result<Domain> {
        let (text, mut raw) = (crate::error::name(name)?, std::ptr::null_mut());
        // SAFETY: a text that lives during the call.
        check(unsafe { ffi::weir_domain_create(text.as_ptr(), &raw mut raw) })?;
        // SAFETY: a new reference.
        unsafe { Domain::from_raw(raw) }
    }

    /// The name, which gets a number if another domain has it: `torch#2`.
    pub fn name(&self) -> Result<String> {
        text(|buffer, capacity, length| {
            // SAFETY: a live handle, and a buffer of that capacity.
            unsafe { ffi::weir_domain_get_name(self.raw(), buffer, capacity, length) }
        })
    }

    /// As [`sync_devices`], for the streams of the domain's engines.
    pub fn synchronize(&self, timeout: Option<Duration>) -> Result<()> {
        let none = std::ptr::null_mut();
        // SAFETY: a live handle, and no room for the single results.
        check(unsafe { ffi::weir_sync_domain(self.raw(), timeout_ns(timeout), none, 0, std::ptr::null_mut()) })
    }
}

/// Waits until all work is done that was queued before this call, on every stream of every engine, and for nothing
/// later. Gives the late failures of engines that this call has not given yet, as one.
///
/// Blocks until then or until the time has passed, and does queued work meanwhile. Refused with `FailedPrecondition`
/// inside of what weir has called, such as a kernel: the caller is a part of what it would wait for.
pub fn sync_devices(timeout: Option<Duration>) -> Result<()> {
    let (none, no_count) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: no room for the single results.
    check(unsafe { ffi::weir_sync_devices(timeout_ns(timeout), none, 0, no_count) })
}

/// A time-out for the C interface. None is for ever.
pub(crate) fn timeout_ns(timeout: Option<Duration>) -> u64 {
    let longest = WEIR_TIMEOUT_INFINITE - 1;
    timeout.map_or(WEIR_TIMEOUT_INFINITE, |time| u64::try_from(time.as_nanos()).unwrap_or(longest).min(longest))
}

/// The text that a call of the C interface copies out. It may have grown since its length was asked for.
pub(crate) fn text(call: impl Fn(*mut c_char, usize, *mut usize) -> i32) -> Result<String> {
    let mut length = 0;
    check(call(std::ptr::null_mut(), 0, &raw mut length))?;
    loop {
        let mut buffer = vec![0 as c_char; length + 1];
        match check(call(buffer.as_mut_ptr(), buffer.len(), &raw mut length)) {
            Ok(()) => return Ok(text_of(&buffer)),
            Err(error) if error.kind() == ErrorKind::OutOfRange && length >= buffer.len() => {}
            Err(error) => return Err(error),
        }
    }
}
