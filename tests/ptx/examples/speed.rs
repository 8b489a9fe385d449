//! How many operations a second the interpreter does: cargo run --release -p weir-ptx --example speed

use std::time::Instant;

use weir_ptx::{Done, Module, NoCalls, Slice};

const A: u64 = 0x10_0000;
const B: u64 = 0x1000_0000;
const C: u64 = 0x2000_0000;

fn parameters(pointers: &[u64], numbers: &[u32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

fn report(name: &str, mut run: impl FnMut() -> Done) {
    run();
    let begin = Instant::now();
    let mut steps = 0;
    while begin.elapsed().as_millis() < 1000 {
        steps += run().steps;
    }
    println!("{name:12} {:6.0} million operations a second", steps as f64 / begin.elapsed().as_secs_f64() / 1e6);
}

fn main() {
    let products = Module::parse(include_str!("../samples/products.ptx")).unwrap();
    let reduce = Module::parse(include_str!("../samples/reduce.ptx")).unwrap();
    let n = 128;
    let numbers: Vec<f32> = (0..n * n).map(|i| (i % 17) as f32).collect();
    let (mut a, mut b, mut c) = (numbers.clone(), numbers, vec![0f32; n * n]);
    let size = n as u32;
    let matmul = products.entry("matmul").unwrap();
    report("matmul", || {
        let mut memory = Slice::new();
        memory.add(A, &mut a);
        memory.add(B, &mut b);
        memory.add(C, &mut c);
        let parameters = parameters(&[A, B, C], &[size; 3]);
        matmul.run([size / 16, size / 16, 1], [16, 16, 1], 0, &parameters, &mut memory, &mut NoCalls).unwrap()
    });
    let softmax = reduce.entry("softmax").unwrap();
    report("softmax", || {
        let mut memory = Slice::new();
        memory.add(A, &mut a);
        memory.add(C, &mut c);
        let parameters = parameters(&[A, C], &[size]);
        softmax.run([size, 1, 1], [64, 1, 1], 256, &parameters, &mut memory, &mut NoCalls).unwrap()
    });
    let sum = reduce.entry("reduce_sum").unwrap();
    report("reduce_sum", || {
        let mut memory = Slice::new();
        memory.add(A, &mut a);
        memory.add(C, &mut c);
        let parameters = parameters(&[A, C], &[size * size]);
        sum.run([16, 1, 1], [256, 1, 1], 0, &parameters, &mut memory, &mut NoCalls).unwrap()
    });
    let mut x: Vec<u32> = (1..=4096).collect();
    let mut y = vec![0u32; 4096];
    let collatz = products.entry("collatz").unwrap();
    report("collatz", || {
        let mut memory = Slice::new();
        memory.add(A, &mut x);
        memory.add(C, &mut y);
        let parameters = parameters(&[A, C], &[4096]);
        collatz.run([32, 1, 1], [128, 1, 1], 0, &parameters, &mut memory, &mut NoCalls).unwrap()
    });
}
