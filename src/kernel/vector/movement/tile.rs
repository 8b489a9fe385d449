//! Transposition of tiles in registers.
//!
//! Lanes of 16 bytes hold n elements. n lanes, each from another row, become n lanes of a column each by log2(n) rounds
//! of one step: lane i and lane i + n/2 are interleaved into the new lanes 2i and 2i + 1. (Number the elements with the
//! bits of their row and then those of their column: each round rotates these bits by one.) A wider register does this
//! in all of its lanes at once; lane l is loaded from row l * n, so that a longer piece of a column is stored: 16
//! floats from 16 rows with AVX-512.
//!
//! The edges are processed in blocks that overlap the previous ones, within the tile, so every element is written by
//! the same piece. Tiles thinner than a block go element by element, but for those of two to four dense rows or
//! columns: as many registers hold whole columns, or rows, and a register of the result takes its bytes from each of
//! them.

use super::super::isa::{Isa, SimdLevel};

/// Transposes a tile of `rows` x `columns` elements, with row strides in bytes for the source and for the destination.
type Tile = unsafe fn(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, rows: usize, columns: usize);

/// The best code for a size of elements.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TileTranspose {
    tile: Tile,
}

impl TileTranspose {
    /// `None` for sizes that no register holds.
    pub fn of(isa: Isa, size: usize) -> Option<TileTranspose> {
        #[cfg(target_arch = "x86_64")]
        let tile: Tile = match (isa.level, size) {
            (SimdLevel::Avx512, 1) => x86::tile_avx512::<1, 16>,
            (SimdLevel::Avx512, 2) => x86::tile_avx512::<2, 8>,
            (SimdLevel::Avx512, 4) => x86::tile_avx512::<4, 4>,
            (SimdLevel::Avx512, 8) => x86::tile_avx512::<8, 2>,
            (SimdLevel::Avx2, 1) => x86::tile_avx2::<1, 16>,
            (SimdLevel::Avx2, 2) => x86::tile_avx2::<2, 8>,
            (SimdLevel::Avx2, 4) => x86::tile_avx2::<4, 4>,
            (SimdLevel::Avx2, 8) => x86::tile_avx2::<8, 2>,
            (_, 1) => x86::tile_sse2::<1, 16>,
            (_, 2) => x86::tile_sse2::<2, 8>,
            (_, 4) => x86::tile_sse2::<4, 4>,
            (_, 8) => x86::tile_sse2::<8, 2>,
            (_, 16) => elements::<u128>,
            _ => return None,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let tile: Tile = match (isa.level, size) {
            (_, 1) => elements::<u8>,
            (_, 2) => elements::<u16>,
            (_, 4) => elements::<u32>,
            (_, 8) => elements::<u64>,
            (_, 16) => elements::<u128>,
            _ => return None,
        };
        Some(TileTranspose { tile })
    }

    /// # Safety
    /// The processor has the instruction set, and all elements of the tile are readable at the source and writable,
    /// exclusively, at the destination.
    pub unsafe fn run(&self, from: (*const u8, isize), to: (*mut u8, isize), rows: usize, columns: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { (self.tile)(from.0, from.1, to.0, to.1, rows, columns) }
    }
}

/// Element by element, along the shorter side in the inner loop.
///
/// # Safety
/// As of `TileTranspose::run`.
unsafe fn elements<T: Copy>(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    rows: usize,
    columns: usize,
) {
    // SAFETY: as demanded of the caller.
    let one = |r: usize, c: usize| unsafe {
        let value = from.offset(r as isize * from_stride).cast::<T>().add(c).read_unaligned();
        to.offset(c as isize * to_stride).cast::<T>().add(r).write_unaligned(value);
    };
    if rows < columns {
        (0..columns).for_each(|c| (0..rows).for_each(|r| one(r, c)));
    } else {
        (0..rows).for_each(|r| (0..columns).for_each(|c| one(r, c)));
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::elements;
    use std::arch::x86_64::*;

    /// A register of some lanes.
    ///
    /// # Safety
    /// The processor has the instructions of the type.
    trait Register: Copy {
        const LANES: usize;
        /// Loads lane l from `from + l * apart`, with 16 readable bytes each.
        unsafe fn load(from: *const u8, apart: isize) -> Self;
        /// Stores the register at a writable address.
        unsafe fn store(self, to: *mut u8);
        /// Stores lane l at `to + l * apart`, with 16 writable bytes each.
        unsafe fn store_lanes(self, to: *mut u8, apart: usize);
        /// The bytes at these places of each lane, 0 for a place of 128 or more. This needs AVX2.
        unsafe fn bytes_at(self, places: &[u8; 16]) -> Self;
        unsafe fn or(self, other: Self) -> Self;
        /// Interleaves the lower halves of each pair of lanes, by elements of SIZE bytes, and the upper ones.
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> (Self, Self);
    }

    macro_rules! interleaved {
        ($a:ident, $b:ident, $($size:literal: $low:ident $high:ident),*) => {
            match SIZE {
                $($size => {
                    // SAFETY: as demanded of the caller.
                    unsafe { ($low($a, $b), $high($a, $b)) }
                })*
                _ => unreachable!(),
            }
        };
    }

    impl Register for __m128i {
        const LANES: usize = 1;
        #[inline(always)]
        unsafe fn load(from: *const u8, _: isize) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm_loadu_si128(from.cast()) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: as demanded of the caller.
            unsafe { _mm_storeu_si128(to.cast(), self) }
        }
        #[inline(always)]
        unsafe fn store_lanes(self, to: *mut u8, _: usize) {
            // SAFETY: as demanded of the caller.
            unsafe { _mm_storeu_si128(to.cast(), self) }
        }
        #[inline(always)]
        unsafe fn bytes_at(self, places: &[u8; 16]) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm_shuffle_epi8(self, _mm_loadu_si128(places.as_ptr().cast())) }
        }
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm_or_si128(self, other) }
        }
        #[inline(always)]
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> (Self, Self) {
            interleaved!(self, other,
                1: _mm_unpacklo_epi8 _mm_unpackhi_epi8, 2: _mm_unpacklo_epi16 _mm_unpackhi_epi16,
                4: _mm_unpacklo_epi32 _mm_unpackhi_epi32, 8: _mm_unpacklo_epi64 _mm_unpackhi_epi64)
        }
    }

    impl Register for __m256i {
        const LANES: usize = 2;
        #[inline(always)]
        unsafe fn load(from: *const u8, apart: isize) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe {
                let low = _mm256_castsi128_si256(_mm_loadu_si128(from.cast()));
                _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(from.offset(apart).cast()))
            }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: as demanded of the caller.
            unsafe { _mm256_storeu_si256(to.cast(), self) }
        }
        #[inline(always)]
        unsafe fn store_lanes(self, to: *mut u8, apart: usize) {
            // SAFETY: as demanded of the caller.
            unsafe {
                _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(self));
                _mm_storeu_si128(to.add(apart).cast(), _mm256_extracti128_si256::<1>(self));
            }
        }
        #[inline(always)]
        unsafe fn bytes_at(self, places: &[u8; 16]) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm256_shuffle_epi8(self, _mm256_broadcastsi128_si256(_mm_loadu_si128(places.as_ptr().cast()))) }
        }
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm256_or_si256(self, other) }
        }
        #[inline(always)]
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> (Self, Self) {
            interleaved!(self, other,
                1: _mm256_unpacklo_epi8 _mm256_unpackhi_epi8, 2: _mm256_unpacklo_epi16 _mm256_unpackhi_epi16,
                4: _mm256_unpacklo_epi32 _mm256_unpackhi_epi32, 8: _mm256_unpacklo_epi64 _mm256_unpackhi_epi64)
        }
    }

    impl Register for __m512i {
        const LANES: usize = 4;
        #[inline(always)]
        unsafe fn load(from: *const u8, apart: isize) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe {
                let lane = |l: isize| _mm_loadu_si128(from.offset(l * apart).cast());
                let one = _mm512_castsi128_si512(lane(0));
                let two = _mm512_inserti32x4::<1>(one, lane(1));
                _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(two, lane(2)), lane(3))
            }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: as demanded of the caller.
            unsafe { _mm512_storeu_si512(to.cast(), self) }
        }
        #[inline(always)]
        unsafe fn store_lanes(self, to: *mut u8, apart: usize) {
            // SAFETY: as demanded of the caller.
            unsafe {
                _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(self));
                _mm_storeu_si128(to.add(apart).cast(), _mm512_extracti32x4_epi32::<1>(self));
                _mm_storeu_si128(to.add(2 * apart).cast(), _mm512_extracti32x4_epi32::<2>(self));
                _mm_storeu_si128(to.add(3 * apart).cast(), _mm512_extracti32x4_epi32::<3>(self));
            }
        }
        #[inline(always)]
        unsafe fn bytes_at(self, places: &[u8; 16]) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm512_shuffle_epi8(self, _mm512_broadcast_i32x4(_mm_loadu_si128(places.as_ptr().cast()))) }
        }
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm512_or_si512(self, other) }
        }
        #[inline(always)]
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> (Self, Self) {
            interleaved!(self, other,
                1: _mm512_unpacklo_epi8 _mm512_unpackhi_epi8, 2: _mm512_unpacklo_epi16 _mm512_unpackhi_epi16,
                4: _mm512_unpacklo_epi32 _mm512_unpackhi_epi32, 8: _mm512_unpacklo_epi64 _mm512_unpackhi_epi64)
        }
    }

    /// LANES * N rows, N columns of elements of SIZE bytes, where N elements fill a lane.
    #[inline(always)]
    unsafe fn block<R: Register, const SIZE: usize, const N: usize>(
        from: *const u8,
        from_stride: isize,
        to: *mut u8,
        to_stride: isize,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut lanes: [R; N] = [R::load(from, N as isize * from_stride); N];
            for (i, lane) in lanes.iter_mut().enumerate().skip(1) {
                *lane = R::load(from.offset(i as isize * from_stride), N as isize * from_stride);
            }
            for _ in 0..N.ilog2() {
                let old = lanes;
                for i in 0..N / 2 {
                    (lanes[2 * i], lanes[2 * i + 1]) = old[i].interleave::<SIZE>(old[i + N / 2]);
                }
            }
            for (i, lane) in lanes.iter().enumerate() {
                lane.store(to.offset(i as isize * to_stride));
            }
        }
    }

    /// The beginning of the block after the one at `at`: the last one of a side ends with it.
    #[inline(always)]
    fn next(at: usize, block: usize, size: usize) -> usize {
        if at + block == size { size } else { (at + block).min(size - block) }
    }

    /// With this distance rows lie in separate pages, and hardware prefetching stops at a page. At a multiple of a page
    /// their first bytes also compete for the same few sets of the L1 cache.
    const FAR: isize = 2048;
    const LINE: usize = 64;

    /// A tile of at least one block each way; false if it is thinner.
    #[inline(always)]
    unsafe fn tile<R: Register, const SIZE: usize, const N: usize>(
        from: *const u8,
        from_stride: isize,
        to: *mut u8,
        to_stride: isize,
        rows: usize,
        columns: usize,
    ) -> bool {
        if rows < R::LANES * N || columns < N {
            return false;
        }
        // Rows that are far apart are read a cache line at a time, before it is evicted; the next one is prefetched
        // meanwhile.
        let far = from_stride >= FAR;
        let at_once = if far { LINE / SIZE } else { columns };
        let mut first = 0;
        while first < columns {
            let (mut r, mut c) = (0, first);
            while r < rows {
                for row in if far { r..r + R::LANES * N } else { 0..0 } {
                    let line = from.wrapping_offset(row as isize * from_stride).wrapping_add(first * SIZE + LINE);
                    // SAFETY: a prefetch reads nothing; any address is allowed.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
                }
                c = first;
                while c < columns.min(first + at_once) {
                    // SAFETY: as demanded of the caller; the block lies in the tile.
                    unsafe {
                        let from = from.offset(r as isize * from_stride).add(c * SIZE);
                        let to = to.offset(c as isize * to_stride).add(r * SIZE);
                        block::<R, SIZE, N>(from, from_stride, to, to_stride);
                    }
                    c = next(c, N, columns);
                }
                r = next(r, R::LANES * N, rows);
            }
            first = c;
        }
        true
    }

    /// The places in each of C registers of the bytes of each of C registers of results, for elements of SIZE
    /// bytes that are C columns, or C rows.
    struct Places<const SIZE: usize, const C: usize>;

    impl<const SIZE: usize, const C: usize> Places<SIZE, C> {
        /// Of columns, from the bytes of whole rows.
        const SPLIT: [[[u8; 16]; C]; C] = Self::places(false);
        /// Of whole columns, from the bytes of rows.
        const JOIN: [[[u8; 16]; C]; C] = Self::places(true);

        const fn places(joins: bool) -> [[[u8; 16]; C]; C] {
            let mut places = [[[0x80; 16]; C]; C];
            let mut byte = 0;
            while byte < 16 * C {
                let (element, in_element) = (byte / SIZE, byte % SIZE);
                // The byte in a register for each of the C, and in all of them as they lie side by side.
                let (register, place) = (element % C, element / C * SIZE + in_element);
                if joins {
                    places[byte / 16][register][byte % 16] = place as u8;
                } else {
                    places[register][byte / 16][place] = (byte % 16) as u8;
                }
                byte += 1;
            }
            places
        }
    }

    /// A tile of C dense columns, or of C rows that become dense columns; false if it has less than a block.
    ///
    /// # Safety
    /// As of `TileTranspose::run`; the processor has AVX2.
    #[inline(always)]
    unsafe fn thin_of<R: Register, const SIZE: usize, const C: usize, const JOINS: bool>(
        from: *const u8,
        from_stride: isize,
        to: *mut u8,
        to_stride: isize,
        count: usize,
    ) -> bool {
        let block = R::LANES * 16 / SIZE;
        if count < block {
            return false;
        }
        let places = if JOINS { &Places::<SIZE, C>::JOIN } else { &Places::<SIZE, C>::SPLIT };
        let mut at = 0;
        while at < count {
            // SAFETY: as demanded of the caller; the block lies in the tile.
            unsafe {
                let mut sources = [R::load(from, 16); C];
                for (i, source) in sources.iter_mut().enumerate() {
                    *source = match JOINS {
                        true => R::load(from.offset(i as isize * from_stride).add(at * SIZE), 16),
                        false => R::load(from.add(at * SIZE * C + 16 * i), 16 * C as isize),
                    };
                }
                for (i, places) in places.iter().enumerate() {
                    let mut result = sources[0].bytes_at(&places[0]);
                    for (source, places) in sources.iter().zip(places).skip(1) {
                        result = result.or(source.bytes_at(places));
                    }
                    match JOINS {
                        true => result.store_lanes(to.add(at * SIZE * C + 16 * i), 16 * C),
                        false => result.store(to.offset(i as isize * to_stride).add(at * SIZE)),
                    }
                }
            }
            at = next(at, block, count);
        }
        true
    }

    /// A tile of two to four columns that are dense, or rows that become dense columns, if no register holds as many.
    ///
    /// # Safety
    /// As of `thin_of`.
    #[inline(always)]
    unsafe fn thin<R: Register, const SIZE: usize>(
        from: *const u8,
        from_stride: isize,
        to: *mut u8,
        to_stride: isize,
        rows: usize,
        columns: usize,
    ) -> bool {
        let is_dense = |stride: isize, elements: usize| stride == (elements * SIZE) as isize;
        // SAFETY: as demanded of the caller.
        unsafe {
            match (rows, columns) {
                (_, 2) if is_dense(from_stride, 2) => {
                    thin_of::<R, SIZE, 2, false>(from, from_stride, to, to_stride, rows)
                }
                (_, 3) if is_dense(from_stride, 3) => {
                    thin_of::<R, SIZE, 3, false>(from, from_stride, to, to_stride, rows)
                }
                (_, 4) if SIZE < 4 && is_dense(from_stride, 4) => {
                    thin_of::<R, SIZE, 4, false>(from, from_stride, to, to_stride, rows)
                }
                (2, _) if is_dense(to_stride, 2) => {
                    thin_of::<R, SIZE, 2, true>(from, from_stride, to, to_stride, columns)
                }
                (3, _) if is_dense(to_stride, 3) => {
                    thin_of::<R, SIZE, 3, true>(from, from_stride, to, to_stride, columns)
                }
                (4, _) if SIZE < 4 && is_dense(to_stride, 4) => {
                    thin_of::<R, SIZE, 4, true>(from, from_stride, to, to_stride, columns)
                }
                _ => false,
            }
        }
    }

    /// # Safety
    /// As of `TileTranspose::run`.
    pub unsafe fn tile_sse2<const SIZE: usize, const N: usize>(
        from: *const u8,
        from_stride: isize,
        to: *mut u8,
        to_stride: isize,
        rows: usize,
        columns: usize,
    ) {
        // SAFETY: as demanded of the caller; every processor of the target has SSE2.
        unsafe {
            if tile::<__m128i, SIZE, N>(from, from_stride, to, to_stride, rows, columns) {
                return;
            }
            match SIZE {
                1 => elements::<u8>(from, from_stride, to, to_stride, rows, columns),
                2 => elements::<u16>(from, from_stride, to, to_stride, rows, columns),
                4 => elements::<u32>(from, from_stride, to, to_stride, rows, columns),
                _ => elements::<u64>(from, from_stride, to, to_stride, rows, columns),
            }
        }
    }

    /// # Safety
    /// As of `TileTranspose::run`.
    #[target_feature(enable = "avx2")]
    pub unsafe fn tile_avx2<const SIZE: usize, const N: usize>(
        from: *const u8,
        from_stride: isize,
        to: *mut u8,
        to_stride: isize,
        rows: usize,
        columns: usize,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let is_done = tile::<__m256i, SIZE, N>(from, from_stride, to, to_stride, rows, columns)
                || thin::<__m256i, SIZE>(from, from_stride, to, to_stride, rows, columns)
                || thin::<__m128i, SIZE>(from, from_stride, to, to_stride, rows, columns);
            if !is_done {
                tile_sse2::<SIZE, N>(from, from_stride, to, to_stride, rows, columns);
            }
        }
    }

    /// # Safety
    /// As of `TileTranspose::run`.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub unsafe fn tile_avx512<const SIZE: usize, const N: usize>(
        from: *const u8,
        from_stride: isize,
        to: *mut u8,
        to_stride: isize,
        rows: usize,
        columns: usize,
    ) {
        // SAFETY: as demanded of the caller; a processor with AVX-512 has AVX2.
        unsafe {
            let is_done = tile::<__m512i, SIZE, N>(from, from_stride, to, to_stride, rows, columns)
                || thin::<__m512i, SIZE>(from, from_stride, to, to_stride, rows, columns);
            if !is_done {
                tile_avx2::<SIZE, N>(from, from_stride, to, to_stride, rows, columns);
            }
        }
    }
}
