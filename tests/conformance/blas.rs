//! Products in the style of BLAS, through the C functions: transposition, alpha and beta, distances between rows,
//! offsets. Of whole numbers they are exact; of others they have the tolerance that is usual for sums of floats.

use crate::data::{Random, mask};
use crate::product::{self, Pair, add_product, sizes};
use crate::rule::Rule;
use crate::suite::{Output, Site, Suite};
use std::ffi::c_void;
use std::sync::Arc;
use weir_core::abi::{weir_gemm_offset_value as Offset, weir_status, weir_status_value};
use weir_core::base::{Desc, dtype};

unsafe extern "C" {
    fn weir_sgemm(
        transpose_a: i32,
        transpose_b: i32,
        m: i64,
        n: i64,
        k: i64,
        alpha: f32,
        a: *const f32,
        lda: i64,
        b: *const f32,
        ldb: i64,
        beta: f32,
        c: *mut f32,
        ldc: i64,
        pool: *mut c_void,
    ) -> weir_status;
    fn weir_gemm_u8s8s32(
        transpose_a: i32,
        transpose_b: i32,
        offsetc: u32,
        m: i64,
        n: i64,
        k: i64,
        alpha: f32,
        a: *const u8,
        lda: i64,
        ao: u8,
        b: *const i8,
        ldb: i64,
        bo: i8,
        beta: f32,
        c: *mut i32,
        ldc: i64,
        co: *const i32,
        pool: *mut c_void,
    ) -> weir_status;
}

#[derive(Clone, Copy, Debug)]
struct Gemm {
    /// A and B transposed.
    turned: (bool, bool),
    m: usize,
    n: usize,
    k: usize,
    alpha: f32,
    beta: f32,
    /// Distances between rows of A, B and C.
    rows: [usize; 3],
}

const ALL: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];
const NN: (bool, bool) = ALL[0];
const TT: (bool, bool) = ALL[3];

impl Gemm {
    /// Rows and columns of A and B as they are stored, and of C.
    fn stored(&self) -> [(usize, usize); 3] {
        let turn = |turned, (rows, columns)| if turned { (columns, rows) } else { (rows, columns) };
        [turn(self.turned.0, (self.m, self.k)), turn(self.turned.1, (self.k, self.n)), (self.m, self.n)]
    }

    /// Without gaps between rows.
    fn dense(turned: (bool, bool), [m, n, k]: [usize; 3], alpha: f32, beta: f32) -> Gemm {
        let gemm = Gemm { turned, m, n, k, alpha, beta, rows: [0; 3] };
        Gemm { rows: gemm.stored().map(|(_, columns)| columns), ..gemm }
    }
}

fn all() -> Vec<Gemm> {
    let mut all = Vec::new();
    for turned in ALL {
        all.push(Gemm { turned, m: 30, n: 20, k: 10, alpha: 2.0, beta: 1.0, rows: [60, 50, 80] });
        all.push(Gemm { turned, m: 31, n: 21, k: 11, alpha: 2.0, beta: 1.5, rows: [61, 51, 81] });
    }
    all.push(Gemm { turned: NN, m: 100, n: 100, k: 2, alpha: 1.0, beta: 2.0, rows: [100; 3] });
    all.push(Gemm::dense(TT, [2, 100, 100], 1.0, 0.0));
    all.push(Gemm { turned: NN, m: 2, n: 2, k: 10000, alpha: 1.0, beta: 2.0, rows: [10000, 2, 2] });
    all.push(Gemm { turned: TT, m: 2, n: 2, k: 10000, alpha: 1.0, beta: 2.0, rows: [2, 10000, 2] });
    all.extend([[2000, 1, 1000], [1, 3000, 2000]].map(|sizes| Gemm::dense(NN, sizes, 1.0, 0.0)));
    for m in [4, 5, 7, 8] {
        all.extend([512, 1536, 2048].map(|k| Gemm::dense((false, true), [m, 512, k], 1.0, 0.0)));
    }
    let thin = [[2, 48, 83], [2, 48, 200], [2, 16, 251], [2, 16, 256]];
    all.extend(thin.map(|sizes| Gemm::dense(NN, sizes, 1.0, 0.0)));
    // Sources and results with gaps.
    let gaps: [(Pair, [usize; 3]); 3] = [
        ((&[1, 300], &[300, 1]), [1200, 1, 2]),
        ((&[10, 30], &[30, 20]), [120, 20, 100]),
        ((&[2, 30], &[30, 47]), [150, 47, 47]),
    ];
    for (pair, rows) in gaps {
        let (m, k, n, _) = sizes(&pair);
        all.push(Gemm { rows, ..Gemm::dense(NN, [m, n, k], 1.0, 0.0) });
    }
    // One A for five products, of which this is one.
    all.push(Gemm { rows: [51, 65, 325], ..Gemm::dense(NN, [26, 65, 17], 1.0, 0.0) });
    for pair in product::PLAIN.iter().chain(product::NETWORKS).filter(|pair| pair.0.len() == 2) {
        let (m, k, n, _) = sizes(pair);
        all.push(Gemm::dense(NN, [m, n, k], 1.0, 0.0));
    }
    all
}

