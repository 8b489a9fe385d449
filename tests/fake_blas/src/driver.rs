//! The driver that the program has loaded, by its own functions.

use crate::state::{EXECUTION_FAILED, NOT_INITIALIZED, Status, stop};
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr::null_mut;

type Pointer = *mut c_void;

macro_rules! call {
    ($driver:expr, $name:literal: $($argument:expr => $type:ty),* $(,)?) => {{
        let function: unsafe extern "C" fn($($type),*) -> i32 = unsafe { std::mem::transmute($driver.symbol($name)) };
        unsafe { function($($argument),*) }
    }};
}

/// A module with the function that multiplies.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    driver: Driver,
    context: usize,
    module: usize,
    function: usize,
}

/// A copy of the driver, as dlopen gives it.
#[derive(Clone, Copy, Debug)]
struct Driver(usize);

impl Driver {
    /// That in which a context is current: a process may have opened it under both of its names, and has two then.
    fn new() -> Option<Driver> {
        let open = |name: &CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) } as usize;
        // The name that weir looks for first.
        let loaded =
            [open(c"libcuda.so"), open(c"libcuda.so.1")].into_iter().filter(|library| *library != 0).map(Driver);
        loaded.into_iter().find(|driver| driver.current() != 0)
    }

    fn symbol(self, name: &CStr) -> *mut c_void {
        let found = unsafe { libc::dlsym(self.0 as *mut c_void, name.as_ptr()) };
        if found.is_null() { stop(&format!("the driver has no {name:?}")) } else { found }
    }

    fn current(self) -> usize {
        let mut context: Pointer = null_mut();
        call!(self, c"cuCtxGetCurrent": &raw mut context => *mut Pointer);
        context as usize
    }
}

impl Loaded {
    /// In the context that is current.
    pub fn new() -> Result<Loaded, Status> {
        let driver = Driver::new().ok_or(NOT_INITIALIZED)?;
        let (context, mut module, mut function) = (driver.current(), null_mut(), null_mut());
        let image = c"WEIRFAKE1\ngemm\n";
        if call!(driver, c"cuModuleLoadData": &raw mut module => *mut Pointer, image.as_ptr() => *const c_char) != 0 {
            return Err(NOT_INITIALIZED);
        }
        let found = call!(driver, c"cuModuleGetFunction": &raw mut function => *mut Pointer, module => Pointer, c"gemm".as_ptr() => *const c_char);
        if found != 0 {
            Err(NOT_INITIALIZED)
        } else {
            Ok(Loaded { driver, context, module: module as usize, function: function as usize })
        }
    }

    /// Whether the context is current that it was loaded into.
    pub fn is_current(&self) -> bool {
        self.driver.current() == self.context
    }

    pub fn unload(&self) -> Result<(), Status> {
        let unloaded = call!(self.driver, c"cuModuleUnload": self.module as Pointer => Pointer);
        if unloaded == 0 { Ok(()) } else { Err(NOT_INITIALIZED) }
    }

    pub fn launch(&self, mut params: [u64; 18], stream: Pointer) -> Result<(), Status> {
        let mut places: [Pointer; 18] = std::array::from_fn(|i| (&raw mut params[i]).cast());
        let launched = call!(
            self.driver, c"cuLaunchKernel": self.function as Pointer => Pointer, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint,
            1 => c_uint, 0 => c_uint, stream => Pointer, places.as_mut_ptr() => *mut Pointer, null_mut() => *mut Pointer,
        );
        if launched == 0 { Ok(()) } else { Err(EXECUTION_FAILED) }
    }
}
