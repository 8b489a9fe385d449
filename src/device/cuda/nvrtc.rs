//! The compiler of CUDA C++, NVRTC, if it is installed: a separate library, found on first use.
//!
//! A kernel is compiled to machine code for its device, which every driver loads that knows the device. A compiler that
//! is older than the device makes PTX for the newest one that it knows.

use super::table::Status;
use crate::base::{Code, Error, Result};
use crate::sync::OnceLock;
use cudarc::nvrtc::sys;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

type Program = *mut c_void;

/// The functions used. Its statuses are plain numbers, as the driver's.
struct Nvrtc {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    num_archs: unsafe extern "C" fn(*mut c_int) -> Status,
    archs: unsafe extern "C" fn(*mut c_int) -> Status,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Status,
}

static NVRTC: OnceLock<Result<Nvrtc, String>> = OnceLock::new();

/// The input of a compilation.
pub(super) struct CudaSource<'a> {
    pub text: &'a CStr,
    pub options: &'a [CString],
    /// 90 = compute capability 9.0.
    pub arch: u32,
}

/// A program of the compiler's.
struct Compiling<'a>(&'a Nvrtc, Program);

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        // SAFETY: the compiler's function with a program that nobody uses any more.
        unsafe { (self.0.destroy)(&raw mut self.1) };
    }
}

fn nvrtc() -> Result<&'static Nvrtc> {
    let found = NVRTC.get_or_init(load).as_ref();
    found.map_err(|why| Error::new(Code::Unavailable, why.clone()))
}

fn load() -> Result<Nvrtc, String> {
    // SAFETY: libraries of these names are the compiler, or do nothing when they are opened.
    if !unsafe { sys::is_culib_present() } {
        return Err("the compiler of CUDA, NVRTC, is not installed: there is no library libnvrtc.so; give the kernel \
            as PTX or as a binary"
            .to_owned());
    }
    macro_rules! find {
        ($name:literal) => {
            // SAFETY: the library was found just now, so this does not panic; the compiler's function with this name
            // has the type of the member (NVRTC 11.2 and later).
            match unsafe { sys::culib().get($name.as_bytes()) } {
                Ok(found) => *found,
                Err(_) => return Err(format!("libnvrtc is too old: it has no {}", $name)),
            }
        };
    }
    Ok(Nvrtc {
        version: find!("nvrtcVersion"),
        error_string: find!("nvrtcGetErrorString"),
        num_archs: find!("nvrtcGetNumSupportedArchs"),
        archs: find!("nvrtcGetSupportedArchs"),
        create: find!("nvrtcCreateProgram"),
        destroy: find!("nvrtcDestroyProgram"),
        compile: find!("nvrtcCompileProgram"),
        log_size: find!("nvrtcGetProgramLogSize"),
        log: find!("nvrtcGetProgramLog"),
        cubin_size: find!("nvrtcGetCUBINSize"),
        cubin: find!("nvrtcGetCUBIN"),
        ptx_size: find!("nvrtcGetPTXSize"),
        ptx: find!("nvrtcGetPTX"),
    })
}

/// The version of the compiler: 12 and 4.
pub(super) fn version() -> Result<(i32, i32)> {
    let nvrtc = nvrtc()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the compiler's function, and places for the answers.
    nvrtc.check("nvrtcVersion", unsafe { (nvrtc.version)(&raw mut major, &raw mut minor) })?;
    Ok((major, minor))
}

/// An image that the driver loads. INVALID_ARGUMENT with the compiler's log if the source has errors.
pub(super) fn compile(source: &CudaSource<'_>) -> Result<Vec<u8>> {
    let nvrtc = nvrtc()?;
    let mut program = std::ptr::null_mut();
    // SAFETY: the compiler's function; the text lives longer than the program.
    let created = unsafe {
        (nvrtc.create)(
            &raw mut program,
            source.text.as_ptr(),
            c"kernel.cu".as_ptr(),
            0,
            std::ptr::null(),
            std::ptr::null(),
        )
    };
    nvrtc.check("nvrtcCreateProgram", created)?;
    let program = Compiling(nvrtc, program);
    let archs = nvrtc.archs()?;
    let knows = archs.contains(&(source.arch as c_int));
    let arch = match archs.iter().filter(|&&arch| arch <= source.arch as c_int).max() {
        Some(arch) => *arch,
        None => {
            let text = format!("NVRTC has no code for devices of compute capability {}", source.arch);
            return Err(Error::new(Code::Unimplemented, text));
        }
    };
    let target = format!("--gpu-architecture={}_{arch}", if knows { "sm" } else { "compute" });
    let target = CString::new(target).map_err(|_| Error::internal("an option with a NUL"))?;
    let options: Vec<_> = std::iter::once(&target).chain(source.options).map(|option| option.as_ptr()).collect();
    // SAFETY: the compiler's function with a program of its own; the options live during the call.
    let compiled = unsafe { (nvrtc.compile)(program.1, options.len() as c_int, options.as_ptr()) };
    if compiled != 0 {
        // The log says more than the number.
        let log = nvrtc.bytes("nvrtcGetProgramLog", &program, nvrtc.log_size, nvrtc.log).unwrap_or_default();
        let log = String::from_utf8_lossy(log.split(|&byte| byte == 0).next().unwrap_or(&[])).trim().to_owned();
        return Err(Error::invalid(format!("NVRTC: {}\n{log}", nvrtc.text(compiled)).trim_end()));
    }
    match knows {
        true => nvrtc.bytes("nvrtcGetCUBIN", &program, nvrtc.cubin_size, nvrtc.cubin),
        // With the NUL at its end.
        false => nvrtc.bytes("nvrtcGetPTX", &program, nvrtc.ptx_size, nvrtc.ptx),
    }
}

impl Nvrtc {
    fn text(&self, status: Status) -> String {
        // SAFETY: the compiler's function.
        let text = unsafe { (self.error_string)(status) };
        if text.is_null() {
            return format!("status {status}");
        }
        // SAFETY: the compiler's text, which is static and ends with a NUL.
        format!("{} ({status})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }

    fn check(&self, function: &str, status: Status) -> Result<()> {
        if status == 0 { Ok(()) } else { Err(Error::internal(format!("{function}: {}", self.text(status)))) }
    }

    /// Devices that it compiles for: 90 = compute capability 9.0.
    fn archs(&self) -> Result<Vec<c_int>> {
        let mut count = 0;
        // SAFETY: the compiler's function, and a place for the answer.
        self.check("nvrtcGetNumSupportedArchs", unsafe { (self.num_archs)(&raw mut count) })?;
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the compiler's function, and as many places as it has said.
        self.check("nvrtcGetSupportedArchs", unsafe { (self.archs)(archs.as_mut_ptr()) })?;
        Ok(archs)
    }

    fn bytes(
        &self,
        function: &str,
        program: &Compiling<'_>,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the compiler's function with a program of its own, and a place for the answer.
        self.check(function, unsafe { size(program.1, &raw mut bytes) })?;
        let mut data = Vec::new();
        data.try_reserve_exact(bytes).map_err(|_| Error::exhausted(function, bytes))?;
        data.resize(bytes, 0);
        // SAFETY: as above, and as much room as it has said.
        self.check(function, unsafe { get(program.1, data.as_mut_ptr().cast()) })?;
        Ok(data)
    }
}
