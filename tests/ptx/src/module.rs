//! Modules, their variables and their entries.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::decode;
use crate::program::{EntryParameter, Program, Symbol, function_address};
use crate::run::block::{Block, Schedule};
use crate::run::call::Calls;
use crate::run::fault::{Fault, FaultKind};
use crate::run::memory::{Bytes, Memory};
use crate::run::thread::World;
use crate::syntax::{self, Initial, Variable};
use crate::types::Space;

/// Blocks of a grid or threads of a block along x, y and z.
pub type Dim = [u32; 3];

/// The most shared memory that a block has.
pub const SHARED_LIMIT: u32 = 227 << 10;

/// The most operations of a launch if the entry is not told otherwise.
const STEP_LIMIT: u64 = 20_000_000_000;

/// A text, read and decoded. Variables in global memory are placed by the caller.
#[derive(Clone, Debug)]
pub struct Module {
    version: (u32, u32),
    target: String,
    variables: Vec<Variable>,
    /// The functions' numbers, for variables that hold their addresses.
    functions: HashMap<String, usize>,
    addresses: HashMap<String, u64>,
    programs: Vec<Arc<Program>>,
}

/// A variable of a module in global or constant memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Global {
    pub name: String,
    pub size: u64,
    pub align: u64,
    /// In constant memory.
    pub constant: bool,
    /// Declared here, defined elsewhere.
    pub is_extern: bool,
}

impl Module {
    /// Reads a module; what is not known is refused with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tree = syntax::parse(text)?;
        let source: Arc<[String]> = text.lines().map(str::to_string).collect();
        let programs = decode::link(&tree, &source)?;
        let mut functions = HashMap::new();
        for (number, function) in tree.functions.iter().enumerate() {
            if function.body.is_some() || !functions.contains_key(&function.name) {
                functions.insert(function.name.clone(), number);
            }
        }
        let in_memory = |variable: &Variable| matches!(variable.space, Space::Global | Space::Const);
        Ok(Self {
            version: tree.version,
            target: tree.target,
            variables: tree.variables.into_iter().filter(in_memory).collect(),
            functions,
            addresses: HashMap::new(),
            programs: programs.into_iter().map(Arc::new).collect(),
        })
    }

    /// Major and minor of .version.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// As in .target: sm_75.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The names of all entries, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|program| program.name.as_str())
    }

    pub fn entry(&self, name: &str) -> Option<Entry> {
        let program = self.programs.iter().find(|program| program.name == name)?;
        Some(Entry { program: program.clone(), limit: STEP_LIMIT, schedule: Schedule::default() })
    }

    pub fn globals(&self) -> Vec<Global> {
        let global = |variable: &Variable| Global {
            name: variable.name.clone(),
            size: variable.size,
            align: variable.align,
            constant: variable.space == Space::Const,
            is_extern: variable.is_extern,
        };
        self.variables.iter().map(global).collect()
    }

    /// Says where a variable is. Entries taken before do not learn of it.
    pub fn place(&mut self, name: &str, address: u64) -> Result<(), String> {
        if !self.variables.iter().any(|variable| variable.name == name) {
            return Err(format!("the module has no variable '{name}'"));
        }
        self.addresses.insert(name.to_string(), address);
        for program in &mut self.programs {
            for function in &mut Arc::make_mut(program).functions {
                for (slot, symbol, offset) in &function.symbols {
                    if matches!(symbol, Symbol::Global(other) if other == name) {
                        function.template[*slot as usize] = address.wrapping_add_signed(*offset);
                    }
                }
            }
        }
        Ok(())
    }

    /// The bytes that a variable begins with. Variables whose addresses are among them must have been placed.
    pub fn image(&self, name: &str) -> Result<Vec<u8>, String> {
        let variable = self.variables.iter().find(|variable| variable.name == name);
        let variable = variable.ok_or_else(|| format!("the module has no variable '{name}'"))?;
        let mut bytes = Vec::with_capacity(variable.size as usize);
        for value in &variable.initial {
            let word = match value {
                Initial::Bits(bits) => *bits,
                Initial::Address(symbol, offset) => {
                    let place = match self.functions.get(symbol) {
                        Some(number) => function_address(*number),
                        None => *self.addresses.get(symbol).ok_or_else(|| {
                            format!("'{name}' holds the address of '{symbol}', which has not been placed")
                        })?,
                    };
                    place.wrapping_add_signed(*offset)
                }
            };
            bytes.extend_from_slice(&word.to_le_bytes()[..variable.kind.bytes() as usize]);
        }
        bytes.resize(variable.size as usize, 0);
        Ok(bytes)
    }
}

/// A kernel that can be launched. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Entry {
    program: Arc<Program>,
    limit: u64,
    schedule: Schedule,
}

/// What a launch did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Operations of all threads: about one for each instruction.
    pub steps: u64,
}

