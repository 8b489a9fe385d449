//! `weir_api.json`: what the headers declare, for programs that make bindings or check something for all functions.

use super::c;
use super::checks::{Checks, Null};
use super::contract::{self, Contract, Errors, is_builder, parameters};
use super::json::Json;
use super::layout::{FirstSizes, Types};
use super::source::{Book, docs};
use crate::book::Result;
use crate::book::operators::Operator;
use std::path::Path;
use syn::{Attribute, Item, ItemFn, ItemStruct, Type, TypeBareFn};

/// The version in which all that says nothing else came.
const FIRST: &str = "0.1";

pub fn write(root: &Path, book: &Book, checks: &Checks, operators: &[Operator]) -> Result<String> {
    let (types, first_sizes) = (Types::of(book), FirstSizes::read(root)?);
    let errors = Errors::of(book, checks);
    let (mut constants, mut handles, mut aliases, mut callbacks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut enums, mut structs, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    for (header, chapter, item) in book.items() {
        let mut members =
            vec![("name", Json::from(super::source::name(item))), ("header", header.name.as_str().into())];
        members.push(("chapter", chapter.title.as_str().into()));
        match item {
            Item::Const(item) => {
                members.push(("value", Json::Number(types.value(&item.expr)?)));
                members.push(("brief", text(&item.attrs)));
                constants.push(Json::Object(members));
            }
            Item::Type(item) => {
                if let Some(function) = c::callback(&item.ty) {
                    members.extend(signature(function));
                    members.push(("threads", threads(&docs(&item.attrs).join(" "))));
                    members.push(("brief", text(&item.attrs)));
                    callbacks.push(Json::Object(members));
                } else {
                    members.push(("type", c::declaration(&item.ty, "").into()));
                    members.push(("brief", text(&item.attrs)));
                    aliases.push(Json::Object(members));
                }
            }
            Item::Enum(item) => {
                let values = item.variants.iter().zip(types.values(item)?).map(|(variant, value)| {
                    let name = variant.ident.to_string().into();
                    Json::Object(vec![("name", name), ("value", Json::Number(value)), ("brief", text(&variant.attrs))])
                });
                members.push(("brief", text(&item.attrs)));
                members.push(("values", Json::List(values.collect())));
                enums.push(Json::Object(members));
            }
            Item::Struct(item) if is_opaque(item) => {
                let name = item.ident.to_string();
                let is_shared = book.functions().any(|(_, _, function)| function.sig.ident == format!("{name}_retain"));
                let kind = if is_builder(&name) {
                    "owned"
                } else if is_shared {
                    "shared"
                } else {
                    "lent"
                };
                members.push(("kind", kind.into()));
                members.push(("brief", text(&item.attrs)));
                handles.push(Json::Object(members));
            }
            Item::Struct(item) => {
                let layout = types.layout(item)?;
                let fields = item.fields.iter().zip(&layout.offsets).map(|(field, offset)| {
                    let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
                    let mut members =
                        vec![("name", Json::from(name.as_str())), ("type", c::declaration(&field.ty, "").into())];
                    members.push(("declaration", c::declaration(&field.ty, &name).into()));
                    members.push(("offset", (*offset).into()));
                    if c::callback(&field.ty).is_some() {
                        members.push(("threads", threads(&docs(&field.attrs).join(" "))));
                    }
                    members.push(("brief", text(&field.attrs)));
                    Json::Object(members)
                });
                members.push(("size", layout.size.into()));
                members.push(("alignment", layout.alignment.into()));
                let is_versioned = item
                    .fields
                    .iter()
                    .next()
                    .is_some_and(|field| field.ident.as_ref().is_some_and(|name| name == "struct_size"));
                let first_size = first_sizes.of(item, &layout)?;
                members.push(("first_size", if is_versioned { first_size.into() } else { Json::Null }));
                members.push(("brief", text(&item.attrs)));
                members.push(("fields", Json::List(fields.collect())));
                structs.push(Json::Object(members));
            }
            Item::Fn(item) => {
                members.extend(function(item, &types, checks, &errors, operators));
                functions.push(Json::Object(members));
            }
            _ => {}
        }
    }
    let headers = book.headers.iter().map(|header| {
        let chapters = header.chapters.iter().map(|chapter| chapter.title.as_str().into()).collect();
        Json::Object(vec![
            ("name", header.name.as_str().into()),
            ("title", header.title.as_str().into()),
            ("chapters", Json::List(chapters)),
        ])
    });
    let defaults = vec![
        ("threads", Json::from("any thread")),
        ("threads_of_settings_and_builders", "one thread at a time per object".into()),
        ("blocks", "never".into()),
        ("errors", Json::List(vec!["INVALID_ARGUMENT".into()])),
    ];
    let all = vec![
        ("layouts", Json::from("x86-64, LP64")),
        ("defaults", Json::Object(defaults)),
        ("headers", Json::List(headers.collect())),
        ("constants", Json::List(constants)),
        ("enums", Json::List(enums)),
        ("aliases", Json::List(aliases)),
        ("handles", Json::List(handles)),
        ("callbacks", Json::List(callbacks)),
        ("structs", Json::List(structs)),
        ("functions", Json::List(functions)),
    ];
    Ok(Json::Object(all).pretty())
}

fn is_opaque(item: &ItemStruct) -> bool {
    item.fields.iter().all(|field| field.ident.as_ref().is_some_and(|name| name == "_opaque"))
}

/// The first sentence of a description. The headers have all of it.
fn text(attributes: &[Attribute]) -> Json {
    brief(&docs(attributes).join("\n"))
}

fn brief(description: &str) -> Json {
    let paragraph = description.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    paragraph.split_once(". ").map_or(paragraph.as_str(), |(first, _)| first).trim_end_matches('.').into()
}

fn signature(function: &TypeBareFn) -> Vec<(&'static str, Json)> {
    let parameters = function.inputs.iter().map(|input| {
        let name = input.name.as_ref().map(|(name, _)| name.to_string()).unwrap_or_default();
        Json::Object(vec![("name", name.into()), ("type", c::declaration(&input.ty, "").into())])
    });
    vec![("returns", c::returned(&function.output).into()), ("parameters", Json::List(parameters.collect()))]
}

/// The threads that call a callback, as its description has them.
fn threads(description: &str) -> Json {
    let said: Vec<_> = description.split_inclusive(". ").filter(|sentence| sentence.contains("thread")).collect();
    if said.is_empty() { Json::Null } else { said.concat().trim().into() }
}

fn function(
    function: &ItemFn,
    types: &Types,
    checks: &Checks,
    errors: &Errors,
    operators: &[Operator],
) -> Vec<(&'static str, Json)> {
    let contract = Contract::of(function);
    let body = c::tokens(&function.block);
    let name = function.sig.ident.to_string();
    let mut calls_back = Vec::new();
    let all = parameters(function);
    let parameters: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(at, (parameter, ty))| {
            calls_back.extend(callbacks(parameter, ty, types));
            let mut members = vec![("name", Json::from(parameter.as_str())), ("type", c::declaration(ty, "").into())];
            members.push(("direction", direction(parameter, ty, types).into()));
            let is_array = matches!(ty, Type::Ptr(pointer) if !is_handle(&pointer.elem, types));
            let next = all.get(at + 1).map(|(count, _)| count.as_str()).filter(|_| is_array);
            let count = next.filter(|count| is_count(count) || is_bytes(ty) && ["bytes", "size"].contains(count));
            let told = told_count(parameter, &contract).filter(|_| is_array);
            if let Some(count) = told.or(count.map(str::to_owned)) {
                members.push(("count", count.into()));
            }
            let check = checks.of(&name, parameter);
            let of_operator = operators.iter().find(|operator| name == format!("weir_kernel_create_{}", operator.file));
            let is_null_legal = match (parameter.as_str(), of_operator) {
                ("desc", Some(operator)) => Some(operator.takes_null),
                _ => nullable(&name, ty, check.as_ref().map(|check| check.null), count.is_some())
                    .or_else(|| may_be_null(parameter, &contract).then_some(true)),
            };
            if let Some(nullable) = is_null_legal {
                members.push(("nullable", Json::Bool(nullable)));
            }
            // What is made keeps what it was made with; other calls may hold a reference for their own time alone.
            let makes = !name.contains("_get_") && all.iter().any(|(out, ty)| is_made(out, ty));
            let check = check.as_ref().map(|check| check.by.as_str()).filter(|_| makes);
            let check = check.or_else(|| checker(parameter, &body)).filter(|_| makes || !is_for_call(&name, &contract));
            let is_held =
                contract.ownership.as_ref().is_some_and(|text| text.contains(&format!("holds the {parameter}")));
            let check = if is_held { Some("share") } else { check };
            if let Some(ownership) = ownership(&name, parameter, ty, &body, check, types) {
                members.push(("ownership", ownership.into()));
            }
            Json::Object(members)
        })
        .collect();
    let since =
        contract.text.iter().find_map(|line| line.strip_prefix("Since ")).map(|version| version.trim_end_matches('.'));
    let default_threads = contract::default_threads(function);
    vec![
        ("returns", c::returned(&function.sig.output).into()),
        ("since", since.unwrap_or(FIRST).into()),
        ("threads", contract.threads.as_deref().unwrap_or(default_threads).into()),
        ("blocks", contract.blocking.as_deref().unwrap_or("never").into()),
        ("ownership", contract.ownership.as_deref().map_or(Json::Null, Json::from)),
        ("errors", Json::List(errors.all(&name).into_iter().map(Json::from).collect())),
        ("parameters", Json::List(parameters)),
        ("calls_back", Json::List(calls_back)),
        ("brief", brief(&contract.text.join("\n\n"))),
    ]
}

