//! Communicators.
//!
//! Chapter: Communicator.

use super::argument::{array_mut, failure_text, out_ptr, out_value, string};
use super::guard::{guard, guard_release};
use super::kernel_options::kernel_options;
use super::{handle, versioned};
use crate::abi::*;
use crate::base::text::fixed;
use crate::base::{Code, Error, Ref, Result, dtype};
use crate::comm::host::HostTransport;
use crate::comm::local::LocalTransport;
use crate::comm::transport::{FIRST_OWN_TAG, Transport};
use crate::comm::{
    CommOptions, CommSettings, Communication, Communicator, DeviceCommunication, StreamCommunication, agree, algorithm,
};
use crate::engine::BoundKernel;
use crate::kernel::Kernel;
use crate::memory::heap;
use crate::ops::check::flags;
use crate::sync::ambient;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_comm_op_value as Op;
use weir_comm_reduction_value as Reduction;

const MOST_LOCAL: i32 = 4096;

/// # Safety
/// The pointers are NULL or as their documentation says.
unsafe fn read_options(options: *const weir_comm_options) -> Result<CommOptions> {
    const OWN_THREAD: u64 = weir_comm_option_flags::WEIR_COMM_OWN_THREAD as u64;
    const CHECKED: u64 = weir_comm_option_flags::WEIR_COMM_CHECKED as u64;
    const TENSORS_STAY: u64 = weir_comm_option_flags::WEIR_COMM_TENSORS_STAY as u64;
    // SAFETY: as demanded of the caller.
    let options = unsafe { versioned::read_or_zero(options, "options")? };
    let bits = flags(options.flags, OWN_THREAD | CHECKED | TENSORS_STAY, "options->flags")?;
    // SAFETY: as demanded of the caller.
    let name = unsafe { if options.name.is_null() { "comm" } else { string(options.name, "options->name")? } };
    Ok(CommOptions {
        name: name.to_owned(),
        has_thread: bits & OWN_THREAD != 0,
        is_checked: bits & CHECKED != 0,
        do_tensors_stay: bits & TENSORS_STAY != 0,
        limit_ns: options.limit_ns,
    })
}

/// Creates a communicator over a transport of the host's. Each rank creates one; the call itself does not communicate.
///
/// Ownership: the vtable is copied; `ctx` passes to the communicator, which calls release for it when it is gone, on
/// success alone. Errors: INVALID_ARGUMENT (NULL, a required function is missing, flags that do not go together);
/// OUT_OF_RANGE (what get_info says); UNIMPLEMENTED (WEIR_COMM_CHECKED without control messages); the status of
/// get_info.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_create(
    vtable: *const weir_comm_vtable,
    ctx: *mut c_void,
    options: *const weir_comm_options,
    out_comm: *mut *mut weir_comm,
) -> weir_status {
    guard("weir_comm_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options, transport) = unsafe {
            (
                out_ptr(out_comm, "out_comm")?,
                read_options(options)?,
                HostTransport::new(versioned::read(vtable, "vtable")?, ctx)?,
            )
        };
        let comm = heap::whole(|| {
            let owned = transport.owned();
            let comm = Communicator::create(Arc::new(transport), options)?;
            // ORDERING: Relaxed; read when the last reference goes, which is ordered by the count of references.
            owned.store(true, Relaxed);
            Ok(comm)
        })?;
        handle::into_c(comm, out)
    })
}

