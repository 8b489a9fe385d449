use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

const LIMIT: u64 = 1 << 20;
/// Marks a process as the child of a test, and names its folder.
const CHILD: &str = "WEIR_TEST_DISK";
/// nobody.
const SOMEBODY: u32 = 65534;

/// A folder that is removed with the test, and does not exist at first.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(test: &str) -> TestFolder {
        let path = std::env::temp_dir().join(format!("weir-disk-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        TestFolder(path)
    }

    fn open(&self) -> Disk {
        Disk::open(&self.0, LIMIT).unwrap()
    }

    fn file(&self, key: &[u8]) -> PathBuf {
        self.0.join(name(key).to_str().unwrap())
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn fifo(path: &Path) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a text that ends with a NUL.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

fn is_root() -> bool {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// This test once more, in a process of its own.
fn child(test: &str, program: &Path, place: &Path) -> String {
    let path = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let child = Command::new(program).args(["--exact", &path, "--nocapture"]).env(CHILD, place).output().unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
    text
}

#[test]
fn folders_and_files_are_the_users_alone() {
    let place = TestFolder::new("modes");
    let inner = TestFolder(place.0.join("some").join("deep"));
    inner.open().write(b"key", b"image").unwrap();
    for folder in [&place.0, &place.0.join("some"), &inner.0] {
        assert_eq!(mode(folder), 0o700, "{folder:?}");
    }
    assert_eq!(mode(&inner.file(b"key")), 0o600);
    assert_eq!(inner.open().read(b"key").unwrap(), b"image");
    assert!(inner.open().read(b"key ").is_none());
    inner.open().write(b"key", b"another").unwrap();
    assert_eq!(inner.open().read(b"key").unwrap(), b"another");
    assert_eq!(inner.names().len(), 1);
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    let place = TestFolder::new("folder");
    place.open().write(b"key", b"image").unwrap();
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        set_mode(&place.0, mode);
        assert!(Disk::open(&place.0, LIMIT).is_err(), "{mode:o}");
    }
    // Others cannot have changed a folder that they may only read.
    set_mode(&place.0, 0o755);
    assert_eq!(place.open().read(b"key").unwrap(), b"image");
    let link = TestFolder(place.0.with_extension("link"));
    let _ = fs::remove_file(&link.0);
    symlink(&place.0, &link.0).unwrap();
    assert!(Disk::open(&link.0, LIMIT).is_err(), "a link");
    fs::remove_file(&link.0).unwrap();
    fifo(&link.0);
    assert!(Disk::open(&link.0, LIMIT).is_err(), "a FIFO");
    fs::remove_file(&link.0).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&place.0, Some(SOMEBODY), None).unwrap();
        assert!(Disk::open(&place.0, LIMIT).is_err(), "somebody else's");
    }
}

/// Anything put in the place of a file is not read, blocks nobody, and is replaced when the file is written again.
#[test]
fn what_is_no_file_of_the_users_alone_is_not_taken() {
    let place = TestFolder::new("files");
    let disk = place.open();
    let (file, elsewhere) = (place.file(b"key"), place.0.with_extension("elsewhere"));
    type Attack<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let mut attacks: Vec<Attack<'_>> = vec![
        (
            "a link to a good file",
            Box::new(|| {
                fs::rename(&file, &elsewhere).unwrap();
                symlink(&elsewhere, &file).unwrap();
            }),
        ),
        (
            "a FIFO",
            Box::new(|| {
                fs::remove_file(&file).unwrap();
                fifo(&file);
            }),
        ),
        ("others may write it", Box::new(|| set_mode(&file, 0o602))),
        ("a group may write it", Box::new(|| set_mode(&file, 0o660))),
        ("others may read it", Box::new(|| set_mode(&file, 0o604))),
        (
            "a device",
            Box::new(|| {
                fs::remove_file(&file).unwrap();
                symlink("/dev/zero", &file).unwrap();
            }),
        ),
    ];
    if is_root() {
        attacks.push(("somebody else's", Box::new(|| std::os::unix::fs::chown(&file, Some(SOMEBODY), None).unwrap())));
    }
    for (what, attack) in attacks {
        disk.write(b"key", b"image").unwrap();
        assert_eq!(disk.read(b"key").unwrap(), b"image", "{what}");
        attack();
        let before = fs::read(&elsewhere).ok();
        assert!(disk.read(b"key").is_none(), "{what}");
        disk.write(b"key", b"image").unwrap();
        assert!(fs::symlink_metadata(&file).unwrap().is_file(), "{what}");
        assert_eq!((disk.read(b"key").unwrap(), mode(&file)), (b"image".to_vec(), 0o600), "{what}");
        assert_eq!(fs::read(&elsewhere).ok(), before, "{what}: written through the link");
    }
    let _ = fs::remove_file(&elsewhere);
    // A folder cannot be replaced: then nothing is kept, and no draft stays.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(disk.read(b"key").is_none() && disk.write(b"key", b"image").is_err());
    assert_eq!(place.names().len(), 1);
}

