//! Random programs: those that order what they must give what a sequence would and no race; those that leave one order
//! out give a race, whatever the order was this time.

use crate::cuda::*;
use crate::{call, ok};
use fake_cuda::abi::Handle;
use fake_cuda::testing::Driver;

const BLOCKS: usize = 5;
const WORDS: usize = 8;
const STREAMS: usize = 4;
const OPERATIONS: usize = 40;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// From this word to the block's end.
    Fill {
        to: usize,
        from_word: usize,
        value: u32,
    },
    Increment {
        of: usize,
        by: u32,
    },
    Copy {
        to: usize,
        from: usize,
    },
}

impl Act {
    fn draw(random: &mut Random) -> Act {
        let (a, b) = (random.below(BLOCKS), random.below(BLOCKS));
        match random.below(3) {
            0 => Act::Fill { to: a, from_word: random.below(WORDS), value: random.below(1000) as u32 },
            1 => Act::Increment { of: a, by: random.below(1000) as u32 },
            _ => Act::Copy { to: a, from: b },
        }
    }

    /// Words that are read and words that are written, as bits.
    fn uses(self) -> (u64, u64) {
        let block = |block: usize| ((1u64 << WORDS) - 1) << (block * WORDS);
        match self {
            Act::Fill { to, from_word, .. } => (0, block(to) & (u64::MAX << (to * WORDS + from_word))),
            Act::Increment { of, .. } => (block(of), block(of)),
            Act::Copy { to, from } => (block(from), block(to)),
        }
    }

    fn conflicts(self, other: Act) -> bool {
        let ((reads, writes), (other_reads, other_writes)) = (self.uses(), other.uses());
        (reads | writes) & other_writes != 0 || writes & other_reads != 0
    }

    fn simulate(self, memory: &mut [[u32; WORDS]; BLOCKS]) {
        match self {
            Act::Fill { to, from_word, value } => memory[to][from_word..].fill(value),
            Act::Increment { of, by } => memory[of].iter_mut().for_each(|word| *word = word.wrapping_add(by)),
            Act::Copy { to, from } => memory[to] = memory[from],
        }
    }
}

struct Device {
    context: Handle,
    fill: Handle,
    increment: Handle,
    blocks: [u64; BLOCKS],
    streams: [Handle; STREAMS],
}

impl Device {
    fn new() -> Device {
        let context = start();
        let module = module(&["fill", "increment"]);
        Device {
            context,
            fill: named(module, "fill"),
            increment: named(module, "increment"),
            blocks: [(); BLOCKS].map(|()| memory(WORDS * 4)),
            streams: [(); STREAMS].map(|()| stream()),
        }
    }

    fn kernel(&self, act: Act) -> Option<(Handle, [u64; 3])> {
        match act {
            Act::Fill { to, from_word, value } => {
                let start = self.blocks[to] + 4 * from_word as u64;
                Some((self.fill, [start, (WORDS - from_word) as u64, u64::from(value)]))
            }
            Act::Increment { of, by } => Some((self.increment, [self.blocks[of], WORDS as u64, u64::from(by)])),
            Act::Copy { .. } => None,
        }
    }

    fn enqueue(&self, act: Act, stream: Handle) {
        match (act, self.kernel(act)) {
            (_, Some((function, values))) => assert_eq!(launch(function, stream, &values), 0),
            (Act::Copy { to, from }, _) => {
                ok!(cuMemcpyDtoDAsync_v2(self.blocks[to], self.blocks[from], WORDS * 4, stream));
            }
            _ => unreachable!(),
        }
    }

    fn add(&self, graph: Handle, act: Act, before: &[Handle]) -> Handle {
        match (act, self.kernel(act)) {
            (_, Some((function, values))) => add_kernel(graph, before, function, &values),
            (Act::Copy { to, from }, _) => {
                let params = copy(self.blocks[to], self.blocks[from], WORDS * 4);
                let (mut node, context) = (Handle::NULL, self.context);
                let count = before.len();
                ok!(cuGraphAddMemcpyNode(out(&mut node), graph, before.as_ptr(), count, &raw const params, context));
                node
            }
            _ => unreachable!(),
        }
    }

    fn clear(&self) {
        self.blocks.iter().for_each(|block| ok!(cuMemsetD32_v2(*block, 0u32, WORDS)));
    }

    fn expect(&self, memory: &[[u32; WORDS]; BLOCKS]) {
        for (block, expected) in self.blocks.iter().zip(memory) {
            assert_eq!(read(*block, WORDS), expected);
        }
    }
}

