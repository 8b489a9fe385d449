//! Whole kernels: their parameters and the variables of their modules.

use weir_ptx::{Dim, Done, Fault, Module, NoCalls, Schedule, Slice};

/// Where a test's buffers are: one each 16 MiB.
pub const fn buffer(number: u64) -> u64 {
    (number + 1) << 24
}

/// Where the variables of a module are.
const VARIABLES: u64 = 0x7000_0000;

/// A module whose variables have been placed.
pub struct Loaded {
    pub module: Module,
    /// Each variable's name, address and bytes.
    pub variables: Vec<(String, u64, Vec<u8>)>,
    pub schedule: Schedule,
}

pub fn load(source: &str) -> Loaded {
    let mut module = Module::parse(source).unwrap_or_else(|why| panic!("{why}"));
    let mut next = VARIABLES;
    let mut variables = Vec::new();
    for global in module.globals() {
        next = next.next_multiple_of(global.align);
        module.place(&global.name, next).unwrap();
        variables.push((global.name, next, Vec::new()));
        next += global.size;
    }
    for (name, _, bytes) in &mut variables {
        *bytes = module.image(name).unwrap();
    }
    Loaded { module, variables, schedule: Schedule::Forward }
}

impl Loaded {
    pub fn variable(&self, name: &str) -> &[u8] {
        &self.variables.iter().find(|(other, ..)| other == name).unwrap().2
    }

    /// Runs a kernel over buffers that `memory` has already; the module's variables join them.
    pub fn run<'a>(
        &'a mut self,
        name: &str,
        grid: Dim,
        block: Dim,
        parameters: &[u8],
        memory: &mut Slice<'a>,
    ) -> Result<Done, Fault> {
        let entry = self.module.entry(name).unwrap_or_else(|| panic!("there is no kernel '{name}'"));
        for (_, address, bytes) in &mut self.variables {
            memory.add(*address, bytes);
        }
        entry.with_schedule(self.schedule).run(grid, block, 0, parameters, memory, &mut NoCalls)
    }
}

/// Parameters in the order of a kernel: each value aligned to its size.
#[derive(Default)]
pub struct Parameters(pub Vec<u8>);

impl Parameters {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn bytes(mut self, align: usize, bytes: &[u8]) -> Self {
        self.0.resize(self.0.len().next_multiple_of(align), 0);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn pointer(self, address: u64) -> Self {
        self.bytes(8, &address.to_le_bytes())
    }

    pub fn word(self, value: u32) -> Self {
        self.bytes(4, &value.to_le_bytes())
    }
}
