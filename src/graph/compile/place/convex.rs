//! Convex sets of nodes, which may become one: no path leaves such a set and comes back, and all sets together leave no
//! cycle either.
//!
//! *Levels.* A node's level is the most times that any path to it leaves the candidates and comes back. No edge leads
//! to a lower level, and one from a candidate to another node leads to a higher one. So all candidates of one level may
//! become one: a path from one to another that leaves them would come back on a higher level. A cycle through several
//! such sets would stay on one level, and there only edges between candidates are left. Two candidates of a level with
//! an edge between them are in one set.
//!
//! *Joining.* Sets on different levels may still become one: a candidate may be on a higher level only because of
//! another set. So two sets with an edge between them are joined where no other path leads from the one to the other,
//! until nothing is joined any more. The search for paths has a limit.
#![forbid(unsafe_code)]

/// The steps that the search for paths may take for each node and edge, and the least that it may always take.
const STEPS: usize = 16;
const LEAST_STEPS: usize = 1 << 20;

/// The set of each node (union-find).
struct Sets {
    parent: Vec<usize>,
}

impl Sets {
    fn of(count: usize) -> Sets {
        Sets { parent: (0..count).collect() }
    }

    fn find(&mut self, mut node: usize) -> usize {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        // The lower number stays.
        self.parent[a.max(b)] = a.min(b);
    }
}

/// A topological order, the lowest number first; `before` has the predecessors of each node.
pub(super) fn order(before: &[Vec<usize>]) -> Vec<usize> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let followers = followers(before);
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let is_first = |&node: &usize| before[node].is_empty();
    let mut ready: BinaryHeap<_> = (0..before.len()).filter(is_first).map(Reverse).collect();
    let mut order = Vec::with_capacity(before.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &next in &followers[node] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    order
}

fn followers(before: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); before.len()];
    for (node, before) in before.iter().enumerate() {
        before.iter().for_each(|&before| followers[before].push(node));
    }
    followers
}

/// The sets of at least two candidates, each connected, in the order of its nodes. `before` has the predecessors of
/// each node, with no cycle.
pub(super) fn convex(before: &[Vec<usize>], is_candidate: &[bool]) -> Vec<Vec<usize>> {
    let order = order(before);
    let mut level = vec![0u32; before.len()];
    let mut sets = Sets::of(before.len());
    for &node in &order {
        let passed = |&from: &usize| level[from] + u32::from(is_candidate[from] && !is_candidate[node]);
        level[node] = before[node].iter().map(passed).max().unwrap_or(0);
        for &from in before[node].iter().filter(|&&from| is_candidate[node] && is_candidate[from]) {
            if level[from] == level[node] {
                sets.join(from, node);
            }
        }
    }
    let edges: usize = before.iter().map(Vec::len).sum();
    let mut left = LEAST_STEPS.max(STEPS * (before.len() + edges));
    while join(before, &order, is_candidate, &mut sets, &mut left) {}
    let mut found: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for &node in order.iter().filter(|&&node| is_candidate[node]) {
        found[sets.find(node)].push(node);
    }
    found.retain(|set| set.len() > 1);
    found
}

