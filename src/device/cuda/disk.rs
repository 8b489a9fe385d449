//! A folder of files that only this user can have written, found again by their key.
//!
//! The files are run on a device. So this user must have written them:
//! - The folder belongs to the user, and nobody else may write in it. A new one is closed to others entirely.
//! - All files are opened relative to the checked folder, by their names alone, so later changes of the path do not
//!   matter. Links are not followed, and anything but a regular file is closed again; opening never blocks, as it would
//!   for the writer of a FIFO.
//! - A file belongs to the user, and nobody else may open it.
//! - A file is written under a new, unguessable name, and renamed when it is complete.
//! - A file is named after the SHA-256 of its key, and contains the key and the SHA-256 of its contents. So truncated,
//!   damaged or renamed files are rejected.
//! - Files together have at most `limit` bytes: the least recently used are removed first.

use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 16] = b"weir kept file 2";
/// The magic, the sizes of key and content, the sum of these, the key and the content.
const HEAD: usize = MAGIC.len() + 8 + 8 + SUM;
const SUM: usize = 32;
const SUFFIX: &str = ".image";
const DRAFT: &str = ".draft";
/// A draft of this age is abandoned.
const LOST: Duration = Duration::from_secs(3600);
/// Nobody else may open a file, or write in the folder.
const OF_OTHERS: u32 = 0o077;
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// An open folder that passed the checks.
pub(super) struct Disk {
    folder: File,
    limit: u64,
}

