//! Loops over slices of the same length, in a form that the compiler turns into vector instructions.
#![forbid(unsafe_code)]

/// Not less than zero; a NaN stays a NaN.
#[inline(always)]
fn rectified(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// out = relu(x)
pub fn relu(x: &[f32], out: &mut [f32]) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = rectified(x);
    }
}

/// out = a + b
pub fn add(a: &[f32], b: &[f32], out: &mut [f32]) {
    for (out, (&a, &b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = a + b;
    }
}

/// out = a + b, with one b for all
pub fn add_scalar(a: &[f32], b: f32, out: &mut [f32]) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = a + b;
    }
}
