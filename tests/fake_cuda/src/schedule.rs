//! Scheduling: which operation runs when.
//!
//! *Tasks.* Everything that streams and graphs do becomes tasks: an operation, and which tasks it waits for. A stream
//! is its last task, its *tail*; what is submitted waits for the tail and becomes the tail. A wait for an event is a
//! task that also waits for the task that recorded it. The legacy default stream waits for the tails of all blocking
//! streams, and they for its own. A graph launch makes a task of each node, behind the stream's tail, and one behind
//! them all as the new tail. A conditional node is a task that makes those of its body as it runs, and another behind
//! them (see `condition`). There is no other kind of order, so nothing can wait that does not show in `waits`.
//!
//! *Threads.* A task that waits for nothing is *ready*. Without a seed, a thread takes the ready tasks of the highest
//! priority, those that became ready first; if a task becomes ready and no thread is free, one more begins. So two
//! streams, and two branches of a graph, do run at the same time, and a kernel that takes long holds nobody up.
//!
//! *Seeds.* With a seed there is one thread, which draws one of the ready tasks and runs it to its end before it draws
//! again. It draws only while the host waits in the driver, so that what is ready does not depend on how fast the host
//! is: a host with one thread sees the same order with the same seed, always. A query lets the thread make a step or
//! two, also drawn. A host that waits outside the driver, for what a host function or a copy to pinned memory is to
//! tell it, has been quiet for a while: then the thread draws, too.
//!
//! *Clocks.* What a task happens after is known when it becomes ready: what the host knew as it submitted it, and what
//! the tasks knew that it waited for. It is put on a chain of the checker's then (`clock`). The host learns what a task
//! knew by waiting for it, by a query that finds it done, and by being called. All threads of the host are one: what
//! they tell one another the driver does not see.
//!
//! *Failures.* A fault loses the context. What comes behind it is passed over, and its host functions are not called.

use crate::abi::Handle;
use crate::clock::{Clock, Epoch};
use crate::execute;
use crate::operation::Operation;
use crate::settings::SETTINGS;
use crate::waited;
use crate::world::{DONE, Guard, WORK, World, lock};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A point in the order: a task, also after its end.
#[derive(Debug)]
pub struct Mark {
    pub id: u64,
    is_done: AtomicBool,
    /// Known as the task becomes ready.
    clock: OnceLock<Clock>,
    epoch: OnceLock<Epoch>,
}

pub type Point = Arc<Mark>;

impl Mark {
    pub fn is_done(&self) -> bool {
        self.is_done.load(SeqCst)
    }

    /// Whoever has this clock knows that this is done.
    pub fn is_known(&self, clock: &Clock) -> bool {
        self.epoch.get().is_some_and(|epoch| epoch.is_before(clock))
    }
}

/// Where a task comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    pub stream: Handle,
    pub context: Handle,
    /// The executable graph.
    pub exec: Option<Handle>,
}

#[derive(Debug)]
pub struct Task {
    pub mark: Point,
    pub name: Arc<str>,
    pub origin: Origin,
    pub operation: Operation,
    pub epoch: Epoch,
    pub clock: Clock,
    waits: usize,
    next: Vec<u64>,
}

/// The longest time for which a host with work in streams calls nothing of the driver before the driver goes on by
/// itself.
const QUIET: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Schedule {
    last: u64,
    tasks: HashMap<u64, Task>,
    /// Priority, then number.
    ready: BTreeSet<(i32, u64)>,
    running: usize,
    threads: usize,
    idle: usize,
    /// What threads of the host wait for.
    demands: Vec<Point>,
    /// Tasks that queries let run.
    steps: usize,
    random: u64,
    last_call: Instant,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule {
            last: 0,
            tasks: HashMap::new(),
            ready: BTreeSet::new(),
            running: 0,
            threads: 0,
            idle: 0,
            demands: Vec::new(),
            steps: 0,
            random: SETTINGS.seed.unwrap_or(0),
            last_call: Instant::now(),
        }
    }
}