/// The callbacks that come in with a parameter: itself, or members of its struct.
fn callbacks(parameter: &str, ty: &Type, types: &Types) -> Vec<Json> {
    let of = |through: String, ty: &Type, description: &str| {
        let (name, own) = match ty {
            Type::Path(path) => match types.item(&c::last(path)) {
                Some(Item::Type(alias)) if c::callback(&alias.ty).is_some() => {
                    (c::last(path), docs(&alias.attrs).join(" "))
                }
                _ => (c::callback(ty).map(|_| String::new())?, String::new()),
            },
            _ => return None,
        };
        let said = threads(description);
        let said = if matches!(said, Json::Null) { threads(&own) } else { said };
        let mut members = vec![("through", Json::from(through))];
        if !name.is_empty() {
            members.push(("type", name.into()));
        }
        members.push(("threads", said));
        Some(Json::Object(members))
    };
    if let Type::Ptr(pointer) = ty {
        let Type::Path(path) = &*pointer.elem else { return Vec::new() };
        let Some(Item::Struct(item)) = types.item(&c::last(path)) else { return Vec::new() };
        if pointer.const_token.is_none() {
            return Vec::new();
        }
        let member = |field: &syn::Field| {
            let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            of(format!("{parameter}->{name}"), &field.ty, &docs(&field.attrs).join(" "))
        };
        return item.fields.iter().filter_map(member).collect();
    }
    of(parameter.to_owned(), ty, "").into_iter().collect()
}

