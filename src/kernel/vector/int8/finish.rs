//! Epilogue, from exact sums to C: saturate(round(alpha * sum + beta * C + offset)).
//!
//! With alpha and beta 0 or 1 this is integer arithmetic in 64 bits, exact up to the final saturation. Otherwise it is
//! f64 arithmetic, each operation rounded to nearest even, and the result too before it saturates. Neither depends on
//! the instruction set.
//!
//! The functions are compiled once per instruction set: everything here is inlined into its caller.

/// The offset that is added to C.
#[derive(Clone, Copy, Debug)]
pub enum Offset<'a> {
    Fixed(i32),
    /// One number per column, the same for all rows.
    Row(&'a [i32]),
    /// One number per row.
    Column(&'a [i32]),
}

/// The rule that converts sums to elements of C.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// Finite.
    pub alpha: f32,
    /// Finite. With 0 C is not read.
    pub beta: f32,
    pub offset: Offset<'a>,
}

impl Rule<'_> {
    /// Whether 32-bit sums are elements of C as they are.
    pub fn is_plain(&self) -> bool {
        self.alpha == 1.0 && self.beta == 0.0 && matches!(self.offset, Offset::Fixed(0))
    }
}

/// The position of a tile in C.
pub struct TilePosition {
    pub row: usize,
    pub column: usize,
    pub rows: usize,
    pub columns: usize,
    /// Row stride of C, in elements.
    pub c_stride: usize,
    /// Row stride of the sums, in elements.
    pub stride: usize,
}

/// A sum of 32 or 64 bits.
pub trait Sum: Copy {
    fn exact(self) -> i64;
    fn float(self) -> f64;
}

impl Sum for i32 {
    #[inline(always)]
    fn exact(self) -> i64 {
        i64::from(self)
    }
    #[inline(always)]
    fn float(self) -> f64 {
        f64::from(self)
    }
}

impl Sum for i64 {
    #[inline(always)]
    fn exact(self) -> i64 {
        self
    }
    #[inline(always)]
    fn float(self) -> f64 {
        self as f64
    }
}

#[inline(always)]
fn saturated(value: i64) -> i32 {
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// Rounds to nearest even, then saturates. Never a NaN: alpha and beta are finite floats, and f64 covers their range.
#[inline(always)]
fn rounded(value: f64) -> i32 {
    // Adding 1.5 * 2^52 rounds to an integer, on every processor in a few instructions.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let value = if value > f64::from(i32::MIN) { value } else { f64::from(i32::MIN) };
    let value = if value < f64::from(i32::MAX) { value } else { f64::from(i32::MAX) };
    // The integer is in the low bits.
    (value + ROUND).to_bits() as i32
}

/// Writes a tile of C from sums.
///
/// # Safety
/// The sums and the part of C lie where `place` says; that part is exclusive.
#[inline(always)]
pub unsafe fn tile<S: Sum>(rule: &Rule, place: &TilePosition, sums: &[S], c: *mut i32) {
    for i in 0..place.rows {
        let sums = &sums[i * place.stride..][..place.columns];
        // SAFETY: as demanded of the caller.
        let c = unsafe {
            let first = c.add((place.row + i) * place.c_stride + place.column);
            std::slice::from_raw_parts_mut(first, place.columns)
        };
        let (fixed, offsets) = match rule.offset {
            Offset::Fixed(fixed) => (fixed, None),
            Offset::Column(column) => (column[place.row + i], None),
            Offset::Row(row) => (0, Some(&row[place.column..][..place.columns])),
        };
        match offsets {
            None => line(rule, sums, c, |_| fixed),
            Some(offsets) => line(rule, sums, c, |j| offsets[j]),
        }
    }
}

/// One row of a tile. The three common rules have loops of their own.
#[inline(always)]
fn line<S: Sum>(rule: &Rule, sums: &[S], c: &mut [i32], offset: impl Fn(usize) -> i32) {
    let each = sums.iter().zip(c).enumerate();
    if rule.alpha == 1.0 && rule.beta == 0.0 {
        each.for_each(|(j, (sum, c))| *c = saturated(sum.exact() + i64::from(offset(j))));
    } else if rule.alpha == 1.0 && rule.beta == 1.0 {
        each.for_each(|(j, (sum, c))| {
            *c = saturated(sum.exact() + i64::from(*c) + i64::from(offset(j)));
        });
    } else if rule.alpha == 0.0 && (rule.beta == 0.0 || rule.beta == 1.0) {
        let keep = rule.beta == 1.0;
        each.for_each(|(j, (_, c))| *c = if keep { c.saturating_add(offset(j)) } else { offset(j) });
    } else {
        let (alpha, beta) = (f64::from(rule.alpha), f64::from(rule.beta));
        if rule.beta == 0.0 {
            each.for_each(|(j, (sum, c))| *c = rounded(alpha * sum.float() + f64::from(offset(j))));
        } else {
            each.for_each(|(j, (sum, c))| {
                *c = rounded(alpha * sum.float() + beta * f64::from(*c) + f64::from(offset(j)));
            });
        }
    }
}

/// A tile of sums of one K block, to be added to the sums of all.
pub struct Stash {
    pub rows: usize,
    pub columns: usize,
    /// Row strides of the tile and of the stashed sums, in elements.
    pub tile_stride: usize,
    pub stride: usize,
    /// Whether there are no sums yet.
    pub first: bool,
}

/// Adds a tile of sums to 64-bit sums.
///
/// # Safety
/// `sums` has the rows and columns of `stash`, writable and exclusive.
#[inline(always)]
pub unsafe fn stash(stash: Stash, tile: &[i32], sums: *mut i64) {
    for i in 0..stash.rows {
        let tile = &tile[i * stash.tile_stride..][..stash.columns];
        // SAFETY: as demanded of the caller.
        let sums = unsafe { std::slice::from_raw_parts_mut(sums.add(i * stash.stride), stash.columns) };
        for (sum, &value) in sums.iter_mut().zip(tile) {
            *sum = if stash.first { i64::from(value) } else { *sum + i64::from(value) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even_neighbour_and_the_ends_saturate() {
        for (value, want) in [
            (0.5, 0),
            (1.5, 2),
            (2.5, 2),
            (-0.5, 0),
            (-1.5, -2),
            (-2.5, -2),
            (2_147_483_646.5, 2_147_483_646),
            (2_147_483_647.0, i32::MAX),
            (2_147_483_647.5, i32::MAX),
            (1e300, i32::MAX),
            (-2_147_483_648.5, i32::MIN),
            (-1e300, i32::MIN),
        ] {
            assert_eq!(rounded(value), want, "{value}");
        }
    }
}
