//! Devices, contexts, memory, modules, launches: one stream at a time.

use crate::cuda::*;
use crate::{call, ok};
use fake_cuda::abi::{Handle, PoolProps};
use fake_cuda::testing::Driver;
use std::ffi::{CStr, c_char, c_void};

#[test]
fn a_kernel_runs_on_copied_memory() {
    let Some(run) = Driver::new().set("LEAKS", "abort").child("basics::a_kernel_runs_on_copied_memory") else {
        let context = start();
        let (stream, add) = (stream(), function("add"));
        let [a, b, sum] = [memory(400), memory(400), memory(400)];
        let values: Vec<f32> = (0..100).map(|i| i as f32).collect();
        ok!(cuMemcpyHtoDAsync_v2(a, values.as_ptr(), 400usize, stream));
        ok!(cuMemsetD32Async(b, 1.5f32.to_bits(), 100usize, stream));
        assert_eq!(launch(add, stream, &[sum, a, b, 100]), 0);
        let mut results = vec![0f32; 100];
        ok!(cuMemcpyDtoHAsync_v2(results.as_mut_ptr(), sum, 400usize, stream));
        // To pageable memory: it is there already.
        assert!(results.iter().enumerate().all(|(i, result)| *result == i as f32 + 1.5));
        let mut of = Handle::NULL;
        ok!(cuStreamGetCtx(stream, out(&mut of)));
        assert_eq!(of, context);
        let mut module = Handle::NULL;
        ok!(cuFuncGetModule(out(&mut module), add));
        ok!(cuModuleUnload(module));
        assert_eq!(launch(add, stream, &[sum, a, b, 100]), 400, "the function went with its module");
        [a, b, sum].iter().for_each(|address| ok!(cuMemFree_v2(*address)));
        ok!(cuStreamDestroy_v2(stream));
        assert_eq!(call!(cuStreamDestroy_v2(stream)), 400);
        end();
        return;
    };
    run.succeeds();
    assert_eq!((run.count("cuLaunchKernel"), run.count("cuMemAlloc_v2")), (2, 3));
    assert!(run.log.contains(&"cuStreamDestroy_v2(stream#1) = 400".to_owned()), "{:?}", run.log);
}

#[test]
fn rules_of_contexts_hold() {
    let Some(run) = Driver::new().child("basics::rules_of_contexts_hold") else {
        let mut count = 0i32;
        assert_eq!(call!(cuDeviceGetCount(out(&mut count))), 3, "not initialized");
        ok!(cuInit(0u32));
        ok!(cuDeviceGetCount(out(&mut count)));
        assert_eq!(count, 1);
        let mut stream = Handle::NULL;
        assert_eq!(call!(cuStreamCreate(out(&mut stream), 1u32)), 201, "no context is current");
        let (mut flags, mut active) = (9u32, 9i32);
        ok!(cuDevicePrimaryCtxGetState(0i32, out(&mut flags), out(&mut active)));
        assert_eq!((flags, active), (0, 0));
        let context = start();
        ok!(cuStreamCreate(out(&mut stream), 1u32));
        std::thread::spawn(move || {
            let mut current = context;
            ok!(cuCtxGetCurrent(out(&mut current)));
            assert!(current.is_null(), "each thread has its own");
            assert_eq!(call!(cuStreamSynchronize(stream)), 201);
            ok!(cuCtxPushCurrent_v2(context));
            ok!(cuStreamSynchronize(stream));
            ok!(cuCtxPopCurrent_v2(out(&mut current)));
            assert_eq!(current, context);
            assert_eq!(call!(cuCtxPopCurrent_v2(out(&mut current))), 201);
        })
        .join()
        .unwrap();
        // A stream of another context.
        let mut other = Handle::NULL;
        ok!(cuCtxCreate_v2(out(&mut other), 0u32, 0i32));
        assert_eq!(call!(cuStreamSynchronize(stream)), 400);
        ok!(cuCtxDestroy_v2(other));
        let mut current = Handle::NULL;
        ok!(cuCtxGetCurrent(out(&mut current)));
        assert_eq!(current, context);
        end();
        assert_eq!(call!(cuStreamSynchronize(stream)), 709, "the context has ended");
        assert_eq!(call!(cuDevicePrimaryCtxRelease_v2(0i32)), 201);
        return;
    };
    run.succeeds();
    assert!(run.output.contains("not given back: stream#1, as context#1 ended"), "{}", run.output);
}

