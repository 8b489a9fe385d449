//! Whether the segments of a program are faster issued to several streams or submitted as recordings, decided by timing
//! both.
//!
//! A recording has the whole order of its steps and costs the host one call, and a device may still be slower with it:
//! it is slow to begin a recording, or spreads the steps worse than streams would. How a device runs a given graph is
//! not known beforehand. So if the work of a segment is spread over several streams, the first runs alternate between
//! both ways, `SAMPLES` times each, and are timed on the device's own clock (`timing`). The least time of each counts:
//! disturbances only make a run longer. Recordings are the default; streams replace them if they are faster by more
//! than `MARGIN` in a hundred. A draw goes to recordings, which take less of the calling thread's time.
//!
//! *Once.* The verdict is kept for the program's life, for all of its frames: a device's time for a graph depends on
//! the two, and not, as on the CPU (`carry::ways`), on a pool whose threads come and go. To repeat the trial, the host
//! compiles anew.
//!
//! *Which runs.* A run that issues because it has to, and the first of a frame that submits recordings, since it makes
//! them, are not timed. Nor is a run while another one of the program is in flight: that uses the current default.
//! After `TRIES` attempts without enough times, or if the device fails to give one, the default stays.
//!
//! The choice changes how long runs take, never their results: both ways are open to every run of a warm frame.
#![forbid(unsafe_code)]

use crate::base::tune::{Contest, Policy, Rate, Variant};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Times of each way.
const SAMPLES: u32 = 3;
/// The most runs that are to be timed.
const TRIES: u32 = 8 * SAMPLES;
/// Recordings are the baseline. The least times count, and the verdict is final.
const POLICY: Policy =
    Policy { rounds: SAMPLES, candidates: 1, cold: 0, baselines: 1, margin: 0.03, rate: Rate::LEAST, renewal: None };

/// The way of a run's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Path {
    Streams,
    Recording,
}

/// The chosen way, and the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    #[default]
    NoSegments,
    OneStream,
    Fixed,
    Control,
    Open,
    Recording,
    Streams,
    Untold,
}

impl Verdict {
    const ALL: [Verdict; 8] = [
        Verdict::NoSegments,
        Verdict::OneStream,
        Verdict::Fixed,
        Verdict::Control,
        Verdict::Open,
        Verdict::Recording,
        Verdict::Streams,
        Verdict::Untold,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Verdict::NoSegments => "streams, there are no segments",
            Verdict::OneStream => "recordings, no segment would be spread over several streams",
            Verdict::Fixed => "recordings, the compile options say so",
            Verdict::Control => "recordings, there are branches or loops in segments",
            Verdict::Open => "not known yet, runs go both ways and are timed",
            Verdict::Recording => "recordings, streams were not faster by more than 3 %",
            Verdict::Streams => "streams, they were faster by more than 3 %",
            Verdict::Untold => "recordings, no times of both ways were to be had",
        }
    }
}

/// State of a program's trial. Statistics: ORDERING Relaxed throughout; a timed run has the program to itself, and only
/// time depends on the rest.
#[derive(Debug, Default)]
pub struct Pick {
    verdict: AtomicU32,
    tries: AtomicU32,
    /// Runs that were begun, and those in flight, while the verdict is open. A failed run counts as in flight until the
    /// next one of its frame.
    begun: AtomicU64,
    in_flight: AtomicU64,
    /// By the device's time.
    contest: Contest,
    /// The least time of the threads that issued streams and recordings; 0 = unknown.
    thread_ns: [AtomicU64; 2],
}

impl Pick {
    pub(in crate::graph) fn set(&self, verdict: Verdict) {
        self.verdict.store(verdict as u32, Relaxed);
    }

    pub fn verdict(&self) -> Verdict {
        Verdict::ALL[self.verdict.load(Relaxed) as usize]
    }

    pub(in crate::graph) fn is_open(&self) -> bool {
        self.verdict.load(Relaxed) == Verdict::Open as u32
    }

    /// Whether a run may submit its segments as recordings, as far as decided.
    pub(in crate::graph) fn is_recording(&self) -> bool {
        self.verdict.load(Relaxed) != Verdict::Streams as u32
    }

    /// There is nothing to time: the default stays.
    pub(in crate::graph) fn give_up(&self) {
        let _ = self.verdict.compare_exchange(Verdict::Open as u32, Verdict::Untold as u32, Relaxed, Relaxed);
    }

    /// A run begins; on a frame whose last run did not come to its end it takes that one's place. Returns its number if
    /// no other run is in flight.
    pub(in crate::graph) fn begin(&self, is_clean: bool) -> Option<u64> {
        let number = self.begun.fetch_add(1, Relaxed) + 1;
        let before = match is_clean {
            true => self.in_flight.fetch_add(1, Relaxed),
            false => self.in_flight.load(Relaxed).saturating_sub(1),
        };
        (before == 0).then_some(number)
    }

