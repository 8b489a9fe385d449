//! Data learned about pools. It is kept with the host's functions, not with the pool object.
//!
//! A host may make a pool for each call of its own. The cost of its threads, and which loops gain by being shared, is
//! the same for all of those, since their functions are the same. So it is kept for a *family*: all pools of the same
//! functions, flags, width and given costs, whatever their contexts. Pools of the library's own, and pools in checking
//! mode, are each their own family.
//!
//! Families live in a table of a fixed size. `users` counts the pools of an entry, and is `FILLING` while one thread
//! gives the entry to another family. A lookup counts itself as a user before it compares the key: an entry with users
//! is never filled, so the key is read whole. An entry without users keeps its data until it is needed: a new family
//! takes one that was never used, else one that was not used since the last eviction. If all entries within reach have
//! users, the pool's data is private and dies with it.
#![forbid(unsafe_code)]

use super::costs::{Cost, Costs};
use super::sites::Sites;
use super::trials::Trials;
use crate::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

const TASKS: usize = 256;

/// The data of a family.
#[derive(Debug)]
pub struct FamilyData {
    pub costs: Costs,
    pub sites: Sites,
    /// The durations of group tasks, by function and depth.
    pub tasks: Sites<TASKS>,
    pub trials: Trials,
    /// Whether the costs were measured, or need not be.
    pub measured: AtomicBool,
}

impl FamilyData {
    pub fn new(given: Option<Cost>) -> FamilyData {
        FamilyData {
            costs: Costs::new(given),
            sites: Sites::default(),
            tasks: Sites::default(),
            trials: Trials::default(),
            measured: AtomicBool::new(given.is_some()),
        }
    }

    /// Forgets all but the given costs. ORDERING: Relaxed throughout; `users` hands the entry on.
    fn forget(&self, given: Option<Cost>) {
        self.costs.forget(given);
        self.sites.forget();
        self.tasks.forget();
        self.trials.forget();
        self.measured.store(given.is_some(), Relaxed);
    }
}

const WORDS: usize = 12;

/// The key of a family: the addresses of its functions, flags, width and given costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyKey([u64; WORDS]);

impl FamilyKey {
    /// `functions`: their addresses, 0 for none.
    pub fn new(functions: [usize; 7], flags: u64, width: usize, given: Option<Cost>) -> FamilyKey {
        let mut words = [0; WORDS];
        for (word, function) in words.iter_mut().zip(functions) {
            *word = function as u64;
        }
        words[7] = flags;
        words[8] = width as u64;
        if let Some(Cost { submit, arrive, join }) = given {
            words[9] = u64::from(submit.to_bits()) << 32 | u64::from(arrive.to_bits());
            words[10] = u64::from(join.to_bits());
            words[11] = 1;
        }
        FamilyKey(words)
    }

    /// Never 0.
    fn hash(&self) -> u64 {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4), a word at a time.
        self.0.iter().fold(0u64, |hash, word| {
            let hash = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^ hash >> 29
        }) | 1
    }
}

const ENTRIES: usize = 64;
/// Entries among which a family is found.
const REACH: usize = 8;
const FILLING: u32 = u32::MAX;

#[derive(Debug)]
struct FamilyEntry {
    users: AtomicU32,
    /// Whether it was used since the last eviction.
    recent: AtomicBool,
    /// The key's hash; 0 = never used. Checked before the more expensive count.
    hash: AtomicU64,
    key: [AtomicU64; WORDS],
    id: AtomicU64,
    learned: OnceLock<FamilyData>,
}

impl FamilyEntry {
    const fn new() -> FamilyEntry {
        FamilyEntry {
            users: AtomicU32::new(0),
            recent: AtomicBool::new(false),
            hash: AtomicU64::new(0),
            key: [const { AtomicU64::new(0) }; WORDS],
            id: AtomicU64::new(0),
            learned: OnceLock::new(),
        }
    }

