//! Pools that keep the contract in different ways, or try not to.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use weir::threadpool::{Features, Pool, Task, Tasks};

/// How a pool takes what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Queues it.
    Queue,
    /// Gives it back.
    Refuse,
    /// Drops it.
    Drop,
    /// Drops it as it panics.
    Panic,
    /// Queues it, and panics then.
    QueueAndPanic,
    /// Keeps it, and gives back the one that it kept before.
    Swap,
    /// Takes one of a loop and gives back the others; queues single tasks.
    TakeOne,
}

/// Threads that take tasks from a channel; tells when it is dropped.
pub struct Threads {
    way: Way,
    features: Features,
    sender: Mutex<Option<Sender<Task>>>,
    kept: Mutex<Option<Task>>,
    threads: Vec<JoinHandle<()>>,
    pub dropped: Arc<Mutex<u32>>,
}

impl Threads {
    pub fn new(way: Way, features: Features, n: usize) -> Threads {
        let (sender, receiver) = channel::<Task>();
        let receiver = Arc::new(Mutex::new(receiver));
        let work = move || {
            let receiver = Arc::clone(&receiver);
            std::thread::spawn(move || {
                loop {
                    let next = receiver.lock().unwrap().recv();
                    let Ok(task) = next else { return };
                    task.run();
                }
            })
        };
        let threads = (0..n).map(|_| work()).collect();
        let dropped = Arc::default();
        Threads { way, features, sender: Mutex::new(Some(sender)), kept: Mutex::new(None), threads, dropped }
    }

    fn queue(&self, task: Task) {
        self.sender.lock().unwrap().as_ref().unwrap().send(task).unwrap();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        *self.dropped.lock().unwrap() += 1;
        self.sender.get_mut().unwrap().take();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

impl Pool for Threads {
    fn num_threads(&self) -> usize {
        self.threads.len()
    }

    fn features(&self) -> Features {
        self.features
    }

    fn schedule(&self, task: Task) -> Result<(), Task> {
        match self.way {
            Way::Queue | Way::TakeOne => self.queue(task),
            Way::Refuse => return Err(task),
            Way::Drop => {}
            Way::Panic => panic!("asked to panic"),
            Way::QueueAndPanic => {
                self.queue(task);
                panic!("asked to panic");
            }
            Way::Swap => {
                let before = self.kept.lock().unwrap().replace(task);
                return before.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    fn parallel_for(&self, mut tasks: Tasks) -> Result<(), Tasks> {
        match self.way {
            Way::Queue | Way::Swap => tasks.for_each(|task| self.queue(task)),
            Way::Refuse => return Err(tasks),
            Way::Drop => {}
            Way::Panic => panic!("asked to panic"),
            Way::QueueAndPanic => {
                self.queue(tasks.next().unwrap());
                panic!("asked to panic");
            }
            Way::TakeOne => {
                self.queue(tasks.next().unwrap());
                return Err(tasks);
            }
        }
        Ok(())
    }
}
