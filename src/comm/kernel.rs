//! Communications in the host's memory as kernels.
//!
//! On a stream one is a kernel that completes later. In a graph it is two nodes: the first takes the inputs and begins
//! the operation, in its turn; the second completes when the operation is over. So operations of one communicator begin
//! in the order in which they were added, on every rank, and several are under way at once.
//!
//! An operation of a graph uses the values of its run where they are: the first node has the place of the result as an
//! output, which the second one hands on. So nothing is copied, but for tensors of the host's and constants. Compile
//! lays the tensors of a bucket behind one another where it can, since the transport wants them in one piece.

use super::algorithm::{self, Procedure, Wanted};
use super::communicator::Communicator;
use super::message;
use super::request::{CommNode, Request, SpareRequests};
use crate::abi::{weir_comm_op_value as Op, weir_comm_reduction_value as Reduction};
use crate::base::{Desc, Error, Ref, Result, dtype};
use crate::device::DeviceKind;
use crate::kernel::{Completion, Effect, Halves, Kernel, KernelContext, Outputs, ProgramPlace, RunListener};
use crate::memory::{View, overlaps};
use std::any::Any;
use std::sync::Arc;

/// A communication without shapes.
#[derive(Clone, Debug)]
pub struct CommSettings {
    pub op: Op,
    pub reduction: Option<Reduction>,
    pub peer: usize,
    pub tag: i32,
    /// RECV.
    pub desc: Option<Desc>,
    pub is_deterministic: bool,
    pub num_tensors: usize,
}

pub struct Communication {
    comm: Ref<Communicator>,
    settings: CommSettings,
    name: &'static str,
    /// In the memory of such a device.
    device: Option<DeviceKind>,
    /// The nodes around it in a program, "while/cond 1/".
    nest: Box<str>,
    /// Its node in a program.
    node: Option<Arc<CommNode>>,
    effects: [Effect; 1],
    /// The communicator.
    listeners: [Arc<dyn RunListener>; 1],
    spare: Arc<SpareRequests>,
}

/// The names of operations, for texts.
pub fn name_of(op: Op) -> &'static str {
    match op {
        Op::WEIR_COMM_SEND => "send",
        Op::WEIR_COMM_RECV => "recv",
        Op::WEIR_COMM_BROADCAST => "broadcast",
        Op::WEIR_COMM_REDUCE => "reduce",
        Op::WEIR_COMM_ALL_REDUCE => "all_reduce",
        Op::WEIR_COMM_ALL_GATHER => "all_gather",
        Op::WEIR_COMM_REDUCE_SCATTER => "reduce_scatter",
        Op::WEIR_COMM_ALL_TO_ALL => "all_to_all",
        Op::WEIR_COMM_BARRIER => "barrier",
    }
}

/// The same of reductions.
pub fn by(reduction: Option<Reduction>) -> &'static str {
    match reduction {
        Some(Reduction::WEIR_COMM_PRODUCT) => " of products",
        Some(Reduction::WEIR_COMM_MIN) => " of minima",
        Some(Reduction::WEIR_COMM_MAX) => " of maxima",
        _ => "",
    }
}

impl Communication {
    pub fn new(comm: Ref<Communicator>, settings: CommSettings, device: Option<DeviceKind>) -> Arc<Communication> {
        let effect = Effect {
            thing: comm.number(),
            name: format!("communicator '{}'", comm.name()).into(),
            writes: true,
            is_ordered: true,
            remedy: "add a control edge",
        };
        let name = name_of(settings.op);
        let (nest, node, spare) = ("".into(), None, Arc::default());
        let listeners = [Arc::clone(&comm) as Arc<dyn RunListener>];
        Arc::new(Communication { comm, settings, name, device, nest, node, effects: [effect], listeners, spare })
    }

