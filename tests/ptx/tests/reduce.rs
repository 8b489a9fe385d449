//! Kernels as NVRTC compiles them: reductions, softmax and the largest element, run and compared with plain loops.

use weir_ptx::{Module, NoCalls, Schedule, Slice};

const X: u64 = 0x10_0000;
const Y: u64 = 0x20_0000;

fn module() -> Module {
    Module::parse(include_str!("../samples/reduce.ptx")).unwrap()
}

fn parameters(pointers: &[u64], last: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
    bytes.extend(last.to_le_bytes());
    bytes
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 13) % 1009) as f32 / 64.0 - 8.0).collect()
}

#[test]
fn a_sum_with_shuffles_and_shared_memory() {
    let module = module();
    let entry = module.entry("reduce_sum").unwrap();
    assert_eq!(entry.static_shared(), 128);
    let offsets: Vec<_> = entry.parameters().iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(offsets, [(0, 8), (8, 8), (16, 4)]);
    for (count, blocks, threads) in [(1000, 3, 128), (1, 1, 32), (4096, 2, 1024), (77, 1, 96)] {
        let mut x = numbers(count);
        let expected: f64 = x.iter().map(|x| f64::from(*x)).sum();
        let mut sum = [0f32];
        let mut memory = Slice::new();
        memory.add(X, &mut x);
        memory.add(Y, &mut sum);
        let parameters = parameters(&[X, Y], count as u32);
        let entry = entry.clone().with_schedule(Schedule::Shuffled(count as u64));
        entry.run([blocks, 1, 1], [threads, 1, 1], 0, &parameters, &mut memory, &mut NoCalls).unwrap();
        // The values are multiples of 1/64 and small: every sum of them is exact.
        assert_eq!(f64::from(sum[0]), expected, "{count} numbers by {blocks} blocks of {threads}");
    }
}

#[test]
fn softmax_of_rows() {
    let module = module();
    let entry = module.entry("softmax").unwrap();
    let (rows, columns, threads) = (3usize, 100usize, 64u32);
    let mut x = numbers(rows * columns);
    let mut y = vec![0f32; rows * columns];
    let mut memory = Slice::new();
    let x_before = x.clone();
    memory.add(X, &mut x);
    memory.add(Y, &mut y);
    let parameters = parameters(&[X, Y], columns as u32);
    let entry = entry.with_schedule(Schedule::Backward);
    entry.run([rows as u32, 1, 1], [threads, 1, 1], threads * 4, &parameters, &mut memory, &mut NoCalls).unwrap();
    for (row, found) in x_before.chunks(columns).zip(y.chunks(columns)) {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> = row.iter().map(|x| f64::from(x - most).exp()).collect();
        let sum: f64 = powers.iter().sum();
        for (power, found) in powers.iter().zip(found) {
            let expected = power / sum;
            assert!((f64::from(*found) - expected).abs() <= 4e-7 * expected + 1e-30, "{found} {expected}");
        }
    }
}

#[test]
fn the_largest_element_by_atomic_operations() {
    let module = module();
    let entry = module.entry("argmax").unwrap();
    let mut x = numbers(300);
    let (at, most) = x.iter().copied().enumerate().reduce(|a, b| if b.1 > a.1 { b } else { a }).unwrap();
    let positive = x.iter().filter(|x| **x > 0.0).count();
    let mut best = [0u64; 2];
    let mut memory = Slice::new();
    memory.add(X, &mut x);
    memory.add(Y, &mut best);
    entry.run([3, 1, 1], [128, 1, 1], 0, &parameters(&[X, Y], 300), &mut memory, &mut NoCalls).unwrap();
    assert_eq!(u32::MAX - best[0] as u32, at as u32);
    assert_eq!((best[0] >> 32) as u32, most.to_bits() | 0x8000_0000);
    assert_eq!(best[1], positive as u64);
}
