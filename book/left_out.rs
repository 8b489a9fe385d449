//! Functions of features that a build leaves out: they are there, as in every build, and fail.

use super::Result;
use quote::ToTokens;
use std::fs;
use std::path::Path;
use syn::{Expr, FnArg, Item, ItemFn, Lit, Pat, ReturnType, Type, Visibility};

/// The sources of the functions of features, for builds without them.
pub fn write(root: &Path, creators: &str) -> Result<[(&'static str, String); 3]> {
    let ffi = root.join("src/ffi");
    let modules = syn::parse_file(&fs::read_to_string(ffi.join("mod.rs"))?)?;
    let all = |feature: &str| {
        let mut files = modules.items.iter().filter_map(|item| module_of(item, feature));
        files.try_fold(String::new(), |all, file| -> Result<String> {
            let source = fs::read_to_string(ffi.join(format!("{file}.rs")))?;
            Ok(all + &functions(&source, feature)?)
        })
    };
    Ok([
        ("left_out_engines.rs", all("engines")?),
        ("left_out_graph.rs", all("graph")?),
        ("left_out_kernels.rs", functions(creators, "kernels")?),
    ])
}

/// The name of a module that only builds with the feature have: `#[cfg(feature = "..")] mod name;`.
fn module_of(item: &Item, feature: &str) -> Option<String> {
    let Item::Mod(module) = item else { return None };
    let has_condition = module.attrs.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::MetaNameValue>().is_ok_and(|condition| {
                let Expr::Lit(value) = &condition.value else { return false };
                matches!(&value.lit, Lit::Str(name) if name.value() == feature)
            })
    });
    has_condition.then(|| module.ident.to_string())
}

fn functions(source: &str, feature: &str) -> Result<String> {
    let items = syn::parse_file(source)?.items.into_iter();
    let exported = items.filter_map(|item| match item {
        Item::Fn(function) if function.sig.abi.is_some() && matches!(function.vis, Visibility::Public(_)) => {
            Some(function)
        }
        _ => None,
    });
    Ok(exported.map(|function| left_out(&function, feature)).collect())
}

/// As demanded of all functions, an output of pointer type is NULL after the failure. Without a status there is nothing
/// to be done: there is no object that a release could get. Names are "".
fn left_out(function: &ItemFn, feature: &str) -> String {
    let name = function.sig.ident.to_string();
    let signature = function.sig.to_token_stream();
    let body = match &function.sig.output {
        ReturnType::Default => String::new(),
        ReturnType::Type(_, answer) if matches!(&**answer, Type::Ptr(_)) => "c\"\".as_ptr()".to_owned(),
        ReturnType::Type(..) => {
            let outputs = function.sig.inputs.iter().filter_map(output);
            let outputs = outputs.map(|(take, name)| format!("{take}({name}, \"{name}\")?; ")).collect::<String>();
            let outputs = if outputs.is_empty() {
                String::new()
            } else {
                format!("// SAFETY: the caller's pointers, as documented.\n        unsafe {{ {outputs}}}\n        ")
            };
            format!("guard(\"{name}\", || {{\n        {outputs}Err(left_out(\"{feature}\"))\n    }})")
        }
    };
    format!("#[unsafe(no_mangle)]\npub {signature} {{\n    {body}\n}}\n\n")
}

/// The function for a parameter that is a pointer to a pointer to be written, and its name.
fn output(parameter: &FnArg) -> Option<(&'static str, String)> {
    let FnArg::Typed(parameter) = parameter else { return None };
    let (Pat::Ident(name), Type::Ptr(outer)) = (&*parameter.pat, &*parameter.ty) else { return None };
    let take = match &*outer.elem {
        Type::Ptr(inner) if inner.mutability.is_some() => "out_ptr",
        Type::Ptr(_) => "out_const",
        _ => return None,
    };
    let name = name.ident.to_string();
    (outer.mutability.is_some() && name.starts_with("out_")).then_some((take, name))
}
