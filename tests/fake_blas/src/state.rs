//! What there is of the library in this process, behind one lock; and what each call goes through.

use crate::objects::Object;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub type Status = i32;
pub const NOT_INITIALIZED: Status = 1;
pub const INVALID_VALUE: Status = 7;
pub const EXECUTION_FAILED: Status = 13;
pub const NOT_SUPPORTED: Status = 15;

pub struct State {
    pub objects: BTreeMap<usize, Object>,
    last: usize,
    counts: BTreeMap<String, u64>,
    /// Function, which call (0 = each one), status.
    failures: Option<Vec<(String, u64, Status)>>,
}

static STATE: Mutex<State> =
    Mutex::new(State { objects: BTreeMap::new(), last: 0, counts: BTreeMap::new(), failures: None });

pub fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process: a test must not pass with this.
pub fn stop(text: &str) -> ! {
    eprintln!("fake cuBLASLt: {text}");
    std::process::abort()
}

pub fn enter(name: &str, body: impl FnOnce(&mut State) -> Result<(), Status>) -> Status {
    let mut state = lock();
    let count = state.counts.entry(name.to_owned()).or_default();
    *count += 1;
    let count = *count;
    let failures = state.failures.get_or_insert_with(asked);
    let failure = failures.iter().find(|(of, call, _)| of == name && (*call == 0 || *call == count));
    match failure {
        Some((.., status)) => *status,
        None => body(&mut state).err().unwrap_or(0),
    }
}

fn asked() -> Vec<(String, u64, Status)> {
    let text = std::env::var("FAKE_BLAS_FAIL").unwrap_or_default();
    let items = text.split(',').filter(|item| !item.is_empty()).map(|item| {
        let parts: Vec<&str> = item.split(':').collect();
        match parts[..] {
            [name, "*", status] => status.parse().ok().map(|status| (name.to_owned(), 0, status)),
            [name, call, status] => {
                call.parse().ok().zip(status.parse().ok()).map(|(call, status)| (name.to_owned(), call, status))
            }
            _ => None,
        }
    });
    items.collect::<Option<_>>().unwrap_or_else(|| stop(&format!("FAKE_BLAS_FAIL is '{text}'")))
}

impl State {
    pub fn add(&mut self, object: Object) -> usize {
        self.last += 1;
        let handle = 0xb1a5_0000 + 16 * self.last;
        self.objects.insert(handle, object);
        handle
    }

    pub fn object(&mut self, handle: usize) -> &mut Object {
        self.objects.get_mut(&handle).unwrap_or_else(|| stop(&format!("{handle:#x} is no object, or is none any more")))
    }

    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// The n-th call from now on fails; 0 = each one.
    pub fn fail(&mut self, name: &str, call: u64, status: Status) {
        let before = self.count(name);
        let call = if call == 0 { 0 } else { before + call };
        self.failures.get_or_insert_with(asked).push((name.to_owned(), call, status));
    }
}
