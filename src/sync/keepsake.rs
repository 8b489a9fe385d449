//! One boxed value for each thread, dropped when the thread ends.
//!
//! `thread_local!` would do, except for memory: the C library registers a destructor at first use, and ends the process
//! when it has no memory for that. A pthread key reports the failure instead, and then nothing is kept.

#[cfg(unix)]
use libc::{pthread_getspecific, pthread_key_create, pthread_key_t, pthread_setspecific};
use std::marker::PhantomData;

/// The calling thread's value, if it has one.
#[derive(Debug)]
pub struct Keepsake<T> {
    #[cfg(unix)]
    key: super::OnceLock<Option<pthread_key_t>>,
    _value: PhantomData<fn() -> T>,
}

impl<T: Clone> Default for Keepsake<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(unix)]
impl<T: Clone> Keepsake<T> {
    pub const fn new() -> Self {
        Keepsake { key: super::OnceLock::new(), _value: PhantomData }
    }

    /// Replaces the last value. False if there is no memory to register it.
    pub fn set(&self, value: Option<T>) -> bool {
        if value.is_none() && self.key.get().is_none() {
            return true;
        }
        let Some(key) = *self.key.get_or_init(make_key::<T>) else { return false };
        let new = value.map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value)));
        // SAFETY: the key was made by `make_key`, and what it holds in this thread came out of `Box::into_raw` here. It
        // is replaced before it is dropped, so code that its drop calls does not see it.
        unsafe {
            let old = pthread_getspecific(key).cast::<T>();
            if old.is_null() && new.is_null() {
                return true;
            }
            let kept = pthread_setspecific(key, new.cast()) == 0;
            let gone = if kept { old } else { new };
            if !gone.is_null() {
                drop(Box::from_raw(gone));
            }
            kept
        }
    }

    /// A copy of the calling thread's value.
    pub fn get(&self) -> Option<T> {
        let key = (*self.key.get()?)?;
        // SAFETY: as in `set`; only this thread touches its value, and the reference ends here.
        unsafe { pthread_getspecific(key).cast::<T>().as_ref().cloned() }
    }
}

#[cfg(unix)]
fn make_key<T>() -> Option<pthread_key_t> {
    extern "C" fn end<T>(value: *mut libc::c_void) {
        // SAFETY: called once, when the thread ends, with what `set` left; it came out of `Box::into_raw`.
        drop(unsafe { Box::from_raw(value.cast::<T>()) });
    }
    let mut key = 0;
    // SAFETY: the key outlives every thread, and so does `end`: the library is never unloaded.
    (unsafe { pthread_key_create(&raw mut key, Some(end::<T>)) } == 0).then_some(key)
}

#[cfg(not(unix))]
impl<T: Clone> Keepsake<T> {
    pub const fn new() -> Self {
        Keepsake { _value: PhantomData }
    }

    pub fn set(&self, value: Option<T>) -> bool {
        value.is_none()
    }

    pub fn get(&self) -> Option<T> {
        None
    }
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn each_thread_has_its_own_and_leaves_none_behind() {
        static KEEPSAKE: Keepsake<Arc<u32>> = Keepsake::new();
        let value = Arc::new(7);
        assert!(KEEPSAKE.set(None));
        assert_eq!(KEEPSAKE.get(), None);
        assert!(KEEPSAKE.set(Some(Arc::clone(&value))));
        let other = Arc::clone(&value);
        std::thread::spawn(move || {
            assert_eq!(KEEPSAKE.get(), None);
            assert!(KEEPSAKE.set(Some(other)));
            assert_eq!(Arc::strong_count(&KEEPSAKE.get().unwrap()), 4);
        })
        .join()
        .unwrap();
        assert_eq!(Arc::strong_count(&value), 2);
        assert!(KEEPSAKE.set(None));
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
