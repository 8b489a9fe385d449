//! The emulated device through the trait that all devices have.

mod faults;
mod kit;
mod memory;
mod order;
mod programs;
mod races;
mod replays;
mod seeds;
mod threads;
mod times;
