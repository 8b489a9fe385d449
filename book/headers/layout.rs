//! Sizes and offsets of the structs on x86-64 (LP64), and the values of enumerators.

use super::c;
use super::source::{self, Book, name};
use crate::book::Result;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use syn::{Expr, Item, ItemEnum, ItemStruct, Lit, Type, UnOp};

/// The types by name.
pub struct Types<'a> {
    items: HashMap<String, &'a Item>,
}

pub struct Layout {
    pub size: usize,
    pub alignment: usize,
    /// Of each member.
    pub offsets: Vec<usize>,
    /// Where each member ends.
    ends: Vec<usize>,
}

/// Where the first published version of a struct ends.
enum FirstEnd {
    Behind(String),
    Before(String),
}

/// The least sizes of versioned structs, as the sources have them that check a struct_size.
pub struct FirstSizes {
    ends: HashMap<String, FirstEnd>,
}

impl FirstSizes {
    pub fn read(root: &Path) -> Result<FirstSizes> {
        let mut ends = HashMap::new();
        for path in source::sources(root)? {
            for line in fs::read_to_string(&path)?.lines().map(str::trim) {
                // The lists of `versioned!`, and the constant of an operator.
                let told: Vec<&str> = line.trim_end_matches(',').splitn(3, ": ").collect();
                let before = line.strip_prefix("const FIRST_SIZE: usize = offset_of!(");
                if let Some((name, member)) = before.and_then(|rest| rest.strip_suffix(");")?.split_once(", ")) {
                    ends.insert(name.to_owned(), FirstEnd::Before(member.to_owned()));
                } else if let ([name, member, _], true) = (&told[..], line.starts_with("weir_")) {
                    ends.insert((*name).to_owned(), FirstEnd::Behind((*member).to_owned()));
                }
            }
        }
        Ok(FirstSizes { ends })
    }

    /// That of a struct; its size, if the sources say nothing else.
    pub fn of(&self, item: &ItemStruct, layout: &Layout) -> Result<usize> {
        let Some(end) = self.ends.get(&item.ident.to_string()) else { return Ok(layout.size) };
        let (FirstEnd::Behind(member) | FirstEnd::Before(member)) = end;
        let at = item.fields.iter().position(|field| field.ident.as_ref().is_some_and(|name| name == member));
        let at = at.ok_or_else(|| format!("{} has no member {member}", item.ident))?;
        Ok(if matches!(end, FirstEnd::Behind(_)) { layout.ends[at] } else { layout.offsets[at] })
    }
}

impl<'a> Types<'a> {
    pub fn of(book: &'a Book) -> Types<'a> {
        Types { items: book.items().map(|(_, _, item)| (name(item), item)).collect() }
    }

    pub fn item(&self, name: &str) -> Option<&'a Item> {
        self.items.get(name).copied()
    }

    pub fn layout(&self, item: &ItemStruct) -> Result<Layout> {
        let (mut end, mut alignment) = (0usize, 1);
        let (mut offsets, mut ends) = (Vec::new(), Vec::new());
        for field in &item.fields {
            let (size, own) = self.size(&field.ty).map_err(|error| format!("{}: {error}", item.ident))?;
            let offset = end.next_multiple_of(own);
            offsets.push(offset);
            (end, alignment) = (offset + size, alignment.max(own));
            ends.push(end);
        }
        Ok(Layout { size: end.next_multiple_of(alignment), alignment, offsets, ends })
    }

    /// Size and alignment.
    fn size(&self, ty: &Type) -> Result<(usize, usize)> {
        match ty {
            Type::Ptr(_) => Ok((8, 8)),
            Type::Array(array) => {
                let (size, alignment) = self.size(&array.elem)?;
                Ok((size * usize::try_from(self.value(&array.len)?)?, alignment))
            }
            Type::Path(_) if c::callback(ty).is_some() => Ok((8, 8)),
            Type::Path(path) => match c::last(path).as_str() {
                "u8" | "i8" | "c_char" => Ok((1, 1)),
                "u16" | "i16" => Ok((2, 2)),
                "u32" | "i32" | "f32" | "c_int" => Ok((4, 4)),
                "u64" | "i64" | "f64" | "usize" | "isize" => Ok((8, 8)),
                other => match self.item(other) {
                    Some(Item::Enum(_)) => Ok((4, 4)),
                    Some(Item::Type(item)) => self.size(&item.ty),
                    Some(Item::Struct(item)) => self.layout(item).map(|layout| (layout.size, layout.alignment)),
                    _ => Err(format!("{other} has no known size").into()),
                },
            },
            other => Err(format!("{} has no known size", c::tokens(other)).into()),
        }
    }

    /// The enumerators with their values.
    pub fn values(&self, item: &ItemEnum) -> Result<Vec<i128>> {
        let mut next = 0;
        let mut values = Vec::new();
        for variant in &item.variants {
            let value = match &variant.discriminant {
                Some((_, value)) => self.value(value)?,
                None => next,
            };
            values.push(value);
            next = value + 1;
        }
        Ok(values)
    }

    /// The value of a constant expression.
    pub fn value(&self, of: &Expr) -> Result<i128> {
        match of {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => Ok(number.base10_parse()?),
                _ => Err(format!("{} is no integer", c::tokens(of)).into()),
            },
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => Ok(-self.value(&unary.expr)?),
            Expr::Binary(binary) => {
                let (left, right) = (self.value(&binary.left)?, self.value(&binary.right)?);
                match binary.op {
                    syn::BinOp::Shl(_) => Ok(left << right),
                    syn::BinOp::BitOr(_) => Ok(left | right),
                    _ => Err(format!("{} is not understood", c::tokens(of)).into()),
                }
            }
            Expr::Path(_) if c::tokens(of) == "u64 :: MAX" => Ok(u64::MAX.into()),
            other => Err(format!("{} is not understood", c::tokens(other)).into()),
        }
    }
}
