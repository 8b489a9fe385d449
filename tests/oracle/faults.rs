//! Runs that fail, panic or are cancelled: what they report, what they leave alone, and what the next run does.

use super::build::Lowering;
use super::compare::{Expected, names};
use super::examine::Diligence;
use super::later;
use super::probe::{FAILURE, PANIC, Trouble};
use super::random::Random;
use super::spec::{Graph, Kind, Spec, Value};
use super::stage::{Place, Stage, Subject, Targets, synchronize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use weir_core::abi::WEIR_TIMEOUT_INFINITE;
use weir_core::base::{Code, Error, Ref, Result as LibraryResult};
use weir_core::graph::Run;

/// How many leaves make trouble in a graph that is looked at briefly.
const BRIEFLY: usize = 2;

/// A leaf, and the call in which it makes trouble.
#[derive(Clone)]
pub(super) struct Victim {
    pub id: usize,
    pub name: String,
    pub at: u64,
    /// Leaves that can't run in the same run when this one has not ended well; known if its graph runs only once.
    behind: Vec<(usize, String)>,
}

/// Whether every leaf may fail, panic, or cancel the run, and cause nothing but that.
pub fn endure(spec: &Spec, stage: &Stage, lowering: Lowering, diligence: Diligence) -> Result<(), String> {
    let expected = Expected::of(spec).map_err(|useless| format!("{useless:?}"))?;
    let subject = Subject::new(spec, stage, lowering).map_err(|error| format!("is refused: {error}"))?;
    let mut random = Random::new(spec.seed ^ 0xbad);
    let own = (diligence == Diligence::Whole).then(|| stage.seeded(spec.seed));
    let seeded = own.as_ref().unwrap_or_else(|| stage.seeded_before(spec.seed));
    let places: Vec<&Place> = stage.places.iter().chain([seeded]).collect();
    let sets: Vec<usize> = (0..subject.sets()).filter(|&set| !expected.conflicts(set)).collect();
    if sets.is_empty() {
        return Ok(());
    }
    let mut ordeal =
        Ordeal { spec, lowering, expected: &expected, subject: &subject, place: places[0], random: &mut random };
    for mut k in 0.. {
        let set = ordeal.random.of(&sets);
        if diligence == Diligence::Brief {
            if k == BRIEFLY {
                break;
            }
            k = ordeal.random.below(ordeal.expected.victims(&[set]).len().max(1));
        }
        let Some(victim) = ordeal.victim(&[set], k) else { break };
        ordeal.place = ordeal.random.of(&places);
        let place = &ordeal.place.name;
        let told = |how: &str, text: String| Err(format!("on {place}, {how}, set {set}, {}: {text}", victim.name));
        let hardships = [
            (Hardship::Fails, "failing"),
            (Hardship::Panics, "panicking"),
            (Hardship::Cancels, "cancelling"),
            (Hardship::FailsOnAStream, "failing on a stream"),
            (Hardship::IsCancelled, "cancelled from outside"),
            (Hardship::IsTold, "told things"),
            (Hardship::Deterministic, "deterministic"),
            (Hardship::Independent, "the rest is finished"),
        ];
        let one = ordeal.random.below(hardships.len());
        for (i, (hardship, how)) in hardships.into_iter().enumerate() {
            // Every leaf fails; the other things befall some.
            let skip = match diligence {
                Diligence::Brief => i != one,
                Diligence::Whole => hardship != Hardship::Fails && !ordeal.random.once_in(3),
            };
            if skip {
                continue;
            }
            let result = match hardship {
                Hardship::Fails => ordeal.fails(set, &victim, Trouble::Fail),
                Hardship::Panics => ordeal.fails(set, &victim, Trouble::Panic),
                Hardship::Cancels => ordeal.cancels(set, &victim),
                Hardship::FailsOnAStream => ordeal.fails_on_a_stream(set, &victim),
                Hardship::IsCancelled => ordeal.is_cancelled(set),
                Hardship::IsTold => ordeal.is_told(set, &victim),
                Hardship::Deterministic => ordeal.is_deterministic(set, &victim, &places),
                Hardship::Independent => ordeal.finishes_the_rest(set, &victim),
            };
            if let Err(text) = result {
                return told(how, text);
            }
            if let Err(text) = ordeal.is_whole(&sets) {
                return told(&format!("after {how}"), text);
            }
        }
    }
    if diligence == Diligence::Brief && !ordeal.random.once_in(4) {
        return Ok(());
    }
    if let Err(text) = ordeal.fails_among_others(&sets).and_then(|()| ordeal.is_whole(&sets)) {
        return Err(format!("on {}, one of several runs fails: {text}", ordeal.place.name));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hardship {
    Fails,
    Panics,
    Cancels,
    FailsOnAStream,
    IsCancelled,
    IsTold,
    Deterministic,
    Independent,
}

pub(super) struct Ordeal<'a> {
    pub spec: &'a Spec,
    pub lowering: Lowering,
    pub expected: &'a Expected,
    pub subject: &'a Subject,
    pub place: &'a Place,
    pub random: &'a mut Random,
}

impl Ordeal<'_> {
    /// The `k`th of the leaves that must run with these sets.
    pub fn victim(&mut self, sets: &[usize], k: usize) -> Option<Victim> {
        let all = self.expected.victims(sets);
        let (id, name, calls) = all.get(k)?.clone();
        let at = self.random.below(calls as usize) as u64 + 1;
        let mut behind = Vec::new();
        if sets.len() == 1 && self.expected.has_one_turn(sets[0], id) {
            note_behind(&self.spec.graph, id, &self.expected.decided, &mut behind);
        }
        Some(Victim { id, name, at, behind })
    }

    /// Runs here with trouble in one leaf.
    fn fails(&mut self, set: usize, victim: &Victim, trouble: Trouble) -> Result<(), String> {
        let Ordeal { subject, place, .. } = *self;
        let outputs = subject.targets(self.random);
        subject.board.reset();
        subject.board.plant(victim.id, victim.at, trouble);
        let result = subject.run(set, &outputs, None, place.pool.as_ref());
        self.check_failed(&result, victim, trouble)?;
        outputs.check_lists_are_left_alone()?;
        self.check_behind(victim)?;
        self.check_left_out(set, &result)?;
        self.expected.check_at_most(&[set], &subject.board)
    }

    /// Runs on a stream: the error is the stream's, until it is cleared.
    fn fails_on_a_stream(&mut self, set: usize, victim: &Victim) -> Result<(), String> {
        let Ordeal { subject, place, .. } = *self;
        let stream = &place.streams[self.random.below(place.streams.len())];
        let outputs = subject.targets(self.random);
        subject.board.reset();
        subject.board.plant(victim.id, victim.at, Trouble::Fail);
        let result = subject.run(set, &outputs, Some(stream), place.pool.as_ref()).and_then(|()| synchronize(stream));
        stream.clear_error();
        self.check_failed(&result, victim, Trouble::Fail)?;
        outputs.check_lists_are_left_alone()?;
        self.check_behind(victim)
    }

    /// The leaf cancels the run that it is in.
    fn cancels(&mut self, set: usize, victim: &Victim) -> Result<(), String> {
        let Ordeal { subject, place, expected, .. } = *self;
        let stream = &place.streams[self.random.below(place.streams.len())];
        let outputs = subject.targets(self.random);
        subject.board.reset();
        subject.board.plant(victim.id, victim.at, Trouble::Cancel);
        let run = subject.start(set, &outputs, stream, place.pool.as_ref()).map_err(|error| error.to_string())?;
        subject.board.give_run(&run);
        let result = Run::wait(&run, WEIR_TIMEOUT_INFINITE);
        if !subject.board.was_made() {
            return Err("was not called".to_owned());
        }
        if !subject.board.cancelled_from_inside() {
            return self.check_perhaps_cancelled(set, &result, &outputs);
        }
        match &result {
            Err(error) if error.code() == Code::Cancelled => {}
            other => return Err(format!("expected cancelled, got {other:?}")),
        }
        outputs.check_lists_are_left_alone()?;
        self.check_left_out(set, &result)?;
        self.check_behind(victim)?;
        expected.check_at_most(&[set], &subject.board)
    }

    /// Somebody else cancels the run, early or late.
    fn is_cancelled(&mut self, set: usize) -> Result<(), String> {
        let Ordeal { subject, place, .. } = *self;
        let stream = &place.streams[self.random.below(place.streams.len())];
        let outputs = subject.targets(self.random);
        subject.board.reset();
        let run = subject.start(set, &outputs, stream, place.pool.as_ref()).map_err(|error| error.to_string())?;
        let pause = Duration::from_micros(self.random.below(60) as u64);
        if self.random.once_in(2) {
            let begin = Instant::now();
            while begin.elapsed() < pause {
                std::hint::spin_loop();
            }
            run.cancel();
        } else {
            // While this thread waits; now and then when all is over.
            let run = Ref::clone(&run);
            later::after(pause, Box::new(move || run.cancel()));
        }
        let result = Run::wait(&run, WEIR_TIMEOUT_INFINITE);
        self.check_perhaps_cancelled(set, &result, &outputs)
    }

    /// Of several runs at once, the one in which a certain call is made fails, and no other.
    fn fails_among_others(&mut self, sets: &[usize]) -> Result<(), String> {
        let Ordeal { subject, place, expected, .. } = *self;
        let taken: Vec<usize> = (0..place.streams.len() + 1).map(|_| self.random.of(sets)).collect();
        let count = expected.victims(&taken).len();
        if count == 0 {
            return Ok(());
        }
        let k = self.random.below(count);
        let Some(victim) = self.victim(&taken, k) else { return Ok(()) };
        subject.board.reset();
        subject.board.plant(victim.id, victim.at, Trouble::Fail);
        let targets: Vec<_> = taken.iter().map(|_| subject.targets(self.random)).collect();
        let pool = place.pool.as_ref();
        let started: Vec<_> = place
            .streams
            .iter()
            .enumerate()
            .map(|(i, stream)| subject.start(taken[i], &targets[i], stream, pool))
            .collect();
        let here = subject.run(taken[started.len()], &targets[started.len()], None, pool);
        let waited = started.into_iter().map(|run| run.and_then(|run| Run::wait(&run, WEIR_TIMEOUT_INFINITE)));
        let results: Vec<LibraryResult<()>> = waited.collect::<Vec<_>>().into_iter().chain([here]).collect();
        let (good, bad): (Vec<usize>, Vec<usize>) = (0..results.len()).partition(|&i| results[i].is_ok());
        if bad.len() != 1 {
            return Err(format!("{}: {} runs failed: {results:?}", victim.name, bad.len()));
        }
        self.check_failed(&results[bad[0]], &victim, Trouble::Fail)?;
        for i in good {
            expected.check_end(taken[i], &results[i], &targets[i])?;
        }
        expected.check_at_most(&taken, &subject.board)
    }

    /// The program runs as if nothing had been.
    fn is_whole(&mut self, sets: &[usize]) -> Result<(), String> {
        let Ordeal { subject, place, expected, .. } = *self;
        let set = self.random.of(sets);
        let outputs = subject.targets(self.random);
        subject.board.reset();
        let result = subject.run(set, &outputs, None, place.pool.as_ref());
        expected.check_end(set, &result, &outputs)?;
        expected.check_tallies(&[set], &subject.board)
    }

    pub fn check_failed(&self, result: &LibraryResult<()>, victim: &Victim, trouble: Trouble) -> Result<(), String> {
        let (code, text) = match trouble {
            Trouble::Panic => (Code::Internal, PANIC),
            Trouble::Fail | Trouble::Cancel => (Code::DataLoss, FAILURE),
        };
        let right = |error: &Error| {
            error.code() == code && names(error.message(), &victim.name) && error.message().contains(text)
        };
        match result {
            Err(error) if right(error) => Ok(()),
            other => Err(format!("expected {code:?}, '{text}' and the name of the node, got {other:?}")),
        }
    }

    pub fn check_perhaps_cancelled(
        &self,
        set: usize,
        result: &LibraryResult<()>,
        outputs: &Targets,
    ) -> Result<(), String> {
        match result {
            Err(error) if error.code() == Code::Cancelled => {
                outputs.check_lists_are_left_alone()?;
                self.check_left_out(set, result)?;
                self.expected.check_at_most(&[set], &self.subject.board)
            }
            other => {
                self.expected.check_end(set, other, outputs)?;
                self.expected.check_tallies(&[set], &self.subject.board)
            }
        }
    }

    pub fn check_left_out(&self, set: usize, result: &LibraryResult<()>) -> Result<(), String> {
        match result {
            // Of nested programs, the outer run knows only its own nodes.
            Err(error) if self.lowering == Lowering::Regions => {
                self.expected.check_left_out(set, error, &self.subject.board)
            }
            _ => Ok(()),
        }
    }

    pub fn check_behind(&self, victim: &Victim) -> Result<(), String> {
        for (id, name) in &victim.behind {
            if self.subject.board.tally(*id).calls > 0 {
                return Err(format!("{name} ran, although it comes after what did not end well"));
            }
        }
        Ok(())
    }
}

/// Leaves that come after the node with this id in its graph, for certain. What stands in the place of a decided node
/// need not wait.
fn note_behind(graph: &Graph, id: usize, decided: &BTreeSet<String>, behind: &mut Vec<(usize, String)>) {
    let mut after: Vec<bool> = vec![false; graph.nodes.len()];
    for (place, node) in graph.nodes.iter().enumerate() {
        let is_behind = |n: usize| after[n] || graph.nodes[n].id == id;
        let takes = |value: &Value| matches!(value, Value::Node(n, _) if is_behind(*n));
        let by_data = match node.kind {
            // Needs one of its inputs only.
            Kind::Merge => false,
            // What is inside may need the predicate only.
            Kind::Cond { .. } | Kind::Case { .. } => node.inputs.first().is_some_and(takes),
            Kind::While { .. } => false,
            Kind::Constant(_) | Kind::Leaf { .. } | Kind::Task | Kind::Switch => node.inputs.iter().any(takes),
        };
        let by_order = node.after.iter().any(|&n| is_behind(n));
        after[place] = (by_data || by_order) && !decided.contains(&node.name());
        if after[place] {
            behind.extend(super::compare::leaves_in(node));
        }
        node.graphs().iter().for_each(|(_, inner)| note_behind(inner, id, decided, behind));
    }
}

/// Keeps the panics that leaves are asked for out of the output.
pub fn silence_planned_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied());
            if text != Some(PANIC) {
                before(info);
            }
        }));
    });
}
