//! Built-in operations on a device: the launches that `operators` asks for, and the library's own kernels, loaded.
//!
//! A kernel is loaded into a context when somebody first launches it, alone: the driver compiles nothing that nobody
//! uses. It stays as long as the device or something that may use it.
#![forbid(unsafe_code)]

use super::blas::{Plans, Prepared, Products};
use super::context::{Context, Handle};
use super::grid::{Arguments, Grid};
use super::images::{ENTRIES, Entry};
use super::inbox::{Ticket, Tickets};
use super::module::Module;
use super::operators::operator;
use super::piece::Piece;
use super::plan::{KernelLaunch, Operator, Params};
use super::table::CUfunction;
use crate::base::Result;
use crate::device::{Launch, Recipe};
use crate::sync::{Mutex, OnceLock};
use std::sync::Arc;

/// The library's kernels in a context, those that were launched so far.
#[derive(Debug)]
pub(super) struct Kernels {
    context: Arc<Context>,
    /// By the numbers of their entries.
    loaded: Vec<OnceLock<Loaded>>,
    /// Who loads: others wait, rather than to have the same compiled again.
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
    fn function(&self, entry: &'static Entry) -> Result<Handle<CUfunction>> {
        match self.loaded[entry.index].get() {
            Some(loaded) => Ok(loaded.function),
            None => self.load(entry),
        }
    }

    #[cold]
    fn load(&self, entry: &'static Entry) -> Result<Handle<CUfunction>> {
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
pub(super) struct Builtin {
    operator: Box<dyn Operator>,
    kernels: Arc<Kernels>,
    /// Those that a library does.
    products: Option<Plans>,
}

impl Builtin {
    pub(super) fn new(kernels: &Arc<Kernels>, products: &Products, recipe: &Recipe<'_>) -> Result<Builtin> {
        let operator = operator(recipe)?;
        let blas = if operator.has_products() { products.get()? } else { None };
        Ok(Builtin { operator, kernels: Arc::clone(kernels), products: blas.as_ref().map(Plans::new) })
    }

    pub(super) fn in_place(&self) -> bool {
        self.operator.in_place()
    }

    /// Has `issue` take what a call is made of, one after the other: see `CudaKernel::launches`.
    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        tickets: &dyn Tickets,
        takes_products: bool,
        issue: &mut dyn FnMut(Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        let (inputs, outputs) = (launch.inputs, launch.outputs);
        let issue_kernel = |kernel: &KernelLaunch<'_>, issue: &mut dyn FnMut(Piece<'_>) -> Result<()>| {
            self.with_grid(launch.name, kernel, tickets, |grid, arguments| issue(Piece::Grid(grid, arguments)))
        };
        if self.products.is_some()
            && takes_products
            && self.product(launch, &mut |prepared| issue(Piece::Product(prepared)))?
        {
            return self.operator.after_product(outputs, &mut |kernel| issue_kernel(kernel, issue));
        }
        self.operator.launches(inputs, outputs, &mut |kernel| issue_kernel(kernel, issue))
    }

    /// Has `issue` take the product that a call begins with, if it is one of a library's.
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
        tickets: &dyn Tickets,
        take: impl FnOnce(&Grid, Arguments<'_>) -> Result<()>,
    ) -> Result<()> {
        let function = self.kernels.function(kernel.entry)?;
        let (grid, block, shared_bytes) = (kernel.grid, kernel.block, kernel.shared_bytes);
        let with_ticket;
        let params = match &kernel.check {
            None => kernel.params,
            Some(check) => {
                let Ticket { address, launch, site } = tickets.ticket(name, check)?;
                with_ticket = Params::checked(kernel, address as u64, launch, site);
                with_ticket.bytes()
            }
        };
        // A kernel's one parameter is a struct, which the driver copies and does not write.
        let place = [params.as_ptr().cast_mut().cast()];
        let arguments = Arguments { places: &place, storage: params };
        take(&Grid { function: function.0, grid, block, shared_bytes }, arguments)
    }
}
