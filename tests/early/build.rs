//! Graphs with kernels that complete when a door is opened, and runs of them that must end in time.

pub use crate::kit::integers::Builder;
use crate::kit::integers::How;
pub use crate::kit::run::{all_pools, fact, on, run};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_core::base::{Ref, Result};
use weir_core::graph::{CompileOptions, NodeId, Program, ValueId};
use weir_core::kernel::Completion;

/// Lets as many calls of late kernels complete as it was opened times.
#[derive(Default)]
pub struct Door(pub Mutex<(usize, Vec<Held>)>);

/// A call that waits at the door, and how it will end.
type Held = (Completion, Result<()>);

impl Door {
    pub fn open(&self) {
        let mut door = self.0.lock().unwrap();
        match door.1.pop() {
            Some((done, result)) => {
                drop(door);
                done.done(result).unwrap();
            }
            None => door.0 += 1,
        }
    }

    /// For all who come and have come.
    pub fn open_wide(&self) {
        let held = {
            let mut door = self.0.lock().unwrap();
            door.0 = usize::MAX / 2;
            std::mem::take(&mut door.1)
        };
        held.into_iter().for_each(|(done, result)| done.done(result).unwrap());
    }

    pub fn pass(&self, done: Completion, result: Result<()>) {
        let mut door = self.0.lock().unwrap();
        if door.0 == 0 {
            door.1.push((done, result));
        } else {
            door.0 -= 1;
            drop(door);
            done.done(result).unwrap();
        }
    }
}

/// Ops that have to do with a door.
pub trait AtDoor {
    /// Completes when the door is open.
    fn try_late(
        &mut self,
        inputs: &[ValueId],
        door: &Arc<Door>,
        f: impl Fn(&[i32]) -> Result<i32> + Send + Sync + 'static,
    ) -> ValueId;

    /// Gives the sum of its inputs when the door is open.
    fn late(&mut self, inputs: &[ValueId], door: &Arc<Door>) -> ValueId {
        self.try_late(inputs, door, |x| Ok(x.iter().sum()))
    }

    /// Gives the sum of its inputs, and opens the door.
    fn opening(&mut self, inputs: &[ValueId], door: &Arc<Door>) -> ValueId;

    /// For runs with helpers for each node.
    fn compile_shared(&self) -> Ref<Program>;
}

impl AtDoor for Builder {
    fn try_late(
        &mut self,
        inputs: &[ValueId],
        door: &Arc<Door>,
        f: impl Fn(&[i32]) -> Result<i32> + Send + Sync + 'static,
    ) -> ValueId {
        let door = Arc::clone(door);
        self.how.later = Some(Arc::new(move |_, done, result| door.pass(done, result)));
        let value = self.try_op(inputs, f);
        self.how = How::default();
        value
    }

    fn opening(&mut self, inputs: &[ValueId], door: &Arc<Door>) -> ValueId {
        let door = Arc::clone(door);
        self.op(inputs, move |x| {
            door.open();
            x.iter().sum()
        })
    }

    fn compile_shared(&self) -> Ref<Program> {
        self.try_compile(&CompileOptions { hop_ns: Some(0), ..CompileOptions::default() }).unwrap()
    }
}

pub fn node_of(value: ValueId) -> NodeId {
    NodeId::from(u64::from(value) & !0xffff)
}

/// What does not end in time has waited for what it did not need.
pub fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(Duration::from_secs(20)).expect("ends")
}

/// Each of these cases several times on each pool.
pub fn check(program: &Ref<Program>, cases: &[(&[i32], &[i32])]) {
    let cases: Vec<(Vec<i32>, Vec<i32>)> = cases.iter().map(|(x, y)| (x.to_vec(), y.to_vec())).collect();
    for (i, pool) in all_pools().into_iter().enumerate() {
        let (program, cases) = (Ref::clone(program), cases.clone());
        in_time(move || {
            let options = on(pool.as_ref());
            for round in 0..20 {
                let (inputs, expected) = &cases[round % cases.len()];
                let outputs = run(&program, inputs, &options).unwrap();
                assert_eq!(outputs, *expected, "pool {i}, round {round}, inputs {inputs:?}");
            }
        });
    }
}
