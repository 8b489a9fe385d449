//! A device with streams, memory and kernels on 32-bit numbers, in few words.

use crate::devices::{Emulated, Emulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use weir_core::base::time::Deadline;
use weir_core::base::{Code, Desc, Result, dtype};
use weir_core::device::{
    DeviceEvent, DeviceKernel, DeviceStream, DeviceStreamAttr, Fill, HostAddress, HostFunction, Launch, Location,
    Operation, Recipe, Then, Transfer,
};
use weir_core::memory::View;
use weir_core::sync::Mutex;

/// So many numbers are in each array.
pub const LEN: usize = 64;
pub const BYTES: usize = LEN * 4;

pub struct Device {
    pub device: Emulated,
    /// What kernels ran, by their salts.
    pub ran: Arc<Mutex<Vec<i32>>>,
}

impl Default for Device {
    fn default() -> Self {
        Device::new(Emulation::default())
    }
}

/// out[i] = salt + sum of the inputs at i, and says that it ran.
struct Sum {
    salt: i32,
    ran: Arc<Mutex<Vec<i32>>>,
}

impl HostFunction for Sum {
    unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.ran.lock().push(self.salt);
        // All reads before all writes, so that it can work in place.
        let sums: [i32; LEN] = std::array::from_fn(|i| {
            // SAFETY: nobody writes them before this is over.
            inputs.iter().fold(self.salt, |sum, input| sum.wrapping_add(unsafe { input.as_bytes() }.read::<i32>()[i]))
        });
        for output in outputs {
            // SAFETY: nobody else has it while the kernel runs.
            unsafe { output.as_bytes_mut() }.write().copy_from_slice(&sums);
        }
        Ok(())
    }
}

/// A kernel that is any function.
struct Call<F>(F);

impl<F: Fn() -> Result<()> + Send + Sync> HostFunction for Call<F> {
    unsafe fn call(&self, _inputs: &[View], _outputs: &[View]) -> Result<()> {
        (self.0)()
    }
}

pub fn view(address: usize) -> View {
    // SAFETY: the device's memory, which lives as long as the test; the host only hands the address on.
    unsafe { View::new(address as *mut u8, BYTES, Desc::new(dtype::S32, &[LEN as i64])) }
}

impl Device {
    pub fn new(emulation: Emulation) -> Device {
        Device { device: Emulated::new(0, emulation).unwrap(), ran: Arc::default() }
    }

    /// With the checker.
    pub fn checked() -> Device {
        Device::new(Emulation { flags: Emulation::CHECK, ..Emulation::default() })
    }

    pub fn seeded(seed: u64) -> Device {
        Device::new(Emulation { seed, flags: Emulation::CHECK, ..Emulation::default() })
    }

    pub fn stream(&self, name: &str) -> Box<dyn DeviceStream> {
        self.device.stream(&DeviceStreamAttr { name, priority: 0 }).unwrap()
    }

    pub fn event(&self) -> Arc<dyn DeviceEvent> {
        self.device.event(true).unwrap()
    }

    pub fn event_or_lost(&self) -> Option<Arc<dyn DeviceEvent>> {
        self.device.event(false).ok()
    }

    pub fn memory(&self, what: &str) -> usize {
        self.device.allocate(BYTES, what).unwrap()
    }

    pub fn sum(&self, salt: i32) -> Arc<dyn DeviceKernel> {
        let host = Arc::new(Sum { salt, ran: Arc::clone(&self.ran) });
        self.device
            .kernel(&Recipe {
                name: "sum",
                operation: Operation::Host,
                num_inputs: 0,
                num_outputs: 0,
                host: Some(host),
            })
            .unwrap()
    }

    pub fn call(&self, f: impl Fn() -> Result<()> + Send + Sync + 'static) -> Arc<dyn DeviceKernel> {
        self.device
            .kernel(&Recipe {
                name: "call",
                operation: Operation::Host,
                num_inputs: 0,
                num_outputs: 0,
                host: Some(Arc::new(Call(f))),
            })
            .unwrap()
    }

    /// Texts of the reports.
    pub fn texts(&self) -> Vec<String> {
        self.device.races().into_iter().map(|race| race.text).collect()
    }

    /// All that was submitted to the stream is done.
    pub fn finish(&self, stream: &dyn DeviceStream) -> Result<()> {
        let event = self.device.event(true)?;
        stream.record(&event)?;
        assert!(event.synchronize(Deadline::after(20_000_000_000))?, "20 seconds were not enough");
        Ok(())
    }
}

pub fn launch(
    stream: &dyn DeviceStream,
    name: &str,
    kernel: &Arc<dyn DeviceKernel>,
    inputs: &[usize],
    outputs: &[usize],
) -> Result<()> {
    let views = |addresses: &[usize]| addresses.iter().map(|&address| view(address)).collect::<Vec<_>>();
    stream.launch(&Launch { name, kernel, inputs: &views(inputs), outputs: &views(outputs) })
}

pub fn upload(stream: &dyn DeviceStream, to: usize, from: &[i32; LEN]) -> Result<()> {
    // SAFETY: the callers keep the array until the copy is done.
    let from = Location::Host(unsafe { HostAddress::new(from.as_ptr() as usize) });
    stream.copy(&Transfer { name: "upload", to: Location::Device(to), from, bytes: BYTES })
}

pub fn download(stream: &dyn DeviceStream, to: &mut [i32; LEN], from: usize) -> Result<()> {
    // SAFETY: the callers keep the array until the copy is done.
    let to = Location::Host(unsafe { HostAddress::new(to.as_mut_ptr() as usize) });
    stream.copy(&Transfer { name: "download", to, from: Location::Device(from), bytes: BYTES })
}

pub fn fill(stream: &dyn DeviceStream, address: usize, value: u8) -> Result<()> {
    stream.fill(&Fill { name: "fill", address, bytes: BYTES, value })
}

pub fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code()
}

/// A number that kernels and tests share.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicU64>);

impl Count {
    pub fn add(&self) -> u64 {
        self.0.fetch_add(1, SeqCst) + 1
    }

    /// What adds to it when it is called.
    pub fn adder(&self) -> Then {
        let count = self.clone();
        Then::once(move || {
            count.add();
        })
    }

    pub fn get(&self) -> u64 {
        self.0.load(SeqCst)
    }

    /// Waits until it is this much.
    pub fn wait(&self, target: u64) {
        let deadline = Deadline::after(20_000_000_000);
        while self.get() < target {
            assert!(!deadline.is_past(), "{} of {target}", self.get());
            std::thread::yield_now();
        }
    }
}