/// Joins sets of candidates with an edge between them, where that makes no cycle. Gives whether it has joined any, and
/// may join more; `left` counts steps.
fn join(before: &[Vec<usize>], order: &[usize], is_candidate: &[bool], sets: &mut Sets, left: &mut usize) -> bool {
    let followers = followers(before);
    let mut has_joined = false;
    let mut members: Vec<Vec<usize>> = (0..before.len()).map(|node| vec![node]).collect();
    for node in 0..before.len() {
        let set = sets.find(node);
        if set != node {
            let own = std::mem::take(&mut members[node]);
            members[set].extend(own);
        }
    }
    let mut seen = vec![usize::MAX; before.len()];
    let mut search = 0;
    for &node in order.iter().filter(|&&node| is_candidate[node]) {
        for &from in before[node].iter().filter(|&&from| is_candidate[from]) {
            let (a, b) = (sets.find(from), sets.find(node));
            if a == b {
                continue;
            }
            search += 1;
            let mut open: Vec<usize> = Vec::new();
            let mut is_apart = false;
            for &member in &members[a] {
                open.extend(
                    followers[member].iter().map(|&next| sets.find(next)).filter(|&next| next != a && next != b),
                );
            }
            *left = left.saturating_sub(members[a].len() + open.len());
            while let Some(set) = open.pop() {
                if std::mem::replace(&mut seen[set], search) == search {
                    continue;
                }
                for &member in &members[set] {
                    *left = left.saturating_sub(1 + followers[member].len());
                    for &next in &followers[member] {
                        let next = sets.find(next);
                        is_apart |= next == b;
                        open.push(next);
                    }
                }
                if is_apart || *left == 0 {
                    break;
                }
            }
            if *left == 0 {
                return false;
            }
            if !is_apart {
                sets.join(a, b);
                let (kept, gone) = (a.min(b), a.max(b));
                let gone = std::mem::take(&mut members[gone]);
                members[kept].extend(gone);
                has_joined = true;
            }
        }
    }
    has_joined
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// `edges`: from, to. `others`: nodes that are no candidates.
    fn found(count: usize, edges: &[(usize, usize)], others: &[usize]) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); count];
        edges.iter().for_each(|&(from, to)| before[to].push(from));
        let is_candidate: Vec<bool> = (0..count).map(|node| !others.contains(&node)).collect();
        convex(&before, &is_candidate)
    }

    #[test]
    fn what_comes_back_is_not_one() {
        assert_eq!(found(3, &[(0, 1), (1, 2)], &[]), [[0, 1, 2]]);
        // 0 -> 1 -> 2, and 0 -> 2 as well.
        assert!(found(3, &[(0, 1), (1, 2), (0, 2)], &[1]).is_empty());
        // A path through two others.
        assert_eq!(found(5, &[(0, 1), (0, 2), (2, 3), (3, 4), (1, 4)], &[2, 3]), [[0, 1]]);
        // A non-candidate without predecessors.
        assert_eq!(found(4, &[(0, 2), (1, 2), (2, 3)], &[1]), [[0, 2, 3]]);
        // Two sets that are not connected stay two.
        assert_eq!(found(5, &[(0, 1), (2, 3), (4, 1), (4, 3)], &[4]), [[0, 1], [2, 3]]);
        // Because of another set 3 is on a higher level: 0 -> 1 -> 3, and 2 -> 3.
        assert_eq!(found(4, &[(0, 1), (1, 3), (2, 3)], &[1]), [[2, 3]]);
    }

    #[test]
    fn two_sets_leave_no_circle() {
        // 0 and 1, or 2 and 3, but not both: 0 -> 4 -> 3, and 2 -> 5 -> 1.
        let sets = found(6, &[(0, 1), (2, 3), (0, 4), (4, 3), (2, 5), (5, 1)], &[4, 5]);
        assert_eq!(sets, [[2, 3]]);
    }

    #[test]
    fn drawn_graphs_become_graphs_without_circles_and_nothing_is_left_to_join() {
        let mut seed = 5u64;
        let mut draw = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..500 {
            let count = 2 + draw(30) as usize;
            let rare = 2 + draw(12);
            let before: Vec<Vec<usize>> =
                (0..count).map(|node| (0..node).filter(|_| draw(rare) == 0).collect()).collect();
            let is_candidate: Vec<bool> = (0..count).map(|_| draw(4) != 0).collect();
            let sets = convex(&before, &is_candidate);
            let mut unit: Vec<usize> = (0..count).collect();
            for set in &sets {
                assert!(set.len() > 1 && set.iter().all(|&node| is_candidate[node]));
                set.iter().for_each(|&node| unit[node] = set[0]);
            }
            assert!(is_acyclic(&before, &unit));
            for node in (0..count).filter(|&node| is_candidate[node]) {
                for &from in before[node].iter().filter(|&&from| is_candidate[from] && unit[from] != unit[node]) {
                    let (a, b) = (unit[from], unit[node]);
                    let joined: Vec<usize> = unit.iter().map(|&unit| if unit == b { a } else { unit }).collect();
                    assert!(!is_acyclic(&before, &joined), "{before:?} {sets:?}: {a} and {b}");
                }
            }
        }
    }

    fn is_acyclic(before: &[Vec<usize>], unit: &[usize]) -> bool {
        let mut of_units = vec![Vec::new(); before.len()];
        for (node, before) in before.iter().enumerate() {
            let apart = before.iter().map(|&before| unit[before]).filter(|&before| before != unit[node]);
            of_units[unit[node]].extend(apart);
        }
        order(&of_units).len() == before.len()
    }
}
