//! Runs learn costs. Walks that turn out long are gone on with by several threads, wherever in the plan a node has
//! become dear; nodes of branches that no run has taken are within reach of all; and nodes that lead to a long wait for
//! work elsewhere come first.

#[path = "kit/mod.rs"]
mod kit;

use kit::integers::{Builder, Later};
use kit::run::{on, run};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current, sleep};
use std::time::Duration;
use weir_core::base::Ref;
use weir_core::graph::{CompileOptions, Program, ValueId};
use weir_core::threadpool::{ThreadPool, ThreadPoolOptions};

/// Four threads, whatever WEIR_TEST_POOL says: these tests are about several.
fn four() -> Ref<ThreadPool> {
    ThreadPool::builtin(&ThreadPoolOptions { num_threads: Some(4), ..ThreadPoolOptions::default() }).unwrap()
}

/// As many threads as were in dear nodes at once.
#[derive(Default)]
struct Crowd {
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    fn sleep(&self, time: Duration) {
        self.most.fetch_max(self.inside.fetch_add(1, Relaxed) + 1, Relaxed);
        sleep(time);
        self.inside.fetch_sub(1, Relaxed);
    }
}

/// Ops that sleep where `x` is greater than `least`.
fn sleepers(builder: &mut Builder, count: usize, x: ValueId, least: i32, crowd: &Arc<Crowd>) -> Vec<ValueId> {
    let sleeper = |_| {
        let crowd = Arc::clone(crowd);
        builder.op(&[x], move |x| {
            if x[0] > least {
                crowd.sleep(Duration::from_millis(2));
            }
            x[0]
        })
    };
    (0..count).map(sleeper).collect()
}

/// Runs that are not worth sharing by the costs of small ones.
fn compile(builder: &Builder) -> Ref<Program> {
    builder.try_compile(&CompileOptions { hop_ns: Some(200_000), ..CompileOptions::default() }).unwrap()
}

/// On a busy machine the others may come when all is done, and a cheap node may seem dear: then it is tried once more,
/// with a program that knows nothing.
const TRIES: usize = 20;

#[test]
fn a_large_batch_behind_many_small_ones_is_shared_wherever_it_is_dear() {
    let pool = four();
    for (before, dear) in [(0, 32), (40, 24), (52, 12), (120, 8)] {
        let at_once = || {
            let crowd = Arc::new(Crowd::default());
            let mut main = Builder::new("main");
            main.how.cost_ns = 0;
            let x = main.input();
            let mut all = sleepers(&mut main, before, x, i32::MAX, &crowd);
            all.extend(sleepers(&mut main, dear, x, 1, &crowd));
            let sum = main.sum(&all);
            main.output(sum);
            let program = compile(&main);
            for _ in 0..50 {
                assert_eq!(run(&program, &[1], &on(Some(&pool))).unwrap(), [(before + dear) as i32]);
            }
            assert_eq!(run(&program, &[2], &on(Some(&pool))).unwrap(), [2 * (before + dear) as i32]);
            crowd.most.load(Relaxed)
        };
        assert!((0..TRIES).any(|_| at_once() >= 3), "{before} cheap nodes before: one thread does all");
    }
}

