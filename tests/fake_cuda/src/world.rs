//! All that there is of the driver in this process, behind one lock: devices, contexts, streams, events, and what names
//! them.

use crate::abi::{Handle, Kind};
use crate::api::object::Object;
use crate::capture::{Captures, Joined};
use crate::checker::Checker;
use crate::clock::{Chains, Clock};
use crate::graph::{Exec, Graph};
use crate::guard::Guard as Guarded;
use crate::modules::{Function, Module};
use crate::operation::Operation;
use crate::schedule::{Origin, Point, Schedule};
use crate::settings::SETTINGS;
use crate::status::{Code, Result};
use crate::waited::Waited;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

pub type Guard = MutexGuard<'static, World>;

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| Mutex::new(World::new()));
/// There is work, or someone waits for some.
pub static WORK: Condvar = Condvar::new();
/// A task has ended.
pub static DONE: Condvar = Condvar::new();

pub const NON_BLOCKING: u32 = 1;

#[derive(Debug)]
pub struct Device {
    pub primary: Option<Handle>,
    pub retained: usize,
    pub flags: u32,
    pub pool: Handle,
}

#[derive(Debug)]
pub struct Context {
    pub device: i32,
    pub flags: u32,
    pub is_primary: bool,
    pub lost: Option<Code>,
    /// Its legacy default stream.
    pub legacy: Handle,
    /// Ends of streams that were destroyed.
    orphans: Vec<Point>,
    pub peers: Vec<Handle>,
}

#[derive(Debug)]
pub struct Stream {
    pub context: Handle,
    pub flags: u32,
    pub priority: i32,
    /// Of a default stream.
    pub hidden: Option<&'static str>,
    pub tail: Option<Point>,
    /// The checker's chain that it was on last.
    pub chain: usize,
    /// It takes part in a capture.
    pub joined: Option<Joined>,
}

#[derive(Debug)]
pub struct Event {
    pub context: Handle,
    pub flags: u32,
    pub record: Option<Record>,
    /// Recorded in a capture: which one, and the nodes that it stands for.
    pub captured: Option<(u64, Vec<Handle>)>,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub point: Point,
    pub time: Arc<OnceLock<Instant>>,
}

#[derive(Debug)]
pub struct Pool {
    pub device: i32,
    pub is_default: bool,
    pub attributes: BTreeMap<i32, u64>,
    pub used: u64,
    pub most_used: u64,
    /// Other devices that may read and write its memory.
    pub open_to: BTreeSet<i32>,
}

#[derive(Debug)]
pub struct World {
    numbers: BTreeMap<Kind, usize>,
    pub devices: Vec<Device>,
    pub contexts: BTreeMap<Handle, Context>,
    pub streams: BTreeMap<Handle, Stream>,
    per_thread: HashMap<(ThreadId, Handle), Handle>,
    pub events: BTreeMap<Handle, Event>,
    pub modules: BTreeMap<Handle, Module>,
    pub functions: BTreeMap<Handle, Arc<Function>>,
    pub pools: BTreeMap<Handle, Pool>,
    /// With the references that are the program's.
    pub objects: BTreeMap<Handle, (Arc<Object>, u32)>,
    pub graphs: BTreeMap<Handle, Graph>,
    pub execs: BTreeMap<Handle, Exec>,
    /// Values of conditional handles by executable graph; none until somebody sets one.
    pub values: HashMap<(Handle, u64), Option<u32>>,
    pub captures: Captures,
    pub schedule: Schedule,
    /// Tasks that run, with those that wait for them.
    pub running: HashMap<u64, Vec<u64>>,
    pub chains: Chains,
    /// What the host knows to be done.
    pub host: Clock,
    pub checker: Checker,
    pub races: Vec<String>,
    pub guards: Vec<Guarded>,
    pub waited: Waited,
    /// What a context had when it ended.
    pub leaks: Vec<String>,
}

