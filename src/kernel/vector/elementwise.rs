//! Rectifiers and sums over slices of the same length, compiled for every instruction set.
#![forbid(unsafe_code)]

use super::isa::Isa;
use super::levels::{self, LevelLoop};

/// out = relu(x)
pub fn relu(isa: Isa, x: &[f32], out: &mut [f32]) {
    levels::on(isa, ReluLoop(x, out));
}

/// out = a + b
pub fn add(isa: Isa, a: &[f32], b: &[f32], out: &mut [f32]) {
    levels::on(isa, AddLoop(a, b, out));
}

/// out = a + b, with a scalar b
pub fn add_scalar(isa: Isa, a: &[f32], b: f32, out: &mut [f32]) {
    levels::on(isa, AddScalar(a, b, out));
}

struct ReluLoop<'a>(&'a [f32], &'a mut [f32]);
struct AddLoop<'a>(&'a [f32], &'a [f32], &'a mut [f32]);
struct AddScalar<'a>(&'a [f32], f32, &'a mut [f32]);

impl LevelLoop for ReluLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.1.iter_mut().zip(self.0) {
            // Not less than zero; a NaN stays a NaN.
            *out = if x < 0.0 { 0.0 } else { x };
        }
    }
}

impl LevelLoop for AddLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, (&a, &b)) in self.2.iter_mut().zip(self.0.iter().zip(self.1)) {
            *out = a + b;
        }
    }
}

impl LevelLoop for AddScalar<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &a) in self.2.iter_mut().zip(self.0) {
            *out = a + self.1;
        }
    }
}
