//! Values whose shape only a run knows: through kernels, conds, loops and programs in programs, on pools, and what is
//! refused.

mod build;
mod builtin;
#[path = "../kit/mod.rs"]
mod kit;
mod merges;
mod random;
mod sizes;

use build::{Builder, all_pools, check, cpu, ints, lists, open, read, run, tensor, write};
use weir_core::base::{Code, Error, Ref, Result};
use weir_core::engine::Tensor;
use weir_core::graph::{CompileOptions, Program};
use weir_core::kernel::{KernelContext, Outputs};

fn even(list: &[i32]) -> Vec<i32> {
    list.iter().copied().filter(|x| x % 2 == 0).collect()
}

#[test]
fn sizes_flow_from_kernel_to_kernel_and_out() {
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    let filtered = main.list(&[x], |x| even(&x[0]));
    let doubled = main.list(&[filtered], |x| x[0].iter().flat_map(|&v| [v, -v]).collect());
    let both = main.list(&[filtered, doubled, x], |x| x.concat());
    let sum = main.number(&[both], |x| x[0].iter().sum());
    main.output(filtered);
    main.output(both);
    main.output(sum);
    main.output(filtered);
    main.output(x);
    let program = main.compile();
    for n in [5, 0, 1, 40, 7, 300, 2] {
        let x: Vec<i32> = (0..n).map(|i| i * 7 % 11).collect();
        let filtered = even(&x);
        let doubled: Vec<i32> = filtered.iter().flat_map(|&v| [v, -v]).collect();
        let both = [filtered.clone(), doubled, x.clone()].concat();
        let sum = vec![both.iter().sum()];
        check(&program, std::slice::from_ref(&x), &[filtered.clone(), both, sum, filtered, x.clone()]);
    }
}

#[test]
fn a_variable_grows_by_a_row_in_each_iteration() {
    let mut condition = Builder::new("condition");
    let (list, count, limit) = (condition.input(&[-1]), condition.input(&[1]), condition.input(&[1]));
    let less = condition.number(&[list, count, limit], |x| i32::from((x[0].len() as i32) < x[2][0]));
    condition.output(less);
    let mut body = Builder::new("body");
    let (list, count, _limit) = (body.input(&[-1]), body.input(&[1]), body.input(&[1]));
    let longer = body.list(&[list, count], |x| [x[0].clone(), vec![x[1][0] * 10]].concat());
    let more = body.number(&[count], |x| x[0][0] + 1);
    body.output(longer);
    body.output(more);
    let mut main = Builder::new("main");
    let (first, zero, limit) = (main.input(&[2]), main.input(&[1]), main.input(&[1]));
    let looped = main.graph.add_while("grow", &condition.graph, &body.graph, &[first, zero], &[limit], 1).unwrap();
    main.output(looped.output(0));
    main.output(looped.output(1));
    main.output(looped.output(0));
    let program = main.compile();
    for limit in [5, 2, 0, 30, 3] {
        let steps = (limit - 2).max(0);
        let mut list = vec![-1, -2];
        list.extend((0..steps).map(|i| i * 10));
        check(&program, &[vec![-1, -2], vec![0], vec![limit]], &[list.clone(), vec![steps], list]);
    }
}

