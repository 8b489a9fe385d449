//! For tests: puts the driver where a program finds it, and runs programs with it.
//!
//! Cargo builds the driver with the tests, because they have this crate among their dev-dependencies. A test cannot
//! load it in its own process: the loader looks for libraries where the environment said as the process began. So a
//! test runs itself again, in a child:
//!
//! ```no_run
//! use fake_cuda::testing::Driver;
//!
//! #[test]
//! fn a_graph_runs() {
//!     // Runs this test in a child with the driver; gives None there.
//!     let Some(run) = Driver::new().set("SEED", 7).child("a_graph_runs") else {
//!         // ... what is tested: libcuda.so.1 is there.
//!         return;
//!     };
//!     run.succeeds();
//! }
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A child knows by this that it is one.
const CHILD: &str = "FAKE_CUDA_CHILD";

/// A driver to be installed, with what the environment says to it.
#[derive(Clone, Debug)]
pub struct Driver {
    version: i32,
    dropped: BTreeSet<String>,
    variables: Vec<(String, String)>,
    /// Folders of other libraries.
    libraries: Vec<PathBuf>,
    limit: Duration,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Run {
    pub status: ExitStatus,
    /// What it wrote.
    pub output: String,
    /// Lines of the log of calls.
    pub log: Vec<String>,
}

impl Default for Driver {
    fn default() -> Driver {
        Driver::new()
    }
}

impl Driver {
    /// For CUDA 13.0.
    pub fn new() -> Driver {
        Driver {
            version: 13_000,
            dropped: BTreeSet::new(),
            variables: Vec::new(),
            libraries: Vec::new(),
            limit: Duration::from_secs(120),
        }
    }

    /// 12040 = CUDA 12.4; functions that are newer are missing.
    pub fn version(mut self, version: i32) -> Driver {
        self.version = version;
        self
    }

    /// This function is missing.
    pub fn without(mut self, function: &str) -> Driver {
        self.dropped.insert(function.to_owned());
        self
    }

    /// FAKE_CUDA_`name`, as `settings` has them.
    pub fn set(self, name: &str, value: impl ToString) -> Driver {
        self.variable(&format!("FAKE_CUDA_{name}"), value)
    }

    /// Any other variable of the environment.
    pub fn variable(mut self, name: &str, value: impl ToString) -> Driver {
        self.variables.push((name.to_owned(), value.to_string()));
        self
    }

    /// A library of tests that cargo has built is found, too: as `name`, without some of its functions.
    pub fn library(mut self, built_as: &str, name: &str, without: &[&str]) -> Driver {
        let place = || {
            let built = built(built_as)?;
            let directory = built.parent().unwrap_or(Path::new(".")).join("fake-cuda");
            let key = format!("{name}-{:016x}", hash(&without.join(",")));
            place(&built, &directory.join(key), &[name], without)
        };
        self.libraries.push(place().unwrap_or_else(|error| panic!("{built_as}: {error}")));
        self
    }

    /// A program that takes longer is killed, and has failed.
    pub fn limit(mut self, limit: Duration) -> Driver {
        self.limit = limit;
        self
    }

    /// Puts the library into a directory of its own below the one that cargo builds in, and gives that.
    pub fn install(&self) -> io::Result<PathBuf> {
        let built = built("libfake_cuda.so")?;
        let mut missing: BTreeSet<&str> = crate::settings::missing(self.version).collect();
        missing.extend(self.dropped.iter().map(String::as_str));
        let names: Vec<&str> = missing.iter().copied().collect();
        let name = match names.len() {
            0 => "all".to_owned(),
            _ => format!("without-{:016x}", hash(&names.join(","))),
        };
        let parent = built.parent().unwrap_or(Path::new("."));
        place(&built, &parent.join("fake-cuda").join(name), &["libcuda.so.1", "libcuda.so"], &names)
    }

    /// Has a program find the driver.
    pub fn prepare(&self, command: &mut Command) -> io::Result<()> {
        let mut path = self.install()?.into_os_string();
        for folder in &self.libraries {
            path.push(":");
            path.push(folder);
        }
        if let Some(before) = std::env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
            path.push(":");
            path.push(before);
        }
        command.env("LD_LIBRARY_PATH", path);
        command.env("FAKE_CUDA_VERSION", self.version.to_string());
        command.env("FAKE_CUDA_DROP", self.dropped.iter().cloned().collect::<Vec<_>>().join(","));
        // A real one does not work with this driver.
        command.env("WEIR_CUDA_BLAS", if self.libraries.is_empty() { "0" } else { "" });
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Ok(())
    }