#[test]
fn errors_have_names() {
    let Some(run) = Driver::new().child("basics::errors_have_names") else {
        let mut text = std::ptr::null::<c_char>();
        ok!(cuGetErrorName(700i32, out(&mut text)));
        // SAFETY: a text that stays.
        assert_eq!(unsafe { CStr::from_ptr(text) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
        ok!(cuGetErrorString(0i32, out(&mut text)));
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(text) }, c"no error");
        assert_eq!(call!(cuGetErrorName(12345i32, out(&mut text))), 1);
        assert!(text.is_null());
        return;
    };
    run.succeeds();
}

#[test]
fn functions_are_found_by_version() {
    let test = "basics::functions_are_found_by_version";
    let find = |name: &CStr, version: i32| {
        let (mut found, mut result) = (std::ptr::null_mut::<c_void>(), 9i32);
        let status = call!(cuGetProcAddress_v2(name.as_ptr(), out(&mut found), version, 0u64, out(&mut result)));
        (status, found, result)
    };
    let body = || {
        let (old, new) = (find(c"cuEventElapsedTime", 12_000), find(c"cuEventElapsedTime", 13_000));
        assert_eq!(old.1, symbol("cuEventElapsedTime").unwrap());
        let mut version = 0i32;
        ok!(cuDriverGetVersion(out(&mut version)));
        match version {
            13_000 => assert_eq!(new.1, symbol("cuEventElapsedTime_v2").unwrap()),
            12_000 => {
                assert!(symbol("cuEventElapsedTime_v2").is_none() && symbol("cuGraphAddNode_v2").is_none());
                assert_eq!(new.1, old.1);
                assert_eq!(find(c"cuFuncGetParamInfo", 13_000), (500, std::ptr::null_mut(), 1));
            }
            other => panic!("{other}"),
        }
        assert_eq!(find(c"cuMemAlloc", 12_000).1, symbol("cuMemAlloc_v2").unwrap());
        assert_eq!(find(c"cuMemAlloc_v2", 12_000).0, 500, "names are without versions");
        assert_eq!(find(c"cuMemPoolCreate", 12_000).0, 500, "left out");
        assert!(symbol("cuMemPoolCreate").is_none());
        assert_eq!(find(c"cuGraphConditionalHandleCreate", 12_000).2, if version == 13_000 { 2 } else { 1 });
    };
    for version in [12_000, 13_000] {
        match Driver::new().version(version).without("cuMemPoolCreate").child(test) {
            Some(run) => {
                run.succeeds();
            }
            None => return body(),
        }
    }
}

#[test]
fn memory_of_devices_is_not_the_hosts() {
    let test = "basics::memory_of_devices_is_not_the_hosts";
    let Some(run) = Driver::new().child(test) else {
        start();
        let address = memory(64);
        // SAFETY: none: this is to fault.
        unsafe { std::ptr::write_volatile(address as *mut u8, 1) };
        return;
    };
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(run.status.signal(), Some(libc::SIGSEGV), "{}", run.output);
}

#[test]
fn a_kernels_fault_loses_the_context() {
    let Some(run) = Driver::new().child("basics::a_kernels_fault_loses_the_context") else {
        start();
        let (stream, fill) = (stream(), function("fill"));
        let address = memory(64);
        assert_eq!(launch(fill, stream, &[address, 17, 1]), 0, "one word too many: that shows later");
        assert_eq!(call!(cuStreamSynchronize(stream)), 700);
        assert_eq!(call!(cuMemAlloc_v2(out(&mut 0u64), 4usize)), 700);
        assert_eq!(call!(cuStreamQuery(stream)), 700);
        end();
        start();
        memory(4);
        return;
    };
    run.succeeds();
    assert!(run.output.contains("fill"), "{}", run.output);
    assert!(run.output.contains("bytes 64..68 of the 64 of cuMemAlloc #1") || run.output.contains("nobody allocated"));
}

