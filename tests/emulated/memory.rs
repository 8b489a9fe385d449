//! Memory that the host cannot touch, and work that allocates nothing.

use crate::devices::Emulation;
use crate::kit::{BYTES, Device, LEN};
use weir_core::base::time::Deadline;
use weir_core::device::{Fill, HostAddress, Launch, Location, RecordedStep, RecordedWork, Recording, Transfer};
use weir_core::memory::heap;

/// In a child process: reads or writes one byte of the device's, through its address.
#[cfg(target_os = "linux")]
#[test]
fn a_touch_from_the_host_faults() {
    let d = Device::default();
    let address = d.memory("tensor a");
    let outcome = |touch: fn(*mut u8), at: usize| {
        // SAFETY: the child calls only what is legal after fork: it touches memory, and leaves by _exit.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                    touch(at as *mut u8);
                    libc::_exit(0)
                }
                child => {
                    let mut status = 0;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV
                }
            }
        }
    };
    let read: fn(*mut u8) = |at| {
        // SAFETY: on purpose not: it must fault.
        let _ = unsafe { at.read_volatile() };
    };
    // SAFETY: as above.
    let write: fn(*mut u8) = |at| unsafe { at.write_volatile(1) };
    for at in [address, address + BYTES - 1] {
        assert!(outcome(read, at), "a read of {at:#x}");
        assert!(outcome(write, at), "a write of {at:#x}");
    }
    let mut own = [0u8; 4];
    assert!(!outcome(write, own.as_mut_ptr() as usize), "the host's own memory is not meant");
}

/// Submission, work, events, the checker: nothing is allocated once each has been done before. By the whole process, so
/// this is counted in a process of its own.
#[test]
fn nothing_is_allocated_in_the_steady_state() {
    const NAME: &str = "memory::nothing_is_allocated_in_the_steady_state";
    if std::env::var_os("WEIR_TEST_ALONE").is_none() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args([NAME, "--exact", "--test-threads=1"]).env("WEIR_TEST_ALONE", "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    for (seed, flags) in [(0, 0), (0, Emulation::CHECK), (5, 0), (5, Emulation::CHECK)] {
        let d = Device::new(Emulation { seed, flags, kernel_ns: 1_000, ..Emulation::default() });
        d.ran.lock().reserve(100_000);
        let (s, t) = (d.stream("s"), d.stream("t"));
        let (a, b) = (d.memory("a"), d.memory("b"));
        let (ready, done, host) = (d.event(), d.event(), [1; LEN]);
        let kernel = d.sum(1);
        let (inputs, outputs) = ([crate::kit::view(a)], [crate::kit::view(b)]);
        // The sum, then two fills side by side.
        let fills = [(a, 3), (b, 4)].map(|(address, value)| Fill { name: "fill", address, bytes: 64, value });
        let [to_a, to_b] = fills.map(|fill| RecordedStep { work: RecordedWork::Fill(fill), after: &[0] });
        let sum = Launch { name: "sum", kernel: &kernel, inputs: &inputs, outputs: &outputs };
        let steps = [RecordedStep { work: RecordedWork::Launch(sum), after: &[] }, to_a, to_b];
        let executable = d.device.record(&Recording { name: "recording", steps: &steps }).unwrap();
        let round = || {
            // SAFETY: the array is there until the copy is done.
            let from = Location::Host(unsafe { HostAddress::new(host.as_ptr() as usize) });
            s.copy(&Transfer { name: "copy", to: Location::Device(a), from, bytes: BYTES }).unwrap();
            s.fill(&Fill { name: "fill", address: a, bytes: 64, value: 2 }).unwrap();
            s.record(&ready).unwrap();
            t.wait(&ready).unwrap();
            t.launch(&Launch { name: "sum", kernel: &kernel, inputs: &inputs, outputs: &outputs }).unwrap();
            executable.update(2, &steps[2].work).unwrap();
            t.replay(&executable, "a recording").unwrap();
            t.record(&done).unwrap();
            assert!(done.synchronize(Deadline::NEVER).unwrap());
            while !ready.is_reached().unwrap() {}
        };
        (0..200).for_each(|_| round());
        let before = heap::allocations();
        (0..1000).for_each(|_| round());
        assert_eq!(heap::allocations() - before, 0, "seed {seed}, flags {flags}");
    }
}
