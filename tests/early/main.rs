//! Control flow that goes on before everything that leads to it is there. A value comes late here: its kernel completes
//! only when a certain node has run that does not need it. Whoever waits for more than it needs waits for ever.

mod branches;
mod build;
mod ends;
#[path = "../kit/mod.rs"]
mod kit;
mod loops;
mod merges;