#[test]
fn nobody_says_that_a_variable_of_a_loop_by_its_edges_grows() {
    let mut main = Builder::new("main");
    let (first, zero, limit) = (main.input(&[2]), main.input(&[1]), main.input(&[1]));
    let enter = |main: &mut Builder, name: &str, value, is_constant| {
        main.graph.add_enter(name, value, "grow", is_constant, 2).unwrap().output(0)
    };
    let limit = enter(&mut main, "limit", limit, true);
    let (first, zero) = (enter(&mut main, "first", first, false), enter(&mut main, "zero", zero, false));
    let lists = main.graph.add_loop_merge("list", first).unwrap();
    let counts = main.graph.add_loop_merge("count", zero).unwrap();
    let less = main.number(&[lists.output(0), limit], |x| i32::from((x[0].len() as i32) < x[1][0]));
    let goes_on = main.graph.add_loop_cond("goes on", less).unwrap().output(0);
    let list = main.graph.add_switch("list/switch", lists.output(0), goes_on).unwrap();
    let count = main.graph.add_switch("count/switch", counts.output(0), goes_on).unwrap();
    let longer = main.list(&[list.output(1), count.output(1)], |x| [x[0].clone(), vec![x[1][0] * 10]].concat());
    let more = main.number(&[count.output(1)], |x| x[0][0] + 1);
    for (merge, name, value) in [(lists, "list/next", longer), (counts, "count/next", more)] {
        let next = main.graph.add_next_iteration(name, value).unwrap().output(0);
        main.graph.set_back_edge(merge, next).unwrap();
    }
    for (name, switch) in [("list/exit", list), ("count/exit", count)] {
        let exit = main.graph.add_exit(name, switch.output(0)).unwrap();
        main.output(exit.output(0));
    }
    let program = main.compile();
    for limit in [5, 2, 0, 30, 3] {
        let steps = (limit - 2).max(0);
        let mut list = vec![-1, -2];
        list.extend((0..steps).map(|i| i * 10));
        check(&program, &[vec![-1, -2], vec![0], vec![limit]], &[list, vec![steps]]);
    }
}

#[test]
fn variables_that_change_places_and_loops_in_loops() {
    // The inner loop doubles a list until it is long enough; the outer one swaps two lists.
    let mut inner_condition = Builder::new("inner condition");
    let (list, limit) = (inner_condition.input(&[-1]), inner_condition.input(&[1]));
    let less = inner_condition.number(&[list, limit], |x| i32::from((x[0].len() as i32) < x[1][0]));
    inner_condition.output(less);
    let mut inner_body = Builder::new("inner body");
    let (list, _) = (inner_body.input(&[-1]), inner_body.input(&[1]));
    let twice = inner_body.list(&[list], |x| [x[0].clone(), x[0].clone(), vec![7]].concat());
    inner_body.output(twice);
    let names = ["a", "b", "i"];
    let mut condition = Builder::new("condition");
    let inputs: Vec<_> = names.iter().map(|n| condition.input(if *n == "i" { &[1] } else { &[-1] })).collect();
    let goes_on = condition.number(&[inputs[2]], |x| i32::from(x[0][0] > 0));
    condition.output(goes_on);
    let mut body = Builder::new("body");
    let (a, b, i) = (body.input(&[-1]), body.input(&[-1]), body.input(&[1]));
    let limit = body.number(&[a], |x| x[0].len() as i32 + 1);
    let grown =
        body.graph.add_while("double", &inner_condition.graph, &inner_body.graph, &[a], &[limit], 1).unwrap().output(0);
    let fewer = body.number(&[i], |x| x[0][0] - 1);
    body.output(b);
    body.output(grown);
    body.output(fewer);
    let mut main = Builder::new("main");
    let (a, b, i) = (main.input(&[-1]), main.input(&[-1]), main.input(&[1]));
    let looped = main.graph.add_while("outer", &condition.graph, &body.graph, &[a, b, i], &[], 1).unwrap();
    main.output(looped.output(0));
    main.output(looped.output(1));
    let program = main.compile();
    for n in [0, 1, 2, 5] {
        let (mut a, mut b) = (vec![1, 2], Vec::new());
        for _ in 0..n {
            let mut grown = a.clone();
            while grown.len() < a.len() + 1 {
                grown = [grown.clone(), grown.clone(), vec![7]].concat();
            }
            (a, b) = (b, grown);
        }
        check(&program, &[vec![1, 2], vec![], vec![n]], &[a, b]);
    }
}

