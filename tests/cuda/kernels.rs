//! Kernels that the host gives the source of.

use crate::bench::{Bench, KERNELS, LEN, input, number, output, output_elements};
use crate::kit::with_driver;
use weir_core::base::Code;

#[test]
fn a_kernel_of_the_hosts_is_launched_with_its_arguments() {
    for version in ["12000", "13000"] {
        let out = with_driver(&[("VERSION", version)], || {
            let bench = Bench::new();
            let x = bench.on_device().unwrap();
            bench.stream.enqueue(bench.fill(41), vec![], vec![x.clone()]).unwrap();
            bench.stream.enqueue(bench.fill(42), vec![], vec![x.clone()]).unwrap();
            assert_eq!(bench.read(&x).unwrap(), vec![42; LEN]);
            let add = bench.add().unwrap();
            let (a, b) = (bench.on_device().unwrap(), bench.on_device().unwrap());
            let float = |value: f32| bench.on_host(move |i| (value + i as f32).to_bits() as i32);
            bench.stream.enqueue_copy(float(1.0), a.clone()).unwrap();
            bench.stream.enqueue_copy(float(2.0), b.clone()).unwrap();
            bench.stream.enqueue(add, vec![a, b], vec![x.clone()]).unwrap();
            let sums = bench.read(&x).unwrap();
            assert!((0..LEN).all(|i| f32::from_bits(sums[i] as u32) == 3.0 + 2.0 * i as f32));
        });
        if out.is_none() {
            return;
        }
    }
}

#[test]
fn arguments_that_are_not_the_entrys_are_refused() {
    with_driver(&[], || {
        let bench = Bench::new();
        let refused = |arguments: &[_], code, text: &str| {
            let error = bench.kernel("fill", 0, arguments).map(drop).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().contains(text), "'{}', expected '{text}'", error.message());
        };
        let (short, word, long) = ([1u8], [1u32], [1u64]);
        let all = [output(0), output_elements(0), number(&word)];
        refused(&all[..2], Code::InvalidArgument, "desc->num_arguments is 2, the entry has more parameters");
        let more = [output(0), output_elements(0), number(&word), number(&word)];
        refused(&more, Code::InvalidArgument, "desc->num_arguments is 4, the entry has 3 parameters");
        let wrong = "desc->arguments[2] has 8 bytes, the entry's parameter 4";
        refused(&[output(0), output_elements(0), number(&long)], Code::InvalidArgument, wrong);
        let wrong = "desc->arguments[2] has 1 bytes, the entry's parameter 4";
        refused(&[output(0), output_elements(0), number(&short)], Code::InvalidArgument, wrong);
        refused(&[input(0)], Code::OutOfRange, "desc->arguments[0]: index is 0, the kernel has 0 inputs");
        refused(&[output(3)], Code::OutOfRange, "desc->arguments[0]: index is 3, the kernel has 1 outputs");
        let error = bench.kernel("nothing", 0, &all).map(drop).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{error}");
        assert!(error.message().contains("entry 'nothing': cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"), "{error}");
        let wrong = KERNELS.replace("add.rn.f32", "bad.rn.f32");
        let error = bench.kernel_of(&wrong, "fill", 0, &all).map(drop).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().contains("CUDA_ERROR_INVALID_PTX (218, "), "{error}");
        assert!(error.message().contains("bad"), "the driver's words: {error}");
    });
}

#[test]
fn functions_of_the_host_and_unknown_operations_are_refused() {
    with_driver(&[], || {
        use weir_core::device::Operation;
        use weir_core::engine::{BoundKernel, KernelIdentity, KernelOptions};
        use weir_core::kernel::builtin::Builtin;
        use weir_core::ops::Select;
        let bench = Bench::new();
        let host = (Operation::Host, "runs no functions of the host's");
        for (operation, text) in [host, (Operation::Named("nonsense", &[]), "'nonsense'")] {
            let kernel = std::sync::Arc::new(Builtin::new(Select));
            let operation = KernelIdentity::of(operation);
            let engine = bench.engine.clone();
            let error =
                BoundKernel::create_as(engine, kernel, operation, &KernelOptions::default()).map(drop).unwrap_err();
            assert_eq!(error.code(), Code::Unimplemented, "{error}");
            assert!(error.message().contains(text), "{error}");
        }
    });
}
