//! Mistakes that are made on purpose: an oracle that did not see them would be worth nothing.

use super::build::Lowering;
use super::compare::Expected;
use super::examine::examine_against;
use super::generate::{LISTS_STRUCTURED, Profile, STRUCTURED, generate};
use super::interpret::{Outcome, interpret};
use super::needed::needed;
use super::random::Random;
use super::spec::{Graph, Kind, Node, Op, Spec};
use super::stage::Stage;
use std::collections::BTreeSet;

/// Changes one thing in a graph, or gives up.
type Mistake = fn(&mut Graph, usize, &mut Random) -> Option<()>;

const MISTAKES: &[(&str, Mistake)] = &[
    ("another result", |graph, place, _| match &mut graph.nodes[place].kind {
        Kind::Leaf { op: Op::Mix { salt }, .. } => {
            *salt ^= 1;
            Some(())
        }
        _ => None,
    }),
    ("the wrong branch", |graph, place, _| match &mut graph.nodes[place].kind {
        Kind::Cond { then, otherwise } => {
            std::mem::swap(then, otherwise);
            Some(())
        }
        Kind::Case { branches } => {
            branches.rotate_left(1);
            Some(())
        }
        _ => None,
    }),
    ("inputs in the wrong order", |graph, place, _| {
        let kinds: Vec<_> = graph.nodes[place].inputs.iter().map(|&value| graph.type_of(value)).collect();
        let second = (1..kinds.len()).find(|&i| kinds[i] == kinds[i - 1])?;
        graph.nodes[place].inputs.swap(second - 1, second);
        Some(())
    }),
    ("outputs in the wrong order", |graph, _, random| {
        let kinds: Vec<_> = graph.outputs.iter().map(|&value| graph.type_of(value)).collect();
        let first = (!kinds.is_empty()).then(|| random.below(kinds.len()))?;
        let second = (0..kinds.len()).find(|&i| i != first && kinds[i] == kinds[first])?;
        graph.outputs.swap(first, second);
        Some(())
    }),
    ("a loop that ends after one round", |graph, place, _| {
        let Node { kind: Kind::While { body, .. }, .. } = &mut graph.nodes[place] else { return None };
        let less = body.nodes.iter_mut().find_map(|node| match &mut node.kind {
            Kind::Leaf { op: op @ Op::Less, .. } => Some(op),
            _ => None,
        })?;
        *less = Op::Trips { salt: 0, most: 0 };
        Some(())
    }),
    ("an effect that is left out", |graph, place, _| {
        let node = &mut graph.nodes[place];
        // What follows still has something to wait for.
        matches!(node.kind, Kind::Task).then(|| node.kind = Kind::Constant(vec![]))
    }),
];

/// Whether two ways to run differ in what the oracle claims to see.
fn differ(spec: &Spec, one: &Outcome, other: &Outcome, wrong: &Spec) -> bool {
    let (must, may) = (needed(spec), needed(wrong));
    let still: BTreeSet<usize> = wrong.leaves().iter().map(|leaf| leaf.id).collect();
    let is_seen = |id: usize| must.contains(&id) && (may.contains(&id) || one.tallies[id].calls > 0);
    let changes = |id: usize| !still.contains(&id) || one.tallies[id] != other.tallies[id];
    one.outputs != other.outputs || spec.leaves().iter().any(|leaf| is_seen(leaf.id) && changes(leaf.id))
}

fn plant(spec: &Spec, mistake: Mistake, random: &mut Random) -> Option<Spec> {
    let mut wrong = spec.clone();
    let places = wrong.graph.nodes.len();
    (0..8).find_map(|_| mistake(&mut wrong.graph, random.below(places), random))?;
    Some(wrong)
}

#[test]
fn planted_mistakes_are_seen() {
    see_planted_mistakes(STRUCTURED, Lowering::Nested);
}

#[test]
fn planted_mistakes_are_seen_among_lists() {
    see_planted_mistakes(LISTS_STRUCTURED, Lowering::Nested);
    see_planted_mistakes(LISTS_STRUCTURED, Lowering::Regions);
}

fn see_planted_mistakes(profile: Profile, lowering: Lowering) {
    let stage = Stage::new();
    for (what, mistake) in MISTAKES {
        let mut seen = 0;
        for seed in 0..400 {
            let spec = generate(seed, profile);
            let Some(wrong) = plant(&spec, *mistake, &mut Random::new(seed)) else { continue };
            let changes = (0..spec.inputs.len()).any(|set| {
                let right = interpret(&spec, set).unwrap();
                interpret(&wrong, set).is_ok_and(|other| differ(&spec, &right, &other, &wrong))
            });
            let ends = (0..spec.inputs.len()).all(|set| interpret(&wrong, set).is_ok());
            if !changes || !ends {
                continue;
            }
            let expected = Expected::of(&spec).unwrap();
            let result = examine_against(&expected, &wrong, &stage, lowering);
            assert!(result.is_err(), "{what} was not seen with seed {seed}:\n{spec}\n{wrong}");
            seen += 1;
            if seen == 10 {
                break;
            }
        }
        assert!(seen >= 3, "{what}: only {seen} graphs in which that changes anything");
    }
}

/// That no edge was there shows only where the nodes change places, but then it does.
#[test]
fn edges_that_are_left_out_are_seen() {
    let stage = Stage::new();
    let mut seen = 0;
    for seed in 0..60 {
        let spec = generate(seed, STRUCTURED);
        let mut wrong = spec.clone();
        wrong.graph.nodes.iter_mut().for_each(|node| node.after.clear());
        let expected = Expected::of(&spec).unwrap();
        // Nothing else than the order may differ.
        if let Err(text) = examine_against(&expected, &wrong, &stage, Lowering::Nested) {
            let is_order = text.contains("began at");
            let is_left_out = text.contains("got Tally { calls: 0, sight: 0 }");
            assert!(is_order || is_left_out, "{text}\n{spec}");
            seen += u32::from(is_order);
        }
    }
    assert!(seen >= 5, "seen in {seen} of 60 graphs");
}
