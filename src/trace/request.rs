//! The wish of the variable WEIR_TRACE of the environment: a trace of the whole process, without a word in the
//! program.
//!
//! ```text
//! request = part { ";" part }
//! part    = format ":" path | "report" | "records=" number | "threads=" number | "keep_last" | "log:" path
//! ```
//!
//! A report without a path goes to standard error. In a path `%p` is the number of the process, `%%` a percent sign and
//! `%;` a semicolon. `log` is for the program weir_trace (`environment`).
#![forbid(unsafe_code)]

use super::format::TraceFormat;
use super::recorder::Settings;
use crate::base::{Error, Result};
use std::ops::RangeInclusive;
use std::path::PathBuf;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct TraceRequest {
    /// Each format with its file, or with standard error.
    pub files: Vec<(TraceFormat, Option<PathBuf>)>,
    /// A file for a line about each thing that was done.
    pub log: Option<PathBuf>,
    pub records: Option<usize>,
    pub threads: Option<usize>,
    pub keeps_last: bool,
}

impl TraceRequest {
    /// `None` if the text asks for nothing. `process` stands for %p; paths are relative to the present directory.
    pub fn parse(text: &str, process: u32) -> Result<Option<TraceRequest>> {
        if text.is_empty() {
            return Ok(None);
        }
        let mut request = TraceRequest::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(end_of_part(rest));
            request.add(part, process)?;
            rest = behind.strip_prefix(';').unwrap_or(behind);
        }
        if request.files.is_empty() {
            return Err(Error::invalid("it names no format"));
        }
        Ok(Some(request))
    }

    fn add(&mut self, part: &str, process: u32) -> Result<()> {
        if let Some((what, path)) = part.split_once(':') {
            let format = TraceFormat::from_name(what);
            if format.is_none() && what != "log" {
                return Err(Error::invalid(format!("'{what}' is no format, expected {}", formats())));
            }
            let path = decoded(path, process).map_err(|error| error.within(format_args!("'{part}'")))?;
            match format {
                Some(format) => self.files.push((format, Some(path))),
                None => set(&mut self.log, path, what)?,
            }
            return Ok(());
        }
        if let Some((what, number)) = part.split_once('=') {
            let (place, limits) = match what {
                "records" => (&mut self.records, Settings::RECORDS),
                "threads" => (&mut self.threads, Settings::THREADS),
                _ => return Err(unknown(part)),
            };
            return set(place, within(what, number, &limits)?, what);
        }
        match part {
            "report" => self.files.push((TraceFormat::Report, None)),
            "keep_last" => self.keeps_last = true,
            _ if TraceFormat::from_name(part).is_some() => {
                return Err(Error::invalid(format!("'{part}' names no file, expected {part}:FILE")));
            }
            _ => return Err(unknown(part)),
        }
        Ok(())
    }

    pub fn settings(&self) -> Settings {
        Settings {
            filter: super::recorder::Filter::Everything,
            keeps: None,
            keeps_last: self.keeps_last,
            records: self.records.unwrap_or(Settings::DEFAULT_RECORDS).next_power_of_two(),
            threads: self.threads.unwrap_or(Settings::DEFAULT_THREADS),
        }
    }
}

/// Where the first part ends: a semicolon behind a percent sign belongs to a path.
fn end_of_part(text: &str) -> usize {
    let mut is_behind_percent = false;
    let is_end = |byte: u8| {
        let is_end = byte == b';' && !is_behind_percent;
        is_behind_percent = byte == b'%' && !is_behind_percent;
        is_end
    };
    text.bytes().position(is_end).unwrap_or(text.len())
}

fn decoded(path: &str, process: u32) -> Result<PathBuf> {
    let mut plain = String::new();
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        match (character, if character == '%' { characters.next() } else { None }) {
            ('%', Some('p')) => plain.push_str(&process.to_string()),
            ('%', Some(escaped @ ('%' | ';'))) => plain.push(escaped),
            ('%', other) => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(Error::invalid(format!("'%{other}' is none of %p, %% and %;")));
            }
            _ => plain.push(character),
        }
    }
    if plain.is_empty() {
        return Err(Error::invalid("the path is empty"));
    }
    // The program may go to another directory before it ends.
    Ok(std::path::absolute(&plain).unwrap_or_else(|_| plain.into()))
}

fn within(what: &str, number: &str, limits: &RangeInclusive<usize>) -> Result<usize> {
    let parsed = number.parse().ok().filter(|number| limits.contains(number));
    parsed
        .ok_or_else(|| Error::invalid(format!("{what} is '{number}', expected {} to {}", limits.start(), limits.end())))
}

fn set<T>(place: &mut Option<T>, value: T, what: &str) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("'{what}' is there twice"))),
    }
}

fn formats() -> String {
    TraceFormat::NAMES.map(|(name, _)| name).join(", ")
}

fn unknown(part: &str) -> Error {
    Error::invalid(format!(
        "'{part}' is unknown, expected FORMAT:FILE (formats: {}), report, records=N, threads=N or keep_last",
        formats()
    ))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn parse(text: &str) -> TraceRequest {
        TraceRequest::parse(text, 42).unwrap().unwrap()
    }

    #[test]
    fn every_format_and_setting_has_a_word() {
        for (name, format) in TraceFormat::NAMES {
            assert_eq!(parse(&format!("{name}:/a")).files, [(format, Some("/a".into()))]);
        }
        let all = parse("html:/tmp/a.html;report;records=1000;threads=3;keep_last;log:/log");
        let files = vec![(TraceFormat::Html, Some("/tmp/a.html".into())), (TraceFormat::Report, None)];
        let (records, threads) = (Some(1000), Some(3));
        assert_eq!(all, TraceRequest { files, log: Some("/log".into()), records, threads, keeps_last: true });
        let settings = all.settings();
        assert_eq!((settings.records, settings.threads, settings.keeps_last), (1024, 3, true));
        let settings = parse("report").settings();
        assert_eq!((settings.records, settings.threads), (Settings::DEFAULT_RECORDS, Settings::DEFAULT_THREADS));
        assert_eq!(TraceRequest::parse("", 42).unwrap(), None);
        assert_eq!(parse("report;").files.len(), 1);
    }

    #[test]
    fn a_path_may_have_every_character() {
        let path = |text: &str| parse(text).files[0].1.clone().unwrap();
        assert_eq!(path("json:/%p/%%p%;x=1:y;keep_last"), PathBuf::from("/42/%p;x=1:y"));
        assert_eq!(path("json:a b"), std::env::current_dir().unwrap().join("a b"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| TraceRequest::parse(text, 42).unwrap_err().message().to_owned();
        for (text, named) in [
            ("htm:a", "'htm' is no format, expected perfetto, chrome, folded, pprof, report, html, json"),
            ("html", "'html' names no file, expected html:FILE"),
            ("html:", "'html:': the path is empty"),
            ("html:a%", "'html:a%': '%' is none of %p, %% and %;"),
            ("html:a%q", "'html:a%q': '%q' is none of"),
            ("yes", "'yes' is unknown, expected FORMAT:FILE"),
            ("report;;report", "'' is unknown"),
            ("report;record=100", "'record=100' is unknown"),
            ("report;records=63", "records is '63', expected 64 to 67108864"),
            ("report;threads=x", "threads is 'x', expected 1 to 4096"),
            ("report;threads=1;threads=2", "'threads' is there twice"),
            ("log:a;log:b", "'log' is there twice"),
            ("records=100", "it names no format"),
        ] {
            assert!(wrong(text).contains(named), "{text}: {}", wrong(text));
        }
    }
}