impl Schedule {
    /// What is drawn from now on is what follows this seed.
    pub fn reseed(&mut self, seed: u64) {
        self.random = seed;
    }

    fn draw(&mut self, below: usize) -> usize {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }

    /// Whether there is something to run, or something runs.
    pub fn has_work(&self) -> bool {
        !self.tasks.is_empty() || self.running > 0
    }

    /// With a seed, too.
    pub fn run_all(&mut self) {
        self.steps = usize::MAX;
    }

    pub fn called(&mut self) {
        self.last_call = Instant::now();
    }

    /// Takes the task that runs next, if one may.
    fn take(&mut self) -> Option<Task> {
        let chosen = match SETTINGS.seed {
            None => *self.ready.first()?,
            Some(_) => {
                self.demands.retain(|point| !point.is_done());
                let is_asked = !self.demands.is_empty() || self.steps > 0 || self.last_call.elapsed() >= QUIET;
                if self.ready.is_empty() || !is_asked {
                    return None;
                }
                self.steps = self.steps.saturating_sub(1);
                let drawn = self.draw(self.ready.len());
                *self.ready.iter().nth(drawn)?
            }
        };
        self.ready.remove(&chosen);
        self.running += 1;
        self.tasks.remove(&chosen.1)
    }
}

impl World {
    /// A task behind others, which begins as soon as they have ended.
    pub fn add_task(&mut self, name: String, origin: Origin, operation: Operation, after: &[Point]) -> Point {
        self.schedule.last += 1;
        let id = self.schedule.last;
        let mark =
            Arc::new(Mark { id, is_done: AtomicBool::new(false), clock: OnceLock::new(), epoch: OnceLock::new() });
        let name: Arc<str> = format!("{name} (operation {id}, {})", self.stream_name(origin.stream)).into();
        self.opened(&mark, &name, origin.context, &operation);
        let task = Task {
            mark: Arc::clone(&mark),
            name,
            origin,
            operation,
            epoch: Epoch::default(),
            clock: self.host.clone(),
            waits: 1,
            next: Vec::new(),
        };
        self.schedule.tasks.insert(id, task);
        self.wait_for(id, after);
        self.release(id);
        mark
    }

    /// A task that has not begun waits for more; it must wait for something still.
    pub fn wait_for(&mut self, id: u64, after: &[Point]) {
        for point in after {
            let done = point.is_done().then(|| point.clock.get().cloned()).flatten();
            let before = point.id;
            if let Some(clock) = done {
                if let Some(task) = self.schedule.tasks.get_mut(&id) {
                    task.clock.join(&clock);
                }
                continue;
            }
            let is_new = match self.schedule.tasks.get_mut(&before) {
                Some(before) => {
                    before.next.push(id);
                    true
                }
                // It runs just now.
                None => match self.running.get_mut(&before) {
                    Some(next) => {
                        next.push(id);
                        true
                    }
                    None => false,
                },
            };
            if let Some(task) = self.schedule.tasks.get_mut(&id).filter(|_| is_new) {
                task.waits += 1;
            }
        }
    }

    /// A task waits for one thing less.
    fn release(&mut self, id: u64) {
        let Some(task) = self.schedule.tasks.get_mut(&id) else { return };
        task.waits -= 1;
        if task.waits > 0 {
            return;
        }
        let (priority, wanted) = self.streams.get(&task.origin.stream).map_or((0, 0), |s| (s.priority, s.chain));
        task.epoch = self.chains.place(&mut task.clock, wanted);
        let _ = task.mark.clock.set(task.clock.clone());
        let _ = task.mark.epoch.set(task.epoch);
        if task.origin.exec.is_none()
            && let Some(stream) = self.streams.get_mut(&task.origin.stream)
        {
            stream.chain = task.epoch.chain;
        }
        let schedule = &mut self.schedule;
        schedule.ready.insert((priority, id));
        let most = if SETTINGS.seed.is_some() { 1 } else { 256 };
        if schedule.ready.len() > schedule.idle && schedule.threads < most {
            schedule.threads += 1;
            let begun = std::thread::Builder::new().name("fake-cuda".to_owned()).spawn(work);
            if begun.is_err() && schedule.threads == 1 {
                crate::call::stop("no thread for the device");
            }
        }
        WORK.notify_one();
    }

