//! What every room needs and none owns: errors, objects with a tag and a count, descriptors, time.
#![forbid(unsafe_code)]

pub mod desc;
pub mod dtype;
mod error;
pub mod live;
pub mod object;
pub mod time;

pub use desc::Desc;
pub use error::{Code, Error, Result};
pub use object::{Kind, Object, Ref};