#[test]
fn branches_leave_different_row_counts() {
    let mut then = Builder::new("then");
    let (x, n) = (then.input(&[-1]), then.input(&[1]));
    let y = then.list(&[x], |x| [x[0].clone(), x[0].clone()].concat());
    let three = then.fixed(n, 3);
    then.output(y);
    then.output(three);
    then.output(three);
    let mut otherwise = Builder::new("otherwise");
    let (x, n) = (otherwise.input(&[-1]), otherwise.input(&[1]));
    let none = otherwise.list(&[n], |_| Vec::new());
    otherwise.output(x);
    otherwise.output(none);
    otherwise.output(x);
    let mut main = Builder::new("main");
    let (p, x) = (main.input(&[1]), main.input(&[-1]));
    let chosen = main.graph.add_cond("chosen", p, &then.graph, &otherwise.graph, &[x, p]).unwrap();
    let both = main.list(&[chosen.output(0), chosen.output(1)], |x| x.concat());
    main.output(chosen.output(0));
    main.output(chosen.output(1));
    main.output(both);
    main.output(chosen.output(2));
    let program = main.compile();
    check(&program, &[vec![1], vec![4, 5]], &[vec![4, 5, 4, 5], vec![1; 3], vec![4, 5, 4, 5, 1, 1, 1], vec![1; 3]]);
    check(&program, &[vec![0], vec![4, 5]], &[vec![4, 5], vec![], vec![4, 5], vec![4, 5]]);
    check(&program, &[vec![1], vec![]], &[vec![], vec![1; 3], vec![1; 3], vec![1; 3]]);
}

#[test]
fn a_loop_of_a_fixed_shape_inside_of_a_branch_of_an_open_one() {
    let mut condition = Builder::new("condition");
    let x = condition.input(&[3]);
    let less = condition.number(&[x], |x| i32::from(x[0][0] < 50));
    condition.output(less);
    let mut body = Builder::new("body");
    let x = body.input(&[3]);
    let y = body.node("add", &[(x, &[3])], &[&[3]], false, |context, outputs| {
        let sum: Vec<i32> = context.input(0).read::<i32>().iter().map(|v| v + 10).collect();
        write(outputs.only(), &sum);
        Ok(())
    })[0];
    body.output(y);
    let mut then = Builder::new("then");
    let (n, _) = (then.input(&[1]), then.input(&[-1]));
    let three = then.fixed(n, 3);
    let looped = then.graph.add_while("loop", &condition.graph, &body.graph, &[three], &[], 1).unwrap();
    then.output(looped.output(0));
    let mut otherwise = Builder::new("otherwise");
    let (_, x) = (otherwise.input(&[1]), otherwise.input(&[-1]));
    otherwise.output(x);
    let mut main = Builder::new("main");
    let (p, x) = (main.input(&[1]), main.input(&[-1]));
    let chosen = main.graph.add_cond("chosen", p, &then.graph, &otherwise.graph, &[p, x]).unwrap();
    main.output(chosen.output(0));
    let program = main.compile();
    check(&program, &[vec![5], vec![1]], &[vec![55; 3]]);
    check(&program, &[vec![0], vec![1, 2, 3, 4]], &[vec![1, 2, 3, 4]]);
}

#[test]
fn a_program_of_open_shapes_is_a_node() {
    let mut inner = Builder::new("inner");
    let (x, n) = (inner.input(&[-1]), inner.input(&[1]));
    let y = inner.list(&[x, n], |x| x[0].iter().map(|v| v * x[1][0]).filter(|v| v % 3 != 0).collect());
    let sum = inner.number(&[y], |x| x[0].iter().sum());
    inner.output(y);
    inner.output(sum);
    let inner = inner.compile();
    let mut main = Builder::new("main");
    let (x, n) = (main.input(&[-1]), main.input(&[1]));
    let first = main.graph.add_program("first", &inner, &[x, n], 2).unwrap();
    let second = main.graph.add_program("second", &inner, &[first.output(0), n], 2).unwrap();
    main.output(second.output(0));
    main.output(second.output(1));
    let program = main.compile();
    for count in [0, 4, 9, 2] {
        let x: Vec<i32> = (0..count).collect();
        let once = |x: &[i32]| -> Vec<i32> { x.iter().map(|v| v * 2).filter(|v| v % 3 != 0).collect() };
        let list = once(&once(&x));
        let sum = vec![list.iter().sum()];
        check(&program, &[x, vec![2]], &[list, sum]);
    }
}

