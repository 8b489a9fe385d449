//! An engine: a device, settings, and an account of its queues.
#![forbid(unsafe_code)]

use super::attr::{EngineAttr, ThreadMode};
use super::memory;
use super::registered::Registrations;
use super::threads;
use crate::abi::{weir_engine_info, weir_memory_info, weir_pinning_flags as P};
use crate::base::object::tag;
use crate::base::text::json_string;
use crate::base::{Error, Kind, Object, Ref, Result, live, text, with_article};
use crate::device::{self, Accelerator, Device, DeviceKind, DeviceSettings, Pinning};
use crate::kernel::cache;
use crate::memory::Pool;
use crate::resource::Registry;
use crate::stream::{Account, sync_one};
use crate::sync::{Global, OnceLock, fork};
use crate::threadpool::{ThreadPool, num_processors};
use std::fmt::Write as _;
use std::ptr;
use std::sync::Arc;

#[derive(Debug)]
pub struct Engine {
    device: Arc<dyn Device>,
    attr: Object<EngineAttr>,
    pool: Option<Ref<ThreadPool>>,
    launcher: OnceLock<Ref<ThreadPool>>,
    account: Arc<Account>,
    memory: Arc<Pool>,
    /// Host memory for copies, on an accelerator.
    host_memory: Option<Arc<Pool>>,
    registrations: Arc<Registrations>,
    resources: Arc<Registry>,
    _cache: CacheUser,
}

impl Kind for Engine {
    const TAG: u32 = tag::ENGINE;
    const NAME: &'static str = "engine";
    const COUNTER: live::Counter = live::Counter::Engines;
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.account.close();
        self.resources.close();
    }
}

/// An engine's share of the kernel cache. The last engine drops all unused kernels, so that nothing is left when the
/// host has released everything.
#[derive(Debug)]
struct CacheUser;

static CACHE_USERS: Global<usize> = Global::new(|| 0);

impl CacheUser {
    fn new() -> CacheUser {
        *CACHE_USERS.lock() += 1;
        CacheUser
    }
}

impl Drop for CacheUser {
    fn drop(&mut self) {
        let left = {
            let mut users = CACHE_USERS.lock();
            // A forked child has not counted engines that it inherited.
            *users = users.saturating_sub(1);
            *users
        };
        if left == 0 {
            cache::CACHE.clear();
        }
    }
}

impl Engine {
    pub fn create(kind: DeviceKind, index: u32, attr: Option<&EngineAttr>) -> Result<Ref<Engine>> {
        let mut attr = attr.cloned().unwrap_or_else(|| EngineAttr::new(kind));
        if attr.kind != kind {
            return Err(Error::invalid(format!(
                "attr is for {} engine, kind asks for {} engine",
                with_article(attr.kind.name()),
                with_article(kind.name())
            )));
        }
        let settings = DeviceSettings { attributes: attr.device_settings.clone(), context: attr.context };
        let device = device::open(kind, index, &settings)?;
        let given = std::mem::replace(&mut attr.device_settings, device.settings());
        if given.is_some() && attr.device_settings.is_none() {
            return Err(device::unimplemented(&device::label(&*device), "settings of the device"));
        }
        fork::arm();
        let account = match attr.name() {
            "" => Account::open_engine(&device::label(&*device), attr.domain.as_ref(), false, attr.waiting),
            given => Account::open_engine(given, attr.domain.as_ref(), true, attr.waiting),
        };
        let pool = threads::settle(&mut attr, index)?;
        let memory = memory::open(&mut attr, &device, account.label())?;
        let host_memory = memory::open_host(&attr, &device, account.label());
        let resources = Registry::open(account.label().to_owned(), Arc::clone(&device));
        let (attr, registrations) = (Object::new(attr), Arc::default());
        Ok(Object::shared(Engine {
            device,
            attr,
            pool,
            launcher: OnceLock::new(),
            account,
            memory,
            host_memory,
            registrations,
            resources,
            _cache: CacheUser::new(),
        }))
    }

    pub fn kind(&self) -> DeviceKind {
        self.device.kind()
    }

    pub fn index(&self) -> u32 {
        self.device.index()
    }

    /// The device's identity, as numbers.
    pub fn place(&self) -> [u32; 2] {
        [self.kind().value(), self.index()]
    }

    /// "cpu:0"; with a domain "torch/cpu:0"; with a name of its own "encoder" or "torch/encoder".
    pub fn label(&self) -> String {
        self.account.name().to_owned()
    }

    /// The settings, with unset ones as resolved.
    pub fn attr(&self) -> &Object<EngineAttr> {
        &self.attr
    }

    /// The pool that streams without one of their own use.
    pub fn pool(&self) -> Option<&Ref<ThreadPool>> {
        self.pool.as_ref()
    }

    /// The thread that launches its part of programs, if not the thread that runs them.
    pub fn launcher(&self) -> Option<&Ref<ThreadPool>> {
        self.launcher.get()
    }

