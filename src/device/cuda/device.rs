//! A CUDA device behind the traits of this room.

use super::blas::Products;
use super::builtin::Kernels;
use super::capture::sweep;
use super::conditional::{Conditionals, has_control_flow};
use super::context::{Context, exposed};
use super::driver::Driver;
use super::event::{CudaEvent, Spare};
use super::facts::CudaFacts;
use super::graph::CudaGraph;
use super::host::CudaHostMemory;
use super::kernel::CudaKernel;
use super::memory::{ALIGNMENT, CudaMemory};
use super::node::GraphFunctions;
use super::stream::CudaStream;
use crate::base::{Error, Result};
use crate::device::{
    Accelerator, Device, DeviceEvent, DeviceKernel, DeviceKind, DeviceSettings, DeviceStream, DeviceStreamAttr,
    DeviceWatch, Executable, Factory, Pinning, Presence, Recipe, Recording, Then, label,
};
use std::any::Any;
use std::sync::Arc;

#[derive(Debug)]
pub struct CudaDevice {
    index: u32,
    facts: CudaFacts,
    /// The host's context that it was asked to use.
    given: Option<u64>,
    memory: Arc<CudaMemory>,
    host: CudaHostMemory,
    spare: Arc<Spare>,
    watch: DeviceWatch,
    kernels: Arc<Kernels>,
    conditionals: Conditionals,
    products: Products,
    context: Arc<Context>,
    _presence: Presence,
}

impl CudaDevice {
    fn open(driver: &'static Driver, index: u32, settings: &DeviceSettings) -> Result<CudaDevice> {
        let facts = CudaFacts::of(driver, driver.device(index)?)?;
        let context = Arc::new(Context::open(driver, index, settings.context)?);
        let memory = CudaMemory::new(&context)?;
        Ok(CudaDevice {
            index,
            products: Products::new(&context, &memory, &facts),
            facts,
            given: settings.context,
            memory,
            host: CudaHostMemory(Arc::clone(&context)),
            spare: Spare::new(&context),
            watch: DeviceWatch::new(format!("cuda:{index}")),
            kernels: Kernels::new(&context),
            conditionals: Conditionals::new(&context),
            context,
            _presence: Presence::default(),
        })
    }

    /// The device, if it is one of CUDA.
    pub fn of(device: &Arc<dyn Device>) -> Option<&CudaDevice> {
        (&**device as &dyn Any).downcast_ref()
    }

    pub fn facts(&self) -> &CudaFacts {
        &self.facts
    }

    /// Whether memory comes from a pool of the driver's.
    pub fn has_memory_pool(&self) -> bool {
        self.memory.is_pooled()
    }

    /// The library for matrix products: "cuBLASLt 13.0"; "" before the first one.
    pub fn products(&self) -> String {
        self.products.text()
    }

    /// Free bytes of its memory.
    pub fn free_bytes(&self) -> Result<u64> {
        let (mut free, mut all) = (0, 0);
        self.context.call("cuMemGetInfo", &"memory", |table| {
            // SAFETY: the driver's function, and places for the answers.
            unsafe { (table.mem_get_info)(&raw mut free, &raw mut all) }
        })?;
        Ok(free as u64)
    }
}

impl Device for CudaDevice {
    fn kind(&self) -> DeviceKind {
        DeviceKind::CUDA
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn name(&self) -> &str {
        &self.facts.name
    }

    fn alignment(&self) -> usize {
        ALIGNMENT
    }

    fn memory_bytes(&self) -> u64 {
        self.facts.memory_bytes
    }

    fn accelerator(&self) -> Option<&(dyn Accelerator + 'static)> {
        Some(self)
    }

    fn fits(&self, settings: &DeviceSettings) -> Result<()> {
        if settings.context == self.given {
            return Ok(());
        }
        let has =
            |context: Option<u64>| if context.is_some() { "a context of the host's" } else { "its primary context" };
        Err(Error::precondition(format!(
            "engine {} is in use with {}, and cannot be made with {} at the same time",
            label(self),
            has(self.given),
            if settings.context.is_some() && self.given.is_some() { "another one" } else { has(settings.context) }
        )))
    }

    fn is_lost(&self) -> bool {
        self.context.lost().is_some()
    }
}

impl Accelerator for CudaDevice {
    fn allocate(&self, bytes: usize, what: &str) -> Result<usize> {
        self.memory.allocate(bytes, what)
    }

    fn deallocate(&self, address: usize, _bytes: usize) {
        self.memory.deallocate(address as u64);
    }

    fn sweep(&self) {
        sweep();
    }

    fn can_trim(&self) -> bool {
        true
    }

    fn trim(&self, keep: usize) {
        sweep();
        self.memory.trim(keep);
    }

    fn stream(&self, attr: &DeviceStreamAttr<'_>) -> Result<Box<dyn DeviceStream>> {
        Ok(Box::new(CudaStream::new(&self.context, attr)?))
    }

    fn wrap_stream(&self, attr: &DeviceStreamAttr<'_>, handle: u64) -> Result<Box<dyn DeviceStream>> {
        Ok(Box::new(CudaStream::wrap(&self.context, attr, handle)?))
    }

    fn within(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _scope = self.context.scope()?;
        work()
    }

    fn event(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        Ok(Arc::new(CudaEvent::new(&self.spare, timing)?))
    }

    fn kernel(&self, recipe: &Recipe<'_>) -> Result<Arc<dyn DeviceKernel>> {
        Ok(Arc::new(CudaKernel::new(&self.context, &self.facts, &self.kernels, &self.products, recipe)?))
    }

    fn can_record(&self) -> bool {
        GraphFunctions::of(self.context.table()).is_some()
    }

    fn control_flow(&self) -> Result<()> {
        self.conditionals.get().map(|_| ())
    }

    fn record(&self, recording: &Recording<'_>) -> Result<Arc<dyn Executable>> {
        let control = if has_control_flow(recording) { Some(self.conditionals.get()?) } else { None };
        Ok(Arc::new(CudaGraph::new(&self.context, recording, control, self.memory.stream())?))
    }

    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        self.watch.add(event, then);
    }

    fn pinning(&self) -> Option<&dyn Pinning> {
        Some(&self.host)
    }

    fn is_peer(&self, peer: &dyn Accelerator) -> bool {
        let table = std::ptr::from_ref(self.context.table()).addr();
        peer.plugin_identity().is_some_and(|identity| identity[0] == table)
    }

    fn plugin_identity(&self) -> Option<[usize; 2]> {
        Some([std::ptr::from_ref(self.context.table()).addr(), exposed(self.context.raw()) as usize])
    }

    fn native_handle(&self) -> Result<u64> {
        Ok(exposed(self.context.raw()))
    }
}

/// Makes the devices of the driver.
pub struct CudaDevices;

impl Factory for CudaDevices {
    fn count(&self) -> u32 {
        Driver::get().map_or(0, Driver::count)
    }

    fn why_none(&self) -> Option<String> {
        match Driver::get() {
            Ok(driver) if driver.count() == 0 => {
                Some(format!("the driver, of CUDA {}, has no device for this process", driver.version_text()))
            }
            Ok(_) => None,
            Err(error) => Some(error.message().to_owned()),
        }
    }

    fn open(&self, index: u32, settings: &DeviceSettings) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(CudaDevice::open(Driver::get()?, index, settings)?))
    }
}