    /// The same at a place in a program. It shares the requests that are not in use.
    pub fn inside(&self, place: &ProgramPlace<'_>) -> Arc<Communication> {
        Arc::new(Communication {
            comm: Ref::clone(&self.comm),
            settings: self.settings.clone(),
            nest: place.nest.into(),
            node: Some(Arc::new(CommNode { path: place.path.into(), number: place.number })),
            effects: self.effects.clone(),
            listeners: self.listeners.clone(),
            spare: Arc::clone(&self.spare),
            ..*self
        })
    }

    pub fn is_collective(&self) -> bool {
        !matches!(self.settings.op, Op::WEIR_COMM_SEND | Op::WEIR_COMM_RECV)
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    pub fn listeners(&self) -> &[Arc<dyn RunListener>] {
        &self.listeners
    }

    pub fn comm(&self) -> &Ref<Communicator> {
        &self.comm
    }

    pub fn settings(&self) -> &CommSettings {
        &self.settings
    }

    pub fn num_inputs(&self) -> usize {
        match self.settings.op {
            Op::WEIR_COMM_RECV | Op::WEIR_COMM_BARRIER => 0,
            _ => self.settings.num_tensors,
        }
    }

    pub fn num_outputs(&self) -> usize {
        match self.settings.op {
            Op::WEIR_COMM_SEND | Op::WEIR_COMM_BARRIER => 0,
            _ => self.settings.num_tensors,
        }
    }

    /// The outputs for these inputs.
    pub fn outputs(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let (op, size) = (self.settings.op, self.comm.info().size as i64);
        let (Some(first), false) = (inputs.first(), op == Op::WEIR_COMM_SEND) else {
            return Ok(self.settings.desc.into_iter().collect());
        };
        if let Some(other) = inputs.iter().position(|input| input.dtype != first.dtype) {
            let (a, b) = (dtype::name(inputs[other].dtype), dtype::name(first.dtype));
            return Err(Error::invalid(format!("input {other} is {a}, and input 0 {b}: a bucket has one type")));
        }
        let along = |dim: i64| {
            let mut dims = first.shape().to_vec();
            dims[0] = dim;
            vec![Desc::new(first.dtype, &dims)]
        };
        let needs_parts = matches!(op, Op::WEIR_COMM_REDUCE_SCATTER | Op::WEIR_COMM_ALL_TO_ALL);
        if (needs_parts || op == Op::WEIR_COMM_ALL_GATHER) && first.shape().is_empty() {
            return Err(Error::invalid(format!("input 0: {} needs a dimension", self.name)));
        }
        if needs_parts && first.shape()[0] % size != 0 {
            return Err(Error::invalid(format!(
                "input 0: dimension 0 is {}, which {size} ranks do not divide",
                first.shape()[0]
            )));
        }
        Ok(match op {
            Op::WEIR_COMM_ALL_GATHER => along(first.shape()[0].saturating_mul(size)),
            Op::WEIR_COMM_REDUCE_SCATTER => along(first.shape()[0] / size),
            _ => inputs.to_vec(),
        })
    }

    /// The operation on these inputs.
    pub fn wanted(&self, inputs: &[Desc]) -> Result<Wanted> {
        let settings = &self.settings;
        let first = inputs.first().copied().or(settings.desc).unwrap_or(Desc::new(dtype::U8, &[0]));
        let element = dtype::size(first.dtype)?;
        let (mut count, mut descs) = (0, message::hash(b""));
        for desc in inputs.iter().chain(settings.desc.iter().filter(|_| inputs.is_empty())) {
            count += desc.bytes()? / element;
            descs = message::hash_on(descs, &desc.dtype.to_le_bytes());
            descs = desc.shape().iter().fold(descs, |hash, dim| message::hash_on(hash, &dim.to_le_bytes()));
            descs = message::hash_on(descs, b"]");
        }
        let wanted = Wanted {
            op: settings.op,
            reduction: settings.reduction,
            dtype: first.dtype,
            peer: settings.peer,
            tag: settings.tag,
            count,
            is_deterministic: settings.is_deterministic,
            is_on_device: self.device.is_some(),
            nest: message::hash(self.nest.as_bytes()),
            descs,
        };
        Ok(if wanted.has_parts() { Wanted { count: count / self.comm.info().size, ..wanted } } else { wanted })
    }

    /// `all_reduce f32[1000]`, `cond 1/all_reduce f32[1000]`
    pub fn label(&self, inputs: &[Desc]) -> String {
        let of = inputs.first().copied().or(self.settings.desc).map_or(String::new(), |desc| desc.text());
        let more = if inputs.len() > 1 { format!(" and {} more", inputs.len() - 1) } else { String::new() };
        let by = by(self.settings.reduction);
        let to = match self.settings.op {
            Op::WEIR_COMM_SEND | Op::WEIR_COMM_REDUCE => format!(" to rank {}", self.settings.peer),
            Op::WEIR_COMM_RECV | Op::WEIR_COMM_BROADCAST => format!(" from rank {}", self.settings.peer),
            _ => String::new(),
        };
        let on = self.device.map_or(String::new(), |kind| format!(" on {}", kind.name()));
        let how = if self.settings.is_deterministic { "deterministic " } else { "" };
        format!("{}{how}{}{by} {of}{more}{on}{to}", self.nest, self.name).trim_end().to_owned()
    }

    /// A request for these inputs.
    pub fn request(&self, inputs: &[Desc]) -> Result<Arc<Request>> {
        let wanted = self.wanted(inputs)?;
        let request = match self.spare.take(&wanted) {
            Some(request) => request,
            None => {
                let procedure = match self.device {
                    None => algorithm::procedure(self.comm.info(), &wanted)?,
                    Some(_) => Procedure::on_device(),
                };
                Request::new(wanted, self.label(inputs), procedure, &self.spare)
            }
        };
        request.set_node(self.node.as_ref());
        Ok(request)
    }
}

fn descs(context: &KernelContext<'_>, from: usize) -> Vec<Desc> {
    context.inputs()[from..].iter().map(|view| *view.desc()).collect()
}

/// The memory of these tensors, if each begins where the one before it ends.
fn in_one_piece(views: &[View]) -> Option<View> {
    let first = views.first()?;
    let mut bytes = 0;
    for view in views {
        if view.data() != first.data().wrapping_add(bytes) {
            return None;
        }
        bytes += view.bytes();
    }
    // SAFETY: all of it is memory of these views; who has this one has them, too.
    Some(unsafe { View::new(first.data(), bytes, *first.desc()) })
}

/// On a stream.
pub struct StreamCommunication(pub Arc<Communication>);

impl Kernel for StreamCommunication {
    fn name(&self) -> &str {
        self.0.name
    }