    /// Runs a program to its end.
    pub fn run(&self, command: &mut Command) -> io::Result<Run> {
        self.prepare(command)?;
        let log = log_path();
        command.env("FAKE_CUDA_LOG", &log).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let out = std::thread::spawn(move || text(out));
        let err = std::thread::spawn(move || text(err));
        let end = Instant::now() + self.limit;
        let (status, note) = loop {
            if let Some(status) = child.try_wait()? {
                break (status, String::new());
            }
            if Instant::now() >= end {
                child.kill()?;
                break (child.wait()?, format!("\nkilled after {:?}\n", self.limit));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let texts = [out, err].map(|reader| reader.join().unwrap_or_default());
        let lines = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        let output = format!("{}{}{note}", texts[0], texts[1]);
        Ok(Run { status, output, log: lines.lines().map(str::to_owned).collect() })
    }

    /// Runs this test again in a child, by its full name; gives None in that.
    pub fn child(&self, test: &str) -> Option<Run> {
        if std::env::var_os(CHILD).is_some() {
            return None;
        }
        let run = || {
            let mut command = Command::new(std::env::current_exe()?);
            command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
            self.run(&mut command)
        };
        let run = run().unwrap_or_else(|error| panic!("{test} cannot run in a child: {error}"));
        let is_there = run.output.contains("running 1 test");
        assert!(is_there, "no test has the name '{test}':\n{}", run.output);
        Some(run)
    }
}

impl Run {
    /// The program has ended well; shows what it wrote otherwise.
    #[track_caller]
    pub fn succeeds(&self) -> &Run {
        assert!(self.status.success(), "{}:\n{}", self.status, self.output);
        self
    }

    /// The program has ended badly, and has written this.
    #[track_caller]
    pub fn fails_with(&self, text: &str) -> &Run {
        assert!(!self.status.success(), "it should have failed:\n{}", self.output);
        assert!(self.output.contains(text), "no '{text}' in:\n{}", self.output);
        self
    }

    /// How often a function of the driver was called.
    pub fn count(&self, function: &str) -> usize {
        self.log.iter().filter(|line| line.split('(').next() == Some(function)).count()
    }
}

/// Puts a library into a directory under these names, if it is not there, with some functions hidden.
fn place(built: &Path, directory: &Path, names: &[&str], hidden: &[&str]) -> io::Result<PathBuf> {
    let time = |path: &Path| fs::metadata(path).and_then(|about| about.modified());
    let is_new = |name: &&str| time(&directory.join(name)).is_ok_and(|there| time(built).is_ok_and(|new| there > new));
    if names.iter().all(is_new) {
        return Ok(directory.to_owned());
    }
    fs::create_dir_all(directory)?;
    let mut bytes = fs::read(built)?;
    hidden.iter().for_each(|name| hide(&mut bytes, name));
    for name in names {
        // Another test may be at it, too.
        let new = directory.join(format!("{name}.{}.{:?}", std::process::id(), std::thread::current().id()));
        fs::write(&new, &bytes)?;
        fs::rename(&new, directory.join(name))?;
    }
    Ok(directory.to_owned())
}

/// A library that cargo has built: beside the test, or one above it.
fn built(name: &str) -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let places = test.ancestors().skip(1).take(2).flat_map(|place| [place.to_owned(), place.join("deps")]);
    let mut paths = places.map(|place| place.join(name));
    paths
        .find(|path| path.is_file())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no {name} near {}", test.display())))
}

/// Gives a function another name, under which nobody looks for it.
fn hide(library: &mut [u8], function: &str) {
    let name: Vec<u8> = [b"\0", function.as_bytes(), b"\0"].concat();
    let places: Vec<usize> =
        library.windows(name.len()).enumerate().filter(|(_, at)| *at == name).map(|(index, _)| index).collect();
    for place in places {
        library[place + 1] = b'_';
    }
}

fn hash(text: &str) -> u64 {
    // FNV-1a.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn log_path() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering::*};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // ORDERING: only a number that nobody else has.
    let number = NUMBER.fetch_add(1, Relaxed);
    std::env::temp_dir().join(format!("fake-cuda-{}-{number}.log", std::process::id()))
}

fn text(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = from.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
