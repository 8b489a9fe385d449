//! How the driver's graph of a recording is filled. A step is one node or more: a kernel's launches one behind the
//! other, a copy, a fill; what launches nothing is an empty node, so that edges through it stay. A branch or a loop is a
//! conditional node, whose bodies are filled in the same way. No device runtime library takes part: kernels of the
//! library's own (`gpu/kernels/control.ptx`) read the integer in the device's memory and set the node's condition, through a
//! function that the driver puts in when it loads their module.
//!
//! *A loop* is a kernel that sets the condition, and a WHILE node behind it; the same kernel is in the body again,
//! behind what the recording says, or behind all of it. It reads an integer, or compares two numbers itself.
//!
//! *A branch* is a kernel and a node, too: IF, with else where both lists do something, or SWITCH. Drivers before 12.8
//! have neither, and are given an IF for each list that does something, with a condition each. Then all conditions are
//! set before any of the nodes: a list may write what they were read from. A branch of one list is that list.
//!
//! *Bodies* are graphs of the node's own, filled as the outer one is . They hold kernels, copies,
//! empty nodes and conditional nodes, of this context: what the driver allows, less sets of memory, which some drivers
//! do not do right there; a kernel fills instead. Each has a node at least.

use super::blas::RecordedProducts;
use super::context::{Context, Handle};
use super::grid::Grid;
use super::inbox::Tickets;
use super::kernel::CudaKernel;
use super::module::Module;
use super::node::{Functions, In, copy_node, fill_node, kernel_node};
use super::piece::Piece;
use super::table::{CUcontext, CUfunction, CUgraph, CUgraphNode, ConditionalNode, Status};
use crate::base::{Error, Result, dtype};
use crate::device::{Branch, Comparison, Fill, Integer, Loop, Predicate, Step, Work};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// CUgraphConditionalNodeType
const IF: c_int = 0;
const WHILE: c_int = 1;
const SWITCH: c_int = 2;

/// Threads of a block that fills bytes, the bytes that each takes at a time, and most blocks.
const THREADS: usize = 256;
const WIDE: usize = 16;
const MOST_BLOCKS: usize = 4096;

type CreateHandle = unsafe extern "C" fn(*mut u64, CUgraph, CUcontext, c_uint, c_uint) -> Status;
type AddNode = unsafe extern "C" fn(
    *mut CUgraphNode,
    CUgraph,
    *const CUgraphNode,
    *const c_void,
    usize,
    *mut ConditionalNode,
) -> Status;

/// What conditional nodes take, in a context.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) create_handle: CreateHandle,
    pub(super) add_node: AddNode,
    pub(super) set_if: Handle<CUfunction>,
    pub(super) set_case: Handle<CUfunction>,
    pub(super) set_switch: Handle<CUfunction>,
    pub(super) while_step: Handle<CUfunction>,
    pub(super) while_compare: Handle<CUfunction>,
    pub(super) fill: Handle<CUfunction>,
    pub(super) has_choices: bool,
    pub(super) _module: Module,
}

/// What sets a condition.
#[derive(Clone, Copy)]
enum Set {
    /// Not 0; or 0.
    If {
        invert: bool,
    },
    /// The index, of so many.
    Switch(usize),
    /// The index, of so many, is this.
    Case(usize, usize),
    While,
}

/// A node to be made.
struct Conditional {
    set: Set,
    kind: c_int,
    /// Which of the lists each is.
    bodies: SmallVec<[usize; 4]>,
}

impl Conditional {
    fn new(set: Set, kind: c_int, bodies: &[usize]) -> Conditional {
        Conditional { set, kind, bodies: bodies.into() }
    }
}

