//! How workers of a run share their lists: when a list is cut, how, and which thread is called for it.
//!
//! *When.* While others are in the run, a worker keeps a part of its list on offer, so that one that runs out of work
//! finds some without waiting for the end of a node. It takes back untaken offers when it has nothing else. If it is
//! alone it offers only work for which it is worth calling the caller back or asking the pool for a helper.
//!
//! *How.* The older half of the list goes, the nodes with more behind them in a tree. Both parts are usually neighbours
//! in the array, so two workers seldom write to the same cache lines. Where the newest nodes are the most urgent and
//! other nodes of the array lie between them (the weights that a network reads along its way), the older half would be
//! needed last: there the list is dealt, in groups, and a few microseconds of work at a time, so that both workers keep
//! close to the urgent nodes.
//!
//! *How often.* Between two offers of a worker lies a node that it has run (`has_offered`). It may take back its own
//! offer at once, so without that rule a worker beside busy workers would pass its list to and fro and run nothing.
//!
//! *A pool with `parallel_for` only* lends all of its threads at once, and its caller works inside of that call
//! (`Role::CallerInBulk`). When the others have left it, and the caller's work is worth it, the caller puts everything
//! on offer and comes out, to go in again with all. So does a helper that is the last one there, while the caller waits
//! at the barrier; but not before it has run a node. The pool may have one thread to send and no more, and what is put
//! on offer would go round between that one and the caller for ever.
#![forbid(unsafe_code)]

use super::role::Role;
use super::shown::Show;
use super::worker::{EMPTY, FAST, Go, NONE, SHARE_NS, Worker};
use crate::base::time::now_ns;
use crate::graph::carry::queue::Offer;
use crate::sync::ambient;
use crate::threadpool;
use crate::trace::TraceEvent;
use std::sync::atomic::Ordering::*;

/// How long a worker without work looks around before it leaves: about the cost of bringing it back when it sleeps, and
/// longer than most nodes, whose end it waits for.
const LOOK_NS: u64 = 50_000;
/// How much cheap work a worker does, in nanoseconds, between two looks at the shown nodes, and the least that each
/// node counts for. Each worker that shows or takes something writes to the line that it looks at. While costs are
/// being measured, they may be unknown.
const SEE_NS: u64 = 1_000;
const CHEAPEST_NS: u64 = 30;
/// The amount that is dealt at once, in nanoseconds, and the number of groups.
const DEAL_NS: u64 = 32_000;
const GROUPS: u64 = 4;
/// A list is dealt if it reaches over more than 5 / 4 as many places of the array as it has nodes, later ones last.
const SPARSE: (u64, u64) = (4, 5);
/// The most nodes that are looked at to find the middle of a list.
const LONGEST_WALK: usize = 256;
/// After a list had nothing worth sharing: how many nodes later to look again.
const PATIENCE: u32 = 64;
/// Workers in the run, if a helper is the only one within a `parallel_for`: the run's caller is in it outside of that.
const CALLER_AND_ONE: u64 = 2;
/// A helper that took less than this many hops' worth of work was not worth its wake-up.
const WORTHWHILE_HOPS: u64 = 4;

fn clamp(worth_ns: u64) -> u32 {
    u32::try_from(worth_ns).unwrap_or(u32::MAX)
}

