//! Stream captures by the host.
//!
//! Work submitted to a stream while the host captures it becomes nodes of a graph. The host launches that graph at any
//! time, any number of times, so the graph must own all resources of the nodes. It is tied to the graph as a user
//! object (`cuGraphRetainUserObject`), and the driver calls `let_go` when the graph and its executables are gone.
//!
//! That call comes on a driver thread, which must not call the driver. So `let_go` defers the drop to a later `sweep`:
//! when a stream is made, waited for or dropped, or an engine is trimmed. No lock of the library is held there. A
//! captured call does not sweep, because a destructor of the host's could spoil the capture.

use super::blas::Workspace;
use super::context::{Context, Handle};
use super::inbox::FaultInbox;
use super::table::{CUgraph, CUstream};
use crate::base::{Code, Error, Result};
use crate::sync::Mutex;
use cudarc::driver::sys;
use std::any::Any;
use std::ffi::{c_int, c_uint, c_void};
use std::fmt::Display;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

type Kept = Box<dyn Any + Send>;

/// Objects released by graphs, and whether there are any. ORDERING: Relaxed; a missed one is swept the next time.
static RELEASED: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);

/// Drops objects released by graphs. Not under a lock: they may be of any type.
pub fn sweep() {
    if ANY.load(Relaxed) {
        let mut released = RELEASED.lock();
        ANY.store(false, Relaxed);
        let all = std::mem::take(&mut *released);
        drop(released);
        drop(all);
    }
}

/// For the next sweep.
pub(super) fn put_off(what: Kept) {
    let mut released = RELEASED.lock();
    released.push(what);
    ANY.store(true, Relaxed);
}

/// A capture that a stream takes part in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    pub id: u64,
    graph: Handle<CUgraph>,
}

/// Resources that the nodes of one stream in one capture share, and the graph keeps.
#[derive(Debug, Default)]
pub(super) struct CaptureShared {
    pub id: u64,
    pub inbox: Weak<FaultInbox>,
    pub workspace: Weak<Workspace>,
}

/// Keeps the resources of a stream that is dropped while captured; to the next sweep, if the capture has become
/// invalid.
pub(super) fn put_aside(capture: Option<Capture>, context: &Context, what: Kept) {
    let left = match capture {
        Some(capture) => capture.try_keep(context, what).err().and_then(|(_, left)| left),
        None => Some(what),
    };
    left.into_iter().for_each(put_off);
}

impl Capture {
    /// The capture that this stream takes part in now.
    pub(super) fn of(context: &Context, stream: CUstream, what: &dyn Display) -> Result<Capture> {
        let (mut state, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let info = context.table().stream_get_capture_info.ok_or_else(missing)?;
        context.call("cuStreamGetCaptureInfo", what, |_| {
            let (nodes, count) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the driver's function with a stream of this context, and places for the answers that are wanted.
            unsafe { info(stream, &raw mut state, &raw mut id, &raw mut graph, nodes, count) }
        })?;
        if state != sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_ACTIVE as c_int || graph.is_null() {
            return Err(Error::precondition("what is captured has become invalid, or has ended"));
        }
        Ok(Capture { id, graph: Handle(graph) })
    }

    /// The graph keeps this as long as it or an executable of it exists.
    pub(super) fn keep(&self, context: &Context, what: Kept) -> Result<()> {
        self.try_keep(context, what).map_err(|(error, _)| error)
    }

    /// Returns it with the error, unless it was deferred.
    fn try_keep(&self, context: &Context, what: Kept) -> Result<(), (Error, Option<Kept>)> {
        // A graph is not thread-safe.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock();
        let table = context.table();
        let functions = (table.user_object_create, table.user_object_release, table.graph_retain_user_object);
        let (Some(create), Some(release), Some(retain)) = functions else {
            return Err((missing(), Some(what)));
        };
        let (mut object, kept) = (std::ptr::null_mut(), Box::into_raw(Box::new(what)));
        let flags = sys::CUuserObject_flags_enum::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as c_uint;
        let created = context.call("cuUserObjectCreate", &"what a graph keeps", |_| {
            // SAFETY: the driver's function, a place for the answer, and a box for `let_go`, which is called once.
            unsafe { create(&raw mut object, kept.cast(), let_go, 1, flags) }
        });
        if let Err(error) = created {
            // SAFETY: the driver has not taken it.
            return Err((error, Some(*unsafe { Box::from_raw(kept) })));
        }
        let retained = context.call("cuGraphRetainUserObject", &"what a graph keeps", |_| {
            let flags = sys::CUuserObjectRetain_flags_enum::CU_GRAPH_USER_OBJECT_MOVE as c_uint;
            // SAFETY: the driver's function with a graph that is being captured, to which the one reference goes.
            unsafe { retain(self.graph.0, object, 1, flags) }
        });
        if retained.is_err() {
            // SAFETY: the driver's function with the one reference, which calls `let_go`.
            context.take_back("cuUserObjectRelease", |_| unsafe { release(object, 1) });
        }
        retained.map_err(|error| (error, None))
    }
}

/// Called by the driver, in a thread of its own.
unsafe extern "C" fn let_go(kept: *mut c_void) {
    // SAFETY: the pointer from `keep`, once.
    let kept = unsafe { Box::from_raw(kept.cast::<Kept>()) };
    put_off(*kept);
}

fn missing() -> Error {
    Error::new(Code::Unimplemented, "the driver has not all that captures take")
}