impl Disk {
    /// Makes the folder, and those above it, if it is not there.
    pub fn open(path: &Path, limit: u64) -> io::Result<Disk> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let facts = folder.metadata()?;
        match is_users(&facts) && facts.mode() & WRITTEN_BY_OTHERS == 0 {
            true => Ok(Disk { folder, limit }),
            false => Err(refused("the folder is not the user's alone")),
        }
    }

    /// The content for exactly this key.
    pub fn read(&self, key: &[u8]) -> Option<Vec<u8>> {
        let file = self.open_at(&name(key), libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY).ok()?;
        let facts = file.metadata().ok()?;
        if !facts.is_file() || !is_users(&facts) || facts.mode() & OF_OTHERS != 0 {
            return None;
        }
        let mut head = [0; HEAD];
        (&file).read_exact(&mut head).ok()?;
        let number = |at: usize| head[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        let (key_bytes, bytes) = (number(MAGIC.len())?, number(MAGIC.len() + 8)?);
        let all = (HEAD as u64).checked_add(key_bytes)?.checked_add(bytes)?;
        if !head.starts_with(MAGIC) || key_bytes != key.len() as u64 || all != facts.len() || all > self.limit {
            return None;
        }
        let mut data = Vec::new();
        data.try_reserve_exact(usize::try_from(all).ok()? - HEAD).ok()?;
        (&file).take(all - HEAD as u64).read_to_end(&mut data).ok()?;
        let (its_key, content) = data.split_at_checked(key.len())?;
        let is_it = its_key == key && content.len() as u64 == bytes;
        if !is_it || head[HEAD - SUM..] != sum(&head[..HEAD - SUM], key, content) {
            return None;
        }
        // Marks it as recently used. If that fails, it is removed sooner.
        let _ = file.set_modified(SystemTime::now());
        data.drain(..key.len());
        Some(data)
    }

    /// Stores this content for the key, replacing the old one.
    pub fn write(&self, key: &[u8], content: &[u8]) -> io::Result<()> {
        let all = HEAD as u64 + key.len() as u64 + content.len() as u64;
        if all > self.limit {
            return Err(refused("larger than all files together may be"));
        }
        let mut head = [0; HEAD];
        head[..MAGIC.len()].copy_from_slice(MAGIC);
        head[MAGIC.len()..][..8].copy_from_slice(&(key.len() as u64).to_le_bytes());
        head[MAGIC.len() + 8..][..8].copy_from_slice(&(content.len() as u64).to_le_bytes());
        let sum = sum(&head[..HEAD - SUM], key, content);
        head[HEAD - SUM..].copy_from_slice(&sum);
        let draft = c_name(format!("{}{DRAFT}", hex(&random()?)));
        let file = self.open_at(&draft, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?;
        let name = name(key);
        let written = [&head[..], key, content].iter().try_for_each(|part| (&file).write_all(part));
        let named = written.and_then(|()| self.rename(&draft, &name));
        if named.is_err() {
            self.remove(&draft);
            return named;
        }
        self.shrink(&name);
        Ok(())
    }

    /// Removes the least recently used files until the rest has at most `limit` bytes; `newest` stays.
    fn shrink(&self, newest: &CStr) {
        let Ok(names) = self.names() else { return };
        let now = SystemTime::now();
        let mut total = 0_u64;
        let mut files = Vec::new();
        for name in names {
            let Ok(facts) = self.open_at(&name, libc::O_PATH).and_then(|file| file.metadata()) else { continue };
            let Ok(used) = facts.modified() else { continue };
            let is_lost = now.duration_since(used).is_ok_and(|age| age > LOST);
            if is_lost && name.to_bytes().ends_with(DRAFT.as_bytes()) {
                self.remove(&name);
                continue;
            }
            total = total.saturating_add(facts.len());
            files.push((used, name, facts.len()));
        }
        files.sort();
        for (_, name, bytes) in files {
            if total <= self.limit {
                break;
            }
            // Another writer may be using a draft.
            if *name != *newest && !name.to_bytes().ends_with(DRAFT.as_bytes()) {
                self.remove(&name);
                total = total.saturating_sub(bytes);
            }
        }
    }

    /// Opens the file of this name in the folder, not following links.
    fn open_at(&self, name: &CStr, flags: libc::c_int) -> io::Result<File> {
        let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: an open folder, a text that ends with a NUL, and the mode of a file that is made.
        let opened = unsafe { libc::openat(self.folder.as_raw_fd(), name.as_ptr(), flags, 0o600 as libc::c_uint) };
        // SAFETY: it was opened just now, and nobody else has it.
        if opened < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { File::from_raw_fd(opened) }) }
    }

    fn rename(&self, from: &CStr, to: &CStr) -> io::Result<()> {
        let folder = self.folder.as_raw_fd();
        // SAFETY: an open folder, and texts that end with a NUL.
        let renamed = unsafe { libc::renameat(folder, from.as_ptr(), folder, to.as_ptr()) };
        if renamed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn remove(&self, name: &CStr) {
        // SAFETY: an open folder, and a text that ends with a NUL. A missing file needs no removal.
        unsafe { libc::unlinkat(self.folder.as_raw_fd(), name.as_ptr(), 0) };
    }

    /// The names in the folder that files and drafts of this kind have.
    fn names(&self) -> io::Result<Vec<CString>> {
        // A descriptor of its own, since reading moves its position.
        let folder = self.open_at(c".", libc::O_RDONLY | libc::O_DIRECTORY)?;
        let descriptor = folder.into_raw_fd();
        // SAFETY: an open folder that nobody else has; it passes to the reader.
        let reader = unsafe { libc::fdopendir(descriptor) };
        if reader.is_null() {
            let error = io::Error::last_os_error();
            // SAFETY: the reader was not made, so this function still owns it.
            drop(unsafe { File::from_raw_fd(descriptor) });
            return Err(error);
        }
        let mut names = Vec::new();
        loop {
            // SAFETY: a reader that only this thread has.
            let entry = unsafe { libc::readdir(reader) };
            if entry.is_null() {
                break;
            }
            // SAFETY: the reader's name, which ends with a NUL and is there until the next one is read.
            let name = unsafe { CStr::from_ptr((&raw const (*entry).d_name).cast()) };
            if is_ours(name.to_bytes()) {
                names.push(name.to_owned());
            }
        }
        // SAFETY: a reader that nobody uses any more.
        unsafe { libc::closedir(reader) };
        Ok(names)
    }
}

fn is_users(facts: &Metadata) -> bool {
    // SAFETY: no arguments, and it cannot fail.
    facts.uid() == unsafe { libc::geteuid() }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: room for as many bytes as are asked for. So few come in one call.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == bytes.len() as isize { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}

fn sum(head: &[u8], key: &[u8], content: &[u8]) -> [u8; SUM] {
    Sha256::new().chain_update(head).chain_update(key).chain_update(content).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn name(key: &[u8]) -> CString {
    c_name(format!("{}{SUFFIX}", hex(&Sha256::digest(key))))
}

/// Of digits and a suffix.
fn c_name(name: String) -> CString {
    CString::new(name).unwrap_or_default()
}

fn is_ours(name: &[u8]) -> bool {
    let of = |suffix: &str, digits: usize| {
        let start = name.strip_suffix(suffix.as_bytes());
        start.is_some_and(|start| start.len() == digits && start.iter().all(u8::is_ascii_hexdigit))
    };
    of(SUFFIX, 2 * SUM) || of(DRAFT, 32)
}

#[cfg(all(test, not(loom)))]
mod tests;