fn spread(dense: &[f64], (rows, columns): (usize, usize), row: usize, gap: f64) -> Vec<f64> {
    (0..rows * row).map(|i| if i % row < columns { dense[i / row * columns + i % row] } else { gap }).collect()
}

fn turned(dense: &[f64], (rows, columns): (usize, usize)) -> Vec<f64> {
    (0..rows * columns).map(|i| dense[i % rows * columns + i / rows]).collect()
}

fn pool(site: &Site) -> *mut c_void {
    site.pool.as_ref().map_or(std::ptr::null_mut(), |pool| Arc::as_ptr(pool).cast_mut().cast())
}

/// C without the gaps, which are as they were.
fn gathered<T: Copy + PartialEq>(c: &[T], gemm: &Gemm, gap: T) -> impl Iterator<Item = T> {
    let (row, n) = (gemm.rows[2], gemm.n);
    assert!(c.iter().enumerate().all(|(i, &x)| i % row < n || x == gap), "{gemm:?} wrote between the rows");
    c.chunks_exact(row).flat_map(move |row| row[..n].iter().copied())
}

/// A, B and C without gaps, and the product of A and B.
struct Data {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    product: Vec<f64>,
}

impl Data {
    fn new(
        gemm: &Gemm,
        mut a: impl FnMut(usize) -> f64,
        b: impl FnMut(usize) -> f64,
        c: impl FnMut(usize) -> f64,
    ) -> Data {
        let Gemm { m, n, k, .. } = *gemm;
        let a = (0..m * k).map(|i| a(i % k)).collect::<Vec<_>>();
        let (b, c) = ((0..k * n).map(b).collect::<Vec<_>>(), (0..m * n).map(c).collect());
        let mut product = vec![0.0; m * n];
        add_product((m, k, n), &a, &b, &mut product);
        Data { a, b, c, product }
    }

    /// A and B as they are stored.
    fn stored(&self, gemm: &Gemm, gap: f64) -> [Vec<f64>; 2] {
        let Gemm { m, n, k, .. } = *gemm;
        let a = if gemm.turned.0 { turned(&self.a, (m, k)) } else { self.a.clone() };
        let b = if gemm.turned.1 { turned(&self.b, (k, n)) } else { self.b.clone() };
        let [of_a, of_b, _] = gemm.stored();
        [spread(&a, of_a, gemm.rows[0], gap), spread(&b, of_b, gemm.rows[1], gap)]
    }
}