    /// Adds a user, if this is the family's entry.
    fn join(&self, hash: u64, key: &FamilyKey) -> bool {
        if self.hash.load(Relaxed) != hash {
            return false;
        }
        // ORDERING: Acquire pairs with the Release at the end of `fill`.
        let counted = self.users.fetch_update(Acquire, Relaxed, |users| (users < FILLING - 1).then(|| users + 1));
        if counted.is_err() {
            return false;
        }
        // ORDERING: Relaxed, as nobody writes the key of an entry that has users.
        let is_same = self.key.iter().zip(key.0).all(|(word, wanted)| word.load(Relaxed) == wanted);
        if is_same {
            self.recent.store(true, Relaxed);
        } else {
            self.leave();
        }
        is_same
    }

    fn leave(&self) {
        // ORDERING: Release pairs with the Acquire in `fill`.
        self.users.fetch_sub(1, Release);
    }

    /// Gives the entry to this family, with one user. False if it has users.
    fn fill(&self, hash: u64, key: &FamilyKey, given: Option<Cost>, id: impl FnOnce() -> u64) -> bool {
        if self.users.compare_exchange(0, FILLING, Acquire, Relaxed).is_err() {
            return false;
        }
        self.hash.store(hash, Relaxed);
        self.key.iter().zip(key.0).for_each(|(word, value)| word.store(value, Relaxed));
        self.id.store(id(), Relaxed);
        self.recent.store(true, Relaxed);
        self.learned.get_or_init(|| FamilyData::new(None)).forget(given);
        // ORDERING: Release pairs with the Acquire in `join`.
        self.users.store(1, Release);
        true
    }
}

#[derive(Debug)]
struct FamilyTable([FamilyEntry; ENTRIES]);

static TABLE: FamilyTable = FamilyTable([const { FamilyEntry::new() }; ENTRIES]);

impl FamilyTable {
    fn within_reach(&self, hash: u64) -> impl Iterator<Item = &FamilyEntry> + Clone {
        let first = (hash >> 32) as usize;
        (0..REACH).map(move |step| &self.0[(first + step) % ENTRIES])
    }

    /// `None` if all entries within reach have users.
    fn family(&self, key: &FamilyKey, given: Option<Cost>, id: impl Fn() -> u64) -> Option<&FamilyEntry> {
        let hash = key.hash();
        let reach = self.within_reach(hash);
        if let Some(entry) = reach.clone().find(|entry| entry.join(hash, key)) {
            return Some(entry);
        }
        let fill = |entry: &&FamilyEntry| entry.fill(hash, key, given, &id);
        let is_new = |entry: &&FamilyEntry| entry.hash.load(Relaxed) == 0;
        if let Some(entry) = reach.clone().filter(is_new).find(fill) {
            return Some(entry);
        }
        if let Some(entry) = reach.clone().filter(|entry| !entry.recent.swap(false, Relaxed)).find(fill) {
            return Some(entry);
        }
        reach.clone().find(fill)
    }
}

/// The family that a pool belongs to, for as long as the pool lives.
#[derive(Debug)]
pub struct Family(FamilySource);

#[derive(Debug)]
enum FamilySource {
    FamilyTable(&'static FamilyEntry),
    Own(Box<(u64, FamilyData)>),
}

impl Family {
    /// The family of this key. `id` gives unique numbers.
    pub fn of(key: &FamilyKey, given: Option<Cost>, id: impl Fn() -> u64) -> Family {
        TABLE
            .family(key, given, &id)
            .map_or_else(|| Family::own(id(), given), |entry| Family(FamilySource::FamilyTable(entry)))
    }

    /// A family of one.
    pub fn own(id: u64, given: Option<Cost>) -> Family {
        Family(FamilySource::Own(Box::new((id, FamilyData::new(given)))))
    }

    #[inline]
    pub fn learned(&self) -> &FamilyData {
        match &self.0 {
            // An entry that has users has been filled.
            FamilySource::FamilyTable(entry) => entry.learned.get_or_init(|| FamilyData::new(None)),
            FamilySource::Own(own) => &own.1,
        }
    }

