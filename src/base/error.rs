//! The library's error: a code and an owned text that names the object and the cause.
#![forbid(unsafe_code)]

use super::object;
use crate::abi::{weir_status, weir_status_value as C};
use std::any::Any;
use std::ffi::CStr;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// `Result` with the library's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of failure; the values of `weir_status_value` without OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    DeviceLost,
}

const CODES: [(Code, C, &CStr); 16] = [
    (Code::Cancelled, C::WEIR_CANCELLED, c"CANCELLED"),
    (Code::Unknown, C::WEIR_UNKNOWN, c"UNKNOWN"),
    (Code::InvalidArgument, C::WEIR_INVALID_ARGUMENT, c"INVALID_ARGUMENT"),
    (Code::DeadlineExceeded, C::WEIR_DEADLINE_EXCEEDED, c"DEADLINE_EXCEEDED"),
    (Code::NotFound, C::WEIR_NOT_FOUND, c"NOT_FOUND"),
    (Code::AlreadyExists, C::WEIR_ALREADY_EXISTS, c"ALREADY_EXISTS"),
    (Code::PermissionDenied, C::WEIR_PERMISSION_DENIED, c"PERMISSION_DENIED"),
    (Code::ResourceExhausted, C::WEIR_RESOURCE_EXHAUSTED, c"RESOURCE_EXHAUSTED"),
    (Code::FailedPrecondition, C::WEIR_FAILED_PRECONDITION, c"FAILED_PRECONDITION"),
    (Code::Aborted, C::WEIR_ABORTED, c"ABORTED"),
    (Code::OutOfRange, C::WEIR_OUT_OF_RANGE, c"OUT_OF_RANGE"),
    (Code::Unimplemented, C::WEIR_UNIMPLEMENTED, c"UNIMPLEMENTED"),
    (Code::Internal, C::WEIR_INTERNAL, c"INTERNAL"),
    (Code::Unavailable, C::WEIR_UNAVAILABLE, c"UNAVAILABLE"),
    (Code::DataLoss, C::WEIR_DATA_LOSS, c"DATA_LOSS"),
    (Code::DeviceLost, C::WEIR_DEVICE_LOST, c"DEVICE_LOST"),
];

impl Code {
    /// The number that C sees.
    pub fn status(self) -> weir_status {
        CODES.iter().find(|row| row.0 == self).map_or(C::WEIR_INTERNAL as i32, |row| row.1 as i32)
    }

    /// The code with this number; `None` for OK and for unknown numbers.
    pub fn from_status(status: weir_status) -> Option<Code> {
        CODES.iter().find(|row| row.1 as i32 == status).map(|row| row.0)
    }

    /// The name of a status number.
    pub fn name_of(status: weir_status) -> &'static CStr {
        if status == C::WEIR_OK as i32 {
            return c"OK";
        }
        CODES.iter().find(|row| row.1 as i32 == status).map_or(c"UNKNOWN_CODE", |row| row.2)
    }
}

/// A failure. Cheap to clone: the text is shared, because a stream keeps its late error and others report it.
#[must_use]
#[derive(Clone)]
pub struct Error(Arc<ErrorBody>);

#[derive(Clone)]
struct ErrorBody {
    code: Code,
    message: String,
    /// Where the message says "engine cpu:0: ". Empty: nowhere.
    place: Range<usize>,
    run: Option<RunFailure>,
    /// The code of the failure that caused this one.
    origin: Option<Code>,
}

