//! Programs: compiled graphs. Their runs.

use crate::callback::silenced;
use crate::engine::{text, timeout_ns};
use crate::error::{check, text_of};
use crate::event::notify;
use crate::handle::shared_handle;
use crate::tensor::Handles;
use crate::{DType, Engine, Error, ErrorKind, Result, Stream, Tensor, TensorDesc, ThreadPool};
use std::ffi::c_void;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_core::abi::{
    weir_compile_flags as C, weir_compile_options, weir_port_info, weir_port_kind_value as Ports, weir_program,
    weir_program_info, weir_report_format_value as Format, weir_run, weir_run_flags as R, weir_run_options,
    weir_run_progress,
};
use weir_core::ffi;

/// How a graph is compiled. The default is right for most.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing by themselves"]
pub struct CompileOptions {
    flags: u64,
    blocking_threadpool: Option<ThreadPool>,
    partial_runs: usize,
    max_concurrent_runs: u32,
}

impl CompileOptions {
    /// The default.
    pub fn new() -> CompileOptions {
        CompileOptions::default()
    }

    /// The program counts and times each node, for [`Program::report`]. Costs two looks at the clock for each.
    pub fn statistics(mut self) -> Self {
        self.flags |= C::WEIR_COMPILE_STATISTICS as u64;
        self
    }

    /// The pool for kernels that may block ([`KernelBuilder::may_block`](crate::KernelBuilder::may_block)), with as
    /// many threads as may block at once. Without it graphs with such kernels do not compile.
    pub fn blocking_threadpool(mut self, pool: &ThreadPool) -> Self {
        self.blocking_threadpool = Some(pool.clone());
        self
    }

    /// Runs may ask for a part of the outputs ([`RunOptions::outputs`]). The program keeps the compiled parts for so
    /// many lists of outputs, at most 256.
    pub fn partial_runs(mut self, lists: usize) -> Self {
        self.partial_runs = lists;
        self
    }

    /// The most runs of the program at once; 0 = no limit. One more waits for its turn.
    pub fn max_concurrent_runs(mut self, count: u32) -> Self {
        self.max_concurrent_runs = count;
        self
    }

    pub(crate) fn to_c(&self) -> weir_compile_options {
        weir_compile_options {
            struct_size: size_of::<weir_compile_options>(),
            flags: self.flags,
            hop_ns: 0,
            blocking_threadpool: self.blocking_threadpool.as_ref().map_or(std::ptr::null_mut(), ThreadPool::raw),
            partial_runs: self.partial_runs,
            max_concurrent_runs: self.max_concurrent_runs,
            placement: 0,
            segments: 0,
            reserved: 0,
        }
    }
}

/// Options of one run.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing by themselves"]
pub struct RunOptions {
    flags: u64,
    deadline: Option<Duration>,
    threadpool: Option<ThreadPool>,
    outputs: Option<Vec<usize>>,
    progress: Option<(Duration, Arc<Follower>)>,
}

impl RunOptions {
    /// The default.
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// The time for the run, from the call on and with the time in a stream's queue. When it has passed nothing more is
    /// begun, and the run ends behind the running kernels with `DeadlineExceeded`.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }

    /// The pool for this run.
    pub fn threadpool(mut self, pool: &ThreadPool) -> Self {
        self.threadpool = Some(pool.clone());
        self
    }

    /// The outputs to compute, by their numbers in the program. Needs [`CompileOptions::partial_runs`].
    /// None means all of them.
    pub fn outputs(mut self, outputs: &[usize]) -> Self {
        self.outputs = Some(outputs.to_vec());
        self
    }

    /// Nodes run one after the other in the program's order.
    pub fn deterministic(mut self) -> Self {
        self.flags |= R::WEIR_RUN_DETERMINISTIC as u64;
        self
    }

    /// A run that fails goes on with the nodes that do not depend on the failure, one after the other.
    pub fn finish_independent(mut self) -> Self {
        self.flags |= R::WEIR_RUN_FINISH_INDEPENDENT as u64;
        self
    }

    /// A run beyond [`CompileOptions::max_concurrent_runs`] is refused with `ResourceExhausted` in place of a wait.
    pub fn no_wait(mut self) -> Self {
        self.flags |= R::WEIR_RUN_NO_WAIT as u64;
        self
    }

