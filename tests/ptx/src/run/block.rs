//! The threads of one block: who runs, what a warp exchanges, who passes a barrier.

use super::fault::{Fault, FaultKind, Trouble};
use super::thread::{State, Thread, World};
use super::warp::{Exchange, Lane, exchange};
use crate::program::{BarrierSite, ExchangeSite, Op, Reduction};

/// Operations that a thread does before others get their turn, if it waits for nothing.
const QUANTUM: i64 = 1 << 16;
/// Barriers of a block.
const BARRIERS: usize = 16;

/// Who goes first where nothing orders threads: a kernel must not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// By their numbers: warp 0 and in it thread 0 first.
    #[default]
    Forward,
    Backward,
    /// Another order at each turn, the same for the same seed.
    Shuffled(u64),
}

impl Schedule {
    /// Puts what is in order into this schedule's.
    fn arrange(&mut self, turns: &mut [usize]) {
        match self {
            Self::Forward => {}
            Self::Backward => turns.reverse(),
            Self::Shuffled(state) => {
                for at in (1..turns.len()).rev() {
                    // A linear congruential generator, whose upper bits are the good ones.
                    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    turns.swap(at, (*state >> 33) as usize % (at + 1));
                }
            }
        }
    }
}

pub struct Block {
    threads: Vec<Thread>,
    schedule: Schedule,
    /// For each barrier, the threads that have arrived without waiting.
    arrived: Vec<Vec<u32>>,
}

impl Block {
    pub fn new(threads: u32, schedule: Schedule) -> Self {
        let threads = (0..threads).map(|_| Thread::default()).collect();
        Self { threads, schedule, arrived: vec![Vec::new(); BARRIERS] }
    }

