//! Machines without CUDA, or without enough of it: no engines, and a text that says why.

use crate::kit::{with_driver, without_driver};
use weir_core::base::Code;
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, count};

/// There are no CUDA engines, for this reason, and asking again says the same.
fn none(why: &str) {
    for _ in 0..2 {
        assert_eq!(count(DeviceKind::CUDA), 0);
        let error = Engine::create(DeviceKind::CUDA, 0, None).unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        let text = format!("this machine has no cuda device: {why}");
        assert!(error.message().starts_with(&text), "'{}', expected '{text}'", error.message());
    }
    // Nothing else is the worse for it.
    Engine::create(DeviceKind::CPU, 0, None).unwrap();
}

#[test]
fn without_a_driver() {
    without_driver(|| match weir_core::device::count(DeviceKind::CUDA) {
        0 => none(""),
        _ => println!("this machine has a driver of its own"),
    });
}

#[test]
fn the_stub_of_the_toolkit() {
    with_driver(&[("FAIL", "cuInit:*:34")], || none("libcuda is the stub of the CUDA toolkit"));
}

#[test]
fn a_driver_that_does_not_start() {
    with_driver(&[("FAIL", "cuInit:*:999")], || none("cuInit: CUDA_ERROR_UNKNOWN (999, "));
}

#[test]
fn a_driver_without_a_device() {
    with_driver(&[("DEVICES", "0"), ("VERSION", "12040")], || {
        none("the driver, of CUDA 12.4, has no device for this process");
    });
}

#[test]
fn an_old_driver() {
    with_driver(&[("VERSION", "11080"), ("DEVICES", "1")], || {
        none("the driver is for CUDA 11.8, weir needs 12.0 or later")
    });
}

#[test]
fn a_variable_that_means_nothing() {
    with_driver(&[("WEIR_CUDA_SYNC", "yes")], || {
        none("the environment variable WEIR_CUDA_SYNC is 'yes', expected 0 or 1");
    });
}
