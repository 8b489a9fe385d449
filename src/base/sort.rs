//! Sorting where time does not matter. The standard library's functions are compiled for each type of elements and each
//! order, which takes some 10 KiB each; these put numbers of elements in order, and then the elements.
#![forbid(unsafe_code)]

use std::cmp::Ordering;

/// Sorts elements; those that compare equal stay in their order.
pub fn sort_by<T>(all: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    sort_numbers(&mut order, &|a, b| compare(&all[a], &all[b]));
    // Element `order[i]` goes to place i: along each cycle, whose first element wanders to its end.
    for first in 0..order.len() {
        let mut at = first;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == first || from == at {
                break;
            }
            all.swap(at, from);
            at = from;
        }
    }
}

/// As `sort_by`, in the order of keys.
pub fn sort_by_key<T, K: Ord>(all: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(all, |a, b| key(a).cmp(&key(b)));
}

#[inline(never)]
fn sort_numbers(order: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    order.sort_by(|&a, &b| compare(a, b));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_stable_order() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 24
        };
        for len in 0..80 {
            let all: Vec<(u32, usize)> = (0..len).map(|i| (random() % 7, i)).collect();
            let (mut ours, mut expected) = (all.clone(), all);
            sort_by_key(&mut ours, |one| one.0);
            expected.sort_by_key(|one| one.0);
            assert_eq!(ours, expected);
            sort_by(&mut ours, |a, b| b.cmp(a));
            expected.sort_by(|a, b| b.cmp(a));
            assert_eq!(ours, expected);
        }
    }
}
