//! Telling the host that something is over, so that nobody has to wait for it.
//!
//! Who asks gives a `Listener`. What is going to be over, a run or the record of an event, holds a `Notice` for each
//! and tells it once. The listener calls functions of the host's, so it matters on which thread:
//!
//! - What a queue of the host's ends is told by the thread that has the queue's turn. It puts the telling off until it
//!   is done with the item (`put_off`), and then makes it (`tell_put_off`): the item counts as completed by then, and
//!   a failure is known.
//! - What a device ends may be found by any thread, also by one of the device's, or by a thread that asks whether it
//!   is over. Those send the telling to the engine's `NoticeLane`. The notice has a place there from its beginning, so
//!   sending takes no memory and cannot fail.
//! - What was over before is told by the thread that asks.
//!
//! No telling is made inside of another one on the same stack: who comes there puts it off, and the outer one goes on
//! with it. So a chain of functions that each begin what the next one hears of needs no stack.
#![forbid(unsafe_code)]

use crate::abi::weir_notice;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::sync::{
    EventCount, Mutex, ambient, fork,
    thread::{self, Group, Origin},
};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Who is told.
pub trait Listener: Debug + Send + Sync {
    /// It is over: with this failure, if it has one. `what` is the object, if there is one that the host may look at.
    fn over(&self, error: Option<&Error>, what: Option<&dyn Any>);

    /// Whether this, or letting go of the listener, calls functions of the host's. If not, any thread may do it.
    fn calls_host(&self) -> bool;

    /// It was accepted: what it has is to be let go of.
    fn adopt(&self);

    /// What it was made from.
    fn notice(&self) -> weir_notice;
}

/// What is over.
pub type What = Arc<dyn Any + Send + Sync>;

/// A listener, and where it is told.
#[derive(Debug)]
pub struct Notice {
    listener: Arc<dyn Listener>,
    by: By,
}

#[derive(Debug)]
enum By {
    /// Who has the queue's turn, behind the item.
    Turn,
    DedicatedThread(Place),
    /// Who finds that the device is done: no function of the host's is called.
    Anybody,
}

impl Notice {
    /// Of what a queue of the host's ends: by who has its turn.
    pub fn by_turn(listener: &Arc<dyn Listener>) -> Notice {
        Notice { listener: Arc::clone(listener), by: By::Turn }
    }

    /// Of what a device ends. `lane` gives the lane of its engine.
    pub(super) fn by_device<'a>(
        listener: &Arc<dyn Listener>,
        lane: impl FnOnce() -> Result<&'a Arc<NoticeLane>>,
    ) -> Result<Notice> {
        let by = if listener.calls_host() { By::DedicatedThread(lane()?.place()?) } else { By::Anybody };
        Ok(Notice { listener: Arc::clone(listener), by })
    }

    /// It will be told.
    pub fn adopt(&self) {
        self.listener.adopt();
    }

    /// It is over. Of a queue of the host's: by the thread that has its turn.
    pub fn tell(self, error: Option<Error>, what: Option<What>) {
        let telling = Telling { listener: self.listener, error, what };
        match self.by {
            By::Turn => put_off(telling),
            By::DedicatedThread(place) => place.send(telling),
            By::Anybody => telling.make(),
        }
    }

    /// It was over before anybody asked: in this thread.
    pub fn tell_here(self, error: Option<Error>, what: Option<What>) {
        put_off(Telling { listener: self.listener, error, what });
        tell_put_off();
    }
}

/// A notice and its outcome.
struct Telling {
    listener: Arc<dyn Listener>,
    error: Option<Error>,
    what: Option<What>,
}

impl Telling {
    fn make(self) {
        // What it lets go of may call the host, too.
        ambient::call(move || {
            let Telling { listener, error, what } = self;
            listener.over(error.as_ref(), what.as_ref().map(|what| &**what as &dyn Any));
            drop(listener);
        });
    }
}

/// Tellings of one thread. There is one as a rule, which takes no memory.
struct PutOff {
    first: Option<Telling>,
    rest: VecDeque<Telling>,
}

thread_local! {
    /// Emptied, memory and all, before the thread leaves the library, so that it needs no destructor: registering one
    /// allocates on each thread of the host's.
    static PUT_OFF: ManuallyDrop<RefCell<PutOff>> =
        const { ManuallyDrop::new(RefCell::new(PutOff { first: None, rest: VecDeque::new() })) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is in a telling.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Has it told by this thread, behind what it does now.
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
    // Out of memory: late is not possible, so now.
    too_many.into_iter().for_each(Telling::make);
}

/// Makes what this thread has put off. Inside of a telling that is left to who makes it.
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

/// This thread makes tellings, until this goes.
struct Outermost;

impl Drop for Outermost {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// The thread for what the devices of one engine end. It holds nothing between tellings, and ends when the engine and
/// all places have gone.
#[derive(Debug)]
pub(super) struct NoticeLane {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    list: Mutex<List>,
    called: EventCount,
}

/// There is always room for as many tellings more as there are places.
#[derive(Default)]
struct List {
    places: usize,
    tellings: VecDeque<Telling>,
    is_closed: bool,
}

impl Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} notices to come", self.list.lock().places)
    }
}

impl NoticeLane {
    /// `owner` is "engine cuda:0".
    pub fn start(owner: &str) -> Result<NoticeLane> {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let label = owner.rsplit(' ').next().unwrap_or(owner).replace(':', "");
        let group =
            Group { origin: Origin::Lane, name: format!("weir-notice-{label}"), owner: owner.to_owned(), pool: 0 };
        thread::spawn(&Arc::new(group), None, move || own.work()).map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the lane for notices of {owner}: {error}"))
        })?;
        Ok(NoticeLane { shared })
    }

    fn place(self: &Arc<Self>) -> Result<Place> {
        let mut list = self.shared.list.lock();
        let places = list.places + 1;
        list.tellings
            .try_reserve(places)
            .map_err(|_| Error::exhausted("the list of notices", places * size_of::<Telling>()))?;
        list.places = places;
        Ok(Place(Arc::clone(self)))
    }
}

impl Drop for NoticeLane {
    fn drop(&mut self) {
        // A child has no such thread, and the lock may have been taken in its parent.
        if fork::forked() {
            return;
        }
        self.shared.list.lock().is_closed = true;
        self.shared.called.advance(1);
    }
}

impl Shared {
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

/// A place in a lane's list.
#[derive(Debug)]
struct Place(Arc<NoticeLane>);

impl Place {
    fn send(self, telling: Telling) {
        let shared = &self.0.shared;
        shared.list.lock().tellings.push_back(telling);
        shared.called.advance(1);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        self.0.shared.list.lock().places -= 1;
    }
}
