//! Running a program.
//!
//! Chapter: Run.

use super::argument::{array, out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::{context, failure, handle, notice, progress, versioned};
use crate::abi::*;
use crate::base::{Error, Ref, Result};
use crate::engine::{LaunchKey, Tensor};
use crate::graph::{Program, Run, RunOptions};
use crate::memory::Flags;
use crate::ops::check::flags;
use crate::sync::ambient;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;

/// A caller's run options, checked. The reference to the pool is the caller's, and not counted.
struct Told<'a> {
    options: ManuallyDrop<RunOptions>,
    outputs: &'a [usize],
}

impl Told<'_> {
    /// The program to run instead, if a part of the outputs is asked for.
    #[inline(always)]
    fn part(told: Option<&Self>, program: &Program) -> Result<Option<Ref<Program>>> {
        match told {
            Some(told) if !told.outputs.is_empty() => program.part(told.outputs).map(Some),
            _ => Ok(None),
        }
    }
}

impl weir_run_options {
    /// Whether it asks for no more than NULL does.
    #[inline(always)]
    fn is_default(&self) -> bool {
        self.flags | self.deadline_ns == 0
            && self.num_outputs | self.num_absent == 0
            && self.threadpool.is_null()
            && self.absent.is_null()
            && self.notice.is_null()
            && self.trace.is_null()
            && self.progress.is_none()
            && self.progress_interval_ns == 0
    }
}

/// Reads and checks what the caller asks of a run, into `place`; `None`: nothing. Runs without options are many, and
/// pay for one comparison.
///
/// # Safety
/// `options` is NULL or points to `struct_size` readable bytes, and what these point to lives during `'a`; the bytes of
/// `absent` live until the run is done.
#[inline(always)]
unsafe fn told<'a, 'p>(
    options: *const weir_run_options,
    asked_by: &'static str,
    place: &'p mut MaybeUninit<Told<'a>>,
) -> Result<Option<&'p Told<'a>>> {
    // SAFETY: as demanded of the caller.
    if options.is_null() { Ok(None) } else { unsafe { read(options, asked_by, place) } }
}

/// # Safety
/// As `told`.
#[inline(never)]
unsafe fn read<'a, 'p>(
    options: *const weir_run_options,
    asked_by: &'static str,
    place: &'p mut MaybeUninit<Told<'a>>,
) -> Result<Option<&'p Told<'a>>> {
    const DETERMINISTIC: u64 = weir_run_flags::WEIR_RUN_DETERMINISTIC as u64;
    const FINISH_INDEPENDENT: u64 = weir_run_flags::WEIR_RUN_FINISH_INDEPENDENT as u64;
    const NO_WAIT: u64 = weir_run_flags::WEIR_RUN_NO_WAIT as u64;
    let mut copy = MaybeUninit::uninit();
    // SAFETY: as demanded of the caller.
    let Some(options) = unsafe { versioned::borrow_opt(options, &mut copy, "options") }? else { return Ok(None) };
    if options.is_default() {
        return Ok(None);
    }
    let bits = flags(options.flags, DETERMINISTIC | FINISH_INDEPENDENT | NO_WAIT, "options->flags")?;
    if options.absent.is_null() && options.num_absent > 0 {
        let text = format!("options->absent is NULL, but its length is {}", options.num_absent);
        return Err(Error::invalid(text));
    }
    if options.progress.is_none() && options.progress_interval_ns > 0 {
        let ns = options.progress_interval_ns;
        return Err(Error::invalid(format!("options->progress_interval_ns is {ns}, but options->progress is NULL")));
    }
    // SAFETY: as demanded of the caller, whose reference to the pool outlives the call. Nothing fails once there is a
    // reference to the pool that is not counted.
    unsafe {
        let listener = match options.notice.is_null() {
            true => None,
            false => Some(notice::read(asked_by, options.notice, "options->notice")?),
        };
        let outputs = array(options.outputs, options.num_outputs, "options->outputs")?;
        let trace = handle::borrow_opt(options.trace.cast_const(), "options->trace")?.map(|trace| trace.id());
        let pool = handle::borrow_opt(options.threadpool.cast_const(), "options->threadpool")?;
        Ok(Some(place.write(Told {
            options: ManuallyDrop::new(RunOptions {
                threadpool: pool.map(|pool| Arc::from_raw(std::ptr::from_ref(pool))),
                deadline_ns: options.deadline_ns,
                absent: (!options.absent.is_null()).then(|| Flags::new(options.absent, options.num_absent)),
                deterministic: bits & DETERMINISTIC != 0,
                finish_independent: bits & FINISH_INDEPENDENT != 0,
                no_wait: bits & NO_WAIT != 0,
                listener,
                trace,
                progress: progress::read(options),
            }),
            outputs,
        })))
    }
}

