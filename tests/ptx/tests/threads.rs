//! Kernels whose threads work together, or go different ways: compiled by NVRTC, and some by hand.

mod kit;

use kit::launch::{Loaded, Parameters, buffer, load};
use weir_ptx::{Dim, Module, NoCalls, Schedule, Slice};

fn module() -> Loaded {
    load(include_str!("../samples/threads.ptx"))
}

const ONE: Dim = [1, 1, 1];

#[test]
fn calls_by_name_and_by_address_with_structures() {
    let mut module = module();
    let mut x: Vec<f32> = (0..40).map(|i| i as f32 + 0.5).collect();
    let (mut y, mut z) = ([0f32; 40], [0i32; 40]);
    let mut mixed = Vec::new();
    mixed.extend(2.25f32.to_le_bytes());
    mixed.extend(100i32.to_le_bytes());
    mixed.extend(10.5f64.to_le_bytes());
    mixed.extend([1u8, 2, 0xFD, 4, 5, 0, 0, 0]);
    let parameters =
        Parameters::new().pointer(buffer(0)).pointer(buffer(1)).pointer(buffer(2)).bytes(8, &mixed).word(33);
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut x);
    memory.add(buffer(1), &mut y);
    memory.add(buffer(2), &mut z);
    module.run("calls", ONE, [40, 1, 1], &parameters.0, &mut memory).unwrap();
    for i in 0..33 {
        let (a, b) = (i as f32 + 0.5, (i & 3) as f32 + 1.0);
        assert_eq!(y[i], if i & 1 == 0 { a + b } else { a * b });
        let d = [1, 2, -3, 4];
        assert_eq!(z[i], 100 + i as i32 + 21 + d[i & 3] + 1 + 5);
    }
    assert_eq!((y[33], z[33]), (0.0, 0));
    assert_eq!(module.variable("counter"), (5u32 + 33).to_le_bytes());
    assert_eq!(module.variable("pair")[8..], (1.5f64 + 2.25).to_le_bytes());
}

#[test]
fn recursion() {
    let mut y = [0u32; 15];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut y);
    let mut module = module();
    module.run("recursion", ONE, [15, 1, 1], &Parameters::new().pointer(buffer(0)).0, &mut memory).unwrap();
    assert_eq!(y, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]);
}

#[test]
fn loops_of_different_lengths_over_local_arrays() {
    let (count, threads) = (17usize, 48usize);
    let mut x: Vec<i32> = (0..count * threads).map(|i| (i * 7919 % 1000) as i32 - 500).collect();
    let mut expected = x.clone();
    expected.chunks_mut(count).for_each(<[i32]>::sort_unstable);
    let mut y = vec![0i32; x.len()];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut x);
    memory.add(buffer(1), &mut y);
    let parameters = Parameters::new().pointer(buffer(0)).pointer(buffer(1)).word(count as u32);
    module().run("sort", [3, 1, 1], [16, 1, 1], &parameters.0, &mut memory).unwrap();
    assert_eq!(y, expected);

    let products = Module::parse(include_str!("../samples/products.ptx")).unwrap();
    let mut x: Vec<u32> = (1..=1000).collect();
    let mut y = vec![0u32; 1000];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut x);
    memory.add(buffer(1), &mut y);
    let parameters = Parameters::new().pointer(buffer(0)).pointer(buffer(1)).word(1000);
    let entry = products.entry("collatz").unwrap();
    entry.run([16, 1, 1], [64, 1, 1], 0, &parameters.0, &mut memory, &mut NoCalls).unwrap();
    for (x, steps) in (1u64..).zip(&y) {
        let (mut v, mut expected) = (x, 0);
        while v > 1 {
            v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
            expected += 1;
        }
        assert_eq!(*steps, expected, "from {x}");
    }
}

