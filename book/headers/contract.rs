//! The contract of a function: what its description says of threads, blocking, ownership and errors, and what holds
//! where it says nothing. The front page of weir.h tells the same rules to readers.

use syn::{FnArg, ItemFn, Pat, ReturnType, Type};

use super::c;
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
            let Some(first) = first.filter(|at| *at == 0) else {
                contract.text.push(paragraph.trim().to_owned());
                continue;
            };
            let rest = &paragraph[first..];
            contract.threads = field(rest, THREADS);
            contract.blocking = field(rest, BLOCKING);
            contract.ownership = field(rest, OWNERSHIP);
            contract.errors = field(rest, ERRORS);
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

/// The codes that a call can fail with. Those of wrong arguments go without saying.
pub fn errors(function: &ItemFn, contract: &Contract) -> Vec<String> {
    let is_status = matches!(&function.sig.output, ReturnType::Type(_, ty) if c::declaration(ty, "") == "weir_status");
    if !is_status {
        return Vec::new();
    }
    let mut codes = vec!["INVALID_ARGUMENT".to_owned()];
    // A text that does not fit in its buffer.
    if parameters(function).windows(2).any(|pair| pair[0].0 == "capacity" && pair[1].0 == "out_length") {
        codes.push("OUT_OF_RANGE".to_owned());
    }
    for word in contract
        .errors
        .as_deref()
        .unwrap_or_default()
        .split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'))
    {
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
        if CODES.contains(&word) && !codes.iter().any(|code| code == word) {
            codes.push(word.to_owned());
        }
    }
    codes
}
