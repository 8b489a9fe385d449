//! The contract of a function: what its description says of threads, blocking, ownership and errors, and what holds
//! where it says nothing. The front page of weir.h tells the same rules to readers.

use syn::{FnArg, ItemFn, Pat, ReturnType, Type};

use super::c;
use super::source::docs;

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
    name == "weir_graph" || (name.starts_with("weir_") && (name.ends_with("_attr") || name.ends_with("_options")))
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