pub fn f32_cases(suite: &mut Suite) {
    for (seed, gemm) in all().into_iter().enumerate() {
        let Gemm { m, n, k, .. } = gemm;
        if !suite.takes(100 * m * n * k) {
            continue;
        }
        let mut random = [0, 1, 2].map(|i| Random::new(3 * seed as u64 + i));
        let [a, b, c] = &mut random;
        // Two digits are left for alpha and beta.
        let mask = mask(k, (-64, 64), (-128, 128), 22);
        let whole = Data::new(
            &gemm,
            |p| if mask[p] { a.whole(-64, 64) } else { 0.0 },
            |_| b.whole(-128, 128),
            |_| 2.0 * c.whole(-64, 64),
        );
        add_f32(suite, "whole", Rule { zeros: 90, ..Rule::EXACT }, gemm, whole);
        // No sum is much smaller than what is added up.
        let float = |random: &mut Random| f64::from((random.unit() * 0.75 + 0.25) as f32);
        let floats = Data::new(&gemm, |_| float(a), |_| float(b), |_| float(c));
        add_f32(suite, "floats", Rule::with(1e-4), gemm, floats);
    }
    let calls: [([i32; 2], [i64; 3], [i64; 2]); 4] = [
        ([1, 0], [3, 2, 2], [2, 2]),
        ([0, 0], [3, 2, 2], [1, 2]),
        ([0, 1], [3, 2, 2], [2, 1]),
        ([0, i32::from(b'd')], [3, 2, 2], [2, 2]),
    ];
    suite.add("refused".to_owned(), Rule::EXACT, vec![7.0; 6], move |site| {
        for (turned, [m, n, k], [lda, ldb]) in calls {
            let (a, b, mut c) = ([1f32; 6], [1f32; 6], [7f32; 6]);
            let (a, b, out) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            // SAFETY: nothing is read or written where the arguments do not fit, and otherwise there is enough.
            let status =
                unsafe { weir_sgemm(turned[0], turned[1], m, n, k, 1.0, a, lda, b, ldb, 0.0, out, 2, pool(site)) };
            assert_eq!(
                status,
                weir_status_value::WEIR_INVALID_ARGUMENT as i32,
                "{turned:?}, rows {lda} and {ldb} apart, is not refused"
            );
            assert_eq!(c, [7.0; 6]);
        }
        Output { desc: Desc::new(dtype::F32, &[6]), bytes: 7f32.to_ne_bytes().repeat(6) }
    });
}

fn add_f32(suite: &mut Suite, what: &str, rule: Rule, gemm: Gemm, data: Data) {
    let (alpha, beta) = (f64::from(gemm.alpha), f64::from(gemm.beta));
    let reference = data.product.iter().zip(&data.c).map(|(sum, c)| alpha * sum + beta * c).collect();
    const GAP: f64 = -123.0;
    let narrow = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
    let [a, b] = data.stored(&gemm, f64::NAN).map(narrow);
    let c = narrow(spread(&data.c, (gemm.m, gemm.n), gemm.rows[2], GAP));
    suite.add(format!("{gemm:?} {what}"), rule, reference, move |site| {
        let mut c = c.clone();
        let Gemm { turned, m, n, k, alpha, beta, rows } = gemm;
        let [m, n, k, lda, ldb, ldc] = [m, n, k, rows[0], rows[1], rows[2]].map(|size| size as i64);
        let (ta, tb, a, b, out) = (turned.0.into(), turned.1.into(), a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        // SAFETY: matrices of these sizes.
        let status = unsafe { weir_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, out, ldc, pool(site)) };
        assert_eq!(status, 0);
        let bytes = gathered(&c, &gemm, GAP as f32).flat_map(|c| c.to_ne_bytes()).collect();
        Output { desc: Desc::new(dtype::F32, &[m, n]), bytes }
    });
}

pub fn byte_cases(suite: &mut Suite) {
    for (seed, gemm) in all().into_iter().enumerate() {
        if !suite.takes(200 * gemm.m * gemm.n * gemm.k) {
            continue;
        }
        for (offset, full) in
            [Offset::WEIR_GEMM_OFFSET_FIXED, Offset::WEIR_GEMM_OFFSET_ROW, Offset::WEIR_GEMM_OFFSET_COLUMN]
                .into_iter()
                .flat_map(|offset| [(offset, false), (offset, true)])
        {
            add_bytes(suite, gemm, offset, full, seed as u64);
        }
    }
    // Sums of pairs that do not fit into 16 bits, and all bytes that there are.
    for k in [1, 2, 3, 4, 63, 64, 65, 1024] {
        for n in [1, 16, 48] {
            let gemm = Gemm::dense(NN, [3, n, k], 1.0, 0.0);
            let data = Data::new(&gemm, |_| 255.0, |_| 127.0, |_| 0.0);
            add_byte_case(suite, gemm, Offset::WEIR_GEMM_OFFSET_FIXED, data, (0, 0), vec![0]);
        }
    }
}

