//! A kernel of the host's: source, entry, and arguments.
//!
//! Prepared as far as possible: a launch only fills in addresses and counts, on the stack.

use super::compiled;
use super::context::{Context, Handle};
use super::facts::CudaFacts;
use super::grid::{Arguments, LaunchGrid};
use super::module::Module;
use super::nvrtc::CudaSource;
use super::piece::CallPart;
use super::status;
use super::table::CUfunction;
use crate::abi::weir_cuda_argument_kind_value as A;
use crate::abi::weir_cuda_source_value as S;
use crate::abi::{weir_cuda_argument, weir_cuda_kernel_desc};
use crate::base::{Error, Result};
use crate::device::Launch;
use crate::memory::View;
use cudarc::driver::sys::CUfunction_attribute_enum as F;
use smallvec::SmallVec;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::sync::Arc;

/// Most bytes of a value, and most dynamic shared memory without opt-in.
const MOST_VALUE: usize = 4096;
const MOST_SHARED: u32 = 48 << 10;

#[derive(Debug)]
enum KernelArgument {
    Input(usize),
    Output(usize),
    InputElements(usize),
    OutputElements(usize),
    /// So many bytes, in words so that they are aligned.
    Value(usize, Box<[u64]>),
}

#[derive(Debug)]
pub(super) struct Custom {
    function: Handle<CUfunction>,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: Vec<KernelArgument>,
    _module: Module,
}

impl Custom {
    /// # Safety
    /// `attributes` are a `weir_cuda_kernel_desc` as its documentation says.
    pub(super) unsafe fn new(context: &Arc<Context>, facts: &CudaFacts, attributes: &[u8]) -> Result<Custom> {
        if attributes.len() != size_of::<weir_cuda_kernel_desc>() {
            return Err(Error::internal("attributes of another size than weir_cuda_kernel_desc"));
        }
        // SAFETY: so many bytes of a plain struct.
        let desc = unsafe { attributes.as_ptr().cast::<weir_cuda_kernel_desc>().read_unaligned() };
        // SAFETY: as demanded of the caller.
        let (given, entry) = unsafe { (items(desc.arguments, desc.num_arguments), text(desc.entry)) };
        let given = given.ok_or_else(|| Error::null("desc->arguments"))?;
        let entry =
            entry.filter(|entry| !entry.is_empty()).ok_or_else(|| Error::invalid("desc->entry is NULL or \"\""))?;
        check_block(&desc, facts)?;
        let arguments = given.iter().enumerate().map(|(i, argument)| {
            // SAFETY: as demanded of the caller.
            unsafe { KernelArgument::new(argument, &desc) }
                .map_err(|error| error.within(format_args!("desc->arguments[{i}]")))
        });
        let arguments: Vec<_> = arguments.collect::<Result<_>>()?;
        // SAFETY: as demanded of the caller.
        let image = unsafe { image(&desc, facts) }?;
        let module = Module::load(context, &image, "the kernel's source")?;
        let function = module.function(entry)?;
        check_arguments(context, function.0, &arguments)?;
        check_limits(context, function.0, &desc)?;
        let (grid, block, shared_bytes) = (desc.grid, desc.block, desc.shared_bytes);
        Ok(Custom { function, grid, block, shared_bytes, arguments, _module: module })
    }

