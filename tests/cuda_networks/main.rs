//! The networks of the examples wholly on a CUDA device, by the library's own kernels: the digits classes and the
//! voice's probabilities that the processor gives. The driver is the fake one, which runs the real PTX.
#![cfg(feature = "cuda")]

mod digits;
mod kit;
mod voice;

use fake_cuda::testing::Driver;
use kit::{CPU, CUDA, Device};
use std::process::Command;

/// With this in the environment products are a library's.
const LIBRARY: &str = "WEIR_CUDA_BLAS";

/// The same with a library of products.
fn on_driver_with_library(test: &str, body: impl FnOnce()) {
    if std::env::var_os("WEIR_TEST_CUDA").is_some() {
        return body();
    }
    let driver = Driver::new().library(fake_blas::BUILT_AS, "libcublasLt.so.13", &[]).variable(LIBRARY, "1");
    let Some(run) = driver.set("RACES", "abort").child(test) else { return body() };
    run.succeeds();
    // The library loads its kernels so, with its first product.
    assert!(run.count("cuModuleLoadData") > 0);
}

/// Runs the test in a process of its own, which finds the fake driver and has it do so many kernels at least. With
/// WEIR_TEST_CUDA=1, on the driver that there is.
fn on_driver(test: &str, kernels: usize, body: impl FnOnce()) {
    if std::env::var_os("WEIR_TEST_CUDA").is_some() {
        if std::env::var_os(LIBRARY).is_some_and(|value| value == "0") {
            return body();
        }
        // Others in this process may use the library.
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args([test, "--exact", "--nocapture"]).env(LIBRARY, "0").output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{}:\n    {}",
            output.status,
            text.replace('\n', "\n    ")
        );
        return;
    }
    let Some(run) = Driver::new().set("RACES", "abort").child(test) else { return body() };
    run.succeeds();
    let done = run.count("cuLaunchKernel") + run.count("cuGraphAddKernelNode_v2");
    assert!(done >= kernels, "{done} kernels on the device, wanted {kernels}");
}

#[track_caller]
fn near(what: &str, want: &[f32], got: &[f32], most: f32) {
    assert_eq!(want.len(), got.len());
    for (i, (want, got)) in want.iter().zip(got).enumerate() {
        assert!((want - got).abs() <= most * want.abs().max(1.0), "{what} {i}: {got}, the processor has {want}");
    }
}

#[test]
fn digits_are_what_the_processor_reads() {
    on_driver("digits_are_what_the_processor_reads", 5, || {
        let (processor, device) = (Device::new(CPU), Device::new(CUDA));
        let (want, got) = (digits::read(&processor), digits::read(&device));
        // Sums are those of the processor, in its order; exponentials may be another instruction set's.
        near("logit", &want.logits, &got.logits, 1e-5);
        near("probability", &want.probabilities, &got.probabilities, 1e-5);
        assert_eq!(want.classes, got.classes);
        assert!(want.right >= want.classes.len() - 1, "{} of {} digits", want.right, want.classes.len());
    });
}

#[test]
fn digits_are_the_same_with_products_of_a_library() {
    on_driver_with_library("digits_are_the_same_with_products_of_a_library", || {
        let (processor, device) = (Device::new(CPU), Device::new(CUDA));
        let (want, got) = (digits::read(&processor), digits::read(&device));
        near("logit", &want.logits, &got.logits, 1e-4);
        near("probability", &want.probabilities, &got.probabilities, 1e-4);
        assert_eq!(want.classes, got.classes);
    });
}

#[test]
fn the_voice_is_what_the_processor_hears() {
    // For each rate a comparison, and the ten nodes of a half that do not only rename: spectrum, magnitude, four
    // convolutions, cell, rectifier, sum, mean.
    on_driver("the_voice_is_what_the_processor_hears", 2 * (1 + 10), || {
        let (processor, device) = (Device::new(CPU), Device::new(CUDA));
        for rate in [16_000, 8_000] {
            let (want, got) = (voice::hear(&processor, rate), voice::hear(&device, rate));
            for (want, got) in want.iter().zip(&got) {
                near("probability", &want[0], &got[0], 1e-5);
                near("hidden", &want[1], &got[1], 1e-5);
                near("cell", &want[2], &got[2], 1e-5);
            }
        }
    });
}
