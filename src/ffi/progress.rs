//! How far runs are, for the host that asks.

use super::handle;
use crate::abi::*;
use crate::base::Object;
use crate::base::text::fixed;
use crate::graph::Run;
use crate::stream::{ProgressListener, ProgressReport};
use crate::sync::ambient;
use std::any::Any;

/// The interval of a host that names none.
const INTERVAL_NS: u64 = 100_000_000;

/// The host's wish to be told, if it has one.
pub(super) fn read(options: &weir_run_options) -> Option<ProgressListener> {
    options.progress.map(|_| ProgressListener {
        progress: options.progress,
        ctx: options.progress_ctx,
        interval_ns: if options.progress_interval_ns == 0 { INTERVAL_NS } else { options.progress_interval_ns },
        tell,
    })
}

/// Calls the host's function.
fn tell(listener: &ProgressListener, report: &ProgressReport<'_>, run: Option<&dyn Any>) {
    let run = run.and_then(|run| run.downcast_ref::<Object<Run>>());
    let progress = weir_run_progress {
        struct_size: size_of::<weir_run_progress>(),
        run: run.map_or(std::ptr::null_mut(), handle::borrowed_c::<weir_run>),
        nodes_done: report.nodes_done,
        nodes_total: report.nodes_total,
        elapsed_ns: report.elapsed_ns,
        estimated_remaining_ns: report.remaining_ns.unwrap_or(u64::MAX),
        node: fixed(report.node),
    };
    if let Some(tell) = listener.progress {
        // SAFETY: the host's function with its own context, which it keeps until the run is over; the run and the
        // struct outlive the call.
        ambient::call(|| unsafe { tell(listener.ctx, &raw const progress) });
    }
}
