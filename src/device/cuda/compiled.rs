//! Compiled kernels on disk, so that a source is compiled once for each kind of devices.
//!
//! A file's key is all inputs of its image: the source, the options, the device's architecture, the compiler, the
//! driver and this library. `disk` explains how it is found, and why only this user can have written it.
//!
//! The folder is WEIR_CUDA_CACHE, else weir/cuda in the user's cache folder. An empty name means none. A folder that
//! cannot be written, or that others can write, counts as none: then kernels are compiled again.
#![forbid(unsafe_code)]

use super::disk::Disk;
use super::nvrtc::{self, CudaSource};
use crate::base::Result;
use crate::sync::environment;
use std::ffi::OsString;
use std::path::PathBuf;

/// Of all files together.
const LIMIT: u64 = 256 << 20;

/// The image of a source, from disk or from the compiler. `driver` is the driver's version.
pub(super) fn image(source: &CudaSource<'_>, driver: i32) -> Result<Vec<u8>> {
    let key = key(source, nvrtc::version()?, driver);
    let disk = folder(&environment::trusted).and_then(|folder| Disk::open(&folder, LIMIT).ok());
    if let Some(image) = disk.as_ref().and_then(|disk| disk.read(&key)) {
        return Ok(image);
    }
    let image = nvrtc::compile(source)?;
    if let Some(disk) = disk {
        // Without it the next one compiles again.
        let _ = disk.write(&key, &image);
    }
    Ok(image)
}

fn folder(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    match variable("WEIR_CUDA_CACHE") {
        Some(set) if set.is_empty() => None,
        Some(set) => Some(set.into()),
        None => {
            let some = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            let caches = some("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            let caches = caches.or_else(|| some("HOME").map(|home| home.join(".cache")))?;
            Some(caches.join("weir").join("cuda"))
        }
    }
}

/// All that an image depends on. No text in it has a NUL, so two that differ are never written alike.
fn key(source: &CudaSource<'_>, (major, minor): (i32, i32), driver: i32) -> Vec<u8> {
    let (weir, arch, count) = (env!("CARGO_PKG_VERSION"), source.arch, source.options.len());
    let head = format!("weir {weir}\nnvrtc {major}.{minor}\ndriver {driver}\narch {arch}\noptions {count}\n");
    let mut key = head.into_bytes();
    for option in source.options {
        key.extend_from_slice(option.as_bytes_with_nul());
    }
    key.extend_from_slice(source.text.to_bytes_with_nul());
    key
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::ffi::{CStr, CString};

    #[test]
    fn whatever_an_image_depends_on_is_in_its_key() {
        let keys = |text: &CStr, options: &[&str], arch, nvrtc, driver| {
            let options: Vec<_> = options.iter().map(|&option| CString::new(option).unwrap()).collect();
            key(&CudaSource { text, options: &options, arch }, nvrtc, driver)
        };
        let all = [
            keys(c"x", &["-a"], 90, (12, 4), 12040),
            keys(c"x ", &["-a"], 90, (12, 4), 12040),
            keys(c"x", &["-a", "-b"], 90, (12, 4), 12040),
            keys(c"x", &["-a-b"], 90, (12, 4), 12040),
            keys(c"-a", &["x"], 90, (12, 4), 12040),
            keys(c"x", &[], 90, (12, 4), 12040),
            keys(c"x", &["-a"], 80, (12, 4), 12040),
            keys(c"x", &["-a"], 90, (12, 5), 12040),
            keys(c"x", &["-a"], 90, (13, 4), 12040),
            keys(c"x", &["-a"], 90, (12, 4), 12050),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other != one), "{i}");
        }
        assert_eq!(all[0], keys(c"x", &["-a"], 90, (12, 4), 12040));
    }

    #[test]
    fn the_folder_is_the_users_unless_named() {
        let with = |set: &'static [(&'static str, &'static str)]| {
            folder(&|name| set.iter().find(|row| row.0 == name).map(|row| row.1.into()))
        };
        assert_eq!(with(&[("WEIR_CUDA_CACHE", "/a"), ("HOME", "/h")]), Some("/a".into()));
        assert_eq!(with(&[("WEIR_CUDA_CACHE", ""), ("HOME", "/h")]), None);
        assert_eq!(with(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), Some("/c/weir/cuda".into()));
        assert_eq!(with(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]), Some("/h/.cache/weir/cuda".into()));
        assert_eq!(with(&[]), None);
    }
}
