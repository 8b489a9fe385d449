//! What the leaves compute, element by element: the same arithmetic in the kernels and in the interpreter.

use super::spec::{Op, Type};

fn fold(x: i32, y: i32) -> i32 {
    (x.rotate_left(5) ^ y).wrapping_mul(0x27d4_eb2d)
}

/// All elements of all inputs as one number; order matters.
fn digest(salt: i32, inputs: &[Vec<i32>]) -> i32 {
    inputs.iter().flatten().fold(salt, |x, &y| fold(x, y))
}

/// How many elements output `output` has, which is a `kind`: of a list, none three times in ten, and now and then many.
pub fn len(op: Op, output: usize, kind: Type, inputs: &[Vec<i32>]) -> usize {
    match op {
        Op::Mix { salt } if kind == Type::List => {
            let drawn = digest(salt ^ 0x11 ^ (output as i32 * 104_729), inputs) as u32 >> 9;
            let few = (drawn % 10).saturating_sub(2) as usize;
            if drawn.is_multiple_of(17) { few * 40 } else { few }
        }
        _ => kind.len(),
    }
}

/// Element `item` of output `output`, which is a `kind`.
pub fn item(op: Op, output: usize, kind: Type, item: usize, inputs: &[Vec<i32>]) -> i32 {
    match op {
        Op::Mix { salt } => {
            let salt = salt ^ (output as i32 * 7919) ^ (item as i32);
            // Of a tensor, the element above; of everything, all of it.
            let whole = if kind.len() == 1 || kind == Type::List { digest(salt, inputs) } else { salt };
            let mixed = inputs.iter().fold(whole, |x, input| fold(x, input[item % input.len()]));
            narrow(kind, mixed)
        }
        Op::Trips { salt, most } => (digest(salt, inputs) as u32 >> 9) as i32 % (most + 1),
        Op::Less => inputs[0][0].wrapping_sub(1),
        Op::Again { salt, early } => {
            let more = inputs[0][0] > 0;
            let stop = early && digest(salt, &inputs[1..]) as u32 >> 29 == 0;
            match kind {
                _ if !more || stop => 0,
                Type::Byte => 255,
                Type::Small => -1,
                Type::Int => inputs[0][0],
                Type::Bool | Type::Five | Type::Six | Type::List => 1,
            }
        }
        Op::Sum => inputs.iter().fold(0, |sum, input| sum.wrapping_add(input[item % input.len()])),
    }
}

/// Small types take few values, so that each way of a decision is taken often; indices that are out of range too.
pub fn narrow(kind: Type, value: i32) -> i32 {
    let high = value >> 9;
    match kind {
        Type::Five | Type::Six | Type::List => value,
        Type::Bool => high & 1,
        Type::Byte => high & 3,
        Type::Small => (high & 7) - 3,
        Type::Int => (high & 7) - 2,
    }
}

/// What one call of a leaf saw, as a number. A sum of these over all calls doesn't depend on their order.
pub fn sight(inputs: &[Vec<i32>]) -> u64 {
    let one = u64::from(digest(0x5eed, inputs) as u32);
    one.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ one
}
