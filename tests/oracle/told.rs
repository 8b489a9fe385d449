//! Runs that are told things: a deadline, to be deterministic, to finish what does not depend on a failure.

use super::build::Lowering;
use super::compare::leaves_in;
use super::faults::{Ordeal, Victim};
use super::probe::Trouble;
use super::spec::{Graph, Kind, Node, Type, Value};
use super::stage::{Place, Targets, options, synchronize};
use std::collections::BTreeSet;
use std::time::Duration;
use weir_core::abi::WEIR_TIMEOUT_INFINITE;
use weir_core::base::{Code, Result as LibraryResult};
use weir_core::graph::{Run, RunOptions};

/// When a leaf began first and ended last, if it ran.
type Span = Option<(u64, u64)>;

/// Longer than any run takes.
const AMPLE_NS: u64 = 60_000_000_000;

impl Ordeal<'_> {
    /// Several things at once: little time or plenty, one or two leaves that fail or none, here or on a stream, and
    /// somebody who cancels.
    pub fn is_told(&mut self, set: usize, victim: &Victim) -> Result<(), String> {
        let Ordeal { subject, place, .. } = *self;
        let outputs = subject.targets(self.random);
        subject.board.reset();
        let mut victims: Vec<Victim> = Vec::new();
        if self.random.once_in(2) {
            victims.push(victim.clone());
            let k = self.random.below(8);
            victims.extend(self.victim(&[set], k).filter(|other| other.id != victim.id));
        }
        victims.iter().for_each(|victim| subject.board.plant(victim.id, victim.at, Trouble::Fail));
        let deadline_ns = match self.random.below(4) {
            0 => 0,
            1 => AMPLE_NS,
            _ => self.random.below(60_000) as u64 + 1,
        };
        let options = RunOptions { deadline_ns, ..options(place.pool.as_ref()) };
        let stream = &place.streams[self.random.below(place.streams.len())];
        let (result, cancelled) = match self.random.below(4) {
            0 => (subject.run_told(set, &outputs, None, &options), false),
            1 => {
                let result = subject.run_told(set, &outputs, Some(stream), &options);
                let result = result.and_then(|()| synchronize(stream));
                stream.clear_error();
                (result, false)
            }
            how => {
                let run = subject.start_told(set, &outputs, stream, &options).map_err(|error| error.to_string())?;
                let pause = Duration::from_micros(self.random.below(60) as u64);
                if how == 2 {
                    let run = weir_core::base::Ref::clone(&run);
                    super::later::after(pause, Box::new(move || run.cancel()));
                }
                // One who has no time, first.
                let _ = Run::wait(&run, 1_000);
                (Run::wait(&run, WEIR_TIMEOUT_INFINITE), how == 2)
            }
        };
        let code = result.as_ref().err().map(|error| error.code());
        match code {
            Some(Code::DeadlineExceeded) if deadline_ns > 0 && deadline_ns < AMPLE_NS => {}
            Some(Code::Cancelled) if cancelled => {}
            Some(_) if victims.iter().any(|victim| self.check_failed(&result, victim, Trouble::Fail).is_ok()) => {}
            None if victims.is_empty() => {
                self.expected.check_end(set, &result, &outputs)?;
                return self.expected.check_tallies(&[set], &subject.board);
            }
            _ => {
                let names: Vec<&String> = victims.iter().map(|victim| &victim.name).collect();
                return Err(format!("{deadline_ns} ns, failing {names:?}, cancelled: {cancelled}: got {result:?}"));
            }
        }
        outputs.check_lists_are_left_alone()?;
        self.check_left_out(set, &result)?;
        self.expected.check_at_most(&[set], &subject.board)
    }

    /// The program's order, whatever the pool; and of several errors the same one.
    pub fn is_deterministic(&mut self, set: usize, victim: &Victim, places: &[&Place]) -> Result<(), String> {
        let subject = self.subject;
        let fails = self.random.once_in(2);
        let k = self.random.below(8);
        let other = self.victim(&[set], k).filter(|_| fails);
        let mut first: Option<(Option<String>, Vec<Span>)> = None;
        for _ in 0..2 {
            let place = self.random.of(places);
            let outputs = subject.targets(self.random);
            subject.board.reset();
            if fails {
                subject.board.plant(victim.id, victim.at, Trouble::Fail);
                other.iter().for_each(|other| subject.board.plant(other.id, other.at, Trouble::Fail));
            }
            let options = RunOptions { deterministic: true, ..options(place.pool.as_ref()) };
            let result = subject.run_told(set, &outputs, None, &options);
            if self.is_refused(&result)? {
                return Ok(());
            }
            if fails {
                let either = other.iter().chain([victim]);
                let right: Vec<_> = either.map(|victim| self.check_failed(&result, victim, Trouble::Fail)).collect();
                if right.iter().all(Result::is_err) {
                    return right.into_iter().next().expect("one victim at least");
                }
                outputs.check_lists_are_left_alone()?;
                self.check_left_out(set, &result)?;
                self.expected.check_at_most(&[set], &subject.board)?;
            } else {
                self.expected.check_end(set, &result, &outputs)?;
                self.expected.check_tallies(&[set], &subject.board)?;
                self.expected.check_order(set, &subject.board)?;
            }
            let spans = (0..self.spec.num_ids).map(|id| subject.board.span(id)).collect();
            let now = (result.err().map(|error| error.to_string()), spans);
            match &first {
                Some(before) if self.lowering == Lowering::Regions && *before != now => {
                    return Err(format!("{before:?} the first time, {now:?} the second"));
                }
                _ => first = Some(now),
            }
        }
        Ok(())
    }

    /// What does not depend on the leaf that fails runs as if nothing had been.
    pub fn finishes_the_rest(&mut self, set: usize, victim: &Victim) -> Result<(), String> {
        let Ordeal { subject, place, expected, .. } = *self;
        let outputs = subject.targets(self.random);
        subject.board.reset();
        subject.board.plant(victim.id, victim.at, Trouble::Fail);
        let deadline_ns = if self.random.once_in(3) { AMPLE_NS } else { 0 };
        let options = RunOptions { finish_independent: true, deadline_ns, ..options(place.pool.as_ref()) };
        let result = subject.run_told(set, &outputs, None, &options);
        if self.is_refused(&result)? {
            return Ok(());
        }
        self.check_failed(&result, victim, Trouble::Fail)?;
        outputs.check_lists_are_left_alone()?;
        self.check_behind(victim)?;
        self.check_left_out(set, &result)?;
        expected.check_at_most(&[set], &subject.board)?;
        let mut untouched = BTreeSet::new();
        let whole = note_untouched(&self.spec.graph, victim.id, self.lowering, &mut untouched);
        expected.check_some_tallies(set, &untouched, &subject.board)?;
        self.check_outputs(set, &whole, &outputs)
    }

    fn check_outputs(&self, set: usize, whole: &[bool], outputs: &Targets) -> Result<(), String> {
        let is_whole = |value: &Value| match *value {
            Value::Input(_) => true,
            Value::Node(place, _) => whole[place],
        };
        let all = self.spec.graph.outputs.iter().zip(&self.expected.outcomes[set].outputs).zip(outputs.look());
        for (i, ((value, expected), (_, got))) in all.enumerate() {
            // Lists are handed over by runs that succeed.
            if let Some(expected) = expected
                && expected.kind != Type::List
                && is_whole(value)
                && expected.items != got
            {
                return Err(format!("output {i} does not depend on it: expected {:?}, got {got:?}", expected.items));
            }
        }
        Ok(())
    }

    /// Whether the run was refused because kernels complete later, as it must be then.
    fn is_refused(&self, result: &LibraryResult<()>) -> Result<bool, String> {
        match result {
            Err(error) if error.message().contains("kernels that complete later") => {
                let right = self.spec.has_later() && self.lowering != Lowering::Nested;
                if right { Ok(true) } else { Err(format!("nothing completes later, and yet: {error}")) }
            }
            _ => Ok(false),
        }
    }
}

/// Ids of the leaves that can't depend on the node with this id; and of each node of the graph, whether it can't. A
/// nested run is told nothing of this, and ends whole.
fn note_untouched(graph: &Graph, id: usize, lowering: Lowering, ids: &mut BTreeSet<usize>) -> Vec<bool> {
    let is_branch = |node: &Node| matches!(node.kind, Kind::Cond { .. } | Kind::Case { .. });
    let mut untouched: Vec<bool> = Vec::new();
    for node in &graph.nodes {
        let takes = |value: &Value| matches!(value, Value::Node(n, _) if !untouched[*n]);
        let depends = node.inputs.iter().any(takes) || node.after.iter().any(|&n| !untouched[n]);
        let leaves = leaves_in(node);
        let holds = node.id == id || leaves.iter().any(|(leaf, _)| *leaf == id);
        if !depends && !holds {
            ids.extend(leaves.into_iter().map(|(leaf, _)| leaf));
        } else if !depends && is_branch(node) && lowering == Lowering::Regions {
            node.graphs().iter().for_each(|(_, inner)| drop(note_untouched(inner, id, lowering, ids)));
        }
        untouched.push(!depends && !holds);
    }
    untouched
}