/// Runs one program now: the values that the inputs determine are written into the outputs, or into those of
/// options->outputs. The run is one piece of the stream's work; with a NULL stream it runs in this thread, with helpers
/// from the pool (run options, else the program's first engine). The first node that fails ends the run, and the error
/// names it. The second and later runs allocate nothing, while at most 32 runs of the program are queued on streams and
/// no more than before run at once; with open shapes, while no value is larger than before; and on no pool in checking
/// mode, which allocates for each task.
///
/// On a stream of a device that the program was compiled for, the run begins when the device has finished the work
/// enqueued before, and work enqueued later begins when the run is over. If that device executes the whole program,
/// this call submits the run to the stream, as a kernel (docs/placement.md); otherwise the host's part runs on the
/// stream's pool, as host functions do (weir_enqueue_task), with helpers from it or from the program's first engine. On
/// another stream, or without one, tensors on devices must be ready when the run begins.
///
/// An output whose shape is open (WEIR_DIM_DYNAMIC) goes to a dynamic tensor (weir_tensor_create), or to a tensor of
/// exactly the run's shape. It is written only if the run succeeds.
///
/// Thread safety: any thread; any number of runs of one program at once, with separate outputs. Blocking: until done
/// with a NULL or synchronous stream; never on an asynchronous one. Ownership: the tensors stay alive until the run is
/// done; options may be NULL. Errors: INVALID_ARGUMENT (NULL, count, dtype, shape, a tensor of another device, overlap
/// of an output with an input or another output; the text names input or output); FAILED_PRECONDITION if the stream has
/// failed, if the host is capturing it and the run cannot be part of that (docs/cuda.md), or for options->outputs
/// without partial runs; OUT_OF_RANGE for an output that the program does not have; RESOURCE_EXHAUSTED; if it blocks,
/// also the failure of a node, DEADLINE_EXCEEDED after options->deadline_ns, and FAILED_PRECONDITION or OUT_OF_RANGE if
/// a tensor is too small for an output of open shape.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_run(
    program: *mut weir_program,
    stream: *mut weir_stream,
    inputs: *const *mut weir_tensor,
    num_inputs: usize,
    outputs: *const *mut weir_tensor,
    num_outputs: usize,
    options: *const weir_run_options,
) -> weir_status {
    guard("weir_program_run", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let program = handle::lend(program.cast_const(), "program")?;
            let stream = handle::share_opt(stream, "stream")?;
            let mut place = MaybeUninit::uninit();
            let told = told(options, "weir_program_run", &mut place)?;
            let inputs = array(inputs, num_inputs, "inputs")?;
            let outputs = array(outputs, num_outputs, "outputs")?;
            let input = |i: usize| tensor(inputs, i, "inputs");
            let output = |i: usize| tensor(outputs, i, "outputs");
            if told.is_none()
                && let Some(stream) = &stream
            {
                let address = |handle: &*mut weir_tensor| handle.addr();
                let mut key = LaunchKey::default();
                key.set(Arc::as_ptr(&*program).addr(), inputs.iter().map(address), outputs.iter().map(address));
                let _call = ambient::calling();
                // The objects at these addresses are alive, so these are their handles, and they passed the checks
                // before.
                if stream.again(&key) {
                    return Ok(());
                }
            }
            let part = Told::part(told, &program)?;
            let program = part.as_ref().unwrap_or(&program);
            let run = Program::bind(program, (inputs.len(), &input), (outputs.len(), &output))?;
            let _call = ambient::calling();
            run.run(stream.as_deref(), told.map(|told| &*told.options))
        }
    })
}

