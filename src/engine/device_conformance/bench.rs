//! The probes' equipment: a device, and random draws.
#![forbid(unsafe_code)]

use super::keep::Keep;
use crate::base::time::Deadline;
use crate::device::{Accelerator, Device};
use crate::threadpool::conformance::Options;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) struct DeviceBench {
    pub(super) device: Arc<dyn Device>,
    pub(super) keep: Arc<Keep>,
    options: Options,
    random: AtomicU64,
    /// Counts the probe's steps.
    steps: Arc<AtomicU64>,
}

/// A probe's finding: an observation, or the fault.
pub(super) type Finding = Result<Seen, String>;

/// The observation of a clause that is kept, or why there is nothing to see.
pub(super) enum Seen {
    Kept(String),
    NotOffered(String),
    NotMet(String),
}

/// The finding about work in flight, seen `met` times; nothing to see if work is always over.
pub(super) fn of_work_under_way(met: usize, text: String) -> Finding {
    Ok(match met {
        0 => Seen::NotMet("all work was over before it could be looked at".to_owned()),
        _ => Seen::Kept(text),
    })
}

impl DeviceBench {
    pub(super) fn new(device: Arc<dyn Device>, keep: &Arc<Keep>, options: Options) -> DeviceBench {
        DeviceBench {
            device,
            keep: Arc::clone(keep),
            options,
            random: AtomicU64::new(options.seed),
            steps: Arc::default(),
        }
    }

    /// The same bench for another thread, with draws of its own.
    pub(super) fn another(&self) -> DeviceBench {
        DeviceBench {
            device: Arc::clone(&self.device),
            keep: Arc::clone(&self.keep),
            options: self.options,
            random: AtomicU64::new(self.draw(usize::MAX) as u64),
            steps: self.steps(),
        }
    }

    /// A counter that stands still if the probe does.
    pub(super) fn steps(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.steps)
    }

    pub(super) fn step(&self) {
        // ORDERING: Relaxed; a statistic.
        self.steps.fetch_add(1, Relaxed);
    }

    pub(super) fn accelerator(&self) -> Result<&dyn Accelerator, String> {
        self.device.accelerator().ok_or_else(|| "the device has no streams".to_owned())
    }

    pub(super) fn budget_ns(&self) -> u64 {
        self.options.budget_ns
    }

    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.options.budget_ns)
    }

    pub(super) fn budget(&self) -> String {
        format!("{} ms", self.options.budget_ns / 1_000_000)
    }

    pub(super) fn rounds(&self) -> usize {
        self.options.rounds as usize
    }

    /// The next draw below `n` (splitmix64, Steele, Lea and Flood 2014).
    pub(super) fn draw(&self, n: usize) -> usize {
        let mut z = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// Random bytes.
    pub(super) fn bytes(&self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&(self.draw(usize::MAX) as u64).to_le_bytes()[..part.len()]);
        }
        bytes
    }
}

/// Repeats a probe of work in flight until it has met such work `times` times, and gives how often. A probe that came
/// too late, as a delayed thread does, is repeated with twice the work. A device that is always done already ends that.
pub(super) fn under_way(times: usize, mut probe: impl FnMut(usize) -> Result<bool, String>) -> Result<usize, String> {
    const MOST: usize = 64;
    let (mut met, mut weight) = (0, 1);
    while met < times {
        if probe(weight)? {
            met += 1;
        } else if weight < MOST {
            weight *= 2;
        } else {
            break;
        }
    }
    Ok(met)
}
