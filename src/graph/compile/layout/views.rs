//! The views of a program: each list of arguments once.
//!
//! Nodes whose inputs lie in the same places and look alike have the same views of them, and so with outputs. Since
//! memory is used again and again (`memory`), a large graph of few shapes has few such lists, which stay in the cache
//! while it runs. Where there are too many for that, nodes of few arguments have the numbers of single views instead,
//! of which there are still few, and the thread that runs such a node puts them side by side. Views that a run changes
//! are not shared: those of nodes with shapes that only a run knows, and those of a run's tensors in branches, which
//! are pointed there when the branch is taken.
#![forbid(unsafe_code)]

use super::flat::Flat;
use super::memory::Places;
use crate::base::Result;
use crate::base::index::{HashIndex, mix};
use crate::base::sort::sort_by_key;
use crate::graph::plan::{Arg, Body, MOST_PICKED, NOT_PICKED, Place, Select};
use crate::memory::heap;
use std::ops::Range;

/// Where a kernel's inputs and outputs are, as in `KernelNode`.
#[derive(Clone, Copy)]
pub(super) struct ViewLists {
    pub inputs: u32,
    pub outputs: u32,
    pub picks: u32,
}

/// So many views back a list is used again: about three megabytes. From further back it would come slower than a new
/// one, which lies where the run reads next.
const FAR: usize = 1 << 15;
/// Arguments are picked in programs of more views than that, while there are so few single ones that they stay near.
const MOST_SINGLES: usize = 1 << 10;

pub(super) struct PlanViews {
    pub args: Vec<Arg>,
    /// Those that are inputs and outputs of a run: those outside of branches, whose number is `always`, then those of
    /// each branch.
    pub bound: Vec<u32>,
    pub always: u32,
    pub lists: Vec<ViewLists>,
    pub picks: Vec<u32>,
}

/// Lays out the views, and puts their numbers in the place of those of the flat form.
pub(super) fn lay(flat: &mut Flat, places: &Places) -> Result<PlanViews> {
    let mut laid = LaidViews {
        flat,
        places,
        owners: owners(flat),
        views: PlanViews {
            args: Vec::new(),
            bound: Vec::new(),
            always: 0,
            lists: heap::room(flat.kernels.len(), "the kernels of a program")?,
            picks: Vec::new(),
        },
        owned: Vec::new(),
        known: HashIndex::default(),
        spans: Vec::new(),
        singles: 0,
    };
    let mut singles: Vec<u32> = Vec::new();
    let mut at = 0;
    for number in 0..flat.kernels.len() {
        let kernel = &flat.kernels[number];
        let (first, outputs) = (kernel.args, kernel.args + u32::from(kernel.num_inputs));
        debug_assert!(first >= at, "arguments of kernels in another order");
        laid.others(at..first, &mut singles)?;
        at = outputs + u32::from(kernel.num_outputs);
        let body = flat.bodies[kernel.node as usize];
        let may_pick = matches!(body, Body::Kernel(_)) && (at - first) as usize <= MOST_PICKED && at > first;
        let has_room = laid.views.args.len() >= FAR && laid.singles < MOST_SINGLES;
        if may_pick && has_room && !laid.is_bound_in_branch(first..at) {
            let picks = laid.views.picks.len() as u32;
            for arg in first..at {
                let before = laid.views.args.len();
                let view = laid.list(arg..arg + 1, Reuse::Always)?;
                laid.singles += laid.views.args.len() - before;
                laid.views.picks.push(view);
                singles.push(view);
            }
            laid.views.lists.push(ViewLists { inputs: 0, outputs: 0, picks });
            continue;
        }
        let reuse = if matches!(body, Body::Dynamic(_)) { Reuse::Never } else { Reuse::Near };
        let inputs = laid.list(first..outputs, reuse)?;
        let outputs = laid.list(outputs..at, reuse)?;
        laid.views.lists.push(ViewLists { inputs, outputs, picks: NOT_PICKED });
        singles.extend(inputs..inputs + u32::from(kernel.num_inputs));
        singles.extend(outputs..outputs + u32::from(kernel.num_outputs));
    }
    laid.others(at..flat.args.len() as u32, &mut singles)?;
    let (mut views, mut owned) = (laid.views, laid.owned);
    // Branch by branch, and what is outside of them first.
    sort_by_key(&mut owned, |&(owner, _)| owner);
    views.always = owned.partition_point(|&(owner, _)| owner == OUTSIDE) as u32;
    for (number, branch) in (OUTSIDE + 1..).zip(flat.selects.iter_mut().flat_map(|select| &mut select.branches)) {
        let start = owned.partition_point(|&(owner, _)| owner < number);
        let end = owned.partition_point(|&(owner, _)| owner <= number);
        branch.bound = start as u32..end as u32;
    }
    views.bound = owned.into_iter().map(|(_, arg)| arg).collect();
    flat.each_view(|view| *view = singles[*view as usize]);
    Ok(views)
}

/// The owner of an argument outside of all branches. A branch is its number and one more.
const OUTSIDE: u32 = 0;

