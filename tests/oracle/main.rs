//! Random graphs on all kinds of pools, against an interpreter that is slow and obvious.
//!
//! `spec` is a graph as plain data, `generate` draws one from a seed. `interpret` says what must come out of it and how
//! often each node must run, `needed` what may be left out; `build` makes a program of it. `examine` runs the program
//! on every pool, and `compare` compares outputs bit for bit, and calls and what they saw node by node. `faults` does
//! so while nodes fail, and `told` while runs are told things. Leaves may be done `later`, and give lists whose length
//! only they know. `sweep` goes through many seeds; what fails is made smaller by `shrink`.

mod build;
mod compare;
mod coverage;
mod examine;
mod faults;
mod generate;
mod interpret;
#[path = "../kit/mod.rs"]
mod kit;
mod known;
mod later;
mod leaves;
mod needed;
mod ops;
mod planted;
mod probe;
mod shrink;
mod sketch;
mod spec;
mod stage;
mod sweep;
mod told;

use build::Lowering;
use generate::{CONFLICTS, DIAMONDS, EVERYTHING, LATER, PLAIN, PLAIN_LATER, STRUCTURED, STRUCTURED_LATER};
use generate::{LISTS, LISTS_CONFLICTS, LISTS_LATER, LISTS_STRUCTURED};
use kit::{pools, random};
use sweep::{endure_all, examine_all, examine_past, seeds};

#[test]
fn plain_graphs_do_as_the_interpreter_says() {
    examine_all("plain", PLAIN, Lowering::Regions, seeds(7));
}

#[test]
fn nested_programs_do_as_the_interpreter_says() {
    examine_all("nested", STRUCTURED, Lowering::Nested, seeds(5));
}

#[test]
fn regions_do_as_the_interpreter_says() {
    examine_all("regions", STRUCTURED, Lowering::Regions, seeds(8));
}

#[test]
fn diamonds_do_as_the_interpreter_says() {
    examine_all("diamonds", DIAMONDS, Lowering::Regions, seeds(5));
}

#[test]
fn everything_does_as_the_interpreter_says() {
    examine_all("everything", EVERYTHING, Lowering::Regions, seeds(9));
}

#[test]
fn plain_graphs_with_leaves_that_are_done_later() {
    examine_all("plain later", PLAIN_LATER, Lowering::Regions, seeds(4));
}

#[test]
fn everything_with_leaves_that_are_done_later() {
    examine_all("later", LATER, Lowering::Regions, seeds(8));
}

#[test]
fn programs_as_nodes_with_leaves_that_are_done_later() {
    examine_all("programs later", STRUCTURED_LATER, Lowering::Programs, seeds(3));
}

#[test]
fn conflicts_are_errors_as_the_interpreter_says() {
    examine_all("conflicts", CONFLICTS, Lowering::Regions, seeds(4));
}

#[test]
fn plain_graphs_endure_what_befalls_their_nodes() {
    endure_all("plain faults", PLAIN, Lowering::Regions, seeds(4));
}

#[test]
fn nested_programs_endure_what_befalls_their_nodes() {
    endure_all("nested faults", STRUCTURED, Lowering::Nested, seeds(4));
}

#[test]
fn everything_endures_what_befalls_its_nodes() {
    endure_all("faults", EVERYTHING, Lowering::Regions, seeds(8));
}

#[test]
fn leaves_that_are_done_later_endure_what_befalls_them() {
    endure_all("later faults", LATER, Lowering::Regions, seeds(8));
}

#[test]
fn lists_are_as_long_as_the_interpreter_says() {
    examine_all("lists", LISTS, Lowering::Regions, seeds(6));
}

#[test]
fn lists_in_nested_programs() {
    examine_all("lists nested", LISTS_STRUCTURED, Lowering::Nested, seeds(2));
}

#[test]
fn lists_among_leaves_that_are_done_later() {
    examine_all("lists later", LISTS_LATER, Lowering::Regions, seeds(3));
}

#[test]
fn conflicts_of_lists() {
    examine_all("lists conflicts", LISTS_CONFLICTS, Lowering::Regions, seeds(2));
}

#[test]
fn lists_endure_what_befalls_their_makers() {
    endure_all("lists faults", LISTS, Lowering::Regions, seeds(4));
}

#[test]
fn lists_endure_what_befalls_leaves_that_are_done_later() {
    endure_all("lists later faults", LISTS_LATER, Lowering::Regions, seeds(3));
}

#[test]
fn programs_as_nodes_endure_what_befalls_what_is_done_later_in_them() {
    endure_all("programs later faults", STRUCTURED_LATER, Lowering::Programs, seeds(3));
}

/// Graphs that failed once; each is run many times. A seed means another graph when the generator changes: what it was
/// when it was made small belongs into `known`.
const PAST: &[(generate::Profile, u64)] = &[
    (CONFLICTS, 980),
    (STRUCTURED, 5_266),
    (STRUCTURED, 26_040),
    (STRUCTURED, 39_685),
    (STRUCTURED, 50_860),
    (STRUCTURED, 69_547),
    (EVERYTHING, 52_118),
];

#[test]
fn graphs_that_failed_once_do_not_fail_again() {
    for &(profile, seed) in PAST {
        for _ in 0..20 {
            examine_past(profile, seed);
        }
    }
}