#[test]
fn votes_matches_and_reductions_at_barriers() {
    for (high, schedule) in [(9, SCHEDULES[0]), (8, SCHEDULES[1]), (9, SCHEDULES[2])] {
        let mut x: Vec<i32> = (0..64).map(|i| (i * i + i / 32) % high).collect();
        let before = x.clone();
        let mut y = vec![0u32; 64 * 8];
        let mut memory = Slice::new();
        memory.add(buffer(0), &mut x);
        memory.add(buffer(1), &mut y);
        let parameters = Parameters::new().pointer(buffer(0)).pointer(buffer(1));
        let mut module = module();
        module.schedule = schedule;
        module.run("votes", ONE, [64, 1, 1], &parameters.0, &mut memory).unwrap();
        for (i, found) in y.chunks(8).enumerate() {
            let warp = &before[i / 32 * 32..][..32];
            let mask = |holds: &dyn Fn(i32) -> bool| {
                warp.iter().enumerate().filter(|(_, v)| holds(**v)).fold(0u32, |set, (lane, _)| set | 1 << lane)
            };
            let v = before[i];
            assert_eq!(found[0], mask(&|v| v > 2));
            assert_eq!(found[1], warp.iter().any(|v| *v > 8).into());
            assert_eq!(found[2], 1);
            assert_eq!(found[3], mask(&|other| other == v));
            assert_eq!(found[4..6], [0, 0]);
            let first_odd = warp.iter().find(|v| **v & 1 == 1).unwrap();
            assert_eq!(found[6], if v & 1 == 1 { *first_odd as u32 } else { 77 });
            let odd = before.iter().filter(|v| **v & 1 == 1).count() as u32;
            assert_eq!(found[7], odd + 100 * u32::from(before.contains(&3)) + 1000);
        }
    }
}

/// The orders that kernels are tried in.
const SCHEDULES: [Schedule; 4] =
    [Schedule::Forward, Schedule::Backward, Schedule::Shuffled(1), Schedule::Shuffled(0x5EED)];

/// Without its barrier, thread 1 reads what thread 0 has written only if thread 0 goes first.
#[test]
fn an_order_that_nothing_asks_for_is_not_kept() {
    let source = |barrier: &str| {
        kit::kernel(
            ".param .u64 out",
            &format!(
                ".reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .pred %p; .shared .b32 s[64];
                 mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, s; add.u64 %rd2, %rd2, %rd1;
                 ld.param.u64 %rd3, [out]; add.u64 %rd3, %rd3, %rd1; mov.u32 %r2, 0;
                 st.shared.u32 [%rd2], %r1;
                 {barrier}
                 setp.eq.u32 %p, %r1, 0;
                 @!%p ld.shared.u32 %r2, [%rd2-4];
                 st.global.u32 [%rd3], %r2;"
            ),
        )
    };
    let expected: Vec<u32> = (0..64u32).map(|i| i.saturating_sub(1)).collect();
    let right = |barrier: &str| {
        SCHEDULES.map(|schedule| {
            let entry = Module::parse(&source(barrier)).unwrap().entry("k").unwrap().with_schedule(schedule);
            let mut out = [0u32; 64];
            let mut memory = Slice::new();
            memory.add(buffer(0), &mut out);
            let parameters = Parameters::new().pointer(buffer(0));
            entry.run([1; 3], [64, 1, 1], 0, &parameters.0, &mut memory, &mut NoCalls).unwrap();
            out[..] == expected
        })
    };
    assert_eq!(right("bar.sync 0;"), [true; 4]);
    assert_eq!(right(""), [true, false, false, false]);
    // A barrier of the warp alone does not reach from thread 31 to thread 32.
    assert_eq!(right("bar.warp.sync -1;")[..2], [true, false]);
}

