//! What the driver tells about the program: races, faults, and what is left at the end.

use crate::abi::{Handle, Kind};
use crate::access::Accesses;
use crate::builtin::is_condition;
use crate::call::stop;
use crate::schedule::Task;
use crate::settings::{OnFind, SETTINGS};
use crate::space;
use crate::status::Code;
use crate::world::{World, try_lock};
use std::ops::Range;

impl World {
    /// A task has run: whether it is ordered behind those that used the same bytes.
    pub fn check(&mut self, task: &Task, accesses: &Accesses) {
        if SETTINGS.races == OnFind::Off {
            return;
        }
        for (ranges, is_write) in [(accesses.reads(), false), (accesses.writes(), true)] {
            for bytes in ranges {
                let found = self.checker.access(task.epoch, &task.clock, &task.name, bytes, is_write);
                for race in found {
                    let place = match is_condition(&race.bytes) {
                        true => "the condition of a node".to_owned(),
                        false => space::look(|space| space.describe(&race.bytes)),
                    };
                    let (second, first) = (&task.name, &race.first);
                    self.race(format!(
                        "{second} {} {place}; {first} {} them; nothing orders one behind the other",
                        race.second_does, race.first_does
                    ));
                }
            }
        }
    }

    pub fn race(&mut self, text: String) {
        match SETTINGS.races {
            OnFind::Off => return,
            OnFind::Report => eprintln!("fake CUDA driver: race: {text}"),
            OnFind::Abort => stop(&format!("race: {text}")),
        }
        self.races.push(text);
    }

    /// The host ends memory that operations may use still.
    pub fn check_end(&mut self, what: &str, bytes: &Range<u64>) {
        if SETTINGS.races != OnFind::Off {
            let users = self.checker.users(&self.host, bytes);
            let place = space::look(|space| space.describe(bytes));
            for user in users {
                self.race(format!("{what} gives back {place}; {user} uses them; the host has not waited for that"));
            }
        }
        self.checker.forget(bytes);
    }

    /// A task has failed, and with it the context.
    pub fn fault(&mut self, task: &Task, code: Code, why: &str) {
        eprintln!("fake CUDA driver: {} fails with {}: {why}", task.name, code.0);
        self.lose(task.origin.context, code);
    }

    /// Everything of a context's, or of all, that the program has made and not given back.
    pub fn live(&self, context: Option<Handle>) -> Vec<String> {
        let is_of = |of: Handle| context.is_none_or(|context| context == of);
        let mut live: Vec<String> = Vec::new();
        let mut add = |handle: &Handle| live.push(format!("{handle:?}"));
        self.streams.iter().filter(|(_, s)| s.hidden.is_none() && is_of(s.context)).for_each(|(h, _)| add(h));
        self.events.iter().filter(|(_, e)| is_of(e.context)).for_each(|(h, _)| add(h));
        self.modules.iter().filter(|(_, m)| is_of(m.context)).for_each(|(h, _)| add(h));
        if context.is_none() {
            self.pools.iter().filter(|(_, pool)| !pool.is_default).for_each(|(h, _)| add(h));
            self.graphs.iter().filter(|(_, graph)| graph.parent.is_none()).for_each(|(h, _)| add(h));
            self.execs.keys().for_each(&mut add);
            for (device, state) in self.devices.iter().enumerate().filter(|(_, device)| device.retained > 0) {
                live.push(format!("the primary context of device {device}, retained {} times", state.retained));
            }
            self.contexts.iter().filter(|(_, c)| !c.is_primary).for_each(|(h, _)| live.push(format!("{h:?}")));
        }
        let is_global =
            |start: &u64| self.modules.values().any(|module| module.globals.values().any(|(at, _)| at == start));
        space::look(|space| {
            let blocks = space.blocks().filter(|block| is_of(block.context) && !is_global(&block.start));
            live.extend(blocks.map(|block| format!("{} bytes of {}", block.size, block.name)));
            let pinned = space.all_pinned().filter(|pinned| is_of(pinned.context));
            live.extend(pinned.map(|pinned| format!("{} pinned bytes", pinned.size)));
        });
        live
    }

    pub fn count_live(&self, kind: Option<Kind>) -> usize {
        let live = self.live(None);
        live.iter().filter(|text| kind.is_none_or(|kind| text.starts_with(&format!("{}#", kind.name())))).count()
    }
}

/// At the end of the process.
pub fn report_leaks() {
    if SETTINGS.leaks == OnFind::Off {
        return;
    }
    let Some(world) = try_lock() else { return };
    let mut left = world.leaks.clone();
    left.extend(world.live(None));
    drop(world);
    if left.is_empty() {
        return;
    }
    let text = format!("not given back: {}", left.join("; "));
    match SETTINGS.leaks {
        OnFind::Abort => stop(&text),
        _ => eprintln!("fake CUDA driver: {text}"),
    }
}
