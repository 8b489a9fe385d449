//! weir is a device layer for programs that already have threads. Every loop, kernel and graph runs on the pool that
//! *your* program lends: no second pool, no oversubscription, no thread that you did not ask for, no deadlock on a pool
//! of one thread. The same input gives the same bits on every pool, and each failure names its object and its cause.
//!
//! # Three programs
//!
//! Run a kernel, a closure over tensors:
//!
//! ```
//! use weir::{Engine, Kernel, Result, Stream, Tensor, TensorDesc};
//!
//! fn main() -> Result<()> {
//!     let cpu = Engine::cpu()?;
//!     let four = TensorDesc::of::<f32>(&[4]);
//!     let twice = Kernel::from_fn(&cpu, "twice", &[four], &[four], |call| {
//!         let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
//!         y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
//!         Ok(())
//!     })?;
//!     let x = Tensor::from_slice(&cpu, &[4], &[1.0_f32, 2.0, 3.0, 4.0])?;
//!     let mut y = Tensor::new(&cpu, four)?;
//!     Stream::new(&cpu)?.enqueue(&twice, &[&x], &mut [&mut y])?;
//!     assert_eq!(y.as_slice::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
//!     Ok(())
//! }
//! ```
//!
//! Run a graph, built once, compiled once, and run as often as you like:
//!
//! ```
//! use weir::{Engine, Graph, Kernel, Result, Tensor, TensorDesc, ops};
//!
//! fn main() -> Result<()> {
//!     let cpu = Engine::cpu()?;
//!     let mut graph = Graph::new("layer")?;
//!     let x = graph.input("x", TensorDesc::of::<f32>(&[1, 2]))?;
//!     let w = graph.constant("w", Tensor::from_slice(&cpu, &[2, 2], &[1.0_f32, 2.0, 3.0, -4.0])?)?;
//!     let product = graph.kernel("product", &Kernel::new(&cpu, &ops::Matmul::default())?, &[x, w])?;
//!     graph.output("y", product[0])?;
//!     let program = graph.compile(&[&cpu])?;
//!     let y = program.run(&[&Tensor::from_slice(&cpu, &[1, 2], &[1.0_f32, -2.0])?])?;
//!     assert_eq!(y[0].as_slice::<f32>()?, [-5.0, 10.0]);
//!     Ok(())
//! }
//! ```
//!
//! Lend a pool, of which two functions are enough:
//!
//! ```
//! use weir::threadpool::{Pool, Task};
//! use weir::{Engine, EngineKind, Result, ThreadPool};
//!
//! /// Stands for a pool of yours.
//! struct Mine;
//!
//! impl Pool for Mine {
//!     fn num_threads(&self) -> usize {
//!         1 // besides the caller
//!     }
//!     fn schedule(&self, task: Task) -> std::result::Result<(), Task> {
//!         std::thread::spawn(move || task.run());
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> Result<()> {
//!     let pool = ThreadPool::new(Mine)?;
//!     let cpu = Engine::builder(EngineKind::Cpu).threadpool(&pool).build()?;
//!     let mut squares = [0; 100];
//!     pool.parallel_chunks(&mut squares, 1, 0.0, |i, square| square[0] = i * i)?;
//!     assert_eq!(squares[9], 81);
//!     Ok(())
//! }
//! ```
//!
//! # The objects
//!
//! | | |
//! |---|---|
//! | [`ThreadPool`] | a pool of yours ([`threadpool::Pool`]), or one of weir's |
//! | [`Engine`], [`Domain`] | a device: memory, and the means to run kernels; whose engines these are |
//! | [`Tensor`], [`TensorDesc`] | an array in an engine's memory, which counts the queued work that uses it |
//! | [`Stream`], [`Event`] | a queue of work in order, and a point in it |
//! | [`Kernel`], [`ops`] | a function over tensors: a closure, or an operator of weir's |
//! | [`Graph`], [`Program`], [`Run`] | nodes and values, compiled once, and run by any number of threads at once |
//!
//! A value that is dropped gives up its reference. Objects keep what they need, so they may be dropped in any order; a
//! drop never blocks and never fails.
//!
//! # Blocking
//!
//! A call blocks only if its description says so. A wait works: it does what has not begun of what it waits for, and
//! sleeps only for what another thread is doing. A wait that would block a worker that the work needs is refused with
//! [`ErrorKind::FailedPrecondition`].
//!
//! # Closures
//!
//! A panic in a closure never crosses into weir. It fails the call, with [`ErrorKind::Unknown`] and the panic's text;
//! in a region ([`ThreadPool::parallel_for`]) it goes on in the caller.
//!
//! # Features
//!
//! - `cuda` (default): engines on CUDA devices. The driver is opened at run time.
//! - `allocator` (default): weir's counting allocator is the program's. When memory is short, calls of weir fail with
//!   [`ErrorKind::ResourceExhausted`] and nothing ends the program. A program with a `#[global_allocator]` of its own
//!   leaves this out.
//! - `half`: tensors of `half::f16` and `half::bf16`.
//!
//! # What it is made of
//!
//! The crate is a safe layer on weir's C interface. It calls the functions of `weir_core::ffi` with the types of
//! `weir_core::abi`, and uses nothing else of `weir_core`, whose Rust items are not stable.

mod callback;
mod element;
mod engine;
mod error;
mod event;
mod graph;
mod handle;
mod kernel;
pub mod ops;
mod program;
mod region;
mod stream;
mod tensor;
pub mod threadpool;

pub use element::{DType, Element, MAX_RANK, OPEN, TensorDesc};
pub use engine::{Domain, Engine, EngineBuilder, EngineInfo, EngineKind, Threads, sync_devices};
pub use error::{Error, ErrorKind, Result};
pub use event::Event;
pub use graph::{Graph, Node, Value, While};
pub use kernel::{Call, Kernel, KernelBuilder};
pub use program::{CompileOptions, Port, Program, Progress, Run, RunFuture, RunOptions};
pub use stream::{Stream, StreamBuilder};
pub use tensor::Tensor;
pub use threadpool::ThreadPool;

/// The guide `docs/guides/rust.md`, whose programs are tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guides/rust.md")]
struct Guide;

/// The first page, `rust/README.md`, whose program is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct FirstPage;