#[test]
fn scans_by_shuffles() {
    let mut x: Vec<i32> = (0..64).map(|i| i * 37 % 100 - 50).collect();
    let expected: Vec<i32> = (0..64).map(|i| x[i / 32 * 32..=i].iter().sum()).collect();
    let mut y = vec![0i32; 64];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut x);
    memory.add(buffer(1), &mut y);
    module()
        .run("scan", ONE, [64, 1, 1], &Parameters::new().pointer(buffer(0)).pointer(buffer(1)).0, &mut memory)
        .unwrap();
    assert_eq!(y, expected);
}

#[test]
fn atomic_operations() {
    let count = 96usize;
    let mut x: Vec<i32> = (0..count).map(|i| (i as i32 * 1237) % 4001 - 2000).collect();
    let values = x.clone();
    let mut a = vec![0i32; 8 + count];
    a[..8].copy_from_slice(&[1, 0, 0, -1, 0, 0, 3, 0]);
    let (mut b, mut c, mut d, mut e) = ([3u32, 4], [0.5f32], [1f64], [1u64, 0]);
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut a);
    memory.add(buffer(1), &mut b);
    memory.add(buffer(2), &mut c);
    memory.add(buffer(3), &mut d);
    memory.add(buffer(4), &mut e);
    memory.add(buffer(5), &mut x);
    let parameters = (0..6).fold(Parameters::new(), |parameters, at| parameters.pointer(buffer(at)));
    module().run("atomics", ONE, [count as u32, 1, 1], &parameters.0, &mut memory).unwrap();
    let sum: i32 = values.iter().sum();
    let fold = |f: fn(i32, i32) -> i32, first: i32| values.iter().fold(first, |a, b| f(a, *b));
    assert_eq!(a[0], 1 + sum);
    assert_eq!(a[1], fold(i32::min, 0));
    assert_eq!(a[2], fold(i32::max, 0));
    assert_eq!(a[3], fold(|a, b| a & b, -1));
    assert_eq!(a[4], fold(|a, b| a | b, 0));
    assert_eq!(a[5], fold(|a, b| a ^ b, 0));
    assert_eq!(a[6], 3 - sum);
    assert!(values.contains(&a[7]));
    assert!(a[8..].iter().all(|found| *found == count as i32));
    // Counting up from 3 modulo 8, down from 4 modulo 10.
    assert_eq!(b, [(3 + count as u32) % 8, (4 + 10 * count as u32 - count as u32) % 10]);
    assert_eq!((c[0], d[0]), (0.5 + 1.5 * count as f32, 1.0 + 0.25 * count as f64));
    assert_eq!(e, [1 + ((count as u64) << 40), 5]);
}

#[test]
fn threads_of_a_warp_wait_for_each_others_lock() {
    for schedule in SCHEDULES {
        let (mut held, mut count) = ([0i32], [0i32]);
        let mut memory = Slice::new();
        memory.add(buffer(0), &mut held);
        memory.add(buffer(1), &mut count);
        let parameters = Parameters::new().pointer(buffer(0)).pointer(buffer(1));
        let mut module = module();
        module.schedule = schedule;
        module.run("lock", [2, 1, 1], [64, 1, 1], &parameters.0, &mut memory).unwrap();
        assert_eq!((held[0], count[0]), (0, 128));
    }
}

#[test]
fn blocks_can_be_run_in_parts() {
    let module = module();
    let entry = module.module.entry("numbered").unwrap();
    let (grid, block) = ([3, 2, 2], [4, 3, 2]);
    let mut o = vec![u32::MAX; 12 * 24];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut o);
    let parameters = Parameters::new().pointer(buffer(0));
    for range in [7..12, 0..7] {
        entry.run_blocks(grid, block, 0, &parameters.0, &mut memory, &mut NoCalls, range).unwrap();
    }
    for (at, found) in o.iter().enumerate() {
        assert_eq!(*found as usize, at / 24 * 1000 + at % 24);
    }
}