/// As weir_program_run on an asynchronous stream, with a handle to wait for this run alone, to cancel it, and to read
/// its error. The failure of such a run belongs to the handle and not to the stream: the stream continues.
///
/// Ownership: else as weir_program_run. Errors: those of weir_program_run; INVALID_ARGUMENT if the stream is NULL or
/// not asynchronous.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_start(
    program: *mut weir_program,
    stream: *mut weir_stream,
    inputs: *const *mut weir_tensor,
    num_inputs: usize,
    outputs: *const *mut weir_tensor,
    num_outputs: usize,
    options: *const weir_run_options,
    out_run: *mut *mut weir_run,
) -> weir_status {
    guard("weir_program_start", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_run, "out_run")?;
            let program = handle::share(program, "program")?;
            let stream = handle::share(stream, "stream")?;
            let mut place = MaybeUninit::uninit();
            let told = told(options, "weir_program_start", &mut place)?;
            let inputs = array(inputs, num_inputs, "inputs")?;
            let outputs = array(outputs, num_outputs, "outputs")?;
            let input = |i: usize| tensor(inputs, i, "inputs");
            let output = |i: usize| tensor(outputs, i, "outputs");
            let part = Told::part(told, &program)?;
            let program = part.as_ref().unwrap_or(&program);
            let bound = Program::bind(program, (inputs.len(), &input), (outputs.len(), &output))?;
            handle::begun_into_c(bound.start(&stream, told.map(|told| &*told.options))?, out);
            Ok(())
        }
    })
}

/// Runs one program `count` times, and returns when all runs are over: run i reads inputs[i * num_inputs ...] and
/// writes outputs[i * num_outputs ...]. So `inputs` has count * num_inputs elements, and `outputs` has count *
/// num_outputs elements. The calling thread takes part, with helpers from the pool (run options, else
/// the program's first engine). Runs may overlap, so no two runs may share an output. All tensors are checked before
/// the first run begins. If the program has kernels that complete later, the calling thread begins several runs, as
/// many as there are threads, and continues whichever run has news; helpers take part in each. Runs that communicate
/// with other ranks come one after the other, in the order of their numbers. The first failure is returned; active runs
/// then end after their running kernels, and the rest is not begun. Options are those of each run; a deadline counts
/// from the call. Inside of kernels weir_kernel_context_run_program does the same with the kernel's pool.
///
/// Blocking: until all runs are over. Ownership: the tensors stay alive and the arrays are only read during the call;
/// options may be NULL. Errors: those of weir_program_run, with the number of the run (FAILED_PRECONDITION for kernels
/// that complete later in a worker of a pool comes before anything is run); OUT_OF_RANGE (count); INVALID_ARGUMENT also
/// for options->absent, options->notice and options->progress.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_run_many(
    program: *mut weir_program,
    count: usize,
    inputs: *const *mut weir_tensor,
    num_inputs: usize,
    outputs: *const *mut weir_tensor,
    num_outputs: usize,
    options: *const weir_run_options,
) -> weir_status {
    guard("weir_program_run_many", || {
        let mut place = MaybeUninit::uninit();
        // SAFETY: the caller's pointers, as documented.
        let (program, inputs, outputs, told) = unsafe {
            (
                handle::share(program, "program")?,
                Tensors::new(inputs, all(count, num_inputs, "inputs")?, "inputs")?,
                Tensors::new(outputs, all(count, num_outputs, "outputs")?, "outputs")?,
                told(options, "weir_program_run_many", &mut place)?,
            )
        };
        let part = Told::part(told, &program)?;
        let program = part.as_ref().unwrap_or(&program);
        let options = told.map(|told| &*told.options);
        let run_all = || {
            Program::run_many(program, options, count, &|i, run| {
                let input = |k: usize| inputs.get(i * num_inputs + k);
                let output = |k: usize| outputs.get(i * num_outputs + k);
                run(&Program::bind(program, (num_inputs, &input), (num_outputs, &output))?)
            })
        };
        ambient::call(run_all)
    })
}

