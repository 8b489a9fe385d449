//! The operators for the crate `weir`: of each struct of C one of Rust, with flags as truth values, numbers of enums as
//! enums, and arrays with a length as slices.

use crate::book::Result;
use crate::book::operators::{Operator, wrapped};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use syn::{Attribute, Expr, Field, Fields, Item, ItemEnum, ItemStruct, Lit, Meta, Type};

/// The file, in a repository that has the crate.
pub fn write(root: &Path, operators: &[Operator]) -> Result<Option<(String, String)>> {
    let name = "rust/src/ops/generated.rs";
    if !root.join(name).parent().is_some_and(Path::is_dir) {
        return Ok(None);
    }
    let sources = Sources::read(&root.join("src/ops"), operators)?;
    let mut text = "//! The operators. Generated from `src/ops`; do not edit.

use super::sealed::Create;
use super::{Operator, PackedWeights, bits, filled};
use crate::error::check;
use crate::{DType, Result};
use weir_core::abi::{weir_engine, weir_kernel};
use weir_core::ffi;
"
    .to_owned();
    for operator in operators {
        text += &sources.operator(operator)?;
    }
    for (alias, item) in &sources.enums {
        text += &sources.value_enum(alias, item)?;
    }
    Ok(Some((name.to_owned(), text)))
}

/// The items of `src/ops`.
struct Sources {
    structs: BTreeMap<String, ItemStruct>,
    /// By the name of the number's type: `weir_binary_op`.
    enums: BTreeMap<String, ItemEnum>,
    flags: BTreeMap<String, ItemEnum>,
    /// Words for the names of C in comments.
    words: BTreeMap<String, String>,
}

/// A member of a struct, as Rust has it.
struct Member {
    name: String,
    ty: String,
    comment: Vec<String>,
    /// None: a user has to say.
    default: Option<String>,
}

impl Sources {
    fn read(folder: &Path, operators: &[Operator]) -> Result<Sources> {
        let words = BTreeMap::new();
        let mut all = Sources { structs: BTreeMap::new(), enums: BTreeMap::new(), flags: BTreeMap::new(), words };
        for file in fs::read_dir(folder)? {
            for item in syn::parse_file(&fs::read_to_string(file?.path())?)?.items {
                match item {
                    Item::Struct(item) => drop(all.structs.insert(item.ident.to_string(), item)),
                    Item::Enum(item) => {
                        let name = item.ident.to_string();
                        match name.strip_suffix("_value") {
                            Some(alias) => drop(all.enums.insert(alias.to_owned(), item)),
                            None if name.ends_with("_flags") => drop(all.flags.insert(name, item)),
                            None => {}
                        }
                    }
                    _ => {}
                }
            }
        }
        all.words = all.words_of(operators);
        Ok(all)
    }

    fn words_of(&self, operators: &[Operator]) -> BTreeMap<String, String> {
        let mut words: BTreeMap<String, String> = [
            ("WEIR_DIM_DYNAMIC", "[`OPEN`](crate::OPEN)"),
            ("WEIR_MAX_RANK", "[`MAX_RANK`](crate::MAX_RANK)"),
            ("WEIR_MAX_ARGS", "64"),
            ("WEIR_RESHAPE_INFER", "[`INFER`](Reshape::INFER)"),
            ("WEIR_RESHAPE_KEEP", "[`KEEP`](Reshape::KEEP)"),
            ("WEIR_F32", "[`DType::F32`]"),
            ("WEIR_S32", "[`DType::I32`]"),
            ("WEIR_S8", "[`DType::I8`]"),
            ("WEIR_U8", "[`DType::U8`]"),
            ("INT64_MAX", "`i64::MAX`"),
            ("INT64_MIN", "`i64::MIN`"),
            ("NULL", "`None`"),
            ("s8", "i8"),
            ("s32", "i32"),
            ("s64", "i64"),
        ]
        .map(|(word, with)| (word.to_owned(), with.to_owned()))
        .into();
        for operator in operators {
            words.insert(operator.desc.clone(), format!("[`{}`]", operator.name));
            if let Some(flags) = self.flags.get(&format!("weir_{}_flags", operator.file)) {
                for variant in &flags.variants {
                    let word = variant.ident.to_string();
                    let member = flag(operator, &word);
                    words.insert(word, format!("[`{member}`]({}::{member})", operator.name));
                }
            }
        }
        for (alias, item) in &self.enums {
            words.insert(alias.clone(), format!("[`{}`]", camel(alias)));
            words.insert(format!("{alias}_value"), format!("[`{}`]", camel(alias)));
            for variant in &item.variants {
                let word = variant.ident.to_string();
                let link = format!("[`{}::{}`]", camel(alias), value(&word));
                words.insert(word, link);
            }
        }
        words
    }

