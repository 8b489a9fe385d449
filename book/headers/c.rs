//! Types of the sources as C declares them.

use std::collections::BTreeSet;
use syn::{GenericArgument, Item, PathArguments, ReturnType, Type, TypeBareFn, TypePath};

/// A declaration of `name`; of an abstract type if it is empty.
pub fn declaration(ty: &Type, name: &str) -> String {
    declared(ty, false, name.to_owned()).trim_end().to_owned()
}

fn declared(ty: &Type, is_const: bool, inner: String) -> String {
    match ty {
        Type::Ptr(pointer) => {
            let star = if is_const { "*const " } else { "*" };
            let inner = format!("{star}{inner}");
            // A const behind a star without a name is followed by nothing.
            declared(&pointer.elem, pointer.const_token.is_some(), inner.trim_end().to_owned())
        }
        Type::Array(array) => declared(&array.elem, is_const, format!("{inner}[{}]", tokens(&array.len))),
        Type::Path(path) => match callback(ty) {
            Some(function) => {
                let parameters: Vec<_> = function
                    .inputs
                    .iter()
                    .map(|input| {
                        declaration(
                            &input.ty,
                            &input.name.as_ref().map(|(name, _)| name.to_string()).unwrap_or_default(),
                        )
                    })
                    .collect();
                let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
                format!("{} (*{inner})({parameters})", returned(&function.output))
            }
            None => format!("{}{} {inner}", if is_const { "const " } else { "" }, named(path)),
        },
        _ => tokens(ty),
    }
}

pub fn returned(output: &ReturnType) -> String {
    match output {
        ReturnType::Default => "void".to_owned(),
        ReturnType::Type(_, ty) => declaration(ty, ""),
    }
}

/// The function that an `Option<unsafe extern "C" fn(...)>` points to.
pub fn callback(ty: &Type) -> Option<&TypeBareFn> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(Type::BareFn(function)) if last.ident == "Option" => Some(function),
        _ => None,
    }
}

/// The last name of a path: `weir_engine`, `c_char`.
pub fn last(path: &TypePath) -> String {
    path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

fn named(path: &TypePath) -> String {
    match last(path).as_str() {
        "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "usize" => "size_t",
        "isize" => "ptrdiff_t",
        "u8" => "uint8_t",
        "u16" => "uint16_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i8" => "int8_t",
        "i16" => "int16_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "f32" => "float",
        "f64" => "double",
        "DLManagedTensor" => "struct DLManagedTensor",
        "DLManagedTensorVersioned" => "struct DLManagedTensorVersioned",
        other => other,
    }
    .to_owned()
}

pub fn tokens(of: impl quote::ToTokens) -> String {
    of.to_token_stream().to_string()
}

/// The types of weir's that an item names in its signature or members.
pub fn names(item: &Item) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    match item {
        Item::Fn(function) => {
            for input in &function.sig.inputs {
                if let syn::FnArg::Typed(input) = input {
                    add_names(&input.ty, &mut names);
                }
            }
            add_returned(&function.sig.output, &mut names);
        }
        Item::Struct(item) => item.fields.iter().for_each(|field| add_names(&field.ty, &mut names)),
        Item::Type(item) => add_names(&item.ty, &mut names),
        _ => {}
    }
    names
}

fn add_names(ty: &Type, names: &mut BTreeSet<String>) {
    match ty {
        Type::Ptr(pointer) => add_names(&pointer.elem, names),
        Type::Array(array) => add_names(&array.elem, names),
        Type::Path(path) => match callback(ty) {
            Some(function) => {
                function.inputs.iter().for_each(|input| add_names(&input.ty, names));
                add_returned(&function.output, names);
            }
            None => _ = names.insert(last(path)),
        },
        _ => {}
    }
}

fn add_returned(output: &ReturnType, names: &mut BTreeSet<String>) {
    if let ReturnType::Type(_, ty) = output {
        add_names(ty, names);
    }
}
