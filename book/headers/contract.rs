//! The contract of a function: what its description says of threads, blocking, ownership and errors, and what holds
//! where it says nothing. The front page of weir.h tells the same rules to readers.

use std::collections::HashMap;
use syn::{FnArg, Item, ItemFn, Pat, ReturnType, Type};

use super::c;
use super::checks::Checks;
use super::layout::Types;
use super::source::{Book, docs};

const THREADS: &str = "Thread safety: ";
const BLOCKING: &str = "Blocking: ";
const OWNERSHIP: &str = "Ownership: ";
const ERRORS: &str = "Errors: ";

#[derive(Default)]
pub struct Contract {
    /// The description without the contract, as one line a paragraph.
    pub text: Vec<String>,
    pub threads: Option<String>,
    pub blocking: Option<String>,
    pub ownership: Option<String>,
    pub errors: Option<String>,
}

impl Contract {
    pub fn of(function: &ItemFn) -> Contract {
        let mut contract = Contract::default();
        for paragraph in docs(&function.attrs).join("\n").split("\n\n") {
            let paragraph = paragraph.replace('\n', " ");
            let first = [THREADS, BLOCKING, OWNERSHIP, ERRORS].iter().filter_map(|label| paragraph.find(label)).min();
            // The contract may begin behind other sentences of its paragraph.
            let (text, rest) = paragraph.split_at(first.unwrap_or(paragraph.len()));
            if first != Some(0) {
                contract.text.push(text.trim().to_owned());
            }
            let told: [(&mut Option<String>, &str); 4] = [
                (&mut contract.threads, THREADS),
                (&mut contract.blocking, BLOCKING),
                (&mut contract.ownership, OWNERSHIP),
                (&mut contract.errors, ERRORS),
            ];
            for (place, label) in told {
                *place = field(rest, label).or(place.take());
            }
        }
        contract
    }
}

/// Functions that say what holds for all. A description speaks of its contract only where it differs.
pub fn needless(book: &Book) -> Vec<String> {
    let mut found = Vec::new();
    for (_, _, function) in book.functions() {
        let contract = Contract::of(function);
        let mut complain = |label: &str, said: &Option<String>, is_default: &dyn Fn(&str) -> bool| {
            if let Some(said) = said.as_deref().filter(|said| is_default(said)) {
                found.push(format!("{}: '{label}{said}' goes without saying", function.sig.ident));
            }
        };
        complain(THREADS, &contract.threads, &|said| said == default_threads(function));
        complain(BLOCKING, &contract.blocking, &|said| said == "never");
        complain(OWNERSHIP, &contract.ownership, &is_usual_ownership);
        complain(ERRORS, &contract.errors, &|said| {
            matches!(said, "none" | "INVALID_ARGUMENT" | "INVALID_ARGUMENT (NULL)")
        });
    }
    found
}

/// A create call gives, a get call lends, and arguments are read or copied.
fn is_usual_ownership(said: &str) -> bool {
    let plain =
        ["none", "none passes", "ends here", "one reference less", "the caller owns one reference more", "copied"];
    plain.contains(&said)
        || !said.contains([';', ','])
            && (said.starts_with("the caller owns one reference to *out_")
                || said.starts_with("the caller owns *out_")
                || said.starts_with("the caller's buffer")
                || said.ends_with(" is copied")
                || said.ends_with(" are copied"))
}

/// The text behind a label, up to the next one, without its full stop.
fn field(paragraph: &str, label: &str) -> Option<String> {
    let text = &paragraph[paragraph.find(label)? + label.len()..];
    let end =
        [THREADS, BLOCKING, OWNERSHIP, ERRORS].iter().filter_map(|next| text.find(next)).min().unwrap_or(text.len());
    Some(text[..end].trim().trim_end_matches('.').to_owned())
}

/// Settings and builders are for one thread at a time, all else is for any.
pub fn default_threads(function: &ItemFn) -> &'static str {
    match parameters(function).first() {
        Some((_, Type::Ptr(pointer))) if matches!(&*pointer.elem, Type::Path(path) if is_builder(&c::last(path))) => {
            "one thread at a time per object"
        }
        _ => "any thread",
    }
}

/// Objects that one thread at a time builds or sets: they have _create and _destroy.
pub fn is_builder(name: &str) -> bool {
    name == "weir_graph" || (name.starts_with("weir_") && name.ends_with("_attr"))
}

pub fn parameters(function: &ItemFn) -> Vec<(String, &Type)> {
    function
        .sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(input) => match &*input.pat {
                Pat::Ident(name) => Some((name.ident.to_string().trim_start_matches("r#").to_owned(), &*input.ty)),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        })
        .collect()
}

/// The codes that calls can fail with, with those of the calls that their descriptions refer to.
pub struct Errors {
    functions: HashMap<String, Said>,
}

/// What the description of one function says.
#[derive(Default)]
struct Said {
    codes: Vec<String>,
    /// Functions whose codes are its own, too.
    others: Vec<String>,
}

