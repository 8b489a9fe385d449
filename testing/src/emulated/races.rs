//! Reports of races, in words, with both operations. Equal reports are counted, so a program that repeats itself makes
//! one.
#![forbid(unsafe_code)]

use super::checker::{Clash, Hit, Who};
use super::space::MemoryPlace;
use crate::abi::weir_emulated_race_kind_value as K;
use crate::base::{Code, Error};

/// The most different reports that are kept.
const MANY: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaceKind {
    ReadAfterWrite,
    WriteAfterRead,
    WriteAfterWrite,
    UseAfterFree,
    FreedInUse,
    ReusedInUse,
    RecordedTooSoon,
    WaitBeforeRecord,
    HostAccess,
}

impl RaceKind {
    pub fn value(self) -> u32 {
        let value = match self {
            RaceKind::ReadAfterWrite => K::WEIR_RACE_READ_AFTER_WRITE,
            RaceKind::WriteAfterRead => K::WEIR_RACE_WRITE_AFTER_READ,
            RaceKind::WriteAfterWrite => K::WEIR_RACE_WRITE_AFTER_WRITE,
            RaceKind::UseAfterFree => K::WEIR_RACE_USE_AFTER_FREE,
            RaceKind::FreedInUse => K::WEIR_RACE_FREED_IN_USE,
            RaceKind::ReusedInUse => K::WEIR_RACE_REUSED_IN_USE,
            RaceKind::RecordedTooSoon => K::WEIR_RACE_RECORDED_TOO_SOON,
            RaceKind::WaitBeforeRecord => K::WEIR_RACE_WAIT_BEFORE_RECORD,
            RaceKind::HostAccess => K::WEIR_RACE_HOST_ACCESS,
        };
        value as u32
    }
}

/// One of the two operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// "kernel 'add'", "free", "wait".
    pub name: String,
    /// "" = the host.
    pub queue: String,
    pub number: u64,
}

impl Party {
    /// The host, as it frees memory.
    pub(super) fn free(number: u64) -> Party {
        Party { name: "free".to_owned(), queue: String::new(), number }
    }

    fn text(&self) -> String {
        match self.queue.as_str() {
            "" => format!("the {} after operation {}", self.name, self.number),
            queue => format!("{} (operation {}, stream '{queue}')", self.name, self.number),
        }
    }
}

impl From<Who> for Party {
    fn from(who: Who) -> Party {
        Party { name: who.name, queue: who.queue, number: who.number }
    }
}

#[derive(Clone, Debug)]
pub struct Race {
    pub kind: RaceKind,
    pub first: Party,
    pub second: Party,
    pub offset: usize,
    pub bytes: usize,
    pub text: String,
    pub count: u64,
}

impl Race {
    /// The error of an operation that fails because of the race.
    pub(super) fn error(&self) -> Error {
        Error::new(Code::FailedPrecondition, self.text.clone())
    }

    /// Two operations with no order between them. `is_older`: the first was submitted before these bytes were
    /// allocated.
    pub(super) fn of_operations(hit: &Hit, first: Who, second: Party, place: &MemoryPlace, is_older: bool) -> Race {
        let (does, other_does, kind) = match hit.clash {
            Clash::ReadAfterWrite => ("reads", "write", RaceKind::ReadAfterWrite),
            Clash::WriteAfterRead => ("writes", "read", RaceKind::WriteAfterRead),
            Clash::WriteAfterWrite => ("writes", "write", RaceKind::WriteAfterWrite),
        };
        let first = Party::from(first);
        let (kind, title) = match (is_older, hit.recorded_too_soon) {
            (true, _) => (RaceKind::ReusedInUse, "memory reused too soon"),
            (false, true) => (RaceKind::RecordedTooSoon, "event recorded too soon"),
            (false, false) if hit.is_inside => (kind, "missing edge"),
            (false, false) => (kind, "missing wait"),
        };
        let them = if is_older { "them as part of an allocation that was freed" } else { "them" };
        let after = if kind == RaceKind::RecordedTooSoon {
            format!(
                "; stream '{}' waited for an event of stream '{}' that was recorded before",
                second.queue, first.queue
            )
        } else {
            String::new()
        };
        let text = format!(
            "{title}: {} {does} {} while {} may still {other_does} {them}{after}",
            second.text(),
            place.text(hit.bytes.len()),
            first.text(),
        );
        Race { kind, first, second, offset: place.offset(), bytes: hit.bytes.len(), text, count: 1 }
    }

