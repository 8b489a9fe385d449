//! What the environment says of the driver. A value that is not understood ends the process: a test that believes it
//! has asked for something must not run without it.
//!
//! | Variable | Value | Means |
//! |---|---|---|
//! | `FAKE_CUDA_VERSION` | 12000, 12040, 13000, ... | the driver's version; what it lacks is not found, and not done |
//! | `FAKE_CUDA_DEVICES` | 0, 1, ... | number of devices, else 1 |
//! | `FAKE_CUDA_MEMORY` | bytes | of each device, else 16 GiB |
//! | `FAKE_CUDA_SEED` | number | one operation at a time, drawn among those that can go; else threads as many as there is work for |
//! | `FAKE_CUDA_DELAY` | stream:microseconds,... | each operation of the n-th stream takes so much longer; 0 = default streams |
//! | `FAKE_CUDA_FAIL` | function:n:code,... | the n-th call of the function fails, with * each one; with code 0 it is left out |
//! | `FAKE_CUDA_DROP` | function,... | cuGetProcAddress does not find it |
//! | `FAKE_CUDA_LOG` | file | one line for each call |
//! | `FAKE_CUDA_RACES` | abort, report, off | what a find of the checker does: else abort |
//! | `FAKE_CUDA_OTHERS` | capture | as if another thread captured all the time: ends the process at a call that only a relaxed thread may make |
//! | `FAKE_CUDA_PEERS` | none | no device reaches another one's memory |
//! | `FAKE_CUDA_KERNELS` | ptx | images are PTX; of the built-in functions there is only the fake cuBLASLt's |
//! | `FAKE_CUDA_PINNED` | guard | pinned memory faults that the host touches too soon |
//! | `FAKE_CUDA_LEAKS` | list, abort, off | what handles that are left at the end do: else list |
//! | `FAKE_CUDA_UNWAITED` | list, abort, off | what operations do that nobody has waited for at the end: else list |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFind {
    Abort,
    Report,
    Off,
}

/// Calls that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub function: String,
    /// None: each one.
    pub call: Option<u64>,
    pub code: i32,
}

#[derive(Debug)]
pub struct Settings {
    pub version: i32,
    pub devices: i32,
    pub memory: u64,
    pub seed: Option<u64>,
    /// Microseconds by the stream's number.
    pub delays: BTreeMap<usize, u64>,
    pub failures: Vec<Failure>,
    pub dropped: BTreeSet<String>,
    pub log: Option<String>,
    pub races: OnFind,
    pub leaks: OnFind,
    pub unwaited: OnFind,
    pub guards: bool,
    pub others_capture: bool,
    pub has_peers: bool,
    pub only_ptx: bool,
}

pub static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
    Settings::read(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_else(|why| crate::call::stop(&why))
});

impl Settings {
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let number = |name: &str, other: u64| match get(name) {
            None => Ok(other),
            Some(text) => text.parse().map_err(|_| format!("{name} is '{text}', expected a number")),
        };
        let on_find = |name: &str, words: [&str; 3], other| match get(name) {
            None => Ok(other),
            Some(text) => [OnFind::Abort, OnFind::Report, OnFind::Off]
                .into_iter()
                .zip(words)
                .find(|(_, word)| *word == text)
                .map(|(what, _)| what)
                .ok_or_else(|| format!("{name} is '{text}', expected one of {words:?}")),
        };
        let list = |name: &str| {
            let text = get(name).unwrap_or_default();
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let mut delays = BTreeMap::new();
        for item in list("FAKE_CUDA_DELAY") {
            let pair = item.split_once(':').and_then(|(stream, us)| Some((stream.parse().ok()?, us.parse().ok()?)));
            let (stream, us) =
                pair.ok_or_else(|| format!("FAKE_CUDA_DELAY has '{item}', expected stream:microseconds"))?;
            delays.insert(stream, us);
        }
        let is_set = |name: &str, word: &str| match get(name) {
            None => Ok(false),
            Some(text) if text == word => Ok(true),
            Some(text) => Err(format!("{name} is '{text}', expected {word}")),
        };
        let failures = list("FAKE_CUDA_FAIL").iter().map(|item| Failure::read(item)).collect::<Result<_, _>>()?;
        Ok(Settings {
            version: number("FAKE_CUDA_VERSION", 13_000)? as i32,
            devices: number("FAKE_CUDA_DEVICES", 1)? as i32,
            memory: number("FAKE_CUDA_MEMORY", 16 << 30)?,
            seed: get("FAKE_CUDA_SEED").map(|_| number("FAKE_CUDA_SEED", 0)).transpose()?,
            delays,
            failures,
            dropped: list("FAKE_CUDA_DROP").into_iter().collect(),
            log: get("FAKE_CUDA_LOG"),
            races: on_find("FAKE_CUDA_RACES", ["abort", "report", "off"], OnFind::Abort)?,
            leaks: on_find("FAKE_CUDA_LEAKS", ["abort", "list", "off"], OnFind::Report)?,
            unwaited: on_find("FAKE_CUDA_UNWAITED", ["abort", "list", "off"], OnFind::Report)?,
            guards: is_set("FAKE_CUDA_PINNED", "guard")?,
            only_ptx: is_set("FAKE_CUDA_KERNELS", "ptx")?,
            has_peers: !is_set("FAKE_CUDA_PEERS", "none")?,
            others_capture: is_set("FAKE_CUDA_OTHERS", "capture")?,
        })
    }