    /// Runs the block `world.block` to its end.
    pub fn run(&mut self, world: &mut World) -> Result<(), Fault> {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            thread.begin(world, number as u32);
        }
        self.arrived.iter_mut().for_each(Vec::clear);
        let mut warps: Vec<usize> = Vec::new();
        loop {
            let mut moved = false;
            warps.clear();
            warps.extend((0..self.threads.len()).step_by(32));
            self.schedule.arrange(&mut warps);
            for first in &warps {
                moved |= self.warp(*first, world)?;
            }
            if self.threads.iter().all(|thread| thread.state() == State::Exited) {
                return Ok(());
            }
            moved |= self.barriers(world)?;
            if !moved {
                return Err(self.deadlock(world));
            }
        }
    }

    /// Runs what is ready in the warp that begins with a thread, and its exchanges. False if nothing was.
    fn warp(&mut self, first: usize, world: &mut World) -> Result<bool, Fault> {
        let end = self.threads.len().min(first + 32);
        let mut moved = false;
        loop {
            let mut lanes: [usize; 32] = std::array::from_fn(|lane| first + lane);
            let lanes = &mut lanes[..end - first];
            self.schedule.arrange(lanes);
            for number in lanes.iter().copied() {
                let thread = &mut self.threads[number];
                if thread.state() == State::Ready {
                    moved = true;
                    thread.run(world, QUANTUM).map_err(|trouble| located(&self.threads[number], world, trouble))?;
                }
            }
            if world.steps > world.limit {
                let (name, limit) = (&world.program.name, world.limit);
                let text = format!("kernel '{name}': more than {limit} operations: it has no end?");
                return Err(Fault { kind: FaultKind::Endless, text });
            }
            if !self.exchanges(first, end, world)? {
                return Ok(moved);
            }
        }
    }

    /// Does the exchanges of a warp whose members are all there. False if there was none.
    fn exchanges(&mut self, first: usize, end: usize, world: &World) -> Result<bool, Fault> {
        let lanes_in = |state: State| {
            (first..end).filter(|n| self.threads[*n].state() == state).fold(0u32, |set, n| set | 1 << (n - first))
        };
        let (waiting, ready) = (lanes_in(State::AtExchange), lanes_in(State::Ready));
        let exited = lanes_in(State::Exited);
        if waiting == 0 {
            return Ok(false);
        }
        let mut left = waiting;
        let mut moved = false;
        // The lanes that ask who is active, by the place where they do; only when nobody else can join them.
        let mut asking = 0u32;
        while left != 0 {
            let lane = left.trailing_zeros();
            let thread = &self.threads[first + lane as usize];
            let (site, place) = (site(thread, world), (thread.function, thread.pc));
            let here = |other: u32| {
                let other = &self.threads[first + other as usize];
                (other.function, other.pc) == place
            };
            let together = (0..32).filter(|l| left >> l & 1 == 1 && here(*l)).fold(0u32, |set, l| set | 1 << l);
            if site.what == Exchange::Active {
                asking |= together;
                left &= !together;
                continue;
            }
            let mask = thread.get(site.mask) as u32;
            if mask >> lane & 1 == 0 {
                let text = format!("the mask {mask:#010x} does not name the lane itself, {lane}");
                return Err(located(thread, world, Trouble::new(FaultKind::Trap, text)));
            }
            let same_mask = |l: &u32| self.threads[first + *l as usize].get(site.mask) as u32 == mask;
            let present =
                (0..32).filter(|l| together >> l & 1 == 1).filter(same_mask).fold(0u32, |set, l| set | 1 << l);
            left &= !present;
            // Lanes beyond the block's end are as those that have exited.
            let beyond = if end - first == 32 { 0 } else { u32::MAX << (end - first) };
            let members = mask & !exited & !beyond;
            if members & !present == 0 {
                let site = site.clone();
                self.give(first, &site, members);
                moved = true;
            }
        }
        if !moved && asking != 0 && ready == 0 {
            let thread = &self.threads[first + asking.trailing_zeros() as usize];
            let (site, place) = (site(thread, world).clone(), (thread.function, thread.pc));
            let here = |l: &u32| {
                let other = &self.threads[first + *l as usize];
                (other.function, other.pc) == place
            };
            let members = (0..32).filter(|l| asking >> l & 1 == 1).filter(here).fold(0u32, |set, l| set | 1 << l);
            self.give(first, &site, members);
            moved = true;
        }
        Ok(moved)
    }

    /// Gives each member its results and lets it go on.
    fn give(&mut self, first: usize, site: &ExchangeSite, members: u32) {
        let mut lanes = [Lane::default(); 32];
        let each = || (0..32).filter(move |lane| members >> lane & 1 == 1);
        for lane in each() {
            let thread = &self.threads[first + lane];
            lanes[lane] = Lane { a: thread.get(site.a), b: thread.get(site.b), c: thread.get(site.c), d: 0, p: 0 };
        }
        exchange(site.what, &mut lanes, members);
        for lane in each() {
            let thread = &mut self.threads[first + lane];
            if site.p != site.d {
                thread.set(site.p, lanes[lane].p);
            }
            thread.set(site.d, lanes[lane].d);
            thread.pc += 1;
            thread.state = Some(State::Ready);
        }
    }

    /// Lets threads pass the barriers that are complete. False if there was none.
    fn barriers(&mut self, world: &World) -> Result<bool, Fault> {
        let mut moved = false;
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); BARRIERS];
        for number in 0..self.threads.len() {
            let thread = &self.threads[number];
            if thread.state() != State::AtBarrier {
                continue;
            }
            let site = barrier(thread, world);
            let barrier = thread.get(site.number) as usize;
            if barrier >= BARRIERS {
                let text = format!("there is no barrier {barrier}");
                return Err(located(thread, world, Trouble::new(FaultKind::Trap, text)));
            }
            if site.waits {
                waiting[barrier].push(number as u32);
            } else {
                // Who only arrives goes on at once, and can arrive again only when the barrier has been passed.
                if self.arrived[barrier].contains(&(number as u32)) {
                    continue;
                }
                self.arrived[barrier].push(number as u32);
                let thread = &mut self.threads[number];
                thread.pc += 1;
                thread.state = Some(State::Ready);
                moved = true;
            }
        }
        for (barrier, waiting) in waiting.iter().enumerate() {
            if !waiting.is_empty() && self.complete(barrier, waiting, world)? {
                self.pass(waiting, world);
                self.arrived[barrier].clear();
                moved = true;
            }
        }
        Ok(moved)
    }

    /// Whether all that a barrier waits for are there.
    fn complete(&self, number: usize, waiting: &[u32], world: &World) -> Result<bool, Fault> {
        let first = &self.threads[waiting[0] as usize];
        let count = barrier(first, world).count.map(|slot| first.get(slot));
        for number in waiting {
            let thread = &self.threads[*number as usize];
            let other = barrier(thread, world).count.map(|slot| thread.get(slot));
            if other != count {
                let text = format!("threads wait here for {count:?} and for {other:?} threads at the same barrier");
                return Err(located(thread, world, Trouble::new(FaultKind::Trap, text)));
            }
        }
        let Some(count) = count else {
            let live = self.threads.iter().filter(|thread| thread.state() != State::Exited).count();
            if waiting.len() < live {
                return Ok(false);
            }
            self.check_aligned(waiting, world)?;
            return Ok(true);
        };
        if count == 0 || count % 32 != 0 {
            let text = format!("{count} threads are awaited, which is no multiple of a warp");
            return Err(located(first, world, Trouble::new(FaultKind::Trap, text)));
        }
        let there = |n: &usize| waiting.contains(&(*n as u32)) || self.arrived[number].contains(&(*n as u32));
        let mut present = 0;
        for start in (0..self.threads.len()).step_by(32) {
            let warp = start..self.threads.len().min(start + 32);
            let found = warp.clone().filter(there).count();
            let live = warp.filter(|n| there(n) || self.threads[*n].state() != State::Exited).count();
            // A whole warp counts as 32 threads even if it has fewer.
            present += if found > 0 && found == live { 32 } else { found as u64 };
        }
        if present < count {
            return Ok(false);
        }
        self.check_aligned(waiting, world)?;
        Ok(true)
    }

    /// The threads of a warp must have come to an aligned barrier by one instruction.
    fn check_aligned(&self, waiting: &[u32], world: &World) -> Result<(), Fault> {
        for pair in waiting.windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|number| &self.threads[number as usize]);
            let apart = (one.function, one.pc) != (other.function, other.pc);
            if one.number / 32 == other.number / 32 && apart && barrier(other, world).aligned {
                let text = format!("thread {:?} of the same warp is at the barrier by another instruction", one.index);
                return Err(located(other, world, Trouble::new(FaultKind::Trap, text)));
            }
        }
        Ok(())
    }

    fn pass(&mut self, waiting: &[u32], world: &World) {
        let holds: Vec<bool> = waiting
            .iter()
            .map(|number| {
                let thread = &self.threads[*number as usize];
                barrier(thread, world).reduction.is_some_and(|(_, p, _)| thread.get(p) != 0)
            })
            .collect();
        let count = holds.iter().filter(|holds| **holds).count();
        for number in waiting {
            let thread = &mut self.threads[*number as usize];
            if let Some((d, _, reduction)) = barrier(thread, world).reduction {
                thread.set(
                    d,
                    match reduction {
                        Reduction::Count => count as u64,
                        Reduction::And => u64::from(count == waiting.len()),
                        Reduction::Or => u64::from(count > 0),
                    },
                );
            }
            thread.pc += 1;
            thread.state = Some(State::Ready);
        }
    }

    /// Nobody can go on: who waits where.
    fn deadlock(&self, world: &World) -> Fault {
        let mut places: Vec<(u32, u32, Vec<&Thread>)> = Vec::new();
        for thread in self.threads.iter().filter(|thread| thread.state() != State::Exited) {
            match places.iter_mut().find(|(function, pc, _)| (*function, *pc) == (thread.function, thread.pc)) {
                Some((.., threads)) => threads.push(thread),
                None => places.push((thread.function, thread.pc, vec![thread])),
            }
        }
        let exited = self.threads.iter().filter(|thread| thread.state() == State::Exited).count();
        let mut text =
            format!("kernel '{}', block {:?}: deadlock, {exited} threads have exited", world.program.name, world.block);
        for (_, _, threads) in &places {
            let first = threads[0];
            let what = match first.state() {
                State::AtBarrier => format!("barrier {}", first.get(barrier(first, world).number)),
                _ => format!("mask {:#010x}", first.get(site(first, world).mask)),
            };
            let (line, source) = line(first, world);
            text += &format!("; {} wait at {what}, line {line}: {source} (first {:?})", threads.len(), first.index);
        }
        Fault { kind: FaultKind::Deadlock, text }
    }
}

