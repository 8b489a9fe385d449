//! Runs a program with the driver, for those that are no tests of cargo's:
//!
//!     with-fake-cuda [--version 12040] [--without function]... [NAME=value]... program [argument]...
//!
//! `NAME=value` sets `FAKE_CUDA_NAME`. The exit status is the program's.

use fake_cuda::testing::Driver;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

const USAGE: &str = "with-fake-cuda [--version 12040] [--without function]... [NAME=value]... program [argument]...";

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let mut driver = Driver::new();
    let program = loop {
        let argument = arguments.next().ok_or(USAGE)?;
        match (argument.as_str(), argument.split_once('=')) {
            ("--version", _) => {
                let version = arguments.next().and_then(|version| version.parse().ok());
                driver = driver.version(version.ok_or("--version takes a number such as 12040")?);
            }
            ("--without", _) => driver = driver.without(&arguments.next().ok_or("--without takes a function")?),
            (option, _) if option.starts_with('-') => return Err(format!("unknown option {option}\n{USAGE}")),
            (_, Some((name, value))) => driver = driver.set(name, value),
            _ => break argument,
        }
    };
    let mut command = Command::new(&program);
    command.args(arguments);
    driver.prepare(&mut command).map_err(|error| format!("the driver cannot be installed: {error}"))?;
    Err(format!("{program}: {}", command.exec()))
}

fn main() -> ExitCode {
    if let Err(why) = run() {
        eprintln!("with-fake-cuda: {why}");
    }
    ExitCode::from(127)
}
