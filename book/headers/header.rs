//! The headers in C. cbindgen declares the items of each chapter; pages, banners and includes are put around them.

use super::c;
use super::source::{Book, Chapter, Header, is_of_dlpack, name};
use crate::book::Result;
use crate::book::operators::wrapped;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;
use syn::{Item, parse_quote};

const WIDTH: usize = 118;

/// The headers, each with its path in the repository.
pub fn write(book: &Book, config: &Path, work: &Path) -> Result<Vec<(String, String)>> {
    let mut homes: HashMap<String, usize> = HashMap::new();
    for (at, header) in book.headers.iter().enumerate() {
        homes.extend(header.chapters.iter().flat_map(|chapter| &chapter.items).map(|item| (name(item), at)));
    }
    let mut declared = HashSet::new();
    let mut files = Vec::new();
    for (at, header) in book.headers.iter().enumerate() {
        let mut includes = BTreeSet::new();
        for item in header.chapters.iter().flat_map(|chapter| &chapter.items) {
            for used in c::names(item) {
                let Some(home) = homes.get(&used).copied().filter(|home| *home != at) else { continue };
                if home > at {
                    let (here, there) = (&header.name, &book.headers[home].name);
                    return Err(format!("{} in {here} uses {used}, which is in {there} behind it", name(item)).into());
                }
                includes.insert(home);
            }
        }
        if at > 0 {
            includes.insert(0);
        }
        let mut text = top(book, header);
        text += &format!("#ifndef {0}\n#define {0}\n\n", guard(&header.name));
        for include in includes {
            text += &format!("#include \"{}\"\n", relative(&book.headers[include].name));
        }
        if !header.preamble.is_empty() {
            text.push('\n');
        }
        // For Doxygen, which documents what is in files that it knows.
        if at > 0 {
            text += &format!("\n/** @file {}\n * {}. */\n", header.name, header.title);
        }
        for line in &header.preamble {
            text += line;
            text.push('\n');
        }
        text += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
        for chapter in &header.chapters {
            text += &banner(chapter);
            text += &declarations(chapter, config, work, &mut declared)?;
        }
        text += &format!("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", guard(&header.name));
        files.push((format!("include/{}", header.name), text));
    }
    Ok(files)
}

fn guard(name: &str) -> String {
    name.to_uppercase().replace(['/', '.'], "_")
}

/// How the headers in weir/ include others.
fn relative(name: &str) -> String {
    name.strip_prefix("weir/").map_or_else(|| format!("../{name}"), str::to_owned)
}

/// The comment at the top: the header's page, in which {map} stands for what there is.
fn top(book: &Book, header: &Header) -> String {
    let mut text = format!("/* {}: {}\n *\n", header.name, header.title);
    text += " * Generated from src/abi and src/ffi by cbindgen; do not edit.\n * SPDX-License-Identifier: MIT OR Apache-2.0\n";
    let page: Vec<&String> = header.page.iter().skip_while(|line| line.is_empty()).collect();
    let end = page.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let mut lines = Vec::new();
    for line in &page[..end] {
        match line.as_str() {
            "{map}" => lines.extend(map(book)),
            line => lines.push(line.to_owned()),
        }
    }
    if !lines.is_empty() {
        text += " *\n";
    }
    for line in lines {
        text += format!(" * {line}").trim_end();
        text.push('\n');
    }
    text + " */\n\n"
}

/// The headers and their chapters.
fn map(book: &Book) -> Vec<String> {
    let mut lines = Vec::new();
    for header in &book.headers {
        let chapters: Vec<_> = header.chapters.iter().map(|chapter| chapter.title.to_lowercase()).collect();
        let mut listed = wrapped(&chapters.join(", "), WIDTH - 28).into_iter();
        lines.push(format!("    {:<20} {}", header.name, listed.next().unwrap_or_default()));
        lines.extend(listed.map(|line| format!("    {:<20} {line}", "")));
    }
    lines
}

fn banner(chapter: &Chapter) -> String {
    let mut text = format!("\n/* ---- {} {}\n", chapter.title, "-".repeat(WIDTH - 9 - chapter.title.len()));
    for paragraph in chapter.concept.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        if !text.ends_with("--\n") {
            text += " *\n";
        }
        for line in wrapped(paragraph, WIDTH - 3) {
            text += &format!(" * {line}\n");
        }
    }
    text + " */\n\n"
}

/// The items of a chapter in C. cbindgen gets them as one source, without the bodies of functions.
fn declarations(chapter: &Chapter, config: &Path, work: &Path, declared: &mut HashSet<String>) -> Result<String> {
    let mut source = String::new();
    let mut config = cbindgen::Config::from_file(config)?;
    for item in chapter.items.iter().filter(|item| !is_of_dlpack(item)) {
        let mut item = item.clone();
        match &mut item {
            Item::Fn(function) => function.block = parse_quote!({}),
            _ => config.export.include.push(name(&item)),
        }
        source += &quote::ToTokens::to_token_stream(&item).to_string();
        source.push('\n');
    }
    let file = work.join(format!("{}.rs", chapter.title.to_lowercase().replace(' ', "_")));
    fs::write(&file, source)?;
    let mut text = Vec::new();
    cbindgen::Builder::new().with_config(config).with_src(&file).generate()?.write(&mut text);
    let text = one_line_comments(String::from_utf8(text)?.trim_start());
    Ok(without_tags(&without_trailing_commas(&text), declared))
}

/// Turns comments of one line into one line.
fn one_line_comments(text: &str) -> String {
    let mut out = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let text = lines.get(at + 1).and_then(|line| line.trim_start().strip_prefix("* "));
        match text {
            Some(text) if lines[at].trim() == "/**" && lines.get(at + 2).is_some_and(|l| l.trim() == "*/") => {
                let indent = &lines[at][..lines[at].len() - lines[at].trim_start().len()];
                out.push(format!("{indent}/** {text} */"));
                at += 3;
            }
            _ => {
                out.push(lines[at].to_owned());
                at += 1;
            }
        }
    }
    out.join("\n") + "\n"
}

/// C89 has no comma behind the last enumerator.
fn without_trailing_commas(text: &str) -> String {
    text.replace(",\n}", "\n}")
}

/// Says `weir_engine` for `struct weir_engine` where the name is declared already, as cbindgen does itself for names of
/// other chapters.
fn without_tags(text: &str, declared: &mut HashSet<String>) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with(['*', '/']);
        let head = if line.starts_with("typedef struct") || line.starts_with("typedef enum") {
            "typedef struct ".len()
        } else {
            0
        };
        let (head, mut rest) = line.split_at(head.min(line.len()));
        out += head;
        while let Some(at) = rest.find("struct weir_").filter(|_| !is_comment) {
            let tag = &rest[at + "struct ".len()..];
            let end = tag.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(tag.len());
            out += &rest[..at];
            if !declared.contains(&tag[..end]) {
                out += "struct ";
            }
            out += &tag[..end];
            rest = &tag[end..];
        }
        out += rest;
        out.push('\n');
        if let Some(name) = line.strip_suffix(';').filter(|line| line.starts_with("typedef ") || line.starts_with("} "))
        {
            declared.extend(name.rsplit(' ').next().map(str::to_owned));
        }
    }
    out
}
