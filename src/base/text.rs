//! Text for C structs, with a fixed length, and for JSON.
#![forbid(unsafe_code)]

use std::ffi::c_char;
use std::fmt::Write as _;

/// As many whole characters of `text` as fit below a NUL; the rest of the array is zero. A NUL in the text ends it.
pub fn fixed<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    let room = N.saturating_sub(1);
    for (to, from) in array[..room].iter_mut().zip(head(text, room).bytes().take_while(|&byte| byte != 0)) {
        *to = from as c_char;
    }
    array
}

/// The longest prefix of `text` with at most `bytes` bytes that ends on a character boundary.
pub fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A quoted JSON string (RFC 8259, section 7).
pub fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_kept_whole_or_left_out() {
        assert_eq!(head("añb", 0), "");
        assert_eq!(head("añb", 2), "a");
        assert_eq!(head("añb", 3), "añ");
        assert_eq!(head("añb", 9), "añb");
        assert_eq!(fixed::<3>("añb"), [b'a' as c_char, 0, 0]);
        assert_eq!(fixed::<4>("a\0b"), [b'a' as c_char, 0, 0, 0]);
        assert_eq!(fixed::<1>("a"), [0]);
    }

    #[test]
    fn quotes_and_controls_are_escaped() {
        assert_eq!(json_string("a\"b\\c\n\u{1}"), r#""a\"b\\c\n\u0001""#);
    }
}