    fn operator(&self, operator: &Operator) -> Result<String> {
        let Operator { file, desc, .. } = operator;
        let item = self.structs.get(desc).ok_or("its struct is elsewhere")?;
        let Fields::Named(fields) = &item.fields else { return Err("its struct has no members".into()) };
        let fields: Vec<&Field> = fields.named.iter().collect();
        let is_list = |field: &Field| matches!(&field.ty, Type::Array(array) if tokens(&array.len) == "8");
        let lists: Vec<String> = fields.iter().filter(|field| is_list(field)).map(|field| ident(field)).collect();
        let mut members: Vec<Member> = Vec::new();
        let mut values = String::new();
        let mut length_says = None;
        for field in fields {
            let (member, ty, comment) = (ident(field), tokens(&field.ty), comments(&field.attrs));
            let plain = |ty: &str, default: &str| Member {
                name: member.clone(),
                ty: ty.to_owned(),
                comment: comment.clone(),
                default: Some(default.to_owned()),
            };
            let mut add = |value: &str| values += &format!("            {member}: {value},\n");
            match (member.as_str(), ty.as_str()) {
                ("struct_size", _) => add(&format!("size_of::<ffi::{desc}>()")),
                ("reserved", _) => add("0"),
                ("flags", _) => {
                    let flags = self.flags.get(&format!("weir_{file}_flags")).ok_or("its flags are elsewhere")?;
                    let mut bits = Vec::new();
                    for variant in &flags.variants {
                        let name = flag(operator, &variant.ident.to_string());
                        let bit = variant.discriminant.as_ref().ok_or("a flag without a value")?;
                        bits.push(format!("(self.{name}, {})", tokens(&bit.1)));
                        let comment = comments(&variant.attrs);
                        members.push(Member { name, ty: "bool".into(), comment, default: Some("false".into()) });
                    }
                    let lines = wrapped(&bits.join(", "), 100).join("\n                ");
                    add(&match lines.contains('\n') {
                        true => format!("bits(&[\n                {lines},\n            ])"),
                        false => format!("bits(&[{lines}])"),
                    });
                }
                ("rank" | "num_axes", _) if !lists.is_empty() => {
                    add("u32::try_from(len).unwrap_or(u32::MAX)");
                    length_says = Some(comment);
                }
                ("weights", _) => {
                    add("self.weights.as_ref().map_or(std::ptr::null_mut(), PackedWeights::raw)");
                    members.push(plain("Option<PackedWeights>", "None"));
                }
                (_, "weir_dtype") => {
                    let mut own = plain("DType", "");
                    if comment.join(" ").contains(" 0") {
                        add(&format!("self.{member}.map_or(0, DType::code)"));
                        own = plain("Option<DType>", "None");
                        own.comment.push("`None` stands for 0.".to_owned());
                    } else {
                        add(&format!("self.{member}.code()"));
                        own.default = None;
                    }
                    members.push(own);
                }
                (_, ty) if self.enums.contains_key(ty) => {
                    add(&format!("self.{member} as u32"));
                    let mut own = plain(&camel(ty), "");
                    own.default = zero(&self.enums[ty]).map(|zero| format!("{}::{zero}", camel(ty)));
                    members.push(own);
                }
                _ if lists.contains(&member) => {
                    add(&format!("filled(self.{member}, len, \"{file}: {member}\")?"));
                    let Type::Array(array) = &field.ty else { return Err("a list is no array".into()) };
                    let mut own = plain(&format!("&'a [{}]", tokens(&array.elem)), "&[]");
                    if member == lists[0] {
                        let said = length_says.take().unwrap_or_default().join(" ");
                        own.comment.push(format!("How many they are: {}{}", said[..1].to_lowercase(), &said[1..]));
                    } else {
                        own.comment.push(format!("As many as in `{}`, or none for zeros.", lists[0]));
                    }
                    members.push(own);
                }
                _ => {
                    add(&format!("self.{member}"));
                    let default = match (member.as_str(), ty.as_str()) {
                        ("axis", _) => "-1",
                        (_, "f32" | "f64") => "0.0",
                        (_, "[i64;2]") => "[0; 2]",
                        _ => "0",
                    };
                    members.push(plain(&ty.replace(';', "; "), default));
                }
            }
        }
        Ok(self.printed(operator, &comments(&item.attrs), &members, &values, lists.first()))
    }

