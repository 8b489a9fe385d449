//! A run that says how far it is: it counts what is over and what begins, and reports to the host.
//!
//! Only careful and traced loops count, and only in a run that was asked. The first node that is over after a report is
//! due makes it, in the thread that ran the node, which is in the run: so none comes once the run is closed. It takes
//! the report by one exchange of `due_at_ns`, which stands at NEVER until the host's function has returned.
#![forbid(unsafe_code)]

use crate::base::time::now_ns;
use crate::graph::carry::figures::is_measured;
use crate::graph::carry::orders::PROGRESS;
use crate::graph::carry::progress::{Counts, NEVER, Sums, add, at_same_rate};
use crate::graph::carry::state::RunState;
use crate::graph::plan::{Body, Branch};
use crate::memory::heap;
use crate::stream::{ProgressListener, ProgressReport, What};
use std::any::Any;
use std::sync::atomic::Ordering::*;

impl RunState {
    /// The run begins, or is about to: the owner of a closed state takes its orders.
    #[cold]
    pub(in crate::graph) fn begin_progress(&self, listener: &ProgressListener) {
        let (progress, learned) = (&self.progress, self.learned());
        if progress.counts.get().is_none() {
            match heap::whole(|| Counts::create(self.plan())) {
                Ok(counts) => drop(progress.counts.set(counts)),
                Err(error) => self.fail(None, error.within("the progress of the run")),
            }
        }
        progress.counts.get().inspect(|counts| counts.begin(self.plan(), learned));
        // The costs were weighed once when the program was made; after that, by measured or loaded ones.
        let has_counted = self.plan().loops.is_empty() || learned.weighed.load(Relaxed) > 1;
        progress.is_known.store(has_counted && !learned.is_unknown.load(Relaxed), Relaxed);
        let now = now_ns();
        // ORDERING: Relaxed; published to helpers by `open`.
        progress.began_ns.store(now, Relaxed);
        progress.told.store(0, Relaxed);
        progress.due_at_ns.store(now.saturating_add(listener.interval_ns), Relaxed);
    }

    /// The run has this handle, until it is told that it has none.
    pub(in crate::graph) fn set_handle(&self, run: impl FnOnce() -> Option<What>) {
        if self.reports_progress() {
            let before = std::mem::replace(&mut *self.progress.run.lock(), run());
            drop(before);
        }
    }

    pub(in crate::graph) fn reports_progress(&self) -> bool {
        self.cares(PROGRESS)
    }

    fn counts(&self) -> Option<&Counts> {
        if self.reports_progress() { self.progress.counts.get() } else { None }
    }

    /// A node that computes something is over; a report may be due.
    #[inline]
    pub(in crate::graph) fn is_over(&self, node: u32, now: impl FnOnce() -> u64) {
        let Some(counts) = self.counts() else { return };
        add(&counts.over[node as usize]);
        let now = now();
        let due = self.progress.due_at_ns.load(Relaxed);
        if now >= due && due != NEVER && !self.is_stopped() {
            self.report_progress(counts, node, (due, now));
        }
    }

    /// A node is over without having run: one of its inputs is absent.
    pub(in crate::graph) fn is_passed_over(&self, node: u32) {
        let Some(counts) = self.counts() else { return };
        match self.plan().bodies[node as usize] {
            Body::Enter(index) => add(&counts.loops[index as usize].entered),
            _ => add(&counts.over[node as usize]),
        }
    }

    /// A Select is decided.
    pub(in crate::graph) fn takes(&self, select: u32, branch: &Branch) {
        let Some(counts) = self.counts() else { return };
        if !branch.nodes.is_empty() {
            add(&counts.taken[branch.nodes.start as usize]);
        }
        add(&counts.over[select as usize]);
    }

    /// A loop is entered.
    pub(in crate::graph) fn enters(&self, index: usize) {
        let Some(counts) = self.counts() else { return };
        let (plan, count) = (self.plan(), &counts.loops[index]);
        let iterations = u64::from(self.learned().iterations_of(plan, &plan.loops[index]));
        count.expected.store(counts.bodies(plan, index).saturating_add(iterations), Relaxed);
        add(&count.entered);
    }

    /// A condition is about to be computed; counted as the run counts its iterations.
    pub(in crate::graph) fn begins_condition(&self, counted_at: usize) {
        if let Some(counts) = self.counts() {
            add(&counts.rounds[counted_at].conditions);
        }
    }

    /// An iteration is about to begin; counted as the run counts them.
    pub(in crate::graph) fn begins_body(&self, counted_at: usize) {
        if let Some(counts) = self.counts() {
            add(&counts.rounds[counted_at].bodies);
        }
    }

    /// A loop has made its last iteration.
    pub(in crate::graph) fn leaves(&self, index: usize) {
        if let Some(counts) = self.counts() {
            counts.loops[index].expected.store(counts.bodies(self.plan(), index), Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn report_progress(&self, counts: &Counts, node: u32, (due, now): (u64, u64)) {
        let progress = &self.progress;
        // ORDERING: Acquire pairs with the Release below: a report follows the one before it, with all that the host
        // has done in that one, and its sums are no smaller.
        if !is_measured(&self.plan().bodies[node as usize])
            || progress.due_at_ns.compare_exchange(due, NEVER, Acquire, Relaxed).is_err()
        {
            return;
        }
        let listener = self.orders.lock().progress;
        if let Some(listener) = listener {
            let elapsed_ns = now - progress.began_ns.load(Relaxed);
            let sums = Sums::of(self.plan(), self.learned(), counts);
            if sums.done == progress.told.load(Relaxed) {
                // A report of another thread has counted this node: it came in between, and says nothing new.
                return progress.due_at_ns.store(due, Release);
            }
            progress.told.store(sums.done, Relaxed);
            let is_known = progress.is_known.load(Relaxed);
            let report = ProgressReport {
                nodes_done: sums.done,
                nodes_total: sums.total,
                elapsed_ns,
                remaining_ns: if is_known { at_same_rate(elapsed_ns, sums.over_ns, sums.left_ns) } else { None },
                node: self.plan().name_of(node),
            };
            let run = progress.run.lock().clone();
            (listener.tell)(&listener, &report, run.as_deref().map(|run| run as &dyn Any));
            progress.due_at_ns.store(now.saturating_add(listener.interval_ns), Release);
        }
    }
}
