//! Devices: what they say of themselves is like an H100's, as far as programs ask.

use crate::abi::{Handle, Out};
use crate::modules::{SHARED, SHARED_OPTIN};
use crate::settings::SETTINGS;
use crate::status::{Code, Result};
use crate::world::lock;
use std::ffi::c_char;

fn attribute(attribute: i32, device: i32) -> Result<i32> {
    Ok(match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => 0x7fff_ffff,
        6 | 7 => 0xffff,
        8 => SHARED,
        9 => 65_536,
        10 => 32,
        11 => 0x7fff_ffff,
        12 | 82 => 65_536,
        // Clocks, in kHz.
        13 => 1_980_000,
        36 => 2_619_000,
        14 => 512,
        15 | 19 | 31 | 32 => 1,
        // Multiprocessors.
        16 => 132,
        17 | 18 | 20 => 0,
        // PCI bus, device, domain.
        33 => device + 1,
        34 | 50 => 0,
        37 => 5120,
        38 => 50 << 20,
        39 => 2048,
        40 => 3,
        // Unified addresses; priorities of streams.
        41 | 78 | 79 | 80 => 1,
        // Compute capability.
        75 => 9,
        76 => 0,
        81 => 228 << 10,
        // No managed memory; no access to pageable memory.
        83 | 88 | 89 | 100 | 101 => 0,
        86 => 0,
        87 => 2,
        90 | 91 | 92 | 93 | 94 | 95 | 98 | 99 | 102 | 103 | 113 => 1,
        97 => SHARED_OPTIN,
        106 => 32,
        111 => 1024,
        // Memory pools.
        115 => 1,
        116..=118 => 0,
        119 => 1,
        other if (1..=200).contains(&other) => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Writes a text that ends with zero into so much room.
fn put(text: &str, to: Out<c_char>, room: i32) -> Result {
    let room = usize::try_from(room).ok().filter(|room| *room > 0).ok_or(Code::INVALID_VALUE)?;
    let bytes = text.bytes().take(room - 1).chain([0]);
    bytes.enumerate().try_for_each(|(index, byte)| to.at(index).set(byte as c_char))
}

crate::entries! {
    fn cuDeviceGetCount(count: Out<i32>) {
        count.set(SETTINGS.devices)
    }

    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        lock().device(ordinal)?;
        device.set(ordinal)
    }

    fn cuDeviceGetName(name: Out<c_char>, room: i32, device: i32) {
        lock().device(device)?;
        put("Fake CUDA device", name, room)
    }

    fn cuDeviceGetAttribute(value: Out<i32>, which: i32, device: i32) {
        lock().device(device)?;
        value.set(attribute(which, device)?)
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        lock().device(device)?;
        bytes.set(SETTINGS.memory as usize)
    }

    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) {
        lock().device(device)?;
        let mut bytes = *b"fake-cuda-gpu-00";
        bytes[15] += device as u8;
        uuid.set(bytes)
    }

    fn cuDeviceGetPCIBusId(id: Out<c_char>, room: i32, device: i32) {
        lock().device(device)?;
        put(&format!("0000:{:02X}:00.0", device + 1), id, room)
    }

    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: i32) {
        let found = lock().device(device)?.pool;
        pool.set(found)
    }

    fn cuDeviceGetMemPool(pool: Out<Handle>, device: i32) {
        let found = lock().device(device)?.pool;
        pool.set(found)
    }

    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        let mut world = lock();
        world.device(device)?;
        world.device(peer)?;
        can.set(i32::from(device != peer && SETTINGS.has_peers))
    }
}
