//! Sorting of what is nearly in order, as records of a thread are.
#![forbid(unsafe_code)]

/// Sorts what is nearly sorted: elements move past few others. Once all together have moved too far it sorts as ever.
pub fn sort_nearly<T, K: Ord>(all: &mut [T], key: impl Fn(&T) -> K) {
    let mut left = 8 * all.len();
    for at in 1..all.len() {
        let this = key(&all[at]);
        if key(&all[at - 1]) <= this {
            continue;
        }
        let to = all[..at].partition_point(|other| key(other) <= this);
        let Some(rest) = left.checked_sub(at - to) else { return all.sort_unstable_by_key(key) };
        left = rest;
        all[to..=at].rotate_right(1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::sort_nearly;

    #[test]
    fn what_is_nearly_sorted_and_what_is_not() {
        let nested = (0..1000).map(|i| if i % 10 == 9 { i - 9 } else { i + 1 });
        let reversed = (0..1000).rev();
        let mixed = (0..1000).map(|i| i * 7919 % 1009);
        for all in [Vec::new(), vec![3], nested.collect::<Vec<i32>>(), reversed.collect(), mixed.collect()] {
            let (mut got, mut want) = (all.clone(), all);
            sort_nearly(&mut got, |x| *x);
            want.sort_unstable();
            assert_eq!(got, want);
        }
    }
}
