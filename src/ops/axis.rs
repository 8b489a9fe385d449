//! Sliding windows along an axis: the input element under each tap of a window.
#![forbid(unsafe_code)]

use std::ops::Range;

/// The values beyond the ends of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeMode {
    /// None: zeros, or elements that do not count.
    #[default]
    Zero,
    /// The elements mirrored at the first and the last one, which are not repeated.
    Reflect,
}

/// An axis with its windows: window `o` has `taps` taps at o * stride + tap * dilation - before.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub input: usize,
    pub output: usize,
    pub taps: usize,
    pub stride: usize,
    pub dilation: usize,
    pub before: usize,
    pub edge: EdgeMode,
}

impl Axis {
    /// An axis with one element and one window.
    pub const ONE: Axis =
        Axis { input: 1, output: 1, taps: 1, stride: 1, dilation: 1, before: 0, edge: EdgeMode::Zero };

    /// The element under a tap; `None` if it is beyond the ends and there is no padding value.
    #[inline(always)]
    pub fn element(&self, window: usize, tap: usize) -> Option<usize> {
        self.at(window * self.stride + tap * self.dilation)
    }

    /// The element at a place of the padded axis, whose padding begins at 0; `None` as of `element`, and beyond what a
    /// mirror shows.
    #[inline(always)]
    pub fn at(&self, place: usize) -> Option<usize> {
        let inside = place.wrapping_sub(self.before);
        if inside < self.input {
            return Some(inside);
        }
        match self.edge {
            EdgeMode::Zero => None,
            EdgeMode::Reflect if place < self.before => Some(self.before - place).filter(|&at| at < self.input),
            EdgeMode::Reflect => (2 * self.input).checked_sub(2 + inside),
        }
    }

    /// The windows whose tap is between the ends.
    #[inline(always)]
    pub fn inside(&self, tap: usize) -> Range<usize> {
        let at = tap * self.dilation;
        let (mut begin, mut end) = (self.before.saturating_sub(at), (self.input + self.before).saturating_sub(at));
        // A division takes as long as a short row of elements.
        if self.stride != 1 {
            (begin, end) = (begin.div_ceil(self.stride), end.div_ceil(self.stride));
        }
        let begin = begin.min(self.output);
        begin..end.min(self.output).max(begin)
    }

    /// Whether there is an element under each tap of a window.
    pub fn fills(&self, window: usize) -> bool {
        let first = window * self.stride;
        let last = first + (self.taps - 1) * self.dilation;
        self.edge == EdgeMode::Reflect || (first >= self.before && last < self.input + self.before)
    }

    /// The windows all of whose taps are between the ends.
    pub fn interior(&self) -> Range<usize> {
        let (first, last) = (self.inside(0), self.inside(self.taps - 1));
        let begin = first.start.max(last.start);
        begin..first.end.min(last.end).max(begin)
    }

    /// The taps of a window that fall on consecutive elements between the ends, from the first up to the second.
    pub fn between(&self, window: usize) -> (usize, usize) {
        if self.dilation != 1 {
            return (0, 0);
        }
        let at = window * self.stride;
        let begin = self.before.saturating_sub(at).min(self.taps);
        (begin, (self.input + self.before).saturating_sub(at).clamp(begin, self.taps))
    }

    /// Number of taps of a window that are between the ends.
    pub fn count(&self, window: usize) -> usize {
        if self.dilation == 1 {
            let (begin, end) = self.between(window);
            return end - begin;
        }
        let inside = |&tap: &usize| (window * self.stride + tap * self.dilation).wrapping_sub(self.before) < self.input;
        (0..self.taps).filter(inside).count()
    }

    /// Whether each window is exactly one element.
    pub fn is_plain(&self) -> bool {
        self.taps == 1 && self.stride == 1 && self.before == 0 && self.output == self.input
    }

    /// Whether it has one element and one window on it.
    pub fn is_one(&self) -> bool {
        self.is_plain() && self.input == 1
    }

    /// The plane under plane `number` of a window in a slice of the output: of each channel a window has one for each
    /// tap in depth, which is this axis. Planes are counted through the slices of one channel after the other.
    #[inline(always)]
    pub fn plane(&self, slice: usize, number: usize) -> Option<usize> {
        if self.taps == 1 {
            return Some(number * self.input + self.element(slice, 0)?);
        }
        Some(number / self.taps * self.input + self.element(slice, number % self.taps)?)
    }

    /// Two plain axes as one.
    fn joined(&self, other: &Axis) -> Axis {
        // Open sizes are stood for by enormous ones.
        let all = self.input.saturating_mul(other.input);
        Axis { input: all, output: all, ..*other }
    }
}

/// Depth, rows and columns, without a depth where the windows of a volume are those of an image: its rows are the
/// slices if windows are single elements of these, or all rows of all slices.
pub fn folded(axes: [Axis; 3]) -> [Axis; 3] {
    let [depth, rows, columns] = axes;
    if depth.is_one() {
        axes
    } else if rows.is_plain() && columns.is_plain() {
        [Axis::ONE, depth, rows.joined(&columns)]
    } else if depth.is_plain() && rows.is_plain() {
        [Axis::ONE, depth.joined(&rows), columns]
    } else {
        axes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_what_the_elements_say() {
        for (input, taps, stride, dilation, before, after) in [
            (1, 1, 1, 1, 0, 0),
            (5, 3, 1, 1, 1, 1),
            (7, 3, 2, 2, 2, 3),
            (9, 4, 3, 1, 3, 0),
            (3, 3, 1, 1, 2, 2),
            (4, 2, 2, 3, 1, 1),
        ] {
            let output = (input + before + after - (taps - 1) * dilation - 1) / stride + 1;
            let axis = Axis { input, output, taps, stride, dilation, before, edge: EdgeMode::Zero };
            for tap in 0..taps {
                let inside: Vec<_> = (0..output).filter(|&window| axis.element(window, tap).is_some()).collect();
                assert_eq!(axis.inside(tap).collect::<Vec<_>>(), inside, "{axis:?} tap {tap}");
            }
            for window in 0..output {
                let all = (0..taps).filter(|&tap| axis.element(window, tap).is_some()).count();
                let (begin, end) = axis.between(window);
                assert!(end - begin == if dilation == 1 { all } else { 0 }, "{axis:?} window {window}");
                assert!((begin..end).all(|tap| axis.element(window, tap).is_some()), "{axis:?} window {window}");
                assert_eq!(axis.count(window), all);
                assert_eq!(axis.interior().contains(&window), all == taps, "{axis:?} window {window}");
                assert_eq!(axis.fills(window), all == taps, "{axis:?} window {window}");
            }
        }
    }

    #[test]
    fn a_mirror_does_not_repeat_the_end() {
        let axis = Axis { input: 4, output: 8, taps: 3, stride: 1, dilation: 1, before: 3, edge: EdgeMode::Reflect };
        let elements: Vec<_> = (0..10).map(|at| axis.element(at.min(7), at - at.min(7)).unwrap()).collect();
        assert_eq!(elements, [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
    }
}