    pub(super) fn launches(
        &self,
        launch: &Launch<'_>,
        issue: &mut dyn FnMut(CallPart<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(grid) = self.blocks(launch)? else { return Ok(()) };
        let mut words: SmallVec<[u64; 32]> = SmallVec::new();
        for argument in &self.arguments {
            words.push(match argument {
                KernelArgument::Input(i) => launch.inputs[*i].data() as u64,
                KernelArgument::Output(i) => launch.outputs[*i].data() as u64,
                KernelArgument::InputElements(i) => elements(&launch.inputs[*i]),
                KernelArgument::OutputElements(i) => elements(&launch.outputs[*i]),
                KernelArgument::Value(..) => 0,
            });
        }
        let places = self.arguments.iter().zip(&mut words).map(|(argument, word)| match argument {
            // The driver only reads it.
            KernelArgument::Value(_, value) => value.as_ptr().cast_mut().cast(),
            _ => std::ptr::from_mut(word).cast(),
        });
        let places: SmallVec<[*mut c_void; 32]> = places.collect();
        let grid = LaunchGrid { function: self.function.0, grid, block: self.block, shared_bytes: self.shared_bytes };
        let words: &[u64] = &words;
        // SAFETY: words without gaps.
        let storage = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
        issue(CallPart::Grid(&grid, Arguments { places: &places, storage }))
    }

    /// How many blocks; None: nothing to do.
    fn blocks(&self, launch: &Launch<'_>) -> Result<Option<[u32; 3]>> {
        if self.grid != [0; 3] {
            return Ok(Some(self.grid));
        }
        let count = launch.outputs.first().map_or(0, elements);
        let blocks = count.div_ceil(u64::from(self.block[0]));
        match c_int::try_from(blocks) {
            Ok(0) => Ok(None),
            Ok(blocks) => Ok(Some([blocks as u32, 1, 1])),
            Err(_) => Err(Error::out_of_range(format!("output 0 has {count} elements, which takes {blocks} blocks"))),
        }
    }
}

fn elements(view: &View) -> u64 {
    // A tensor that is there can be counted.
    view.desc().elements().unwrap_or(0) as u64
}

impl KernelArgument {
    /// # Safety
    /// A value's bytes are there.
    unsafe fn new(given: &weir_cuda_argument, desc: &weir_cuda_kernel_desc) -> Result<KernelArgument> {
        let is = |kind: A| given.kind == kind as u32;
        if is(A::WEIR_CUDA_ARGUMENT_VALUE) {
            if given.value.is_null() {
                return Err(Error::null("value"));
            }
            if !(1..=MOST_VALUE).contains(&given.bytes) {
                return Err(Error::invalid(format!("bytes is {}, expected 1 to {MOST_VALUE}", given.bytes)));
            }
            let mut words = vec![0u64; given.bytes.div_ceil(8)].into_boxed_slice();
            // SAFETY: as demanded of the caller; there is as much room.
            unsafe { words.as_mut_ptr().cast::<u8>().copy_from(given.value.cast(), given.bytes) };
            return Ok(KernelArgument::Value(given.bytes, words));
        }
        let index = given.index as usize;
        let (of_input, argument) = match given.kind {
            kind if kind == A::WEIR_CUDA_ARGUMENT_INPUT as u32 => (true, KernelArgument::Input(index)),
            kind if kind == A::WEIR_CUDA_ARGUMENT_OUTPUT as u32 => (false, KernelArgument::Output(index)),
            kind if kind == A::WEIR_CUDA_ARGUMENT_INPUT_ELEMENTS as u32 => (true, KernelArgument::InputElements(index)),
            kind if kind == A::WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS as u32 => {
                (false, KernelArgument::OutputElements(index))
            }
            kind => return Err(Error::invalid(format!("kind is {kind}, which is no kind of arguments"))),
        };
        let (what, count) = if of_input { ("inputs", desc.num_inputs) } else { ("outputs", desc.num_outputs) };
        if index >= count {
            return Err(Error::out_of_range(format!("index is {index}, the kernel has {count} {what}")));
        }
        Ok(argument)
    }

    fn bytes(&self) -> usize {
        match self {
            KernelArgument::Value(bytes, _) => *bytes,
            _ => size_of::<u64>(),
        }
    }
}

/// # Safety
/// `items` is NULL, or there are so many.
unsafe fn items<'a, T>(items: *const T, count: usize) -> Option<&'a [T]> {
    match (items.is_null(), count) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: as demanded of the caller.
        (false, count) => Some(unsafe { std::slice::from_raw_parts(items, count) }),
    }
}