#[test]
fn what_a_kernel_says_is_checked() {
    let attempt = |dims: &[i64], f: fn(&KernelContext<'_>, Outputs<'_>) -> Result<()>| {
        let mut main = Builder::new("main");
        let x = main.input(&[1]);
        let y = main.node("maker", &[(x, &[1])], &[dims, &[1]], true, f);
        main.output(y[0]);
        let program = main.compile();
        let failed =
            run(&program, &[tensor(&[1])], &[Tensor::create_open(cpu(), ints(dims)).unwrap()], None).unwrap_err();
        (failed.code(), failed.message().to_owned())
    };
    let (code, text) = attempt(&[-1], |_, _| Ok(()));
    assert_eq!(code, Code::FailedPrecondition);
    assert_eq!(
        text,
        "node 'maker': output 0, s32[?], was not allocated by the kernel (weir_kernel_context_allocate_output)"
    );
    let (code, text) = attempt(&[-1, 4], |context, mut outputs| outputs.allocate(context, 0, &[2, 5]).map(drop));
    assert_eq!(code, Code::InvalidArgument);
    assert!(text.ends_with("output 0: expected s32[?,4], got s32[2,5]"), "{text}");
    let (_, text) = attempt(&[-1], |context, mut outputs| outputs.allocate(context, 0, &[-3]).map(drop));
    assert!(text.contains("output 0: dims[0] is -3"), "{text}");
    let (code, text) = attempt(&[-1], |context, mut outputs| outputs.allocate(context, 2, &[1]).map(drop));
    assert_eq!((code, text.ends_with("index is 2, the call has 2 outputs")), (Code::OutOfRange, true), "{text}");
    let (code, text) = attempt(&[-1], |context, mut outputs| outputs.allocate(context, 1, &[1]).map(drop));
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains("output 1 is s32[1], has its memory"), "{text}");
    let (code, text) = attempt(&[-1], |context, mut outputs| {
        outputs.allocate(context, 0, &[1])?;
        outputs.allocate(context, 0, &[1]).map(drop)
    });
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains("node 'maker': output 0 was allocated before in this call"), "{text}");
    let (code, text) = attempt(&[-1], |context, mut outputs| outputs.allocate(context, 0, &[1 << 61]).map(drop));
    assert_eq!(code, Code::OutOfRange);
    assert!(text.contains("s32[2305843009213693952]"), "{text}");
    let (code, text) = attempt(&[-1], |context, mut outputs| outputs.allocate(context, 0, &[1 << 50]).map(drop));
    assert_eq!(code, Code::ResourceExhausted);
    assert!(text.contains("output 0 of node 'maker', s32[1125899906842624]"), "{text}");
}

#[test]
fn an_output_that_nobody_uses_may_be_left_out() {
    let mut main = Builder::new("main");
    let x = main.input(&[1]);
    let y = main.node("maker", &[(x, &[1])], &[&[-1], &[-1]], true, |context, mut outputs| {
        outputs.allocate(context, 1, &[0]).map(drop)
    });
    main.output(y[1]);
    check(&main.compile(), &[vec![1]], &[vec![]]);
}

