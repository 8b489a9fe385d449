//! A device that does one thing when it is told to, and writes down what it was asked.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use weir_core::base::time::Deadline;
use weir_core::base::{Code, Error, Result};
use weir_core::device::*;

/// What a queue of the device has to do.
enum Todo {
    /// A function, and what it is called in the log.
    Do(String, Box<dyn FnOnce() -> Result<()> + Send>),
    Record(Arc<ByHandEvent>, u64),
    Wait(Arc<ByHandEvent>, u64),
    Clear,
}

#[derive(Default)]
struct State {
    queues: Vec<VecDeque<Todo>>,
    failures: Vec<Option<Error>>,
    log: Vec<String>,
    waiting: Vec<(Arc<dyn DeviceEvent>, Then)>,
    in_use: usize,
    allocations: usize,
    is_lost: bool,
    takes_no_records: bool,
}

pub struct ByHand {
    kind: DeviceKind,
    state: Mutex<State>,
    changed: Condvar,
    itself: std::sync::Weak<ByHand>,
}

#[derive(Debug)]
struct ByHandStream(Arc<ByHand>, usize);

pub struct ByHandEvent {
    device: Arc<ByHand>,
    /// Records begun and reached, and the failure of the last one.
    state: Mutex<(u64, u64, Option<Error>)>,
}

struct ByHandKernel(Arc<dyn HostFunction>);

impl std::fmt::Debug for ByHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByHand")
    }
}
impl std::fmt::Debug for ByHandEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByHandEvent")
    }
}
impl std::fmt::Debug for ByHandKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByHandKernel")
    }
}

impl ByHand {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What it was asked for and has done, in that order.
    pub fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    pub fn blocks_in_use(&self) -> usize {
        self.state().allocations
    }

    /// Does the next thing of a queue; false if there is none, or it waits.
    pub fn step(&self, queue: usize) -> bool {
        let mut state = self.state();
        let ready = match state.queues[queue].front() {
            None => false,
            Some(Todo::Wait(event, record)) => event.state.lock().unwrap().1 >= *record,
            Some(_) => true,
        };
        if !ready {
            return false;
        }
        let todo = state.queues[queue].pop_front().unwrap();
        let failure = state.failures[queue].clone();
        match todo {
            Todo::Do(name, work) if failure.is_none() => {
                state.log.push(format!("done {name}"));
                drop(state);
                if let Err(error) = work() {
                    self.state().failures[queue] = Some(error);
                }
            }
            Todo::Do(..) => drop(state),
            Todo::Record(event, record) => {
                *event.state.lock().unwrap() = (record, record, failure);
                drop(state);
            }
            Todo::Wait(event, _) => {
                let origin = event.state.lock().unwrap().2.clone();
                if let (None, Some(origin)) = (&failure, origin) {
                    state.failures[queue] = Some(Error::new(Code::Aborted, origin.message()));
                }
                drop(state);
            }
            Todo::Clear => {
                state.failures[queue] = None;
                drop(state);
            }
        }
        self.tell();
        true
    }

    /// Does what can be done.
    pub fn run(&self) {
        loop {
            let queues = self.state().queues.len();
            if (0..queues).filter(|&queue| self.step(queue)).count() == 0 {
                return;
            }
        }
    }

    /// Refuses to record events.
    pub fn take_no_records(&self, refuse: bool) {
        self.state().takes_no_records = refuse;
    }

    /// Fails everything from now on.
    pub fn lose(&self) {
        self.state().is_lost = true;
        self.tell();
    }

    /// The next thing that a queue does fails.
    pub fn fail_next(&self, queue: usize, text: &str) {
        let error = Error::new(Code::DataLoss, text);
        self.state().queues[queue].push_back(Todo::Do("the fault".into(), Box::new(move || Err(error))));
    }

    fn tell(&self) {
        self.changed.notify_all();
        loop {
            let due = {
                let mut state = self.state();
                let is_due = |event: &Arc<dyn DeviceEvent>, lost: bool| {
                    let event = event_of(event);
                    let event = event.state.lock().unwrap();
                    lost || event.1 >= event.0
                };
                let (lost, waiting) = (state.is_lost, std::mem::take(&mut state.waiting));
                let (due, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(event, _)| is_due(event, lost));
                state.waiting = rest;
                due
            };
            if due.is_empty() {
                return;
            }
            due.into_iter().for_each(|(_, then)| then.tell());
        }
    }

    fn intact(&self) -> Result<()> {
        match self.state().is_lost {
            true => Err(Error::new(Code::DeviceLost, "the device is lost")),
            false => Ok(()),
        }
    }

    fn ask(&self, queue: usize, name: String, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        self.intact()?;
        let mut state = self.state();
        state.log.push(format!("asked {queue}: {name}"));
        state.queues[queue].push_back(Todo::Do(name, Box::new(work)));
        Ok(())
    }
}

/// As much memory as its alignment.
#[derive(Clone)]
#[repr(align(64))]
#[allow(dead_code, reason = "only the device's functions read it, by address")]
struct Line([u8; 64]);

impl Device for ByHand {
    fn kind(&self) -> DeviceKind {
        self.kind
    }
    fn index(&self) -> u32 {
        0
    }
    fn name(&self) -> &str {
        "by hand"
    }
    fn alignment(&self) -> usize {
        64
    }
    fn accelerator(&self) -> Option<&(dyn Accelerator + 'static)> {
        Some(self)
    }
    fn is_lost(&self) -> bool {
        self.state().is_lost
    }
}

