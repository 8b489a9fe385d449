//! Whether the process may use AMX.
//!
//! The registers of AMX are 8 KiB. The system grants them to a process that requests them (`arch_prctl`), once and for
//! all its threads. The price is paid by the process, so only the host decides:
//!
//! - An alternate signal stack must be large enough for them from then on (`AT_MINSIGSTKSZ`, about 12 KiB instead of
//!   3.5 KiB). `sigaltstack` refuses smaller ones with ENOMEM, SIGSTKSZ of an old header (8 KiB) among them; and the
//!   system refuses to grant the registers to a process that has a thread with a smaller one already.
//! - The frame of a signal that interrupts a thread using the registers grows by as much, also on the thread's own
//!   stack. Pool threads with stacks of 16 KiB have too little.
//! - The state that a thread saves when it is descheduled includes them only while they are in use, which is during a
//!   piece of a product. The permission is inherited by a fork and lost with an exec.
//!
//! So weir requests them only if the environment variable WEIR_MAX_ISA is "amx". It also uses an existing permission:
//! if the process has it already when a kernel first looks, by the host or by another library, the level is available.
//! If the system refuses, as before Linux 5.16, the level is silently unavailable.

use std::arch::x86_64::__cpuid_count;

/// The state components of AMX: the configuration, and the registers.
const COMPONENT: libc::c_ulong = 18;
const BITS: u64 = 3 << 17;
const ARCH_GET_XCOMP_PERM: libc::c_ulong = 0x1022;
const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;

/// Whether the processor has int8 products in 8 registers of 16 rows of 64 bytes.
fn has() -> bool {
    const TILE_AND_INT8: u32 = 3 << 24;
    if __cpuid_count(0, 0).eax < 0x1d || __cpuid_count(7, 0).edx & TILE_AND_INT8 != TILE_AND_INT8 {
        return false;
    }
    let palette = __cpuid_count(0x1d, 1);
    // Bytes of a register; bytes of a row and number of registers; rows.
    palette.eax >> 16 == 1024 && palette.ebx == 8 << 16 | 64 && palette.ecx & 0xffff == 16
}

/// The features that the system permits; none if the system does not know the call.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    let mut bits = 0u64;
    // SAFETY: the call writes a word.
    let error = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &raw mut bits) };
    error == 0 && bits & BITS == BITS
}

#[cfg(target_os = "linux")]
fn request() {
    // SAFETY: the call takes numbers.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, COMPONENT) };
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn request() {}

/// Whether int8 products may use AMX. If it may `ask`, it requests the permission.
pub fn usable(ask: bool) -> bool {
    if !has() {
        return false;
    }
    if ask && !permitted() {
        request();
    }
    permitted()
}
