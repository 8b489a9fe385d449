//! What products may round, and what they may not.

use super::*;

#[test]
fn factors_lose_bits_if_that_is_allowed() {
    with_driver(&[WITH], || {
        let bench = Bench::new();
        needs_the_library(&bench);
        let [a, b, c] = triple(&bench, [20, 20, 40], 1);
        let on = stream(&bench);
        let run = |flags: &[weir_matmul_flags]| {
            multiply(&*on, &matmul(&bench, flags).unwrap(), &a, &b, &c).unwrap();
            wait(&bench, &*on).unwrap();
            c.read(&bench)
        };
        let (whole, rounded) = (run(&[]), run(&[WEIR_MATMUL_ALLOW_TF32]));
        let most = whole.iter().zip(&rounded).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        // A real one may, and need not.
        assert!((most > 1e-5 || !is_fake()) && most < 2e-2, "{most}");
    });
}

#[test]
fn a_product_that_comes_again_is_the_librarys_each_time() {
    with_driver(&[WITH], || {
        let bench = Bench::new();
        needs_the_library(&bench);
        let [a, b, c] = [([5, 8], 1), ([8, 6], 2), ([5, 6], 3)].map(|(dims, seed)| Matrix::on(&bench, &dims, seed));
        let kernel = matmul(&bench, &[]).unwrap();
        for times in [1, 2, 5] {
            let before = blas::counted("cublasLtMatmul");
            for _ in 0..times {
                let inputs = vec![a.tensor.clone(), b.tensor.clone()];
                bench.stream.enqueue_fill(c.tensor.clone(), 0xff).unwrap();
                bench.stream.enqueue(kernel.clone(), inputs, vec![c.tensor.clone()]).unwrap();
            }
            bench.wait().unwrap();
            assert!(blas::counted("cublasLtMatmul") - before == times || !is_fake());
            c.check(&bench, &a, &b);
        }
    });
}

#[test]
fn sums_of_bytes_are_exact() {
    with_driver(&[WITH], || {
        let bench = Bench::new();
        needs_the_library(&bench);
        let desc = weir_matmul_int8_desc {
            struct_size: size_of::<weir_matmul_int8_desc>(),
            flags: weir_core::ops::weir_matmul_int8_flags::WEIR_MATMUL_INT8_TRANSPOSE_B as u64,
            dtype: dtype::S32,
            scale: 1.0,
            zero_a: 0,
            zero_b: 0,
            zero_c: 0,
            reserved: 0,
            weights: std::ptr::null_mut(),
        };
        let kernel = int8(&bench, &desc);
        let on = stream(&bench);
        // Whole numbers of four, and one that is not.
        for ([m, n, k], is_librarys) in [([5, 8, 40], true), ([5, 8, 42], false)] {
            let bytes = |seed: u32| bench.on_host(move |i| (i as i32).wrapping_mul(0x5bd1_e995).rotate_left(seed));
            let (hosts, tensors) = ([bytes(3), bytes(7)], [(); 3].map(|()| bench.on_device().unwrap()));
            for (host, tensor) in hosts.iter().zip(&tensors) {
                bench.stream.enqueue_copy(host.clone(), tensor.clone()).unwrap();
            }
            bench.wait().unwrap();
            let view = |tensor: &Ref<Tensor>, of, dims: [i64; 2]| {
                let desc = Desc::new(of, &dims);
                // SAFETY: the tensor's memory on the device, which is kept; the host only hands the address on.
                unsafe { View::new(tensor.data(), desc.bytes().unwrap(), desc) }
            };
            let inputs = [view(&tensors[0], dtype::S8, [m, k]), view(&tensors[1], dtype::S8, [n, k])];
            let outputs = [view(&tensors[2], dtype::S32, [m, n])];
            let before = blas::counted("cublasLtMatmul");
            on.launch(&launch(&kernel, &inputs, &outputs)).unwrap();
            wait(&bench, &*on).unwrap();
            assert!(blas::counted("cublasLtMatmul") - before == u64::from(is_librarys) || !is_fake());
            let found = bench.read(&tensors[2]).unwrap();
            let byte = |host: &Ref<Tensor>, at: i64| {
                let word = values(host)[at as usize / 4];
                i32::from(word.to_le_bytes()[at as usize % 4] as i8)
            };
            for row in 0..m {
                for column in 0..n {
                    let product = |at| byte(&hosts[0], row * k + at) * byte(&hosts[1], column * k + at);
                    assert_eq!(found[(row * n + column) as usize], (0..k).map(product).sum::<i32>());
                }
            }
        }
    });
}

fn int8(bench: &Bench, desc: &weir_matmul_int8_desc) -> Ref<BoundKernel> {
    crate::programs::bound::<weir_core::ops::MatmulInt8>(&bench.engine, *desc)
}
