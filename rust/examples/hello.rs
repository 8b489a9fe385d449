//! A graph of three nodes: the length of a vector.

use weir::{Engine, Graph, Kernel, OPEN, Result, Tensor, TensorDesc, ops};

fn main() -> Result<()> {
    let cpu = Engine::cpu()?;
    let mut graph = Graph::new("length")?;
    let x = graph.input("x", TensorDesc::of::<f32>(&[OPEN]))?;
    let squares = graph.kernel("squares", &Kernel::new(&cpu, &ops::Eltwise::new(ops::EltwiseOp::Square))?, &[x])?;
    let sum = graph.kernel("sum", &Kernel::new(&cpu, &ops::Reduce::new(ops::ReduceOp::Sum))?, &[squares[0]])?;
    let root = graph.kernel("root", &Kernel::new(&cpu, &ops::Eltwise::new(ops::EltwiseOp::Sqrt))?, &[sum[0]])?;
    graph.output("length", root[0])?;
    let program = graph.compile(&[&cpu])?;
    let length = program.run(&[&Tensor::from_slice(&cpu, &[2], &[3.0_f32, 4.0])?])?;
    println!("{}", length[0].as_slice::<f32>()?[0]);
    Ok(())
}