/// # Safety
/// `text` is NULL or ends with a NUL.
unsafe fn text<'a>(text: *const std::ffi::c_char) -> Option<&'a CStr> {
    // SAFETY: as demanded of the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

fn check_block(desc: &weir_cuda_kernel_desc, facts: &CudaFacts) -> Result<()> {
    let threads = desc.block.iter().map(|&side| u64::from(side)).product::<u64>();
    if threads == 0 || threads > u64::from(facts.max_threads_per_block) {
        return Err(Error::invalid(format!(
            "desc->block is {:?}, {threads} threads, expected 1 to {}",
            desc.block, facts.max_threads_per_block
        )));
    }
    let blocks = desc.grid.iter().filter(|&&side| side > 0).count();
    if blocks != 0 && blocks != 3 {
        return Err(Error::invalid(format!("desc->grid is {:?}, expected three counts or three zeros", desc.grid)));
    }
    if blocks == 0 && (desc.num_outputs == 0 || desc.block[1] != 1 || desc.block[2] != 1) {
        return Err(Error::invalid("desc->grid is {0, 0, 0}, which takes an output and a block of the form {n, 1, 1}"));
    }
    if desc.shared_bytes > facts.max_shared_bytes {
        let text = format!("desc->shared_bytes is {}, the device has {}", desc.shared_bytes, facts.max_shared_bytes);
        return Err(Error::out_of_range(text));
    }
    Ok(())
}

/// The image to load.
///
/// # Safety
/// As `Custom::new`.
unsafe fn image(desc: &weir_cuda_kernel_desc, facts: &CudaFacts) -> Result<Vec<u8>> {
    if desc.source.is_null() {
        return Err(Error::null("desc->source"));
    }
    let is_text = desc.source_kind != S::WEIR_CUDA_SOURCE_BINARY as u32;
    let source = match desc.source_bytes {
        // SAFETY: as demanded of the caller.
        0 if is_text => unsafe { CStr::from_ptr(desc.source.cast()) }.to_bytes(),
        // SAFETY: as demanded of the caller.
        bytes => unsafe { std::slice::from_raw_parts(desc.source.cast::<u8>(), bytes) },
    };
    // SAFETY: as demanded of the caller.
    let options = unsafe { items(desc.options, desc.num_options) }.ok_or_else(|| Error::null("desc->options"))?;
    let is_compiled = desc.source_kind == S::WEIR_CUDA_SOURCE_TEXT as u32;
    if !is_compiled && !options.is_empty() {
        return Err(Error::invalid(
            "desc->options are for the compiler, and desc->source_kind is not WEIR_CUDA_SOURCE_TEXT",
        ));
    }
    let c_text = || {
        let source = source.strip_suffix(b"\0").unwrap_or(source);
        CString::new(source).map_err(|_| Error::invalid("desc->source has a NUL in the middle of a text"))
    };
    match desc.source_kind {
        _ if source.is_empty() => Err(Error::invalid("desc->source is empty")),
        kind if kind == S::WEIR_CUDA_SOURCE_PTX as u32 => Ok(c_text()?.into_bytes_with_nul()),
        kind if kind == S::WEIR_CUDA_SOURCE_BINARY as u32 => Ok(source.to_vec()),
        _ if is_compiled => {
            let null = |i: usize| Error::null(&format!("desc->options[{i}]"));
            let options = options.iter().enumerate().map(|(i, &option)| {
                // SAFETY: as demanded of the caller.
                unsafe { text(option) }.map(CStr::to_owned).ok_or_else(|| null(i))
            });
            let options: Vec<_> = options.collect::<Result<_>>()?;
            let [major, minor] = facts.capability;
            compiled::image(
                &CudaSource { text: &c_text()?, options: &options, arch: major * 10 + minor },
                facts.driver_version,
            )
        }
        kind => Err(Error::invalid(format!("desc->source_kind is {kind}, which is no form of source"))),
    }
}

/// Refuses arguments that do not match the entry's, where the driver can report those (CUDA 12.4 and later).
fn check_arguments(context: &Arc<Context>, function: CUfunction, arguments: &[KernelArgument]) -> Result<()> {
    let Some(ask) = context.table().func_get_param_info else { return Ok(()) };
    let parameter = |i: usize| -> Result<Option<usize>> {
        let (mut offset, mut bytes) = (0, 0);
        let mut asked = status::SUCCESS;
        context.call("cuFuncGetParamInfo", &"the entry's parameters", |_| {
            // SAFETY: the driver's function with a function of this context, and places for the answers.
            asked = unsafe { ask(function, i, &raw mut offset, &raw mut bytes) };
            // The driver's answer for a missing parameter.
            if asked == status::INVALID_VALUE { status::SUCCESS } else { asked }
        })?;
        Ok((asked == status::SUCCESS).then_some(bytes))
    };
    let given = arguments.len();
    for (i, argument) in arguments.iter().enumerate() {
        let Some(bytes) = parameter(i)? else {
            return Err(Error::invalid(format!("desc->num_arguments is {given}, the entry has {i} parameters")));
        };
        let has = argument.bytes();
        if bytes != has {
            return Err(Error::invalid(format!("desc->arguments[{i}] has {has} bytes, the entry's parameter {bytes}")));
        }
    }
    match parameter(given)? {
        Some(_) => Err(Error::invalid(format!("desc->num_arguments is {given}, the entry has more parameters"))),
        None => Ok(()),
    }
}

/// Refuses a block that the kernel cannot have, and opts in to large shared memory.
fn check_limits(context: &Arc<Context>, function: CUfunction, desc: &weir_cuda_kernel_desc) -> Result<()> {
    let mut most = 0;
    let attribute = F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as c_int;
    context.call("cuFuncGetAttribute", &"the entry", |table| {
        // SAFETY: the driver's function with a function of this context, and a place for the answer.
        unsafe { (table.func_get_attribute)(&raw mut most, attribute, function) }
    })?;
    let threads: u64 = desc.block.iter().map(|&side| u64::from(side)).product();
    if threads > u64::try_from(most).unwrap_or(0) {
        let text = format!("desc->block is {:?}, {threads} threads, the entry can have {most}", desc.block);
        return Err(Error::invalid(text));
    }
    if desc.shared_bytes <= MOST_SHARED {
        return Ok(());
    }
    let attribute = F::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_int;
    context.call("cuFuncSetAttribute", &"shared memory of the entry", |table| {
        let bytes: c_uint = desc.shared_bytes;
        // SAFETY: the driver's function with a function of this context.
        unsafe { (table.func_set_attribute)(function, attribute, bytes as c_int) }
    })
}
