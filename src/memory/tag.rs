//! The purpose of a block, as text for people.
#![forbid(unsafe_code)]

use crate::base::Desc;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Kept with each block, and converted to text only on request.
#[derive(Clone, Debug, Default)]
pub enum Tag {
    #[default]
    Nothing,
    Tensor(Desc),
    Fixed(&'static str),
    Text(Arc<str>),
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tag::Nothing => f.write_str("nothing"),
            Tag::Tensor(desc) => write!(f, "tensor {}", desc.text()),
            Tag::Fixed(text) => f.write_str(text),
            Tag::Text(text) => f.write_str(text),
        }
    }
}

impl Tag {
    pub fn text(text: impl Into<Arc<str>>) -> Tag {
        Tag::Text(text.into())
    }

    fn words(&self) -> &str {
        match self {
            Tag::Nothing | Tag::Tensor(_) => "",
            Tag::Fixed(text) => text,
            Tag::Text(text) => text,
        }
    }

    /// An arbitrary order in which equal texts are equal.
    pub(super) fn order(&self, other: &Tag) -> Ordering {
        let key = |tag: &Tag| match tag {
            Tag::Tensor(desc) => Some((desc.dtype, desc.rank, desc.dims)),
            _ => None,
        };
        key(self).cmp(&key(other)).then_with(|| self.words().cmp(other.words()))
    }
}
