//! An emulated device behind one that makes a mistake on request: a wait is left out, an event is recorded too soon, a value is
//! written where another one still is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use weir::base::{Ref, Result};
use weir::device::emulated::{Emulated, Emulation};
use weir::device::*;
use weir::engine::{Engine, EngineAttr, MemoryMode};
use weir::memory::View;

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
}

#[derive(Debug, Default)]
struct State {
    waits: usize,
    records: usize,
    /// Where nodes' outputs are.
    outputs: HashMap<String, usize>,
}

#[derive(Debug)]
pub struct Wrapped {
    kind: DeviceKind,
    pub inner: Emulated,
    mistake: Mistake,
    state: Mutex<State>,
    itself: Weak<Wrapped>,
}

struct Held {
    name: String,
    kernel: Arc<dyn DeviceKernel>,
    inputs: Vec<View>,
    outputs: Vec<View>,
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

impl Device for Wrapped {
    fn kind(&self) -> DeviceKind {
        self.kind
    }
    fn index(&self) -> u32 {
        0
    }
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn alignment(&self) -> usize {
        self.inner.alignment()
    }
    fn accelerator(&self) -> Option<&dyn Accelerator> {
        Some(self)
    }
    fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }
}

impl Accelerator for Wrapped {
    fn allocate(&self, bytes: usize, what: &str) -> Result<usize> {
        self.inner.allocate(bytes, what)
    }
    fn deallocate(&self, address: usize, bytes: usize) {
        self.inner.deallocate(address, bytes);
    }
    fn stream(&self, attr: &StreamAttr<'_>) -> Result<Box<dyn DeviceStream>> {
        let (inner, device) = (self.inner.stream(attr)?, self.itself.upgrade().unwrap());
        let is_for_work = attr.name.contains(" stream ");
        Ok(Box::new(Line { inner, device, is_for_work, held: Mutex::default() }))
    }
    fn event(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        self.inner.event(timing)
    }
    fn kernel(&self, recipe: &Recipe<'_>) -> Result<Arc<dyn DeviceKernel>> {
        self.inner.kernel(recipe)
    }
    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        self.inner.when_reached(event, then);
    }
}

impl Line {
    fn flush(&self) -> Result<()> {
        let Some(held) = self.held.lock().unwrap().take() else { return Ok(()) };
        let Held { name, kernel, inputs, outputs } = &held;
        self.inner.launch(&Launch { name, kernel, inputs, outputs })
    }
}

impl DeviceStream for Line {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.flush()?;
        let mut state = self.device.state.lock().unwrap();
        let outputs: Vec<View> = launch.outputs.to_vec();
        if let Some(output) = outputs.first() {
            state.outputs.insert(launch.name.to_owned(), output.data() as usize);
        }
        if let Mistake::Alias { writer, over } = &self.device.mistake
            && launch.name == *writer
            && let Some(&address) = state.outputs.get(*over)
        {
            outputs[0].set_data(address as *mut u8);
        }
        let (name, kernel, inputs) = (launch.name.to_owned(), launch.kernel.clone(), launch.inputs.to_vec());
        *self.held.lock().unwrap() = Some(Held { name, kernel, inputs, outputs });
        Ok(())
    }
    fn copy(&self, transfer: &Transfer<'_>) -> Result<()> {
        self.flush()?;
        self.inner.copy(transfer)
    }
    fn fill(&self, fill: &Fill<'_>) -> Result<()> {
        self.flush()?;
        self.inner.fill(fill)
    }
    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
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
}

struct Makes(Mutex<Option<Arc<Wrapped>>>);

impl Factory for Makes {
    fn count(&self) -> u32 {
        1
    }
    fn open(&self, _index: u32, _settings: &Settings) -> Result<Arc<dyn Device>> {
        Ok(self.0.lock().unwrap().take().expect("one engine for each device"))
    }
}

/// The last device of each kind.
static LAST: Mutex<Vec<(DeviceKind, Weak<Wrapped>)>> = Mutex::new(Vec::new());

/// A new device of the kind with this name, and an engine on it. The last one is at its end, but whoever completed something for it
/// may hold it for a moment more, and engines on a device that is alive share it.
pub fn engine(name: &str, emulation: Emulation, mistake: Mistake, max_streams: u32) -> (Arc<Wrapped>, Ref<Engine>) {
    let kind = DeviceKind::named(name).unwrap();
    let begun = std::time::Instant::now();
    while LAST.lock().unwrap().iter().any(|(of, last)| *of == kind && last.strong_count() > 0) {
        assert!(begun.elapsed().as_secs() < 20, "the last device of {name} does not end");
        std::thread::yield_now();
    }
    let inner = Emulated::new(0, emulation).unwrap();
    let device =
        Arc::new_cyclic(|itself| Wrapped { kind, inner, mistake, state: Mutex::default(), itself: itself.clone() });
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
    let engine = Engine::create(kind, 0, Some(&attr)).unwrap();
    (device, engine)
}
