//! Text into tokens.

/// One token. Names keep their first sign (%r1, $L__BB0_1, _Z3fooi), directives and modifiers lose their dot.
#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    Name(String),
    /// A directive or a modifier: `.shared::cta` is "shared::cta".
    Dot(String),
    Integer(u64),
    /// The bits of a single float, written 0f3F800000.
    Single(u32),
    /// The bits of a double, written 0d3FF0000000000000 or as a decimal number.
    Double(u64),
    Text(String),
    Sign(char),
}

#[derive(Clone, Debug)]
pub struct Lexeme {
    pub token: Token,
    pub line: u32,
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%')
}

fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

/// All tokens of `source`.
pub fn tokens(source: &str) -> Result<Vec<Lexeme>, String> {
    let mut lexer = Lexer { rest: source, line: 1 };
    let mut found = Vec::new();
    while lexer.skip_blanks()? {
        let line = lexer.line;
        let token = lexer.token().map_err(|what| format!("line {line}: {what}"))?;
        found.push(Lexeme { token, line });
    }
    Ok(found)
}

impl Lexer<'_> {
    fn advance(&mut self, bytes: usize) {
        self.line += self.rest[..bytes].matches('\n').count() as u32;
        self.rest = &self.rest[bytes..];
    }

    /// Passes over blanks and comments; false at the end of the text.
    fn skip_blanks(&mut self) -> Result<bool, String> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.advance(blanks);
            if self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").ok_or_else(|| format!("line {}: comment without end", self.line))?;
                self.advance(end + 2);
            } else {
                return Ok(!self.rest.is_empty());
            }
        }
    }

    /// Takes the longest beginning whose characters all hold.
    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(|c| !holds(c)).unwrap_or(self.rest.len());
        let taken = self.rest[..end].to_string();
        self.rest = &self.rest[end..];
        taken
    }

    fn token(&mut self) -> Result<Token, String> {
        let first = self.rest.chars().next().ok_or("text ends")?;
        if begins_name(first) {
            self.rest = &self.rest[1..];
            let name = self.take_while(continues_name);
            return Ok(Token::Name(format!("{first}{name}")));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first == '.' {
            self.rest = &self.rest[1..];
            return Ok(Token::Dot(self.modifier()));
        }
        if first == '"' {
            let end = self.rest[1..].find('"').ok_or("text without closing quote")?;
            let text = self.rest[1..=end].to_string();
            self.advance(end + 2);
            return Ok(Token::Text(text));
        }
        if "{}()[]<>,;:+-@!|=*/~&".contains(first) {
            self.rest = &self.rest[1..];
            return Ok(Token::Sign(first));
        }
        Err(format!("unexpected character '{first}'"))
    }

    /// A modifier after its dot; parts joined by :: belong to it.
    fn modifier(&mut self) -> String {
        let mut name = self.take_while(continues_name);
        while self.rest.starts_with("::") {
            self.rest = &self.rest[2..];
            name += "::";
            name += &self.take_while(continues_name);
        }
        name
    }

    fn number(&mut self) -> Result<Token, String> {
        let digits = |text: &str, radix| {
            u64::from_str_radix(text, radix).map_err(|_| format!("'{text}' is no number of base {radix}"))
        };
        let prefix = self.rest.get(..2).unwrap_or("").to_ascii_lowercase();
        if ["0f", "0d", "0x", "0b"].contains(&prefix.as_str()) {
            self.rest = &self.rest[2..];
            let text = self.take_while(|c| c.is_ascii_alphanumeric());
            let text = text.trim_end_matches('U');
            return match prefix.as_str() {
                "0f" if text.len() == 8 => Ok(Token::Single(digits(text, 16)? as u32)),
                "0d" if text.len() == 16 => Ok(Token::Double(digits(text, 16)?)),
                "0x" => Ok(Token::Integer(digits(text, 16)?)),
                "0b" => Ok(Token::Integer(digits(text, 2)?)),
                _ => Err(format!("'{prefix}{text}' has the wrong number of digits")),
            };
        }
        let whole = self.take_while(|c| c.is_ascii_digit());
        let fraction = self.rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let exponent = self.rest.starts_with(['e', 'E']);
        if fraction || exponent {
            let mut text = whole;
            if fraction {
                self.rest = &self.rest[1..];
                text = format!("{text}.{}", self.take_while(|c| c.is_ascii_digit()));
            }
            if self.rest.starts_with(['e', 'E']) {
                self.rest = &self.rest[1..];
                let sign = if self.rest.starts_with(['+', '-']) { self.rest[..1].to_string() } else { String::new() };
                self.rest = &self.rest[sign.len()..];
                text = format!("{text}e{sign}{}", self.take_while(|c| c.is_ascii_digit()));
            }
            let value: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
            return Ok(Token::Double(value.to_bits()));
        }
        self.take_while(|c| c == 'U');
        let octal = whole.len() > 1 && whole.starts_with('0');
        Ok(Token::Integer(digits(&whole, if octal { 8 } else { 10 })?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_modifiers() {
        let found: Vec<_> =
            tokens("ld.shared::cta.f32 %f1, [%rd1+-4]; // end\n0f3F800000 0x1F 017 0d3FF0000000000000 1.5e1 42U")
                .unwrap()
                .into_iter()
                .map(|lexeme| lexeme.token)
                .collect();
        let name = |text: &str| Token::Name(text.into());
        let dot = |text: &str| Token::Dot(text.into());
        let sign = Token::Sign;
        assert_eq!(
            found,
            [
                name("ld"),
                dot("shared::cta"),
                dot("f32"),
                name("%f1"),
                sign(','),
                sign('['),
                name("%rd1"),
                sign('+'),
                sign('-'),
                Token::Integer(4),
                sign(']'),
                sign(';'),
                Token::Single(0x3F80_0000),
                Token::Integer(31),
                Token::Integer(15),
                Token::Double(1f64.to_bits()),
                Token::Double(15f64.to_bits()),
                Token::Integer(42),
            ]
        );
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(tokens("a\n/* b\n").unwrap_err(), "line 2: comment without end");
        assert_eq!(tokens("a\n#").unwrap_err(), "line 2: unexpected character '#'");
        assert_eq!(tokens("0f3F80").unwrap_err(), "line 1: '0f3F80' has the wrong number of digits");
    }
}
