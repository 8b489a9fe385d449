//! Notifying the host of completions, so that no thread has to wait for them.
//!
//! The host registers a `Listener`. A run or an event's record holds a `Notice` for each and delivers it once. The
//! listener calls host functions, so it matters on which thread:
//!
//! - Completions of a host queue are delivered by the holder of its drain lock. It defers the delivery until it is done
//!   with the item (`put_off`), and then delivers (`tell_put_off`): the item counts as completed by then, and a failure
//!   is known.
//! - Any thread may find a device's completion: one of the device's, or one that queries it. They send the delivery to
//!   the engine's `NoticeThread`. The notice has a slot there from its creation, so sending takes no memory and cannot
//!   fail.
//! - An earlier completion is delivered by the thread that registers.
//!
//! No delivery is made inside of another one on the same stack: it is deferred, and the outer one continues with it. So
//! a chain of functions that each start the next one's work needs no stack.
#![forbid(unsafe_code)]

use super::listener::{KeptListener, Listener};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::sync::{
    EventCount, Mutex, ambient, fork,
    thread::{self, ThreadGroup, ThreadOrigin},
};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The completed object.
pub type What = Arc<dyn Any + Send + Sync>;

/// A listener, and the thread that notifies it.
#[derive(Debug)]
pub struct Notice {
    listener: KeptListener,
    by: NoticePath,
}

#[derive(Debug)]
enum NoticePath {
    /// The holder of the drain lock, after the item.
    Turn,
    DedicatedThread(NoticeSlot),
    /// The thread that finds the completion: no host function is called.
    Anybody,
}

impl Notice {
    /// For completions of a host queue: delivered by the holder of its drain lock.
    pub fn by_drainer(listener: Listener) -> Notice {
        Notice { listener: KeptListener::new(listener), by: NoticePath::Turn }
    }

    /// For completions of a device. `notice_thread` gives the notice thread of its engine.
    pub(super) fn by_device<'a>(
        listener: Listener,
        notice_thread: impl FnOnce() -> Result<&'a Arc<NoticeThread>>,
    ) -> Result<Notice> {
        let by = if listener.calls_host() {
            NoticePath::DedicatedThread(notice_thread()?.slot()?)
        } else {
            NoticePath::Anybody
        };
        Ok(Notice { listener: KeptListener::new(listener), by })
    }

    /// It will be delivered.
    pub fn adopt(&self) {
        self.listener.adopt();
    }

    /// Delivers it. For a host queue: by the holder of the drain lock.
    pub fn tell(self, error: Option<Error>, what: Option<What>) {
        let telling = Telling { listener: self.listener, error, what };
        match self.by {
            NoticePath::Turn => put_off(telling),
            NoticePath::DedicatedThread(slot) => slot.send(telling),
            NoticePath::Anybody => telling.make(),
        }
    }

    /// The work was over before the registration: delivers in this thread.
    pub fn tell_here(self, error: Option<Error>, what: Option<What>) {
        put_off(Telling { listener: self.listener, error, what });
        tell_put_off();
    }
}

/// A notice and its outcome.
struct Telling {
    listener: KeptListener,
    error: Option<Error>,
    what: Option<What>,
}

impl Telling {
    fn make(self) {
        // Its destructors may call the host, too.
        ambient::call(move || {
            let Telling { listener, error, what } = self;
            listener.tell(error.as_ref(), what.as_ref().map(|what| &**what as &dyn Any));
            drop(listener);
        });
    }
}

/// One thread's deferred deliveries. Usually there is one, which takes no memory.
struct PutOff {
    first: Option<Telling>,
    rest: VecDeque<Telling>,
}