/// The innermost branch of each argument; empty if there are no branches.
fn owners(flat: &Flat) -> Vec<u32> {
    let mut owners = vec![OUTSIDE; if flat.selects.is_empty() { 0 } else { flat.args.len() }];
    // A Select comes before those that lie inside of it.
    let branches = flat.selects.iter().flat_map(|select: &Select| &select.branches);
    for (number, branch) in (OUTSIDE + 1..).zip(branches) {
        owners[branch.args.start as usize..branch.args.end as usize].fill(number);
    }
    owners
}

/// Whether a list may be one that there is already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reuse {
    Never,
    Near,
    Always,
}

struct LaidViews<'a> {
    flat: &'a Flat,
    places: &'a Places,
    owners: Vec<u32>,
    views: PlanViews,
    /// The bound ones with their owners.
    owned: Vec<(u32, u32)>,
    /// The lists that others may have too, by index in `spans`.
    known: HashIndex,
    spans: Vec<(u32, u32)>,
    /// How many views there are for arguments that are picked.
    singles: usize,
}

impl LaidViews<'_> {
    fn arg(&self, arg: u32) -> Arg {
        let arg = self.flat.args[arg as usize];
        Arg { desc: arg.desc, place: self.places.of[arg.storage as usize] }
    }

    fn owner(&self, arg: u32) -> u32 {
        self.owners.get(arg as usize).copied().unwrap_or(OUTSIDE)
    }

    fn push(&mut self, old: u32) -> u32 {
        let (arg, number) = (self.arg(old), self.views.args.len() as u32);
        if is_bound(&arg) {
            self.owned.push((self.owner(old), number));
        }
        self.views.args.push(arg);
        number
    }

    fn push_all(&mut self, args: Range<u32>) {
        for arg in args {
            self.push(arg);
        }
    }

    /// Views of what is no kernel's. A merge may give its own another shape, where a run decides shapes.
    fn others(&mut self, args: Range<u32>, numbers: &mut Vec<u32>) -> Result<()> {
        let reuse = if self.flat.dynamics.is_empty() { Reuse::Near } else { Reuse::Never };
        for arg in args {
            numbers.push(self.list(arg..arg + 1, reuse)?);
        }
        Ok(())
    }

    /// Whether one of these is pointed elsewhere when a branch is taken.
    fn is_bound_in_branch(&self, mut args: Range<u32>) -> bool {
        args.any(|arg| self.owner(arg) != OUTSIDE && is_bound(&self.arg(arg)))
    }

    /// Where this list is.
    fn list(&mut self, args: Range<u32>, reuse: Reuse) -> Result<u32> {
        if reuse == Reuse::Never || args.is_empty() || self.is_bound_in_branch(args.clone()) {
            let first = self.views.args.len() as u32;
            self.push_all(args);
            return Ok(first);
        }
        let hash = args.clone().fold(args.len() as u64, |hash, arg| {
            let Arg { place, desc } = self.arg(arg);
            let (kind, at) = match place {
                Place::Arena(at) => (0, at),
                Place::Constant(i) => (1, i),
                Place::Input(i) => (2, i),
                Place::Output(i) => (3, i),
                Place::Slot(i) => (4, i),
            };
            mix(hash ^ u64::from(desc) << 3 ^ kind, at as u64)
        });
        let found = self.known.find(hash, |number| {
            let (first, len) = self.spans[number as usize];
            let known = &self.views.args[first as usize..][..len as usize];
            known.len() == args.len() && known.iter().zip(args.clone()).all(|(known, arg)| *known == self.arg(arg))
        });
        let first = self.views.args.len() as u32;
        match found.map(|number| &mut self.spans[number as usize].0) {
            Some(known) if reuse == Reuse::Always || (first - *known) as usize <= FAR => return Ok(*known),
            Some(known) => *known = first,
            None => {
                self.known.reserve("the arguments of a program")?;
                self.known.insert(hash, self.spans.len() as u32);
                self.spans.push((first, args.len() as u32));
            }
        }
        self.push_all(args);
        Ok(first)
    }
}

fn is_bound(arg: &Arg) -> bool {
    matches!(arg.place, Place::Input(_) | Place::Output(_))
}

impl Flat {
    /// Each number of a view that is no kernel's list.
    fn each_view(&mut self, mut f: impl FnMut(&mut u32)) {
        let pairs = |pairs: &mut Vec<(u32, u32)>, f: &mut dyn FnMut(&mut u32)| {
            pairs.iter_mut().for_each(|(from, to)| {
                f(from);
                f(to);
            });
        };
        self.selects.iter_mut().for_each(|select| f(&mut select.selector));
        for looped in &mut self.loops {
            f(&mut looped.predicate);
            pairs(&mut looped.enter, &mut f);
            pairs(&mut looped.next, &mut f);
        }
        for slot in &mut self.slots {
            f(&mut slot.predicate);
            pairs(&mut slot.leave, &mut f);
        }
        self.switches.iter_mut().for_each(|switch| f(&mut switch.predicate));
        for merge in &mut self.merges {
            merge.inputs.iter_mut().for_each(|input| f(&mut input.view));
            f(&mut merge.value);
            f(&mut merge.index);
        }
        for node in &mut self.dynamics.nodes {
            node.reads.iter_mut().for_each(|(arg, _)| f(arg));
            node.writes.iter_mut().for_each(|write| f(&mut write.arg));
        }
    }
}
