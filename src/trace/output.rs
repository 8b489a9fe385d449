//! The destination of a saved trace: to a function, or to a file that is there whole or not at all.
#![forbid(unsafe_code)]

use super::timeline::room;
use crate::base::{Code, Error, Result};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that are collected before they are passed on.
const CHUNK: usize = 1 << 16;

/// Collects bytes for a function, and keeps its first failure.
pub struct TraceOutput<'a> {
    chunk: Vec<u8>,
    pass_on: &'a mut dyn FnMut(&[u8]) -> Result<()>,
    failure: Option<Error>,
}

impl<'a> TraceOutput<'a> {
    pub fn new(pass_on: &'a mut dyn FnMut(&[u8]) -> Result<()>) -> Result<TraceOutput<'a>> {
        Ok(TraceOutput { chunk: room(CHUNK)?, pass_on, failure: None })
    }

    pub fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.failure.is_none() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == CHUNK {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        if self.failure.is_none() && !self.chunk.is_empty() {
            self.failure = (self.pass_on)(&self.chunk).err();
        }
        self.chunk.clear();
    }

    /// Whether there is any use in going on.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub fn finish(mut self) -> Result<()> {
        self.flush();
        self.failure.map_or(Ok(()), Err)
    }
}

impl fmt::Write for TraceOutput<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }
}

/// Text inside of a JSON string. Without `<`, so that it ends no element of a page that it is in.
pub(super) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                control if (control as u32) < 0x20 || control == '<' => write!(f, "\\u{:04x}", control as u32)?,
                other => fmt::Write::write_char(f, other)?,
            }
        }
        Ok(())
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::PermissionDenied,
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded => {
            Code::ResourceExhausted
        }
        io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory => {
            Code::InvalidArgument
        }
        _ => Code::Unknown,
    };
    Error::new(code, format!("{what} '{}': {error}", path.display()))
}

/// A file beside the one that is to be, which it becomes when all is written. Removed if it does not.
struct PartFile {
    path: PathBuf,
    is_there: bool,
}

impl PartFile {
    fn of(path: &Path) -> PartFile {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
        name.push(format!(".{}-{}.part", std::process::id(), NEXT.fetch_add(1, Relaxed)));
        PartFile { path: path.with_file_name(name), is_there: false }
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.is_there {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a file by `write`, which is given where the bytes go. What is no plain file (a pipe, a terminal, a device) is
/// written to as it is.
pub fn to_file(path: &Path, write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>) -> Result<()> {
    // A link stays one: what it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(found) if found.is_dir() => {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(failed("cannot write", path, &error));
        }
        Ok(found) if !found.is_file() => {
            let mut file = OpenOptions::new().write(true).open(&target).map_err(|e| failed("cannot open", path, &e))?;
            return write(&mut |bytes| file.write_all(bytes).map_err(|e| failed("cannot write", path, &e)));
        }
        _ => {}
    }
    let mut beside = PartFile::of(&target);
    let mut file = File::create_new(&beside.path).map_err(|e| failed("cannot create", &beside.path, &e))?;
    beside.is_there = true;
    write(&mut |bytes| file.write_all(bytes).map_err(|e| failed("cannot write", path, &e)))?;
    file.sync_all().map_err(|e| failed("cannot write", path, &e))?;
    drop(file);
    fs::rename(&beside.path, &target).map_err(|e| failed("cannot write", path, &e))?;
    beside.is_there = false;
    // The directory's own entry: where a system cannot do that, it needs not.
    if let Some(directory) = target.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn write_many(pass_on: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut output = TraceOutput::new(pass_on)?;
        (0..100_000).for_each(|_| output.put(b"0123456789"));
        output.finish()
    }

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("weir-trace-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let directory = directory("whole");
        let path = directory.join("a.trace");
        fs::write(&path, "before").unwrap();
        let error = to_file(&path, |pass_on| {
            pass_on(b"half")?;
            Err(Error::internal("no more"))
        });
        assert!(error.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"before");
        to_file(&path, write_many).unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 1_000_000);
        #[cfg(unix)]
        {
            let link = directory.join("link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            to_file(&link, |pass_on| pass_on(b"by a link")).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"by a link");
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "something is left beside it");
        assert_eq!(to_file(&directory, write_many).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(to_file(&directory.join("no/such"), write_many).unwrap_err().code(), Code::NotFound);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error_and_stays_a_device() {
        use std::os::unix::fs::FileTypeExt;
        let full = Path::new("/dev/full");
        assert_eq!(to_file(full, write_many).unwrap_err().code(), Code::ResourceExhausted);
        assert!(fs::metadata(full).unwrap().file_type().is_char_device());
        to_file(Path::new("/dev/null"), write_many).unwrap();
    }

    #[test]
    fn the_first_failure_ends_it() {
        let (mut passed, mut calls) = (0, 0);
        let result = write_many(&mut |bytes| {
            calls += 1;
            passed += bytes.len();
            if calls == 3 { Err(Error::internal("enough")) } else { Ok(()) }
        });
        assert!(result.unwrap_err().message().contains("enough"));
        assert_eq!((passed, calls), (3 * CHUNK, 3));
        assert_eq!(Quoted("a\"\\\n\u{1}é</").to_string(), "a\\\"\\\\\\u000a\\u0001é\\u003c/");
    }
}
