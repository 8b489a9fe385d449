//! Kernels from closures, and operators, on streams.

mod kit;

use kit::{desc, engines, numbers};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use weir::{DType, Element, Engine, Error, ErrorKind, Kernel, OPEN, Stream, Tensor, TensorDesc, ops};

/// A kernel of this closure, with an input and an output of four numbers.
fn kernel(engine: &Engine, compute: impl Fn(&weir::Call) -> weir::Result<()> + Send + Sync + 'static) -> Kernel {
    Kernel::from_fn(engine, "four", &[desc(4)], &[desc(4)], compute).unwrap()
}

/// The failure of the kernel, on a synchronous stream and on an asynchronous one.
fn failures(cpu: &Engine, kernel: &Kernel) -> [Error; 2] {
    [Stream::new(cpu), Stream::asynchronous(cpu)].map(|stream| {
        let (stream, x, mut y) = (stream.unwrap(), numbers(cpu, &[1.0; 4]), numbers(cpu, &[0.0; 4]));
        stream.enqueue(kernel, &[&x], &mut [&mut y]).and_then(|()| stream.synchronize()).unwrap_err()
    })
}

#[test]
fn a_closure_computes_on_every_pool() {
    for cpu in engines() {
        let many = TensorDesc::of::<i32>(&[1000]);
        let squares = Kernel::from_fn(&cpu, "squares", &[many], &[many], |call| {
            let x = call.input::<i32>(0)?;
            call.parallel_chunks(call.output::<i32>(0)?, 7, 1000.0, |chunk, y| {
                for (i, y) in y.iter_mut().enumerate() {
                    *y = x[7 * chunk + i].pow(2);
                }
            })
        })
        .unwrap();
        let x = Tensor::from_vec(&cpu, &[1000], (0..1000).collect::<Vec<i32>>()).unwrap();
        for stream in [Stream::new(&cpu).unwrap(), Stream::asynchronous(&cpu).unwrap()] {
            let mut y = Tensor::new(&cpu, many).unwrap();
            stream.enqueue(&squares, &[&x], &mut [&mut y]).unwrap();
            assert_eq!(y.as_slice::<i32>().unwrap()[999], 998_001);
        }
    }
}

#[test]
fn a_failure_has_its_kind_and_its_text() {
    let cpu = Engine::cpu().unwrap();
    let refusing = kernel(&cpu, |_| Err(Error::new(ErrorKind::DataLoss, "the file\0is gone")));
    for error in failures(&cpu, &refusing) {
        assert_eq!(error.kind(), ErrorKind::DataLoss);
        assert!(error.message().contains("'four'") && error.message().contains("the file is gone"), "{error}");
    }
}

#[test]
fn a_panic_is_a_failure() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while it is dropped");
        }
    }
    let cpu = Engine::cpu().unwrap();
    let panicking = [
        kernel(&cpu, |_| panic!("number {}", 7)),
        kernel(&cpu, |_| std::panic::panic_any(Bomb)),
        kernel(&cpu, |call| call.parallel_for(100, 100_000.0, |_, _| panic!("number 7"))),
    ];
    for (i, kernel) in panicking.iter().enumerate() {
        for error in failures(&cpu, kernel) {
            assert_eq!(error.kind(), ErrorKind::Unknown);
            assert!(error.message().contains(["number 7", "panicked", "number 7"][i]), "{error}");
        }
    }
}