thread_local! {
    static CONTEXTS: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

pub fn lock() -> Guard {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// At the end of the process a thread may hold the lock for good.
pub fn try_lock() -> Option<Guard> {
    (0..100).find_map(|_| {
        let guard = WORLD.try_lock().ok();
        if guard.is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        guard
    })
}

/// The host calls the driver.
pub fn called() {
    if SETTINGS.seed.is_some() {
        lock().schedule.called();
    }
}

/// The thread's stack of contexts.
pub fn with_contexts<R>(f: impl FnOnce(&mut Vec<Handle>) -> R) -> R {
    CONTEXTS.with_borrow_mut(f)
}

pub fn current() -> Option<Handle> {
    with_contexts(|contexts| contexts.last().copied()).filter(|context| !context.is_null())
}

impl World {
    fn new() -> World {
        let mut world = World {
            numbers: BTreeMap::new(),
            devices: Vec::new(),
            contexts: BTreeMap::new(),
            streams: BTreeMap::new(),
            per_thread: HashMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            pools: BTreeMap::new(),
            objects: BTreeMap::new(),
            graphs: BTreeMap::new(),
            execs: BTreeMap::new(),
            values: HashMap::new(),
            captures: Captures::default(),
            schedule: Schedule::default(),
            running: HashMap::new(),
            chains: Chains::default(),
            host: Clock::default(),
            checker: Checker::default(),
            races: Vec::new(),
            guards: Vec::new(),
            waited: Waited::default(),
            leaks: Vec::new(),
        };
        for device in 0..SETTINGS.devices {
            let pool = world.name(Kind::Pool);
            world.pools.insert(pool, Pool::new(device, true));
            world.devices.push(Device { primary: None, retained: 0, flags: 0, pool });
        }
        world
    }

    /// A new handle.
    pub fn name(&mut self, kind: Kind) -> Handle {
        let number = self.numbers.entry(kind).or_default();
        *number += 1;
        Handle::new(kind, *number)
    }

    pub fn device(&mut self, device: i32) -> Result<&mut Device> {
        usize::try_from(device).ok().and_then(|index| self.devices.get_mut(index)).ok_or(Code::INVALID_DEVICE)
    }

    // ---- Contexts

    pub fn new_context(&mut self, device: i32, flags: u32, is_primary: bool) -> Handle {
        let context = self.name(Kind::Context);
        let legacy = self.new_stream(context, 0, 0, Some("the legacy default stream"));
        let new = Context { device, flags, is_primary, lost: None, legacy, orphans: Vec::new(), peers: Vec::new() };
        self.contexts.insert(context, new);
        context
    }

    /// The context that is current in this thread.
    pub fn context(&mut self) -> Result<Handle> {
        let context = current().ok_or(Code::INVALID_CONTEXT)?;
        if self.contexts.contains_key(&context) { Ok(context) } else { Err(Code::CONTEXT_IS_DESTROYED) }
    }

    /// Its device.
    pub fn current_device(&mut self) -> Result<i32> {
        let context = self.context()?;
        Ok(self.contexts[&context].device)
    }

    pub fn lost(&self, context: Handle) -> Option<Code> {
        match self.contexts.get(&context) {
            Some(context) => context.lost,
            None => Some(Code::CONTEXT_IS_DESTROYED),
        }
    }

    pub fn lost_current(&self) -> Option<Code> {
        self.contexts.get(&current()?).and_then(|context| context.lost)
    }

    pub fn lose(&mut self, context: Handle, code: Code) {
        if let Some(context) = self.contexts.get_mut(&context) {
            context.lost.get_or_insert(code);
        }
    }

    pub fn lose_current(&mut self, code: Code) {
        if let Some(context) = current() {
            self.lose(context, code);
        }
    }

    /// Everything that was submitted in a context.
    pub fn tails(&self, context: Handle) -> Vec<Point> {
        let orphans = self.contexts.get(&context).into_iter().flat_map(|context| context.orphans.clone());
        let streams = self.streams.values().filter(|stream| stream.context == context);
        orphans.chain(streams.filter_map(|stream| stream.tail.clone())).collect()
    }

    /// The context ends, and all that is in it. Its work must have ended.
    pub fn end_context(&mut self, context: Handle) {
        let left = self.live(Some(context));
        self.leaks.extend(left.into_iter().map(|left| format!("{left}, as {context:?} ended")));
        self.streams.retain(|_, stream| stream.context != context);
        self.per_thread.retain(|(_, of), _| *of != context);
        self.events.retain(|_, event| event.context != context);
        let modules: Vec<Handle> =
            self.modules.iter().filter(|(_, module)| module.context == context).map(|(module, _)| *module).collect();
        modules.iter().for_each(|module| self.unload(*module));
        crate::space::with(|space| {
            let starts: Vec<u64> = space.blocks_of(context).iter().map(|block| block.start).collect();
            starts.iter().for_each(|start| {
                space.free(*start);
            });
        });
        self.contexts.remove(&context);
    }

    pub fn unload(&mut self, module: Handle) {
        self.functions.retain(|_, function| function.module != module);
        if let Some(module) = self.modules.remove(&module) {
            crate::space::with(|space| {
                module.globals.values().for_each(|(start, _)| {
                    space.free(*start);
                });
            });
        }
    }

    // ---- Streams

    pub fn new_stream(&mut self, context: Handle, flags: u32, priority: i32, hidden: Option<&'static str>) -> Handle {
        let stream = match hidden {
            // Apart, so that the program's own are counted from 1.
            Some(_) => Handle::new(Kind::Stream, (1 << 24) + self.streams.len() + self.contexts.len()),
            None => self.name(Kind::Stream),
        };
        let new = Stream { context, flags, priority, hidden, tail: None, chain: 0, joined: None };
        self.streams.insert(stream, new);
        stream
    }

    /// The stream that an argument means.
    pub fn stream(&mut self, stream: Handle) -> Result<Handle> {
        let context = self.context()?;
        match stream {
            Handle::NULL | Handle::LEGACY => Ok(self.contexts[&context].legacy),
            Handle::PER_THREAD => {
                let key = (std::thread::current().id(), context);
                if let Some(stream) = self.per_thread.get(&key) {
                    return Ok(*stream);
                }
                let stream = self.new_stream(context, 0, 0, Some("a thread's default stream"));
                self.per_thread.insert(key, stream);
                Ok(stream)
            }
            _ => match self.streams.get(&stream) {
                Some(found) if found.context == context => Ok(stream),
                _ => Err(Code::INVALID_HANDLE),
            },
        }
    }

    pub fn stream_name(&self, stream: Handle) -> String {
        match self.streams.get(&stream).and_then(|stream| stream.hidden) {
            Some(name) => name.to_owned(),
            None => format!("{stream:?}"),
        }
    }

    pub fn delay(&self, stream: Handle) -> Option<Duration> {
        let is_hidden = self.streams.get(&stream).is_some_and(|stream| stream.hidden.is_some());
        let number = if is_hidden { 0 } else { stream.number() };
        SETTINGS.delays.get(&number).map(|us| Duration::from_micros(*us))
    }

    /// What the next work of a stream waits for.
    pub fn tails_before(&self, stream: Handle) -> Vec<Point> {
        let Some(this) = self.streams.get(&stream) else { return Vec::new() };
        let mut before: Vec<Point> = this.tail.iter().cloned().collect();
        if this.flags & NON_BLOCKING != 0 {
            return before;
        }
        let Some(context) = self.contexts.get(&this.context) else { return before };
        if context.legacy == stream {
            let blocking = self.streams.values().filter(|other| {
                other.context == this.context && other.flags & NON_BLOCKING == 0 && other.joined.is_none()
            });
            before.extend(blocking.filter_map(|other| other.tail.clone()));
            before.extend(context.orphans.iter().cloned());
        } else {
            before.extend(self.streams.get(&context.legacy).and_then(|legacy| legacy.tail.clone()));
        }
        // What the host knows to have ended is in its clock.
        before.retain(|point| !(point.is_done() && point.is_known(&self.host)));
        before
    }

    pub fn set_tail(&mut self, stream: Handle, point: &Point) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.tail = Some(Arc::clone(point));
        }
    }

    /// Puts an operation into a stream, which is no part of a capture; `more` is what it waits for besides.
    pub fn enqueue(&mut self, stream: Handle, name: String, operation: Operation, more: &[Point]) -> Point {
        let mut after = self.tails_before(stream);
        after.extend(more.iter().cloned());
        let context = self.streams.get(&stream).map_or(Handle::NULL, |stream| stream.context);
        let point = self.add_task(name, Origin { stream, context, exec: None }, operation, &after);
        self.set_tail(stream, &point);
        point
    }

    pub fn destroy_stream(&mut self, stream: Handle) -> Result {
        let found = self.streams.get(&stream).filter(|stream| stream.hidden.is_none()).ok_or(Code::INVALID_HANDLE)?;
        let (context, tail) = (found.context, found.tail.clone());
        self.streams.remove(&stream);
        if let Some(context) = self.contexts.get_mut(&context) {
            context.orphans.retain(|orphan| !orphan.is_done());
            context.orphans.extend(tail);
        }
        Ok(())
    }

    pub fn event(&mut self, event: Handle) -> Result<&mut Event> {
        self.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)
    }
}

impl Pool {
    pub fn new(device: i32, is_default: bool) -> Pool {
        let attributes = BTreeMap::from([(1, 1), (2, 1), (3, 1), (4, 0)]);
        Pool { device, is_default, attributes, used: 0, most_used: 0, open_to: BTreeSet::new() }
    }
}
