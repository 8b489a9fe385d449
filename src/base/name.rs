//! A text that is usually short.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Deref;

/// Bytes stored inline: as many as keep the type no larger than a `String`.
const SHORT: usize = 22;

/// A name. A graph has very many, and most are stored inline.
#[derive(Clone)]
pub enum Name {
    Short(u8, [u8; SHORT]),
    Long(Box<str>),
}

const _: () = assert!(size_of::<Name>() == size_of::<String>());

impl Name {
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Name::Short(len, text) => &text[..usize::from(*len).min(SHORT)],
            Name::Long(text) => text.as_bytes(),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            // The bytes came from a text.
            Name::Short(..) => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Name::Long(text) => text,
        }
    }
}

impl From<&str> for Name {
    #[inline]
    fn from(name: &str) -> Name {
        if name.len() > SHORT {
            return Name::Long(name.into());
        }
        let mut text = [0; SHORT];
        text[..name.len()].copy_from_slice(name.as_bytes());
        Name::Short(name.len() as u8, text)
    }
}

impl From<String> for Name {
    fn from(name: String) -> Name {
        if name.len() > SHORT { Name::Long(name.into()) } else { Name::from(name.as_str()) }
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lengths_are_what_they_were_made_from() {
        for len in 0..64 {
            let text = "ä0123456789".repeat(6).chars().take(len).collect::<String>();
            assert_eq!(
                (Name::from(text.as_str()).as_str(), &*Name::from(text.clone())),
                (text.as_str(), text.as_str())
            );
            assert_eq!(Name::from(text.as_str()).to_string(), text);
        }
    }
}
