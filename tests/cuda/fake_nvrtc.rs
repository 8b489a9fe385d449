//! A compiler of CUDA C++ that is none, for tests: each kernel in a source becomes the fake driver's function of that
//! name. It is compiled by the test that loads it.
//!
//! SAFETY, everywhere in here: weir passes what the compiler's header asks for, and programs that were made here and
//! not destroyed.
//!
//! It knows the devices that FAKE_NVRTC_ARCHS names, else 80 and 90. A source with `#error` in it has a mistake.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

struct Program {
    source: String,
    log: String,
    image: Vec<u8>,
}

static COMPILED: AtomicU64 = AtomicU64::new(0);

/// How often something was compiled.
#[unsafe(no_mangle)]
pub extern "C" fn fakeNvrtcCompiled() -> u64 {
    COMPILED.load(SeqCst)
}

fn archs() -> Vec<c_int> {
    let text = std::env::var("FAKE_NVRTC_ARCHS").unwrap_or_else(|_| "80,90".to_owned());
    text.split(',').map(|arch| arch.parse().unwrap()).collect()
}

unsafe fn program<'a>(program: *mut c_void) -> &'a mut Program {
    unsafe { &mut *program.cast() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    unsafe { (*major, *minor) = (12, 4) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvrtcGetErrorString(status: c_int) -> *const c_char {
    if status == 6 { c"NVRTC_ERROR_COMPILATION".as_ptr() } else { c"NVRTC_ERROR_INVALID_OPTION".as_ptr() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> c_int {
    unsafe { *count = archs().len() as c_int };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetSupportedArchs(out: *mut c_int) -> c_int {
    for (i, arch) in archs().into_iter().enumerate() {
        unsafe { out.add(i).write(arch) };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    out: *mut *mut c_void,
    source: *const c_char,
    _name: *const c_char,
    _headers: c_int,
    _texts: *const *const c_char,
    _names: *const *const c_char,
) -> c_int {
    let source = unsafe { CStr::from_ptr(source) }.to_str().unwrap().to_owned();
    let made = Box::new(Program { source, log: String::new(), image: Vec::new() });
    unsafe { *out = Box::into_raw(made).cast() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut *mut c_void) -> c_int {
    drop(unsafe { Box::from_raw((*program).cast::<Program>()) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(of: *mut c_void, count: c_int, options: *const *const c_char) -> c_int {
    let program = unsafe { program(of) };
    COMPILED.fetch_add(1, SeqCst);
    let options: Vec<&str> =
        (0..count as usize).map(|i| unsafe { CStr::from_ptr(*options.add(i)) }.to_str().unwrap()).collect();
    let target = options.iter().find_map(|option| option.strip_prefix("--gpu-architecture="));
    let known = archs().into_iter().any(|arch| {
        target == Some(format!("sm_{arch}").as_str()) || target == Some(format!("compute_{arch}").as_str())
    });
    if !known {
        program.log = format!("no such device: {options:?}\0");
        return 5;
    }
    if program.source.contains("#error") {
        program.log = "kernel.cu(1): error: #error directive\0".to_owned();
        return 6;
    }
    let mut image = "WEIRFAKE1\n".to_owned();
    for part in program.source.split("__global__ void ").skip(1) {
        image += part.split('(').next().unwrap().trim();
        image += "\n";
    }
    image += "\0";
    program.image = image.into_bytes();
    0
}

unsafe fn bytes(from: &[u8], to: *mut c_char) -> c_int {
    unsafe { to.cast::<u8>().copy_from(from.as_ptr(), from.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLogSize(of: *mut c_void, size: *mut usize) -> c_int {
    unsafe { *size = program(of).log.len() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLog(of: *mut c_void, to: *mut c_char) -> c_int {
    unsafe { bytes(program(of).log.as_bytes(), to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBINSize(of: *mut c_void, size: *mut usize) -> c_int {
    unsafe { *size = program(of).image.len() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBIN(of: *mut c_void, to: *mut c_char) -> c_int {
    unsafe { bytes(&program(of).image, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTXSize(of: *mut c_void, size: *mut usize) -> c_int {
    unsafe { *size = program(of).image.len() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTX(of: *mut c_void, to: *mut c_char) -> c_int {
    unsafe { bytes(&program(of).image, to) }
}