thread_local! {
    /// Emptied and freed before the thread leaves the library, so that it needs no destructor: registering one
    /// allocates on each host thread.
    static PUT_OFF: ManuallyDrop<RefCell<PutOff>> =
        const { ManuallyDrop::new(RefCell::new(PutOff { first: None, rest: VecDeque::new() })) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is inside a delivery.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Defers it to the end of this thread's current work.
fn put_off(telling: Telling) {
    let too_many = PUT_OFF.with(|all| {
        let mut all = all.borrow_mut();
        if all.first.is_none() && all.rest.is_empty() {
            all.first = Some(telling);
        } else if all.rest.try_reserve(1).is_ok() {
            all.rest.push_back(telling);
        } else {
            return Some(telling);
        }
        COUNT.set(COUNT.get() + 1);
        None
    });
    // Out of memory: it cannot be deferred, so now.
    too_many.into_iter().for_each(Telling::make);
}

/// Makes this thread's deferred deliveries. Inside of a delivery, the outer one does.
#[inline]
pub(super) fn tell_put_off() {
    if COUNT.get() > 0 {
        tell_all();
    }
}

#[cold]
fn tell_all() {
    if INSIDE.replace(true) {
        return;
    }
    let _outermost = Outermost;
    let next = || {
        PUT_OFF.with(|all| {
            let mut all = all.borrow_mut();
            all.first.take().or_else(|| all.rest.pop_front())
        })
    };
    while let Some(telling) = next() {
        COUNT.set(COUNT.get() - 1);
        telling.make();
    }
    PUT_OFF.with(|all| drop(std::mem::take(&mut all.borrow_mut().rest)));
}

/// Marks this thread as delivering while it lives.
struct Outermost;

impl Drop for Outermost {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// The thread for completions of one engine's devices. It holds nothing between deliveries, and ends when the engine
/// and all slots are gone.
#[derive(Debug)]
pub(super) struct NoticeThread {
    shared: Arc<NoticeShared>,
}

#[derive(Default)]
struct NoticeShared {
    list: Mutex<NoticeList>,
    called: EventCount,
}

/// There is always room for one more delivery per slot.
#[derive(Default)]
struct NoticeList {
    places: usize,
    tellings: VecDeque<Telling>,
    is_closed: bool,
}

impl Debug for NoticeShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} notices to come", self.list.lock().places)
    }
}

impl NoticeThread {
    /// `owner` is "engine cuda:0".
    pub fn start(owner: &str) -> Result<NoticeThread> {
        fork::check()?;
        let shared = Arc::<NoticeShared>::default();
        let own = Arc::clone(&shared);
        let label = owner.rsplit(' ').next().unwrap_or(owner).replace(':', "");
        let group = ThreadGroup {
            origin: ThreadOrigin::Lane,
            name: format!("weir-notice-{label}"),
            owner: owner.to_owned(),
            pool: 0,
        };
        thread::spawn(&Arc::new(group), None, move || own.work()).map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the lane for notices of {owner}: {error}"))
        })?;
        Ok(NoticeThread { shared })
    }

    fn slot(self: &Arc<Self>) -> Result<NoticeSlot> {
        let mut list = self.shared.list.lock();
        let places = list.places + 1;
        list.tellings
            .try_reserve(places)
            .map_err(|_| Error::exhausted("the list of notices", places * size_of::<Telling>()))?;
        list.places = places;
        Ok(NoticeSlot(Arc::clone(self)))
    }
}

impl Drop for NoticeThread {
    fn drop(&mut self) {
        // A forked child has no such thread, and the lock may have been held in its parent.
        if fork::forked() {
            return;
        }
        self.shared.list.lock().is_closed = true;
        self.shared.called.advance(1);
    }
}

impl NoticeShared {
    fn work(&self) {
        loop {
            let seen = self.called.reached();
            let (telling, is_closed) = {
                let mut list = self.list.lock();
                (list.tellings.pop_front(), list.is_closed)
            };
            match telling {
                Some(telling) => {
                    put_off(telling);
                    tell_put_off();
                }
                None if is_closed => return,
                None => drop(self.called.wait(seen + 1, 0, Deadline::NEVER)),
            }
        }
    }
}

/// A slot in the notice thread's list.
#[derive(Debug)]
struct NoticeSlot(Arc<NoticeThread>);

impl NoticeSlot {
    fn send(self, telling: Telling) {
        let shared = &self.0.shared;
        shared.list.lock().tellings.push_back(telling);
        shared.called.advance(1);
    }
}

impl Drop for NoticeSlot {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        self.0.shared.list.lock().places -= 1;
    }
}
