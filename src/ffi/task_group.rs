//! Task groups.
//!
//! Chapter: Task group.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::task::borrow_pool;
use super::{context, handle, notice};
use crate::abi::*;
use crate::base::{Error, Ref, Result};
use crate::memory::heap;
use crate::stream::KeptListener;
use crate::sync::fork;
use crate::threadpool::ThreadPool;
use crate::threadpool::group::{self, GroupListener, TaskArgument};
use std::ffi::c_void;
use std::sync::Arc;

/// Creates a group of tasks: weir_task_group_spawn adds tasks, weir_task_group_synchronize runs those that have not
/// begun and waits for the rest. Helpers come from `pool`, within its budget: inside of a kernel or a region the
/// threads are shared with it. NULL: the tasks run in the threads that spawn and wait.
///
/// Groups and tasks allocate no memory after the first groups of a thread. A thread holds at most 256 tasks that have
/// not begun, of all its groups; weir_task_group_spawn runs further ones itself. At most 64 threads hold tasks at a
/// time; on others each task runs in its spawn. A group that is created inside of a task is nested in that task's
/// group: cancelling the outer group stops it too, and a wait for the outer group helps with it.
///
/// Ownership: the group holds the pool. Errors: FAILED_PRECONDITION if the pool is closed; RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_create(
    pool: *mut weir_threadpool,
    out_group: *mut *mut weir_task_group,
) -> weir_status {
    guard("weir_task_group_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, pool) = unsafe { (out_ptr(out_group, "out_group")?, borrow_pool(pool.cast_const())?) };
        make(pool.as_deref(), out)
    })
}

/// As weir_task_group_create, on the pool of a kernel's call. The group may be used until the kernel returns.
///
/// Thread safety: the kernel's thread. Errors: RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_create_task_group(
    context: *mut weir_kernel_context,
    out_group: *mut *mut weir_task_group,
) -> weir_status {
    guard("weir_kernel_context_create_task_group", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, context) = unsafe { (out_ptr(out_group, "out_group")?, context::borrow(context, "context")?) };
        context.with_pool(|pool| make(pool, out))
    })
}

#[inline]
fn make(pool: Option<&Ref<ThreadPool>>, out: &mut *mut weir_task_group) -> Result<()> {
    fork::check()?;
    let group = loop {
        match group::create(pool) {
            Some(group) => break group,
            // Other threads may take all that are made here.
            None => heap::whole(|| {
                group::grow();
                Ok(())
            })?,
        }
    };
    *out = std::ptr::from_ref(group).cast_mut().cast();
    Ok(())
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_retain(group: *mut weir_task_group) -> weir_status {
    guard("weir_task_group_retain", || {
        // SAFETY: the caller's handle, as documented.
        group::retain(unsafe { handle::group(group.cast_const()) }?);
        Ok(())
    })
}

/// Gives up one reference. NULL does nothing. If it was the last one and tasks are left, those that have not begun are
/// skipped and their arguments destroyed, now or when they would have begun; running tasks continue. A group with a
/// notice (weir_task_group_notify) continues whole, until the notice has arrived.
///
/// Thread safety: any thread, also a task of the group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_release(group: *mut weir_task_group) {
    guard_release("weir_task_group_release", || {
        // SAFETY: the caller's handle, as documented.
        if let Ok(group) = unsafe { handle::group(group.cast_const()) } {
            group::release(group);
        }
    });
}

/// Adds a task: fn(arg), once, on any thread that may work for the pool, now or later. This call may run it itself:
/// where many tasks are waiting already and tasks of this function have turned out small, and where there is no room.
/// Do not hold a lock during a spawn that the task takes too. A status other than WEIR_OK stops the group: tasks that
/// have not begun are skipped, and weir_task_group_synchronize returns it. Tasks may spawn into their own group.
/// `destroy`, if it is not NULL, is called once with `arg` when the task is done or skipped.
///
/// Thread safety: any thread; a caller outside of the group's tasks holds a reference, and spawns before the wait that
/// is to cover the task. Blocking: never, except for the task if it runs here. Ownership: `arg` until it is destroyed.
/// Errors: then `arg` stays with the caller.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_spawn(
    group: *mut weir_task_group,
    r#fn: weir_host_fn,
    arg: *mut c_void,
    destroy: weir_destroy_fn,
) -> weir_status {
    guard("weir_task_group_spawn", || {
        // SAFETY: the caller's handle, as documented.
        let (group, task) = unsafe { (handle::group(group.cast_const())?, r#fn.ok_or_else(|| Error::null("fn"))?) };
        group::spawn(group, task, TaskArgument::Pointer(arg, destroy));
        Ok(())
    })
}

/// As weir_task_group_spawn, with a copy of `size` bytes at `data`, 40 at most: `fn` is called with the address of a
/// copy, which is aligned as a uint64_t and lives during the call.
///
/// Thread safety: as weir_task_group_spawn. Blocking: as there. Ownership: `data` is read during the call. Errors:
/// OUT_OF_RANGE if size is above 40.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_spawn_copy(
    group: *mut weir_task_group,
    r#fn: weir_host_fn,
    data: *const c_void,
    size: usize,
) -> weir_status {
    guard("weir_task_group_spawn_copy", || {
        // SAFETY: the caller's handle, as documented.
        let (group, task) = unsafe { (handle::group(group.cast_const())?, r#fn.ok_or_else(|| Error::null("fn"))?) };
        if size > group::ROOM {
            return Err(Error::out_of_range(format!("size is {size}, expected {} or less", group::ROOM)));
        }
        if data.is_null() && size > 0 {
            return Err(Error::null("data"));
        }
        // SAFETY: so many bytes of the caller's, as documented.
        let bytes = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) } };
        group::spawn(group, task, TaskArgument::Bytes(bytes));
        Ok(())
    })
}