/// The nodes that a branch takes.
fn conditionals(branch: &Branch<'_>, has_choices: bool) -> SmallVec<[Conditional; 4]> {
    let (not, is) = (Set::If { invert: true }, Set::If { invert: false });
    let mut nodes = SmallVec::new();
    match *branch.branches {
        // An index other than 0 is the last one, so these are a cond.
        [zero, other] => match (zero.is_empty(), other.is_empty()) {
            (true, true) => {}
            (true, false) => nodes.push(Conditional::new(is, IF, &[1])),
            (false, true) => nodes.push(Conditional::new(not, IF, &[0])),
            (false, false) if has_choices => nodes.push(Conditional::new(is, IF, &[1, 0])),
            (false, false) => {
                nodes.push(Conditional::new(is, IF, &[1]));
                nodes.push(Conditional::new(not, IF, &[0]));
            }
        },
        ref lists if lists.iter().all(|list| list.is_empty()) => {}
        ref lists if has_choices => {
            let bodies = (0..lists.len()).collect();
            nodes.push(Conditional { set: Set::Switch(lists.len()), kind: SWITCH, bodies });
        }
        ref lists => {
            let some = lists.iter().enumerate().filter(|(_, list)| !list.is_empty());
            nodes.extend(some.map(|(case, _)| Conditional::new(Set::Case(lists.len(), case), IF, &[case])));
        }
    }
    nodes
}

/// What fills the graph of a recording, and those inside of it.
#[derive(Clone, Copy)]
pub(super) struct Filler<'a> {
    pub context: &'a Arc<Context>,
    pub functions: Functions,
    /// If the recording has branches or loops.
    pub control: Option<&'a Control>,
    pub name: &'a str,
    /// It is the body of a conditional node that is filled.
    pub is_inside: bool,
    /// The recording's, which are added in the order of its lists.
    pub products: &'a RefCell<RecordedProducts>,
    pub tickets: &'a dyn Tickets,
}

/// Nodes, of which so many at the end are what others come behind.
#[derive(Default)]
pub(super) struct Made {
    pub nodes: SmallVec<[CUgraphNode; 4]>,
    pub ends: usize,
}

impl Made {
    pub(super) fn one(node: CUgraphNode) -> Made {
        Made { nodes: [node].as_slice().into(), ends: 1 }
    }

    pub(super) fn ends(&self) -> &[CUgraphNode] {
        &self.nodes[self.nodes.len() - self.ends..]
    }
}

/// The nodes that nothing of a list comes behind.
pub(super) type Last = SmallVec<[CUgraphNode; 8]>;

