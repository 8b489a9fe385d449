//! The rule of comparison, per point: e is the reference rounded to the type, g what was computed. Good is
//! - g = e, of NaN and infinities the same kind and sign;
//! - of small numbers, |e| <= 1e-5, a difference below the float's epsilon;
//! - a difference of at most the tolerance, relative to e if that is larger than 1e-5;
//! - of integers also the neighbour, where the reference lies within 9e-6 of the middle of two.
//!
//! Trust: an output with more zeros than the operation's limit shows nothing, and counts as wrong.

use crate::values::{Values, is_integer, rounded};
use weir_core::base::dtype;

/// Below this a number is small.
const SMALL: f64 = 1e-5;
const TIE: f64 = 9e-6;

/// The distance from 1 to the next number of a type.
pub fn epsilon(of: u32) -> f64 {
    match of {
        dtype::F32 => f64::from(f32::EPSILON),
        dtype::F16 => 2f64.powi(-10),
        dtype::BF16 => 2f64.powi(-7),
        _ => 0.0,
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub tolerance: f64,
    /// Smaller differences are none.
    pub absolute: f64,
    /// Most zeros, in percent.
    pub zeros: usize,
}

impl Rule {
    pub const EXACT: Rule = Rule { tolerance: 0.0, absolute: 0.0, zeros: 30 };

    pub fn with(tolerance: f64) -> Rule {
        Rule { tolerance, ..Rule::EXACT }
    }

    pub fn zeros(self, percent: usize) -> Rule {
        Rule { zeros: percent, ..self }
    }

    fn holds(&self, of: u32, reference: f64, g: f64) -> bool {
        let e = rounded(of, reference);
        if e == g || e.is_nan() && g.is_nan() {
            return true;
        }
        if !e.is_finite() || !g.is_finite() {
            return false;
        }
        let distance = (e - g).abs();
        if is_integer(of) {
            let from_tie = ((reference - reference.floor()) - 0.5).abs();
            return distance <= 1.0 && from_tie <= TIE;
        }
        let small = e.abs() <= SMALL;
        distance < if small { f64::from(f32::EPSILON) } else { self.absolute }
            || (if small { distance } else { distance / e.abs() }) <= self.tolerance
    }

    /// What is wrong with an output.
    pub fn complaint(&self, reference: &[f64], got: &Values) -> Option<String> {
        if reference.len() != got.x.len() {
            return Some(format!("{} elements, expected {}", got.x.len(), reference.len()));
        }
        let wrong: Vec<usize> =
            (0..reference.len()).filter(|&i| !self.holds(got.dtype, reference[i], got.x[i])).collect();
        if let Some(&i) = wrong.first() {
            let e = rounded(got.dtype, reference[i]);
            return Some(format!("{} wrong of {}, first [{i}]: {:e} for {e:e}", wrong.len(), got.x.len(), got.x[i]));
        }
        let zeros = got.x.iter().filter(|&&x| x == 0.0).count();
        let most = reference.len() * self.zeros / 100;
        (zeros > most.max(usize::from(self.zeros == 100) * zeros))
            .then(|| format!("no trust: {zeros} zeros in {}, at most {} percent may be", got.x.len(), self.zeros))
    }
}

#[test]
fn the_rule_finds_what_is_wrong() {
    let floats = |x: &[f64]| Values::new(dtype::F32, &[x.len() as i64], x.to_vec());
    let complains = |rule: Rule, reference: &[f64], got: Values| rule.complaint(reference, &got).is_some();
    let rule = Rule::with(1e-6);
    assert!(!complains(rule, &[1.0, 2.0], floats(&[1.000_000_9, 2.0])));
    assert!(complains(rule, &[1.0, 2.0], floats(&[1.000_002, 2.0])));
    assert!(complains(Rule::EXACT, &[1.0, 2.0], floats(&[1.000_000_2, 2.0])));
    assert!(!complains(Rule::EXACT, &[1e-6, 2.0], floats(&[1.1e-6, 2.0])), "small");
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    assert!(!complains(rule, &[nan, infinity], floats(&[nan, infinity])));
    assert!(!complains(rule, &[1e40, 1.0], floats(&[infinity, 1.0])), "too large for the type");
    for wrong in [[nan, -infinity], [1.0, infinity], [nan, 1e38], [infinity, nan]] {
        assert!(complains(Rule::with(10.0), &[nan, infinity], floats(&wrong)), "{wrong:?}");
    }
    assert!(complains(rule, &[1.0, 2.0], floats(&[1.0])), "a missing element");
    assert!(complains(rule, &[1.0, 0.0, 0.0], floats(&[1.0, 0.0, 0.0])), "no trust");
    assert!(!complains(rule.zeros(70), &[1.0, 0.0, 0.0], floats(&[1.0, 0.0, 0.0])));
    let bytes = |x: f64| Values::new(dtype::S8, &[1], vec![x]);
    assert!(!complains(Rule::EXACT, &[2.500_001], bytes(2.0)), "a tie");
    assert!(complains(Rule::EXACT, &[2.6], bytes(2.0)));
    assert!(complains(Rule::EXACT, &[2.4], bytes(3.0)));
    assert!(!complains(Rule::EXACT, &[1000.0], bytes(127.0)), "saturated");
}
