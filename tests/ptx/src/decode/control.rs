//! Bodies: scopes and labels, guards, branches and calls.

use std::collections::HashMap;

use super::builder::{Builder, Name};
use crate::program::{CallSite, Callee, Op, Passed};
use crate::syntax::{Instruction, Operand, Statement};
use crate::types::Type;

/// What is known of labels: the scope each is in, and what waits for them.
#[derive(Default)]
pub struct Labels {
    /// The scopes that are open, by number, and the parent of each that ever was.
    open: Vec<usize>,
    parents: Vec<Option<usize>>,
    places: HashMap<(usize, String), u32>,
    lists: HashMap<(usize, String), Vec<String>>,
    /// Operation, scope, label, line.
    jumps: Vec<(usize, usize, String, u32)>,
    tables: Vec<(usize, usize, String, u32)>,
}

impl Labels {
    fn enter(&mut self) {
        self.parents.push(self.open.last().copied());
        self.open.push(self.parents.len() - 1);
    }

    fn scope(&self) -> usize {
        *self.open.last().expect("the body itself is a scope")
    }

    fn find<'a, T>(&self, names: &'a HashMap<(usize, String), T>, scope: usize, name: &str) -> Option<&'a T> {
        let mut scope = Some(scope);
        while let Some(number) = scope {
            if let Some(found) = names.get(&(number, name.to_string())) {
                return Some(found);
            }
            scope = self.parents[number];
        }
        None
    }
}

impl Builder<'_, '_> {
    pub fn body(&mut self, statements: &[Statement]) -> Result<(), String> {
        let mut labels = Labels::default();
        labels.enter();
        for statement in statements {
            match statement {
                Statement::Open => {
                    self.scopes.push(HashMap::new());
                    labels.enter();
                }
                Statement::Close => {
                    self.scopes.pop();
                    labels.open.pop();
                }
                Statement::Label(name, line) => {
                    let place = self.function.ops.len() as u32;
                    if labels.places.insert((labels.scope(), name.clone()), place).is_some() {
                        return Err(format!("line {line}: label '{name}' is there twice"));
                    }
                }
                Statement::Targets(name, list) => {
                    labels.lists.insert((labels.scope(), name.clone()), list.clone());
                }
                Statement::Prototype => {}
                Statement::Variable(variable) => {
                    self.declare_variable(variable).map_err(|what| format!("line {}: {what}", variable.line))?;
                }
                Statement::Registers(kind, names, line) => {
                    self.registers(*kind, names).map_err(|what| format!("line {line}: {what}"))?;
                }
                Statement::Instruction(instruction) => {
                    self.line = instruction.line;
                    self.guarded(instruction, &mut labels)
                        .map_err(|what| format!("line {}: {}: {what}", instruction.line, instruction.full_name()))?;
                }
            }
        }
        // Falling off the end is a return.
        self.emit(if self.is_entry { Op::Exit } else { Op::Return });
        self.resolve(&labels)
    }

    fn registers(&mut self, kind: Type, names: &[(String, Option<u32>)]) -> Result<(), String> {
        for (name, count) in names {
            match count {
                Some(count) => self.declare(&format!("{name}<"), Name::Group(*count, kind))?,
                None => {
                    let slot = self.slot(crate::program::unset(kind));
                    self.declare(name, Name::Register(slot, kind))?;
                }
            }
        }
        Ok(())
    }

    fn guarded(&mut self, instruction: &Instruction, labels: &mut Labels) -> Result<(), String> {
        let guard = match &instruction.guard {
            Some((name, negated)) => Some((self.predicate(name)?, !negated)),
            None => None,
        };
        if instruction.name == "bra" {
            return self.branch(instruction, guard, labels);
        }
        let Some((p, when)) = guard else { return self.instruction(instruction, labels) };
        let at = self.function.ops.len();
        self.emit(Op::Guard { p, when, count: 0 });
        self.instruction(instruction, labels)?;
        let guarded = (self.function.ops.len() - at - 1) as u32;
        self.function.ops[at] = Op::Guard { p, when, count: guarded };
        Ok(())
    }

    fn branch(
        &mut self,
        instruction: &Instruction,
        guard: Option<(u32, bool)>,
        labels: &mut Labels,
    ) -> Result<(), String> {
        if instruction.modifiers.iter().any(|modifier| modifier != "uni") {
            return Err("only the modifier .uni is known here".to_string());
        }
        let [Operand::Name(label)] = Self::operands(instruction)? else { return Err("a label is missing".to_string()) };
        labels.jumps.push((self.function.ops.len(), labels.scope(), label.clone(), instruction.line));
        self.emit(match guard {
            Some((p, when)) => Op::JumpIf { p, when, to: 0 },
            None => Op::Jump { to: 0 },
        });
        Ok(())
    }