#[test]
fn choices() {
    let mut x: Vec<i32> = (0..32).map(|i| i % 10 - 1).collect();
    let before = x.clone();
    let mut y = vec![0i32; 32];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut x);
    memory.add(buffer(1), &mut y);
    let parameters = Parameters::new().pointer(buffer(0)).pointer(buffer(1));
    module().run("choices", ONE, [32, 1, 1], &parameters.0, &mut memory).unwrap();
    for (i, (x, found)) in before.iter().zip(&y).enumerate() {
        let i = i as i32;
        let expected = match x {
            0 => 7,
            1 => i * 3,
            2 => i * i,
            3 => i - 9,
            4 => i.leading_zeros() as i32,
            5 => i.count_ones() as i32,
            6 => i / 3,
            7 => i % 7,
            _ => -1,
        };
        assert_eq!(*found, expected);
    }
}

#[test]
fn tiles_bytes_and_vectors() {
    let mut module = load(include_str!("../samples/products.ptx"));
    let (m, n, k) = (20usize, 35usize, 50usize);
    let mut a: Vec<f32> = (0..m * k).map(|i| (i % 13) as f32 - 6.0).collect();
    let mut b: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32 - 3.0).collect();
    let mut c = vec![0f32; m * n];
    let expected: Vec<f32> = (0..m * n).map(|at| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum()).collect();
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut a);
    memory.add(buffer(1), &mut b);
    memory.add(buffer(2), &mut c);
    let pointers = || Parameters::new().pointer(buffer(0)).pointer(buffer(1));
    let parameters = pointers().pointer(buffer(2)).word(m as u32).word(n as u32).word(k as u32);
    module.run("matmul", [3, 2, 1], [16, 16, 1], &parameters.0, &mut memory).unwrap();
    assert_eq!(c, expected);

    let mut a: Vec<i32> = (0..60).map(|i: i32| i.wrapping_mul(0x3D4E_5F71)).collect();
    let mut b = [0x7F80_01FFi32, 0x1234_5678, -1];
    let mut c = [0i32; 20];
    let bytes = |word: i32| word.to_le_bytes().map(|byte| i32::from(byte as i8));
    let dot = |x: i32, y: i32| bytes(x).iter().zip(bytes(y)).map(|(x, y)| x * y).sum::<i32>();
    let expected: Vec<i32> = a.chunks(3).map(|row| row.iter().zip(&b).map(|(x, y)| dot(*x, *y)).sum()).collect();
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut a);
    memory.add(buffer(1), &mut b);
    memory.add(buffer(2), &mut c);
    let parameters = pointers().pointer(buffer(2)).word(20).word(3);
    module.run("dot_bytes", ONE, [32, 1, 1], &parameters.0, &mut memory).unwrap();
    assert_eq!(c[..], expected);

    let mut a: Vec<f32> = (0..12).map(|i| i as f32 - 8.0).collect();
    let mut b = [0f32; 12];
    let expected: Vec<f32> = a.chunks(4).flat_map(|v| [v[0] * 2.0, v[1] + 1.0, -v[2], v[3].abs()]).collect();
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut a);
    memory.add(buffer(1), &mut b);
    module.run("vectors", ONE, [32, 1, 1], &pointers().word(3).0, &mut memory).unwrap();
    assert_eq!(b[..], expected);
}

