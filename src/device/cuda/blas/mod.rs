//! Matrix products by cuBLASLt, where it is installed and can do them. The built-in kernels do the others.
//!
//! - `library`: the library's functions; `descriptor`: its objects.
//! - `plan`: the plan of each shape: descriptors, and the algorithm that the library proposes.
//! - `capture`: products in recordings.
//!
//! *When.* The library is searched when the first kernel of products is made. WEIR_CUDA_BLAS=0 in the environment
//! disables it, and WEIR_CUDA_BLAS=1 requires it for all products. Which products it does depends only on their shapes
//! and addresses.
//!
//! *Same bits.* An algorithm is chosen once for a shape, by the library's heuristics, from the shape alone: not from
//! concurrent work or free memory. Partial sums go through a workspace, which no two products use at the same time: a
//! stream has one, and those of a recording are shared along its edges.

mod capture;
mod descriptor;
mod library;
mod plan;
mod workspace;

pub(super) use capture::RecordedProducts;
pub(super) use plan::{Plans, Prepared};
pub(super) use workspace::Workspace;

use super::context::{Context, Handle};
use super::facts::CudaFacts;
use super::memory::CudaMemory;
use super::status;
use super::stream::CudaStream;
use super::table::CUstream;
use crate::base::{Code, Error, Result};
use crate::sync::{Mutex, fork};
use library::{ARCH_MISMATCH, BlasLibrary, LICENSE_ERROR, NOT_INITIALIZED, NOT_SUPPORTED, Pointer};
use std::fmt::Display;
use std::sync::Arc;

/// The library's recommended sizes of workspaces, from compute capability 9.0 on and before.
const WORKSPACE: usize = 32 << 20;
const WORKSPACE_BEFORE: usize = 4 << 20;

/// The library on a device, opened on the first product.
#[derive(Debug)]
pub(super) struct Products {
    context: Arc<Context>,
    memory: Arc<CudaMemory>,
    most_workspace: usize,
    state: Mutex<Option<BlasState>>,
}

#[derive(Debug)]
enum BlasState {
    Library(Arc<Blas>),
    /// With the reason.
    Builtin(String),
}

/// The library, ready for a device.
#[derive(Debug)]
pub(super) struct Blas {
    library: &'static BlasLibrary,
    context: Arc<Context>,
    memory: Arc<CudaMemory>,
    handle: Handle<Pointer>,
    most_workspace: usize,
    /// The stream in which products of recordings are captured, one at a time; null before the first.
    capture: Mutex<Handle<CUstream>>,
}

impl Products {
    pub(super) fn new(context: &Arc<Context>, memory: &Arc<CudaMemory>, facts: &CudaFacts) -> Products {
        let most_workspace = if facts.capability[0] >= 9 { WORKSPACE } else { WORKSPACE_BEFORE };
        let (context, memory) = (Arc::clone(context), Arc::clone(memory));
        Products { context, memory, most_workspace, state: Mutex::new(None) }
    }

    /// `None`: the built-in kernels do all products.
    pub(super) fn get(&self) -> Result<Option<Arc<Blas>>> {
        let mut state = self.state.lock();
        if state.is_none() {
            *state = Some(self.find()?);
        }
        Ok(match &*state {
            Some(BlasState::Library(blas)) => Some(Arc::clone(blas)),
            _ => None,
        })
    }

    /// The implementation of products; "" before the first one.
    pub(super) fn text(&self) -> String {
        match &*self.state.lock() {
            None => String::new(),
            Some(BlasState::Library(blas)) => blas.library.text(),
            Some(BlasState::Builtin(why)) => format!("built-in: {why}"),
        }
    }

    fn find(&self) -> Result<BlasState> {
        let is_must = match std::env::var("WEIR_CUDA_BLAS").as_deref() {
            Err(_) | Ok("") => false,
            Ok("0") => return Ok(BlasState::Builtin("WEIR_CUDA_BLAS is 0".to_owned())),
            Ok("1") => true,
            Ok(other) => {
                let text = format!("the environment variable WEIR_CUDA_BLAS is '{other}', expected 0 or 1");
                return Err(Error::new(Code::Unavailable, text));
            }
        };
        match self.open()? {
            Err(why) if is_must => {
                Err(Error::new(Code::Unavailable, format!("WEIR_CUDA_BLAS is 1, and there is no cuBLASLt: {why}")))
            }
            Err(why) => Ok(BlasState::Builtin(why)),
            Ok(blas) => Ok(BlasState::Library(blas)),
        }
    }

    /// The library, or the reason why it is not used.
    fn open(&self) -> Result<Result<Arc<Blas>, String>> {
        let library = match BlasLibrary::get() {
            Ok(library) => library,
            Err(why) => return Ok(Err(why.to_owned())),
        };
        let mut raw = std::ptr::null_mut();
        let entered = self.context.enter_relaxed()?;
        // SAFETY: the library's function, and a place for the answer.
        let created = unsafe { (library.create)(&raw mut raw) };
        drop(entered);
        if matches!(created, NOT_INITIALIZED | ARCH_MISMATCH | NOT_SUPPORTED | LICENSE_ERROR) {
            return Ok(Err(format!("{}: cublasLtCreate: {}", library.text(), library::text(created))));
        }
        library.check("cublasLtCreate", created)?;
        Ok(Ok(Arc::new(Blas {
            library,
            context: Arc::clone(&self.context),
            memory: Arc::clone(&self.memory),
            handle: Handle(raw),
            most_workspace: self.most_workspace,
            capture: Mutex::new(Handle(std::ptr::null_mut())),
        })))
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        let stream = self.capture.lock().0;
        if !stream.is_null() {
            // SAFETY: the driver's function with an unused stream.
            self.context.take_back("cuStreamDestroy", |table| unsafe { (table.stream_destroy)(stream) });
        }
        if self.context.lost().is_some() || fork::forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter_relaxed() {
            // SAFETY: the library's function with an unused handle.
            unsafe { (self.library.destroy)(self.handle.0) };
        }
    }
}

impl Prepared<'_> {
    /// Puts the product into a stream, with the stream's workspace.
    pub(super) fn issue(&self, stream: &CudaStream, what: &dyn Display) -> Result<()> {
        let make = |of| {
            Workspace::new(&self.blas().memory, self.blas().most_workspace, of, "a stream's workspace for products")
        };
        let mut workspace = stream.workspace().lock();
        let address = if self.workspace_bytes() == 0 {
            0
        } else if stream.captures()? {
            stream.captured_workspace(|| make(None))?.address
        } else if let Some(workspace) = &*workspace {
            workspace.address
        } else {
            workspace.insert(make(stream.own())?).address
        } as u64;
        let mut enqueued = Ok(status::SUCCESS);
        // The library may load its kernels now.
        let _entered = self.blas().context.enter_relaxed()?;
        stream.issue("cublasLtMatmul", what, |_, raw| {
            enqueued = self.enqueue(raw, address);
            status::SUCCESS
        })?;
        self.blas().check(enqueued?, what)
    }
}

impl Blas {
    /// Checks the status of an enqueued product.
    fn check(&self, enqueued: library::Status, what: &dyn Display) -> Result<()> {
        self.library.check("cublasLtMatmul", enqueued).map_err(|error| {
            // The driver knows more if the device is lost.
            let mut device = 0;
            let asked = self.context.call("cuCtxGetDevice", what, |table| {
                // SAFETY: the driver's function, and a place for the answer.
                unsafe { (table.ctx_get_device)(&raw mut device) }
            });
            match asked {
                Err(lost) if lost.code() == Code::DeviceLost => lost,
                _ => error.within(what),
            }
        })
    }
}