impl Filler<'_> {
    pub(super) fn call(&self, function: &'static str, what: &str, call: impl FnOnce() -> Status) -> Result<()> {
        self.context.call(function, &In(self.name, what), |_| call())
    }

    /// Adds a list's nodes, those of each step; what comes behind no other step comes behind `first`.
    pub(super) fn list(&self, to: CUgraph, steps: &[Step<'_>], first: &[CUgraphNode]) -> Result<(Vec<Made>, Last)> {
        let mut made: Vec<Made> = Vec::with_capacity(steps.len());
        let mut is_last = vec![true; steps.len()];
        for step in steps {
            let mut after: SmallVec<[CUgraphNode; 8]> =
                if step.after.is_empty() { first.into() } else { SmallVec::new() };
            for &before in step.after {
                let from = made.get(before);
                let from =
                    from.ok_or_else(|| Error::invalid(format!("{} comes after a later step", step.work.name())))?;
                is_last[before] = false;
                after.extend_from_slice(from.ends());
            }
            // A driver takes no edge twice.
            after.sort_unstable();
            after.dedup();
            made.push(self.step(to, &step.work, &after)?);
        }
        let last = made.iter().zip(is_last).filter(|(_, is_last)| *is_last).flat_map(|(made, _)| made.ends().iter());
        let last: Last = last.copied().collect();
        let last = if last.is_empty() { first.into() } else { last };
        Ok((made, last))
    }

    /// Adds a step's nodes.
    fn step(&self, to: CUgraph, work: &Work<'_>, after: &[CUgraphNode]) -> Result<Made> {
        let (functions, context) = (self.functions, self.context.raw());
        let mut node = std::ptr::null_mut();
        let place = &raw mut node;
        let what = work.name();
        match work {
            Work::Launch(launch) => {
                let mut made = Made::default();
                let kernel = CudaKernel::of(launch, self.context)?;
                kernel.launches(launch, self.tickets, true, &mut |piece| {
                    let before = made.nodes.last().map_or(after, std::slice::from_ref);
                    let new = match piece {
                        Piece::Grid(grid, arguments) => self.kernel(to, what, before, grid, arguments.places)?,
                        Piece::Product(prepared) => self.products.borrow_mut().add(prepared, to, before, what)?,
                    };
                    made.nodes.push(new);
                    Ok(())
                })?;
                if made.nodes.is_empty() {
                    return self.empty(to, what, after);
                }
                made.ends = 1;
                return Ok(made);
            }
            Work::Copy(transfer) => {
                let params = copy_node(transfer)?;
                // SAFETY: the driver's function with a graph and nodes of it; the host keeps its memory as long as the
                // graph may be launched.
                self.call("cuGraphAddMemcpyNode", what, || unsafe {
                    (functions.add_copy)(place, to, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
            Work::Fill(fill) if self.is_inside => return self.fill_inside(to, fill, after),
            Work::Fill(fill) => {
                let params = fill_node(fill);
                // SAFETY: as above.
                self.call("cuGraphAddMemsetNode", what, || unsafe {
                    (functions.add_fill)(place, to, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
            Work::Branch(branch) => return self.branch(to, branch, after),
            Work::Loop(again) => return self.again(to, again, after),
        }
        Ok(Made::one(node))
    }

    pub(super) fn kernel(
        &self,
        to: CUgraph,
        what: &str,
        after: &[CUgraphNode],
        grid: &Grid,
        arguments: &[*mut c_void],
    ) -> Result<CUgraphNode> {
        let (mut node, params) = (std::ptr::null_mut(), kernel_node(grid, arguments));
        // SAFETY: the driver's function with a graph and nodes of it; the arguments live during the call, which copies
        // them.
        self.call("cuGraphAddKernelNode", what, || unsafe {
            (self.functions.add_kernel)(&raw mut node, to, after.as_ptr(), after.len(), &raw const params)
        })?;
        Ok(node)
    }

    pub(super) fn empty(&self, to: CUgraph, what: &str, after: &[CUgraphNode]) -> Result<Made> {
        let mut node = std::ptr::null_mut();
        // SAFETY: as above.
        self.call("cuGraphAddEmptyNode", what, || unsafe {
            (self.functions.add_empty)(&raw mut node, to, after.as_ptr(), after.len())
        })?;
        Ok(Made::one(node))
    }

    fn control(&self) -> Result<&Control> {
        self.control.ok_or_else(crate::device::no_control_flow)
    }

    /// Adds a branch's nodes.
    pub(super) fn branch(&self, to: CUgraph, branch: &Branch<'_>, after: &[CUgraphNode]) -> Result<Made> {
        if let [list] = branch.branches {
            let (made, last) = self.list(to, list, after)?;
            let end = self.empty(to, branch.name, &last)?;
            let nodes = made.into_iter().flat_map(|made| made.nodes).chain(end.nodes).collect();
            return Ok(Made { nodes, ends: 1 });
        }
        let nodes = conditionals(branch, self.control()?.has_choices);
        if nodes.is_empty() {
            return self.empty(to, branch.name, after);
        }
        let (mut made, mut handles) = (Made::default(), SmallVec::<[u64; 4]>::new());
        for node in &nodes {
            let handle = self.handle(to, branch.name)?;
            made.nodes.push(self.set(to, branch.name, after, handle, node.set, branch.choice)?);
            handles.push(handle);
        }
        let (sets, mut lists) = (made.nodes.clone(), SmallVec::<[(usize, CUgraph); 4]>::new());
        for (node, &handle) in nodes.iter().zip(&handles) {
            let (new, bodies) = self.conditional(to, branch.name, &sets, handle, node.kind, node.bodies.len())?;
            made.nodes.push(new);
            lists.extend(node.bodies.iter().copied().zip(bodies));
        }
        // In the order of the lists.
        lists.sort_unstable_by_key(|&(list, _)| list);
        for (list, body) in lists {
            self.body(body, branch.name, branch.branches[list])?;
        }
        made.ends = nodes.len();
        Ok(made)
    }

    /// Adds a loop's nodes.
    pub(super) fn again(&self, to: CUgraph, again: &Loop<'_>, after: &[CUgraphNode]) -> Result<Made> {
        let handle = self.handle(to, again.name)?;
        let set = self.set_while(to, again, after, handle)?;
        let (node, bodies) = self.conditional(to, again.name, &[set], handle, WHILE, 1)?;
        for &body in &bodies {
            let inside = Filler { is_inside: true, ..*self };
            let (made, mut last) = inside.list(body, again.body, &[])?;
            if let Some(behind) = again.behind {
                last = behind.iter().flat_map(|&step| made[step].ends()).copied().collect();
                last.sort_unstable();
                last.dedup();
            }
            self.set_while(body, again, &last, handle)?;
        }
        Ok(Made { nodes: [set, node].as_slice().into(), ends: 1 })
    }

    fn body(&self, body: CUgraph, what: &str, steps: &[Step<'_>]) -> Result<()> {
        let inside = Filler { is_inside: true, ..*self };
        if steps.is_empty() {
            return inside.empty(body, what, &[]).map(|_| ());
        }
        inside.list(body, steps, &[]).map(|_| ())
    }

    /// A condition for one node of the graph, without a value.
    fn handle(&self, of: CUgraph, what: &str) -> Result<u64> {
        let (control, context) = (self.control()?, self.context.raw());
        let mut handle = 0;
        // SAFETY: the driver's function with a graph of this context, and a place for the answer.
        self.call("cuGraphConditionalHandleCreate", what, || unsafe {
            (control.create_handle)(&raw mut handle, of, context, 0, 0)
        })?;
        Ok(handle)
    }

    /// Adds the kernel that sets a condition.
    fn set(
        &self,
        to: CUgraph,
        what: &str,
        after: &[CUgraphNode],
        handle: u64,
        set: Set,
        from: Integer,
    ) -> Result<CUgraphNode> {
        let control = self.control()?;
        let form = from.form().ok_or_else(|| Error::internal("what a branch or loop goes by is no integer"))?;
        let (mut handle, mut address, mut form) = (handle, from.address as u64, form);
        let (mut count, mut cap, mut capped) = (0u64, 0u64, 0u64);
        let (function, [mut first, mut second]) = match set {
            Set::If { invert } => (control.set_if, [u32::from(invert), 0]),
            Set::Switch(lists) => (control.set_switch, [lists as u32, 0]),
            Set::Case(lists, case) => (control.set_case, [lists as u32, case as u32]),
            Set::While => (control.while_step, [0; 2]),
        };
        let [at_handle, at_address] = [&raw mut handle, &raw mut address].map(<*mut u64>::cast::<c_void>);
        let [at_first, at_second] = [&raw mut first, &raw mut second].map(<*mut u32>::cast::<c_void>);
        let at_form = (&raw mut form).cast::<c_void>();
        let [at_count, at_cap, at_capped] =
            [&raw mut count, &raw mut cap, &raw mut capped].map(<*mut u64>::cast::<c_void>);
        let grid = Grid { function: function.0, grid: [1; 3], block: [1; 3], shared_bytes: 0 };
        let arguments: &[*mut c_void] = match set {
            Set::If { .. } | Set::Switch(_) => &[at_handle, at_address, at_form, at_first],
            Set::Case(..) => &[at_handle, at_address, at_form, at_first, at_second],
            Set::While => &[at_handle, at_address, at_count, at_cap, at_capped, at_form],
        };
        self.kernel(to, what, after, &grid, arguments)
    }

    /// Adds the kernel that sets a loop's condition.
    fn set_while(&self, to: CUgraph, again: &Loop<'_>, after: &[CUgraphNode], handle: u64) -> Result<CUgraphNode> {
        let Comparison { relation, dtype: of, addresses: [a, b] } = match again.predicate {
            Predicate::Integer(integer) => return self.set(to, again.name, after, handle, Set::While, integer),
            Predicate::Comparison(comparison) => comparison,
        };
        let (mut handle, mut a, mut b) = (handle, a as u64, b as u64);
        let (mut integers, mut holds) = (u32::from(of == dtype::S32), relation.mask());
        let [at_handle, at_a, at_b] = [&raw mut handle, &raw mut a, &raw mut b].map(<*mut u64>::cast::<c_void>);
        let [at_integers, at_holds] = [&raw mut integers, &raw mut holds].map(<*mut u32>::cast::<c_void>);
        let each = [at_handle, at_a, at_b, at_integers, at_holds];
        let grid = Grid { function: self.control()?.while_compare.0, grid: [1; 3], block: [1; 3], shared_bytes: 0 };
        self.kernel(to, again.name, after, &grid, &each)
    }

    /// Adds a conditional node; gives its bodies, which the driver has made.
    fn conditional(
        &self,
        to: CUgraph,
        what: &str,
        after: &[CUgraphNode],
        handle: u64,
        kind: c_int,
        bodies: usize,
    ) -> Result<(CUgraphNode, SmallVec<[CUgraph; 4]>)> {
        let control = self.control()?;
        let mut params = ConditionalNode::new(handle, kind, bodies as c_uint, self.context.raw());
        let mut node = std::ptr::null_mut();
        // SAFETY: the driver's function with a graph and nodes of it; what it is told of lives during the call.
        self.call("cuGraphAddNode", what, || unsafe {
            let (after, count) = (after.as_ptr(), after.len());
            (control.add_node)(&raw mut node, to, after, std::ptr::null(), count, &raw mut params)
        })?;
        if params.bodies.is_null() {
            return Err(Error::internal(format!("{what}: the driver has made a conditional node without bodies")));
        }
        // SAFETY: the driver's array of as many graphs as were asked for, which stays as long as the node.
        let made = unsafe { std::slice::from_raw_parts(params.bodies, bodies) };
        Ok((node, made.into()))
    }

    /// Adds a kernel that fills bytes.
    pub(super) fn fill_inside(&self, to: CUgraph, fill: &Fill<'_>, after: &[CUgraphNode]) -> Result<Made> {
        if fill.bytes == 0 {
            return self.empty(to, fill.name, after);
        }
        let function = self.control()?.fill.0;
        let (mut address, mut bytes, mut value) = (fill.address as u64, fill.bytes as u64, u32::from(fill.value));
        let blocks = fill.bytes.div_ceil(THREADS * WIDE).min(MOST_BLOCKS) as u32;
        let grid = Grid { function, grid: [blocks, 1, 1], block: [THREADS as u32, 1, 1], shared_bytes: 0 };
        let each = [(&raw mut address).cast(), (&raw mut bytes).cast(), (&raw mut value).cast()];
        Ok(Made::one(self.kernel(to, fill.name, after, &grid, &each)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step<'a>() -> Step<'a> {
        Step { work: Work::Fill(Fill { name: "fill", address: 0, bytes: 1, value: 0 }), after: &[] }
    }

    #[test]
    fn a_branch_takes_the_fewest_nodes() {
        let (choice, step) = (Integer { address: 0, dtype: dtype::S32 }, [step()]);
        let (some, none): (&[Step<'_>], &[Step<'_>]) = (&step, &[]);
        let count = |branches: &[&[Step<'_>]], has_choices| {
            let branch = Branch { name: "b", choice, is_cond: branches.len() == 2, branches };
            conditionals(&branch, has_choices).iter().map(|node| (node.kind, node.bodies.len())).collect::<Vec<_>>()
        };
        for has_choices in [false, true] {
            assert_eq!(count(&[none, none], has_choices), []);
            assert_eq!(count(&[none, none, none], has_choices), []);
            assert_eq!(count(&[none, some], has_choices), [(IF, 1)]);
            assert_eq!(count(&[some, none], has_choices), [(IF, 1)]);
        }
        assert_eq!(count(&[some, some], true), [(IF, 2)]);
        assert_eq!(count(&[some, some], false), [(IF, 1), (IF, 1)]);
        assert_eq!(count(&[some, none, some], true), [(SWITCH, 3)]);
        assert_eq!(count(&[some, none, some], false), [(IF, 1), (IF, 1)]);
    }
}
