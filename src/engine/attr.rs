//! Settings of engines and streams, and options of kernels.
#![forbid(unsafe_code)]

use crate::abi::{weir_memory_mode, weir_memory_mode_value, weir_thread_mode, weir_thread_mode_value};
use crate::base::object::tag;
use crate::base::{Error, Kind, Ref, Result, live, with_article};
use crate::device::{DeviceKind, Waiting};
use crate::memory::HostAllocator;
use crate::stream::{Domain, check_name};
use crate::threadpool::{ThreadPool, ThreadPoolOptions, checked_spin_ns};
use std::sync::Arc;

/// Most streams of an engine that a program's work may be spread over.
const MAX_STREAMS: u32 = 64;

/// How an engine's memory is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMode {
    Pooled,
    Direct,
}

impl MemoryMode {
    const ALL: [(MemoryMode, weir_memory_mode_value, &str); 2] = [
        (MemoryMode::Pooled, weir_memory_mode_value::WEIR_MEMORY_MODE_POOLED, "pooled"),
        (MemoryMode::Direct, weir_memory_mode_value::WEIR_MEMORY_MODE_DIRECT, "direct"),
    ];

    pub fn value(self) -> weir_memory_mode {
        MemoryMode::ALL.iter().find(|row| row.0 == self).map_or(0, |row| row.1 as weir_memory_mode)
    }

    pub fn from_value(value: weir_memory_mode) -> Result<MemoryMode> {
        let mode = MemoryMode::ALL.iter().find(|row| row.1 as weir_memory_mode == value).map(|row| row.0);
        mode.ok_or_else(|| Error::invalid(format!("mode is {value}, which is no memory mode")))
    }

    pub(super) fn from_name(name: &str) -> Option<MemoryMode> {
        MemoryMode::ALL.iter().find(|row| row.2.eq_ignore_ascii_case(name)).map(|row| row.0)
    }
}

/// The source of an engine's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadMode {
    Global,
    Private,
    Kind,
    Caller,
}

impl ThreadMode {
    const ALL: [ThreadMode; 4] = [ThreadMode::Global, ThreadMode::Private, ThreadMode::Kind, ThreadMode::Caller];

    pub fn value(self) -> weir_thread_mode {
        let value = match self {
            ThreadMode::Global => weir_thread_mode_value::WEIR_THREAD_MODE_GLOBAL,
            ThreadMode::Private => weir_thread_mode_value::WEIR_THREAD_MODE_PRIVATE,
            ThreadMode::Kind => weir_thread_mode_value::WEIR_THREAD_MODE_KIND,
            ThreadMode::Caller => weir_thread_mode_value::WEIR_THREAD_MODE_CALLER,
        };
        value as weir_thread_mode
    }

    pub fn from_value(value: weir_thread_mode) -> Result<ThreadMode> {
        let mode = ThreadMode::ALL.into_iter().find(|mode| mode.value() == value);
        mode.ok_or_else(|| Error::invalid(format!("mode is {value}, which is no thread mode")))
    }

    pub fn name(self) -> &'static str {
        match self {
            ThreadMode::Global => "global",
            ThreadMode::Private => "private",
            ThreadMode::Kind => "kind",
            ThreadMode::Caller => "caller",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<ThreadMode> {
        ThreadMode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }
}

#[derive(Clone, Debug)]
pub struct EngineAttr {
    pub kind: DeviceKind,
    /// For host functions, on a device's engine.
    threadpool: Option<Ref<ThreadPool>>,
    /// `None` = the environment may decide, in both.
    thread_mode: Option<ThreadMode>,
    thread_count: Option<usize>,
    /// The device's own settings, opaque to the library.
    pub device_settings: Option<Arc<Vec<u8>>>,
    /// How threads wait for the device; `None` = its default.
    pub(super) waiting: Option<Waiting>,
    /// The native handle of a context of the host's to use.
    pub context: Option<u64>,
    /// Streams that a program's work may be spread over; 0 = as many as it can use.
    pub max_streams: usize,
    allocator: Option<Ref<HostAllocator>>,
    /// None = no limit.
    pub memory_limit: Option<u64>,
    /// For pinned host memory for copies; `None` = no limit.
    pub(super) pinned_limit: Option<u64>,
    /// None = the environment may decide.
    pub memory_mode: Option<MemoryMode>,
    /// None = the default domain.
    pub domain: Option<Ref<Domain>>,
    /// "" = the device's, "cpu:0".
    name: String,
}

#[derive(Clone, Debug)]
pub struct StreamAttr {
    pub kind: DeviceKind,
    pub asynchronous: bool,
    pub spin_ns: u64,
    pub priority: i32,
    pub name: String,
    /// The native handle of a stream of the host's.
    pub wrapped: Option<u64>,
    threadpool: Option<Ref<ThreadPool>>,
}

#[derive(Clone, Debug, Default)]
pub struct KernelOptions {
    /// "" = the operation's name.
    pub name: String,
    /// 0 = the kernel's own estimate.
    pub cost_ns: u64,
}

/// The number of threads can be chosen for CPU engines only: another engine has one at most.
fn check_cpu(kind: DeviceKind) -> Result<()> {
    match kind {
        DeviceKind::CPU => Ok(()),
        other => Err(Error::precondition(format!(
            "attr is for {} engine, only a cpu engine takes a number of threads",
            with_article(other.name())
        ))),
    }
}

impl EngineAttr {
    pub fn new(kind: DeviceKind) -> EngineAttr {
        EngineAttr {
            kind,
            threadpool: None,
            thread_mode: None,
            thread_count: None,
            device_settings: None,
            waiting: None,
            context: None,
            max_streams: 1,
            allocator: None,
            memory_limit: None,
            pinned_limit: None,
            memory_mode: None,
            domain: None,
            name: String::new(),
        }
    }

