//! Merges of values whose shape only a run knows.

use crate::build::{Builder, check, lists, tensor, write};
use weir_core::base::Code;
use weir_core::graph::ValueId;

/// A switch of a list, something on each side, and a merge.
fn diamond(builder: &mut Builder, list: ValueId, predicate: ValueId) -> (ValueId, ValueId) {
    let name = builder.name();
    let switch = builder.graph.add_switch(&format!("switch {name}"), list, predicate).unwrap();
    let twice = builder.list(&[switch.output(0)], |x| [x[0].clone(), x[0].clone()].concat());
    let merged = builder.graph.add_merge(&format!("merge {name}"), &[twice, switch.output(1)]).unwrap();
    (merged.output(0), merged.output(1))
}

#[test]
fn the_side_that_is_there_comes_out() {
    let mut main = Builder::new("main");
    let (x, p) = (main.input(&[-1]), main.input(&[1]));
    let (merged, index) = diamond(&mut main, x, p);
    let sum = main.number(&[merged], |x| x[0].iter().sum());
    let longer = main.list(&[merged, x], |x| x.concat());
    let (again, _) = diamond(&mut main, merged, index);
    for value in [merged, sum, longer, index, again, merged] {
        main.output(value);
    }
    let program = main.compile();
    for (p, x) in [(1, vec![1, 2, 3]), (0, vec![4]), (0, vec![]), (1, vec![]), (0, (0..300).collect())] {
        let merged = if p == 0 { [x.clone(), x.clone()].concat() } else { x.clone() };
        let sum = vec![merged.iter().sum()];
        let longer = [merged.clone(), x.clone()].concat();
        let again = if p == 0 { [merged.clone(), merged.clone()].concat() } else { merged.clone() };
        check(&program, &[x, vec![p]], &[merged.clone(), sum, longer, vec![p], again, merged]);
    }
}

/// Next values take their memory along: a reference to what another node writes in the next iteration would not do.
#[test]
fn variables_of_loops_are_merged() {
    let mut condition = Builder::new("condition");
    let (_, _, left) = (condition.input(&[-1]), condition.input(&[-1]), condition.input(&[1]));
    let more = condition.number(&[left], |x| i32::from(x[0][0] > 0));
    condition.output(more);
    let mut body = Builder::new("body");
    let (a, b, left) = (body.input(&[-1]), body.input(&[-1]), body.input(&[1]));
    let odd = body.number(&[left], |x| x[0][0] % 2);
    let (next, _) = diamond(&mut body, a, odd);
    let (kept, _) = diamond(&mut body, b, odd);
    let grown = body.list(&[kept, next, left], |x| [x[0].clone(), vec![x[1].len() as i32, x[2][0]]].concat());
    let fewer = body.number(&[left], |x| x[0][0] - 1);
    body.output(next);
    body.output(grown);
    body.output(fewer);
    let mut main = Builder::new("main");
    let (a, left) = (main.input(&[-1]), main.input(&[1]));
    let looped = main.graph.add_while("loop", &condition.graph, &body.graph, &[a, a, left], &[], 2).unwrap();
    main.output(looped.output(0));
    main.output(looped.output(1));
    let program = main.compile();
    for left in [0, 1, 2, 7] {
        let (mut a, mut b) = (vec![5, 6], vec![5, 6]);
        for i in (1..=left).rev() {
            let twice = |x: &Vec<i32>| if i % 2 == 0 { [x.clone(), x.clone()].concat() } else { x.clone() };
            a = twice(&a);
            b = [twice(&b), vec![a.len() as i32, i]].concat();
        }
        check(&program, &[vec![5, 6], vec![left]], &[a, b]);
    }
}

#[test]
fn a_known_shape_merges_with_an_open_one() {
    let mut main = Builder::new("main");
    let (x, p) = (main.input(&[-1]), main.input(&[1]));
    let constant = main.graph.add_constant("constant", tensor(&[7, 8, 9])).unwrap();
    let switch = main.graph.add_switch("switch", p, p).unwrap();
    let three = main.fixed(switch.output(1), 3);
    let open = main.list(&[x, switch.output(0)], |x| x[0].clone());
    let merged = main.graph.add_merge("merged", &[three, open]).unwrap();
    let two_shapes = main.graph.add_switch("constant or none", constant, p).unwrap();
    let listed = main.graph.add_merge("listed", &[two_shapes.output(1), open]).unwrap();
    let lengths = main.list(&[merged.output(0), listed.output(0)], |x| x.iter().map(|x| x.len() as i32).collect());
    for value in [merged.output(0), listed.output(0), lengths] {
        main.output(value);
    }
    let program = main.compile();
    check(&program, &[vec![4], vec![5]], &[vec![5; 3], vec![7, 8, 9], vec![3, 3]]);
    check(&program, &[vec![4, 4], vec![0]], &[vec![4, 4], vec![4, 4], vec![2, 2]]);
}

#[test]
fn merges_leave_branches_with_an_open_shape() {
    let mut then = Builder::new("then");
    let (x, p) = (then.input(&[-1]), then.input(&[1]));
    let (merged, index) = diamond(&mut then, x, p);
    then.output(merged);
    then.output(index);
    let mut otherwise = Builder::new("otherwise");
    let (x, _) = (otherwise.input(&[-1]), otherwise.input(&[1]));
    let tail = otherwise.list(&[x], |x| x[0][1..].to_vec());
    otherwise.output(tail);
    otherwise.output(x);
    let mut main = Builder::new("main");
    let (x, q, p) = (main.input(&[-1]), main.input(&[1]), main.input(&[1]));
    let chosen = main.graph.add_cond("chosen", q, &then.graph, &otherwise.graph, &[x, p]).unwrap();
    let both = main.list(&[chosen.output(0), chosen.output(1)], |x| x.concat());
    main.output(both);
    main.output(chosen.output(1));
    let program = main.compile();
    check(&program, &[vec![1, 2], vec![1], vec![0]], &[vec![1, 2, 1, 2, 0], vec![0]]);
    check(&program, &[vec![1, 2], vec![1], vec![1]], &[vec![1, 2, 1], vec![1]]);
    check(&program, &[vec![1, 2], vec![0], vec![1]], &[vec![2, 1, 2], vec![1, 2]]);
}

#[test]
fn two_lists_at_a_merge_are_an_error_that_names_both() {
    let mut main = Builder::new("main");
    let x = main.input(&[-1]);
    let one = main.node("one", &[(x, &[-1])], &[&[-1]], true, |context, mut outputs| {
        outputs.allocate(context, 0, &[1])?;
        write(outputs.only(), &[1]);
        Ok(())
    })[0];
    let merged = main.graph.add_merge("merged", &[one, x]).unwrap();
    main.output(merged.output(0));
    let error = lists(&main.compile(), &[vec![3]], None).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    let text = "node 'merged': inputs 0 and 1 are both there, from node 'one' and the graph's surroundings";
    assert!(error.message().contains(text), "{}", error.message());
    let mut main = Builder::new("main");
    let inputs = [main.input(&[1]), main.input(&[1])];
    let merged = main.graph.add_merge("merged", &inputs).unwrap();
    main.output(merged.output(0));
    let error = lists(&main.compile(), &[vec![3], vec![4]], None).unwrap_err();
    let text = "node 'merged': inputs 0 and 1 are both there, from input '";
    assert!(error.message().contains(text) && error.message().contains("' and input '"), "{}", error.message());
}