    fn resolve(&mut self, labels: &Labels) -> Result<(), String> {
        let place = |scope: usize, label: &str, line: u32| {
            let found = labels.find(&labels.places, scope, label).copied();
            found.ok_or_else(|| format!("line {line}: there is no label '{label}'"))
        };
        for (op, scope, label, line) in &labels.jumps {
            let target = place(*scope, label, *line)?;
            match &mut self.function.ops[*op] {
                Op::Jump { to } | Op::JumpIf { to, .. } => *to = target,
                _ => unreachable!("only jumps wait for labels"),
            }
        }
        for (op, scope, list, line) in &labels.tables {
            let names = labels.find(&labels.lists, *scope, list);
            let names = names.ok_or_else(|| format!("line {line}: there is no list of branch targets '{list}'"))?;
            let targets = names.iter().map(|label| place(*scope, label, *line)).collect::<Result<Vec<_>, _>>()?;
            let index = self.function.tables.len() as u32;
            self.function.tables.push(targets);
            match &mut self.function.ops[*op] {
                Op::JumpTable { table, .. } => *table = index,
                _ => unreachable!("only table jumps wait for lists"),
            }
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &Instruction, labels: &mut Labels) -> Result<(), String> {
        let plain = |allowed: &[&str]| match instruction.modifiers.iter().find(|m| !allowed.contains(&m.as_str())) {
            Some(modifier) => Err(format!("modifier .{modifier} is not known here")),
            None => Ok(()),
        };
        match instruction.name.as_str() {
            "brx" => {
                plain(&["idx", "uni"])?;
                let [index, Operand::Name(list)] = Self::operands(instruction)? else {
                    return Err("a list of labels is missing".to_string());
                };
                let a = self.source(index, Type::U32)?;
                labels.tables.push((self.function.ops.len(), labels.scope(), list.clone(), instruction.line));
                self.emit(Op::JumpTable { a, table: 0 });
                Ok(())
            }
            "call" => {
                plain(&["uni"])?;
                self.call(instruction)
            }
            "ret" => {
                plain(&["uni"])?;
                self.emit(if self.is_entry { Op::Exit } else { Op::Return });
                Ok(())
            }
            "exit" => {
                plain(&[])?;
                self.emit(Op::Exit);
                Ok(())
            }
            "trap" => {
                plain(&[])?;
                self.emit(Op::Trap);
                Ok(())
            }
            "nanosleep" => {
                plain(&["u32"])?;
                self.emit(Op::Nothing);
                Ok(())
            }
            _ => self.computing(instruction),
        }
    }

    /// Everything that goes on with the next instruction.
    fn computing(&mut self, instruction: &Instruction) -> Result<(), String> {
        type Decoder = fn(&mut Builder<'_, '_>, &Instruction) -> Result<bool, String>;
        const DECODERS: [Decoder; 5] = [
            |b, i| b.arithmetic(i),
            |b, i| b.floating(i),
            |b, i| b.converting(i),
            |b, i| b.memory(i),
            |b, i| b.together(i),
        ];
        for decoder in DECODERS {
            if decoder(self, instruction)? {
                return Ok(());
            }
        }
        Err("unknown instruction".to_string())
    }

    fn call(&mut self, instruction: &Instruction) -> Result<(), String> {
        let mut operands = instruction.operands.as_slice();
        let mut returned: &[Operand] = &[];
        if let [Operand::List(list), rest @ ..] = operands {
            (returned, operands) = (list, rest);
        }
        let [Operand::Name(name), rest @ ..] = operands else { return Err("the function is missing".to_string()) };
        let given: &[Operand] = match rest {
            [Operand::List(list), ..] => list,
            _ => &[],
        };
        let callee = match self.lookup(name) {
            Some(Name::Register(slot, kind)) if kind.width() == 64 => {
                self.linker.index_all();
                Callee::Address(slot)
            }
            Some(_) => return Err(format!("'{name}' is no function")),
            None => {
                let number =
                    self.linker.function_number(name).ok_or_else(|| format!("there is no function '{name}'"))?;
                let function = self.linker.function(number);
                if function.is_entry {
                    return Err(format!("'{name}' is a kernel"));
                }
                let counts = (function.returns.len(), function.parameters.len());
                if counts != (returned.len(), given.len()) {
                    return Err(format!(
                        "'{name}' takes {} and gives {}, called with {} and {}",
                        counts.1,
                        counts.0,
                        given.len(),
                        returned.len()
                    ));
                }
                if function.body.is_some() {
                    Callee::Function(self.linker.index(number))
                } else {
                    Callee::Extern(name.clone())
                }
            }
        };
        let mut arguments = Vec::new();
        for operand in given {
            arguments.push(self.passed(operand)?);
        }
        let mut returns = Vec::new();
        for operand in returned {
            returns.push(self.passed(operand)?);
        }
        let site = self.function.calls.len() as u32;
        self.function.calls.push(CallSite { callee, returns, arguments });
        self.emit(Op::Call { site });
        Ok(())
    }

    fn passed(&mut self, operand: &Operand) -> Result<Passed, String> {
        match operand {
            Operand::Name(name) => match self.lookup(name) {
                Some(Name::Register(slot, kind)) => Ok(Passed::Slot { slot, size: kind.width().div_ceil(8) }),
                Some(Name::Frame { offset, size }) => Ok(Passed::Frame { offset, size }),
                _ => Err(format!("'{name}' can be no argument")),
            },
            Operand::Integer(value) => Ok(Passed::Slot { slot: self.constant(*value), size: 0 }),
            Operand::Single(bits) => Ok(Passed::Slot { slot: self.constant((*bits).into()), size: 4 }),
            Operand::Double(bits) => Ok(Passed::Slot { slot: self.constant(*bits), size: 8 }),
            _ => Err("an argument of this form is not known".to_string()),
        }
    }
}