/// Two warps make what two others use, in turns, by barriers where one side does not wait.
#[test]
fn barriers_with_counts_where_one_side_only_arrives() {
    let source = kit::kernel(
        ".param .u64 out",
        ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .shared .b32 s[64];
         mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 63; mul.wide.u32 %rd1, %r2, 4; mov.u64 %rd2, s; add.u64 %rd2, %rd2, %rd1;
         ld.param.u64 %rd3, [out]; add.u64 %rd3, %rd3, %rd1;
         mov.u32 %r3, 0; mov.u32 %r4, 0;
         setp.ge.u32 %p1, %r1, 64;
         @%p1 bra USE;
         MAKE:
         add.u32 %r5, %r3, %r1; st.shared.u32 [%rd2], %r5;
         barrier.cta.arrive.aligned 1, 128;
         bar.sync 2, 128;
         add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5;
         @%p2 bra MAKE;
         ret;
         USE:
         barrier.sync 1, 128;
         xor.b32 %r6, %r2, 63; mul.wide.u32 %rd4, %r6, 4; mov.u64 %rd2, s; add.u64 %rd4, %rd2, %rd4;
         ld.shared.u32 %r5, [%rd4]; add.u32 %r4, %r4, %r5;
         bar.arrive 2, 128;
         add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5;
         @%p2 bra USE;
         st.global.u32 [%rd3], %r4;
         ret;",
    );
    let module = Module::parse(&source).unwrap();
    let mut out = [0u32; 64];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut out);
    let parameters = Parameters::new().pointer(buffer(0));
    let entry = module.entry("k").unwrap();
    entry.run([1; 3], [128, 1, 1], 0, &parameters.0, &mut memory, &mut NoCalls).unwrap();
    for (i, sum) in out.iter().enumerate() {
        assert_eq!(*sum, 5 * (63 - i as u32) + 10);
    }
}

#[test]
fn jumps_by_a_table_shared_variables_and_special_registers() {
    let source = ".version 8.0
        .target sm_90
        .address_size 64
        .extern .shared .align 8 .b8 dynamic[];
        .shared .b32 fixed;
        .func (.reg .u32 %sum) add(.reg .u32 %x, .reg .u32 %y) { add.u32 %sum, %x, %y; ret; }
        .visible .entry k(.param .u64 out)
        {
            .reg .b32 %r<20>; .reg .b64 %rd<6>; .reg .pred %p<3>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            and.b32 %r2, %r1, 3;
            TABLE: .branchtargets A, B, C, D;
            brx.idx %r2, TABLE;
            A: mov.u32 %r3, 10; bra.uni END;
            B: mov.u32 %r3, 20; bra.uni END;
            C: { .reg .u32 %r3x; mov.u32 %r3, %lanemask_lt; popc.b32 %r3, %r3; bra.uni END; }
            D: mov.u32 %r3, %warpid;
            END:
            call (%r4), add, (%r3, 1000);
            mov.u64 %rd2, dynamic;
            cvt.u32.u64 %r5, %rd2;
            mov.u32 %r6, %dynamic_smem_size;
            mov.u32 %r7, %total_smem_size;
            @%p1 mov.u32 %r4, 0;
            setp.ne.u32 %p2, %r5, 16;
            @%p2 trap;
            setp.ne.u32 %p2|%p1, %r6, 24;
            @%p2 trap;
            @!%p1 trap;
            setp.ne.u32 %p2, %r7, 40;
            @%p2 trap;
            mov.u32 %r8, fixed;
            st.shared.u32 [%r8], 1;
            mov.u32 %r8, dynamic;
            setp.ne.u32 %p2, %r8, %r5;
            @%p2 trap;
            st.shared.u64 [dynamic+16], %rd1;
            mul.wide.u32 %rd3, %r1, 4;
            add.u64 %rd1, %rd1, %rd3;
            st.global.u32 [%rd1], %r4;
            ret;
        }";
    let module = Module::parse(source).unwrap();
    let entry = module.entry("k").unwrap();
    assert_eq!(entry.static_shared(), 4);
    let mut out = [0u32; 40];
    let mut memory = Slice::new();
    memory.add(buffer(0), &mut out);
    let parameters = Parameters::new().pointer(buffer(0));
    entry.run([1; 3], [40, 1, 1], 24, &parameters.0, &mut memory, &mut NoCalls).unwrap();
    for (i, found) in out.iter().enumerate() {
        let i = i as u32;
        assert_eq!(*found, 1000 + [10, 20, i % 32, i / 32][i as usize % 4]);
    }
}