/// With the data of the rule, or with all values that bytes have, and zero points in the middle.
fn add_bytes(suite: &mut Suite, gemm: Gemm, offset: Offset, full: bool, seed: u64) {
    let mut random = [0, 1, 2, 3].map(|i| Random::new(4 * seed + i));
    let [a, b, c, o] = &mut random;
    let data = match full {
        false => Data::new(&gemm, |_| a.whole(0, 160), |_| b.whole(-4, 4), |_| 2.0 * c.whole(-64, 64)),
        true => Data::new(&gemm, |_| a.whole(0, 255), |_| b.whole(-128, 127), |_| c.whole(-10_000, 10_000)),
    };
    let count = match offset {
        Offset::WEIR_GEMM_OFFSET_FIXED => 1,
        Offset::WEIR_GEMM_OFFSET_ROW => gemm.n,
        Offset::WEIR_GEMM_OFFSET_COLUMN => gemm.m,
    };
    let numbers = (0..count).map(|_| o.whole(-1000, 1000) as i32).collect();
    add_byte_case(suite, gemm, offset, data, if full { (128, -3) } else { (1, -1) }, numbers);
}

fn add_byte_case(suite: &mut Suite, gemm: Gemm, offset: Offset, data: Data, (ao, bo): (u8, i8), numbers: Vec<i32>) {
    let Gemm { m, n, k, .. } = gemm;
    let less = |x: &[f64], zero: f64| x.iter().map(|x| x - zero).collect::<Vec<f64>>();
    let mut reference = vec![0.0; m * n];
    add_product((m, k, n), &less(&data.a, f64::from(ao)), &less(&data.b, f64::from(bo)), &mut reference);
    for (i, sum) in reference.iter_mut().enumerate() {
        let at = match offset {
            Offset::WEIR_GEMM_OFFSET_FIXED => 0,
            Offset::WEIR_GEMM_OFFSET_ROW => i % n,
            Offset::WEIR_GEMM_OFFSET_COLUMN => i / n,
        };
        *sum = (f64::from(gemm.alpha) * *sum + f64::from(gemm.beta) * data.c[i]) + f64::from(numbers[at]);
    }
    const GAP: f64 = -123.0;
    let [a, b] = data.stored(&gemm, 99.0);
    let a: Vec<u8> = a.into_iter().map(|x| x as u8).collect();
    let b: Vec<i8> = b.into_iter().map(|x| x as i8).collect();
    let c: Vec<i32> = spread(&data.c, (m, n), gemm.rows[2], GAP).into_iter().map(|x| x as i32).collect();
    let rule = Rule { zeros: 90, ..Rule::EXACT };
    suite.add(format!("{gemm:?} {offset:?} {ao} {bo}"), rule, reference, move |site| {
        let mut c = c.clone();
        let Gemm { turned, m, n, k, alpha, beta, rows } = gemm;
        let [m, n, k, lda, ldb, ldc] = [m, n, k, rows[0], rows[1], rows[2]].map(|size| size as i64);
        let (ta, tb, a, b, out) = (turned.0.into(), turned.1.into(), a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let (offset, co) = (offset as u32, numbers.as_ptr());
        // SAFETY: matrices of these sizes, and as many offsets as are meant.
        let status = unsafe {
            weir_gemm_u8s8s32(ta, tb, offset, m, n, k, alpha, a, lda, ao, b, ldb, bo, beta, out, ldc, co, pool(site))
        };
        assert_eq!(status, 0);
        let bytes = gathered(&c, &gemm, GAP as i32).flat_map(|c| c.to_ne_bytes()).collect();
        Output { desc: Desc::new(dtype::S32, &[m, n]), bytes }
    });
}