    /// The host frees memory that an operation may use.
    pub(super) fn of_free(hit: &Hit, first: Who, after: u64, place: &MemoryPlace) -> Race {
        let does = if hit.clash == Clash::WriteAfterWrite { "write" } else { "read" };
        let (first, second) = (Party::from(first), Party::free(after));
        let text = format!(
            "memory freed too soon: {} gives back {} while {} may still {does} them",
            second.text(),
            place.text(hit.bytes.len()),
            first.text(),
        );
        Race {
            kind: RaceKind::FreedInUse,
            first,
            second,
            offset: place.offset(),
            bytes: hit.bytes.len(),
            text,
            count: 1,
        }
    }

    /// The host itself uses memory that an operation may use.
    pub(super) fn of_host(hit: &Hit, first: Who, what: &str, after: u64, writes: bool, place: &MemoryPlace) -> Race {
        let does = if hit.clash == Clash::WriteAfterRead { "read" } else { "write" };
        let second = Party { name: what.to_owned(), queue: String::new(), number: after };
        let first = Party::from(first);
        let text = format!(
            "memory used by the host too soon: {} {} {} while {} may still {does} them",
            second.text(),
            if writes { "writes" } else { "reads" },
            place.text(hit.bytes.len()),
            first.text(),
        );
        let (offset, bytes) = (place.offset(), hit.bytes.len());
        Race { kind: RaceKind::HostAccess, first, second, offset, bytes, text, count: 1 }
    }

    /// An operation uses memory that is not allocated.
    pub(super) fn of_use(second: Party, does: &str, place: &MemoryPlace, bytes: usize) -> Race {
        let first = match place {
            MemoryPlace::Freed { after, .. } => Party::free(*after),
            _ => Party::default(),
        };
        let text = format!("use after free: {} {does} {}", second.text(), place.text(bytes));
        Race { kind: RaceKind::UseAfterFree, first, second, offset: place.offset(), bytes, text, count: 1 }
    }

    /// A queue waits for an event that was never recorded.
    pub(super) fn of_wait(queue: &str, after: u64, event: u64) -> Race {
        let second = Party { name: "wait".to_owned(), queue: queue.to_owned(), number: after };
        let text = format!(
            "wait before record: stream '{queue}' waits, after operation {after} of the device, for event {event}, \
             which nobody has recorded"
        );
        let kind = RaceKind::WaitBeforeRecord;
        Race { kind, first: Party::default(), second, offset: 0, bytes: 0, text, count: 1 }
    }

    /// Whether they are alike but for the numbers.
    fn is_like(&self, other: &Race) -> bool {
        let key = |race: &Race| (race.kind, race.offset, race.bytes);
        let names = |a: &Party, b: &Party| a.name == b.name && a.queue == b.queue;
        key(self) == key(other) && names(&self.first, &other.first) && names(&self.second, &other.second)
    }
}

#[derive(Debug, Default)]
pub(super) struct Races {
    list: Vec<Race>,
    found: u64,
}

impl Races {
    pub(super) fn add(&mut self, race: Race) {
        self.found += 1;
        if let Some(there) = self.list.iter_mut().find(|there| there.is_like(&race)) {
            there.count += 1;
        } else if self.list.len() < MANY {
            self.list.push(race);
        }
    }

    pub(super) fn found(&self) -> u64 {
        self.found
    }

    pub(super) fn list(&self) -> &[Race] {
        &self.list
    }

    pub(super) fn clear(&mut self) {
        *self = Races::default();
    }
}
