//! From functions of the tree to the program of each entry.

use std::collections::HashMap;
use std::sync::Arc;

use super::builder::{Builder, Name};
use crate::program::{EntryParameter, Function, Passed, Program, Symbol, unset};
use crate::syntax::{self, Parameter, Tree, Variable};
use crate::types::Space;

/// What the functions of one entry share while they are decoded.
pub struct Linker<'m> {
    tree: &'m Tree,
    numbers: &'m HashMap<&'m str, usize>,
    variables: &'m HashMap<&'m str, &'m Variable>,
    shared_bytes: u32,
    shared_align: u32,
    shared: HashMap<String, u32>,
    /// The functions to decode, by their number in the tree, in the order of the program.
    order: Vec<usize>,
    indices: Vec<Option<u32>>,
}

impl<'m> Linker<'m> {
    /// The offset of a static variable in shared memory; one of the module is the same for all functions.
    pub fn shared(&mut self, variable: &Variable) -> Result<u32, String> {
        if let Some(offset) = self.shared.get(&variable.name) {
            return Ok(*offset);
        }
        let offset = u64::from(self.shared_bytes).next_multiple_of(variable.align);
        let end = offset + variable.size;
        if end > 227 << 10 {
            return Err(format!("'{}': more than 227 KiB of shared memory", variable.name));
        }
        self.shared_bytes = end as u32;
        self.shared_align = self.shared_align.max(variable.align as u32);
        self.shared.insert(variable.name.clone(), offset as u32);
        Ok(offset as u32)
    }

    pub fn dynamic_shared(&mut self, align: u64) {
        self.shared_align = self.shared_align.max(align as u32);
    }

    pub fn variable(&self, name: &str) -> Option<&'m Variable> {
        self.variables.get(name).copied()
    }

    /// The number of a function in the tree; the definition's, if there is one beside declarations.
    pub fn function_number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub fn function(&self, number: usize) -> &'m syntax::Function {
        &self.tree.functions[number]
    }

    /// The index of a function in the program, which it joins if it is not in there.
    pub fn index(&mut self, number: usize) -> u32 {
        if let Some(index) = self.indices[number] {
            return index;
        }
        let index = self.order.len() as u32;
        self.order.push(number);
        self.indices[number] = Some(index);
        index
    }

    /// A call by an address can reach every function.
    pub fn index_all(&mut self) {
        for number in 0..self.tree.functions.len() {
            let function = &self.tree.functions[number];
            if !function.is_entry && function.body.is_some() && self.numbers[function.name.as_str()] == number {
                self.index(number);
            }
        }
    }
}

/// The programs of all entries. Functions that no entry reaches are decoded too, for their errors.
pub fn link(tree: &Tree, source: &Arc<[String]>) -> Result<Vec<Program>, String> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for (number, function) in tree.functions.iter().enumerate() {
        if let Some(other) = numbers.get(function.name.as_str()).copied() {
            if function.body.is_none() {
                continue;
            }
            if tree.functions[other].body.is_some() {
                return Err(format!("line {}: '{}' is defined twice", function.line, function.name));
            }
        }
        numbers.insert(&function.name, number);
    }
    let mut variables = HashMap::new();
    for variable in &tree.variables {
        if variables
            .insert(variable.name.as_str(), variable)
            .is_some_and(|other| !other.is_extern && !variable.is_extern)
        {
            return Err(format!("line {}: '{}' is defined twice", variable.line, variable.name));
        }
    }
    let mut programs = Vec::new();
    let mut reached = vec![false; tree.functions.len()];
    let entries_first = |is_entry| {
        tree.functions
            .iter()
            .enumerate()
            .filter(move |(_, f)| f.is_entry == is_entry && f.body.is_some())
            .map(|(i, _)| i)
    };
    for number in entries_first(true).chain(entries_first(false)) {
        let is_entry = tree.functions[number].is_entry;
        if !is_entry && reached[number] {
            continue;
        }
        let linker = Linker {
            tree,
            numbers: &numbers,
            variables: &variables,
            shared_bytes: 0,
            shared_align: 16,
            shared: HashMap::new(),
            order: vec![number],
            indices: (0..tree.functions.len()).map(|other| (other == number).then_some(0)).collect(),
        };
        let program = program(linker, &mut reached, source)?;
        if is_entry {
            programs.push(program);
        }
    }
    Ok(programs)
}