fn site<'a>(thread: &Thread, world: &World<'a>) -> &'a ExchangeSite {
    let function = &world.program.functions[thread.function as usize];
    match function.ops[thread.pc as usize] {
        Op::Exchange { site } => &function.exchanges[site as usize],
        _ => unreachable!("a thread in this state is at an exchange"),
    }
}

fn barrier<'a>(thread: &Thread, world: &World<'a>) -> &'a BarrierSite {
    let function = &world.program.functions[thread.function as usize];
    match function.ops[thread.pc as usize] {
        Op::Barrier { site } => &function.barriers[site as usize],
        _ => unreachable!("a thread in this state is at a barrier"),
    }
}

/// The line of the operation that a thread is at, and its text.
fn line<'a>(thread: &Thread, world: &World<'a>) -> (u32, &'a str) {
    let line = world.program.functions[thread.function as usize].lines[thread.pc as usize];
    (line, world.program.source.get(line.saturating_sub(1) as usize).map_or("", |text| text.trim()))
}

fn located(thread: &Thread, world: &World, trouble: Trouble) -> Fault {
    let (line, source) = line(thread, world);
    let function = &world.program.functions[thread.function as usize];
    let within = if thread.function == 0 { String::new() } else { format!(" in '{}'", function.name) };
    let text = format!(
        "kernel '{}', block {:?}, thread {:?}, line {line}{within}: {source}: {}",
        world.program.name, world.block, thread.index, trouble.text
    );
    Fault { kind: trouble.kind, text }
}
