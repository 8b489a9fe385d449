//! References to objects of weir.

/// A type that owns one reference to an object of the C interface, and gives it up when it is dropped.
macro_rules! handle {
    ($(#[$comment:meta])* $name:ident($raw:ty), $release:path) => {
        $(#[$comment])*
        pub struct $name(std::ptr::NonNull<$raw>);

        impl $name {
            /// Takes over the reference that a create call gave.
            ///
            /// # Safety
            /// `raw` is NULL, or a reference that nobody else gives up.
            pub(crate) unsafe fn from_raw(raw: *mut $raw) -> $crate::Result<$name> {
                std::ptr::NonNull::new(raw).map($name).ok_or_else(|| {
                    $crate::Error::new($crate::ErrorKind::Internal, concat!("weir gave no ", stringify!($name)))
                })
            }

            pub(crate) fn raw(&self) -> *mut $raw {
                self.0.as_ptr()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: this value's reference.
                unsafe { $release(self.raw()) }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0).finish()
            }
        }
    };
}

/// The same for a shared object, which any thread may use, and `Clone` takes one more reference to.
macro_rules! shared_handle {
    ($(#[$comment:meta])* $name:ident($raw:ty), $retain:path, $release:path) => {
        $crate::handle::handle!($(#[$comment])* $name($raw), $release);

        // SAFETY: "Any thread may call, several at once" is the rule for shared objects.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl Clone for $name {
            fn clone(&self) -> Self {
                // SAFETY: a live handle. It fails for no live handle.
                let _ = unsafe { $retain(self.raw()) };
                $name(self.0)
            }
        }
    };
}

pub(crate) use {handle, shared_handle};