fn program(mut linker: Linker<'_>, reached: &mut [bool], source: &Arc<[String]>) -> Result<Program, String> {
    let mut program = Program { source: source.clone(), ..Program::default() };
    let mut next = 0;
    while let Some(number) = linker.order.get(next).copied() {
        reached[number] = true;
        let function = linker.function(number);
        let decoded = decode(&mut linker, function, &mut program)?;
        program.functions.push(decoded);
        next += 1;
    }
    let entry = linker.function(linker.order[0]);
    program.name.clone_from(&entry.name);
    program.max_threads = entry.max_threads;
    program.exact_threads = entry.exact_threads;
    program.indices = linker.indices;
    program.static_shared = linker.shared_bytes;
    program.shared_align = linker.shared_align;
    let dynamic = program.static_shared.next_multiple_of(program.shared_align);
    for function in &mut program.functions {
        for (slot, symbol, offset) in &function.symbols {
            if *symbol == Symbol::DynamicShared {
                function.template[*slot as usize] = u64::from(dynamic).wrapping_add_signed(*offset);
            }
        }
    }
    Ok(program)
}

fn decode(linker: &mut Linker<'_>, tree: &syntax::Function, program: &mut Program) -> Result<Function, String> {
    let at_head = |what: String| format!("line {}: in '{}': {what}", tree.line, tree.name);
    let mut builder = Builder::new(linker, &tree.name, tree.is_entry);
    if tree.is_entry {
        entry_parameters(&mut builder, tree, program).map_err(at_head)?;
    } else {
        builder.function.returns = passed(&mut builder, &tree.returns).map_err(at_head)?;
        builder.function.parameters = passed(&mut builder, &tree.parameters).map_err(at_head)?;
    }
    let body = tree.body.as_deref().ok_or_else(|| at_head("there is no body".to_string()))?;
    builder.body(body).map_err(|what| format!("{what} (in '{}')", tree.name))?;
    Ok(builder.finish())
}

fn entry_parameters(builder: &mut Builder, tree: &syntax::Function, program: &mut Program) -> Result<(), String> {
    let mut end = 0u64;
    for parameter in &tree.parameters {
        let Parameter::Memory(variable) = parameter else {
            return Err("a kernel has no parameters in registers".to_string());
        };
        if variable.space != Space::Param {
            return Err(format!("parameter '{}' is not in the space .param", variable.name));
        }
        let offset = end.next_multiple_of(variable.align);
        end = offset + variable.size;
        if end > 32764 {
            return Err("more than 32764 bytes of parameters".to_string());
        }
        builder.declare(&variable.name, Name::Parameter { offset: offset as u32 })?;
        program.parameters.push(EntryParameter {
            name: variable.name.clone(),
            offset: offset as u32,
            size: variable.size as u32,
            align: variable.align as u32,
        });
    }
    program.parameter_bytes = end as u32;
    Ok(())
}

/// What a function takes or gives, with its names declared.
fn passed(builder: &mut Builder, parameters: &[Parameter]) -> Result<Vec<Passed>, String> {
    let mut found = Vec::new();
    for parameter in parameters {
        match parameter {
            Parameter::Register(name, kind) => {
                let slot = builder.slot(unset(*kind));
                if name != "_" {
                    builder.declare(name, Name::Register(slot, *kind))?;
                }
                found.push(Passed::Slot { slot, size: kind.width().div_ceil(8) });
            }
            Parameter::Memory(variable) => {
                let (offset, size) = (builder.frame(variable.size, variable.align)?, variable.size as u32);
                if variable.name != "_" {
                    builder.declare(&variable.name, Name::Frame { offset, size })?;
                }
                found.push(Passed::Frame { offset, size });
            }
        }
    }
    Ok(found)
}
