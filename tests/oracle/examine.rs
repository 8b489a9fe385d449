//! One spec on all pools, in all manners of running, against what the interpreter says.

use super::build::Lowering;
use super::compare::Expected;
use super::random::Random;
use super::spec::Spec;
use super::stage::{Place, Stage, Subject, Targets, synchronize};
use weir_core::abi::WEIR_TIMEOUT_INFINITE;
use weir_core::base::Result as LibraryResult;
use weir_core::graph::Run;

/// How much is done with a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diligence {
    /// Every set in every manner on every pool, and every leaf makes trouble.
    Whole,
    /// One run on every pool, and one drawn from the rest, for those who have many graphs.
    Brief,
}

/// Whether the library does as the interpreter says; else what it does.
pub fn examine(spec: &Spec, stage: &Stage, lowering: Lowering, diligence: Diligence) -> Result<(), String> {
    let expected = Expected::of(spec).map_err(|useless| format!("{useless:?}"))?;
    match diligence {
        Diligence::Whole => examine_against(&expected, spec, stage, lowering),
        Diligence::Brief => glance(&expected, spec, stage, lowering),
    }
}

fn glance(expected: &Expected, spec: &Spec, stage: &Stage, lowering: Lowering) -> Result<(), String> {
    let subject = Subject::new(spec, stage, lowering).map_err(|error| format!("is refused: {error}"))?;
    let mut random = Random::new(spec.seed ^ 0xace);
    let places: Vec<&Place> = stage.places.iter().chain([stage.seeded_before(spec.seed)]).collect();
    let (first, crowded) = (random.below(subject.sets()), random.below(places.len()));
    for (i, &place) in places.iter().enumerate() {
        let examination = Examination { expected, subject: &subject, place };
        let set = (first + i) % subject.sets();
        examination.alone(set, &mut random).map_err(|text| format!("on {}, set {set}: {text}", place.name))?;
        if i == crowded {
            let result = match random.below(2) {
                0 => examination.queued(&mut random).map_err(|text| format!("queued: {text}")),
                _ => examination.at_once(&mut random).map_err(|text| format!("at once: {text}")),
            };
            result.map_err(|text| format!("on {}, {text}", place.name))?;
        }
    }
    Ok(())
}

/// As `examine`, with an expectation that may be another spec's.
pub fn examine_against(expected: &Expected, spec: &Spec, stage: &Stage, lowering: Lowering) -> Result<(), String> {
    let subject = Subject::new(spec, stage, lowering).map_err(|error| format!("is refused: {error}"))?;
    let mut random = Random::new(spec.seed ^ 0xace);
    let seeded = stage.seeded(spec.seed);
    for place in stage.places.iter().chain([&seeded]) {
        let examination = Examination { expected, subject: &subject, place };
        let told =
            |how: &str, result: Result<(), String>| result.map_err(|text| format!("on {}, {how}: {text}", place.name));
        for set in 0..subject.sets() {
            told(&format!("set {set}"), examination.alone(set, &mut random))?;
        }
        told("queued", examination.queued(&mut random))?;
        told("at once", examination.at_once(&mut random))?;
    }
    Ok(())
}

struct Examination<'a> {
    expected: &'a Expected,
    subject: &'a Subject,
    place: &'a Place,
}

/// A run's set, where its outputs go, and how it ended.
type Ended = (usize, Targets, LibraryResult<()>);

impl Examination<'_> {
    /// In this thread, with nothing else going on.
    fn alone(&self, set: usize, random: &mut Random) -> Result<(), String> {
        let (subject, expected) = (self.subject, self.expected);
        subject.board.reset();
        let outputs = subject.targets(random);
        let result = subject.run(set, &outputs, None, self.place.pool.as_ref());
        expected.check_end(set, &result, &outputs)?;
        if expected.conflicts(set) {
            return Ok(());
        }
        expected.check_tallies(&[set], &subject.board)?;
        expected.check_order(set, &subject.board)?;
        if subject.has_parts { self.part(set, random).map_err(|text| format!("in part: {text}")) } else { Ok(()) }
    }

    /// As `alone`, for some of the outputs.
    fn part(&self, set: usize, random: &mut Random) -> Result<(), String> {
        let (subject, expected) = (self.subject, self.expected);
        let mut asked: Vec<usize> = (0..subject.num_outputs()).filter(|_| random.once_in(2)).collect();
        random.shuffle(&mut asked);
        if asked.is_empty() {
            return Ok(());
        }
        subject.board.reset();
        let outputs = subject.targets_for(&asked, random);
        let result = subject.run_part(set, &asked, &outputs, self.place.pool.as_ref());
        expected.check_part(set, &asked, &result, &outputs)?;
        expected.check_at_most(&[set], &subject.board)
    }

    /// All sets one behind the other on each stream, without waiting in between.
    fn queued(&self, random: &mut Random) -> Result<(), String> {
        let (subject, pool) = (self.subject, self.place.pool.as_ref());
        for stream in &self.place.streams {
            subject.board.reset();
            let sets: Vec<usize> = (0..subject.sets()).filter(|&set| !self.expected.conflicts(set)).collect();
            let mut ended: Vec<Ended> = Vec::new();
            for set in sets {
                let outputs = subject.targets(random);
                let result = subject.run(set, &outputs, Some(stream), pool);
                ended.push((set, outputs, result));
            }
            synchronize(stream).map_err(|error| format!("failed: {error}"))?;
            self.check(&ended)?;
        }
        Ok(())
    }

    /// On all streams and in this thread.
    fn at_once(&self, random: &mut Random) -> Result<(), String> {
        let (subject, pool) = (self.subject, self.place.pool.as_ref());
        subject.board.reset();
        let mut started = Vec::new();
        for (i, stream) in self.place.streams.iter().enumerate() {
            for set in [i % subject.sets(), random.below(subject.sets())] {
                let outputs = subject.targets(random);
                let run = subject.start(set, &outputs, stream, pool);
                started.push((set, outputs, run));
            }
        }
        let set = random.below(subject.sets());
        let outputs = subject.targets(random);
        let result = subject.run(set, &outputs, None, pool);
        let mut ended: Vec<Ended> = vec![(set, outputs, result)];
        for (set, outputs, run) in started {
            ended.push((set, outputs, run.and_then(|run| Run::wait(&run, WEIR_TIMEOUT_INFINITE))));
        }
        self.check(&ended)
    }

    fn check(&self, ended: &[Ended]) -> Result<(), String> {
        for (set, outputs, result) in ended {
            let told = |text| format!("set {set}: {text}");
            self.expected.check_end(*set, result, outputs).map_err(told)?;
        }
        let sets: Vec<usize> = ended.iter().map(|ended| ended.0).collect();
        if sets.iter().any(|&set| self.expected.conflicts(set)) {
            return Ok(());
        }
        self.expected.check_tallies(&sets, &self.subject.board)
    }
}