    fn num_inputs(&self) -> usize {
        self.0.num_inputs()
    }

    fn num_outputs(&self) -> usize {
        self.0.num_outputs()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        self.0.outputs(inputs)
    }

    fn in_place(&self) -> bool {
        true
    }

    fn effects(&self) -> &[Effect] {
        &self.0.effects
    }

    fn halves(&self) -> Option<Halves> {
        Some(Halves {
            begin: Arc::new(BeginCommunication(Arc::clone(&self.0))),
            end: Arc::new(EndCommunication(Arc::clone(&self.0))),
        })
    }

    fn orders(&self) -> [Option<u64>; 2] {
        [Some(self.0.comm.number()), None]
    }

    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        self.0.listeners()
    }

    fn is_collective(&self) -> bool {
        self.0.is_collective()
    }

    fn inside(&self, place: &ProgramPlace<'_>) -> Option<Arc<dyn Kernel>> {
        Some(Arc::new(StreamCommunication(self.0.inside(place))))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(&*self.0)
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Err(Error::internal("a communication in one piece"))
    }

    fn is_async(&self) -> bool {
        true
    }

    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let inputs = (0..context.inputs().len()).map(|index| outputs.input(context, index).read_bytes());
        let request = self.0.request(&descs(context, 0))?;
        let shares_memory = || {
            let place = |view: &View| (view.data(), view.bytes());
            let shares = |input: &View| outputs.views().iter().any(|output| overlaps(place(output), place(input)));
            context.inputs().iter().any(shares)
        };
        // A transport takes no memory that it sends from and receives into.
        if self.0.comm.options().do_tensors_stay && !shares_memory() {
            let [input, output] = [in_one_piece(context.inputs()), in_one_piece(outputs.views())];
            // SAFETY: the call has its tensors until it is over, and the host has promised the rest
            // (`WEIR_COMM_TENSORS_STAY`).
            unsafe { request.fill_or_lend(inputs, [input.as_ref(), output.as_ref()], None)? };
        } else {
            request.fill(inputs)?;
        }
        self.0.comm.submit(&request, 0)?;
        if self.0.comm.attach(&request, done, context.kept_stop()) {
            Ok(())
        } else {
            done.done(request.deliver(outputs))
        }
    }
}

