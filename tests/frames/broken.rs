//! Graphs with one thing broken: compile refuses them with a node's name, or computes what they mean now.

use crate::from_environment;
use crate::kit::random::Random;
use crate::kit::run;
use crate::lower::{Flat, Kind, lower, name};
use crate::program;
use crate::tokens::RunLatch;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use weir_core::base::Code;
use weir_core::graph::{CompileOptions, RunOptions};

/// Changes one thing, and says what. None if the graph has nothing of that kind.
fn damage(flat: &mut Flat, random: &mut Random) -> Option<String> {
    let of = |flat: &Flat, is: &dyn Fn(&Kind) -> bool| -> Vec<usize> {
        (0..flat.nodes.len()).filter(|&node| is(&flat.nodes[node].kind)).collect()
    };
    let pick = |list: Vec<usize>, random: &mut Random| (!list.is_empty()).then(|| list[random.below(list.len())]);
    match random.below(9) {
        0 => {
            let merge = pick(of(flat, &|kind| matches!(kind, Kind::LoopMerge)), random)?;
            flat.nodes[merge].back = None;
            Some(format!("no back edge of {merge}"))
        }
        // An edge from somewhere else; what comes later cannot be said.
        1 | 2 => {
            let node = pick((1..flat.nodes.len()).filter(|&n| !flat.nodes[n].inputs.is_empty()).collect(), random)?;
            let input = random.below(flat.nodes[node].inputs.len());
            let from = random.below(node);
            let outputs = if matches!(flat.nodes[from].kind, Kind::Switch) { 2 } else { 1 };
            flat.nodes[node].inputs[input] = (from, random.below(outputs));
            Some(format!("input {input} of {node} from {from}"))
        }
        3 => {
            let merges = of(flat, &|kind| matches!(kind, Kind::LoopMerge));
            let (a, b) = (pick(merges.clone(), random)?, pick(merges, random)?);
            let (from_a, from_b) = (flat.nodes[a].back, flat.nodes[b].back);
            (flat.nodes[a].back, flat.nodes[b].back) = (from_b, from_a);
            Some(format!("back edges of {a} and {b} swapped"))
        }
        4 => {
            let cond = pick(of(flat, &|kind| matches!(kind, Kind::LoopCond)), random)?;
            let again = flat.nodes[cond].clone();
            flat.nodes.push(again);
            Some(format!("{cond} twice"))
        }
        5 => {
            let exit = pick(of(flat, &|kind| matches!(kind, Kind::Exit)), random)?;
            let from = flat.nodes[exit].inputs[0];
            for node in &mut flat.nodes {
                node.inputs.iter_mut().filter(|input| input.0 == exit).for_each(|input| *input = from);
            }
            Some(format!("no exit {exit}"))
        }
        6 => {
            let node = pick(of(flat, &|kind| !matches!(kind, Kind::Input | Kind::Constant(_))), random)?;
            let before = random.below(flat.nodes.len());
            if before != node {
                flat.nodes[node].after.push(before);
            }
            Some(format!("{node} waits for {before}"))
        }
        7 => {
            let enter = pick(of(flat, &|kind| matches!(kind, Kind::Enter { .. })), random)?;
            let Kind::Enter { is_constant, .. } = &mut flat.nodes[enter].kind else { return None };
            *is_constant = !*is_constant;
            Some(format!("enter {enter} is constant or not"))
        }
        _ => {
            let enter = pick(of(flat, &|kind| matches!(kind, Kind::Enter { .. })), random)?;
            let Kind::Enter { frame, .. } = &mut flat.nodes[enter].kind else { return None };
            frame.push('\'');
            Some(format!("enter {enter} into another frame"))
        }
    }
}

#[test]
fn broken_graphs_are_refused_by_name_or_compute_what_they_mean_now() {
    let first = from_environment("WEIR_FRAMES_FIRST", 1);
    let (mut refused, mut ran, mut compared) = (0, 0, 0);
    for seed in first..first + from_environment("WEIR_FRAMES_BROKEN", 5_000) {
        let mut random = Random::new(seed);
        let block = program::draw(&mut random, 2, true);
        let mut flat = lower(&block, 2, &mut random);
        let Some(what) = damage(&mut flat, &mut random) else { continue };
        let calls = Arc::new(AtomicI64::new(i64::MAX));
        let compiled = flat.build(true, &calls).and_then(|builder| {
            builder.try_compile(&CompileOptions { allow_absent: true, ..CompileOptions::default() })
        });
        match compiled {
            Err(error) => {
                let named =
                    |(index, node): (usize, &crate::lower::Node)| error.message().contains(&name(index, &node.kind));
                let frames = error.message().contains("'while ") || error.message().contains("'loop ");
                assert!(
                    frames || flat.nodes.iter().enumerate().any(named),
                    "seed {seed}: {what}: {}\n{flat}",
                    error.message()
                );
                assert!(error.code() == Code::InvalidArgument, "seed {seed}: {what}: {}", error.message());
                refused += 1;
            }
            Ok(program) => {
                // What never ends now is ended.
                let limited = RunOptions { deadline_ns: 5_000_000, ..RunOptions::default() };
                let inputs = [3, 5];
                let got = run::run(&program, &inputs, &limited);
                ran += 1;
                let Ok(got) = got else { continue };
                let mut tokens = RunLatch::new(&flat, &inputs);
                let expected: Vec<_> = flat.outputs.iter().map(|&value| tokens.value(value, &Vec::new())).collect();
                if tokens.is_unclear {
                    continue;
                }
                compared += 1;
                for (got, expected) in got.iter().zip(&expected) {
                    assert!(
                        expected.is_none_or(|expected| *got == expected),
                        "seed {seed}: {what}: {expected:?}\n{flat}"
                    );
                }
            }
        }
    }
    println!("{refused} refused, {ran} ran, {compared} compared");
    assert!(refused > ran / 4 && compared > ran / 4);
}

/// An enter with another frame's name is named, or the frame that it makes of its own: not only what comes behind.
#[test]
fn an_enter_into_another_frame_is_named() {
    let mut refused = 0;
    for seed in 1..1_500 {
        let mut random = Random::new(seed);
        let block = program::draw(&mut random, 2, true);
        let mut flat = lower(&block, 2, &mut random);
        let is_enter = |node: &usize| matches!(flat.nodes[*node].kind, Kind::Enter { .. });
        let enters: Vec<usize> = (0..flat.nodes.len()).filter(is_enter).collect();
        if enters.is_empty() {
            continue;
        }
        let enter = enters[random.below(enters.len())];
        let Kind::Enter { frame, .. } = &mut flat.nodes[enter].kind else { continue };
        frame.push('\'');
        let frame = frame.clone();
        let calls = Arc::new(AtomicI64::new(i64::MAX));
        let options = CompileOptions { allow_absent: true, ..CompileOptions::default() };
        let Err(error) = flat.build(true, &calls).and_then(|builder| builder.try_compile(&options)) else { continue };
        let (text, name) = (error.message(), name(enter, &flat.nodes[enter].kind));
        let is_named = text.contains(&format!("'{name}'")) || text.contains(&format!("'{frame}'"));
        let is_hinted =
            text.contains("it has no loop cond") && text.contains("all enters of a loop have one frame_name");
        assert!(is_named || is_hinted, "seed {seed}: {text}\n{flat}");
        refused += 1;
    }
    assert!(refused > 200, "{refused} refused");
}
