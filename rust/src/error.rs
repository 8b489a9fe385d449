//! Failures: what failed, where, and why.

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use weir_core::abi::{weir_failure, weir_status, weir_status_value as Status};
use weir_core::ffi::{weir_last_error_message, weir_status_name, weir_thread_get_failure};

/// The result of a call of weir.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($(#[$comment:meta])* $kind:ident = $status:ident,)*) => {
        /// The kind of a failure. These are the canonical codes of Abseil, and one of weir's own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$comment])* $kind,)*
        }

        impl ErrorKind {
            /// The number in the C interface, `weir_status`.
            pub fn code(self) -> i32 {
                match self {
                    $(ErrorKind::$kind => Status::$status as i32,)*
                }
            }

            fn of(status: weir_status) -> ErrorKind {
                match status {
                    $(status if status == Status::$status as i32 => ErrorKind::$kind,)*
                    _ => ErrorKind::Unknown,
                }
            }
        }
    };
}

kinds! {
    /// The run or call was cancelled.
    Cancelled = WEIR_CANCELLED,
    /// A closure panicked, or failed for a reason that has no other kind.
    Unknown = WEIR_UNKNOWN,
    /// An argument is wrong in any state of the library.
    InvalidArgument = WEIR_INVALID_ARGUMENT,
    /// The time for a wait or a run has passed.
    DeadlineExceeded = WEIR_DEADLINE_EXCEEDED,
    /// A named thing does not exist.
    NotFound = WEIR_NOT_FOUND,
    /// A name is already taken.
    AlreadyExists = WEIR_ALREADY_EXISTS,
    /// The caller may not do this.
    PermissionDenied = WEIR_PERMISSION_DENIED,
    /// Memory is short, or a limit was reached.
    ResourceExhausted = WEIR_RESOURCE_EXHAUSTED,
    /// The object is not in a state in which this call is possible.
    FailedPrecondition = WEIR_FAILED_PRECONDITION,
    /// Something that the work depends on has failed.
    Aborted = WEIR_ABORTED,
    /// An index or a size is outside of its range.
    OutOfRange = WEIR_OUT_OF_RANGE,
    /// This build lacks it, or this kind of engine.
    Unimplemented = WEIR_UNIMPLEMENTED,
    /// A defect of weir. The text says where; please report it.
    Internal = WEIR_INTERNAL,
    /// The thing exists but cannot be used now.
    Unavailable = WEIR_UNAVAILABLE,
    /// Data was lost or corrupted.
    DataLoss = WEIR_DATA_LOSS,
    /// The device has failed for good.
    DeviceLost = WEIR_DEVICE_LOST,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: weir has a text for every number, for ever.
        let name = unsafe { CStr::from_ptr(weir_status_name(self.code())) };
        f.write_str(&name.to_string_lossy())
    }
}

/// A failure. [`kind`](Error::kind) is for programs, the text for people: it names the object and the cause.
///
/// ```
/// use weir::{Engine, ErrorKind, Graph};
///
/// let graph = Graph::new("empty")?;
/// let error = graph.compile(&[]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// assert!(error.to_string().starts_with("INVALID_ARGUMENT: weir_graph_compile"), "{error}");
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Failure>);

#[derive(Clone, PartialEq, Eq)]
struct Failure {
    kind: ErrorKind,
    message: String,
    node: Option<String>,
    engine: Option<String>,
    iteration: Option<(String, u64)>,
    not_run: Vec<String>,
}

impl Error {
    /// A failure of your own, for closures that weir calls.
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Error {
        let message = message.to_string();
        Error(Box::new(Failure { kind, message, node: None, engine: None, iteration: None, not_run: Vec::new() }))
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The text, without the kind.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The node of a program that failed.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// The name of the engine that the node ran on.
    pub fn engine(&self) -> Option<&str> {
        self.0.engine.as_deref()
    }

    /// The innermost loop around the node, and how many of its iterations were complete.
    pub fn iteration(&self) -> Option<(&str, u64)> {
        self.0.iteration.as_ref().map(|(node, count)| (node.as_str(), *count))
    }

    /// The nodes that were not run because of the failure.
    pub fn not_run(&self) -> &[String] {
        &self.0.not_run
    }

    /// The failure behind a status that weir has just returned in this thread.
    pub(crate) fn last(status: weir_status) -> Error {
        // SAFETY: the text is this thread's until its next call that fails.
        let message = unsafe { CStr::from_ptr(weir_last_error_message()) }.to_string_lossy().into_owned();
        let mut error = Error::new(ErrorKind::of(status), message);
        let mut failure = no_failure();
        // SAFETY: a struct of this size, with no room for names.
        if unsafe { weir_thread_get_failure(&raw mut failure) } != 0 || failure.code != status {
            return error;
        }
        let non_empty = |text: &[c_char]| Some(text_of(text)).filter(|text| !text.is_empty());
        error.0.node = non_empty(&failure.node);
        error.0.engine = non_empty(&failure.engine);
        let count = u64::try_from(failure.iteration).ok();
        error.0.iteration = count.and_then(|count| Some((non_empty(&failure.loop_node)?, count)));
        if failure.not_run_bytes > 0 {
            let mut names = vec![0u8; failure.not_run_bytes];
            failure.not_run = names.as_mut_ptr().cast();
            failure.not_run_capacity = names.len();
            // SAFETY: `not_run` has room for as many bytes as it says.
            if unsafe { weir_thread_get_failure(&raw mut failure) } == 0 {
                let each = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
                error.0.not_run = each.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            }
        }
        error
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)
    }
}

// The same text, since this is what a `main` that fails prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// A struct for a failure to be written to, with no room for names.
pub(crate) fn no_failure() -> weir_failure {
    weir_failure {
        struct_size: size_of::<weir_failure>(),
        code: 0,
        reserved: 0,
        iteration: -1,
        node: [0; _],
        loop_node: [0; _],
        engine: [0; _],
        message: [0; _],
        num_not_run: 0,
        not_run_bytes: 0,
        not_run: std::ptr::null_mut(),
        not_run_capacity: 0,
    }
}

/// The status of a call as a result. To be called before anything else in this thread calls weir.
pub(crate) fn check(status: weir_status) -> Result<()> {
    if status == Status::WEIR_OK as i32 { Ok(()) } else { Err(Error::last(status)) }
}

/// The text in an array of C, up to its NUL.
pub(crate) fn text_of(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A name for the C interface.
pub(crate) fn name(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(ErrorKind::InvalidArgument, format!("the name {text:?} has a NUL")))
}

/// A text for the C interface, whatever is in it.
pub(crate) fn message(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
