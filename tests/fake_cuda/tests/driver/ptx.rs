//! Kernels of PTX: parameters, variables, faults, and conditions of graphs.

use crate::cuda::*;
use crate::{call, ok};
use fake_cuda::abi::Handle;
use fake_cuda::testing::Driver;
use std::ffi::{CString, c_char, c_void};

const SCALE: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 data, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .u32 %r<8>;
    .reg .u64 %rd<5>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [count];
    setp.ge.u32 %p1, %r4, %r5;
    @%p1 ret;
    ld.param.u64 %rd1, [data];
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r6, [%rd3];
    ld.global.u32 %r7, [factor];
    mul.lo.u32 %r6, %r6, %r7;
    st.global.u32 [%rd3], %r6;
    ret;
}
";

fn load(text: &str) -> Handle {
    let text = CString::new(text).unwrap();
    let mut module = Handle::NULL;
    ok!(cuModuleLoadData(out(&mut module), text.as_ptr()));
    module
}

#[test]
fn a_kernel_of_ptx_runs_and_is_checked() {
    let test = "ptx::a_kernel_of_ptx_runs_and_is_checked";
    let Some(run) = Driver::new().set("RACES", "report").child(test) else {
        start();
        let (stream, module) = (stream(), load(SCALE));
        let scale = named(module, "scale");
        let (mut offset, mut bytes) = (0usize, 0usize);
        ok!(cuFuncGetParamInfo(scale, 1usize, out(&mut offset), out(&mut bytes)));
        assert_eq!((offset, bytes), (8, 4));
        assert_eq!(call!(cuFuncGetParamInfo(scale, 2usize, out(&mut offset), out(&mut bytes))), 1);
        let (address, values) = (memory(400), (0..100).collect::<Vec<u32>>());
        ok!(cuMemcpyHtoDAsync_v2(address, values.as_ptr(), 400usize, stream));
        let run = |stream: Handle, count: u64| {
            let mut params = Params::new(&[address, count]);
            let none = std::ptr::null_mut::<*mut c_void>();
            ok!(cuLaunchKernel(scale, 4u32, 1u32, 1u32, 32u32, 1u32, 1u32, 0u32, stream, params.pointer(), none));
        };
        run(stream, 100);
        let mut factor = 0u64;
        ok!(cuModuleGetGlobal_v2(out(&mut factor), out(&mut bytes), module, c"factor".as_ptr()));
        assert_eq!(bytes, 4);
        ok!(cuMemsetD32Async(factor, 10u32, 1usize, stream));
        run(stream, 50);
        ok!(cuStreamSynchronize(stream));
        let results = read(address, 100);
        assert!((0..100).all(|i| results[i] == i as u32 * if i < 50 { 30 } else { 3 }), "{results:?}");
        assert_eq!(races(), [""; 0]);
        // What the kernel reads is known as it reads it: the variable's copy is not ordered behind it.
        let other = crate::cuda::stream();
        run(stream, 10);
        ok!(cuMemsetD32Async(factor, 1u32, 1usize, other));
        ok!(cuCtxSynchronize());
        let races = races();
        assert!(races.len() == 1 && races[0].contains("a module's variable"), "{races:?}");
        return;
    };
    run.succeeds();
}

#[test]
fn a_fault_names_kernel_and_memory() {
    let Some(run) = Driver::new().child("ptx::a_fault_names_kernel_and_memory") else {
        start();
        let scale = named(load(SCALE), "scale");
        let address = memory(4);
        let mut params = Params::new(&[address, 2]);
        let none = std::ptr::null_mut::<*mut c_void>();
        let stream = stream();
        ok!(cuLaunchKernel(scale, 1u32, 1u32, 1u32, 32u32, 1u32, 1u32, 0u32, stream, params.pointer(), none));
        assert_eq!(call!(cuStreamSynchronize(stream)), 700);
        return;
    };
    run.succeeds();
    assert!(run.output.contains("scale") && run.output.contains("cuMemAlloc #"), "{}", run.output);
}

