//! Cases: made before any pool exists, and run on all.

use crate::kit::pools;
use crate::rule::Rule;
use crate::values::{Values, bytes_of, copy, engine, unwritten};
use std::sync::Arc;
use weir_core::base::{Desc, Ref};
use weir_core::device::DeviceKind;
use weir_core::engine::{BoundKernel, KernelOptions, Stream, StreamAttr, Tensor};
use weir_core::kernel::Kernel;
use weir_core::threadpool::ThreadPool;

/// Multiplications, or elements, of cases that are quick in a build that is not optimised, and of those that take
/// seconds.
const QUICK: usize = 100_000;
const LARGE: usize = 1 << 31;

/// Where a case runs.
pub struct Site {
    pub name: String,
    pub pool: Option<Ref<ThreadPool>>,
    pub stream: Ref<Stream>,
}

type Run = Box<dyn Fn(&Site) -> Output>;

/// What a case gave.
pub struct Output {
    pub desc: Desc,
    pub bytes: Vec<u8>,
}

impl Output {
    pub fn of(tensor: &Tensor) -> Output {
        Output { desc: *tensor.desc(), bytes: bytes_of(tensor) }
    }
}

struct Case {
    name: String,
    run: Run,
    reference: Vec<f64>,
    rule: Rule,
}

pub struct Suite {
    cases: Vec<Case>,
    most: usize,
}

/// A kernel, and its inputs, or those behind the output of the kernel before.
pub struct Stage {
    kernel: Ref<BoundKernel>,
    inputs: Vec<Ref<Tensor>>,
}

impl Stage {
    pub fn new(kernel: impl Kernel + 'static, inputs: Vec<Values>) -> Stage {
        let kernel = BoundKernel::create(engine(), Arc::new(kernel), &KernelOptions::default()).unwrap();
        Stage { kernel, inputs: inputs.iter().map(Values::tensor).collect() }
    }
}

/// Whether the output lies where input 0 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    In,
    Out,
}

fn go(stages: &[Stage], place: Place, site: &Site) -> Output {
    let mut before: Option<Ref<Tensor>> = None;
    for Stage { kernel, inputs } in stages {
        let mut tensors: Vec<_> = before.take().into_iter().chain(inputs.iter().cloned()).collect();
        let descs: Vec<Desc> = tensors.iter().map(|tensor| *tensor.desc()).collect();
        let outputs = kernel.infer(&descs).unwrap();
        let output = match place {
            Place::In => {
                tensors[0] = copy(&tensors[0]);
                tensors[0].clone()
            }
            Place::Out => unwritten(outputs[0]),
        };
        site.stream.enqueue(kernel.clone(), tensors, vec![output.clone()]).unwrap();
        before = Some(output);
    }
    Output::of(&before.unwrap())
}

impl Suite {
    pub fn new() -> Suite {
        let most = match std::env::var("WEIR_CONFORMANCE").as_deref() {
            Ok("all") => LARGE,
            Ok("large") => usize::MAX,
            Ok(other) => panic!("WEIR_CONFORMANCE is '{other}', expected all or large"),
            Err(_) => QUICK,
        };
        Suite { cases: Vec::new(), most }
    }

    /// Whether a case of so many multiplications, or elements, is to be run.
    pub fn takes(&self, work: usize) -> bool {
        work <= self.most
    }

    pub fn add(&mut self, name: String, rule: Rule, reference: Vec<f64>, run: impl Fn(&Site) -> Output + 'static) {
        self.cases.push(Case { name, run: Box::new(run), reference, rule });
    }

    /// Kernels one after the other.
    pub fn stages(&mut self, name: String, rule: Rule, reference: Vec<f64>, place: Place, stages: Vec<Stage>) {
        self.add(name, rule, reference, move |site| go(&stages, place, site));
    }

    pub fn kernel(
        &mut self,
        name: String,
        rule: Rule,
        reference: Vec<f64>,
        kernel: impl Kernel + 'static,
        inputs: Vec<Values>,
    ) {
        self.stages(name, rule, reference, Place::Out, vec![Stage::new(kernel, inputs)]);
    }

    /// Runs all cases on all pools; fails with the first of those that are wrong.
    pub fn run(self) {
        assert!(!self.cases.is_empty());
        let sites = sites();
        let mut wrong = Vec::new();
        for case in &self.cases {
            let mut first = None;
            for site in &sites {
                let got = (case.run)(site);
                match &first {
                    None => {
                        let values = Values::of_bytes(got.desc.dtype, got.desc.shape(), &got.bytes);
                        if let Some(complaint) = case.rule.complaint(&case.reference, &values) {
                            wrong.push(format!("{}: {complaint}", case.name));
                        }
                        first = Some(got.bytes);
                    }
                    Some(first) if *first != got.bytes => {
                        wrong.push(format!("{}: other bits on {} than on {}", case.name, site.name, sites[0].name));
                    }
                    Some(_) => {}
                }
            }
        }
        let points: usize = self.cases.iter().map(|case| case.reference.len()).sum();
        println!("cases {}, points {points}, sites {}", self.cases.len(), sites.len());
        let shown = wrong.iter().take(20).map(|line| format!("{line}\n")).collect::<String>();
        assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{shown}", wrong.len(), self.cases.len());
    }
}

/// No pool, then pools of all widths, and one that cuts everywhere.
fn sites() -> Vec<Site> {
    let widths = [1, 2, 3, 7].map(|threads| (format!("{threads} threads"), Some(pools::of(threads))));
    let seeded = ("a seeded pool".to_owned(), Some(crate::kit::pools::seeded(11, 3)));
    let all = [("no pool".to_owned(), None)].into_iter().chain(widths).chain([seeded]);
    all.map(|(name, pool)| {
        let mut attr = StreamAttr::new(DeviceKind::CPU);
        attr.set_threadpool(pool.clone());
        let stream = Stream::create(engine(), attr).unwrap();
        Site { name, pool, stream }
    })
    .collect()
}
