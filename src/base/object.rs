//! Objects that C holds by handle: a tag in front, a count of those alive.
//!
//! A handle points to an `Object`, whose first field says what it is. The core passes shared objects as `Ref`, so
//! that a getter can hand out the very handle that the host passed in.
#![forbid(unsafe_code)]

use super::{live, process};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A shared object.
pub type Ref<T> = Arc<Object<T>>;

/// A type that C can hold by handle.
pub trait Kind {
    /// Distinguishes the kinds; the first bytes of every object.
    const TAG: u32;
    /// The name in error texts.
    const NAME: &'static str;
    /// Where it is counted.
    const COUNTER: live::Counter;
}

/// A value with its tag. `repr(C)`: the tag is what a handle points to.
#[repr(C)]
#[derive(Debug)]
pub struct Object<T: Kind> {
    tag: AtomicU32,
    /// The process that made it. Behind the tag, where a handle's reader finds it.
    born: u32,
    inner: T,
    /// Behind the value, so that nothing of it is left when the count falls.
    _counted: live::Counted,
}

/// Size and alignment of what the heap keeps when it is freed, for the next of its kind: a shared pool, of which a host
/// may make one for each of its calls. Nothing else is aligned and as large as this.
pub const KEPT_SIZE: usize = 384;
pub const KEPT_ALIGN: usize = 64;

/// What the tag of a dead object reads, as long as its memory is not reused.
const DEAD: u32 = 0x7765_0000;

macro_rules! kinds {
    ($($name:literal = $tag:ident : $offset:literal),* $(,)?) => {
        $(pub const $tag: u32 = 0x7765_6900 + $offset;)*

        #[cfg(test)]
        pub(in crate::base) const ALL: &[(u32, &str)] = &[$(($tag, $name)),*];

        /// The name of the kind with this tag.
        pub(in crate::base) fn name_of(tag: u32) -> Option<&'static str> {
            match tag {
                $($tag => Some($name),)*
                DEAD => Some("released object"),
                _ => None,
            }
        }
    };
}

/// The tags of all kinds, in one place so that no two are alike.
pub mod tag {
    kinds! {
        "threadpool" = THREADPOOL: 1,
        "threadpool_attr" = THREADPOOL_ATTR: 2,
        "engine" = ENGINE: 3,
        "engine_attr" = ENGINE_ATTR: 4,
        "stream" = STREAM: 5,
        "stream_attr" = STREAM_ATTR: 6,
        "event" = EVENT: 7,
        "tensor" = TENSOR: 8,
        "kernel" = KERNEL: 9,
        "kernel_attr" = KERNEL_ATTR: 10,
        "graph" = GRAPH: 11,
        "compile_options" = COMPILE_OPTIONS: 12,
        "program" = PROGRAM: 13,
        "run_options" = RUN_OPTIONS: 14,
        "run" = RUN: 15,
        "kernel_context" = KERNEL_CONTEXT: 16,
        "packed_weights" = PACKED_WEIGHTS: 17,
        "allocator" = ALLOCATOR: 18,
        "buffer" = BUFFER: 19,
        "resource" = RESOURCE: 20,
        "domain" = DOMAIN: 21,
        "task_group" = TASK_GROUP: 22,
    }
    use super::DEAD;
}

pub(super) use self::tag::name_of;

/// "an engine", "a run", "run_options"
pub fn with_article(name: &str) -> String {
    match name.as_bytes() {
        // Several things.
        [.., b's'] => name.to_owned(),
        [b'a' | b'e' | b'i' | b'o' | b'u', ..] => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

impl<T: Kind> Object<T> {
    pub fn new(inner: T) -> Object<T> {
        Object {
            tag: AtomicU32::new(T::TAG),
            born: process::generation(),
            inner,
            _counted: live::Counted::new(T::COUNTER),
        }
    }

    /// Whether it was made by a process that this one was forked from.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.born != process::generation()
    }

    pub fn shared(inner: T) -> Ref<T> {
        Arc::new(Object::new(inner))
    }
}

impl<T: Kind> Drop for Object<T> {
    fn drop(&mut self) {
        // ORDERING: Relaxed; best effort for a caller that uses the handle after its release, nothing pairs with it.
        self.tag.store(DEAD, Ordering::Relaxed);
    }
}

impl<T: Kind> Deref for Object<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: Kind> DerefMut for Object<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