#[test]
fn a_file_counts_only_whole_unchanged_and_under_its_own_name() {
    let place = TestFolder::new("whole");
    let disk = place.open();
    disk.write(b"key", b"image").unwrap();
    disk.write(b"yek", b"other").unwrap();
    let (file, whole) = (place.file(b"key"), fs::read(place.file(b"key")).unwrap());
    for bytes in 0..whole.len() {
        fs::write(&file, &whole[..bytes]).unwrap();
        assert!(disk.read(b"key").is_none(), "cut off after {bytes}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&file, &changed).unwrap();
        assert!(disk.read(b"key").is_none(), "changed at {at}");
    }
    fs::write(&file, [&whole[..], b"x"].concat()).unwrap();
    assert!(disk.read(b"key").is_none(), "with something behind");
    fs::copy(place.file(b"yek"), &file).unwrap();
    assert!(disk.read(b"key").is_none(), "another key's");
    // Sizes that no memory has: the file is not as long.
    let mut huge = whole.clone();
    huge[MAGIC.len() + 8..][..8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    fs::write(&file, &huge).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_len(HEAD as u64 + 3 + (1 << 40)).unwrap();
    assert!(disk.read(b"key").is_none(), "larger than all may be");
    fs::write(&file, &whole).unwrap();
    assert_eq!(disk.read(b"key").unwrap(), b"image");
}

#[test]
fn files_together_stay_within_the_limit_and_the_longest_unused_goes() {
    let place = TestFolder::new("limit");
    let disk = Disk::open(&place.0, 10_000).unwrap();
    let content = [7; 2000];
    let key = |i: u8| [b'k', i];
    let strange = place.0.join("mine.image");
    fs::write(&strange, [0; 50_000]).unwrap();
    let lost = place.0.join(format!("{}{DRAFT}", "ab".repeat(16)));
    fs::write(&lost, b"half").unwrap();
    let long_ago = SystemTime::now() - 2 * LOST;
    fs::File::options().write(true).open(&lost).unwrap().set_modified(long_ago).unwrap();
    for i in 0..4 {
        disk.write(&key(i), &content).unwrap();
        // An hour between them.
        let at = long_ago + Duration::from_secs(u64::from(i) * 600);
        fs::File::options().write(true).open(place.file(&key(i))).unwrap().set_modified(at).unwrap();
    }
    assert!(!lost.exists(), "a draft that nobody writes any more");
    // The oldest was used now, so the one after it goes.
    assert!(disk.read(&key(0)).is_some());
    disk.write(&key(4), &content).unwrap();
    let is_there: Vec<_> = (0..5).map(|i| disk.read(&key(i)).is_some()).collect();
    assert_eq!(is_there, [true, false, true, true, true]);
    assert!(disk.write(&key(5), &[0; 10_000]).is_err(), "larger than the limit");
    assert!(strange.exists(), "a file of somebody else's");
    assert_eq!(place.names().len(), 5);
    for i in 10..40 {
        disk.write(&key(i), &content).unwrap();
        assert!(disk.read(&key(i)).is_some(), "the newest stays");
    }
    let of_ours = place.names().into_iter().filter(|name| is_ours(name.as_bytes()));
    let total: u64 = of_ours.map(|name| fs::metadata(place.0.join(name)).unwrap().len()).sum();
    assert!(total <= 10_000, "{total}");
}

#[test]
fn many_writers_at_once_leave_whole_files_and_no_drafts() {
    let place = TestFolder::new("writers");
    let _ = place.open();
    let content = |writer: u8, round: u8| vec![writer ^ round; 3000];
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let place = &place;
            scope.spawn(move || {
                // Each has the folder open by itself, as processes do; together they are above the limit.
                let disk = Disk::open(&place.0, 20_000).unwrap();
                for round in 0..60 {
                    let shared = [round % 3];
                    disk.write(&shared, &content(writer, round)).unwrap();
                    disk.write(&[writer, round], &content(writer, round)).unwrap();
                    if let Some(found) = disk.read(&shared) {
                        assert!(found.len() == 3000 && found.iter().all(|byte| *byte == found[0]));
                    }
                }
            });
        }
    });
    Disk::open(&place.0, 20_000).unwrap().write(b"last", b"").unwrap();
    let names = place.names();
    assert!(names.iter().all(|name| name.ends_with(SUFFIX)), "{names:?}");
    let total: u64 = names.iter().map(|name| fs::metadata(place.0.join(name)).unwrap().len()).sum();
    assert!(total <= 20_000, "{total}");
}