const CODES: &[&str] = &[
    "CANCELLED",
    "UNKNOWN",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "DEVICE_LOST",
];

impl Errors {
    pub fn of(book: &Book, checks: &Checks) -> Errors {
        let types = Types::of(book);
        let said = |function: &ItemFn| {
            let has_name = parameters(function).iter().any(|parameter| is_name(function, parameter, checks, &types));
            (function.sig.ident.to_string(), Said::of(function, &Contract::of(function), has_name))
        };
        Errors { functions: book.functions().map(|(_, _, function)| said(function)).collect() }
    }

    /// References that lead to no function.
    pub fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, said) in &self.functions {
            for other in said.others.iter().filter(|other| !self.functions.contains_key(*other)) {
                found.push(format!("{name}: its errors are those of '{other}', which is no function"));
            }
        }
        found.sort();
        found
    }

    pub fn all(&self, function: &str) -> Vec<String> {
        let (mut codes, mut seen, mut next) = (Vec::new(), Vec::new(), vec![function]);
        while let Some(name) = next.pop() {
            let Some(said) = self.functions.get(name).filter(|_| !seen.contains(&name)) else { continue };
            seen.push(name);
            next.extend(said.others.iter().map(String::as_str));
            for code in &said.codes {
                if !codes.contains(code) {
                    codes.push(code.clone());
                }
            }
        }
        codes
    }
}

impl Said {
    fn of(function: &ItemFn, contract: &Contract, has_name: bool) -> Said {
        let is_status =
            matches!(&function.sig.output, ReturnType::Type(_, ty) if c::declaration(ty, "") == "weir_status");
        if !is_status {
            return Said::default();
        }
        let mut codes = vec!["INVALID_ARGUMENT".to_owned()];
        // A text that does not fit in its buffer, an array that no memory holds, and a name that is too long.
        if has_name || parameters(function).windows(2).any(|pair| is_long(&pair[0], &pair[1])) {
            codes.push("OUT_OF_RANGE".to_owned());
        }
        let errors = contract.errors.as_deref().unwrap_or_default();
        for word in errors.split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_')) {
            if CODES.contains(&word) && !codes.iter().any(|code| code == word) {
                codes.push(word.to_owned());
            }
        }
        Said { codes, others: referred(errors, &contract.text.join(" ")) }
    }
}

/// Whether two parameters are a text's buffer and its length, or an array and the number of its elements.
fn is_long((first, ty): &(String, &Type), (second, _): &(String, &Type)) -> bool {
    let is_text = first == "capacity" && second == "out_length";
    is_text || matches!(ty, Type::Ptr(_)) && second.starts_with("num_")
}

/// Whether a parameter is a name or a path, or points to a struct with one, so that it may be too long. Texts of
/// failures are cut, and long texts have no limit of their own.
fn is_name(function: &ItemFn, (parameter, ty): &(String, &Type), checks: &Checks, types: &Types) -> bool {
    let is_text = |ty: &Type| matches!(c::declaration(ty, "").as_str(), "const char *");
    let Type::Ptr(pointer) = ty else { return false };
    if is_text(ty) {
        let (name, body) = (function.sig.ident.to_string(), c::tokens(&function.block));
        let by = checks.of(&name, parameter).map(|check| check.by);
        let is_cut = by.is_some_and(|by| ["failure_text", "long_string"].contains(&by.as_str()));
        return !is_cut && !["failure_text (", "long_string ("].iter().any(|call| body.contains(call));
    }
    let Type::Path(path) = &*pointer.elem else { return false };
    match types.item(&c::last(path)) {
        Some(Item::Struct(item)) if pointer.const_token.is_some() => item.fields.iter().any(|field| is_text(&field.ty)),
        _ => false,
    }
}

/// The functions whose errors these are: "as weir_sgemm", "those of weir_event_record and weir_stream_wait_event", and
/// "as there" of a function that is described as another. What stands in parentheses is about single codes.
fn referred(errors: &str, text: &str) -> Vec<String> {
    let mut depth = 0;
    let outside: String = errors
        .chars()
        .filter(|letter| {
            depth += i32::from(*letter == '(') - i32::from(*letter == ')');
            depth == 0 && *letter != ')'
        })
        .collect();
    let name = |word: &str| {
        let word = word.trim_matches(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        word.starts_with("weir_").then(|| word.to_owned())
    };
    let words: Vec<&str> = outside.split_whitespace().collect();
    let (mut found, mut is_list) = (Vec::new(), false);
    for (at, word) in words.iter().enumerate() {
        let begins = at > 0 && words[at - 1] == "as" || at > 1 && words[at - 2..at] == ["those", "of"];
        if begins && word.trim_end_matches([';', ',']) == "there" {
            found.extend(text.split_whitespace().find_map(name));
        }
        is_list = name(word).is_some() && (begins || is_list) || is_list && *word == "and";
        if is_list {
            found.extend(name(word));
        }
    }
    found
}
