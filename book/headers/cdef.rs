//! `weir_cdef.h`: all headers as one text for parsers without a preprocessor (LuaJIT's ffi.cdef, cffi), and
//! `weir_testing_cdef.h`: the same for the header of libweir_testing.

use super::source::Book;
use crate::book::Result;

/// The header of the library beside libweir.
pub const TESTING: &str = "weir/testing.h";
/// The header whose preamble declares types.
const DLPACK: &str = "weir/dlpack.h";

const TOP: &str = "\
/* NAME: CONTENTS for ffi.cdef of LuaJIT and for cffi.
 *
 * Generated from the sources of the headers; do not edit. No compiler is to include it: C and C++ have the headers.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
";

/// The files with their names. `headers` are those that `header::write` has made, in the order of the book.
pub fn write(book: &Book, headers: &[(String, String)]) -> Result<[(&'static str, String); 2]> {
    let top = |name: &str, contents: &str| TOP.replace("NAME", name).replace("CONTENTS", contents);
    let of_weir = top("weir_cdef.h", "the whole C interface of libweir");
    let of_testing = top("weir_testing_cdef.h", "the C interface of libweir_testing, after weir_cdef.h,");
    Ok([
        ("include/weir/weir_cdef.h", of_weir + &declarations(book, headers, |name| name != TESTING)?),
        ("include/weir/weir_testing_cdef.h", of_testing + &declarations(book, headers, |name| name == TESTING)?),
    ])
}

fn declarations(book: &Book, headers: &[(String, String)], wanted: impl Fn(&str) -> bool) -> Result<String> {
    let mut text = String::new();
    for (header, (_, declared)) in book.headers.iter().zip(headers).filter(|(header, _)| wanted(&header.name)) {
        text += &format!("\n/* {} */\n", header.name);
        let start = declared.find("extern \"C\" {").ok_or("a header without declarations")?;
        let end = declared.rfind("#ifdef __cplusplus").ok_or("a header without an end")?;
        let preamble = if header.name == DLPACK { header.preamble.join("\n") } else { String::new() };
        let declared = without_comments(&format!("{preamble}\n{}", &declared[start..end]));
        for line in declared
            .lines()
            .filter(|line| !line.starts_with("extern"))
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
        {
            if let Some(constant) = line.strip_prefix("#define ") {
                // Those beyond int have no form that both parsers take.
                if let Some((name, value)) = constant.split_once(' ').filter(|(_, value)| value.parse::<i32>().is_ok())
                {
                    text += &format!("static const int {name} = {value};\n");
                }
            } else if !line.starts_with('#') {
                let bare = line.replace("WEIR_API", "").replace("WEIR_NODISCARD", "");
                let bare = if line.starts_with("WEIR_") { bare.trim_start() } else { &bare };
                if !bare.is_empty() {
                    text += bare;
                    text.push('\n');
                }
            }
        }
    }
    Ok(text)
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        out += &rest[..at];
        rest = rest[at..].find("*/").map_or("", |end| &rest[at + end + 2..]);
    }
    out + rest
}
