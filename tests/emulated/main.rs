//! The emulated device through the trait that all devices have.

mod control;
#[path = "../kit/emulated.rs"]
mod devices;
mod faults;
mod kit;
mod memory;
mod order;
mod programs;
mod races;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../kit/random.rs"]
mod random;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../kit/recordings.rs"]
mod recordings;
mod regions;
mod replays;
mod seeds;
mod threads;
mod times;