    /// A run is over. Returns whether none has begun since that with this number.
    pub(in crate::graph) fn end(&self, number: u64) -> bool {
        self.in_flight.fetch_sub(1, Relaxed);
        self.begun.load(Relaxed) == number
    }

    /// The way of the next run that is to be timed, if there is one.
    pub(in crate::graph) fn next(&self) -> Option<Path> {
        if self.tries.fetch_add(1, Relaxed) >= TRIES {
            self.give_up();
            return None;
        }
        Some(match self.contest.next(&POLICY).way {
            Variant::Candidate => Path::Streams,
            Variant::Baseline => Path::Recording,
        })
    }

    /// Records a timed run: the device's time from the first call to the last, and the time of the issuing threads.
    pub(in crate::graph) fn took(&self, path: Path, device_ns: u64, thread_ns: u64) {
        match path {
            Path::Streams => self.contest.took_candidate(&POLICY, device_ns as f32),
            Path::Recording => self.contest.took_baseline(&POLICY, device_ns as f32),
        }
        let least = &self.thread_ns[path as usize];
        least.store(Some(least.load(Relaxed)).filter(|&ns| ns > 0).map_or(thread_ns, |ns| ns.min(thread_ns)), Relaxed);
        if let Some(way) = self.contest.verdict() {
            let verdict = if way == Variant::Candidate { Verdict::Streams } else { Verdict::Recording };
            let _ = self.verdict.compare_exchange(Verdict::Open as u32, verdict as u32, Relaxed, Relaxed);
        }
    }

    /// The least known times of streams and of recordings: the device's, then the calling thread's.
    pub fn times(&self) -> [Option<u64>; 4] {
        let of = |time: &AtomicU64| Some(time.load(Relaxed)).filter(|&ns| ns > 0);
        let device = [self.contest.candidate_ns(), self.contest.baseline_ns()].map(|ns| ns.map(|ns| ns as u64));
        [device[0], device[1], of(&self.thread_ns[0]), of(&self.thread_ns[1])]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The verdict over runs, each of which takes the time that `took` gives for its way and its number.
    fn verdict(took: impl Fn(Path, u64) -> u64) -> (Verdict, u64) {
        let pick = Pick::default();
        pick.set(Verdict::Open);
        let mut timed = 0;
        while pick.is_open() {
            let number = pick.begin(true).unwrap();
            let path = pick.next().unwrap();
            assert!(pick.end(number));
            pick.took(path, took(path, timed), 1);
            timed += 1;
        }
        (pick.verdict(), timed)
    }

    #[test]
    fn the_faster_way_is_taken_and_equals_are_recordings() {
        let both = 2 * u64::from(SAMPLES);
        let of = |streams: u64, recording: u64| {
            verdict(move |path, _| if path == Path::Streams { streams } else { recording })
        };
        assert_eq!(of(1000, 2000), (Verdict::Streams, both));
        assert_eq!(of(2000, 1000), (Verdict::Recording, both));
        assert_eq!(of(1000, 1030), (Verdict::Recording, both), "within the margin");
        assert_eq!(of(1000, 1031), (Verdict::Streams, both));
        assert_eq!(of(0, 0), (Verdict::Recording, both));
    }

    #[test]
    fn disturbed_runs_do_not_count() {
        // All but the last run of each way take far too long.
        let took = |path, number| match path {
            _ if number < 4 => 90_000,
            Path::Streams => 1000,
            Path::Recording => 2000,
        };
        assert_eq!(verdict(took).0, Verdict::Streams);
        // All but the first: neither the last time nor the mean is taken.
        let took = |path, number| match path {
            _ if number > 1 => 90_000 * number,
            Path::Streams => 2000,
            Path::Recording => 1000,
        };
        assert_eq!(verdict(took).0, Verdict::Recording);
    }

    #[test]
    fn runs_beside_one_another_are_not_timed_and_a_failed_one_stays_under_way() {
        let pick = Pick::default();
        pick.set(Verdict::Open);
        let first = pick.begin(true).unwrap();
        assert_eq!(pick.begin(true), None, "beside the first");
        assert!(!pick.end(first), "one has begun");
        assert_eq!(pick.begin(true), None);
        pick.end(0);
        // The second one has failed: the next of its frame takes its place.
        let third = pick.begin(false).unwrap();
        assert!(pick.end(third));
    }

    #[test]
    fn attempts_without_times_come_to_an_end() {
        let pick = Pick::default();
        pick.set(Verdict::Open);
        assert_eq!((0..100).filter(|_| pick.is_open() && pick.next().is_some()).count(), TRIES as usize);
        assert_eq!(pick.verdict(), Verdict::Untold);
        assert!(pick.is_recording());
        pick.took(Path::Streams, 1, 1);
        assert_eq!(pick.verdict(), Verdict::Untold);
    }
}
