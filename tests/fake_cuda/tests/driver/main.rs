//! The driver through its C functions, in child processes that find it as a program does.

mod basics;
mod capture;
mod cuda;
mod graphs;
mod ptx;
mod random;
mod streams;
mod threads;
mod waited;
