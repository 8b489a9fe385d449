//! Floating-point instructions, each alone, against the processor's arithmetic and, in directions, against what those
//! directions mean.

mod kit;

use kit::random::Random;
use kit::{bits, bits_double, check, evaluate, operands, single};

fn double(bits: u64) -> f64 {
    f64::from_bits(bits)
}

#[test]
fn to_nearest_as_the_processor_computes() {
    let f = single;
    check("add.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| bits(f(x[0]) + f(x[1])));
    check("add.rn.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| bits(f(x[0]) + f(x[1])));
    check("sub.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| bits(f(x[0]) - f(x[1])));
    check("mul.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| bits(f(x[0]) * f(x[1])));
    check("div.rn.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| bits(f(x[0]) / f(x[1])));
    check("rcp.rn.f32 %d, %a;", "f32", &["f32"], |x| bits(1.0 / f(x[0])));
    check("sqrt.rn.f32 %d, %a;", "f32", &["f32"], |x| bits(f(x[0]).sqrt()));
    check("fma.rn.f32 %d, %a, %b, %c;", "f32", &["f32"; 3], |x| bits(f(x[0]).mul_add(f(x[1]), f(x[2]))));
    let f = double;
    check("add.f64 %d, %a, %b;", "f64", &["f64"; 2], |x| bits_double(f(x[0]) + f(x[1])));
    check("sub.f64 %d, %a, %b;", "f64", &["f64"; 2], |x| bits_double(f(x[0]) - f(x[1])));
    check("mul.f64 %d, %a, %b;", "f64", &["f64"; 2], |x| bits_double(f(x[0]) * f(x[1])));
    check("div.rn.f64 %d, %a, %b;", "f64", &["f64"; 2], |x| bits_double(f(x[0]) / f(x[1])));
    check("rcp.rn.f64 %d, %a;", "f64", &["f64"], |x| bits_double(1.0 / f(x[0])));
    check("sqrt.rn.f64 %d, %a;", "f64", &["f64"], |x| bits_double(f(x[0]).sqrt()));
    check("fma.rn.f64 %d, %a, %b, %c;", "f64", &["f64"; 3], |x| bits_double(f(x[0]).mul_add(f(x[1]), f(x[2]))));
}

/// The sum and product of two f32 are known in f64 with their error, so the neighbours can be chosen by it.
#[test]
fn directions_of_singles() {
    /// The f32 at or next to `value + rest`, where `rest` is less than half a last place of the f64 `value`.
    fn directed(value: f64, rest: f64, up: bool) -> f32 {
        let near = value as f32;
        if !near.is_finite() && value.is_finite() || near.is_nan() || value.is_infinite() {
            return match (near == f32::INFINITY, near == f32::NEG_INFINITY, up) {
                (true, _, false) if value.is_finite() => f32::MAX,
                (_, true, true) if value.is_finite() => f32::MIN,
                _ => near,
            };
        }
        let error = (f64::from(near) - value) - rest;
        match (error.partial_cmp(&0.0), up) {
            (Some(std::cmp::Ordering::Less), true) => near.next_up(),
            (Some(std::cmp::Ordering::Greater), false) => near.next_down(),
            _ => near,
        }
    }
    type Exact = fn(f32, f32) -> (f64, f64);
    let exact: [(&str, Exact); 2] = [
        ("add", |a, b| {
            let (a, b) = (f64::from(a), f64::from(b));
            let sum = a + b;
            let back = sum - a;
            (sum, (a - (sum - back)) + (b - back))
        }),
        ("mul", |a, b| (f64::from(a) * f64::from(b), 0.0)),
    ];
    for (name, exact) in exact {
        for (mode, up) in [("rp", true), ("rm", false)] {
            check(&format!("{name}.{mode}.f32 %d, %a, %b;"), "f32", &["f32"; 2], |x| {
                let (a, b) = (single(x[0]), single(x[1]));
                let (value, rest) = exact(a, b);
                if name == "add" && value == 0.0 && (a != 0.0 || a.is_sign_negative() != b.is_sign_negative()) {
                    // An exact zero of two signs is negative only downwards.
                    return if up { 0 } else { 0x8000_0000 };
                }
                bits(directed(value, rest, up))
            });
        }
        check(&format!("{name}.rz.f32 %d, %a, %b;"), "f32", &["f32"; 2], |x| {
            let (value, rest) = exact(single(x[0]), single(x[1]));
            if value == 0.0 {
                return bits(value as f32) & if rest == 0.0 { u64::MAX } else { 0 };
            }
            bits(directed(value, rest, value < 0.0))
        });
    }
}

/// A quotient, root or fused sum downwards is at most what it is upwards, the two enclose the exact value, and they
/// differ by one place unless it is exact.
#[test]
fn directions_enclose() {
    let mut random = Random::new(11);
    for kind in ["f32", "f64"] {
        let (a, b, c) = (operands(kind, &mut random), operands(kind, &mut random), operands(kind, &mut random));
        for instruction in
            ["div.RR %d, %a, %b;", "fma.RR %d, %a, %b, %c;", "sqrt.RR %d, %a;", "rcp.RR %d, %b;", "sub.RR %d, %a, %c;"]
        {
            let run = |mode: &str| {
                let text = instruction.replace("RR", &format!("{mode}.{kind}"));
                evaluate(&text, kind, &[(kind, &a), (kind, &b), (kind, &c)])
            };
            let [nearest, down, up, zero] = ["rn", "rm", "rp", "rz"].map(run);
            let value = |bits: u64| if kind == "f32" { single(bits).into() } else { double(bits) };
            let mut inexact = 0;
            for at in 0..a.len() {
                let [n, d, u, z] = [nearest[at], down[at], up[at], zero[at]].map(value);
                if n.is_nan() {
                    assert!(d.is_nan() && u.is_nan() && z.is_nan(), "{instruction}");
                    continue;
                }
                assert!(d <= n && n <= u, "{instruction} of {:#x} {:#x} {:#x}: {d:e} {n:e} {u:e}", a[at], b[at], c[at]);
                assert_eq!(z, if d < 0.0 || u <= 0.0 { u } else { d }, "{instruction}");
                if d != u {
                    inexact += 1;
                    let next = if kind == "f32" { f64::from((d as f32).next_up()) } else { d.next_up() };
                    assert_eq!(next, u, "{instruction} of {:#x} {:#x} {:#x}", a[at], b[at], c[at]);
                }
            }
            assert!(inexact > 50, "{instruction}: {inexact} inexact results say little");
        }
    }
}

#[test]
fn signs_extremes_and_classes() {
    let is_nan = |x: u64| single(x).is_nan();
    // By bits, so that -0 is below +0.
    let order = |x: u64| if x >> 31 == 1 { !x as u32 as i32 ^ i32::MIN } else { x as i32 };
    for (name, larger) in [("min", false), ("max", true)] {
        let choose = |a: u64, b: u64| if (order(a) > order(b)) == larger { a } else { b };
        check(&format!("{name}.f32 %d, %a, %b;"), "f32", &["f32"; 2], |x| match (is_nan(x[0]), is_nan(x[1])) {
            (true, true) => 0x7FFF_FFFF,
            (true, false) => x[1],
            (false, true) => x[0],
            _ => choose(x[0], x[1]),
        });
        check(&format!("{name}.NaN.f32 %d, %a, %b;"), "f32", &["f32"; 2], |x| {
            if is_nan(x[0]) || is_nan(x[1]) { 0x7FFF_FFFF } else { choose(x[0], x[1]) }
        });
        check(&format!("{name}.f64 %d, %a, %b;"), "f64", &["f64"; 2], |x| {
            let (a, b) = (double(x[0]), double(x[1]));
            match (a.is_nan(), b.is_nan()) {
                (true, true) => bits_double(f64::NAN),
                (true, false) => x[1],
                (false, true) => x[0],
                _ if (a.total_cmp(&b) == std::cmp::Ordering::Greater) == larger => x[0],
                _ => x[1],
            }
        });
    }
    check("abs.f32 %d, %a;", "f32", &["f32"], |x| x[0] & 0x7FFF_FFFF);
    check("neg.f64 %d, %a;", "f64", &["f64"], |x| x[0] ^ 1 << 63);
    check("copysign.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| x[0] & 0x8000_0000 | x[1] & 0x7FFF_FFFF);
    check("testp.subnormal.f32 %d, %a;", "pred", &["f32"], |x| single(x[0]).is_subnormal().into());
    check("testp.normal.f64 %d, %a;", "pred", &["f64"], |x| double(x[0]).is_normal().into());
    check("testp.number.f32 %d, %a;", "pred", &["f32"], |x| (!is_nan(x[0])).into());
    check("testp.infinite.f32 %d, %a;", "pred", &["f32"], |x| single(x[0]).is_infinite().into());
    check("add.sat.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| {
        let sum = single(x[0]) + single(x[1]);
        if sum > 0.0 { bits(sum.min(1.0)) } else { 0 }
    });
}

#[test]
fn flushing_of_subnormal_numbers() {
    let flush = |x: u64| if single(x).is_subnormal() { x & 0x8000_0000 } else { x };
    let f = |x: u64| single(flush(x));
    check("add.ftz.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| flush(bits(f(x[0]) + f(x[1]))));
    check("mul.ftz.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| flush(bits(f(x[0]) * f(x[1]))));
    check("fma.rn.ftz.f32 %d, %a, %b, %c;", "f32", &["f32"; 3], |x| flush(bits(f(x[0]).mul_add(f(x[1]), f(x[2])))));
    check("setp.eq.ftz.f32 %d, %a, %b;", "pred", &["f32"; 2], |x| (f(x[0]) == f(x[1])).into());
    check("cvt.ftz.f64.f32 %d, %a;", "f64", &["f32"], |x| bits_double(f(x[0]).into()));
    check("abs.ftz.f32 %d, %a;", "f32", &["f32"], |x| flush(x[0]) & 0x7FFF_FFFF);
}

#[test]
fn comparisons_with_what_is_no_number() {
    type Holds = fn(f64, f64) -> bool;
    let names: [(&str, Holds); 14] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b && !a.is_nan() && !b.is_nan()),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
        ("equ", |a, b| a == b || a.is_nan() || b.is_nan()),
        ("neu", |a, b| a != b),
        ("ltu", |a, b| a < b || a.is_nan() || b.is_nan()),
        ("leu", |a, b| a <= b || a.is_nan() || b.is_nan()),
        ("gtu", |a, b| a > b || a.is_nan() || b.is_nan()),
        ("geu", |a, b| a >= b || a.is_nan() || b.is_nan()),
        ("num", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan", |a, b| a.is_nan() || b.is_nan()),
    ];
    for (name, holds) in names {
        check(&format!("setp.{name}.f32 %d, %a, %b;"), "pred", &["f32"; 2], |x| {
            holds(single(x[0]).into(), single(x[1]).into()).into()
        });
        check(&format!("setp.{name}.f64 %d, %a, %b;"), "pred", &["f64"; 2], |x| {
            holds(double(x[0]), double(x[1])).into()
        });
        // A half is compared as the single that it is.
        check(&format!("setp.{name}.f16 %d, %a, %b;"), "pred", &["f16"; 2], |x| holds(half(x[0]), half(x[1])).into());
    }
    // What is equal to itself reversed: a value against itself, and against its negative.
    check("setp.eq.f32 %d, %a, %a;", "pred", &["f32"], |x| (!single(x[0]).is_nan()).into());
    check("slct.f32.f32 %d, %a, %b, %c;", "f32", &["f32"; 3], |x| if single(x[2]) >= 0.0 { x[0] } else { x[1] });
}

/// The value of an f16, by its definition.
fn half(bits: u64) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f64);
    sign * match exponent {
        31 if fraction != 0.0 => f64::NAN,
        31 => f64::INFINITY,
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

fn brain(bits: u64) -> f64 {
    f64::from(f32::from_bits((bits as u32) << 16))
}

/// The f16 nearest to a value that an f64 holds exactly: found among all of one sign.
fn to_half(value: f64) -> u64 {
    if value.is_nan() {
        return 0x7FFF;
    }
    let sign = u64::from(value.is_sign_negative()) << 15;
    let value = value.abs();
    // What is at least half a place beyond the largest is infinite.
    if value >= 65520.0 {
        return sign | 0x7C00;
    }
    let (mut low, mut high) = (0u64, 0x7C00u64);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if half(middle) <= value { low = middle } else { high = middle }
    }
    let above = if high == 0x7C00 { 65536.0 } else { half(high) };
    let (below, over) = (value - half(low), above - value);
    sign | if below < over || below == over && low & 1 == 0 { low } else { high }
}

fn to_brain(value: f64) -> u64 {
    if value.is_nan() {
        return 0x7FFF;
    }
    let sign = u64::from(value.is_sign_negative()) << 15;
    let value = value.abs();
    if value >= 2f64.powi(127) * (2.0 - 2f64.powi(-8)) {
        return sign | 0x7F80;
    }
    let (mut low, mut high) = (0u64, 0x7F80u64);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if brain(middle) <= value { low = middle } else { high = middle }
    }
    let above = if high == 0x7F80 { 2f64.powi(128) } else { brain(high) };
    let (below, over) = (value - brain(low), above - value);
    sign | if below < over || below == over && low & 1 == 0 { low } else { high }
}

#[test]
fn halves() {
    // Sums and products of two f16 are exact in f64; a product of three factors' width is not asked for.
    check("add.f16 %d, %a, %b;", "f16", &["f16"; 2], |x| to_half(half(x[0]) + half(x[1])));
    check("sub.rn.f16 %d, %a, %b;", "f16", &["f16"; 2], |x| to_half(half(x[0]) - half(x[1])));
    check("mul.f16 %d, %a, %b;", "f16", &["f16"; 2], |x| to_half(half(x[0]) * half(x[1])));
    check("fma.rn.f16 %d, %a, %b, %c;", "f16", &["f16"; 3], |x| to_half(half(x[0]).mul_add(half(x[1]), half(x[2]))));
    check("mul.bf16 %d, %a, %b;", "bf16", &["bf16"; 2], |x| to_brain(brain(x[0]) * brain(x[1])));
    check("neg.f16 %d, %a;", "f16", &["f16"], |x| x[0] ^ 0x8000);
    check("abs.bf16 %d, %a;", "bf16", &["bf16"], |x| x[0] & 0x7FFF);
    let both = |x: u64, f: &dyn Fn(u64) -> u64| f(x & 0xFFFF) | f(x >> 16) << 16;
    check("neg.f16x2 %d, %a;", "f16x2", &["f16x2"], |x| both(x[0], &|x| x ^ 0x8000));
    check("mul.f16x2 %d, %a, %b;", "f16x2", &["f16x2"; 2], |x| {
        let lane = |shift: u32| to_half(half(x[0] >> shift & 0xFFFF) * half(x[1] >> shift & 0xFFFF));
        lane(0) | lane(16) << 16
    });
    check("fma.rn.bf16x2 %d, %a, %a, 0;", "bf16x2", &["bf16x2"], |x| {
        both(x[0], &|x| to_brain(brain(x) * brain(x) + 0.0))
    });
    check("max.NaN.f16 %d, %a, %b;", "f16", &["f16"; 2], |x| {
        let (a, b) = (half(x[0]), half(x[1]));
        if a.is_nan() || b.is_nan() {
            0x7FFF
        } else if a.total_cmp(&b) == std::cmp::Ordering::Greater {
            x[0]
        } else {
            x[1]
        }
    });
}

#[test]
fn conversions_between_floats() {
    check("cvt.f32.f16 %d, %a;", "f32", &["f16"], |x| bits(half(x[0]) as f32));
    check("cvt.f64.f16 %d, %a;", "f64", &["f16"], |x| bits_double(half(x[0])));
    check("cvt.f32.bf16 %d, %a;", "f32", &["bf16"], |x| bits(brain(x[0]) as f32));
    check("cvt.rn.f16.f32 %d, %a;", "f16", &["f32"], |x| to_half(single(x[0]).into()));
    check("cvt.rn.f16.f64 %d, %a;", "f16", &["f64"], |x| to_half(double(x[0])));
    check("cvt.rn.bf16.f32 %d, %a;", "bf16", &["f32"], |x| to_brain(single(x[0]).into()));
    check("cvt.rn.f16x2.f32 %d, %a, %b;", "f16x2", &["f32"; 2], |x| {
        to_half(single(x[0]).into()) << 16 | to_half(single(x[1]).into())
    });
    check("cvt.rn.f32.f64 %d, %a;", "f32", &["f64"], |x| bits(double(x[0]) as f32));
    check("cvt.f64.f32 %d, %a;", "f64", &["f32"], |x| bits_double(single(x[0]).into()));
    check("cvt.rz.f32.f64 %d, %a;", "f32", &["f64"], |x| {
        let near = double(x[0]) as f32;
        let beyond = f64::from(near).abs() > double(x[0]).abs();
        bits(match (near > 0.0, beyond) {
            (_, false) => near,
            (true, true) => near.next_down(),
            (false, true) => near.next_up(),
        })
    });
    check("cvt.rni.f32.f32 %d, %a;", "f32", &["f32"], |x| bits(single(x[0]).round_ties_even()));
    check("cvt.rzi.f32.f32 %d, %a;", "f32", &["f32"], |x| bits(single(x[0]).trunc()));
    check("cvt.rmi.f64.f64 %d, %a;", "f64", &["f64"], |x| bits_double(double(x[0]).floor()));
    check("cvt.rpi.f32.f32 %d, %a;", "f32", &["f32"], |x| bits(single(x[0]).ceil()));
    check(
        "cvt.sat.f32.f32 %d, %a;",
        "f32",
        &["f32"],
        |x| {
            if single(x[0]) > 0.0 { bits(single(x[0]).min(1.0)) } else { 0 }
        },
    );
}

#[test]
fn conversions_of_integers() {
    check("cvt.rn.f32.s32 %d, %a;", "f32", &["s32"], |x| bits(x[0] as i32 as f32));
    check("cvt.rn.f32.u64 %d, %a;", "f32", &["u64"], |x| bits(x[0] as f32));
    check("cvt.rn.f64.s64 %d, %a;", "f64", &["s64"], |x| bits_double(x[0] as i64 as f64));
    check("cvt.rn.f16.s32 %d, %a;", "f16", &["s32"], |x| to_half((x[0] as i32).into()));
    check("cvt.rn.f32.u8 %d, %a;", "f32", &["b16"], |x| bits(f32::from(x[0] as u8)));
    check("cvt.rz.f32.s32 %d, %a;", "f32", &["s32"], |x| {
        let exact = f64::from(x[0] as i32);
        let near = exact as f32;
        bits(if f64::from(near).abs() <= exact.abs() { near } else { f32::from_bits(near.to_bits() - 1) })
    });
    // Rust's own conversions saturate, and give 0 for what is no number.
    check("cvt.rzi.s32.f32 %d, %a;", "s32", &["f32"], |x| single(x[0]) as i32 as u32 as u64);
    check("cvt.rzi.u32.f32 %d, %a;", "u32", &["f32"], |x| (single(x[0]) as u32).into());
    check("cvt.rni.s32.f32 %d, %a;", "s32", &["f32"], |x| single(x[0]).round_ties_even() as i32 as u32 as u64);
    check("cvt.rmi.s32.f32 %d, %a;", "s32", &["f32"], |x| single(x[0]).floor() as i32 as u32 as u64);
    check("cvt.rpi.u32.f32 %d, %a;", "u32", &["f32"], |x| (single(x[0]).ceil() as u32).into());
    let nan_middle = |value: f64, or: u64, middle: u64| if value.is_nan() { middle } else { or };
    check("cvt.rzi.s64.f64 %d, %a;", "s64", &["f64"], |x| {
        nan_middle(double(x[0]), double(x[0]) as i64 as u64, 1 << 63)
    });
    check("cvt.rzi.u64.f32 %d, %a;", "u64", &["f32"], |x| {
        nan_middle(single(x[0]).into(), single(x[0]) as u64, 1 << 63)
    });
    check("cvt.rni.s32.f64 %d, %a;", "s32", &["f64"], |x| {
        nan_middle(double(x[0]), double(x[0]).round_ties_even() as i32 as u32 as u64, 1 << 31)
    });
    check("cvt.rzi.s16.f32 %d, %a;", "s16", &["f32"], |x| single(x[0]) as i16 as u16 as u64);
    // Between integers: cut, extended by the sign of the source, saturated.
    check("cvt.s32.s8 %d, %a;", "s32", &["b16"], |x| x[0] as i8 as u32 as u64);
    check("cvt.u32.u8 %d, %a;", "u32", &["b16"], |x| x[0] as u8 as u64);
    check("cvt.u64.s32 %d, %a;", "u64", &["s32"], |x| x[0] as i32 as u64);
    check("cvt.u16.u64 %d, %a;", "u16", &["u64"], |x| x[0] as u16 as u64);
    check("cvt.s64.u32 %d, %a;", "s64", &["u32"], |x| x[0]);
    check("cvt.sat.u8.s32 %d, %a;", "u32", &["s32"], |x| (x[0] as i32).clamp(0, 255) as u64);
    check("cvt.sat.s8.s32 %d, %a;", "s32", &["s32"], |x| (x[0] as i32).clamp(-128, 127) as u32 as u64);
    check("cvt.sat.s32.u32 %d, %a;", "s32", &["u32"], |x| x[0].min(i32::MAX as u64));
    check("cvt.s8.s32 %d, %a;", "s32", &["s32"], |x| x[0] as i8 as u32 as u64);
}

/// What is approximate on a GPU is here the nearest value, within the error of the host's functions.
#[test]
fn approximate_functions() {
    fn near(found: u64, expected: f64) -> bool {
        let (found, nearest) = (single(found), expected as f32);
        found.to_bits() == nearest.to_bits()
            || found.is_nan() && nearest.is_nan()
            || found == nearest.next_up()
            || found == nearest.next_down()
    }
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function); 8] = [
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("tanh", f64::tanh),
        ("ex2", f64::exp2),
        ("lg2", f64::log2),
        ("sqrt", f64::sqrt),
        ("rcp", f64::recip),
        ("rsqrt", |x| 1.0 / x.sqrt()),
    ];
    let mut random = Random::new(5);
    let x = operands("f32", &mut random);
    for (name, function) in functions {
        let found = evaluate(&format!("{name}.approx.f32 %d, %a;"), "f32", &[("f32", &x)]);
        for (x, found) in x.iter().zip(found) {
            let expected = function(single(*x).into());
            assert!(near(found, expected), "{name} of {:e}: {:e}, not {expected:e}", single(*x), single(found));
        }
    }
    check("div.full.f32 %d, %a, %b;", "f32", &["f32"; 2], |x| bits(single(x[0]) / single(x[1])));
    // The coarse reciprocal has 20 bits of fraction and leaves the lower word zero.
    let x = operands("f64", &mut random);
    let found = evaluate("rcp.approx.ftz.f64 %d, %a;", "f64", &[("f64", &x)]);
    for (x, found) in x.iter().zip(found) {
        let (x, found) = (double(*x), double(found));
        if x.is_normal() && (1.0 / x).is_normal() {
            assert!((found * x - 1.0).abs() < 2f64.powi(-18), "{x:e}: {found:e}");
            assert_eq!(found.to_bits() as u32, 0);
        }
    }
}