    pub fn has(&self, function: &str) -> bool {
        !self.dropped.contains(function) && since(function) <= self.version
    }
}

impl Failure {
    fn read(item: &str) -> Result<Failure, String> {
        let wrong = || format!("FAKE_CUDA_FAIL has '{item}', expected function:call:code");
        let parts: Vec<&str> = item.split(':').collect();
        let [function, call, code] = parts[..] else { return Err(wrong()) };
        let call = match call {
            "*" => None,
            number => Some(number.parse().map_err(|_| wrong())?),
        };
        let code = code.parse().map_err(|_| wrong())?;
        Ok(Failure { function: function.to_owned(), call, code })
    }
}

/// What came after 12.0.
const LATER: &[(&str, i32)] = &[
    ("cuGraphAddNode", 12_020),
    ("cuGraphNodeSetParams", 12_020),
    ("cuGraphExecNodeSetParams", 12_020),
    ("cuGraphAddNode_v2", 12_030),
    ("cuGraphAddDependencies_v2", 12_030),
    ("cuGraphConditionalHandleCreate", 12_030),
    ("cuStreamBeginCaptureToGraph", 12_030),
    ("cuStreamGetCaptureInfo_v3", 12_030),
    ("cuStreamUpdateCaptureDependencies_v2", 12_030),
    ("cuFuncGetParamInfo", 12_040),
    ("cuEventElapsedTime_v2", 12_080),
];

/// The driver's version from which there is such a function.
pub fn since(function: &str) -> i32 {
    LATER.iter().find(|(name, _)| *name == function).map_or(0, |(_, version)| *version)
}

/// What a driver of this version lacks.
pub fn missing(version: i32) -> impl Iterator<Item = &'static str> {
    LATER.iter().filter(move |(_, since)| *since > version).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &'static str) -> Result<Settings, String> {
        Settings::read(&|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn values_are_read() {
        let settings = read("FAKE_CUDA_FAIL", "cuMemAlloc_v2:3:2, cuInit:*:999").unwrap();
        let failure = |function: &str, call, code| Failure { function: function.to_owned(), call, code };
        assert_eq!(settings.failures, [failure("cuMemAlloc_v2", Some(3), 2), failure("cuInit", None, 999)]);
        assert_eq!(read("FAKE_CUDA_DELAY", "2:500").unwrap().delays[&2], 500);
        assert_eq!(read("FAKE_CUDA_SEED", "0").unwrap().seed, Some(0));
        assert_eq!(read("FAKE_CUDA_RACES", "report").unwrap().races, OnFind::Report);
        let old = read("FAKE_CUDA_VERSION", "12000").unwrap();
        assert!(old.has("cuInit") && !old.has("cuFuncGetParamInfo"));
        assert!(!read("FAKE_CUDA_DROP", "cuInit").unwrap().has("cuInit"));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (name, value) in [
            ("FAKE_CUDA_SEED", "x"),
            ("FAKE_CUDA_FAIL", "cuInit:1"),
            ("FAKE_CUDA_DELAY", "1"),
            ("FAKE_CUDA_RACES", "list"),
            ("FAKE_CUDA_PINNED", "yes"),
        ] {
            let why = read(name, value).unwrap_err();
            assert!(why.contains(name) && why.contains(value), "{why}");
        }
    }
}
