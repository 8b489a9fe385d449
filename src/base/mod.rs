//! Shared basics of every room: errors, objects with a tag and a count, descriptors, text, time.

mod clock;
pub mod desc;
pub mod dtype;
mod error;
mod fifo;
pub mod index;
pub mod live;
mod name;
pub mod object;
pub mod process;
mod reach;
pub mod reserve;
pub mod sort;
mod successors;
pub mod text;
pub mod time;
pub mod tune;

pub use desc::Desc;
pub use error::{Code, Error, Result, RunFailure};
pub use fifo::Fifo;
pub use name::Name;
pub use object::{Kind, Object, Ref, with_article};
pub use reach::Reach;
pub use successors::Successors;
