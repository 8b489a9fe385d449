//! Integer instructions, each alone, against plain Rust.

mod kit;

use kit::check;

fn cut(value: i128, width: u32) -> u64 {
    (value as u64) & (u64::MAX >> (64 - width))
}

fn wide(value: u64, kind: &str) -> i128 {
    let width: u32 = kind[1..].parse().unwrap();
    if kind.starts_with('s') { i128::from(((value << (64 - width)) as i64) >> (64 - width)) } else { i128::from(value) }
}

const KINDS: [(&str, u32); 6] = [("u16", 16), ("s16", 16), ("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)];

#[test]
fn arithmetic() {
    for (kind, width) in KINDS {
        let binary = |name: &str, f: &dyn Fn(i128, i128) -> i128| {
            check(&format!("{name}.{kind} %d, %a, %b;"), kind, &[kind, kind], |x| {
                cut(f(wide(x[0], kind), wide(x[1], kind)), width)
            });
        };
        binary("add", &|a, b| a + b);
        binary("sub", &|a, b| a - b);
        binary("mul.lo", &|a, b| a.wrapping_mul(b));
        binary("mul.hi", &|a, b| a.wrapping_mul(b) >> width);
        binary("div", &|a, b| if b == 0 { -1 } else { a / b });
        binary("rem", &|a, b| if b == 0 { a } else { a % b });
        binary("min", &|a, b| a.min(b));
        binary("max", &|a, b| a.max(b));
        let ternary = |name: &str, f: &dyn Fn(i128, i128, i128) -> i128| {
            check(&format!("{name}.{kind} %d, %a, %b, %c;"), kind, &[kind, kind, kind], |x| {
                cut(f(wide(x[0], kind), wide(x[1], kind), wide(x[2], kind)), width)
            });
        };
        ternary("mad.lo", &|a, b, c| a.wrapping_mul(b).wrapping_add(c));
        ternary("mad.hi", &|a, b, c| (a.wrapping_mul(b) >> width) + c);
        ternary("sad", &|a, b, c| (a - b).abs() + c);
        if kind.starts_with('s') {
            check(&format!("neg.{kind} %d, %a;"), kind, &[kind], |x| cut(-wide(x[0], kind), width));
            check(&format!("abs.{kind} %d, %a;"), kind, &[kind], |x| cut(wide(x[0], kind).abs(), width));
        }
        if width < 64 {
            let double = format!("{}{}", &kind[..1], width * 2);
            check(&format!("mul.wide.{kind} %d, %a, %b;"), &double, &[kind, kind], |x| {
                cut(wide(x[0], kind) * wide(x[1], kind), width * 2)
            });
            check(&format!("mad.wide.{kind} %d, %a, %b, %c;"), &double, &[kind, kind, &double], |x| {
                cut(wide(x[0], kind) * wide(x[1], kind) + i128::from(x[2]), width * 2)
            });
        }
    }
    let saturated = |value: i128| cut(value.clamp(i32::MIN.into(), i32::MAX.into()), 32);
    let s = |x: u64| wide(x, "s32");
    check("add.sat.s32 %d, %a, %b;", "s32", &["s32", "s32"], |x| saturated(s(x[0]) + s(x[1])));
    check("sub.sat.s32 %d, %a, %b;", "s32", &["s32", "s32"], |x| saturated(s(x[0]) - s(x[1])));
    check("mad.hi.sat.s32 %d, %a, %b, %c;", "s32", &["s32"; 3], |x| saturated(((s(x[0]) * s(x[1])) >> 32) + s(x[2])));
    check("mul24.lo.u32 %d, %a, %b;", "u32", &["u32"; 2], |x| {
        cut(i128::from((x[0] << 40 >> 40) * (x[1] << 40 >> 40)), 32)
    });
    check("mad24.hi.s32 %d, %a, %b, %c;", "s32", &["s32"; 3], |x| {
        let low = |x: u64| i128::from((x << 40) as i64 >> 40);
        cut(((low(x[0]) * low(x[1])) >> 16) + i128::from(x[2]), 32)
    });
}

#[test]
fn long_arithmetic_by_carries() {
    // 128 bits of two words each: the low words come in, the high ones are their complements.
    let sum = "{ .reg .b64 %h<4>; not.b64 %h0, %a; not.b64 %h1, %b; add.cc.u64 %h2, %a, %b; addc.u64 %d, %h0, %h1; }";
    check(sum, "u64", &["u64", "u64"], |x| {
        let whole = |low: u64| u128::from(!low) << 64 | u128::from(low);
        (whole(x[0]).wrapping_add(whole(x[1])) >> 64) as u64
    });
    let difference =
        "{ .reg .b32 %h<4>; not.b32 %h0, %a; not.b32 %h1, %b; sub.cc.u32 %h2, %a, %b; subc.u32 %d, %h0, %h1; }";
    check(difference, "u32", &["u32", "u32"], |x| {
        let whole = |low: u64| u64::from(!(low as u32)) << 32 | low;
        whole(x[0]).wrapping_sub(whole(x[1])) >> 32
    });
    // The square of a, from words, as libdevice's reduction of large angles does it.
    let product = "{ .reg .b32 %h<9>; mov.b64 {%h0, %h1}, %a; mov.b64 {%h2, %h3}, %b; mul.lo.u32 %h4, %h0, %h2; \
                   mul.hi.u32 %h5, %h0, %h2; mad.lo.cc.u32 %h5, %h1, %h2, %h5; madc.hi.u32 %h6, %h1, %h2, 0; \
                   mad.lo.cc.u32 %h5, %h0, %h3, %h5; madc.hi.cc.u32 %h6, %h0, %h3, %h6; addc.u32 %h7, 0, 0; \
                   mad.lo.cc.u32 %h6, %h1, %h3, %h6; madc.hi.u32 %h7, %h1, %h3, %h7; mov.b64 %d, {%h6, %h7}; }";
    check(product, "u64", &["u64", "u64"], |x| ((u128::from(x[0]) * u128::from(x[1])) >> 64) as u64);
}

#[test]
fn logic_and_shifts() {
    for (kind, width) in [("b16", 16u32), ("b32", 32), ("b64", 64)] {
        let two = [kind, kind];
        check(&format!("and.{kind} %d, %a, %b;"), kind, &two, |x| x[0] & x[1]);
        check(&format!("or.{kind} %d, %a, %b;"), kind, &two, |x| x[0] | x[1]);
        check(&format!("xor.{kind} %d, %a, %b;"), kind, &two, |x| x[0] ^ x[1]);
        check(&format!("not.{kind} %d, %a;"), kind, &[kind], |x| cut(!i128::from(x[0]), width));
        check(&format!("cnot.{kind} %d, %a;"), kind, &[kind], |x| u64::from(x[0] == 0));
        let by = |x: u64| x as u32 & 127;
        let amount = ".reg .b32 %n; and.b32 %n, %b, 127;";
        check(&format!("{amount} shl.{kind} %d, %a, %n;"), kind, &[kind, "b32"], |x| {
            if by(x[1]) >= width { 0 } else { cut(i128::from(x[0]) << by(x[1]), width) }
        });
        let (unsigned, signed) = (format!("u{width}"), format!("s{width}"));
        check(&format!("{amount} shr.{unsigned} %d, %a, %n;"), kind, &[kind, "b32"], |x| {
            if by(x[1]) >= width { 0 } else { x[0] >> by(x[1]) }
        });
        check(&format!("{amount} shr.{signed} %d, %a, %n;"), kind, &[kind, "b32"], |x| {
            cut(wide(x[0], &signed) >> by(x[1]).min(127), width)
        });
    }
    check("and.pred %d, %a, !%b;", "pred", &["pred", "pred"], |x| x[0] & (x[1] ^ 1));
    check("not.pred %d, %a;", "pred", &["pred"], |x| x[0] ^ 1);
    let both = |x: &[u64]| x[1] << 32 | x[0];
    check("shf.l.wrap.b32 %d, %a, %b, %c;", "b32", &["b32"; 3], |x| both(x) << (x[2] & 31) >> 32);
    check("shf.r.wrap.b32 %d, %a, %b, %c;", "b32", &["b32"; 3], |x| both(x) >> (x[2] & 31) & 0xFFFF_FFFF);
    check("shf.l.clamp.b32 %d, %a, %b, %c;", "b32", &["b32"; 3], |x| both(x) << x[2].min(32) >> 32);
    check("shf.r.clamp.b32 %d, %a, %b, %c;", "b32", &["b32"; 3], |x| both(x) >> x[2].min(32) & 0xFFFF_FFFF);
    for table in [0x80u64, 0xFE, 0x96, 0xE8, 0x1A, 0xCA] {
        check(&format!("lop3.b32 %d, %a, %b, %c, {table};"), "b32", &["b32"; 3], |x| {
            (0..32).fold(0, |word, bit| {
                let index = (x[0] >> bit & 1) << 2 | (x[1] >> bit & 1) << 1 | x[2] >> bit & 1;
                word | (table >> index & 1) << bit
            })
        });
    }
}

#[test]
fn bits_and_fields() {
    for (kind, width) in [("b32", 32u32), ("b64", 64)] {
        check(&format!("popc.{kind} %d, %a;"), "u32", &[kind], |x| x[0].count_ones().into());
        check(&format!("clz.{kind} %d, %a;"), "u32", &[kind], |x| (x[0].leading_zeros() + width - 64).into());
        check(&format!("brev.{kind} %d, %a;"), kind, &[kind], |x| x[0].reverse_bits() >> (64 - width));
        for sign in ["u", "s"] {
            let typed = format!("{sign}{width}");
            // The highest bit that is not as the sign is.
            let highest = |x: u64| {
                let x = if wide(x, &typed) < 0 { cut(!i128::from(x), width) } else { x };
                (0..width).rev().find(|bit| x >> bit & 1 == 1)
            };
            check(&format!("bfind.{typed} %d, %a;"), "u32", &[kind], |x| highest(x[0]).unwrap_or(u32::MAX).into());
            check(&format!("bfind.shiftamt.{typed} %d, %a;"), "u32", &[kind], |x| {
                highest(x[0]).map_or(u32::MAX, |bit| width - 1 - bit).into()
            });
            let field = ".reg .b32 %m<2>; and.b32 %m0, %b, 127; and.b32 %m1, %c, 127;";
            check(&format!("{field} bfe.{typed} %d, %a, %m0, %m1;"), kind, &[kind, "u32", "u32"], |x| {
                let (from, length) = (x[1] as u32 & 127, x[2] as u32 & 127);
                let bit = |at: u32| x[0] >> at & 1;
                let sign_bit = if sign == "u" || length == 0 { 0 } else { bit((from + length - 1).min(width - 1)) };
                (0..width).fold(0, |word, i| {
                    word | (if i < length && from + i < width { bit(from + i) } else { sign_bit }) << i
                })
            });
        }
        let field = ".reg .b32 %m<2>; and.b32 %m0, %c, 127; and.b32 %m1, %e, 127;";
        check(&format!("{field} bfi.{kind} %d, %a, %b, %m0, %m1;"), kind, &[kind, kind, "u32", "u32"], |x| {
            let (at, length) = (x[2] as u32 & 127, x[3] as u32 & 127);
            (0..width).fold(0, |word, i| {
                let inserted = i >= at && i - at < length;
                word | (if inserted { x[0] >> (i - at) & 1 } else { x[1] >> i & 1 }) << i
            })
        });
    }
    check("prmt.b32 %d, %a, %b, %c;", "b32", &["b32"; 3], |x| {
        let bytes: Vec<u8> = [x[0] as u32, x[1] as u32].iter().flat_map(|word| word.to_le_bytes()).collect();
        (0..4).fold(0, |word, i| {
            let choice = x[2] >> (4 * i) & 15;
            let byte = bytes[choice as usize & 7];
            let byte = if choice < 8 {
                byte
            } else if byte & 0x80 != 0 {
                0xFF
            } else {
                0
            };
            word | u64::from(byte) << (8 * i)
        })
    });
    check("bmsk.clamp.b32 %d, %a, %b;", "b32", &["b32"; 2], |x| {
        (0..32u64).filter(|i| *i >= x[0] && *i - x[0] < x[1]).fold(0, |word, i| word | 1 << i)
    });
    check("szext.clamp.s32 %d, %a, %b;", "s32", &["s32", "u32"], |x| match x[1] {
        0 => 0,
        n if n >= 32 => x[0],
        n => cut(i128::from((x[0] << (64 - n)) as i64 >> (64 - n)), 32),
    });
    check("dp4a.s32.u32 %d, %a, %b, %c;", "s32", &["b32", "b32", "s32"], |x| {
        let products = (0..4).map(|i| i128::from((x[0] >> (8 * i)) as i8) * i128::from((x[1] >> (8 * i)) as u8));
        cut(products.sum::<i128>() + i128::from(x[2]), 32)
    });
}

#[test]
fn comparisons_and_choices() {
    type Holds = fn(i128, i128) -> bool;
    let names: [(&str, Holds); 6] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
    ];
    for (kind, _) in KINDS {
        for (name, holds) in names {
            let holds = |x: &[u64]| holds(wide(x[0], kind), wide(x[1], kind));
            check(&format!("setp.{name}.{kind} %d, %a, %b;"), "pred", &[kind, kind], |x| holds(x).into());
            let joined = format!("setp.{name}.xor.{kind} %d, %a, %b, !%c;");
            check(&joined, "pred", &[kind, kind, "pred"], |x| u64::from(holds(x)) ^ x[2] ^ 1);
            let second = format!("{{ .reg .pred %q; setp.{name}.and.{kind} %q|%d, %a, %b, %c; }}");
            check(&second, "pred", &[kind, kind, "pred"], |x| u64::from(!holds(x)) & x[2]);
            check(&format!("set.{name}.u32.{kind} %d, %a, %b;"), "u32", &[kind, kind], |x| {
                if holds(x) { 0xFFFF_FFFF } else { 0 }
            });
            check(&format!("set.{name}.f32.{kind} %d, %a, %b;"), "f32", &[kind, kind], |x| {
                if holds(x) { 0x3F80_0000 } else { 0 }
            });
        }
        check(&format!("selp.{kind} %d, %a, %b, %c;"), kind, &[kind, kind, "pred"], |x| x[usize::from(x[2] == 0)]);
        check(&format!("slct.{kind}.s32 %d, %a, %b, %c;"), kind, &[kind, kind, "s32"], |x| {
            if x[2] as i32 >= 0 { x[0] } else { x[1] }
        });
    }
}

#[test]
fn registers_taken_apart_and_joined() {
    check("{ .reg .b32 %h<2>; mov.b64 {%h0, %h1}, %a; mov.b64 %d, {%h1, %h0}; }", "b64", &["b64"], |x| {
        x[0].rotate_left(32)
    });
    check(
        "{ .reg .b16 %h<4>; mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %d, {%h3, %h2, %h1, %h0}; }",
        "b64",
        &["b64"],
        |x| x[0] << 48 | (x[0] >> 16 & 0xFFFF) << 32 | (x[0] >> 32 & 0xFFFF) << 16 | x[0] >> 48,
    );
    check("{ .reg .b16 %h; mov.b32 {_, %h}, %a; cvt.u32.u16 %d, %h; }", "b32", &["b32"], |x| x[0] >> 16);
}