/// Creates a communicator for each of `size` ranks in this process, for tests, and for ranks that are threads. A rank
/// is used in one thread at a time, or several ranks in one. Reductions are in rank order, and a send waits for its
/// receive. weir_comm_split and weir_comm_recover of such a rank wait for all others, so these need a thread each.
///
/// `out_comms` has `size` elements, for the communicators in rank order. Errors: INVALID_ARGUMENT; OUT_OF_RANGE (size
/// is not 1 to 4096).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_create_local(
    size: i32,
    options: *const weir_comm_options,
    out_comms: *mut *mut weir_comm,
) -> weir_status {
    guard("weir_comm_create_local", || {
        if !(1..=MOST_LOCAL).contains(&size) {
            return Err(Error::out_of_range(format!("size is {size}, expected 1 to {MOST_LOCAL}")));
        }
        // SAFETY: the caller's pointers, as documented.
        let (outs, options) = unsafe { (array_mut(out_comms, size as usize, "out_comms")?, read_options(options)?) };
        let create = |transport| Communicator::create(Arc::new(transport), options.clone());
        let comms: Vec<Ref<Communicator>> =
            heap::whole(|| LocalTransport::create(size as usize).into_iter().map(create).collect())?;
        // All or none: a call that fails gives nothing that nobody would release.
        heap::check()?;
        outs.iter_mut().zip(comms).for_each(|(out, comm)| handle::begun_into_c(comm, out));
        Ok(())
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_retain(comm: *mut weir_comm) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_comm_retain", || unsafe { handle::retain(comm, "comm") })
}

/// Gives up one reference. NULL does nothing. Kernels keep their communicator, and so does a call of a stream or a run
/// that waits for an operation: without a limit one that never ends keeps it, its tensors and the transport for good.
/// The transport is released with the last reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_release(comm: *mut weir_comm) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_comm_release", || unsafe { handle::release(comm) });
}

/// Fills *out_info. Operations may begin and end meanwhile: then each figure is one of a recent moment.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_get_info(comm: *const weir_comm, out_info: *mut weir_comm_info) -> weir_status {
    guard("weir_comm_get_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let comm = handle::borrow(comm, "comm")?;
            let (of, figures) = (comm.info(), comm.figures());
            let info = weir_comm_info {
                struct_size: 0,
                rank: of.rank as i32,
                size: of.size as i32,
                flags: of.flags,
                begun: figures.begun,
                ended: figures.ended,
                built: algorithm::built(of),
                quarantined_bytes: figures.quarantined_bytes,
                dead: u32::from(figures.is_dead),
                recoverable: u32::from(of.can_recover),
                transport: fixed(&of.name),
                device_ops: of.on_device.map_or(0, |on| on.capabilities.ops),
            };
            versioned::write(out_info, &info, "out_info")
        }
    })
}

/// Passes a new communicator over the made transport to the host.
fn made(transport: Arc<dyn Transport>, options: CommOptions, out: &mut *mut weir_comm) -> Result<()> {
    handle::into_c(heap::whole(|| Communicator::create(transport, options))?, out)
}

/// Creates a communicator among the same ranks, with operations of its own, for runs at once. All ranks call it, in the
/// same order among their calls of this kind. `options` NULL: as for `comm`.
///
/// The transport's duplicate is called at once, beside what weir's other threads do with `comm`: unless the transport
/// allows that, no operation of `comm` is open meanwhile, and it has no thread of weir's own.
///
/// Blocking: as the transport's duplicate; never for local ranks. Errors: FAILED_PRECONDITION (in another thread, for a
/// transport that says WEIR_COMM_ONE_THREAD); UNIMPLEMENTED (the transport has no duplicate); that of a dead
/// communicator; the transport's.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_duplicate(
    comm: *mut weir_comm,
    options: *const weir_comm_options,
    out_comm: *mut *mut weir_comm,
) -> weir_status {
    guard("weir_comm_duplicate", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, comm, options) = unsafe {
            let out = out_ptr(out_comm, "out_comm")?;
            let comm = handle::borrow(comm, "comm")?;
            (out, comm, options_or(options, comm)?)
        };
        made(ambient::call(|| comm.duplicate_transport())?, options, out)
    })
}

/// # Safety
/// As of `read_options`.
unsafe fn options_or(options: *const weir_comm_options, comm: &Communicator) -> Result<CommOptions> {
    // SAFETY: as demanded of the caller.
    if options.is_null() { Ok(comm.options().clone()) } else { unsafe { read_options(options) } }
}

