//! The code that follows from the descriptions in `src/ops`: the functions that create kernels, the lists for C and
//! C++, and the table of the reference.

use super::Result;
use std::fs;
use std::path::Path;

/// An operator's row in `operators!`, and the comments of its file.
#[cfg_attr(not(feature = "headers"), expect(dead_code, reason = "the lists are made with the headers"))]
pub struct Operator {
    /// The file, and what stands after weir_kernel_create_.
    pub file: String,
    /// The name of its type.
    pub name: String,
    /// The struct in C.
    pub desc: String,
    /// The text of its function: what it does, its errors, and the chapter that it is in.
    about: String,
    errors: String,
    chapter: String,
    /// The comment of its struct, paragraph by paragraph.
    text: Vec<String>,
    /// Whether its descriptor may be NULL.
    pub takes_null: bool,
}

/// All operators, in the order of the header.
pub fn read(root: &Path) -> Result<Vec<Operator>> {
    let folder = root.join("src/ops");
    let text = fs::read_to_string(folder.join("mod.rs"))?;
    let list = text.split_once("\noperators! {\n").and_then(|(_, list)| list.split_once("\n}"));
    let rows = list.ok_or("src/ops/mod.rs has no operators!")?.0.lines();
    rows.map(|row| operator(&folder, row).map_err(|error| format!("{row}: {error}").into())).collect()
}

/// "softmax::Softmax(weir_softmax_desc),"
fn operator(folder: &Path, row: &str) -> Result<Operator> {
    let (file, rest) = row.trim().strip_suffix("),").and_then(|row| row.split_once("::")).ok_or("no row")?;
    let (name, desc) = rest.split_once('(').ok_or("no descriptor")?;
    let source = fs::read_to_string(folder.join(format!("{file}.rs")))?;
    let mut of_function = paragraphs(source.lines().map_while(|line| line.strip_prefix("//!")));
    let chapter = of_function.pop_if(|last| last.starts_with("Chapter: ")).ok_or("no chapter")?;
    let errors = of_function.pop_if(|last| last.starts_with("Errors: ")).unwrap_or_default();
    let (before, _) = source.split_once(&format!("pub struct {desc} ")).ok_or("its struct is elsewhere")?;
    let comment = before.rsplit("\n\n").next().unwrap_or_default().lines();
    Ok(Operator {
        file: file.to_owned(),
        name: name.to_owned(),
        desc: desc.to_owned(),
        about: of_function.join(" "),
        errors,
        chapter,
        text: paragraphs(comment.map_while(|line| line.strip_prefix("///"))),
        takes_null: source.contains("const DEFAULT:"),
    })
}

/// Lines of a comment, without breaks.
fn paragraphs<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let all: Vec<&str> = lines.map(str::trim).collect();
    all.split(|line| line.is_empty()).map(|lines| lines.join(" ")).collect()
}

/// The functions that create kernels.
pub fn creators(operators: &[Operator]) -> String {
    operators.iter().map(creator).collect()
}

fn creator(operator: &Operator) -> String {
    let Operator { file, name, desc, about, errors, chapter, .. } = operator;
    let said = [about.clone(), errors.clone(), chapter.clone()];
    let paragraphs = said.iter().filter(|text| !text.is_empty()).map(|text| {
        let lines = wrapped(text, 112).into_iter().map(|line| format!("/// {line}\n"));
        lines.collect::<String>()
    });
    let comment = paragraphs.collect::<Vec<_>>().join("///\n");
    format!(
        "pub use crate::ops::{desc};

{comment}#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern \"C\" fn weir_kernel_create_{file}(
    engine: *mut weir_engine,
    desc: *const {desc},
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {{
    // SAFETY: the caller's pointers, as documented.
    unsafe {{ create::<{name}>(\"weir_kernel_create_{file}\", engine, desc, options, out_kernel) }}
}}

"
    )
}

/// Files in the tree that list the operators, and their texts.
#[cfg(feature = "headers")]
pub fn lists(operators: &[Operator]) -> [(&'static str, String); 2] {
    let rows = operators.iter().map(|operator| format!("    X({}, {})", operator.file, u32::from(operator.takes_null)));
    let list = format!(
        "/* The built-in operators: their names, and whether the descriptor may be NULL. Generated from src/ops; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WEIR_OPERATORS_H
#define WEIR_OPERATORS_H

#define WEIR_OPERATORS(X) \\
{}

#endif
",
        rows.collect::<Vec<_>>().join(" \\\n")
    );
    let mut table = "# Operators\n\nGenerated from `src/ops`; do not edit. `weir.h` says what their members mean, \
                     [kernels.md](kernels.md) how they compute.\n\n| `weir_kernel_create_` | Operator |\n|---|---|\n"
        .to_owned();
    for operator in operators {
        let text = operator.text.join(" ").replace('|', "\\|").replace('[', "\\[");
        table += &format!("| `{}` | {text} |\n", operator.file);
    }
    [("include/weir/operators.h", list), ("docs/operators.md", table)]
}

/// Breaks text at spaces.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}
