//! Text for C structs: arrays of a fixed length.
#![forbid(unsafe_code)]

use std::ffi::c_char;

/// As many whole characters of `text` as fit below a NUL; the rest of the array is zero. A NUL in the text ends it.
pub fn fixed<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    let room = N.saturating_sub(1);
    for (to, from) in array[..room].iter_mut().zip(head(text, room).bytes().take_while(|&byte| byte != 0)) {
        *to = from as c_char;
    }
    array
}

/// The longest beginning of `text` that has at most `bytes` bytes and ends between two characters.
pub fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
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
}