/// The handle that a pointer points to.
fn handle(ty: &Type, types: &Types) -> Option<String> {
    let Type::Ptr(pointer) = ty else { return None };
    match &*pointer.elem {
        Type::Path(path) => match types.item(&c::last(path)) {
            Some(Item::Struct(item)) if is_opaque(item) => Some(c::last(path)),
            _ => None,
        },
        inner => handle(inner, types),
    }
}

fn direction(parameter: &str, ty: &Type, types: &Types) -> &'static str {
    match ty {
        Type::Ptr(pointer) if pointer.const_token.is_none() => {
            let is_void = matches!(&*pointer.elem, Type::Path(path) if c::last(path) == "c_void");
            let is_handle = matches!(&*pointer.elem, Type::Path(_)) && handle(ty, types).is_some();
            match () {
                () if parameter.starts_with("out_") => "out",
                () if is_void || is_handle => "in",
                () => "inout",
            }
        }
        _ => "in",
    }
}

fn is_handle(ty: &Type, types: &Types) -> bool {
    matches!(ty, Type::Path(path) if matches!(types.item(&c::last(path)), Some(Item::Struct(item)) if is_opaque(item)))
}

fn is_bytes(ty: &Type) -> bool {
    matches!(ty, Type::Ptr(pointer) if matches!(&*pointer.elem, Type::Path(path) if c::last(path) == "c_void"))
}

