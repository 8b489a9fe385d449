//! Several users in one process: who waits for what, and who is told of which failure, how often. Drawn calls against a
//! model, on engines of the processor (lanes and a pool) and emulated ones, and the same from many threads at once.

#[path = "kit/mod.rs"]
mod kit;

use kit::random::Random;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_core::abi::WEIR_TIMEOUT_INFINITE as FOREVER;
use weir_core::base::{Code, Error, Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::{Domain, DomainId, Engine, EngineAttr, Extent, Scope, Stream, StreamAttr, sync_all, sync_each};
use weir_core::kernel::Task;
use weir_core::threadpool::ThreadPool;

/// What waits for everything is one test's at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Call<F>(F);

impl<F: Fn() -> Result<()> + Send + Sync> Task for Call<F> {
    fn run(&self) -> Result<()> {
        (self.0)()
    }

    fn adopt(&self) {}
}

fn enqueue(stream: &Stream, f: impl Fn() -> Result<()> + Send + Sync + 'static) {
    stream.enqueue_task(Arc::new(Call(f))).unwrap();
}

/// Failure number `number`; texts that tell of it have the number in them.
fn fail(stream: &Stream, number: usize) {
    enqueue(stream, move || Err(Error::new(Code::DataLoss, format!("<{number}>"))));
}

/// A gate: the stream is held up from when this returns until it is opened.
fn hold(stream: &Stream) -> Arc<AtomicBool> {
    let (begun, open) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (has_begun, is_open) = (Arc::clone(&begun), Arc::clone(&open));
    enqueue(stream, move || {
        has_begun.store(true, SeqCst);
        while !is_open.load(SeqCst) {
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    });
    eventually("a held stream has not begun", || begun.load(SeqCst));
    open
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

/// The numbers of the failures that a text tells of, in its order.
fn numbers(text: &str) -> Vec<usize> {
    text.split('<').skip(1).map(|part| part.split('>').next().unwrap().parse().unwrap()).collect()
}

fn told(result: Result<()>) -> Vec<usize> {
    result.map_or_else(|error| numbers(error.message()), |()| Vec::new())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Lanes,
    Pool,
    Emulated,
}

fn engine(domain: Option<&Ref<Domain>>, how: How, pool: &Ref<ThreadPool>) -> Ref<Engine> {
    kit::emulated::register();
    let kind = if how == How::Emulated { DeviceKind::EMULATED } else { DeviceKind::CPU };
    let mut attr = EngineAttr::new(kind);
    attr.domain = domain.cloned();
    if how == How::Pool {
        attr.set_threadpool(Some(pool.clone()));
    }
    Engine::create(kind, 0, Some(&attr)).unwrap()
}

fn stream(engine: &Ref<Engine>, name: String) -> Ref<Stream> {
    let mut attr = StreamAttr::new(engine.kind());
    (attr.asynchronous, attr.name) = (true, name);
    Stream::create(engine.clone(), attr).unwrap()
}

/// Who tells, as bits in `Failure`.
const ENGINE: u8 = 1;
const DOMAIN: u8 = 2;
const EVERYTHING: u8 = 4;

/// What the model knows of a failure; its number is its place.
struct Failure {
    engine: usize,
    told: u8,
    was_cleared: bool,
}

struct OneStream {
    engine: usize,
    stream: Ref<Stream>,
    /// And whether the stream has told it.
    failure: Option<(usize, bool)>,
    held: Option<Arc<AtomicBool>>,
}

/// Domains, engines in them, streams on those, and the model.
struct World {
    domains: Vec<Option<Ref<Domain>>>,
    /// With the place of its domain.
    engines: Vec<(Ref<Engine>, usize)>,
    streams: Vec<OneStream>,
    failures: Vec<Failure>,
    /// The scope, the domain that it is of, and how many failures there were.
    scopes: Vec<(Scope, Option<usize>, usize)>,
    named: usize,
}

/// A world that is given up holds nobody up.
impl Drop for World {
    fn drop(&mut self) {
        self.streams.iter().filter_map(|stream| stream.held.as_ref()).for_each(|gate| gate.store(true, SeqCst));
    }
}

impl World {
    fn make(random: &mut Random) -> World {
        // A worker may hold a queue of the last world's for a moment.
        eventually("engines are left", || {
            sync_each(Extent::Everything, FOREVER, 64).unwrap().is_ok_and(|all| all.is_empty())
        });
        let pool = kit::pools::named("", 3);
        let domains = [None, Some(Domain::create("left").unwrap()), Some(Domain::create("right").unwrap())];
        let mut world = World {
            domains: domains.into(),
            engines: Vec::new(),
            streams: Vec::new(),
            failures: Vec::new(),
            scopes: Vec::new(),
            named: 0,
        };
        for _ in 0..2 + random.below(4) {
            let domain = random.below(world.domains.len());
            let how = random.of(&[How::Lanes, How::Pool, How::Emulated]);
            world.engines.push((engine(world.domains[domain].as_ref(), how, &pool), domain));
        }
        for engine in 0..world.engines.len() {
            for _ in 0..1 + random.below(2) {
                let stream = world.stream(engine);
                world.streams.push(OneStream { engine, stream, failure: None, held: None });
            }
        }
        world
    }

    fn stream(&mut self, engine: usize) -> Ref<Stream> {
        self.named += 1;
        stream(&self.engines[engine].0, format!("s{}", self.named))
    }

    fn extent(&self, domain: Option<usize>) -> Extent {
        domain.map_or(Extent::Everything, |domain| Extent::Domain(DomainId::of(self.domains[domain].as_ref())))
    }

    fn engines_of(&self, domain: Option<usize>) -> Vec<usize> {
        (0..self.engines.len()).filter(|&engine| domain.is_none_or(|domain| self.engines[engine].1 == domain)).collect()
    }

    fn is_held(&self, engine: usize) -> bool {
        self.streams.iter().any(|stream| stream.engine == engine && stream.held.is_some())
    }

    /// The failures of this engine, from number `first` on, that this reporter has not told; it has now.
    fn tell(&mut self, reporter: u8, engine: usize, first: usize) -> Vec<usize> {
        let mut news = Vec::new();
        for (number, failure) in self.failures.iter_mut().enumerate().skip(first) {
            if failure.engine == engine && !failure.was_cleared && failure.told & reporter == 0 {
                failure.told |= reporter;
                news.push(number);
            }
        }
        news
    }

    /// One drawn call, compared with what the model says of it.
    fn step(&mut self, random: &mut Random) {
        let at = random.below(self.streams.len());
        let on = random.below(self.engines.len());
        let domain = if random.once_in(3) { None } else { Some(random.below(self.domains.len())) };
        match random.below(13) {
            0..=2 if self.streams[at].failure.is_none() && self.streams[at].held.is_none() => {
                let OneStream { stream, engine, failure, .. } = &mut self.streams[at];
                *failure = Some((self.failures.len(), false));
                fail(stream, self.failures.len());
                self.failures.push(Failure { engine: *engine, told: 0, was_cleared: false });
                let stream = stream.clone();
                eventually("a failure has not come", || stream.error().is_some());
            }
            3 if self.streams[at].failure.is_none() => enqueue(&self.streams[at].stream, || Ok(())),
            4 if self.streams[at].failure.is_some() => {
                self.streams[at].stream.clear_error();
                let (number, _) = self.streams[at].failure.take().unwrap();
                self.failures[number].was_cleared = true;
            }
            5 if self.streams[at].held.is_none() => {
                // What a released stream still has to do is its engine's, and a look would see it.
                eventually("a stream has not come to its end", || self.streams[at].stream.is_idle());
                self.streams[at].stream = self.stream(self.streams[at].engine);
                self.streams[at].failure = None;
            }
            // One at a time: the pool has threads for the others.
            6 => match self.streams.iter().position(|stream| stream.held.is_some()) {
                Some(held) => {
                    self.streams[held].held.take().unwrap().store(true, SeqCst);
                    self.streams[held].stream.synchronize(FOREVER).unwrap();
                }
                None if self.streams[at].failure.is_none() => {
                    self.streams[at].held = Some(hold(&self.streams[at].stream));
                }
                None => {}
            },
            7 if self.streams[at].held.is_none() => {
                let news = self.streams[at].failure.filter(|(_, was_told)| !was_told).map(|(number, _)| number);
                self.streams[at].failure.iter_mut().for_each(|failure| failure.1 = true);
                let expected: Vec<_> = news.into_iter().collect();
                assert_eq!(told(self.streams[at].stream.synchronize(FOREVER)), expected, "stream {at}");
            }
            8 if self.is_held(on) => {
                let error = self.engines[on].0.synchronize(0).unwrap_err();
                assert_eq!(error.code(), Code::DeadlineExceeded, "engine {on}");
            }
            8 => {
                let expected: Vec<_> = self.tell(ENGINE, on, 0).into_iter().take(1).collect();
                assert_eq!(told(self.engines[on].0.synchronize(FOREVER)), expected, "engine {on}");
            }
            9 => self.sync_all(domain),
            10 => self.sync_each(domain),
            11 if self.scopes.len() < 3 => {
                let scope = Scope::of(Scope::begin(self.extent(domain)).number());
                self.scopes.push((scope, domain, self.failures.len()));
            }
            12 if !self.scopes.is_empty() => {
                let scope = random.below(self.scopes.len());
                self.end(scope);
            }
            _ => {}
        }
    }

    fn sync_all(&mut self, domain: Option<usize>) {
        let engines = self.engines_of(domain);
        if engines.iter().any(|&engine| self.is_held(engine)) {
            let error = sync_all(self.extent(domain), 0).unwrap_err();
            return assert_eq!(error.code(), Code::DeadlineExceeded, "{domain:?}");
        }
        let reporter = domain.map_or(EVERYTHING, |_| DOMAIN);
        let expected: Vec<_> =
            engines.into_iter().flat_map(|engine| self.tell(reporter, engine, 0).into_iter().take(1)).collect();
        assert_eq!(told(sync_all(self.extent(domain), FOREVER)), expected, "{domain:?}");
    }

    /// Engines that are held up do not hide how the others are.
    fn sync_each(&mut self, domain: Option<usize>) {
        let (engines, reporter) = (self.engines_of(domain), domain.map_or(EVERYTHING, |_| DOMAIN));
        let is_held = engines.iter().any(|&engine| self.is_held(engine));
        let timeout = if is_held { 0 } else { FOREVER };
        if is_held {
            // A look tells of what is done; so it must be.
            for OneStream { stream, .. } in self.streams.iter().filter(|stream| stream.held.is_none()) {
                eventually("a stream has not come to its end", || stream.is_idle());
            }
        }
        let all = sync_each(self.extent(domain), timeout, 64).unwrap().unwrap();
        assert_eq!(all.len(), engines.len(), "{domain:?}");
        for (engine, synced) in engines.into_iter().zip(all) {
            assert_eq!(synced.engine, format!("engine {}", self.engines[engine].0.label()));
            if self.is_held(engine) {
                assert_eq!(synced.result.unwrap_err().code(), Code::DeadlineExceeded, "engine {engine}");
            } else {
                let expected: Vec<_> = self.tell(reporter, engine, 0).into_iter().take(1).collect();
                let text = format!("engine {engine}: {:?}", synced.result);
                assert_eq!(told(synced.result), expected, "{text}");
            }
        }
    }

    fn end(&mut self, scope: usize) {
        let (of, domain, first) = self.scopes[scope];
        let engines = self.engines_of(domain);
        if engines.iter().any(|&engine| self.is_held(engine)) {
            return assert_eq!(of.end(0).unwrap_err().code(), Code::DeadlineExceeded, "{domain:?}");
        }
        let reporter = domain.map_or(EVERYTHING, |_| DOMAIN);
        let mut expected: Vec<_> = engines.into_iter().flat_map(|engine| self.tell(reporter, engine, first)).collect();
        expected.sort_unstable();
        assert_eq!(told(of.end(FOREVER)), expected, "scope of {domain:?} from {first}");
        self.scopes.swap_remove(scope);
    }
}

#[test]
fn each_reporter_tells_what_the_model_says() {
    let _alone = alone();
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let mut world = World::make(&mut random);
        let work = std::panic::AssertUnwindSafe(|| (0..120).for_each(|_| world.step(&mut random)));
        if let Err(payload) = std::panic::catch_unwind(work) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(payload);
        }
        // Nobody is owed anything that he does not get.
        world.streams.iter_mut().filter_map(|stream| stream.held.take()).for_each(|gate| gate.store(true, SeqCst));
        (0..world.domains.len()).for_each(|domain| world.sync_all(Some(domain)));
        world.sync_each(None);
        assert!(sync_all(Extent::Everything, FOREVER).is_ok(), "seed {seed}");
    }
}

/// What one reporter has told: nothing twice, and of its own engines alone.
#[derive(Default)]
struct Heard(Mutex<HashSet<usize>>);

impl Heard {
    fn add(&self, news: &[usize], is_own: impl Fn(usize) -> bool) {
        let mut heard = self.0.lock().unwrap();
        for &number in news {
            assert!(is_own(number), "failure {number} is another's");
            assert!(heard.insert(number), "failure {number} was told twice");
        }
    }
}

/// Two libraries fail and ask in threads of their own, while a third party asks for everything and one of the two is
/// held up for ever.
#[test]
fn threads_that_ask_at_once_hear_what_is_theirs_once() {
    const ENGINES: usize = 3;
    const FAILURES: usize = 120;
    let _alone = alone();
    let pool = kit::pools::named("", 3);
    for held in 0..2 {
        let domains = ["left", "right"].map(|name| Domain::create(name).unwrap());
        let hows = [How::Lanes, How::Pool, How::Emulated];
        let engines: Vec<Vec<_>> =
            domains.iter().map(|domain| hows.iter().map(|&how| engine(Some(domain), how, &pool)).collect()).collect();
        let (of_domains, of_all) = ([Heard::default(), Heard::default()], Heard::default());
        let of_engines: Vec<Heard> = (0..2 * ENGINES).map(|_| Heard::default()).collect();
        let at_work = AtomicUsize::new(0);
        // A failure's number says whose it is.
        let number = |domain: usize, engine: usize, n: usize| (n * 2 + domain) * ENGINES + engine;
        let domain_of = |number: usize| number / ENGINES % 2;
        let engine_of = |number: usize| number / ENGINES % 2 * ENGINES + number % ENGINES;
        let blocked = stream(&engines[held][0], "blocked".to_owned());
        let gate = hold(&blocked);
        std::thread::scope(|scope| {
            for domain in 0..2 {
                for engine in 0..ENGINES {
                    at_work.fetch_add(1, SeqCst);
                    let (engines, at_work) = (&engines, &at_work);
                    scope.spawn(move || {
                        for n in 0..FAILURES {
                            let stream = stream(&engines[domain][engine], format!("s{n}"));
                            fail(&stream, number(domain, engine, n));
                            assert_eq!(told(stream.synchronize(FOREVER)), [number(domain, engine, n)]);
                        }
                        at_work.fetch_sub(1, SeqCst);
                    });
                }
                // The one that is held up gets no answer, and takes nothing.
                let (id, heard, at_work) = (DomainId::of(Some(&domains[domain])), &of_domains[domain], &at_work);
                scope.spawn(move || {
                    while at_work.load(SeqCst) > 0 {
                        let (is_held, timeout) = (domain == held, if domain == held { 1000 } else { FOREVER });
                        match sync_all(Extent::Domain(id), timeout) {
                            Err(error) if is_held => assert_eq!(error.code(), Code::DeadlineExceeded),
                            result => heard.add(&told(result), |number| domain_of(number) == domain),
                        }
                    }
                });
                let (engines, of_engines) = (&engines, &of_engines);
                scope.spawn(move || {
                    while at_work.load(SeqCst) > 0 {
                        #[allow(clippy::needless_range_loop)] // The number is part of the name.
                        for engine in usize::from(domain == held)..ENGINES {
                            let place = domain * ENGINES + engine;
                            let news = told(engines[domain][engine].synchronize(FOREVER));
                            of_engines[place].add(&news, |number| engine_of(number) == place);
                        }
                    }
                });
            }
            scope.spawn(|| {
                while at_work.load(SeqCst) > 0 {
                    for synced in sync_each(Extent::Everything, 1000, 64).unwrap().unwrap() {
                        if synced.result.as_ref().is_err_and(|error| error.code() == Code::DeadlineExceeded) {
                            continue;
                        }
                        of_all.add(&told(synced.result), |_| true);
                    }
                }
            });
        });
        gate.store(true, SeqCst);
        for (domain, heard) in of_domains.iter().enumerate() {
            let extent = Extent::Domain(DomainId::of(Some(&domains[domain])));
            heard.add(&told(sync_all(extent, FOREVER)), |number| domain_of(number) == domain);
            assert!(sync_all(extent, FOREVER).is_ok());
        }
        of_all.add(&told(sync_all(Extent::Everything, FOREVER)), |_| true);
        assert!(sync_all(Extent::Everything, FOREVER).is_ok());
        for (place, heard) in of_engines.iter().enumerate() {
            heard.add(&told(engines[place / ENGINES][place % ENGINES].synchronize(FOREVER)), |_| true);
            assert!(!heard.0.lock().unwrap().is_empty(), "engine {place} has told nothing");
            for reporter in [&of_domains[place / ENGINES], &of_all] {
                let heard = reporter.0.lock().unwrap();
                assert!(heard.iter().any(|&number| engine_of(number) == place), "nothing was told of engine {place}");
            }
        }
    }
}

#[test]
fn engines_have_names_that_tell_them_apart() {
    let _alone = alone();
    let domains = ["user", "user"].map(|name| Domain::create(name).unwrap());
    let named = |domain: Option<&Ref<Domain>>, name: &str| {
        let mut attr = EngineAttr::new(DeviceKind::CPU);
        attr.domain = domain.cloned();
        attr.set_name(name).unwrap();
        Engine::create(DeviceKind::CPU, 0, Some(&attr))
    };
    let first = named(Some(&domains[0]), "").unwrap();
    let second = named(Some(&domains[1]), "").unwrap();
    let third = named(Some(&domains[1]), "encoder").unwrap();
    let plain = named(None, "encoder").unwrap();
    let labels = [&first, &second, &third, &plain].map(|engine| engine.label());
    assert_eq!(labels, ["user/cpu:0", "user#2/cpu:0", "user#2/encoder", "encoder"]);
    let again = named(Some(&domains[1]), "encoder").unwrap();
    assert_eq!(again.label(), "user#2/encoder#2");
    assert_eq!(named(Some(&domains[1]), "").unwrap().label(), "user#2/cpu:0", "those without share the device's");
    // A stream keeps its engine, and so its name.
    let kept = stream(&third, "kept".to_owned());
    drop(third);
    assert_eq!(named(Some(&domains[1]), "encoder").unwrap().label(), "user#2/encoder#3");
    drop(kept);
    assert_eq!(named(Some(&domains[1]), "encoder").unwrap().label(), "user#2/encoder");
}

/// The list of engines changes while it is gone through.
#[test]
fn engines_that_come_and_go_hide_nobody() {
    let _alone = alone();
    let pool = kit::pools::named("", 2);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    drop([0, 1, 2].map(|_| engine(None, How::Lanes, &pool)));
                }
            });
        }
        let work = std::panic::AssertUnwindSafe(|| {
            for number in 0..1000 {
                let engine = engine(None, How::Pool, &pool);
                let stream = stream(&engine, "brief".to_owned());
                fail(&stream, number);
                assert_eq!(told(sync_all(Extent::Everything, FOREVER)), [number]);
                assert_eq!(told(sync_all(Extent::Domain(DomainId::DEFAULT), FOREVER)), [number]);
            }
        });
        let result = std::panic::catch_unwind(work);
        stop.store(true, SeqCst);
        if let Err(payload) = result {
            std::panic::resume_unwind(payload);
        }
    });
}
