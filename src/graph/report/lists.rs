//! What a report lists: the parts of the program that are compiled.

use crate::graph::program::Program;
use std::fmt::Write as _;

/// Lines for the end of the text. Writing to a String cannot fail.
pub(super) fn text(program: &Program) -> String {
    let mut text = String::new();
    let parts = program.kept_parts();
    if !parts.is_empty() {
        text += "partial runs\n";
    }
    for part in parts {
        let _ = writeln!(text, "{:>14} nodes for outputs {:?}", part.nodes, part.outputs);
    }
    text
}

/// Members for the end of the object; none for a program without partial runs.
pub(super) fn json(program: &Program) -> String {
    let mut text = String::new();
    if program.parts.is_none() {
        return text;
    }
    text += ",\n\"partial_runs\":[";
    for (i, part) in program.kept_parts().iter().enumerate() {
        let outputs: Vec<String> = part.outputs.iter().map(usize::to_string).collect();
        let _ = write!(
            text,
            "{}{{\"outputs\":[{}],\"nodes\":{},\"arena_bytes\":{}}}",
            if i > 0 { "," } else { "" },
            outputs.join(","),
            part.nodes,
            part.arena_bytes
        );
    }
    text.push(']');
    text
}
