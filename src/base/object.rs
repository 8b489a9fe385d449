//! Objects that C holds by handle: a tag in front, and a count of live objects.
//!
//! A handle points to an `Object`, whose first field states its kind. The core passes shared objects as `Ref`, so that
//! a getter can return the same handle that the host passed in.
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
    /// The counter of this kind.
    const COUNTER: live::Counter;
}

/// A value with its tag. `repr(C)`: the tag is what a handle points to.
#[repr(C)]
#[derive(Debug)]
pub struct Object<T: Kind> {
    tag: AtomicU32,
    /// The process that created it. After the tag, at a fixed offset from the handle.
    born: u32,
    inner: T,
    /// Declared after the value, so that nothing of the object is left when the count falls.
    _counted: live::Counted,
}

/// Size and alignment of the blocks that the heap keeps when they are freed, for the next of their kind: those of
/// shared pools, which a host may create for each of its calls, and of the handles of runs, of which each start makes
/// one. No other types have these sizes and alignments.
pub const KEPT: [(usize, usize); 2] = [(384, 64), (192, 32)];

/// Size and alignment of the block of a shared object.
pub const fn block<T: Kind>() -> (usize, usize) {
    let align = align_of::<Object<T>>();
    ((2 * size_of::<usize>()).next_multiple_of(align) + size_of::<Object<T>>(), align)
}

/// The tag of a dead object, as long as its memory is not reused.
const DEAD: u32 = 0x7765_0000;

macro_rules! kinds {
    ($($name:literal = $tag:ident : $offset:literal),* $(,)?) => {
        $(pub const $tag: u32 = 0x7765_6900 + $offset;)*

        #[cfg(all(test, not(loom)))]
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

/// The tags of all kinds, in one place so that they are distinct.
pub mod tag {
    kinds! {
        "threadpool" = THREADPOOL: 1,
        "engine" = ENGINE: 3,
        "engine_attr" = ENGINE_ATTR: 4,
        "stream" = STREAM: 5,
        "stream_attr" = STREAM_ATTR: 6,
        "event" = EVENT: 7,
        "tensor" = TENSOR: 8,
        "kernel" = KERNEL: 9,
        "graph" = GRAPH: 11,
        "program" = PROGRAM: 13,
        "run" = RUN: 15,
        "kernel_context" = KERNEL_CONTEXT: 16,
        "packed_weights" = PACKED_WEIGHTS: 17,
        "allocator" = ALLOCATOR: 18,
        "buffer" = BUFFER: 19,
        "resource" = RESOURCE: 20,
        "domain" = DOMAIN: 21,
        "task_group" = TASK_GROUP: 22,
        "trace" = TRACE: 23,
        "comm" = COMM: 24,
        "call" = CALL: 25,
    }
    use super::DEAD;
}

pub(super) use self::tag::name_of;

/// "an engine", "a run", "packed_weights"
pub fn with_article(name: &str) -> String {
    match name.as_bytes() {
        // Plurals.
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

    /// Whether it was created by a process that this one was forked from.
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