    /// No other family has or had this number.
    pub fn id(&self) -> u64 {
        match &self.0 {
            FamilySource::FamilyTable(entry) => entry.id.load(Relaxed),
            FamilySource::Own(own) => own.0,
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        if let FamilySource::FamilyTable(entry) = self.0 {
            entry.leave();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::costs::PRIOR;
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn key(number: usize) -> FamilyKey {
        FamilyKey::new([number; 7], 0, 4, None)
    }

    fn numbers() -> impl Fn() -> u64 {
        let next = AtomicU64::new(1);
        move || next.fetch_add(1, Relaxed)
    }

    fn table() -> Box<FamilyTable> {
        Box::new(FamilyTable([const { FamilyEntry::new() }; ENTRIES]))
    }

    fn learned(entry: &FamilyEntry) -> &FamilyData {
        entry.learned.get().unwrap()
    }

    #[test]
    fn pools_of_one_key_learn_together_and_others_apart() {
        let (table, id) = (table(), numbers());
        let first = table.family(&key(1), None, &id).unwrap();
        learned(first).sites.put(64, 5.0);
        let second = table.family(&key(1), None, &id).unwrap();
        assert!(std::ptr::eq(first, second));
        assert_eq!(learned(second).sites.get(64), Some(5.0));
        let wider = FamilyKey::new([1; 7], 0, 5, None);
        let dearer = FamilyKey::new([1; 7], 0, 4, Some(PRIOR));
        for other in [key(2), wider, dearer] {
            let other = table.family(&other, None, &id).unwrap();
            assert_eq!(learned(other).sites.get(64), None);
            assert_ne!(other.id.load(Relaxed), first.id.load(Relaxed));
        }
        first.leave();
        second.leave();
        let third = table.family(&key(1), None, &id).unwrap();
        assert_eq!(learned(third).sites.get(64), Some(5.0), "what is learned outlives the pools");
    }

    #[test]
    fn a_new_family_takes_what_nobody_uses_and_never_what_somebody_does() {
        let (table, id) = (table(), numbers());
        let kept = table.family(&key(0), None, &id).unwrap();
        learned(kept).sites.put(64, 5.0);
        for number in 1..1000 {
            let other = table.family(&key(number), None, &id).unwrap();
            assert!(!std::ptr::eq(kept, other));
            assert_eq!(learned(other).sites.get(64), None, "what another family has learned");
            learned(other).sites.put(64, 7.0);
            other.leave();
        }
        assert_eq!(learned(kept).sites.get(64), Some(5.0));
        let crowd = (0..1000).filter_map(|number| table.family(&key(number), None, &id)).count();
        assert!(crowd < 1000 && crowd > REACH, "{crowd}");
        let own = Family::own(7, None);
        own.learned().sites.put(64, 1.0);
        assert_eq!((own.id(), own.learned().sites.get(64)), (7, Some(1.0)));
    }

    #[test]
    fn many_threads_may_look_and_fill_at_once() {
        let (table, next) = (table(), AtomicU64::new(1));
        let wrong = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let (table, next, wrong) = (&table, &next, &wrong);
                scope.spawn(move || {
                    for round in 0..2000usize {
                        let number = (round * 7 + thread) % 40;
                        let id = || next.fetch_add(1, Relaxed);
                        let Some(entry) = table.family(&key(number), None, id) else { continue };
                        let is_it = entry.key.iter().zip(key(number).0).all(|(word, it)| word.load(Relaxed) == it);
                        wrong.fetch_add(usize::from(!is_it), Relaxed);
                        entry.leave();
                    }
                });
            }
        });
        assert_eq!(wrong.load(Relaxed), 0, "an entry became another family's while it had users");
        assert!(table.0.iter().all(|entry| entry.users.load(Relaxed) == 0));
    }
}
