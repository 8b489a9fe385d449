//! How often a compile asks kernels for the shapes of their outputs: once for each node of the host's graph, whatever
//! placement and folding make of it.

use crate::checked;
use crate::kit::integers::{Builder, How};
use crate::kit::run::{cpu, fact, run};
use crate::wrapped::{Mistake, engine};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_core::base::Ref;
use weir_core::engine::Engine;
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions};

/// Graphs whose kernels count how often they are asked.
struct Counted {
    there: Ref<Engine>,
    asked: Arc<AtomicUsize>,
    /// Kernels in all graphs.
    kernels: usize,
}

impl Counted {
    fn new(there: &Ref<Engine>) -> Counted {
        Counted { there: there.clone(), asked: Arc::default(), kernels: 0 }
    }

    /// A graph with so many inputs and kernels.
    fn graph(&mut self, name: &str, inputs: usize, kernels: usize) -> (Builder, Vec<weir_core::graph::ValueId>) {
        let (mut builder, inputs) = Builder::of(name, inputs);
        builder.how = How { asked: Some(Arc::clone(&self.asked)), ..How::default() };
        self.kernels += kernels;
        (builder, inputs)
    }

    /// The first input decreased on the host, the second one's next value made on the engine or beside it.
    fn step(&mut self, name: &str, ends_there: bool) -> Graph {
        let (mut builder, x) = self.graph(name, 2, 3);
        let left = builder.op(&[x[0]], |x| x[0] - 1);
        builder.engine = self.there.clone();
        let there = builder.op(&[x[1]], |x| x[0].wrapping_mul(3));
        builder.engine = if ends_there { self.there.clone() } else { cpu() };
        let value = builder.op(&[there, x[0]], |x| x[0].wrapping_add(x[1]));
        builder.giving(&[left, value])
    }

    fn more(&mut self) -> Graph {
        let (mut builder, x) = self.graph("more", 2, 1);
        let more = builder.op(&[x[0]], |x| i32::from(x[0] > 0));
        builder.giving(&[more])
    }

    /// while (left > 0) (left, value) = step, by so many iterations at once.
    fn looped(
        &mut self,
        builder: &mut Builder,
        x: &[weir_core::graph::ValueId],
        parallel: u32,
    ) -> weir_core::graph::NodeId {
        let (more, step) = (self.more(), self.step("step", parallel == 1));
        let name = builder.name();
        builder.graph.add_while(&name, &more, &step, x, &[], parallel).unwrap()
    }

    /// A loop of a constant number of iterations, which folding writes out.
    fn written_out(&mut self, builder: &mut Builder, value: weir_core::graph::ValueId) -> weir_core::graph::ValueId {
        let pure = |how: &How| How { is_pure: true, cost_ns: 100, ..how.clone() };
        let (mut more, x) = self.graph("few", 2, 1);
        more.how = pure(&more.how);
        let left = more.op(&[x[0]], |x| i32::from(x[0] > 0));
        let (mut step, x) = self.graph("few steps", 2, 2);
        step.how = pure(&step.how);
        let less = step.op(&[x[0]], |x| x[0] - 1);
        step.engine = self.there.clone();
        step.how.is_pure = false;
        let next = step.op(&[x[1]], |x| x[0].wrapping_mul(5));
        let three = builder.constant(3);
        let (more, step) = (more.giving(&[left]), step.giving(&[less, next]));
        let name = builder.name();
        builder.graph.add_while(&name, &more, &step, &[three, value], &[], 1).unwrap().output(1)
    }

    /// Loops, one of which iterations overlap in; a choice; a loop that is written out; kernels of constants; and, if
    /// that is asked for, a switch, which keeps branches and loops from being folded.
    fn whole(&mut self, has_switch: bool) -> Builder {
        let (mut builder, x) = self.graph("whole", 3, if has_switch { 5 } else { 3 });
        let first = self.looped(&mut builder, &x[..2], 1).output(1);
        let second = self.looped(&mut builder, &[x[0], first], 4).output(1);
        let (then, otherwise) = (self.step("then", true), self.step("otherwise", true));
        let odd = builder.op(&[x[2]], |x| x[0] & 1);
        let chosen = builder.graph.add_cond("choice", odd, &then, &otherwise, &[x[0], second]).unwrap().output(1);
        let third = self.written_out(&mut builder, chosen);
        let (four, five) = (builder.constant(4), builder.constant(5));
        builder.how.is_pure = true;
        let nine = builder.sum(&[four, five]);
        builder.how.is_pure = false;
        builder.engine = self.there.clone();
        let chosen = match has_switch {
            true => {
                let switch = builder.graph.add_switch("switch", third, odd).unwrap();
                let no = builder.sum(&[switch.output(0), nine]);
                let yes = builder.sum(&[switch.output(1), x[2]]);
                builder.graph.add_merge("merge", &[no, yes]).unwrap().output(0)
            }
            false => third,
        };
        let last = builder.sum(&[chosen, nine]);
        builder.output(last);
        builder
    }
}

#[test]
fn kernels_are_asked_for_shapes_once_in_a_compile() {
    let (_, there) = engine("placed-asked", checked(1), Mistake::None, 2);
    for has_switch in [false, true] {
        let mut results = Vec::new();
        for on in [cpu(), there.clone()] {
            let mut counted = Counted::new(&on);
            let builder = counted.whole(has_switch);
            let is_host = on.is_same_device(&cpu());
            let engines = if is_host { vec![cpu()] } else { vec![cpu(), on.clone()] };
            let program = Program::compile(&builder.graph, engines, &CompileOptions::default()).unwrap();
            assert_eq!(counted.asked.load(Relaxed), counted.kernels, "on {}", on.label());
            assert!(fact(&program, "folded") > 0 && (has_switch || !is_host || fact(&program, "unrolled") > 0));
            results.push([0, 1].map(|odd| run(&program, &[5, 7, odd], &RunOptions::default()).unwrap()));
        }
        assert_eq!(results[0], results[1]);
    }
}