/// The length of an array where the description has it: "`extents` and `tile` have `rank` elements". It may be computed
/// from parameters: "`inputs` has count * num_inputs elements".
fn told_count(parameter: &str, contract: &Contract) -> Option<String> {
    let text = contract.text.join(" ").replace('`', "");
    let is_own = |at: usize| !text[..at].ends_with(['_', '>', '.']);
    text.match_indices(parameter).filter(|(at, _)| is_own(*at)).find_map(|(at, _)| {
        let rest = &text[at + parameter.len()..];
        // One more name may stand between this one and the verb.
        let rest = match rest.strip_prefix(" and ") {
            Some(rest) => &rest[rest.find(' ')?..],
            None => rest,
        };
        let rest = [" has ", " have "].iter().find_map(|verb| rest.strip_prefix(verb))?;
        let count = rest[..rest.find(" element")?].trim();
        let is_count = |word: &str| word == "*" || word.starts_with(|first: char| first.is_ascii_lowercase());
        (count.len() < 40 && count.split(' ').step_by(2).all(is_count) && !count.contains([',', ':']))
            .then(|| count.to_owned())
    })
}

/// Whether a call keeps nothing beyond its return: it reads, or waits for what it does.
fn is_for_call(function: &str, contract: &Contract) -> bool {
    let ends = |said: &str| said.starts_with("until ") || said.starts_with("for at most ");
    let waits = |said: &str| ends(said) && !said.contains("synchronous stream");
    function.contains("_get_") || contract.blocking.as_deref().is_some_and(waits)
}

/// Whether a parameter is the length of the array before it.
fn is_count(parameter: &str) -> bool {
    parameter.starts_with("num_") || ["count", "capacity"].contains(&parameter)
}

/// Whether NULL is legal, as the function's checks show it: with an array of no elements at least. None: they do not.
fn nullable(function: &str, ty: &Type, null: Option<Null>, has_count: bool) -> Option<bool> {
    let Type::Ptr(_) = ty else { return None };
    if function.ends_with("_release") || function.ends_with("_destroy") {
        return Some(true);
    }
    match null? {
        Null::Legal => Some(true),
        Null::Refused => Some(false),
        Null::Empty => has_count.then_some(true),
    }
}

/// Whether the description says that NULL is legal.
fn may_be_null(parameter: &str, contract: &Contract) -> bool {
    let text = contract.text.join(" ").replace('`', "") + " " + contract.ownership.as_deref().unwrap_or_default();
    let is_own = |at: usize| !text[..at].ends_with(|last: char| last.is_alphanumeric() || "_>.".contains(last));
    let says = |words: &str| text.match_indices(&format!("{parameter}{words}")).any(|(at, _)| is_own(at));
    let asks = [" may be NULL", " (may be NULL)", " NULL: ", " NULL = ", ", if it is not NULL"];
    asks.iter().any(|words| says(words)) || text.contains(&format!("a NULL {parameter}"))
}

/// Arguments whose check refuses what their description allows.
pub fn contradictions(book: &Book, checks: &Checks) -> Vec<String> {
    let mut found = Vec::new();
    for (_, _, function) in book.functions() {
        let (name, contract) = (function.sig.ident.to_string(), Contract::of(function));
        for (parameter, _) in parameters(function) {
            let is_refused = checks.of(&name, &parameter).is_some_and(|check| check.null == Null::Refused);
            if is_refused && may_be_null(&parameter, &contract) {
                found.push(format!("{name}: {parameter} may be NULL, says the description, and the code refuses it"));
            }
        }
    }
    found
}

/// Whether a parameter is for something that the call makes.
fn is_made(parameter: &str, ty: &Type) -> bool {
    parameter.starts_with("out_") && matches!(ty, Type::Ptr(pointer) if matches!(&*pointer.elem, Type::Ptr(_)))
}

/// The fate of a handle that is an argument.
fn ownership(
    function: &str,
    parameter: &str,
    ty: &Type,
    body: &str,
    check: Option<&str>,
    types: &Types,
) -> Option<&'static str> {
    handle(ty, types)?;
    if function.ends_with("_release") || function.ends_with("_destroy") {
        return Some("released");
    }
    if function.ends_with("_retain") {
        return Some("retained");
    }
    if parameter.starts_with("out_") {
        return Some(if body.contains("borrowed_c") || body.contains("borrowed_opt_c") { "borrowed" } else { "owned" });
    }
    Some(match check {
        Some("share" | "share_opt" | "retain") => "retained",
        _ => "borrowed",
    })
}

/// The function that checks a parameter: `borrow` in `handle::borrow(engine, "engine")`.
fn checker<'a>(parameter: &str, body: &'a str) -> Option<&'a str> {
    let at = [format!("({parameter} ,"), format!("({parameter},")].iter().find_map(|call| body.find(call.as_str()))?;
    body[..at].trim_end().rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next()
}
