//! Whether the outputs of a call share memory with its other tensors.
//!
//! A few tensors are compared in pairs. More are sorted by address, so that each is compared only with its predecessor.
//! A program keeps the order of its last run (`Apart`): its next run usually has the same tensors, or others in the
//! same order, so one pass finds them sorted. Nothing is allocated then.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::memory::{heap, overlaps};
use smallvec::SmallVec;

/// Up to so many pairs are compared one by one.
const FEW_PAIRS: usize = 32;
/// Most tensors that a call without kept memory checks without allocating.
const INLINE: usize = 256;

/// A tensor's memory: its engine among those of the call, and its bytes. Addresses of different engines are not
/// comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorRange {
    pub engine: u32,
    pub data: usize,
    pub bytes: usize,
}

impl TensorRange {
    pub const NOWHERE: TensorRange = TensorRange { engine: 0, data: 0, bytes: 0 };

    pub fn host(data: *mut u8, bytes: usize) -> TensorRange {
        TensorRange { engine: 0, data: data as usize, bytes }
    }

    fn touches(self, other: TensorRange) -> bool {
        let range = |place: TensorRange| (place.data as *mut u8, place.bytes);
        self.engine == other.engine && overlaps(range(self), range(other))
    }
}

/// A tensor in the sorted list.
#[derive(Clone, Copy, Default)]
struct SortedTensor {
    place: TensorRange,
    /// The inputs come first.
    tensor: u32,
}

impl SortedTensor {
    fn key(&self) -> (u32, usize) {
        (self.place.engine, self.place.data)
    }
}

/// Memory for a check, and the order that the last one with as many tensors found.
#[derive(Default)]
pub struct Apart {
    /// By address, as of the last check.
    entries: Vec<SortedTensor>,
    /// The index of each tensor's entry.
    at: Vec<u32>,
}

impl Apart {
    /// Whether a check of so many tensors is done in pairs.
    #[inline]
    pub fn needs_nothing(inputs: usize, outputs: usize) -> bool {
        outputs * (inputs + outputs) <= FEW_PAIRS
    }

    /// Refuses an output that shares memory with an input or with another output.
    #[inline]
    pub fn check(
        &mut self,
        inputs: usize,
        input: impl Fn(usize) -> TensorRange,
        outputs: usize,
        output: impl Fn(usize) -> TensorRange,
    ) -> Result<()> {
        if Apart::needs_nothing(inputs, outputs) {
            return in_pairs(inputs, &input, outputs, &output);
        }
        let count = inputs + outputs;
        if self.at.len() != count {
            heap::whole(|| self.make_room(count))?;
        }
        let Apart { entries, at } = self;
        for (tensor, &at) in at.iter().enumerate() {
            let place = if tensor < inputs { input(tensor) } else { output(tensor - inputs) };
            entries[at as usize] = SortedTensor { place, tensor: tensor as u32 };
        }
        if !entries.is_sorted_by_key(SortedTensor::key) {
            entries.sort_unstable_by_key(SortedTensor::key);
            entries.iter().enumerate().for_each(|(now, entry)| at[entry.tensor as usize] = now as u32);
        }
        match first_shared(entries, inputs) {
            None => Ok(()),
            Some(shared) => Err(named(shared, inputs, &input, outputs, &output)),
        }
    }

    fn make_room(&mut self, count: usize) -> Result<()> {
        self.entries.try_reserve_exact(count.saturating_sub(self.entries.len())).map_err(|_| refused(count))?;
        self.at.try_reserve_exact(count.saturating_sub(self.at.len())).map_err(|_| refused(count))?;
        self.at.clear();
        self.at.extend(0..count as u32);
        self.entries.clear();
        self.entries.resize(count, SortedTensor::default());
        Ok(())
    }
}

fn refused(count: usize) -> Error {
    Error::exhausted("the check of a call's tensors", count * size_of::<SortedTensor>())
}

/// The first output that shares memory with any tensor; `entries` are sorted by address.
///
/// One pass: a tensor shares memory with one before it if it begins before one of those ends. If it is an output, it is
/// found; if an earlier one is, the one that reaches furthest is found: any other that shares memory with this one
/// shares it with that one as well, so it was found before.
fn first_shared(entries: &[SortedTensor], inputs: usize) -> Option<usize> {
    let mut first: Option<usize> = None;
    let mut find = |output: usize| first = Some(first.map_or(output, |first| first.min(output)));
    // The furthest ends of all earlier tensors and of earlier outputs; and which output.
    let (mut engine, mut reach, mut output_reach, mut furthest) = (0, 0, 0, 0);
    for SortedTensor { place, tensor } in entries.iter().filter(|entry| entry.place.bytes > 0) {
        if place.engine != engine {
            (engine, reach, output_reach) = (place.engine, 0, 0);
        }
        let end = place.data + place.bytes;
        if place.data < output_reach {
            find(furthest);
        }
        if let Some(output) = (*tensor as usize).checked_sub(inputs) {
            if place.data < reach {
                find(output);
            }
            if end > output_reach {
                (output_reach, furthest) = (end, output);
            }
        }
        reach = reach.max(end);
    }
    first
}

/// Names the tensor that an output shares memory with: an input, an earlier output, or a later one.
#[cold]
fn named(
    shared: usize,
    inputs: usize,
    input: &dyn Fn(usize) -> TensorRange,
    outputs: usize,
    output: &dyn Fn(usize) -> TensorRange,
) -> Error {
    let place = output(shared);
    if let Some(i) = (0..inputs).find(|&i| input(i).touches(place)) {
        return Error::invalid(format!("output {shared} shares memory with input {i}"));
    }
    let other = (0..outputs).find(|&other| other != shared && output(other).touches(place)).unwrap_or(shared);
    Error::invalid(format!("output {} shares memory with output {}", shared.max(other), shared.min(other)))
}

