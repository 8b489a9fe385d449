//! The rooms' order, and where unsafe code may be: rules as code.

use std::fs;
use std::path::{Path, PathBuf};

/// Each room with the rooms that it may import. Rooms in one line of the plan (threadpool, memory) do not import
/// one another.
const ROOMS: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("base", &["abi"]),
    ("sync", &["abi", "base"]),
    ("threadpool", &["abi", "base", "sync"]),
    ("memory", &["abi", "base", "sync"]),
    ("device", &["abi", "base", "sync", "threadpool", "memory"]),
    ("kernel", &["abi", "base", "sync", "threadpool", "memory", "device"]),
    ("stream", &["abi", "base", "sync", "threadpool", "memory", "device", "kernel"]),
    ("resource", &["abi", "base", "sync", "threadpool", "memory", "device", "kernel", "stream"]),
    ("engine", &["abi", "base", "sync", "threadpool", "memory", "device", "kernel", "stream", "resource"]),
    ("graph", &["abi", "base", "sync", "threadpool", "memory", "device", "kernel", "stream", "resource", "engine"]),
    (
        "ffi",
        &["abi", "base", "sync", "threadpool", "memory", "device", "kernel", "stream", "resource", "engine", "graph"],
    ),
];

/// Where unsafe code may be: borders to other languages and to drivers, protocols, vectors, and places where somebody
/// vouches for the memory of tensors.
const UNSAFE: &[&str] = &[
    "base/clock.rs",
    "ffi/",
    "sync/",
    "memory/",
    "threadpool/host/",
    "device/mod.rs",
    "device/cuda/",
    "device/emulated/effect.rs",
    "device/emulated/stream.rs",
    "device/plugin/",
    "kernel/call.rs",
    "kernel/context.rs",
    "kernel/outputs.rs",
    "kernel/vector/",
    "resource/on_device.rs",
    "resource/variable.rs",
    "resource/versions.rs",
    "engine/buffer.rs",
    "engine/call.rs",
    "engine/later.rs",
    "engine/launch.rs",
    "engine/memory.rs",
    "engine/packed.rs",
    "engine/staged.rs",
    "engine/tensor.rs",
    "engine/transfer.rs",
    "engine/device_conformance/",
    "graph/compile/fold",
    "graph/exec/",
    "graph/nested.rs",
    "graph/place/",
];

/// Tests give kernels memory of their own.
fn is_test(name: &str) -> bool {
    name.contains("test") || name.contains("fixture")
}

/// The word in code, but not in the name of the rule against it.
fn has_unsafe(text: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices("unsafe")
        .any(|(at, word)| !text[..at].ends_with(is_of_word) && !text[at + word.len()..].starts_with(is_of_word))
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Every file under src as (path from src, text), without comments.
fn files() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&src, &mut found);
    let code = |text: String| {
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut files: Vec<_> = found
        .iter()
        .map(|path| {
            let name = path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
            (name, code(fs::read_to_string(path).unwrap()))
        })
        .collect();
    files.sort();
    assert!(files.len() > 50, "found only {} sources", files.len());
    files
}

fn identifiers_after<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    text.match_indices(prefix)
        .map(|(at, _)| {
            let rest = &text[at + prefix.len()..];
            &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]
        })
        .collect()
}

#[test]
fn a_room_imports_only_rooms_before_it() {
    let mut wrong = Vec::new();
    for (name, text) in files().iter().filter(|(name, _)| name != "lib.rs") {
        let room = name.split('/').next().unwrap();
        let (_, allowed) =
            ROOMS.iter().find(|(r, _)| *r == room).unwrap_or_else(|| panic!("{name} is in no known room"));
        for import in identifiers_after(text, "crate::") {
            let is_room = ROOMS.iter().any(|(r, _)| *r == import);
            if is_room && import != room && !allowed.contains(&import) {
                wrong.push(format!("{name} imports {import}"));
            }
            assert!(is_room, "{name} names crate::{import}, which is no room");
        }
        assert!(
            !text.contains("use crate::{"),
            "{name}: one `use crate::room` per room, so that this test can read it"
        );
    }
    assert!(wrong.is_empty(), "against the order of the rooms:\n{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_is_only_where_it_belongs() {
    let wrong: Vec<_> = files()
        .into_iter()
        .filter(|(name, _)| !UNSAFE.iter().any(|place| name.starts_with(place)) && !name.starts_with("abi/"))
        .filter(|(name, text)| has_unsafe(text) && !is_test(name))
        .map(|(name, _)| name)
        .collect();
    assert!(wrong.is_empty(), "unsafe code in {wrong:?}");
}

/// A file without unsafe code says so, or a module above it does: then the compiler sees to it that it stays so. The
/// modules above unsafe code cannot.
#[test]
fn files_without_unsafe_code_forbid_it() {
    let files = files();
    let below = |name: &str| match name.strip_suffix("mod.rs").or(name.strip_suffix("lib.rs")) {
        Some(dir) => dir.to_owned(),
        None => format!("{}/", name.strip_suffix(".rs").unwrap()),
    };
    let is_below = |name: &str, module: &str| name != module && name.starts_with(&below(module));
    let forbids = |text: &str| text.contains("#![forbid(unsafe_code)]");
    let wrong: Vec<_> = files
        .iter()
        .filter(|(_, text)| !has_unsafe(text) && !forbids(text))
        .filter(|(name, _)| !files.iter().any(|(module, text)| is_below(name, module) && forbids(text)))
        .filter(|(module, _)| !files.iter().any(|(name, text)| is_below(name, module) && has_unsafe(text)))
        .map(|(name, _)| name)
        .collect();
    assert!(wrong.is_empty(), "no unsafe code, and no #![forbid(unsafe_code)], in {wrong:?}");
}

/// What blocks a thread or hands memory between threads is instrumented in a sanitised build only if it is compiled
/// with the library, and that of std is not: `sync` has its own.
#[test]
fn locks_come_from_sync() {
    const OF_STD: &[&str] =
        &["Mutex", "MutexGuard", "RwLock", "Condvar", "Once", "OnceLock", "LazyLock", "Barrier", "mpsc", "PoisonError"];
    let mut wrong = Vec::new();
    for (name, text) in files() {
        // sync itself may use them where the operating system gives nothing better, and base where it has no clock.
        if name.starts_with("sync/") || name == "base/clock.rs" {
            continue;
        }
        for (at, _) in text.match_indices("std::sync::") {
            let rest = &text[at + "std::sync::".len()..];
            let names =
                if rest.starts_with('{') { &rest[..rest.find(';').unwrap()] } else { rest.lines().next().unwrap() };
            let of_std = |word: &&str| OF_STD.contains(word);
            wrong
                .extend(names.split(|c: char| !c.is_alphanumeric()).find(of_std).map(|word| format!("{name}: {word}")));
        }
        if ["thread::park", "parking_lot"].iter().any(|word| text.contains(word)) {
            wrong.push(format!("{name}: parks a thread"));
        }
    }
    assert!(wrong.is_empty(), "locks that are not of crate::sync: {wrong:?}");
}

#[test]
fn files_are_short_enough_to_hold_one_idea() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (name, _) in files() {
        let lines = fs::read_to_string(src.join(&name)).unwrap().lines().count();
        assert!(lines <= 600, "{name} has {lines} lines");
    }
}
