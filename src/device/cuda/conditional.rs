//! Branches and loops of recordings as conditional nodes of the driver's graphs (`filler`): whether a context supports
//! them is found out once, on first use. The driver must have the functions, load the kernels, and instantiate a graph
//! with a loop. That is before any graph with one is made, so a module is not loaded in the middle of other things. A
//! driver that was out of memory is asked again.
#![forbid(unsafe_code)]

use super::context::Context;
use super::filler::ConditionalControl;
use super::graph::CudaGraph;
use super::images::{CONTROL_MODULE, FILL, SET_CASE, SET_IF, SET_SWITCH, WHILE_COMPARE, WHILE_STEP};
use super::module::Module;
use crate::base::{Code, Error, Result, dtype};
use crate::device::{Integer, RecordedLoop, RecordedStep, RecordedWork, Recording};
use crate::sync::Mutex;
use std::sync::Arc;

/// From here on there are IF with else, and SWITCH.
const CHOICES: i32 = 12_080;

/// Whether a context supports it: found out on first use.
#[derive(Debug)]
pub(super) struct Conditionals {
    context: Arc<Context>,
    found: Mutex<Option<Result<Arc<ConditionalControl>>>>,
}

/// Whether a recording takes conditional nodes.
pub(super) fn has_control_flow(recording: &Recording<'_>) -> bool {
    recording.steps.iter().any(|step| matches!(step.work, RecordedWork::Branch(_) | RecordedWork::Loop(_)))
}

impl Conditionals {
    pub(super) fn new(context: &Arc<Context>) -> Conditionals {
        Conditionals { context: Arc::clone(context), found: Mutex::default() }
    }

    /// UNIMPLEMENTED if the driver has none; the text says why.
    pub(super) fn get(&self) -> Result<Arc<ConditionalControl>> {
        let mut found = self.found.lock();
        if let Some(found) = &*found {
            return found.clone();
        }
        let new = self.find();
        if new.as_ref().err().is_none_or(|error| error.code() == Code::Unimplemented) {
            *found = Some(new.clone());
        }
        new
    }

    fn find(&self) -> Result<Arc<ConditionalControl>> {
        let (context, table) = (&self.context, self.context.table());
        let driver = format!("the driver, of CUDA {},", context.driver().version_text());
        let (Some(create_handle), Some(add_node)) = (table.graph_conditional_handle_create, table.graph_add_node)
        else {
            return Err(Error::new(Code::Unimplemented, format!("{driver} has no conditional nodes")));
        };
        // An error that may not recur is returned unchanged.
        let refuse = |does: &str, error: Error| match error.code() {
            Code::ResourceExhausted | Code::DeviceLost | Code::Unavailable => error,
            _ => Error::new(Code::Unimplemented, format!("{driver} {does}: {}", error.message())),
        };
        let loads = "does not load the kernels that set conditions";
        let module = Module::load_ptx(context, CONTROL_MODULE.ptx()?, "module 'control'");
        let module = module.map_err(|error| refuse(loads, error))?;
        let function = |name| module.function(name).map_err(|error| refuse(loads, error));
        let control = ConditionalControl {
            create_handle,
            add_node,
            set_if: function(SET_IF)?,
            set_case: function(SET_CASE)?,
            set_switch: function(SET_SWITCH)?,
            while_step: function(WHILE_STEP)?,
            while_compare: function(WHILE_COMPARE)?,
            fill: function(FILL)?,
            has_choices: context.driver().version() >= CHOICES,
            _module: module,
        };
        let control = Arc::new(control);
        let predicate = Integer { address: 0, dtype: dtype::U8 }.into();
        let again = RecordedWork::Loop(RecordedLoop { name: "a loop", predicate, body: &[], behind: None });
        let recording = Recording { name: "trial", steps: &[RecordedStep { work: again, after: &[] }] };
        match CudaGraph::new(context, &recording, Some(Arc::clone(&control)), None) {
            Ok(_) => Ok(control),
            Err(error) => Err(refuse("makes no conditional nodes", error)),
        }
    }
}