    fn printed(
        &self,
        operator: &Operator,
        comment: &[String],
        members: &[Member],
        values: &str,
        first_list: Option<&String>,
    ) -> String {
        let Operator { file, name, desc, .. } = operator;
        let (generic, elided) = if first_list.is_some() { ("<'a>", "<'_>") } else { ("", "") };
        let required: Vec<&Member> = members.iter().filter(|member| member.default.is_none()).collect();
        let derives_default = required.is_empty() && members.iter().all(|member| member.name != "axis");
        let mut text = format!(
            "\n{}#[derive(Clone, Debug{})]\n",
            self.comment(comment, ""),
            if derives_default { ", Default" } else { "" }
        );
        if members.is_empty() {
            text += &format!("pub struct {name};\n");
        } else {
            text += &format!("pub struct {name}{generic} {{\n");
            for member in members {
                text += &format!("{}    pub {}: {},\n", self.comment(&member.comment, "    "), member.name, member.ty);
            }
            text += "}\n";
        }
        let values_of_members = || {
            let each = members.iter().map(|member| match &member.default {
                Some(default) => format!("            {}: {default},\n", member.name),
                None => format!("            {},\n", member.name),
            });
            each.collect::<String>()
        };
        let anonymous = if generic.is_empty() { "" } else { "<'_>" };
        if !required.is_empty() {
            let arguments: Vec<_> = required.iter().map(|member| format!("{}: {}", member.name, member.ty)).collect();
            text += &format!(
                "\nimpl{generic} {name}{generic} {{\n    /// The operator with no other settings.\n    pub fn new({}) -> \
                 Self {{\n        {name} {{\n{}        }}\n    }}\n}}\n",
                arguments.join(", "),
                values_of_members()
            );
        } else if !derives_default {
            text += &format!(
                "\nimpl Default for {name}{anonymous} {{\n    fn default() -> Self {{\n        {name} {{\n{}        \
                 }}\n    }}\n}}\n",
                values_of_members()
            );
        }
        let len = first_list.map_or(String::new(), |list| format!("        let len = self.{list}.len();\n"));
        text += &format!(
            "
impl Operator for {name}{elided} {{
    const NAME: &'static str = \"{file}\";
}}

impl Create for {name}{elided} {{
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {{
{len}        let desc = ffi::{desc} {{
{values}        }};
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe {{ ffi::weir_kernel_create_{file}(engine, &raw const desc, std::ptr::null(), out) }})
    }}
}}
"
        );
        text
    }

    fn value_enum(&self, alias: &str, item: &ItemEnum) -> Result<String> {
        let zero = zero(item);
        let default = if zero.is_some() { ", Default" } else { "" };
        let mut text = format!(
            "\n{}#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash{default})]\n#[non_exhaustive]\n#[repr(u32)]\npub enum {} {{\n",
            self.comment(&comments(&item.attrs), ""),
            camel(alias)
        );
        for variant in &item.variants {
            let name = value(&variant.ident.to_string());
            let number = tokens(&variant.discriminant.as_ref().ok_or("a value without a number")?.1);
            text += &self.comment(&comments(&variant.attrs), "    ");
            if zero.as_ref() == Some(&name) {
                text += "    #[default]\n";
            }
            text += &format!("    {name} = {number},\n");
        }
        Ok(text + "}\n")
    }

    /// Paragraphs as a comment of Rust.
    fn comment(&self, paragraphs: &[String], indent: &str) -> String {
        let each = paragraphs.iter().map(|text| {
            let lines = wrapped(&self.said(text), 116 - indent.len());
            lines.into_iter().map(|line| format!("{indent}/// {line}\n")).collect::<String>()
        });
        each.collect::<Vec<_>>().join(&format!("{indent}///\n"))
    }

    /// A text with the names of Rust. A bracket of C's is a shape, no link.
    fn said(&self, text: &str) -> String {
        let (mut out, mut word, mut quoted) = (String::new(), String::new(), false);
        for c in text.chars().chain([' ']) {
            if c.is_ascii_alphanumeric() || c == '_' {
                word.push(c);
                continue;
            }
            match self.words.get(&word) {
                Some(with) if !quoted => out += with,
                _ => out += &word,
            }
            word.clear();
            quoted ^= c == '`';
            if !quoted && matches!(c, '[' | ']' | '<' | '*') {
                out.push('\\');
            }
            out.push(c);
        }
        out.trim_end().to_owned()
    }
}

/// "WEIR_MATMUL_TRANSPOSE_A" of matmul: transpose_a.
fn flag(operator: &Operator, word: &str) -> String {
    let prefix = format!("WEIR_{}_", operator.file.to_uppercase());
    word.strip_prefix(&prefix).unwrap_or(word).to_lowercase()
}

/// "WEIR_ELTWISE_GELU_ERF": GeluErf.
fn value(word: &str) -> String {
    word.splitn(3, '_').nth(2).unwrap_or(word).split('_').map(capital).collect()
}

/// "weir_gate_order": GateOrder.
fn camel(name: &str) -> String {
    name.split('_').skip(1).map(capital).collect()
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..].to_lowercase()
}

/// The value whose number is 0.
fn zero(item: &ItemEnum) -> Option<String> {
    let is_zero = |number: &Expr| tokens(number) == "0";
    let zero = item.variants.iter().find(|variant| variant.discriminant.as_ref().is_some_and(|d| is_zero(&d.1)));
    zero.map(|variant| value(&variant.ident.to_string()))
}

fn ident(field: &Field) -> String {
    field.ident.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn tokens(of: &impl quote::ToTokens) -> String {
    of.to_token_stream().to_string().replace(' ', "")
}

/// A comment's paragraphs.
fn comments(attributes: &[Attribute]) -> Vec<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(text) => match &text.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.collect();
    lines.split(|line| line.is_empty()).map(|lines| lines.join(" ")).collect()
}
