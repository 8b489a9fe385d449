//! Tensors, and the work in flight that uses them.
//!
//! Streams work behind the back of the borrow checker, so a tensor keeps its own account: a `Use` for each piece of
//! queued work that reads or writes it, until that is over. New work makes its stream wait for the uses of other
//! streams that conflict. The host waits here, before it gets a slice. A new use comes only through a borrow of the
//! tensor, and slices are borrows, so none can begin while the host looks.
//!
//! The account's lock is not held while weir is called, since a call may end a pool, which is the program's code.
//!
//! A use is not dropped because a later one on another stream has waited for it: a stream that fails skips its waits.
//! On one stream a use is dropped for a later one. Threads that share a tensor to read it note their uses in any order,
//! so which is later is told by the steps of their stream (`Stream::step`).

use crate::callback::drop_box;
use crate::element::elements;
use crate::error::check;
use crate::handle::handle;
use crate::{Element, Engine, Error, ErrorKind, Event, Result, Run, Stream, TensorDesc};
use std::sync::{Arc, Mutex, MutexGuard};
use weir_core::abi::{weir_memory, weir_memory_source_value as Source, weir_tensor};
use weir_core::ffi;

handle!(Handle(weir_tensor), ffi::weir_tensor_release);

// SAFETY: "Any thread may call, several at once"; the elements are guarded by the borrow of the tensor and its uses.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// A dense, row-major array in an engine's memory.
///
/// Slices of it are borrows, and queued work counts: [`as_slice`](Tensor::as_slice) waits for what is to write the
/// tensor, [`as_slice_mut`](Tensor::as_slice_mut) for all that uses it. Work on two streams that shares a tensor waits
/// for one another where one of the two writes. So no program sees half a result, and none needs an event for it.
///
/// ```
/// use weir::{Engine, Tensor};
///
/// let cpu = Engine::cpu()?;
/// let mut tensor = Tensor::from_slice(&cpu, &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
/// tensor.as_slice_mut::<f32>()?[3] = 40.0;
/// assert_eq!(tensor.as_slice::<f32>()?, [1.0, 2.0, 3.0, 40.0]);
/// assert_eq!(tensor.desc().to_string(), "f32[2,2]");
/// # Ok::<(), weir::Error>(())
/// ```
///
/// A slice does not outlive its tensor:
///
/// ```compile_fail,E0505
/// # use weir::{Engine, Tensor};
/// # fn main() -> weir::Result<()> {
/// let tensor = Tensor::from_slice(&Engine::cpu()?, &[1], &[1.0_f32])?;
/// let slice = tensor.as_slice::<f32>()?;
/// drop(tensor);
/// println!("{slice:?}");
/// # Ok(())
/// # }
/// ```
///
/// Nothing is queued that writes a tensor while somebody looks at it:
///
/// ```compile_fail,E0502
/// # use weir::{Engine, Stream, Tensor};
/// # fn main() -> weir::Result<()> {
/// # let cpu = Engine::cpu()?;
/// # let stream = Stream::asynchronous(&cpu)?;
/// let mut tensor = Tensor::from_slice(&cpu, &[1], &[1.0_f32])?;
/// let slice = tensor.as_slice::<f32>()?;
/// stream.fill(&mut tensor, 0)?;
/// println!("{slice:?}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tensor {
    handle: Handle,
    desc: TensorDesc,
    is_host: bool,
    uses: Mutex<Vec<Use>>,
}

/// A piece of queued work that reads or writes a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    stream: u64,
    writes: bool,
    end: Arc<End>,
}

/// How the end of queued work is learned of.
#[derive(Debug)]
pub(crate) struct End {
    /// Recorded behind it. None if that failed: then nobody learns of it any more.
    event: Option<Event>,
    /// The run, whose failure the stream does not have.
    run: Option<Run>,
    /// The stream's step before the work was queued, and the one after the event was recorded.
    steps: [u64; 2],
}

impl End {
    pub(crate) fn new(event: Option<Event>, run: Option<Run>, steps: [u64; 2]) -> Arc<End> {
        Arc::new(End { event, run, steps })
    }

    /// Whether this is reached before the other's work begins, if both are on one stream.
    fn is_before(&self, other: &End) -> bool {
        self.steps[1] < other.steps[0]
    }

    fn event(&self) -> Result<&Event> {
        let lost =
            || Error::new(ErrorKind::FailedPrecondition, "the tensor's last use was queued and then lost sight of");
        self.event.as_ref().ok_or_else(lost)
    }

    fn is_over(&self) -> Result<bool> {
        self.event()?.is_done()
    }

    /// Waits for the end. Inside: the failure of the work, once it is over. Outside: no wait was possible.
    fn wait(&self) -> Result<Result<()>> {
        let event = self.event()?;
        let reached = event.synchronize();
        if reached.is_err() && !event.is_done()? {
            return reached.map(Ok);
        }
        // The run is over, so this only tells how it ended.
        Ok(reached.and_then(|()| self.run.as_ref().map_or(Ok(()), Run::synchronize)))
    }
}

