//! Functions of features that a build leaves out: they are there, as in every build, and fail.
//!
//! Sources are read as rustfmt lays them out: builds need no parser of Rust for this.

use super::Result;
use std::fs;
use std::path::Path;

/// The sources of the functions of features, for builds without them.
pub fn write(root: &Path, creators: &str) -> Result<[(&'static str, String); 3]> {
    let ffi = root.join("src/ffi");
    let modules = fs::read_to_string(ffi.join("mod.rs"))?;
    let all = |feature: &str| {
        let mut files = modules_of(&modules, feature);
        files.try_fold(String::new(), |all, file| -> Result<String> {
            let source = fs::read_to_string(ffi.join(format!("{file}.rs")))?;
            Ok(all + &functions(&source, feature))
        })
    };
    Ok([
        ("left_out_engines.rs", all("engines")?),
        ("left_out_graph.rs", all("graph")?),
        ("left_out_kernels.rs", functions(creators, "kernels")),
    ])
}

/// The names of the modules that only builds with the feature have: `#[cfg(feature = "..")] mod name;`.
fn modules_of<'a>(modules: &'a str, feature: &str) -> impl Iterator<Item = &'a str> {
    let condition = format!("#[cfg(feature = \"{feature}\")]");
    let pairs = modules.lines().zip(modules.lines().skip(1));
    pairs
        .filter(move |(line, _)| *line == condition)
        .filter_map(|(_, next)| next.strip_prefix("mod ")?.strip_suffix(';'))
}

/// The exported functions of a source.
fn functions(source: &str, feature: &str) -> String {
    let is_exported = |item: &&str| item.trim_start_matches("unsafe ").starts_with("extern \"C\" fn ");
    let exported = source.split("\npub ").skip(1).filter(is_exported);
    exported.filter_map(|item| item.split(" {\n").next()).map(|signature| left_out(signature, feature)).collect()
}

/// As demanded of all functions, an output of pointer type is NULL after the failure. Without a status there is nothing
/// to be done: there is no object that a release could get. Names are "".
fn left_out(signature: &str, feature: &str) -> String {
    let name = signature.split_once("fn ").and_then(|(_, rest)| rest.split('(').next()).unwrap_or_default();
    let body = match signature.rsplit_once(')').and_then(|(_, end)| end.strip_prefix(" -> ")) {
        None => String::new(),
        Some(answer) if answer.starts_with('*') => "c\"\".as_ptr()".to_owned(),
        Some(_) => {
            let words: Vec<&str> = signature.split([' ', '(']).collect();
            let outputs: String = words.windows(3).filter_map(|three| output(three[0], three[1], three[2])).collect();
            let outputs = if outputs.is_empty() {
                String::new()
            } else {
                format!("// SAFETY: the caller's pointers, as documented.\n        unsafe {{ {outputs}}}\n        ")
            };
            format!("guard(\"{name}\", || {{\n        {outputs}Err(left_out(\"{feature}\"))\n    }})")
        }
    };
    format!("#[unsafe(no_mangle)]\npub {signature} {{\n    {body}\n}}\n\n")
}

/// Clears a parameter that is a pointer to a pointer to be written: `out_name: *mut *mut ..`.
fn output(name: &str, outer: &str, inner: &str) -> Option<String> {
    let name = name.strip_suffix(':').filter(|name| name.starts_with("out_") && outer == "*mut")?;
    let take = match inner {
        "*mut" => "out_ptr",
        "*const" => "out_const",
        _ => return None,
    };
    Some(format!("{take}({name}, \"{name}\")?; "))
}
