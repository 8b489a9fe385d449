//! Memory of devices that is allocated and freed at once.

use crate::abi::{Handle, Out};
use crate::settings::SETTINGS;
use crate::space;
use crate::status::Code;
use crate::world::{World, lock};

crate::entries! {
    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) {
        address.check()?;
        let mut world = lock();
        let context = world.context()?;
        let device = world.current_device()?;
        let start = space::with(|space| space.allocate("cuMemAlloc", bytes as u64, device, context, None))?;
        world.checker.forget(&(start..start + bytes as u64));
        address.set(start)
    }

    // Waits for all work of the context, as the real one does; who gives an asynchronous allocation back so is told of
    // no user of it either.
    fn cuMemFree_v2(address: u64) {
        let mut world = lock();
        let context = world.context()?;
        if address == 0 {
            return Ok(());
        }
        let tails = world.tails(context);
        let mut world = World::wait(world, &tails);
        if let Some(code) = world.lost(context) {
            return Err(code);
        }
        let block = space::look(|space| space.block(address).filter(|block| block.start == address).cloned());
        let block = block.ok_or(Code::INVALID_VALUE)?;
        world.check_end("cuMemFree", &(block.start..block.start + block.size));
        world.uncharge(&block);
        space::with(|space| space.free(address)).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let device = lock().current_device()?;
        free.set(space::look(|space| space.free_bytes(device)) as usize)?;
        total.set(SETTINGS.memory as usize)
    }

    fn cuMemGetAddressRange_v2(start: Out<u64>, bytes: Out<usize>, address: u64) {
        lock().context()?;
        let block = space::look(|space| space.block(address).cloned()).ok_or(Code::NOT_FOUND)?;
        start.set_if_wanted(block.start);
        bytes.set_if_wanted(block.size as usize);
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache() {
        lock().context().map(|_: Handle| ())
    }
}
