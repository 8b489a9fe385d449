//! Compiled kernels on disk, so that a source is compiled once for each kind of devices.
//!
//! A file is named after a sum of what was compiled, and holds all of that in front of the image. So what is found is the image of just that
//! source, whatever the sum; and a file that was cut off is not taken. It is written under another name first.
//!
//! The folder is what WEIR_CUDA_CACHE names, else weir/cuda where the user's caches are. An empty name means none. A folder that cannot
//! be written is as good as none: then kernels are compiled again.
#![forbid(unsafe_code)]

use super::nvrtc::{self, Source};
use crate::base::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The image of a source, from disk or from the compiler.
pub(super) fn image(source: &Source<'_>) -> Result<Vec<u8>> {
    let (major, minor) = nvrtc::version()?;
    let key = key(source, major, minor);
    let path = folder(&|name| std::env::var_os(name)).map(|folder| folder.join(format!("{:016x}.image", sum(&key))));
    if let Some(image) = path.as_deref().and_then(|path| read(path, &key)) {
        return Ok(image);
    }
    let image = nvrtc::compile(source)?;
    if let Some(path) = path {
        // Without it the next one compiles again.
        let _ = write(&path, &key, &image);
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

/// All that an image depends on.
fn key(source: &Source<'_>, major: i32, minor: i32) -> Vec<u8> {
    let mut key = format!("weir image 1\nnvrtc {major}.{minor}\narch {}\n", source.arch).into_bytes();
    for option in source.options {
        key.extend_from_slice(option.as_bytes_with_nul());
    }
    key.push(b'\n');
    key.extend_from_slice(source.text.to_bytes_with_nul());
    key
}

/// FNV-1a (Fowler, Noll and Vo).
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Sizes of what follows and its sum, the key, the image.
fn read(path: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let data = std::fs::read(path).ok()?;
    let (head, rest) = data.split_at_checked(24)?;
    let number = |at: usize| head[at..at + 8].try_into().ok().map(u64::from_le_bytes);
    let (key_bytes, image_bytes, expected) = (number(0)?, number(8)?, number(16)?);
    let is_whole = key_bytes == key.len() as u64 && key_bytes.checked_add(image_bytes) == Some(rest.len() as u64);
    let image = rest.get(key.len()..)?;
    (is_whole && rest.starts_with(key) && sum(image) == expected).then(|| image.to_vec())
}

fn write(path: &Path, key: &[u8], image: &[u8]) -> std::io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut data = Vec::new();
    for number in [key.len() as u64, image.len() as u64, sum(image)] {
        data.extend_from_slice(&number.to_le_bytes());
    }
    data.extend_from_slice(key);
    data.extend_from_slice(image);
    let draft = path.with_extension(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    let written = std::fs::write(&draft, &data).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn a_file_counts_only_whole_and_for_the_very_same_source() {
        let folder = std::env::temp_dir().join(format!("weir-compiled-{}", std::process::id()));
        let path = folder.join("some").join("a.image");
        let options = [CString::new("-DX=1").unwrap()];
        let source = |text, arch| Source { text, options: &options, arch };
        let [one, two] = [c"__global__", c"__global__ "].map(|text| key(&source(text, 90), 12, 4));
        assert_ne!(key(&source(c"__global__", 80), 12, 4), one);
        assert!(read(&path, &one).is_none());
        write(&path, &one, b"image").unwrap();
        assert_eq!(read(&path, &one).unwrap(), b"image");
        assert!(read(&path, &two).is_none());
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 10, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(read(&path, &one).is_none(), "{cut}");
        }
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &changed).unwrap();
        assert!(read(&path, &one).is_none());
        std::fs::remove_dir_all(&folder).unwrap();
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
