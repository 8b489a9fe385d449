//! The rooms' order, and where unsafe code may be: rules as code.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each room with the rooms that it may import. Rooms in one line of the plan (threadpool, memory) do not import
/// one another.
const ROOMS: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("base", &["abi"]),
    ("ops", &["abi", "base"]),
    ("sync", &["abi", "base"]),
    ("trace", &["abi", "base", "sync"]),
    ("threadpool", &["abi", "base", "sync", "trace"]),
    ("memory", &["abi", "base", "sync", "trace"]),
    ("device", &["abi", "base", "ops", "sync", "trace", "threadpool", "memory"]),
    ("kernel", &["abi", "base", "ops", "sync", "trace", "threadpool", "memory", "device"]),
    ("stream", &["abi", "base", "ops", "sync", "trace", "threadpool", "memory", "device", "kernel"]),
    ("resource", &["abi", "base", "ops", "sync", "trace", "threadpool", "memory", "device", "kernel", "stream"]),
    (
        "engine",
        &["abi", "base", "ops", "sync", "trace", "threadpool", "memory", "device", "kernel", "stream", "resource"],
    ),
    (
        "graph",
        &[
            "abi",
            "base",
            "ops",
            "sync",
            "trace",
            "threadpool",
            "memory",
            "device",
            "kernel",
            "stream",
            "resource",
            "engine",
        ],
    ),
    (
        "comm",
        &[
            "abi",
            "base",
            "ops",
            "sync",
            "trace",
            "threadpool",
            "memory",
            "device",
            "kernel",
            "stream",
            "resource",
            "engine",
            "graph",
        ],
    ),
    (
        "ffi",
        &[
            "abi",
            "base",
            "ops",
            "sync",
            "trace",
            "threadpool",
            "memory",
            "device",
            "kernel",
            "stream",
            "resource",
            "engine",
            "graph",
            "comm",
        ],
    ),
];

/// The folders of the largest room, in the order in which one may import another: a folder imports only those before
/// it.
const FOLDERS_OF_GRAPH: &[&str] = &["build", "plan", "loops", "carry", "compile", "observe", "run"];

/// Where unsafe code may be: borders to other languages and to drivers, protocols, vectors, and places where somebody
/// vouches for the memory of tensors.
const UNSAFE: &[&str] = &[
    "base/clock.rs",
    "ops/mod.rs",
    "ops/operator.rs",
    "comm/conformance/on_device.rs",
    "comm/conformance/probe.rs",
    "comm/host.rs",
    "comm/kernel.rs",
    "comm/local.rs",
    "comm/request.rs",
    "comm/staging.rs",
    "ffi/",
    "sync/",
    "trace/clock.rs",
    "trace/hooks.rs",
    "trace/host_hooks.rs",
    "trace/itt.rs",
    "trace/nvtx.rs",
    "trace/recorder.rs",
    "trace/ring.rs",
    "trace/tape.rs",
    "trace/tool_library.rs",
    "memory/",
    "threadpool/host/",
    "device/mod.rs",
    "device/cuda/",
    "device/plugin/",
    "kernel/call.rs",
    "kernel/context.rs",
    "kernel/vector/",
    "stream/inbox.rs",
    "stream/listener.rs",
    "stream/resubmit_table.rs",
    "resource/on_device.rs",
    "resource/variable.rs",
    "resource/versions.rs",
    "engine/buffer.rs",
    "engine/call.rs",
    "engine/later.rs",
    "engine/launch.rs",
    "engine/memory.rs",
    "engine/on_host.rs",
    "engine/packed.rs",
    "engine/staged.rs",
    "engine/tensor.rs",
    "engine/transfer.rs",
    "engine/device_conformance/",
    "graph/carry/",
    "graph/compile/fold",
    "graph/run/",
];

