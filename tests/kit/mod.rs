//! What the tests of graphs share: kernels of one integer and graphs of them, runs, pools, and seeded draws.
#![allow(dead_code, reason = "each test takes what it needs")]

pub mod emulated;
pub mod integers;
pub mod pools;
pub mod random;
pub mod run;
