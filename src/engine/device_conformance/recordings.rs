//! Clauses about recordings and prepared launches, and about queries of idle streams.
#![forbid(unsafe_code)]

use super::bench::{DeviceBench, Finding, Seen, of_work_under_way, under_way};
use super::field::Field;
use super::keep::told;
use super::kernels::{self, LaunchWay};
use crate::base::{Code, dtype};
use crate::device::{
    Comparison, Executable, Fill, Integer, Location, Predicate, RecordedBranch, RecordedLoop, RecordedStep,
    RecordedWork, Recording, Relation, Transfer,
};
use std::sync::Arc;

pub(super) fn idle(bench: &DeviceBench) -> Finding {
    let mut field = bench.field(1)?;
    if !field.stream(0).tells_idle() {
        field.take_down()?;
        return Ok(Seen::NotOffered("its streams do not tell".to_owned()));
    }
    let met = under_way(bench.rounds().div_ceil(4), |weight| {
        let (from, expected) = field.burden(0, weight)?;
        let landing = field.download_aside(0, from, expected.len())?;
        let (deadline, mut was_busy) = (bench.deadline(), false);
        while !field.stream(0).is_idle() {
            was_busy = true;
            if deadline.is_past() {
                return Err(format!("a stream was not idle in {}", bench.budget()));
            }
            std::hint::spin_loop();
        }
        field.expect(landing, &expected, "a stream was idle before its work was done")?;
        field.finish(0)?;
        Ok(was_busy)
    })?;
    field.take_down()?;
    of_work_under_way(met, format!("{met} times"))
}

/// A device's executable of a recording; `None` if it refuses.
fn record(
    field: &mut Field<'_>,
    bench: &DeviceBench,
    steps: &[RecordedStep<'_>],
) -> Result<Option<Arc<dyn Executable>>, String> {
    match bench.accelerator()?.record(&Recording { name: "conformance", steps }) {
        Ok(executable) => {
            field.keep_executable(&executable);
            Ok(Some(executable))
        }
        Err(error) if error.code() == Code::Unimplemented => Ok(None),
        Err(error) => Err(told(error)),
    }
}

fn copy(to: usize, from: usize, bytes: usize) -> RecordedWork<'static> {
    RecordedWork::Copy(Transfer { name: "conformance", to: Location::Device(to), from: Location::Device(from), bytes })
}

fn fill(address: usize, bytes: usize, value: u8) -> RecordedWork<'static> {
    RecordedWork::Fill(Fill { name: "conformance", address, bytes, value })
}

pub(super) fn recordings(bench: &DeviceBench) -> Finding {
    if !bench.accelerator()?.can_record() {
        return Ok(Seen::NotOffered("it makes no recordings".to_owned()));
    }
    for _ in 0..bench.rounds().div_ceil(2) {
        let mut field = bench.field(1)?;
        let bytes = 3000 + bench.draw(200_000);
        let [a, b, c, other] = [field.block(bytes)?, field.block(bytes)?, field.block(bytes)?, field.block(bytes)?];
        let steps = [
            RecordedStep { work: copy(b, a, bytes), after: &[] },
            RecordedStep { work: fill(a, bytes, 7), after: &[0] },
            RecordedStep { work: copy(c, a, bytes), after: &[1] },
            RecordedStep { work: fill(b, 100, 8), after: &[0] },
        ];
        let Some(executable) = record(&mut field, bench, &steps)? else {
            return Err("it says that it makes recordings, and refuses one of copies and fills".to_owned());
        };
        let (first, second) = (bench.bytes(bytes), bench.bytes(bytes));
        field.upload(0, other, &second)?;
        field.burden(0, 1)?;
        for time in 0..4 {
            field.upload(0, a, &first)?;
            if time == 2 {
                // Replays that are still in flight keep the old addresses.
                executable.update(0, &copy(b, other, bytes)).map_err(told)?;
            }
            field.stream(0).replay(&executable, "a recording").map_err(told)?;
            let landings = [field.download(0, a, bytes)?, field.download(0, b, bytes)?, field.download(0, c, bytes)?];
            [a, b, c].into_iter().try_for_each(|block| field.fill(0, block, bytes, 9))?;
            field.finish(0)?;
            let mut mixed = if time < 2 { first.clone() } else { second.clone() };
            mixed[..100].fill(8);
            for (landing, expected) in landings.into_iter().zip([&vec![7; bytes], &mixed, &vec![7; bytes]]) {
                field.expect(landing, expected, "a replay did not do its steps in order, or as they were last")?;
            }
        }
        // An update between two replays, without a wait.
        field.upload(0, a, &first)?;
        executable.update(0, &copy(b, a, bytes)).map_err(told)?;
        field.burden(0, 1)?;
        field.stream(0).replay(&executable, "a recording").map_err(told)?;
        executable.update(0, &copy(b, other, bytes)).map_err(told)?;
        let landing = field.download(0, b, bytes)?;
        let mut expected = first;
        expected[..100].fill(8);
        field.finish(0)?;
        field.expect(landing, &expected, "an update has changed a replay that was under way")?;
        field.take_down()?;
    }
    let names = kernels::each_known(bench, LaunchWay::Recorded)?;
    Ok(Seen::Kept(format!("copies, fills{}", names.iter().map(|name| format!(", {name}")).collect::<String>())))
}