#[test]
fn a_capture_is_dropped_once_and_its_panic_stays() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            panic!("while it is dropped");
        }
    }
    let cpu = Engine::cpu().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = Counted(Arc::clone(&dropped));
    let first = kernel(&cpu, move |_| Err(Error::new(ErrorKind::Aborted, counted.0.load(SeqCst))));
    let second = first.clone();
    drop(first);
    assert_eq!(failures(&cpu, &second)[0].kind(), ErrorKind::Aborted);
    assert_eq!(dropped.load(SeqCst), 0);
    drop(second);
    assert_eq!(dropped.load(SeqCst), 1);
    // A kernel that is refused drops its closure too.
    let counted = Counted(Arc::clone(&dropped));
    let bad = TensorDesc::of::<f32>(&[1; 9]);
    let refused = Kernel::from_fn(&cpu, "bad", &[bad], &[], move |_| {
        counted.0.load(SeqCst);
        Ok(())
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(dropped.load(SeqCst), 2);
}

#[test]
fn access_to_arguments_is_checked() {
    let cpu = Engine::cpu().unwrap();
    let checking = kernel(&cpu, |call| {
        assert_eq!(call.input::<i32>(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(call.input::<f32>(1).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(call.output::<f32>(64).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(call.output::<u8>(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(call.allocate_output::<u8>(0, &[4]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(call.input_desc(0)?, desc(4));
        assert_eq!(call.output_desc(0)?, desc(4));
        call.output::<f32>(0)?.copy_from_slice(call.input(0)?);
        assert_eq!(call.output::<f32>(0).unwrap_err().kind(), ErrorKind::FailedPrecondition);
        assert!(!call.is_cancelled());
        Ok(())
    });
    let (x, mut y) = (numbers(&cpu, &[1.0, 2.0, 3.0, 4.0]), numbers(&cpu, &[0.0; 4]));
    let stream = Stream::new(&cpu).unwrap();
    stream.enqueue(&checking, &[&x], &mut [&mut y]).unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let short = numbers(&cpu, &[1.0]);
    let error = stream.enqueue(&checking, &[&short], &mut [&mut y]).unwrap_err();
    assert!(error.message().contains("expected f32[4], got f32[1]"), "{error}");
}

#[test]
fn bools_are_bools_whatever_a_closure_leaves() {
    let cpu = Engine::cpu().unwrap();
    let flags = TensorDesc::of::<bool>(&[64]);
    let lazy = Kernel::from_fn(&cpu, "lazy", &[], &[flags], |call| call.output::<bool>(0).map(|_| ())).unwrap();
    let mut y = Tensor::from_slice(&cpu, &[64], &[true; 64]).unwrap();
    let stream = Stream::new(&cpu).unwrap();
    stream.enqueue(&lazy, &[], &mut [&mut y]).unwrap();
    assert_eq!(y.as_slice::<bool>().unwrap(), [false; 64]);
    assert_eq!(stream.fill(&mut y, 2).unwrap_err().kind(), ErrorKind::InvalidArgument);
    stream.fill(&mut y, 1).unwrap();
    assert_eq!(y.as_slice::<bool>().unwrap(), [true; 64]);
}

#[test]
fn operators_are_made_by_their_settings() {
    let cpu = Engine::cpu().unwrap();
    let a = Tensor::from_slice(&cpu, &[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let run = |kernel: weir::Result<Kernel>, inputs: &[&Tensor]| {
        let kernel = kernel.unwrap();
        let descs: Vec<_> = inputs.iter().map(|tensor| tensor.desc()).collect();
        let mut y = Tensor::new(&cpu, kernel.infer(&descs).unwrap()[0]).unwrap();
        Stream::new(&cpu).unwrap().enqueue(&kernel, inputs, &mut [&mut y]).unwrap();
        y
    };
    let sums = ops::Reduce { axes: &[-1], keep_dims: true, ..ops::Reduce::new(ops::ReduceOp::Sum) };
    let sums = run(Kernel::new(&cpu, &sums), &[&a]);
    assert_eq!((sums.desc().dims(), sums.as_slice::<f32>().unwrap()), (&[2, 1][..], &[6.0, 15.0][..]));
    let turned = run(Kernel::new(&cpu, &ops::Transpose::default()), &[&a]);
    assert_eq!(turned.as_slice::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let part = ops::Slice { begin: &[0, 1], end: &[2, 3], ..Default::default() };
    assert_eq!(run(Kernel::new(&cpu, &part), &[&a]).as_slice::<f32>().unwrap(), [2.0, 3.0, 5.0, 6.0]);
    let product = ops::Matmul { transpose_b: true, activation: ops::Activation::Relu, ..Default::default() };
    assert_eq!(run(Kernel::new(&cpu, &product), &[&a, &a]).as_slice::<f32>().unwrap(), [14.0, 32.0, 32.0, 77.0]);
    let weights = ops::PackedWeights::new(&cpu, &a, true).unwrap();
    let packed = ops::Matmul { weights: Some(weights), ..Default::default() };
    assert_eq!(run(Kernel::new(&cpu, &packed), &[&a]).as_slice::<f32>().unwrap(), [14.0, 32.0, 32.0, 77.0]);
    let less = run(Kernel::new(&cpu, &ops::Binary::new(ops::BinaryOp::Lt)), &[&a, &a]);
    assert_eq!(less.as_slice::<bool>().unwrap(), [false; 6]);
    let whole = run(Kernel::new(&cpu, &ops::Convert::new(DType::I32)), &[&a]);
    assert_eq!(whole.as_slice::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
    let nearest = ops::Convert { rounding: ops::Rounding::Nearest, scale: 0.3, ..ops::Convert::new(DType::I64) };
    assert_eq!(run(Kernel::new(&cpu, &nearest), &[&a]).as_slice::<i64>().unwrap(), [0, 1, 1, 1, 2, 2]);
    let thirds = ops::Binary { rounding: ops::Rounding::Floor, ..ops::Binary::new(ops::BinaryOp::Rem) };
    assert_eq!(run(Kernel::new(&cpu, &thirds), &[&whole, &whole]).as_slice::<i32>().unwrap(), [0; 6]);
    let rows = run(Kernel::new(&cpu, &ops::Softmax::default()), &[&a]);
    assert!((rows.as_slice::<f32>().unwrap()[..3].iter().sum::<f32>() - 1.0).abs() < 1e-6);
}

#[test]
fn wrong_settings_are_refused() {
    let cpu = Engine::cpu().unwrap();
    let uneven = Kernel::new(&cpu, &ops::Slice { begin: &[0], end: &[1, 2], step: &[] }).unwrap_err();
    assert!(uneven.message().contains("slice: end has 2 numbers, expected 1"), "{uneven}");
    let long = Kernel::new(&cpu, &ops::Reshape { dims: &[1; 9] }).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::InvalidArgument);
    let twice = Kernel::new(&cpu, &ops::Transpose { permutation: &[0, 0] }).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InvalidArgument);
    assert_eq!(Kernel::new(&cpu, &ops::Matmul::default()).unwrap().name().unwrap(), "matmul");
}

#[test]
fn elements_are_typed() {
    fn there_and_back<T: Element + PartialEq + std::fmt::Debug>(elements: [T; 3]) {
        let cpu = Engine::cpu().unwrap();
        let mut tensor = Tensor::from_slice(&cpu, &[3], &elements).unwrap();
        assert_eq!(tensor.as_slice::<T>().unwrap(), elements);
        tensor.as_slice_mut::<T>().unwrap().reverse();
        assert_eq!(tensor.as_slice::<T>().unwrap()[0], elements[2]);
        assert_eq!(Tensor::from_vec(&cpu, &[1, 3], elements.to_vec()).unwrap().as_slice::<T>().unwrap(), elements);
        assert_eq!(tensor.desc().dtype(), T::DTYPE);
    }
    there_and_back([1.5_f32, -2.0, f32::INFINITY]);
    there_and_back([1_i32, -2, i32::MIN]);
    there_and_back([1_i64, -2, i64::MIN]);
    there_and_back([1_u8, 2, 255]);
    there_and_back([1_i8, -2, -128]);
    there_and_back([true, false, false]);
    #[cfg(feature = "half")]
    there_and_back([half::f16::ONE, half::f16::EPSILON, half::f16::MAX]);
    #[cfg(feature = "half")]
    there_and_back([half::bf16::ONE, half::bf16::EPSILON, half::bf16::MAX]);

    let cpu = Engine::cpu().unwrap();
    let tensor = numbers(&cpu, &[1.0]);
    assert_eq!(tensor.as_slice::<i32>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(Tensor::from_slice(&cpu, &[2], &[1.0_f32]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(Tensor::from_slice(&cpu, &[OPEN], &[1.0_f32]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(Tensor::from_vec(&cpu, &[1; 9], vec![1.0_f32]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(Tensor::from_slice::<f32>(&cpu, &[0, 3], &[]).unwrap().as_slice::<f32>().unwrap().is_empty());
}