#[test]
fn what_is_no_ptx_is_refused_with_a_text() {
    let test = "ptx::what_is_no_ptx_is_refused_with_a_text";
    let body = || {
        start();
        let load = |text: &str| {
            let text = CString::new(text).unwrap();
            let mut log = [0 as c_char; 200];
            let mut options = [5i32, 6];
            let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(200)];
            let mut module = Handle::NULL;
            let status = call!(cuModuleLoadDataEx(
                out(&mut module),
                text.as_ptr(),
                2u32,
                options.as_mut_ptr(),
                values.as_mut_ptr()
            ));
            // SAFETY: a text that ends within its room.
            (status, unsafe { std::ffi::CStr::from_ptr(log.as_ptr()) }.to_string_lossy().into_owned())
        };
        let (status, log) = load(&SCALE.replace("mad.lo.u32", "mad.low.u32"));
        assert!(status == 218 && log.contains("line"), "{status} {log}");
        let mut version = 0i32;
        ok!(cuDriverGetVersion(out(&mut version)));
        let (status, _) = load(&SCALE.replace(".version 7.0", ".version 8.7"));
        assert_eq!(status, if version == 13_000 { 0 } else { 222 });
        assert_eq!(load("\u{7f}ELF").0, 209);
    };
    for version in [12_000, 13_000] {
        let Some(run) = Driver::new().version(version).child(test) else { return body() };
        run.succeeds();
    }
}

const CHOOSE: &str = "
.version 7.0
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry choose(.param .u64 handle, .param .u64 flag)
{
    .reg .u32 %r<2>;
    .reg .u64 %rd<3>;
    ld.param.u64 %rd1, [handle];
    ld.param.u64 %rd2, [flag];
    ld.global.u32 %r1, [%rd2];
    {
        .param .b64 p0;
        .param .b32 p1;
        st.param.b64 [p0], %rd1;
        st.param.b32 [p1], %r1;
        call cudaGraphSetConditional, (p0, p1);
    }
    ret;
}
";

#[test]
fn old_drivers_do_not_know_what_sets_conditions() {
    let test = "ptx::old_drivers_do_not_know_what_sets_conditions";
    let Some(run) = Driver::new().version(12_020).child(test) else {
        start();
        let (mut module, text) = (Handle::NULL, std::ffi::CString::new(CHOOSE).unwrap());
        assert_eq!(call!(cuModuleLoadData(out(&mut module), text.as_ptr().cast::<std::ffi::c_void>())), 218);
        return;
    };
    run.succeeds();
}

#[test]
fn a_kernel_decides_for_its_graph() {
    let Some(run) = Driver::new().child("ptx::a_kernel_decides_for_its_graph") else {
        start();
        let (stream, fill, choose) = (stream(), function("fill"), named(load(CHOOSE), "choose"));
        let (flag, address, graph) = (memory(4), memory(4), graph());
        let handle = handle(graph, None);
        let first = add_kernel(graph, &[], choose, &[handle, flag]);
        let body = conditional(graph, &[first], handle, 0, 1).unwrap()[0];
        add_kernel(body, &[], fill, &[address, 1, 7]);
        let exec = instantiate(graph);
        ok!(cuMemsetD32_v2(address, 0u32, 1usize));
        for (value, expected) in [(0, 0), (1, 7)] {
            ok!(cuMemsetD32_v2(flag, value, 1usize));
            ok!(cuGraphLaunch(exec, stream));
            ok!(cuStreamSynchronize(stream));
            assert_eq!(read(address, 1), [expected]);
        }
        // Outside of its graph.
        assert_eq!(launch(choose, stream, &[handle, flag]), 0);
        assert_eq!(call!(cuStreamSynchronize(stream)), 700);
        return;
    };
    run.succeeds();
    assert!(run.output.contains("sets a conditional handle"), "{}", run.output);
}