fn in_pairs(
    inputs: usize,
    input: &impl Fn(usize) -> TensorRange,
    outputs: usize,
    output: &impl Fn(usize) -> TensorRange,
) -> Result<()> {
    for o in 0..outputs {
        let place = output(o);
        let shares = (0..inputs).any(|i| input(i).touches(place)) || (0..o).any(|p| output(p).touches(place));
        if shares {
            return Err(named(o, inputs, input, outputs, output));
        }
    }
    Ok(())
}

/// Refuses an output that shares a part of its memory with an input.
#[inline]
pub fn check_whole(
    inputs: usize,
    input: impl Fn(usize) -> TensorRange,
    outputs: usize,
    output: impl Fn(usize) -> TensorRange,
) -> Result<()> {
    for (o, i) in (0..outputs).flat_map(|o| (0..inputs).map(move |i| (o, i))) {
        let (to, from) = (output(o), input(i));
        if to != from && to.touches(from) {
            let text = format!("output {o} shares a part of its memory with input {i}, expected all or nothing");
            return Err(Error::invalid(text));
        }
    }
    Ok(())
}

/// The same check for a call that keeps nothing. Up to `INLINE` tensors take no memory.
pub fn check_apart(
    inputs: usize,
    input: impl Fn(usize) -> TensorRange,
    outputs: usize,
    output: impl Fn(usize) -> TensorRange,
) -> Result<()> {
    if Apart::needs_nothing(inputs, outputs) {
        return in_pairs(inputs, &input, outputs, &output);
    }
    let mut entries = SmallVec::<[SortedTensor; INLINE]>::new();
    entries.try_reserve_exact(inputs + outputs).map_err(|_| refused(inputs + outputs))?;
    let places = (0..inputs).map(&input).chain((0..outputs).map(&output));
    entries.extend(places.zip(0..).map(|(place, tensor)| SortedTensor { place, tensor }));
    entries.sort_unstable_by_key(SortedTensor::key);
    match first_shared(&entries, inputs) {
        None => Ok(()),
        Some(shared) => Err(named(shared, inputs, &input, outputs, &output)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The definition, in pairs.
    fn plain(inputs: &[TensorRange], outputs: &[TensorRange]) -> bool {
        let mut all = outputs.iter().enumerate();
        all.all(|(o, out)| {
            !inputs.iter().any(|input| input.touches(*out)) && !outputs[..o].iter().any(|p| p.touches(*out))
        })
    }

    fn check(apart: &mut Apart, inputs: &[TensorRange], outputs: &[TensorRange]) -> Result<()> {
        apart.check(inputs.len(), |i| inputs[i], outputs.len(), |o| outputs[o])
    }

    fn at(data: usize, bytes: usize) -> TensorRange {
        TensorRange { engine: 0, data, bytes }
    }

    #[test]
    fn many_tensors_are_found_to_share_memory_or_not() {
        let inputs: Vec<_> = (0..40).map(|i| at(1000 + 16 * i, 24)).collect();
        let outputs: Vec<_> = (0..40).map(|o| at(4000 + 16 * o, 16)).collect();
        let mut apart = Apart::default();
        assert!(check(&mut apart, &inputs, &outputs).is_ok(), "inputs may share memory");
        let with = |o: usize, place: TensorRange| {
            let mut outputs = outputs.clone();
            outputs[o] = place;
            outputs
        };
        let mut message =
            |outputs: &[TensorRange]| check(&mut apart, &inputs, outputs).map_err(|error| error.message().to_owned());
        assert_eq!(message(&with(39, at(1016, 4))).unwrap_err(), "output 39 shares memory with input 0");
        assert_eq!(message(&with(39, at(4017, 4))).unwrap_err(), "output 39 shares memory with output 1");
        assert_eq!(message(&with(39, TensorRange { engine: 1, ..at(4017, 4) })), Ok(()));
        assert_eq!(message(&with(39, at(4017, 0))), Ok(()));
        assert_eq!(message(&outputs), Ok(()));
    }

    #[test]
    fn any_tensors_are_told_as_pairs_tell_them() {
        let mut random = 1u64;
        let mut draw = |n: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % n
        };
        let mut kept = Apart::default();
        let mut counts = [0; 2];
        for round in 0..20_000 {
            let (inputs, outputs) = (draw(12), 1 + draw(12));
            let space = [40, 400, 20_000][round % 3];
            let mut places = |count: usize| -> Vec<TensorRange> {
                (0..count).map(|_| TensorRange { engine: draw(2) as u32, data: draw(space), bytes: draw(9) }).collect()
            };
            let (inputs, outputs) = (places(inputs), places(outputs));
            let result = check(&mut kept, &inputs, &outputs);
            assert_eq!(result.is_ok(), plain(&inputs, &outputs), "{inputs:?} {outputs:?}");
            let alone = check_apart(inputs.len(), |i| inputs[i], outputs.len(), |o| outputs[o]);
            let text = |result: &Result<()>| result.as_ref().err().map(|error| error.message().to_owned());
            assert_eq!(text(&alone), text(&result));
            if let Err(error) = &result {
                let numbers: Vec<usize> = error.message().split(' ').filter_map(|word| word.parse().ok()).collect();
                let other = if error.message().contains("input") { inputs[numbers[1]] } else { outputs[numbers[1]] };
                assert!(outputs[numbers[0]].touches(other) && numbers.len() == 2);
            }
            counts[usize::from(result.is_ok())] += 1;
        }
        assert!(counts.iter().all(|&count| count > 2000), "{counts:?}");
    }
}
