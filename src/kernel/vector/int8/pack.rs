//! Packing a matrix B once, for any number of products (`panels`).

use super::dots;
use super::panel::{PackSource, pitch};
use super::panels::BytePanels;
use super::plan::stretches;
use super::sets;
use super::tile::CELL;
use crate::base::{Error, Result};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::Matrix;
use crate::memory::{ALIGNMENT, AlignedBuffer};

/// Packs B, which is [K, N], or [N, K] if it is transposed, for a level that the processor has.
pub fn pack(isa: Isa, b: Matrix<'_, u8>, k: usize, n: usize, transposed: bool) -> Result<BytePanels> {
    assert!(b.holds(k, n, transposed));
    let set = sets::of(isa);
    let (depth, count) = stretches(k, set);
    let width = set.columns;
    let panels = n.div_ceil(width);
    let cells = |begin: usize| set.cells(depth.min(k - begin));
    let few = n <= dots::MAX_COLUMNS && set.dots.is_some();
    // Each K block but the last is as long as the first.
    let size = |count: usize| {
        let all = count.checked_mul(panels)?.checked_mul(pitch(cells(0), width))?.checked_mul(CELL)?;
        let sums = all.checked_next_multiple_of(ALIGNMENT)?;
        let columns = sums.checked_add(count.checked_mul(panels)?.checked_mul(width * size_of::<i32>())?)?;
        let end = if few { columns.checked_add(n.checked_mul(k)?)? } else { columns };
        (end <= isize::MAX as usize).then_some((sums, columns, end))
    };
    let (sums, columns, bytes) = size(count)
        .ok_or_else(|| Error::out_of_range(format!("{k} x {n} packed weights are larger than memory can hold")))?;
    let memory = AlignedBuffer::zeroed(bytes, "packed weights")?;
    let columns = few.then_some(columns);
    let packed = BytePanels { memory, sums, columns, k, n, width, cell: set.depth, depth, step: set.step };
    if k * n == 0 {
        return Ok(packed);
    }
    for begin in (0..count).map(|number| number * depth) {
        let cells = cells(begin);
        // SAFETY: the K block is inside B; the memory has a pitch for every panel of every K block, and sums for all
        // their columns.
        unsafe {
            let data = if transposed { b.at(0, begin) } else { b.at(begin, 0) };
            let depth = depth.min(k - begin);
            let source = PackSource { data, stride: b.stride(), along: transposed, depth, flip: 0, far: false };
            let sums = packed.sums_at(begin, 0).cast_mut();
            (set.pack_b)(&source, cells, n, packed.panel(begin, cells, 0).cast_mut(), sums);
        }
    }
    if let Some(columns) = columns {
        for (column, at) in (0..n).flat_map(|column| (0..k).map(move |at| (column, at))) {
            // SAFETY: an element of B; the memory has k bytes for each column, and nothing else uses it yet.
            unsafe {
                let byte = if transposed { *b.at(column, at) } else { *b.at(at, column) };
                packed.memory.data().add(columns + column * k + at).write(byte);
            }
        }
    }
    Ok(packed)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::kernel::vector::int8::{Int8Product, Offset, Rule};
    use crate::kernel::vector::site::MatrixMut;
    use crate::kernel::vector::standalone;

    #[test]
    fn a_product_with_panels_is_the_product_on_every_level() {
        // Several K blocks, several blocks of columns, remainders everywhere; all values of a byte.
        for (m, n, k) in [(1, 1, 1), (1, 70, 5), (5, 33, 64), (50, 100, 131), (3, 2, 9000), (13, 1100, 40)] {
            let a: Vec<u8> = (0..m * k).map(|i| (i * 37 % 256) as u8).collect();
            let b: Vec<u8> = (0..n * k).map(|i| (i * 101 % 256) as u8).collect();
            for isa in Isa::available() {
                for (transpose_b, signed_a, zero_a, zero_b) in
                    [(false, false, 0, 0), (true, false, 200, 0), (false, true, -7, 3), (true, false, 0, -128)]
                {
                    let (rows, columns) = if transpose_b { (n, k) } else { (k, n) };
                    let matrix = Matrix::dense(&b, rows, columns);
                    let packed = pack(isa, matrix, k, n, transpose_b).unwrap();
                    let plain = Int8Product {
                        m,
                        n,
                        k,
                        a: Matrix::dense(&a, m, k),
                        transpose_a: false,
                        signed_a,
                        b: matrix,
                        transpose_b,
                        packed_b: None,
                        zero_a,
                        zero_b,
                        rule: Rule { alpha: 1.0, beta: 0.0, offset: Offset::Fixed(0) },
                    };
                    let product = |packed_b| {
                        let mut c = vec![7i32; m * n];
                        let product = Int8Product { packed_b, ..plain };
                        standalone::bytes_with(isa, None, &product, MatrixMut::dense(&mut c, m, n)).unwrap();
                        c
                    };
                    assert!(product(Some(&packed)) == product(None), "{isa:?} {m} x {n} x {k} {transpose_b} {zero_a}");
                }
            }
        }
    }
}
