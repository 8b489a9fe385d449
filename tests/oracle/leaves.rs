//! The leaves of a spec as kernels and tasks of the library, and its data as tensors.

use super::ops;
use super::probe::Board;
use super::spec::{Data, Effort, Op, Type};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_core::abi::weir_dtype_value as D;
use weir_core::base::{Desc, Ref, Result, desc::ANY_DIM};
use weir_core::engine::{Engine, Tensor};
use weir_core::kernel::{Kernel, KernelContext, Outputs, Task};
use weir_core::memory::View;
use weir_core::ops::signature;
use weir_core::threadpool::Span;

pub fn desc(kind: Type) -> Desc {
    match kind {
        Type::Five => Desc::new(D::WEIR_S32 as u32, &[5]),
        Type::Six => Desc::new(D::WEIR_S32 as u32, &[2, 3]),
        Type::Bool => Desc::new(D::WEIR_BOOL as u32, &[1]),
        Type::Byte => Desc::new(D::WEIR_U8 as u32, &[]),
        Type::Small => Desc::new(D::WEIR_S8 as u32, &[1, 1]),
        Type::Int => Desc::new(D::WEIR_S32 as u32, &[1]),
        Type::List => Desc::new(D::WEIR_S32 as u32, &[ANY_DIM]),
    }
}

/// Writes one element of a view.
///
/// # Safety
/// The view is a `kind`, element `item` is in it, and nobody else uses that element meanwhile.
unsafe fn write(view: &View, kind: Type, item: usize, value: i32) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match kind {
            Type::Bool | Type::Byte | Type::Small => view.data().add(item).write(value as u8),
            Type::Five | Type::Six | Type::Int | Type::List => view.data().cast::<i32>().add(item).write(value),
        }
    }
}

/// The elements of a view that nobody writes meanwhile.
pub fn read(view: &View, kind: Type) -> Vec<i32> {
    let (is, bytes) = (view.desc(), view.desc().bytes().unwrap());
    assert!(is.is_concrete() && desc(kind).matches(is) && view.bytes() == bytes, "a {} of {bytes}", is.text());
    let item = |item: usize| {
        // SAFETY: the view is what its descriptor says, and readable.
        unsafe {
            match kind {
                Type::Bool | Type::Byte => i32::from(view.data().add(item).read()),
                Type::Small => i32::from(view.data().add(item).cast::<i8>().read()),
                Type::Five | Type::Six | Type::Int | Type::List => view.data().cast::<i32>().add(item).read(),
            }
        }
    };
    (0..is.elements().unwrap()).map(item).collect()
}

/// The same as a leaf sees it.
pub fn see(view: &View, kind: Type) -> Vec<i32> {
    Data::new(kind, &read(view, kind)).seen()
}

fn fill(tensor: &Tensor, data: &Data) {
    for (item, &value) in data.items.iter().enumerate() {
        // SAFETY: the tensor is new, or the test owns it; the descriptor is that of the data.
        unsafe { write(tensor.view(), data.kind, item, value) };
    }
}

pub fn tensor(engine: &Ref<Engine>, data: &Data) -> Ref<Tensor> {
    let desc = match data.kind {
        Type::List => Desc::new(D::WEIR_S32 as u32, &[data.items.len() as i64]),
        kind => desc(kind),
    };
    let tensor = Tensor::create(Ref::clone(engine), desc).unwrap();
    fill(&tensor, data);
    tensor
}

/// A leaf with inputs or outputs.
pub struct Leaf {
    pub id: usize,
    pub op: Op,
    pub effort: Effort,
    pub in_place: bool,
    pub cost_ns: u64,
    pub inputs: Vec<Type>,
    pub outputs: Vec<Type>,
    pub board: Arc<Board>,
}

impl Kernel for Leaf {
    fn name(&self) -> &str {
        "leaf"
    }
    fn num_inputs(&self) -> usize {
        self.inputs.len()
    }
    fn num_outputs(&self) -> usize {
        self.outputs.len()
    }
    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let expected: Vec<Desc> = self.inputs.iter().map(|&kind| desc(kind)).collect();
        signature::check("input", &expected, inputs)?;
        Ok(self.outputs.iter().map(|&kind| desc(kind)).collect())
    }
    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.cost_ns
    }
    fn in_place(&self) -> bool {
        self.in_place
    }
    fn is_open(&self) -> bool {
        self.inputs.iter().chain(&self.outputs).any(|&kind| kind == Type::List)
    }
    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        // All inputs are read before the first output is written, so that an output may lie on an input.
        let inputs: Vec<Vec<i32>> =
            context.inputs().iter().zip(&self.inputs).map(|(view, &kind)| see(view, kind)).collect();
        self.board.call(self.id, ops::sight(&inputs), || self.work(context, &mut outputs, &inputs))
    }
}

impl Leaf {
    pub fn work(&self, context: &KernelContext<'_>, outputs: &mut Outputs<'_>, inputs: &[Vec<i32>]) -> Result<()> {
        if let Effort::Spin(us) = self.effort {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(u64::from(us)) {
                std::hint::spin_loop();
            }
        }
        for (o, &kind) in self.outputs.iter().enumerate() {
            let len = ops::len(self.op, o, kind, inputs);
            if kind == Type::List {
                outputs.allocate(context, o, &[len as i64])?;
            }
            let view = &outputs.views()[o];
            let write_items = |items: std::ops::Range<usize>| {
                for item in items {
                    let value = ops::item(self.op, o, kind, item, inputs);
                    // SAFETY: this call's own output; the items of a region's claims are disjoint.
                    unsafe { write(view, kind, item, value) };
                }
            };
            if self.effort == Effort::Region {
                // Dear enough, as it says, for helpers.
                let span = Span { items: len, cost_ns: 1e4, ..Span::default() };
                context.parallel_for(&span, &|claim| {
                    write_items(claim.begin()..claim.end());
                    Ok(())
                })?;
            } else {
                write_items(0..len);
            }
        }
        Ok(())
    }
}

/// A leaf with neither.
pub struct Duty {
    pub id: usize,
    pub board: Arc<Board>,
}

impl Task for Duty {
    fn run(&self) -> Result<()> {
        self.board.call(self.id, 0, || Ok(()))
    }
}