/// Tests give kernels memory of their own, and models share it between loom's threads.
fn is_test(name: &str) -> bool {
    ["test", "fixture", "models"].iter().any(|word| name.contains(word))
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
fn folders_of_graph_import_only_folders_before_them() {
    let number = |folder: &str| FOLDERS_OF_GRAPH.iter().position(|known| *known == folder);
    let (mut wrong, mut imports) = (Vec::new(), 0);
    for (name, text) in files().iter().filter(|(name, _)| name.starts_with("graph/") && !is_test(name)) {
        let folder = name.split('/').nth(1).unwrap();
        // What stands above all folders makes programs of graphs.
        let Some(own) = number(folder) else { continue };
        for import in identifiers_after(text, "crate::graph::") {
            let Some(other) = number(import) else { continue };
            imports += 1;
            if other > own {
                wrong.push(format!("{name} imports {import}"));
            }
        }
    }
    assert!(imports > 200, "only {imports} imports seen");
    assert!(wrong.is_empty(), "against the order of the folders:\n{}", wrong.join("\n"));
}

/// The name that a line declares a type by, or has an inherent `impl` of: "Program" of `impl<T> Object<Program> {`.
fn type_of(line: &str, is_impl: bool) -> Option<&str> {
    let end = |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    if !is_impl {
        let line = line.strip_prefix("pub").map_or(line, |rest| match rest.strip_prefix('(') {
            Some(scoped) => scoped.split_once(") ").map_or("", |(_, rest)| rest),
            None => rest.trim_start(),
        });
        let rest = ["struct ", "enum ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
        return Some(&rest[..end(rest)]);
    }
    let mut rest = line.strip_prefix("impl")?;
    if rest.contains(" for ") || line.contains("dyn ") {
        return None;
    }
    if rest.starts_with('<') {
        let mut depth = 0;
        let close = rest.find(|c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &rest[close + 1..];
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("Object<").unwrap_or(rest);
    Some(&rest[..end(rest)])
}

/// What a type can do stands in the module that declares it: in its file, beside that, or below. `abi` declares the
/// types of the C interface, without logic. The list of passes, which makes programs, stands above all folders of its
/// room.
#[test]
fn a_type_is_implemented_in_its_module() {
    const ABOVE: [(&str, &str); 1] = [("graph/create.rs", "Program")];
    let files: Vec<_> = files().into_iter().filter(|(name, _)| !is_test(name)).collect();
    let mut homes: HashMap<&str, Vec<&str>> = HashMap::new();
    for (name, text) in &files {
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        text.lines().filter_map(|line| type_of(line, false)).for_each(|of| homes.entry(of).or_default().push(folder));
    }
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (name, text) in &files {
        for of in text.lines().filter_map(|line| type_of(line, true)) {
            let Some(homes) = homes.get(of) else { continue };
            seen += 1;
            let is_home = |home: &&str| *home == "abi" || name.starts_with(&format!("{home}/"));
            if !homes.iter().any(is_home) && !ABOVE.contains(&(name.as_str(), of)) {
                wrong.push(format!("{name} has an impl of {of}"));
            }
        }
    }
    assert!(seen > 500, "only {seen} impls seen");
    assert!(wrong.is_empty(), "types are implemented outside of their modules:\n{}", wrong.join("\n"));
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
/// modules above unsafe code cannot, nor can those that include functions for C.
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
        .filter(|(name, text)| !has_unsafe(text) && !forbids(text) && !name.contains("models"))
        .filter(|(_, text)| !text.contains("include!("))
        .filter(|(name, _)| !files.iter().any(|(module, text)| is_below(name, module) && forbids(text)))
        .filter(|(module, _)| !files.iter().any(|(name, text)| is_below(name, module) && has_unsafe(text)))
        .map(|(name, _)| name)
        .collect();
    assert!(wrong.is_empty(), "no unsafe code, and no #![forbid(unsafe_code)], in {wrong:?}");
}

/// The crate for Rust stands on the C interface alone: on the border's functions and the types of C.
#[test]
fn the_crate_for_rust_uses_the_border_alone() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("rust/src"), &mut found);
    assert!(found.len() > 10, "found only {} sources", found.len());
    for path in found {
        let text = fs::read_to_string(&path).unwrap();
        let used = identifiers_after(&text, "weir_core::");
        let wrong: Vec<_> = used.into_iter().filter(|room| !["abi", "ffi"].contains(room)).collect();
        assert!(wrong.is_empty(), "{} uses {wrong:?}", path.display());
    }
}

/// What blocks a thread or hands memory between threads is instrumented in a sanitised build only if it is compiled
/// with the library, and that of std is not: `sync` has its own.
#[test]
fn locks_come_from_sync() {
    const OF_STD: &[&str] =
        &["Mutex", "MutexGuard", "RwLock", "Condvar", "Once", "OnceLock", "LazyLock", "Barrier", "mpsc", "PoisonError"];
    let mut wrong = Vec::new();
    for (name, text) in files() {
        // sync itself may use them where the operating system gives nothing better, base where it has no clock, and
        // models for what loom is not to see.
        if name.starts_with("sync/") || name == "base/clock.rs" || name.contains("models") {
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

/// Where a variable of the environment is read, once in a process: each is a setting that the documentation names.
const READERS: &[&str] = &[
    "device/cuda/blas/mod.rs",
    "device/cuda/driver.rs",
    "engine/threads.rs",
    "kernel/cache/mod.rs",
    "kernel/vector/isa.rs",
    "sync/environment.rs",
    "threadpool/attr.rs",
];

#[test]
fn the_environment_is_read_only_for_settings() {
    let reads = |(name, text): &(String, String)| (!is_test(name) && text.contains("env::var")).then(|| name.clone());
    let found: Vec<String> = files().iter().filter_map(reads).collect();
    assert_eq!(found, READERS, "a variable of the environment is read in another file");
}

#[test]
fn files_are_short_enough_to_hold_one_idea() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (name, _) in files() {
        let lines = fs::read_to_string(src.join(&name)).unwrap().lines().count();
        assert!(lines <= 600, "{name} has {lines} lines");
    }
}

type Module = Vec<String>;

fn path_of(text: &str) -> Module {
    text.split("::").map(|part| part.trim().to_owned()).collect()
}

/// The module of a file: "graph/place/mod.rs" is graph::place.
fn module_of(name: &str) -> Module {
    let mut parts: Module = name.strip_suffix(".rs").unwrap().split('/').map(str::to_owned).collect();
    parts.pop_if(|last| ["mod", "lib"].contains(&last.as_str()));
    parts
}

/// Without `mod tests { .. }` at its end, and without what is declared for tests alone.
fn without_tests(text: &str) -> String {
    let end = ["#[cfg(test)]\nmod tests {", "#[cfg(all(test, not(loom)))]\nmod tests {"].map(|begin| text.find(begin));
    let end = end.into_iter().flatten().min().unwrap_or(text.len());
    let mut code = String::new();
    let mut lines = text[..end].lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("#[cfg(") && line.contains("test") {
            // The item may be a module or an import, which end in the same line.
            let item = lines.next().unwrap_or_default();
            if item.trim_end().ends_with(';') {
                continue;
            }
            code.push_str(item);
        } else {
            code.push_str(line);
        }
        code.push('\n');
    }
    code
}

/// With what is above a module inside of a file said as what is above the file.
fn without_modules_inside(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\nmod ").map(|at| at + 1) {
        let line = rest[at..].lines().next().unwrap_or_default();
        if !line.ends_with('{') {
            code.push_str(&rest[..at + line.len()]);
            rest = &rest[at + line.len()..];
            continue;
        }
        let end = rest[at..].find("\n}\n").map_or(rest.len(), |end| at + end);
        code.push_str(&rest[..at]);
        // `super` is the file itself there.
        code.push_str(
            &rest[at..end].replace("super::super::", "self::\0").replace("super::", "self::").replace('\0', "super::"),
        );
        rest = &rest[end..];
    }
    code.push_str(rest);
    code
}

/// The paths of a `use` tree.
fn paths_of(tree: &str, before: &str, found: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap().trim();
        found.push(format!("{before}{path}"));
        return;
    };
    let before = format!("{before}{}", tree[..open].trim());
    let inside = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths_of(&inside[start..at], &before, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inside[start..].trim().is_empty() {
        paths_of(&inside[start..], &before, found);
    }
}

/// Where a path leads that is written in a module; None if it leads out of the library.
fn absolute(module: &Module, path: &str, is_module: &dyn Fn(&Module) -> bool) -> Option<Module> {
    let parts = path_of(path);
    let mut own = module.clone();
    match parts[0].as_str() {
        "crate" => Some(parts[1..].to_vec()),
        "super" | "self" => {
            for (at, part) in parts.iter().enumerate() {
                match part.as_str() {
                    "super" => drop(own.pop()),
                    "self" => {}
                    _ => return Some([own, parts[at..].to_vec()].concat()),
                }
            }
            Some(own)
        }
        _ => {
            own.push(parts[0].clone());
            is_module(&own).then(|| [module.clone(), parts].concat())
        }
    }
}

/// The imports of a file: whether each passes on what it names, and its paths; and the rest of the file.
fn imports_of(text: &str) -> (Vec<(bool, Vec<String>)>, String) {
    let (mut all, mut code, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find("use ") {
        let line = rest[..at].lines().last().unwrap_or_default();
        let before = if rest[..at].ends_with('\n') { "" } else { line.trim() };
        code.push_str(&rest[..at]);
        if before.is_empty() || before.starts_with("pub") {
            let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
            let mut paths = Vec::new();
            paths_of(&rest[at + 4..end], "", &mut paths);
            all.push((before.starts_with("pub"), paths));
            rest = &rest[end..];
        } else {
            code.push_str("use ");
            rest = &rest[at + 4..];
        }
    }
    code.push_str(rest);
    (all, code)
}

/// Files that import one another in circles, each with those of its circle. An import of a name that a module passes on
/// is one of the file that has it.
fn circles(files: &[(String, String)]) -> Vec<Vec<String>> {
    let is_test = |name: &str| ["tests.rs", "_tests.rs", "tests/", "models"].iter().any(|word| name.contains(word));
    let files: Vec<(Module, &str, _)> = files
        .iter()
        .filter(|(name, _)| !is_test(name))
        .map(|(name, text)| (module_of(name), name.as_str(), imports_of(&without_modules_inside(&without_tests(text)))))
        .collect();
    let number: HashMap<Module, usize> = files.iter().enumerate().map(|(i, file)| (file.0.clone(), i)).collect();
    let is_module = |module: &Module| number.contains_key(module);
    let mut passed_on: HashMap<Module, HashMap<String, Module>> = HashMap::new();
    for (module, _, (imports, _)) in &files {
        for (_, paths) in imports.iter().filter(|(is_passed_on, _)| *is_passed_on) {
            for to in paths.iter().filter_map(|path| absolute(module, path, &is_module)) {
                let name = to.last().cloned().unwrap_or_default();
                passed_on.entry(module.clone()).or_default().insert(name, to);
            }
        }
    }
    let resolve = |path: &Module| {
        let mut path = path.clone();
        for _ in 0..8 {
            let length = (0..=path.len()).rev().find(|&length| is_module(&path[..length].to_vec()))?;
            let (module, rest) = path.split_at(length);
            let next = rest.first().and_then(|name| passed_on.get(module)?.get(name));
            match next {
                Some(to) if *to != path => path = [to.clone(), rest[1..].to_vec()].concat(),
                _ => return number.get(module).copied(),
            }
        }
        None
    };
    let edges: Vec<Vec<usize>> = files
        .iter()
        .enumerate()
        .map(|(own, (module, _, (imports, text)))| {
            let mut to: Vec<Module> = Vec::new();
            for path in imports.iter().filter(|(is_passed_on, _)| !is_passed_on).flat_map(|(_, paths)| paths) {
                let Some(path) = absolute(module, path, &is_module) else { continue };
                let name = path.iter().rev().find(|part| *part != "self").cloned().unwrap_or_default();
                let path: Module = path.into_iter().filter(|part| part != "self").collect();
                // Of a module's names those that are used.
                match passed_on.contains_key(&path) && is_module(&path) {
                    true => to.extend(
                        identifiers_after(text, &format!("{name}::"))
                            .iter()
                            .map(|item| [path.clone(), vec![(*item).to_owned()]].concat()),
                    ),
                    false => to.push(path),
                }
            }
            for start in ["crate::", "super::", "self::"] {
                for (at, _) in text.match_indices(start) {
                    let end = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
                    let path = text[at..at + end.unwrap_or(text.len() - at)].trim_end_matches(':');
                    // Not who may see something.
                    if !text[..at].ends_with("(in ") {
                        to.extend(absolute(module, path, &is_module));
                    }
                }
            }
            // A child by its name: `child::item`.
            for (child, _, _) in files
                .iter()
                .filter(|(other, ..)| other.len() == module.len() + 1 && other[..module.len()] == module[..])
            {
                let prefix = format!("{}::", child[module.len()]);
                let items = identifiers_after(text, &prefix);
                to.extend(items.iter().map(|item| [child.clone(), vec![(*item).to_owned()]].concat()));
            }
            let mut to: Vec<usize> = to.iter().filter_map(&resolve).filter(|&to| to != own).collect();
            to.sort_unstable();
            to.dedup();
            to
        })
        .collect();
    // Two files are in one circle if each is reached from the other.
    let reached: Vec<HashSet<usize>> = (0..files.len())
        .map(|from| {
            let (mut seen, mut to_do) = (HashSet::new(), vec![from]);
            while let Some(at) = to_do.pop() {
                to_do.extend(edges[at].iter().copied().filter(|&next| seen.insert(next)));
            }
            seen
        })
        .collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for from in (0..files.len()).filter(|&from| reached[from].contains(&from)) {
        let circle = (0..files.len()).filter(|&to| reached[from].contains(&to) && reached[to].contains(&from));
        let circle: Vec<String> = circle.map(|file| files[file].1.to_owned()).collect();
        if !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn files_import_downwards() {
    assert_eq!(circles(&files()), Vec::<Vec<String>>::new(), "files that import one another in circles");
}

#[test]
fn circles_of_files_are_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let line = [
        file("a/mod.rs", "mod low;\nmod high;\npub use low::Low;\nuse high::go;\n"),
        file("a/low.rs", "pub struct Low;\n"),
        file("a/high.rs", "use super::Low;\npub fn go() {}\n"),
    ];
    assert_eq!(circles(&line), Vec::<Vec<String>>::new(), "a name that is passed on is that of its file");
    let by_type = file("a/low.rs", "use super::high::go;\npub struct Low;\n");
    assert_eq!(circles(&[line[0].clone(), by_type, line[2].clone()]), [["a/low.rs", "a/high.rs"].map(str::to_owned)]);
    let by_path = file("a/low.rs", "pub struct Low;\nfn f() {\n    crate::a::high::go()\n}\n");
    assert_eq!(circles(&[line[0].clone(), by_path, line[2].clone()]).len(), 1);
    let in_a_tree = file("a/low.rs", "use crate::{\n    b::{self, X},\n    a::high::{go},\n};\n");
    assert_eq!(circles(&[line[0].clone(), in_a_tree, line[2].clone()]).len(), 1);
    let tests = file("a/low.rs", "pub struct Low;\n#[cfg(test)]\nmod tests {\n    use super::super::high::go;\n}\n");
    assert_eq!(circles(&[line[0].clone(), tests, line[2].clone()]), Vec::<Vec<String>>::new());
    let child = file("a/high.rs", "mod child;\nuse super::Low;\npub fn go() {\n    child::f()\n}\n");
    let of_parent = file("a/high/child.rs", "use super::go;\npub fn f() {}\n");
    assert_eq!(circles(&[line[0].clone(), line[1].clone(), child, of_parent]).len(), 1);
}
