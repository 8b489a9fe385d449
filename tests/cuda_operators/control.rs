//! Kernels that say whether, which or how often a body of a CUDA graph runs.

use weir_core::base::dtype;
use weir_core::device::cuda::plan::{CONTROL_MODULE, FILL, SET_CASE, SET_IF, SET_SWITCH, WHILE_COMPARE, WHILE_STEP};
use weir_core::device::{Comparison, Relation};
use weir_ptx::{Call, Calls, Module, Slice};

/// What cudaGraphSetConditional was called with.
#[derive(Default)]
struct Conditions(Vec<(u64, u64)>);

impl Calls for Conditions {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), String> {
        assert_eq!(call.function, "cudaGraphSetConditional");
        self.0.push((call.argument(0)?, call.argument(1)?));
        Ok(())
    }
}

const HANDLE: u64 = 0x1234_5678_9abc_def0;
const AT: u64 = 0x7_0000_0000;

/// The value that a kernel sets, with parameters behind the handle and the address of `data`.
fn set(name: &std::ffi::CStr, data: &mut [u64], params: &[u8]) -> u64 {
    let module = Module::parse(&CONTROL_MODULE.ptx().unwrap()).unwrap();
    let params = [&HANDLE.to_le_bytes()[..], &AT.to_le_bytes(), params].concat();
    let (mut memory, mut conditions) = (Slice::new(), Conditions::default());
    memory.add(AT, data);
    let entry = module.entry(name.to_str().unwrap()).unwrap();
    entry.run([1; 3], [1; 3], 0, &params, &mut memory, &mut conditions).unwrap();
    assert_eq!(conditions.0.len(), 1);
    assert_eq!(conditions.0[0].0, HANDLE);
    conditions.0[0].1
}

fn bytes(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

const BYTE: u32 = 1;
const SIGNED: u32 = -1i32 as u32;
const WORD: u32 = 4;

#[test]
fn a_body_runs_if_the_predicate_is_not_zero() {
    for (data, size, want) in [
        (0, BYTE, 0),
        (1, BYTE, 1),
        (0x80, BYTE, 1),
        (0x100, BYTE, 0),
        (0x100, WORD, 1),
        (1 << 32, WORD, 0),
        (0xff, SIGNED, 1),
    ] {
        assert_eq!(set(SET_IF, &mut [data], &bytes(&[size, 0])), want, "{data:x} of {size}");
        assert_eq!(set(SET_IF, &mut [data], &bytes(&[size, 1])), 1 - want, "not {data:x} of {size}");
    }
}

#[test]
fn an_index_outside_means_the_last_body() {
    for (data, size, want) in [
        (0, WORD, 0),
        (2, WORD, 2),
        (3, WORD, 2),
        (0xffff_ffff, WORD, 2),
        (0xff, SIGNED, 2),
        (0xff, BYTE, 2),
        (0x101, BYTE, 1),
    ] {
        assert_eq!(set(SET_SWITCH, &mut [data], &bytes(&[size, 3])), want, "{data:x} of {size}");
        for case in 0..3 {
            let is_it = set(SET_CASE, &mut [data], &bytes(&[size, 3, case]));
            assert_eq!(is_it, u64::from(u64::from(case) == want), "{data:x} of {size} for {case}");
        }
    }
}

#[test]
fn a_loop_counts_up_to_its_cap() {
    // Predicate, count, whether the cap ended it.
    let step = |data: &mut [u64; 3], counts: bool, cap: u64| {
        let count = if counts { AT + 8 } else { 0 };
        let params = [count, cap, AT + 16].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        set(WHILE_STEP, data, &[&params[..], &bytes(&[BYTE])].concat())
    };
    let mut data = [1, 0, 0];
    assert_eq!((step(&mut data, true, 2), data), (1, [1, 1, 0]));
    assert_eq!((step(&mut data, true, 2), data), (1, [1, 2, 0]));
    assert_eq!((step(&mut data, true, 2), data), (0, [1, 2, 1]));
    assert_eq!((step(&mut [0, 5, 0], true, 2), [0, 5, 0]), (0, [0, 5, 0]));
    let mut data = [1, 7, 0];
    assert_eq!((step(&mut data, true, 0), data), (1, [1, 8, 0]));
    assert_eq!((step(&mut data, false, 3), data), (1, [1, 8, 0]));
}

#[test]
fn a_loop_compares_as_the_host_does() {
    use Relation::{Eq, Ge, Gt, Le, Lt, Ne};
    let floats =
        [f32::NEG_INFINITY, -1.0, -0.0, 0.0, f32::from_bits(1), f32::MIN_POSITIVE, 1.0, f32::INFINITY, f32::NAN];
    let integers = [i32::MIN, -1, 0, 1, i32::MAX];
    let all = floats.map(f32::to_bits).map(|bits| (dtype::F32, bits));
    let all = all.into_iter().chain(integers.map(|value| (dtype::S32, value.cast_unsigned())));
    let all: Vec<(u32, u32)> = all.collect();
    for &(of, a) in &all {
        for &(_, b) in all.iter().filter(|(other, _)| *other == of) {
            for relation in [Eq, Ne, Lt, Le, Gt, Ge] {
                let params =
                    [&(AT + 4).to_le_bytes()[..], &bytes(&[u32::from(of == dtype::S32), relation.mask()])].concat();
                let found = set(WHILE_COMPARE, &mut [u64::from(a) | u64::from(b) << 32], &params);
                let expected = Comparison::of(relation, of, [a.to_le_bytes(), b.to_le_bytes()]);
                assert_eq!(found, u64::from(expected), "{a:x} {relation:?} {b:x}");
            }
        }
    }
}

#[test]
fn bytes_are_filled_from_any_address_and_no_others() {
    let module = Module::parse(&CONTROL_MODULE.ptx().unwrap()).unwrap();
    let entry = module.entry(FILL.to_str().unwrap()).unwrap();
    for (from, count) in [(0, 0), (0, 1), (16, 16), (0, 159), (3, 40), (32, 67), (15, 17)] {
        for blocks in [1, 3] {
            let mut data = [u64::from_ne_bytes([0xee; 8]); 20];
            let params = [(AT + from).to_le_bytes(), u64::to_le_bytes(count)].concat();
            let params = [&params[..], &0x1234_56abu32.to_le_bytes()].concat();
            let mut memory = Slice::new();
            memory.add(AT, &mut data);
            entry.run([blocks, 1, 1], [2, 1, 1], 0, &params, &mut memory, &mut Conditions::default()).unwrap();
            for (at, byte) in data.iter().flat_map(|word| word.to_le_bytes()).enumerate() {
                let is_in = (from..from + count).contains(&(at as u64));
                assert_eq!(byte, if is_in { 0xab } else { 0xee }, "{from}, {count}: {at}");
            }
        }
    }
}
