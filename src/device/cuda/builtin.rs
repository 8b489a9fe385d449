//! Built-in operations on a device: the library's own modules, loaded, and the launches that `operators` asks for.
//!
//! A module is loaded into a context when somebody first wants a kernel of it, and stays as long as the device or a
//! kernel that uses it.

use super::blas::{Plans, Prepared, Products};
use super::context::{Context, Handle};
use super::inbox::{Ticket, Tickets};
use super::kernel::Piece;
use super::module::Module;
use super::operators::operator;
use super::plan::{Entry, Image, KernelLaunch, Operator, Params};
use super::stream::{Arguments, Grid};
use super::table::CUfunction;
use crate::base::{Error, Result};
use crate::device::{Launch, Recipe};
use crate::sync::Mutex;
use std::sync::Arc;

/// The modules of a context that were loaded so far.
#[derive(Debug)]
pub(super) struct Modules {
    context: Arc<Context>,
    loaded: Mutex<Vec<(&'static str, Arc<Module>)>>,
}

impl Modules {
    pub(super) fn new(context: &Arc<Context>) -> Modules {
        Modules { context: Arc::clone(context), loaded: Mutex::default() }
    }

    pub(super) fn get(&self, image: &'static Image) -> Result<Arc<Module>> {
        // Under the lock: others wait, rather than to have it compiled again.
        let mut loaded = self.loaded.lock();
        if let Some((_, module)) = loaded.iter().find(|(name, _)| *name == image.name) {
            return Ok(Arc::clone(module));
        }
        let what = format!("module '{}'", image.name);
        let module = Arc::new(Module::load(&self.context, image.ptx.to_bytes_with_nul(), &what)?);
        loaded.push((image.name, Arc::clone(&module)));
        Ok(module)
    }
}

/// An operation, with the functions that its launches may take.
#[derive(Debug)]
pub(super) struct Builtin {
    operator: Box<dyn Operator>,
    /// By the numbers of their entries.
    functions: Vec<(usize, Handle<CUfunction>)>,
    _modules: Vec<Arc<Module>>,
    /// Those that a library does.
    products: Option<Plans>,
}

impl Builtin {
    pub(super) fn new(modules: &Modules, products: &Products, recipe: &Recipe<'_>) -> Result<Builtin> {
        let operator = operator(recipe)?;
        let blas = if operator.has_products() { products.get()? } else { None };
        let after: &[&Entry] = if blas.is_some() { operator.entries_after_product() } else { &[] };
        let (mut functions, mut held) = (Vec::new(), Vec::new());
        for entry in operator.entries().iter().chain(after) {
            let module = modules.get(entry.image)?;
            functions.push((entry.index, module.function(entry.name)?));
            held.push(module);
        }
        let products = blas.as_ref().map(Plans::new);
        Ok(Builtin { operator, functions, _modules: held, products })
    }

    pub(super) fn in_place(&self) -> bool {
        self.operator.in_place()
    }

    /// Has `issue` take what a call is made of, one after the other: see `CudaKernel::launches`.
    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        tickets: &dyn Tickets,
        takes_products: &dyn Fn() -> Result<bool>,
        issue: &mut dyn FnMut(Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        let (inputs, outputs) = (launch.inputs, launch.outputs);
        let issue_kernel = |kernel: &KernelLaunch<'_>, issue: &mut dyn FnMut(Piece<'_>) -> Result<()>| {
            self.with_grid(launch.name, kernel, tickets, |grid, arguments| issue(Piece::Grid(grid, arguments)))
        };
        if self.products.is_some()
            && takes_products()?
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
        let function = self.functions.iter().find(|(index, _)| *index == kernel.entry.index);
        let &(_, function) = function.ok_or_else(|| {
            Error::internal(format!("{:?} is none of the kernels of {:?}", kernel.entry.name, self.operator))
        })?;
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
