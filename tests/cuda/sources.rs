//! Kernels from CUDA C++: the compiler, which is found or not, and what is kept of its work on disk. The compiler is
//! `fake_nvrtc.rs`.

use crate::bench::{Bench, LEN, kernel_desc, number, output, output_elements};
use crate::kit::{only_with_the_fake, with_driver};
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_core::abi::weir_cuda_source_value;
use weir_core::base::{Code, Ref, Result};
use weir_core::engine::BoundKernel;

/// The folder of the compiler, which is made if it is not there.
fn compiler() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().join("fake-nvrtc");
    std::fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/fake_nvrtc.rs");
    let draft = folder.join(format!("draft-{}-{:?}", std::process::id(), std::thread::current().id()));
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "nvrtc", "--cap-lints", "allow", "-o"])
        .args([&draft, &source])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::rename(&draft, folder.join("libnvrtc.so")).unwrap();
    folder
}

/// In a process that has the driver and, with a folder, the compiler, and keeps its work in a folder that is empty at
/// first.
fn with_compiler(name: &str, settings: &[(&str, &str)], body: impl FnOnce()) {
    if !only_with_the_fake() {
        return;
    }
    let is_child = std::env::var_os("FAKE_CUDA_CHILD").is_some();
    let kept = std::env::temp_dir().join(format!("weir-cuda-{name}-{}", std::process::id()));
    let folder = if is_child { PathBuf::new() } else { compiler() };
    let (folder, kept_text) = (folder.display().to_string(), kept.display().to_string());
    let mut all = vec![("PATH", folder.as_str()), ("WEIR_CUDA_CACHE", kept_text.as_str())];
    all.extend(settings);
    with_driver(&all, body);
    if !is_child {
        let _ = std::fs::remove_dir_all(&kept);
    }
}

fn compiled() -> u64 {
    // SAFETY: the library was loaded by then, and its function has this type.
    unsafe {
        let library = libc::dlopen(c"libnvrtc.so".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null());
        let count: extern "C" fn() -> u64 = std::mem::transmute(libc::dlsym(library, c"fakeNvrtcCompiled".as_ptr()));
        count()
    }
}

const SOURCE: &str = "extern \"C\" __global__ void fill(int *x, unsigned long long n, int by) { }";

fn fill(bench: &Bench, source: &str, value: u32) -> Result<Ref<BoundKernel>> {
    let value = [value];
    let arguments = [output(0), output_elements(0), number(&value)];
    let desc = kernel_desc(source, weir_cuda_source_value::WEIR_CUDA_SOURCE_TEXT, c"fill", &arguments, 0);
    bench.create("fill", 0, &desc)
}

fn fills(bench: &Bench, source: &str, value: u32) {
    let x = bench.on_device().unwrap();
    bench.stream.enqueue(fill(bench, source, value).unwrap(), vec![], vec![x.clone()]).unwrap();
    assert_eq!(bench.read(&x).unwrap(), vec![value as i32; LEN]);
}

#[test]
fn without_a_compiler_sources_are_refused_and_say_why() {
    if !only_with_the_fake() {
        return;
    }
    with_driver(&[], || {
        let error = fill(&Bench::new(), SOURCE, 1).map(drop).unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        assert!(error.message().contains("the compiler of CUDA, NVRTC, is not installed"), "{error}");
    });
}

#[test]
fn a_source_is_compiled_once_and_then_read_from_disk() {
    with_compiler("once", &[], || {
        let bench = Bench::new();
        fills(&bench, SOURCE, 3);
        assert_eq!(compiled(), 1);
        fills(&bench, SOURCE, 4);
        assert_eq!(compiled(), 1, "the same source");
        fills(&bench, &format!("{SOURCE}\n"), 5);
        assert_eq!(compiled(), 2, "another source");
        let kept = std::env::var_os("WEIR_CUDA_CACHE").unwrap();
        let files: Vec<_> = std::fs::read_dir(kept).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 2, "{files:?}");
        // What was damaged is made again.
        files.iter().for_each(|file| std::fs::write(file, "nonsense").unwrap());
        fills(&bench, SOURCE, 6);
        assert_eq!(compiled(), 3);
    });
}

/// The folder where the compiler's work is kept, and the one file in it.
fn kept() -> (PathBuf, PathBuf) {
    let folder = PathBuf::from(std::env::var_os("WEIR_CUDA_CACHE").unwrap());
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    (folder, files[0].clone())
}

#[test]
fn what_is_kept_is_the_users_alone_and_what_is_not_is_compiled_again() {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    with_compiler("attacked", &[], || {
        let bench = Bench::new();
        fills(&bench, SOURCE, 1);
        let (folder, file) = kept();
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        let elsewhere = folder.with_extension("elsewhere");
        type Attack<'a> = (&'a str, Box<dyn Fn() + 'a>);
        let mut attacks: Vec<Attack<'_>> = vec![
            (
                "others may write it",
                Box::new(|| std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap()),
            ),
            (
                "a link",
                Box::new(|| {
                    std::fs::rename(&file, &elsewhere).unwrap();
                    symlink(&elsewhere, &file).unwrap();
                }),
            ),
            (
                "a FIFO",
                Box::new(|| {
                    std::fs::remove_file(&file).unwrap();
                    let name = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
                    // SAFETY: a text that ends with a NUL.
                    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
                }),
            ),
        ];
        if std::fs::metadata(&folder).unwrap().uid() == 0 {
            // Only root can give a file away.
            attacks.push(("nobody's", Box::new(|| std::os::unix::fs::chown(&file, Some(65534), None).unwrap())));
        }
        // A FIFO that is opened as a file holds a test up for ever.
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let start = std::time::Instant::now();
                while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                    if start.elapsed().as_secs() > 60 {
                        eprintln!("it hangs");
                        std::process::abort();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
            });
            for (i, (what, attack)) in attacks.iter().enumerate() {
                attack();
                fills(&bench, SOURCE, 2);
                assert_eq!(compiled(), 2 + i as u64, "{what}");
                assert!(std::fs::symlink_metadata(&file).unwrap().is_file() && mode(&file) == 0o600, "{what}");
                fills(&bench, SOURCE, 3);
                assert_eq!(compiled(), 2 + i as u64, "{what}: read from the new one");
            }
            is_over.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let before = compiled();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        fills(&bench, SOURCE, 4);
        assert_eq!(compiled(), before + 1, "a folder that others can write in");
        let _ = std::fs::remove_file(&elsewhere);
    });
}

#[test]
fn nothing_is_kept_where_nothing_may_be() {
    with_compiler("nowhere", &[("WEIR_CUDA_CACHE", "")], || {
        let bench = Bench::new();
        (1..=2).for_each(|value| fills(&bench, SOURCE, value));
        assert_eq!(compiled(), 2);
    });
}

#[test]
fn mistakes_are_told_in_the_compilers_words_and_old_compilers_do_what_they_can() {
    with_compiler("mistakes", &[("FAKE_NVRTC_ARCHS", "75,80")], || {
        let bench = Bench::new();
        let error = fill(&bench, "#error", 1).map(drop).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().ends_with("kernel.cu(1): error: #error directive"), "{error}");
        // For a device of 8.0, as PTX.
        fills(&bench, SOURCE, 7);
    });
}

#[test]
fn a_compiler_of_newer_devices_alone() {
    with_compiler("newer", &[("FAKE_NVRTC_ARCHS", "120")], || {
        let error = fill(&Bench::new(), SOURCE, 1).map(drop).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{error}");
        assert!(error.message().contains("NVRTC has no code for devices of compute capability 90"), "{error}");
    });
}