/// Runs a program in streams; leaves out the wait of this number. False: it had no such wait.
fn run_streams(device: &Device, seed: u64, without: Option<usize>) -> bool {
    let mut random = Random(seed);
    let mut memory = [[0; WORDS]; BLOCKS];
    let mut done: Vec<(usize, Act)> = Vec::new();
    // By stream: which operations happen before its next one.
    let mut known = [0u64; STREAMS];
    let mut waits = 0;
    let mut is_left_out = false;
    device.clear();
    for index in 0..OPERATIONS {
        let (act, stream) = (Act::draw(&mut random), random.below(STREAMS));
        for (earlier, &(other, of)) in done.iter().enumerate().rev() {
            if other == stream || known[stream] >> earlier & 1 != 0 || !act.conflicts(of) {
                continue;
            }
            waits += 1;
            if without == Some(waits) {
                // What follows must not make up for it.
                is_left_out = true;
                continue;
            }
            if is_left_out {
                continue;
            }
            let mut event = Handle::NULL;
            ok!(cuEventCreate(out(&mut event), 2u32));
            ok!(cuEventRecord(event, device.streams[other]));
            ok!(cuStreamWaitEvent(device.streams[stream], event, 0u32));
            ok!(cuEventDestroy_v2(event));
            known[stream] |= known[other];
        }
        device.enqueue(act, device.streams[stream]);
        known[stream] |= 1 << index;
        act.simulate(&mut memory);
        done.push((stream, act));
        if is_left_out {
            break;
        }
        if random.below(12) == 0 {
            // The host waits for a stream: what it submits later is behind that.
            let waited = random.below(STREAMS);
            ok!(cuStreamSynchronize(device.streams[waited]));
            let seen = known[waited];
            known.iter_mut().for_each(|known| *known |= seen);
        }
    }
    ok!(cuCtxSynchronize());
    if without.is_none() {
        device.expect(&memory);
    }
    is_left_out
}

/// The same as a graph, with as few edges as needed.
fn run_graph(device: &Device, seed: u64, without: Option<usize>) -> bool {
    let mut random = Random(seed);
    let mut memory = [[0; WORDS]; BLOCKS];
    let mut done: Vec<(Handle, u64, Act)> = Vec::new();
    let (mut edges, mut is_left_out) = (0, false);
    let graph = graph();
    device.clear();
    for index in 0..OPERATIONS {
        let act = Act::draw(&mut random);
        let (mut known, mut before) = (0u64, Vec::new());
        for (earlier, (node, knows, of)) in done.iter().enumerate().rev() {
            if known >> earlier & 1 != 0 || !act.conflicts(*of) || is_left_out {
                continue;
            }
            edges += 1;
            if without == Some(edges) {
                is_left_out = true;
                continue;
            }
            known |= knows;
            before.push(*node);
        }
        let node = device.add(graph, act, &before);
        act.simulate(&mut memory);
        done.push((node, known | 1 << index, act));
        if is_left_out {
            break;
        }
    }
    let exec = instantiate(graph);
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphLaunch(exec, device.streams[0]));
    ok!(cuCtxSynchronize());
    ok!(cuGraphExecDestroy(exec));
    if without.is_none() {
        device.expect(&memory);
    }
    is_left_out
}

fn all(run: fn(&Device, u64, Option<usize>) -> bool) {
    let device = Device::new();
    for seed in 0..12 {
        run(&device, seed, None);
        assert_eq!(races(), [""; 0], "program {seed}");
    }
    let mut left_out = 0;
    for seed in 0..12 {
        for without in [1, 3, 6, 10] {
            let before = races().len();
            if run(&device, seed, Some(without)) {
                left_out += 1;
                assert!(races().len() > before, "program {seed} without order {without}");
            }
        }
    }
    assert!(left_out > 30, "{left_out}");
    // Nothing but races has come of it.
    assert_eq!(call!(cuCtxSynchronize()), 0);
}

#[test]
fn streams_are_ordered_by_what_orders_them() {
    for seed in ["", "1", "2"] {
        let driver = Driver::new().set("RACES", "report").set("SEED", seed);
        let Some(run) = driver.child("random::streams_are_ordered_by_what_orders_them") else {
            return all(run_streams);
        };
        run.succeeds();
    }
}

#[test]
fn graphs_are_ordered_by_their_edges() {
    for seed in ["", "1", "2"] {
        let driver = Driver::new().set("RACES", "report").set("SEED", seed);
        let Some(run) = driver.child("random::graphs_are_ordered_by_their_edges") else { return all(run_graph) };
        run.succeeds();
    }
}
