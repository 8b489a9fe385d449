//! loom models of the protocols: `RUSTFLAGS="--cfg loom" cargo test --release --lib models`.

use super::atomic::{AtomicU32, Ordering::*};
use super::{Entry, Exit, Tokens, Turn};
use loom::sync::Arc;
use loom::thread;

/// A producer pushes while the holder releases: the item is always drained by somebody.
#[test]
fn models_turn_push_against_release() {
    loom::model(|| {
        let turn = Arc::new(Turn::new(()));
        let queue = Arc::new(AtomicU32::new(0));
        let drain = |turn: &Turn<()>, queue: &AtomicU32| {
            while let Some(guard) = turn.hold() {
                queue.swap(0, SeqCst);
                drop(guard);
                if queue.load(SeqCst) == 0 {
                    break;
                }
            }
        };
        let producer = {
            let (turn, queue) = (Arc::clone(&turn), Arc::clone(&queue));
            thread::spawn(move || {
                queue.fetch_add(1, SeqCst);
                if turn.call() {
                    drain(&turn, &queue);
                }
            })
        };
        queue.fetch_add(1, SeqCst);
        if turn.call() {
            drain(&turn, &queue);
        }
        producer.join().unwrap();
        assert_eq!(queue.load(SeqCst), 0, "an item was left behind");
    });
}

/// What the holder waits for happens while it parks: exactly one side goes on.
#[test]
fn models_turn_resume_against_park() {
    loom::model(|| {
        let turn = Arc::new(Turn::new(()));
        let fired = Arc::new(AtomicU32::new(0));
        // The holder registers with the event while it holds the turn, so the event fires after that.
        let mut guard = turn.hold().unwrap();
        let event = {
            let (turn, fired) = (Arc::clone(&turn), Arc::clone(&fired));
            thread::spawn(move || {
                fired.store(1, SeqCst);
                turn.resume()
            })
        };
        let mut went_on = 0;
        loop {
            if fired.load(SeqCst) == 1 {
                went_on += 1;
                drop(guard);
                break;
            }
            match guard.park() {
                Ok(()) => break,
                Err(kept) => guard = kept,
            }
        }
        let called = event.join().unwrap();
        assert!(went_on == 1 || called, "nobody goes on");
    });
}

/// Two workers finish, a late helper knocks: one closes, and only after all have left.
#[test]
fn models_tokens_close_once() {
    loom::model(|| {
        let tokens = Arc::new(Tokens::new());
        let inside = Arc::new(AtomicU32::new(1));
        let generation = tokens.open(2);
        let helper = {
            let (tokens, inside) = (Arc::clone(&tokens), Arc::clone(&inside));
            thread::spawn(move || match tokens.enter(generation) {
                Entry::Over => 0,
                Entry::Inside => {
                    inside.fetch_add(1, SeqCst);
                    inside.fetch_sub(1, SeqCst);
                    let exit = tokens.leave(1);
                    if exit == Exit::Closed {
                        assert_eq!(inside.load(SeqCst), 0);
                    }
                    u32::from(exit == Exit::Closed) + 10
                }
            })
        };
        tokens.finish(1);
        inside.fetch_sub(1, SeqCst);
        let mine = tokens.leave(0);
        let theirs = helper.join().unwrap();
        if theirs >= 10 {
            assert_eq!(u32::from(mine == Exit::Closed) + (theirs - 10), 1, "closed by exactly one");
        }
    });
}
