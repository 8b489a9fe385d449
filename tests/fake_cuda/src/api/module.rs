//! Modules and functions.

use crate::abi::{Handle, In, Kind, OccupancyFunction, Out};
use crate::modules::{Image, Module, SHARED_OPTIN};
use crate::status::{Code, Result};
use crate::world::lock;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

const ERROR_LOG: i32 = 5;
const ERROR_LOG_BYTES: i32 = 6;
const INFO_LOG_BYTES: i32 = 4;

/// The place for a log of errors, and its bytes.
fn error_log(options: &[(i32, *mut c_void)]) -> Option<(*mut c_char, usize)> {
    let value = |which| options.iter().find(|(option, _)| *option == which).map(|(_, value)| *value);
    Some((value(ERROR_LOG)?.cast::<c_char>(), value(ERROR_LOG_BYTES)? as usize))
        .filter(|(to, room)| !to.is_null() && *room > 0)
}

fn load(module: Out<Handle>, image: *const c_void, options: &[(i32, *mut c_void)]) -> Result {
    module.check()?;
    if image.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let mut world = lock();
    let context = world.context()?;
    let device = world.current_device()?;
    drop(world);
    // SAFETY: an image is a text that ends with zero, or one in the format of ELF or fatbin: its first four bytes are
    // there.
    let magic = unsafe { image.cast::<[u8; 4]>().read_unaligned() };
    if magic == *b"\x7fELF" || magic == 0xba55_ed50_u32.to_le_bytes() {
        // Code for a device that this is not.
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
    let mut image = match Image::read(&text) {
        Ok(image) => image,
        Err((code, why)) => {
            if let Some((to, room)) = error_log(options) {
                for (index, byte) in why.bytes().take(room - 1).chain([0]).enumerate() {
                    // SAFETY: the program has given so much room.
                    unsafe { to.add(index).write(byte as c_char) };
                }
            }
            return Err(code);
        }
    };
    let globals = image.place(device, context)?;
    let mut world = lock();
    globals.values().for_each(|(start, size)| world.checker.forget(&(*start..start + size)));
    let new = world.name(Kind::Module);
    world.modules.insert(new, Module { context, image: Arc::new(image), globals });
    module.set(new)
}

crate::entries! {
    fn cuModuleLoadData(module: Out<Handle>, image: *const c_void) {
        load(module, image, &[])
    }

    fn cuModuleLoadDataEx(
        module: Out<Handle>, image: *const c_void, count: u32, options: Out<i32>, values: Out<*mut c_void>,
    ) {
        let mut given = Vec::new();
        for index in 0..count as usize {
            given.push((options.at(index).get()?, values.at(index).get()?));
        }
        load(module, image, &given)?;
        // The bytes of the logs, which are empty.
        for (index, (option, _)) in given.iter().enumerate() {
            if matches!(*option, ERROR_LOG_BYTES | INFO_LOG_BYTES) {
                values.at(index).set(std::ptr::null_mut())?;
            }
        }
        Ok(())
    }

    fn cuModuleUnload(module: Handle) {
        let mut world = lock();
        let context = world.context()?;
        if world.modules.get(&module).is_none_or(|module| module.context != context) {
            return Err(Code::INVALID_HANDLE);
        }
        world.unload(module);
        Ok(())
    }

    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: In<c_char>) {
        function.check()?;
        let name = name.text()?;
        let mut world = lock();
        world.context()?;
        let found = world.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
        let (image, context) = (Arc::clone(&found.image), found.context);
        let known = world.functions.iter().find(|(_, other)| other.module == module && other.name == name);
        if let Some((known, _)) = known {
            return function.set(*known);
        }
        let new = image.function(&name, module, context)?;
        let handle = world.name(Kind::Function);
        world.functions.insert(handle, Arc::new(new));
        function.set(handle)
    }

    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: Handle, name: In<c_char>) {
        let name = name.text()?;
        let mut world = lock();
        world.context()?;
        let found = world.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
        let (start, size) = *found.globals.get(&name).ok_or(Code::NOT_FOUND)?;
        address.set_if_wanted(start);
        bytes.set_if_wanted(size as usize);
        Ok(())
    }

    fn cuFuncGetModule(module: Out<Handle>, function: Handle) {
        let world = lock();
        module.set(world.functions.get(&function).ok_or(Code::INVALID_HANDLE)?.module)
    }

    fn cuFuncGetAttribute(value: Out<i32>, which: i32, function: Handle) {
        let world = lock();
        let function = world.functions.get(&function).ok_or(Code::INVALID_HANDLE)?;
        value.set(match which {
            0 => function.max_threads,
            1 => function.shared,
            2 | 3 => 0,
            4 => function.registers,
            5 | 6 => 90,
            7 => 0,
            // ORDERING: as for `Function::check`.
            8 => function.max_dynamic.load(Relaxed) - function.shared,
            9 => -1,
            10..=15 => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuFuncSetAttribute(function: Handle, which: i32, value: i32) {
        let world = lock();
        let function = world.functions.get(&function).ok_or(Code::INVALID_HANDLE)?;
        match which {
            8 if value >= 0 && value <= SHARED_OPTIN - function.shared => {
                // ORDERING: as for `Function::check`.
                function.max_dynamic.store(value + function.shared, Relaxed);
                Ok(())
            }
            9 if (-1..=100).contains(&value) => Ok(()),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuFuncSetCacheConfig(function: Handle, config: i32) {
        let _ = config;
        lock().functions.get(&function).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    fn cuFuncGetParamInfo(function: Handle, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        let world = lock();
        let function = world.functions.get(&function).ok_or(Code::INVALID_HANDLE)?;
        let (at, size) = *function.params.get(index).ok_or(Code::INVALID_VALUE)?;
        offset.set(at)?;
        bytes.set_if_wanted(size);
        Ok(())
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>, block: Out<i32>, function: Handle, shared: OccupancyFunction, dynamic: usize, limit: i32,
    ) {
        let world = lock();
        let function = Arc::clone(world.functions.get(&function).ok_or(Code::INVALID_HANDLE)?);
        drop(world);
        let most = if limit > 0 { limit.min(function.max_threads) } else { function.max_threads };
        let needs = |threads: i32| match shared {
            // SAFETY: the program's function, which takes a number of threads.
            Some(shared) => unsafe { shared(threads) },
            None => dynamic,
        };
        // Warps, as many as fit.
        let sizes = (1..=most / 32).rev().map(|warps| warps * 32);
        let size = sizes.into_iter().find(|threads| needs(*threads) + function.shared as usize <= SHARED_OPTIN as usize);
        let size = size.ok_or(Code::INVALID_VALUE)?;
        block.set(size)?;
        grid.set(132 * (2048 / size))
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Out<i32>, function: Handle, block: i32, dynamic: usize) {
        let world = lock();
        let function = world.functions.get(&function).ok_or(Code::INVALID_HANDLE)?;
        if !(1..=1024).contains(&block) {
            return Err(Code::INVALID_VALUE);
        }
        let shared = dynamic + function.shared as usize;
        let by_shared = (228usize << 10).checked_div(shared).unwrap_or(32) as i32;
        blocks.set((2048 / (block + 31).div_euclid(32).wrapping_mul(32)).min(32).min(by_shared))
    }
}
