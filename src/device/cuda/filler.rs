//! Fills the driver's graph of a recording. A step is one or more nodes: a kernel's launches in order, a copy, a fill;
//! a step without launches is an empty node, so that edges through it stay. A branch or a loop is a conditional node,
//! whose bodies are filled in the same way. It needs no device runtime library: kernels of the library's own
//! (`gpu/kernels/control.ptx`) read the integer in the device's memory and set the node's condition, through a function
//! that the driver links when it loads their module.
//!
//! *A loop* is a kernel that sets the condition, and a WHILE node behind it; the same kernel is in the body again,
//! behind the steps that the recording names, or behind all. It reads an integer, or compares two numbers itself.
//!
//! *A branch* is a kernel and a node, too: IF, with else if both lists are non-empty, or SWITCH. Drivers before 12.8
//! have neither, and get an IF for each non-empty list, with a condition each. Then all conditions are set before any
//! of the nodes: a list may overwrite their operand. A branch of one list is that list.
//!
//! *Bodies* are graphs owned by the node, filled as the outer one. They contain kernels, copies, empty nodes and
//! conditional nodes, of this context: all that the driver allows, except memsets, which some drivers get wrong there;
//! a kernel fills instead. Each has at least one node.

use super::blas::RecordedProducts;
use super::context::{Context, Handle};
use super::grid::LaunchGrid;
use super::inbox::FaultTickets;
use super::kernel::CudaKernel;
use super::module::Module;
use super::node::{GraphFunctions, In, copy_node, fill_node, kernel_node};
use super::piece::CallPart;
use super::table::{CUcontext, CUfunction, CUgraph, CUgraphNode, ConditionalNode, Status};
use crate::base::{Error, Result, dtype};
use crate::device::{Comparison, Fill, Integer, Predicate, RecordedBranch, RecordedLoop, RecordedStep, RecordedWork};
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

/// The resources of conditional nodes, in a context.
#[derive(Debug)]
pub(super) struct ConditionalControl {
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

/// The rule that sets a condition.
#[derive(Clone, Copy)]
enum ConditionRule {
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
    set: ConditionRule,
    kind: c_int,
    /// The list of each body.
    bodies: SmallVec<[usize; 4]>,
}

impl Conditional {
    fn new(set: ConditionRule, kind: c_int, bodies: &[usize]) -> Conditional {
        Conditional { set, kind, bodies: bodies.into() }
    }
}

/// The nodes of a branch.
fn conditionals(branch: &RecordedBranch<'_>, has_choices: bool) -> SmallVec<[Conditional; 4]> {
    let (not, is) = (ConditionRule::If { invert: true }, ConditionRule::If { invert: false });
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
            nodes.push(Conditional { set: ConditionRule::Switch(lists.len()), kind: SWITCH, bodies });
        }
        ref lists => {
            let some = lists.iter().enumerate().filter(|(_, list)| !list.is_empty());
            nodes.extend(some.map(|(case, _)| Conditional::new(ConditionRule::Case(lists.len(), case), IF, &[case])));
        }
    }
    nodes
}

/// Fills the graph of a recording, and its nested graphs.
#[derive(Clone, Copy)]
pub(super) struct Filler<'a> {
    pub context: &'a Arc<Context>,
    pub functions: GraphFunctions,
    /// If the recording has branches or loops.
    pub control: Option<&'a ConditionalControl>,
    pub name: &'a str,
    /// Whether it fills the body of a conditional node.
    pub is_inside: bool,
    /// The recording's products, which are added in the order of its lists.
    pub products: &'a RefCell<RecordedProducts>,
    pub tickets: &'a dyn FaultTickets,
}

/// Nodes; successors depend on the last `last` of them.
#[derive(Default)]
pub(super) struct StepNodes {
    pub nodes: SmallVec<[CUgraphNode; 4]>,
    pub ends: usize,
}

impl StepNodes {
    pub(super) fn one(node: CUgraphNode) -> StepNodes {
        StepNodes { nodes: [node].as_slice().into(), ends: 1 }
    }

    pub(super) fn ends(&self) -> &[CUgraphNode] {
        &self.nodes[self.nodes.len() - self.ends..]
    }
}

/// The nodes of a list without successors in it.
pub(super) type Last = SmallVec<[CUgraphNode; 8]>;