    /// Calls `follow` at most once in each `interval` with how far the run is, between two nodes and in a thread that
    /// works for the run, which waits for it. It may cancel the run, and must not wait for it. A panic in it is lost.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir::RunOptions;
    ///
    /// let options = RunOptions::new().progress(Duration::from_secs(1), |progress| {
    ///     println!("{} of {} nodes, {:?} to go", progress.nodes_done(), progress.nodes_total(), progress.remaining());
    /// });
    /// ```
    pub fn progress(mut self, interval: Duration, follow: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.progress = Some((interval, Arc::new(Follower(Box::new(follow)))));
        self
    }

    fn to_c(&self) -> weir_run_options {
        let (outputs, progress) = (self.outputs.as_deref(), self.progress.as_ref());
        weir_run_options {
            struct_size: size_of::<weir_run_options>(),
            flags: self.flags,
            // 0 would be none: a deadline that has passed is one nanosecond away.
            deadline_ns: self.deadline.map_or(0, |time| timeout_ns(Some(time)).max(1)),
            threadpool: self.threadpool.as_ref().map_or(std::ptr::null_mut(), ThreadPool::raw),
            outputs: outputs.map_or(std::ptr::null(), <[usize]>::as_ptr),
            num_outputs: outputs.map_or(0, <[usize]>::len),
            absent: std::ptr::null_mut(),
            num_absent: 0,
            notice: std::ptr::null(),
            trace: std::ptr::null_mut(),
            progress: progress.and(Some(Follower::call)),
            progress_ctx: progress.map_or(std::ptr::null_mut(), |(_, told)| Arc::as_ptr(told).cast_mut().cast()),
            // 0 would be 100 ms.
            progress_interval_ns: progress.map_or(0, |(interval, _)| timeout_ns(Some(*interval)).max(1)),
        }
    }
}

