//! Launches of kernels.

use super::stream::submit;
use crate::abi::{Handle, In, LaunchConfig, Out};
use crate::modules::Function;
use crate::operation::{Launch, Operation};
use crate::status::{Code, Result};
use crate::world::lock;
use std::ffi::c_void;
use std::sync::Arc;

/// What `extra` is: pairs of one of these and an address, up to the first.
const END: usize = 0;
const BUFFER: usize = 1;
const BUFFER_BYTES: usize = 2;

/// The parameters as the kernel has them, from either form in which a program gives them.
pub fn pack(function: &Function, params: *mut *mut c_void, extra: *mut *mut c_void) -> Result<Arc<[u8]>> {
    let size = function.param_bytes();
    let mut bytes = vec![0u8; size];
    if !extra.is_null() {
        if !params.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let (mut from, mut given) = (std::ptr::null::<u8>(), 0);
        for pair in 0.. {
            // SAFETY: the program's row of pairs ends with END.
            let (which, value) = unsafe { (*extra.add(2 * pair) as usize, *extra.add(2 * pair + 1)) };
            match which {
                END => break,
                BUFFER => from = value.cast(),
                // SAFETY: the program gives the address of a size.
                BUFFER_BYTES => given = unsafe { *value.cast::<usize>() },
                _ => return Err(Code::INVALID_VALUE),
            }
            if pair == 1 {
                break;
            }
        }
        if given < size || (from.is_null() && size > 0) {
            return Err(Code::INVALID_VALUE);
        }
        if size > 0 {
            // SAFETY: the program has given so many bytes at least.
            unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(from, size) };
        }
        return Ok(bytes.into());
    }
    if params.is_null() && size > 0 {
        return Err(Code::INVALID_VALUE);
    }
    for (index, &(offset, size)) in function.params.iter().enumerate() {
        // SAFETY: the program gives the address of each parameter that the function has.
        let from = unsafe { *params.add(index) }.cast::<u8>();
        if from.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: as above.
        bytes[offset..offset + size].copy_from_slice(unsafe { std::slice::from_raw_parts(from, size) });
    }
    Ok(bytes.into())
}

#[allow(clippy::too_many_arguments)]
fn launch(
    name: &str,
    function: Handle,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: Handle,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let mut world = lock();
    let context = world.context()?;
    let stream = world.stream(stream)?;
    let function = world.functions.get(&function).filter(|function| function.context == context);
    let function = Arc::clone(function.ok_or(Code::INVALID_HANDLE)?);
    function.check(grid, block, shared)?;
    let params = pack(&function, params, extra)?;
    let name = format!("{name} of {}", function.name);
    submit(&mut world, stream, name, Operation::Launch(Launch { function, grid, block, shared, params }))
}

crate::entries! {
    fn cuLaunchKernel(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: Handle, params: Out<*mut c_void>, extra: Out<*mut c_void>,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch("cuLaunchKernel", function, grid, block, shared, stream, params.0, extra.0)
    }

    fn cuLaunchKernelEx(config: In<LaunchConfig>, function: Handle, params: Out<*mut c_void>, extra: Out<*mut c_void>) {
        let config = config.get()?;
        let (grid, block) = (config.grid, config.block);
        launch("cuLaunchKernelEx", function, grid, block, config.shared, config.stream, params.0, extra.0)
    }

    fn cuLaunchCooperativeKernel(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: Handle, params: Out<*mut c_void>,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let blocks = grid.iter().map(|n| u64::from(*n)).product::<u64>();
        let threads = block.iter().map(|n| u64::from(*n)).product::<u64>().max(1);
        if blocks > 132 * (2048 / threads.next_multiple_of(32)).max(1) {
            return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        let none = std::ptr::null_mut();
        launch("cuLaunchCooperativeKernel", function, grid, block, shared, stream, params.0, none)
    }
}