/// The number of tensors of `count` runs.
pub(super) fn all(count: usize, each: usize, what: &str) -> Result<usize> {
    count
        .checked_mul(each)
        .ok_or_else(|| Error::out_of_range(format!("count is {count}, too many for {what} of {each} each")))
}

/// An argument array of tensors, for several threads.
pub(super) struct Tensors<'a> {
    handles: &'a [*mut weir_tensor],
    argument: &'a str,
}

// SAFETY: handles of shared objects, which are only borrowed, in any thread.
unsafe impl Sync for Tensors<'_> {}

impl<'a> Tensors<'a> {
    /// # Safety
    /// `data` is NULL or points to `len` handles, NULL or live during `'a`.
    pub(super) unsafe fn new(data: *const *mut weir_tensor, len: usize, argument: &'a str) -> Result<Tensors<'a>> {
        // SAFETY: as demanded of the caller.
        Ok(Tensors { handles: unsafe { array(data, len, argument) }?, argument })
    }

    pub(super) fn get(&self, i: usize) -> Result<ManuallyDrop<Ref<Tensor>>> {
        // SAFETY: as demanded of the maker.
        unsafe { tensor(self.handles, i, self.argument) }
    }
}

/// Tensor `i` of an argument array.
///
/// # Safety
/// The handles are NULL or live.
unsafe fn tensor(handles: &[*mut weir_tensor], i: usize, argument: &str) -> Result<ManuallyDrop<Ref<Tensor>>> {
    let handle = *handles.get(i).ok_or_else(|| Error::internal("argument index"))?;
    // SAFETY: as demanded of the caller; the host's reference outlives the call.
    unsafe {
        // Formatted only for an error: runs allocate nothing.
        handle::lend(handle.cast_const(), argument)
            .or_else(|_| handle::lend(handle.cast_const(), &format!("{argument}[{i}]")))
    }
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_retain(run: *mut weir_run) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_run_retain", || unsafe { handle::retain(run, "run") })
}

/// Gives up one reference. NULL does nothing. The run itself continues.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_release(run: *mut weir_run) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_run_release", || unsafe { handle::release_with_pool(run, |run| run.pool()) });
}

/// Waits until the run is done, and returns its status.
///
/// Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). Meanwhile it
/// works on the run, as weir_stream_synchronize does. Errors: DEADLINE_EXCEEDED if
/// timeout_ns have passed (the run continues), and as the status of a run that has passed its own deadline_ns (the run
/// is over): weir_run_query tells the two apart; FAILED_PRECONDITION if waiting here would block a worker that the run
/// needs; else the status of the run: the first node's failure, CANCELLED, or ABORTED if the stream had failed before
/// it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_synchronize(run: *mut weir_run, timeout_ns: u64) -> weir_status {
    guard("weir_run_synchronize", || {
        // SAFETY: the caller's handle, as documented.
        let run = unsafe { handle::lend(run, "run") }?;
        Run::wait(&run, timeout_ns)
    })
}