/// The closure that a run's progress is told to.
struct Follower(Box<dyn Fn(Progress<'_>) + Send + Sync>);

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}

impl Follower {
    /// # Safety
    /// `ctx` is such a value, and `progress` a struct of weir's; both outlive the call.
    unsafe extern "C" fn call(ctx: *mut c_void, progress: *const weir_run_progress) {
        // SAFETY: as demanded of the caller.
        let (follower, progress) = unsafe { (&*ctx.cast_const().cast::<Follower>(), &*progress) };
        silenced(|| (follower.0)(Progress(progress)));
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a>(&'a weir_run_progress);

impl Progress<'_> {
    /// Nodes that are over, in a loop once for each iteration.
    pub fn nodes_done(&self) -> u64 {
        self.0.nodes_done
    }

    /// These, and all that are known to come. It grows while branches and iterations begin.
    pub fn nodes_total(&self) -> u64 {
        self.0.nodes_total
    }

    /// The time since the run began.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.elapsed_ns)
    }

    /// How much longer it takes, by what earlier runs have cost; `None` while that is unknown.
    pub fn remaining(&self) -> Option<Duration> {
        let ns = self.0.estimated_remaining_ns;
        (ns != u64::MAX).then(|| Duration::from_nanos(ns))
    }

    /// The name of the node that has just come to its end.
    pub fn node(&self) -> String {
        text_of(&self.0.node)
    }

    /// Cancels the run, if it was begun by [`Program::start`]; others cannot be cancelled.
    pub fn cancel(&self) -> Result<()> {
        if self.0.run.is_null() {
            let text = "the run cannot be cancelled: it was not begun by Program::start";
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        // SAFETY: the run's handle, which lives during the call.
        check(unsafe { ffi::weir_run_cancel(self.0.run) })
    }
}

/// An input or output of a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Port {
    /// The name in the graph.
    pub name: String,
    /// Element type and shape.
    pub desc: TensorDesc,
    /// The engine in whose memory runs take it.
    pub engine: Engine,
}

shared_handle! {
    /// A compiled graph: immutable and shared. Any number of threads may run it at once; each run has memory of its
    /// own, which is kept for the next.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir::{Engine, Graph, Kernel, RunOptions, Stream, Tensor, TensorDesc, ops};
    ///
    /// let cpu = Engine::cpu()?;
    /// let number = TensorDesc::of::<f32>(&[1]);
    /// let mut graph = Graph::new("square")?;
    /// let x = graph.input("x", number)?;
    /// let square = graph.kernel("square", &Kernel::new(&cpu, &ops::Binary::new(ops::BinaryOp::Mul))?, &[x, x])?;
    /// graph.output("y", square[0])?;
    /// let program = graph.compile(&[&cpu])?;
    ///
    /// // Here, with new tensors for the outputs.
    /// let x = Tensor::from_slice(&cpu, &[1], &[3.0_f32])?;
    /// assert_eq!(program.run(&[&x])?[0].as_slice::<f32>()?, [9.0]);
    /// // Here, with tensors of yours: from the second time on without an allocation in weir.
    /// let mut y = Tensor::new(&cpu, number)?;
    /// program.run_into(&[&x], &mut [&mut y], &RunOptions::new().deadline(Duration::from_secs(1)))?;
    /// // In the background.
    /// let run = program.start(&Stream::asynchronous(&cpu)?, &[&x], &mut [&mut y], &RunOptions::new())?;
    /// run.synchronize()?;
    /// assert_eq!(y.as_slice::<f32>()?, [9.0]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    Program(weir_program), ffi::weir_program_retain, ffi::weir_program_release
}

impl Program {
    /// Runs the program in this thread, with helpers of the pool, and gives the outputs in new tensors.
    ///
    /// Blocks until the run is over, and before it until queued work that writes the inputs is.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let outputs = self.outputs()?;
        let mut outputs: Vec<_> =
            outputs.iter().map(|port| Tensor::new(&port.engine, port.desc)).collect::<Result<_>>()?;
        self.run_into(inputs, &mut outputs.iter_mut().collect::<Vec<_>>(), &RunOptions::new())?;
        Ok(outputs)
    }

    /// Runs the program in this thread, with helpers of the pool. The failure has the node that failed.
    ///
    /// Blocks until the run is over, and before it until queued work that conflicts with its tensors is.
    pub fn run_into(&self, inputs: &[&Tensor], outputs: &mut [&mut Tensor], options: &RunOptions) -> Result<()> {
        for input in inputs {
            input.wait_written()?;
        }
        for output in outputs.iter() {
            output.wait_unused()?;
        }
        let (from, into) = (Handles::of(inputs.iter().copied()), Handles::of(outputs.iter().map(|output| &**output)));
        let (told, here) = (options.to_c(), std::ptr::null_mut());
        let (from, num_from, into, num_into) = (from.data(), from.len(), into.data(), into.len());
        // SAFETY: live handles, and arrays of these lengths. Nothing else uses the tensors meanwhile: they are
        // borrowed, and queued work was waited for.
        check(unsafe { ffi::weir_program_run(self.raw(), here, from, num_from, into, num_into, &raw const told) })
    }

    /// Starts a run on an asynchronous stream, in order with what else is queued there and with what else uses the
    /// tensors. Its failure belongs to the [`Run`] and not to the stream.
    pub fn start(
        &self,
        stream: &Stream,
        inputs: &[&Tensor],
        outputs: &mut [&mut Tensor],
        options: &RunOptions,
    ) -> Result<Run> {
        if stream.is_synchronous() {
            return Err(Error::new(ErrorKind::InvalidArgument, "a run is started on an asynchronous stream"));
        }
        let mut told = options.to_c();
        let run = stream.submit(inputs, outputs, |from, into| {
            let (from, num_from, into, num_into) = (from.data(), from.len(), into.data(), into.len());
            let (on, mut raw) = (stream.raw(), std::ptr::null_mut());
            // SAFETY: live handles, and arrays of these lengths. The run keeps the tensors, and their uses are noted.
            let mut start = |told: &weir_run_options| unsafe {
                ffi::weir_program_start(self.raw(), on, from, num_from, into, num_into, told, &raw mut raw)
            };
            match &options.progress {
                None => check(start(&told))?,
                Some((_, follower)) => {
                    // The run's notice is the last that it does.
                    let kept = Arc::clone(follower);
                    notify(
                        move |_| drop(kept),
                        |notice| {
                            told.notice = notice;
                            start(&told)
                        },
                    )?;
                }
            }
            // SAFETY: a new reference.
            unsafe { Run::from_raw(raw) }.map(Some)
        })?;
        run.ok_or_else(|| Error::new(ErrorKind::Internal, "a run was started and is not there"))
    }

    /// The inputs of a run, in order.
    pub fn inputs(&self) -> Result<Vec<Port>> {
        self.ports(Ports::WEIR_PORT_INPUT, self.info()?.num_inputs)
    }

    /// The outputs of a run, in order.
    pub fn outputs(&self) -> Result<Vec<Port>> {
        self.ports(Ports::WEIR_PORT_OUTPUT, self.info()?.num_outputs)
    }

    /// A text for people about the compilation: nodes, memory, decisions with their reasons, and figures of runs.
    pub fn report(&self) -> Result<String> {
        text(|buffer, capacity, length| {
            // SAFETY: a live handle, and a buffer of that capacity.
            unsafe { ffi::weir_program_report(self.raw(), Format::WEIR_REPORT_TEXT as u32, buffer, capacity, length) }
        })
    }

    fn info(&self) -> Result<weir_program_info> {
        let mut info = weir_program_info {
            struct_size: size_of::<weir_program_info>(),
            num_inputs: 0,
            num_outputs: 0,
            num_nodes: 0,
            begun: 0,
            ended: 0,
            failed: 0,
            cancelled: 0,
            running: 0,
        };
        // SAFETY: a live handle, and a struct of this size.
        check(unsafe { ffi::weir_program_get_info(self.raw(), &raw mut info) })?;
        Ok(info)
    }

    fn ports(&self, kind: Ports, count: usize) -> Result<Vec<Port>> {
        let port = |index| {
            let mut info = weir_port_info {
                struct_size: size_of::<weir_port_info>(),
                desc: TensorDesc::new(DType::Any, &[]).to_c(),
                engine: std::ptr::null_mut(),
                name: [0; _],
            };
            // SAFETY: a live handle, and a struct of this size. The program lends its engine.
            unsafe {
                check(ffi::weir_program_get_port(self.raw(), kind as u32, index, &raw mut info))?;
                let engine = Engine::borrowed(info.engine)?;
                Ok(Port { name: text_of(&info.name), desc: TensorDesc::from_c(&info.desc), engine })
            }
        };
        (0..count).map(port).collect()
    }
}

shared_handle! {
    /// A run in the background. It goes on when this value is dropped.
    ///
    /// A run can be awaited: `run.await` gives its result, and no thread of yours waits meanwhile.
    Run(weir_run), ffi::weir_run_retain, ffi::weir_run_release
}

impl Run {
    /// Waits until the run is over, and gives its failure.
    ///
    /// Blocks, and works on the run meanwhile. Refused with `FailedPrecondition` where the wait would block a worker
    /// that the run needs.
    pub fn synchronize(&self) -> Result<()> {
        self.synchronize_within(None)
    }

    /// As [`synchronize`](Self::synchronize), for at most so long; else `DeadlineExceeded`. The run goes on.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.synchronize_within(Some(timeout))
    }

    fn synchronize_within(&self, timeout: Option<Duration>) -> Result<()> {
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_run_synchronize(self.raw(), timeout_ns(timeout)) })
    }

    /// Whether the run is over, failed or not.
    pub fn is_done(&self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_run_query(self.raw(), &raw mut done) })?;
        Ok(done != 0)
    }

    /// Cancels the run: running kernels come to their end, and nothing else is begun. A run that is over is left alone.
    /// Never blocks.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_run_cancel(self.raw()) })
    }

    /// Calls `notice` once with the run's result, in the thread that [`Event::on_done`](crate::Event::on_done) says.
    /// The closure should not block, since the stream waits for it.
    pub fn on_done(&self, notice: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        notify(notice, |notice| {
            // SAFETY: a live handle, and a notice that lives during the call.
            unsafe { ffi::weir_run_notify(self.raw(), notice) }
        })
    }
}

impl IntoFuture for Run {
    type Output = Result<()>;
    type IntoFuture = RunFuture;

    fn into_future(self) -> RunFuture {
        RunFuture { run: self, waker: None }
    }
}

/// The end of a [`Run`], to be awaited.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct RunFuture {
    run: Run,
    /// The task to wake at the end. The run has it too, from the first poll on.
    waker: Option<Arc<Mutex<Option<Waker>>>>,
}

impl Future for RunFuture {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let told = match &self.waker {
            Some(waker) => {
                // Dropped without the lock: it is the executor's code.
                let _last = waker.lock().unwrap_or_else(|e| e.into_inner()).replace(context.waker().clone());
                Ok(())
            }
            None => {
                let waker = Arc::new(Mutex::new(Some(context.waker().clone())));
                self.waker = Some(Arc::clone(&waker));
                self.run.on_done(move |_| {
                    let last = waker.lock().unwrap_or_else(|e| e.into_inner()).take();
                    silenced(|| last.into_iter().for_each(Waker::wake));
                })
            }
        };
        // Looked at behind the waker's place: an end from here on finds it.
        match told.and_then(|()| self.run.is_done()) {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(self.run.synchronize()),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