impl Filler<'_> {
    pub(super) fn call(&self, function: &'static str, what: &str, call: impl FnOnce() -> Status) -> Result<()> {
        self.context.call(function, &In(self.name, what), |_| call())
    }

    /// Adds the nodes of a list's steps; a step without predecessors depends on `first`.
    pub(super) fn list(
        &self,
        to: CUgraph,
        steps: &[RecordedStep<'_>],
        first: &[CUgraphNode],
    ) -> Result<(Vec<StepNodes>, Last)> {
        let mut made: Vec<StepNodes> = Vec::with_capacity(steps.len());
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
    fn step(&self, to: CUgraph, work: &RecordedWork<'_>, after: &[CUgraphNode]) -> Result<StepNodes> {
        let (functions, context) = (self.functions, self.context.raw());
        let mut node = std::ptr::null_mut();
        let place = &raw mut node;
        let what = work.name();
        match work {
            RecordedWork::Launch(launch) => {
                let mut made = StepNodes::default();
                let kernel = CudaKernel::of(launch, self.context)?;
                kernel.launches(launch, self.tickets, true, &mut |piece| {
                    let before = made.nodes.last().map_or(after, std::slice::from_ref);
                    let new = match piece {
                        CallPart::Grid(grid, arguments) => self.kernel(to, what, before, grid, arguments.places)?,
                        CallPart::Product(prepared) => self.products.borrow_mut().add(prepared, to, before, what)?,
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
            RecordedWork::Copy(transfer) => {
                let params = copy_node(transfer)?;
                // SAFETY: the driver's function with a graph and nodes of it; the host keeps its memory as long as the
                // graph may be launched.
                self.call("cuGraphAddMemcpyNode", what, || unsafe {
                    (functions.add_copy)(place, to, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
            RecordedWork::Fill(fill) if self.is_inside => return self.fill_inside(to, fill, after),
            RecordedWork::Fill(fill) => {
                let params = fill_node(fill);
                // SAFETY: as above.
                self.call("cuGraphAddMemsetNode", what, || unsafe {
                    (functions.add_fill)(place, to, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
            RecordedWork::Branch(branch) => return self.branch(to, branch, after),
            RecordedWork::Loop(again) => return self.again(to, again, after),
        }
        Ok(StepNodes::one(node))
    }

    pub(super) fn kernel(
        &self,
        to: CUgraph,
        what: &str,
        after: &[CUgraphNode],
        grid: &LaunchGrid,
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

    pub(super) fn empty(&self, to: CUgraph, what: &str, after: &[CUgraphNode]) -> Result<StepNodes> {
        let mut node = std::ptr::null_mut();
        // SAFETY: as above.
        self.call("cuGraphAddEmptyNode", what, || unsafe {
            (self.functions.add_empty)(&raw mut node, to, after.as_ptr(), after.len())
        })?;
        Ok(StepNodes::one(node))
    }

    fn control(&self) -> Result<&ConditionalControl> {
        self.control.ok_or_else(crate::device::no_control_flow)
    }

    /// Adds a branch's nodes.
    pub(super) fn branch(&self, to: CUgraph, branch: &RecordedBranch<'_>, after: &[CUgraphNode]) -> Result<StepNodes> {
        if let [list] = branch.branches {
            let (made, last) = self.list(to, list, after)?;
            let end = self.empty(to, branch.name, &last)?;
            let nodes = made.into_iter().flat_map(|made| made.nodes).chain(end.nodes).collect();
            return Ok(StepNodes { nodes, ends: 1 });
        }
        let nodes = conditionals(branch, self.control()?.has_choices);
        if nodes.is_empty() {
            return self.empty(to, branch.name, after);
        }
        let (mut made, mut handles) = (StepNodes::default(), SmallVec::<[u64; 4]>::new());
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
    pub(super) fn again(&self, to: CUgraph, again: &RecordedLoop<'_>, after: &[CUgraphNode]) -> Result<StepNodes> {
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
        Ok(StepNodes { nodes: [set, node].as_slice().into(), ends: 1 })
    }

    fn body(&self, body: CUgraph, what: &str, steps: &[RecordedStep<'_>]) -> Result<()> {
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
        set: ConditionRule,
        from: Integer,
    ) -> Result<CUgraphNode> {
        let control = self.control()?;
        let form = from.form().ok_or_else(|| Error::internal("what a branch or loop goes by is no integer"))?;
        let (mut handle, mut address, mut form) = (handle, from.address as u64, form);
        let (mut count, mut cap, mut capped) = (0u64, 0u64, 0u64);
        let (function, [mut first, mut second]) = match set {
            ConditionRule::If { invert } => (control.set_if, [u32::from(invert), 0]),
            ConditionRule::Switch(lists) => (control.set_switch, [lists as u32, 0]),
            ConditionRule::Case(lists, case) => (control.set_case, [lists as u32, case as u32]),
            ConditionRule::While => (control.while_step, [0; 2]),
        };
        let [at_handle, at_address] = [&raw mut handle, &raw mut address].map(<*mut u64>::cast::<c_void>);
        let [at_first, at_second] = [&raw mut first, &raw mut second].map(<*mut u32>::cast::<c_void>);
        let at_form = (&raw mut form).cast::<c_void>();
        let [at_count, at_cap, at_capped] =
            [&raw mut count, &raw mut cap, &raw mut capped].map(<*mut u64>::cast::<c_void>);
        let grid = LaunchGrid { function: function.0, grid: [1; 3], block: [1; 3], shared_bytes: 0 };
        let arguments: &[*mut c_void] = match set {
            ConditionRule::If { .. } | ConditionRule::Switch(_) => &[at_handle, at_address, at_form, at_first],
            ConditionRule::Case(..) => &[at_handle, at_address, at_form, at_first, at_second],
            ConditionRule::While => &[at_handle, at_address, at_count, at_cap, at_capped, at_form],
        };
        self.kernel(to, what, after, &grid, arguments)
    }

    /// Adds the kernel that sets a loop's condition.
    fn set_while(
        &self,
        to: CUgraph,
        again: &RecordedLoop<'_>,
        after: &[CUgraphNode],
        handle: u64,
    ) -> Result<CUgraphNode> {
        let Comparison { relation, dtype: of, addresses: [a, b] } = match again.predicate {
            Predicate::Integer(integer) => {
                return self.set(to, again.name, after, handle, ConditionRule::While, integer);
            }
            Predicate::Comparison(comparison) => comparison,
        };
        let (mut handle, mut a, mut b) = (handle, a as u64, b as u64);
        let (mut integers, mut holds) = (u32::from(of == dtype::S32), relation.mask());
        let [at_handle, at_a, at_b] = [&raw mut handle, &raw mut a, &raw mut b].map(<*mut u64>::cast::<c_void>);
        let [at_integers, at_holds] = [&raw mut integers, &raw mut holds].map(<*mut u32>::cast::<c_void>);
        let each = [at_handle, at_a, at_b, at_integers, at_holds];
        let grid =
            LaunchGrid { function: self.control()?.while_compare.0, grid: [1; 3], block: [1; 3], shared_bytes: 0 };
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
        // SAFETY: the driver's function with a graph and nodes of it; its arguments live during the call.
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
    pub(super) fn fill_inside(&self, to: CUgraph, fill: &Fill<'_>, after: &[CUgraphNode]) -> Result<StepNodes> {
        if fill.bytes == 0 {
            return self.empty(to, fill.name, after);
        }
        let function = self.control()?.fill.0;
        let (mut address, mut bytes, mut value) = (fill.address as u64, fill.bytes as u64, u32::from(fill.value));
        let blocks = fill.bytes.div_ceil(THREADS * WIDE).min(MOST_BLOCKS) as u32;
        let grid = LaunchGrid { function, grid: [blocks, 1, 1], block: [THREADS as u32, 1, 1], shared_bytes: 0 };
        let each = [(&raw mut address).cast(), (&raw mut bytes).cast(), (&raw mut value).cast()];
        Ok(StepNodes::one(self.kernel(to, fill.name, after, &grid, &each)?))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn step<'a>() -> RecordedStep<'a> {
        RecordedStep { work: RecordedWork::Fill(Fill { name: "fill", address: 0, bytes: 1, value: 0 }), after: &[] }
    }

    #[test]
    fn a_branch_takes_the_fewest_nodes() {
        let (choice, step) = (Integer { address: 0, dtype: dtype::S32 }, [step()]);
        let (some, none): (&[RecordedStep<'_>], &[RecordedStep<'_>]) = (&step, &[]);
        let count = |branches: &[&[RecordedStep<'_>]], has_choices| {
            let branch = RecordedBranch { name: "b", choice, is_cond: branches.len() == 2, branches };
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
