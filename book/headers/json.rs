//! JSON as text: one object or array of simple values a line, so that a change is a line of a diff.

pub enum Json {
    Null,
    Bool(bool),
    Number(i128),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<usize> for Json {
    fn from(number: usize) -> Json {
        Json::Number(number as i128)
    }
}

impl Json {
    /// Ends with a line break.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out.push('\n');
        out
    }

    fn is_simple(&self) -> bool {
        match self {
            Json::List(list) => list.iter().all(|value| !matches!(value, Json::List(_) | Json::Object(_))),
            Json::Object(members) => members.iter().all(|(_, value)| !matches!(value, Json::List(_) | Json::Object(_))),
            _ => true,
        }
    }

    fn write(&self, out: &mut String, depth: usize) {
        let (open, close, separator) = if self.is_simple() {
            (String::new(), String::new(), ", ".to_owned())
        } else {
            let indent = "  ".repeat(depth + 1);
            (format!("\n{indent}"), format!("\n{}", "  ".repeat(depth)), format!(",\n{indent}"))
        };
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(&value.to_string()),
            Json::Number(value) => out.push_str(&value.to_string()),
            Json::Text(text) => write_text(text, out),
            Json::List(list) if list.is_empty() => out.push_str("[]"),
            Json::List(list) => {
                out.push('[');
                for (at, value) in list.iter().enumerate() {
                    out.push_str(if at == 0 { &open } else { &separator });
                    value.write(out, depth + 1);
                }
                out.push_str(&close);
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at == 0 { &open } else { &separator });
                    write_text(name, out);
                    out.push_str(": ");
                    value.write(out, depth + 1);
                }
                out.push_str(&close);
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}
