//! The parts of the headers: the pages and chapters of `book.md`, and the items of the sources that belong to them.

use crate::book::Result;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Expr, Item, ItemFn, Lit, Meta};

/// All headers, in an order in which each needs only those before it.
pub struct Book {
    pub headers: Vec<Header>,
}

pub struct Header {
    /// As it is included: "weir.h", "weir/ops.h".
    pub name: String,
    pub title: String,
    /// The text at its top.
    pub page: Vec<String>,
    /// C that stands in front of the chapters.
    pub preamble: Vec<String>,
    pub chapters: Vec<Chapter>,
}

pub struct Chapter {
    pub title: String,
    pub concept: String,
    pub items: Vec<Item>,
}

/// Starts the line in which a source, or an item in it, names its chapter.
const CHAPTER: &str = "Chapter: ";

impl Book {
    /// `creators`: the functions that create the kernels of operators.
    pub fn read(root: &Path, creators: &str) -> Result<Book> {
        let mut book = Book { headers: pages(&fs::read_to_string(root.join("book/book.md"))?)? };
        let mut places = HashMap::new();
        for (at, header) in book.headers.iter().enumerate() {
            for (index, chapter) in header.chapters.iter().enumerate() {
                if places.insert(chapter.title.clone(), (at, index)).is_some() {
                    return Err(format!("book.md has two chapters '{}'", chapter.title).into());
                }
            }
        }
        let mut texts = vec![("the functions of operators".to_owned(), creators.to_owned())];
        for path in sources(root)? {
            texts.push((path.strip_prefix(root)?.display().to_string(), fs::read_to_string(&path)?));
        }
        for (shown, text) in texts {
            let file = syn::parse_file(&text).map_err(|error| format!("{shown}: {error}"))?;
            let of_file = named_chapter(&file.attrs)?;
            for mut item in file.items.into_iter().filter(|item| is_exported(item, &shown)) {
                let of_item = named_chapter(attributes(&mut item))?;
                let title = of_item.or_else(|| of_file.clone()).ok_or_else(|| {
                    format!("{shown}: {} is in no chapter: add a line '//! {CHAPTER}...'", name(&item))
                })?;
                let (at, index) =
                    places.get(&title).ok_or_else(|| format!("{shown}: book.md has no chapter '{title}'"))?;
                remove_chapter(attributes(&mut item));
                book.headers[*at].chapters[*index].items.push(item);
            }
        }
        if let Some(empty) = book.chapters().find(|chapter| chapter.items.is_empty()) {
            return Err(format!("nothing is in the chapter '{}'", empty.title).into());
        }
        Ok(book)
    }

    pub fn chapters(&self) -> impl Iterator<Item = &Chapter> {
        self.headers.iter().flat_map(|header| &header.chapters)
    }

    /// Each item with its header and chapter.
    pub fn items(&self) -> impl Iterator<Item = (&Header, &Chapter, &Item)> {
        self.headers.iter().flat_map(|header| {
            header
                .chapters
                .iter()
                .flat_map(move |chapter| chapter.items.iter().map(move |item| (header, chapter, item)))
        })
    }

    pub fn functions(&self) -> impl Iterator<Item = (&Header, &Chapter, &ItemFn)> {
        self.items().filter_map(|(header, chapter, item)| match item {
            Item::Fn(function) => Some((header, chapter, function)),
            _ => None,
        })
    }
}

/// The folders in which exported items may stand.
pub const FOLDERS: [&str; 4] = ["src/abi", "src/ops", "src/ffi", "testing/src"];

/// The files in which exported items may stand: types first, each folder in alphabetical order.
pub fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        let mut files = fs::read_dir(root.join(folder))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
        files.sort();
        sources.extend(files);
    }
    Ok(sources)
}

/// Whether a type is one of DLPack's. Its header has the text of the specification, in the preamble.
pub fn is_of_dlpack(item: &Item) -> bool {
    matches!(item, Item::Struct(item) if item.ident.to_string().starts_with("DL"))
}

/// Other public items of `ops` and `ffi` are for Rust.
fn is_exported(item: &Item, path: &str) -> bool {
    let in_abi = path.starts_with("src/abi") || path == "testing/src/emulation.rs";
    let is_of_c = |name: &syn::Ident| path.starts_with("src/ops") && name.to_string().starts_with("weir_");
    match item {
        Item::Fn(function) => function.sig.abi.is_some() && matches!(function.vis, syn::Visibility::Public(_)),
        Item::Struct(item) => in_abi || is_of_c(&item.ident),
        Item::Enum(item) => in_abi || is_of_c(&item.ident),
        Item::Type(item) => in_abi || is_of_c(&item.ident),
        Item::Const(item) => {
            matches!(item.vis, syn::Visibility::Public(_)) && item.ident.to_string().starts_with("WEIR_")
        }
        _ => false,
    }
}

/// The headers as `book.md` tells them: `# name: title`, a page, C in fences, `## chapter` and its concept.
fn pages(text: &str) -> Result<Vec<Header>> {
    let mut headers: Vec<Header> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") && !line.starts_with("````") {
            in_code = line == "```c preamble";
            continue;
        }
        if in_code {
            headers.last_mut().ok_or("book.md begins with C")?.preamble.push(line.to_owned());
        } else if let Some(title) = line.strip_prefix("## ") {
            let chapter = Chapter { title: title.to_owned(), concept: String::new(), items: Vec::new() };
            headers.last_mut().ok_or("book.md begins with a chapter")?.chapters.push(chapter);
        } else if let Some(first) = line.strip_prefix("# ") {
            let (name, title) = first.split_once(": ").ok_or_else(|| format!("book.md: '{first}' has no title"))?;
            let (name, title) = (name.to_owned(), title.to_owned());
            headers.push(Header { name, title, page: Vec::new(), preamble: Vec::new(), chapters: Vec::new() });
        } else if let Some(header) = headers.last_mut() {
            match header.chapters.last_mut() {
                Some(chapter) => chapter.concept += &format!("{line}\n"),
                None => header.page.push(line.to_owned()),
            }
        }
    }
    Ok(headers)
}

/// The text of a line of documentation.
fn doc(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match (&pair.value, pair.path.is_ident("doc")) {
        (Expr::Lit(literal), true) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The documentation, line by line.
pub fn docs(attributes: &[Attribute]) -> Vec<String> {
    attributes.iter().filter_map(doc).map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned()).collect()
}

fn named_chapter(attributes: &[Attribute]) -> Result<Option<String>> {
    let named: Vec<_> =
        docs(attributes).iter().filter_map(|line| line.strip_prefix(CHAPTER).map(str::to_owned)).collect();
    match &named[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.trim_end_matches('.').to_owned())),
        _ => Err(format!("two chapters: {}", named.join(" ")).into()),
    }
}

/// Takes the line away, and the empty one before it.
fn remove_chapter(attributes: &mut Vec<Attribute>) {
    let line =
        attributes.iter().position(|attribute| doc(attribute).is_some_and(|line| line.trim().starts_with(CHAPTER)));
    if let Some(line) = line {
        let is_apart = line > 0 && doc(&attributes[line - 1]).is_some_and(|line| line.trim().is_empty());
        attributes.drain(line - usize::from(is_apart)..=line);
    }
}

fn attributes(item: &mut Item) -> &mut Vec<Attribute> {
    match item {
        Item::Fn(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Const(item) => &mut item.attrs,
        _ => unreachable!("only exported items are looked at"),
    }
}

pub fn name(item: &Item) -> String {
    match item {
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Const(item) => item.ident.to_string(),
        _ => unreachable!("only exported items are looked at"),
    }
}