    /// Starts that thread if the engine's mode asks for one. If several threads race here, one result is kept.
    pub fn start_launcher(&self) -> Result<()> {
        if self.launcher.get().is_none()
            && let Some(made) = threads::launcher(&self.attr, self.index())?
        {
            let _ = self.launcher.set(made);
        }
        Ok(())
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The memory of tensors, scratch and the values of runs.
    pub fn memory(&self) -> &Arc<Pool> {
        &self.memory
    }

    /// Pinned host memory for direct copies of the device, if it supports that; on the CPU, the engine's memory.
    pub fn host_memory(&self) -> &Arc<Pool> {
        self.host_memory.as_ref().unwrap_or(&self.memory)
    }

    pub(super) fn registrations(&self) -> &Arc<Registrations> {
        &self.registrations
    }

    /// Streams that a program's work on the engine may be spread over; 0 = as many as it can use.
    pub fn max_streams(&self) -> usize {
        self.attr.max_streams
    }

    /// The accelerator; `None` on the host.
    pub fn accelerator(&self) -> Option<&(dyn Accelerator + 'static)> {
        self.device.accelerator()
    }

    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Its named resources.
    pub fn resources(&self) -> &Arc<Registry> {
        &self.resources
    }

    /// Whether the two share their memory.
    #[inline]
    pub fn is_same_device(&self, other: &Engine) -> bool {
        ptr::eq(self, other) || self.kind() == other.kind() && self.index() == other.index()
    }

    pub fn info(&self) -> weir_engine_info {
        let mode = self.attr.thread_mode().unwrap_or(ThreadMode::Global);
        let started = matches!(mode, ThreadMode::Private | ThreadMode::Kind);
        let of_host = self.accelerator().is_none();
        let pool = if of_host { self.pool().filter(|_| started) } else { self.launcher() };
        weir_engine_info {
            struct_size: 0,
            kind: self.kind().value(),
            index: self.index(),
            num_processors: num_processors() as u32,
            reserved: 0,
            alignment: self.memory.alignment() as u64,
            name: text::fixed(self.device.name()),
            thread_mode: mode.value(),
            thread_count: pool.map_or(0, |pool| pool.num_threads() as u32),
            memory_bytes: self.device.memory_bytes(),
        }
    }

    pub fn synchronize(&self, timeout_ns: u64) -> Result<()> {
        sync_one(&self.account, timeout_ns)
    }
}

impl Engine {
    pub(super) fn pinning(&self) -> Option<&dyn Pinning> {
        self.accelerator()?.pinning()
    }

    /// Bits of weir_pinning_flags.
    pub fn pinning_flags(&self) -> u32 {
        match self.pinning() {
            None => 0,
            Some(pinning) if pinning.can_register() => {
                P::WEIR_PINNING_ALLOCATES as u32 | P::WEIR_PINNING_REGISTERS as u32
            }
            Some(_) => P::WEIR_PINNING_ALLOCATES as u32,
        }
    }

    /// Registered bytes of foreign memory.
    pub fn registered_bytes(&self) -> usize {
        self.registrations().bytes()
    }

    /// Whether these bytes are pinned for direct copies of this engine's device.
    pub fn has_pinned(&self, address: usize, bytes: usize) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let is_own = |pool: &Arc<Pool>| pool.owns(address..end);
        self.pinning().is_some() && (is_own(self.host_memory()) || self.registrations().cover(address, bytes))
    }

    /// Tells a checking device that weir is about to write, or to read, memory that may be pinned.
    pub fn host_uses(&self, address: usize, bytes: usize, writes: bool, what: &str) {
        if let Some(pinning) = self.pinning() {
            pinning.host_uses(address, bytes, writes, what);
        }
    }

    /// The engine's memory, and its pinned host memory, as JSON.
    pub fn dump_memory(&self) -> Result<String> {
        let mut text = self.memory().dump()?;
        if self.accelerator().is_none() {
            return Ok(text);
        }
        text.truncate(text.trim_end().len() - 1);
        let _ = write!(text, ",\n\"host_memory\":{}", self.host_memory().dump()?.trim_end());
        text.push_str(",\n\"registered\":[");
        for (i, (address, bytes)) in self.registrations().0.lock().iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ =
                write!(text, "{comma}\n{{\"address\":{},\"bytes\":{bytes}}}", json_string(&format!("{address:#x}")));
        }
        text.push_str("]}\n");
        Ok(text)
    }

    /// Frees unused regions, of the engine's memory and of its pinned host memory, until at most `keep` bytes of each
    /// are left.
    pub fn trim(&self, keep: usize) {
        self.memory().trim(keep);
        self.host_memory().trim(keep);
    }

    pub fn reset_memory_peaks(&self) {
        self.memory().reset_peaks();
        self.host_memory().reset_peaks();
    }

    pub fn memory_info(&self) -> weir_memory_info {
        let usage = self.memory().usage();
        let limit = |pool: &Pool| if pool.limit() == usize::MAX { u64::MAX } else { pool.limit() as u64 };
        // On the CPU both are the same memory, not to be counted twice.
        let of_host = self.accelerator().map(|_| self.host_memory().usage()).unwrap_or_default();
        weir_memory_info {
            struct_size: 0,
            limit: limit(self.memory()),
            in_use: usage.in_use as u64,
            peak_in_use: usage.peak_in_use as u64,
            reserved: usage.reserved as u64,
            peak_reserved: usage.peak_reserved as u64,
            largest_free: usage.largest_free as u64,
            blocks: usage.blocks as u64,
            regions: usage.regions as u64,
            allocations: usage.allocations,
            region_allocations: usage.region_allocations,
            fragmentation: usage.fragmentation(),
            host_limit: limit(self.host_memory()),
            host_in_use: of_host.in_use as u64,
            host_peak_in_use: of_host.peak_in_use as u64,
            host_reserved: of_host.reserved as u64,
            registered: self.registered_bytes() as u64,
            pinning: self.pinning_flags(),
            reserved0: 0,
        }
    }
}
