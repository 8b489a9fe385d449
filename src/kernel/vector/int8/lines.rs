//! Four cells at once: load, interleave, transpose and store.

pub use of_arch::*;

/// A cell of two numbers of 16 bits.
#[inline(always)]
pub fn pair<const SIGNED: bool>(bytes: [u8; 2]) -> u32 {
    let wide = |byte: u8| if SIGNED { byte as i8 as u16 } else { u16::from(byte) };
    u32::from(wide(bytes[0])) | u32::from(wide(bytes[1])) << 16
}

/// Four cells in a vector register. SSE2 is part of x86-64; the compiler's own code is four times slower.
#[cfg(target_arch = "x86_64")]
mod of_arch {
    use std::arch::x86_64::*;

    pub type Line = __m128i;

    /// Prefetches the cache line of an address.
    #[inline(always)]
    pub fn ask(data: *const u8) {
        // SAFETY: any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(data.cast()) };
    }

    /// # Safety
    /// 16 bytes are readable.
    #[inline(always)]
    pub unsafe fn quads(bytes: *const u8, flip: u8) -> Line {
        // SAFETY: as demanded of the caller.
        unsafe { _mm_xor_si128(_mm_loadu_si128(bytes.cast()), _mm_set1_epi8(flip as i8)) }
    }

    /// # Safety
    /// 8 bytes are readable.
    #[inline(always)]
    pub unsafe fn pairs<const SIGNED: bool>(bytes: *const u8, flip: u8) -> Line {
        // SAFETY: as demanded of the caller.
        unsafe {
            let bytes = _mm_xor_si128(_mm_loadl_epi64(bytes.cast()), _mm_set1_epi8(flip as i8));
            let zero = _mm_setzero_si128();
            _mm_unpacklo_epi8(bytes, if SIGNED { _mm_cmpgt_epi8(zero, bytes) } else { zero })
        }
    }

    /// # Safety
    /// Each row has 16 readable bytes.
    #[inline(always)]
    pub unsafe fn weave_quads(rows: [*const u8; 4], flip: u8) -> [Line; 4] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let [a, b, c, d] = rows.map(|row| quads(row, flip));
            let (ab, ab_high) = (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b));
            let (cd, cd_high) = (_mm_unpacklo_epi8(c, d), _mm_unpackhi_epi8(c, d));
            [
                _mm_unpacklo_epi16(ab, cd),
                _mm_unpackhi_epi16(ab, cd),
                _mm_unpacklo_epi16(ab_high, cd_high),
                _mm_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }

    /// # Safety
    /// Each row has 16 readable bytes.
    #[inline(always)]
    pub unsafe fn weave_pairs<const SIGNED: bool>(rows: [*const u8; 2], flip: u8) -> [Line; 4] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let [a, b] = rows.map(|row| pairs::<SIGNED>(row, flip));
            let [a_high, b_high] = rows.map(|row| pairs::<SIGNED>(row.add(8), flip));
            [
                _mm_unpacklo_epi16(a, b),
                _mm_unpackhi_epi16(a, b),
                _mm_unpacklo_epi16(a_high, b_high),
                _mm_unpackhi_epi16(a_high, b_high),
            ]
        }
    }

    /// Transposes rows and columns.
    #[inline(always)]
    pub fn turn([a, b, c, d]: [Line; 4]) -> [Line; 4] {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
            [
                _mm_unpacklo_epi64(ab, cd),
                _mm_unpackhi_epi64(ab, cd),
                _mm_unpacklo_epi64(ab_high, cd_high),
                _mm_unpackhi_epi64(ab_high, cd_high),
            ]
        }
    }

    /// # Safety
    /// Four cells are writable.
    #[inline(always)]
    pub unsafe fn store(line: Line, cells: *mut u32) {
        // SAFETY: as demanded of the caller.
        unsafe { _mm_storeu_si128(cells.cast(), line) };
    }
}

/// Four cells.
#[cfg(not(target_arch = "x86_64"))]
mod of_arch {
    pub type Line = [u32; 4];

    /// There is no stable prefetch here.
    #[inline(always)]
    pub fn ask(_: *const u8) {}

    /// # Safety
    /// 16 bytes are readable.
    #[inline(always)]
    pub unsafe fn quads(bytes: *const u8, flip: u8) -> Line {
        // SAFETY: as demanded of the caller; an array of bytes has no alignment.
        let cells: [[u8; 4]; 4] = unsafe { bytes.cast::<[[u8; 4]; 4]>().read() };
        cells.map(|cell| u32::from_le_bytes(cell) ^ u32::from_le_bytes([flip; 4]))
    }

    /// # Safety
    /// 8 bytes are readable.
    #[inline(always)]
    pub unsafe fn pairs<const SIGNED: bool>(bytes: *const u8, flip: u8) -> Line {
        // SAFETY: as demanded of the caller; an array of bytes has no alignment.
        let cells: [[u8; 2]; 4] = unsafe { bytes.cast::<[[u8; 2]; 4]>().read() };
        cells.map(|cell| super::pair::<SIGNED>([cell[0] ^ flip, cell[1] ^ flip]))
    }

    /// # Safety
    /// Each row has 16 readable bytes.
    #[inline(always)]
    pub unsafe fn weave_quads(rows: [*const u8; 4], flip: u8) -> [Line; 4] {
        // SAFETY: as demanded of the caller.
        let rows: [[u8; 16]; 4] = rows.map(|row| unsafe { row.cast::<[u8; 16]>().read() });
        let cell = |lane: usize| u32::from_le_bytes(rows.map(|row| row[lane] ^ flip));
        std::array::from_fn(|line| std::array::from_fn(|i| cell(4 * line + i)))
    }

    /// # Safety
    /// Each row has 16 readable bytes.
    #[inline(always)]
    pub unsafe fn weave_pairs<const SIGNED: bool>(rows: [*const u8; 2], flip: u8) -> [Line; 4] {
        // SAFETY: as demanded of the caller.
        let [a, b]: [[u8; 16]; 2] = rows.map(|row| unsafe { row.cast::<[u8; 16]>().read() });
        let cell = |lane: usize| super::pair::<SIGNED>([a[lane] ^ flip, b[lane] ^ flip]);
        std::array::from_fn(|line| std::array::from_fn(|i| cell(4 * line + i)))
    }

    /// Transposes rows and columns.
    #[inline(always)]
    pub fn turn(lines: [Line; 4]) -> [Line; 4] {
        std::array::from_fn(|i| lines.map(|line| line[i]))
    }

    /// # Safety
    /// Four cells are writable.
    #[inline(always)]
    pub unsafe fn store(line: Line, cells: *mut u32) {
        // SAFETY: as demanded of the caller; an array of cells has the alignment of a cell.
        unsafe { *cells.cast::<Line>() = line };
    }
}