#[test]
fn compile_refuses_what_does_not_fit() {
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    main.node("fixed", &[(x, &[-1])], &[&[1]], false, |_, _| Ok(()));
    let y = main.node("four", &[(x, &[4])], &[&[1]], true, |_, _| Ok(()));
    main.output(y[0]);
    assert_eq!(
        main.refusal().message(),
        "node 'fixed' input 0: expected a shape without open dimensions, as kernel 'op' does not say WEIR_KERNEL_DYNAMIC, got s32[?]"
    );
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    let y = main.node("four", &[(x, &[4])], &[&[1]], true, |_, _| Ok(()));
    main.output(y[0]);
    assert_eq!(main.refusal().message(), "node 'four' input 0: expected s32[4], got s32[?]");
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    let pair = main.input(&[2, -1]);
    let merged = main.graph.add_merge("merged", &[x, pair]).unwrap();
    main.output(merged.output(0));
    assert_eq!(main.refusal().message(), "node 'merged' input 1: expected s32[?], got s32[2,?]");
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    let branch = Builder::new("branch");
    main.graph.add_cond("cond", x, &branch.graph, &branch.graph, &[]).unwrap();
    assert!(main.refusal().message().contains("got s32[?]"));
    let mut body = Builder::new("body");
    let x = body.input(&[2]);
    let longer = body.list(&[x], |x| x[0].clone());
    body.output(longer);
    let mut condition = Builder::new("condition");
    let x = condition.input(&[2]);
    let one = condition.number(&[x], |_| 0);
    condition.output(one);
    let mut main = Builder::new("main");
    let x = main.input(&[2]);
    let looped = main.graph.add_while("loop", &condition.graph, &body.graph, &[x], &[], 1).unwrap();
    main.output(looped.output(0));
    assert_eq!(main.refusal().message(), "node 'loop' graph 'body' output 0: expected s32[2], got s32[?]");
}

#[test]
fn tensors_are_checked_when_bound_and_when_written() {
    let mut main = Builder::new("main");
    let x = main.input(&[-1, 2]);
    let y = main.node("copy", &[(x, &[-1, 2])], &[&[-1, 2], &[1]], true, |context, mut outputs| {
        let input = context.input(0);
        outputs.allocate(context, 0, input.desc().shape())?;
        outputs.get(0).copy_from(input);
        Ok(())
    });
    main.output(y[0]);
    main.output(y[1]);
    let program = main.compile();
    let pairs = |rows: i64| Tensor::create(cpu(), ints(&[rows, 2])).unwrap();
    let one = || tensor(&[0]);
    let fails = |input: Ref<Tensor>, outputs: [Ref<Tensor>; 2]| {
        let error = run(&program, &[input], &outputs, None).unwrap_err();
        (error.code(), error.message().to_owned())
    };
    let open = |dims: &[i64]| Tensor::create_open(cpu(), ints(dims)).unwrap();
    let (_, text) = fails(tensor(&[1, 2]), [open(&[-1, 2]), one()]);
    assert_eq!(text, "input 0 'n1': expected s32[?,2], got s32[2]");
    let (_, text) = fails(pairs(3), [open(&[-1, 3]), one()]);
    assert!(text.contains("expected s32[?,2], got s32[?,3]"), "{text}");
    let (_, text) = fails(pairs(3), [open(&[-1, 2]), open(&[-1])]);
    assert!(text.contains("expected s32[1] in a tensor of a fixed shape, got a dynamic tensor"), "{text}");
    // A tensor of a fixed shape takes that shape and no other.
    let (code, text) = fails(pairs(3), [pairs(2), one()]);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.ends_with("the tensor is s32[2,2], and the run made s32[3,2]"), "{text}");
    run(&program, &[pairs(2)], &[pairs(2), one()], None).unwrap();
    // What one run made is another's input; and the same tensor can be both.
    let (list, other) = (open(&[-1, -1]), open(&[-1, 2]));
    run(&program, &[pairs(5)], &[list.clone(), one()], None).unwrap();
    assert_eq!(list.desc().text(), "s32[5,2]");
    run(&program, std::slice::from_ref(&list), &[other.clone(), one()], None).unwrap();
    assert_eq!(other.desc().text(), "s32[5,2]");
    run(&program, std::slice::from_ref(&list), &[list.clone(), one()], None).unwrap();
    assert_eq!(list.desc().text(), "s32[5,2]");
    // The host's memory has room for so much. Nothing is written if it has not.
    let mut memory = vec![-1i32; 8];
    let data = memory.as_mut_ptr().cast();
    // SAFETY: the list outlives the tensor.
    let small = unsafe { Tensor::create_open_from(cpu(), ints(&[-1, 2]), data, 32, Box::new(())) }.unwrap();
    run(&program, &[pairs(3)], &[small.clone(), one()], None).unwrap();
    assert_eq!((small.desc().text(), small.view().data()), ("s32[3,2]".to_owned(), data));
    let (code, text) = fails(pairs(5), [small.clone(), one()]);
    assert_eq!(code, Code::OutOfRange);
    assert!(text.contains("s32[5,2] needs 40 bytes, and the tensor's memory has 32"), "{text}");
    assert_eq!(small.desc().text(), "s32[3,2]");
    drop(small);
    assert_eq!(memory, [0, 0, 0, 0, 0, 0, -1, -1]);
}

