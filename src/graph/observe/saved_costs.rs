//! The costs that a program has learned, as text, for the next program that is compiled of the same graph.
//!
//! A line for each node, in the program's order: its cost in nanoseconds, the iterations of a loop or `-`, its name.
//! Nodes are found by name; nodes of the same name are matched in their order. Nodes that are not found are left alone:
//! costs affect only where and when nodes run, never their results.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::figures::NOT_COUNTED;
use crate::graph::plan::{Body, Plan};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

const HEADER: &str = "weir costs 1";

/// The indices of the nodes of each name.
type Places<'a> = HashMap<&'a str, Vec<usize>>;

pub(in crate::graph) fn save(Compiled { plan, learned, .. }: &Compiled) -> String {
    let mut text = format!("{HEADER}\n");
    for node in nodes(plan) {
        let cost = learned.costs[node].load(Relaxed);
        // Writing to a String cannot fail.
        let _ = match plan.bodies[node] {
            Body::Enter(index) => write!(text, "{cost} {} ", learned.iterations[index as usize].load(Relaxed)),
            _ => write!(text, "{cost} - "),
        };
        escape(&mut text, plan.names.get(node));
        text.push('\n');
    }
    text
}

/// Takes costs and iterations from saved costs, and returns how many of the nodes were known. Any other text changes
/// nothing.
pub(in crate::graph) fn load(Compiled { plan, learned, .. }: &Compiled, text: &str) -> Result<usize> {
    let lines = parse(text)?;
    let places = places(plan);
    let mut places: Vec<(&str, Vec<usize>)> = places.into_iter().collect();
    places.iter_mut().for_each(|(_, nodes)| nodes.reverse());
    let mut places: Places<'_> = places.into_iter().collect();
    let mut known = 0;
    for line in &lines {
        let Some(node) = places.get_mut(&*line.name).and_then(Vec::pop) else { continue };
        learned.load_cost(node, line.cost);
        if let (Body::Enter(index), Some(iterations)) = (plan.bodies[node], line.iterations) {
            learned.iterations[index as usize].store(iterations, Relaxed);
        }
        known += 1;
    }
    learned.primed.store(true, Relaxed);
    learned.is_unknown.store(false, Relaxed);
    learned.weigh(plan);
    Ok(known)
}

/// The number that each node of a part has in the whole program, or NOT_COUNTED.
pub(in crate::graph) fn numbers(part: &Plan, whole: &Plan) -> Vec<u32> {
    let mut places = places(whole);
    places.values_mut().for_each(|nodes| nodes.reverse());
    let number = |node: usize| {
        let place = places.get_mut(part.names.get(node)).filter(|_| part.is_step(node as u32)).and_then(Vec::pop);
        place.map_or(NOT_COUNTED, |place| place as u32)
    };
    (0..part.len()).map(number).collect()
}

/// Gives a part the costs that the whole program has learned; `numbers` are those of `numbers`. Does nothing if the
/// whole program was never run.
pub(in crate::graph) fn learn(part: &Compiled, whole: &Compiled, numbers: &[u32]) {
    let (learned, known) = (&part.learned, &whole.learned);
    if known.runs.load(Relaxed) == 0 && !known.primed.load(Relaxed) {
        return;
    }
    for node in 0..part.plan.len() {
        let number = numbers[part.plan.origin(node as u32) as usize];
        if number == NOT_COUNTED {
            continue;
        }
        let number = number as usize;
        learned.load_cost(node, known.costs[number].load(Relaxed));
        if let (Body::Enter(own), Body::Enter(other)) = (part.plan.bodies[node], whole.plan.bodies[number]) {
            let iterations = known.iterations[other as usize].load(Relaxed);
            learned.iterations[own as usize].store(iterations, Relaxed);
        }
    }
    learned.primed.store(true, Relaxed);
    learned.is_unknown.store(false, Relaxed);
    learned.weigh(&part.plan);
}

/// The nodes that saved costs list; of copies the first.
fn nodes(plan: &Plan) -> impl Iterator<Item = usize> {
    let is_told = |&node: &u32| plan.is_step(node) && plan.origin(node) == node;
    (0..plan.len() as u32).filter(is_told).map(|node| node as usize)
}

fn places(plan: &Plan) -> Places<'_> {
    let mut places = Places::new();
    for node in nodes(plan) {
        match places.entry(plan.names.get(node)) {
            Entry::Occupied(mut nodes) => nodes.get_mut().push(node),
            Entry::Vacant(nodes) => drop(nodes.insert(vec![node])),
        }
    }
    places
}

struct Line {
    cost: u32,
    iterations: Option<u32>,
    name: String,
}

fn parse(text: &str) -> Result<Vec<Line>> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(Error::invalid(format!("the text is no saved costs: its first line is not '{HEADER}'")));
    }
    lines
        .enumerate()
        .map(|(i, line)| parse_line(line).ok_or(i + 2))
        .collect::<Result<_, usize>>()
        .map_err(|number| Error::invalid(format!("line {number} is not: nanoseconds, iterations or '-', name")))
}

fn parse_line(line: &str) -> Option<Line> {
    let mut parts = line.splitn(3, ' ');
    let cost = parts.next()?.parse().ok()?;
    let iterations = match parts.next()? {
        "-" => None,
        number => Some(number.parse().ok()?),
    };
    Some(Line { cost, iterations, name: unescape(parts.next()?)? })
}

/// A name may contain line ends.
fn escape(text: &mut String, name: &str) {
    for c in name.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            c => text.push(c),
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let (mut name, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        name.push(match c {
            '\\' => match chars.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            c => c,
        });
    }
    Some(name)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_whole() {
        for name in ["plain", "with space", "two\nlines\r", "back\\slash\\n", ""] {
            let mut text = String::new();
            escape(&mut text, name);
            assert!(!text.contains('\n'));
            assert_eq!(unescape(&text).as_deref(), Some(name));
        }
    }

    #[test]
    fn a_broken_line_is_named() {
        let message = |text: &str| parse(text).err().map(|error| error.message().to_owned());
        assert_eq!(message("weir costs 1\n10 - a\n7 3 loop\n"), None);
        assert!(message("").unwrap().contains("no saved costs"));
        assert!(message("weir costs 2\n").unwrap().contains("no saved costs"));
        assert!(message("weir costs 1\n10 - a\n10 a\n").unwrap().contains("line 3"));
        assert!(message("weir costs 1\n-1 - a\n").unwrap().contains("line 2"));
        assert!(message("weir costs 1\n1 - a\\x\n").unwrap().contains("line 2"));
    }
}