impl Entry {
    pub fn name(&self) -> &str {
        &self.program.name
    }

    pub fn parameters(&self) -> &[EntryParameter] {
        &self.program.parameters
    }

    /// Bytes of all parameters.
    pub fn parameter_bytes(&self) -> u32 {
        self.program.parameter_bytes
    }

    /// Bytes of shared memory beside those that a launch asks for.
    pub fn static_shared(&self) -> u32 {
        self.program.static_shared
    }

    /// Bytes of local memory of the entry itself, without those of its calls.
    pub fn local_bytes(&self) -> u32 {
        self.program.functions[0].frame_bytes
    }

    /// Slots of a thread: its registers and constants.
    pub fn slots(&self) -> u32 {
        self.program.functions[0].template.len() as u32
    }

    /// The most threads of a block.
    pub fn max_threads(&self) -> u32 {
        self.program.max_threads.map_or(1024, |threads| threads.iter().product::<u32>().min(1024))
    }

    /// A launch of more than `steps` operations is a fault.
    pub fn with_limit(mut self, steps: u64) -> Self {
        self.limit = steps;
        self
    }

    /// In which order the threads of a block get their turns.
    pub fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Runs all blocks, one after the other.
    pub fn run(
        &self,
        grid: Dim,
        block: Dim,
        dynamic_shared: u32,
        parameters: &[u8],
        memory: &mut dyn Memory,
        calls: &mut dyn Calls,
    ) -> Result<Done, Fault> {
        let blocks = grid.iter().map(|extent| u64::from(*extent)).product();
        self.run_blocks(grid, block, dynamic_shared, parameters, memory, calls, 0..blocks)
    }

    /// Runs only the blocks of some numbers, x counting first: so that threads of the caller can share a launch.
    #[allow(clippy::too_many_arguments)]
    pub fn run_blocks(
        &self,
        grid: Dim,
        block: Dim,
        dynamic_shared: u32,
        parameters: &[u8],
        memory: &mut dyn Memory,
        calls: &mut dyn Calls,
        blocks: Range<u64>,
    ) -> Result<Done, Fault> {
        let total_shared = self.check(grid, block, dynamic_shared, parameters)?;
        let mut world = World {
            program: &self.program,
            blocks: grid,
            threads: block,
            block: [0; 3],
            dynamic_shared,
            total_shared,
            shared: Bytes::default(),
            parameters: Bytes::of(parameters),
            memory,
            calls,
            steps: 0,
            limit: self.limit,
        };
        let mut threads = Block::new(block.iter().product(), self.schedule);
        for number in blocks {
            let (x, y) = (u64::from(grid[0]), u64::from(grid[1]));
            world.block = [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32];
            world.shared.clear();
            world.shared.resize(total_shared.into());
            threads.run(&mut world)?;
        }
        Ok(Done { steps: world.steps })
    }

    /// The bytes of shared memory of a launch, if it is right.
    fn check(&self, grid: Dim, block: Dim, dynamic_shared: u32, parameters: &[u8]) -> Result<u32, Fault> {
        let program = &self.program;
        let wrong =
            |text: String| Err(Fault { kind: FaultKind::Launch, text: format!("kernel '{}': {text}", program.name) });
        let threads = block.iter().try_fold(1u32, |product, extent| product.checked_mul(*extent)).unwrap_or(u32::MAX);
        if threads == 0 || threads > 1024 || block[2] > 64 {
            return wrong(format!("a block of {block:?} threads"));
        }
        if grid.contains(&0) || grid[0] > i32::MAX as u32 || grid[1] > 65535 || grid[2] > 65535 {
            return wrong(format!("a grid of {grid:?} blocks"));
        }
        if let Some(most) = program.max_threads {
            if program.exact_threads && block != most {
                return wrong(format!("a block of {block:?} threads, it must be {most:?}"));
            }
            if threads > most.iter().product() {
                return wrong(format!("a block of {threads} threads, at most {most:?} are allowed"));
            }
        }
        if parameters.len() != program.parameter_bytes as usize {
            return wrong(format!("{} bytes of parameters, not {}", parameters.len(), program.parameter_bytes));
        }
        let dynamic = program.static_shared.next_multiple_of(program.shared_align);
        let total = if dynamic_shared == 0 { Some(program.static_shared) } else { dynamic.checked_add(dynamic_shared) };
        let Some(total) = total.filter(|total| *total <= SHARED_LIMIT) else {
            return wrong(format!("{} and {dynamic_shared} bytes of shared memory", program.static_shared));
        };
        for function in &program.functions {
            for (slot, symbol, _) in &function.symbols {
                if let Symbol::Global(name) = symbol
                    && function.template[*slot as usize] == 0
                {
                    return wrong(format!("the variable '{name}' has not been placed"));
                }
            }
        }
        Ok(total)
    }
}
