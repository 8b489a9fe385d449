//! The syntax of names: letters, digits, '.', '_', '-' and '/'. A leading '_' is reserved for the library.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};

/// The container of resources without an explicit one.
pub const DEFAULT_CONTAINER: &str = "default";

/// Maximum length: it fits into weir_resource_info, with a NUL behind it.
const MOST_OF_NAME: usize = 127;
const MOST_OF_CONTAINER: usize = 63;

/// Refuses an invalid name of a resource.
pub fn check(name: &str) -> Result<()> {
    check_as("name", name, MOST_OF_NAME)
}

/// Refuses an invalid name of a container.
pub fn check_container(name: &str) -> Result<()> {
    check_as("container", name, MOST_OF_CONTAINER)
}

fn check_as(argument: &str, name: &str, most: usize) -> Result<()> {
    let refuse = |why: String| Err(Error::invalid(format!("{argument} '{name}' {why}")));
    if name.is_empty() {
        return Err(Error::invalid(format!("{argument} is empty")));
    }
    if name.len() > most {
        return Err(Error::invalid(format!("{argument} has {} bytes, expected at most {most}", name.len())));
    }
    let is_legal = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-', '/'].contains(&c);
    if let Some(c) = name.chars().find(|&c| !is_legal(c)) {
        return refuse(format!("has '{}' in it, expected letters, digits, '.', '_', '-' and '/'", c.escape_default()));
    }
    match name.chars().next() {
        Some('_') => refuse("begins with '_', which is kept for the library".to_owned()),
        Some('-' | '/') => refuse("begins with neither a letter, a digit nor '.'".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_digits_and_few_signs() {
        for good in ["x", "layer.1/weights", "0", ".hidden", "a_b-c", &"n".repeat(127)] {
            assert!(check(good).is_ok(), "{good}");
        }
        for (bad, why) in
            [("", "empty"), ("_x", "kept"), ("a b", "' '"), ("ä", "u{e4}"), ("/x", "neither"), ("a\n", "\\n")]
        {
            let error = check(bad).unwrap_err();
            assert!(error.message().contains(why), "{error}");
        }
        assert!(check(&"n".repeat(128)).is_err() && check_container(&"n".repeat(64)).is_err());
    }
}
