//! What the lanes of a warp do together: shuffles, votes, matches, folds.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exchange {
    /// Only waiting: bar.warp.sync.
    Nothing,
    Shuffle(Shuffle),
    All,
    Any,
    Uniform,
    Ballot,
    MatchAny,
    MatchAll,
    /// With or without sign.
    Fold(Fold, bool),
    Elect,
    Active,
}

/// The operands of a lane, then its results.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lane {
    pub a: u64,
    pub b: u64,
    pub c: u64,
    pub d: u64,
    pub p: u64,
}

/// Fills in the results of the lanes in `members`.
pub fn exchange(what: Exchange, lanes: &mut [Lane; 32], members: u32) {
    let each = || (0..32).filter(move |lane| members >> lane & 1 == 1);
    let ballot = |lanes: &[Lane; 32]| each().filter(|lane| lanes[*lane].a != 0).fold(0u32, |set, lane| set | 1 << lane);
    let all = |lanes: &mut [Lane; 32], d: u64| each().for_each(|lane| lanes[lane].d = d);
    match what {
        Exchange::Nothing => {}
        Exchange::Shuffle(shuffle) => {
            let before = *lanes;
            for lane in each() {
                let (j, p) = partner(shuffle, lane as u32, before[lane].b as u32, before[lane].c as u32);
                lanes[lane].p = p.into();
                // What a lane that takes no part would give is not defined: bits that are no number.
                lanes[lane].d = if members >> j & 1 == 1 { before[j as usize].a } else { u32::MAX.into() };
            }
        }
        Exchange::All => all(lanes, u64::from(ballot(lanes) == members)),
        Exchange::Any => all(lanes, u64::from(ballot(lanes) != 0)),
        Exchange::Uniform => all(lanes, u64::from([0, members].contains(&ballot(lanes)))),
        Exchange::Ballot => all(lanes, ballot(lanes).into()),
        Exchange::Active => all(lanes, members.into()),
        Exchange::MatchAny => {
            let before = *lanes;
            for lane in each() {
                let same = each().filter(|other| before[*other].a == before[lane].a);
                lanes[lane].d = same.fold(0u32, |set, other| set | 1 << other).into();
            }
        }
        Exchange::MatchAll => {
            let first = each().next().map(|lane| lanes[lane].a);
            let same = each().all(|lane| Some(lanes[lane].a) == first);
            for lane in each() {
                lanes[lane].d = if same { members.into() } else { 0 };
                lanes[lane].p = same.into();
            }
        }
        Exchange::Fold(fold, signed) => {
            let values = each().map(|lane| lanes[lane].a as u32);
            let result = values.reduce(|x, y| match fold {
                Fold::Add => x.wrapping_add(y),
                Fold::Min if signed => (x as i32).min(y as i32) as u32,
                Fold::Max if signed => (x as i32).max(y as i32) as u32,
                Fold::Min => x.min(y),
                Fold::Max => x.max(y),
                Fold::And => x & y,
                Fold::Or => x | y,
                Fold::Xor => x ^ y,
            });
            all(lanes, result.unwrap_or(0).into());
        }
        Exchange::Elect => {
            let leader = members.trailing_zeros();
            for lane in each() {
                lanes[lane].d = leader.into();
                lanes[lane].p = u64::from(lane as u32 == leader);
            }
        }
    }
}

/// The lane that a shuffle reads, and whether it is in range; out of range a lane reads itself.
fn partner(shuffle: Shuffle, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let least = lane & segment;
    let most = least | clamp & !segment;
    let (j, p) = match shuffle {
        Shuffle::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= most as i32),
        Shuffle::Down => (lane + b, lane + b <= most),
        Shuffle::Butterfly => (lane ^ b, lane ^ b <= most),
        Shuffle::Index => (least | b & !segment, least | b & !segment <= most),
    };
    if p { (j, true) } else { (lane, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(a: impl Fn(usize) -> u64, b: u64, c: u64) -> [Lane; 32] {
        std::array::from_fn(|lane| Lane { a: a(lane), b, c, ..Lane::default() })
    }

    #[test]
    fn shuffles_stay_in_their_segments() {
        // Segments of 8 lanes.
        let c = 0x1807;
        let run = |shuffle, b, c| {
            let mut lanes = lanes(|lane| lane as u64, b, c);
            exchange(Exchange::Shuffle(shuffle), &mut lanes, u32::MAX);
            lanes.map(|lane| (lane.d, lane.p))
        };
        let down = run(Shuffle::Down, 3, c);
        assert_eq!(down[4], (7, 1));
        assert_eq!(down[5], (5, 0));
        let up = run(Shuffle::Up, 2, 0x1800);
        assert_eq!([up[8], up[9], up[10]], [(8, 0), (9, 0), (8, 1)]);
        let butterfly = run(Shuffle::Butterfly, 5, 31);
        assert_eq!(butterfly[6], (3, 1));
        let index = run(Shuffle::Index, 9, c);
        assert_eq!([index[0], index[17]], [(1, 1), (17, 1)]);
        let whole = run(Shuffle::Down, 31, 31);
        assert_eq!([whole[0], whole[1]], [(31, 1), (1, 0)]);
    }

    #[test]
    fn votes_and_matches_are_of_members_alone() {
        let run = |what, members| {
            let mut lanes = lanes(|lane| u64::from(lane % 3 == 0), 0, 0);
            exchange(what, &mut lanes, members);
            lanes[0]
        };
        assert_eq!(run(Exchange::Ballot, 0xFF).d, 0b100_1001);
        assert_eq!([run(Exchange::All, 0b1001).d, run(Exchange::All, 0b11).d], [1, 0]);
        assert_eq!([run(Exchange::Any, 0b11).d, run(Exchange::Uniform, 0b11).d], [1, 0]);
        assert_eq!(run(Exchange::MatchAny, 0xF).d, 0b1001);
        assert_eq!((run(Exchange::MatchAll, 0b1001).d, run(Exchange::MatchAll, 0b1001).p), (0b1001, 1));
        assert_eq!((run(Exchange::MatchAll, 0xF).d, run(Exchange::MatchAll, 0xF).p), (0, 0));
        assert_eq!(run(Exchange::Fold(Fold::Add, false), 0xFF).d, 3);
        assert_eq!(run(Exchange::Elect, 0xFF).p, 1);
        let mut missing = lanes(|lane| lane as u64, 4, 31);
        exchange(Exchange::Shuffle(Shuffle::Down), &mut missing, 0xF);
        assert_eq!(missing[1].d, u64::from(u32::MAX));
    }
}
