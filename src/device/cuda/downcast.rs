//! Downcasts of device objects from the room's traits.

use std::any::{Any, TypeId};

/// As `<dyn Any>::downcast_ref`, for calls that should take few nanoseconds. That one reads an id as one 16-byte word
/// right after two 8-byte stores, which defeats store forwarding.
#[inline]
pub(super) fn downcast<T: Any>(object: &dyn Any) -> Option<&T> {
    let ([a, b], [c, d]) = (words(object.type_id()), words(TypeId::of::<T>()));
    // SAFETY: the same id is the same type.
    ((a ^ c) | (b ^ d) == 0).then(|| unsafe { &*std::ptr::from_ref(object).cast::<T>() })
}

#[inline]
fn words(id: TypeId) -> [u64; 2] {
    // SAFETY: as many bytes, all of them initialized, and any bytes are two words. Ids with the same bytes are equal.
    unsafe { std::mem::transmute(id) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn objects_are_what_they_are_and_nothing_else() {
        let (text, number): (Box<dyn Any>, Box<dyn Any>) = (Box::new(String::from("a")), Box::new(7u64));
        assert_eq!(downcast::<String>(&*text).unwrap(), "a");
        assert_eq!(downcast::<u64>(&*number), Some(&7));
        assert!(downcast::<u64>(&*text).is_none() && downcast::<i64>(&*number).is_none());
        assert!(downcast::<Box<dyn Any>>(&*text).is_none());
    }
}
