//! Variables of the environment that lead to files.

use std::ffi::OsString;

/// A variable; `None` in a process with more rights than the user who started it. Such a process would read and write,
/// where the variable says, what that user may not.
pub fn trusted(name: &str) -> Option<OsString> {
    #[cfg(target_os = "linux")]
    // SAFETY: only reads the auxiliary vector.
    let has_more_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(target_os = "linux"))]
    let has_more_rights = true;
    if has_more_rights { None } else { std::env::var_os(name) }
}