#[test]
fn asked_for_failures_come() {
    let driver = Driver::new().set("FAIL", "cuMemAlloc_v2:2:2,cuStreamCreateWithPriority:1:700");
    let Some(run) = driver.child("basics::asked_for_failures_come") else {
        start();
        memory(4);
        let mut address = 0u64;
        assert_eq!(call!(cuMemAlloc_v2(out(&mut address), 4usize)), 2);
        memory(4);
        let mut stream = Handle::NULL;
        assert_eq!(call!(cuStreamCreateWithPriority(out(&mut stream), 1u32, 0i32)), 700);
        assert_eq!(call!(cuMemAlloc_v2(out(&mut address), 4usize)), 700, "it stays");
        return;
    };
    run.succeeds();
    assert_eq!(run.count("cuMemAlloc_v2"), 4);
}

#[test]
fn a_machine_can_have_no_device_or_several() {
    let test = "basics::a_machine_can_have_no_device_or_several";
    for devices in [0, 3] {
        let Some(run) = Driver::new().set("DEVICES", devices).child(test) else {
            let status = call!(cuInit(0u32));
            if status == 100 {
                return;
            }
            let (mut count, mut device) = (0i32, 9i32);
            ok!(cuDeviceGetCount(out(&mut count)));
            assert_eq!((status, count), (0, 3));
            ok!(cuDeviceGet(out(&mut device), 2i32));
            assert_eq!(call!(cuDeviceGet(out(&mut device), 3i32)), 101);
            let mut name = [0 as c_char; 8];
            ok!(cuDeviceGetName(name.as_mut_ptr(), 8i32, device));
            // SAFETY: a text that ends within its room.
            assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }, c"Fake CU");
            return;
        };
        run.succeeds();
    }
}

#[test]
fn pools_count_what_they_gave() {
    let Some(run) = Driver::new().set("LEAKS", "abort").child("basics::pools_count_what_they_gave") else {
        start();
        let stream = stream();
        let props = PoolProps {
            alloc_type: 1,
            handle_types: 0,
            location_type: 1,
            location_id: 0,
            security_attributes: std::ptr::null_mut(),
            max_size: 0,
            reserved: [0; 56],
        };
        let mut pool = Handle::NULL;
        ok!(cuMemPoolCreate(out(&mut pool), &raw const props));
        let mut all = u64::MAX;
        ok!(cuMemPoolSetAttribute(pool, 4i32, (&raw mut all).cast::<c_void>()));
        let mut address = 0u64;
        ok!(cuMemAllocFromPoolAsync(out(&mut address), 1000usize, pool, stream));
        ok!(cuMemsetD8Async(address, 7u8, 1000usize, stream));
        let mut used = 0u64;
        ok!(cuMemPoolGetAttribute(pool, 7i32, (&raw mut used).cast::<c_void>()));
        assert_eq!(used, 1000);
        ok!(cuStreamSynchronize(stream));
        assert_eq!(read(address, 1), [0x0707_0707]);
        ok!(cuMemFreeAsync(address, stream));
        ok!(cuMemPoolGetAttribute(pool, 7i32, (&raw mut used).cast::<c_void>()));
        assert_eq!(used, 0);
        ok!(cuStreamSynchronize(stream));
        assert_eq!(call!(cuMemFreeAsync(address, stream)), 1);
        let mut kind = 0u32;
        assert_eq!(call!(cuPointerGetAttribute((&raw mut kind).cast::<c_void>(), 2i32, address)), 1);
        ok!(cuMemPoolDestroy(pool));
        ok!(cuStreamDestroy_v2(stream));
        end();
        return;
    };
    run.succeeds();
}

#[test]
fn a_forked_child_has_no_driver() {
    let Some(run) = Driver::new().child("basics::a_forked_child_has_no_driver") else {
        start();
        // SAFETY: the child only calls the driver and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let status = call!(cuMemAlloc_v2(out(&mut 0u64), 4usize));
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: the child from above, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 3);
        memory(4);
        return;
    };
    run.succeeds();
}

#[test]
fn other_programs_run_with_the_driver() {
    let test = "basics::other_programs_run_with_the_driver";
    if std::env::var_os("FAKE_CUDA_CHILD").is_some() {
        let mut version = 0i32;
        ok!(cuDriverGetVersion(out(&mut version)));
        assert_eq!((version, call!(cuInit(0u32))), (12_040, 100));
        assert!(symbol("cuMemPoolCreate").is_none());
        return;
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_with-fake-cuda"));
    command.args(["--version", "12040", "--without", "cuMemPoolCreate", "DEVICES=0"]);
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact"]).env("FAKE_CUDA_CHILD", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
}