    /// "" = the device's.
    pub fn set_name(&mut self, name: &str) -> Result<()> {
        if !name.is_empty() {
            check_name(name)?;
        }
        name.clone_into(&mut self.name);
        Ok(())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// None = the device's own memory.
    pub fn set_allocator(&mut self, allocator: Option<Ref<HostAllocator>>) {
        self.allocator = allocator;
    }

    pub fn allocator(&self) -> Option<&Ref<HostAllocator>> {
        self.allocator.as_ref()
    }

    /// Most bytes of pinned host memory for copies; `None` = no limit.
    pub fn set_pinned_limit(&mut self, limit: Option<u64>) -> Result<()> {
        self.check_device("whose memory weir_engine_attr_set_memory_limit bounds")?;
        self.pinned_limit = limit;
        Ok(())
    }

    pub fn pinned_limit(&self) -> Result<Option<u64>> {
        self.check_device("whose memory weir_engine_attr_set_memory_limit bounds")?;
        Ok(self.pinned_limit)
    }

    /// How threads wait for the device; `None` = its default.
    pub fn set_waiting(&mut self, waiting: Option<Waiting>) -> Result<()> {
        self.check_device("which has no device to wait for")?;
        if let Some(Waiting { spin_ns, .. }) = waiting {
            checked_spin_ns("spin_ns", spin_ns)?;
        }
        self.waiting = waiting;
        Ok(())
    }

    pub fn waiting(&self) -> Result<Option<Waiting>> {
        self.check_device("which has no device to wait for")?;
        Ok(self.waiting)
    }

    /// Refuses CPU engines: their threads and memory belong to the host.
    fn check_device(&self, why: &str) -> Result<()> {
        match self.kind {
            DeviceKind::CPU => Err(Error::precondition(format!("attr is for a cpu engine, {why}"))),
            _ => Ok(()),
        }
    }

    pub fn set_threadpool(&mut self, pool: Option<Ref<ThreadPool>>) {
        self.threadpool = pool;
    }

    pub fn threadpool(&self) -> Option<&Ref<ThreadPool>> {
        self.threadpool.as_ref()
    }

    /// 0 = as the work asks for.
    pub fn set_max_streams(&mut self, count: u32) -> Result<()> {
        if count > MAX_STREAMS {
            return Err(Error::invalid(format!("count is {count}, expected 0 to {MAX_STREAMS}")));
        }
        self.max_streams = count as usize;
        Ok(())
    }

    pub fn set_thread_mode(&mut self, mode: ThreadMode) -> Result<()> {
        self.thread_mode = Some(mode);
        Ok(())
    }

    pub fn thread_mode(&self) -> Option<ThreadMode> {
        self.thread_mode
    }

    /// 0 = the width that built-in pools have by default.
    pub fn set_thread_count(&mut self, count: usize) -> Result<()> {
        check_cpu(self.kind)?;
        self.thread_count = Some(count);
        Ok(())
    }

    pub fn thread_count(&self) -> Result<Option<usize>> {
        check_cpu(self.kind)?;
        Ok(self.thread_count)
    }
}

impl StreamAttr {
    pub fn new(kind: DeviceKind) -> StreamAttr {
        StreamAttr {
            kind,
            asynchronous: false,
            spin_ns: ThreadPoolOptions::default().spin_ns,
            priority: 0,
            name: String::new(),
            wrapped: None,
            threadpool: None,
        }
    }

    pub fn set_threadpool(&mut self, pool: Option<Ref<ThreadPool>>) {
        self.threadpool = pool;
    }

    pub fn threadpool(&self) -> Option<&Ref<ThreadPool>> {
        self.threadpool.as_ref()
    }
}

impl Kind for EngineAttr {
    const TAG: u32 = tag::ENGINE_ATTR;
    const NAME: &'static str = "engine_attr";
    const COUNTER: live::Counter = live::Counter::Attrs;
}

impl Kind for StreamAttr {
    const TAG: u32 = tag::STREAM_ATTR;
    const NAME: &'static str = "stream_attr";
    const COUNTER: live::Counter = live::Counter::Attrs;
}