impl<const MODE: u8> Worker<'_, MODE> {
    /// Offers a part of the list, if a thread may take it.
    pub(in crate::graph) fn share(&mut self) -> Go {
        let state = self.state;
        let Some(queue) = self.own.map(|own| &state.queues[own]) else { return Go::On };
        if self.list.first == NONE {
            // Worths may have been recomputed since the nodes were put on the list: the sum is an estimate.
            self.list.worth_ns = 0;
            return Go::On;
        }
        if self.patience > 0 {
            self.patience -= 1;
            return Go::On;
        }
        if self.has_offered {
            return Go::On;
        }
        // ORDERING: Relaxed; all are hints, a superfluous helper finds nothing and leaves.
        let company = queue.is_empty() && state.latch.inside() > 1;
        let may_call = state.helpers.is_away() && self.list.worth_ns > self.hop_ns();
        let asked = state.helpers.asked();
        let may_ask = self.list.worth_ns > state.ask_above_ns.load(Relaxed)
            && if self.role.is_in_bulk() { self.is_alone_in_bulk() } else { asked < state.helpers.width() };
        if !company && !may_ask && !may_call {
            return Go::On;
        }
        if may_ask && self.role.is_in_bulk() {
            return Go::Out;
        }
        let Some(offer) = self.cut(may_ask) else {
            self.patience = PATIENCE;
            return Go::On;
        };
        self.has_offered = queue.push(offer);
        if self.has_offered {
            self.trace_note(TraceEvent::Offer, offer.first, NONE);
        }
        if !self.has_offered {
            self.append(offer);
        } else if may_call && state.helpers.call_back() {
            state.calls.news.advance(1);
        } else if may_ask && !state.helpers.is_hungry() {
            self.ask();
        }
        Go::On
    }

    /// The next node in a run that shows nodes: `next`, or the newest of the list, unless something more urgent is
    /// shown. `None`: there are only offers of others, which `take` finds.
    pub(in crate::graph) fn choose(&mut self, next: Option<u32>) -> Option<u32> {
        let state = self.state;
        let mut next = next;
        loop {
            if self.out {
                return next.or_else(|| self.pop_one());
            }
            let Some(node) = next.or_else(|| self.pop_one()) else {
                // An offered feeder may be more urgent than all shown nodes.
                let place = state.ready.first()?;
                if self.is_offer_before(place) {
                    return None;
                }
                if let Some(node) = self.takes(place) {
                    return Some(node);
                }
                continue;
            };
            next = None;
            let is_cheap = state.place_of(self.show, node).is_none();
            if !is_cheap || self.has_shown || MODE != FAST || self.unseen_ns >= SEE_NS {
                self.unseen_ns = 0;
                if state.calls.returns.any() {
                    // A completed node may lead to something more urgent than all of this.
                    self.push(node);
                    return None;
                }
                if let Some(place) = state.ready.first()
                    && !state.is_before(self.show, node, place)
                {
                    self.push(node);
                    if let Some(node) = self.takes(place) {
                        return Some(node);
                    }
                    continue;
                }
            }
            if is_cheap {
                self.unseen_ns += self.worth(node) + CHEAPEST_NS;
                if std::mem::take(&mut self.has_shown) {
                    self.call_others();
                }
                return if self.list.worth_ns > SHARE_NS { self.weigh_up(node) } else { Some(node) };
            }
            if self.list.first != NONE && self.is_more_urgent(self.list.first, node) {
                self.push(node);
            } else if state.place_of(self.show, node).is_some_and(|place| self.is_offer_before(place)) {
                // An offered feeder.
                self.push(node);
                return None;
            } else if let Some(node) = self.go_into(node) {
                return Some(node);
            }
        }
    }

    /// Takes the node that is shown at this place, unless another worker has, and goes into it.
    fn takes(&mut self, place: usize) -> Option<u32> {
        if !self.state.ready.remove(place) {
            return None;
        }
        let node = self.state.node_at(self.show, place);
        self.taken_ns += self.worth(node).max(1);
        self.go_into(node)
    }

    /// Before a worker goes into a dear node: its other nodes are put where others see them, and a thread is called for
    /// them. Returns the node to run; `None`: this one was put there too, and the worker must look again.
    fn go_into(&mut self, mut node: u32) -> Option<u32> {
        let state = self.state;
        if let Some(older) = state.take_older(self.show, node) {
            self.push(node);
            node = older;
        }
        if self.list.first != NONE && !self.offers_list() {
            // No room, or no queue: cheap nodes come first.
            self.push(node);
            return self.pop_one();
        }
        self.has_shown = false;
        if !state.shows_work() || !state.helpers.is_missed() {
            return Some(node);
        }
        match self.role {
            Role::BulkCaller => {
                // It comes back late, so others may have this one as well.
                self.push(node);
                let place = state.place_of(self.show, node)?;
                (!self.ask() && state.ready.remove(place)).then_some(node)
            }
            Role::CallerInBulk | Role::BulkHelper if self.is_alone_in_bulk() => {
                self.push(node);
                self.out = true;
                None
            }
            _ => {
                self.call_one();
                Some(node)
            }
        }
    }

    /// Puts the whole list on offer; false if there is no room.
    fn offers_list(&mut self) -> bool {
        let offer = Offer { first: self.list.first, worth_ns: clamp(self.list.worth_ns) };
        let offered = self.own.is_some_and(|own| self.state.queues[own].push(offer));
        if offered {
            self.list = EMPTY;
            self.trace_note(TraceEvent::Offer, offer.first, NONE);
        }
        offered
    }

    /// Whether this worker, within a `parallel_for`, must leave it so that there are others again.
    fn is_alone_in_bulk(&self) -> bool {
        let (helpers, latch) = (&self.state.helpers, &self.state.latch);
        match self.role {
            Role::CallerInBulk => helpers.asked() == 0,
            // The pool has left the caller out, or it waits at the barrier.
            Role::BulkHelper => {
                self.has_run && helpers.have_left() && !helpers.is_away() && latch.inside() == CALLER_AND_ONE
            }
            _ => false,
        }
    }

    fn is_more_urgent(&self, node: u32, than: u32) -> bool {
        self.show == Show::All || self.learned.rank(node) > self.learned.rank(than)
    }

    fn is_offer_before(&self, place: usize) -> bool {
        let first = self.state.queues.iter().find_map(|queue| queue.peek());
        first.is_some_and(|first| self.state.is_before(self.show, first, place))
    }

    /// Something is shown: calls a thread for it if none looks around.
    fn call_others(&mut self) {
        if self.state.helpers.is_missed() && !matches!(self.role, Role::BulkCaller | Role::CallerInBulk) {
            self.call_one();
        }
    }

    fn call_one(&mut self) {
        let state = self.state;
        if state.helpers.call_back() {
            state.calls.news.advance(1);
        } else if self.role != Role::BulkHelper {
            self.ask();
        }
    }

    /// Puts the whole list on offer, and is on its way out; false if there is no room.
    #[cold]
    pub(in crate::graph) fn offer_all(&mut self) -> bool {
        let offered = self.offers_list();
        if offered {
            self.out = true;
            self.has_offered = true;
        }
        offered
    }

    /// Cuts off the older half of the list (all of it if this worker asks for helpers and is about to block in
    /// `parallel_for`). `None` if that part is not worth sharing.
    fn cut(&mut self, asks: bool) -> Option<Offer> {
        if self.role == Role::BulkCaller && asks {
            let list = std::mem::replace(&mut self.list, EMPTY);
            return Some(Offer { first: list.first, worth_ns: clamp(list.worth_ns) });
        }
        let half = self.list.worth_ns / 2;
        let mut last = self.list.first;
        let mut kept = self.worth(last);
        let mut count = 1;
        // Not further than this: a long list may have its worth far behind, and would be walked again and again.
        for _ in 0..LONGEST_WALK {
            let next = self.next_of(last);
            if next == NONE || kept + self.worth(next) > half {
                break;
            }
            last = next;
            kept += self.worth(last);
            count += 1;
        }
        let span = u64::from(last.saturating_sub(self.list.first));
        if SPARSE.0 * span > SPARSE.1 * count && half >= 2 * SHARE_NS {
            return self.deal();
        }
        let first = self.next_of(last);
        if first == NONE && last == self.list.first && kept >= SHARE_NS {
            // The only one: this worker has a node in hand, and would come to it later than a helper.
            self.list = EMPTY;
            return Some(Offer { first: last, worth_ns: clamp(kept) });
        }
        let worth_ns = self.list.worth_ns.saturating_sub(kept);
        if first == NONE || worth_ns < SHARE_NS {
            return None;
        }
        self.link(last, NONE);
        self.list.worth_ns = kept;
        Some(Offer { first, worth_ns: clamp(worth_ns) })
    }

    /// Cuts the list in groups, which go to this worker and to the offer by turns. `None` if all nodes that count are
    /// far behind.
    fn deal(&mut self) -> Option<Offer> {
        let most = (self.list.worth_ns / 2).min(DEAL_NS);
        let (mut kept, mut given) = (Hand::EMPTY, Hand::EMPTY);
        let (mut node, mut keeps, mut group_ns) = (self.list.first, true, 0);
        for _ in 0..LONGEST_WALK {
            let hand = if keeps { &mut kept } else { &mut given };
            if hand.last == NONE {
                hand.first = node;
            } else {
                self.link(hand.last, node);
            }
            hand.last = node;
            hand.worth_ns += self.worth(node);
            group_ns += self.worth(node);
            node = self.next_of(node);
            if group_ns >= most / GROUPS {
                (keeps, group_ns) = (!keeps, 0);
            }
            if node == NONE || given.worth_ns >= most {
                break;
            }
        }
        self.link(kept.last, node);
        if given.last == NONE {
            return None;
        }
        self.link(given.last, NONE);
        self.list.worth_ns = self.list.worth_ns.saturating_sub(given.worth_ns);
        Some(Offer { first: given.first, worth_ns: clamp(given.worth_ns) })
    }

    /// Undoes `cut`.
    #[cold]
    fn append(&mut self, offer: Offer) {
        self.list.worth_ns += u64::from(offer.worth_ns);
        if self.list.first == NONE {
            self.list.first = offer.first;
            return;
        }
        let mut last = self.list.first;
        while self.next_of(last) != NONE {
            last = self.next_of(last);
        }
        self.link(last, offer.first);
    }

    /// Asks the pool for one more helper, or for all; false if none comes. After a refusal this run asks no more.
    fn ask(&mut self) -> bool {
        let (state, Some(pool)) = (self.state, self.pool) else { return false };
        // On a pool with `parallel_for` only, a worker outside of it asks for all.
        if (self.role != Role::BulkCaller && !pool.can_spawn()) || !state.helpers.take_place() {
            return false;
        }
        if self.role == Role::BulkCaller {
            let job = state.invitation();
            let helpers = pool.take_helpers(state.helpers.width() as usize, pool.num_threads());
            state.helpers.come(helpers as u32);
            if helpers == 0 {
                self.patience = PATIENCE;
                return false;
            }
            // Inside it works as another worker, with a queue of its own: there is one for each thread, not two.
            if let Some(own) = self.own.take() {
                state.owners.give_back(own);
            }
            state.helpers.opens_bulk();
            let accepted = {
                let _frame = ambient::enter(ambient::ActiveWork::Bulk(state.id));
                pool.spawn_bulk_taken(job, self.generation, helpers)
            };
            self.own = state.owners.claim();
            self.trace_note(TraceEvent::Ask, NONE, if accepted { helpers as u32 } else { 0 });
            // Later work is worth another region.
            match accepted {
                true => state.helpers.come(0),
                false => state.helpers.fill_places(),
            }
            return accepted;
        }
        let comes = state.bring_one(pool, self.generation, self.hop_ns());
        self.trace_note(TraceEvent::Ask, NONE, u32::from(comes));
        if !comes {
            self.patience = PATIENCE;
        }
        comes
    }

    /// Whether a worker that has found nothing may leave.
    pub(in crate::graph) fn may_leave(&mut self) -> bool {
        let state = self.state;
        let was_asked_for = matches!(self.role, Role::Helper | Role::BulkHelper) && !self.has_made_room;
        let leaves = state.helpers.leaves(was_asked_for, || state.shows_work());
        self.has_made_room |= was_asked_for && leaves;
        leaves
    }

    /// A helper leaves: another one may be asked for, with a higher threshold if this one was not worth it.
    pub(in crate::graph) fn make_room(&self) {
        let state = self.state;
        if self.taken_ns < self.hop_ns().saturating_mul(WORTHWHILE_HOPS) {
            let above = state.ask_above_ns.load(Relaxed);
            state.ask_above_ns.store(above.saturating_mul(2), Relaxed);
        }
        if !self.has_made_room {
            state.helpers.give_place();
        }
    }

    /// An offer, from the own queue first.
    pub(in crate::graph) fn take(&self) -> Option<Offer> {
        let queues = &self.state.queues;
        let own = self.own.unwrap_or(0);
        (0..queues.len()).find_map(|i| queues[(own + i) % queues.len()].take())
    }

    /// While this thread looks around: helps with a loop of the run that wants more threads. `passed`: places of loops
    /// with which there was nothing more to do, as bits; they count again when their loops are over.
    #[inline]
    fn helps_with_loop(&mut self, passed: &mut u64) -> bool {
        let (state, Some(pool)) = (self.state, self.pool) else { return false };
        let wanted = threadpool::help_wanted(pool);
        let places = wanted & !*passed;
        *passed &= wanted;
        if places == 0 {
            return false;
        }
        // As one who leaves: who shows something now calls others for it, and what was shown before comes first.
        state.helpers.has_looked();
        let begin = now_ns();
        let is_free = state.helpers.sees_nothing(|| state.shows_work());
        let helped = is_free && threadpool::help_region_of(state.id, pool, places);
        if is_free {
            *passed |= places;
        }
        if helped {
            self.taken_ns += (now_ns() - begin).max(1);
        }
        state.helpers.looks();
        helped
    }

    /// Reports the ends reached, and looks for offers for a bounded time. Helps with a loop of the run meanwhile that
    /// its threads share.
    pub(in crate::graph) fn look_around(&mut self) -> Option<Offer> {
        let state = self.state;
        state.latch.finish(std::mem::take(&mut self.done));
        if state.latch.is_finished() || state.latch.inside() == 1 {
            // Alone: there can be no offers.
            return self.take();
        }
        state.helpers.looks();
        let (mut start, mut passed) = (now_ns(), 0);
        let offer = loop {
            if let Some(offer) = self.take() {
                break Some(offer);
            }
            if !state.ready.is_empty() {
                break None;
            }
            if self.helps_with_loop(&mut passed) {
                start = now_ns();
            }
            if state.latch.is_finished() || state.calls.returns.any() || now_ns() - start > LOOK_NS {
                break None;
            }
            std::hint::spin_loop();
        };
        state.helpers.has_looked();
        offer
    }
}

/// A part of a list that is being dealt.
struct Hand {
    first: u32,
    last: u32,
    worth_ns: u64,
}

impl Hand {
    const EMPTY: Hand = Hand { first: NONE, last: NONE, worth_ns: 0 };
}
