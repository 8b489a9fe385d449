//! The functions of libdevice, as NVRTC inlines them, interpreted: their errors against f64 are within the documented
//! ones. This tries long chains of instructions that are exact to the last bit or wrong.

mod kit;

use kit::launch::{Loaded, Parameters, buffer, load};
use kit::random::Random;
use weir_ptx::Slice;

const COUNT: usize = 4096;

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
}

fn module() -> Loaded {
    load(include_str!("../samples/math.ptx"))
}

/// Random numbers of all sizes, the values where functions change, and what is no number.
fn operands(random: &mut Random, least: f32, most: f32) -> Vec<f32> {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-45,
        88.7,
        -104.0,
    ];
    let mut found: Vec<f32> = edges.into_iter().collect();
    while found.len() < COUNT {
        found.push(match random.below(3) {
            0 => f32::from_bits(random.single() as u32),
            _ => least + (most - least) * ((random.bits() >> 40) as f32 / (1u32 << 24) as f32),
        });
    }
    found
}

fn run(module: &mut Loaded, name: &str, operands: &mut [Vec<f32>]) -> Vec<f32> {
    let mut out = vec![0f32; COUNT];
    let mut parameters = Parameters::new();
    let mut memory = Slice::new();
    for (at, values) in operands.iter_mut().enumerate() {
        memory.add(buffer(at as u64), values);
        parameters = parameters.pointer(buffer(at as u64));
    }
    memory.add(buffer(9), &mut out);
    let parameters = parameters.pointer(buffer(9)).word(COUNT as u32);
    let blocks = [COUNT as u32 / 128, 1, 1];
    module
        .run(&format!("{name}_"), blocks, [128, 1, 1], &parameters.0, &mut memory)
        .unwrap_or_else(|fault| panic!("{fault}"));
    out
}

/// How many floats lie between two.
fn distance(a: f32, b: f32) -> u64 {
    let place = |x: f32| if x.is_sign_negative() { -i64::from(x.to_bits() & 0x7FFF_FFFF) } else { x.to_bits().into() };
    if a.is_nan() && b.is_nan() {
        0
    } else if a.is_nan() || b.is_nan() {
        u64::MAX
    } else {
        place(a).abs_diff(place(b))
    }
}

#[test]
fn functions_of_one_single() {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function, u64, f32); 12] = [
        ("exp", f64::exp, 1, 90.0),
        ("exp2", f64::exp2, 2, 130.0),
        ("expm1", f64::exp_m1, 1, 10.0),
        ("log", f64::ln, 1, 50.0),
        ("log2", f64::log2, 1, 50.0),
        ("log1p", f64::ln_1p, 1, 5.0),
        ("sin", f64::sin, 2, 1e6),
        ("tanh", f64::tanh, 2, 10.0),
        ("sinh", f64::sinh, 3, 20.0),
        ("atan", f64::atan, 2, 10.0),
        ("erf", |x| erf(x), 2, 4.0),
        ("cbrt", f64::cbrt, 1, 1e4),
    ];
    let mut random = Random::new(6);
    let mut module = module();
    for (name, function, allowed, range) in functions {
        let x = operands(&mut random, -range, range);
        let found = run(&mut module, name, &mut [x.clone()]);
        let mut worst = 0;
        for (x, found) in x.iter().zip(&found) {
            let expected = function(f64::from(*x)) as f32;
            let distance = distance(*found, expected);
            assert!(distance <= allowed, "{name} of {x:e} is {found:e}, expected {expected:e}: {distance} places");
            worst = worst.max(distance);
        }
        println!("{name}: at most {worst} places from the nearest");
    }
}

#[test]
fn functions_of_two_singles() {
    type Function = fn(f64, f64) -> f64;
    let functions: [(&str, Function, u64); 3] =
        [("pow", f64::powf, 4), ("atan2", f64::atan2, 3), ("fmod", |a, b| a % b, 0)];
    let mut random = Random::new(7);
    let mut module = module();
    for (name, function, allowed) in functions {
        let x = operands(&mut random, -10.0, 100.0);
        let y = operands(&mut random, -12.0, 12.0);
        let found = run(&mut module, name, &mut [x.clone(), y.clone()]);
        for ((x, y), found) in x.iter().zip(&y).zip(&found) {
            let expected = function(f64::from(*x), f64::from(*y)) as f32;
            let distance = distance(*found, expected);
            assert!(distance <= allowed, "{name} of {x:e}, {y:e} is {found:e}, expected {expected:e}");
        }
    }
}

#[test]
fn functions_of_a_double() {
    type Function = fn(f64) -> f64;
    // One place more than documented, since the host's functions are not exact themselves.
    let functions: [(&str, Function, u64); 3] = [("exp", f64::exp, 2), ("log", f64::ln, 2), ("tanh", f64::tanh, 2)];
    let mut random = Random::new(8);
    let mut module = module();
    for (name, function, allowed) in functions {
        let mut x: Vec<f64> = (0..COUNT)
            .map(|at| match at % 3 {
                0 => f64::from_bits(random.double()),
                _ => (random.bits() >> 11) as f64 / (1u64 << 53) as f64 * 1000.0 - 300.0,
            })
            .collect();
        let before = x.clone();
        let mut out = vec![0f64; COUNT];
        let mut memory = Slice::new();
        memory.add(buffer(0), &mut x);
        memory.add(buffer(1), &mut out);
        let parameters = Parameters::new().pointer(buffer(0)).pointer(buffer(1)).word(COUNT as u32);
        let entry = format!("{name}_double");
        module.run(&entry, [COUNT as u32 / 128, 1, 1], [128, 1, 1], &parameters.0, &mut memory).unwrap();
        for (x, found) in before.iter().zip(&out) {
            let expected = function(*x);
            if expected.is_nan() {
                assert!(found.is_nan(), "{name} of {x:e} is {found:e}");
                continue;
            }
            let place =
                |x: f64| if x.is_sign_negative() { -((x.to_bits() << 1 >> 1) as i64) } else { x.to_bits() as i64 };
            let distance = place(*found).abs_diff(place(expected));
            assert!(distance <= allowed, "{name} of {x:e} is {found:e}, expected {expected:e}: {distance} places");
        }
    }
}
