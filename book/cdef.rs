//! `weir_cdef.h`: all headers as one text for parsers without a preprocessor (LuaJIT's ffi.cdef, cffi).

use super::Result;
use super::source::Book;

const TOP: &str = "\
/* weir_cdef.h: the whole C interface for ffi.cdef of LuaJIT and for cffi.
 *
 * Generated from src/abi and src/ffi; do not edit. No compiler is to include it: C and C++ have weir.h.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
";

/// `headers` are the files that `header::write` has made, in the order of the book.
pub fn write(book: &Book, headers: &[(String, String)]) -> Result<String> {
    let mut text = TOP.to_owned();
    for (header, (_, declared)) in book.headers.iter().zip(headers) {
        text += &format!("\n/* {} */\n", header.name);
        let start = declared.find("extern \"C\" {").ok_or("a header without declarations")?;
        let end = declared.rfind("#ifdef __cplusplus").ok_or("a header without an end")?;
        let declared = without_comments(&declared[start..end]);
        for line in declared.lines().skip(1).map(str::trim_end).filter(|line| !line.is_empty()) {
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
