//! What stands outside of bodies: the module's head, its variables, the heads of its functions.

use super::lexer::{Lexeme, Token, tokens};
use super::{Function, Initial, Parameter, Tree, Variable};
use crate::types::{Kind, Space, Type};

/// The tokens of a text and how far they have been read.
pub(super) struct Cursor {
    tokens: Vec<Lexeme>,
    at: usize,
}

pub fn parse(source: &str) -> Result<Tree, String> {
    let mut cursor = Cursor { tokens: tokens(source)?, at: 0 };
    let mut tree = Tree::default();
    while cursor.at < cursor.tokens.len() {
        let line = cursor.line();
        cursor.item(&mut tree).map_err(|what| format!("line {line}: {what}"))?;
    }
    if tree.version.0 == 0 {
        return Err("line 1: no .version: not PTX".to_string());
    }
    Ok(tree)
}

impl Cursor {
    pub fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |lexeme| lexeme.line)
    }

    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|lexeme| &lexeme.token)
    }

    pub fn peek_second(&self) -> Option<&Token> {
        self.tokens.get(self.at + 1).map(|lexeme| &lexeme.token)
    }

    pub fn next(&mut self) -> Result<Token, String> {
        let token = self.peek().cloned().ok_or("the text ends in the middle")?;
        self.at += 1;
        Ok(token)
    }

    pub fn takes(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    pub fn takes_dot(&mut self, name: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Dot(dot)) if dot == name);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, sign: char) -> Result<(), String> {
        if self.takes(sign) {
            return Ok(());
        }
        Err(format!("expected '{sign}', found {}", self.seen()))
    }

    pub fn seen(&self) -> String {
        match self.peek() {
            None => "the end".into(),
            Some(Token::Name(name)) => format!("'{name}'"),
            Some(Token::Dot(name)) => format!("'.{name}'"),
            Some(Token::Sign(sign)) => format!("'{sign}'"),
            Some(other) => format!("{other:?}"),
        }
    }

    pub fn name(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(format!("expected a name, found {}", self.seen())),
        }
    }

    /// An integer constant: numbers with the signs + - * and unary - and ~.
    pub fn integer(&mut self) -> Result<i64, String> {
        let mut sum = self.product()?;
        loop {
            if self.takes('+') {
                sum = sum.wrapping_add(self.product()?);
            } else if self.takes('-') {
                sum = sum.wrapping_sub(self.product()?);
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut product = self.factor()?;
        while self.takes('*') {
            product = product.wrapping_mul(self.factor()?);
        }
        Ok(product)
    }

    fn factor(&mut self) -> Result<i64, String> {
        if self.takes('-') {
            return Ok(self.factor()?.wrapping_neg());
        }
        if self.takes('~') {
            return Ok(!self.factor()?);
        }
        if self.takes('(') {
            let value = self.integer()?;
            self.expect(')')?;
            return Ok(value);
        }
        match self.peek() {
            Some(Token::Integer(value)) => {
                let value = *value as i64;
                self.at += 1;
                Ok(value)
            }
            _ => Err(format!("expected an integer, found {}", self.seen())),
        }
    }

    /// One directive, variable or function of the module.
    fn item(&mut self, tree: &mut Tree) -> Result<(), String> {
        match self.peek() {
            Some(Token::Dot(dot)) => match dot.clone().as_str() {
                "version" => {
                    self.at += 1;
                    let Token::Double(bits) = self.next()? else { return Err("expected a version such as 7.0".into()) };
                    let version = f64::from_bits(bits);
                    tree.version = (version as u32, (version.fract() * 10.0).round() as u32);
                }
                "target" => {
                    self.at += 1;
                    tree.target = self.name()?;
                    while self.takes(',') {
                        self.name()?;
                    }
                }
                "address_size" => {
                    self.at += 1;
                    if self.integer()? != 64 {
                        return Err("only 64-bit addresses are supported".into());
                    }
                }
                _ => {
                    if !self.debug_information()? {
                        self.declaration(tree)?;
                    }
                }
            },
            _ => return Err(format!("expected a directive, found {}", self.seen())),
        }
        Ok(())
    }

    /// Passes over a directive for debuggers or for the compiler behind; false if there is none.
    pub fn debug_information(&mut self) -> Result<bool, String> {
        let line = self.line();
        match self.peek() {
            Some(Token::Dot(dot)) if ["loc", "file"].contains(&dot.as_str()) => {
                while self.peek().is_some() && self.line() == line {
                    self.at += 1;
                }
            }
            Some(Token::Dot(dot)) if dot == "section" => {
                while !self.takes('}') {
                    self.next()?;
                }
            }
            Some(Token::Dot(dot)) if dot == "pragma" => {
                while !self.takes(';') {
                    self.next()?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn declaration(&mut self, tree: &mut Tree) -> Result<(), String> {
        let mut is_extern = false;
        loop {
            if self.takes_dot("extern") {
                is_extern = true;
            } else if !["visible", "weak", "common"].iter().any(|linkage| self.takes_dot(linkage)) {
                break;
            }
        }
        if self.takes_dot("entry") {
            let function = self.function(true)?;
            tree.functions.push(function);
        } else if self.takes_dot("func") {
            let function = self.function(false)?;
            tree.functions.push(function);
        } else {
            let mut variable = self.variable()?;
            variable.is_extern = is_extern;
            let mut others = Vec::new();
            while self.takes(',') {
                others.push(self.declarator(&variable)?);
            }
            self.expect(';')?;
            tree.variables.push(variable);
            tree.variables.append(&mut others);
        }
        Ok(())
    }

    fn function(&mut self, is_entry: bool) -> Result<Function, String> {
        let line = self.line();
        let returns = if self.peek() == Some(&Token::Sign('(')) { self.parameters()? } else { Vec::new() };
        let name = self.name()?;
        let parameters = if self.peek() == Some(&Token::Sign('(')) { self.parameters()? } else { Vec::new() };
        let mut function =
            Function { name, line, is_entry, returns, parameters, body: None, max_threads: None, exact_threads: false };
        loop {
            let exact = self.takes_dot("reqntid");
            if exact || self.takes_dot("maxntid") {
                let mut threads = [1; 3];
                threads[0] = self.integer()? as u32;
                for extent in &mut threads[1..] {
                    if self.takes(',') {
                        *extent = self.integer()? as u32;
                    }
                }
                function.max_threads = Some(threads);
                function.exact_threads = exact;
            } else if ["minnctapersm", "maxnreg", "maxnctapersm"].iter().any(|limit| self.takes_dot(limit)) {
                self.integer()?;
            } else if !self.takes_dot("noreturn") && !self.debug_information()? {
                break;
            }
        }
        if self.takes(';') {
            return Ok(function);
        }
        self.expect('{')?;
        let body = self.body().map_err(|what| format!("in '{}': {what}", function.name))?;
        function.body = Some(body);
        Ok(function)
    }

    fn parameters(&mut self) -> Result<Vec<Parameter>, String> {
        self.expect('(')?;
        let mut found = Vec::new();
        while !self.takes(')') {
            if self.takes_dot("reg") {
                let kind = self.kind()?;
                found.push(Parameter::Register(self.name()?, kind));
            } else {
                found.push(Parameter::Memory(self.variable()?));
            }
            if !self.takes(',') && self.peek() != Some(&Token::Sign(')')) {
                return Err(format!("expected ',' or ')', found {}", self.seen()));
            }
        }
        Ok(found)
    }

    pub fn kind(&mut self) -> Result<Type, String> {
        match self.next()? {
            Token::Dot(name) => Type::parse(&name).ok_or_else(|| format!("unknown type .{name}")),
            other => Err(format!("expected a type, found {other:?}")),
        }
    }

    /// A variable from its space on, without what ends it.
    pub fn variable(&mut self) -> Result<Variable, String> {
        let space = match self.peek() {
            Some(Token::Dot(name)) => Space::parse(name),
            _ => None,
        };
        let space = space.ok_or_else(|| format!("expected a state space, found {}", self.seen()))?;
        self.at += 1;
        let mut align = 0;
        let mut vector = 1;
        let kind = loop {
            if self.takes_dot("align") {
                align = self.integer()? as u64;
            } else if self.takes_dot("v2") {
                vector = 2;
            } else if self.takes_dot("v4") {
                vector = 4;
            } else {
                break self.kind()?;
            }
        };
        while self.takes_dot("ptr") {
            for space in ["global", "const", "shared", "local"] {
                self.takes_dot(space);
            }
            if self.takes_dot("align") {
                self.integer()?;
            }
        }
        let element = u64::from(kind.bytes()) * vector;
        if element == 0 {
            return Err("a variable cannot be a predicate".into());
        }
        let like = Variable {
            space,
            name: String::new(),
            line: self.line(),
            size: element,
            align: if align == 0 { element } else { align },
            kind,
            initial: Vec::new(),
            is_extern: false,
        };
        self.declarator(&like)
    }

    /// The name, lengths and values of a variable whose element is as `like`.
    fn declarator(&mut self, like: &Variable) -> Result<Variable, String> {
        let mut variable = Variable { name: self.name()?, line: self.line(), initial: Vec::new(), ..like.clone() };
        if !variable.align.is_power_of_two() {
            return Err(format!("'{}': alignment {} is no power of two", variable.name, variable.align));
        }
        while self.takes('[') {
            let length = if self.peek() == Some(&Token::Sign(']')) { 0 } else { self.integer()? as u64 };
            self.expect(']')?;
            variable.size = variable.size.checked_mul(length).ok_or("the variable is too large")?;
        }
        // So that sums of sizes and offsets never overflow.
        if variable.align > 1 << 16 || variable.size > 1 << 40 {
            return Err(format!("'{}': {} bytes aligned to {}", variable.name, variable.size, variable.align));
        }
        if self.takes('=') {
            self.initial(&mut variable)?;
            let room = variable.size / u64::from(variable.kind.bytes());
            if variable.size == 0 {
                variable.size = variable.initial.len() as u64 * u64::from(variable.kind.bytes());
            } else if variable.initial.len() as u64 > room {
                return Err(format!("'{}': {} values for {room}", variable.name, variable.initial.len()));
            }
        }
        Ok(variable)
    }

    fn initial(&mut self, variable: &mut Variable) -> Result<(), String> {
        if self.takes('{') {
            while !self.takes('}') {
                self.initial(variable)?;
                self.takes(',');
            }
            return Ok(());
        }
        let value = match self.peek() {
            Some(Token::Single(bits)) => {
                let bits = *bits;
                self.at += 1;
                Initial::Bits(if variable.kind.bits == 64 {
                    f64::from(f32::from_bits(bits)).to_bits()
                } else {
                    bits.into()
                })
            }
            Some(Token::Double(bits)) => {
                let bits = *bits;
                self.at += 1;
                let narrow = variable.kind.kind == Kind::Float && variable.kind.bits == 32;
                Initial::Bits(if narrow { (f64::from_bits(bits) as f32).to_bits().into() } else { bits })
            }
            Some(Token::Name(name)) => {
                let mut name = name.clone();
                self.at += 1;
                if name == "generic" && self.takes('(') {
                    name = self.name()?;
                    self.expect(')')?;
                }
                let offset = if [Some(&Token::Sign('+')), Some(&Token::Sign('-'))].contains(&self.peek()) {
                    let negative = !self.takes('+') && self.takes('-');
                    let offset = self.product()?;
                    if negative { -offset } else { offset }
                } else {
                    0
                };
                Initial::Address(name, offset)
            }
            _ => Initial::Bits(self.integer()? as u64),
        };
        if matches!(value, Initial::Address(..)) && variable.kind.bits != 64 {
            return Err(format!("'{}': an address needs elements of 64 bits", variable.name));
        }
        variable.initial.push(value);
        Ok(())
    }
}
