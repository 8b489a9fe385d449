//! Whether a pointer may be NULL, as the code has it: the check that an argument comes to, in the function itself or in
//! one that it is passed on to.

use super::c;
use super::source;
use crate::book::Result;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use syn::{FnArg, Item, ItemFn, Pat, UseTree};

/// The fate of a NULL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Null {
    Legal,
    Refused,
    /// It is an array without elements.
    Empty,
}

/// The check that decides, and the function that makes it: `share` of `handle`.
#[derive(Clone, Debug)]
pub struct Check {
    pub null: Null,
    pub by: String,
}

/// A function of the sources, as far as it is looked at.
struct Function {
    parameters: Vec<String>,
    body: Tokens,
}

#[derive(Default)]
struct Module {
    functions: HashMap<String, Function>,
    /// The meaning of names of other modules here: the path's last two parts.
    uses: HashMap<String, Vec<String>>,
}

pub struct Checks {
    modules: HashMap<String, Module>,
}

/// The functions in which all checks end.
const ENDS: &[(&str, &str, Null)] = &[
    ("argument", "string", Null::Refused),
    ("argument", "failure_text", Null::Refused),
    ("argument", "long_string", Null::Refused),
    ("argument", "out_ptr", Null::Refused),
    ("argument", "out_const", Null::Refused),
    ("argument", "out_value", Null::Refused),
    ("argument", "array", Null::Empty),
    ("argument", "array_mut", Null::Empty),
    ("handle", "borrow", Null::Refused),
    ("handle", "borrow_mut", Null::Refused),
    ("handle", "share", Null::Refused),
    ("handle", "retain", Null::Refused),
    ("handle", "group", Null::Refused),
    ("handle", "borrow_opt", Null::Legal),
    ("handle", "share_opt", Null::Legal),
    ("versioned", "read", Null::Refused),
    ("versioned", "write", Null::Refused),
    ("versioned", "write_array", Null::Refused),
    ("versioned", "read_opt", Null::Legal),
    ("versioned", "borrow_opt", Null::Legal),
    ("versioned", "read_or_zero", Null::Legal),
];

/// They run the closures that they are given.
const RUN_CLOSURES: &[&str] = &["guard", "guard_value"];

impl Checks {
    /// `creators`: the functions that create the kernels of operators, which `operators.rs` includes.
    pub fn read(root: &Path, creators: &str) -> Result<Checks> {
        let mut checks = Checks { modules: HashMap::new() };
        for path in source::sources(root)?.into_iter().filter(|path| !path.starts_with(root.join("src/abi"))) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let folder = if path.starts_with(root.join("src/ffi")) { "" } else { "elsewhere::" };
            checks.add(&format!("{folder}{stem}"), &fs::read_to_string(&path)?)?;
        }
        checks.add("operators", creators)?;
        Ok(checks)
    }

    fn add(&mut self, name: &str, text: &str) -> Result<()> {
        let module = self.modules.entry(name.to_owned()).or_default();
        for item in syn::parse_file(text).map_err(|error| format!("{name}: {error}"))?.items {
            match item {
                Item::Fn(item) => {
                    module.functions.insert(item.sig.ident.to_string(), Function::of(&item));
                }
                Item::Use(item) => add_uses(&item.tree, &mut Vec::new(), &mut module.uses),
                _ => {}
            }
        }
        Ok(())
    }

    /// The check of an exported function's argument; None if the code does not show one that is always made.
    pub fn of(&self, function: &str, parameter: &str) -> Option<Check> {
        let (name, module) = self.modules.iter().find(|(_, module)| module.functions.contains_key(function))?;
        let at = module.functions[function].parameters.iter().position(|named| named == parameter)?;
        self.find(name, function, at, 8)
    }

    fn find(&self, module: &str, function: &str, parameter: usize, depth: u32) -> Option<Check> {
        if let Some((_, name, null)) = ENDS.iter().find(|(of, name, _)| *of == module && *name == function) {
            return Some(Check { null: *null, by: (*name).to_owned() });
        }
        let depth = depth.checked_sub(1)?;
        let Function { parameters, body } = self.modules.get(module)?.functions.get(function)?;
        let name = parameters.get(parameter)?;
        let uses = (0..body.texts.len()).filter(|&at| body.texts[at] == *name && !body.is_before(at, "."));
        // The first check decides: names are given away again later, for what was read.
        for at in uses.filter(|&at| body.is_always_reached(at)) {
            if let Some(null) = body.asks(at) {
                return Some(Check { null, by: "is_null".to_owned() });
            }
            let Some((path, argument)) = body.call(at) else { continue };
            let Some((module, function)) = self.resolve(module, &path) else { continue };
            if let Some(check) = self.find(&module, &function, argument, depth) {
                let null = if body.insists(name) { Null::Refused } else { check.null };
                return Some(Check { null, ..check });
            }
        }
        None
    }

    /// The module and the function that a path means.
    fn resolve(&self, module: &str, path: &[String]) -> Option<(String, String)> {
        let here = self.modules.get(module)?;
        match path {
            [name] if here.functions.contains_key(name) => Some((module.to_owned(), name.clone())),
            [name] => match &here.uses.get(name)?[..] {
                [.., of, name] => Some((of.clone(), name.clone())),
                _ => None,
            },
            [.., of, name] if of == "self" => Some((module.to_owned(), name.clone())),
            [.., of, name] => Some((of.clone(), name.clone())),
            [] => None,
        }
    }
}