/// How many words are written one after the other to the address that a loop reads.
const WORDS: usize = 9;

pub(super) fn control(bench: &DeviceBench) -> Finding {
    let accelerator = bench.accelerator()?;
    if let Err(error) = accelerator.control_flow() {
        return Ok(Seen::NotOffered(error.message().to_owned()));
    }
    let mut refused = None;
    for round in 0..bench.rounds() * 2 {
        refused = refused.or(looped(bench, round)?);
        refused = refused.or(branched(bench, round)?);
    }
    Ok(match refused {
        Some(text) => Seen::NotOffered(text),
        None => Seen::Kept(format!("{} loops, {} branches", bench.rounds() * 2, bench.rounds() * 2)),
    })
}

/// A loop: each iteration moves a row of words on by one, so their final position shows how often it ran.
fn looped(bench: &DeviceBench, round: usize) -> Result<Option<String>, String> {
    const RELATIONS: [Relation; 6] =
        [Relation::Eq, Relation::Ne, Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge];
    let mut field = bench.field(1)?;
    let types = [dtype::S32, dtype::F32, dtype::BOOL, dtype::U8, dtype::S8];
    let (of, compares) = match round % 7 {
        at @ 0..=1 => (types[at], true),
        2 => (dtype::S32, false),
        at @ 3..=5 => (types[at - 1], false),
        _ => (types[round / 7 % 2], true),
    };
    let relation = RELATIONS[round / 7 % 6];
    let width = if of == dtype::F32 || of == dtype::S32 { 4 } else { 1 };
    let word = |bench: &DeviceBench| -> Vec<u8> {
        let number = bench.draw(5) as i32 - 2;
        match of {
            dtype::F32 if bench.draw(12) == 0 => f32::NAN.to_le_bytes().to_vec(),
            dtype::F32 => (number as f32).to_le_bytes().to_vec(),
            dtype::S32 => number.to_le_bytes().to_vec(),
            dtype::S8 => vec![number as u8],
            dtype::U8 => vec![if bench.draw(3) == 0 { 0 } else { 200 }],
            _ => vec![bench.draw(4).min(1) as u8],
        }
    };
    let limit = word(bench);
    let number = |bytes: &[u8]| [bytes[0], bytes[1], bytes[2], bytes[3]];
    let holds = |word: &[u8]| match compares {
        true => Comparison::of(relation, of, [number(word), number(&limit)]),
        false => word.iter().any(|&byte| byte != 0),
    };
    let mut words: Vec<Vec<u8>> = (0..WORDS).map(|_| word(bench)).collect();
    // The last word ends the loop, if any word can.
    for _ in 0..64 {
        if !holds(&words[WORDS - 1]) {
            break;
        }
        words[WORDS - 1] = word(bench);
    }
    if holds(&words[WORDS - 1]) {
        return field.take_down().map(|()| None);
    }
    let (row, against) = (field.block(WORDS * width)?, field.block(4)?);
    field.upload(0, row, &words.concat())?;
    field.upload(0, against, &limit)?;
    let chain: Vec<[usize; 1]> = (0..WORDS).map(|at| [at]).collect();
    let body: Vec<RecordedStep<'_>> = (0..WORDS - 1)
        .map(|at| RecordedStep {
            work: copy(row + at * width, row + (at + 1) * width, width),
            after: if at == 0 { &[] } else { &chain[at - 1] },
        })
        .collect();
    let predicate = match compares {
        true => Predicate::Comparison(Comparison { relation, dtype: of, addresses: [row, against] }),
        false => Integer { address: row, dtype: of }.into(),
    };
    // Only the first step writes the predicate.
    let behind = round.is_multiple_of(2).then_some(&[0usize][..]);
    let again = RecordedLoop { name: "conformance", predicate, body: &body, behind };
    let steps = [RecordedStep { work: RecordedWork::Loop(again), after: &[] }];
    let Some(executable) = record(&mut field, bench, &steps)? else {
        return field.take_down().map(|()| Some("it refuses a loop of copies".to_owned()));
    };
    field.stream(0).replay(&executable, "a recording").map_err(told)?;
    let landing = field.download(0, row, WORDS * width)?;
    field.finish(0)?;
    while holds(&words[0]) {
        words.rotate_left(1);
        words[WORDS - 1] = words[WORDS - 2].clone();
    }
    let what = format!("a loop by {} was not done as often as it says", dtype::name(of));
    field.expect(landing, &words.concat(), &what)?;
    field.take_down().map(|()| None)
}

