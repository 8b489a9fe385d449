//! The same calls by a CUDA engine: with WEIR_TEST_CUDA=1, on the driver that the loader finds.

use crate::kit::*;
use fake_cuda::testing::Driver;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use weir_core::abi::weir_status;
use weir_core::base::Desc;

const WANTED: &str = "WEIR_TEST_CUDA";

/// Whether products may be a library's, which adds in another order.
pub fn has_library() -> bool {
    is_wanted() && std::env::var_os("WEIR_CUDA_BLAS").is_none_or(|value| value != "0")
}

pub fn is_wanted() -> bool {
    std::env::var_os(WANTED).is_some()
}

unsafe extern "C" {
    fn weir_enqueue_copy(stream: *mut Stream, source: *mut Held, target: *mut Held) -> weir_status;
    fn weir_enqueue_fill(stream: *mut Stream, tensor: *mut Held, value: u8) -> weir_status;
    fn weir_stream_synchronize(stream: *mut Stream, timeout_ns: i64) -> weir_status;
}

fn cuda() -> *mut Engine {
    static ENGINE: OnceLock<usize> = OnceLock::new();
    *ENGINE.get_or_init(|| {
        let mut engine = null_mut();
        // SAFETY: a place for the answer.
        ok(unsafe { weir_engine_create(2, 0, null(), &raw mut engine) });
        engine as usize
    }) as *mut Engine
}

/// The outputs of a call on tensors in the device's memory, by its second time: while the first is under way, and as
/// prepared then.
pub fn call<D>(create: Create<D>, desc: &D, inputs: &[Tensor], outputs: &[Desc]) -> Vec<Tensor> {
    let (engine, processor, mut kernel, mut stream) = (cuda(), engine(), null_mut(), null_mut());
    // SAFETY: places for the answers, and a descriptor that lives during the call.
    unsafe {
        ok(create(engine, desc, null(), &raw mut kernel));
        ok(weir_stream_create(engine, 0, null(), &raw mut stream));
    }
    let mut tensors: Vec<Tensor> = inputs.to_vec();
    tensors.extend(outputs.iter().map(|&desc| Tensor::zeroed(desc)));
    let mut memory: Vec<Vec<u64>> = tensors.iter().map(words).collect();
    let handles = tensors.iter().zip(&mut memory).map(|(tensor, memory)| {
        let (mut held, mut host) = (null_mut(), null_mut());
        // SAFETY: memory of the tensor's size, which lives until the stream has waited.
        unsafe {
            ok(weir_tensor_create(engine, &raw const tensor.desc, null(), &raw mut held));
            ok(weir_tensor_create(processor, &raw const tensor.desc, &over(memory), &raw mut host));
        }
        (held, host)
    });
    let handles: Vec<(*mut Held, *mut Held)> = handles.collect();
    let held: Vec<_> = handles.iter().map(|(held, _)| *held).collect();
    let (from, to) = held.split_at(inputs.len());
    // SAFETY: handles from above, which the stream has done with when it has waited.
    unsafe {
        handles[..inputs.len()].iter().for_each(|&(held, host)| ok(weir_enqueue_copy(stream, host, held)));
        let enqueue = || ok(weir_enqueue(stream, kernel, from.as_ptr(), from.len(), to.as_ptr(), to.len()));
        enqueue();
        to.iter().for_each(|&held| ok(weir_enqueue_fill(stream, held, 0xa5)));
        enqueue();
        handles[inputs.len()..].iter().for_each(|&(held, host)| ok(weir_enqueue_copy(stream, held, host)));
        ok(weir_stream_synchronize(stream, -1));
        for (held, host) in handles {
            weir_tensor_release(held);
            weir_tensor_release(host);
        }
        weir_stream_release(stream);
        weir_kernel_release(kernel);
    }
    for (tensor, memory) in tensors.iter_mut().zip(&mut memory) {
        let bytes = tensor.bytes.len();
        tensor.bytes.copy_from_slice(&as_bytes(memory)[..bytes]);
    }
    tensors.split_off(inputs.len())
}

#[test]
fn all_of_it_through_an_engine() {
    if is_wanted() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let run = Driver::new().set("RACES", "abort").variable(WANTED, "1").run(command.arg("--skip=images::")).unwrap();
    run.succeeds();
    assert!(run.count("cuLaunchKernel") > 1000, "{} launches", run.count("cuLaunchKernel"));
}

#[test]
fn products_by_a_library() {
    if is_wanted() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let driver = Driver::new().library(fake_blas::BUILT_AS, "libcublasLt.so.12", &[]).variable("WEIR_CUDA_BLAS", "1");
    let run = driver.set("RACES", "abort").variable(WANTED, "1").run(command.arg("products::")).unwrap();
    run.succeeds();
    // Kernels of the library's have one thread.
    let is_a_product = |line: &&String| line.starts_with("cuLaunchKernel(") && line.contains(", 1, 1, 1, 1, 1, 1, ");
    let products = run.log.iter().filter(is_a_product).count();
    assert!(products > 80, "{products} products by the library");
}