#[test]
fn a_failure_leaves_outputs_and_program_as_they_were() {
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    let y = main.list(&[x], |x| [x[0].clone(), vec![1]].concat());
    let z = main.node("picky", &[(y, &[-1])], &[&[-1]], true, |context, mut outputs| {
        let list = context.input(0).read::<i32>().to_vec();
        assert!(list[0] != 13, "thirteen");
        if list[0] == 12 {
            return Err(Error::invalid("a dozen"));
        }
        outputs.allocate(context, 0, &[1])?;
        write(outputs.only(), &list[..1]);
        Ok(())
    })[0];
    main.output(y);
    main.output(z);
    let program = main.compile();
    for pool in all_pools() {
        let (first, second) = (open(), open());
        let go = |x: &[i32]| run(&program, &[tensor(x)], &[first.clone(), second.clone()], pool.as_ref());
        go(&[5, 6]).unwrap();
        for bad in [12, 13] {
            assert!(go(&[bad, 2, 3, 4]).unwrap_err().message().contains("node 'picky'"));
            assert_eq!((read(&first), read(&second)), (vec![5, 6, 1], vec![5]));
        }
        go(&[8]).unwrap();
        assert_eq!((read(&first), read(&second)), (vec![8, 1], vec![8]));
        let twice = run(&program, &[tensor(&[8])], &[first.clone(), first.clone()], pool.as_ref()).unwrap_err();
        assert!(twice.message().contains("output 1 shares memory with output 0"), "{}", twice.message());
    }
}

#[test]
fn runs_at_once_have_their_own_shapes() {
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    let mut value = x;
    for _ in 0..6 {
        value = main.list(&[value, x], |x| [x[0].clone(), x[1].clone()].concat());
    }
    main.output(value);
    let program = main.compile();
    let pool = kit::pools::of(3);
    std::thread::scope(|scope| {
        for thread in 0..6i32 {
            let (program, pool) = (&program, &pool);
            scope.spawn(move || {
                for round in 0..40 {
                    let x = vec![thread; ((round * 7 + thread) % 50) as usize];
                    let got = lists(program, std::slice::from_ref(&x), Some(pool)).unwrap();
                    assert_eq!(got, [x.repeat(7)]);
                }
            });
        }
    });
    program.trim();
    assert_eq!(lists(&program, &[vec![3]], None).unwrap(), [vec![3; 7]]);
}

#[test]
fn an_output_that_is_absent_is_left_alone() {
    let mut main = Builder::new("main");
    let (x, p) = (main.input(&[-1]), main.input(&[1]));
    let switch = main.graph.add_switch("switch", x, p).unwrap();
    for side in 0..2 {
        let longer = main.list(&[switch.output(side)], |x| [x[0].clone(), vec![9]].concat());
        main.output(longer);
    }
    let options = CompileOptions { allow_absent: true, ..CompileOptions::default() };
    let program: Ref<Program> = Program::compile(&main.graph, vec![main.engine.clone()], &options).unwrap();
    for pool in all_pools() {
        let (off, on) = (open(), open());
        for (p, x) in [(1, vec![1, 2]), (0, vec![3]), (1, vec![])] {
            let before = [read(&off), read(&on)];
            run(&program, &[tensor(&x), tensor(&[p])], &[off.clone(), on.clone()], pool.as_ref()).unwrap();
            let longer = [x, vec![9]].concat();
            let expected = if p == 0 { [longer, before[1].clone()] } else { [before[0].clone(), longer] };
            assert_eq!([read(&off), read(&on)], expected);
        }
    }
}