/// Creates a communicator among the ranks that pass the same `color`, ordered by `key`, then by their rank. A color
/// below 0 gives none: *out_comm is NULL. All ranks call it. `options` NULL: as for `comm`.
///
/// The transport's split is called as its duplicate is by weir_comm_duplicate.
///
/// Blocking: as the transport's split, which waits for all ranks. Errors: UNIMPLEMENTED (the transport has no split);
/// otherwise as weir_comm_duplicate.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_split(
    comm: *mut weir_comm,
    color: i32,
    key: i32,
    options: *const weir_comm_options,
    out_comm: *mut *mut weir_comm,
) -> weir_status {
    guard("weir_comm_split", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, comm, options) = unsafe {
            let out = out_ptr(out_comm, "out_comm")?;
            let comm = handle::borrow(comm, "comm")?;
            (out, comm, options_or(options, comm)?)
        };
        match ambient::call(|| comm.split_transport(color, key))? {
            Some(transport) => made(transport, options, out),
            None => Ok(()),
        }
    })
}

/// Makes progress with the communicator's operations for up to `budget_ns`, and returns at once when none is left.
/// *out_pending receives how many are left. A host whose threads do not wait in weir calls it now and then; for a
/// transport that says WEIR_COMM_ONE_THREAD, in that thread.
///
/// Blocking: for at most `budget_ns`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_progress(
    comm: *mut weir_comm,
    budget_ns: u64,
    out_pending: *mut i32,
) -> weir_status {
    guard("weir_comm_progress", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, comm) = unsafe { (out_value(out_pending, "out_pending")?, handle::share(comm, "comm")?) };
        out.set(i32::try_from(comm.progress(budget_ns)).unwrap_or(i32::MAX));
        Ok(())
    })
}

/// Gives up: operations that are open, here and on all other ranks, end with ABORTED and this text, and the
/// communicator takes no more of them. `text` (may be NULL) says why. In any thread; where the transport is for another
/// one (WEIR_COMM_ONE_THREAD), that one tells the other ranks, as soon as it waits in weir or calls weir_comm_progress.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_abort(comm: *mut weir_comm, text: *const c_char) -> weir_status {
    guard("weir_comm_abort", || {
        // SAFETY: the caller's pointers, as documented.
        let (comm, text) = unsafe {
            (
                handle::share(comm, "comm")?,
                if text.is_null() { "the host has said so" } else { failure_text(text, "text")? },
            )
        };
        comm.give_up(Error::new(Code::Aborted, format!("{}: {text}", comm.label())));
        Ok(())
    })
}

/// After a failure: creates a communicator among the ranks that are left, in their order, if the transport can
/// (weir_comm_info.recoverable). All of them call it. `options` NULL: as for `comm`.
///
/// Blocking: as the transport's recover. Errors: FAILED_PRECONDITION (comm is not dead, or in another thread, for a
/// transport that says WEIR_COMM_ONE_THREAD); UNIMPLEMENTED (the transport
/// has no recover: the ranks can only end); the transport's.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_recover(
    comm: *mut weir_comm,
    options: *const weir_comm_options,
    out_comm: *mut *mut weir_comm,
) -> weir_status {
    guard("weir_comm_recover", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, comm, options) = unsafe {
            let out = out_ptr(out_comm, "out_comm")?;
            let comm = handle::borrow(comm, "comm")?;
            (out, comm, options_or(options, comm)?)
        };
        made(ambient::call(|| comm.recovered_transport())?, options, out)
    })
}