/// Whatever the walk was in, a cond, a loop's condition or its body, the others go on with the rest of it.
#[test]
fn a_walk_is_given_away_within_conds_and_loops() {
    let pool = four();
    let calls = Arc::new((AtomicUsize::new(0), AtomicUsize::new(usize::MAX)));
    let threads = Arc::new(Mutex::new(HashSet::<ThreadId>::new()));
    let node = |builder: &mut Builder, inputs: &[ValueId], f: fn(&[i32]) -> i32| {
        let (calls, threads) = (Arc::clone(&calls), Arc::clone(&threads));
        builder.how.cost_ns = 0;
        builder.op(inputs, move |x| {
            if calls.0.fetch_add(1, Relaxed) == calls.1.load(Relaxed) {
                sleep(Duration::from_millis(3));
            }
            threads.lock().unwrap().insert(current().id());
            f(x)
        })
    };
    // while i < n: (i, a) = (i + 1, i is odd ? (a + 1) + (a + 1) * 3 : a + 2)
    let (mut odd, inputs) = Builder::of("odd", 1);
    let a = node(&mut odd, &inputs, |x| x[0].wrapping_add(1));
    let b = node(&mut odd, &[a], |x| x[0].wrapping_mul(3));
    let c = node(&mut odd, &[a, b], |x| x[0].wrapping_add(x[1]));
    let odd = odd.giving(&[c]);
    let (mut even, inputs) = Builder::of("even", 1);
    let a = node(&mut even, &inputs, |x| x[0].wrapping_add(2));
    let even = even.giving(&[a]);
    let (mut condition, inputs) = Builder::of("condition", 3);
    let n = node(&mut condition, &[inputs[2]], |x| x[0]);
    let less = node(&mut condition, &[inputs[0], n], |x| i32::from(x[0] < x[1]));
    let condition = condition.giving(&[less]);
    let (mut body, inputs) = Builder::of("body", 3);
    let is_odd = node(&mut body, &[inputs[0]], |x| x[0] & 1);
    let step = body.graph.add_cond("step", is_odd, &odd, &even, &[inputs[1]]).unwrap().output(0);
    let next = node(&mut body, &[inputs[0]], |x| x[0] + 1);
    let more = node(&mut body, &[step, inputs[2]], |x| x[0].wrapping_add(x[1] - x[1]));
    let body = body.giving(&[next, more]);

    // The branch begins before `late` is there, and so does the other one.
    let (mut then, inputs) = Builder::of("then", 3);
    let zero = node(&mut then, &[inputs[0]], |_| 0);
    let first = node(&mut then, &[inputs[0], inputs[2]], |x| x[0] + x[1]);
    let looped = then.graph.add_while("loop", &condition, &body, &[zero, first], &[inputs[1]], 1).unwrap();
    let sum = node(&mut then, &[looped.output(1), looped.output(0), first], |x| x[0] + x[1] + x[2]);
    let then = then.giving(&[sum, first]);
    let (mut otherwise, inputs) = Builder::of("otherwise", 3);
    let a = node(&mut otherwise, &[inputs[0]], |x| x[0]);
    let b = node(&mut otherwise, &[inputs[2], a], |x| x[0] - x[1]);
    let otherwise = otherwise.giving(&[b, a]);
    let (mut main, inputs) = Builder::of("main", 3);
    let late = node(&mut main, &[inputs[1]], |x| x[0] + 10);
    let late = node(&mut main, &[late], |x| x[0]);
    let other = node(&mut main, &[inputs[1]], |x| x[0]);
    let chosen = main.graph.add_cond("chosen", inputs[0], &then, &otherwise, &[inputs[1], inputs[2], late]).unwrap();
    let again = main.graph.add_cond("again", inputs[0], &otherwise, &then, &[other, inputs[2], late]).unwrap();
    let values = [chosen.output(0), chosen.output(1), again.output(0), again.output(1), other];
    let last = node(&mut main, &values, |x| x.iter().fold(0, |sum, x| sum.wrapping_mul(7).wrapping_add(*x)));
    main.output(last);
    main.output(chosen.output(0));
    let program = compile(&main);
    for inputs in [[1, 5, 6], [0, 5, 3], [1, 2, 0]] {
        let expected = run(&program, &inputs, &on(None)).unwrap();
        for _ in 0..8 {
            assert_eq!(run(&program, &inputs, &on(Some(&pool))).unwrap(), expected);
        }
        calls.0.store(0, Relaxed);
        assert_eq!(run(&program, &inputs, &on(Some(&pool))).unwrap(), expected);
        let count = calls.0.load(Relaxed);
        assert!(count > 10, "{count}");
        for dear in 0..count {
            for _ in 0..2 {
                assert_eq!(run(&program, &inputs, &on(Some(&pool))).unwrap(), expected);
            }
            calls.0.store(0, Relaxed);
            calls.1.store(dear, Relaxed);
            assert_eq!(run(&program, &inputs, &on(Some(&pool))).unwrap(), expected, "call {dear} was dear");
            assert_eq!(calls.0.load(Relaxed), count, "call {dear} was dear");
            calls.1.store(usize::MAX, Relaxed);
        }
    }
    assert!(threads.lock().unwrap().len() > 1, "no walk was given away");
}

/// A program with a cond whose one branch has dear nodes and is taken once in a while; and `beside` nodes of 2 ms.
fn rare(beside: usize, crowd: &Arc<Crowd>) -> Builder {
    let (mut then, inputs) = Builder::of("then", 1);
    then.how.cost_ns = 0;
    let all = sleepers(&mut then, 16, inputs[0], 1, crowd);
    let sum = then.sum(&all);
    let then = then.giving(&[sum]);
    let (otherwise, inputs) = Builder::of("otherwise", 1);
    let otherwise = otherwise.giving(&inputs);
    let (mut main, inputs) = Builder::of("main", 2);
    main.how.cost_ns = 0;
    let others = sleepers(&mut main, beside, inputs[1], 0, &Arc::default());
    let chosen = main.graph.add_cond("chosen", inputs[0], &then, &otherwise, &[inputs[1]]).unwrap();
    let wide: Vec<ValueId> = (0..4).map(|_| main.op(&[inputs[1]], |x| x[0])).collect();
    let mut all = vec![chosen.output(0)];
    all.extend(others.into_iter().chain(wide));
    let sum = main.sum(&all);
    main.output(sum);
    main
}

