//! Reachability: which items come before which, a bit for each pair.
#![forbid(unsafe_code)]

/// For each item, all items that it comes after.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    /// Room for this many items.
    pub fn new(items: usize) -> Reach {
        Reach::of_marks(items, items)
    }

    /// Room for this many items with this many marks each.
    pub fn of_marks(items: usize, marks: usize) -> Reach {
        let words = marks.div_ceil(64);
        Reach { words, bits: vec![0; words * items] }
    }

    /// Whether `then` comes after `before`.
    pub fn is_before(&self, before: usize, then: usize) -> bool {
        self.bits[then * self.words + before / 64] & (1 << (before % 64)) != 0
    }

    /// All marks of an item.
    pub fn row(&self, item: usize) -> &[u64] {
        &self.bits[item * self.words..][..self.words]
    }

    pub fn mark(&mut self, item: usize, mark: usize) {
        self.bits[item * self.words + mark / 64] |= 1 << (mark % 64);
    }

    /// Adds the marks of `before` to those of `item`.
    pub fn follow(&mut self, item: usize, before: usize) {
        for word in 0..self.words {
            self.bits[item * self.words + word] |= self.bits[before * self.words + word];
        }
    }

    /// Adds an item after others; items added before it can no longer follow it. Leaves in `after` only those that no
    /// other one implies, the latest first: a transitive reduction.
    pub fn add(&mut self, item: usize, after: &mut Vec<usize>) {
        after.sort_unstable_by(|a, b| b.cmp(a));
        after.dedup();
        // A later item may come after an earlier one, never the reverse.
        after.retain(|&before| {
            let is_new = !self.is_before(before, item);
            if is_new {
                self.follow(item, before);
                self.mark(item, before);
            }
            is_new
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_others_imply_is_left_out_and_nothing_else() {
        let mut random = 1u64;
        let mut draw = |n: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) as usize) % n
        };
        for _ in 0..200 {
            let n = 2 + draw(90);
            let edges: Vec<Vec<usize>> = (0..n).map(|i| (0..draw(4).min(i)).map(|_| draw(i)).collect()).collect();
            let closure = |edges: &[Vec<usize>]| {
                let mut before = vec![vec![false; n]; n];
                for (at, after) in edges.iter().enumerate() {
                    for &from in after {
                        let theirs = before[from].clone();
                        before[at].iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
                        before[at][from] = true;
                    }
                }
                before
            };
            let (mut reach, mut reduced) = (Reach::new(n), edges.clone());
            reduced.iter_mut().enumerate().for_each(|(at, after)| reach.add(at, after));
            let all = closure(&edges);
            assert_eq!(closure(&reduced), all);
            for (then, before) in all.iter().enumerate() {
                (0..then).for_each(|i| assert_eq!(reach.is_before(i, then), before[i]));
            }
            for (at, after) in reduced.iter().enumerate() {
                for (i, from) in after.iter().enumerate() {
                    let mut less = reduced.clone();
                    less[at].remove(i);
                    assert_ne!(closure(&less), all, "{from} before {at} is implied");
                }
            }
        }
    }
}