/// Waits until all tasks are done that were spawned before, and those that they spawned into the group. It runs those
/// that have not begun, and tasks of groups nested in them; never anything else. It sleeps only while other threads run
/// the rest, after spinning for 20 us. Then the group is as new and may be used again.
///
/// The stack grows with the depth of tasks that wait inside of one another, like that of a recursive function: by less
/// than 1 KiB for each, besides the needs of the tasks themselves.
///
/// On a pool with WEIR_THREADPOOL_OWN_THREADS_ONLY a foreign thread runs none of the work, and sleeps; it runs only
/// tasks that the pool refuses.
///
/// Thread safety: any thread; of several that wait at once for a stopped group, one receives the status. Blocking:
/// until the tasks are done. Errors: the first status other than WEIR_OK that a task returned; CANCELLED
/// (weir_task_group_cancel); FAILED_PRECONDITION in a task of the group itself, or of one that was made inside of its
/// tasks.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_synchronize(group: *mut weir_task_group) -> weir_status {
    guard("weir_task_group_synchronize", || {
        // SAFETY: the caller's handle, as documented.
        group::wait(unsafe { handle::group(group.cast_const()) }?)
    })
}

/// Cancels the group: tasks that have not begun, of this group and of groups nested in its tasks, are skipped. Running
/// tasks continue, and can ask (weir_task_group_is_stopped). It holds until a wait has returned CANCELLED, or a notice
/// has reported it, so a cancel before the first spawn is not lost. A group that a task has stopped keeps that status.
///
/// Thread safety: any thread, also a task of the group.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_cancel(group: *mut weir_task_group) -> weir_status {
    guard("weir_task_group_cancel", || {
        // SAFETY: the caller's handle, as documented.
        group::cancel(unsafe { handle::group(group.cast_const()) }?);
        Ok(())
    })
}

/// Whether tasks of the group that have not begun are skipped (1) or not (0): the group, or one that it is nested in,
/// was cancelled or had a task that failed. Long tasks can use it to end early.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_is_stopped(
    group: *const weir_task_group,
    out_stopped: *mut i32,
) -> weir_status {
    guard("weir_task_group_is_stopped", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, group) = unsafe { (out_value(out_stopped, "out_stopped")?, handle::group(group)?) };
        out.set(i32::from(group.is_stopped()));
        Ok(())
    })
}

/// A listener of the host's, for a group.
struct GroupNotice(KeptListener);

impl GroupListener for GroupNotice {
    fn done(&self, error: Option<&Error>) {
        self.0.tell(error, None);
    }

    fn adopt(&self) {
        self.0.adopt();
    }
}

/// Tells the host, once, when all spawned tasks are done: for callers that must not wait. Call it after the last spawn
/// from outside; if nothing is left then, the notice arrives before this call returns. The notice has the status that a
/// wait would return, and no run. From this call on the pool owes the tasks a thread. If it refuses, or there is none,
/// this call runs the tasks that have not begun, and so does each later spawn. The group is as new after the notice.
///
/// Blocking: never, except for the tasks that it runs on a pool that refuses them. Ownership: `notice` is read during
/// the call; its ctx is released with `release`. The notice holds the group until it has arrived. Errors:
/// FAILED_PRECONDITION if there is a notice already; RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_task_group_notify(
    group: *mut weir_task_group,
    notice: *const weir_notice,
) -> weir_status {
    guard("weir_task_group_notify", || {
        // SAFETY: the caller's pointers, as documented.
        let (group, listener) =
            unsafe { (handle::group(group.cast_const())?, notice::read("weir_task_group_notify", notice, "notice")?) };
        heap::check()?;
        group::notify(group, Arc::new(GroupNotice(KeptListener::new(listener))))
    })
}