/// Details of a failed run.
#[derive(Clone, Debug, Default)]
pub struct RunFailure {
    /// The node that failed; None if the run was cancelled from outside.
    pub node: Option<Arc<str>>,
    /// The engine that the node ran on.
    pub engine: Option<Arc<str>>,
    /// The innermost loop around it, and the number of completed iterations.
    pub iteration: Option<(Arc<str>, u64)>,
    /// The nodes that were not begun because of the failure, in the order of the program.
    pub left_out: Vec<Arc<str>>,
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error(Arc::new(ErrorBody { code, message: message.into(), place: 0..0, run: None, origin: None }))
    }

    /// A copy that shares no memory with this one.
    pub fn copied(&self) -> Error {
        let copy = |text: &Arc<str>| Arc::<str>::from(&**text);
        let run = self.0.run.as_ref().map(|run| RunFailure {
            node: run.node.as_ref().map(copy),
            engine: run.engine.as_ref().map(copy),
            iteration: run.iteration.as_ref().map(|(node, count)| (copy(node), *count)),
            left_out: run.left_out.iter().map(copy).collect(),
        });
        Error(Arc::new(ErrorBody { run, ..ErrorBody::clone(&self.0) }))
    }

    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(Code::InvalidArgument, message)
    }

    pub fn out_of_range(message: impl Into<String>) -> Error {
        Error::new(Code::OutOfRange, message)
    }

    pub fn precondition(message: impl Into<String>) -> Error {
        Error::new(Code::FailedPrecondition, message)
    }

    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Code::Internal, message)
    }

    /// Out of memory: `bytes` were requested for `what`.
    pub fn exhausted(what: &str, bytes: usize) -> Error {
        Error::new(Code::ResourceExhausted, format!("out of memory: {what} needs {bytes} bytes"))
    }

    /// A NULL where none is allowed.
    pub fn null(argument: &str) -> Error {
        Error::invalid(format!("{argument} is NULL"))
    }

    /// A handle of another kind, or a pointer to something else entirely.
    pub fn wrong_handle(argument: &str, expected: &str, tag: Option<u32>) -> Error {
        let found = match tag.and_then(object::name_of) {
            Some(found) => object::with_article(found),
            None => "no weir object".to_owned(),
        };
        Error::invalid(format!("{argument}: expected {}, got {found}", object::with_article(expected)))
    }

    /// A host callback returned `status`.
    pub fn from_status(status: weir_status, what: impl fmt::Display) -> Error {
        match Code::from_status(status) {
            Some(code) => Error::new(code, format!("{what} failed with {}", Code::name_of(status).to_string_lossy())),
            None => Error::new(Code::Unknown, format!("{what} returned {status}, which is no status of weir")),
        }
    }

    /// A caught panic.
    pub fn from_panic(payload: &(dyn Any + Send)) -> Error {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no text");
        Error::internal(format!("a defect of weir, please report it: {text}"))
    }

    /// The same code, with a prefix before the text.
    pub fn within(self, place: impl fmt::Display) -> Error {
        let message = format!("{place}: {}", self.0.message);
        let (Range { start, end }, more) = (self.0.place.clone(), message.len() - self.0.message.len());
        let place = if start < end { start + more..end + more } else { 0..0 };
        Error(Arc::new(ErrorBody { message, place, ..ErrorBody::clone(&self.0) }))
    }

    /// The same code, with the engine before the text.
    pub fn at_engine(self, label: &str) -> Error {
        self.at(&format!("engine {label}"))
    }

    /// The same code, with an engine or its memory before the text, which names it there alone: who has failed on an
    /// engine need not know whether others name it, too. Of "engine cpu:0" and "engine cpu:0, pinned memory" the text
    /// has the second.
    pub fn at(self, place: &str) -> Error {
        let (text, Range { start, end }) = (&self.0.message, self.0.place.clone());
        let before = &text[start..end.saturating_sub(": ".len()).max(start)];
        let is_part = before.strip_prefix(place).is_some_and(|rest| rest.starts_with(", "));
        let place = if is_part { before } else { place };
        let message = format!("{place}: {}{}", &text[..start], &text[end..]);
        Error(Arc::new(ErrorBody { message, place: 0..place.len() + 2, ..ErrorBody::clone(&self.0) }))
    }

    /// The same code, with more behind the text.
    pub fn followed_by(self, more: &str) -> Error {
        let message = format!("{}{more}", self.0.message);
        Error(Arc::new(ErrorBody { message, ..ErrorBody::clone(&self.0) }))
    }

    /// The code of the first one and the texts of all; OK if there is none.
    pub fn all_of(errors: impl IntoIterator<Item = Error>) -> Result<()> {
        let mut errors = errors.into_iter();
        let Some(first) = errors.next() else { return Ok(()) };
        let rest = errors.map(|error| format!("; {}", error.message())).collect::<String>();
        Err(if rest.is_empty() { first } else { Error::new(first.code(), format!("{}{rest}", first.message())) })
    }

    /// ABORTED: the work depends on something that has failed.
    pub fn derived(origin: &Error, message: impl Into<String>) -> Error {
        let origin = origin.0.origin.unwrap_or(origin.0.code);
        let (code, message, origin) = (Code::Aborted, message.into(), Some(origin));
        Error(Arc::new(ErrorBody { code, message, place: 0..0, run: None, origin }))
    }

    /// With the code of the failure that caused this one, if there is one.
    pub fn as_origin(self) -> Error {
        match self.0.origin {
            None => self,
            Some(code) => Error(Arc::new(ErrorBody { code, origin: None, ..ErrorBody::clone(&self.0) })),
        }
    }

    /// Adds the details of the failed run.
    pub fn with_run(self, run: RunFailure) -> Error {
        Error(Arc::new(ErrorBody { run: Some(run), ..ErrorBody::clone(&self.0) }))
    }

    /// The details of the run, if this is a run's failure.
    pub fn run(&self) -> Option<&RunFailure> {
        self.0.run.as_ref()
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Code::name_of(self.0.code.status()).to_string_lossy(), self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn codes_and_numbers_agree_both_ways() {
        for (code, number, name) in CODES {
            assert_eq!(code.status(), number as i32);
            assert_eq!(Code::from_status(number as i32), Some(code));
            assert_eq!(Code::name_of(number as i32), name);
        }
        assert_eq!(Code::from_status(0), None);
        assert_eq!(Code::name_of(0), c"OK");
        assert_eq!(Code::name_of(99), c"UNKNOWN_CODE");
    }

    #[test]
    fn a_wrong_handle_reads_well_for_each_kind() {
        let text = |tag| Error::wrong_handle("engine", "engine", tag).message().to_owned();
        assert_eq!(text(None), "engine: expected an engine, got no weir object");
        assert_eq!(text(Some(1)), "engine: expected an engine, got no weir object");
        for (tag, name) in object::tag::ALL {
            let article = match *name {
                "packed_weights" => "",
                "engine" | "engine_attr" | "event" | "allocator" => "an ",
                _ => "a ",
            };
            assert_eq!(text(Some(*tag)), format!("engine: expected an engine, got {article}{name}"));
        }
    }

    #[test]
    fn a_text_names_the_engine_once_and_where_it_was_named_last() {
        let error = Error::invalid("launch: no").at_engine("board:0").within("node 'a'");
        assert_eq!(error.message(), "node 'a': engine board:0: launch: no");
        let error = error.at_engine("board:0");
        assert_eq!(error.message(), "engine board:0: node 'a': launch: no");
        let error = error.within("stream 's'").at_engine("mine/board:0").within("weir_f");
        assert_eq!(error.message(), "weir_f: engine mine/board:0: stream 's': node 'a': launch: no");
        assert_eq!(error.as_origin().at_engine("é").message(), "engine é: weir_f: stream 's': node 'a': launch: no");
        let error = Error::invalid("no").at_engine("b:0").within("4 bytes").at("engine b:0, pinned memory");
        let error = error.followed_by("; 0 in use").within("frame").at_engine("b:0");
        assert_eq!(error.message(), "engine b:0, pinned memory: frame: 4 bytes: no; 0 in use");
        assert_eq!(error.at_engine("b").message(), "engine b: frame: 4 bytes: no; 0 in use");
    }

    #[test]
    fn an_unknown_callback_status_is_named() {
        let error = Error::from_status(4711, "task 'a'");
        assert_eq!(error.code(), Code::Unknown);
        assert_eq!(error.message(), "task 'a' returned 4711, which is no status of weir");
    }
}
