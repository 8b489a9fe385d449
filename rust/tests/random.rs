//! Random small graphs against a plain interpreter, on every kind of pool.

mod kit;

use kit::{Random, engines, numbers};
use weir::{CompileOptions, Engine, Graph, Kernel, Node, RunOptions, Stream, Tensor, TensorDesc, Value, ops};

const LEN: usize = 5;

/// A step of a graph.
#[derive(Clone, Debug)]
enum Step {
    Add(usize, usize),
    Mul(usize, usize),
    Neg(usize),
    /// A closure: the greater of two, by element.
    Greater(usize, usize),
    /// One of two steps, by whether the first element of the first value is above 0.
    Cond(usize, Box<[Step; 2]>, [usize; 2]),
    /// So often x + x of one value.
    Double(usize, u8),
}

impl Step {
    fn random(random: &mut Random, values: usize, depth: u32) -> Step {
        let (a, b) = (random.below(values), random.below(values));
        match random.below(if depth == 0 { 4 } else { 6 }) {
            0 => Step::Add(a, b),
            1 => Step::Mul(a, b),
            2 => Step::Neg(a),
            3 => Step::Greater(a, b),
            4 => {
                let branches = [Step::random(random, 2, depth - 1), Step::random(random, 2, depth - 1)];
                Step::Cond(random.below(values), Box::new(branches), [a, b])
            }
            _ => Step::Double(a, random.below(4) as u8),
        }
    }

    /// Its value, computed here.
    fn value(&self, values: &[[f32; LEN]]) -> [f32; LEN] {
        let two = |a: usize, b: usize, f: fn(f32, f32) -> f32| std::array::from_fn(|i| f(values[a][i], values[b][i]));
        match self {
            Step::Add(a, b) => two(*a, *b, |a, b| a + b),
            Step::Mul(a, b) => two(*a, *b, |a, b| a * b),
            Step::Neg(a) => values[*a].map(|x| -x),
            Step::Greater(a, b) => two(*a, *b, |a, b| if a > b { a } else { b }),
            Step::Cond(by, branches, [a, b]) => {
                let branch = if values[*by][0] > 0.0 { &branches[0] } else { &branches[1] };
                branch.value(&[values[*a], values[*b]])
            }
            Step::Double(a, times) => (0..*times).fold(values[*a], |x, _| x.map(|x| x + x)),
        }
    }
}

/// The kernels of the steps.
struct Kernels {
    add: Kernel,
    mul: Kernel,
    neg: Kernel,
    greater: Kernel,
    is_positive: Kernel,
    less: Kernel,
}

impl Kernels {
    fn new(cpu: &Engine) -> Kernels {
        let (desc, one) = (TensorDesc::of::<f32>(&[LEN]), TensorDesc::of::<bool>(&[1]));
        let binary = |op| Kernel::new(cpu, &ops::Binary::new(op)).unwrap();
        let greater = Kernel::builder("greater").inputs(&[desc; 2]).outputs(&[desc]).pure().build(cpu, |call| {
            let (a, b) = (call.input::<f32>(0)?, call.input::<f32>(1)?);
            call.parallel_chunks(call.output::<f32>(0)?, 2, 0.0, |chunk, y| {
                for (i, y) in y.iter_mut().enumerate() {
                    let (a, b) = (a[2 * chunk + i], b[2 * chunk + i]);
                    *y = if a > b { a } else { b };
                }
            })
        });
        let is_positive = Kernel::from_fn(cpu, "is positive", &[desc], &[one], |call| {
            call.output::<bool>(0)?[0] = call.input::<f32>(0)?[0] > 0.0;
            Ok(())
        });
        Kernels {
            add: binary(ops::BinaryOp::Add),
            mul: binary(ops::BinaryOp::Mul),
            neg: Kernel::new(cpu, &ops::Eltwise::new(ops::EltwiseOp::Neg)).unwrap(),
            greater: greater.unwrap(),
            is_positive: is_positive.unwrap(),
            less: binary(ops::BinaryOp::Lt),
        }
    }