    /// A task has run.
    fn complete(&mut self, task: Task) {
        let next = self.running.remove(&task.mark.id).unwrap_or_default();
        task.mark.is_done.store(true, SeqCst);
        self.schedule.running -= 1;
        for id in task.next.into_iter().chain(next) {
            if let Some(waiter) = self.schedule.tasks.get_mut(&id) {
                waiter.clock.join(&task.clock);
            }
            self.release(id);
        }
        DONE.notify_all();
    }

    /// The host knows that this is done.
    pub fn learn(&mut self, point: &Point) {
        if let Some(clock) = point.clock.get() {
            self.look_at_pinned();
            self.host.join(clock);
            self.unguard();
            self.close();
        }
    }

    /// The host asks whether this is done, and learns of it if it is.
    pub fn ask(mut world: Guard, point: &Point) -> (Guard, bool) {
        if SETTINGS.seed.is_some() && !point.is_done() {
            world.schedule.steps = world.schedule.draw(3);
            WORK.notify_all();
            // A host function may wait for what the host does behind this query.
            let end = Instant::now() + Duration::from_secs(2);
            while world.schedule.running > 0 || (world.schedule.steps > 0 && !world.schedule.ready.is_empty()) {
                let Some(left) = end.checked_duration_since(Instant::now()) else { break };
                world = DONE.wait_timeout(world, left).map_or_else(|e| e.into_inner().0, |(world, _)| world);
            }
            world.schedule.steps = 0;
        }
        let is_done = point.is_done();
        if is_done {
            world.learn(point);
        }
        (world, is_done)
    }

    /// The host waits until all these are done.
    pub fn wait(mut world: Guard, points: &[Point]) -> Guard {
        if points.iter().any(|point| !point.is_done()) {
            world.schedule.demands.extend(points.iter().cloned());
            WORK.notify_all();
            while points.iter().any(|point| !point.is_done()) {
                world = DONE.wait(world).unwrap_or_else(PoisonError::into_inner);
            }
        }
        points.iter().for_each(|point| world.learn(point));
        world
    }
}

/// A thread of the device's.
fn work() {
    let mut world = lock();
    loop {
        let Some(task) = world.schedule.take() else {
            world.schedule.idle += 1;
            world = match SETTINGS.seed {
                Some(_) if !world.schedule.ready.is_empty() => {
                    WORK.wait_timeout(world, QUIET / 2).map_or_else(|e| e.into_inner().0, |(world, _)| world)
                }
                _ => WORK.wait(world).unwrap_or_else(PoisonError::into_inner),
            };
            world.schedule.idle -= 1;
            continue;
        };
        world.look_at_pinned();
        world.running.insert(task.mark.id, Vec::new());
        if world.lost(task.origin.context).is_some() {
            world.complete(task);
            continue;
        }
        let delay = world.delay(task.origin.stream);
        if let Operation::Host(_) = task.operation
            && !waited::is_leaving()
        {
            // From here on the host can know.
            world.host.join(&task.clock);
            world.unguard();
            world.close();
        }
        drop(world);
        if let Some(delay) = delay {
            std::thread::sleep(delay);
        }
        let outcome = execute::run(&task);
        world = lock();
        world.check(&task, &outcome.accesses);
        world.wrote(&task, &outcome.accesses);
        match (outcome.fault, &task.operation) {
            (Some((code, why)), _) => world.fault(&task, code, &why),
            (None, Operation::Condition(condition)) => world.condition(&task, condition),
            _ => {}
        }
        world.complete(task);
    }
}
