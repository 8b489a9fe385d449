//! `weir_api.json`: what the headers declare, for programs that make bindings or check something for all functions.

use super::c;
use super::contract::{self, Contract, is_builder, parameters};
use super::json::Json;
use super::layout::Types;
use super::source::{Book, docs};
use crate::book::Result;
use syn::{Attribute, Item, ItemFn, ItemStruct, Type, TypeBareFn};

/// The version in which all that says nothing else came.
const FIRST: &str = "0.1";

pub fn write(book: &Book) -> Result<String> {
    let types = Types::of(book);
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
                members.push(("first_size", if is_versioned { layout.first_size.into() } else { Json::Null }));
                members.push(("brief", text(&item.attrs)));
                members.push(("fields", Json::List(fields.collect())));
                structs.push(Json::Object(members));
            }
            Item::Fn(item) => {
                members.extend(function(item, &types));
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

fn function(function: &ItemFn, types: &Types) -> Vec<(&'static str, Json)> {
    let contract = Contract::of(function);
    let body = c::tokens(&function.block);
    let name = function.sig.ident.to_string();
    let description = contract.text.join(" ") + contract.ownership.as_deref().unwrap_or_default();
    let mut calls_back = Vec::new();
    let all = parameters(function);
    let parameters: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(at, (parameter, ty))| {
            calls_back.extend(callbacks(parameter, ty, types));
            let mut members = vec![("name", Json::from(parameter.as_str())), ("type", c::declaration(ty, "").into())];
            members.push(("direction", direction(parameter, ty, types).into()));
            if let (Type::Ptr(_), Some((count, _))) = (ty, all.get(at + 1))
                && (count.starts_with("num_") || count == "count" || count == "capacity")
            {
                members.push(("count", count.as_str().into()));
            }
            if let Some(nullable) = nullable(&name, parameter, ty, &body, &description) {
                members.push(("nullable", Json::Bool(nullable)));
            }
            if let Some(ownership) = ownership(&name, parameter, ty, &body, types) {
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
        ("errors", Json::List(contract::errors(function, &contract).into_iter().map(Json::from).collect())),
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

/// Whether NULL is legal, as the function's checks show it or its description says; else the rule is that it is not.
/// None: it cannot be told.
fn nullable(function: &str, parameter: &str, ty: &Type, body: &str, description: &str) -> Option<bool> {
    let Type::Ptr(pointer) = ty else { return None };
    if function.ends_with("_release") || function.ends_with("_destroy") {
        return Some(true);
    }
    let asks = [
        format!("! {parameter} . is_null ()"),
        format!("{parameter} . is_null () {{ None"),
        format!("{parameter} . is_null () {{ \""),
    ];
    if asks.iter().any(|ask| body.contains(ask.as_str())) {
        return Some(true);
    }
    match checker(parameter, body) {
        Some("read_or_zero") => return Some(true),
        Some(check) if check.ends_with("_opt") => return Some(true),
        Some("borrow" | "borrow_mut" | "share" | "retain" | "string" | "read" | "write") => return Some(false),
        Some("out_ptr" | "out_const" | "out_value") => return Some(false),
        _ => {}
    }
    let is_context = matches!(&*pointer.elem, Type::Path(path) if c::last(path) == "c_void");
    match () {
        () if ["buffer", "out_length"].contains(&parameter) && body.contains("capacity") => Some(true),
        () if is_context || description.contains("NULL") => None,
        () => Some(false),
    }
}

/// The function that checks a parameter: `borrow` in `handle::borrow(engine, "engine")`.
fn checker<'a>(parameter: &str, body: &'a str) -> Option<&'a str> {
    let at = [format!("({parameter} ,"), format!("({parameter},")].iter().find_map(|call| body.find(call.as_str()))?;
    body[..at].trim_end().rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next()
}

/// The fate of a handle that is an argument.
fn ownership(function: &str, parameter: &str, ty: &Type, body: &str, types: &Types) -> Option<&'static str> {
    handle(ty, types)?;
    if function.ends_with("_release") || function.ends_with("_destroy") {
        return Some("released");
    }
    if parameter.starts_with("out_") {
        return Some(if body.contains("borrowed_c") || body.contains("borrowed_opt_c") { "borrowed" } else { "owned" });
    }
    Some(match checker(parameter, body) {
        Some("share" | "share_opt" | "retain") => "retained",
        _ => "borrowed",
    })
}
