//! Sizes of blocks. Small blocks come in classes, four to each doubling, so that a returned block fits many later
//! requests and at most a fifth is wasted; large blocks come in pages.
#![forbid(unsafe_code)]

/// Number of classes.
pub(super) const CLASSES: usize = 36;
/// Units in the largest class.
const UNITS: usize = 1024;
/// Bytes in the largest small block.
const SMALL: usize = 64 << 10;
const PAGE: usize = 4096;

/// The size of the block for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub bytes: usize,
    /// `None` for a large block.
    pub class: Option<usize>,
}

/// `unit` is the alignment, a power of two. None if no memory is that large.
pub(super) fn size_of_request(bytes: usize, unit: usize) -> Option<Size> {
    let bytes = bytes.max(1);
    let units = bytes.div_ceil(unit);
    if bytes > SMALL || units > UNITS {
        let bytes = bytes.checked_next_multiple_of(PAGE.max(unit)).filter(|&bytes| bytes <= isize::MAX as usize)?;
        return Some(Size { bytes, class: None });
    }
    // Up to eight units each number is a class; above that the three highest bits decide.
    let shift = (usize::BITS - (units - 1).leading_zeros()).saturating_sub(3) as usize;
    let steps = units.div_ceil(1 << shift);
    Some(Size { bytes: (steps << shift) * unit, class: Some(4 * shift + steps - 1) })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_was_asked_for_and_waste_little() {
        for unit in [64, 256, 4096] {
            let mut sizes = vec![0; CLASSES];
            for bytes in (0..=SMALL).step_by(8) {
                let size = size_of_request(bytes, unit).unwrap();
                assert!(size.bytes >= bytes && size.bytes.is_multiple_of(unit));
                assert!(size.bytes - bytes.max(1) < unit.max(size.bytes / 5 + unit), "{bytes} takes {}", size.bytes);
                let of_class = &mut sizes[size.class.unwrap()];
                assert!([0, size.bytes].contains(of_class), "two sizes in a class");
                *of_class = size.bytes;
            }
        }
        assert_eq!(size_of_request(SMALL, 64), Some(Size { bytes: SMALL, class: Some(CLASSES - 1) }));
        assert_eq!(size_of_request(SMALL + 1, 64), Some(Size { bytes: SMALL + PAGE, class: None }));
        assert_eq!(size_of_request(usize::MAX, 64), None);
        assert_eq!(size_of_request(isize::MAX as usize, 64), None);
    }
}
