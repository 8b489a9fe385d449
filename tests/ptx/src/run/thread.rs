//! One thread: its windows of slots, its calls, and the loop that runs operations.

use super::atomic;
use super::call::{self, Calls};
use super::fault::{FaultKind, Trouble};
use super::memory::{Access, Bytes, Memory, Reach, load, store};
use crate::number::{float, integer};
use crate::program::{CallSite, Callee, FUNCTIONS, Function, Op, Passed, Program, Special, VectorSite};

/// The most bytes that a thread has of local memory.
const LOCAL_LIMIT: u64 = 512 << 10;
const DEPTH_LIMIT: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Ready,
    /// At the operation `pc`, which is a barrier or an exchange and has not been done.
    AtBarrier,
    AtExchange,
    Exited,
}

/// Where a call goes back to.
struct Return {
    function: u32,
    /// The call's operation.
    pc: u32,
    window: usize,
    frame: u64,
}

#[derive(Default)]
pub struct Thread {
    pub index: [u32; 3],
    pub number: u32,
    pub state: Option<State>,
    pub function: u32,
    pub pc: u32,
    slots: Vec<u64>,
    /// Where the slots of the current call begin.
    window: usize,
    frame: u64,
    returns: Vec<Return>,
    local: Bytes,
}

/// What all threads of a block share.
pub struct World<'a> {
    pub program: &'a Program,
    pub blocks: [u32; 3],
    pub threads: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    pub total_shared: u32,
    pub shared: Bytes,
    pub parameters: Bytes,
    pub memory: &'a mut dyn Memory,
    pub calls: &'a mut dyn Calls,
    /// Operations so far.
    pub steps: u64,
    /// More than so many are a fault.
    pub limit: u64,
}

impl Thread {
    pub fn state(&self) -> State {
        self.state.unwrap_or(State::Exited)
    }

    /// Back to the entry's beginning, for the next block.
    pub fn begin(&mut self, world: &World, number: u32) {
        let [x, y, _] = world.threads;
        self.index = [number % x, number / x % y, number / (x * y)];
        self.number = number;
        self.state = Some(State::Ready);
        self.slots.clear();
        self.returns.clear();
        self.local.clear();
        (self.function, self.pc, self.window, self.frame) = (0, 0, 0, 0);
        let entry = &world.program.functions[0];
        self.local.resize(entry.frame_bytes.next_multiple_of(16).into());
        self.open(entry, world);
    }

    /// A window of slots for a function, at the end of all.
    fn open(&mut self, function: &Function, world: &World) {
        self.window = self.slots.len();
        self.slots.extend_from_slice(&function.template);
        for (slot, special) in &function.specials {
            self.slots[self.window + *slot as usize] = self.special(*special, world);
        }
    }

    fn special(&self, special: Special, world: &World) -> u64 {
        let lane = self.number % 32;
        u64::from(match special {
            Special::Thread(axis) => self.index[axis],
            Special::Threads(axis) => world.threads[axis],
            Special::Block(axis) => world.block[axis],
            Special::Blocks(axis) => world.blocks[axis],
            Special::Lane => lane,
            Special::Warp => self.number / 32,
            Special::Warps => world.threads.iter().product::<u32>().div_ceil(32),
            Special::Zero => 0,
            Special::Lanes(order, or_equal) => (0..32u32)
                .filter(|other| other.cmp(&lane) == order || or_equal && *other == lane)
                .fold(0, |set, other| set | 1 << other),
            Special::DynamicShared => world.dynamic_shared,
            Special::TotalShared => world.total_shared,
        })
    }

    /// A slot of the current call.
    pub fn get(&self, slot: u32) -> u64 {
        self.slots[self.window + slot as usize]
    }

    pub fn set(&mut self, slot: u32, value: u64) {
        self.slots[self.window + slot as usize] = value;
    }

