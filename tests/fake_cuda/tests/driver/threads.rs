//! Several threads of the host at once, each with streams of its own.

use crate::cuda::*;
use crate::{call, ok};
use fake_cuda::abi::Handle;
use fake_cuda::testing::Driver;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::*};

const THREADS: u32 = 4;
const ROUNDS: u32 = 60;
const WORDS: usize = 64;

static CALLED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn called(_: *mut c_void) {
    CALLED.fetch_add(1, SeqCst);
}

fn work(context: Handle, fill: Handle, increment: Handle, number: u32) {
    ok!(cuCtxSetCurrent(context));
    let (a, b, done, held) = (stream(), stream(), event(), pinned(WORDS));
    for round in 0..ROUNDS {
        let value = number * 1000 + round;
        let mut address = 0u64;
        ok!(cuMemAllocAsync(out(&mut address), WORDS * 4, a));
        assert_eq!(launch(fill, a, &[address, WORDS as u64, u64::from(value)]), 0);
        ok!(cuEventRecord(done, a));
        ok!(cuStreamWaitEvent(b, done, 0u32));
        assert_eq!(launch(increment, b, &[address, WORDS as u64, 1]), 0);
        ok!(cuMemcpyDtoHAsync_v2(held.as_mut_ptr(), address, WORDS * 4, b));
        ok!(cuMemFreeAsync(address, b));
        ok!(cuLaunchHostFunc(b, called as unsafe extern "C" fn(*mut c_void), std::ptr::null_mut::<c_void>()));
        match round % 3 {
            0 => ok!(cuStreamSynchronize(b)),
            1 => {
                ok!(cuEventRecord(done, b));
                ok!(cuEventSynchronize(done));
            }
            _ => {
                ok!(cuEventRecord(done, b));
                while call!(cuEventQuery(done)) == 600 {}
            }
        }
        assert_eq!(held, [value + 1; WORDS]);
    }
    ok!(cuMemFreeHost(held.as_mut_ptr()));
    ok!(cuEventDestroy_v2(done));
    ok!(cuStreamDestroy_v2(a));
    ok!(cuStreamDestroy_v2(b));
}

#[test]
fn threads_share_a_context() {
    for seed in ["", "1"] {
        let driver = Driver::new().set("SEED", seed).set("LEAKS", "abort");
        let Some(run) = driver.child("threads::threads_share_a_context") else {
            let context = start();
            let module = module(&["fill", "increment"]);
            let (fill, increment) = (named(module, "fill"), named(module, "increment"));
            std::thread::scope(|scope| {
                (0..THREADS).for_each(|number| {
                    scope.spawn(move || work(context, fill, increment, number));
                });
            });
            assert_eq!(CALLED.load(SeqCst), THREADS * ROUNDS);
            ok!(cuModuleUnload(module));
            end();
            return;
        };
        run.succeeds();
        assert_eq!(run.count("cuMemAllocAsync"), (THREADS * ROUNDS) as usize);
    }
}