#[test]
fn a_branch_that_no_run_has_taken_is_within_reach_of_all() {
    let pool = four();
    for beside in [0, 2] {
        let is_shared = || {
            let crowd = Arc::new(Crowd::default());
            let main = rare(beside, &crowd);
            let program = if beside == 0 { compile(&main) } else { main.compile() };
            for _ in 0..20 {
                let _ = run(&program, &[0, 1], &on(Some(&pool))).unwrap();
            }
            assert_eq!(crowd.most.load(Relaxed), 0);
            (0..2).all(|_| {
                crowd.most.store(0, Relaxed);
                let _ = run(&program, &[1, 2], &on(Some(&pool))).unwrap();
                crowd.most.load(Relaxed) >= 3
            })
        };
        assert!((0..TRIES).any(|_| is_shared()), "{beside} beside: one thread does a branch");
    }
}

/// A node that computes for a moment, and then one that is done elsewhere, `wait` later.
fn sent(builder: &mut Builder, x: ValueId, number: i32, wait: Duration, begun: &Arc<Mutex<Vec<i32>>>) -> ValueId {
    let begun = Arc::clone(begun);
    let fed = builder.op(&[x], move |x| {
        begun.lock().unwrap().push(number);
        sleep(Duration::from_micros(300));
        x[0] + number
    });
    let later: Arc<Later> = Arc::new(move |_, done, result| {
        std::thread::spawn(move || {
            sleep(wait);
            done.done(result).unwrap();
        });
    });
    builder.how.later = Some(later);
    let made = builder.op(&[fed], |x| 10 * x[0]);
    builder.how.later = None;
    made
}

#[test]
fn nodes_that_feed_a_long_wait_come_first() {
    let begun = Arc::new(Mutex::new(Vec::new()));
    for longest in 0..3 {
        let (mut builder, x) = Builder::of("sent", 1);
        let waits = (0..3).map(|i| Duration::from_millis(if i == longest { 30 } else { 1 }));
        let made: Vec<ValueId> =
            waits.zip(0..).map(|(wait, number)| sent(&mut builder, x[0], number, wait, &begun)).collect();
        made.into_iter().for_each(|value| builder.output(value));
        let program = builder.compile();
        let mut first = Vec::new();
        // One thread. A run or two find out; a busy machine may measure strange times in some.
        for _ in 0..TRIES {
            begun.lock().unwrap().clear();
            assert_eq!(run(&program, &[4], &on(None)).unwrap(), [40, 50, 60]);
            first.push(begun.lock().unwrap()[0]);
            if first.ends_with(&[longest; 3]) {
                break;
            }
        }
        assert!(first.ends_with(&[longest; 3]), "{longest}: {first:?}");
    }
}

/// Half of the nodes are dear in each run, others each time: there is no way to know which, and they are shared all the
/// same.
#[test]
fn nodes_that_are_dear_in_some_runs_are_within_reach_of_all() {
    const NODES: usize = 12;
    let pool = four();
    let at_once = || {
        let crowd = Arc::new(Crowd::default());
        let mut main = Builder::new("main");
        main.how.cost_ns = 0;
        let x = main.input();
        let op = |node: usize| {
            let crowd = Arc::clone(&crowd);
            main.op(&[x], move |x| {
                // A number of the run and of the node that is odd for half of the nodes.
                if (x[0] as usize).wrapping_mul(2_654_435_761).wrapping_add(node * 40_503) >> 7 & 1 == 1 {
                    crowd.sleep(Duration::from_millis(2));
                }
                x[0]
            })
        };
        let all: Vec<ValueId> = (0..NODES).map(op).collect();
        let sum = main.sum(&all);
        main.output(sum);
        let program = main.try_compile(&CompileOptions::default()).unwrap();
        for i in 0..20 {
            assert_eq!(run(&program, &[i], &on(Some(&pool))).unwrap(), [NODES as i32 * i]);
        }
        // No run has only one thread in what is dear.
        (20..60)
            .map(|i| {
                crowd.most.store(0, Relaxed);
                assert_eq!(run(&program, &[i], &on(Some(&pool))).unwrap(), [NODES as i32 * i]);
                crowd.most.load(Relaxed)
            })
            .filter(|&most| most < 2)
            .count()
    };
    assert!((0..TRIES).any(|_| at_once() <= 4), "runs whose dear nodes had one thread");
}