    /// Runs until the thread waits, exits, or has done about `quantum` operations. After trouble `pc` is at the
    /// operation.
    pub fn run(&mut self, world: &mut World, quantum: i64) -> Result<(), Trouble> {
        let mut left = quantum;
        let result = loop {
            match self.run_function(world, &mut left) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(trouble) => break Err(trouble),
            }
        };
        world.steps += (quantum - left) as u64;
        result
    }

    /// Runs within one function; true if it goes on in another.
    fn run_function(&mut self, world: &mut World, left: &mut i64) -> Result<bool, Trouble> {
        let program = world.program;
        let function = &program.functions[self.function as usize];
        let ops = function.ops.as_slice();
        let slots = &mut self.slots[self.window..][..function.template.len()];
        let mut reach = Reach {
            memory: world.memory,
            shared: &mut world.shared,
            local: &mut self.local,
            parameters: &mut world.parameters,
            frame: self.frame,
        };
        let mut pc = self.pc as usize;
        macro_rules! at {
            ($slot:expr) => {
                slots[$slot as usize]
            };
        }
        macro_rules! attempt {
            ($what:expr) => {
                match $what {
                    Ok(value) => value,
                    Err(trouble) => {
                        self.pc = pc as u32;
                        return Err(trouble);
                    }
                }
            };
        }
        loop {
            *left -= 1;
            match ops[pc] {
                Op::F1 { f, d, a } => at!(d) = f(at!(a)),
                Op::F2 { f, d, a, b } => at!(d) = f(at!(a), at!(b)),
                Op::F3 { f, d, a, b, c } => at!(d) = f(at!(a), at!(b), at!(c)),
                Op::F4 { f, d, a, b, c, e } => at!(d) = f(at!(a), at!(b), at!(c), at!(e)),
                Op::Move { d, a } => at!(d) = at!(a),
                Op::AddWord { d, a, b } => at!(d) = (at!(a) as u32).wrapping_add(at!(b) as u32).into(),
                Op::AddLong { d, a, b } => at!(d) = at!(a).wrapping_add(at!(b)),
                Op::AddSingle { d, a, b } => at!(d) = float::add_nearest(at!(a), at!(b)),
                Op::MultiplySingle { d, a, b } => at!(d) = float::multiply_nearest(at!(a), at!(b)),
                Op::MultiplyAddWord { d, a, b, c } => at!(d) = integer::multiply_add(at!(a), at!(b), at!(c)),
                Op::Guard { p, when, count } => {
                    *left += 1;
                    if (at!(p) != 0) != when {
                        pc += count as usize;
                    }
                }
                Op::Jump { to } => {
                    pc = to as usize;
                    if *left <= 0 {
                        self.pc = pc as u32;
                        return Ok(false);
                    }
                    continue;
                }
                Op::JumpIf { p, when, to } => {
                    if (at!(p) != 0) == when {
                        pc = to as usize;
                        if *left <= 0 {
                            self.pc = pc as u32;
                            return Ok(false);
                        }
                        continue;
                    }
                }
                Op::JumpTable { a, table } => {
                    let targets = &function.tables[table as usize];
                    let index = at!(a);
                    let Some(target) = targets.get(index as usize) else {
                        self.pc = pc as u32;
                        let text = format!("branch {index} of {}", targets.len());
                        return Err(Trouble::new(FaultKind::Trap, text));
                    };
                    pc = *target as usize;
                    continue;
                }
                Op::Load { window, size, d, a, offset } => {
                    let address = at!(a).wrapping_add_signed(offset.into());
                    let host = attempt!(reach.place(window, address, size.into(), Access::Read));
                    // SAFETY: `place` gave these bytes for this access, and its address is aligned.
                    at!(d) = unsafe { load(host, size.into()) };
                }
                Op::Store { window, size, s, a, offset } => {
                    let address = at!(a).wrapping_add_signed(offset.into());
                    let host = attempt!(reach.place(window, address, size.into(), Access::Write));
                    // SAFETY: as for Load.
                    unsafe { store(host, size.into(), at!(s)) };
                }
                Op::LoadVector { site } => {
                    attempt!(vector(&function.vectors[site as usize], slots, &mut reach, true));
                }
                Op::StoreVector { site } => {
                    attempt!(vector(&function.vectors[site as usize], slots, &mut reach, false));
                }
                Op::FrameAddress { d, offset } => at!(d) = reach.frame + u64::from(offset),
                Op::Clock { d, wide, real } => {
                    let now = if real {
                        // A kernel asks for the time to let some pass: the processor is others' meanwhile.
                        std::thread::sleep(std::time::Duration::from_micros(20));
                        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                        since.unwrap_or_default().as_nanos() as u64
                    } else {
                        // One operation a cycle, over all threads.
                        world.steps.wrapping_add_signed(-*left).wrapping_add(1 << 20)
                    };
                    at!(d) = if wide { now } else { now as u32 as u64 };
                }
                Op::Atomic { site } => {
                    let site = &function.atomics[site as usize];
                    let address = at!(site.a).wrapping_add_signed(site.offset.into());
                    let size = site.size.into();
                    let host = attempt!(reach.place(site.window, address, size, Access::Atomic));
                    // SAFETY: as for Load; the access is for writing too.
                    at!(site.d) = unsafe { atomic::update(host, size, site.f, at!(site.b), at!(site.c)) };
                }
                Op::Nothing => {}
                Op::Exchange { .. } => {
                    self.pc = pc as u32;
                    self.state = Some(State::AtExchange);
                    return Ok(false);
                }
                Op::Barrier { .. } => {
                    self.pc = pc as u32;
                    self.state = Some(State::AtBarrier);
                    return Ok(false);
                }
                Op::Exit => {
                    self.pc = pc as u32;
                    self.state = Some(State::Exited);
                    return Ok(false);
                }
                Op::Call { site } => {
                    self.pc = pc as u32;
                    self.call(&function.calls[site as usize], world)?;
                    return Ok(true);
                }
                Op::Return => {
                    self.pc = pc as u32;
                    self.go_back(program);
                    return Ok(true);
                }
                Op::Trap => {
                    self.pc = pc as u32;
                    return Err(Trouble::new(FaultKind::Trap, "the kernel gave up by itself".to_string()));
                }
            }
            pc += 1;
        }
    }

    fn call(&mut self, site: &CallSite, world: &mut World) -> Result<(), Trouble> {
        let trouble = |kind, text| Err(Trouble::new(kind, text));
        let index = match &site.callee {
            Callee::Extern(name) => {
                let arguments = site.arguments.iter().map(|passed| self.bytes(*passed)).collect();
                let sizes: Vec<_> = site.returns.iter().map(|passed| passed.size() as usize).collect();
                let result = call::outside(name, arguments, sizes.first().copied().unwrap_or(0), self, world)?;
                if let Some(place) = site.returns.first() {
                    self.put(*place, &result);
                }
                self.pc += 1;
                return Ok(());
            }
            Callee::Function(index) => *index,
            Callee::Address(slot) => {
                let address = self.get(*slot);
                let number = address.wrapping_sub(FUNCTIONS) / 16;
                let known = world.program.indices.get(number as usize).copied().flatten();
                match known.filter(|index| address.is_multiple_of(16) && *index != 0) {
                    Some(index) => index,
                    None => return trouble(FaultKind::Trap, format!("{address:#x} is the address of no function")),
                }
            }
        };
        let function = &world.program.functions[index as usize];
        let sizes = |passed: &[Passed]| passed.iter().map(|p| p.size()).collect::<Vec<_>>();
        let fits = |given: &[Passed], taken: &[Passed]| {
            let (given, taken) = (sizes(given), sizes(taken));
            given.len() == taken.len() && given.iter().zip(&taken).all(|(g, t)| g == t || *g == 0)
        };
        if !fits(&site.arguments, &function.parameters) || !fits(&site.returns, &function.returns) {
            let text = format!(
                "'{}' takes {:?} bytes and gives {:?}, called with {:?} and {:?}",
                function.name,
                sizes(&function.parameters),
                sizes(&function.returns),
                sizes(&site.arguments),
                sizes(&site.returns)
            );
            return trouble(FaultKind::Trap, text);
        }
        let frame = self.local.length();
        let end = frame + u64::from(function.frame_bytes.next_multiple_of(16));
        if end > LOCAL_LIMIT || self.returns.len() >= DEPTH_LIMIT {
            let text = format!("calls nest too deep: {} of them with {end} bytes", self.returns.len() + 1);
            return trouble(FaultKind::Stack, text);
        }
        let passed: Vec<Vec<u8>> = site.arguments.iter().map(|passed| self.bytes(*passed)).collect();
        self.returns.push(Return { function: self.function, pc: self.pc, window: self.window, frame: self.frame });
        self.local.resize(end);
        self.frame = frame;
        self.function = index;
        self.pc = 0;
        self.open(function, world);
        for (place, bytes) in function.parameters.iter().zip(passed) {
            self.put(*place, &bytes);
        }
        Ok(())
    }

    fn go_back(&mut self, program: &Program) {
        let callee = &program.functions[self.function as usize];
        let results: Vec<Vec<u8>> = callee.returns.iter().map(|passed| self.bytes(*passed)).collect();
        let back = self.returns.pop().expect("a function that is no entry was called");
        self.slots.truncate(self.window);
        self.local.resize(self.frame);
        (self.function, self.pc, self.window, self.frame) = (back.function, back.pc, back.window, back.frame);
        let Op::Call { site } = program.functions[self.function as usize].ops[self.pc as usize] else {
            unreachable!("a call returns to its operation")
        };
        let site = &program.functions[self.function as usize].calls[site as usize];
        for (place, bytes) in site.returns.iter().zip(results) {
            self.put(*place, &bytes);
        }
        self.pc += 1;
    }

    /// What is passed, as bytes.
    fn bytes(&mut self, passed: Passed) -> Vec<u8> {
        match passed {
            Passed::Slot { slot, size: 0 } => self.get(slot).to_le_bytes().to_vec(),
            Passed::Slot { slot, size } => self.get(slot).to_le_bytes()[..size as usize].to_vec(),
            Passed::Frame { offset, size } => self.local.read(self.frame + u64::from(offset), size as usize),
        }
    }

    fn put(&mut self, place: Passed, bytes: &[u8]) {
        match place {
            Passed::Slot { slot, size } => {
                let mut word = [0; 8];
                let size = (size as usize).min(bytes.len());
                word[..size].copy_from_slice(&bytes[..size]);
                self.set(slot, u64::from_le_bytes(word));
            }
            Passed::Frame { offset, size } => {
                let size = (size as usize).min(bytes.len());
                self.local.write(self.frame + u64::from(offset), &bytes[..size]);
            }
        }
    }

    /// Everything that this thread reaches, and whom it can call.
    pub fn reach<'a>(&'a mut self, world: &'a mut World) -> (Reach<'a>, &'a mut dyn Calls) {
        let reach = Reach {
            memory: world.memory,
            shared: &mut world.shared,
            local: &mut self.local,
            parameters: &mut world.parameters,
            frame: self.frame,
        };
        (reach, world.calls)
    }
}

fn vector(site: &VectorSite, slots: &mut [u64], reach: &mut Reach, loads: bool) -> Result<(), Trouble> {
    let (size, count) = (u32::from(site.size), site.slots.len() as u32);
    let address = slots[site.a as usize].wrapping_add_signed(site.offset.into());
    let access = if loads { Access::Read } else { Access::Write };
    let host = reach.place(site.window, address, size * count, access)?;
    for (at, slot) in site.slots.iter().enumerate() {
        // SAFETY: `place` gave all elements for this access, each aligned as the whole is.
        unsafe {
            let element = host.add(at * size as usize);
            if loads {
                slots[*slot as usize] = load(element, size);
            } else {
                store(element, size, slots[*slot as usize]);
            }
        }
    }
    Ok(())
}
