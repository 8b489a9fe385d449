//! Built-in operations on a device: the launches that `operators` plans, and the library's own loaded kernels.
//!
//! A kernel is loaded into a context at its first launch, alone: the driver compiles no unused kernel. It lives as long
//! as the device and its users.
#![forbid(unsafe_code)]

use super::blas::{Plans, Prepared, Products};
use super::context::{Context, Handle};
use super::grid::{Arguments, LaunchGrid};
use super::images::{ENTRIES, KernelEntry};
use super::inbox::{FaultTicket, FaultTickets};
use super::module::Module;
use super::operators::operator;
use super::piece::CallPart;
use super::plan::{KernelLaunch, Operator, Params};
use super::table::CUfunction;
use crate::base::Result;
use crate::device::{Launch, Recipe};
use crate::sync::{Mutex, OnceLock};
use std::sync::Arc;

/// The library's kernels that were launched in a context so far.
#[derive(Debug)]
pub(super) struct Kernels {
    context: Arc<Context>,
    /// By the numbers of their entries.
    loaded: Vec<OnceLock<Loaded>>,
    /// Held while loading: others wait, rather than compile the same kernel again.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct Loaded {
    function: Handle<CUfunction>,
    _module: Module,
}

impl Kernels {
    pub(super) fn new(context: &Arc<Context>) -> Arc<Kernels> {
        let loaded = ENTRIES.iter().map(|_| OnceLock::new()).collect();
        Arc::new(Kernels { context: Arc::clone(context), loaded, turn: Mutex::default() })
    }

    #[inline]
    fn function(&self, entry: &'static KernelEntry) -> Result<Handle<CUfunction>> {
        match self.loaded[entry.index].get() {
            Some(loaded) => Ok(loaded.function),
            None => self.load(entry),
        }
    }

    #[cold]
    fn load(&self, entry: &'static KernelEntry) -> Result<Handle<CUfunction>> {
        let _turn = self.turn.lock();
        if let Some(loaded) = self.loaded[entry.index].get() {
            return Ok(loaded.function);
        }
        let module = Module::load_ptx(&self.context, entry.ptx()?, &format!("kernel {:?}", entry.name))?;
        let function = module.function(entry.name)?;
        Ok(self.loaded[entry.index].get_or_init(|| Loaded { function, _module: module }).function)
    }
}

/// An operation.
#[derive(Debug)]
pub(super) struct CudaBuiltin {
    operator: Box<dyn Operator>,
    kernels: Arc<Kernels>,
    /// Products done by a library.
    products: Option<Plans>,
}

impl CudaBuiltin {
    pub(super) fn new(kernels: &Arc<Kernels>, products: &Products, recipe: &Recipe<'_>) -> Result<CudaBuiltin> {
        let operator = operator(recipe)?;
        let blas = if operator.has_products() { products.get()? } else { None };
        Ok(CudaBuiltin { operator, kernels: Arc::clone(kernels), products: blas.as_ref().map(Plans::new) })
    }

    pub(super) fn in_place(&self) -> bool {
        self.operator.in_place()
    }

    /// Passes a call's parts to `issue`, in order: see `CudaKernel::launches`.
    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        tickets: &dyn FaultTickets,
        takes_products: bool,
        issue: &mut dyn FnMut(CallPart<'_>) -> Result<()>,
    ) -> Result<()> {
        let (inputs, outputs) = (launch.inputs, launch.outputs);
        let issue_kernel = |kernel: &KernelLaunch<'_>, issue: &mut dyn FnMut(CallPart<'_>) -> Result<()>| {
            self.with_grid(launch.name, kernel, tickets, |grid, arguments| issue(CallPart::Grid(grid, arguments)))
        };
        if self.products.is_some()
            && takes_products
            && self.product(launch, &mut |prepared| issue(CallPart::Product(prepared)))?
        {
            return self.operator.after_product(outputs, &mut |kernel| issue_kernel(kernel, issue));
        }
        self.operator.launches(inputs, outputs, &mut |kernel| issue_kernel(kernel, issue))
    }

    /// Passes the product that a call begins with to `issue`, if a library does it.
    pub(super) fn product(
        &self,
        launch: &Launch<'_>,
        issue: &mut dyn FnMut(&Prepared<'_>) -> Result<()>,
    ) -> Result<bool> {
        let Some(plans) = &self.products else { return Ok(false) };
        let Some(product) = self.operator.product(launch.inputs, launch.outputs)? else { return Ok(false) };
        Ok(plans.issue(&product, issue)?.is_some())
    }

    /// A launch as the driver takes it.
    fn with_grid(
        &self,
        name: &str,
        kernel: &KernelLaunch<'_>,
        tickets: &dyn FaultTickets,
        take: impl FnOnce(&LaunchGrid, Arguments<'_>) -> Result<()>,
    ) -> Result<()> {
        let function = self.kernels.function(kernel.entry)?;
        let (grid, block, shared_bytes) = (kernel.grid, kernel.block, kernel.shared_bytes);
        let with_ticket;
        let params = match &kernel.check {
            None => kernel.params,
            Some(check) => {
                let FaultTicket { address, launch, site } = tickets.ticket(name, check)?;
                with_ticket = Params::checked(kernel, address as u64, launch, site);
                with_ticket.bytes()
            }
        };
        // A kernel's one parameter is a struct, which the driver copies and does not write.
        let place = [params.as_ptr().cast_mut().cast()];
        let arguments = Arguments { places: &place, storage: params };
        take(&LaunchGrid { function: function.0, grid, block, shared_bytes }, arguments)
    }
}
