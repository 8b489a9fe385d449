//! The statements of a body.

use super::lexer::Token;
use super::parser::Cursor;
use super::{Instruction, Operand, Statement};

impl Cursor {
    /// All statements up to the brace that closes the body.
    pub fn body(&mut self) -> Result<Vec<Statement>, String> {
        let mut statements = Vec::new();
        let mut depth = 0;
        loop {
            let line = self.line();
            if self.takes('}') {
                if depth == 0 {
                    return Ok(statements);
                }
                depth -= 1;
                statements.push(Statement::Close);
            } else if self.takes('{') {
                depth += 1;
                statements.push(Statement::Open);
            } else if !self.takes(';') && !self.debug_information()? {
                self.statement(&mut statements).map_err(|what| format!("line {line}: {what}"))?;
            }
        }
    }

    fn statement(&mut self, statements: &mut Vec<Statement>) -> Result<(), String> {
        let line = self.line();
        match self.peek() {
            Some(Token::Dot(dot)) if dot == "reg" => {
                self.next()?;
                let kind = self.kind()?;
                let mut names = Vec::new();
                loop {
                    let name = self.name()?;
                    let count = if self.takes('<') {
                        let count = self.integer()?;
                        self.expect('>')?;
                        Some(u32::try_from(count).map_err(|_| format!("{count} registers"))?)
                    } else {
                        None
                    };
                    names.push((name, count));
                    if !self.takes(',') {
                        break;
                    }
                }
                self.expect(';')?;
                statements.push(Statement::Registers(kind, names, line));
            }
            Some(Token::Dot(dot)) if ["local", "shared", "param", "global", "const"].contains(&dot.as_str()) => {
                let variable = self.variable()?;
                self.expect(';')?;
                statements.push(Statement::Variable(variable));
            }
            Some(Token::Name(_)) if self.peek_second() == Some(&Token::Sign(':')) => {
                let name = self.name()?;
                self.expect(':')?;
                if self.takes_dot("callprototype") {
                    while !self.takes(';') {
                        self.next()?;
                    }
                    statements.push(Statement::Prototype);
                } else if self.takes_dot("branchtargets") {
                    let mut labels = vec![self.name()?];
                    while self.takes(',') {
                        labels.push(self.name()?);
                    }
                    self.expect(';')?;
                    statements.push(Statement::Targets(name, labels));
                } else if self.takes_dot("calltargets") {
                    while !self.takes(';') {
                        self.next()?;
                    }
                    statements.push(Statement::Prototype);
                } else {
                    statements.push(Statement::Label(name, line));
                }
            }
            Some(Token::Name(_) | Token::Sign('@')) => {
                let instruction = self.instruction()?;
                statements.push(Statement::Instruction(instruction));
            }
            _ => return Err(format!("expected a statement, found {}", self.seen())),
        }
        Ok(())
    }

    fn instruction(&mut self) -> Result<Instruction, String> {
        let line = self.line();
        let guard = if self.takes('@') {
            let negated = self.takes('!');
            Some((self.name()?, negated))
        } else {
            None
        };
        let name = self.name()?;
        let mut modifiers = Vec::new();
        while let Some(Token::Dot(modifier)) = self.peek() {
            modifiers.push(modifier.clone());
            self.next()?;
        }
        let mut operands = Vec::new();
        while !self.takes(';') {
            let operand = self.operand().map_err(|what| format!("{name}: {what}"))?;
            operands.push(operand);
            if !self.takes(',') && self.peek() != Some(&Token::Sign(';')) {
                return Err(format!("{name}: expected ',' or ';', found {}", self.seen()));
            }
        }
        Ok(Instruction { line, guard, name, modifiers, operands })
    }

    fn operand(&mut self) -> Result<Operand, String> {
        if self.takes('{') {
            let mut elements = Vec::new();
            while !self.takes('}') {
                elements.push(self.operand()?);
                self.takes(',');
            }
            return Ok(Operand::Vector(elements));
        }
        if self.takes('(') {
            let mut elements = Vec::new();
            while !self.takes(')') {
                elements.push(self.operand()?);
                self.takes(',');
            }
            return Ok(Operand::List(elements));
        }
        if self.takes('[') {
            let inner = self.operand()?;
            self.expect(']')?;
            return Ok(Operand::Address(Box::new(inner)));
        }
        if self.takes('!') {
            return Ok(Operand::Not(self.name()?));
        }
        let is_negative = self.peek() == Some(&Token::Sign('-'));
        let second = self.peek_second().cloned();
        match (self.peek(), second) {
            (Some(Token::Name(_)), _) => self.named(),
            (Some(Token::Single(bits)), _) => {
                let bits = *bits;
                self.next()?;
                Ok(Operand::Single(bits))
            }
            (Some(Token::Double(bits)), _) => {
                let bits = *bits;
                self.next()?;
                Ok(Operand::Double(bits))
            }
            (_, Some(Token::Double(bits))) if is_negative => {
                self.next()?;
                self.next()?;
                Ok(Operand::Double((-f64::from_bits(bits)).to_bits()))
            }
            _ => Ok(Operand::Integer(self.integer()? as u64)),
        }
    }

    fn named(&mut self) -> Result<Operand, String> {
        let mut name = self.name()?;
        if name == "generic" && self.takes('(') {
            name = self.name()?;
            self.expect(')')?;
        }
        if let Some(Token::Dot(component)) = self.peek() {
            name = format!("{name}.{component}");
            self.next()?;
        }
        if self.takes('|') {
            return Ok(Operand::Pair(name, self.name()?));
        }
        let base = Operand::Name(name);
        match self.peek() {
            Some(Token::Sign('+')) => {
                self.next()?;
                Ok(Operand::Offset(Box::new(base), self.integer()?))
            }
            Some(Token::Sign('-')) => Ok(Operand::Offset(Box::new(base), self.integer()?)),
            _ => Ok(base),
        }
    }
}
