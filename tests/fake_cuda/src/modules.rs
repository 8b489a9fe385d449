//! Modules: what is loaded, and the functions in it.
//!
//! Two sorts of images. PTX is read and run as it is. A text that begins with `WEIRFAKE1` names built-in functions of
//! the driver's, one a line, for what tests cannot have from a kernel: time, and failure. `name = function` gives one
//! another name.

use crate::abi::Handle;
use crate::access::Memory;
use crate::builtin::{self, Builtin};
use crate::operation::Launch;
use crate::ptx;
use crate::schedule::Origin;
use crate::settings::SETTINGS;
use crate::space;
use crate::status::{Code, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::*};

pub const MAGIC: &str = "WEIRFAKE1";
/// Bytes of shared memory that a block has without asking, and with.
pub const SHARED: i32 = 48 << 10;
pub const SHARED_OPTIN: i32 = 227 << 10;

#[derive(Debug)]
pub struct Module {
    pub context: Handle,
    pub image: Arc<Image>,
    /// Address and bytes.
    pub globals: BTreeMap<String, (u64, u64)>,
}

#[derive(Debug)]
pub enum Image {
    Builtin(BTreeMap<String, &'static Builtin>),
    Ptx(weir_ptx::Module),
}

#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub module: Handle,
    pub context: Handle,
    /// Offset and bytes of each parameter.
    pub params: Vec<(usize, usize)>,
    pub shared: i32,
    pub registers: i32,
    pub max_threads: i32,
    /// Dynamic shared memory that was asked for.
    pub max_dynamic: AtomicI32,
    pub code: KernelCode,
}

#[derive(Debug)]
pub enum KernelCode {
    Builtin(&'static Builtin),
    Ptx(weir_ptx::Entry),
}

/// Why a kernel has failed.
pub type Fault = (Code, String);

impl Image {
    /// An image, or the driver's code and a text for its log.
    pub fn read(text: &str) -> std::result::Result<Image, (Code, String)> {
        let Some(list) = text.strip_prefix(MAGIC) else {
            return ptx::read(text).map(Image::Ptx);
        };
        let mut functions = BTreeMap::new();
        for line in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, function) = line.split_once('=').unwrap_or((line, line));
            let (name, function) = (name.trim(), function.trim());
            let mut known = builtin::ALL.iter().filter(|known| !SETTINGS.only_ptx || known.name == "gemm");
            let found = known.find(|builtin| builtin.name == function);
            let found = found.ok_or_else(|| (Code::INVALID_IMAGE, format!("no built-in function '{function}'")))?;
            functions.insert(name.to_owned(), found);
        }
        Ok(Image::Builtin(functions))
    }

    /// Gives variables their places and their first bytes; gives address and bytes of each.
    pub fn place(&mut self, device: i32, context: Handle) -> Result<BTreeMap<String, (u64, u64)>> {
        let mut places = BTreeMap::new();
        let Image::Ptx(module) = self else { return Ok(places) };
        let globals = module.globals();
        for global in &globals {
            let bytes = global.size.max(1);
            let start = space::with(|space| space.allocate("a module's variable", bytes, device, context, None))?;
            module.place(&global.name, start).map_err(|_| Code::INVALID_PTX)?;
            places.insert(global.name.clone(), (start, bytes));
        }
        // Variables can hold the addresses of others.
        for (name, (start, size)) in &places {
            let bytes = module.image(name).map_err(|_| Code::INVALID_PTX)?;
            let place = space::look(|space| space.translate(&(*start..start + size)));
            let place = place.map_err(|_| Code::INVALID_VALUE)?;
            // SAFETY: as many bytes as the variable has were allocated just now.
            unsafe { place.at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        Ok(places)
    }

    pub fn function(&self, name: &str, module: Handle, context: Handle) -> Result<Function> {
        match self {
            Image::Builtin(functions) => {
                let builtin = functions.get(name).ok_or(Code::NOT_FOUND)?;
                let mut params = Vec::new();
                let mut end = 0usize;
                for &size in builtin.params {
                    let offset = end.next_multiple_of(size);
                    params.push((offset, size));
                    end = offset + size;
                }
                Ok(Function {
                    name: name.to_owned(),
                    module,
                    context,
                    params,
                    shared: 0,
                    registers: 16,
                    max_threads: 1024,
                    max_dynamic: AtomicI32::new(SHARED),
                    code: KernelCode::Builtin(builtin),
                })
            }
            Image::Ptx(ptx) => {
                let entry = ptx.entry(name).ok_or(Code::NOT_FOUND)?;
                let params = entry.parameters().iter();
                Ok(Function {
                    name: name.to_owned(),
                    module,
                    context,
                    params: params.map(|param| (param.offset as usize, param.size as usize)).collect(),
                    shared: entry.static_shared() as i32,
                    registers: entry.slots().min(255) as i32,
                    max_threads: entry.max_threads() as i32,
                    max_dynamic: AtomicI32::new(SHARED),
                    code: KernelCode::Ptx(entry),
                })
            }
        }
    }
}

impl Function {
    /// Bytes of all parameters.
    pub fn param_bytes(&self) -> usize {
        self.params.last().map_or(0, |(offset, size)| offset + size)
    }

    /// Whether it can be launched so.
    pub fn check(&self, grid: [u32; 3], block: [u32; 3], shared: u32) -> Result {
        let threads = block.iter().try_fold(1u64, |product, n| product.checked_mul(u64::from(*n)));
        let threads = threads.filter(|threads| (1..=1024).contains(threads)).ok_or(Code::INVALID_VALUE)?;
        if grid.contains(&0) || grid[0] > 0x7fff_ffff || grid[1] > 0xffff || grid[2] > 0xffff || block[2] > 64 {
            return Err(Code::INVALID_VALUE);
        }
        if threads > self.max_threads as u64 {
            return Err(Code::LAUNCH_OUT_OF_RESOURCES);
        }
        // ORDERING: the host sets it before it launches, in the same thread or with an order of its own.
        if i64::from(shared) > i64::from(self.max_dynamic.load(Relaxed) - self.shared) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    pub fn run(&self, launch: &Launch, memory: &mut Memory, origin: &Origin) -> std::result::Result<(), Fault> {
        match &self.code {
            KernelCode::Builtin(builtin) => {
                let params = builtin::Params { bytes: &launch.params, function: self };
                (builtin.run)(&params, memory, origin)
            }
            KernelCode::Ptx(entry) => ptx::run(entry, launch, memory, origin),
        }
    }
}
