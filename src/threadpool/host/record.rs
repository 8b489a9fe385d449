//! One call of a checked pool's `schedule` or `parallel_for`: which of its indices wait, run, and have ended.
#![forbid(unsafe_code)]

use crate::sync::{Mutex, MutexGuard};
use std::sync::Arc;

/// A clause that was broken, and how.
#[derive(Clone, Debug)]
pub struct Finding {
    pub clause: &'static str,
    pub text: String,
}

impl Finding {
    pub fn new(clause: &'static str, text: impl Into<String>) -> Finding {
        Finding { clause, text: text.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.clause, self.text)
    }
}

/// The function that a record runs for an index.
pub(in crate::threadpool) type Body = Arc<dyn Fn(i32) + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Schedule,
    ParallelFor,
}

impl Function {
    pub(super) fn name(self) -> &'static str {
        match self {
            Function::Schedule => "schedule",
            Function::ParallelFor => "parallel_for",
        }
    }
}

/// The task's owner: weir's tasks must run even if the pool does not run them, a probe's may be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskOwner {
    Weir,
    Probe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexState {
    Waiting,
    Running,
    Ended,
    /// Taken back from the pool.
    Taken,
}

pub(super) struct Record {
    pub(super) function: Function,
    pub(super) owner: TaskOwner,
    /// Whether `parallel_for` may return early.
    asynchronous: bool,
    state: Mutex<RecordState>,
}

struct RecordState {
    indices: Vec<IndexState>,
    waiting: usize,
    /// Neither ended nor taken.
    open: usize,
    refused: bool,
    /// When the pool accepted.
    accepted_ns: Option<u64>,
    /// parallel_for has returned.
    returned: bool,
    /// Dropped when nothing is open.
    body: Option<Body>,
}

/// The reaction to an index that the pool brings.
pub(super) enum IndexVerdict {
    /// Run it as this index, and report the finding, if any.
    Run(Body, i32, Option<Finding>),
    /// Do not run weir's task.
    Ignore(Finding),
}

impl Record {
    pub(super) fn new(function: Function, n: usize, body: Body, owner: TaskOwner, asynchronous: bool) -> Record {
        let indices = vec![IndexState::Waiting; n];
        let state = RecordState {
            indices,
            waiting: n,
            open: n,
            refused: false,
            accepted_ns: None,
            returned: false,
            body: Some(body),
        };
        Record { function, owner, asynchronous, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock()
    }

    /// "schedule ran its task", "parallel_for ran index 3 of 4".
    fn ran(&self, index: i32, n: usize) -> String {
        match self.function {
            Function::Schedule => "schedule ran its task".to_owned(),
            Function::ParallelFor => format!("parallel_for ran index {index} of {n}"),
        }
    }

    /// The clause of "exactly once".
    fn once(&self) -> &'static str {
        match self.function {
            Function::Schedule => "H4",
            Function::ParallelFor => "H5",
        }
    }

    /// The pool runs an index.
    pub(super) fn begin(&self, given: i32) -> IndexVerdict {
        let mut state = self.state();
        let n = state.indices.len();
        if state.refused {
            return IndexVerdict::Ignore(Finding::new(
                "H7",
                format!("{}, and had refused the call", self.ran(given, n)),
            ));
        }
        let (index, mut wrong) = match (self.function, given) {
            (Function::Schedule, given) if given != 0 => {
                (0, Some(Finding::new("H4", format!("schedule ran its task with index {given}, expected 0"))))
            }
            (_, given) => (given, None),
        };
        let Some(place) = usize::try_from(index).ok().filter(|&place| place < n) else {
            return IndexVerdict::Ignore(Finding::new("H5", format!("parallel_for of {n} tasks ran index {given}")));
        };
        match state.indices[place] {
            IndexState::Waiting => {}
            IndexState::Running | IndexState::Ended => {
                return IndexVerdict::Ignore(Finding::new(self.once(), format!("{} twice", self.ran(index, n))));
            }
            IndexState::Taken if state.returned && !self.asynchronous => {
                return IndexVerdict::Ignore(Finding::new(
                    "H6",
                    format!("{} after it had returned", self.ran(index, n)),
                ));
            }
            IndexState::Taken => {
                return IndexVerdict::Ignore(Finding::new(
                    "H9",
                    format!("{} long after it was given up", self.ran(index, n)),
                ));
            }
        }
        if state.returned && !self.asynchronous {
            wrong = Some(Finding::new("H6", format!("{} after it had returned", self.ran(index, n))));
        }
        let Some(body) = state.body.clone() else {
            return IndexVerdict::Ignore(Finding::new(self.once(), format!("{} too often", self.ran(index, n))));
        };
        state.indices[place] = IndexState::Running;
        state.waiting -= 1;
        IndexVerdict::Run(body, index, wrong)
    }

    /// An index that was begun, or taken and then run, has ended. True if nothing is open any more.
    pub(super) fn end(&self, index: i32) -> bool {
        let mut state = self.state();
        if let Some(place) = usize::try_from(index).ok().filter(|&place| place < state.indices.len()) {
            if state.indices[place] == IndexState::Running {
                state.indices[place] = IndexState::Ended;
            }
            state.open -= 1;
        }
        let done = state.open == 0;
        let body = if done { state.body.take() } else { None };
        drop(state);
        drop(body);
        done
    }

    /// The pool refuses. False if that is too late, because it has begun to run the call.
    pub(super) fn refuse(&self) -> bool {
        let mut state = self.state();
        if state.waiting < state.indices.len() {
            return false;
        }
        state.refused = true;
        let body = state.body.take();
        drop(state);
        drop(body);
        true
    }

    pub(super) fn accept(&self, now_ns: u64) {
        self.state().accepted_ns = Some(now_ns);
    }

    /// A blocking parallel_for has returned: an index that still runs, and whether one still waits.
    pub(super) fn come_back(&self) -> (Option<usize>, bool) {
        let mut state = self.state();
        state.returned = true;
        (state.indices.iter().position(|&index| index == IndexState::Running), state.waiting > 0)
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().indices.contains(&IndexState::Running)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state().waiting > 0
    }

    /// Whether tasks wait that the pool accepted at least `age_ns` ago.
    pub(super) fn is_overdue(&self, now_ns: u64, age_ns: u64) -> bool {
        let state = self.state();
        state.waiting > 0 && state.accepted_ns.is_some_and(|at| now_ns.saturating_sub(at) >= age_ns)
    }

    /// Takes the waiting indices back from the pool, with their body. Each must be given to `end`.
    pub(super) fn take_waiting(&self) -> (Vec<i32>, Option<Body>) {
        let mut state = self.state();
        let waiting = |(_, index): &(usize, &IndexState)| **index == IndexState::Waiting;
        let taken: Vec<usize> = state.indices.iter().enumerate().filter(waiting).map(|(at, _)| at).collect();
        for &at in &taken {
            state.indices[at] = IndexState::Taken;
        }
        state.waiting = 0;
        (taken.into_iter().map(|at| at as i32).collect(), state.body.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.state().indices.len()
    }

    /// Indices that have neither ended nor been taken.
    pub(super) fn open(&self) -> usize {
        self.state().open
    }
}