/// In a process of its own: limits of file sizes and mounts are a process's.
#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let test = "a_full_disk_leaves_nothing_half_written";
    let Some(path) = std::env::var_os(CHILD) else {
        let place = TestFolder::new("full");
        fs::create_dir(&place.0).unwrap();
        print!("{}", child(test, &std::env::current_exe().unwrap(), &place.0));
        return;
    };
    let place = TestFolder(PathBuf::from(path));
    // SAFETY: a process of its own; a text that ends with a NUL for each text, and no data where none is needed.
    unsafe {
        let target = CString::new(place.0.to_str().unwrap()).unwrap();
        let (tmpfs, options) = (c"tmpfs".as_ptr(), c"size=64k,mode=700".as_ptr().cast());
        let root = c"/".as_ptr();
        let null = std::ptr::null();
        let is_mounted = libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(null, root, null, libc::MS_REC | libc::MS_PRIVATE, null.cast()) == 0
            && libc::mount(tmpfs, target.as_ptr(), tmpfs, 0, options) == 0;
        if !is_mounted {
            println!(
                "no file system can be mounted here ({}): a limit of file sizes instead",
                io::Error::last_os_error()
            );
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let limit = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
        }
    }
    let disk = place.open();
    disk.write(b"small", b"image").unwrap();
    let error = disk.write(b"large", &[1; 100_000]).unwrap_err();
    assert!(matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EFBIG)), "{error}");
    assert!(disk.read(b"large").is_none());
    assert_eq!(disk.read(b"small").unwrap(), b"image");
    assert_eq!(place.names().len(), 1, "the draft is gone");
    disk.write(b"more", &[1; 20_000]).unwrap();
    assert_eq!(disk.read(b"more").unwrap(), [1; 20_000]);
}

/// A copy of this program that runs with the rights of its owner, which only root can make.
#[test]
fn a_process_with_more_rights_than_its_user_reads_no_variables() {
    let test = "a_process_with_more_rights_than_its_user_reads_no_variables";
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: only reads the auxiliary vector.
        let has_more_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
        println!("secure: {has_more_rights}");
        assert_eq!(crate::sync::environment::trusted(CHILD).is_none(), has_more_rights);
        return;
    }
    let place = TestFolder::new("secure");
    let program = std::env::current_exe().unwrap();
    assert!(child(test, &program, &place.0).contains("secure: false"));
    if is_root() {
        fs::create_dir(&place.0).unwrap();
        let copy = place.0.join("program");
        fs::copy(&program, &copy).unwrap();
        set_mode(&place.0, 0o755);
        std::os::unix::fs::chown(&copy, Some(SOMEBODY), None).unwrap();
        set_mode(&copy, 0o4755);
        assert!(child(test, &copy, &place.0).contains("secure: true"));
    }
}
