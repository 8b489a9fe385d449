//! An emulated device behind one that makes a mistake on request: a wait is left out, an event is recorded too soon, a
//! value is written where another one still is.

use crate::kit::emulated::{Emulated, Emulation};
use std::any::Any;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use weir_core::base::time::Deadline;
use weir_core::base::{Code, Error, Ref, Result};
use weir_core::device::*;
use weir_core::engine::{Engine, EngineAttr, MemoryMode, ThreadMode};
use weir_core::memory::View;

/// A mistake, once in the life of the device.
#[derive(Clone, Debug, Default)]
pub enum Mistake {
    #[default]
    None,
    /// The wait with this number, of streams for work, is left out.
    NoWait(usize),
    /// The record with this number comes before the launch in front of it.
    EarlyRecord(usize),
    /// One node writes where the other one's output is.
    Alias { writer: &'static str, over: &'static str },
    /// The edge of recordings with this number is left out.
    NoEdge(usize),
    /// The device records nothing, and says so when it is asked to.
    NoRecording,
    /// Its events tell so many nanoseconds always: these if the last work was a launch, those if it was a recording's.
    Clock(i64, i64),
    /// Its clock is so much too fast, goes in steps, and jumps ahead each time that it is a hundred records older.
    Drift { ppm: i64, step_ns: i64, jump_ns: i64 },
    /// Its events keep no times.
    NoTimes,
}

/// An event on that clock.
#[derive(Debug)]
struct Lying(Arc<dyn DeviceEvent>, Arc<Wrapped>, AtomicI64);