/// A branch, with a loop in its first list.
fn branched(bench: &DeviceBench, round: usize) -> Result<Option<String>, String> {
    let mut field = bench.field(1)?;
    let is_cond = round.is_multiple_of(2);
    let (choice, result, runs) = (field.block(4)?, field.block(64)?, field.block(8)?);
    let lists = if is_cond { 2 } else { 1 + bench.draw(4) };
    let body = [RecordedStep { work: copy(runs, runs + 4, 4), after: &[] }];
    let predicate = Integer { address: runs, dtype: dtype::S32 }.into();
    let again = RecordedLoop { name: "conformance", predicate, body: &body, behind: None };
    let marks: Vec<[RecordedStep<'_>; 2]> = (0..lists)
        .map(|list| {
            let last = if list == 0 { RecordedWork::Loop(again) } else { fill(result + 32, 32, list as u8) };
            [
                RecordedStep { work: fill(result, 64, 100 + list as u8), after: &[] },
                RecordedStep { work: last, after: &[0] },
            ]
        })
        .collect();
    let branches: Vec<&[RecordedStep<'_>]> = marks.iter().map(|list| &list[..]).collect();
    let of = [dtype::S32, dtype::S8, dtype::U8, dtype::BOOL][round / 2 % 4];
    let branch = RecordedBranch {
        name: "conformance",
        choice: Integer { address: choice, dtype: of },
        is_cond,
        branches: &branches,
    };
    let steps = [
        RecordedStep { work: fill(result, 64, 1), after: &[] },
        RecordedStep { work: RecordedWork::Branch(branch), after: &[0] },
    ];
    let Some(executable) = record(&mut field, bench, &steps)? else {
        return field.take_down().map(|()| Some("it refuses a branch of fills".to_owned()));
    };
    // One recording decides anew in each replay.
    for _ in 0..4 {
        let number = match of {
            dtype::BOOL => bench.draw(2) as i32,
            dtype::U8 => bench.draw(7) as i32,
            _ => bench.draw(9) as i32 - 3,
        };
        field.upload(0, choice, &number.to_le_bytes())?;
        field.upload(0, runs, &[1, 0, 0, 0, 0, 0, 0, 0])?;
        field.stream(0).replay(&executable, "a recording").map_err(told)?;
        let (landing, left) = (field.download(0, result, 64)?, field.download(0, runs, 4)?);
        field.finish(0)?;
        let chosen = if is_cond { usize::from(number != 0) } else { RecordedBranch::chosen(i64::from(number), lists) };
        let mut expected = [100 + chosen as u8; 64];
        if chosen > 0 {
            expected[32..].fill(chosen as u8);
        }
        field.expect(landing, &expected, &format!("a branch by {number} of {lists} lists did another one"))?;
        field.expect(left, &[u8::from(chosen > 0), 0, 0, 0], "a loop in a branch was done when it was not its turn")?;
    }
    field.take_down().map(|()| None)
}

pub(super) fn prepared(bench: &DeviceBench) -> Finding {
    let names = kernels::each_known(bench, LaunchWay::Prepared)?;
    Ok(match names.is_empty() {
        true => Seen::NotOffered("it prepares none of the kernels that are tried".to_owned()),
        false => Seen::Kept(names.join(", ")),
    })
}