fn add_uses(tree: &UseTree, path: &mut Vec<String>, uses: &mut HashMap<String, Vec<String>>) {
    let mut add = |known: String, name: String| {
        let whole = path.iter().cloned().chain([name]).collect();
        uses.insert(known, whole);
    };
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            add_uses(&inner.tree, path, uses);
            path.pop();
        }
        UseTree::Name(name) => add(name.ident.to_string(), name.ident.to_string()),
        UseTree::Rename(name) => add(name.rename.to_string(), name.ident.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|inner| add_uses(inner, path, uses)),
        UseTree::Glob(_) => {}
    }
}

impl Function {
    fn of(item: &ItemFn) -> Function {
        let name = |input: &FnArg| match input {
            FnArg::Typed(input) => match &*input.pat {
                Pat::Ident(name) => name.ident.to_string(),
                _ => String::new(),
            },
            FnArg::Receiver(_) => String::new(),
        };
        Function { parameters: item.sig.inputs.iter().map(name).collect(), body: Tokens::of(&c::tokens(&item.block)) }
    }
}

/// A body, token by token.
struct Tokens {
    texts: Vec<String>,
    /// The bracket around each token; that around an opening one is outside of it.
    around: Vec<Option<usize>>,
}

impl Tokens {
    fn of(text: &str) -> Tokens {
        let letters: Vec<char> = text.chars().collect();
        let (mut texts, mut at) = (Vec::new(), 0);
        while at < letters.len() {
            let end = end_of(&letters, at);
            if !letters[at].is_whitespace() {
                texts.push(letters[at..end].iter().collect::<String>());
            }
            at = end;
        }
        let (mut around, mut open) = (Vec::new(), Vec::new());
        for (at, text) in texts.iter().enumerate() {
            if matches!(text.as_str(), ")" | "]" | "}") {
                open.pop();
            }
            around.push(open.last().copied());
            if matches!(text.as_str(), "(" | "[" | "{") {
                open.push(at);
            }
        }
        Tokens { texts, around }
    }

    fn text(&self, at: usize) -> &str {
        self.texts.get(at).map_or("", String::as_str)
    }

    fn is_before(&self, at: usize, text: &str) -> bool {
        at > 0 && self.text(at - 1) == text
    }

    /// Tokens behind `from` and before `to` that are in no bracket of their own, from the last one on.
    fn beside(&self, from: Option<usize>, to: usize) -> impl Iterator<Item = usize> {
        let first = from.map_or(0, |at| at + 1);
        (first..to).rev().filter(move |&at| self.around[at] == from)
    }

    /// Whether a statement ends with this token: a block of its own has no semicolon.
    fn ends_statement(&self, at: usize) -> bool {
        let next = self.text(at + 1);
        let goes_on = matches!(next, "else" | "as") || !next.starts_with(|first: char| first.is_ascii_alphabetic());
        self.text(at) == ";" || self.text(at) == "}" && !goes_on
    }

    /// Whether nothing around this token, and no return before it, keeps it from being reached, but errors.
    fn is_always_reached(&self, at: usize) -> bool {
        let returns = (0..at).any(|at| self.text(at) == "return" && self.text(at + 1) != "Err");
        let mut inner = at;
        loop {
            let around = self.around[inner];
            let is_block = self.text(inner) == "{";
            let mut statement = self.beside(around, inner).take_while(|&at| !self.ends_statement(at));
            let is_bound = statement.any(|at| match self.text(at) {
                "if" | "else" | "match" | "while" | "for" => is_block,
                "|" | "||" => !around.is_some_and(|open| self.runs_closures(open)),
                "=>" | "&&" => true,
                _ => false,
            });
            if is_bound || returns {
                return false;
            }
            match around {
                Some(open) => inner = open,
                None => return true,
            }
        }
    }