impl DeviceEvent for Lying {
    fn is_reached(&self) -> Result<bool> {
        self.0.is_reached()
    }
    fn synchronize(&self, deadline: Deadline) -> Result<bool> {
        self.0.synchronize(deadline)
    }
    fn elapsed_ns(&self, start: &dyn DeviceEvent) -> Result<i64> {
        let start = (start as &dyn Any).downcast_ref::<Lying>().unwrap();
        match self.1.mistake {
            Mistake::Clock(launches, replay) => {
                Ok(if self.1.state.lock().unwrap().was_replay { replay } else { launches })
            }
            Mistake::Drift { ppm, step_ns, jump_ns } => {
                let (true_ns, jumps) = (self.0.elapsed_ns(&*start.0)?, self.2.load(Relaxed) - start.2.load(Relaxed));
                Ok((true_ns + true_ns * ppm / 1_000_000 + jumps * jump_ns) / step_ns * step_ns)
            }
            _ => Err(Error::new(Code::Unimplemented, "the device keeps no times")),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    waits: usize,
    records: usize,
    edges: usize,
    was_replay: bool,
    /// The steps of the edge that was left out.
    left_out: Option<(String, String)>,
    /// Threads that have given streams for work something.
    issuers: BTreeSet<String>,
    /// Where nodes' outputs are.
    outputs: HashMap<String, usize>,
}

#[derive(Debug)]
pub struct Wrapped {
    kind: DeviceKind,
    pub inner: Emulated,
    mistake: Mistake,
    state: Mutex<State>,
    /// Events with times that were recorded.
    stamps: AtomicI64,
    itself: Weak<Wrapped>,
}

enum Held {
    Launch { name: String, kernel: Arc<dyn DeviceKernel>, inputs: Vec<View>, outputs: Vec<View> },
    Replay(Arc<dyn Executable>),
}

struct Line {
    inner: Box<dyn DeviceStream>,
    device: Arc<Wrapped>,
    /// And not for copies.
    is_for_work: bool,
    /// A launch that the inner stream has not been given yet.
    held: Mutex<Option<Held>>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

/// The edges of a recording without one of them, also inside of branches and loops.
struct Without<'a> {
    after: Vec<Vec<usize>>,
    /// What the predicates of loops are read behind.
    behind: Vec<Option<Vec<usize>>>,
    inside: Vec<Vec<Without<'a>>>,
    steps: OnceCell<Vec<RecordedStep<'a>>>,
    lists: Vec<OnceCell<Vec<&'a [RecordedStep<'a>]>>>,
}

impl<'a> Without<'a> {
    /// Counts the edges; the one with the number that is wanted is left out.
    fn of(steps: &[RecordedStep<'_>], state: &mut State, wanted: usize) -> Without<'a> {
        let mut after: Vec<Vec<usize>> = steps.iter().map(|step| step.after.to_vec()).collect();
        for (at, after) in after.iter_mut().enumerate() {
            let edges = state.edges;
            state.edges += after.len();
            if (edges + 1..=state.edges).contains(&wanted) {
                let before = after.remove(wanted - edges - 1);
                let names = [before, at].map(|step| steps[step].work.name().to_owned());
                state.left_out = Some(names.into());
            }
        }
        let behind = steps.iter().map(|step| {
            let RecordedWork::Loop(RecordedLoop { behind: Some(behind), body, name, .. }) = step.work else {
                return None;
            };
            let (mut behind, edges) = (behind.to_vec(), state.edges);
            state.edges += behind.len();
            if (edges + 1..=state.edges).contains(&wanted) {
                let before = behind.remove(wanted - edges - 1);
                state.left_out = Some((body[before].work.name().to_owned(), format!("the predicate of {name}")));
            }
            Some(behind)
        });
        let behind = behind.collect();
        let inside = steps.iter().map(|step| match step.work {
            RecordedWork::Branch(branch) => {
                branch.branches.iter().map(|list| Without::of(list, state, wanted)).collect()
            }
            RecordedWork::Loop(looped) => vec![Without::of(looped.body, state, wanted)],
            _ => Vec::new(),
        });
        let inside = inside.collect();
        Without {
            after,
            behind,
            inside,
            steps: OnceCell::new(),
            lists: steps.iter().map(|_| OnceCell::new()).collect(),
        }
    }

    fn steps(&'a self, steps: &'a [RecordedStep<'a>]) -> &'a [RecordedStep<'a>] {
        self.steps.get_or_init(|| {
            let step = |at: usize| {
                let inside = &self.inside[at];
                let work = match steps[at].work {
                    RecordedWork::Branch(branch) => {
                        let lists = inside.iter().zip(branch.branches).map(|(without, list)| without.steps(list));
                        RecordedWork::Branch(RecordedBranch {
                            branches: self.lists[at].get_or_init(|| lists.collect()),
                            ..branch
                        })
                    }
                    RecordedWork::Loop(looped) => {
                        let behind = self.behind[at].as_deref();
                        RecordedWork::Loop(RecordedLoop { body: inside[0].steps(looped.body), behind, ..looped })
                    }
                    other => other,
                };
                RecordedStep { work, after: &self.after[at] }
            };
            (0..steps.len()).map(step).collect()
        })
    }
}

impl Device for Wrapped {
    fn kind(&self) -> DeviceKind {
        self.kind
    }
    fn index(&self) -> u32 {
        0
    }
    fn name(&self) -> &str {
        self.inner.device().name()
    }
    fn alignment(&self) -> usize {
        self.inner.device().alignment()
    }
    fn accelerator(&self) -> Option<&(dyn Accelerator + 'static)> {
        Some(self)
    }
    fn is_lost(&self) -> bool {
        self.inner.device().is_lost()
    }
}

impl Accelerator for Wrapped {
    fn allocate(&self, bytes: usize, what: &str) -> Result<usize> {
        self.inner.allocate(bytes, what)
    }
    fn deallocate(&self, address: usize, bytes: usize) {
        self.inner.deallocate(address, bytes);
    }
    fn stream(&self, attr: &DeviceStreamAttr<'_>) -> Result<Box<dyn DeviceStream>> {
        let (inner, device) = (self.inner.stream(attr)?, self.itself.upgrade().unwrap());
        let is_for_work = attr.name.contains(" stream ");
        Ok(Box::new(Line { inner, device, is_for_work, held: Mutex::default() }))
    }
    fn event(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        let event = self.inner.event(timing)?;
        let is_lying = timing && matches!(self.mistake, Mistake::Clock(..) | Mistake::Drift { .. } | Mistake::NoTimes);
        Ok(if is_lying { Arc::new(Lying(event, self.itself.upgrade().unwrap(), AtomicI64::new(0))) } else { event })
    }
    fn kernel(&self, recipe: &Recipe<'_>) -> Result<Arc<dyn DeviceKernel>> {
        self.inner.kernel(recipe)
    }
    fn takes_regions(&self) -> bool {
        self.inner.takes_regions()
    }
    fn claim(&self, region: &DeviceRegion<'_>) -> Result<Vec<u32>> {
        self.inner.claim(region)
    }
    fn compile(&self, region: &DeviceRegion<'_>) -> Result<Arc<dyn DeviceKernel>> {
        self.inner.compile(region)
    }
    fn can_record(&self) -> bool {
        true
    }
    fn control_flow(&self) -> Result<()> {
        self.inner.control_flow()
    }
    fn record(&self, recording: &Recording<'_>) -> Result<Arc<dyn Executable>> {
        if matches!(self.mistake, Mistake::NoRecording) {
            return Err(weir_core::base::Error::internal("no recordings today"));
        }
        let Recording { name, steps } = recording;
        let wanted = if let Mistake::NoEdge(wanted) = self.mistake { wanted } else { 0 };
        let without = Without::of(steps, &mut self.state.lock().unwrap(), wanted);
        self.inner.record(&Recording { name, steps: without.steps(steps) })
    }
    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        self.inner.when_reached(event, then);
    }
}

impl Line {
    fn note_issuer(&self) {
        let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default().trim().to_owned();
        self.device.state.lock().unwrap().issuers.insert(name);
    }

    fn flush(&self) -> Result<()> {
        let Some(held) = self.held.lock().unwrap().take() else { return Ok(()) };
        match &held {
            Held::Launch { name, kernel, inputs, outputs } => {
                self.inner.launch(&Launch { name, kernel, inputs, outputs })
            }
            Held::Replay(executable) => self.inner.replay(executable, "a recording"),
        }
    }
}

impl DeviceStream for Line {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.note_issuer();
        self.flush()?;
        let mut state = self.device.state.lock().unwrap();
        state.was_replay = false;
        let outputs: Vec<View> = launch.outputs.to_vec();
        if let Some(output) = outputs.first() {
            state.outputs.insert(launch.name.to_owned(), output.data() as usize);
        }
        if let Mistake::Alias { writer, over } = &self.device.mistake
            && launch.name == *writer
            && let Some(&address) = state.outputs.get(*over)
        {
            // SAFETY: another block of the device's, of the same size; the host only hands the address on.
            unsafe { outputs[0].set_data(address as *mut u8) };
        }
        let (name, kernel, inputs) = (launch.name.to_owned(), launch.kernel.clone(), launch.inputs.to_vec());
        *self.held.lock().unwrap() = Some(Held::Launch { name, kernel, inputs, outputs });
        Ok(())
    }
    fn replay(&self, executable: &Arc<dyn Executable>, _name: &str) -> Result<()> {
        self.note_issuer();
        self.flush()?;
        self.device.state.lock().unwrap().was_replay = true;
        *self.held.lock().unwrap() = Some(Held::Replay(executable.clone()));
        Ok(())
    }
    fn copy(&self, transfer: &Transfer<'_>) -> Result<()> {
        self.note_issuer();
        self.flush()?;
        self.inner.copy(transfer)
    }
    fn fill(&self, fill: &Fill<'_>) -> Result<()> {
        self.flush()?;
        self.inner.fill(fill)
    }
    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let lying = (&**event as &dyn Any).downcast_ref::<Lying>();
        if let Some(lying) = lying {
            lying.2.store(self.device.stamps.fetch_add(1, Relaxed) / 100, Relaxed);
        }
        let event = lying.map_or(event, |lying| &lying.0);
        let is_early = {
            let mut state = self.device.state.lock().unwrap();
            let follows = self.held.lock().unwrap().is_some();
            state.records += usize::from(follows);
            follows && matches!(self.device.mistake, Mistake::EarlyRecord(at) if at == state.records)
        };
        if is_early {
            self.inner.record(event)?;
            return self.flush();
        }
        self.flush()?;
        self.inner.record(event)
    }
    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        self.flush()?;
        let mut state = self.device.state.lock().unwrap();
        state.waits += usize::from(self.is_for_work);
        match self.device.mistake {
            Mistake::NoWait(at) if self.is_for_work && at == state.waits => Ok(()),
            _ => self.inner.wait(event),
        }
    }
    fn clear_error(&self) {
        let _ = self.flush();
        self.inner.clear_error();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl Wrapped {
    /// How many waits and records behind a launch there were.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.waits, state.records)
    }

    /// The names of the threads that have launched, replayed and copied.
    pub fn issuers(&self) -> Vec<String> {
        self.state.lock().unwrap().issuers.iter().cloned().collect()
    }

    /// How many edges recordings had, and the names of the steps of the one that was left out.
    pub fn edges(&self) -> (usize, Option<(String, String)>) {
        let state = self.state.lock().unwrap();
        (state.edges, state.left_out.clone())
    }
}

struct Makes(Mutex<Option<Arc<Wrapped>>>);

impl Factory for Makes {
    fn count(&self) -> u32 {
        1
    }
    fn open(&self, _index: u32, _settings: &DeviceSettings) -> Result<Arc<dyn Device>> {
        Ok(self.0.lock().unwrap().take().expect("one engine for each device"))
    }
}

/// The last device of each kind.
static LAST: Mutex<Vec<(DeviceKind, Weak<Wrapped>)>> = Mutex::new(Vec::new());

/// A new device of the kind with this name, and an engine on it. The last one is at its end, but whoever completed
/// something for it may hold it for a moment more, and engines on a device that is alive share it.
pub fn engine(name: &str, emulation: Emulation, mistake: Mistake, max_streams: u32) -> (Arc<Wrapped>, Ref<Engine>) {
    engine_in(name, emulation, mistake, max_streams, None)
}

/// The same in a thread mode.
pub fn engine_in(
    name: &str,
    emulation: Emulation,
    mistake: Mistake,
    max_streams: u32,
    mode: Option<ThreadMode>,
) -> (Arc<Wrapped>, Ref<Engine>) {
    let kind = DeviceKind::named(name).unwrap();
    let begun = std::time::Instant::now();
    while LAST.lock().unwrap().iter().any(|(of, last)| *of == kind && last.strong_count() > 0) {
        assert!(begun.elapsed().as_secs() < 20, "the last device of {name} does not end");
        std::thread::yield_now();
    }
    let inner = Emulated::new(0, emulation).unwrap();
    let device = Arc::new_cyclic(|itself| Wrapped {
        kind,
        inner,
        mistake,
        state: Mutex::default(),
        stamps: AtomicI64::new(0),
        itself: itself.clone(),
    });
    let mut last = LAST.lock().unwrap();
    last.retain(|(of, _)| *of != kind);
    last.push((kind, Arc::downgrade(&device)));
    drop(last);
    let makes = Arc::new(Makes(Mutex::new(Some(device.clone()))));
    if register(kind, 0, makes.clone()).is_err() {
        replace(kind, 0, makes).unwrap();
    }
    let mut attr = EngineAttr::new(kind);
    // The checker is to see each block come and go.
    attr.memory_mode = Some(MemoryMode::Direct);
    attr.set_max_streams(max_streams).unwrap();
    mode.iter().for_each(|&mode| attr.set_thread_mode(mode).unwrap());
    let engine = Engine::create(kind, 0, Some(&attr)).unwrap();
    (device, engine)
}
