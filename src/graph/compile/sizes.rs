//! The open dimensions of a graph's values that are the same in every run: those that kernels hand on as they are.
#![forbid(unsafe_code)]

use crate::base::Desc;
use crate::base::desc::ANY_DIM;
use crate::graph::build::contents::{Contents, NodeBody, Value};
use crate::graph::build::verify::Verified;
use std::collections::HashMap;

/// A number for each open dimension: those of one number have one size.
#[derive(Default)]
pub(super) struct OpenSizes {
    /// By node, output and dimension.
    numbers: HashMap<(usize, usize, usize), usize>,
}

impl OpenSizes {
    pub fn of(graph: &Contents, verified: &Verified) -> OpenSizes {
        let mut sizes = OpenSizes::default();
        if verified.descs.all().iter().all(Desc::is_concrete) {
            return sizes;
        }
        let mut descs = Vec::new();
        for &index in &verified.order {
            let index = index as usize;
            for (output, desc) in verified.descs[index].iter().enumerate() {
                for dim in (0..desc.shape().len()).filter(|&dim| desc.dims[dim] == ANY_DIM) {
                    let mut number = None;
                    if let NodeBody::Kernel { kernel, inputs, .. } = &graph.nodes[index].body {
                        descs.clear();
                        descs.extend(inputs.iter().map(|&value| *verified.desc(value)));
                        let mut from = kernel.kernel().dim_from(&descs, output, dim).into_iter().flatten();
                        let of = |(input, dim): (usize, usize)| {
                            let (node, output) = inputs[input];
                            sizes.numbers.get(&(node, output, dim)).copied()
                        };
                        number = from.next().and_then(of).filter(|number| from.all(|other| of(other) == Some(*number)));
                    }
                    let number = number.unwrap_or(sizes.numbers.len());
                    sizes.numbers.insert((index, output, dim), number);
                }
            }
        }
        sizes
    }

    /// Whether two values have one shape in every run.
    pub fn are_same(&self, verified: &Verified, a: Value, b: Value) -> bool {
        let [of_a, of_b] = [a, b].map(|value| verified.desc(value));
        let is_same = |dim: usize| match (of_a.dims[dim], of_b.dims[dim]) {
            (ANY_DIM, ANY_DIM) => {
                let [a, b] = [a, b].map(|(node, output)| self.numbers.get(&(node, output, dim)));
                a.is_some() && a == b
            }
            (a, b) => a == b,
        };
        of_a.rank == of_b.rank && (0..of_a.shape().len()).all(is_same)
    }
}
