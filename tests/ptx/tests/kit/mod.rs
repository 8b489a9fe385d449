//! Runs single instructions on many operands.
#![allow(dead_code)]

pub mod launch;
#[path = "../../src/number/random.rs"]
pub mod random;

use weir_ptx::{Module, NoCalls, Slice};

const OUT: u64 = 0x100_0000;
const IN: [u64; 4] = [0x200_0000, 0x300_0000, 0x400_0000, 0x500_0000];
/// Operands of one call.
pub const COUNT: usize = 512;

/// The text of a module with one kernel.
pub fn kernel(parameters: &str, body: &str) -> String {
    format!(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k({parameters})\n{{\n{body}\n}}\n")
}

/// The register type of an operand's type.
fn register(kind: &str) -> &str {
    match kind {
        "u16" | "s16" | "f16" | "bf16" => "b16",
        "u8" | "s8" | "b8" => "b16",
        "u32" | "s32" | "f16x2" | "bf16x2" => "b32",
        "u64" | "s64" => "b64",
        other => other,
    }
}

/// The bits that a memory access of a type has.
fn stored(kind: &str) -> &str {
    match register(kind) {
        "f32" => "b32",
        "f64" => "b64",
        other => other,
    }
}

/// The results of `instruction`, which computes %d of %a, %b, %c, %e, for each set of operands. The types are those of
/// %d and of the operands.
pub fn evaluate(instruction: &str, result: &str, operands: &[(&str, &[u64])]) -> Vec<u64> {
    let count = operands.first().map_or(1, |(_, values)| values.len());
    let names = ["a", "b", "c", "e"];
    let mut body = String::from(
        ".reg .b64 %rd<10>;\n.reg .b32 %r<10>;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\n\
         mad.lo.u32 %r0, %r1, %r2, %r0;\nmul.wide.u32 %rd0, %r0, 8;\n",
    );
    for (at, (kind, _)) in operands.iter().enumerate() {
        let name = names[at];
        body += &format!(".reg .{} %{name};\nmov.b64 %rd1, {};\nadd.u64 %rd1, %rd1, %rd0;\n", register(kind), IN[at]);
        body += &match *kind {
            "pred" => format!("ld.global.b32 %r3, [%rd1];\nsetp.ne.u32 %{name}, %r3, 0;\n"),
            _ => format!("ld.global.{} %{name}, [%rd1];\n", stored(kind)),
        };
    }
    body += &format!(
        ".reg .{} %d;\n{{\n{instruction}\n}}\nmov.b64 %rd1, {OUT};\nadd.u64 %rd1, %rd1, %rd0;\n",
        register(result)
    );
    body += &match result {
        "pred" => "selp.u32 %r3, 1, 0, %d;\nst.global.b32 [%rd1], %r3;\n".to_string(),
        _ => format!("st.global.{} [%rd1], %d;\n", stored(result)),
    };
    let module = Module::parse(&kernel("", &body)).unwrap_or_else(|why| panic!("{instruction}: {why}\n{body}"));
    let mut out = vec![0u64; count];
    let mut inputs: Vec<Vec<u64>> = operands.iter().map(|(_, values)| values.to_vec()).collect();
    let mut memory = Slice::new();
    memory.add(OUT, &mut out);
    for (at, values) in inputs.iter_mut().enumerate() {
        memory.add(IN[at], values);
    }
    let threads = count.min(128) as u32;
    assert_eq!(count % threads as usize, 0);
    let blocks = count as u32 / threads;
    let run = module.entry("k").unwrap().run([blocks, 1, 1], [threads, 1, 1], 0, &[], &mut memory, &mut NoCalls);
    run.unwrap_or_else(|fault| panic!("{instruction}: {fault}"));
    out
}

/// `COUNT` random operands of a type.
pub fn operands(kind: &str, random: &mut random::Random) -> Vec<u64> {
    (0..COUNT)
        .map(|_| match kind {
            "pred" => random.below(2),
            "f16" => random.float(10, 5),
            "bf16" => random.float(7, 8),
            "f16x2" => random.float(10, 5) | random.float(10, 5) << 16,
            "bf16x2" => random.float(7, 8) | random.float(7, 8) << 16,
            "f32" => random.single(),
            "f64" => random.double(),
            "u8" | "s8" | "b8" => random.integer(8),
            "u16" | "s16" | "b16" => random.integer(16),
            "u32" | "s32" | "b32" => random.integer(32),
            _ => random.integer(64),
        })
        .collect()
}

/// Compares an instruction with `expected` on random operands of the types named.
#[track_caller]
pub fn check(instruction: &str, result: &str, kinds: &[&str], expected: impl Fn(&[u64]) -> u64) {
    let seed = instruction.bytes().fold(7u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut random = random::Random::new(seed);
    let values: Vec<Vec<u64>> = kinds.iter().map(|kind| operands(kind, &mut random)).collect();
    let named: Vec<(&str, &[u64])> =
        kinds.iter().zip(&values).map(|(kind, values)| (*kind, values.as_slice())).collect();
    let found = evaluate(instruction, result, &named);
    for (at, found) in found.iter().enumerate() {
        let operands: Vec<u64> = values.iter().map(|values| values[at]).collect();
        let expected = expected(&operands);
        assert!(*found == expected, "{instruction} of {operands:#x?} gives {found:#x}, expected {expected:#x}");
    }
}

pub fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The bits that an operation of a GPU gives for an f32: one NaN.
pub fn bits(value: f32) -> u64 {
    if value.is_nan() { 0x7FFF_FFFF } else { value.to_bits().into() }
}

pub fn bits_double(value: f64) -> u64 {
    if value.is_nan() { 0xFFF8_0000_0000_0000 } else { value.to_bits() }
}
