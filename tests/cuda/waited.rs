//! Work that no node of the host's reads: a run ends behind it, and the fake driver's checker sees what happens if not.

use crate::kit::{fake, with_driver};
use crate::pools;
use crate::programs::{bound, cpu, floats, gpu, lend, run, set_integer, words};
use std::sync::{Arc, Mutex};
use weir_core::base::{Desc, Ref, Result, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program};
use weir_core::kernel::Task;
use weir_core::ops::{Binary, weir_binary_op_value};

const LEN: i64 = 64;

/// Two outputs, one of them of the GPU's.
fn branch(name: &str, on: &Ref<Engine>) -> Graph {
    let mut graph = Graph::new(name);
    let x = graph.add_input("x", Desc::new(dtype::F32, &[LEN])).unwrap();
    let mut node = |name: &str, engine: &Ref<Engine>| {
        let kernel = bound::<Binary>(engine, Binary::desc(weir_binary_op_value::WEIR_BINARY_ADD));
        graph.add_kernel(name, kernel, &[x, x], 1).unwrap().output(0)
    };
    let values = [("there", node("there", on)), ("here", node("here", &cpu()))];
    values.iter().for_each(|(name, value)| graph.add_output(name, *value).unwrap());
    graph
}

fn program(on: &Ref<Engine>, options: &CompileOptions) -> Ref<Program> {
    let mut graph = Graph::new("unused");
    let choice = graph.add_input("choice", Desc::new(dtype::S32, &[1])).unwrap();
    let x = graph.add_input("x", Desc::new(dtype::F32, &[LEN])).unwrap();
    let node = graph.add_cond("cond", choice, &branch("zero", on), &branch("one", on), &[x]).unwrap();
    graph.add_output("here", node.output(1)).unwrap();
    Program::compile(&graph, vec![cpu(), on.clone()], options).unwrap()
}

#[test]
fn a_branch_whose_output_on_the_gpu_nobody_reads_is_over_when_the_run_is() {
    for seed in ["1", "2", "3"] {
        with_driver(&[("SEED", seed)], || {
            let (engine, host) = (gpu(2), cpu());
            let options =
                [false, true].map(|without_segments| CompileOptions { without_segments, ..Default::default() });
            for (way, options) in options.iter().enumerate() {
                let program = program(&engine, options);
                let output = floats(&host, &[LEN], &[0.0; LEN as usize]);
                for round in 0..5 {
                    let choice = Tensor::create(host.clone(), Desc::new(dtype::S32, &[1])).unwrap();
                    set_integer(&choice, round % 2);
                    let x = floats(&host, &[LEN], &[round as f32; LEN as usize]);
                    let launches = fake::count("cuLaunchKernel");
                    run(&program, &[choice, x], std::slice::from_ref(&output));
                    assert_eq!(words(&output), [(round as f32 * 2.0).to_bits(); LEN as usize]);
                    assert!(fake::count("cuLaunchKernel") > launches, "way {way}: the branch was left out");
                    assert_eq!(fake::unwaited(), 0, "way {way}, round {round}: work that nobody has waited for");
                }
            }
        });
    }
}

/// Behind a run on a stream: runs a program, and notes in which thread.
struct Inside(Ref<Program>, Ref<Tensor>, Ref<Tensor>, Mutex<String>);

impl Task for Inside {
    fn run(&self) -> Result<()> {
        *self.3.lock().unwrap() =
            std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default().trim().to_owned();
        let choice = Tensor::create(cpu(), Desc::new(dtype::S32, &[1])).unwrap();
        set_integer(&choice, 1);
        run(&self.0, &[choice, self.1.clone()], std::slice::from_ref(&self.2));
        Ok(())
    }
}

#[test]
fn a_pool_that_refuses_leaves_nothing_to_the_thread_that_watches_the_gpu() {
    with_driver(&[("DELAY", "1:3000,2:3000,3:3000,4:3000,5:3000")], || {
        let (engine, host) = (gpu(1), cpu());
        let program = program(&engine, &CompileOptions::default());
        let mut attr = StreamAttr::new(DeviceKind::CPU);
        attr.asynchronous = true;
        attr.set_threadpool(Some(pools::host(1, |_| false)));
        let stream = Stream::create(host.clone(), attr).unwrap();
        for round in 0..3 {
            let choice = Tensor::create(host.clone(), Desc::new(dtype::S32, &[1])).unwrap();
            set_integer(&choice, 0);
            let inputs = [choice, floats(&host, &[LEN], &[2.0; LEN as usize])];
            let outputs = [(); 2].map(|()| floats(&host, &[LEN], &[0.0; LEN as usize]));
            let inside = Arc::new(Inside(program.clone(), inputs[1].clone(), outputs[1].clone(), Mutex::default()));
            let (get_in, get_out) = (|i: usize| Ok(lend(&inputs[i])), |i: usize| Ok(lend(&outputs[i])));
            Program::bind(&program, (2, &get_in), (1, &get_out)).unwrap().run(Some(&stream), None).unwrap();
            stream.enqueue_task(inside.clone()).unwrap();
            stream.synchronize(60_000_000_000).unwrap();
            let name = inside.3.lock().unwrap().clone();
            assert!(!name.contains("watch"), "round {round}: the task was run by '{name}'");
            assert!(outputs.iter().all(|output| words(output) == [4f32.to_bits(); LEN as usize]), "round {round}");
        }
    });
}