    fn runs_closures(&self, open: usize) -> bool {
        self.callee(open).is_some_and(|path| path.last().is_some_and(|name| RUN_CLOSURES.contains(&name.as_str())))
    }

    /// The code's answer to a NULL of this argument, if it asks.
    fn asks(&self, at: usize) -> Option<Null> {
        let behind: Vec<&str> = (at + 1..at + 12).map(|at| self.text(at)).collect();
        match &behind[..] {
            [".", "is_null", "(", ")", ..] if self.is_before(at, "!") => Some(Null::Legal),
            [".", "is_null", "(", ")", "{", "return", "Err", ..] => Some(Null::Refused),
            [".", "is_null", "(", ")", "{", "None", "}", ..] => Some(Null::Legal),
            [".", "is_null", "(", ")", "{", "return", "Ok", ..] => Some(Null::Legal),
            [".", "is_null", "(", ")", "{", "Ok", ..] => Some(Null::Legal),
            [".", "is_null", "(", ")", "{", text, "}", ..] if text.starts_with('"') => Some(Null::Legal),
            [".", "is_null", "(", ")", "&&", _, ">", "0", "{", "return", "Err"] => Some(Null::Empty),
            _ => None,
        }
    }

    /// Whether the function refuses what the check of this argument lets through.
    fn insists(&self, name: &str) -> bool {
        let refusal = ["|", "Error", "::", "null", "(", &format!("\"{name}\"")].map(str::to_owned);
        // An empty list of a closure's parameters comes as two tokens.
        let asks = |at: usize| at > 2 && self.texts[at - 3..at] == ["ok_or_else", "(", "|"];
        self.texts.windows(refusal.len()).enumerate().any(|(at, texts)| texts == refusal && asks(at))
    }

    /// The function to which this token alone is an argument, and which one.
    fn call(&self, at: usize) -> Option<(Vec<String>, usize)> {
        let open = self.around[at].filter(|&open| self.text(open) == "(")?;
        let path = self.callee(open)?;
        let mut behind = at + 1;
        while self.text(behind) == "." && matches!(self.text(behind + 1), "cast" | "cast_const") {
            behind += 4;
        }
        let is_alone = matches!(self.text(behind), "," | ")") && (self.is_before(at, "(") || self.is_before(at, ","));
        is_alone.then(|| (path, self.beside(Some(open), at).filter(|&at| self.text(at) == ",").count()))
    }

    /// The path before a parenthesis: `handle::borrow`, also with types (`create::<Softmax>`).
    fn callee(&self, open: usize) -> Option<Vec<String>> {
        let mut end = open;
        if self.is_before(end, ">") {
            end = (0..end).rev().find(|&at| self.text(at) == "<" && self.is_before(at, "::"))? - 1;
        }
        let is_name = |text: &str| text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let mut path = Vec::new();
        while end > 0 && is_name(self.text(end - 1)) {
            path.insert(0, self.text(end - 1).to_owned());
            if !(end > 1 && self.is_before(end - 1, "::")) {
                let is_method = self.is_before(end - 1, ".");
                return (!is_method).then_some(path);
            }
            end -= 2;
        }
        None
    }
}

/// The end of the token that begins here.
fn end_of(letters: &[char], at: usize) -> usize {
    let is_part = |letter: &char| letter.is_alphanumeric() || *letter == '_';
    let next = letters.get(at + 1);
    let closing = |quote: char| {
        let mut end = at + 1;
        while end < letters.len() && letters[end] != quote {
            end += if letters[end] == '\\' { 2 } else { 1 };
        }
        (end + 1).min(letters.len())
    };
    match letters[at] {
        '"' => closing('"'),
        '\'' if next == Some(&'\\') || letters.get(at + 2) == Some(&'\'') => closing('\''),
        letter if is_part(&letter) => at + letters[at..].iter().take_while(|letter| is_part(letter)).count(),
        ':' if next == Some(&':') => at + 2,
        '=' | '-' if next == Some(&'>') => at + 2,
        letter @ ('&' | '|') if next == Some(&letter) => at + 2,
        _ => at + 1,
    }
}