/// The first node of a graph's.
pub struct BeginCommunication(Arc<Communication>);

impl Kernel for BeginCommunication {
    fn name(&self) -> &str {
        self.0.name
    }

    fn num_inputs(&self) -> usize {
        self.0.num_inputs()
    }

    fn num_outputs(&self) -> usize {
        1 + self.0.num_outputs()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let mut outputs = self.0.outputs(inputs)?;
        outputs.insert(0, Desc::new(dtype::S64, &[1]));
        Ok(outputs)
    }

    fn effects(&self) -> &[Effect] {
        &self.0.effects
    }

    fn is_first_half(&self) -> bool {
        true
    }

    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        self.0.listeners()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(&*self.0)
    }

    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        let request = self.0.request(&descs(context, 0))?;
        let inputs = (0..context.inputs().len()).map(|index| context.input(index).read_bytes());
        let (values, do_tensors_stay) = (context.values(), self.0.comm.options().do_tensors_stay);
        let lent = |views: &[View]| {
            let piece = in_one_piece(views)?;
            let is_value = values.is_some_and(|values| values.holds(piece.data(), piece.bytes()));
            let is_hosts = || do_tensors_stay && views.len() == 1 && context.is_hosts(&piece);
            (is_value || is_hosts()).then_some(piece)
        };
        let [input, output] = [lent(context.inputs()), lent(&outputs.views()[1..])];
        // SAFETY: inputs and places of a first half are the operation's until the second half is over (`Halves`). If
        // the run ends before, values go to no other run, and the host has promised the rest
        // (`WEIR_COMM_TENSORS_STAY`).
        unsafe { request.fill_or_lend(inputs, [input.as_ref(), output.as_ref()], values)? };
        self.0.comm.submit(&request, context.stop().run())?;
        let ticket = self.0.comm.tickets.give(request);
        outputs.get(0).write::<i64>()[0] = ticket as i64;
        Ok(())
    }
}

/// The second node of a graph's.
pub struct EndCommunication(Arc<Communication>);

impl Kernel for EndCommunication {
    fn name(&self) -> &str {
        self.0.name
    }

    fn num_inputs(&self) -> usize {
        self.0.num_outputs() + 1 + self.0.num_inputs()
    }

    fn num_outputs(&self) -> usize {
        self.0.num_outputs()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        self.0.outputs(&inputs[self.0.num_outputs() + 1..])
    }

    fn in_place(&self) -> bool {
        true
    }

    fn takes_over(&self, output: usize) -> Option<usize> {
        Some(output)
    }

    fn is_relied_on(&self) -> bool {
        true
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Err(Error::internal("the end of a communication in one piece"))
    }

    fn is_async(&self) -> bool {
        true
    }

    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let ticket = outputs.input(context, self.0.num_outputs()).read::<i64>()[0];
        let request = usize::try_from(ticket).ok().and_then(|ticket| self.0.comm.tickets.take(ticket));
        let request = request.ok_or_else(|| Error::internal(format!("no communication has ticket {ticket}")))?;
        if self.0.comm.attach(&request, done, context.kept_stop()) {
            Ok(())
        } else {
            done.done(request.deliver(outputs))
        }
    }
}