fn op_of(op: weir_comm_op) -> Result<Op> {
    const ALL: [Op; 9] = [
        Op::WEIR_COMM_SEND,
        Op::WEIR_COMM_RECV,
        Op::WEIR_COMM_BROADCAST,
        Op::WEIR_COMM_REDUCE,
        Op::WEIR_COMM_ALL_REDUCE,
        Op::WEIR_COMM_ALL_GATHER,
        Op::WEIR_COMM_REDUCE_SCATTER,
        Op::WEIR_COMM_ALL_TO_ALL,
        Op::WEIR_COMM_BARRIER,
    ];
    let known = ALL.into_iter().find(|value| *value as u32 == op);
    known.ok_or_else(|| Error::invalid(format!("desc->op is {op}, which is no operation")))
}

fn reduction_of(reduction: weir_comm_reduction) -> Result<Reduction> {
    const ALL: [Reduction; 4] =
        [Reduction::WEIR_COMM_SUM, Reduction::WEIR_COMM_PRODUCT, Reduction::WEIR_COMM_MIN, Reduction::WEIR_COMM_MAX];
    if reduction == 0 {
        return Ok(Reduction::WEIR_COMM_SUM);
    }
    let known = ALL.into_iter().find(|value| *value as u32 == reduction);
    known.ok_or_else(|| Error::invalid(format!("desc->reduction is {reduction}, which is no reduction")))
}

fn settings(desc: &weir_communication, comm: &Communicator) -> Result<CommSettings> {
    const DETERMINISTIC: u64 = weir_communication_flags::WEIR_COMMUNICATION_DETERMINISTIC as u64;
    let op = op_of(desc.op)?;
    let reduces = matches!(op, Op::WEIR_COMM_REDUCE | Op::WEIR_COMM_ALL_REDUCE | Op::WEIR_COMM_REDUCE_SCATTER);
    let is_message = matches!(op, Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV);
    let reduction = reduces.then(|| reduction_of(desc.reduction)).transpose()?;
    if !reduces && desc.reduction != 0 {
        return Err(Error::invalid(format!("desc->reduction is {}, and nothing is reduced", desc.reduction)));
    }
    let bits = flags(desc.flags, DETERMINISTIC, "desc->flags")?;
    if bits != 0 && !reduces {
        return Err(Error::invalid("desc->flags says WEIR_COMMUNICATION_DETERMINISTIC, and nothing is reduced"));
    }
    let size = comm.info().size;
    let has_peer = is_message || matches!(op, Op::WEIR_COMM_BROADCAST | Op::WEIR_COMM_REDUCE);
    let peer = match usize::try_from(desc.peer).ok().filter(|peer| *peer < size) {
        Some(peer) if has_peer || peer == 0 => peer,
        Some(peer) => return Err(Error::invalid(format!("desc->peer is {peer}, and the operation has none"))),
        None => return Err(Error::out_of_range(format!("desc->peer is {}, expected 0 to {}", desc.peer, size - 1))),
    };
    if is_message && peer == comm.info().rank {
        return Err(Error::invalid(format!("desc->peer is {peer}, which is this rank")));
    }
    if !(0..FIRST_OWN_TAG).contains(&desc.tag) || !is_message && desc.tag != 0 {
        let most = if is_message { FIRST_OWN_TAG - 1 } else { 0 };
        return Err(Error::out_of_range(format!("desc->tag is {}, expected 0 to {most}", desc.tag)));
    }
    let received = match op {
        Op::WEIR_COMM_RECV => {
            let of = |error: Error| error.within(format_args!("desc->desc"));
            let checked = desc.desc.check().map_err(of)?;
            dtype::size(checked.dtype).map_err(of)?;
            Some(checked)
        }
        _ => None,
    };
    let most = weir_limit::WEIR_MAX_ARGS as usize;
    let num_tensors = match desc.num_tensors {
        0 | 1 => 1,
        several if several > most => {
            return Err(Error::out_of_range(format!("desc->num_tensors is {several}, the limit is {most}")));
        }
        several if op == Op::WEIR_COMM_ALL_REDUCE => several,
        several => {
            return Err(Error::invalid(format!(
                "desc->num_tensors is {several}: buckets are for WEIR_COMM_ALL_REDUCE"
            )));
        }
    };
    Ok(CommSettings { op, reduction, peer, tag: desc.tag, desc: received, is_deterministic: bits != 0, num_tensors })
}