    /// Adds a step to a graph.
    fn add(&self, cpu: &Engine, graph: &mut Graph, name: &str, step: &Step, values: &[Value]) -> weir::Result<Value> {
        let desc = TensorDesc::of::<f32>(&[LEN]);
        let node: Node = match step {
            Step::Add(a, b) => graph.kernel(name, &self.add, &[values[*a], values[*b]])?,
            Step::Mul(a, b) => graph.kernel(name, &self.mul, &[values[*a], values[*b]])?,
            Step::Neg(a) => graph.kernel(name, &self.neg, &[values[*a]])?,
            Step::Greater(a, b) => graph.kernel(name, &self.greater, &[values[*a], values[*b]])?,
            Step::Cond(by, steps, [a, b]) => {
                let by = graph.kernel(&format!("{name} by"), &self.is_positive, &[values[*by]])?;
                let branch = |step: &Step| {
                    let mut branch = Graph::new(name)?;
                    let inputs = [branch.input("a", desc)?, branch.input("b", desc)?];
                    let value = self.add(cpu, &mut branch, "inside", step, &inputs)?;
                    branch.output("result", value)?;
                    Ok::<_, weir::Error>(branch)
                };
                let (then, otherwise) = (branch(&steps[0])?, branch(&steps[1])?);
                graph.cond(name, by[0], &then, &otherwise, &[values[*a], values[*b]])?
            }
            Step::Double(a, times) => {
                let number = TensorDesc::of::<f32>(&[1]);
                let mut condition = Graph::new("goes on")?;
                let (count, _) = (condition.input("count", number)?, condition.input("x", desc)?);
                let (limit, _) = (condition.input("limit", number)?, condition.input("one", number)?);
                let less = condition.kernel("less", &self.less, &[count, limit])?;
                condition.output("goes on", less[0])?;
                let mut body = Graph::new("once more")?;
                let (count, x) = (body.input("count", number)?, body.input("x", desc)?);
                let (_, one) = (body.input("limit", number)?, body.input("one", number)?);
                let next = body.kernel("next", &self.add, &[count, one])?;
                let sum = body.kernel("sum", &self.add, &[x, x])?;
                body.output("count", next[0])?;
                body.output("x", sum[0])?;
                let mut constant = |what: &str, x: f32| graph.constant(&format!("{name} {what}"), numbers(cpu, &[x]));
                let (zero, limit, one) =
                    (constant("zero", 0.0)?, constant("limit", f32::from(*times))?, constant("one", 1.0)?);
                let variables = [zero, values[*a]];
                let told = weir::While::new(&condition, &body, &variables);
                let last = graph.while_loop(name, told.invariants(&[limit, one]))?;
                return Ok(last[1]);
            }
        };
        Ok(node[0])
    }
}

#[test]
fn random_graphs_compute_what_the_interpreter_does() {
    for (pool, cpu) in engines().iter().enumerate() {
        let kernels = Kernels::new(cpu);
        let stream = Stream::asynchronous(cpu).unwrap();
        for seed in 0..40 {
            let mut random = Random::new(1 + seed);
            let inputs: Vec<[f32; LEN]> =
                (0..3).map(|_| std::array::from_fn(|_| random.below(9) as f32 - 4.0)).collect();
            let mut graph = Graph::new("random").unwrap();
            let mut values: Vec<Value> = (0..inputs.len())
                .map(|i| graph.input(&format!("input {i}"), TensorDesc::of::<f32>(&[LEN])).unwrap())
                .collect();
            let mut expected = inputs.clone();
            for i in 0..2 + random.below(12) {
                let step = Step::random(&mut random, values.len(), 2);
                values.push(kernels.add(cpu, &mut graph, &format!("node {i}"), &step, &values).unwrap());
                expected.push(step.value(&expected));
            }
            let outputs: Vec<usize> = (0..1 + random.below(3)).map(|_| random.below(values.len())).collect();
            for (i, &output) in outputs.iter().enumerate() {
                graph.output(&format!("output {i}"), values[output]).unwrap();
            }
            let options = if seed % 2 == 0 { CompileOptions::new() } else { CompileOptions::new().statistics() };
            let program = graph.compile_with(&[cpu], &options).unwrap();
            let tensors: Vec<Tensor> = inputs.iter().map(|input| numbers(cpu, input)).collect();
            let from: Vec<&Tensor> = tensors.iter().collect();
            for round in 0..3 {
                let mut results = program.run(&from).unwrap();
                if round == 1 {
                    let mut into: Vec<_> = results.iter_mut().collect();
                    program.start(&stream, &from, &mut into, &RunOptions::new()).unwrap();
                }
                for (result, &output) in results.iter().zip(&outputs) {
                    let told = || format!("pool {pool}, seed {}, round {round}, value {output}", 1 + seed);
                    assert_eq!(result.as_slice::<f32>().unwrap(), expected[output], "{}", told());
                }
            }
        }
    }
}