impl Tensor {
    /// A tensor in new memory of the engine's: of zeros on a CPU engine, of anything on others. With open dimensions
    /// it takes its shape from the run that writes it.
    pub fn new(engine: &Engine, desc: TensorDesc) -> Result<Tensor> {
        Tensor::create(engine, desc, None)
    }

    /// A tensor of these elements, in memory of a CPU engine. For other engines copy such a tensor
    /// ([`Stream::copy`]).
    pub fn from_slice<T: Element>(engine: &Engine, dims: &[usize], elements: &[T]) -> Result<Tensor> {
        let mut tensor = Tensor::sized::<T>(engine, dims, elements.len())?;
        tensor.as_slice_mut()?.copy_from_slice(elements);
        Ok(tensor)
    }

    /// A tensor over the elements of a vector, which are not copied, on a CPU engine.
    pub fn from_vec<T: Element>(engine: &Engine, dims: &[usize], elements: Vec<T>) -> Result<Tensor> {
        let desc = Tensor::fitting::<T>(engine, dims, elements.len())?;
        let owned = Box::into_raw(Box::new(elements));
        // SAFETY: the vector of this function's.
        let elements = unsafe { &mut *owned };
        let memory = weir_memory {
            struct_size: size_of::<weir_memory>(),
            source: Source::WEIR_MEMORY_FOREIGN as u32,
            reserved: 0,
            data: elements.as_mut_ptr().cast(),
            bytes: size_of_val(elements.as_slice()),
            release: Some(drop_box::<Vec<T>>),
            release_ctx: owned.cast(),
            buffer: std::ptr::null_mut(),
            offset: 0,
            device: std::ptr::null_mut(),
        };
        Tensor::create(engine, desc, Some(&memory)).inspect_err(|_| {
            // SAFETY: weir refused the memory, so nobody else has the vector. (A tensor without it is none.)
            drop(unsafe { Box::from_raw(owned) });
        })
    }

    fn sized<T: Element>(engine: &Engine, dims: &[usize], len: usize) -> Result<Tensor> {
        Tensor::new(engine, Tensor::fitting::<T>(engine, dims, len)?)
    }

