//! Kernels of PTX: `weir_ptx` runs them, on the devices' memory.

use crate::access::Memory;
use crate::builtin::{condition, set_value};
use crate::modules::Fault;
use crate::operation::Launch;
use crate::schedule::Origin;
use crate::settings::SETTINGS;
use crate::status::Code;
use std::ptr::NonNull;
use weir_ptx::{Access, Call, Calls, Entry, FaultKind, Module};

/// Versions of CUDA with the newest version of PTX that their drivers read.
const NEWEST: &[(i32, (u32, u32))] = &[
    (13_000, (9, 0)),
    (12_090, (8, 8)),
    (12_080, (8, 7)),
    (12_070, (8, 6)),
    (12_050, (8, 5)),
    (12_040, (8, 4)),
    (12_030, (8, 3)),
    (12_020, (8, 2)),
    (12_010, (8, 1)),
    (0, (8, 0)),
];

/// What kernels set the conditions of graphs with, and since when there is such a function.
const SET_CONDITION: &str = "cudaGraphSetConditional";
const CONDITIONS: i32 = 12_030;

pub fn read(text: &str) -> Result<Module, (Code, String)> {
    let module = Module::parse(text).map_err(|why| (Code::INVALID_PTX, why))?;
    let newest = NEWEST.iter().find(|(version, _)| *version <= SETTINGS.version).map_or((8, 0), |(_, ptx)| *ptx);
    if module.version() > newest {
        let (major, minor) = module.version();
        return Err((Code::UNSUPPORTED_PTX_VERSION, format!("PTX {major}.{minor} is newer than this driver")));
    }
    if let Some(missing) = module.globals().into_iter().find(|global| global.is_extern) {
        return Err((Code::INVALID_PTX, format!("Unresolved extern variable '{}'", missing.name)));
    }
    if SETTINGS.version < CONDITIONS && text.contains(SET_CONDITION) {
        return Err((Code::INVALID_PTX, format!("Unresolved extern function '{SET_CONDITION}'")));
    }
    Ok(module)
}

// SAFETY: `at` gives bytes of a block that lives as long as it is among those found last; they are the whole access.
unsafe impl weir_ptx::Memory for Memory {
    fn translate(&mut self, address: u64, size: u32, access: Access) -> Result<NonNull<u8>, String> {
        let at = self.at(address, u64::from(size), access != Access::Read)?;
        NonNull::new(at).ok_or_else(|| "a block at no address".to_owned())
    }
}

/// What kernels call that is no part of their module.
struct Outside<'a> {
    origin: &'a Origin,
    /// What a call has failed with, if it is not the failure of any.
    code: Option<Code>,
    /// Conditional handles that were set.
    set: Vec<u64>,
}

impl Calls for Outside<'_> {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), String> {
        match call.function {
            SET_CONDITION => {
                let (handle, value) = (call.argument(0)?, call.argument(1)? as u32);
                self.set.push(handle);
                set_value(self.origin, handle, value).map_err(|(code, why)| {
                    self.code = Some(code);
                    why
                })
            }
            "__assertfail" => {
                self.code = Some(Code::ASSERT);
                let message = call.argument(0).and_then(|at| call.text(at)).unwrap_or_default();
                Err(format!("assertion '{message}' failed"))
            }
            other => Err(format!("there is no function '{other}'")),
        }
    }
}

pub fn run(entry: &Entry, launch: &Launch, memory: &mut Memory, origin: &Origin) -> Result<(), Fault> {
    let mut outside = Outside { origin, code: None, set: Vec::new() };
    let done = entry.run(launch.grid, launch.block, launch.shared, &launch.params, memory, &mut outside);
    outside.set.iter().for_each(|handle| memory.accesses.write(condition(origin, *handle)));
    done.map(|_| ()).map_err(|fault| {
        let code = match fault.kind {
            FaultKind::IllegalAddress => Code::ILLEGAL_ADDRESS,
            FaultKind::MisalignedAddress => Code::MISALIGNED_ADDRESS,
            FaultKind::Deadlock | FaultKind::Endless => Code::LAUNCH_TIMEOUT,
            FaultKind::Trap => Code::ILLEGAL_INSTRUCTION,
            FaultKind::Stack => Code::HARDWARE_STACK_ERROR,
            FaultKind::Launch | FaultKind::Call => Code::LAUNCH_FAILED,
        };
        (outside.code.unwrap_or(code), fault.text)
    })
}