/// Whether the run is done (1) or not (0), regardless of failure.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_query(run: *const weir_run, out_done: *mut i32) -> weir_status {
    guard("weir_run_query", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, run) = unsafe { (out_value(out_done, "out_done")?, handle::borrow(run, "run")?) };
        out.set(i32::from(run.is_done()));
        Ok(())
    })
}

/// Tells the host when the run is done: by a function that is called once, or an eventfd, or both (weir_notice says
/// when and on which thread). If the run is done already, the notice arrives before the call returns. A run may have
/// any number of notices, which arrive in order. They belong to the run, not to the handle, and arrive even if all
/// handles were released. To ask in the call that starts the run, see weir_run_options.
///
/// Blocking: never; the function and release run here if the run is done. Ownership: `notice` is read during the call;
/// its ctx is released with `release`. Errors: INVALID_ARGUMENT (NULL, neither function nor eventfd, an event_fd that
/// is no eventfd or that blocks); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_notify(run: *mut weir_run, notice: *const weir_notice) -> weir_status {
    guard("weir_run_notify", || {
        // SAFETY: the caller's pointers, as documented.
        let (run, listener) =
            unsafe { (handle::share(run, "run")?, notice::read("weir_run_notify", notice, "notice")?) };
        Run::notify(&run, listener)
    })
}

/// Cancels the run: running kernels come to their end, nothing else is begun, and the outputs are undefined. A run that
/// is done is left alone. The program can be run again at once.
///
/// Blocking: never (weir_run_synchronize waits for the end).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_cancel(run: *mut weir_run) -> weir_status {
    guard("weir_run_cancel", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow(run, "run") }?.cancel();
        Ok(())
    })
}

/// Runs a program `count` times in a region of this call, and returns when all runs are over: run i reads inputs[i *
/// num_inputs ...] and writes outputs[i * num_outputs ...]. So `inputs` has count * num_inputs elements, and `outputs`
/// has count * num_outputs elements. The runs share the pool of the call, and may run at once,
/// so no two runs may share an output. All tensors are checked before the first run begins. The first failure is
/// returned; active runs then end after their running kernels, and the rest is not begun. A cancel or a deadline of the
/// surrounding run ends these runs too. `count` may differ from call to call; 0 does nothing.
///
/// Thread safety: any thread, during the call. Blocking: until all runs are over. Errors: those of weir_program_run,
/// with the number of the run; OUT_OF_RANGE (count); CANCELLED if the run was cancelled; FAILED_PRECONDITION for a
/// program with kernels that complete later, in a worker of a pool.
///
/// Chapter: Kernel.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_run_program(
    context: *const weir_kernel_context,
    program: *mut weir_program,
    count: usize,
    inputs: *const *mut weir_tensor,
    num_inputs: usize,
    outputs: *const *mut weir_tensor,
    num_outputs: usize,
) -> weir_status {
    guard("weir_kernel_context_run_program", || {
        // SAFETY: the caller's pointers, as documented.
        let (context, program, inputs, outputs) = unsafe {
            (
                context::borrow(context, "context")?,
                handle::share(program, "program")?,
                Tensors::new(inputs, all(count, num_inputs, "inputs")?, "inputs")?,
                Tensors::new(outputs, all(count, num_outputs, "outputs")?, "outputs")?,
            )
        };
        Program::run_many_in(&program, context, count, &|i, run| {
            let input = |k: usize| inputs.get(i * num_inputs + k);
            let output = |k: usize| outputs.get(i * num_outputs + k);
            run(&Program::bind(&program, (num_inputs, &input), (num_outputs, &output))?)
        })
    })
}

/// The failure of a run that was started with weir_program_start, as of weir_thread_get_failure; code is WEIR_OK until
/// it is done, and if it succeeded. Reading it changes nothing.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
///
/// Chapter: Failures.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_get_failure(run: *const weir_run, failure: *mut weir_failure) -> weir_status {
    guard("weir_run_get_failure", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { failure::describe(failure, handle::borrow(run, "run")?.error().as_ref()) }
    })
}
