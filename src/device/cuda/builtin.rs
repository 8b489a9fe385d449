//! Built-in operations on a device: the library's own modules, loaded, and the launches that `operators` asks for.
//!
//! A module is loaded into a context when somebody first wants a kernel of it, and stays as long as the device or a kernel that uses it.

use super::context::{Context, Handle};
use super::module::Module;
use super::operators::operator;
use super::plan::{Image, Operator};
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
}

impl Builtin {
    pub(super) fn new(modules: &Modules, recipe: &Recipe<'_>) -> Result<Builtin> {
        let operator = operator(recipe)?;
        let (mut functions, mut held) = (Vec::new(), Vec::new());
        for entry in operator.entries() {
            let module = modules.get(entry.image)?;
            functions.push((entry.index, module.function(entry.name)?));
            held.push(module);
        }
        Ok(Builtin { operator, functions, _modules: held })
    }

    /// Has `issue` launch what a call takes, one after the other. Allocates nothing.
    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        issue: &mut dyn FnMut(&Grid, Arguments<'_>) -> Result<()>,
    ) -> Result<()> {
        self.operator.launches(launch.inputs, launch.outputs, &mut |kernel| {
            let function = self.functions.iter().find(|(index, _)| *index == kernel.entry.index);
            let &(_, function) = function.ok_or_else(|| {
                Error::internal(format!("{:?} is none of the kernels of {:?}", kernel.entry.name, self.operator))
            })?;
            let (grid, block, shared_bytes) = (kernel.grid, kernel.block, kernel.shared_bytes);
            // A kernel's one parameter is a struct, which the driver copies and does not write.
            let mut params = [kernel.params.as_ptr().cast_mut().cast()];
            issue(&Grid { function: function.0, grid, block, shared_bytes }, Arguments::Each(&mut params))
        })
    }
}
