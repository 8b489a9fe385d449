//! Damaged texts are refused or run: nothing panics, whatever is missing, doubled or changed.

mod kit;

use kit::random::Random;
use weir_ptx::{Module, NoCalls, Slice};

/// The words and signs of a text with the blanks between them.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| {
        if c.is_alphanumeric() || "_%$.".contains(c) {
            0
        } else if c.is_whitespace() {
            1
        } else {
            2
        }
    };
    let mut found = Vec::new();
    let mut begin = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|last| last != kind(c) || last == 2) {
            found.push(&text[begin..at]);
            begin = at;
        }
        last = Some(kind(c));
    }
    found.push(&text[begin..]);
    found
}

fn damaged(words: &[&str], random: &mut Random) -> String {
    const STRANGE: &[&str] = &[
        "4611686018427387904",
        "-1",
        "{",
        "}",
        "9223372036854775808",
        "%r1",
        ".b64",
        ".align",
        "\"",
        "é",
        "0f",
        "@",
        "[",
        "",
    ];
    let mut words: Vec<&str> = words.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(words.len() as u64) as usize;
        let other = random.below(words.len() as u64) as usize;
        match random.below(5) {
            0 => drop(words.remove(at)),
            1 => words.swap(at, other),
            2 => words[at] = words[other],
            3 => words.insert(at, words[other]),
            _ => words[at] = STRANGE[random.below(STRANGE.len() as u64) as usize],
        }
    }
    words.concat()
}

#[test]
fn damaged_texts_never_panic() {
    let sources = [include_str!("../samples/threads.ptx"), include_str!("../samples/reduce.ptx")];
    let (mut refused, mut run, mut failed) = (0, 0, 0);
    for (seed, source) in sources.iter().enumerate() {
        let words = words(source);
        let mut random = Random::new(seed as u64 + 40);
        for _ in 0..300 {
            let text = damaged(&words, &mut random);
            let Ok(mut module) = Module::parse(&text) else {
                refused += 1;
                continue;
            };
            for global in module.globals() {
                module.place(&global.name, 0x100_0000).unwrap();
            }
            let names: Vec<String> = module.entries().map(str::to_string).collect();
            for name in names {
                let entry = module.entry(&name).unwrap().with_limit(200_000);
                let mut bytes = [0u8; 4096];
                let mut memory = Slice::new();
                memory.add(0x100_0000, &mut bytes);
                let mut parameters = 0x100_0000u64.to_le_bytes().repeat(entry.parameter_bytes() as usize / 8 + 1);
                parameters.truncate(entry.parameter_bytes() as usize);
                match entry.run([2, 1, 1], [40, 1, 1], 512, &parameters, &mut memory, &mut NoCalls) {
                    Ok(_) => run += 1,
                    Err(_) => failed += 1,
                }
            }
        }
    }
    assert!(refused > 100 && run > 100 && failed > 100, "{refused} refused, {run} run, {failed} failed");
}
