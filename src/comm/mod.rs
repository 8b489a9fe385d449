//! Communicators: graphs and streams whose values cross ranks, over a transport that the host lends.
//!
//! `transport` is what moves bytes (`host`: a vtable of C; `local`: ranks in one process); `algorithm` makes of an
//! operation what the transport can do, with the arithmetic of `reduce`; `request` is one call with its memory
//! (`staging`); `communicator` takes operations, and `driver` begins and ends them, and talks to the other ranks
//! (`message`, `inquiry`); `kernel` is what streams and graphs see, and `device_kernel` the same in the memory of
//! devices; `agree` compares the programs of all ranks, and `conformance` a transport with its contract.

mod active;
pub mod agree;
pub mod algorithm;
pub mod communicator;
pub mod conformance;
mod device_kernel;
mod driver;
pub mod host;
mod inquiry;
pub mod kernel;
mod lanes;
pub mod local;
pub mod message;
mod options;
mod reduce;
mod request;
mod staging;
mod tickets;
pub mod transport;

pub use communicator::Communicator;
pub use device_kernel::DeviceCommunication;
pub use kernel::{CommSettings, Communication, StreamCommunication};
pub use options::{CommFigures, CommOptions};