    /// The description for so many elements, in memory that the host can access.
    fn fitting<T: Element>(engine: &Engine, dims: &[usize], len: usize) -> Result<TensorDesc> {
        let desc = TensorDesc::of::<T>(dims);
        if desc.num_elements() != Some(len) {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("{desc} does not have {len} elements")));
        }
        if !engine.is_host()? {
            let text = format!("engine {}: the host cannot write its memory, only copy to it", engine.name()?);
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        Ok(desc)
    }

    fn create(engine: &Engine, desc: TensorDesc, memory: Option<&weir_memory>) -> Result<Tensor> {
        let is_host = engine.is_host()?;
        let (c_desc, mut raw) = (desc.to_c(), std::ptr::null_mut());
        let memory = memory.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: a live handle, and structs that live during the call. The memory is the tensor's until its release.
        check(unsafe { ffi::weir_tensor_create(engine.raw(), &raw const c_desc, memory, &raw mut raw) })?;
        // SAFETY: a new reference.
        let handle = unsafe { Handle::from_raw(raw) }?;
        Ok(Tensor { handle, desc, is_host, uses: Mutex::default() })
    }

    /// Element type and shape: those of the last run, for a tensor that has its shape from runs.
    pub fn desc(&self) -> TensorDesc {
        if !self.desc.is_open() {
            return self.desc;
        }
        let mut desc = self.desc.to_c();
        // SAFETY: a live handle. Only runs that block write such a tensor, and they borrow it.
        match check(unsafe { ffi::weir_tensor_get_desc(self.raw(), &raw mut desc) }) {
            Ok(()) => TensorDesc::from_c(&desc),
            Err(_) => self.desc,
        }
    }

    /// Whether its shape comes from the run that writes it.
    pub(crate) fn is_open(&self) -> bool {
        self.desc.is_open()
    }

    /// The engine whose memory it is in.
    pub fn engine(&self) -> Result<Engine> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a live handle, whose engine lives as long.
        unsafe {
            check(ffi::weir_tensor_get_engine(self.raw(), &raw mut raw))?;
            Engine::borrowed(raw)
        }
    }

    /// The elements.
    ///
    /// Blocks until queued work that writes the tensor is over, and gives its failure. Fails if `T` is another type
    /// than the tensor's, or if the host cannot access its memory.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_access::<T>()?;
        self.wait_written()?;
        let (data, len) = self.elements::<T>()?;
        // SAFETY: `len` elements of initialised memory. No work writes them: it was waited for, and new one needs the
        // tensor as mutable.
        unsafe { elements(data, len) }
    }

    /// The elements, to be changed.
    ///
    /// Blocks until all queued work that uses the tensor is over. Fails as [`as_slice`](Self::as_slice), but not for
    /// the failure of work that was to write it.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_access::<T>()?;
        self.wait_unused()?;
        let (data, len) = self.elements::<T>()?;
        // SAFETY: as in `as_slice`; no work reads them either, and new one needs the tensor.
        unsafe { elements::<T>(data, len)? };
        // SAFETY: as above.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, len) })
    }

    fn check_access<T: Element>(&self) -> Result<()> {
        let dtype = self.desc.dtype();
        if dtype != T::DTYPE {
            let text = format!("a tensor of {dtype} has no elements of {}", T::DTYPE);
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        if !self.is_host {
            let text = "the host cannot access the memory of the tensor's engine: copy it to a tensor of a CPU engine";
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        Ok(())
    }

    fn elements<T>(&self) -> Result<(*mut T, usize)> {
        let (mut data, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: a live handle that no run writes.
        unsafe {
            check(ffi::weir_tensor_get_data(self.raw(), &raw mut data))?;
            check(ffi::weir_tensor_get_size(self.raw(), &raw mut bytes))?;
        }
        let none = std::ptr::NonNull::dangling().as_ptr();
        Ok(if bytes == 0 { (none, 0) } else { (data.cast(), bytes / size_of::<T>()) })
    }

    pub(crate) fn raw(&self) -> *mut weir_tensor {
        self.handle.raw()
    }

    fn uses(&self) -> MutexGuard<'_, Vec<Use>> {
        self.uses.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The uses, to wait for without the lock: waits do work, and work may use the tensor.
    fn noted(&self, filter: impl Fn(&Use) -> bool) -> Vec<Use> {
        self.uses().iter().filter(|noted| filter(noted)).cloned().collect()
    }

    /// Waits for the work that writes it.
    pub(crate) fn wait_written(&self) -> Result<()> {
        for noted in self.noted(|noted| noted.writes) {
            noted.end.wait()??;
            self.uses().retain(|kept| !Arc::ptr_eq(&kept.end, &noted.end));
        }
        Ok(())
    }

    /// Waits for all work that uses it, failed or not.
    pub(crate) fn wait_unused(&self) -> Result<()> {
        for noted in self.noted(|_| true) {
            let _ = noted.end.wait()?;
            self.uses().retain(|kept| !Arc::ptr_eq(&kept.end, &noted.end));
        }
        Ok(())
    }

    /// Has an asynchronous stream wait for the uses by other streams that conflict with new work.
    pub(crate) fn order(&self, stream: &Stream, writes: bool) -> Result<()> {
        for noted in self.noted(|noted| writes || noted.writes) {
            if noted.end.is_over()? {
                if !writes {
                    noted.end.wait()??; // it is over, so this only gives its failure
                }
            } else if noted.stream != stream.id() {
                stream.wait_event(noted.end.event()?)?;
            }
        }
        Ok(())
    }

    /// Notes work that was queued on the stream.
    pub(crate) fn note(&self, stream: &Stream, writes: bool, end: &Arc<End>) {
        // The failure of earlier work that wrote the tensor counts until the tensor is written anew. Else a use has
        // nothing to say when it is over, or ends before this one because it came earlier on the same stream.
        let mut gone = self.noted(|noted| writes || !noted.writes);
        let is_earlier = |noted: &Use| noted.stream == stream.id() && noted.end.is_before(end);
        gone.retain(|noted| is_earlier(noted) || noted.end.is_over().unwrap_or(false));
        let mut uses = self.uses();
        uses.retain(|noted| !gone.iter().any(|gone| Arc::ptr_eq(&gone.end, &noted.end)));
        uses.push(Use { stream: stream.id(), writes, end: Arc::clone(end) });
    }
}

/// The handles of tensors, a few of them without an allocation.
pub(crate) struct Handles {
    few: [*mut weir_tensor; 8],
    many: Vec<*mut weir_tensor>,
    len: usize,
}

impl Handles {
    pub(crate) fn of<'a>(tensors: impl ExactSizeIterator<Item = &'a Tensor>) -> Handles {
        let mut handles = Handles { few: [std::ptr::null_mut(); 8], many: Vec::new(), len: tensors.len() };
        if handles.len > handles.few.len() {
            handles.many.extend(tensors.map(Tensor::raw));
        } else {
            for (place, tensor) in handles.few.iter_mut().zip(tensors) {
                *place = tensor.raw();
            }
        }
        handles
    }

    pub(crate) fn data(&self) -> *const *mut weir_tensor {
        if self.many.is_empty() { self.few.as_ptr() } else { self.many.as_ptr() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The only one.
    pub(crate) fn first(&self) -> *mut weir_tensor {
        self.few[0]
    }
}
