//! Branches and loops of recordings, as conditional nodes of the driver's graphs. No device runtime library takes part:
//! kernels of the library's own (`kernels/control.ptx`) read the integer in the device's memory and set the node's
//! condition, through a function that the driver puts in when it loads their module.
//!
//! *A loop* is a kernel that sets the condition, and a WHILE node behind it; the same kernel is in the body again,
//! behind what the recording says, or behind all of it. It reads an integer, or compares two numbers itself.
//!
//! *A branch* is a kernel and a node, too: IF, with else where both lists do something, or SWITCH. Drivers before 12.8
//! have neither, and are given an IF for each list that does something, with a condition each. Then all conditions are
//! set before any of the nodes: a list may write what they were read from. A branch of one list is that list.
//!
//! *Bodies* are graphs of the node's own, filled as the outer one is (`graph::Filler`). They hold kernels, copies,
//! empty nodes and conditional nodes, of this context: what the driver allows, less sets of memory, which some drivers
//! do not do right there; a kernel fills instead. Each has a node at least.
//!
//! *Whether there are any* is found out once for a context, when somebody first asks: the driver must have the
//! functions, load the kernels, and instantiate a graph with a loop. That is before any graph with one is made, so a
//! module is not loaded in the middle of other things. A driver that was out of memory is asked again.

use super::context::{Context, Handle};
use super::graph::{CudaGraph, Filler, Made};
use super::images::{CONTROL_MODULE, FILL, SET_CASE, SET_IF, SET_SWITCH, WHILE_COMPARE, WHILE_STEP};
use super::module::Module;
use super::stream::Grid;
use super::table::{CUcontext, CUfunction, CUgraph, CUgraphNode, ConditionalNode, Status};
use crate::base::{Code, Error, Result, dtype};
use crate::device::{Branch, Comparison, Fill, Integer, Loop, Predicate, Recording, Step, Work};
use crate::sync::Mutex;
use smallvec::SmallVec;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// CUgraphConditionalNodeType
const IF: c_int = 0;
const WHILE: c_int = 1;
const SWITCH: c_int = 2;

/// From here on there are IF with else, and SWITCH.
const CHOICES: i32 = 12_080;

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
    create_handle: CreateHandle,
    add_node: AddNode,
    set_if: Handle<CUfunction>,
    set_case: Handle<CUfunction>,
    set_switch: Handle<CUfunction>,
    while_step: Handle<CUfunction>,
    while_compare: Handle<CUfunction>,
    fill: Handle<CUfunction>,
    has_choices: bool,
    _module: Module,
}

/// Whether a context has it: found out when somebody first asks.
#[derive(Debug)]
pub(super) struct Conditionals {
    context: Arc<Context>,
    found: Mutex<Option<Result<Arc<Control>>>>,
}

/// Whether a recording takes conditional nodes.
pub(super) fn has_control_flow(recording: &Recording<'_>) -> bool {
    recording.steps.iter().any(|step| matches!(step.work, Work::Branch(_) | Work::Loop(_)))
}

impl Conditionals {
    pub(super) fn new(context: &Arc<Context>) -> Conditionals {
        Conditionals { context: Arc::clone(context), found: Mutex::default() }
    }

    /// UNIMPLEMENTED if the driver has none; the text says why.
    pub(super) fn get(&self) -> Result<Arc<Control>> {
        let mut found = self.found.lock();
        if let Some(found) = &*found {
            return found.clone();
        }
        let new = self.find();
        if new.as_ref().err().is_none_or(|error| error.code() == Code::Unimplemented) {
            *found = Some(new.clone());
        }
        new
    }

    fn find(&self) -> Result<Arc<Control>> {
        let (context, table) = (&self.context, self.context.table());
        let driver = format!("the driver, of CUDA {},", context.driver().version_text());
        let (Some(create_handle), Some(add_node)) = (table.graph_conditional_handle_create, table.graph_add_node)
        else {
            return Err(Error::new(Code::Unimplemented, format!("{driver} has no conditional nodes")));
        };
        // What may be otherwise the next time stays what it is.
        let refuse = |does: &str, error: Error| match error.code() {
            Code::ResourceExhausted | Code::DeviceLost | Code::Unavailable => error,
            _ => Error::new(Code::Unimplemented, format!("{driver} {does}: {}", error.message())),
        };
        let loads = "does not load the kernels that set conditions";
        let module = Module::load_ptx(context, CONTROL_MODULE.ptx()?, "module 'control'");
        let module = module.map_err(|error| refuse(loads, error))?;
        let function = |name| module.function(name).map_err(|error| refuse(loads, error));
        let control = Control {
            create_handle,
            add_node,
            set_if: function(SET_IF)?,
            set_case: function(SET_CASE)?,
            set_switch: function(SET_SWITCH)?,
            while_step: function(WHILE_STEP)?,
            while_compare: function(WHILE_COMPARE)?,
            fill: function(FILL)?,
            has_choices: context.driver().version() >= CHOICES,
            _module: module,
        };
        let control = Arc::new(control);
        let predicate = Integer { address: 0, dtype: dtype::U8 }.into();
        let again = Work::Loop(Loop { name: "a loop", predicate, body: &[], behind: None });
        let recording = Recording { name: "trial", steps: &[Step { work: again, after: &[] }] };
        match CudaGraph::new(context, &recording, Some(Arc::clone(&control)), None) {
            Ok(_) => Ok(control),
            Err(error) => Err(refuse("makes no conditional nodes", error)),
        }
    }
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

impl Filler<'_> {
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