/// Creates a kernel that communicates, for weir_graph_add_kernel and weir_enqueue. Its inputs and outputs are those
/// of its operation. On all ranks the operations of a communicator begin in one order: in a graph that in which they
/// were added, and on a stream that of the calls. Between streams, and between a stream and a run, it is the order in
/// which they come to their turn: only one stream, an event between them, or a wait makes it the same on all ranks.
/// No thread is held while one is under way.
///
/// `engine` says whose memory it takes. An engine of the CPU: values of other engines are copied to and from it, and in
/// a graph the operation is a node that completes later, so the rules for such nodes hold. The engine of the device
/// that the transport takes (weir_comm_transport_info.engine_kind): the operation goes to the device's streams, in
/// their order, and the host does not wait for it. A run has the communicator until it ends; another run with it at the
/// same time fails.
///
/// Tensors in the host's memory get the outputs of a run with such kernels when it has ended well, and nothing if it
/// fails; docs/ranks.md has the exceptions.
///
/// Ownership: the kernel keeps the communicator. Errors: INVALID_ARGUMENT (also: the transport takes no memory of the
/// engine); OUT_OF_RANGE (peer, num_tensors, and tag, which is 0 on a device); UNIMPLEMENTED (an operation that the
/// transport does not do on the device, and WEIR_COMMUNICATION_DETERMINISTIC there).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_communication(
    engine: *mut weir_engine,
    comm: *mut weir_comm,
    desc: *const weir_communication,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    guard("weir_kernel_create_communication", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_kernel, "out_kernel")?;
            let (engine, comm) = (handle::share(engine, "engine")?, handle::share(comm, "comm")?);
            let (desc, options) = (versioned::read(desc, "desc")?, kernel_options(options)?);
            let device = engine.accelerator().map(|_| engine.device().kind());
            if device.is_none() && comm.info().on_host.ops == 0 {
                let text = format!("engine is {}, and {} takes no memory of the host", engine.label(), comm.label());
                return Err(Error::invalid(text));
            }
            let settings = settings(&desc, &comm)?;
            if device.is_some() && settings.tag != 0 {
                let text = format!("desc->tag is {}, and messages on a device have none", settings.tag);
                return Err(Error::out_of_range(text));
            }
            let kernel = heap::whole(|| {
                let communication = Communication::new(comm, settings, device);
                let kernel: Arc<dyn Kernel> = match device {
                    None => Arc::new(StreamCommunication(communication)),
                    Some(_) => Arc::new(DeviceCommunication::create(communication, Ref::clone(&engine))?),
                };
                BoundKernel::create(engine, kernel, &options)
            })?;
            handle::into_c(kernel, out)
        }
    })
}

/// Compares the program with those of the other ranks: whether all do the same collectives in the same order, with the
/// types and shapes of all tensors, whether each send has its receive of the same type and size, and whether nothing
/// waits for itself. Collectives that are equal are told apart by their nodes' names, if all ranks have the same names.
/// All ranks call it, with their programs; it
/// communicates a little. Operations on other communicators are not looked at.
///
/// Blocking: until all ranks have answered, or `limit_ns` has passed; then the communicator is dead. Errors:
/// FAILED_PRECONDITION (with the first operation that differs, a message without its counterpart, or the circle, and
/// the ranks; the same on every rank but for its own number); DEADLINE_EXCEEDED; the communicator's.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_agree(
    program: *const weir_program,
    comm: *mut weir_comm,
    limit_ns: u64,
) -> weir_status {
    guard("weir_program_agree", || {
        // SAFETY: the caller's handles, as documented.
        let (program, comm) = unsafe { (handle::borrow(program, "program")?, handle::share(comm, "comm")?) };
        agree::agree(program, &comm, limit_ns)
    })
}