impl Accelerator for ByHand {
    fn allocate(&self, bytes: usize, _what: &str) -> Result<usize> {
        self.intact()?;
        let mut state = self.state();
        (state.in_use, state.allocations) = (state.in_use + bytes, state.allocations + 1);
        let lines = vec![Line([0xA5; 64]); bytes.div_ceil(64).max(1)];
        Ok(Box::leak(lines.into_boxed_slice()).as_ptr() as usize)
    }
    fn deallocate(&self, _address: usize, bytes: usize) {
        let mut state = self.state();
        (state.in_use, state.allocations) = (state.in_use - bytes, state.allocations - 1);
    }
    fn stream(&self, _attr: &DeviceStreamAttr<'_>) -> Result<Box<dyn DeviceStream>> {
        let mut state = self.state();
        state.queues.push(VecDeque::new());
        state.failures.push(None);
        Ok(Box::new(ByHandStream(self.itself.upgrade().unwrap(), state.queues.len() - 1)))
    }
    fn event(&self, _timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        self.intact()?;
        Ok(Arc::new(ByHandEvent { device: self.itself.upgrade().unwrap(), state: Mutex::default() }))
    }
    fn kernel(&self, recipe: &Recipe<'_>) -> Result<Arc<dyn DeviceKernel>> {
        match recipe.name {
            "matmul" => Err(Error::new(Code::Unimplemented, "no such kernel here")),
            _ => match &recipe.host {
                Some(host) => Ok(Arc::new(ByHandKernel(Arc::clone(host)))),
                None => Err(Error::new(Code::Unimplemented, "no such kernel here")),
            },
        }
    }
    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        self.state().waiting.push((Arc::clone(event), then));
        self.tell();
    }
}

impl DeviceKernel for ByHandKernel {}

fn event_of(event: &Arc<dyn DeviceEvent>) -> Arc<ByHandEvent> {
    let any: Arc<dyn Any + Send + Sync> = Arc::clone(event) as _;
    any.downcast().unwrap()
}

impl DeviceStream for ByHandStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let kernel: &dyn Any = &**launch.kernel;
        let host = Arc::clone(&kernel.downcast_ref::<ByHandKernel>().unwrap().0);
        let (inputs, outputs) = (launch.inputs.to_vec(), launch.outputs.to_vec());
        // SAFETY: the device's memory is the host's, and the order of the streams says who uses which of it when.
        self.0.ask(self.1, launch.name.to_owned(), move || unsafe { host.call(&inputs, &outputs) })
    }
    fn copy(&self, transfer: &Transfer<'_>) -> Result<()> {
        let (to, from, bytes) = (transfer.to.address(), transfer.from.address(), transfer.bytes);
        self.0.ask(self.1, transfer.name.to_owned(), move || {
            // SAFETY: both places stay alive until the copy is done; this device's memory is the host's.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
            Ok(())
        })
    }
    fn fill(&self, fill: &Fill<'_>) -> Result<()> {
        let (address, bytes, value) = (fill.address, fill.bytes, fill.value);
        self.0.ask(self.1, fill.name.to_owned(), move || {
            // SAFETY: as above.
            unsafe { std::ptr::write_bytes(address as *mut u8, value, bytes) };
            Ok(())
        })
    }
    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        self.0.intact()?;
        if self.0.state().takes_no_records {
            return Err(Error::new(Code::Internal, "no more events"));
        }
        let event = event_of(event);
        let record = {
            let mut state = event.state.lock().unwrap();
            assert_eq!(state.0, state.1, "an event is recorded that is under way");
            state.0 += 1;
            state.0
        };
        self.0.state().queues[self.1].push_back(Todo::Record(event, record));
        Ok(())
    }
    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        self.0.intact()?;
        let event = event_of(event);
        let record = event.state.lock().unwrap().0;
        assert!(record > 0, "a wait for an event that was not recorded");
        let mut state = self.0.state();
        state.log.push(format!("asked {}: wait", self.1));
        state.queues[self.1].push_back(Todo::Wait(event, record));
        Ok(())
    }
    fn clear_error(&self) {
        self.0.state().queues[self.1].push_back(Todo::Clear);
    }
}

impl DeviceEvent for ByHandEvent {
    fn is_reached(&self) -> Result<bool> {
        self.device.intact()?;
        let state = self.state.lock().unwrap();
        match (&state.2, state.1 >= state.0) {
            (Some(error), true) => Err(error.clone()),
            (_, reached) => Ok(reached),
        }
    }
    fn synchronize(&self, deadline: Deadline) -> Result<bool> {
        loop {
            if self.is_reached()? || deadline.is_past() {
                return self.is_reached();
            }
            let nap = std::time::Duration::from_millis(1);
            drop(self.device.changed.wait_timeout(self.device.state(), nap).unwrap());
        }
    }
    fn elapsed_ns(&self, _start: &dyn DeviceEvent) -> Result<i64> {
        Ok(4711)
    }
}

/// Makes one device, which the test works.
struct Makes(Arc<ByHand>);

impl Factory for Makes {
    fn count(&self) -> u32 {
        1
    }
    fn open(&self, _index: u32, _settings: &DeviceSettings) -> Result<Arc<dyn Device>> {
        Ok(Arc::clone(&self.0) as Arc<dyn Device>)
    }
}

/// A device of a kind of its own.
pub fn device(name: &str) -> (DeviceKind, Arc<ByHand>) {
    let kind = DeviceKind::named(name).unwrap();
    let device = Arc::new_cyclic(|itself| ByHand {
        kind,
        state: Mutex::default(),
        changed: Condvar::new(),
        itself: itself.clone(),
    });
    register(kind, 0, Arc::new(Makes(Arc::clone(&device)))).unwrap();
    (kind, device)
}
